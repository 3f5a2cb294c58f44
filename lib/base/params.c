/* SPDX-License-Identifier: MIT */
/* params.c - structures of parameters from programs built with any version */
#include "config.h"
#include "base/compiler.h"
#include "base/params.h"

#include <string.h>

enum gguf_status gg_params_take(void *own, size_t size, const void *given,
                                const char *name, struct gguf_error *err)
{
    size_t n;
    if (!given)
        return GGUF_OK;
    memcpy(&n, given, sizeof n);
    if (n < sizeof n || n > GG_PARAMS_MOST)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%s: struct_size is %zu, must be %zu to %d", name,
                            n, sizeof n, GG_PARAMS_MOST);
    for (size_t i = size; i < n; i++)
        if (((const char *)given)[i])
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "%s: struct_size is %zu, and byte %zu is not 0: "
                "this library knows %zu bytes",
                name, n, i, size);
    memcpy(own, given, GG_MIN(n, size));
    memcpy(own, &size, sizeof size);
    return GGUF_OK;
}

enum gguf_status gg_params_give(void *given, const void *own, size_t size,
                                const char *name, struct gguf_error *err)
{
    size_t n;
    GG_TRY(gg_params_need(given, name, err));
    memcpy(&n, given, sizeof n);
    if (n < sizeof n)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%s: struct_size is %zu, must be %zu at least",
                            name, n, sizeof n);
    n = n < size ? n : size;
    memcpy((char *)given + sizeof n, (const char *)own + sizeof n,
           n - sizeof n);
    return GGUF_OK;
}

enum gguf_status gg_params_need(bool there, const char *name,
                                struct gguf_error *err)
{
    return there ? GGUF_OK
                 : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "%s is missing", name);
}

enum gguf_status gg_params_need_all(const void *list, size_t n,
                                    const char *what, struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const void *element = NULL;
        if (list)
            memcpy(&element, (const char *)list + i * sizeof element,
                   sizeof element);
        if (!element)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "%s %zu of %zu is NULL", what, i + 1, n);
    }
    return GGUF_OK;
}
