/* SPDX-License-Identifier: MIT */
/* mimo.c - the projector of MiMo-V2, which sees with Qwen2.5-VL's tower and
 * hears with an encoder in a folder of its own, audio_tokenizer */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define TOKENIZER "audio_tokenizer"
/* Prefix of the names of the tensors of audio_tokenizer. */
#define SOUND "sound."

#define LAYER "visual.blocks.%."
static const struct gg_convert_name image[] = {
    TWO_IMAGES("visual.patch_embed.proj"),
    N(LAYER "norm1", V "ln1"),
    N(LAYER "norm2", V "ln2"),
    N(LAYER "attn.qkv", V "attn_qkv"),
    N(LAYER "attn.proj", V "attn_out"),
    N(LAYER "attn.sinks", V "attn_sinks"),
    N(LAYER "mlp.gate_proj", V "ffn_gate"),
    N(LAYER "mlp.up_proj", V "ffn_up"),
    N(LAYER "mlp.down_proj", V "ffn_down"),
    N("visual.merger.ln_q", "v.post_ln"),
    N("visual.merger.mlp.0", "mm.0"),
    N("visual.merger.mlp.2", "mm.2"),
    END_NAMES,
};
#undef LAYER

#define LOCAL "audio_encoder.input_local_transformer."
#define LAYER LOCAL "layers.%."
#define TO    "mm.a.local_blk.%."
static const struct gg_convert_name local[] = {
    N("speech_embeddings.@.weight", "mm.a.code_embd.weight"),
    N(LAYER "input_layernorm", TO "ln1"),
    N(LAYER "post_attention_layernorm", TO "ln2"),
    N(LAYER "self_attn.q_proj", TO "attn_q"),
    N(LAYER "self_attn.k_proj", TO "attn_k"),
    N(LAYER "self_attn.v_proj", TO "attn_v"),
    N(LAYER "self_attn.o_proj", TO "attn_out"),
    N(LAYER "mlp.gate_proj", TO "ffn_gate"),
    N(LAYER "mlp.up_proj", TO "ffn_up"),
    N(LAYER "mlp.down_proj", TO "ffn_down"),
    N(LOCAL "norm", "mm.a.local_norm"),
    N("audio_encoder.projection.mlp.0", "mm.a.mlp.1"),
    N("audio_encoder.projection.mlp.2", "mm.a.mlp.2"),
    N("down_sample_layer.0", "a.downsample.conv"),
    N("down_sample_norm", "a.downsample.norm"),
    N_AXES("codebooks", "a.rvq.codebook.weight",
           "books entries c > books, entries, c"),
    END_NAMES,
};
#undef TO
#undef LAYER
#undef LOCAL
static const struct gg_convert_size sizes[] = {
    { .name = "books", .hf = "audio.n_codebooks" },
    { .name = "entries", .hf = "audio.most_codes" },
    { .name = NULL }
};

/* ---- codebooks ---- */

enum { MOST_BOOKS = 256 };

static const struct gg_safetensors_tensor *
find_book(const struct gguf_convert *c, size_t i, char name[GG_CONVERT_NAME])
{
    snprintf(name, GG_CONVERT_NAME,
             SOUND "encoder.quantizer.vq.layers.%zu._codebook.embed", i);
    const uint32_t k = gg_safetensors_find(c->folder.weights, gg_str_z(name));
    return k == GG_INDEX_NONE ? NULL : &c->folder.weights->tensor[k];
}

/* Stack codebooks of different sizes: the shorter ones end with zeros. */
static enum gguf_status stack_books(struct gguf_convert *c, size_t n,
                                    size_t most, size_t width,
                                    struct gguf_error *err)
{
    char name[GG_CONVERT_NAME];
    float *all =
        gg_mem_alloc_zero(c->p.allocator, n * most * width, sizeof *all);
    enum gguf_status st =
        all ? GGUF_OK : gg_error_set_nomem(err, n * most * width * 4);
    for (size_t i = 0; i < n && st == GGUF_OK; i++) {
        float *one;
        size_t size = 0;
        (void)find_book(c, i, name);
        st = gg_projector_read_floats(c, name, &size, &one, err);
        if (st == GGUF_OK)
            memcpy(all + i * most * width, one, size * sizeof *one);
        gg_mem_free(c->p.allocator, one);
    }
    if (st == GGUF_OK)
        st = gg_projector_add_floats(c, SOUND "encoder.codebooks", all,
                                     n * most * width, err);
    gg_mem_free(c->p.allocator, all);
    return st;
}

static enum gguf_status add_books(struct gguf_convert *c,
                                  struct gguf_error *err)
{
    char name[GG_CONVERT_NAME];
    const struct gg_safetensors_tensor *t;
    json_t *sizes_of = json_array();
    int64_t most = 0, width = 0;
    size_t n = 0;
    enum gguf_status st = GGUF_OK;
    for (; n < MOST_BOOKS && st == GGUF_OK && (t = find_book(c, n, name));
         n++) {
        if (t->n_dims != 2 || t->ne[1] > 1 << 20 || t->ne[0] > 1 << 16 ||
            (n && t->ne[0] != width))
            st = gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                              "tensor '%s' has another shape than the other "
                              "codebooks",
                              name);
        width = t->ne[0];
        most = GG_MAX(most, t->ne[1]);
        if (st == GGUF_OK &&
            json_array_append_new(sizes_of, json_integer(t->ne[1])))
            st = gg_error_set_nomem(err, sizeof(json_t *));
    }
    if (st == GGUF_OK && (!n || (uint64_t)n * (uint64_t)most > 1 << 24))
        st = gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                          "the folder '%s' has %zu codebooks", TOKENIZER, n);
    if (st == GGUF_OK)
        st = stack_books(c, n, (size_t)most, (size_t)width, err);
    if (st == GGUF_OK)
        st = gg_projector_set(c, "audio.n_codebooks", (double)n, err);
    if (st == GGUF_OK)
        st = gg_projector_set(c, "audio.most_codes", (double)most, err);
    if (st != GGUF_OK) {
        json_decref(sizes_of);
        return st;
    }
    return json_object_set_new(json_object_get(c->settings, "audio"),
                               "codebook_sizes", sizes_of)
               ? gg_error_set_nomem(err, sizeof(json_t *))
               : GGUF_OK;
}

static enum gguf_status read_settings(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    return gg_projector_read_tower(c, "audio", TOKENIZER "/config.json", err);
}

static enum gguf_status read_sound(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    bool there;
    GG_TRY(gg_safetensors_add_file(c->folder.weights, &c->folder.dir,
                                   TOKENIZER "/model.safetensors", SOUND,
                                   &there, err));
    return there ? add_books(c, err)
                 : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                "%s/model.safetensors is missing", TOKENIZER);
}

/* ---- keys ---- */

/* -1 for a layer that sees all, else 0. */
static enum gguf_status put_windows(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double layers = num_of(&cfg, LAYERS("audio"));
    const double period = num_or(&cfg, "audio.swa_per_block", 1);
    const bool hybrid = is_true(num_of(&cfg, "audio.hybrid_attention"));
    int32_t list[GG_HF_CONFIG_LAYERS];
    if (!(layers >= 1) || layers > GG_HF_CONFIG_LAYERS || !(period >= 1))
        return gg_projector_refuse("encoder_layers of the tower for sound: "
                                   "expected 1 to 4096; swa_per_block: "
                                   "expected at least 1",
                                   err);
    for (size_t i = 0; i < (size_t)layers; i++)
        list[i] = hybrid && period > 1 && fmod((double)i, period) < period - 1
                      ? 0
                      : -1;
    return gg_projector_put_ints(c, "audio.wa_pattern_mode", list,
                                 (size_t)layers, err);
}

static enum gguf_status put_keys(struct gguf_convert *c,
                                 struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const char *name = "vision.vit_window_attn_types";
    const size_t n = gg_hf_config_list_len(&cfg, name);
    int32_t list[GG_HF_CONFIG_LAYERS];
    if (n > GG_HF_CONFIG_LAYERS)
        return gg_projector_refuse("vit_window_attn_types is too long", err);
    for (size_t i = 0; i < n; i++) {
        const double x = num_at(&cfg, name, (int64_t)i);
        if (!(x >= -1) || x > INT32_MAX || x != floor(x))
            return gg_projector_refuse("vit_window_attn_types: expected "
                                       "whole numbers from -1 on",
                                       err);
        list[i] = (int32_t)x;
    }
    GG_TRY(gg_projector_put_ints(c, "vision.wa_pattern_mode", list, n, err));
    return put_windows(c, err);
}

const struct gg_projector gg_projector_family_mimo[] = {
    { .arch = { .classes = "MiMoV2ForCausalLM",
                .names = { image, local, gg_projector_names_whisper },
                .sizes = sizes,
                CLIP("visual. audio_encoder. speech_embeddings. " SOUND
                     "encoder.",
                     SOUND "encoder."),
                .unused = SOUND "encoder.quantizer.",
                .always_f32 = "a.conv1d. a.downsample.conv a.rvq.codebook "
                              "mm.a.code_embd",
                .keys = ROWS(
                    ELSE("vision.image_size", U32, "vision.image_size", 560),
                    ELSE("vision.block_count", U32, "vision.depth", 28),
                    VISION, VISION_TYPE("mimovl"), SILU,
                    ELSE("vision.attention.head_count_kv", U32,
                         "vision.num_key_value_heads", 8),
                    MERGE_SIZE("vision.spatial_merge_size"),
                    NUMBER("vision.window_size",
                           "vision.visual_token_window_size"),
                    EPS("vision.rms_norm_eps", 1e-6), IMAGE_PIXELS,
                    NUMBER("audio.num_mel_bins", "audio.n_mels"), AUDIO,
                    AUDIO_TYPE("mimo_audio"),
                    AUDIO_EPS("audio.layer_norm_eps", 1e-5),
                    NUMBER("audio.rvq.num_quantizers", "audio.n_codebooks"),
                    U32("audio.rvq.codebook_size", "audio.codebook_sizes"),
                    NUMBER("audio.window_size",
                           "audio.encoder_attn_window_size"),
                    NUMBER("audio.local_block_count",
                           "audio_config.input_local_layers"),
                    NUMBER("audio.local_group_size",
                           "audio_config.group_size")) },
      .vision = "vision_config",
      .audio = ".",
      .needs = "vision.spatial_merge_size vision.image_min_pixels "
               "vision.image_max_pixels audio.local_block_count "
               "audio.local_group_size",
      .check = read_settings,
      .add_tensors = read_sound,
      .add_keys = put_keys,
      .no_back = "its codebooks are one tensor in files" },
    { .arch = { .classes = NULL } },
};
