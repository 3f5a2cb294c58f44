/* SPDX-License-Identifier: MIT */
/* os_program.h - the system as programs see it: streams, signals, terminals
 *
 * For the tools only: these functions change the state of the process, or keep
 * some of their own. A function that returns int returns 0, or -1 with the
 * reason in errno, as in os.h.
 *
 * Threads: the main thread calls these functions, unless one says
 * otherwise. */
#ifndef GG_BASE_OS_OS_PROGRAM_H
#define GG_BASE_OS_OS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Descriptors of the standard streams. */
enum { GG_OS_STDIN = 0, GG_OS_STDOUT = 1, GG_OS_STDERR = 2 };

/* ---- the process ---- */

/* Prepare the process of a program.
 *
 * bus_error  Line that the program ends with if a mapped file becomes shorter,
 *            or its disk fails, while it is read. Must outlive the program.
 * status     Exit status of that end.
 *
 * Exceeding the limit on file sizes becomes an error of writing instead of a
 * signal. A standard stream that is closed is opened, so that no other file
 * takes its place. Windows: EXCEPTION_IN_PAGE_ERROR is the error; standard
 * streams are binary, and the console takes UTF-8 and escape sequences.
 * Standard output to a console has a buffer, which fflush() writes. */
void gg_os_program_begin(const char *bus_error, int status);

/* Make the arguments of main() UTF-8. Call this before they are used. Windows:
 * those of GetCommandLineW(). An argument with '*' or '?' outside quotes
 * becomes the paths that match it, if there are any, as shells do elsewhere.
 * POSIX: does nothing. */
void gg_os_program_arguments(int *argc, char ***argv);

/* Raise the limit on open files as far as the user may. Windows:
 * _setmaxstdio(). */
void gg_os_program_raise_limits(void);

/* Let another process hold the files that are open now until this one has
 * ended. The process that closes the last descriptor of a file without a name
 * waits until the system has freed its blocks: about 0.1 s for each gigabyte
 * in the page cache. After a stopped job nothing depends on that. Call this
 * once, before the files are closed; any thread may. The other process holds
 * no standard stream. If it cannot be made, closing takes its usual time.
 * Windows: does nothing. */
void gg_os_program_defer_close(void);

/* ---- stopping ---- */

/* Call fn(number) once when the user or the system asks the program to end,
 * with the number of the signal. fn only sets a variable of type sig_atomic_t.
 * Signals that the program's parent ignores stay ignored. Windows: Ctrl-C,
 * Ctrl-Break and the closing of the console, on a thread of their own. */
void gg_os_program_catch_end(void (*fn)(int number));
/* End as by that signal, without catching it. Returns if the process blocks
 * it. Windows: ExitProcess() with 128 + number. */
void gg_os_program_raise(int number);

/* ---- streams ---- */

/* Open a file, pipe or device as a sequence of bytes, for reading or writing.
 * Waits for the other end of a pipe. Returns a descriptor, or -1. Any
 * thread. Windows: CreateFileW(); it does not wait. */
int gg_os_stream_fd(const char *path, bool writes);
/* Write size bytes at the position of a descriptor. EPIPE: the reader of a
 * pipe has closed it; no signal is raised. Windows: WriteFile(). */
int gg_os_stream_write(int fd, const void *data, size_t size);
/* Get another descriptor of standard input, or -1. Windows: _dup(). */
int gg_os_stream_stdin(void);
/* Discard later output of a stream. Windows: it goes to NUL. */
int gg_os_stream_silence(FILE *f);

/* Open a stream that writes to memory. End it with gg_os_stream_memory_end()
 * and the same text and size. NULL: out of memory. Windows: a temporary
 * file. */
FILE *gg_os_stream_memory(char **text, size_t *size);
/* Close that stream. *text receives all that was written and a NUL, for
 * free(), *size its bytes without the NUL. */
int gg_os_stream_memory_end(FILE *f, char **text, size_t *size);

/* ---- terminals ---- */

/* Does the descriptor lead to a terminal? Windows: GetConsoleMode(). */
bool gg_os_terminal_is(int fd);
/* Does the terminal of a descriptor take escape sequences for colours? POSIX:
 * yes if TERM names a terminal other than "dumb". Windows: if the console has
 * them on, as it does after gg_os_program_begin() from Windows 10 on. */
bool gg_os_terminal_has_colours(int fd);
/* Columns of the terminal of a descriptor; 0: unknown, or not a terminal.
 * Windows: GetConsoleScreenBufferInfo(). */
int gg_os_terminal_columns(int fd);

/* ---- names ---- */

/* Does the pattern of a shell match all of text? '*' and '?' match a '/', too.
 * Any thread. Windows: own code with the rules of fnmatch(). */
bool gg_os_name_matches(const char *pattern, const char *text);

/* Paths that match a pattern. */
struct gg_os_paths {
    char **path;
    size_t n;
};
/* Find the paths that match the pattern of a shell, in its order. strict: a
 * folder that cannot be read is a failure. ENOENT: none matches. Free paths
 * with gg_os_paths_free(), but not after a failure. Windows: FindFirstFile()
 * and gg_os_name_matches(). */
int gg_os_paths_find(struct gg_os_paths *paths, const char *pattern,
                     bool strict);
void gg_os_paths_free(struct gg_os_paths *paths);

/* Can this user create files in a folder? 0: yes. Windows: the folder is
 * there; lists of rights decide when a file is created. */
int gg_os_can_write(const char *folder);
/* Folder for temporary files: TMPDIR or "/tmp". Windows: GetTempPath(). */
const char *gg_os_temporary_folder(void);
/* Create a folder that only this user can enter. path ends in "XXXXXX", which
 * becomes a free name. Windows: the folder has the rights of its parent. */
int gg_os_make_private_folder(char *path);

/* ---- libraries ---- */

/* Load a library at run time, for the rest of the process. NULL: it cannot be
 * loaded. Windows: LoadLibraryExW(), which does not look in the current
 * folder. */
void *gg_os_library_load(const char *name);
/* Address of a function of the library, for memcpy() to a pointer to
 * functions. NULL: the name is unknown. Windows: GetProcAddress(). */
void *gg_os_library_find(void *library, const char *name);

#endif
