/* SPDX-License-Identifier: MIT */
/* weight_swap.h - a weight of a model exchanged for that of another */
#ifndef GG_MODEL_WEIGHT_WEIGHT_SWAP_H
#define GG_MODEL_WEIGHT_WEIGHT_SWAP_H

#include "model/model_int.h"

/* What a weight was. */
struct gg_model_swapped {
    struct gguf_tensor *t; /* NULL: nothing is exchanged */
    uint32_t dtype;
    int64_t nb[GGUF_TENSOR_DIMS];
    struct gguf_buffer *buffer;
    void *data;
};

/* Number of the weight of that name among those of all files; false: the model
 * uses none. */
bool gg_model_find_weight(const struct gguf_model *m, struct gguf_str name,
                          size_t *i);

/* Has it a scale beside it, which goes with its type? */
bool gg_model_has_scale(const struct gguf_model *m, size_t i);

/* Weight i of m becomes weight k of from: type and data, where these lie in
 * memory; nothing is copied. from must live until it is put back. Sessions on m
 * must forget their graphs (gg_session_forget_graphs), then and when it is put
 * back, and compute nothing between. GGUF_E_MISMATCH (another shape). */
enum gguf_status gg_model_swap(struct gg_model_swapped *was,
                               struct gguf_model *m, size_t i,
                               const struct gguf_model *from, size_t k,
                               struct gguf_error *err);
void gg_model_swap_back(struct gg_model_swapped *was);

#endif
