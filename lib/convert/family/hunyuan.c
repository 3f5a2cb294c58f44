/* SPDX-License-Identifier: MIT */
/* hunyuan.c - classes of Hunyuan */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name hunyuan_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"), END_NAMES
};

#define HUNYUAN_DYNAMIC                                                       \
    OF("context_length", U32,                                                 \
       "rope_scaling.type:dynamic?262144:max_position_embeddings"),           \
        OF("rope.freq_base", F32,                                             \
           "rope_scaling.type:dynamic?rope_theta|10000*pow(rope_scaling."     \
           "alpha|1000," HEAD "/(" HEAD "-2)):rope_theta|10000"),             \
        NO_SCALING,                                                           \
        OF("rope.scaling.factor", F32, "rope_scaling.type:dynamic?1"),        \
        OF("rope.scaling.original_context_length", U32,                       \
           "rope_scaling.type:dynamic?262144")

static const struct gg_convert_name hunyuan_moe_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"),
    N(L "mlp.gate.wg", B "ffn_gate_inp"),
    N(L "mlp.shared_mlp.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_mlp.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_mlp.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

/* Lists have the same in all layers. */
#define FIRST(KEY, HF) OF(KEY, U32, HF)

/* As it was published, and as transformers write it. */
static const struct gg_convert_name hy3_names[] = {
    N(L "mlp.router.gate", B "ffn_gate_inp"),
    N(L "mlp.expert_bias", B "exp_probs_b"),
    N(L "mlp.e_score_correction_bias", B "exp_probs_b"),
    N(L "mlp.shared_mlp.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_mlp.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_mlp.down_proj", B "ffn_down_shexp"),
    N(L "final_layernorm", B "nextn.shared_head_norm"),
    END_NAMES
};

static const struct gg_convert_name hunyuan_vl_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"), END_NAMES
};

/* Positions of several axes, whose base depends on alpha: who reads the file
 * computes that. */
#define XD(OF_WHAT)                                                           \
    "(rope_scaling.type:xdrope|(rope_parameters.xdrope_section.0>0)|"         \
    "(rope_parameters.mrope_section.0>0)|0)?" OF_WHAT
#define HUNYUAN_VL                                                            \
    ROWS(OF("expert_count", U32, "num_experts>1?num_experts"),                \
         OF("rope.freq_base", F32,                                            \
            "rope_theta|rope_parameters.rope_theta|10000"),                   \
         OF("rope.scaling.alpha", F32,                                        \
            XD("rope_scaling.alpha|rope_parameters.alpha")),                  \
         NO_SCALING,                                                          \
         OF("rope.scaling.factor", F32,                                       \
            XD("rope_scaling.factor|rope_parameters.factor|1")),              \
         OF("rope.scaling.original_context_length", U32,                      \
            XD("max_position_embeddings")))

const struct gg_convert_arch gg_convert_family_hunyuan[] = {
    { .classes = "HunYuanDenseV1ForCausalLM",
      .arch = "hunyuan-dense",
      .names = OVER(hunyuan_names),
      .keys = ROWS(HUNYUAN_DYNAMIC) },
    { .classes = "HunYuanMoEV1ForCausalLM",
      .arch = "hunyuan-moe",
      .names = OVER_2(hunyuan_moe_names, gg_convert_names_experts),
      .keys = ROWS(
          OF("context_length", U32,
             "rope_scaling.type:dynamic|0?262144:max_position_embeddings"),
          OF("rope.freq_base", F32,
             "rope_scaling.type:dynamic|0?rope_theta|10000*pow(rope_scaling."
             "alpha|1000," HEAD "/(" HEAD "-2)):rope_theta|10000"),
          U32("expert_shared_feed_forward_length", "intermediate_size"),
          FIRST("expert_feed_forward_length", "moe_intermediate_size"),
          FIRST("expert_used_count", "moe_topk"),
          FIRST("expert_shared_count", "num_shared_expert")) },
    { .classes = "HYV3ForCausalLM",
      .arch = "hy_v3",
      .layers = LAYERS_NEXTN,
      .names =
          OVER_3(hy3_names, gg_convert_names_nextn, gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, EXPERT_FF,
                   OF("expert_shared_feed_forward_length", U32,
                      "moe_intermediate_size*num_shared_experts|1"),
                   OF("expert_weights_norm", BOOL, "route_norm|1"),
                   OF("expert_weights_scale", F32, "router_scaling_factor|1"),
                   ALWAYS("expert_gating_func", U32, 2),
                   OF("nextn_predict_layers", U32,
                      "num_nextn_predict_layers>0?"
                      "num_nextn_predict_layers")) },
    { .classes = "HunYuanVLForConditionalGeneration",
      .arch = "hunyuan_vl",
      .drops_copy = true,
      .names = OVER(hunyuan_vl_names),
      .keys = HUNYUAN_VL },
    { .classes = NULL }
};
