/* SPDX-License-Identifier: MIT */
/* fuzz.h - a fuzz target: a function that takes any bytes, and its first
 * inputs
 *
 * A target is one file, fuzz_NAME.c, that defines the two functions below.
 * With libFuzzer (./configure --enable-fuzz CC=clang) it becomes
 * tests/fuzz/fuzz-NAME, which `make fuzz' runs. With replay.c it becomes
 * tests/fuzz/check-NAME, which `make check' runs over its seeds and changed
 * copies of them. An input that once failed becomes a seed: written in C that
 * names the fault.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "gguf/split.h"
#include "tests/fix.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Make the seeds of this target, with new_seed() and the functions below. */
void fuzz_make_seeds(void);

/* Abort unless c holds. It must hold for every input. */
#define MUST(c)                                                               \
    do {                                                                      \
        if (!(c))                                                             \
            abort();                                                          \
    } while (0)

/* ---- seeds.c ---- */

/* Begin another seed, empty. */
struct fix *new_seed(void);

/* Add a text as a seed. */
void seed_text(const char *text);

/* Add every fixture as a seed, with n more bytes before (front) or after it. */
void seed_files(const void *front, size_t n_front, const void *back,
                size_t n_back);

/* Number of seeds. */
size_t n_seeds(void);
const struct fix *get_seed(size_t i);
void free_seeds(void);

/* ---- scratch.c: files for functions that take a path ---- */

/* Path of a file in a folder of this process, which is made at the first call
 * in $TMPDIR, /dev/shm or /tmp. Valid for four calls. */
const char *scratch_path(const char *name);
void scratch_write(const char *path, const void *data, size_t size);
/* Read a whole file. Free it with free(). */
uint8_t *scratch_read(const char *path, size_t *size);
/* Remove every file of the folder; scratch_fini() removes the folder, too. */
void scratch_clean(void);
void scratch_fini(void);

/* ---- taking an input apart ---- */

struct bytes {
    const uint8_t *p;
    size_t n;
};

/* Take the next byte; 0 after the end. */
static inline uint8_t take(struct bytes *b)
{
    if (!b->n)
        return 0;
    b->n--;
    return *b->p++;
}

/* ---- shards.c ---- */

/* Write the shards in an input (shards.c) to the scratch folder and open them;
 * NULL: refused. Afterwards `in' has the rest of the bytes before them. */
struct gguf_file *shards_open(struct bytes *in);

#endif
