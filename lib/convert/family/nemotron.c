/* SPDX-License-Identifier: MIT */
/* nemotron.c - classes of Nemotron */
#include "config.h"
#include "convert/class_row.h"

#include <inttypes.h>
#include <stdio.h>

/* Its norms multiply by 1 + weight. */
static const struct gg_convert_name nemotron_names[] = {
    N_HOW("model.norm.weight", "output_norm.weight", PLUS_1),
    N_HOW(L "input_layernorm.weight", B "attn_norm.weight", PLUS_1),
    N_HOW(L "post_attention_layernorm.weight", B "ffn_norm.weight", PLUS_1),
    END_NAMES
};

/* P: first segment of the names */
#define NEMOTRON_H_NAMES(P)                                                   \
    MAMBA2(P ".layers.%.mixer."), /* includes the state space's "norm" */     \
        N(P ".embeddings", "token_embd"), N(P ".norm_f", "output_norm"),      \
        N(P ".layers.%.norm", B "attn_norm"),                                 \
        N(P ".layers.%.mixer.in_proj", B "ssm_in"),                           \
        N(P ".layers.%.mixer.out_proj", B "ssm_out"),                         \
        N_HOW(P ".layers.%.mixer.q_proj", B "attn_q", ROPE_Q),                \
        N_HOW(P ".layers.%.mixer.k_proj", B "attn_k", ROPE_K),                \
        N(P ".layers.%.mixer.v_proj", B "attn_v"),                            \
        N(P ".layers.%.mixer.o_proj", B "attn_output"),                       \
        N(P ".layers.%.mixer.up_proj", B "ffn_up"),                           \
        N(P ".layers.%.mixer.down_proj", B "ffn_down"),                       \
        N(P ".layers.%.mixer.gate", B "ffn_gate_inp"),                        \
        N(P ".layers.%.mixer.gate.e_score_correction_bias",                   \
          B "exp_probs_b.bias"),                                              \
        N(P ".layers.%.mixer.experts.@.up_proj", B "ffn_up_exps"),            \
        N(P ".layers.%.mixer.experts.@.down_proj", B "ffn_down_exps"),        \
        N(P ".layers.%.mixer.experts.up_proj", B "ffn_up_exps.weight"),       \
        N(P ".layers.%.mixer.experts.down_proj", B "ffn_down_exps.weight"),   \
        N(P ".layers.%.mixer.shared_experts.up_proj", B "ffn_up_shexp"),      \
        N(P ".layers.%.mixer.shared_experts.down_proj", B "ffn_down_shexp"),  \
        N(P ".layers.%.mixer.fc1_latent_proj", B "ffn_latent_down"),          \
        N(P ".layers.%.mixer.fc2_latent_proj", B "ffn_latent_up")

static const struct gg_convert_name nemotron_h_names[] = {
    NEMOTRON_H_NAMES("backbone"), END_NAMES
};
static const struct gg_convert_name nemotron_puzzle_names[] = {
    NEMOTRON_H_NAMES("model"), END_NAMES
};

#define NEMOTRON_H                                                            \
    EACH("attention.head_count_kv", U32, kv_heads, IN_BACK),                  \
        ELSE("attention.layer_norm_rms_epsilon", F32,                         \
             "layer_norm_epsilon rms_norm_eps norm_eps", NAN),                \
        ELSE("attention.layer_norm_epsilon", F32,                             \
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

/* Path of a member of a layer's block. */
static const char *block_path(char path[64], int64_t layer, const char *name)
{
    snprintf(path, 64, "block_configs.%" PRId64 ".%s", layer < 0 ? 0 : layer,
             name);
    return path;
}

static double is_kind(const struct gg_hf_config *cfg, int64_t layer,
                      char letter, const char *word)
{
    char path[64];
    const double listed =
        value_or(gg_hf_config_is_word(cfg, "layers_block_type", layer, word),
                 gg_hf_config_is_word(
                     cfg, block_path(path, layer, "block_type"), layer, word));
    return value_or(
        gg_hf_config_has_letter(cfg, "hybrid_override_pattern", layer, letter),
        listed);
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

/* ---- Puzzle: layers with experts differ ---- */

static double block_of_experts(const struct gg_hf_config *cfg, int64_t layer,
                               const char *name)
{
    char path[64];
    return is_kind(cfg, layer, 'E', "moe") > 0
               ? num_of(cfg, block_path(path, layer, name))
               : 0;
}

static double block_width(const struct gg_hf_config *cfg, int64_t layer)
{
    return block_of_experts(cfg, layer, "moe_intermediate_size");
}

static double block_used(const struct gg_hf_config *cfg, int64_t layer)
{
    return block_of_experts(cfg, layer, "num_experts_per_tok");
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

static void put_block(struct gg_back_maker *m, int64_t layer)
{
    static const char *const kinds[] = { "mamba", "attention", "moe" };
    const struct gg_hf_config *keys = &m->keys;
    const double kind = kind_of_layer(keys, layer);
    json_t *block = json_object();
    gg_back_put(block, "block_type", json_string(kinds[(int)kind]));
    if (kind == 2) {
        gg_back_put(block, "moe_intermediate_size",
                    gg_back_number_to_json(
                        num_at(keys, "expert_feed_forward_length", layer)));
        gg_back_put(
            block, "num_experts_per_tok",
            gg_back_number_to_json(num_at(keys, "expert_used_count", layer)));
    }
    json_array_append_new(json_object_get(m->root, "block_configs"), block);
}

static void put_puzzle(struct gg_back_maker *m)
{
    put_moe_layers(m);
    gg_back_remove_member(m, "intermediate_size");
    gg_back_remove_member(m, "moe_intermediate_size");
    gg_back_remove_member(m, "num_experts_per_tok");
    gg_back_put(m->root, "block_configs", json_array());
    for (int64_t i = 0; i < gg_back_n_layers(m); i++)
        put_block(m, i);
}

static bool has_layers_of_experts(const struct gg_hf_config *cfg)
{
    return gg_hf_config_get(cfg, "block_configs") != NULL;
}

/* ---- rows ---- */

#define NEMOTRON_H_MOE                                                        \
    U32("expert_shared_feed_forward_length",                                  \
        "moe_shared_expert_intermediate_size"),                               \
        U32("expert_shared_count", "n_shared_experts"),                       \
        BOOL("expert_weights_norm", "norm_topk_prob"),                        \
        F32("expert_weights_scale", "routed_scaling_factor"),                 \
        U32("moe_latent_size", "moe_latent_size")

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
                   NEMOTRON_H, EXPERT_FF, NEMOTRON_H_MOE),
      .permuted = true },
    { .classes = "NemotronHPuzzleForCausalLM",
      .instead = { { "rms_norm_eps", "layer_norm_epsilon" },
                   { "layer_norm_eps", "layer_norm_epsilon" },
                   { "num_experts", "n_routed_experts" } },
      .arch = "nemotron_h_moe",
      .back = put_puzzle,
      .when = has_layers_of_experts,
      .names = { nemotron_puzzle_names, gg_convert_names_llama },
      .keys = ROWS(
          EACH("feed_forward_length", U32, block_width, IN_BACK), NEMOTRON_H,
          EACH("expert_feed_forward_length", U32, block_width, IN_BACK),
          EACH("expert_used_count", U32, block_used, IN_BACK), NEMOTRON_H_MOE),
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
