/* SPDX-License-Identifier: MIT */
/* hostile.h - files made to break readers, and the answers that they must get
 *
 * tests/hostile/files.txt has a row for each, of nine fields between tabs:
 *
 *     file      name, with a folder if it is a shard of a set
 *     expect    answer of opening and listing: accept or reject
 *     reason    reason of that answer
 *     class     class of the defect
 *     certainty must, or policy where the specification is silent
 *     use       answer of tools that read tensor data, or -
 *     model     answer of loading for evaluation, or -
 *     warn      yes: a warning is expected
 *     extra     merge:ANSWER, imatrix:ANSWER, noraw:BYTE, or -
 *
 * Lines after the row that begin with a blank give the content of the file,
 * word by word:
 *
 *     "text"       these characters; \22 is the byte 0x22
 *     0a1b         these bytes
 *     n19          a 64-bit number
 *     00*7         a byte, seven times
 *     of NAME      from here on @ means the file of that name, made before
 *     @20+49       49 bytes of it, from byte 20 on
 *     again 12+96  96 bytes, each equal to the byte 12 before
 *     weights 64   64 bytes of small floats, of any values
 *     keys 60000, tensors 40000    n keys or tensors with distinct names
 *
 * generate.py makes the rows from ../shared/hostile, for which they were first
 * written; check-hostile compares both if that is there.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hostile {
    char *row;     /* the nine fields, without a newline */
    char name[96]; /* the first field */
    uint8_t *data;
    uint8_t *any; /* 1 for each byte that may have any value */
    size_t size, cap;
};

/* Read all *n files. NULL: the rows are malformed, which is printed. Aborts if
 * memory runs out. */
struct hostile *hostile_read(size_t *n);
void hostile_free(struct hostile *h, size_t n);

/* Write the files and expect.tsv, the rows, to an existing folder. */
bool hostile_write(const char *dir);

/* Write the files to a new temporary folder. Returns its path, valid until it
 * is removed; NULL: failed, which is printed. One folder at a time. */
const char *hostile_make(void);
void hostile_remove(void);

#endif
