/* SPDX-License-Identifier: MIT */
/* enc_trellis_256.c - encoders of IQ1_KT to IQ4_KT: eight codes at a time */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_trellis_impl.h"

#include "kern/simd/m256.h"

/* Element of eight codes whose states are x. */
static inline __m256 elements_of(__m256i x, int absolute)
{
    const __m256i six = _mm256_set1_epi8(63), one = _mm256_set1_epi8(1);
    __m256i pair = _mm256_maddubs_epi16(_mm256_and_si256(x, six), one);
    __m256i v = _mm256_sub_epi32(_mm256_madd_epi16(pair, _mm256_set1_epi16(1)),
                                 _mm256_set1_epi32(GG_TRELLIS_MIDDLE));
    return _mm256_cvtepi32_ps(absolute ? _mm256_abs_epi32(v) : v);
}

/* Weighted squared distance of element k. */
static inline __m256 distance_of(__m256i x, int absolute, float v, float w)
{
    __m256 d = _mm256_sub_ps(elements_of(x, absolute), _mm256_set1_ps(v));
    return _mm256_mul_ps(_mm256_set1_ps(w), _mm256_mul_ps(d, d));
}

/* Least distances of eight lanes, and their codes. */
struct least {
    __m256 score;
    __m256i code;
};

static inline void try_codes(struct least *l, __m256i code, uint32_t offset,
                             int group, int absolute, const float *v,
                             const float *w)
{
    __m256i first = _mm256_add_epi32(code, _mm256_set1_epi32((int32_t)offset));
    uint32_t factor = 1;
    __m256 e[8], score;
    for (int k = 0; k < group; k++) {
        factor *= GG_TRELLIS_FACTOR;
        e[k] = distance_of(
            _mm256_mullo_epi32(first, _mm256_set1_epi32((int32_t)factor)),
            absolute, v[k], w[k]);
    }
    if (group == 8) {
        for (int k = 0; k < 4; k++)
            e[k] = _mm256_add_ps(e[k], e[k + 4]);
    }
    score =
        _mm256_add_ps(_mm256_add_ps(e[0], e[2]), _mm256_add_ps(e[1], e[3]));
    __m256 less = _mm256_cmp_ps(score, l->score, _CMP_LT_OQ);
    l->score = m256_select_ps(l->score, score, less);
    l->code = m256_select(l->code, code, _mm256_castps_si256(less));
}

/* Search a list; group and absolute are constants. */
static inline struct least search_list(const uint16_t *list, size_t n,
                                       uint32_t offset, int group,
                                       int absolute, const float *v,
                                       const float *w)
{
    struct least l = { _mm256_set1_ps(INFINITY), _mm256_setzero_si256() };
    __m256i next = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (size_t i = 0; i < n; i += 8) {
        __m256i code = next;
        if (list)
            code = _mm256_cvtepu16_epi32(
                _mm_loadu_si128((const __m128i *)(const void *)(list + i)));
        try_codes(&l, code, offset, group, absolute, v, w);
        next = _mm256_add_epi32(next, _mm256_set1_epi32(8));
    }
    return l;
}

static unsigned find_code(const struct gg_kern_trellis *t,
                          const uint16_t *list, size_t n, const float *v,
                          const float *w)
{
    static const uint8_t order[8] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    struct least l =
        t->group == 4 ? search_list(list, n, t->offset, 4, 0, v, w)
        : t->absolute ? search_list(list, n, t->offset, 8, 1, v, w)
                      : search_list(list, n, t->offset, 8, 0, v, w);
    float score[8], least = INFINITY;
    uint32_t codes[8];
    unsigned code = 0;
    _mm256_storeu_ps(score, l.score);
    _mm256_storeu_si256((__m256i *)(void *)codes, l.code);
    for (int i = 0; i < 8; i++) {
        int lane = t->group == 8 ? i : order[i];
        if (score[lane] < least) {
            least = score[lane];
            code = codes[lane];
        }
    }
    return code;
}

GG_TRELLIS_ENCODERS(256)
