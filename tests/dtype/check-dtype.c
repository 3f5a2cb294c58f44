/* SPDX-License-Identifier: MIT */
/* check-dtype.c - the table of types, and half floats */
#include "config.h"
#include "base/compiler.h"
#include "dtype/dtype_int.h"
#include "dtype/f16.h"
#include "tests/tap.h"

#include <math.h>

/* id, elements and bytes of a block, and bytes of a row header, as ggml and
 * ik_llama.cpp have them. Independent of the structs from which the table
 * takes its sizes. */
static const struct {
    uint32_t id, len, size;
    const char *name;
    uint32_t row_header;
} known[] = {
    /* clang-format off */
    { 0, 1, 4, "F32", 0 },       { 1, 1, 2, "F16", 0 },
    { 2, 32, 18, "Q4_0", 0 },    { 3, 32, 20, "Q4_1", 0 },
    { 6, 32, 22, "Q5_0", 0 },    { 7, 32, 24, "Q5_1", 0 },
    { 8, 32, 34, "Q8_0", 0 },    { 9, 32, 36, "Q8_1", 0 },
    { 10, 256, 84, "Q2_K", 0 },  { 11, 256, 110, "Q3_K", 0 },
    { 12, 256, 144, "Q4_K", 0 }, { 13, 256, 176, "Q5_K", 0 },
    { 14, 256, 210, "Q6_K", 0 }, { 15, 256, 292, "Q8_K", 0 },
    { 16, 256, 66, "IQ2_XXS", 0 }, { 17, 256, 74, "IQ2_XS", 0 },
    { 18, 256, 98, "IQ3_XXS", 0 }, { 19, 256, 50, "IQ1_S", 0 },
    { 20, 32, 18, "IQ4_NL", 0 }, { 21, 256, 110, "IQ3_S", 0 },
    { 22, 256, 82, "IQ2_S", 0 }, { 23, 256, 136, "IQ4_XS", 0 },
    { 24, 1, 1, "I8", 0 },       { 25, 1, 2, "I16", 0 },
    { 26, 1, 4, "I32", 0 },      { 27, 1, 8, "I64", 0 },
    { 28, 1, 8, "F64", 0 },      { 29, 256, 56, "IQ1_M", 0 },
    { 30, 1, 2, "BF16", 0 },     { 34, 256, 54, "TQ1_0", 0 },
    { 35, 256, 66, "TQ2_0", 0 }, { 39, 32, 17, "MXFP4", 0 },
    { 40, 64, 36, "NVFP4", 0 },  { 41, 128, 18, "Q1_0", 0 },
    { 42, 64, 18, "Q2_0", 0 },   { 43, 1, 1, "F8_E4M3", 0 },
    { 133, 32, 26, "Q6_0", 0 },
    { 134, 64, 13, "IQ1_BN", 2 }, { 135, 64, 16, "IQ2_BN", 4 },
    { 137, 256, 76, "IQ2_K", 0 }, { 138, 256, 110, "IQ3_K", 0 },
    { 139, 256, 144, "IQ4_K", 0 }, { 140, 256, 176, "IQ5_K", 0 },
    { 141, 256, 212, "IQ6_K", 0 }, { 144, 256, 136, "IQ4_KS", 4 },
    { 145, 256, 70, "IQ2_KS", 2 }, { 146, 256, 128, "IQ4_KSS", 4 },
    { 151, 32, 32, "Q8_KV", 8 }, { 152, 256, 168, "IQ5_KS", 4 },
    { 153, 256, 68, "IQ2_KT", 4 }, { 154, 256, 100, "IQ3_KT", 4 },
    { 155, 256, 128, "IQ4_KT", 4 }, { 156, 256, 102, "IQ3_KS", 2 },
    { 157, 256, 86, "IQ2_KL", 2 }, { 158, 256, 56, "IQ1_KT", 4 },
    { 202, 32, 18, "Q4_0_R8", 0 }, { 206, 32, 22, "Q5_0_R4", 0 },
    { 208, 32, 34, "Q8_0_R8", 0 }, { 210, 256, 84, "Q2_K_R4", 0 },
    { 211, 256, 110, "Q3_K_R4", 0 }, { 212, 256, 144, "Q4_K_R4", 0 },
    { 213, 256, 176, "Q5_K_R4", 0 }, { 214, 256, 210, "Q6_K_R4", 0 },
    { 216, 256, 66, "IQ2_XXS_R4", 0 }, { 217, 256, 74, "IQ2_XS_R4", 0 },
    { 218, 256, 98, "IQ3_XXS_R4", 0 }, { 219, 32, 6, "IQ1_S_R4", 2 },
    { 220, 32, 18, "IQ4_NL_R4", 0 }, { 221, 256, 110, "IQ3_S_R4", 0 },
    { 222, 256, 82, "IQ2_S_R4", 0 }, { 223, 256, 136, "IQ4_XS_R8", 0 },
    { 229, 32, 7, "IQ1_M_R4", 2 }, { 230, 2, 4, "BF16_R16", 0 },
    { 233, 32, 26, "Q6_0_R4", 0 }, { 335, 64, 16, "IQ2_BN_R4", 4 },
    { 337, 256, 76, "IQ2_K_R4", 0 }, { 338, 256, 110, "IQ3_K_R4", 0 },
    { 339, 256, 144, "IQ4_K_R4", 0 }, { 340, 256, 176, "IQ5_K_R4", 0 },
    { 344, 256, 136, "IQ4_KS_R4", 4 }, { 352, 256, 168, "IQ5_KS_R4", 4 },
    { 353, 32, 17, "MXFP4_R8", 0 }, { 397, 256, 258, "Q8_K_R16", 0 },
    { 398, 32, 32, "Q8_KV_R8", 4 }, { 399, 256, 258, "Q8_K_R8", 0 },
    /* clang-format on */
};

static void check_table(void)
{
    int bad = 0;
    for (size_t i = 0; i < GG_LEN(known); i++) {
        const struct gguf_dtype_info *t = gguf_dtype_find(known[i].id);
        if (!t || t->block_len != known[i].len ||
            t->block_size != known[i].size ||
            t->row_header != known[i].row_header ||
            strcmp(t->name, known[i].name) ||
            gguf_dtype_find_name(known[i].name) != t) {
            printf("# id %u\n", known[i].id);
            bad++;
        }
    }
    ok(!bad && !gguf_dtype_at(GG_LEN(known)), "ids, names and sizes");
    for (size_t i = 0; gguf_dtype_at(i); i++) {
        const struct gguf_dtype_info *t = gguf_dtype_at(i);
        bad += gg_dtype_index(t->id) != (int)i ||
               (i && gguf_dtype_at(i - 1)->id >= t->id);
    }
    ok(!bad, "rows ascend by id");
    ok(gguf_dtype_find(4)->family == GGUF_FAMILY_REMOVED &&
           gg_dtype_index(4) == -1,
       "removed ids are known as such");
    ok(!gguf_dtype_find(44) && !gguf_dtype_find(UINT32_MAX), "unknown ids");
    ok(gguf_dtype_find_name("q4_k") == gguf_dtype_find(12), "case of names");
}

static void check_row_size(void)
{
    struct gguf_error e;
    uint64_t n = 0;
    ok(!gguf_dtype_row_size(12, 512, &n, &e) && n == 288, "512 of Q4_K");
    ok(!gguf_dtype_row_size(144, 256, &n, &e) && n == 140,
       "row headers count");
    ok(gguf_dtype_row_size(12, 300, &n, &e) == GGUF_E_SHAPE, "%s", e.message);
    ok(gguf_dtype_row_size(5, 32, &n, &e) == GGUF_E_UNSUPPORTED, "%s",
       e.message);
    ok(gguf_dtype_row_size(99, 32, &n, &e) == GGUF_E_UNSUPPORTED, "%s",
       e.message);
    ok(gguf_dtype_row_size(0, UINT64_C(1) << 62, &n, &e) == GGUF_E_OVERFLOW,
       "%s", e.message);
}

/* Value of a half by its definition (IEEE 754-2019, 3.4). */
static double half_value(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    if (e == 31)
        v = m ? (double)NAN : (double)INFINITY;
    return h >> 15 ? -v : v;
}

static void check_f16(void)
{
    int bad = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = gg_dtype_f16_to_f32((uint16_t)h);
        double want = half_value((uint16_t)h);
        bad += isnan(want) ? !isnan(f) : (double)f != want;
        if (!isnan(want))
            bad += gg_dtype_f32_to_f16(f) != h;
    }
    ok(!bad, "all 65536 halves survive the way to float and back");

    /* between two neighbours: below, at and above the middle */
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double lo = half_value((uint16_t)h),
               hi = half_value((uint16_t)(h + 1));
        float mid = (float)((lo + hi) / 2); /* exact: 12 bits */
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        bad += gg_dtype_f32_to_f16(mid) != even;
        bad += gg_dtype_f32_to_f16(nextafterf(mid, 0)) != h;
        bad += gg_dtype_f32_to_f16(nextafterf(mid, 1e9f)) != h + 1;
        bad += gg_dtype_f32_to_f16(-mid) != (even | 0x8000);
    }
    ok(!bad, "rounding is to nearest, ties to even");
    ok(gg_dtype_f32_to_f16(65519.996f) == 0x7bff &&
           gg_dtype_f32_to_f16(65520.0f) == 0x7c00,
       "overflow starts at 65520");
    ok(gg_dtype_f32_to_f16(INFINITY) == 0x7c00 &&
           gg_dtype_f32_to_f16(-INFINITY) == 0xfc00,
       "infinities");
    ok((gg_dtype_f32_to_f16(NAN) & 0x7fff) > 0x7c00, "NaN stays NaN");
}

static void check_bf16(void)
{
    int bad = 0;
    for (uint32_t b = 0; b < 65536; b++) {
        float f = gg_dtype_bf16_to_f32((uint16_t)b);
        if (!isnan(f))
            bad += gg_dtype_f32_to_bf16(f) != b;
    }
    ok(!bad, "all bf16 survive");
    ok(gg_dtype_f32_to_bf16(gg_bytes_f32_from_bits(0x3f808000)) == 0x3f80 &&
           gg_dtype_f32_to_bf16(gg_bytes_f32_from_bits(0x3f818000)) ==
               0x3f82 &&
           gg_dtype_f32_to_bf16(gg_bytes_f32_from_bits(0x3f808001)) == 0x3f81,
       "ties to even");
    ok((gg_dtype_f32_to_bf16(gg_bytes_f32_from_bits(0x7f800001)) & 0x7fff) >
           0x7f80,
       "a NaN with a low payload stays NaN");
}

int main(void)
{
    check_table();
    check_row_size();
    check_f16();
    check_bf16();
    return done_testing();
}
