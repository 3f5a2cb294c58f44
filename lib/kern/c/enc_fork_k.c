/* SPDX-License-Identifier: MIT */
/* enc_fork_k.c - reference encoders of IQ3_K to IQ6_K
 *
 * A search finds the scale and the shift of 16 elements. The block's scale is
 * then fitted to the codes that these scales make.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_fork.h"

/* A block during encoding. */
struct block {
    float w[256];     /* weights of elements */
    float scale[16];  /* scales of sub-blocks, before rounding */
    uint8_t q[256];   /* codes */
    int8_t s[16];     /* scales as integers */
    uint16_t shifted; /* bit s: sub-block s */
    float d;
};

struct type {
    void (*levels)(struct gg_kern_fork_levels *t);
    struct gg_kern_fork_weight_rule rule;
    struct gg_kern_fork_search search;
    int n_max, lo, hi; /* the largest scale becomes -n_max; range of scales */
    bool refit;        /* fit scales of sub-blocks once more */
    bool code_zero;    /* sub-blocks with scale 0 have codes, too */
};

static const struct type iq3_k = {
    gg_kern_fork_levels_3,
    { 16, 1.5f, 0.25f },
    { 3, 2, true },
    .refit = true,
};
static const struct type iq4_k = {
    gg_kern_fork_levels_4, { 16, 2, 0 }, { 7, 1, false }, 32, -32, 31,
    .code_zero = true,
};
static const struct type iq5_k = {
    gg_kern_fork_levels_5, { 16, 2, 0.25f }, { 5, 1, false }, 32, -32, 31,
    .refit = true,
};
static const struct type iq6_k = {
    gg_kern_fork_levels_6, { 16, 2, 0.25f }, { 5, 1, false }, 127, -127, 127,
    .refit = true,
};

/* Codes of 16 elements for a scale 1 / id; adds their sums, each level times
 * `factor'. */
static void code_sub(struct gg_kern_fork_sums *sum, uint8_t *q,
                     const struct gg_kern_fork_levels *t, bool shifted,
                     float id, float factor, const float *x, const float *w)
{
    const float *v = t->v + (shifted ? t->n : 0);
    for (int j = 0; j < 16; j++) {
        q[j] = (uint8_t)gg_kern_fork_nearest(t, v, id * x[j]);
        gg_kern_fork_add(sum, w[j], v[q[j]] * factor, x[j]);
    }
}

/* Find the scales of sub-blocks. Returns the one of largest magnitude. */
static float find_scales(struct block *b, const struct type *type,
                         const struct gg_kern_fork_levels *t, const float *x,
                         const float *importance)
{
    float max = 0;
    memset(b, 0, sizeof *b);
    gg_kern_fork_weights(b->w, x, importance, &type->rule);
    for (int s = 0; s < 16; s++, x += 16) {
        const float *w = b->w + 16 * s;
        struct gg_kern_fork_fit f =
            gg_kern_fork_search(t, &type->search, x, w, 16);
        if (type->refit && f.d != 0) {
            struct gg_kern_fork_sums sum = { 0, 0 };
            uint8_t q[16];
            code_sub(&sum, q, t, f.shifted, 1 / f.d, 1, x, w);
            if (sum.q2 > 0)
                f.d = sum.qx / sum.q2;
        }
        b->scale[s] = f.d;
        b->shifted |= (uint16_t)(f.shifted << s);
        if (fabsf(f.d) > fabsf(max))
            max = f.d;
    }
    return max;
}

/* Round scales to integers, find codes and the block's scale. */
static void find_codes(struct block *b, const struct type *type,
                       const struct gg_kern_fork_levels *t, const float *x,
                       float max)
{
    struct gg_kern_fork_sums sum = { 0, 0 };
    float d = -max / (float)type->n_max, id = d != 0 ? 1 / d : 0;
    b->d = d;
    if (max == 0 && !type->code_zero) { /* all bytes are zero */
        memset(b->s, type->lo == -32 ? -32 : 0, sizeof b->s);
        b->d = 0;
        return;
    }
    for (int s = 0; s < 16; s++) {
        int v = gg_kern_clamp(gg_kern_nearest(id * b->scale[s]), type->lo,
                              type->hi);
        float dl = d * (float)v;
        b->s[s] = (int8_t)v;
        if (dl == 0 && !type->code_zero)
            continue;
        code_sub(&sum, b->q + 16 * s, t, b->shifted >> s & 1,
                 dl != 0 ? 1 / dl : 0, (float)v, x + 16 * s, b->w + 16 * s);
    }
    if (sum.q2 > 0)
        b->d = sum.qx / sum.q2;
}

/* Encode rows: CODES finds the codes of block b, PACK writes its bytes to the
 * zeroed block y. */
#define ENCODER(NAME, CODES, PACK)                                            \
    void gg_kern_encode_##NAME##_c(const float *src, void *dst,               \
                                   size_t n_rows, size_t row_len,             \
                                   const float *weight)                       \
    {                                                                         \
        struct gg_kern_fork_levels t;                                         \
        NAME.levels(&t);                                                      \
        for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {     \
            const float *w = weight ? weight + i * 256 % row_len : NULL;      \
            struct gg_block_##NAME y = { 0 };                                 \
            struct block b;                                                   \
            float max = find_scales(&b, &NAME, &t, src, w);                   \
            CODES(&b, &NAME, &t, src, max);                                   \
            gg_kern_put_half(&y.d, b.d);                                      \
            gg_bytes_store16le(&y.extra, b.shifted);                          \
            PACK(&y, &b);                                                     \
            GG_PUT_BLOCK(y, dst, i);                                          \
        }                                                                     \
    }

/* Scales of IQ3_K: signs and odd magnitudes, 1 to 31. */
static void find_codes_3(struct block *b, const struct type *type,
                         const struct gg_kern_fork_levels *t, const float *x,
                         float max)
{
    struct gg_kern_fork_sums sum = { 0, 0 };
    float d = fabsf(max) / 31;
    (void)type;
    if (d == 0)
        return;
    for (int s = 0; s < 16; s++) {
        float a = fabsf(b->scale[s]), id = 1 / d;
        int v = gg_kern_clamp(gg_kern_nearest(0.5f * (id * a - 1)), 0, 15);
        v = b->scale[s] < 0 ? -(2 * v + 1) : 2 * v + 1;
        b->s[s] = (int8_t)v;
        code_sub(&sum, b->q + 16 * s, t, b->shifted >> s & 1,
                 1 / (d * (float)v), (float)v, x + 16 * s, b->w + 16 * s);
    }
    b->d = 1.01f * (sum.q2 > 0 ? sum.qx / sum.q2 : d);
}

static void pack_iq3_k(struct gg_block_iq3_k *y, const struct block *b)
{
    unsigned signs = 0;
    for (int s = 0; s < 16; s++) {
        int v = b->s[s];
        signs |= (unsigned)(v < 0) << s;
        gg_kern_fork_put_nibble(y->scales_l, s, (v < 0 ? -v : v) / 2);
    }
    gg_bytes_store16le(&y->scales_h, (uint16_t)signs);
    gg_kern_pack_pairs(y->qs, b->q);
    gg_kern_fork_put_bits(y->qh, b->q, 2);
}
ENCODER(iq3_k, find_codes_3, pack_iq3_k)

/* Scales -32 .. 31 of IQ4_K and IQ5_K (gg_kern_iq4k_scale). */
static void put_scales(uint8_t low[8], uint8_t high[4], const int8_t scale[16])
{
    for (int s = 0; s < 16; s++) {
        int v = scale[s] + 32;
        gg_kern_fork_put_nibble(low, s, v & 15);
        high[s / 4] |= (uint8_t)(v >> 4 << 2 * (s % 4));
    }
}

static void pack_iq4_k(struct gg_block_iq4_k *y, const struct block *b)
{
    put_scales(y->scales_l, y->scales_h, b->s);
    gg_kern_fork_put_nibbles(y->qs, b->q, 16);
}
ENCODER(iq4_k, find_codes, pack_iq4_k)

static void pack_iq5_k(struct gg_block_iq5_k *y, const struct block *b)
{
    put_scales(y->scales_l, y->scales_h, b->s);
    gg_kern_fork_put_nibbles(y->qs, b->q, 32);
    gg_kern_fork_put_bits(y->qh, b->q, 4);
}
ENCODER(iq5_k, find_codes, pack_iq5_k)

static void pack_iq6_k(struct gg_block_iq6_k *y, const struct block *b)
{
    uint8_t high[256];
    memcpy(y->scales, b->s, 16);
    gg_kern_fork_put_nibbles(y->qs, b->q, 32);
    for (int e = 0; e < 256; e++)
        high[e] = b->q[e] >> 4;
    gg_kern_pack_pairs(y->qh, high);
}
ENCODER(iq6_k, find_codes, pack_iq6_k)
