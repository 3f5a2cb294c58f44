/* SPDX-License-Identifier: MIT */
/* pages.c - bring pages into memory and lock them there */
#include "config.h"
#include "base/pages.h"
#include "base/os/os.h"

#include <errno.h>

void gg_pages_touch(const void *p, size_t size)
{
    const size_t page = gg_os_page_size();
    const volatile uint8_t *b = p;
    uint8_t all = 0;
    /* steps to the begin of each page */
    for (size_t i = 0; i < size; i += page - ((uintptr_t)p + i) % page)
        all ^= b[i];
    /* a use of the value that neither compilers nor emulators remove */
    volatile uint8_t sink = all;
    (void)sink;
}

static enum gguf_status fail_lock(int sys_errno, struct gguf_error *err)
{
    const uint64_t limit = gg_os_memory_lock_limit();
    if (sys_errno == ENOSYS)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "the system locks no memory");
    if ((sys_errno == ENOMEM || sys_errno == EPERM || sys_errno == EAGAIN) &&
        limit != UINT64_MAX) {
        (void)gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                           "the process may lock %" PRIu64
                           " bytes (RLIMIT_MEMLOCK, ulimit -l)",
                           limit);
        if (err)
            err->sys_errno = sys_errno;
        return GGUF_E_LIMIT;
    }
    return gg_error_set_errno(err, sys_errno, "mlock");
}

enum gguf_status gg_pages_lock(const void *p, size_t size,
                               struct gguf_error *err)
{
    return gg_os_memory_lock(p, size) == 0 ? GGUF_OK : fail_lock(errno, err);
}

void gg_pages_unlock(const void *p, size_t size)
{
    gg_os_memory_unlock(p, size);
}
