/* SPDX-License-Identifier: MIT */
/* mamba.c - classes of Mamba and Jamba */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name mamba_names[] = {
    N("backbone.embeddings", "token_embd"),
    N("backbone.embedding", "token_embd"),
    N("backbone.norm_f", "output_norm"),
    N("lm_head", "output"),
    N("backbone.layers.%.norm", B "attn_norm"),
    N(BACKBONE_MIXER "in_proj", B "ssm_in"),
    N_HOW(BACKBONE_MIXER "conv1d", B "ssm_conv1d", SQUEEZE),
    N(BACKBONE_MIXER "x_proj", B "ssm_x"),
    N(BACKBONE_MIXER "dt_proj", B "ssm_dt"),
    N_HOW(BACKBONE_MIXER "A_log", B "ssm_a", NEG_EXP),
    N(BACKBONE_MIXER "D", B "ssm_d"),
    N(BACKBONE_MIXER "out_proj", B "ssm_out"),
    END_NAMES
};

static const struct gg_convert_name mamba2_names[] = { MAMBA2(BACKBONE_MIXER),
                                                       END_NAMES };

static const struct gg_convert_name jamba_names[] = {
    N("model.final_layernorm", "output_norm"),
    N(L "pre_ff_layernorm", B "ffn_norm"),
    N(L "pre_moe_layernorm", B "ffn_norm"),
    N(LAYERS_MAMBA "in_proj", B "ssm_in"),
    N_HOW(LAYERS_MAMBA "conv1d", B "ssm_conv1d", SQUEEZE),
    N(LAYERS_MAMBA "x_proj", B "ssm_x"),
    N(LAYERS_MAMBA "dt_proj", B "ssm_dt"),
    N(LAYERS_MAMBA "dt_layernorm", B "ssm_dt_norm"),
    N(LAYERS_MAMBA "b_layernorm", B "ssm_b_norm"),
    N(LAYERS_MAMBA "c_layernorm", B "ssm_c_norm"),
    N_HOW(LAYERS_MAMBA "A_log", B "ssm_a", NEG_EXP),
    N(LAYERS_MAMBA "D", B "ssm_d"),
    N(LAYERS_MAMBA "out_proj", B "ssm_out"),
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

#define NO_FF_NO_HEADS                                                        \
    ALWAYS("feed_forward_length", U32, 0),                                    \
        ALWAYS("attention.head_count", U32, 0)
#define MAMBA_KEYS(NORMS)                                                     \
    ROWS(ALWAYS("context_length", U32, 1 << 20),                              \
         U32("embedding_length", "hidden_size d_model"), NO_FF_NO_HEADS,      \
         U32("block_count", "num_hidden_layers n_layer"),                     \
         ELSE("ssm.conv_kernel", U32, "conv_kernel d_conv", 4),               \
         ELSE_OF("ssm.inner_size", U32, "intermediate_size d_inner",          \
                 double_width),                                               \
         ELSE("ssm.state_size", U32, "state_size d_state", 16),               \
         ELSE_OF("ssm.time_step_rank", U32, "time_step_rank dt_rank",         \
                 sixteenth_width),                                            \
         MAMBA_EPS, ALWAYS("ssm.dt_b_c_rms", BOOL, NORMS))

/* ---- Mamba ---- */

static double double_width(const struct gg_hf_config *cfg)
{
    return 2 * num_of(cfg, "hidden_size d_model");
}

static double sixteenth_width(const struct gg_hf_config *cfg)
{
    return floor((num_of(cfg, "hidden_size d_model") + 15) / 16);
}

/* ---- Mamba 2 ---- */

static double mamba2_inner_size(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "intermediate_size d_inner",
                  num_or(cfg, "expand", 2) *
                      num_of(cfg, "hidden_size d_model dim"));
}

static double mamba2_heads(const struct gg_hf_config *cfg)
{
    return mamba2_inner_size(cfg) / num_or(cfg, "head_dim", 64);
}

static void put_mamba2(struct gg_back_maker *m)
{
    gg_back_put_num(m, "expand",
                    num_of(&m->keys, "ssm.inner_size") /
                        num_of(&m->keys, "embedding_length"));
    gg_back_put_num(m, "head_dim", gg_back_state_head_dim(&m->keys));
}

/* ---- Jamba ---- */

static double jamba_kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_convert_attention_by_period(cfg, layer) *
           num_at(cfg, "num_key_value_heads", layer);
}

static double jamba_sixteenth_width(const struct gg_hf_config *cfg)
{
    return floor((num_of(cfg, "hidden_size") + 15) / 16);
}

static void put_jamba(struct gg_back_maker *m)
{
    gg_back_put_num(m, "attn_layer_offset",
                    gg_hf_config_first_layer(&m->keys, gg_back_has_attention));
    gg_back_put_num(m, "attn_layer_period",
                    value_or(gg_back_attention_period(m),
                             num_of(&m->keys, "num_hidden_layers")));
    gg_back_put_first_kv_heads(m);
    gg_back_put_mamba_expand(m);
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_mamba[] = {
    { .classes = "MambaForCausalLM MambaLMHeadModel",
      .instead = { { "rms_norm_eps", "layer_norm_epsilon" } },
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
      .back = put_mamba2,
      .strip = "model.",
      .names = { mamba2_names, mamba_names },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20),
                   U32("embedding_length", "hidden_size d_model dim"),
                   NO_FF_NO_HEADS,
                   U32("block_count", "num_hidden_layers n_layer n_layers"),
                   ELSE("ssm.conv_kernel", U32, "conv_kernel d_conv", 4),
                   OF("ssm.inner_size", U32, mamba2_inner_size, IN_BACK),
                   ELSE("ssm.state_size", U32, "state_size d_state", 128),
                   OF("ssm.time_step_rank", U32, mamba2_heads, IN_BACK),
                   ELSE("ssm.group_count", U32, "n_groups", 1), MAMBA_EPS),
      .only_keys = true },
    { .classes = "JambaForCausalLM",
      .arch = "jamba",
      .back = put_jamba,
      .names = OVER(jamba_names),
      .keys =
          ROWS(U32("block_count", "num_hidden_layers"),
               U32("context_length", "max_position_embeddings n_ctx"),
               U32("embedding_length", "hidden_size"),
               U32("feed_forward_length", "intermediate_size"),
               U32("attention.head_count", "num_attention_heads"),
               EACH("attention.head_count_kv", U32, jamba_kv_heads, IN_BACK),
               ELSE("ssm.conv_kernel", U32, "mamba_d_conv", 4),
               OF("ssm.inner_size", U32, gg_convert_mamba_inner_size, IN_BACK),
               ELSE("ssm.state_size", U32, "mamba_d_state", 16),
               ELSE_OF("ssm.time_step_rank", U32, "mamba_dt_rank",
                       jamba_sixteenth_width),
               ELSE("attention.layer_norm_rms_epsilon", F32,
                    "layer_norm_epsilon rms_norm_eps", 1e-6),
               U32("expert_count", "num_local_experts num_experts"),
               U32("expert_used_count", "num_experts_per_tok")),
      .only_keys = true },
    { .classes = NULL }
};
