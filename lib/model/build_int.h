/* SPDX-License-Identifier: MIT */
/* build_int.h - functions that the builders of a pass share
 *
 * A pass is built layer by layer. A builder gets a struct gg_model_at, which
 * names the pass and the layer, and returns a node of the graph.
 * Errors are sticky: after one, functions return NULL and accept NULL.
 *
 * Shapes: N is the number of tokens of the pass, d the width of a head, h the
 * number of heads. */
#ifndef GG_MODEL_BUILD_INT_H
#define GG_MODEL_BUILD_INT_H

#include "model/build.h"
#include "model/weight/needs.h"

/* Tensors that layers of a pass leave for later layers. */
struct gg_model_layer_links {
    /* mask of the keys that the last layer with an indexer chose */
    struct gguf_tensor *chosen;
    struct gguf_tensor *value; /* RWKV-7: values of the first layer [E, N] */
    struct gguf_tensor *first; /* input of the first layer [E, N] */
    /* keys and values of the last layer with each type of attention */
    struct gguf_tensor *k[GG_N_ATTN_TYPES], *v[GG_N_ATTN_TYPES];
    struct gguf_tensor *inputs; /* inputs of all layers, [n, n_layer, N] */
};

/* Place of a builder: a layer of a pass. */
struct gg_model_at {
    const struct gg_model_pass *p;
    const struct gguf_model *m;
    struct gguf_ctx *c;
    const struct gg_arch *arch;
    const struct gg_model_layer *layer; /* layer il */
    const struct gg_weights *weights;
    struct gg_model_layer_links *across;
    const struct gg_model_adapters *added; /* adapters; NULL: none */
    uint32_t il;
    /* input of the layer, of the tokens that are still needed */
    struct gguf_tensor *in;
    struct gguf_tensor *sum; /* residual stream before the feed-forward part */
};

struct gg_model_at gg_model_at_layer(const struct gg_model_pass *p,
                                     struct gg_model_layer_links *across,
                                     uint32_t il);

/* ---- layer_parts.c: used everywhere ---- */

/* Weight of the layer, or of the model. NULL: the file lacks it. */
struct gguf_tensor *gg_weight_at(const struct gg_model_at *at,
                                 enum gg_weight id);

/* Name an activation, so that programs find it in graphs. Returns x.
 *
 * An activation computed with a weight has the weight's name: "blk.3.attn_q"
 * for "blk.3.attn_q.weight". This function names x "blk.LAYER.WHAT" if it has
 * no name yet. The last dimension of a named tensor is tokens. */
struct gguf_tensor *gg_model_name_activation(const struct gg_model_at *at,
                                             const char *what,
                                             struct gguf_tensor *x);

/* Multiply the products y of matrix id by the scale beside it. Without one,
 * returns y. */
struct gguf_tensor *gg_model_apply_weight_scale(const struct gg_model_at *at,
                                                enum gg_weight id,
                                                struct gguf_tensor *y);

/* Multiply x by matrix id and add its bias, if it has one. All products of a
 * matrix and vectors are built here. */
struct gguf_tensor *gg_model_linear(const struct gg_model_at *at,
                                    enum gg_weight id, struct gguf_tensor *x);

/* Multiply x by one matrix of id per column, and add its bias, if it has one.
 *
 * x      [columns, 1 or n_used, N]
 * ids    [n_used, N], the matrix of each column
 *
 * Returns [rows, n_used, N]. */
struct gguf_tensor *gg_model_linear_id(const struct gg_model_at *at,
                                       enum gg_weight id,
                                       struct gguf_tensor *x,
                                       struct gguf_tensor *ids);

/* Look up rows ids [N] of matrix id and multiply them by the scale beside it.
 * Returns [n, N]. */
struct gguf_tensor *gg_model_look_up_rows(const struct gg_model_at *at,
                                          enum gg_weight id,
                                          struct gguf_tensor *ids);

/* View heads in x [.., N] as [d, h, N]. The first head begins at row first;
 * heads lie step rows apart. */
struct gguf_tensor *gg_model_view_heads(const struct gg_model_at *at,
                                        struct gguf_tensor *x, int64_t first,
                                        int64_t d, int64_t h, int64_t step);

/* Multiply the result of attention, taken [d * h, N], by a gate for each
 * element, [d * h, N], or for each head, [h, N]. */
struct gguf_tensor *gg_model_gate_heads(const struct gg_model_at *at,
                                        struct gguf_tensor *taken,
                                        struct gguf_tensor *gate);

/* Normalise rows of x, then multiply by weight id and add its bias, if it has
 * one. kind: enum gg_model_norm. id GG_W_NONE: no weight. */
struct gguf_tensor *gg_model_apply_norm(const struct gg_model_at *at,
                                        unsigned kind, enum gg_weight id,
                                        struct gguf_tensor *x);
/* Normalise rows of x as gg_model_apply_norm() does, with this epsilon instead
 * of the model's. */
struct gguf_tensor *gg_model_apply_norm_with_eps(const struct gg_model_at *at,
                                                 unsigned kind,
                                                 enum gg_weight id, float eps,
                                                 struct gguf_tensor *x);
/* Normalise rows of x with the architecture's kind of norm and weight id. If id
 * is GG_W_NONE, returns x. */
struct gguf_tensor *gg_model_apply_norm_if(const struct gg_model_at *at,
                                           unsigned id, struct gguf_tensor *x);

/* Multiply x by scale. If scale is 0 or 1, returns x. */
struct gguf_tensor *gg_model_apply_scale(const struct gg_model_at *at,
                                         struct gguf_tensor *x, float scale);

/* Multiply queries x [d, h, N] by their temperature. In a layer without
 * temperature, returns x. */
struct gguf_tensor *gg_model_scale_queries(const struct gg_model_at *at,
                                           struct gguf_tensor *x);

/* ---- adapter_graph.c: terms that adapters add ---- */

/* Add the LoRA terms of weight to the product y = weight x. ids: the matrix of
 * each column, as in gg_model_linear_id(); NULL: weight is one matrix. */
struct gguf_tensor *gg_model_add_lora(const struct gg_model_at *at,
                                      struct gguf_tensor *weight,
                                      struct gguf_tensor *x,
                                      struct gguf_tensor *ids,
                                      struct gguf_tensor *y);
/* Add the LoRA terms of weight to rows y that were looked up by ids. */
struct gguf_tensor *gg_model_add_lora_rows(const struct gg_model_at *at,
                                           struct gguf_tensor *weight,
                                           struct gguf_tensor *ids,
                                           struct gguf_tensor *y);

/* Add the directions of control vectors to the residual stream x after a layer.
 * If x is NULL, returns NULL. */
struct gguf_tensor *gg_model_add_control_vector(const struct gg_model_at *at,
                                                struct gguf_tensor *x);

/* ---- model_facts.c ---- */

/* Number of layers that are computed. Nextn layers, which predict further
 * tokens, come after them and are not. */
uint32_t gg_model_n_main_layers(const struct gguf_model *m);
/* Is this the last layer that is computed? After its mixer only tokens whose
 * output is wanted are needed; gg_model_take_output_rows() selects their
 * columns of x. */
bool gg_model_is_last_layer(const struct gg_model_at *at);
struct gguf_tensor *gg_model_take_output_rows(const struct gg_model_at *at,
                                              struct gguf_tensor *x);

/* ---- per_layer.c: additional inputs of each layer ---- */

/* Compute the additional inputs of all layers, [n, n_layer, N], from the
 * embeddings x. NULL: a model without them. */
struct gguf_tensor *gg_model_build_layer_inputs(const struct gg_model_at *at,
                                                struct gguf_tensor *x);
/* Compute the term that a layer adds to the residual stream x from its
 * additional input. NULL: a model without them. */
struct gguf_tensor *gg_model_project_layer_input(const struct gg_model_at *at,
                                                 struct gguf_tensor *x);

/* ---- models with several residual streams ---- */

gg_arch_layers_fn gg_altup_layers, /* altup.c */
    gg_hyper_connections_layers;   /* hyper_connections.c */

/* ---- mixers ---- */

/* Does the file have this weight of layer il? May be called before weights are
 * loaded. */
bool gg_model_has_weight(const struct gguf_model *m, enum gg_weight id,
                         uint32_t il);
/* Fail with "tensor 'x' is missing", GGUF_E_TENSOR. */
enum gguf_status gg_model_fail_missing_weight(enum gg_weight id, uint32_t il,
                                              struct gguf_error *err);

/* ---- mix_attn.c: functions of mixers with keys ---- */

/* Attention with heads, by the row's columns, with a mask. Returns [.., N]. */
struct gguf_tensor *gg_model_attend_heads(const struct gg_model_at *at,
                                          struct gguf_tensor *x,
                                          struct gguf_tensor *mask);

/* Apply the rotary embedding to x [d, h, N]. In a layer without it, returns
 * x. */
struct gguf_tensor *gg_model_apply_rope(const struct gg_model_at *at,
                                        struct gguf_tensor *x);

/* Rotate x, which has been rotated and scaled before, further by the pass's
 * positions, without scaling it again. */
struct gguf_tensor *gg_model_shift_rope(const struct gg_model_at *at,
                                        struct gguf_tensor *x);
/* Clear the magnitude that YaRN or a key gives, so that the embedding only
 * rotates. */
void gg_model_clear_rope_scaling(struct gguf_rope *rope);

/* Order x [d, h, N] of this pass as attention reads it: [d, n_tok, h, n_seq],
 * with the tokens and streams of pass->keys. */
struct gguf_tensor *gg_model_order_for_attention(const struct gg_model_at *at,
                                                 struct gguf_tensor *x,
                                                 int64_t d, int64_t h);
/* Rows of a cache that are read: the first n_kv of n_cells rows of each of n
 * streams. */
struct gg_model_cache_rows {
    int64_t n_kv, n_cells, first_stream, n;
};
/* View those rows of a cache all [d * h, n_cells * streams] as [d, n_kv, h,
 * n]. */
struct gguf_tensor *
gg_model_view_cache_rows(const struct gg_model_at *at, struct gguf_tensor *all,
                         const struct gg_model_cache_rows *rows, int64_t d,
                         int64_t h);
/* Store keys or values x in the cache and return those that the tokens attend
 * to, [d, n_kv, h, n_seq]. memory NULL: no cache; the tokens of the pass attend
 * to each other. */
struct gguf_tensor *gg_model_update_cache(const struct gg_model_at *at,
                                          struct gguf_tensor **memory,
                                          struct gguf_tensor *x, int64_t d,
                                          int64_t h);

/* ---- mix_indexer.c ---- */

/* Rotary embedding of the indexer's heads. */
struct gguf_rope gg_model_indexer_rope(const struct gg_model_at *at);

/* ---- recurrence.c: functions of mixers with a state ---- */

/* View the states of the pass's sequences in a memory of all streams, which are
 * the last of n_dims dimensions (3 or 4). */
struct gguf_tensor *gg_model_view_states(const struct gg_model_at *at,
                                         struct gguf_tensor *all,
                                         unsigned n_dims);

/* Store the state now of the pass's streams in memory, after all reads of the
 * old state. */
void gg_model_store_state(const struct gg_model_at *at,
                          struct gguf_tensor *now, struct gguf_tensor *memory);

/* View rows [first, first + n) of x [.., N] for the real tokens: [n, n_real,
 * n_seq]. */
struct gguf_tensor *gg_model_view_real_tokens(const struct gg_model_at *at,
                                              struct gguf_tensor *x,
                                              int64_t first, int64_t n);
/* View n heads of d rows, from row first on, of x [.., n_real, n_seq]: [d, n,
 * n_real, n_seq]. */
struct gguf_tensor *gg_model_view_real_heads(const struct gg_model_at *at,
                                             struct gguf_tensor *x,
                                             int64_t first, int64_t d,
                                             int64_t n);
/* Pad x [n, n_real, n_seq] to all tokens of the pass, [n, N]: padding tokens
 * get the column of the last real token. */
struct gguf_tensor *gg_model_repeat_last_token(const struct gg_model_at *at,
                                               struct gguf_tensor *x);

/* Causal convolution of x [channels, n_real, n_seq], and the bias of weight id,
 * if it has one. Same shape.
 *
 * before   [channels, n_conv - 1, n_seq] of the memory: the inputs before x.
 *          They are replaced by the last inputs of x. NULL: the kernel has one
 *          tap. */
struct gguf_tensor *gg_model_apply_conv(const struct gg_model_at *at,
                                        enum gg_weight id,
                                        struct gguf_tensor *x,
                                        struct gguf_tensor *before);

/* ---- mix_latent.c ---- */

/* Are the matrices for K and V separate (absorbed latent attention)? Then the
 * latent row of a token is all that is cached. */
bool gg_model_has_absorbed_mla(const struct gguf_model *m, uint32_t il);
/* Low-rank input of the second query matrix. If queries have one matrix,
 * returns x. */
struct gguf_tensor *gg_model_compress_query(const struct gg_model_at *at,
                                            struct gguf_tensor *x);

/* Latent attention with rank_q from gg_model_compress_query() and a mask. */
struct gguf_tensor *gg_model_attend_latent(const struct gg_model_at *at,
                                           struct gguf_tensor *x,
                                           struct gguf_tensor *rank_q,
                                           struct gguf_tensor *mask);

/* ---- ffn.c, moe.c ---- */

/* Combine gate and up by the model's activation. limit: if not 0, the gate is
 * clamped from above to it, and up to [-limit, limit]. */
struct gguf_tensor *gg_model_apply_gated_act(const struct gg_model_at *at,
                                             struct gguf_tensor *gate,
                                             struct gguf_tensor *up,
                                             float limit);
/* Apply the model's activation to x, in a feed-forward part without a gate. */
struct gguf_tensor *gg_model_apply_act(const struct gg_model_at *at,
                                       struct gguf_tensor *x);

/* Build the feed-forward part of a layer for normed x [n_embd, N]. */
struct gguf_tensor *gg_model_build_ffn(const struct gg_model_at *at,
                                       struct gguf_tensor *x);
/* Can the layer's feed-forward part be built? */
bool gg_ffn_is_supported(const struct gguf_model *m,
                         const struct gg_model_layer *layer);
/* Build the experts of a layer for normed x [n_embd, N]. */
struct gguf_tensor *gg_model_build_moe(const struct gg_model_at *at,
                                       struct gguf_tensor *x);

#endif
