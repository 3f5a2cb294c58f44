/* enc_iq_avx2.c - encoders of the IQ2 and IQ3 types
 *
 * Two kinds of lanes: the near entries of a point are compared eight at a
 * time, and the fits of the trial scales are summed one scale per lane. Each
 * lane keeps the reference's order (c/enc_iq.c), and of equal errors the first
 * in the list wins, as there.
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_iq.h"
#include "kern/c/enc_search.h"
#include "kern/c/round.h"
#include "kern/x86/x86.h"

#include <float.h>

#define MAX_TRY 32 /* trial scales, at most */

struct part {
    float x[32], w[32], root[32];
    uint16_t code[8];
    uint8_t near[8];
    int zero;
};

/* Levels of up to 32 elements by inv, as bytes. */
static GG_ALWAYS_INLINE __m256i round_levels(const float *x, int n, int top,
                                             float inv)
{
    const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1);
    __m256i v[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(),
                     _mm256_setzero_si256(), _mm256_setzero_si256() };
    for (int k = 0; k < n / 8; k++) {
        __m256 t = _mm256_mul_ps(_mm256_set1_ps(inv),
                                 _mm256_loadu_ps(x + 8 * k));
        t = _mm256_mul_ps(half, _mm256_sub_ps(t, one));
        v[k] = gg_clamp_epi32(gg_nearest_epi32(t), 0, top);
    }
    return gg_pack_bytes(v[0], v[1], v[2], v[3], 0);
}

/* Four bytes l0 .. l3 side by side: l0 + l1 * base + l2 * base^2 + ... */
static inline __m256i fours(__m256i levels, int base)
{
    __m256i v = _mm256_maddubs_epi16(
        levels, _mm256_set1_epi16((short)(1 | base << 8)));
    return _mm256_madd_epi16(v, _mm256_set1_epi32(1 | base * base << 16));
}

/* Codes and points of the groups. Of three bits they are the same. */
static GG_ALWAYS_INLINE void pack_codes(__m256i levels,
                                        const struct gg_iq_book *b,
                                        uint16_t *code, uint32_t *point)
{
    uint32_t v[8], u[8];
    _mm256_storeu_si256((void *)v, fours(levels, 1 << b->bits));
    _mm256_storeu_si256((void *)u, fours(levels, b->top + 1));
    for (int g = 0; g < 8; g++) {
        if (b->group == 4) {
            code[g] = (uint16_t)v[g];
            point[g] = u[g];
        } else if (g % 2 == 0) {
            code[g / 2] = (uint16_t)(v[g] | v[g + 1] << 8);
            point[g / 2] = u[g] + 81 * u[g + 1];
        }
    }
}

/* The near entry with the least error: lanes are entries. */
static GG_ALWAYS_INLINE unsigned best_near(const struct gg_iq_book *b,
                                           unsigned point, const float *x,
                                           const float *root, float scale)
{
    const uint16_t *list = b->near + (b->start[point] >> 1);
    int n = (int)((b->start[point + 1] >> 1) - (b->start[point] >> 1));
    const __m256i step = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 odd = _mm256_setr_ps(1, 3, 5, 7, 9, 11, 13, 15);
    const __m256 table = _mm256_mul_ps(_mm256_set1_ps(scale), odd);
    const __m256i mask = _mm256_set1_epi32((1 << b->bits) - 1);
    __m256 best = _mm256_set1_ps(FLT_MAX);
    __m256i at = _mm256_setzero_si256();
    for (int j = 0; j < n; j += 8) {
        __m256i c = _mm256_cvtepu16_epi32(gg_load128(list + j));
        __m256 d = _mm256_setzero_ps();
        GG_UNROLL
        for (int i = 0; i < b->group; i++) {
            __m256 q = _mm256_permutevar8x32_ps(table,
                                                _mm256_and_si256(c, mask));
            __m256 e = _mm256_sub_ps(q, _mm256_set1_ps(x[i]));
            __m256 r = _mm256_mul_ps(_mm256_set1_ps(root[i]), e);
            d = _mm256_add_ps(d, _mm256_mul_ps(r, e));
            c = _mm256_srli_epi32(c, b->bits);
        }
        __m256i pos = _mm256_add_epi32(_mm256_set1_epi32(j), step);
        __m256 m = _mm256_and_ps(
            _mm256_cmp_ps(d, best, _CMP_LT_OQ),
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), pos)));
        best = _mm256_blendv_ps(best, d, m);
        at = _mm256_blendv_epi8(at, pos, _mm256_castps_si256(m));
    }
    /* the least error of all lanes, then the first place that has it */
    __m128 l = _mm_min_ps(_mm256_castps256_ps128(best),
                          _mm256_extractf128_ps(best, 1));
    l = _mm_min_ps(l, _mm_movehl_ps(l, l));
    l = _mm_min_ss(l, _mm_shuffle_ps(l, l, 1));
    __m256 eq = _mm256_cmp_ps(best, _mm256_broadcastss_ps(l), _CMP_EQ_OQ);
    __m256i p = _mm256_blendv_epi8(_mm256_set1_epi32(INT32_MAX), at,
                                   _mm256_castps_si256(eq));
    /* the least of p is the largest of its complement */
    return list[~gg_hmax_epi32(_mm256_xor_si256(p, _mm256_set1_epi32(-1)))];
}

static GG_ALWAYS_INLINE void round_groups(const struct gg_iq_book *b,
                                const struct part *p, int n, float inv,
                                float scale, uint16_t *code, uint8_t *near)
{
    uint32_t point[8];
    pack_codes(round_levels(p->x, n, b->top, inv), b, code, point);
    for (int g = 0; g < n / b->group; g++) {
        near[g] = !(b->start[point[g]] & 1);
        if (near[g])
            code[g] = (uint16_t)best_near(b, point[g], p->x + b->group * g,
                                          p->root + b->group * g, scale);
    }
}

/* Sums of w*x*q and w*q*q for eight sets of codes, one per lane. */
static GG_ALWAYS_INLINE void trial_sums(const struct gg_iq_type *t,
                                        const struct part *p,
                                        uint16_t code[][8], __m256 *qx,
                                        __m256 *qq)
{
    const struct gg_iq_book *b = &t->book;
    const __m256 odd = _mm256_setr_ps(1, 3, 5, 7, 9, 11, 13, 15);
    const __m256i mask = _mm256_set1_epi32((1 << b->bits) - 1);
    *qx = *qq = _mm256_setzero_ps();
    for (int g = 0; g < t->n / b->group; g++) {
        __m256i c = _mm256_setr_epi32(code[0][g], code[1][g], code[2][g],
                                      code[3][g], code[4][g], code[5][g],
                                      code[6][g], code[7][g]);
        for (int i = b->group * g; i < b->group * (g + 1); i++) {
            __m256 q = _mm256_permutevar8x32_ps(odd, _mm256_and_si256(c, mask));
            __m256 w = _mm256_set1_ps(p->w[i]);
            __m256 wx = _mm256_mul_ps(w, _mm256_set1_ps(p->x[i]));
            *qx = _mm256_add_ps(*qx, _mm256_mul_ps(wx, q));
            *qq = _mm256_add_ps(*qq, _mm256_mul_ps(_mm256_mul_ps(w, q), q));
            c = _mm256_srli_epi32(c, b->bits);
        }
    }
}

/* Try all scales; the best one's codes go into p. Returns its scale. */
static GG_ALWAYS_INLINE float try_scales(const struct gg_iq_type *t,
                                         struct part *p, float scale, float max)
{
    uint16_t code[MAX_TRY][8];
    uint8_t near[MAX_TRY][8];
    float qx[MAX_TRY], qq[MAX_TRY], best = 0;
    int n = 2 * t->n_try + 1, chosen = -1;
    for (int k = 0; k < n; k++) {
        float inv = ((float)(2 * t->book.top + 1) +
                     (float)(k - t->n_try) * t->step) / max;
        round_groups(&t->book, p, t->n, inv, 1 / inv, code[k], near[k]);
    }
    for (int k = n; k < (n + 7) / 8 * 8; k++)
        memcpy(code[k], code[0], sizeof code[k]);
    for (int k = 0; k < n; k += 8) {
        __m256 x, q;
        trial_sums(t, p, code + k, &x, &q);
        _mm256_storeu_ps(qx + k, x);
        _mm256_storeu_ps(qq + k, q);
    }
    for (int k = 0; k < n; k++)
        if (qq[k] > 0 && qx[k] * qx[k] > best * qq[k]) {
            scale = qx[k] / qq[k];
            best = scale * qx[k];
            chosen = k;
        }
    if (chosen >= 0) {
        memcpy(p->code, code[chosen], sizeof p->code);
        memcpy(p->near, near[chosen], sizeof p->near);
    }
    return scale;
}

/* As fit_part of the reference. */
static GG_ALWAYS_INLINE float fit_part(const struct gg_iq_type *t,
                                       struct part *p)
{
    float scale, max = p->x[0];
    for (int i = 1; i < t->n; i++)
        max = max > p->x[i] ? max : p->x[i];
    memset(p->code, 0, sizeof p->code);
    memset(p->near, t->refine_all, sizeof p->near);
    p->zero = 1;
    if (max < t->zero)
        return 0;
    if (t->fit_start) {
        uint8_t q[32];
        scale = gg_fit_positive(p->x, p->w, t->n, t->book.top + 2, q);
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
    int n_group = t->n / t->book.group, n_near = 0;
    for (int g = 0; g < n_group; g++)
        n_near += p->near[g];
    if ((n_near || t->fit_start) && scale > 0) {
        uint16_t code[8][8];
        uint8_t near[8];
        float qx[8], qq[8];
        round_groups(&t->book, p, t->n, 1 / scale, scale, code[0], near);
        for (int g = 0; g < n_group; g++)
            if (p->near[g] || t->refine_all)
                p->code[g] = code[0][g];
        for (int k = 0; k < 8; k++)
            memcpy(code[k], p->code, sizeof p->code);
        __m256 x, q;
        trial_sums(t, p, code, &x, &q);
        _mm256_storeu_ps(qx, x);
        _mm256_storeu_ps(qq, q);
        if (qq[0] > 0)
            scale = qx[0] / qq[0];
    }
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
    if (even && gg_iq_signs(signs) != signs) {
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

static GG_ALWAYS_INLINE void weigh(const struct gg_iq_type *t, const float *x,
                         const float *weight, float sigma2, struct part *p)
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

static GG_ALWAYS_INLINE void fit_block(const struct gg_iq_type *t,
                                       const float *x, const float *weight,
                                       struct gg_iq_block *b)
{
    float sum = 0;
    for (int i = 0; i < 256; i++)
        sum += x[i] * x[i];
    float sigma2 = t->sigma * sum / 256;
    int n_group = t->n / t->book.group, n_sign = t->n / 8;
    memset(b, 0, sizeof *b);
    for (int s = 0; s < 256 / t->n; s++) {
        struct part p;
        const float *xs = x + t->n * s;
        uint8_t *signs = b->signs + n_sign * s;
        weigh(t, xs, weight ? weight + t->n * s : NULL, sigma2, &p);
        for (int k = 0; k < n_sign; k++)
            signs[k] = split_signs(xs + 8 * k, p.w + 8 * k, t->even,
                                   p.x + 8 * k);
        b->scale[s] = fit_part(t, &p);
        b->zero[s] = (uint8_t)p.zero;
        if (p.zero)
            memset(signs, 0, (size_t)n_sign);
        if (b->scale[s] < 0) {
            b->scale[s] = -b->scale[s];
            for (int k = 0; k < n_sign; k++)
                signs[k] = (uint8_t)(~signs[k] & (t->even ? 127 : 255));
        }
        for (int g = 0; g < n_group; g++)
            b->entry[n_group * s + g] =
                (uint16_t)(p.zero ? 0 : gg_iq_entry(&t->book, p.code[g]));
    }
    gg_iq_scale_codes(t, b);
}

static GG_ALWAYS_INLINE void encode(const struct gg_iq_type *t,
                                    gg_iq_put_fn *put, gg_encode_fn *reference,
                                    const float *src, uint8_t *out, size_t size,
                                    size_t n_rows, size_t row_len,
                                    const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256, out += size) {
        const float *w = weight ? weight + i % n_block * 256 : NULL;
        struct gg_iq_block b;
        if (!gg_all_finite(src, 256)) {
            reference(src, out, 1, 256, w);
            continue;
        }
        fit_block(t, src, w, &b);
        put(&b, out);
    }
}

#define ENCODER(NAME, TYPE)                                                   \
    void gg_encode_##NAME##_avx2(const float *src, void *dst, size_t n_rows,  \
                                 size_t row_len, const float *weight)         \
    {                                                                         \
        static const struct gg_iq_type type = TYPE;                           \
        encode(&type, gg_##NAME##_put, gg_encode_##NAME##_c, src, dst,        \
               sizeof(struct gg_block_##NAME), n_rows, row_len, weight);      \
    }

ENCODER(iq2_xxs, GG_IQ2_XXS_TYPE)
ENCODER(iq2_xs, GG_IQ2_XS_TYPE)
ENCODER(iq2_s, GG_IQ2_S_TYPE)
ENCODER(iq3_xxs, GG_IQ3_XXS_TYPE)
ENCODER(iq3_s, GG_IQ3_S_TYPE)
