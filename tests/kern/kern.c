/* SPDX-License-Identifier: MIT */
/* kern.c - levels and tables for tests of kernels */
#include "config.h"
#include "tests/kern/kern.h"
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

unsigned test_levels(struct test_level out[8])
{
    const uint32_t have = gg_kern_cpu_request(gg_kern_cpu_detect());
    uint32_t mask = 0;
    unsigned n = 0;
    out[n++] = (struct test_level){ "c", 0 };
    for (unsigned i = 0; i < gg_kern_cpu_n_levels; i++)
        if (have & gg_kern_cpu_levels[i].bit) {
            mask |= gg_kern_cpu_levels[i].bit;
            out[n++] = (struct test_level){ gg_kern_cpu_levels[i].name, mask };
        }
    return n;
}

void test_each_level(void (*fn)(const struct gg_kern *k, const char *level))
{
    struct test_level level[8];
    const unsigned n = test_levels(level);
    for (unsigned i = 0; i < n; i++) {
        struct gg_kern k;
        gg_kern_init(&k, level[i].mask);
        fn(&k, level[i].name);
    }
}

bool test_in_sample(unsigned n)
{
    const char *sample = getenv("GGUF_TEST_SAMPLE");
    const unsigned one_in = sample ? (unsigned)atoi(sample) : 1;
    return one_in < 2 || n % one_in == 0;
}

unsigned test_fields(char *line, char **field, unsigned max)
{
    unsigned n = 0;
    while (line && n < max) {
        field[n++] = line;
        line = strchr(line, '\t');
        if (line)
            *line++ = 0;
    }
    return n;
}

uint64_t test_hash(const void *p, size_t n)
{
    return XXH64(p, n, 0);
}

uint64_t test_hash_floats(const float *x, size_t n)
{
    uint8_t *le = malloc(4 * n + 1);
    for (size_t i = 0; i < n; i++)
        gg_bytes_store32le(le + 4 * i, gg_bytes_f32_bits(x[i]));
    uint64_t hash = test_hash(le, 4 * n);
    free(le);
    return hash;
}
