/* SPDX-License-Identifier: MIT */
/* job_plan.c - order and types of the tensors of a job */
#include "config.h"
#include "quant/job/job.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/interleave.h"
#include "quant/job/outer_scale.h"
#include "recipe/image_class.h"
#include "recipe/image_kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------- facts of the model --- */

/* Find a key with its value in the output. */
static const struct gguf_kv *find_kv(const struct gguf_quant *q,
                                     const char *key)
{
    const struct gguf_kv *kv =
        q->p.meta ? gguf_meta_find(q->p.meta, key) : NULL;
    return kv ? kv : gguf_meta_find(q->in.meta, key);
}

/* Get ARCH.suffix of the model as a number. For an array with one value per
 * layer: the first value. fallback if it is missing or not a number. */
static int64_t model_int(const struct gguf_quant *q, struct gguf_str arch,
                         const char *suffix, int64_t fallback)
{
    char key[256];
    uint64_t v;
    struct gguf_kv first;
    if (!gg_str_join(key, sizeof key, arch, suffix))
        return fallback;
    const struct gguf_kv *kv = find_kv(q, key);
    if (kv && kv->type == GGUF_VAL_ARR) {
        if (!kv->n || gguf_kv_get_elem(kv, 0, &first, NULL) != GGUF_OK)
            return fallback;
        kv = &first;
    }
    if (!kv || gguf_kv_get_uint(kv, &v, NULL) != GGUF_OK || v > INT32_MAX)
        return fallback;
    return (int64_t)v;
}

static struct gguf_str find_arch(const struct gguf_quant *q)
{
    struct gguf_str arch = { NULL, 0 };
    const struct gguf_kv *kv = find_kv(q, "general.architecture");
    return gguf_kv_get_str(kv, &arch, NULL) == GGUF_OK
               ? arch
               : (struct gguf_str){ NULL, 0 };
}

/* Tokens of the vocabulary: those listed, or rows of the embedding. */
static int64_t count_tokens(const struct gguf_quant *q)
{
    const struct gguf_kv *kv = find_kv(q, "tokenizer.ggml.tokens");
    if (kv && kv->type == GGUF_VAL_ARR && kv->n <= INT32_MAX)
        return (int64_t)kv->n;
    for (size_t i = 0; i < q->n_t; i++)
        if (!strcmp(q->t[i].pub.name, "token_embd.weight"))
            return q->t[i].pub.ne[1];
    return 0;
}

/* Collect facts about the model for conditions: from its metadata or, where
 * these are silent, from names and shapes. */
static void read_facts(const struct gguf_quant *q, struct gg_recipe_chooser *c)
{
    int64_t layers = q->n_layers_left, experts = 0;

    c->facts.arch = find_arch(q);
    c->tied = true;
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gguf_quant_tensor *t = &q->t[i].pub;
        if (strstr(t->name, "_exps."))
            experts = GG_MAX(experts, t->ne[2]);
        if (!strcmp(t->name, "output.weight"))
            c->tied = false;
    }
    struct gguf_str arch = c->facts.arch;
    for (size_t i = 0; i < q->n_t; i++)
        layers =
            GG_MAX(layers, gg_image_class_block(arch, q->t[i].pub.name) + 1);
    int64_t heads = model_int(q, arch, ".attention.head_count", 0);
    if (!q->p.n_prune)
        layers = model_int(q, arch, ".block_count", layers);
    c->facts.var[GG_VAR_LAYERS] = c->facts.var[GG_VAR_N] = layers;
    c->facts.var[GG_VAR_HEADS] = heads;
    c->facts.var[GG_VAR_KV_HEADS] =
        model_int(q, arch, ".attention.head_count_kv", heads);
    c->facts.var[GG_VAR_EXPERTS] =
        model_int(q, arch, ".expert_count", experts);
    c->facts.var[GG_VAR_VOCAB] = count_tokens(q);
    c->facts.var[GG_VAR_TIED] = c->tied;
    c->facts.var[GG_VAR_IMATRIX] = q->p.imatrix != NULL;
}

/* --------------------------------------------------------------- order --- */

/* Order of llama-quantize: tensors outside of layers first, then layer by
 * layer, by name within a layer. Image models keep the order of their file, in
 * which the quantizer of ComfyUI-GGUF counts tensors. */
static int compare_tensors(const void *a, const void *b)
{
    const struct gg_job_tensor *x = a, *y = b;
    int64_t i = gguf_layer_from_name(gg_str_z(x->pub.name), NULL);
    int64_t k = gguf_layer_from_name(gg_str_z(y->pub.name), NULL);
    return i != k ? (i > k) - (i < k) : strcmp(x->pub.name, y->pub.name);
}

/* ----------------------------------------------- layers to leave out --- */

static int compare_layers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static enum gguf_status list_pruned(struct gguf_quant *q,
                                    struct gguf_error *err)
{
    size_t n = q->p.n_prune, bytes;
    if (!n)
        return GGUF_OK;
    if (gg_ckd_array(&bytes, n, sizeof *q->prune) ||
        !(q->prune = gg_mem_arena_alloc(&q->arena, bytes)))
        return gg_error_set_nomem(err, SIZE_MAX);
    memcpy(q->prune, q->p.prune, bytes);
    qsort(q->prune, n, sizeof *q->prune, compare_layers);
    for (size_t i = 0; i < n; i++)
        if (!i || q->prune[i] != q->prune[q->n_prune - 1])
            q->prune[q->n_prune++] = q->prune[i];
    return GGUF_OK;
}

int64_t gg_job_n_pruned(const struct gguf_quant *q, int64_t layer)
{
    size_t low = 0, high = q->n_prune;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (q->prune[mid] < layer)
            low = mid + 1;
        else
            high = mid;
    }
    return (int64_t)low;
}

bool gg_job_is_pruned(const struct gguf_quant *q, int64_t layer)
{
    return gg_job_n_pruned(q, layer) < gg_job_n_pruned(q, layer + 1);
}

/* Close the gaps that pruned layers leave in the names. */
static enum gguf_status renumber_layers(struct gguf_quant *q,
                                        struct gguf_error *err)
{
    int64_t n_gone = gg_job_n_pruned(q, q->n_layers);
    if (n_gone < (int64_t)q->n_prune && !q->p.compat)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "layer %" PRIu32
                            " cannot be left out: the model has %" PRId64
                            " layers",
                            q->prune[n_gone], q->n_layers);
    q->n_layers_left = q->n_layers - n_gone;
    for (size_t i = 0; n_gone && i < q->n_t; i++) {
        struct gguf_str rest;
        int64_t layer =
            gguf_layer_from_name(gg_str_z(q->t[i].pub.name), &rest);
        if (layer < 0)
            continue;
        size_t size = strlen(q->t[i].pub.name) + 1;
        char *name = gg_mem_arena_alloc(&q->arena, size);
        if (!name)
            return gg_error_set_nomem(err, size);
        snprintf(name, size, "blk.%" PRId64 ".%s",
                 layer - gg_job_n_pruned(q, layer), rest.data);
        q->t[i].pub.name = name;
    }
    return GGUF_OK;
}

static struct gguf_str name_at(const void *user, uint32_t i)
{
    const struct gguf_quant *q = user;
    return q->all[i].name;
}

/* Fill q->all and q->names. */
static enum gguf_status list_inputs(struct gguf_quant *q,
                                    struct gguf_error *err)
{
    const size_t n = gg_data_n_tensors(q->in.list);
    uint32_t other;
    q->n_in = n;
    q->t = gg_mem_alloc_zero(q->p.allocator, n, sizeof *q->t);
    q->all = gg_mem_alloc_zero(q->p.allocator, n, sizeof *q->all);
    if (!q->t || !q->all)
        return gg_error_set_nomem(err, n * sizeof *q->t);
    GG_TRY(gg_index_init(&q->names, q->p.allocator, (uint32_t)n, name_at, q,
                         err));
    for (uint32_t i = 0; i < n; i++) {
        gg_data_info(q->in.list, i, &q->all[i]);
        GG_TRY(gg_index_add(&q->names, i, &other, err));
    }
    return GGUF_OK;
}

static enum gguf_status list_tensors(struct gguf_quant *q,
                                     struct gguf_error *err)
{
    GG_TRY(list_inputs(q, err));
    GG_TRY(list_pruned(q, err));
    const size_t n = q->n_in;
    for (size_t i = 0; i < n; i++) {
        const struct gg_data_info *info = &q->all[i];
        struct gguf_quant_tensor *t = &q->t[q->n_t].pub;
        struct gg_str_esc esc;
        const struct gguf_dtype_info *known = gguf_dtype_find(info->dtype);
        if (info->size_inferred && known)
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, info->info_off,
                "tensor '%s' has type %" PRIu32 ", but not the size of %s",
                gg_str_esc(&esc, info->name), info->dtype, known->name);
        if (info->size_inferred)
            return gg_error_set(err, GGUF_E_UNSUPPORTED, info->info_off,
                                "tensor '%s': unknown type %" PRIu32
                                ", so its size is unknown",
                                gg_str_esc(&esc, info->name), info->dtype);
        t->name =
            gg_mem_arena_strndup(&q->arena, info->name.data, info->name.size);
        if (!t->name)
            return gg_error_set_nomem(err, info->name.size + 1);
        if (gg_job_is_pruned(q, gguf_layer_from_name(info->name, NULL)))
            continue;
        q->t[q->n_t].no = i;
        q->t[q->n_t++].src = info;
        t->n_dims = info->n_dims;
        memcpy(t->ne, info->ne, sizeof t->ne);
        t->n_elements = info->n_elements;
        t->from = info->dtype;
        t->from_size = info->size;
    }
    for (size_t i = 0; i < n; i++)
        q->n_layers = GG_MAX(q->n_layers,
                             gguf_layer_from_name(q->all[i].name, NULL) + 1);
    GG_TRY(renumber_layers(q, err));
    if (q->n_t && !(q->p.keep_split && q->in.n_files > 1) &&
        !gg_image_kept_is_arch(find_arch(q)))
        qsort(q->t, q->n_t, sizeof *q->t, compare_tensors);
    q->n_all = q->n_t;
    for (size_t i = 0; i < q->n_t; i++)
        q->t[i].place = i;
    return GGUF_OK;
}

/* ---------------------------------------------------- importance data --- */

/* Number of importances that fit a tensor. */
static uint64_t n_importances(const struct gg_data_info *t)
{
    return t->n_elements / (uint64_t)t->ne[1];
}

/* Refuse data with other widths: they belong to another model. Only embeddings
 * may differ, as in llama-quantize, since the vocabularies of one model
 * differ. */
static enum gguf_status check_widths(const struct gguf_quant *q,
                                     struct gguf_error *err)
{
    const struct gg_data_info *first = NULL;
    uint64_t n = 0, n_other = 0, n_values = 0;
    struct gg_str_esc esc;
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gg_data_info *t = q->t[i].src;
        const struct gg_imatrix_entry *e =
            gg_imatrix_find_str(q->p.imatrix, t->name);
        n += e != NULL;
        if (!e || e->n_values == n_importances(t) ||
            gg_str_eqz(t->name, "token_embd.weight"))
            continue;
        n_values = n_other++ ? n_values : e->n_values;
        first = first ? first : t;
    }
    if (!first)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_MISMATCH, first->info_off,
                        "tensor '%s' has %" PRIu64
                        " columns, its importance data "
                        "%" PRIu64 " values: %" PRIu64 " of %" PRIu64
                        " tensors with data do not fit",
                        gg_str_esc(&esc, first->name), n_importances(first),
                        n_values, n_other, n);
}

/* Count importance data that fit no tensor of the input by name, and none of
 * the output through gguf_imatrix_find_for_matrix. */
static enum gguf_status count_unknown(struct gguf_quant *q,
                                      struct gguf_error *err)
{
    const struct gguf_imatrix *im = q->p.imatrix;
    const size_t n = gguf_imatrix_n_entries(im);
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    bool *used = gg_mem_alloc_zero(q->p.allocator, n + 1, sizeof *used);
    if (!used)
        return gg_error_set_nomem(err, n + 1);
    for (size_t i = 0, k; i < q->n_t && !q->p.compat; i++)
        if (gguf_imatrix_find_for_matrix(im, q->t[i].src->name,
                                         n_importances(q->t[i].src), &k))
            used[k] = true;
    q->n_imatrix_unknown = 0;
    for (size_t i = 0; i < n; i++)
        if (!used[i] && gguf_imatrix_entry(im, i, &e, NULL) == GGUF_OK)
            q->n_imatrix_unknown += !gg_job_find(q, e.name);
    gg_mem_free(q->p.allocator, used);
    return GGUF_OK;
}

/* Refuse data that share no name with the model. */
static enum gguf_status check_names(struct gguf_quant *q,
                                    struct gguf_error *err)
{
    const struct gguf_imatrix *im = q->p.imatrix;
    const size_t n = gguf_imatrix_n_entries(im);
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    struct gg_str_esc a, b;
    GG_TRY(count_unknown(q, err));
    if (!n || !q->n_t || q->n_imatrix_unknown < n || q->p.compat)
        return GGUF_OK;
    GG_TRY(gguf_imatrix_entry(im, 0, &e, err));
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "the importance data belong to another model: it "
                        "lacks all of their %zu tensors, such as '%s'; "
                        "one of its own is '%s'",
                        n, gg_str_esc(&a, gg_str_z(e.name)),
                        gg_str_esc(&b, gg_str_z(q->t[q->n_t / 2].pub.name)));
}

static enum gguf_status check_imatrix(struct gguf_quant *q,
                                      struct gguf_error *err)
{
    if (!q->p.imatrix)
        return GGUF_OK;
    GG_TRY(check_names(q, err));
    return check_widths(q, err);
}

/* ------------------------------------------------------------- choice --- */

/* Refuse a pattern that matches nothing: it has a mistake. */
static enum gguf_status check_overrides(const struct gguf_quant *q,
                                        const struct gg_recipe_chooser *c,
                                        struct gguf_error *err)
{
    for (size_t k = 0; k < c->n_overrides; k++) {
        bool used = false;
        for (size_t i = 0; i < q->n_t && !used; i++)
            if (!gg_recipe_choose_keep_reason(q->t[i].pub.name,
                                              q->t[i].pub.ne))
                GG_TRY(gg_pattern_match(c->patterns[k], q->t[i].pub.name,
                                        &used, err));
        struct gg_str_esc esc;
        if (!used)
            return gg_error_set(
                err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                "pattern '%s' matches no tensor that can be "
                "quantized",
                gg_str_esc(&esc, gg_str_z(c->overrides[k].pattern)));
    }
    return GGUF_OK;
}

/* Refuse a rule of the recipe that matches nothing, unless its condition limits
 * it to some models. */
static enum gguf_status check_rules(const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    const struct gguf_recipe *r = q->p.recipe;
    struct gg_str_esc esc;
    for (uint32_t k = 0; k < r->n_rules; k++) {
        const struct gg_recipe_rule *rule = &r->rules[k];
        bool used = !rule->pattern || rule->n_code;
        for (size_t i = 0; i < q->n_t && !used; i++)
            GG_TRY(
                gg_pattern_match(rule->pattern, q->t[i].pub.name, &used, err));
        if (!used)
            return gg_error_set(
                err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                "line %u of the recipe, '%s', matches no tensor; a "
                "rule for some models only needs a condition",
                rule->line, gg_str_esc(&esc, gg_str_z(rule->text)));
    }
    return GGUF_OK;
}

/* Type of a tensor after params.repack_to. */
static uint32_t choose_packing(const struct gguf_quant *q,
                               const struct gguf_quant_tensor *t)
{
    const uint32_t wanted = q->p.repack_to;
    const int from = gg_dtype_index(t->from);
    if (!wanted || from < 0)
        return t->from;
    const int plain = gg_interleave_plain(from);
    const int group = gg_interleave_of(from);
    if (gg_interleave_rows(from) > 1) {
        const uint32_t id = gg_dtype_by_index(plain)->id;
        return wanted == GGUF_REPACK_PLAIN || wanted == id ? id : t->from;
    }
    if (group < 0 || t->n_dims < 2 ||
        t->ne[1] % (int64_t)gg_interleave_rows(group) ||
        t->ne[0] % (int64_t)gg_interleave_unit(group) ||
        !strcmp(t->name, "token_embd.weight") ||
        !strcmp(t->name, "per_layer_token_embd.weight"))
        return t->from;
    const uint32_t id = gg_dtype_by_index(group)->id;
    return wanted == GGUF_REPACK_INTERLEAVED || wanted == id ? id : t->from;
}

static enum gguf_status choose_all(struct gguf_quant *q,
                                   struct gg_recipe_chooser *c,
                                   struct gguf_error *err)
{
    GG_TRY(check_overrides(q, c, err));
    GG_TRY(check_rules(q, err));
    for (size_t i = 0; i < q->n_t; i++) {
        struct gg_job_tensor *jt = &q->t[i];
        struct gg_recipe_choice choice;
        if (jt->src->keeps_type) {
            GG_TRY(gg_job_set_type(q, jt, jt->pub.from, jt->pub.from,
                                   GGUF_REASON_NEVER_QUANTIZED,
                                   "kept: programs read this type", err));
            continue;
        }
        GG_TRY(gg_recipe_choose_type(c, jt->pub.name, jt->pub.ne, jt->pub.from,
                                     &choice, err));
        jt->cls = choice.cls;
        if (q->p.repack_to) {
            choice.wanted = choice.type = choose_packing(q, &jt->pub);
            choice.text = "repacked";
        }
        GG_TRY(gg_job_set_type(q, jt, choice.wanted, choice.type,
                               choice.reason, choice.text, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_job_make_plan(struct gguf_quant *q, struct gguf_error *err)
{
    enum gguf_status st;
    struct gg_pattern **patterns;
    size_t n = 0, bytes;
    struct gg_recipe_chooser c = { .recipe = q->p.recipe };

    if (gg_ckd_array(&bytes, q->p.n_overrides, sizeof *patterns))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_quant_params: n_overrides is too large");
    GG_TRY(list_tensors(q, err));
    GG_TRY(check_imatrix(q, err));
    read_facts(q, &c);
    c.pure = q->p.pure;
    c.leave_output = q->p.leave_output;
    c.compat = q->p.compat;
    c.output_type = q->p.output_type;
    c.embedding_type = q->p.embedding_type;
    patterns = gg_mem_alloc(q->p.allocator, bytes);
    if (!patterns)
        return gg_error_set_nomem(err, bytes);
    st = GGUF_OK;
    while (n < q->p.n_overrides && st == GGUF_OK) {
        st = gg_pattern_create(&patterns[n],
                               gg_str_z(q->p.overrides[n].pattern),
                               q->p.allocator, err);
        n += st == GGUF_OK;
    }
    if (st == GGUF_OK) {
        c.overrides = q->p.overrides;
        c.patterns = patterns;
        c.n_overrides = n;
        st = choose_all(q, &c, err);
        st = st ? st : gg_outer_scale_fold(q, err);
    }
    while (n)
        gg_pattern_destroy(patterns[--n]);
    gg_mem_free(q->p.allocator, patterns);
    return st;
}
