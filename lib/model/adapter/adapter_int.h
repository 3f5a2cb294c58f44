/* SPDX-License-Identifier: MIT */
/* adapter_int.h - an adapter inside: pairs of thin matrices by the weights that
 * they change, or directions by the layers that they follow */
#ifndef GG_MODEL_ADAPTER_ADAPTER_INT_H
#define GG_MODEL_ADAPTER_ADAPTER_INT_H

#include "gguf/adapter.h"
#include "gguf/graph.h"
#include "model/model_int.h"

/* What is added to a weight is b a: f32, a [columns, rank], b [rank, rows], of
 * experts with a third dimension, whichever form the file has them in. */
struct gg_adapter_pair {
    const struct gguf_tensor *weight; /* of the model */
    struct gguf_tensor *a, *b;
    float factor;   /* alpha / rank, or 1 */
    bool of_output; /* pair of an output matrix that the model does not have:
                     * it changes the product with the embedding, and not the
                     * rows that are looked up */
};

struct gguf_adapter {
    const struct gguf_allocator *allocator;
    const struct gguf_model *model;
    struct gguf_ctx *ctx;
    struct gguf_buffer *buffer; /* in which it was opened, or NULL: */
    struct gguf_buffer **home;  /* n_homes of them, where its weights lie */
    size_t n_homes;
    struct gg_adapter_pair *pair; /* sorted by the address of the weight,
                                   * pairs of outputs last */
    size_t n_pairs;
    struct gguf_tensor **direction; /* [n_directions], by layer: f32 [n_embd];
                                     * NULL where a layer has none */
    size_t n_directions;
    struct gguf_adapter_info info;
};

/* What of it a graph may have: pairs, then directions. */
static inline size_t gg_adapter_n_parts(const struct gguf_adapter *a)
{
    return a->n_pairs + a->n_directions;
}

/* control_vector.c: is it the file of a control vector? */
bool gg_control_vector_is_file(const struct gguf_file *file);
/* Fill a, which has its model, from the file of a control vector:
 * directions of the layers [first, last]. As gguf_adapter_create fails. */
enum gguf_status gg_control_vector_open(struct gguf_adapter *a,
                                        const struct gguf_file *file,
                                        uint32_t first, uint32_t last,
                                        struct gguf_error *err);

/* adapter_place.c: free what its tensors lie in. */
void gg_adapter_free_memory(struct gguf_adapter *a);

/* The order of an adapter's pairs: for qsort() and bsearch(). */
int gg_adapter_compare(const void *a, const void *b);

/* The adapters of a graph. Zeroed: none. */
struct gg_model_adapters {
    const struct gguf_adapter_use *use;
    size_t n;
    uint8_t *seen; /* of the parts of all of them, one after another, what
                    * building graphs showed: enum gg_adapter_part_use; NULL:
                    * that is of no interest */
};

enum gg_adapter_part_use {
    GG_ADAPTER_PART_USED = 1,  /* a graph has it */
    GG_ADAPTER_WEIGHT_USED = 2 /* a graph has its weight */
};

/* Note which weights of pairs graph has. */
void gg_model_note_adapters(const struct gg_model_adapters *added,
                            const struct gguf_graph *graph);

/* Nodes that they make more in a graph of m, at most. */
size_t gg_model_n_adapter_nodes(const struct gguf_model *m,
                                const struct gg_model_adapters *added);

#endif
