/* SPDX-License-Identifier: MIT */
/* blas.h - the BLAS backend
 *
 * Computes large matrix products, of f32 activations with weights of any type
 * that decodes, and refuses everything else: in a scheduler (sched.h) it stands
 * before the CPU. Weights that are not f32 are decoded exactly, a panel of rows
 * at a time. It works in a thread of its own and has events.
 *
 * The BLAS library chooses the order of sums. Results differ from those of the
 * CPU backend by rounding, and may depend on the number of the library's
 * threads.
 *
 * The library is chosen when libgguf is configured (--with-blas).
 *
 * Threads: as backend.h says.
 */
#ifndef GGUF_BLAS_H
#define GGUF_BLAS_H

#include <gguf/cpu.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_blas_params {
    size_t struct_size;

    /* Source of all memory of the backend, which its thread uses, too. NULL:
     * malloc. It must outlive the backend. */
    const struct gguf_allocator *allocator;

    /* Instruction sets for decoding weights, as gguf_cpu_params.levels: bits of
     * gguf_cpu_levels(). 0: all of them. GGUF_CPU_PORTABLE: none. */
    uint32_t levels;

    /* Threads of the BLAS library, at most GGUF_POOL_MAX_THREADS. The setting
     * holds for the whole process. 0: do not change it. */
    unsigned n_threads;

    /* Least number of rows, of columns and of steps of a product that the
     * device accepts. 0: 32. */
    unsigned min_size;

    /* Tensors lie in buffers that the CPU backend does not reach, as those of a
     * card: for testing copies and overlap without a card. If false, they lie
     * in host memory, and the two backends take turns. */
    bool own_memory;
};
#define GGUF_BLAS_PARAMS_INIT GGUF_INIT(struct gguf_blas_params)

/* Create a driver called BLAS, with one device of that name and of the kind
 * ACCEL.
 *
 * out      Receives the driver. NULL after a failure.
 * params   Parameters of all backends of the device. NULL: the defaults.
 *
 * Free *out with gguf_driver_destroy(), or give it to a registry.
 *
 * The driver has functions (gguf_driver_find_function()):
 *
 *   "set_n_threads"   gguf_blas_set_n_threads_fn
 *   "set_abort"       gguf_cpu_set_abort_fn. The callback is asked before each
 *                     product, by the backend's thread. Call it while nothing
 *                     runs
 *
 * GGUF_OK              *out is ready.
 * GGUF_E_UNSUPPORTED   libgguf was built without a BLAS library.
 * GGUF_E_INVALID       n_threads is too large.
 * GGUF_E_NOMEM         Not enough memory for the driver.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_blas_driver_create(struct gguf_driver **out,
                        const struct gguf_blas_params *params,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Set the number of threads of the BLAS library, for the whole process.
 *
 * GGUF_OK              The library uses n threads.
 * GGUF_E_INVALID       n is 0 or above GGUF_POOL_MAX_THREADS.
 * GGUF_E_UNSUPPORTED   The library has no such setting. */
typedef enum gguf_status
gguf_blas_set_n_threads_fn(struct gguf_backend *backend, unsigned n,
                           struct gguf_error *err);

/* Create a BLAS backend, with a driver and a device of its own.
 *
 * out      Receives the backend. NULL after a failure.
 * params   How to compute. NULL: the defaults.
 *
 * Free *out with gguf_backend_destroy(), which frees the driver, too.
 *
 * GGUF_OK              *out is ready.
 * GGUF_E_UNSUPPORTED   libgguf was built without a BLAS library.
 * GGUF_E_INVALID       n_threads is too large.
 * GGUF_E_NOMEM         Not enough memory for the backend.
 * GGUF_E_IO            Its thread could not be started.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_blas_backend_create(struct gguf_backend **out,
                         const struct gguf_blas_params *params,
                         struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
