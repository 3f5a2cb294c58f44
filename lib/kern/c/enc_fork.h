/* SPDX-License-Identifier: MIT */
/* enc_fork.h - parts of the encoders of types that only ik_llama.cpp writes
 *
 * Every operation is rounded to f32, in the order of the source, but for the
 * fused products that the source names. The bytes are those of ik_llama.cpp
 * (tree of August 2026) compiled for AVX2 without contraction.
 */
#ifndef GG_KERN_C_ENC_FORK_H
#define GG_KERN_C_ENC_FORK_H

#include "kern/c/block_io.h"
#include "kern/c/round.h"

#include <stdbool.h>

/* The most levels of a table, unshifted. */
enum { GG_FORK_LEVELS = 64, GG_FORK_CELLS = 250 };

/* Levels of a type and the search for the nearest one. */
struct gg_kern_fork_levels {
    float v[2 * GG_FORK_LEVELS]; /* levels, then shifted levels */
    int n;                       /* levels; shifted ones begin at v + n */
    int n_cells;                 /* numbers from v[0] that have a cell */
    bool from_first; /* index of a cell: the truncated distance from v[0] */
    uint8_t cell[GG_FORK_CELLS]; /* code; + 128: that code or the next */
};

void gg_kern_fork_levels_3(struct gg_kern_fork_levels *t); /* IQ3_K, IQ3_KS */
void gg_kern_fork_levels_4(
    struct gg_kern_fork_levels *t); /* IQ4_K, _KS, _KSS */
void gg_kern_fork_levels_5(struct gg_kern_fork_levels *t); /* IQ5_K, IQ5_KS */
void gg_kern_fork_levels_6(struct gg_kern_fork_levels *t); /* IQ6_K */

/* Code of the level nearest to x; v is t->v, or t->v + t->n. */
static inline int gg_kern_fork_nearest(const struct gg_kern_fork_levels *t,
                                       const float *v, float x)
{
    int i = t->from_first ? gg_kern_truncate(x - v[0])
                          : gg_kern_truncate(x) - (int)v[0];
    if (i < 0)
        return 0;
    if (i >= t->n_cells)
        return t->n - 1;
    int c = t->cell[i];
    if (c < 128)
        return c;
    c -= 128;
    return x - v[c] < v[c + 1] - x ? c : c + 1;
}

/* A scale and its score, the square of the projection of the elements. */
struct gg_kern_fork_fit {
    float d, best;
    bool shifted;
};

/* Take the scale sumqx / sumq2 if its score is better. */
static inline bool gg_kern_fork_try(struct gg_kern_fork_fit *f, float sumqx,
                                    float sumq2)
{
    if (!(sumq2 > 0 && sumqx * sumqx > f->best * sumq2))
        return false;
    f->d = sumqx / sumq2;
    f->best = f->d * sumqx;
    return true;
}

/* Sums of the codes of a scale: of weights, codes and elements, and of
 * weights and squared codes. */
struct gg_kern_fork_sums {
    float qx, q2;
};

static inline void gg_kern_fork_add(struct gg_kern_fork_sums *s, float w,
                                    float q, float x)
{
    s->qx += w * q * x;
    s->q2 += w * q * q;
}

/* Rule for the weights of elements: factor and, without importances, share of
 * the mean square that is added. */
struct gg_kern_fork_weight_rule {
    int sub;      /* elements whose importances are repaired together */
    float factor; /* weight of the mean square of 256 elements */
    float share;  /* weight of that product without importances */
};

/* Weights of 256 elements x. importance: 256 numbers, or NULL. */
void gg_kern_fork_weights(float w[256], const float *x,
                          const float *importance,
                          const struct gg_kern_fork_weight_rule *rule);

/* Importances of n elements. Those of a block of `sub' elements without
 * importance or without elements become 1e-9. */
void gg_kern_fork_repair(float *w, const float *importance, const float *x,
                         int n, int sub);

/* Search of a scale of n elements: steps t * step, |t| <= n_steps, of the
 * level that the largest element gets, for both tables and both signs. guard:
 * the first scale must have a score, too. */
struct gg_kern_fork_search {
    int n_steps, step;
    bool guard;
};
struct gg_kern_fork_fit
gg_kern_fork_search(const struct gg_kern_fork_levels *t,
                    const struct gg_kern_fork_search *s, const float *x,
                    const float *w, int n);

/* Lane i of 8 sums, as AVX adds them: 4 + 4, 2 + 2, 1 + 1. */
static inline float gg_kern_fork_hsum(const float a[8])
{
    float b0 = a[0] + a[4], b1 = a[1] + a[5], b2 = a[2] + a[6],
          b3 = a[3] + a[7];
    return (b0 + b2) + (b1 + b3);
}

/* The best symmetric scale of numbers: number i and its weight are the floats
 * at x(i), w(i). Codes are clamped nearest integers of inv times a number,
 * -n_max .. n_max - 1. */
struct gg_kern_fork_scale {
    float d;   /* 0: all numbers are zero */
    float inv; /* that codes are made with */
};

static inline int gg_kern_fork_code(const struct gg_kern_fork_scale *s,
                                    int n_max, float x)
{
    return gg_kern_clamp(gg_kern_nearest(s->inv * x), -n_max, n_max - 1);
}

/* Number i is in group i / per, at p + i / per * stride + i % per * 4 bytes,
 * its weight w_off bytes behind it. */
struct gg_kern_fork_list {
    const uint8_t *p;
    size_t n, per, stride, w_off;
};

struct gg_kern_fork_scale
gg_kern_fork_scale(const struct gg_kern_fork_list *list, int n_max);

static inline float gg_kern_fork_load(const void *p)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(p));
}

static inline void gg_kern_fork_store(void *p, float v)
{
    gg_bytes_store32le(p, gg_bytes_f32_bits(v));
}

/* Weights of 256 elements of a trellis type. importance: 256 numbers, or
 * NULL. */
void gg_kern_fork_weigh_trellis(float w[256], const float *x,
                                const float *importance);

/* Weighted squared error of 32 elements with levels q and the scale dl. */
static inline float gg_kern_fork_error(const float q[32], float dl,
                                       const float *x, const float *w)
{
    float sum = 0;
    for (int j = 0; j < 32; j++) {
        float diff = x[j] - dl * q[j];
        sum += w[j] * diff * diff;
    }
    return sum;
}

/* -------------------------------------------------- packing of codes --- */

static inline void gg_kern_fork_put_nibble(uint8_t *p, int i, int v)
{
    p[i / 2] |= (uint8_t)(v << 4 * (i & 1));
}

/* Lowest four bits of 256 codes; `half' elements fill low nibbles, the next
 * ones high nibbles. */
static inline void gg_kern_fork_put_nibbles(uint8_t qs[128],
                                            const uint8_t q[256], int half)
{
    for (int e = 0; e < 256; e += 2 * half)
        for (int j = 0; j < half; j++)
            qs[e / 2 + j] =
                (uint8_t)((q[e + j] & 15) | (q[e + j + half] & 15) << 4);
}

/* Bit `bit' of 256 codes: bit e / 32 of byte e % 32. */
static inline void gg_kern_fork_put_bits(uint8_t qh[32], const uint8_t q[256],
                                         int bit)
{
    memset(qh, 0, 32);
    for (int e = 0; e < 256; e++)
        qh[e % 32] |= (uint8_t)((q[e] >> bit & 1) << e / 32);
}

#endif
