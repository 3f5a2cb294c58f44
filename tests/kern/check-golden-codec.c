/* check-golden-codec.c - codecs against ggml's own bytes and floats
 *
 * The vectors lie beside the source tree (golden/codec, with a README): bytes
 * that ggml's quantizers gave for awkward rows, with and without importances
 * (manifest.tsv), and hashes over inputs that a small generator makes
 * (bulk.tsv). Every level of this machine must give the same, also of the
 * cases that are marked extreme: they overflow scales, so that ggml's sums
 * become infinite or NaN and its conversions go out of range, and what comes
 * of that is what an x86-64 makes of it.
 */
#include "config.h"
#include "base/bytes.h"
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

/* What this processor makes of an operation that is invalid becomes what an
 * x86-64 does. */
static void name_nan(float *x, size_t n)
{
    static const volatile float zero = 0;
    uint32_t nan = gg_bytes_f32_bits(zero * (float)INFINITY);
    for (size_t i = 0; i < n; i++)
        if (gg_bytes_f32_bits(x[i]) == nan)
            x[i] = gg_bytes_f32_from_bits(0xffc00000);
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
        name_nan(y, n);
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

static uint64_t next64(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static int32_t v12(uint64_t *s)
{
    int32_t t = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t r = next64(s);
        t += (int32_t)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) +
                       (r >> 48));
    }
    return 2 * t - 786420;
}

static float two_to(int e)
{
    float v = 1;
    for (; e > 0; e--)
        v *= 2;
    for (; e < 0; e++)
        v /= 2;
    return v;
}

static float bulk_value(int dist, uint32_t column, uint64_t *s)
{
    int32_t v;
    uint64_t r;
    int e;
    switch (dist) {
    case 0: return (float)v12(s) * 0x1p-22f;
    case 1:
        v = v12(s);
        r = next64(s) | 256;
        for (e = 0; !(r >> e & 1); e++)
            ;
        return (float)v * two_to(e - 24);
    case 2: return (float)((int32_t)(next64(s) >> 40) - (1 << 23)) * 0x1p-26f;
    case 3:
        r = next64(s);
        if (!(r & 3))
            return 0;
        return (float)(4096 + (r >> 3 & 255)) * (r & 4 ? 0x1p-17f : -0x1p-17f);
    case 4:
        e = (int)((column * UINT32_C(2654435761) >> 20) % 9) - 6;
        return (float)v12(s) * two_to(e - 22);
    default:
        v = v12(s);
        r = next64(s);
        return (float)v * 0x1p-22f *
               ((float)((UINT64_C(1) << 23) + (r >> 41)) * 0x1p-23f);
    }
}

static const size_t bulk_len[6] = { 1024, 512, 256, 1024, 2048, 768 };
static float bulk_x[6][32 * 2048], bulk_w[6][2][2048];

static void make_bulk(void)
{
    uint64_t seed = UINT64_C(20260801) * 1000003;
    for (int d = 0; d < 6; d++) {
        uint64_t s = seed + (uint64_t)d;
        for (size_t i = 0; i < 32 * bulk_len[d]; i++)
            bulk_x[d][i] = bulk_value(d, (uint32_t)(i % bulk_len[d]), &s);
        for (int k = 0; k < 2; k++) {
            s = seed + 100 + 10 * (uint64_t)d + (uint64_t)k + 1;
            for (size_t i = 0; i < bulk_len[d]; i++) {
                uint64_t r = next64(&s);
                bulk_w[d][k][i] = (float)(1 + (r >> 41)) * 0x1p-20f;
                if (k && !(r & 7))
                    bulk_w[d][k][i] = 0;
            }
        }
    }
}

static void run_bulk_row(char **f, const struct gg_codec_kern *k,
                         struct tally *t)
{
    int d = atoi(f[1]);
    size_t rows = strtoul(f[3], NULL, 10), len = strtoul(f[4], NULL, 10);
    size_t size = strtoul(f[7], NULL, 10);
    const float *w = !strcmp(f[2], "none")  ? NULL
                     : !strcmp(f[2], "pos") ? bulk_w[d][0]
                                            : bulk_w[d][1];
    char *out = malloc(size);
    k->encode(bulk_x[d], out, rows, len, w);
    t->encoded++;
    if (test_hash(out, size) != strtoull(f[8], NULL, 16)) {
        t->encode_bad++;
        if (!t->first_bad[0])
            snprintf(t->first_bad, sizeof t->first_bad, "bulk %s %s", f[1],
                     f[2]);
    } else if (k->decode) {
        float *y = malloc(rows * len * sizeof *y);
        k->decode(out, y, rows * len);
        name_nan(y, rows * len);
        t->decoded++;
        t->decode_bad +=
            test_hash_floats(y, rows * len) != strtoull(f[10], NULL, 16);
        free(y);
    }
    free(out);
}

static void run_bulk(const char *bulk, const struct gg_kern *k,
                     struct tally *tally)
{
    char *text = strdup(bulk);
    for (char *p = strchr(text, '\n') + 1, *next; *p; p = next) {
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        char *f[11];
        const struct gguf_dtype_info *info;
        if (test_fields(p, f, 11) != 11 ||
            !(info = gguf_dtype_from_name(f[0])))
            continue;
        int i = gg_dtype_index(info->id), d = atoi(f[1]);
        if (test_hash_floats(bulk_x[d], 32 * bulk_len[d]) !=
            strtoull(f[6], NULL, 16)) {
            ok(0, "the generator makes the rows of distribution %d", d);
            break;
        }
        if (k->codec[i].encode)
            run_bulk_row(f, &k->codec[i], &tally[i]);
    }
    free(text);
}

static void report(const char *level, const struct tally *tally)
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

int main(void)
{
    char *manifest = slurp_golden("manifest.tsv", NULL);
    char *bulk = slurp_golden("bulk.tsv", NULL);
    golden.cases = slurp_golden("cases.tsv", NULL);
    golden.imatrix_list = slurp_golden("imatrix.tsv", NULL);
    golden.inputs = slurp_floats("inputs.f32");
    golden.imatrix = slurp_floats("imatrix.f32");
    golden.first = slurp_floats("dequant64.f32");
    if (!manifest || !bulk || !golden.cases || !golden.imatrix_list ||
        !golden.inputs || !golden.imatrix || !golden.first) {
        skip("the golden vectors are not here");
    } else {
        make_bulk();
        struct test_level level[8];
        unsigned n = test_levels(level);
        for (unsigned i = 0; i < n; i++) {
            static struct tally tally[GG_N_DTYPES];
            struct gg_kern k;
            memset(tally, 0, sizeof tally);
            gg_kern_init(&k, level[i].mask);
            run_manifest(manifest, &k, tally);
            run_bulk(bulk, &k, tally);
            report(level[i].name, tally);
        }
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
