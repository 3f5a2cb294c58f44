/* SPDX-License-Identifier: MIT */
/* error.h - fill struct gguf_error and pass failures on */
#ifndef GG_BASE_ERROR_H
#define GG_BASE_ERROR_H

#include "base/compiler.h"
#include "gguf/status.h"

#include <inttypes.h>

/* Fill err, which may be NULL, and return status.
 *
 * offset   Byte of the file where the offending item begins, or
 *          GGUF_NO_OFFSET.
 * fmt      Message as for printf(): the fault, found and expected values. Text
 *          from files must be escaped first: gg_str_esc() (base/str.h). */
enum gguf_status gg_error_set(struct gguf_error *err, enum gguf_status status,
                              uint64_t offset, const char *fmt, ...)
    GGUF_PRINTF(4, 5);

/* Fill err, which may be NULL, after a failed system call.
 *
 * The message is fmt, ": " and the system's text for sys_errno. Returns
 * GGUF_E_NOMEM for ENOMEM, GGUF_E_NOSPACE for ENOSPC and EDQUOT, GGUF_E_EXIST
 * for EEXIST, otherwise GGUF_E_IO. */
enum gguf_status gg_error_set_errno(struct gguf_error *err, int sys_errno,
                                    const char *fmt, ...) GGUF_PRINTF(3, 4);

/* Fill err, which may be NULL, after an allocation of size bytes failed.
 * Returns GGUF_E_NOMEM. */
enum gguf_status gg_error_set_nomem(struct gguf_error *err, size_t size);

/* Return from the function if call fails. For functions that own nothing at
 * that point. */
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
