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
    N(LAYER "attn.q", V "attn_q"),
    N(LAYER "attn.k", V "attn_k"),
    N(LAYER "attn.v", V "attn_v"),
    N(LAYER "attn.proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N(LAYER "mlp.gate_proj", V "ffn_gate"),
    N(LAYER "mlp.up_proj", V "ffn_up"),
    N(LAYER "mlp.down_proj", V "ffn_down"),
    N("visual.merger.ln_q", "v.post_ln"),
    N("visual.merger.mlp.0", "mm.0"),
    N("visual.merger.mlp.2", "mm.2"),
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

#define QWEN2_KEYS                                                            \
    NUMBER("vision.embedding_length", "vision.embed_dim vision.hidden_size"), \
        OF("vision.feed_forward_length", U32, qwen2_ff, NO_BACK),             \
        ELSE("vision.image_size", U32, "vision.image_size", 560), VISION,     \
        EPS("rms_norm_eps", 1e-6)
#define WINDOWS SILU, OF("vision.n_wa_pattern", U32, window_period, NO_BACK)

/* ---- Qwen's models that hear ---- */

/* In the language model's place for a sound: not used by transformers. */
#define UNUSED_SOUND "audio_tower.audio_bos_eos_token"
#define SOUND_KEYS   AUDIO, AUDIO_EPS("audio.layer_norm_eps", 1e-5)

static const struct gg_convert_name omni_sound[] = {
    N_AXES("embed_positions.computed", "a.position_embd.weight",
           "x width > x, width"),
    N("proj", "mm.a.fc"),
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
    enum { LENGTH = 1500, LONGEST = 10000 };
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double width = num_of(&cfg, "audio.d_model");
    if (!(width >= 4) || width > 65536 || fmod(width, 2) != 0)
        return gg_projector_refuse("audio_config.d_model: expected an even "
                                   "number of at least 4",
                                   err);
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
    DEEP("visual.merger_list.%.ln_q", "v.deepstack.%.norm"),
    DEEP("visual.merger_list.%.mlp.0", "v.deepstack.%.fc1"),
    DEEP("visual.merger_list.%.mlp.2", "v.deepstack.%.fc2"),
    END_NAMES,
};

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
        return gg_projector_refuse("vision_config: number of layers (depth)",
                                   err);
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
    { .arch = { .classes = "Qwen2VLModel Qwen2VLForConditionalGeneration "
                           "Qwen2_5_VLForConditionalGeneration",
                .when = is_qwen2,
                .names = { qwen2 },
                CLIP("visual.", NULL),
                .keys = ROWS(QWEN2_KEYS, TYPE("qwen2vl_merger")) },
      .vision = "vision_config" },
    { .arch = { .classes = "Sarashina2VisionForCausalLM",
                .names = { qwen2 },
                CLIP("visual.", NULL),
                .keys = ROWS(QWEN2_KEYS, TYPE("qwen2vl_merger")) },
      .vision = "vision_config" },
    { .arch = { .classes = "Qwen2VLModel Qwen2VLForConditionalGeneration "
                           "Qwen2_5_VLForConditionalGeneration",
                .when = is_qwen25,
                .names = { qwen2 },
                CLIP("visual.", NULL),
                .keys = ROWS(QWEN2_KEYS, TYPE("qwen2.5vl_merger"), WINDOWS) },
      .vision = "vision_config",
      .check = check_windows },
    { .arch = { .classes = "Qwen2_5OmniModel "
                           "Qwen2_5OmniForConditionalGeneration",
                .names = { qwen2, omni_sound, gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("visual. audio_tower.", "audio_tower."),
                .unused = UNUSED_SOUND,
                .always_f16 = "a.conv",
                .keys =
                    ROWS(QWEN2_KEYS, SOUND_KEYS, TYPE("qwen2.5o"), WINDOWS) },
      .vision = "thinker_config.vision_config",
      .audio = "thinker_config.audio_config",
      .check = check_windows,
      .add_tensors = add_positions },
    { .arch = { .classes = "Qwen2AudioForConditionalGeneration",
                .names = { omni_sound, gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("audio_tower. multi_modal_projector.", "audio_tower."),
                .always_f16 = "a.conv",
                .keys = ROWS(SOUND_KEYS, TYPE("qwen2a")) },
      .audio = "audio_config",
      .add_tensors = take_width },
    { .arch = { .classes = "Qwen3VLForConditionalGeneration "
                           "Qwen3VLMoeForConditionalGeneration "
                           "Qwen3_5ForConditionalGeneration "
                           "Qwen3_5MoeForConditionalGeneration",
                .names = { qwen3, qwen2 },
                CLIP("visual.", NULL),
                .keys = ROWS(QWEN3_KEYS, TYPE("qwen3vl_merger"),
                             EPS("text.rms_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .check = gg_projector_default_clip_image,
      .add_keys = put_deepstack },
    { .arch = { .classes = "Qwen3OmniMoeForConditionalGeneration",
                .names = { qwen3, omni_sound, qwen2,
                           gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("visual. audio_tower.", "audio_tower."),
                .unused = UNUSED_SOUND,
                .always_f16 = "a.conv",
                .keys = ROWS(
                    QWEN3_KEYS, SOUND_KEYS, VISION_TYPE("qwen3vl_merger"),
                    AUDIO_TYPE("qwen3a"), EPS("text.rms_norm_eps", 1e-6)) },
      .vision = "thinker_config.vision_config",
      .audio = "thinker_config.audio_config",
      .check = gg_projector_default_clip_image,
      .add_tensors = add_positions,
      .add_keys = put_deepstack },
    { .arch = { .classes = "Qwen3ASRForConditionalGeneration",
                .names = { omni_sound, gg_projector_names_whisper },
                .sizes = sound_sizes,
                CLIP("audio_tower.", "audio_tower."),
                .unused = UNUSED_SOUND,
                .always_f16 = "a.conv",
                .keys = ROWS(SOUND_KEYS, AUDIO_TYPE("qwen3a")) },
      .audio = "thinker_config.audio_config",
      .add_tensors = add_positions },
    { .arch = { .classes = "Glm4vForConditionalGeneration "
                           "Glm4vMoeForConditionalGeneration "
                           "GlmOcrForConditionalGeneration",
                .names = { glm4v, qwen2 },
                CLIP("visual.", NULL),
                .keys =
                    ROWS(NUMBER("vision.image_size", "vision.image_size"),
                         OF("vision.image_size", U32, positions_size, NO_BACK),
                         VISION, TYPE("glm4v"), GELU_OR_SILU,
                         EPS("vision.rms_norm_eps", 1e-5)) },
      .vision = "vision_config",
      .check = gg_projector_default_clip_image },
    { .arch = { .classes = NULL } },
};
