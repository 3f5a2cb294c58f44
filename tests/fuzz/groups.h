/* SPDX-License-Identifier: MIT */
/* groups.h - files with tensors of interleaved types, and of their plain types,
 * as seeds */
#ifndef TESTS_FUZZ_GROUPS_H
#define TESTS_FUZZ_GROUPS_H

#include "tests/fix.h"

/* Append a file with a tensor of the interleaved type number no: two groups of
 * rows. Returns false after the last type. */
bool put_groups(struct fix *f, int no);
/* Append a file with two groups' number of rows of a plain type, number no of
 * those that can be put into groups. */
bool put_rows(struct fix *f, int no);

#endif
