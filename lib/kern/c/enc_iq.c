/* SPDX-License-Identifier: MIT */
/* enc_iq.c - reference encoders of the IQ2 and IQ3 types
 *
 * For each part a few scales are tried. Elements round to levels; a group whose
 * levels are not a codebook entry gets the best of the near entries. The scale
 * whose fit explains most wins and is then fitted once more. Source: the
 * functions quantize_row_iq2_*_impl and iq3_*_impl of ggml-quants.c (ggml
 * commit d99724f). Where those abort (sums that overflow), the first near entry
 * is taken.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_iq.h"
#include "kern/c/enc_search_ref.h"
#include "kern/c/round.h"

#include <float.h>

/* A part on its way. */
struct part {
    float x[32], w[32]; /* magnitudes (one may be negative); importances */
    float root[32];     /* square roots of importances */
    uint16_t code[8];   /* level numbers, of codebook entries */
    uint8_t near[8];    /* the group was no entry before */
    int zero;           /* the part is zero: it is not fitted */
};

/* Magnitudes and signs of eight elements. If the number of signs must be
 * even and is not, the element that matters least is given the wrong one. */
static uint8_t split_signs(const float *x, const float *w, int even,
                           float *magnitude)
{
    unsigned signs = 0, odd = 0;
    for (int i = 0; i < 8; i++) {
        int minus = !(x[i] >= 0);
        magnitude[i] = minus ? -x[i] : x[i];
        signs |= (unsigned)minus << i;
        odd ^= (unsigned)minus;
    }
    if (even && odd) {
        int least = 0;
        for (int i = 1; i < 8; i++)
            if (w[i] * x[i] * x[i] < w[least] * x[least] * x[least])
                least = i;
        magnitude[least] = -magnitude[least];
        signs ^= 1u << least;
    }
    return (uint8_t)(even ? signs & 127 : signs);
}

/* The near entry with the least error at this scale. */
static unsigned best_near(const struct gg_kern_iq_book *b, unsigned point,
                          const float *x, const float *root, float scale)
{
    float best = FLT_MAX;
    uint32_t from = b->start[point] >> 1, to = b->start[point + 1] >> 1;
    unsigned code = b->near[from];
    for (; from < to; from++) {
        float d = 0;
        for (int i = 0; i < b->group; i++) {
            float q = (float)(2 * gg_kern_iq_level(b, b->near[from], i) + 1);
            float e = scale * q - x[i];
            d += root[i] * e * e;
        }
        if (d < best) {
            best = d;
            code = b->near[from];
        }
    }
    return code;
}

/* Levels of group g when elements are divided by scale = 1/inv. */
static void round_group(const struct gg_kern_iq_book *b, struct part *p, int g,
                        float inv, float scale)
{
    const float *x = p->x + b->group * g;
    unsigned code = 0;
    for (int i = 0; i < b->group; i++) {
        int l =
            gg_kern_clamp(gg_kern_nearest(0.5f * (inv * x[i] - 1)), 0, b->top);
        code |= (unsigned)l << b->bits * i;
    }
    unsigned point = gg_kern_iq_point(b, code);
    p->near[g] = !(b->start[point] & 1);
    if (p->near[g])
        code = best_near(b, point, x, p->root + b->group * g, scale);
    p->code[g] = (uint16_t)code;
}

static void part_sums(const struct gg_kern_iq_type *t, const struct part *p,
                      float *qx, float *qq)
{
    const struct gg_kern_iq_book *b = &t->book;
    *qx = *qq = 0;
    for (int i = 0; i < t->n; i++) {
        unsigned l = gg_kern_iq_level(b, p->code[i / b->group], i % b->group);
        float q = (float)(2 * l + 1);
        *qx += p->w[i] * p->x[i] * q;
        *qq += p->w[i] * q * q;
    }
}

/* The scale that the trial scales are around: the largest element over the
 * largest odd number, or less. Returns what trials divide by; 0: zero part. */
static float start_scale(const struct gg_kern_iq_type *t, const struct part *p,
                         float *scale)
{
    float max = p->x[0];
    for (int i = 1; i < t->n; i++)
        max = max > p->x[i] ? max : p->x[i];
    if (max < t->zero)
        return 0;
    if (!t->fit_start) {
        *scale = max / (float)(2 * t->book.top + 1);
        return max;
    }
    uint8_t q[32];
    *scale = gg_kern_fit_positive(p->x, p->w, t->n, t->book.top + 2, q);
    float reach = *scale * (float)(t->book.top + 1);
    return reach <= 0 ? 0 : reach;
}

/* Fit a part; returns its scale, which is negative if all signs are to be
 * turned. */
static float fit_part(const struct gg_kern_iq_type *t, struct part *p)
{
    int n_group = t->n / t->book.group;
    float scale = 0, best = 0, qx, qq;
    float max = start_scale(t, p, &scale);
    memset(p->code, 0, sizeof p->code);
    memset(p->near, t->refine_all, sizeof p->near);
    p->zero = max == 0;
    if (p->zero)
        return 0;
    struct part try = *p;
    for (int k = -t->n_try; k <= t->n_try; k++) {
        float inv = ((float)(2 * t->book.top + 1) + (float)k * t->step) / max;
        for (int g = 0; g < n_group; g++)
            round_group(&t->book, &try, g, inv, 1 / inv);
        part_sums(t, &try, &qx, &qq);
        if (qq > 0 && qx * qx > best * qq) {
            scale = qx / qq;
            best = scale * qx;
            *p = try;
        }
    }
    int n_near = 0;
    for (int g = 0; g < n_group; g++)
        n_near += p->near[g];
    if ((n_near || t->fit_start) && scale > 0) {
        float inv = 1 / scale;
        for (int g = 0; g < n_group; g++)
            if (p->near[g] || t->refine_all)
                round_group(&t->book, p, g, inv, scale);
        part_sums(t, p, &qx, &qq);
        if (qq > 0)
            scale = qx / qq;
    }
    return scale;
}

static void weigh_group(const struct gg_kern_iq_type *t, const float *x,
                        const float *weight, float sigma2, float *w)
{
    for (int i = 0; i < t->n; i++) {
        if (weight)
            w[i] = weight[i] * sqrtf(sigma2 + x[i] * x[i]);
        else if (t->plain == GG_IQ_SHIFTED)
            w[i] = 0.25f * sigma2 + x[i] * x[i];
        else
            w[i] = x[i] * x[i];
    }
}

static void fit_block(const struct gg_kern_iq_type *t, const float *x,
                      const float *weight, struct gg_kern_iq_block *b)
{
    float sum = 0;
    for (int i = 0; i < 256; i++)
        sum += x[i] * x[i];
    float sigma2 = t->sigma * sum / 256;
    memset(b, 0, sizeof *b);
    for (int s = 0; s < 256 / t->n; s++) {
        struct part p;
        const float *xs = x + t->n * s;
        uint8_t *signs = b->signs + t->n / 8 * s;
        weigh_group(t, xs, weight ? weight + t->n * s : NULL, sigma2, p.w);
        for (int i = 0; i < t->n; i++)
            p.root[i] = sqrtf(p.w[i]);
        for (int k = 0; k < t->n / 8; k++)
            signs[k] =
                split_signs(xs + 8 * k, p.w + 8 * k, t->even, p.x + 8 * k);
        b->scale[s] = fit_part(t, &p);
        b->zero[s] = (uint8_t)p.zero;
        if (b->scale[s] < 0) {
            b->scale[s] = -b->scale[s];
            for (int k = 0; k < t->n / 8; k++)
                signs[k] = (uint8_t)(~signs[k] & (t->even ? 127 : 255));
        } else if (p.zero) {
            memset(signs, 0, (size_t)(t->n / 8));
        }
        int n_group = t->n / t->book.group;
        for (int g = 0; g < n_group; g++)
            b->entry[n_group * s + g] =
                (uint16_t)(p.zero ? 0 : gg_kern_iq_entry(&t->book, p.code[g]));
    }
    gg_kern_iq_scale_codes(t, b);
}

void gg_kern_iq_scale_codes(const struct gg_kern_iq_type *t,
                            struct gg_kern_iq_block *b)
{
    float max = 0;
    for (int s = 0; s < 256 / t->n; s++)
        max = max > b->scale[s] ? max : b->scale[s];
    /* types with all signs keep the entries and signs of zero parts */
    if (max == 0) {
        if (t->even)
            memset(b, 0, sizeof *b);
        return;
    }
    float d = max / 31, inv = 1 / d;
    for (int s = 0; s < 256 / t->n; s++)
        b->code[s] = (uint8_t)gg_kern_clamp(
            gg_kern_nearest(0.5f * (inv * b->scale[s] - 1)), 0, 15);
    b->d = d * t->fudge;
}

void gg_kern_iq2_xxs_put(const struct gg_kern_iq_block *b, void *out)
{
    struct gg_block_iq2_xxs y;
    gg_kern_put_half(&y.d, b->d);
    for (int s = 0; s < 8; s++) {
        uint8_t *p = (uint8_t *)y.qs + 8 * s;
        uint32_t rest = (uint32_t)b->code[s] << 28;
        for (int k = 0; k < 4; k++) {
            p[k] = (uint8_t)b->entry[4 * s + k];
            rest |= (uint32_t)b->signs[4 * s + k] << 7 * k;
        }
        gg_bytes_store32le(p + 4, rest);
    }
    GG_PUT_BLOCK(y, out, 0);
}

static void put_pairs_of_codes(uint8_t *scales, const uint8_t *code, int n)
{
    for (int s = 0; s < n; s += 2)
        scales[s / 2] = (uint8_t)(code[s] | code[s + 1] << 4);
}

void gg_kern_iq2_xs_put(const struct gg_kern_iq_block *b, void *out)
{
    struct gg_block_iq2_xs y;
    gg_kern_put_half(&y.d, b->d);
    for (int k = 0; k < 32; k++)
        gg_bytes_store16le(&y.qs[k],
                           (uint16_t)(b->entry[k] | b->signs[k] << 9));
    put_pairs_of_codes(y.scales, b->code, 16);
    GG_PUT_BLOCK(y, out, 0);
}

void gg_kern_iq2_s_put(const struct gg_kern_iq_block *b, void *out)
{
    struct gg_block_iq2_s y;
    gg_kern_put_half(&y.d, b->d);
    memset(y.qh, 0, sizeof y.qh);
    for (int k = 0; k < 32; k++) {
        y.qs[k] = (uint8_t)b->entry[k];
        y.qs[32 + k] = b->signs[k];
        y.qh[k / 4] |= (uint8_t)(b->entry[k] >> 8 << 2 * (k % 4));
    }
    put_pairs_of_codes(y.scales, b->code, 16);
    GG_PUT_BLOCK(y, out, 0);
}

void gg_kern_iq3_xxs_put(const struct gg_kern_iq_block *b, void *out)
{
    struct gg_block_iq3_xxs y;
    gg_kern_put_half(&y.d, b->d);
    for (int k = 0; k < 64; k++)
        y.qs[k] = (uint8_t)b->entry[k];
    for (int s = 0; s < 8; s++) {
        uint32_t rest = (uint32_t)b->code[s] << 28;
        for (int k = 0; k < 4; k++)
            rest |= (uint32_t)b->signs[4 * s + k] << 7 * k;
        gg_bytes_store32le(y.qs + 64 + 4 * s, rest);
    }
    GG_PUT_BLOCK(y, out, 0);
}

/* ggml has a slip here: after a part of zeros the low index bits and signs of
 * the following parts move up into its place, while their high bits and scales
 * do not. The bytes are to be the same, so it is kept. */
void gg_kern_iq3_s_put(const struct gg_kern_iq_block *b, void *out)
{
    struct gg_block_iq3_s y;
    memset(&y, 0, sizeof y);
    gg_kern_put_half(&y.d, b->d);
    for (int s = 0, to = 0; s < 8; s++) {
        for (int k = 0; k < 8; k++)
            y.qh[s] |= (uint8_t)(b->entry[8 * s + k] >> 8 << k);
        if (b->zero[s])
            continue;
        for (int k = 0; k < 8; k++)
            y.qs[8 * to + k] = (uint8_t)b->entry[8 * s + k];
        memcpy(y.signs + 4 * to, b->signs + 4 * s, 4);
        to++;
    }
    put_pairs_of_codes(y.scales, b->code, 8);
    GG_PUT_BLOCK(y, out, 0);
}

static void encode_rows(const struct gg_kern_iq_type *t,
                        gg_kern_iq_put_fn *put, const float *src, uint8_t *out,
                        size_t size, size_t n_rows, size_t row_len,
                        const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++) {
        struct gg_kern_iq_block b;
        fit_block(t, src + 256 * i, weight ? weight + i % n_block * 256 : NULL,
                  &b);
        put(&b, out + size * i);
    }
}

#define ENCODER(NAME, TYPE)                                                   \
    void gg_kern_encode_##NAME##_c(const float *src, void *dst,               \
                                   size_t n_rows, size_t row_len,             \
                                   const float *weight)                       \
    {                                                                         \
        static const struct gg_kern_iq_type type = TYPE;                      \
        encode_rows(&type, gg_kern_##NAME##_put, src, dst,                    \
                    sizeof(struct gg_block_##NAME), n_rows, row_len, weight); \
    }

ENCODER(iq2_xxs, GG_IQ2_XXS_TYPE)
ENCODER(iq2_xs, GG_IQ2_XS_TYPE)
ENCODER(iq2_s, GG_IQ2_S_TYPE)
ENCODER(iq3_xxs, GG_IQ3_XXS_TYPE)
ENCODER(iq3_s, GG_IQ3_S_TYPE)
