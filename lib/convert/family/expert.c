/* SPDX-License-Identifier: MIT */
/* expert.c - classes of models with experts of several makers */
#include "config.h"
#include "convert/class_row.h"

/* Grok 2, and Grok 1 as it was made a folder. */
#define G "transformer.decoder_layer.%."

static const struct gg_convert_name grok_names[] = {
    N(L "pre_attn_norm", B "attn_norm"),
    N(L "post_attn_norm", B "attn_output_norm"),
    N(L "pre_moe_norm", B "ffn_norm"),
    N(L "post_moe_norm", B "post_ffw_norm"),
    N("transformer.in_out_embed", "token_embd"),
    N("transformer.rms_norm", "output_norm"),
    N(G "rms_norm", B "attn_norm"),
    N(G "rms_norm_1", B "attn_output_norm"),
    N(G "rms_norm_2", B "ffn_norm"),
    N(G "rms_norm_3", B "layer_output_norm"),
    N(G "multi_head_attention.query", B "attn_q"),
    N(G "multi_head_attention.key", B "attn_k"),
    N(G "multi_head_attention.value", B "attn_v"),
    N(G "multi_head_attention.linear", B "attn_output"),
    N(G "router", B "ffn_gate_inp"),
    N(G "moe.@.linear", B "ffn_gate_exps"),
    N(G "moe.@.linear_v", B "ffn_up_exps"),
    N(G "moe.@.linear_1", B "ffn_down_exps"),
    END_NAMES
};

/* Experts beside a part that all tokens take. */
static const struct gg_convert_name arctic_names[] = {
    N(L "residual_layernorm", B "ffn_norm"),
    N(L "post_attention_layernorm", B "ffn_norm_exps"),
    N(L "residual_mlp.w1", B "ffn_gate"),
    N(L "residual_mlp.w2", B "ffn_down"),
    N(L "residual_mlp.w3", B "ffn_up"),
    END_NAMES
};

static const struct gg_convert_name laguna_names[] = {
    N(L "self_attn.g_proj", B "attn_gate"),
    N(L "mlp.experts.e_score_correction_bias", B "exp_probs_b.bias"), END_NAMES
};

static const struct gg_convert_name mimo2_names[] = {
    N(L "self_attn.qkv_proj", B "attn_qkv"),
    N(L "self_attn.attention_sink_bias", B "attn_sinks.weight"),
    N(L "pre_mlp_layernorm", B "ffn_norm"),
    N(L "final_layernorm", B "layer_output_norm"), END_NAMES
};

#define SH "shared_head."

static const struct gg_convert_name step35_names[] = {
    NORMS_PLUS_1,
    N_HOW(L "enorm", B "nextn.enorm", PLUS_1),
    N_HOW(L "hnorm", B "nextn.hnorm", PLUS_1),
    N_HOW(L "transformer." SH "norm", B "nextn.shared_head_norm", PLUS_1),
    N(L "transformer." SH "output", B "nextn.shared_head_head"),
    N_HOW(L SH "norm", B "nextn.shared_head_norm", PLUS_1),
    N_HOW(L "self_attn.g_proj", B "attn_gate", SQUEEZE),
    N_HOW(L "moe.gate", B "ffn_gate_inp", SQUEEZE),
    N(L "moe.router_bias", B "exp_probs_b.bias"),
    N_HOW(L "moe.gate_proj", B "ffn_gate_exps", SQUEEZE),
    N_HOW(L "moe.up_proj", B "ffn_up_exps", SQUEEZE),
    N_HOW(L "moe.down_proj", B "ffn_down_exps", SQUEEZE),
    N(L "share_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "share_expert.up_proj", B "ffn_up_shexp"),
    N(L "share_expert.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

#define GROK_KEYS                                                             \
    OF("attn_logit_softcapping", F32, "attn_logit_softcapping|30"),           \
        OF("router_logit_softcapping", F32, "router_logit_softcapping|30"),   \
        OF("final_logit_softcapping", F32,                                    \
           "final_logit_softcapping>0?final_logit_softcapping"),              \
        EXPERT_FF,                                                            \
        OF("attention.temperature_length", U32,                               \
           "attn_temperature_len>0?attn_temperature_len"),                    \
        OF("attention.output_scale", F32,                                     \
           "attn_output_multiplier|pow(" HEAD ",-0.5)"),                      \
        F32("embedding_scale", "embedding_multiplier_scale"),                 \
        F32("logit_scale", "output_multiplier_scale")

/* Of two kinds of layers, by the word that stands for those with windows. */
#define BY_TYPE(NAME)                                                         \
    "layer_types:sliding_attention?(attention_other_setting." NAME "|" NAME   \
    "):" NAME
#define HYBRID(WINDOWS, FULL)                                                 \
    "i<num_hidden_layers?(hybrid_layer_pattern?(" WINDOWS "):" FULL           \
    "):" WINDOWS
#define MIMO_LAYERS "num_hidden_layers+num_nextn_predict_layers|3"
#define SAME(NAME)  "(swa_" NAME "|" NAME "=" NAME ")"

const struct gg_convert_arch gg_convert_family_expert[] = {
    { .classes = "Grok1ForCausalLM GrokForCausalLM",
      .arch = "grok",
      .when = "rope_type:yarn+rope_type:original",
      .names = OVER_2(grok_names, gg_convert_names_mixtral),
      .keys = ROWS(GROK_KEYS, WORD("rope.scaling.type", "yarn"),
                   F32("rope.scaling.factor", "scaling_factor"),
                   U32("rope.scaling.original_context_length",
                       "original_max_position_embeddings"),
                   F32("rope.scaling.yarn_ext_factor", "extrapolation_factor"),
                   F32("rope.scaling.yarn_attn_factor", "attn_factor"),
                   F32("rope.scaling.yarn_beta_fast", "beta_fast"),
                   F32("rope.scaling.yarn_beta_slow", "beta_slow")) },
    { .classes = "Grok1ForCausalLM GrokForCausalLM",
      .arch = "grok",
      .names = OVER_2(grok_names, gg_convert_names_mixtral),
      .keys = ROWS(GROK_KEYS) },
    { .classes = "ArcticForCausalLM",
      .arch = "arctic",
      .names = OVER_2(arctic_names, gg_convert_names_mixtral),
      .keys = ROWS(VOCAB_SIZE, OF("rope.dimension_count", U32,
                                  "hidden_size//num_attention_heads")),
      .turned = true },
    /* every fourth layer, from the first on, sees all */
    { .classes = "LagunaForCausalLM",
      .arch = "laguna",
      .when = "((sliding_window|0=0)+"
              "all(layer_types:full_attention=(i%4=0))|1)*"
              "(moe_router_logit_softcapping|0=0)",
      .names = OVER_2(laguna_names, gg_convert_names_experts),
      .keys = ROWS(
          EACH("attention.head_count", U32,
               "num_attention_heads_per_layer|num_attention_heads"),
          VOCAB_SIZE,
          OF("attention.sliding_window", U32,
             "sliding_window>0?sliding_window"),
          EXPERT_FF, SHARED_FF, ALWAYS("expert_weights_norm", BOOL, 1),
          F32("expert_weights_scale", "moe_routed_scaling_factor"),
          ALWAYS("expert_gating_func", U32, 2), LEAD_TYPES("1"),
          OF("rope.dimension_count", U32,
             HEAD "*rope_parameters.full_attention.partial_rotary_factor|1"
                  "//1"),
          OF("rope.dimension_count_swa", U32,
             "rope_parameters.sliding_attention!?" HEAD
             "*rope_parameters.sliding_attention.partial_rotary_factor|1"
             "//1")) },
    /* three layers that draft, of which config.json does not tell */
    { .classes = "MiMoV2FlashForCausalLM MiMoV2ForCausalLM",
      .arch = "mimo2",
      .when = SAME("head_dim") "*" SAME("v_head_dim") "*" SAME(
          "num_attention_heads"),
      .layers = MIMO_LAYERS,
      .drafts = "model.mtp.layers.",
      .names = OVER_3(mimo2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(
          OF("block_count", U32, MIMO_LAYERS),
          EACH("attention.head_count_kv", U32,
               HYBRID("swa_num_key_value_heads", "num_key_value_heads")),
          WINDOW,
          EACH("attention.sliding_window_pattern", U32, HYBRID("1", "0")),
          U32("attention.value_length", "v_head_dim"), EXPERT_FF,
          PART_ROT("1"),
          OF("attention.layer_norm_rms_epsilon", F32,
             "layernorm_epsilon|1e-5"),
          F32("attention.value_scale", "attention_value_scale"),
          OF("nextn_predict_layers", U32, "num_nextn_predict_layers|3")) },
    { .classes = "Step3p5ForCausalLM Step3p7ForConditionalGeneration",
      .arch = "step35",
      .when = "all((layer_types:sliding_attention?1:0.5)="
              "partial_rotary_factors)|1",
      .layers = LAYERS_NEXTN,
      .names = OVER_2(step35_names, gg_convert_names_nextn),
      .keys = ROWS(
          BLOCKS_NEXTN,
          EACH("attention.head_count", U32, BY_TYPE("num_attention_heads")),
          OF("rope.freq_base", F32, "rope_theta"),
          EACH("attention.head_count_kv", U32,
               BY_TYPE("num_attention_groups")),
          WINDOW, PATTERN, U32("expert_count", "moe_num_experts"),
          U32("expert_used_count", "moe_top_k"), EXPERT_FF,
          U32("expert_shared_feed_forward_length", "share_expert_dim"),
          F32("expert_weights_scale", "moe_router_scaling_factor"),
          BOOL("expert_weights_norm", "norm_expert_weight"),
          OF("leading_dense_block_count", U32, "number(moe_layers_enum)|0"),
          OF("moe_every_n_layers", U32, "moe_every_n_layer|1"),
          OF("attention.layer_norm_rms_epsilon", F32, "rms_norm_eps|1e-5"),
          EACH("swiglu_clamp_exp", F32, "swiglu_limits!?swiglu_limits|0"),
          EACH("swiglu_clamp_shexp", F32,
               "swiglu_limits_shared!?swiglu_limits_shared|0"),
          OF("nextn_predict_layers", U32,
             "num_nextn_predict_layers>0?num_nextn_predict_layers")) },
    { .classes = NULL }
};
