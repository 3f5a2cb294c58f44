/* build.h - the graph of a forward pass
 *
 * n_tok tokens of each of n_seq sequences, N = n_tok * n_seq in all, sequence
 * after sequence. Keys and values go to the rows of a cache that kv_rows
 * names and are read back from there together with those of earlier tokens.
 */
#ifndef GG_MODEL_BUILD_H
#define GG_MODEL_BUILD_H

#include "gguf/graph.h"
#include "model/model.h"

/* What a pass reads: inputs and the cache's tensors, made by the caller. */
struct gg_pass {
    const struct gguf_model *model;
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    int64_t n_tok, n_seq; /* per sequence; sequences */
    int64_t n_kv;         /* rows of each sequence's cache that are read */
    int64_t n_out;        /* tokens whose result is wanted; 0: none */
    struct gguf_tensor *tokens;  /* i32 [N] */
    struct gguf_tensor *pos;     /* i32 [N] */
    struct gguf_tensor *kv_rows; /* i32 [N]: rows of the whole cache */
    struct gguf_tensor *out_rows; /* i32 [n_out], or NULL if all N are wanted */
    struct gguf_tensor *mask;    /* f32 [n_kv, n_tok, 1, 1 or n_seq] */
    /* Per layer, [d * n_head_kv, n_ctx * streams]; the n_seq sequences are
     * streams first_stream and following. */
    struct gguf_tensor **cache_k, **cache_v;
    int64_t n_ctx, first_stream;
};

/* The states behind the last norm, f32 [n_embd, n_out] in the order of
 * out_rows, an output of the graph; NULL with n_out 0, and after a failure,
 * which is sticky in ctx. The graph holds everything. */
struct gguf_tensor *gg_build_pass(const struct gg_pass *p);

/* Logits of states f32 [n_embd, n]: [n_vocab, n]. */
struct gguf_tensor *gg_build_logits(const struct gguf_model *m,
                                    struct gguf_ctx *ctx,
                                    struct gguf_tensor *states);

/* Nodes of a pass, at most. */
size_t gg_build_n_nodes(const struct gguf_model *m);

#endif
