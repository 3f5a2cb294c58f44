/* SPDX-License-Identifier: MIT */
/* precision.h - how the CPU computes, as options name it */
#ifndef TOOLS_COMMON_PRECISION_H
#define TOOLS_COMMON_PRECISION_H

#include "tools/common/opt.h"

extern const struct opt_word precision_words[]; /* enum gguf_precision */

#define PRECISION_HELP                                                        \
    "how products of weights are computed: exact (without this option), or "  \
    "faster with activations rounded to integers of 16 or 8 bits: int16, int8"

#define REPACK_HELP                                                           \
    "keep weights as products read them once they were packed, in so many "   \
    "bytes of memory; without SIZE, in what is free. No digit depends on it"

#define NO_FUSE_HELP                                                          \
    "norms, gates and sums go over memory one by one. No digit depends on it"

/* What activations and weights are in it, for people. */
const char *precision_says(unsigned precision);

#endif
