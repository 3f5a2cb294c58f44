/* fuzz.h - what every target has: a function that takes any bytes
 *
 * A target is one file that defines LLVMFuzzerTestOneInput. With libFuzzer
 * (./configure --enable-fuzz --enable-asan --enable-ubsan CC=clang) it becomes
 * tests/fuzz/fuzz-NAME; with replay.c it becomes tests/fuzz/check-NAME, which
 * make check runs over the fixtures and what can be made of them.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the input is. */
#define MUST(c)                                                               \
    do {                                                                      \
        if (!(c))                                                             \
            abort();                                                          \
    } while (0)

#endif
