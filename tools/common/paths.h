/* SPDX-License-Identifier: MIT */
/* paths.h - what a tool reads and writes, noted before it writes
 *
 * The rule is the library's (gguf/paths.h); here are its messages and the
 * streams. A clash ends the program with a message and MSG_FAILED: nothing was
 * written yet.
 */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

#include <gguf/file.h>
#include <gguf/paths.h>

#include <stdbool.h>

/* A set that has standard output and error, if they are files. Never NULL. */
struct gguf_paths *paths_new(void);

/* What is no file but an address (remote.h) ends the program, with a message
 * that says so: for tools that do not read from servers. path may be NULL. */
void paths_require_local(const char *path);

/* path NULL: nothing is noted. An address: paths_require_local. "-": standard
 * input. what: the option, or a word such as "input". */
void paths_read(struct gguf_paths *p, const char *path, const char *what);
void paths_write(struct gguf_paths *p, const char *path, const char *what);

/* Hours of work are not begun for an output in a folder that cannot be written
 * to, or for what is there and no file, such as /dev/full. path may be NULL.
 * false: a message was printed. */
bool paths_can_write(const char *path);

/* All files of the model path: of a set, the shards that are there. */
void paths_read_model(struct gguf_paths *p, const char *path,
                      const struct gguf_file_params *params, const char *what);

#endif
