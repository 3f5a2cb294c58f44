/* SPDX-License-Identifier: MIT */
/* nemotron.c - classes of Nemotron */
#include "config.h"
#include "convert/class_row.h"

/* Its norms multiply by 1 + weight. */
static const struct gg_convert_name nemotron_names[] = {
    N_HOW("model.norm.weight", "output_norm.weight", PLUS_1),
    N_HOW(L "input_layernorm.weight", B "attn_norm.weight", PLUS_1),
    N_HOW(L "post_attention_layernorm.weight", B "ffn_norm.weight", PLUS_1),
    END_NAMES
};

static const struct gg_convert_name nemotron_h_names[] = {
    MAMBA2(BACKBONE_MIXER), /* includes the state space's "norm" */
    N("backbone.embeddings", "token_embd"),
    N("backbone.norm_f", "output_norm"),
    N("backbone.layers.%.norm", B "attn_norm"),
    N(BACKBONE_MIXER "in_proj", B "ssm_in"),
    N(BACKBONE_MIXER "out_proj", B "ssm_out"),
    N_HOW(BACKBONE_MIXER "q_proj", B "attn_q", ROPE_Q),
    N_HOW(BACKBONE_MIXER "k_proj", B "attn_k", ROPE_K),
    N(BACKBONE_MIXER "v_proj", B "attn_v"),
    N(BACKBONE_MIXER "o_proj", B "attn_output"),
    N(BACKBONE_MIXER "up_proj", B "ffn_up"),
    N(BACKBONE_MIXER "down_proj", B "ffn_down"),
    N(BACKBONE_MIXER "gate", B "ffn_gate_inp"),
    N(BACKBONE_MIXER "gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(BACKBONE_MIXER "experts.@.up_proj", B "ffn_up_exps"),
    N(BACKBONE_MIXER "experts.@.down_proj", B "ffn_down_exps"),
    N(BACKBONE_MIXER "experts.up_proj", B "ffn_up_exps.weight"),
    N(BACKBONE_MIXER "experts.down_proj", B "ffn_down_exps.weight"),
    N(BACKBONE_MIXER "shared_experts.up_proj", B "ffn_up_shexp"),
    N(BACKBONE_MIXER "shared_experts.down_proj", B "ffn_down_shexp"),
    N(BACKBONE_MIXER "fc1_latent_proj", B "ffn_latent_down"),
    N(BACKBONE_MIXER "fc2_latent_proj", B "ffn_latent_up"),
    END_NAMES
};

#define NEMOTRON_H                                                            \
    EACH("attention.head_count_kv", U32, kv_heads, IN_BACK),                  \
        ELSE("attention.layer_norm_rms_epsilon", F32,                         \
             "layer_norm_epsilon rms_norm_eps norm_eps", NAN),                \
        U32("vocab_size", "vocab_size"),                                      \
        ELSE_OF("rope.dimension_count", U32, "head_dim attention_head_dim",   \
                gg_convert_head_dim),                                         \
        U32("ssm.conv_kernel", "conv_kernel"),                                \
        U32("ssm.state_size", "ssm_state_size"),                              \
        U32("ssm.group_count", "n_groups"),                                   \
        OF("ssm.inner_size", U32, inner_size, IN_BACK),                       \
        U32("ssm.time_step_rank", "mamba_num_heads"),                         \
        ALWAYS("rope.scaling.finetuned", BOOL, 0),                            \
        ALWAYS("context_length", U32, 1 << 20),                               \
        U32("attention.key_length", "head_dim attention_head_dim"),           \
        U32("attention.value_length", "head_dim attention_head_dim")

static double rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_width(cfg, NAN);
}

static void put_nemotron(struct gg_back_maker *m)
{
    gg_back_put_num(m, "partial_rotary_factor",
                    gg_back_rotary_of_width(&m->keys));
}

/* ---- Nemotron-H: layers are letters of a text, or words of a list ---- */

static double is_kind(const struct gg_hf_config *cfg, int64_t layer,
                      char letter, const char *word)
{
    return value_or(
        gg_hf_config_has_letter(cfg, "hybrid_override_pattern", layer, letter),
        gg_hf_config_is_word(cfg, "layers_block_type", layer, word));
}

static double kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_kind(cfg, layer, '*', "attention") *
           num_at(cfg, "num_key_value_heads", layer);
}

static double moe_width(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_kind(cfg, layer, 'E', "moe") *
           num_at(cfg, "moe_intermediate_size", layer);
}

static double mlp_width(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_kind(cfg, layer, '-', "mlp") *
           num_at(cfg, "intermediate_size", layer);
}

static double inner_size(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "mamba_num_heads") * num_of(cfg, "mamba_head_dim");
}

static bool has_experts(const struct gg_hf_config *cfg)
{
    return gg_hf_config_get(cfg, "num_experts_per_tok") != NULL;
}

/* 0, 1 or 2: a state space, attention, a feed-forward part. */
static double kind_of_layer(const struct gg_hf_config *keys, int64_t layer)
{
    return gg_back_has_attention(keys, layer) +
           2 * is_above(num_at(keys, "feed_forward_length", layer), 0);
}

static double width_if_any(const struct gg_hf_config *keys, int64_t layer)
{
    const double n = num_at(keys, "feed_forward_length", layer);
    return n > 0 ? n : NAN;
}

static void put_width(struct gg_back_maker *m)
{
    gg_back_put_num(m, "intermediate_size",
                    gg_back_first_layer(m, width_if_any));
}

static void put_mlp_layers(struct gg_back_maker *m)
{
    gg_back_put_num(m, "max_position_embeddings",
                    num_of(&m->keys, "context_length"));
    gg_back_put_layer_words(m, "layers_block_type", kind_of_layer,
                            "mamba attention mlp");
    gg_back_put_first_kv_heads(m);
    put_width(m);
    gg_back_put_num(m, "mamba_head_dim", gg_back_state_head_dim(&m->keys));
}

static void put_moe_layers(struct gg_back_maker *m)
{
    gg_back_put_num(m, "max_position_embeddings",
                    num_of(&m->keys, "context_length"));
    put_width(m);
    gg_back_put_layer_words(m, "layers_block_type", kind_of_layer,
                            "mamba attention moe");
    gg_back_put_first_kv_heads(m);
    gg_back_put_num(m, "mamba_head_dim", gg_back_state_head_dim(&m->keys));
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_nemotron[] = {
    { .classes = "NemotronForCausalLM",
      .instead = { { "layer_norm_eps", "norm_eps" } },
      .arch = "nemotron",
      .back = put_nemotron,
      .names = OVER(nemotron_names),
      .keys = ROWS(U32("vocab_size", "vocab_size"),
                   F32("attention.layer_norm_epsilon",
                       "norm_eps layer_norm_eps layer_norm_epsilon "
                       "norm_epsilon"),

                   OF("rope.dimension_count", U32, rotary_dims, IN_BACK),
                   NO_SCALING),
      /* whatever the tokenizer's files say */
      .last = ROWS(ALWAYS("/tokenizer.ggml.padding_token_id", U32, 0),
                   ALWAYS("/tokenizer.ggml.unknown_token_id", U32, 1)) },
    { .classes = "NemotronHForCausalLM",
      .instead = { { "rms_norm_eps", "layer_norm_epsilon" },
                   { "layer_norm_eps", "layer_norm_epsilon" },
                   { "num_experts", "n_routed_experts" } },
      .arch = "nemotron_h_moe",
      .back = put_moe_layers,
      .when = has_experts,
      .names = { nemotron_h_names, gg_convert_names_llama },
      .keys = ROWS(EACH("feed_forward_length", U32, moe_width, IN_BACK),
                   NEMOTRON_H, EXPERT_FF,
                   U32("expert_shared_feed_forward_length",
                       "moe_shared_expert_intermediate_size"),
                   U32("expert_shared_count", "n_shared_experts"),
                   BOOL("expert_weights_norm", "norm_topk_prob"),
                   F32("expert_weights_scale", "routed_scaling_factor"),
                   U32("moe_latent_size", "moe_latent_size")),
      .permuted = true },
    { .classes = "NemotronHForCausalLM",
      .instead = { { "rms_norm_eps", "layer_norm_epsilon" },
                   { "layer_norm_eps", "layer_norm_epsilon" },
                   { "num_experts", "n_routed_experts" } },
      .arch = "nemotron_h",
      .back = put_mlp_layers,
      .names = { nemotron_h_names, gg_convert_names_llama },
      .keys = ROWS(EACH("feed_forward_length", U32, mlp_width, IN_BACK),
                   NEMOTRON_H),
      .last = BEGINS,
      .permuted = true },
    { .classes = NULL }
};
