/* SPDX-License-Identifier: MIT */
/* cpu.h - the CPU backend
 *
 * Computes in host memory with a pool of threads: the program's, or one of its
 * own with a thread for each processor. backend.h has an example.
 *
 * Results do not depend on the number of threads: same input, same bits. Other
 * instruction sets may change last bits, since they add products in another
 * order, or round them less often (fused multiply-add).
 *
 * Threads: as backend.h says. Several backends may share a pool if they do not
 * compute at the same time.
 */
#ifndef GGUF_CPU_H
#define GGUF_CPU_H

#include <gguf/backend.h>
#include <gguf/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Asked between operations, by one thread. Returns true to stop the computation
 * with GGUF_E_CANCELLED. */
typedef bool gguf_abort_fn(void *user);

/* Decision to stop a computation. Later versions add no members to this struct.
 */
struct gguf_abort_callback {
    gguf_abort_fn *fn; /* NULL: never stop */
    void *user;        /* passed to fn */
};

/* Arithmetic of matrix products with weights, and of attention. In each the
 * result is the same for any number of threads. */
enum gguf_precision {
    /* Weights are decoded to f32, activations are used as they are, sums are
     * f32. */
    GGUF_PRECISION_EXACT,

    /* For types that are integers times scales: blocks of 256 activations are
     * rounded to 16-bit integers, relative to the block's largest (to fewer
     * bits where a sum would not fit into 32). Sums of products are integers,
     * scales are f32. Other types are computed exactly.
     *
     * Attention with heads of up to 4096 elements rounds rows of queries, keys
     * and values in the same way, and attention weights in blocks of up to 128
     * keys. */
    GGUF_PRECISION_INT16,

    /* Blocks of 32 activations are rounded to 8-bit integers, as most runtimes
     * do. Types that use all 8 bits (Q8_0, Q8_1, Q8_K, Q3_K, IQ4_NL, IQ4_XS)
     * need dot products of bytes for this (levels avxvnni and vnni512; dotprod
     * and i8mm on AArch64) and are computed as INT16 without them. F16 and BF16
     * weights, and the activations that they meet, are rounded to BF16 on
     * processors with products of BF16 (levels avx512bf16 and amx; bf16 on
     * AArch64). Attention is computed as INT16 does.
     *
     * If the level amx is used, the system is asked to let the process use tile
     * registers. Linux then refuses signal stacks of less than
     * sysconf(_SC_MINSIGSTKSZ) bytes (sigaltstack(2)); if a thread has such a
     * stack already, it refuses the registers, and other levels are used. */
    GGUF_PRECISION_INT8,
};

/* Name of a precision: "exact", "int16", "int8". NULL for a larger number.
 * Static. Any thread. Since: 0.1 */
GGUF_API const char *gguf_precision_name(unsigned precision);

/* Bit in gguf_cpu_params.levels: portable C, which every build and machine has.
 * Alone it means: no instruction set beyond the compiler's default. */
#define GGUF_CPU_PORTABLE (UINT32_C(1) << 31)

/* Memory for repacked weights. Products of many columns read weights in panels.
 * With such memory, panels are packed by the first product and kept for the
 * next; without, each product packs them anew. */
enum gguf_cpu_repack {
    GGUF_CPU_REPACK_NONE,  /* keep no panels */
    GGUF_CPU_REPACK_LIMIT, /* keep up to repack_size bytes */
    GGUF_CPU_REPACK_FREE   /* keep up to the memory that is free when the
                              backend is created, less an eighth of all */
};

struct gguf_cpu_params {
    size_t struct_size;

    /* Source of all memory of the backend. NULL: malloc. It must outlive the
     * backend. */
    const struct gguf_allocator *allocator;

    /* Threads to compute with. The pool must outlive the backend. NULL: a pool
     * of the backend's own, with n_threads threads. */
    struct gguf_pool *pool;

    /* Threads of the backend's own pool, the calling thread included, at most
     * GGUF_POOL_MAX_THREADS. 0: one for each processor that the process may
     * use. Ignored with a pool. */
    unsigned n_threads;

    /* Instruction sets to use: bits of gguf_cpu_levels(). 0: all of them.
     * GGUF_CPU_PORTABLE: none. */
    uint32_t levels;

    /* Asked between operations whether to stop. */
    struct gguf_abort_callback abort;

    /* Buffer type that the device prefers, in host memory. It must outlive the
     * backend. NULL: gguf_host_buft(). */
    const struct gguf_buft *buft;

    /* Arithmetic of matrix products and attention. */
    enum gguf_precision precision;

    /* Compute each operation of a graph by itself: the same bits, more
     * slowly. If false, operations on the same rows are fused: they go over
     * memory together. */
    bool no_fuse;

    /* Memory for repacked weights: of buffers with GGUF_USAGE_WEIGHTS, whose
     * data may be changed by the functions of buffer.h and backend.h alone, and
     * whose allocators must outlive the backend. */
    enum gguf_cpu_repack repack;

    /* Bytes of that memory, with GGUF_CPU_REPACK_LIMIT. */
    uint64_t repack_size;
};
#define GGUF_CPU_PARAMS_INIT GGUF_INIT(struct gguf_cpu_params)

/* Create a CPU backend, with a driver and a device of its own.
 *
 * out      Receives the backend. NULL after a failure.
 * params   Threads, instruction sets and precision. NULL: the defaults.
 *
 * Free *out with gguf_backend_destroy(), which frees the driver, too.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_NOMEM     Not enough memory for the backend.
 * GGUF_E_INVALID   Too many threads, an unknown precision or repack, or a
 *                  buffer type that is not in host memory.
 * GGUF_E_IO        A thread could not be started.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_cpu_backend_create(struct gguf_backend **out,
                        const struct gguf_cpu_params *params,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Create a driver called CPU, with one device of that name.
 *
 * out      Receives the driver. NULL after a failure.
 * params   Parameters of all backends of the device. NULL: the defaults.
 *
 * Free *out with gguf_driver_destroy(), or give it to a registry.
 *
 * The driver has functions (gguf_driver_find_function()), to be called while
 * nothing runs:
 *
 *   "set_abort"       gguf_cpu_set_abort_fn
 *   "set_pool"        gguf_cpu_set_pool_fn
 *   "set_n_threads"   gguf_cpu_set_n_threads_fn
 *   "set_profile"     gguf_backend_set_profile_fn (profile.h)
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_NOMEM     Not enough memory for the driver.
 * GGUF_E_INVALID   Too many threads, an unknown precision or repack, or a
 *                  buffer type that is not in host memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_cpu_driver_create(struct gguf_driver **out,
                       const struct gguf_cpu_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Set the abort callback of a backend. Returns GGUF_OK. */
typedef enum gguf_status
gguf_cpu_set_abort_fn(struct gguf_backend *backend,
                      struct gguf_abort_callback abort,
                      struct gguf_error *err);

/* Set the pool of a backend, which must outlive it. NULL: compute in the
 * calling thread alone. Returns GGUF_OK. */
typedef enum gguf_status gguf_cpu_set_pool_fn(struct gguf_backend *backend,
                                              struct gguf_pool *pool,
                                              struct gguf_error *err);

/* Let a backend compute with a pool of its own, of n threads, instead of its
 * present pool. After a failure the present pool stays.
 *
 * GGUF_OK          The backend has n threads.
 * GGUF_E_INVALID   n is 0 or above GGUF_POOL_MAX_THREADS.
 * GGUF_E_NOMEM     Not enough memory for the pool.
 * GGUF_E_IO        A thread could not be started. */
typedef enum gguf_status
gguf_cpu_set_n_threads_fn(struct gguf_backend *backend, unsigned n,
                          struct gguf_error *err);

/* Instruction sets that this machine has and this build can use, as bits. Any
 * thread. Since: 0.1 */
GGUF_API uint32_t gguf_cpu_levels(void);

/* Name of bit i of gguf_cpu_levels(), such as "avx2". NULL after the last.
 * Static. Any thread. Since: 0.1 */
GGUF_API const char *gguf_cpu_level_name(unsigned i);

#ifdef __cplusplus
}
#endif
#endif
