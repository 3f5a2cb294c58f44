/* SPDX-License-Identifier: MIT */
/* minimax.c - MiniMax */
#include "config.h"
#include "model/family/arch_row.h"

static const uint16_t w_blocks[] = { N(IDX_Q_PROJ), N(IDX_K_PROJ),
                                     N(IDX_Q_NORM), N(IDX_K_NORM), 0 };

/* A head of the indexer for each of keys. */
static enum gguf_status check_index_heads(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    for (uint32_t il = hp->n_dense; il < hp->n_layer && hp->n_idx; il++) {
        const uint32_t n = hp->layer[il].n_head_kv;
        if (hp->n_idx != n)
            return gg_hparams_fail_range(r, GG_HP_n_idx, hp->n_idx, n, n);
    }
    return GGUF_OK;
}

static const struct gg_mixer blocks = { .text = "attention to chosen blocks",
                                        .weights = w_blocks,
                                        .heads = true,
                                        .positions = true,
                                        .check_hparams = check_index_heads,
                                        .mix = gg_model_mix_blocks,
                                        .out = GG_W_ATTN_OUT,
                                        .memory = GG_MODEL_MEMORY_KV,
                                        .keys = gg_model_size_keys_blocks };

static const struct gg_mixer *mixer_of_layer(const struct gg_arch *a,
                                             const struct gg_hparams *hp,
                                             uint32_t il)
{
    return il < hp->n_dense ? a->other : gg_arch_mixer(a);
}

static const struct gg_arch_mix_rule leading = {
    .text = "layers before leading_dense_block_count",
    .of_layer = mixer_of_layer
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "minimax-m2", .runs = true, LLAMA, NEOX, OWN,
      .qkv = &gg_arch_qkv_separate, .qk_norm = { .form = GG_QK_ALL_HEADS },
      .moe = { .where = &gg_arch_experts_all, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .expert_bias = GG_MUST, .norm = GG_MUST },
      MORE(K(n_ff_expert)) },
    { .name = "minimax-m3", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .mixer = &blocks, .other = &gg_mixer_attention, .mix_rule = &leading,
      .act = &gg_ffn_act_oai,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      MORE(INDEXER, K(idx_block), K(idx_local)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_minimax = { rows, GG_LEN(rows) };
