/* SPDX-License-Identifier: MIT */
/* os_command_line.h - the command line of Windows as arguments
 *
 * A program of Windows gets one text, and splits it itself. The rules are those
 * of Microsoft's C library ("Parsing C command-line arguments"). This code
 * calls no system, so that tests run anywhere.
 *
 * Threads: any. */
#ifndef GG_BASE_OS_OS_COMMAND_LINE_H
#define GG_BASE_OS_OS_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct gg_os_word {
    char *text;
    bool is_pattern; /* has a '*' or '?' outside quotes */
};

/* Split a line into words: the program, then its arguments.
 *
 * text   strlen(line) + 2 bytes, for the words' texts
 * words  strlen(line) / 2 + 2 words
 *
 * Returns the number of words, at least 1. */
size_t gg_os_command_line_split(const char *line, char *text,
                                struct gg_os_word *words);

#endif
