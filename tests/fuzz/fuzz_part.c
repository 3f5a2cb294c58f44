/* SPDX-License-Identifier: MIT */
/* fuzz_part.c - parts of an evaluation are refused with a reason, or merged
 * with themselves, saved and loaded again
 *
 * Unless the first byte says otherwise, the checksum at the end is corrected,
 * so that the content is read.
 */
#include "config.h"
#include "gguf/digest.h"
#include "gguf/part.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { SUM = 32, AS_IT_IS = 0x80 };

static void make_good(uint8_t *p, size_t n)
{
    struct gguf_digest d = { .algo = GGUF_DIGEST_XXH3_128 };
    XXH128_canonical_t c;
    char hex[SUM + 1];
    if (n < SUM)
        return;
    XXH128_canonicalFromHash(&c, XXH3_128bits(p, n - SUM));
    memcpy(d.bytes, c.digest, sizeof c.digest);
    gguf_digest_format(&d, hex);
    memcpy(p + n - SUM, hex, SUM);
}

/* Both have equal chunks, and all numbers are finite. */
static void compare_chunks(const struct gguf_part *a,
                           const struct gguf_part *b)
{
    size_t n_done = 0;
    for (size_t i = 0; i < gguf_part_n_chunks(a); i++) {
        size_t n = 0, k = 0;
        const double *x = gguf_part_row_values(a, i, &n);
        const double *y = gguf_part_row_values(b, i, &k);
        MUST(!x == !y && n == k);
        n_done += x != NULL;
        for (size_t j = 0; x && j < n * gguf_part_n_row_values(a); j++)
            MUST(isfinite(x[j]) && !memcmp(&x[j], &y[j], sizeof *x));
        x = gguf_part_chunk_values(a, i);
        y = gguf_part_chunk_values(b, i);
        for (size_t j = 0; x && j < gguf_part_n_chunk_values(a); j++)
            MUST(isfinite(x[j]) && !memcmp(&x[j], &y[j], sizeof *x));
    }
    MUST(n_done == gguf_part_n_done(a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = { data, size };
    struct gguf_part *p, *back;
    struct gguf_error err;
    const uint8_t what = take(&in);
    const char *path = scratch_path("part");
    uint8_t *copy = malloc(in.n + 1);
    MUST(copy);
    if (in.n)
        memcpy(copy, in.p, in.n);
    if (!(what & AS_IT_IS))
        make_good(copy, in.n);
    scratch_write(path, copy, in.n);
    free(copy);
    gguf_error_clear(&err);
    const enum gguf_status st = gguf_part_load(&p, path, NULL, &err);
    if (st != GGUF_OK) {
        MUST(!p && err.status == st && err.message[0]);
        return 0;
    }
    MUST((gguf_part_merge(p, p, NULL) == GGUF_OK) == !gguf_part_n_done(p));
    path = scratch_path("again");
    MUST(gguf_part_save(p, path, true, NULL) == GGUF_OK);
    MUST(gguf_part_load(&back, path, NULL, NULL) == GGUF_OK);
    MUST(gguf_part_check_settings(p, back, NULL) == GGUF_OK);
    compare_chunks(p, back);
    gguf_part_destroy(p);
    gguf_part_destroy(back);
    return 0;
}

/* Seed: chunks 0 to n_chunks - 1 without every third, with some rows each. */
static void seed_part(size_t n_chunks, size_t n_heads, size_t n_values,
                      uint8_t what)
{
    struct gguf_part *p;
    const double v[64] = { 1, -2, 0.5, 1e300, 3 };
    size_t size;
    MUST(gguf_part_create(&p, n_chunks, n_heads, n_values, NULL, NULL) ==
         GGUF_OK);
    MUST(gguf_part_set_setting(p, "ctx_size", "64", NULL) == GGUF_OK);
    MUST(gguf_part_set_note(p, "file", "a", NULL) == GGUF_OK);
    for (size_t i = 0; i < n_chunks; i++)
        if (i % 3 != 2)
            MUST(gguf_part_add_chunk(p, i, v, v, i % 4, NULL) == GGUF_OK);
    MUST(gguf_part_save(p, scratch_path("seed"), true, NULL) == GGUF_OK);
    gguf_part_destroy(p);
    uint8_t *bytes = scratch_read(scratch_path("seed"), &size);
    struct fix *f = new_seed();
    fix_bytes(f, &what, 1);
    fix_bytes(f, bytes, size);
    free(bytes);
}

void fuzz_make_seeds(void)
{
    seed_part(1, 0, 1, 0);
    seed_part(7, 3, 4, 0);
    seed_part(12, 1, 8, 0);
    seed_part(5, 2, 1, AS_IT_IS);
}
