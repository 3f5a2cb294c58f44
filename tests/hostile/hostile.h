/* SPDX-License-Identifier: MIT */
/* hostile.h - files made to break readers, and what must be answered
 *
 * tests/hostile/files.txt has a row for each, of nine fields between tabs:
 *
 *     file      name, with a folder if it is a shard of a set
 *     expect    what opening and listing must answer: accept or reject
 *     reason    why
 *     class     of the defect
 *     certainty must, or policy where the specification is silent
 *     use       what tools that touch tensor data must answer, or -
 *     model     what loading for evaluation must answer, or -
 *     warn      yes: a warning is due
 *     extra     merge:ANSWER, imatrix:ANSWER, noraw:BYTE, or -
 *
 * Lines after it that begin with a blank say what is in the file, a word for
 * some bytes after another:
 *
 *     "text"       these characters; \22 is the byte 0x22
 *     0a1b         these bytes
 *     n19          a 64-bit number
 *     00*7         a byte, seven times
 *     of NAME      from here on @ means the file of that name, made before
 *     @20+49       49 bytes of it, from byte 20 on
 *     again 12+96  96 bytes, each as the one 12 before
 *     weights 64   64 bytes of small floats, whichever
 *     keys 60000, tensors 40000    as many, of distinct names
 *
 * carry.py makes the rows of ../shared/hostile, the files that these were first
 * written for; check-hostile compares them where they are there.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hostile {
    char *row;     /* the nine fields, no newline */
    char name[96]; /* the first of them */
    uint8_t *data;
    uint8_t *any; /* for each byte: 1 if it could as well be another */
    size_t size, cap;
};

/* All *n of them; NULL, and a line on standard output, if the rows cannot be
 * read. Aborts when memory runs out. */
struct hostile *hostile_read(size_t *n);
void hostile_free(struct hostile *h, size_t n);

/* Write them into a folder that is there, with expect.tsv: the rows. */
bool hostile_write(const char *dir);

/* The same in a new temporary folder: its path, valid until it is removed;
 * NULL, and a line on standard output, if that does not work. One at a time. */
const char *hostile_make(void);
void hostile_remove(void);

#endif
