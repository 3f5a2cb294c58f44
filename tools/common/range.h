/* SPDX-License-Identifier: MIT */
/* range.h - reading a range "N", "A..B" or "A.." */
#ifndef TOOLS_RANGE_H
#define TOOLS_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Read text as a range of items counted from 0.
 *
 * "N"      The first N items: *first is 0, *n is N.
 * "A..B"   Items from A to B - 1.
 * "A.."    All items from A on: *n is 0.
 *
 * Returns false, with nothing set, if text is anything else, the range is
 * empty, or a number exceeds 2^32 - 1.
 */
bool range_parse(const char *text, uint64_t *first, uint64_t *n);

#endif
