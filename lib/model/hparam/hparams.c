/* SPDX-License-Identifier: MIT */
/* hparams.c - read hyperparameters from metadata: one loop over their rows
 *
 * Every number is checked against its range before anything is computed or
 * allocated from it, since files may be hostile. Checks of several numbers
 * against each other are in hparams_rule.c.
 */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/mem.h"
#include "base/str.h"
#include "gguf/model_base.h"
#include "graph/op_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the rows ---- */

struct row {
    struct gguf_hparam info;
    uint16_t off; /* offset of the field in gg_hparams or gg_model_layer */
    /* offset in gg_hparams of another number that is the maximum */
    uint16_t most;
    bool any; /* a count: larger values are cut to the maximum */
    /* the array may hold bools, and may leave out nextn layers */
    bool flags;
};

#define OFF_MODEL(FIELD) offsetof(struct gg_hparams, FIELD)
#define OFF_LAYER(FIELD) offsetof(struct gg_model_layer, FIELD)
#define IS_LAYER_MODEL   0
#define IS_LAYER_LAYER   1
#define KIND_UINT        GGUF_HPARAM_UINT
#define KIND_COUNT       GGUF_HPARAM_UINT
#define KIND_FLAGS       GGUF_HPARAM_UINT
#define KIND_FLOAT       GGUF_HPARAM_FLOAT
#define KIND_BOOL        GGUF_HPARAM_BOOL
#define KIND_TEXT        GGUF_HPARAM_TEXT
#define KIND_SEEN        GGUF_HPARAM_OTHER
#define ANY_UINT         0
#define ANY_COUNT        1
#define ANY_FLAGS        0
#define ANY_FLOAT        0
#define ANY_BOOL         0
#define ANY_TEXT         0
#define ANY_SEEN         0
#define FLAGS_UINT       0
#define FLAGS_COUNT      0
#define FLAGS_FLAGS      1
#define FLAGS_FLOAT      0
#define FLAGS_BOOL       0
#define FLAGS_TEXT       0
#define FLAGS_SEEN       0
#define ALWAYS           GGUF_HPARAM_ALWAYS
#define MEMORY           GGUF_HPARAM_MEMORY
#define SUMMARY          GGUF_HPARAM_SUMMARY

static const struct row rows[GG_N_HPARAMS] = {
#define X(FIELD, KIND, WHERE, KEY, MIN, MAX, MOST, FLAGS, JSON, LABEL, HF)    \
    [GG_HP_##FIELD] = { { KEY, LABEL, JSON, HF, MIN, MAX, KIND_##KIND, FLAGS, \
                          IS_LAYER_##WHERE },                                 \
                        OFF_##WHERE(FIELD),                                   \
                        OFF_MODEL(MOST),                                      \
                        ANY_##KIND,                                           \
                        FLAGS_##KIND },
    GG_HPARAM_LIST(X)
#undef X
};

const struct gguf_hparam *gguf_hparam_at(size_t n)
{
    return n < GG_N_HPARAMS - 1 ? &rows[n + 1].info : NULL;
}

/* ---- faults ---- */

const struct gguf_kv *gg_hparams_find(struct gg_hparams_reader *r,
                                      enum gg_model_hparam id)
{
    const char *key = rows[id].info.key;
    if (key[0] == '/')
        snprintf(r->key, sizeof r->key, "%s", key + 1);
    else
        snprintf(r->key, sizeof r->key, "%.*s.%s", (int)r->prefix.size,
                 r->prefix.data, key);
    return gguf_file_kv_find(gg_source_meta(r->src), r->key);
}

enum gguf_status gg_hparams_fail(struct gg_hparams_reader *r,
                                 const struct gguf_kv *kv,
                                 enum gg_file_check_code code,
                                 enum gguf_status status, const char *fmt, ...)
{
    char message[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    return gg_finding_report(r->report, code, status, 0, gg_str_z(r->key),
                             kv ? kv->off : GGUF_NO_OFFSET, "%s", message);
}

enum gguf_status gg_hparams_fail_range(struct gg_hparams_reader *r,
                                       enum gg_model_hparam id, uint64_t v,
                                       uint64_t min, uint64_t max)
{
    const struct gguf_kv *kv = gg_hparams_find(r, id);
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s is %" PRIu64 ", must be %" PRIu64
                           " to %" PRIu64,
                           r->key, v, min, max);
}

enum gguf_status gg_hparams_fail_missing(struct gg_hparams_reader *r,
                                         enum gg_model_hparam id)
{
    (void)gg_hparams_find(r, id);
    return gg_hparams_fail(r, NULL, GG_CHECK_KEY_MISSING, GGUF_E_NOTFOUND,
                           "key '%s' is missing", r->key);
}

/* Report the failure of a function that reads a key. */
static enum gguf_status report_failure(struct gg_hparams_reader *r,
                                       const struct gguf_kv *kv,
                                       const struct gguf_error *why)
{
    return gg_hparams_fail(r, kv,
                           why->status == GGUF_E_TYPE ? GG_CHECK_KEY_TYPE
                                                      : GG_CHECK_KEY_VALUE,
                           why->status, "%s", why->message);
}

/* ---- one value ---- */

/* Maximum of a row: the constant, or the number that limits it, if that is
 * known. */
static uint64_t find_max(const struct gg_hparams_reader *r,
                         const struct row *row)
{
    uint32_t most;
    memcpy(&most, (const char *)r->hp + row->most, sizeof most);
    return most ? GG_MIN((uint64_t)row->info.max, most)
                : (uint64_t)row->info.max;
}

/* 0 for layers of another kind, if there are some. */
static uint64_t find_min(const struct gg_hparams_reader *r,
                         const struct row *row)
{
    return row->info.per_layer && gg_arch_has_mixed_layers(r->arch)
               ? 0
               : (uint64_t)row->info.min;
}

static enum gguf_status read_uint(struct gg_hparams_reader *r,
                                  enum gg_model_hparam id,
                                  const struct gguf_kv *kv, void *out)
{
    const struct row *row = &rows[id];
    const uint64_t min = (uint64_t)row->info.min;
    const uint64_t max = row->any ? UINT64_MAX : find_max(r, row);
    struct gguf_error why;
    uint64_t v;
    if (gguf_kv_get_uint(kv, &v, &why) != GGUF_OK)
        return report_failure(r, kv, &why);
    if (v < min || v > max)
        return gg_hparams_fail_range(r, id, v, min, max);
    uint32_t kept = (uint32_t)GG_MIN(v, (uint64_t)INT32_MAX);
    memcpy(out, &kept, sizeof kept);
    r->hp->has[id] = true;
    return GGUF_OK;
}

static enum gguf_status read_float(struct gg_hparams_reader *r,
                                   enum gg_model_hparam id,
                                   const struct gguf_kv *kv, void *out)
{
    const struct gguf_hparam *info = &rows[id].info;
    struct gguf_error why;
    double v;
    if (gguf_kv_get_float(kv, &v, &why) != GGUF_OK)
        return report_failure(r, kv, &why);
    if (!(v >= info->min && v <= info->max))
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %g, must be %g to %g", r->key, v,
                               info->min, info->max);
    float kept = (float)v;
    memcpy(out, &kept, sizeof kept);
    r->hp->has[id] = true;
    return GGUF_OK;
}

static enum gguf_status read_bool(struct gg_hparams_reader *r,
                                  enum gg_model_hparam id,
                                  const struct gguf_kv *kv, void *out)
{
    struct gguf_error why;
    bool v;
    if (gguf_kv_get_bool(kv, &v, &why) != GGUF_OK)
        return report_failure(r, kv, &why);
    bool kept = v != 0;
    memcpy(out, &kept, sizeof kept);
    r->hp->has[id] = true;
    return GGUF_OK;
}

static enum gguf_status read_text(struct gg_hparams_reader *r,
                                  enum gg_model_hparam id,
                                  const struct gguf_kv *kv, void *out)
{
    struct gguf_error why;
    struct gguf_str v;
    if (gguf_kv_get_str(kv, &v, &why) != GGUF_OK)
        return report_failure(r, kv, &why);
    memcpy(out, &v, sizeof v);
    r->hp->has[id] = true;
    return GGUF_OK;
}

static enum gguf_status read_other(struct gg_hparams_reader *r,
                                   enum gg_model_hparam id,
                                   const struct gguf_kv *kv, void *out)
{
    const bool seen = true;
    (void)kv;
    memcpy(out, &seen, sizeof seen);
    r->hp->has[id] = true;
    return GGUF_OK;
}

typedef enum gguf_status read_fn(struct gg_hparams_reader *r,
                                 enum gg_model_hparam id,
                                 const struct gguf_kv *kv, void *out);
static read_fn *const readers[] = {
    [GGUF_HPARAM_UINT] = read_uint,   [GGUF_HPARAM_FLOAT] = read_float,
    [GGUF_HPARAM_BOOL] = read_bool,   [GGUF_HPARAM_TEXT] = read_text,
    [GGUF_HPARAM_OTHER] = read_other,
};

/* ---- one for each layer ---- */

static enum gguf_status bad_length(struct gg_hparams_reader *r,
                                   const struct gguf_kv *kv)
{
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s has %" PRIu64 " elements, there are %" PRIu32
                           " layers",
                           r->key, kv->n, r->hp->n_layer);
}

static bool check_elements(const struct row *row, const struct gguf_kv *kv)
{
    return kv->elem_type == GGUF_VAL_U32 || kv->elem_type == GGUF_VAL_I32 ||
           kv->elem_type == GGUF_VAL_U64 || kv->elem_type == GGUF_VAL_I64 ||
           (row->flags && kv->elem_type == GGUF_VAL_BOOL);
}

/* Read a number for all layers, or an array with one for each: v[n_layer],
 * zeroed. */
static enum gguf_status read_array(struct gg_hparams_reader *r,
                                   const struct row *row,
                                   const struct gguf_kv *kv, uint64_t *v)
{
    const uint32_t n = r->hp->n_layer;
    const uint32_t least = row->flags ? n - r->hp->n_nextn : n;
    struct gguf_error why;
    enum gguf_status st;
    if (kv->type == GGUF_VAL_ARR) {
        if (!check_elements(row, kv))
            return gg_hparams_fail(r, kv, GG_CHECK_KEY_TYPE, GGUF_E_TYPE,
                                   "%s is an array of %s, must be of u32",
                                   r->key, gguf_val_type_name(kv->elem_type));
        if (kv->n != n && kv->n != least)
            return bad_length(r, kv);
        st = gguf_kv_get_elems_uint(kv, 0, (size_t)kv->n, v, &why);
    } else if (row->flags && kv->type == GGUF_VAL_BOOL) {
        bool yes = false;
        st = gguf_kv_get_bool(kv, &yes, &why);
        for (uint32_t i = 0; i < n; i++)
            v[i] = yes != 0;
    } else {
        st = gguf_kv_get_uint(kv, &v[0], &why);
        for (uint32_t i = 1; i < n; i++)
            v[i] = v[0];
    }
    r->good = st == GGUF_OK;
    return r->good ? GGUF_OK : report_failure(r, kv, &why);
}

static enum gguf_status read_layers(struct gg_hparams_reader *r,
                                    enum gg_model_hparam id,
                                    const struct gguf_kv *kv, uint64_t *v)
{
    const struct row *row = &rows[id];
    const uint64_t min = find_min(r, row), max = find_max(r, row);
    const uint32_t n = r->hp->n_layer;
    r->good = false;
    memset(v, 0, n * sizeof *v);
    GG_TRY(read_array(r, row, kv, v));
    if (!r->good)
        return GGUF_OK; /* reported */
    for (uint32_t i = 0; i < n; i++)
        if (v[i] < min || v[i] > max)
            return gg_hparams_fail_range(r, id, v[i], min, max);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t kept = (uint32_t)v[i];
        memcpy((char *)&r->hp->layer[i] + row->off, &kept, sizeof kept);
    }
    r->hp->has[id] = true;
    return GGUF_OK;
}

/* Read a float for all layers, or an array with one for each. */
static enum gguf_status read_floats(struct gg_hparams_reader *r,
                                    enum gg_model_hparam id,
                                    const struct gguf_kv *kv)
{
    const struct row *row = &rows[id];
    const bool list = kv->type == GGUF_VAL_ARR;
    struct gguf_error why;
    double one = 0;
    if (list && kv->n != r->hp->n_layer)
        return bad_length(r, kv);
    if (!list && gguf_kv_get_float(kv, &one, &why) != GGUF_OK)
        return report_failure(r, kv, &why);
    for (uint32_t i = 0; i < r->hp->n_layer; i++) {
        float v = (float)one;
        if (list && gguf_kv_get_elems_f32(kv, i, 1, &v, &why) != GGUF_OK)
            return report_failure(r, kv, &why);
        if (!((double)v >= row->info.min && (double)v <= row->info.max))
            return gg_hparams_fail(
                r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                "%s is %g in layer %" PRIu32 ", must be %g to %g", r->key,
                (double)v, i, row->info.min, row->info.max);
        memcpy((char *)&r->hp->layer[i] + row->off, &v, sizeof v);
    }
    r->hp->has[id] = true;
    return GGUF_OK;
}

/* ---- all of them ---- */

/* Must a key be there? */
static bool is_required(const struct gg_hparams_reader *r,
                        enum gg_model_hparam id)
{
    if (id == GG_HP_n_ff && r->hp->n_expert && r->arch->moe.where)
        return false;
    return r->needs.key[id] == GG_MUST;
}

static enum gguf_status read_all(struct gg_hparams_reader *r, bool per_layer,
                                 uint64_t *v)
{
    for (unsigned i = 1; i < GG_N_HPARAMS; i++) {
        const enum gg_model_hparam id = (enum gg_model_hparam)i;
        const struct row *row = &rows[i];
        if (!r->needs.key[i] || row->info.per_layer != per_layer)
            continue;
        const struct gguf_kv *kv = gg_hparams_find(r, id);
        if (!kv && is_required(r, id))
            GG_TRY(gg_hparams_fail_missing(r, id));
        else if (kv && per_layer)
            GG_TRY(row->info.kind == GGUF_HPARAM_FLOAT
                       ? read_floats(r, id, kv)
                       : read_layers(r, id, kv, v));
        else if (kv)
            GG_TRY(
                readers[row->info.kind](r, id, kv, (char *)r->hp + row->off));
    }
    return GGUF_OK;
}

/* Numbers whose keys the file lacks. */
static void fill_defaults(struct gg_hparams_reader *r)
{
    const struct gg_arch_default *d = r->arch->defaults;
    for (; d && d->key; d++) {
        char *to = (char *)r->hp + rows[d->key].off;
        const uint32_t n = (uint32_t)d->value;
        if (r->hp->has[d->key])
            continue;
        if (rows[d->key].info.kind == GGUF_HPARAM_FLOAT)
            memcpy(to, &d->value, sizeof d->value);
        else
            memcpy(to, &n, sizeof n);
    }
}

static enum gguf_status load_vocab_size(struct gg_hparams_reader *r,
                                        size_t n_tokens)
{
    struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_vocab_key);
    hp->n_vocab = (uint32_t)n_tokens;
    if (!kv)
        return n_tokens ? GGUF_OK
                        : gg_hparams_fail_missing(r, GG_HP_n_vocab_key);
    GG_TRY(read_uint(r, GG_HP_n_vocab_key, kv, &hp->n_vocab_key));
    if (!hp->n_vocab_key || hp->n_vocab_key == n_tokens)
        return GGUF_OK;
    if (!n_tokens) {
        hp->n_vocab = hp->n_vocab_key;
        return GGUF_OK;
    }
    return gg_hparams_fail(r, kv, GG_CHECK_VOCAB_SIZE, GGUF_E_VOCAB,
                           "%s is %" PRIu32 ", the vocabulary has %zu tokens",
                           r->key, hp->n_vocab_key, n_tokens);
}

static enum gguf_status load_layers(struct gg_hparams_reader *r)
{
    const struct gguf_allocator *a = r->allocator;
    struct gg_hparams *hp = r->hp;
    hp->n_layer_all = GG_MAX(hp->n_layer, hp->n_dec_layer);
    hp->layer = gg_mem_alloc_zero(a, hp->n_layer_all, sizeof *hp->layer);
    uint64_t *v = gg_mem_alloc_zero(a, hp->n_layer, sizeof *v);
    enum gguf_status st =
        hp->layer && v
            ? read_all(r, true, v)
            : gg_error_set_nomem(r->report->err,
                                 hp->n_layer_all * sizeof *hp->layer);
    gg_mem_free(a, v);
    return st;
}

enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gg_source *src,
                                 const struct gg_arch *arch,
                                 struct gguf_str prefix, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 const struct gg_finding *report)
{
    struct gg_hparams_reader r = { .src = src,
                                   .arch = arch,
                                   .prefix = prefix,
                                   .hp = hp,
                                   .report = report,
                                   .allocator = allocator };
    size_t n_tensors = gg_source_n_tensors(src);
    gg_needs_fill_keys(arch, &r.needs);
    hp->none = UINT32_MAX;
    hp->causal = hp->rope_tuned = true;
    hp->rope = (struct gguf_rope)GGUF_ROPE_INIT;
    gg_op_rope_set_defaults(&hp->rope);
    /* every layer has tensors, so their number bounds that of layers, unless
     * block_count has another meaning */
    n_tensors = GG_MAX(GG_MAX(n_tensors, hp->n_layer), 1);
    if (arch->count_layers.fn)
        n_tensors = GG_MAX(n_tensors, 1 << 16);
    hp->n_tensors = (uint32_t)GG_MIN(n_tensors, (size_t)INT32_MAX);
    GG_TRY(load_vocab_size(&r, n_tokens));
    GG_TRY(read_all(&r, false, NULL));
    fill_defaults(&r);
    GG_TRY(gg_hparams_check_experts(&r));
    GG_TRY(gg_hparams_check_states(&r));
    GG_TRY(gg_hparams_check_norm(&r));
    GG_TRY(gg_hparams_check_decoder(&r));
    if (arch->count_layers.fn)
        GG_TRY(arch->count_layers.fn(&r));
    if (!hp->n_layer)
        return GGUF_OK; /* reported */
    GG_TRY(load_layers(&r));
    GG_TRY(gg_hparams_check_windows(&r));
    if (arch->fill_hparams.fn)
        arch->fill_hparams.fn(&r);
    GG_TRY(gg_hparams_check_widths(&r));
    GG_TRY(gg_hparams_check_heads(&r));
    GG_TRY(gg_hparams_check_shared_kv(&r));
    GG_TRY(gg_hparams_check_wkv(&r));
    GG_TRY(gg_hparams_check_rope(&r));
    GG_TRY(gg_hparams_check_indexer(&r));
    if (arch->scale && arch->scale->by_yarn)
        arch->scale->by_yarn(hp);
    GG_TRY(gg_hparams_check_positions(&r));
    GG_TRY(gg_hparams_check_window_rope(&r));
    if (gg_arch_mixer(arch)->check_hparams)
        GG_TRY(gg_arch_mixer(arch)->check_hparams(&r));
    gg_hparams_fill_layers(&r);
    return gg_hparams_check_expert_layers(&r);
}
