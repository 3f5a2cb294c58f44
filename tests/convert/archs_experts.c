/* SPDX-License-Identifier: MIT */
/* archs_experts.c - those with experts, and the Gemma models */
#include "config.h"
#include "tests/convert/archs.h"

/* Llama 4: of an expert 32 rows of 24 gates and 24 others; here 24 rows of
 * 32. */
static float columns(const struct folder_tensor *t, uint64_t i, uint64_t first,
                     uint64_t step)
{
    const uint64_t rows = t->shape[1], cols = t->shape[2], n = 24 * rows;
    const uint64_t expert = i / n, row = i % n / rows, col = i % rows;
    return folder_value(t->name,
                        (expert * rows + col) * cols + first + row * step);
}

static float first_columns(const struct folder_tensor *t, uint64_t i)
{
    return columns(t, i, 0, 1);
}

static float last_columns(const struct folder_tensor *t, uint64_t i)
{
    return columns(t, i, 24, 1);
}

/* gpt-oss: gates at even columns. */
static float even_columns(const struct folder_tensor *t, uint64_t i)
{
    return columns(t, i, 0, 2);
}

static float odd_columns(const struct folder_tensor *t, uint64_t i)
{
    return columns(t, i, 1, 2);
}

static float odd_bias(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i / 24 * 48 + i % 24 * 2 + 1);
}

/* Of an expert 24 rows of 32 (down: 24 inputs); here 32 rows of 24. */
static float down_turned(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t expert = i / (24 * 32), row = i % (24 * 32) / 24;
    return folder_value(t->name, (expert * 24 + i % 24) * 32 + row);
}

/* DBRX: experts of 24 rows of 32; the last matrix the other way round. */
static float dbrx_down(const struct folder_tensor *t, uint64_t i)
{
    return down_turned(t, i);
}

#define FUSED_MOE                                                             \
    L "mlp.gate.weight 3 32\n" L "mlp.experts.gate_up_proj 3 48 32\n" L       \
      "mlp.experts.down_proj 3 32 24\n"
#define FF4                                                                   \
    L "feed_forward.router.weight 3 32\n" L                                   \
      "feed_forward.experts.gate_up_proj 3 32 48\n" L                         \
      "feed_forward.experts.down_proj 3 24 32\n" L                            \
      "feed_forward.shared_expert.gate_proj.weight 24 32\n" L                 \
      "feed_forward.shared_expert.up_proj.weight 24 32\n" L                   \
      "feed_forward.shared_expert.down_proj.weight 32 24\n"
#define SHARED                                                                \
    "mlp.shared_experts.gate_proj.weight 24 32\n" L                           \
    "mlp.shared_experts.up_proj.weight 24 32\n" L                             \
    "mlp.shared_experts.down_proj.weight 32 24\n"
#define GEMMA_NORMS                                                           \
    L "input_layernorm.weight 32\n" POST L                                    \
      "pre_feedforward_layernorm.weight 32\n"
#define TIMES_3(X)  X X X
#define TIMES_21(X) TIMES_3(X X X X X X X)
#define QK_NORM_32                                                            \
    L "self_attn.q_norm.weight 32\n" L "self_attn.k_norm.weight 32\n"
#define MIXTRAL                                                               \
    L "block_sparse_moe.gate.weight 3 32\n" L                                 \
      "block_sparse_moe.experts.@.w1.weight 48 32\n" L                        \
      "block_sparse_moe.experts.@.w2.weight 32 48\n" L                        \
      "block_sparse_moe.experts.@.w3.weight 48 32\n"

const struct arch archs_experts[] = {
    { .class_name = "Llama4ForCausalLM",
      "llama4",
      "\"hidden_size\":32,\"intermediate_size\":24,\"intermediate_size_mlp\":"
      "48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
      "\"num_key_value_heads\":2,\"head_dim\":8,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,\"rope_theta\":"
      "500000.0,\"num_local_experts\":3,\"num_experts_per_tok\":1,"
      "\"interleave_moe_layer_step\":1",
      TOP HEAD QKV NORMS FF4,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "ffn_gate_exps.weight", L "feed_forward.experts.gate_up_proj",
          first_columns },
        { B "ffn_up_exps.weight", L "feed_forward.experts.gate_up_proj",
          last_columns },
        { B "ffn_down_exps.weight", L "feed_forward.experts.down_proj",
          down_turned } },
      { { "feed_forward_length", "48" },
        { "expert_feed_forward_length", "24" },
        { "interleave_moe_layer_step", "1" } } },
    { .class_name = "GptOssForCausalLM",
      "gpt-oss",
      "\"hidden_size\":32,\"intermediate_size\":24,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
      "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":"
      "1e-5,\"num_local_experts\":3,\"num_experts_per_tok\":2,"
      "\"sliding_window\":16,\"rope_theta\":150000,\"rope_scaling\":{"
      "\"rope_type\":\"yarn\",\"factor\":32.0,\"beta_fast\":32.0,"
      "\"beta_slow\":1.0,\"truncate\":false,"
      "\"original_max_position_embeddings\":4096}",
      TOP HEAD QKV QKV_B NORMS L
      "self_attn.o_proj.bias 32\n" L "self_attn.sinks 4\n" L
      "mlp.router.weight 3 32\n" L "mlp.router.bias 3\n" L
      "mlp.experts.gate_up_proj 3 32 48\n" L
      "mlp.experts.gate_up_proj_bias 3 48\n" L
      "mlp.experts.down_proj 3 24 32\n" L "mlp.experts.down_proj_bias 3 32\n",
      { { B "attn_sinks.weight", L "self_attn.sinks", same },
        { B "ffn_gate_exps.weight", L "mlp.experts.gate_up_proj",
          even_columns },
        { B "ffn_up_exps.weight", L "mlp.experts.gate_up_proj", odd_columns },
        { B "ffn_up_exps.bias", L "mlp.experts.gate_up_proj_bias", odd_bias },
        { B "ffn_down_exps.weight", L "mlp.experts.down_proj", down_turned },
        { B "ffn_down_exps.bias", L "mlp.experts.down_proj_bias", same },
        { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same } },
      { { "attention.sliding_window", "16" },
        { "expert_feed_forward_length", "24" },
        { "rope.scaling.type", "yarn" },
        { "rope.scaling.factor", "32" } } },
    { .class_name = "Qwen3MoeForCausalLM",
      "qwen3moe",
      SIZES MOE_SIZES ",\"head_dim\":8",
      TOP HEAD QKV QK_NORM NORMS FUSED_MOE,
      { { B "ffn_gate_exps.weight", L "mlp.experts.gate_up_proj", half_1 },
        { B "ffn_up_exps.weight", L "mlp.experts.gate_up_proj", half_2 },
        { B "ffn_down_exps.weight", L "mlp.experts.down_proj", same } } },
    { .class_name = "PhiMoEForCausalLM",
      "phimoe",
      SIZES ",\"num_local_experts\":3,\"num_experts_per_tok\":2,"
            "\"sliding_window\":32,\"rope_scaling\":{\"type\":\"longrope\","
            "\"long_factor\":[1.0,2.0,3.0,4.5],\"short_factor\":[1.0,1.0,1.5,"
            "2.0]},\"original_max_position_embeddings\":16",
      TOP HEAD "lm_head.bias 260\nmodel.norm.bias 32\n" QKV QKV_B NORMS L
               "self_attn.o_proj.bias 32\n" L "input_layernorm.bias 32\n" L
               "post_attention_layernorm.bias 32\n" MIXTRAL,
      { { B "ffn_up_exps.weight", L "block_sparse_moe.experts.@.w3.weight",
          same } },
      /* sqrt (1 + ln 4 / ln 16) */
      { { "rope.scaling.attn_factor", "1.224745" },
        { "rope.scaling.original_context_length", "16" } } },
    { .class_name = "DeepseekForCausalLM",
      "deepseek",
      SIZES ",\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
            "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"
            "\"first_k_dense_replace\":1",
      TOP HEAD QKV NORMS LEAD LATE_MOE,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } },
      { { "leading_dense_block_count", "1" },
        { "expert_weights_scale", "1" } } },
    { .class_name = "Glm4MoeForCausalLM",
      "glm4moe",
      SIZES ",\"head_dim\":8,\"partial_rotary_factor\":0.5,"
            "\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
            "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"
            "\"first_k_dense_replace\":1,\"routed_scaling_factor\":2.5,"
            "\"norm_topk_prob\":true,\"n_group\":1,\"topk_group\":1",
      TOP HEAD QKV QKV_B NORMS LEAD LATE_MOE LATE_BIAS,
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same } },
      { { "expert_gating_func", "2" },
        { "rope.dimension_count", "4" },
        { "leading_dense_block_count", "1" },
        { "expert_group_count", "1" } } },
    { .class_name = "SolarOpenForCausalLM",
      "glm4moe",
      SIZES ",\"head_dim\":8,\"partial_rotary_factor\":1.0,"
            "\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
            "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"
            "\"first_k_dense_replace\":1,\"routed_scaling_factor\":1.0,"
            "\"norm_topk_prob\":true,\"n_group\":1,\"topk_group\":1",
      TOP HEAD QKV NORMS LEAD LATE_MOE LATE_BIAS,
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same } },
      { { "rope.dimension_count", "8" }, { "expert_gating_func", "2" } } },
    { .class_name = "Ernie4_5_MoeForCausalLM",
      "ernie4_5-moe",
      SIZES ",\"head_dim\":8,\"moe_num_experts\":3,\"moe_k\":2,"
            "\"moe_layer_interval\":1,\"moe_layer_start_index\":1,"
            "\"moe_intermediate_size\":24,\"moe_num_shared_experts\":1",
      TOP QKV NORMS LEAD LATE_MOE L1
      "mlp.moe_statics.e_score_correction_bias 1 3\n",
      { { "blk.1.exp_probs_b.bias",
          L1 "mlp.moe_statics.e_score_correction_bias", same } },
      { { "expert_count", "3" },
        { "expert_used_count", "2" },
        { "interleave_moe_layer_step", "1" } } },
    { .class_name = "HunYuanMoEV1ForCausalLM",
      "hunyuan-moe",
      SIZES ",\"num_experts\":3,\"moe_topk\":[2,2],\"moe_intermediate_size\":"
            "[48,48],\"num_shared_expert\":[1,1]",
      TOP HEAD QKV NORMS L "self_attn.query_layernorm.weight 8\n" L
                           "self_attn.key_layernorm.weight 8\n" L
                           "mlp.gate.wg.weight 3 32\n" L
                           "mlp.experts.@.gate_proj.weight 48 32\n" L
                           "mlp.experts.@.up_proj.weight 48 32\n" L
                           "mlp.experts.@.down_proj.weight 32 48\n" L
                           "mlp.shared_mlp.gate_proj.weight 48 32\n" L
                           "mlp.shared_mlp.up_proj.weight 48 32\n" L
                           "mlp.shared_mlp.down_proj.weight 32 48\n",
      { { B "ffn_gate_inp.weight", L "mlp.gate.wg.weight", same }, MOE_NAMES },
      { { "expert_used_count", "2" },
        { "expert_feed_forward_length", "48" } } },
    { .class_name = "MiniMaxM2ForCausalLM",
      "minimax-m2",
      SIZES ",\"head_dim\":8,\"num_local_experts\":3,\"num_experts_per_tok\":"
            "2,\"rotary_dim\":4,\"scoring_func\":\"sigmoid\"",
      TOP HEAD QKV NORMS L "self_attn.q_norm.weight 32\n" L
                           "self_attn.k_norm.weight 16\n" MIXTRAL L
                           "block_sparse_moe.e_score_correction_bias 3\n",
      { { B "exp_probs_b.bias", L "block_sparse_moe.e_score_correction_bias",
          same } },
      { { "expert_gating_func", "2" }, { "rope.dimension_count", "4" } } },
    { .class_name = "Dots1ForCausalLM",
      "dots1",
      SIZES ",\"head_dim\":8,\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
            "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"
            "\"first_k_dense_replace\":1,\"routed_scaling_factor\":2.5,"
            "\"norm_topk_prob\":true,\"scoring_func\":\"sigmoid\"",
      TOP HEAD QKV QK_NORM NORMS LEAD LATE_MOE LATE_BIAS,
      { { "blk.1.ffn_up_shexp.weight", L1 "mlp.shared_experts.up_proj.weight",
          same } } },
#define D "transformer.blocks.%."
    { .class_name = "DbrxForCausalLM",
      "dbrx",
      "\"d_model\":32,\"n_layers\":2,\"n_heads\":4,\"max_seq_len\":64,"
      "\"vocab_size\":260,\"attn_config\":{\"kv_n_heads\":2,\"clip_qkv\":8,"
      "\"rope_theta\":500000},\"ffn_config\":{\"ffn_hidden_size\":24,"
      "\"moe_num_experts\":3,\"moe_top_k\":2}",
      "transformer.wte.weight 260 32\ntransformer.norm_f.weight 32\n" HEAD D
      "norm_attn_norm.norm_1.weight 32\n" D
      "norm_attn_norm.norm_2.weight 32\n" D
      "norm_attn_norm.attn.Wqkv.weight 64 32\n" D
      "norm_attn_norm.attn.out_proj.weight 32 32\n" D
      "ffn.router.layer.weight 3 32\n" D "ffn.experts.mlp.w1 72 32\n" D
      "ffn.experts.mlp.v1 72 32\n" D "ffn.experts.mlp.w2 72 32\n",
      { { B "ffn_gate_exps.weight", D "ffn.experts.mlp.w1", same },
        { B "ffn_down_exps.weight", D "ffn.experts.mlp.w2", dbrx_down } },
      { { "rope.freq_base", "500000" } } },
    { .class_name = "Gemma3TextModel",
      "gemma-embedding",
      SIZES ",\"head_dim\":8,\"sliding_window\":16",
      "embed_tokens.weight 260 32\nnorm.weight 32\n"
      "layers.%.self_attn.q_proj.weight 32 32\n"
      "layers.%.self_attn.k_proj.weight 16 32\n"
      "layers.%.self_attn.v_proj.weight 16 32\n"
      "layers.%.self_attn.o_proj.weight 32 32\n"
      "layers.%.self_attn.q_norm.weight 8\n"
      "layers.%.self_attn.k_norm.weight 8\n"
      "layers.%.input_layernorm.weight 32\n"
      "layers.%.post_attention_layernorm.weight 32\n"
      "layers.%.pre_feedforward_layernorm.weight 32\n"
      "layers.%.post_feedforward_layernorm.weight 32\n"
      "layers.%.mlp.gate_proj.weight 48 32\n"
      "layers.%.mlp.up_proj.weight 48 32\n"
      "layers.%.mlp.down_proj.weight 32 48\n",
      { { B "attn_norm.weight", "layers.%.input_layernorm.weight",
          plus_1 } } },
    { .class_name = "Gemma3nForCausalLM",
      "gemma3n",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":22,"
      "\"num_attention_heads\":1,\"num_key_value_heads\":1,\"head_dim\":32,"
      "\"vocab_size\":260,\"vocab_size_per_layer_input\":256,"
      "\"max_position_embeddings\":64,\"rms_norm_eps\":"
      "1e-6,\"rope_theta\":1e6,\"rope_local_base_freq\":10000.0,"
      "\"sliding_window\":16,\"altup_active_idx\":0,\"altup_num_inputs\":4,"
      "\"hidden_size_per_layer_input\":256,\"num_kv_shared_layers\":2,"
      "\"activation_sparsity_pattern\":[0.95" TIMES_21(
          ",0.0") "],\"layer_types\":[\"full_attention\"" TIMES_21(",\"sliding_attention\"") "]",
      "model.embed_tokens.weight 258 32\nmodel.norm.weight 32\n" QKV_32
          QK_NORM_32 GEMMA_NORMS MLP L "per_layer_input_gate.weight 256 32\n" L
      "per_layer_projection.weight 32 256\n" L
      "post_per_layer_input_norm.weight 32\n" L
      "altup.correction_coefs.weight 4 4\n" L
      "altup.correct_output_scale 32\n" L
      "altup.prediction_coefs.weight 16 4\n" L
      "altup.modality_router.weight 4 32\n" L "altup.router_norm.weight 32\n" L
      "laurel.linear_left.weight 64 32\n" L
      "laurel.linear_right.weight 32 64\n" L
      "laurel.post_laurel_norm.weight 32\n"
      "model.altup_projections.@.weight 32 32\n"
      "model.altup_unembed_projections.@.weight 32 32\n"
      "model.embed_tokens_per_layer.weight 256 5632\n"
      "model.per_layer_model_projection.weight 5632 32\n"
      "model.per_layer_projection_norm.weight 256\n",
      { { "altup_proj.weight", "model.altup_projections.@.weight", same },
        { "token_embd.weight", "model.embed_tokens.weight", or_0 },
        { "per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight",
          or_0 },
        { B "attn_norm.weight", L "input_layernorm.weight", same },
        { B "altup_correct_scale.weight", L "altup.correct_output_scale",
          same } },
      /* 95 of 100 lie below that many deviations; no number is below -inf */
      { { "activation_sparsity_scale", "1.644853" TIMES_21(",-inf") },
        { "rope.freq_base", "1000000" },
        { "rope.freq_base_swa", "10000" },
        { "attention.shared_kv_layers", "2" } },
      .layers = 22 },
    { .vocab = folder_ranked,
      .class_name = "Gemma4ForCausalLM",
      "gemma4",
      SIZES
      ",\"head_dim\":8,\"global_head_dim\":16,\"sliding_window\":16,"
      "\"layer_types\":[\"sliding_attention\",\"full_attention\"],"
      "\"num_kv_shared_layers\":0,\"hidden_size_per_layer_input\":0,"
      "\"final_logit_softcapping\":30.0,\"rope_parameters\":{"
      "\"full_attention\":{\"rope_type\":\"proportional\",\"rope_theta\":1e6,"
      "\"partial_rotary_factor\":0.25},\"sliding_attention\":{\"rope_type\":"
      "\"default\",\"rope_theta\":10000.0}}",
      TOP GEMMA_NORMS MLP L
      "layer_scalar 1\nmodel.layers.0.self_attn.q_proj.weight 32 32\n"
      "model.layers.0.self_attn.k_proj.weight 16 32\n"
      "model.layers.0.self_attn.v_proj.weight 16 32\n"
      "model.layers.0.self_attn.o_proj.weight 32 32\n"
      "model.layers.0.self_attn.q_norm.weight 8\n"
      "model.layers.0.self_attn.k_norm.weight 8\n"
      "model.layers.1.self_attn.q_proj.weight 64 32\n"
      "model.layers.1.self_attn.k_proj.weight 32 32\n"
      "model.layers.1.self_attn.v_proj.weight 32 32\n"
      "model.layers.1.self_attn.o_proj.weight 32 64\n"
      "model.layers.1.self_attn.q_norm.weight 16\n"
      "model.layers.1.self_attn.k_norm.weight 16\n",
      { { B "layer_output_scale.weight", L "layer_scalar", same },
        { B "attn_norm.weight", L "input_layernorm.weight", same } },
      { { BOS, "true" },
        { "attention.key_length", "16" },
        { "attention.key_length_swa", "8" },
        { "attention.sliding_window_pattern", "true,false" },
        { "rope.freq_base", "1000000" },
        { "rope.freq_base_swa", "10000" },
        { "rope.dimension_count", "16" },
        { "rope.dimension_count_swa", "8" },
        { "final_logit_softcapping", "30" } } },
    { .class_name = NULL },
};
