/* SPDX-License-Identifier: MIT */
/* seeds.c - the seeds of a target */
#include "config.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { MAX_SEEDS = 1000 };

static struct fix seed[MAX_SEEDS];
static size_t n;

struct fix *new_seed(void)
{
    if (n == MAX_SEEDS)
        exit(99);
    fix_init(&seed[n]);
    return &seed[n++];
}

void seed_text(const char *text)
{
    fix_bytes(new_seed(), text, strlen(text));
}

void seed_files(const void *front, size_t n_front, const void *back,
                size_t n_back)
{
    const struct fixture *tables[] = { fix_list("good"),
                                       fix_list("bad metadata"),
                                       fix_list("bad tensors") };
    for (int k = 0; k < 3; k++)
        for (const struct fixture *x = tables[k]; x->name; x++) {
            struct fix file, *s = new_seed();
            fix_init(&file);
            fix_make(x, &file);
            fix_bytes(s, front, n_front);
            fix_bytes(s, file.data, file.size);
            fix_bytes(s, back, n_back);
            fix_fini(&file);
        }
}

size_t n_seeds(void)
{
    return n;
}

const struct fix *get_seed(size_t i)
{
    return &seed[i];
}

void free_seeds(void)
{
    while (n)
        fix_fini(&seed[--n]);
}
