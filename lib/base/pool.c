/* SPDX-License-Identifier: MIT */
/* pool.c - the thread pool
 *
 * Workers wait at the start gate for the next job: a function and its argument.
 * The caller opens the gate, does share 0 itself, and waits at the done gate,
 * which the last worker opens. The value of the start gate counts jobs. No
 * worker can miss a job, because the caller does not return before all workers
 * have finished the last one.
 */
#include "config.h"
#include "base/barrier.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/affinity.h"
#include "base/thread.h"
#include "gguf/pool.h"

#include <errno.h>

struct worker {
    struct gguf_pool *pool;
    pthread_t thread;
    unsigned ith;
};

struct gguf_pool {
    const struct gguf_allocator *allocator;
    unsigned n_threads, n_spin;
    gguf_pool_fn *fn; /* function of the job; NULL: end */
    void *user;
    struct gg_barrier_gate start;
    struct gg_barrier_gate done;
    _Alignas(64) _Atomic uint32_t n_left;
    struct gg_affinity_cpu_set
        *cpus;               /* processors of each thread; NULL: any */
    struct worker workers[]; /* n_threads - 1 workers */
};

unsigned gguf_cpu_count(void)
{
    return gg_os_cpu_count();
}

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    struct gguf_pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        /* acquires fn and user, written by gguf_pool_run() */
        seen = gg_barrier_gate_wait(&p->start, seen, p->n_spin);
        if (!p->fn)
            return NULL;
        p->fn(p->user, w->ith, p->n_threads);
        /* each worker releases its results to the last one, which passes them
         * on to the caller by the signal */
        if (atomic_fetch_sub_explicit(&p->n_left, 1, memory_order_acq_rel) ==
            1)
            gg_barrier_gate_signal(&p->done);
    }
}

/* End the first n workers and free the pool. */
static void stop_workers(struct gguf_pool *p, unsigned n)
{
    p->fn = NULL;
    gg_barrier_gate_signal(&p->start);
    for (unsigned i = 0; i < n; i++)
        pthread_join(p->workers[i].thread, NULL);
    gg_barrier_gate_fini(&p->done);
    gg_barrier_gate_fini(&p->start);
    gg_mem_free(p->allocator, p->cpus);
    gg_mem_free_aligned(p->allocator, p);
}

/* Start the workers. Returns 0 or an errno. */
static int start_workers(struct gguf_pool *p, unsigned *n_started)
{
    for (*n_started = 0; *n_started + 1 < p->n_threads; ++*n_started) {
        struct worker *w = &p->workers[*n_started];
        *w = (struct worker){ .pool = p, .ith = *n_started + 1 };
        const int e = gg_thread_start(&w->thread, run_worker, w);
        if (e)
            return e;
    }
    return 0;
}

static enum gguf_status choose_cpus(struct gguf_pool *p,
                                    const struct gguf_pool_params *params,
                                    struct gguf_error *err)
{
    p->cpus = NULL;
    if (params->bind == GGUF_BIND_NONE)
        return GGUF_OK;
    p->cpus = gg_mem_alloc_zero(p->allocator, p->n_threads, sizeof *p->cpus);
    if (!p->cpus)
        return gg_error_set_nomem(err, p->n_threads * sizeof *p->cpus);
    if (params->bind == GGUF_BIND_CPUS)
        return gg_affinity_list(p->cpus, p->n_threads, params->cpus,
                                params->n_cpus, err);
    struct gg_affinity_nodes *nodes =
        gg_mem_alloc(p->allocator, sizeof *nodes);
    if (!nodes)
        return gg_error_set_nomem(err, sizeof *nodes);
    gg_affinity_nodes_read(nodes, GG_NODES_ROOT);
    const bool many = nodes->n > 1;
    if (many)
        gg_affinity_nodes(p->cpus, p->n_threads, nodes);
    gg_mem_free(p->allocator, nodes);
    if (!many) {
        gg_mem_free(p->allocator, p->cpus);
        p->cpus = NULL;
    }
    return GGUF_OK;
}

static enum gguf_status bind_workers(struct gguf_pool *p,
                                     struct gguf_error *err)
{
    for (unsigned i = 1; p->cpus && i < p->n_threads; i++)
        GG_TRY(gg_affinity_bind(p->workers[i - 1].thread, &p->cpus[i], err));
    return GGUF_OK;
}

enum gguf_status gguf_pool_bind_caller(const struct gguf_pool *pool,
                                       struct gguf_error *err)
{
    if (!pool || !pool->cpus)
        return GGUF_OK;
    return gg_affinity_bind(pthread_self(), &pool->cpus[0], err);
}

static enum gguf_status check_params(const struct gguf_pool_params *p,
                                     unsigned n, struct gguf_error *err)
{
    if (n > GGUF_POOL_MAX_THREADS)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a pool of %u threads, limit is %u", n,
                            GGUF_POOL_MAX_THREADS);
    if (p->bind > GGUF_BIND_NODES ||
        (p->bind == GGUF_BIND_CPUS && (!p->cpus || !p->n_cpus)))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "bind: no processors given, or an unknown value");
    return GGUF_OK;
}

enum gguf_status gguf_pool_create(struct gguf_pool **out,
                                  const struct gguf_pool_params *params,
                                  struct gguf_error *err)
{
    struct gguf_pool_params own = GGUF_INIT(struct gguf_pool_params);
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, params, "gguf_pool_params", err));
    params = &own;
    unsigned n = params->n_threads ? params->n_threads : gguf_cpu_count();
    if (!params->n_threads && n > GGUF_POOL_MAX_THREADS)
        n = GGUF_POOL_MAX_THREADS;
    GG_TRY(check_params(params, n, err));

    size_t size = sizeof(struct gguf_pool) + (n - 1) * sizeof(struct worker);
    struct gguf_pool *p = gg_mem_alloc_aligned(params->allocator, size, 64);
    if (!p)
        return gg_error_set_nomem(err, size);
    p->allocator = params->allocator;
    p->n_threads = n;
    p->n_spin = gg_barrier_spin(n);
    p->fn = NULL;
    p->user = NULL;
    atomic_init(&p->n_left, 0);
    enum gguf_status st = choose_cpus(p, params, err);
    if (st == GGUF_OK)
        st = gg_barrier_gate_init(&p->start, err);
    if (st != GGUF_OK)
        goto fail;
    st = gg_barrier_gate_init(&p->done, err);
    if (st != GGUF_OK)
        goto fail_start;
    unsigned n_started = 0;
    int e = start_workers(p, &n_started);
    if (e) {
        stop_workers(p, n_started);
        if (e == EAGAIN) /* includes a stack that does not fit */
            return gg_error_set(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                                "out of memory or of threads: cannot start "
                                "thread %u of %u",
                                n_started + 2, n);
        return gg_error_set_errno(err, e, "cannot start thread %u of %u",
                                  n_started + 2, n);
    }
    st = bind_workers(p, err);
    if (st != GGUF_OK)
        stop_workers(p, n_started);
    else
        *out = p;
    return st;

fail_start:
    gg_barrier_gate_fini(&p->start);
fail:
    gg_mem_free(p->allocator, p->cpus);
    gg_mem_free_aligned(p->allocator, p);
    return st;
}

void gguf_pool_destroy(struct gguf_pool *pool)
{
    if (pool)
        stop_workers(pool, pool->n_threads - 1);
}

unsigned gguf_pool_n_threads(const struct gguf_pool *pool)
{
    return pool ? pool->n_threads : 1;
}

void gguf_pool_run(struct gguf_pool *p, struct gguf_pool_callback job)
{
    if (!job.fn)
        return;
    if (!p || p->n_threads == 1) {
        job.fn(job.user, 0, 1);
        return;
    }
    p->fn = job.fn;
    p->user = job.user;
    atomic_store_explicit(&p->n_left, p->n_threads - 1, memory_order_relaxed);
    uint32_t done = atomic_load_explicit(&p->done.value, memory_order_relaxed);
    gg_barrier_gate_signal(&p->start);
    job.fn(job.user, 0, p->n_threads);
    gg_barrier_gate_wait(&p->done, done, p->n_spin);
}
