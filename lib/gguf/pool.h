/* SPDX-License-Identifier: MIT */
/* pool.h - a pool of threads that lives as long as its owner
 *
 * The library starts no thread on its own, except for backends that are
 * created without a pool (cpu.h): for parallel work, a program creates a pool
 * and passes it. Work is split by index, so results do not depend on the
 * number of threads.
 */
#ifndef GGUF_POOL_H
#define GGUF_POOL_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_pool;

#define GGUF_POOL_MAX_THREADS 512

/* Where the members of a team may run. */
enum gguf_pool_bind {
    GGUF_BIND_NONE, /* anywhere: the system decides */
    GGUF_BIND_CPUS, /* member i on processor cpus[i mod n_cpus] alone */
    GGUF_BIND_NODES /* member i on any processor of memory node
                        i * n_nodes / n_threads: neighbours stay together, and
                        all nodes get equally many. No effect on a machine with
                        one node */
};

struct gguf_pool_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    unsigned n_threads; /* including the caller's; 0: one per usable
                         * processor */
    enum gguf_pool_bind bind;
    const unsigned *cpus; /* GGUF_BIND_CPUS: n_cpus numbers; borrowed */
    size_t n_cpus;
};
#define GGUF_POOL_PARAMS_INIT GGUF_INIT(struct gguf_pool_params)

/* n_threads - 1 threads are started; the calling thread is the first of the
 * team while it runs a job. Threads spin for a short while between jobs, then
 * sleep. They are bound as params say; the calling thread is not, as it is the
 * program's own (gguf_pool_bind_caller). GGUF_E_NOMEM, GGUF_E_IO (no thread; a
 * processor that does not exist or may not be used), GGUF_E_INVALID,
 * GGUF_E_UNSUPPORTED (the system binds no threads). Since: 0.1 */
GGUF_API enum gguf_status
gguf_pool_create(struct gguf_pool **out, const struct gguf_pool_params *params,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. No job may be running. Since: 0.1 */
GGUF_API void gguf_pool_destroy(struct gguf_pool *pool);

/* Bind the calling thread as the first member of the team, permanently. Fails
 * as above. Since: 0.1 */
GGUF_API enum gguf_status
gguf_pool_bind_caller(const struct gguf_pool *pool,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of threads of the team; 1 for NULL. Since: 0.1 */
GGUF_API unsigned gguf_pool_n_threads(const struct gguf_pool *pool);

/* One member's share of a job: member ith of nth, 0 <= ith < nth. */
typedef void gguf_pool_fn(void *user, unsigned ith, unsigned nth);

/* Run fn once on every thread of the team and wait until all are done. With
 * pool NULL, fn runs once on the calling thread as (0, 1). With fn NULL,
 * nothing runs. One job at a time; fn must not start another on the same pool.
 * Since: 0.1 */
GGUF_API void gguf_pool_run(struct gguf_pool *pool, gguf_pool_fn *fn,
                            void *user);

/* Number of processors that this process may use, at least 1. Since: 0.1 */
GGUF_API unsigned gguf_cpu_count(void);

/* Number of memory nodes (NUMA) with processors that this process may use, at
 * least 1. Since: 0.1 */
GGUF_API unsigned gguf_numa_node_count(void);

/* On which node pages are placed when they are first touched: pages of
 * buffers, and of mapped files that are not in memory yet. */
enum gguf_numa_policy {
    GGUF_NUMA_LOCAL,     /* on the node of the thread that touches it first */
    GGUF_NUMA_INTERLEAVE /* page by page over all nodes in turn */
};
/* Holds for the calling thread and threads that it creates later: call it
 * before a pool is created and a model is read. No effect on a machine with
 * one node. GGUF_E_IO, GGUF_E_UNSUPPORTED (the system has no such call).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_numa_set_policy(enum gguf_numa_policy policy,
                     struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
