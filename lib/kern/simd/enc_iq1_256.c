/* SPDX-License-Identifier: MIT */
/* enc_iq1_256.c - encoders of IQ1_S and IQ1_M
 *
 * Most divisions of a part are far from the best one. An estimate of all scores
 * selects those that need the reference's sums (c/enc_iq1.c), in its order.
 * These few are then visited one after the other, as in the reference.
 *
 * Proof that this gives the reference's choice. Let r be qx^2 / qq of a
 * division's sums as the reference rounds them, R the largest r, u = 2^-24, and
 * n the number of divisions, at most 1122. The reference takes a division if
 * fl(qx^2) > fl(score * qq), where score is the r of the last one taken, two
 * roundings off. So a division whose r exceeds all earlier ones by 8u is taken,
 * whichever was taken before. The score that is held falls below the largest r
 * met by less than 8nu < 2^-10, all roundings together. On the way from (1 -
 * 2^-10) R to R the largest r met makes at least one step of more than 8u: n
 * smaller steps would not be enough. The division after that step is taken by a
 * walk over all divisions and by a walk over those above (1 - 2^-9) R alike.
 * From there on the score stays above (1 - 2^-9) R, so no division below is
 * taken, and both walks end alike. The estimate is off by less than 2^-11, most
 * of it by _mm256_rcp_ps, so it is enough to visit the divisions estimated
 * above 1 - 2^-8 of the largest estimate.
 *
 * This requires sums that neither overflow nor underflow; parts with other sums
 * go to the reference.
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_iq1.h"
#include "kern/c/iq_near.h"
#include "kern/simd/v256.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const float shifted[2][3] = GG_IQ1_SHIFTED;

/* Integers in the order of finite floats; zeros are equal. */
static inline __m256i ordered_bits(__m256 v)
{
    __m256i b = _mm256_castps_si256(v), s = _mm256_srai_epi32(b, 31);
    __m256i m = _mm256_and_si256(b, _mm256_set1_epi32(0x7fffffff));
    return _mm256_sub_epi32(_mm256_xor_si256(m, s), s);
}

/* Each element's place is the number of those that go before: the lesser
 * ones, and equal ones of a lower index. n is 16 or 32. */
static GG_ALWAYS_INLINE void place_elements(const float *x, int n, int *to)
{
    /* 32 zeros, then ones: from 32 + j - i on, whether j .. j+7 are above i */
    static const int above[72] = { [33] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1,        1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1,        1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1,        1, 1, 1, 1, 1, 1, 1, 1 };
    __m256i key[4], place[4];
    int k[32];
    GG_UNROLL
    for (int q = 0; q < n / 8; q++) {
        key[q] = ordered_bits(_mm256_loadu_ps(x + 8 * q));
        _mm256_storeu_si256((void *)(k + 8 * q), key[q]);
        place[q] = _mm256_setzero_si256();
    }
    for (int i = 0; i < n; i++) {
        __m256i v = _mm256_set1_epi32(k[i]);
        GG_UNROLL
        for (int q = 0; q < n / 8; q++) {
            __m256i up = gg_v256_load256(above + 32 + 8 * q - i);
            up = _mm256_cmpgt_epi32(_mm256_add_epi32(key[q], up), v);
            place[q] = _mm256_sub_epi32(place[q], up);
        }
    }
    GG_UNROLL
    for (int q = 0; q < n / 8; q++)
        _mm256_storeu_si256((void *)(to + 8 * q), place[q]);
}

static void weigh_elements(const float *x, const float *weight, float sigma2,
                           float *w)
{
    gg_v256_importances(x, weight, sigma2, 256, w);
}

/* A part in its order: elements, importances, and running sums of products
 * and importances, zeros after them. */
struct run {
    float x[32], w[32], sx[48], sw[48];
};

/* Sort a part and sum it up. Returns 0 if it is the reference's. */
static GG_ALWAYS_INLINE int sort_part(const float *x, const float *w, int n,
                                      int *order, struct run *r)
{
    __m256 mx = _mm256_setzero_ps(), mw = mx;
    int to[32];
    place_elements(x, n, to);
    for (int i = 0; i < n; i++) {
        order[to[i]] = i;
        r->x[to[i]] = x[i];
        r->w[to[i]] = w[i];
    }
    _mm256_storeu_ps(r->sx + n + 1, _mm256_setzero_ps());
    _mm256_storeu_ps(r->sw + n + 1, _mm256_setzero_ps());
    r->sx[0] = r->sw[0] = 0;
    for (int j = 0; j < n; j++) {
        r->sx[j + 1] = r->sx[j] + r->w[j] * r->x[j];
        r->sw[j + 1] = r->sw[j] + r->w[j];
    }
    for (int j = 0; j < n; j += 8) {
        __m256 v = _mm256_loadu_ps(w + j);
        mw = _mm256_max_ps(mw, v);
        v = _mm256_mul_ps(v, _mm256_loadu_ps(x + j));
        mx = _mm256_max_ps(mx, gg_v256_abs_ps(v));
    }
    float tx = gg_v256_hmax_ps(mx), tw = gg_v256_hmax_ps(mw);
    return tx > 0x1p-44f && tx < 0x1p35f && tw > 0x1p-30f && tw < 0x1p30f;
}

/* Estimated scores: for each first run, for eight ends of the second from
 * there on, for each kind of shift. IQ1_S has 5 times eight ends and 2 kinds,
 * IQ1_M 3 and 4. */
struct scores {
    __m256 of[33 * 5 * 2], row[33], top;
};

static GG_ALWAYS_INLINE __m256 *scores_at(struct scores *s, int n, int one,
                                          int b)
{
    return s->of + (n == 32 ? (5 * one + b) * 2 : (3 * one + b) * 4);
}

/* Terms of the sums. Levels v0, v1, v2 are one apart, so with one and two as
 * ends of the first two runs qx is v2 * sx[n] - sx[one] - sx[two], and qq has
 * a term in sw[one] and one in sw[two]. x and end: by two; first: by one. */
struct terms {
    float x[4][48], end[4][48], first[4][48];
};

static GG_ALWAYS_INLINE void
estimate(const struct run *r, const struct terms *t, int n, struct scores *s)
{
    const int n_kind = n == 32 ? 2 : 4;
    s->top = _mm256_setzero_ps();
    for (int one = 0; one <= n; one++) {
        __m256 sx = _mm256_set1_ps(r->sx[one]), row = _mm256_setzero_ps();
        for (int b = 0; one + 8 * b <= n; b++) {
            __m256 *of = scores_at(s, n, one, b);
            GG_UNROLL
            for (int k = 0; k < n_kind; k++) {
                __m256 x = _mm256_loadu_ps(&t->x[k][one + 8 * b]);
                __m256 q = _mm256_loadu_ps(&t->end[k][one + 8 * b]);
                x = _mm256_sub_ps(x, sx);
                q = _mm256_add_ps(q, _mm256_set1_ps(t->first[k][one]));
                x = _mm256_mul_ps(_mm256_mul_ps(x, x), _mm256_rcp_ps(q));
                of[k] = x;
                row = _mm256_max_ps(row, x);
            }
        }
        s->row[one] = row;
        s->top = _mm256_max_ps(s->top, row);
    }
}

/* Sums of a division, as the reference has them. */
typedef void exact_fn(const struct run *r, const int *order, int one, int two,
                      int kind, float *qx, float *qq);

/* Find the best division, in the order of the reference. */
static GG_ALWAYS_INLINE int
search_divisions(struct scores *s, int n, exact_fn *exact, const struct run *r,
                 const int *order, struct gg_kern_iq1_split *best)
{
    const __m256 limit =
        _mm256_set1_ps(gg_v256_hmax_ps(s->top) * (1 - 0x1p-8f));
    float score = -FLT_MAX, qx, qq;
    int found = 0, n_kind = n == 32 ? 2 : 4;
    for (int one = 0; one <= n; one++) {
        __m256 m = _mm256_cmp_ps(s->row[one], limit, _CMP_GE_OQ);
        for (int b = 0; _mm256_movemask_ps(m) && one + 8 * b <= n; b++) {
            const __m256 *of = scores_at(s, n, one, b);
            int lanes[4], any = 0;
            for (int k = 0; k < n_kind; k++) {
                __m256 l = _mm256_cmp_ps(of[k], limit, _CMP_GE_OQ);
                any |= lanes[k] = _mm256_movemask_ps(l);
            }
            for (int i = 0; any >> i; i++)
                for (int k = 0; k < n_kind; k++) {
                    if (!(lanes[k] >> i & 1))
                        continue;
                    int two = one + 8 * b + i;
                    exact(r, order, one, two, k, &qx, &qq);
                    if (!(qq > 0 && qx * qx > score * qq))
                        continue;
                    best->scale = qx / qq;
                    score = best->scale * qx;
                    best->one = one;
                    best->two = two;
                    best->down[0] = n == 32 ? k : k >> 1;
                    best->down[1] = k & 1;
                    found = 1;
                }
        }
    }
    return found;
}

/* Infinite terms: estimates of 0 for ends after n. */
static inline void close_terms(float *end, int n)
{
    _mm256_storeu_ps(end + n + 1, _mm256_set1_ps(INFINITY));
}

static void exact_s(const struct run *r, const int *order, int one, int two,
                    int kind, float *qx, float *qq)
{
    const float *v = shifted[kind], *sx = r->sx, *sw = r->sw;
    (void)order;
    *qx = (sx[one] - sx[0]) * v[0] + (sx[two] - sx[one]) * v[1] +
          (sx[32] - sx[two]) * v[2];
    *qq = (sw[one] - sw[0]) * v[0] * v[0] + (sw[two] - sw[one]) * v[1] * v[1] +
          (sw[32] - sw[two]) * v[2] * v[2];
}

static int split_s(const float *x, const float *w, int *order,
                   struct gg_kern_iq1_split *best)
{
    struct run r;
    struct terms t;
    struct scores s;
    if (!sort_part(x, w, 32, order, &r))
        return gg_kern_iq1_search_c.split_s(x, w, order, best);
    for (int k = 0; k < 2; k++) {
        float v = shifted[k][2];
        __m256 tx = _mm256_set1_ps(v * r.sx[32]);
        __m256 tw = _mm256_set1_ps(v * v * r.sw[32]);
        __m256 c0 = _mm256_set1_ps(k ? 1.25f : 0.75f);
        __m256 c1 = _mm256_set1_ps(k ? 0.75f : 1.25f);
        for (int j = 0; j < 40; j += 8) {
            __m256 sx = _mm256_loadu_ps(r.sx + j);
            __m256 sw = _mm256_loadu_ps(r.sw + j);
            _mm256_storeu_ps(&t.x[k][j], _mm256_sub_ps(tx, sx));
            _mm256_storeu_ps(&t.first[k][j], _mm256_mul_ps(c0, sw));
            sw = _mm256_sub_ps(tw, _mm256_mul_ps(c1, sw));
            _mm256_storeu_ps(&t.end[k][j], sw);
        }
        close_terms(t.end[k], 32);
    }
    estimate(&r, &t, 32, &s);
    return search_divisions(&s, 32, exact_s, &r, order, best);
}

/* Kinds are pairs of shifts: bit 1 is the lower half's, bit 0 the upper's. */
static void exact_m(const struct run *r, const int *order, int one, int two,
                    int kind, float *qx, float *qq)
{
    *qx = *qq = 0;
    for (int j = 0; j < 16; j++) {
        const float *u = shifted[order[j] < 8 ? kind >> 1 : kind & 1];
        float v = u[(j >= one) + (j >= two)];
        *qx += r->w[j] * v * r->x[j];
        *qq += r->w[j] * v * v;
    }
}

/* Running sums of the halves' importances, which shifts scale, and the
 * totals of products by half. */
struct halves {
    float sw[2][24], x[2];
};

static void sum_halves(const struct run *r, const int *order, struct halves *h)
{
    memset(h, 0, sizeof *h);
    for (int j = 0; j < 16; j++) {
        int upper = order[j] >= 8;
        h->sw[0][j + 1] = h->sw[0][j] + (upper ? 0 : r->w[j]);
        h->sw[1][j + 1] = h->sw[1][j] + (upper ? r->w[j] : 0);
        h->x[upper] += r->w[j] * r->x[j];
    }
}

static int split_m(const float *x, const float *w, int *order,
                   struct gg_kern_iq1_split *best)
{
    struct run r;
    struct terms t;
    struct scores s;
    struct halves h;
    if (!sort_part(x, w, 16, order, &r))
        return gg_kern_iq1_search_c.split_m(x, w, order, best);
    sum_halves(&r, order, &h);
    for (int k = 0; k < 4; k++) {
        float v0 = shifted[k >> 1][2], v1 = shifted[k & 1][2];
        __m256 tx = _mm256_set1_ps(v0 * h.x[0] + v1 * h.x[1]);
        __m256 tw =
            _mm256_set1_ps(v0 * v0 * h.sw[0][16] + v1 * v1 * h.sw[1][16]);
        __m256 c0 = _mm256_set1_ps(k >> 1 ? 1.25f : 0.75f);
        __m256 c1 = _mm256_set1_ps(k & 1 ? 1.25f : 0.75f);
        __m256 two = _mm256_set1_ps(2);
        for (int j = 0; j < 24; j += 8) {
            __m256 sx = _mm256_loadu_ps(r.sx + j);
            __m256 lo = _mm256_loadu_ps(h.sw[0] + j);
            __m256 hi = _mm256_loadu_ps(h.sw[1] + j);
            /* sums of all importances c and 2 - c, first and second run */
            __m256 sw = _mm256_mul_ps(two, _mm256_add_ps(lo, hi));
            __m256 p =
                _mm256_add_ps(_mm256_mul_ps(c0, lo), _mm256_mul_ps(c1, hi));
            _mm256_storeu_ps(&t.x[k][j], _mm256_sub_ps(tx, sx));
            _mm256_storeu_ps(&t.first[k][j], p);
            _mm256_storeu_ps(&t.end[k][j],
                             _mm256_sub_ps(tw, _mm256_sub_ps(sw, p)));
        }
        close_terms(t.end[k], 16);
    }
    estimate(&r, &t, 16, &s);
    return search_divisions(&s, 16, exact_m, &r, order, best);
}

/* The errors of an element at its three levels, twice, are looked up by the
 * lowest bits of a code; the third bit is the next element's. */
static unsigned nearest_entry(unsigned point, const float *x, const float *w,
                              float scale, const float v[3])
{
    const uint16_t *list =
        gg_kern_near_iq1 + (gg_kern_near_iq1_start[point] >> 1);
    int n = (int)((gg_kern_near_iq1_start[point + 1] >> 1) -
                  (gg_kern_near_iq1_start[point] >> 1));
    const __m256 level = _mm256_mul_ps(
        _mm256_set1_ps(scale),
        _mm256_setr_ps(v[0], v[1], v[2], 0, v[0], v[1], v[2], 0));
    __m256 error_of[8];
    GG_UNROLL
    for (int i = 0; i < 8; i++) {
        __m256 e = _mm256_sub_ps(level, _mm256_set1_ps(x[i]));
        error_of[i] = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(w[i]), e), e);
    }
    struct gg_v256_least least = gg_v256_least_none();
    for (int j = 0; j < n; j += 8) {
        __m256i c = _mm256_cvtepu16_epi32(gg_v256_load128(list + j));
        __m256 d = _mm256_setzero_ps();
        GG_UNROLL
        for (int i = 0; i < 8; i++) {
            d = _mm256_add_ps(d, _mm256_permutevar8x32_ps(error_of[i], c));
            c = _mm256_srli_epi32(c, 2);
        }
        gg_v256_least_add(&least, d, j, n);
    }
    return list[gg_v256_least_place(&least)];
}

static const struct gg_kern_iq1_search search = { weigh_elements, split_s,
                                                  split_m, nearest_entry };

/* Blocks that are not finite are the reference's. */
void gg_kern_encode_iq1_s_256(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    if (gg_v256_all_finite(src, n_rows * row_len))
        gg_kern_iq1_s_encode(&search, src, dst, n_rows, row_len, weight);
    else
        gg_kern_iq1_s_encode(&gg_kern_iq1_search_c, src, dst, n_rows, row_len,
                             weight);
}

void gg_kern_encode_iq1_m_256(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    if (gg_v256_all_finite(src, n_rows * row_len))
        gg_kern_iq1_m_encode(&search, src, dst, n_rows, row_len, weight);
    else
        gg_kern_iq1_m_encode(&gg_kern_iq1_search_c, src, dst, n_rows, row_len,
                             weight);
}
