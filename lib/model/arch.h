/* SPDX-License-Identifier: MIT */
/* arch.h - architectures as data
 *
 * An architecture is a row: which norms a layer has and where, how queries,
 * keys and values are made, which layers positions turn, which feed-forward
 * part, which experts. What a row leaves out is as in llama. Rows say what
 * files hold and what is computed: weight/need.c derives weights and keys,
 * build.c and block/ the graph. doc/architectures.md is printed from the rows.
 *
 * A column is of one of three kinds:
 *   - a number or an enumerator, if three rows or more use it
 *     (tests/model/check-columns); a list X(ID, text) has its texts for people;
 *   - a pointer to a way of doing something: a text and the functions that are
 *     called for it. Ways of several families are declared here, those of one
 *     stand beside its rows (family/F.c);
 *   - a hook: what one architecture or two do besides at one place.
 * More architectures are known than can be evaluated: all are checked.
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

/* A hook: a function that one architecture or two have called at one place,
 * NULL for all others, and a text for people. */
#define GG_HOOK(FN)                                                           \
    struct {                                                                  \
        FN *fn;                                                               \
        const char *text;                                                     \
    }

/* ---- of everything ---- */

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

/* The kind of norms, where keys of a file decide it. */
typedef enum gg_model_norm gg_arch_choose_norm_fn(const struct gg_hparams *hp);
gg_arch_choose_norm_fn gg_arch_norm_by_epsilon;

/* Weights of the norms around a part of a layer: enum gg_weight; 0: none. */
struct gg_model_norms {
    uint16_t pre;  /* norm of the part's input */
    uint16_t post; /* norm of its result, before that is added */
    uint16_t add;  /* norm of the sum */
};

/* ---- the order of a layer's two parts ---- */

#define GG_ORDER_LIST(X)                                                      \
    X(SERIAL, "")                                                             \
    X(PARALLEL, "both parts on one norm, added together")                     \
    X(SINGLE, "one part a layer")
enum gg_model_order {
#define X(ID, TEXT) GG_ORDER_##ID,
    GG_ORDER_LIST(X)
#undef X
        GG_N_ORDERS
};

/* Are both parts of a layer on its input? */
typedef bool gg_arch_parallel_fn(const struct gg_model_at *at);
/* Where the norms of a part are. */
typedef struct gg_model_norms gg_arch_norms_fn(const struct gg_model_at *at,
                                               const struct gg_model_norms *n);
/* All layers, of embeddings x [n_embd, N], on several streams that are one at
 * the end, [n_embd, n_out]; NULL after a pass without outputs. */
typedef struct gguf_tensor *
gg_arch_layers_fn(const struct gg_model_pass *p,
                  struct gg_model_layer_links *across, struct gguf_tensor *x);
/* How often all layers are computed, one time after another. */
typedef uint32_t gg_arch_loops_fn(const struct gg_hparams *hp);

/* ---- mixers ---- */

/* A rule that gives each layer one of an architecture's two mixers; NULL: it
 * has neither. */
struct gg_arch_mix_rule {
    const char *text;
    const struct gg_mixer *(*of_layer)(const struct gg_arch *a,
                                       const struct gg_hparams *hp,
                                       uint32_t il);
};
extern const struct gg_arch_mix_rule gg_arch_mix_by_kv;

/* ---- attention ---- */

/* The matrices that make queries, keys and values. */
struct gg_arch_qkv {
    const char *text;
    const uint16_t *weights; /* a list (needs.h) */
    bool gates;              /* the matrix of queries makes their gates, too */
};
extern const struct gg_arch_qkv gg_arch_qkv_fused, gg_arch_qkv_separate;

/* Norms of queries and keys. */
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

/* Heads x [d, h, N] of queries or keys, as id (ATTN_Q_NORM, ATTN_K_NORM) says,
 * after their norm. */
typedef struct gguf_tensor *gg_arch_norm_heads_fn(const struct gg_model_at *at,
                                                  enum gg_weight id,
                                                  struct gguf_tensor *x);
/* Values v [d, h, N] after their norm. */
typedef struct gguf_tensor *
gg_arch_norm_values_fn(const struct gg_model_at *at, struct gguf_tensor *x);

struct gg_model_qk_norm {
    uint8_t form;    /* enum gg_model_qk */
    uint8_t kind;    /* enum gg_model_norm */
    uint8_t bias;    /* enum gg_model_use */
    bool optional;   /* files may lack the weights */
    bool after_rope; /* after positions turned them */
    GG_HOOK(gg_arch_norm_heads_fn) norm_heads;
    GG_HOOK(gg_arch_norm_values_fn) norm_values;
};

/* Positions: enum gguf_rope_kind, or */
enum { GG_ROPE_NONE = -1 };

/* Layers whose queries and keys positions turn. */
struct gg_arch_rope_rule {
    const char *text;
    bool (*of_layer)(const struct gg_hparams *hp, uint32_t il);
};
extern const struct gg_arch_rope_rule gg_arch_rope_in_windows;

/* Layers with a sliding window. */
struct gg_arch_window_rule {
    const char *text;
    /* Has layer il of a period a window? NULL: every layer, or those that a
     * file lists */
    bool (*of_layer)(uint32_t period, uint32_t il);
    bool listed; /* the file has a flag for each layer */
    bool chunks; /* tokens see the chunk that they are in */
};
extern const struct gg_arch_window_rule gg_arch_window_last_full,
    gg_arch_window_first_full, gg_arch_window_listed,
    gg_arch_window_everywhere;
bool gg_arch_is_window_last_full(uint32_t period, uint32_t il);

/* How positions turn in windows. */
struct gg_arch_window_rope {
    const char *text;
    bool base; /* rope.freq_base_swa counts */
    bool own;  /* the base is 10000 unless given, else that of full layers */
    bool
        scaled; /* rope.scaling and frequency factors count as in full layers */
    bool gain;  /* rope.scaling.attn_factor counts */
};
extern const struct gg_arch_window_rope gg_arch_window_rope_base,
    gg_arch_window_rope_own, gg_arch_window_rope_plain;

/* Tokens of a window, or of a chunk; 0: every layer sees everything. */
typedef uint32_t gg_arch_window_size_fn(const struct gg_hparams *hp);

struct gg_model_windows {
    const struct gg_arch_window_rule *rule; /* NULL: no windows */
    uint8_t key;    /* enum gg_model_use: attention.sliding_window */
    uint8_t period; /* unless attention.sliding_window_pattern says: a number
                     * or an array of a flag for each layer; 0: it must */
    const struct gg_arch_window_rope *rope; /* NULL: as in full layers */
    GG_HOOK(gg_arch_window_size_fn) size;   /* NULL: the key's */
};

/* The factor of scores. */
struct gg_arch_scale {
    const char *text;
    float (*of_layer)(const struct gg_hparams *hp,
                      const struct gg_model_layer *l);
    /* YaRN's magnitude scales scores, not what positions turn; or NULL */
    void (*by_yarn)(struct gg_hparams *hp);
};
extern const struct gg_arch_scale gg_arch_scale_one, gg_arch_scale_yarn;

/* What queries are multiplied by: 1 + a ln(floor((p + o) / n) + 1) at position
 * p. */
struct gg_arch_temperature {
    const char *text;
    void (*fill)(struct gg_hparams *hp);
    bool (*of_layer)(const struct gg_model_layer *l); /* NULL: all have it */
    bool needs_length; /* attention.temperature_length must be there */
};
extern const struct gg_arch_temperature gg_arch_temperature_by_keys;

/* Multiply the result of attention, taken [d * h, N], by a gate of x. */
typedef struct gguf_tensor *gg_arch_gate_fn(const struct gg_model_at *at,
                                            struct gguf_tensor *x,
                                            struct gguf_tensor *taken);

/* ---- the feed-forward part ---- */

/* A dense part in layers with experts: the object builds both. */
struct gg_arch_dense_branch {
    const char *text;
    bool always; /* each of these layers has one, not only with its weights */
    struct gguf_tensor *(*build)(const struct gg_model_at *at,
                                 struct gguf_tensor *x);
};

/* Which layers have experts. */
struct gg_arch_experts {
    const char *text;
    bool (*of_layer)(const struct gg_hparams_reader *r, uint32_t il);
    bool everywhere; /* feed_forward_length may be missing */
    bool uncounted;  /* also where expert_count is missing */
};
extern const struct gg_arch_experts gg_arch_experts_if_any,
    gg_arch_experts_all, gg_arch_experts_leading, gg_arch_experts_by_router;

/* How experts are chosen, where expert_gating_func does not say. */
#define GG_GATING_LIST(X)                                                     \
    X(SOFTMAX, "")                                                            \
    X(SIGMOID, "sigmoid")                                                     \
    X(KEY, "by key")
enum gg_model_gating {
#define X(ID, TEXT) GG_GATING_##ID,
    GG_GATING_LIST(X)
#undef X
        GG_N_GATINGS
};
/* The gating of a model: enum gg_model_expert_gating. */
typedef uint32_t gg_arch_gating_fn(const struct gg_hparams *hp);

/* How wide an expert is, where a dense part has ff elements. */
struct gg_arch_expert_width {
    const char *text;
    double (*width)(const struct gg_hparams *hp, double ff);
    bool needs_key; /* expert_feed_forward_length */
};
extern const struct gg_arch_expert_width gg_arch_expert_width_given,
    gg_arch_expert_width_or_part, gg_arch_expert_width_or_model;

/* Width of the shared experts of a layer together, which every token takes; 0:
 * none. An expert is as wide as own, a dense part as ff. */
struct gg_arch_shared {
    const char *text;
    double (*width)(const struct gg_hparams *hp, double own, double ff);
};
extern const struct gg_arch_shared gg_arch_shared_counted, gg_arch_shared_wide,
    gg_arch_shared_or_model, gg_arch_shared_if_wide,
    gg_arch_shared_wide_or_counted;

/* The input of the router, made of x, the input of experts; and the result of
 * experts and shared ones together. */
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
    uint8_t expert_bias; /* enum gg_model_use: a bias for choosing only */
    uint8_t norm;        /* enum gg_model_use: weights add to 1; MAY: by key */
    bool scale;          /* expert_weights_scale counts */
    const struct gg_arch_expert_width *ff; /* NULL: as a dense part */
    bool plain;                            /* up and down, no gate */
    const struct gg_arch_shared *shared;   /* NULL: none */
    bool shared_gate; /* a sigmoid weights the shared experts */
    GG_HOOK(gg_arch_add_shared_fn) add_shared;
    GG_HOOK(gg_arch_router_fn) router_input;
    const struct gg_arch_dense_branch *dense_branch; /* NULL: none */
};

/* ---- ends ---- */

#define GG_OUTPUT_LIST(X)                                                     \
    X(TIED, "")                                                               \
    X(OWN, "own")                                                             \
    X(EMBD, "the embeddings")                                                 \
    X(NONE, "none: hidden states")
enum gg_model_output {
#define X(ID, TEXT) GG_OUTPUT_##ID,
    GG_OUTPUT_LIST(X)
#undef X
        GG_N_OUTPUTS
};

/* A number that embeddings or logits are multiplied by. */
struct gg_arch_factor {
    const char *text;
    float (*of_model)(const struct gg_hparams *hp);
    bool key; /* embedding_scale or logit_scale may be there */
};
extern const struct gg_arch_factor gg_arch_embd_sqrt, gg_arch_embd_by_key,
    gg_arch_logits_times;

/* How a reranker makes its score (block/pooled.c). */
struct gg_arch_rank {
    const char *text;
    enum gguf_pooling pools;
    struct gguf_tensor *(*act)(struct gguf_ctx *c, struct gguf_tensor *x);
    bool softmax;
};

/* The number of a key that files may lack, where they do. */
struct gg_arch_default {
    uint16_t key; /* enum gg_model_hparam, of the model; 0: the end */
    float value;
};

/* ---- the row ---- */

/* The width of a head, by another key; 0: that is missing. */
typedef uint32_t gg_arch_width_fn(const struct gg_hparams *hp);
/* Number of first layers that keep keys, without attention.shared_kv_layers.
 * Each later layer reads the keys of the last one that sees as much. */
typedef uint32_t gg_arch_n_kv_layers_fn(const struct gg_hparams *hp);
/* The stream x after a layer, with what else the layer adds to it. */
typedef struct gguf_tensor *gg_arch_finish_fn(const struct gg_model_at *at,
                                              struct gguf_tensor *x);
/* The stream y after the mixer of x. */
typedef struct gguf_tensor *
gg_arch_finish_mixer_fn(const struct gg_model_at *at, struct gguf_tensor *x,
                        struct gguf_tensor *y);
/* Logits y [n_vocab, N] but for tokens that are never to come. */
typedef struct gguf_tensor *gg_arch_logits_fn(const struct gg_model_at *at,
                                              struct gguf_tensor *y);
/* Gates of a layer count from that many deviations above their mean on, without
 * activation_sparsity_scale. */
typedef float gg_arch_activation_sparsity_fn(uint32_t il);
/* Say which weights of a layer, or of the model if l is NULL, are needed
 * against what follows from the rest of the row. */
typedef void gg_arch_weights_fn(struct gg_needs *n,
                                const struct gg_hparams *hp,
                                const struct gg_model_layer *l);
gg_arch_weights_fn gg_arch_without_norm_weights;
/* Numbers that a file lacks, or that count otherwise, once keys are read. */
typedef void gg_arch_fill_fn(struct gg_hparams_reader *r);
typedef enum gguf_status gg_arch_rope_fn(struct gg_hparams_reader *r);

/* Sizes of shapes that no key says, once all others are known. */
typedef void gg_arch_sizes_fn(const struct gg_hparams *hp,
                              const struct gg_model_layer *l,
                              struct gg_model_sizes *z);

struct gg_arch {
    const char *name; /* general.architecture, and prefix of its keys */
    bool runs;        /* it can be evaluated */

    uint8_t order; /* enum gg_model_order */
    GG_HOOK(gg_arch_parallel_fn) is_parallel;
    GG_HOOK(gg_arch_norms_fn) place_norms;
    GG_HOOK(gg_arch_layers_fn) build_layers;
    GG_HOOK(gg_arch_loops_fn) n_loops;
    uint8_t norm;   /* enum gg_model_norm */
    uint8_t norm_b; /* enum gg_model_use: biases of norms */
    GG_HOOK(gg_arch_choose_norm_fn) choose_norm;
    bool norm_eps_maybe; /* the key of epsilon may be missing */
    struct gg_model_norms mix_norm, ffn_norm;
    uint16_t final_norm; /* enum gg_weight, 0: none */

    const struct gg_mixer *mixer; /* NULL: attention over heads */
    const struct gg_mixer *other; /* mixer of the layers that mix_rule names */
    const struct gg_arch_mix_rule *mix_rule; /* NULL: all have mixer */

    const struct gg_arch_qkv *qkv; /* NULL: separate or fused */
    uint8_t qkv_b; /* enum gg_model_use: biases, if qkv is not NULL; else they
                    * may be there */
    uint8_t out_b; /* enum gg_model_use: bias of attention's output */
    struct gg_model_qk_norm qk_norm;
    int8_t rope;         /* enum gguf_rope_kind, or GG_ROPE_NONE */
    bool mrope_sections; /* rope.dimension_sections: MUST for M-RoPE, may
                       * choose it for others */
    const struct gg_arch_rope_rule *rope_rule; /* NULL: all layers */
    uint8_t rope_freqs; /* enum gg_model_use: rope_freqs */
    void (*fix_rope)(
        struct gguf_rope *rope); /* override what keys say of positions */
    bool longrope; /* files may have rope_factors_long and _short */
    const struct gg_arch_temperature
        *temperature; /* temperature of queries; NULL: none */
    struct gg_model_windows window;
    const struct gg_arch_scale *scale; /* NULL: 1/sqrt(d) */
    /* Layers with an indexer, where the file does not say; NULL: all. */
    bool (*has_indexer)(const struct gg_hparams *hp, uint32_t il);
    GG_HOOK(gg_arch_gate_fn) gate_attention;
    uint8_t sinks;     /* enum gg_model_use */
    uint8_t clamp_qkv; /* enum gg_model_use: attention.clamp_kqv */
    uint8_t alibi;     /* greatest bias of ALiBi, built in; 0: by key */
    float (*alibi_bias)(
        const struct gg_hparams *hp); /* bias by the model, instead */
    GG_HOOK(gg_arch_width_fn)
    head_width;          /* width of a head without attention.key_length */
    bool bidirectional;  /* never causal; else attention.causal says */
    bool whole_sequence; /* all of a sequence is computed at once */

    const struct gg_ffn *ffn;     /* NULL: gated */
    const struct gg_ffn_act *act; /* NULL: SiLU */
    uint8_t ffn_b;                /* enum gg_model_use */
    struct gg_moe moe;

    const struct gg_arch_factor *embd_scale; /* NULL: 1 */
    bool embd_norm;                          /* a norm of embeddings */
    uint8_t position; /* enum gg_model_use: learned embeddings of positions */
    uint8_t types;    /* enum gg_model_use: embeddings of token types */
    uint8_t output;   /* enum gg_model_output */
    uint8_t output_b; /* enum gg_model_use */
    const struct gg_arch_factor *logit_scale; /* NULL: 1 */
    const struct gg_arch_rank *rank; /* NULL: tanh of the first token */
    gg_arch_logits_fn *mask_logits;  /* after a cap; or NULL */
    bool residual_scale;             /* branches are scaled */
    GG_HOOK(gg_arch_n_kv_layers_fn) n_kv_layers;
    GG_HOOK(gg_arch_activation_sparsity_fn) activation_sparsity;
    bool nextn; /* the last layers may draft */

    GG_HOOK(gg_arch_finish_fn) finish_layer;
    gg_arch_finish_mixer_fn *finish_mixer;
    GG_HOOK(gg_arch_weights_fn) choose_weights;
    GG_HOOK(gg_arch_sizes_fn) layer_sizes;
    GG_HOOK(gg_arch_fill_fn) fill_hparams;
    /* Refuse tensors of a layer whose names and shapes are good. */
    enum gguf_status (*check_layer)(const struct gguf_model *m, uint32_t il,
                                    struct gguf_error *err);
    GG_HOOK(gg_arch_rope_fn)
    fill_full_rope; /* rope of layers without window */

    /* Weights and keys that no other column stands for: NEED, MAYBE, KEY and
     * KEY_MAYBE of needs.h, ended by 0; or NULL. */
    const uint16_t *more;
    const struct gg_arch_default *defaults; /* or NULL */
    /* Of the weights that files may have those with which nothing is
     * computed, ended by 0; or NULL. */
    const uint16_t *unused;
    const char *remark; /* what no column says, for people; or NULL */
};

/* The row whose name follows that of another, of all families; the first one
 * after NULL, NULL after the last. */
const struct gg_arch *gg_arch_next(const struct gg_arch *after);

/* By general.architecture, or NULL. */
const struct gg_arch *gg_arch_find(struct gguf_str name);

#endif
