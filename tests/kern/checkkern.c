/* SPDX-License-Identifier: MIT */
/* checkkern.c - runs every variant of every kernel against its C reference
 *
 *   checkkern [--seed N] [--only NAME] [--rounds N] [--rows N] [--bench]
 *
 * Without options: a sample with a constant seed, for `make check'. A longer
 * test is --rounds 10000 --seed $RANDOM; --rows 500000 encodes that number of
 * rows per type and instruction set (14.5 million in all, some 15 minutes), as
 * `make check-long' does (GGUF_TEST_LONG). --bench prints rates.
 */
#include "config.h"
#include "tests/kern/checkkern.h"
#include "tests/tap.h"

#include <time.h>

int check_wanted(const struct check_options *o, const char *name)
{
    return !o->only || strstr(name, o->only);
}

void check_result(int good, const char *name, const char *what)
{
    ok(good, "%s %s", name, what);
}

#define GUARD 64

struct guarded guarded_new(size_t size)
{
    struct guarded g = { malloc(size + 2 * GUARD + 1), NULL, size };
    memset(g.base, 0xa5, size + 2 * GUARD + 1);
    g.p = g.base + GUARD + 1;
    return g;
}

int guarded_intact(const struct guarded *g)
{
    for (size_t i = 0; i < GUARD; i++)
        if (g->base[i + 1] != 0xa5 || g->p[g->size + i] != 0xa5)
            return 0;
    return 1;
}

void guarded_free(struct guarded *g)
{
    free(g->base);
}

double test_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static check_family_fn *const families[] = { check_codec };

static void parse_options(struct check_options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--bench"))
            o->bench = 1;
        else if (!strcmp(argv[i], "--seed") && next)
            o->seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--only") && next)
            o->only = argv[++i];
        else if (!strcmp(argv[i], "--rounds") && next)
            o->rounds = (unsigned)strtoul(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--rows") && next)
            o->rows = strtoul(argv[++i], NULL, 0);
        else
            fprintf(stderr, "checkkern: unknown option %s\n", argv[i]);
    }
}

int main(int argc, char **argv)
{
    struct check_options o = { .seed = 1, .rounds = 40 };
    if (getenv("GGUF_TEST_LONG"))
        o.rows = 500000;
    parse_options(&o, argc, argv);
    test_seed(o.seed);
    printf("# seed %llu, %u rounds\n", (unsigned long long)o.seed, o.rounds);
    struct test_level level[8];
    unsigned n = test_levels(level);
    static struct gg_kern ref, k;
    gg_kern_init(&ref, 0);
    for (unsigned i = o.bench ? 0 : 1; i < n; i++) {
        gg_kern_init(&k, level[i].mask);
        for (size_t f = 0; f < sizeof families / sizeof *families; f++)
            families[f](&o, level[i].name, &ref, &k);
    }
    if (o.bench)
        return 0;
    if (!tap_n)
        skip("there are the C kernels only, in this build or on this machine");
    return done_testing();
}
