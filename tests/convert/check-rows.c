/* SPDX-License-Identifier: MIT */
/* check-rows.c - rules for the rows of the converter's classes
 *
 * Every text about axes can be read; its slices name sizes, and its right side
 * names factors of the left side. A row without a condition is the last of its
 * class, so that each row can be reached. Each computed key has a function.
 */
#include "config.h"
#include "convert/describe/axes.h"
#include "convert/projector/projector.h"
#include "tests/tap.h"

#include <ctype.h>

static bool is_size(const struct gg_convert_arch *a, const char *name)
{
    return isdigit((unsigned char)*name) || gg_axes_find_size(a, name);
}

static bool has_sizes(const struct gg_convert_arch *a,
                      const struct gg_axes_slice *s)
{
    return (!*s->count || is_size(a, s->count)) &&
           (!*s->first || is_size(a, s->first));
}

/* Is at most one factor of each dimension unknown? */
static bool is_known(const struct gg_convert_arch *a,
                     const struct gg_axes_axis *axis)
{
    size_t open = 0;
    for (size_t i = 0; i < axis->n; i++) {
        open += !is_size(a, axis->factor[i].name);
        if (!has_sizes(a, &axis->factor[i].part))
            return false;
    }
    return open <= 1 && has_sizes(a, &axis->part);
}

static bool is_on_left(const struct gg_axes *x, const char *name)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->axis[i].n; k++)
            if (!strcmp(x->axis[i].factor[k].name, name))
                return true;
    return !strcmp(name, "1");
}

static bool is_good(const struct gg_convert_arch *a, const char *text)
{
    struct gg_axes x;
    if (!gg_axes_read(&x, text))
        return false;
    for (size_t i = 0; i < x.n; i++)
        if (!is_known(a, &x.axis[i]))
            return false;
    for (size_t i = 0; i < x.n_out; i++)
        if (!is_on_left(&x, x.out[i].name))
            return false;
    return true;
}

static void check_axes(const struct gg_convert_arch *a)
{
    const char *bad = NULL;
    const size_t n_lists = sizeof a->names / sizeof *a->names;
    for (size_t l = 0; l < n_lists && a->names[l]; l++)
        for (const struct gg_convert_name *n = a->names[l]; n->from; n++)
            if (n->axes && !is_good(a, n->axes))
                bad = n->axes;
    ok(!bad, "%s: texts on axes%s%s", a->classes, bad ? ": " : "",
       bad ? bad : "");
}

static void check_keys(const struct gg_convert_arch *a,
                       const struct gg_convert_key *keys)
{
    for (const struct gg_convert_key *k = keys; k && k->key; k++)
        if ((k->kind >= GG_KIND_EACH_U32 && !k->of_layer) ||
            (k->kind >= GG_KIND_U32_OF && !k->hf && !k->of && !k->of_layer))
            ok(false, "%s: nothing gives %s", a->classes, k->key);
}

/* Is there a later row for the class, which could never be reached? */
static bool hides_row(size_t row, const char *class_name, size_t size)
{
    const struct gguf_str name = { class_name, size };
    const struct gg_convert_arch *a;
    while ((a = gg_convert_arch_row(++row)))
        if (gg_convert_arch_has_class(a, name))
            return true;
    return false;
}

static void check_reach(size_t row)
{
    const struct gg_convert_arch *a = gg_convert_arch_row(row);
    for (const char *p = a->classes; *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        if (!a->when && hides_row(row, p, n))
            ok(false, "%.*s: rows after one without a condition", (int)n, p);
        p += n;
    }
}

/* Malformed texts are refused. */
static void check_refused(void)
{
    static const char *const texts[] = { "x, y",
                                         "x > ",
                                         "> x",
                                         "x[1 > x",
                                         "x[1@] > x",
                                         "[1] x > x",
                                         "x > x,, y",
                                         "x-y > x",
                                         "",
                                         "x,",
                                         "abcdefghijklmnop > x" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct gg_axes x;
        ok(!gg_axes_read(&x, texts[i]), "'%s' is refused", texts[i]);
    }
}

int main(void)
{
    size_t i = 0;
    const struct gg_convert_arch *a;
    for (; (a = gg_convert_arch_row(i)); i++) {
        check_axes(a);
        check_keys(a, a->keys);
        check_keys(a, a->last);
        check_reach(i);
    }
    ok(i > 150, "%zu rows", i);
    for (i = 0; gg_projector_row(i); i++) {
        a = &gg_projector_row(i)->arch;
        check_axes(a);
        check_keys(a, a->keys);
        ok(a->parts && a->only_keys, "%s: a projector", a->classes);
    }
    ok(i > 20, "%zu rows of projectors", i);
    check_refused();
    return done_testing();
}
