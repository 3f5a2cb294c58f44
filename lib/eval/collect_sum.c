/* SPDX-License-Identifier: MIT */
/* collect_sum.c - entries of importance data and their sums */
#include "config.h"
#include "eval/collect_int.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

enum { DIGIT = 32 }; /* bits */

/* ---- entries ---- */

struct gg_collect_entry *gg_collect_find(const struct gguf_collect *c,
                                         struct gguf_str name)
{
    const uint32_t i = gg_index_find(&c->index, name);
    return i == GG_INDEX_NONE ? NULL : c->entries[i];
}

static void *alloc_array(struct gguf_collect *c, uint64_t n, size_t size)
{
    size_t bytes;
    if (gg_ckd_array(&bytes, n, size))
        return NULL;
    void *p = gg_mem_arena_alloc(&c->arena, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

enum gguf_status gg_collect_add_entry(struct gguf_collect *c,
                                      struct gguf_str name, uint64_t n_cols,
                                      uint64_t n_mats,
                                      struct gg_collect_entry **out,
                                      struct gguf_error *err)
{
    uint64_t n;
    uint32_t other;
    *out = NULL;
    if (!n_cols || !n_mats || gg_ckd_mul(&n, n_cols, n_mats))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "%" PRIu64 " columns of %" PRIu64 " matrices",
                            n_cols, n_mats);
    if (c->n_entries == c->cap_entries) {
        void *grown = gg_mem_grow(c->allocator, c->entries, &c->cap_entries,
                                  sizeof *c->entries, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        c->entries = grown;
    }
    struct gg_collect_entry *e = alloc_array(c, 1, sizeof *e);
    if (!e)
        return gg_error_set_nomem(err, sizeof *e);
    *e = (struct gg_collect_entry){
        .name = gg_mem_arena_strndup(&c->arena, name.data, name.size),
        .n_cols = n_cols,
        .n_mats = n_mats,
        .chunk = alloc_array(c, n, sizeof *e->chunk),
        .chunk_count = alloc_array(c, n_mats, sizeof *e->chunk_count),
        .total = { alloc_array(c, n, sizeof *e->total.high),
                   alloc_array(c, n, sizeof *e->total.low),
                   alloc_array(c, n, 1) },
        .count = alloc_array(c, n_mats, sizeof *e->count),
    };
    if (!e->name || !e->chunk || !e->chunk_count || !e->total.high ||
        !e->total.low || !e->total.place || !e->count)
        return gg_error_set_nomem(err, (size_t)n);
    memset(e->total.place, GG_COLLECT_NO_PLACE, (size_t)n);
    c->entries[c->n_entries] = e;
    GG_TRY(gg_index_add(&c->index, (uint32_t)c->n_entries, &other, err));
    if (other != GG_INDEX_NONE)
        return gg_error_set(err, GGUF_E_DUPLICATE, GGUF_NO_OFFSET,
                            "'%s' is there twice", e->name);
    c->n_entries++;
    *out = e;
    return GGUF_OK;
}

/* Does name contain one of the texts that begin with a sign? *any: some text
 * has that sign. */
static bool in_filter(const char *filter, char sign, const char *name,
                      bool *any)
{
    *any = false;
    for (const char *p = filter, *end; *p; p = end + 1) {
        end = strchr(p, '\n');
        if (*p != sign)
            continue;
        const size_t n = (size_t)(end - p - 1);
        *any = true;
        for (const char *at = name; strlen(at) >= n; at++)
            if (!memcmp(at, p + 1, n))
                return true;
    }
    return false;
}

bool gg_collect_is_wanted(const struct gguf_collect *c, const char *name)
{
    bool any;
    if (in_filter(c->filter, '-', name, &any))
        return false;
    return in_filter(c->filter, '+', name, &any) || !any;
}

enum gguf_status gg_collect_add_dataset(struct gguf_collect *c,
                                        struct gguf_str name,
                                        struct gguf_error *err)
{
    for (size_t i = 0; i < c->n_datasets; i++)
        if (gg_str_eqz(name, c->datasets[i]))
            return GGUF_OK;
    if (c->n_datasets == c->cap_datasets) {
        void *grown = gg_mem_grow(c->allocator, c->datasets, &c->cap_datasets,
                                  sizeof *c->datasets, 4, err);
        if (!grown)
            return GGUF_E_NOMEM;
        c->datasets = grown;
    }
    const char *copy = gg_mem_arena_strndup(&c->arena, name.data, name.size);
    if (!copy)
        return gg_error_set_nomem(err, name.size + 1);
    c->datasets[c->n_datasets++] = copy;
    return GGUF_OK;
}

/* ---- totals ---- */

void gg_collect_add_digits(struct gg_collect_total *t, uint64_t i,
                           uint64_t high, uint64_t low, int place)
{
    if (place == GG_COLLECT_NO_PLACE)
        return;
    if (place > t->place[i]) {
        t->low[i] = place == t->place[i] + 1 ? t->high[i] : 0;
        t->high[i] = 0;
        t->place[i] = (int8_t)place;
    }
    if (place == t->place[i]) {
        t->high[i] += high;
        t->low[i] += low;
    } else if (place == t->place[i] - 1) {
        t->low[i] += high;
    }
}

void gg_collect_add_number(struct gg_collect_total *t, uint64_t i, double v)
{
    int exp;
    if (!(v > 0))
        return;
    (void)frexp(v, &exp); /* v < 2^exp */
    /* rounded down; 1100 is more than the exponent of any double */
    const int place = (exp - 1 + 1100 * DIGIT) / DIGIT - 1100;
    v = ldexp(v, -DIGIT * place);
    const double high = floor(v);
    gg_collect_add_digits(t, i, (uint64_t)high,
                          (uint64_t)ldexp(v - high, DIGIT), place);
}

double gg_collect_total_value(const struct gg_collect_total *t, uint64_t i)
{
    const int place = t->place[i];
    if (place == GG_COLLECT_NO_PLACE)
        return 0;
    return ldexp((double)t->high[i], DIGIT * place) +
           ldexp((double)t->low[i], DIGIT * (place - 1));
}

/* ---- a chunk ---- */

void gg_collect_begin_pass(struct gguf_collect *c)
{
    for (size_t k = 0; k < c->n_entries; k++)
        c->entries[k]->n_used = 0;
}

double *gg_collect_next_sums(struct gguf_collect *c,
                             struct gg_collect_entry *e,
                             struct gguf_error *err)
{
    const uint64_t n = e->n_cols * e->n_mats;
    const size_t i = e->n_used++;
    e->met = true;
    if (!i)
        return e->chunk;
    if (i <= e->n_again)
        return e->again[i - 1];
    if (e->n_again == e->cap_again) {
        void *grown = gg_mem_grow(c->allocator, e->again, &e->cap_again,
                                  sizeof *e->again, 2, err);
        if (!grown)
            return NULL;
        e->again = grown;
    }
    double *sums = alloc_array(c, n, sizeof *sums);
    if (sums)
        e->again[e->n_again++] = sums;
    else
        (void)gg_error_set_nomem(err, (size_t)n * sizeof *sums);
    return sums;
}

static void clear_entry(struct gg_collect_entry *e)
{
    const size_t n = (size_t)(e->n_cols * e->n_mats);
    memset(e->chunk, 0, n * sizeof *e->chunk);
    for (size_t i = 0; i < e->n_again; i++)
        memset(e->again[i], 0, n * sizeof *e->chunk);
    memset(e->chunk_count, 0, (size_t)e->n_mats * sizeof *e->chunk_count);
    e->met = false;
}

void gg_collect_begin_chunk(struct gguf_collect *c)
{
    for (size_t k = 0; k < c->n_entries; k++)
        if (c->entries[k]->met)
            clear_entry(c->entries[k]);
}

static void add_uses(struct gg_collect_entry *e)
{
    for (size_t u = 0; u < e->n_again; u++)
        for (uint64_t i = 0; i < e->n_cols * e->n_mats; i++)
            e->chunk[i] += e->again[u][i];
}

static bool is_finite(const struct gg_collect_entry *e)
{
    for (uint64_t i = 0; i < e->n_cols * e->n_mats; i++)
        if (!isfinite(e->chunk[i]))
            return false;
    return true;
}

static void put_entry(struct gg_collect_entry *e)
{
    for (uint64_t i = 0; i < e->n_cols * e->n_mats; i++)
        gg_collect_add_number(&e->total, i, e->chunk[i]);
    for (uint64_t m = 0; m < e->n_mats; m++)
        e->count[m] += e->chunk_count[m];
}

const char *gg_collect_add_chunk(struct gguf_collect *c, bool drop)
{
    const char *bad = NULL;
    for (size_t k = 0; k < c->n_entries && !drop && !bad; k++) {
        struct gg_collect_entry *e = c->entries[k];
        if (!e->met)
            continue;
        add_uses(e);
        if (!is_finite(e))
            bad = e->name;
    }
    for (size_t k = 0; k < c->n_entries; k++) {
        struct gg_collect_entry *e = c->entries[k];
        if (!e->met)
            continue;
        if (!drop && !bad)
            put_entry(e);
        clear_entry(e);
        e->n_ends++;
    }
    return bad;
}
