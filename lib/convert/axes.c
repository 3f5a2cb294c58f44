/* SPDX-License-Identifier: MIT */
/* axes.c - the rows' texts on how the elements of a tensor are put
 *
 * Left of '>' stands what the tensor of the folder is, its dimensions from the
 * slowest to the fastest with commas between; a dimension is factors, the
 * slowest first. Right of it are the factors as the output has them.
 *
 *     h 2 d, * > h d 2, *       h heads of two halves of d rows become heads of
 *                               d pairs
 *     e, c, f 2[1@0] > e, f, c  of pairs the first ones, rows and columns
 *                               exchanged
 *     [x@2*y] *                 rows 2y to 2y + x of a dimension; [@y]: from y
 *                               on
 *
 * A factor is a number, or a name, with NAME=EXPRESSION (in parentheses, if it
 * has a blank) said there, or h, k, g or e of expr.h; one factor of a dimension
 * may be neither: it is what is left. FACTOR[N@FIRST] takes N of it; one that
 * is not on the right side has one left. '*' is the dimensions that are not
 * named: none, or one. Expressions are those of expr.h.
 */
#include "config.h"
#include "convert/expr.h"

#include "base/compiler.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST = 10 };

struct factor {
    char name[12];
    double n;            /* NAN: what is left */
    double count, first; /* of it; NAN: all */
    uint64_t size, step; /* known at the end */
    bool used;
};

struct axis {
    struct factor f[MOST];
    size_t n;
    double count, first; /* of the whole; NAN: all, the rest */
    bool rest;           /* it is '*' */
};

struct reader {
    const struct gg_convert_view *v;
    const char *p;
};

static void skip_blanks(struct reader *r)
{
    while (*r->p == ' ')
        r->p++;
}

/* An expression that ends before one of the letters in ends, or a blank. */
static double eval_size(struct reader *r, const char *ends)
{
    size_t n = 0;
    for (int depth = 0; r->p[n]; n++) {
        depth += (r->p[n] == '(') - (r->p[n] == ')');
        if (!depth && (strchr(ends, r->p[n]) || r->p[n] == ' '))
            break;
    }
    const double x =
        n ? gg_convert_eval_n(r->v->c, r->p, n, r->v->item->layer) : NAN;
    r->p += n;
    return x;
}

/* [N@FIRST] */
static void read_slice(struct reader *r, double *count, double *first)
{
    *count = *first = NAN;
    if (*r->p != '[')
        return;
    r->p++;
    *count = eval_size(r, "@");
    assert(*r->p == '@');
    r->p++;
    *first = eval_size(r, "]");
    assert(*r->p == ']');
    r->p++;
}

static void read_factor(struct reader *r, struct factor *f)
{
    size_t n = 0;
    *f = (struct factor){ .n = NAN };
    while (isalnum((unsigned char)*r->p) && n + 1 < sizeof f->name)
        f->name[n++] = *r->p++;
    assert(n);
    if (isdigit((unsigned char)*f->name)) {
        f->n = 0;
        for (size_t i = 0; i < n; i++)
            f->n = 10 * f->n + (f->name[i] - '0');
    } else if (*r->p == '=') {
        r->p++;
        f->n = eval_size(r, "[,>");
    } else {
        f->n = n == 1 && strchr("hkge", *f->name)
                   ? gg_convert_eval(r->v->c, f->name, r->v->item->layer)
                   : NAN;
    }
    read_slice(r, &f->count, &f->first);
}

static void read_axis(struct reader *r, struct axis *a)
{
    *a = (struct axis){ .n = 0 };
    skip_blanks(r);
    read_slice(r, &a->count, &a->first);
    skip_blanks(r);
    if (*r->p == '*') {
        a->rest = true;
        r->p++;
        strcpy(a->f[0].name, "*");
        a->f[0].n = a->f[0].count = a->f[0].first = NAN;
        a->n = 1;
    }
    for (skip_blanks(r); *r->p && *r->p != ',' && *r->p != '>';
         skip_blanks(r)) {
        assert(a->n < MOST);
        read_factor(r, &a->f[a->n++]);
    }
}

static bool is_whole(double x, double most)
{
    return x >= 0 && x <= most && x == floor(x);
}

/* The factors' sizes and steps, of a dimension of size n whose elements are
 * step apart. */
static bool set_steps(struct axis *a, uint64_t n, uint64_t step,
                      uint64_t *first)
{
    const double all = (double)n;
    double known = 1;
    struct factor *open = NULL;
    const double begin = isnan(a->first) ? 0 : a->first;
    double count = isnan(a->count) ? all - begin : a->count;
    if (!is_whole(begin, all) || !is_whole(count, all) || begin + count > all)
        return false;
    *first += (uint64_t)begin * step;
    for (size_t i = 0; i < a->n; i++)
        if (!isnan(a->f[i].n))
            known *= a->f[i].n;
        else if (open)
            return false;
        else
            open = &a->f[i];
    if (!(known >= 1) || fmod(count, known) != 0 || (!open && known != count))
        return false;
    if (open)
        open->n = count / known;
    for (size_t i = a->n; i-- > 0;) {
        struct factor *f = &a->f[i];
        const double from = isnan(f->first) ? 0 : f->first;
        const double some = isnan(f->count) ? f->n - from : f->count;
        if (!is_whole(f->n, all) || !is_whole(from, f->n) ||
            !is_whole(some, f->n) || from + some > f->n || some < 1)
            return false;
        f->step = step;
        f->size = (uint64_t)some;
        *first += (uint64_t)from * step;
        step *= (uint64_t)f->n;
    }
    return true;
}

static struct factor *find_factor(struct axis *a, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < a[i].n; k++)
            if (!strcmp(a[i].f[k].name, name) && !a[i].f[k].used)
                return &a[i].f[k];
    return NULL;
}

/* One more dimension of the part, or more of the last. */
static bool add_dimension(struct gg_composed_part *p, uint64_t size,
                          uint64_t step)
{
    if (size == 1)
        return true;
    if (p->n_dims && p->step[p->n_dims - 1] * p->ne[p->n_dims - 1] == step) {
        p->ne[p->n_dims - 1] *= size;
        return true;
    }
    if (p->n_dims == GG_COMPOSED_DIMS)
        return false;
    p->ne[p->n_dims] = size;
    p->step[p->n_dims++] = step;
    return true;
}

/* The right side, whose text begins at p: the dimensions of the output, here
 * the slowest first. */
static bool order_factors(struct gg_convert_view *v, struct axis *a, size_t n,
                          const char *p)
{
    struct factor *order[4 * MOST];
    size_t n_order = 0, n_out = 0;
    int64_t ne[GGUF_MAX_DIMS];
    struct reader r = { v, p };
    do {
        int64_t size = 1;
        for (skip_blanks(&r); *r.p && *r.p != ','; skip_blanks(&r)) {
            char name[12] = "";
            size_t k = 0;
            while (*r.p && *r.p != ' ' && *r.p != ',' && k + 1 < sizeof name)
                name[k++] = *r.p++;
            struct factor *f = find_factor(a, n, name);
            if (!f && !strcmp(name, "*"))
                size = 0; /* there is none */
            else if (!f)
                assert(!strcmp(name, "1"));
            if (!f)
                continue;
            f->used = true;
            size *= (int64_t)f->size;
            order[n_order++] = f;
        }
        if (size && n_out == GGUF_MAX_DIMS)
            return false;
        if (size)
            ne[n_out++] = size;
    } while (*r.p++ == ',');
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < a[i].n; k++)
            if (!a[i].f[k].used && a[i].f[k].size != 1)
                return false;
    v->part.n_dims = 0;
    while (n_order--)
        if (!add_dimension(&v->part, order[n_order]->size,
                           order[n_order]->step))
            return false;
    if (!v->part.n_dims) {
        v->part.ne[0] = v->part.step[0] = 1;
        v->part.n_dims = 1;
    }
    v->n_dims = (unsigned)n_out;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
        v->ne[d] = d < n_out ? ne[n_out - 1 - d] : 1;
    return n_out > 0;
}

bool gg_convert_axes(struct gg_convert_view *v, const char *text)
{
    struct axis a[GGUF_MAX_DIMS + 1];
    struct reader r = { v, text };
    size_t n = 0, star = GGUF_MAX_DIMS + 1;
    const unsigned n_dims = v->n_dims;
    do {
        assert(n < GG_LEN(a));
        read_axis(&r, &a[n]);
        if (a[n].rest)
            star = n;
        n++;
    } while (*r.p++ == ',');
    assert(r.p[-1] == '>');
    if (star < n && n == n_dims + 1) { /* it is none */
        memmove(&a[star], &a[star + 1], (n - star - 1) * sizeof *a);
        n--;
    }
    if (n != n_dims)
        return false;
    uint64_t step = 1;
    for (size_t d = 0; d < n; d++) {
        if (!set_steps(&a[n - 1 - d], (uint64_t)v->from->ne[d], step,
                       &v->part.first))
            return false;
        step *= (uint64_t)v->from->ne[d];
    }
    return order_factors(v, a, n, r.p);
}
