/* SPDX-License-Identifier: MIT */
/* check-codec-digest.c - encoders give the same bytes for awkward rows in
 * every build
 *
 *   check-codec-digest [--print]
 *
 * The inputs are integers times powers of two, so that every compiler makes
 * the same floats. Compilers, options and instruction sets must not change a
 * bit. The digests are those of ggml_quantize_chunk (commit d99724f, gcc 12,
 * plain x86-64, no contraction; for Q8_1 and Q8_K of quantize_row_*_ref) on
 * the same rows; F64 is not one of ggml's types. check-fork-encode compares the
 * bytes of ik_llama.cpp's types. Codebook types have tame rows only, since ggml
 * aborts if a sum overflows. --print prints the table for this build.
 * check-bulk-codec has usual rows.
 */
#include "config.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"
#include "dtype/f16.h"

#include <math.h>

/* Kinds of rows, the first N_TAME tame ones, and kinds of importances. Every
 * pair is encoded. */
enum { AWK_ROW = 512, N_KIND = 20, N_TAME = 14, N_WEIGHT = 8 };

static const struct expected {
    const char *type;
    uint64_t plain, weighted; /* 0: not tested */
} expected[] = {
    { "F32", UINT64_C(0x38b691bef801698c), UINT64_C(0x0000000000000000) },
    { "F16", UINT64_C(0xac7f80c8a95f9f5d), UINT64_C(0x0000000000000000) },
    { "Q4_0", UINT64_C(0x80c20f744611551c), UINT64_C(0xdf192931587afd27) },
    { "Q4_1", UINT64_C(0xfcdb7bf21fa73a06), UINT64_C(0x4e64007949454526) },
    { "Q5_0", UINT64_C(0x44c42960fbc6b7ad), UINT64_C(0x211303bda8449c43) },
    { "Q5_1", UINT64_C(0x9ddac2125068d3ca), UINT64_C(0xc08c74f2331ccb6e) },
    { "Q8_0", UINT64_C(0x3b46c1e881f39a44), UINT64_C(0x0000000000000000) },
    { "Q8_1", UINT64_C(0xa0bd208de999bd3b), UINT64_C(0x0000000000000000) },
    { "Q2_K", UINT64_C(0xe9138a0aec50322a), UINT64_C(0x778df5dd5cae0be3) },
    { "Q3_K", UINT64_C(0xe239aa65792e4920), UINT64_C(0x04f9757729666cd8) },
    { "Q4_K", UINT64_C(0x96cb7a3089e69535), UINT64_C(0x26c120ef6dbb8170) },
    { "Q5_K", UINT64_C(0x4e4fcbc5736be201), UINT64_C(0xf798c5e6092ee2f8) },
    { "Q6_K", UINT64_C(0x8cd54a8f57a82438), UINT64_C(0xbf8bedaa9e5f825c) },
    { "Q8_K", UINT64_C(0x865b236fb8893599), UINT64_C(0x0000000000000000) },
    { "IQ2_XXS", UINT64_C(0x0000000000000000), UINT64_C(0x9e71968d81355e33) },
    { "IQ2_XS", UINT64_C(0x0000000000000000), UINT64_C(0x9f83ce1e6516cde5) },
    { "IQ3_XXS", UINT64_C(0xd306b3399dad6dc6), UINT64_C(0x63900dbf2ff0a5b9) },
    { "IQ1_S", UINT64_C(0x0000000000000000), UINT64_C(0xa9d0f645fb10d513) },
    { "IQ4_NL", UINT64_C(0x95f97fc402395fd5), UINT64_C(0x0b39f3a5a7d56f60) },
    { "IQ3_S", UINT64_C(0xc41ac9140f9efb94), UINT64_C(0xad7e5a50648d5c67) },
    { "IQ2_S", UINT64_C(0x36504d6e9f0370b9), UINT64_C(0xd460c1063432c310) },
    { "IQ4_XS", UINT64_C(0x6e917bf977cd5cc9), UINT64_C(0xdd32b613a54ce9a0) },
    { "F64", UINT64_C(0xd29bd35f3cf5a2ad), UINT64_C(0x0000000000000000) },
    { "IQ1_M", UINT64_C(0xc790e5f5cef324e0), UINT64_C(0x16185c4957875308) },
    { "BF16", UINT64_C(0x4c863de6c7959cef), UINT64_C(0x0000000000000000) },
    { "TQ1_0", UINT64_C(0x70901171f895e987), UINT64_C(0x0000000000000000) },
    { "TQ2_0", UINT64_C(0xc31a6fcf28fca2e0), UINT64_C(0x0000000000000000) },
    { "MXFP4", UINT64_C(0xa56be569599f1db6), UINT64_C(0x0000000000000000) },
    { "NVFP4", UINT64_C(0x51e01a26a18b7394), UINT64_C(0x0000000000000000) },
    { "Q1_0", UINT64_C(0x9994abe6af814e9b), UINT64_C(0x0000000000000000) },
    { "Q2_0", UINT64_C(0xabeaece2e8071b56), UINT64_C(0x0000000000000000) },
    /* own digest; tests/dtype/check-f8 has the definition */
    { "F8_E4M3", UINT64_C(0x908b7cd8d29f212d), UINT64_C(0x0000000000000000) },
    { "IQ1_BN", UINT64_C(0x1fbd54cbc53478e6), UINT64_C(0x0000000000000000) },
    { "IQ2_BN", UINT64_C(0xe2182d7bd48fba76), UINT64_C(0x0000000000000000) },
    { "Q8_KV", UINT64_C(0xfd0399f7e7db1d21), UINT64_C(0x0000000000000000) },
    { "IQ2_KL", UINT64_C(0x669655895701b503), UINT64_C(0x470bebb0a6f678bf) },
    { "Q6_0", UINT64_C(0x94c4a1cde2ce24cd), UINT64_C(0x78e798883d68a22b) },
    { "IQ2_K", UINT64_C(0x281f6e2918b5ea28), UINT64_C(0x456b0600cfc29c17) },
    { "IQ3_K", UINT64_C(0x9772578a22d7683c), UINT64_C(0x90d5918debfd5044) },
    { "IQ4_K", UINT64_C(0xbfe63de4e2199a94), UINT64_C(0x7544858702960bf4) },
    { "IQ5_K", UINT64_C(0x4c530d716572bac6), UINT64_C(0xcb6fddec9d6fd92d) },
    { "IQ6_K", UINT64_C(0x4b0a293e6d5e6b97), UINT64_C(0x7f60bc223ebbdb1b) },
    { "IQ4_KS", UINT64_C(0x37f24578dc1b8991), UINT64_C(0xa38932d7bc145013) },
    { "IQ2_KS", UINT64_C(0x9d1d48f1867f35ec), UINT64_C(0xa3c559f686b6167c) },
    { "IQ4_KSS", UINT64_C(0xad09dc04c6cb1c12), UINT64_C(0xfe74690d796b4ad0) },
    { "IQ5_KS", UINT64_C(0xa8764b8066ddc06a), UINT64_C(0xefd576ae434722c9) },
    { "IQ3_KS", UINT64_C(0x4fd5d1a1cfb6d858), UINT64_C(0xc095787b063dbc78) },
};

static uint64_t state;
static unsigned char out[AWK_ROW * sizeof(double) + 64];

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t rnd(void)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A number of 24 bits with a nearly normal distribution. */
static int32_t bell(void)
{
    int32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int32_t)(rnd() >> 42) - (1 << 21);
    return sum;
}

/* One element; c is a constant of the row. */
static float awkward_element(int kind, int i, float c)
{
    uint32_t sign = (uint32_t)(rnd() & 1) << 31, bits = (uint32_t)rnd();
    float v = (float)bell() * 0x1p-26f;
    switch (kind) {
    case 0: return v;
    case 1: /* all equal */ return c;
    case 2: /* zeros of both signs */ return gg_bytes_f32_from_bits(sign);
    case 3: /* far from zero: rounding decides between fits */
        return 724 + v * 8;
    case 4: /* alternating */ return i & 1 ? -fabsf(v) : fabsf(v);
    case 5: /* sorted */ return (float)(i - 100) * 0x1p-9f;
    case 6: /* one outlier */ return i % 256 == 77 ? 0x1p9f : v * 0x1p-9f;
    case 7: /* few values */ return (float)(int)(bits % 5) * c - c;
    case 8: /* ties of halves and brain floats */
        bits = bits & 1 ? (bits & 0xffe000) + 0x3f001000
                        : (bits & 0xff0000) + 0x3f008000;
        return gg_bytes_f32_from_bits(sign | bits);
    case 9: /* ties of four-bit floats */
        return (float)((int)(bits % 25) - 12) * 0.25f;
    case 10: /* powers of two, and just below */
        return gg_bytes_f32_from_bits(0x3f800000 + (bits % 9 << 23) -
                                      (bits >> 31));
    case 11: /* a scale for each 16 numbers */
        return i / 16 % 2 ? v : v * 0x1p-24f;
    case 12: /* ramps, one sign */ return (float)(i % 64) * -0x1p-5f;
    case 13: return bits % 20 ? 0 : v;
    case 14: /* subnormal */
        return gg_bytes_f32_from_bits(sign | (bits & 0x7fffff));
    case 15: /* the smallest */
        return gg_bytes_f32_from_bits(sign | bits % 12);
    case 16: /* every exponent */
        return gg_bytes_f32_from_bits(sign | (bits >> 8) % 0x7f000000);
    case 17: /* the largest */
        return gg_bytes_f32_from_bits(sign | (0x7f7fffff - bits % 200));
    case 18: /* squares overflow */ return v * 0x1p70f;
    default: /* below and above the threshold for zero */
        return (float)(int)(bits % 9) * c * 0x1p-52f;
    }
}

static float awkward_weight(int kind, int i)
{
    float v = (float)(1 + (rnd() >> 44)) * 0x1p-20f;
    uint32_t bits = (uint32_t)rnd();
    switch (kind) {
    case 0: return v;
    case 1: /* a fifth is zero */ return bits % 5 ? v : 0;
    case 2: /* one in 64: rounding alone decides the fit */
        return i % 64 == 44 ? v : 0;
    case 3: /* spiky */ return i % 32 != 12 ? v * 0x1p-10f : v * 0x1p12f;
    case 4: return v * 0x1p-100f;
    case 5: return v * 0x1p40f;
    case 6: return 3.25f;
    default: /* dead blocks */ return i / 64 % 3 ? v : 0;
    }
}

/* Number of rows for a kind of importances. Kinds where rounding decides have
 * more: they show how an encoder handles a negative scale. */
static int n_awkward(int codebook, int by)
{
    return !codebook && (by == 2 || by == 3) ? 8 : 1;
}

/* Digest of rows of all kinds with importances of each kind; wanted 0: without
 * importances, with the same number of rows. */
static uint64_t digest_rows(const struct gg_codec_kern *k,
                            const struct gguf_dtype_info *t, int wanted)
{
    static float x[AWK_ROW], w[AWK_ROW];
    int codebook = !strncmp(t->name, "IQ", 2);
    size_t size = t->row_header + AWK_ROW / t->block_len * t->block_size;
    uint64_t hash = 0;
    state = 8;
    for (int r = 0; r < (codebook ? N_TAME : N_KIND) * N_WEIGHT; r++)
        for (int n = n_awkward(codebook, r % N_WEIGHT); n > 0; n--) {
            float c = (float)bell() * 0x1p-25f;
            for (int i = 0; i < AWK_ROW; i++) {
                x[i] = awkward_element(r / N_WEIGHT, i, c);
                w[i] = awkward_weight(r % N_WEIGHT, i);
            }
            k->encode(x, out, 1, AWK_ROW, wanted ? w : NULL);
            gg_bytes_store64le(out + size, hash);
            hash = test_hash(out, size + 8);
        }
    return hash;
}

static struct expected digests_of(const struct gg_codec_kern *k,
                                  const struct gguf_dtype_info *t)
{
    struct expected e = { t->name, 0, 0 };
    if (!(k->flags & GG_CODEC_NEEDS_WEIGHT))
        e.plain = digest_rows(k, t, 0);
    if (k->flags & GG_CODEC_WEIGHT)
        e.weighted = digest_rows(k, t, 1);
    return e;
}

static int as_expected(const struct expected *e)
{
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strcmp(expected[i].type, e->type))
            return expected[i].plain == e->plain &&
                   expected[i].weighted == e->weighted;
    return 0;
}

static void print_row(const struct expected *e)
{
    printf("    { \"%s\", UINT64_C(0x%016llx), UINT64_C(0x%016llx) },\n",
           e->type, (unsigned long long)e->plain,
           (unsigned long long)e->weighted);
}

int main(int argc, char **argv)
{
    int print = argc > 1 && !strcmp(argv[1], "--print");
    struct test_level level[8];
    unsigned n = test_levels(level);
    static struct gg_kern k;
    for (unsigned l = 0; l < (print ? 1 : n); l++) {
        gg_kern_init(&k, level[l].mask);
        for (int i = 0; i < GG_N_DTYPES; i++) {
            const struct gguf_dtype_info *t = gg_dtype_by_index(i);
            /* The search for trellis types is slow: check-fork-encode. */
            if (!k.codec[i].encode || strstr(t->name, "_KT"))
                continue;
            struct expected e = digests_of(&k.codec[i], t);
            if (print)
                print_row(&e);
            else
                ok(as_expected(&e), "%s %s", level[l].name, t->name);
        }
    }
    return print ? 0 : done_testing();
}
