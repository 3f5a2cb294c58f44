/* SPDX-License-Identifier: MIT */
/* back_shape.c - shapes of a folder's tensors, by the inverse of rows
 *
 * The row of a tensor determines the folder's dimensions from the file's: in
 * the same order, exchanged, with dimensions of 1 restored, or by its text on
 * axes. One dimension may be divided among several tensors of the file, or be
 * part of one; it follows from the number of elements of all. Finally the rows
 * are applied to the result: they must give the shapes of the file.
 */
#include "config.h"
#include "convert/back/back_shape.h"
#include "convert/describe/axes.h"

#include "base/compiler.h"

#include <limits.h>
#include <string.h>

/* Elements of one expert, or of all. */
static uint64_t n_elements(const struct gg_back *b,
                           const struct gg_back_use *u)
{
    const struct gguf_tensor_info *t =
        gg_source_tensor(&b->source, u->tensor).info;
    return t->n_elements /
           (uint64_t)(u->expert >= 0 ? t->ne[t->n_dims - 1] : 1);
}

/* Views of one tensor of the folder. */
struct views {
    const struct gg_back *b;
    struct gg_safetensors_tensor from;
    struct gg_composed_part seen[16];
    size_t n_seen;
    uint64_t used; /* number of elements in views, each counted once */
};

/* Add a view; *along grows by its slowest dimension. false: the other
 * dimensions differ from the file's. */
static bool add_view(struct views *w, const struct gg_back_use *u,
                     int64_t *along)
{
    const struct gguf_tensor_info *t =
        gg_source_tensor(&w->b->source, u->tensor).info;
    const unsigned n_dims = t->n_dims - (u->expert >= 0);
    const struct gg_convert_item item = {
        .row = u->row, .list = u->list, .expert = u->expert, .layer = u->layer
    };
    struct gg_convert_view v = { .c = w->b->c,
                                 .item = &item,
                                 .from = &w->from };
    uint64_t count = 1;
    if (gg_convert_make_view(&v, NULL) != GGUF_OK || v.n_dims != n_dims)
        return false;
    for (unsigned d = 0; d + 1 < n_dims; d++)
        if (v.ne[d] != t->ne[d])
            return false;
    *along += v.ne[n_dims - 1];
    for (size_t i = 0; i < w->n_seen; i++)
        if (gg_back_is_same_part(&w->seen[i], &v.part))
            return true; /* the row repeats the elements in the file */
    if (w->n_seen < GG_LEN(w->seen))
        w->seen[w->n_seen++] = v.part;
    for (unsigned d = 0; d < v.part.n_dims; d++)
        count *= v.part.ne[d];
    if (v.rest.n_dims)
        count += v.rest.ne[0];
    w->used += count * (v.times ? v.times : 1);
    return true;
}

/* Do the uses cover a whole tensor of this shape, and give the file's
 * tensors? */
static bool takes_shape(const struct gg_back *b, const struct gg_back_use *u,
                        size_t n, const struct gg_convert_dims *s)
{
    struct views w = { .b = b,
                       .from = {
                           .name = { u->name, strlen(u->name) },
                           .n_dims = s->n,
                           .n_elements = 1,
                           .ne = { 1, 1, 1, 1, 1, 1, 1, 1 },
                       } };
    for (unsigned d = 0; d < s->n; d++) {
        w.from.ne[d] = s->ne[d];
        w.from.n_elements *= (uint64_t)s->ne[d];
    }
    for (size_t i = 0, end; i < n; i = end) {
        const struct gguf_tensor_info *t =
            gg_source_tensor(&b->source, u[i].tensor).info;
        const unsigned n_dims = t->n_dims - (u[i].expert >= 0);
        int64_t along = 0;
        for (end = i; end < n && u[end].tensor == u[i].tensor &&
                      u[end].expert == u[i].expert;
             end++)
            if (!add_view(&w, &u[end], &along))
                return false;
        if (u[i].n_others ? along >= t->ne[n_dims - 1]
                          : along != t->ne[n_dims - 1])
            return false;
    }
    return w.used == w.from.n_elements;
}

/* Number of rows of the folder's tensor if the file adds rows of zeros. */
static int64_t n_filled(const struct gg_back *b, const struct gg_back_use *u,
                        int64_t rows)
{
    int64_t n;
    return u->row->n_rows && gg_convert_get_count(b->c, u->row->n_rows, &n) &&
                   n < rows
               ? n
               : rows;
}

/* ---- inverting rows ---- */

/* Dimensions of one tensor of the file, without that of experts. */
static struct gg_convert_dims dims_of(const struct gg_back *b,
                                      const struct gg_back_use *u)
{
    const struct gguf_tensor_info *t =
        gg_source_tensor(&b->source, u->tensor).info;
    struct gg_convert_dims d = { t->n_dims - (u->expert >= 0),
                                 { 1, 1, 1, 1, 1 } };
    for (unsigned i = 0; i < d.n && i < 4; i++)
        d.ne[i] = t->ne[i];
    return d;
}

/* Set dimension d so that the shape has this number of elements. */
static bool set_open(struct gg_convert_dims *s, unsigned d, int64_t all)
{
    int64_t others = 1;
    for (unsigned i = 0; i < s->n; i++)
        others *= i == d ? 1 : s->ne[i];
    s->ne[d] = others > 0 ? all / others : 0;
    return s->ne[d] > 0 && s->ne[d] * others == all;
}

static bool invert_how(const struct gg_back *b, const struct gg_back_use *u,
                       const struct gg_convert_dims *f, int64_t all,
                       struct gg_convert_dims *s)
{
    const struct gg_convert_transform *how = u->row->transform;
    unsigned open = f->n - 1;
    *s = *f;
    if (u->row->n_rows && f->n == 2) {
        s->ne[1] = n_filled(b, u, f->ne[1]);
        return true;
    }
    if (!f->n)
        return false;
    if (how && how->shape)
        how->shape(s, &open);
    return open == UINT_MAX || set_open(s, open, all);
}

/* ---- texts on axes ---- */

/* dimension of the file that each factor of the output belongs to; 0: the
 * slowest */
struct axes {
    struct gg_axes a;
    unsigned group[2 * GG_AXES_FACTORS];
    unsigned n_groups;
    /* '*' is in the output and stands for a dimension */
    bool rest_out, has_rest;
};

static bool read_axes(const char *text, unsigned n_dims, struct axes *x)
{
    bool alone = false;
    unsigned n = 1;
    *x = (struct axes){ .n_groups = 0 };
    if (!gg_axes_read(&x->a, text))
        return false;
    for (size_t i = 0; i < x->a.n_out; i++) {
        alone = alone || !strcmp(x->a.out[i].name, "*");
        n += x->a.out[i].ends && i + 1 < x->a.n_out;
    }
    x->rest_out = alone;
    x->has_rest = !alone || n == n_dims;
    for (size_t i = 0; i < x->a.n_out; i++) {
        const bool absent = !x->has_rest && !strcmp(x->a.out[i].name, "*");
        x->group[i] = absent ? UINT32_MAX : x->n_groups;
        x->n_groups += x->a.out[i].ends && !absent;
    }
    return x->n_groups == n_dims;
}

/* Product of the factors of the axis, if a dimension of the file consists of
 * them alone. 0: it has others, too, or is the slowest dimension, which may be
 * a part. */
static int64_t size_by_group(const struct axes *x,
                             const struct gg_convert_dims *f,
                             const struct gg_axes_axis *axis, unsigned group)
{
    for (size_t i = 0; i < x->a.n_out; i++) {
        bool own = false;
        for (size_t k = 0; k < axis->n; k++)
            own = own || (!strcmp(axis->factor[k].name, x->a.out[i].name) &&
                          !*axis->factor[k].part.first);
        if (x->group[i] == group && !own)
            return 0;
    }
    return group ? f->ne[f->n - 1 - group] : 0;
}

/* Dimension of factor k of an axis. Factors of one name come in order. */
static unsigned group_of(const struct axes *x, const struct gg_axes_axis *axis,
                         size_t k)
{
    const char *name = axis->factor[k].name;
    size_t before = 0;
    for (size_t i = 0; i < k; i++)
        before += !strcmp(axis->factor[i].name, name);
    for (size_t i = 0; i < x->a.n_out; i++)
        if (!strcmp(x->a.out[i].name, name) && !before--)
            return x->group[i];
    return UINT32_MAX;
}

/* Size of an axis of the folder's tensor; 0: it is not known. */
static int64_t size_of_axis(const struct gg_back *b,
                            const struct gg_back_use *u, const struct axes *x,
                            const struct gg_convert_dims *f,
                            const struct gg_axes_axis *axis)
{
    int64_t size = 1;
    bool done[2 * GG_AXES_FACTORS] = { false };
    if (*axis->part.first)
        return 0;
    for (size_t k = 0; k < axis->n; k++) {
        const struct gg_axes_factor *t = &axis->factor[k];
        const unsigned group = group_of(x, axis, k);
        const bool whole = group < x->n_groups && !*t->part.first;
        const int64_t all = whole ? size_by_group(x, f, axis, group) : 0;
        if (all) {
            size *= done[group] ? 1 : all;
            done[group] = true;
            continue;
        }
        const double n = gg_axes_size(b->c, t->name, u->layer);
        if (!(n >= 1) || n > 1e15)
            return 0;
        size *= (int64_t)n;
    }
    return size;
}

/* Set the unknown sizes: the fastest follows from the number of elements, the
 * others are 1. */
static bool invert_axes(const struct gg_back *b, const struct gg_back_use *u,
                        const struct gg_convert_dims *f, int64_t all,
                        struct gg_convert_dims *s)
{
    struct axes x;
    unsigned open = UINT32_MAX;
    int64_t known = 1;
    *s = (struct gg_convert_dims){ 0, { 1, 1, 1, 1, 1 } };
    if (!read_axes(u->row->axes, f->n, &x))
        return false;
    for (size_t i = x.a.n; i--;) { /* the fastest first */
        const struct gg_axes_axis *axis = &x.a.axis[i];
        if (axis->rest && !x.has_rest)
            continue;
        if (s->n == GG_LEN(s->ne))
            return false;
        const int64_t n = size_of_axis(b, u, &x, f, axis);
        if (!n && open == UINT32_MAX)
            open = s->n;
        s->ne[s->n++] = n ? n : 1;
        known *= n ? n : 1;
    }
    return open == UINT32_MAX ? known == all : set_open(s, open, all);
}

static bool try_elements(const struct gg_back *b, const struct gg_back_use *u,
                         size_t n, uint64_t all, struct gg_convert_dims *s)
{
    const struct gg_convert_dims f = dims_of(b, u);
    return f.n <= 4 && all <= INT64_MAX &&
           (u->row->axes ? invert_axes(b, u, &f, (int64_t)all, s)
                         : invert_how(b, u, &f, (int64_t)all, s)) &&
           takes_shape(b, u, n, s);
}

bool gg_back_find_shape(const struct gg_back *b, const struct gg_back_use *u,
                        size_t n, struct gg_convert_dims *out)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        if (!i || u[i].tensor != u[i - 1].tensor ||
            u[i].expert != u[i - 1].expert)
            all += n_elements(b, &u[i]) / (1 + u[i].n_others);
    /* try again, with elements that the file repeats */
    return try_elements(b, u, n, all, out) ||
           (n > 1 &&
            try_elements(b, u, n, n_elements(b, u) / (1 + u->n_others), out));
}
