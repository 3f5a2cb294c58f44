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

/* Lists of rows; each ends with one without a class. */
extern const struct gg_convert_arch gg_convert_class_dense[],
    gg_convert_class_early[], gg_convert_class_kin[],
    gg_convert_class_experts[], gg_convert_class_latent[],
    gg_convert_class_routed[], gg_convert_class_gemma[],
    gg_convert_class_recurrent[], gg_convert_class_delta[],
    gg_convert_class_encoder[], gg_convert_class_vision[],
    gg_convert_class_plamo[];

/* Lists of names that several have: what nearly all have that came after
 * Llama; experts as Qwen, OLMoE, DeepSeek, GLM and others name them; Mixtral's;
 * layers that draft; norms after the branches; Granite's experts; a state space
 * in each layer. */
extern const struct gg_convert_name gg_convert_names_llama[],
    gg_convert_names_experts[], gg_convert_names_mixtral[],
    gg_convert_names_nextn[], gg_convert_names_after[],
    gg_convert_names_granitemoe[];

/* Rows of the output matrix, or of the embedding, for a reranker's answers. */
extern const struct gg_convert_name gg_convert_names_answers[],
    gg_convert_names_tied_answers[];

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
/* What those have whose queries and keys are permuted. */
#define TURNED .turned = true, .rope_count = true, .vocab_size = true

#endif
