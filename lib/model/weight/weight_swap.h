/* SPDX-License-Identifier: MIT */
/* weight_swap.h - exchange a weight of a model for that of another model */
#ifndef GG_MODEL_WEIGHT_WEIGHT_SWAP_H
#define GG_MODEL_WEIGHT_WEIGHT_SWAP_H

#include "model/model_int.h"

/* State of a weight before the exchange. */
struct gg_model_swapped {
    struct gguf_tensor *t; /* NULL: no weight is exchanged */
    uint32_t dtype;
    int64_t nb[GGUF_TENSOR_DIMS];
    struct gguf_buffer *buffer;
    void *data;
};

/* Find the number of a weight by name among the tensors of all files. false:
 * the model does not use such a weight. */
bool gg_model_find_weight(const struct gguf_model *m, struct gguf_str name,
                          size_t *i);

/* Does the weight have a scale beside it, which belongs to its type? */
bool gg_model_has_scale(const struct gguf_model *m, size_t i);

/* Make weight i of m use the type and data of weight k of from. Nothing is
 * copied.
 *
 * from must outlive the exchange, which gg_model_swap_back() ends. Sessions on
 * m must forget their graphs (gg_session_forget_graphs) after both calls and
 * must not compute during them. GGUF_E_MISMATCH: the shapes differ. */
enum gguf_status gg_model_swap(struct gg_model_swapped *was,
                               struct gguf_model *m, size_t i,
                               const struct gguf_model *from, size_t k,
                               struct gguf_error *err);
void gg_model_swap_back(struct gg_model_swapped *was);

#endif
