/* SPDX-License-Identifier: MIT */
/* folder.c - the texts of a folder */
#include "config.h"
#include "convert/folder/folder.h"

#include "base/compiler.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check the folder first: a message about its first file would not mention
 * it. */
static enum gguf_status check_folder(const struct gg_dir *folder,
                                     struct gguf_error *err)
{
    struct gg_os_stat s;
    if (gg_dir_is_remote(folder))
        return GGUF_OK;
    if (gg_os_stat(folder->path, &s) != 0)
        return errno == ENOENT ? gg_error_set(err, GGUF_E_NOTFOUND,
                                              GGUF_NO_OFFSET, "no such folder")
                               : GGUF_OK;
    if (s.kind == GG_OS_FOLDER)
        return GGUF_OK;
    struct gg_str_esc e;
    const size_t n = gg_os_path_trim(
        folder->path,
        gg_os_path_folder_size(folder->path, strlen(folder->path)));
    const struct gguf_str own = { n ? folder->path : ".", n ? n : 1 };
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "is a file: a folder is wanted, as '%s', which it is "
                        "in",
                        gg_str_esc(&e, own));
}

enum gguf_status gg_folder_open(struct gg_folder *f, const char *path,
                                const struct gguf_convert_params *p,
                                struct gg_mem_arena *arena,
                                struct gguf_error *err)
{
    *f = (struct gg_folder){ .p = p, .arena = arena, .card = { .fd = -1 } };
    GG_TRY(gguf_paths_create(&f->opened, p->allocator, err));
    f->dir = (struct gg_dir){ gg_mem_arena_strndup(arena, path, strlen(path)),
                              p->opener, p->allocator, f->opened };
    return f->dir.path ? check_folder(&f->dir, err)
                       : gg_error_set_nomem(err, strlen(path));
}

void gg_folder_close(struct gg_folder *f)
{
    gg_safetensors_close(f->weights);
    gguf_paths_destroy(f->opened);
}

/* Limit of a text in bytes: the largest tokenizers have some 50 MB. */
#define MOST_TEXT (UINT64_C(256) << 20)

enum gguf_status gg_convert_prefix_error(const char *name, enum gguf_status st,
                                         struct gguf_error *err)
{
    char message[sizeof err->message];
    if (st == GGUF_OK || !err)
        return st;
    memcpy(message, err->message, sizeof message);
    snprintf(err->message, sizeof err->message, "%s: %.400s", name, message);
    return st;
}

/* The folder of the tokenizer for text_encoder, text_encoder_2 and so on of a
 * pipeline is tokenizer, tokenizer_2 and so on beside it. Returns false if the
 * folder or the file is another one. */
static bool find_tokenizer(const struct gg_folder *f, const char *name,
                           char path[], size_t size)
{
    static const char part[] = "text_encoder";
    struct gguf_str front = gg_str_z(f->dir.path);
    const char *last = gg_os_path_name(f->dir.path);
    front.size = (size_t)(last - f->dir.path);
    if (strncmp(last, part, sizeof part - 1) != 0 ||
        (strncmp(name, "tokenizer", 9) != 0 &&
         strcmp(name, "spiece.model") != 0 &&
         strcmp(name, "special_tokens_map.json") != 0 &&
         strcmp(name, "added_tokens.json") != 0))
        return false;
    const int n = snprintf(path, size, "%.*stokenizer%s", (int)front.size,
                           front.data, last + sizeof part - 1);
    return n > 0 && (size_t)n < size;
}

enum gguf_status gg_folder_map(struct gg_folder *f, const char *name,
                               struct gg_mapfile *m, bool *there,
                               struct gguf_error *err)
{
    char path[1024];
    struct gg_dir beside = f->dir;
    enum gguf_status st = gg_dir_map(&f->dir, name, MOST_TEXT, m, there, err);
    if (st == GGUF_OK && !*there &&
        find_tokenizer(f, name, path, sizeof path)) {
        beside.path = path;
        st = gg_dir_map(&beside, name, MOST_TEXT, m, there, err);
    }
    return gg_convert_prefix_error(name, st, err);
}

enum gguf_status gg_folder_read_json(struct gg_folder *f, const char *name,
                                     struct gg_mapfile *m,
                                     struct gg_json *json,
                                     struct gguf_error *err)
{
    bool there;
    *m = (struct gg_mapfile){ .fd = -1 };
    *json = (struct gg_json){ .root = NULL };
    GG_TRY(gg_folder_map(f, name, m, &there, err));
    if (!there)
        return GGUF_OK;
    const enum gguf_status st = gg_convert_prefix_error(
        name,
        gg_json_read(json, (const char *)m->data, (size_t)m->size, 0,
                     GG_JSON_PYTHON, err),
        err);
    if (st != GGUF_OK)
        gg_mapfile_close(m);
    return st;
}

const char *const gg_folder_lazy_members[] = { "model", "vocab", "merges",
                                               NULL };

static enum gguf_status read_text(struct gg_folder *f,
                                  struct gg_convert_text *t,
                                  struct gguf_error *err)
{
    bool there;
    GG_TRY(gg_folder_map(f, t->name, &t->map, &there, err));
    if (!there)
        return GGUF_OK;
    const char *const *later =
        t == &f->text[GG_CONVERT_TOKENIZER] ? gg_folder_lazy_members : NULL;
    return gg_convert_prefix_error(
        t->name,
        gg_json_read_without(&t->json, (const char *)t->map.data,
                             (size_t)t->map.size, 0, GG_JSON_PYTHON, later,
                             err),
        err);
}

/* Members with the language model's part of config.json in multimodal
 * models. */
static json_t *language_of(json_t *root)
{
    static const char *const names[] = { "text_config", "language_config",
                                         "llm_config",  "lm_config",
                                         "lfm",         "talker_config" };
    json_t *text = json_object_get(json_object_get(root, "thinker_config"),
                                   "text_config");
    for (size_t i = 0; i < GG_LEN(names) && !json_is_object(text); i++)
        text = json_object_get(root, names[i]);
    return json_is_object(text) ? text : root;
}

/* Files of unsupported formats. */
static const struct gg_dir_alternative instead[] = {
    { "params", ".json",
      "is of the authors' own form (Mistral, Llama): download or make the "
      "files of transformers" },
    { "model_index", ".json",
      "is of a pipeline of diffusers, whose parts are folders" },
    { "adapter_model", ".safetensors",
      "is an adapter, whose adapter_config.json is missing" },
};

enum gguf_status gg_folder_read_texts(struct gg_folder *f,
                                      struct gguf_error *err)
{
    static const char *const names[GG_CONVERT_N_TEXTS] = {
        [GG_CONVERT_CONFIG] = "config.json",
        [GG_CONVERT_GENERATION] = "generation_config.json",
        [GG_CONVERT_TOKENIZER] = "tokenizer.json",
        [GG_CONVERT_TOKENIZER_CONFIG] = "tokenizer_config.json",
        [GG_CONVERT_ADDED] = "added_tokens.json",
    };
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++) {
        f->text[i].name = names[i];
        f->text[i].map.fd = -1;
    }
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++)
        GG_TRY(read_text(f, &f->text[i], err));
    if (f->p->projector && !f->text[GG_CONVERT_CONFIG].json.root) {
        f->text[GG_CONVERT_CONFIG].name = "params.json"; /* Mistral's form */
        GG_TRY(read_text(f, &f->text[GG_CONVERT_CONFIG], err));
    }
    return GGUF_OK;
}

enum gguf_status gg_folder_find_config(struct gg_folder *f,
                                       struct gguf_error *err)
{
    json_t *root = f->text[GG_CONVERT_CONFIG].json.root;
    if (!root)
        return gg_dir_fail_missing(&f->dir, "no config.json", instead,
                                   GG_LEN(instead), err);
    f->config = language_of(root);
    return GGUF_OK;
}

void gg_folder_close_texts(struct gg_folder *f)
{
    json_decref(f->read);
    f->read = NULL;
    gg_mapfile_close(&f->card);
    gg_json_fini(&f->adapter.json);
    if (f->adapter.name)
        gg_mapfile_close(&f->adapter.map);
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++) {
        gg_json_fini(&f->text[i].json);
        if (f->text[i].name)
            gg_mapfile_close(&f->text[i].map);
    }
}

/* ---- the name of the folder ---- */

/* The last segment of a path, which becomes the path without it. */
static struct gguf_str take_last(struct gguf_str *path)
{
    size_t end = path->size;
    while (end && gg_os_path_separates(path->data[end - 1]))
        end--;
    const size_t begin = gg_os_path_folder_size(path->data, end);
    path->size = begin < end ? begin : 0;
    return (struct gguf_str){ path->data + begin, end - begin };
}

static bool is_all(struct gguf_str s, const char *letters)
{
    size_t n = 0;
    while (n < s.size && s.data[n] && strchr(letters, s.data[n]))
        n++;
    return n == s.size;
}

bool gg_folder_is_generic_name(struct gguf_str name)
{
    static const char step[] = "checkpoint-";
    struct gguf_str rest = name;
    if (gg_str_eqz(name, "") || gg_str_eqz(name, ".") ||
        gg_str_eqz(name, "..") || gg_str_eqz(name, "snapshots"))
        return true;
    if (gg_str_starts(name, step) && name.size > sizeof step - 1) {
        rest.data += sizeof step - 1;
        rest.size -= sizeof step - 1;
        return is_all(rest, "0123456789");
    }
    return (name.size == 40 || name.size == 64) &&
           is_all(name, "0123456789abcdef");
}

/* Change "models--OWNER--NAME", the form of caches, into OWNER/NAME, in the
 * arena. Any other name stays. */
static enum gguf_status read_cache_name(struct gg_folder *f,
                                        struct gguf_str *name,
                                        struct gguf_error *err)
{
    static const char front[] = "models--";
    const size_t n = sizeof front - 1;
    if (!gg_str_starts(*name, front) || name->size == n)
        return GGUF_OK;
    char *s = gg_mem_arena_strndup(f->arena, name->data + n, name->size - n);
    if (!s)
        return gg_error_set_nomem(err, name->size);
    char *dashes = strstr(s, "--");
    if (dashes && dashes > s && dashes[2]) {
        *dashes = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    *name = gg_str_z(s);
    return GGUF_OK;
}

/* Is this the path of a repository's snapshots in a cache? */
static bool is_snapshots(struct gguf_str path)
{
    const struct gguf_str folder = take_last(&path);
    return gg_str_eqz(folder, "snapshots") &&
           gg_str_starts(take_last(&path), "models--");
}

/* The last segment of path that is a name. */
static struct gguf_str find_name(struct gguf_str path)
{
    struct gguf_str name = take_last(&path);
    while (path.size &&
           (gg_folder_is_generic_name(name) || is_snapshots(path)))
        name = take_last(&path);
    return name;
}

enum gguf_status gg_folder_read_name(struct gg_folder *f, struct gguf_str *out,
                                     struct gguf_error *err)
{
    struct gguf_str path = gg_str_z(f->dir.path), rest = path;
    if (gg_dir_is_remote(&f->dir)) {
        *out = find_name(path);
        const char *at = memchr(out->data, '@', out->size);
        if (at && at > out->data)
            out->size = (size_t)(at - out->data); /* a revision follows */
        return read_cache_name(f, out, err);
    }
    *out = take_last(&rest);
    char *real = gg_os_real_path(f->dir.path);
    if (!real)
        return gg_error_set_errno(err, errno, "the folder's own name");
    rest = gg_str_z(real);
    /* the path may be a link with a name of its own */
    if (gg_folder_is_generic_name(*out) || gg_str_eq(*out, take_last(&rest)))
        path = find_name(gg_str_z(real));
    else
        path = *out;
    if (path.size)
        *out = path;
    out->data = gg_mem_arena_strndup(f->arena, out->data, out->size);
    free(real);
    return out->data ? read_cache_name(f, out, err)
                     : gg_error_set_nomem(err, out->size + 1);
}

/* ---- values of config.json ---- */

const json_t *gg_folder_get_config(const struct gg_folder *f,
                                   const char *names)
{
    const struct gg_hf_config cfg = gg_folder_config(f);
    return gg_hf_config_get(&cfg, names);
}

bool gg_folder_get_count(const struct gg_folder *f, const char *names,
                         int64_t *out)
{
    int64_t v;
    if (!gg_json_int(gg_folder_get_config(f, names), &v) || v < 1 ||
        v > INT32_MAX)
        return false;
    *out = v;
    return true;
}

enum gguf_status gg_folder_set_config(struct gg_folder *f, const char *name,
                                      json_t *value, struct gguf_error *err)
{
    return json_object_set_new(f->config, name, value)
               ? gg_error_set_nomem(err, sizeof(json_t *))
               : GGUF_OK;
}
