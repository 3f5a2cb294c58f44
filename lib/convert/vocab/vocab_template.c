/* SPDX-License-Identifier: MIT */
/* vocab_template.c - chat templates of a folder
 *
 * Places of templates, in order of precedence: tokenizer_config.json
 * ("chat_template": a text, or a list of objects with "name" and "template"),
 * chat_template.jinja, additional_chat_templates/NAME.jinja, and
 * chat_template.json (of processors, "chat_template"). The template "default"
 * becomes tokenizer.chat_template. Others become tokenizer.chat_template.NAME,
 * and their names tokenizer.chat_templates.
 *
 * Keys and precedence are those of llama.cpp's converter (SpecialVocab in
 * gguf-py/gguf/vocab.py, add_chat_template in gguf_writer.py): letters and
 * digits of a name stay, other characters become '_'. Two differences: a place
 * without a default template does not hide later places, and two different
 * templates with one name are noted.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/os/os.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "additional_chat_templates"
enum { MOST_TEMPLATES = 256, MOST_NAME = 100 };

struct chat_template {
    char name[MOST_NAME];
    struct gguf_str text; /* owned by the arena of the conversion */
    char where[160];      /* place of it, for notes */
};

struct templates {
    struct gg_folder *folder;
    struct gguf_meta *meta;
    struct chat_template *one;
    size_t n;
};

static struct chat_template *find_template(const struct templates *t,
                                           const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->one[i].name, name))
            return &t->one[i];
    return NULL;
}

static bool is_blank(struct gguf_str s)
{
    while (s.size && isspace((unsigned char)*s.data)) {
        s.data++;
        s.size--;
    }
    return !s.size;
}

/* Clean a name: letters and digits of ASCII stay, other characters become
 * '_'. */
static void clean_name(struct gguf_str name, char out[MOST_NAME])
{
    size_t n = 0;
    for (size_t i = 0; i < name.size && n + 1 < MOST_NAME; i++) {
        const unsigned char ch = (unsigned char)name.data[i];
        if (ch < 0x80)
            out[n++] = isalnum(ch) ? (char)ch : '_';
        else if (ch >= 0xc0) /* the first byte of a character */
            out[n++] = '_';
    }
    out[n] = 0;
}

/* Add a template, unless there is one with this name. where: its place. */
static enum gguf_status add_template(struct templates *t, struct gguf_str name,
                                     struct gguf_str text, const char *where,
                                     struct gguf_error *err)
{
    char clean[MOST_NAME];
    clean_name(name, clean);
    if (!*clean || is_blank(text)) {
        gg_folder_warn(t->folder,
                       "%s: the chat template '%s' is empty: left out", where,
                       clean);
        return GGUF_OK;
    }
    const struct chat_template *other = find_template(t, clean);
    if (other) {
        if (!gg_str_eq(other->text, text))
            gg_folder_warn(t->folder,
                           "%s: the chat template '%s' differs from that in "
                           "%s, which is taken",
                           where, clean, other->where);
        return GGUF_OK;
    }
    if (t->n == MOST_TEMPLATES)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "more than %d chat templates", MOST_TEMPLATES);
    struct chat_template *to = &t->one[t->n++];
    memcpy(to->name, clean, sizeof clean);
    snprintf(to->where, sizeof to->where, "%s", where);
    to->text.data =
        gg_mem_arena_strndup(t->folder->arena, text.data, text.size);
    to->text.size = text.size;
    return to->text.data ? GGUF_OK : gg_error_set_nomem(err, text.size + 1);
}

/* ---- places ---- */

/* A text, or a list of named ones. */
static enum gguf_status add_json(struct templates *t, const json_t *v,
                                 const char *where, struct gguf_error *err)
{
    struct gguf_str name, text;
    if (gg_json_str(v, &text))
        return add_template(t, GG_STR("default"), text, where, err);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *e = json_array_get(v, i);
        if (gg_json_str(json_object_get(e, "name"), &name) && name.size &&
            gg_json_str(json_object_get(e, "template"), &text))
            GG_TRY(add_template(t, name, text, where, err));
        else
            gg_folder_warn(t->folder,
                           "%s: element %zu of \"chat_template\" has no name "
                           "or no template: left out",
                           where, i);
    }
    if (v && !json_is_null(v) && !json_is_array(v))
        gg_folder_warn(t->folder,
                       "%s: \"chat_template\" is neither a text nor a list: "
                       "left out",
                       where);
    return GGUF_OK;
}

/* *there: there is such a file. */
static enum gguf_status add_file(struct templates *t, const char *path,
                                 struct gguf_str name, bool *there,
                                 struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    struct gg_str_esc e;
    GG_TRY(gg_folder_map(t->folder, path, &m, there, err));
    if (!*there)
        return GGUF_OK;
    gg_str_esc(&e, gg_str_z(path));
    const struct gguf_str text = { (const char *)m.data, (size_t)m.size };
    const enum gguf_status st =
        gg_str_utf8_valid(text.data, text.size)
            ? add_template(t, name, text, e.s, err)
            : gg_error_set(err, GGUF_E_FORMAT, 0, "%s is not UTF-8", e.s);
    gg_mapfile_close(&m);
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files of the folder that end in .jinja, by name. */
static enum gguf_status list_files(struct templates *t,
                                   char *name[MOST_TEMPLATES], size_t *n,
                                   struct gguf_error *err)
{
    char path[4096];
    const char *x;
    enum gguf_status st = GGUF_OK;
    *n = 0;
    if (snprintf(path, sizeof path, "%s/" FOLDER, t->folder->dir.path) >=
        (int)sizeof path)
        return GGUF_OK;
    struct gg_os_folder *d = gg_os_folder_open(path);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return gg_error_set_errno(err, errno, "%s", FOLDER);
    while (d && st == GGUF_OK && (x = gg_os_folder_next(d)) != NULL) {
        const struct gguf_str s = gg_str_z(x);
        if (*x == '.' || !gg_str_ends(s, ".jinja"))
            continue;
        if (*n == MOST_TEMPLATES)
            st =
                gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                             "%s: more than %d files", FOLDER, MOST_TEMPLATES);
        else if (!(name[(*n)++] =
                       gg_mem_arena_strndup(t->folder->arena, s.data, s.size)))
            st = gg_error_set_nomem(err, s.size + 1);
    }
    if (d)
        gg_os_folder_close(d);
    if (*n)
        qsort(name, *n, sizeof *name, compare_names);
    return st;
}

/* A folder on a server cannot be listed: try the published names of files. */
static enum gguf_status add_folder(struct templates *t, struct gguf_error *err)
{
    static const char *const published[] = { "rag.jinja", "reranker.jinja",
                                             "tool_use.jinja" };
    char *list[MOST_TEMPLATES], path[400];
    const bool far = gg_dir_is_remote(&t->folder->dir);
    size_t n = GG_LEN(published);
    bool there;
    if (!far)
        GG_TRY(list_files(t, list, &n, err));
    for (size_t i = 0; i < n; i++) {
        const char *file = far ? published[i] : list[i];
        snprintf(path, sizeof path, FOLDER "/%s", file);
        GG_TRY(add_file(
            t, path,
            (struct gguf_str){ file, strlen(file) - strlen(".jinja") }, &there,
            err));
    }
    return GGUF_OK;
}

static enum gguf_status add_processor(struct templates *t,
                                      struct gguf_error *err)
{
    static const char name[] = "chat_template.json";
    struct gg_mapfile m = { .fd = -1 };
    struct gg_json j = { .root = NULL };
    bool there;
    GG_TRY(gg_folder_map(t->folder, name, &m, &there, err));
    if (!there)
        return GGUF_OK;
    enum gguf_status st = gg_convert_prefix_error(
        name,
        gg_json_read(&j, (const char *)m.data, (size_t)m.size, 0,
                     GG_JSON_PYTHON, err),
        err);
    const json_t *v = json_object_get(j.root, "chat_template");
    if (st == GGUF_OK && !v)
        gg_folder_warn(t->folder, "%s: there is no \"chat_template\"", name);
    if (st == GGUF_OK)
        st = add_json(t, v, name, err);
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return st;
}

static enum gguf_status collect_templates(struct templates *t,
                                          struct gguf_error *err)
{
    const json_t *root =
        t->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    bool there;
    GG_TRY(add_json(t, json_object_get(root, "chat_template"),
                    "tokenizer_config.json", err));
    GG_TRY(add_file(t, "chat_template.jinja", GG_STR("default"), &there, err));
    if (there || !gg_dir_is_remote(&t->folder->dir))
        GG_TRY(add_folder(t, err));
    return add_processor(t, err);
}

/* ---- keys ---- */

/* Write the names: those of the class's row, then those of the folder. */
static enum gguf_status set_names(const struct templates *t,
                                  struct gguf_error *err)
{
    static const char key[] = "tokenizer.chat_templates";
    const struct gguf_kv *kv = gguf_meta_find(t->meta, key);
    struct gguf_str name[2 * MOST_TEMPLATES], s;
    struct gguf_kv_iter it;
    size_t n = 0;
    if (kv)
        gguf_kv_iter_init(&it, kv);
    while (kv && n < MOST_TEMPLATES && gguf_kv_iter_next_str(&it, &s)) {
        name[n].data = gg_mem_arena_strndup(t->folder->arena, s.data, s.size);
        name[n].size = s.size;
        if (!name[n++].data)
            return gg_error_set_nomem(err, s.size + 1);
    }
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->one[i].name, "default") != 0)
            name[n++] = gg_str_z(t->one[i].name);
    return n ? gguf_meta_set_str_array(t->meta, key, name, n, err) : GGUF_OK;
}

/* Write named templates. Those whose key exists are removed from the list. */
static enum gguf_status set_named(struct templates *t, struct gguf_error *err)
{
    char key[MOST_NAME + 32];
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct chat_template one = t->one[i];
        const bool is_default = !strcmp(one.name, "default");
        snprintf(key, sizeof key, "tokenizer.chat_template.%s", one.name);
        if (!is_default && gguf_meta_find(t->meta, key)) {
            gg_folder_warn(t->folder,
                           "%s: the chat template '%s' is left out: the kind "
                           "of model has its own",
                           one.where, one.name);
            continue;
        }
        if (!is_default)
            GG_TRY(gguf_meta_set_str(t->meta, key, one.text, err));
        t->one[n++] = one;
    }
    t->n = n;
    return set_names(t, err);
}

enum gguf_status
gg_convert_vocab_add_templates(const struct gg_convert_vocab *v,
                               struct gguf_error *err)
{
    const struct gguf_allocator *a = v->folder->p->allocator;
    struct templates t = { v->folder, v->meta,
                           gg_mem_alloc_zero(a, MOST_TEMPLATES, sizeof *t.one),
                           0 };
    if (!t.one)
        return gg_error_set_nomem(err, MOST_TEMPLATES * sizeof *t.one);
    enum gguf_status st = collect_templates(&t, err);
    if (st == GGUF_OK)
        st = set_named(&t, err);
    const struct chat_template *main = find_template(&t, "default");
    if (st == GGUF_OK && main)
        st = gguf_meta_set_str(v->meta, "tokenizer.chat_template", main->text,
                               err);
    gg_mem_free(a, t.one);
    return st;
}
