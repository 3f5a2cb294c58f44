/* SPDX-License-Identifier: MIT */
/* deepseek.c - projectors of DeepSeek-OCR: SAM's tower (Kirillov et al.,
 * arXiv:2304.02643), then CLIP's tower or, in the second version, a small
 * language model */
#include "config.h"
#include "convert/projector/projector_row.h"

#define LAYER "sam_model.blocks.%."
#define TO    "v.sam.blk.%."
static const struct gg_convert_name sam[] = {
    N("sam_model.patch_embed.proj", "v.sam.patch_embd"),
    N("sam_model.pos_embed", "v.sam.pos_embd.weight"),
    N(LAYER "norm1", TO "pre_ln"),
    N(LAYER "norm2", TO "post_ln"),
    N(LAYER "attn.rel_pos_h", TO "attn.pos_h.weight"),
    N(LAYER "attn.rel_pos_w", TO "attn.pos_w.weight"),
    N(LAYER "attn.qkv", TO "attn.qkv"),
    N(LAYER "attn.proj", TO "attn.out"),
    N(LAYER "mlp.lin1", TO "mlp.lin1"),
    N(LAYER "mlp.lin2", TO "mlp.lin2"),
    N("sam_model.neck.%", "v.sam.neck.%"),
    N("sam_model.net_%", "v.sam.net_%"),
    N("projector.layers", "mm.model.fc"),
    N("image_newline", "v.image_newline"),
    N_AXES("view_seperator", "v.view_seperator", "x > 1, x"),
    END_NAMES,
};
#undef LAYER
#undef TO

#define LAYER "transformer.layers.%."
static const struct gg_convert_name clip[] = {
    N(LAYER "layer_norm1", V "ln1"),
    N(LAYER "layer_norm2", V "ln2"),
    N(LAYER "self_attn.qkv_proj", V "attn_qkv"),
    N(LAYER "self_attn.out_proj", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    END_NAMES,
};
#undef LAYER

#define QWEN  "qwen2_model."
#define LAYER QWEN "model.model.layers.%."
static const struct gg_convert_name qwen[] = {
    N(LAYER "input_layernorm", V "ln1"),
    N(LAYER "post_attention_layernorm", V "ln2"),
    N(LAYER "self_attn.q_proj", V "attn_q"),
    N(LAYER "self_attn.k_proj", V "attn_k"),
    N(LAYER "self_attn.v_proj", V "attn_v"),
    N(LAYER "self_attn.o_proj", V "attn_out"),
    N(LAYER "mlp.gate_proj", V "ffn_gate"),
    N(LAYER "mlp.up_proj", V "ffn_up"),
    N(LAYER "mlp.down_proj", V "ffn_down"),
    N(QWEN "model.model.norm", "v.post_ln"),
    N(QWEN "query_768", "v.resample_query_768"),
    N(QWEN "query_1024", "v.resample_query_1024"),
    END_NAMES,
};
#undef LAYER
#undef QWEN

#define CLIP_SIZE(NAME) "vision.width.clip-l-14-224." NAME
#define SAM_SIZE(NAME)  "vision.width.sam_vit_b." NAME

/* Width of CLIP's feed-forward part, as llama.cpp's converter computes it:
 * programs read the matrices' sizes. */
static double clip_ff(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, CLIP_SIZE("heads") " vision.heads");
}

/* Patches of a side that become one; NAN if it is 4. */
static double image_scale(const struct gg_hf_config *cfg)
{
    const double tokens = num_or(cfg, "image.image_seq_length", 256);
    const double image =
        num_of(cfg, CLIP_SIZE("image_size") " vision.image_size");
    const double patch =
        num_or(cfg, CLIP_SIZE("patch_size") " vision.patch_size", 16);
    const double scale = floor(floor(image / patch) / floor(sqrt(tokens)));
    return scale > 0 && scale != 4 ? scale : NAN;
}

static double most_tiles(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "architectures", -1,
                                "UnlimitedOCRForCausalLM") == 1
               ? 32
               : 9;
}

static void put_tokens_and_class(struct gg_back_maker *m)
{
    gg_projector_put_image_tokens(m);
    if (num_of(&m->keys, "vision.preproc_max_tiles") == 32)
        gg_back_put(m->root, "architectures",
                    json_pack("[s]", "UnlimitedOCRForCausalLM"));
}

#define SAM_KEYS                                                              \
    EPS("vision.layer_norm_eps", 1e-6), GELU,                                 \
        OF("vision.projector.scale_factor", U32, image_scale, IN_BACK),       \
        ELSE("vision.window_size", U32, "vision.window_size", 14),            \
        NUMBER("vision.sam.block_count", SAM_SIZE("layers")),                 \
        NUMBER("vision.sam.embedding_length", SAM_SIZE("width")),             \
        NUMBER("vision.sam.head_count", SAM_SIZE("heads"))
#define SAM_NEEDS                                                             \
    "vision.sam.block_count vision.sam.embedding_length vision.sam.head_count"
#define PARTS " projector. image_newline view_seperator"

const struct gg_projector gg_projector_family_deepseek[] = {
    { .arch = { .classes = "DeepseekOCRForCausalLM UnlimitedOCRForCausalLM",
                .names = { sam, clip, gg_projector_names_clip },
                CLIP("sam_model. vision_model." PARTS, "vision_model."),
                .back = put_tokens_and_class,
                .always_f32 = "v.patch_embd. v.sam.pos_embd .pos_h. .pos_w. "
                              "v.sam.neck. v.sam.net_",
                .keys = ROWS(
                    NUMBER("vision.image_size", CLIP_SIZE("image_size")),
                    NUMBER("vision.patch_size", CLIP_SIZE("patch_size")),
                    NUMBER("vision.embedding_length", CLIP_SIZE("width")),
                    NUMBER("vision.block_count", CLIP_SIZE("layers")),
                    NUMBER("vision.attention.head_count", CLIP_SIZE("heads")),
                    OF("vision.feed_forward_length", U32, clip_ff, NO_BACK),
                    VISION, TYPE("deepseekocr"), SAM_KEYS,
                    ALWAYS("vision.preproc_min_tiles", U32, 2),
                    OF("vision.preproc_max_tiles", U32, most_tiles,
                       IN_BACK)) },
      .vision = "vision_config",
      .leading = "model.",
      .needs = SAM_NEEDS },
    { .arch = { .classes = "DeepseekOCR2ForCausalLM",
                .names = { sam, qwen },
                CLIP("sam_model. qwen2_model." PARTS, NULL),
                .back = put_tokens_and_class,
                .always_f32 = "v.sam.pos_embd .pos_h. .pos_w. v.sam.neck. "
                              "v.sam.net_",
                .keys = ROWS(
                    NUMBER("vision.embedding_length",
                           "vision.width.qwen2-0-5b.dim"),
                    ELSE("vision.patch_size", U32, "vision.patch_size", 16),
                    ELSE("vision.feed_forward_length", U32,
                         "vision.intermediate_size", 4864),
                    ELSE("vision.attention.head_count", U32,
                         "vision.num_attention_heads", 14),
                    ELSE("vision.block_count", U32, LAYERS("vision"), 24),
                    VISION, TYPE("deepseekocr2"), SAM_KEYS,
                    ALWAYS("vision.preproc_min_tiles", U32, 2),
                    ALWAYS("vision.preproc_max_tiles", U32, 6),
                    ALWAYS("vision.attention.head_count_kv", U32, 2)) },
      .vision = "vision_config",
      .leading = "model.",
      .needs = SAM_NEEDS },
    { .arch = { .classes = NULL } },
};
