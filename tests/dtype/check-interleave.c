/* SPDX-License-Identifier: MIT */
/* check-interleave.c - rows go into groups and come out again, bit for bit
 *
 *   check-interleave [--print]
 *
 * The digests are those of groups of random rows, by a version that turned all
 * of ik_llama.cpp's plain rows in golden/ik/codec into its groups. Places of
 * some types are computed again from the formulas of its layouts. --print
 * prints the table of digests.
 */
#include "config.h"
#include "base/compiler.h"
#include "dtype/interleave.h"
#include "kern/codec.h"
#include "tests/tap.h"

#include <math.h>
#include <xxhash.h>

enum { BLOCKS = 3, MOST = 16 * (8 + BLOCKS * 300) };

static const struct {
    const char *type, *plain;
    uint64_t digest;
} want[] = {
    { "Q4_0_R8", "Q4_0", UINT64_C(0x80498a84bf15bb21) },
    { "Q5_0_R4", "Q5_0", UINT64_C(0x407fa1deea67be1f) },
    { "Q8_0_R8", "Q8_0", UINT64_C(0xcd090c57742ac701) },
    { "Q2_K_R4", "Q2_K", UINT64_C(0xb0735b121fd36aae) },
    { "Q3_K_R4", "Q3_K", UINT64_C(0x5951fe21bb547aaa) },
    { "Q4_K_R4", "Q4_K", UINT64_C(0x5a4c5872fbffb070) },
    { "Q5_K_R4", "Q5_K", UINT64_C(0xf7f597e8cdb3f07a) },
    { "Q6_K_R4", "Q6_K", UINT64_C(0xf4755a183f61eca2) },
    { "IQ2_XXS_R4", "IQ2_XXS", UINT64_C(0xd34660c68cf6d76d) },
    { "IQ2_XS_R4", "IQ2_XS", UINT64_C(0x51557b927b431592) },
    { "IQ3_XXS_R4", "IQ3_XXS", UINT64_C(0x222b3e7c61f3a976) },
    { "IQ4_NL_R4", "IQ4_NL", UINT64_C(0xe2b6d1e4d29bbcab) },
    { "IQ3_S_R4", "IQ3_S", UINT64_C(0x105da7b09a8e2e80) },
    { "IQ2_S_R4", "IQ2_S", UINT64_C(0x20dfd4e781881538) },
    { "IQ4_XS_R8", "IQ4_XS", UINT64_C(0xbcc75de00bbc0a85) },
    { "BF16_R16", "BF16", UINT64_C(0xd5afdbeb65fc66ab) },
    { "Q6_0_R4", "Q6_0", UINT64_C(0xd5f2182c619ce5f3) },
    { "IQ2_BN_R4", "IQ2_BN", UINT64_C(0xf4120b72b13d5ef6) },
    { "IQ2_K_R4", "IQ2_K", UINT64_C(0xd11758184f2995eb) },
    { "IQ3_K_R4", "IQ3_K", UINT64_C(0xdb15f271d553923a) },
    { "IQ4_K_R4", "IQ4_K", UINT64_C(0xff00434b676310be) },
    { "IQ5_K_R4", "IQ5_K", UINT64_C(0x82bc119e7da3895d) },
    { "IQ4_KS_R4", "IQ4_KS", UINT64_C(0x989c14c1988cbde1) },
    { "IQ5_KS_R4", "IQ5_KS", UINT64_C(0x2b20cc8d65f89207) },
    { "MXFP4_R8", "MXFP4", UINT64_C(0x50dedb70e62c0e7c) },
    { "Q8_KV_R8", "Q8_KV", UINT64_C(0x8271a81dfb289b5c) },
};

static uint64_t state;

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t draw_bits(void)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

struct rows {
    int type, plain;
    unsigned n;
    uint64_t ne0;
    size_t plain_row, group_size;
    uint8_t apart[MOST], group[MOST], back[MOST];
};

static void make_rows(struct rows *r, int type)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type), *p;
    r->type = type;
    r->plain = gg_interleave_plain(type);
    p = gg_dtype_by_index(r->plain);
    r->n = gg_interleave_rows(type);
    r->ne0 = (uint64_t)BLOCKS * gg_interleave_unit(type);
    r->plain_row =
        p->row_header + (size_t)(r->ne0 / p->block_len) * p->block_size;
    r->group_size = r->n * (t->row_header +
                            (size_t)(r->ne0 / t->block_len) * t->block_size);
    state = t->id;
    for (size_t i = 0; i < sizeof r->apart; i++)
        r->apart[i] = (uint8_t)(draw_bits() >> 56);
    /* groups of Q8_KV omit the sum of the codes */
    for (unsigned k = 0; r->plain == GG_DT_Q8_KV && k < r->n; k++) {
        uint8_t *row = r->apart + k * r->plain_row;
        int sum = 0;
        for (uint64_t i = 0; i < r->ne0; i++)
            sum += row[8 + i] < 128 ? row[8 + i] : row[8 + i] - 256;
        for (unsigned b = 0; b < 4; b++)
            row[4 + b] = (uint8_t)((unsigned)sum >> 8 * b);
    }
}

/* Take all rows out, each in parts of one block. */
static bool parts_are_same(struct rows *r)
{
    const struct gguf_dtype_info *p = gg_dtype_by_index(r->plain);
    const uint64_t unit = gg_interleave_unit(r->type);
    const size_t size = (size_t)(unit / p->block_len * p->block_size);
    uint8_t part[8 + 512];
    for (unsigned k = 0; k < r->n; k++)
        for (uint64_t b = 0; b < BLOCKS; b++) {
            const uint8_t *row = r->apart + k * r->plain_row;
            gg_interleave_take(r->type, r->group, k, b * unit, unit, part);
            const bool header =
                r->plain == GG_DT_Q8_KV || !memcmp(part, row, p->row_header);
            if (!header || memcmp(part + p->row_header,
                                  row + p->row_header + b * size, size) != 0)
                return false;
        }
    return true;
}

static void check_type(int type, bool print)
{
    static struct rows r;
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    make_rows(&r, type);
    if (!gg_interleave_has_put(type)) {
        if (print)
            printf("    { \"%s\", \"%s\", 0 },\n", t->name,
                   gg_dtype_by_index(r.plain)->name);
        return;
    }
    memset(r.group, 0xaa, sizeof r.group);
    gg_interleave_put(type, r.group, r.ne0, r.apart);
    const uint64_t digest = XXH64(r.group, r.group_size, 0);
    if (print) {
        printf("    { \"%s\", \"%s\", UINT64_C(0x%016llx) },\n", t->name,
               gg_dtype_by_index(r.plain)->name, (unsigned long long)digest);
        return;
    }
    size_t i = 0;
    while (i < sizeof want / sizeof *want && strcmp(want[i].type, t->name))
        i++;
    ok(i < sizeof want / sizeof *want && want[i].digest == digest &&
           !strcmp(want[i].plain, gg_dtype_by_index(r.plain)->name) &&
           gg_interleave_of(r.plain) == type,
       "%s: the group has the recorded digest", t->name);
    ok(r.group[r.group_size] == 0xaa, "%s: and ends there", t->name);
    for (unsigned k = 0; k < r.n; k++)
        gg_interleave_take(type, r.group, k, 0, r.ne0,
                           r.back + k * r.plain_row);
    ok(!memcmp(r.apart, r.back, r.n * r.plain_row) && parts_are_same(&r),
       "%s: rows come back, whole and in parts", t->name);
}

/* ---- places by formulas ---- */

/* Bit b of the low or high nibble of column c of a row of a block of 32. */
static unsigned nibble32(const uint8_t *qs, unsigned c)
{
    return qs[c % 16] >> (c < 16 ? 0 : 4) & 15;
}

static void check_iq4_nl(void)
{
    static struct rows r;
    bool good = true;
    make_rows(&r, GG_DT_IQ4_NL_R4);
    gg_interleave_put(r.type, r.group, r.ne0, r.apart);
    /* byte 16 g + 4 k + i has columns f + i and f + i + 8 of row k, where f is
     * 0, 16, 4, 20 */
    static const unsigned first[] = { 0, 16, 4, 20 };
    for (unsigned b = 0; b < BLOCKS; b++)
        for (unsigned k = 0; k < 4; k++) {
            const uint8_t *row = r.apart + k * r.plain_row + 18 * b;
            const uint8_t *group = r.group + 72 * b;
            good = good && !memcmp(row, group + 2 * k, 2);
            for (unsigned g = 0; g < 4; g++)
                for (unsigned i = 0; i < 4; i++)
                    good =
                        good && group[8 + 16 * g + 4 * k + i] ==
                                    (nibble32(row + 2, first[g] + i) |
                                     nibble32(row + 2, first[g] + i + 8) << 4);
        }
    ok(good, "IQ4_NL_R4: nibbles are where the layout has them");
}

/* Signs: the group has the number whose Gray code the eight signs are. */
static void check_iq2_xxs(void)
{
    static struct rows r;
    bool good = true;
    make_rows(&r, GG_DT_IQ2_XXS_R4);
    gg_interleave_put(r.type, r.group, r.ne0, r.apart);
    for (unsigned s = 0; s < 8 * BLOCKS; s++)
        for (unsigned k = 0; k < 4; k++) {
            const unsigned b = s % 8;
            const uint8_t *row = r.apart + k * r.plain_row + s / 8 * 66;
            const uint8_t *group = r.group + s / 8 * 264;
            const uint8_t *q = row + 2 + 8 * b;
            const uint32_t v = q[4] | (uint32_t)q[5] << 8 |
                               (uint32_t)q[6] << 16 | (uint32_t)q[7] << 24;
            for (unsigned i = 0; i < 4; i++) {
                const unsigned sas = group[8 + 4 * (4 * b + k) + i];
                unsigned gray = (sas & 254) ^ (sas & 254) >> 1, n = 0;
                for (unsigned bit = 0; bit < 8; bit++)
                    n += gray >> bit & 1;
                good =
                    good && n % 2 == 0 && (gray & 127) == (v >> 7 * i & 127);
                good = good && (sas & 1) == (v >> (28 + i) & 1);
                good = good && group[136 + 16 * b + 4 * k + i] == q[i];
            }
        }
    ok(good, "IQ2_XXS_R4: signs are Gray codes beside bits of the scale");
}

/* Q8_K_R16 stores codes plus 128, Q8_K_R8 the codes. Both are read as Q8_0. */
static void check_q8_k(int type, unsigned flip)
{
    static struct rows r;
    bool good = true;
    make_rows(&r, type);
    memcpy(r.group, r.apart, r.group_size);
    for (unsigned k = 0; k < r.n; k++) {
        gg_interleave_take(type, r.group, k, 0, r.ne0, r.back);
        for (unsigned e = 0; e < r.ne0; e++) {
            const uint8_t *block = r.group + e / 256 * r.n * 258;
            const uint8_t *q8_0 = r.back + e / 32 * 34;
            const unsigned m = e % 256 / 4, i = e % 4;
            const unsigned q = block[2 * r.n + 4 * r.n * m + 4 * k + i];
            good = good && q8_0[2 + e % 32] == (q ^ flip) &&
                   !memcmp(q8_0, block + 2 * k, 2);
        }
    }
    ok(good && gg_interleave_plain(type) == GG_DT_Q8_0 &&
           !gg_interleave_has_put(type),
       "%s is read as Q8_0", gg_dtype_by_index(type)->name);
}

/* gcc 12 for AArch64 fails to compile this loop at -O2 within others. */
static double largest_of(const float w[256])
{
    float max = 0;
    for (unsigned j = 0; j < 256; j++)
        max = fabsf(w[j]) > max ? fabsf(w[j]) : max;
    return (double)max;
}

/* Rows of Q8_K_R8 and Q8_K_R16 from floats: of 256 weights w, the codes are
 * w * 127 / max to the nearest whole number, and the scale is max / 127. */
static void check_encode_q8_k(int type)
{
    enum { ROWS = 16, NE0 = 512, LEN = 272 };
    static float x[ROWS * NE0];
    static uint8_t apart[ROWS * NE0 / 256 * LEN], group[sizeof apart];
    static uint8_t back[NE0 / 256 * LEN];
    struct gg_codec_kern codec[GG_N_DTYPES];
    const unsigned rows = gg_interleave_rows(type);
    unsigned n_near = 0, n_scales = 0;
    gg_codec_kern_init(codec, 0);
    for (size_t i = 0; i < GG_LEN(x); i++)
        x[i] = (float)(int32_t)(uint32_t)draw_bits() * 0x1p-31f;
    codec[type].encode_apart(x, apart, rows, NE0, NULL);
    gg_interleave_put(type, group, NE0, apart);
    for (unsigned k = 0; k < rows; k++) {
        gg_interleave_take(type, group, k, 0, NE0, back);
        n_scales += !memcmp(back, apart + k * sizeof back, sizeof back);
        for (unsigned i = 0; i < NE0; i++) {
            const float *w = x + k * NE0 + i / 256 * 256;
            const uint8_t *b = back + i / 32 * 34;
            const double q = (int8_t)b[2 + i % 32], d = largest_of(w) / 127;
            /* 2^-11: the scale is an F16 */
            const double scale =
                ldexp(1 + (b[0] + b[1] % 4 * 256) / 1024.0, b[1] / 4 - 15);
            n_near += fabs(q - (double)w[i % 256] / d) <= 0.5001 &&
                      fabs(scale - d) <= d / 2048;
        }
    }
    ok(n_near == rows * NE0 && n_scales == rows,
       "%s: %u weights become the nearest codes",
       gg_dtype_by_index(type)->name, n_near);
}

int main(int argc, char **argv)
{
    const bool print = argc > 1 && !strcmp(argv[1], "--print");
    unsigned n = 0;
    for (int type = 0; type < GG_N_DTYPES; type++)
        if (gg_interleave_rows(type) > 1) {
            check_type(type, print);
            n++;
        }
    if (print)
        return 0;
    check_iq4_nl();
    check_iq2_xxs();
    check_q8_k(GG_DT_Q8_K_R8, 0);
    check_q8_k(GG_DT_Q8_K_R16, 128);
    check_encode_q8_k(GG_DT_Q8_K_R8);
    check_encode_q8_k(GG_DT_Q8_K_R16);
    ok(n == 30 && gg_interleave_rows(GG_DT_Q4_0) == 1 &&
           gg_interleave_plain(GG_DT_Q4_0) == GG_DT_Q4_0 &&
           gg_interleave_of(GG_DT_IQ4_KT) == -1,
       "%u types are interleaved, others are not", n);
    return done_testing();
}
