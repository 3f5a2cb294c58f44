/* SPDX-License-Identifier: MIT */
/* paths.h - what a run reads and writes, known before it begins
 *
 * A program that writes files notes here all that it is about to read and to
 * write. A file that is written may be neither read nor written by another
 * part of the run: the second mention of a file is refused, before anything is
 * touched. Names do not matter: a path stands for its file (device and inode,
 * symbolic links followed) and for its place (the entry of that name in that
 * folder), which exists even without a file; two paths are the same if either
 * is. Character devices, such as terminals and /dev/null, hold nothing that
 * could be overwritten and are never the same; of a pipe only the place
 * counts.
 *
 *     gguf_paths_create(&paths, NULL, err);
 *     gguf_paths_add_input(paths, "notes.txt", "notes", err);
 *     gguf_paths_add_output(paths, "report.json", "report", err);
 *     output.paths = paths; gguf_quant_run adds its own
 *
 * One thread at a time.
 */
#ifndef GGUF_PATHS_H
#define GGUF_PATHS_H

#include <gguf/memory.h>
#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_paths;

/* An empty set. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_create(struct gguf_paths **out,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_paths_destroy(struct gguf_paths *p);

/* The run reads path, or writes it; what is a word for messages, such as
 * "input" or "--imatrix". Both are copied. A file may be read several times.
 * GGUF_E_INVALID, with a message that names the file and both uses: "'x.gguf'
 * would be both input and output". GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_add_input(struct gguf_paths *p, const char *path, const char *what,
                     struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_paths_add_output(struct gguf_paths *p, const char *path, const char *what,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* The run has a file open, such as standard input or output, that must not be
 * overwritten. A closed descriptor is ignored. Since: 0.1 */
GGUF_API enum gguf_status
gguf_paths_add_input_fd(struct gguf_paths *p, int fd, const char *what,
                        struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
