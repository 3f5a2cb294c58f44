/* SPDX-License-Identifier: MIT */
/* msg.h - messages of a tool, and its exit status
 *
 * Data goes to standard output, messages go to standard error. A message is
 * one line, "gguf-split: model.gguf: message", with foreign text escaped. Up
 * to 4096 bytes are written by one system call.
 */
#ifndef TOOLS_MSG_H
#define TOOLS_MSG_H

#include <gguf/status.h>

#include <stdbool.h>
#include <stdio.h>

#define MSG_PRINTF(f, a) GGUF_PRINTF(f, a)

/* Exit statuses of every tool. */
enum { MSG_DONE = 0, MSG_FAILED = 1, MSG_USAGE = 2 };

/* Initialise messages; must be the first call of main. tool is the name that
 * messages begin with; it must outlive the program.
 *
 * It also prepares the process: if another program truncates a mapped file,
 * this program ends with a message and MSG_FAILED. Exceeding the limit on file
 * sizes is an error of writing instead of a signal. A standard stream that is
 * closed is opened, so that no other file takes its place.
 */
void msg_init(const char *tool);
const char *msg_tool(void);

/* Function that decides whether this process prints a message, for several
 * processes that do one job. It returns text to put after the tool's name, or
 * NULL to drop the message. */
typedef const char *msg_gate_fn(bool is_error);
void msg_set_gate(msg_gate_fn *gate);

/* Print an error about a file, or about no file (NULL). Returns false, for the
 * caller to return. */
bool msg_error(const char *file, const char *fmt, ...) MSG_PRINTF(2, 3);
/* Print a note about the result of the work. Tools print no notes with
 * --quiet. */
void msg_info(const char *file, const char *fmt, ...) MSG_PRINTF(2, 3);
void msg_warn(const char *file, const char *fmt, ...) MSG_PRINTF(2, 3);

/* Print a failure of the library: its message, the byte offset if the message
 * does not have it, and the option that helps (option_hint.h). If an output
 * exists, this is --force. Returns false. */
bool msg_fail(const char *file, const struct gguf_error *err);

/* Open a stream that writes to memory. Close it with msg_close_memory(), which
 * sets *text, for free(), and *size. If memory runs out, the program ends with
 * a message. */
FILE *msg_open_memory(char **text, size_t *size);
void msg_close_memory(FILE *f, char **text, size_t *size);
/* Returns p. If p is NULL the program ends: out of memory. */
void *msg_must(void *p);
/* Copy a text, or n bytes and a NUL, for free(). */
char *msg_copy(const char *text);
char *msg_copy_n(const char *bytes, size_t n);

/* Grow the array p of *room items of item_size bytes to at least n items, and
 * set *room. p may be NULL if *room is 0. The memory comes from realloc(). If
 * memory runs out the program ends with a message. */
void *msg_grow(void *p, size_t *room, size_t n, size_t item_size);

/* Flush standard output so that it appears at once. msg_exit() reports a
 * failure. */
void msg_flush(void);

/* Flush and close standard output; must be the last call of main. Returns
 * status, or 1 after a message if status is 0 but not everything could be
 * written. */
int msg_exit(int status);

#endif
