/* SPDX-License-Identifier: MIT */
/* form_k.c - blocks of 256 elements whose sub-blocks have integer scales
 *
 * The layouts are those of the decoders, kern/c/deq_k.c.
 */
#include "config.h"
#include "fit/form_int.h"

/* Lowest two bits of the codes: four codes a byte, 32 apart. */
static void get_pairs(uint16_t code[256], const uint8_t qs[64])
{
    for (unsigned e = 0; e < 256; e++)
        code[e] = (uint16_t)gg_kern_pair_of(qs, e);
}

static void put_pairs(uint8_t qs[64], const uint16_t code[256])
{
    memset(qs, 0, 64);
    for (unsigned e = 0; e < 256; e++)
        qs[e / 128 * 32 + e % 32] |=
            (uint8_t)((code[e] & 3) << 2 * (e / 32 % 4));
}

/* Bit `bit` of the codes: bit e / 32 of byte e % 32. */
static void get_high(uint16_t code[256], const uint8_t qh[32], int bit)
{
    for (unsigned e = 0; e < 256; e++)
        code[e] |= (uint16_t)((qh[e % 32] >> e / 32 & 1) << bit);
}

static void put_high(uint8_t qh[32], const uint16_t code[256], int bit)
{
    memset(qh, 0, 32);
    for (unsigned e = 0; e < 256; e++)
        qh[e % 32] |= (uint8_t)((code[e] >> bit & 1) << e / 32);
}

void gg_form_unpack_q2_k(struct gg_form_block *b, const void *block)
{
    struct gg_block_q2_k x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    b->dmin = gg_kern_get_half(&x.dmin);
    for (int s = 0; s < 16; s++) {
        b->scale[s] = x.scales[s] & 15;
        b->min[s] = x.scales[s] >> 4;
    }
    get_pairs(b->code, x.qs);
}

void gg_form_pack_q2_k(void *block, const struct gg_form_block *b)
{
    struct gg_block_q2_k x;
    gg_form_put_d(&x.d, b->d);
    gg_form_put_d(&x.dmin, b->dmin);
    for (int s = 0; s < 16; s++)
        x.scales[s] = (uint8_t)(b->scale[s] | b->min[s] << 4);
    put_pairs(x.qs, b->code);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_q3_k(struct gg_form_block *b, const void *block)
{
    struct gg_block_q3_k x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (unsigned s = 0; s < 16; s++)
        b->scale[s] = gg_kern_k3_scale(x.scales, s);
    get_pairs(b->code, x.qs);
    get_high(b->code, x.hmask, 2);
}

void gg_form_pack_q3_k(void *block, const struct gg_form_block *b)
{
    struct gg_block_q3_k x = { .d = 0 };
    gg_form_put_d(&x.d, b->d);
    for (unsigned s = 0; s < 16; s++) {
        unsigned c = (unsigned)(b->scale[s] + 32);
        x.scales[s % 8] |= (uint8_t)((c & 15) << 4 * (s / 8));
        x.scales[8 + s % 4] |= (uint8_t)(c >> 4 << 2 * (s / 4));
    }
    put_pairs(x.qs, b->code);
    put_high(x.hmask, b->code, 2);
    GG_PUT_BLOCK(x, block, 0);
}

/* Scales and minima of Q4_K and Q5_K. */
static void get_k4(struct gg_form_block *b, const uint8_t scales[12])
{
    for (unsigned s = 0; s < 8; s++) {
        b->scale[s] = (int32_t)gg_kern_k4_scale(scales, s);
        b->min[s] = (int32_t)gg_kern_k4_min(scales, s);
    }
}

static void put_k4(uint8_t scales[12], const struct gg_form_block *b)
{
    uint8_t scale[8], min[8];
    for (int s = 0; s < 8; s++) {
        scale[s] = (uint8_t)b->scale[s];
        min[s] = (uint8_t)b->min[s];
    }
    gg_kern_k4_pack(scales, scale, min);
}

/* Lowest four bits of the codes: 32 bytes hold two sub-blocks of 32. */
static void get_fours(uint16_t code[256], const uint8_t qs[128])
{
    for (int k = 0; k < 4; k++)
        gg_form_get_nibbles(code + 64 * k, qs + 32 * k, 32);
}

static void put_fours(uint8_t qs[128], const uint16_t code[256])
{
    for (int k = 0; k < 4; k++)
        gg_form_put_nibbles(qs + 32 * k, code + 64 * k, 32);
}

void gg_form_unpack_q4_k(struct gg_form_block *b, const void *block)
{
    struct gg_block_q4_k x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    b->dmin = gg_kern_get_half(&x.dmin);
    get_k4(b, x.scales);
    get_fours(b->code, x.qs);
}

void gg_form_pack_q4_k(void *block, const struct gg_form_block *b)
{
    struct gg_block_q4_k x;
    gg_form_put_d(&x.d, b->d);
    gg_form_put_d(&x.dmin, b->dmin);
    put_k4(x.scales, b);
    put_fours(x.qs, b->code);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_q5_k(struct gg_form_block *b, const void *block)
{
    struct gg_block_q5_k x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    b->dmin = gg_kern_get_half(&x.dmin);
    get_k4(b, x.scales);
    get_fours(b->code, x.qs);
    get_high(b->code, x.qh, 4);
}

void gg_form_pack_q5_k(void *block, const struct gg_form_block *b)
{
    struct gg_block_q5_k x;
    gg_form_put_d(&x.d, b->d);
    gg_form_put_d(&x.dmin, b->dmin);
    put_k4(x.scales, b);
    put_fours(x.qs, b->code);
    put_high(x.qh, b->code, 4);
    GG_PUT_BLOCK(x, block, 0);
}

/* Each half of 128 elements has 64 bytes of low nibbles and 32 bytes of high
 * pairs of bits; both are filled 32 elements at a time. */
void gg_form_unpack_q6_k(struct gg_form_block *b, const void *block)
{
    struct gg_block_q6_k x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int s = 0; s < 16; s++)
        b->scale[s] = x.scales[s];
    for (unsigned h = 0; h < 2; h++)
        gg_form_get_nibbles(b->code + 128 * h, x.ql + 64 * h, 64);
    for (unsigned e = 0; e < 256; e++)
        b->code[e] |= (uint16_t)(gg_kern_pair_of(x.qh, e) << 4);
}

void gg_form_pack_q6_k(void *block, const struct gg_form_block *b)
{
    struct gg_block_q6_k x;
    uint16_t high[256];
    gg_form_put_d(&x.d, b->d);
    for (int s = 0; s < 16; s++)
        x.scales[s] = (int8_t)b->scale[s];
    for (unsigned h = 0; h < 2; h++)
        gg_form_put_nibbles(x.ql + 64 * h, b->code + 128 * h, 64);
    for (unsigned e = 0; e < 256; e++)
        high[e] = b->code[e] >> 4;
    put_pairs(x.qh, high);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_iq4_xs(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq4_xs x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    unsigned high = gg_bytes_load16le(&x.scales_h);
    for (int s = 0; s < 8; s++) {
        unsigned lo = x.scales_l[s / 2] >> 4 * (s & 1) & 15u;
        b->scale[s] = (int32_t)(lo | (high >> 2 * s & 3) << 4) - 32;
        gg_form_get_nibbles(b->code + 32 * s, x.qs + 16 * s, 16);
    }
}

void gg_form_pack_iq4_xs(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq4_xs x = { .d = 0 };
    gg_form_put_d(&x.d, b->d);
    unsigned high = 0;
    for (int s = 0; s < 8; s++) {
        unsigned c = (unsigned)(b->scale[s] + 32);
        x.scales_l[s / 2] |= (uint8_t)((c & 15) << 4 * (s & 1));
        high |= c >> 4 << 2 * s;
        gg_form_put_nibbles(x.qs + 16 * s, b->code + 32 * s, 16);
    }
    gg_bytes_store16le(&x.scales_h, (uint16_t)high);
    GG_PUT_BLOCK(x, block, 0);
}
