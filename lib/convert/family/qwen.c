/* SPDX-License-Identifier: MIT */
/* qwen.c - classes of Qwen and models built like it */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"
#include "convert/vocab/vocab_folder.h"
#include "data/projected.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* softmax(x, 0) is the sigmoid of x. */
static enum gguf_status pair_row(struct gg_convert_view *v,
                                 struct gguf_error *err)
{
    if (v->n_dims != 2)
        return gg_convert_refuse_view(v, "is no matrix", err);
    if (v->ne[1] == 1) {
        v->n_zeros = (uint64_t)v->ne[0];
        v->ne[1] = 2;
    }
    return GGUF_OK;
}

static const struct gg_convert_transform paired = {
    .text = "a row of zeros after a single one", .view = pair_row
};

/* Rows of two tokens (reranker.c), and the prompt: model card of
 * Qwen3-Reranker-0.6B, section Transformers Usage. */
#define ANSWERS(FROM)                                                         \
    N_AXES(FROM, "cls.output", "[1@yes] x, * > x, *"),                        \
        N_AXES(FROM, "cls.output", "[1@no] x, * > x, *")
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
    N_HOW("score", "cls.output", paired), END_NAMES
};

/* w2 is the gate of w1. */
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

/* The token that ends a turn in ChatML also begins and ends texts. */
#define IM_END    "bos=<|im_end|> eos=<|im_end|>"
#define DEEPSTACK OF("n_deepstack_layers", U32, deepstack_layers, IN_BACK)

/* ---- rerankers (reranker.c) ---- */

static bool answers_tied(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "reranker_tied"));
}

static bool answers_words(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "reranker"));
}

static bool answers_score(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "reranker_score"));
}

static const struct gg_convert_size answer_sizes[] = {
    { .name = "yes", .hf = "reranker_yes" },
    { .name = "no", .hf = "reranker_no" },
    { .name = NULL }
};

/* ---- SmallThinker ---- */

static double smallthinker_gating(const struct gg_hf_config *cfg)
{
    return is_true(num_or(cfg, "moe_primary_router_apply_softmax", 0)) ? 1 : 2;
}

static double is_full_layer(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(num_at(cfg, "sliding_window_layout", layer), 0);
}

static double smallthinker_window(const struct gg_hf_config *cfg)
{
    const double window = num_of(cfg, "sliding_window_size");
    return gg_hf_config_all_layers(cfg, is_full_layer) == 0 && window > 0
               ? window
               : NAN;
}

/* All layers except every fourth have windows. */
static double has_window(const struct gg_hf_config *keys, int64_t layer)
{
    return num_of(keys, "attention.sliding_window") > 0 ? layer % 4 > 0 : NAN;
}

static void put_smallthinker(struct gg_back_maker *m)
{
    gg_back_put_num(m, "sliding_window_size",
                    num_of(&m->keys, "attention.sliding_window"));
    gg_back_put_layers(m, "sliding_window_layout", has_window);
    gg_back_put_flag(m, "moe_primary_router_apply_softmax",
                     is_equal(num_of(&m->keys, "expert_gating_func"), 1));
}

/* ---- multimodal models ---- */

static double deepstack_layers(const struct gg_hf_config *cfg)
{
    return (double)gg_hf_config_list_len(
        cfg, "vision_config.deepstack_visual_indexes");
}

static void put_deepstack(struct gg_back_maker *m)
{
    const double n = num_of(&m->keys, "n_deepstack_layers");
    json_t *list = isnan(n) ? NULL : json_array();
    for (int i = 0; i < n && i < 1000; i++)
        json_array_append_new(list, json_integer(i));
    if (list)
        gg_back_put(m->root, "vision_config.deepstack_visual_indexes", list);
}

/* ---- the talker of Qwen3-TTS ----
 *
 * llama.cpp's converter (conversion/qwen3tts.py, September 2026) computes the
 * two layers between texts and the talker for each token of the tokenizer, and
 * appends the embedding of the codes, which become tokens. */

#define TALKER    "talker."
#define TEXTS     TALKER "model.text_embedding.weight"
#define PROJECTED TALKER "projected_texts" /* a name of this converter */
#define LAYER     TALKER "text_projection.linear_fc"

static enum gguf_status count_tokens(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    int64_t n_texts, n_codes;
    if (!gg_convert_get_count(c, "text_vocab_size", &n_texts) ||
        !gg_convert_get_count(c, "vocab_size", &n_codes) ||
        n_texts > GG_CONVERT_MOST_TOKENS || n_codes > GG_CONVERT_MOST_TOKENS)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: talker_config has no numbers of "
                            "tokens, text_vocab_size and vocab_size");
    GG_TRY(gg_convert_set_config(c, "vocab_size",
                                 json_integer(n_texts + n_codes), err));
    return gg_convert_set_config(c, "n_codes", json_integer(n_codes), err);
}

/* Name of a code's token; out of range: an error. */
static enum gguf_status name_code(struct gg_convert_vocab *v, int64_t n_codes,
                                  int64_t code, const char *name,
                                  struct gguf_error *err)
{
    if (code < 0 || code >= n_codes || n_codes > (int64_t)v->n)
        return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                            "config.json: code %" PRId64
                            " of token '%.80s', the embedding has %" PRId64,
                            code, name, n_codes);
    const size_t id = v->n - (size_t)n_codes + (size_t)code;
    char *text = gg_mem_arena_strndup(v->folder->arena, name, strlen(name));
    if (!text)
        return gg_error_set_nomem(err, strlen(name));
    v->token[id] = gg_str_z(text);
    v->type[id] = GG_CONVERT_CONTROL;
    v->score[id] = 0;
    return GGUF_OK;
}

/* The member NAME_id is the code of <|NAME|>, its member WORD that of
 * <|NAME_WORD|>. */
static enum gguf_status name_member(struct gg_convert_vocab *v, int64_t n,
                                    const char *member, json_t *value,
                                    struct gguf_error *err)
{
    char name[200];
    const char *word;
    const int len = (int)GG_MIN(strlen(member) - 3, (size_t)80);
    json_t *code;
    snprintf(name, sizeof name, "<|%.*s|>", len, member);
    if (json_is_integer(value))
        return name_code(v, n, json_integer_value(value), name, err);
    json_object_foreach(value, word, code)
    {
        snprintf(name, sizeof name, "<|%.*s_%.80s|>", len, member, word);
        if (json_is_integer(code))
            GG_TRY(name_code(v, n, json_integer_value(code), name, err));
    }
    return GGUF_OK;
}

/* The talker never speaks one of the last 1024 tokens but the end of codes. */
static enum gguf_status suppress_codes(struct gg_convert_vocab *v, int64_t n,
                                       struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_folder_config(v->folder);
    const double end =
        (double)v->n - (double)n + num_of(&cfg, "codec_eos_token_id");
    int32_t id[1024];
    size_t n_ids = 0;
    for (size_t i = v->n > GG_LEN(id) ? v->n - GG_LEN(id) : 0; i < v->n; i++)
        if ((double)i != end)
            id[n_ids++] = (int32_t)i;
    return gguf_meta_set_array(v->meta, "tokenizer.ggml.suppress_tokens",
                               GGUF_VAL_I32, id, n_ids, err);
}

static enum gguf_status name_codes(struct gg_convert_vocab *v,
                                   struct gguf_error *err)
{
    char name[40];
    const char *member;
    json_t *value;
    int64_t n;
    if (!gg_folder_get_count(v->folder, "n_codes", &n))
        return GGUF_OK;
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "<|codec_%" PRId64 "|>", i);
        GG_TRY(name_code(v, n, i, name, err));
    }
    json_object_foreach(v->folder->config, member, value)
    {
        if (gg_str_ends(gg_str_z(member), "_id"))
            GG_TRY(name_member(v, n, member, value, err));
    }
    return suppress_codes(v, n, err);
}

static double end_of_codes(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "vocab_size") - num_of(cfg, "n_codes") +
           num_of(cfg, "codec_eos_token_id");
}

static enum gguf_status project_texts(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    static const char *const names[] = { TEXTS, LAYER "1.weight",
                                         LAYER "1.bias", LAYER "2.weight",
                                         LAYER "2.bias" };
    struct gg_safetensors *s = c->folder.weights;
    const struct gg_hf_config cfg = gg_convert_config(c);
    uint32_t at[GG_LEN(names)];
    if (gg_safetensors_find(s, gg_str_z(TALKER "model.codec_embedding."
                                               "weight")) == GG_INDEX_NONE ||
        !gg_hf_config_get(&cfg, "n_codes"))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "a file of qwen3tts has the results of two layers "
                            "in place of its embedding of texts: the folder "
                            "cannot be computed from it");
    for (size_t i = 0; i < GG_LEN(names); i++) {
        at[i] = gg_safetensors_find(s, gg_str_z(names[i]));
        if (at[i] == GG_INDEX_NONE)
            return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "tensor '%s' is missing", names[i]);
    }
    if (gg_hf_config_is_word(&cfg, "hidden_act", -1, "silu") == 0)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "config.json: the projection of texts has another "
                            "hidden_act than silu");
    c->out.summary.kind = "text part of a speech model";
    c->out.summary.reason = "its class";
    return gg_projected_add(
        s, gg_str_z(PROJECTED),
        &(struct gg_projected_from){ at[0], at[1], at[2], at[3], at[4] }, err);
}

static const struct gg_convert_name talker_names[] = {
    N("projected_texts", "token_embd.weight"),
    N("model.codec_embedding.weight", "token_embd.weight"),
    N("codec_head", "output"),
    N_NOT("model.text_embedding"),
    N_NOT("text_projection.linear_fc1"),
    N_NOT("text_projection.linear_fc2"),
    END_NAMES
};

/* ---- rows ---- */

const struct gg_convert_defaults gg_convert_defaults_qwen2 = {
    "qwen2",
    { { "num_attention_heads", 32 },
      { "num_hidden_layers", 32 },
      { "num_key_value_heads", 32 },
      { "hidden_size", 4096 },
      { "intermediate_size", 22016 },
      { "max_position_embeddings", 32768 },
      { "vocab_size", 151936 },
      { "rms_norm_eps", 1e-6 },
      { "rope_theta", 10000 } }
};

/* Is the language model of LLaVA, whose class text_config does not name,
 * Qwen 2's? */
static bool is_inner_qwen2(const struct gg_hf_config *cfg)
{
    return !gg_hf_config_get(cfg, "text_config.architectures") &&
           gg_hf_config_is_word(cfg, "text_config.model_type", -1, "qwen2") ==
               1;
}

const struct gg_convert_arch gg_convert_family_qwen[] = {
    /* alone, and of vision or audio models */
    { .classes = "Qwen2ForCausalLM Qwen2AudioForConditionalGeneration "
                 "AudioFlamingo3ForConditionalGeneration DotsOCRForCausalLM",
      .arch = "qwen2",
      .names = LLAMA },
    { .classes =
          "LlavaForConditionalGeneration LlavaNextForConditionalGeneration",
      .arch = "qwen2",
      .when = is_inner_qwen2,
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
      .when = answers_tied,
      .reranker = true,
      .sizes = answer_sizes,
      .names = OVER(tied_answers_names),
      .keys = ROWS(RERANKER) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = answers_words,
      .reranker = true,
      .sizes = answer_sizes,
      .names = OVER(answers_names),
      .keys = ROWS(RERANKER) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = answers_score,
      .reranker = true,
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
               ELSE_OF("rope.dimension_count", U32, "kv_channels",
                       gg_convert_head_width)) },
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
      .back = put_deepstack,
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF, DEEPSTACK) },
    { .classes = "Qwen3OmniMoeForConditionalGeneration",
      .arch = "qwen3vlmoe",
      .back = put_deepstack,
      .roles = "bos=<|im_end|> eos=<|im_end|>",
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys =
          ROWS(EXPERT_FF, SHARED_FF, ALWAYS("n_deepstack_layers", U32, 0)) },
    { .classes = "SmallThinkerForCausalLM",
      .arch = "smallthinker",
      .back = put_smallthinker,
      .names = OVER(smallthinker_names),
      .keys = ROWS(
          U32("expert_count", "moe_num_primary_experts"),
          U32("expert_used_count", "moe_num_active_primary_experts"),
          U32("expert_feed_forward_length", "moe_ffn_hidden_size"),
          U32("feed_forward_length", "moe_ffn_hidden_size"),
          OF("expert_gating_func", U32, smallthinker_gating, IN_BACK),
          OF("attention.sliding_window", U32, smallthinker_window, IN_BACK)) },
    { .classes = "GroveMoeForCausalLM modeling_grove_moe.GroveMoeForCausalLM",
      .arch = "grovemoe",
      .names = OVER_2(grove_names, gg_convert_names_experts),
      /* numbers that are in the model's code only */
      .keys =
          ROWS(EXPERT_FF,
               ELSE("expert_chunk_feed_forward_length", U32, "head_dim", 128),
               ALWAYS("experts_per_group", U32, 2),
               ALWAYS("expert_group_scale", F32, 0.05)) },
    { .classes = "Qwen2VLForConditionalGeneration "
                 "Qwen2_5_VLForConditionalGeneration Qwen2_5OmniModel "
                 "Qwen2VLModel",
      .arch = "qwen2vl",
      .names = LLAMA },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .back = put_deepstack,
      .when = answers_tied,
      .reranker = true,
      .sizes = answer_sizes,
      .names = OVER(tied_answers_names),
      .keys = ROWS(DEEPSTACK, RERANKER) },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .back = put_deepstack,
      .when = answers_words,
      .reranker = true,
      .sizes = answer_sizes,
      .names = OVER(answers_names),
      .keys = ROWS(DEEPSTACK, RERANKER) },
    { .classes = "Qwen3VLForConditionalGeneration",
      .arch = "qwen3vl",
      .back = put_deepstack,
      .names = LLAMA,
      .keys = ROWS(DEEPSTACK) },
    /* it hears; whatever template its tokenizer has */
    { .classes = "Qwen3ASRForConditionalGeneration",
      .arch = "qwen3vl",
      .back = put_deepstack,
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
    { .classes = "Qwen3TTSForConditionalGeneration",
      .arch = "qwen3tts",
      .fix_config = count_tokens,
      .add_tensors = project_texts,
      .fix_vocab = name_codes,
      .strip = TALKER,
      .skip = TALKER "code_predictor. speaker_encoder. decoder. encoder.",
      .names = OVER(talker_names),
      .last =
          ROWS(OF("/tokenizer.ggml.eos_token_id", U32, end_of_codes, NO_BACK),
               ALWAYS("/tokenizer.ggml.add_eos_token", BOOL, 0)) },
    { .classes = NULL }
};
