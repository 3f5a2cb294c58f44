/* SPDX-License-Identifier: MIT */
/* horizon.c - classes of K2 Horizon */
#include "config.h"
#include "convert/class_row.h"

#include <stdio.h>

/* The model's own code rotates the first rope_head_dim / 2 elements of each
 * half of a head; in files these elements of both halves come first. */
static const struct gg_convert_name horizon_names[] = {
    N_AXES(L "self_attn.q_proj", B "attn_q",
           "h 2 parts x, * > h parts 2 x, *"),
    N_AXES(L "self_attn.k_proj", B "attn_k",
           "k 2 parts x, * > k parts 2 x, *"),
    N_AXES(L "self_attn.q_norm", B "attn_q_norm",
           "h 2 parts x, * > h parts 2 x, *"),
    N_AXES(L "self_attn.k_norm", B "attn_k_norm",
           "k 2 parts x, * > k parts 2 x, *"),
    N(L "mlp.gate.bias", B "exp_probs_b.bias"),
    N(L "self_attn.gate_proj", B "attn_gate"),
    N(L "self_attn.v_router", B "attn_v_gate"),
    N(L "self_attn.v_experts.@", B "attn_v_exps"),
    END_NAMES
};

/* Parts of a head as large as the one that rotates. */
static double n_parts(const struct gg_hf_config *cfg)
{
    const double d = gg_convert_head_dim(cfg);
    return d / num_or(cfg, "rope_head_dim", d);
}

static const struct gg_convert_size horizon_sizes[] = {
    { .name = "parts", .of = n_parts }, { .name = NULL }
};

/* Is the layer dense? */
static double is_only_mlp(const struct gg_hf_config *cfg, int64_t layer)
{
    const double n = num_of(cfg, "num_dense_layers");
    return isnan(n)
               ? value_or(gg_hf_config_list_has(cfg, "mlp_only_layers", layer),
                          0)
               : (double)layer < n;
}

static double has_experts(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_only_mlp(cfg, layer) == 0;
}

static double horizon_n_dense(const struct gg_hf_config *cfg)
{
    return gg_hf_config_first_layer(cfg, has_experts);
}

/* Do dense layers come first? */
static double is_in_order(const struct gg_hf_config *cfg, int64_t layer)
{
    return has_experts(cfg, layer) == ((double)layer >= horizon_n_dense(cfg));
}

/* Files have one gate and one activation, no biases and no windows. */
static bool is_horizon(const struct gg_hf_config *cfg)
{
    const double gate = gg_hf_config_is_word(cfg, "attention_gate_func", -1,
                                             "softplus"),
                 act = gg_hf_config_is_word(cfg, "hidden_act", -1, "silu");
    return is_true(value_or(gate, 1)) && is_true(value_or(act, 1)) &&
           num_or(cfg, "attention_bias", 0) == 0 &&
           num_or(cfg, "sliding_window", 0) == 0 && fmod(n_parts(cfg), 1) == 0;
}

/* The number of router_score_func; NAN: another function. */
static double horizon_gating(const struct gg_hf_config *cfg)
{
    const char *name = "router_score_func";
    return is_true(gg_hf_config_is_word(cfg, name, -1, "softmax"))   ? 1
           : is_true(gg_hf_config_is_word(cfg, name, -1, "sigmoid")) ? 2
                                                                     : NAN;
}

/* Files have one flag for the weights of experts and of those of values. The
 * model's own code normalises the latter if a token uses several. */
static bool has_one_flag(const struct gg_hf_config *cfg)
{
    const double used = num_or(cfg, "mova_num_experts_per_tok", 0);
    return num_or(cfg, "mova_num_experts", 0) == 0 ||
           (used > 0 && is_true(num_of(cfg, "norm_topk_prob")) == (used > 1));
}

/* Layers with experts come after the others, without a step. */
static bool is_sparse_horizon(const struct gg_hf_config *cfg)
{
    return is_horizon(cfg) && is_true(num_of(cfg, "num_experts")) &&
           num_or(cfg, "decoder_sparse_step", 1) == 1 &&
           !isnan(horizon_gating(cfg)) && has_one_flag(cfg) &&
           is_true(gg_hf_config_all_layers(cfg, is_in_order));
}

static bool is_dense_horizon(const struct gg_hf_config *cfg)
{
    return is_horizon(cfg) && !is_true(num_of(cfg, "num_experts"));
}

/* A number for experts of values; NAN unless there are any. */
static double of_value_experts(const struct gg_hf_config *cfg,
                               const char *name)
{
    return num_of(cfg, "mova_num_experts") > 0 &&
                   num_of(cfg, "mova_num_experts_per_tok") > 0
               ? num_of(cfg, name)
               : NAN;
}

static double n_value_experts(const struct gg_hf_config *cfg)
{
    return of_value_experts(cfg, "mova_num_experts");
}

static double n_value_experts_used(const struct gg_hf_config *cfg)
{
    return of_value_experts(cfg, "mova_num_experts_per_tok");
}

static double shared_width_above_0(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_shared_experts") > 0 ? gg_convert_shared_width(cfg)
                                                 : NAN;
}

static bool has_tensor(const struct gg_back_maker *m, const char *name)
{
    return !isnan(gg_back_count_rows(m, name));
}

static void put_horizon(struct gg_back_maker *m)
{
    gg_back_put(m->root, "attention_gate_func",
                has_tensor(m, "blk.0.attn_gate.weight")
                    ? json_string("softplus")
                    : json_null());
    gg_back_put_flag(m, "query_key_norm",
                     has_tensor(m, "blk.0.attn_q_norm.weight"));
}

static void put_sparse_horizon(struct gg_back_maker *m)
{
    const double n = num_or(&m->keys, "leading_dense_block_count", 0);
    char bias[64];
    json_t *list = json_array();
    for (int64_t i = 0; i < gg_back_n_layers(m) && (double)i < n; i++)
        json_array_append_new(list, json_integer(i));
    gg_back_put(m->root, "mlp_only_layers", list);
    snprintf(bias, sizeof bias, "blk.%d.exp_probs_b.bias", (int)n);
    gg_back_put_flag(m, "moe_gate_bias", has_tensor(m, bias));
    gg_back_put_word(m, "router_score_func",
                     num_of(&m->keys, "expert_gating_func") == 1 ? "softmax"
                                                                 : "sigmoid");
    gg_back_put_num(m, "mova_num_experts",
                    num_of(&m->keys, "attention.value_expert_count"));
    gg_back_put_num(m, "mova_num_experts_per_tok",
                    num_of(&m->keys, "attention.value_expert_used_count"));
    put_horizon(m);
}

const struct gg_convert_arch gg_convert_family_horizon[] = {
    { .classes = "K2HorizonForCausalLM K2AuroraForCausalLM",
      .arch = "k2-horizon",
      .when = is_sparse_horizon,
      .model_type = "k2_horizon",
      .sizes = horizon_sizes,
      .back = put_sparse_horizon,
      .names = OVER_2(horizon_names, gg_convert_names_experts),
      .keys = ROWS(
          ELSE("attention.group_norm_groups", U32, "layernorm_num_groups", 1),
          U32("rope.dimension_count", "rope_head_dim"), EXPERT_FF,
          OF("leading_dense_block_count", U32, horizon_n_dense, IN_BACK),
          ELSE("moe_every_n_layers", U32, "decoder_sparse_step", 1),
          ELSE("expert_shared_count", U32, "num_shared_experts", 0),
          ELSE("expert_weights_norm", BOOL, "norm_topk_prob", 0),
          OF("expert_shared_feed_forward_length", U32, shared_width_above_0,
             NO_BACK),
          F32("expert_weights_scale", "router_scaling_factor"),
          OF("expert_gating_func", U32, horizon_gating, IN_BACK),
          OF("attention.value_expert_count", U32, n_value_experts, IN_BACK),
          OF("attention.value_expert_used_count", U32, n_value_experts_used,
             IN_BACK)) },
    { .classes = "K2HorizonForCausalLM K2AuroraForCausalLM",
      .arch = "k2-horizon",
      .when = is_dense_horizon,
      .model_type = "k2_horizon",
      .sizes = horizon_sizes,
      .back = put_horizon,
      .names = OVER(horizon_names),
      .keys = ROWS(
          ELSE("attention.group_norm_groups", U32, "layernorm_num_groups", 1),
          U32("rope.dimension_count", "rope_head_dim")) },
    { .classes = NULL }
};
