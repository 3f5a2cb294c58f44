/* params.c - parameters of programs built against any version of the library */
#include "config.h"
#include "base/params.h"

#include <string.h>

enum gguf_status gg_params_take(void *own, size_t size, const void *given,
                                const char *name, struct gguf_error *err)
{
    size_t n;
    if (!given)
        return GGUF_OK;
    memcpy(&n, given, sizeof n);
    if (n < sizeof n || n > size)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "%s: struct_size is %zu, must be %zu to %zu", name, n,
                       sizeof n, size);
    memcpy(own, given, n);
    memcpy(own, &size, sizeof size);
    return GGUF_OK;
}

enum gguf_status gg_params_give(void *given, const void *own, size_t size,
                                const char *name, struct gguf_error *err)
{
    size_t n;
    memcpy(&n, given, sizeof n);
    if (n < sizeof n)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "%s: struct_size is %zu, must be %zu at least", name,
                       n, sizeof n);
    n = n < size ? n : size;
    memcpy((char *)given + sizeof n, (const char *)own + sizeof n,
           n - sizeof n);
    return GGUF_OK;
}
