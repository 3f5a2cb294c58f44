/* SPDX-License-Identifier: MIT */
/* compact.h - the compact form of a base's logits: a row as bytes */
#ifndef GG_EVAL_COMPACT_H
#define GG_EVAL_COMPACT_H

#include "base/error.h"
#include "gguf/vocab.h"

#include <stdbool.h>

enum {
    GG_COMPACT_STEPS = 2048,  /* the weight's ln is -code / GG_COMPACT_STEPS */
    GG_COMPACT_LEAST = 24133, /* of a weight: 2^-17 */
    GG_COMPACT_FINE = 128,    /* steps of a token's ln p or p, see compact.c */
    GG_COMPACT_HEAD = 16,     /* bytes of a row at most before its tokens */
};

/* What writing a row says of it. */
struct gg_compact_row {
    size_t size;     /* bytes; 0: it has a NaN or +infinity */
    unsigned weight; /* a code */
    uint32_t n;      /* tokens */
    double tail;     /* share of probability that is in tokens below the
                      * weight */
};

/* Bytes that writing a row with room needs. */
size_t gg_compact_max_size(uint32_t n_vocab, size_t room);

/* Write a row of logits before the token next, in at most room bytes, or in as
 * few as there must be. number: by which tokens are drawn. */
void gg_compact_encode(const float *row, uint32_t n_vocab, gguf_token next,
                       size_t room, uint64_t number, uint8_t *out,
                       struct gg_compact_row *about);

/* The row that begins at data, checked; *size bytes of it. left: bytes that
 * there are; off: of data in the file. GGUF_E_TRUNCATED, GGUF_E_FORMAT: what is
 * wrong, and where. */
enum gguf_status gg_compact_check(const uint8_t *data, uint64_t left,
                                  uint64_t off, uint32_t n_vocab,
                                  uint64_t *size, struct gguf_error *err);

/* Of a row that was checked: -ln p of the token that follows; the divergence of
 * a model with logits q of normalizer nq (ln sum exp), the likeliest token of
 * the base, and that of the model. */
double gg_compact_nll(const uint8_t *data);
double gg_compact_divergence(const uint8_t *data, const float *q, double nq,
                             size_t n_vocab, size_t *top_base,
                             size_t *top_model);

/* A digest of the texts of a vocabulary's tokens. */
uint64_t gg_compact_digest_vocab(const struct gguf_vocab *v);

#endif
