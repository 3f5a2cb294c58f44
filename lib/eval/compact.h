/* SPDX-License-Identifier: MIT */
/* compact.h - rows of a base's logits in the compact form of a baseline */
#ifndef GG_EVAL_COMPACT_H
#define GG_EVAL_COMPACT_H

#include "base/error.h"
#include "gguf/vocab.h"

#include <stdbool.h>

enum {
    /* steps of a weight's code: ln w = -code / 2048 */
    GG_COMPACT_STEPS = 2048,
    GG_COMPACT_LEAST = 24133, /* largest code of a weight: 2^-17 */
    GG_COMPACT_FINE = 128,    /* steps of a token's p or ln p; see compact.c */
    GG_COMPACT_HEAD = 16,     /* most bytes of a row before its tokens */
};

/* Facts about a row that was written. */
struct gg_compact_row {
    size_t size;     /* bytes; 0: the row has a NaN or +infinity */
    unsigned weight; /* code of the weight */
    uint32_t n;      /* stored tokens */
    double tail;     /* probability of all tokens below the weight */
};

/* Bytes that gg_compact_encode() may write for a row with room. */
size_t gg_compact_max_size(uint32_t n_vocab, size_t room);

/* Write a row of logits that stands before the token next, in at most room
 * bytes or, if that is too little, in the fewest. number seeds the draw of
 * tokens. */
void gg_compact_encode(const float *row, uint32_t n_vocab, gguf_token next,
                       size_t room, uint64_t number, uint8_t *out,
                       struct gg_compact_row *about);

/* Check the row that begins at data; *size receives its bytes. left: bytes at
 * data; off: byte of data in the file. GGUF_E_TRUNCATED and GGUF_E_FORMAT have
 * a message and the byte. */
enum gguf_status gg_compact_check(const uint8_t *data, uint64_t left,
                                  uint64_t off, uint32_t n_vocab,
                                  uint64_t *size, struct gguf_error *err);

/* -ln p of the next token of a checked row. Then: divergence of a model with
 * logits q and normalizer nq (ln sum exp) from a checked row, with the
 * likeliest tokens of base and model. */
double gg_compact_nll(const uint8_t *data);
double gg_compact_divergence(const uint8_t *data, const float *q, double nq,
                             size_t n_vocab, size_t *top_base,
                             size_t *top_model);

/* Digest of the texts of all tokens of a vocabulary. */
uint64_t gg_compact_digest_vocab(const struct gguf_vocab *v);

#endif
