/* SPDX-License-Identifier: MIT */
/* bailing.c - classes of Ling and Ring (Bailing) */
#include "config.h"
#include "convert/class_row.h"

/* Queries, keys and values in one matrix; rows permuted from halves to
 * pairs. */
static const struct gg_convert_name bailing_names[] = {
    N("model.word_embeddings", "token_embd"),
    N_AXES(L "attention.query_key_value", B "attn_q",
           "[qrows@0] h 2 d, * > h d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_k",
           "[krows@qrows] k 2 d, * > k d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_v", "[@qkrows] x, * > x, *"),
    N(L "attention.dense", B "attn_output"),
    END_NAMES
};

static const struct gg_convert_name bailing2_names[] = {
    N("model.word_embeddings", "token_embd"),
    N(L "attention.query_key_value", B "attn_qkv"),
    N(L "attention.query_layernorm", B "attn_q_norm"),
    N(L "attention.key_layernorm", B "attn_k_norm"),
    N(L "attention.dense", B "attn_output"),
    N(L "mlp.gate.expert_bias", B "exp_probs_b.bias"),
    N(L "final_layernorm", B "layer_output_norm"),
    END_NAMES
};

#define BAILING_2                                                             \
    LEAD, VOCAB_SIZE, EXPERT_FF,                                              \
        ELSE_OF("expert_shared_feed_forward_length", U32,                     \
                "moe_shared_expert_intermediate_size",                        \
                gg_convert_shared_width),                                     \
        WEIGHTS_SCALE, U32("expert_shared_count", "num_shared_experts"),      \
        WEIGHTS_NORM, NEXTN

/* ---- Ling 3.0 ---- */

#define A L "attention."

/* The last layer of each group has latent attention. So have layers after the
 * last whole group, and nextn layers. */
static double is_full_attention(const struct gg_hf_config *cfg, int64_t layer)
{
    const double n = num_of(cfg, "num_hidden_layers");
    const double group = num_of(cfg, "layer_group_size");
    if (isnan(n) || !(group >= 1))
        return NAN;
    return (double)layer >= floor(n / group) * group ||
           fmod((double)layer + 1, group) == 0;
}

static double is_delta_rule(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(is_full_attention(cfg, layer), 0);
}

static const struct gg_convert_name bailing3_names[] = {
    N_AXES(A "q_conv1d", B "ssm_conv1d_q", "x, *, c > 1, x, 1, c"),
    N_AXES(A "k_conv1d", B "ssm_conv1d_k", "x, *, c > 1, x, 1, c"),
    N_AXES(A "v_conv1d", B "ssm_conv1d_v", "x, *, c > 1, x, 1, c"),
    N(A "q_proj", B "attn_q"),
    N(A "k_proj", B "attn_k"),
    N(A "v_proj", B "attn_v"),
    N(A "f_proj", B "ssm_f_a"),
    N(A "b_proj", B "ssm_beta"),
    N_IN(A "g_proj", B "ssm_g_a", is_delta_rule),
    N_IN(A "g_proj", B "attn_gate", is_full_attention),
    N_HOW_AXES(A "A_log", B "ssm_a", EXP, "x > x, 1"),
    N(A "dt_bias", B "ssm_dt.bias"),
    N(A "o_norm", B "ssm_norm"),
    N_IF(A "o_proj", B "attn_output", is_delta_rule),
    N_IF(A "dense", B "attn_output", is_full_attention),
    N(A "q_a_proj", B "attn_q_a"),
    N(A "q_a_layernorm", B "attn_q_a_norm"),
    N(A "q_b_proj", B "attn_q_b"),
    N(A "kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(A "kv_a_layernorm", B "attn_kv_a_norm"),
    N_AXES(A "kv_b_proj", B "attn_k_b", "h kvb[nope@0], c > h, c, kvb"),
    N_AXES(A "kv_b_proj", B "attn_v_b", "h kvb[vdim@nope], c > h, kvb, c"),
    N("model.word_embeddings", "token_embd"),
    N(L "mlp.gate.expert_bias", B "exp_probs_b.bias"),
    N(L "final_layernorm", B "layer_output_norm"),
    END_NAMES
};

static void put_group_size(struct gg_back_maker *m)
{
    gg_back_put_num(
        m, "layer_group_size",
        1 + gg_hf_config_first_layer(&m->keys, gg_back_has_attention));
    gg_back_put_kv_heads(m);
}

/* Limits of layers; those that a list leaves out have none. */
static double limit_of(const struct gg_hf_config *cfg, const char *name,
                       int64_t layer)
{
    return gg_hf_config_get(cfg, name) ? value_or(num_at(cfg, name, layer), 0)
                                       : NAN;
}

static double expert_limit(const struct gg_hf_config *cfg, int64_t layer)
{
    return limit_of(cfg, "expert_swiglu_limit_list", layer);
}

static double shared_limit(const struct gg_hf_config *cfg, int64_t layer)
{
    return limit_of(cfg, "share_expert_swiglu_limit_list", layer);
}

static void put_limits(struct gg_back_maker *m, const char *key,
                       const char *name)
{
    const struct gguf_kv *kv = gg_back_find_key(m, key);
    if (kv)
        gg_back_put(m->root, name, gg_back_kv_to_json(kv));
}

static void put_expert_limits(struct gg_back_maker *m)
{
    put_limits(m, "swiglu_clamp_exp", "expert_swiglu_limit_list");
}

static void put_shared_limits(struct gg_back_maker *m)
{
    put_limits(m, "swiglu_clamp_shexp", "share_expert_swiglu_limit_list");
}

/* Files have one matrix for the decay, which has a bound, and gates of
 * heads. */
static bool is_plain(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "no_kda_lora")) &&
           is_true(num_of(cfg, "kda_safe_gate")) &&
           gg_hf_config_is_word(cfg, "gated_attention_proj_granularity_type",
                                -1, "head_wise") == 1;
}

static void put_forms(struct gg_back_maker *m)
{
    gg_back_put_flag(m, "no_kda_lora", 1);
    gg_back_put_flag(m, "kda_safe_gate", 1);
    gg_back_put_word(m, "gated_attention_proj_granularity_type", "head_wise");
}

/* With norm_head, rows of the output are divided by lengths of its columns. */
static bool keeps_head(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "norm_head", 0) == 0;
}

const struct gg_convert_arch gg_convert_family_bailing[] = {

    { .classes = "BailingMoeForCausalLM",
      .arch = "bailingmoe",
      .when = keeps_head,
      .names = OVER_2(bailing_names, gg_convert_names_experts),
      .keys = ROWS(ALL_ROT, LEAD, VOCAB_SIZE, EXPERT_FF,
                   ALWAYS("expert_weights_scale", F32, 1),
                   U32("expert_shared_count", "num_shared_experts"),
                   WEIGHTS_NORM) },
    { .classes = "BailingMoeV2ForCausalLM",
      .model_type = "bailing_moe",
      .instead = { { "scoring_func", "score_function" } },
      .arch = "bailingmoe2",
      .nextn = N_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN,
          OF("rope.dimension_count", U32, gg_convert_rotary_half, NO_BACK),
          BAILING_2) },
    /* its code subtracts the mean from the expert bias, which changes no
     * choice */
    { .classes = "SarvamMoEForCausalLM "
                 "modeling_sarvam_moe.SarvamMoEForCausalLM",
      .arch = "bailingmoe2",
      .nextn = N_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, ALL_ROT, BAILING_2) },
    { .classes = "BailingMoeV3ForCausalLM "
                 "BailingMoeV3VLForConditionalGeneration",
      .skip = "linear_proj.",
      .model_type = "bailing_hybrid",
      .when = is_plain,
      .back = put_forms,
      .instead = { { "scoring_func", "score_function" } },
      .arch = "bailingmoe3",
      .nextn = N_NEXTN,
      .names = OVER_3(bailing3_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN,
          EACH("attention.head_count_kv", U32, is_full_attention,
               put_group_size),
          VOCAB_SIZE, U32("ssm.conv_kernel", "short_conv_kernel_size"),
          U32("kda.head_dim", "head_dim"),
          BOOL("kda.safe_gate", "kda_safe_gate"),
          F32("kda.gate_lower_bound", "kda_lower_bound"),
          U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          U32("rope.dimension_count", "qk_rope_head_dim"),
          OF("attention.key_length", U32, gg_convert_latent_key_length,
             NO_BACK),
          OF("attention.key_length_mla", U32, gg_convert_mla_key_length,
             gg_back_put_nope_of_mla),
          U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,
          U32("expert_shared_feed_forward_length",
              "moe_shared_expert_intermediate_size"),
          ELSE("expert_shared_count", U32, "num_shared_experts", 1), LEAD,
          WEIGHTS_SCALE, WEIGHTS_NORM,
          EACH("swiglu_clamp_exp", F32, expert_limit, put_expert_limits),
          EACH("swiglu_clamp_shexp", F32, shared_limit, put_shared_limits),
          NEXTN_ABOVE_0) },
    { .classes = NULL }
};
