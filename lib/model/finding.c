/* SPDX-License-Identifier: MIT */
/* finding.c - a fault becomes a finding or an error */
#include "config.h"
#include "model/finding.h"

#include <stdarg.h>
#include <stdio.h>

enum gguf_status gg_finding_report(const struct gg_finding *r,
                                   enum gg_file_check_code code,
                                   enum gguf_status status, size_t file_no,
                                   struct gguf_str name, uint64_t off,
                                   const char *fmt, ...)
{
    char message[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (!r->check)
        return gg_source_fail(r->src, file_no,
                              gg_error_set(r->err, status, off, "%s", message),
                              r->err);
    r->check->file = gg_source_file(r->src, file_no);
    return gg_file_report_finding(r->check, code, name, off, r->err, "%s",
                                  message);
}
