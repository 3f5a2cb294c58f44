/* SPDX-License-Identifier: MIT */
/* checkkern.h - runs every variant of a kernel against its C reference
 *
 * For each level of this machine the table is made with that level's mask.
 * Each slot that differs from the C table runs on the same seeded input as the
 * reference, with guard bytes round the output.
 */
#ifndef TESTS_CHECKKERN_H
#define TESTS_CHECKKERN_H

#include "tests/kern/kern.h"

struct check_options {
    uint64_t seed;
    const char *only;   /* part of a slot's name; NULL: all */
    unsigned rounds;    /* rounds of random input per slot */
    unsigned long rows; /* smallest number of rows to encode per slot */
    int bench;          /* print rates instead of testing */
};

/* One family: compare k, made for a level, with the C table ref. k is ref
 * itself for level "c" (when benchmarking). */
typedef void check_family_fn(const struct check_options *o, const char *level,
                             const struct gg_kern *ref,
                             const struct gg_kern *k);
check_family_fn check_codec;

int check_wanted(const struct check_options *o, const char *name);

/* Report one result: tap.h counts in one file only. */
void check_result(int good, const char *name, const char *what);

/* The random generator of all families. */
void test_seed(uint64_t seed);
uint64_t test_rnd(void);
uint64_t test_below(uint64_t n);

/* Bytes between guards. */
struct guarded {
    unsigned char *base, *p; /* base: all of them; p: the bytes between, at an
                              * odd address */
    size_t size;
};
struct guarded guarded_new(size_t size);
int guarded_intact(const struct guarded *g);
void guarded_free(struct guarded *g);

/* Fill n floats from distribution 0 .. TEST_N_DIST - 1, or TEST_TOP. From
 * TEST_DIST_FINITE on they include infinities and NaNs. */
#define TEST_DIST_FINITE 18
#define TEST_N_DIST      20
#define TEST_TOP         TEST_N_DIST /* many of the largest floats */
void test_floats(float *x, size_t n, unsigned dist);

/* Fill importances of a kind, 0 .. TEST_N_WEIGHT - 1. */
#define TEST_N_WEIGHT 10
void test_weights(float *w, size_t n, unsigned kind);

/* Processor time of this thread in seconds. */
double test_cpu_time(void);

#endif
