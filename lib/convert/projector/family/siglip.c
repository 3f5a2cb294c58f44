/* SPDX-License-Identifier: MIT */
/* siglip.c - projectors with a tower like CLIP's or SigLIP's: Gemma 3,
 * Idefics 3, SmolVLM, LFM2-VL, Phi-4, Janus, Llama 4, MiniMax M3, MiniCPM-V,
 * PaddleOCR-VL, Youtu-VL */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#define OVER_CLIP(LIST)                                                       \
    {                                                                         \
        LIST, gg_projector_names_clip                                         \
    }
#define TOWERS                                                                \
    "vision_tower.vision_tower.vision_model. vision_tower.vision_model. "     \
    "vision_tower. visual.vision_model. siglip2.vision_model. vision_model."
#define SIGLIP_TOWER "vision_tower.vision_model."
/* Rows of a patch as pixels of three colours become colours of pixels. */
#define PIXELS_FIRST(P)                                                       \
    N_AXES("embeddings.patch_embedding.weight", "v.patch_embd.weight",        \
           "o, " P " " P " c > o, c, " P ", " P)

static const struct gg_convert_size patch_sizes[] = {
    { .name = "patch", .hf = "vision.patch_size" }, { .name = NULL }
};

/* ---- Gemma 3 ---- */

static const struct gg_convert_name gemma3[] = {
    N("multi_modal_projector.mm_input_projection_weight",
      "mm.input_projection.weight"),
    N_HOW("multi_modal_projector.mm_soft_emb_norm", "mm.soft_emb_norm",
          PLUS_1),
    END_NAMES,
};

/* Patches of a side that become one; NAN if it is 4, the default of readers. */
static double gemma3_scale(const struct gg_hf_config *cfg)
{
    const double tokens = num_or(cfg, "image.image_seq_length", 256);
    const double side = floor(num_of(cfg, "vision.image_size") /
                              num_of(cfg, "vision.patch_size"));
    const double scale = floor(side / floor(sqrt(tokens)));
    return scale > 0 && scale != 4 ? scale : NAN;
}

/* ---- Idefics 3, SmolVLM ---- */

static const struct gg_convert_name idefics[] = {
    N("connector.modality_projection.proj", "mm.model.fc"),
    END_NAMES,
};

/* Defaults of SmolVLM in transformers 4.57, configuration_smolvlm.py. */
static double if_smolvlm(const struct gg_hf_config *cfg, double value)
{
    return gg_hf_config_is_word(cfg, "vision.model_type", -1,
                                "smolvlm_vision") == 1
               ? value
               : NAN;
}

static double smolvlm_width(const struct gg_hf_config *cfg)
{
    return if_smolvlm(cfg, 1152);
}

static double smolvlm_heads(const struct gg_hf_config *cfg)
{
    return if_smolvlm(cfg, 16);
}

static double smolvlm_ff(const struct gg_hf_config *cfg)
{
    return if_smolvlm(cfg, 3072);
}

static double smolvlm_layers(const struct gg_hf_config *cfg)
{
    return if_smolvlm(cfg, 12);
}

/* ---- LFM2-VL ---- */

static const struct gg_convert_name lfm2[] = {
    PIXELS_FIRST("patch"),
    N("multi_modal_projector.layer_norm", "mm.input_norm"),
    N("multi_modal_projector.linear_1", "mm.1"),
    N("multi_modal_projector.linear_2", "mm.2"),
    END_NAMES,
};

/* Layers up to the one whose vectors are used: -1 is the last. */
static double lfm2_layers(const struct gg_hf_config *cfg)
{
    return num_of(cfg, LAYERS("vision")) +
           num_or(cfg, "vision_feature_layer", -1) + 1;
}

/* ---- Phi-4 ---- */

static const struct gg_convert_name phi4[] = {
    PIXELS_FIRST("patch"),
    N("mm_projector.0", "mm.0"),
    N("mm_projector.2", "mm.2"),
    END_NAMES,
};
static double patch_pixels(const struct gg_hf_config *cfg, const char *names)
{
    const double patch = num_of(cfg, "vision.patch_size");
    return num_of(cfg, names) * patch * patch;
}

static double phi4_min_pixels(const struct gg_hf_config *cfg)
{
    return patch_pixels(cfg, "image.min_num_patches min_num_patches");
}

static double phi4_max_pixels(const struct gg_hf_config *cfg)
{
    return patch_pixels(cfg, "image.max_num_patches max_num_patches");
}

/* The vectors of the last layer but one are used: the last layer is left out.
 * Images are as large as the positions. */
static enum gguf_status phi4_count(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double layers = num_of(&cfg, LAYERS("vision"));
    const double patch = num_of(&cfg, "image.patch_size");
    const struct gg_safetensors_tensor *t;
    struct gg_str_esc e;
    char text[GG_PROJECTOR_NUMBER];
    if (!(layers >= 2) || layers > GG_HF_CONFIG_LAYERS)
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: num_hidden_layers of the tower is "
                            "%s, expected 2 to %d",
                            gg_projector_number(layers, text),
                            (int)GG_HF_CONFIG_LAYERS);
    if (!(patch >= 1))
        return gg_projector_refuse("patch_size is missing; it is in "
                                   "preprocessor_config.json",
                                   err);
    if (!gg_projector_find_tensor(c, "embeddings.position_embedding.weight",
                                  &t) ||
        t->n_dims != 2)
        return gg_projector_refuse("the folder lacks position embeddings",
                                   err);
    const double side = floor(sqrt((double)t->ne[1]));
    if (side * side != (double)t->ne[1])
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s': %" PRId64
                            " positions, expected a square",
                            gg_str_esc(&e, t->name), t->ne[1]);
    c->n_layers = (int64_t)layers - 1;
    GG_TRY(gg_projector_set(c, "vision.n_layers", layers - 1, err));
    GG_TRY(gg_projector_set(c, "vision.patch_size", patch, err));
    return gg_projector_set(c, "vision.image_size", side * patch, err);
}

/* ---- Janus ---- */

static double next_layer(const struct gg_hf_config *cfg, int64_t layer)
{
    (void)cfg;
    return (double)layer + 1;
}

static const struct gg_convert_name janus[] = {
    N("encoder.layers.%.self_attn.projection_layer", V "attn_out"),
    N("aligner.fc1", "mm.0"),
    { .from = "aligner.hidden_layers.%",
      .to = "mm.%",
      .layer_of = next_layer },
    END_NAMES,
};

static double janus_ff(const struct gg_hf_config *cfg)
{
    return rint(num_of(cfg, "vision.hidden_size") *
                num_of(cfg, "vision.mlp_ratio"));
}

/* The ratio stands in place of the width of the feed-forward part. */
static void put_ratio(struct gg_back_maker *m)
{
    gg_projector_put_mlp_ratio(m);
    json_object_del(json_object_get(m->root, "vision"), "intermediate_size");
}

/* ---- Llama 4 ---- */

#define LAYER "model.layers.%."
static const struct gg_convert_name llama4[] = {
    N("class_embedding", "v.class_embd"),
    N("positional_embedding_vlm", "v.position_embd.weight"),
    N("patch_embedding.linear", "v.patch_embd"),
    N("layernorm_pre", "v.pre_ln"),
    N("layernorm_post", "v.post_ln"),
    N(LAYER "input_layernorm", V "ln1"),
    N(LAYER "post_attention_layernorm", V "attn_post_norm"),
    N(LAYER "self_attn.q_proj", V "attn_q"),
    N(LAYER "self_attn.k_proj", V "attn_k"),
    N(LAYER "self_attn.v_proj", V "attn_v"),
    N(LAYER "self_attn.o_proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N("vision_adapter.mlp.fc1", "mm.model.mlp.1"),
    N("vision_adapter.mlp.fc2", "mm.model.mlp.2"),
    N("multi_modal_projector.linear_1", "mm.model.fc"),
    END_NAMES,
};
#undef LAYER

static double llama4_scale(const struct gg_hf_config *cfg)
{
    return gg_projector_inverse(cfg, "vision.pixel_shuffle_ratio");
}

static void put_shuffle_ratio(struct gg_back_maker *m)
{
    gg_projector_put_inverse(m, "vision.pixel_shuffle_ratio");
    gg_projector_put_gelu(m);
}

static enum gguf_status llama4_check(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    return isnan(gg_projector_has_gelu(&cfg))
               ? gg_projector_refuse("vision_config.hidden_act: expected gelu",
                                     err)
               : GGUF_OK;
}

/* ---- MiniMax M3 ---- */

/* Rows of a head: for rotation by three axes, the first half of each axis, the
 * second half of each axis, and rows without rotation. The file has the two
 * halves of an axis side by side. */
static enum gguf_status minimax_heads(struct gg_convert_view *v,
                                      struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(v->c);
    const double heads = num_of(&cfg, HEADS("vision"));
    const bool is_matrix = v->n_dims == 2;
    const uint64_t row = is_matrix ? (uint64_t)v->ne[0] : 1;
    const double rows = (double)v->ne[is_matrix ? 1 : 0];
    if (!(heads >= 1) || rows != 80 * heads)
        return gg_convert_refuse_view(v, "has heads of other than 80 rows",
                                      err);
    enum { HALF_AXIS = 13, AXES = 3, ROTATED = 78, HEAD = 80 };
    unsigned n = 0;
    v->part.ne[n] = row * HALF_AXIS;
    v->part.step[n++] = 1;
    v->part.ne[n] = 2;
    v->part.step[n++] = row * HALF_AXIS * AXES;
    v->part.ne[n] = AXES;
    v->part.step[n++] = row * HALF_AXIS;
    v->part.n_dims = n;
    v->rest = v->part;
    v->rest.n_dims = 1;
    v->rest.first = ROTATED * row;
    v->rest.ne[0] = (HEAD - ROTATED) * row;
    v->times = (uint64_t)heads;
    v->every = HEAD * row;
    return GGUF_OK;
}

static const struct gg_convert_transform minimax_rope = {
    .text = "rows of heads from halves to axes", .view = minimax_heads
};

static const struct gg_convert_name minimax[] = {
    TWO_IMAGES("embeddings.patch_embedding"),
    N_HOW("encoder.layers.%.self_attn.q_proj", V "attn_q", minimax_rope),
    N_HOW("encoder.layers.%.self_attn.k_proj", V "attn_k", minimax_rope),
    N("multi_modal_projector.linear_1", "mm.1"),
    N("multi_modal_projector.linear_2", "mm.2"),
    N("patch_merge_mlp.linear_1", "mm.merger.fc1"),
    N("patch_merge_mlp.linear_2", "mm.merger.fc2"),
    END_NAMES,
};

/* ---- MiniCPM-V 4.6 ---- */

#define MERGER "vit_merger."
static const struct gg_convert_name minicpm[] = {
    N("merger.mlp.0.pre_norm", "mm.input_norm"),
    N("merger.mlp.0.linear_1", "mm.up"),
    N("merger.mlp.0.linear_2", "mm.down"),
    N(MERGER "layer_norm1", "v.vit_merger.ln1"),
    N(MERGER "pre_norm", "v.vit_merger.ds_ln"),
    N(MERGER "linear_1", "v.vit_merger.ds_ffn_up"),
    N(MERGER "linear_2", "v.vit_merger.ds_ffn_down"),
    N(MERGER "self_attn.q_proj", "v.vit_merger.attn_q"),
    N(MERGER "self_attn.k_proj", "v.vit_merger.attn_k"),
    N(MERGER "self_attn.v_proj", "v.vit_merger.attn_v"),
    N(MERGER "self_attn.out_proj", "v.vit_merger.attn_out"),
    END_NAMES,
};
#undef MERGER

/* Layers after which windows of vectors are merged. */
static double insert_layer(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "insert_layer_id vision.insert_layer_id", 6);
}

static bool is_mode(const struct gg_hf_config *cfg, const char *mode)
{
    return gg_hf_config_is_word(cfg, "image.downsample_mode downsample_mode",
                                -1, mode) == 1;
}

/* Vectors of a side that become one. */
static double minicpm_scale(const struct gg_hf_config *cfg)
{
    return is_mode(cfg, "4x") ? 2 : 4;
}

static void minicpm_back(struct gg_back_maker *m)
{
    const double scale = num_of(&m->keys, "vision.projector.scale_factor");
    gg_back_put_word(m, "image.downsample_mode", scale == 2 ? "4x" : "16x");
    gg_back_put_num(m, "vision.insert_layer_id",
                    num_of(&m->keys, "vision.wa_layer_indexes"));
}

static enum gguf_status minicpm_check(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    if (gg_hf_config_get(&cfg, "image.downsample_mode downsample_mode") &&
        !is_mode(&cfg, "4x") && !is_mode(&cfg, "16x"))
        return gg_projector_refuse("downsample_mode: expected 4x or 16x", err);
    return GGUF_OK;
}

static enum gguf_status minicpm_keys(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double no = insert_layer(&cfg);
    const int32_t layer = no >= 0 && no <= INT32_MAX ? (int32_t)no : -1;
    if ((double)layer != no)
        return gg_projector_refuse("insert_layer_id: expected a layer", err);
    return gg_projector_put_ints(c, "vision.wa_layer_indexes", &layer, 1, err);
}

/* ---- PaddleOCR-VL ---- */

static const struct gg_convert_name paddle[] = {
    N("mlp_AR.pre_norm", "mm.input_norm"),
    N("mlp_AR.linear_1", "mm.1"),
    N("mlp_AR.linear_2", "mm.2"),
    END_NAMES,
};

static double paddle_image(const struct gg_hf_config *cfg)
{
    return floor(sqrt(num_of(cfg, MOST_PIXELS)));
}

/* ---- Youtu-VL ---- */

static const struct gg_convert_name youtu[] = {
    N("merger.ln_q", "mm.input_norm"),
    N("merger.mlp.0", "mm.0"),
    N("merger.mlp.2", "mm.2"),
    END_NAMES,
};

/* Is the activation GELU, in one of its names in transformers? */
static double youtu_gelu(const struct gg_hf_config *cfg)
{
    static const char *const names[] = { "gelu", "gelu_pytorch_tanh",
                                         "gelu_fast", "gelu_new",
                                         "gelu_accurate" };
    if (!gg_hf_config_get(cfg, "vision.hidden_act"))
        return 1;
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (gg_hf_config_is_word(cfg, "vision.hidden_act", -1, names[i]) == 1)
            return 1;
    return NAN;
}

static enum gguf_status youtu_check(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    if (isnan(youtu_gelu(&cfg)) && isnan(gg_projector_has_silu(&cfg)))
        return gg_projector_refuse(
            "vision_config.hidden_act: expected gelu or silu", err);
    return gg_hf_config_get(&cfg, "vision.fullatt_block_indexes")
               ? GGUF_OK
               : gg_projector_refuse(
                     "vision_config.fullatt_block_indexes is missing", err);
}

const struct gg_projector gg_projector_family_siglip[] = {
    { .arch = { .classes = "Gemma3ForConditionalGeneration",
                .names = OVER_CLIP(gemma3),
                CLIP("vision_tower. multi_modal_projector.", TOWERS),
                .unused = "vision_tower.vision_model.head. "
                          "vision_tower.head.",
                .always_f16 = "mm.input_projection",
                .always_f32 = "v.patch_embd",
                .before = SIGLIP_TOWER,
                .back = gg_projector_put_image_tokens,
                .keys = ROWS(VISION, TYPE("gemma3"),
                             EPS("vision.layer_norm_eps", 1e-6), GELU,
                             OF("vision.projector.scale_factor", U32,
                                gemma3_scale, IN_BACK)) },
      .vision = "vision_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "Idefics3ForConditionalGeneration "
                           "SmolVLMForConditionalGeneration",
                .names = OVER_CLIP(idefics),
                CLIP("vision_model. connector.", TOWERS),
                .always_f32 = "v.patch_embd",
                .keys = ROWS(
                    VISION, TYPE("idefics3"),
                    OF("vision.embedding_length", U32, smolvlm_width, NO_BACK),
                    OF("vision.attention.head_count", U32, smolvlm_heads,
                       NO_BACK),
                    OF("vision.feed_forward_length", U32, smolvlm_ff, NO_BACK),
                    OF("vision.block_count", U32, smolvlm_layers, NO_BACK),
                    EPS("vision.layer_norm_eps", 1e-5),
                    ELSE("vision.projector.scale_factor", U32, "scale_factor",
                         2),
                    GELU,
                    NUMBER("vision.preproc_image_size",
                           "image.size.longest_edge "
                           "vision.image_size")) },
      .vision = "vision_config",
      .leading = "model.",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "Lfm2VlForConditionalGeneration",
                .names = OVER_CLIP(lfm2),
                .sizes = patch_sizes,
                CLIP("vision_tower. multi_modal_projector.", TOWERS),
                .before = SIGLIP_TOWER,
                .keys = ROWS(ALWAYS("vision.image_size", U32, 256),
                             OF("vision.block_count", U32, lfm2_layers,
                                gg_projector_put_layers),
                             VISION, TYPE("lfm2"),
                             F32("vision.attention.layer_norm_epsilon",
                                 "vision.layer_norm_eps"),
                             ELSE("vision.projector.scale_factor", U32,
                                  "downsample_factor", 2),
                             GELU) },
      .vision = "vision_config",
      .leading = "model.",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "Phi4ForCausalLMV Phi4MMForCausalLM",
                .names = OVER_CLIP(phi4),
                .sizes = patch_sizes,
                CLIP("vision_tower. mm_projector.", TOWERS),
                .unused = "vision_tower.vision_tower.vision_model.head. "
                          "vision_tower.vision_model.head. "
                          "vision_tower.vision_tower.vision_model.post_lay "
                          "vision_tower.vision_model.post_lay",
                .keys = ROWS(VISION, TYPE("phi4"),
                             OF("vision.image_min_pixels", U32,
                                phi4_min_pixels, NO_BACK),
                             OF("vision.image_max_pixels", U32,
                                phi4_max_pixels, NO_BACK),
                             GELU, EPS("vision.layer_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .needs = "vision.image_min_pixels vision.image_max_pixels",
      .add_tensors = phi4_count,
      .no_back = "the last layer of its tower is not in files" },
    { .arch = { .classes = "JanusForConditionalGeneration",
                .names = OVER_CLIP(janus),
                CLIP("vision_model. aligner.", TOWERS),
                .back = put_ratio,
                .keys = ROWS(
                    VISION, TYPE("janus_pro"),
                    OF("vision.feed_forward_length", U32, janus_ff, IN_BACK),
                    EPS("vision.layer_norm_eps", 1e-6), GELU_OR_SILU) },
      .vision = "vision_config",
      .leading = "model.",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "Llama4ForConditionalGeneration",
                .names = { llama4 },
                CLIP("vision_model. multi_modal_projector.", TOWERS),
                .keys = ROWS(VISION, TYPE("llama4"),
                             F32("vision.attention.layer_norm_epsilon",
                                 "vision.norm_eps"),
                             OF("vision.projector.scale_factor", U32,
                                llama4_scale, put_shuffle_ratio),
                             GELU) },
      .vision = "vision_config",
      .text = TEXT_CONFIG,
      .check = llama4_check },
    { .arch = { .classes = "MiniMaxM3SparseForConditionalGeneration",
                .names = OVER_CLIP(minimax),
                CLIP("vision_tower. multi_modal_projector. patch_merge_mlp.",
                     TOWERS),
                .before = SIGLIP_TOWER,
                .keys = ROWS(
                    VISION, TYPE("minimax_m3"), GELU,
                    EPS("vision.layer_norm_eps", 1e-5),
                    ELSE("vision.spatial_merge_size", U32,
                         "vision.img_token_compression_config.spatial_merge_"
                         "size",
                         2)) },
      .vision = "vision_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "MiniCPMV4_6ForConditionalGeneration",
                .names = OVER_CLIP(minicpm),
                CLIP("vision_tower. merger.", TOWERS),
                .before = "vision_tower.",
                .back = minicpm_back,
                .keys =
                    ROWS(NUMBER("vision.image_size", "image.scale_resolution"),
                         VISION, TYPE("minicpmv4_6"),
                         OF("vision.projector.scale_factor", U32,
                            minicpm_scale, IN_BACK),
                         GELU, EPS("vision.layer_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .leading = "model.",
      .text = TEXT_CONFIG,
      .check = minicpm_check,
      .add_keys = minicpm_keys },
    { .arch = { .classes = "PaddleOCRVisionModel "
                           "PaddleOCRVLForConditionalGeneration",
                .names = OVER_CLIP(paddle),
                CLIP("visual.vision_model. vision_model. mlp_AR.", TOWERS),
                .unused = "visual.vision_model.head. vision_model.head. "
                          "*packing_position_embedding.weight",
                .keys =
                    ROWS(OF("vision.image_size", U32, paddle_image, NO_BACK),
                         VISION, TYPE("paddleocr"), IMAGE_PIXELS, GELU,
                         EPS("vision.rms_norm_eps", 1e-6)) },
      .vision = "vision_config",
      .needs = "vision.image_min_pixels vision.image_max_pixels" },
    { .arch = { .classes = "YoutuVLForConditionalGeneration",
                .names = OVER_CLIP(youtu),
                CLIP("siglip2. merger.", TOWERS),
                .unused = "siglip2.vision_model.head.",
                .keys = ROWS(
                    ELSE("vision.image_size", U32, "vision.image_size", 560),
                    VISION, TYPE("youtuvl"),
                    EPS("vision.layer_norm_eps", 1e-6),
                    OF("use_gelu", BOOL, youtu_gelu, gg_projector_put_gelu),
                    OF("use_silu", BOOL, gg_projector_has_silu,
                       gg_projector_put_silu),
                    ELSE("vision.spatial_merge_size", U32,
                         "vision.spatial_merge_size", 2),
                    NUMBER("vision.window_size", "vision.window_size"),
                    U32("vision.wa_layer_indexes",
                        "vision.fullatt_block_indexes")) },
      .vision = "vision_config",
      .check = youtu_check },
    { .arch = { .classes = NULL } },
};
