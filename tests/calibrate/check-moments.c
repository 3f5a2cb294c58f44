/* SPDX-License-Identifier: MIT */
/* check-moments.c - moments of a stage against sums in double precision */
#include "config.h"
#include "tests/calibrate/stage_text.h"

#include <float.h>

/* ------------------------------------------------- tokens held out --- */

static void check_heldout(size_t n_tokens, size_t n_ctx, size_t most)
{
    struct gg_heldout h;
    const struct stage_text s = { .n_tokens = n_tokens, .n_ctx = n_ctx };
    size_t n_held = 0, n_rows = 0;
    bool good = true, in_order = true;
    gg_heldout_init(&h, n_tokens, n_ctx, most);
    for (size_t t = 0; t < n_tokens; t++) {
        const bool held = stage_is_held(&s, t);
        const size_t row = gg_heldout_row(&h, t);
        good &= held == gg_heldout_has(&h, t);
        good &= held || row == SIZE_MAX;
        if (row != SIZE_MAX) {
            /* one token of each run */
            in_order &= row == n_rows && n_held >= row * h.n_held / h.n_rows &&
                        n_held < (row + 1) * h.n_held / h.n_rows;
            n_rows++;
        }
        n_held += held;
    }
    ok(good && h.n_held == n_held && !gg_heldout_has(&h, n_tokens),
       "%zu tokens in chunks of %zu: %zu are held out", n_tokens, n_ctx,
       n_held);
    ok(in_order && n_rows == h.n_rows && n_rows == GG_MIN(n_held, most),
       "%zu of them are kept, one of each run", n_rows);
}

/* First tokens of chunks are kept as often as others. */
static void check_first_tokens(void)
{
    enum { CHUNK = 64, CHUNKS = 8 * 256 };
    struct gg_heldout h;
    size_t count[CHUNK] = { 0 }, least = SIZE_MAX, most = 0;
    gg_heldout_init(&h, CHUNK * CHUNKS, CHUNK, 2048);
    for (size_t t = 0; t < CHUNK * CHUNKS; t++)
        count[t % CHUNK] += gg_heldout_row(&h, t) != SIZE_MAX;
    for (size_t i = 0; i < CHUNK; i++) {
        least = GG_MIN(least, count[i]);
        most = GG_MAX(most, count[i]);
    }
    ok(least >= 24 && most <= 40,
       "each place of 256 chunks is kept %zu to %zu times, 32 on average",
       least, most);
}

/* ---------------------------------------------------- sums and means --- */

/* Is each element of a within the bound for sums in any order, times a few
 * roundings of the mean? want and size: sums of products and magnitudes. */
static bool is_near(const float *a, const double *want, const double *size,
                    size_t n, size_t n_rows)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - want[i]) <=
              ((double)n_rows + 4) * FLT_EPSILON * size[i]))
            return false;
    return true;
}

/* Expected sums in double precision. */
struct sums {
    double *s, *c, *d; /* n x n, n x n, m x n */
    double *s_size, *c_size, *d_size;
    size_t n_rows;
};

static struct sums sums_create(size_t n, size_t m)
{
    struct sums w;
    w.n_rows = 0;
    w.s = dense_alloc(n * n, sizeof(double));
    w.c = dense_alloc(n * n, sizeof(double));
    w.d = dense_alloc(m * n, sizeof(double));
    w.s_size = dense_alloc(n * n, sizeof(double));
    w.c_size = dense_alloc(n * n, sizeof(double));
    w.d_size = dense_alloc(m * n, sizeof(double));
    return w;
}

static void sums_free(struct sums *w)
{
    free(w->s);
    free(w->c);
    free(w->d);
    free(w->s_size);
    free(w->c_size);
    free(w->d_size);
}

static void add_row(struct sums *w, const struct stage_text *s, size_t token,
                    size_t k)
{
    const size_t n = s->n;
    const float *x = stage_input(s, token, k);
    const float *q =
        s->xq + (s->by_expert ? token * s->n_used + k : token) * n;
    w->n_rows++;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const double c =
                x ? ((double)x[i] - (double)q[i]) * (double)q[j] : 0;
            w->s[i * n + j] += (double)q[i] * (double)q[j];
            w->s_size[i * n + j] += fabs((double)q[i] * (double)q[j]);
            w->c[i * n + j] += c;
            /* X - Xq is rounded before it is multiplied. */
            w->c_size[i * n + j] += fabs(c);
        }
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < n; j++) {
            const double d = ((double)s->r[token * s->m + i] -
                              (double)s->rq[token * s->m + i]) *
                             (double)q[j] / (double)s->factor;
            w->d[i * n + j] += d;
            w->d_size[i * n + j] += fabs(d);
        }
}

static void divide_sums(struct sums *w, size_t n, size_t m, double by)
{
    for (size_t i = 0; i < n * n; i++) {
        w->s[i] /= by;
        w->s_size[i] /= by;
        w->c[i] /= by;
        w->c_size[i] /= by;
    }
    for (size_t i = 0; i < m * n; i++) {
        w->d[i] /= by;
        w->d_size[i] /= by;
    }
}

/* All rows that are not held out. */
static struct sums all_rows(const struct stage_text *s)
{
    struct sums w = sums_create(s->n, s->m);
    for (size_t t = 0; t < s->n_tokens; t++)
        for (size_t k = 0; k < (s->by_expert ? s->n_used : 1); k++)
            if (!stage_is_held(s, t))
                add_row(&w, s, t, k);
    divide_sums(&w, s->n, s->m, (double)w.n_rows);
    return w;
}

static void check_dense(struct gguf_pool *pool)
{
    struct stage_text s = {
        .n_tokens = 1000, .n_ctx = 60, .n = 37, .m = 20, .factor = 0.25f
    };
    struct gg_linalg la, alone;
    stage_fill(&s);
    gg_linalg_init(&la, pool, NULL);
    gg_linalg_init(&alone, NULL, NULL);
    struct gg_moments *m = stage_moments(&s, &la, 130, 50);
    struct gg_moments *one = stage_moments(&s, &alone, 130, 50);
    struct sums w = all_rows(&s);
    const size_t nn = s.n * s.n;
    ok(m->state == GG_MOMENTS_GOOD && m->differs && m->all.n_rows == w.n_rows,
       "%zu rows are summed", w.n_rows);
    ok(is_near(m->all.s, w.s, w.s_size, nn, w.n_rows), "S");
    ok(is_near(m->all.c, w.c, w.c_size, nn, w.n_rows), "C");
    ok(!m->d[0] && is_near(m->d[1], w.d, w.d_size, s.m * s.n, w.n_rows), "D");
    ok(!memcmp(m->all.s, one->all.s, nn * sizeof(float)) &&
           !memcmp(m->all.c, one->all.c, nn * sizeof(float)) &&
           !memcmp(m->d[1], one->d[1], s.m * s.n * sizeof(float)),
       "one thread gives the same bits");
    bool kept = m->n_kept == 50;
    for (size_t t = 0; t < s.n_tokens; t++) {
        const size_t row = gg_heldout_row(&m->p.heldout, t);
        for (size_t i = 0; row != SIZE_MAX && i < s.n; i++) {
            const float *x = s.x + t * s.n, *q = s.xq + t * s.n;
            kept &= m->xq[row * s.n + i] == q[i];
            kept &= m->dx[row * s.n + i] == x[i] - q[i];
        }
        for (size_t i = 0; row != SIZE_MAX && i < s.m; i++)
            kept &= m->dr[1][row * s.m + i] ==
                    (s.r[t * s.m + i] - s.rq[t * s.m + i]) * 4;
    }
    ok(kept, "rows held out are kept");
    sums_free(&w);
    gg_moments_destroy(m);
    gg_moments_destroy(one);
    stage_free(&s);
    gg_linalg_fini(&la);
    gg_linalg_fini(&alone);
}

/* ------------------------------------------------------------ experts --- */

/* Rows that are sent to an expert, and are not held out. */
static struct sums expert_rows(const struct stage_text *s, size_t expert)
{
    struct sums w = sums_create(s->n, s->m);
    for (size_t t = 0; t < s->n_tokens; t++)
        for (size_t k = 0; k < s->n_used; k++)
            if (!stage_is_held(s, t) &&
                s->ids_q[t * s->n_used + k] == (int32_t)expert)
                add_row(&w, s, t, k);
    return w;
}

static void check_experts(struct gguf_pool *pool, bool by_expert)
{
    struct stage_text s = { .n_tokens = 300,
                            .n_ctx = 30,
                            .n = 24,
                            .m = 5,
                            .n_used = 2,
                            .n_experts = 5,
                            .factor = 1,
                            .by_expert = by_expert };
    struct gg_linalg la;
    const char *what = by_expert ? "inputs by expert" : "shared inputs";
    stage_fill(&s);
    gg_linalg_init(&la, pool, NULL);
    struct gg_moments *m = stage_moments(&s, &la, 70, 20);
    struct sums all = all_rows(&s);
    const size_t nn = s.n * s.n;
    float *got_s = dense_alloc(nn, sizeof *got_s);
    float *got_c = dense_alloc(nn, sizeof *got_c);
    ok(is_near(m->all.s, all.s, all.s_size, nn, all.n_rows) &&
           is_near(m->all.c, all.c, all.c_size, nn, all.n_rows),
       "%s: sums of all %zu rows", what, all.n_rows);
    for (size_t e = 0; e < s.n_experts; e++) {
        struct sums w = expert_rows(&s, e);
        const double k = (double)s.n / 4, total = (double)w.n_rows + k;
        for (size_t i = 0; i < nn; i++) {
            w.s[i] += k * all.s[i];
            w.s_size[i] += k * all.s_size[i];
        }
        divide_sums(&w, s.n, s.m, total);
        gg_moments_shrink(m, &la, e, got_s, got_c);
        ok(m->expert[e].n_rows == w.n_rows &&
               is_near(got_s, w.s, w.s_size, nn, s.n_tokens) &&
               is_near(got_c, w.c, w.c_size, nn, s.n_tokens),
           "%s: expert %zu, %zu rows", what, e, w.n_rows);
        sums_free(&w);
    }
    /* The last expert has no rows. */
    bool same = true;
    for (size_t i = 0; i < nn; i++)
        same &= got_c[i] == 0 &&
                fabsf(got_s[i] - m->all.s[i]) <= 1e-6f * fabsf(got_s[i]);
    ok(same, "%s: an expert without rows has the layer's moments", what);
    free(got_s);
    free(got_c);
    sums_free(&all);
    gg_moments_destroy(m);
    stage_free(&s);
    gg_linalg_fini(&la);
}

/* Experts from the second on. */
static void check_range(void)
{
    struct stage_text s = { .n_tokens = 100,
                            .n_ctx = 100,
                            .n = 8,
                            .m = 2,
                            .n_used = 2,
                            .n_experts = 5,
                            .factor = 1 };
    struct gg_linalg la;
    stage_fill(&s);
    gg_linalg_init(&la, NULL, NULL);
    struct gg_moments *m = stage_moments(&s, &la, 100, 20), *some;
    struct gg_moments_params p = m->p;
    p.first_expert = 1;
    p.n_experts = 2;
    if (gg_moments_create(&some, &p, NULL))
        exit(99);
    const struct gg_moments_batch b = { .n_tokens = s.n_tokens,
                                        .x = s.x,
                                        .xq = s.xq,
                                        .x_stride = s.n,
                                        .xq_stride = s.n,
                                        .ids = s.ids,
                                        .ids_q = s.ids_q,
                                        .ids_stride = s.n_used,
                                        .ids_q_stride = s.n_used };
    ok(!gg_moments_add(some, &la, &b, NULL) &&
           !memcmp(some->expert[1].s, m->expert[2].s,
                   s.n * s.n * sizeof(float)),
       "a pass over some experts has their sums");
    gg_moments_destroy(some);
    gg_moments_destroy(m);
    stage_free(&s);
    gg_linalg_fini(&la);
}

/* ------------------------------------------------------------- states --- */

static enum gg_moments_state state_of(const struct stage_text *s)
{
    struct gg_linalg la;
    gg_linalg_init(&la, NULL, NULL);
    struct gg_moments *m = stage_moments(s, &la, 32, 10);
    const enum gg_moments_state state = m->state;
    gg_moments_destroy(m);
    gg_linalg_fini(&la);
    return state;
}

static void check_states(void)
{
    struct stage_text s = {
        .n_tokens = 64, .n_ctx = 8, .n = 6, .m = 3, .factor = 1
    };
    struct gg_linalg la;
    stage_fill(&s);
    s.x[13] = NAN;
    ok(state_of(&s) == GG_MOMENTS_NONFINITE, "NaN in X");
    s.x[13] = 1;
    s.xq[20] = INFINITY;
    ok(state_of(&s) == GG_MOMENTS_NONFINITE, "infinity in Xq");
    s.xq[20] = 1e25f;
    ok(state_of(&s) == GG_MOMENTS_NONFINITE, "an overflow of S");
    s.xq[20] = 1;
    s.rq[4] = NAN;
    ok(state_of(&s) == GG_MOMENTS_NONFINITE, "NaN in a residual");
    s.rq[4] = 0;
    ok(state_of(&s) == GG_MOMENTS_GOOD, "numbers");
    memset(s.xq, 0, s.n_tokens * s.n * sizeof *s.xq);
    ok(state_of(&s) == GG_MOMENTS_ZERO, "inputs that are all zero");
    s.n_tokens = 0;
    ok(state_of(&s) == GG_MOMENTS_EMPTY, "no token");
    s.n_tokens = 64;
    gg_linalg_init(&la, NULL, NULL);
    memcpy(s.xq, s.x, s.n_tokens * s.n * sizeof *s.x);
    memcpy(s.rq, s.r, s.n_tokens * s.m * sizeof *s.r);
    struct gg_moments *m = stage_moments(&s, &la, 32, 10);
    ok(!m->differs, "equal inputs do not differ");
    gg_moments_destroy(m);
    gg_moments_destroy(NULL);
    gg_linalg_fini(&la);
    stage_free(&s);
    struct gg_moments_params p = { .n = SIZE_MAX / 2 };
    struct gguf_error err;
    ok(gg_moments_create(&m, &p, &err) == GGUF_E_OVERFLOW && !m,
       "sizes that no memory holds: %s", err.message);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    struct gguf_pool *pool = stage_pool(3);
    check_heldout(0, 512, 10);
    check_heldout(1, 512, 10);
    check_heldout(7, 1, 10);
    check_heldout(8, 512, 10);
    check_heldout(100, 512, 10);
    check_heldout(16 * 5, 5, 100);
    check_heldout(23 * 5 + 3, 5, 3);
    check_heldout(1000, 10, 37);
    check_heldout(100 * 512, 512, 2048);
    check_first_tokens();
    check_dense(pool);
    check_experts(pool, false);
    check_experts(pool, true);
    check_range();
    check_states();
    gguf_pool_destroy(pool);
    return done_testing();
}
