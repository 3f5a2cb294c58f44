/* SPDX-License-Identifier: MIT */
/* archs_latent.c - keys and values from a narrow vector, and their kin */
#include "config.h"
#include "tests/convert/archs.h"

/* DeepSeek: 4 heads of 8 rows for keys and 6 for values, of rank 16. Keys'
 * become [rank, rows]. */
static float latent_k(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t head = i / (16 * 8), rank = i % (16 * 8) / 8, row = i % 8;
    return folder_value(t->name, (head * 14 + row) * 16 + rank);
}

static float latent_v(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t head = i / (6 * 16), row = i % (6 * 16) / 16;
    return folder_value(t->name, (head * 14 + 8 + row) * 16 + i % 16);
}

#define LATENT                                                                \
    L "self_attn.kv_a_proj_with_mqa.weight 20 32\n" L                         \
      "self_attn.kv_a_layernorm.weight 16\n" L                                \
      "self_attn.kv_b_proj.weight 56 16\n" L                                  \
      "self_attn.o_proj.weight 32 24\n"
#define LATENT_SIZES                                                          \
    ",\"kv_lora_rank\":16,\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":4,"     \
    "\"v_head_dim\":6,\"n_routed_experts\":3,\"num_experts_per_tok\":2,"      \
    "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"                    \
    "\"first_k_dense_replace\":1,\"routed_scaling_factor\":2.5"
#define LOW_Q                                                                 \
    L "self_attn.q_a_proj.weight 24 32\n" L                                   \
      "self_attn.q_a_layernorm.weight 24\n" L                                 \
      "self_attn.q_b_proj.weight 48 24\n"
#define INDEXER                                                               \
    L "self_attn.indexer.wk.weight 8 32\n" L                                  \
      "self_attn.indexer.wq_b.weight 16 24\n" L                               \
      "self_attn.indexer.k_norm.weight 8\n" L                                 \
      "self_attn.indexer.k_norm.bias 8\n" L                                   \
      "self_attn.indexer.weights_proj.weight 2 32\n"
#define INDEXER_SIZES                                                         \
    ",\"index_n_heads\":2,\"index_head_dim\":8,\"index_topk\":4"
#define L2 "model.layers.2."
/* The layer that drafts, for all but its indexer. */
#define DRAFT                                                                 \
    L2 "input_layernorm.weight 32\n" L2                                       \
       "post_attention_layernorm.weight 32\n" L2                              \
       "self_attn.q_a_proj.weight 24 32\n" L2                                 \
       "self_attn.q_a_layernorm.weight 24\n" L2                               \
       "self_attn.q_b_proj.weight 48 24\n" L2                                 \
       "self_attn.kv_a_proj_with_mqa.weight 20 32\n" L2                       \
       "self_attn.kv_a_layernorm.weight 16\n" L2                              \
       "self_attn.kv_b_proj.weight 56 16\n" L2                                \
       "self_attn.o_proj.weight 32 24\n" L2 "mlp.gate.weight 3 32\n" L2       \
       "mlp.gate.e_score_correction_bias 3\n" L2                              \
       "mlp.experts.@.gate_proj.weight 24 32\n" L2                            \
       "mlp.experts.@.up_proj.weight 24 32\n" L2                              \
       "mlp.experts.@.down_proj.weight 32 24\n" L2                            \
       "mlp.shared_experts.gate_proj.weight 24 32\n" L2                       \
       "mlp.shared_experts.up_proj.weight 24 32\n" L2                         \
       "mlp.shared_experts.down_proj.weight 32 24\n" L2                       \
       "eh_proj.weight 32 64\n" L2 "enorm.weight 32\n" L2                     \
       "hnorm.weight 32\n" L2 "embed_tokens.weight 260 32\n" L2               \
       "shared_head.head.weight 260 32\n" L2 "shared_head.norm.weight 32\n"
#define DRAFT_INDEXER                                                         \
    L2 "self_attn.indexer.wk.weight 8 32\n" L2                                \
       "self_attn.indexer.wq_b.weight 16 24\n" L2                             \
       "self_attn.indexer.k_norm.weight 8\n" L2                               \
       "self_attn.indexer.k_norm.bias 8\n" L2                                 \
       "self_attn.indexer.weights_proj.weight 2 32\n"
#define SIGMOID                                                               \
    ",\"norm_topk_prob\":true,\"scoring_func\":\"sigmoid\",\"q_lora_rank\":"  \
    "24,\"topk_group\":1,\"n_group\":1"

#define L0 "model.layers.0."
/* Kimi's delta rule, and experts. */
#define KDA_0                                                                 \
    L0 "self_attn.q_proj.weight 32 32\n" L0                                   \
       "self_attn.k_proj.weight 32 32\n" L0                                   \
       "self_attn.v_proj.weight 32 32\n" L0                                   \
       "self_attn.q_conv1d.weight 32 1 4\n" L0                                \
       "self_attn.k_conv1d.weight 32 1 4\n" L0                                \
       "self_attn.v_conv1d.weight 32 4\n" L0                                  \
       "self_attn.f_a_proj.weight 8 32\n" L0                                  \
       "self_attn.f_b_proj.weight 32 8\n" L0                                  \
       "self_attn.g_a_proj.weight 8 32\n" L0                                  \
       "self_attn.g_b_proj.weight 32 8\n" L0                                  \
       "self_attn.b_proj.weight 4 32\n" L0 "self_attn.A_log 1 1 4 1\n" L0     \
       "self_attn.dt_bias 32\n" L0 "self_attn.o_norm.weight 8\n" L0           \
       "self_attn.o_proj.weight 32 32\n"
#define KIMI_MOE                                                              \
    L1 "block_sparse_moe.gate.weight 3 32\n" L1                               \
       "block_sparse_moe.gate.e_score_correction_bias 3\n" L1                 \
       "block_sparse_moe.experts.@.w1.weight 24 32\n" L1                      \
       "block_sparse_moe.experts.@.w2.weight 32 24\n" L1                      \
       "block_sparse_moe.experts.@.w3.weight 24 32\n" L1                      \
       "block_sparse_moe.shared_experts.gate_proj.weight 24 32\n" L1          \
       "block_sparse_moe.shared_experts.up_proj.weight 24 32\n" L1            \
       "block_sparse_moe.shared_experts.down_proj.weight 32 24\n"

/* DeepSeek V4: 4 streams of 32, 4 heads of 8 of which 4 turn, two groups of
 * them; the first layer has a window alone, the second one key for four tokens,
 * the third one for 128. */
#define V  "layers.%."
#define V1 "layers.1."
#define V2 "layers.2."
#define V4                                                                    \
    "embed.weight 260 32\nnorm.weight 32\nhead.weight 260 32\n"               \
    "hc_head_fn 4 128\nhc_head_base 4\nhc_head_scale 1\n" V                   \
    "attn_norm.weight 32\n" V "ffn_norm.weight 32\n" V                        \
    "hc_attn_fn 24 128\n" V "hc_attn_base 24\n" V "hc_attn_scale 3\n" V       \
    "hc_ffn_fn 24 128\n" V "hc_ffn_base 24\n" V "hc_ffn_scale 3\n" V          \
    "attn.attn_sink 4\n" V "attn.wq_a.weight 24 32\n" V                       \
    "attn.q_norm.weight 24\n" V "attn.wq_b.weight 32 24\n" V                  \
    "attn.wkv.weight 8 32\n" V "attn.kv_norm.weight 8\n" V                    \
    "attn.wo_a.weight 12 16\n" V "attn.wo_b.weight 32 12\n" V                 \
    "ffn.gate.weight 3 32\n" V "ffn.gate.bias 3\n" V                          \
    "ffn.experts.@.w1.weight 24 32\n" V "ffn.experts.@.w2.weight 32 24\n" V   \
    "ffn.experts.@.w3.weight 24 32\n" V                                       \
    "ffn.shared_experts.w1.weight 24 32\n" V                                  \
    "ffn.shared_experts.w2.weight 32 24\n" V                                  \
    "ffn.shared_experts.w3.weight 24 32\n"
#define V4_COMPRESSED                                                         \
    V1 "attn.compressor.wkv.weight 16 32\n" V1                                \
       "attn.compressor.wgate.weight 16 32\n" V1                              \
       "attn.compressor.ape 4 16\n" V1 "attn.compressor.norm.weight 8\n" V1   \
       "attn.indexer.wq_b.weight 16 24\n" V1                                  \
       "attn.indexer.weights_proj.weight 2 32\n" V1                           \
       "attn.indexer.compressor.wkv.weight 16 32\n" V1                        \
       "attn.indexer.compressor.wgate.weight 16 32\n" V1                      \
       "attn.indexer.compressor.ape 4 16\n" V1                                \
       "attn.indexer.compressor.norm.weight 8\n" V2                           \
       "attn.compressor.wkv.weight 8 32\n" V2                                 \
       "attn.compressor.wgate.weight 8 32\n" V2                               \
       "attn.compressor.ape 128 8\n" V2 "attn.compressor.norm.weight 8\n"

#define V4_SIZES                                                              \
    SIZES_HEADS("\"num_hidden_layers\":3,\"num_key_value_heads\":1,")         \
    INDEXER_SIZES                                                             \
    ",\"head_dim\":8,\"qk_rope_head_dim\":4,\"q_lora_rank\":24,"              \
    "\"o_lora_rank\":6,\"o_groups\":2,\"compress_ratios\":[0,4,128,0],"       \
    "\"compress_rope_theta\":160000,\"sliding_window\":16,"                   \
    "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"                    \
    "\"n_routed_experts\":3,\"num_experts_per_tok\":2,"                       \
    "\"routed_scaling_factor\":1.5,\"norm_topk_prob\":true,"                  \
    "\"scoring_func\":\"sqrtsoftplus\",\"hc_mult\":4,"                        \
    "\"hc_sinkhorn_iters\":3,\"hc_eps\":1e-6,\"num_hash_layers\":0,"          \
    "\"swiglu_limit\":10.0,\"num_nextn_predict_layers\":1,"                   \
    "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":16,\"beta_fast\":32,"     \
    "\"beta_slow\":1,\"original_max_position_embeddings\":65536}"

const struct arch archs_latent[] = {
    { .class_name = "DeepseekV4ForCausalLM",
      "deepseek4",
      V4_SIZES,
      V4 V4_COMPRESSED "mtp.0.e_proj.weight 32 32\nmtp.0.hc_head_base 4\n"
                       "mtp.0.ffn.experts.@.w1.weight 24 32\n",
      { { B "attn_output_a.weight", V "attn.wo_a.weight", same },
        { B "ffn_up_exps.weight", V "ffn.experts.@.w3.weight", same },
        { B "exp_probs_b.bias", V "ffn.gate.bias", same },
        { B "hc_ffn_scale.weight", V "hc_ffn_scale", same },
        { "blk.1.indexer_compressor_ape.weight",
          V1 "attn.indexer.compressor.ape", same },
        { "blk.2.attn_compressor_gate.weight",
          V2 "attn.compressor.wgate.weight", same } },
      { { "expert_gating_func", "4" },
        { "attention.compress_ratios", "0,4,128,0" },
        { "attention.compress_rope_freq_base", "160000" },
        { "swiglu_clamp_exp", "10,10,10" },
        { "attention.key_length", "8" },
        { "attention.output_group_count", "2" },
        { "hyper_connection.sinkhorn_iterations", "3" },
        { "rope.scaling.original_context_length", "65536" },
        { "expert_weights_scale", "1.5" },
        { "block_count", "3" } },
      .layers = 3 },
    { .class_name = "DeepseekV2ForCausalLM",
      "deepseek2",
      MHA LATENT_SIZES ",\"norm_topk_prob\":false,\"scoring_func\":"
                       "\"softmax\",\"q_lora_rank\":null,\"topk_group\":1,"
                       "\"n_group\":1",
      TOP HEAD NORMS LATENT L "self_attn.q_proj.weight 48 32\n" LEAD LATE_MOE,
      { { B "attn_k_b.weight", L "self_attn.kv_b_proj.weight", latent_k },
        { B "attn_v_b.weight", L "self_attn.kv_b_proj.weight", latent_v },
        { B "attn_q.weight", L "self_attn.q_proj.weight", same } },
      { { "attention.head_count_kv", "1" },
        { "attention.key_length", "20" },
        { "attention.value_length", "16" },
        { "attention.key_length_mla", "12" },
        { "attention.value_length_mla", "6" },
        { "expert_gating_func", "1" },
        { "rope.dimension_count", "4" } } },
    { .class_name = "DeepseekV3ForCausalLM",
      "deepseek2",
      MHA LATENT_SIZES
      ",\"norm_topk_prob\":true,\"scoring_func\":\"sigmoid\",\"q_lora_rank\":"
      "24,\"topk_group\":1,\"n_group\":1,\"num_nextn_predict_layers\":1,"
      "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"beta_fast\":32,"
      "\"beta_slow\":1,\"mscale\":1.0,\"mscale_all_dim\":1.0,"
      "\"original_max_position_embeddings\":4096}",
      TOP HEAD NORMS LATENT L
      "self_attn.q_a_proj.weight 24 32\n" L
      "self_attn.q_a_layernorm.weight 24\n" L
      "self_attn.q_b_proj.weight 48 24\n" LEAD LATE_MOE LATE_BIAS
      "model.layers.2.input_layernorm.weight 32\n"
      "model.layers.2.self_attn.q_b_proj.weight 48 24\n",
      { { "blk.1.exp_probs_b.bias", L1 "mlp.gate.e_score_correction_bias",
          same },
        { B "attn_q_a_norm.weight", L "self_attn.q_a_layernorm.weight",
          same } },
      { { "expert_gating_func", "2" },
        { "expert_weights_norm", "true" },
        { "expert_weights_scale", "2.5" },
        { "rope.scaling.yarn_log_multiplier", "0.1" },
        { "rope.scaling.factor", "40" },
        { "block_count", "2" } } },
    { .class_name = "Glm4MoeLiteForCausalLM",
      "deepseek2",
      MHA LATENT_SIZES SIGMOID ",\"num_nextn_predict_layers\":1",
      TOP HEAD NORMS LATENT LOW_Q LEAD LATE_MOE LATE_BIAS DRAFT,
      { { "blk.2.attn_k_b.weight", L2 "self_attn.kv_b_proj.weight", latent_k },
        { "blk.2.nextn.shared_head_norm.weight", L2 "shared_head.norm.weight",
          same } },
      { { "block_count", "3" }, { "nextn_predict_layers", "1" } } },
    { .class_name = "DeepseekV32ForCausalLM",
      "deepseek32",
      MHA LATENT_SIZES SIGMOID INDEXER_SIZES ",\"num_nextn_predict_layers\":1",
      TOP HEAD NORMS LATENT LOW_Q INDEXER LEAD LATE_MOE LATE_BIAS DRAFT
          DRAFT_INDEXER,
      { { B "attn_k_b.weight", L "self_attn.kv_b_proj.weight", latent_k },
        { B "attn_v_b.weight", L "self_attn.kv_b_proj.weight", latent_v },
        { B "indexer.attn_q_b.weight", L "self_attn.indexer.wq_b.weight",
          same },
        { B "indexer.k_norm.bias", L "self_attn.indexer.k_norm.bias", same },
        { B "indexer.proj.weight", L "self_attn.indexer.weights_proj.weight",
          same },
        { "blk.2.nextn.eh_proj.weight", L2 "eh_proj.weight", same } },
      { { "attention.indexer.head_count", "2" },
        { "attention.indexer.key_length", "8" },
        { "attention.indexer.top_k", "4" },
        { "attention.key_length", "20" },
        { "attention.key_length_mla", "12" },
        { "expert_gating_func", "2" },
        { "block_count", "3" },
        { "nextn_predict_layers", "1" } } },
    { .class_name = "GlmMoeDsaForCausalLM",
      "glm-dsa",
      MHA LATENT_SIZES SIGMOID INDEXER_SIZES
      ",\"num_nextn_predict_layers\":1,\"indexer_types\":["
      "\"full\",\"shared\"],\"rope_parameters\":{\"rope_type\":\"default\","
      "\"rope_theta\":1000000}",
      TOP HEAD NORMS LATENT LOW_Q INDEXER LEAD LATE_MOE LATE_BIAS DRAFT
          DRAFT_INDEXER,
      { { B "attn_k_b.weight", L "self_attn.kv_b_proj.weight", latent_k },
        { B "indexer.attn_k.weight", L "self_attn.indexer.wk.weight", same },
        { "blk.1.exp_probs_b.bias", L1 "mlp.gate.e_score_correction_bias",
          same } },
      { { "attention.indexer.types", "true,false" },
        { "attention.key_length", "20" },
        { "attention.value_length", "16" },
        { "attention.head_count_kv", "1" },
        { "rope.freq_base", "1000000" },
        { "rope.dimension_count", "4" },
        { "block_count", "3" } } },
    { .class_name = "Mistral3ForConditionalGeneration",
      "mistral4",
      "\"text_config\":{" MHA
      ",\"model_type\":\"mistral4\",\"kv_lora_rank\":16,"
      "\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":4,\"v_head_dim\":6,"
      "\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
      "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"
      "\"first_k_dense_replace\":0,\"routed_scaling_factor\":1.0,"
      "\"norm_topk_prob\":true,\"q_lora_rank\":24,\"rope_parameters\":{"
      "\"rope_type\":\"yarn\",\"rope_theta\":10000.0,\"factor\":128.0,"
      "\"original_max_position_embeddings\":8192,\"mscale\":1.0,"
      "\"mscale_all_dim\":1.0,\"beta_fast\":32.0,\"beta_slow\":1.0,"
      "\"llama_4_scaling_beta\":0.1}}",
      TOP HEAD NORMS LATENT LOW_Q L
      "mlp.gate.weight 3 32\n" L "mlp.experts.gate_up_proj 3 48 32\n" L
      "mlp.experts.down_proj 3 32 24\n" L
      "mlp.shared_experts.gate_proj.weight 24 "
      "32\n" L "mlp.shared_experts.up_proj.weight 24 "
      "32\n" L "mlp.shared_experts.down_proj.weight 32 "
      "24\n"
      "vision_tower.ln_pre.weight 16\n",
      { { B "ffn_gate_up_exps.weight", L "mlp.experts.gate_up_proj", same },
        { B "ffn_down_exps.weight", L "mlp.experts.down_proj", same },
        { B "attn_v_b.weight", L "self_attn.kv_b_proj.weight", latent_v } },
      { { "attention.temperature_scale", "0.1" },
        { "attention.temperature_length", "8192" },
        { "rope.scaling.factor", "128" },
        { "rope.scaling.yarn_log_multiplier", "0.1" },
        { "attention.key_length", "20" } } },
    { .class_name = "DeepseekOCRForCausalLM",
      "deepseek2-ocr",
      "\"language_config\":{\"hidden_size\":32,\"intermediate_size\":48,"
      "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
      "\"num_key_value_heads\":4,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"kv_lora_rank\":null,"
      "\"qk_nope_head_dim\":0,\"qk_rope_head_dim\":0,\"v_head_dim\":0,"
      "\"use_mla\":false,\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
      "\"moe_intermediate_size\":24,\"n_shared_experts\":1,"
      "\"first_k_dense_replace\":1,\"routed_scaling_factor\":1.0,"
      "\"n_group\":1,\"topk_group\":1}",
      TOP HEAD QKV_32 NORMS LEAD LATE_MOE
      "model.sam_model.patch_embed.proj.weight 4 4\n"
      "model.vision_model.embeddings.class_embedding 8\n"
      "model.projector.layers.weight 8 8\nmodel.image_newline 32\n"
      "model.view_seperator 32\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { "blk.1.ffn_down_shexp.weight",
          L1 "mlp.shared_experts.down_proj.weight", same } },
      { { "rope.freq_base", "10000" },
        { "attention.head_count_kv", "4" },
        { "expert_weights_scale", "1" },
        { "leading_dense_block_count", "1" } } },
    { .class_name = "KimiLinearForCausalLM",
      "kimi-linear",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":260,"
      "\"model_max_length\":64,\"rms_norm_eps\":1e-6,\"rope_theta\":10000.0,"
      "\"head_dim\":12,\"kv_lora_rank\":16,\"q_lora_rank\":null,"
      "\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":4,\"v_head_dim\":6,"
      "\"linear_attn_config\":{\"full_attn_layers\":[2],\"kda_layers\":[1],"
      "\"head_dim\":8,\"num_heads\":4,\"short_conv_kernel_size\":4},"
      "\"num_experts\":3,\"num_experts_per_token\":2,"
      "\"moe_intermediate_size\":24,\"num_shared_experts\":1,"
      "\"first_k_dense_replace\":1,\"routed_scaling_factor\":2.5,"
      "\"moe_router_activation_func\":\"sigmoid\"",
      TOP HEAD NORMS LEAD KDA_0 L1 "self_attn.q_proj.weight 48 32\n" L1
                                   "self_attn.kv_a_proj_with_mqa.weight 20 "
                                   "32\n" L1
                                   "self_attn.kv_a_layernorm.weight 16\n" L1
                                   "self_attn.kv_b_proj.weight 56 16\n" L1
                                   "self_attn.o_proj.weight 32 24\n" KIMI_MOE,
      { { "blk.0.attn_q.weight", L0 "self_attn.q_proj.weight", same },
        { "blk.0.ssm_conv1d_k.weight", L0 "self_attn.k_conv1d.weight", same },
        { "blk.0.ssm_a", L0 "self_attn.A_log", neg_exp },
        { "blk.0.ssm_dt.bias", L0 "self_attn.dt_bias", same },
        { "blk.0.ssm_g_b.weight", L0 "self_attn.g_b_proj.weight", same },
        { "blk.0.ssm_norm.weight", L0 "self_attn.o_norm.weight", same },
        { "blk.1.attn_k_b.weight", L1 "self_attn.kv_b_proj.weight", latent_k },
        { "blk.1.ffn_up_exps.weight",
          L1 "block_sparse_moe.experts.@.w3.weight", same },
        { "blk.1.exp_probs_b.bias",
          L1 "block_sparse_moe.gate.e_score_correction_bias", same } },
      { { "attention.head_count_kv", "0,1" },
        { "ssm.conv_kernel", "4" },
        { "kda.head_dim", "8" },
        { "attention.key_length", "20" },
        { "attention.key_length_mla", "12" },
        { "attention.value_length_mla", "6" },
        { "rope.dimension_count", "4" },
        { "expert_gating_func", "2" },
        { "expert_used_count", "2" },
        { "leading_dense_block_count", "1" } } },
    { .class_name = NULL },
};
