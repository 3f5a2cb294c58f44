/* SPDX-License-Identifier: MIT */
/* cohere.c - classes of Command (Cohere) */
#include "config.h"
#include "convert/class_row.h"

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
                   OF("rope.dimension_count", U32, "rotary_pct|1*" HEAD "//1"),
                   NO_SCALING) },
    { .classes = "Cohere2MoeForCausalLM",
      .arch = "cohere2moe",
      .ties = true,
      .when = "(num_shared_experts|0=0)+"
              "(shared_expert_combination_strategy:average|1)",
      .layers = LAYERS_NEXTN,
      .names = OVER_2(gg_convert_names_nextn, gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN, F32("logit_scale", "logit_scale"), WINDOW,
          EACH("attention.sliding_window_pattern", BOOL,
               "i<num_hidden_layers?layer_types:sliding_attention"),
          VOCAB_SIZE, U32("expert_feed_forward_length", "intermediate_size"),
          LEAD_TYPES("first_k_dense_replace|0"),
          OF("expert_weights_norm", BOOL, "norm_topk_prob|0"),
          OF("expert_shared_count", U32,
             "num_shared_experts>0?num_shared_experts"),
          OF("expert_shared_feed_forward_length", U32,
             "num_shared_experts>0?intermediate_size*num_shared_experts"),
          OF("nextn_predict_layers", U32,
             "num_nextn_predict_layers>0?num_nextn_predict_layers"),
          U32("rope.dimension_count", "head_dim"), NO_SCALING) },
    { .classes = NULL }
};
