/* SPDX-License-Identifier: MIT */
/* finding.h - reports of faults of a model
 *
 * Checks report each fault through struct gg_finding. With a checker (gguf-info
 * --check) a fault becomes a finding and the check goes on. Without one it
 * becomes the error with which opening a model fails. So both find the same
 * faults.
 */
#ifndef GG_MODEL_FINDING_H
#define GG_MODEL_FINDING_H

#include "base/error.h"
#include "file/file_check.h"
#include "data/source.h"

struct gg_finding {
    struct gg_file_checker *check; /* NULL: the first fault ends the check */
    const struct gg_source *src;
    struct gguf_error *err;
};

/* Report a fault.
 *
 * code       finding for the checker
 * status     error without a checker
 * file_no    number of the file in the set
 * name       key or tensor at fault
 * off        byte of the file, or GGUF_NO_OFFSET
 *
 * Returns GGUF_OK or GGUF_E_CANCELLED with a checker, else status. */
enum gguf_status gg_finding_report(const struct gg_finding *r,
                                   enum gg_file_check_code code,
                                   enum gguf_status status, size_t file_no,
                                   struct gguf_str name, uint64_t off,
                                   const char *fmt, ...) GGUF_PRINTF(7, 8);

/* Is a model being opened, so that unsupported values are errors, too? */
static inline bool gg_finding_is_fatal(const struct gg_finding *r)
{
    return !r->check;
}

#endif
