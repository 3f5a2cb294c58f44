/* SPDX-License-Identifier: MIT */
/* ignore_status.h - drop the status of a call that cannot fail here
 *
 * Functions that return a status are GGUF_MUST_CHECK, and a cast to void does
 * not silence gcc.
 */
#ifndef TOOLS_COMMON_IGNORE_STATUS_H
#define TOOLS_COMMON_IGNORE_STATUS_H

#include <gguf/status.h>

/* Drop st: the call cannot fail with these arguments, or its output has a
 * default that a failure leaves. */
static inline void ignore_status(enum gguf_status st)
{
    (void)st;
}

#endif
