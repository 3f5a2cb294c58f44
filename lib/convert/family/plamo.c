/* SPDX-License-Identifier: MIT */
/* plamo.c - classes of PLaMo */
#include "config.h"
#include "convert/class_row.h"

static void plus_5th(float *x, size_t n)
{
    while (n--)
        x[n] += 0.2f;
}

static void plus_11th(float *x, size_t n)
{
    while (n--)
        x[n] += 0.0894427191f;
}

static void minus_5th(float *x, size_t n)
{
    while (n--)
        x[n] -= 0.2f;
}

static void minus_11th(float *x, size_t n)
{
    while (n--)
        x[n] -= 0.0894427191f; /* 1 / 5^1.5 */
}

static const struct gg_convert_transform added_5th = { .text = "1/5 added",
                                                       .change = plus_5th,
                                                       .back = minus_5th };
static const struct gg_convert_transform added_11th = {
    .text = "1/5^1.5 added", .change = plus_11th, .back = minus_11th
};

#define P "model.layers.layers.%."

/* Queries of head s t + i of t heads of keys share key i: here those that share
 * one lie together. */

static const struct gg_convert_name plamo_names[] = {
    N("model.embed_tokens", "token_embd"),
    N("model.norm", "output_norm"),
    N("lm_head", "output"),
    N(P "norm", B "attn_norm"),
    N_AXES(P "self_attn.q_proj", B "attn_q", "s t d, * > t s d, *"),
    N(P "self_attn.k_proj", B "attn_k"),
    N(P "self_attn.v_proj", B "attn_v"),
    N_AXES(P "self_attn.o_proj", B "attn_output", "x, s t d > x, t s d"),
    N_NOT(P "self_attn.rotary_emb.inv_freq"),
    N(P "mlp.gate_proj", B "ffn_gate"),
    N(P "mlp.up_proj", B "ffn_up"),
    N(P "mlp.down_proj", B "ffn_down"),
    END_NAMES
};

/* Norms multiply by the weight plus a number: 1, or the initial scale of a
 * part's result. */
static const struct gg_convert_name plamo2_names[] = {
    N("model.embed_tokens", "token_embd"),
    N_HOW("model.norm", "output_norm", PLUS_1),
    N("lm_head", "output"),
    N_HOW(P "pre_mixer_norm", B "attn_norm", PLUS_1),
    N_HOW(P "post_mixer_norm.weight", B "post_attention_norm", added_5th),
    N_HOW(P "pre_mlp_norm", B "ffn_norm", PLUS_1),
    N_HOW(P "post_mlp_norm.weight", B "post_ffw_norm", added_11th),
    N(P "mixer.qkv_proj", B "attn_qkv"),
    N(P "mixer.o_proj", B "attn_output"),
    N(P "mixer.q_weight", B "attn_q_norm.weight"),
    N(P "mixer.k_weight", B "attn_k_norm.weight"),
    N_HOW(P "mixer.q_norm", B "attn_q_norm", PLUS_1),
    N_HOW(P "mixer.k_norm", B "attn_k_norm", PLUS_1),
    N(P "mixer.in_proj", B "ssm_in"),
    N_HOW(P "mixer.conv1d", B "ssm_conv1d", SQUEEZE),
    N(P "mixer.bcdt_proj", B "ssm_x"),
    N(P "mixer.dt_proj", B "ssm_dt"),
    N(P "mixer.dt_bias", B "ssm_dt.bias"),
    N_HOW(P "mixer.A_log", B "ssm_a", NEG_EXP),
    N(P "mixer.D", B "ssm_d"),
    N(P "mixer.dt_norm_weight", B "ssm_dt_norm"),
    N(P "mixer.B_norm_weight", B "ssm_b_norm"),
    N(P "mixer.C_norm_weight", B "ssm_c_norm"),
    N(P "mixer.out_proj", B "ssm_out"),
    N(P "mlp.gate_up_proj", B "ffn_up"),
    N(P "mlp.down_proj", B "ffn_down"),
    END_NAMES
};

/* Norms of queries and keys: 1 is added, as in the layers' norms. */
static const struct gg_convert_name plamo3_names[] = {
    N_HOW(P "mixer.q_norm", B "attn_q_norm", PLUS_1),
    N_HOW(P "mixer.k_norm", B "attn_k_norm", PLUS_1), END_NAMES
};

/* ---- PLaMo ---- */

static const struct gg_convert_size plamo_sizes[] = {
    { .name = "s", .hf = "n_shared_head" },
    { .name = "d", .of = gg_convert_head_width },
    { .name = NULL }
};

static double plamo_kv_heads(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_attention_heads") / num_of(cfg, "n_shared_head");
}

static void put_plamo(struct gg_back_maker *m)
{
    gg_back_put_num(m, "n_shared_head",
                    num_of(&m->keys, "attention.head_count") /
                        num_of(&m->keys, "attention.head_count_kv"));
}

/* ---- PLaMo 2 ---- */

/* Layers with attention are those in the middle of each step, or the last if
 * there are fewer. */
static double has_attention(const struct gg_hf_config *cfg, int64_t layer)
{
    const double n = num_of(cfg, "num_hidden_layers");
    const double step = num_or(cfg, "mamba_step", 2);
    const double middle = floor(step / 2);
    if (!is_true(num_or(cfg, "mamba_enabled", 1)))
        return NAN;
    return n > middle ? is_equal(fmod((double)layer, step), middle)
                      : is_equal((double)layer + 1, n);
}

static double plamo2_kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return has_attention(cfg, layer) *
           value_or(num_at(cfg, "num_key_value_heads", layer), 4);
}

static double plamo2_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return has_attention(cfg, layer) *
           value_or(num_at(cfg, "num_attention_heads", layer), 32);
}

static double plamo2_inner_size(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "mamba_num_heads", 64) *
           num_or(cfg, "hidden_size_per_head", 128);
}

static void put_plamo2(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    const double first = gg_hf_config_first_layer(keys, gg_back_has_attention);
    gg_back_put_flag(m, "mamba_enabled",
                     gg_hf_config_list_len(keys, "attention.head_count") > 0);
    gg_back_put_num(
        m, "mamba_step",
        value_or(gg_back_attention_period(m), first == 0 ? 1 : 2 * first));
    gg_back_put_first_heads(m);
    gg_back_put_first_kv_heads(m);
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_plamo[] = {
    { .classes = "PlamoForCausalLM",
      .arch = "plamo",
      .sizes = plamo_sizes,
      .back = put_plamo,
      .names = { plamo_names },
      .keys = ROWS(ALWAYS("context_length", U32, 4096),
                   U32("embedding_length", "hidden_size"),
                   U32("feed_forward_length", "intermediate_size"),
                   U32("block_count", "num_hidden_layers"),
                   U32("attention.head_count", "num_attention_heads"),
                   OF("attention.head_count_kv", U32, plamo_kv_heads, IN_BACK),
                   F32("attention.layer_norm_rms_epsilon", "rms_norm_eps")),
      .only_keys = true },
    { .classes = "Plamo2ForCausalLM PLaMo2ForCausalLM",
      .arch = "plamo2",
      .back = put_plamo2,
      .names = { plamo2_names },
      .keys = ROWS(
          U32("vocab_size", "vocab_size"),
          U32("block_count", "num_hidden_layers"),
          EACH("attention.head_count_kv", U32, plamo2_kv_heads, IN_BACK),
          ELSE("attention.head_count_kv", U32, "num_key_value_heads", 4),
          EACH("attention.head_count", U32, plamo2_heads, IN_BACK),
          ELSE("attention.head_count", U32, "num_attention_heads", 32),
          ELSE("context_length", U32, "max_position_embeddings", 2048),
          ELSE("embedding_length", U32, "hidden_size", 4096),
          ELSE("attention.key_length", U32, "hidden_size_per_head", 128),
          ELSE("attention.value_length", U32, "hidden_size_per_head", 128),
          ELSE("attention.layer_norm_rms_epsilon", F32, "rms_norm_eps", 1e-06),
          ELSE("rope.freq_base", F32, "rope_theta rope_parameters.rope_theta",
               10000),
          ELSE("ssm.state_size", U32, "mamba_d_state", 64),
          ELSE("ssm.conv_kernel", U32, "mamba_d_conv", 4),
          ELSE("ssm.time_step_rank", U32, "mamba_num_heads", 64),
          OF("ssm.inner_size", U32, plamo2_inner_size, NO_BACK),
          ALWAYS("ssm.group_count", U32, 0),
          ELSE("feed_forward_length", U32, "intermediate_size", 13312)),
      .only_keys = true },
    { .classes = "Plamo3ForCausalLM PLaMo3ForCausalLM",
      .arch = "plamo3",
      .names = { plamo3_names, plamo2_names },
      .keys = ROWS(
          U32("vocab_size", "vocab_size"),
          U32("attention.sliding_window", "window_size sliding_window"),
          U32("attention.sliding_window_pattern", "sliding_window_pattern")) },
    { .classes = NULL }
};
