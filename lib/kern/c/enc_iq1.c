/* SPDX-License-Identifier: MIT */
/* enc_iq1.c - reference encoders of IQ1_S and IQ1_M
 *
 * Elements are -1, 0 or 1 plus a shift of an eighth up or down. For sorted
 * elements every division into three runs is tried with each shift; groups
 * of 8 that are then no codebook entry get the best of the near ones. Source:
 * quantize_row_iq1_s_impl and _iq1_m_impl of ggml-quants.c (ggml commit
 * d99724f), whose sort is that of glibc: stable. Where those abort, the first
 * near entry is taken.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/c/enc_iq1.h"
#include "kern/c/enc_search_ref.h"
#include "kern/c/iq_near.h"
#include "kern/c/round.h"

#include <float.h>

static const struct gg_kern_iq_book book = GG_IQ_BOOK(iq1, 8, 2, 2);

static const float shifted[2][3] = GG_IQ1_SHIFTED;

static void sort_elements(const float *x, int n, int *order)
{
    for (int j = 0; j < n; j++) {
        int k = j;
        for (; k > 0 && x[order[k - 1]] > x[j]; k--)
            order[k] = order[k - 1];
        order[k] = j;
    }
}

/* IQ1_S: one shift for all 32; sums of runs are differences of running sums. */
static int best_split_s(const float *x, const float *w, int *order,
                        struct gg_kern_iq1_split *best)
{
    float sx[33], sw[33], score = -FLT_MAX;
    sort_elements(x, 32, order);
    sx[0] = sw[0] = 0;
    for (int j = 0; j < 32; j++) {
        sx[j + 1] = sx[j] + w[order[j]] * x[order[j]];
        sw[j + 1] = sw[j] + w[order[j]];
    }
    int found = 0;
    for (int one = 0; one <= 32; one++)
        for (int two = one; two <= 32; two++)
            for (int down = 0; down < 2; down++) {
                const float *v = shifted[down];
                float qx = (sx[one] - sx[0]) * v[0] +
                           (sx[two] - sx[one]) * v[1] +
                           (sx[32] - sx[two]) * v[2];
                float qq = (sw[one] - sw[0]) * v[0] * v[0] +
                           (sw[two] - sw[one]) * v[1] * v[1] +
                           (sw[32] - sw[two]) * v[2] * v[2];
                if (qq > 0 && qx * qx > score * qq) {
                    float scale = qx / qq;
                    score = scale * qx;
                    *best = (struct gg_kern_iq1_split){
                        one, two, { down, down }, scale
                    };
                    found = 1;
                }
            }
    return found;
}

/* Sums of a fit for each of the four pairs of shifts: bit 1 of the number is
 * the lower half's, bit 0 the upper's. */
struct four {
    float qx[4], qq[4];
};

static void add_element(struct four *f, float x, float w, int upper, int level)
{
    for (int k = 0; k < 4; k++) {
        float v = shifted[upper ? k & 1 : k >> 1][level];
        f->qx[k] += w * v * x;
        f->qq[k] += w * v * v;
    }
}

/* IQ1_M: 16 elements, a shift for each half; sums run over the elements. */
static int best_split_m(const float *x, const float *w, int *order,
                        struct gg_kern_iq1_split *best)
{
    float score = -FLT_MAX;
    sort_elements(x, 16, order);
    int found = 0;
    struct four first = { { 0 }, { 0 } };
    for (int one = 0; one <= 16; one++) {
        struct four middle = first;
        for (int two = one; two <= 16; two++) {
            struct four f = middle;
            for (int j = two; j < 16; j++)
                add_element(&f, x[order[j]], w[order[j]], order[j] >= 8, 2);
            for (int k = 0; k < 4; k++)
                if (f.qq[k] > 0 && f.qx[k] * f.qx[k] > score * f.qq[k]) {
                    float scale = f.qx[k] / f.qq[k];
                    score = scale * f.qx[k];
                    *best = (struct gg_kern_iq1_split){
                        one, two, { k >> 1, k & 1 }, scale
                    };
                    found = 1;
                }
            if (two < 16)
                add_element(&middle, x[order[two]], w[order[two]],
                            order[two] >= 8, 1);
        }
        if (one < 16)
            add_element(&first, x[order[one]], w[order[one]], order[one] >= 8,
                        0);
    }
    return found;
}

static unsigned best_near(unsigned point, const float *x, const float *w,
                          float scale, const float v[3])
{
    float best = FLT_MAX;
    uint32_t from = book.start[point] >> 1, to = book.start[point + 1] >> 1;
    unsigned code = book.near[from];
    for (; from < to; from++) {
        float d = 0;
        for (int i = 0; i < 8; i++) {
            float e =
                scale * v[gg_kern_iq_level(&book, book.near[from], i)] - x[i];
            d += w[i] * e * e;
        }
        if (d < best) {
            best = d;
            code = book.near[from];
        }
    }
    return code;
}

/* A part: codes of its groups, scale and shifts. */
struct part {
    unsigned code[4];
    int down[2];
    float scale;
};

/* Index of the shift of group g in its part: parts of IQ1_M have two groups. */
static int down_of(const struct part *p, int g)
{
    return p->down[g & 1];
}

/* Entries for the levels of a division; fits again if any had to move. */
static void find_entries(const struct gg_kern_iq1_search *search,
                         const float *x, const float *w, int n,
                         const uint8_t *level, struct part *p)
{
    int moved = 0;
    float qx = 0, qq = 0;
    for (int g = 0; g < n / 8; g++) {
        unsigned point, code = 0;
        for (int i = 0; i < 8; i++)
            code |= (unsigned)level[8 * g + i] << 2 * i;
        point = gg_kern_iq_point(&book, code);
        if (!(book.start[point] & 1)) {
            moved = 1;
            code = search->near(point, x + 8 * g, w + 8 * g, p->scale,
                                shifted[down_of(p, g)]);
        }
        p->code[g] = code;
    }
    for (int e = 0; moved && e < n; e++) {
        float q = shifted[down_of(p, e / 8)]
                         [gg_kern_iq_level(&book, p->code[e / 8], e % 8)];
        qx += w[e] * q * x[e];
        qq += w[e] * q * q;
    }
    if (qx > 0 && qq > 0)
        p->scale = qx / qq;
}

/* n is 32 (IQ1_S) or 16 (IQ1_M). */
static void fit_part(const struct gg_kern_iq1_search *search, const float *x,
                     const float *w, int n, float zero, struct part *p)
{
    int order[32];
    uint8_t level[32];
    struct gg_kern_iq1_split s;
    *p = (struct part){ { 0 }, { 0 }, 0 };
    if (gg_kern_max_abs(x, (size_t)n) < zero)
        return;
    if (!(n == 32 ? search->split_s : search->split_m)(x, w, order, &s))
        return;
    /* a negative scale changes the sign of levels and shifts */
    int turn = s.scale < 0;
    for (int j = 0; j < n; j++) {
        int l = j < s.one ? 0 : j < s.two ? 1 : 2;
        level[order[j]] = (uint8_t)(turn ? 2 - l : l);
    }
    p->scale = turn ? -s.scale : s.scale;
    for (int k = 0; k < 2; k++)
        p->down[k] = s.down[k] ^ turn;
    find_entries(search, x, w, n, level, p);
}

static void weigh_elements(const float *x, const float *weight, float sigma2,
                           float *w)
{
    for (int i = 0; i < 256; i++)
        w[i] = weight ? weight[i] * sqrtf(sigma2 + x[i] * x[i]) : x[i] * x[i];
}

/* Twice the mean square of a block. */
static float sigma2_of(const float *x)
{
    float sum = 0;
    for (int i = 0; i < 256; i++)
        sum += x[i] * x[i];
    return 2 * sum / 256;
}

static int scale_code(float inv, float scale)
{
    return gg_kern_clamp(gg_kern_nearest(0.5f * (inv * scale - 1)), 0, 7);
}

static float largest_scale(const struct part *p, int n)
{
    float max = 0;
    for (int s = 0; s < n; s++)
        max = max > p[s].scale ? max : p[s].scale;
    return max;
}

static void iq1_s_block(const struct gg_kern_iq1_search *search,
                        const float *x, const float *weight,
                        struct gg_block_iq1_s *b)
{
    struct part p[8];
    float w[256];
    search->weigh(x, weight, sigma2_of(x), w);
    for (int s = 0; s < 8; s++)
        fit_part(search, x + 32 * s, w + 32 * s, 32, 1e-12f, &p[s]);
    float max = largest_scale(p, 8), d = max / 15, inv = 1 / d;
    memset(b, 0, sizeof *b);
    for (int s = 0; s < 8; s++) {
        unsigned h = 0;
        for (int k = 0; k < 4; k++) {
            unsigned entry = gg_kern_iq_entry(&book, p[s].code[k]);
            b->qs[4 * s + k] = (uint8_t)entry;
            h |= entry >> 8 << 3 * k;
        }
        if (max != 0)
            h |= (unsigned)(scale_code(inv, p[s].scale) | p[s].down[0] << 3)
                 << 12;
        gg_bytes_store16le(&b->qh[s], (uint16_t)h);
    }
    gg_kern_put_half(&b->d, max != 0 ? d * 1.125f : 0);
}

/* The block's scale is fitted over all elements once the parts' are known. */
static float iq1_m_refit(const float *x, const float *w, const struct part *p,
                         const int code[16], float d)
{
    float qx = 0, qq = 0;
    for (int e = 0; e < 256; e++) {
        const struct part *q = &p[e / 16];
        float v = shifted[down_of(q, e / 8)]
                         [gg_kern_iq_level(&book, q->code[e / 8 % 2], e % 8)] *
                  (float)(2 * code[e / 16] + 1);
        qx += w[e] * v * x[e];
        qq += w[e] * v * v;
    }
    return qq > 0 ? qx / qq : d;
}

static void iq1_m_block(const struct gg_kern_iq1_search *search,
                        const float *x, const float *weight,
                        struct gg_block_iq1_m *b)
{
    struct part p[16];
    float w[256];
    int code[16];
    unsigned sc[4] = { 0 }, half = 0;
    search->weigh(x, weight, sigma2_of(x), w);
    for (int s = 0; s < 16; s++)
        fit_part(search, x + 16 * s, w + 16 * s, 16, 1e-7f, &p[s]);
    float max = largest_scale(p, 16), d = max / 15, inv = 1 / d;
    for (int s = 0; s < 16; s++) {
        unsigned lo = gg_kern_iq_entry(&book, p[s].code[0]);
        unsigned hi = gg_kern_iq_entry(&book, p[s].code[1]);
        unsigned h = lo >> 8 | hi >> 8 << 4;
        b->qs[2 * s] = (uint8_t)lo;
        b->qs[2 * s + 1] = (uint8_t)hi;
        if (max != 0)
            h |= (unsigned)(p[s].down[0] << 3 | p[s].down[1] << 7);
        b->qh[s] = (uint8_t)h;
        code[s] = max != 0 ? scale_code(inv, p[s].scale) : 0;
        sc[s / 4] |= (unsigned)code[s] << 3 * (s % 4);
    }
    if (max != 0)
        half = gg_kern_half_of(iq1_m_refit(x, w, p, code, d) * 1.1125f);
    for (int k = 0; k < 4; k++)
        gg_bytes_store16le(b->scales + 2 * k,
                           (uint16_t)(sc[k] | (half >> 4 * k & 15) << 12));
}

void gg_kern_iq1_s_encode(const struct gg_kern_iq1_search *search,
                          const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_block_iq1_s b;
        iq1_s_block(search, src, weight + i % n_block * 256, &b);
        GG_PUT_BLOCK(b, dst, i);
    }
}

void gg_kern_iq1_m_encode(const struct gg_kern_iq1_search *search,
                          const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_block_iq1_m b;
        iq1_m_block(search, src, weight ? weight + i % n_block * 256 : NULL,
                    &b);
        GG_PUT_BLOCK(b, dst, i);
    }
}

const struct gg_kern_iq1_search gg_kern_iq1_search_c = {
    weigh_elements, best_split_s, best_split_m, best_near
};

void gg_kern_encode_iq1_s_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    gg_kern_iq1_s_encode(&gg_kern_iq1_search_c, src, dst, n_rows, row_len,
                         weight);
}

void gg_kern_encode_iq1_m_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    gg_kern_iq1_m_encode(&gg_kern_iq1_search_c, src, dst, n_rows, row_len,
                         weight);
}
