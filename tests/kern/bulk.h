/* SPDX-License-Identifier: MIT */
/* bulk.h - encoders and decoders over many rows of made numbers
 *
 * Six distributions, 32 rows of each, without importances, with positive ones
 * and with some that are zero; what is made of them is known by its XXH64. A
 * digest for each type is the XXH64 of those, in that order, eight bytes each.
 */
#ifndef TESTS_KERN_BULK_H
#define TESTS_KERN_BULK_H

#include "tests/kern/kern.h"

#include <stdbool.h>

/* Make the numbers. text: that of ../shared/golden/codec/bulk.tsv, whose
 * hashes are compared, or NULL. Is there one? */
bool bulk_init(const char *table);

/* Are the digests here those of the table? */
bool bulk_table_agrees(void);

/* Is there a digest of the type, by its index? */
bool bulk_has(int type);

/* Does a codec give what it says? wrong: what does not, or "". */
bool bulk_run(int type, const struct gg_codec_kern *k, char wrong[128]);

/* Print the digests of the table, as they are written in bulk.c. An exit
 * status. */
int bulk_print(void);

/* What this processor makes of an operation that is invalid becomes what an
 * x86-64 does. */
void bulk_name_nan(float *x, size_t n);

#endif
