/* SPDX-License-Identifier: MIT */
/* tensors.c - check tensors of files against the weights of an architecture
 *
 * Every tensor is looked up among the weights (weight.h) that its layer has
 * (needs.h), and its shape and type are checked. Required weights without a
 * tensor are then reported as missing.
 */
#include "config.h"
#include "model/weight/tensors.h"

#include "base/mem.h"
#include "base/str.h"
#include "data/gguf_list.h"
#include "dtype/interleave.h"
#include "model/weight/rows_apart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- looking up ---- */

uint32_t gg_model_lookup_layers(const struct gg_model_lookup *l,
                                enum gg_model_scope scope)
{
    if (scope == GG_MODEL)
        return 1;
    return scope == GG_DECODER && l->hp->n_dec_layer ? l->hp->n_dec_layer
                                                     : l->hp->n_layer;
}

/* Set needs and sizes to those of a layer. */
static void select_layer(struct gg_model_lookup *l, enum gg_model_scope scope,
                         uint64_t il)
{
    if (l->is_set && l->scope == scope && l->il == il)
        return;
    const uint64_t last = l->hp->n_layer_all - 1;
    const struct gg_model_layer *layer = &l->hp->layer[GG_MIN(il, last)];
    gg_needs_fill_weights(l->arch, l->hp, scope == GG_MODEL ? NULL : layer,
                          &l->needs);
    gg_hparams_sizes(l->hp, l->arch, layer, &l->sizes);
    l->il = il;
    l->scope = scope;
    l->is_set = true;
}

enum gg_weight gg_model_lookup(struct gg_model_lookup *l, struct gguf_str name,
                               uint64_t *il)
{
    *il = 0;
    const enum gg_model_scope scope = gg_weight_scope(&name, il);
    if (*il >= gg_model_lookup_layers(l, scope))
        return GG_W_NONE;
    select_layer(l, scope, *il);
    return gg_needs_find_weight(&l->needs, scope, name);
}

enum gg_weight gg_model_lookup_scale(struct gg_model_lookup *l,
                                     struct gguf_str name, const char *end,
                                     uint64_t *il)
{
    char weight[GG_WEIGHT_NAME];
    struct gguf_str stem = name;
    *il = 0;
    if (!gg_str_ends(name, end) || gg_model_lookup(l, name, il) != GG_W_NONE)
        return GG_W_NONE;
    stem.size -= strlen(end);
    if (!gg_str_join(weight, sizeof weight, stem, ".weight") ||
        !gg_source_find(l->src, weight, NULL))
        return GG_W_NONE;
    const enum gg_weight id = gg_model_lookup(l, gg_str_z(weight), il);
    return gg_weights[id].role == GG_MATRIX ? id : GG_W_NONE;
}

/* ---- one tensor ---- */

/* Weights that were found, a bit each; bit 0 stands for all other tensors. */
struct found {
    uint64_t bits[(GG_N_WEIGHTS + 63) / 64];
};

struct check {
    struct gg_model_lookup *l;
    const struct gg_finding *report;
    const struct gg_kern *kern;
    size_t file_no;
    struct found top, *layer; /* n_layer of them, the deepest scope's */
    uint32_t n_layer;
    uint32_t n[GG_N_WEIGHTS], first[GG_N_WEIGHTS]; /* layers that lack it */
};

static void set_bit(struct found *f, unsigned i)
{
    f->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool has_bit(const struct found *f, unsigned i)
{
    return f->bits[i / 64] >> i % 64 & 1;
}

static bool is_empty(const struct found *f)
{
    static const struct found none;
    return memcmp(f, &none, sizeof none) == 0;
}

/* X.scale and X.input_scale go with X.weight: factors for all of it. */
static bool is_scale(const struct gg_source *s, struct gguf_str name)
{
    char weight[256];
    static const char *const ends[] = { ".scale", ".input_scale" };
    for (size_t i = 0; i < GG_LEN(ends); i++) {
        struct gguf_str stem = name;
        if (!gg_str_ends(name, ends[i]))
            continue;
        stem.size -= strlen(ends[i]);
        if (gg_str_join(weight, sizeof weight, stem, ".weight") &&
            gg_source_find(s, weight, NULL))
            return true;
    }
    return false;
}

static enum gguf_status report_fault(const struct check *c,
                                     enum gg_file_check_code code,
                                     const struct gguf_tensor_info *t,
                                     const char *message)
{
    return gg_finding_report(c->report, code, GGUF_E_TENSOR, c->file_no,
                             t->name, t->info_off, "%s", message);
}

/* Reason why a matrix cannot be multiplied, to follow the name of its type.
 * NULL: it can. */
static const char *find_hindrance(const struct check *c,
                                  const struct gguf_tensor_info *t)
{
    const int index = gg_dtype_index(t->dtype);
    if (index < 0 || t->size_inferred ||
        !c->kern->codec[gg_interleave_plain(index)].decode)
        return "which cannot be multiplied";
    if (!gg_rows_apart_is_needed(t) ||
        gg_rows_apart_is_possible(gg_source_file(c->l->src, c->file_no), t))
        return NULL;
    return gguf_file_is_big_endian(gg_source_file(c->l->src, c->file_no))
               ? "whose groups of rows are read in little-endian files only"
               : "and its rows are no whole groups";
}

/* Unknown types, and rows that do not fit a fork's blocks, are reported
 * elsewhere, and such files do not open. */
static enum gguf_status check_type(const struct check *c, enum gg_weight id,
                                   const struct gguf_tensor_info *t)
{
    const struct gguf_dtype_info *d = gguf_dtype_find(t->dtype);
    const bool opens = gg_finding_is_fatal(c->report);
    static const uint32_t exact[] = {
        [GG_VECTOR] = GGUF_DTYPE_F32, [GG_NUMBERS] = GGUF_DTYPE_I32
    };
    const enum gg_model_role role = (enum gg_model_role)gg_weights[id].role;
    const char *hindrance = "which cannot be multiplied";
    char number[32] = "", message[320];
    struct gg_str_esc e;
    bool good = role != GG_MATRIX ? t->dtype == exact[role]
                                  : d && d->family != GGUF_FAMILY_INT;
    if (opens && good && role != GG_NUMBERS) {
        hindrance = find_hindrance(c, t);
        good = !hindrance;
    }
    if (good || (!opens && (!d || t->size_inferred)))
        return GGUF_OK;
    if (opens)
        snprintf(number, sizeof number, " (%" PRIu32 ")", t->dtype);
    snprintf(message, sizeof message, "tensor '%s' is of type %s%s, %s",
             gg_str_esc(&e, t->name), d ? d->name : "unknown", number,
             role == GG_VECTOR    ? "must be F32"
             : role == GG_NUMBERS ? "must be I32"
                                  : hindrance);
    return report_fault(c, GG_CHECK_TENSOR_TYPE, t, message);
}

/* Check the scale beside matrix id: one number, or one for each matrix of its
 * last dimension. */
static enum gguf_status check_scale(const struct check *c, enum gg_weight id,
                                    const struct gguf_tensor_info *t)
{
    int64_t ne[GG_WEIGHT_DIMS];
    char message[320];
    struct gg_str_esc e;
    gg_weight_ne(id, &c->l->sizes, ne);
    const bool fits =
        t->n_elements == 1 || !ne[2] || t->n_elements == (uint64_t)ne[2];
    if (t->dtype == GGUF_DTYPE_F32 && fits)
        return GGUF_OK;
    snprintf(message, sizeof message,
             "tensor '%s' has %" PRIu64 " elements, must have 1 or %" PRId64
             " of type F32",
             gg_str_esc(&e, t->name), t->n_elements, ne[2]);
    return report_fault(c, GG_CHECK_TENSOR_SHAPE, t, message);
}

/* A tensor that the architecture does not have: opening may warn of it. */
static enum gguf_status check_extra(const struct check *c,
                                    const struct gguf_tensor_info *t)
{
    struct gguf_str name = t->name;
    uint64_t il = 0;
    char message[320];
    struct gg_str_esc e;
    const enum gg_model_scope scope = gg_weight_scope(&name, &il);
    const uint32_t n = gg_model_lookup_layers(c->l, scope);
    if (gg_finding_is_fatal(c->report) && !c->l->strict)
        return GGUF_OK;
    if (il < n && is_scale(c->l->src, t->name))
        return GGUF_OK;
    if (il >= n)
        snprintf(message, sizeof message,
                 "tensor '%s' is of layer %" PRIu64 ", there are %" PRIu32,
                 gg_str_esc(&e, t->name), il, n);
    else
        snprintf(message, sizeof message,
                 "tensor '%s' is not used by models of architecture '%s'",
                 gg_str_esc(&e, t->name), c->l->arch->name);
    return report_fault(c, GG_CHECK_TENSOR_EXTRA, t, message);
}

static enum gguf_status check_tensor(struct check *c,
                                     const struct gguf_tensor_info *t)
{
    struct gguf_str name = t->name;
    struct gg_weight_text text;
    uint64_t il;
    int64_t ne[GG_WEIGHT_DIMS];
    const enum gg_weight id = gg_model_lookup(c->l, name, &il);
    const bool top = gg_weight_scope(&name, &il) == GG_MODEL;
    if (top || il < c->n_layer)
        set_bit(top ? &c->top : &c->layer[il], id);
    if (id == GG_W_NONE) {
        const enum gg_weight scaled =
            gg_model_lookup_scale(c->l, t->name, ".scale", &il);
        return scaled != GG_W_NONE ? check_scale(c, scaled, t)
                                   : check_extra(c, t);
    }
    gg_weight_ne(id, &c->l->sizes, ne);
    if (!gg_weight_fits(t, ne))
        GG_TRY(report_fault(c, GG_CHECK_TENSOR_SHAPE, t,
                            gg_weight_shape_text(&text, t, ne)));
    return check_type(c, id, t);
}

/* ---- missing weights ---- */

static bool is_missing(const struct check *c, const struct found *f,
                       unsigned id)
{
    const unsigned instead = gg_weights[id].instead;
    return c->l->needs.weight[id] == GG_MUST && !has_bit(f, id) &&
           !(instead != GG_W_NONE && has_bit(f, instead));
}

/* Count the missing weights of a layer. */
static void count_missing(struct check *c, enum gg_model_scope scope,
                          uint32_t il, const struct found *f)
{
    select_layer(c->l, scope, il);
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++)
        if (gg_weights[id].scope == scope && is_missing(c, f, id) &&
            !c->n[id]++)
            c->first[id] = il;
}

/* Layers without any tensor: one finding; the error of opening names their
 * first weight. */
static enum gguf_status check_empty(const struct check *c)
{
    uint32_t n = 0, first = 0;
    for (uint32_t il = 0; il < c->n_layer; il++)
        if (is_empty(&c->layer[il]))
            first = n++ ? first : il;
    if (!n || gg_finding_is_fatal(c->report))
        return GGUF_OK;
    return gg_finding_report(c->report, GG_CHECK_BLOCK_MISSING, GGUF_E_TENSOR,
                             0, GG_STR(""), GGUF_NO_OFFSET,
                             "%" PRIu32 " of %" PRIu32
                             " layers %s no tensors, "
                             "first %" PRIu32,
                             n, c->n_layer, n == 1 ? "has" : "have", first);
}

/* One finding for each weight, in however many layers it is missing. */
static enum gguf_status check_missing(struct check *c)
{
    const bool opens = gg_finding_is_fatal(c->report);
    char name[GG_WEIGHT_NAME], more[64];
    GG_TRY(check_empty(c));
    count_missing(c, GG_MODEL, 0, &c->top);
    for (unsigned s = GG_LAYER; s < GG_N_SCOPES; s++)
        for (uint32_t il = 0;
             il < gg_model_lookup_layers(c->l, (enum gg_model_scope)s) &&
             il < c->n_layer;
             il++)
            if (opens || !is_empty(&c->layer[il]))
                count_missing(c, (enum gg_model_scope)s, il, &c->layer[il]);
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++) {
        if (!c->n[id])
            continue;
        gg_weight_name((enum gg_weight)id, c->first[id], name);
        snprintf(more, sizeof more, ", and of %" PRIu32 " more layers",
                 c->n[id] - 1);
        GG_TRY(gg_finding_report(c->report, GG_CHECK_TENSOR_MISSING,
                                 GGUF_E_TENSOR, 0, gg_str_z(name),
                                 GGUF_NO_OFFSET, "tensor '%s' is missing%s",
                                 name, c->n[id] > 1 && !opens ? more : ""));
    }
    return GGUF_OK;
}

enum gguf_status gg_tensors_check(struct gg_model_lookup *l,
                                  const struct gg_finding *report,
                                  const struct gg_kern *kern,
                                  const struct gguf_allocator *a)
{
    const uint32_t n_decoder = gg_model_lookup_layers(l, GG_DECODER);
    struct check *c = gg_mem_alloc_zero(a, 1, sizeof *c);
    enum gguf_status st = GGUF_OK;
    if (!c)
        return gg_error_set_nomem(report->err, sizeof *c);
    c->l = l;
    c->report = report;
    c->kern = kern;
    c->n_layer = GG_MAX(l->hp->n_layer, n_decoder);
    c->layer = gg_mem_alloc_zero(a, c->n_layer, sizeof *c->layer);
    if (!c->layer)
        st = gg_error_set_nomem(report->err, c->n_layer * sizeof *c->layer);
    for (size_t i = 0; i < gg_source_n_tensors(l->src) && !st; i++) {
        const struct gg_file_shard_tensor t = gg_source_tensor(l->src, i);
        c->file_no = t.file_no;
        st = check_tensor(c, t.info);
    }
    if (st == GGUF_OK)
        st = check_missing(c);
    gg_mem_free(a, c->layer);
    gg_mem_free(a, c);
    return st;
}
