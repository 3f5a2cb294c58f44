/* SPDX-License-Identifier: MIT */
/* check-speech.c - projectors that hear and speak: Pocket TTS and Parakeet
 *
 * Each tensor is compared with the folder's by its elements, in order, from an
 * offset on. Names and shapes are those of llama.cpp's converter
 * (conversion/pockettts.py, conversion/nemotron.py; autumn 2026).
 */
#include "config.h"
#include "gguf/convert.h"
#include "gguf/stats.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/folder.h"
#include "tests/convert/projector_file.h"
#include "tests/scratch.h"

#include <math.h>
#include <unistd.h>

static char top[200];
static struct folder folder;

/* Convert the folder's projector. NULL: *e says why it is refused. */
static struct gguf_file *convert_folder(const char *type, struct gguf_error *e)
{
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_file *f = projector_open(folder.dir, out, type, e);
    unlink(out);
    return f;
}

/* Convert with each of three recipes; the files must pass the check. Returns
 * the first, in F32. */
static struct gguf_file *convert_thrice(const char *what)
{
    static const char *const types[] = { "F32", "Q8_0", "Q4_K_M" };
    struct gguf_file *first = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct gguf_error e;
        struct findings found = { .n = 0 };
        struct gguf_file *f = convert_folder(types[i], &e);
        ok(f &&
               gguf_file_verify(
                   f, NULL,
                   (struct gguf_finding_callback){ findings_note, &found },
                   &e) == GGUF_OK &&
               !found.n,
           "%s in %s: a projector %s %s", what, types[i], found.last,
           e.message);
        if (i)
            gguf_file_close(f);
        else
            first = f;
    }
    return first;
}

/* A tensor of the file, its first dimensions, and the folder's elements: those
 * of a tensor from an offset on. */
struct place {
    const char *name;
    uint64_t ne[4];
    const char *from;
    uint64_t offset;
    bool half; /* F16 in a file of F32 */
};

static bool is_at(const struct gguf_file *f, const struct place *p)
{
    struct gguf_rows *rows = NULL;
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, p->name);
    bool same = t != NULL;
    uint64_t n = 1;
    for (unsigned i = 0; same && i < 4; i++) {
        n *= p->ne[i] ? p->ne[i] : 1;
        same = (i < t->n_dims ? (uint64_t)t->ne[i] : 0) == p->ne[i];
    }
    same = same && t->dtype == (p->half ? GGUF_DTYPE_F16 : GGUF_DTYPE_F32) &&
           gguf_rows_create(&rows, NULL, NULL) == GGUF_OK;
    for (uint64_t i = 0; same && i < n; i++) {
        float x;
        const float want = folder_value(p->from, p->offset + i);
        /* half a unit in the last place of F16, or of its smallest number */
        const double error =
            p->half ? fmax(fabs((double)want) * 0x1p-11, 0x1p-25) : 0;
        same =
            gguf_rows_decode(rows, f, t->index, i, 1, &x, NULL) == GGUF_OK &&
            fabs((double)x - (double)want) <= error;
    }
    gguf_rows_destroy(rows);
    return same;
}

static void check_places(const struct gguf_file *f, const struct place *p,
                         size_t n)
{
    for (size_t i = 0; f && i < n; i++)
        ok(is_at(f, &p[i]), "%s is %s from element %llu on", p[i].name,
           p[i].from, (unsigned long long)p[i].offset);
}

#define WB(NAME, N)  NAME ".weight " N "\n" NAME ".bias " N "\n"
#define PLACES(LIST) LIST, sizeof LIST / sizeof *LIST

/* ---- Pocket TTS ---- */

#define FLOW "flow_lm.flow_net."
#define LAYER(SIDE)                                                           \
    WB("mimi." SIDE "_transformer.transformer.layers.%.norm1", "64")          \
    WB("mimi." SIDE "_transformer.transformer.layers.%.norm2", "64")          \
    "mimi." SIDE "_transformer.transformer.layers.%.self_attn.in_proj."       \
    "weight 192 64\n"                                                         \
    "mimi." SIDE "_transformer.transformer.layers.%.self_attn.out_proj."      \
    "weight 64 64\n"                                                          \
    "mimi." SIDE "_transformer.transformer.layers.%.linear1.weight 96 64\n"   \
    "mimi." SIDE "_transformer.transformer.layers.%.linear2.weight 64 96\n"   \
    "mimi." SIDE "_transformer.transformer.layers.%.layer_scale_1.scale 64\n" \
    "mimi." SIDE "_transformer.transformer.layers.%.layer_scale_2.scale 64\n"
#define FILTER(NAME, O, I, K)                                                 \
    NAME ".weight " O " " I " " K "\n" NAME ".bias " O "\n"
/* Filters that enlarge have the dimensions of input and output the other way
 * round. */
#define LARGER(NAME, I, O, K)                                                 \
    NAME ".weight " I " " O " " K "\n" NAME ".bias " O "\n"
#define RESIDUAL(NAME)                                                        \
    FILTER(NAME ".block.1.conv", "2", "4", "3")                               \
    FILTER(NAME ".block.3.conv", "4", "2", "1")

static const char pocket[] =
    "flow_lm.conditioner.embed.weight 261 128\n"
    "flow_lm.bos_before_voice 1 1 128\n"
    "flow_lm.bos_emb 4\n"
    "flow_lm.input_linear.weight 128 4\n" WB(
        "flow_lm.out_norm",
        "128") "flow_lm.emb_mean 4\n"
               "flow_lm.emb_std 4\n"
               "flow_lm.speaker_proj_weight 128 64\n"
               "flow_lm.out_eos.weight 1 128\n"
               "flow_lm.out_eos.bias 1\n"
               "flow_lm.transformer.layers.%.norm1.weight 128\n"
               "flow_lm.transformer.layers.%.linear1.weight 48 128\n" FLOW
               "input_proj.weight 32 4\n" FLOW "input_proj.bias 32\n" FLOW
               "cond_embed.weight 32 128\n" FLOW "cond_embed.bias 32\n" FLOW
               "final_layer.linear.weight 4 32\n" FLOW
               "final_layer.linear.bias 4\n" FLOW
               "final_layer.adaLN_modulation.1.weight 64 32\n" FLOW
               "final_layer.adaLN_modulation.1.bias 64\n" FLOW
               "time_embed.%.freqs 8\n" FLOW
               "time_embed.%.mlp.0.weight 32 16\n" FLOW
               "time_embed.%.mlp.0.bias 32\n" FLOW
               "time_embed.%.mlp.2.weight 32 32\n" FLOW
               "time_embed.%.mlp.2.bias 32\n" FLOW
               "time_embed.%.mlp.3.alpha 32\n" WB(FLOW "res_blocks.%.in_ln",
                                                  "32") FLOW
    "res_blocks.%.mlp.0.weight 32 32\n" FLOW
    "res_blocks.%.mlp.0.bias 32\n" FLOW
    "res_blocks.%.mlp.2.weight 32 32\n" FLOW
    "res_blocks.%.mlp.2.bias 32\n" FLOW
    "res_blocks.%.adaLN_modulation.1.weight 96 32\n" FLOW
    "res_blocks.%.adaLN_modulation.1.bias 96\n"
    "mimi.quantizer.output_proj.weight 64 4 1\n"
    "mimi.downsample.conv.conv.weight 64 64 4\n"
    "mimi.upsample.convtr.convtr.weight 64 1 4\n" LAYER("encoder") LAYER(
        "decoder") FILTER("mimi.encoder.model.0.conv", "4", "1",
                          "7") RESIDUAL("mimi.encoder.model.1")
        FILTER("mimi.encoder.model.3.conv", "4", "4",
               "4") RESIDUAL("mimi.encoder.model.4")
            FILTER("mimi.encoder.model.6.conv", "4", "4",
                   "4") RESIDUAL("mimi.encoder.model.7")
                FILTER("mimi.encoder.model.9.conv", "4", "4", "4") FILTER(
                    "mimi.encoder.model.11.conv", "64", "4",
                    "3") FILTER("mimi.decoder.model.0.conv", "4", "64", "7")
                    LARGER("mimi.decoder.model.2.convtr", "4", "4",
                           "8") RESIDUAL("mimi.decoder.model.3")
                        LARGER("mimi.decoder.model.5.convtr", "4", "4", "8")
                            RESIDUAL("mimi.decoder.model.6")
                                LARGER("mimi.decoder.model.8.convtr", "4", "4",
                                       "8") RESIDUAL("mimi.decoder.model.9")
                                    FILTER("mimi.decoder.model.11.conv", "1",
                                           "4", "3");

#define MIMI(SIDE) "mimi." SIDE "_transformer.transformer.layers.1."
static const struct place pocket_places[] = {
    { "a.speaker_proj.weight",
      { 64, 128 },
      "flow_lm.speaker_proj_weight",
      0,
      false },
    { "a.gen.input_linear.weight",
      { 4, 128 },
      "flow_lm.input_linear.weight",
      0,
      false },
    { "a.gen.emb_mean", { 4 }, "flow_lm.emb_mean", 0, false },
    { "a.gen.emb_std", { 4 }, "flow_lm.emb_std", 0, false },
    { "a.gen.out_eos.weight", { 128, 1 }, "flow_lm.out_eos.weight", 0, false },
    { "a.gen.flow.time.1.freqs", { 8 }, FLOW "time_embed.1.freqs", 0, false },
    { "a.gen.flow.time.1.norm",
      { 32 },
      FLOW "time_embed.1.mlp.3.alpha",
      0,
      false },
    { "a.gen.flow.time.0.up.weight",
      { 16, 32 },
      FLOW "time_embed.0.mlp.0.weight",
      0,
      false },
    { "a.gen.flow.blk.1.ada.bias",
      { 96 },
      FLOW "res_blocks.1.adaLN_modulation.1.bias",
      0,
      false },
    { "a.gen.flow.final.ada.weight",
      { 32, 64 },
      FLOW "final_layer.adaLN_modulation.1.weight",
      0,
      false },
    { "a.gen.flow.final.proj.weight",
      { 32, 4 },
      FLOW "final_layer.linear.weight",
      0,
      false },
    { "a.blk.1.attn_q.weight",
      { 64, 64 },
      MIMI("encoder") "self_attn.in_proj.weight",
      0,
      false },
    { "a.blk.1.attn_k.weight",
      { 64, 64 },
      MIMI("encoder") "self_attn.in_proj.weight",
      4096,
      false },
    { "a.gen.wav.tfm.blk.1.attn_v.weight",
      { 64, 64 },
      MIMI("decoder") "self_attn.in_proj.weight",
      8192,
      false },
    { "a.gen.wav.tfm.blk.1.ls1.weight",
      { 64 },
      MIMI("decoder") "layer_scale_1.scale",
      0,
      false },
    { "a.blk.1.ls2.weight",
      { 64 },
      MIMI("encoder") "layer_scale_2.scale",
      0,
      false },
    { "a.blk.1.ln2.bias", { 64 }, MIMI("encoder") "norm2.bias", 0, false },
    { "a.gen.wav.quant_out.weight",
      { 4, 64 },
      "mimi.quantizer.output_proj.weight",
      0,
      false },
    { "a.downsample.conv.weight",
      { 4, 64, 64 },
      "mimi.downsample.conv.conv.weight",
      0,
      true },
    { "a.gen.wav.upsample.weight",
      { 4, 1, 64 },
      "mimi.upsample.convtr.convtr.weight",
      0,
      true },
    { "a.seanet.conv_in.weight",
      { 7, 1, 4 },
      "mimi.encoder.model.0.conv.weight",
      0,
      true },
    { "a.seanet.conv_in.bias",
      { 4 },
      "mimi.encoder.model.0.conv.bias",
      0,
      false },
    { "a.seanet.blk.1.res_conv1.weight",
      { 3, 4, 2 },
      "mimi.encoder.model.4.block.1.conv.weight",
      0,
      true },
    { "a.seanet.blk.2.scale_conv.bias",
      { 4 },
      "mimi.encoder.model.9.conv.bias",
      0,
      false },
    { "a.seanet.conv_out.weight",
      { 3, 4, 64 },
      "mimi.encoder.model.11.conv.weight",
      0,
      true },
    { "a.gen.wav.seanet.blk.1.scale_conv.weight",
      { 8, 4, 4 },
      "mimi.decoder.model.5.convtr.weight",
      0,
      true },
    { "a.gen.wav.seanet.blk.2.res_conv2.bias",
      { 4 },
      "mimi.decoder.model.9.block.3.conv.bias",
      0,
      false },
    { "a.gen.wav.seanet.conv_out.weight",
      { 3, 4, 1 },
      "mimi.decoder.model.11.conv.weight",
      0,
      true },
};

static void check_pocket(void)
{
    struct gguf_error e;
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_tensors(&folder, pocket, 2, 2);
    folder_weights(&folder, "F32", 1);
    struct gguf_file *f = convert_thrice("Pocket TTS");
    ok(f &&
           converted_file_text(f, "clip.audio.projector_type",
                               "pockettts_spkenc") &&
           converted_file_text(f, "clip.gen.audio.projector_type",
                               "pockettts_gen") &&
           converted_file_text(f, "clip.gen.audio.model_variant", "hf"),
       "it hears and speaks, and its variant is the folder's name");
    ok(converted_file_uint(f, "clip.audio.projection_dim", 128) &&
           converted_file_uint(f, "clip.audio.embedding_length", 64) &&
           converted_file_uint(f, "clip.audio.feed_forward_length", 96) &&
           converted_file_uint(f, "clip.audio.block_count", 2) &&
           converted_file_uint(f, "clip.audio.attention.head_count", 1) &&
           converted_file_uint(f, "clip.audio.num_mel_bins", 1) &&
           converted_file_uint(f, "clip.gen.audio.projection_dim", 128) &&
           converted_file_uint(f, "clip.gen.audio.block_count", 2),
       "sizes follow from the tensors");
    check_places(f, PLACES(pocket_places));
    ok(f && !gguf_file_tensor_find(f, "token_embd.weight") &&
           gguf_file_n_tensors(f) == 137,
       "tensors of the language model are left out: %zu",
       f ? gguf_file_n_tensors(f) : 0);
    gguf_file_close(f);
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_tensors(&folder, "mimi.encoder.model.0.conv.weight 4 1 7\n", 2, 2);
    folder_weights(&folder, "F32", 1);
    f = convert_folder("F32", &e);
    ok(!f && strstr(e.message, "no config.json"),
       "tensors of another model: %s", e.message);
}

/* ---- Parakeet, beside a tower for images ---- */

#define OMNI(MORE)                                                            \
    "{\"architectures\":[\"NemotronH_Nano_Omni_Reasoning_V3\"],"              \
    "\"llm_config\":{\"architectures\":[\"NemotronHForCausalLM\"],"           \
    "\"hidden_size\":24},\"force_image_size\":8,"                             \
    "\"vision_config\":{\"architectures\":[\"RADIOModel\"],"                  \
    "\"patch_size\":4},\"sound_config\":{\"hidden_size\":16,"                 \
    "\"num_attention_heads\":2,\"num_hidden_layers\":2,"                      \
    "\"intermediate_size\":32,\"num_mel_bins\":8," MORE                       \
    "\"subsampling_conv_channels\":4}}"
#define SOUND "sound_encoder.encoder."
#define L     SOUND "layers.%."
static const char omni[] =
    "mlp1.0.weight 5120\nmlp1.1.weight 48 5120\nmlp1.3.weight 24 48\n"
    "vision_model.radio_model.model.patch_generator.pos_embed 1 4 1280\n"
    "vision_model.radio_model.model.patch_generator.embedder.weight 1280 48\n" SOUND
    "feature_extractor.featurizer.fb 1 8 9\n" SOUND
    "feature_extractor.featurizer.window 16\n" SOUND
    "subsampling.layers.0.weight 4 1 3 3\n" SOUND
    "subsampling.layers.0.bias 4\n" SOUND
    "subsampling.layers.2.weight 4 1 3 3\n" SOUND
    "subsampling.layers.2.bias 4\n" SOUND
    "subsampling.layers.3.weight 4 4 1 1\n" SOUND
    "subsampling.layers.3.bias 4\n" SOUND
    "subsampling.layers.5.weight 4 1 3 3\n" SOUND
    "subsampling.layers.5.bias 4\n" SOUND
    "subsampling.layers.6.weight 4 4 1 1\n" SOUND
    "subsampling.layers.6.bias 4\n" SOUND
    "subsampling.linear.weight 16 4\n" SOUND
    "subsampling.linear.bias 16\n" WB(L "norm_feed_forward1", "16")
        WB(L "norm_feed_forward2", "16") WB(L "norm_self_att", "16")
            WB(L "norm_out", "16") WB(L "norm_conv", "16")
                WB(L "conv.norm", "16") L
    "conv.norm.running_mean 16\n" L "conv.norm.running_var 16\n" L
    "conv.norm.num_batches_tracked 1\n" L
    "conv.pointwise_conv1.weight 32 16 1\n" L
    "conv.pointwise_conv1.bias 32\n" L
    "conv.pointwise_conv2.weight 16 16 1\n" L
    "conv.depthwise_conv.weight 16 1 9\n" L "self_attn.q_proj.weight 16 16\n" L
    "self_attn.k_proj.weight 16 16\n" L "self_attn.v_proj.weight 16 16\n" L
    "self_attn.o_proj.weight 16 16\n" L
    "self_attn.relative_k_proj.weight 16 16\n" L "self_attn.bias_u 2 8\n" L
    "self_attn.bias_v 2 8\n" L "feed_forward1.linear1.weight 32 16\n" L
    "feed_forward1.linear2.weight 16 32\n" L
    "feed_forward2.linear1.weight 32 16\n" L
    "feed_forward2.linear2.weight 16 32\n"
    "sound_projection.norm.weight 16\n"
    "sound_projection.linear1.weight 32 16\n"
    "sound_projection.linear2.weight 24 32\n"
    "language_model.backbone.norm_f.weight 24\n";

#define L1 SOUND "layers.1."
static const struct place omni_places[] = {
    { "a.mel_filters",
      { 9, 8, 1 },
      SOUND "feature_extractor.featurizer.fb",
      0,
      false },
    { "a.window",
      { 16 },
      SOUND "feature_extractor.featurizer.window",
      0,
      false },
    { "a.conv1d.5.weight",
      { 3, 3, 1, 4 },
      SOUND "subsampling.layers.5.weight",
      0,
      false },
    { "a.conv1d.6.bias",
      { 1, 1, 4, 1 },
      SOUND "subsampling.layers.6.bias",
      0,
      false },
    { "a.pre_encode.out.weight",
      { 4, 16 },
      SOUND "subsampling.linear.weight",
      0,
      false },
    { "a.blk.1.conv_dw.weight",
      { 9, 16, 1, 1 },
      L1 "conv.depthwise_conv.weight",
      0,
      false },
    { "a.blk.1.conv_pw1.weight",
      { 16, 32 },
      L1 "conv.pointwise_conv1.weight",
      0,
      false },
    { "a.blk.1.conv_pw1.bias",
      { 1, 1, 32, 1 },
      L1 "conv.pointwise_conv1.bias",
      0,
      false },
    { "a.blk.1.conv_norm.weight", { 16 }, L1 "conv.norm.weight", 0, false },
    { "a.blk.1.conv_norm_mean",
      { 16 },
      L1 "conv.norm.running_mean",
      0,
      false },
    { "a.blk.1.conv_norm_var", { 16 }, L1 "conv.norm.running_var", 0, false },
    { "a.blk.1.norm_conv.bias", { 16 }, L1 "norm_conv.bias", 0, false },
    { "a.blk.1.linear_pos.weight",
      { 16, 16 },
      L1 "self_attn.relative_k_proj.weight",
      0,
      false },
    { "a.blk.1.pos_bias_v", { 8, 2 }, L1 "self_attn.bias_v", 0, false },
    { "a.blk.1.attn_out.weight",
      { 16, 16 },
      L1 "self_attn.o_proj.weight",
      0,
      false },
    { "a.blk.1.ffn_down_1.weight",
      { 32, 16 },
      L1 "feed_forward2.linear2.weight",
      0,
      false },
    { "a.blk.1.ffn_norm.weight",
      { 16 },
      L1 "norm_feed_forward1.weight",
      0,
      false },
    { "mm.a.norm_pre.weight",
      { 16 },
      "sound_projection.norm.weight",
      0,
      false },
    { "mm.a.mlp.2.weight",
      { 32, 24 },
      "sound_projection.linear2.weight",
      0,
      false },
    { "mm.model.mlp.3.weight", { 48, 24 }, "mlp1.3.weight", 0, false },
};

static void check_omni(void)
{
    struct gguf_error e;
    folder_begin(&folder, scratch_path(top, "omni"));
    folder_text(&folder, "config.json",
                OMNI("\"subsampling_factor\":8,\"conv_kernel_size\":9,"));
    folder_tensors(&folder, omni, 2, 2);
    folder_weights(&folder, "F32", 1);
    struct gguf_file *f = convert_thrice("Nemotron Omni");
    ok(f &&
           converted_file_text(f, "clip.vision.projector_type",
                               "nemotron_v2_vl") &&
           converted_file_text(f, "clip.audio.projector_type", "parakeet") &&
           !gguf_file_kv_find(f, "clip.projector_type"),
       "it has a type for images and one for sound");
    ok(converted_file_uint(f, "clip.audio.subsampling_factor", 8) &&
           converted_file_uint(f, "clip.audio.conv_kernel_size", 9) &&
           converted_file_uint(f, "clip.audio.projection_dim", 24) &&
           converted_file_uint(f, "clip.audio.num_mel_bins", 8),
       "sizes of sound are those of sound_config");
    check_places(f, PLACES(omni_places));
    gguf_file_close(f);
    folder_text(&folder, "config.json",
                OMNI("\"subsampling_factor\":4,\"conv_kernel_size\":9,"));
    f = convert_folder("F32", &e);
    ok(!f && strstr(e.message, "subsampling_factor"),
       "another subsampling: %s", e.message);
    folder_text(&folder, "config.json",
                OMNI("\"subsampling_factor\":8,\"conv_kernel_size\":8,"));
    f = convert_folder("F32", &e);
    ok(!f && strstr(e.message, "conv_kernel_size"), "an even filter: %s",
       e.message);
}

/* ---- projectors whose language model is elsewhere ---- */

static void check_alone(void)
{
    static const struct {
        const char *members, *why;
    } cases[] = {
        { "\"text_model_id\":\"owner/name\"",
          "of class 'UltravoxModel' only the projector is converted "
          "(--mmproj); its language model is another folder, 'owner/name'" },
        { "\"text_config\":{}",
          "of class 'UltravoxModel' only the projector is converted "
          "(--mmproj), since no known class is named for its language "
          "model" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        struct gguf_error e;
        struct gguf_convert *c;
        snprintf(text, sizeof text,
                 "{\"architectures\":[\"UltravoxModel\"],%s}",
                 cases[i].members);
        folder_begin(&folder, scratch_path(top, "alone"));
        folder_text(&folder, "config.json", text);
        folder_tensors(&folder, "multi_modal_projector.ln_pre.weight 8\n", 1,
                       1);
        folder_weights(&folder, "F32", 1);
        ok(gguf_convert_open(&c, folder.dir, NULL, &e) == GGUF_E_ARCH &&
               strstr(e.message, cases[i].why),
           "%s: %s", cases[i].members, e.message);
        gguf_convert_close(c);
    }
}

int main(void)
{
    static const char *const folders[] = { "hf", "omni", "alone" };
    snprintf(top, sizeof top, "check-speech.%d", (int)getpid());
    folder_begin(&folder, top);
    check_pocket();
    check_omni();
    check_alone();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *dir = scratch_path(top, folders[i]);
        scratch_clean(dir);
        rmdir(dir);
    }
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
