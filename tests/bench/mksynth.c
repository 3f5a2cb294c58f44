/* SPDX-License-Identifier: MIT */
/* mksynth.c - writes a model of a given size with random weights (synth.h)
 *
 *   mksynth SIZE TYPE OUT.gguf [SEED [VOCAB.gguf]]
 *
 * TYPE is a type of gguf-quantize, such as F16, BF16 or Q4_K_M. Memory does
 * not grow with the size of the model. OUT is replaced.
 */
#include "config.h"
#include "tests/bench/synth.h"

#include <stdio.h>
#include <stdlib.h>

static int print_usage(void)
{
    fprintf(stderr, "usage: mksynth SIZE TYPE OUT.gguf [SEED [VOCAB.gguf]]\n"
                    "SIZE is one of");
    for (size_t i = 0; synth_at(i); i++)
        fprintf(stderr, " %s", synth_at(i)->name);
    fprintf(stderr, "\n");
    return 2;
}

static enum gguf_status write_model(const struct synth_size *size,
                                    const struct gguf_recipe *recipe,
                                    const char *path, uint64_t seed,
                                    const char *vocab, struct gguf_error *err)
{
    struct gguf_file *f = NULL;
    struct synth *s = NULL;
    struct gguf_pool *pool = NULL;
    enum gguf_status st =
        vocab ? gguf_file_open(&f, vocab, NULL, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = synth_create(&s, size, seed, f, err);
    if (st == GGUF_OK)
        st = gguf_pool_create(&pool, NULL, err);
    if (st == GGUF_OK)
        st = synth_write(s, recipe, pool, path, err);
    gguf_pool_destroy(pool);
    synth_destroy(s);
    gguf_file_close(f);
    return st;
}

int main(int argc, char **argv)
{
    const struct synth_size *size = argc > 3 ? synth_find(argv[1]) : NULL;
    struct gguf_recipe *recipe;
    struct gguf_error err;
    char *end = "";
    const uint64_t seed = argc > 4 ? strtoull(argv[4], &end, 10) : 1;
    if (!size || argc > 6 || *end)
        return print_usage();
    enum gguf_status st = gguf_recipe_preset(&recipe, argv[2], NULL, &err);
    if (st == GGUF_OK)
        st = write_model(size, recipe, argv[3], seed,
                         argc > 5 ? argv[5] : NULL, &err);
    gguf_recipe_destroy(recipe);
    if (st != GGUF_OK)
        fprintf(stderr, "mksynth: %s: %s\n", argv[3], err.message);
    return st != GGUF_OK;
}
