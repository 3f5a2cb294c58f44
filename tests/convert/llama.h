/* SPDX-License-Identifier: MIT */
/* llama.h - small folders of Llama, for tests that any class would do for
 *
 * Folders of each class are described in texts (folder_text.h).
 */
#ifndef TESTS_CONVERT_LLAMA_H
#define TESTS_CONVERT_LLAMA_H

#include "tests/convert/folder.h"

#define L "model.layers.%."
/* Members of config.json. */
#define SIZES                                                                  \
    "\"intermediate_size\":48,\"num_hidden_layers\":2,"                        \
    "\"num_key_value_heads\":2,\"hidden_size\":32,\"num_attention_heads\":4,"  \
    "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6," \
    "\"rope_theta\":10000.0,\"eos_token_id\":258,\"bos_token_id\":258"
/* Tensors, for folder_tensors(). */
#define TOP  "model.embed_tokens.weight 260 32\nmodel.norm.weight 32\n"
#define HEAD "lm_head.weight 260 32\n"
#define QKV                                                                   \
    L "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 16 32\n" L \
      "self_attn.v_proj.weight 16 32\n" L "self_attn.o_proj.weight 32 32\n"
#define QK_NORM L "self_attn.q_norm.weight 8\n" L "self_attn.k_norm.weight 8\n"
#define NORMS                                                                 \
    L "input_layernorm.weight 32\n" L "post_attention_layernorm.weight 32\n"
#define MLP                                                                   \
    L "mlp.gate_proj.weight 48 32\n" L "mlp.up_proj.weight 48 32\n" L         \
      "mlp.down_proj.weight 32 48\n"

/* Make a folder of LlamaForCausalLM without its weights. more: further members
 * of config.json, each after a comma. */
static inline void folder_llama(struct folder *f, const char *dir,
                                const char *more)
{
    char config[2000];
    folder_begin(f, dir);
    snprintf(config, sizeof config,
             "{\"architectures\":[\"LlamaForCausalLM\"]," SIZES "%s}", more);
    folder_text(f, "config.json", config);
    folder_tensors(f, TOP HEAD QKV NORMS MLP, FOLDER_LAYERS, FOLDER_EXPERTS);
    folder_bpe(f, false);
}

#endif
