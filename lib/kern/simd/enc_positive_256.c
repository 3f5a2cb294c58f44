/* SPDX-License-Identifier: MIT */
/* enc_positive_256.c - gg_kern_fit_positive for eight groups, lane by lane
 *
 * Codes are integers in lanes, rounded as gg_kern_nearest does, so that any
 * input gives the same bits as the C search. A lane in which a round changed
 * nothing has the same sums in the next, so rounds can go on for the others.
 */
#include "config.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/v256.h"

/* Elements, importances and codes by lane. */
struct fits {
    __m256 x[GG_ENC_MAX_N], w[GG_ENC_MAX_N];
    __m256i c[GG_ENC_MAX_N];
    __m256 xl, ll; /* sums of w*x*c and w*c*c */
    int n;
};

static inline __m256i code_of(__m256 v, __m256i top)
{
    return _mm256_min_epi32(gg_v256_nearest_epi32(v), top);
}

static inline __m256i byte_of(__m256i c)
{
    return _mm256_and_si256(c, _mm256_set1_epi32(255));
}

/* As positive_error: the first candidate's codes are cut to a byte. */
static inline __m256 error_of(const struct fits *f, __m256i top, __m256 inv,
                              int first)
{
    __m256 scale = _mm256_div_ps(_mm256_set1_ps(1), inv);
    __m256 sum = _mm256_setzero_ps();
    for (int i = 0; i < f->n; i++) {
        __m256i c = gg_v256_nearest_epi32(_mm256_mul_ps(inv, f->x[i]));
        c = first ? byte_of(c) : _mm256_min_epi32(c, top);
        __m256 e = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(c));
        e = _mm256_sub_ps(f->x[i], e);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_mul_ps(f->w[i], e), e));
    }
    return sum;
}

/* The best of nine divisions. */
static inline __m256 best_inv(const struct fits *f, int q_max, __m256 max)
{
    const __m256i top = _mm256_set1_epi32(q_max);
    __m256 inv = _mm256_div_ps(_mm256_set1_ps((float)q_max), max);
    __m256 best = error_of(f, top, inv, 1);
    for (int k = -4; k <= 4; k++) {
        if (k == 0)
            continue;
        __m256 try = _mm256_set1_ps(0.1f * (float)k + (float)q_max);
        try = _mm256_div_ps(try, max);
        __m256 error = error_of(f, top, try, 0);
        __m256 less = _mm256_cmp_ps(error, best, _CMP_LT_OQ);
        best = m256_select_ps(best, error, less);
        inv = m256_select_ps(inv, try, less);
    }
    return inv;
}

/* The sums take the codes before they are cut to a byte. */
static inline void start_fits(struct fits *f, __m256i top, __m256 inv)
{
    f->xl = f->ll = _mm256_setzero_ps();
    for (int i = 0; i < f->n; i++) {
        __m256i c = code_of(_mm256_mul_ps(inv, f->x[i]), top);
        __m256 v = _mm256_cvtepi32_ps(c), w = f->w[i];
        __m256 wx = _mm256_mul_ps(w, f->x[i]);
        f->xl = _mm256_add_ps(f->xl, _mm256_mul_ps(wx, v));
        f->ll = _mm256_add_ps(f->ll, _mm256_mul_ps(_mm256_mul_ps(w, v), v));
        f->c[i] = byte_of(c);
    }
}

/* One round of changes; were there any? */
static inline int refine_fits(struct fits *f, __m256i top)
{
    const __m256 zero = _mm256_setzero_ps();
    __m256 any = zero, xl = f->xl, ll = f->ll;
    for (int i = 0; i < f->n; i++) {
        __m256 x = f->x[i], w = f->w[i], wx = _mm256_mul_ps(w, x);
        __m256 v = _mm256_cvtepi32_ps(f->c[i]);
        __m256 txl = _mm256_sub_ps(xl, _mm256_mul_ps(wx, v));
        __m256 tll = _mm256_sub_ps(ll, _mm256_mul_ps(_mm256_mul_ps(w, v), v));
        __m256 m = _mm256_and_ps(_mm256_cmp_ps(txl, zero, _CMP_GT_OQ),
                                 _mm256_cmp_ps(tll, zero, _CMP_GT_OQ));
        __m256i c = code_of(_mm256_div_ps(_mm256_mul_ps(x, tll), txl), top);
        m = _mm256_andnot_ps(
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(c, f->c[i])), m);
        if (!_mm256_movemask_ps(m))
            continue;
        v = _mm256_cvtepi32_ps(c);
        txl = _mm256_add_ps(txl, _mm256_mul_ps(wx, v));
        tll = _mm256_add_ps(tll, _mm256_mul_ps(_mm256_mul_ps(w, v), v));
        __m256 new = _mm256_mul_ps(_mm256_mul_ps(txl, txl), ll);
        __m256 old = _mm256_mul_ps(_mm256_mul_ps(xl, xl), tll);
        m = _mm256_and_ps(m, _mm256_cmp_ps(tll, zero, _CMP_GT_OQ));
        m = _mm256_and_ps(m, _mm256_cmp_ps(new, old, _CMP_GT_OQ));
        f->c[i] = m256_select(f->c[i], byte_of(c), _mm256_castps_si256(m));
        xl = m256_select_ps(xl, txl, m);
        ll = m256_select_ps(ll, tll, m);
        any = _mm256_or_ps(any, m);
    }
    f->xl = xl;
    f->ll = ll;
    return _mm256_movemask_ps(any);
}

void gg_kern_scales_positive_256(const float *const x[8],
                                 const float *const w[8], int n, int q_max,
                                 float scale[8])
{
    const __m256i top = _mm256_set1_epi32(q_max);
    struct fits f;
    __m256 max = _mm256_setzero_ps();
    f.n = n;
    for (int i = 0; i < n; i += 8) {
        gg_v256_load_columns(x, i, (float *)&f.x[i], 8);
        gg_v256_load_columns(w, i, (float *)&f.w[i], 8);
    }
    for (int i = 0; i < n; i++)
        max = _mm256_max_ps(max, f.x[i]);
    start_fits(&f, top, best_inv(&f, q_max, max));
    for (int round = 0; round < 5 && refine_fits(&f, top); round++)
        continue;
    __m256 s =
        _mm256_and_ps(_mm256_div_ps(f.xl, f.ll),
                      _mm256_cmp_ps(f.ll, _mm256_setzero_ps(), _CMP_GT_OQ));
    __m256 dead = _mm256_cmp_ps(max, _mm256_set1_ps(GG_ENC_ZERO), _CMP_LT_OQ);
    _mm256_storeu_ps(scale, _mm256_andnot_ps(dead, s));
}
