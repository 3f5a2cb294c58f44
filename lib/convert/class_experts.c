/* SPDX-License-Identifier: MIT */
/* class_experts.c - rows of architectures with experts */
#include "config.h"
#include "convert/class_row.h"

const struct gg_convert_name gg_convert_names_mixtral[] = {
    N(L "block_sparse_moe.gate", B "ffn_gate_inp"),
    N(L "block_sparse_moe.e_score_correction_bias", B "exp_probs_b.bias"),
    N(L "block_sparse_moe.experts.@.w1", B "ffn_gate_exps"),
    N(L "block_sparse_moe.experts.@.w2", B "ffn_down_exps"),
    N(L "block_sparse_moe.experts.@.w3", B "ffn_up_exps"),
    /* as transformers 5 has them in memory */
    PACKED_EXPERTS(L "block_sparse_moe.experts."), END_NAMES
};

/* One by one, or in one tensor, with the gates before the others. */
const struct gg_convert_name gg_convert_names_experts[] = {
    N(L "mlp.gate", B "ffn_gate_inp"),
    N(L "mlp.gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(L "mlp.experts.@.gate_proj", B "ffn_gate_exps"),
    N(L "mlp.experts.@.up_proj", B "ffn_up_exps"),
    N(L "mlp.experts.@.down_proj", B "ffn_down_exps"),
    PACKED_EXPERTS(L "mlp.experts."),
    N(L "mlp.shared_expert_gate", B "ffn_gate_inp_shexp"),
    N(L "mlp.shared_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_expert.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_expert.down_proj", B "ffn_down_shexp"),
    N(L "mlp.shared_experts.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_experts.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_experts.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

const struct gg_convert_name gg_convert_names_granitemoe[] = {
    N(L "block_sparse_moe.router.layer", B "ffn_gate_inp"),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_gate_exps", HALF_1),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_up_exps", HALF_2),
    N(L "block_sparse_moe.output_linear", B "ffn_down_exps"),
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate_shexp", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up_shexp", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down_shexp"),
    END_NAMES
};

/* Rows of experts are columns. */
static const struct gg_convert_name llama4_names[] = {
    N(L "feed_forward.router", B "ffn_gate_inp"),
    N_AXES(L "feed_forward.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, 2[1@0] f > x, f, c"),
    N_AXES(L "feed_forward.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, 2[1@1] f > x, f, c"),
    N_AXES(L "feed_forward.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    EACH_EXPERT(L "feed_forward.experts.@."),
    N(L "feed_forward.shared_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "feed_forward.shared_expert.up_proj", B "ffn_up_shexp"),
    N(L "feed_forward.shared_expert.down_proj", B "ffn_down_shexp"),
    N(L "feed_forward.gate_proj", B "ffn_gate"),
    N(L "feed_forward.up_proj", B "ffn_up"),
    N(L "feed_forward.down_proj", B "ffn_down"),
    END_NAMES
};

/* The same, and gates and others take turns. In MXFP4, as it is published, rows
 * are rows: the blocks are along what is multiplied. */
static const struct gg_convert_name gpt_oss_names[] = {
    N(L "self_attn.sinks", B "attn_sinks.weight"),
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "mlp.router", B "ffn_gate_inp"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, f 2[1@0] > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, f 2[1@1] > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj_bias", B "ffn_gate_exps.bias",
           "x, f 2[1@0] > x, f"),
    N_AXES(L "mlp.experts.gate_up_proj_bias", B "ffn_up_exps.bias",
           "x, f 2[1@1] > x, f"),
    N_AXES(L "mlp.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    N(L "mlp.experts.down_proj_bias", B "ffn_down_exps.bias"),
    N_AXES(L "mlp.experts.gate_up_proj_blocks", B "ffn_gate_exps.weight",
           "x, f 2[1@0], c > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj_blocks", B "ffn_up_exps.weight",
           "x, f 2[1@1], c > x, f, c"),
    N(L "mlp.experts.down_proj_blocks", B "ffn_down_exps.weight"),
    /* one by one, with weights and biases, as some quantizers need them */
    EACH_EXPERT(L "mlp.experts.@."),
    N_AXES(L "mlp.experts.gate_up_projs.@", B "ffn_gate_exps",
           "f 2[1@0], * > f, *"),
    N_AXES(L "mlp.experts.gate_up_projs.@", B "ffn_up_exps",
           "f 2[1@1], * > f, *"),
    N(L "mlp.experts.down_projs.@", B "ffn_down_exps"), END_NAMES
};

static const struct gg_convert_name glm4moe_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"), END_NAMES
};

const struct gg_convert_name gg_convert_names_nextn[] = {
    N(L "eh_proj", B "nextn.eh_proj"),
    N(L "enorm", B "nextn.enorm"),
    N(L "hnorm", B "nextn.hnorm"),
    N(L "embed_tokens", B "nextn.embed_tokens"),
    N(L "shared_head.head", B "nextn.shared_head_head"),
    N(L "shared_head.norm", B "nextn.shared_head_norm"),
    END_NAMES
};

static const struct gg_convert_name ernie_names[] = {
    N(L "mlp.moe_statics.e_score_correction_bias", B "exp_probs_b.bias"),
    N_NOT("model.mtp_block.%.input_layernorm"),
    N_NOT("model.mtp_block.%.post_attention_layernorm"),
    N_NOT("model.mtp_block.%.self_attn.q_proj"),
    N_NOT("model.mtp_block.%.self_attn.k_proj"),
    N_NOT("model.mtp_block.%.self_attn.v_proj"),
    N_NOT("model.mtp_block.%.self_attn.o_proj"),
    N_NOT("model.mtp_block.%.mlp.gate_proj"),
    N_NOT("model.mtp_block.%.mlp.up_proj"),
    N_NOT("model.mtp_block.%.mlp.down_proj"),
    N_NOT("model.mtp_emb_norm.%"),
    N_NOT("model.mtp_hidden_norm.%"),
    N_NOT("model.mtp_linear_proj.%"),
    END_NAMES
};

static const struct gg_convert_name hunyuan_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"),
    N(L "mlp.gate.wg", B "ffn_gate_inp"),
    N(L "mlp.shared_mlp.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_mlp.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_mlp.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

static const struct gg_convert_name dbrx_names[] = {
    N("transformer.wte", "token_embd"), N("transformer.norm_f", "output_norm"),
    N("transformer.blocks.%.norm_attn_norm.norm_1", B "attn_norm"),
    N("transformer.blocks.%.norm_attn_norm.norm_2", B "attn_output_norm"),
    N("transformer.blocks.%.norm_attn_norm.attn.Wqkv", B "attn_qkv"),
    N("transformer.blocks.%.norm_attn_norm.attn.out_proj", B "attn_output"),
    N("transformer.blocks.%.ffn.router.layer", B "ffn_gate_inp"),
    N_AXES("transformer.blocks.%.ffn.experts.mlp.w1", B "ffn_gate_exps.weight",
           "e=ffn_config.moe_num_experts f, c > e, f, c"),
    N_AXES("transformer.blocks.%.ffn.experts.mlp.v1", B "ffn_up_exps.weight",
           "e=ffn_config.moe_num_experts f, c > e, f, c"),
    N_AXES("transformer.blocks.%.ffn.experts.mlp.w2", B "ffn_down_exps.weight",
           "e=ffn_config.moe_num_experts f, c > e, c, f"),
    /* one by one, each a Linear of its own */
    N("transformer.blocks.%.ffn.experts.mlp.@.w1", B "ffn_gate_exps"),
    N("transformer.blocks.%.ffn.experts.mlp.@.v1", B "ffn_up_exps"),
    N("transformer.blocks.%.ffn.experts.mlp.@.w2", B "ffn_down_exps"),
    END_NAMES
};

/* ---- rows ---- */

/* Lists have the same in all layers. */
#define FIRST(KEY, HF) OF(KEY, U32, HF)

#define GLM4_MOE                                                              \
    ROWS(BLOCKS_NEXTN,                                                        \
         OF("rope.dimension_count", U32,                                      \
            HEAD "*partial_rotary_factor|rope_parameters."                    \
                 "partial_rotary_factor|0.5//1"),                             \
         EXPERT_FF, U32("expert_shared_count", "n_shared_experts"), LEAD,     \
         ALWAYS("expert_gating_func", U32, 2), WEIGHTS_SCALE, WEIGHTS_NORM,   \
         NEXTN)

const struct gg_convert_arch gg_convert_class_experts[] = {
    { .classes = "MixtralForCausalLM",
      .arch = "llama",
      .names = OVER(gg_convert_names_mixtral),
      TURNED },
    { .classes = "Llama4ForConditionalGeneration Llama4ForCausalLM",
      .arch = "llama4",
      .names = OVER(llama4_names),
      .keys =
          ROWS(U32("feed_forward_length", "intermediate_size_mlp"),
               U32("vocab_size", "vocab_size"),
               OF("rope.dimension_count", U32, HEAD),
               U32("interleave_moe_layer_step", "interleave_moe_layer_step"),
               U32("expert_feed_forward_length", "intermediate_size"),
               OF("attention.sliding_window", U32,
                  "all(layer_types:full_attention)?0")) },
    { .classes = "Qwen2MoeForCausalLM",
      .arch = "qwen2moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF) },
    { .classes = "Qwen3MoeForCausalLM",
      .arch = "qwen3moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF) },
    { .classes = "OlmoeForCausalLM",
      .arch = "olmoe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(OF("attention.layer_norm_rms_epsilon", F32,
                      "rms_norm_eps|0.00001")) },
    { .classes = "PhiMoEForCausalLM PhimoeForCausalLM",
      .arch = "phimoe",
      .names = OVER(gg_convert_names_mixtral),
      .keys = ROWS(
          U32("context_length", "max_position_embeddings"),
          U32("rope.scaling.original_context_length",
              "original_max_position_embeddings "
              "rope_scaling.original_max_position_embeddings "
              "rope_parameters.original_max_position_embeddings"),
          U32("embedding_length", "hidden_size"),
          U32("feed_forward_length", "intermediate_size"),
          U32("block_count", "num_hidden_layers"),
          U32("attention.head_count", "num_attention_heads"),
          U32("attention.head_count_kv", "num_key_value_heads"),
          F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
          OF("rope.dimension_count", U32, HEAD),
          F32("rope.freq_base", "rope_theta rope_parameters.rope_theta"),
          FILE_TYPE, OF("attention.sliding_window", U32, "sliding_window|0"),
          U32("expert_used_count", "num_experts_per_tok"),
          U32("expert_count", "num_local_experts")),
      .only_keys = true },
    { .classes = "DeepseekForCausalLM",
      .arch = "deepseek",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(OF("rope.dimension_count", U32, HEAD), NO_SCALING,
                   U32("leading_dense_block_count", "first_k_dense_replace"),
                   U32("vocab_size", "vocab_size"), EXPERT_FF,
                   ALWAYS("expert_weights_scale", F32, 1),
                   U32("expert_shared_count", "n_shared_experts")),
      .turned = true },
    { .classes = "GptOssForCausalLM",
      .arch = "gpt-oss",
      .names = OVER(gpt_oss_names),
      .keys = ROWS(WINDOW,
                   U32("expert_feed_forward_length", "intermediate_size")) },
    { .classes = "Glm4MoeForCausalLM Glm4vMoeForConditionalGeneration",
      .arch = "glm4moe",
      .roles = GLM_MOE_ROLES,
      .names = OVER_3(glm4moe_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .layers = LAYERS_NEXTN,
      .keys = GLM4_MOE },
    { .classes = "SolarOpenForCausalLM",
      .arch = "glm4moe",
      .roles = "eos=<|endoftext|> eot=<|endoftext|> unk=<unk> "
               "bos=<|startoftext|>",
      .names = OVER_3(glm4moe_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .layers = LAYERS_NEXTN,
      .keys = GLM4_MOE },
    { .classes = "Ernie4_5_MoeForCausalLM",
      .arch = "ernie4_5-moe",
      .ties = true,
      .names = OVER_2(ernie_names, gg_convert_names_experts),
      .keys = ROWS(
          U32("expert_count", "moe_num_experts"),
          U32("expert_used_count", "moe_k"),
          U32("interleave_moe_layer_step", "moe_layer_interval"),
          U32("leading_dense_block_count", "moe_layer_start_index"), EXPERT_FF,
          U32("expert_shared_count", "moe_num_shared_experts"),
          /* so it is there, and is not read where the widths of tensors are */
          OF("expert_shared_feed_forward_length", U32,
             "moe_num_shared_experts>0?moe_intermediate_size*"
             "moe_num_shared_experts")) },
    { .classes = "HunYuanMoEV1ForCausalLM",
      .arch = "hunyuan-moe",
      .names = OVER_2(hunyuan_names, gg_convert_names_experts),
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
    { .classes = "MiniMaxM2ForCausalLM",
      .arch = "minimax-m2",
      .names = OVER(gg_convert_names_mixtral),
      .keys = ROWS(U32("expert_feed_forward_length", "intermediate_size"),
                   N_ROT) },
    { .classes = "Dots1ForCausalLM",
      .arch = "dots1",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF,
                   U32("leading_dense_block_count", "first_k_dense_replace"),
                   U32("expert_shared_count", "n_shared_experts"),
                   F32("expert_weights_scale", "routed_scaling_factor"),
                   BOOL("expert_weights_norm", "norm_topk_prob")) },
    { .classes = "DbrxForCausalLM",
      .arch = "dbrx",
      .names = OVER(dbrx_names),
      .keys = ROWS(U32("block_count", "n_layers"),
                   U32("context_length", "max_seq_len"),
                   U32("embedding_length", "d_model"),
                   U32("feed_forward_length", "ffn_config.ffn_hidden_size"),
                   U32("attention.head_count", "n_heads"),
                   U32("attention.head_count_kv", "attn_config.kv_n_heads"),
                   F32("rope.freq_base", "attn_config.rope_theta"),
                   F32("attention.clamp_kqv", "attn_config.clip_qkv"),
                   U32("expert_count", "ffn_config.moe_num_experts"),
                   U32("expert_used_count", "ffn_config.moe_top_k"),
                   ALWAYS("attention.layer_norm_epsilon", F32, 1e-5)),
      .only_keys = true },
    { .classes = NULL }
};
