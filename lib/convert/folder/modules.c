/* SPDX-License-Identifier: MIT */
/* modules.c - steps from a text to its vector (sentence-transformers)
 *
 * modules.json lists steps with "type" and "path". Steps for pooling and for
 * multiplying by a matrix have folders with a config.json
 * (sentence_transformers/models/Pooling.py, Dense.py). Pooling becomes
 * "modules_pooling" of the model's config.json: 1 for the mean, 2 for the first
 * token, 3 for the last. Matrices become tensors with the prefix "dense_0." and
 * so on, and their widths "dense_0_in" and "dense_0_out", if the row of the
 * class has them; as in llama.cpp's converter, for some rows only on request.
 * Others are left out with a note.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* ---- how vectors are pooled ---- */

static const struct {
    const char *flag, *mode;
    int number;
} modes[] = {
    { "pooling_mode_mean_tokens", "mean", 1 },
    { "pooling_mode_cls_token", "cls", 2 },
    { "pooling_mode_lasttoken", "lasttoken", 3 },
};

/* Kind of pooling that config.json of a step names; 0: unknown. */
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

/* A step, and config.json of its folder. */
struct step {
    struct gguf_convert *c;
    char path[65];   /* folder of the step */
    char config[96]; /* config.json of the step */
    const json_t *root;
};

static enum gguf_status read_pooling(const struct step *s,
                                     struct gguf_error *err)
{
    const int mode = mode_of(s->root);
    if (!mode)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s: unsupported pooling, expected the mean, "
                            "the first or the last token",
                            s->config);
    return gg_convert_set_config(s->c, "modules_pooling", json_integer(mode),
                                 err);
}

/* ---- matrices ---- */

static enum gguf_status read_dense(const struct step *s, unsigned no,
                                   struct gguf_error *err)
{
    static const char *const widths[][2] = {
        { "in_features", "dense_%u_in" }, { "out_features", "dense_%u_out" }
    };
    char name[96], prefix[24];
    struct gguf_str act;
    struct gg_str_esc e;
    bool there;
    int64_t n;
    if (gg_json_str(json_object_get(s->root, "activation_function"), &act) &&
        !gg_str_ends(act, "Identity"))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s: unsupported function '%s' after the matrix",
                            s->config, gg_str_esc(&e, act));
    for (size_t i = 0; i < GG_LEN(widths); i++) {
        if (!gg_json_int(json_object_get(s->root, widths[i][0]), &n) ||
            n < 1 || n > INT32_MAX)
            return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                                "%s: missing width '%s'", s->config,
                                widths[i][0]);
        snprintf(name, sizeof name, widths[i][1], no);
        GG_TRY(gg_convert_set_config(s->c, name, json_integer(n), err));
    }
    snprintf(name, sizeof name, "%s/model.safetensors", s->path);
    snprintf(prefix, sizeof prefix, "dense_%u.", no);
    GG_TRY(gg_safetensors_add_file(s->c->folder.weights, &s->c->folder.dir,
                                   name, prefix, &there, err));
    return there ? GGUF_OK
                 : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                "modules.json: missing %s", name);
}

/* ---- the steps ---- */

/* A JSON text of the folder: json->root is NULL if it is not there. */
static enum gguf_status read_text(struct gguf_convert *c, const char *name,
                                  struct gg_mapfile *m, struct gg_json *json,
                                  struct gguf_error *err)
{
    bool there;
    GG_TRY(gg_folder_map(&c->folder, name, m, &there, err));
    return there ? gg_convert_prefix_error(
                       name,
                       gg_json_read(json, (const char *)m->data,
                                    (size_t)m->size, 0, GG_JSON_PYTHON, err),
                       err)
                 : GGUF_OK;
}

/* The folder of a step, by its name. */
static enum gguf_status find_folder(struct step *s, const struct gg_json *j,
                                    const json_t *step, struct gguf_error *err)
{
    struct gguf_str path;
    struct gg_str_esc e;
    const json_t *v = json_object_get(step, "path");
    if (!gg_json_str(v, &path))
        path = GG_STR("");
    if (!path.size || path.size >= sizeof s->path || *path.data == '.' ||
        strpbrk(path.data, "/\\:"))
        return gg_error_set(err, GGUF_E_FORMAT, gg_json_offset_of(j, v),
                            "modules.json: '%s' is not the name of a folder",
                            gg_str_esc(&e, path));
    snprintf(s->path, sizeof s->path, "%s", path.data);
    snprintf(s->config, sizeof s->config, "%s/config.json", path.data);
    return GGUF_OK;
}

/* dense: the number of the matrix; -1: it pools. */
static enum gguf_status read_step(struct step *s, int dense,
                                  struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    struct gg_json json = { .root = NULL };
    enum gguf_status st = read_text(s->c, s->config, &m, &json, err);
    s->root = json.root;
    if (st == GGUF_OK && !json.root)
        st = gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                          "modules.json: missing %s", s->config);
    if (st == GGUF_OK)
        st = dense < 0 ? read_pooling(s, err)
                       : read_dense(s, (unsigned)dense, err);
    gg_json_fini(&json);
    gg_mapfile_close(&m);
    return st;
}

static void note_left_out(const struct gguf_convert *c, size_t no,
                          struct gguf_str type, bool can)
{
    struct gg_str_esc e;
    gg_folder_warn(&c->folder,
                   "modules.json: step %zu is left out: %.60s: vectors are "
                   "those before it%s",
                   no, gg_str_esc(&e, type),
                   can ? " (--sentence-transformers-dense-modules)" : "");
}

/* Steps without weights and settings, and steps that reranker.c reads. */
static bool is_plain(const struct gguf_convert *c, struct gguf_str type)
{
    return gg_str_ends(type, "Transformer") ||
           gg_str_ends(type, "Normalize") ||
           (gg_convert_get_config(c, "reranker") &&
            (gg_str_ends(type, "LogitScore") ||
             gg_str_ends(type, "CausalScoreHead")));
}

static enum gguf_status read_steps(struct gguf_convert *c,
                                   const struct gg_json *modules,
                                   struct gguf_error *err)
{
    const struct gg_convert_arch *a = c->arch;
    const int wanted = a->dense_asked && !c->p.dense_modules ? 0 : a->n_dense;
    int n_dense = 0;
    bool pools = false;
    struct gguf_str type;
    const json_t *v;
    size_t i;
    json_array_foreach(modules->root, i, v)
    {
        struct step s = { .c = c };
        int dense = -1;
        if (!gg_json_str(json_object_get(v, "type"), &type) ||
            is_plain(c, type))
            continue;
        if (gg_str_ends(type, "Dense"))
            dense = n_dense++;
        if (dense >= wanted || (dense < 0 && !gg_str_ends(type, "Pooling"))) {
            note_left_out(c, i, type, dense >= 0 && dense < a->n_dense);
            continue;
        }
        if (dense < 0 && pools)
            continue; /* the first step with pooling is used */
        pools = pools || dense < 0;
        GG_TRY(find_folder(&s, modules, v, err));
        GG_TRY(read_step(&s, dense, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_convert_read_modules(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    struct gg_json json = { .root = NULL };
    enum gguf_status st = read_text(c, "modules.json", &m, &json, err);
    if (st == GGUF_OK && json.root)
        st = read_steps(c, &json, err);
    gg_json_fini(&json);
    gg_mapfile_close(&m);
    return st;
}
