/* SPDX-License-Identifier: MIT */
/* pixtral.c - projectors with Pixtral's tower: Pixtral, Mistral Small, LightOn
 * OCR; in the form of transformers and in Mistral's own */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define LAYER "transformer.layers.%."
/* Rows of heads: the file has pairs of neighbours for rotation. */
#define PAIRS "heads 2 d, * > heads d 2, *"

static const struct gg_convert_name tower[] = {
    N("patch_conv", "v.patch_embd"),
    N("ln_pre", "v.pre_ln"),
    N(LAYER "attention_norm", V "ln1"),
    N(LAYER "ffn_norm", V "ln2"),
    N_AXES(LAYER "attention.q_proj", V "attn_q", PAIRS),
    N_AXES(LAYER "attention.k_proj", V "attn_k", PAIRS),
    N(LAYER "attention.v_proj", V "attn_v"),
    N(LAYER "attention.o_proj", V "attn_out"),
    N(LAYER "attention.wq", V "attn_q"),
    N(LAYER "attention.wk", V "attn_k"),
    N(LAYER "attention.wv", V "attn_v"),
    N(LAYER "attention.wo", V "attn_out"),
    N(LAYER "feed_forward.gate_proj", V "ffn_gate"),
    N(LAYER "feed_forward.up_proj", V "ffn_up"),
    N(LAYER "feed_forward.down_proj", V "ffn_down"),
    N(LAYER "feed_forward.w1", V "ffn_gate"),
    N(LAYER "feed_forward.w2", V "ffn_down"),
    N(LAYER "feed_forward.w3", V "ffn_up"),
    END_NAMES,
};

/* Names of LightOnOCR's projector, which its way back takes. */
static const struct gg_convert_name lighton[] = {
    N("vision_projection.linear_1", "mm.1"),
    N("vision_projection.linear_2", "mm.2"),
    N("vision_projection.norm", "mm.input_norm"),
    N("vision_projection.patch_merger.merging_layer", "mm.patch_merger"),
    END_NAMES,
};
#define PROJECTOR "multi_modal_projector."
static const struct gg_convert_name projector[] = {
    N(PROJECTOR "linear_1", "mm.1"),
    N(PROJECTOR "linear_2", "mm.2"),
    N(PROJECTOR "norm", "mm.input_norm"),
    N(PROJECTOR "patch_merger.merging_layer", "mm.patch_merger"),
    N("vision_language_adapter.w_in", "mm.1"),
    N("vision_language_adapter.w_out", "mm.2"),
    N("pre_mm_projector_norm", "mm.input_norm"),
    N("patch_merger.merging_layer", "mm.patch_merger"),
    END_NAMES,
};
#undef PROJECTOR

/* The row of [IMG_BREAK], the token after each row of patches. */
#define BREAK_ROW "[1@break] t, c > c"
static const struct gg_convert_name image_break[] = {
    N_AXES("embed_tokens.weight", "v.token_embd.img_break", BREAK_ROW),
    N_AXES("tok_embeddings.weight", "v.token_embd.img_break", BREAK_ROW),
    END_NAMES,
};
static const struct gg_convert_size sizes[] = {
    { .name = "heads", .hf = "vision.num_attention_heads" },
    { .name = "break", .hf = "vision.image_break_token_id" },
    { .name = NULL }
};

static bool is_text(const json_t *v, const char *text)
{
    struct gguf_str s;
    return gg_json_str(v, &s) && gg_str_eqz(s, text);
}

/* Find a token by its text, in tokenizer_config.json or tokenizer.json; -1:
 * not found. */
static int64_t find_token(const struct gguf_convert *c, const char *text)
{
    const struct gg_convert_text *t = c->folder.text;
    const char *id;
    json_t *v;
    int64_t n;
    json_object_foreach(
        json_object_get(t[GG_CONVERT_TOKENIZER_CONFIG].json.root,
                        "added_tokens_decoder"),
        id, v)
    {
        struct gguf_str digits = gg_str_z(id);
        uint64_t x;
        if (is_text(json_object_get(v, "content"), text) &&
            gg_str_uint(&digits, INT32_MAX, &x) && !digits.size)
            return (int64_t)x;
    }
    const json_t *added =
        json_object_get(t[GG_CONVERT_TOKENIZER].json.root, "added_tokens");
    for (size_t i = 0; i < json_array_size(added); i++) {
        v = json_array_get(added, i);
        if (is_text(json_object_get(v, "content"), text) &&
            gg_json_int(json_object_get(v, "id"), &n) && n >= 0)
            return n;
    }
    return -1;
}

/* Settings that published files lack have the values of transformers,
 * PixtralVisionConfig. */
static enum gguf_status set_defaults(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    static const struct {
        const char *name;
        double value;
    } of[] = {
        { "vision.hidden_size", 1024 },
        { "vision.intermediate_size", 4096 },
        { "vision.num_hidden_layers", 24 },
        { "vision.num_attention_heads", 16 },
    };
    for (size_t i = 0; i < GG_LEN(of); i++)
        GG_TRY(gg_projector_set_missing(c, of[i].name, of[i].value, err));
    return gg_projector_check_activation(c, err);
}

static enum gguf_status find_break(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    const int64_t id = find_token(c, "[IMG_BREAK]");
    GG_TRY(set_defaults(c, err));
    if (id < 0)
        return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                            "the tokenizer has no token [IMG_BREAK], whose "
                            "vector belongs to the projector");
    return gg_projector_set(c, "vision.image_break_token_id", (double)id, err);
}

static bool is_pixtral(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "vision_config.model_type", -1,
                                "pixtral") == 1;
}

static enum gguf_status check_params(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    GG_TRY(gg_projector_default_clip_image(c, err));
    return isnan(num_of(&cfg, "vision.image_break_token_id"))
               ? gg_projector_refuse(
                     "vision_encoder.image_break_token_id is missing", err)
               : GGUF_OK;
}

static double merge_of_params(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "vision.mm_projector_id", -1,
                                "patch_merge") == 1
               ? num_of(cfg, "vision.spatial_merge_size")
               : NAN;
}

#define NO_BREAK                                                              \
    "the vector of [IMG_BREAK] is a row of the language model's embedding"
#define PARTS                                                                 \
    "vision_tower. vision_encoder. multi_modal_projector. "                   \
    "vision_projection. vision_language_adapter. pre_mm_projector_norm "      \
    "patch_merger."
#define TABLES                                                                \
    " language_model.model.embed_tokens. language_model.embed_tokens. "       \
    "embed_tokens. tok_embeddings."
#define STRIP                                                                 \
    "vision_tower. vision_encoder. language_model.model. language_model."
#define PIXTRAL_KEYS(NAME)                                                    \
    VISION, TYPE(NAME), EPS("vision.layer_norm_eps", 1e-5), GELU_OR_SILU,     \
        MERGE_SIZE("spatial_merge_size")

const struct gg_projector gg_projector_family_pixtral[] = {
    { .arch = { .classes = "LlavaForConditionalGeneration "
                           "LlavaNextForConditionalGeneration "
                           "Mistral3ForConditionalGeneration",
                .when = is_pixtral,
                .names = { tower, projector, lighton, image_break },
                .sizes = sizes,
                CLIP(PARTS TABLES, STRIP),
                .keys = ROWS(PIXTRAL_KEYS("pixtral")) },
      .vision = "vision_config",
      .check = find_break,
      .no_back = NO_BREAK },
    { .arch = { .classes = "LightOnOCRForConditionalGeneration",
                .names = { tower, lighton, projector },
                .sizes = sizes,
                CLIP(PARTS, STRIP),
                .before = "vision_encoder.",
                .keys = ROWS(PIXTRAL_KEYS("lightonocr")) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .leading = "model.",
      .check = set_defaults },
    { .arch = { .classes = GG_PROJECTOR_PARAMS,
                .names = { tower, projector, lighton, image_break },
                .sizes = sizes,
                CLIP(PARTS TABLES, STRIP),
                .keys = ROWS(
                    VISION, TYPE("pixtral"),
                    F32("vision.attention.layer_norm_epsilon", "norm_eps"),
                    F32("rope.freq_base", "vision.rope_theta"), SILU,
                    OF("vision.spatial_merge_size", U32, merge_of_params,
                       NO_BACK)) },
      .vision = "vision_encoder",
      .check = check_params,
      .no_back = NO_BREAK },
    { .arch = { .classes = NULL } },
};
