/* SPDX-License-Identifier: MIT */
/* planned_file.h - the header of a file that a list would become */
#ifndef GG_DATA_PLANNED_FILE_H
#define GG_DATA_PLANNED_FILE_H

#include "data/data.h"

/* A file that was never written, with the list's tensors in their types and
 * the pairs of meta: *plan, over *like, which close what they are even after a
 * failure (gg_data_plan_close). The names of the list are kept. GGUF_E_NOMEM,
 * and for faults of meta GGUF_E_FORMAT and GGUF_E_LIMIT (alignment). */
enum gguf_status gg_data_plan(struct gguf_file **plan, struct gguf_file **like,
                              const struct gg_data *list,
                              const struct gguf_meta *meta,
                              const struct gguf_allocator *a,
                              struct gguf_error *err);

/* Both may be NULL. */
void gg_data_plan_close(struct gguf_file *plan, struct gguf_file *like,
                        const struct gguf_allocator *a);

#endif
