/* SPDX-License-Identifier: MIT */
/* image_files.c - weights of an image or video model: one file, or a folder
 *
 * A folder is that of a model in diffusers, with the files
 * diffusion_pytorch_model.safetensors or their index, or that of a pipeline,
 * whose model_index.json names its parts: { "transformer": [library, class],
 * ... }. The part that is converted is transformer or unet.
 */
#include "config.h"
#include "convert/image/image.h"

#include "base/os/os_path.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

bool gg_image_is_file(const char *path)
{
    return gg_str_ends(gg_str_z(path), ".safetensors");
}

enum gguf_status gg_image_open(struct gguf_convert *c, const char *path,
                               struct gguf_error *err)
{
    const char *name = gg_os_path_name(path);
    const size_t n = gg_os_path_trim(path, (size_t)(name - path));
    const char *folder =
        gg_mem_arena_strndup(&c->arena, n ? path : ".", n ? n : 1);
    c->image_file = gg_mem_arena_strndup(&c->arena, name, strlen(name));
    if (!folder || !c->image_file)
        return gg_error_set_nomem(err, n + strlen(name));
    return gg_folder_open(&c->folder, folder, &c->p, &c->arena, err);
}

/* ---- folders ---- */

/* Stem of the files of a model in diffusers, and those of its variants. */
static const char *const stems[] = { "diffusion_pytorch_model",
                                     "diffusion_pytorch_model.fp16",
                                     "diffusion_pytorch_model.bf16" };

static enum gguf_status has_file(const struct gg_folder *f, const char *stem,
                                 const char *end, bool *there,
                                 struct gguf_error *err)
{
    char name[96];
    struct gg_mapfile m = { .fd = -1 };
    snprintf(name, sizeof name, "%s%s", stem, end);
    GG_TRY(gg_convert_prefix_error(
        name, gg_dir_open(&f->dir, name, &m, there, err), err));
    if (*there)
        gg_mapfile_close(&m);
    return GGUF_OK;
}

/* Set c->image_stem to the stem of the folder's files. NULL: not found. */
static enum gguf_status find_stem(struct gguf_convert *c,
                                  struct gguf_error *err)
{
    static const char *const ends[] = { ".safetensors",
                                        ".safetensors.index.json" };
    for (size_t i = 0; i < GG_LEN(stems) * GG_LEN(ends); i++) {
        bool there;
        const char *stem = stems[i / GG_LEN(ends)];
        GG_TRY(
            has_file(&c->folder, stem, ends[i % GG_LEN(ends)], &there, err));
        if (!there)
            continue;
        c->image_stem = stem;
        return GGUF_OK;
    }
    return GGUF_OK;
}

/* Does the pipeline have this part? */
static bool has_part(const json_t *index, const char *name)
{
    return json_is_string(json_array_get(json_object_get(index, name), 1));
}

/* Tell which parts of the pipeline are not converted. */
static void note_others(const struct gguf_convert *c, const json_t *index,
                        const char *part)
{
    const char *key;
    const json_t *v;
    char list[160] = "";
    json_object_foreach((json_t *)(uintptr_t)index, key, v)
    {
        const size_t n = strlen(list);
        if (has_part(index, key) && strcmp(key, part) != 0 &&
            (!strncmp(key, "text_encoder", 12) || !strcmp(key, "unet") ||
             !strncmp(key, "transformer", 11)))
            snprintf(list + n, sizeof list - n, "%s%.20s", n ? ", " : "", key);
    }
    if (*list)
        gg_folder_note(&c->folder,
                       "%s of the pipeline is converted; folders of their own "
                       "are %s",
                       part, list);
}

/* Go to the folder of the pipeline's model. */
static enum gguf_status enter_pipeline(struct gguf_convert *c,
                                       const json_t *index,
                                       struct gguf_error *err)
{
    static const char *const parts[] = { "transformer", "unet" };
    struct gg_folder *f = &c->folder;
    for (size_t i = 0; i < GG_LEN(parts); i++) {
        if (!has_part(index, parts[i]))
            continue;
        const size_t n = strlen(f->dir.path) + 1 + strlen(parts[i]);
        char *path = gg_mem_arena_alloc(&c->arena, n + 1);
        if (!path)
            return gg_error_set_nomem(err, n + 1);
        snprintf(path, n + 1, "%s/%s", f->dir.path, parts[i]);
        note_others(c, index, parts[i]);
        f->dir.path = path;
        GG_TRY(find_stem(c, err));
        if (!c->image_stem)
            c->image_stem = stems[0];
        return GGUF_OK;
    }
    return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                        "model_index.json names neither a transformer nor a "
                        "unet");
}

enum gguf_status gg_image_find_folder(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const json_t *config = c->folder.text[GG_CONVERT_CONFIG].json.root;
    struct gg_mapfile m;
    struct gg_json j;
    if (config)
        return json_object_get(config, "_class_name") ? find_stem(c, err)
                                                      : GGUF_OK;
    GG_TRY(gg_folder_read_json(&c->folder, "model_index.json", &m, &j, err));
    if (!j.root)
        return find_stem(c, err);
    const enum gguf_status st = enter_pipeline(c, j.root, err);
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return st;
}

enum gguf_status gg_image_open_weights(struct gguf_convert *c,
                                       const struct gguf_limits *limits,
                                       struct gguf_error *err)
{
    bool there;
    if (c->image_stem)
        return gg_safetensors_open(&c->folder.weights, &c->folder.dir,
                                   c->image_stem, limits, c->codec, err);
    GG_TRY(gg_safetensors_create(&c->folder.weights, c->codec, c->p.allocator,
                                 err));
    c->folder.weights->limits = *limits;
    GG_TRY(gg_safetensors_add_file(c->folder.weights, &c->folder.dir,
                                   c->image_file, "", &there, err));
    return there ? GGUF_OK
                 : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                "no such file");
}
