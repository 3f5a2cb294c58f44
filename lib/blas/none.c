/* SPDX-License-Identifier: MIT */
/* none.c - the BLAS backend of a build that has no BLAS library */
#include "config.h"
#include "base/error.h"
#include "gguf/blas.h"

static enum gguf_status fail_none(struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "libgguf was built without a BLAS library");
}

enum gguf_status gguf_blas_driver_create(struct gguf_driver **out,
                                         const struct gguf_blas_params *params,
                                         struct gguf_error *err)
{
    (void)params;
    *out = NULL;
    return fail_none(err);
}

enum gguf_status
gguf_blas_backend_create(struct gguf_backend **out,
                         const struct gguf_blas_params *params,
                         struct gguf_error *err)
{
    (void)params;
    *out = NULL;
    return fail_none(err);
}
