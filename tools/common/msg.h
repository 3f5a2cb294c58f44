/* SPDX-License-Identifier: MIT */
/* msg.h - what a tool says, and how it ends
 *
 * Data goes to standard output, everything else here: one line per message,
 * "gguf-split: model.gguf: message", escaped, and one write where it is not
 * longer than 4096 bytes.
 */
#ifndef TOOLS_MSG_H
#define TOOLS_MSG_H

#include <gguf/status.h>

#include <stdbool.h>
#include <stdio.h>

#if defined(__GNUC__)
#define MSG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define MSG_PRINTF(f, a)
#endif

/* Exit statuses of every tool. */
enum { MSG_DONE = 0, MSG_FAILED = 1, MSG_USAGE = 2 };

/* First call of main: the name that messages begin with. Kept. A mapped file
 * that others cut off ends the program with a message and MSG_FAILED, from now
 * on; a limit on the size of files is an error of writing; and no file that is
 * opened takes the place of a closed standard stream. */
void msg_init(const char *tool);
const char *msg_tool(void);

/* Where several processes do one job: asked before each message. What it gives
 * stands after the tool's name; NULL: this process says nothing. */
typedef const char *msg_gate_fn(bool is_error);
void msg_set_gate(msg_gate_fn *gate);

/* Print an error about a file, or about none (NULL). Returns false, for its
 * caller to return. */
bool msg_error(const char *file, const char *fmt, ...) MSG_PRINTF(2, 3);
/* A word about what was done: the tool prints none with --quiet. */
void msg_info(const char *file, const char *fmt, ...) MSG_PRINTF(2, 3);
void msg_warn(const char *file, const char *fmt, ...) MSG_PRINTF(2, 3);

/* Print a failure of the library: its message, the byte offset where that does
 * not name it, and the option that helps (option_hint.h); for an output that
 * exists the one that every tool with outputs has. Returns false. */
bool msg_fail(const char *file, const struct gguf_error *err);

/* Close a stream of open_memstream. Memory that ran out, which only ferror
 * tells, ends the program with a message. */
void msg_close_memory(FILE *f);
/* p; NULL ends the program: out of memory. */
void *msg_must(void *p);

/* The array p of *room items (0: p may be NULL) of item_size bytes, with room
 * for at least n; sets *room. It comes from realloc. No memory ends the program
 * as above. */
void *msg_grow(void *p, size_t *room, size_t n, size_t item_size);

/* Flush standard output, for people to see; if it fails msg_exit says why. */
void msg_flush(void);

/* Last call of main: flushes and closes standard output, and turns a status of
 * 0 into 1, with a message, if not everything could be written. */
int msg_exit(int status);

#endif
