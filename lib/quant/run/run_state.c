/* SPDX-License-Identifier: MIT */
/* run_state.c - state that the threads of a run share: progress and failures */
#include "config.h"
#include "quant/run/job_run.h"

/* Keep the failure of the lowest chunk. Chunks are taken in order and each is
 * finished, so that the failure is the same for any number of threads. */
void gg_quant_run_fail(struct gg_quant_run *r, uint64_t chunk,
                       const struct gguf_error *err)
{
    pthread_mutex_lock(&r->lock);
    if (r->status == GGUF_OK || chunk < r->err_chunk) {
        r->status = err->status;
        r->err = *err;
        r->err_chunk = chunk;
    }
    pthread_mutex_unlock(&r->lock);
    atomic_store(&r->stop, true);
}

bool gg_quant_run_hold_bytes(struct gg_quant_run *r, size_t i, uint64_t no,
                             uint64_t off, uint64_t size)
{
    struct gguf_error err;
    if (gg_job_hold(r->jobs[0], gg_quant_run_first_tensor(r, i), off, size,
                    &err) == GGUF_OK)
        return true;
    gg_quant_run_fail(r, no, &err);
    return false;
}

bool gg_quant_run_poll_progress(struct gg_quant_run *r, unsigned ith)
{
    const struct gguf_quant_params *p = &r->jobs[0]->p;
    if (!ith && !r->again && p->progress.fn && !atomic_load(&r->cancel) &&
        p->progress.fn(p->progress.user, atomic_load(&r->done), r->total)) {
        struct gguf_error err;
        gg_error_set(&err, GGUF_E_CANCELLED, GGUF_NO_OFFSET, "cancelled");
        gg_quant_run_fail(r, 0, &err);
        atomic_store(&r->cancel, true);
    }
    return atomic_load(&r->cancel);
}

void gg_quant_run_count_nonfinite(struct gg_quant_run *r, size_t i, uint64_t n,
                                  uint64_t first)
{
    struct gg_quant_run_state *s = &r->states[i];
    uint64_t known = atomic_load(&s->first_nonfinite);
    atomic_fetch_add(&s->n_nonfinite, n);
    while (first < known &&
           !atomic_compare_exchange_weak(&s->first_nonfinite, &known, first))
        continue;
}

void gg_quant_run_finish_loss(struct gg_quant_run *r, size_t i)
{
    const struct gg_quant_run_cut *cut = &r->cuts[i];
    size_t n_chunks = (size_t)r->cuts[r->n_t].first;
    for (size_t k = 0; r->losses && k < r->n_jobs; k++) {
        struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
        if (t && !t->pub.copied)
            gg_loss_finish(r->losses + k * n_chunks + cut->first,
                           (size_t)(cut[1].first - cut->first), &t->pub.loss);
    }
}
