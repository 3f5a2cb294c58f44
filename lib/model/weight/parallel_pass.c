/* SPDX-License-Identifier: MIT */
/* parallel_pass.c - one thing done to all bytes of many items, on a pool */
#include "config.h"
#include "model/weight/parallel_pass.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "base/params.h"

#include <stdatomic.h>

struct piece {
    size_t item;
    uint64_t off, size;
};

/* Failure of a thread. Threads take pieces in order, so the first failure of a
 * thread is its only one. */
struct failure {
    size_t at; /* SIZE_MAX: none */
    struct gguf_error err;
};

struct run {
    const struct gg_parallel_pass *w;
    struct piece *piece;
    struct failure *failure; /* [number of threads] */
    size_t n;
    uint64_t total;
    /* These order no other memory: waiting for the pool makes the threads'
     * writes visible. */
    _Atomic size_t next;   /* next piece to take */
    _Atomic size_t stop;   /* first piece that need not be done */
    _Atomic uint64_t done; /* bytes */
    bool cancelled;        /* written by the first thread only */
};

enum gguf_status gg_parallel_pass_take_job(struct gguf_model_job *own,
                                           const struct gguf_model_job *given,
                                           struct gguf_error *err)
{
    *own = (struct gguf_model_job)GGUF_MODEL_JOB_INIT;
    return gg_params_take(own, sizeof *own, given, "gguf_model_job", err);
}

static uint64_t piece_of(const struct gg_parallel_pass *w,
                         const struct gg_parallel_pass_item *item)
{
    return GG_MAX(w->piece / item->step, UINT64_C(1)) * item->step;
}

/* The pieces of all items; out NULL: only their number. */
static size_t cut_items(const struct gg_parallel_pass *w,
                        const struct gg_parallel_pass_item *items,
                        size_t n_items, struct piece *out)
{
    size_t n = 0;
    for (size_t i = 0; i < n_items; i++) {
        const uint64_t most = piece_of(w, &items[i]);
        for (uint64_t off = 0; off < items[i].size; n++) {
            const uint64_t size = GG_MIN(items[i].size - off, most);
            if (out)
                out[n] = (struct piece){ i, off, size };
            off += size;
        }
    }
    return n;
}

static void stop_after(struct run *r, size_t at)
{
    size_t old = atomic_load_explicit(&r->stop, memory_order_relaxed);
    while (at < old &&
           !atomic_compare_exchange_weak_explicit(
               &r->stop, &old, at, memory_order_relaxed, memory_order_relaxed))
        ; /* old is fresh */
}

/* The first thread is the caller's: it reports. */
static void report_progress(struct run *r)
{
    const struct gguf_model_job *job = r->w->job;
    const uint64_t done = atomic_load_explicit(&r->done, memory_order_relaxed);
    if (r->cancelled || !job->progress.fn ||
        !job->progress.fn(job->progress.user, done, r->total))
        return;
    r->cancelled = true;
    stop_after(r, 0);
}

static void work_thread(void *user, unsigned ith, unsigned nth)
{
    struct run *r = user;
    struct failure *f = &r->failure[ith];
    (void)nth;
    f->at = SIZE_MAX;
    for (;;) {
        const size_t k =
            atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);
        if (k >= atomic_load_explicit(&r->stop, memory_order_relaxed))
            return;
        const struct piece *p = &r->piece[k];
        if (r->w->fn(r->w->user, ith, p->item, p->off, p->size, &f->err)) {
            f->at = k;
            stop_after(r, k);
            return;
        }
        atomic_fetch_add_explicit(&r->done, p->size, memory_order_relaxed);
        if (ith == 0)
            report_progress(r);
    }
}

/* Result of all threads. */
static enum gguf_status result_of_run(struct run *r, unsigned n_threads,
                                      struct gguf_error *err)
{
    const struct failure *first = &r->failure[0];
    for (unsigned i = 1; i < n_threads; i++)
        if (r->failure[i].at < first->at)
            first = &r->failure[i];
    if (first->at != SIZE_MAX) {
        if (err)
            *err = first->err;
        return first->err.status;
    }
    if (!r->cancelled)
        report_progress(r); /* includes the last pieces of other threads */
    return r->cancelled ? gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                       "cancelled")
                        : GGUF_OK;
}

enum gguf_status
gg_parallel_pass_run(const struct gg_parallel_pass *w,
                     const struct gg_parallel_pass_item *items, size_t n,
                     struct gguf_error *err)
{
    const unsigned n_threads = gguf_pool_n_threads(w->job->pool);
    struct run r = { .w = w, .n = cut_items(w, items, n, NULL) };
    enum gguf_status st;
    for (size_t i = 0; i < n; i++)
        r.total += items[i].size;
    atomic_init(&r.stop, r.n);
    r.piece = gg_mem_alloc_zero(w->allocator, r.n + 1, sizeof *r.piece);
    r.failure = gg_mem_alloc_zero(w->allocator, n_threads, sizeof *r.failure);
    if (r.piece && r.failure) {
        cut_items(w, items, n, r.piece);
        gguf_pool_run(w->job->pool,
                      (struct gguf_pool_callback){ work_thread, &r });
        st = result_of_run(&r, n_threads, err);
    } else {
        st = gg_error_set_nomem(err, (r.n + 1) * sizeof *r.piece);
    }
    gg_mem_free(w->allocator, r.failure);
    gg_mem_free(w->allocator, r.piece);
    return st;
}
