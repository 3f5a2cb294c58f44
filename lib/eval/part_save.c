/* SPDX-License-Identifier: MIT */
/* part_save.c - write parts to files, and read them */
#include "config.h"
#include "eval/part_int.h"
#include "eval/part_file.h"

#include "base/str.h"
#include "file/file_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEY "score.part."
static const char setting_key[] = KEY "of.", note_key[] = KEY "note.";
static const struct gg_part_kind part_kind = { "score-part", KEY, 2 };
static const struct gguf_str counts_name = { "counts", 6 },
                             heads_name = { "heads", 5 },
                             scores_name = { "scores", 6 };

/* ---- saving ---- */

static enum gguf_status set_pairs(struct gguf_meta *m, const char *prefix,
                                  const struct gg_part_pairs *l,
                                  struct gguf_error *err)
{
    char key[GG_PART_MAX_NAME + 24];
    for (size_t i = 0; i < l->n; i++) {
        snprintf(key, sizeof key, "%s%s", prefix, l->list[i].name);
        GG_TRY(gguf_meta_set_strz(m, key, l->list[i].value, err));
    }
    return GGUF_OK;
}

static uint64_t n_rows(const struct gguf_part *p)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_chunks; i++)
        n += p->chunk[i].n;
    return n;
}

static enum gguf_status put_doubles(struct gg_part_out *o, const double *v,
                                    size_t n, struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        GG_TRY(gg_part_put64(o, &bits, 1, err));
    }
    return GGUF_OK;
}

static enum gguf_status put_all(const struct gguf_part *p,
                                struct gg_part_out *o, uint64_t n,
                                struct gguf_error *err)
{
    GG_TRY(gg_part_next(o, err));
    for (size_t i = 0; i < p->n_chunks; i++) {
        const uint64_t count =
            p->chunk[i].record ? (uint64_t)p->chunk[i].n : UINT64_MAX;
        GG_TRY(gg_part_put64(o, &count, 1, err));
    }
    if (p->n_chunk_values && p->n_done)
        GG_TRY(gg_part_next(o, err));
    for (size_t i = 0; i < p->n_chunks; i++)
        if (p->chunk[i].record)
            GG_TRY(put_doubles(o, p->chunk[i].record, p->n_chunk_values, err));
    if (n)
        GG_TRY(gg_part_next(o, err));
    for (size_t i = 0; i < p->n_chunks; i++) {
        const struct gg_part_chunk *c = &p->chunk[i];
        if (c->record)
            GG_TRY(put_doubles(o, c->record + p->n_chunk_values,
                               c->n * p->n_row_values, err));
    }
    return gg_part_commit(o, err);
}

static enum gguf_status plan_tensors(const struct gguf_part *p,
                                     struct gg_part_out *o, uint64_t n,
                                     struct gguf_error *err)
{
    GG_TRY(gg_part_add(o, counts_name, GGUF_DTYPE_I64, p->n_chunks, 1, err));
    if (p->n_chunk_values && p->n_done)
        GG_TRY(gg_part_add(o, heads_name, GGUF_DTYPE_F64, p->n_chunk_values,
                           p->n_done, err));
    return n ? gg_part_add(o, scores_name, GGUF_DTYPE_F64, p->n_row_values, n,
                           err)
             : GGUF_OK;
}

enum gguf_status gguf_part_save(const struct gguf_part *p, const char *path,
                                bool force, struct gguf_error *err)
{
    struct gg_part_out o = { .w = NULL };
    struct gguf_meta *m;
    const uint64_t n = n_rows(p);
    GG_TRY(gguf_meta_create(&m, p->allocator, err));
    enum gguf_status st = set_pairs(m, setting_key, &p->settings, err);
    if (st == GGUF_OK)
        st = set_pairs(m, note_key, &p->notes, err);
    if (st == GGUF_OK)
        st =
            gguf_meta_set_u32(m, KEY "values", (uint32_t)p->n_row_values, err);
    if (st == GGUF_OK)
        st = gguf_meta_set_u32(m, KEY "heads", (uint32_t)p->n_chunk_values,
                               err);
    if (st == GGUF_OK)
        st = gg_part_begin(&o, &part_kind, m, p->allocator, err);
    if (st == GGUF_OK)
        st = plan_tensors(p, &o, n, err);
    if (st == GGUF_OK)
        st = gg_part_open(&o, path, force, err);
    if (st == GGUF_OK)
        st = put_all(p, &o, n, err);
    gg_part_fini(&o);
    gguf_meta_destroy(m);
    return st;
}

/* ---- loading ---- */

static enum gguf_status get_pairs(struct gguf_part *p,
                                  const struct gguf_file *f,
                                  const char *prefix, struct gg_part_pairs *l,
                                  struct gguf_error *err)
{
    const size_t size = strlen(prefix);
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        struct gguf_str name = kv->key, value;
        if (!gg_str_starts(name, prefix))
            continue;
        name.data += size;
        name.size -= size;
        GG_TRY(gguf_kv_get_str(kv, &value, err));
        GG_TRY(gg_part_set_pair(p, l, name, value, err));
    }
    return GGUF_OK;
}

/* Read numbers of a tensor. Numbers that are not finite are refused. */
static enum gguf_status get_doubles(double *out, size_t n, size_t chunk,
                                    const struct gguf_file *f,
                                    const struct gguf_tensor_info *t,
                                    uint64_t at, struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = gg_part_get64(f, t, at + i);
        memcpy(&out[i], &bits, sizeof bits);
        if (!isfinite(out[i]))
            return gg_error_set(err, GGUF_E_FORMAT,
                                gg_part_off(f, t, at + i, 8),
                                "a number of chunk %zu is not finite", chunk);
    }
    return GGUF_OK;
}

/* Arrays of a file, and the number of elements that were read. */
struct arrays {
    const struct gguf_file *f;
    const struct gguf_tensor_info *counts, *heads, *scores; /* may be NULL */
    uint64_t n_chunk_values, n_scores, head_at, score_at;
};

static enum gguf_status get_chunk(struct gguf_part *p, size_t i,
                                  struct arrays *a, uint64_t n,
                                  struct gguf_error *err)
{
    size_t size;
    if (n > (a->n_scores - a->score_at) / p->n_row_values ||
        p->n_chunk_values > a->n_chunk_values - a->head_at)
        return gg_error_set(
            err, GGUF_E_MISMATCH, gg_part_off(a->f, a->counts, i, 8),
            "chunk %zu has %" PRIu64 " rows, there are scores of %" PRIu64
            " left",
            i, n, (a->n_scores - a->score_at) / p->n_row_values);
    GG_TRY(gg_part_add_record(p, i, n, &size, err));
    double *to = p->chunk[i].record;
    GG_TRY(get_doubles(to, p->n_chunk_values, i, a->f, a->heads, a->head_at,
                       err));
    GG_TRY(get_doubles(to + p->n_chunk_values, size - p->n_chunk_values, i,
                       a->f, a->scores, a->score_at, err));
    a->head_at += p->n_chunk_values;
    a->score_at += size - p->n_chunk_values;
    return GGUF_OK;
}

static enum gguf_status get_chunks(struct gguf_part *p, struct arrays *a,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < p->n_chunks; i++) {
        const uint64_t n = gg_part_get64(a->f, a->counts, i);
        if (n != UINT64_MAX)
            GG_TRY(get_chunk(p, i, a, n, err));
    }
    const bool scores = a->score_at < a->n_scores;
    if (!scores && a->head_at == a->n_chunk_values)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_MISMATCH, (scores ? a->scores : a->heads)->info_off,
        "%" PRIu64 " scores belong to no chunk",
        scores ? a->n_scores - a->score_at : a->n_chunk_values - a->head_at);
}

/* Find a tensor of doubles; *n receives the number of its elements, 0 without
 * such a tensor. */
static enum gguf_status find_doubles(const struct gguf_file *f,
                                     struct gguf_str name,
                                     const struct gguf_tensor_info **t,
                                     uint64_t *n, struct gguf_error *err)
{
    *t = gguf_file_tensor_find(f, name.data);
    *n = *t ? (*t)->n_elements : 0;
    return !*t || (*t)->dtype == GGUF_DTYPE_F64
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_MISMATCH, (*t)->info_off,
                              "'%s' are not of type F64", name.data);
}

static enum gguf_status load_part(struct gguf_part **out,
                                  const struct gguf_file *f,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    struct arrays all = { .f = f,
                          .counts =
                              gguf_file_tensor_find(f, counts_name.data) };
    uint64_t n_row_values, n_chunk_values;
    GG_TRY(gg_part_read_uint(f, KEY "values", 1, GG_PART_MAX_ROW_VALUES,
                             &n_row_values, err));
    GG_TRY(gg_part_read_uint(f, KEY "heads", 0, GG_PART_MAX_CHUNK_VALUES,
                             &n_chunk_values, err));
    if (!all.counts || all.counts->dtype != GGUF_DTYPE_I64)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "no list of chunks");
    GG_TRY(find_doubles(f, heads_name, &all.heads, &all.n_chunk_values, err));
    GG_TRY(find_doubles(f, scores_name, &all.scores, &all.n_scores, err));
    GG_TRY(gguf_part_create(out, (size_t)all.counts->n_elements,
                            (size_t)n_chunk_values, (size_t)n_row_values, a,
                            err));
    GG_TRY(get_pairs(*out, f, setting_key, &(*out)->settings, err));
    GG_TRY(get_pairs(*out, f, note_key, &(*out)->notes, err));
    return get_chunks(*out, &all, err);
}

enum gguf_status gguf_part_load(struct gguf_part **out, const char *path,
                                const struct gguf_file_params *params,
                                struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *f;
    *out = NULL;
    GG_TRY(gg_file_params_take(&fp, params, err));
    GG_TRY(gg_part_read(&f, &part_kind, path, &fp, err));
    const enum gguf_status st = load_part(out, f, fp.allocator, err);
    gguf_file_close(f);
    if (st != GGUF_OK) {
        gguf_part_destroy(*out);
        *out = NULL;
    }
    return st;
}
