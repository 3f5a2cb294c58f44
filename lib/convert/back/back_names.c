/* SPDX-License-Identifier: MIT */
/* back_names.c - names and shapes of the folder that a file is made from
 *
 * Each tensor of the file is compared with the names of rows. The first row
 * with the name gives the name in the folder; back_shape.c finds the shape.
 */
#include "config.h"
#include "convert/back/back_shape.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct uses {
    struct gg_back_use *use;
    size_t n, room;
};

/* Does name match the pattern, a row's name and an ending? "+" is the number of
 * the first nextn layer, first. */
static bool fits_pattern(const char *pattern, const char *end,
                         struct gguf_str name, double first, int64_t *layer,
                         int64_t *expert)
{
    char buf[160];
    *expert = *layer = -1;
    const char *plus = strchr(pattern, '+');
    if (plus) {
        const int n =
            snprintf(buf, sizeof buf, "%.*s%.0f%s", (int)(plus - pattern),
                     pattern, first, plus + 1);
        if (n < 0 || (size_t)n >= sizeof buf)
            return false;
    }
    return gg_convert_match_pattern(plus ? buf : pattern, &name, layer,
                                    expert) &&
           gg_convert_match_pattern(end, &name, layer, expert) && !name.size;
}

static bool expand_name(const struct gguf_convert *c, char out[160],
                        const char *from, const char *end, int64_t layer,
                        int64_t expert)
{
    const char *const layers = "model.layers.";
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double main = gg_hf_config_num(&cfg, "num_hidden_layers", -1);
    size_t n = 0;
    if (c->arch->drafts && (double)layer >= main &&
        !strncmp(from, layers, strlen(layers))) {
        layer -= (int64_t)main;
        n = (size_t)snprintf(out, 160, "%s", c->arch->drafts);
        from += strlen(layers);
    }
    const char *const parts[] = { from, end };
    for (size_t i = 0; i < GG_LEN(parts); i++)
        for (const char *p = parts[i]; *p; p++) {
            if (n + 24 >= 160)
                return false;
            if (*p == '%' || *p == '@')
                n += (size_t)snprintf(out + n, 24, "%" PRId64,
                                      *p == '%' ? layer : expert);
            else
                out[n++] = *p;
        }
    out[n] = 0;
    return true;
}

/* Does an earlier list have another row for the same name in the folder? */
static bool is_hidden(const struct gg_convert_arch *arch, size_t list,
                      const char *from)
{
    for (size_t k = 0; k < list; k++)
        for (const struct gg_convert_name *r = arch->names[k]; r->from; r++)
            if (!strcmp(r->from, from))
                return true;
    return false;
}

static enum gguf_status add_use(struct gg_back *b, struct uses *u,
                                const struct gg_back_use *x,
                                struct gguf_error *err)
{
    if (u->n == u->room) {
        void *grown = gg_mem_grow(b->p.allocator, u->use, &u->room,
                                  sizeof *u->use, 256, err);
        if (!grown)
            return GGUF_E_NOMEM;
        u->use = grown;
    }
    u->use[u->n++] = *x;
    return GGUF_OK;
}

/* Layer of the folder's tensor: of the file's, or the first that the row
 * applies to if the file's tensor has no layer. */
static int64_t layer_of_folder(const struct gguf_convert *c,
                               const struct gg_convert_name *row,
                               int64_t layer)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    if (layer >= 0 || !row->in_layers)
        return layer;
    const double first = gg_hf_config_first_layer(&cfg, row->in_layers);
    return first >= 0 ? (int64_t)first : layer;
}

/* The tensors of the folder that row makes the file's tensor of. */
static enum gguf_status use_row(struct gg_back *b, struct uses *u,
                                struct gg_back_use *x, const char *end,
                                struct gguf_error *err)
{
    const struct gg_file_shard_tensor t =
        gg_source_tensor(&b->source, x->tensor);
    const int64_t number = x->expert; /* -1: the file's name has no number */
    const bool stacked =
        strchr(x->row->from, '@') && number < 0 && !x->row->joins;
    const int64_t layer = layer_of_folder(b->c, x->row, x->layer);
    const int64_t n = stacked ? t.info->ne[t.info->n_dims - 1] : 1;
    for (int64_t e = 0; e < n; e++) {
        x->expert = stacked ? e : -1;
        x->place = ((uint64_t)x->tensor << 24) + (uint64_t)e;
        if (n > 1 << 24 ||
            !expand_name(b->c, x->name, x->row->from, end, layer,
                         stacked         ? e
                         : x->row->joins ? 0
                                         : number) ||
            (b->c->projector && !gg_back_prefix_part(b->c, x->to, x->name)))
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "a tensor's name in the folder is too long");
        GG_TRY(add_use(b, u, x, err));
    }
    return GGUF_OK;
}

/* Does the folder have this name, of several that become one name? */
static bool is_taken(const struct gguf_convert *c,
                     const struct gg_convert_name *r, int64_t layer)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    return !r->only_if || r->only_if(&cfg, layer) > 0;
}

/* Find the layer of the folder that has this number in the file. */
static bool invert_layer(const struct gguf_convert *c,
                         const struct gg_convert_name *r, int64_t *layer)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    for (int64_t i = 0; i <= GG_HF_CONFIG_LAYERS; i++)
        if (r->layer_of(&cfg, i) == (double)*layer) {
            *layer = i;
            return true;
        }
    return false;
}

/* Change a layer's number from the file's to the folder's. false: the row has
 * other layers only. */
static bool count_from_first(const struct gguf_convert *c,
                             const struct gg_convert_name *r, int64_t *layer)
{
    int64_t n = 0;
    if (r->layer_of && !invert_layer(c, r, layer))
        return false;
    if (r->first_layer && !gg_convert_get_count(c, r->first_layer, &n))
        return false;
    *layer -= n;
    return !n || *layer >= 0;
}

/* Number of rows from r on that make one tensor of the file: of pieces of one
 * tensor of the folder, or of several tensors, along the slowest dimension. */
static size_t n_joined(const struct gg_convert_name *r,
                       const struct gguf_tensor_info *t)
{
    const uint64_t along = (uint64_t)t->ne[t->n_dims - 1];
    size_t n = 1;
    while (r[n].to && !strcmp(r[n].to, r->to) && !strcmp(r[n].from, r->from))
        n++;
    if (n > 1 || !r->axes)
        return n;
    while (r[n].to && !strcmp(r[n].to, r->to) && r[n].axes &&
           !strcmp(r[n].axes, r->axes))
        n++;
    return n > 1 && along <= n ? (size_t)along : 1;
}

/* Add the uses of x's row and of those that make the tensor with it. */
static enum gguf_status use_rows(struct gg_back *b, struct uses *u,
                                 struct gg_back_use *x, const char *end,
                                 struct gguf_error *err)
{
    const struct gg_convert_name *row = x->row;
    const size_t n =
        n_joined(row, gg_source_tensor(&b->source, x->tensor).info);
    for (size_t k = 0; k < n; k++) {
        x->row = row + k;
        x->n_others = strcmp(row[n - 1].from, row->from) ? (uint32_t)n - 1 : 0;
        x->row_no = x->n_others ? (uint32_t)k : 0;
        const size_t first = u->n;
        GG_TRY(use_row(b, u, x, end, err));
        if (n > 1 && u->n == first + 1)
            u->use[first].place += k;
    }
    if (!gg_convert_has_factor(row + n - 1))
        return GGUF_OK;
    x->row = row + n;
    x->n_others = x->row_no = 0;
    GG_TRY(use_row(b, u, x, end, err));
    u->use[u->n - 1].place++;
    return GGUF_OK;
}

static enum gguf_status find_row(struct gg_back *b, struct uses *u, uint32_t i,
                                 struct gguf_error *err)
{
    static const char *const ends[] = { "", ".weight", ".bias" };
    const struct gg_convert_arch *arch = b->c->arch;
    const struct gguf_str name = gg_source_tensor(&b->source, i).info->name;
    const struct gg_hf_config cfg = gg_convert_config(b->c);
    const double n_main = gg_hf_config_num(&cfg, "num_hidden_layers", -1);
    struct gg_str_esc e;
    if (gg_data_gguf_is_scale(&b->numbers, i))
        return GGUF_OK;
    for (size_t l = 0; l < GG_LEN(arch->names) && arch->names[l]; l++)
        for (const struct gg_convert_name *r = arch->names[l]; r->from; r++)
            for (size_t k = 0; r->to && k < GG_LEN(ends); k++) {
                struct gg_back_use x = {
                    .row = r, .list = l, .to = name, .tensor = i
                };
                if (fits_pattern(r->to, ends[k], name, n_main, &x.layer,
                                 &x.expert) &&
                    count_from_first(b->c, r, &x.layer) &&
                    !is_hidden(arch, l, r->from) && is_taken(b->c, r, x.layer))
                    return r->is_computed ? GGUF_OK
                                          : use_rows(b, u, &x, ends[k], err);
            }
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' has no name in a folder of class '%.60s'",
                        gg_str_esc(&e, name), arch->classes);
}

/* ---- the list ---- */

static int compare_names(const void *a, const void *b)
{
    const struct gg_back_use *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c ? c : (x->place > y->place) - (x->place < y->place);
}

static enum gguf_status add_tensor(struct gg_back *b,
                                   const struct gg_back_use *u, size_t n,
                                   struct gguf_error *err)
{
    struct gg_convert_dims s;
    struct gg_str_esc e, e2;
    const struct gguf_str name = gg_str_z(u->name);
    if (!gg_back_find_shape(b, u, n, &s))
        return gg_error_set(
            err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
            "tensor '%s': shape does not fit '%s' of a "
            "folder",
            gg_str_esc(&e, gg_source_tensor(&b->source, u->tensor).info->name),
            gg_str_esc(&e2, name));
    return gg_safetensors_add_shape(b->c->folder.weights, name, s.n, s.ne,
                                    err);
}

/* In the order of the file: of several uses, that of the first. */
static int compare_places(const void *a, const void *b)
{
    const struct gg_back_use *const *x = a, *const *y = b;
    return ((*x)->place > (*y)->place) - ((*x)->place < (*y)->place);
}

/* Sort by names in the file. If it has a name twice, the first is used. */
static int compare_outputs(const void *a, const void *b)
{
    const struct gg_back_use *x = a, *y = b;
    const size_t n = GG_MIN(x->to.size, y->to.size);
    const int by_name = memcmp(x->to.data, y->to.data, n);
    if (by_name || x->to.size != y->to.size)
        return by_name ? by_name : x->to.size < y->to.size ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Add the tensors with uses and keep the uses in b: first[n] is the first use
 * of each tensor, in u, which is sorted by name. */
static enum gguf_status keep_uses(struct gg_back *b, const struct uses *u,
                                  const struct gg_back_use **first, size_t n,
                                  struct gguf_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gg_back_use *end = first[i];
        while (end < u->use + u->n && !strcmp(end->name, first[i]->name))
            end++;
        const size_t k = (size_t)(end - first[i]);
        GG_TRY(add_tensor(b, first[i], k, err));
        memcpy(b->use + at, first[i], k * sizeof *b->use);
        qsort(b->use + at, k, sizeof *b->use, compare_outputs);
        b->first_use[i] = at;
        at += k;
        b->first_use[i + 1] = at;
    }
    b->n_used = n;
    return GGUF_OK;
}

static enum gguf_status add_tensors(struct gg_back *b, const struct uses *u,
                                    struct gguf_error *err)
{
    const struct gguf_allocator *a = b->p.allocator;
    size_t n = 0;
    const struct gg_back_use **first =
        gg_mem_alloc_zero(a, u->n + 1, sizeof *first);
    b->use = gg_mem_alloc_zero(a, u->n + 1, sizeof *b->use);
    b->first_use = gg_mem_alloc_zero(a, u->n + 2, sizeof *b->first_use);
    if (!first || !b->use || !b->first_use) {
        gg_mem_free(a, first);
        return gg_error_set_nomem(err, u->n * sizeof *b->use);
    }
    for (size_t i = 0; i < u->n; i++)
        if (!i || strcmp(u->use[i].name, u->use[i - 1].name) != 0)
            first[n++] = &u->use[i];
    if (n)
        qsort(first, n, sizeof *first, compare_places);
    const enum gguf_status st = keep_uses(b, u, first, n, err);
    gg_mem_free(a, first);
    return st;
}

/* ---- numbers of keys that are tensors in a folder ---- */

static enum gguf_status add_number(struct gg_back *b,
                                   const struct gg_convert_name *row,
                                   int64_t layer, const struct gguf_kv *kv,
                                   struct gguf_error *err)
{
    char name[160];
    double x;
    uint32_t bits;
    uint8_t *bytes = gg_mem_arena_alloc(&b->arena, 4);
    GG_TRY(gguf_kv_get_float(kv, &x, err));
    if (!bytes)
        return gg_error_set_nomem(err, 4);
    if (!expand_name(b->c, name, row->from, "", layer, -1))
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a tensor's name in the folder is too long");
    memcpy(&bits, &(float){ (float)x }, 4);
    gg_bytes_store32le(bytes, bits);
    return gg_safetensors_add(b->c->folder.weights, gg_str_z(name), bytes, 1,
                              err);
}

/* A list of whole numbers of a key as a tensor. */
static enum gguf_status add_list(struct gg_back *b,
                                 const struct gg_convert_name *row,
                                 struct gguf_error *err)
{
    char buf[128], name[160];
    const struct gguf_kv *kv = gguf_file_kv_find(
        b->meta, gg_convert_key_name(b->c, row->to + 2, buf));
    if (!kv || kv->type != GGUF_VAL_ARR)
        return GGUF_OK;
    const size_t n = (size_t)kv->n;
    uint8_t *bytes = gg_mem_arena_alloc(&b->arena, 8 * n + 8);
    if (!bytes)
        return gg_error_set_nomem(err, 8 * n);
    for (size_t i = 0; i < n; i++) {
        uint64_t x;
        GG_TRY(gguf_kv_get_elems_uint(kv, i, 1, &x, err));
        gg_bytes_store64le(bytes + 8 * i, x);
    }
    if (!expand_name(b->c, name, row->from, "", layer_of_folder(b->c, row, -1),
                     0))
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a tensor's name in the folder is too long");
    return gg_safetensors_add_integers(b->c->folder.weights, gg_str_z(name),
                                       bytes, n, err);
}

static enum gguf_status add_numbers(struct gg_back *b,
                                    const struct gg_convert_name *row,
                                    struct gguf_error *err)
{
    char buf[128];
    const struct gguf_kv *kv = gguf_file_kv_find(
        b->meta, gg_convert_key_name(b->c, row->to + 1, buf));
    struct gguf_kv_iter it;
    struct gguf_kv e;
    int64_t layer = 0;
    if (!kv)
        return GGUF_OK;
    if (kv->type != GGUF_VAL_ARR)
        return add_number(b, row, -1, kv, err);
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next(&it, &e))
        GG_TRY(add_number(b, row, layer++, &e, err));
    return GGUF_OK;
}

static enum gguf_status add_all_numbers(struct gg_back *b,
                                        struct gguf_error *err)
{
    const struct gg_convert_arch *arch = b->c->arch;
    for (size_t l = 0; l < GG_LEN(arch->names) && arch->names[l]; l++)
        for (const struct gg_convert_name *r = arch->names[l]; r->from; r++)
            if (gg_convert_is_number(r))
                GG_TRY(r->to[1] == '=' ? add_list(b, r, err)
                                       : add_numbers(b, r, err));
    return GGUF_OK;
}

enum gguf_status gg_back_add_tensors(struct gg_back *b, struct gguf_error *err)
{
    struct uses u = { .use = NULL };
    const size_t n = gg_source_n_tensors(&b->source);
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < n && st == GGUF_OK; i++)
        st = find_row(b, &u, (uint32_t)i, err);
    if (st == GGUF_OK && u.n) {
        qsort(u.use, u.n, sizeof *u.use, compare_names);
        st = add_tensors(b, &u, err);
    }
    if (st == GGUF_OK)
        st = add_all_numbers(b, err);
    b->n_to = b->c->folder.weights->n_tensors;
    gg_mem_free(b->p.allocator, u.use);
    return st;
}
