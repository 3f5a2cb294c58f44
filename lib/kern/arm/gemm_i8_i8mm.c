/* SPDX-License-Identifier: MIT */
/* gemm_i8_i8mm.c - products of bytes by SMMLA, and packing weights for it
 *
 * A vector of weights has 8 steps of two rows, one of activations 8 steps of
 * two columns; their product is four sums, first those of the first row. The
 * four vectors of sums are those of the four pairs of rows.
 */
#include "config.h"
#include "kern/simd/m256.h"

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

struct rows {
    float32x4_t v[4];
};
struct cols {
    float32x4_t v;
};

static inline __attribute__((__always_inline__)) struct rows
rows_of(const float *d)
{
    const float32x4_t a = vld1q_f32(d), b = vld1q_f32(d + 4);
    return (struct rows){ { vzip1q_f32(a, a), vzip2q_f32(a, a),
                            vzip1q_f32(b, b), vzip2q_f32(b, b) } };
}

/* Two numbers of 32 bits, twice. */
static inline __attribute__((__always_inline__)) uint64x2_t
two_twice(const void *p)
{
    uint64_t bits;
    memcpy(&bits, p, sizeof bits);
    return vdupq_n_u64(bits);
}

#define LEVEL      i8mm
#define W_AT(o, i) ((o)*128 + (i)*16)
#define HALF       64
#define ROWS_OF(d) rows_of(d)
#define COLS_OF(s)                                                            \
    (struct cols)                                                             \
    {                                                                         \
        vreinterpretq_f32_u64(two_twice(s))                                   \
    }
#define BEGIN(begin) vreinterpretq_s32_u64(two_twice(begin))
#define SUMS_OF(begin)                                                        \
    {                                                                         \
        {                                                                     \
            BEGIN(begin), BEGIN(begin), BEGIN(begin), BEGIN(begin)            \
        }                                                                     \
    }
#define MULTIPLY(acc, w, x)                                                   \
    (acc)[0] = vmmlaq_s32((acc)[0], (w)[0], x);                               \
    (acc)[1] = vmmlaq_s32((acc)[1], (w)[1], x);                               \
    (acc)[2] = vmmlaq_s32((acc)[2], (w)[2], x);                               \
    (acc)[3] = vmmlaq_s32((acc)[3], (w)[3], x)
#define ROWS(i, d)            (d).v[i]
#define SCALE(i, d, s)        vmulq_f32((d).v[i], (s).v)
#define ADD_COLS(to, i, a, s) vfmaq_f32(to, a, (s).v)
#define COLUMN(v, j, i)                                                       \
    ((j) ? vuzp2q_f32((v)[2 * (i)], (v)[2 * (i) + 1])                         \
         : vuzp1q_f32((v)[2 * (i)], (v)[2 * (i) + 1]))
#define FROM_COLUMNS(i, v)                                                    \
    ((i) % 2 ? vzip2q_f32((v)[(i) / 2], (v)[(i) / 2 + 2])                     \
             : vzip1q_f32((v)[(i) / 2], (v)[(i) / 2 + 2]))
#include "kern/arm/gemm_dots_impl.h"

/* Groups of four steps to octets. */
void gg_kern_i8_pack_groups_i8mm(const struct gg_kern_gemm *g, void *block,
                                 size_t first, const int32_t *src,
                                 size_t stride, size_t n, size_t n_groups)
{
    for (size_t t = 0; t < n_groups; t += 2)
        for (size_t r = 0; r < n; r++)
            vst1_s32((int32_t *)block + t * g->mr + 2 * (first + r),
                     vld1_s32(src + r * stride + t));
}
