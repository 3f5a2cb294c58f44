/* SPDX-License-Identifier: MIT */
/* enc_search.c - fitting a scale (and a minimum) to a few floats */
#include "config.h"
#include "kern/c/enc_search_ref.h"
#include "kern/c/round.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Sums of a fit through the origin: of w*x*l and of w*l*l. */
struct fit {
    float xl, ll;
};

static struct fit symmetric_sums(const float *x, const float *w, int n,
                                 int half, float inv)
{
    struct fit s = { 0, 0 };
    for (int i = 0; i < n; i++) {
        float l =
            (float)gg_kern_clamp(gg_kern_nearest(inv * x[i]), -half, half - 1);
        s.xl += w[i] * x[i] * l;
        s.ll += w[i] * l * l;
    }
    return s;
}

float gg_kern_fit_symmetric(const float *x, const float *w, int n, int half,
                            uint8_t *q)
{
    float max = gg_kern_max_abs_signed(x, (size_t)n);
    if (fabsf(max) < GG_ENC_ZERO) {
        memset(q, 0, (size_t)n);
        return 0;
    }
    float inv = -(float)half / max;
    struct fit s = symmetric_sums(x, w, n, half, inv);
    float scale = s.ll != 0 ? s.xl / s.ll : 0;
    float best = scale * s.xl;
    for (int k = -9; k <= 9; k++) {
        if (k == 0)
            continue;
        float try = -((float)half + 0.1f * (float)k) / max;
        s = symmetric_sums(x, w, n, half, try);
        if (s.ll > 0 && s.xl * s.xl > best * s.ll) {
            inv = try;
            scale = s.xl / s.ll;
            best = scale * s.xl;
        }
    }
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)(gg_kern_clamp(gg_kern_nearest(inv * x[i]), -half,
                                       half - 1) +
                         half);
    return scale;
}

/* The sum of weighted errors of scale * q + min. */
static float affine_error(const float *x, const float *w, int n,
                          const struct gg_kern_affine_search *s,
                          const uint8_t *q, float scale, float min)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        float e = scale * (float)q[i] + min - x[i];
        sum += w[i] * (s->abs_error ? fabsf(e) : e * e);
    }
    return sum;
}

static void affine_codes(const float *x, int n, int q_max, float inv,
                         float min, uint8_t *q)
{
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)gg_kern_clamp(gg_kern_nearest(inv * (x[i] - min)), 0,
                                      q_max);
}

/* Fit the weighted least-squares line through (q, x). Returns false if the
 * points do not determine one. sum_w and sum_x do not depend on the codes. */
static int affine_line(const float *x, const float *w, int n, const uint8_t *q,
                       float sum_w, float sum_x, float *scale, float *min)
{
    float sum_l = 0, sum_ll = 0, sum_xl = 0;
    for (int i = 0; i < n; i++) {
        float wl = w[i] * (float)q[i];
        sum_l += wl;
        sum_ll += wl * (float)q[i];
        sum_xl += wl * x[i];
    }
    float det = sum_w * sum_ll - sum_l * sum_l;
    if (!(det > 0))
        return 0;
    *scale = (sum_w * sum_xl - sum_x * sum_l) / det;
    *min = (sum_ll * sum_x - sum_l * sum_xl) / det;
    if (*min > 0) {
        *min = 0;
        *scale = sum_xl / sum_ll;
    }
    return 1;
}

float gg_kern_fit_affine(const float *x, const float *w, int n,
                         const struct gg_kern_affine_search *s, uint8_t *q,
                         float *min)
{
    float lo = x[0], hi = x[0], sum_w = w[0], sum_x = w[0] * x[0];
    for (int i = 1; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    if (lo > 0)
        lo = 0;
    if (hi == lo) {
        memset(q, 0, (size_t)n);
        *min = -lo;
        return 0;
    }
    float inv = (float)s->q_max / (hi - lo);
    float scale = 1 / inv;
    affine_codes(x, n, s->q_max, inv, lo, q);
    float best = affine_error(x, w, n, s, q, scale, lo);
    /* A better fit's minimum is the base of the candidates after it. */
    for (int k = 0; k <= s->n_step; k++) {
        uint8_t try[GG_ENC_MAX_N];
        float a, b;
        inv = (s->start + s->step * (float)k + (float)s->q_max) / (hi - lo);
        affine_codes(x, n, s->q_max, inv, lo, try);
        if (!affine_line(x, w, n, try, sum_w, sum_x, &a, &b))
            continue;
        float error = affine_error(x, w, n, s, try, a, b);
        if (error < best) {
            memcpy(q, try, (size_t)n);
            best = error;
            scale = a;
            lo = b;
        }
    }
    *min = -lo;
    return scale;
}

/* The first candidate's codes are cut to a byte, the others' to q_max; they
 * differ if a scale came out negative, which rounding can do. */
static float positive_error(const float *x, const float *w, int n, int q_max,
                            float inv, int first)
{
    float scale = 1 / inv, sum = 0;
    for (int i = 0; i < n; i++) {
        int l = gg_kern_nearest(inv * x[i]);
        l = first ? (uint8_t)l : l < q_max ? l : q_max;
        float e = x[i] - scale * (float)l;
        sum += w[i] * e * e;
    }
    return sum;
}

/* Bounds of a refinement's codes. `whole' wants a fit of the other elements
 * alone that is positive; codes below zero, which only rounding can make of a
 * positive fit, are cut to a byte there. */
struct refine {
    int lo, hi, whole;
};

/* Change one code at a time, the others fixed, where the fit gets better. */
static struct fit refine_codes(const float *x, const float *w, int n,
                               const struct refine *r, int *q, struct fit s)
{
    for (int round = 0; round < 5; round++) {
        int changed = 0;
        for (int i = 0; i < n; i++) {
            struct fit t;
            t.xl = s.xl - w[i] * x[i] * (float)q[i];
            t.ll = s.ll - w[i] * (float)q[i] * (float)q[i];
            if (!(t.xl > 0 && (!r->whole || t.ll > 0)))
                continue;
            int l = gg_kern_clamp(gg_kern_nearest(x[i] * t.ll / t.xl), r->lo,
                                  r->hi);
            if (l == q[i])
                continue;
            t.xl += w[i] * x[i] * (float)l;
            t.ll += w[i] * (float)l * (float)l;
            if (t.ll > 0 && t.xl * t.xl * s.ll > s.xl * s.xl * t.ll) {
                q[i] = r->whole ? (uint8_t)l : l;
                s = t;
                changed = 1;
            }
        }
        if (!changed)
            break;
    }
    return s;
}

float gg_kern_fit_refined(const float *x, int n, int half, uint8_t *q)
{
    float max = gg_kern_max_abs_signed(x, (size_t)n), w[GG_ENC_MAX_N] = { 0 };
    if (fabsf(max) < GG_ENC_ZERO) {
        memset(q, 0, (size_t)n);
        return 0;
    }
    float inv = -(float)half / max;
    const struct refine r = { -half, half - 1, 0 };
    struct fit s = { 0, 0 };
    int l[GG_ENC_MAX_N];
    for (int i = 0; i < n; i++) {
        l[i] = gg_kern_clamp(gg_kern_nearest(inv * x[i]), r.lo, r.hi);
        w[i] = x[i] * x[i];
        s.xl += w[i] * x[i] * (float)l[i];
        s.ll += w[i] * (float)l[i] * (float)l[i];
    }
    s = refine_codes(x, w, n, &r, l, s);
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)(l[i] + half);
    return s.ll > 0 ? s.xl / s.ll : 0;
}

float gg_kern_fit_positive(const float *x, const float *w, int n, int q_max,
                           uint8_t *q)
{
    float max = 0;
    for (int i = 0; i < n; i++)
        max = max > x[i] ? max : x[i];
    if (max < GG_ENC_ZERO) {
        memset(q, 0, (size_t)n);
        return 0;
    }
    /* The first of equal errors wins; the plain division comes first. */
    float inv = (float)q_max / max;
    float best = positive_error(x, w, n, q_max, inv, 1);
    for (int k = -4; k <= 4; k++) {
        float try = (0.1f * (float)k + (float)q_max) / max;
        float error = k ? positive_error(x, w, n, q_max, try, 0) : best;
        if (error < best) {
            best = error;
            inv = try;
        }
    }
    const struct refine r = { INT_MIN, q_max, 1 };
    struct fit s = { 0, 0 };
    int c[GG_ENC_MAX_N];
    for (int i = 0; i < n; i++) {
        int l = gg_kern_nearest(inv * x[i]);
        l = l < q_max ? l : q_max;
        c[i] = (uint8_t)l;
        s.xl += w[i] * x[i] * (float)l;
        s.ll += w[i] * (float)l * (float)l;
    }
    s = refine_codes(x, w, n, &r, c, s);
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)c[i];
    return s.ll > 0 ? s.xl / s.ll : 0;
}
