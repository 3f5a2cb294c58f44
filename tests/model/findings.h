/* SPDX-License-Identifier: MIT */
/* findings.h - findings as tests look at them */
#ifndef TESTS_MODEL_FINDINGS_H
#define TESTS_MODEL_FINDINGS_H

#include "gguf/verify.h"

/* Zeroed is none. Codes of all findings, in order, separated by blanks. */
struct findings {
    char codes[4096], last[512], name[128];
    uint64_t offset, size; /* of the last one; of the file */
    unsigned n, n_error, n_warning, n_outside, n_no_file, stop_at;
};

/* As a gguf_finding_fn: user is a struct findings. */
int findings_note(void *user, const struct gguf_finding *f);

/* All findings about the model in n bytes at p; a failure is printed. */
enum gguf_status findings_in(const void *p, size_t n,
                             const struct gguf_check_params *params,
                             struct findings *s);

#endif
