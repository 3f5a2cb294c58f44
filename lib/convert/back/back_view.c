/* SPDX-License-Identifier: MIT */
/* back_view.c - parts inverted
 *
 * A part of the file's tensor is a view of the folder's: element k of it, whose
 * indices in the view's dimensions are the digits of k, lies at the sum of
 * indices times steps. So the folder's tensor, in its own order, consists of
 * views of the file's: dimensions sorted by their steps, as long as these leave
 * no gap, and one piece for each index in the other dimensions.
 */
#include "config.h"
#include "convert/back/back_shape.h"

#include "base/compiler.h"
#include "base/sort.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PIECES ((size_t)1 << 22)

struct piece {
    uint64_t begin; /* first element in the folder's tensor */
    struct gg_composed_part part;
};

struct pieces {
    struct piece *piece;
    size_t n, room;
};

static enum gguf_status add_piece(const struct gg_back *b, struct pieces *p,
                                  const struct piece *x,
                                  struct gguf_error *err)
{
    if (p->n >= MOST_PIECES)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a tensor has more than %zu pieces", MOST_PIECES);
    if (p->n == p->room) {
        void *grown = gg_mem_grow(b->p.allocator, p->piece, &p->room,
                                  sizeof *p->piece, 16, err);
        if (!grown)
            return GGUF_E_NOMEM;
        p->piece = grown;
    }
    p->piece[p->n++] = *x;
    return GGUF_OK;
}

struct dim {
    uint64_t ne, step, out; /* out: the step in the file's tensor */
};

/* Sort dimensions by their steps in the folder's tensor. Returns the number of
 * first dimensions without gaps. */
static unsigned sort_dims(const struct gg_composed_part *p,
                          struct dim d[GG_COMPOSED_DIMS])
{
    uint64_t out = 1, run = 1;
    unsigned inner = 0;
    for (unsigned i = 0; i < p->n_dims; i++) {
        unsigned k = i;
        const struct dim x = { p->ne[i], p->step[i], out };
        out *= p->ne[i];
        for (; k && d[k - 1].step > x.step; k--)
            d[k] = d[k - 1];
        d[k] = x;
    }
    while (inner < p->n_dims && d[inner].step == run)
        run *= d[inner++].ne;
    return inner;
}

/* Factor that restores the folder's numbers. It is exact for powers of two
 * only; 0: the factor is not. */
static float inverse_factor(const struct gg_composed_part *p)
{
    float factor = 1;
    int e;
    for (size_t i = 0; i < 2 && p->scale[i] != 0; i++) {
        if (fabsf(frexpf(p->scale[i], &e)) != 0.5f)
            return 0;
        factor /= p->scale[i];
    }
    return p->after != 0 ? 0 : factor;
}

/* Add the pieces of one part. base: the file's tensor, in which the part begins
 * at element off. */
static enum gguf_status invert_part(const struct gg_back *b, struct pieces *to,
                                    const struct gg_composed_part *p,
                                    size_t base, uint64_t off,
                                    struct gguf_error *err)
{
    struct dim d[GG_COMPOSED_DIMS];
    uint64_t at[GG_COMPOSED_DIMS] = { 0 };
    const unsigned inner = sort_dims(p, d);
    struct piece x = { p->first, { .from = base, .first = off } };
    const float factor = inverse_factor(p);
    x.part.after = factor == 1 ? 0 : factor;
    x.part.run =
        p->run; /* a run covers a whole tensor: see collect_pieces() */
    x.part.n_dims = inner ? inner : 1;
    x.part.ne[0] = x.part.step[0] = 1;
    for (unsigned i = 0; i < inner; i++) {
        x.part.ne[i] = d[i].ne;
        x.part.step[i] = d[i].out;
    }
    for (;;) {
        unsigned i = inner;
        GG_TRY(add_piece(b, to, &x, err));
        for (; i < p->n_dims; i++) {
            x.begin += d[i].step;
            x.part.first += d[i].out;
            if (++at[i] < d[i].ne)
                break;
            x.begin -= d[i].ne * d[i].step;
            x.part.first -= d[i].ne * d[i].out;
            at[i] = 0;
        }
        if (i == p->n_dims)
            return GGUF_OK;
    }
}

/* Does it begin at the first element, and leave no gap? */
static bool is_whole(const struct gg_composed_part *p)
{
    struct dim d[GG_COMPOSED_DIMS];
    return !p->first && sort_dims(p, d) == p->n_dims && d[0].out == 1;
}

static int by_begin(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* ---- blocks ---- */

static enum gguf_status refuse_tensor(const struct gg_back *b, uint32_t i,
                                      struct gguf_error *err)
{
    struct gg_str_esc e;
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' of the folder: its elements "
                        "cannot be restored from the file",
                        gg_str_esc(&e, b->c->folder.weights->tensor[i].name));
}

/* Add the pieces of a matrix that is rounded by its mean magnitude. */
static enum gguf_status invert_ternary(const struct gg_back *b,
                                       struct pieces *to, uint32_t i,
                                       size_t base, struct gguf_error *err)
{
    const uint64_t n = b->c->folder.weights->tensor[i].n_elements;
    struct gg_back_ternary t;
    GG_TRY(gg_back_find_ternary(b, base, b->to[i].dtype, &t, err));
    const uint64_t end[] = { 0, t.cut, n };
    const float times[] = { t.high, t.low };
    for (size_t k = 0; k < GG_LEN(times); k++) {
        const struct piece x = { end[k],
                                 { .from = base,
                                   .first = end[k],
                                   .n_dims = 1,
                                   .ne = { end[k + 1] - end[k] },
                                   .step = { 1 },
                                   .after = times[k] } };
        if (x.part.ne[0])
            GG_TRY(add_piece(b, to, &x, err));
    }
    return GGUF_OK;
}

/* First element in the file's tensor of a use that is its first. */
static uint64_t first_element(const struct gg_back *b,
                              const struct gg_back_use *u)
{
    const struct gguf_tensor_info *t =
        gg_source_tensor(&b->source, u->tensor).info;
    if (u->expert >= 0)
        return t->n_elements / (uint64_t)t->ne[t->n_dims - 1] *
               (uint64_t)u->expert;
    return t->n_elements / (1 + u->n_others) * u->row_no;
}

static uint64_t count_part(const struct gg_composed_part *p)
{
    uint64_t n = 1;
    for (unsigned d = 0; d < p->n_dims; d++)
        n *= p->ne[d];
    return n;
}

/* Add the pieces of a part that begins at element *off of the file's tensor.
 * Moves *off behind it. */
static enum gguf_status add_part(const struct gg_back *b, struct pieces *p,
                                 uint32_t i, const struct gg_back_use *u,
                                 const struct gg_composed_part *part,
                                 uint64_t *off, struct gguf_error *err)
{
    if (inverse_factor(part) == 0 || (part->run && !is_whole(part)))
        return refuse_tensor(b, i, err);
    if (u->row->transform && u->row->transform->has_mean)
        GG_TRY(invert_ternary(b, p, i, u->tensor, err));
    else
        GG_TRY(invert_part(b, p, part, u->tensor, *off, err));
    *off += count_part(part);
    return GGUF_OK;
}

/* Add the pieces of the folder's tensor i that a row takes. */
static enum gguf_status add_use(const struct gg_back *b, struct pieces *p,
                                uint32_t i, const struct gg_back_use *u,
                                uint64_t *off, struct gguf_error *err)
{
    const struct gg_convert_item item = { .row = u->row,
                                          .list = u->list,
                                          .expert = u->expert,
                                          .layer = u->layer,
                                          .from = i };
    struct gg_convert_view v = { .c = b->c,
                                 .item = &item,
                                 .from = &b->c->folder.weights->tensor[i] };
    GG_TRY(gg_convert_make_view(&v, err));
    *off += v.zeros_first ? v.n_zeros : 0;
    for (uint64_t k = 0; k < (v.times ? v.times : 1); k++) {
        GG_TRY(add_part(b, p, i, u, &v.part, off, err));
        if (v.rest.n_dims)
            GG_TRY(add_part(b, p, i, u, &v.rest, off, err));
        v.part.first += v.every;
        v.rest.first += v.every;
    }
    *off += v.zeros_first ? 0 : v.n_zeros;
    return GGUF_OK;
}

/* All pieces of the folder's tensor i, and how its numbers are changed. */
static enum gguf_status collect_pieces(const struct gg_back *b, uint32_t i,
                                       struct pieces *p,
                                       gg_composed_fn **change,
                                       struct gguf_error *err)
{
    uint64_t off = 0;
    for (size_t k = b->first_use[i]; k < b->first_use[i + 1]; k++) {
        const struct gg_back_use *u = &b->use[k];
        if (k == b->first_use[i] || u->tensor != u[-1].tensor ||
            u->expert != u[-1].expert)
            off = first_element(b, u);
        GG_TRY(add_use(b, p, i, u, &off, err));
        const struct gg_convert_transform *how = u->row->transform;
        if (how && (how->change || how->is_factor)) {
            *change = how->back;
            if (!*change)
                return refuse_tensor(b, i, err);
        }
    }
    return GGUF_OK;
}

enum gguf_status gg_back_make_tensor(const struct gg_back *b, uint32_t i,
                                     struct gg_back_made *out,
                                     struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &b->c->folder.weights->tensor[i];
    struct pieces p = { .piece = NULL };
    uint64_t at = 0;
    *out = (struct gg_back_made){ .part = NULL };
    out->tensor = (struct gg_composed_tensor){ .name = t->name,
                                               .dtype = GGUF_DTYPE_F32,
                                               .n_dims = 1 };
    for (int d = 0; d < 4; d++)
        out->tensor.ne[d] = d ? 1 : (int64_t)t->n_elements;
    enum gguf_status st = collect_pieces(b, i, &p, &out->tensor.change, err);
    if (st == GGUF_OK && p.n)
        qsort(p.piece, p.n, sizeof *p.piece, by_begin);
    out->part = gg_mem_alloc_zero(b->p.allocator, p.n + 1, sizeof *out->part);
    if (st == GGUF_OK && !out->part)
        st = gg_error_set_nomem(err, p.n * sizeof *out->part);
    for (size_t k = 0; k < p.n && st == GGUF_OK; k++) {
        const struct gg_composed_part *x = &p.piece[k].part;
        uint64_t n = 1;
        for (unsigned d = 0; d < x->n_dims; d++)
            n *= x->ne[d];
        if (p.piece[k].begin + n <= at) /* elements that the file repeats */
            continue;
        if (p.piece[k].begin != at)
            st = refuse_tensor(b, i, err);
        out->part[out->tensor.n_parts++] = *x;
        at += n;
    }
    out->tensor.part = out->part;
    gg_mem_free(b->p.allocator, p.piece);
    if (st == GGUF_OK && (!p.n || at != t->n_elements))
        st = refuse_tensor(b, i, err);
    return st == GGUF_OK
               ? gg_data_composed_init(&out->list, &b->loose.over.list,
                                       &out->tensor, 1, b->p.allocator, err)
               : st;
}

bool gg_back_is_same_part(const struct gg_composed_part *a,
                          const struct gg_composed_part *b)
{
    bool same = a->first == b->first && a->n_dims == b->n_dims;
    for (unsigned d = 0; same && d < a->n_dims; d++)
        same = a->ne[d] == b->ne[d] && a->step[d] == b->step[d];
    return same;
}

void gg_back_made_fini(const struct gg_back *b, struct gg_back_made *m)
{
    gg_data_composed_fini(&m->list);
    gg_mem_free(b->p.allocator, m->part);
}
