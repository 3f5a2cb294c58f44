/* SPDX-License-Identifier: MIT */
/* enc_fork.c - searches that the encoders of ik_llama.cpp's types share */
#include "config.h"
#include "kern/c/enc_fork.h"
#include "dtype/iq_code.h"

/* Cells of codes, from code 0 on: numbers whose code is certain, then numbers
 * that are compared with two levels. */
struct cells {
    uint8_t sure[GG_FORK_LEVELS], compare[GG_FORK_LEVELS];
};

static const struct cells cells_3 = {
    { 11, 18, 13, 10, 10, 12, 15, 9 },
    { 2, 2, 2, 2, 1, 2, 2, 0 },
};

static const struct cells cells_4 = {
    { 11, 20, 18, 16, 14, 12, 11, 10, 10, 11, 11, 12, 14, 17, 21, 12 },
    { 2, 2, 1, 1, 1, 2, 1, 2, 1, 1, 2, 2, 1, 1, 1, 0 },
};

static const struct cells cells_5 = {
    { 6, 10, 9, 8, 7, 7, 7, 6, 5, 5, 5, 5, 5, 5,  5,  4,
      4, 5,  5, 5, 5, 5, 5, 6, 7, 7, 7, 8, 9, 10, 11, 6 },
    { 1, 2, 2, 2, 2, 2, 1, 2, 2, 2, 1, 1, 1, 1, 1, 2,
      1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1, 0 },
};

static const struct cells cells_6 = {
    { 3, 5, 5, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1,
      1, 2, 3, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 3 },
    { 1, 1, 1, 2, 1, 2, 2, 1, 2, 2, 1, 1, 1, 1, 1, 2, 1, 2, 1, 2, 2, 2,
      2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2,
      2, 1, 1, 2, 1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 1, 2, 1, 1, 1, 0 },
};

/* Rounded values of GG_IQ6K_CUBIC. */
static const int8_t level_6[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66,
    -62,  -58,  -54,  -51,  -47,  -44, -40, -37, -34, -31, -28, -25, -22,
    -19,  -16,  -13,  -11,  -8,   -5,  -2,  0,   3,   6,   9,   12,  14,
    17,   20,   23,   27,   30,   33,  36,  40,  44,  47,  51,  55,  59,
    63,   68,   72,   77,   82,   87,  92,  98,  103, 109, 115, 121,
};

static void fill_levels(struct gg_kern_fork_levels *t, const int8_t *level,
                        int n, int shift, const struct cells *c)
{
    t->n = n;
    t->n_cells = 0;
    t->from_first = false;
    for (int i = 0; i < n; i++) {
        t->v[i] = (float)level[i];
        t->v[n + i] = (float)(level[i] + shift);
        for (int k = 0; k < c->sure[i]; k++)
            t->cell[t->n_cells++] = (uint8_t)i;
        for (int k = 0; k < c->compare[i]; k++)
            t->cell[t->n_cells++] = (uint8_t)(128 + i);
    }
}

void gg_kern_fork_levels_3(struct gg_kern_fork_levels *t)
{
    static const int8_t level[8] = GG_IQ3K_LEVELS;
    fill_levels(t, level, 8, GG_IQ3K_SHIFT, &cells_3);
}

void gg_kern_fork_levels_4(struct gg_kern_fork_levels *t)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    fill_levels(t, level, 16, GG_IQ4K_SHIFT, &cells_4);
}

void gg_kern_fork_levels_5(struct gg_kern_fork_levels *t)
{
    static const int8_t level[32] = GG_IQ5K_LEVELS;
    fill_levels(t, level, 32, GG_IQ5K_SHIFT, &cells_5);
}

void gg_kern_fork_levels_6(struct gg_kern_fork_levels *t)
{
    fill_levels(t, level_6, 64, GG_IQ6K_SHIFT, &cells_6);
    t->from_first = true;
}

void gg_kern_fork_repair(float *w, const float *importance, const float *x,
                         int n, int sub)
{
    const float limit = (float)sub * (1e-9f * 1e-9f);
    for (int i = 0; i < n; i += sub) {
        float w2 = 0, x2 = 0, wx = 0;
        for (int j = i; j < i + sub; j++) {
            w[j] = importance[j];
            w2 += w[j] * w[j];
            x2 += x[j] * x[j];
            wx += w[j] * fabsf(x[j]);
        }
        if (w2 > limit && x2 > limit && wx > limit)
            continue;
        for (int j = i; j < i + sub; j++)
            w[j] = 1e-9f;
    }
}

void gg_kern_fork_weights(float w[256], const float *x,
                          const float *importance,
                          const struct gg_kern_fork_weight_rule *rule)
{
    float sum = 0;
    for (int j = 0; j < 256; j++)
        sum += x[j] * x[j];
    float mean = rule->factor * sum / 256;
    if (importance) {
        gg_kern_fork_repair(w, importance, x, 256, rule->sub);
        for (int j = 0; j < 256; j++)
            w[j] = w[j] * sqrtf(mean + x[j] * x[j]);
        return;
    }
    mean *= rule->share;
    for (int j = 0; j < 256; j++)
        w[j] = mean + x[j] * x[j];
}

/* Sums of the nearest levels to id * x, and to -id * x. */
static void add_pass(struct gg_kern_fork_sums s[2],
                     const struct gg_kern_fork_levels *t, const float *v,
                     float id, const float *x, const float *w, int n)
{
    s[0] = s[1] = (struct gg_kern_fork_sums){ 0, 0 };
    for (int j = 0; j < n; j++) {
        float al = id * x[j];
        gg_kern_fork_add(&s[0], w[j], v[gg_kern_fork_nearest(t, v, al)], x[j]);
        gg_kern_fork_add(&s[1], w[j], v[gg_kern_fork_nearest(t, v, -al)],
                         x[j]);
    }
}

/* Try the scale 1 / id and its negative. */
static void try_pass(struct gg_kern_fork_fit *f,
                     const struct gg_kern_fork_levels *t, bool shifted,
                     float id, const float *x, const float *w, int n)
{
    struct gg_kern_fork_sums s[2];
    add_pass(s, t, t->v + (shifted ? t->n : 0), id, x, w, n);
    for (int k = 0; k < 2; k++)
        if (gg_kern_fork_try(f, s[k].qx, s[k].q2))
            f->shifted = shifted;
}

struct gg_kern_fork_fit
gg_kern_fork_search(const struct gg_kern_fork_levels *t,
                    const struct gg_kern_fork_search *s, const float *x,
                    const float *w, int n)
{
    struct gg_kern_fork_fit f = { 0, 0, false };
    float max = gg_kern_max_abs_signed(x, (size_t)n);
    if (fabsf(max) < 1e-16f)
        return f;
    float d = -max / t->v[0], id = 1 / d;
    struct gg_kern_fork_sums sum[2];
    add_pass(sum, t, t->v, id, x, w, n);
    if (sum[0].q2 > 0 || !s->guard) {
        f.d = sum[0].qx / sum[0].q2;
        f.best = f.d * sum[0].qx;
    }
    gg_kern_fork_try(&f, sum[1].qx, sum[1].q2);
    for (int k = -s->n_steps; k <= s->n_steps; k++) {
        float step = (float)(k * s->step);
        try_pass(&f, t, false, (step + t->v[0]) / max, x, w, n);
        try_pass(&f, t, true, (step + t->v[t->n]) / max, x, w, n);
    }
    return f;
}

static const uint8_t *number_at(const struct gg_kern_fork_list *list, size_t i)
{
    return list->p + i / list->per * list->stride + i % list->per * 4;
}

static struct gg_kern_fork_sums
scale_sums(const struct gg_kern_fork_list *list,
           const struct gg_kern_fork_scale *s, int n_max)
{
    struct gg_kern_fork_sums sum = { 0, 0 };
    for (size_t i = 0; i < list->n; i++) {
        const uint8_t *p = number_at(list, i);
        float x = gg_kern_fork_load(p), w = gg_kern_fork_load(p + list->w_off);
        float l = (float)gg_kern_fork_code(s, n_max, x);
        sum.qx += w * x * l;
        sum.q2 += w * l * l;
    }
    return sum;
}

struct gg_kern_fork_scale
gg_kern_fork_scale(const struct gg_kern_fork_list *list, int n_max)
{
    struct gg_kern_fork_scale s = { 0, 0 };
    float max = 0;
    for (size_t i = 0; i < list->n; i++) {
        float x = gg_kern_fork_load(number_at(list, i));
        if (fabsf(x) > fabsf(max))
            max = x;
    }
    if (max == 0)
        return s;
    s.inv = (float)-n_max / max;
    struct gg_kern_fork_sums sum = scale_sums(list, &s, n_max);
    struct gg_kern_fork_fit f = { 0, 0, false };
    f.d = sum.q2 != 0 ? sum.qx / sum.q2 : 0;
    f.best = f.d * sum.qx;
    for (int is = -9; is <= 9; is++) {
        struct gg_kern_fork_scale next = {
            0, -((float)n_max + 0.1f * (float)is) / max
        };
        if (is == 0)
            continue;
        sum = scale_sums(list, &next, n_max);
        if (gg_kern_fork_try(&f, sum.qx, sum.q2))
            s.inv = next.inv;
    }
    s.d = f.d;
    return s;
}

void gg_kern_fork_weigh_trellis(float w[256], const float *x,
                                const float *importance)
{
    float sum = 0;
    for (int j = 0; j < 256; j++)
        sum += x[j] * x[j];
    if (sum < 1e-14f * 256) {
        for (int j = 0; j < 256; j++)
            w[j] = 1e-4f;
        return;
    }
    float mean = 2 * sum / 256;
    for (int j = 0; j < 256; j++)
        w[j] = importance ? importance[j] * sqrtf(mean + x[j] * x[j])
                          : 0.25f * mean + x[j] * x[j];
    for (int i = 0; i < 256 && importance; i += 32) {
        float wx = 0, w2 = 0, x2 = 0;
        for (int j = i; j < i + 32; j++) {
            wx += w[j] * fabsf(x[j]);
            w2 += w[j] * w[j];
            x2 += x[j] * x[j];
        }
        for (int j = i; j < i + 32; j++)
            if (wx < 1e-14f || w2 < 1e-14f || x2 < 1e-14f)
                w[j] = 1e-4f;
    }
}
