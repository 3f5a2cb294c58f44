/* SPDX-License-Identifier: MIT */
/* modules.c - steps from a text to its vector (sentence-transformers)
 *
 * modules.json lists steps with "type" and "path". Steps for pooling and for
 * multiplying by a matrix have folders with a config.json
 * (sentence_transformers/sentence_transformer/modules/pooling.py,
 * base/modules/dense.py). Pooling becomes "modules_pooling" of the model's
 * config.json: 1 for the mean, 2 for the first token, 3 for the last. Whether
 * the vector then gets the length 1 becomes "modules_normalize". Matrices
 * become tensors with the prefix "dense_0." and so on, and their widths
 * "dense_0_in" and "dense_0_out", if the row of the class has them; as in
 * llama.cpp's converter, for some rows only on request. Others are left out
 * with a warning. prompts.c reads the texts beside modules.json.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* ---- how vectors are pooled ---- */

/* number: value of pooling_type; 0: GGUF cannot express the mode. */
static const struct {
    const char *flag, *mode;
    int number;
} modes[] = {
    { "pooling_mode_cls_token", "cls", 2 },
    { "pooling_mode_max_tokens", "max", 0 },
    { "pooling_mode_mean_tokens", "mean", 1 },
    { "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", 1 },
    { "pooling_mode_weightedmean_tokens", "weightedmean", 0 },
    { "pooling_mode_lasttoken", "lasttoken", 3 },
};
enum { MODE_MEAN = 2, MODE_MEAN_SQRT = 3 };

/* A step, and config.json of its folder. */
struct step {
    struct gguf_convert *c;
    char path[65];   /* folder of the step */
    char config[96]; /* config.json of the step */
    const json_t *root;
    bool sqrt_len; /* pooling is mean_sqrt_len_tokens */
};

static enum gguf_status find_mode(const struct step *s, const json_t *v,
                                  size_t *mode, struct gguf_error *err)
{
    struct gguf_str name = GG_STR("");
    struct gg_str_esc e;
    (void)gg_json_str(v, &name);
    for (*mode = 0; *mode < GG_LEN(modes); ++*mode)
        if (gg_str_eqz(name, modes[*mode].mode))
            return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "%s: unknown pooling_mode '%s'", s->config,
                        gg_str_esc(&e, name));
}

/* Read the modes of config.json, in order. Without any the mode is the mean.
 * mode: the first, and the last of several. */
static enum gguf_status read_modes(const struct step *s, size_t mode[2],
                                   size_t *n, struct gguf_error *err)
{
    const json_t *v = json_object_get(s->root, "pooling_mode");
    *n = 0;
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        size_t m;
        GG_TRY(find_mode(s, json_array_get(v, i), &m, err));
        mode[GG_MIN(*n, 1)] = m;
        ++*n;
    }
    if (v && !json_is_null(v) && !json_is_array(v)) {
        GG_TRY(find_mode(s, v, &mode[0], err));
        *n = 1;
    }
    for (size_t i = 0; (!v || json_is_null(v)) && i < GG_LEN(modes); i++)
        if (json_is_true(json_object_get(s->root, modes[i].flag))) {
            mode[GG_MIN(*n, 1)] = i;
            ++*n;
        }
    if (!*n) {
        mode[0] = MODE_MEAN;
        *n = 1;
    }
    return GGUF_OK;
}

static enum gguf_status read_pooling(struct step *s, struct gguf_error *err)
{
    size_t mode[2], n;
    GG_TRY(read_modes(s, mode, &n, err));
    if (n > 1)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s: pooling joins %zu vectors (%s, %s), "
                            "expected one",
                            s->config, n, modes[mode[0]].mode,
                            modes[mode[1]].mode);
    if (!modes[mode[0]].number)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s: unsupported pooling '%s', expected mean, cls "
                            "or lasttoken",
                            s->config, modes[mode[0]].mode);
    s->sqrt_len = mode[0] == MODE_MEAN_SQRT;
    if (json_is_false(json_object_get(s->root, "include_prompt")))
        gg_folder_warn(&s->c->folder,
                       "%s: include_prompt is false, but readers of GGUF "
                       "files pool the tokens of a prompt, too",
                       s->config);
    return gg_convert_set_config(s->c, "modules_pooling",
                                 json_integer(modes[mode[0]].number), err);
}

/* ---- matrices ---- */

/* Refuse functions other than a matrix and a bias. The default of class Dense
 * is tanh. */
static enum gguf_status check_dense(const struct step *s,
                                    struct gguf_error *err)
{
    const json_t *v = json_object_get(s->root, "activation_function");
    struct gguf_str act = GG_STR("Tanh, the default");
    struct gg_str_esc e;
    if (!json_is_null(v) &&
        (!gg_json_str(v, &act) || !gg_str_ends(act, "Identity")))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s: unsupported function '%s' after the matrix",
                            s->config, gg_str_esc(&e, act));
    if (json_is_true(json_object_get(s->root, "use_residual")))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s: use_residual is true, which GGUF files "
                            "cannot express",
                            s->config);
    return GGUF_OK;
}

static enum gguf_status read_dense(const struct step *s, unsigned no,
                                   struct gguf_error *err)
{
    static const char *const widths[][2] = {
        { "in_features", "dense_%u_in" }, { "out_features", "dense_%u_out" }
    };
    char name[96], prefix[24];
    bool there;
    int64_t n;
    for (size_t i = 0; i < GG_LEN(widths); i++) {
        if (!gg_json_int(json_object_get(s->root, widths[i][0]), &n) ||
            n < 1 || n > INT32_MAX)
            return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                                "%s: missing width '%s'", s->config,
                                widths[i][0]);
        snprintf(name, sizeof name, widths[i][1], no);
        GG_TRY(gg_convert_set_config(s->c, name, json_integer(n), err));
    }
    GG_TRY(check_dense(s, err));
    snprintf(name, sizeof name, "%s/model.safetensors", s->path);
    snprintf(prefix, sizeof prefix, "dense_%u.", no);
    GG_TRY(gg_safetensors_add_file(s->c->folder.weights, &s->c->folder.dir,
                                   name, prefix, &there, err));
    return there ? GGUF_OK
                 : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                "modules.json: missing %s", name);
}

/* ---- the steps ---- */

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
    enum gguf_status st =
        gg_folder_read_json(&s->c->folder, s->config, &m, &json, err);
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

/* Is the class of that name the last part of type ("a.b.Pooling")? */
static bool is_class(struct gguf_str type, const char *name)
{
    const size_t n = strlen(name);
    return gg_str_ends(type, name) &&
           (type.size == n || type.data[type.size - n - 1] == '.');
}

/* Steps without weights and settings, and steps that reranker.c reads. */
static bool is_plain(const struct gguf_convert *c, struct gguf_str type)
{
    return gg_str_ends(type, "Transformer") ||
           (gg_convert_get_config(c, "reranker") &&
            (gg_str_ends(type, "LogitScore") ||
             gg_str_ends(type, "CausalScoreHead")));
}

/* Steps so far. */
struct walk {
    int n_dense, wanted; /* matrices; matrices to convert */
    bool pools, normalizes;
    bool normalizes_early; /* a matrix follows a step Normalize */
    bool sqrt_len;
};

static enum gguf_status walk_step(struct gguf_convert *c, struct walk *w,
                                  const struct gg_json *modules, size_t i,
                                  struct gguf_error *err)
{
    struct step s = { .c = c };
    const json_t *v = json_array_get(modules->root, i);
    struct gguf_str type;
    int dense = -1;
    if (!gg_json_str(json_object_get(v, "type"), &type) || is_plain(c, type))
        return GGUF_OK;
    if (is_class(type, "Normalize")) {
        w->normalizes = true;
        return GGUF_OK;
    }
    if (is_class(type, "Dense"))
        dense = w->n_dense++;
    if (dense >= w->wanted || (dense < 0 && !is_class(type, "Pooling"))) {
        note_left_out(c, i, type, dense >= 0 && dense < c->arch->n_dense);
        return GGUF_OK;
    }
    if (dense < 0 && w->pools)
        return GGUF_OK; /* the first step with pooling is used */
    w->pools = w->pools || dense < 0;
    w->normalizes_early = w->normalizes_early || w->normalizes;
    GG_TRY(find_folder(&s, modules, v, err));
    GG_TRY(read_step(&s, dense, err));
    w->sqrt_len = w->sqrt_len || s.sqrt_len;
    return GGUF_OK;
}

/* Say how the lengths of vectors differ from those of the folder. */
static void note_lengths(const struct gguf_convert *c, const struct walk *w)
{
    if (w->normalizes_early)
        gg_folder_warn(&c->folder,
                       "modules.json: a step follows Normalize, for which "
                       "readers of GGUF files compute it from vectors that "
                       "are not normalised");
    if (w->sqrt_len && !(w->normalizes && !w->n_dense))
        gg_folder_warn(&c->folder,
                       "modules.json: pooling 'mean_sqrt_len_tokens' becomes "
                       "the mean: vectors lack the factor sqrt(number of "
                       "tokens)");
}

static enum gguf_status read_steps(struct gguf_convert *c,
                                   const struct gg_json *modules,
                                   struct gguf_error *err)
{
    const struct gg_convert_arch *a = c->arch;
    struct walk w = { .wanted = a->dense_asked && !c->p.dense_modules
                                    ? 0
                                    : a->n_dense };
    for (size_t i = 0; i < json_array_size(modules->root); i++)
        GG_TRY(walk_step(c, &w, modules, i, err));
    note_lengths(c, &w);
    if (w.pools || w.normalizes)
        GG_TRY(gg_convert_set_config(c, "modules_normalize",
                                     json_boolean(w.normalizes), err));
    return gg_convert_read_prompts(c, err);
}

enum gguf_status gg_convert_read_modules(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    struct gg_json json = { .root = NULL };
    enum gguf_status st =
        gg_folder_read_json(&c->folder, "modules.json", &m, &json, err);
    if (st == GGUF_OK && json.root)
        st = read_steps(c, &json, err);
    gg_json_fini(&json);
    gg_mapfile_close(&m);
    return st;
}
