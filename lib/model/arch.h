/* SPDX-License-Identifier: MIT */
/* arch.h - architectures as data
 *
 * An architecture is a row of choices: which norms a layer has and where, how
 * queries, keys and values are made, what positions turn, which feed-forward
 * part, which experts. What a row leaves out is as in llama. Rows say what
 * files hold and what is computed; need.c derives the weights and keys,
 * build*.c the computation. doc/architectures.md is printed from the rows.
 *
 * Each choice is a list X(ID, text): the text is what that page says, "" for a
 * choice that is llama's. More architectures are known than can be evaluated:
 * all are checked.
 */
#ifndef GG_MODEL_ARCH_H
#define GG_MODEL_ARCH_H

#include "gguf/memory.h"
#include "gguf/op.h"

#include <stdbool.h>

struct gg_ffn;
struct gg_ffn_act;
struct gg_hparams;
struct gg_mixer;
struct gg_model_layer;
struct gg_model_sizes;

/* ---- of everything ---- */

enum gg_model_use { GG_NO, GG_MAY, GG_MUST };

/* ---- norms ---- */

#define GG_NORM_LIST(X)                                                       \
    X(RMS, "")                                                                \
    X(LAYER, "layer norms")                                                   \
    X(EITHER, "RMS or layer norms, by the epsilon's key")
enum gg_model_norm {
#define X(ID, TEXT) GG_NORM_##ID,
    GG_NORM_LIST(X)
#undef X
        GG_N_NORMS
};

/* Weights of the norms around a part of a layer, enum gg_weight, 0: none. */
struct gg_model_norms {
    uint16_t pre;   /* of the part's input */
    uint16_t post;  /* of its result, before that is added */
    uint16_t add;   /* of the sum */
    uint16_t again; /* of that and the part's input added, if it is there */
};

/* ---- the order of a layer's two parts ---- */

#define GG_ORDER_LIST(X)                                                      \
    X(SERIAL, "")                                                             \
    X(PARALLEL, "both parts on one norm, added together")                     \
    X(PARALLEL_2, "both parts on the layer's input, added together")          \
    X(BY_KEY, "parallel or not by use_parallel_residual")                     \
    X(BY_NORM, "parallel if there is no ffn_norm")                            \
    X(BY_SWIN, "norms before or after the parts by swin_norm")                \
    X(BESIDE, "experts beside both, on the layer's input")                    \
    X(SINGLE, "one part a layer")                                             \
    X(LOOPS, "all layers num_loops times")                                    \
    X(STREAMS, "hyper-connected streams")                                     \
    X(ALTUP, "AltUp streams and Laurel")
enum gg_model_order {
#define X(ID, TEXT) GG_ORDER_##ID,
    GG_ORDER_LIST(X)
#undef X
        GG_N_ORDERS
};

/* ---- mixers ---- */

/* Which layers have the other mixer. */
#define GG_MIX_RULE_LIST(X)                                                   \
    X(ALL, "")                                                                \
    X(NO_KV, "layers without key/value heads")                                \
    X(NO_KV_NO_FF, "layers without key/value heads; those with a "            \
                   "feed-forward width have that part only")                  \
    X(NO_HEADS, "layers without heads: nothing, without key/value heads")     \
    X(INTERVAL, "all but every full_attention_interval-th layer, or "         \
                "attention.recurrent_layers")                                 \
    X(LEADING, "layers before leading_dense_block_count")
enum gg_model_mix_rule {
#define X(ID, TEXT) GG_MIX_RULE_##ID,
    GG_MIX_RULE_LIST(X)
#undef X
        GG_N_MIX_RULES
};

/* ---- attention ---- */

#define GG_QKV_LIST(X)                                                        \
    X(ANY, "")                                                                \
    X(FUSED, "fused")                                                         \
    X(SQUARE, "fused, as many keys as queries")                               \
    X(SEPARATE, "separate")                                                   \
    X(GATED, "separate, queries with gates")                                  \
    X(NO_V, "separate, values may be keys")                                   \
    X(HALF_OWN, "later layers share keys and values")
enum gg_model_qkv {
#define X(ID, TEXT) GG_QKV_##ID,
    GG_QKV_LIST(X)
#undef X
        GG_N_QKV
};

#define GG_QK_LIST(X)                                                         \
    X(NONE, "")                                                               \
    X(HEAD, "per head")                                                       \
    X(HEADS, "per head, a weight for each")                                   \
    X(WIDE, "of all heads together")                                          \
    X(GAIN, "per head, no weight, a number a query head")                     \
    X(PLAIN, "per head, no weight")
enum gg_model_qk {
#define X(ID, TEXT) GG_QK_##ID,
    GG_QK_LIST(X)
#undef X
        GG_N_QK
};

/* Norms of queries and keys. */
struct gg_model_qk_norm {
    uint8_t form;   /* enum gg_model_qk */
    uint8_t maybe;  /* weights need not be there */
    uint8_t kind;   /* enum gg_model_norm */
    uint8_t bias;   /* enum gg_model_use */
    uint8_t late;   /* after positions */
    uint8_t value;  /* values have one without weight */
    uint8_t turned; /* only where positions turn */
    uint8_t not_at; /* experts of models that have none; 0: all have */
    float eps;      /* of their own; 0: as others */
};

/* Positions: enum gguf_rope_kind, or */
enum { GG_ROPE_NONE = -1 };

#define GG_ROPE_WHERE_LIST(X)                                                 \
    X(ALL, "")                                                                \
    X(STEP_4, "but every fourth layer")                                       \
    X(STEP_4_WINDOWS, "but every fourth layer if there are windows")          \
    X(FIRST_OF_4, "but the first of four layers if there are windows")        \
    X(WINDOWS, "in windows only")                                             \
    X(WINDOWS_LEAD, "in windows and leading layers")                          \
    X(TUNED, "unless rope.scaling.finetuned is false")                        \
    X(LAYERS_32, "with 32 layers; ALiBi with 40")                             \
    X(FIRST_HEADS, "if the first layer has heads")
enum gg_model_rope_where {
#define X(ID, TEXT) GG_ROPE_WHERE_##ID,
    GG_ROPE_WHERE_LIST(X)
#undef X
        GG_N_ROPE_WHERE
};

#define GG_WINDOW_LIST(X)                                                     \
    X(NONE, "")                                                               \
    X(LAST_FULL, "last of a period full")                                     \
    X(FIRST_FULL, "first of a period full")                                   \
    X(ARRAY, "by an array")                                                   \
    X(EVERY, "every layer")                                                   \
    X(CHUNKS, "chunks, last of a period full")
enum gg_model_window {
#define X(ID, TEXT) GG_WINDOW_##ID,
    GG_WINDOW_LIST(X)
#undef X
        GG_N_WINDOWS
};

/* How positions turn in windows; scaled: by rope.scaling and factors. */
#define GG_WINDOW_ROPE_LIST(X)                                                \
    X(SAME, "")                                                               \
    X(BASE, "own base if given")                                              \
    X(OWN, "base 10000 unless given, not scaled")                             \
    X(PLAIN, "not scaled")                                                    \
    X(PLAIN_BASE, "own base if given, not scaled")
enum gg_model_window_rope {
#define X(ID, TEXT) GG_WINDOW_ROPE_##ID,
    GG_WINDOW_ROPE_LIST(X)
#undef X
        GG_N_WINDOW_ROPES
};

struct gg_model_windows {
    uint8_t rule;     /* enum gg_model_window */
    uint8_t key;      /* enum gg_model_use: attention.sliding_window */
    uint8_t period;   /* unless attention.sliding_window_pattern says: a number
                       * or an array of a flag for each layer; 0: it must */
    uint8_t rope;     /* enum gg_model_window_rope */
    bool centred;     /* half of it before a token, half after */
    uint16_t only_at; /* layers that a model with windows has; 0: any */
    uint16_t size;    /* without the key; 0: then there are none */
    uint16_t exact;   /* whatever the key says, unless that is 0; or 0 */
    bool full_half;   /* full layers turn half of rope.dimension_count */
};

#define GG_SCALE_LIST(X)                                                      \
    X(HEAD, "")                                                               \
    X(ONE, "1")                                                               \
    X(WHOLE, "1/d")                                                           \
    X(VALUE, "1/sqrt(dv)")                                                    \
    X(KEY, "by attention.scale")                                              \
    X(SIZE, "1/sqrt(n_embd/n_head) in one size")                              \
    X(YARN, "with YaRN's magnitude")                                          \
    X(OUTPUT, "by attention.output_scale")
enum gg_model_scale {
#define X(ID, TEXT) GG_SCALE_##ID,
    GG_SCALE_LIST(X)
#undef X
        GG_N_SCALES
};

/* What queries are multiplied by: 1 + a ln(floor((p + o) / n) + 1) at position
 * p, with attention.temperature_scale as a and o = 0, or as said. */
#define GG_TEMPER_LIST(X)                                                     \
    X(NONE, "")                                                               \
    X(CONTEXT, "a temperature by key, n the context before scaling")          \
    X(KEYS, "a temperature by keys")                                          \
    X(STILL, "a temperature where nothing turns")
enum gg_model_temper {
#define X(ID, TEXT) GG_TEMPER_##ID,
    GG_TEMPER_LIST(X)
#undef X
        GG_N_TEMPERS
};

#define GG_GATE_LIST(X)                                                       \
    X(NONE, "")                                                               \
    X(SIGMOID, "sigmoid gate")                                                \
    X(SOFTPLUS, "softplus gate")                                              \
    X(HEAD, "sigmoid gate a head")
enum gg_model_gate {
#define X(ID, TEXT) GG_GATE_##ID,
    GG_GATE_LIST(X)
#undef X
        GG_N_GATES
};

/* ---- the feed-forward part ---- */

/* Which layers have experts. */
#define GG_EXPERTS_LIST(X)                                                    \
    X(NONE, "")                                                               \
    X(COUNT, "all layers, if there are any")                                  \
    X(ALL, "all layers")                                                      \
    X(LEAD, "after leading_dense_block_count")                                \
    X(STEP, "every interleave_moe_layer_step-th layer")                       \
    X(LEAD_STEP, "after leading_dense_block_count, in steps")                 \
    X(EVERY, "the second of each moe_every_n_layers")                         \
    X(TENSOR, "layers with a router")                                         \
    X(FF, "layers with a feed-forward width")
enum gg_model_experts {
#define X(ID, TEXT) GG_EXPERTS_##ID,
    GG_EXPERTS_LIST(X)
#undef X
        GG_N_EXPERTS
};

/* As expert_gating_func numbers them. */
#define GG_GATING_LIST(X)                                                     \
    X(SOFTMAX_ALWAYS, "")                                                     \
    X(SOFTMAX, "softmax")                                                     \
    X(SIGMOID, "sigmoid")                                                     \
    X(CHOSEN, "softmax of the chosen")                                        \
    X(SQRT_SOFTPLUS, "sqrt(softplus)")                                        \
    X(RAW_SIGMOID, "sigmoid of the chosen, on the input")                     \
    X(KEY, "by key")                                                          \
    X(SIZE, "softmax, or sigmoid by size")
enum gg_model_gating {
#define X(ID, TEXT) GG_GATING_##ID,
    GG_GATING_LIST(X)
#undef X
        GG_N_GATINGS
};

#define GG_EXPERT_FF_LIST(X)                                                  \
    X(MODEL, "")                                                              \
    X(KEY, "own width")                                                       \
    X(KEY_OR_MODEL, "own width if given")                                     \
    X(KEY_OR_PART, "own width, or a part of the model's")
enum gg_model_expert_ff {
#define X(ID, TEXT) GG_EXPERT_FF_##ID,
    GG_EXPERT_FF_LIST(X)
#undef X
        GG_N_EXPERT_FF
};

/* Experts that every token takes: are there any, and how wide. */
#define GG_SHARED_LIST(X)                                                     \
    X(NONE, "")                                                               \
    X(COUNT, "shared: expert_shared_count")                                   \
    X(COUNT_ALWAYS, "shared: at least one")                                   \
    X(WIDTH_COUNT, "shared: own width or expert_shared_count")                \
    X(WIDTH, "shared: own width or an expert's")                              \
    X(WIDTH_MODEL, "shared: own width or the model's")                        \
    X(WIDTH_ONLY, "shared if it has a width")                                 \
    X(WIDTH_TIMES, "shared: expert_shared_count of own width")                \
    X(ONE, "one shared")
enum gg_model_shared {
#define X(ID, TEXT) GG_SHARED_##ID,
    GG_SHARED_LIST(X)
#undef X
        GG_N_SHARED
};

/* What the router reads. */
#define GG_ROUTER_LIST(X)                                                     \
    X(FFN, "")                                                                \
    X(LAYER, "router on the layer's input")                                   \
    X(SUM, "router on the sum, normed and scaled")
enum gg_model_router {
#define X(ID, TEXT) GG_ROUTER_##ID,
    GG_ROUTER_LIST(X)
#undef X
        GG_N_ROUTERS
};

/* What layers with experts compute beside them. */
#define GG_BESIDE_LIST(X)                                                     \
    X(NOTHING, "")                                                            \
    X(MAYBE, "a dense part may be beside them: the sum counts 1/sqrt(2)")     \
    X(NORMED, "a dense part beside them, each with norms")
enum gg_model_beside {
#define X(ID, TEXT) GG_BESIDE_##ID,
    GG_BESIDE_LIST(X)
#undef X
        GG_N_BESIDE
};

struct gg_moe {
    uint8_t where;  /* enum gg_model_experts */
    uint8_t gating; /* enum gg_model_gating */
    uint8_t
        gating_key; /* enum gg_model_use: expert_gating_func; gating without */
    uint8_t select_b; /* enum gg_model_use: a bias for choosing only */
    uint8_t norm;     /* enum gg_model_use: weights add to 1; MAY: by key */
    bool scale;       /* expert_weights_scale counts */
    uint8_t ff;       /* enum gg_model_expert_ff */
    bool plain;       /* up and down, no gate */
    bool fused;       /* gate and up may be one */
    bool bias;        /* of router and experts */
    uint8_t shared;   /* enum gg_model_shared */
    bool shared_gate; /* a sigmoid says how much */
    bool mean;        /* of experts and shared ones, not the sum */
    uint8_t router;   /* enum gg_model_router */
    bool gate_maybe;  /* without gates they are up and down */
    uint8_t beside;   /* enum gg_model_beside */
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

#define GG_EMBD_SCALE_LIST(X)                                                 \
    X(NONE, "")                                                               \
    X(SQRT, "times sqrt(n_embd)")                                             \
    X(KEY, "times embedding_scale")                                           \
    X(KEY_OR_TWELVE, "times embedding_scale, or 12")                          \
    X(TWELVE, "times 12")
enum gg_model_embd_scale {
#define X(ID, TEXT) GG_EMBD_SCALE_##ID,
    GG_EMBD_SCALE_LIST(X)
#undef X
        GG_N_EMBD_SCALES
};

#define GG_LOGIT_SCALE_LIST(X)                                                \
    X(NONE, "")                                                               \
    X(TIMES, "times logit_scale")                                             \
    X(OVER, "divided by logit_scale")                                         \
    X(OVER_OR_WIDTH, "divided by logit_scale, or n_embd/256")                 \
    X(WIDTH, "times 256/n_embd")
enum gg_model_logit_scale {
#define X(ID, TEXT) GG_LOGIT_SCALE_##ID,
    GG_LOGIT_SCALE_LIST(X)
#undef X
        GG_N_LOGIT_SCALES
};

/* What a reranker's score is made of (pooled.c). */
#define GG_RANK_LIST(X)                                                       \
    X(FIRST, "")                                                              \
    X(MEAN, "ranks by the mean, GELU and a norm")                             \
    X(LAST, "ranks by the last token and a softmax")
enum gg_model_rank {
#define X(ID, TEXT) GG_RANK_##ID,
    GG_RANK_LIST(X)
#undef X
        GG_N_RANKS
};

/* ---- the row ---- */

typedef void gg_arch_sizes_fn(const struct gg_hparams *hp,
                              const struct gg_model_layer *l,
                              struct gg_model_sizes *z);

/* What one architecture or two do besides at one place: a function, NULL for
 * all others, and a text for people. */
#define GG_HOOK(FN)                                                           \
    struct {                                                                  \
        FN *fn;                                                               \
        const char *text;                                                     \
    }

struct gg_arch {
    const char *name; /* general.architecture, and prefix of its keys */
    bool runs;        /* it can be evaluated */

    uint8_t order;       /* enum gg_model_order */
    uint8_t norm;        /* enum gg_model_norm */
    uint8_t norm_b;      /* enum gg_model_use: biases of norms */
    bool norm_plain;     /* norms have no weights */
    bool norm_eps_maybe; /* the key of epsilon may be missing */
    struct gg_model_norms mix_norm, ffn_norm;
    bool first_bare;     /* the first layer may have no mix_norm.pre */
    uint16_t final_norm; /* enum gg_weight, 0: none */

    const struct gg_mixer *mixer; /* NULL: attention over heads */
    const struct gg_mixer *other; /* of layers that mix_rule names */
    uint8_t mix_rule; /* enum gg_model_mix_rule: layers with the other */

    uint8_t qkv; /* enum gg_model_qkv */
    uint8_t
        qkv_b; /* enum gg_model_use, of one that is not ANY: there they may */
    uint8_t out_b; /* enum gg_model_use: bias of attention's output */
    struct gg_model_qk_norm qk;
    int8_t rope;        /* enum gguf_rope_kind, or GG_ROPE_NONE */
    bool rope_axes;     /* rope.dimension_sections: MUST for M-RoPE, may
                       * choose it for others */
    uint8_t rope_where; /* enum gg_model_rope_where */
    uint8_t freqs;      /* enum gg_model_use: rope_freqs */
    bool rope_fixed;    /* the base is 10000, unscaled, whatever keys say */
    bool longrope;      /* rope_factors_long and _short may be there */
    uint8_t yarn_fast;  /* YaRN's fast beta unless its key is there; 0: 32 */
    uint8_t temper;     /* enum gg_model_temper: of queries */
    struct gg_model_windows window;
    uint8_t scale;    /* enum gg_model_scale: of scores */
    uint8_t scale_at; /* SIZE: layers of a model whose scores are over the
                       * square root of n_embd / n_head */
    bool idx_shared;  /* layers may share what an indexer chose */
    bool yarn_both;   /* YARN: rope.scaling.yarn_log_multiplier is of both
                       * magnitudes, of positions and of scores */
    uint8_t gate;     /* enum gg_model_gate: of attention's result */
    uint8_t sinks;    /* enum gg_model_use */
    uint8_t clamp;    /* enum gg_model_use: attention.clamp_kqv */
    uint8_t alibi;    /* greatest bias, built in */
    bool alibi_key;   /* or attention.max_alibi_bias */
    bool head_rot;    /* without attention.key_length heads are as wide as
                       * rope.dimension_count */
    bool no_causal;   /* never causal; else attention.causal says */
    bool no_memory;   /* all of a sequence is computed at once */

    const struct gg_ffn *ffn;     /* NULL: gated */
    const struct gg_ffn_act *act; /* NULL: SiLU */
    uint8_t ffn_b;                /* enum gg_model_use */
    struct gg_moe moe;

    uint8_t embd_scale; /* enum gg_model_embd_scale */
    float embd_default; /* embedding_scale, unless it is there; 0: 1 */
    uint8_t embd_norm;  /* enum gg_model_use */
    bool embd_again;    /* what comes of that is added after each layer, times
                         * layer_output_scale */
    uint8_t position; /* enum gg_model_use: learned embeddings of positions */
    uint8_t types;    /* enum gg_model_use: embeddings of token types */
    uint8_t output;   /* enum gg_model_output */
    uint8_t output_b; /* enum gg_model_use */
    uint8_t logit_scale; /* enum gg_model_logit_scale */
    float logit_default; /* logit_scale, unless it is there; 0: 1 */
    uint8_t rank;        /* enum gg_model_rank */
    struct {
        uint16_t first, end;
    } struck;            /* tokens whose logits are struck out */
    bool residual_scale; /* branches are scaled */
    bool residual_depth; /* by 1.4/sqrt(layers), unless the key is there */
    bool rescales;      /* the stream is halved every rescale_every_n_layers */
    uint8_t cap;        /* 1: final_logit_softcapping, 2: 30 unless given */
    uint8_t attn_cap;   /* attn_logit_softcapping unless given; 0: none */
    uint16_t per_layer; /* width of inputs that layers have of their own,
                         * unless embedding_length_per_layer_input says */
    uint8_t own_keys;   /* layers that keep keys, unless
                         * attention.shared_kv_layers says: the others read
                         * those of the last that sees as much; 0: all */
    uint8_t sparse;     /* unless activation_sparsity_scale says: first layers
                         * of which only gates far above their
                         * mean count */
    uint8_t layer_scale; /* enum gg_model_use: a layer's result is scaled */
    bool nextn;          /* the last layers may draft */

    /* Sizes of shapes that no key says, after all others are known. */
    GG_HOOK(gg_arch_sizes_fn) layer_sizes;

    /* Weights and keys that nothing above says, as NEED, MAYBE, KEY and
     * KEY_MAYBE of need.h, ended by 0; or NULL. */
    const uint16_t *more;
    /* Of the weights that files may have those with which nothing is
     * computed, ended by 0; or NULL. */
    const uint16_t *idle;
    const char *odd; /* what no column says, for people; or NULL */
};

/* The row whose name follows that of another, of all families; the first one
 * after NULL, NULL after the last. */
const struct gg_arch *gg_arch_next(const struct gg_arch *after);

/* What a row points at, or llama's. */
const struct gg_mixer *gg_arch_mixer(const struct gg_arch *a);
const struct gg_ffn *gg_arch_ffn(const struct gg_arch *a);

/* By general.architecture, or NULL. */
const struct gg_arch *gg_arch_find(struct gguf_str name);

#endif
