/* SPDX-License-Identifier: MIT */
/* nll.c - negative log-likelihoods of rows of logits */
#include "config.h"
#include "eval/nll.h"

#include "base/error.h"
#include "kern/cpu_features.h"
#include "kern/vec.h"

#include <math.h>
#include <stdatomic.h>

struct job {
    struct gg_vec_kern vec;
    const float *logits;
    size_t n_vocab, n_rows;
    const gguf_token *token;
    double *nll;
    _Atomic size_t next; /* first row that no thread has claimed */
};

static void compute_rows(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    (void)ith;
    (void)nth;
    for (size_t i; (i = atomic_fetch_add_explicit(
                        &j->next, 1, memory_order_relaxed)) < j->n_rows;) {
        const float *row = j->logits + i * j->n_vocab;
        float max = j->vec.max(row, j->n_vocab);
        double sum = j->vec.exp_sum(NULL, row, j->n_vocab, max);
        j->nll[i] = log(sum) + ((double)max - (double)row[j->token[i]]);
    }
}

void gg_nll_rows(struct gguf_pool *pool, const float *logits, size_t n_vocab,
                 size_t n_rows, const gguf_token *token, double *nll)
{
    struct job j = { .logits = logits,
                     .n_vocab = n_vocab,
                     .n_rows = n_rows,
                     .token = token,
                     .nll = nll };
    gg_vec_kern_init(&j.vec, gg_kern_cpu_detect());
    gguf_pool_run(pool, (struct gguf_pool_callback){ compute_rows, &j });
}

enum gguf_status gg_nll_report_nonfinite(const struct gguf_session *session,
                                         struct gguf_pool *pool, size_t chunk,
                                         uint32_t token,
                                         struct gguf_error *err)
{
    struct gguf_error why;
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    job.pool = pool;
    enum gguf_status st =
        gguf_model_check_finite(gguf_session_model(session), &job, &why);
    return gg_error_set(
        err, GGUF_E_NONFINITE,
        st == GGUF_E_NONFINITE ? why.offset : GGUF_NO_OFFSET,
        "chunk %zu: the probability of token %" PRIu32 " is not a number: %s",
        chunk + 1, token,
        st == GGUF_E_NONFINITE ? why.message : "the model's sums overflow");
}
