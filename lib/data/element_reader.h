/* SPDX-License-Identifier: MIT */
/* element_reader.h - a list whose tensors can be read from any element
 *
 * Quantized data are stored in blocks, and other lists read whole blocks. This
 * list reads any elements: it decodes the rest of a block at the borders and
 * drops it. For views that separate elements.
 */
#ifndef GG_DATA_ELEMENT_READER_H
#define GG_DATA_ELEMENT_READER_H

#include "base/mem.h"
#include "data/data.h"

struct gg_data_elements {
    struct gg_data_overlay over;
    const struct gguf_allocator *allocator;
    struct gg_element_rows *rows; /* one per tensor */
};

/* Make l a list of the tensors of base. Statuses: those of gg_data_rows for any
 * of them, GGUF_E_NOMEM. */
enum gguf_status gg_data_elements_init(struct gg_data_elements *l,
                                       const struct gg_data *base,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err);
/* Does nothing for a zeroed struct. */
void gg_data_elements_fini(struct gg_data_elements *l);

#endif
