/* SPDX-License-Identifier: MIT */
/* stage_text.h - random activations of a stage, and moments of them
 *
 * struct stage_text holds all activations of a text, so that expected values
 * can be computed from them directly, in double precision. */
#ifndef TESTS_CALIBRATE_STAGE_TEXT_H
#define TESTS_CALIBRATE_STAGE_TEXT_H

#include "base/compiler.h"
#include "calibrate/moments.h"
#include "tests/linalg/dense.h"

struct stage_text {
    size_t n_tokens, n_ctx, n,
        m;                    /* m: rows of a matrix, and of the residual */
    size_t n_used, n_experts; /* 0: none */
    bool by_expert;           /* inputs by expert */
    float *x, *xq, *r, *rq;
    int32_t *ids, *ids_q;
    float factor;
};

/* Draw n_used different experts. */
static inline void stage_draw_ids(int32_t *ids, size_t n_used,
                                  size_t n_experts)
{
    for (size_t k = 0; k < n_used; k++) {
        bool again = true;
        while (again) {
            /* the last expert is never used */
            ids[k] = (int32_t)rnd_below(n_experts - 1);
            again = false;
            for (size_t j = 0; j < k; j++)
                again |= ids[j] == ids[k];
        }
    }
}

static inline size_t stage_rows(const struct stage_text *s)
{
    return s->n_tokens * (s->by_expert ? s->n_used : 1);
}

/* Fill a text whose sizes are set. Columns have different sizes and share a
 * common part; Xq is X with noise. */
static inline void stage_fill(struct stage_text *s)
{
    const size_t rows = stage_rows(s);
    s->x = dense_random(rows * s->n);
    s->xq = dense_alloc(rows * s->n, sizeof *s->xq);
    for (size_t i = 0; i < rows * s->n; i++) {
        const size_t col = i % s->n, row = i / s->n;
        s->x[i] = (s->x[i] + s->x[row * s->n]) * (float)(1 + col % 5);
        s->xq[i] = s->x[i] * 0.9f + 0.3f * rnd_f32();
    }
    s->r = dense_random(s->n_tokens * s->m);
    s->rq = dense_alloc(s->n_tokens * s->m, sizeof *s->rq);
    for (size_t i = 0; i < s->n_tokens * s->m; i++)
        s->rq[i] = s->r[i] + 0.2f * s->xq[i / s->m * s->n] * rnd_f32() +
                   0.1f * rnd_f32();
    if (!s->n_used)
        return;
    s->ids = dense_alloc(s->n_tokens * s->n_used, sizeof *s->ids);
    s->ids_q = dense_alloc(s->n_tokens * s->n_used, sizeof *s->ids_q);
    for (size_t t = 0; t < s->n_tokens; t++) {
        stage_draw_ids(s->ids + t * s->n_used, s->n_used, s->n_experts);
        stage_draw_ids(s->ids_q + t * s->n_used, s->n_used, s->n_experts);
    }
}

static inline void stage_free(struct stage_text *s)
{
    free(s->x);
    free(s->xq);
    free(s->r);
    free(s->rq);
    free(s->ids);
    free(s->ids_q);
}

/* Moments of the text in batches of up to `batch` tokens: a product without a
 * residual, and one with. */
static inline struct gg_moments *stage_moments(const struct stage_text *s,
                                               struct gg_linalg *la,
                                               size_t batch, size_t most_rows)
{
    const bool residual = !s->n_used;
    const struct gg_moments_product product[] = {
        { s->m, false, 0 }, { s->m, residual, s->factor }
    };
    struct gg_moments_params p = { .n = s->n,
                                   .product = product,
                                   .n_products = 2,
                                   .n_experts = s->n_experts,
                                   .n_used = s->n_used,
                                   .rows_by_expert = s->by_expert };
    struct gg_moments *m;
    gg_heldout_init(&p.heldout, s->n_tokens, s->n_ctx, most_rows);
    if (gg_moments_create(&m, &p, NULL))
        exit(99);
    const size_t per = s->by_expert ? s->n_used : 1;
    for (size_t t = 0; t < s->n_tokens; t += batch) {
        const float *r[] = { NULL, s->r + t * s->m };
        const float *rq[] = { NULL, s->rq + t * s->m };
        const struct gg_moments_batch b = {
            .first_token = t,
            .n_tokens = GG_MIN(batch, s->n_tokens - t),
            .x = s->x + t * per * s->n,
            .xq = s->xq + t * per * s->n,
            .x_stride = s->n,
            .xq_stride = s->n,
            .ids = s->n_used ? s->ids + t * s->n_used : NULL,
            .ids_q = s->n_used ? s->ids_q + t * s->n_used : NULL,
            .ids_stride = s->n_used,
            .ids_q_stride = s->n_used,
            .r = residual ? r : NULL,
            .rq = residual ? rq : NULL,
            .r_stride = s->m,
            .rq_stride = s->m,
        };
        if (gg_moments_add(m, la, &b, NULL))
            exit(99);
    }
    gg_moments_finish(m, la);
    return m;
}

/* Is a token in the last of eight parts of len tokens? */
static inline bool stage_is_held(const struct stage_text *s, size_t token)
{
    const size_t n_chunks = s->n_tokens / s->n_ctx;
    size_t len = n_chunks >= 8 ? s->n_ctx : s->n_tokens / 8;
    if (!len)
        len = 1;
    return token / len % 8 == 7;
}

/* Row of the original inputs for slot k of a token, or NULL. */
static inline const float *stage_input(const struct stage_text *s,
                                       size_t token, size_t k)
{
    if (!s->by_expert)
        return s->x + token * s->n;
    for (size_t j = 0; j < s->n_used; j++)
        if (s->ids[token * s->n_used + j] == s->ids_q[token * s->n_used + k])
            return s->x + (token * s->n_used + j) * s->n;
    return NULL;
}

static inline struct gguf_pool *stage_pool(unsigned n)
{
    struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
    struct gguf_pool *pool;
    params.n_threads = n;
    if (gguf_pool_create(&pool, &params, NULL))
        exit(99);
    return pool;
}

#endif
