/* SPDX-License-Identifier: MIT */
/* minimax.c - classes of MiniMax */
#include "config.h"
#include "convert/class_row.h"

#define SHARED L "block_sparse_moe.shared_experts."

static const struct gg_convert_name minimax3_names[] = {
    NORMS_PLUS_1,
    N_HOW(L "self_attn.index_q_norm", B "indexer.q_norm", PLUS_1),
    N_HOW(L "self_attn.index_k_norm", B "indexer.k_norm", PLUS_1),
    N(L "self_attn.index_q_proj", B "indexer.q_proj"),
    N(L "self_attn.index_k_proj", B "indexer.k_proj"),
    N(SHARED "gate_proj", B "ffn_gate_shexp"),
    N(SHARED "up_proj", B "ffn_up_shexp"),
    N(SHARED "down_proj", B "ffn_down_shexp"),
    END_NAMES
};

#define SPARSE(NAME, FROM)                                                    \
    U32("attention.indexer." NAME, "sparse_attention_config.sparse_" FROM)

static double has_experts(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_at(cfg, "moe_layer_freq", layer);
}

static double n_dense(const struct gg_hf_config *cfg)
{
    return gg_hf_config_first_layer(cfg, has_experts);
}

static void put_m3(struct gg_back_maker *m)
{
    gg_back_put_num(m, "intermediate_size",
                    num_of(&m->keys, "expert_feed_forward_length"));
    gg_back_put_num(m, "dense_intermediate_size",
                    num_of(&m->keys, "feed_forward_length"));
    gg_back_put_layers(m, "moe_layer_freq", gg_back_is_sparse);
}

const struct gg_convert_arch gg_convert_family_minimax[] = {
    { .classes = "MiniMaxM2ForCausalLM",
      .arch = "minimax-m2",
      .names = OVER(gg_convert_names_mixtral),
      .keys = ROWS(U32("expert_feed_forward_length", "intermediate_size"),
                   N_ROT) },
    { .classes = "MiniMaxM3SparseForCausalLM "
                 "MiniMaxM3SparseForConditionalGeneration",
      .arch = "minimax-m3",
      .back = put_m3,
      .names = OVER_2(minimax3_names, gg_convert_names_mixtral),
      .keys = ROWS(U32("expert_feed_forward_length", "intermediate_size"),
                   N_ROT, U32("expert_shared_count", "n_shared_experts"),
                   WEIGHTS_SCALE, ALWAYS("expert_weights_norm", BOOL, 1),
                   SPARSE("head_count", "num_index_heads"),
                   SPARSE("key_length", "index_dim"),
                   SPARSE("top_k", "topk_blocks"),
                   SPARSE("block_size", "block_size"),
                   SPARSE("local_blocks", "local_block"),
                   OF("leading_dense_block_count", U32, n_dense, IN_BACK)) },
    { .classes = NULL }
};
