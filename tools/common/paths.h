/* SPDX-License-Identifier: MIT */
/* paths.h - paths that a tool reads and writes, recorded before it writes
 *
 * The rule is the library's (gguf/paths.h): nothing that is read may be
 * written. These functions add messages and standard streams. If two paths
 * clash, the program ends with a message and MSG_FAILED before anything is
 * written.
 */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

#include <gguf/file.h>
#include <gguf/paths.h>

#include <stdbool.h>

/* Create a set that contains standard output and error, if they are files.
 * Never returns NULL. */
struct gguf_paths *paths_new(void);

/* End the program with a message if path is an address (remote.h); for tools
 * that do not read from servers. path may be NULL. */
void paths_require_local(const char *path);

/* Record a path that will be read or written.
 *
 * path   The path, or NULL: nothing is recorded. "-" is standard input. An
 *        address ends the program.
 * what   Name for messages: the option, or a word such as "input".
 */
void paths_read(struct gguf_paths *p, const char *path, const char *what);
void paths_write(struct gguf_paths *p, const char *path, const char *what);

/* Check that the output path can be written, before hours of work are done for
 * it: its folder must be writable, and an existing path such as /dev/full must
 * be a regular file. path may be NULL. Returns false after a message. */
bool paths_can_write(const char *path);

/* Record all files of the model at path; of a split model all shards that
 * exist. */
void paths_read_model(struct gguf_paths *p, const char *path,
                      const struct gguf_file_params *params, const char *what);

#endif
