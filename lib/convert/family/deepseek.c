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

/* ---- dots3-note ---- */

/* Layers with windows, and nextn layers after all others, have their own
 * heads. */
static double dots3_is_window(const struct gg_hf_config *cfg, int64_t layer)
{
    return !((double)layer < num_of(cfg, "num_hidden_layers")) ||
           gg_convert_is_sliding(cfg, layer) == 1;
}

/* A number of the layer: member swa_NAME in windows, else NAME. */
#define DOTS3_SIZE(FN, NAME)                                                  \
    static double FN(const struct gg_hf_config *cfg, int64_t layer)           \
    {                                                                         \
        return num_of(cfg,                                                    \
                      dots3_is_window(cfg, layer) == 1 ? "swa_" NAME : NAME); \
    }
DOTS3_SIZE(dots3_heads, "num_attention_heads")
DOTS3_SIZE(dots3_nope, "qk_nope_head_dim")
DOTS3_SIZE(dots3_value, "v_head_dim")
DOTS3_SIZE(dots3_rank, "kv_lora_rank")

static double dots3_kv_b_rows(const struct gg_hf_config *cfg, int64_t layer)
{
    return dots3_nope(cfg, layer) + dots3_value(cfg, layer);
}

static const struct gg_convert_size dots3_sizes[] = {
    { .name = "h", .of_layer = dots3_heads },
    { .name = "nope", .of_layer = dots3_nope },
    { .name = "vdim", .of_layer = dots3_value },
    { .name = "kvb", .of_layer = dots3_kv_b_rows },
    { .name = NULL }
};

/* The model multiplies low-rank activations by sqrt(width / rank). Files have
 * this factor in the norms before. */
static double rescale_by_rank(const struct gg_hf_config *cfg, double rank)
{
    return is_true(num_of(cfg, "apply_mla_qkv_lora_rescale"))
               ? sqrt(num_of(cfg, "hidden_size") / rank)
               : NAN;
}

static double dots3_query_scale(const struct gg_hf_config *cfg, int64_t layer)
{
    (void)layer;
    return rescale_by_rank(cfg, num_of(cfg, "q_lora_rank"));
}

static double dots3_key_scale(const struct gg_hf_config *cfg, int64_t layer)
{
    return rescale_by_rank(cfg, dots3_rank(cfg, layer));
}

static const struct gg_convert_name dots3_names[] = {
    { .from = L "self_attn.q_a_layernorm",
      .to = B "attn_q_a_norm",
      .scale_of = dots3_query_scale },
    { .from = L "self_attn.kv_a_layernorm",
      .to = B "attn_kv_a_norm",
      .scale_of = dots3_key_scale },
    N(L "self_attn.k_rope_only_layernorm", B "attn_k_norm"),
    N(L "self_attn.g_proj", B "attn_gate"),
    N("model.mtp.embed_tokens", "blk.+.nextn.embed_tokens"),
    END_NAMES
};

static double dots3_window_key(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "swa_kv_lora_rank") +
           num_of(cfg, "swa_qk_rope_head_dim");
}

static double dots3_window_value(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "swa_kv_lora_rank");
}

static double dots3_window_key_mla(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "swa_qk_nope_head_dim") +
           num_of(cfg, "swa_qk_rope_head_dim");
}

static bool equals_or_missing(double x, double y)
{
    return isnan(x) || x == y;
}

static bool is_word_or_missing(const struct gg_hf_config *cfg,
                               const char *name, const char *word)
{
    return gg_hf_config_is_word(cfg, name, -1, word) != 0;
}

/* Gates of heads, routing by a sigmoid without groups, the same rotary part and
 * rank of queries in all layers. */
static bool is_dots3(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "use_dsa", 1) == 1 &&
           num_or(cfg, "k_rope_only_layernorm", 1) == 1 &&
           num_or(cfg, "n_group", 1) == 1 &&
           num_or(cfg, "topk_group", 1) == 1 &&
           num_or(cfg, "use_dynamic_rsf", 0) == 0 &&
           num_or(cfg, "moe_gating_fp32", 0) == 0 &&
           is_word_or_missing(cfg, "normalization", "RMSNorm") &&
           is_word_or_missing(cfg, "final_norm", "RMSNorm") &&
           is_word_or_missing(cfg, "topk_method", "noaux_tc") &&
           is_word_or_missing(cfg, "scoring_func", "sigmoid") &&
           is_word_or_missing(cfg, "attention_gate_type", "headwise") &&
           is_word_or_missing(cfg, "swa_attention_gate_type", "headwise") &&
           equals_or_missing(num_of(cfg, "swa_head_dim"),
                             dots3_window_key_mla(cfg)) &&
           equals_or_missing(num_of(cfg, "swa_qk_rope_head_dim"),
                             num_of(cfg, "qk_rope_head_dim")) &&
           equals_or_missing(num_of(cfg, "swa_q_lora_rank"),
                             num_of(cfg, "q_lora_rank"));
}

/* Width of a head that no layer has. */
static enum gguf_status forget_head_dim(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    return gg_convert_get_config(c, "head_dim")
               ? gg_convert_set_config(c, "head_dim", json_null(), err)
               : GGUF_OK;
}

/* Windows of layers; those of nextn layers are left out. */
static double dots3_window(const struct gg_hf_config *cfg, int64_t layer)
{
    return (double)layer < num_of(cfg, "num_hidden_layers")
               ? dots3_is_window(cfg, layer)
               : NAN;
}

static double dots3_indexer(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(dots3_window(cfg, layer), 0);
}

static double heads_if(const struct gg_hf_config *keys, int64_t layer,
                       double sliding)
{
    return gg_back_num_if(keys, layer, sliding, "attention.head_count");
}

static double full_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return heads_if(keys, layer, 0);
}

static double window_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return heads_if(keys, layer, 1);
}

/* The factor of low-rank activations stays in the norms. */
static void put_dots3(struct gg_back_maker *m)
{
    static const char *const gates[] = { "attention_gate_type",
                                         "swa_attention_gate_type" };
    const struct gg_hf_config *keys = &m->keys;
    const double turn = num_of(keys, "rope.dimension_count");
    const double full = gg_back_first_layer(m, full_heads);
    const double window = gg_back_first_layer(m, window_heads);
    gg_back_put_num(m, "num_attention_heads", full);
    gg_back_put_num(m, "num_key_value_heads", full);
    gg_back_put_num(m, "swa_num_attention_heads", window);
    gg_back_put_num(m, "swa_num_key_value_heads", window);
    gg_back_put_num(m, "swa_q_lora_rank",
                    num_of(keys, "attention.q_lora_rank"));
    gg_back_put_num(m, "swa_head_dim",
                    num_of(keys, "attention.key_length_mla_swa"));
    gg_back_put_num(m, "swa_qk_nope_head_dim",
                    num_of(keys, "attention.key_length_mla_swa") - turn);
    gg_back_put_num(m, "swa_qk_rope_head_dim", turn);
    gg_back_put_word(m, "topk_method", "noaux_tc");
    for (size_t i = 0; i < GG_LEN(gates); i++)
        gg_back_put_word(m, gates[i], "headwise");
    gg_back_put_flag(m, "use_dsa", 1);
    gg_back_put_flag(m, "k_rope_only_layernorm", 1);
    gg_back_put_flag(m, "apply_mla_qkv_lora_rescale", 0);
}

/* ---- rows ---- */

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
    { .classes = "Dots3NoteForCausalLM Dots3NoteForConditionalGeneration "
                 "Dots3NoteTextForCausalLM",
      .arch = "dots3note",
      .model_type = "dots3_note",
      .instead = { { "num_experts", "n_routed_experts" } },
      .when = is_dots3,
      .fix_config = forget_head_dim,
      .back = put_dots3,
      .roles = "eot=<|endofassistant|>",
      .skip = "vision_encoder. audio_encoder.",
      .nextn = N_NEXTN,
      .nextn_by_names = true,
      .sizes = dots3_sizes,
      .names = { dots3_names, gg_convert_names_latent,
                 gg_convert_names_indexer, gg_convert_names_nextn,
                 gg_convert_names_experts, gg_convert_names_llama },
      .keys = ROWS(
          BLOCKS_NEXTN,
          EACH("attention.head_count", U32, dots3_heads, IN_BACK),
          OF("attention.head_count_kv", U32, gg_convert_constant_one, IN_BACK),
          F32("rope.freq_base_swa", "swa_rope_theta"), LATENT_KEYS,
          U32("attention.sliding_window", "sliding_window_size"),
          EACH("attention.sliding_window_pattern", BOOL, dots3_window,
               gg_back_put_sliding_layers),
          U32("attention.kv_lora_rank_swa", "swa_kv_lora_rank"),
          OF("attention.key_length_swa", U32, dots3_window_key, NO_BACK),
          OF("attention.value_length_swa", U32, dots3_window_value, NO_BACK),
          OF("attention.key_length_mla_swa", U32, dots3_window_key_mla,
             IN_BACK),
          U32("attention.value_length_mla_swa", "swa_v_head_dim"),
          NEXTN_ABOVE_0, INDEXER_KEYS,
          EACH("attention.indexer.types", BOOL, dots3_indexer, NO_BACK)) },
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
