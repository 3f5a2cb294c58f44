/* SPDX-License-Identifier: MIT */
/* page.h - prints doc/architectures.md from the rows of the table */
#ifndef TESTS_FAMILY_PAGE_H
#define TESTS_FAMILY_PAGE_H

#include <stdio.h>

void page_print(FILE *out);

#endif
