/* SPDX-License-Identifier: MIT */
/* archs_recurrent.c - state spaces, the delta rule, RWKV, convolutions */
#include "config.h"
#include "tests/convert/archs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float scaled(const struct folder_tensor *t, uint64_t i, float by)
{
    return folder_value(t->name, i) * by;
}

static float times_3(const struct folder_tensor *t, uint64_t i)
{
    return scaled(t, i, 3);
}

static float times_half(const struct folder_tensor *t, uint64_t i)
{
    return scaled(t, i, 0.5f);
}

/* Falcon-H1: rows of z, x, B, C and the steps: 32, 32, 8, 8 and 4 of 32
 * columns, all by 2, then by 1, 0.5, 3, 4 and 0.25. */
static float zxbcdt(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 32;
    return scaled(t, i, 2) * (row < 32   ? 1.0f
                              : row < 64 ? 0.5f
                              : row < 72 ? 3.0f
                              : row < 80 ? 4.0f
                                         : 0.25f);
}

/* Qwen3-Next: 2 key heads, each with 8 rows of a query, 8 of a key, 2 heads of
 * 8 of values and as many of gates. */
static float qkv_row(const struct folder_tensor *t, uint64_t head, uint64_t in,
                     uint64_t col)
{
    return folder_value(t->name, (head * 48 + in) * 32 + col);
}

static float next_qkv(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 32, col = i % 32;
    return row < 16   ? qkv_row(t, row / 8, row % 8, col)
           : row < 32 ? qkv_row(t, row / 8 - 2, 8 + row % 8, col)
                      : qkv_row(t, (row - 32) / 16, 16 + row % 16, col);
}

static float next_z(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 32;
    return qkv_row(t, row / 16, 32 + row % 16, i % 32);
}

/* Qwen3.5: value head v of 4, which is of key head v / 2, lies where 2 (v % 2)
 * + v / 2 is: the place of a head to the head that comes there. */
static uint64_t from_head(uint64_t place)
{
    return place % 2 * 2 + place / 2;
}

static float tiled(const struct folder_tensor *t, uint64_t i, uint64_t first,
                   uint64_t head)
{
    const uint64_t cols = t->n / t->shape[0], row = i / cols, col = i % cols;
    if (row < first)
        return folder_value(t->name, i);
    const uint64_t v = row - first;
    return folder_value(
        t->name, (first + from_head(v / head) * head + v % head) * cols + col);
}

static float tiled_qkv(const struct folder_tensor *t, uint64_t i)
{
    return tiled(t, i, 32, 8);
}

static float tiled_z(const struct folder_tensor *t, uint64_t i)
{
    return tiled(t, i, 0, 8);
}

static float tiled_1(const struct folder_tensor *t, uint64_t i)
{
    return tiled(t, i, 0, 1);
}

static float tiled_exp(const struct folder_tensor *t, uint64_t i)
{
    return -expf(tiled(t, i, 0, 1));
}

static float tiled_out(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t row = i / 32, col = i % 32;
    return folder_value(t->name, row * 32 + from_head(col / 8) * 8 + col % 8);
}

/* RWKV-7: how much of the token before receptances, decays, keys, values,
 * rates and gates take, in that order; t is the first one. */
static float lerp(const struct folder_tensor *t, uint64_t i)
{
    char name[128];
    snprintf(name, sizeof name, "%s", t->name);
    name[strlen(name) - 1] = "rwkvag"[i / 128];
    return folder_value(name, i % 128);
}

#define R L "attn."
#define LORA(X)                                                               \
    R X "_lora.lora.0.weight 16 128\n" R X "_lora.lora.2.weight 128 16\n" R X \
        "_lora.lora.2.bias 128\n"
#define M  "backbone.layers.%.mixer."
#define A0 "model.layers.0.linear_attn."
#define A1 "model.layers.1.self_attn."
#define GATED_ATTENTION                                                       \
    A1 "q_proj.weight 64 32\n" A1 "k_proj.weight 16 32\n" A1                  \
       "v_proj.weight 16 32\n" A1 "o_proj.weight 32 32\n" A1                  \
       "q_norm.weight 8\n" A1 "k_norm.weight 8\n"
#define DELTA_SIZES                                                           \
    SIZES ",\"head_dim\":8,\"linear_num_key_heads\":2,"                       \
          "\"linear_num_value_heads\":4,\"linear_key_head_dim\":8,"           \
          "\"linear_value_head_dim\":8,\"linear_conv_kernel_dim\":4,"         \
          "\"full_attention_interval\":2,\"partial_rotary_factor\":0.5"
#define DELTA_35                                                              \
    A0 "in_proj_qkv.weight 64 32\n" A0 "in_proj_z.weight 32 32\n" A0          \
       "in_proj_b.weight 4 32\n" A0 "in_proj_a.weight 4 32\n" A0              \
       "A_log 4\n" A0 "dt_bias 4\n" A0 "conv1d.weight 64 1 4\n" A0            \
       "norm.weight 8\n" A0 "out_proj.weight 32 32\n"
#define SHARED_MOE                                                            \
    L "mlp.shared_expert_gate.weight 1 32\n" L                                \
      "mlp.shared_expert.gate_proj.weight 24 32\n" L                          \
      "mlp.shared_expert.up_proj.weight 24 32\n" L                            \
      "mlp.shared_expert.down_proj.weight 32 24\n"
#define MAMBA2(P)                                                             \
    P "in_proj.weight 84 32\n" P "conv1d.weight 48 1 4\n" P                   \
      "conv1d.bias 48\n" P "dt_bias 4\n" P "A_log 4\n" P "D 4\n" P            \
      "norm.weight 32\n" P "out_proj.weight 32 32\n"
#define MAMBA1(P)                                                             \
    P "in_proj.weight 128 32\n" P "conv1d.weight 64 1 4\n" P                  \
      "conv1d.bias 64\n" P "x_proj.weight 18 64\n" P                          \
      "dt_proj.weight 64 2\n" P "dt_proj.bias 64\n" P "A_log 64 8\n" P        \
      "D 64\n" P "out_proj.weight 32 64\n"
#define ATTENTION(P)                                                          \
    P "q_proj.weight 32 32\n" P "k_proj.weight 16 32\n" P                     \
      "v_proj.weight 16 32\n" P "o_proj.weight 32 32\n"
#define GRANITE                                                               \
    SIZES ",\"attention_multiplier\":0.1,\"embedding_multiplier\":12.0,"      \
          "\"residual_multiplier\":0.2,\"logits_scaling\":8.0,"               \
          "\"shared_intermediate_size\":48,\"mamba_d_conv\":4,"               \
          "\"mamba_d_state\":8,\"mamba_n_groups\":1,\"mamba_n_heads\":4,"     \
          "\"mamba_expand\":1,\"mamba_d_head\":8"
#define GRANITE_SHARED                                                        \
    L "shared_mlp.input_linear.weight 96 32\n" L                              \
      "shared_mlp.output_linear.weight 32 48\n"
#define GRANITE_MOE                                                           \
    L "block_sparse_moe.router.layer.weight 3 32\n" L                         \
      "block_sparse_moe.input_linear.weight 3 96 32\n" L                      \
      "block_sparse_moe.output_linear.weight 3 32 48\n"
#define HYBRID   ",\"layer_types\":[\"mamba\",\"attention\"]"
#define FULL     ",\"layer_types\":[\"attention\",\"attention\"]"
#define EXPERTS3 ",\"num_local_experts\":3,\"num_experts_per_tok\":2"
#define J0       "model.layers.0.mamba."
#define N_M      "backbone.layers.0.mixer."
#define N_A      "backbone.layers.1.mixer."
#define NEMOTRON                                                              \
    "\"hidden_size\":32,\"num_hidden_layers\":3,\"num_attention_heads\":4,"   \
    "\"num_key_value_heads\":2,\"head_dim\":8,\"vocab_size\":260,"            \
    "\"max_position_embeddings\":64,\"layer_norm_epsilon\":1e-5,"             \
    "\"conv_kernel\":4,\"ssm_state_size\":8,\"n_groups\":1,"                  \
    "\"mamba_num_heads\":4,\"mamba_head_dim\":8,\"expand\":2"
#define NEMOTRON_TOP                                                          \
    "backbone.embeddings.weight 260 32\nbackbone.norm_f.weight 32\n"          \
    "lm_head.weight 260 32\nbackbone.layers.0.norm.weight 32\n"               \
    "backbone.layers.1.norm.weight 32\nbackbone.layers.2.norm.weight 32\n"
#define NEMOTRON_TENSORS NEMOTRON_TOP MAMBA2(N_M) ATTENTION(N_A)
#define C0               "model.layers.0.conv."
#define LFM2                                                                  \
    "model.embed_tokens.weight 260 32\nmodel.embedding_norm.weight 32\n" L    \
    "operator_norm.weight 32\n" L "ffn_norm.weight 32\n" C0                   \
    "in_proj.weight 96 32\n" C0 "out_proj.weight 32 32\n" C0                  \
    "conv.weight 32 1 3\n" A1 "q_proj.weight 32 32\n" A1                      \
    "k_proj.weight 16 32\n" A1 "v_proj.weight 16 32\n" A1                     \
    "out_proj.weight 32 32\n" A1 "q_layernorm.weight 8\n" A1                  \
    "k_layernorm.weight 8\n"
#define LFM2_BARE                                                             \
    "embed_tokens.weight 260 32\nembedding_norm.weight 32\n"                  \
    "layers.%.operator_norm.weight 32\nlayers.%.ffn_norm.weight 32\n"         \
    "layers.0.conv.in_proj.weight 96 32\n"                                    \
    "layers.0.conv.out_proj.weight 32 32\n"                                   \
    "layers.0.conv.conv.weight 32 1 3\n"                                      \
    "layers.1.self_attn.q_proj.weight 32 32\n"                                \
    "layers.1.self_attn.k_proj.weight 16 32\n"                                \
    "layers.1.self_attn.v_proj.weight 16 32\n"                                \
    "layers.1.self_attn.out_proj.weight 32 32\n"                              \
    "layers.1.self_attn.q_layernorm.weight 8\n"                               \
    "layers.1.self_attn.k_layernorm.weight 8\n"                               \
    "layers.%.feed_forward.w1.weight 48 32\n"                                 \
    "layers.%.feed_forward.w2.weight 32 48\n"                                 \
    "layers.%.feed_forward.w3.weight 48 32\n"
#define LFM2_SIZES                                                            \
    SIZES                                                                     \
    ",\"conv_L_cache\":3,\"layer_types\":[\"conv\",\"full_attention\"],"      \
    "\"norm_eps\":1e-5"

/* A layer that drafts, with experts one by one. */
#define M0 "mtp.layers.0."
#define DRAFT                                                                 \
    M0 "input_layernorm.weight 32\n" M0                                       \
       "post_attention_layernorm.weight 32\n" M0                              \
       "self_attn.q_proj.weight 64 32\n" M0                                   \
       "self_attn.k_proj.weight 16 32\n" M0                                   \
       "self_attn.v_proj.weight 16 32\n" M0                                   \
       "self_attn.o_proj.weight 32 32\n" M0 "self_attn.q_norm.weight 8\n" M0  \
       "self_attn.k_norm.weight 8\n" M0 "mlp.gate.weight 3 32\n" M0           \
       "mlp.experts.@.gate_proj.weight 24 32\n" M0                            \
       "mlp.experts.@.up_proj.weight 24 32\n" M0                              \
       "mlp.experts.@.down_proj.weight 32 24\n" M0                            \
       "mlp.shared_expert_gate.weight 1 32\n" M0                              \
       "mlp.shared_expert.gate_proj.weight 24 32\n" M0                        \
       "mlp.shared_expert.up_proj.weight 24 32\n" M0                          \
       "mlp.shared_expert.down_proj.weight 32 24\n"                           \
       "mtp.fc.weight 32 64\nmtp.norm.weight 32\n"                            \
       "mtp.pre_fc_norm_embedding.weight 32\n"                                \
       "mtp.pre_fc_norm_hidden.weight 32\n"

const struct arch archs_recurrent[] = {
    { .class_name = "FalconMambaForCausalLM",
      "mamba",
      "\"hidden_size\":32,\"num_hidden_layers\":2,\"vocab_size\":260,"
      "\"conv_kernel\":4,\"intermediate_size\":64,\"state_size\":8,"
      "\"layer_norm_epsilon\":1e-5",
      "backbone.embeddings.weight 260 32\nbackbone.norm_f.weight 32\n"
      "lm_head.weight 260 32\nbackbone.layers.%.norm.weight 32\n" MAMBA1(M),
      { { B "ssm_a", M "A_log", neg_exp } },
      { { "ssm.dt_b_c_rms", "true" }, { "ssm.time_step_rank", "2" } } },
    { .class_name = "Mamba2ForCausalLM",
      "mamba2",
      "\"hidden_size\":32,\"num_hidden_layers\":2,\"vocab_size\":260,"
      "\"conv_kernel\":4,\"expand\":1,\"state_size\":8,\"head_dim\":8,"
      "\"n_groups\":1,\"layer_norm_epsilon\":1e-5",
      "backbone.embeddings.weight 260 32\nbackbone.norm_f.weight 32\n"
      "backbone.layers.%.norm.weight 32\n" MAMBA2(M),
      { { B "ssm_a", M "A_log", neg_exp },
        { B "ssm_dt.bias", M "dt_bias", same },
        { B "ssm_norm.weight", M "norm.weight", same },
        { B "ssm_conv1d.weight", M "conv1d.weight", same } },
      { { "ssm.inner_size", "32" },
        { "ssm.time_step_rank", "4" },
        { "ssm.group_count", "1" } } },
    { .class_name = "JambaForCausalLM",
      "jamba",
      SIZES ",\"mamba_d_conv\":4,\"mamba_d_state\":8,\"mamba_expand\":2,"
            "\"mamba_dt_rank\":2,\"attn_layer_period\":2,"
            "\"attn_layer_offset\":1,\"expert_layer_period\":2,"
            "\"expert_layer_offset\":1,\"num_experts\":3,"
            "\"num_experts_per_tok\":2",
      "model.embed_tokens.weight 260 32\nmodel.final_layernorm.weight 32\n" HEAD
          L "input_layernorm.weight 32\n" L
      "pre_ff_layernorm.weight 32\n" MAMBA1(J0) J0
      "dt_layernorm.weight 2\n" J0 "b_layernorm.weight 8\n" J0
      "c_layernorm.weight 8\n" ATTENTION(
          A1) "model.layers.0.feed_forward.gate_proj.weight 48 32\n"
              "model.layers.0.feed_forward.up_proj.weight 48 32\n"
              "model.layers.0.feed_forward.down_proj.weight 32 48\n"
              "model.layers.1.feed_forward.router.weight 3 32\n"
              "model.layers.1.feed_forward.experts.@.gate_proj.weight 48 32\n"
              "model.layers.1.feed_forward.experts.@.up_proj.weight 48 32\n"
              "model.layers.1.feed_forward.experts.@.down_proj.weight 32 48\n",
      { { "blk.0.ssm_a", J0 "A_log", neg_exp },
        { "blk.1.ffn_up_exps.weight",
          "model.layers.1.feed_forward.experts.@.up_proj.weight", same },
        { "blk.0.ssm_b_norm.weight", J0 "b_layernorm.weight", same } },
      { { "attention.head_count_kv", "0,2" } } },
    { .class_name = "FalconH1ForCausalLM",
      "falcon-h1",
      SIZES ",\"head_dim\":8,\"mamba_d_conv\":4,\"mamba_d_ssm\":32,"
            "\"mamba_d_state\":8,\"mamba_d_head\":8,\"mamba_n_groups\":1,"
            "\"ssm_in_multiplier\":2.0,\"ssm_multipliers\":[1.0,0.5,3.0,4.0,"
            "0.25],\"ssm_out_multiplier\":0.5,\"attention_in_multiplier\":1.0,"
            "\"key_multiplier\":0.5,\"attention_out_multiplier\":3.0,"
            "\"mlp_multipliers\":[0.5,3.0],\"embedding_multiplier\":3.0,"
            "\"lm_head_multiplier\":0.5",
      "model.embed_tokens.weight 260 32\nmodel.final_layernorm.weight 32\n" HEAD
          L "input_layernorm.weight 32\n" L
      "pre_ff_layernorm.weight 32\n" MAMBA2(L "mamba.") QKV L
      "feed_forward.gate_proj.weight 48 32\n" L
      "feed_forward.up_proj.weight 48 32\n" L
      "feed_forward.down_proj.weight 32 48\n",
      { { B "ssm_in.weight", L "mamba.in_proj.weight", zxbcdt },
        { B "ssm_out.weight", L "mamba.out_proj.weight", times_half },
        { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "attn_k.weight", L "self_attn.k_proj.weight", times_half },
        { B "attn_output.weight", L "self_attn.o_proj.weight", times_3 },
        { B "ffn_gate.weight", L "feed_forward.gate_proj.weight", times_half },
        { B "ffn_down.weight", L "feed_forward.down_proj.weight", times_3 },
        { "token_embd.weight", "model.embed_tokens.weight", times_3 },
        { "output.weight", "lm_head.weight", times_half } },
      { { "ssm.time_step_rank", "4" }, { "ssm.inner_size", "32" } } },
    { .class_name = "GraniteMoeHybridForCausalLM",
      "granite",
      GRANITE FULL ",\"num_local_experts\":0",
      TOP NORMS ATTENTION(L "self_attn.") GRANITE_SHARED,
      { { B "ffn_gate.weight", L "shared_mlp.input_linear.weight", half_1 },
        { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { .class_name = "GraniteMoeHybridForCausalLM",
      "granitemoe",
      GRANITE FULL EXPERTS3,
      TOP NORMS ATTENTION(L "self_attn.") GRANITE_SHARED GRANITE_MOE,
      { { B "ffn_up_shexp.weight", L "shared_mlp.input_linear.weight",
          half_2 } } },
    { .class_name = "GraniteMoeHybridForCausalLM",
      "granitehybrid",
      GRANITE HYBRID EXPERTS3,
      TOP NORMS ATTENTION(A1) MAMBA2(J0) GRANITE_SHARED GRANITE_MOE,
      { { B "ffn_up_exps.weight", L "block_sparse_moe.input_linear.weight",
          half_2 },
        { "blk.1.attn_k.weight", A1 "k_proj.weight", paired },
        { "blk.0.ssm_d", J0 "D", same } },
      { { "attention.head_count_kv", "0,2" },
        { "ssm.inner_size", "32" },
        { "rope.scaling.finetuned", "false" },
        { "context_length", "1048576" } } },
    { .class_name = "GraniteMoeHybridForCausalLM",
      "granitehybrid",
      GRANITE HYBRID ",\"num_local_experts\":0",
      TOP NORMS ATTENTION(A1) MAMBA2(J0) GRANITE_SHARED,
      { { B "ffn_up.weight", L "shared_mlp.input_linear.weight", half_2 } } },
    { .class_name = "BambaForCausalLM",
      "granitehybrid",
      GRANITE ",\"attn_layer_indices\":[1],\"attn_rotary_emb\":4",
      "model.embed_tokens.weight 260 32\nmodel.final_layernorm.weight 32\n" HEAD
          L "input_layernorm.weight 32\n" L
      "pre_ff_layernorm.weight 32\n" ATTENTION(A1) MAMBA2(J0) L
      "feed_forward.gate_proj.weight 48 32\n" L
      "feed_forward.up_proj.weight 48 32\n" L
      "feed_forward.down_proj.weight 32 48\n",
      { { "blk.1.attn_q.weight", A1 "q_proj.weight", paired } },
      { { "attention.head_count_kv", "0,2" },
        { "rope.scaling.finetuned", "true" },
        { "rope.dimension_count", "4" } } },
    { .class_name = "NemotronHForCausalLM",
      "nemotron_h",
      NEMOTRON ",\"hybrid_override_pattern\":\"M*-\",\"intermediate_size\":48",
      NEMOTRON_TENSORS "backbone.layers.2.mixer.up_proj.weight 48 32\n"
                       "backbone.layers.2.mixer.down_proj.weight 32 48\n",
      { { "blk.2.ffn_up.weight", "backbone.layers.2.mixer.up_proj.weight",
          same },
        { "blk.1.attn_q.weight", N_A "q_proj.weight", paired } },
      { { "attention.head_count_kv", "0,2,0" },
        { "feed_forward_length", "0,0,48" },
        { "attention.layer_norm_rms_epsilon", "1e-05" },
        { BOS, "true" } } },
    { .class_name = "NemotronHForCausalLM",
      "nemotron_h_moe",
      NEMOTRON
      ",\"hybrid_override_pattern\":\"M*E\",\"intermediate_size\":48,"
      "\"moe_intermediate_size\":24,\"moe_shared_expert_intermediate_size\":40,"
      "\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
      "\"n_shared_experts\":1,\"norm_topk_prob\":true,"
      "\"routed_scaling_factor\":2.5,\"n_group\":1,\"topk_group\":1",
      NEMOTRON_TENSORS
      "backbone.layers.2.mixer.gate.weight 3 32\n"
      "backbone.layers.2.mixer.gate.e_score_correction_bias 3\n"
      "backbone.layers.2.mixer.experts.@.up_proj.weight 24 32\n"
      "backbone.layers.2.mixer.experts.@.down_proj.weight 32 24\n"
      "backbone.layers.2.mixer.shared_experts.up_proj.weight 40 32\n"
      "backbone.layers.2.mixer.shared_experts.down_proj.weight 32 40\n",
      { { "blk.2.ffn_down_exps.weight",
          "backbone.layers.2.mixer.experts.@.down_proj.weight", same } },
      { { "feed_forward_length", "0,0,24" },
        { "expert_shared_feed_forward_length", "40" } } },
    { .class_name = "Lfm2ForCausalLM",
      "lfm2",
      LFM2_SIZES ",\"block_ff_dim\":60,\"block_auto_adjust_ff_dim\":true,"
                 "\"block_ffn_dim_multiplier\":1.0,\"block_multiple_of\":16",
      LFM2 L "feed_forward.w1.weight 48 32\n" L
             "feed_forward.w2.weight 32 48\n" L
             "feed_forward.w3.weight 48 32\n",
      { { "blk.0.shortconv.conv.weight", C0 "conv.weight", same },
        { "token_embd_norm.weight", "model.embedding_norm.weight", same } },
      { { "feed_forward_length", "48" }, /* 2/3 of 60, to 16 */
        { "attention.head_count_kv", "0,2" },
        { "shortconv.l_cache", "3" } } },
    { .class_name = "Lfm2Model",
      "lfm2",
      LFM2_SIZES,
      LFM2_BARE,
      { { "blk.0.shortconv.conv.weight", "layers.0.conv.conv.weight", same } },
      { { "feed_forward_length", "48" } } },
    { .class_name = "Lfm2BidirectionalModel",
      "lfm2",
      LFM2_SIZES,
      LFM2_BARE,
      { { "blk.0.shortconv.conv.weight", "layers.0.conv.conv.weight", same } },
      { { "attention.causal", "false" }, { "feed_forward_length", "48" } } },
    { .class_name = "Lfm2MoeForCausalLM",
      "lfm2moe",
      LFM2_SIZES ",\"num_experts\":3,\"num_experts_per_tok\":2,"
                 "\"moe_intermediate_size\":24,\"num_dense_layers\":1",
      LFM2 "model.layers.0.feed_forward.w1.weight 48 32\n"
           "model.layers.0.feed_forward.w2.weight 32 48\n"
           "model.layers.0.feed_forward.w3.weight 48 32\n"
           "model.layers.1.feed_forward.gate.weight 3 32\n"
           "model.layers.1.feed_forward.expert_bias 3\n"
           "model.layers.1.feed_forward.experts.@.w1.weight 24 32\n"
           "model.layers.1.feed_forward.experts.@.w2.weight 32 24\n"
           "model.layers.1.feed_forward.experts.@.w3.weight 24 32\n",
      { { "blk.1.exp_probs_b.bias", "model.layers.1.feed_forward.expert_bias",
          same },
        { "blk.1.ffn_up_exps.weight",
          "model.layers.1.feed_forward.experts.@.w3.weight", same } },
      { { "expert_gating_func", "2" } } },
    { .class_name = "Qwen3NextForCausalLM",
      "qwen3next",
      DELTA_SIZES MOE_SIZES ",\"shared_expert_intermediate_size\":24",
      TOP HEAD NORMS MOE SHARED_MOE GATED_ATTENTION A0
      "in_proj_qkvz.weight 96 32\n" A0 "in_proj_ba.weight 8 32\n" A0
      "A_log 4\n" A0 "dt_bias 4\n" A0 "conv1d.weight 64 1 4\n" A0
      "norm.weight 8\n" A0 "out_proj.weight 32 32\n",
      { { "blk.0.attn_qkv.weight", A0 "in_proj_qkvz.weight", next_qkv },
        { "blk.0.attn_gate.weight", A0 "in_proj_qkvz.weight", next_z },
        { "blk.0.ssm_a", A0 "A_log", neg_exp },
        { "blk.0.ssm_ba.weight", A0 "in_proj_ba.weight", same },
        { "blk.0.ssm_norm.weight", A0 "norm.weight", same },
        { "blk.1.attn_q_norm.weight", A1 "q_norm.weight", plus_1 },
        { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          plus_1 },
        { "output_norm.weight", "model.norm.weight", plus_1 } },
      { { "ssm.inner_size", "32" }, { "rope.dimension_count", "4" } } },
    { .class_name = "Qwen3_5ForCausalLM",
      "qwen35",
      DELTA_SIZES ",\"mtp_num_hidden_layers\":0,\"rope_parameters\":{"
                  "\"mrope_section\":[1,1,0],\"rope_theta\":10000.0,"
                  "\"rope_type\":\"default\"}",
      TOP HEAD NORMS MLP GATED_ATTENTION DELTA_35,
      { { "blk.0.attn_qkv.weight", A0 "in_proj_qkv.weight", tiled_qkv },
        { "blk.0.attn_gate.weight", A0 "in_proj_z.weight", tiled_z },
        { "blk.0.ssm_beta.weight", A0 "in_proj_b.weight", tiled_1 },
        { "blk.0.ssm_alpha.weight", A0 "in_proj_a.weight", tiled_1 },
        { "blk.0.ssm_a", A0 "A_log", tiled_exp },
        { "blk.0.ssm_dt.bias", A0 "dt_bias", tiled_1 },
        { "blk.0.ssm_conv1d.weight", A0 "conv1d.weight", tiled_qkv },
        { "blk.0.ssm_out.weight", A0 "out_proj.weight", tiled_out } },
      { { "rope.dimension_sections", "1,1,0,0" },
        { "ssm.time_step_rank", "4" } } },
    { .class_name = "MiniCPMV4_6ForConditionalGeneration",
      "qwen35",
      DELTA_SIZES ",\"mtp_num_hidden_layers\":1,\"rope_parameters\":{"
                  "\"mrope_section\":[1,1,0],\"rope_theta\":10000.0,"
                  "\"rope_type\":\"default\"}",
      TOP HEAD NORMS MLP GATED_ATTENTION DELTA_35
      "mtp.fc.weight 32 64\nmodel.merger.mlp.0.linear_1.weight 8 8\n"
      "model.vision_tower.post_layernorm.weight 8\n",
      { { "blk.0.attn_qkv.weight", A0 "in_proj_qkv.weight", tiled_qkv } },
      { { "block_count", "2" }, { "nextn_predict_layers", "" } } },
    { .class_name = "Qwen3_5MoeForCausalLM",
      "qwen35moe",
      DELTA_SIZES MOE_SIZES
      ",\"shared_expert_intermediate_size\":24,\"rope_parameters\":{"
      "\"mrope_section\":[1,1,0],\"rope_theta\":10000.0},"
      "\"mtp_num_hidden_layers\":1",
      TOP HEAD NORMS L
      "mlp.gate.weight 3 32\n" L "mlp.experts.gate_up_proj 3 48 32\n" L
      "mlp.experts.down_proj 3 32 24\n" SHARED_MOE GATED_ATTENTION DELTA_35
          DRAFT,
      { { B "ffn_gate_exps.weight", L "mlp.experts.gate_up_proj", half_1 },
        { "blk.2.attn_q_norm.weight", M0 "self_attn.q_norm.weight", plus_1 },
        { "blk.2.ffn_up_exps.weight", M0 "mlp.experts.@.up_proj.weight",
          same },
        { "blk.2.nextn.eh_proj.weight", "mtp.fc.weight", same },
        { "blk.2.nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight",
          plus_1 } },
      { { "block_count", "3" }, { "nextn_predict_layers", "1" } } },
    { .vocab = archs_rwkv,
      .class_name = "RWKV7ForCausalLM",
      "rwkv7",
      "\"hidden_size\":128,\"intermediate_size\":192,\"num_hidden_layers\":2,"
      "\"head_dim\":64,\"norm_eps\":1e-5,\"vocab_size\":260,"
      "\"decay_low_rank_dim\":16,\"a_low_rank_dim\":16,"
      "\"v_low_rank_dim\":16,\"gate_low_rank_dim\":32",
      "model.embeddings.weight 260 128\nmodel.layers.0.pre_norm.weight 128\n"
      "model.layers.0.pre_norm.bias 128\nmodel.norm.weight 128\n"
      "model.norm.bias 128\nlm_head.weight 260 128\n" L
      "attn_norm.weight 128\n" L "attn_norm.bias 128\n" L
      "ffn_norm.weight 128\n" L "ffn_norm.bias 128\n" R "x_r 1 1 128\n" R
      "x_w 1 1 128\n" R "x_k 1 1 128\n" R "x_v 1 1 128\n" R "x_a 1 1 128\n" R
      "x_g 1 1 128\n" R "k_k 128\n" R "k_a 128\n" R "r_k 2 64\n" R
      "r_proj.weight 128 128\n" R "k_proj.weight 128 128\n" R
      "v_proj.weight 128 128\n" R "o_proj.weight 128 128\n" R
      "g_norm.weight 128\n" R "g_norm.bias 128\n" LORA("w") LORA("a") R
      "g_lora.lora.0.weight 32 128\n" R "g_lora.lora.2.weight 128 32\n"
      "model.layers.1.attn.v_lora.lora.0.weight 16 128\n"
      "model.layers.1.attn.v_lora.lora.2.weight 128 16\n"
      "model.layers.1.attn.v_lora.lora.2.bias 128\n" L "ffn.x_k 128\n" L
      "ffn.key.weight 192 128\n" L "ffn.value.weight 128 192\n",
      { { B "time_mix_lerp_fused.weight", R "x_r", lerp },
        { B "time_mix_w0.weight", R "w_lora.lora.2.bias", same },
        { B "time_mix_w1.weight", R "w_lora.lora.0.weight", same },
        { "blk.0.time_mix_v2.weight",
          "model.layers.0.attn.a_lora.lora.2.weight", same },
        { "blk.1.time_mix_v2.weight",
          "model.layers.1.attn.v_lora.lora.2.weight", same },
        { B "time_mix_r_k.weight", R "r_k", same },
        { B "time_mix_key.weight", R "k_proj.weight", same } },
      { { "wkv.head_size", "64" },
        { "attention.decay_lora_rank", "16" },
        { "attention.gate_lora_rank", "32" } } },
    { .class_name = NULL },
};
