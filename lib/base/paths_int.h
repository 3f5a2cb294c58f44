/* SPDX-License-Identifier: MIT */
/* paths_int.h - operations on sets of paths that only the library needs */
#ifndef GG_BASE_PATHS_INT_H
#define GG_BASE_PATHS_INT_H

#include "gguf/paths.h"

/* Create a copy of a set. from may be NULL: an empty set. GGUF_E_NOMEM. */
enum gguf_status gg_paths_copy(struct gguf_paths **out,
                               const struct gguf_paths *from,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);

/* Add all files of from to p. from may be NULL. GGUF_E_INVALID: a clash.
 * GGUF_E_NOMEM. */
enum gguf_status gg_paths_join(struct gguf_paths *p,
                               const struct gguf_paths *from,
                               struct gguf_error *err);

/* Add the file at path + ending, as gguf_paths_add_output() and
 * gguf_paths_add_input() do. */
enum gguf_status gg_paths_add_output_beside(struct gguf_paths *p,
                                            const char *path,
                                            const char *ending,
                                            const char *what,
                                            struct gguf_error *err);
enum gguf_status gg_paths_add_input_beside(struct gguf_paths *p,
                                           const char *path,
                                           const char *ending,
                                           const char *what,
                                           struct gguf_error *err);

#endif
