/* SPDX-License-Identifier: MIT */
/* form_iq.c - blocks whose groups of elements are codewords
 *
 * The layouts are those of the decoders, kern/c/deq_iq.c.
 */
#include "config.h"
#include "fit/form_int.h"
#include "dtype/iq_code.h"

/* Four groups of seven signs and a scale: the second word of each 32 elements
 * of IQ2_XXS and IQ3_XXS. The eighth sign of a group follows from the others.
 */
static void get_signs_and_scale(struct gg_form_block *b, int g, uint32_t word)
{
    b->scale[g] = (int32_t)(word >> 28);
    for (int l = 0; l < 4; l++)
        b->sign[4 * g + l] = (uint8_t)gg_dtype_iq_signs(word >> 7 * l);
}

static uint32_t signs_and_scale(const struct gg_form_block *b, int g)
{
    uint32_t word = (uint32_t)b->scale[g] << 28;
    for (int l = 0; l < 4; l++)
        word |= (uint32_t)(b->sign[4 * g + l] & 127) << 7 * l;
    return word;
}

void gg_form_unpack_iq2_xxs(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq2_xxs x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int g = 0; g < 8; g++) {
        const uint8_t *index = (const uint8_t *)x.qs + 8 * g;
        for (int l = 0; l < 4; l++)
            b->code[4 * g + l] = index[l];
        get_signs_and_scale(b, g, gg_bytes_load32le(index + 4));
    }
}

void gg_form_pack_iq2_xxs(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq2_xxs x;
    gg_form_put_d(&x.d, b->d);
    for (int g = 0; g < 8; g++) {
        uint8_t *index = (uint8_t *)x.qs + 8 * g;
        for (int l = 0; l < 4; l++)
            index[l] = (uint8_t)b->code[4 * g + l];
        gg_bytes_store32le(index + 4, signs_and_scale(b, g));
    }
    GG_PUT_BLOCK(x, block, 0);
}

/* Scales of 16 elements in nibbles, as IQ2_XS and IQ2_S have them. */
static void get_scales16(struct gg_form_block *b, const uint8_t scales[8])
{
    for (int s = 0; s < 16; s++)
        b->scale[s] = scales[s / 2] >> 4 * (s & 1) & 15;
}

static void put_scales16(uint8_t scales[8], const struct gg_form_block *b)
{
    for (int s = 0; s < 8; s++)
        scales[s] = (uint8_t)(b->scale[2 * s] | b->scale[2 * s + 1] << 4);
}

void gg_form_unpack_iq2_xs(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq2_xs x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int l = 0; l < 32; l++) {
        unsigned q = gg_bytes_load16le(&x.qs[l]);
        b->code[l] = q & 511;
        b->sign[l] = (uint8_t)gg_dtype_iq_signs(q >> 9);
    }
    get_scales16(b, x.scales);
}

void gg_form_pack_iq2_xs(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq2_xs x;
    gg_form_put_d(&x.d, b->d);
    for (int l = 0; l < 32; l++)
        gg_bytes_store16le(&x.qs[l],
                           (uint16_t)(b->code[l] | (b->sign[l] & 127) << 9));
    put_scales16(x.scales, b);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_iq2_s(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq2_s x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int l = 0; l < 32; l++) {
        unsigned high = x.qh[l / 4] >> 2 * (l % 4) & 3u;
        b->code[l] = (uint16_t)(x.qs[l] | high << 8);
        b->sign[l] = x.qs[32 + l];
    }
    get_scales16(b, x.scales);
}

void gg_form_pack_iq2_s(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq2_s x = { .d = 0 };
    gg_form_put_d(&x.d, b->d);
    for (int l = 0; l < 32; l++) {
        x.qs[l] = (uint8_t)b->code[l];
        x.qs[32 + l] = b->sign[l];
        x.qh[l / 4] |= (uint8_t)(b->code[l] >> 8 << 2 * (l % 4));
    }
    put_scales16(x.scales, b);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_iq3_xxs(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq3_xxs x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int l = 0; l < 64; l++)
        b->code[l] = x.qs[l];
    for (int g = 0; g < 8; g++)
        get_signs_and_scale(b, g, gg_bytes_load32le(x.qs + 64 + 4 * g));
}

void gg_form_pack_iq3_xxs(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq3_xxs x;
    gg_form_put_d(&x.d, b->d);
    for (int l = 0; l < 64; l++)
        x.qs[l] = (uint8_t)b->code[l];
    for (int g = 0; g < 8; g++)
        gg_bytes_store32le(x.qs + 64 + 4 * g, signs_and_scale(b, g));
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_iq3_s(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq3_s x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int l = 0; l < 64; l++)
        b->code[l] = (uint16_t)(x.qs[l] | (x.qh[l / 8] >> l % 8 & 1) << 8);
    for (int s = 0; s < 8; s++)
        b->scale[s] = x.scales[s / 2] >> 4 * (s & 1) & 15;
    memcpy(b->sign, x.signs, sizeof x.signs);
}

void gg_form_pack_iq3_s(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq3_s x = { .d = 0 };
    gg_form_put_d(&x.d, b->d);
    for (int l = 0; l < 64; l++) {
        x.qs[l] = (uint8_t)b->code[l];
        x.qh[l / 8] |= (uint8_t)(b->code[l] >> 8 << l % 8);
    }
    for (int s = 0; s < 4; s++)
        x.scales[s] = (uint8_t)(b->scale[2 * s] | b->scale[2 * s + 1] << 4);
    memcpy(x.signs, b->sign, sizeof x.signs);
    GG_PUT_BLOCK(x, block, 0);
}

/* qh per 32 elements: four times three bits of an index, the scale, and the
 * index of the shift. */
void gg_form_unpack_iq1_s(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq1_s x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->d = gg_kern_get_half(&x.d);
    for (int g = 0; g < 8; g++) {
        unsigned h = gg_bytes_load16le(&x.qh[g]);
        b->scale[g] = (int32_t)(h >> 12 & 7);
        b->shift[g] = (uint8_t)(h >> 15);
        for (int l = 0; l < 4; l++)
            b->code[4 * g + l] =
                (uint16_t)(x.qs[4 * g + l] | (h >> 3 * l & 7) << 8);
    }
}

void gg_form_pack_iq1_s(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq1_s x;
    gg_form_put_d(&x.d, b->d);
    for (int g = 0; g < 8; g++) {
        unsigned h = (unsigned)b->scale[g] << 12 | (unsigned)b->shift[g] << 15;
        for (int l = 0; l < 4; l++) {
            unsigned c = b->code[4 * g + l];
            x.qs[4 * g + l] = (uint8_t)c;
            h |= c >> 8 << 3 * l;
        }
        gg_bytes_store16le(&x.qh[g], (uint16_t)h);
    }
    GG_PUT_BLOCK(x, block, 0);
}

/* Each of four words of scales has four scales of three bits, and above them
 * four bits of the block's f16. */
void gg_form_unpack_iq1_m(struct gg_form_block *b, const void *block)
{
    struct gg_block_iq1_m x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    unsigned half = 0;
    for (int k = 0; k < 4; k++) {
        unsigned word = gg_bytes_load16le(x.scales + 2 * k);
        half |= word >> 12 << 4 * k;
        for (int s = 0; s < 4; s++)
            b->scale[4 * k + s] = (int32_t)(word >> 3 * s & 7);
    }
    b->d = gg_dtype_f16_to_f32((uint16_t)half);
    for (int l = 0; l < 32; l++) {
        unsigned h = x.qh[l / 2] >> 4 * (l & 1) & 15u;
        b->code[l] = (uint16_t)(x.qs[l] | (h & 7) << 8);
        b->shift[l] = (uint8_t)(h >> 3);
    }
}

void gg_form_pack_iq1_m(void *block, const struct gg_form_block *b)
{
    struct gg_block_iq1_m x = { .qs = { 0 } };
    unsigned half = gg_dtype_f32_to_f16(b->d);
    for (int k = 0; k < 4; k++) {
        unsigned word = (half >> 4 * k & 15) << 12;
        for (int s = 0; s < 4; s++)
            word |= (unsigned)b->scale[4 * k + s] << 3 * s;
        gg_bytes_store16le(x.scales + 2 * k, (uint16_t)word);
    }
    for (int l = 0; l < 32; l++) {
        unsigned h = b->code[l] >> 8 | (unsigned)b->shift[l] << 3;
        x.qs[l] = (uint8_t)b->code[l];
        x.qh[l / 2] |= (uint8_t)(h << 4 * (l & 1));
    }
    GG_PUT_BLOCK(x, block, 0);
}
