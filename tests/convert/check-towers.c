/* SPDX-License-Identifier: MIT */
/* check-towers.c - projectors of folders whose sizes, settings and names differ
 * from those of published models
 *
 * Values of keys are those that llama.cpp's converter writes (d32676d77), or,
 * where settings are absent, those of transformers' classes of settings.
 */
#include "config.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/folder.h"
#include "tests/convert/projector_file.h"
#include "tests/scratch.h"

#include <math.h>
#include <unistd.h>

static char top[200];
static struct folder folder;

#define MEAN "\"image_mean\":[0.5,0.25,0.125],\"image_std\":[1,2,4]"

static void begin_layers(const char *config, const char *tensors, int n_layers)
{
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_text(&folder, "config.json", config);
    folder_text(&folder, "preprocessor_config.json", "{" MEAN "}");
    folder_tensors(&folder, tensors, n_layers, 2);
    folder_weights(&folder, "F32", 1);
}

static void begin_folder(const char *config, const char *tensors)
{
    begin_layers(config, tensors, 1);
}

/* Convert the folder's projector to F32: one test. NULL: it is refused. */
static struct gguf_file *convert_folder(const char *what)
{
    struct gguf_error e;
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_file *f = projector_open(folder.dir, out, "F32", &e);
    ok(f, "%s is converted %s", what, e.message);
    unlink(out);
    return f;
}

static bool has_number(const struct gguf_file *f, const char *key, float want)
{
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    double x;
    return kv && gguf_kv_get_float(kv, &x, NULL) == GGUF_OK &&
           (float)x == want;
}

/* ---- sizes ---- */

/* Rows of patches, pixels of three colours, become three images of a colour. */
static void check_patch(void)
{
    enum { PATCH = 3, WIDTH = 4, AREA = PATCH * PATCH };
    const char *from = "vision_tower.vision_model.embeddings.patch_embedding."
                       "weight";
    begin_folder(
        "{\"architectures\":[\"Lfm2VlForConditionalGeneration\"],"
        "\"text_config\":{\"hidden_size\":8},\"vision_config\":{"
        "\"hidden_size\":4,\"intermediate_size\":8,\"layer_norm_eps\":0.5,"
        "\"num_attention_heads\":2,\"num_hidden_layers\":1,\"patch_size\":3}}",
        "vision_tower.vision_model.embeddings.patch_embedding.weight 4 27\n"
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight 8 4\n");
    struct gguf_file *f = convert_folder("LFM2-VL with patches of 3 by 3");
    const float *x =
        converted_file_matrix(f, "v.patch_embd.weight", PATCH, PATCH);
    bool good = x;
    for (uint64_t o = 0; good && o < WIDTH; o++)
        for (uint64_t c = 0; c < 3; c++)
            for (uint64_t p = 0; p < AREA; p++)
                good = good && x[(3 * o + c) * AREA + p] ==
                                   folder_value(from, (AREA * o + p) * 3 + c);
    ok(good, "the size of patches is that of config.json");
    gguf_file_close(f);
}

/* The second DeepSeek-OCR's number of layers, by any of its names. */
static void check_layers(void)
{
    begin_folder(
        "{\"architectures\":[\"DeepseekOCR2ForCausalLM\"],"
        "\"hidden_size\":8,\"vision_config\":{\"image_size\":32,"
        "\"num_hidden_layers\":2,\"width\":{\"qwen2-0-5b\":{\"dim\":4},"
        "\"sam_vit_b\":{\"layers\":1,\"width\":4,\"heads\":1}}}}",
        "model.qwen2_model.model.model.layers.0.input_layernorm.weight 4\n"
        "model.qwen2_model.model.model.layers.1.input_layernorm.weight 4\n");
    struct gguf_file *f = convert_folder("DeepSeek-OCR 2");
    ok(converted_file_uint(f, "clip.vision.block_count", 2),
       "num_hidden_layers is the number of layers");
    gguf_file_close(f);
}

/* ---- settings ---- */

static void check_omni(void)
{
    begin_folder("{\"architectures\":[\"Qwen3OmniMoeForConditionalGeneration\""
                 "],\"thinker_config\":{\"text_config\":{\"hidden_size\":8,"
                 "\"rms_norm_eps\":0.25},\"audio_config\":{\"d_model\":4,"
                 "\"encoder_ffn_dim\":8,\"encoder_layers\":1,"
                 "\"encoder_attention_heads\":1,\"num_mel_bins\":8},"
                 "\"vision_config\":{\"depth\":1,\"hidden_size\":4,"
                 "\"intermediate_size\":8,\"num_heads\":1,\"patch_size\":2,"
                 "\"spatial_merge_size\":2,\"deepstack_visual_indexes\":[]}}}",
                 "thinker.visual.blocks.0.norm1.weight 4\n"
                 "thinker.audio_tower.layers.0.fc1.weight 8 4\n");
    struct gguf_file *f = convert_folder("Qwen3-Omni");
    ok(has_number(f, "clip.vision.attention.layer_norm_epsilon", 0.25f),
       "the epsilon of its tower is the language model's");
    gguf_file_close(f);
}

#define PADDLE                                                                \
    "{\"architectures\":[\"PaddleOCRVLForConditionalGeneration\"],"           \
    "\"hidden_size\":8,\"vision_config\":{\"hidden_size\":4,"                 \
    "\"intermediate_size\":8,\"num_attention_heads\":1,"                      \
    "\"num_hidden_layers\":1,\"patch_size\":2}}"

/* transformers 5 has limits in "size" and all settings of images in the file of
 * the processor. */
static void check_pixels(void)
{
    begin_folder(PADDLE, "mlp_AR.linear_1.weight 8 16\n");
    unlink(scratch_path(folder.dir, "preprocessor_config.json"));
    folder_text(&folder, "processor_config.json",
                "{\"image_processor\":{" MEAN ",\"size\":"
                "{\"shortest_edge\":64,\"longest_edge\":1000}}}");
    struct gguf_file *f = convert_folder("PaddleOCR-VL");
    ok(converted_file_uint(f, "clip.vision.image_min_pixels", 64) &&
           converted_file_uint(f, "clip.vision.image_max_pixels", 1000) &&
           converted_file_uint(f, "clip.vision.image_size", 31),
       "edges of images are numbers of pixels");
    gguf_file_close(f);
    begin_folder("{\"architectures\":[\"KimiK25ForConditionalGeneration\"],"
                 "\"text_config\":{\"hidden_size\":8},\"vision_config\":{"
                 "\"vt_hidden_size\":8,\"vt_intermediate_size\":8,"
                 "\"vt_num_attention_heads\":1,\"vt_num_hidden_layers\":1,"
                 "\"patch_size\":2}}",
                 "mm_projector.pre_norm.weight 8\n");
    unlink(scratch_path(folder.dir, "preprocessor_config.json"));
    folder_text(&folder, "processor_config.json",
                "{\"image_processor\":{\"media_proc_cfg\":{" MEAN
                ",\"in_patch_limit\":100}}}");
    f = convert_folder("Kimi K2.5 with settings two levels deep");
    ok(converted_file_uint(f, "clip.vision.image_max_pixels", 400),
       "settings of media are found in the processor's file");
    gguf_file_close(f);
    scratch_clean(folder.dir);
}

/* Sizes that published files lack, of PixtralVisionConfig; and the width of the
 * language model, which Qwen2-Audio's lacks. */
static void check_absent(void)
{
    begin_layers("{\"architectures\":[\"LightOnOCRForConditionalGeneration\"],"
                 "\"text_config\":{\"hidden_size\":8},\"vision_config\":{"
                 "\"model_type\":\"pixtral\",\"image_size\":8,"
                 "\"patch_size\":4,\"hidden_act\":\"silu\"}}",
                 "model.vision_encoder.transformer.layers.%.ffn_norm.weight "
                 "1024\n",
                 24);
    struct gguf_file *f = convert_folder("a tower of Pixtral without sizes");
    ok(converted_file_uint(f, "clip.vision.embedding_length", 1024) &&
           converted_file_uint(f, "clip.vision.feed_forward_length", 4096) &&
           converted_file_uint(f, "clip.vision.block_count", 24) &&
           converted_file_uint(f, "clip.vision.attention.head_count", 16),
       "sizes are those of transformers' class");
    gguf_file_close(f);
    begin_folder("{\"architectures\":[\"Qwen2AudioForConditionalGeneration\"],"
                 "\"text_config\":{\"model_type\":\"qwen2\"},"
                 "\"audio_config\":{\"d_model\":4,\"encoder_ffn_dim\":8,"
                 "\"encoder_layers\":1,\"encoder_attention_heads\":1,"
                 "\"num_mel_bins\":8}}",
                 "multi_modal_projector.linear.weight 12 4\n");
    f = convert_folder("Qwen2-Audio without a width of the language model");
    ok(converted_file_uint(f, "clip.audio.projection_dim", 12),
       "the width is that of the projector's matrix");
    gguf_file_close(f);
}

/* ---- names ---- */

#define NORM "conformer.layers.8.conv.batch_norm."

enum { N = 2 }; /* variances of this layer are above 0 */

/* weight / sqrt(variance + 1e-5), and bias - mean * factor, in double
 * precision. */
static bool is_folded(const struct gguf_file *f, const char *start)
{
    const float *x =
        converted_file_matrix(f, "a.blk.8.conv_norm.weight", N, 1);
    const float *y = converted_file_matrix(f, "a.blk.8.conv_norm.bias", N, 1);
    char name[4][128];
    static const char *const parts[] = { "weight", "bias", "running_mean",
                                         "running_var" };
    for (int k = 0; k < 4; k++)
        snprintf(name[k], sizeof name[k], "%s" NORM "%s", start, parts[k]);
    for (uint64_t i = 0; x && y && i < N; i++) {
        const double factor =
            folder_value(name[0], i) / sqrt(folder_value(name[3], i) + 1e-5);
        const double offset =
            folder_value(name[1], i) - folder_value(name[2], i) * factor;
        if (!(fabs(x[i] - factor) <= 1e-6 * fabs(factor)) ||
            !(fabs(y[i] - offset) <= 1e-5 * (fabs(offset) + fabs(factor))))
            return false;
    }
    return x && y;
}

/* Batch norms are found under the names of newer releases too. */
static void check_norms(void)
{
    static const char *const starts[] = { "", "model." };
    for (int k = 0; k < 2; k++) {
        char tensors[512];
        snprintf(tensors, sizeof tensors,
                 "%s" NORM "weight 2\n%s" NORM "bias 2\n%s" NORM
                 "running_mean 2\n%s" NORM "running_var 2\n"
                 "conformer.layers.%%.norm_out.weight 2\n",
                 starts[k], starts[k], starts[k], starts[k]);
        begin_layers("{\"architectures\":["
                     "\"Lfm2AudioForConditionalGeneration\"],"
                     "\"lfm\":{\"hidden_size\":8},\"encoder\":{"
                     "\"d_model\":2,\"n_heads\":1,\"n_layers\":9,"
                     "\"feat_in\":8}}",
                     tensors, 9);
        struct gguf_file *f = convert_folder("LFM2-Audio");
        ok(is_folded(f, starts[k]),
           "a batch norm is a factor and an offset, names with '%s'",
           starts[k]);
        gguf_file_close(f);
    }
}

int main(void)
{
    snprintf(top, sizeof top, "check-towers.%d", (int)getpid());
    folder_begin(&folder, top);
    check_patch();
    check_layers();
    check_omni();
    check_pixels();
    check_absent();
    check_norms();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
