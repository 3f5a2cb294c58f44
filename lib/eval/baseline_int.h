/* SPDX-License-Identifier: MIT */
/* baseline_int.h - an open baseline, and the records of its file */
#ifndef GG_EVAL_BASELINE_INT_H
#define GG_EVAL_BASELINE_INT_H

#include "base/mapfile.h"
#include "eval/divergence.h"
#include "gguf/baseline.h"

enum { GG_BASELINE_HEAD = 8 + 3 * 4, GG_BASELINE_RECORD_HEAD = 8 };
#define GG_BASELINE_MAGIC "_logits_"

struct gg_baseline_form;

struct gguf_baseline {
    const struct gguf_allocator *allocator;
    struct gg_mapfile map;
    const struct gg_baseline_form *form;
    uint32_t n_ctx, n_vocab, n_chunks;
    gguf_token *token; /* [n_chunks * n_ctx] */
    uint64_t first;    /* byte of the first record in the file */
    uint64_t *row;     /* compact: [rows], byte of each row in the file */
    uint64_t vocab;    /* compact: digest of the vocabulary */
    /* compact: gguf_baseline_tail_mass(), gguf_baseline_kld_error() */
    double tail, error;
};

/* How to read a form. */
struct gg_baseline_form {
    const char *magic; /* 8 characters */
    const char *name;
    /* Read the rest of the header, but not the tokens; set b->first and rows.
     */
    enum gguf_status (*read_head)(struct gguf_baseline *b,
                                  struct gguf_error *err);
    /* The rows as a base; user is a struct gg_baseline_rows. */
    struct gg_divergence_base base;
    /* -ln p(token) for the token after a row; rows are counted from 0. */
    double (*nll)(const struct gguf_baseline *b, uint64_t row,
                  gguf_token token);
};
extern const struct gg_baseline_form gg_baseline_compact;
enum { GG_BASELINE_COMPACT_VERSION = 2 };

/* Rows of each chunk. */
static inline uint32_t gg_baseline_n_rows(const struct gguf_baseline *b)
{
    return b->n_ctx - 1 - b->n_ctx / 2;
}
/* Read a number of the header at a byte: least to 2^28. GGUF_E_INVALID: it is
 * out of range. */
enum gguf_status gg_baseline_number(const struct gguf_baseline *b, uint64_t at,
                                    const char *name, uint32_t least,
                                    uint32_t *out, struct gguf_error *err);

/* Bytes of a record of llama.cpp's form. */
static inline uint64_t gg_baseline_record_size(uint32_t n_vocab)
{
    return GG_BASELINE_RECORD_HEAD +
           2 * (((uint64_t)n_vocab + 1) & ~UINT64_C(1));
}

/* Encode a row as a record. Logits that are not finite give numbers that are
 * not finite. */
void gg_baseline_encode(const float *row, uint32_t n_vocab, uint8_t *record);

/* Check that a scan has one text, in chunks side by side. GGUF_E_INVALID: it
 * has not. */
enum gguf_status gg_baseline_check_cut(const struct gguf_scan_info *info,
                                       struct gguf_error *err);

/* Check that the chunks of a scan, and their vocabulary, context and tokens,
 * are those of the file. GGUF_E_INVALID: the message has the difference. */
enum gguf_status gg_baseline_check(const struct gguf_baseline *b,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err);

/* Rows of a chunk, from a position on, as a base. */
struct gg_baseline_rows {
    const struct gguf_baseline *b;
    uint64_t first; /* number of the first row in the file */
};
void gg_baseline_rows(const struct gguf_baseline *b, size_t chunk,
                      uint32_t first, struct gg_baseline_rows *rows,
                      struct gg_divergence_base *base);
/* -ln p(token) for the token after row i. */
double gg_baseline_nll(const struct gg_baseline_rows *rows, size_t i,
                       gguf_token token);

#endif
