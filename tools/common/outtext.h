/* SPDX-License-Identifier: MIT */
/* outtext.h - a text that a tool writes to a file of its own
 *
 * It is collected in memory, and written when it is complete: a file appears
 * as outputs do (gguf/outfile.h), with what was there before in place until
 * then. A pipe or a character device, which cannot be replaced, is written to.
 */
#ifndef TOOLS_OUTTEXT_H
#define TOOLS_OUTTEXT_H

#include <gguf/outfile.h>

#include <stdio.h>

/* Zeroed but for fd, which is -1, is closed. */
struct outtext {
    FILE *f;   /* print here; NULL: closed */
    char *buf; /* what was printed */
    size_t n;
    struct gguf_outfile *file;
    int fd; /* of a pipe or device; -1: it is a file */
};
#define OUTTEXT_INIT                                                          \
    {                                                                         \
        NULL, NULL, 0, NULL, -1                                               \
    }

/* Before the work, so that it is not done for nothing. force: a regular file is
 * replaced. GGUF_E_EXIST, GGUF_E_INVALID (a folder, a disk), GGUF_E_IO,
 * GGUF_E_NOMEM. */
enum gguf_status outtext_open(struct outtext *o, const char *path, int force,
                              struct gguf_error *err);

/* Write what was printed, and close. A closed pipe is GGUF_E_IO. */
enum gguf_status outtext_commit(struct outtext *o, struct gguf_error *err);

/* Discard it. Fine on a closed one. */
void outtext_abort(struct outtext *o);

#endif
