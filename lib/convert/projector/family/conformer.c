/* SPDX-License-Identifier: MIT */
/* conformer.c - projectors with a conformer (Gulati et al., arXiv:2005.08100):
 * LFM2-Audio; and batch norms as factors and offsets */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* ---- batch norms ---- */

enum { WEIGHT, BIAS, MEAN, VARIANCE, N_PARTS };
static const char *const parts[N_PARTS] = { "weight", "bias", "running_mean",
                                            "running_var" };

/* Has the folder a norm of the layer, whose names begin with START PREFIX? */
static bool has_norm(const struct gguf_convert *c, const char *start,
                     const char *prefix, size_t layer)
{
    char name[GG_CONVERT_NAME];
    snprintf(name, sizeof name, "%s%s.%zu.conv.batch_norm.running_var", start,
             prefix, layer);
    return gg_safetensors_find(c->folder.weights, gg_str_z(name)) !=
           GG_INDEX_NONE;
}

/* Compute factors and offsets of one norm: weight / sqrt(variance + 1e-5), and
 * bias - mean * factor, in single precision. */
static enum gguf_status fold_norm(struct gguf_convert *c, const char *start,
                                  const char *prefix, size_t layer,
                                  struct gguf_error *err)
{
    char name[GG_CONVERT_NAME];
    float *x[N_PARTS] = { NULL };
    size_t n = 0;
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < N_PARTS && st == GGUF_OK; i++) {
        snprintf(name, sizeof name, "%s%s.%zu.conv.batch_norm.%s", start,
                 prefix, layer, parts[i]);
        st = gg_projector_read_floats(c, name, &n, &x[i], err);
    }
    for (size_t i = 0; i < n && st == GGUF_OK; i++) {
        x[WEIGHT][i] /= sqrtf(x[VARIANCE][i] + 1e-5f);
        x[BIAS][i] -= x[MEAN][i] * x[WEIGHT][i];
    }
    for (size_t i = 0; i <= BIAS && st == GGUF_OK; i++) {
        snprintf(name, sizeof name, "%s.%zu.conv.batch_norm.folded.%s", prefix,
                 layer, parts[i]);
        st = gg_projector_add_floats(c, name, x[i], n, err);
    }
    for (size_t i = 0; i < N_PARTS; i++)
        gg_mem_free(c->p.allocator, x[i]);
    return st;
}

enum gguf_status gg_projector_fold_norms(struct gguf_convert *c,
                                         const char *prefix,
                                         struct gguf_error *err)
{
    static const char *const starts[] = { "", "model." };
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double layers = num_of(&cfg, LAYERS("audio"));
    for (size_t k = 0; k < GG_LEN(starts); k++)
        for (size_t i = 0; (double)i < layers && i < GG_HF_CONFIG_LAYERS; i++)
            if (has_norm(c, starts[k], prefix, i))
                GG_TRY(fold_norm(c, starts[k], prefix, i, err));
    return GGUF_OK;
}

/* ---- LFM2-Audio ---- */

#define LAYER "conformer.layers.%."
static const struct gg_convert_name lfm2[] = {
    N("conformer.pre_encode.conv.%.weight", "a.conv1d.%.weight"),
    N_AXES("conformer.pre_encode.conv.%.bias", "a.conv1d.%.bias",
           "x > x, 1, 1"),
    N("conformer.pre_encode.out", "a.pre_encode.out"),
    N(LAYER "norm_feed_forward1", A "ffn_norm"),
    N(LAYER "feed_forward1.linear1", A "ffn_up"),
    N(LAYER "feed_forward1.linear2", A "ffn_down"),
    N(LAYER "norm_feed_forward2", A "ffn_norm_1"),
    N(LAYER "feed_forward2.linear1", A "ffn_up_1"),
    N(LAYER "feed_forward2.linear2", A "ffn_down_1"),
    N(LAYER "norm_self_att", A "ln1"),
    N(LAYER "norm_out", A "ln2"),
    N(LAYER "norm_conv", A "norm_conv"),
    N(LAYER "self_attn.linear_q", A "attn_q"),
    N(LAYER "self_attn.linear_k", A "attn_k"),
    N(LAYER "self_attn.linear_v", A "attn_v"),
    N(LAYER "self_attn.linear_out", A "attn_out"),
    N(LAYER "self_attn.linear_pos", A "linear_pos"),
    N(LAYER "self_attn.pos_bias_u", A "pos_bias_u"),
    N(LAYER "self_attn.pos_bias_v", A "pos_bias_v"),
    N_AXES(LAYER "conv.pointwise_conv1.weight", A "conv_pw1.weight",
           "o, i, 1 > o, i"),
    N(LAYER "conv.pointwise_conv1.bias", A "conv_pw1.bias"),
    N_AXES(LAYER "conv.pointwise_conv2.weight", A "conv_pw2.weight",
           "o, i, 1 > o, i"),
    N(LAYER "conv.pointwise_conv2.bias", A "conv_pw2.bias"),
    N_AXES(LAYER "conv.depthwise_conv.weight", A "conv_dw.weight",
           "o, 1, taps > o, taps"),
    N(LAYER "conv.depthwise_conv.bias", A "conv_dw.bias"),
    N(LAYER "conv.batch_norm.folded", A "conv_norm"),
    N("audio_adapter.model.%", "mm.a.mlp.%"),
    N("audio_embedding.embedding", "a.position_embd"),
    N("audio_embedding.embedding_norm", "a.position_embd_norm"),
    N("audio_embedding.to_logits", "a.embd_to_logits"),
    END_NAMES,
};
#undef LAYER

static enum gguf_status lfm2_norms(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    return gg_projector_fold_norms(c, "conformer.layers", err);
}

const struct gg_projector gg_projector_family_conformer[] = {
    { .arch = { .classes = "Lfm2AudioForConditionalGeneration",
                .names = { lfm2 },
                CLIP("conformer. audio_adapter. audio_embedding.", NULL),
                .unused = "*num_batches_tracked *batch_norm.weight "
                          "*batch_norm.bias *batch_norm.running_mean "
                          "*batch_norm.running_var",
                .always_f32 = "a.conv1d. .conv_",
                .keys =
                    ROWS(NUMBER("audio.feed_forward_length", "audio.d_model"),
                         NUMBER("audio.attention.head_count", "audio.n_heads"),
                         NUMBER("audio.num_mel_bins", "audio.feat_in"), AUDIO,
                         TYPE("lfm2a"), AUDIO_EPS(NULL, 1e-5)) },
      .audio = "encoder",
      .add_tensors = lfm2_norms,
      .no_back = "batch norms are factors and offsets in files" },
    { .arch = { .classes = NULL } },
};
