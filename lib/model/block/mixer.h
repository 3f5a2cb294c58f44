/* SPDX-License-Identifier: MIT */
/* mixer.h - mixers: the part of a layer in which tokens meet
 *
 * A mixer is an object: a text for people, the weights that a layer with it
 * has, the memory that it keeps, and the functions that build it. Rows of
 * architectures point at one (arch.h). Those that several families have are
 * declared here; those of one family stand beside its rows.
 */
#ifndef GG_MODEL_BLOCK_MIXER_H
#define GG_MODEL_BLOCK_MIXER_H

#include "base/error.h"
#include "model/arch.h"
#include "model/hparam/hparams.h"

struct gg_hparams_reader;
struct gg_model_at;
struct gg_model_key_sizes;
struct gg_needs;
struct gg_model_pass;
struct gg_model_state_sizes;
struct gguf_model;

/* Kinds of memory. */
enum gg_model_memory_kind {
    GG_MODEL_MEMORY_KV = 1,
    GG_MODEL_MEMORY_STATES = 2,
    GG_MODEL_MEMORY_CROSS = 4, /* keys and values of an encoder's states */
    GG_MODEL_MEMORY_COMPRESSED = 8
};

/* The result of a mixer for normed x [n_embd, N], before the output matrix if
 * the mixer names one: [.., N]. */
typedef struct gguf_tensor *gg_mixer_mix_fn(const struct gg_model_at *at,
                                            struct gguf_tensor *x);
/* Elements of a sequence's states in a layer. */
typedef void gg_mixer_size_states_fn(const struct gguf_model *m,
                                     const struct gg_model_layer *l,
                                     struct gg_model_state_sizes *n);
/* Elements of a token's key and value in a layer. */
typedef void gg_mixer_size_keys_fn(const struct gguf_model *m, uint32_t il,
                                   struct gg_model_key_sizes *n);
/* Refuse a layer of a file. GGUF_E_TENSOR, GGUF_E_UNSUPPORTED. */
typedef enum gguf_status gg_mixer_check_fn(const struct gguf_model *m,
                                           uint32_t il,
                                           struct gguf_error *err);
/* All layers, of embeddings x [n_embd, N]: states after the last norm [n_embd,
 * n_out]; NULL if n_out is 0. */
typedef struct gguf_tensor *gg_mixer_stack_fn(const struct gg_model_pass *p,
                                              struct gguf_tensor *x);

struct gg_mixer {
    const char *text;
    /* Lists of weights (needs.h), and of those that depend on the layer. */
    const uint16_t *weights, *more_weights;
    void (*layer_weights)(struct gg_needs *n, const struct gg_model_layer *l);
    bool heads;       /* queries, keys, values and output as the row says */
    bool latent;      /* queries are made in one step or in two */
    bool counts;      /* a number of heads is needed, without both of these */
    bool has_indexer; /* an indexer chooses keys in some layers */
    bool positions;   /* it takes keys by their positions */
    bool looks_ahead; /* it needs no state where all of a sequence is there */
    int8_t idx_rope;  /* enum gguf_rope_kind of the indexer's heads */
    /* Check hyperparameters: of groups of heads with states, instead of the
     * usual check; of all others, when everything else is known. */
    enum gguf_status (*check_states)(struct gg_hparams_reader *r);
    enum gguf_status (*check_hparams)(struct gg_hparams_reader *r);
    /* Sizes of shapes that only its weights have. */
    void (*layer_sizes)(const struct gg_hparams *hp,
                        const struct gg_model_layer *l,
                        struct gg_model_sizes *z);

    gg_mixer_mix_fn *mix;
    enum gg_weight out; /* the output matrix, or GG_W_NONE */
    unsigned memory;    /* enum gg_model_memory_kind */
    gg_mixer_size_states_fn
        *states; /* sizes of states, with GG_MODEL_MEMORY_STATES */
    gg_mixer_size_keys_fn *keys; /* sizes of keys, with GG_MODEL_MEMORY_KV */
    gg_mixer_check_fn *check;    /* check of names and shapes; or NULL */
    gg_mixer_check_fn *loaded;   /* check of loaded weights; or NULL */
    gg_mixer_stack_fn *stack;    /* instead of mix: all layers of a model */
};

/* mix_attn.c */
extern const struct gg_mixer gg_mixer_attention;
static inline const struct gg_mixer *gg_arch_mixer(const struct gg_arch *a)
{
    return a->mixer ? a->mixer : &gg_mixer_attention;
}

gg_mixer_mix_fn gg_model_mix_attention;
gg_mixer_size_keys_fn gg_model_size_keys_heads;

/* mix_latent.c, hparams_latent.c: fields that all with latent attention have */
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

/* mix_indexer.c: fields of latent attention to keys that an indexer chooses;
 * and attention to blocks that it chooses */
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
gg_mixer_mix_fn gg_model_mix_sparse, gg_model_mix_blocks;
gg_mixer_size_keys_fn gg_model_size_keys_sparse, gg_model_size_keys_blocks;

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

/* mix_delta.c */
gg_mixer_mix_fn gg_model_mix_delta, gg_model_mix_delta_tiled, gg_model_mix_kda;
gg_mixer_size_states_fn gg_model_size_states_delta, gg_model_size_states_kda;
enum gguf_status gg_hparams_check_delta(struct gg_hparams_reader *r);

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
