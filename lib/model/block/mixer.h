/* SPDX-License-Identifier: MIT */
/* mixer.h - mixers: the part of a layer in which tokens exchange information
 *
 * A mixer (attention, a state space, a delta rule, ...) is an object: a text
 * for people, the weights of a layer with it, the memory that it needs, and the
 * functions that build it. Rows of architectures point at one (arch.h). Objects
 * that several families use are declared here; those of one family stand beside
 * its rows.
 */
#ifndef GG_MODEL_BLOCK_MIXER_H
#define GG_MODEL_BLOCK_MIXER_H

#include "base/error.h"
#include "model/arch.h"
#include "model/hparam/hparams.h"

struct gg_hparams_reader;
struct gg_model_at;
struct gg_model_compressed_sizes;
struct gg_model_key_sizes;
struct gg_needs;
struct gg_model_pass;
struct gg_model_state_sizes;
struct gguf_model;

/* Kinds of memory of a mixer, as bits. */
enum gg_model_memory_kind {
    GG_MODEL_MEMORY_KV = 1,
    GG_MODEL_MEMORY_STATES = 2,
    GG_MODEL_MEMORY_CROSS = 4, /* keys and values of an encoder's states */
    GG_MODEL_MEMORY_COMPRESSED = 8,
    GG_MODEL_MEMORY_SWITCH = 16 /* adapters that tokens activate */
};

/* Builds a mixer for normed x [n_embd, N]. Returns [.., N], which the caller
 * multiplies by the output matrix if the mixer names one. */
typedef struct gguf_tensor *gg_mixer_mix_fn(const struct gg_model_at *at,
                                            struct gguf_tensor *x);
/* Applies a rotary embedding to heads x [d, h, N], at positions pos. */
typedef struct gguf_tensor *gg_mixer_rotate_fn(const struct gg_model_at *at,
                                               struct gguf_tensor *x,
                                               struct gguf_tensor *pos,
                                               const struct gguf_rope *rope);
/* Fills the number of elements of a sequence's states in a layer. */
typedef void gg_mixer_size_states_fn(const struct gguf_model *m,
                                     const struct gg_model_layer *l,
                                     struct gg_model_state_sizes *n);
/* Fills the number of elements of a token's key and value in a layer. */
typedef void gg_mixer_size_keys_fn(const struct gguf_model *m, uint32_t il,
                                   struct gg_model_key_sizes *n);
/* Fills the number of elements of a layer's compressed keys. */
typedef void gg_mixer_size_compressed_fn(const struct gguf_model *m,
                                         uint32_t il,
                                         struct gg_model_compressed_sizes *n);
/* Checks a layer of a file. GGUF_E_TENSOR, GGUF_E_UNSUPPORTED. */
typedef enum gguf_status gg_mixer_check_fn(const struct gguf_model *m,
                                           uint32_t il,
                                           struct gguf_error *err);
/* Builds all layers of a model. x: embeddings [n_embd, N]. Returns the states
 * after the last norm, [n_embd, n_out]; NULL if n_out is 0. */
typedef struct gguf_tensor *gg_mixer_stack_fn(const struct gg_model_pass *p,
                                              struct gguf_tensor *x);

struct gg_mixer {
    const char *text;
    /* Lists of weights (needs.h); NULL: none. layer_weights adds those that
     * depend on the layer. */
    const uint16_t *weights, *more_weights;
    void (*layer_weights)(struct gg_needs *n, const struct gg_model_layer *l);
    /* it has queries, keys, values and output as the row describes them */
    bool heads;
    /* latent attention: queries have one matrix or a low-rank pair */
    bool latent;
    /* attention.head_count is required, although neither heads nor latent is
     * set */
    bool counts;
    bool has_indexer; /* an indexer chooses keys in some layers */
    /* it needs the positions of cached keys (pass->keys.pos) */
    bool positions;
    /* in models that are not causal it also sees later tokens */
    bool looks_ahead;
    int8_t idx_rope; /* enum gguf_rope_kind of the indexer's heads */
    /* Rotates the indexer's heads. NULL: their first elements. */
    gg_mixer_rotate_fn *rotate_index;
    /* Epsilon of the norm of the indexer's keys. NULL: 1e-6. */
    float (*index_eps)(const struct gg_hparams *hp);
    /* Check hyperparameters. check_states: those of recurrent heads, instead of
     * the usual check. check_hparams: all others, after everything else is
     * known. */
    enum gguf_status (*check_states)(struct gg_hparams_reader *r);
    enum gguf_status (*check_hparams)(struct gg_hparams_reader *r);
    /* Sets sizes of shapes that only this mixer's weights have. */
    void (*layer_sizes)(const struct gg_hparams *hp,
                        const struct gg_model_layer *l,
                        struct gg_model_sizes *z);

    gg_mixer_mix_fn *mix;
    enum gg_weight out; /* output matrix; GG_W_NONE: mix() includes it */
    unsigned memory;    /* bits of enum gg_model_memory_kind */
    gg_mixer_size_states_fn
        *states; /* required if memory has GG_MODEL_MEMORY_STATES */
    gg_mixer_size_keys_fn
        *keys; /* required if memory has GG_MODEL_MEMORY_KV */
    gg_mixer_size_compressed_fn
        *compressed; /* required if memory has GG_MODEL_MEMORY_COMPRESSED */
    gg_mixer_check_fn *check;  /* checks names and shapes; NULL: no check */
    gg_mixer_check_fn *loaded; /* checks loaded weights; NULL: no check */
    gg_mixer_stack_fn
        *stack; /* builds all layers of a model, instead of mix */
};

/* mix_attn.c */
extern const struct gg_mixer gg_mixer_attention;
static inline const struct gg_mixer *gg_arch_mixer(const struct gg_arch *a)
{
    return a->mixer ? a->mixer : &gg_mixer_attention;
}

gg_mixer_mix_fn gg_model_mix_attention;
/* Rotates the last rope->n_dims elements of each head. */
gg_mixer_rotate_fn gg_model_rotate_tail;
gg_mixer_size_keys_fn gg_model_size_keys_heads;

/* mix_latent.c, hparams_latent.c: members that all latent attention shares */
#define GG_MIXER_LATENT                                                       \
    .weights = gg_mixer_latent_weights, .latent = true,                       \
    .check_hparams = gg_hparams_check_latent, .mix = gg_model_mix_latent,     \
    .out = GG_W_ATTN_OUT, .memory = GG_MODEL_MEMORY_KV,                       \
    .keys = gg_model_size_keys_latent
extern const uint16_t gg_mixer_latent_weights[];
extern const struct gg_mixer gg_mixer_latent, gg_mixer_latent_expanded;
gg_mixer_mix_fn gg_model_mix_latent;
gg_mixer_size_keys_fn gg_model_size_keys_latent;
enum gguf_status gg_hparams_check_latent(struct gg_hparams_reader *r);

/* mix_indexer.c: members of latent attention to the keys that an indexer
 * chooses; attention to blocks that an indexer chooses */
#define GG_MIXER_SPARSE                                                       \
    .text = "latent attention with an indexer",                               \
    .weights = gg_mixer_latent_weights,                                       \
    .more_weights = gg_mixer_indexer_weights,                                 \
    .layer_weights = gg_mixer_needs_indexer, .latent = true,                  \
    .has_indexer = true, .check_hparams = gg_hparams_check_latent,            \
    .mix = gg_model_mix_sparse, .out = GG_W_ATTN_OUT,                         \
    .memory = GG_MODEL_MEMORY_KV, .keys = gg_model_size_keys_sparse
extern const uint16_t gg_mixer_indexer_weights[];
void gg_mixer_needs_indexer(struct gg_needs *n,
                            const struct gg_model_layer *l);
gg_mixer_mix_fn gg_model_mix_sparse, gg_model_mix_blocks, gg_model_mix_pooled;
gg_mixer_size_keys_fn gg_model_size_keys_sparse, gg_model_size_keys_blocks,
    gg_model_size_keys_pooled;
gg_mixer_size_compressed_fn gg_model_size_compressed_pooled;
/* hparams_pooled.c: ratios of pooled keys, and n-grams */
enum gguf_status gg_hparams_check_pooled(struct gg_hparams_reader *r);

/* mix_compress.c, hparams_compress.c */
extern const struct gg_mixer gg_mixer_compressed;
enum gguf_status gg_hparams_check_compress(struct gg_hparams_reader *r);

/* mix_mamba.c */
#define GG_MIXER_MAMBA                                                        \
    .weights = gg_mixer_mamba_weights, .mix = gg_model_mix_mamba,             \
    .out = GG_W_SSM_OUT, .memory = GG_MODEL_MEMORY_STATES,                    \
    .states = gg_model_size_states_mamba
extern const uint16_t gg_mixer_mamba_weights[], gg_mixer_mamba2_weights[];
extern const struct gg_mixer gg_mixer_mamba2;
gg_mixer_mix_fn gg_model_mix_mamba, gg_model_mix_mamba2, gg_model_mix_plamo;
gg_mixer_size_states_fn gg_model_size_states_mamba,
    gg_model_size_states_mamba2, gg_model_size_states_plamo;

/* mix_delta.c: members of mixers with Kimi's delta rule. more_weights names the
 * projections of decay and gate, and the number a of each head.
 * gg_model_mix_kda: a is negative in files. gg_model_mix_kda_positive: a is
 * positive. */
#define GG_MIXER_KDA                                                          \
    .weights = gg_mixer_kda_weights, .out = GG_W_KDA_OUT,                     \
    .memory = GG_MODEL_MEMORY_STATES, .states = gg_model_size_states_kda
extern const uint16_t gg_mixer_kda_weights[];
gg_mixer_mix_fn gg_model_mix_delta, gg_model_mix_delta_tiled,
    gg_model_mix_delta_sigmoid, gg_model_mix_kda, gg_model_mix_kda_positive;
gg_mixer_size_states_fn gg_model_size_states_delta, gg_model_size_states_kda;
enum gguf_status gg_hparams_check_delta(struct gg_hparams_reader *r);

/* ngram_embeddings.c: members of a delta rule whose layers may have n-grams.
 * gg_model_check_ngrams() checks loaded weights. gg_model_check_no_ngrams()
 * refuses n-grams in layers with another mixer. */
void gg_mixer_needs_ngrams(struct gg_needs *n, const struct gg_model_layer *l);
gg_mixer_size_states_fn gg_model_size_states_ngrams;
gg_mixer_check_fn gg_model_check_ngrams, gg_model_check_no_ngrams;

/* mix_rwkv.c */
gg_mixer_mix_fn gg_model_mix_rwkv6, gg_model_mix_rwkv6_linear,
    gg_model_mix_rwkv7;
gg_mixer_size_states_fn gg_model_size_states_rwkv;
gg_mixer_check_fn gg_model_check_rwkv, gg_model_check_rwkv7;
/* RWKV's feed-forward part (ffn.h). */
struct gguf_tensor *gg_model_channel_mix(const struct gg_model_at *at,
                                         struct gguf_tensor *x);

/* encoder_decoder.c */
gg_mixer_stack_fn gg_model_stack_encoder, gg_model_stack_encdec;

#endif
