/* SPDX-License-Identifier: MIT */
/* numbers.h - descriptions of a tensor's numbers
 *
 *     TERM & TERM ...          the numbers of the terms, one after another
 *     SOURCE FUNCTION ...      a term: the numbers of a tensor of the folder
 *     SOURCE: LEFT -> RIGHT; RIGHT ...
 *                              a term: these numbers in another order
 *     0                        zeros, up to the end
 *
 * LEFT names the dimensions of SOURCE, the slowest first. A dimension with
 * several axes is in parentheses: (h p=2 d=4) are h heads of two parts of four
 * rows; h gets the quotient. RIGHT has the same axes in the order of the file,
 * each in full, or with some of its indices: p[1], r[32:48], r[48:],
 * h[0,2,1,3]. FUNCTION follows a SOURCE without axes or a RIGHT:
 *
 *     +1 *0.5          add, multiply
 *     *p:1,-1          multiply by a number for each index of axis p
 *     *=NAME           multiply by the same element of another tensor
 *     exp, -exp        e^x, -e^x
 *     ternary          -1, 0 or 1 times the mean magnitude of SOURCE
 *
 * In SOURCE, % stands for the layer; a SOURCE with @ is one term for each
 * expert. Each number is computed from its index alone: this is the definition
 * that lib/convert/describe/axes.c is compared with.
 */
#ifndef TESTS_CONVERT_NUMBERS_H
#define TESTS_CONVERT_NUMBERS_H

#include "tests/convert/folder.h"

/* Does x have the n numbers that the text describes, in layer il? Prints the
 * difference, or the malformed text. */
bool numbers_equal(const char *text, const struct folder *f, int il,
                   const float *x, uint64_t n);

/* Write a name: % in pattern becomes il, @ becomes ie. */
void numbers_name(char out[160], const char *pattern, int il, int ie);

#endif
