/* SPDX-License-Identifier: MIT */
/* pooled.c - how the vectors of a text become one, and what the numbers of a
 * classifier are of
 *
 * Folders of sentence-transformers have modules.json, a list of steps with
 * "type" and "path"; that of pooling has a folder of its own, with config.json.
 * It becomes "modules_pooling" of the model's config.json, 1 for the mean, 2
 * for the first token, 3 for the last, where keys find it. Matrices that other
 * steps multiply by are left out, as upstream does without a switch, and noted.
 */
#include "config.h"
#include "convert/convert.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LABELS 100000

/* ---- pooling ---- */

static const struct {
    const char *flag, *mode;
    int number;
} modes[] = {
    { "pooling_mode_mean_tokens", "mean", 1 },
    { "pooling_mode_cls_token", "cls", 2 },
    { "pooling_mode_lasttoken", "lasttoken", 3 },
};

/* What config.json of the step says; 0: another kind. */
static int mode_of(const json_t *root)
{
    struct gguf_str mode;
    for (size_t i = 0; i < GG_LEN(modes); i++)
        if (json_is_true(json_object_get(root, modes[i].flag)))
            return modes[i].number;
    if (gg_json_str(json_object_get(root, "pooling_mode"), &mode))
        for (size_t i = 0; i < GG_LEN(modes); i++)
            if (gg_str_eqz(mode, modes[i].mode))
                return modes[i].number;
    return 0;
}

/* A JSON text of the folder: json->root is NULL if it is not there. */
static enum gguf_status read(struct gguf_convert *c, const char *name,
                             struct gg_mapfile *m, struct gg_json *json,
                             struct gguf_error *err)
{
    bool there;
    GG_TRY(gg_convert_map(c, name, m, &there, err));
    return there ? gg_convert_in(name,
                                 gg_json_read(json, (const char *)m->data,
                                              (size_t)m->size, 0,
                                              GG_JSON_PYTHON, err),
                                 err)
                 : GGUF_OK;
}

/* The path of the step that pools: the name of a folder; none is NULL. */
static enum gguf_status path_of(const struct gg_json *modules,
                                struct gguf_str *path, struct gguf_error *err)
{
    struct gguf_str type;
    struct gg_str_esc e;
    const json_t *step;
    size_t i;
    path->data = NULL;
    json_array_foreach(modules->root, i, step)
    {
        const json_t *v = json_object_get(step, "path");
        if (!gg_json_str(json_object_get(step, "type"), &type) ||
            !gg_str_ends(type, "Pooling") || !gg_json_str(v, path))
            continue;
        if (!path->size || path->size > 64 || *path->data == '.' ||
            strpbrk(path->data, "/\\:"))
            return gg_error_set(err, GGUF_E_FORMAT, gg_json_place(modules, v),
                                "modules.json: '%s' is no name of a folder",
                                gg_str_esc(&e, *path));
        return GGUF_OK;
    }
    return GGUF_OK;
}

/* Steps with weights of their own, after the model. */
static void note_left_out(const struct gguf_convert *c,
                          const struct gg_json *modules)
{
    static const char *const without[] = { "Transformer", "Pooling",
                                           "Normalize" };
    struct gguf_str type;
    const json_t *step;
    size_t i;
    json_array_foreach(modules->root, i, step)
    {
        char line[256];
        struct gg_str_esc e;
        bool known = false;
        if (!c->p.note || !gg_json_str(json_object_get(step, "type"), &type))
            continue;
        for (size_t k = 0; k < GG_LEN(without); k++)
            known = known || gg_str_ends(type, without[k]);
        if (known)
            continue;
        snprintf(line, sizeof line,
                 "modules.json: step %zu is left out: %s: vectors are "
                 "those before it",
                 i, gg_str_esc(&e, type));
        c->p.note(c->p.note_user, line);
    }
}

static enum gguf_status read_step(struct gguf_convert *c, struct gguf_str path,
                                  struct gguf_error *err)
{
    char name[96];
    struct gg_mapfile m = { .fd = -1 };
    struct gg_json json = { .root = NULL };
    snprintf(name, sizeof name, "%s/config.json", path.data);
    enum gguf_status st = read(c, name, &m, &json, err);
    const int mode = mode_of(json.root);
    if (st == GGUF_OK && !json.root)
        st = gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                          "modules.json: there is no %s", name);
    else if (st == GGUF_OK && !mode)
        st = gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                          "%s: pools otherwise than by the mean, the first or "
                          "the last token",
                          name);
    if (st == GGUF_OK &&
        json_object_set_new(c->config, "modules_pooling", json_integer(mode)))
        st = gg_error_set_nomem(err, sizeof(json_t *));
    gg_json_fini(&json);
    gg_mapfile_close(&m);
    return st;
}

enum gguf_status gg_convert_unsaid_pooling(struct gguf_convert *c,
                                           struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    struct gg_json json = { .root = NULL };
    struct gguf_str path = { NULL, 0 };
    enum gguf_status st = read(c, "modules.json", &m, &json, err);
    if (st == GGUF_OK && json.root) {
        note_left_out(c, &json);
        st = path_of(&json, &path, err);
    }
    if (st == GGUF_OK && path.data)
        st = read_step(c, path, err);
    gg_json_fini(&json);
    gg_mapfile_close(&m);
    return st;
}

/* ---- labels ---- */

enum gguf_status gg_convert_labels(struct gguf_convert *c, const char *key,
                                   const json_t *names, struct gguf_error *err)
{
    const size_t n = json_object_size(names);
    struct gguf_str *list;
    char no[24];
    if (!n || n > MOST_LABELS)
        return GGUF_OK;
    list = gg_mem_arena_alloc(&c->arena, n * sizeof *list);
    if (!list)
        return gg_error_set_nomem(err, n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        snprintf(no, sizeof no, "%zu", i);
        if (!gg_json_str(json_object_get(names, no), &list[i]))
            return gg_error_set(
                err, GGUF_E_HPARAM,
                gg_json_place(&c->text[GG_CONVERT_CONFIG].json, names),
                "config.json: id2label has no text for %zu", i);
    }
    /* what transformers writes where nobody has named them */
    if (n == 2 && gg_str_eqz(list[0], "LABEL_0"))
        return GGUF_OK;
    return gguf_meta_set_str_array(c->meta, key, list, n, err);
}
