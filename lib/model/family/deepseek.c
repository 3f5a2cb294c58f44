/* SPDX-License-Identifier: MIT */
/* deepseek.c - DeepSeek, and models with its latent attention or experts */
#include "config.h"
#include "model/family/arch_row.h"

static const struct gg_mixer sparse = { GG_MIXER_SPARSE,
                                        .idx_rope = GGUF_ROPE_NEOX };

static void scale_both(struct gg_hparams *hp)
{
    gg_hparams_scale_by_yarn(hp, true);
}

static const struct gg_arch_scale yarn_of_both = {
    .text = "with YaRN's magnitude, also in RoPE", .by_yarn = scale_both
};

/* DeepSeek-V2-Lite (27 layers, 26 in files without the first) and GigaChat 3
 * (48 layers, 128256 tokens) make queries in one step, against their key. They
 * are recognized by their sizes and by attn_q. */
static void fill_rank(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    char name[GG_WEIGHT_NAME];
    if ((hp->n_layer == 26 || hp->n_layer == 27 ||
         (hp->n_layer == 48 && hp->n_vocab == 128256)) &&
        gg_source_find(r->src, gg_weight_name(GG_W_ATTN_Q, 0, name), NULL))
        hp->rank_q = 0;
}

/* Files of GLM 4.7 Flash lack the key of the gating; its sizes identify it. */
static uint32_t gating_by_size(const struct gg_hparams *hp)
{
    const bool flash =
        (hp->n_layer == 47 || hp->n_layer == 48) && hp->n_vocab == 154880;
    return flash ? GG_EXPERT_SIGMOID : GG_EXPERT_SOFTMAX;
}

/* ---- dots3-note ---- */

/* The norm of keys is one of their shared part. */
static void size_key_norm(const struct gg_hparams *hp,
                          const struct gg_model_layer *l,
                          struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->qk_0 = z->rot;
}

/* Nextn layers, which the list of windows leaves out, have windows. */
static void set_nextn_windows(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    for (uint32_t i = 0; hp->has_windows && i < hp->n_nextn; i++)
        hp->layer[hp->n_layer - 1 - i].attn_type = GG_ATTN_WINDOW;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "deepseek", .runs = true, LLAMA,
      .moe = { .where = &gg_arch_experts_leading, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted } },
    { .name = "deepseek2", .runs = true, LLAMA, .mixer = &gg_mixer_latent,
      .scale = &yarn_of_both,
      .moe = { .where = &gg_arch_experts_leading,
               .gating_of_model = { gating_by_size,
                                    "softmax, or sigmoid by size" },
               .gating_key = GG_MAY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .fill_hparams = { fill_rank, "" }, .nextn = true,
      .temperature = &gg_arch_temperature_by_keys,
      MORE(KM(temp_scale), KM(temp_length), LATENT, YARN) },
    { .name = "deepseek2-ocr", .runs = true, LLAMA, NEOX,
      .qkv = &gg_arch_qkv_separate,
      .moe = { .where = &gg_arch_experts_leading, .gating_key = GG_MAY,
               .expert_bias = GG_MAY, .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted } },
    { .name = "deepseek32", .runs = true, LLAMA, .mixer = &sparse,
      .scale = &gg_arch_scale_yarn,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .nextn = true, MORE(LATENT, INDEXER, YARN) },
    { .name = "deepseek4", .runs = true, LLAMA, OWN,
      .act = &gg_ffn_act_silu_clamped_first,
      .build_layers = { gg_hyper_connections_layers,
      "hyper-connections" },
      .mixer = &gg_mixer_compressed, .sinks = GG_MUST,
      .window = { &gg_arch_window_everywhere, .key = GG_MUST,
                  .rope = &gg_arch_window_rope_plain },
      .moe = { .where = &gg_arch_experts_all, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .nextn = true,
      MORE(N(OUTPUT_HC_FN), N(OUTPUT_HC_BASE), N(OUTPUT_HC_SCALE), K(rank_q),
           INDEXER, K(out_groups), K(out_rank), K(compress_base), K(compress),
           K(n_streams), K(n_sinkhorn), K(streams_eps), K(n_hash),
           K(expert_norm), K(expert_scale), K(clamp_exp), KM(clamp_shexp),
           M(ROUTER_SELECT_VL_B)),
      UNUSED(W(ROUTER_SELECT_VL_B)), /* biases for images */
      .remark = "first layers choose experts by token id; "
                "clamped SwiGLU" },
    { .name = "dots1", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted } },
    { .name = "dots3note", .runs = true, LLAMA, .mixer = &sparse,
      .window = { &gg_arch_window_listed, GG_MUST,
                  .rope = &gg_arch_window_rope_base },
      .gate_attention = { gg_arch_gate_each_head, "sigmoid gate per head" },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .nextn = true, .layer_sizes = { size_key_norm, "" },
      .fill_hparams = { set_nextn_windows, "" },
      MORE(N(ATTN_K_NORM), N(ATTN_GATE_HEAD), LATENT, K(rank_q), K(dim_k_mla),
           K(dim_v_mla), K(rank_kv_swa), K(dim_k_mla_swa), K(dim_v_mla_swa),
           INDEXER, K(idx_types), K(n_dense), K(n_shared), K(window_pattern),
           K(rope_base_swa)),
      .remark = "windows have their own rank and widths, and no indexer; a "
                "norm of the keys' shared part before RoPE" },
    { .name = "plm", .runs = true, LLAMA, .mixer = &gg_mixer_latent_expanded,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_relu_sqr,
      .output = GG_OUTPUT_EMBD, MORE(K(rank_kv)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_deepseek = { rows, GG_LEN(rows) };
