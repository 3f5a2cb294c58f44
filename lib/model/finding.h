/* SPDX-License-Identifier: MIT */
/* finding.h - one way to say that something is wrong about a model
 *
 * A check hands over here each fault that it finds. It becomes a finding and
 * the check goes on (gguf-info --check), or an error that ends the opening of
 * a model: both find the same faults.
 */
#ifndef GG_MODEL_FINDING_H
#define GG_MODEL_FINDING_H

#include "base/error.h"
#include "file/file_check.h"
#include "data/source.h"

struct gg_finding {
    struct gg_file_checker *check; /* NULL: the first fault is the end */
    const struct gg_source *src;
    struct gguf_error *err;
};

/* A fault at byte off (or GGUF_NO_OFFSET) of file number file_no, about the
 * key or tensor name: a finding of that code, or status. GGUF_E_CANCELLED, or
 * status. */
enum gguf_status gg_finding_report(const struct gg_finding *r,
                                   enum gg_file_check_code code,
                                   enum gguf_status status, size_t file_no,
                                   struct gguf_str name, uint64_t off,
                                   const char *fmt, ...) GG_PRINTF(7, 8);

/* Is anything but faults of interest: what is not evaluated, for one? */
static inline bool gg_finding_is_fatal(const struct gg_finding *r)
{
    return !r->check;
}

#endif
