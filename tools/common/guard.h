/* SPDX-License-Identifier: MIT */
/* guard.h - what a change of metadata must not break
 *
 * Programs that read a model need some keys, and that numbers fit the tensors.
 * Every tool that changes metadata asks here before it writes.
 */
#ifndef TOOLS_GUARD_H
#define TOOLS_GUARD_H

#include "tools/common/text.h"

#include <gguf/split.h>

struct guard {
    const char *name; /* name of the file in messages */
    const struct gguf_file *file;
    const struct gguf_meta *before, *after;
    const char *verdict; /* the last message where it would: NULL says that
                          * nothing was written */
    bool force;          /* what would break is a warning */
    bool broken;         /* guard_check: something would */
};

/* Prints a message for each fault of after that before does not have, for
 * programs that read the file. Returns whether the change may be made. Writes
 * no file and reads no tensor data; a failed check is a message too. */
bool guard_check(struct guard *g);

/* May key be given a value, even by force? false: a message says why not. */
bool guard_check_key(const char *name, const char *key);

/* guard_verify.c: errors that verify.h finds with after and not with before. */
void guard_verify(struct guard *g,
                  void (*report)(struct guard *g, const char *message));

#endif
