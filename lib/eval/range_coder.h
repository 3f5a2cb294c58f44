/* SPDX-License-Identifier: MIT */
/* range_coder.h - code decisions in few bytes, by their probabilities
 *
 * A range coder (G. N. N. Martin, 1979) of binary decisions, with adaptive
 * probabilities. It uses integers only: the bytes are the same on every
 * machine. */
#ifndef GG_EVAL_RANGE_CODER_H
#define GG_EVAL_RANGE_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Probability p of a true decision, in units of 1/65536, with the confidence
 * of n observations. */
struct gg_range_coder_odds {
    uint16_t p, n;
};

struct gg_range_coder_writer {
    uint8_t *out, *at, *end;
    uint64_t low;
    uint32_t range;
    uint32_t n_held; /* bytes that a carry may still change */
    uint8_t held;
    /* begun: a byte was written; full: there was too little room */
    bool begun, full;
};

void gg_range_coder_write_begin(struct gg_range_coder_writer *w, uint8_t *out,
                                size_t size);
void gg_range_coder_write(struct gg_range_coder_writer *w,
                          struct gg_range_coder_odds *odds, bool bit);
/* Write the low n bits of v, highest first, with even odds. */
void gg_range_coder_write_even(struct gg_range_coder_writer *w, uint32_t v,
                               unsigned n);
/* Returns the end of the bytes. w->full: some are missing. */
uint8_t *gg_range_coder_write_end(struct gg_range_coder_writer *w);

/* Reads zeros after the last byte: any bytes can be read. */
struct gg_range_coder_reader {
    const uint8_t *at, *end;
    uint32_t range, code;
};

void gg_range_coder_read_begin(struct gg_range_coder_reader *r,
                               const uint8_t *data, size_t size);
bool gg_range_coder_read(struct gg_range_coder_reader *r,
                         struct gg_range_coder_odds *odds);
uint32_t gg_range_coder_read_even(struct gg_range_coder_reader *r, unsigned n);

#endif
