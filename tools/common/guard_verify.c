/* SPDX-License-Identifier: MIT */
/* guard_verify.c - errors of the model that a change of metadata adds */
#include "config.h"
#include "tools/common/guard.h"

#include <gguf/verify.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors that are reported: a wrong shape usually causes many. */
enum { MAX_REPORTED = 6 };

/* Warnings that count as errors here, since an edit should not add them. */
static const char *const added_warnings[] = { "text-not-utf8",
                                              "unknown-tokenizer",
                                              "unknown-pre-tokenizer" };
/* This one may occur once for each tensor: occurrences are counted. */
static const char extra[] = "extra-tensor";

/* Errors of one model: each has its code, a blank and its name, and its
 * message. */
struct errors {
    struct named_error {
        struct text id, message;
    } * list;
    size_t n, room, n_extra;
    char extra[256]; /* first message about an extra tensor */
};

static bool is_error(const struct gguf_finding *f)
{
    for (size_t i = 0; i < sizeof added_warnings / sizeof *added_warnings; i++)
        if (!strcmp(f->code, added_warnings[i]))
            return true;
    return f->severity == GGUF_SEVERITY_ERROR;
}

static bool add_finding(void *user, const struct gguf_finding *f)
{
    struct errors *e = user;
    if (!strcmp(f->code, extra) && !e->n_extra++)
        snprintf(e->extra, sizeof e->extra, "%s", f->message);
    if (!is_error(f))
        return 0;
    struct named_error x = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    text_addf(&x.id, "%s ", f->code);
    text_add(&x.id, f->name.data, f->name.size);
    text_addz(&x.message, f->message);
    e->list = msg_grow(e->list, &e->room, e->n + 1, sizeof *e->list);
    e->list[e->n++] = x;
    return 0;
}

static void errors_fini(struct errors *e)
{
    for (size_t i = 0; i < e->n; i++) {
        text_fini(&e->list[i].id);
        text_fini(&e->list[i].message);
    }
    free(e->list);
}

static int by_id(const void *a, const void *b)
{
    const struct text *x = &((const struct named_error *)a)->id;
    const struct text *y = &((const struct named_error *)b)->id;
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
    enum gguf_status st = gguf_file_verify_meta(
        g->file, g->after, NULL,
        (struct gguf_finding_callback){ add_finding, &new }, &err);
    if (st == GGUF_OK && (new.n || new.n_extra))
        st = gguf_file_verify_meta(
            g->file, g->before, NULL,
            (struct gguf_finding_callback){ add_finding, &old }, &err);
    struct text t = { NULL, 0, 0 };
    if (st != GGUF_OK) {
        text_addf(&t, "the changed model cannot be checked: %s", err.message);
        report(g, t.s);
    }
    if (old.n)
        qsort(old.list, old.n, sizeof *old.list, by_id);
    size_t n = 0;
    for (size_t i = 0; st == GGUF_OK && i < new.n; i++)
        if (!old.n ||
            !bsearch(&new.list[i], old.list, old.n, sizeof *old.list, by_id))
            if (++n <= MAX_REPORTED)
                report(g, new.list[i].message.s);
    if (st == GGUF_OK && new.n_extra > old.n_extra)
        report(g, new.extra);
    if (n > MAX_REPORTED) {
        text_addf(&t, "... and %zu more that gguf-info --check would find",
                  n - MAX_REPORTED);
        report(g, t.s);
    }
    text_fini(&t);
    errors_fini(&old);
    errors_fini(&new);
}
