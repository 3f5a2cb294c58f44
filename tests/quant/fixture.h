/* SPDX-License-Identifier: MIT */
/* fixture.h - a scratch folder, a small model in it, and jobs over it: what the
 * tests of the quantizer share */
#ifndef TESTS_QUANT_FIXTURE_H
#define TESTS_QUANT_FIXTURE_H

#include "gguf/quant.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make the folder, which in_dir speaks of; false, with a message, if that does
 * not work. leave_dir removes it, empty; false if it is not. */
bool enter_dir(void);
bool leave_dir(void);

/* Path of a file in the folder; good for 63 calls more. */
const char *in_dir(const char *name);

/* Does the folder have an entry of that name, a link that leads nowhere
 * included? */
bool file_exists(const char *name);

/* The folder itself, and how many entries it has, so that nothing can be left
 * without notice. */
const char *dir_name(void);
int n_entries(void);

/* Make the folder with the model of all shapes, in.gguf, and return its path;
 * or end the program. */
const char *enter_model(void);

/* Remove both: a test that nothing else is left. Returns what main() does. */
static inline int leave_model(void)
{
    remove(in_dir("in.gguf"));
    ok(leave_dir(), "the folder is empty again");
    return done_testing();
}

/* A model of all shapes: tensors of its file, in order. */
struct model_tensor {
    const char *name;
    uint32_t type;
    int64_t ne[4];
};
extern const struct model_tensor model_tensors[];

/* Write it; tensor bad (or -1) gets the value at element where. */
void write_model(const char *path, int bad, size_t where, float value);

/* Importance data for all matrices of the model, uneven; NULL: no memory. */
struct gguf_imatrix *model_imatrix(void);

struct setup {
    struct gguf_quant_params p;
    const char *type;
    unsigned threads; /* 0: no pool */
    bool forced;      /* the kernels of the levels in cpu only */
    uint32_t cpu;
    bool no_force, resume;
    bool sync; /* wait for the disk */
};
#define SETUP(t)                                                              \
    {                                                                         \
        .p = GGUF_QUANT_PARAMS_INIT, .type = t                                \
    }

/* Make the job and run it. */
enum gguf_status quantize(const char *in, const char *out, struct setup s,
                          struct gguf_error *err);

#endif
