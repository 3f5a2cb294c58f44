/* SPDX-License-Identifier: MIT */
/* nemotron.c - classes of Nemotron */
#include "config.h"
#include "convert/class_row.h"

/* Its norms multiply by 1 + weight. */
static const struct gg_convert_name nemotron_names[] = {
    { "model.norm.weight", "output_norm.weight", GG_HOW_PLUS_1, NULL, NULL },
    { L "input_layernorm.weight", B "attn_norm.weight", GG_HOW_PLUS_1, NULL,
      NULL },
    { L "post_attention_layernorm.weight", B "ffn_norm.weight", GG_HOW_PLUS_1,
      NULL, NULL },
    END_NAMES
};

static const struct gg_convert_name nemotron_h_names[] = {
    MAMBA2(BACKBONE_MIXER), /* BACKBONE_MIXER "norm" is of the state space */
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

const struct gg_convert_arch gg_convert_family_nemotron[] = {
    { .classes = "NemotronForCausalLM",
      .arch = "nemotron",
      .names = OVER(nemotron_names),
      .keys = ROWS(U32("vocab_size", "vocab_size"),
                   F32("attention.layer_norm_epsilon",
                       "norm_eps layer_norm_eps layer_norm_epsilon "
                       "norm_epsilon"),

                   OF("rope.dimension_count", U32,
                      "partial_rotary_factor|rope_parameters.partial_rotary_"
                      "factor*hidden_size//num_attention_heads"),
                   NO_SCALING),
      /* whatever the tokenizer's files say */
      .last = ROWS(ALWAYS("/tokenizer.ggml.padding_token_id", U32, 0),
                   ALWAYS("/tokenizer.ggml.unknown_token_id", U32, 1)) },
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
    { .classes = NULL }
};
