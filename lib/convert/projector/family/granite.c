/* SPDX-License-Identifier: MIT */
/* granite.c - projectors of Granite: speech with a conformer, images with
 * SigLIP's tower; both have Q-Formers, which a few learned queries read from */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* A layer of a Q-Former (Li et al., arXiv:2301.12597). */
#define ATTENTION(FROM, TO)                                                   \
    N(FROM "attention.query", TO "_attn_q"),                                  \
        N(FROM "attention.key", TO "_attn_k"),                                \
        N(FROM "attention.value", TO "_attn_v"),                              \
        N(FROM "output.dense", TO "_attn_out"),                               \
        N(FROM "output.LayerNorm", TO "_attn_norm")
#define QFORMER(FROM, TO)                                                     \
    ATTENTION(FROM "attention.", TO "self"),                                  \
        ATTENTION(FROM "crossattention.", TO "cross"),                        \
        N(FROM "intermediate_query.dense", TO "ffn_up"),                      \
        N(FROM "output_query.dense", TO "ffn_down"),                          \
        N(FROM "output_query.LayerNorm", TO "ffn_norm")

/* ---- speech ---- */

#define LAYER "encoder.layers.%."
static const struct gg_convert_name speech[] = {
    N("encoder.input_linear", "a.input_projection"),
    N(LAYER "ff1.pre_norm", A "ffn_norm"),
    N(LAYER "ff1.up_proj", A "ffn_up"),
    N(LAYER "ff1.down_proj", A "ffn_down"),
    N(LAYER "ff2.pre_norm", A "ffn_norm_1"),
    N(LAYER "ff2.up_proj", A "ffn_up_1"),
    N(LAYER "ff2.down_proj", A "ffn_down_1"),
    N(LAYER "attn.pre_norm", A "ln1"),
    N(LAYER "attn.to_q", A "attn_q"),
    N_AXES(LAYER "attn.to_kv", A "attn_k", "2[1@0] r, * > r, *"),
    N_AXES(LAYER "attn.to_kv", A "attn_v", "2[1@1] r, * > r, *"),
    N(LAYER "attn.to_out", A "attn_out"),
    N(LAYER "attn.rel_pos_emb.weight", A "attn_rel_pos_emb"),
    N(LAYER "conv.norm", A "norm_conv"),
    N_AXES(LAYER "conv.up_conv.weight", A "conv_pw1.weight", "o, i, 1 > o, i"),
    N(LAYER "conv.up_conv.bias", A "conv_pw1.bias"),
    N_AXES(LAYER "conv.depth_conv.conv.weight", A "conv_dw.weight",
           "o, 1, taps > o, taps"),
    N_AXES(LAYER "conv.down_conv.weight", A "conv_pw2.weight",
           "o, i, 1 > o, i"),
    N(LAYER "conv.down_conv.bias", A "conv_pw2.bias"),
    N(LAYER "conv.batch_norm.folded", A "conv_norm"),
    N(LAYER "post_norm", A "ln2"),
    N("encoder.out", "a.enc_ctc_out"),
    N("encoder.out_mid", "a.enc_ctc_out_mid"),
    N("projector.query", "a.proj_query"),
    N("projector.qformer.layernorm", "a.proj_norm"),
    N("projector.linear", "a.proj_linear"),
    QFORMER("projector.qformer.encoder.layer.%.", "a.proj_blk.%."),
    END_NAMES,
};
#undef LAYER

static double speech_ff(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "audio.hidden_dim") *
           num_of(cfg, "audio.feedforward_mult");
}

static enum gguf_status speech_norms(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    return gg_projector_fold_norms(c, "encoder.layers", err);
}

/* Layers whose vectors are joined with those of the last. */
static enum gguf_status speech_layers(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const char *name = "audio.cat_hidden_layers";
    const size_t n = gg_hf_config_list_len(&cfg, name);
    int32_t list[GG_HF_CONFIG_LAYERS];
    if (!n)
        return GGUF_OK;
    if (n > GG_HF_CONFIG_LAYERS ||
        num_of(&cfg, "projector_config.encoder_hidden_size") !=
            num_of(&cfg, "audio.hidden_dim") * (double)(n + 1))
        return gg_projector_refuse(
            "projector_config.encoder_hidden_size: expected hidden_dim for "
            "each of cat_hidden_layers and for the last layer",
            err);
    for (size_t i = 0; i < n; i++) {
        const double x = num_at(&cfg, name, (int64_t)i);
        if (!(x >= 0) || x > INT32_MAX)
            return gg_projector_refuse(
                "cat_hidden_layers: expected numbers of layers", err);
        list[i] = (int32_t)x;
    }
    return gg_projector_put_ints(c, "audio.feature_layer", list, n, err);
}

#define SPEECH_KEYS                                                           \
    NUMBER("audio.embedding_length", "audio.hidden_dim"),                     \
        OF("audio.feed_forward_length", U32, speech_ff, NO_BACK),             \
        NUMBER("audio.attention.head_count", "audio.num_heads"),              \
        NUMBER("audio.num_mel_bins", "audio.input_dim"), AUDIO,               \
        TYPE("granite_speech"), AUDIO_EPS(NULL, 1e-5),                        \
        NUMBER("audio.chunk_size", "audio.context_size"),                     \
        NUMBER("audio.conv_kernel_size", "audio.conv_kernel_size"),           \
        NUMBER("audio.max_pos_emb", "audio.max_pos_emb"),                     \
        NUMBER("audio.projector.window_size", "window_size"),                 \
        NUMBER("audio.projector.downsample_rate", "downsample_rate"),         \
        NUMBER("audio.projector.head_count",                                  \
               "projector_config.num_attention_heads")

/* ---- images ---- */

/* A projector between a layer of the tower and one of the language model. */
struct link {
    int64_t vision, text; /* layers */
    bool is_spatial;
    int64_t no; /* number among those of its kind */
};
enum { MOST_LINKS = 256 };

static int compare_pairs(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    if (x->vision != y->vision)
        return x->vision < y->vision ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

/* Number of a layer, which is counted from the end if it is below 0. false:
 * none of n layers, nor the number n. */
static bool count_from(double x, double n, int64_t *out)
{
    x += x < 0 ? n : 0;
    if (!(x >= 0) || x > n)
        return false;
    *out = (int64_t)x;
    return true;
}

/* List the projectors in the order of the language model's layers; those of one
 * layer in the order of config.json, deepstack_layer_map first. Returns their
 * number; 0: there are too many, or they are malformed. */
static size_t list_links(const struct gg_hf_config *cfg,
                         struct link out[MOST_LINKS])
{
    const json_t *map = gg_hf_config_get(cfg, "deepstack_layer_map");
    const size_t n_deep = json_array_size(map);
    const size_t n_spatial =
        gg_hf_config_list_len(cfg, "spatial_target_layers");
    const double n_text = num_of(cfg, "text.num_hidden_layers");
    const double n_vision = num_of(cfg, LAYERS("vision"));
    if (n_deep > MOST_LINKS || n_spatial > MOST_LINKS ||
        n_deep + n_spatial > MOST_LINKS || !(n_text <= GG_HF_CONFIG_LAYERS) ||
        !(n_vision <= GG_HF_CONFIG_LAYERS))
        return 0;
    for (size_t i = 0; i < n_deep; i++) {
        const json_t *pair = json_array_get(map, i);
        if (!gg_json_int(json_array_get(pair, 0), &out[i].vision) ||
            !gg_json_int(json_array_get(pair, 1), &out[i].text))
            return 0;
    }
    qsort(out, n_deep, sizeof *out, compare_pairs);
    for (size_t i = 0; i < n_deep; i++) {
        if (!count_from((double)out[i].vision, n_vision, &out[i].vision) ||
            !count_from((double)out[i].text, n_text, &out[i].text))
            return 0;
        out[i].is_spatial = false;
        out[i].no = (int64_t)i;
    }
    for (size_t i = 0; i < n_spatial; i++) {
        const double text = num_at(cfg, "spatial_target_layers", (int64_t)i);
        const double vision = num_or(cfg, "spatial_vision_layer", -1);
        struct link *x = &out[n_deep + i];
        *x = (struct link){ .is_spatial = true, .no = (int64_t)i };
        if (!count_from(vision, n_vision, &x->vision) || !(text >= 0) ||
            !count_from(text, n_text, &x->text))
            return 0;
    }
    for (size_t i = 1; i < n_deep + n_spatial; i++) { /* stable */
        const struct link x = out[i];
        size_t k = i;
        for (; k && out[k - 1].text > x.text; k--)
            out[k] = out[k - 1];
        out[k] = x;
    }
    return n_deep + n_spatial;
}

/* Number of a projector in the file. */
static double find_link(const struct gg_hf_config *cfg, bool is_spatial,
                        int64_t no)
{
    struct link list[MOST_LINKS];
    const size_t n = list_links(cfg, list);
    for (size_t i = 0; i < n; i++)
        if (list[i].is_spatial == is_spatial && list[i].no == no)
            return (double)i;
    return NAN;
}

static double deep_link(const struct gg_hf_config *cfg, int64_t no)
{
    return find_link(cfg, false, no);
}

static double spatial_link(const struct gg_hf_config *cfg, int64_t no)
{
    return find_link(cfg, true, no);
}

#define ONE(FROM, TO, FN)                                                     \
    {                                                                         \
        .from = FROM, .to = "v.proj_blk.%." TO, .layer_of = FN                \
    }
#define IMAGE_ATTENTION(FROM, TO, FN)                                         \
    ONE(FROM "attention.query", TO "_attn_q", FN),                            \
        ONE(FROM "attention.key", TO "_attn_k", FN),                          \
        ONE(FROM "attention.value", TO "_attn_v", FN),                        \
        ONE(FROM "output.dense", TO "_attn_out", FN),                         \
        ONE(FROM "output.LayerNorm", TO "_attn_norm", FN)
#define LINKS(P, FN)                                                          \
    ONE(P "image_positions", "img_pos", FN), ONE(P "query", "query", FN),     \
        ONE(P "out_linear", "linear", FN), ONE(P "norm", "norm", FN),         \
        ONE(P "qformer.layernorm", "post_norm", FN),                          \
        IMAGE_ATTENTION(P "qformer.encoder.layer.0.attention.", "self", FN),  \
        IMAGE_ATTENTION(P "qformer.encoder.layer.0.crossattention.", "cross", \
                        FN),                                                  \
        ONE(P "qformer.encoder.layer.0.intermediate_query.dense", "ffn_up",   \
            FN),                                                              \
        ONE(P "qformer.encoder.layer.0.output_query.dense", "ffn_down", FN),  \
        ONE(P "qformer.encoder.layer.0.output_query.LayerNorm", "ffn_norm",   \
            FN)

static const struct gg_convert_name image[] = {
    N("image_newline", "v.image_newline"),
    LINKS("layerwise_projectors.%.", deep_link),
    LINKS("spatial_projectors.%.", spatial_link),
    END_NAMES,
};

/* Sides of a window of queries and of vectors: "4/8". */
static double rate_part(const struct gg_hf_config *cfg, int no)
{
    struct gguf_str s;
    uint64_t x[2];
    if (!gg_json_str(gg_hf_config_get(cfg, "downsample_rate"), &s) ||
        !gg_str_uint(&s, INT32_MAX, &x[0]) || !gg_str_starts(s, "/"))
        return NAN;
    s.data++;
    s.size--;
    if (!gg_str_uint(&s, INT32_MAX, &x[1]) || s.size)
        return NAN;
    return (double)x[no];
}

static double query_side(const struct gg_hf_config *cfg)
{
    return rate_part(cfg, 0);
}

static double window_side(const struct gg_hf_config *cfg)
{
    return rate_part(cfg, 1);
}

static enum gguf_status image_keys(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    struct link list[MOST_LINKS];
    int32_t layer[MOST_LINKS], offset[MOST_LINKS];
    const size_t n = list_links(&cfg, list);
    if (!n)
        return gg_projector_refuse(
            "deepstack_layer_map and spatial_target_layers name no projector, "
            "or layers that the models do not have",
            err);
    for (size_t i = 0; i < n; i++) {
        layer[i] = (int32_t)list[i].vision;
        offset[i] = list[i].is_spatial ? (int32_t)list[i].no : -1;
    }
    GG_TRY(gg_projector_put_ints(c, "vision.feature_layer", layer, n, err));
    GG_TRY(gg_projector_put_ints(c, "vision.projector.spatial_offsets", offset,
                                 n, err));
    return gg_projector_put_pinpoints(c, err);
}

const struct gg_projector gg_projector_family_granite[] = {
    { .arch = { .classes = "GraniteSpeechForConditionalGeneration "
                           "GraniteSpeechPlusForConditionalGeneration",
                .names = { speech },
                CLIP("encoder. projector.", NULL),
                .unused = "*attention_dists *num_batches_tracked "
                          "*batch_norm.weight *batch_norm.bias "
                          "*batch_norm.running_mean *batch_norm.running_var",
                .always_f32 = ".conv_",
                .keys = ROWS(SPEECH_KEYS) },
      .audio = "encoder_config",
      .needs = "audio.chunk_size audio.conv_kernel_size audio.max_pos_emb "
               "audio.projector.window_size audio.projector.downsample_rate "
               "audio.projector.head_count",
      .add_tensors = speech_norms,
      .add_keys = speech_layers,
      .no_back = "batch norms are factors and offsets in files" },
    { .arch = { .classes = "Granite4VisionForConditionalGeneration",
                .names = { image, gg_projector_names_clip },
                CLIP("vision_tower. image_newline layerwise_projectors. "
                     "spatial_projectors.",
                     "vision_tower.vision_model. vision_tower."),
                .unused = "vision_tower.vision_model.head.",
                .keys = ROWS(VISION, TYPE("granite4_vision"),
                             EPS("vision.layer_norm_eps", 1e-6), GELU,
                             ELSE("vision.preproc_image_size", U32,
                                  "vision.image_size", 384),
                             OF("vision.projector.query_side", U32, query_side,
                                NO_BACK),
                             OF("vision.projector.window_side", U32,
                                window_side, NO_BACK)) },
      .vision = "vision_config",
      .needs = "vision.projector.query_side vision.projector.window_side",
      .add_keys = image_keys,
      .no_back = "files have no numbers of the language model's layers" },
    { .arch = { .classes = NULL } },
};
