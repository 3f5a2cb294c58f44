/* SPDX-License-Identifier: MIT */
/* interleave.c - places of the bits of rows in groups of rows
 *
 * A type is a list of fields. A field is n numbers of a block of one row, with
 * their places in the plain block and in the group block. Source: the layouts
 * of ik_llama.cpp (iqk_quantize.cpp, tree of August 2026).
 */
#include "config.h"
#include "dtype/interleave.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/iq_code.h"

#include <string.h>

/* Kinds of fields.
 *
 * UNITS    Unit b of row k is the width bytes at (rows * b + k) * width of the
 *          group block, at b * group of the plain block. ZIP: of each eight
 *          units, 0 and 4, 1 and 5, and so on are neighbours in the group.
 *          SAME: unit 0 is read for all b.
 * SPREAD   Number b is at t = rows * (first + b) + k of numbers of width bits:
 *          in byte t % period, from bit shift + step * (t / period) on.
 * CODES    Numbers of 32 columns in quads. The order gives the quads' first
 *          columns. Each byte of a group block has quads one above another; row
 *          k has four bytes, one for each number of a quad.
 * SIGNED   Four bytes: a sign byte's Gray code, and a bit of the scale.
 * WORDS    Four words: an index of 9 bits and a Gray code of signs.
 *
 * In the plain block, numbers of SPREAD and CODES lie as those of a plain
 * field: number i is in byte i % group of its group of bytes, above the numbers
 * i - group, i - 2 group, ... of that byte, from bit plain_shift on. */
enum kind { UNITS, SPREAD, CODES, SIGNED, WORDS, N_KINDS };

struct field {
    uint8_t kind, width;
    uint16_t n;
    uint16_t at;    /* first byte in the group block */
    uint16_t plain; /* first byte in the plain block */
    uint8_t group, plain_shift;
    uint8_t period, step, shift, first; /* SPREAD only */
    uint8_t order;                      /* CODES and UNITS */
    uint8_t flip;                       /* bits to invert; CODES only */
};

/* First columns of the quads, in the order of their bits. */
enum order { SEQ, N4, H5K, H5I, H50, Q60 };
static const uint8_t orders[][8] = {
    [SEQ] = { 0, 4, 8, 12, 16, 20, 24, 28 },
    [N4] = { 0, 8, 16, 24, 4, 12, 20, 28 },
    [H5K] = { 0, 8, 4, 12, 16, 24, 20, 28 },
    [H5I] = { 0, 8, 16, 24, 4, 12, 20, 28 },
    [H50] = { 0, 16, 4, 20, 8, 24, 12, 28 },
    /* the plain field of Q6_0 exchanges its middle quarters */
    [Q60] = { 0, 4, 16, 20, 8, 12, 24, 28 },
};

/* Orders of UNITS. */
enum { PLAIN_ORDER, ZIP, SAME };

struct layout {
    int16_t plain; /* GG_DT_... */
    uint8_t rows;
    bool one_way; /* rows cannot be put back */
    struct field field[12];
};

/* clang-format off */
#define UNIT(WIDTH, N, AT, PLAIN, STRIDE)                                     \
    { .kind = UNITS, .width = WIDTH, .n = N, .at = AT, .plain = PLAIN,        \
      .group = STRIDE }
/* units that follow one another in the plain block */
#define BYTE(N, AT, PLAIN) UNIT(1, N, AT, PLAIN, 1)
#define HALF(AT, PLAIN) UNIT(2, 1, AT, PLAIN, 2)
#define BITS(WIDTH, N, AT, PERIOD, PLAIN, GROUP)                              \
    { .kind = SPREAD, .width = WIDTH, .n = N, .at = AT, .period = PERIOD,     \
      .step = WIDTH, .plain = PLAIN, .group = GROUP }
#define CODE(WIDTH, N, ORDER, AT, PLAIN, GROUP)                               \
    { .kind = CODES, .width = WIDTH, .n = N, .order = ORDER, .at = AT,        \
      .plain = PLAIN, .group = GROUP }
/* scales or minima of Q4_K and Q5_K: bytes 4 to 15 of the block; SHIFT and
 * HIGH are their bits in the group's bytes of low and high parts, FROM is the
 * byte of the first four, PLAIN_SHIFT the bits of the last four */
#define K4_PART(SHIFT, HIGH, FROM, PLAIN_SHIFT)                               \
    { .kind = SPREAD, .width = 4, .n = 4, .at = 32, .period = 32, .step = 0,  \
      .shift = SHIFT, .plain = FROM, .group = 4 },                            \
    { .kind = SPREAD, .width = 4, .n = 4, .at = 32, .period = 32, .step = 0,  \
      .shift = SHIFT, .first = 4, .plain = 12, .group = 4,                    \
      .plain_shift = PLAIN_SHIFT },                                           \
    { .kind = SPREAD, .width = 2, .n = 8, .at = 16, .period = 16, .step = 4,  \
      .shift = HIGH, .plain = FROM, .group = 4, .plain_shift = 4 }
#define K4_SCALES K4_PART(0, 0, 4, 0), K4_PART(4, 2, 8, 4)
/* block B of Q8_0 for 32 of 256 columns of R rows */
#define Q8_PART(B, R, FLIP)                                                   \
    { .kind = CODES, .width = 8, .n = 32, .at = 2 * R + 32 * R * B,           \
      .plain = 34 * B + 2, .group = 32, .flip = FLIP }

#define TYPE(NAME, PLAIN, ROWS, ...)                                          \
    [GG_DT_##NAME] = { GG_DT_##PLAIN, ROWS, false, { __VA_ARGS__ } }

static const struct layout layouts[GG_N_DTYPES] = {
    TYPE(Q4_0_R8, Q4_0, 8, HALF(0, 0), CODE(4, 32, H50, 16, 2, 16)),
    TYPE(MXFP4_R8, MXFP4, 8, BYTE(1, 0, 0), CODE(4, 32, H50, 8, 1, 16)),
    TYPE(Q5_0_R4, Q5_0, 4, HALF(0, 0), CODE(1, 32, H50, 8, 2, 1),
         CODE(4, 32, N4, 24, 6, 16)),
    TYPE(Q6_0_R4, Q6_0, 4, HALF(0, 0), CODE(2, 32, Q60, 8, 2, 8),
         CODE(4, 32, N4, 40, 10, 16)),
    TYPE(Q8_0_R8, Q8_0, 8, HALF(0, 0), CODE(8, 32, SEQ, 16, 2, 32)),
    TYPE(IQ4_NL_R4, IQ4_NL, 4, HALF(0, 0), CODE(4, 32, N4, 8, 2, 16)),
    TYPE(IQ4_XS_R8, IQ4_XS, 8, HALF(0, 0), BITS(2, 8, 16, 16, 2, 1),
         BITS(4, 8, 32, 32, 4, 1), CODE(4, 256, SEQ, 64, 8, 16)),
    TYPE(Q2_K_R4, Q2_K, 4, HALF(0, 80), HALF(8, 82), BYTE(16, 16, 0),
         CODE(2, 256, SEQ, 80, 16, 32)),
    TYPE(Q3_K_R4, Q3_K, 4, HALF(0, 108), BITS(2, 16, 8, 16, 104, 4),
         BITS(4, 16, 24, 32, 96, 8), CODE(1, 256, SEQ, 56, 0, 32),
         CODE(2, 256, SEQ, 184, 32, 32)),
    TYPE(Q4_K_R4, Q4_K, 4, HALF(0, 0), HALF(8, 2), K4_SCALES,
         CODE(4, 256, N4, 64, 16, 32)),
    TYPE(Q5_K_R4, Q5_K, 4, HALF(0, 0), HALF(8, 2), K4_SCALES,
         CODE(1, 256, H5K, 64, 16, 32), CODE(4, 256, N4, 192, 48, 32)),
    TYPE(Q6_K_R4, Q6_K, 4, HALF(0, 208), BYTE(16, 8, 192),
         CODE(2, 256, H5K, 72, 128, 32), CODE(4, 256, N4, 328, 0, 64)),
    TYPE(IQ2_K_R4, IQ2_K, 4, HALF(0, 0), BITS(1, 16, 8, 8, 2, 1),
         BITS(4, 16, 16, 32, 4, 1), CODE(2, 256, SEQ, 48, 12, 32)),
    TYPE(IQ3_K_R4, IQ3_K, 4, HALF(0, 0), BITS(1, 16, 8, 8, 2, 1),
         BITS(1, 16, 16, 8, 4, 1), BITS(4, 16, 24, 32, 6, 1),
         CODE(2, 256, SEQ, 56, 14, 32), CODE(1, 256, SEQ, 312, 78, 32)),
    TYPE(IQ4_K_R4, IQ4_K, 4, HALF(0, 0), BITS(1, 16, 8, 8, 2, 1),
         BITS(2, 16, 16, 16, 4, 1), BITS(4, 16, 32, 32, 8, 1),
         CODE(4, 256, N4, 64, 16, 16)),
    TYPE(IQ5_K_R4, IQ5_K, 4, HALF(0, 0), BITS(1, 16, 8, 8, 2, 1),
         BITS(2, 16, 16, 16, 4, 1), BITS(4, 16, 32, 32, 8, 1),
         CODE(4, 256, N4, 64, 16, 32), CODE(1, 256, H5I, 576, 144, 32)),
    TYPE(IQ4_KS_R4, IQ4_KS, 4, BYTE(8, 0, 0), CODE(4, 256, N4, 32, 8, 16)),
    TYPE(IQ5_KS_R4, IQ5_KS, 4, BYTE(8, 0, 0), CODE(4, 256, N4, 32, 8, 32),
         CODE(1, 256, H5I, 544, 136, 32)),
    TYPE(IQ2_BN_R4, IQ2_BN, 4, CODE(2, 64, SEQ, 0, 0, 16)),
    TYPE(IQ2_XXS_R4, IQ2_XXS, 4, HALF(0, 0), UNIT(4, 8, 136, 2, 8),
         { .kind = SIGNED, .n = 8, .at = 8, .plain = 6, .group = 8 }),
    TYPE(IQ3_XXS_R4, IQ3_XXS, 4, HALF(0, 0), UNIT(8, 8, 136, 2, 8),
         { .kind = SIGNED, .n = 8, .at = 8, .plain = 66, .group = 4 }),
    TYPE(IQ2_XS_R4, IQ2_XS, 4, HALF(0, 0),
         { .kind = WORDS, .n = 8, .at = 8, .plain = 2 }, BYTE(8, 264, 66)),
    TYPE(IQ2_S_R4, IQ2_S, 4, HALF(0, 0), UNIT(4, 8, 8, 2, 4),
         BYTE(8, 136, 66), UNIT(4, 8, 168, 34, 4), BYTE(8, 296, 74)),
    /* bytes i and 4 + i of eight are neighbours in the group */
    TYPE(IQ3_S_R4, IQ3_S, 4, HALF(0, 0),
         { .kind = UNITS, .width = 1, .n = 64, .at = 8, .plain = 2,
           .group = 1, .order = ZIP },
         BYTE(8, 264, 66), CODE(1, 256, SEQ, 296, 74, 1),
         BITS(4, 8, 424, 16, 106, 1)),
    TYPE(Q8_KV_R8, Q8_KV, 8, CODE(8, 32, SEQ, 0, 0, 32)),
    TYPE(BF16_R16, BF16, 16, UNIT(4, 1, 0, 0, 4)),
    TYPE(IQ1_S_R4, IQ1_S_R4, 4, BYTE(4, 0, 0), HALF(16, 4)),
    TYPE(IQ1_M_R4, IQ1_M_R4, 4, BYTE(4, 0, 0), BYTE(2, 16, 4), BYTE(1, 24, 6)),
#define Q8_ROWS(R, FLIP)                                                      \
    { Q8_PART(0, R, FLIP), Q8_PART(1, R, FLIP), Q8_PART(2, R, FLIP),          \
      Q8_PART(3, R, FLIP), Q8_PART(4, R, FLIP), Q8_PART(5, R, FLIP),          \
      Q8_PART(6, R, FLIP), Q8_PART(7, R, FLIP),                               \
      { .kind = UNITS, .width = 2, .n = 8, .group = 34, .order = SAME } }
    [GG_DT_Q8_K_R8] = { GG_DT_Q8_0, 8, true, Q8_ROWS(8, 0) },
    [GG_DT_Q8_K_R16] = { GG_DT_Q8_0, 16, true, Q8_ROWS(16, 0x80) },
};
/* clang-format on */

unsigned gg_interleave_rows(int type)
{
    return layouts[type].rows ? layouts[type].rows : 1;
}

int gg_interleave_plain(int type)
{
    return layouts[type].rows ? layouts[type].plain : type;
}

bool gg_interleave_has_put(int type)
{
    return layouts[type].rows && !layouts[type].one_way &&
           layouts[type].plain != type;
}

int gg_interleave_of(int plain)
{
    for (int i = 0; i < GG_N_DTYPES; i++)
        if (gg_interleave_has_put(i) && layouts[i].plain == plain)
            return i;
    return -1;
}

uint32_t gg_interleave_unit(int type)
{
    return gg_dtype_by_index(type)->block_len;
}

/* ---- fields ---- */

/* A copy between a block of row k of a group and a plain block. Bytes are
 * filled with zeros before bits are put into them. */
struct copy {
    unsigned rows, k;
    uint8_t *group, *plain;
    bool put; /* into the group; otherwise out of it */
};

static void copy_units(const struct copy *c, const struct field *f)
{
    uint8_t *plain = c->plain + f->plain;
    for (unsigned b = 0; b < f->n; b++, plain += f->group) {
        unsigned at = f->order == ZIP    ? b / 8 * 8 + b % 4 * 2 + b % 8 / 4
                      : f->order == SAME ? 0
                                         : b;
        uint8_t *group = c->group + f->at + (c->rows * at + c->k) * f->width;
        if (c->put)
            memcpy(group, plain, f->width);
        else
            memcpy(plain, group, f->width);
    }
}

/* Copy a number between positions of bits. */
static inline void copy_bits(bool put, uint8_t *group, unsigned at,
                             uint8_t *plain, unsigned plain_at, unsigned mask)
{
    if (put)
        *group |= (uint8_t)((*plain >> plain_at & mask) << at);
    else
        *plain |= (uint8_t)((*group >> at & mask) << plain_at);
}

/* Byte and first bit of number i in the plain block. Widths and groups are
 * powers of two. */
static inline uint8_t *find_plain(const struct copy *c, const struct field *f,
                                  unsigned i, unsigned *bit)
{
    const unsigned width = GG_CTZ32(f->width), group = GG_CTZ32(f->group);
    *bit = f->plain_shift + (((i >> group) & ((8u >> width) - 1)) << width);
    return c->plain + f->plain + (i >> (group + 3 - width) << group) +
           (i & (f->group - 1u));
}

static void copy_spread(const struct copy *c, const struct field *f)
{
    const unsigned mask = (1u << f->width) - 1;
    for (unsigned b = 0; b < f->n; b++) {
        const unsigned t = c->rows * (f->first + b) + c->k;
        unsigned bit;
        uint8_t *plain = find_plain(c, f, b, &bit);
        copy_bits(c->put, c->group + f->at + t % f->period,
                  f->shift + f->step * (t / f->period), plain, bit, mask);
    }
}

/* Four numbers of neighbouring bytes at once. */
static void copy_quad(bool put, uint8_t *group, unsigned at, uint8_t *plain,
                      unsigned plain_at, uint32_t mask)
{
    const uint32_t g = gg_bytes_load32le(group), p = gg_bytes_load32le(plain);
    if (put)
        gg_bytes_store32le(group, g | (p >> plain_at & mask) << at);
    else
        gg_bytes_store32le(plain, p | (g >> at & mask) << plain_at);
}

static void copy_codes(const struct copy *c, const struct field *f)
{
    const unsigned width = GG_CTZ32(f->width), mask = (1u << f->width) - 1;
    for (unsigned q = 0; q < f->n / 4u; q++) {
        const unsigned j = q % 8, column = q / 8 * 32 + orders[f->order][j];
        const unsigned at = j << width & 7;
        uint8_t *group = c->group + f->at + 4 * c->k +
                         4 * c->rows * ((q / 8 << width) + (j >> (3 - width)));
        unsigned bit;
        if (f->group >= 4) {
            uint8_t *plain = find_plain(c, f, column, &bit);
            copy_quad(c->put, group, at, plain, bit, mask * 0x01010101u);
            for (unsigned i = 0; f->flip && i < 4; i++)
                (c->put ? group : plain)[i] ^= f->flip;
            continue;
        }
        for (unsigned i = 0; i < 4; i++) {
            uint8_t *plain = find_plain(c, f, column + i, &bit);
            copy_bits(c->put, group + i, at, plain, bit, mask);
        }
    }
}

/* Seven bits: the Gray code's number of eight signs, half of it, and back. The
 * number of a code is the exclusive or of its shifts. */
static unsigned number_of_signs(unsigned signs)
{
    unsigned v = gg_dtype_iq_signs(signs);
    v ^= v >> 1;
    v ^= v >> 2;
    v ^= v >> 4;
    return v >> 1;
}

static unsigned signs_of_number(unsigned z)
{
    return ((z << 1) ^ z) & 127;
}

static void copy_signed(const struct copy *c, const struct field *f)
{
    for (unsigned b = 0; b < f->n; b++) {
        uint8_t *group = c->group + f->at + 4 * (c->rows * b + c->k);
        uint8_t *plain = c->plain + f->plain + b * f->group;
        uint32_t v = c->put ? gg_bytes_load32le(plain) : 0;
        for (unsigned i = 0; i < 4; i++)
            if (c->put)
                group[i] = (uint8_t)(number_of_signs(v >> 7 * i & 127) << 1 |
                                     (v >> (28 + i) & 1));
            else
                v |= (uint32_t)signs_of_number(group[i] >> 1) << 7 * i |
                     (uint32_t)(group[i] & 1) << (28 + i);
        if (!c->put)
            gg_bytes_store32le(plain, v);
    }
}

static void copy_words(const struct copy *c, const struct field *f)
{
    for (unsigned w = 0; w < 4u * f->n; w++) {
        uint8_t *group =
            c->group + f->at + 2 * (4 * (c->rows * (w / 4) + c->k) + w % 4);
        uint8_t *plain = c->plain + f->plain + 2 * w;
        const unsigned v = gg_bytes_load16le(c->put ? plain : group);
        const unsigned high =
            c->put ? number_of_signs(v >> 9) : signs_of_number(v >> 9);
        gg_bytes_store16le(c->put ? group : plain,
                           (uint16_t)((v & 511) | high << 9));
    }
}

static void copy_block(const struct copy *c, const struct layout *l)
{
    static void (*const of_kind[N_KINDS])(const struct copy *,
                                          const struct field *) = {
        [UNITS] = copy_units,   [SPREAD] = copy_spread, [CODES] = copy_codes,
        [SIGNED] = copy_signed, [WORDS] = copy_words,
    };
    for (const struct field *f = l->field;
         f < l->field + GG_LEN(l->field) && f->n; f++)
        of_kind[f->kind](c, f);
}

/* ---- rows ---- */

/* Write the part of a row's header that groups do not store: the sum of n codes
 * of Q8_KV. */
static void complete_header(int plain, uint8_t *row, uint64_t n)
{
    int32_t sum = 0;
    if (plain != GG_DT_Q8_KV)
        return;
    for (uint64_t i = 0; i < n; i++)
        sum += (int8_t)row[8 + i];
    gg_bytes_store32le(row + 4, (uint32_t)sum);
}

void gg_interleave_take(int type, const void *group, unsigned k,
                        uint64_t first, uint64_t n, void *row)
{
    const struct layout *l = &layouts[type];
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const struct gguf_dtype_info *p = gg_dtype_by_index(l->plain);
    const size_t size = t->block_len / p->block_len * p->block_size;
    const uint8_t *from = group;
    uint8_t *to = row;
    memcpy(to, from + (size_t)k * t->row_header, t->row_header);
    from += (size_t)l->rows * t->row_header;
    to += p->row_header;
    memset(to, 0, (size_t)(n / t->block_len) * size);
    for (uint64_t b = first / t->block_len; n; b++, n -= t->block_len) {
        /* a copy out of the group does not write to it */
        union {
            const uint8_t *from;
            uint8_t *group;
        } at = { from + b * l->rows * t->block_size };
        const struct copy c = { l->rows, k, at.group, to, false };
        copy_block(&c, l);
        to += size;
    }
    complete_header(l->plain, row,
                    (uint64_t)(to - (uint8_t *)row) - p->row_header);
}

void gg_interleave_put(int type, void *group, uint64_t ne0, const void *rows)
{
    const struct layout *l = &layouts[type];
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const struct gguf_dtype_info *p = gg_dtype_by_index(l->plain);
    const size_t n = (size_t)(ne0 / t->block_len);
    const size_t size = t->block_len / p->block_len * p->block_size;
    uint8_t *to = (uint8_t *)group + (size_t)l->rows * t->row_header;
    uint8_t block[sizeof(struct gg_block_q8_k)];
    const uint8_t *from = rows;
    memset(group, 0, l->rows * (t->row_header + n * t->block_size));
    for (unsigned k = 0; k < l->rows; k++) {
        memcpy((uint8_t *)group + (size_t)k * t->row_header, from,
               t->row_header);
        from += p->row_header;
        for (size_t b = 0; b < n; b++, from += size) {
            memcpy(block, from, size);
            const struct copy c = { l->rows, k,
                                    to + b * l->rows * t->block_size, block,
                                    true };
            copy_block(&c, l);
        }
    }
}
