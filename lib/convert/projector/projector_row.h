/* SPDX-License-Identifier: MIT */
/* projector_row.h - words for rows of projectors
 *
 * Sources: names of tensors and settings are those of the models in Hugging
 * Face's transformers or of repositories with their own code; names and keys of
 * GGUF files are those that llama.cpp's converter writes (commit d32676d77) and
 * its tools/mtmd reads. class_row.h has the words for names and keys.
 */
#ifndef GG_CONVERT_PROJECTOR_PROJECTOR_ROW_H
#define GG_CONVERT_PROJECTOR_PROJECTOR_ROW_H

#include "convert/projector/projector.h"

/* Rows of each family, in family/FAMILY.c. A list ends with a row without a
 * class. */
extern const struct gg_projector gg_projector_family_siglip[],
    gg_projector_family_qwen[], gg_projector_family_pixtral[],
    gg_projector_family_vit[], gg_projector_family_whisper[],
    gg_projector_family_granite[], gg_projector_family_conformer[],
    gg_projector_family_gemma[], gg_projector_family_deepseek[],
    gg_projector_family_mimo[], gg_projector_family_radio[],
    gg_projector_family_speech[], gg_projector_family_llava[],
    gg_projector_family_kyutai[];

/* names.c: lists of names that several families have: CLIP's and SigLIP's
 * towers, and Whisper's encoder, as transformers names them, without the prefix
 * of the tower. */
extern const struct gg_convert_name gg_projector_names_clip[],
    gg_projector_names_whisper[];

/* ---- names ---- */

#define V "v.blk.%."
#define A "a.blk.%."
/* A fused matrix, or its bias, in three parts. */
#define SPLIT_QKV(FROM, TO)                                                   \
    N_AXES(FROM, TO "q", "3[1@0] r, * > r, *"),                               \
        N_AXES(FROM, TO "k", "3[1@1] r, * > r, *"),                           \
        N_AXES(FROM, TO "v", "3[1@2] r, * > r, *")
/* A filter over two images as two filters over one. */
#define TWO_IMAGES(FROM)                                                      \
    N_AXES(FROM ".weight", "v.patch_embd.weight",                             \
           "o, c, 2[1@0], y, x > o, c, y, x"),                                \
        N_AXES(FROM ".weight", "v.patch_embd.weight.1",                       \
               "o, c, 2[1@1], y, x > o, c, y, x"),                            \
        N(FROM ".bias", "v.patch_embd.bias")

/* Members of every row: beginnings of names, and prefixes of towers to
 * remove. */
#define CLIP(PARTS, STRIP)                                                    \
    .arch = "clip", .only_keys = true, .parts = PARTS, .strip = STRIP

/* ---- keys ---- */

/* A number by names of settings; of a list, its first element. */
#define NUMBER(KEY, HF) ELSE(KEY, U32, HF, NAN)

/* Width of the language model's vectors. */
#define TEXT_WIDTH "text.hidden_size hidden_size text.n_embd n_embd text.dim"
#define LAYERS(T)                                                             \
    T ".n_layers " T ".num_hidden_layers " T ".n_layer " T ".num_layers " T   \
      ".depth " T ".layers " T ".encoder_layers " T ".vt_num_hidden_layers"
#define HEADS(T)                                                              \
    T ".num_attention_heads " T ".num_heads " T ".heads " T                   \
      ".vt_num_attention_heads"

/* Keys of every tower for images. Keys of a row before them have priority. */
#define VISION                                                                \
    ALWAYS("has_vision_encoder", BOOL, 1),                                    \
        NUMBER("vision.projection_dim", TEXT_WIDTH),                          \
        NUMBER("vision.image_size", "vision.image_size"),                     \
        NUMBER("vision.patch_size", "vision.patch_size"),                     \
        NUMBER("vision.embedding_length",                                     \
               "vision.hidden_size vision.width vision.vt_hidden_size"),      \
        NUMBER("vision.feed_forward_length",                                  \
               "vision.intermediate_size vision.vt_intermediate_size"),       \
        NUMBER("vision.block_count", LAYERS("vision")),                       \
        NUMBER("vision.attention.head_count", HEADS("vision")),               \
        F32("vision.image_mean", "image.image_mean"),                         \
        F32("vision.image_std", "image.image_std")
/* Keys of every tower for sound. */
#define AUDIO                                                                 \
    ALWAYS("has_audio_encoder", BOOL, 1),                                     \
        NUMBER("audio.projection_dim", TEXT_WIDTH),                           \
        NUMBER("audio.embedding_length", "audio.hidden_size audio.d_model"),  \
        NUMBER("audio.feed_forward_length",                                   \
               "audio.intermediate_size audio.encoder_ffn_dim"),              \
        NUMBER("audio.block_count", LAYERS("audio")),                         \
        NUMBER("audio.attention.head_count",                                  \
               "audio.num_attention_heads audio.encoder_attention_heads"),    \
        NUMBER("audio.num_mel_bins", "audio.num_mel_bins")

#define TYPE(NAME)        WORD("projector_type", NAME)
#define VISION_TYPE(NAME) WORD("vision.projector_type", NAME)
#define AUDIO_TYPE(NAME)  WORD("audio.projector_type", NAME)
/* Epsilon of the tower's norms by names of settings, or NUMBER. */
#define EPS(HF, NUMBER)                                                       \
    OR("vision.attention.layer_norm_epsilon", HF, F32, NUMBER)
#define AUDIO_EPS(HF, NUMBER)                                                 \
    OR("audio.attention.layer_norm_epsilon", HF, F32, NUMBER)
/* Activation of the feed-forward parts: always, or by hidden_act of the
 * tower. */
#define GELU ALWAYS("use_gelu", BOOL, 1)
#define SILU ALWAYS("use_silu", BOOL, 1)
#define GELU_OR_SILU                                                          \
    OF("use_gelu", BOOL, gg_projector_has_gelu, gg_projector_put_gelu),       \
        OF("use_silu", BOOL, gg_projector_has_silu, gg_projector_put_silu)
#define MERGE_SIZE(HF)   NUMBER("vision.spatial_merge_size", HF)
#define SCALE_FACTOR(HF) NUMBER("vision.projector.scale_factor", HF)
/* Limits of the number of pixels. transformers 5 has them in "size", as its
 * Qwen2VLImageProcessor reads them. */
#define LEAST_PIXELS "image.min_pixels image.size.shortest_edge"
#define MOST_PIXELS  "image.max_pixels image.size.longest_edge"
#define IMAGE_PIXELS                                                          \
    NUMBER("vision.image_min_pixels", LEAST_PIXELS),                          \
        NUMBER("vision.image_max_pixels", MOST_PIXELS)

/* Names of settings on the way back, where a class does not have those that
 * most classes have: Qwen's towers, and Whisper's. */
#define QWEN_MEMBERS                                                          \
    { "vision.num_hidden_layers", "vision.depth" },                           \
    {                                                                         \
        "vision.num_attention_heads", "vision.num_heads"                      \
    }
#define WHISPER_MEMBERS                                                       \
    { "audio.hidden_size", "audio.d_model" },                                 \
        { "audio.intermediate_size", "audio.encoder_ffn_dim" },               \
        { "audio.num_hidden_layers", "audio.encoder_layers" },                \
    {                                                                         \
        "audio.num_attention_heads", "audio.encoder_attention_heads"          \
    }
#define TEXT_CONFIG "text_config"

/* ---- functions of rows ---- */

/* projector_back.c: set vision.hidden_act; vision.num_hidden_layers; the number
 * of vectors of an image, image.image_seq_length; vision.mlp_ratio. */
gg_back_fn gg_projector_put_gelu, gg_projector_put_silu,
    gg_projector_put_layers, gg_projector_put_image_tokens,
    gg_projector_put_mlp_ratio;
/* projector_back.c: set a member to the inverse of projector.scale_factor. */
void gg_projector_put_inverse(struct gg_back_maker *m, const char *name);
/* projector_back.c: size of a dimension of a tensor of the file; NAN: the file
 * lacks it. */
double gg_projector_count_tensor(const struct gg_back_maker *m,
                                 const char *name, unsigned dim);
/* shared.c: 1 if vision.hidden_act is the function, else NAN. */
gg_hf_config_fn gg_projector_has_gelu, gg_projector_has_silu;
/* shared.c: refuse a hidden_act of vision that is neither GELU nor SiLU. */
gg_projector_fn gg_projector_check_activation;
/* shared.c: 1 / x, rounded down, for a ratio of sizes. */
double gg_projector_inverse(const struct gg_hf_config *cfg, const char *names);
/* shared.c: text of a number for messages; "missing" for NAN. */
enum { GG_PROJECTOR_NUMBER = 32 };
const char *gg_projector_number(double x, char text[GG_PROJECTOR_NUMBER]);
/* shared.c: use CLIP's mean and deviation of images if none are given; use 0
 * and 1, whatever is given. */
enum gguf_status gg_projector_default_image(struct gguf_convert *c,
                                            const double mean[3],
                                            const double std[3],
                                            struct gguf_error *err);
gg_projector_fn gg_projector_default_clip_image,
    gg_projector_default_plain_image;
/* conformer.c: compute factors and offsets of the batch norms
 * "PREFIX.LAYER.conv.batch_norm", as tensors with ".folded" after that name. */
enum gguf_status gg_projector_fold_norms(struct gguf_convert *c,
                                         const char *prefix,
                                         struct gguf_error *err);
/* shared.c: write image_grid_pinpoints, pairs of height and width, as key
 * "vision.image_grid_pinpoints", width first. Folders without them: nothing is
 * done. */
gg_projector_fn gg_projector_put_pinpoints;
/* projector_back.c: the inverse. */
gg_back_fn gg_projector_put_pinpoints_back;
/* shared.c: set a member that is missing. */
enum gguf_status gg_projector_set_missing(struct gguf_convert *c,
                                          const char *name, double value,
                                          struct gguf_error *err);
/* shared.c: take the width of the language model, if config.json does not say
 * it, from the rows of a matrix, by its name in rows. */
enum gguf_status gg_projector_take_width(struct gguf_convert *c,
                                         const char *name,
                                         struct gguf_error *err);
/* shared.c: find a tensor of the folder by its name in rows. */
bool gg_projector_find_tensor(const struct gguf_convert *c, const char *name,
                              const struct gg_safetensors_tensor **out);

#endif
