/* SPDX-License-Identifier: MIT */
/* replay.c - runs a target over its seeds, without a fuzzer
 *
 *   check-NAME               its seeds, and changed copies of them
 *   check-NAME FILE...       these inputs
 *   check-NAME --seeds DIR   write the seeds as files, for a fuzzer
 */
#include "config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"

/* Number of changed copies of all seeds; smaller for slow targets. */
#ifndef FUZZ_CHANGED
#define FUZZ_CHANGED 4000
#endif

enum {
    SMALL = 32768 /* largest seed in bytes that is changed */
};

/* Run on a copy of exactly this size, so that a sanitizer sees a read beyond.
 */
static void run_input(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

/* Run on s with some bytes changed, cut or doubled. */
static void run_changed(const struct fix *s)
{
    static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
    size_t n = s->size;
    uint8_t *b = malloc(2 * n + 1);
    if (n)
        memcpy(b, s->data, n);
    for (uint64_t k = 1 + rnd_below(4); k && n; k--) {
        size_t at = (size_t)rnd_below(n);
        switch (rnd_below(4)) {
        case 0: b[at] = odd[rnd_below(sizeof odd)]; break;
        case 1: b[at] ^= (uint8_t)(1u << rnd_below(8)); break;
        case 2: n = at; break;
        default:
            if (n <= s->size) {
                memmove(b + at + 1, b + at, n - at);
                n++;
            }
        }
    }
    run_input(b, n);
    free(b);
}

static int write_seeds(const char *dir)
{
    for (size_t i = 0; i < n_seeds(); i++) {
        const struct fix *s = get_seed(i);
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%03zu", dir, i);
        FILE *f = fopen(path, "wb");
        if (!f || (s->size && fwrite(s->data, 1, s->size, f) != s->size) ||
            fclose(f)) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

static int run_file(const char *path)
{
    static uint8_t b[1 << 24];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t n = fread(b, 1, sizeof b, f);
    fclose(f);
    run_input(b, n);
    printf("%s: %zu bytes\n", path, n);
    return 0;
}

int main(int argc, char **argv)
{
    size_t n = 0, small = 0;
    fuzz_make_seeds();
    if (argc == 3 && !strcmp(argv[1], "--seeds"))
        return write_seeds(argv[2]);
    if (argc > 1) {
        int bad = 0;
        for (int i = 1; i < argc; i++)
            bad |= run_file(argv[i]);
        return bad;
    }
    for (size_t i = 0; i < n_seeds(); i++) {
        run_input(get_seed(i)->data, get_seed(i)->size);
        small += get_seed(i)->size < SMALL;
    }
    ok(n_seeds() > 2 && small, "%zu seeds are survived", n_seeds());
    const size_t most =
        getenv("GGUF_TEST_LONG") ? 40 * FUZZ_CHANGED : FUZZ_CHANGED;
    size_t each = small ? 1 + most / small : 0;
    for (size_t i = 0; i < n_seeds(); i++)
        for (size_t k = 0; k < each && get_seed(i)->size < SMALL; k++, n++)
            run_changed(get_seed(i));
    ok(n >= most, "and %zu changed ones", n);
    free_seeds();
    return done_testing();
}
