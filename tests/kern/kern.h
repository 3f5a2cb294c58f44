/* SPDX-License-Identifier: MIT */
/* kern.h - levels, tables and golden vectors for tests of kernels */
#ifndef TESTS_KERN_H
#define TESTS_KERN_H

#include "kern/kern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Feature masks that this machine can run: C alone, then each level added. */
struct test_level {
    const char *name;
    uint32_t mask;
};
unsigned test_levels(struct test_level out[8]);

/* Call fn with the kernels of each level. */
void test_each_level(void (*fn)(const struct gg_kern *k, const char *level));

/* Is the n-th slow case to be run? All are, but with GGUF_TEST_SAMPLE=N, for
 * emulators, one in N. */
bool test_in_sample(unsigned n);

/* Split a line of tab-separated fields in place. Returns their number. */
unsigned test_fields(char *line, char **field, unsigned max);

/* XXH64 with seed 0; for floats, of their little-endian bytes. */
uint64_t test_hash(const void *p, size_t n);
uint64_t test_hash_floats(const float *x, size_t n);

#endif
