/* SPDX-License-Identifier: MIT */
/* recur_ref.c - reference kernels of recurrences */
#include "config.h"
#include "kern/vec.h"

#include <math.h>

static float softplus(float x)
{
    return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

void gg_vec_softplus_c(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = softplus(x[i]);
}

void gg_vec_scan_c(const struct gg_vec_scan *p)
{
    const size_t n = p->n;
    for (size_t r = 0; r < p->n_rows; r++) {
        const float *from = p->from + r * n;
        const float *a = p->a ? p->a + r * p->a_stride : NULL;
        float *s = p->s + r * n;
        for (size_t t = 0; t < p->n_tok; t++, from = s) {
            const float *b = p->b + t * p->b_stride;
            const float step = p->step[t * p->stride + r];
            const float x = p->x[t * p->stride + r];
            for (size_t i = 0; i < n; i++) {
                const float decay = a ? expf(step * a[i]) : p->decay[t];
                s[i] = from[i] * decay + b[i] * x;
            }
            p->y[t * p->y_stride + r] =
                gg_vec_dot_c(s, p->c + t * p->c_stride, n);
        }
    }
}

void gg_vec_wkv7_c(const struct gg_vec_wkv7 *p)
{
    const size_t n = p->n;
    for (size_t i = 0; i < p->n_rows; i++) {
        const float *from = p->from + i * n;
        float *s = p->s + i * n;
        for (size_t t = 0; t < p->n_tok; t++, from = s) {
            const float *w = p->w + t * n, *k = p->k + t * n;
            const float *b = p->b + t * n;
            const float v = p->v[t * p->v_stride + i];
            const float e = gg_vec_dot_c(from, p->a + t * n, n);
            const float read = gg_vec_dot_c(from, p->wr + t * n, n);
            p->y[t * p->y_stride + i] = read + v * p->kr[t] + e * p->br[t];
            for (size_t j = 0; j < n; j++)
                s[j] = w[j] * from[j] + v * k[j] + e * b[j];
        }
    }
}

void gg_vec_wkv6_c(const struct gg_vec_wkv6 *p)
{
    const size_t n = p->n;
    const float *from = p->from;
    for (size_t t = 0; t < p->n_tok; t++, from = p->s) {
        const float *r = p->r + t * n, *k = p->k + t * n, *w = p->w + t * n;
        const float *v = p->v + t * p->v_stride;
        float *y = p->y + t * p->y_stride;
        for (size_t j = 0; j < n; j++)
            y[j] = p->own ? p->own[t] * v[j] : 0;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                const float was = from[i * n + j];
                const float is = w[i] * was + k[i] * v[j];
                y[j] += r[i] * (p->own ? was : is);
                p->s[i * n + j] = is;
            }
    }
}
