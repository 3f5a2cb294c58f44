/* SPDX-License-Identifier: MIT */
/* adapter_int.h - adapters: LoRA pairs by weight, or control vectors by layer
 *
 * An adapter belongs to one model. A LoRA adapter has a pair of thin matrices
 * for each weight that it changes; a control vector has a direction for each
 * layer. struct gg_model_adapters lists the adapters of a graph; builders add
 * their terms (adapter_graph.c). */
#ifndef GG_MODEL_ADAPTER_ADAPTER_INT_H
#define GG_MODEL_ADAPTER_ADAPTER_INT_H

#include "gguf/adapter.h"
#include "gguf/graph.h"
#include "model/model_int.h"

/* Low-rank change of a weight: b a is added to it. f32: a [columns, rank], b
 * [rank, rows]; for experts with a third dimension, whichever way the file
 * stores them. */
struct gg_adapter_pair {
    const struct gguf_tensor *weight; /* weight of the model */
    struct gguf_tensor *a, *b;
    float factor; /* alpha / rank; 1 if the file has no alpha */
    /* Pair of an output matrix in a model whose output is its embedding. It
     * changes products with the embedding, not the rows that are looked up. */
    bool of_output;
};

struct gguf_adapter {
    const struct gguf_allocator *allocator;
    const struct gguf_model *model;
    struct gguf_ctx *ctx;
    struct gguf_buffer
        *buffer; /* buffer where it was opened; NULL: see home */
    /* [n_homes] buffers, in the memory of the model's weights */
    struct gguf_buffer **home;
    size_t n_homes;
    /* sorted by address of the weight; pairs of outputs last */
    struct gg_adapter_pair *pair;
    size_t n_pairs;
    /* [n_directions], by layer: f32 [n_embd]; NULL: not in this layer */
    struct gguf_tensor **direction;
    size_t n_directions;
    struct gguf_adapter_info info;
};

/* Number of parts that a graph may use: pairs, then directions. */
static inline size_t gg_adapter_n_parts(const struct gguf_adapter *a)
{
    return a->n_pairs + a->n_directions;
}

/* control_vector.c: is file a control vector? */
bool gg_control_vector_is_file(const struct gguf_file *file);
/* control_vector.c: fill a, whose model is set, with the directions of layers
 * [first, last] of a control vector's file. Statuses of
 * gguf_adapter_create(). */
enum gguf_status gg_control_vector_open(struct gguf_adapter *a,
                                        const struct gguf_file *file,
                                        uint32_t first, uint32_t last,
                                        struct gguf_error *err);

/* adapter_place.c: free the memory of its tensors. */
void gg_adapter_free_memory(struct gguf_adapter *a);

/* Compare two pairs by the order of an adapter's pairs, for qsort() and
 * bsearch(). */
int gg_adapter_compare(const void *a, const void *b);

/* Adapters of a graph. All zero: none. */
struct gg_model_adapters {
    const struct gguf_adapter_use *use;
    size_t n;
    /* Bits of enum gg_adapter_part_use that building graphs sets, for the parts
     * of all adapters one after another. NULL: not recorded. */
    uint8_t *seen;
};

enum gg_adapter_part_use {
    GG_ADAPTER_PART_USED = 1,  /* a graph uses the part */
    GG_ADAPTER_WEIGHT_USED = 2 /* a graph has the weight of the pair */
};

/* Record in added->seen which weights of pairs graph has. */
void gg_model_note_adapters(const struct gg_model_adapters *added,
                            const struct gguf_graph *graph);

/* Most nodes that the adapters add to a graph of m. */
size_t gg_model_n_adapter_nodes(const struct gguf_model *m,
                                const struct gg_model_adapters *added);

#endif
