/* SPDX-License-Identifier: MIT */
/* bisect_group.c - groups of weights that are replaced together
 *
 * The weights of a group are adjacent in the list, sorted by suspicion; so are
 * those of its halves. */
#include "config.h"
#include "eval/bisect_int.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* least gain, relative to the divergence, for which a half is split */
#define LEAST 0.05

/* ---- orders ---- */

/* Largest first; NaN before all numbers. */
static int compare_values(double x, const char *x_name, double y,
                          const char *y_name)
{
    if (isnan(x) || isnan(y)) {
        if (isnan(x) != isnan(y))
            return isnan(x) ? -1 : 1;
    } else if (x != y) {
        return x > y ? -1 : 1;
    }
    return strcmp(x_name, y_name);
}

static int by_suspicion(const void *a, const void *b)
{
    const struct gg_bisect_group *x = a, *y = b;
    return compare_values(x->entry.suspicion, x->name, y->entry.suspicion,
                          y->name);
}

static int weights_by_suspicion(const void *a, const void *b)
{
    const struct gg_bisect_weight *x = a, *y = b;
    return compare_values(x->w.suspicion, x->name, y->w.suspicion, y->name);
}

static int weights_by_group(const void *a, const void *b)
{
    const struct gg_bisect_weight *x = a, *y = b;
    const int c = strcmp(x->group, y->group);
    return c ? c : weights_by_suspicion(a, b);
}

/* Gain per byte that the base's weights take more. If they take no more, plus
 * or minus infinity. */
static double gain_per_byte(const struct gguf_bisect_entry *e)
{
    if (e->base_size > e->size)
        return e->gain / (double)(e->base_size - e->size);
    return e->gain > 0 ? (double)INFINITY : -(double)INFINITY;
}

static int by_gain(const void *a, const void *b)
{
    const struct gg_bisect_group *x = a, *y = b;
    if (x->entry.halved != y->entry.halved)
        return x->entry.halved ? 1 : -1;
    if (x->entry.measured != y->entry.measured)
        return x->entry.measured ? -1 : 1;
    if (!x->entry.measured)
        return by_suspicion(a, b);
    const double p = gain_per_byte(&x->entry), q = gain_per_byte(&y->entry);
    if (p != q)
        return p > q ? -1 : 1;
    return compare_values(x->entry.gain, x->name, y->entry.gain, y->name);
}

/* Names are members of groups, which move. */
static void sort_groups(struct gguf_bisect *b,
                        int (*order)(const void *, const void *))
{
    if (b->n_groups)
        qsort(b->group, b->n_groups, sizeof *b->group, order);
    for (size_t i = 0; i < b->n_groups; i++)
        b->group[i].entry.name = b->group[i].name;
}

void gg_bisect_sort(struct gguf_bisect *b)
{
    sort_groups(b, by_gain);
}

/* ---- names ---- */

/* Find the number of the layer in a name: "3" in "blk.3.ffn_down.weight". */
static bool find_layer(const char *name, size_t *begin, size_t *end)
{
    static const char blk[] = "blk.";
    const char *at = name;
    do {
        if (!strncmp(at, blk, sizeof blk - 1)) {
            *begin = (size_t)(at - name) + sizeof blk - 1;
            *end = *begin + strspn(name + *begin, "0123456789");
            return *end > *begin && name[*end] == '.';
        }
        at = strchr(at, '.');
    } while (at && *++at);
    return false;
}

static void put_group(struct gg_bisect_weight *w, enum gguf_bisect_grouping by)
{
    size_t begin, end;
    memcpy(w->group, w->name, sizeof w->group);
    if ((by != GGUF_BISECT_KIND && by != GGUF_BISECT_LAYER) ||
        !find_layer(w->name, &begin, &end))
        return;
    const size_t at = by == GGUF_BISECT_KIND ? begin : end + 1;
    const char *rest = by == GGUF_BISECT_KIND ? w->name + end : "";
    /* '*' replaces one character or more: the name still fits */
    w->group[at] = '*';
    memcpy(w->group + at + 1, rest, strlen(rest) + 1);
}

/* ---- groups ---- */

static void add_group(struct gguf_bisect *b, size_t first, size_t n,
                      const char *name)
{
    struct gg_bisect_group *g = &b->group[b->n_groups++];
    const struct gguf_bisect_weight *w = &b->list[first].w;
    *g = (struct gg_bisect_group){ .first = first };
    gg_str_join(g->name, sizeof g->name, gg_str_z(name), "");
    g->entry.name = g->name;
    g->entry.n_weights = n;
    g->entry.dtype = w->dtype;
    g->entry.base_dtype = w->base_dtype;
    for (size_t i = first; i < first + n; i++) {
        w = &b->list[i].w;
        if (w->dtype != g->entry.dtype)
            g->entry.dtype = GGUF_BISECT_MIXED_DTYPE;
        if (w->base_dtype != g->entry.base_dtype)
            g->entry.base_dtype = GGUF_BISECT_MIXED_DTYPE;
        /* sizes of different tensors: the sum cannot overflow */
        g->entry.size += w->size;
        g->entry.base_size += w->base_size;
        g->entry.suspicion += w->suspicion;
    }
}

/* Split weights first to first + n - 1 where half the suspicion is reached. */
static void halve_group(struct gguf_bisect *b, size_t first, size_t n)
{
    double whole = 0, sum = 0;
    size_t cut = 0;
    for (size_t i = first; i < first + n; i++)
        whole += b->list[i].w.suspicion;
    while (isfinite(whole) && cut < n && sum < whole / 2)
        sum += b->list[first + cut++].w.suspicion;
    if (!isfinite(whole))
        cut = n / 2;
    if (cut == n)
        cut--;
    add_group(b, first, cut, b->list[first].name);
    add_group(b, first + cut, n - cut, b->list[first + cut].name);
}

enum gguf_status gg_bisect_make_groups(struct gguf_bisect *b,
                                       enum gguf_bisect_grouping by,
                                       struct gguf_error *err)
{
    size_t size;
    for (size_t i = 0; i < b->n; i++)
        put_group(&b->list[i], by);
    if (b->n)
        qsort(b->list, b->n, sizeof *b->list,
              by == GGUF_BISECT_KIND || by == GGUF_BISECT_LAYER
                  ? weights_by_group
                  : weights_by_suspicion);
    for (size_t i = 0; i < b->n; i++)
        b->list[i].w.name = b->list[i].name;
    if (gg_ckd_array(&size, 2 * (uint64_t)b->n + 1, sizeof *b->group))
        return gg_error_set_nomem(err, b->n);
    b->group = gg_mem_alloc_zero(b->allocator, 1, size);
    if (!b->group)
        return gg_error_set_nomem(err, size);
    if (by == GGUF_BISECT_HALVES && b->n > 1) {
        halve_group(b, 0, b->n);
        return GGUF_OK;
    }
    for (size_t i = 0, end; i < b->n; i = end) {
        end = i + 1;
        while (end < b->n && !strcmp(b->list[i].group, b->list[end].group))
            end++;
        add_group(b, i, end - i, b->list[i].group);
    }
    sort_groups(b, by_suspicion);
    return GGUF_OK;
}

/* ---- the next group ---- */

/* A tree of n leaves has 2 n - 2 nodes below its root. */
size_t gg_bisect_max_measurements(const struct gguf_bisect *b,
                                  enum gguf_bisect_grouping by)
{
    return by == GGUF_BISECT_HALVES && b->n > 1 ? 2 * b->n - 2 : b->n_groups;
}

static struct gg_bisect_group *find_unmeasured(struct gguf_bisect *b)
{
    for (size_t i = 0; i < b->n_groups; i++)
        if (!b->group[i].entry.measured)
            return &b->group[i];
    return NULL;
}

/* The group to split next: that with the largest gain. */
static struct gg_bisect_group *find_costliest(struct gguf_bisect *b)
{
    struct gg_bisect_group *most = NULL;
    for (size_t i = 0; i < b->n_groups; i++) {
        struct gg_bisect_group *g = &b->group[i];
        if (g->entry.n_weights > 1 && !g->entry.halved && g->entry.gain > 0 &&
            g->entry.gain >= LEAST * b->kld.value &&
            (!most || g->entry.gain > most->entry.gain))
            most = g;
    }
    return most;
}

struct gg_bisect_group *gg_bisect_next_group(struct gguf_bisect *b,
                                             enum gguf_bisect_grouping by)
{
    struct gg_bisect_group *g = find_unmeasured(b);
    if (g || by != GGUF_BISECT_HALVES)
        return g;
    g = find_costliest(b);
    if (!g)
        return NULL;
    halve_group(b, g->first, g->entry.n_weights);
    g->entry.halved = true;
    return find_unmeasured(b);
}
