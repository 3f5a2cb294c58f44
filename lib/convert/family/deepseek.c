/* SPDX-License-Identifier: MIT */
/* deepseek.c - classes of DeepSeek and models with its experts or attention */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

static enum gguf_status view_index(struct gg_convert_view *v,
                                   struct gguf_error *err)
{
    return v->from->type /* one is known */
               ? gg_safetensors_convert_to_i32(v->c->folder.weights,
                                               v->item->from, err)
               : GGUF_OK;
}

static const struct gg_convert_transform index_i32 = {
    .text = "whole numbers of 32 bits", .view = view_index, .is_i32 = true
};

static const struct gg_convert_name plm_names[] = {
    N(L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"),
    N(L "self_attn.kv_b_proj", B "attn_kv_b"), END_NAMES
};

/* DeepSeek V4, whose folders have their own names: residual streams (hc), keys
 * and values as one vector, compressed keys (compressor) and an indexer that
 * chooses them. (inference/model.py of deepseek-ai/DeepSeek-V4-Flash.) */
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
    N_HOW(V "ffn.gate.tid2eid", B "ffn_gate_tid2eid.weight", index_i32),
    N(V "ffn.experts.@.w1", B "ffn_gate_exps"),
    N(V "ffn.experts.@.w3", B "ffn_up_exps"),
    N(V "ffn.experts.@.w2", B "ffn_down_exps"),
    N(V "ffn.shared_experts.w1", B "ffn_gate_shexp"),
    N(V "ffn.shared_experts.w3", B "ffn_up_shexp"),
    N(V "ffn.shared_experts.w2", B "ffn_down_shexp"),
    END_NAMES
};

static double swiglu_limit(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_at(cfg, "swiglu_limit", layer);
}

static bool is_without_mla(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "use_mla", 0) == 0;
}

/* Remove members that the class has by default. */
static void put_ocr(struct gg_back_maker *m)
{
    if (num_of(&m->keys, "rope.freq_base") == 10000)
        gg_back_remove_member(m, "rope_theta");
    if (num_of(&m->keys, "attention.layer_norm_rms_epsilon") == 1e-6)
        gg_back_remove_member(m, "rms_norm_eps");
}

const struct gg_convert_arch gg_convert_family_deepseek[] = {
    { .classes = "PLMForCausalLM",
      .arch = "plm",
      .names = OVER(plm_names),
      .keys = ROWS(U32("vocab_size", "vocab_size"),
                   U32("attention.kv_lora_rank", "kv_lora_rank"),
                   OF("attention.key_length", U32, gg_convert_mla_key_length,
                      gg_back_put_nope),
                   U32("attention.value_length", "v_head_dim"),
                   U32("rope.dimension_count", "qk_rope_head_dim")) },
    { .classes = "DeepseekForCausalLM",
      .arch = "deepseek",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(ALL_ROT, NO_SCALING,
                   U32("leading_dense_block_count", "first_k_dense_replace"),
                   U32("vocab_size", "vocab_size"), EXPERT_FF,
                   ALWAYS("expert_weights_scale", F32, 1),
                   U32("expert_shared_count", "n_shared_experts")),
      .permuted = true },
    { .classes = "Dots1ForCausalLM",
      .arch = "dots1",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF,
                   U32("leading_dense_block_count", "first_k_dense_replace"),
                   U32("expert_shared_count", "n_shared_experts"),
                   F32("expert_weights_scale", "routed_scaling_factor"),
                   BOOL("expert_weights_norm", "norm_topk_prob")) },
    { .classes = "DeepseekV2ForCausalLM DeepseekV3ForCausalLM "
                 "KimiVLForConditionalGeneration "
                 "KimiK25ForConditionalGeneration YoutuForCausalLM "
                 "YoutuVLForConditionalGeneration",
      .arch = "deepseek2",
      .nextn = "",
      .names = OVER_2(gg_convert_names_latent, gg_convert_names_experts),
      .keys = ROWS(LATENT_KEYS) },
    { .classes = "Glm4MoeLiteForCausalLM",
      .arch = "deepseek2",
      .roles = GLM_MOE_ROLES,
      .nextn = N_NEXTN,
      .names = OVER_3(gg_convert_names_latent, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS, NEXTN_ABOVE_0) },
    { .classes = "DeepseekV32ForCausalLM",
      .arch = "deepseek32",
      .nextn = N_NEXTN,
      .names = { gg_convert_names_latent, gg_convert_names_indexer,
                 gg_convert_names_nextn, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS, NEXTN, INDEXER_KEYS) },
    /* the nextn layer is left out */
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
          ELSE("hash_layer_count", U32, "num_hash_layers", 0),
          EACH("swiglu_clamp_exp", F32, swiglu_limit,
               gg_back_put_swiglu_limit),
          U32("rope.dimension_count", "qk_rope_head_dim")) },
    /* attention as in Llama; all elements of heads are rotated, although
     * config.json says 0 */
    { .classes = "DeepseekOCRForCausalLM DeepseekOCR2ForCausalLM "
                 "UnlimitedOCRForCausalLM",
      .arch = "deepseek2-ocr",
      .when = is_without_mla,
      .back = put_ocr,
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(
          ELSE("rope.freq_base", F32, "rope_theta", 10000),
          OR("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, 1e-6),
          LEAD, VOCAB_SIZE, EXPERT_FF,
          ELSE("expert_shared_count", U32, "n_shared_experts", 0),
          WEIGHTS_SCALE, NORM_TOPK_IF_TRUE,
          ABOVE_0("attention.sliding_window", U32,
                  "sliding_window_size sliding_window"),
          WORD("/tokenizer.chat_template",
               "{% for m in messages %}{{m['content']}}{% endfor %}")) },
    { .classes = NULL }
};
