/* SPDX-License-Identifier: MIT */
/* kimi.c - classes of Kimi */
#include "config.h"
#include "convert/class_row.h"

#define BM L "block_sparse_moe."

static const struct gg_convert_name kimi_names[] = {
    N_AXES(L "self_attn.q_conv1d", B "ssm_conv1d_q", "x, *, c > 1, x, 1, c"),
    N_AXES(L "self_attn.k_conv1d", B "ssm_conv1d_k", "x, *, c > 1, x, 1, c"),
    N_AXES(L "self_attn.v_conv1d", B "ssm_conv1d_v", "x, *, c > 1, x, 1, c"),
    N(L "self_attn.f_a_proj", B "ssm_f_a"),
    N(L "self_attn.f_b_proj", B "ssm_f_b"),
    N(L "self_attn.g_a_proj", B "ssm_g_a"),
    N(L "self_attn.g_b_proj", B "ssm_g_b"),
    N(L "self_attn.b_proj", B "ssm_beta"),
    N_HOW_AXES(L "self_attn.A_log", B "ssm_a", NEG_EXP,
               "1, 1, x, 1 > 1, 1, x, 1"),
    N(L "self_attn.dt_bias", B "ssm_dt.bias"),
    N(L "self_attn.o_norm", B "ssm_norm"),
    N(BM "gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(BM "shared_experts.gate_proj", B "ffn_gate_shexp"),
    N(BM "shared_experts.up_proj", B "ffn_up_shexp"),
    N(BM "shared_experts.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

/* config.json counts layers from 1. */
static double is_full_attention(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_hf_config_list_has(cfg, "linear_attn_config.full_attn_layers",
                                 layer + 1);
}

static double is_delta_rule(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(is_full_attention(cfg, layer), 0);
}

static void put_attention_layers(struct gg_back_maker *m)
{
    const json_t *heads =
        gg_hf_config_get(&m->keys, "attention.head_count_kv");
    json_t *list = json_is_array(heads) ? json_array() : NULL;
    for (size_t i = 0; i < json_array_size(heads); i++)
        if (json_integer_value(json_array_get(heads, i)) > 0)
            json_array_append_new(list, json_integer((json_int_t)i + 1));
    if (list)
        gg_back_put(m->root, "linear_attn_config.full_attn_layers", list);
    gg_back_put_kv_heads(m);
}

/* ---- Kimi K3 ---- */

/* Scores of residual streams are products of a norm's weight and a row; the
 * number of each head may be padded. */
static const struct gg_convert_name k3_names[] = {
    N_AXES(L "self_attention_res_proj", B "attn_res_score", "y, x > x"),
    N_HOW(L "self_attention_res_norm", B "attn_res_score", FACTOR),
    N_AXES(L "mlp_res_proj", B "ffn_res_score", "y, x > x"),
    N_HOW(L "mlp_res_norm", B "ffn_res_score", FACTOR),
    N_AXES("model.output_attn_res_proj", "output_res_score", "y, x > x"),
    N_HOW("model.output_attn_res_norm", "output_res_score", FACTOR),
    N_IN(L "self_attn.g_proj", B "ssm_g", is_delta_rule),
    N_IN(L "self_attn.g_proj", B "attn_gate", is_full_attention),
    N_HOW_AXES(L "self_attn.A_log", B "ssm_a", NEG_EXP, "[h@0] x > x"),
    N(BM "routed_expert_down_proj", B "ffn_routed_down"),
    N(BM "routed_expert_norm", B "ffn_routed_norm"),
    N(BM "routed_expert_up_proj", B "ffn_routed_up"),
    END_NAMES
};

/* Files have no positions, and one activation. */
static bool is_nope_situ(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "mla_use_nope")) &&
           gg_hf_config_is_word(cfg, "hidden_act", -1, "situ") == 1;
}

static void put_nope_situ(struct gg_back_maker *m)
{
    gg_back_put_flag(m, "mla_use_nope", 1);
    gg_back_put_word(m, "hidden_act", "situ");
}

/* clang-format off */
#define KDA_KEYS                                                              \
    EACH("attention.head_count_kv", U32, is_full_attention,                   \
         put_attention_layers),                                               \
        VOCAB_SIZE,                                                           \
        U32("ssm.conv_kernel", "linear_attn_config.short_conv_kernel_size"),  \
        U32("kda.head_dim", "linear_attn_config.head_dim")
#define RANK_KEYS                                                             \
    U32("attention.q_lora_rank", "q_lora_rank"),                              \
        U32("attention.kv_lora_rank", "kv_lora_rank"),                        \
        U32("rope.dimension_count", "qk_rope_head_dim"),                      \
        OF("attention.key_length", U32, gg_convert_latent_key_length, NO_BACK)
#define MLA_MOE_KEYS                                                          \
    OF("attention.key_length_mla", U32, gg_convert_mla_key_length,            \
       gg_back_put_nope_of_mla),                                              \
        U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,           \
        U32("expert_shared_count", "num_shared_experts"), LEAD, WEIGHTS_SCALE
/* clang-format on */

const struct gg_convert_arch gg_convert_family_kimi[] = {
    { .classes = "KimiK3ForConditionalGeneration",
      .model_type = "kimi_k3",
      .when = is_nope_situ,
      .back = put_nope_situ,
      .instead = { { "scoring_func", "moe_router_activation_func" },
                   { "num_experts_per_tok", "num_experts_per_token" } },
      .arch = "kimi-k3",
      .names = { k3_names, kimi_names, gg_convert_names_latent,
                 gg_convert_names_mixtral, gg_convert_names_llama },
      .keys = ROWS(
          KDA_KEYS,
          F32("kda.gate_lower_bound", "linear_attn_config.gate_lower_bound"),
          RANK_KEYS, U32("attention.value_length", "kv_lora_rank"),
          MLA_MOE_KEYS, BOOL("expert_weights_norm", "moe_renormalize"),
          U32("expert_latent_length", "routed_expert_hidden_size"),
          F32("activation.situ_beta", "activation_situ_beta"),
          F32("activation.situ_linear_beta", "activation_situ_linear_beta"),
          U32("attn_res.block_size", "attn_res_block_size")),
      .last =
          ROWS(ABOVE_0("/tokenizer.ggml.eos_token_id", U32, "eos_token_id")) },
    { .classes = "KimiLinearForCausalLM KimiLinearModel",
      .arch = "kimi-linear",
      .names = { kimi_names, gg_convert_names_latent, gg_convert_names_mixtral,
                 gg_convert_names_llama },
      .keys = ROWS(KDA_KEYS, RANK_KEYS, MLA_MOE_KEYS) },
    { .classes = NULL }
};
