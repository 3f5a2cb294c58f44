/* SPDX-License-Identifier: MIT */
/* check-fork-encode.c - encoders of ik_llama.cpp's types
 *
 * If ../shared is there: the bytes of all rows of golden/ik/codec, with and
 * without importances, are those of ik_llama.cpp (built without contraction).
 * Everywhere, in double precision: the error of random rows is below a bound of
 * the type, the scale is the one of least squares, importances move the error
 * to elements of little importance, and rows do not depend on their neighbours.
 */
#include "config.h"
#include "tests/kern/kern.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

static struct gg_kern kern;

static size_t row_size(const struct gguf_dtype_info *t, size_t n)
{
    return t->row_header + n / t->block_len * t->block_size;
}

/* ------------------------------------------------- ik_llama.cpp's rows --- */

/* The floats of a compressed file. */
static float *load_floats(const char *name)
{
    const char *path = shared_path(name);
    char command[5000];
    size_t max = 1 << 20, n = 0;
    if (!path)
        return NULL;
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *f = popen(command, "r");
    float *x = calloc(max, sizeof *x);
    if (f)
        n = fread(x, sizeof *x, max, f);
    for (size_t i = 0; i < n; i++)
        x[i] = gg_bytes_f32_from_bits(gg_bytes_load32le(&x[i]));
    if (f && !pclose(f) && n)
        return x;
    free(x);
    return NULL;
}

/* First float of the rows of a case, or of importances: the line of a table
 * whose first two fields are a and b; `field' has the byte. */
static long find_offset(const char *table, const char *a, const char *b,
                        unsigned field)
{
    char *text = slurp(shared_path(table), NULL), *line = text;
    long off = -1;
    while (line && *line && off < 0) {
        char *end = line + strcspn(line, "\n"), *next = end + (*end != 0);
        char *f[8];
        *end = 0;
        if (test_fields(line, f, 8) > field && !strcmp(f[0], a) &&
            (!b || !strcmp(f[1], b)))
            off = atol(f[field]) / (long)sizeof(float);
        line = next;
    }
    free(text);
    return off;
}

enum { CASE, TYPE, ID, VARIANT, IMATRIX, ROWS, LEN, HASH = 11, FIELDS = 20 };

/* Encode the rows of a line of the manifest. 1: the bytes are the line's. */
static int same_bytes(char **f, const struct gguf_dtype_info *t,
                      const float *inputs, const float *importances)
{
    size_t rows = strtoul(f[ROWS], NULL, 10), n = strtoul(f[LEN], NULL, 10);
    size_t size = rows * row_size(t, n);
    long x = find_offset("golden/ik/codec/cases.tsv", f[CASE], NULL, 4), w = 0;
    if (*f[IMATRIX] != '-')
        w = find_offset("golden/ik/codec/imatrix.tsv", f[IMATRIX], f[LEN], 3);
    if (x < 0 || w < 0)
        return 0;
    void *out = malloc(size);
    kern.codec[gg_dtype_index(t->id)].encode(
        inputs + x, out, rows, n, *f[IMATRIX] == '-' ? NULL : importances + w);
    int same = test_hash(out, size) == strtoull(f[HASH], NULL, 16);
    free(out);
    return same;
}

/* The reference's search for trellis types is slow: few rows. */
static bool is_slow(const struct gguf_dtype_info *t, const char *level)
{
    return strstr(t->name, "_KT") && strcmp(level, "c") != 0 &&
           strcmp(level, "avx2") != 0;
}

static void known_rows(const char *level)
{
    char *text = slurp(shared_path("golden/ik/codec/manifest.tsv"), NULL);
    float *x = load_floats("golden/ik/codec/inputs.f32.gz");
    float *w = load_floats("golden/ik/codec/imatrix.f32.gz");
    char *line = text;
    if (!text || !x || !w)
        skip("no rows of ik_llama.cpp");
    while (x && w && line && *line) {
        char *end = line + strcspn(line, "\n"), *next = end + (*end != 0);
        char *f[FIELDS];
        *end = 0;
        unsigned n = test_fields(line, f, FIELDS);
        line = next;
        const struct gguf_dtype_info *t =
            n == FIELDS ? gguf_dtype_find((uint32_t)atoi(f[ID])) : NULL;
        if (!t || t->id < 133 || !kern.codec[gg_dtype_index(t->id)].encode ||
            is_slow(t, level) ||
            (strstr(t->name, "_KT") && !strcmp(level, "c") &&
             strcmp(f[CASE], "g256") != 0 &&
             strcmp(f[CASE], "edge256") != 0) ||
            strcmp(f[VARIANT], !strcmp(t->name, "IQ2_KS") ? "fast" : "chunk"))
            continue;
        ok(same_bytes(f, t, x, w), "%s %s: rows %s, importances %s", level,
           t->name, f[CASE], f[IMATRIX]);
    }
    free(text);
    free(x);
    free(w);
}

/* --------------------------------------------------------- random rows --- */

/* Bounds: relative root mean square error of normal numbers. */
static const struct bound {
    int dtype; /* GG_DT_... */
    double error;
} bounds[] = {
    { GG_DT_Q6_0, 0.022 },  { GG_DT_IQ2_K, 0.33 },  { GG_DT_IQ3_K, 0.18 },
    { GG_DT_IQ4_K, 0.09 },  { GG_DT_IQ5_K, 0.045 }, { GG_DT_IQ6_K, 0.023 },
    { GG_DT_IQ4_KS, 0.10 }, { GG_DT_IQ2_KS, 0.36 }, { GG_DT_IQ4_KSS, 0.12 },
    { GG_DT_IQ5_KS, 0.05 }, { GG_DT_IQ3_KS, 0.20 }, { GG_DT_IQ2_KL, 0.3 },
    { GG_DT_IQ1_KT, 0.5 },  { GG_DT_IQ2_KT, 0.4 },  { GG_DT_IQ3_KT, 0.25 },
    { GG_DT_IQ4_KT, 0.15 },
};

enum { N_ROWS = 8, N_COLS = 1024, N_ALL = N_ROWS * N_COLS };

static float draw_normal(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)(rnd64() >> 11) * 0x1p-53;
    return (float)(sum - 6);
}

struct errors {
    double even, odd;  /* relative, of even and odd elements */
    double projection; /* factor of decoded elements, weights x^2 */
};

static struct errors errors_of(const float *x, const float *y)
{
    double e[2] = { 0, 0 }, s[2] = { 0, 0 }, xy = 0, yy = 0;
    for (int i = 0; i < N_ALL; i++) {
        double a = (double)x[i], b = (double)y[i];
        e[i & 1] += (a - b) * (a - b);
        s[i & 1] += a * a;
        xy += a * a * a * b;
        yy += a * a * b * b;
    }
    return (struct errors){ sqrt(e[0] / s[0]), sqrt(e[1] / s[1]), xy / yy };
}

static struct errors encode_rows(const struct gguf_dtype_info *t,
                                 const float *x, const float *w, uint8_t *out)
{
    static float y[N_ALL];
    const struct gg_codec_kern *k = &kern.codec[gg_dtype_index(t->id)];
    k->encode(x, out, N_ROWS, N_COLS, w);
    for (int r = 0; r < N_ROWS; r++)
        k->decode(out + (size_t)r * row_size(t, N_COLS), y + r * N_COLS,
                  N_COLS);
    return errors_of(x, y);
}

static void random_rows(const char *level, const struct bound *b)
{
    static float x[N_ALL], w[N_COLS];
    static uint8_t out[2][N_ALL * 4];
    const struct gguf_dtype_info *t = gg_dtype_by_index(b->dtype);
    const struct gg_codec_kern *k = &kern.codec[b->dtype];
    size_t size = row_size(t, N_COLS);
    for (int i = 0; i < N_ALL; i++)
        x[i] = draw_normal();
    struct errors e = encode_rows(t, x, NULL, out[0]);
    printf("# %s: errors %g %g, projection %g\n", t->name, e.even, e.odd,
           e.projection);
    ok(e.even < b->error && e.odd < b->error, "%s %s: error", level, t->name);
    ok(fabs(e.projection - 1) < 0.06, "%s %s: scale", level, t->name);
    for (int i = 0; i < N_COLS; i++)
        w[i] = i & 1 ? 1 : 0.01f;
    struct errors f = encode_rows(t, x, w, out[1]);
    printf("# %s: errors %g %g with importances\n", t->name, f.even, f.odd);
    ok(f.odd < e.odd && f.even > e.even, "%s %s: importances", level, t->name);
    k->encode(x + 3 * N_COLS, out[1], 1, N_COLS, NULL);
    ok(!memcmp(out[1], out[0] + 3 * size, size), "%s %s: one row", level,
       t->name);
}

int main(void)
{
    struct test_level level[8];
    unsigned n = test_levels(level);
    for (unsigned i = 0; i < n; i++) {
        gg_kern_init(&kern, level[i].mask);
        known_rows(level[i].name);
        for (size_t s = 0; s < sizeof bounds / sizeof *bounds; s++)
            if (!is_slow(gg_dtype_by_index(bounds[s].dtype), level[i].name))
                random_rows(level[i].name, &bounds[s]);
    }
    return done_testing();
}
