/* SPDX-License-Identifier: MIT */
/* class_row.h - macros and functions for rows of classes
 *
 * Sources: names of tensors and of config.json are those of the models in
 * Hugging Face's transformers 4.57
 * (src/transformers/models/NAME/modeling_NAME.py, configuration_NAME.py) or of
 * repositories with their own code. Names in GGUF files are the rows of
 * model/weight/weight.h and model/hparam/hparam_list.h. Keys are those that
 * llama.cpp's converter writes (commit d32676d77426).
 */
#ifndef GG_CONVERT_CLASS_ROW_H
#define GG_CONVERT_CLASS_ROW_H

#include "convert/back/back_maker.h"
#include "convert/classes.h"
#include "quant/job/job.h"

#include <math.h>

/* Rows of each family, in family/FAMILY.c; a list ends with a row without a
 * class. Rows of a class in several families exclude each other (.when). */
extern const struct gg_convert_arch gg_convert_family_llama[],
    gg_convert_family_mistral[], gg_convert_family_qwen[],
    gg_convert_family_qwen_delta[], gg_convert_family_diffusion[],
    gg_convert_family_gemma[], gg_convert_family_phi[],
    gg_convert_family_glm[], gg_convert_family_deepseek[],
    gg_convert_family_bailing[], gg_convert_family_kimi[],
    gg_convert_family_kyutai[], gg_convert_family_minimax[],
    gg_convert_family_minicpm[], gg_convert_family_hrm[],
    gg_convert_family_muse[], gg_convert_family_horizon[],
    gg_convert_family_hunyuan[], gg_convert_family_ernie[],
    gg_convert_family_granite[], gg_convert_family_falcon[],
    gg_convert_family_cohere[], gg_convert_family_olmo[],
    gg_convert_family_exaone[], gg_convert_family_nemotron[],
    gg_convert_family_plamo[], gg_convert_family_lfm[],
    gg_convert_family_gpt[], gg_convert_family_bert[], gg_convert_family_t5[],
    gg_convert_family_mamba[], gg_convert_family_rwkv[],
    gg_convert_family_expert[];

/* Defaults of transformers 4.57 for language models that are part of another
 * model: configuration_llama.py, configuration_mistral.py,
 * configuration_qwen2.py. If a list lacks num_key_value_heads, each query head
 * has its own key head. */
extern const struct gg_convert_defaults gg_convert_defaults_llama,
    gg_convert_defaults_mistral, gg_convert_defaults_qwen2;

/* shared_names.c: lists of names that several families have: Llama's; experts
 * named as in Qwen, OLMoE, DeepSeek and GLM; Mixtral's experts; nextn layers;
 * norms after attention and feed-forward part; latent attention and its
 * indexer; GPT BigCode's; Mamba 2 beside attention. */
extern const struct gg_convert_name gg_convert_names_llama[],
    gg_convert_names_experts[], gg_convert_names_mixtral[],
    gg_convert_names_nextn[], gg_convert_names_post_norm[],
    gg_convert_names_latent[], gg_convert_names_indexer[],
    gg_convert_names_starcoder[], gg_convert_names_hybrid[];

/* ---- short names for reading config.json in functions of a family ---- */

static inline double num_of(const struct gg_hf_config *cfg, const char *names)
{
    return gg_hf_config_num(cfg, names, -1);
}

static inline double num_at(const struct gg_hf_config *cfg, const char *names,
                            int64_t layer)
{
    return gg_hf_config_num(cfg, names, layer);
}

static inline double value_or(double x, double other)
{
    return isnan(x) ? other : x;
}

static inline double num_or(const struct gg_hf_config *cfg, const char *names,
                            double other)
{
    return value_or(num_of(cfg, names), other);
}

/* Compare numbers that may be missing (NAN): 1 or 0, or NAN. */
static inline double is_equal(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : x == y;
}

static inline double is_above(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : x > y;
}

/* Is the number present and not 0? */
static inline bool is_true(double x)
{
    return !isnan(x) && x != 0;
}

/* ---- shared_keys.c: functions that several families use ---- */

/* Width of a head: hidden_size / heads; and head_dim, if it is present, else
 * the same. */
gg_hf_config_fn gg_convert_head_width, gg_convert_head_dim;
/* Query heads that share a key head (grouped-query attention). */
gg_hf_config_fn gg_convert_gqa_group_size;
/* Rows of all queries; of all keys; of both. */
gg_hf_config_fn gg_convert_query_rows, gg_convert_key_rows,
    gg_convert_query_key_rows;
/* Elements of a head with rotary embedding. The partial rotary factor is the
 * first of NAMES that exists, else PART. */
double gg_convert_rotary_dims(const struct gg_hf_config *cfg,
                              const char *names, double part);
/* Elements of a head with rotary embedding; the default is half of the head. */
gg_hf_config_fn gg_convert_rotary_half;
/* Elements of a head with rotary embedding, for heads of hidden_size / heads
 * elements. head_dim is not read. */
double gg_convert_rotary_width(const struct gg_hf_config *cfg, double part);
/* rope_theta; NAN if it is 10000, the default of readers. */
gg_hf_config_fn gg_convert_rope_base;
/* Number of layers including nextn layers. */
gg_hf_config_fn gg_convert_blocks_nextn;
/* Does the layer have a sliding window, or full attention, by layer_types? */
gg_hf_config_layer_fn gg_convert_is_sliding, gg_convert_is_full;
/* Does the layer have attention, by attn_layer_period and attn_layer_offset? */
gg_hf_config_layer_fn gg_convert_attention_by_period;
/* Width of a state space: mamba_expand times hidden_size. */
gg_hf_config_fn gg_convert_mamba_inner_size;
/* First layer that mlp_layer_types does not call dense. */
gg_hf_config_fn gg_convert_first_sparse;
/* Number of leading dense layers if config.json does not say: all layers of a
 * model without experts. */
gg_hf_config_fn gg_convert_all_dense;
/* 1: latent attention has one key head. */
gg_hf_config_fn gg_convert_constant_one;
/* Width of a key of latent attention as it is cached; and of each head. */
gg_hf_config_fn gg_convert_latent_key_length, gg_convert_mla_key_length;
/* A tenth of mscale_all_dim. */
gg_hf_config_fn gg_convert_yarn_log_multiplier;
/* 4 * hidden_size; and moe_intermediate_size * num_shared_experts. */
gg_hf_config_fn gg_convert_four_times_width, gg_convert_shared_width;
/* intermediate_size; and norm_topk_prob, NAN unless it is true. */
gg_hf_config_fn gg_convert_feed_forward, gg_convert_norm_topk;
/* family/llama.c: Code Llama's fill-in-the-middle tokens, if the vocabulary has
 * its size. */
gg_hf_config_fn gg_convert_fim_prefix, gg_convert_fim_suffix,
    gg_convert_fim_middle;
/* 0 if the size of the vocabulary is that of a model without BOS, else NAN. */
gg_hf_config_fn gg_convert_no_bos;

/* Transforms of tensors (describe/tensor_layout.c, ternary.c): rows of each
 * query or key head from halves to pairs, if the class has .permuted; add 1;
 * remove dimensions of size 1; exp(x); -exp(x); the first and the second half
 * of the rows; -1, 0 or 1 times the mean magnitude; a factor of the row before,
 * which becomes 1 on the way back. */
extern const struct gg_convert_transform gg_convert_rope_q, gg_convert_rope_k,
    gg_convert_plus_1, gg_convert_squeeze, gg_convert_exp, gg_convert_neg_exp,
    gg_convert_half_1, gg_convert_half_2, gg_convert_ternary,
    gg_convert_factor;
#define ROPE_Q  gg_convert_rope_q
#define ROPE_K  gg_convert_rope_k
#define PLUS_1  gg_convert_plus_1
#define SQUEEZE gg_convert_squeeze
#define EXP     gg_convert_exp
#define NEG_EXP gg_convert_neg_exp
#define HALF_1  gg_convert_half_1
#define HALF_2  gg_convert_half_2
#define TERNARY gg_convert_ternary
#define FACTOR  gg_convert_factor

#define L "model.layers.%."
#define B "blk.%."

/* Rows of names. N: a tensor as it is. N_HOW: HOW changes its numbers. N_AXES:
 * AXES gives the order of its elements. N_TIMES: NAME in config.json is a
 * factor. N_IN: the row applies to some layers. N_IF: on the way back, some
 * layers have this name. N_KEY: a tensor of one number becomes a key. N_LIST: a
 * tensor of whole numbers in the layer of FN becomes a list of a key. N_JOIN:
 * tensors numbered by @ in the layer of FN are joined by rows. N_NOT: the
 * tensor is ignored. N_COMPUTED: config.json determines its numbers. */
#define END_NAMES                                                             \
    {                                                                         \
        .from = NULL                                                          \
    }
#define N(FROM, TO)                                                           \
    {                                                                         \
        .from = FROM, .to = TO                                                \
    }
#define N_HOW(FROM, TO, HOW)                                                  \
    {                                                                         \
        .from = FROM, .to = TO, .transform = &HOW                             \
    }
#define N_AXES(FROM, TO, AXES)                                                \
    {                                                                         \
        .from = FROM, .to = TO, .axes = AXES                                  \
    }
#define N_HOW_AXES(FROM, TO, HOW, AXES)                                       \
    {                                                                         \
        .from = FROM, .to = TO, .transform = &HOW, .axes = AXES               \
    }
#define N_TIMES(FROM, TO, NAME)                                               \
    {                                                                         \
        .from = FROM, .to = TO, .scale = { NAME }                             \
    }
#define N_IN(FROM, TO, FN)                                                    \
    {                                                                         \
        .from = FROM, .to = TO, .in_layers = FN                               \
    }
#define N_IF(FROM, TO, FN)                                                    \
    {                                                                         \
        .from = FROM, .to = TO, .only_if = FN                                 \
    }
#define N_JOIN(FROM, TO, FN)                                                  \
    {                                                                         \
        .from = FROM, .to = TO, .joins = true, .in_layers = FN                \
    }
#define N_LIST(FROM, KEY, FN) N_IN(FROM, "==" KEY, FN)
#define N_KEY(FROM, KEY)      N(FROM, "=" KEY)
#define N_NOT(FROM)           N(FROM, NULL)

#define N_COMPUTED(FROM, TO)                                                  \
    {                                                                         \
        .from = FROM, .to = TO, .is_computed = true                           \
    }

/* Experts as one tensor each, and as one tensor for all, gates before the
 * others. FROM precedes the names of the three matrices. */
#define EACH_EXPERT(FROM)                                                     \
    N(FROM "gate_proj", B "ffn_gate_exps"),                                   \
        N(FROM "up_proj", B "ffn_up_exps"),                                   \
        N(FROM "down_proj", B "ffn_down_exps")
#define PACKED_EXPERTS(FROM)                                                  \
    N_AXES(FROM "gate_up_proj", B "ffn_gate_exps.weight",                     \
           "x, 2[1@0] f, c > x, f, c"),                                       \
        N_AXES(FROM "gate_up_proj", B "ffn_up_exps.weight",                   \
               "x, 2[1@1] f, c > x, f, c"),                                   \
        N(FROM "down_proj", B "ffn_down_exps.weight")

#define ROWS(...)                                                             \
    (const struct gg_convert_key[])                                           \
    {                                                                         \
        __VA_ARGS__,                                                          \
        {                                                                     \
            .key = NULL                                                       \
        }                                                                     \
    }
/* Rows of keys. HF: names in config.json. VALUE: the value without them. */
#define OR                       GG_CONVERT_KEY
#define U32(KEY, HF)             OR(KEY, HF, U32, 0)
#define F32(KEY, HF)             OR(KEY, HF, F32, 0)
#define BOOL(KEY, HF)            OR(KEY, HF, BOOL, 0)
#define TEXT(KEY, HF)            OR(KEY, HF, STR, 0)
#define ALWAYS(KEY, KIND, VALUE) OR(KEY, NULL, KIND, VALUE)
/* Numbers by names in config.json (of a list, the first element). Without
 * such a number ELSE takes NUMBER, and ELSE_OF takes the result of FN.
 * ABOVE_0: numbers that are not above 0 are left out. */
#define ELSE(KEY, KIND, HF, NUMBER)                                           \
    {                                                                         \
        .key = KEY, .hf = HF, .kind = GG_KIND_##KIND##_OF, .value = NUMBER    \
    }
#define ABOVE_0(KEY, KIND, HF)                                                \
    {                                                                         \
        .key = KEY, .hf = HF, .kind = GG_KIND_##KIND##_OF, .above_0 = true,   \
        .value = NAN                                                          \
    }
#define ELSE_OF(KEY, KIND, HF, FN)                                            \
    {                                                                         \
        .key = KEY, .hf = HF, .kind = GG_KIND_##KIND##_OF, .value = NAN,      \
        .of = FN                                                              \
    }
/* Numbers that FN computes: OF once, EACH for each layer.
 *
 * BACK      the inverse of FN on the way back
 * IN_BACK   the .back of the architecture's row is the inverse
 * NO_BACK   no inverse is needed: other keys or the class's default say the
 *           same */
#define OF(KEY, KIND, FN, BACK)                                               \
    {                                                                         \
        .key = KEY, .kind = GG_KIND_##KIND##_OF, .value = NAN, .of = FN,      \
        .back = BACK                                                          \
    }
#define EACH(KEY, KIND, FN, BACK)                                             \
    {                                                                         \
        .key = KEY, .kind = GG_KIND_EACH_##KIND, .value = NAN,                \
        .of_layer = FN, .back = BACK                                          \
    }
#define IN_BACK NULL
#define NO_BACK NULL
/* BOS precedes texts, whatever the tokenizer's files say. */
#define BEGINS ROWS(ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 1))
/* Special tokens of GLM as llama.cpp's converter writes them: up to GLM-4, and
 * with experts. */
#define GLM_ROLES                                                             \
    "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|> bos=<|endoftext|>"
#define GLM_MOE_ROLES                                                         \
    "bos=[gMASK] eot=<|user|> unk=<|endoftext|> eom=<|observation|>"
/* A constant text. */
#define WORD(KEY, TEXT_) OR(KEY, "=" TEXT_, STR, 0)

#define WINDOW U32("attention.sliding_window", "sliding_window")
#define PATTERN                                                               \
    EACH("attention.sliding_window_pattern", BOOL, gg_convert_is_sliding,     \
         gg_back_put_sliding_layers)
#define EXPERT_FF U32("expert_feed_forward_length", "moe_intermediate_size")
#define SHARED_FF                                                             \
    U32("expert_shared_feed_forward_length", "shared_expert_intermediate_size")
#define NO_SCALING WORD("rope.scaling.type", "none")
/* Base of the rotary embedding; left out if it is the default of readers. */
#define THETA                                                                 \
    OF("rope.freq_base", F32, gg_convert_rope_base, gg_back_put_rope_base)
#define N_ROT U32("rope.dimension_count", "rotary_dim")
/* All elements of a head have rotary embedding. */
#define ALL_ROT OF("rope.dimension_count", U32, gg_convert_head_dim, NO_BACK)

#define VOCAB_SIZE   U32("vocab_size", "vocab_size")
#define LEAD         U32("leading_dense_block_count", "first_k_dense_replace")
#define WEIGHTS_NORM BOOL("expert_weights_norm", "norm_topk_prob")
/* Written only if it is true. */
#define NORM_TOPK_IF_TRUE                                                     \
    OF("expert_weights_norm", BOOL, gg_convert_norm_topk,                     \
       gg_back_put_norm_topk)
#define WEIGHTS_SCALE F32("expert_weights_scale", "routed_scaling_factor")
/* Nextn layers come after the others. */
#define N_NEXTN "num_nextn_predict_layers"
#define BLOCKS_NEXTN                                                          \
    OF("block_count", U32, gg_convert_blocks_nextn, gg_back_put_main_layers)
#define NEXTN         U32("nextn_predict_layers", N_NEXTN)
#define NEXTN_ABOVE_0 ABOVE_0("nextn_predict_layers", U32, N_NEXTN)
#define LLAMA                                                                 \
    {                                                                         \
        gg_convert_names_llama                                                \
    }
#define OVER(LIST)                                                            \
    {                                                                         \
        LIST, gg_convert_names_llama                                          \
    }
#define OVER_2(LIST, LIST_2)                                                  \
    {                                                                         \
        LIST, LIST_2, gg_convert_names_llama                                  \
    }
#define OVER_3(LIST, LIST_2, LIST_3)                                          \
    {                                                                         \
        LIST, LIST_2, LIST_3, gg_convert_names_llama                          \
    }
/* Explicit places of two keys that by default come after those of the
 * configuration. */
#define FILE_TYPE ALWAYS("/general.file_type", U32, 0)
#define FILE_VERSION                                                          \
    ALWAYS("/general.quantization_version", U32, GG_JOB_VERSION)
/* Variants of Llama that the size of the vocabulary identifies: Code Llama,
 * whose files do not name its fill-in-the-middle tokens, Granite's small models
 * and SmolLM. */
#define IF_CODE(KEY, FN)                                                      \
    OF("/tokenizer.ggml." KEY "_token_id", U32, FN, NO_BACK)
#define OF_SIZE                                                               \
    ROWS(IF_CODE("prefix", gg_convert_fim_prefix),                            \
         IF_CODE("suffix", gg_convert_fim_suffix),                            \
         IF_CODE("middle", gg_convert_fim_middle),                            \
         OF("/tokenizer.ggml.add_bos_token", BOOL, gg_convert_no_bos,         \
            NO_BACK)),                                                        \
        .roles = "eot=\xe2\x96\x81<EOT>"
/* Keys of DeepSeek models: leading dense layers, shared experts, gating with an
 * expert bias. */
#define DEEPSEEK_KEYS                                                         \
    ELSE_OF("leading_dense_block_count", U32, "first_k_dense_replace",        \
            gg_convert_all_dense),                                            \
        VOCAB_SIZE, U32("attention.q_lora_rank", "q_lora_rank"),              \
        ELSE("attention.kv_lora_rank", U32, "kv_lora_rank", 512),             \
        OF("attention.key_length", U32, gg_convert_latent_key_length,         \
           NO_BACK),                                                          \
        ELSE("attention.value_length", U32, "kv_lora_rank", 512),             \
        OF("attention.key_length_mla", U32, gg_convert_mla_key_length,        \
           gg_back_put_nope_of_mla),                                          \
        U32("attention.value_length_mla", "v_head_dim"), EXPERT_FF,           \
        OF("expert_feed_forward_length", U32, gg_convert_feed_forward,        \
           NO_BACK),                                                          \
        ELSE("expert_shared_count", U32, "n_shared_experts", 0),              \
        WEIGHTS_SCALE, NORM_TOPK_IF_TRUE,                                     \
        U32("rope.dimension_count", "qk_rope_head_dim"),                      \
        OF("rope.scaling.yarn_log_multiplier", F32,                           \
           gg_convert_yarn_log_multiplier, NO_BACK) /* gg_back_put_rope */
/* One key/value head, which all query heads share. */
#define ONE_KV_HEAD                                                           \
    OF("attention.head_count_kv", U32, gg_convert_constant_one,               \
       gg_back_put_kv_heads)
#define LATENT_KEYS                                                           \
    ONE_KV_HEAD,                                                              \
        OR("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, 1e-6),    \
        DEEPSEEK_KEYS
#define INDEXER_KEYS                                                          \
    U32("attention.indexer.head_count", "index_n_heads"),                     \
        U32("attention.indexer.key_length", "index_head_dim"),                \
        U32("attention.indexer.top_k", "index_topk")
/* Norms multiply by 1 + weight. */
#define NORMS_PLUS_1                                                          \
    N_HOW("model.norm", "output_norm", PLUS_1),                               \
        N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),                    \
        N_HOW(L "post_attention_layernorm", B "ffn_norm", PLUS_1),            \
        N_HOW(L "self_attn.q_norm", B "attn_q_norm", PLUS_1),                 \
        N_HOW(L "self_attn.k_norm", B "attn_k_norm", PLUS_1)
#define BACKBONE_MIXER "backbone.layers.%.mixer."
/* Mamba 2: one number per head; norms per group. */
#define MAMBA2(P)                                                             \
    N_HOW(P "conv1d", B "ssm_conv1d", SQUEEZE),                               \
        N(P "dt_bias", B "ssm_dt.bias"),                                      \
        N_HOW_AXES(P "A_log", B "ssm_a", NEG_EXP, "x > x, 1"),                \
        N_AXES(P "D", B "ssm_d", "x > x, 1"),                                 \
        N_AXES(P "norm", B "ssm_norm", "groups y > groups, y")
#define LAYERS_MAMBA L "mamba."
#define MAMBA_EPS                                                             \
    ELSE("attention.layer_norm_rms_epsilon", F32,                             \
         "layer_norm_epsilon rms_norm_eps", 1e-5)
/* For classes with permuted queries and keys. */
#define PERMUTED .permuted = true, .rope_count = true, .vocab_size = true

#endif
