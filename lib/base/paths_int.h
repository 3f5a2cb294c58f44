/* SPDX-License-Identifier: MIT */
/* paths_int.h - the same, for the parts of the library */
#ifndef GG_BASE_PATHS_INT_H
#define GG_BASE_PATHS_INT_H

#include "gguf/paths.h"

/* A set that has what from has, which may be NULL. GGUF_E_NOMEM. */
enum gguf_status gg_paths_copy(struct gguf_paths **out,
                               const struct gguf_paths *from,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);

/* Add what from has, which may be NULL, to p. GGUF_E_INVALID (a clash),
 * GGUF_E_NOMEM. */
enum gguf_status gg_paths_join(struct gguf_paths *p,
                               const struct gguf_paths *from,
                               struct gguf_error *err);

/* Note path with ending after it. */
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
