/* SPDX-License-Identifier: MIT */
/* tap.h - test results in the Test Anything Protocol
 *
 *     int main(void)
 *     {
 *         ok(1 + 1 == 2, "addition works");
 *         return done_testing();
 *     }
 */
#ifndef TAP_H
#define TAP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#endif

static int tap_n, tap_bad;

/* Print one result. A failure is followed by its place and condition. */
#define ok(c, ...)                                                            \
    do {                                                                      \
        int c_ = !!(c);                                                       \
        tap_bad += !c_;                                                       \
        printf("%sok %d - ", c_ ? "" : "not ", ++tap_n);                      \
        printf(__VA_ARGS__);                                                  \
        putchar('\n');                                                        \
        if (!c_)                                                              \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #c);                  \
        fflush(stdout);                                                       \
    } while (0)

/* Print one result that is skipped, and the reason. */
#define skip(...)                                                             \
    do {                                                                      \
        printf("ok %d # SKIP ", ++tap_n);                                     \
        printf(__VA_ARGS__);                                                  \
        putchar('\n');                                                        \
    } while (0)

/* Print the plan, at the end. Returns the status for main(): 1 if a test
 * failed or none ran. */
static inline int done_testing(void)
{
#if defined(_WIN32) /* automake's driver takes no plan that ends in "\r\n" */
    fflush(stdout);
    (void)_setmode(1, _O_BINARY);
#endif
    printf("1..%d\n", tap_n);
    return tap_bad != 0 || tap_n == 0;
}

/* Path of a test vector in $GGUF_SHARED, which tests/Makefile.inc sets to
 * ../shared beside the source if that exists. Users do not have it. NULL:
 * missing, skip(). Static buffer. */
static inline const char *shared_path(const char *name)
{
    static char path[4096];
    const char *top = getenv("GGUF_SHARED");
    if (!top || !*top)
        return NULL;
    snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fclose(f);
    return path;
}

/* Small seeded generator (xorshift64*, Vigna 2016). */
static uint64_t tap_rng = UINT64_C(0x9E3779B97F4A7C15);

static inline uint64_t rnd64(void)
{
    tap_rng ^= tap_rng >> 12;
    tap_rng ^= tap_rng << 25;
    tap_rng ^= tap_rng >> 27;
    return tap_rng * UINT64_C(0x2545F4914F6CDD1D);
}

/* Seed the generator with a test's argument, if it has one, and print the
 * state. */
static inline void rnd_seed(int argc, char **argv)
{
    if (argc > 1)
        tap_rng ^= strtoull(argv[1], NULL, 0) << 1;
    printf("# seed state %#llx\n", (unsigned long long)tap_rng);
}

/* Uniform in [0, n), n > 0. */
static inline uint64_t rnd_below(uint64_t n)
{
    return rnd64() % n;
}

/* Uniform in [-1, 1), with 24 bits. */
static inline float rnd_f32(void)
{
    return (float)((int32_t)(rnd64() >> 40) - (1 << 23)) * 0x1p-23f;
}

#endif
