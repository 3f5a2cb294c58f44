/* gguf-edit-verify.c - what an edit would make wrong about the model */
#include "config.h"
#include "tools/gguf-edit.h"

#include <gguf/verify.h>
#include <gguf/writer.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 6 }; /* errors: a wrong shape is one of many */

/* Errors of one model, each as code, blank, name, and its message. */
struct errors {
    struct text *what, *message;
    size_t n;
};

static int collect(void *user, const struct gguf_finding *f)
{
    struct errors *e = user;
    if (f->severity != GGUF_SEVERITY_ERROR)
        return 0;
    e->what = msg_must(realloc(e->what, (e->n + 1) * sizeof *e->what));
    e->message =
        msg_must(realloc(e->message, (e->n + 1) * sizeof *e->message));
    struct text t = { NULL, 0, 0 }, m = { NULL, 0, 0 };
    text_addf(&t, "%s ", f->code);
    text_add(&t, f->name.data, f->name.size);
    text_addz(&m, f->message);
    e->what[e->n] = t;
    e->message[e->n++] = m;
    return 0;
}

static void errors_fini(struct errors *e)
{
    for (size_t i = 0; i < e->n; i++) {
        text_fini(&e->what[i]);
        text_fini(&e->message[i]);
    }
    free(e->what);
    free(e->message);
}

static bool has(const struct errors *e, const struct text *what)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->what[i].n == what->n &&
            !memcmp(e->what[i].s, what->s, what->n))
            return true;
    return false;
}

static enum gguf_status fail_temp(struct gguf_error *err)
{
    gguf_error_clear(err);
    err->sys_errno = errno;
    snprintf(err->message, sizeof err->message, "a temporary file: %s",
             strerror(errno));
    return GGUF_E_IO;
}

/* The header of the file with other metadata, and a hole for the data. */
static enum gguf_status write_hollow(FILE *out, const struct gguf_file *file,
                                     const struct gguf_meta *meta,
                                     struct gguf_error *err)
{
    struct gguf_writer *w;
    const void *header;
    size_t size;
    enum gguf_status st = gguf_writer_create(&w, meta, NULL, err);
    for (size_t i = 0; st == GGUF_OK && i < gguf_file_n_tensors(file); i++)
        st = gguf_writer_add_like(w, gguf_file_tensor(file, i), err);
    if (st == GGUF_OK)
        st = gguf_writer_header(w, &header, &size, err);
    if (st == GGUF_OK &&
        (fwrite(header, 1, size, out) != size || fflush(out) ||
         ftruncate(fileno(out), (off_t)gguf_writer_file_size(w))))
        st = fail_temp(err);
    gguf_writer_destroy(w);
    return st;
}

static enum gguf_status verify_after(const struct gguf_file *file,
                                     const struct gguf_limits *limits,
                                     const struct gguf_meta *after,
                                     struct errors *e, struct gguf_error *err)
{
    struct gguf_file_params p = GGUF_FILE_PARAMS_INIT;
    struct gguf_file *f = NULL;
    FILE *out = tmpfile();
    p.limits = limits;
    if (!out)
        return fail_temp(err);
    enum gguf_status st = write_hollow(out, file, after, err);
    if (st == GGUF_OK)
        st = gguf_file_open_fd(&f, fileno(out), &p, err);
    if (st == GGUF_OK)
        st = gguf_file_verify(f, NULL, collect, e, err);
    gguf_file_close(f);
    fclose(out);
    return st;
}

void verify_new_errors(const char *name, const struct gguf_file *file,
                       const struct gguf_limits *limits,
                       const struct gguf_meta *after,
                       void (*report)(void *user, const char *message),
                       void *user)
{
    struct errors old = { NULL, NULL, 0 }, new = { NULL, NULL, 0 };
    struct gguf_error err;
    gguf_error_clear(&err);
    enum gguf_status st = verify_after(file, limits, after, &new, &err);
    if (st == GGUF_OK && new.n)
        st = gguf_file_verify(file, NULL, collect, &old, &err);
    if (st != GGUF_OK)
        msg_warn(name, "whether the model stays right was not checked: %s",
                 err.message);
    size_t n = 0;
    for (size_t i = 0; st == GGUF_OK && i < new.n; i++)
        if (!has(&old, &new.what[i]) && ++n <= SHOWN)
            report(user, new.message[i].s);
    if (n > SHOWN) {
        struct text t = { NULL, 0, 0 };
        text_addf(&t, "... and %zu more that gguf-info --check would find",
                  n - SHOWN);
        report(user, t.s);
        text_fini(&t);
    }
    errors_fini(&old);
    errors_fini(&new);
}
