/* SPDX-License-Identifier: MIT */
/* pool.h - threads that work for the library
 *
 * A struct gguf_pool is a team of threads. A program creates a pool and passes
 * it to the functions and objects that can use one; NULL means the calling
 * thread alone. The library starts no threads of its own, except for backends
 * that are created without a pool (cpu.h). Work is split by index, so results
 * do not depend on the number of threads.
 *
 *     struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
 *     params.n_threads = 8;
 *     if (gguf_pool_create(&pool, &params, &err) != GGUF_OK)
 *         return fail(err.message);
 *     check.pool = pool;
 *     ...
 *     gguf_pool_destroy(pool);
 *
 * A pool runs one job at a time. It must outlive the objects that use it.
 */
#ifndef GGUF_POOL_H
#define GGUF_POOL_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_pool;

#define GGUF_POOL_MAX_THREADS 512 /* largest number of threads of a pool */

/* Processors that the threads of a pool may run on. */
enum gguf_pool_bind {
    GGUF_BIND_NONE, /* any: the system decides */
    GGUF_BIND_CPUS, /* thread i on processor cpus[i mod n_cpus] only */
    GGUF_BIND_NODES /* thread i on the processors of memory node
                     * i * n_nodes / n_threads: neighbours stay together, and
                     * all nodes get equally many. No effect on a machine with
                     * one node */
};

/* How to create a pool. */
struct gguf_pool_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator of the pool. It must outlive the pool. NULL: malloc. */
    const struct gguf_allocator *allocator;

    unsigned n_threads; /* number of threads with the caller's; 0: one for each
                         * processor that the process may use */
    enum gguf_pool_bind bind; /* processors to run on */

    /* Numbers of processors for GGUF_BIND_CPUS. Not needed after the call. */
    const unsigned *cpus;
    size_t n_cpus; /* number of elements of cpus */
};
#define GGUF_POOL_PARAMS_INIT GGUF_INIT(struct gguf_pool_params)

/* Create a pool.
 *
 * out      Receives the pool. NULL after a failure.
 * params   How to create it. NULL: the defaults.
 *
 * Starts n_threads - 1 threads. The calling thread is the first thread of the
 * team while it runs a job. Between jobs the threads spin for a short while,
 * then sleep. They are bound as params.bind says; the calling thread is not,
 * because it belongs to the program: gguf_pool_bind_caller() binds it.
 *
 * Destroy *out with gguf_pool_destroy().
 *
 * GGUF_OK              *out is the pool.
 * GGUF_E_INVALID       n_threads is above GGUF_POOL_MAX_THREADS, or bind and
 *                      cpus do not fit together.
 * GGUF_E_UNSUPPORTED   The system cannot bind threads.
 * GGUF_E_IO            A thread cannot be started, or a processor does not
 *                      exist or must not be used.
 * GGUF_E_NOMEM         Out of memory or of threads.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_pool_create(struct gguf_pool **out, const struct gguf_pool_params *params,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Stop the threads and free the pool. No job may be running. NULL is allowed.
 * Since: 0.1 */
GGUF_API void gguf_pool_destroy(struct gguf_pool *pool);

/* Bind the calling thread permanently as the first thread of the team.
 *
 * pool   The pool. Without binding, or if NULL, nothing is done.
 *
 * GGUF_OK              The thread is bound, or nothing was to be done.
 * GGUF_E_UNSUPPORTED   The system cannot bind threads.
 * GGUF_E_IO            The processor does not exist or must not be used.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_pool_bind_caller(const struct gguf_pool *pool,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of threads of the team, with the caller's; 1 if pool is NULL. For
 * programs that run jobs of their own. Threads: any. Since: 0.1 */
GGUF_API unsigned gguf_pool_n_threads(const struct gguf_pool *pool);

/* Do one thread's share of a job: share ith of nth, 0 <= ith < nth. */
typedef void gguf_pool_fn(void *user, unsigned ith, unsigned nth);

/* A function that does a share of a job, and its first argument. Later versions
 * add no members to this struct. */
struct gguf_pool_callback {
    gguf_pool_fn *fn; /* the function; NULL: nothing to do */
    void *user;       /* its first argument */
};

/* Run a job: call a function once on every thread of the team, and wait until
 * all calls have returned. For programs that compute on the library's threads.
 *
 * pool   The pool. NULL: the function is called once, by the calling thread,
 *        as share 0 of 1.
 * job    The function. It must not run another job on the same pool.
 *
 * Threads: one at a time for pool. Since: 0.1 */
GGUF_API void gguf_pool_run(struct gguf_pool *pool,
                            struct gguf_pool_callback job);

/* --------------------------------------------------------- the machine --- */

/* Number of processors that the process may use, at least 1. Threads: any.
 * Since: 0.1 */
GGUF_API unsigned gguf_cpu_count(void);

/* Number of memory nodes (NUMA) with processors that the process may use, at
 * least 1. For programs that choose GGUF_BIND_NODES by themselves. Threads:
 * any. Since: 0.1 */
GGUF_API unsigned gguf_numa_node_count(void);

/* Memory node on which a page is placed when it is first touched. This
 * concerns pages of buffers, and of mapped files that are not in memory. */
enum gguf_numa_policy {
    GGUF_NUMA_LOCAL,     /* the node of the thread that touches the page */
    GGUF_NUMA_INTERLEAVE /* all nodes in turn, page by page */
};

/* Set the placement of pages for the calling thread and for threads that it
 * creates afterwards. Call it before a pool is created and a model is read.
 *
 * policy   Where pages are placed.
 *
 * GGUF_OK              The policy is set, or the machine has one node.
 * GGUF_E_UNSUPPORTED   The system has no such policies.
 * GGUF_E_IO            The system refused it.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_numa_set_policy(enum gguf_numa_policy policy,
                     struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
