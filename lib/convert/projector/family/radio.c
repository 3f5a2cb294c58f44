/* SPDX-License-Identifier: MIT */
/* radio.c - projectors of Nemotron Nano VL and Omni, with RADIO's tower
 * (Ranzinger et al., arXiv:2312.06709) and Parakeet's (FastConformer,
 * arXiv:2305.05084), and of Step3-VL */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* ---- Nemotron Nano VL ---- */

#define LAYER "blocks.%."
static const struct gg_convert_name radio[] = {
    N("patch_generator.cls_token.token", "v.class_embd"),
    N_AXES("patch_generator.embedder.weight", "v.patch_embd.weight",
           "o, c patch patch > o, c, patch, patch"),
    N("patch_generator.pos_embed", "v.position_embd.weight"),
    N_AXES("patch_generator.pos_embed.resized", "v.position_embd.weight",
           "t width > 1, t, width"),
    N(LAYER "norm1", V "ln1"),
    N(LAYER "norm2", V "ln2"),
    N(LAYER "attn.qkv", V "attn_qkv"),
    N(LAYER "attn.proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N("mlp1.%", "mm.model.mlp.%"),
    END_NAMES,
};
#undef LAYER
#define PREFIX  "vision_model.radio_model.model."
#define RESIZED "patch_generator.pos_embed.resized"
static const struct gg_convert_size radio_sizes[] = {
    { .name = "patch", .hf = "vision.patch_size" },
    { .name = "width", .hf = "vision.positions_width" },
    { .name = NULL }
};

static double radio_scale(const struct gg_hf_config *cfg)
{
    return floor(1 / num_or(cfg, "downsample_ratio", 0.5));
}

/* Interpolate a square of n x n vectors to m x m, corners on corners, in single
 * precision. */
static void resize_grid(const float *x, size_t n, float *y, size_t m,
                        size_t width)
{
    const float step = m > 1 ? (float)(n - 1) / (float)(m - 1) : 0;
    for (size_t r = 0; r < m; r++)
        for (size_t q = 0; q < m; q++) {
            const float fr = step * (float)r, fq = step * (float)q;
            const size_t r0 = GG_MIN((size_t)fr, n - 1),
                         q0 = GG_MIN((size_t)fq, n - 1);
            const size_t r1 = GG_MIN(r0 + 1, n - 1),
                         q1 = GG_MIN(q0 + 1, n - 1);
            const float a = fr - (float)r0, b = fq - (float)q0;
            for (size_t k = 0; k < width; k++)
                y[(r * m + q) * width + k] =
                    (1 - a) * ((1 - b) * x[(r0 * n + q0) * width + k] +
                               b * x[(r0 * n + q1) * width + k]) +
                    a * ((1 - b) * x[(r1 * n + q0) * width + k] +
                         b * x[(r1 * n + q1) * width + k]);
        }
}

enum { MOST_TIMES = 4 }; /* largest growth of the side of positions */

/* Programs do not resize positions: those of the size of images are written. */
static enum gguf_status resize_positions(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double side = floor(num_or(&cfg, "force_image_size", 512) /
                              num_of(&cfg, "vision.patch_size"));
    const struct gg_safetensors_tensor *t;
    struct gg_str_esc e;
    size_t size = 0;
    float *x;
    if (!gg_projector_find_tensor(c, "patch_generator.pos_embed", &t) ||
        t->n_dims < 2)
        return GGUF_OK;
    const double from = floor(sqrt((double)t->ne[1]));
    const size_t width = (size_t)t->ne[0];
    if (!(from >= 1) || from * from != (double)t->ne[1])
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s': %" PRId64
                            " positions, expected a square",
                            gg_str_esc(&e, t->name), t->ne[1]);
    if (!(side >= 1) || side > MOST_TIMES * from)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: force_image_size is %g patches, "
                            "must be 1 to %d times the side of '%s', %.0f",
                            side, (int)MOST_TIMES, gg_str_esc(&e, t->name),
                            from);
    if (side == from)
        return GGUF_OK;
    const char *name = t->name.data;
    GG_TRY(gg_projector_read_floats(c, name, &size, &x, err));
    const size_t n = (size_t)(side * side) * width;
    float *y = gg_mem_alloc_zero(c->p.allocator, n, sizeof *y);
    enum gguf_status st = y ? GGUF_OK : gg_error_set_nomem(err, 4 * n);
    if (st == GGUF_OK) {
        resize_grid(x, (size_t)from, y, (size_t)side, width);
        st = gg_projector_add_floats(c, PREFIX RESIZED, y, n, err);
    }
    gg_mem_free(c->p.allocator, x);
    gg_mem_free(c->p.allocator, y);
    GG_TRY(st);
    GG_TRY(gg_projector_set(c, "vision.positions_width", (double)width, err));
    return gg_projector_leave_out(c, "patch_generator.pos_embed", err);
}

#define RESIZED_BACK "positions are resized in files"
#define RADIO_KEYS                                                            \
    ELSE("vision.image_size", U32, "force_image_size", 512),                  \
        ALWAYS("vision.embedding_length", U32, 1280),                         \
        ALWAYS("vision.feed_forward_length", U32, 5120),                      \
        ALWAYS("vision.block_count", U32, 32),                                \
        ALWAYS("vision.attention.head_count", U32, 16), VISION,               \
        EPS(NULL, 1e-6), GELU,                                                \
        OF("vision.projector.scale_factor", U32, radio_scale, NO_BACK)

/* Mean and deviation of ImageNet (torchvision). */
static enum gguf_status radio_image(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    static const double mean[3] = { 0.485, 0.456, 0.406 };
    static const double std[3] = { 0.229, 0.224, 0.225 };
    return gg_projector_default_image(c, mean, std, err);
}

/* ---- Parakeet ---- */

#define SOUND "sound_encoder.encoder."
#define LAYER SOUND "layers.%."
static const struct gg_convert_name parakeet[] = {
    N(SOUND "feature_extractor.featurizer.fb", "a.mel_filters"),
    N(SOUND "feature_extractor.featurizer.window", "a.window"),
    N(SOUND "subsampling.layers.%.weight", "a.conv1d.%.weight"),
    N_AXES(SOUND "subsampling.layers.%.bias", "a.conv1d.%.bias",
           "x > 1, x, 1, 1"),
    N(SOUND "subsampling.linear", "a.pre_encode.out"),
    N(LAYER "norm_feed_forward1", A "ffn_norm"),
    N(LAYER "feed_forward1.linear1", A "ffn_up"),
    N(LAYER "feed_forward1.linear2", A "ffn_down"),
    N(LAYER "norm_feed_forward2", A "ffn_norm_1"),
    N(LAYER "feed_forward2.linear1", A "ffn_up_1"),
    N(LAYER "feed_forward2.linear2", A "ffn_down_1"),
    N(LAYER "norm_self_att", A "ln1"),
    N(LAYER "norm_out", A "ln2"),
    N(LAYER "norm_conv", A "norm_conv"),
    N(LAYER "self_attn.q_proj", A "attn_q"),
    N(LAYER "self_attn.k_proj", A "attn_k"),
    N(LAYER "self_attn.v_proj", A "attn_v"),
    N(LAYER "self_attn.o_proj", A "attn_out"),
    N(LAYER "self_attn.relative_k_proj", A "linear_pos"),
    N(LAYER "self_attn.bias_u", A "pos_bias_u"),
    N(LAYER "self_attn.bias_v", A "pos_bias_v"),
    N_AXES(LAYER "conv.pointwise_conv1.weight", A "conv_pw1.weight",
           "o, i, 1 > o, i"),
    N_AXES(LAYER "conv.pointwise_conv1.bias", A "conv_pw1.bias",
           "x > 1, x, 1, 1"),
    N_AXES(LAYER "conv.pointwise_conv2.weight", A "conv_pw2.weight",
           "o, i, 1 > o, i"),
    N_AXES(LAYER "conv.pointwise_conv2.bias", A "conv_pw2.bias",
           "x > 1, x, 1, 1"),
    N_AXES(LAYER "conv.depthwise_conv.weight", A "conv_dw.weight",
           "o, 1, taps > 1, 1, o, taps"),
    N(LAYER "conv.depthwise_conv.bias", A "conv_dw.bias"),
    N(LAYER "conv.norm.weight", A "conv_norm.weight"),
    N(LAYER "conv.norm.bias", A "conv_norm.bias"),
    N(LAYER "conv.norm.running_mean", A "conv_norm_mean"),
    N(LAYER "conv.norm.running_var", A "conv_norm_var"),
    N("sound_projection.norm", "mm.a.norm_pre"),
    N("sound_projection.linear1", "mm.a.mlp.1"),
    N("sound_projection.linear2", "mm.a.mlp.2"),
    END_NAMES,
};
#undef LAYER

static bool has_sound(const struct gg_hf_config *cfg)
{
    return json_is_object(gg_hf_config_get(cfg, "sound_config"));
}

/* The filters before the layers halve the length three times. */
static enum gguf_status parakeet_check(struct gguf_convert *c,
                                       struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    GG_TRY(radio_image(c, err));
    return num_of(&cfg, "audio.subsampling_factor") == 8 &&
                   fmod(num_of(&cfg, "audio.conv_kernel_size"), 2) == 1
               ? GGUF_OK
               : gg_projector_refuse(
                     "sound_config: expected a subsampling_factor of 8 and an "
                     "odd conv_kernel_size, which programs assume",
                     err);
}

/* ---- Step3-VL ---- */

#define LAYER "transformer.resblocks.%."
static double no_below(const struct gg_hf_config *cfg, int64_t no)
{
    (void)cfg;
    return (double)no - 1;
}

static const struct gg_convert_name step3[] = {
    N("conv1", "v.patch_embd"),
    N("ln_pre", "v.pre_ln"),
    N("positional_embedding", "v.position_embd.weight"),
    N(LAYER "ln_1", V "ln1"),
    N(LAYER "ln_2", V "ln2"),
    N(LAYER "attn.in_proj_weight", V "attn_qkv.weight"),
    N(LAYER "attn.in_proj_bias", V "attn_qkv.bias"),
    N(LAYER "attn.out_proj", V "attn_out"),
    N(LAYER "mlp.c_fc", V "ffn_up"),
    N(LAYER "mlp.c_proj", V "ffn_down"),
    N(LAYER "ls_1.gamma", V "ls1.weight"),
    N(LAYER "ls_2.gamma", V "ls2.weight"),
    N(LAYER "ls_1.weight", V "ls1.weight"),
    N(LAYER "ls_2.weight", V "ls2.weight"),
    { .from = "vit_downsampler%", .to = "mm.%", .layer_of = no_below },
    N("vit_large_projector", "mm.model.fc"),
    END_NAMES,
};
#undef LAYER

static double step3_ff(const struct gg_hf_config *cfg)
{
    return rint(num_of(cfg, "vision.hidden_size vision.width") *
                num_or(cfg, "vision.mlp_ratio", 8960.0 / 1536));
}

static double step3_scale(const struct gg_hf_config *cfg)
{
    const double stride = num_of(cfg, "understand_projector_stride");
    return stride * stride;
}

static void step3_back(struct gg_back_maker *m)
{
    gg_back_put_num(m, "understand_projector_stride",
                    sqrt(num_of(&m->keys, "vision.projector.scale_factor")));
    gg_projector_put_mlp_ratio(m);
}

/* Programs know the sizes of the published model only. */
static enum gguf_status step3_check(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    GG_TRY(gg_projector_default_clip_image(c, err));
    return num_of(&cfg, "understand_projector_stride") == 2 &&
                   num_of(&cfg, "vision.image_size") == 728
               ? GGUF_OK
               : gg_projector_refuse(
                     "understand_projector_stride and image_size: expected 2 "
                     "and 728, which programs assume",
                     err);
}

const struct gg_projector gg_projector_family_radio[] = {
    /* a tower for sound beside that for images */
    { .arch = { .classes = "NemotronH_Nano_VL_V2 RADIOModel",
                .when = has_sound,
                .names = { radio, parakeet },
                .sizes = radio_sizes,
                CLIP("vision_model.radio_model.model. mlp1. sound_encoder. "
                     "sound_projection.",
                     PREFIX),
                .unused = PREFIX "patch_generator.video_embedder "
                                 "*num_batches_tracked",
                .always_f32 = "a.conv1d. .conv_",
                .keys = ROWS(RADIO_KEYS, AUDIO, VISION_TYPE("nemotron_v2_vl"),
                             AUDIO_TYPE("parakeet"), AUDIO_EPS(NULL, 1e-5),
                             NUMBER("audio.subsampling_factor",
                                    "audio.subsampling_factor"),
                             NUMBER("audio.conv_kernel_size",
                                    "audio.conv_kernel_size")) },
      .vision = "vision_config",
      .audio = "sound_config",
      .needs = "audio.subsampling_factor audio.conv_kernel_size",
      .check = parakeet_check,
      .add_tensors = resize_positions,
      .no_back = RESIZED_BACK },
    { .arch = { .classes = "NemotronH_Nano_VL_V2 RADIOModel",
                .names = { radio },
                .sizes = radio_sizes,
                CLIP("vision_model.radio_model.model. mlp1.", PREFIX),
                .unused = PREFIX "patch_generator.video_embedder",
                .keys = ROWS(RADIO_KEYS, TYPE("nemotron_v2_vl")) },
      .vision = "vision_config",
      .check = radio_image,
      .add_tensors = resize_positions,
      .no_back = RESIZED_BACK },
    { .arch = { .classes = "StepVLForConditionalGeneration "
                           "Step3p7ForConditionalGeneration",
                .names = { step3 },
                CLIP("vision_model. vit_large_projector.", "vision_model."),
                .instead = { { "vision.hidden_size", "vision.width" },
                             { "vision.num_hidden_layers", "vision.layers" },
                             { "vision.num_attention_heads",
                               "vision.heads" } },
                .back = step3_back,
                .keys = ROWS(
                    NUMBER("vision.feed_forward_length",
                           "vision.intermediate_size"),
                    OF("vision.feed_forward_length", U32, step3_ff, IN_BACK),
                    VISION, TYPE("step3vl"),
                    EPS("vision.layer_norm_eps", 1e-5),
                    OF("vision.projector.scale_factor", U32, step3_scale,
                       IN_BACK),
                    ALWAYS("vision.preproc_image_size", U32, 3024)) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .check = step3_check },
    { .arch = { .classes = NULL } },
};
