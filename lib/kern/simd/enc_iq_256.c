/* SPDX-License-Identifier: MIT */
/* enc_iq_256.c - encoders of the IQ2 and IQ3 types
 *
 * Lanes are trial scales, where groups are rounded and fits are summed up, and
 * near entries, where those of a point are compared. Each lane keeps the
 * reference's order (c/enc_iq.c), and of equal errors the first in the list
 * wins, as there. Most groups need not ask that for each scale
 * (iq_trials_256.h).
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_iq.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/iq_trials_256.h"
#include "kern/simd/v256.h"

/* Sums of w*x*q and w*q*q for eight sets of codes, one per lane; code points
 * to those of group 0, those of a group are
 * CODE_ROOM apart. */
static GG_ALWAYS_INLINE void trial_sums(const struct gg_kern_iq_type *t,
                                        const struct part *p,
                                        const uint16_t *code, __m256 *qx,
                                        __m256 *qq)
{
    const struct gg_kern_iq_book *b = &t->book;
    const __m256 odd = odd_numbers(b);
    *qx = *qq = _mm256_setzero_ps();
    for (int g = 0; g < t->n / b->group; g++) {
        __m256i c =
            _mm256_cvtepu16_epi32(gg_v256_load128(code + CODE_ROOM * g));
        for (int i = b->group * g; i < b->group * (g + 1); i++) {
            __m256 q = _mm256_permutevar8x32_ps(odd, c);
            __m256 w = _mm256_set1_ps(p->w[i]);
            __m256 wx = _mm256_mul_ps(w, _mm256_set1_ps(p->x[i]));
            *qx = _mm256_add_ps(*qx, _mm256_mul_ps(wx, q));
            *qq = _mm256_add_ps(*qq, _mm256_mul_ps(_mm256_mul_ps(w, q), q));
            c = _mm256_srli_epi32(c, b->bits);
        }
    }
}

/* Try all scales; the best one's codes go into p. Returns its scale. */
static GG_ALWAYS_INLINE float try_scales(const struct gg_kern_iq_type *t,
                                         struct part *p, float scale,
                                         float max)
{
    const __m256 step = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    struct trials s;
    float qx[MAX_TRY], qq[MAX_TRY], best = 0;
    int chosen = -1;
    s.n = 2 * t->n_try + 1;
    for (int k = 0; k < s.n; k += 8) {
        __m256 v = _mm256_add_ps(_mm256_set1_ps((float)(k - t->n_try)), step);
        v = _mm256_mul_ps(v, _mm256_set1_ps(t->step));
        v = _mm256_add_ps(v, _mm256_set1_ps((float)(2 * t->book.top + 1)));
        v = _mm256_div_ps(v, _mm256_set1_ps(max));
        _mm256_storeu_ps(s.inv + k, v);
        _mm256_storeu_ps(s.scale + k, _mm256_div_ps(_mm256_set1_ps(1), v));
    }
    if (!round_trials(&t->book, p, t->n, &s)) {
        p->failed = 1;
        return 0;
    }
    for (int k = 0; k < s.n; k += 8) {
        __m256 x, q;
        trial_sums(t, p, s.code[0] + k, &x, &q);
        _mm256_storeu_ps(qx + k, x);
        _mm256_storeu_ps(qq + k, q);
    }
    for (int k = 0; k < s.n; k++)
        if (qq[k] > 0 && qx[k] * qx[k] > best * qq[k]) {
            scale = qx[k] / qq[k];
            best = scale * qx[k];
            chosen = k;
        }
    if (chosen >= 0)
        p->near = 0;
    for (int g = 0; chosen >= 0 && g < t->n / t->book.group; g++) {
        p->code[g] = s.code[g][chosen];
        p->near |= (s.near[g] >> chosen & 1) << g;
    }
    return scale;
}

/* Round once more by the scale found, all groups or those that were no entry,
 * and fit again. */
static GG_ALWAYS_INLINE float refit_groups(const struct gg_kern_iq_type *t,
                                           struct part *p, float scale)
{
    const struct gg_kern_iq_book *b = &t->book;
    uint16_t code[8][CODE_ROOM];
    float inv[8];
    __m256 qx, qq;
    _mm256_storeu_ps(inv, _mm256_set1_ps(1 / scale));
    p->failed = !(p->amax * inv[0] < MAX_QUOTIENT);
    if (p->failed)
        return 0;
    for (int g = 0; g < t->n / b->group; g++) {
        const float *x = p->x + b->group * g;
        int32_t point[8];
        if (p->near >> g & 1 || t->refine_all) {
            round_group(b, x, inv, code[g], point);
            p->code[g] = code[g][0];
            if (!(b->start[point[0]] & 1))
                p->code[g] = (uint16_t)best_near(
                    b, (unsigned)point[0], x, p->root + b->group * g, scale);
        }
        _mm_storeu_si128((void *)code[g], _mm_set1_epi16((short)p->code[g]));
    }
    trial_sums(t, p, code[0], &qx, &qq);
    float x = _mm256_cvtss_f32(qx), q = _mm256_cvtss_f32(qq);
    return q > 0 ? x / q : scale;
}

/* As fit_part of the reference; start: what gg_kern_fit_positive gave, for
 * types with fit_start. */
static GG_ALWAYS_INLINE float fit_part(const struct gg_kern_iq_type *t,
                                       struct part *p, float start)
{
    float scale, max;
    __m256 hi = _mm256_loadu_ps(p->x), a = gg_v256_abs_ps(hi);
    for (int i = 8; i < t->n; i += 8) {
        __m256 v = _mm256_loadu_ps(p->x + i);
        hi = _mm256_max_ps(hi, v);
        a = _mm256_max_ps(a, gg_v256_abs_ps(v));
    }
    max = gg_v256_hmax_ps(hi);
    p->amax = gg_v256_hmax_ps(a);
    p->failed = 0;
    memset(p->code, 0, sizeof p->code);
    p->near = t->refine_all;
    p->zero = 1;
    if (max < t->zero)
        return 0;
    if (t->fit_start) {
        scale = start;
        max = scale * (float)(t->book.top + 1);
        if (max <= 0)
            return 0;
    } else {
        scale = max / (float)(2 * t->book.top + 1);
        if (max == 0)
            return 0;
    }
    p->zero = 0;
    scale = try_scales(t, p, scale, max);
    if ((p->near || t->fit_start) && scale > 0)
        scale = refit_groups(t, p, scale);
    return scale;
}

/* Magnitudes and signs of eight elements, as in the reference. */
static inline uint8_t split_signs(const float *x, const float *w, int even,
                                  float *magnitude)
{
    __m256 v = _mm256_loadu_ps(x);
    __m256 minus = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NGE_UQ);
    __m256 m = _mm256_xor_ps(v, _mm256_and_ps(minus, _mm256_set1_ps(-0.0f)));
    unsigned signs = (unsigned)_mm256_movemask_ps(minus);
    _mm256_storeu_ps(magnitude, m);
    if (even && gg_dtype_iq_signs(signs) != signs) {
        float e[8];
        int least = 0;
        _mm256_storeu_ps(
            e, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(w), v), v));
        for (int i = 1; i < 8; i++)
            if (e[i] < e[least])
                least = i;
        magnitude[least] = -magnitude[least];
        signs ^= 1u << least;
    }
    return (uint8_t)(even ? signs & 127 : signs);
}

static GG_ALWAYS_INLINE void weigh_group(const struct gg_kern_iq_type *t,
                                         const float *x, const float *weight,
                                         float sigma2, struct part *p)
{
    __m256 s = _mm256_set1_ps(sigma2);
    for (int i = 0; i < t->n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i), w = _mm256_mul_ps(v, v);
        if (weight)
            w = _mm256_mul_ps(_mm256_loadu_ps(weight + i),
                              _mm256_sqrt_ps(_mm256_add_ps(s, w)));
        else if (t->plain == GG_IQ_SHIFTED)
            w = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(0.25f), s), w);
        _mm256_storeu_ps(p->w + i, w);
        _mm256_storeu_ps(p->root + i, _mm256_sqrt_ps(w));
    }
}

/* Importances, magnitudes and signs of all parts of a block. */
static GG_ALWAYS_INLINE void split_block(const struct gg_kern_iq_type *t,
                                         const float *x, const float *weight,
                                         struct part *p, uint8_t *signs)
{
    float sum = 0;
    for (int i = 0; i < 256; i++)
        sum += x[i] * x[i];
    float sigma2 = t->sigma * sum / 256;
    for (int s = 0; s < 256 / t->n; s++) {
        weigh_group(t, x + t->n * s, weight ? weight + t->n * s : NULL, sigma2,
                    &p[s]);
        for (int k = 0; k < t->n; k += 8)
            *signs++ =
                split_signs(x + t->n * s + k, p[s].w + k, t->even, p[s].x + k);
    }
}

/* The scales that trials start from, of the eight parts of types that have
 * them. */
static GG_ALWAYS_INLINE void start_scales(const struct gg_kern_iq_type *t,
                                          const struct part *p, float *start)
{
    const float *x[8], *w[8];
    for (int s = 0; s < 8; s++) {
        x[s] = p[s].x;
        w[s] = p[s].w;
    }
    gg_kern_scales_positive_256(x, w, t->n, t->book.top + 2, start);
}

/* Returns 0 for a block that is the reference's. */
static GG_ALWAYS_INLINE int fit_block(const struct gg_kern_iq_type *t,
                                      const float *x, const float *weight,
                                      struct gg_kern_iq_block *b)
{
    struct part p[16];
    float start[16] = { 0 };
    int n_group = t->n / t->book.group, n_sign = t->n / 8;
    memset(b, 0, sizeof *b);
    split_block(t, x, weight, p, b->signs);
    if (t->fit_start)
        start_scales(t, p, start);
    for (int s = 0; s < 256 / t->n; s++) {
        uint8_t *signs = b->signs + n_sign * s;
        b->scale[s] = fit_part(t, &p[s], start[s]);
        if (p[s].failed)
            return 0;
        b->zero[s] = (uint8_t)p[s].zero;
        if (p[s].zero)
            memset(signs, 0, (size_t)n_sign);
        if (b->scale[s] < 0) {
            b->scale[s] = -b->scale[s];
            for (int k = 0; k < n_sign; k++)
                signs[k] = (uint8_t)(~signs[k] & (t->even ? 127 : 255));
        }
        for (int g = 0; g < n_group; g++)
            b->entry[n_group * s + g] =
                (uint16_t)(p[s].zero
                               ? 0
                               : gg_kern_iq_entry(&t->book, p[s].code[g]));
    }
    gg_kern_iq_scale_codes(t, b);
    return 1;
}

static GG_ALWAYS_INLINE void
encode(const struct gg_kern_iq_type *t, gg_kern_iq_put_fn *put,
       gg_kern_encode_fn *reference, const float *src, uint8_t *out,
       size_t size, size_t n_rows, size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256, out += size) {
        const float *w = weight ? weight + i % n_block * 256 : NULL;
        struct gg_kern_iq_block b;
        if (gg_v256_all_finite(src, 256) && fit_block(t, src, w, &b))
            put(&b, out);
        else
            reference(src, out, 1, 256, w);
    }
}

#define ENCODER(NAME, TYPE)                                                   \
    void gg_kern_encode_##NAME##_256(const float *src, void *dst,             \
                                     size_t n_rows, size_t row_len,           \
                                     const float *weight)                     \
    {                                                                         \
        static const struct gg_kern_iq_type type = TYPE;                      \
        encode(&type, gg_kern_##NAME##_put, gg_kern_encode_##NAME##_c, src,   \
               dst, sizeof(struct gg_block_##NAME), n_rows, row_len, weight); \
    }

ENCODER(iq2_xxs, GG_IQ2_XXS_TYPE)
ENCODER(iq2_xs, GG_IQ2_XS_TYPE)
ENCODER(iq2_s, GG_IQ2_S_TYPE)
ENCODER(iq3_xxs, GG_IQ3_XXS_TYPE)
ENCODER(iq3_s, GG_IQ3_S_TYPE)
