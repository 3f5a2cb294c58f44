/* SPDX-License-Identifier: MIT */
/* archs_dense.c - more of those without experts */
#include "config.h"
#include "tests/convert/archs.h"

/* Rows of queries, keys and values of InternLM2: of each key's head, its two
 * queries (heads of 8 rows), the key, the value. Queries and keys in pairs. */
static float internlm_row(const struct folder_tensor *t, uint64_t i,
                          uint64_t group, uint64_t no, uint64_t in, bool pairs)
{
    const uint64_t cols = t->shape[1], col = i % cols;
    const uint64_t row = pairs ? in % 2 * 4 + in / 2 : in;
    return folder_value(t->name, ((group * 4 + no) * 8 + row) * cols + col);
}

static float internlm_q(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / t->shape[1], head = row / 8;
    return internlm_row(t, i, head / 2, head % 2, row % 8, true);
}

static float internlm_k(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / t->shape[1];
    return internlm_row(t, i, row / 8, 2, row % 8, true);
}

static float internlm_v(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / t->shape[1];
    return internlm_row(t, i, row / 8, 3, row % 8, false);
}

/* GPT-NeoX, BLOOM: heads of 8 rows of a query, a key and a value; here all
 * queries come first. */
static float by_head(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->n_dims > 1 ? t->shape[1] : 1, col = i % cols;
    const uint64_t row = i / cols, what = row / 32, head = row % 32 / 8;
    return folder_value(t->name,
                        ((head * 3 + what) * 8 + row % 8) * cols + col);
}

/* Falcon: two groups of two queries, a key, a value. */
static float by_group(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->shape[1], col = i % cols, row = i / cols;
    const uint64_t head = row / 8; /* 4 queries, 2 keys, 2 values */
    const uint64_t group = head < 4 ? head / 2 : head % 2;
    const uint64_t no = head < 4 ? head % 2 : head < 6 ? 2 : 3;
    return folder_value(t->name,
                        ((group * 4 + no) * 8 + row % 8) * cols + col);
}

/* Rows from 32, from 48; the last 48 of 96. */
static float from_32(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, 32 * t->shape[1] + i);
}

static float from_48(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, 48 * t->shape[1] + i);
}

/* Baichuan: all queries, keys and values; keys in pairs. */
static float pack_k(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->shape[1], row = i / cols, in = row % 8;
    return folder_value(
        t->name, (32 + row / 8 * 8 + in % 2 * 4 + in / 2) * cols + i % cols);
}

#define LAYER_NORMS                                                           \
    L "input_layernorm.weight 32\n" L "input_layernorm.bias 32\n" L           \
      "post_attention_layernorm.weight 32\n" L                                \
      "post_attention_layernorm.bias 32\n"
#define H "transformer.h.%."

const struct arch archs_dense[] = {
    { .class_name = "Ministral3ForCausalLM",
      "mistral3",
      SIZES
      ",\"model_type\":\"ministral3\",\"head_dim\":8,\"rope_parameters\":"
      "{\"rope_type\":\"yarn\",\"factor\":16.0,\"rope_theta\":1e6,"
      "\"original_max_position_embeddings\":16384,\"beta_fast\":32.0,"
      "\"beta_slow\":1.0,\"mscale_all_dim\":1.0,\"mscale\":1.0,"
      "\"llama_4_scaling_beta\":0.1}",
      TOP HEAD QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } },
      { { "rope.scaling.type", "yarn" },
        { "rope.scaling.factor", "16" },
        { "rope.scaling.original_context_length", "16384" },
        { "rope.scaling.yarn_beta_fast", "32" },
        { "rope.scaling.yarn_log_multiplier", "1" },
        { "attention.temperature_scale", "0.1" },
        { "rope.freq_base", "1000000" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "Qwen3Model",
      "qwen3",
      SIZES ",\"head_dim\":8",
      "embed_tokens.weight 260 32\nnorm.weight 32\n"
      "layers.%.self_attn.q_proj.weight 32 32\n"
      "layers.%.self_attn.k_proj.weight 16 32\n"
      "layers.%.self_attn.v_proj.weight 16 32\n"
      "layers.%.self_attn.o_proj.weight 32 32\n"
      "layers.%.self_attn.q_norm.weight 8\n"
      "layers.%.self_attn.k_norm.weight 8\n"
      "layers.%.input_layernorm.weight 32\n"
      "layers.%.post_attention_layernorm.weight 32\n"
      "layers.%.mlp.gate_proj.weight 48 32\n"
      "layers.%.mlp.up_proj.weight 48 32\n"
      "layers.%.mlp.down_proj.weight 32 48\n",
      { { B "ffn_norm.weight", "layers.%.post_attention_layernorm.weight",
          same } } },
    { .class_name = "Qwen2Model",
      "qwen2",
      SIZES,
      "embed_tokens.weight 260 32\nnorm.weight 32\n"
      "layers.%.self_attn.q_proj.weight 32 32\n"
      "layers.%.self_attn.q_proj.bias 32\n"
      "layers.%.self_attn.k_proj.weight 16 32\n"
      "layers.%.self_attn.k_proj.bias 16\n"
      "layers.%.self_attn.v_proj.weight 16 32\n"
      "layers.%.self_attn.v_proj.bias 16\n"
      "layers.%.self_attn.o_proj.weight 32 32\n"
      "layers.%.input_layernorm.weight 32\n"
      "layers.%.post_attention_layernorm.weight 32\n"
      "layers.%.mlp.gate_proj.weight 48 32\n"
      "layers.%.mlp.up_proj.weight 48 32\n"
      "layers.%.mlp.down_proj.weight 32 48\n",
      { { B "attn_k.bias", "layers.%.self_attn.k_proj.bias", same } } },
    { .class_name = "LlamaModel",
      "llama",
      SIZES,
      BARE,
      { { B "attn_k.weight", "layers.%.self_attn.k_proj.weight", paired } } },
    { .class_name = "KORMoForCausalLM",
      "qwen2",
      SIZES,
      TOP HEAD QKV L "pre_attention_layernorm.weight 32\n" L
                     "pre_mlp_layernorm.weight 32\n" MLP,
      { { B "attn_norm.weight", L "pre_attention_layernorm.weight", same },
        { B "ffn_norm.weight", L "pre_mlp_layernorm.weight", same } } },
#define HEARS "language_model."
    { .class_name = "Qwen2AudioForConditionalGeneration",
      "qwen2",
      "\"text_config\":{" SIZES "}",
      HEARS "model.embed_tokens.weight 260 32\n" HEARS
            "model.norm.weight 32\n" HEARS "lm_head.weight 260 32\n" HEARS L
            "self_attn.q_proj.weight 32 32\n" HEARS L
            "self_attn.k_proj.weight 16 32\n" HEARS L
            "self_attn.v_proj.weight 16 32\n" HEARS L
            "self_attn.o_proj.weight 32 32\n" HEARS L
            "input_layernorm.weight 32\n" HEARS L
            "post_attention_layernorm.weight 32\n" HEARS L
            "mlp.gate_proj.weight 48 32\n" HEARS L
            "mlp.up_proj.weight 48 32\n" HEARS L "mlp.down_proj.weight 32 48\n"
            "audio_tower.conv1.weight 32 8 3\n"
            "multi_modal_projector.linear.weight 32 32\n",
      { { B "attn_q.weight", HEARS L "self_attn.q_proj.weight", same },
        { "output.weight", HEARS "lm_head.weight", same } } },
    { .class_name = "OlmoForCausalLM",
      "olmo",
      SIZES ",\"clip_qkv\":8.0",
      "model.embed_tokens.weight 260 32\n" HEAD QKV MLP,
      { { B "attn_k.weight", L "self_attn.k_proj.weight", paired } },
      { { "attention.clamp_kqv", "8" },
        { "attention.layer_norm_epsilon", "1e-05" } } },
    { .class_name = "Olmo3ForCausalLM",
      "olmo2",
      SIZES ",\"sliding_window\":16,\"layer_types\":[\"sliding_attention\","
            "\"full_attention\"]",
      TOP HEAD QKV POST MLP L "self_attn.q_norm.weight 32\n" L
                              "self_attn.k_norm.weight 16\n",
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same } },
      { { "attention.sliding_window", "16" },
        { "attention.sliding_window_pattern", "true,false" } } },
    { .class_name = "Glm4ForCausalLM",
      "glm4",
      SIZES ",\"head_dim\":8,\"partial_rotary_factor\":0.5",
      TOP HEAD QKV QKV_B NORMS L "post_self_attn_layernorm.weight 32\n" L
                                 "post_mlp_layernorm.weight 32\n" L
                                 "mlp.gate_up_proj.weight 96 32\n" L
                                 "mlp.down_proj.weight 32 48\n",
      { { B "post_attention_norm.weight", L "post_self_attn_layernorm.weight",
          same },
        { B "ffn_up.weight", L "mlp.gate_up_proj.weight", same },
        { B "ffn_norm.weight", L "post_attention_layernorm.weight", same } },
      { { "rope.dimension_count", "4" } } },
    { .class_name = "ExaoneForCausalLM",
      "exaone",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"layer_norm_epsilon\":1e-5,"
      "\"rope_theta\":10000.0,\"head_dim\":8,\"activation_function\":\"silu\"",
      "transformer.wte.weight 260 32\ntransformer.ln_f.weight 32\n" HEAD H
      "ln_1.weight 32\n" H "ln_2.weight 32\n" H
      "attn.attention.q_proj.weight 32 32\n" H
      "attn.attention.k_proj.weight 16 32\n" H
      "attn.attention.v_proj.weight 16 32\n" H
      "attn.attention.out_proj.weight 32 32\n" H "mlp.c_fc_0.weight 48 32\n" H
      "mlp.c_fc_1.weight 48 32\n" H "mlp.c_proj.weight 32 48\n",
      { { B "ffn_gate.weight", H "mlp.c_fc_0.weight", same } },
      { { "attention.layer_norm_rms_epsilon", "1e-05" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "NemotronForCausalLM",
      "nemotron",
      SIZES ",\"norm_eps\":1e-5,\"partial_rotary_factor\":0.5",
      TOP HEAD "model.norm.bias 32\n" QKV LAYER_NORMS L
               "mlp.up_proj.weight 48 32\n" L "mlp.down_proj.weight 32 48\n",
      { { B "attn_norm.weight", L "input_layernorm.weight", plus_1 },
        { B "attn_norm.bias", L "input_layernorm.bias", same },
        { "output_norm.weight", "model.norm.weight", plus_1 } },
      { { "rope.dimension_count", "4" },
        { "/tokenizer.ggml.padding_token_id", "0" },
        { "/tokenizer.ggml.unknown_token_id", "1" } } },
    { .class_name = "InternLM2ForCausalLM",
      "internlm2",
      SIZES,
      "model.tok_embeddings.weight 260 32\nmodel.norm.weight 32\n"
      "output.weight 260 32\n" L "attention_norm.weight 32\n" L
      "ffn_norm.weight 32\n" L "attention.wqkv.weight 64 32\n" L
      "attention.wo.weight 32 32\n" L "feed_forward.w1.weight 48 32\n" L
      "feed_forward.w2.weight 32 48\n" L "feed_forward.w3.weight 48 32\n",
      { { B "attn_q.weight", L "attention.wqkv.weight", internlm_q },
        { B "attn_k.weight", L "attention.wqkv.weight", internlm_k },
        { B "attn_v.weight", L "attention.wqkv.weight", internlm_v },
        { B "ffn_down.weight", L "feed_forward.w2.weight", same } } },
    { .class_name = "MiniCPMForCausalLM",
      "minicpm",
      SIZES ",\"scale_emb\":12,\"scale_depth\":1.4,\"dim_model_base\":8",
      TOP HEAD QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } },
      { { "embedding_scale", "12" },
        { "residual_scale", "0.9899495" }, /* 1.4 / sqrt 2 */
        { "logit_scale", "4" } } },
    { .class_name = "MiniCPM3ForCausalLM",
      "minicpm3",
      SIZES ",\"q_lora_rank\":24,\"kv_lora_rank\":16,\"qk_nope_head_dim\":8,"
            "\"qk_rope_head_dim\":4",
      TOP HEAD NORMS MLP L "self_attn.q_a_proj.weight 24 32\n" L
                           "self_attn.q_a_layernorm.weight 24\n" L
                           "self_attn.q_b_proj.weight 48 24\n" L
                           "self_attn.kv_a_proj_with_mqa.weight 20 32\n" L
                           "self_attn.kv_a_layernorm.weight 16\n" L
                           "self_attn.kv_b_proj.weight 64 16\n" L
                           "self_attn.o_proj.weight 32 32\n",
      { { B "attn_kv_b.weight", L "self_attn.kv_b_proj.weight", same } },
      { { "attention.key_length", "12" }, { "rope.dimension_count", "4" } } },
    { .class_name = "HunYuanDenseV1ForCausalLM",
      "hunyuan-dense",
      SIZES ",\"head_dim\":8,\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":"
            "1000.0,\"factor\":1.0}",
      TOP QKV NORMS MLP L "self_attn.query_layernorm.weight 8\n" L
                          "self_attn.key_layernorm.weight 8\n",
      { { B "attn_q_norm.weight", L "self_attn.query_layernorm.weight",
          same } },
      { { "context_length", "262144" },
        { "rope.freq_base", "1e+08" }, /* 10000 * 1000 ^ (8 / 6) */
        { "rope.scaling.original_context_length", "262144" } } },
    { .class_name = "Ernie4_5ForCausalLM",
      "ernie4_5",
      SIZES ",\"head_dim\":8",
      TOP NORMS L
      "self_attn.qkv_proj.weight 64 32\n" L "self_attn.o_proj.weight 32 32\n" L
      "mlp.up_gate_proj.weight 96 32\n" L "mlp.down_proj.weight 32 48\n",
      { { B "attn_q.weight", L "self_attn.qkv_proj.weight", same },
        { B "attn_k.weight", L "self_attn.qkv_proj.weight", from_32 },
        { B "attn_v.weight", L "self_attn.qkv_proj.weight", from_48 },
        { B "ffn_gate.weight", L "mlp.up_gate_proj.weight", same },
        { B "ffn_up.weight", L "mlp.up_gate_proj.weight", from_48 } } },
    { .class_name = "GPTBigCodeForCausalLM",
      "starcoder",
      "\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"n_positions\":64,\"n_inner\":"
      "48,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260,\"multi_query\":true",
      "transformer.wte.weight 260 32\ntransformer.wpe.weight 64 32\n"
      "transformer.ln_f.weight 32\ntransformer.ln_f.bias 32\n" H
      "ln_1.weight 32\n" H "ln_1.bias 32\n" H "ln_2.weight 32\n" H
      "ln_2.bias 32\n" H "attn.c_attn.weight 48 32\n" H
      "attn.c_attn.bias 48\n" H "attn.c_proj.weight 32 32\n" H
      "attn.c_proj.bias 32\n" H "mlp.c_fc.weight 48 32\n" H
      "mlp.c_fc.bias 48\n" H "mlp.c_proj.weight 32 48\n" H
      "mlp.c_proj.bias 32\n",
      { { B "attn_qkv.weight", H "attn.c_attn.weight", same } },
      { { "attention.head_count_kv", "1" } } },
#define NEOX "gpt_neox.layers.%."
    { .class_name = "GPTNeoXForCausalLM",
      "gptneox",
      SIZES ",\"layer_norm_eps\":1e-5,\"rotary_pct\":0.25,\"rotary_emb_base\":"
            "10000,\"use_parallel_residual\":true",
      "gpt_neox.embed_in.weight 260 32\nembed_out.weight 260 32\n"
      "gpt_neox.final_layer_norm.weight 32\n"
      "gpt_neox.final_layer_norm.bias 32\n" NEOX
      "input_layernorm.weight 32\n" NEOX "input_layernorm.bias 32\n" NEOX
      "post_attention_layernorm.weight 32\n" NEOX
      "post_attention_layernorm.bias 32\n" NEOX
      "attention.query_key_value.weight 96 32\n" NEOX
      "attention.query_key_value.bias 96\n" NEOX
      "attention.dense.weight 32 32\n" NEOX "attention.dense.bias 32\n" NEOX
      "attention.bias 1 1 64 64\n" NEOX "attention.masked_bias 1\n" NEOX
      "mlp.dense_h_to_4h.weight 48 32\n" NEOX
      "mlp.dense_h_to_4h.bias 48\n" NEOX
      "mlp.dense_4h_to_h.weight 32 48\n" NEOX "mlp.dense_4h_to_h.bias 32\n",
      { { B "attn_qkv.weight", NEOX "attention.query_key_value.weight",
          by_head },
        { B "attn_qkv.bias", NEOX "attention.query_key_value.bias",
          by_head } },
      { { "rope.dimension_count", "2" },
        { "use_parallel_residual", "true" } } },
    { .class_name = "BloomForCausalLM",
      "bloom",
      "\"hidden_size\":32,\"n_layer\":2,\"n_head\":4,\"seq_length\":64,"
      "\"layer_norm_epsilon\":1e-5,\"vocab_size\":260",
      "transformer.word_embeddings.weight 260 32\n"
      "transformer.word_embeddings_layernorm.weight 32\n"
      "transformer.word_embeddings_layernorm.bias 32\n"
      "transformer.ln_f.weight 32\ntransformer.ln_f.bias 32\n" H
      "input_layernorm.weight 32\n" H "input_layernorm.bias 32\n" H
      "post_attention_layernorm.weight 32\n" H
      "post_attention_layernorm.bias 32\n" H
      "self_attention.query_key_value.weight 96 32\n" H
      "self_attention.query_key_value.bias 96\n" H
      "self_attention.dense.weight 32 32\n" H
      "self_attention.dense.bias 32\n" H "mlp.dense_h_to_4h.weight 128 32\n" H
      "mlp.dense_h_to_4h.bias 128\n" H "mlp.dense_4h_to_h.weight 32 128\n" H
      "mlp.dense_4h_to_h.bias 32\n",
      { { B "attn_qkv.weight", H "self_attention.query_key_value.weight",
          by_head },
        { B "attn_qkv.bias", H "self_attention.query_key_value.bias",
          by_head } },
      { { "feed_forward_length", "128" }, { "context_length", "64" } } },
    { .class_name = "FalconForCausalLM",
      "falcon",
      "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
      "\"num_kv_heads\":2,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260,"
      "\"new_decoder_architecture\":true",
      "transformer.word_embeddings.weight 260 32\n"
      "transformer.ln_f.weight 32\ntransformer.ln_f.bias 32\n" HEAD H
      "ln_attn.weight 32\n" H "ln_attn.bias 32\n" H "ln_mlp.weight 32\n" H
      "ln_mlp.bias 32\n" H "self_attention.query_key_value.weight 64 32\n" H
      "self_attention.dense.weight 32 32\n" H
      "mlp.dense_h_to_4h.weight 128 32\n" H
      "mlp.dense_4h_to_h.weight 32 128\n",
      { { B "attn_qkv.weight", H "self_attention.query_key_value.weight",
          by_group },
        { B "attn_norm_2.weight", H "ln_attn.weight", same },
        { B "attn_norm.weight", H "ln_mlp.weight", same } },
      { { "attention.head_count_kv", "2" } } },
#define MP "transformer.blocks.%."
    { .class_name = "MPTForCausalLM",
      "mpt",
      "\"d_model\":32,\"n_layers\":2,\"n_heads\":4,\"max_seq_len\":64,"
      "\"vocab_size\":260,\"attn_config\":{\"alibi\":true,\"alibi_bias_max\":8,"
      "\"clip_qkv\":6.0}",
      "transformer.wte.weight 260 32\ntransformer.norm_f.weight 32\n" MP
      "norm_1.weight 32\n" MP "norm_2.weight 32\n" MP
      "attn.Wqkv.weight 96 32\n" MP "attn.out_proj.weight 32 32\n" MP
      "ffn.up_proj.weight 128 32\n" MP "ffn.down_proj.weight 32 128\n",
      { { B "attn_qkv.weight", MP "attn.Wqkv.weight", same } },
      { { "attention.max_alibi_bias", "8" },
        { "attention.clamp_kqv", "6" } } },
    { .class_name = "BaichuanForCausalLM",
      "baichuan",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,\"rms_norm_eps\":1e-6,"
      "\"model_max_length\":64",
      TOP HEAD NORMS MLP L "self_attn.W_pack.weight 96 32\n" L
                           "self_attn.o_proj.weight 32 32\n",
      { { B "attn_k.weight", L "self_attn.W_pack.weight", pack_k } } },
#define GLM "transformer.encoder.layers.%."
    { .class_name = "ChatGLMModel",
      "chatglm",
      "\"hidden_size\":32,\"ffn_hidden_size\":48,\"num_layers\":2,"
      "\"num_attention_heads\":4,\"multi_query_group_num\":2,\"seq_length\":64,"
      "\"padded_vocab_size\":260,\"vocab_size\":260,\"layernorm_epsilon\":1e-5,"
      "\"kv_channels\":8,\"rope_ratio\":50",
      "transformer.embedding.word_embeddings.weight 260 32\n"
      "transformer.encoder.final_layernorm.weight 32\n"
      "transformer.output_layer.weight 260 32\n"
      "transformer.rotary_pos_emb.inv_freq 2\n" GLM
      "input_layernorm.weight 32\n" GLM
      "post_attention_layernorm.weight 32\n" GLM
      "self_attention.query_key_value.weight 64 32\n" GLM
      "self_attention.query_key_value.bias 64\n" GLM
      "self_attention.dense.weight 32 32\n" GLM
      "mlp.dense_h_to_4h.weight 96 32\n" GLM
      "mlp.dense_4h_to_h.weight 32 48\n",
      { { B "ffn_up.weight", GLM "mlp.dense_h_to_4h.weight", same } },
      { { "rope.freq_base", "500000" }, { "rope.dimension_count", "4" } } },
    { .class_name = "GlmForCausalLM",
      "chatglm",
      SIZES ",\"partial_rotary_factor\":0.5",
      TOP HEAD QKV NORMS L "mlp.gate_up_proj.weight 96 32\n" L
                           "mlp.down_proj.weight 32 48\n",
      { { B "ffn_up.weight", L "mlp.gate_up_proj.weight", same },
        { B "attn_k.weight", L "self_attn.k_proj.weight", same } },
      { { "rope.dimension_count", "4" } } },
    { .class_name = NULL },
};
