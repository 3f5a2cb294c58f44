/* SPDX-License-Identifier: MIT */
/* archs_mixed.c - experts, and layers with windows that have other heads than
 * those without */
#include "config.h"
#include "tests/convert/archs.h"

#define L2 "model.layers.2."
#define LATE_EXPERTS                                                          \
    L1 "mlp.experts.@.gate_proj.weight 24 32\n" L1                            \
       "mlp.experts.@.up_proj.weight 24 32\n" L1                              \
       "mlp.experts.@.down_proj.weight 32 24\n"
/* What a layer that drafts has before and after its layer. */
#define HEADS(P)                                                              \
    P "eh_proj.weight 32 64\n" P "enorm.weight 32\n" P "hnorm.weight 32\n"
#define MIXTRAL_24(P)                                                         \
    P "block_sparse_moe.gate.weight 3 32\n" P                                 \
      "block_sparse_moe.experts.@.w1.weight 24 32\n" P                        \
      "block_sparse_moe.experts.@.w2.weight 32 24\n" P                        \
      "block_sparse_moe.experts.@.w3.weight 24 32\n"
#define L0 "model.layers.0."
/* MiMo: heads of 8 rows for keys and 4 for values; 2 heads with windows. */
#define MIMO(P)                                                               \
    P "input_layernorm.weight 32\n" P "self_attn.o_proj.weight 32 16\n"
#define MIMO_MTP(P)                                                           \
    MIMO(P)                                                                   \
    P "self_attn.qkv_proj.weight 56 32\n" P                                   \
      "self_attn.attention_sink_bias 4\n" P "pre_mlp_layernorm.weight 32\n" P \
      "mlp.gate_proj.weight 48 32\n" P "mlp.up_proj.weight 48 32\n" P         \
      "mlp.down_proj.weight 32 48\n" HEADS(P) P "final_layernorm.weight 32\n"
#define MM "model.mtp.layers."
/* Step: 4 heads, 2 with windows. */
#define STEP(P, Q)                                                            \
    P "input_layernorm.weight 32\n" P                                         \
      "post_attention_layernorm.weight 32\n" P "self_attn.q_proj.weight " Q   \
      " 32\n" P "self_attn.k_proj.weight 16 32\n" P                           \
      "self_attn.v_proj.weight 16 32\n" P "self_attn.o_proj.weight 32 " Q     \
      "\n" P "self_attn.q_norm.weight 8\n" P "self_attn.k_norm.weight 8\n"
#define STEP_MLP(P)                                                           \
    P "mlp.gate_proj.weight 48 32\n" P "mlp.up_proj.weight 48 32\n" P         \
      "mlp.down_proj.weight 32 48\n"

const struct arch archs_mixed[] = {
    { .class_name = "LagunaForCausalLM",
      "laguna",
      SIZES MOE_SIZES
      ",\"head_dim\":8,\"num_attention_heads_per_layer\":[4,2],"
      "\"shared_expert_intermediate_size\":24,\"sliding_window\":16,"
      "\"layer_types\":[\"full_attention\",\"sliding_attention\"],"
      "\"mlp_layer_types\":[\"dense\",\"sparse\"],"
      "\"moe_routed_scaling_factor\":2.5,\"gating\":true,"
      "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\","
      "\"rope_theta\":500000.0,\"factor\":4.0,"
      "\"original_max_position_embeddings\":4096,\"beta_fast\":32.0,"
      "\"beta_slow\":1.0,\"attention_factor\":1.0,"
      "\"partial_rotary_factor\":0.5},\"sliding_attention\":{\"rope_type\":"
      "\"default\",\"rope_theta\":10000.0,\"partial_rotary_factor\":1.0}}",
      TOP HEAD STEP(L0, "32") STEP(L1, "16") L0
      "self_attn.g_proj.weight 4 32\n" L1
      "self_attn.g_proj.weight 2 32\n" LEAD LATE_MOE L1
      "mlp.experts.e_score_correction_bias 3\n",
      { { B "attn_gate.weight", L "self_attn.g_proj.weight", same },
        { "blk.1.exp_probs_b.bias", L1 "mlp.experts.e_score_correction_bias",
          same } },
      { { "attention.head_count", "4,2" },
        { "rope.dimension_count", "4" },
        { "rope.dimension_count_swa", "8" },
        { "rope.freq_base", "500000" },
        { "rope.freq_base_swa", "10000" },
        { "rope.scaling.type", "yarn" },
        { "leading_dense_block_count", "1" },
        { "expert_weights_norm", "true" },
        { "expert_weights_scale", "2.5" },
        { "expert_gating_func", "2" },
        { "expert_shared_feed_forward_length", "24" },
        { "vocab_size", "260" } } },
    { .class_name = "MiMoV2FlashForCausalLM",
      "mimo2",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":1,"
      "\"swa_num_attention_heads\":4,\"swa_num_key_value_heads\":2,"
      "\"head_dim\":8,\"swa_head_dim\":8,\"v_head_dim\":4,\"swa_v_head_dim\":"
      "4,\"vocab_size\":260,\"max_position_embeddings\":64,"
      "\"layernorm_epsilon\":1e-5,\"rope_theta\":5000000,\"swa_rope_theta\":"
      "10000,\"partial_rotary_factor\":0.5,\"sliding_window\":16,"
      "\"hybrid_layer_pattern\":[0,1],\"n_routed_experts\":3,"
      "\"num_experts_per_tok\":2,\"moe_intermediate_size\":24,"
      "\"scoring_func\":\"sigmoid\",\"topk_method\":\"noaux_tc\","
      "\"n_group\":1,\"topk_group\":1,\"norm_topk_prob\":true,"
      "\"attention_value_scale\":0.707",
      TOP HEAD MIMO(L) L
      "post_attention_layernorm.weight 32\n" L0
      "self_attn.q_proj.weight 32 32\n" L0 "self_attn.k_proj.weight 8 32\n" L0
      "self_attn.v_proj.weight 4 32\n" L1
      "self_attn.qkv_proj.weight 56 32\n" L1
      "self_attn.attention_sink_bias 4\n" LEAD L1
      "mlp.gate.weight 3 32\n" LATE_EXPERTS LATE_BIAS MIMO_MTP(MM "0.")
          MIMO_MTP(MM "1.") MIMO_MTP(MM "2."),
      { { "blk.1.attn_qkv.weight", L1 "self_attn.qkv_proj.weight", same },
        { "blk.1.attn_sinks.weight", L1 "self_attn.attention_sink_bias",
          same },
        { "blk.4.ffn_norm.weight", MM "2.pre_mlp_layernorm.weight", same },
        { "blk.3.nextn.eh_proj.weight", MM "1.eh_proj.weight", same },
        { "blk.2.layer_output_norm.weight", MM "0.final_layernorm.weight",
          same } },
      { { "attention.head_count_kv", "1,2,2,2,2" },
        { "attention.sliding_window_pattern", "0,1,1,1,1" },
        { "block_count", "5" },
        { "nextn_predict_layers", "3" },
        { "attention.value_length", "4" },
        { "attention.value_scale", "0.707" },
        { "rope.dimension_count", "4" },
        { "rope.freq_base_swa", "10000" },
        { "attention.layer_norm_rms_epsilon", "1e-05" } } },
    { .class_name = "Step3p5ForCausalLM",
      "step35",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_attention_groups\":2,\"head_dim\":8,"
      "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":"
      "1e-5,\"attention_other_setting\":{\"num_attention_heads\":2,"
      "\"num_attention_groups\":2},\"layer_types\":[\"full_attention\","
      "\"sliding_attention\",\"sliding_attention\"],"
      "\"partial_rotary_factors\":[0.5,1.0,1.0],\"sliding_window\":16,"
      "\"rope_theta\":[5000000.0,10000.0,10000.0],\"rope_scaling\":{"
      "\"rope_type\":\"llama3\",\"factor\":2.0,"
      "\"original_max_position_embeddings\":131072,\"low_freq_factor\":1.0,"
      "\"high_freq_factor\":32.0},\"moe_num_experts\":3,\"moe_top_k\":2,"
      "\"moe_intermediate_size\":24,\"share_expert_dim\":24,"
      "\"moe_layers_enum\":\"1\",\"moe_router_activation\":\"sigmoid\","
      "\"moe_router_scaling_factor\":3.0,\"norm_expert_weight\":true,"
      "\"swiglu_limits\":[null,7.0],\"swiglu_limits_shared\":[null,16.0],"
      "\"num_nextn_predict_layers\":1",
      TOP HEAD STEP(L0, "32") STEP(L1, "16") STEP(L2, "16") L0
      "self_attn.g_proj.weight 4 32\n" L1 "self_attn.g_proj.weight 2 32\n" L2
      "self_attn.g_proj.weight 2 32\n" STEP_MLP(L0) STEP_MLP(L2) L1
      "moe.gate.weight 3 32\n" L1 "moe.router_bias 3\n" L1
      "moe.gate_proj.weight 3 24 32\n" L1 "moe.up_proj.weight 3 24 32\n" L1
      "moe.down_proj.weight 3 32 24\n" L1
      "share_expert.gate_proj.weight 24 32\n" L1
      "share_expert.up_proj.weight 24 32\n" L1
      "share_expert.down_proj.weight 32 24\n" HEADS(L2) L2
      "transformer.shared_head.norm.weight 32\n" L2
      "transformer.shared_head.output.weight 260 32\n",
      { { "output_norm.weight", "model.norm.weight", plus_1 },
        { B "attn_q_norm.weight", L "self_attn.q_norm.weight", plus_1 },
        { B "attn_gate.weight", L "self_attn.g_proj.weight", same },
        { "blk.1.ffn_gate_exps.weight", L1 "moe.gate_proj.weight", same },
        { "blk.1.exp_probs_b.bias", L1 "moe.router_bias", same },
        { "blk.1.ffn_down_shexp.weight", L1 "share_expert.down_proj.weight",
          same },
        { "blk.2.nextn.enorm.weight", L2 "enorm.weight", plus_1 },
        { "blk.2.nextn.shared_head_head.weight",
          L2 "transformer.shared_head.output.weight", same } },
      { { "attention.head_count", "4,2,2" },
        { "attention.head_count_kv", "2,2,2" },
        { "attention.sliding_window_pattern", "false,true,true" },
        { "rope.freq_base", "5000000" },
        { "rope.freq_base_swa", "10000" },
        { "expert_count", "3" },
        { "swiglu_clamp_exp", "0,7,0" },
        { "swiglu_clamp_shexp", "0,16,0" },
        { "leading_dense_block_count", "1" },
        { "expert_gating_func", "2" },
        { "moe_every_n_layers", "1" },
        { "nextn_predict_layers", "1" } } },
    { .class_name = "MiniMaxM3SparseForConditionalGeneration",
      "minimax-m3",
      "\"text_config\":{\"hidden_size\":32,\"intermediate_size\":24,"
      "\"dense_intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
      "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":"
      "1e-6,\"rope_theta\":5000000,\"rotary_dim\":4,\"num_local_experts\":3,"
      "\"num_experts_per_tok\":2,\"scoring_func\":\"sigmoid\","
      "\"routed_scaling_factor\":2.0,\"n_shared_experts\":1,"
      "\"moe_layer_freq\":[0,1],\"sparse_attention_config\":{"
      "\"sparse_num_index_heads\":2,\"sparse_index_dim\":8,"
      "\"sparse_topk_blocks\":2,\"sparse_block_size\":4,"
      "\"sparse_local_block\":1}}",
      TOP HEAD QKV QK_NORM NORMS LEAD L1
      "self_attn.index_q_proj.weight 16 32\n" L1
      "self_attn.index_k_proj.weight 8 32\n" L1
      "self_attn.index_q_norm.weight 8\n" L1
      "self_attn.index_k_norm.weight 8\n" MIXTRAL_24(L1) L1
      "block_sparse_moe.e_score_correction_bias 3\n" L1
      "block_sparse_moe.shared_experts.gate_proj.weight 24 32\n" L1
      "block_sparse_moe.shared_experts.up_proj.weight 24 32\n" L1
      "block_sparse_moe.shared_experts.down_proj.weight 32 24\n"
      "patch_merge_mlp.linear_1.weight 8 8\n",
      { { B "attn_norm.weight", L "input_layernorm.weight", plus_1 },
        { "blk.1.indexer.q_norm.weight", L1 "self_attn.index_q_norm.weight",
          plus_1 },
        { "blk.1.indexer.q_proj.weight", L1 "self_attn.index_q_proj.weight",
          same },
        { "blk.1.ffn_up_shexp.weight",
          L1 "block_sparse_moe.shared_experts.up_proj.weight", same },
        { "blk.1.ffn_up_exps.weight",
          L1 "block_sparse_moe.experts.@.w3.weight", same } },
      { { "feed_forward_length", "48" },
        { "expert_feed_forward_length", "24" },
        { "attention.indexer.head_count", "2" },
        { "attention.indexer.top_k", "2" },
        { "attention.indexer.block_size", "4" },
        { "attention.indexer.local_blocks", "1" },
        { "leading_dense_block_count", "1" },
        { "expert_weights_scale", "2" },
        { "rope.dimension_count", "4" } } },
    { .class_name = NULL },
};
