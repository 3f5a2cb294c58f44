/* SPDX-License-Identifier: MIT */
/* check-range.c - the range coder: decisions are read back as written, take
 * about their entropy in bits, and any bytes can be read */
#include "config.h"
#include "eval/range_coder.h"
#include "tests/model/gen.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000, ROOM = 2 * N };
static uint8_t out[ROOM], kept[ROOM];
static bool bit[N];
static uint32_t even[N];

static const struct gg_range_coder_odds start = { 32768, 0 };

static void draw_decisions(double p)
{
    for (int i = 0; i < N; i++) {
        bit[i] = rnd_below(1 << 20) < p * (1 << 20);
        even[i] = (uint32_t)rnd_below(1u << (i % 20));
    }
}

static size_t write_all(size_t room, bool *full, bool with_even)
{
    struct gg_range_coder_odds odds = start;
    struct gg_range_coder_writer w;
    gg_range_coder_write_begin(&w, out, room);
    for (int i = 0; i < N; i++) {
        gg_range_coder_write(&w, &odds, bit[i]);
        if (with_even && i % 16 == 0)
            gg_range_coder_write_even(&w, even[i], (unsigned)i % 20);
    }
    const uint8_t *end = gg_range_coder_write_end(&w);
    *full = w.full;
    return (size_t)(end - out);
}

static size_t n_differ(size_t size, bool with_even)
{
    struct gg_range_coder_odds odds = start;
    struct gg_range_coder_reader r;
    size_t n = 0;
    gg_range_coder_read_begin(&r, out, size);
    for (int i = 0; i < N; i++) {
        n += gg_range_coder_read(&r, &odds) != bit[i];
        if (with_even && i % 16 == 0)
            n += gg_range_coder_read_even(&r, (unsigned)i % 20) != even[i];
    }
    return n;
}

static void check_odds(double p)
{
    bool full;
    draw_decisions(p);
    const size_t with = write_all(ROOM, &full, true);
    ok(!full && !n_differ(with, true),
       "odds %g: the written decisions are read back", p);
    const size_t size = write_all(ROOM, &full, false);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += bit[i];
    const double x = (double)n / N;
    const double least =
        n && n < N ? -N * (x * log2(x) + (1 - x) * log2(1 - x)) / 8 : 0;
    ok((double)size <= 1.03 * least + 40 && !n_differ(size, false),
       "%zu bytes, %.0f at least", size, least);
    memcpy(kept, out, size);
    memset(out, 0xa5, sizeof out);
    size_t n_bad = 0;
    for (size_t room = 0; room < size; room += 1 + size / 50) {
        const size_t took = write_all(room, &full, false);
        n_bad += !full || took > room || out[room] != 0xa5;
        memset(out, 0xa5, sizeof out);
    }
    ok(!n_bad, "too little room is said, and kept to");
    ok(write_all(size, &full, false) == size && !full &&
           !memcmp(out, kept, size),
       "room of exactly its size is enough");
}

/* Improbable decisions only: a carry goes through many bytes of 255. */
static void check_carry(void)
{
    struct gg_range_coder_writer w;
    struct gg_range_coder_reader r;
    size_t n_bad = 0;
    for (int t = 0; t < 300; t++) {
        struct gg_range_coder_odds a = { 65000, 250 }, b = a;
        gg_range_coder_write_begin(&w, out, ROOM);
        for (int i = 0; i < 400; i++) {
            bit[i] = i % (t + 2) != t;
            gg_range_coder_write(&w, &a, bit[i]);
            gg_range_coder_write_even(&w, UINT32_MAX, (unsigned)(i + t) % 30);
        }
        const size_t size = (size_t)(gg_range_coder_write_end(&w) - out);
        gg_range_coder_read_begin(&r, out, size);
        for (int i = 0; i < 400; i++) {
            const unsigned k = (unsigned)(i + t) % 30;
            n_bad += gg_range_coder_read(&r, &b) != bit[i];
            n_bad += gg_range_coder_read_even(&r, k) != (1u << k) - 1;
        }
    }
    ok(!n_bad, "bytes of 255, and carries into them");
}

/* Read random bytes. Their memory ends with them, so that a sanitizer sees a
 * read beyond. */
static void check_any(void)
{
    size_t n = 0;
    for (size_t size = 0; size < 60; size++) {
        uint8_t *any = malloc(size ? size : 1);
        struct gg_range_coder_odds odds = start;
        struct gg_range_coder_reader r;
        for (size_t i = 0; any && i < size; i++)
            any[i] = (uint8_t)rnd_below(256);
        gg_range_coder_read_begin(&r, any, size);
        for (int i = 0; any && i < N; i++)
            n += gg_range_coder_read(&r, &odds) +
                 gg_range_coder_read_even(&r, 3) / 8;
        free(any);
    }
    ok(n <= (size_t)60 * N, "any bytes are read, and zeros after them");
}

int main(void)
{
    static const double odds[] = { 0, 0.001, 0.05, 0.3, 0.5, 0.97, 1 };
    for (size_t i = 0; i < sizeof odds / sizeof *odds; i++)
        check_odds(odds[i]);
    check_carry();
    check_any();
    return done_testing();
}
