/* SPDX-License-Identifier: MIT */
/* limits.h - the limits of files: defaults, and those of a program */
#ifndef GG_FILE_LIMITS_H
#define GG_FILE_LIMITS_H

#include "base/error.h"
#include "gguf/file.h"

/* Default of each limit. */
extern const struct gguf_limits gg_limits_default;

/* Copy a program's limits to *out, with the defaults for members that are 0.
 * limits may be NULL. GGUF_E_INVALID: a limit is above its largest value. */
enum gguf_status gg_limits_resolve(struct gguf_limits *out,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err);

#endif
