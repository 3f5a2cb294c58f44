/* SPDX-License-Identifier: MIT */
/* check-projector-back.c - projectors that become folders again
 *
 * Folders of small models are converted and made again of the file. Their
 * tensors must have the names, shapes and numbers of the first folder, and the
 * second conversion must give the bytes of the first.
 */
#include "config.h"
#include "base/compiler.h"
#include "convert/projector/projector.h"
#include "tests/convert/folder.h"
#include "tests/convert/projector_file.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define IMAGE                                                                 \
    "{\"image_mean\":[0.5,0.25,0.125],\"image_std\":[1,2,4],"                 \
    "\"min_pixels\":64,\"max_pixels\":4096}"
#define NORM(NAME) NAME ".weight 16\n" NAME ".bias 16\n"
#define FULL(NAME) NAME ".weight 16 16\n" NAME ".bias 16\n"

static char top[200], first[256], again[256], back[256];
static struct folder folder;

/* Count the keys without a place. */
static void count_key(void *user, const char *key)
{
    unsigned *n = user;
    printf("# the folder does not say %s\n", key);
    (*n)++;
}

static enum gguf_status make_folder(const char *file, unsigned *n_lost,
                                    struct gguf_error *e)
{
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    p.force = p.no_sync = 1;
    p.note = (struct gguf_folder_note_callback){ count_key, n_lost };
    *n_lost = 0;
    return gguf_folder_write(file, back, &p, e);
}

/* ---- tensors of the folder that was made ---- */

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *x = NULL;
    *n = 0;
    if (f && !fseek(f, 0, SEEK_END)) {
        const long size = ftell(f);
        x = size >= 0 ? malloc((size_t)size + 1) : NULL;
        rewind(f);
        *n = x ? fread(x, 1, (size_t)size, f) : 0;
    }
    if (f)
        fclose(f);
    return x;
}

/* Does a tensor of the new folder have the shape and the numbers of the first
 * folder's? */
static bool is_tensor(const char *name, const json_t *v, const char *data)
{
    const struct folder_tensor *t = folder_find(&folder, name);
    const json_t *shape = json_object_get(v, "shape");
    const json_int_t off = json_integer_value(
        json_array_get(json_object_get(v, "data_offsets"), 0));
    bool good = t && json_array_size(shape) == t->n_dims &&
                !strcmp(json_string_value(json_object_get(v, "dtype")), "F32");
    for (unsigned d = 0; good && d < t->n_dims; d++)
        good = (uint64_t)json_integer_value(json_array_get(shape, d)) ==
               t->shape[d];
    for (uint64_t i = 0; good && i < t->n; i++) {
        const float want = folder_value(name, i);
        good = !memcmp(data + (size_t)off + 4 * i, &want, 4);
    }
    if (!good)
        printf("# %s\n", name);
    return good;
}

/* Number of tensors of the new folder; -1: one of them is wrong. Numbers are
 * compared on little-endian machines only. */
static int count_tensors(void)
{
    size_t n, n_head = 0;
    char *x = read_file(scratch_path(back, "model.safetensors"), &n);
    int count = x && n > 8 ? 0 : -1;
    const char *name;
    json_t *v;
    for (size_t i = 0; !count && i < 8; i++)
        n_head |= (size_t)(unsigned char)x[i] << 8 * i;
    json_t *root = !count ? json_loadb(x + 8, n_head, 0, NULL) : NULL;
    json_object_foreach(root, name, v)
    {
        if (strcmp(name, "__metadata__") != 0 && count >= 0)
            count = is_tensor(name, v, x + 8 + n_head) ? count + 1 : -1;
    }
    json_decref(root);
    free(x);
    return count;
}

static bool same_files(void)
{
    size_t n, m;
    char *x = read_file(first, &n), *y = read_file(again, &m);
    const bool same = x && y && n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

/* ---- models ---- */

static void begin_folder(const char *config, const char *tensors)
{
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_text(&folder, "config.json", config);
    folder_text(&folder, "preprocessor_config.json", IMAGE);
    folder_tensors(&folder, tensors, 2, 2);
    folder_weights(&folder, "F32", 1);
}

/* n: tensors of the projector. */
static void check_model(const char *what, const char *config,
                        const char *tensors, int n)
{
    struct gguf_error e;
    unsigned n_lost = 0;
    gguf_error_clear(&e);
    begin_folder(config, tensors);
    scratch_clean(back);
    enum gguf_status st = projector_write(folder.dir, first, "F32", &e);
    if (st == GGUF_OK)
        st = make_folder(first, &n_lost, &e);
    ok(st == GGUF_OK && !n_lost, "%s: a folder of the file %s", what,
       e.message);
    const int is = count_tensors();
    ok(is == n, "%s: %d tensors with the names, shapes and numbers of %d",
       what, is, n);
    st = projector_write(back, again, "F32", &e);
    ok(st == GGUF_OK && same_files(), "%s: it becomes the same file %s", what,
       e.message);
}

#define VIT "visual.blocks.%."
static const char qwen2_tensors[] =
    "visual.patch_embed.proj.weight 16 3 2 4 4\n" NORM(VIT "norm1")
        NORM(VIT "norm2") VIT "attn.qkv.weight 48 16\n" VIT
                              "attn.qkv.bias 48\n" FULL(VIT "attn.proj") VIT
    "mlp.fc1.weight 64 16\n" VIT "mlp.fc2.weight 16 64\n"
    "visual.merger.ln_q.weight 16\nvisual.merger.mlp.0.weight 64 64\n"
    "visual.merger.mlp.2.weight 24 64\nlm_head.weight 24 24\n";
static const char qwen2_config[] =
    "{\"architectures\":[\"Qwen2VLForConditionalGeneration\"],"
    "\"model_type\":\"qwen2_vl\",\"hidden_size\":24,\"vision_config\":{"
    "\"depth\":2,\"embed_dim\":16,\"hidden_size\":24,\"num_heads\":2,"
    "\"patch_size\":4}}";

#define QWEN3 "model.visual."
static const char qwen3_tensors[] =
    QWEN3 "patch_embed.proj.weight 16 3 2 4 4\n" QWEN3
          "pos_embed.weight 9 16\n" NORM(QWEN3 "blocks.%.norm1") QWEN3
    "blocks.%.attn.qkv.weight 48 16\n" QWEN3 "merger.norm.weight 16\n" QWEN3
    "deepstack_merger_list.0.norm.weight 16\n" QWEN3
    "deepstack_merger_list.0.linear_fc1.weight 16 16\n";

#define CLIP "vision_tower.vision_model."
static const char llava_tensors[] = CLIP
    "embeddings.class_embedding 16\n" CLIP
    "embeddings.patch_embedding.weight 16 3 4 4\n" NORM(CLIP "pre_layrnorm")
        NORM(CLIP "encoder.layers.%.layer_norm1") CLIP
    "encoder.layers.%.mlp.fc1.weight 32 16\nimage_newline 24\n"
    "multi_modal_projector.linear_1.weight 24 16\n"
    "multi_modal_projector.linear_2.weight 24 24\n";

static void check_models(void)
{
    check_model("Qwen2-VL", qwen2_config, qwen2_tensors, 24);
    check_model("Qwen3-VL",
                "{\"architectures\":[\"Qwen3VLForConditionalGeneration\"],"
                "\"text_config\":{\"hidden_size\":24,\"rms_norm_eps\":1e-5},"
                "\"vision_config\":{\"depth\":2,\"hidden_size\":16,"
                "\"intermediate_size\":32,\"num_heads\":2,\"patch_size\":4,"
                "\"spatial_merge_size\":2,\"num_position_embeddings\":9,"
                "\"deepstack_visual_indexes\":[1]}}",
                qwen3_tensors, 11);
    check_model("LLaVA 1.6",
                "{\"architectures\":[\"LlavaNextForConditionalGeneration\"],"
                "\"image_grid_pinpoints\":[[8,16],[24,8]],"
                "\"vision_feature_layer\":-1,\"text_config\":{\"model_type\":"
                "\"mistral\"},\"vision_config\":{\"hidden_size\":16,"
                "\"image_size\":8,\"intermediate_size\":32,\"model_type\":"
                "\"clip_vision_model\",\"num_attention_heads\":2,"
                "\"num_hidden_layers\":2,\"patch_size\":4}}",
                llava_tensors, 13);
    check_model("Kimi-VL",
                "{\"architectures\":[\"KimiVLForConditionalGeneration\"],"
                "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
                "\"hidden_size\":16,\"intermediate_size\":32,"
                "\"num_attention_heads\":2,\"num_hidden_layers\":2,"
                "\"patch_size\":4,\"init_pos_emb_height\":3,"
                "\"init_pos_emb_width\":3}}",
                "vision_tower.patch_embed.pos_emb.weight 3 3 16\n"
                "vision_tower.encoder.blocks.%.wqkv.weight 48 16\n"
                "multi_modal_projector.linear_1.weight 16 16\n",
                4);
    check_model("Kimi K2.5",
                "{\"architectures\":[\"KimiK25ForConditionalGeneration\"],"
                "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
                "\"vt_hidden_size\":16,\"vt_intermediate_size\":32,"
                "\"vt_num_attention_heads\":2,\"vt_num_hidden_layers\":2,"
                "\"patch_size\":4,\"init_pos_emb_height\":6}}",
                "vision_tower.encoder.blocks.%.wqkv.weight 48 16\n"
                "vision_tower.encoder.blocks.%.wqkv.bias 48\n"
                "mm_projector.proj.2.weight 24 16\n",
                5);
    check_model("Janus",
                "{\"architectures\":[\"JanusForConditionalGeneration\"],"
                "\"text_config\":{\"hidden_size\":24},\"vision_config\":{"
                "\"hidden_size\":16,\"image_size\":8,\"mlp_ratio\":2,"
                "\"num_attention_heads\":2,\"num_hidden_layers\":2,"
                "\"patch_size\":4,\"hidden_act\":\"gelu\"}}",
                "model.vision_model.embeddings.patch_embedding.weight "
                "16 3 4 4\n"
                "model.vision_model.encoder.layers.%.mlp.fc1.bias 32\n"
                "model.aligner.fc1.weight 24 16\n"
                "model.aligner.hidden_layers.%.weight 24 24\n",
                6);
}

/* ---- files without a folder ---- */

static void check_refused(void)
{
    struct gguf_error e;
    unsigned n_lost;
    begin_folder("{\"architectures\":[\"HunYuanVLForConditionalGeneration\"],"
                 "\"hidden_size\":24,\"vision_config\":{\"hidden_size\":16,"
                 "\"intermediate_size\":32,\"num_attention_heads\":2,"
                 "\"num_hidden_layers\":1,\"patch_size\":4}}",
                 "vit.embeddings.position_embedding.weight 10 16\n"
                 "vit.layers.0.mlp.dense_h_to_4h.bias 32\n");
    gguf_error_clear(&e);
    enum gguf_status st = projector_write(folder.dir, first, "F32", &e);
    if (st == GGUF_OK)
        st = make_folder(first, &n_lost, &e);
    ok(st == GGUF_E_UNSUPPORTED && strstr(e.message, "no way back") &&
           strstr(e.message, "positions"),
       "a class without a way back says why: %s", e.message);
    /* both matrices of a layer in each other's place */
    begin_folder(qwen2_config,
                 "visual.patch_embed.proj.weight 16 3 2 4 4\n" VIT
                 "mlp.fc1.weight 16 64\n" VIT "mlp.fc2.weight 64 16\n");
    st = projector_write(folder.dir, first, "F32", &e);
    if (st == GGUF_OK)
        st = make_folder(first, &n_lost, &e);
    ok(st == GGUF_E_UNSUPPORTED && strstr(e.message, "other way round"),
       "old files with exchanged matrices are refused: %s", e.message);
}

/* Each class has a way back or a text that says why not. */
static void check_rows(void)
{
    const struct gg_projector *p;
    size_t n = 0, n_without = 0, bad = 0;
    for (; (p = gg_projector_row(n)); n++) {
        n_without += p->no_back != NULL;
        bad += p->no_back && strlen(p->no_back) < 10;
    }
    ok(n > 40 && !bad && n_without < n / 3, "%zu of %zu rows without",
       n_without, n);
}

int main(void)
{
    snprintf(top, sizeof top, "check-projector-back.%d", (int)getpid());
    folder_begin(&folder, top);
    folder_begin(&folder, scratch_path(top, "to"));
    snprintf(first, sizeof first, "%s", scratch_path(top, "first.gguf"));
    snprintf(again, sizeof again, "%s", scratch_path(top, "again.gguf"));
    /* the name of the model is that of the folder */
    snprintf(back, sizeof back, "%s/to/hf", top);
    check_models();
    check_refused();
    check_rows();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
