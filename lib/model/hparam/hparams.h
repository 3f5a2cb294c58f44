/* SPDX-License-Identifier: MIT */
/* hparams.h - hyperparameters of a model, read from metadata and checked */
#ifndef GG_MODEL_HPARAM_HPARAMS_H
#define GG_MODEL_HPARAM_HPARAMS_H

#include "base/error.h"
#include "gguf/op.h"
#include "model/arch.h"
#include "model/hparam/hparam_list.h"
#include "model/finding.h"
#include "data/source.h"
#include "model/weight/weight.h"

enum gg_model_hparam {
    GG_HP_none,
#define X(FIELD, ...) GG_HP_##FIELD,
    GG_HPARAM_LIST(X)
#undef X
        GG_N_HPARAMS
};

/* C type of each kind. SEEN is a bool: the file has the key. */
#define GG_HP_C_UINT  uint32_t
#define GG_HP_C_COUNT uint32_t
#define GG_HP_C_FLAGS uint32_t
#define GG_HP_C_FLOAT float
#define GG_HP_C_BOOL  bool
#define GG_HP_C_TEXT  struct gguf_str
#define GG_HP_C_SEEN  bool

#define GG_HP_IN_MODEL_MODEL(TYPE, FIELD) TYPE FIELD;
#define GG_HP_IN_MODEL_LAYER(TYPE, FIELD)
#define GG_HP_IN_LAYER_MODEL(TYPE, FIELD)
#define GG_HP_IN_LAYER_LAYER(TYPE, FIELD) TYPE FIELD;

/* Type of attention of a layer. */
enum gg_hparams_attn_type { GG_ATTN_FULL, GG_ATTN_WINDOW, GG_N_ATTN_TYPES };

/* Range of positions that a token attends to: before and after its own, within
 * its chunk. */
struct gg_hparams_attn_range {
    int32_t before, after; /* INT32_MAX: no limit */
    int32_t chunk;         /* positions of a chunk; 0: no chunks */
};

/* Tokens of a compressed key: compressed sparse attention (CSA), whose blocks
 * also use the block before, and heavily compressed attention (HCA). */
enum { GG_RATIO_CSA = 4, GG_RATIO_HCA = 128 };

/* Compressed keys of one ratio. A model has at most GG_N_RATIOS ratios. */
enum { GG_N_RATIOS = 4 };
struct gg_hparams_blocks {
    uint32_t ratio; /* tokens of a block; 0: no more ratios */
    uint32_t takes; /* tokens that a block is computed from */
};

/* Rows of hashed n-grams: n_heads heads of n-grams of 2 tokens, then those of 3
 * tokens, and so on. */
struct gg_hparams_ngrams {
    uint32_t n_heads; /* heads of all sizes together; 0: no n-grams */
    uint64_t
        factor[GG_NGRAM_MAX]; /* factors of a token and of those before it */
    /* rows of each head, and the first of them */
    uint32_t size[GG_NGRAM_HEADS], offset[GG_NGRAM_HEADS];
};

/* Router gating, numbered as expert_gating_func. */
enum gg_model_expert_gating {
    GG_EXPERT_UNKNOWN,
    GG_EXPERT_SOFTMAX,
    GG_EXPERT_SIGMOID,
    GG_EXPERT_SOFTMAX_OF_CHOSEN,
    GG_EXPERT_SQRT_SOFTPLUS,
    /* Without a number of that key: sigmoid of the chosen experts' logits,
     * which scales the input of the experts. */
    GG_EXPERT_SIGMOID_ON_INPUT
};

/* Hyperparameters of one layer, and its parts. */
struct gg_model_layer {
#define X(FIELD, KIND, WHERE, ...)                                            \
    GG_HP_IN_LAYER_##WHERE(GG_HP_C_##KIND, FIELD)
    GG_HPARAM_LIST(X)
#undef X
    const struct gg_mixer *mixer; /* NULL: none */
    const struct gg_ffn *ffn;     /* dense feed-forward part; NULL: none */
    bool moe;                     /* it has experts */
    bool is_nextn; /* nextn layer: one of the last, which are not computed */
    bool has_rope; /* queries and keys have a rotary embedding */
    bool has_indexer;     /* its indexer chooses keys */
    bool has_temperature; /* queries have a temperature */
    uint8_t attn_type;    /* enum gg_hparams_attn_type */
    /* it reads keys and values of the last layer that has its own and the same
     * type of attention */
    bool shares_kv;
    uint32_t ratio;        /* tokens of a compressed key; 0: not compressed */
    bool has_ngrams;       /* embeddings of n-grams are added before it */
    bool hash_routing;     /* a table chooses experts by token id */
    uint32_t dim_k, dim_v; /* elements of a key and of a value of one head */
    uint32_t latent_rank;  /* rank of keys and values of latent attention */
    float score_scale;     /* factor of attention scores */
};

struct gg_hparams {
    /* UINT32_MAX: limit of numbers without a limit (MOST is none) */
    uint32_t none;
    uint32_t n_tensors; /* number of tensors of all files */
#define X(FIELD, KIND, WHERE, ...)                                            \
    GG_HP_IN_MODEL_##WHERE(GG_HP_C_##KIND, FIELD)
    GG_HPARAM_LIST(X)
#undef X
    bool has[GG_N_HPARAMS]; /* the file has the key, with a valid value */

    /* Derived from the keys: */
    uint32_t n_vocab;
    const struct gg_ffn_act *act; /* activation of feed-forward parts */
    const struct gg_mixer *mixer; /* mixer of the architecture */
    uint8_t norm;                 /* enum gg_model_norm */
    float eps;                    /* epsilon of the norms */
    struct gguf_rope rope; /* rotary embedding of layers with full attention */
    struct gguf_rope
        rope_window;     /* rotary embedding of layers with a window */
    bool window_factors; /* frequency factors apply to rope_window, too */
    bool has_windows;    /* layers with a window exist */
    struct gg_hparams_attn_range reach[GG_N_ATTN_TYPES];
    struct gg_hparams_blocks blocks[GG_N_RATIOS];
    struct gg_hparams_ngrams ngrams;
    struct {
        float scale; /* 0: no temperature */
        uint32_t length, first;
    } temperature; /* 1 + scale ln(floor((position + first) / length) + 1) */
    /* Switched adapters: their activation tokens, and the tokens that are
     * embedded instead of these. Arrays of n_switch integers in the file's
     * metadata, which must outlive the object. NULL: no such adapters. */
    const struct gguf_kv *switch_on, *switch_instead;
    /* n_layer, or more if a decoder has more layers: those are like the last */
    uint32_t n_layer_all;
    struct gg_model_layer *layer; /* [n_layer_all] */
};

/* Read and check the keys of an architecture.
 *
 * prefix      word before the first dot of the architecture's keys
 * hp          zeroed by the caller. hp->layer is allocated and must be freed by
 *             the caller, also after a failure.
 * n_tokens    size of the vocabulary; 0: no vocabulary in the file
 * report      where faults go
 *
 * GGUF_E_HPARAM        A value is impossible.
 * GGUF_E_NOTFOUND      A required key is missing.
 * GGUF_E_TYPE          A key has the wrong type.
 * GGUF_E_UNSUPPORTED   A value is valid but not supported.
 * GGUF_E_VOCAB         The vocabulary's size contradicts a key.
 * GGUF_E_NOMEM
 *
 * If report->check is set, each fault becomes a finding and reading goes on.
 * Values that are missing or wrong are then 0 or their default, and hp->n_layer
 * keeps the caller's value. Unsupported values are not reported. The function
 * then fails only with GGUF_E_NOMEM or GGUF_E_CANCELLED. */
enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gg_source *src,
                                 const struct gg_arch *arch,
                                 struct gguf_str prefix, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 const struct gg_finding *report);

/* Compute the sizes from which shapes of weights are computed. layer: for
 * weights of the model, layer 0. */
void gg_hparams_sizes(const struct gg_hparams *hp, const struct gg_arch *arch,
                      const struct gg_model_layer *layer,
                      struct gg_model_sizes *z);

#endif
