/* SPDX-License-Identifier: MIT */
/* hunyuan.c - Hunyuan */
#include "config.h"
#include "model/family/arch_row.h"

/* ---- Hunyuan 4 ---- */

static float norm_eps(const struct gg_hparams *hp)
{
    return hp->norm_rms_eps;
}

static const struct gg_mixer sparse = { GG_MIXER_SPARSE,
                                        .rotate_index = gg_model_rotate_tail,
                                        .index_eps = norm_eps };

/* Two coefficients for each stream: one to read it, one to write it. */
static void size_streams(const struct gg_hparams *hp,
                         const struct gg_model_layer *l,
                         struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->hc = 2 * z->streams;
    z->hc_scales = 2;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "hunyuan-dense", .runs = true, LLAMA, NEOX,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true },
      MORE(KM(rope_alpha)) },
    { .name = "hunyuan-moe", .runs = true, LLAMA, NEOX,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true },
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .shared = &gg_arch_shared_or_model } },
    { .name = "hunyuan_vl", .runs = true, LLAMA, NEOX, .mrope_sections = true,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true },
      MORE(KM(rope_alpha)) },
    { .name = "hy_v3", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .moe = { .where = &gg_arch_experts_by_router,
               .gating = GG_GATING_SIGMOID, .gating_key = GG_MAY,
               .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_wide },
      .nextn = true,
      MORE(M(ROUTER_SELECT_BARE), M(FFN_GATE), M(FFN_UP), M(FFN_DOWN)) },
    { .name = "hy_v4", .runs = true, LLAMA, OWN,
      .act = &gg_ffn_act_silu_clamped_first,
      .build_layers = { gg_hyper_connections_layers,
                        "hyper-connections without a matrix" },
      .layer_sizes = { size_streams, "" },
      .mixer = &sparse, .sinks = GG_MUST,
      .gate_attention = { gg_arch_gate_elements, "sigmoid gate" },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      MORE(N(OUTPUT_HC_FN), N(OUTPUT_HC_BASE), N(OUTPUT_HC_SCALE),
           N(HC_ATTN_FN), N(HC_ATTN_BASE), N(HC_ATTN_SCALE), N(HC_FFN_FN),
           N(HC_FFN_BASE), N(HC_FFN_SCALE), N(ATTN_GATE), LATENT, K(rank_q),
           K(dim_k_mla), K(dim_v_mla), K(n_shared), KM(n_idx), KM(dim_idx),
           KM(idx_top), KM(idx_types), KM(clamp_exp), K(n_streams),
           K(streams_eps), K(streams_magnitude)),
      .remark = "an indexer if the file has attention.indexer.top_k; layers "
                "may share its choice; routed experts' SwiGLU is clamped" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_hunyuan = { rows, GG_LEN(rows) };
