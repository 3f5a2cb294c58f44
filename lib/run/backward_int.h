/* SPDX-License-Identifier: MIT */
/* backward_int.h - a part of a pass with its gradients */
#ifndef GG_RUN_BACKWARD_INT_H
#define GG_RUN_BACKWARD_INT_H

#include "gguf/gradient.h"
#include "run/backward.h"
#include "run/graph_cuts.h"
#include "run/session_int.h"

/* Nodes begin to end - 1 of the session's graph, between two cuts. */
struct gg_backward_part {
    size_t begin, end;
    uint32_t layer; /* the cut after this layer is at its end */
    uint64_t at;    /* byte of the store where its results begin */
};

struct gg_backward {
    struct gguf_session *s;
    const struct gguf_allocator *allocator;
    struct gg_graph_cuts cuts;
    struct gg_backward_part *part; /* [n_layers] */
    uint32_t n_parts;

    /* graph of one part, forwards and backwards */
    struct gguf_ctx *ctx;
    size_t ctx_size;
    struct gguf_galloc *galloc;
    struct gguf_graph *graph;
    size_t n_forward; /* nodes that compute forwards */
    /* copies of the session's nodes in ctx; NULL: not copied */
    struct gguf_tensor **copy;
    size_t n_copies;

    /* results, their gradients, tensors whose gradients are wanted */
    struct gguf_tensor **result, **seed, **wanted, **gradient;
    size_t n_results, n_wanted, list_cap;
    size_t n_inputs;  /* the first of wanted are inputs of the part */
    bool has_vectors; /* vectors are wanted */
    bool has_inputs;  /* inputs of products are wanted */

    char *store; /* results that are carried over cuts */
    uint64_t store_size;
    char *seed_store[2]; /* gradients at the end of a part, and at its begin */
    uint64_t seed_size;
};

/* Number of logits' rows that are computed at once. */
enum { GG_BACKWARD_ROWS = 128 };

/* backward_part.c: build the graph of part i and extend it. */
enum gguf_status gg_backward_build_part(struct gg_backward *b, uint32_t i,
                                        struct gguf_error *err);
/* Build the graph of n rows of logits and extend it: result[0] are the logits,
 * wanted[0] the states. */
enum gguf_status gg_backward_build_head(struct gg_backward *b, size_t n,
                                        struct gguf_error *err);

/* Next tensor that part i carries over the cut at its end. Begin with *k = 0.
 */
struct gguf_tensor *gg_backward_next_carried(const struct gg_backward *b,
                                             uint32_t i, size_t *k);

#endif
