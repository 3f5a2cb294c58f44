/* SPDX-License-Identifier: MIT */
/* guard.h - refusing metadata that other programs could not read
 *
 * Readers of a model need certain keys, and numbers that fit the tensors. Each
 * tool that changes metadata calls guard_check() before it writes.
 */
#ifndef TOOLS_GUARD_H
#define TOOLS_GUARD_H

#include "tools/common/text.h"

#include <gguf/split.h>

struct guard {
    const char *name; /* file name for messages */
    const struct gguf_file *file;
    const struct gguf_meta *before, *after;
    /* end of the last message if the change is refused; NULL: "nothing was
     * written" */
    const char *verdict;
    bool force;  /* warn about faults instead of refusing them */
    bool broken; /* set by guard_check(): there is a fault */
};

/* Check the metadata g->after, and print a message for each fault that
 * g->before does not have.
 *
 * A check that fails is a fault, too. The function writes no file and reads no
 * tensor data. Returns true if the change may be made: without faults, or with
 * force.
 */
bool guard_check(struct guard *g);

/* Check that key may be set at all, even by force. Returns false after a
 * message if not. */
bool guard_check_key(const char *name, const char *key);

/* guard_verify.c: call report for each error that verify.h finds with g->after
 * but not with g->before. */
void guard_verify(struct guard *g,
                  void (*report)(struct guard *g, const char *message));

#endif
