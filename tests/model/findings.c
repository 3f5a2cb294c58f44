/* SPDX-License-Identifier: MIT */
/* findings.c - collects findings of a verification */
#include "config.h"
#include "tests/model/findings.h"
#include "gguf/file.h"

#include <stdio.h>
#include <string.h>

bool findings_note(void *user, const struct gguf_finding *f)
{
    struct findings *s = user;
    size_t n = strlen(s->codes);
    snprintf(s->codes + n, sizeof s->codes - n, "%s%s", n ? " " : "", f->code);
    snprintf(s->last, sizeof s->last, "%s", f->message);
    snprintf(s->name, sizeof s->name, "%.*s", (int)f->name.size, f->name.data);
    s->offset = f->offset;
    s->n_error += f->severity == GGUF_SEVERITY_ERROR;
    s->n_warning += f->severity == GGUF_SEVERITY_WARNING;
    s->n_outside += f->file && f->offset != GGUF_NO_OFFSET &&
                    f->offset >= gguf_file_size(f->file);
    s->n_no_file += !f->file;
    return ++s->n == s->stop_at;
}

enum gguf_status findings_in(const void *p, size_t n,
                             const struct gguf_check_params *params,
                             struct findings *s)
{
    struct gguf_file *f;
    struct gguf_error err;
    enum gguf_status st = gguf_file_open_memory(&f, p, n, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_file_verify(
            f, params, (struct gguf_finding_callback){ findings_note, s },
            &err);
    if (st != GGUF_OK)
        printf("# %s\n", err.message);
    gguf_file_close(f);
    return st;
}
