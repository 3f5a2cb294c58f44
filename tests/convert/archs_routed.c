/* SPDX-License-Identifier: MIT */
/* archs_routed.c - more models with experts */
#include "config.h"
#include "tests/convert/archs.h"

/* Of 4 + 2 + 2 heads of 8 rows in one: queries and keys as pairs, values. */
static float part(const struct folder_tensor *t, uint64_t i, uint64_t first)
{
    return folder_value(t->name, first * t->shape[1] + i);
}

static float part_paired(const struct folder_tensor *t, uint64_t i,
                         uint64_t first)
{
    const uint64_t cols = t->shape[1], row = i / cols;
    const uint64_t from = row / 8 * 8 + row % 2 * 4 + row % 8 / 2;
    return folder_value(t->name, (first + from) * cols + i % cols);
}

static float bailing_q(const struct folder_tensor *t, uint64_t i)
{
    return part_paired(t, i, 0);
}

static float bailing_k(const struct folder_tensor *t, uint64_t i)
{
    return part_paired(t, i, 32);
}

static float bailing_v(const struct folder_tensor *t, uint64_t i)
{
    return part(t, i, 48);
}

/* Qwen 3 VL: of an expert 32 rows of 24 gates and 24 others; here 24 rows of
 * 32. */
static float vl_half(const struct folder_tensor *t, uint64_t i, uint64_t no)
{
    const uint64_t expert = i / (24 * 32), row = i % (24 * 32) / 32;
    return folder_value(t->name, (expert * 32 + i % 32) * 48 + no * 24 + row);
}

static float vl_gate(const struct folder_tensor *t, uint64_t i)
{
    return vl_half(t, i, 0);
}

static float vl_up(const struct folder_tensor *t, uint64_t i)
{
    return vl_half(t, i, 1);
}

static float vl_down(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t expert = i / (24 * 32), row = i % (24 * 32) / 24;
    return folder_value(t->name, (expert * 24 + i % 24) * 32 + row);
}

#define L2 "model.layers.2."
#define SHARED(P)                                                             \
    P "mlp.shared_experts.gate_proj.weight 24 32\n" P                         \
      "mlp.shared_experts.up_proj.weight 24 32\n" P                           \
      "mlp.shared_experts.down_proj.weight 32 24\n"
#define BAILING_TOP                                                           \
    "model.word_embeddings.weight 260 32\nmodel.norm.weight 32\n"             \
    "lm_head.weight 260 32\n"
#define BAILING                                                               \
    L "attention.query_key_value.weight 64 32\n" L                            \
      "attention.dense.weight 32 32\n"
#define MTP "mtp.layers.0."
/* A layer without experts. */
#define LAYER(P)                                                              \
    P "input_layernorm.weight 32\n" P                                         \
      "post_attention_layernorm.weight 32\n" P                                \
      "self_attn.q_proj.weight 32 32\n" P "self_attn.k_proj.weight 16 32\n" P \
      "self_attn.v_proj.weight 16 32\n" P "self_attn.o_proj.weight 32 32\n" P \
      "self_attn.q_norm.weight 8\n" P "self_attn.k_norm.weight 8\n" P         \
      "mlp.gate_proj.weight 48 32\n" P "mlp.up_proj.weight 48 32\n" P         \
      "mlp.down_proj.weight 32 48\n"

#define MIXTRAL_24(P)                                                         \
    P "block_sparse_moe.gate.weight 3 32\n" P                                 \
      "block_sparse_moe.experts.@.w1.weight 24 32\n" P                        \
      "block_sparse_moe.experts.@.w2.weight 32 24\n" P                        \
      "block_sparse_moe.experts.@.w3.weight 24 32\n"
#define GROK_NORMS                                                            \
    L "pre_attn_norm.weight 32\n" L "post_attn_norm.weight 32\n" L            \
      "pre_moe_norm.weight 32\n" L "post_moe_norm.weight 32\n"
#define GROK_SIZES                                                            \
    ",\"head_dim\":8,\"num_local_experts\":3,\"num_experts_per_tok\":2,"      \
    "\"moe_intermediate_size\":24,\"attn_logit_softcapping\":30.0,"           \
    "\"router_logit_softcapping\":30.0,\"final_logit_softcapping\":50,"       \
    "\"embedding_multiplier_scale\":90.5,\"output_multiplier_scale\":0.5"
#define G "transformer.decoder_layer.%."
/* Six experts, in pairs that share one of three. */
#define EXPERT(NO)                                                            \
    L "mlp.experts." NO ".gate_proj.weight 24 32\n" L "mlp.experts." NO       \
      ".up_proj.weight 24 32\n" L "mlp.experts." NO                           \
      ".down_proj.weight 32 24\n"
#define SIX                                                                   \
    EXPERT("0") EXPERT("1") EXPERT("2") EXPERT("3") EXPERT("4") EXPERT("5")
/* What a layer that drafts has before and after its layer. */
#define HEADS(P)                                                              \
    P "eh_proj.weight 32 64\n" P "enorm.weight 32\n" P "hnorm.weight 32\n"
#define LATE_EXPERTS                                                          \
    L1 "mlp.experts.@.gate_proj.weight 24 32\n" L1                            \
       "mlp.experts.@.up_proj.weight 24 32\n" L1                              \
       "mlp.experts.@.down_proj.weight 32 24\n"

#define OMNI   "thinker.model."
#define OMNI_L OMNI "layers.%."

#define BAILING_2                                                             \
    BAILING_TOP BAILING NORMS L                                               \
        "attention.query_layernorm.weight 8\n" L                              \
        "attention.key_layernorm.weight 8\n" LEAD LATE_MOE L1                 \
        "mlp.gate.expert_bias 3\n" L2                                         \
        "attention.query_key_value.weight 64 32\n" L2                         \
        "attention.dense.weight 32 32\n" L2                                   \
        "attention.query_layernorm.weight 8\n" L2                             \
        "attention.key_layernorm.weight 8\n" L2                               \
        "input_layernorm.weight 32\n" L2                                      \
        "post_attention_layernorm.weight 32\n" L2 "mlp.gate.weight 3 32\n" L2 \
        "mlp.gate.expert_bias 3\n" L2                                         \
        "mlp.experts.@.gate_proj.weight 24 32\n" L2                           \
        "mlp.experts.@.up_proj.weight 24 32\n" L2                             \
        "mlp.experts.@.down_proj.weight 32 24\n" SHARED(L2) L2                \
        "eh_proj.weight 32 64\n" L2 "enorm.weight 32\n" L2                    \
        "hnorm.weight 32\n" L2 "final_layernorm.weight 32\n"

const struct arch archs_routed[] = {
    { .class_name = "BailingMoeForCausalLM",
      "bailingmoe",
      SIZES MOE_SIZES ",\"num_shared_experts\":1,\"first_k_dense_replace\":0,"
                      "\"norm_topk_prob\":true,\"norm_head\":false",
      BAILING_TOP BAILING NORMS MOE SHARED(L),
      { { B "attn_q.weight", L "attention.query_key_value.weight", bailing_q },
        { B "attn_k.weight", L "attention.query_key_value.weight", bailing_k },
        { B "attn_v.weight", L "attention.query_key_value.weight", bailing_v },
        MOE_NAMES },
      { { "rope.dimension_count", "8" },
        { "expert_weights_scale", "1" },
        { "expert_weights_norm", "true" },
        { "expert_shared_count", "1" } } },
    { .class_name = "BailingMoeV2ForCausalLM",
      "bailingmoe2",
      SIZES MOE_SIZES ",\"num_shared_experts\":1,\"first_k_dense_replace\":1,"
                      "\"norm_topk_prob\":true,\"head_dim\":8,"
                      "\"score_function\":\"sigmoid\",\"n_group\":1,"
                      "\"topk_group\":1,\"routed_scaling_factor\":2.5,"
                      "\"partial_rotary_factor\":0.5,"
                      "\"num_nextn_predict_layers\":1",
      BAILING_2,
      { { B "attn_qkv.weight", L "attention.query_key_value.weight", same },
        { "blk.1.exp_probs_b.bias", L1 "mlp.gate.expert_bias", same },
        { "blk.1.ffn_up_exps.weight", L1 "mlp.experts.@.up_proj.weight",
          same },
        { "blk.2.nextn.eh_proj.weight", L2 "eh_proj.weight", same },
        { "blk.2.layer_output_norm.weight", L2 "final_layernorm.weight",
          same } },
      { { "block_count", "3" },
        { "nextn_predict_layers", "1" },
        { "rope.dimension_count", "4" },
        { "expert_gating_func", "2" },
        { "expert_shared_feed_forward_length", "24" },
        { "expert_weights_scale", "2.5" },
        { "leading_dense_block_count", "1" } } },
    { .class_name = "SarvamMoEForCausalLM",
      "bailingmoe2",
      SIZES MOE_SIZES ",\"num_shared_experts\":1,\"first_k_dense_replace\":1,"
                      "\"norm_topk_prob\":true,\"head_dim\":8,"
                      "\"score_function\":\"sigmoid\",\"n_group\":1,"
                      "\"topk_group\":1,\"routed_scaling_factor\":2.5,"
                      "\"num_nextn_predict_layers\":1",
      BAILING_2,
      { { "blk.1.exp_probs_b.bias", L1 "mlp.gate.expert_bias", same } },
      { { "block_count", "3" }, { "rope.dimension_count", "8" } } },
    { .class_name = "Qwen3VLMoeForConditionalGeneration",
      "qwen3vlmoe",
      "\"text_config\":{" SIZES MOE_SIZES
      ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"default\","
      "\"mrope_section\":[2,1,1],\"mrope_interleaved\":true}},"
      "\"vision_config\":{\"deepstack_visual_indexes\":[8,16,24]}",
      "model.language_model.embed_tokens.weight 260 32\n"
      "model.language_model.norm.weight 32\n" HEAD QKV QK_NORM NORMS L
      "mlp.gate.weight 3 32\n" L "mlp.experts.gate_up_proj 3 32 48\n" L
      "mlp.experts.down_proj 3 24 32\n"
      "model.visual.blocks.0.norm1.weight 16\n",
      { { "token_embd.weight", "model.language_model.embed_tokens.weight",
          same },
        { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "ffn_gate_exps.weight", L "mlp.experts.gate_up_proj", vl_gate },
        { B "ffn_up_exps.weight", L "mlp.experts.gate_up_proj", vl_up },
        { B "ffn_down_exps.weight", L "mlp.experts.down_proj", vl_down } },
      { { "n_deepstack_layers", "3" },
        { "rope.dimension_sections", "2,1,1,0" },
        { "expert_feed_forward_length", "24" } } },
    { .class_name = "Qwen3OmniMoeForConditionalGeneration",
      "qwen3vlmoe",
      "\"thinker_config\":{\"text_config\":{" SIZES MOE_SIZES
      ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"default\","
      "\"mrope_section\":[2,1,1],\"interleaved\":true}},\"vision_config\":"
      "{\"deepstack_visual_indexes\":[8,16,24]}}",
      OMNI "embed_tokens.weight 260 32\n" OMNI "norm.weight 32\n"
           "thinker.lm_head.weight 260 32\n" OMNI_L
           "self_attn.q_proj.weight 32 32\n" OMNI_L
           "self_attn.k_proj.weight 16 32\n" OMNI_L
           "self_attn.v_proj.weight 16 32\n" OMNI_L
           "self_attn.o_proj.weight 32 32\n" OMNI_L
           "self_attn.q_norm.weight 8\n" OMNI_L
           "self_attn.k_norm.weight 8\n" OMNI_L
           "input_layernorm.weight 32\n" OMNI_L
           "post_attention_layernorm.weight 32\n" OMNI_L
           "mlp.gate.weight 3 32\n" OMNI_L
           "mlp.experts.@.gate_proj.weight 24 32\n" OMNI_L
           "mlp.experts.@.up_proj.weight 24 32\n" OMNI_L
           "mlp.experts.@.down_proj.weight 32 24\n"
           "code2wav.code_embedding.weight 8 8\ntalker.codec_head.weight 8 8\n"
           "thinker.audio_tower.ln_post.weight 8\n"
           "thinker.visual.blocks.0.norm1.weight 16\n",
      { { B "ffn_up_exps.weight", OMNI_L "mlp.experts.@.up_proj.weight",
          same } },
      { { "n_deepstack_layers", "0" },
        { "rope.dimension_sections", "2,1,1,0" },
        { "expert_feed_forward_length", "24" } } },
    { .class_name = "RND1",
      "rnd1",
      SIZES MOE_SIZES ",\"head_dim\":8,\"mask_token_id\":257",
      TOP HEAD QKV QK_NORM NORMS MOE,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same }, MOE_NAMES },
      { { "attention.causal", "false" },
        { "expert_feed_forward_length", "24" } } },
    { .class_name = "ExaoneMoeForCausalLM",
      "exaone-moe",
      SIZES MOE_SIZES
      ",\"head_dim\":8,\"num_shared_experts\":1,\"first_k_dense_replace\":1,"
      "\"sliding_window\":16,\"layer_types\":[\"sliding_attention\","
      "\"full_attention\"],\"scoring_func\":\"sigmoid\",\"norm_topk_prob\":"
      "true,\"routed_scaling_factor\":2.5,\"n_group\":1,\"topk_group\":1,"
      "\"num_nextn_predict_layers\":1",
      TOP HEAD QKV QK_NORM NORMS LEAD LATE_MOE L1
      "mlp.e_score_correction_bias 3\n" LAYER(
          MTP) "mtp.fc.weight 32 64\nmtp.pre_fc_norm_embedding.weight 32\n"
               "mtp.pre_fc_norm_hidden.weight 32\nmtp.norm.weight 32\n",
      { { "blk.1.exp_probs_b.bias", L1 "mlp.e_score_correction_bias", same },
        { "blk.2.attn_k.weight", MTP "self_attn.k_proj.weight", same },
        { "blk.2.ffn_norm.weight", MTP "post_attention_layernorm.weight",
          same },
        { "blk.2.nextn.eh_proj.weight", "mtp.fc.weight", same },
        { "blk.2.nextn.shared_head_norm.weight", "mtp.norm.weight", same } },
      { { "attention.sliding_window_pattern", "true,false" },
        { "block_count", "3" },
        { "nextn_predict_layers", "1" },
        { "leading_dense_block_count", "1" },
        { "expert_shared_feed_forward_length", "24" },
        { "expert_gating_func", "2" },
        { "rope.scaling.type", "none" } } },
    { .class_name = "AfmoeForCausalLM",
      "afmoe",
      SIZES MOE_SIZES
      ",\"head_dim\":8,\"num_shared_experts\":1,\"num_dense_layers\":1,"
      "\"score_func\":\"sigmoid\",\"route_norm\":true,\"route_scale\":2.5,"
      "\"sliding_window\":16,\"mup_enabled\":true,"
      "\"global_attn_every_n_layers\":4",
      TOP HEAD QKV QK_NORM L
      "self_attn.gate_proj.weight 32 32\n" NORMS L
      "pre_mlp_layernorm.weight 32\n" L
      "post_mlp_layernorm.weight 32\n" LEAD L1
      "mlp.router.gate.weight 3 32\n" L1 "mlp.expert_bias 3\n" L1
      "mlp.experts.@.gate_proj.weight 24 32\n" L1
      "mlp.experts.@.up_proj.weight 24 32\n" L1
      "mlp.experts.@.down_proj.weight 32 24\n" SHARED(L1),
      { { B "attn_gate.weight", L "self_attn.gate_proj.weight", same },
        { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same },
        { B "ffn_norm.weight", L "pre_mlp_layernorm.weight", same },
        { B "post_ffw_norm.weight", L "post_mlp_layernorm.weight", same },
        { "blk.1.exp_probs_b.bias", L1 "mlp.expert_bias", same } },
      { { "expert_weights_scale", "2.5" },
        { "expert_weights_norm", "true" },
        { "leading_dense_block_count", "1" },
        { "attention.sliding_window", "16" },
        { "vocab_size", "260" },
        { "rope.dimension_count", "8" } } },
    { .class_name = "SmallThinkerForCausalLM",
      "smallthinker",
      "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
      "\"num_key_value_heads\":2,\"head_dim\":8,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,\"rope_theta\":"
      "1.5e6,\"moe_num_primary_experts\":3,"
      "\"moe_num_active_primary_experts\":2,\"moe_ffn_hidden_size\":24,"
      "\"moe_primary_router_apply_softmax\":false,"
      "\"sliding_window_layout\":[0,1],\"sliding_window_size\":4096",
      TOP HEAD QKV NORMS L "block_sparse_moe.primary_router.weight 3 32\n" L
                           "block_sparse_moe.experts.@.gate.weight 24 32\n" L
                           "block_sparse_moe.experts.@.up.weight 24 32\n" L
                           "block_sparse_moe.experts.@.down.weight 32 24\n",
      { { B "ffn_gate_inp.weight", L "block_sparse_moe.primary_router.weight",
          same },
        { B "ffn_down_exps.weight", L "block_sparse_moe.experts.@.down.weight",
          same } },
      { { "expert_count", "3" },
        { "expert_used_count", "2" },
        { "expert_gating_func", "2" },
        { "expert_feed_forward_length", "24" },
        { "attention.sliding_window", "4096" } } },
#define T  "model.transformer."
#define TB T "blocks.%."
    { .class_name = "LLaDAModelLM",
      "llada",
      "\"d_model\":32,\"n_heads\":4,\"n_kv_heads\":2,\"n_layers\":2,"
      "\"mlp_hidden_size\":48,\"max_sequence_length\":64,\"rope_theta\":"
      "500000.0,\"rms_norm_eps\":1e-5,\"vocab_size\":260",
      T "wte.weight 260 32\n" T "ln_f.weight 32\n" T
        "ff_out.weight 260 32\n" TB "attn_norm.weight 32\n" TB
        "q_proj.weight 32 32\n" TB "k_proj.weight 16 32\n" TB
        "v_proj.weight 16 32\n" TB "attn_out.weight 32 32\n" TB
        "ff_norm.weight 32\n" TB "ff_proj.weight 48 32\n" TB
        "up_proj.weight 48 32\n" TB "ff_out.weight 32 48\n",
      { { B "attn_q.weight", TB "q_proj.weight", paired },
        { B "attn_k.weight", TB "k_proj.weight", paired },
        { B "attn_v.weight", TB "v_proj.weight", same },
        { B "ffn_gate.weight", TB "ff_proj.weight", same },
        { B "ffn_down.weight", TB "ff_out.weight", same },
        { "output.weight", T "ff_out.weight", same } },
      { { "attention.causal", "false" },
        { "embedding_length", "32" },
        { "feed_forward_length", "48" },
        { "attention.head_count_kv", "2" },
        { "context_length", "64" },
        { "rope.dimension_count", "8" },
        { BOS, "true" } } },
    { .class_name = "LLaDAMoEModelLM",
      "llada-moe",
      MHA ",\"num_experts\":3,\"num_experts_per_tok\":2,"
          "\"expert_intermediate_size\":24",
      TOP HEAD QKV_32 QK_NORM NORMS MOE,
      { MOE_NAMES },
      { { "expert_feed_forward_length", "24" },
        { "attention.causal", "false" } } },
    { .class_name = "Grok1ForCausalLM",
      "grok",
      SIZES GROK_SIZES ",\"rope_type\":\"original\",\"scaling_factor\":16.0,"
                       "\"original_max_position_embeddings\":8192,"
                       "\"extrapolation_factor\":1.0,\"attn_factor\":1.0,"
                       "\"beta_fast\":8,\"beta_slow\":1,"
                       "\"attn_temperature_len\":1024",
      TOP HEAD QKV GROK_NORMS MLP MIXTRAL_24(L),
      { { B "attn_output_norm.weight", L "post_attn_norm.weight", same },
        { B "ffn_norm.weight", L "pre_moe_norm.weight", same },
        { B "post_ffw_norm.weight", L "post_moe_norm.weight", same },
        { B "ffn_up.weight", L "mlp.up_proj.weight", same },
        { B "ffn_down_exps.weight", L "block_sparse_moe.experts.@.w2.weight",
          same } },
      { { "rope.scaling.type", "yarn" },
        { "rope.scaling.factor", "16" },
        { "rope.scaling.yarn_beta_fast", "8" },
        { "attn_logit_softcapping", "30" },
        { "final_logit_softcapping", "50" },
        { "attention.output_scale", "0.3535534" },
        { "attention.temperature_length", "1024" },
        { "embedding_scale", "90.5" },
        { "logit_scale", "0.5" } } },
    { .class_name = "GrokForCausalLM",
      "grok",
      SIZES ",\"num_local_experts\":3,\"num_experts_per_tok\":2,"
            "\"attn_output_multiplier\":0.125,\"embedding_multiplier_scale\":"
            "78.5,\"output_multiplier_scale\":0.5",
      "transformer.in_out_embed.weight 260 32\ntransformer.rms_norm.weight "
      "32\n" HEAD G "rms_norm.weight 32\n" G "rms_norm_1.weight 32\n" G
      "rms_norm_2.weight 32\n" G "rms_norm_3.weight 32\n" G
      "multi_head_attention.query.weight 32 32\n" G
      "multi_head_attention.key.weight 16 32\n" G
      "multi_head_attention.value.weight 16 32\n" G
      "multi_head_attention.linear.weight 32 32\n" G "router.weight 3 32\n" G
      "moe.@.linear.weight 48 32\n" G "moe.@.linear_v.weight 48 32\n" G
      "moe.@.linear_1.weight 32 48\n",
      { { B "layer_output_norm.weight", G "rms_norm_3.weight", same },
        { B "ffn_gate_exps.weight", G "moe.@.linear.weight", same },
        { B "ffn_up_exps.weight", G "moe.@.linear_v.weight", same },
        { B "ffn_down_exps.weight", G "moe.@.linear_1.weight", same } },
      { { "attention.output_scale", "0.125" },
        { "attn_logit_softcapping", "30" },
        { "embedding_scale", "78.5" } } },
    { .class_name = "ArcticForCausalLM",
      "arctic",
      SIZES ",\"num_local_experts\":3,\"num_experts_per_tok\":2",
      TOP HEAD QKV NORMS L
      "residual_layernorm.weight 32\n" L "residual_mlp.w1.weight 32 32\n" L
      "residual_mlp.w2.weight 32 32\n" L "residual_mlp.w3.weight 32 32\n" L
      "block_sparse_moe.gate.weight 3 32\n" L
      "block_sparse_moe.experts.@.w1.weight 48 32\n" L
      "block_sparse_moe.experts.@.w2.weight 32 48\n" L
      "block_sparse_moe.experts.@.w3.weight 48 32\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired },
        { B "attn_k.weight", L "self_attn.k_proj.weight", paired },
        { B "ffn_norm.weight", L "residual_layernorm.weight", same },
        { B "ffn_norm_exps.weight", L "post_attention_layernorm.weight",
          same },
        { B "ffn_gate.weight", L "residual_mlp.w1.weight", same },
        { B "ffn_up.weight", L "residual_mlp.w3.weight", same },
        { B "ffn_up_exps.weight", L "block_sparse_moe.experts.@.w3.weight",
          same } },
      { { "rope.dimension_count", "8" },
        { "vocab_size", "260" },
        { "/general.size_label", "3x39K" } } },
    { .class_name = "GroveMoeForCausalLM",
      "grovemoe",
      SIZES ",\"head_dim\":8,\"num_experts\":6,\"num_experts_per_tok\":2,"
            "\"moe_intermediate_size\":24",
      TOP HEAD QKV QK_NORM NORMS L
      "mlp.gate.weight 6 32\n" SIX L "mlp.expert_bias 6\n" L
      "mlp.chunk_experts.@.gate_proj.weight 8 "
      "32\n" L "mlp.chunk_experts.@.up_proj.weight 8 "
      "32\n" L "mlp.chunk_experts.@.down_proj.weight 32 "
      "8\n",
      { { B "ffn_gate_chexps.weight", L "mlp.chunk_experts.@.gate_proj.weight",
          same },
        { B "ffn_down_chexps.weight", L "mlp.chunk_experts.@.down_proj.weight",
          same } },
      { { "expert_chunk_feed_forward_length", "8" },
        { "experts_per_group", "2" },
        { "expert_group_scale", "0.05" },
        { "expert_feed_forward_length", "24" } } },
    { .class_name = "HYV3ForCausalLM",
      "hy_v3",
      SIZES MOE_SIZES ",\"head_dim\":8,\"num_shared_experts\":1,"
                      "\"route_norm\":true,\"router_scaling_factor\":2.5,"
                      "\"num_nextn_predict_layers\":1",
      TOP HEAD QKV QK_NORM NORMS LEAD L1
      "mlp.router.gate.weight 3 32\n" L1 "mlp.expert_bias 3\n" LATE_EXPERTS L1
      "mlp.shared_mlp.gate_proj.weight 24 32\n" L1
      "mlp.shared_mlp.up_proj.weight 24 32\n" L1
      "mlp.shared_mlp.down_proj.weight 32 24\n" LAYER(L2) HEADS(L2) L2
      "final_layernorm.weight 32\n",
      { { "blk.1.exp_probs_b", L1 "mlp.expert_bias", same },
        { "blk.1.ffn_gate_inp.weight", L1 "mlp.router.gate.weight", same },
        { "blk.1.ffn_up_shexp.weight", L1 "mlp.shared_mlp.up_proj.weight",
          same },
        { "blk.2.nextn.shared_head_norm.weight", L2 "final_layernorm.weight",
          same } },
      { { "expert_gating_func", "2" },
        { "expert_weights_norm", "true" },
        { "expert_weights_scale", "2.5" },
        { "expert_shared_feed_forward_length", "24" },
        { "block_count", "3" },
        { "nextn_predict_layers", "1" } } },
    { .class_name = "Cohere2MoeForCausalLM",
      "cohere2moe",
      "\"hidden_size\":32,\"intermediate_size\":24,"
      "\"prefix_dense_intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"
      "\"vocab_size\":260,\"max_position_embeddings\":64,"
      "\"layer_norm_eps\":1e-5,\"rms_norm_eps\":null,\"rope_theta\":50000,"
      "\"logit_scale\":0.25,\"sliding_window\":16,\"layer_types\":["
      "\"full_attention\",\"sliding_attention\"],\"mlp_layer_types\":["
      "\"dense\",\"sparse\"],\"num_experts\":3,\"num_experts_per_tok\":2,"
      "\"expert_selection_fn\":\"sigmoid\",\"norm_topk_prob\":true,"
      "\"num_shared_experts\":1,\"shared_expert_combination_strategy\":"
      "\"average\"",
      TOP QKV L "input_layernorm.weight 32\n" LEAD LATE_MOE,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { "blk.1.ffn_up_exps.weight", L1 "mlp.experts.@.up_proj.weight",
          same } },
      { { "feed_forward_length", "48" },
        { "expert_feed_forward_length", "24" },
        { "expert_shared_feed_forward_length", "24" },
        { "attention.sliding_window_pattern", "false,true" },
        { "leading_dense_block_count", "1" },
        { "expert_gating_func", "2" },
        { "logit_scale", "0.25" },
        { "rope.scaling.type", "none" } } },
    { .class_name = NULL },
};
