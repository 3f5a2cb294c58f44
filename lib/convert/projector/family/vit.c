/* SPDX-License-Identifier: MIT */
/* vit.c - projectors with towers of their own names: InternVL, Kimi-VL, CogVLM,
 * HunyuanVL, dots.ocr */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"

/* ---- InternVL, Intern-S1 ---- */

#define LAYER "encoder.layers.%."
static const struct gg_convert_name intern[] = {
    N("embeddings.class_embedding", "v.class_embd"),
    N("embeddings.patch_embedding", "v.patch_embd"),
    N("embeddings.position_embedding", "v.position_embd.weight"),
    N(LAYER "norm1", V "ln1"),
    N(LAYER "norm2", V "ln2"),
    SPLIT_QKV(LAYER "attn.qkv", V "attn_"),
    N(LAYER "attn.q_norm", V "attn_q_norm"),
    N(LAYER "attn.k_norm", V "attn_k_norm"),
    N(LAYER "attn.proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N(LAYER "ls1", V "ls1.weight"),
    N(LAYER "ls2", V "ls2.weight"),
    N("mlp1.%", "mm.model.mlp.%"),
    END_NAMES,
};
#undef LAYER
#define LAYER "encoder.layer.%."
/* Names of transformers. */
static const struct gg_convert_name intern_s1[] = {
    N("embeddings.cls_token", "v.class_embd"),
    N("embeddings.patch_embeddings.projection", "v.patch_embd"),
    N("embeddings.position_embeddings", "v.position_embd.weight"),
    N(LAYER "attention.q_proj", V "attn_q"),
    N(LAYER "attention.k_proj", V "attn_k"),
    N(LAYER "attention.v_proj", V "attn_v"),
    N(LAYER "attention.q_norm", V "attn_q_norm"),
    N(LAYER "attention.k_norm", V "attn_k_norm"),
    N(LAYER "attention.projection_layer", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N(LAYER "layernorm_before", V "ln1"),
    N(LAYER "layernorm_after", V "ln2"),
    N(LAYER "lambda_1", V "ls1.weight"),
    N(LAYER "lambda_2", V "ls2.weight"),
    N("multi_modal_projector.layer_norm", "mm.model.mlp.0"),
    N("multi_modal_projector.linear_1", "mm.model.mlp.1"),
    N("multi_modal_projector.linear_2", "mm.model.mlp.3"),
    END_NAMES,
};
#undef LAYER

static double intern_scale(const struct gg_hf_config *cfg)
{
    return gg_projector_inverse(cfg, "downsample_ratio");
}

static void put_downsample_ratio(struct gg_back_maker *m)
{
    gg_projector_put_inverse(m, "downsample_ratio");
}

/* ---- Kimi-VL, Kimi-K2.5 ---- */

#define LAYER "encoder.blocks.%."
static const struct gg_convert_name kimi[] = {
    N("patch_embed.proj", "v.patch_embd"),
    N(LAYER "norm0", V "ln1"),
    N(LAYER "norm1", V "ln2"),
    N(LAYER "wo", V "attn_out"),
    N(LAYER "mlp.fc0", V "ffn_up"),
    N(LAYER "mlp.fc1", V "ffn_down"),
    N("encoder.final_layernorm", "v.post_ln"),
    N("multi_modal_projector.pre_norm", "mm.input_norm"),
    N("multi_modal_projector.linear_1", "mm.1"),
    N("multi_modal_projector.linear_2", "mm.2"),
    END_NAMES,
};
static const struct gg_convert_name kimi_vl[] = {
    N_AXES("patch_embed.pos_emb.weight", "v.position_embd.weight",
           "y, x, c > y x, c"),
    SPLIT_QKV(LAYER "wqkv", V "attn_"),
    END_NAMES,
};
/* Rows of a head are numbers of two axes in turn, as pairs. The file has all
 * pairs of an axis side by side. */
#define AXES_APART "heads d 2 2, * > heads 2 d 2, *"
static const struct gg_convert_name kimi_k25[] = {
    N("patch_embed.pos_emb", "v.position_embd"),
    N("mm_projector.pre_norm", "mm.input_norm"),
    N("mm_projector.proj.0", "mm.1"),
    N("mm_projector.proj.2", "mm.2"),
    N("mm_projector.proj.linear_1", "mm.1"),
    N("mm_projector.proj.linear_2", "mm.2"),
    N("mm_projector.linear_1", "mm.1"),
    N("mm_projector.linear_2", "mm.2"),
    N_AXES(LAYER "wqkv", V "attn_qkv", "3[1@0] " AXES_APART),
    N_AXES(LAYER "wqkv", V "attn_qkv", "3[1@1] " AXES_APART),
    N_AXES(LAYER "wqkv", V "attn_qkv", "3[1@2] r, * > r, *"),
    END_NAMES,
};
#undef LAYER
static const struct gg_convert_size kimi_sizes[] = {
    { .name = "heads",
      .hf = "vision.vt_num_attention_heads vision.num_attention_heads" },
    { .name = NULL }
};

/* Sides of the grid of positions, which files have as a list. */
static const struct gg_convert_size kimi_vl_sizes[] = {
    { .name = "y", .hf = "vision.init_pos_emb_height" },
    { .name = "x", .hf = "vision.init_pos_emb_width" },
    { .name = NULL }
};

/* Set the sides of a square of positions. */
static void kimi_vl_back(struct gg_back_maker *m)
{
    const double n = gg_projector_count_tensor(m, "v.position_embd.weight", 1);
    gg_back_put_num(m, "vision.init_pos_emb_height", floor(sqrt(n)));
    gg_back_put_num(m, "vision.init_pos_emb_width", floor(sqrt(n)));
}

static void put_patch_limit(struct gg_back_maker *m)
{
    const double patch = num_of(&m->keys, "vision.patch_size");
    gg_back_put_num(m, "image.in_patch_limit",
                    num_of(&m->keys, "vision.image_max_pixels") /
                        (patch * patch));
}

static double kimi_image(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "vision.init_pos_emb_height", 64) *
           num_or(cfg, "vision.patch_size", 14);
}

/* Pixels of n patches. */
static double kimi_pixels(const struct gg_hf_config *cfg, double n)
{
    const double patch = num_or(cfg, "vision.patch_size", 14);
    return n * patch * patch;
}

static double kimi_min_pixels(const struct gg_hf_config *cfg)
{
    return kimi_pixels(cfg, 8);
}

static double kimi_max_pixels(const struct gg_hf_config *cfg)
{
    return kimi_pixels(cfg, num_or(cfg, "image.in_patch_limit", 16384));
}

static double kimi_gelu(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "vision.projector_hidden_act", -1,
                                "gelu") != 0;
}

/* ---- CogVLM ---- */

#define LAYER "transformer.layers.%."
static const struct gg_convert_name cogvlm[] = {
    N("boi", "v.boi"),
    N("eoi", "v.eoi"),
    N("patch_embedding.cls_embedding", "v.class_embd"),
    N("patch_embedding.proj", "v.patch_embd"),
    N("patch_embedding.position_embedding", "v.position_embd"),
    N(LAYER "input_layernorm", V "ln1"),
    N(LAYER "post_attention_layernorm", V "ln2"),
    N(LAYER "attention.query_key_value", V "attn_qkv"),
    N(LAYER "attention.dense", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N("linear_proj.linear_proj", "mm.model.fc"),
    N("linear_proj.norm1", "mm.post_fc_norm"),
    N("linear_proj.dense_h_to_4h", "mm.up"),
    N("linear_proj.gate_proj", "mm.gate"),
    N("linear_proj.dense_4h_to_h", "mm.down"),
    END_NAMES,
};
#undef LAYER

/* ---- HunyuanVL ---- */

#define LAYER "layers.%."
static const struct gg_convert_name hunyuan[] = {
    N("embeddings.patch_embedding", "v.patch_embd"),
    /* the first row is that of a class token, which images do not have */
    N_AXES("embeddings.position_embedding.weight", "v.position_embd.weight",
           "[@1] r, c > r, c"),
    N(LAYER "input_layernorm", V "ln1"),
    N(LAYER "post_attention_layernorm", V "ln2"),
    N(LAYER "self_attn.q_proj", V "attn_q"),
    N(LAYER "self_attn.k_proj", V "attn_k"),
    N(LAYER "self_attn.v_proj", V "attn_v"),
    N(LAYER "self_attn.o_proj", V "attn_out"),
    N(LAYER "mlp.dense_h_to_4h", V "ffn_up"),
    N(LAYER "mlp.dense_4h_to_h", V "ffn_down"),
    N("perceive.before_rms", "mm.pre_norm"),
    N("perceive.after_rms", "mm.post_norm"),
    N("perceive.image_begin", "mm.image_begin"),
    N("perceive.image_end", "mm.image_end"),
    N("perceive.image_newline", "v.image_newline"),
    N("perceive.image_sep", "v.view_seperator"),
    N("perceive.proj.0", "mm.0"),
    N("perceive.proj.2", "mm.2"),
    N("perceive.mlp", "mm.model.fc"),
    END_NAMES,
};
#undef LAYER

/* ---- dots.ocr ---- */

#define LAYER "blocks.%."
static const struct gg_convert_name dots[] = {
    N("patch_embed.patchifier.proj", "v.patch_embd"),
    N("patch_embed.patchifier.norm", "v.pre_ln"),
    N(LAYER "norm1", V "ln1"),
    N(LAYER "norm2", V "ln2"),
    N(LAYER "attn.qkv", V "attn_qkv"),
    N(LAYER "attn.proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_gate"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    N(LAYER "mlp.fc3", V "ffn_up"),
    N("post_trunk_norm", "mm.post_norm"),
    N("merger.ln_q", "mm.input_norm"),
    N("merger.mlp.0", "mm.0"),
    N("merger.mlp.2", "mm.2"),
    END_NAMES,
};
#undef LAYER

#define KIMI_K25_KEYS                                                         \
    OF("vision.image_size", U32, kimi_image, NO_BACK), VISION,                \
        TYPE("kimik25"),                                                      \
        ELSE("vision.pos_emb_height", U32, "vision.init_pos_emb_height", 64), \
        ELSE("vision.pos_emb_width", U32, "vision.init_pos_emb_width", 64),   \
        ELSE("vision.pos_emb_time", U32, "vision.init_pos_emb_time", 4),      \
        OF("use_gelu", BOOL, kimi_gelu, NO_BACK),                             \
        EPS("vision.projector_ln_eps", 1e-5),                                 \
        ELSE("vision.projector.scale_factor", U32,                            \
             "vision.merge_kernel_size", 2),                                  \
        OF("vision.image_min_pixels", U32, kimi_min_pixels, NO_BACK),         \
        OF("vision.image_max_pixels", U32, kimi_max_pixels, put_patch_limit)

const struct gg_projector gg_projector_family_vit[] = {
    { .arch = { .classes = "InternVisionModel",
                .names = { intern, intern_s1 },
                CLIP("vision_model. vision_tower. mlp1. "
                     "multi_modal_projector.",
                     "vision_model. vision_tower."),
                .keys = ROWS(VISION, TYPE("internvl"),
                             F32("vision.attention.layer_norm_epsilon",
                                 "vision.layer_norm_eps"),
                             GELU_OR_SILU,
                             OF("vision.projector.scale_factor", U32,
                                intern_scale, put_downsample_ratio),
                             ABOVE_0("vision.preproc_min_tiles", U32,
                                     "min_dynamic_patch"),
                             ABOVE_0("vision.preproc_max_tiles", U32,
                                     "max_dynamic_patch")) },
      .vision = "vision_config",
      .needs = "vision.projector.scale_factor",
      .text = "llm_config",
      .check = gg_projector_check_activation },
    { .arch = { .classes = "KimiVLForConditionalGeneration",
                .names = { kimi_vl, kimi },
                .sizes = kimi_vl_sizes,
                .back = kimi_vl_back,
                CLIP("vision_tower. multi_modal_projector.", "vision_tower."),
                .keys = ROWS(ALWAYS("vision.image_size", U32, 896), VISION,
                             TYPE("kimivl"), GELU,
                             ALWAYS("vision.projector.scale_factor", U32, 2),
                             EPS("vision.layer_norm_eps", 1e-5)) },
      .vision = "vision_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "KimiK25ForConditionalGeneration "
                           "Glm5vForConditionalGeneration",
                .names = { kimi_k25, kimi },
                .sizes = kimi_sizes,
                CLIP("vision_tower. mm_projector.", "vision_tower."),
                .unused = "*pos_emb.time_weight",
                .instead = { { "vision.hidden_size", "vision.vt_hidden_size" },
                             { "vision.intermediate_size",
                               "vision.vt_intermediate_size" },
                             { "vision.num_hidden_layers",
                               "vision.vt_num_hidden_layers" },
                             { "vision.num_attention_heads",
                               "vision.vt_num_attention_heads" } },
                .keys = ROWS(KIMI_K25_KEYS) },
      .vision = "vision_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "CogVLMForCausalLM",
                .names = { cogvlm },
                CLIP("vision.", "vision."),
                .keys = ROWS(VISION, EPS("vision.layer_norm_eps", 1e-6),
                             TYPE("cogvlm")) },
      .vision = "vision_config",
      .leading = "model." },
    { .arch = { .classes = "HunYuanVLForConditionalGeneration",
                .names = { hunyuan },
                CLIP("vit.", "vit."),
                .keys =
                    ROWS(ELSE("vision.image_size", U32,
                              "vision.image_size vision.max_image_size", 2048),
                         VISION, TYPE("hunyuanvl"), GELU,
                         EPS("vision.rms_norm_eps", 1e-5),
                         ELSE("vision.spatial_merge_size", U32,
                              "vision.spatial_merge_size", 2),
                         IMAGE_PIXELS) },
      .vision = "vision_config",
      .needs = "vision.image_min_pixels vision.image_max_pixels",
      .no_back = "the first row of its positions is not in files" },
    { .arch = { .classes = "DotsOCRForCausalLM",
                .names = { dots },
                CLIP("vision_tower.", "vision_tower."),
                .keys =
                    ROWS(ALWAYS("vision.image_size", U32, 0), VISION,
                         TYPE("dots_ocr"), IMAGE_PIXELS,
                         F32("vision.attention.layer_norm_epsilon",
                             "vision.rms_norm_eps"),
                         SCALE_FACTOR("vision.spatial_merge_size"), SILU) },
      .vision = "vision_config",
      .needs = "vision.image_min_pixels vision.image_max_pixels "
               "vision.projector.scale_factor" },
    { .arch = { .classes = NULL } },
};
