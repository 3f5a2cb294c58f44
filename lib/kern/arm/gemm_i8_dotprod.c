/* SPDX-License-Identifier: MIT */
/* gemm_i8_dotprod.c - products of bytes by SDOT
 *
 * A vector of weights has four steps of four rows. Sums are two vectors for the
 * first column and two for the second.
 */
#include "config.h"

#include <arm_neon.h>

struct rows {
    float32x4_t v[2];
};
struct cols {
    float32x2_t v;
};

#define LEVEL      dotprod
#define W_AT(o, i) ((o)*128 + (i) / 2 * 64 + (i) % 2 * 16)
#define HALF       32
#define ROWS_OF(d)                                                            \
    (struct rows)                                                             \
    {                                                                         \
        {                                                                     \
            vld1q_f32(d), vld1q_f32((d) + 4)                                  \
        }                                                                     \
    }
#define COLS_OF(s)                                                            \
    (struct cols)                                                             \
    {                                                                         \
        vld1_f32(s)                                                           \
    }
#define SUMS_OF(begin)                                                        \
    {                                                                         \
        {                                                                     \
            vld1q_dup_s32(begin), vld1q_dup_s32(begin),                       \
                vld1q_dup_s32((begin) + 1), vld1q_dup_s32((begin) + 1)        \
        }                                                                     \
    }
#define DOT(acc, a, b, lane) ((acc) = vdotq_laneq_s32(acc, a, b, lane))
#define MULTIPLY(acc, w, x)                                                   \
    DOT((acc)[0], (w)[0], x, 0);                                              \
    DOT((acc)[1], (w)[1], x, 0);                                              \
    DOT((acc)[2], (w)[0], x, 2);                                              \
    DOT((acc)[3], (w)[1], x, 2);                                              \
    DOT((acc)[0], (w)[2], x, 1);                                              \
    DOT((acc)[1], (w)[3], x, 1);                                              \
    DOT((acc)[2], (w)[2], x, 3);                                              \
    DOT((acc)[3], (w)[3], x, 3)
#define ROWS(i, d)            (d).v[(i) % 2]
#define SCALE(i, d, s)        vmulq_lane_f32((d).v[(i) % 2], (s).v, (i) / 2)
#define ADD_COLS(to, i, a, s) vfmaq_lane_f32(to, a, (s).v, (i) / 2)
#define COLUMN(v, j, i)       (v)[2 * (j) + (i)]
#define FROM_COLUMNS(i, v)    (v)[i]
#include "kern/arm/gemm_dots_impl.h"
