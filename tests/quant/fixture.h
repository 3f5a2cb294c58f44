/* SPDX-License-Identifier: MIT */
/* fixture.h - a scratch folder, a small model in it, and jobs over it */
#ifndef TESTS_QUANT_FIXTURE_H
#define TESTS_QUANT_FIXTURE_H

#include "gguf/quant.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make the folder of in_dir(). false: failed, and a message is printed.
 * leave_dir() removes the folder; false: it is not empty. */
bool enter_dir(void);
bool leave_dir(void);

/* Path of a file in the folder. Valid for 63 more calls. */
const char *in_dir(const char *name);

/* Does the folder have an entry of this name? A dangling link counts. */
bool file_exists(const char *name);

/* Path of the folder, and the number of its entries. */
const char *dir_name(void);
int n_entries(void);

/* Make the folder and in it in.gguf, a model of all shapes. Returns the
 * model's path. Ends the program after a failure. */
const char *enter_model(void);

/* Remove both. Tests that no other file is left. Returns the status for
 * main(). */
static inline int leave_model(void)
{
    remove(in_dir("in.gguf"));
    ok(leave_dir(), "the folder is empty again");
    return done_testing();
}

/* Tensors of the model of all shapes, in the order of its file. */
struct model_tensor {
    const char *name;
    uint32_t type;
    int64_t ne[4];
};
extern const struct model_tensor model_tensors[];

/* Write the model. Element `where' of tensor bad gets the value; bad -1: none.
 */
void write_model(const char *path, int bad, size_t where, float value);

/* Uneven importance data for all matrices of the model. NULL: out of memory. */
struct gguf_imatrix *model_imatrix(void);

struct setup {
    struct gguf_quant_params p;
    const char *type;
    unsigned threads; /* 0: no pool */
    bool forced;      /* use only kernels of the levels in cpu */
    uint32_t cpu;
    bool no_force, resume;
    bool sync; /* wait for the disk */
};
#define SETUP(t)                                                              \
    {                                                                         \
        .p = GGUF_QUANT_PARAMS_INIT, .type = t                                \
    }

/* Create and run a job. */
enum gguf_status quantize(const char *in, const char *out, struct setup s,
                          struct gguf_error *err);

#endif
