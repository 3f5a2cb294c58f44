/* SPDX-License-Identifier: MIT */
/* paths.h - check that a program does not overwrite its own files
 *
 * A struct gguf_paths is a set of the files that a program is about to read
 * and to write. Adding a file fails if the program would both read and write
 * it, or write it twice. So a clash is found before anything is touched.
 *
 * Two paths are the same if they lead to the same file (device and inode,
 * symbolic links followed), or if they are the same name in the same folder,
 * whether or not the file exists. Character devices, such as terminals and
 * /dev/null, are never the same; pipes are compared by name and folder only.
 *
 *     if (gguf_paths_create(&paths, NULL, &err) != GGUF_OK ||
 *         gguf_paths_add_input(paths, "notes.txt", "notes", &err) ||
 *         gguf_paths_add_output(paths, "report.json", "report", &err))
 *         return fail(err.message);
 *     output.paths = paths;
 *
 * Then pass the set to the functions that write models, such as
 * gguf_quant_run() (quant.h) and gguf_edit_apply() (edit.h), which check their
 * own files against it.
 *
 * One thread at a time may change a set.
 */
#ifndef GGUF_PATHS_H
#define GGUF_PATHS_H

#include <gguf/memory.h>
#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_paths;

/* Create an empty set.
 *
 * out         Receives the set. NULL after a failure.
 * allocator   Allocator of the set. It must outlive the set. NULL: malloc.
 *
 * Destroy *out with gguf_paths_destroy().
 *
 * GGUF_OK        *out is the set.
 * GGUF_E_NOMEM   Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_create(struct gguf_paths **out,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a set. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_paths_destroy(struct gguf_paths *p);

/* Add a file that the program reads. It may be added several times.
 *
 * p      The set.
 * path   Path of the file. Copied.
 * what   Role of the file for messages, such as "input" or "--imatrix".
 *        Copied.
 *
 * GGUF_OK          The file is in the set.
 * GGUF_E_INVALID   The program writes this file. The message names the file
 *                  and both roles: "'x.gguf' would be both input and output".
 * GGUF_E_NOMEM     Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_add_input(struct gguf_paths *p, const char *path, const char *what,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Add a file that the program writes.
 *
 * p      The set.
 * path   Path of the file. Copied.
 * what   Role of the file for messages. Copied.
 *
 * GGUF_OK          The file is in the set.
 * GGUF_E_INVALID   The program reads or writes this file already. The message
 *                  names the file and both roles.
 * GGUF_E_NOMEM     Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_add_output(struct gguf_paths *p, const char *path, const char *what,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Add a file that the program has open and must not overwrite, such as
 * standard input or standard output.
 *
 * p      The set.
 * fd     Descriptor of the file. A closed descriptor is ignored.
 * what   Role of the file for messages. Copied.
 *
 * GGUF_OK          The file is in the set.
 * GGUF_E_INVALID   The program writes this file.
 * GGUF_E_NOMEM     Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_add_input_fd(struct gguf_paths *p, int fd, const char *what,
                        struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
