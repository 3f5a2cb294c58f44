/* SPDX-License-Identifier: MIT */
/* carried.h - are the texts and digests that the tests carry those of
 * ../shared/archs? */
#ifndef TESTS_FAMILY_CARRIED_H
#define TESTS_FAMILY_CARRIED_H

#include "tests/family/skeleton.h"

/* How far all outputs are from llama.cpp's (run_nmse), and whether the digest
 * is of those. false: they are not there. */
bool carried_outputs(const struct skeleton *s, const float *got, double *nmse,
                     bool *same);

/* How many models there are, and of them have a text that says the same. */
size_t carried_models(size_t *n_same);

/* Write the texts of all models there into a folder; with a digest those that
 * have one already, and those of a list that ends with NULL. An exit status. */
int carry(const char *dir, char **names);

#endif
