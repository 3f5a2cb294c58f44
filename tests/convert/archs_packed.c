/* SPDX-License-Identifier: MIT */
/* archs_packed.c - experts in the other form than their class has them
 *
 * transformers 5 has the experts of most classes packed in memory, and folders
 * may be saved so; quantizers need them one by one. The names are those of
 * conversion_mapping.py (transformers 5.3), of llm-compressor
 * (feed_forward.experts.N), of unsloth's GPT-OSS (gate_up_projs.N) and of
 * LnL-AI/dbrx-base-converted-v2.
 */
#include "config.h"
#include "tests/convert/archs.h"

/* Rows of t are 2 f for each expert, gates first: those of the gates, of the
 * others. */
static float half_of_each(const struct folder_tensor *t, uint64_t i,
                          uint64_t no)
{
    const uint64_t half = t->shape[1] / 2 * t->shape[2];
    return folder_value(t->name, i / half * 2 * half + no * half + i % half);
}

static float gates(const struct folder_tensor *t, uint64_t i)
{
    return half_of_each(t, i, 0);
}

static float others(const struct folder_tensor *t, uint64_t i)
{
    return half_of_each(t, i, 1);
}

/* Of one expert's rows, in turn a gate and another. */
static float turn_of(const struct folder_tensor *t, uint64_t i, uint64_t no)
{
    const uint64_t cols = t->n_dims > 1 ? t->shape[1] : 1;
    const uint64_t n = t->shape[0] / 2 * cols, k = i % n;
    return folder_value(t->name, (k / cols * 2 + no) * cols + k % cols);
}

static float even_rows(const struct folder_tensor *t, uint64_t i)
{
    return turn_of(t, i, 0);
}

static float odd_rows(const struct folder_tensor *t, uint64_t i)
{
    return turn_of(t, i, 1);
}

static float of_each(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i % t->n);
}

#define EACH(P)                                                               \
    P "gate_proj.weight 24 32\n" P "up_proj.weight 24 32\n" P                 \
      "down_proj.weight 32 24\n"
#define OSS                                                                   \
    "\"hidden_size\":32,\"intermediate_size\":24,\"num_hidden_layers\":2,"    \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"     \
    "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":"     \
    "1e-5,\"num_local_experts\":3,\"num_experts_per_tok\":2,"                 \
    "\"sliding_window\":16,\"rope_theta\":150000"
#define OSS_TENSORS                                                           \
    TOP HEAD QKV QKV_B NORMS L                                                \
        "self_attn.o_proj.bias 32\n" L "self_attn.sinks 4\n" L                \
        "mlp.router.weight 3 32\n" L "mlp.router.bias 3\n"
#define D  "transformer.blocks.%."
#define F1 "model.layers.1.feed_forward."
#define M2 "backbone.layers.2.mixer."
#define N0 "backbone.layers.0.mixer."
#define N1 "backbone.layers.1.mixer."

const struct arch archs_packed[] = {
    { .class_name = "MixtralForCausalLM",
      "llama",
      SIZES ",\"num_local_experts\":3,\"num_experts_per_tok\":2",
      TOP HEAD QKV NORMS L "mlp.gate.weight 3 32\n" L
                           "mlp.experts.gate_up_proj 3 96 32\n" L
                           "mlp.experts.down_proj 3 32 48\n",
      { { B "ffn_gate_inp.weight", L "mlp.gate.weight", same },
        { B "ffn_gate_exps.weight", L "mlp.experts.gate_up_proj", gates },
        { B "ffn_up_exps.weight", L "mlp.experts.gate_up_proj", others },
        { B "ffn_down_exps.weight", L "mlp.experts.down_proj", same } } },
    { .class_name = "Llama4ForCausalLM",
      "llama4",
      "\"hidden_size\":32,\"intermediate_size\":24,\"intermediate_size_mlp\":"
      "48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
      "\"num_key_value_heads\":2,\"head_dim\":8,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,\"rope_theta\":"
      "500000.0,\"num_local_experts\":3,\"num_experts_per_tok\":1,"
      "\"interleave_moe_layer_step\":1",
      TOP HEAD QKV NORMS L "feed_forward.router.weight 3 32\n" EACH(
          L "feed_forward.experts.@.") EACH(L "feed_forward.shared_expert."),
      { { B "ffn_gate_exps.weight",
          L "feed_forward.experts.@.gate_proj.weight", of_each },
        { B "ffn_up_exps.weight", L "feed_forward.experts.@.up_proj.weight",
          of_each },
        { B "ffn_down_exps.weight",
          L "feed_forward.experts.@.down_proj.weight", of_each } } },
    { .class_name = "GptOssForCausalLM",
      "gpt-oss",
      OSS,
      OSS_TENSORS EACH(L "mlp.experts.@.") L
      "mlp.experts.@.gate_proj.bias 24\n" L "mlp.experts.@.up_proj.bias 24\n" L
      "mlp.experts.@.down_proj.bias 32\n",
      { { B "ffn_gate_exps.weight", L "mlp.experts.@.gate_proj.weight",
          of_each },
        { B "ffn_up_exps.bias", L "mlp.experts.@.up_proj.bias", of_each },
        { B "ffn_down_exps.bias", L "mlp.experts.@.down_proj.bias",
          of_each } } },
    { .class_name = "GptOssForCausalLM",
      "gpt-oss",
      OSS,
      OSS_TENSORS L "mlp.experts.gate_up_projs.@.weight 48 32\n" L
                    "mlp.experts.gate_up_projs.@.bias 48\n" L
                    "mlp.experts.down_projs.@.weight 32 24\n" L
                    "mlp.experts.down_projs.@.bias 32\n",
      { { B "ffn_gate_exps.weight", L "mlp.experts.gate_up_projs.@.weight",
          even_rows },
        { B "ffn_up_exps.weight", L "mlp.experts.gate_up_projs.@.weight",
          odd_rows },
        { B "ffn_gate_exps.bias", L "mlp.experts.gate_up_projs.@.bias",
          even_rows },
        { B "ffn_up_exps.bias", L "mlp.experts.gate_up_projs.@.bias",
          odd_rows },
        { B "ffn_down_exps.weight", L "mlp.experts.down_projs.@.weight",
          of_each } } },
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
      "ffn.router.layer.weight 3 32\n" D
      "ffn.experts.mlp.@.w1.weight 24 32\n" D
      "ffn.experts.mlp.@.v1.weight 24 32\n" D
      "ffn.experts.mlp.@.w2.weight 32 24\n",
      { { B "ffn_gate_exps.weight", D "ffn.experts.mlp.@.w1.weight", of_each },
        { B "ffn_down_exps.weight", D "ffn.experts.mlp.@.w2.weight",
          of_each } } },
    { .class_name = "Lfm2MoeForCausalLM",
      "lfm2moe",
      SIZES ",\"conv_L_cache\":3,\"layer_types\":[\"full_attention\","
            "\"full_attention\"],\"norm_eps\":1e-5,\"num_experts\":3,"
            "\"num_experts_per_tok\":2,\"moe_intermediate_size\":24,"
            "\"num_dense_layers\":1",
      "model.embed_tokens.weight 260 32\nmodel.embedding_norm.weight 32\n" L
      "operator_norm.weight 32\n" L "ffn_norm.weight 32\n" L
      "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 16 32\n" L
      "self_attn.v_proj.weight 16 32\n" L "self_attn.out_proj.weight 32 32\n" L
      "self_attn.q_layernorm.weight 8\n" L "self_attn.k_layernorm.weight 8\n"
      "model.layers.0.feed_forward.w1.weight 48 32\n"
      "model.layers.0.feed_forward.w2.weight 32 48\n"
      "model.layers.0.feed_forward.w3.weight 48 32\n" F1
      "gate.weight 3 32\n" F1 "expert_bias 3\n" F1
      "experts.gate_up_proj 3 48 32\n" F1 "experts.down_proj 3 32 24\n",
      { { "blk.1.ffn_gate_exps.weight", F1 "experts.gate_up_proj", gates },
        { "blk.1.ffn_up_exps.weight", F1 "experts.gate_up_proj", others },
        { "blk.1.ffn_down_exps.weight", F1 "experts.down_proj", same } } },
    { .class_name = "NemotronHForCausalLM",
      "nemotron_h_moe",
      "\"hidden_size\":32,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
      "\"num_key_value_heads\":2,\"head_dim\":8,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"layer_norm_epsilon\":1e-5,"
      "\"conv_kernel\":4,\"ssm_state_size\":8,\"n_groups\":1,"
      "\"mamba_num_heads\":4,\"mamba_head_dim\":8,\"expand\":2,"
      "\"hybrid_override_pattern\":\"**E\",\"intermediate_size\":48,"
      "\"moe_intermediate_size\":24,\"moe_shared_expert_intermediate_size\":40,"
      "\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
      "\"n_shared_experts\":1,\"norm_topk_prob\":true,"
      "\"routed_scaling_factor\":2.5,\"n_group\":1,\"topk_group\":1",
      "backbone.embeddings.weight 260 32\nbackbone.norm_f.weight 32\n"
      "lm_head.weight 260 32\nbackbone.layers.0.norm.weight 32\n"
      "backbone.layers.1.norm.weight 32\nbackbone.layers.2.norm.weight 32\n" N0
      "q_proj.weight 32 32\n" N0 "k_proj.weight 16 32\n" N0
      "v_proj.weight 16 32\n" N0 "o_proj.weight 32 32\n" N1
      "q_proj.weight 32 32\n" N1 "k_proj.weight 16 32\n" N1
      "v_proj.weight 16 32\n" N1 "o_proj.weight 32 32\n" M2
      "gate.weight 3 32\n" M2 "gate.e_score_correction_bias 3\n" M2
      "experts.up_proj 3 24 32\n" M2 "experts.down_proj 3 32 24\n" M2
      "shared_experts.up_proj.weight 40 32\n" M2
      "shared_experts.down_proj.weight 32 40\n",
      { { "blk.2.ffn_up_exps.weight", M2 "experts.up_proj", same },
        { "blk.2.ffn_down_exps.weight", M2 "experts.down_proj", same } } },
    { .vocab = folder_ranked,
      .class_name = "Gemma4ForCausalLM",
      "gemma4",
      SIZES
      ",\"head_dim\":8,\"global_head_dim\":8,\"sliding_window\":16,"
      "\"layer_types\":[\"sliding_attention\",\"full_attention\"],"
      "\"num_kv_shared_layers\":0,\"hidden_size_per_layer_input\":0,"
      "\"num_experts\":3,\"top_k_experts\":2,\"enable_moe_block\":true,"
      "\"moe_intermediate_size\":24,\"final_logit_softcapping\":30.0,"
      "\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
      "\"proportional\",\"rope_theta\":1e6,\"partial_rotary_factor\":0.25},"
      "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":"
      "10000.0}}",
      TOP QKV QK_NORM MLP L
      "input_layernorm.weight 32\n" POST L
      "pre_feedforward_layernorm.weight 32\n" L "layer_scalar 1\n" L
      "router.proj.weight 3 32\n" L "router.scale 32\n" L
      "router.per_expert_scale 3\n" EACH(L "experts.@.") L
      "pre_feedforward_layernorm_2.weight 32\n" L
      "post_feedforward_layernorm_1.weight 32\n" L
      "post_feedforward_layernorm_2.weight 32\n",
      { { B "ffn_gate_exps.weight", L "experts.@.gate_proj.weight", of_each },
        { B "ffn_up_exps.weight", L "experts.@.up_proj.weight", of_each },
        { B "ffn_down_exps.weight", L "experts.@.down_proj.weight",
          of_each } } },
    { .class_name = "ModernBertModel", /* norm_eps and another number */
      "modern-bert",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"norm_eps\":3e-6,\"layer_norm_eps\":"
      "1e-5,\"local_attention\":16,\"global_attn_every_n_layers\":3,"
      "\"global_rope_theta\":160000.0,\"local_rope_theta\":10000.0,"
      "\"hidden_activation\":\"gelu\"",
      "model.embeddings.tok_embeddings.weight 260 32\n"
      "model.embeddings.norm.weight 32\nmodel.final_norm.weight 32\n"
      "model.layers.1.attn_norm.weight 32\n" L "attn.Wqkv.weight 96 32\n" L
      "attn.Wo.weight 32 32\n" L "mlp_norm.weight 32\n" L
      "mlp.Wi.weight 96 32\n" L "mlp.Wo.weight 32 48\n",
      { { B "ffn_up.weight", L "mlp.Wi.weight", same } },
      { { "attention.layer_norm_epsilon", "3e-06" } } },
    { .class_name = "ModernBertModel", /* with norm_eps alone */
      "modern-bert",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"norm_eps\":1e-6,\"local_attention\":"
      "16,\"global_attn_every_n_layers\":3,\"global_rope_theta\":160000.0,"
      "\"local_rope_theta\":10000.0,\"hidden_activation\":\"gelu\"",
      "model.embeddings.tok_embeddings.weight 260 32\n"
      "model.embeddings.norm.weight 32\nmodel.final_norm.weight 32\n"
      "model.layers.1.attn_norm.weight 32\n" L "attn.Wqkv.weight 96 32\n" L
      "attn.Wo.weight 32 32\n" L "mlp_norm.weight 32\n" L
      "mlp.Wi.weight 96 32\n" L "mlp.Wo.weight 32 48\n",
      { { B "ffn_up.weight", L "mlp.Wi.weight", same } },
      { { "attention.layer_norm_epsilon", "1e-06" } } },
    { .class_name = NULL },
};
