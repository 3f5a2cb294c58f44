/* SPDX-License-Identifier: MIT */
/* stat_256.c - summing up rows, eight elements at a time
 *
 * A vector of eight floats becomes two vectors of four doubles: lanes 0 to 3
 * and 4 to 7. Elements that are not finite are replaced by 0 before they are
 * added, which changes no sum. Products are rounded before they are added, as
 * in the reference.
 */
#include "config.h"
#include "kern/stat_join.h"

#include "kern/simd/m256.h"

static inline __m256 is_finite(__m256 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return _mm256_cmp_ps(_mm256_andnot_ps(sign, x), _mm256_set1_ps(INFINITY),
                         _CMP_LT_OQ);
}

static inline size_t count_lanes(__m256 mask)
{
    return (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(mask));
}

static inline __m256d half_to_double(__m256 x, int h)
{
    return _mm256_cvtps_pd(h ? _mm256_extractf128_ps(x, 1)
                             : _mm256_castps256_ps128(x));
}

/* sum += a * b */
static inline void add_mul(__m256d *sum, __m256d a, __m256d b)
{
    *sum = _mm256_add_pd(*sum, _mm256_mul_pd(a, b));
}

static inline void store_lanes(double *lanes, const __m256d v[2])
{
    _mm256_storeu_pd(lanes, v[0]);
    _mm256_storeu_pd(lanes + 4, v[1]);
}

static float extreme_lane(__m256 v, bool max)
{
    float x[8], r;
    _mm256_storeu_ps(x, v);
    r = x[0];
    for (int i = 1; i < 8; i++)
        r = max ? fmaxf(r, x[i]) : fminf(r, x[i]);
    return r;
}

void gg_stat_sums_256(const float *x, size_t n, struct gg_stat_sums *out)
{
    const __m256 none = _mm256_set1_ps(INFINITY);
    const __m256 none_neg = _mm256_set1_ps(-INFINITY);
    __m256d sum[2] = { _mm256_setzero_pd(), _mm256_setzero_pd() };
    __m256d sq[2] = { sum[0], sum[0] };
    __m256 min = none, max = none_neg;
    struct gg_stat_sums_lanes l;
    size_t i, n_zero = 0, n_nan = 0, n_finite = 0;
    for (i = 0; n - i >= 8; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i), ok = is_finite(v);
        n_nan += count_lanes(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        n_zero +=
            count_lanes(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_EQ_OQ));
        n_finite += count_lanes(ok);
        min = _mm256_min_ps(min, m256_select_ps(none, v, ok));
        max = _mm256_max_ps(max, m256_select_ps(none_neg, v, ok));
        v = _mm256_and_ps(v, ok);
        for (int h = 0; h < 2; h++) {
            __m256d d = half_to_double(v, h);
            sum[h] = _mm256_add_pd(sum[h], d);
            add_mul(&sq[h], d, d);
        }
    }
    *out = (struct gg_stat_sums){ .n_finite = n_finite,
                                  .n_zero = n_zero,
                                  .n_nan = n_nan,
                                  .n_inf = i - n_finite - n_nan,
                                  .min = extreme_lane(min, false),
                                  .max = extreme_lane(max, true) };
    store_lanes(l.sum, sum);
    store_lanes(l.sum_sq, sq);
    gg_stat_sums_add(out, &l, x, i, n);
    gg_stat_sums_join(out, &l);
}

void gg_stat_central_256(const float *x, size_t n, double mean, double out[3])
{
    const __m256d centre = _mm256_set1_pd(mean);
    const __m256d zero = _mm256_setzero_pd();
    __m256d m[3][2] = { { zero, zero }, { zero, zero }, { zero, zero } };
    struct gg_stat_central_lanes l;
    size_t i;
    for (i = 0; n - i >= 8; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i), ok = is_finite(v);
        for (int h = 0; h < 2; h++) {
            /* A mask of floats widens to one of doubles: NaN or 0. */
            __m256d keep = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(
                _mm_castps_si128(h ? _mm256_extractf128_ps(ok, 1)
                                   : _mm256_castps256_ps128(ok))));
            __m256d d = _mm256_and_pd(
                _mm256_sub_pd(half_to_double(v, h), centre), keep);
            __m256d d2 = _mm256_mul_pd(d, d);
            m[0][h] = _mm256_add_pd(m[0][h], d2);
            add_mul(&m[1][h], d2, d);
            add_mul(&m[2][h], d2, d2);
        }
    }
    for (int k = 0; k < 3; k++)
        store_lanes(l.m[k], m[k]);
    gg_stat_central_add(&l, x, i, n, mean);
    gg_stat_central_join(&l, out);
}

void gg_stat_bins_256(const float *x, size_t n, double lo, double scale,
                      uint64_t *bins, unsigned n_bins)
{
    enum { SETS = 4, SET = 33 }; /* the last of a set: not finite */
    const __m256d from = _mm256_set1_pd(lo), by = _mm256_set1_pd(scale);
    const __m256d last = _mm256_set1_pd(n_bins - 1);
    uint32_t counts[SETS][SET] = { { 0 } };
    size_t i;
    for (i = 0; n - i >= 8; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i), ok = is_finite(v);
        __m128i at[2];
        uint32_t k[8];
        for (int h = 0; h < 2; h++) {
            __m256d d =
                _mm256_mul_pd(_mm256_sub_pd(half_to_double(v, h), from), by);
            d = _mm256_max_pd(d, _mm256_setzero_pd());
            at[h] = _mm256_cvttpd_epi32(_mm256_min_pd(d, last));
        }
        __m256i where = m256_select(_mm256_set1_epi32(SET - 1),
                                    _mm256_set_m128i(at[1], at[0]),
                                    _mm256_castps_si256(ok));
        _mm256_storeu_si256((__m256i *)k, where);
        /* Neighbours often fall into one bin: four sets keep them apart. */
        for (int j = 0; j < 8; j++)
            counts[j % SETS][k[j]]++;
    }
    for (unsigned b = 0; b < n_bins; b++)
        bins[b] += (uint64_t)counts[0][b] + counts[1][b] + counts[2][b] +
                   counts[3][b];
    gg_stat_bins_c(x + i, n - i, lo, scale, bins, n_bins);
}

void gg_stat_diff_256(const float *x, const float *y, size_t n,
                      struct gg_stat_diff *out)
{
    const __m256d zero = _mm256_setzero_pd(), sign = _mm256_set1_pd(-0.0);
    __m256d dd[2] = { zero, zero }, xx[2] = { zero, zero };
    __m256d yy[2] = { zero, zero }, xy[2] = { zero, zero }, max = zero;
    struct gg_stat_diff_lanes l;
    double most[4];
    size_t i;
    *out = (struct gg_stat_diff){ 0 };
    for (i = 0; n - i >= 8; i += 8) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(y + i);
        __m256 ok = _mm256_and_ps(is_finite(a), is_finite(b));
        __m256 nans = _mm256_and_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q),
                                    _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
        out->n_finite += count_lanes(ok);
        out->n_same +=
            count_lanes(_mm256_or_ps(nans, _mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
        a = _mm256_and_ps(a, ok);
        b = _mm256_and_ps(b, ok);
        for (int h = 0; h < 2; h++) {
            __m256d va = half_to_double(a, h), vb = half_to_double(b, h);
            __m256d d = _mm256_andnot_pd(sign, _mm256_sub_pd(va, vb));
            max = _mm256_max_pd(max, d);
            add_mul(&dd[h], d, d);
            add_mul(&xx[h], va, va);
            add_mul(&yy[h], vb, vb);
            add_mul(&xy[h], va, vb);
        }
    }
    _mm256_storeu_pd(most, max);
    for (int k = 0; k < 4; k++)
        out->max_abs = fmax(out->max_abs, most[k]);
    store_lanes(l.dd, dd);
    store_lanes(l.xx, xx);
    store_lanes(l.yy, yy);
    store_lanes(l.xy, xy);
    gg_stat_diff_add(out, &l, x, y, i, n);
    gg_stat_diff_join(out, &l);
}

enum { ROWS = 8, COLS = 16 }; /* a line of each row */

/* Sums stay in registers for ROWS rows, which are read side by side. */
static void squares_of_some(double *sums, const float *x, size_t step)
{
    __m256d y[COLS / 4];
    for (int i = 0; i < COLS / 4; i++)
        y[i] = _mm256_loadu_pd(sums + 4 * i);
    for (int r = 0; r < ROWS; r++, x += step)
        for (int i = 0; i < COLS / 4; i++) {
            const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + 4 * i));
            y[i] = _mm256_fmadd_pd(v, v, y[i]); /* v v is exact */
        }
    for (int i = 0; i < COLS / 4; i++)
        _mm256_storeu_pd(sums + 4 * i, y[i]);
}

void gg_stat_squares_256(double *sums, const float *x, size_t stride,
                         size_t n_rows, size_t n)
{
    const size_t step = stride / sizeof *x, whole = n / COLS * COLS;
    for (; n_rows >= ROWS; n_rows -= ROWS, x += ROWS * step) {
        for (size_t j = 0; j < whole; j += COLS)
            squares_of_some(sums + j, x + j, step);
        gg_stat_squares_c(sums + whole, x + whole, stride, ROWS, n - whole);
    }
    gg_stat_squares_c(sums, x, stride, n_rows, n);
}
