/* SPDX-License-Identifier: MIT */
/* check-fork-golden.c - rows of ik_llama.cpp decode to its floats
 *
 * golden/ik/codec/manifest.tsv has a digest of the bytes and of the floats of
 * each result. For types whose decoder in ik_llama.cpp ignores the scale, the
 * digest is that of the scaled floats (column dequant_own_xxh64). Groups of
 * interleaved rows are also compared with the plain results of the same rows.
 */
#include "config.h"
#include "data/stored.h"
#include "dtype/interleave.h"
#include "tests/kern/kern.h"
#include "tests/slurp.h"
#include "tests/tap.h"

/* Columns of the manifest. */
enum {
    CASE,
    TYPE,
    ID,
    VARIANT,
    IMATRIX,
    ROWS,
    LEN,
    INTERLEAVE,
    FILE_NAME,
    OFFSET,
    BYTES,
    HASH,
    HASH_NATIVE,
    FLOATS,
    FLOATS_NATIVE,
    FLOATS_OWN,
    N_COLUMNS
};

static uint8_t data[1 << 20];
static char loaded[64];
static size_t loaded_size;

/* Read a compressed file of the folder into data[]. */
static bool load_data(const char *name)
{
    char command[4200];
    if (!strcmp(name, loaded))
        return true;
    const char *path = shared_path(name);
    if (!path)
        return false;
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *f = popen(command, "r");
    loaded_size = f ? fread(data, 1, sizeof data, f) : 0;
    snprintf(loaded, sizeof loaded, "%s", name);
    return f && pclose(f) == 0;
}

/* A line of the manifest. */
struct result {
    char name[16], variant[8], imatrix[8], path[96];
    int type;
    size_t n, len, off, size;
    uint64_t bytes, floats;
};

/* Does ik_llama.cpp subtract d times the middle of the codes, which gives no
 * negative zeros? */
static bool has_positive_zeros(int type)
{
    return type == GG_DT_Q5_0_R4 || type == GG_DT_Q6_0_R4 ||
           type == GG_DT_Q8_K_R16;
}

/* Decode the rows of a result and hash the floats. */
static uint64_t decode_rows(const struct gg_kern *k, const struct result *r)
{
    const size_t n = r->n * r->len;
    struct gg_stored s;
    float *y = malloc(n * sizeof *y);
    uint64_t hash = 0;
    if (gg_stored_init(&s, k->codec, gg_dtype_by_index(r->type)->id,
                       data + r->off, r->len, r->size / r->n, false)) {
        gg_stored_read(&s, 0, n, y);
        for (size_t i = 0; has_positive_zeros(r->type) && i < n; i++)
            y[i] += 0.0f; /* -0 becomes 0 */
        hash = test_hash_floats(y, n);
    }
    free(y);
    return hash;
}

/* Read a line. false: the title, or not a type of the fork. */
static bool read_line(struct result *r, char *line)
{
    char *f[N_COLUMNS + 8];
    if (test_fields(line, f, N_COLUMNS + 8) < N_COLUMNS)
        return false;
    const struct gguf_dtype_info *t = gguf_dtype_find_name(f[TYPE]);
    if (!t)
        return false;
    snprintf(r->name, sizeof r->name, "%s", f[CASE]);
    snprintf(r->variant, sizeof r->variant, "%s", f[VARIANT]);
    snprintf(r->imatrix, sizeof r->imatrix, "%s", f[IMATRIX]);
    snprintf(r->path, sizeof r->path, "golden/ik/codec/%.60s.gz",
             f[FILE_NAME]);
    r->type = gg_dtype_index(t->id);
    r->n = strtoul(f[ROWS], NULL, 10);
    r->len = strtoul(f[LEN], NULL, 10);
    r->off = strtoul(f[OFFSET], NULL, 10);
    r->size = strtoul(f[BYTES], NULL, 10);
    r->bytes = strtoull(f[HASH], NULL, 16);
    r->floats = strtoull(
        strcmp(f[FLOATS_OWN], "-") ? f[FLOATS_OWN] : f[FLOATS], NULL, 16);
    return true;
}

static struct result results[2000];
static size_t n_results;

static void read_manifest(void)
{
    char *text = slurp(shared_path("golden/ik/codec/manifest.tsv"), NULL);
    for (char *line = text, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end ? (*end = 0, 1) : 0;
        n_results += n_results < sizeof results / sizeof *results &&
                     read_line(&results[n_results], line);
    }
    free(text);
}

static bool load_result(const struct result *r)
{
    return load_data(r->path) && r->off + r->size <= loaded_size &&
           test_hash(data + r->off, r->size) == r->bytes;
}

static void check_level(const struct gg_kern *k, const char *level)
{
    static unsigned n[GG_N_DTYPES], bad[GG_N_DTYPES];
    memset(n, 0, sizeof n);
    memset(bad, 0, sizeof bad);
    for (size_t i = 0; i < n_results; i++) {
        const struct result *r = &results[i];
        if (gg_dtype_by_index(r->type)->family != GGUF_FAMILY_FORK)
            continue;
        n[r->type]++;
        if ((!load_result(r) || decode_rows(k, r) != r->floats) &&
            !bad[r->type]++)
            printf("# %s: %s %s %s %s\n", level,
                   gg_dtype_by_index(r->type)->name, r->name, r->variant,
                   r->imatrix);
    }
    for (int i = 0; i < GG_N_DTYPES; i++)
        if (n[i])
            ok(!bad[i], "%s %s: %u of %u results", level,
               gg_dtype_by_index(i)->name, n[i] - bad[i], n[i]);
}

/* ---- groups and plain rows ---- */

/* Did ik_llama.cpp encode other rows for the groups? Q2_K tests all rows of a
 * call for ternary weights; IQ2_XS and IQ3_S repair importances first. */
static bool is_other(const struct result *r)
{
    const bool edge = !strcmp(r->name, "edge256");
    const bool weighted = strcmp(r->imatrix, "-") != 0;
    return r->type == GG_DT_Q2_K_R4
               ? (edge || !strcmp(r->name, "tern256")) && !weighted
               : (r->type == GG_DT_IQ2_XS_R4 || r->type == GG_DT_IQ3_S_R4) &&
                     edge && weighted;
}

static const struct result *find_plain(const struct result *of)
{
    for (size_t i = 0; i < n_results; i++)
        if (results[i].type == gg_interleave_plain(of->type) &&
            !strcmp(results[i].name, of->name) &&
            !strcmp(results[i].variant, of->variant) &&
            !strcmp(results[i].imatrix, of->imatrix))
            return &results[i];
    return NULL;
}

/* Are the rows of the groups those of the plain result, and back? */
static bool is_same(const struct result *r, const struct result *plain)
{
    static uint8_t groups[1 << 16], rows[1 << 16], back[1 << 16];
    const unsigned n = gg_interleave_rows(r->type);
    if (r->size > sizeof groups || plain->size > sizeof rows ||
        !load_result(r))
        return false;
    memcpy(groups, data + r->off, r->size);
    if (!load_result(plain))
        return false;
    for (size_t row = 0; row < r->n; row++)
        gg_interleave_take(r->type, groups + row / n * n * (r->size / r->n),
                           (unsigned)(row % n), 0, r->len,
                           rows + row * (plain->size / r->n));
    for (size_t row = 0; row < r->n; row += n)
        gg_interleave_put(r->type, back + row * (r->size / r->n), r->len,
                          rows + row * (plain->size / r->n));
    return !memcmp(groups, back, r->size) &&
           (is_other(r) || !memcmp(rows, data + plain->off, plain->size));
}

static void check_groups(void)
{
    static unsigned n[GG_N_DTYPES], bad[GG_N_DTYPES];
    unsigned n_types = 0;
    for (size_t i = 0; i < n_results; i++) {
        const struct result *r = &results[i];
        const struct result *plain =
            gg_interleave_has_put(r->type) ? find_plain(r) : NULL;
        if (!plain || r->type == GG_DT_BF16_R16) /* it truncates */
            continue;
        n[r->type]++;
        bad[r->type] += !is_same(r, plain);
    }
    for (int i = 0; i < GG_N_DTYPES; i++) {
        n_types += n[i] != 0;
        if (n[i])
            ok(!bad[i], "%s: groups and rows of %u of %u results",
               gg_dtype_by_index(i)->name, n[i] - bad[i], n[i]);
    }
    ok(n_types == 25, "%u interleaved types have plain rows", n_types);
}

int main(void)
{
    if (shared_path("golden/ik/codec/manifest.tsv")) {
        read_manifest();
        test_each_level(check_level);
        check_groups();
    } else {
        skip("no folder golden/ik");
    }
    return done_testing();
}
