/* SPDX-License-Identifier: MIT */
/* byte_order.c - places of the numbers in blocks, and how to swap them */
#include "config.h"
#include "dtype/byte_order.h"
#include "base/bytes.h"

/* n numbers of width bytes: the first at off, each step bytes after the
 * last. */
struct numbers {
    uint16_t off;
    uint8_t width, n, step;
};

/* Numbers in a row header and in a block of a type. n is 0 if they have none;
 * width is 0 for a type without a row in the table. */
struct order {
    struct numbers header, block[2];
};

/* clang-format off */
/* All of a member, a number or an array of numbers of width W. */
#define ALL(BLOCK, MEMBER, W)                                                 \
    {                                                                         \
        offsetof(struct gg_block_##BLOCK, MEMBER), W,                         \
            sizeof(((struct gg_block_##BLOCK *)0)->MEMBER) / (W), W           \
    }
/* Two adjacent members of 16 bits. */
#define PAIR(BLOCK, FIRST) { offsetof(struct gg_block_##BLOCK, FIRST), 2, 2, 2 }
#define NUMBER(W) { 0, W, 1, W }
#define NONE { 0, 1, 0, 0 }
/* Types without and with a row header, which is one number of width W. */
#define PLAIN(TYPE, ...) [GG_DT_##TYPE] = { NONE, { __VA_ARGS__ } }
#define ROWS(TYPE, W, ...) [GG_DT_##TYPE] = { NUMBER(W), { __VA_ARGS__ } }
/* clang-format on */

static const struct order table[GG_N_DTYPES] = {
    PLAIN(F32, NUMBER(4)),
    PLAIN(F16, NUMBER(2)),
    PLAIN(BF16, NUMBER(2)),
    PLAIN(F64, NUMBER(8)),
    PLAIN(F8_E4M3, NONE),
    PLAIN(I8, NONE),
    PLAIN(I16, NUMBER(2)),
    PLAIN(I32, NUMBER(4)),
    PLAIN(I64, NUMBER(8)),
    PLAIN(Q4_0, ALL(q4_0, d, 2)),
    PLAIN(Q4_1, PAIR(q4_1, d)),
    PLAIN(Q5_0, ALL(q5_0, d, 2), ALL(q5_0, qh, 4)),
    PLAIN(Q5_1, PAIR(q5_1, d), ALL(q5_1, qh, 4)),
    PLAIN(Q8_0, ALL(q8_0, d, 2)),
    PLAIN(Q8_1, PAIR(q8_1, d)),
    PLAIN(Q2_K, PAIR(q2_k, d)),
    PLAIN(Q3_K, ALL(q3_k, d, 2)),
    PLAIN(Q4_K, PAIR(q4_k, d)),
    PLAIN(Q5_K, PAIR(q5_k, d)),
    PLAIN(Q6_K, ALL(q6_k, d, 2)),
    PLAIN(Q8_K, ALL(q8_k, d, 4), ALL(q8_k, bsums, 2)),
    /* each group: four indices in bytes, then a word of signs and scale */
    PLAIN(IQ2_XXS, ALL(iq2_xxs, d, 2),
          { offsetof(struct gg_block_iq2_xxs, qs) + 4, 4, 8, 8 }),
    PLAIN(IQ2_XS, ALL(iq2_xs, d, 2), ALL(iq2_xs, qs, 2)),
    PLAIN(IQ2_S, ALL(iq2_s, d, 2)),
    PLAIN(IQ3_XXS, ALL(iq3_xxs, d, 2),
          { offsetof(struct gg_block_iq3_xxs, qs) + 64, 4, 8, 4 }),
    PLAIN(IQ3_S, ALL(iq3_s, d, 2)),
    PLAIN(IQ1_S, ALL(iq1_s, d, 2), ALL(iq1_s, qh, 2)),
    PLAIN(IQ1_M, ALL(iq1_m, scales, 2)),
    PLAIN(IQ4_NL, ALL(iq4_nl, d, 2)),
    PLAIN(IQ4_XS, PAIR(iq4_xs, d)),
    PLAIN(TQ1_0, ALL(tq1_0, d, 2)),
    PLAIN(TQ2_0, ALL(tq2_0, d, 2)),
    PLAIN(MXFP4, NONE),
    PLAIN(NVFP4, NONE),
    PLAIN(Q1_0, ALL(q1_0, d, 2)),
    PLAIN(Q2_0, ALL(q2_0, d, 2)),
    PLAIN(Q6_0, ALL(q6_0, d, 2)),
    ROWS(IQ1_BN, 2, NONE),
    ROWS(IQ2_BN, 4, NONE),
    PLAIN(IQ2_K, PAIR(iq2_k, d)),
    PLAIN(IQ3_K, PAIR(iq3_k, d), ALL(iq3_k, scales_h, 2)),
    PLAIN(IQ4_K, PAIR(iq4_k, d)),
    PLAIN(IQ5_K, PAIR(iq5_k, d)),
    PLAIN(IQ6_K, PAIR(iq6_k, d)),
    ROWS(IQ4_KS, 4, NONE),
    ROWS(IQ2_KS, 2, ALL(iq2_ks, extra, 2)),
    ROWS(IQ4_KSS, 4, ALL(iq4_kss, qs, 2)),
    [GG_DT_Q8_KV] = { { 0, 4, 2, 4 }, { NONE } },
    ROWS(IQ5_KS, 4, NONE),
    ROWS(IQ2_KT, 4, ALL(iq2_kt, ql, 2)),
    ROWS(IQ3_KT, 4, ALL(iq3_kt, ql, 2)),
    ROWS(IQ4_KT, 4, ALL(iq4_kt, sh, 4)),
    ROWS(IQ3_KS, 2, ALL(iq3_ks, extra, 2)),
    ROWS(IQ2_KL, 2, ALL(iq2_kl, scales_h, 2)),
    ROWS(IQ1_KT, 4, NONE),
};

static void swap16(uint8_t *p)
{
    gg_bytes_store16le(p, gg_bytes_swap16(gg_bytes_load16le(p)));
}

static void swap32(uint8_t *p)
{
    gg_bytes_store32le(p, gg_bytes_swap32(gg_bytes_load32le(p)));
}

static void swap64(uint8_t *p)
{
    gg_bytes_store64le(p, gg_bytes_swap64(gg_bytes_load64le(p)));
}

/* Swap these numbers in count blocks of size bytes. */
static void swap_numbers(const struct numbers *f, uint8_t *p, size_t count,
                         size_t size)
{
    size_t n = f->n, step = f->step;
    if (n == 1) { /* a single loop over the blocks, for plain numbers, too */
        n = count;
        step = size;
        count = 1;
    }
    p += f->off;
    for (size_t i = 0; i < count; i++, p += size)
        switch (f->width) {
        case 2:
            for (size_t k = 0; k < n; k++)
                swap16(p + k * step);
            break;
        case 4:
            for (size_t k = 0; k < n; k++)
                swap32(p + k * step);
            break;
        case 8:
            for (size_t k = 0; k < n; k++)
                swap64(p + k * step);
            break;
        }
}

bool gg_byte_order_is_known(int type)
{
    return type >= 0 && table[type].block[0].width;
}

bool gg_byte_order_differs(int type, bool big_endian)
{
    enum gguf_dtype_family f = gg_dtype_by_index(type)->family;
    bool plain = f == GGUF_FAMILY_FLOAT || f == GGUF_FAMILY_INT;
    return big_endian != (plain && !gg_bytes_host_is_le());
}

uint64_t gg_byte_order_floor(int type, uint64_t row_size, uint64_t off)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    if (!t->row_header)
        return off - off % t->block_size;
    uint64_t at = off % row_size;
    return off -
           (at < t->row_header ? at : (at - t->row_header) % t->block_size);
}

static void swap_blocks(const struct order *o, uint8_t *p, size_t count,
                        size_t size)
{
    for (int k = 0; k < 2; k++)
        if (o->block[k].n)
            swap_numbers(&o->block[k], p, count, size);
}

void gg_byte_order_swap(int type, uint64_t row_size, uint64_t off, uint8_t *p,
                        size_t size)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const struct order *o = &table[type];
    if (!t->row_header) {
        swap_blocks(o, p, size / t->block_size, t->block_size);
        return;
    }
    for (size_t n; size; p += n, off += n, size -= n) {
        uint64_t at = off % row_size;
        if (at == 0) {
            swap_numbers(&o->header, p, 1, t->row_header);
            n = t->row_header;
        } else {
            n = row_size - at < size ? (size_t)(row_size - at) : size;
            swap_blocks(o, p, n / t->block_size, t->block_size);
        }
    }
}
