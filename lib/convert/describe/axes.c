/* SPDX-License-Identifier: MIT */
/* axes.c - notation for the order of a tensor's elements
 *
 * The left side of '>' is the tensor of the folder: its dimensions from the
 * slowest to the fastest, with commas between. A dimension is factors, the
 * slowest first. Right of it are the factors in the order that the output has.
 *
 *     h 2 d, * > h d 2, *       h heads of two halves of d rows become heads of
 *                               d pairs
 *     e, c, f 2[1@0] > e, f, c  the first of each pair, rows and columns
 *                               exchanged
 *     [x@y] *                   x rows of a dimension from row y on; [@y]: all
 *                               from row y on
 *
 * A factor is a number, or a name of letters and digits. A name is a size of
 * the architecture (gg_convert_arch.sizes) or of all (gg_convert_sizes). Any
 * other name takes the rest of its dimension, which has one of these at most.
 * FACTOR[N@FIRST] takes N of it, from number FIRST on; both are numbers or
 * names of sizes. A factor that is not on the right side has one element. '*'
 * stands for one dimension, or for none.
 */
#include "config.h"
#include "convert/describe/axes.h"

#include "base/compiler.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- reading a text ---- */

static void skip_blanks(const char **p)
{
    while (**p == ' ')
        (*p)++;
}

/* A word of letters and digits, which may be empty; false: it is too long. */
static bool read_word(const char **p, char out[GG_AXES_NAME])
{
    size_t n = 0;
    while (isalnum((unsigned char)**p) && n + 1 < GG_AXES_NAME)
        out[n++] = *(*p)++;
    out[n] = 0;
    return !isalnum((unsigned char)**p);
}

/* [N@FIRST], if it is there. */
static bool read_slice(const char **p, struct gg_axes_slice *s)
{
    *s = (struct gg_axes_slice){ .count = "" };
    if (**p != '[')
        return true;
    (*p)++;
    if (!read_word(p, s->count) || *(*p)++ != '@' || !read_word(p, s->first))
        return false;
    return *(*p)++ == ']' && *s->first;
}

static bool read_axis(const char **p, struct gg_axes_axis *a)
{
    *a = (struct gg_axes_axis){ .n = 0 };
    skip_blanks(p);
    if (!read_slice(p, &a->part))
        return false;
    skip_blanks(p);
    if (**p == '*') {
        a->rest = true;
        (*p)++;
        strcpy(a->factor[0].name, "*");
        a->n = 1;
    }
    for (skip_blanks(p); **p && **p != ',' && **p != '>'; skip_blanks(p)) {
        struct gg_axes_factor *f = &a->factor[a->n];
        if (a->n == GG_AXES_FACTORS || !read_word(p, f->name) || !*f->name ||
            !read_slice(p, &f->part))
            return false;
        a->n++;
    }
    return a->n > 0;
}

/* The right side: names, and after which a dimension ends. */
static bool read_output(const char **p, struct gg_axes *a)
{
    for (;;) {
        skip_blanks(p);
        if (a->n_out == GG_LEN(a->out))
            return false;
        struct gg_axes_out *o = &a->out[a->n_out++];
        if (**p == '*') {
            strcpy(o->name, "*");
            (*p)++;
        } else if (!read_word(p, o->name) || !*o->name) {
            return false;
        }
        skip_blanks(p);
        o->ends = !**p || **p == ',';
        if (!**p)
            return true;
        *p += **p == ',';
    }
}

bool gg_axes_read(struct gg_axes *a, const char *text)
{
    *a = (struct gg_axes){ .n = 0 };
    do {
        if (a->n == GG_LEN(a->axis) || !read_axis(&text, &a->axis[a->n]))
            return false;
        a->n++;
    } while (*text++ == ',');
    return text[-1] == '>' && read_output(&text, a);
}

/* ---- sizes ---- */

const struct gg_convert_size *
gg_axes_find_size(const struct gg_convert_arch *arch, const char *name)
{
    const struct gg_convert_size *const lists[] = { arch->sizes,
                                                    gg_convert_sizes };
    for (size_t i = 0; i < GG_LEN(lists); i++)
        for (const struct gg_convert_size *s = lists[i]; s && s->name; s++)
            if (!strcmp(s->name, name))
                return s;
    return NULL;
}

double gg_axes_size(const struct gguf_convert *c, const char *name,
                    int64_t layer)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    double n = 0;
    if (isdigit((unsigned char)*name)) {
        for (; isdigit((unsigned char)*name); name++)
            n = 10 * n + (*name - '0');
        return n;
    }
    const struct gg_convert_size *s = gg_axes_find_size(c->arch, name);
    if (!s)
        return NAN;
    return s->of         ? s->of(&cfg)
           : s->of_layer ? s->of_layer(&cfg, layer)
                         : gg_hf_config_num(&cfg, s->hf, layer);
}

static bool is_whole(double x, double most)
{
    return x >= 0 && x <= most && x == floor(x);
}

enum { SIZES_TEXT = 400 };

/* Append ", NAME VALUE" to the text of n bytes for a size's name that is not
 * there yet. The number of bytes then; SIZES_TEXT or more: it does not fit. */
static size_t add_size(char text[SIZES_TEXT], size_t n, const char *name,
                       double size)
{
    char item[GG_AXES_NAME + 24];
    snprintf(item, sizeof item, "%s %.0f", name, size);
    const char *there = n ? strstr(text, item) : NULL;
    if (there && there[-1] == ' ')
        return n;
    const int k =
        snprintf(text + n, SIZES_TEXT - n, "%s %s", n ? "," : ";", item);
    return n + (size_t)k;
}

/* Write the sizes that axes name. Returns the number of bytes, as add_size()
 * does. */
static size_t list_sizes(const struct gguf_convert *c, const char *axes,
                         int64_t layer, char sizes[SIZES_TEXT])
{
    size_t n = 0;
    *sizes = '\0';
    for (const char *p = axes; *p && n < SIZES_TEXT;) {
        char name[GG_AXES_NAME];
        if (!read_word(&p, name) || !*name) {
            p++;
            continue;
        }
        const double size = gg_axes_size(c, name, layer);
        if (isalpha((unsigned char)*name) && is_whole(size, 1e9))
            n = add_size(sizes, n, name, size);
    }
    return n;
}

void gg_axes_print_from(const struct gguf_convert *c, const char *axes,
                        int64_t layer, char out[GG_AXES_TEXT])
{
    char sizes[SIZES_TEXT];
    char from[GG_AXES_TEXT / 2];
    snprintf(from, sizeof from, "%.*s", (int)strcspn(axes, ">"), axes);
    size_t n = strlen(from);
    while (n && from[n - 1] == ' ')
        from[--n] = '\0';
    if (list_sizes(c, from, layer, sizes) >= GG_AXES_TEXT / 2)
        *sizes = '\0';
    snprintf(out, GG_AXES_TEXT, "%s%.*s", from, GG_AXES_TEXT / 2 - 1, sizes);
}

const char *gg_axes_describe(struct gguf_convert *c, const char *axes,
                             int64_t layer)
{
    char sizes[SIZES_TEXT];
    const size_t n = list_sizes(c, axes, layer, sizes);
    if (!n || n >= SIZES_TEXT)
        return axes;
    const size_t n_axes = strlen(axes);
    char *text = gg_mem_arena_alloc(&c->arena, n_axes + n + 1);
    if (!text)
        return axes;
    memcpy(text, axes, n_axes);
    memcpy(text + n_axes, sizes, n + 1);
    return text;
}

static double size_of(const struct gg_convert_view *v, const char *name)
{
    return gg_axes_size(v->c, name, v->item->layer);
}

/* Set the range of a slice: count of n elements, from first on. A size that
 * config.json lacks takes all elements; the check of the model names its
 * key. */
static bool take_slice(const struct gg_convert_view *v,
                       const struct gg_axes_slice *s, double n, double *count,
                       double *first)
{
    *first = *s->first ? size_of(v, s->first) : 0;
    *first = isnan(*first) ? 0 : *first;
    *count = *s->count ? size_of(v, s->count) : NAN;
    *count = isnan(*count) ? n - *first : *count;
    return is_whole(n, 1e18) && is_whole(*first, n) && is_whole(*count, n) &&
           *first + *count <= n;
}

/* Set sizes and steps of the factors of a dimension of n elements that are step
 * apart. *at grows by the offset of the first element. */
static bool set_steps(const struct gg_convert_view *v, struct gg_axes_axis *a,
                      uint64_t n, uint64_t step, uint64_t *at)
{
    double count, first, known = 1, size[GG_AXES_FACTORS];
    size_t open = GG_AXES_FACTORS;
    if (!take_slice(v, &a->part, (double)n, &count, &first))
        return false;
    *at += (uint64_t)first * step;
    for (size_t i = 0; i < a->n; i++) {
        size[i] = a->rest ? NAN : size_of(v, a->factor[i].name);
        if (!isnan(size[i]))
            known *= size[i];
        else if (open < a->n)
            return false;
        else
            open = i;
    }
    if (!(known >= 1) || fmod(count, known) != 0 ||
        (open >= a->n && known != count))
        return false;
    if (open < a->n)
        size[open] = count / known;
    for (size_t i = a->n; i-- > 0;) {
        struct gg_axes_factor *f = &a->factor[i];
        if (!take_slice(v, &f->part, size[i], &count, &first) || count < 1)
            return false;
        f->step = step;
        f->size = (uint64_t)count;
        *at += (uint64_t)first * step;
        step *= (uint64_t)size[i];
    }
    return true;
}

/* ---- the output ---- */

static struct gg_axes_factor *find_factor(struct gg_axes *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < a->axis[i].n; k++)
            if (!strcmp(a->axis[i].factor[k].name, name) &&
                !a->axis[i].factor[k].used)
                return &a->axis[i].factor[k];
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

/* Does every factor that the output lacks have one element? */
static bool is_complete(const struct gg_axes *a)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < a->axis[i].n; k++)
            if (!a->axis[i].factor[k].used && a->axis[i].factor[k].size != 1)
                return false;
    return true;
}

/* Set the factors in the order of the output, and its dimensions, slowest
 * first. A '*' that stands for no dimension adds none. */
static bool set_output(struct gg_convert_view *v, struct gg_axes *a)
{
    struct gg_axes_factor *order[GG_LEN(a->out)];
    size_t n_order = 0, n_dims = 0;
    int64_t ne[GGUF_MAX_DIMS], size = 1;
    for (size_t i = 0; i < a->n_out; i++) {
        struct gg_axes_factor *f = find_factor(a, a->out[i].name);
        if (f) {
            f->used = true;
            size *= (int64_t)f->size;
            order[n_order++] = f;
        } else if (!strcmp(a->out[i].name, "*")) {
            size = 0;
        }
        if (!a->out[i].ends)
            continue;
        if (size && n_dims == GGUF_MAX_DIMS)
            return false;
        if (size)
            ne[n_dims++] = size;
        size = 1;
    }
    if (!is_complete(a) || !n_dims)
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
    v->n_dims = (unsigned)n_dims;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
        v->ne[d] = d < n_dims ? ne[n_dims - 1 - d] : 1;
    return true;
}

bool gg_convert_apply_axes(struct gg_convert_view *v, const char *text)
{
    struct gg_axes a;
    uint64_t step = 1;
    if (!gg_axes_read(&a, text))
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (a.axis[i].rest &&
            a.n == v->n_dims + 1) { /* '*' stands for no dimension */
            a.n--;
            memmove(&a.axis[i], &a.axis[i + 1], (a.n - i) * sizeof *a.axis);
            break;
        }
    if (a.n != v->n_dims)
        return false;
    for (size_t d = 0; d < a.n; d++) {
        if (!set_steps(v, &a.axis[a.n - 1 - d], (uint64_t)v->from->ne[d], step,
                       &v->part.first))
            return false;
        step *= (uint64_t)v->from->ne[d];
    }
    return set_output(v, &a);
}
