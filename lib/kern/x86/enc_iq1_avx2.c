/* enc_iq1_avx2.c - encoders of IQ1_S and IQ1_M
 *
 * Lanes are divisions of a part that begin with the same run, and near
 * entries. Sums keep the reference's order in each lane (c/enc_iq1.c); few
 * divisions are better than the best so far, and those are looked at one after
 * the other, as there.
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_iq1.h"
#include "kern/c/iq_near.h"
#include "kern/x86/x86.h"

#include <float.h>

static const float shifted[2][3] = GG_IQ1_SHIFTED;

static inline __m256 minus(const float *a, float b)
{
    return _mm256_sub_ps(_mm256_loadu_ps(a), _mm256_set1_ps(b));
}

/* Lanes where a fit of sums qx and qq is better than score. */
static inline int better(__m256 qx, __m256 qq, float score)
{
    __m256 m = _mm256_cmp_ps(qq, _mm256_setzero_ps(), _CMP_GT_OQ);
    __m256 s = _mm256_mul_ps(_mm256_set1_ps(score), qq);
    return _mm256_movemask_ps(_mm256_and_ps(
        m, _mm256_cmp_ps(_mm256_mul_ps(qx, qx), s, _CMP_GT_OQ)));
}

/* Take a fit if it is better than score. */
static inline int take(float qx, float qq, float *score, float *scale)
{
    if (!(qq > 0 && qx * qx > *score * qq))
        return 0;
    *scale = qx / qq;
    *score = *scale * qx;
    return 1;
}

/* Sums of three runs times levels v, for eight ends of the second run. */
static inline __m256 run_sums(float first, const float *s, float from,
                              float all, const float u[3], const float v[3])
{
    __m256 mid = _mm256_mul_ps(minus(s, from), _mm256_set1_ps(u[1]));
    __m256 end = _mm256_sub_ps(_mm256_set1_ps(all), _mm256_loadu_ps(s));
    end = _mm256_mul_ps(end, _mm256_set1_ps(u[2]));
    float head = first * u[0];
    if (v) { /* squares of levels: times v again */
        head *= v[0];
        mid = _mm256_mul_ps(mid, _mm256_set1_ps(v[1]));
        end = _mm256_mul_ps(end, _mm256_set1_ps(v[2]));
    }
    return _mm256_add_ps(_mm256_add_ps(_mm256_set1_ps(head), mid), end);
}

static int split_s(const float *x, const float *w, const int *order,
                   struct gg_iq1_split *best)
{
    float sx[48] = { 0 }, sw[48] = { 0 }, score = -FLT_MAX;
    int found = 0;
    for (int j = 0; j < 32; j++) {
        sx[j + 1] = sx[j] + w[order[j]] * x[order[j]];
        sw[j + 1] = sw[j] + w[order[j]];
    }
    for (int one = 0; one <= 32; one++)
        for (int two = one; two <= 32; two += 8) {
            float qx[2][8], qq[2][8];
            int any = 0, n = 33 - two < 8 ? 33 - two : 8;
            for (int down = 0; down < 2; down++) {
                const float *v = shifted[down];
                __m256 a = run_sums(sx[one] - sx[0], sx + two, sx[one], sx[32],
                                    v, NULL);
                __m256 b = run_sums(sw[one] - sw[0], sw + two, sw[one], sw[32],
                                    v, v);
                any |= better(a, b, score);
                _mm256_storeu_ps(qx[down], a);
                _mm256_storeu_ps(qq[down], b);
            }
            for (int k = 0; any && k < n; k++)
                for (int down = 0; down < 2; down++)
                    if (take(qx[down][k], qq[down][k], &score, &best->scale)) {
                        best->one = one;
                        best->two = two + k;
                        best->down[0] = best->down[1] = down;
                        found = 1;
                    }
        }
    return found;
}

/* Terms of the sums of IQ1_M by pair of shifts (bit 1 of its number is the
 * lower half's, bit 0 the upper's), level and place in the order. */
struct terms {
    float qx[4][3][16], qq[4][3][16];
};

static void make_terms(const float *x, const float *w, const int *order,
                       struct terms *t)
{
    for (int j = 0; j < 16; j++) {
        float xj = x[order[j]], wj = w[order[j]];
        int upper = order[j] >= 8;
        for (int k = 0; k < 4; k++)
            for (int l = 0; l < 3; l++) {
                float v = shifted[upper ? k & 1 : k >> 1][l];
                t->qx[k][l][j] = wj * v * xj;
                t->qq[k][l][j] = wj * v * v;
            }
    }
}

/* Sums of the divisions (one, two .. two + 7) for each pair of shifts; first
 * has those of the first run. */
static inline void split_sums(const struct terms *t, int one, int two,
                              const float first[2][4], __m256 qx[4],
                              __m256 qq[4])
{
    __m256i ends = _mm256_add_epi32(_mm256_set1_epi32(two),
                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    for (int k = 0; k < 4; k++) {
        qx[k] = _mm256_set1_ps(first[0][k]);
        qq[k] = _mm256_set1_ps(first[1][k]);
    }
    for (int j = one; j < 16; j++) {
        __m256 m = _mm256_castsi256_ps(
            _mm256_cmpgt_epi32(ends, _mm256_set1_epi32(j)));
        GG_UNROLL
        for (int k = 0; k < 4; k++) {
            __m256 a = _mm256_blendv_ps(_mm256_set1_ps(t->qx[k][2][j]),
                                        _mm256_set1_ps(t->qx[k][1][j]), m);
            __m256 b = _mm256_blendv_ps(_mm256_set1_ps(t->qq[k][2][j]),
                                        _mm256_set1_ps(t->qq[k][1][j]), m);
            qx[k] = _mm256_add_ps(qx[k], a);
            qq[k] = _mm256_add_ps(qq[k], b);
        }
    }
}

static int split_m(const float *x, const float *w, const int *order,
                   struct gg_iq1_split *best)
{
    struct terms t;
    float score = -FLT_MAX, first[2][4] = { { 0 }, { 0 } };
    int found = 0;
    make_terms(x, w, order, &t);
    for (int one = 0; one <= 16; one++) {
        for (int two = one; two <= 16; two += 8) {
            __m256 a[4], b[4];
            float qx[4][8], qq[4][8];
            int any = 0, n = 17 - two < 8 ? 17 - two : 8;
            split_sums(&t, one, two, first, a, b);
            for (int k = 0; k < 4; k++) {
                any |= better(a[k], b[k], score);
                _mm256_storeu_ps(qx[k], a[k]);
                _mm256_storeu_ps(qq[k], b[k]);
            }
            for (int i = 0; any && i < n; i++)
                for (int k = 0; k < 4; k++)
                    if (take(qx[k][i], qq[k][i], &score, &best->scale)) {
                        best->one = one;
                        best->two = two + i;
                        best->down[0] = k >> 1;
                        best->down[1] = k & 1;
                        found = 1;
                    }
        }
        for (int k = 0; one < 16 && k < 4; k++) {
            first[0][k] += t.qx[k][0][one];
            first[1][k] += t.qq[k][0][one];
        }
    }
    return found;
}

static unsigned near(unsigned point, const float *x, const float *w,
                     float scale, const float v[3])
{
    const uint16_t *list = gg_near_iq1 + (gg_near_iq1_start[point] >> 1);
    int n = (int)((gg_near_iq1_start[point + 1] >> 1) -
                  (gg_near_iq1_start[point] >> 1));
    const __m256 table = _mm256_mul_ps(
        _mm256_set1_ps(scale), _mm256_setr_ps(v[0], v[1], v[2], 0, 0, 0, 0, 0));
    const __m256i mask = _mm256_set1_epi32(3);
    float best = FLT_MAX;
    unsigned code = list[0];
    for (int j = 0; j < n; j += 8) {
        __m256i c = _mm256_cvtepu16_epi32(gg_load128(list + j));
        __m256 d = _mm256_setzero_ps();
        for (int i = 0; i < 8; i++) {
            __m256 q = _mm256_permutevar8x32_ps(table,
                                                _mm256_and_si256(c, mask));
            __m256 e = _mm256_sub_ps(q, _mm256_set1_ps(x[i]));
            __m256 r = _mm256_mul_ps(_mm256_set1_ps(w[i]), e);
            d = _mm256_add_ps(d, _mm256_mul_ps(r, e));
            c = _mm256_srli_epi32(c, 2);
        }
        float error[8];
        int less = _mm256_movemask_ps(
            _mm256_cmp_ps(d, _mm256_set1_ps(best), _CMP_LT_OQ));
        if (!less)
            continue;
        _mm256_storeu_ps(error, d);
        for (int k = 0; k < 8 && j + k < n; k++)
            if (error[k] < best) {
                best = error[k];
                code = list[j + k];
            }
    }
    return code;
}

static const struct gg_iq1_search search = { split_s, split_m, near };

void gg_encode_iq1_s_avx2(const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    gg_iq1_s_encode(&search, src, dst, n_rows, row_len, weight);
}

void gg_encode_iq1_m_avx2(const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    gg_iq1_m_encode(&search, src, dst, n_rows, row_len, weight);
}
