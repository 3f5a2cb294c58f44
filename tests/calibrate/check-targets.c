/* SPDX-License-Identifier: MIT */
/* check-targets.c - corrected targets and metrics against their definitions */
#include "config.h"
#include "calibrate/targets.h"
#include "tests/calibrate/stage_text.h"

#include <float.h>

/* A text, its moments and targets. */
struct stage {
    struct stage_text text;
    struct gg_linalg la;
    struct gg_moments *m;
    struct gg_targets *t;
};

static void make_targets(struct stage *s, size_t expert, size_t n_rows,
                         bool keep_s)
{
    const struct gg_targets_params p = { .n_rows = n_rows, .keep_s = keep_s };
    gg_linalg_init(&s->la, NULL, NULL);
    s->m = stage_moments(&s->text, &s->la, 100, 10);
    if (gg_targets_create(&s->t, &s->la, s->m, expert, &p, NULL))
        exit(99);
}

static void free_targets(struct stage *s)
{
    gg_targets_destroy(s->t);
    gg_moments_destroy(s->m);
    gg_linalg_fini(&s->la);
}

/* ------------------------------------------------------------ targets --- */

/* Mean of the diagonal of Xq'Xq over the tokens that are not held out. */
static double mean_square(const struct stage_text *s)
{
    double sum = 0;
    size_t n_rows = 0;
    for (size_t t = 0; t < s->n_tokens; t++) {
        if (stage_is_held(s, t))
            continue;
        n_rows++;
        for (size_t i = 0; i < s->n; i++)
            sum += pow((double)s->xq[t * s->n + i], 2);
    }
    return sum / (double)n_rows / (double)s->n;
}

/* Gradient of half the mean square of W x + (r - rq) / f - T xq plus half of
 * ridge |T - W|^2 for row w of W, whose target is w + k. */
static void compute_gradient(const struct stage_text *s, const float *w,
                             const double *k, size_t row, bool residual,
                             double *gradient)
{
    const double ridge = 0.1 * mean_square(s);
    size_t n_rows = 0;
    for (size_t i = 0; i < s->n; i++)
        gradient[i] = 0;
    for (size_t t = 0; t < s->n_tokens; t++) {
        if (stage_is_held(s, t))
            continue;
        const float *x = s->x + t * s->n, *q = s->xq + t * s->n;
        double e = 0;
        n_rows++;
        for (size_t i = 0; i < s->n; i++)
            e += (double)w[i] * (double)x[i] -
                 ((double)w[i] + k[i]) * (double)q[i];
        if (residual)
            e += ((double)s->r[t * s->m + row] -
                  (double)s->rq[t * s->m + row]) /
                 (double)s->factor;
        for (size_t i = 0; i < s->n; i++)
            gradient[i] -= e * (double)q[i];
    }
    for (size_t i = 0; i < s->n; i++)
        gradient[i] = gradient[i] / (double)n_rows + ridge * k[i];
}

static double norm(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Is the gradient zero at the targets? n_rows: rows that are announced, which
 * choose one of two ways. */
static void check_gradient(bool residual, size_t n_rows, bool keep_s)
{
    struct stage s = { .text = { .n_tokens = 900,
                                 .n_ctx = 50,
                                 .n = 45,
                                 .m = 12,
                                 .factor = 0.5f } };
    const size_t n = s.text.n, m = s.text.m;
    stage_fill(&s.text);
    make_targets(&s, SIZE_MAX, n_rows, keep_s);
    float *w = dense_random(m * n), *k = dense_alloc(m * n, sizeof *k);
    float *last = dense_alloc(n, sizeof *last);
    const float *d = residual ? s.m->d[1] : NULL;
    double worst = 0, at[64], zero[64] = { 0 }, gradient[64];
    const bool done = s.t->state == GG_MOMENTS_GOOD && s.t->has_correction &&
                      !gg_targets_correct(s.t, &s.la, w, d, m, k, NULL);
    for (size_t row = 0; row < m; row++) {
        for (size_t i = 0; i < n; i++)
            at[i] = (double)k[row * n + i];
        compute_gradient(&s.text, w + row * n, zero, row, residual, gradient);
        const double start = norm(gradient, n);
        compute_gradient(&s.text, w + row * n, at, row, residual, gradient);
        worst = fmax(worst, norm(gradient, n) / start);
    }
    ok(done && s.t->is_solved == (n_rows >= 2 * n) && worst <= 1e-5,
       "the gradient is zero at the targets%s, %zu rows: %.2g of that at W",
       residual ? " with residual" : "", n_rows, worst);
    ok(!gg_targets_correct(s.t, &s.la, w + (m - 1) * n,
                           d ? d + (m - 1) * n : NULL, 1, last, NULL) &&
           !memcmp(last, k + (m - 1) * n, n * sizeof *k),
       "a row by itself gives the same bits");
    ok((s.t->s != NULL) == keep_s, "S is kept if it is wanted");
    free(w);
    free(k);
    free(last);
    free_targets(&s);
    stage_free(&s.text);
}

/* -------------------------------------------------------------- metric --- */

/* e' (S + .01 d I) e of the tokens that are not held out, directly. */
static double direct_error(const struct stage_text *s, const double *e,
                           double damping)
{
    double sum = 0, squares = 0;
    size_t n_rows = 0;
    for (size_t t = 0; t < s->n_tokens; t++) {
        if (stage_is_held(s, t))
            continue;
        double dot = 0;
        n_rows++;
        for (size_t i = 0; i < s->n; i++)
            dot += e[i] * (double)s->xq[t * s->n + i];
        sum += dot * dot;
    }
    for (size_t i = 0; i < s->n; i++)
        squares += e[i] * e[i];
    return sum / (double)n_rows + damping * mean_square(s) * squares;
}

/* Error of e by the metric: columns with feedback. */
static double metric_error(const struct gg_targets *t, const double *e)
{
    const size_t n = t->n;
    double sum = 0;
    for (size_t j = 0; j < n; j++) {
        double x = e[j];
        for (size_t i = 0; i < j; i++)
            x += e[i] * (double)t->g[i * n + j];
        sum += (double)t->d[j] * x * x;
    }
    return sum;
}

static double kept_error(const struct gg_targets *t, const double *e)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        for (size_t j = 0; j < t->n; j++)
            sum += e[i] * e[j] * (double)t->s[i * t->n + j];
    return sum;
}

static void check_metric(void)
{
    struct stage s = {
        .text = { .n_tokens = 500, .n_ctx = 50, .n = 60, .m = 3, .factor = 1 }
    };
    double worst = 0, kept = 0, e[64];
    stage_fill(&s.text);
    /* a dead column */
    for (size_t t = 0; t < s.text.n_tokens; t++)
        s.text.xq[t * s.text.n + 7] = 0;
    make_targets(&s, SIZE_MAX, 1, true);
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < s.text.n; i++)
            e[i] = round == 0 ? i == 7 : (double)rnd_f32();
        const double want = direct_error(&s.text, e, 0.01);
        worst = fmax(worst, fabs(metric_error(s.t, e) / want - 1));
        kept = fmax(kept, fabs(kept_error(s.t, e) / want - 1));
    }
    ok(s.t->state == GG_MOMENTS_GOOD && s.t->damping == 0.01f && worst <= 1e-5,
       "the metric is the error of outputs, with a dead column: within %.2g",
       worst);
    ok(kept <= 1e-5, "so is the S that is kept: within %.2g", kept);
    float w[64], k[64];
    for (size_t i = 0; i < s.text.n; i++)
        w[i] = rnd_f32();
    ok(!gg_targets_correct(s.t, &s.la, w, NULL, 1, k, NULL) && k[7] == 0 &&
           k[8] != 0,
       "a dead column is not corrected");
    free_targets(&s);
    stage_free(&s.text);
}

/* -------------------------------------------------------------- states --- */

static void check_state(struct stage *s, enum gg_moments_state state,
                        const char *what)
{
    make_targets(s, SIZE_MAX, 1, false);
    ok(s->t->state == state &&
           (gg_targets_note(state) != NULL) == (state != GG_MOMENTS_GOOD),
       "%s: %s", what,
       state == GG_MOMENTS_GOOD ? "good" : gg_targets_note(state));
    free_targets(s);
}

static void check_states(void)
{
    struct stage s = {
        .text = { .n_tokens = 64, .n_ctx = 8, .n = 12, .m = 2, .factor = 1 }
    };
    const size_t n = s.text.n;
    float w[12] = { 1, 2, 3 }, k[12] = { 5 };
    stage_fill(&s.text);
    s.text.n_tokens = 1;
    check_state(&s, GG_MOMENTS_GOOD, "one token");
    s.text.n_tokens = 0;
    check_state(&s, GG_MOMENTS_EMPTY, "no token");
    s.text.n_tokens = 64;
    for (size_t i = 0; i < s.text.n_tokens * n; i++)
        s.text.x[i] = s.text.xq[i] = s.text.xq[i % n];
    check_state(&s, GG_MOMENTS_GOOD, "one token, repeated");
    memcpy(s.text.rq, s.text.r, s.text.n_tokens * s.text.m * sizeof(float));
    make_targets(&s, SIZE_MAX, 1, false);
    ok(!s.t->has_correction &&
           !gg_targets_correct(s.t, &s.la, w, NULL, 1, k, NULL) && k[0] == 0,
       "equal inputs need no correction");
    free_targets(&s);
    s.text.xq[5] = NAN;
    check_state(&s, GG_MOMENTS_NONFINITE, "NaN");
    memset(s.text.xq, 0, s.text.n_tokens * n * sizeof(float));
    check_state(&s, GG_MOMENTS_ZERO, "zero");
    stage_free(&s.text);
}

/* Moments that no text has: not positive definite until the damping grows, or
 * with every damping. */
static void check_damping(void)
{
    struct stage s = {
        .text = { .n_tokens = 64, .n_ctx = 8, .n = 3, .m = 2, .factor = 1 }
    };
    const struct gg_targets_params p = { .n_rows = 1 };
    stage_fill(&s.text);
    for (unsigned round = 0; round < 2; round++) {
        const float off = round ? 5.0f : 1.05f;
        gg_linalg_init(&s.la, NULL, NULL);
        s.m = stage_moments(&s.text, &s.la, 64, 4);
        for (size_t i = 0; i < 9; i++)
            s.m->all.s[i] = i % 4 == 0 ? 1.0f : i == 2 || i == 6 ? off : 0;
        if (gg_targets_create(&s.t, &s.la, s.m, SIZE_MAX, &p, NULL))
            exit(99);
        if (round)
            ok(s.t->state == GG_MOMENTS_SINGULAR, "moments are refused: %s",
               gg_targets_note(s.t->state));
        else
            ok(s.t->state == GG_MOMENTS_GOOD && s.t->damping == 0.1f &&
                   fabsf(s.t->d[2] - 1.1f) < 1e-6f &&
                   fabsf(s.t->g[2] - 1.05f / 1.1f) < 1e-6f,
               "the damping grows until the moments can be factored");
        free_targets(&s);
    }
    stage_free(&s.text);
}

static void check_expert(void)
{
    struct stage s = { .text = { .n_tokens = 200,
                                 .n_ctx = 20,
                                 .n = 16,
                                 .m = 4,
                                 .n_used = 2,
                                 .n_experts = 4,
                                 .factor = 1 } };
    const size_t n = s.text.n;
    float w[16] = { 1, 2, 3 }, k[16];
    stage_fill(&s.text);
    make_targets(&s, 3, 1, true); /* has no rows */
    bool zero = true, same = true;
    const bool done = !gg_targets_correct(s.t, &s.la, w, NULL, 1, k, NULL);
    for (size_t i = 0; i < n; i++)
        zero &= k[i] == 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            same &= i == j ||
                    fabsf(s.t->s[i * n + j] - s.m->all.s[i * n + j]) < 1e-5f;
    ok(done && s.t->state == GG_MOMENTS_GOOD && zero && same,
       "an expert without rows has the layer's metric and no correction");
    free_targets(&s);
    stage_free(&s.text);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    check_gradient(false, 12, false);
    check_gradient(false, 100, true);
    check_gradient(true, 12, true);
    check_gradient(true, 100, false);
    check_metric();
    check_states();
    check_damping();
    check_expert();
    return done_testing();
}
