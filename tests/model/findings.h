/* SPDX-License-Identifier: MIT */
/* findings.h - collects findings of a verification */
#ifndef TESTS_MODEL_FINDINGS_H
#define TESTS_MODEL_FINDINGS_H

#include "gguf/verify.h"

/* Collected findings; begin with zeros. codes: of all findings, in order,
 * separated by blanks. */
struct findings {
    char codes[4096], last[512], name[128];
    uint64_t offset, size; /* place of the last finding; size of the file */
    unsigned n, n_error, n_warning, n_outside, n_no_file, stop_at;
};

/* A gguf_finding_fn. user: a struct findings. */
bool findings_note(void *user, const struct gguf_finding *f);

/* Verify the n bytes at p and collect the findings. Prints a failure. */
enum gguf_status findings_in(const void *p, size_t n,
                             const struct gguf_check_params *params,
                             struct findings *s);

#endif
