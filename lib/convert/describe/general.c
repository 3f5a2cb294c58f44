/* SPDX-License-Identifier: MIT */
/* general.c - name, authors and sources of a model
 *
 * Keys, their order and their sources are those of llama.cpp's converter
 * (gguf-py/gguf/metadata.py, commit 18f4bb5e): the model card first, then the
 * name in config.json, then the folder's name.
 */
#include "config.h"
#include "convert/card/card.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* Weights: of all tensors, of tensors without experts, of one expert. */
struct counts {
    double all, shared, expert;
    uint64_t n_experts, n_expert_tensors;
};

static struct counts count_weights(const struct gguf_convert *c)
{
    struct counts n = { 0, 0, 0, 0, 0 };
    for (size_t i = 0; i < c->out.n_tensors; i++) {
        const struct gguf_convert_tensor *t = &c->out.tensor[i];
        const double size = (double)t->ne[0] * (double)t->ne[1] *
                            (double)t->ne[2] * (double)t->ne[3];
        const int64_t experts = t->ne[strstr(t->name, ".bias") ? 1 : 2];
        n.all += size;
        if (!strstr(t->name, "_exps.") || t->n_dims < 3 || experts < 1) {
            n.shared += size;
            continue;
        }
        n.expert += floor(size / (double)experts);
        n.n_experts += (uint64_t)experts;
        n.n_expert_tensors++;
    }
    return n;
}

/* "5.8M", "27B": two digits at least. */
static void make_size(double n, char out[32])
{
    static const struct {
        double unit;
        const char *letter;
    } units[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" }, { 1e3, "K" } };
    size_t k = 0;
    while (k + 1 < GG_LEN(units) && !(n > units[k].unit))
        k++;
    const double x = n / units[k].unit, whole = rint(x);
    snprintf(out, 32, "%.*f%s",
             whole < 1    ? 2
             : whole < 10 ? 1
                          : 0,
             x, units[k].letter);
}

/* Size label "8x7.2B": the weights of one expert and of the shared part. */
static void make_label(const struct counts *n, char out[64])
{
    char size[32];
    make_size(n->n_expert_tensors ? n->shared + n->expert : n->all, size);
    if (n->n_expert_tensors)
        snprintf(out, 64, "%" PRIu64 "x%s", n->n_experts / n->n_expert_tensors,
                 size);
    else
        snprintf(out, 64, "%s", size);
}

/* general.file_type: the type of most numbers of matrices. */
static uint32_t file_type(const struct gguf_convert *c)
{
    static const struct {
        uint32_t dtype, number;
    } types[] = { { GGUF_DTYPE_F32, 0 },
                  { GGUF_DTYPE_F16, 1 },
                  { GGUF_DTYPE_BF16, 32 } };
    double n[GG_LEN(types)] = { 0 };
    size_t most = 0;
    for (size_t i = 0; i < c->out.n_tensors; i++) {
        const struct gguf_convert_tensor *t = &c->out.tensor[i];
        for (size_t k = 0; k < GG_LEN(types); k++)
            if (t->n_dims > 1 && t->dtype == types[k].dtype)
                n[k] += (double)t->ne[0] * (double)t->ne[1] *
                        (double)t->ne[2] * (double)t->ne[3];
    }
    for (size_t k = 1; k < GG_LEN(types); k++)
        most = n[k] > n[most] ? k : most;
    return types[most].number;
}

/* ---- collected texts ---- */

enum {
    F_NAME,
    F_AUTHOR,
    F_VERSION,
    F_ORGANIZATION,
    F_FINETUNE,
    F_BASENAME,
    F_DESCRIPTION,
    F_SIZE_LABEL,
    F_LICENSE,
    F_LICENSE_NAME,
    F_LICENSE_LINK,
    F_SOURCE_URL,
    F_SOURCE_DOI,
    F_SOURCE_UUID,
    F_SOURCE_REPO,
    N_FIELDS
};

const struct gg_card_field gg_card_fields[] = {
    [F_NAME] = { "general.name", { "name", "model_name" } },
    [F_AUTHOR] = { "general.author",
                   { "author", "model_author", "model_creator" } },
    [F_VERSION] = { "general.version", { "version", "model_version" } },
    [F_ORGANIZATION] = { "general.organization",
                         { "organization", "model_organization" } },
    [F_FINETUNE] = { "general.finetune", { "finetune", "model_finetune" } },
    [F_BASENAME] = { "general.basename",
                     { "basename", "model_basename", "model_type" } },
    [F_DESCRIPTION] = { "general.description",
                        { "description", "model_description" } },
    [F_SIZE_LABEL] = { "general.size_label",
                       { "size_label", "model_size_label" } },
    [F_LICENSE] = { "general.license", { "license" } },
    [F_LICENSE_NAME] = { "general.license.name", { "license_name" } },
    [F_LICENSE_LINK] = { "general.license.link", { "license_link" } },
    [F_SOURCE_URL] = { "general.source.url", { "url", "model_url" } },
    [F_SOURCE_DOI] = { "general.source.doi", { "doi", "model_doi" } },
    [F_SOURCE_UUID] = { "general.source.uuid", { "uuid", "model_uuid" } },
    [F_SOURCE_REPO] = { "general.source.repo_url",
                        { "repo_url", "model_repo_url" } },
    [N_FIELDS] = { NULL, { NULL } },
};

struct general {
    struct gguf_convert *c;
    struct gguf_meta *meta; /* that is written */
    struct gg_card card;
    struct gguf_str field[N_FIELDS];
    double n_params;
};

/* A card that cannot be read is ignored with a note. */
static enum gguf_status read_card(struct general *g, struct gguf_error *err)
{
    static const char name[] = "README.md";
    struct gg_mapfile m = { .fd = -1 };
    struct gguf_error why;
    bool there;
    GG_TRY(gg_folder_map(&g->c->folder, name, &m, &there, err));
    if (!there)
        return GGUF_OK;
    const enum gguf_status st = gg_card_read(
        &g->card, &g->c->arena, (const char *)m.data, (size_t)m.size, &why);
    /* its texts are in the mapping */
    if (st == GGUF_OK)
        g->c->folder.card = m;
    else
        gg_mapfile_close(&m);
    if (st == GGUF_E_NOMEM) {
        if (err)
            *err = why;
        return st;
    }
    if (st != GGUF_OK) {
        char text[600];
        snprintf(text, sizeof text, "%s is not used: %s", name, why.message);
        gg_folder_warn(&g->c->folder, "%s", text);
    }
    for (size_t i = 0; i < g->card.n; i++)
        if (gg_str_starts(g->card.pair[i].key, "base_model") ||
            gg_str_starts(g->card.pair[i].key, "dataset"))
            if (g->card.pair[i].deeper) {
                char text[128];
                snprintf(text, sizeof text,
                         "%s, line %zu: an item that is not a text is left "
                         "out",
                         name, g->card.pair[i].line);
                gg_folder_warn(&g->c->folder, "%s", text);
            }
    return GGUF_OK;
}

/* A list of licences is one text. */
static enum gguf_status join_licences(struct general *g,
                                      const struct gg_card_pair *p,
                                      struct gguf_str *out,
                                      struct gguf_error *err)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->item[i].size + 1;
    char *s = gg_mem_arena_alloc(&g->c->arena, n + 1);
    if (!s)
        return gg_error_set_nomem(err, n + 1);
    for (size_t i = 0; i < p->n; i++) {
        if (i)
            s[at++] = ',';
        memcpy(s + at, p->item[i].data, p->item[i].size);
        at += p->item[i].size;
    }
    *out = (struct gguf_str){ s, at };
    return GGUF_OK;
}

static enum gguf_status take_card(struct general *g, struct gguf_error *err)
{
    for (size_t f = 0; f < N_FIELDS; f++)
        for (size_t k = 0; k < GG_LEN(gg_card_fields[f].of_card); k++) {
            const char *key = gg_card_fields[f].of_card[k];
            const struct gg_card_pair *p =
                key ? gg_card_find(&g->card, key) : NULL;
            if (!p || !p->n || g->field[f].size)
                continue;
            if (!p->is_list)
                g->field[f] = p->item[0];
            else if (f == F_LICENSE)
                GG_TRY(join_licences(g, p, &g->field[f], err));
        }
    return GGUF_OK;
}

static void fill_field(struct general *g, size_t field, const char *text)
{
    if (text && !g->field[field].size)
        g->field[field] = gg_str_z(text);
}

/* Fill missing texts from the name of a repository or of a folder. */
static enum gguf_status take_name(struct general *g, struct gguf_str id,
                                  struct gguf_error *err)
{
    struct gg_card_name n;
    const char *name = NULL, *of = NULL;
    struct gg_mem_arena *a = &g->c->arena;
    if (!gg_str_utf8_valid(id.data, id.size))
        return GGUF_OK;
    GG_TRY(gg_card_read_name(&n, a, id, g->n_params, err));
    if (n.name && !(name = gg_card_make_title(a, n.name)))
        return gg_error_set_nomem(err, id.size);
    if (n.organization && !(of = gg_card_make_title(a, n.organization)))
        return gg_error_set_nomem(err, id.size);
    fill_field(g, F_NAME, name);
    fill_field(g, F_ORGANIZATION, of);
    fill_field(g, F_BASENAME, n.basename);
    fill_field(g, F_FINETUNE, n.finetune);
    fill_field(g, F_VERSION, n.version);
    fill_field(g, F_SIZE_LABEL, n.size_label);
    return GGUF_OK;
}

static enum gguf_status take_names(struct general *g, struct gguf_error *err)
{
    const json_t *root = g->c->folder.text[GG_CONVERT_CONFIG].json.root;
    struct gguf_str id;
    if (!g->c->is_adapter &&
        gg_json_str(json_object_get(root, "_name_or_path"), &id)) {
        size_t slashes = 0;
        for (size_t i = 0; i < id.size; i++)
            slashes += id.data[i] == '/';
        const char *last = id.data + id.size;
        while (last > id.data && last[-1] != '/')
            last--;
        const struct gguf_str name = { last,
                                       (size_t)(id.data + id.size - last) };
        if (slashes <= 1 && id.size <= 1000 &&
            !gg_folder_is_generic_name(name))
            GG_TRY(take_name(g, id, err));
    }
    GG_TRY(gg_folder_read_name(&g->c->folder, &id, err));
    return take_name(g, id, err);
}

/* ---- written keys ---- */

const struct gg_card_sampling gg_card_samplings[] = {
    { "general.sampling.sequence", "sequence", 's' },
    { "general.sampling.top_k", "top_k", 'i' },
    { "general.sampling.top_p", "top_p", 'f' },
    { "general.sampling.min_p", "min_p", 'f' },
    { "general.sampling.xtc_probability", "xtc_probability", 'f' },
    { "general.sampling.xtc_threshold", "xtc_threshold", 'f' },
    { "general.sampling.temp", "temperature", 'f' },
    { "general.sampling.penalty_last_n", "penalty_last_n", 'i' },
    { "general.sampling.penalty_repeat", "penalty_repeat", 'f' },
    { "general.sampling.mirostat", "mirostat", 'i' },
    { "general.sampling.mirostat_tau", "mirostat_tau", 'f' },
    { "general.sampling.mirostat_eta", "mirostat_eta", 'f' },
    { NULL, NULL, 0 },
};

static enum gguf_status set_sampling(const struct general *g,
                                     struct gguf_error *err)
{
    const json_t *root = g->c->folder.text[GG_CONVERT_GENERATION].json.root;
    for (size_t i = 0; gg_card_samplings[i].key; i++) {
        const struct gg_card_sampling *row = &gg_card_samplings[i];
        const json_t *v = json_object_get(root, row->name);
        struct gguf_str s;
        int64_t n;
        double x;
        enum gguf_status st = GGUF_OK;
        if (row->kind == 's' && gg_json_str(v, &s) && s.size)
            st = gguf_meta_set_str(g->meta, row->key, s, err);
        else if (row->kind == 'i' && gg_json_int(v, &n) && n >= INT32_MIN &&
                 n <= INT32_MAX)
            st = gguf_meta_set_i32(g->meta, row->key, (int32_t)n, err);
        else if (row->kind == 'f' && gg_json_num(v, &x) && isfinite((float)x))
            st = gguf_meta_set_f32(g->meta, row->key, (float)x, err);
        GG_TRY(st);
    }
    return GGUF_OK;
}

/* "general.base_model.0.name" and the like. */
static enum gguf_status set_of(const struct general *g, const char *what,
                               size_t no, const char *member, const char *text,
                               struct gguf_error *err)
{
    char key[128];
    if (!text)
        return GGUF_OK;
    snprintf(key, sizeof key, "general.%s.%zu.%s", what, no, member);
    return gguf_meta_set_strz(g->meta, key, text, err);
}

/* Address of a model or dataset from which this model is made. */
static enum gguf_status set_source(const struct general *g, const char *what,
                                   size_t no, struct gguf_str id,
                                   struct gguf_error *err)
{
    struct gg_card_source n;
    GG_TRY(gg_card_read_source(&n, &g->c->arena, id, g->n_params, err));
    GG_TRY(set_of(g, what, no, "name", n.name, err));
    GG_TRY(set_of(g, what, no, "version", n.version, err));
    GG_TRY(set_of(g, what, no, "organization", n.organization, err));
    return set_of(g, what, no, "repo_url", n.url, err);
}

static enum gguf_status set_sources(const struct general *g, const char *what,
                                    const char *const of_card[3],
                                    struct gguf_error *err)
{
    char key[64];
    const struct gg_card_pair *p = NULL;
    for (size_t i = 0; i < 3 && !p; i++)
        p = gg_card_find(&g->card, of_card[i]);
    if (!p)
        return GGUF_OK;
    snprintf(key, sizeof key, "general.%s.count", what);
    GG_TRY(gguf_meta_set_u32(g->meta, key, (uint32_t)p->n, err));
    for (size_t i = 0; i < p->n; i++)
        GG_TRY(set_source(g, what, i, p->item[i], err));
    return GGUF_OK;
}

/* The items of two keys of the card as one list. */
static enum gguf_status set_list(const struct general *g, const char *key,
                                 const char *a, const char *b,
                                 struct gguf_error *err)
{
    const struct gg_card_pair *p = gg_card_find(&g->card, a);
    const struct gg_card_pair *q = gg_card_find(&g->card, b);
    const size_t n = p ? p->n : 0, m = q ? q->n : 0;
    struct gguf_str *all =
        gg_mem_arena_alloc(&g->c->arena, (n + m + 1) * sizeof *all);
    if (!all)
        return gg_error_set_nomem(err, (n + m + 1) * sizeof *all);
    if (n)
        memcpy(all, p->item, n * sizeof *all);
    if (m)
        memcpy(all + n, q->item, m * sizeof *all);
    return n + m ? gguf_meta_set_str_array(g->meta, key, all, n + m, err)
                 : GGUF_OK;
}

/* Copy keys that were tensors of one number before all others. */
static enum gguf_status copy_numbers(const struct general *g,
                                     struct gguf_error *err)
{
    char buf[128];
    for (size_t i = 0; i < g->c->parts.n_numbers; i++) {
        const char *key =
            gg_convert_key_name(g->c, g->c->parts.number[i].key, buf);
        if (*g->c->parts.number[i].key == '=')
            continue; /* a list keeps its place */
        GG_TRY(gguf_meta_set_kv(g->meta, NULL,
                                gguf_meta_find(g->c->out.meta, key), err));
    }
    return GGUF_OK;
}

static enum gguf_status set_all(const struct general *g,
                                struct gguf_error *err)
{
    static const char *const models[] = { "base_model", "base_models",
                                          "base_model_sources" };
    static const char *const sets[] = { "datasets", "dataset",
                                        "dataset_sources" };
    const struct gguf_convert *c = g->c;
    GG_TRY(gguf_meta_set_strz(g->meta, "general.architecture", c->arch->arch,
                              err));
    GG_TRY(copy_numbers(g, err));
    GG_TRY(gguf_meta_set_strz(g->meta, "general.type",
                              c->is_adapter    ? "adapter"
                              : c->arch->parts ? "mmproj"
                                               : "model",
                              err));
    if (c->is_adapter)
        GG_TRY(gguf_meta_set_strz(g->meta, "adapter.type", "lora", err));
    else if (!c->arch->parts)
        GG_TRY(set_sampling(g, err));
    for (size_t f = 0; f < N_FIELDS; f++)
        if (g->field[f].size)
            GG_TRY(gguf_meta_set_str(g->meta, gg_card_fields[f].key,
                                     g->field[f], err));
    GG_TRY(set_sources(g, "base_model", models, err));
    GG_TRY(set_sources(g, "dataset", sets, err));
    GG_TRY(set_list(g, "general.tags", "tags", "pipeline_tag", err));
    GG_TRY(set_list(g, "general.languages", "languages", "language", err));
    for (size_t i = 0; i < gguf_meta_n_kv(c->out.meta); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(c->out.meta, i);
        GG_TRY(gguf_meta_set_kv(g->meta, NULL, kv, err));
    }
    return gguf_meta_set_u32(g->meta, "general.file_type", file_type(c), err);
}

enum gguf_status gg_convert_add_general(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    struct general g = { .c = c };
    const struct counts n = count_weights(c);
    char label[64];
    g.n_params = c->is_adapter ? -n.all : n.all;
    make_label(&n, label);
    if (!c->is_adapter)
        GG_TRY(read_card(&g, err));
    GG_TRY(take_card(&g, err));
    GG_TRY(take_names(&g, err));
    fill_field(&g, F_SIZE_LABEL, label);
    GG_TRY(gguf_meta_create(&g.meta, c->p.allocator, err));
    const enum gguf_status st = set_all(&g, err);
    struct gguf_meta *old = c->out.meta;
    if (st == GGUF_OK)
        c->out.meta = g.meta;
    gguf_meta_destroy(st == GGUF_OK ? old : g.meta);
    return st;
}
