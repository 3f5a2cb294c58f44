/* SPDX-License-Identifier: MIT */
/* merged.h - the tensors of a list with products of adapters added in
 *
 * An element w at row j, column i becomes, adapter after adapter in the order
 * in which they are given,
 *
 *     w + factor * (b[j][0] * a[0][i] + b[j][1] * a[1][i] + ...)
 *
 * in single precision: the sum from 0 on, in this order, then its product with
 * the factor (gg_lora_factor), then the sum with w; each operation is rounded.
 * Rows are computed when they are read, whatever part of them that is, so that
 * nothing is held but a few rows of the pair; the result does not depend on
 * what is read together, nor on the processor.
 */
#ifndef GG_DATA_MERGED_H
#define GG_DATA_MERGED_H

#include "data/data.h"
#include "data/gguf_list.h"
#include "data/lora.h"

/* An adapter and how much of it. */
struct gg_merged_lora {
    struct gg_lora lora;
    struct gg_data_gguf data; /* of its file */
    float scale;
};

struct gg_data_merged {
    struct gg_data_overlay over;
    const struct gguf_allocator *allocator;
    const struct gg_merged_tensor **tensor; /* of base; NULL: as it is there */
};

/* Make m of base and n adapters; all of them are kept, and codec. A pair that
 * has no tensor in base or does not fit it, and halves that are not decoded,
 * are found here. GGUF_E_TENSOR, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. After a
 * failure there is nothing to free. */
enum gguf_status gg_data_merged_init(struct gg_data_merged *m,
                                     const struct gg_data *base,
                                     const struct gg_merged_lora *with,
                                     size_t n,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err);
void gg_data_merged_fini(struct gg_data_merged *m);

/* Is something added to tensor i? */
static inline bool gg_data_is_merged(const struct gg_data_merged *m, size_t i)
{
    return m->tensor && m->tensor[i];
}

#endif
