/* SPDX-License-Identifier: MIT */
/* error.h - filling struct gguf_error, and handing a failure on */
#ifndef GG_BASE_ERROR_H
#define GG_BASE_ERROR_H

#include "base/compiler.h"
#include "gguf/status.h"

#include <inttypes.h>

/* Fill *err (which may be NULL) and return status. offset is the byte in the
 * file where the offending thing begins, or GGUF_NO_OFFSET. Text from files
 * goes through gg_str_esc (base/str.h) first. */
enum gguf_status gg_error_set(struct gguf_error *err, enum gguf_status status,
                              uint64_t offset, const char *fmt, ...)
    GG_PRINTF(4, 5);

/* The same for a failed system call: appends ": " and the system's reason for
 * sys_errno. ENOMEM, ENOSPC, EEXIST choose their own status, all else is
 * GGUF_E_IO. */
enum gguf_status gg_error_set_errno(struct gguf_error *err, int sys_errno,
                                    const char *fmt, ...) GG_PRINTF(3, 4);

/* The message of an allocation that failed. */
enum gguf_status gg_error_set_nomem(struct gguf_error *err, size_t size);

/* Hand a failure on. Only where nothing is owned. */
#define GG_TRY(call)                                                          \
    do {                                                                      \
        enum gguf_status gg_st_ = (call);                                     \
        if (gg_st_ != GGUF_OK)                                                \
            return gg_st_;                                                    \
    } while (0)

/* Drop st, on a path that cannot report it: while an object is destroyed, or
 * when a later call reports the same failure. */
static inline void gg_status_ignore(enum gguf_status st)
{
    (void)st;
}

#endif
