/* SPDX-License-Identifier: MIT */
/* plamo.c - PLaMo */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>
#include <math.h>

static const uint16_t w_plamo[] = {
    N(M1_IN),        N(M1_CONV),      N(PLAMO_X),  N(PLAMO_DT_NORM),
    N(PLAMO_B_NORM), N(PLAMO_C_NORM), N(PLAMO_DT), N(M2_DT_B),
    N(HEADS_A),      N(HEADS_D),      N(SSM_OUT),  0
};

/* Heads of equal width, and no groups of them. */
static enum gguf_status check_states(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    if (hp->ssm_groups)
        return gg_hparams_fail_range(r, GG_HP_ssm_groups, hp->ssm_groups, 0,
                                     0);
    if (hp->ssm_inner % hp->ssm_dt == 0)
        return GGUF_OK;
    return gg_hparams_fail(
        r, gg_hparams_find(r, GG_HP_ssm_dt), GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
        "%s is %" PRIu32 ", must divide inner_size %" PRIu32, r->key,
        hp->ssm_dt, hp->ssm_inner);
}

/* The rank of time steps, which no key has. */
static void size_time_steps(const struct gg_hparams *hp,
                            const struct gg_model_layer *l,
                            struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->rank_q = fmax(64, floor(z->embd / 16));
}

static const struct gg_mixer plamo_mamba = { .text = "Mamba-2 as in PLaMo 2",
                                             .weights = w_plamo,
                                             .check_states = check_states,
                                             .layer_sizes = size_time_steps,
                                             .mix = gg_model_mix_plamo,
                                             .out = GG_W_SSM_OUT,
                                             .memory = GG_MODEL_MEMORY_STATES,
                                             .states =
                                                 gg_model_size_states_plamo };

/* As in llama.cpp, not as in the paper. */
static bool has_first_heads(const struct gg_hparams *hp, uint32_t il)
{
    (void)il;
    return hp->layer[0].n_head > 0;
}

static const struct gg_arch_rope_rule if_first_has_heads = {
    .text = "if the first layer has heads", .of_layer = has_first_heads
};

static float scale_by_value_width(const struct gg_hparams *hp,
                                  const struct gg_model_layer *l)
{
    (void)hp;
    return 1 / sqrtf((float)l->dim_v);
}

static const struct gg_arch_scale by_value_width = {
    .text = "1/sqrt(dv)", .of_layer = scale_by_value_width
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "plamo", .runs = true, ONE, NEOX, OWN,
      .order = GG_ORDER_PARALLEL },
    { .name = "plamo2", .runs = true, SANDWICH_NORM_BARE, NEOX,
      .rope_rule = &if_first_has_heads, .other = &plamo_mamba,
      .mix_rule = &gg_arch_mix_by_kv, .qkv = &gg_arch_qkv_fused,
      .qk_norm = { .form = GG_QK_EACH_HEAD }, .scale = &by_value_width,
      .ffn = &gg_ffn_fused, MORE(SSM, K(ssm_groups)),
      .remark = "no RoPE in files whose first layer has no "
                "heads, as published ones: as in llama.cpp, "
                "not as in the paper" },
    { .name = "plamo3", .runs = true, SANDWICH_NORM_BARE, NEOX, HEAD_NORM,
      .qkv = &gg_arch_qkv_fused,
      .window = { &gg_arch_window_last_full, GG_MAY, 8,
                  .rope = &gg_arch_window_rope_own },
      .ffn = &gg_ffn_fused },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_plamo = { rows, GG_LEN(rows) };
