/* SPDX-License-Identifier: MIT */
/* element_reader.h - a list whose tensors are read from any element on
 *
 * What is stored in blocks is read in whole ones; here any elements may be
 * asked for, and those that do not begin or end with a block are decoded with
 * the rest of it. For views that take elements apart.
 */
#ifndef GG_DATA_ELEMENT_READER_H
#define GG_DATA_ELEMENT_READER_H

#include "base/mem.h"
#include "data/data.h"

struct gg_data_elements {
    struct gg_data_overlay over;
    const struct gguf_allocator *allocator;
    struct gg_element_rows *rows; /* of its tensors */
};

/* Make l of the tensors of base. The statuses of gg_data_rows (of any of
 * them), GGUF_E_NOMEM. */
enum gguf_status gg_data_elements_init(struct gg_data_elements *l,
                                       const struct gg_data *base,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Fine on a zeroed struct. */
void gg_data_elements_fini(struct gg_data_elements *l);

#endif
