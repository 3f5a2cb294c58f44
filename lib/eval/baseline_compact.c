/* SPDX-License-Identifier: MIT */
/* baseline_compact.c - open a file of logits in the compact form */
#include "config.h"
#include "eval/baseline_int.h"
#include "eval/compact.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* VOCAB: byte of the vocabulary's digest. HEAD: bytes before the tokens:
 * magic, version, three numbers, that digest. FOOT: bytes after the rows: two
 * doubles and a checksum. */
enum { VOCAB = 24, HEAD = 32, FOOT = 24, LEAST_ROW = 8 };

static double load_double(const uint8_t *p)
{
    const uint64_t u = gg_bytes_load64le(p);
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static enum gguf_status too_short(const struct gguf_baseline *b,
                                  struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_TRUNCATED, b->map.size,
                        "the file has %" PRIu64 " bytes; %" PRIu32
                        " chunks of %" PRIu32 " tokens take more",
                        b->map.size, b->n_chunks, b->n_ctx);
}

static enum gguf_status read_foot(struct gguf_baseline *b,
                                  struct gguf_error *err)
{
    const uint64_t at = b->map.size - FOOT;
    const uint8_t *p = b->map.data + at;
    if (gg_bytes_load64le(p + 16) !=
        XXH3_64bits(b->map.data, (size_t)(b->map.size - 8)))
        return gg_error_set(err, GGUF_E_MISMATCH, at + 16,
                            "the checksum is not that of the bytes before it: "
                            "the file has changed");
    b->tail = load_double(p);
    b->error = load_double(p + 8);
    return b->tail >= 0 && b->tail <= 1 && b->error >= 0 && isfinite(b->error)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_FORMAT, at,
                              "tail %g and error %g, must be 0 to 1 and 0 or "
                              "more",
                              b->tail, b->error);
}

static enum gguf_status read_rows(struct gguf_baseline *b, uint64_t n,
                                  struct gguf_error *err)
{
    const uint64_t end = b->map.size - FOOT;
    uint64_t at = b->first, size;
    b->row = gg_mem_alloc_zero(b->allocator, n, sizeof *b->row);
    if (!b->row)
        return gg_error_set_nomem(err, (size_t)n * sizeof *b->row);
    for (uint64_t i = 0; i < n; i++, at += size) {
        b->row[i] = at;
        GG_TRY(gg_compact_check(b->map.data + at, end - at, at, b->n_vocab,
                                &size, err));
    }
    return at == end ? GGUF_OK
                     : gg_error_set(err, GGUF_E_FORMAT, at,
                                    "there are bytes after the last row");
}

static enum gguf_status read_head(struct gguf_baseline *b,
                                  struct gguf_error *err)
{
    if (b->map.size < HEAD + FOOT)
        return gg_error_set(err, GGUF_E_TRUNCATED, b->map.size,
                            "the file ends in its header");
    const uint32_t version = gg_bytes_load32le(b->map.data + 8);
    if (version != GG_BASELINE_COMPACT_VERSION)
        return gg_error_set(err, GGUF_E_VERSION, 8,
                            "logits of version %" PRIu32 " of the compact "
                            "form; version %d is read: save them again",
                            version, (int)GG_BASELINE_COMPACT_VERSION);
    GG_TRY(gg_baseline_number(b, 12, "the context", 4, &b->n_ctx, err));
    GG_TRY(gg_baseline_number(b, 16, "the vocabulary", 1, &b->n_vocab, err));
    GG_TRY(gg_baseline_number(b, 20, "the number of chunks", 1, &b->n_chunks,
                              err));
    const uint64_t n_tokens = (uint64_t)b->n_ctx * b->n_chunks;
    const uint64_t n = (uint64_t)gg_baseline_n_rows(b) * b->n_chunks;
    const uint64_t left = b->map.size - HEAD - FOOT;
    if (n_tokens > left / 4 || n > (left - 4 * n_tokens) / LEAST_ROW)
        return too_short(b, err);
    b->vocab = gg_bytes_load64le(b->map.data + VOCAB);
    b->first = HEAD + 4 * n_tokens;
    GG_TRY(read_foot(b, err));
    return read_rows(b, n, err);
}

static const uint8_t *row_at(const struct gguf_baseline *b, uint64_t row)
{
    return b->map.data + b->row[row];
}

static double row_divergence(const void *user, size_t i, const float *logits,
                             double nq, size_t n, size_t *top_base,
                             size_t *top_model)
{
    const struct gg_baseline_rows *rows = user;
    return gg_compact_divergence(row_at(rows->b, rows->first + i), logits, nq,
                                 n, top_base, top_model);
}

static double row_nll(const struct gguf_baseline *b, uint64_t row,
                      gguf_token token)
{
    (void)token; /* nll is in the file */
    return gg_compact_nll(row_at(b, row));
}

const struct gg_baseline_form gg_baseline_compact = {
    .magic = "ggufbase",
    .name = "compact",
    .read_head = read_head,
    .base = { .row = row_divergence },
    .nll = row_nll,
};
