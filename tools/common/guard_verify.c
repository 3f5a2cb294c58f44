/* SPDX-License-Identifier: MIT */
/* guard_verify.c - errors of the model that a change of metadata adds */
#include "config.h"
#include "tools/common/guard.h"

#include <gguf/verify.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN = 6
}; /* errors that are reported; a wrong shape usually causes
                     * many */

/* Warnings that count as errors here, since an edit should not add them. */
static const char *const slips[] = { "text-not-utf8", "unknown-tokenizer",
                                     "unknown-pre-tokenizer" };
/* This one may occur once for each tensor: occurrences are counted. */
static const char extra[] = "extra-tensor";

/* Errors of one model: each has its code, a blank and its name, and its
 * message. */
struct errors {
    struct seen {
        struct text what, message;
    } * list;
    size_t n, room, n_extra;
    char extra[256]; /* first message about an extra tensor */
};

static bool is_error(const struct gguf_finding *f)
{
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++)
        if (!strcmp(f->code, slips[i]))
            return true;
    return f->severity == GGUF_SEVERITY_ERROR;
}

static int add_finding(void *user, const struct gguf_finding *f)
{
    struct errors *e = user;
    if (!strcmp(f->code, extra) && !e->n_extra++)
        snprintf(e->extra, sizeof e->extra, "%s", f->message);
    if (!is_error(f))
        return 0;
    struct seen x = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    text_addf(&x.what, "%s ", f->code);
    text_add(&x.what, f->name.data, f->name.size);
    text_addz(&x.message, f->message);
    e->list = msg_grow(e->list, &e->room, e->n + 1, sizeof *e->list);
    e->list[e->n++] = x;
    return 0;
}

static void errors_fini(struct errors *e)
{
    for (size_t i = 0; i < e->n; i++) {
        text_fini(&e->list[i].what);
        text_fini(&e->list[i].message);
    }
    free(e->list);
}

static int by_what(const void *a, const void *b)
{
    const struct text *x = &((const struct seen *)a)->what;
    const struct text *y = &((const struct seen *)b)->what;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return memcmp(x->s, y->s, x->n);
}

void guard_verify(struct guard *g,
                  void (*report)(struct guard *g, const char *message))
{
    struct errors old = { .n = 0 }, new = { .n = 0 };
    struct gguf_error err;
    gguf_error_clear(&err);
    enum gguf_status st = gguf_file_verify_meta(g->file, g->after, NULL,
                                                add_finding, &new, &err);
    if (st == GGUF_OK && (new.n || new.n_extra))
        st = gguf_file_verify_meta(g->file, g->before, NULL, add_finding, &old,
                                   &err);
    struct text t = { NULL, 0, 0 };
    if (st != GGUF_OK) {
        text_addf(&t, "the changed model cannot be checked: %s", err.message);
        report(g, t.s);
    }
    if (old.n)
        qsort(old.list, old.n, sizeof *old.list, by_what);
    size_t n = 0;
    for (size_t i = 0; st == GGUF_OK && i < new.n; i++)
        if (!old.n ||
            !bsearch(&new.list[i], old.list, old.n, sizeof *old.list, by_what))
            if (++n <= SHOWN)
                report(g, new.list[i].message.s);
    if (st == GGUF_OK && new.n_extra > old.n_extra)
        report(g, new.extra);
    if (n > SHOWN) {
        text_addf(&t, "... and %zu more that gguf-info --check would find",
                  n - SHOWN);
        report(g, t.s);
    }
    text_fini(&t);
    errors_fini(&old);
    errors_fini(&new);
}
