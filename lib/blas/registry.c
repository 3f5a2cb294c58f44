/* SPDX-License-Identifier: MIT */
/* registry.c - a registry with all backends that were built
 *
 * It stands in the room of the last backend, since it knows them all.
 */
#include "config.h"
#include "base/error.h"
#include "gguf/blas.h"

static enum gguf_status add_all(struct gguf_registry *r,
                                const struct gguf_allocator *allocator,
                                struct gguf_error *err)
{
    struct gguf_cpu_params cpu = GGUF_CPU_PARAMS_INIT;
    struct gguf_blas_params blas = GGUF_BLAS_PARAMS_INIT;
    struct gguf_driver *d;
    cpu.allocator = blas.allocator = allocator;
    GG_TRY(gguf_cpu_driver_create(&d, &cpu, err));
    GG_TRY(gguf_registry_add_driver(r, d, err));
    enum gguf_status st = gguf_blas_driver_create(&d, &blas, err);
    if (st == GGUF_OK)
        st = gguf_registry_add_driver(r, d, err);
    return st == GGUF_E_UNSUPPORTED ? GGUF_OK : st; /* built without */
}

enum gguf_status gguf_registry_create(struct gguf_registry **out,
                                      const struct gguf_allocator *allocator,
                                      struct gguf_error *err)
{
    struct gguf_registry *r;
    *out = NULL;
    GG_TRY(gguf_registry_create_empty(&r, allocator, err));
    enum gguf_status st = add_all(r, allocator, err);
    if (st != GGUF_OK)
        gguf_registry_destroy(r);
    else
        *out = r;
    return st;
}
