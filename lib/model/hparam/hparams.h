/* SPDX-License-Identifier: MIT */
/* hparams.h - what the metadata says about a model's shape, checked */
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

/* What the kinds are in memory. Those of SEEN only say whether there is one. */
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

/* What tokens of a layer see of those that they may see at all. */
enum gg_hparams_attn_type { GG_ATTN_FULL, GG_ATTN_WINDOW, GG_N_ATTN_TYPES };

/* How far: positions before and after a token's own, within its chunk. */
struct gg_hparams_attn_range {
    int32_t before, after; /* INT32_MAX: all */
    int32_t chunk;         /* positions of a chunk; 0: there are none */
};

/* Tokens whose keys become one: of few each block takes half of its numbers
 * from the block before it. */
enum { GG_RATIO_CSA = 4, GG_RATIO_HCA = 128 };

/* How experts are chosen, as expert_gating_func numbers it. */
enum gg_model_expert_gating {
    GG_EXPERT_UNKNOWN,
    GG_EXPERT_SOFTMAX,
    GG_EXPERT_SIGMOID,
    GG_EXPERT_SOFTMAX_OF_CHOSEN,
    GG_EXPERT_SQRT_SOFTPLUS,
    /* no number of that key: sigmoid of the chosen, which scales what experts
     * read */
    GG_EXPERT_SIGMOID_ON_INPUT
};

/* One layer: its numbers, and what it is. */
struct gg_model_layer {
#define X(FIELD, KIND, WHERE, ...)                                            \
    GG_HP_IN_LAYER_##WHERE(GG_HP_C_##KIND, FIELD)
    GG_HPARAM_LIST(X)
#undef X
    const struct gg_mixer *mixer; /* NULL: none */
    const struct gg_ffn *ffn;     /* dense feed-forward part; NULL: none */
    bool moe;                     /* it has experts instead */
    bool is_nextn;        /* it is of the last, which are not evaluated */
    bool has_rope;        /* positions turn its queries and keys */
    bool has_indexer;     /* it chooses which keys are attended to */
    bool has_temperature; /* its queries have a temperature */
    uint8_t attn_type;    /* enum gg_hparams_attn_type */
    bool
        shares_kv; /* keys of the last layer that keeps some and sees as much */
    uint32_t ratio;    /* tokens of a compressed key: 0, there are none, or one
                     * of GG_RATIO_... */
    bool hash_routing; /* tokens choose experts by their number */
    uint32_t dim_k, dim_v; /* elements of a key and of a value of a head */
    float score_scale;     /* of attention */
};

struct gg_hparams {
    uint32_t none; /* UINT32_MAX: what limits a number that nothing limits */
    uint32_t n_tensors; /* of all files */
#define X(FIELD, KIND, WHERE, ...)                                            \
    GG_HP_IN_MODEL_##WHERE(GG_HP_C_##KIND, FIELD)
    GG_HPARAM_LIST(X)
#undef X
    bool has[GG_N_HPARAMS]; /* the key is in the file, and good */

    /* What follows from them. */
    uint32_t n_vocab;
    const struct gg_ffn_act *act; /* of feed-forward parts */
    const struct gg_mixer *mixer; /* of the architecture */
    uint8_t norm;                 /* enum gg_model_norm */
    float eps;                    /* of those norms */
    struct gguf_rope rope;        /* of layers that see everything */
    struct gguf_rope rope_window; /* of the others */
    bool window_factors;          /* frequency factors count there, too */
    bool has_windows;             /* some layers may see a window only */
    struct gg_hparams_attn_range reach[GG_N_ATTN_TYPES];
    struct {
        float scale; /* 0: none */
        uint32_t length, first;
    } temperature; /* 1 + scale ln(floor((position + first) / length) + 1) */
    uint32_t n_layer_all; /* n_layer, or more where a decoder has more layers:
                      * those are as the last */
    struct gg_model_layer *layer; /* n_layer_all of them */
};

/* Read and check the keys of an architecture. n_tokens is the size of the
 * vocabulary, 0 if the file has none. hp->layer comes from allocator and is
 * the caller's to free, also after a failure. hp is zeroed by the caller.
 * GGUF_E_HPARAM, GGUF_E_NOTFOUND, GGUF_E_TYPE, GGUF_E_UNSUPPORTED,
 * GGUF_E_VOCAB, GGUF_E_NOMEM.
 *
 * If the report goes to a checker, every fault is a finding, and no failure:
 * what is missing or wrong is 0 then, or its default, and hp->n_layer as the
 * caller set it. A value that is well formed but not supported is not a fault.
 * GGUF_E_NOMEM, GGUF_E_CANCELLED. */
enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gg_source *src,
                                 const struct gg_arch *arch, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 const struct gg_finding *report);

/* Sizes that the shapes of weights are made of; of the model: layer 0. */
void gg_hparams_sizes(const struct gg_hparams *hp, const struct gg_arch *arch,
                      const struct gg_model_layer *layer,
                      struct gg_model_sizes *z);

#endif
