/* SPDX-License-Identifier: MIT */
/* part.c - parts of an evaluation: settings, chunks, merging */
#include "config.h"
#include "eval/part_int.h"

#include "base/str.h"
#include "eval/origin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the object ---- */

static struct gguf_str name_of(const void *user, uint32_t id)
{
    return gg_str_z(((const struct gg_part_pairs *)user)->list[id].name);
}

enum gguf_status gguf_part_create(struct gguf_part **out, size_t n_chunks,
                                  size_t n_chunk_values, size_t n_row_values,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = NULL;
    if (!n_row_values || n_row_values > GG_PART_MAX_ROW_VALUES ||
        n_chunk_values > GG_PART_MAX_CHUNK_VALUES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%zu numbers for each row, %zu for each chunk: "
                            "must be 1 to %d, and at most %d",
                            n_row_values, n_chunk_values,
                            (int)GG_PART_MAX_ROW_VALUES,
                            (int)GG_PART_MAX_CHUNK_VALUES);
    struct gguf_part *p = gg_mem_alloc_zero(allocator, 1, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    p->allocator = allocator;
    p->n_chunks = n_chunks;
    p->n_chunk_values = n_chunk_values;
    p->n_row_values = n_row_values;
    gg_mem_arena_init(&p->arena, allocator);
    p->chunk =
        gg_mem_alloc_zero(allocator, GG_MAX(n_chunks, 1), sizeof *p->chunk);
    enum gguf_status st =
        p->chunk ? GGUF_OK : gg_error_set_nomem(err, n_chunks);
    if (st == GGUF_OK)
        st = gg_index_init(&p->settings.index, allocator, 0, name_of,
                           &p->settings, err);
    if (st == GGUF_OK)
        st = gg_index_init(&p->notes.index, allocator, 0, name_of, &p->notes,
                           err);
    if (st == GGUF_OK)
        *out = p;
    else
        gguf_part_destroy(p);
    return st;
}

void gguf_part_destroy(struct gguf_part *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->chunk && i < p->n_chunks; i++)
        gg_mem_free(p->allocator, p->chunk[i].record);
    gg_mem_free(p->allocator, p->chunk);
    gg_mem_free(p->allocator, p->settings.list);
    gg_mem_free(p->allocator, p->notes.list);
    gg_index_fini(&p->settings.index);
    gg_index_fini(&p->notes.index);
    gg_mem_arena_fini(&p->arena);
    gg_mem_free(p->allocator, p);
}

/* ---- settings and notes ---- */

static struct gg_part_pair *find_pair(const struct gg_part_pairs *l,
                                      struct gguf_str name)
{
    const uint32_t i = gg_index_find(&l->index, name);
    return i == GG_INDEX_NONE ? NULL : &l->list[i];
}

static bool is_name(struct gguf_str s)
{
    bool good = s.size && s.size <= GG_PART_MAX_NAME;
    for (size_t i = 0; good && i < s.size; i++) {
        const char c = s.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.';
    }
    return good;
}

enum gguf_status gg_part_set_pair(struct gguf_part *p, struct gg_part_pairs *l,
                                  struct gguf_str name, struct gguf_str value,
                                  struct gguf_error *err)
{
    struct gg_str_esc esc;
    if (!is_name(name) || memchr(value.data, 0, value.size))
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "'%s' is not the name of a setting (1 to 40 of a-z 0-9 _ .), or "
            "its value has a NUL",
            gg_str_esc(&esc, name));
    const char *v = gg_mem_arena_strndup(&p->arena, value.data, value.size);
    struct gg_part_pair *old = find_pair(l, name);
    if (old && v)
        old->value = v;
    if (old && v)
        return GGUF_OK;
    const char *n = gg_mem_arena_strndup(&p->arena, name.data, name.size);
    if (!n || !v)
        return gg_error_set_nomem(err, name.size + value.size);
    if (l->n == l->room) {
        struct gg_part_pair *more = gg_mem_grow(
            p->allocator, l->list, &l->room, sizeof *more, l->n + 1, err);
        if (!more)
            return GGUF_E_NOMEM;
        l->list = more;
    }
    uint32_t other;
    l->list[l->n] = (struct gg_part_pair){ n, v };
    GG_TRY(gg_index_add(&l->index, (uint32_t)l->n, &other, err));
    l->n++;
    return GGUF_OK;
}

enum gguf_status gguf_part_set_setting(struct gguf_part *p, const char *name,
                                       const char *value,
                                       struct gguf_error *err)
{
    return gg_part_set_pair(p, &p->settings, gg_str_z(name), gg_str_z(value),
                            err);
}

enum gguf_status gguf_part_set_note(struct gguf_part *p, const char *name,
                                    const char *value, struct gguf_error *err)
{
    return gg_part_set_pair(p, &p->notes, gg_str_z(name), gg_str_z(value),
                            err);
}

const char *gguf_part_setting(const struct gguf_part *p, size_t i,
                              const char **value)
{
    if (i >= p->settings.n)
        return NULL;
    *value = p->settings.list[i].value;
    return p->settings.list[i].name;
}

const char *gguf_part_note(const struct gguf_part *p, const char *name)
{
    const struct gg_part_pair *x = find_pair(&p->notes, gg_str_z(name));
    return x ? x->value : NULL;
}

enum gguf_status gguf_part_set_model(struct gguf_part *p, unsigned i,
                                     const struct gguf_session *session,
                                     const gguf_token *token, size_t n,
                                     struct gguf_error *err)
{
    struct gg_origin of;
    char name[GG_PART_MAX_NAME], value[24];
    GG_TRY(gg_origin_compute(&of, session, token, n, err));
    snprintf(name, sizeof name, "model.%u", i);
    GG_TRY(gguf_part_set_setting(p, name, of.model, err));
    snprintf(name, sizeof name, "cache.%u", i);
    GG_TRY(gguf_part_set_setting(p, name, of.cache, err));
    snprintf(value, sizeof value, "%zu", n);
    GG_TRY(gguf_part_set_setting(p, "tokens", value, err));
    return gguf_part_set_setting(p, "text", of.text, err);
}

/* ---- chunks ---- */

/* Count the numbers of a chunk of n rows. Returns false if they are too many.
 */
static bool record_size(const struct gguf_part *p, uint64_t n, size_t *out)
{
    uint64_t all, size;
    if (gg_ckd_mul(&all, n, (uint64_t)p->n_row_values) ||
        gg_ckd_add(&all, all, (uint64_t)p->n_chunk_values) ||
        gg_ckd_mul(&size, all, (uint64_t)sizeof(double)) || size > SIZE_MAX)
        return false;
    *out = (size_t)all;
    return true;
}

enum gguf_status gg_part_add_record(struct gguf_part *p, size_t chunk,
                                    uint64_t n, size_t *size,
                                    struct gguf_error *err)
{
    struct gg_part_chunk *c = &p->chunk[chunk];
    if (!record_size(p, n, size))
        return gg_error_set_nomem(err, SIZE_MAX);
    c->record =
        gg_mem_alloc_zero(p->allocator, GG_MAX(*size, 1), sizeof *c->record);
    if (!c->record)
        return gg_error_set_nomem(err, *size * sizeof *c->record);
    c->n = (size_t)n;
    p->n_done++;
    return GGUF_OK;
}

static enum gguf_status check_finite(const double *v, size_t n, size_t chunk,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "chunk %zu: number %zu is not finite", chunk,
                                i);
    return GGUF_OK;
}

enum gguf_status gguf_part_add_chunk(struct gguf_part *p, size_t chunk,
                                     const double *heads, const double *values,
                                     size_t n_rows, struct gguf_error *err)
{
    size_t n;
    if (chunk >= p->n_chunks)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunk %zu: the text has %zu", chunk, p->n_chunks);
    struct gg_part_chunk *c = &p->chunk[chunk];
    if (c->record)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunk %zu is done already", chunk);
    if (!record_size(p, n_rows, &n))
        return gg_error_set_nomem(err, SIZE_MAX);
    GG_TRY(check_finite(heads, p->n_chunk_values, chunk, err));
    GG_TRY(check_finite(values, n - p->n_chunk_values, chunk, err));
    GG_TRY(gg_part_add_record(p, chunk, n_rows, &n, err));
    if (p->n_chunk_values)
        memcpy(c->record, heads, p->n_chunk_values * sizeof *heads);
    if (n_rows)
        memcpy(c->record + p->n_chunk_values, values,
               (n - p->n_chunk_values) * sizeof *values);
    return GGUF_OK;
}

size_t gguf_part_n_chunks(const struct gguf_part *p)
{
    return p->n_chunks;
}

size_t gguf_part_n_chunk_values(const struct gguf_part *p)
{
    return p->n_chunk_values;
}

size_t gguf_part_n_row_values(const struct gguf_part *p)
{
    return p->n_row_values;
}

size_t gguf_part_n_done(const struct gguf_part *p)
{
    return p->n_done;
}

const double *gguf_part_chunk_values(const struct gguf_part *p, size_t chunk)
{
    return chunk < p->n_chunks ? p->chunk[chunk].record : NULL;
}

const double *gguf_part_row_values(const struct gguf_part *p, size_t chunk,
                                   size_t *n_rows)
{
    if (chunk >= p->n_chunks || !p->chunk[chunk].record)
        return NULL;
    *n_rows = p->chunk[chunk].n;
    return p->chunk[chunk].record + p->n_chunk_values;
}

/* ---- merging ---- */

/* characters of a long value in a message, and those before the difference */
enum { SHOWN = 60, BEFORE = 12 };

/* Report a setting that differs between a and b; long values from the place
 * where they differ. */
static enum gguf_status report_setting(const struct gg_part_pair *a,
                                       const struct gg_part_pair *b,
                                       struct gguf_error *err)
{
    const char *x = a ? a->value : "", *y = b ? b->value : "";
    size_t same = 0;
    while (x[same] && x[same] == y[same])
        same++;
    const bool cut = same > SHOWN / 2;
    const size_t from = cut ? same - BEFORE : 0;
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "is a part of another run: '%s' is '%s%.*s', not "
                        "'%s%.*s'",
                        a ? a->name : b->name, cut ? "..." : "", (int)SHOWN,
                        y + from, cut ? "..." : "", (int)SHOWN, x + from);
}

static enum gguf_status report_number(const char *what, size_t a, size_t b,
                                      struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "is a part of another run: %zu %s, not %zu", b, what,
                        a);
}

enum gguf_status gguf_part_check_settings(const struct gguf_part *a,
                                          const struct gguf_part *b,
                                          struct gguf_error *err)
{
    for (size_t i = 0; i < a->settings.n; i++) {
        const struct gg_part_pair *x = &a->settings.list[i];
        const struct gg_part_pair *y =
            find_pair(&b->settings, gg_str_z(x->name));
        if (!y || strcmp(x->value, y->value) != 0)
            return report_setting(x, y, err);
    }
    for (size_t i = 0; i < b->settings.n; i++)
        if (!find_pair(&a->settings, gg_str_z(b->settings.list[i].name)))
            return report_setting(NULL, &b->settings.list[i], err);
    if (a->n_row_values != b->n_row_values)
        return report_number("numbers for each row", a->n_row_values,
                             b->n_row_values, err);
    if (a->n_chunk_values != b->n_chunk_values)
        return report_number("numbers for each chunk", a->n_chunk_values,
                             b->n_chunk_values, err);
    return a->n_chunks == b->n_chunks
               ? GGUF_OK
               : report_number("chunks", a->n_chunks, b->n_chunks, err);
}

enum gguf_status gguf_part_merge(struct gguf_part *p,
                                 const struct gguf_part *other,
                                 struct gguf_error *err)
{
    GG_TRY(gguf_part_check_settings(p, other, err));
    for (size_t i = 0; i < p->n_chunks; i++)
        if (p->chunk[i].record && other->chunk[i].record)
            return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                                "chunk %zu is in both parts", i);
    for (size_t i = 0; i < p->n_chunks; i++) {
        const struct gg_part_chunk *c = &other->chunk[i];
        if (!c->record)
            continue;
        const enum gguf_status st = gguf_part_add_chunk(
            p, i, c->record, c->record + p->n_chunk_values, c->n, err);
        for (size_t k = 0; st != GGUF_OK && k < i; k++) {
            if (!other->chunk[k].record)
                continue;
            gg_mem_free(p->allocator, p->chunk[k].record);
            p->chunk[k] = (struct gg_part_chunk){ .record = NULL };
            p->n_done--;
        }
        GG_TRY(st);
    }
    return GGUF_OK;
}
