/* SPDX-License-Identifier: MIT */
/* enc_fork_kl.c - reference encoder of IQ2_KL
 *
 * A code is one of 32 pairs of the levels of IQ3_K. A pair of elements gets
 * the pair of its nearest levels if that is one of the 32, otherwise the best
 * of eight pairs near it.
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/enc_fork.h"

enum { N_PAIRS = 32, N_NEAR = 8, BLOCK = 86 };

static const int8_t pair[N_PAIRS][2] = GG_IQ2KL_PAIRS;

/* Pair of two codes; negative: minus the number of its list. */
static const int8_t pair_of[8][8] = {
    { -1, -2, 0, -3, -4, 1, -5, -6 },
    { 2, -7, -8, 3, -9, 4, -10, 5 },
    { -11, 6, 7, -12, 8, 9, 10, -13 },
    { 11, -14, -15, -16, 12, 13, -17, 14 },
    { -18, -19, 15, 16, 17, 18, 19, -20 },
    { -21, 20, 21, 22, 23, 24, -22, -23 },
    { 25, -24, 26, -25, 27, -26, 28, 29 },
    { -27, -28, 30, -29, -30, 31, -31, -32 },
};

/* Lists of near pairs, in the order of the search. */
static const uint8_t near[32][N_NEAR] = {
    { 2, 0, 6, 11, 7, 3, 8, 15 },       { 0, 2, 3, 6, 7, 1, 8, 4 },
    { 0, 1, 3, 4, 8, 7, 9, 6 },         { 1, 0, 3, 4, 8, 9, 7, 10 },
    { 1, 4, 5, 10, 9, 3, 8, 0 },        { 5, 1, 4, 10, 9, 14, 8, 3 },
    { 6, 2, 7, 0, 3, 11, 8, 15 },       { 3, 7, 0, 6, 8, 4, 12, 9 },
    { 3, 4, 8, 9, 1, 7, 12, 10 },       { 4, 10, 5, 9, 1, 8, 13, 14 },
    { 11, 2, 6, 7, 20, 15, 25, 21 },    { 8, 7, 3, 12, 9, 16, 17, 13 },
    { 14, 5, 10, 19, 9, 13, 4, 18 },    { 6, 15, 7, 11, 20, 21, 16, 2 },
    { 15, 7, 16, 6, 21, 12, 17, 22 },   { 12, 16, 17, 8, 15, 7, 13, 22 },
    { 19, 10, 13, 18, 14, 9, 12, 24 },  { 11, 20, 25, 6, 15, 2, 21, 7 },
    { 20, 15, 21, 6, 11, 7, 16, 26 },   { 14, 19, 29, 10, 28, 18, 13, 24 },
    { 25, 11, 20, 21, 15, 6, 26, 30 },  { 19, 24, 28, 18, 29, 23, 13, 17 },
    { 29, 19, 14, 28, 24, 18, 10, 13 }, { 20, 26, 21, 25, 30, 15, 22, 16 },
    { 27, 26, 22, 23, 21, 30, 16, 24 }, { 27, 24, 28, 31, 23, 18, 22, 17 },
    { 25, 30, 20, 26, 21, 11, 15, 22 }, { 30, 26, 25, 20, 21, 27, 22, 15 },
    { 30, 27, 31, 26, 22, 23, 21, 24 }, { 31, 27, 30, 26, 28, 23, 22, 24 },
    { 31, 28, 29, 27, 24, 23, 19, 18 }, { 29, 28, 31, 24, 19, 27, 14, 18 },
};

/* Levels, and pairs of them. */
struct tables {
    struct gg_kern_fork_levels t;
    float pair[N_PAIRS][2];
};

static void fill_tables(struct tables *t)
{
    gg_kern_fork_levels_3(&t->t);
    for (int k = 0; k < N_PAIRS; k++)
        for (int i = 0; i < 2; i++)
            t->pair[k][i] = (float)pair[k][i];
}

/* Code of two elements x, divided by the scale. */
static int code_pair(const struct tables *t, float x0, float x1, float w0,
                     float w1)
{
    int l0 = gg_kern_fork_nearest(&t->t, t->t.v, x0);
    int l1 = gg_kern_fork_nearest(&t->t, t->t.v, x1);
    int code = pair_of[l0][l1];
    float least = 0;
    if (code >= 0)
        return code;
    const uint8_t *list = near[-code - 1];
    for (int k = 0; k < N_NEAR; k++) {
        float d0 = t->pair[list[k]][0] - x0, d1 = t->pair[list[k]][1] - x1;
        float score = w0 * d0 * d0 + w1 * d1 * d1;
        if (k == 0 || score < least) {
            code = list[k];
            least = score;
        }
    }
    return code;
}

/* Codes of 32 elements for the scale 1 / id. */
static void code_sub(uint8_t q[16], const struct tables *t, float id,
                     const float *x, const float *w)
{
    for (int j = 0; j < 32; j += 2)
        q[j / 2] =
            (uint8_t)code_pair(t, id * x[j], id * x[j + 1], w[j], w[j + 1]);
}

static void add_sums(struct gg_kern_fork_sums *s, const uint8_t q[16],
                     const struct tables *t, float factor, const float *x,
                     const float *w)
{
    for (int j = 0; j < 32; j += 2) {
        float q0 = t->pair[q[j / 2]][0] * factor;
        float q1 = t->pair[q[j / 2]][1] * factor;
        s->qx += w[j] * q0 * x[j] + w[j + 1] * q1 * x[j + 1];
        s->q2 += w[j] * q0 * q0 + w[j + 1] * q1 * q1;
    }
}

static struct gg_kern_fork_sums add_pass(const struct tables *t, float id,
                                         const float *x, const float *w)
{
    struct gg_kern_fork_sums s = { 0, 0 };
    uint8_t q[16];
    code_sub(q, t, id, x, w);
    add_sums(&s, q, t, 1, x, w);
    return s;
}

static float find_scale(const struct tables *t, const float *x, const float *w)
{
    float max = gg_kern_max_abs_signed(x, 32);
    struct gg_kern_fork_fit f = { 0, 0, false };
    if (max == 0)
        return 0;
    float id = 1 / (max / -t->t.v[0]);
    struct gg_kern_fork_sums s = add_pass(t, id, x, w);
    f.d = s.qx / s.q2;
    f.best = f.d * s.qx;
    s = add_pass(t, -id, x, w);
    gg_kern_fork_try(&f, s.qx, s.q2);
    for (int step = -5; step <= 5; step++)
        for (int sign = 1; sign >= -1; sign -= 2) {
            id = ((float)step + t->t.v[0]) / max;
            s = add_pass(t, (float)sign * id, x, w);
            gg_kern_fork_try(&f, s.qx, s.q2);
        }
    return f.d;
}

static float error_of(const uint8_t q[16], const struct tables *t, float dl,
                      const float *x, const float *w)
{
    float sum = 0;
    for (int j = 0; j < 32; j += 2) {
        float d0 = dl * t->pair[q[j / 2]][0] - x[j];
        float d1 = dl * t->pair[q[j / 2]][1] - x[j + 1];
        sum += w[j] * d0 * d0 + w[j + 1] * d1 * d1;
    }
    return sum;
}

/* The best of three integer scales next to scale / d, and the codes. */
static int code_scale(uint8_t q[16], const struct tables *t, float d,
                      float scale, const float *x, const float *w)
{
    int s = gg_kern_clamp(gg_kern_nearest(1 / d * scale), -32, 31), best = s;
    float least = 0;
    bool any = false;
    memset(q, 0, 16);
    for (int v = gg_kern_clamp(s - 1, -32, 31);
         v <= gg_kern_clamp(s + 1, -32, 31); v++) {
        float dl = d * (float)v;
        uint8_t try[16];
        code_sub(try, t, dl != 0 ? 1 / dl : 0, x, w);
        float error = error_of(try, t, dl, x, w);
        if (any && !(error < least))
            continue;
        any = true;
        least = error;
        best = v;
        memcpy(q, try, 16);
    }
    if (best == 0)
        memset(q, 0, 16);
    return best;
}

static void weigh_block(float w[256], const float *x, const float *importance)
{
    static const struct gg_kern_fork_weight_rule rule = { 32, 2.25f, 0 };
    if (importance) {
        gg_kern_fork_weights(w, x, importance, &rule);
        return;
    }
    for (int j = 0; j < 256; j++)
        w[j] = fabsf(x[j]);
}

/* A block: scales_h u16, scales_l[4], qs[64], qh[16]. */
static void encode_block(uint8_t *p, struct gg_kern_fork_sums *sum,
                         const struct tables *t, float d, const float scale[8],
                         const float *x, const float *w)
{
    uint8_t *low = p + 2, *qs = p + 6, *qh = p + 70;
    unsigned high = 0;
    memset(p, 0, BLOCK);
    for (int s = 0; s < 8; s++, x += 32, w += 32) {
        uint8_t q[16];
        int v = code_scale(q, t, d, scale[s], x, w);
        if (v != 0)
            add_sums(sum, q, t, (float)v, x, w);
        low[s % 4] |= (uint8_t)(((v + 32) & 15) << 4 * (s / 4));
        high |= (unsigned)(v + 32) >> 4 << 2 * s;
        for (int j = 0; j < 16; j++) {
            qs[16 * (s / 2) + j] |= (uint8_t)((q[j] & 15) << 4 * (s & 1));
            qh[j] |= (uint8_t)(q[j] >> 4 << s);
        }
    }
    gg_bytes_store16le(p, (uint16_t)high);
}

/* Scales are kept in the row's blocks until they are rounded. */
static void encode_row(uint8_t *dst, const struct tables *t, const float *x,
                       size_t n, const float *weight)
{
    uint8_t *p = dst + 2;
    float w[256], max = 0;
    struct gg_kern_fork_sums sum = { 0, 0 };
    for (size_t i = 0; i < n; i += 256, p += BLOCK) {
        weigh_block(w, x + i, weight ? weight + i : NULL);
        for (size_t s = 0; s < 8; s++) {
            float d = find_scale(t, x + i + 32 * s, w + 32 * s);
            gg_kern_fork_store(p + 4 * s, d);
            if (fabsf(d) > fabsf(max))
                max = d;
        }
    }
    float d = -max / 32;
    if (max == 0) {
        memset(dst, 0, (size_t)(p - dst));
        return;
    }
    p = dst + 2;
    for (size_t i = 0; i < n; i += 256, p += BLOCK) {
        float scale[8];
        for (int s = 0; s < 8; s++)
            scale[s] = gg_kern_fork_load(p + 4 * s);
        weigh_block(w, x + i, weight ? weight + i : NULL);
        encode_block(p, &sum, t, d, scale, x + i, w);
    }
    gg_kern_put_half(dst, 1.025f * (sum.q2 > 0 ? sum.qx / sum.q2 : d));
}

void gg_kern_encode_iq2_kl_c(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    struct tables t;
    fill_tables(&t);
    for (size_t r = 0; r < n_rows; r++)
        encode_row((uint8_t *)dst + r * (2 + row_len / 256 * BLOCK), &t,
                   src + r * row_len, row_len, weight);
}
