/* SPDX-License-Identifier: MIT */
/* tune_pass.c - a batch of both models, and gradients: see tune_pass.h */
#include "config.h"
#include "calibrate/tune_pass.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "gguf/session_sequence.h"

#include <math.h>
#include <string.h>

enum gguf_status gg_tune_pass_init(struct gg_tune_pass *t,
                                   const struct gg_tune_pass_params *p,
                                   struct gguf_error *err)
{
    *t = (struct gg_tune_pass){ .p = *p };
    gg_linalg_init(&t->la, p->pool, p->allocator);
    t->divergence =
        gg_mem_alloc_zero(p->allocator, p->most_tokens, sizeof(double));
    if (!t->divergence)
        return gg_error_set_nomem(err, p->most_tokens * sizeof(double));
    GG_TRY(gg_backward_create(&t->backward, p->quantized, err));
    gg_backward_want_inputs(t->backward);
    gg_backward_want_vectors(t->backward);
    return GGUF_OK;
}

void gg_tune_pass_fini(struct gg_tune_pass *t)
{
    gg_backward_destroy(t->backward);
    gg_mem_free(t->p.allocator, t->divergence);
    gg_linalg_fini(&t->la);
}

enum gguf_status gg_tune_pass_check(struct gg_tune_pass *t,
                                    const struct gguf_batch *batch,
                                    struct gguf_error *err)
{
    return gg_backward_check(t->backward, batch, err);
}

/* ---- the divergence ---- */

struct rows {
    struct gg_tune_pass *t;
    const float *p, *q; /* logits of the original and the quantized model */
    float *seed;
    size_t first, n, n_vocab;
};

static double log_sum_exp(const float *x, size_t n)
{
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    return max + log(sum);
}

/* Divergence of a row, and its gradient by the logits y: q - p. */
static double compare_row(const float *x, const float *y, float *seed,
                          size_t n, double weight)
{
    const double nx = log_sum_exp(x, n), ny = log_sum_exp(y, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double lp = (double)x[i] - nx, lq = (double)y[i] - ny;
        const double p = exp(lp);
        seed[i] = (float)(weight * (exp(lq) - p));
        if (p > 0)
            sum += p * (lp - lq);
    }
    return weight * sum;
}

static void compare_share(void *user, unsigned ith, unsigned nth)
{
    const struct rows *r = user;
    const size_t n = r->n_vocab;
    for (size_t i = ith; i < r->n; i += nth) {
        double *to = &r->t->divergence[r->first + i];
        float *seed = r->seed + i * n;
        if (r->t->used && !r->t->used[r->first + i]) {
            memset(seed, 0, n * sizeof *seed);
            *to = 0;
            continue;
        }
        *to = compare_row(r->p + i * n, r->q + i * n, seed, n, r->t->weight);
    }
}

static enum gguf_status take_logits(void *user, size_t first, size_t n,
                                    size_t n_vocab, const float *logits,
                                    float *seed, struct gguf_error *err)
{
    struct gg_tune_pass *t = user;
    const size_t most = gguf_session_max_logits(t->p.original);
    for (size_t i = 0, some; i < n; i += some) {
        struct rows r = { .t = t,
                          .q = logits + i * n_vocab,
                          .seed = seed + i * n_vocab,
                          .first = first + i,
                          .n_vocab = n_vocab };
        r.n = some = GG_MIN(most, n - i);
        GG_TRY(gguf_session_logits(t->p.original, first + i, some, &r.p, err));
        gguf_pool_run(t->p.pool,
                      (struct gguf_pool_callback){ compare_share, &r });
    }
    return GGUF_OK;
}

/* ---- gradients ---- */

static struct gg_tune_tensor *find_tensor(const struct gg_tune_pass *t,
                                          const struct gguf_tensor *weight)
{
    for (size_t i = 0; i < t->p.n_tensors; i++)
        if (t->p.tensor[i].weight == weight)
            return &t->p.tensor[i];
    return NULL;
}

static enum gguf_status take_gradient(void *user,
                                      const struct gg_backward_gradient *g,
                                      struct gguf_error *err)
{
    struct gg_tune_pass *t = user;
    struct gg_tune_tensor *to = find_tensor(t, g->weight);
    return to ? gg_tune_tensor_add(to, &t->la, g, err) : GGUF_OK;
}

enum gguf_status gg_tune_pass_run(struct gg_tune_pass *t,
                                  const struct gguf_batch *batch,
                                  const bool *used, double weight, double *sum,
                                  struct gguf_error *err)
{
    const struct gg_backward_calls calls = { take_logits, take_gradient, t };
    *sum = 0;
    t->used = used;
    t->weight = weight;
    GG_TRY(gguf_session_clear(t->p.original, err));
    GG_TRY(gguf_session_decode(t->p.original, batch, err));
    GG_TRY(gg_backward_run(t->backward, batch, &calls, err));
    for (size_t i = 0; i < batch->n; i++)
        *sum += t->divergence[i];
    return GGUF_OK;
}

bool gg_tune_pass_step(struct gg_tune_pass *t, double rate_blocks,
                       double rate_vectors)
{
    bool good = true;
    for (size_t i = 0; i < t->p.n_tensors; i++) {
        struct gg_tune_tensor *x = &t->p.tensor[i];
        gg_tune_tensor_step(x, t->p.pool,
                            x->form ? rate_blocks : rate_vectors);
        good = good && !x->bad;
    }
    return good;
}
