/* SPDX-License-Identifier: MIT */
/* args.c - resolving arguments of gguf-quantize: types, layers, importance
 * data, adapters */
#include "config.h"
#include "tools/quantize/quantize.h"
#include "tools/common/text.h"

#include <gguf/meta.h>
#include <gguf/split.h>
#include <gguf/text.h>

#include <stdlib.h>
#include <string.h>

/* ---- types and layers ---- */

static bool is_target(const struct gguf_dtype_info *t)
{
    return t->family != GGUF_FAMILY_INT && t->family != GGUF_FAMILY_REMOVED;
}

static const struct gguf_dtype_info *parse_type(const char *option,
                                                const char *name)
{
    const struct gguf_dtype_info *t = gguf_dtype_find_name(name);
    if (t && is_target(t))
        return t;
    struct gguf_suggestion near;
    char hint[GGUF_SUGGESTION_SIZE];
    gguf_suggestion_init(&near, (struct gguf_str){ name, strlen(name) });
    for (size_t i = 0; (t = gguf_dtype_at(i)); i++)
        if (is_target(t))
            gguf_suggestion_try(&near,
                                (struct gguf_str){ t->name, strlen(t->name) });
    opt_usage("%s: '%s' is not a type to quantize to%s", option, name,
              gguf_suggestion_text(&near, hint));
}

/* Add the rule PATTERN=TYPE of n bytes; the last '=' separates them. */
static void add_override(struct options *o, const char *option,
                         const char *text, size_t n)
{
    char *copy = msg_must(malloc(n + 1));
    memcpy(copy, text, n);
    copy[n] = 0;
    char *eq = strrchr(copy, '=');
    if (!eq || eq == copy)
        opt_usage("%s: '%s' is not PATTERN=TYPE", option, copy);
    *eq = 0;
    o->overrides = msg_grow(o->overrides, &o->room_overrides,
                            o->n_overrides + 1, sizeof *o->overrides);
    o->overrides[o->n_overrides++] =
        (struct gguf_quant_override){ copy, parse_type(option, eq + 1)->id };
}

static void read_overrides(struct options *o, const char *path)
{
    static const char blanks[] = " \t\r\n";
    struct text text = { NULL, 0, 0 };
    if (!text_read(&text, path))
        exit(MSG_FAILED);
    if (strlen(text.s) != text.n)
        opt_usage("--tensor-type-file: '%s' is not a text", path);
    for (const char *p = text.s; *(p += strspn(p, blanks));) {
        size_t n = strcspn(p, blanks);
        add_override(o, "--tensor-type-file", p, n);
        p += n;
    }
    text_fini(&text);
}

static void parse_target_types(struct options *o, const char *arg)
{
    char name[32];
    for (const char *p = arg;; p++) {
        size_t n = strcspn(p, ",");
        if (o->target.n_types == GGUF_TARGET_MAX_TYPES)
            opt_usage("--target-types: more than %d types",
                      GGUF_TARGET_MAX_TYPES);
        if (!text_copy(name, sizeof name, p, n))
            opt_usage("--target-types: '%s' is not a list of types", arg);
        o->target_type_ids[o->target.n_types++] =
            parse_type("--target-types", name)->id;
        o->target.types = o->target_type_ids;
        p += n;
        if (!*p)
            return;
    }
}

static void parse_prune(struct options *o, const char *arg)
{
    for (const char *p = arg;; p++) {
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (end == p || *p < '0' || *p > '9' || v > 1000000 ||
            (*end && *end != ',') || o->params.n_prune == MAX_PRUNE)
            opt_usage("--prune-layers: '%s' is not a list of layers, such as "
                      "3,4",
                      arg);
        o->prune[o->params.n_prune++] = (uint32_t)v;
        o->params.prune = o->prune;
        p = end;
        if (!*p)
            return;
    }
}

void parse_types(struct options *o)
{
    if (o->output_type)
        o->params.output_type =
            parse_type("--output-tensor-type", o->output_type);
    if (o->embedding_type)
        o->params.embedding_type =
            parse_type("--token-embedding-type", o->embedding_type);
    for (size_t i = 0; i < o->types.n; i++)
        if (o->types.value[i] == TYPE_FILE)
            read_overrides(o, o->types.arg[i]);
        else
            add_override(o, "--tensor-type", o->types.arg[i],
                         strlen(o->types.arg[i]));
    if (o->target_types)
        parse_target_types(o, o->target_types);
    if (o->prune_layers)
        parse_prune(o, o->prune_layers);
}

/* ---- importance data ---- */

/* Load all files of --imatrix and add them up. */
static void load_imatrix(struct options *o)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_error err;
    gguf_error_clear(&err);
    fp.limits = &o->limits;
    for (size_t i = 0; i < o->imatrix_paths.n; i++) {
        struct gguf_imatrix *im;
        enum gguf_status st =
            gguf_imatrix_load(&im, o->imatrix_paths.arg[i], &fp, &err);
        if (st == GGUF_OK && i) {
            st = gguf_imatrix_merge(o->imatrix, im, &err);
            gguf_imatrix_destroy(im);
        } else if (st == GGUF_OK) {
            o->imatrix = im;
        }
        if (st != GGUF_OK) {
            msg_fail(o->imatrix_paths.arg[i], &err);
            exit(MSG_FAILED);
        }
    }
}

void load_importance(struct options *o)
{
    const struct opt_list *texts = o->include.n ? &o->include : &o->exclude;
    if (!o->imatrix_paths.n)
        return;
    load_imatrix(o);
    if (texts->n)
        gguf_imatrix_filter(o->imatrix, texts->arg, texts->n,
                            texts == &o->include);
    if (o->include.n && !gguf_imatrix_n_entries(o->imatrix) &&
        !o->params.compat) {
        msg_error(NULL, "--include-weights: no tensor with importance data "
                        "has such a name");
        exit(MSG_FAILED);
    }
    struct text names = { NULL, 0, 0 };
    for (size_t i = 0; i < o->imatrix_paths.n; i++) {
        const char *path = o->imatrix_paths.arg[i];
        text_addz(&names, i ? ", " : "");
        text_addz(&names, o->params.compat ? path : text_base_name(path));
    }
    o->params.imatrix = o->imatrix;
    o->params.imatrix_name = o->imatrix_names = names.s;
}

void open_loras(struct options *o)
{
    const size_t n = o->loras.n;
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_error err;
    if (!n)
        return;
    fp.limits = &o->limits;
    o->lora_files = msg_must(calloc(n, sizeof(struct gguf_file *)));
    o->lora_list = msg_must(calloc(n, sizeof *o->lora_list));
    for (size_t i = 0; i < n; i++) {
        const struct scaled *s = &o->loras.file[i];
        if (gguf_file_open(&o->lora_files[i], s->path, &fp, &err) != GGUF_OK) {
            msg_fail(s->path, &err);
            exit(MSG_FAILED);
        }
        o->lora_list[i] = (struct gguf_quant_lora){ o->lora_files[i], s->scale,
                                                    text_base_name(s->path) };
    }
    o->params.loras = o->lora_list;
    o->params.n_loras = n;
}

static void close_loras(struct options *o)
{
    for (size_t i = 0; i < o->loras.n && o->lora_files; i++)
        gguf_file_close(o->lora_files[i]);
    free(o->lora_files);
    free(o->lora_list);
    opt_list_fini(&o->lora_texts);
    scaled_fini(&o->loras);
}

/* Parse SIZE or Xbpw. */
static void parse_size(struct target *t, const char *arg, const char *text)
{
    struct gguf_error err;
    char *end;
    t->max_bpw = strtod(text, &end);
    if (end != text && !strcmp(end, "bpw") && t->max_bpw >= 0.01 &&
        t->max_bpw <= 64)
        return;
    t->max_bpw = 0;
    if (gguf_size_parse(text, &t->max_size, &err) != GGUF_OK || !t->max_size)
        opt_usage(
            "--output: '%s': '%s' is neither a size, such as 4.5G, nor bits "
            "per weight, such as 4.5bpw",
            arg, text);
}

void parse_output(struct target *t, char *arg, const char *none)
{
    char *eq = strrchr(arg, '='), *at = eq ? strchr(eq, '@') : NULL;
    *t = (struct target){ .type = none };
    if (!eq || eq == arg)
        return;
    if (at)
        *at = 0;
    const bool known = is_preset(eq + 1);
    if (!known && !(at && !eq[1])) {
        if (at)
            *at = '@';
        return;
    }
    if (at)
        parse_size(t, arg, at + 1);
    *eq = 0;
    if (known)
        t->type = eq + 1;
}

void apply_target_size(struct options *o, struct target *first)
{
    bool some = o->target.max_size || o->target.max_bpw > 0;
    if (some && has_size_limit(first))
        opt_usage("'%s' has two sizes: give either @SIZE, or --target-size or "
                  "--target-bpw",
                  first->path);
    if (some) {
        first->max_size = o->target.max_size;
        first->max_bpw = o->target.max_bpw;
    }
    for (size_t i = 0; i < o->n_targets; i++)
        some |= has_size_limit(&o->targets[i]);
    if (o->target_types && !some)
        opt_usage("'--target-types' needs --target-size, --target-bpw or "
                  "--output OUT=@SIZE");
}

bool is_preset(const char *name)
{
    struct gguf_recipe *r;
    bool yes = gguf_recipe_preset(&r, name, NULL, NULL) == GGUF_OK;
    gguf_recipe_destroy(r);
    return yes;
}

const char *suggest_preset(const char *name, char out[GGUF_SUGGESTION_SIZE])
{
    struct gguf_suggestion near;
    const char *known;
    gguf_suggestion_init(&near, (struct gguf_str){ name, strlen(name) });
    for (size_t i = 0; (known = gguf_recipe_preset_name(i)); i++)
        gguf_suggestion_try(&near, (struct gguf_str){ known, strlen(known) });
    return gguf_suggestion_text(&near, out);
}

void options_fini(struct options *o)
{
    struct opt_list *lists[] = { &o->types,      &o->imatrix_paths,
                                 &o->include,    &o->exclude,
                                 &o->outputs,    &o->kv_texts,
                                 &o->calib_texts };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        opt_list_fini(lists[i]);
    for (size_t i = 0; i < o->n_overrides; i++)
        free((char *)o->overrides[i].pattern);
    free(o->overrides);
    for (size_t i = 0; i < o->n_targets; i++)
        free(o->targets[i].rank_path);
    gguf_imatrix_destroy(o->imatrix);
    close_loras(o);
    gguf_meta_destroy(o->meta);
    free(o->default_out);
    free(o->imatrix_names);
}
