/* SPDX-License-Identifier: MIT */
/* archs_rwkv.c - RWKV 6, and those with the body of Qwen 2 */
#include "config.h"
#include "tests/convert/archs.h"

#include <stdio.h>
#include <string.h>

/* Row r of a tensor that is of five, told by their letters at the end of t's
 * name: in the order of letters. */
static float of_letters(const struct folder_tensor *t, uint64_t i,
                        const char *letters)
{
    char name[128];
    snprintf(name, sizeof name, "%s", t->name);
    name[strlen(name) - 1] = letters[i / 128];
    return folder_value(name, i % 128);
}

static float mixed(const struct folder_tensor *t, uint64_t i)
{
    return of_letters(t, i, "wkvrg");
}

static float mixed_7(const struct folder_tensor *t, uint64_t i)
{
    return of_letters(t, i, "rwkvag");
}

/* Five matrices [32, 128], each turned. */
static float turned_5(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t no = i / 4096, row = i % 4096 / 32, col = i % 32;
    return folder_value(t->name, no * 4096 + col * 128 + row);
}

/* Of r, k, v, w, g as w, k, v, r, g: columns of 32 that become rows; matrices,
 * each turned. */
static const uint64_t place[] = { 3, 1, 2, 0, 4 };
static float w1(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 128, col = i % 128;
    return folder_value(t->name, col * 160 + place[row / 32] * 32 + row % 32);
}

static float w2(const struct folder_tensor *t, uint64_t i)
{
    return turned_5(t, place[i / 4096] * 4096 + i % 4096);
}

/* Results are halved after each layer, so the second's matrices are. */
static float halved(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) / 2;
}

#define A "rwkv.blocks.%.attention."
#define F "rwkv.blocks.%.feed_forward."
#define S L "self_attn."
#define T S "time_mixer."
#define MIX(P)                                                                \
    P "time_maa_x 1 1 128\n" P "time_maa_w 1 1 128\n" P                       \
      "time_maa_k 1 1 128\n" P "time_maa_v 1 1 128\n" P                       \
      "time_maa_r 1 1 128\n" P "time_maa_g 1 1 128\n" P                       \
      "time_maa_w1 128 160\n" P "time_maa_w2 5 32 128\n" P                    \
      "time_decay 1 1 128\n" P "time_decay_w1 128 64\n" P                     \
      "time_decay_w2 64 128\n"
#define QWEN                                                                  \
    "model.embed_tokens.weight 260 128\nmodel.norm.weight 128\n"              \
    "lm_head.weight 260 128\n" L "input_layernorm.weight 128\n" L             \
    "post_attention_layernorm.weight 128\n" L                                 \
    "mlp.gate_proj.weight 192 128\n" L "mlp.up_proj.weight 192 128\n" L       \
    "mlp.down_proj.weight 128 192\n"
#define LOW(X, RANK)                                                          \
    T X "0 1 1 128\n" T X "1 128 " RANK "\n" T X "2 " RANK " 128\n"

const struct arch archs_rwkv6[] = {
    { .class_name = "Rwkv6ForCausalLM",
      "rwkv6",
      "\"hidden_size\":128,\"intermediate_size\":null,\"num_hidden_layers\":2,"
      "\"head_size\":64,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260,"
      "\"rescale_every\":1",
      "rwkv.embeddings.weight 260 128\nrwkv.blocks.0.pre_ln.weight 128\n"
      "rwkv.blocks.0.pre_ln.bias 128\nrwkv.ln_out.weight 128\n"
      "rwkv.ln_out.bias 128\nhead.weight 260 128\n"
      "rwkv.blocks.%.ln1.weight 128\nrwkv.blocks.%.ln1.bias 128\n"
      "rwkv.blocks.%.ln2.weight 128\nrwkv.blocks.%.ln2.bias 128\n" MIX(A) A
      "time_faaaa 2 64\n" A "key.weight 128 128\n" A "value.weight 128 128\n" A
      "receptance.weight 128 128\n" A "gate.weight 128 128\n" A
      "output.weight 128 128\n" A "ln_x.weight 128\n" A "ln_x.bias 128\n" F
      "time_maa_k 1 1 128\n" F "time_maa_r 1 1 128\n" F
      "key.weight 448 128\n" F "receptance.weight 128 128\n" F
      "value.weight 128 448\n",
      { { B "time_mix_lerp_fused.weight", A "time_maa_w", mixed },
        { B "time_mix_w1.weight", A "time_maa_w1", turned },
        { B "time_mix_w2.weight", A "time_maa_w2", turned_5 },
        { B "time_mix_decay_w2.weight", A "time_decay_w2", turned },
        { B "time_mix_first.weight", A "time_faaaa", same },
        { "blk.0.time_mix_output.weight",
          "rwkv.blocks.0.attention.output.weight", same },
        { "blk.1.time_mix_output.weight",
          "rwkv.blocks.1.attention.output.weight", halved },
        { "blk.1.channel_mix_value.weight",
          "rwkv.blocks.1.feed_forward.value.weight", halved },
        { "blk.1.channel_mix_key.weight",
          "rwkv.blocks.1.feed_forward.key.weight", same } },
      { { "feed_forward_length", "448" }, /* 3.5 times */
        { "time_mix_extra_dim", "32" },
        { "time_decay_extra_dim", "64" },
        { "rescale_every_n_layers", "1" } },
      .vocab = archs_rwkv },
    { .class_name = "RWKV6Qwen2ForCausalLM",
      "rwkv6qwen2",
      "\"hidden_size\":128,\"intermediate_size\":192,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":260,"
      "\"rms_norm_eps\":1e-6",
      QWEN MIX(S) S "gate.weight 128 128\n" S "q_proj.weight 128 128\n" S
                    "q_proj.bias 128\n" S "k_proj.weight 64 128\n" S
                    "k_proj.bias 64\n" S "v_proj.weight 64 128\n" S
                    "v_proj.bias 64\n" S "o_proj.weight 128 128\n",
      { { B "time_mix_lerp_fused.weight", S "time_maa_w", mixed },
        { B "time_mix_w1.weight", S "time_maa_w1", w1 },
        { B "time_mix_w2.weight", S "time_maa_w2", w2 },
        { B "time_mix_receptance.bias", S "q_proj.bias", same },
        { B "time_mix_output.weight", S "o_proj.weight", same } },
      { { "wkv.head_size", "64" },
        { "token_shift_count", "1" },
        { "attention.head_count_kv", "1" },
        { "time_mix_extra_dim", "32" } } },
    { .class_name = "RwkvHybridForCausalLM",
      "arwkv7",
      "\"hidden_size\":128,\"intermediate_size\":192,\"num_hidden_layers\":2,"
      "\"head_size\":64,\"vocab_size\":260,\"rms_norm_eps\":1e-6,"
      "\"wkv_version\":7,\"wkv_has_gate\":true",
      QWEN T
      "x_r 1 1 128\n" T "x_w 1 1 128\n" T "x_k 1 1 128\n" T "x_v 1 1 128\n" T
      "x_a 1 1 128\n" T "x_g 1 1 128\n" T "k_k 1 1 128\n" T "k_a 1 1 128\n" T
      "r_k 2 64\n" T "receptance.weight 128 128\n" T "key.weight 128 128\n" T
      "value.weight 128 128\n" T "output.weight 128 128\n" T
      "ln_x.weight 128\n" T "ln_x.bias 128\n" LOW("w", "64") LOW("a", "64")
          LOW("v", "32") T "g1 128 128\n" T "g2 128 128\n",
      { { B "time_mix_lerp_fused.weight", T "x_r", mixed_7 },
        { B "time_mix_w1.weight", T "w1", turned },
        { "blk.0.time_mix_v1.weight", "model.layers.0.self_attn.time_mixer.a1",
          turned },
        { "blk.1.time_mix_v1.weight", "model.layers.1.self_attn.time_mixer.v1",
          turned },
        { B "time_mix_key.weight", T "key.weight", same } },
      { { "attention.gate_lora_rank", "128" },
        { "attention.decay_lora_rank", "64" },
        { "token_shift_count", "1" } } },
    { .class_name = NULL },
};
