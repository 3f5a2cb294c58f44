/* SPDX-License-Identifier: MIT */
/* cpu.h - the CPU backend
 *
 * Computes in host memory with a pool of threads: the program's, or one of its
 * own with a thread for each processor. Same input, same bits, for any number
 * of threads; other instruction sets add products in another order or round
 * them less often (fused multiply-add), which may change last bits.
 */
#ifndef GGUF_CPU_H
#define GGUF_CPU_H

#include <gguf/backend.h>
#include <gguf/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called between operations by one thread; a result other than 0 stops the
 * computation with GGUF_E_CANCELLED. */
typedef int gguf_abort_fn(void *user);

#define GGUF_CPU_ALL UINT32_MAX

/* How products of weights with activations, and attention, are computed. In
 * each the result is the same for any number of threads. Since: 0.1 */
enum gguf_precision {
    GGUF_PRECISION_EXACT, /* weights as floats, activations as they are, sums
                             in f32 */
    GGUF_PRECISION_INT16, /* of types that are integers times scales: 256
                             activations of a column at a time are rounded to
                             integers of 16 bits, relative to the largest (to
                             fewer where a sum would not fit into 32 bits),
                             sums of products are integers, scales f32. Others:
                             exact. Attention with heads of up to 4096: rows of
                             queries, keys and values, and weights of up to 128
                             keys, are rounded likewise */
    GGUF_PRECISION_INT8,  /* likewise to 8 bits, 32 activations at a time, as
                             runtimes do; without VNNI (level avxvnni or
                             vnni512) types that use all 8 bits (Q8_0, Q8_1,
                             Q8_K, Q3_K, IQ4_NL, IQ4_XS): as INT16.
                             Weights of F16 and BF16, and the activations that
                             they are multiplied with: rounded to BF16 where
                             the processor multiplies these (avx512bf16) */
};
/* "exact", "int16", "int8"; NULL after the last. Since: 0.1 */
GGUF_API const char *gguf_precision_name(unsigned precision);

struct gguf_cpu_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    struct gguf_pool *pool; /* kept: must outlive the backend; NULL: one of
                               the backend's own, of n_threads */
    uint32_t levels;      /* instruction sets to use, bits as gguf_cpu_levels()
                        gives them; GGUF_CPU_ALL: all there are */
    gguf_abort_fn *abort; /* or NULL */
    void *abort_user;
    unsigned n_threads; /* without a pool, the calling thread included; 0: one
                           for each processor that the process may use; at most
                           GGUF_POOL_MAX_THREADS */
    const struct gguf_buft
        *buft; /* the buffer type, in host memory, that the device prefers;
                                     NULL: gguf_host_buft(); kept */
    enum gguf_precision precision;
    bool no_fuse; /* each operation goes over memory by itself: the same bits,
                     more slowly */
    /* Bytes of the allocator in which weights that products of many columns
     * multiply are kept as these read them, once they were packed for it; 0:
     * none, packed each time. Of buffers of GGUF_USAGE_WEIGHTS, whose data are
     * changed by the functions of backend.h alone, and whose allocators outlive
     * the backend. GGUF_CPU_REPACK_FREE: what memory is free when the backend
     * is created, but for an eighth of the machine's. */
    uint64_t repack;
};
#define GGUF_CPU_REPACK_FREE UINT64_MAX
#define GGUF_CPU_PARAMS_INIT                                                  \
    {                                                                         \
        sizeof(struct gguf_cpu_params), NULL, NULL, GGUF_CPU_ALL, NULL, NULL, \
            0, NULL, GGUF_PRECISION_EXACT, false, 0                           \
    }

/* A CPU backend with a device of its own. params NULL: the defaults. Several
 * may share a pool if they do not compute at the same time. GGUF_E_NOMEM,
 * GGUF_E_INVALID (params), GGUF_E_IO (no thread). Since: 0.1 */
GGUF_API enum gguf_status
gguf_cpu_backend_create(struct gguf_backend **out,
                        const struct gguf_cpu_params *params,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* A driver with the CPU as its one device; its backends use params.
 * GGUF_E_NOMEM, GGUF_E_INVALID. Functions by name, to be called while nothing
 * runs: "set_abort" (gguf_cpu_set_abort_fn), "set_pool" (gguf_cpu_set_pool_fn;
 * NULL: the calling thread only), "set_n_threads" (gguf_cpu_set_n_threads_fn: 1
 * to GGUF_POOL_MAX_THREADS, a pool of the backend's own instead of the present
 * one, which stays after GGUF_E_INVALID, GGUF_E_NOMEM or GGUF_E_IO),
 * "set_profile" (gguf_backend_set_profile_fn in profile.h).
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_cpu_driver_create(struct gguf_driver **out,
                       const struct gguf_cpu_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;
/* abort NULL: none. */
typedef enum gguf_status gguf_cpu_set_abort_fn(struct gguf_backend *backend,
                                               gguf_abort_fn *abort,
                                               void *user,
                                               struct gguf_error *err);
typedef enum gguf_status gguf_cpu_set_pool_fn(struct gguf_backend *backend,
                                              struct gguf_pool *pool,
                                              struct gguf_error *err);
typedef enum gguf_status
gguf_cpu_set_n_threads_fn(struct gguf_backend *backend, unsigned n,
                          struct gguf_error *err);

/* Instruction sets that this machine has and this build can use: bit i is
 * gguf_cpu_level_name(i), NULL after the last. Since: 0.1 */
GGUF_API uint32_t gguf_cpu_levels(void);
GGUF_API const char *gguf_cpu_level_name(unsigned i);

#ifdef __cplusplus
}
#endif
#endif
