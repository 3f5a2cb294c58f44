/* SPDX-License-Identifier: MIT */
/* blas.h - a backend on a BLAS library
 *
 * Takes matrix products that are large, of weights of any type that decodes
 * with f32 activations, and refuses the rest: in a scheduler (sched.h) it
 * stands before the CPU. Weights that are not f32 are decoded exactly, a panel
 * of rows at a time. It works on a thread of its own and has events. Its
 * tensors lie in host memory, where it and the CPU take turns, or in memory of
 * its own.
 *
 * The BLAS library chooses the order of sums: results differ from the CPU
 * backend's by rounding, and may depend on the number of the library's
 * threads.
 *
 * The BLAS library is chosen when libgguf is configured (--with-blas).
 */
#ifndef GGUF_BLAS_H
#define GGUF_BLAS_H

#include <gguf/cpu.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_blas_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept; used from
                                               the backend's thread too */
    uint32_t levels;    /* instruction sets for decoding, as in cpu.h */
    unsigned n_threads; /* of the BLAS library, which has one setting for the
                           whole process; 0: leave it */
    unsigned min_size;  /* least rows, columns and steps of a product, each; 0:
                           32 */
    bool own_memory;    /* tensors lie in buffers that the CPU backend cannot
                           reach, as on a card: to test copies and overlap
                           without a card */
};
#define GGUF_BLAS_PARAMS_INIT                                                 \
    {                                                                         \
        sizeof(struct gguf_blas_params), NULL, GGUF_CPU_ALL, 0, 0, false      \
    }

/* A driver called BLAS with one device of that name, of kind ACCEL. params
 * NULL: the defaults. Functions by name: "set_n_threads"
 * (gguf_blas_set_n_threads_fn; GGUF_E_UNSUPPORTED where the library has no such
 * setting), "set_abort" (gguf_cpu_set_abort_fn: asked before each product, by
 * the backend's thread; set it while nothing runs). GGUF_E_UNSUPPORTED (built
 * without BLAS), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_blas_driver_create(struct gguf_driver **out,
                        const struct gguf_blas_params *params,
                        struct gguf_error *err) GGUF_MUST_CHECK;
typedef enum gguf_status
gguf_blas_set_n_threads_fn(struct gguf_backend *backend, unsigned n,
                           struct gguf_error *err);

/* A backend with a driver of its own. GGUF_E_IO (no thread) and as above.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_blas_backend_create(struct gguf_backend **out,
                         const struct gguf_blas_params *params,
                         struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
