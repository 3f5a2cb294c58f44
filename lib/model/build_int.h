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

/* Tensors of earlier layers of a pass that later layers read. NULL: no layer
 * has set the tensor yet. */
struct gg_model_layer_links {
    /* mask of the keys that the most recent layer with an indexer chose */
    struct gguf_tensor *chosen;
    struct gguf_tensor *value; /* RWKV-7: values of the first layer [E, N] */
    struct gguf_tensor *first; /* input of the first layer [E, N] */
    /* for each type of attention: keys and values of the most recent layer of
     * that type that has its own */
    struct gguf_tensor *k[GG_N_ATTN_TYPES], *v[GG_N_ATTN_TYPES];
    /* additional inputs of all layers, gg_model_build_layer_inputs() */
    struct gguf_tensor *inputs;
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
    const struct gg_model_adapters *added; /* adapters in use; NULL: none */
    uint32_t il;
    /* Input of the layer. After the mixer of the last layer, only the columns
     * of tokens whose output is wanted. */
    struct gguf_tensor *in;
    struct gguf_tensor *sum; /* residual stream before the feed-forward part */
};

/* Place of layer il, for the builders of that layer. */
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
 * no name yet. In every named tensor, the last dimension counts tokens. */
struct gguf_tensor *gg_model_name_activation(const struct gg_model_at *at,
                                             const char *what,
                                             struct gguf_tensor *x);

/* Name y after the weight that it is computed with, if it has no name yet.
 * Returns y. */
struct gguf_tensor *
gg_model_name_after_weight(const struct gguf_tensor *weight,
                           struct gguf_tensor *y);

/* Multiply the products y of matrix id by the scale tensor of this matrix. If
 * the file has no such tensor, returns y. */
struct gguf_tensor *gg_model_apply_weight_scale(const struct gg_model_at *at,
                                                enum gg_weight id,
                                                struct gguf_tensor *y);

/* Multiply x by matrix id, apply the matrix's scale tensor, and add its bias
 * and LoRA terms, each if there is one. Products of a whole weight matrix and
 * vectors are built only by this function and gg_model_linear_id(). */
struct gguf_tensor *gg_model_linear(const struct gg_model_at *at,
                                    enum gg_weight id, struct gguf_tensor *x);

/* Multiply each vector of x by the matrix that ids selects from the stack of
 * matrices id. Apply that matrix's scale, and add its bias and LoRA terms, each
 * if there is one.
 *
 * x      [length of a vector, 1 or n_used, N]
 * ids    [n_used, N], the matrix of each vector
 *
 * Returns [rows, n_used, N]. */
struct gguf_tensor *gg_model_linear_id(const struct gg_model_at *at,
                                       enum gg_weight id,
                                       struct gguf_tensor *x,
                                       struct gguf_tensor *ids);

/* Look up the rows of matrix id whose numbers are in ids [N]. Multiply the rows
 * by the scale tensor of this matrix, and add their LoRA terms, each if there
 * is one. Returns [n, N], with rows of length n. */
struct gguf_tensor *gg_model_look_up_rows(const struct gg_model_at *at,
                                          enum gg_weight id,
                                          struct gguf_tensor *ids);

/* View h heads of width d in x [.., N] as [d, h, N]. The first head begins at
 * the row given by first. The begins of two neighbouring heads are step rows
 * apart. */
struct gguf_tensor *gg_model_view_heads(const struct gg_model_at *at,
                                        struct gguf_tensor *x, int64_t first,
                                        int64_t d, int64_t h, int64_t step);

/* Multiply the result of attention, [d * h, N], by gate. The parameter named
 * taken is the result of attention. The gate has a factor for each element,
 * [d * h, N], or for each head, [h, N]. */
struct gguf_tensor *gg_model_gate_heads(const struct gg_model_at *at,
                                        struct gguf_tensor *taken,
                                        struct gguf_tensor *gate);

/* Multiply the result of attention, [d * h, N], by the gate of the architecture
 * (arch.h: gate_attention), computed from x. In an architecture without it,
 * returns taken. */
struct gguf_tensor *gg_model_gate_attention(const struct gg_model_at *at,
                                            struct gguf_tensor *x,
                                            struct gguf_tensor *taken);

/* Normalise x along dimension 0, then multiply by weight id and add its bias,
 * if it has one. kind: enum gg_model_norm. id GG_W_NONE: no weight. */
struct gguf_tensor *gg_model_apply_norm(const struct gg_model_at *at,
                                        unsigned kind, enum gg_weight id,
                                        struct gguf_tensor *x);
/* Do what gg_model_apply_norm() does, with epsilon eps instead of the model's.
 */
struct gguf_tensor *gg_model_apply_norm_with_eps(const struct gg_model_at *at,
                                                 unsigned kind,
                                                 enum gg_weight id, float eps,
                                                 struct gguf_tensor *x);
/* Normalise x along dimension 0 with the architecture's kind of norm and weight
 * id. If id is GG_W_NONE, returns x. */
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

/* Add the LoRA terms of a weight to y, the product of weight and x.
 *
 * ids   [n_used, N], the matrix of each column, as in gg_model_linear_id().
 *       NULL: weight is one matrix. */
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
 * tokens, come after them and are not computed. */
uint32_t gg_model_n_main_layers(const struct gguf_model *m);
/* Is this the last layer that is computed? */
bool gg_model_is_last_layer(const struct gg_model_at *at);
/* Select the columns of x [.., N] for the tokens whose output is wanted. Only
 * these are needed after the mixer of the last layer. */
struct gguf_tensor *gg_model_take_output_rows(const struct gg_model_at *at,
                                              struct gguf_tensor *x);
/* Select the same tokens of n residual streams h [n_embd, n, N]. NULL: NULL. */
struct gguf_tensor *gg_model_take_output_streams(const struct gg_model_at *at,
                                                 struct gguf_tensor *h);

/* ---- per_layer.c: additional inputs of each layer ---- */

/* Compute the additional inputs of all layers, [n, n_layer, N], from the
 * embeddings x. Returns NULL for a model whose layers have no additional
 * inputs. */
struct gguf_tensor *gg_model_build_layer_inputs(const struct gg_model_at *at,
                                                struct gguf_tensor *x);
/* Compute the term that a layer adds to the residual stream. It is computed
 * from the residual stream x and the layer's additional input. Returns NULL for
 * a model whose layers have no additional inputs. */
struct gguf_tensor *gg_model_project_layer_input(const struct gg_model_at *at,
                                                 struct gguf_tensor *x);

/* ---- models with several residual streams ---- */

/* build.c: build computed layer il for the residual stream x, as other models
 * have it. NULL: the last layer of a pass without outputs. */
struct gguf_tensor *gg_model_build_layer(const struct gg_model_pass *p,
                                         struct gg_model_layer_links *across,
                                         uint32_t il, struct gguf_tensor *x);

gg_arch_layers_fn gg_altup_layers, /* altup.c */
    gg_hyper_connections_layers,   /* hyper_connections.c */
    gg_gated_streams_layers;       /* gated_streams.c */

/* Normalise each stream of h [n_embd, n, N], and multiply all by weight id.
 * Returns [n_embd * n, N]. */
struct gguf_tensor *gg_model_norm_streams(const struct gg_model_at *at,
                                          enum gg_weight id,
                                          struct gguf_tensor *h);
/* ngram_embeddings.c: streams h with the terms of n-grams, in a layer that has
 * them. */
struct gguf_tensor *gg_model_add_ngrams(const struct gg_model_at *at,
                                        struct gguf_tensor *h);

/* ---- mixers ---- */

/* Does the file have this weight of layer il? May be called before weights are
 * loaded. */
bool gg_model_has_weight(const struct gguf_model *m, enum gg_weight id,
                         uint32_t il);
/* Fail with "tensor 'x' is missing", GGUF_E_TENSOR. */
enum gguf_status gg_model_fail_missing_weight(enum gg_weight id, uint32_t il,
                                              struct gguf_error *err);

/* ---- mix_attn.c: functions of mixers with keys ---- */

/* Build attention with heads and a mask, as at->arch describes it. x: the
 * normed input. Returns the result of all heads, [.., N], before the output
 * matrix. */
struct gguf_tensor *gg_model_attend_heads(const struct gg_model_at *at,
                                          struct gguf_tensor *x,
                                          struct gguf_tensor *mask);

/* Apply the rotary embedding to x [d, h, N]. In a layer without it, returns
 * x. */
struct gguf_tensor *gg_model_apply_rope(const struct gg_model_at *at,
                                        struct gguf_tensor *x);

/* Rotate cached keys x to other positions. The position of a key in this pass
 * is its new position minus its old one. x has been rotated and scaled before,
 * and is not scaled again. */
struct gguf_tensor *gg_model_shift_rope(const struct gg_model_at *at,
                                        struct gguf_tensor *x);
/* Clear the magnitude factor that YaRN or a key of the file gives, so that the
 * rotary embedding rotates and does not scale. */
void gg_model_clear_rope_scaling(struct gguf_rope *rope);

/* Reorder x [d, h, N] of this pass for attention: to [d, n_tok, h, n_seq], with
 * n_tok and n_seq of pass->keys. */
struct gguf_tensor *gg_model_order_for_attention(const struct gg_model_at *at,
                                                 struct gguf_tensor *x,
                                                 int64_t d, int64_t h);
/* Rows of a cache that are read. Each stream has n_cells rows. The first n_kv
 * of them are read, in the n streams from first_stream on. */
struct gg_model_cache_rows {
    int64_t n_kv, n_cells, first_stream, n;
};
/* View the given rows of a cache as [d, n_kv, h, n]. all: the tensor of the
 * cache, [d * h, n_cells * streams]. */
struct gguf_tensor *
gg_model_view_cache_rows(const struct gg_model_at *at, struct gguf_tensor *all,
                         const struct gg_model_cache_rows *rows, int64_t d,
                         int64_t h);
/* Store keys or values x in a cache. Returns the keys or values that the tokens
 * of the pass attend to, [d, n_kv, h, n_seq].
 *
 * memory   Tensors of the cache, one per layer.
 *          NULL: the pass uses no cache, and the tokens of the pass attend to
 *          each other. */
struct gguf_tensor *gg_model_update_cache(const struct gg_model_at *at,
                                          struct gguf_tensor **memory,
                                          struct gguf_tensor *x, int64_t d,
                                          int64_t h);

/* ---- mix_compress.c: functions of mixers with compressed keys ---- */

/* Blocks of the layer's ratio. */
const struct gg_model_pass_blocks *
gg_model_find_blocks(const struct gg_model_at *at);
/* Gather the tokens of completed blocks, [.., T n, n_seq], from inputs x [..,
 * N], and store the tokens that later blocks need. */
struct gguf_tensor *gg_model_gather_blocks(const struct gg_model_at *at,
                                           struct gguf_tensor *x);
/* Store rows of blocks in a memory and view the rows that attention reads: [d,
 * n_rows, 1, n_seq]. They are stored even if this pass does not read them. */
struct gguf_tensor *gg_model_store_blocks(const struct gg_model_at *at,
                                          struct gguf_tensor *memory,
                                          struct gguf_tensor *rows);

/* ---- mix_indexer.c ---- */

/* Parameters of the rotary embedding of the indexer's heads. It rotates the
 * same number of elements as in other heads. */
struct gguf_rope gg_model_indexer_rope(const struct gg_model_at *at);
/* Apply a rotary embedding to heads x [dim_idx, h, N] of the indexer, at the
 * positions of the pass. */
struct gguf_tensor *gg_model_rotate_index(const struct gg_model_at *at,
                                          struct gguf_tensor *x,
                                          const struct gguf_rope *rope);

/* ---- recurrence.c: functions of mixers with a state ---- */

/* View the states of the pass's sequences. all: the memory of all streams.
 * n_dims: the number of its dimensions, 3 or 4. The last dimension counts the
 * streams. */
struct gguf_tensor *gg_model_view_states(const struct gg_model_at *at,
                                         struct gguf_tensor *all,
                                         unsigned n_dims);

/* Overwrite a state. now: the new state. memory: a view of the old state of the
 * pass's streams, which receives the new one. Call it after the nodes that read
 * the old state are built. */
void gg_model_store_state(const struct gg_model_at *at,
                          struct gguf_tensor *now, struct gguf_tensor *memory);

/* View rows [first, first + n) of x [.., N] as [n, n_real, n_seq]. The columns
 * are those of real tokens; columns of padding tokens are left out. */
struct gguf_tensor *gg_model_view_real_tokens(const struct gg_model_at *at,
                                              struct gguf_tensor *x,
                                              int64_t first, int64_t n);
/* View rows [first, first + d * n) of x [.., n_real, n_seq] as n heads of d
 * rows each: [d, n, n_real, n_seq]. */
struct gguf_tensor *gg_model_view_real_heads(const struct gg_model_at *at,
                                             struct gguf_tensor *x,
                                             int64_t first, int64_t d,
                                             int64_t n);
/* Pad x [n, n_real, n_seq] to all tokens of the pass, [n, N]. Each padding
 * token gets the column of the last real token of its sequence. */
struct gguf_tensor *gg_model_repeat_last_token(const struct gg_model_at *at,
                                               struct gguf_tensor *x);

/* Apply the causal convolution of weight id to x [channels, n_real, n_seq], and
 * add its bias, if it has one. The result has the shape of x.
 *
 * before   View of the memory, [channels, n_conv - 1, n_seq]: the inputs before
 *          x. This function also adds a node that later replaces them by the
 *          last n_conv - 1 inputs.
 *          NULL: the kernel has one tap. */
struct gguf_tensor *gg_model_apply_conv(const struct gg_model_at *at,
                                        enum gg_weight id,
                                        struct gguf_tensor *x,
                                        struct gguf_tensor *before);

/* ---- mix_latent.c ---- */

/* Does layer il have absorbed latent attention, in which the matrices for K and
 * V are separate? If so, only the latent row of each token is cached. */
bool gg_model_has_absorbed_mla(const struct gguf_model *m, uint32_t il);
/* Compute the low-rank input of the second query matrix from x. If the layer
 * has only one query matrix, returns x. */
struct gguf_tensor *gg_model_compress_query(const struct gg_model_at *at,
                                            struct gguf_tensor *x);

/* Build latent attention with a mask.
 *
 * x        normed input
 * rank_q   result of gg_model_compress_query() */
struct gguf_tensor *gg_model_attend_latent(const struct gg_model_at *at,
                                           struct gguf_tensor *x,
                                           struct gguf_tensor *rank_q,
                                           struct gguf_tensor *mask);

/* ---- ffn.c, moe.c ---- */

/* Combine gate and up by the model's activation.
 *
 * limit   Bound. The gate is clamped to at most limit, before or after the
 *         activation, as the kind of activation says. up is clamped to [-limit,
 *         limit]. 0: no bound. */
struct gguf_tensor *gg_model_apply_gated_act(const struct gg_model_at *at,
                                             struct gguf_tensor *gate,
                                             struct gguf_tensor *up,
                                             float limit);
/* Apply the model's activation to x, in a feed-forward part without a gate. */
struct gguf_tensor *gg_model_apply_act(const struct gg_model_at *at,
                                       struct gguf_tensor *x);

/* Copy half i (0 or 1) of the rows of x [2 n, .., N], which holds gates and the
 * vectors that they multiply. Returns [n, .., N]. */
struct gguf_tensor *gg_model_take_row_half(const struct gg_model_at *at,
                                           struct gguf_tensor *x, int i);

/* Build the feed-forward part of a layer for normed x [n_embd, N]. */
struct gguf_tensor *gg_model_build_ffn(const struct gg_model_at *at,
                                       struct gguf_tensor *x);
/* Can the layer's feed-forward part be built? Its kind and its activation must
 * each have a function here. */
bool gg_ffn_is_supported(const struct gguf_model *m,
                         const struct gg_model_layer *layer);
/* Build the experts of a layer for normed x [n_embd, N]. */
struct gguf_tensor *gg_model_build_moe(const struct gg_model_at *at,
                                       struct gguf_tensor *x);
/* Build the values of all heads, [d * h, N], in a layer with experts that
 * compute them from normed x [n_embd, N]: the sum of the SiLU of the chosen
 * experts' products, each times its weight. */
struct gguf_tensor *gg_model_build_value_experts(const struct gg_model_at *at,
                                                 struct gguf_tensor *x);

#endif
