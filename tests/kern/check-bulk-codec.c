/* SPDX-License-Identifier: MIT */
/* check-bulk-codec.c - codecs against ggml's own bytes and floats
 *
 * Six distributions with 32 rows each, without importances, with positive
 * ones, and with some zeros. A type's digest is the XXH64 of the XXH64s of
 * each result, in that order, eight bytes each. Every level of this machine
 * must give the digests in this file. If ../shared is there, they are also
 * compared with golden/codec/bulk.tsv, whose digests --print prints.
 * check-codec-digest has awkward rows.
 *
 *   check-bulk-codec [--print]
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "tests/kern/kern.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

enum { N_DIST = 6, N_WEIGHT = 3, N_ROWS = 32 };

/* Digests of ggml_quantize_chunk and ggml's decoders (commit d99724f, gcc 12,
 * plain x86-64, no contraction). */
static const struct digests {
    const char *type;
    uint64_t bytes, floats;
} known[] = {
    { "F16", UINT64_C(0x617cac922383e1be), UINT64_C(0xe30eb7c23d428933) },
    { "Q4_0", UINT64_C(0x04541dd8911557a2), UINT64_C(0x0f68cb5960590d0d) },
    { "Q4_1", UINT64_C(0x3f6491ce999e4763), UINT64_C(0x6ee550ac002ee45a) },
    { "Q5_0", UINT64_C(0x03718ca3bdf92dcd), UINT64_C(0xf79acd040c871ce1) },
    { "Q5_1", UINT64_C(0x8aaa16f960663a82), UINT64_C(0xaf3182fa8763e622) },
    { "Q8_0", UINT64_C(0x7fc077bc4f1a8c6b), UINT64_C(0xbb335cffc9459f4a) },
    { "Q2_K", UINT64_C(0x5db5f768ca43f360), UINT64_C(0x867c9734c025eaf2) },
    { "Q3_K", UINT64_C(0x9dca5e06e61a8afa), UINT64_C(0x5005811f6cc7bcf0) },
    { "Q4_K", UINT64_C(0x45f1baed1a4cb7a3), UINT64_C(0x2b6cf21901e838f8) },
    { "Q5_K", UINT64_C(0x4a3c2ac9a7026b49), UINT64_C(0xd3d8e6346ba5f8dd) },
    { "Q6_K", UINT64_C(0x6d771532570505af), UINT64_C(0x80803cfee54dc473) },
    { "IQ2_XXS", UINT64_C(0x4af219e5cc457193), UINT64_C(0xa370d7c855a3dbf8) },
    { "IQ2_XS", UINT64_C(0x6c83b453577294f4), UINT64_C(0xf9b5df82e510009e) },
    { "IQ3_XXS", UINT64_C(0xf0d7f90c8e28ea91), UINT64_C(0xa1b408e97be5ed6c) },
    { "IQ1_S", UINT64_C(0x40f9935272e83adf), UINT64_C(0xb382ced0354dc8a2) },
    { "IQ4_NL", UINT64_C(0x52c101eb7b559ce7), UINT64_C(0x15737669a1f33b1e) },
    { "IQ3_S", UINT64_C(0xb8cddd9d210c86ac), UINT64_C(0x5ccc5d9f61b73427) },
    { "IQ2_S", UINT64_C(0xe279ccb192af0c29), UINT64_C(0xf74fbd927963137c) },
    { "IQ4_XS", UINT64_C(0x6a4d7fc656d166c6), UINT64_C(0x2455eb5731940bbd) },
    { "IQ1_M", UINT64_C(0xb959fcea2c82b93e), UINT64_C(0x332cf22239dd4332) },
    { "BF16", UINT64_C(0x98d8496f7981abdf), UINT64_C(0xa8e65a773fe6067c) },
    { "TQ1_0", UINT64_C(0xa15395b3c74de0b0), UINT64_C(0x3c2bfe4a2bc6e0eb) },
    { "TQ2_0", UINT64_C(0x7e51b83e45a0d614), UINT64_C(0x3c2bfe4a2bc6e0eb) },
    { "MXFP4", UINT64_C(0xfa91502a2a569c24), UINT64_C(0x73eeeb5f203b06f2) },
    { "NVFP4", UINT64_C(0x145273fd1d8ecfb7), UINT64_C(0x970fd1100993ae27) },
    { "Q1_0", UINT64_C(0xab4429c06c0bdb66), UINT64_C(0x19a8dec0a8454d11) },
    { "Q2_0", UINT64_C(0xe3dcc1a2af44154d), UINT64_C(0xa778185278386534) },
};

/* Digests of a type: of bytes and floats, in the order of the rows; 0:
 * missing. */
struct hashes {
    uint64_t bytes[N_DIST][N_WEIGHT], floats[N_DIST][N_WEIGHT];
};
static struct hashes golden[GG_N_DTYPES];
static bool has_golden;

/* ---- the numbers; golden/codec/README.md, "Bulk generator" ---- */

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

static float row_value(int dist, uint32_t column, uint64_t *s)
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

static const size_t rows_len[N_DIST] = { 1024, 512, 256, 1024, 2048, 768 };
static float rows_x[N_DIST][N_ROWS * 2048], rows_w[N_DIST][2][2048];

static void make_rows(void)
{
    uint64_t seed = UINT64_C(20260801) * 1000003;
    for (int d = 0; d < N_DIST; d++) {
        uint64_t s = seed + (uint64_t)d;
        for (size_t i = 0; i < N_ROWS * rows_len[d]; i++)
            rows_x[d][i] = row_value(d, (uint32_t)(i % rows_len[d]), &s);
        for (int k = 0; k < 2; k++) {
            s = seed + 100 + 10 * (uint64_t)d + (uint64_t)k + 1;
            for (size_t i = 0; i < rows_len[d]; i++) {
                uint64_t r = next64(&s);
                rows_w[d][k][i] = (float)(1 + (r >> 41)) * 0x1p-20f;
                if (k && !(r & 7))
                    rows_w[d][k][i] = 0;
            }
        }
    }
}

/* ---- digests ---- */

/* Replace the NaN that this processor makes in an invalid operation by the one
 * that x86-64 makes. */
static void name_nan(float *x, size_t n)
{
    static const volatile float zero = 0;
    uint32_t nan = gg_bytes_f32_bits(zero * (float)INFINITY);
    for (size_t i = 0; i < n; i++)
        if (gg_bytes_f32_bits(x[i]) == nan)
            x[i] = gg_bytes_f32_from_bits(0xffc00000);
}

/* Is a type encoded with importances of kind w? 0: without. */
static bool is_wanted(const struct gguf_dtype_info *t, unsigned flags, int w)
{
    return w ? t->block_len > 1 : !(flags & GG_CODEC_NEEDS_WEIGHT);
}

static uint64_t fold_digests(uint64_t h[N_DIST][N_WEIGHT])
{
    uint8_t b[N_DIST * N_WEIGHT * 8];
    size_t n = 0;
    for (int d = 0; d < N_DIST; d++)
        for (int w = 0; w < N_WEIGHT; w++)
            if (h[d][w])
                gg_bytes_store64le(b + 8 * n++, h[d][w]);
    return test_hash(b, 8 * n);
}

static const struct digests *find_type(int type)
{
    for (size_t i = 0; i < GG_LEN(known); i++)
        if (!strcmp(known[i].type, gg_dtype_by_index(type)->name))
            return &known[i];
    return NULL;
}

static void run_one(const struct gg_codec_kern *k, int d, int w,
                    const struct gguf_dtype_info *t, struct hashes *h)
{
    const size_t len = rows_len[d], n = N_ROWS * len;
    const size_t size =
        N_ROWS * (t->row_header + len / t->block_len * t->block_size);
    char *out = malloc(size);
    float *y = malloc(n * sizeof *y);
    if (!out || !y)
        abort();
    k->encode(rows_x[d], out, N_ROWS, len, w ? rows_w[d][w - 1] : NULL);
    k->decode(out, y, n);
    name_nan(y, n);
    h->bytes[d][w] = test_hash(out, size);
    h->floats[d][w] = test_hash_floats(y, n);
    free(out);
    free(y);
}

/* Does a codec give the digests? wrong: name of the first that differs, or "".
 */
static bool codec_right(int type, const struct gg_codec_kern *k,
                        char wrong[128])
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const struct digests *c = find_type(type);
    const struct hashes *g = &golden[type];
    struct hashes h;
    memset(&h, 0, sizeof h);
    *wrong = 0;
    for (int d = 0; d < N_DIST; d++)
        for (int w = 0; w < N_WEIGHT; w++) {
            if (!is_wanted(t, k->flags, w))
                continue;
            run_one(k, d, w, t, &h);
            if (has_golden && (h.bytes[d][w] != g->bytes[d][w] ||
                               h.floats[d][w] != g->floats[d][w]))
                snprintf(wrong, 128, "; differs: %d with importances %d", d,
                         w);
        }
    if (fold_digests(h.bytes) != c->bytes ||
        fold_digests(h.floats) != c->floats)
        snprintf(wrong + strlen(wrong), 128 - strlen(wrong),
                 "; another digest of %s",
                 fold_digests(h.bytes) != c->bytes ? "bytes" : "floats");
    return !*wrong;
}

/* ---- the table ---- */

/* Read a row of the table. false: it is for numbers that this test does not
 * make. */
static bool read_row(char **f)
{
    static const char *const weights[N_WEIGHT] = { "none", "pos", "zeros" };
    const struct gguf_dtype_info *info = gguf_dtype_find_name(f[0]);
    const int d = atoi(f[1]);
    int w = 0;
    while (w < N_WEIGHT && strcmp(weights[w], f[2]))
        w++;
    if (!info || d < 0 || d >= N_DIST || w == N_WEIGHT ||
        test_hash_floats(rows_x[d], N_ROWS * rows_len[d]) !=
            strtoull(f[6], NULL, 16))
        return false;
    struct hashes *h = &golden[gg_dtype_index(info->id)];
    h->bytes[d][w] = strtoull(f[8], NULL, 16);
    h->floats[d][w] = strtoull(f[10], NULL, 16);
    return true;
}

static bool read_table(char *text)
{
    for (char *p = text ? strchr(text, '\n') + 1 : NULL, *next; p && *p;
         p = next) {
        char *f[11];
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        if (test_fields(p, f, 11) != 11 || !read_row(f)) {
            printf("# bulk.tsv: row of %s\n", p);
            return false;
        }
    }
    return text != NULL;
}

/* Do the digests in this file agree with the table? */
static bool table_agrees(void)
{
    bool agrees = true;
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct digests *c = find_type(i);
        const bool there = golden[i].bytes[0][1] || golden[i].bytes[0][0];
        const bool same = c ? there &&
                                  fold_digests(golden[i].bytes) == c->bytes &&
                                  fold_digests(golden[i].floats) == c->floats
                            : !there;
        if (!same)
            printf("# %s\n", gg_dtype_by_index(i)->name);
        agrees &= same;
    }
    return agrees;
}

/* Print the table's digests in the form of this file. */
static void print_digests(void)
{
    for (int i = 0; i < GG_N_DTYPES; i++)
        if (golden[i].bytes[0][1] || golden[i].bytes[0][0])
            printf("    { \"%s\", UINT64_C(0x%016" PRIx64 "),\n"
                   "      UINT64_C(0x%016" PRIx64 ") },\n",
                   gg_dtype_by_index(i)->name, fold_digests(golden[i].bytes),
                   fold_digests(golden[i].floats));
}

int main(int argc, char **argv)
{
    char *text = slurp(shared_path("golden/codec/bulk.tsv"), NULL);
    make_rows();
    has_golden = read_table(text);
    free(text);
    if (argc > 1 && !strcmp(argv[1], "--print")) {
        print_digests();
        return !has_golden;
    }
    if (has_golden)
        ok(table_agrees(), "the digests are those of ../shared");
    struct test_level level[8];
    const unsigned n = test_levels(level);
    for (unsigned i = 0; i < n; i++) {
        static struct gg_kern k;
        gg_kern_init(&k, level[i].mask);
        for (int t = 0; t < GG_N_DTYPES; t++) {
            char wrong[128];
            if (find_type(t))
                ok(codec_right(t, &k.codec[t], wrong),
                   "%s %s: 32 rows of each distribution%s", level[i].name,
                   gg_dtype_by_index(t)->name, wrong);
        }
    }
    return done_testing();
}
