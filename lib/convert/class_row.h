/* SPDX-License-Identifier: MIT */
/* class_row.h - how the rows of architectures are written
 *
 * Names of tensors and keys of config.json are those of the models in Hugging
 * Face's transformers (src/transformers/models/NAME/modeling_NAME.py and
 * configuration_NAME.py, 4.57) or of the repositories that have code of their
 * own; names on the other side are the rows of model/weight.h and
 * model/hparam_list.h; which keys files have is what llama.cpp's converter
 * writes (commit d32676d77426).
 */
#ifndef GG_CONVERT_CLASS_ROW_H
#define GG_CONVERT_CLASS_ROW_H

#include "convert/classes.h"
#include "quant/job/job.h"

/* The rows of each family, in family/FAMILY.c; a list ends with a row without
 * a class. All rows of one class are in one family. */
extern const struct gg_convert_arch gg_convert_family_llama[],
    gg_convert_family_mistral[], gg_convert_family_qwen[],
    gg_convert_family_diffusion[], gg_convert_family_gemma[],
    gg_convert_family_phi[], gg_convert_family_glm[],
    gg_convert_family_deepseek[], gg_convert_family_bailing[],
    gg_convert_family_kimi[], gg_convert_family_minimax[],
    gg_convert_family_minicpm[], gg_convert_family_hunyuan[],
    gg_convert_family_ernie[], gg_convert_family_granite[],
    gg_convert_family_falcon[], gg_convert_family_cohere[],
    gg_convert_family_olmo[], gg_convert_family_exaone[],
    gg_convert_family_nemotron[], gg_convert_family_plamo[],
    gg_convert_family_lfm[], gg_convert_family_gpt[], gg_convert_family_bert[],
    gg_convert_family_t5[], gg_convert_family_mamba[],
    gg_convert_family_rwkv[], gg_convert_family_expert[];

/* shared_names.c: lists of names that several families have: Llama's; experts
 * as Qwen, OLMoE, DeepSeek and GLM name them; Mixtral's experts; norms after
 * attention and feed-forward part; latent attention and its indexer; GPT
 * BigCode's; Mamba 2 beside attention. */
extern const struct gg_convert_name gg_convert_names_llama[],
    gg_convert_names_experts[], gg_convert_names_mixtral[],
    gg_convert_names_nextn[], gg_convert_names_after[],
    gg_convert_names_latent[], gg_convert_names_indexer[],
    gg_convert_names_starcoder[], gg_convert_names_hybrid[];

#define L "model.layers.%."
#define B "blk.%."

#define END_NAMES                                                             \
    {                                                                         \
        NULL, NULL, 0, NULL, NULL                                             \
    }
/* A name, of which nothing else is to be said; with what is done to its
 * numbers; with how they are put; with a factor; what is a number of a key;
 * what carries nothing. */
#define N(FROM, TO)                                                           \
    {                                                                         \
        FROM, TO, GG_HOW_AS_IS, NULL, NULL                                    \
    }
#define N_HOW(FROM, TO, HOW)                                                  \
    {                                                                         \
        FROM, TO, GG_HOW_##HOW, NULL, NULL                                    \
    }
#define N_AXES(FROM, TO, AXES)                                                \
    {                                                                         \
        FROM, TO, GG_HOW_AS_IS, AXES, NULL                                    \
    }
#define N_TIMES(FROM, TO, AXES, SCALE)                                        \
    {                                                                         \
        FROM, TO, GG_HOW_AS_IS, AXES, SCALE                                   \
    }
#define N_KEY(FROM, KEY)                                                      \
    {                                                                         \
        FROM, "=" KEY, GG_HOW_AS_IS, NULL, NULL                               \
    }
#define N_NOT(FROM)                                                           \
    {                                                                         \
        FROM, NULL, GG_HOW_AS_IS, NULL, NULL                                  \
    }

/* Experts one by one; all in one tensor, the gates before the others. FROM is
 * what stands before the names of the three matrices. */
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

#define NO_KEY                                                                \
    {                                                                         \
        NULL, NULL, 0, 0                                                      \
    }
#define ROWS(...)                                                             \
    (const struct gg_convert_key[])                                           \
    {                                                                         \
        __VA_ARGS__, NO_KEY                                                   \
    }
#define OR                       GG_CONVERT_KEY
#define U32(KEY, HF)             OR(KEY, HF, U32, 0)
#define F32(KEY, HF)             OR(KEY, HF, F32, 0)
#define BOOL(KEY, HF)            OR(KEY, HF, BOOL, 0)
#define TEXT(KEY, HF)            OR(KEY, HF, STR, 0)
#define ALWAYS(KEY, KIND, VALUE) OR(KEY, NULL, KIND, VALUE)
/* Computed: once (U32, F32, BOOL), for each layer. */
#define OF(KEY, KIND, EXPRESSION)   OR(KEY, EXPRESSION, KIND##_OF, 0)
#define EACH(KEY, KIND, EXPRESSION) OR(KEY, EXPRESSION, EACH_##KIND, 0)
/* BOS comes before a text, whatever the tokenizer's files say. */
#define BEGINS ROWS(ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 1))
/* GLM's tokens, as llama.cpp's converter has them: of 4 and before; with
 * experts. */
#define GLM_ROLES                                                             \
    "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|> bos=<|endoftext|>"
#define GLM_MOE_ROLES                                                         \
    "bos=[gMASK] eot=<|user|> unk=<|endoftext|> eom=<|observation|>"
/* A text that is always this one. */
#define WORD(KEY, TEXT_) OR(KEY, "=" TEXT_, STR, 0)

#define WINDOW U32("attention.sliding_window", "sliding_window")
#define PATTERN                                                               \
    EACH("attention.sliding_window_pattern", BOOL,                            \
         "layer_types:sliding_attention")
#define EXPERT_FF U32("expert_feed_forward_length", "moe_intermediate_size")
#define SHARED_FF                                                             \
    U32("expert_shared_feed_forward_length", "shared_expert_intermediate_size")
#define NO_SCALING WORD("rope.scaling.type", "none")
/* The base of positions, unless it is what readers take. */
#define THETA                                                                 \
    OF("rope.freq_base", F32,                                                 \
       "(rope_theta|rotary_emb_base|rope_parameters.rope_theta|10000=10000)=" \
       "0?rope_theta|rotary_emb_base|rope_parameters.rope_theta")
/* Elements of a head. */
#define HEAD  "(head_dim|(hidden_size//num_attention_heads))"
#define N_ROT U32("rope.dimension_count", "rotary_dim")
/* As many of them turn, or the part PART of them, in quotes. */
#define ALL_ROT OF("rope.dimension_count", U32, HEAD)
#define PART_ROT(PART)                                                        \
    OF("rope.dimension_count", U32,                                           \
       HEAD                                                                   \
       "*rope_parameters.partial_rotary_factor|partial_rotary_factor|" PART   \
       "//1")
#define VOCAB_SIZE    U32("vocab_size", "vocab_size")
#define LEAD          U32("leading_dense_block_count", "first_k_dense_replace")
#define WEIGHTS_NORM  BOOL("expert_weights_norm", "norm_topk_prob")
#define WEIGHTS_SCALE F32("expert_weights_scale", "routed_scaling_factor")
/* Layers that draft come after the others. */
#define LAYERS_NEXTN "num_hidden_layers+num_nextn_predict_layers|0"
#define BLOCKS_NEXTN OF("block_count", U32, LAYERS_NEXTN)
#define NEXTN        U32("nextn_predict_layers", "num_nextn_predict_layers")
/* Models of diffusion: all tokens see all, and a place has its own token. */
#define DIFFUSION                                                             \
    ALWAYS("attention.causal", BOOL, 0),                                      \
        ALWAYS("/diffusion.shift_logits", BOOL, 0)

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
/* Where these two stand, unless it is after all that configurations have. */
#define FILE_TYPE ALWAYS("/general.file_type", U32, 0)
#define FILE_VERSION                                                          \
    ALWAYS("/general.quantization_version", U32, GG_JOB_VERSION)
/* Rows of two tokens (reranker.c), and the prompt: model card of
 * Qwen3-Reranker-0.6B, section Transformers Usage. */
#define ANSWERS(FROM)                                                         \
    N_AXES(FROM, "cls.output", "[1@reranker_yes] x, * > x, *"),               \
        N_AXES(FROM, "cls.output", "[1@reranker_no] x, * > x, *")
#define RERANKER                                                              \
    ALWAYS("pooling_type", U32, 4),                                           \
        OR("classifier.output_labels", "reranker_answers", LABELS, 0),        \
        WORD("/tokenizer.chat_template.rerank",                               \
             "<|im_start|>system\nJudge whether the Document meets the "      \
             "requirements based on the Query and the Instruct provided. "    \
             "Note that the answer can only be \"yes\" or "                   \
             "\"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web "  \
             "search query, retrieve relevant passages that answer the "      \
             "query\n<Query>: {query}\n<Document>: "                          \
             "{document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n"       \
             "</think>\n\n"),                                                 \
        OR("/tokenizer.chat_templates", "reranker_templates", LABELS, 0)
/* Families by the sizes of their vocabularies: Code Llama, whose tokens of
 * filling in have no texts of their own in its files, and Granite's small ones
 * and SmolLM. */
#define IF_CODE(KEY, ID)                                                      \
    OF("/tokenizer.ggml." KEY "_token_id", U32, "vocab_size=32016?" #ID)
#define OF_SIZE                                                               \
    ROWS(IF_CODE("prefix", 32007), IF_CODE("suffix", 32008),                  \
         IF_CODE("middle", 32009),                                            \
         OF("/tokenizer.ggml.add_bos_token", BOOL, "vocab_size=49152?0")),    \
        .roles = "eot=\xe2\x96\x81<EOT>"
/* Keys and values from a narrow vector; the matrix for keys goes to the side
 * of the queries. */
#define NOPE "qk_nope_head_dim"
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
/* Norms multiply by 1 + weight. */
#define NORMS_PLUS_1                                                          \
    N_HOW("model.norm", "output_norm", PLUS_1),                               \
        N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),                    \
        N_HOW(L "post_attention_layernorm", B "ffn_norm", PLUS_1),            \
        N_HOW(L "self_attn.q_norm", B "attn_q_norm", PLUS_1),                 \
        N_HOW(L "self_attn.k_norm", B "attn_k_norm", PLUS_1)
#define LEAD_TYPES(ELSE)                                                      \
    OF("leading_dense_block_count", U32,                                      \
       "first(mlp_layer_types:dense=0)|" ELSE)
#define BACKBONE_MIXER "backbone.layers.%.mixer."
/* One number a head; norms by group. */
#define MAMBA2(P)                                                             \
    N_HOW(P "conv1d", B "ssm_conv1d", SQUEEZE),                               \
        N(P "dt_bias", B "ssm_dt.bias"),                                      \
        { P "A_log", B "ssm_a", GG_HOW_NEG_EXP, "x > x, 1", NULL },           \
        N_AXES(P "D", B "ssm_d", "x > x, 1"),                                 \
        N_AXES(P "norm", B "ssm_norm",                                        \
               "x=(n_groups|mamba_n_groups|n_group|1) y > x, y")
#define LAYERS_MAMBA L "mamba."
#define MAMBA_EPS                                                             \
    OF("attention.layer_norm_rms_epsilon", F32,                               \
       "layer_norm_epsilon|rms_norm_eps|1e-5")
/* What those have whose queries and keys are permuted. */
#define TURNED .turned = true, .rope_count = true, .vocab_size = true

#endif
