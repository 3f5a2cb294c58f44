/* SPDX-License-Identifier: MIT */
/* gemma.c - projectors of Gemma 3n and Gemma 4, which see and hear */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"

#include <limits.h>

/* ---- Gemma 3n: MobileNetV5 and a conformer ---- */

#define BLOCK      "timm_model.blocks.%.@."
#define TO         "v.blk.%.@."
#define SAME(NAME) N(BLOCK NAME, TO NAME)
#define LAYER      "conformer.%."
static const struct gg_convert_name gemma3n[] = {
    SAME("conv_exp"),
    SAME("bn1"),
    SAME("conv_pwl"),
    SAME("bn2"),
    SAME("dw_start.conv"),
    SAME("dw_start.bn"),
    SAME("dw_mid.conv"),
    SAME("dw_mid.bn"),
    SAME("pw_exp.conv"),
    SAME("pw_exp.bn"),
    SAME("pw_proj.conv"),
    SAME("pw_proj.bn"),
    /* a factor of each channel: programs multiply [width, height, channel] */
    N_AXES(BLOCK "layer_scale.gamma", TO "layer_scale.gamma",
           "x > 1, x, 1, 1"),
    SAME("attn.query.proj"),
    SAME("attn.key.proj"),
    SAME("attn.key.down_conv"),
    SAME("attn.key.norm"),
    SAME("attn.value.proj"),
    SAME("attn.value.down_conv"),
    SAME("attn.value.norm"),
    SAME("attn.output.proj"),
    SAME("norm"),
    N("timm_model.conv_stem.conv.weight", "v.conv_stem.conv.weight"),
    N_AXES("timm_model.conv_stem.conv.bias", "v.conv_stem.conv.bias",
           "x > 1, x, 1, 1"),
    N("timm_model.conv_stem.bn", "v.conv_stem.bn"),
    N("timm_model.msfa.ffn.pw_exp.conv", "v.msfa.ffn.pw_exp.conv"),
    N("timm_model.msfa.ffn.pw_exp.bn", "v.msfa.ffn.pw_exp.bn"),
    N("timm_model.msfa.ffn.pw_proj.conv", "v.msfa.ffn.pw_proj.conv"),
    N("timm_model.msfa.ffn.pw_proj.bn", "v.msfa.ffn.pw_proj.bn"),
    N("timm_model.msfa.norm", "v.msfa.norm"),
    N("embed_vision.embedding", "mm.embedding"),
    N("embed_vision.hard_embedding_norm", "mm.hard_emb_norm"),
    N("embed_vision.soft_embedding_norm", "mm.soft_emb_norm"),
    N("embed_audio.embedding", "mm.a.embedding"),
    N("embed_audio.hard_embedding_norm", "mm.a.hard_emb_norm"),
    N("embed_audio.soft_embedding_norm", "mm.a.soft_emb_norm"),
    N("subsample_conv_projection.conv_%.conv", "a.conv1d.%"),
    N("subsample_conv_projection.conv_%.norm", "a.conv1d.%.norm"),
    N("subsample_conv_projection.input_proj_linear", "a.pre_encode.out"),
    N(LAYER "ffw_layer_start.pre_layer_norm", A "ffn_norm"),
    N(LAYER "ffw_layer_start.post_layer_norm", A "ffn_post_norm"),
    N(LAYER "ffw_layer_start.ffw_layer_1", A "ffn_up"),
    N(LAYER "ffw_layer_start.ffw_layer_2", A "ffn_down"),
    N(LAYER "ffw_layer_end.pre_layer_norm", A "ffn_norm_1"),
    N(LAYER "ffw_layer_end.post_layer_norm", A "ffn_post_norm_1"),
    N(LAYER "ffw_layer_end.ffw_layer_1", A "ffn_up_1"),
    N(LAYER "ffw_layer_end.ffw_layer_2", A "ffn_down_1"),
    N(LAYER "attention.attn.q_proj", A "attn_q"),
    N(LAYER "attention.attn.k_proj", A "attn_k"),
    N(LAYER "attention.attn.v_proj", A "attn_v"),
    N(LAYER "attention.attn.per_dim_scale", A "per_dim_scale"),
    N(LAYER "attention.attn.relative_position_embedding.pos_proj",
      A "linear_pos"),
    N(LAYER "attention.post", A "attn_out"),
    N(LAYER "attention.pre_attn_norm", A "ln1"),
    N(LAYER "attention.post_norm", A "ln2"),
    N(LAYER "lconv1d.pre_layer_norm", A "conv_norm"),
    N(LAYER "lconv1d.conv_norm", A "norm_conv"),
    N(LAYER "lconv1d.linear_start", A "conv_pw1"),
    N(LAYER "lconv1d.linear_end", A "conv_pw2"),
    N(LAYER "lconv1d.depthwise_conv1d", A "conv_dw"),
    N(LAYER "norm", A "layer_pre_norm"),
    END_NAMES,
};
#undef LAYER

/* Names of Gemma 3n and 4. */
static const struct gg_convert_name embeddings[] = {
    N("embed_vision.embedding_projection", "mm.input_projection"),
    N("embed_audio.embedding_projection", "mm.a.input_projection"),
    END_NAMES,
};

static double gemma3n_ff(const struct gg_hf_config *cfg)
{
    return 4 * num_or(cfg, "vision.intermediate_size", 2048);
}

static double gemma3n_image(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "image.size.height", 768);
}

static double gemma3n_patch(const struct gg_hf_config *cfg)
{
    return floor(gemma3n_image(cfg) /
                 num_or(cfg, "image.image_seq_length", 256));
}

static void gemma3n_back(struct gg_back_maker *m)
{
    const double image = num_of(&m->keys, "vision.image_size");
    const double patch = num_of(&m->keys, "vision.patch_size");
    gg_back_put_num(m, "image.size.height", image);
    gg_back_put_num(m, "image.size.width", image);
    gg_back_put_num(m, "image.image_seq_length", floor(image / patch));
    gg_back_put_num(m, "vision.intermediate_size",
                    num_of(&m->keys, "vision.feed_forward_length") / 4);
}

/* ---- Gemma 4 ---- */

static void drop_dimension(struct gg_convert_dims *d, unsigned *open)
{
    d->n = 0;
    *open = UINT_MAX;
}

/* Folders have a number without dimensions. */
static const struct gg_convert_transform number = { .text = "a number",
                                                    .shape = drop_dimension };

/* A matrix whose inputs and results are limited to ranges. */
#define LIMITED(FROM, TO)                                                     \
    N(FROM ".linear", TO), N(FROM, TO),                                       \
        N_HOW(FROM ".input_max", TO ".input_max", number),                    \
        N_HOW(FROM ".input_min", TO ".input_min", number),                    \
        N_HOW(FROM ".output_max", TO ".output_max", number),                  \
        N_HOW(FROM ".output_min", TO ".output_min", number)

/* ln(1 + exp(x)), without overflow. */
static void softplus(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 20 ? x[i] : (float)log1p(exp((double)x[i]));
}

/* Inverse of softplus. */
static void softplus_back(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 20 ? x[i] : (float)log(expm1((double)x[i]));
}

static const struct gg_convert_transform soft = { .text = "softplus",
                                                  .change = softplus,
                                                  .back = softplus_back };

#define LAYER "encoder.layers.%."
static const struct gg_convert_name gemma4_image[] = {
    N_AXES("patch_embedder.input_proj.weight", "v.patch_embd.weight",
           "o, patch patch c > o, c, patch, patch"),
    N("patch_embedder.position_embedding_table", "v.position_embd.weight"),
    N(LAYER "input_layernorm", V "ln1"),
    N(LAYER "post_attention_layernorm", V "attn_post_norm"),
    N(LAYER "pre_feedforward_layernorm", V "ln2"),
    N(LAYER "post_feedforward_layernorm", V "ffn_post_norm"),
    N(LAYER "layer_scalar", V "out_scale.weight"),
    LIMITED(LAYER "self_attn.q_proj", V "attn_q"),
    LIMITED(LAYER "self_attn.k_proj", V "attn_k"),
    LIMITED(LAYER "self_attn.v_proj", V "attn_v"),
    LIMITED(LAYER "self_attn.o_proj", V "attn_out"),
    N(LAYER "self_attn.q_norm", V "attn_q_norm"),
    N(LAYER "self_attn.k_norm", V "attn_k_norm"),
    LIMITED(LAYER "mlp.gate_proj", V "ffn_gate"),
    LIMITED(LAYER "mlp.up_proj", V "ffn_up"),
    LIMITED(LAYER "mlp.down_proj", V "ffn_down"),
    N("std_bias", "v.std_bias"),
    N("std_scale", "v.std_scale"),
    END_NAMES,
};
#undef LAYER
#define LAYER "layers.%."
static const struct gg_convert_name gemma4_sound[] = {
    N("subsample_conv_projection.layer%.conv", "a.conv1d.%"),
    N("subsample_conv_projection.layer%.norm", "a.conv1d.%.norm"),
    N("subsample_conv_projection.input_proj_linear", "a.input_projection"),
    N("output_proj", "a.pre_encode.out"),
    N(LAYER "feed_forward1.pre_layer_norm", A "ffn_norm"),
    N(LAYER "feed_forward1.post_layer_norm", A "ffn_post_norm"),
    LIMITED(LAYER "feed_forward1.ffw_layer_1", A "ffn_up"),
    LIMITED(LAYER "feed_forward1.ffw_layer_2", A "ffn_down"),
    N(LAYER "feed_forward2.pre_layer_norm", A "ffn_norm_1"),
    N(LAYER "feed_forward2.post_layer_norm", A "ffn_post_norm_1"),
    LIMITED(LAYER "feed_forward2.ffw_layer_1", A "ffn_up_1"),
    LIMITED(LAYER "feed_forward2.ffw_layer_2", A "ffn_down_1"),
    LIMITED(LAYER "self_attn.q_proj", A "attn_q"),
    LIMITED(LAYER "self_attn.k_proj", A "attn_k"),
    LIMITED(LAYER "self_attn.v_proj", A "attn_v"),
    LIMITED(LAYER "self_attn.post", A "attn_out"),
    N(LAYER "self_attn.relative_k_proj", A "attn_k_rel"),
    N_HOW(LAYER "self_attn.per_dim_scale", A "per_dim_scale.weight", soft),
    N_HOW(LAYER "self_attn.per_dim_key_scale", A "per_dim_k_scale.weight",
          soft),
    N(LAYER "norm_pre_attn", A "attn_pre_norm"),
    N(LAYER "norm_post_attn", A "attn_post_norm"),
    N(LAYER "norm_out", A "ln2"),
    LIMITED(LAYER "lconv1d.linear_start", A "conv_pw1"),
    LIMITED(LAYER "lconv1d.linear_end", A "conv_pw2"),
    N_AXES(LAYER "lconv1d.depthwise_conv1d.weight", A "conv_dw.weight",
           "o, 1, taps > o, taps"),
    N(LAYER "lconv1d.pre_layer_norm", A "conv_norm"),
    N(LAYER "lconv1d.conv_norm", A "norm_conv"),
    END_NAMES,
};
#undef LAYER
static const struct gg_convert_size gemma4_sizes[] = {
    { .name = "patch", .hf = "vision.patch_size" }, { .name = NULL }
};

static double gemma4_sound_ff(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, "audio.hidden_size");
}

static bool has_sound(const struct gg_hf_config *cfg)
{
    return json_object_size(gg_hf_config_get(cfg, "audio_config")) > 0;
}

/* Without layers: patches and sounds are multiplied by a matrix. */
static const struct gg_convert_name unified[] = {
    N_AXES("vision_embedder.patch_dense.weight", "v.patch_embd.weight",
           "o, side side c > o, c side side"),
    N("vision_embedder.patch_dense.bias", "v.patch_embd.bias"),
    N_AXES("vision_embedder.patch_ln1", "v.patch_norm.1",
           "side side c > c side side"),
    N("vision_embedder.patch_ln2", "v.patch_norm.2"),
    N("vision_embedder.pos_norm", "v.patch_norm.3"),
    N_AXES("vision_embedder.pos_embedding", "v.position_embd.weight",
           "t, axis, c > axis, t, c"),
    END_NAMES,
};

/* Set the patches of a side that become one vector, by the pixels of a row of
 * the matrix. */
static void put_pooling(struct gg_back_maker *m)
{
    const double row = gg_projector_count_tensor(m, "v.patch_embd.weight", 0);
    const double side = sqrt(row / 3);
    gg_back_put_num(m, "vision.pooling_kernel_size",
                    side / num_of(&m->keys, "vision.patch_size"));
}

/* Side of the square of pixels that becomes one vector. */
static double unified_side(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "vision.patch_size") *
           num_of(cfg, "vision.pooling_kernel_size");
}
static const struct gg_convert_size unified_sizes[] = {
    { .name = "side", .of = unified_side }, { .name = NULL }
};

#define GEMMA4_IMAGE                                                          \
    ALWAYS("vision.image_size", U32, 224), VISION, VISION_TYPE("gemma4v"),    \
        EPS("vision.layer_norm_eps", 1e-6)
#define GEMMA4_PARTS "vision_tower. audio_tower. embed_vision. embed_audio."

const struct gg_projector gg_projector_family_gemma[] = {
    { .arch = { .classes = "Gemma3nForConditionalGeneration",
                .names = { gemma3n, embeddings },
                CLIP("vision_tower. audio_tower. embed_vision. embed_audio.",
                     "vision_tower. audio_tower."),
                .before = "vision_tower.",
                .back = gemma3n_back,
                .always_f16 = "a.pre_encode.out.",
                .always_f32 = "a.conv1d. .conv_dw. v.conv_stem.",
                .keys = ROWS(
                    OF("vision.image_size", U32, gemma3n_image, IN_BACK),
                    OF("vision.patch_size", U32, gemma3n_patch, IN_BACK),
                    OF("vision.feed_forward_length", U32, gemma3n_ff, IN_BACK),
                    ELSE("vision.attention.head_count", U32,
                         "vision.num_attention_heads", 8),
                    ALWAYS("vision.block_count", U32, 128), VISION,
                    NUMBER("audio.block_count",
                           "audio.conf_num_hidden_layers"),
                    NUMBER("audio.attention.head_count",
                           "audio.conf_num_attention_heads"),
                    ELSE("audio.feed_forward_length", U32,
                         "audio.intermediate_size", 6144),
                    NUMBER("audio.num_mel_bins", "audio.input_feat_size"),
                    AUDIO, VISION_TYPE("gemma3nv"),
                    EPS("vision.layer_norm_eps", 1e-6), AUDIO_TYPE("gemma3na"),
                    AUDIO_EPS(NULL, 1e-5)) },
      .vision = "vision_config",
      .audio = "audio_config",
      .text = TEXT_CONFIG,
      .leading = "model.",
      .before_audio = "audio_tower.",
      .check = gg_projector_default_plain_image },
    { .arch = { .classes = "Gemma4ForConditionalGeneration",
                .when = has_sound,
                .names = { embeddings, gemma4_image, gemma4_sound },
                .sizes = gemma4_sizes,
                CLIP(GEMMA4_PARTS, "vision_tower. audio_tower."),
                .always_f32 = "a.conv1d. .conv_dw. ^a.input_projection.",
                .keys = ROWS(GEMMA4_IMAGE,
                             OF("audio.feed_forward_length", U32,
                                gemma4_sound_ff, NO_BACK),
                             ELSE("audio.num_mel_bins", U32,
                                  "audio.input_feat_size", 128),
                             AUDIO, AUDIO_TYPE("gemma4a"),
                             AUDIO_EPS("audio.layer_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .audio = "audio_config",
      .text = TEXT_CONFIG,
      .leading = "model.",
      .before_audio = "audio_tower." },
    { .arch = { .classes = "Gemma4ForConditionalGeneration",
                .names = { embeddings, gemma4_image },
                .sizes = gemma4_sizes,
                CLIP("vision_tower. embed_vision.", "vision_tower."),
                .keys = ROWS(GEMMA4_IMAGE) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .leading = "model." },
    { .arch = { .classes = "Gemma4UnifiedForConditionalGeneration",
                .names = { embeddings, unified },
                .sizes = unified_sizes,
                .back = put_pooling,
                CLIP("vision_embedder. embed_vision. embed_audio.", NULL),
                .keys = ROWS(
                    ALWAYS("vision.image_size", U32, 224),
                    NUMBER("vision.embedding_length", "vision.mm_embed_dim"),
                    ALWAYS("vision.feed_forward_length", U32, 0),
                    ALWAYS("vision.block_count", U32, 0),
                    ALWAYS("vision.attention.head_count", U32, 0), VISION,
                    VISION_TYPE("gemma4uv"),
                    EPS("vision.layer_norm_eps", 1e-6),
                    NUMBER("audio.embedding_length", "audio.audio_embed_dim"),
                    ALWAYS("audio.feed_forward_length", U32, 0),
                    ALWAYS("audio.block_count", U32, 0),
                    ALWAYS("audio.attention.head_count", U32, 0),
                    ELSE("audio.num_mel_bins", U32, "audio.input_feat_size",
                         128),
                    AUDIO, AUDIO_TYPE("gemma4ua"),
                    AUDIO_EPS("audio.layer_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .audio = "audio_config",
      .text = TEXT_CONFIG,
      .leading = "model.",
      .before_audio = "audio_tower." },
    { .arch = { .classes = NULL } },
};
