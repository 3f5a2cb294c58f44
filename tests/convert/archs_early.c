/* SPDX-License-Identifier: MIT */
/* archs_early.c - more of those that are not built after Llama */
#include "config.h"
#include "tests/convert/archs.h"

#define H "transformer.h.%."
#define H_TOP                                                                 \
    "transformer.wte.weight 260 32\ntransformer.ln_f.weight 32\n" HEAD
#define H_NORMS H "ln_1.weight 32\n" H "ln_2.weight 32\n"
#define H_BIAS                                                                \
    "transformer.ln_f.bias 32\n" H "ln_1.bias 32\n" H "ln_2.bias 32\n" H      \
    "attn.c_proj.bias 32\n" H "mlp.c_proj.bias 32\n"

/* Rows from the middle on: of 16, of 512, of 64. */
static float second(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, t->shape[0] / 2 * t->shape[1] + i);
}

/* Jais: what goes in is multiplied by 14, what comes out by 3 times 0.25. */
static float times_14(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) * 14;
}

static float times_075(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) * 0.75f;
}

const struct arch archs_early[] = {
    { .class_name = "QWenLMHeadModel",
      "qwen",
      "\"hidden_size\":32,\"intermediate_size\":96,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"kv_channels\":8,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"layer_norm_epsilon\":1e-6,"
      "\"rotary_emb_base\":20000,\"rotary_pct\":1.0",
      H_TOP H_NORMS H "attn.c_attn.weight 96 32\n" H "attn.c_attn.bias 96\n" H
                      "attn.c_proj.weight 32 32\n" H "mlp.w1.weight 48 32\n" H
                      "mlp.w2.weight 48 32\n" H "mlp.c_proj.weight 32 48\n",
      { { B "attn_qkv.weight", H "attn.c_attn.weight", same },
        { B "attn_qkv.bias", H "attn.c_attn.bias", same },
        { B "ffn_up.weight", H "mlp.w1.weight", same },
        { B "ffn_gate.weight", H "mlp.w2.weight", same },
        { "output.weight", "lm_head.weight", same } },
      { { "attention.layer_norm_rms_epsilon", "1e-06" },
        { "feed_forward_length", "96" },
        { "rope.freq_base", "20000" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "RuGPT3XLForCausalLM",
      "gpt2",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"layer_norm_eps\":1e-5",
      TOP "model.embed_positions.weight 64 32\nmodel.norm.bias 32\n" NORMS L
          "input_layernorm.bias 32\n" L "post_attention_layernorm.bias 32\n" L
          "self_attn.q_proj.weight 32 32\n" L "self_attn.q_proj.bias 32\n" L
          "self_attn.k_proj.weight 32 32\n" L "self_attn.k_proj.bias 32\n" L
          "self_attn.v_proj.weight 32 32\n" L "self_attn.v_proj.bias 32\n" L
          "self_attn.o_proj.weight 32 32\n" L "self_attn.o_proj.bias 32\n" L
          "mlp.up_proj.weight 48 32\n" L "mlp.up_proj.bias 48\n" L
          "mlp.down_proj.weight 32 48\n" L "mlp.down_proj.bias 32\n",
      { { "position_embd.weight", "model.embed_positions.weight", same },
        { B "ffn_up.bias", L "mlp.up_proj.bias", same } },
      { { "feed_forward_length", "48" },
        { "attention.layer_norm_epsilon", "1e-05" } } },
    /* 8/3 of the width is 85: a multiple of 256 is 256 */
    { .class_name = "GPTRefactForCausalLM",
      "refact",
      "\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"n_positions\":64,\"n_inner\":"
      "null,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260",
      H_TOP H_NORMS H "attn.q.weight 32 32\n" H "attn.kv.weight 16 32\n" H
                      "attn.c_proj.weight 32 32\n" H
                      "mlp.gate_up_proj.weight 512 32\n" H
                      "mlp.c_proj.weight 32 256\n",
      { { B "attn_k.weight", H "attn.kv.weight", same },
        { B "attn_v.weight", H "attn.kv.weight", second },
        { B "ffn_gate.weight", H "mlp.gate_up_proj.weight", same },
        { B "ffn_up.weight", H "mlp.gate_up_proj.weight", second },
        { B "ffn_down.weight", H "mlp.c_proj.weight", same } },
      { { "feed_forward_length", "256" },
        { "attention.head_count_kv", "1" } } },
    { .class_name = "CodeShellForCausalLM",
      "codeshell",
      "\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"num_query_groups\":2,"
      "\"n_positions\":64,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260",
      H_TOP H_NORMS H_BIAS H
      "attn.c_attn.weight 64 32\n" H "attn.c_attn.bias 64\n" H
      "attn.rotary_emb.inv_freq 4\n" H "attn.c_proj.weight 32 32\n" H
      "mlp.c_fc.weight 128 32\n" H "mlp.c_fc.bias 128\n" H
      "mlp.c_proj.weight 32 128\n",
      { { B "attn_qkv.weight", H "attn.c_attn.weight", same },
        { B "ffn_up.bias", H "mlp.c_fc.bias", same },
        { B "attn_norm.bias", H "ln_1.bias", same } },
      { { "attention.head_count_kv", "2" },
        { "feed_forward_length", "128" },
        { "rope.freq_base", "10000" },
        { "rope.scaling.type", "linear" } } },
    { .class_name = "JAISLMHeadModel",
      "jais",
      "\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"n_positions\":64,\"n_inner\":"
      "48,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260,"
      "\"activation_function\":\"swiglu\",\"position_embedding_type\":"
      "\"alibi\",\"mup_embeddings_scale\":14.0,\"mup_output_alpha\":3.0,"
      "\"mup_width_scale\":0.25",
      H_TOP H_NORMS H_BIAS
      "transformer.relative_pe.slopes 4 1 1\n" H "attn.c_attn.weight 32 96\n" H
      "attn.c_attn.bias 96\n" H "attn.c_proj.weight 32 32\n" H
      "mlp.c_fc.weight 32 48\n" H "mlp.c_fc.bias 48\n" H
      "mlp.c_fc2.weight 32 48\n" H "mlp.c_fc2.bias 48\n" H
      "mlp.c_proj.weight 48 32\n",
      { { "token_embd.weight", "transformer.wte.weight", times_14 },
        { "output.weight", "lm_head.weight", times_075 },
        { B "attn_qkv.weight", H "attn.c_attn.weight", turned },
        { B "ffn_up.weight", H "mlp.c_fc.weight", turned },
        { B "ffn_gate.weight", H "mlp.c_fc2.weight", turned },
        { B "ffn_gate.bias", H "mlp.c_fc2.bias", same },
        { B "ffn_down.weight", H "mlp.c_proj.weight", turned } },
      { { "attention.max_alibi_bias", "8" },
        { "attention.head_count_kv", "" } } },
/* Layers of 4 and 8 heads of 8, 1 and 2 of keys; of 0.9 and 3 times the width
 * of 32, which are 28.8 and 96: of multiples of 16, 32 and 96. */
#define OE "transformer.layers."
    { .class_name = "OpenELMForCausalLM",
      "openelm",
      "\"model_dim\":32,\"num_transformer_layers\":2,\"head_dim\":8,"
      "\"num_query_heads\":[4,8],\"num_kv_heads\":[1,2],\"vocab_size\":260,"
      "\"ffn_multipliers\":[0.9,3.0],\"ffn_dim_divisor\":16,"
      "\"max_context_length\":64,\"rope_freq_constant\":10000,"
      "\"share_input_output_layers\":true",
      "transformer.token_embeddings.weight 260 32\n"
      "transformer.norm.weight 32\n" OE "%.attn_norm.weight 32\n" OE
      "%.ffn_norm.weight 32\n" OE "%.attn.q_norm.weight 8\n" OE
      "%.attn.k_norm.weight 8\n" OE "0.attn.qkv_proj.weight 48 32\n" OE
      "1.attn.qkv_proj.weight 96 32\n" OE "0.attn.out_proj.weight 32 32\n" OE
      "1.attn.out_proj.weight 32 64\n" OE "0.ffn.proj_1.weight 64 32\n" OE
      "1.ffn.proj_1.weight 192 32\n" OE "0.ffn.proj_2.weight 32 32\n" OE
      "1.ffn.proj_2.weight 32 96\n",
      { { B "attn_qkv.weight", OE "%.attn.qkv_proj.weight", same },
        { B "ffn_gate.weight", OE "%.ffn.proj_1.weight", same },
        { B "ffn_up.weight", OE "%.ffn.proj_1.weight", second } },
      { { "feed_forward_length", "32,96" },
        { "attention.head_count", "4,8" },
        { "attention.head_count_kv", "1,2" },
        { "attention.layer_norm_rms_epsilon", "1e-06" } } },
    { .class_name = NULL },
};
