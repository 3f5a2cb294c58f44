/* SPDX-License-Identifier: MIT */
/* form_tern.c - blocks of one and two bits and of ternary digits
 *
 * The layouts are those of the decoders, kern/c/deq_tern.c.
 */
#include "config.h"
#include "fit/form_int.h"

/* The three parts of TQ1_0: n bytes, in which digit k of byte j is element
 * n * k + j of the part. */
struct part {
    uint8_t n_bytes, n_digits, element;
};
static const struct part part[3] = { { 32, 5, 0 },
                                     { 16, 5, 160 },
                                     { 4, 4, 240 } };

/* A byte is the number 0.ddddd in base 3, times 256 and rounded up:
 * multiplying by three brings out a digit. */
static void get_digits(uint16_t *code, const uint8_t *qs, const struct part *p)
{
    for (unsigned j = 0; j < p->n_bytes; j++) {
        uint8_t v = qs[j];
        for (unsigned k = 0; k < p->n_digits; k++) {
            code[p->element + p->n_bytes * k + j] = (uint16_t)(v * 3 >> 8);
            v = (uint8_t)(v * 3);
        }
    }
}

static void put_digits(uint8_t *qs, const uint16_t *code, const struct part *p)
{
    for (unsigned j = 0; j < p->n_bytes; j++) {
        unsigned v = 0;
        for (unsigned k = 0; k < 5; k++)
            v = 3 * v +
                (k < p->n_digits ? code[p->element + p->n_bytes * k + j] : 0u);
        qs[j] = (uint8_t)((v * 256 + 242) / 243);
    }
}

void gg_form_unpack_tq1_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_tq1_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    get_digits(b->code, x.qs, &part[0]);
    get_digits(b->code, x.qs + 32, &part[1]);
    get_digits(b->code, x.qh, &part[2]);
}

void gg_form_pack_tq1_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_tq1_0 x;
    gg_form_put_f16(&x.d, b->scale[0]);
    put_digits(x.qs, b->code, &part[0]);
    put_digits(x.qs + 32, b->code, &part[1]);
    put_digits(x.qh, b->code, &part[2]);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_tq2_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_tq2_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    for (unsigned e = 0; e < 256; e++)
        b->code[e] = (uint16_t)gg_kern_pair_of(x.qs, e);
}

void gg_form_pack_tq2_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_tq2_0 x;
    uint8_t q[256];
    gg_form_put_f16(&x.d, b->scale[0]);
    for (int e = 0; e < 256; e++)
        q[e] = (uint8_t)b->code[e];
    gg_kern_pack_pairs(x.qs, q);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_q1_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_q1_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    for (int e = 0; e < 128; e++)
        b->code[e] = x.qs[e / 8] >> e % 8 & 1;
}

void gg_form_pack_q1_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_q1_0 x = { .d = 0 };
    gg_form_put_f16(&x.d, b->scale[0]);
    for (int e = 0; e < 128; e++)
        x.qs[e / 8] |= (uint8_t)(b->code[e] << e % 8);
    GG_PUT_BLOCK(x, block, 0);
}

void gg_form_unpack_q2_0(struct gg_form_block *b, const void *block)
{
    struct gg_block_q2_0 x;
    GG_GET_BLOCK(x, block, 0);
    *b = GG_FORM_EMPTY;
    b->scale[0] = gg_form_get_f16(&x.d);
    for (int e = 0; e < 64; e++)
        b->code[e] = x.qs[e / 4] >> 2 * (e % 4) & 3;
}

void gg_form_pack_q2_0(void *block, const struct gg_form_block *b)
{
    struct gg_block_q2_0 x = { .d = 0 };
    gg_form_put_f16(&x.d, b->scale[0]);
    for (int e = 0; e < 64; e++)
        x.qs[e / 4] |= (uint8_t)(b->code[e] << 2 * (e % 4));
    GG_PUT_BLOCK(x, block, 0);
}
