/* SPDX-License-Identifier: MIT */
/* class_recurrent.c - rows of state spaces and of models that have some */
#include "config.h"
#include "convert/class_row.h"

#define M "backbone.layers.%.mixer."
static const struct gg_convert_name mamba_names[] = {
    N("backbone.embeddings", "token_embd"),
    N("backbone.embedding", "token_embd"),
    N("backbone.norm_f", "output_norm"),
    N("lm_head", "output"),
    N("backbone.layers.%.norm", B "attn_norm"),
    N(M "in_proj", B "ssm_in"),
    N_HOW(M "conv1d", B "ssm_conv1d", SQUEEZE),
    N(M "x_proj", B "ssm_x"),
    N(M "dt_proj", B "ssm_dt"),
    N_HOW(M "A_log", B "ssm_a", NEG_EXP),
    N(M "D", B "ssm_d"),
    N(M "out_proj", B "ssm_out"),
    END_NAMES
};

/* One number a head; norms by group. */
#define MAMBA2(P)                                                             \
    N_HOW(P "conv1d", B "ssm_conv1d", SQUEEZE),                               \
        N(P "dt_bias", B "ssm_dt.bias"),                                      \
        { P "A_log", B "ssm_a", GG_HOW_NEG_EXP, "x > x, 1", NULL },           \
        N_AXES(P "D", B "ssm_d", "x > x, 1"),                                 \
        N_AXES(P "norm", B "ssm_norm",                                        \
               "x=(n_groups|mamba_n_groups|n_group|1) y > x, y")
static const struct gg_convert_name mamba2_names[] = { MAMBA2(M), END_NAMES };
#define J L "mamba."
static const struct gg_convert_name hybrid_names[] = {
    MAMBA2(J),
    N(J "in_proj", B "ssm_in"),
    N(J "out_proj", B "ssm_out"),
    N(L "feed_forward.gate_proj", B "ffn_gate"),
    N(L "feed_forward.up_proj", B "ffn_up"),
    N(L "feed_forward.down_proj", B "ffn_down"),
    N(L "pre_ff_layernorm", B "ffn_norm"),
    END_NAMES
};

/* Without experts what they share is all. */
static const struct gg_convert_name granite_dense_names[] = {
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down"), END_NAMES
};

static const struct gg_convert_name bamba_names[] = {
    N("model.final_layernorm", "output_norm"), END_NAMES
};

static const struct gg_convert_name jamba_names[] = {
    N("model.final_layernorm", "output_norm"),
    N(L "pre_ff_layernorm", B "ffn_norm"),
    N(L "pre_moe_layernorm", B "ffn_norm"),
    N(J "in_proj", B "ssm_in"),
    N_HOW(J "conv1d", B "ssm_conv1d", SQUEEZE),
    N(J "x_proj", B "ssm_x"),
    N(J "dt_proj", B "ssm_dt"),
    N(J "dt_layernorm", B "ssm_dt_norm"),
    N(J "b_layernorm", B "ssm_b_norm"),
    N(J "c_layernorm", B "ssm_c_norm"),
    N_HOW(J "A_log", B "ssm_a", NEG_EXP),
    N(J "D", B "ssm_d"),
    N(J "out_proj", B "ssm_out"),
    N(L "feed_forward.router", B "ffn_gate_inp"),
    N(L "feed_forward.experts.@.gate_proj", B "ffn_gate_exps"),
    N(L "feed_forward.experts.@.up_proj", B "ffn_up_exps"),
    N(L "feed_forward.experts.@.down_proj", B "ffn_down_exps"),
    PACKED_EXPERTS(L "feed_forward.experts."),
    N(L "feed_forward.gate_proj", B "ffn_gate"),
    N(L "feed_forward.up_proj", B "ffn_up"),
    N(L "feed_forward.down_proj", B "ffn_down"),
    END_NAMES
};

/* Falcon-H1 multiplies what goes into its parts and comes out of them by
 * numbers; weights take them. in_proj is z, x, B, C and the steps. */
#define IN(N_ROWS, FIRST_ROW, NO)                                             \
    N_TIMES(J "in_proj", B "ssm_in",                                          \
            "[" N_ROWS "@" FIRST_ROW "] x, * > x, *",                         \
            "ssm_in_multiplier|1,ssm_multipliers." NO "|1")
#define GN "mamba_n_groups*mamba_d_state"
static const struct gg_convert_name falcon_h1_names[] = {
    N(L "pre_ff_layernorm.weight", B "ffn_norm"), /* files have it so */
    N("model.final_layernorm", "output_norm"),
    N_TIMES("model.embed_tokens", "token_embd", NULL,
            "embedding_multiplier|1"),
    N_TIMES("lm_head", "output", NULL, "lm_head_multiplier|1"),
    { L "self_attn.q_proj", B "attn_q", GG_HOW_AS_IS, NULL,
      "attention_in_multiplier|1" },
    { L "self_attn.k_proj", B "attn_k", GG_HOW_AS_IS, NULL,
      "key_multiplier|1,attention_in_multiplier|1" },
    { L "self_attn.v_proj", B "attn_v", GG_HOW_AS_IS, NULL,
      "attention_in_multiplier|1" },
    { L "self_attn.o_proj", B "attn_output", GG_HOW_AS_IS, NULL,
      "attention_out_multiplier|1" },
    { L "feed_forward.gate_proj", B "ffn_gate", GG_HOW_AS_IS, NULL,
      "mlp_multipliers.0|1" },
    { L "feed_forward.down_proj", B "ffn_down", GG_HOW_AS_IS, NULL,
      "mlp_multipliers.1|1" },
    { J "out_proj", B "ssm_out", GG_HOW_AS_IS, NULL, "ssm_out_multiplier|1" },
    IN("mamba_d_ssm", "0", "0"),
    IN("mamba_d_ssm", "mamba_d_ssm", "1"),
    IN(GN, "2*mamba_d_ssm", "2"),
    IN(GN, "2*mamba_d_ssm+" GN, "3"),
    IN("", "2*mamba_d_ssm+2*" GN, "4"),
    END_NAMES
};

static const struct gg_convert_name nemotron_h_names[] = {
    MAMBA2(M), /* M "norm" is of the state space */
    N("backbone.embeddings", "token_embd"),
    N("backbone.norm_f", "output_norm"),
    N("backbone.layers.%.norm", B "attn_norm"),
    N(M "in_proj", B "ssm_in"),
    N(M "out_proj", B "ssm_out"),
    N_HOW(M "q_proj", B "attn_q", ROPE_Q),
    N_HOW(M "k_proj", B "attn_k", ROPE_K),
    N(M "v_proj", B "attn_v"),
    N(M "o_proj", B "attn_output"),
    N(M "up_proj", B "ffn_up"),
    N(M "down_proj", B "ffn_down"),
    N(M "gate", B "ffn_gate_inp"),
    N(M "gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(M "experts.@.up_proj", B "ffn_up_exps"),
    N(M "experts.@.down_proj", B "ffn_down_exps"),
    N(M "experts.up_proj", B "ffn_up_exps.weight"),
    N(M "experts.down_proj", B "ffn_down_exps.weight"),
    N(M "shared_experts.up_proj", B "ffn_up_shexp"),
    N(M "shared_experts.down_proj", B "ffn_down_shexp"),
    N(M "fc1_latent_proj", B "ffn_latent_down"),
    N(M "fc2_latent_proj", B "ffn_latent_up"),
    END_NAMES
};

static const struct gg_convert_name lfm2_vector_names[] = {
    N("model.dense_0.linear", "dense_2"), END_NAMES
};

static const struct gg_convert_name lfm2_names[] = {
    N("model.embedding_norm", "token_embd_norm"), /* it is the last one */
    N(L "operator_norm", B "attn_norm"),
    N(L "ffn_norm", B "ffn_norm"),
    N(L "self_attn.out_proj", B "attn_output"),
    N(L "self_attn.q_layernorm", B "attn_q_norm"),
    N(L "self_attn.k_layernorm", B "attn_k_norm"),
    N(L "feed_forward.w1", B "ffn_gate"),
    N(L "feed_forward.w2", B "ffn_down"),
    N(L "feed_forward.w3", B "ffn_up"),
    N(L "conv.in_proj", B "shortconv.in_proj"),
    N(L "conv.out_proj", B "shortconv.out_proj"),
    N_HOW(L "conv.conv", B "shortconv.conv", SQUEEZE),
    N(L "feed_forward.gate", B "ffn_gate_inp"),
    N(L "feed_forward.expert_bias", B "exp_probs_b.bias"),
    N(L "feed_forward.experts.@.w1", B "ffn_gate_exps"),
    N(L "feed_forward.experts.@.w2", B "ffn_down_exps"),
    N(L "feed_forward.experts.@.w3", B "ffn_up_exps"),
    PACKED_EXPERTS(L "feed_forward.experts."),
    END_NAMES
};

/* ---- rows ---- */

#define NO_FF_NO_HEADS                                                        \
    ALWAYS("feed_forward_length", U32, 0),                                    \
        ALWAYS("attention.head_count", U32, 0)
#define EPS                                                                   \
    OF("attention.layer_norm_rms_epsilon", F32,                               \
       "layer_norm_epsilon|rms_norm_eps|1e-5")
#define MAMBA_KEYS(NORMS)                                                     \
    ROWS(ALWAYS("context_length", U32, 1 << 20),                              \
         U32("embedding_length", "hidden_size d_model"), NO_FF_NO_HEADS,      \
         U32("block_count", "num_hidden_layers n_layer"),                     \
         OF("ssm.conv_kernel", U32, "conv_kernel|d_conv|4"),                  \
         OF("ssm.inner_size", U32,                                            \
            "intermediate_size|d_inner|(2*hidden_size|d_model)"),             \
         OF("ssm.state_size", U32, "state_size|d_state|16"),                  \
         OF("ssm.time_step_rank", U32,                                        \
            "time_step_rank|dt_rank|((hidden_size|d_model+15)//16)"),         \
         EPS, ALWAYS("ssm.dt_b_c_rms", BOOL, NORMS))
#define INNER2 "(intermediate_size|d_inner|(expand|2*hidden_size|d_model|dim))"
/* Which layers have attention. */
#define ATTENTION                                                             \
    "(layer_types:attention|(i%attn_layer_period=attn_layer_offset)|"         \
    "has(attn_layer_indices))"
#define GRANITE                                                               \
    F32("attention.scale", "attention_multiplier"),                           \
        F32("embedding_scale", "embedding_multiplier"),                       \
        F32("residual_scale", "residual_multiplier"),                         \
        F32("logit_scale", "logits_scaling")
#define GRANITE_HYBRID                                                        \
    EACH("attention.head_count_kv", U32, ATTENTION "*num_key_value_heads"),   \
        U32("vocab_size", "vocab_size"),                                      \
        OF("rope.dimension_count", U32, "attn_rotary_emb|" HEAD), GRANITE,    \
        U32("expert_shared_feed_forward_length", "shared_intermediate_size"), \
        U32("ssm.conv_kernel", "mamba_d_conv"),                               \
        U32("ssm.state_size", "mamba_d_state"),                               \
        U32("ssm.group_count", "mamba_n_groups"),                             \
        OF("ssm.inner_size", U32, "mamba_expand*hidden_size"),                \
        U32("ssm.time_step_rank", "mamba_n_heads")
#define LFM2_KEYS                                                             \
    EACH("attention.head_count_kv", U32,                                      \
         "(layer_types:full_attention|has(full_attn_idxs))*num_key_value_"    \
         "heads"),                                                            \
        U32("vocab_size", "vocab_size"),                                      \
        U32("shortconv.l_cache", "conv_L_cache")
#define LFM2_DENSE                                                            \
    OF("feed_forward_length", U32,                                            \
       "block_auto_adjust_ff_dim|0?block_multiple_of|256*((block_ffn_"        \
       "dim_multiplier|1*(2*block_ff_dim|intermediate_size//3)//1+"           \
       "block_multiple_of|256-1)//block_multiple_of|256):block_ff_dim|"       \
       "intermediate_size"),                                                  \
        F32("attention.layer_norm_rms_epsilon", "norm_eps rms_norm_eps"),     \
        LFM2_KEYS
#define LFM2_VECTORS U32("embedding_length_out", "dense_0_out"), LFM2_DENSE
/* Layers are letters of a text, or words of a list. */
#define IS(LETTER, WORD_)                                                     \
    "(hybrid_override_pattern#" LETTER "|layers_block_type:" WORD_ ")"
#define NEMOTRON_H                                                            \
    EACH("attention.head_count_kv", U32,                                      \
         IS("*", "attention") "*num_key_value_heads"),                        \
        OF("attention.layer_norm_rms_epsilon", F32,                           \
           "layer_norm_epsilon|rms_norm_eps|norm_eps"),                       \
        U32("vocab_size", "vocab_size"),                                      \
        OF("rope.dimension_count", U32, "head_dim|attention_head_dim|" HEAD), \
        U32("ssm.conv_kernel", "conv_kernel"),                                \
        U32("ssm.state_size", "ssm_state_size"),                              \
        U32("ssm.group_count", "n_groups"),                                   \
        OF("ssm.inner_size", U32, "mamba_num_heads*mamba_head_dim"),          \
        U32("ssm.time_step_rank", "mamba_num_heads"),                         \
        ALWAYS("rope.scaling.finetuned", BOOL, 0),                            \
        ALWAYS("context_length", U32, 1 << 20),                               \
        U32("attention.key_length", "head_dim attention_head_dim"),           \
        U32("attention.value_length", "head_dim attention_head_dim")

const struct gg_convert_arch gg_convert_class_recurrent[] = {
    { .classes = "MambaForCausalLM MambaLMHeadModel",
      .arch = "mamba",
      .ties = true,
      .names = { mamba_names },
      .keys = MAMBA_KEYS(0),
      .only_keys = true },
    { .classes = "FalconMambaForCausalLM",
      .arch = "mamba",
      .ties = true,
      .names = { mamba_names },
      .keys = MAMBA_KEYS(1),
      .only_keys = true },
    { .classes = "Mamba2ForCausalLM",
      .arch = "mamba2",
      .strip = "model.",
      .names = { mamba2_names, mamba_names },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20),
                   U32("embedding_length", "hidden_size d_model dim"),
                   NO_FF_NO_HEADS,
                   U32("block_count", "num_hidden_layers n_layer n_layers"),
                   OF("ssm.conv_kernel", U32, "conv_kernel|d_conv|4"),
                   OF("ssm.inner_size", U32, INNER2),
                   OF("ssm.state_size", U32, "state_size|d_state|128"),
                   OF("ssm.time_step_rank", U32, INNER2 "/head_dim|64"),
                   OF("ssm.group_count", U32, "n_groups|1"), EPS),
      .only_keys = true },
    { .classes = "JambaForCausalLM",
      .arch = "jamba",
      .names = OVER(jamba_names),
      .keys = ROWS(
          U32("block_count", "num_hidden_layers"),
          U32("context_length", "max_position_embeddings n_ctx"),
          U32("embedding_length", "hidden_size"),
          U32("feed_forward_length", "intermediate_size"),
          U32("attention.head_count", "num_attention_heads"),
          EACH("attention.head_count_kv", U32,
               "(i%attn_layer_period=attn_layer_offset)*num_key_value_heads"),
          OF("ssm.conv_kernel", U32, "mamba_d_conv|4"),
          OF("ssm.inner_size", U32, "mamba_expand*hidden_size"),
          OF("ssm.state_size", U32, "mamba_d_state|16"),
          OF("ssm.time_step_rank", U32,
             "mamba_dt_rank|((hidden_size+15)//16)"),
          OF("attention.layer_norm_rms_epsilon", F32,
             "layer_norm_epsilon|rms_norm_eps|1e-6"),
          U32("expert_count", "num_local_experts num_experts"),
          U32("expert_used_count", "num_experts_per_tok")),
      .only_keys = true },
    { .classes = "FalconH1ForCausalLM",
      .arch = "falcon-h1",
      .names = OVER_2(falcon_h1_names, hybrid_names),
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("feed_forward_length", "intermediate_size"),
               U32("attention.head_count", "num_attention_heads"),
               U32("block_count", "num_hidden_layers"),
               U32("ssm.conv_kernel", "mamba_d_conv"),
               U32("ssm.inner_size", "mamba_d_ssm"),
               U32("ssm.state_size", "mamba_d_state"),
               OF("ssm.time_step_rank", U32, "mamba_d_ssm/mamba_d_head"),
               U32("ssm.group_count", "mamba_n_groups"), EPS, FILE_TYPE,
               U32("vocab_size", "vocab_size"),
               U32("attention.head_count_kv", "num_key_value_heads"),
               U32("attention.key_length", "head_dim"),
               U32("attention.value_length", "head_dim"),
               F32("rope.freq_base", "rope_theta rope_parameters.rope_theta")),
      .only_keys = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granite",
      .when = "all(layer_types:attention)*(num_local_experts|0=0)",
      .names = OVER(granite_dense_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .turned = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granitemoe",
      .when = "all(layer_types:attention)",
      .names = OVER(gg_convert_names_granitemoe),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .turned = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granitehybrid",
      .when = "num_local_experts|0=0",
      .names = { granite_dense_names, hybrid_names, gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .turned = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granitehybrid",
      .names = { gg_convert_names_granitemoe, hybrid_names,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .turned = true },
    { .classes = "BambaForCausalLM",
      .arch = "granitehybrid",
      .names = { bamba_names, hybrid_names, gg_convert_names_llama },
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .turned = true },
    { .classes = "NemotronHForCausalLM",
      .arch = "nemotron_h_moe",
      .when = "num_experts_per_tok!=1",
      .names = { nemotron_h_names, gg_convert_names_llama },
      .keys = ROWS(EACH("feed_forward_length", U32,
                        IS("E", "moe") "*moe_intermediate_size"),
                   NEMOTRON_H, EXPERT_FF,
                   U32("expert_shared_feed_forward_length",
                       "moe_shared_expert_intermediate_size"),
                   U32("expert_shared_count", "n_shared_experts"),
                   BOOL("expert_weights_norm", "norm_topk_prob"),
                   F32("expert_weights_scale", "routed_scaling_factor"),
                   U32("moe_latent_size", "moe_latent_size")),
      .turned = true },
    { .classes = "NemotronHForCausalLM",
      .arch = "nemotron_h",
      .names = { nemotron_h_names, gg_convert_names_llama },
      .keys = ROWS(EACH("feed_forward_length", U32,
                        IS("-", "mlp") "*intermediate_size"),
                   NEMOTRON_H),
      .last = BEGINS,
      .turned = true },
    { .classes = "Lfm2ForCausalLM LFM2ForCausalLM",
      .arch = "lfm2",
      .ties = true,
      .names = OVER(lfm2_names),
      .keys = ROWS(LFM2_DENSE) },
    { .classes = "Lfm2Model",
      .arch = "lfm2",
      .before = "model.",
      .names = OVER_2(lfm2_vector_names, lfm2_names),
      .keys = ROWS(LFM2_VECTORS),
      .n_dense = 1 },
    { .classes = "Lfm2BidirectionalModel",
      .arch = "lfm2",
      .before = "model.",
      .names = OVER_2(lfm2_vector_names, lfm2_names),
      .keys = ROWS(LFM2_VECTORS, ALWAYS("attention.causal", BOOL, 0)),
      .n_dense = 1 },
    { .classes = "Lfm2MoeForCausalLM",
      .arch = "lfm2moe",
      .ties = true,
      .names = OVER(lfm2_names),
      .keys =
          ROWS(EXPERT_FF, U32("leading_dense_block_count", "num_dense_layers"),
               ALWAYS("expert_gating_func", U32, 2), LFM2_KEYS) },
    { .classes = NULL }
};
