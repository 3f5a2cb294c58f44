/* SPDX-License-Identifier: MIT */
/* check-projector.c - projectors of small folders: names, keys, and places of
 * elements
 *
 * Places are computed here from the definitions of the towers. The names and
 * keys are those that llama.cpp's converter writes (d32676d77).
 */
#include "config.h"
#include "convert/describe/axes.h"
#include "convert/projector/projector.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/folder.h"
#include "tests/convert/projector_file.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

#define IMAGE                                                                 \
    "{\"image_mean\":[0.5,0.25,0.125],\"image_std\":[1,2,4],"                 \
    "\"min_pixels\":64,\"max_pixels\":4096}"
#define NORM(NAME) NAME ".weight 16\n" NAME ".bias 16\n"

static char top[200];
static struct folder folder;

static void begin_folder(const char *config, const char *tensors)
{
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_text(&folder, "config.json", config);
    folder_text(&folder, "preprocessor_config.json", IMAGE);
    folder_tensors(&folder, tensors, 2, 2);
    folder_weights(&folder, "F32", 1);
}

/* Convert the folder's projector. NULL: *e says why it is refused. */
static struct gguf_file *convert_folder(const char *type, struct gguf_error *e)
{
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_file *f = projector_open(folder.dir, out, type, e);
    unlink(out);
    return f;
}

static struct gguf_file *convert_or_fail(const char *what)
{
    struct gguf_error e;
    struct gguf_file *f = convert_folder("F32", &e);
    ok(f, "%s is converted %s", what, e.message);
    return f;
}

static void is_refused(const char *what, const char *why)
{
    struct gguf_error e;
    struct gguf_file *f = convert_folder("F32", &e);
    ok(!f && strstr(e.message, why), "%s: %s", what, e.message);
    gguf_file_close(f);
}

/* Numbers of a tensor with n elements in F32. NULL: missing, or of another
 * type. */
static const float *find_numbers(const struct gguf_file *f, const char *name,
                                 uint64_t n)
{
    for (size_t i = 0; f && i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        if (t->name.size == strlen(name) &&
            !memcmp(t->name.data, name, t->name.size) &&
            t->dtype == GGUF_DTYPE_F32 && t->n_elements == n)
            return gguf_file_tensor_data(f, i);
    }
    return NULL;
}

static uint32_t type_of(const struct gguf_file *f, const char *name)
{
    const struct gguf_tensor_info *t =
        f ? gguf_file_tensor_find(f, name) : NULL;
    return t ? t->dtype : UINT32_MAX;
}

static bool has_f32s(const struct gguf_file *f, const char *key,
                     const float want[3])
{
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    float x[3];
    return kv && kv->n == 3 &&
           gguf_kv_get_elems_f32(kv, 0, 3, x, NULL) == GGUF_OK &&
           !memcmp(x, want, sizeof x);
}

/* ---- Qwen2-VL ---- */

#define VIT "model.visual.blocks.%."
static const char qwen2_config[] =
    "{\"architectures\":[\"Qwen2VLForConditionalGeneration\"],"
    "\"model_type\":\"qwen2_vl\",\"hidden_size\":24,\"vision_config\":{"
    "\"depth\":2,\"embed_dim\":16,\"hidden_size\":24,\"num_heads\":2,"
    "\"patch_size\":4}}";
static const char qwen2_tensors[] =
    "model.visual.patch_embed.proj.weight 16 3 2 4 4\n" NORM(VIT "norm1")
        NORM(VIT "norm2") VIT
    "attn.qkv.weight 48 16\n" VIT "attn.qkv.bias 48\n" VIT
    "attn.proj.weight 16 16\n" VIT "attn.proj.bias 16\n" VIT
    "mlp.fc1.weight 24 16\n" VIT "mlp.fc2.weight 16 24\n"
    "model.visual.merger.ln_q.weight 16\n"
    "model.visual.merger.mlp.0.weight 64 64\n"
    "model.visual.merger.mlp.2.weight 24 64\n"
    "model.language_model.layers.0.x.weight 8\n"
    "lm_head.weight 24 24\n";

static bool has_filters(const struct gguf_file *f)
{
    const char *from = "model.visual.patch_embed.proj.weight";
    const float *x[2] = { find_numbers(f, "v.patch_embd.weight", 768),
                          find_numbers(f, "v.patch_embd.weight.1", 768) };
    bool good = x[0] && x[1];
    for (uint64_t o = 0; good && o < 16; o++)
        for (uint64_t c = 0; c < 3; c++)
            for (uint64_t i = 0; i < 2; i++)
                for (uint64_t p = 0; p < 16; p++)
                    good =
                        good &&
                        x[i][(3 * o + c) * 16 + p] ==
                            folder_value(from, ((3 * o + c) * 2 + i) * 16 + p);
    return good;
}

static bool has_third(const struct gguf_file *f, const char *name, int no)
{
    const float *x = find_numbers(f, name, 256);
    for (uint64_t i = 0; x && i < 256; i++)
        if (x[i] != folder_value("model.visual.blocks.1.attn.qkv.weight",
                                 256 * (uint64_t)no + i))
            return false;
    return x;
}

static void check_qwen2(void)
{
    static const float mean[3] = { 0.5f, 0.25f, 0.125f };
    struct gguf_error e;
    begin_folder(qwen2_config, qwen2_tensors);
    struct gguf_file *f = convert_or_fail("Qwen2-VL");
    ok(f && converted_file_text(f, "general.architecture", "clip") &&
           converted_file_text(f, "general.type", "mmproj") &&
           converted_file_text(f, "clip.projector_type", "qwen2vl_merger"),
       "it says what it is");
    ok(converted_file_uint(f, "clip.vision.image_size", 560) &&
           converted_file_uint(f, "clip.vision.projection_dim", 24) &&
           converted_file_uint(f, "clip.vision.embedding_length", 16) &&
           converted_file_uint(f, "clip.vision.feed_forward_length", 24) &&
           converted_file_uint(f, "clip.vision.block_count", 2),
       "sizes are those of the tower");
    ok(has_f32s(f, "clip.vision.image_mean", mean),
       "the mean of images is that of the processor");
    ok(has_filters(f), "a filter over two images is two filters");
    ok(has_third(f, "v.blk.1.attn_q.weight", 0) &&
           has_third(f, "v.blk.1.attn_k.weight", 1) &&
           has_third(f, "v.blk.1.attn_v.weight", 2),
       "a fused matrix is three");
    ok(f && !gguf_file_tensor_find(f, "output.weight") &&
           gguf_file_n_tensors(f) == 33,
       "tensors of the language model are left out");
    gguf_file_close(f);
    f = convert_folder("F16", &e);
    ok(type_of(f, "v.patch_embd.weight.1") == GGUF_DTYPE_F16 &&
           type_of(f, "v.blk.0.attn_q.weight") == GGUF_DTYPE_F16 &&
           type_of(f, "v.blk.0.attn_q.bias") == GGUF_DTYPE_F32,
       "with F16, filters and matrices have it");
    gguf_file_close(f);
    f = convert_folder("Q8_0", &e);
    ok(type_of(f, "v.patch_embd.weight") == GGUF_DTYPE_F32 &&
           type_of(f, "mm.0.weight") == GGUF_DTYPE_Q8_0 &&
           type_of(f, "v.blk.0.attn_q.weight") == GGUF_DTYPE_F16,
       "with Q8_0, filters are not quantized");
    gguf_file_close(f);
}

static void check_qwen2_refused(void)
{
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"LlamaForCausalLM\"],"
                "\"hidden_size\":24}");
    is_refused("a class without a projector", "no projector of class");
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"Qwen2VLForConditionalGeneration\"],"
                "\"model_type\":\"qwen2_vl\",\"hidden_size\":24}");
    is_refused("no settings of the tower", "vision_config");
    folder_text(&folder, "config.json", qwen2_config);
    folder_text(&folder, "preprocessor_config.json", "{}");
    is_refused("no settings of images", "clip.vision.image_mean");
    begin_folder(qwen2_config, "visual.patch_embed.proj.weight 16 3 3 4 4\n");
    is_refused("a filter over three images", "another shape");
    is_refused("and its shape", "16 x 3 x 3 x 4 x 4, expected o, c, 2");
    begin_folder(qwen2_config, "visual.merger.ln_q.weight 1 1 1 1 1 1\n");
    is_refused("six dimensions", "has 6 dimensions, at most 4 are possible");
    begin_folder(qwen2_config, "visual.other.weight 16\n");
    is_refused("an unknown tensor", "has no place");
    begin_folder(qwen2_config, "model.layers.0.x.weight 16\n");
    is_refused("a folder without a tower", "no tensors of a projector");
}

/* Sizes that are impossible, or not those of the tensors: the message has the
 * key, the value and the limit. */
static void check_sizes_refused(void)
{
    static const struct {
        const char *embed_dim, *patch, *layers, *why;
    } rows[] = {
        { "16", "4", "4294967296",
          "'clip.vision.block_count' is 4294967296, expected a whole number of "
          "32 bits" },
        { "16", "4", "2147483648",
          "clip.vision.block_count is 2147483648, must be 0 to 2147483647" },
        { "16", "4", "2147483647", "there are more layers than tensors" },
        { "16", "0", "2", "clip.vision.patch_size is 0, must be 1" },
        { "16", "4.5", "2", "'clip.vision.patch_size' is 4.5, expected" },
        { "32", "4", "2",
          "is for width 16, clip.vision.embedding_length is "
          "32" },
        { "16", "5", "2",
          "is for patches of 4 x 4, clip.vision.patch_size is "
          "5" },
        { "16", "NaN", "2", "config.json" },
    };
    char config[400];
    begin_folder(qwen2_config, qwen2_tensors);
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        snprintf(config, sizeof config,
                 "{\"architectures\":[\"Qwen2VLForConditionalGeneration\"],"
                 "\"model_type\":\"qwen2_vl\",\"hidden_size\":24,"
                 "\"vision_config\":{\"depth\":%s,\"embed_dim\":%s,"
                 "\"hidden_size\":24,\"num_heads\":2,\"patch_size\":%s}}",
                 rows[i].layers, rows[i].embed_dim, rows[i].patch);
        folder_text(&folder, "config.json", config);
        is_refused("sizes", rows[i].why);
    }
}

/* ---- MiniMax M3: heads of 80 rows ---- */

/* The row of the folder that row r of a head of the file is: three axes of two
 * halves of 13, and 2 rows without rotation. The folder has the first halves of
 * all axes before the second halves. */
static uint64_t minimax_row(uint64_t r)
{
    const uint64_t axis = r / 26, half = r % 26 / 13;
    return r < 78 ? half * 39 + axis * 13 + r % 13 : r;
}

static void check_minimax(void)
{
    const char *q = "vision_tower.vision_model.encoder.layers.0.self_attn."
                    "q_proj.weight";
    begin_folder(
        "{\"architectures\":[\"MiniMaxM3SparseForConditionalGeneration\"],"
        "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
        "\"hidden_size\":160,\"image_size\":8,\"intermediate_size\":32,"
        "\"num_attention_heads\":2,\"num_hidden_layers\":1,"
        "\"patch_size\":4}}",
        "vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight "
        "160 160\n"
        "vision_tower.vision_model.encoder.layers.0.self_attn.k_proj.bias "
        "160\n");
    struct gguf_file *f = convert_or_fail("MiniMax M3");
    const float *x = find_numbers(f, "v.blk.0.attn_q.weight", 25600);
    const float *b = find_numbers(f, "v.blk.0.attn_k.bias", 160);
    bool good = x && b;
    for (uint64_t r = 0; good && r < 160; r++) {
        const uint64_t from = r / 80 * 80 + minimax_row(r % 80);
        for (uint64_t k = 0; k < 160; k++)
            good = good && x[160 * r + k] == folder_value(q, 160 * from + k);
        good =
            good && b[r] == folder_value("vision_tower.vision_model.encoder."
                                         "layers.0.self_attn.k_proj.bias",
                                         from);
    }
    ok(good, "rows of heads have the halves of an axis side by side");
    gguf_file_close(f);
}

/* ---- Kimi K2.5: heads of pairs of two axes ---- */

static void check_kimi(void)
{
    enum { HEADS = 2, HEAD = 8, ROWS = HEADS * HEAD };
    const char *from = "vision_tower.encoder.blocks.0.wqkv.bias";
    begin_folder("{\"architectures\":[\"KimiK25ForConditionalGeneration\"],"
                 "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
                 "\"vt_hidden_size\":16,\"vt_intermediate_size\":32,"
                 "\"vt_num_attention_heads\":2,\"vt_num_hidden_layers\":1,"
                 "\"patch_size\":4,\"init_pos_emb_height\":6}}",
                 "vision_tower.encoder.blocks.0.wqkv.bias 48\n");
    struct gguf_file *f = convert_or_fail("Kimi K2.5");
    const float *x = find_numbers(f, "v.blk.0.attn_qkv.bias", 3 * ROWS);
    bool good = x;
    for (uint64_t r = 0; good && r < ROWS; r++) {
        const uint64_t d = r % HEAD, axis = d / 4, pair = d % 4 / 2;
        const uint64_t row = r / HEAD * HEAD + 4 * pair + 2 * axis + d % 2;
        good = x[r] == folder_value(from, row) &&
               x[ROWS + r] == folder_value(from, ROWS + row) &&
               x[2 * ROWS + r] == folder_value(from, 2 * ROWS + r);
    }
    ok(good, "queries and keys have the pairs of an axis side by side");
    ok(converted_file_uint(f, "clip.vision.image_size", 24) &&
           converted_file_uint(f, "clip.vision.pos_emb_height", 6) &&
           converted_file_uint(f, "clip.vision.image_max_pixels", 16384 * 16),
       "sizes follow from patches");
    gguf_file_close(f);
}

/* ---- Pixtral ---- */

#define PIXTRAL_VISION                                                        \
    "\"vision_config\":{\"hidden_size\":16,\"image_size\":8,"                 \
    "\"intermediate_size\":32,\"model_type\":\"pixtral\","                    \
    "\"num_attention_heads\":2,\"num_hidden_layers\":1,\"patch_size\":4,"     \
    "\"hidden_act\":\"silu\"}}"

static void check_pixtral(void)
{
    const char *q = "vision_tower.transformer.layers.0.attention.q_proj."
                    "weight";
    const char *embed = "language_model.model.embed_tokens.weight";
    begin_folder("{\"architectures\":[\"LlavaForConditionalGeneration\"],"
                 "\"text_config\":{\"hidden_size\":24}," PIXTRAL_VISION,
                 "vision_tower.transformer.layers.0.attention.q_proj.weight "
                 "16 16\n"
                 "language_model.model.embed_tokens.weight 9 24\n"
                 "multi_modal_projector.linear_1.weight 24 16\n");
    is_refused("a tokenizer without [IMG_BREAK]", "[IMG_BREAK]");
    folder_text(&folder, "tokenizer_config.json",
                "{\"added_tokens_decoder\":{\"7\":{\"content\":"
                "\"[IMG_BREAK]\"}}}");
    struct gguf_file *f = convert_or_fail("Pixtral");
    const float *x = find_numbers(f, "v.blk.0.attn_q.weight", 256);
    const float *t = find_numbers(f, "v.token_embd.img_break", 24);
    bool good = x;
    for (uint64_t r = 0; good && r < 16; r++)
        for (uint64_t k = 0; k < 16; k++)
            good = good &&
                   x[16 * r + k] ==
                       folder_value(
                           q, 16 * (r / 8 * 8 + r % 2 * 4 + r % 8 / 2) + k);
    ok(good, "rows of heads have pairs of neighbours for rotation");
    for (uint64_t k = 0; t && k < 24; k++)
        good = good && t[k] == folder_value(embed, 7 * 24 + k);
    ok(good && t, "the vector of [IMG_BREAK] is the embedding's row");
    gguf_file_close(f);
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"LlavaForConditionalGeneration\"],"
                "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
                "\"model_type\":\"pixtral\",\"hidden_act\":\"relu\"}}");
    is_refused("another activation", "hidden_act");
}

/* ---- LLaVA ---- */

#define CLIP "vision_tower.vision_model."
#define LLAVA_VISION                                                          \
    "\"text_config\":{\"model_type\":\"mistral\"},\"vision_config\":{"        \
    "\"hidden_size\":16,\"image_size\":8,\"intermediate_size\":32,"           \
    "\"model_type\":\"clip_vision_model\",\"num_attention_heads\":2,"         \
    "\"num_hidden_layers\":2,\"patch_size\":4"
static const char llava_config[] =
    "{\"architectures\":[\"LlavaNextForConditionalGeneration\"],"
    "\"image_grid_pinpoints\":[[8,16],[24,8]],"
    "\"vision_feature_layer\":-2," LLAVA_VISION "}}";
static const char llava_tensors[] = CLIP
    "embeddings.class_embedding 16\n" CLIP
    "embeddings.patch_embedding.weight 16 3 4 4\n" CLIP
    "embeddings.position_embedding.weight 5 16\n" NORM(CLIP "pre_layrnorm")
        NORM(CLIP "post_layernorm") NORM(CLIP "encoder.layers.%.layer_norm1")
            CLIP "encoder.layers.%.mlp.fc1.weight 32 16\nimage_newline 24\n"
                 "multi_modal_projector.linear_1.weight 24 16\n"
                 "multi_modal_projector.linear_2.weight 24 24\n"
                 "language_model.lm_head.weight 9 24\n";

static bool has_ints(const struct gguf_file *f, const char *key, size_t n,
                     const int32_t *want)
{
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    int32_t x[4];
    return kv && kv->n == n && n <= 4 &&
           gguf_kv_get_elems_i32(kv, 0, n, x, NULL) == GGUF_OK &&
           !memcmp(x, want, n * sizeof *x);
}

static void check_llava(void)
{
    static const int32_t layer[] = { 1 }, sizes[] = { 16, 8, 8, 24 };
    begin_folder(llava_config, llava_tensors);
    struct gguf_file *f = convert_or_fail("LLaVA 1.6");
    ok(converted_file_text(f, "clip.projector_type", "mlp") &&
           converted_file_uint(f, "clip.vision.projection_dim", 24) &&
           has_ints(f, "clip.vision.image_grid_pinpoints", 4, sizes),
       "the width is that of the projector; sizes are width, height");
    ok(converted_file_uint(f, "clip.vision.block_count", 1) &&
           has_ints(f, "clip.vision.feature_layer", 1, layer) &&
           type_of(f, "v.blk.0.ffn_up.weight") == GGUF_DTYPE_F32 &&
           type_of(f, "v.blk.1.ffn_up.weight") == UINT32_MAX &&
           type_of(f, "v.post_ln.weight") == UINT32_MAX,
       "layers after the last that is used are left out");
    ok(f && !gguf_file_kv_find(f, "clip.use_gelu") &&
           gguf_file_n_tensors(f) == 11,
       "CLIP's activation is the one that readers compute without a key");
    gguf_file_close(f);
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"LlavaForConditionalGeneration\"],"
                "\"vision_feature_layer\":-3," LLAVA_VISION "}}");
    is_refused("no layer of the tower", "vision_feature_layer");
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"LlavaForConditionalGeneration\"],"
                "\"vision_feature_select_strategy\":\"full\"," LLAVA_VISION
                "}}");
    is_refused("the vector of the class among the patches'",
               "vision_feature_select_strategy");
    folder_text(
        &folder, "config.json",
        "{\"architectures\":[\"LlavaForConditionalGeneration\"]," LLAVA_VISION
        ",\"hidden_act\":\"silu\"}}");
    is_refused("an activation that readers of LLaVA lack", "hidden_act");
}

/* Mistral's own form: other names of files, settings and tensors. */
static void check_params(void)
{
    begin_folder("{}", "vision_encoder.patch_conv.weight 16 3 4 4\n"
                       "tok_embeddings.weight 9 24\n"
                       "vision_encoder.transformer.layers.0.attention.wq."
                       "weight 16 16\n"
                       "layers.0.attention.wq.weight 24 24\n");
    unlink(scratch_path(folder.dir, "config.json"));
    unlink(scratch_path(folder.dir, "preprocessor_config.json"));
    rename(scratch_path(folder.dir, "model.safetensors"),
           scratch_path(folder.dir, "consolidated.safetensors"));
    folder_text(&folder, "params.json",
                "{\"dim\":24,\"norm_eps\":0.5,\"vision_encoder\":{"
                "\"hidden_size\":16,\"image_size\":8,\"patch_size\":4,"
                "\"intermediate_size\":32,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":2,\"rope_theta\":100,"
                "\"image_break_token_id\":5}}");
    struct gguf_file *f = convert_or_fail("a folder in Mistral's form");
    const float *t = find_numbers(f, "v.token_embd.img_break", 24);
    ok(t && t[3] == folder_value("tok_embeddings.weight", 5 * 24 + 3) && f &&
           gguf_file_n_tensors(f) == 3,
       "the vector of [IMG_BREAK] is the row that params.json names");
    gguf_file_close(f);
    scratch_clean(folder.dir);
}

/* ---- Gemma 3 ---- */

static void check_gemma3(void)
{
    const char *norm = "model.multi_modal_projector.mm_soft_emb_norm.weight";
    begin_folder(
        "{\"architectures\":[\"Gemma3ForConditionalGeneration\"],"
        "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
        "\"hidden_size\":16,\"image_size\":128,"
        "\"intermediate_size\":32,\"num_attention_heads\":2,"
        "\"num_hidden_layers\":1,\"patch_size\":4}}",
        "model.multi_modal_projector.mm_soft_emb_norm.weight 16\n"
        "model.multi_modal_projector.mm_input_projection_weight 16 "
        "24\n"
        "model.vision_tower.vision_model.embeddings.position_"
        "embedding.weight 64 16\n"
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight 32 "
        "16\n"
        "vision_tower.vision_model.head.probe 1 1 16\n");
    struct gguf_file *f = convert_or_fail("Gemma 3");
    const float *x = find_numbers(f, "mm.soft_emb_norm.weight", 16);
    bool good = x;
    for (uint64_t i = 0; good && i < 16; i++)
        good = x[i] == folder_value(norm, i) + 1;
    ok(good, "the norm of the projector gets 1 added");
    ok(type_of(f, "mm.input_projection.weight") == GGUF_DTYPE_F16 &&
           type_of(f, "v.position_embd.weight") == GGUF_DTYPE_F32,
       "matrices that programs read as F16 only have it in every file");
    ok(converted_file_uint(f, "clip.vision.projector.scale_factor", 2),
       "a scale that is not the default is written");
    ok(f && gguf_file_n_tensors(f) == 4, "tensors without use are left out");
    gguf_file_close(f);
}

/* ---- names of axes ---- */

/* Do the factors of the axes differ from the sizes of language models, which
 * config.json may have, too? */
static bool has_own_axes(const struct gg_convert_arch *arch, const char *text)
{
    struct gg_axes a;
    bool good = gg_axes_read(&a, text);
    for (size_t i = 0; good && i < a.n; i++)
        for (size_t k = 0; good && k < a.axis[i].n; k++) {
            const struct gg_convert_size *s =
                gg_axes_find_size(arch, a.axis[i].factor[k].name);
            for (size_t n = 0; s && gg_convert_sizes[n].name; n++)
                good = good && s != &gg_convert_sizes[n];
        }
    return good;
}

static void check_axes(void)
{
    const struct gg_projector *p;
    const char *bad = NULL;
    for (size_t i = 0; (p = gg_projector_row(i)); i++)
        for (size_t k = 0; k < GG_LEN(p->arch.names) && p->arch.names[k]; k++)
            for (const struct gg_convert_name *n = p->arch.names[k]; n->from;
                 n++)
                if (n->axes && !has_own_axes(&p->arch, n->axes))
                    bad = n->from;
    ok(!bad, "no axis has the name of a language model's size: %s",
       bad ? bad : "");
}

int main(void)
{
    snprintf(top, sizeof top, "check-projector.%d", (int)getpid());
    folder_begin(&folder, top);
    check_qwen2();
    check_qwen2_refused();
    check_sizes_refused();
    check_minimax();
    check_kimi();
    check_pixtral();
    check_llava();
    check_params();
    check_gemma3();
    check_axes();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
