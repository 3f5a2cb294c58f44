/* model.h - a model inside: hyperparameters and weights as tensors */
#ifndef GG_MODEL_MODEL_H
#define GG_MODEL_MODEL_H

#include "gguf/backend.h"
#include "gguf/model.h"
#include "model/arch.h"
#include "model/hparams.h"

/* Weights of a layer; NULL where the file has none. d and h are elements and
 * number of heads, kv: of keys and values. Matrices are [columns, rows]. */
struct gg_block {
    struct gguf_tensor *attn_norm;                        /* [n_embd] */
    struct gguf_tensor *attn_q, *attn_k, *attn_v;         /* [n_embd, d*h] */
    struct gguf_tensor *attn_q_b, *attn_k_b, *attn_v_b;   /* [d*h] */
    struct gguf_tensor *attn_q_norm, *attn_k_norm;        /* [d] */
    struct gguf_tensor *attn_out, *attn_out_b;            /* [d*h, n_embd] */
    struct gguf_tensor *ffn_norm;                         /* [n_embd] */
    struct gguf_tensor *ffn_gate, *ffn_up;                /* [n_embd, n_ff] */
    struct gguf_tensor *ffn_gate_b, *ffn_up_b;            /* [n_ff] */
    struct gguf_tensor *ffn_down, *ffn_down_b;            /* [n_ff, n_embd] */
};

struct gguf_model {
    const struct gguf_allocator *allocator;
    struct gg_source src;
    gguf_warn_fn *warn;
    void *warn_user;
    const struct gg_arch *arch;
    struct gguf_str arch_name;
    struct gguf_vocab *vocab;
    struct gg_hparams hp;

    struct gguf_ctx *ctx;      /* descriptions of the weights */
    struct gguf_buffer **buffer; /* round the mapping of each file */
    void *copy;                /* weights that are not used in their mapping */
    size_t copy_used, copy_size;
    struct gguf_buffer *copy_buffer;
    struct gguf_tensor *token_embd;  /* [n_embd, n_vocab] */
    struct gguf_tensor *output_norm; /* [n_embd] */
    struct gguf_tensor *output;      /* [n_embd, n_vocab] */
    struct gguf_tensor *output_b;    /* [n_vocab] */
    struct gguf_tensor *rope_freqs;  /* [n_rot / 2] */
    struct gg_block *block;          /* n_layer of them */

    uint8_t *used; /* per tensor of all files: a weight of the model */
    uint64_t n_params, weight_size;
};

/* weights.c: fill the weights from the files. GGUF_E_TENSOR,
 * GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. */
enum gguf_status gg_weights_load(struct gguf_model *m, struct gguf_error *err);

#endif
