/* SPDX-License-Identifier: MIT */
/* enc_fork_q6.c - reference encoder of Q6_0
 *
 * Two sweeps over scales, by which the largest element gets the lowest or the
 * highest code. Then single codes move by one while the fit becomes better.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_fork.h"

enum { N_MAX = 32 };

static struct gg_kern_fork_sums code_sums(float iscale, const float *x,
                                          const float *w)
{
    struct gg_kern_fork_sums s = { 0, 0 };
    struct gg_kern_fork_scale scale = { 0, iscale };
    for (int j = 0; j < 32; j++) {
        float l = (float)gg_kern_fork_code(&scale, N_MAX, x[j]);
        s.qx += w[j] * x[j] * l;
        s.q2 += w[j] * l * l;
    }
    return s;
}

/* Move the code with the steepest error by one. Returns false if the fit does
 * not become better. */
static bool move_code(struct gg_kern_fork_fit *f,
                      struct gg_kern_fork_sums *sum, int8_t l[32],
                      const float *x, const float *w)
{
    float top = 0;
    int at = -1, dir = 0;
    for (int j = 0; j < 32; j++) {
        float g = f->d * w[j] * (x[j] - f->d * (float)l[j]);
        if (((g > 0 && l[j] < N_MAX - 1) || (g < 0 && l[j] > -N_MAX)) &&
            fabsf(g) > top) {
            top = fabsf(g);
            at = j;
            dir = g > 0 ? 1 : -1;
        }
    }
    if (at < 0)
        return false;
    float wx = w[at] * x[at], qx, q2;
    if (dir > 0) {
        qx = sum->qx + wx;
        q2 = sum->q2 + w[at] * (float)(2 * l[at] + 1);
    } else {
        qx = sum->qx - wx;
        q2 = sum->q2 - w[at] * (float)(2 * l[at] - 1);
    }
    if (!gg_kern_fork_try(f, qx, q2))
        return false;
    *sum = (struct gg_kern_fork_sums){ qx, q2 };
    l[at] = (int8_t)(l[at] + dir);
    return true;
}

/* Codes of 32 elements. Returns the scale. */
static float fit_block(int8_t l[32], const float *x, const float *w)
{
    static const float end[2] = { -N_MAX, N_MAX - 1 };
    float max = gg_kern_max_abs_signed(x, 32);
    memset(l, -N_MAX, 32);
    if (fabsf(max) < 1e-15f)
        return 0;
    struct gg_kern_fork_scale scale = { 0, end[0] / max };
    struct gg_kern_fork_sums sum = code_sums(scale.inv, x, w);
    struct gg_kern_fork_fit f = { 0, 0, false };
    f.d = sum.q2 != 0 ? sum.qx / sum.q2 : 0;
    f.best = f.d * sum.qx;
    for (int is = -9; is <= 9; is++)
        for (int k = 0; k < 2; k++) {
            float step = 0.1f * (float)is;
            float inv = k ? (end[1] + step) / max : -(N_MAX + step) / max;
            struct gg_kern_fork_sums s = code_sums(inv, x, w);
            if (gg_kern_fork_try(&f, s.qx, s.q2)) {
                scale.inv = inv;
                sum = s;
            }
        }
    for (int j = 0; j < 32; j++)
        l[j] = (int8_t)gg_kern_fork_code(&scale, N_MAX, x[j]);
    for (int i = 0; i < 32 * (2 * N_MAX - 1); i++)
        if (!move_code(&f, &sum, l, x, w))
            break;
    return f.d;
}

static void pack_block(struct gg_block_q6_0 *y, const int8_t l[32], float d)
{
    memset(y, 0, sizeof *y);
    gg_kern_put_half(&y->d, d);
    for (int j = 0; j < 16; j++) {
        int a = l[j] + N_MAX, b = l[j + 16] + N_MAX;
        y->qs[j] = (uint8_t)((a & 15) | (b & 15) << 4);
        y->qh[j % 8] |= (uint8_t)((a >> 4 | b >> 4 << 2) << 4 * (j / 8));
    }
}

static void encode_row(uint8_t *dst, const float *x, size_t n,
                       const float *importance)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    float mean = sum / (float)n;
    for (size_t i = 0; i < n; i += 32) {
        struct gg_block_q6_0 y;
        float w[32];
        int8_t l[32];
        for (size_t j = 0; j < 32; j++) {
            float x2 = x[i + j] * x[i + j];
            w[j] = importance ? importance[i + j] * sqrtf(mean + x2) : x2;
        }
        float d = fit_block(l, x + i, w);
        pack_block(&y, l, d);
        GG_PUT_BLOCK(y, dst, i / 32);
    }
}

void gg_kern_encode_q6_0_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    size_t size = row_len / 32 * sizeof(struct gg_block_q6_0);
    for (size_t r = 0; r < n_rows; r++)
        encode_row((uint8_t *)dst + r * size, src + r * row_len, row_len,
                   weight);
}
