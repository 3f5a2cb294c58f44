/* SPDX-License-Identifier: MIT */
/* fuzz.h - what every target has: a function that takes any bytes, and the
 * inputs to begin with
 *
 * A target is one file, fuzz_NAME.c, that defines the two functions below.
 * With libFuzzer (./configure --enable-fuzz CC=clang) it becomes
 * tests/fuzz/fuzz-NAME, which `make fuzz` runs; with replay.c it becomes
 * tests/fuzz/check-NAME, which `make check` runs over its seeds and changed
 * copies of them. An input that once went wrong is a seed: written in C that
 * says what is wrong about it.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "gguf/split.h"
#include "tests/fix.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Make the seeds of this target, with new_seed and the functions below. */
void fuzz_make_seeds(void);

/* What must hold whatever the input is. */
#define MUST(c)                                                               \
    do {                                                                      \
        if (!(c))                                                             \
            abort();                                                          \
    } while (0)

/* ---- seeds.c ---- */

/* Another input, empty so far. */
struct fix *new_seed(void);

/* One that is this text. */
void seed_text(const char *text);

/* Every fixture, with n more bytes before (front) or after it. */
void seed_files(const void *front, size_t n_front, const void *back,
                size_t n_back);

/* The inputs made so far. */
size_t n_seeds(void);
const struct fix *get_seed(size_t i);
void free_seeds(void);

/* ---- scratch.c: files for what can only be had from a path ---- */

/* A path in a folder of this process, made when first asked for, in $TMPDIR,
 * /dev/shm or /tmp. Static buffers, used again after the fourth call. */
const char *scratch_path(const char *name);
void scratch_write(const char *path, const void *data, size_t size);
/* The whole file, from malloc. */
uint8_t *scratch_read(const char *path, size_t *size);
/* Remove every file of the folder; scratch_fini the folder too. */
void scratch_clean(void);
void scratch_fini(void);

/* ---- taking an input apart ---- */

struct bytes {
    const uint8_t *p;
    size_t n;
};

/* The next byte, or 0 after the end. */
static inline uint8_t take(struct bytes *b)
{
    if (!b->n)
        return 0;
    b->n--;
    return *b->p++;
}

/* ---- shards.c ---- */

/* The shards in an input (shards.c), written to the scratch folder and opened;
 * NULL if that fails. in becomes what is left of what comes before them. */
struct gguf_file *shards_open(struct bytes *in);

#endif
