/* SPDX-License-Identifier: MIT */
/* range_coder.c - code decisions in few bytes, by their probabilities */
#include "config.h"
#include "eval/range_coder.h"

/* Least range: both sides of a decision always have a part of it. */
#define LEAST_RANGE (UINT32_C(1) << 24)
enum { SURE = 65536, LEAST_ODDS = 48, MOST_TRUST = 250 };

static uint32_t part_of(uint32_t range, const struct gg_range_coder_odds *o)
{
    return (range >> 16) * o->p;
}

static void update_odds(struct gg_range_coder_odds *o, bool bit)
{
    const int to = bit ? SURE - LEAST_ODDS : LEAST_ODDS;
    o->p = (uint16_t)(o->p + (to - o->p) / (o->n + 2));
    o->n = (uint16_t)(o->n < MOST_TRUST ? o->n + 1 : MOST_TRUST);
}

/* ---- writing ---- */

void gg_range_coder_write_begin(struct gg_range_coder_writer *w, uint8_t *out,
                                size_t size)
{
    *w = (struct gg_range_coder_writer){
        .out = out, .at = out, .end = out + size, .range = UINT32_MAX
    };
}

static void put_byte(struct gg_range_coder_writer *w, unsigned byte)
{
    if (w->at == w->end) {
        w->full |= byte != 0; /* zeros need not be written */
        return;
    }
    *w->at++ = (uint8_t)byte;
}

/* Write the highest byte, unless a carry may still change it. */
static void shift_byte(struct gg_range_coder_writer *w)
{
    const unsigned carry = (unsigned)(w->low >> 32);
    if (carry || w->low < UINT32_C(0xff000000)) {
        if (w->begun)
            put_byte(w, w->held + carry);
        for (; w->n_held; w->n_held--)
            put_byte(w, 0xff + carry);
        w->held = (uint8_t)(w->low >> 24);
        w->begun = true;
    } else {
        w->n_held++;
    }
    w->low = (w->low & 0xffffff) << 8;
}

static void widen_range(struct gg_range_coder_writer *w)
{
    for (; w->range < LEAST_RANGE; w->range <<= 8)
        shift_byte(w);
}

void gg_range_coder_write(struct gg_range_coder_writer *w,
                          struct gg_range_coder_odds *odds, bool bit)
{
    const uint32_t p = part_of(w->range, odds);
    w->low += bit ? 0 : p;
    w->range = bit ? p : w->range - p;
    update_odds(odds, bit);
    widen_range(w);
}

void gg_range_coder_write_even(struct gg_range_coder_writer *w, uint32_t v,
                               unsigned n)
{
    while (n--) {
        w->range >>= 1;
        w->low += v >> n & 1 ? w->range : 0;
        widen_range(w);
    }
}

uint8_t *gg_range_coder_write_end(struct gg_range_coder_writer *w)
{
    /* a number in the range with the most zeros at its end, which need not be
     * written */
    const uint64_t last = w->low + w->range - 1;
    uint64_t v = last;
    for (unsigned n = 1; n <= 32; n++) {
        const uint64_t less = last >> n << n;
        if (less >= w->low)
            v = less;
    }
    w->low = v;
    for (int i = 0; i < 5; i++)
        shift_byte(w);
    while (!w->full && w->at > w->out && !w->at[-1])
        w->at--;
    return w->at;
}

/* ---- reading ---- */

static uint32_t next_byte(struct gg_range_coder_reader *r)
{
    return r->at < r->end ? *r->at++ : 0;
}

void gg_range_coder_read_begin(struct gg_range_coder_reader *r,
                               const uint8_t *data, size_t size)
{
    *r = (struct gg_range_coder_reader){ .at = data,
                                         .end = data + size,
                                         .range = UINT32_MAX };
    for (int i = 0; i < 4; i++)
        r->code = r->code << 8 | next_byte(r);
}

static void narrow_range(struct gg_range_coder_reader *r)
{
    for (; r->range < LEAST_RANGE; r->range <<= 8)
        r->code = r->code << 8 | next_byte(r);
}

bool gg_range_coder_read(struct gg_range_coder_reader *r,
                         struct gg_range_coder_odds *odds)
{
    const uint32_t p = part_of(r->range, odds);
    const bool bit = r->code < p;
    r->code -= bit ? 0 : p;
    r->range = bit ? p : r->range - p;
    update_odds(odds, bit);
    narrow_range(r);
    return bit;
}

uint32_t gg_range_coder_read_even(struct gg_range_coder_reader *r, unsigned n)
{
    uint32_t v = 0;
    while (n--) {
        r->range >>= 1;
        const bool bit = r->code >= r->range;
        r->code -= bit ? r->range : 0;
        v = v << 1 | bit;
        narrow_range(r);
    }
    return v;
}
