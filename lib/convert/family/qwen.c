/* SPDX-License-Identifier: MIT */
/* qwen.c - classes of Qwen and models built like it */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name kormo_names[] = {
    N(L "pre_attention_layernorm", B "attn_norm"),
    N(L "pre_mlp_layernorm", B "ffn_norm"), END_NAMES
};

static const struct gg_convert_name answers_names[] = { ANSWERS("lm_head"),
                                                        END_NAMES };

static const struct gg_convert_name tied_answers_names[] = {
    N("model.embed_tokens", "token_embd"), ANSWERS("model.embed_tokens"),
    END_NAMES
};

static const struct gg_convert_name score_names[] = {
    N_HOW("score", "cls.output", PAIR), END_NAMES
};

/* w1 carries what the activated w2 multiplies. */
static const struct gg_convert_name qwen_names[] = {
    N("h.%.mlp.w1", B "ffn_up"), N("h.%.mlp.w2", B "ffn_gate"),
    N_NOT("rotary_emb.inv_freq"), END_NAMES
};

/* Rows of experts are columns. */
static const struct gg_convert_name qwen3vl_names[] = {
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, 2[1@0] f > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, 2[1@1] f > x, f, c"),
    N_AXES(L "mlp.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    END_NAMES
};

static const struct gg_convert_name smallthinker_names[] = {
    N(L "block_sparse_moe.primary_router", B "ffn_gate_inp"),
    N(L "block_sparse_moe.experts.@.gate", B "ffn_gate_exps"),
    N(L "block_sparse_moe.experts.@.up", B "ffn_up_exps"),
    N(L "block_sparse_moe.experts.@.down", B "ffn_down_exps"), END_NAMES
};

static const struct gg_convert_name grove_names[] = {
    N(L "mlp.chunk_experts.@.gate_proj", B "ffn_gate_chexps"),
    N(L "mlp.chunk_experts.@.up_proj", B "ffn_up_chexps"),
    N(L "mlp.chunk_experts.@.down_proj", B "ffn_down_chexps"),
    N_NOT(L "mlp.expert_bias"), /* the model's code does not use it */
    N_NOT(L "mlp.gate.expert_bias"),
    END_NAMES
};

#define A  L "linear_attn."
#define KH "linear_num_key_heads"
#define VH "linear_num_value_heads"
#define DK "linear_key_head_dim"
#define DV "linear_value_head_dim"

/* Norms, but that in the delta rule, multiply by 1 + weight; queries come with
 * their gates. Layers that draft come after the others. */
static const struct gg_convert_name norm_names[] = {
    N_HOW("model.norm", "output_norm", PLUS_1),
    N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),
    N_HOW(L "post_attention_layernorm", B "post_attention_norm", PLUS_1),
    N_HOW(L "self_attn.q_norm", B "attn_q_norm", PLUS_1),
    N_HOW(L "self_attn.k_norm", B "attn_k_norm", PLUS_1),
    { A "A_log", B "ssm_a", GG_HOW_NEG_EXP, "k=" KH " r > r k", NULL },
    N_AXES(A "dt_bias", B "ssm_dt.bias", "k=" KH " r > r k"),
    N(A "norm", B "ssm_norm"),
    N_HOW("mtp.norm", "blk.+.nextn.shared_head_norm", PLUS_1),
    N_HOW("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm", PLUS_1),
    N_HOW("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm", PLUS_1),
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    END_NAMES
};

/* Heads of keys, each with its queries, its values and gates. */
#define QKVZ(AXES) "k=" KH " n=(2*" DK "+2*" DV "*" VH "/" KH ")" AXES

static const struct gg_convert_name next_names[] = {
    N_AXES(A "in_proj_qkvz", B "attn_qkv", QKVZ("[" DK "@0]") ", * > k n, *"),
    N_AXES(A "in_proj_qkvz", B "attn_qkv",
           QKVZ("[" DK "@" DK "]") ", * > k n, *"),
    N_AXES(A "in_proj_qkvz", B "attn_qkv",
           QKVZ("[" DV "*" VH "/" KH "@2*" DK "]") ", * > k n, *"),
    N_AXES(A "in_proj_qkvz", B "attn_gate",
           QKVZ("[" DV "*" VH "/" KH "@2*" DK "+" DV "*" VH "/" KH
                "]") ", * > k n, *"),
    N(A "in_proj_ba", B "ssm_ba"),
    { A "A_log", B "ssm_a", GG_HOW_NEG_EXP, NULL, NULL },
    N(A "dt_bias", B "ssm_dt.bias"),
    N_HOW(A "conv1d", B "ssm_conv1d", SQUEEZE),
    N(A "out_proj", B "ssm_out"),
    END_NAMES
};

/* Value heads by their key's head become key heads by number: r for each of k
 * are k for each of r. */
static const struct gg_convert_name tiled_names[] = {
    N_AXES(A "in_proj_qkv", B "attn_qkv", "[2*" KH "*" DK "@0] x, * > x, *"),
    N_AXES(A "in_proj_qkv", B "attn_qkv",
           "[@2*" KH "*" DK "] k=" KH " r d=" DV ", * > r k d, *"),
    N_AXES(A "in_proj_z", B "attn_gate", "k=" KH " r d=" DV ", * > r k d, *"),
    N_AXES(A "in_proj_b", B "ssm_beta", "k=" KH " r, * > r k, *"),
    N_AXES(A "in_proj_a", B "ssm_alpha", "k=" KH " r, * > r k, *"),
    N_AXES(A "conv1d", B "ssm_conv1d", "[2*" KH "*" DK "@0] x, 1, c > x, c"),
    N_AXES(A "conv1d", B "ssm_conv1d",
           "[@2*" KH "*" DK "] k=" KH " r d=" DV ", 1, c > r k d, c"),
    N_AXES(A "out_proj", B "ssm_out", "x, k=" KH " r d=" DV " > x, r k d"),
    END_NAMES
};

#define LAYERS_MTP "num_hidden_layers+mtp_num_hidden_layers|0"
#define DELTA_SIZES                                                           \
    U32("ssm.conv_kernel", "linear_conv_kernel_dim"),                         \
        U32("ssm.state_size", DK), U32("ssm.group_count", KH),                \
        U32("ssm.time_step_rank", VH), OF("ssm.inner_size", U32, DV "*" VH),  \
        OF("full_attention_interval", U32, "full_attention_interval|4"),      \
        OF("rope.dimension_count", U32,                                       \
           HEAD "*rope_parameters.partial_rotary_factor|partial_rotary_"      \
                "factor|0.25//1")
#define DELTA_KEYS                                                            \
    OF("block_count", U32, LAYERS_MTP), EXPERT_FF, SHARED_FF,                 \
        OF("nextn_predict_layers", U32,                                       \
           "mtp_num_hidden_layers>0?mtp_num_hidden_layers"),                  \
        DELTA_SIZES
#define SECTIONS                                                              \
    {                                                                         \
        "rope.dimension_sections", "=11,11,10,0", GG_KIND_U32, 0              \
    }

/* What ends a turn of ChatML begins and ends texts. */
#define IM_END "bos=<|im_end|> eos=<|im_end|>"
#define DEEPSTACK                                                             \
    OF("n_deepstack_layers", U32,                                             \
       "len(vision_config.deepstack_visual_indexes)")

const struct gg_convert_arch gg_convert_family_qwen[] = {
    /* alone, and of models that hear or see */
    { .classes = "Qwen2ForCausalLM Qwen2AudioForConditionalGeneration "
                 "AudioFlamingo3ForConditionalGeneration DotsOCRForCausalLM",
      .arch = "qwen2",
      .names = LLAMA },
    { .classes = "KORMoForCausalLM",
      .arch = "qwen2",
      .names = OVER(kormo_names) },
    { .classes = "Qwen2Model",
      .arch = "qwen2",
      .before = "model.",
      .names = LLAMA },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = "reranker_tied",
      .names = OVER(tied_answers_names),
      .keys = ROWS(RERANKER) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = "reranker",
      .names = OVER(answers_names),
      .keys = ROWS(RERANKER) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = "reranker_score",
      .names = OVER(score_names),
      .keys = ROWS(
          ALWAYS("pooling_type", U32, 4),
          OR("classifier.output_labels", "reranker_answers", LABELS, 0)) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification "
                 "StepVLForConditionalGeneration",
      .arch = "qwen3",
      .names = LLAMA },
    { .classes = "Qwen3Model",
      .arch = "qwen3",
      .before = "model.",
      .names = LLAMA },
    { .classes = "QWenLMHeadModel",
      .arch = "qwen",
      .strip = "transformer.",
      .names = { qwen_names, gg_convert_names_starcoder },
      .keys =
          ROWS(F32("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
               OF("rope.dimension_count", U32,
                  "kv_channels|(hidden_size//num_attention_heads)")) },
    { .classes = "Qwen2MoeForCausalLM",
      .arch = "qwen2moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF) },
    { .classes = "Qwen3MoeForCausalLM",
      .arch = "qwen3moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF) },
    { .classes = "Qwen3VLMoeForConditionalGeneration",
      .arch = "qwen3vlmoe",
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF,
                   OF("n_deepstack_layers", U32,
                      "len(vision_config.deepstack_visual_indexes)")) },
    { .classes = "Qwen3OmniMoeForConditionalGeneration",
      .arch = "qwen3vlmoe",
      .roles = "bos=<|im_end|> eos=<|im_end|>",
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys =
          ROWS(EXPERT_FF, SHARED_FF, ALWAYS("n_deepstack_layers", U32, 0)) },
    { .classes = "SmallThinkerForCausalLM",
      .arch = "smallthinker",
      .names = OVER(smallthinker_names),
      .keys = ROWS(U32("expert_count", "moe_num_primary_experts"),
                   U32("expert_used_count", "moe_num_active_primary_experts"),
                   U32("expert_feed_forward_length", "moe_ffn_hidden_size"),
                   U32("feed_forward_length", "moe_ffn_hidden_size"),
                   OF("expert_gating_func", U32,
                      "moe_primary_router_apply_softmax|0?1:2"),
                   OF("attention.sliding_window", U32,
                      "all(sliding_window_layout=0)=0?sliding_window_size>0?"
                      "sliding_window_size")) },
    { .classes = "GroveMoeForCausalLM modeling_grove_moe.GroveMoeForCausalLM",
      .arch = "grovemoe",
      .names = OVER_2(grove_names, gg_convert_names_experts),
      /* numbers that are in the model's code only */
      .keys = ROWS(EXPERT_FF,
                   OF("expert_chunk_feed_forward_length", U32, "head_dim|128"),
                   ALWAYS("experts_per_group", U32, 2),
                   ALWAYS("expert_group_scale", F32, 0.05)) },
    { .classes = "Qwen3NextForCausalLM",
      .arch = "qwen3next",
      .layers = LAYERS_MTP,
      .drafts = "mtp.layers.",
      .names = { next_names, norm_names, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(DELTA_KEYS) },
    { .classes = "Qwen3_5ForConditionalGeneration Qwen3_5ForCausalLM",
      .arch = "qwen35",
      .layers = LAYERS_MTP,
      .drafts = "mtp.layers.",
      .names = { tiled_names, norm_names, gg_convert_names_llama },
      .keys = ROWS(DELTA_KEYS, SECTIONS) },
    /* without the layers that draft */
    { .classes = "MiniCPMV4_6ForConditionalGeneration",
      .arch = "qwen35",
      .skip = "mtp. model.mtp.",
      .names = { tiled_names, norm_names, gg_convert_names_llama },
      .keys = ROWS(DELTA_SIZES, SECTIONS) },
    { .classes = "Qwen3_5MoeForConditionalGeneration Qwen3_5MoeForCausalLM",
      .arch = "qwen35moe",
      .layers = LAYERS_MTP,
      .drafts = "mtp.layers.",
      .names = { tiled_names, norm_names, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(DELTA_KEYS, SECTIONS) },
    { .classes = "Qwen2VLForConditionalGeneration "
                 "Qwen2_5_VLForConditionalGeneration Qwen2_5OmniModel "
                 "Qwen2VLModel",
      .arch = "qwen2vl",
      .names = LLAMA },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .when = "reranker_tied",
      .names = OVER(tied_answers_names),
      .keys = ROWS(DEEPSTACK, RERANKER) },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .when = "reranker",
      .names = OVER(answers_names),
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
    { .classes = NULL }
};
