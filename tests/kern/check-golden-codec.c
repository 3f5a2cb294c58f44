/* SPDX-License-Identifier: MIT */
/* check-golden-codec.c - codecs against ggml's own bytes and floats
 *
 * Hashes over inputs that a small generator makes are in bulk.c, a digest of
 * them for each type; where ../shared is, that is also of bulk.tsv there. So
 * are bytes that ggml's quantizers gave for awkward rows, with and without
 * importances (golden/codec, with a README: manifest.tsv), which are too many
 * to be here: check-codec-digest has awkward rows of its own. Every level of
 * this machine must give the same, also of the cases that are marked extreme:
 * they overflow scales, so that ggml's sums become infinite or NaN and its
 * conversions go out of range, and what comes of that is what an x86-64 makes
 * of it.
 *
 *     check-golden-codec --carry    print the digests of bulk.tsv
 */
#include "config.h"
#include "base/bytes.h"
#include "tests/kern/bulk.h"
#include "tests/kern/kern.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

/* A row of manifest.tsv. */
struct result {
    char *name, *type, *variant, *imatrix, *file;
    size_t n_rows, row_len, off, size, first_off, first_n;
    uint64_t hash, dequant_hash;
    bool stable;
};

/* What happened to one type at one level. */
struct tally {
    unsigned decoded, decode_bad, encoded, encode_bad;
    char first_bad[200];
};

static char *slurp_golden(const char *name, size_t *size)
{
    char path[256];
    snprintf(path, sizeof path, "golden/codec/%s", name);
    return slurp(shared_path(path), size);
}

static struct {
    char *cases, *imatrix_list;
    float *inputs, *imatrix, *first;
} golden;

/* A file of floats, little-endian. */
static float *slurp_floats(const char *name)
{
    size_t size;
    char *text = slurp_golden(name, &size);
    float *x = text ? malloc(size + 1) : NULL;
    for (size_t i = 0; x && i < size / 4; i++)
        x[i] = gg_bytes_f32_from_bits(gg_bytes_load32le(text + 4 * i));
    free(text);
    return x;
}

/* Find the row of a table whose first fields are a (and b, if not NULL). */
static bool find_row(const char *table, const char *a, const char *b,
                     char *line, size_t size, char **field, unsigned n)
{
    for (const char *p = table; p && *p; p = strchr(p, '\n'), p += !!p) {
        snprintf(line, size, "%.*s", (int)strcspn(p, "\n"), p);
        if (test_fields(line, field, n) == n && !strcmp(field[0], a) &&
            (!b || !strcmp(field[1], b)))
            return true;
    }
    return false;
}

static const float *case_input(const char *name)
{
    char line[256], *f[8];
    if (!find_row(golden.cases, name, NULL, line, sizeof line, f, 8))
        return NULL;
    return golden.inputs + strtoull(f[4], NULL, 10) / 4;
}

static const float *case_weight(const char *name, const char *row_len)
{
    char line[256], *f[5];
    if (!find_row(golden.imatrix_list, name, row_len, line, sizeof line, f, 5))
        return NULL;
    return golden.imatrix + strtoull(f[3], NULL, 10) / 4;
}

static void note_bad(struct tally *t, const struct result *r, const char *what)
{
    if (!t->first_bad[0])
        snprintf(t->first_bad, sizeof t->first_bad, "%s %s %s %s", what,
                 r->name, r->variant, r->imatrix);
}

/* Types that are never written have no `chunk' results. */
static bool wants_encode(const struct result *r)
{
    return r->stable &&
           (!strcmp(r->variant, "chunk") ||
            (!strncmp(r->type, "q8_", 3) && strcmp(r->type, "q8_0") &&
             !strcmp(r->variant, "ref")));
}

static void run_result(const struct result *r, const char *bytes,
                       const char *row_len_text, const struct gg_codec_kern *k,
                       struct tally *t)
{
    size_t n = r->n_rows * r->row_len;
    const float *x = case_input(r->name);
    if (k->decode && r->dequant_hash) { /* run-time types have none */
        float *y = malloc(n * sizeof *y);
        for (size_t i = 0; i < r->n_rows; i++)
            k->decode(bytes + r->size / r->n_rows * i, y + r->row_len * i,
                      r->row_len);
        bulk_name_nan(y, n);
        t->decoded++;
        if (test_hash_floats(y, n) != r->dequant_hash ||
            memcmp(y, golden.first + r->first_off / 4,
                   r->first_n * sizeof *y)) {
            t->decode_bad++;
            note_bad(t, r, "decode");
        }
        free(y);
    }
    if (k->encode && x && wants_encode(r)) {
        const float *w = NULL;
        bool weighted = strcmp(r->imatrix, "-") != 0;
        if (weighted)
            w = case_weight(r->imatrix, row_len_text);
        char *out = malloc(r->size);
        memset(out, 0xa5, r->size);
        if (!weighted || w)
            k->encode(x, out, r->n_rows, r->row_len, w);
        bool bad =
            memcmp(out, bytes, r->size) || test_hash(out, r->size) != r->hash;
        t->encoded++;
        if (bad) {
            t->encode_bad++;
            note_bad(t, r, "encode");
        }
        free(out);
    }
}

/* One pass over the manifest at one level. */
static void run_manifest(const char *manifest, const struct gg_kern *k,
                         struct tally *tally)
{
    char *text = strdup(manifest), *file = NULL, file_name[64] = "";
    for (char *p = strchr(text, '\n') + 1, *next; *p; p = next) {
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        char *f[16];
        if (test_fields(p, f, 16) != 16 || !strncmp(f[10], "ABORT", 5))
            continue;
        const struct gguf_dtype_info *info = gguf_dtype_from_name(f[1]);
        if (!info || !strcmp(f[7], "-"))
            continue;
        struct result r = { f[0],
                            f[1],
                            f[2],
                            f[3],
                            f[7],
                            strtoul(f[4], NULL, 10),
                            strtoul(f[5], NULL, 10),
                            strtoul(f[8], NULL, 10),
                            strtoul(f[9], NULL, 10),
                            strtoul(f[12], NULL, 10),
                            strtoul(f[13], NULL, 10),
                            strtoull(f[10], NULL, 16),
                            strtoull(f[11], NULL, 16),
                            f[15][0] == '1' };
        if (strcmp(file_name, r.file)) {
            free(file);
            file = slurp_golden(r.file, NULL);
            snprintf(file_name, sizeof file_name, "%s", r.file);
        }
        int i = gg_dtype_index(info->id);
        if (file)
            run_result(&r, file + r.off, f[5], &k->codec[i], &tally[i]);
    }
    free(file);
    free(text);
}

static void report_tally(const char *level, const struct tally *tally)
{
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct tally *t = &tally[i];
        if (!t->decoded && !t->encoded)
            continue;
        ok(!t->decode_bad && !t->encode_bad, "%s %s: %u decoded, %u encoded",
           level, gg_dtype_by_index(i)->name, t->decoded, t->encoded);
        if (t->first_bad[0])
            printf("# %u of decodes, %u of encodes differ; first: %s\n",
                   t->decode_bad, t->encode_bad, t->first_bad);
    }
}

static bool read_golden(char **manifest)
{
    *manifest = slurp_golden("manifest.tsv", NULL);
    golden.cases = slurp_golden("cases.tsv", NULL);
    golden.imatrix_list = slurp_golden("imatrix.tsv", NULL);
    golden.inputs = slurp_floats("inputs.f32");
    golden.imatrix = slurp_floats("imatrix.f32");
    golden.first = slurp_floats("dequant64.f32");
    return *manifest && golden.cases && golden.imatrix_list && golden.inputs &&
           golden.imatrix && golden.first;
}

int main(int argc, char **argv)
{
    char *manifest, *bulk = slurp_golden("bulk.tsv", NULL);
    const bool here = read_golden(&manifest), table = bulk_init(bulk);
    if (argc > 1 && !strcmp(argv[1], "--carry"))
        return !table || bulk_print();
    if (table)
        ok(bulk_table_agrees(), "the digests are those of ../shared");
    struct test_level level[8];
    unsigned n = test_levels(level);
    for (unsigned i = 0; i < n; i++) {
        static struct tally tally[GG_N_DTYPES];
        struct gg_kern k;
        memset(tally, 0, sizeof tally);
        gg_kern_init(&k, level[i].mask);
        for (int t = 0; t < GG_N_DTYPES; t++) {
            char wrong[128];
            if (bulk_has(t))
                ok(bulk_run(t, &k.codec[t], wrong),
                   "%s %s: 32 rows of each "
                   "distribution%s",
                   level[i].name, gg_dtype_by_index(t)->name, wrong);
        }
        if (here)
            run_manifest(manifest, &k, tally);
        report_tally(level[i].name, tally);
    }
    free(manifest);
    free(bulk);
    free(golden.cases);
    free(golden.imatrix_list);
    free(golden.inputs);
    free(golden.imatrix);
    free(golden.first);
    return done_testing();
}
