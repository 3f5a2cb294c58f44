/* SPDX-License-Identifier: MIT */
/* fuzz_baseline.c - files of a base's logits in either form are refused with a
 * reason, or every row is compared with a model
 *
 * Unless the first byte says otherwise, the checksum at the end is corrected,
 * so that the content is read.
 */
#include "config.h"
#include "base/bytes.h"
#include "eval/baseline_int.h"
#include "eval/compact.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { AS_IT_IS = 0x80, V = 40, CTX = 6, CHUNKS = 2, ROWS = 2, MOST = 4096 };

static void read_rows(const struct gguf_baseline *b)
{
    static float q[MOST];
    const uint32_t n = gguf_baseline_n_vocab(b);
    const uint32_t first = gguf_baseline_n_ctx(b) / 2;
    struct gguf_kld_token t[1];
    for (size_t c = 0; n <= MOST && c < gguf_baseline_n_chunks(b); c++)
        for (uint32_t i = 0; i < gg_baseline_n_rows(b); i++) {
            struct gg_baseline_rows rows;
            struct gg_divergence_base base;
            gg_baseline_rows(b, c, first + i, &rows, &base);
            (void)gg_baseline_nll(&rows, 0, 0);
            gg_divergence_compare_rows(NULL, &base, q, n, 1, t);
            /* numbers of llama.cpp's form may have any value */
            MUST(strcmp(gguf_baseline_form(b), "compact") != 0 ||
                 isfinite(t->kld));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = { data, size };
    struct gguf_baseline *b;
    struct gguf_error err;
    const uint8_t what = take(&in);
    uint8_t *copy = malloc(in.n + 1);
    MUST(copy);
    if (in.n)
        memcpy(copy, in.p, in.n);
    if (!(what & AS_IT_IS) && in.n >= 8)
        gg_bytes_store64le(copy + in.n - 8, XXH3_64bits(copy, in.n - 8));
    scratch_write(scratch_path("logits"), copy, in.n);
    free(copy);
    gguf_error_clear(&err);
    const enum gguf_status st =
        gguf_baseline_open(&b, scratch_path("logits"), NULL, &err);
    if (st == GGUF_OK)
        read_rows(b);
    else
        MUST(!b && err.status == st && err.message[0]);
    gguf_baseline_close(b);
    return 0;
}

static void put32(struct fix *f, uint32_t v)
{
    uint8_t b[4];
    gg_bytes_store32le(b, v);
    fix_bytes(f, b, 4);
}

static void seed_baseline(bool compact, unsigned weight, uint8_t what)
{
    static uint8_t bytes[4096];
    struct fix *f = new_seed();
    float row[V];
    fix_bytes(f, &what, 1);
    fix_bytes(f, compact ? "ggufbase" : "_logits_", 8);
    if (compact)
        put32(f, 1);
    put32(f, CTX);
    put32(f, V);
    put32(f, CHUNKS);
    for (int i = 0; compact && i < 2; i++)
        put32(f, 7);
    for (uint32_t i = 0; i < CTX * CHUNKS; i++)
        put32(f, i);
    for (uint32_t r = 0; r < ROWS * CHUNKS; r++) {
        struct gg_compact_row about = { .n = 0 };
        for (uint32_t i = 0; i < V; i++)
            row[i] = (float)(i * 7 % 13) - 0.5f * (float)r;
        if (compact)
            gg_compact_encode(row, V, 3, weight, r, bytes, &about);
        else
            gg_baseline_encode(row, V, bytes);
        fix_bytes(f, bytes,
                  compact ? about.size : (size_t)gg_baseline_record_size(V));
    }
    for (int i = 0; compact && i < 6; i++)
        put32(f, 0);
}

void fuzz_make_seeds(void)
{
    seed_baseline(true, 3000, 0);
    seed_baseline(true, GG_COMPACT_LEAST, 0);
    seed_baseline(true, 9000, AS_IT_IS);
    seed_baseline(false, 0, AS_IT_IS);
}
