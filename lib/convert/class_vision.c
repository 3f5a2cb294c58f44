/* SPDX-License-Identifier: MIT */
/* class_vision.c - rows of models of language that are parts of such that see
 */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name hunyuan_vl_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"), END_NAMES
};

/* Matrices for words, and others for what is seen. */
static const struct gg_convert_name cogvlm_names[] = {
    N(L "self_attn.language_expert_query_key_value", B "attn_qkv"),
    N(L "self_attn.language_expert_dense", B "attn_output"),
    N(L "self_attn.vision_expert_query_key_value", B "vis_attn_qkv"),
    N(L "self_attn.vision_expert_dense", B "vis_attn_output"),
    N(L "mlp.language_mlp.gate_proj", B "ffn_gate"),
    N(L "mlp.language_mlp.up_proj", B "ffn_up"),
    N(L "mlp.language_mlp.down_proj", B "ffn_down"),
    N(L "mlp.vision_mlp.gate_proj", B "vis_gate"),
    N(L "mlp.vision_mlp.up_proj", B "vis_up"),
    N(L "mlp.vision_mlp.down_proj", B "vis_down"),
    END_NAMES
};

/* Each head has its norm, put as the rows of queries and keys are. (llama.cpp's
 * converter takes that of the first head for all, which it is where the model
 * was trained in one piece.) */
static const struct gg_convert_name chameleon_names[] = {
    N_AXES(L "self_attn.q_norm", B "attn_q_norm", "h, 2 d > h, d 2"),
    N_AXES(L "self_attn.k_norm", B "attn_k_norm", "k, 2 d > k, d 2"), END_NAMES
};

/* ---- rows ---- */

/* What ends a turn of ChatML begins and ends texts. */
#define IM_END "bos=<|im_end|> eos=<|im_end|>"

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

#define DEEPSTACK                                                             \
    OF("n_deepstack_layers", U32,                                             \
       "len(vision_config.deepstack_visual_indexes)")

const struct gg_convert_arch gg_convert_class_vision[] = {
    { .classes = "Qwen2VLForConditionalGeneration "
                 "Qwen2_5_VLForConditionalGeneration Qwen2_5OmniModel "
                 "Qwen2VLModel",
      .arch = "qwen2vl",
      .names = LLAMA },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .when = "reranker_tied",
      .names = OVER(gg_convert_names_tied_answers),
      .keys = ROWS(DEEPSTACK, RERANKER) },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .when = "reranker",
      .names = OVER(gg_convert_names_answers),
      .keys = ROWS(DEEPSTACK, RERANKER) },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .names = LLAMA,
      .keys = ROWS(DEEPSTACK) },
    /* it hears; whatever template its tokenizer has */
    { .classes = "Qwen3ASRForConditionalGeneration",
      .arch = "qwen3vl",
      .roles = IM_END,
      .names = LLAMA,
      .keys = ROWS(ALWAYS("n_deepstack_layers", U32, 0)),
      .last =
          ROWS(WORD("/tokenizer.chat_template",
                    "{% for message in messages %}{{'<|im_start|>' + "
                    "message['role'] + '\\n' + message['content'] + "
                    "'<|im_end|>' + '\\n'}}{% endfor %}{% if "
                    "add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
                    "}}{% endif %}")) },
    { .classes = "PaddleOCRVLForConditionalGeneration",
      .arch = "paddleocr",
      .names = LLAMA },
    { .classes = "HunYuanVLForConditionalGeneration",
      .arch = "hunyuan_vl",
      .drops_copy = true,
      .names = OVER(hunyuan_vl_names),
      .keys = HUNYUAN_VL },
    { .classes = "CogVLMForCausalLM",
      .arch = "cogvlm",
      .names = OVER(cogvlm_names),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "ChameleonForConditionalGeneration ChameleonForCausalLM",
      .arch = "chameleon",
      .names = OVER(chameleon_names),
      .keys = ROWS(OF("swin_norm", BOOL, "swin_norm|0")),
      .turned = true },
    { .classes = NULL }
};
