/* SPDX-License-Identifier: MIT */
/* shared_keys.c - keys and sizes that several families compute */
#include "config.h"
#include "convert/class_row.h"

double gg_convert_head_width(const struct gg_hf_config *cfg)
{
    return floor(num_of(cfg, "hidden_size") /
                 num_of(cfg, "num_attention_heads"));
}

double gg_convert_head_dim(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "head_dim", gg_convert_head_width(cfg));
}

/* ---- heads ---- */

static double n_heads(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_attention_heads n_head n_heads");
}

double gg_convert_gqa_group_size(const struct gg_hf_config *cfg)
{
    return floor(num_of(cfg, "num_attention_heads") /
                 num_or(cfg, "num_key_value_heads", 1));
}

double gg_convert_query_rows(const struct gg_hf_config *cfg)
{
    return n_heads(cfg) * gg_convert_head_dim(cfg);
}

double gg_convert_key_rows(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "num_key_value_heads n_kv_heads", n_heads(cfg)) *
           gg_convert_head_dim(cfg);
}

double gg_convert_query_key_rows(const struct gg_hf_config *cfg)
{
    return gg_convert_query_rows(cfg) + gg_convert_key_rows(cfg);
}

/* ---- sizes that texts on axes name ---- */

/* Groups of a state space; rows of a head in the matrix of latent attention
 * that gives keys, without their rotary part, and values. */
static double state_groups(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "n_groups mamba_n_groups n_group", 1);
}

static double kv_b_rows(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "qk_nope_head_dim") + num_of(cfg, "v_head_dim");
}

const struct gg_convert_size gg_convert_sizes[] = {
    { .name = "h", .hf = "num_attention_heads n_head n_heads" },
    { .name = "k",
      .hf = "num_key_value_heads n_kv_heads num_attention_heads n_head "
            "n_heads" },
    { .name = "g", .of = gg_convert_gqa_group_size },
    { .name = "e", .hf = "num_local_experts num_experts n_routed_experts" },
    { .name = "qrows", .of = gg_convert_query_rows },
    { .name = "krows", .of = gg_convert_key_rows },
    { .name = "qkrows", .of = gg_convert_query_key_rows },
    { .name = "groups", .of = state_groups },
    { .name = "nope", .hf = "qk_nope_head_dim" },
    { .name = "vdim", .hf = "v_head_dim" },
    { .name = "kvb", .of = kv_b_rows },
    { .name = NULL }
};

/* ---- rotary positions ---- */

double gg_convert_rotary_dims(const struct gg_hf_config *cfg,
                              const char *names, double part)
{
    return floor(gg_convert_head_dim(cfg) * num_or(cfg, names, part));
}

double gg_convert_rotary_half(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(
        cfg, "rope_parameters.partial_rotary_factor partial_rotary_factor",
        0.5);
}

double gg_convert_rotary_width(const struct gg_hf_config *cfg, double part)
{
    return floor(num_or(cfg,
                        "partial_rotary_factor "
                        "rope_parameters.partial_rotary_factor",
                        part) *
                 num_of(cfg, "hidden_size") /
                 num_of(cfg, "num_attention_heads"));
}

double gg_convert_rope_base(const struct gg_hf_config *cfg)
{
    const double base =
        num_of(cfg, "rope_theta rotary_emb_base rope_parameters.rope_theta");
    return base == 10000 ? NAN : base;
}

/* ---- layers ---- */

double gg_convert_blocks_nextn(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_hidden_layers") + num_or(cfg, N_NEXTN, 0);
}

double gg_convert_is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_hf_config_is_word(cfg, "layer_types", layer,
                                "sliding_attention");
}

double gg_convert_is_full(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_hf_config_is_word(cfg, "layer_types", layer, "full_attention");
}

double gg_convert_attention_by_period(const struct gg_hf_config *cfg,
                                      int64_t layer)
{
    return is_equal(fmod((double)layer, num_of(cfg, "attn_layer_period")),
                    num_of(cfg, "attn_layer_offset"));
}

static double is_sparse(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(
        gg_hf_config_is_word(cfg, "mlp_layer_types", layer, "dense"), 0);
}

double gg_convert_first_sparse(const struct gg_hf_config *cfg)
{
    return gg_hf_config_first_layer(cfg, is_sparse);
}

double gg_convert_all_dense(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "n_routed_experts"))
               ? 0
               : num_of(cfg, "num_hidden_layers");
}

/* ---- latent attention ---- */

double gg_convert_constant_one(const struct gg_hf_config *cfg)
{
    (void)cfg;
    return 1;
}

double gg_convert_latent_key_length(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "kv_lora_rank", 512) + num_of(cfg, "qk_rope_head_dim");
}

double gg_convert_mla_key_length(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "qk_nope_head_dim") + num_of(cfg, "qk_rope_head_dim");
}

double gg_convert_yarn_log_multiplier(const struct gg_hf_config *cfg)
{
    return 0.1 * num_of(cfg, "rope_scaling.mscale_all_dim "
                             "rope_parameters.mscale_all_dim");
}

/* ---- widths and experts ---- */

double gg_convert_feed_forward(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "intermediate_size");
}

double gg_convert_four_times_width(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, "hidden_size");
}

double gg_convert_shared_width(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "moe_intermediate_size") *
           num_of(cfg, "num_shared_experts");
}

double gg_convert_norm_topk(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "norm_topk_prob") == 1 ? 1 : NAN;
}

double gg_convert_mamba_inner_size(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "mamba_expand") * num_of(cfg, "hidden_size");
}
