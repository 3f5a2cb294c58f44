/* SPDX-License-Identifier: MIT */
/* folder_tensors.c - map the tensors of a folder to tensors of the file
 *
 * Each tensor of the folder is matched with the names of its class. A match
 * gives a part of a tensor of the output. Sorting brings the parts of a tensor
 * together, in the order of experts or of rows.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/text.h"
#include "recipe/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* Set the name in the file from a row's, with the numbers of layer and expert
 * and an ending, in the arena. "+" is the number of the first nextn layer. */
static enum gguf_status give_name(struct gguf_convert *c, const char *to,
                                  int64_t layer, int64_t expert,
                                  const char *end, struct gguf_str *out,
                                  struct gguf_error *err)
{
    char buf[256];
    size_t n = 0;
    for (const char *p = to; *p && n < sizeof buf; p++) {
        const int64_t number = *p == '@'   ? expert
                               : *p == '+' ? gg_convert_first_nextn_layer(c)
                                           : layer;
        if (strchr("%@+", *p))
            n += (size_t)snprintf(buf + n, sizeof buf - n, "%" PRId64, number);
        else
            buf[n++] = *p;
    }
    if (n < sizeof buf)
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%s", end);
    if (n >= sizeof buf)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the name '%s' is too long for the output", to);
    out->data = gg_mem_arena_strndup(&c->arena, buf, n);
    out->size = n;
    return out->data ? GGUF_OK : gg_error_set_nomem(err, n);
}

/* Number of the layer in the file. false: the row has no place for it. */
static bool renumber_layer(const struct gguf_convert *c,
                           const struct gg_convert_name *row, int64_t *layer)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double n = row->layer_of ? row->layer_of(&cfg, *layer) : 0;
    if (row->layer_of && !(n >= 0 && n < 1e6))
        return false;
    if (row->layer_of)
        *layer = (int64_t)n;
    return true;
}

static enum gguf_status add_item(struct gguf_convert *c,
                                 const struct gg_convert_item *item,
                                 struct gguf_error *err)
{
    if (c->parts.n_items == c->parts.room_items) {
        void *grown =
            gg_mem_grow(c->p.allocator, c->parts.item, &c->parts.room_items,
                        sizeof *c->parts.item, 256, err);
        if (!grown)
            return GGUF_E_NOMEM;
        c->parts.item = grown;
    }
    c->parts.item[c->parts.n_items++] = *item;
    return GGUF_OK;
}

/* Number in the file of the folder's layer 0. */
static int64_t first_layer(const struct gguf_convert *c,
                           const struct gg_convert_name *row)
{
    int64_t n = 0;
    if (row->first_layer)
        (void)gg_convert_get_count(c, row->first_layer, &n);
    return n;
}

/* Add the parts that row no of a list makes of tensor i, called name. */
static enum gguf_status try_row(struct gguf_convert *c, size_t list, size_t no,
                                uint32_t i, uint8_t half, const char *name,
                                bool *found, bool *nothing,
                                struct gguf_error *err)
{
    static const char *const halves[] = { "", ".lora_a", ".lora_b" };
    char end_of[32];
    const char *end;
    const struct gg_convert_name *row = &c->arch->names[list][no];
    struct gg_convert_item item = {
        .row = row, .list = list, .from = i, .half = half
    };
    const struct gg_hf_config cfg = gg_convert_config(c);
    if (!gg_convert_row_matches(row, name, &item.layer, &item.expert, &end) ||
        (row->in_layers && !(row->in_layers(&cfg, item.layer) > 0)) ||
        !renumber_layer(c, row, &item.layer))
        return GGUF_OK;
    *found = true;
    item.layer += item.layer >= 0 ? first_layer(c, row) : 0;
    /* the head of a tied model carries nothing, but its pair does */
    const char *to = row->to ? row->to
                     : half != GG_HALF_NONE && !strcmp(row->from, "lm_head")
                         ? "output"
                         : NULL;
    *nothing |= !to || item.layer >= c->n_layers;
    if (*nothing)
        return GGUF_OK;
    if (gg_convert_is_number(row) && half == GG_HALF_NONE)
        return gg_convert_note_number(c, row, i, item.layer, err);
    snprintf(end_of, sizeof end_of, "%s%s", end, halves[half]);
    GG_TRY(give_name(c, to, item.layer, item.expert, end_of, &item.to, err));
    item.order = item.expert >= 0 ? (uint64_t)item.expert : no;
    if (strchr(to, '@'))
        item.order = no;
    if (strchr(to, '@') || row->joins)
        item.expert = -1;
    return add_item(c, &item, err);
}

/* Add tensor i by the rows of the first list that has its name. */
static enum gguf_status try_rows(struct gguf_convert *c, uint32_t i,
                                 uint8_t half, const char *name, bool *found,
                                 bool *nothing, struct gguf_error *err)
{
    for (size_t k = 0; k < GG_LEN(c->arch->names) && c->arch->names[k]; k++) {
        const struct gg_convert_name *list = c->arch->names[k];
        for (size_t no = 0; list[no].from; no++)
            GG_TRY(try_row(c, k, no, i, half, name, found, nothing, err));
        if (*found)
            break;
    }
    return GGUF_OK;
}

/* Does the name belong to a layer beyond the model's layers? */
static bool is_extra_layer(const struct gguf_convert *c, const char *name)
{
    struct gguf_str rest = gg_str_z(name);
    int64_t layer = -1;
    return gg_convert_match_pattern("model.layers.%.", &rest, &layer,
                                    &layer) &&
           layer >= c->n_layers;
}

/* *found: some row knows it; *nothing: and it carries nothing. */
static enum gguf_status place_tensor(struct gguf_convert *c, uint32_t i,
                                     bool *found, bool *nothing,
                                     struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &c->folder.weights->tensor[i];
    char name[GG_CONVERT_NAME], of_weight[GG_CONVERT_NAME];
    struct gguf_str given = t->name;
    uint8_t half = GG_HALF_NONE;
    *found = t->is_part;
    *nothing = false;
    if (c->is_adapter) {
        half = gg_convert_adapter_name(t->name, of_weight);
        if (half == GG_HALF_NONE)
            return GGUF_OK;
        given = gg_str_z(of_weight);
    }
    if (*found || !gg_convert_normalize_name(c, given, name, nothing)) {
        *found = *found || *nothing;
        return GGUF_OK;
    }
    if (is_extra_layer(c, name)) {
        *found = *nothing = true;
        return GGUF_OK;
    }
    GG_TRY(try_rows(c, i, half, name, found, nothing, err));
    if (!*found && gg_convert_respell(c, name))
        GG_TRY(try_rows(c, i, half, name, found, nothing, err));
    return GGUF_OK;
}

/* ---- ignored tensors ---- */

/* A pattern of names that are ignored, and whether there was one. */
struct ignored {
    struct gg_pattern *pattern;
    bool hit;
};

static enum gguf_status is_ignored(const struct gguf_convert *c,
                                   struct ignored *list, const char *name,
                                   bool *yes, struct gguf_error *err)
{
    *yes = false;
    for (size_t i = 0; i < c->p.n_ignore && !*yes; i++) {
        GG_TRY(gg_pattern_match(list[i].pattern, name, yes, err));
        list[i].hit = list[i].hit || *yes;
    }
    return GGUF_OK;
}

/* Perhaps it was misspelt. */
static void note_unused(const struct gguf_convert *c,
                        const struct ignored *list)
{
    struct gg_str_esc e;
    for (size_t i = 0; i < c->p.n_ignore; i++)
        if (!list[i].hit)
            gg_folder_warn(&c->folder,
                           "ignored: no tensor's name matches '%s'",
                           gg_str_esc(&e, gg_str_z(c->p.ignore[i])));
}

#define PACKED ": config.json has to say how (quantization_config)"
/* Advice for names without a place: parts of names that tell where a tensor
 * comes from. */
static const struct {
    const char *part, *advice;
} origins[] = {
    { ".lora_", "an adapter that is not merged in: save the model after "
                "PEFT's merge_and_unload(); --ignore lora_ converts it "
                "without the adapter" },
    { "v_head.", "the value head of reinforcement learning (TRL), which no "
                 "model computes with: --ignore v_head leaves it out" },
    { "value_head.", "the value head of reinforcement learning, which no "
                     "model computes with: --ignore value_head leaves it "
                     "out" },
    { "score.weight", "the head of a classifier, whose class "
                      "(...ForSequenceClassification) config.json does not "
                      "name: --ignore score leaves it out" },
    { ".quant_state.", "weights that bitsandbytes has quantized" PACKED },
    { ".qweight", "weights that GPTQ or AWQ has quantized" PACKED },
    { ".weight_scale", "scales of quantized weights" PACKED },
    { ".biases", "weights that MLX has quantized: convert the model that "
                 "they were made of" },
};
#undef PACKED

static const char *find_advice(const struct gguf_convert *c,
                               const uint32_t *unknown, size_t n)
{
    for (size_t k = 0; k < GG_LEN(origins) && !c->is_adapter; k++)
        for (size_t i = 0; i < n; i++)
            if (strstr(c->folder.weights->tensor[unknown[i]].name.data,
                       origins[k].part))
                return origins[k].advice;
    for (size_t i = 0; i < n && c->is_adapter; i++) {
        char weight[GG_CONVERT_NAME];
        if (gg_convert_adapter_name(c->folder.weights->tensor[unknown[i]].name,
                                    weight) == GG_HALF_NONE)
            return "an adapter's file has low-rank pairs only: merge the "
                   "adapter into its model (PEFT's merge_and_unload()) and "
                   "convert that";
    }
    return NULL;
}

static enum gguf_status list_unknown(const struct gguf_convert *c,
                                     const uint32_t *unknown, size_t n,
                                     struct gguf_error *err)
{
    const char *advice = find_advice(c, unknown, n);
    char list[320] = "";
    const size_t room = advice ? 180 : sizeof list;
    size_t k = 0;
    for (; k < n; k++) {
        struct gg_str_esc e;
        const size_t used = strlen(list);
        gg_str_esc(&e, c->folder.weights->tensor[unknown[k]].name);
        if (used + strlen(e.s) + 5 > room)
            break;
        snprintf(list + used, sizeof list - used, "%s'%s'", k ? ", " : "",
                 e.s);
    }
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "%zu tensor%s of the folder ha%s no place in a model "
                        "of architecture %s: %s%s%s%s%s",
                        n, n > 1 ? "s" : "", n > 1 ? "ve" : "s", c->arch->arch,
                        list, k < n ? " ..." : "", advice ? " (" : "",
                        advice ? advice : "", advice ? ")" : "");
}

static enum gguf_status place_all(struct gguf_convert *c,
                                  struct ignored *ignored,
                                  struct gguf_error *err)
{
    const size_t n = c->folder.weights->n_tensors;
    size_t n_unknown = 0;
    uint32_t *unknown =
        gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *unknown);
    c->parts.left =
        gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *c->parts.left);
    enum gguf_status st = unknown && c->parts.left
                              ? GGUF_OK
                              : gg_error_set_nomem(err, n * sizeof *unknown);
    for (size_t i = 0; i < n && st == GGUF_OK; i++) {
        bool found = false, nothing = false;
        st = is_ignored(c, ignored, c->folder.weights->tensor[i].name.data,
                        &nothing, err);
        found = nothing;
        if (st == GGUF_OK && !found)
            st = place_tensor(c, (uint32_t)i, &found, &nothing, err);
        if (nothing)
            c->parts.left[c->parts.n_left++] = (uint32_t)i;
        else if (!found)
            unknown[n_unknown++] = (uint32_t)i;
    }
    if (st == GGUF_OK && n_unknown)
        st = list_unknown(c, unknown, n_unknown, err);
    gg_mem_free(c->p.allocator, unknown);
    return st;
}

/* ---- types ---- */

/* Tensors that readers expect in F32 whatever the type of the others is. */
static bool is_f32(const struct gg_composed_tensor *t)
{
    static const char *const parts[] = {
        "ffn_gate_inp.",        "ffn_gate_inp_shexp.", "position_embd.",
        "token_types.",         "ssm_conv1d",          "shortconv.conv.",
        "_norm.weight",         "indexer.q_proj.",     "indexer.k_proj.",
        "indexer.proj.",        "time_mix_first.",     "time_mix_w1.",
        "time_mix_w2.",         "time_mix_decay_w1.",  "time_mix_decay_w2.",
        "time_mix_lerp_fused.", "altup_correct_coef.", "altup_predict_coef.",
        "output_hc_fn.",        "hc_attn_fn.",         "hc_ffn_fn.",
    };
    if (t->n_dims < 2 || !gg_str_ends(t->name, ".weight"))
        return true;
    for (size_t i = 0; i < GG_LEN(parts); i++)
        if (strstr(t->name.data, parts[i]))
            return true;
    return false;
}

static uint32_t choose_type(const struct gg_composed_tensor *t,
                            const struct gg_convert_transform *how,
                            const struct gg_safetensors_type *from)
{
    if (how && how->is_i32)
        return GGUF_DTYPE_I32;
    if (is_f32(t))
        return GGUF_DTYPE_F32;
    return from->own != GG_SAFETENSORS_NO_DTYPE ? from->own : GGUF_DTYPE_F32;
}

/* ---- putting together ---- */

static int compare_items(const void *a, const void *b)
{
    const struct gg_convert_item *x = a, *y = b;
    const size_t n = GG_MIN(x->to.size, y->to.size);
    const int by_name = memcmp(x->to.data, y->to.data, n);
    if (by_name || x->to.size != y->to.size)
        return by_name ? by_name : x->to.size < y->to.size ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static enum gguf_status fail_part(const struct gguf_convert *c, size_t item,
                                  const char *what, struct gguf_error *err)
{
    struct gg_str_esc to, from;
    const struct gg_convert_item *it = &c->parts.item[item];
    return gg_error_set(
        err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
        "tensor '%s' of the folder, a part of '%s', %s",
        gg_str_esc(&from, c->folder.weights->tensor[it->from].name),
        gg_str_esc(&to, it->to), what);
}

/* Append part k of tensor t: experts are stacked, other parts are concatenated
 * by rows. */
static enum gguf_status join_part(const struct gguf_convert *c, size_t item,
                                  size_t k, const struct gg_convert_view *v,
                                  struct gg_composed_tensor *t,
                                  struct gguf_error *err)
{
    const struct gg_convert_item *it = &c->parts.item[item];
    const bool stacked = it->expert >= 0;
    const unsigned last = v->n_dims - 1;
    if (v->n_dims > 4u - stacked) {
        char what[64];
        snprintf(what, sizeof what,
                 "has %u dimensions, at most %u are possible", v->n_dims,
                 4u - stacked);
        return fail_part(c, item, what, err);
    }
    if (stacked && it->expert != (int64_t)k)
        return fail_part(c, item,
                         it->expert < (int64_t)k ? "is there twice"
                                                 : "comes after a gap",
                         err);
    if (k && !stacked && it->half != GG_HALF_NONE)
        return fail_part(c, item,
                         "is one of several pairs of a merged weight, "
                         "which cannot be merged",
                         err);
    if (k && !stacked &&
        (it->order == it[-1].order || it->list != it[-1].list))
        return fail_part(c, item, "is there twice", err);
    if (it->row->joins && it->order != k)
        return fail_part(c, item, "comes after a gap", err);
    if (!k) {
        t->n_dims = v->n_dims + stacked;
        for (unsigned d = 0; d < 4; d++)
            t->ne[d] = v->ne[d];
        return GGUF_OK;
    }
    for (unsigned d = 0; d < v->n_dims; d++)
        if (v->ne[d] != t->ne[d] && (stacked || t->product || d != last))
            return fail_part(c, item, "has another shape than the others",
                             err);
    if (t->product)
        return GGUF_OK;
    t->ne[stacked ? v->n_dims : last] += stacked ? 1 : v->ne[last];
    return GGUF_OK;
}

/* Add the zeros of a view, if it has any. */
static void add_zeros(const struct gg_convert_view *v,
                      struct gg_composed_tensor *t)
{
    if (v->n_zeros)
        t->part[t->n_parts++] =
            (struct gg_composed_part){ .from = v->part.from,
                                       .zero = true,
                                       .n_dims = 1,
                                       .ne = { v->n_zeros } };
}

/* Add the parts of a view, with all repetitions. */
static enum gguf_status add_parts(struct gguf_convert *c,
                                  const struct gg_convert_view *v,
                                  struct gg_composed_tensor *t,
                                  struct gguf_error *err)
{
    size_t bytes;
    if (v->times && !t->n_parts) {
        t->part = gg_ckd_array(&bytes, 2 * v->times, sizeof *t->part)
                      ? NULL
                      : gg_mem_arena_alloc(&c->arena, bytes);
        if (!t->part)
            return gg_error_set_nomem(err, 2 * v->times * sizeof *t->part);
    }
    if (v->zeros_first)
        add_zeros(v, t);
    for (uint64_t i = 0; i < (v->times ? v->times : 1); i++) {
        t->part[t->n_parts++] = v->part;
        t->part[t->n_parts - 1].first += i * v->every;
        if (!v->rest.n_dims)
            continue;
        t->part[t->n_parts++] = v->rest;
        t->part[t->n_parts - 1].first += i * v->every;
    }
    if (!v->zeros_first)
        add_zeros(v, t);
    return GGUF_OK;
}

/* Do items first to end make a product, of a tensor and a factor? */
static enum gguf_status find_product(const struct gguf_convert *c,
                                     size_t first, size_t end, bool *product,
                                     struct gguf_error *err)
{
    const struct gg_convert_name *row = c->parts.item[first].row;
    const bool factor = row->transform && row->transform->is_factor;
    *product = gg_convert_has_factor(row);
    return factor || (*product && end - first < 2)
               ? fail_part(c, first,
                           factor ? "lacks the tensor that it multiplies"
                                  : "lacks the tensor that multiplies it",
                           err)
               : GGUF_OK;
}

/* Tensor no of the output, of items first to end. */
static enum gguf_status make_tensor(struct gguf_convert *c, size_t no,
                                    size_t first, size_t end,
                                    struct gguf_error *err)
{
    struct gg_composed_tensor *t = &c->out.made[no];
    struct gguf_convert_tensor *pub = &c->out.tensor[no];
    const struct gg_safetensors_tensor *from =
        &c->folder.weights->tensor[c->parts.item[first].from];
    const struct gg_convert_name *row = c->parts.item[first].row;
    const struct gg_convert_transform *how = row->transform;
    const size_t n = end - first;
    size_t bytes;
    *t = (struct gg_composed_tensor){ .name = c->parts.item[first].to };
    t->change =
        how && c->parts.item[first].half == GG_HALF_NONE ? how->change : NULL;
    t->part = gg_ckd_array(&bytes, 2 * n, sizeof *t->part)
                  ? NULL
                  : gg_mem_arena_alloc(&c->arena, bytes);
    if (!t->part)
        return gg_error_set_nomem(err, 2 * n * sizeof *t->part);
    GG_TRY(find_product(c, first, end, &t->product, err));
    for (size_t i = first; i < end; i++) {
        struct gg_convert_view v = {
            .c = c,
            .item = &c->parts.item[i],
            .from = &c->folder.weights->tensor[c->parts.item[i].from]
        };
        GG_TRY(gg_convert_make_view(&v, err));
        if (v.times && n > 1)
            return fail_part(c, i, "is one of several", err);
        GG_TRY(add_parts(c, &v, t, err));
        GG_TRY(join_part(c, i, i - first, &v, t, err));
    }
    t->dtype = c->arch->parts ? gg_convert_choose_part_type(
                                    c, t, from->type->own, &t->keeps_type)
                              : choose_type(t, how, from->type);
    c->out.first_item[no] = first;
    *pub = (struct gguf_convert_tensor){ .name = t->name.data,
                                         .n_dims = t->n_dims,
                                         .dtype = t->dtype,
                                         .from = from->name.data,
                                         .n_from = n,
                                         .how = gg_convert_transform_text(
                                             c, &c->parts.item[first]) };
    if (how && ((how->if_permuted && !c->arch->permuted) ||
                (how->if_added && t->n_parts == n)))
        pub->how = "as it is";
    memcpy(pub->ne, t->ne, sizeof pub->ne);
    return GGUF_OK;
}

static enum gguf_status make_all(struct gguf_convert *c,
                                 struct gguf_error *err)
{
    const size_t n = c->parts.n_items;
    c->out.made =
        gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *c->out.made);
    c->out.tensor =
        gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *c->out.tensor);
    c->out.first_item =
        gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *c->out.first_item);
    if (!c->out.made || !c->out.tensor || !c->out.first_item)
        return gg_error_set_nomem(err, n * sizeof *c->out.made);
    if (n)
        qsort(c->parts.item, n, sizeof *c->parts.item, compare_items);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n &&
               gg_str_eq(c->parts.item[first].to, c->parts.item[end].to))
            end++;
        GG_TRY(make_tensor(c, c->out.n_tensors, first, end, err));
        c->out.n_tensors++;
    }
    return gg_data_composed_init(&c->out.data, &c->folder.weights->list,
                                 c->out.made, c->out.n_tensors, c->p.allocator,
                                 err);
}

enum gguf_status gg_convert_assemble_tensors(struct gguf_convert *c,
                                             struct gguf_error *err)
{
    const size_t n = c->p.n_ignore;
    size_t k = 0;
    enum gguf_status st = GGUF_OK;
    struct ignored *ignored =
        gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *ignored);
    if (!ignored)
        return gg_error_set_nomem(err, n * sizeof *ignored);
    while (k < n && st == GGUF_OK) {
        st = gg_pattern_create(&ignored[k].pattern, gg_str_z(c->p.ignore[k]),
                               c->p.allocator, err);
        k += st == GGUF_OK;
    }
    if (st == GGUF_OK)
        st = place_all(c, ignored, err);
    if (st == GGUF_OK)
        note_unused(c, ignored);
    while (k)
        gg_pattern_destroy(ignored[--k].pattern);
    gg_mem_free(c->p.allocator, ignored);
    GG_TRY(st);
    if (c->arch->parts)
        return make_all(c, err);
    GG_TRY(gg_convert_choose_output_matrix(c, err));
    GG_TRY(gg_convert_set_number_keys(c, err));
    GG_TRY(make_all(c, err));
    return gg_convert_check_classifier(c, err);
}
