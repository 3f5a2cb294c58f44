/* SPDX-License-Identifier: MIT */
/* status.c - names of statuses, and the error object */
#include "config.h"
#include "base/error.h"
#include "base/os/os.h"
#include "gguf/version.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum gguf_status status;
    const char *text;
} names[] = {
    { GGUF_OK, "success" },
    { GGUF_E_NOMEM, "out of memory" },
    { GGUF_E_IO, "input/output error" },
    { GGUF_E_EXIST, "output exists" },
    { GGUF_E_CANCELLED, "cancelled" },
    { GGUF_E_NOSPACE, "no space left" },
    { GGUF_E_FORMAT, "malformed file" },
    { GGUF_E_TRUNCATED, "truncated file" },
    { GGUF_E_OVERFLOW, "size overflows" },
    { GGUF_E_LIMIT, "limit exceeded" },
    { GGUF_E_DUPLICATE, "duplicate name" },
    { GGUF_E_VERSION, "version not supported" },
    { GGUF_E_NOTFOUND, "not found" },
    { GGUF_E_TYPE, "wrong type" },
    { GGUF_E_MISMATCH, "parts do not match" },
    { GGUF_E_UNSUPPORTED, "not supported" },
    { GGUF_E_ARCH, "architecture not supported" },
    { GGUF_E_HPARAM, "bad hyperparameter" },
    { GGUF_E_TENSOR, "bad weight" },
    { GGUF_E_VOCAB, "bad vocabulary" },
    { GGUF_E_NONFINITE, "value is not finite" },
    { GGUF_E_SHAPE, "shapes do not match" },
    { GGUF_E_FULL, "full" },
    { GGUF_E_OP, "operation not supported" },
    { GGUF_E_INVALID, "invalid argument" },
};

const char *gguf_status_string(enum gguf_status status)
{
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (names[i].status == status)
            return names[i].text;
    return "unknown status";
}

const char *gguf_version_string(void)
{
    return PACKAGE_VERSION;
}

void gguf_error_clear(struct gguf_error *err)
{
    if (err)
        *err = (struct gguf_error){ .offset = GGUF_NO_OFFSET };
}

static void fill_error(struct gguf_error *err, enum gguf_status status,
                       uint64_t offset, const char *fmt, va_list ap)
    GGUF_PRINTF(4, 0);

static void fill_error(struct gguf_error *err, enum gguf_status status,
                       uint64_t offset, const char *fmt, va_list ap)
{
    err->status = status;
    err->sys_errno = 0;
    err->offset = offset;
    vsnprintf(err->message, sizeof err->message, fmt, ap);
}

enum gguf_status gg_error_set(struct gguf_error *err, enum gguf_status status,
                              uint64_t offset, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        fill_error(err, status, offset, fmt, ap);
        va_end(ap);
    }
    return status;
}

enum gguf_status gguf_error_set(struct gguf_error *err,
                                enum gguf_status status, const char *format,
                                ...)
{
    if (err) {
        va_list ap;
        va_start(ap, format);
        fill_error(err, status, GGUF_NO_OFFSET, format, ap);
        va_end(ap);
    }
    return status;
}

enum gguf_status gg_error_set_errno(struct gguf_error *err, int sys_errno,
                                    const char *fmt, ...)
{
    enum gguf_status status = sys_errno == ENOMEM              ? GGUF_E_NOMEM
                              : gg_os_error_is_full(sys_errno) ? GGUF_E_NOSPACE
                              : sys_errno == EEXIST            ? GGUF_E_EXIST
                                                               : GGUF_E_IO;
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        fill_error(err, status, GGUF_NO_OFFSET, fmt, ap);
        va_end(ap);
        err->sys_errno = sys_errno;
        size_t n = strlen(err->message);
        char reason[128];
        snprintf(err->message + n, sizeof err->message - n, ": %s",
                 gg_os_error_text(sys_errno, reason, sizeof reason));
    }
    return status;
}

enum gguf_status gg_error_set_nomem(struct gguf_error *err, size_t size)
{
    return gg_error_set(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                        "out of memory for %zu bytes", size);
}
