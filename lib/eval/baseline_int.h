/* SPDX-License-Identifier: MIT */
/* baseline_int.h - records of a baseline's file */
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
    gguf_token *token;  /* [n_chunks * n_ctx] */
    uint64_t first;     /* byte of the first record */
    uint64_t *row;      /* compact: [rows], the byte of each */
    uint64_t vocab;     /* compact: the digest of the vocabulary */
    double tail, error; /* compact: as gguf_baseline_tail_mass and error */
};

/* How a form is read. */
struct gg_baseline_form {
    const char *magic; /* 8 letters */
    const char *name;
    /* What comes after the magic, but for tokens; b->first and rows. */
    enum gguf_status (*read_head)(struct gguf_baseline *b,
                                  struct gguf_error *err);
    /* The base of rows, whose user is struct gg_baseline_rows. */
    struct gg_divergence_base base;
    /* -ln p(token), which followed after a row from 0. */
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
/* A number of the header at a byte, from least to 2^28. GGUF_E_INVALID. */
enum gguf_status gg_baseline_number(const struct gguf_baseline *b, uint64_t at,
                                    const char *name, uint32_t least,
                                    uint32_t *out, struct gguf_error *err);

/* Bytes of a record. */
static inline uint64_t gg_baseline_record_size(uint32_t n_vocab)
{
    return GG_BASELINE_RECORD_HEAD +
           2 * (((uint64_t)n_vocab + 1) & ~UINT64_C(1));
}

/* The record of a row. Not finite logits make numbers that are not finite. */
void gg_baseline_encode(const float *row, uint32_t n_vocab, uint8_t *record);

/* Is a scan of one text, cut into chunks side by side? GGUF_E_INVALID: no. */
enum gguf_status gg_baseline_check_cut(const struct gguf_scan_info *info,
                                       struct gguf_error *err);

/* Are chunks begin to end - 1 of a text those of the file, and all else that
 * the scan has? GGUF_E_INVALID: what differs. */
enum gguf_status gg_baseline_check(const struct gguf_baseline *b,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err);

/* Rows of a chunk from first (a position) on, as a base. */
struct gg_baseline_rows {
    const struct gguf_baseline *b;
    uint64_t first; /* of the file's rows */
};
void gg_baseline_rows(const struct gguf_baseline *b, size_t chunk,
                      uint32_t first, struct gg_baseline_rows *rows,
                      struct gg_divergence_base *base);
/* -ln p(token) of row i. */
double gg_baseline_nll(const struct gg_baseline_rows *rows, size_t i,
                       gguf_token token);

#endif
