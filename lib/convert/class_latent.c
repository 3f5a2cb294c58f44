/* SPDX-License-Identifier: MIT */
/* class_latent.c - rows of models whose keys and values come from a narrow
 * vector, and of their kin */
#include "config.h"
#include "convert/class_row.h"

/* Keys and values from a narrow vector; the matrix for keys goes to the side
 * of the queries. */
#define NOPE "qk_nope_head_dim"
static const struct gg_convert_name latent_names[] = {
    N(L "self_attn.q_a_proj", B "attn_q_a"),
    N(L "self_attn.q_a_layernorm", B "attn_q_a_norm"),
    N(L "self_attn.q_b_proj", B "attn_q_b"),
    N(L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"),
    N_AXES(L "self_attn.kv_b_proj", B "attn_k_b",
           "h n=(" NOPE "+v_head_dim)[" NOPE "@0], c > h, c, n"),
    N_AXES(L "self_attn.kv_b_proj", B "attn_v_b",
           "h n=(" NOPE "+v_head_dim)[v_head_dim@" NOPE "], c > h, n, c"),
    END_NAMES
};

/* Which keys a query sees is chosen by a small attention of its own. */
static const struct gg_convert_name indexer_names[] = {
    N(L "self_attn.indexer.wk", B "indexer.attn_k"),
    N(L "self_attn.indexer.wq_b", B "indexer.attn_q_b"),
    N(L "self_attn.indexer.k_norm", B "indexer.k_norm"),
    N(L "self_attn.indexer.weights_proj", B "indexer.proj"), END_NAMES
};

/* Gates and others of experts stay one tensor. */
static const struct gg_convert_name mistral4_names[] = {
    N(L "mlp.experts.gate_up_proj", B "ffn_gate_up_exps.weight"), END_NAMES
};

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
    { L "self_attn.A_log", B "ssm_a", GG_HOW_NEG_EXP,
      "1, 1, x, 1 > 1, 1, x, 1", NULL },
    N(L "self_attn.dt_bias", B "ssm_dt.bias"),
    N(L "self_attn.o_norm", B "ssm_norm"),
    N(BM "gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(BM "shared_experts.gate_proj", B "ffn_gate_shexp"),
    N(BM "shared_experts.up_proj", B "ffn_up_shexp"),
    N(BM "shared_experts.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

/* DeepSeek V4, whose folders have names of their own: streams instead of one
 * hidden state (hc), keys and values as one vector, compressed ones besides
 * (compressor), which an indexer chooses. (inference/model.py of
 * deepseek-ai/DeepSeek-V4-Flash.) */
#define V "layers.%."
static const struct gg_convert_name v4_names[] = {
    N("embed", "token_embd"),
    N("norm", "output_norm"),
    N("head", "output"),
    N("hc_head_fn", "output_hc_fn.weight"),
    N("hc_head_base", "output_hc_base.weight"),
    N("hc_head_scale", "output_hc_scale.weight"),
    N(V "attn_norm", B "attn_norm"),
    N(V "ffn_norm", B "ffn_norm"),
    N(V "hc_attn_fn", B "hc_attn_fn.weight"),
    N(V "hc_attn_base", B "hc_attn_base.weight"),
    N(V "hc_attn_scale", B "hc_attn_scale.weight"),
    N(V "hc_ffn_fn", B "hc_ffn_fn.weight"),
    N(V "hc_ffn_base", B "hc_ffn_base.weight"),
    N(V "hc_ffn_scale", B "hc_ffn_scale.weight"),
    N(V "attn.attn_sink", B "attn_sinks.weight"),
    N(V "attn.wq_a", B "attn_q_a"),
    N(V "attn.q_norm", B "attn_q_a_norm"),
    N(V "attn.wq_b", B "attn_q_b"),
    N(V "attn.wkv", B "attn_kv"),
    N(V "attn.kv_norm", B "attn_kv_a_norm"),
    N(V "attn.wo_a", B "attn_output_a"),
    N(V "attn.wo_b", B "attn_output_b"),
    N(V "attn.compressor.wkv", B "attn_compressor_kv"),
    N(V "attn.compressor.wgate", B "attn_compressor_gate"),
    N(V "attn.compressor.ape", B "attn_compressor_ape.weight"),
    N(V "attn.compressor.norm", B "attn_compressor_norm"),
    N(V "attn.indexer.wq_b", B "indexer.attn_q_b"),
    N(V "attn.indexer.weights_proj", B "indexer.proj"),
    N(V "attn.indexer.compressor.wkv", B "indexer_compressor_kv"),
    N(V "attn.indexer.compressor.wgate", B "indexer_compressor_gate"),
    N(V "attn.indexer.compressor.ape", B "indexer_compressor_ape.weight"),
    N(V "attn.indexer.compressor.norm", B "indexer_compressor_norm"),
    N(V "ffn.gate.weight", B "ffn_gate_inp.weight"),
    N(V "ffn.gate.bias", B "exp_probs_b.bias"),
    N_HOW(V "ffn.gate.tid2eid", B "ffn_gate_tid2eid.weight", INDEX),
    N(V "ffn.experts.@.w1", B "ffn_gate_exps"),
    N(V "ffn.experts.@.w3", B "ffn_up_exps"),
    N(V "ffn.experts.@.w2", B "ffn_down_exps"),
    N(V "ffn.shared_experts.w1", B "ffn_gate_shexp"),
    N(V "ffn.shared_experts.w3", B "ffn_up_shexp"),
    N(V "ffn.shared_experts.w2", B "ffn_down_shexp"),
    END_NAMES
};

/* ---- rows ---- */

/* As the DeepSeek models have them: layers without experts first, shared
 * experts, gates that are chosen with a bias. */
#define DEEPSEEK_KEYS                                                         \
    OF("leading_dense_block_count", U32,                                      \
       "first_k_dense_replace|(n_routed_experts?0:num_hidden_layers)"),       \
        VOCAB_SIZE, U32("attention.q_lora_rank", "q_lora_rank"),              \
        OF("attention.kv_lora_rank", U32, "kv_lora_rank|512"),                \
        OF("attention.key_length", U32, "kv_lora_rank|512+qk_rope_head_dim"), \
        OF("attention.value_length", U32, "kv_lora_rank|512"),                \
        OF("attention.key_length_mla", U32, NOPE "+qk_rope_head_dim"),        \
        U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,           \
        OF("expert_feed_forward_length", U32, "(intermediate_size)"),         \
        OF("expert_shared_count", U32, "n_shared_experts|0"), WEIGHTS_SCALE,  \
        OF("expert_weights_norm", BOOL, "norm_topk_prob=1?1"),                \
        U32("rope.dimension_count", "qk_rope_head_dim"),                      \
        OF("rope.scaling.yarn_log_multiplier", F32,                           \
           "0.1*rope_scaling.mscale_all_dim|rope_parameters.mscale_all_dim")
#define LATENT_KEYS                                                           \
    OF("attention.head_count_kv", U32, "1"),                                  \
        OR("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, 1e-6),    \
        DEEPSEEK_KEYS
#define INDEXER_KEYS                                                          \
    U32("attention.indexer.head_count", "index_n_heads"),                     \
        U32("attention.indexer.key_length", "index_head_dim"),                \
        U32("attention.indexer.top_k", "index_topk")
/* How queries grow with their places. (llama.cpp's converter leaves it out for
 * this model, whose code has it.) */
#define IN_ROPE(NAME) NAME ".original_max_position_embeddings"
#define BETA          "rope_parameters.llama_4_scaling_beta"

const struct gg_convert_arch gg_convert_class_latent[] = {
    { .classes = "DeepseekV2ForCausalLM DeepseekV3ForCausalLM "
                 "KimiVLForConditionalGeneration "
                 "KimiK25ForConditionalGeneration YoutuForCausalLM "
                 "YoutuVLForConditionalGeneration",
      .arch = "deepseek2",
      .layers = "num_hidden_layers",
      .names = OVER_2(latent_names, gg_convert_names_experts),
      .keys = ROWS(LATENT_KEYS) },
    { .classes = "Glm4MoeLiteForCausalLM",
      .arch = "deepseek2",
      .roles = GLM_MOE_ROLES,
      .layers = LAYERS_NEXTN,
      .names = OVER_3(latent_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS,
                   OF("nextn_predict_layers", U32,
                      "num_nextn_predict_layers>0?"
                      "num_nextn_predict_layers")) },
    { .classes = "DeepseekV32ForCausalLM",
      .arch = "deepseek32",
      .layers = LAYERS_NEXTN,
      .names = { latent_names, indexer_names, gg_convert_names_nextn,
                 gg_convert_names_experts, gg_convert_names_llama },
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS, NEXTN, INDEXER_KEYS) },
    /* the layer that drafts is left out */
    { .classes = "DeepseekV4ForCausalLM",
      .arch = "deepseek4",
      .skip = "mtp.",
      .names = { v4_names },
      .keys = ROWS(
          VOCAB_SIZE, U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.output_lora_rank", "o_lora_rank"),
          U32("attention.output_group_count", "o_groups"),
          U32("attention.compress_ratios", "compress_ratios"),
          F32("attention.compress_rope_freq_base", "compress_rope_theta"),
          WINDOW, EXPERT_FF, U32("expert_shared_count", "n_shared_experts"),
          WEIGHTS_SCALE, WEIGHTS_NORM, INDEXER_KEYS,
          U32("hyper_connection.count", "hc_mult"),
          U32("hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"),
          F32("hyper_connection.epsilon", "hc_eps"),
          OF("hash_layer_count", U32, "num_hash_layers|0"),
          EACH("swiglu_clamp_exp", F32, "swiglu_limit"),
          U32("rope.dimension_count", "qk_rope_head_dim")) },
    { .classes = "GlmMoeDsaForCausalLM",
      .arch = "glm-dsa",
      .roles = GLM_MOE_ROLES,
      .when = "rope_parameters.partial_rotary_factor|"
              "partial_rotary_factor|1=1",
      .layers = LAYERS_NEXTN,
      .names = { latent_names, indexer_names, gg_convert_names_nextn,
                 gg_convert_names_experts, gg_convert_names_llama },
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS, NEXTN, INDEXER_KEYS,
                   EACH("attention.indexer.types", BOOL,
                        "i<len(indexer_types)?indexer_types:full")) },
    { .classes = "Mistral4ForCausalLM Mistral3ForConditionalGeneration "
                 "Ministral3ForCausalLM",
      .arch = "mistral4",
      .when = "model_type:mistral4",
      .names = OVER_3(mistral4_names, latent_names, gg_convert_names_experts),
      .keys = ROWS(LATENT_KEYS, F32("attention.temperature_scale", BETA),
                   OF("attention.temperature_length", U32,
                      BETA ">0?" IN_ROPE("rope_parameters") "|" IN_ROPE(
                          "rope_scaling"))) },
    /* attention as Llama's; all elements of heads turn, though config.json
     * says 0 of them */
    { .classes = "DeepseekOCRForCausalLM DeepseekOCR2ForCausalLM "
                 "UnlimitedOCRForCausalLM",
      .arch = "deepseek2-ocr",
      .when = "use_mla|0=0",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(
          OF("rope.freq_base", F32, "rope_theta|10000"),
          OR("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, 1e-6),
          LEAD, VOCAB_SIZE, EXPERT_FF,
          OF("expert_shared_count", U32, "n_shared_experts|0"), WEIGHTS_SCALE,
          OF("expert_weights_norm", BOOL, "norm_topk_prob=1?1"),
          OF("attention.sliding_window", U32,
             "sliding_window_size|sliding_window>0?"
             "sliding_window_size|sliding_window"),
          WORD("/tokenizer.chat_template",
               "{% for m in messages %}{{m['content']}}{% endfor %}")) },
    { .classes = "KimiLinearForCausalLM KimiLinearModel",
      .arch = "kimi-linear",
      .names = { kimi_names, latent_names, gg_convert_names_mixtral,
                 gg_convert_names_llama },
      .keys = ROWS(
          EACH("attention.head_count_kv", U32,
               "has(linear_attn_config.full_attn_layers,1)"),
          VOCAB_SIZE,
          U32("ssm.conv_kernel", "linear_attn_config.short_conv_kernel_size"),
          U32("kda.head_dim", "linear_attn_config.head_dim"),
          U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          U32("rope.dimension_count", "qk_rope_head_dim"),
          OF("attention.key_length", U32, "kv_lora_rank+qk_rope_head_dim"),
          OF("attention.key_length_mla", U32, NOPE "+qk_rope_head_dim"),
          U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,
          U32("expert_shared_count", "num_shared_experts"), LEAD,
          WEIGHTS_SCALE) },
    { .classes = NULL }
};
