/* SPDX-License-Identifier: MIT */
/* build_int.h - what the builders of a pass share */
#ifndef GG_MODEL_BUILD_INT_H
#define GG_MODEL_BUILD_INT_H

#include "model/build.h"
#include "model/weight/needs.h"

/* What layers of a pass leave for later ones. */
struct gg_model_layer_links {
    struct gguf_tensor *chosen; /* a mask: the keys that the last layer with an
                                 * indexer chose */
    struct gguf_tensor *value;  /* RWKV-7: the first layer's values [E, N] */
    struct gguf_tensor *first;  /* what the first layer reads [E, N] */
    /* keys and values that layers of a sight saw last */
    struct gguf_tensor *k[GG_N_ATTN_TYPES], *v[GG_N_ATTN_TYPES];
    struct gguf_tensor *inputs; /* of all layers, [n, n_layer, N] */
};

/* Where one builds: in a layer of a pass. */
struct gg_model_at {
    const struct gg_model_pass *p;
    const struct gguf_model *m;
    struct gguf_ctx *c;
    const struct gg_arch *arch;
    const struct gg_model_layer *layer; /* of layer il */
    const struct gg_weights *weights;
    struct gg_model_layer_links *across;
    const struct gg_model_adapters *added; /* adapters; NULL: none */
    uint32_t il;
    struct gguf_tensor *in;  /* what the layer reads, of tokens that count */
    struct gguf_tensor *sum; /* the stream before the feed-forward part */
};

struct gg_model_at gg_model_at_layer(const struct gg_model_pass *p,
                                     struct gg_model_layer_links *across,
                                     uint32_t il);

/* ---- layer_parts.c: used everywhere ---- */

/* The weight of an id, or NULL: of the layer, or of the model. */
struct gguf_tensor *gg_weight_at(const struct gg_model_at *at,
                                 enum gg_weight id);

/* Activations have names, by which programs find them in graphs:
 * those that are made with a weight have the weight's, "blk.3.attn_q" of
 * "blk.3.attn_q.weight", and x gets "blk.LAYER.WHAT" here if it has none.
 * Rows of a tensor that has a name are tokens, after all other dimensions. */
struct gguf_tensor *gg_model_name_activation(const struct gg_model_at *at,
                                             const char *what,
                                             struct gguf_tensor *x);

/* Products y of matrix id, times the scale beside it, if there is one. */
struct gguf_tensor *gg_model_apply_weight_scale(const struct gg_model_at *at,
                                                enum gg_weight id,
                                                struct gguf_tensor *y);

/* Matrix id times x, plus its bias if there is one: the only place where a
 * matrix meets vectors. */
struct gguf_tensor *gg_model_linear(const struct gg_model_at *at,
                                    enum gg_weight id, struct gguf_tensor *x);

/* The same with a matrix, and a bias, for each column, which ids [n_used, N]
 * choose: x [columns, 1 or n_used, N] -> [rows, n_used, N]. */
struct gguf_tensor *gg_model_linear_id(const struct gg_model_at *at,
                                       enum gg_weight id,
                                       struct gguf_tensor *x,
                                       struct gguf_tensor *ids);

/* Rows of matrix id, [n, N], that ids [N] name, times the scale beside it. */
struct gguf_tensor *gg_model_look_up_rows(const struct gg_model_at *at,
                                          enum gg_weight id,
                                          struct gguf_tensor *ids);

/* Heads in x [.., N], a view: [d, h, N] of d rows each, the first from row
 * first on, and from one to the next step rows. */
struct gguf_tensor *gg_model_view_heads(const struct gg_model_at *at,
                                        struct gguf_tensor *x, int64_t first,
                                        int64_t d, int64_t h, int64_t step);

/* Multiply the result of attention, taken [d * h, N], by a gate of each element
 * or of each head, [d * h or h, N]. */
struct gguf_tensor *gg_model_gate_heads(const struct gg_model_at *at,
                                        struct gguf_tensor *taken,
                                        struct gguf_tensor *gate);

/* A norm of rows of x, of a kind of enum gg_model_norm, then weight and bias,
 * if there are any; of id GG_W_NONE it has none. */
struct gguf_tensor *gg_model_apply_norm(const struct gg_model_at *at,
                                        unsigned kind, enum gg_weight id,
                                        struct gguf_tensor *x);
/* The same with an epsilon of its own. */
struct gguf_tensor *gg_model_apply_norm_with_eps(const struct gg_model_at *at,
                                                 unsigned kind,
                                                 enum gg_weight id, float eps,
                                                 struct gguf_tensor *x);
/* The same of the architecture's kind, if id is a weight; else x. */
struct gguf_tensor *gg_model_apply_norm_if(const struct gg_model_at *at,
                                           unsigned id, struct gguf_tensor *x);

/* x scaled, unless by 0 or 1. */
struct gguf_tensor *gg_model_apply_scale(const struct gg_model_at *at,
                                         struct gguf_tensor *x, float scale);

/* Queries x [d, h, N] times their temperature, in layers that have one. */
struct gguf_tensor *gg_model_scale_queries(const struct gg_model_at *at,
                                           struct gguf_tensor *x);

/* ---- adapter_graph.c: what adapters add ---- */

/* y, which is weight times x (by ids, if not NULL, as in gg_model_linear_id),
 * and what x gives with the pairs of thin matrices that the weight has. */
struct gguf_tensor *gg_model_add_lora(const struct gg_model_at *at,
                                      struct gguf_tensor *weight,
                                      struct gguf_tensor *x,
                                      struct gguf_tensor *ids,
                                      struct gguf_tensor *y);
/* The same of y, which is rows of weight. */
struct gguf_tensor *gg_model_add_lora_rows(const struct gg_model_at *at,
                                           struct gguf_tensor *weight,
                                           struct gguf_tensor *ids,
                                           struct gguf_tensor *y);

/* The stream x after a layer, with the directions that it has; NULL of NULL. */
struct gguf_tensor *gg_model_add_control_vector(const struct gg_model_at *at,
                                                struct gguf_tensor *x);

/* ---- model_facts.c ---- */

/* Layers that are computed: those that draft come last. */
uint32_t gg_model_n_main_layers(const struct gguf_model *m);
/* Is it the last layer that is computed? From its mixer's result on only those
 * columns count that are wanted: those of x. */
bool gg_model_is_last_layer(const struct gg_model_at *at);
struct gguf_tensor *gg_model_take_output_rows(const struct gg_model_at *at,
                                              struct gguf_tensor *x);

/* ---- per_layer.c: inputs that layers have of their own ---- */

/* Of all layers, [n, n_layer, N], of embeddings x; NULL: there are none. */
struct gguf_tensor *gg_model_build_layer_inputs(const struct gg_model_at *at,
                                                struct gguf_tensor *x);
/* What a layer adds to the stream, which is x, for its own; NULL: nothing. */
struct gguf_tensor *gg_model_project_layer_input(const struct gg_model_at *at,
                                                 struct gguf_tensor *x);

/* ---- layers on several streams ---- */

gg_arch_layers_fn gg_altup_layers, /* altup.c */
    gg_hyper_connections_layers;   /* hyper_connections.c */

/* ---- mixers ---- */

/* Has the file a tensor of that name? It is known before weights are loaded. */
bool gg_model_has_weight(const struct gguf_model *m, enum gg_weight id,
                         uint32_t il);
/* "tensor 'x' is missing" */
enum gguf_status gg_model_fail_missing_weight(enum gg_weight id, uint32_t il,
                                              struct gguf_error *err);

/* ---- mix_attn.c: what mixers with keys share ---- */

/* Attention of heads with a mask, [.., N]. */
struct gguf_tensor *gg_model_attend_heads(const struct gg_model_at *at,
                                          struct gguf_tensor *x,
                                          struct gguf_tensor *mask);

/* x [d, h, N] turned by positions, if the layer's are. */
struct gguf_tensor *gg_model_apply_rope(const struct gg_model_at *at,
                                        struct gguf_tensor *x);

/* The same of x that was turned already, and scaled: on to a position that is
 * so much later. */
struct gguf_tensor *gg_model_shift_rope(const struct gg_model_at *at,
                                        struct gguf_tensor *x);
/* Turn only, whatever YaRN or a key says of scaling. */
void gg_model_clear_rope_scaling(struct gguf_rope *rope);

/* x [d, h, N] as attention reads it, of the pass alone: [d, n_tok, h, n_seq],
 * tokens and streams as pass->keys has them. */
struct gguf_tensor *gg_model_order_for_attention(const struct gg_model_at *at,
                                                 struct gguf_tensor *x,
                                                 int64_t d, int64_t h);
/* Rows of a memory that are read: the first n_kv of n_cells of each of n
 * streams. */
struct gg_model_cache_rows {
    int64_t n_kv, n_cells, first_stream, n;
};
/* Those of a memory of all [d * h, n_cells * streams]: [d, n_kv, h, n]. */
struct gguf_tensor *
gg_model_view_cache_rows(const struct gg_model_at *at, struct gguf_tensor *all,
                         const struct gg_model_cache_rows *rows, int64_t d,
                         int64_t h);
/* Keys or values x that tokens see: those that are kept, if memory is not
 * NULL, of which x becomes part, or of the pass: [d, n_kv, h, n_seq]. */
struct gguf_tensor *gg_model_update_cache(const struct gg_model_at *at,
                                          struct gguf_tensor **memory,
                                          struct gguf_tensor *x, int64_t d,
                                          int64_t h);

/* ---- mix_indexer.c ---- */

/* How heads of an indexer turn. */
struct gguf_rope gg_model_indexer_rope(const struct gg_model_at *at);

/* ---- recurrence.c: what mixers with a state share ---- */

/* Of a memory of all streams, whose last of n_dims dimensions (3 or 4) they
 * are, those of the pass. */
struct gguf_tensor *gg_model_view_states(const struct gg_model_at *at,
                                         struct gguf_tensor *all,
                                         unsigned n_dims);

/* Put the state now into a memory, of the pass's streams, when all of it was
 * read. */
void gg_model_store_state(const struct gg_model_at *at,
                          struct gguf_tensor *now, struct gguf_tensor *memory);

/* Rows [first, first + n) of x [.., N], of the tokens that count: [n, n_real,
 * n_seq], a view. */
struct gguf_tensor *gg_model_view_real_tokens(const struct gg_model_at *at,
                                              struct gguf_tensor *x,
                                              int64_t first, int64_t n);
/* The same of x [.., n_real, n_seq] as heads: [d, n, n_real, n_seq]. */
struct gguf_tensor *gg_model_view_real_heads(const struct gg_model_at *at,
                                             struct gguf_tensor *x,
                                             int64_t first, int64_t d,
                                             int64_t n);
/* x [n, n_real, n_seq], and what the last token has for those that repeat it:
 * [n, N]. */
struct gguf_tensor *gg_model_repeat_last_token(const struct gg_model_at *at,
                                               struct gguf_tensor *x);

/* x [channels, n_real, n_seq] through a causal convolution, and its bias if
 * there is one: likewise. before [channels, n_conv - 1, n_seq], of the memory
 * (NULL for a kernel of one tap), is what comes before it, and then the last
 * of x. */
struct gguf_tensor *gg_model_apply_conv(const struct gg_model_at *at,
                                        enum gg_weight id,
                                        struct gguf_tensor *x,
                                        struct gguf_tensor *before);

/* ---- mix_latent.c ---- */

/* Are K^T and V apart, so that a token's row is all that is kept of it? */
bool gg_model_has_absorbed_mla(const struct gguf_model *m, uint32_t il);
/* What queries are made of in the second of two steps; x, if there is one. */
struct gguf_tensor *gg_model_compress_query(const struct gg_model_at *at,
                                            struct gguf_tensor *x);

/* Latent attention with that and a mask. */
struct gguf_tensor *gg_model_attend_latent(const struct gg_model_at *at,
                                           struct gguf_tensor *x,
                                           struct gguf_tensor *rank_q,
                                           struct gguf_tensor *mask);

/* ---- ffn.c, moe.c ---- */

/* gate and up together, by the model's activation; with a limit that is not 0,
 * the gate's is at most that, and up as far from 0. */
struct gguf_tensor *gg_model_apply_gated_act(const struct gg_model_at *at,
                                             struct gguf_tensor *gate,
                                             struct gguf_tensor *up,
                                             float limit);
/* x by itself, by the model's activation. */
struct gguf_tensor *gg_model_apply_act(const struct gg_model_at *at,
                                       struct gguf_tensor *x);

/* The feed-forward part of normed x [n_embd, N]. */
struct gguf_tensor *gg_model_build_ffn(const struct gg_model_at *at,
                                       struct gguf_tensor *x);
/* Is there a function for the layer's? */
bool gg_ffn_is_supported(const struct gguf_model *m,
                         const struct gg_model_layer *layer);
/* Result of the experts for normed x. */
struct gguf_tensor *gg_model_build_moe(const struct gg_model_at *at,
                                       struct gguf_tensor *x);

#endif
