/* SPDX-License-Identifier: MIT */
/* qwen.c - projectors of Qwen-VL, of Qwen's models that also hear, and GLM-4V,
 * which has the tower of Qwen3-VL */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"

#include <string.h>

#define LAYER "visual.blocks.%."

/* ---- Qwen2-VL, Qwen2.5-VL ---- */

static const struct gg_convert_name qwen2[] = {
    TWO_IMAGES("visual.patch_embed.proj"),
    N(LAYER "norm1", V "ln1"),
    N(LAYER "norm2", V "ln2"),
    SPLIT_QKV(LAYER "attn.qkv", V "attn_"),
    N(LAYER "attn.proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N("visual.merger.ln_q", "v.post_ln"),
    N("visual.merger.mlp.0", "mm.0"),
    N("visual.merger.mlp.2", "mm.2"),
    END_NAMES,
};

/* Names of Qwen2.5-VL's layers, and of Qwen2.5-Omni's. Lists with them come
 * first: the way back takes the first name. */
static const struct gg_convert_name gated[] = {
    N(LAYER "mlp.gate_proj", V "ffn_gate"),
    N(LAYER "mlp.up_proj", V "ffn_up"),
    N(LAYER "mlp.down_proj", V "ffn_down"),
    END_NAMES,
};
static const struct gg_convert_name qwen2_omni[] = {
    N(LAYER "attn.q", V "attn_q"),
    N(LAYER "attn.k", V "attn_k"),
    N(LAYER "attn.v", V "attn_v"),
    N(LAYER "mlp.gate_proj", V "ffn_gate"),
    N(LAYER "mlp.up_proj", V "ffn_up"),
    N(LAYER "mlp.down_proj", V "ffn_down"),
    END_NAMES,
};

/* embed_dim is the width of Qwen2-VL's tower, hidden_size that of its
 * output. */
static double qwen2_ff(const struct gg_hf_config *cfg)
{
    return isnan(num_of(cfg, "vision.embed_dim"))
               ? num_of(cfg, "vision.intermediate_size")
               : num_of(cfg, "vision.hidden_size");
}

/* Width of the output; the feed-forward part's by the matrix. */
static void put_qwen2_sizes(struct gg_back_maker *m)
{
    const double width = num_of(&m->keys, "vision.embedding_length");
    gg_back_put_num(m, "vision.hidden_size",
                    num_of(&m->keys, "vision.feed_forward_length"));
    gg_back_put_num(m, "vision.mlp_ratio",
                    gg_projector_count_tensor(m, "v.blk.0.ffn_up.weight", 1) /
                        width);
}

static void put_ff(struct gg_back_maker *m)
{
    gg_back_put_num(m, "vision.intermediate_size",
                    num_of(&m->keys, "vision.feed_forward_length"));
}

/* Set the layers with full attention: every N-th. */
static void put_windows(struct gg_back_maker *m)
{
    const double period = num_of(&m->keys, "vision.n_wa_pattern");
    const double layers = num_of(&m->keys, "vision.block_count");
    json_t *list = json_array();
    for (double i = period - 1;
         period >= 1 && i < layers && i < GG_HF_CONFIG_LAYERS; i += period)
        json_array_append_new(list, gg_back_number_to_json(i));
    gg_back_put(m->root, "vision.fullatt_block_indexes", list);
}

/* Layers from one with full attention to the next. */
static double window_period(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "vision.fullatt_block_indexes") + 1;
}

static enum gguf_status check_windows(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const char *name = "vision.fullatt_block_indexes";
    const size_t n = gg_hf_config_list_len(&cfg, name);
    const double period = window_period(&cfg);
    if (!n)
        return gg_projector_refuse(
            "vision_config.fullatt_block_indexes is missing", err);
    for (size_t i = 0; i < n; i++)
        if (num_at(&cfg, name, (int64_t)i) != period * (double)(i + 1) - 1)
            return gg_projector_refuse(
                "vision_config.fullatt_block_indexes is not regular: files "
                "can only say that every N-th layer has full attention",
                err);
    return GGUF_OK;
}

static bool is_type(const struct gg_hf_config *cfg, const char *type)
{
    return gg_hf_config_is_word(cfg, "model_type", -1, type) == 1;
}

static bool is_qwen2(const struct gg_hf_config *cfg)
{
    return is_type(cfg, "qwen2_vl");
}

static bool is_qwen25(const struct gg_hf_config *cfg)
{
    return is_type(cfg, "qwen2_5_vl");
}

#define QWEN2_KEYS(PUT_SIZES)                                                 \
    NUMBER("vision.embedding_length", "vision.embed_dim vision.hidden_size"), \
        OF("vision.feed_forward_length", U32, qwen2_ff, PUT_SIZES),           \
        ELSE("vision.image_size", U32, "vision.image_size", 560), VISION,     \
        EPS("rms_norm_eps", 1e-6)
#define WINDOWS                                                               \
    SILU, OF("vision.n_wa_pattern", U32, window_period, put_windows)
#define QWEN2_MEMBERS                                                         \
    .instead = { QWEN_MEMBERS, { "vision.hidden_size", "vision.embed_dim" } }

/* ---- Qwen's models that hear ---- */

/* In the language model's place for a sound: not used by transformers. */
#define UNUSED_SOUND "audio_tower.audio_bos_eos_token"
#define SOUND_KEYS   AUDIO, AUDIO_EPS("audio.layer_norm_eps", 1e-5)

/* Positions are computed: see add_positions(). */
static const struct gg_convert_name omni_positions[] = {
    { .from = "embed_positions.computed",
      .to = "a.position_embd.weight",
      .axes = "x width > x, width",
      .is_computed = true },
    N("ln_post", "a.post_ln"),
    N("proj", "mm.a.fc"),
    END_NAMES,
};
static const struct gg_convert_name omni_sound[] = {
    N("multi_modal_projector.linear", "mm.a.fc"),
    N("proj1", "mm.a.mlp.1"),
    N("proj2", "mm.a.mlp.2"),
    N("conv2d1.weight", "a.conv2d.1.weight"),
    N("conv2d2.weight", "a.conv2d.2.weight"),
    N("conv2d3.weight", "a.conv2d.3.weight"),
    N_AXES("conv2d1.bias", "a.conv2d.1.bias", "x > x, 1, 1"),
    N_AXES("conv2d2.bias", "a.conv2d.2.bias", "x > x, 1, 1"),
    N_AXES("conv2d3.bias", "a.conv2d.3.bias", "x > x, 1, 1"),
    N("conv_out", "a.conv_out"),
    END_NAMES,
};
static const struct gg_convert_size sound_sizes[] = {
    { .name = "width", .hf = "audio.d_model" }, { .name = NULL }
};

/* Sinusoids of positions 0 to 1499 (transformers, SinusoidsPositionEmbedding of
 * modeling_qwen2_5_omni.py), each step rounded to single precision. */
static enum gguf_status add_positions(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    enum { LENGTH = 1500, LONGEST = 10000, WIDEST = 4096 };
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double width = num_of(&cfg, "audio.d_model");
    char text[GG_PROJECTOR_NUMBER];
    if (!(width >= 4) || width > WIDEST || fmod(width, 2) != 0)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: audio_config.d_model is %s, "
                            "expected an even number from 4 to %d",
                            gg_projector_number(width, text), (int)WIDEST);
    const size_t n = (size_t)width, half = n / 2;
    const float step = (float)(-log(LONGEST) / (double)(half - 1));
    float *x = gg_mem_alloc(c->p.allocator, LENGTH * n * sizeof *x);
    if (!x)
        return gg_error_set_nomem(err, LENGTH * n * sizeof *x);
    for (size_t k = 0; k < half; k++) {
        const float rate = (float)exp((double)(step * (float)k));
        for (size_t t = 0; t < LENGTH; t++) {
            const float angle = (float)t * rate;
            x[t * n + k] = (float)sin((double)angle);
            x[t * n + half + k] = (float)cos((double)angle);
        }
    }
    const enum gguf_status st = gg_projector_add_floats(
        c, "audio_tower.embed_positions.computed", x, LENGTH * n, err);
    gg_mem_free(c->p.allocator, x);
    return st;
}

/* The published config.json of Qwen2-Audio has no width of the language
 * model. */
static enum gguf_status take_width(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    return gg_projector_take_width(c, "multi_modal_projector.linear.weight",
                                   err);
}

/* ---- Qwen3-VL, Qwen3.5 ---- */

static double deepstack_layer(const struct gg_hf_config *cfg, int64_t no)
{
    return no < GG_HF_CONFIG_LAYERS
               ? num_at(cfg, "vision.deepstack_visual_indexes", no)
               : NAN;
}

#define DEEP(FROM, TO)                                                        \
    {                                                                         \
        .from = FROM, .to = TO, .layer_of = deepstack_layer                   \
    }
static const struct gg_convert_name qwen3[] = {
    N("visual.pos_embed", "v.position_embd"),
    N(LAYER "attn.qkv", V "attn_qkv"),
    N(LAYER "mlp.linear_fc1", V "ffn_up"),
    N(LAYER "mlp.linear_fc2", V "ffn_down"),
    N("visual.merger.norm", "v.post_ln"),
    N("visual.merger.linear_fc1", "mm.0"),
    N("visual.merger.linear_fc2", "mm.2"),
    DEEP("visual.deepstack_merger_list.%.norm", "v.deepstack.%.norm"),
    DEEP("visual.deepstack_merger_list.%.linear_fc1", "v.deepstack.%.fc1"),
    DEEP("visual.deepstack_merger_list.%.linear_fc2", "v.deepstack.%.fc2"),
    END_NAMES,
};

/* Qwen3-Omni has names of its own for some tensors. */
static const struct gg_convert_name qwen3_omni[] = {
    N("visual.merger.ln_q", "v.post_ln"),
    N("visual.merger.mlp.0", "mm.0"),
    N("visual.merger.mlp.2", "mm.2"),
    DEEP("visual.merger_list.%.ln_q", "v.deepstack.%.norm"),
    DEEP("visual.merger_list.%.mlp.0", "v.deepstack.%.fc1"),
    DEEP("visual.merger_list.%.mlp.2", "v.deepstack.%.fc2"),
    END_NAMES,
};

/* Set the layers that give vectors to a layer of the language model. */
static void put_deepstack_layers(struct gg_back_maker *m)
{
    const char *name = "vision.is_deepstack_layers";
    const size_t n = gg_hf_config_list_len(&m->keys, name);
    json_t *list = json_array();
    for (size_t i = 0; i < n && i < GG_HF_CONFIG_LAYERS; i++)
        if (is_true(num_at(&m->keys, name, (int64_t)i)))
            json_array_append_new(list, json_integer((json_int_t)i));
    gg_back_put(m->root, "vision.deepstack_visual_indexes", list);
}

/* Set the number of positions, in place of the size of images if that follows
 * from it. */
static void put_positions(struct gg_back_maker *m)
{
    const double n = gg_projector_count_tensor(m, "v.position_embd.weight", 1);
    const double side = floor(sqrt(n) * num_of(&m->keys, "vision.patch_size"));
    gg_back_put_num(m, "vision.num_position_embeddings", n);
    if (side == num_of(&m->keys, "vision.image_size"))
        json_object_del(json_object_get(m->root, "vision"), "image_size");
}

static void qwen3_back(struct gg_back_maker *m)
{
    put_deepstack_layers(m);
    put_positions(m);
}

/* A square of positions. */
static double positions_size(const struct gg_hf_config *cfg)
{
    return floor(sqrt(num_or(cfg, "vision.num_position_embeddings", 2304)) *
                 num_or(cfg, "vision.patch_size", 16));
}

/* A truth value for each layer: it gives vectors to a layer of the language
 * model. */
static enum gguf_status put_deepstack(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double layers = num_of(&cfg, LAYERS("vision"));
    const char *name = "vision.deepstack_visual_indexes";
    bool list[GG_HF_CONFIG_LAYERS] = { false };
    if (!(layers >= 1) || layers > GG_HF_CONFIG_LAYERS)
        return gg_projector_refuse(
            "vision_config.depth: expected 1 to 4096 layers", err);
    for (size_t i = 0; i < (size_t)layers; i++)
        list[i] = gg_hf_config_list_has(&cfg, name, (int64_t)i) == 1;
    return gg_projector_put_bools(c, "vision.is_deepstack_layers", list,
                                  (size_t)layers, err);
}

#define QWEN3_KEYS                                                            \
    NUMBER("vision.image_size", "vision.image_size"),                         \
        OF("vision.image_size", U32, positions_size, NO_BACK), VISION, GELU,  \
        MERGE_SIZE("vision.spatial_merge_size")

/* ---- GLM-4V ---- */

static const struct gg_convert_name glm4v[] = {
    N("visual.embeddings.position_embedding", "v.position_embd"),
    N("visual.post_conv_layernorm", "v.norm_embd"),
    N("visual.post_layernorm", "v.post_ln"),
    N("visual.downsample", "mm.patch_merger"),
    N(LAYER "attn.qkv", V "attn_qkv"),
    N(LAYER "attn.q_norm", V "attn_q_norm"),
    N(LAYER "attn.k_norm", V "attn_k_norm"),
    N("visual.merger.proj", "mm.model.fc"),
    N("visual.merger.post_projection_norm", "mm.post_norm"),
    N("visual.merger.gate_proj", "mm.gate"),
    N("visual.merger.up_proj", "mm.up"),
    N("visual.merger.down_proj", "mm.down"),
    END_NAMES,
};

const struct gg_projector gg_projector_family_qwen[] = {
    { .arch = { .classes = "Qwen2VLForConditionalGeneration Qwen2VLModel "
                           "Qwen2_5_VLForConditionalGeneration",
                .when = is_qwen2,
                .names = { qwen2, gated, qwen2_omni },
                CLIP("visual.", NULL),
                QWEN2_MEMBERS,
                .keys = ROWS(QWEN2_KEYS(put_qwen2_sizes),
                             TYPE("qwen2vl_merger")) },
      .vision = "vision_config" },
    { .arch = { .classes = "Sarashina2VisionForCausalLM",
                .names = { qwen2, gated, qwen2_omni },
                CLIP("visual.", NULL),
                QWEN2_MEMBERS,
                .keys = ROWS(QWEN2_KEYS(put_qwen2_sizes),
                             TYPE("qwen2vl_merger")) },
      .vision = "vision_config" },
    { .arch = { .classes = "Qwen2_5_VLForConditionalGeneration Qwen2VLModel "
                           "Qwen2VLForConditionalGeneration",
                .when = is_qwen25,
                .model_type = "qwen2_5_vl",
                .names = { gated, qwen2, qwen2_omni },
                CLIP("visual.", NULL),
                .instead = { QWEN_MEMBERS },
                .keys = ROWS(QWEN2_KEYS(put_ff), TYPE("qwen2.5vl_merger"),
                             WINDOWS) },
      .vision = "vision_config",
      .check = check_windows },
    { .arch = { .classes = "Qwen2_5OmniModel "
                           "Qwen2_5OmniForConditionalGeneration",
                .names = { qwen2_omni, qwen2, omni_positions, omni_sound,
                           gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("visual. audio_tower.", "audio_tower."),
                .unused = UNUSED_SOUND,
                .always_f16 = "a.conv",
                .instead = { QWEN_MEMBERS, WHISPER_MEMBERS },
                .keys = ROWS(QWEN2_KEYS(put_ff), SOUND_KEYS, TYPE("qwen2.5o"),
                             WINDOWS) },
      .vision = "thinker_config.vision_config",
      .audio = "thinker_config.audio_config",
      .text = "thinker_config.text_config",
      .leading = "thinker.",
      .check = check_windows,
      .add_tensors = add_positions },
    { .arch = { .classes = "Qwen2AudioForConditionalGeneration",
                .names = { omni_sound, gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("audio_tower. multi_modal_projector.", "audio_tower."),
                .always_f16 = "a.conv",
                .instead = { WHISPER_MEMBERS },
                .keys = ROWS(SOUND_KEYS, TYPE("qwen2a")) },
      .audio = "audio_config",
      .text = TEXT_CONFIG,
      .add_tensors = take_width },
    { .arch = { .classes = "Qwen3VLForConditionalGeneration "
                           "Qwen3VLMoeForConditionalGeneration "
                           "Qwen3_5ForConditionalGeneration "
                           "Qwen3_5MoeForConditionalGeneration",
                .names = { qwen3, qwen3_omni, qwen2 },
                CLIP("visual.", NULL),
                .instead = { QWEN_MEMBERS },
                .back = qwen3_back,
                .keys = ROWS(QWEN3_KEYS, TYPE("qwen3vl_merger"),
                             EPS("text.rms_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .leading = "model.",
      .check = gg_projector_default_clip_image,
      .add_keys = put_deepstack },
    { .arch = { .classes = "Qwen3OmniMoeForConditionalGeneration",
                .names = { qwen3_omni, qwen3, omni_positions, omni_sound,
                           qwen2, gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("visual. audio_tower.", "audio_tower."),
                .unused = UNUSED_SOUND,
                .always_f16 = "a.conv",
                .instead = { QWEN_MEMBERS, WHISPER_MEMBERS },
                .back = qwen3_back,
                .keys = ROWS(
                    QWEN3_KEYS, SOUND_KEYS, VISION_TYPE("qwen3vl_merger"),
                    AUDIO_TYPE("qwen3a"), EPS("text.rms_norm_eps", 1e-6)) },
      .vision = "thinker_config.vision_config",
      .audio = "thinker_config.audio_config",
      .text = "thinker_config.text_config",
      .leading = "thinker.",
      .check = gg_projector_default_clip_image,
      .add_tensors = add_positions,
      .add_keys = put_deepstack },
    { .arch = { .classes = "Qwen3ASRForConditionalGeneration",
                .names = { omni_positions, omni_sound,
                           gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("audio_tower.", "audio_tower."),
                .unused = UNUSED_SOUND,
                .always_f16 = "a.conv",
                .instead = { WHISPER_MEMBERS },
                .keys = ROWS(SOUND_KEYS, AUDIO_TYPE("qwen3a")) },
      .audio = "thinker_config.audio_config",
      .text = "thinker_config.text_config",
      .leading = "thinker.",
      .add_tensors = add_positions },
    { .arch = { .classes = "Glm4vForConditionalGeneration "
                           "Glm4vMoeForConditionalGeneration "
                           "GlmOcrForConditionalGeneration",
                .names = { glm4v, gated, qwen2 },
                CLIP("visual.", NULL),
                .instead = { QWEN_MEMBERS },
                .keys =
                    ROWS(NUMBER("vision.image_size", "vision.image_size"),
                         OF("vision.image_size", U32, positions_size, NO_BACK),
                         VISION, TYPE("glm4v"), GELU_OR_SILU,
                         EPS("vision.rms_norm_eps", 1e-5)) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .leading = "model.",
      .check = gg_projector_default_clip_image },
    { .arch = { .classes = NULL } },
};
