/* SPDX-License-Identifier: MIT */
/* form_q32.c - blocks of 32 and 64 elements whose scales are floats
 *
 * The layouts are those of the decoders, kern/c/deq_q32.c and deq_fp4.c.
 */
#include "config.h"
#include "fit/form_int.h"

void gg_form_unpack_q4_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_q4_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    gg_form_get_nibbles(b->code, x.qs, 16);
}

void gg_form_pack_q4_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_q4_0 x;
    gg_form_put_f16(&x.d, b->scale[0]);
    gg_form_put_nibbles(x.qs, b->code, 16);
    GG_PUT_BLOCK(x, block, 0);
}

/* A minimum is subtracted, the field m is added: they differ in the sign. */
static int32_t get_negative(const void *p)
{
    return gg_form_f16_code(gg_bytes_load16le(p) ^ 0x8000);
}

static void put_negative(void *p, int32_t code)
{
    gg_bytes_store16le(p, gg_form_f16_bits(code) ^ 0x8000);
}

void gg_form_unpack_q4_1(struct gg_form_block *b, const void *block)
{
    struct gg_block_q4_1 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    b->min[0] = get_negative(&x.m);
    gg_form_get_nibbles(b->code, x.qs, 16);
}

void gg_form_pack_q4_1(void *block, const struct gg_form_block *b)
{
    struct gg_block_q4_1 x;
    gg_form_put_f16(&x.d, b->scale[0]);
    put_negative(&x.m, b->min[0]);
    gg_form_put_nibbles(x.qs, b->code, 16);
    GG_PUT_BLOCK(x, block, 0);
}

/* Fifth bits: bit e of the 32 is element e's. */
static void get_fifth(uint16_t code[32], const uint8_t qh[4])
{
    uint32_t bits = gg_bytes_load32le(qh);
    for (int e = 0; e < 32; e++)
        code[e] |= (uint16_t)((bits >> e & 1) << 4);
}

static void put_fifth(uint8_t qh[4], const uint16_t code[32])
{
    uint32_t bits = 0;
    for (int e = 0; e < 32; e++)
        bits |= (uint32_t)(code[e] >> 4 & 1) << e;
    gg_bytes_store32le(qh, bits);
}

void gg_form_unpack_q5_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_q5_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    gg_form_get_nibbles(b->code, x.qs, 16);
    get_fifth(b->code, x.qh);
}

void gg_form_pack_q5_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_q5_0 x;
    gg_form_put_f16(&x.d, b->scale[0]);
    gg_form_put_nibbles(x.qs, b->code, 16);
    put_fifth(x.qh, b->code);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_q5_1(struct gg_form_block *b, const void *block)
{
    struct gg_block_q5_1 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    b->min[0] = get_negative(&x.m);
    gg_form_get_nibbles(b->code, x.qs, 16);
    get_fifth(b->code, x.qh);
}

void gg_form_pack_q5_1(void *block, const struct gg_form_block *b)
{
    struct gg_block_q5_1 x;
    gg_form_put_f16(&x.d, b->scale[0]);
    put_negative(&x.m, b->min[0]);
    gg_form_put_nibbles(x.qs, b->code, 16);
    put_fifth(x.qh, b->code);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_q8_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_q8_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    for (int e = 0; e < 32; e++)
        b->code[e] = (uint16_t)(x.qs[e] + 128);
}

void gg_form_pack_q8_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_q8_0 x;
    gg_form_put_f16(&x.d, b->scale[0]);
    for (int e = 0; e < 32; e++)
        x.qs[e] = (int8_t)(b->code[e] - 128);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_iq4_nl(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq4_nl x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    gg_form_get_nibbles(b->code, x.qs, 16);
}

void gg_form_pack_iq4_nl(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq4_nl x;
    gg_form_put_f16(&x.d, b->scale[0]);
    gg_form_put_nibbles(x.qs, b->code, 16);
    GG_PUT_BLOCK(x, block, 0);
}

/* E2M1 has a sign and eight magnitudes. Levels ascend, so that level 7 is zero;
 * the second zero, 8, becomes the first one. */
static void order_levels(uint16_t *code, unsigned n)
{
    for (unsigned j = 0; j < n; j++)
        code[j] = (uint16_t)(code[j] < 8 ? code[j] + 7 : 15 - code[j]);
}

static void put_levels(uint8_t *qs, const uint16_t *code, unsigned n)
{
    uint16_t q[32];
    for (unsigned j = 0; j < 2 * n; j++)
        q[j] = (uint16_t)(code[j] < 7 ? 15 - code[j] : code[j] - 7);
    gg_form_put_nibbles(qs, q, n);
}

void gg_form_unpack_mxfp4(struct gg_form_block *b, const void *block)
{
    struct gg_block_mxfp4 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = x.e;
    gg_form_get_nibbles(b->code, x.qs, 16);
    order_levels(b->code, 32);
}

void gg_form_pack_mxfp4(void *block, const struct gg_form_block *b)
{
    struct gg_block_mxfp4 x;
    x.e = (uint8_t)b->scale[0];
    put_levels(x.qs, b->code, 16);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_nvfp4(struct gg_form_block *b, const void *block)
{
    struct gg_block_nvfp4 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    for (int s = 0; s < 4; s++) {
        b->scale[s] = x.d[s];
        gg_form_get_nibbles(b->code + 16 * s, x.qs + 8 * s, 8);
    }
    order_levels(b->code, 64);
}

void gg_form_pack_nvfp4(void *block, const struct gg_form_block *b)
{
    struct gg_block_nvfp4 x;
    for (int s = 0; s < 4; s++) {
        x.d[s] = (uint8_t)b->scale[s];
        put_levels(x.qs + 8 * s, b->code + 16 * s, 8);
    }
    GG_PUT_BLOCK(x, block, 0);
}
