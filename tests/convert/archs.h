/* SPDX-License-Identifier: MIT */
/* archs.h - small models of each architecture, as Hugging Face has them
 *
 * Names and shapes are written here from each model's definition in
 * transformers (modeling_NAME.py), or in its own repository; so are the
 * functions that say which number of a checkpoint a number of the file is.
 */
#ifndef TESTS_CONVERT_ARCHS_H
#define TESTS_CONVERT_ARCHS_H

#include "tests/convert/folder.h"

enum { LAYERS = 2, EXPERTS = 3 };

/* Element i of what a tensor of the file takes from t, of one expert where
 * these are told by numbers. */
typedef float archs_value(const struct folder_tensor *t, uint64_t i);

/* What is done to a tensor, told by the beginning of its name here. */
struct change {
    const char *to, *from; /* %: layer; @: expert */
    archs_value *value;
};

struct arch {
    const char *class_name, *arch, *config, *tensors;
    struct change change[10];
    /* keys after "ARCH.", or all of a key after '/', and what they are to be,
     * as text; lists with commas; "@NAME" is the number of a tensor */
    const char *keys[12][2];
    int layers;                            /* 0: LAYERS */
    void (*vocab)(const struct folder *f); /* NULL: byte-level BPE */
};

/* Each ends with one without a class. */
extern const struct arch archs_first[], archs_dense[], archs_kin[],
    archs_early[], archs_vision[], archs_plamo[], archs_rwkv6[],
    archs_experts[], archs_latent[], archs_mixed[], archs_routed[],
    archs_recurrent[], archs_encoder[], archs_packed[];

/* The tokenizers of BERT, of T5 in two forms, of RWKV, of PLaMo 2. */
void archs_wordpiece(const struct folder *f);
void archs_spiece(const struct folder *f);
void archs_unigram(const struct folder *f);
void archs_rwkv(const struct folder *f);
void archs_plamo2(const struct folder *f);

archs_value same, plus_1, neg_exp, paired, turned, half_1, half_2;
archs_value or_0; /* 0 after the checkpoint's */

#define L "model.layers.%."
#define B "blk.%."
/* The folders' tokenizer_config.json says false. */
#define BOS   "/tokenizer.ggml.add_bos_token"
#define SIZES SIZES_KV("2")
#define SIZES_KV(N_KV)                                                        \
    SIZES_HEADS("\"intermediate_size\":48,\"num_hidden_layers\":2,"           \
                "\"num_key_value_heads\":" N_KV ",")
#define SIZES_HEADS(MORE)                                                     \
    MORE "\"hidden_size\":32,\"num_attention_heads\":4,\"vocab_size\":260,"   \
         "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,"              \
         "\"rope_theta\":10000.0,\"eos_token_id\":258,\"bos_token_id\":258"
/* All of a model without a head, whose names begin at once. */
#define BARE                                                                  \
    "embed_tokens.weight 260 32\nnorm.weight 32\n"                            \
    "layers.%.self_attn.q_proj.weight 32 32\n"                                \
    "layers.%.self_attn.k_proj.weight 16 32\n"                                \
    "layers.%.self_attn.v_proj.weight 16 32\n"                                \
    "layers.%.self_attn.o_proj.weight 32 32\n"                                \
    "layers.%.input_layernorm.weight 32\n"                                    \
    "layers.%.post_attention_layernorm.weight 32\n"                           \
    "layers.%.mlp.gate_proj.weight 48 32\n"                                   \
    "layers.%.mlp.up_proj.weight 48 32\n"                                     \
    "layers.%.mlp.down_proj.weight 32 48\n"
#define TOP  "model.embed_tokens.weight 260 32\nmodel.norm.weight 32\n"
#define HEAD "lm_head.weight 260 32\n"
#define QKV                                                                   \
    L "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 16 32\n" L \
      "self_attn.v_proj.weight 16 32\n" L "self_attn.o_proj.weight 32 32\n"
#define QKV_B                                                                 \
    L "self_attn.q_proj.bias 32\n" L "self_attn.k_proj.bias 16\n" L           \
      "self_attn.v_proj.bias 16\n"
#define QK_NORM L "self_attn.q_norm.weight 8\n" L "self_attn.k_norm.weight 8\n"
#define NORMS                                                                 \
    L "input_layernorm.weight 32\n" L "post_attention_layernorm.weight 32\n"
#define POST                                                                  \
    L "post_attention_layernorm.weight 32\n" L                                \
      "post_feedforward_layernorm.weight 32\n"
#define MLP                                                                   \
    L "mlp.gate_proj.weight 48 32\n" L "mlp.up_proj.weight 48 32\n" L         \
      "mlp.down_proj.weight 32 48\n"
#define MOE                                                                   \
    L "mlp.gate.weight 3 32\n" L "mlp.experts.@.gate_proj.weight 24 32\n" L   \
      "mlp.experts.@.up_proj.weight 24 32\n" L                                \
      "mlp.experts.@.down_proj.weight 32 24\n"
#define MOE_SIZES                                                             \
    ",\"num_experts\":3,\"num_experts_per_tok\":2,\"moe_intermediate_size\":24"
#define MHA                                                                   \
    "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"    \
    "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":260," \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,"                   \
    "\"rope_theta\":10000.0"
/* The first layer without experts, the second with them. */
#define LEAD                                                                  \
    "model.layers.0.mlp.gate_proj.weight 48 32\n"                             \
    "model.layers.0.mlp.up_proj.weight 48 32\n"                               \
    "model.layers.0.mlp.down_proj.weight 32 48\n"
#define L1 "model.layers.1."
#define LATE_MOE                                                              \
    L1 "mlp.gate.weight 3 32\n" L1                                            \
       "mlp.experts.@.gate_proj.weight 24 32\n" L1                            \
       "mlp.experts.@.up_proj.weight 24 32\n" L1                              \
       "mlp.experts.@.down_proj.weight 32 24\n" L1                            \
       "mlp.shared_experts.gate_proj.weight 24 32\n" L1                       \
       "mlp.shared_experts.up_proj.weight 24 32\n" L1                         \
       "mlp.shared_experts.down_proj.weight 32 24\n"
#define LATE_BIAS L1 "mlp.gate.e_score_correction_bias 3\n"
#define QKV_32                                                                \
    L "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 32 32\n" L \
      "self_attn.v_proj.weight 32 32\n" L "self_attn.o_proj.weight 32 32\n"

#define MOE_NAMES                                                             \
    { B "ffn_gate_exps.weight", L "mlp.experts.@.gate_proj.weight", same },   \
        { B "ffn_up_exps.weight", L "mlp.experts.@.up_proj.weight", same },   \
    {                                                                         \
        B "ffn_down_exps.weight", L "mlp.experts.@.down_proj.weight", same    \
    }

#endif
