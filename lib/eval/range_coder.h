/* SPDX-License-Identifier: MIT */
/* range_coder.h - bits as few bytes, by how likely each is
 *
 * A range coder (G. N. N. Martin, 1979) of binary decisions whose
 * probabilities are learned on the way. Integers only: the same bytes on every
 * machine.
 */
#ifndef GG_EVAL_RANGE_CODER_H
#define GG_EVAL_RANGE_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How likely a decision is true, in 1/65536, and how much that is trusted: as
 * much as if it had been seen n times. */
struct gg_range_coder_odds {
    uint16_t p, n;
};

struct gg_range_coder_writer {
    uint8_t *out, *at, *end;
    uint64_t low;
    uint32_t range;
    uint32_t n_held; /* bytes that a carry may change */
    uint8_t held;
    bool begun, full; /* there was no more room */
};

void gg_range_coder_write_begin(struct gg_range_coder_writer *w, uint8_t *out,
                                size_t size);
void gg_range_coder_write(struct gg_range_coder_writer *w,
                          struct gg_range_coder_odds *odds, bool bit);
/* The low n bits of v, all as likely as not, the highest first. */
void gg_range_coder_write_even(struct gg_range_coder_writer *w, uint32_t v,
                               unsigned n);
/* The byte after the last one; w->full says whether all are there. */
uint8_t *gg_range_coder_write_end(struct gg_range_coder_writer *w);

/* After the last byte come zeros: any bytes can be read, for any time. */
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
