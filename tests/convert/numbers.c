/* SPDX-License-Identifier: MIT */
/* numbers.c - evaluates descriptions of a tensor's numbers */
#include "config.h"
#include "tests/convert/numbers.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 8, MOST_INDICES = 16 };

struct axis {
    char name[8];
    uint64_t size, stride; /* stride: in numbers of the source */
};

/* An axis of the right side. */
struct chosen {
    size_t axis;
    uint64_t first, n;
    uint64_t
        list[MOST_INDICES]; /* n_list indices; 0: first to first + n - 1 */
    size_t n_list;
};

struct term {
    const struct folder_tensor *t;
    struct axis axis[MOST_AXES];
    size_t n_axes;
    struct chosen right[MOST_AXES];
    size_t n_right;
    char functions[200];
    float mean; /* mean magnitude, for ternary */
};

void numbers_name(char out[160], const char *pattern, int il, int ie)
{
    for (; *pattern; pattern++)
        out += *pattern == '%'   ? sprintf(out, "%d", il)
               : *pattern == '@' ? sprintf(out, "%d", ie)
                                 : sprintf(out, "%c", *pattern);
    *out = 0;
}

/* Read the next word of *p. false: no word is left. */
static bool next_word(const char **p, char out[160])
{
    size_t n = 0;
    while (**p == ' ')
        (*p)++;
    while (**p && **p != ' ' && n < 159)
        out[n++] = *(*p)++;
    out[n] = 0;
    return n != 0;
}

/* ---- the left side ---- */

/* Set the sizes of the axes from `first' on, which make up one dimension. An
 * axis without a size gets the quotient of the dimension and the others. */
static bool split_dimension(struct term *e, size_t first, uint64_t size)
{
    uint64_t known = 1;
    struct axis *open = NULL;
    for (size_t i = first; i < e->n_axes; i++) {
        if (e->axis[i].size)
            known *= e->axis[i].size;
        else if (open)
            return false;
        else
            open = &e->axis[i];
    }
    if (open)
        open->size = size / known;
    return (open ? known * open->size : known) == size;
}

static bool read_left(struct term *e, const char *left)
{
    const struct folder_tensor *t = e->t;
    char word[160];
    unsigned dim = 0;
    size_t first = 0; /* first axis of the current dimension */
    bool open = false;
    while (next_word(&left, word)) {
        if (e->n_axes == MOST_AXES)
            return false;
        struct axis *a = &e->axis[e->n_axes++];
        const char *name = word + (*word == '('), *size = strchr(word, '=');
        snprintf(a->name, sizeof a->name, "%.*s", (int)strcspn(name, "=)"),
                 name);
        a->size = size ? strtoull(size + 1, NULL, 10) : 0;
        open = (open || *word == '(') && !strchr(word, ')');
        if (open)
            continue;
        if (dim == t->n_dims || !split_dimension(e, first, t->shape[dim++]))
            return false;
        first = e->n_axes;
    }
    uint64_t stride = 1;
    for (size_t i = e->n_axes; i-- > 0; stride *= e->axis[i].size)
        e->axis[i].stride = stride;
    return dim == t->n_dims && !open;
}

/* ---- the right side ---- */

/* Read [N], [FIRST:], [FIRST:END] or [N,N...]. */
static void read_indices(struct chosen *c, const char *p)
{
    char *end;
    const uint64_t size = c->n;
    c->first = strtoull(p, &end, 10);
    c->n = 1;
    if (*end == ':')
        c->n = (isdigit((unsigned char)end[1]) ? strtoull(end + 1, NULL, 10)
                                               : size) -
               c->first;
    if (*end != ',')
        return;
    for (; *p != ']' && c->n_list < MOST_INDICES; p = end + (*end == ','))
        c->list[c->n_list++] = strtoull(p, &end, 10);
    c->n = c->n_list;
}

static bool read_right(struct term *e, const char *right)
{
    char word[160];
    e->n_right = 0;
    *e->functions = 0;
    while (next_word(&right, word)) {
        const size_t n = strcspn(word, "[");
        size_t i = 0;
        while (i < e->n_axes &&
               (strncmp(e->axis[i].name, word, n) != 0 || e->axis[i].name[n]))
            i++;
        if (i == e->n_axes) {
            snprintf(e->functions + strlen(e->functions),
                     sizeof e->functions - strlen(e->functions), "%s ", word);
            continue;
        }
        if (e->n_right == MOST_AXES)
            return false;
        struct chosen *c = &e->right[e->n_right++];
        *c = (struct chosen){ .axis = i, .n = e->axis[i].size };
        if (word[n])
            read_indices(c, word + n + 1);
    }
    return e->n_right == e->n_axes;
}

/* ---- a number ---- */

/* at: number of the element in the source */
static float apply_functions(const struct term *e,
                             const uint64_t index[MOST_AXES], uint64_t at,
                             float x)
{
    const char *p = e->functions;
    char word[160];
    while (next_word(&p, word)) {
        const char *each = strchr(word, ':');
        if (!strncmp(word, "*=", 2)) {
            x *= folder_value(word + 2, at);
        } else if (!strcmp(word, "exp")) {
            x = expf(x);
        } else if (!strcmp(word, "-exp")) {
            x = -expf(x);
        } else if (!strcmp(word, "ternary")) {
            const float y = x * (1 / e->mean);
            x = (y > 0.5f    ? 1.0f
                 : y < -0.5f ? -1.0f
                             : 0.0f) *
                (1 / (1 / e->mean));
        } else if (*word == '+') {
            x += strtof(word + 1, NULL);
        } else if (each) {
            size_t i = 0;
            while (strncmp(e->axis[i].name, word + 1,
                           (size_t)(each - word) - 1) != 0)
                i++;
            for (uint64_t k = index[i]; k; k--)
                each = strchr(each + 1, ',');
            x *= strtof(each + 1, NULL);
        } else {
            x *= strtof(word + 1, NULL);
        }
    }
    return x;
}

/* Number i of the term, counted along its right side. */
static float number_at(const struct term *e, uint64_t i)
{
    uint64_t at = 0, index[MOST_AXES];
    for (size_t k = e->n_right; k-- > 0;) {
        const struct chosen *c = &e->right[k];
        const uint64_t no = i % c->n;
        index[c->axis] = c->n_list ? c->list[no] : c->first + no;
        at += index[c->axis] * e->axis[c->axis].stride;
        i /= c->n;
    }
    return apply_functions(e, index, at, folder_value(e->t->name, at));
}

/* ---- terms ---- */

struct result {
    const float *x;
    uint64_t n, at;
};

static bool compare_right(const struct term *e, struct result *r)
{
    uint64_t n = 1;
    for (size_t i = 0; i < e->n_right; i++)
        n *= e->right[i].n;
    for (uint64_t i = 0; i < n; i++, r->at++) {
        if (r->at >= r->n || r->x[r->at] != number_at(e, i)) {
            printf("# %s: number %llu of %llu differs\n", e->t->name,
                   (unsigned long long)r->at, (unsigned long long)r->n);
            return false;
        }
    }
    return true;
}

static float mean_magnitude(const struct folder_tensor *t)
{
    double sum = 0;
    for (uint64_t i = 0; i < t->n; i++)
        sum += fabs((double)folder_value(t->name, i));
    return (float)(sum / (double)t->n);
}

/* Compare a term. rest: text after the name of the source. */
static bool compare_source(const struct folder_tensor *t, const char *rest,
                           struct result *r)
{
    struct term e = { .t = t, .axis = { { "all", t->n, 1 } }, .n_axes = 1 };
    char side[200];
    const char *arrow = strstr(rest, "->");
    e.mean = strstr(rest, "ternary") ? mean_magnitude(t) : 0;
    if (arrow) {
        snprintf(side, sizeof side, "%.*s", (int)(arrow - rest), rest);
        e.n_axes = 0;
        if (!read_left(&e, side))
            return false;
        rest = arrow + 2;
    }
    for (bool more = true; more;) {
        const size_t n = strcspn(rest, ";");
        snprintf(side, sizeof side, "%s%.*s", arrow ? "" : "all ", (int)n,
                 rest);
        if (!read_right(&e, side) || !compare_right(&e, r))
            return false;
        more = rest[n] != 0;
        rest += n + more;
    }
    return true;
}

static bool compare_term(const struct folder *f, const char *text, int il,
                         struct result *r)
{
    char word[160], name[160];
    const char *rest = text;
    if (!next_word(&rest, word))
        return false;
    if (!strcmp(word, "0")) {
        for (; r->at < r->n; r->at++)
            if (r->x[r->at] != 0)
                return false;
        return true;
    }
    word[strcspn(word, ":")] = 0;
    const bool experts = strchr(word, '@') != NULL;
    const struct folder_tensor *t;
    int ie = 0;
    do {
        numbers_name(name, word, il, ie);
        t = folder_find(f, name);
        if (t && !compare_source(t, rest, r))
            return false;
        ie++;
    } while (t && experts);
    if (!t && ie == 1)
        printf("# there is no tensor %s\n", name);
    return t || ie > 1;
}

bool numbers_equal(const char *text, const struct folder *f, int il,
                   const float *x, uint64_t n)
{
    struct result r = { .x = x, .n = n };
    char term[300];
    for (bool more = true; more;) {
        const char *end = strstr(text, " & ");
        more = end != NULL;
        snprintf(term, sizeof term, "%.*s",
                 more ? (int)(end - text) : (int)strlen(text), text);
        if (!compare_term(f, term, il, &r)) {
            printf("# not the numbers of: %s\n", term);
            return false;
        }
        text = more ? end + 3 : text;
    }
    if (r.at != n)
        printf("# %llu numbers instead of %llu\n", (unsigned long long)r.at,
               (unsigned long long)n);
    return r.at == n;
}
