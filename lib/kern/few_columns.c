/* SPDX-License-Identifier: MIT */
/* few_columns.c - products of few columns: which kernels, the order of
 * activations */
#include "config.h"
#include "kern/few_columns.h"

#include "base/compiler.h"
#include "dtype/dtype_int.h"
#include "kern/cpu_features.h"

#include <string.h>

/* Most columns of a kernel: with more, panels are faster, as measured with AVX2
 * on a Zen 3, else on a Zen 5. */
#define MOST_16_256(A16, V16, A8, V8, Z)     A16
#define MOST_16_avxvnni(A16, V16, A8, V8, Z) V16
#define MOST_16_avx512(A16, V16, A8, V8, Z)  Z
#define MOST_16_vnni512(A16, V16, A8, V8, Z) Z
#define MOST_8_256(A16, V16, A8, V8, Z)      A8
#define MOST_8_avxvnni(A16, V16, A8, V8, Z)  V8
#define MOST_8_avx512(A16, V16, A8, V8, Z)   Z
#define MOST_8_vnni512(A16, V16, A8, V8, Z)  Z
#define MOST_8_dotprod(A16, V16, A8, V8, Z)  V8

/* clang-format off */
#define X(LEVEL, TYPE, NAME, KIND, N, SCALES, MINS, BIAS, BITS, ...) \
    [GG_DT_##TYPE] = { gg_kern_few8_##NAME##_##LEVEL, \
                       MOST_8_##LEVEL(__VA_ARGS__) },
#define Y(LEVEL, TYPE, NAME, KIND, N, SCALES, MINS, BIAS, BITS, ...) \
    [GG_DT_##TYPE] = { gg_kern_few16_##NAME##_##LEVEL, \
                       MOST_16_##LEVEL(__VA_ARGS__) },
#define ROWS_8(LEVEL, TYPES_8) \
    static const struct gg_kern_few_row few8_##LEVEL[GG_N_DTYPES] = { \
        TYPES_8(X, LEVEL) \
    };
#define ROWS(LEVEL, TYPES_8) \
    ROWS_8(LEVEL, TYPES_8) \
    static const struct gg_kern_few_row few16_##LEVEL[GG_N_DTYPES] = { \
        GG_KERN_FEW_ALL(Y, LEVEL) \
    };
#if HAVE_KERN_256
ROWS(256, GG_KERN_FEW_LOW)
#endif
#if HAVE_X86_AVXVNNI
ROWS(avxvnni, GG_KERN_FEW_ALL)
#endif
#if HAVE_X86_AVX512
ROWS(avx512, GG_KERN_FEW_LOW)
#endif
#if HAVE_X86_VNNI512
ROWS(vnni512, GG_KERN_FEW_ALL)
#endif
#if HAVE_ARM_DOTPROD
ROWS_8(dotprod, GG_KERN_FEW_ALL)
#endif
#undef X
#undef Y
/* clang-format on */

static const struct gg_kern_few_row *const few[GG_N_LEVELS][2] = {
#if HAVE_KERN_256
    [GG_LEVEL_256] = { few8_256, few16_256 },
#endif
#if HAVE_X86_AVXVNNI
    [GG_LEVEL_AVXVNNI] = { few8_avxvnni, few16_avxvnni },
#endif
#if HAVE_X86_AVX512
    [GG_LEVEL_AVX512] = { few8_avx512, few16_avx512 },
#endif
#if HAVE_X86_VNNI512
    [GG_LEVEL_VNNI512] = { few8_vnni512, few16_vnni512 },
#endif
#if HAVE_X86_AMX
    [GG_LEVEL_AMX] = { few8_vnni512, NULL },
#endif
#if HAVE_ARM_DOTPROD
    [GG_LEVEL_DOTPROD] = { few8_dotprod, NULL },
    [GG_LEVEL_I8MM] = { few8_dotprod, NULL },
#endif
};

const struct gg_kern_few_row *gg_kern_few_table(unsigned level, unsigned width)
{
    return few[level][width - 1];
}

/* Bias that kernels add to the integers of a type. */
static const uint8_t bias[GG_N_DTYPES] = {
#define X(LEVEL, TYPE, NAME, KIND, N, SCALES, MINS, BIAS, ...)                \
    [GG_DT_##TYPE] = BIAS,
    GG_KERN_FEW_ALL(X, )
#undef X
};

size_t gg_kern_few_x_size(const struct gg_kern_gemm *g, size_t k)
{
    if (g->ints.width != 2)
        return 0;
    return gg_kern_gemm_n_blocks(g, k) *
           GG_FEW16_X_WORDS(g->nr, g->ints.n_mins) * sizeof(int32_t);
}

/* Order 16 steps of 32, 16 half to 16 half + 15, for the kernels: halves of 16
 * pairs become four times two pairs. Returns the sum of the steps. */
static int32_t order_16(const uint32_t *pair, size_t nr, unsigned half,
                        uint32_t *to)
{
    uint32_t i[16], sum = 0;
    for (size_t p = 0; p < 16; p++) {
        i[p] = pair[p * nr] >> 16 * half & 0xffff;
        sum += (i[p] ^ 0x8000) - 0x8000; /* sign extension */
    }
    for (size_t t = 0; t < 16; t += 4)
        for (size_t h = 0; h < 2; h++, to += nr)
            *to = i[t + h] | i[t + h + 2] << 16;
    return (int32_t)sum;
}

void gg_kern_few_order_columns(const struct gg_kern_gemm *g, int dtype_index,
                               const void *panel, size_t n, size_t k, void *to)
{
    const size_t nr = g->nr, rest = nr * (1 + g->ints.n_mins);
    const size_t words = GG_FEW16_X_WORDS(nr, g->ints.n_mins);
    const uint32_t *from = panel;
    uint32_t *x = to;
    memset(to, 0, gg_kern_few_x_size(g, k));
    for (size_t b = 0; b < gg_kern_gemm_n_blocks(g, k); b++) {
        int32_t *begin = (int32_t *)(void *)x + GG_FEW16_BEGIN * nr;
        for (size_t c = 0; c < n; c++)
            for (size_t r = 0; r < GG_FEW16_RUNS; r++)
                begin[r * nr + c] = -(int32_t)bias[dtype_index] *
                                    order_16(from + r / 2 * 16 * nr + c, nr,
                                             r % 2, x + r * 8 * nr + c);
        memcpy(begin + GG_FEW16_RUNS * nr, from + GG_GEMM_INT_PAIRS * nr,
               rest * sizeof *from);
        from += g->x_block / sizeof *from;
        x += words;
    }
}
