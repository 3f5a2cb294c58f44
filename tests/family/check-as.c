/* SPDX-License-Identifier: MIT */
/* check-as.c - files of unknown architectures: the nearest rows, and evaluation
 * as a model of one of them
 *
 * Each model of tests/family under an unknown name has the outputs that it has
 * under its own. Changes of a small model have the differences that were made.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/recognize.h"
#include "model/family/families.h"
#include "tests/family/skeleton.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

#define NEW "newarch"

static void must(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    printf("Bail out! %s\n", err->message);
    exit(99);
}

/* Name of the model's architecture; the key and its prefix become NEW. */
static const char *rename_arch(struct skeleton *m)
{
    static char arch[64];
    struct gguf_error err;
    struct gguf_str s;
    char from[192], to[192];
    must(gguf_kv_get_str(gguf_meta_find(m->g.meta, "general.architecture"), &s,
                         &err),
         &err);
    snprintf(arch, sizeof arch, "%.*s", (int)s.size, s.data);
    must(gguf_meta_set_strz(m->g.meta, "general.architecture", NEW, &err),
         &err);
    for (size_t i = 0; i < gguf_meta_n_kv(m->g.meta); i++) {
        const struct gguf_str key = gguf_meta_kv(m->g.meta, i)->key;
        const size_t n = strlen(arch);
        if (key.size <= n || key.data[n] != '.' || memcmp(key.data, arch, n))
            continue;
        snprintf(from, sizeof from, "%.*s", (int)key.size, key.data);
        snprintf(to, sizeof to, NEW "%.*s", (int)(key.size - n), key.data + n);
        must(gguf_meta_rename(m->g.meta, from, to, &err), &err);
    }
    return arch;
}

static struct gguf_file *open_empty(const struct skeleton *m, void **data)
{
    struct gguf_file *file;
    struct gguf_error err;
    size_t size;
    *data = gen_empty_file(&m->g, &size);
    must(gguf_file_open_memory(&file, *data, size, NULL, &err), &err);
    return file;
}

/* Keys of models that llama.cpp ignores in their architecture, and reads in
 * others: they are refused, so they are removed from the models here. */
static struct {
    char key[8][192]; /* keys of the last model */
    size_t n;         /* number of its keys */
    size_t n_models;  /* models that have some */
} unread;

static bool note_unread(void *user, const struct gguf_arch_difference *d)
{
    (void)user;
    if (d->kind == GGUF_ARCH_KEY_EXTRA && d->prevents &&
        unread.n < GG_LEN(unread.key))
        snprintf(unread.key[unread.n++], sizeof unread.key[0], "%.*s",
                 (int)d->name.size, d->name.data);
    return false;
}

static void drop_unread(struct skeleton *m, const char *arch)
{
    struct gguf_error err;
    void *data;
    struct gguf_file *file = open_empty(m, &data);
    unread.n = 0;
    must(gguf_arch_compare(
             file, arch,
             (struct gguf_arch_difference_callback){ note_unread, NULL },
             &err),
         &err);
    gguf_file_close(file);
    free(data);
    for (size_t i = 0; i < unread.n; i++)
        (void)gguf_meta_remove(m->g.meta, unread.key[i]);
    unread.n_models += unread.n > 0;
}

/* ---- every model ---- */

/* Outputs of the model as one of architecture as (NULL: its own). */
static bool compute_outputs(const struct skeleton *m, const char *as,
                            float *out, struct gguf_error *err)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SKELETON_TOKENS];
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r;
    size_t size;
    void *data = gen_file(&m->g, GGUF_DTYPE_F32, &size);
    mp.as = as;
    p.n_ctx = SKELETON_TOKENS;
    b.n = SKELETON_TOKENS;
    b.token = tok;
    skeleton_tokens_of(m, tok);
    const bool good = run_open_params(&r, data, size, &mp, &p) &&
                      run_encode(&r, tok, SKELETON_TOKENS) &&
                      run_outputs(&r, &b, out);
    *err = r.err;
    run_close(&r);
    free(data);
    return good;
}

static void check_model(const char *name)
{
    static struct skeleton m;
    static float own[SKELETON_TOKENS * SKELETON_VOCAB],
        other[SKELETON_TOKENS * SKELETON_VOCAB];
    struct gguf_error err;
    if (!skeleton_open(&m, name)) {
        ok(0, "%s is read", name);
        return;
    }
    if (m.n_rows && compute_outputs(&m, NULL, own, &err)) {
        const char *arch = rename_arch(&m);
        drop_unread(&m, arch);
        const bool good = compute_outputs(&m, arch, other, &err);
        ok(good &&
               !memcmp(own, other, SKELETON_TOKENS * m.width * sizeof *own),
           "%s: the same bits under another name: %s", name,
           good ? "" : err.message);
    }
    skeleton_close(&m);
}

/* ---- the nearest rows ---- */

struct nearest {
    const char *arch[64];
    size_t n, n_differences;
};

static struct nearest find_nearest(const struct skeleton *m)
{
    struct nearest n;
    struct gguf_error err;
    void *data;
    struct gguf_file *file = open_empty(m, &data);
    must(gguf_arch_find_nearest(file, n.arch, GG_LEN(n.arch), &n.n,
                                &n.n_differences, &err),
         &err);
    gguf_file_close(file);
    free(data);
    return n;
}

static bool has_name(const struct nearest *n, const char *arch)
{
    for (size_t i = 0; i < n->n && i < GG_LEN(n->arch); i++)
        if (!strcmp(n->arch[i], arch))
            return true;
    return false;
}

static void check_nearest(const char *name)
{
    static struct skeleton m;
    if (!skeleton_open(&m, name))
        return;
    const char *arch = rename_arch(&m);
    drop_unread(&m, arch);
    const struct nearest n = find_nearest(&m);
    char all[600] = "";
    for (size_t i = 0; i < n.n; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s",
                 n.arch[i]);
    ok(has_name(&n, arch) && !n.n_differences,
       "%s: its row is among the nearest (%zu differences):%s", name,
       n.n_differences, all);
    skeleton_close(&m);
}

/* ---- changes of one model ---- */

/* Differences from an architecture as "KIND NAME; KIND NAME". */
struct listed {
    char text[600];
    bool prevents;
};

static bool list_difference(void *user, const struct gguf_arch_difference *d)
{
    static const char *const kinds[] = {
        [GGUF_ARCH_TENSOR_EXTRA] = "extra",
        [GGUF_ARCH_TENSOR_MISSING] = "missing",
        [GGUF_ARCH_TENSOR_OTHER] = "other",
        [GGUF_ARCH_KEY_EXTRA] = "extra",
        [GGUF_ARCH_KEY_MISSING] = "missing",
        [GGUF_ARCH_KEY_OTHER] = "other",
    };
    struct listed *l = user;
    const size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s%s %.*s", n ? "; " : "",
             kinds[d->kind], (int)d->name.size, d->name.data);
    l->prevents |= d->prevents;
    return false;
}

/* A model under another name, with changes. */
struct change {
    const char *model, *what;
    const char *key;    /* "KEY TYPE VALUE"; NULL: none */
    const char *nokey;  /* key to remove; NULL: none */
    const char *tensor; /* tensor of one element to add; NULL: none */
    const char *drop;   /* tensor to remove; NULL: none */
    const char *differs, *error, *warning;
};

static const struct change changes[] = {
    { .model = "qwen3", .what = "no change", .differs = "" },
    { .model = "qwen3",
      .what = "a tensor that no architecture has",
      .tensor = "blk.1.strange.weight",
      .differs = "extra blk.1.strange.weight",
      .error = "'blk.1.strange.weight' is not used by models of architecture "
               "'qwen3'" },
    { .model = "qwen3",
      .what = "a tensor that other architectures have",
      .tensor = "blk.0.attn_sinks.weight",
      .differs = "extra blk.0.attn_sinks.weight",
      .error = "'blk.0.attn_sinks.weight' is not used" },
    { .model = "qwen3",
      .what = "a tensor of a layer too many",
      .tensor = "blk.7.attn_norm.weight",
      .differs = "extra blk.7.attn_norm.weight",
      .error = "is of layer 7, there are 2" },
    { .model = "qwen3",
      .what = "a tensor is missing",
      .drop = "blk.1.attn_k_norm.weight",
      .differs = "missing blk.1.attn_k_norm.weight",
      .error = "'blk.1.attn_k_norm.weight' is missing" },
    { .model = "qwen3",
      .what = "a key that no architecture reads",
      .key = NEW ".strange_scale f32 2",
      .differs = "extra " NEW ".strange_scale",
      .warning = "'" NEW ".strange_scale' is not read" },
    { .model = "qwen3",
      .what = "a key that other architectures read",
      .key = NEW ".final_logit_softcapping f32 30",
      .differs = "extra " NEW ".final_logit_softcapping",
      .error = "'" NEW ".final_logit_softcapping' changes models of other" },
    { .model = "qwen3",
      .what = "such a key that is turned off",
      .key = NEW ".final_logit_softcapping f32 0",
      .differs = "" },
    { .model = "qwen3",
      .what = "a key of another prefix",
      .key = NEW "er.final_logit_softcapping f32 30",
      .differs = "" },
    { .model = "qwen3",
      .what = "a required key is missing",
      .nokey = NEW ".attention.layer_norm_rms_epsilon",
      .differs = "missing " NEW ".attention.layer_norm_rms_epsilon",
      .error = "key '" NEW ".attention.layer_norm_rms_epsilon' is missing" },
    { .model = "qwen3",
      .what = "a key of the row's own prefix is not read",
      .key = "qwen3.block_count u32 1",
      .differs = "" },
};

static void keep_warning(void *user, const char *line)
{
    snprintf(user, 300, "%s", line);
}

/* Does opening as qwen3 end as the change says? */
static bool opens_as(const struct change *c, const struct gguf_file *file,
                     char said[512])
{
    char warning[300] = "";
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_model *model;
    struct gguf_error err = { .status = GGUF_OK };
    mp.as = c->model;
    mp.warn = (struct gguf_warn_callback){ keep_warning, warning };
    const bool good = gguf_model_create(&model, file, &mp, &err) == GGUF_OK;
    snprintf(said, 512, "%s%s", err.message, warning);
    const bool named = good && gguf_model_info(model)->as &&
                       !strcmp(gguf_model_info(model)->as, c->model) &&
                       gguf_model_info(model)->arch.size == strlen(NEW);
    gguf_model_destroy(model);
    if (c->error)
        return !good && strstr(said, c->error);
    return named && (c->warning ? strstr(said, c->warning) != NULL : !*said);
}

static void check_change(const struct change *c)
{
    static struct skeleton m;
    struct listed l = { "", false };
    struct gguf_error err = { .status = GGUF_OK };
    char line[200], said[512] = "";
    void *data;
    if (!skeleton_open(&m, c->model))
        return;
    (void)rename_arch(&m);
    snprintf(line, sizeof line, "%s", c->key ? c->key : "");
    if (c->key && !skeleton_set_key(&m, line))
        printf("# malformed key\n");
    if (c->nokey)
        (void)gguf_meta_remove(m.g.meta, c->nokey);
    if (c->tensor)
        gen_tensor(&m.g, 1, 0, "%s", c->tensor);
    if (c->drop)
        gen_drop(&m.g, c->drop);
    struct gguf_file *file = open_empty(&m, &data);
    must(gguf_arch_compare(
             file, c->model,
             (struct gguf_arch_difference_callback){ list_difference, &l },
             &err),
         &err);
    ok(!strcmp(l.text, c->differs) && l.prevents == (c->error != NULL),
       "%s: the differences are '%s'", c->what, l.text);
    ok(opens_as(c, file, said), "%s: opening says '%s'", c->what, said);
    gguf_file_close(file);
    free(data);
    skeleton_close(&m);
}

/* ---- names and statuses ---- */

/* Create a model of qwen3 whose architecture has the name arch. */
static enum gguf_status create_model(const char *arch, const char *as,
                                     struct gguf_error *err)
{
    static struct skeleton m;
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_model *model;
    void *data;
    gguf_error_clear(err);
    if (!skeleton_open(&m, "qwen3"))
        return GGUF_E_NOTFOUND;
    if (arch)
        (void)rename_arch(&m);
    if (arch)
        must(gguf_meta_set_strz(m.g.meta, "general.architecture", arch, err),
             err);
    struct gguf_file *file = open_empty(&m, &data);
    mp.as = as;
    const enum gguf_status st = gguf_model_create(&model, file, &mp, err);
    gguf_model_destroy(model);
    gguf_file_close(file);
    free(data);
    skeleton_close(&m);
    return st;
}

static void check_names(void)
{
    struct gguf_error e;
    ok(create_model(NEW, NULL, &e) == GGUF_E_ARCH &&
           strstr(e.message, "'" NEW "' is not supported") &&
           strstr(e.message, "; nearest is '") &&
           strstr(e.message, "others, with no difference in tensors and keys"),
       "the error names the nearest rows: %s", e.message);
    ok(create_model(NEW, "qwen5", &e) == GGUF_E_INVALID &&
           strstr(e.message, "no architecture 'qwen5'"),
       "an unknown row: %s", e.message);
    ok(create_model(NULL, "llama", &e) == GGUF_E_INVALID &&
           strstr(e.message, "'qwen3' is known"),
       "a known architecture is not another: %s", e.message);
    ok(create_model(NULL, "qwen3", &e) == GGUF_OK,
       "a known architecture may be named: %s", e.message);
    ok(create_model("new\x1b[arch", "qwen3", &e) == GGUF_E_UNSUPPORTED &&
           strstr(e.message, "letters"),
       "a name that is no prefix of keys: %s", e.message);
    ok(create_model("new\x1b[arch", NULL, &e) == GGUF_E_ARCH &&
           !strstr(e.message, "nearest") && !strchr(e.message, '\x1b'),
       "no row is nearest to it: %s", e.message);
}

/* The order of rows that fit equally: names that begin alike come first. */
static void check_order(void)
{
    static struct skeleton m;
    struct gguf_error err;
    if (!skeleton_open(&m, "qwen3"))
        return;
    (void)rename_arch(&m);
    struct nearest n = find_nearest(&m);
    ok(n.n > 1 && has_name(&n, "qwen3") && has_name(&n, "maincoder") &&
           !n.n_differences,
       "rows that fit equally are all named (%zu)", n.n);
    gen_tensor(&m.g, 1, 0, "blk.0.strange.weight");
    n = find_nearest(&m);
    ok(n.n > 1 && has_name(&n, "qwen3") && has_name(&n, "maincoder") &&
           n.n_differences == 1,
       "also with a difference");
    skeleton_close(&m);
    if (!skeleton_open(&m, "qwen3"))
        return;
    (void)rename_arch(&m);
    for (size_t i = 0; i < gguf_meta_n_kv(m.g.meta); i++) {
        char from[192], to[192];
        const struct gguf_str key = gguf_meta_kv(m.g.meta, i)->key;
        if (key.size < 8 || memcmp(key.data, NEW ".", 8))
            continue;
        snprintf(from, sizeof from, "%.*s", (int)key.size, key.data);
        snprintf(to, sizeof to, "qwen9%s", from + 7);
        must(gguf_meta_rename(m.g.meta, from, to, &err), &err);
    }
    must(gguf_meta_set_strz(m.g.meta, "general.architecture", "qwen9", &err),
         &err);
    n = find_nearest(&m);
    ok(n.n > 1 && !strncmp(n.arch[0], "qwen3", 5),
       "a name that begins alike comes first: %s", n.arch[0]);
    skeleton_close(&m);
}

int main(int argc, char **argv)
{
    static char names[512][64];
    size_t n = skeleton_names(names, GG_LEN(names));
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < n; i++) {
        check_nearest(names[i]);
        check_model(names[i]);
    }
    ok(unread.n_models > 0 && unread.n_models < 20,
       "%zu times a model had keys that its row does not read",
       unread.n_models);
    for (size_t i = 0; i < GG_LEN(changes); i++)
        check_change(&changes[i]);
    check_names();
    check_order();
    return done_testing();
}
