/* SPDX-License-Identifier: MIT */
/* targets.c - corrected targets and the metric of errors */
#include "config.h"
#include "calibrate/targets.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <stdint.h>
#include <string.h>

/* Damping, as a part of the mean diagonal. Of the metric, .01 and .05 give the
 * same divergence within 2%; of the targets, .03 to .3 do. If rounding makes a
 * factorization fail, the damping grows to the next step. */
static const float metric_damping[] = { 0.01f, 0.1f, 1.0f };
static const float ridge_damping[] = { 0.1f, 1.0f };

static enum gguf_status alloc_matrix(const struct gg_targets *t, float **out,
                                     struct gguf_error *err)
{
    const size_t size = t->n * t->n * sizeof **out;
    *out = gg_mem_alloc(t->allocator, size);
    return *out ? GGUF_OK : gg_error_set_nomem(err, size);
}

/* Copy the elements below the diagonal to those above. */
static void restore_upper(float *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            s[j * n + i] = s[i * n + j];
}

/* Replace the upper part of the symmetric s by R of s + damping mean I. Tries
 * each damping; *used receives the one that worked, 0 if none did. */
static enum gguf_status factor_damped(const struct gg_targets *t,
                                      struct gg_linalg *la, float *s,
                                      const float *damping, size_t n_dampings,
                                      float *used, struct gguf_error *err)
{
    const size_t n = t->n;
    const double mean = gg_moments_mean_diagonal(s, n);
    float *diagonal = gg_mem_alloc(t->allocator, n * sizeof *diagonal);
    enum gguf_status st = GGUF_OK;
    *used = 0;
    if (!diagonal)
        return gg_error_set_nomem(err, n * sizeof *diagonal);
    for (size_t j = 0; j < n; j++)
        diagonal[j] = s[j * n + j];
    for (size_t i = 0; i < n_dampings && *used == 0; i++) {
        if (i)
            restore_upper(s, n);
        for (size_t j = 0; j < n; j++)
            s[j * n + j] =
                (float)((double)diagonal[j] + (double)damping[i] * mean);
        st = gg_linalg_factor_upper(la, s, n, NULL, NULL);
        if (st == GGUF_E_NOMEM) {
            st = gg_error_set_nomem(err, n * n * sizeof *s);
            break;
        }
        if (!st)
            *used = damping[i];
        st = GGUF_OK;
    }
    gg_mem_free(t->allocator, diagonal);
    return st;
}

/* g = R[i][j] / R[j][j], d = R[j][j]^2, from R in g. */
struct scaling {
    float *g;
    const float *root;
    size_t n;
};

static void divide_share(void *user, unsigned ith, unsigned nth)
{
    const struct scaling *s = user;
    for (size_t i = ith; i < s->n; i += nth)
        for (size_t j = i + 1; j < s->n; j++)
            s->g[i * s->n + j] /= s->root[j];
}

static void divide_by_diagonal(struct gg_targets *t, struct gg_linalg *la)
{
    for (size_t j = 0; j < t->n; j++)
        t->d[j] = t->g[j * t->n + j];
    struct scaling s = { t->g, t->d, t->n };
    gguf_pool_run(la->pool, (struct gguf_pool_callback){ divide_share, &s });
    for (size_t j = 0; j < t->n; j++) {
        t->d[j] *= t->d[j];
        t->g[j * t->n + j] = 1;
    }
}

/* Take the moments over, or blend an expert's. */
static enum gguf_status take_moments(struct gg_targets *t,
                                     struct gg_linalg *la,
                                     struct gg_moments *m, size_t expert,
                                     struct gguf_error *err)
{
    if (m->state != GG_MOMENTS_GOOD) {
        t->state = m->state;
        return GGUF_OK;
    }
    if (expert == SIZE_MAX) {
        t->s = m->all.s;
        t->c = m->all.c;
        m->all.s = m->all.c = NULL;
        return GGUF_OK;
    }
    GG_TRY(alloc_matrix(t, &t->s, err));
    GG_TRY(alloc_matrix(t, &t->c, err));
    gg_moments_shrink(m, la, expert, t->s, t->c);
    t->state = gg_moments_check(la, t->s, t->c, t->n, m->all.n_rows);
    return GGUF_OK;
}

static enum gguf_status compute_metric(struct gg_targets *t,
                                       struct gg_linalg *la,
                                       struct gguf_error *err)
{
    GG_TRY(alloc_matrix(t, &t->g, err));
    t->d = gg_mem_alloc(t->allocator, t->n * sizeof *t->d);
    if (!t->d)
        return gg_error_set_nomem(err, t->n * sizeof *t->d);
    memcpy(t->g, t->s, t->n * t->n * sizeof *t->g);
    GG_TRY(factor_damped(t, la, t->g, metric_damping, GG_LEN(metric_damping),
                         &t->damping, err));
    if (t->damping == 0)
        t->state = GG_MOMENTS_SINGULAR;
    else
        divide_by_diagonal(t, la);
    return GGUF_OK;
}

/* Factor for targets, in S itself unless it is kept. */
static enum gguf_status compute_ridge(struct gg_targets *t,
                                      struct gg_linalg *la, bool residual,
                                      struct gguf_error *err)
{
    float used;
    if (t->p.keep_s) {
        GG_TRY(alloc_matrix(t, &t->ridge, err));
        memcpy(t->ridge, t->s, t->n * t->n * sizeof *t->s);
    } else {
        t->ridge = t->s;
        t->s = NULL;
    }
    GG_TRY(factor_damped(t, la, t->ridge, ridge_damping, GG_LEN(ridge_damping),
                         &used, err));
    if (used == 0)
        t->state = GG_MOMENTS_SINGULAR;
    if (used == 0 || t->p.n_rows < 2 * t->n)
        return GGUF_OK;
    t->is_solved = true;
    GG_TRY(gg_linalg_solve_rows(la, t->ridge, t->n, t->c, t->n, err));
    if (!residual) {
        gg_mem_free(t->allocator, t->ridge);
        t->ridge = NULL;
    }
    return GGUF_OK;
}

/* Keep S with the metric's damping, or free it. */
static void finish_s(struct gg_targets *t)
{
    if (!t->p.keep_s) {
        gg_mem_free(t->allocator, t->s);
        t->s = NULL;
        return;
    }
    const double add =
        (double)t->damping * gg_moments_mean_diagonal(t->s, t->n);
    for (size_t j = 0; j < t->n; j++)
        t->s[j * t->n + j] = (float)((double)t->s[j * t->n + j] + add);
}

static bool has_residual(const struct gg_moments *m)
{
    bool has = false;
    for (size_t i = 0; i < m->p.n_products; i++)
        has |= m->d[i] != NULL;
    return has;
}

enum gguf_status gg_targets_create(struct gg_targets **out,
                                   struct gg_linalg *la, struct gg_moments *m,
                                   size_t expert,
                                   const struct gg_targets_params *params,
                                   struct gguf_error *err)
{
    *out = NULL;
    struct gg_targets *t = gg_mem_alloc_zero(m->p.allocator, 1, sizeof *t);
    if (!t)
        return gg_error_set_nomem(err, sizeof *t);
    t->p = *params;
    t->n = m->p.n;
    t->allocator = m->p.allocator;
    t->has_correction = m->differs;
    enum gguf_status st = take_moments(t, la, m, expert, err);
    if (!st && t->state == GG_MOMENTS_GOOD)
        st = compute_metric(t, la, err);
    if (!st && t->state == GG_MOMENTS_GOOD && t->has_correction)
        st = compute_ridge(t, la, has_residual(m), err);
    if (st) {
        gg_targets_destroy(t);
        return st;
    }
    if (t->state == GG_MOMENTS_GOOD)
        finish_s(t);
    *out = t;
    return GGUF_OK;
}

void gg_targets_destroy(struct gg_targets *t)
{
    if (!t)
        return;
    const struct gguf_allocator *a = t->allocator;
    gg_mem_free(a, t->g);
    gg_mem_free(a, t->d);
    gg_mem_free(a, t->s);
    gg_mem_free(a, t->ridge);
    gg_mem_free(a, t->c);
    gg_mem_free(a, t);
}

enum gguf_status gg_targets_correct(const struct gg_targets *t,
                                    struct gg_linalg *la, const float *w,
                                    const float *d, size_t n_rows, float *k,
                                    struct gguf_error *err)
{
    const size_t n = t->n;
    if (d)
        memcpy(k, d, n_rows * n * sizeof *k);
    else
        memset(k, 0, n_rows * n * sizeof *k);
    if (!t->has_correction)
        return GGUF_OK;
    const struct gg_linalg_product p = { .a = { w, n, false },
                                         .b = { t->c, n, false },
                                         .c = k,
                                         .c_stride = n,
                                         .m = n_rows,
                                         .n = n,
                                         .k = n,
                                         .store = GG_LINALG_ADD };
    if (t->is_solved) {
        if (d)
            GG_TRY(gg_linalg_solve_rows(la, t->ridge, n, k, n_rows, err));
        return gg_linalg_multiply(la, &p, err);
    }
    GG_TRY(gg_linalg_multiply(la, &p, err));
    return gg_linalg_solve_rows(la, t->ridge, n, k, n_rows, err);
}

const char *gg_targets_note(enum gg_moments_state state)
{
    switch (state) {
    case GG_MOMENTS_EMPTY: return "no token reaches it";
    case GG_MOMENTS_ZERO: return "its inputs are all zero";
    case GG_MOMENTS_NONFINITE: return "its inputs are not finite";
    case GG_MOMENTS_SINGULAR: return "its inputs' moments are singular";
    case GG_MOMENTS_GOOD: break;
    }
    return NULL;
}
