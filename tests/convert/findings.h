/* SPDX-License-Identifier: MIT */
/* findings.h - counts the errors that verifying a file finds, and has the first
 */
#ifndef TESTS_CONVERT_FINDINGS_H
#define TESTS_CONVERT_FINDINGS_H

#include "gguf/verify.h"

#include <stdio.h>

struct findings {
    int n_errors;
    char first[200]; /* its message; "" before there is one */
};

/* For gguf_file_verify, whose user is a struct findings of zeros. */
static inline int findings_note(void *user, const struct gguf_finding *f)
{
    struct findings *s = user;
    if (f->severity == GGUF_SEVERITY_ERROR && !s->n_errors++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

#endif
