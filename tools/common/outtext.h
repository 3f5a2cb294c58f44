/* SPDX-License-Identifier: MIT */
/* outtext.h - a text output file of a tool
 *
 * The text is collected in memory and written when it is complete. The file
 * appears under its name then, as all outputs do (gguf/outfile.h); an existing
 * file stays until that moment. A pipe or character device cannot be replaced
 * and is written to.
 */
#ifndef TOOLS_OUTTEXT_H
#define TOOLS_OUTTEXT_H

#include <gguf/outfile.h>

#include <stdio.h>

/* Zeroed with fd -1 (OUTTEXT_INIT): closed. */
struct outtext {
    FILE *f;   /* stream to print to; NULL: closed */
    char *buf; /* text that was printed */
    size_t n;
    struct gguf_outfile *file;
    int fd; /* descriptor of a pipe or device; -1: it is a file */
};
#define OUTTEXT_INIT                                                          \
    {                                                                         \
        NULL, NULL, 0, NULL, -1                                               \
    }

/* Open an output; call it before the work begins, so that an unusable path is
 * noticed in time.
 *
 * force   Replace a regular file that exists.
 *
 * GGUF_E_EXIST     The file exists.
 * GGUF_E_INVALID   The path is a folder or a disk.
 * GGUF_E_IO        The file cannot be written.
 * GGUF_E_NOMEM     Memory ran out.
 */
enum gguf_status outtext_open(struct outtext *o, const char *path, int force,
                              struct gguf_error *err);

/* Write the text and close. A closed pipe is GGUF_E_IO. */
enum gguf_status outtext_commit(struct outtext *o, struct gguf_error *err);

/* Discard the text and close. Does nothing on a closed one. */
void outtext_abort(struct outtext *o);

#endif
