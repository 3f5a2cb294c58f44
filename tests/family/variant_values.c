/* SPDX-License-Identifier: MIT */
/* variant_values.c - values of tensors, joined from those of others */
#include "config.h"
#include "tests/family/variant.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void variant_fail(const struct variant *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("# %s: ", v->m.name);
    vprintf(fmt, ap);
    putchar('\n');
    fflush(stdout);
    va_end(ap);
    abort();
}

char *variant_word(char **p)
{
    char *w = *p + strspn(*p, " ");
    *p = w + strcspn(w, " ");
    if (**p)
        *(*p)++ = 0;
    return w;
}

struct gen_tensor *variant_tensor(struct variant *v, const char *name)
{
    for (size_t i = 0; i < v->m.g.n; i++)
        if (!strcmp(v->m.g.t[i].name, name))
            return &v->m.g.t[i];
    return NULL;
}

static size_t n_elements(const int64_t *ne)
{
    return (size_t)(ne[0] * ne[1] * ne[2] * ne[3]);
}

/* Room for n values until the variant is closed. */
static float *new_values(struct variant *v, size_t n)
{
    float *x = malloc(n * sizeof *x);
    if (!x || v->n_values == sizeof v->values / sizeof *v->values)
        variant_fail(v, "no room for %zu values", n);
    return v->values[v->n_values++] = x;
}

/* ---- operands ---- */

/* Slices of an operand along an axis. */
struct operand {
    const float *x;       /* NULL: each element is factor */
    size_t inner, length; /* inner: contiguous elements of a slice; length:
                           * number of slices */
    size_t from, n;       /* first slice, and number of slices */
    size_t times;         /* number of repetitions */
    double factor;
};

static const float *transpose_values(struct variant *v, const float *x,
                                     int64_t *ne)
{
    const size_t n = (size_t)ne[0], m = (size_t)ne[1];
    const size_t all = n_elements(ne);
    float *y = new_values(v, all);
    for (size_t i = 0; i < all; i++)
        y[i / (n * m) * n * m + i % n * m + i / n % m] = x[i];
    ne[0] = (int64_t)m;
    ne[1] = (int64_t)n;
    return y;
}

/* Values of a tensor: given ones, else generated ones. */
static const float *values_of(struct variant *v, const char *name, int64_t *ne)
{
    const struct gen_tensor *t = variant_tensor(v, name);
    if (!t)
        variant_fail(v, "no tensor '%s'", name);
    memcpy(ne, t->ne, sizeof t->ne);
    if (t->values)
        return t->values;
    float *x = new_values(v, n_elements(ne));
    gen_weights(x, &v->m.g, t);
    return x;
}

/* Write NAME of an operand with the layer in place of '@'. */
static void set_layer(char name[64], const char *word, size_t n, int il)
{
    const char *at = memchr(word, '@', n);
    const size_t before = at ? (size_t)(at - word) : n;
    if (at)
        snprintf(name, 64, "%.*s%d%.*s", (int)before, word, il,
                 (int)(n - before - 1), at + 1);
    else
        snprintf(name, 64, "%.*s", (int)n, word);
}

static struct operand read_operand(struct variant *v, const char *w, int axis,
                                   int il)
{
    struct operand o = { .inner = 1, .n = 1, .times = 1, .factor = 1 };
    const size_t len = strcspn(w, "'[*^");
    const char *p = w + len;
    char *end, name[64];
    int64_t ne[4] = { 1, 1, 1, 1 };
    const double number = strtod(w, &end);
    if (end == p) {
        o.factor = number;
    } else {
        set_layer(name, w, len, il);
        o.x = values_of(v, name, ne);
        if (*p == '\'' && p++)
            o.x = transpose_values(v, o.x, ne);
        for (int d = 0; d < axis; d++)
            o.inner *= (size_t)ne[d];
        o.length = o.n = (size_t)ne[axis];
    }
    for (; *p; p = end) {
        if (*p == '[') {
            o.from = strtoul(p + 1, &end, 10);
            o.n = strtoul(end + 1, &end, 10);
            end += *end == ']';
        } else if (*p == '*') {
            o.factor *= strtod(p + 1, &end);
        } else if (*p == '^') {
            o.times = strtoul(p + 1, &end, 10);
        } else {
            variant_fail(v, "cannot read '%s'", w);
        }
    }
    if (o.x && o.from + o.n > o.length)
        variant_fail(v, "'%s' has %zu slices", w, o.length);
    return o;
}

static float *put_slices(float *to, const struct operand *o, size_t outer,
                         size_t inner)
{
    const size_t n = o->n * inner;
    for (size_t t = 0; t < o->times; t++)
        for (size_t i = 0; i < n; i++)
            *to++ =
                o->x ? (float)((double)
                                   o->x[(outer * o->length + o->from) * inner +
                                        i] *
                               o->factor)
                     : (float)o->factor;
    return to;
}

const float *variant_values(struct variant *v, char *words, const int64_t *ne,
                            int il)
{
    enum { MOST = 64 };
    struct operand o[MOST];
    const size_t all = n_elements(ne);
    const int axis = atoi(variant_word(&words));
    size_t n = 0, slices = 0, inner = 0;
    float *x = new_values(v, all), *to = x;
    if (!strcmp(words, "unit")) {
        for (size_t i = 0; i < all; i++)
            x[i] = i / (size_t)ne[0] == i % (size_t)ne[0];
        return x;
    }
    for (char *w; n < MOST && *(w = variant_word(&words)); n++) {
        o[n] = read_operand(v, w, axis, il);
        slices += o[n].n * o[n].times;
        if (o[n].x && inner && o[n].inner != inner)
            variant_fail(v, "slices of %zu and %zu elements", inner,
                         o[n].inner);
        inner = o[n].x ? o[n].inner : inner;
    }
    if (n == 1 && !o[0].x) {
        o[0].n = slices = all;
        inner = 1;
    }
    if (!inner) {
        inner = 1;
        for (int d = 0; d < axis; d++)
            inner *= (size_t)ne[d];
    }
    const size_t outer = slices ? all / (slices * inner) : 0;
    if (!outer || outer * slices * inner != all)
        variant_fail(v, "%zu slices of %zu are not %zu elements", slices,
                     inner, all);
    for (size_t i = 0; i < outer; i++)
        for (size_t k = 0; k < n; k++)
            to = put_slices(to, &o[k], i, inner);
    return x;
}
