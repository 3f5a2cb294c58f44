/* SPDX-License-Identifier: MIT */
/* enc_refine_256.c - the refined fits of Q3_K, only where there is work
 *
 * A lane is a sub-block, 32 of them side by side: a refinement's step waits
 * for the one before, and several chains hide that. Two facts keep most lanes
 * out of the passes:
 *
 * A sub-block whose element of largest magnitude is positive is never changed.
 * Its scale is negative, so each code is zero or of the other sign than its
 * element, and all terms w*x*c are at most zero. A rounded sum of such terms
 * is not above any of them, rounding being monotonic. So the sum without one
 * of them is not above zero, and the refinement asks for that. (Where squares
 * overflow it may be a NaN, which is not above zero either.)
 *
 * A sub-block in which no code changes has the same sums at each step, so
 * whether any changes can be asked for all elements at once, by the sums
 * before. Most sub-blocks end there. The others are collected from many
 * blocks; those that are not done after one pass are collected again. They
 * begin anew each time, which is less than keeping their state.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/c/enc_search_ref.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/v256.h"

#define LANES 32
#define N_VEC (LANES / 8)
#define N     16 /* elements of a sub-block */
#define HALF  4  /* codes are -HALF .. HALF - 1 */

/* Sub-blocks on their way: elements, codes, the terms w*x*c and w*c*c of the
 * sums, and these. */
struct fits {
    float x[N][LANES], c[N][LANES], wxc[N][LANES], wcc[N][LANES];
    float max[LANES]; /* the first of largest magnitude */
    __m256 xl[N_VEC], ll[N_VEC];
};

static inline __m256 lanes_of(const float *row, int v)
{
    return _mm256_loadu_ps(row + 8 * v);
}

/* Codes between the limits, as floats. */
static inline __m256 code_of(__m256 v)
{
    return _mm256_cvtepi32_ps(
        gg_v256_clamp_epi32(gg_v256_nearest_epi32(v), -HALF, HALF - 1));
}

/* The first element of largest magnitude; 0 for groups of zeros. */
static inline __m256 extreme_elements(const struct fits *f, int v)
{
    __m256 hi = lanes_of(f->x[0], v), lo = hi;
    for (int i = 1; i < N; i++) {
        hi = _mm256_max_ps(hi, lanes_of(f->x[i], v));
        lo = _mm256_min_ps(lo, lanes_of(f->x[i], v));
    }
    __m256 below = _mm256_xor_ps(lo, _mm256_set1_ps(-0.0f));
    __m256 amax = _mm256_max_ps(hi, below);
    __m256 max = m256_select_ps(lo, hi, _mm256_cmp_ps(hi, below, _CMP_GT_OQ));
    __m256 dead = _mm256_cmp_ps(amax, _mm256_set1_ps(GG_ENC_ZERO), _CMP_LT_OQ);
    __m256 tie = _mm256_cmp_ps(hi, below, _CMP_EQ_OQ);
    if (_mm256_movemask_ps(_mm256_andnot_ps(dead, tie)))
        for (int i = N - 1; i >= 0; i--) {
            __m256 x = lanes_of(f->x[i], v);
            max = m256_select_ps(
                max, x, _mm256_cmp_ps(gg_v256_abs_ps(x), amax, _CMP_EQ_OQ));
        }
    return _mm256_andnot_ps(dead, max);
}

/* The codes of the plain scale, 0 for groups of zeros. No quotient is below
 * -HALF by more than its rounding. */
static inline void start_vector(struct fits *f, int v)
{
    __m256 max = extreme_elements(f, v), xl = _mm256_setzero_ps(), ll = xl;
    __m256 inv = _mm256_div_ps(_mm256_set1_ps(-HALF), max);
    inv = _mm256_andnot_ps(_mm256_cmp_ps(max, xl, _CMP_EQ_OQ), inv);
    _mm256_storeu_ps(f->max + 8 * v, max);
    for (int i = 0; i < N; i++) {
        __m256 x = lanes_of(f->x[i], v), w = _mm256_mul_ps(x, x);
        __m256 c = _mm256_min_ps(gg_v256_nearest_ps(_mm256_mul_ps(inv, x)),
                                 _mm256_set1_ps(HALF - 1));
        __m256 wxc = _mm256_mul_ps(_mm256_mul_ps(w, x), c);
        __m256 wcc = _mm256_mul_ps(_mm256_mul_ps(w, c), c);
        _mm256_storeu_ps(f->c[i] + 8 * v, c);
        _mm256_storeu_ps(f->wxc[i] + 8 * v, wxc);
        _mm256_storeu_ps(f->wcc[i] + 8 * v, wcc);
        xl = _mm256_add_ps(xl, wxc);
        ll = _mm256_add_ps(ll, wcc);
    }
    f->xl[v] = xl;
    f->ll[v] = ll;
}

static void start_fits(struct fits *f, const float *const sub[LANES])
{
    for (int v = 0; v < N_VEC; v++) {
        for (int i = 0; i < N; i += 8)
            gg_v256_load_columns(sub + 8 * v, i, &f->x[i][8 * v], LANES);
        start_vector(f, v);
    }
}

/* Change of one code: the new code, its terms, the new sums, and the lanes in
 * which it is an improvement. */
struct change {
    __m256 c, wxc, wcc, xl, ll, better;
};

static GG_ALWAYS_INLINE struct change try_element(const struct fits *f, int v,
                                                  int i, __m256 xl, __m256 ll)
{
    const __m256 zero = _mm256_setzero_ps();
    struct change t;
    __m256 x = lanes_of(f->x[i], v), w = _mm256_mul_ps(x, x);
    t.xl = _mm256_sub_ps(xl, lanes_of(f->wxc[i], v));
    t.ll = _mm256_sub_ps(ll, lanes_of(f->wcc[i], v));
    __m256 m = _mm256_cmp_ps(t.xl, zero, _CMP_GT_OQ);
    t.c = code_of(_mm256_div_ps(_mm256_mul_ps(x, t.ll), t.xl));
    m = _mm256_andnot_ps(_mm256_cmp_ps(t.c, lanes_of(f->c[i], v), _CMP_EQ_OQ),
                         m);
    t.wxc = _mm256_mul_ps(_mm256_mul_ps(w, x), t.c);
    t.wcc = _mm256_mul_ps(_mm256_mul_ps(w, t.c), t.c);
    t.xl = _mm256_add_ps(t.xl, t.wxc);
    t.ll = _mm256_add_ps(t.ll, t.wcc);
    m = _mm256_and_ps(m, _mm256_cmp_ps(t.ll, zero, _CMP_GT_OQ));
    __m256 old = _mm256_mul_ps(_mm256_mul_ps(xl, xl), t.ll);
    __m256 new = _mm256_mul_ps(_mm256_mul_ps(t.xl, t.xl), ll);
    t.better = _mm256_and_ps(m, _mm256_cmp_ps(new, old, _CMP_GT_OQ));
    return t;
}

/* Lanes in which element i surely keeps its code, whatever the roundings: by
 * try_element its code is the nearest of x * t.ll / t.xl, and that is less
 * than half from c by more than a hundredth. The products are off by less than
 * 2^-22 of 8 * t.xl, unless they are near the smallest floats. */
static GG_ALWAYS_INLINE __m256 surely_kept(const struct fits *f, int v, int i,
                                           __m256 xl, __m256 ll)
{
    xl = _mm256_sub_ps(xl, lanes_of(f->wxc[i], v));
    ll = _mm256_sub_ps(ll, lanes_of(f->wcc[i], v));
    __m256 d = _mm256_sub_ps(_mm256_mul_ps(lanes_of(f->x[i], v), ll),
                             _mm256_mul_ps(lanes_of(f->c[i], v), xl));
    __m256 limit = _mm256_mul_ps(xl, _mm256_set1_ps(0.49f));
    return _mm256_and_ps(
        _mm256_cmp_ps(gg_v256_abs_ps(d), limit, _CMP_LT_OQ),
        _mm256_cmp_ps(xl, _mm256_set1_ps(0x1p-100f), _CMP_GT_OQ));
}

/* Lanes in which a pass would change a code. */
static uint32_t lanes_changing(const struct fits *f)
{
    uint32_t lanes = 0;
    for (int v = 0; v < N_VEC; v++) {
        __m256 xl = f->xl[v], ll = f->ll[v], m = _mm256_setzero_ps();
        __m256 live = _mm256_cmp_ps(lanes_of(f->max, v), m, _CMP_LT_OQ);
        for (int i = 0; i < N; i++) {
            __m256 kept = surely_kept(f, v, i, xl, ll);
            if (_mm256_movemask_ps(_mm256_andnot_ps(kept, live)))
                m = _mm256_or_ps(m, try_element(f, v, i, xl, ll).better);
        }
        m = _mm256_and_ps(m, live);
        lanes |= (uint32_t)_mm256_movemask_ps(m) << 8 * v;
    }
    return lanes;
}

static inline void keep_lanes(float *p, __m256 v, __m256 lanes)
{
    _mm256_storeu_ps(p, m256_select_ps(_mm256_loadu_ps(p), v, lanes));
}

static void refine_pass(struct fits *f)
{
    __m256 xl[N_VEC], ll[N_VEC];
    GG_UNROLL
    for (int v = 0; v < N_VEC; v++) {
        xl[v] = f->xl[v];
        ll[v] = f->ll[v];
    }
    for (int i = 0; i < N; i++) {
        GG_UNROLL
        for (int v = 0; v < N_VEC; v++) {
            struct change t = try_element(f, v, i, xl[v], ll[v]);
            keep_lanes(f->c[i] + 8 * v, t.c, t.better);
            keep_lanes(f->wxc[i] + 8 * v, t.wxc, t.better);
            keep_lanes(f->wcc[i] + 8 * v, t.wcc, t.better);
            xl[v] = m256_select_ps(xl[v], t.xl, t.better);
            ll[v] = m256_select_ps(ll[v], t.ll, t.better);
        }
    }
    GG_UNROLL
    for (int v = 0; v < N_VEC; v++) {
        f->xl[v] = xl[v];
        f->ll[v] = ll[v];
    }
}

static void scales_of(const struct fits *f, float scale[LANES])
{
    for (int v = 0; v < N_VEC; v++) {
        __m256 s = _mm256_div_ps(f->xl[v], f->ll[v]);
        s = _mm256_and_ps(
            s, _mm256_cmp_ps(f->ll[v], _mm256_setzero_ps(), _CMP_GT_OQ));
        __m256 dead = _mm256_cmp_ps(lanes_of(f->max, v), _mm256_setzero_ps(),
                                    _CMP_EQ_OQ);
        _mm256_storeu_ps(scale + 8 * v, _mm256_andnot_ps(dead, s));
    }
}

/* Fit the n sub-blocks of a list in at most n_pass passes. Returns the number
 * of sub-blocks that another pass would change; they are then the first in the
 * list. */
static int fit_list(const float *x, int n_pass, uint16_t *list, int n,
                    float *scale)
{
    struct fits f;
    int left = 0;
    for (int at = 0; at < n; at += LANES) {
        const float *sub[LANES];
        float found[LANES];
        int here = n - at < LANES ? n - at : LANES;
        for (int k = 0; k < LANES; k++) /* the last one fills up */
            sub[k] = x + N * list[at + (k < here ? k : here - 1)];
        start_fits(&f, sub);
        uint32_t open = lanes_changing(&f);
        for (int k = 0; k < n_pass && open; k++) {
            refine_pass(&f);
            open = lanes_changing(&f);
        }
        scales_of(&f, found);
        for (int k = 0; k < here; k++) {
            uint16_t j = list[at + k];
            scale[j] = found[k];
            list[left] = j;
            left += (int)(open >> k & 1);
        }
    }
    return left;
}

void gg_kern_scales_refined_256(const float *x, int n, float *scale)
{
    uint16_t list[GG_REFINED_MAX];
    for (int k = 0; k < n; k++)
        list[k] = (uint16_t)k;
    n = fit_list(x, 0, list, n, scale);
    n = fit_list(x, 1, list, n, scale);
    fit_list(x, 5, list, n, scale);
}
