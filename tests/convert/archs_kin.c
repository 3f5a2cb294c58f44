/* SPDX-License-Identifier: MIT */
/* archs_kin.c - those that differ from Llama in little */
#include "config.h"
#include "tests/convert/archs.h"

#include <math.h>
#include <string.h>

/* What those have whose norms are of layers. */
#define NORM_B                                                                \
    "model.norm.bias 32\n" L "input_layernorm.bias 32\n" L                    \
    "post_attention_layernorm.bias 32\n"
#define QKV_4                                                                 \
    L "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 32 32\n" L \
      "self_attn.v_proj.weight 32 32\n" L "self_attn.o_proj.weight 32 32\n"

/* -1, 0 or 1 times the mean magnitude. */
static float ternary(const struct folder_tensor *t, uint64_t i)
{
    static char name[128];
    static float times;
    if (strcmp(name, t->name) != 0) {
        double sum = 0;
        snprintf(name, sizeof name, "%s", t->name);
        for (uint64_t k = 0; k < t->n; k++)
            sum += fabs((double)folder_value(t->name, k));
        times = 1 / (float)(sum / (double)t->n);
    }
    const float x = folder_value(t->name, i) * times;
    return (x > 0.5f ? 1.0f : x < -0.5f ? -1.0f : 0.0f) * (1 / times);
}

/* Rows 4 to 7 of each head of 8. */
static float negated(const struct folder_tensor *t, uint64_t i)
{
    const float x = folder_value(t->name, i);
    return i / 32 % 8 < 4 ? x : -x;
}

const struct arch archs_kin[] = {
    { .class_name = "OrionForCausalLM",
      "orion",
      SIZES,
      TOP HEAD QKV NORMS NORM_B MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "ffn_norm.bias", L "post_attention_layernorm.bias", same },
        { "output_norm.bias", "model.norm.bias", same } },
      { { "attention.layer_norm_epsilon", "1e-06" },
        { "tensor_data_layout", "Meta AI original pth" },
        { "attention.head_count_kv", "2" },
        { "rope.freq_base", "" } } },
    { .class_name = "XverseForCausalLM",
      "xverse",
      SIZES,
      TOP HEAD QKV NORMS MLP L "self_attn.rotary_emb.inv_freq 4\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired },
        { B "attn_k.weight", L "self_attn.k_proj.weight", paired },
        { B "attn_v.weight", L "self_attn.v_proj.weight", same } },
      { { "tensor_data_layout", "Meta AI original pth" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "DreamModel",
      "dream",
      SIZES ",\"mask_token_id\":257",
      TOP HEAD QKV QKV_B NORMS MLP,
      { { B "attn_k.bias", L "self_attn.k_proj.bias", same } },
      { { "attention.causal", "false" } } },
    { .class_name = "MaincoderForCausalLM",
      "maincoder",
      SIZES ",\"head_dim\":8",
      TOP QKV QK_NORM NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "attn_q_norm.weight", L "self_attn.q_norm.weight", same } },
      { { "rope.dimension_count", "8" } } },
    { .class_name = "PanguEmbeddedForCausalLM",
      "pangu-embedded",
      SIZES ",\"tie_word_embeddings\":false",
      TOP HEAD QKV QKV_B NORMS MLP L "self_attn.o_proj.bias 32\n",
      { { B "attn_output.bias", L "self_attn.o_proj.bias", same },
        { "output.weight", "lm_head.weight", same } },
      { { "attention.key_length", "8" },
        { "attention.value_length", "8" },
        { "rope.dimension_count", "8" },
        { "vocab_size", "260" } } },
    { .class_name = "PanguEmbeddedForCausalLM",
      "pangu-embedded",
      SIZES ",\"tie_word_embeddings\":true",
      TOP HEAD QKV QKV_B NORMS MLP L "self_attn.o_proj.bias 32\n",
      { { "token_embd.weight", "model.embed_tokens.weight", same } },
      { { "rope.dimension_count", "8" } } },
    { .class_name = "PLMForCausalLM",
      "plm",
      SIZES ",\"kv_lora_rank\":16,\"qk_nope_head_dim\":8,"
            "\"qk_rope_head_dim\":4,\"v_head_dim\":8",
      TOP NORMS L "self_attn.q_proj.weight 48 32\n" L
                  "self_attn.kv_a_proj_with_mqa.weight 20 32\n" L
                  "self_attn.kv_a_layernorm.weight 16\n" L
                  "self_attn.kv_b_proj.weight 64 16\n" L
                  "self_attn.o_proj.weight 32 32\n" L
                  "mlp.up_proj.weight 48 32\n" L
                  "mlp.down_proj.weight 32 48\n",
      { { B "attn_kv_a_mqa.weight", L "self_attn.kv_a_proj_with_mqa.weight",
          same },
        { B "attn_kv_b.weight", L "self_attn.kv_b_proj.weight", same } },
      { { "attention.key_length", "12" },
        { "attention.value_length", "8" },
        { "attention.kv_lora_rank", "16" },
        { "rope.dimension_count", "4" } } },
    { .class_name = "Jais2ForCausalLM",
      "jais2",
      SIZES_KV("4") ",\"layer_norm_eps\":1e-5,"
                    "\"head_dim\":8",
      TOP HEAD QKV_4 NORMS NORM_B L
      "self_attn.q_proj.bias 32\n" L "self_attn.k_proj.bias 32\n" L
      "self_attn.v_proj.bias 32\n" L "self_attn.o_proj.bias 32\n" L
      "mlp.up_proj.weight 48 32\n" L "mlp.up_proj.bias 48\n" L
      "mlp.down_proj.weight 32 48\n" L "mlp.down_proj.bias 32\n",
      { { B "ffn_up.bias", L "mlp.up_proj.bias", same },
        { B "attn_norm.bias", L "input_layernorm.bias", same } },
      { { "attention.layer_norm_epsilon", "1e-05" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "NanbeigeForCausalLM",
      "nanbeige",
      SIZES ",\"num_loops\":2",
      TOP HEAD QKV NORMS MLP,
      { { B "attn_k.weight", L "self_attn.k_proj.weight", paired } },
      { { "num_loops", "2" },
        { "skip_loop_final_norm", "false" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "LlamaBidirectionalModel",
      "llama-embed",
      SIZES ",\"pooling\":\"avg\"",
      BARE,
      { { B "attn_q.weight", "layers.%.self_attn.q_proj.weight", paired } },
      { { "attention.causal", "false" }, { "pooling_type", "1" } } },
    { .class_name = "MellumForCausalLM",
      "mellum",
      SIZES MOE_SIZES ",\"head_dim\":8,\"sliding_window\":16,\"layer_types\":"
                      "[\"sliding_attention\",\"full_attention\"]",
      TOP HEAD QKV QK_NORM NORMS MOE,
      { MOE_NAMES },
      { { "attention.sliding_window", "16" },
        { "attention.sliding_window_pattern", "true,false" },
        { "expert_feed_forward_length", "24" } } },
    { .class_name = "ApertusForCausalLM",
      "apertus",
      SIZES ",\"hidden_act\":\"xielu\"",
      TOP HEAD QKV QK_NORM L
      "attention_layernorm.weight 32\n" L "feedforward_layernorm.weight 32\n" L
      "mlp.up_proj.weight 48 32\n" L "mlp.down_proj.weight 32 48\n" L
      "mlp.act_fn.alpha_n 1\n" L "mlp.act_fn.alpha_p 1\n" L
      "mlp.act_fn.beta 1\n" L "mlp.act_fn.eps 1\n",
      { { B "attn_norm.weight", L "attention_layernorm.weight", same },
        { B "ffn_norm.weight", L "feedforward_layernorm.weight", same },
        { B "attn_q.weight", L "self_attn.q_proj.weight", same } },
      { { "rope.dimension_count", "8" },
        { "/xielu.alpha_n", "@" L "mlp.act_fn.alpha_n" },
        { "/xielu.alpha_p", "@" L "mlp.act_fn.alpha_p" },
        { "/xielu.beta", "@" L "mlp.act_fn.beta" },
        { "/xielu.eps", "@" L "mlp.act_fn.eps" } } },
/* A layer of two heads of keys; one with a matrix instead of attention; one
 * without. Widths of 2/3 times 32, and 13 times that, of multiples of 256. */
#define DECI "model.layers."
    { .class_name = "DeciLMForCausalLM",
      "deci",
      SIZES_HEADS(
          "") ",\"num_hidden_layers\":3,\"block_configs\":["
              "{\"attention\":{\"n_heads_in_group\":2,\"no_op\":false,"
              "\"replace_with_linear\":false},\"ffn\":{\"ffn_mult\":1.0}},"
              "{\"attention\":{\"n_heads_in_group\":null,"
              "\"replace_with_linear\":true},\"ffn\":{\"ffn_mult\":13.0}},"
              "{\"attention\":{\"n_heads_in_group\":null,"
              "\"replace_with_linear\":false},\"ffn\":{\"ffn_mult\":1.0}}]",
      TOP HEAD DECI
      "0.self_attn.q_proj.weight 32 32\n" DECI
      "0.self_attn.k_proj.weight 16 32\n" DECI
      "0.self_attn.v_proj.weight 16 32\n" DECI
      "0.self_attn.o_proj.weight 32 32\n" DECI
      "1.self_attn.linear_attn.weight 32 32\n" DECI
      "0.input_layernorm.weight 32\n" DECI "1.input_layernorm.weight 32\n" L
      "post_attention_layernorm.weight 32\n" DECI
      "0.mlp.gate_proj.weight 256 32\n" DECI
      "0.mlp.up_proj.weight 256 32\n" DECI
      "0.mlp.down_proj.weight 32 256\n" DECI
      "1.mlp.gate_proj.weight 512 32\n" DECI
      "1.mlp.up_proj.weight 512 32\n" DECI
      "1.mlp.down_proj.weight 32 512\n" DECI
      "2.mlp.gate_proj.weight 256 32\n" DECI
      "2.mlp.up_proj.weight 256 32\n" DECI "2.mlp.down_proj.weight 32 256\n",
      { { "blk.0.attn_q.weight", DECI "0.self_attn.q_proj.weight", paired },
        { "blk.0.attn_k.weight", DECI "0.self_attn.k_proj.weight", paired },
        { "blk.1.attn_output.weight", DECI "1.self_attn.linear_attn.weight",
          same },
        { B "ffn_up.weight", L "mlp.up_proj.weight", same } },
      { { "attention.head_count", "4,4,0" },
        { "attention.head_count_kv", "2,0,0" },
        { "feed_forward_length", "256,512,256" },
        { "attention.key_length", "8" },
        { "rope.dimension_count", "8" } },
      .layers = 3 },
    /* its first form: heads of keys by layers */
    { .class_name = "DeciLMForCausalLM",
      "deci",
      SIZES_HEADS("") ",\"num_hidden_layers\":2,\"intermediate_size\":48,"
                      "\"num_key_value_heads_per_layer\":[2,1]",
      TOP HEAD NORMS MLP L "self_attn.q_proj.weight 32 32\n" L
                           "self_attn.o_proj.weight 32 32\n" DECI
                           "0.self_attn.k_proj.weight 16 32\n" DECI
                           "0.self_attn.v_proj.weight 16 32\n" DECI
                           "1.self_attn.k_proj.weight 8 32\n" DECI
                           "1.self_attn.v_proj.weight 8 32\n",
      { { B "attn_k.weight", L "self_attn.k_proj.weight", paired } },
      { { "attention.head_count", "4" },
        { "attention.head_count_kv", "2,1" },
        { "feed_forward_length", "48" } } },
    { .class_name = "BitnetForCausalLM",
      "bitnet",
      SIZES ",\"hidden_act\":\"silu\",\"weight_bits\":1",
      TOP QKV NORMS MLP L "self_attn.inner_attn_ln.weight 32\n" L
                          "mlp.ffn_layernorm.weight 48\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", ternary },
        { B "attn_output.weight", L "self_attn.o_proj.weight", ternary },
        { B "ffn_down.weight", L "mlp.down_proj.weight", ternary },
        { B "attn_sub_norm.weight", L "self_attn.inner_attn_ln.weight", same },
        { B "ffn_sub_norm.weight", L "mlp.ffn_layernorm.weight", same },
        { "token_embd.weight", "model.embed_tokens.weight", same } },
      { { "rope.scaling.type", "linear" }, { "rope.scaling.factor", "1" } } },
#define TB "model.blocks.%."
    { .class_name = "TalkieForCausalLM",
      "talkie",
      SIZES_KV("4") ",\"head_dim\":8",
      "model.embed.weight 260 32\nlm_head 260 32\nlm_head_gain.w_g 1\n" TB
      "attn.attn_query.weight 32 32\n" TB "attn.attn_key.weight 32 32\n" TB
      "attn.attn_value.weight 32 32\n" TB "attn.attn_resid.weight 32 32\n" TB
      "attn.head_gain.head_g 4\n" TB "attn_gain.a_g 1\n" TB
      "mlp.mlp_gate.weight 48 32\n" TB "mlp.mlp_linear.weight 48 32\n" TB
      "mlp.mlp_resid.weight 32 48\n" TB "mlp_gain.a_g 1\n" TB
      "embed_skip.a_g 1\n",
      { { B "attn_q.weight", TB "attn.attn_query.weight", negated },
        { B "attn_k.weight", TB "attn.attn_key.weight", negated },
        { B "attn_q_norm.weight", TB "attn.head_gain.head_g", same },
        { B "attn_output.scale", TB "attn_gain.a_g", same },
        { B "layer_output_scale.weight", TB "embed_skip.a_g", same },
        { "output.weight", "lm_head", same } },
      { { "logit_scale", "@lm_head_gain.w_g" },
        { "attention.layer_norm_rms_epsilon", "1.192093e-07" } } },
    { .class_name = NULL },
};
