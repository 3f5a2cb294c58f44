/* pool.h - a pool of threads that lives as long as its owner
 *
 * The library starts no thread on its own: whoever wants parallel work
 * creates a pool and passes it. Work is split by index, so results do not
 * depend on the number of threads.
 */
#ifndef GGUF_POOL_H
#define GGUF_POOL_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_pool;

#define GGUF_POOL_MAX_THREADS 512

struct gguf_pool_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    unsigned n_threads; /* with the caller's; 0: one per usable processor */
};
#define GGUF_POOL_PARAMS_INIT { sizeof(struct gguf_pool_params), NULL, 0 }

/* n_threads - 1 threads are started; the calling thread is the first of the
 * team while it runs a job. Threads spin for a short while between jobs, then
 * sleep. GGUF_E_NOMEM, GGUF_E_IO (no thread), GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_pool_create(struct gguf_pool **out, const struct gguf_pool_params *params,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. No job may be running. Since: 0.1 */
GGUF_API void gguf_pool_destroy(struct gguf_pool *pool);

/* Number of threads of the team; 1 for NULL. Since: 0.1 */
GGUF_API unsigned gguf_pool_n_threads(const struct gguf_pool *pool);

/* One member's share of a job: member ith of nth, 0 <= ith < nth. */
typedef void gguf_pool_fn(void *user, unsigned ith, unsigned nth);

/* Run fn once on every thread of the team and wait until all are done. With
 * pool NULL, fn runs once on the calling thread as (0, 1). One job at a time;
 * fn must not start another on the same pool. Since: 0.1 */
GGUF_API void gguf_pool_run(struct gguf_pool *pool, gguf_pool_fn *fn,
                            void *user);

/* Number of processors that this process may use, at least 1. Since: 0.1 */
GGUF_API unsigned gguf_cpu_count(void);

#ifdef __cplusplus
}
#endif
#endif
