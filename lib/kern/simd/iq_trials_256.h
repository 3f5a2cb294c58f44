/* SPDX-License-Identifier: MIT */
/* iq_trials_256.h - a part of an IQ2 or IQ3 block rounded by many scales
 *
 * For enc_iq_256.c: levels by eight scales at a time, then codebook entries
 * for the groups whose levels are not an entry. For most of these groups it is
 * enough to examine the ends of the range of scales by which a group is the
 * same point.
 */
#ifndef GG_KERN_SIMD_IQ_TRIALS_256_H
#define GG_KERN_SIMD_IQ_TRIALS_256_H

#include "kern/c/enc_iq.h"
#include "kern/simd/v256.h"

#include <math.h>
#include <string.h>

#define MAX_TRY      32      /* trial scales, at most */
#define MAX_QUOTIENT 0x1p20f /* far below what gg_v256_nearest_ps can round */

struct part {
    float x[32], w[32], root[32];
    float amax; /* largest magnitude */
    uint16_t code[8];
    unsigned near; /* bit g: the levels of group g were not an entry */
    int zero;
    /* a quotient is out of range: the reference encodes the block */
    int failed;
};

/* A part rounded by several scales, largest first. Codes by group and scale,
 * with room for whole vectors. Bit k of near of a group: its levels by scale k
 * were not an entry. */
#define CODE_ROOM (2 * MAX_TRY)
struct trials {
    int n;
    float inv[MAX_TRY], scale[MAX_TRY]; /* 1/scale, scale */
    uint16_t code[8][CODE_ROOM];
    uint32_t near[8];
};

/* Run of scales from .. to by which a group is the same point, and its codes:
 * one from `from' on, another from `turn' on. For the near entries: places of
 * the lowest error by either end, or -1. */
struct run {
    uint16_t point, code[2];
    int16_t first, last;
    uint8_t group, from, turn, to;
};

/* All runs of a part, in order of groups and scales, sorted by kind: lists of
 * near entries that fill one vector, two, three, more. Each kind is looked up
 * in one loop, since no branch predictor foresees which comes next. Points of
 * the last kind are entries. open: unfinished runs of a kind. */
#define N_KIND 5
struct runs {
    int n, n_of[N_KIND];
    struct run run[8 * MAX_TRY];
    uint8_t of[N_KIND][8 * MAX_TRY], open[8 * MAX_TRY];
};

/* Odd numbers by level; twice those of two bits, see best_near. */
static GG_ALWAYS_INLINE __m256 odd_numbers(const struct gg_kern_iq_book *b)
{
    return b->bits == 2 ? _mm256_setr_ps(1, 3, 5, 7, 1, 3, 5, 7)
                        : _mm256_setr_ps(1, 3, 5, 7, 9, 11, 13, 15);
}

/* The near entry with the least error: lanes are entries. Errors of element i
 * at each level are computed once; the lowest three bits of the rest of a code
 * look them up. Of codes with two bits a level the third is the next
 * element's, and the errors are there twice. */
static GG_ALWAYS_INLINE unsigned best_near(const struct gg_kern_iq_book *b,
                                           unsigned point, const float *x,
                                           const float *root, float scale)
{
    const uint16_t *list = b->near + (b->start[point] >> 1);
    int n = (int)((b->start[point + 1] >> 1) - (b->start[point] >> 1));
    const __m256 level = _mm256_mul_ps(_mm256_set1_ps(scale), odd_numbers(b));
    __m256 error_of[8];
    GG_UNROLL
    for (int i = 0; i < b->group; i++) {
        __m256 e = _mm256_sub_ps(level, _mm256_set1_ps(x[i]));
        error_of[i] =
            _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(root[i]), e), e);
    }
    struct gg_v256_least least = gg_v256_least_none();
    for (int j = 0; j < n; j += 8) {
        __m256i c = _mm256_cvtepu16_epi32(gg_v256_load128(list + j));
        __m256 d = _mm256_setzero_ps();
        GG_UNROLL
        for (int i = 0; i < b->group; i++) {
            d = _mm256_add_ps(d, _mm256_permutevar8x32_ps(error_of[i], c));
            c = _mm256_srli_epi32(c, b->bits);
        }
        gg_v256_least_add(&least, d, j, n);
    }
    return list[gg_v256_least_place(&least)];
}

/* The near entries of a point for many scales at once.
 *
 * The error of an entry of odd numbers q by scale s is
 *
 *     sum root * (s*q - x)^2 = s * (s * a - b) + c,
 *
 * where a is the sum of root * q^2, b the sum of 2 * root * x * q, and c is the
 * same for all entries. So s * a - b decides which entry has the least error.
 * It is a line over s for each entry: an entry that is below all others at two
 * scales is below them at all scales between.
 *
 * With u = 2^-24 and e = sum root * (s*q + |x|)^2, the reference's errors are
 * off by less than 15 u e (each difference by u * (s*q + |s*q - x|), the
 * products by 3u, the sum by 8u), and s times the line here by less than 11 u
 * e. An entry that is below the others by margin = 64 u e / s here, with e for
 * the largest s and q and that divided by the least s, is below them by 42 u e,
 * and so by more than 30 u e where s is between: its error is the least in the
 * reference. Where the distance is less, the reference's errors are computed.
 * They are also computed where e or s are so large or small that terms (root *
 * q^2 is at most e / s^2) could overflow, or that losses among the smallest
 * floats, at most 2^-149 times s^2, could matter. */
#define MAX_NEAR 40 /* vectors of entries */

struct lines {
    __m256 a_of[32], b_of[32]; /* terms of an element by level */
    float margin[8];           /* negative: out of range, nothing is safe */
    int n;                     /* vectors */
    __m256 a[MAX_NEAR], b[MAX_NEAR];
};

static GG_ALWAYS_INLINE void part_lines(const struct gg_kern_iq_book *b,
                                        const struct part *p, int n,
                                        const struct trials *t,
                                        struct lines *l)
{
    const __m256 odd = odd_numbers(b), squares = _mm256_mul_ps(odd, odd);
    float least = t->scale[t->n - 1];
    float most = t->scale[0] * (float)(2 * b->top + 1);
    for (int g = 0; g < n / b->group; g++) {
        float e = 0;
        for (int i = b->group * g; i < b->group * (g + 1); i++) {
            float x = p->x[i], root = p->root[i], m = most + fabsf(x);
            e += root * m * m;
            l->a_of[i] = _mm256_mul_ps(_mm256_set1_ps(root), squares);
            l->b_of[i] = _mm256_mul_ps(_mm256_set1_ps(2 * root * x), odd);
        }
        int fine =
            e > 0x1p-70f && e < 0x1p60f && least > 0x1p-30f && least < 0x1p20f;
        l->margin[g] = fine ? 0x1p-18f * e / least : -1;
    }
}

/* The lines of n near entries of a group; after them infinity. */
static GG_ALWAYS_INLINE void point_lines(const struct gg_kern_iq_book *b,
                                         int g, const uint16_t *list, int n,
                                         int n_vec, struct lines *l)
{
    const __m256i step = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 *a_of = l->a_of + b->group * g,
                 *b_of = l->b_of + b->group * g;
    l->n = n_vec;
    for (int j = 0; j < n_vec; j++) {
        __m256i c = _mm256_cvtepu16_epi32(gg_v256_load128(list + 8 * j));
        __m256 va = _mm256_permutevar8x32_ps(a_of[0], c);
        __m256 vb = _mm256_permutevar8x32_ps(b_of[0], c);
        GG_UNROLL
        for (int i = 1; i < b->group; i++) {
            c = _mm256_srli_epi32(c, b->bits);
            va = _mm256_add_ps(va, _mm256_permutevar8x32_ps(a_of[i], c));
            vb = _mm256_add_ps(vb, _mm256_permutevar8x32_ps(b_of[i], c));
        }
        __m256i in = _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8 * j), step);
        l->a[j] = va;
        l->b[j] = m256_select_ps(_mm256_set1_ps(-INFINITY), vb,
                                 _mm256_castsi256_ps(in));
    }
}

/* The entry that is safely lowest at a scale, or -1. */
static GG_ALWAYS_INLINE int lowest_error(const struct lines *l, int n_vec,
                                         float margin, float scale)
{
    const __m256 s = _mm256_set1_ps(scale);
    __m256 low = _mm256_fmsub_ps(l->a[0], s, l->b[0]);
    for (int j = 1; j < n_vec; j++)
        low = _mm256_min_ps(low, _mm256_fmsub_ps(l->a[j], s, l->b[j]));
    __m256 limit = _mm256_set1_ps(gg_v256_hmin_ps(low) + margin);
    int at = 0, n = 0;
    for (int j = 0; j < n_vec; j++) {
        __m256 v = _mm256_fmsub_ps(l->a[j], s, l->b[j]);
        unsigned m =
            (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, limit, _CMP_LE_OQ));
        int here = 8 * j + (int)GG_CTZ32(m | 256);
        at = m ? here : at;
        n += (m != 0) + ((m & (m - 1)) != 0);
    }
    return n == 1 && margin >= 0 ? at : -1;
}

/* The near entries of a run's point. */
static inline const uint16_t *list_of(const struct gg_kern_iq_book *b,
                                      const struct run *r, int *n)
{
    uint32_t from = b->start[r->point] >> 1;
    *n = (int)((b->start[r->point + 1] >> 1) - from);
    return b->near + from;
}

/* Look up the runs of a kind by both ends. Returns the number of runs that stay
 * open: their lowest entries differ or are not safe. */
static GG_ALWAYS_INLINE int look_up(const struct gg_kern_iq_book *b,
                                    const struct trials *t, int kind,
                                    struct runs *runs, struct lines *l)
{
    int n_open = 0, n;
    for (int j = 0; j < runs->n_of[kind]; j++) {
        struct run *r = &runs->run[runs->of[kind][j]];
        const uint16_t *list = list_of(b, r, &n);
        int n_vec = kind < 3 ? kind + 1 : (n + 7) / 8;
        float margin = l->margin[r->group];
        point_lines(b, r->group, list, n, n_vec, l);
        int first = lowest_error(l, n_vec, margin, t->scale[r->from]);
        int last = lowest_error(l, n_vec, margin, t->scale[r->to]);
        r->first = (int16_t)first;
        r->last = (int16_t)last;
        r->code[0] = r->code[1] = list[first < 0 ? 0 : first];
        runs->open[n_open] = runs->of[kind][j];
        n_open += (first < 0) | (first != last);
    }
    return n_open;
}

/* Finish those of n open runs of a kind that change from one entry to another
 * at the scale where their lines meet: each entry is the lowest on its side, up
 * to its end. Returns the number of runs that stay open. */
static GG_ALWAYS_INLINE int find_turns(const struct gg_kern_iq_book *b,
                                       const struct trials *t, int kind, int n,
                                       struct runs *runs, struct lines *l)
{
    int n_open = 0, n_near;
    const float *va = (const float *)l->a, *vb = (const float *)l->b;
    for (int j = 0; j < n; j++) {
        struct run *r = &runs->run[runs->open[j]];
        const uint16_t *list = list_of(b, r, &n_near);
        int n_vec = kind < 3 ? kind + 1 : (n_near + 7) / 8, turn = 0;
        int first = r->first < 0 ? 0 : r->first;
        int last = r->last < 0 ? 0 : r->last;
        float margin = l->margin[r->group];
        point_lines(b, r->group, list, n_near, n_vec, l);
        __m256 meet =
            _mm256_set1_ps((vb[first] - vb[last]) / (va[first] - va[last]));
        for (int k = 0; k < t->n; k += 8) /* larger scales */
            turn += _mm_popcnt_u32((unsigned)_mm256_movemask_ps(_mm256_cmp_ps(
                _mm256_loadu_ps(t->scale + k), meet, _CMP_GT_OQ)));
        turn = turn > r->from ? turn : r->from + 1;
        turn = turn < r->to ? turn : r->to;
        int before =
            lowest_error(l, n_vec, margin, t->scale[turn ? turn - 1 : 0]);
        int after = lowest_error(l, n_vec, margin, t->scale[turn]);
        r->code[1] = list[last];
        r->turn = (uint8_t)turn;
        runs->open[n_open] = runs->open[j];
        n_open += (r->first < 0) | (r->last < 0) | (before != r->first) |
                  (after != r->last);
    }
    return n_open;
}

/* Look up a run scale by scale. */
static GG_ALWAYS_INLINE void look_up_each(const struct gg_kern_iq_book *b,
                                          const struct part *p,
                                          const struct run *r, struct lines *l,
                                          struct trials *t)
{
    int n;
    const uint16_t *list = list_of(b, r, &n);
    point_lines(b, r->group, list, n, (n + 7) / 8, l);
    for (int k = r->from; k <= r->to; k++) {
        int at = lowest_error(l, l->n, l->margin[r->group], t->scale[k]);
        unsigned code =
            at >= 0 ? list[at]
                    : best_near(b, r->point, p->x + b->group * r->group,
                                p->root + b->group * r->group, t->scale[k]);
        t->code[r->group][k] = (uint16_t)code;
    }
}

/* Levels of a group by eight scales: codes and points, which for codes of
 * three bits are the same. Quotients are small enough for
 * gg_v256_nearest_ps. */
static GG_ALWAYS_INLINE void round_group(const struct gg_kern_iq_book *b,
                                         const float *x, const float *inv,
                                         uint16_t *code, int32_t *point)
{
    const __m256 one = _mm256_set1_ps(1), half = _mm256_set1_ps(0.5f);
    const __m256 top = _mm256_set1_ps((float)b->top);
    const __m256 base = _mm256_set1_ps((float)(b->top + 1));
    const __m256 bits = _mm256_set1_ps((float)(1 << b->bits));
    __m256 c = _mm256_setzero_ps(), p = c, s = _mm256_loadu_ps(inv);
    GG_UNROLL
    for (int i = b->group - 1; i >= 0; i--) {
        __m256 v = _mm256_mul_ps(s, _mm256_set1_ps(x[i]));
        v = gg_v256_nearest_ps(_mm256_mul_ps(half, _mm256_sub_ps(v, one)));
        v = _mm256_min_ps(_mm256_max_ps(v, _mm256_setzero_ps()), top);
        p = _mm256_fmadd_ps(p, base, v);
        c = _mm256_fmadd_ps(c, bits, v);
    }
    __m256i ci = m256_to_ints(c), pi = m256_to_ints(p);
    _mm256_storeu_si256((void *)point, pi);
    ci = _mm256_permute4x64_epi64(_mm256_packus_epi32(ci, ci), 0x08);
    _mm_storeu_si128((void *)code, _mm256_castsi256_si128(ci));
}

/* Bit k: point k differs from the next, or is the last of n. */
static inline uint32_t run_ends(const int32_t *point, int n)
{
    uint32_t same = 0, last = UINT32_C(1) << (n - 1);
    for (int k = 0; k < n; k += 8) {
        __m256i m = _mm256_cmpeq_epi32(gg_v256_load256(point + k),
                                       gg_v256_load256(point + k + 1));
        same |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(m)) << k;
    }
    return (~same & (last - 1)) | last;
}

/* Round a group by all scales, and list its runs. */
static GG_ALWAYS_INLINE void list_runs(const struct gg_kern_iq_book *b,
                                       const struct part *p, int g,
                                       struct trials *t, struct runs *runs)
{
    int32_t point[MAX_TRY + 8];
    uint16_t code[MAX_TRY];
    int k = 0;
    for (; k < t->n; k += 8)
        round_group(b, p->x + b->group * g, t->inv + k, code + k, point + k);
    point[k] = 0;
    uint32_t ends = run_ends(point, t->n), near = 0;
    for (int from = 0, to; ends; ends &= ends - 1, from = to + 1) {
        to = (int)GG_CTZ32(ends);
        const uint32_t *start = b->start + point[from];
        uint32_t kind = ((start[1] >> 1) - (start[0] >> 1) - 1) / 8;
        uint32_t scales = (UINT32_C(2) << to) - (UINT32_C(1) << from);
        kind = kind < 3 ? kind : 3;
        kind = start[0] & 1 ? 4 : kind;
        near |= start[0] & 1 ? 0 : scales;
        runs->of[kind][runs->n_of[kind]++] = (uint8_t)runs->n;
        runs->run[runs->n++] = (struct run){ (uint16_t)point[from],
                                             { code[from], code[from] },
                                             0,
                                             0,
                                             (uint8_t)g,
                                             (uint8_t)from,
                                             (uint8_t)to,
                                             (uint8_t)to };
    }
    t->near[g] = near;
}

/* Look up the runs of a kind; lists at open those that are left to
 * look_up_each. */
static GG_ALWAYS_INLINE int do_kind(const struct gg_kern_iq_book *b,
                                    const struct trials *t, int kind,
                                    struct runs *runs, struct lines *l,
                                    uint8_t *open)
{
    int n = look_up(b, t, kind, runs, l);
    n = find_turns(b, t, kind, n, runs, l);
    memcpy(open, runs->open, (size_t)n);
    return n;
}

/* Round a part by all scales of t. Returns 0 if that would leave the range of
 * gg_v256_nearest_ps. */
static GG_ALWAYS_INLINE int round_trials(const struct gg_kern_iq_book *b,
                                         const struct part *p, int n,
                                         struct trials *t)
{
    struct lines l;
    struct runs runs;
    uint8_t open[8 * MAX_TRY];
    int n_open = 0;
    if (!(p->amax * t->inv[t->n - 1] < MAX_QUOTIENT))
        return 0;
    runs.n = 0;
    memset(runs.n_of, 0, sizeof runs.n_of);
    for (int g = 0; g < n / b->group; g++)
        list_runs(b, p, g, t, &runs);
    part_lines(b, p, n, t, &l);
    n_open += do_kind(b, t, 0, &runs, &l, open);
    n_open += do_kind(b, t, 1, &runs, &l, open + n_open);
    n_open += do_kind(b, t, 2, &runs, &l, open + n_open);
    n_open += do_kind(b, t, 3, &runs, &l, open + n_open);
    for (int j = 0; j < runs.n; j++) { /* the next runs overwrite the rest */
        const struct run *r = &runs.run[j];
        for (int k = 0; k < 2; k++) {
            __m256i c = _mm256_set1_epi16((short)r->code[k]);
            uint16_t *code = t->code[r->group] + (k ? r->turn : r->from);
            _mm256_storeu_si256((void *)code, c);
            _mm256_storeu_si256((void *)(code + 16), c);
        }
    }
    for (int j = 0; j < n_open; j++)
        look_up_each(b, p, &runs.run[open[j]], &l, t);
    return 1;
}

#endif
