/* SPDX-License-Identifier: MIT */
/* arch.h - architectures as data
 *
 * An architecture is a row of struct gg_arch. Its columns describe the norms of
 * a layer and their places, how queries, keys and values are computed, which
 * layers have rotary embeddings, which feed-forward part, which experts. A
 * column that a row leaves out (0) means what Llama has. Rows describe both the
 * file and the computation: weight/needs.c derives the weights and keys that a
 * file must have, build.c and block/ the graph. doc/architectures.md is printed
 * from them.
 *
 * A column is one of three kinds:
 * - a number or an enumerator. At least three rows must set such a column
 *   (tests/model/check-columns). Enumerators are listed in a macro of X(ID,
 *   TEXT), where TEXT describes the enumerator for people;
 * - a pointer to an object that implements one way of doing something: a text
 *   and the functions to call. Objects that several families use are declared
 *   here, those of one family stand beside its rows (family/F.c);
 * - a hook: an additional step of one or two architectures at one place.
 *
 * Files of every architecture in the table can be checked. Only models of
 * architectures with .runs can be evaluated.
 */
#ifndef GG_MODEL_ARCH_H
#define GG_MODEL_ARCH_H

#include "gguf/memory.h"
#include "gguf/model_base.h"
#include "gguf/op.h"
#include "model/weight/weight.h"

#include <stdbool.h>

struct gg_arch;
struct gg_ffn;
struct gg_ffn_act;
struct gg_hparams;
struct gg_hparams_reader;
struct gg_mixer;
struct gg_model_layer_links;
struct gg_model_at;
struct gg_model_layer;
struct gg_needs;
struct gg_model_pass;
struct gg_model_sizes;
struct gguf_model;

/* Hook: a function that is called at one place, for one or two architectures,
 * and a text for people. fn is NULL in the rows of all other architectures. */
#define GG_HOOK(FN)                                                           \
    struct {                                                                  \
        FN *fn;                                                               \
        const char *text;                                                     \
    }

/* ---- shared enumerator ---- */

/* Use of a key or a weight: not read, optional, or required in the file. */
enum gg_model_use { GG_NO, GG_MAY, GG_MUST };

/* ---- norms ---- */

#define GG_NORM_LIST(X)                                                       \
    X(RMS, "")                                                                \
    X(LAYER, "layer norms")
enum gg_model_norm {
#define X(ID, TEXT) GG_NORM_##ID,
    GG_NORM_LIST(X)
#undef X
        GG_N_NORMS
};

/* For architectures in which the file decides the kind of norms: returns the
 * kind of a model. gg_arch_norm_by_epsilon: RMS norms if the file has their
 * epsilon, otherwise layer norms. */
typedef enum gg_model_norm gg_arch_choose_norm_fn(const struct gg_hparams *hp);
gg_arch_choose_norm_fn gg_arch_norm_by_epsilon;

/* Weights of the norms around a part of a layer (enum gg_weight); 0: no
 * norm. */
struct gg_model_norms {
    uint16_t pre;  /* norm of the part's input */
    uint16_t post; /* norm of its result, before the residual addition */
    uint16_t add;  /* norm of the sum after the residual addition */
};

/* ---- the order of a layer's two parts ---- */

#define GG_ORDER_LIST(X)                                                      \
    X(SERIAL, "")                                                             \
    X(PARALLEL, "parallel parts on one norm")                                 \
    X(SINGLE, "one part per layer")
enum gg_model_order {
#define X(ID, TEXT) GG_ORDER_##ID,
    GG_ORDER_LIST(X)
#undef X
        GG_N_ORDERS
};

/* Do both parts of a layer read the layer's input? Used instead of .order. */
typedef bool gg_arch_parallel_fn(const struct gg_model_at *at);
/* For architectures in which the places of norms depend on the model: returns
 * the norms of a part of a layer. n: the norms of that part in the row. */
typedef struct gg_model_norms gg_arch_norms_fn(const struct gg_model_at *at,
                                               const struct gg_model_norms *n);
/* Returns the result y of a part of a layer after its norm, of weight id. */
typedef struct gguf_tensor *
gg_arch_norm_result_fn(const struct gg_model_at *at, unsigned id,
                       struct gguf_tensor *y);
/* Returns the residual stream after a part of a layer. normed: the part's input
 * after its norm. y: its result. */
typedef struct gguf_tensor *gg_arch_join_fn(const struct gg_model_at *at,
                                            struct gguf_tensor *normed,
                                            struct gguf_tensor *y);
/* Builds all layers of a model that keeps several residual streams. x:
 * embeddings [n_embd, N]. Returns the one stream that remains, [n_embd, n_out];
 * NULL for a pass without outputs. */
typedef struct gguf_tensor *
gg_arch_layers_fn(const struct gg_model_pass *p,
                  struct gg_model_layer_links *across, struct gguf_tensor *x);

/* Order of computation if layers of the file are computed more than once. Each
 * computation has memory of its own and a number, from 0, in the order of
 * computation. */
struct gg_arch_unroll {
    const char *text;
    /* number of computed layers; largest number of times that one is
     * computed */
    uint32_t (*n_layers)(const struct gg_hparams *hp);
    uint32_t (*most)(const struct gg_hparams *hp);
    /* number in the file of computed layer il */
    uint32_t (*layer_of)(const struct gg_hparams *hp, uint32_t il);
};

/* ---- mixers ---- */

/* Says which mixer each layer has. of_layer returns the mixer or the other of
 * row a; NULL if layer il has no mixer. */
struct gg_arch_mix_rule {
    const char *text;
    const struct gg_mixer *(*of_layer)(const struct gg_arch *a,
                                       const struct gg_hparams *hp,
                                       uint32_t il);
};
extern const struct gg_arch_mix_rule gg_arch_mix_by_kv;

/* ---- attention ---- */

/* Matrices that compute queries, keys and values. */
struct gg_arch_qkv {
    const char *text;
    const uint16_t *weights; /* list of weights (needs.h) */
    /* the query matrix also has rows for gates of the output */
    bool gates;
};
extern const struct gg_arch_qkv gg_arch_qkv_fused, gg_arch_qkv_separate;

/* Forms of the norms of queries and keys. */
#define GG_QK_LIST(X)                                                         \
    X(NONE, "")                                                               \
    X(HEAD, "per head")                                                       \
    X(EACH_HEAD, "per head, a weight for each")                               \
    X(ALL_HEADS, "of all heads together")
enum gg_model_qk {
#define X(ID, TEXT) GG_QK_##ID,
    GG_QK_LIST(X)
#undef X
        GG_N_QK
};

/* Returns the heads x [d, h, N] of queries or keys after their norm. id:
 * ATTN_Q_NORM or ATTN_K_NORM. */
typedef struct gguf_tensor *gg_arch_norm_heads_fn(const struct gg_model_at *at,
                                                  enum gg_weight id,
                                                  struct gguf_tensor *x);
/* Returns the values x [d, h, N] after their norm. */
typedef struct gguf_tensor *
gg_arch_norm_values_fn(const struct gg_model_at *at, struct gguf_tensor *x);

struct gg_model_qk_norm {
    uint8_t form;    /* enum gg_model_qk */
    uint8_t kind;    /* enum gg_model_norm */
    uint8_t bias;    /* enum gg_model_use */
    bool optional;   /* files may lack the weights */
    bool after_rope; /* norm comes after the rotary embedding */
    GG_HOOK(gg_arch_norm_heads_fn) norm_heads;
    GG_HOOK(gg_arch_norm_values_fn) norm_values;
};

/* Kind of rotary embedding: enum gguf_rope_kind, or this. */
enum { GG_ROPE_NONE = -1 };

/* Says which layers have a rotary embedding of queries and keys. */
struct gg_arch_rope_rule {
    const char *text;
    bool (*of_layer)(const struct gg_hparams *hp, uint32_t il);
};
extern const struct gg_arch_rope_rule gg_arch_rope_in_windows;

/* Says which layers have a sliding window. */
struct gg_arch_window_rule {
    const char *text;
    /* Does layer il have a window, if the pattern of windows repeats every
     * period layers? Not called if the file has a flag for each layer. NULL:
     * every layer has a window, unless listed is set. */
    bool (*of_layer)(uint32_t period, uint32_t il);
    bool listed; /* only layers whose flag in the file is set have a window */
    bool chunks; /* chunked attention: tokens see only their own chunk */
};
extern const struct gg_arch_window_rule gg_arch_window_last_full,
    gg_arch_window_first_full, gg_arch_window_listed,
    gg_arch_window_everywhere;
bool gg_arch_is_window_last_full(uint32_t period, uint32_t il);

/* Differences of the rotary embedding in layers with a window. */
struct gg_arch_window_rope {
    const char *text;
    bool base; /* the base is rope.freq_base_swa if the file has that key */
    /* Default of the base, if it is not taken from rope.freq_base_swa. true:
     * 10000. false: the base of layers with full attention. */
    bool own;
    /* rope.scaling and frequency factors apply as in full layers */
    bool scaled;
    /* if scaled is false: rope.scaling.attn_factor applies nevertheless */
    bool gain;
};
extern const struct gg_arch_window_rope gg_arch_window_rope_base,
    gg_arch_window_rope_own, gg_arch_window_rope_plain;

/* Returns the number of tokens in a window or chunk. 0: every layer has full
 * attention. */
typedef uint32_t gg_arch_window_size_fn(const struct gg_hparams *hp);

struct gg_model_windows {
    const struct gg_arch_window_rule *rule; /* NULL: no windows */
    uint8_t key; /* enum gg_model_use: the key attention.sliding_window */
    /* Number of layers after which the pattern of layers with and without
     * windows repeats, if the file has no attention.sliding_window_pattern. (In
     * a file that key is such a number, or an array with a flag for each
     * layer.) 0: no default, so that a rule with a period needs the key. */
    uint8_t period;
    const struct gg_arch_window_rope *rope; /* NULL: as in full layers */
    GG_HOOK(gg_arch_window_size_fn) size; /* NULL: attention.sliding_window */
};

/* Scale of attention scores. */
struct gg_arch_scale {
    const char *text;
    float (*of_layer)(const struct gg_hparams *hp,
                      const struct gg_model_layer *l);
    /* Moves YaRN's magnitude from the rotary embedding to the scale of scores.
     * NULL: it stays in the rotary embedding. */
    void (*by_yarn)(struct gg_hparams *hp);
};
extern const struct gg_arch_scale gg_arch_scale_one, gg_arch_scale_yarn;

/* Temperature of queries: at position p they are multiplied by
 *
 *     1 + scale * ln(floor((p + first) / length) + 1)
 *
 * fill sets scale, first and length in hp->temperature. of_layer: does a layer
 * have the temperature? */
struct gg_arch_temperature {
    const char *text;
    void (*fill)(struct gg_hparams *hp);
    bool (*of_layer)(const struct gg_model_layer *l); /* NULL: all layers */
    bool needs_length; /* attention.temperature_length is required */
};
extern const struct gg_arch_temperature gg_arch_temperature_by_keys;

/* Returns the result of attention, which is the parameter taken [d * h, N],
 * multiplied by a gate computed from x. */
typedef struct gguf_tensor *gg_arch_gate_fn(const struct gg_model_at *at,
                                            struct gguf_tensor *x,
                                            struct gguf_tensor *taken);
/* Sigmoid gates from attn_gate, which the file may lack: a factor for each
 * element of the result, and for each head. */
gg_arch_gate_fn gg_arch_gate_elements, gg_arch_gate_each_head;

/* ---- the feed-forward part ---- */

/* Dense feed-forward part in addition to the experts of a layer. build() builds
 * both. */
struct gg_arch_dense_branch {
    const char *text;
    /* Every layer with experts has the dense part. false: only layers for which
     * the file has the weights of a dense part. */
    bool always;
    struct gguf_tensor *(*build)(const struct gg_model_at *at,
                                 struct gguf_tensor *x);
};

/* Says which layers have experts. */
struct gg_arch_experts {
    const char *text;
    bool (*of_layer)(const struct gg_hparams_reader *r, uint32_t il);
    bool everywhere; /* feed_forward_length may be missing */
    bool uncounted;  /* also applies if expert_count is missing */
};
extern const struct gg_arch_experts gg_arch_experts_if_any,
    gg_arch_experts_all, gg_arch_experts_leading, gg_arch_experts_by_router;

/* Gating: how router logits become weights of experts. Used if the file has no
 * expert_gating_func. KEY: no default; models of files without the key cannot
 * be evaluated. */
#define GG_GATING_LIST(X)                                                     \
    X(SOFTMAX, "")                                                            \
    X(SIGMOID, "sigmoid")                                                     \
    X(KEY, "gating")
enum gg_model_gating {
#define X(ID, TEXT) GG_GATING_##ID,
    GG_GATING_LIST(X)
#undef X
        GG_N_GATINGS
};
/* Returns the default gating of a model instead of .gating. The result is an
 * enum gg_model_expert_gating (hparam/hparams.h). */
typedef uint32_t gg_arch_gating_fn(const struct gg_hparams *hp);

/* Width of an expert. ff: the width of a dense part. */
struct gg_arch_expert_width {
    const char *text;
    double (*width)(const struct gg_model_layer *layer, double ff);
    bool needs_key; /* expert_feed_forward_length is required */
};
extern const struct gg_arch_expert_width gg_arch_expert_width_given,
    gg_arch_expert_width_or_part, gg_arch_expert_width_or_model;

/* Width of all shared experts of a layer together, which every token uses; 0:
 * none. own: the width of an expert, ff: of a dense part. */
struct gg_arch_shared {
    const char *text;
    double (*width)(const struct gg_hparams *hp, double own, double ff);
};
extern const struct gg_arch_shared gg_arch_shared_counted, gg_arch_shared_wide,
    gg_arch_shared_or_model, gg_arch_shared_if_wide,
    gg_arch_shared_wide_or_counted;

/* gg_arch_router_fn returns the input of the router; x is the input of the
 * experts. gg_arch_add_shared_fn combines the results of the routed and of the
 * shared experts. */
typedef struct gguf_tensor *gg_arch_router_fn(const struct gg_model_at *at,
                                              struct gguf_tensor *x);
typedef struct gguf_tensor *gg_arch_add_shared_fn(const struct gg_model_at *at,
                                                  struct gguf_tensor *sum,
                                                  struct gguf_tensor *shared);

struct gg_moe {
    const struct gg_arch_experts *where; /* NULL: no layer has experts */
    uint8_t gating;                      /* enum gg_model_gating */
    uint8_t gating_key; /* enum gg_model_use: expert_gating_func */
    GG_HOOK(gg_arch_gating_fn) gating_of_model;
    /* enum gg_model_use: expert bias, added to the scores that choose experts
     * but not to their weights */
    uint8_t expert_bias;
    /* enum gg_model_use: weights of chosen experts are normalised to sum 1;
     * MAY: by the key expert_weights_norm */
    uint8_t norm;
    bool scale; /* weights are multiplied by expert_weights_scale */
    const struct gg_arch_expert_width *ff; /* NULL: that of a dense part */
    bool plain;                            /* experts have no gate matrix */
    const struct gg_arch_shared *shared;   /* NULL: none */
    /* the result of shared experts is multiplied by a sigmoid gate */
    bool shared_gate;
    GG_HOOK(gg_arch_add_shared_fn) add_shared;
    GG_HOOK(gg_arch_router_fn) router_input;
    const struct gg_arch_dense_branch *dense_branch; /* NULL: none */
};

/* ---- embeddings and output ---- */

#define GG_OUTPUT_LIST(X)                                                     \
    X(TIED, "")                                                               \
    X(OWN, "own matrix")                                                      \
    X(EMBD, "the embeddings")                                                 \
    X(NONE, "none (hidden states)")
enum gg_model_output {
#define X(ID, TEXT) GG_OUTPUT_##ID,
    GG_OUTPUT_LIST(X)
#undef X
        GG_N_OUTPUTS
};

/* Factor of embeddings or of logits. */
struct gg_arch_factor {
    const char *text;
    float (*of_model)(const struct gg_hparams *hp);
    bool key; /* the file may have embedding_scale or logit_scale */
};
extern const struct gg_arch_factor gg_arch_embd_sqrt, gg_arch_embd_by_key,
    gg_arch_logits_times;

/* How a reranker computes its score (block/pooling.c). */
struct gg_arch_rank {
    const char *text;
    enum gguf_pooling pools;
    struct gguf_tensor *(*act)(struct gguf_ctx *c, struct gguf_tensor *x);
    bool softmax;
};

/* Default of a key that files of the architecture may lack. */
struct gg_arch_default {
    /* enum gg_model_hparam, of a key with one value for the whole model. 0 ends
     * the list. */
    uint16_t key;
    float value;
};

/* ---- the row ---- */

/* Returns the width of a head if the file has no attention.key_length, from
 * another key. 0: the file lacks that key, too. */
typedef uint32_t gg_arch_width_fn(const struct gg_hparams *hp);
/* Returns the number n of layers with keys and values of their own, if the file
 * has no attention.shared_kv_layers. These are layers 0 to n - 1. Each later
 * layer reads the keys and values of the last of them that has its type of
 * attention. */
typedef uint32_t gg_arch_n_kv_layers_fn(const struct gg_hparams *hp);
/* Returns the residual stream x after a layer, with the terms that the
 * architecture adds. */
typedef struct gguf_tensor *gg_arch_finish_fn(const struct gg_model_at *at,
                                              struct gguf_tensor *x);
/* Returns y with the terms that the architecture adds after a mixer. x is the
 * residual stream before the mixer, y the residual stream after it. */
typedef struct gguf_tensor *
gg_arch_finish_mixer_fn(const struct gg_model_at *at, struct gguf_tensor *x,
                        struct gguf_tensor *y);
/* Returns the logits y [n_vocab, N] with those of impossible tokens masked. */
typedef struct gguf_tensor *gg_arch_logits_fn(const struct gg_model_at *at,
                                              struct gguf_tensor *y);
/* Returns y, the product of weight id and x, with the terms that the
 * architecture adds before the bias. */
typedef struct gguf_tensor *
gg_arch_finish_product_fn(const struct gg_model_at *at, enum gg_weight id,
                          struct gguf_tensor *x, struct gguf_tensor *y);
/* Returns the threshold of activation sparsity of a layer, in standard
 * deviations above the mean of its gates, if the file has no
 * activation_sparsity_scale. */
typedef float gg_arch_activation_sparsity_fn(uint32_t il);
/* Changes which weights of a layer are required, beyond the columns of the row.
 * l NULL: weights of the model. */
typedef void gg_arch_weights_fn(struct gg_needs *n,
                                const struct gg_hparams *hp,
                                const struct gg_model_layer *l);
gg_arch_weights_fn gg_arch_without_norm_weights;
/* Sets hyperparameters that the file lacks, or whose keys have another meaning
 * in this architecture than in others. Called after all keys are read. */
typedef void gg_arch_fill_fn(struct gg_hparams_reader *r);
/* Sets hp->n_layer to the number of layers in the file, where block_count has
 * another meaning. Called before the keys of layers are read. */
typedef enum gguf_status gg_arch_count_fn(struct gg_hparams_reader *r);
/* Sets the rotary embedding of layers with full attention, hp->rope, in a model
 * with windows. Called after that of layers with windows is set. */
typedef enum gguf_status gg_arch_rope_fn(struct gg_hparams_reader *r);

/* Sets sizes of weights that no key gives, after all other sizes are known. */
typedef void gg_arch_sizes_fn(const struct gg_hparams *hp,
                              const struct gg_model_layer *l,
                              struct gg_model_sizes *z);

struct gg_arch {
    const char *name; /* general.architecture, and the prefix of its keys */
    bool runs;        /* models can be evaluated */

    uint8_t order; /* enum gg_model_order */
    GG_HOOK(gg_arch_parallel_fn) is_parallel;
    GG_HOOK(gg_arch_norms_fn) place_norms;
    GG_HOOK(gg_arch_norm_result_fn) norm_result;
    GG_HOOK(gg_arch_join_fn) join_part;
    GG_HOOK(gg_arch_layers_fn) build_layers;
    const struct gg_arch_unroll *unroll; /* NULL: each layer once, in order */
    uint8_t norm;                        /* enum gg_model_norm */
    uint8_t norm_b; /* enum gg_model_use: biases of norms */
    GG_HOOK(gg_arch_choose_norm_fn) choose_norm;
    bool norm_eps_maybe; /* the key of the norms' epsilon may be missing */
    struct gg_model_norms mix_norm, ffn_norm;
    uint16_t final_norm; /* enum gg_weight of the last norm; 0: none */

    const struct gg_mixer *mixer; /* NULL: attention with heads */
    /* second mixer, for layers that mix_rule chooses */
    const struct gg_mixer *other;
    /* NULL: the mixer of every layer is .mixer */
    const struct gg_arch_mix_rule *mix_rule;

    /* NULL: separate or fused matrices, as the file has them */
    const struct gg_arch_qkv *qkv;
    /* enum gg_model_use: biases of query, key and value. If qkv is NULL they
     * are optional in any case. */
    uint8_t qkv_b;
    uint8_t out_b; /* enum gg_model_use: bias of attention's output matrix */
    struct gg_model_qk_norm qk_norm;
    int8_t rope; /* enum gguf_rope_kind, or GG_ROPE_NONE */
    /* rope.dimension_sections is read. If .rope is MROPE or IMROPE, the file
     * must have it. Otherwise the model has M-RoPE if the file has it with
     * sections for axes 0 and 1. */
    bool mrope_sections;
    const struct gg_arch_rope_rule *rope_rule; /* NULL: all layers have it */
    uint8_t rope_freqs; /* enum gg_model_use: the tensor rope_freqs */
    /* Overrides rotary parameters of the file's keys. */
    void (*fix_rope)(struct gguf_rope *rope);
    /* the file may have the tensors rope_factors_long and rope_factors_short */
    bool longrope;
    const struct gg_arch_temperature
        *temperature; /* temperature of queries; NULL: none */
    struct gg_model_windows window;
    const struct gg_arch_scale *scale; /* NULL: 1/sqrt(d) */
    /* Used with mixers that have an indexer (.has_indexer): does layer il have
     * one, if the file has no attention.indexer.types? NULL: every layer has
     * one. */
    bool (*has_indexer)(const struct gg_hparams *hp, uint32_t il);
    GG_HOOK(gg_arch_gate_fn) gate_attention;
    uint8_t sinks;     /* enum gg_model_use: attention sinks */
    uint8_t clamp_qkv; /* enum gg_model_use: attention.clamp_kqv */
    uint8_t alibi; /* maximum bias of ALiBi of the architecture; 0: by key */
    /* Returns the maximum bias of ALiBi of a model, instead of alibi. */
    float (*alibi_bias)(const struct gg_hparams *hp);
    /* Width of a head if the file has no attention.key_length. */
    GG_HOOK(gg_arch_width_fn)
    head_width;
    /* attention is never causal; false: attention.causal says */
    bool bidirectional;
    /* a sequence is computed as a whole, without a cache */
    bool whole_sequence;

    const struct gg_ffn *ffn;     /* NULL: gated */
    const struct gg_ffn_act *act; /* NULL: SiLU */
    uint8_t ffn_b; /* enum gg_model_use: biases of the feed-forward part */
    struct gg_moe moe;

    const struct gg_arch_factor *embd_scale; /* NULL: 1 */
    bool embd_norm;                          /* embeddings have a norm */
    uint8_t position; /* enum gg_model_use: learned embeddings of positions */
    uint8_t types;    /* enum gg_model_use: embeddings of token types */
    uint8_t output;   /* enum gg_model_output */
    uint8_t output_b; /* enum gg_model_use: bias of the output matrix */
    const struct gg_arch_factor *logit_scale; /* NULL: 1 */
    const struct gg_arch_rank
        *rank; /* NULL: tanh of the first token's state */
    /* called after the soft cap; NULL: no mask */
    gg_arch_logits_fn *mask_logits;
    /* results of both parts are multiplied by residual_scale */
    bool residual_scale;
    GG_HOOK(gg_arch_n_kv_layers_fn) n_kv_layers;
    GG_HOOK(gg_arch_activation_sparsity_fn) activation_sparsity;
    /* the last layers may be nextn layers, which predict further tokens */
    bool nextn;

    GG_HOOK(gg_arch_finish_product_fn) finish_product;
    GG_HOOK(gg_arch_finish_fn) finish_layer;
    gg_arch_finish_mixer_fn *finish_mixer;
    GG_HOOK(gg_arch_weights_fn) choose_weights;
    GG_HOOK(gg_arch_sizes_fn) layer_sizes;
    GG_HOOK(gg_arch_count_fn) count_layers;
    GG_HOOK(gg_arch_fill_fn) fill_hparams;
    /* Further check of the tensors of layer il, after their names and shapes
     * are found right. Returns a failure if the model cannot use them. NULL: no
     * further check. */
    enum gguf_status (*check_layer)(const struct gguf_model *m, uint32_t il,
                                    struct gguf_error *err);
    GG_HOOK(gg_arch_rope_fn)
    fill_full_rope; /* Rotary embedding of layers without a window. */

    /* Weights and keys that no other column implies: GG_NEED, GG_MAYBE, GG_KEY
     * and GG_KEY_MAYBE of needs.h, ended by 0. NULL: none. */
    const uint16_t *more;
    const struct gg_arch_default *defaults; /* ends with key 0; NULL: none */
    /* Weights that files may have and that no graph uses, ended by 0. NULL:
     * none. */
    const uint16_t *unused;
    /* text for people about facts that no column has; NULL: nothing */
    const char *remark;
};

/* Next row in the order of names over all families. after: NULL for the first
 * row. Returns NULL after the last. */
const struct gg_arch *gg_arch_next(const struct gg_arch *after);

/* Row of an architecture by general.architecture; NULL: unknown. */
const struct gg_arch *gg_arch_find(struct gguf_str name);

/* Is this the architecture of draft models, which need another model's states?
 */
bool gg_arch_is_draft(struct gguf_str name);

#endif
