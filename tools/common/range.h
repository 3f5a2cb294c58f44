/* SPDX-License-Identifier: MIT */
/* range.h - which of many: "N", "A..B" or "A.." */
#ifndef TOOLS_RANGE_H
#define TOOLS_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* text as the first of them, counted from 0, and how many: "N" is N from 0 on,
 * "A..B" those from A up to, without, B, and "A.." has *n 0: all from A on.
 * false: it is none of these, asks for none, or has a number above 2^32 - 1;
 * then nothing is set. */
bool range_parse(const char *text, uint64_t *first, uint64_t *n);

#endif
