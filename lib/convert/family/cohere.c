/* SPDX-License-Identifier: MIT */
/* cohere.c - classes of Command (Cohere) */
#include "config.h"
#include "convert/class_row.h"

static double rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(cfg, "rotary_pct", 1);
}

/* Nextn layers have no entry about windows. */
static double is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return (double)layer < num_of(cfg, "num_hidden_layers")
               ? gg_convert_is_sliding(cfg, layer)
               : NAN;
}

static double n_dense(const struct gg_hf_config *cfg)
{
    return value_or(gg_convert_first_sparse(cfg),
                    num_or(cfg, "first_k_dense_replace", 0));
}

static double shared_width(const struct gg_hf_config *cfg)
{
    const double n = num_of(cfg, "num_shared_experts");
    return n > 0 ? num_of(cfg, "intermediate_size") * n : NAN;
}

/* The sum of shared and routed experts is their mean. */
static bool averages_shared(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "num_shared_experts", 0) == 0 ||
           is_true(value_or(
               gg_hf_config_is_word(cfg, "shared_expert_combination_strategy",
                                    -1, "average"),
               1));
}

static void put_moe(struct gg_back_maker *m)
{
    gg_back_put_num(m, "intermediate_size",
                    num_of(&m->keys, "expert_feed_forward_length"));
    gg_back_put_num(m, "prefix_dense_intermediate_size",
                    num_of(&m->keys, "feed_forward_length"));
    gg_back_put_layer_words(m, "mlp_layer_types", gg_back_is_sparse,
                            "dense sparse");
}

const struct gg_convert_arch gg_convert_family_cohere[] = {
    { .classes = "CohereForCausalLM",
      .arch = "command-r",
      .ties = true,
      .names = LLAMA,
      .keys = ROWS(
          U32("context_length", "model_max_length max_position_embeddings"),
          F32("logit_scale", "logit_scale"), NO_SCALING) },
    { .classes = "Cohere2ForCausalLM",
      .arch = "cohere2",
      .ties = true,
      .names = LLAMA,
      .keys = ROWS(F32("logit_scale", "logit_scale"), WINDOW,
                   U32("vocab_size", "vocab_size"),
                   OF("rope.dimension_count", U32, rotary_dims, NO_BACK),
                   NO_SCALING) },
    { .classes = "Cohere2MoeForCausalLM",
      .arch = "cohere2moe",
      .ties = true,
      .when = averages_shared,
      .back = put_moe,
      .nextn = N_NEXTN,
      .names = OVER_2(gg_convert_names_nextn, gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN, F32("logit_scale", "logit_scale"), WINDOW,
          EACH("attention.sliding_window_pattern", BOOL, is_sliding,
               gg_back_put_sliding_layers),
          VOCAB_SIZE, U32("expert_feed_forward_length", "intermediate_size"),
          OF("leading_dense_block_count", U32, n_dense, IN_BACK),
          ELSE("expert_weights_norm", BOOL, "norm_topk_prob", 0),
          ABOVE_0("expert_shared_count", U32, "num_shared_experts"),
          OF("expert_shared_feed_forward_length", U32, shared_width, NO_BACK),
          NEXTN_ABOVE_0, U32("rope.dimension_count", "head_dim"),
          NO_SCALING) },
    { .classes = NULL }
};
