/* SPDX-License-Identifier: MIT */
/* merged.h - tensors of a list with the products of adapters added
 *
 * An element w at row j, column i becomes, for one adapter after another in the
 * order given,
 *
 *     w + factor * (b[j][0] * a[0][i] + b[j][1] * a[1][i] + ...)
 *
 * in single precision: first the sum from 0 on in this order, then its product
 * with the factor (gg_lora_factor), then the sum with w. Each operation is
 * rounded. Rows are computed while they are read, so that only a few rows of a
 * pair are in memory. The result does not depend on the division into reads,
 * nor on the processor.
 */
#ifndef GG_DATA_MERGED_H
#define GG_DATA_MERGED_H

#include "data/data.h"
#include "data/gguf_list.h"
#include "data/lora.h"

/* An adapter and its scale. */
struct gg_merged_lora {
    struct gg_lora lora;
    struct gg_data_gguf data; /* tensors of its file */
    float scale;
};

struct gg_data_merged {
    struct gg_data_overlay over;
    const struct gguf_allocator *allocator;
    const struct gg_merged_tensor **tensor; /* one per tensor of base; NULL:
                                             * unchanged */
};

/* Make m from base and n adapters. All of them are kept. GGUF_E_TENSOR: a pair
 * has no tensor in base or does not fit it. GGUF_E_UNSUPPORTED: a half cannot
 * be decoded. GGUF_E_NOMEM. After a failure nothing must be freed. */
enum gguf_status gg_data_merged_init(struct gg_data_merged *m,
                                     const struct gg_data *base,
                                     const struct gg_merged_lora *with,
                                     size_t n,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err);
void gg_data_merged_fini(struct gg_data_merged *m);

/* Is a product added to tensor i? */
static inline bool gg_data_is_merged(const struct gg_data_merged *m, size_t i)
{
    return m->tensor && m->tensor[i];
}

#endif
