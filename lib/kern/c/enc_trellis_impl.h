/* SPDX-License-Identifier: MIT */
/* enc_trellis_impl.h - encoders of IQ1_KT to IQ4_KT, for each level
 *
 * The file that includes this defines find_code() first: the code of a cluster
 * whose point, of `group' numbers, has the least weighted squared distance to
 * v. The indices and scales of sub-blocks are kept in the row's blocks, until
 * the row's scale is known.
 */
#include "base/os/os_math.h"
#include "dtype/iq_code.h"
#include "kern/c/enc_fork.h"
#include "kern/c/trellis_near.h"

/* find_code():
 *
 * t     the table; list, n: the codes to look at, in order; n a multiple of 8
 * v, w  numbers and weights of the group
 *
 * Squared distances of eight numbers are added as 0 + 4, 1 + 5, 2 + 6, 3 + 7,
 * then 0 + 2, 1 + 3, then both; of four as 0 + 2, 1 + 3, then both. Of equal
 * ones the code in the first lane wins, its position modulo 8; of equal ones in
 * a lane the first. Lanes of four numbers have the order 0 2 4 6 1 3 5 7.
 */
static unsigned find_code(const struct gg_kern_trellis *t,
                          const uint16_t *list, size_t n, const float *v,
                          const float *w);

static const uint16_t *cluster_of(const struct gg_kern_trellis *t,
                                  const float *v, size_t *n)
{
    unsigned c = 0;
    for (int k = t->group - 1; k >= 0; k--)
        if (t->group == 8)
            c = c << 1 | (v[k] > t->middle[k]);
        else
            c = c * 5 + (v[k] < -48   ? 0u
                         : v[k] < -16 ? 1u
                         : v[k] < 16  ? 2u
                         : v[k] < 48  ? 3u
                                      : 4u);
    *n = t->start[c + 1] - t->start[c];
    if (*n)
        return t->near + t->start[c];
    *n = (size_t)t->n_codes;
    return NULL;
}

/* Codes of 32 elements for the scale d. */
static void find_codes(uint16_t *idx, const struct gg_kern_trellis *t, float d,
                       const float *x, const float *w)
{
    const int group = t->group;
    float id = d != 0 ? 1 / d : 0, v[8];
    for (int j = 0; j < 32; j += group) {
        size_t n;
        for (int k = 0; k < group; k++)
            v[k] = id * x[j + k];
        const uint16_t *list = cluster_of(t, v, &n);
        idx[j / group] =
            d == 0 ? 0 : (uint16_t)find_code(t, list, n, v, w + j);
    }
}

/* Elements of codes, without a scale. */
static void put_points(float q[32], const struct gg_kern_trellis *t,
                       const uint16_t *idx)
{
    for (int j = 0; j < 32; j += t->group) {
        uint32_t state = idx[j / t->group] + t->offset;
        for (int k = 0; k < t->group; k++) {
            int v = gg_dtype_trellis_next(&state);
            q[j + k] = (float)(t->absolute && v < 0 ? -v : v);
        }
    }
}

/* The best scale of codes: scale and score in d and best. */
static struct gg_kern_fork_fit fit_codes(const struct gg_kern_trellis *t,
                                         const uint16_t *idx, const float *x,
                                         const float *w)
{
    struct gg_kern_fork_fit f = { 0, 0, false };
    float qx[8] = { 0 }, q2[8] = { 0 }, q[32];
    put_points(q, t, idx);
    for (int j = 0; j < 32; j++) {
        float qw = q[j] * w[j];
        qx[j % 8] = gg_os_fmaf(qw, x[j], qx[j % 8]);
        q2[j % 8] = gg_os_fmaf(qw, q[j], q2[j % 8]);
    }
    float sqx = gg_kern_fork_hsum(qx), sq2 = gg_kern_fork_hsum(q2);
    if (sq2 > 0) {
        f.d = sqx / sq2;
        f.best = sqx * sqx / sq2;
    }
    return f;
}

/* Codes for the scale d, and their fit. */
static struct gg_kern_fork_fit try_scale(uint16_t *idx,
                                         const struct gg_kern_trellis *t,
                                         float d, const float *x,
                                         const float *w)
{
    find_codes(idx, t, d, x, w);
    return fit_codes(t, idx, x, w);
}

static bool is_zero(const float *x)
{
    return gg_kern_max_abs(x, 32) < 1e-16f;
}

/* Sums of a row for 19 trial scales: integers of sub-blocks' scales, INTEGER
 * of the trial's step and the scale. */
enum { N_TRIALS = 19 };

struct trials {
    struct gg_kern_fork_sums sum[N_TRIALS];
};

/* Add 32 elements x with the points q, for scales ls of trials. */
static void add_trials(struct trials *t, const float ls[N_TRIALS],
                       const float q[32], const float *x, const float *w)
{
    for (int j = 0; j < 32; j++) {
        float wx = w[j] * x[j];
        for (int k = 0; k < N_TRIALS; k++) {
            float v = ls[k] * q[j];
            t->sum[k].qx += wx * v;
            t->sum[k].q2 += w[j] * v * v;
        }
    }
}

/* The scale of the best trial; d: none has a score. */
static float best_trial(const struct trials *t, float d)
{
    struct gg_kern_fork_fit f = { d, 0, false };
    for (int k = 0; k < N_TRIALS; k++)
        gg_kern_fork_try(&f, t->sum[k].qx, t->sum[k].q2);
    return f.d;
}

static void add_row(struct gg_kern_fork_sums *sum, const float q[32], float ls,
                    const float *x, const float *w)
{
    for (int j = 0; j < 32; j++) {
        float v = q[j] * ls, wx = w[j] * x[j];
        sum->qx += wx * v;
        sum->q2 += w[j] * v * v;
    }
}

/* -------------------------------------------------- IQ1_KT and IQ2_KT --- */

/* Layout of the two types that have the scales of IQ4_NL. */
struct nl_type {
    const struct gg_kern_trellis *t;
    size_t size;
    bool twice;   /* try two scales */
    float factor; /* factor of the scale of a row */
    void (*put)(uint8_t *p, const uint16_t idx[32]);
    void (*get)(uint16_t idx[32], const uint8_t *p);
    void (*put_scales)(uint8_t *p, const uint8_t code[8]);
};

/* Codes of 32 elements, and their scale. */
static float find_nl(uint16_t idx[4], const struct nl_type *type,
                     float row_max, const float *x, const float *w)
{
    float max = gg_kern_max_abs(x, 32);
    memset(idx, 0, 4 * sizeof *idx);
    if (max < 1e-16f)
        return 0;
    float s0 = 124 * max / row_max;
    s0 = s0 > 90 ? s0 : 90;
    struct gg_kern_fork_fit best = { 0, 0, false };
    for (int k = 0; k <= type->twice; k++) {
        uint16_t p[4], m[4];
        float d = max / (s0 - 8 * (float)k);
        struct gg_kern_fork_fit fp = try_scale(p, type->t, d, x, w);
        struct gg_kern_fork_fit fm = try_scale(m, type->t, -d, x, w);
        if (k && !(fp.best > best.best || fm.best > best.best))
            continue;
        best = fp.best > fm.best ? fp : fm;
        memcpy(idx, fp.best > fm.best ? p : m, sizeof p);
    }
    return best.d;
}

/* The scale that find_nl() found. */
static float found_scale(const struct nl_type *type, const uint16_t idx[4],
                         const float *x, const float *w)
{
    return is_zero(x) ? 0 : fit_codes(type->t, idx, x, w).d;
}

/* Pass over the row: the best scale of the row. */
static float fit_nl_row(const uint8_t *p, const struct nl_type *type,
                        const struct gg_kern_fork_levels *nl, float max_scale,
                        const float *x, size_t n, const float *weight)
{
    struct trials trials;
    float w[256], q[32], ls[N_TRIALS];
    memset(&trials, 0, sizeof trials);
    for (size_t i = 0; i < n; i += 256, p += type->size) {
        uint16_t idx[32];
        type->get(idx, p);
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        for (int s = 0; s < 8; s++) {
            const float *xs = x + i + 32 * s, *ws = w + 32 * s;
            float scale = found_scale(type, idx + 4 * s, xs, ws);
            for (int k = 0; k < N_TRIALS; k++) {
                float id = ((float)(k - 9) - 127.0f) / max_scale;
                ls[k] = nl->v[gg_kern_fork_nearest(nl, nl->v, id * scale)];
            }
            put_points(q, type->t, idx + 4 * s);
            add_trials(&trials, ls, q, xs, ws);
        }
    }
    return best_trial(&trials, max_scale / -127.0f);
}

/* Final codes of a block: those found first, or those for the rounded scale.
 */
static void finish_nl(uint8_t *p, struct gg_kern_fork_sums *sum,
                      const struct nl_type *type,
                      const struct gg_kern_fork_levels *nl, float d,
                      const float *x, const float *w)
{
    uint16_t idx[32];
    uint8_t code[8];
    float id = d != 0 ? 1 / d : 0;
    type->get(idx, p);
    for (int s = 0; s < 8; s++, x += 32, w += 32) {
        float scale = found_scale(type, idx + 4 * s, x, w), q[2][32];
        uint16_t next[4];
        code[s] = (uint8_t)gg_kern_fork_nearest(nl, nl->v, id * scale);
        float ls = nl->v[code[s]], dl = d * ls;
        find_codes(next, type->t, dl, x, w);
        put_points(q[0], type->t, idx + 4 * s);
        put_points(q[1], type->t, next);
        int old = gg_kern_fork_error(q[0], dl, x, w) <
                  gg_kern_fork_error(q[1], dl, x, w);
        if (!old)
            memcpy(idx + 4 * s, next, sizeof next);
        add_row(sum, q[!old], ls, x, w);
    }
    memset(p, 0, type->size);
    type->put(p, idx);
    type->put_scales(p, code);
}

static void row_nl(uint8_t *dst, const struct nl_type *type,
                   const struct gg_kern_fork_levels *nl, const float *x,
                   size_t n, const float *weight)
{
    float row_max = gg_kern_max_abs(x, n), max_scale = 0, w[256];
    struct gg_kern_fork_sums sum = { 0, 0 };
    uint8_t *p = dst + 4;
    for (size_t i = 0; i < n; i += 256, p += type->size) {
        uint16_t idx[32];
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        for (int s = 0; s < 8; s++) {
            float scale = find_nl(idx + 4 * s, type, row_max, x + i + 32 * s,
                                  w + 32 * s);
            if (fabsf(scale) > fabsf(max_scale))
                max_scale = scale;
        }
        memset(p, 0, type->size);
        type->put(p, idx);
    }
    if (max_scale == 0) {
        memset(dst, 0, (size_t)(p - dst));
        return;
    }
    p = dst + 4;
    float d = fit_nl_row(p, type, nl, max_scale, x, n, weight);
    for (size_t i = 0; i < n; i += 256, p += type->size) {
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        finish_nl(p, &sum, type, nl, d, x + i, w);
    }
    if (sum.q2 > 0)
        d = sum.qx / sum.q2;
    gg_kern_fork_store(dst, d * type->factor);
}

static void encode_nl(const struct nl_type *type, const float *src, void *dst,
                      size_t n_rows, size_t row_len, const float *weight)
{
    struct gg_kern_fork_levels nl;
    size_t size = 4 + row_len / 256 * type->size;
    gg_kern_fork_levels_4(&nl);
    for (size_t r = 0; r < n_rows; r++)
        row_nl((uint8_t *)dst + r * size, type, &nl, src + r * row_len,
               row_len, weight);
}

/* IQ1_KT: codes of 13 bits, 8 bits at 8, four in nibbles at 40, and the highest
 * above the scales at 0. */
static void put_1(uint8_t *p, const uint16_t idx[32])
{
    for (int i = 0; i < 32; i++) {
        p[8 + i] = (uint8_t)idx[i];
        p[40 + i % 16] |= (uint8_t)((idx[i] >> 8 & 15) << 4 * (i / 16));
        p[i / 4] |= (uint8_t)(idx[i] >> 12 << (4 + i % 4));
    }
}

static void get_1(uint16_t idx[32], const uint8_t *p)
{
    for (int i = 0; i < 32; i++)
        idx[i] =
            (uint16_t)(p[8 + i] | (p[40 + i % 16] >> 4 * (i / 16) & 15) << 8 |
                       (p[i / 4] >> (4 + i % 4) & 1) << 12);
}

static void put_scales_1(uint8_t *p, const uint8_t code[8])
{
    for (int s = 0; s < 8; s++)
        p[s] |= code[s];
}

static void put_words(uint8_t *p, const uint16_t idx[32])
{
    for (int i = 0; i < 32; i++)
        gg_bytes_store16le(p + 4 + 2 * i, idx[i]);
}

static void get_words(uint16_t idx[32], const uint8_t *p)
{
    for (int i = 0; i < 32; i++)
        idx[i] = gg_bytes_load16le(p + 4 + 2 * i);
}

static void put_scales(uint8_t *p, const uint8_t code[8])
{
    for (int s = 0; s < 8; s++)
        p[s % 4] |= (uint8_t)(code[s] << 4 * (s / 4));
}

static const struct nl_type iq1_kt = {
    &gg_kern_trellis_1, 56, true, 1.07f, put_1, get_1, put_scales_1,
};

static const struct nl_type iq2_kt = {
    &gg_kern_trellis_2, 68, false, 1, put_words, get_words, put_scales,
};

/* -------------------------------------------------------------- IQ3_KT --- */

enum { SIZE_3 = 100 };

static float find_3(uint16_t idx[4], float row_max, const float *x,
                    const float *w)
{
    struct gg_kern_fork_fit best = { 0, 0, false };
    float max = gg_kern_max_abs(x, 32);
    memset(idx, 0, 4 * sizeof *idx);
    if (max < 1e-16f)
        return 0;
    float s0 = 123 * max / row_max;
    s0 = s0 > 84 ? s0 : 84;
    for (int step = -3; step <= 3; step++) {
        uint16_t next[4];
        struct gg_kern_fork_fit f = try_scale(
            next, &gg_kern_trellis_3, max / (s0 + 8 * (float)step), x, w);
        if (f.best > best.best) {
            best = f;
            memcpy(idx, next, sizeof next);
        }
    }
    return best.d;
}

static float scale_3(const uint16_t idx[4], const float *x, const float *w)
{
    return is_zero(x) ? 0 : fit_codes(&gg_kern_trellis_3, idx, x, w).d;
}

static float fit_row_3(const uint8_t *p, float max_scale, const float *x,
                       size_t n, const float *weight)
{
    struct trials trials;
    float w[256], a[256], q[32], ls[N_TRIALS];
    memset(&trials, 0, sizeof trials);
    for (size_t i = 0; i < n; i += 256, p += SIZE_3) {
        uint16_t idx[32];
        get_words(idx, p);
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        for (int j = 0; j < 256; j++)
            a[j] = fabsf(x[i + (size_t)j]);
        for (int s = 0; s < 8; s++) {
            float scale = scale_3(idx + 4 * s, a + 32 * s, w + 32 * s);
            for (int k = 0; k < N_TRIALS; k++) {
                float id = ((float)(k - 9) * 0.2f + 15) / max_scale;
                ls[k] =
                    (float)gg_kern_clamp(gg_kern_nearest(id * scale), 0, 15);
            }
            put_points(q, &gg_kern_trellis_3, idx + 4 * s);
            add_trials(&trials, ls, q, a + 32 * s, w + 32 * s);
        }
    }
    return best_trial(&trials, max_scale / 15);
}

static void finish_3(uint8_t *p, struct gg_kern_fork_sums *sum, float d,
                     const float *x, const float *w)
{
    uint16_t idx[32];
    uint8_t code[8];
    float id = d != 0 ? 1 / d : 0, q[32], a[32];
    get_words(idx, p);
    memset(p, 0, SIZE_3);
    for (int s = 0; s < 8; s++, x += 32, w += 32) {
        for (int j = 0; j < 32; j++) {
            a[j] = fabsf(x[j]);
            p[68 + j] |= (uint8_t)((x[j] < 0) << s);
        }
        float scale = scale_3(idx + 4 * s, a, w);
        code[s] = (uint8_t)gg_kern_clamp(gg_kern_nearest(id * scale), 0, 15);
        find_codes(idx + 4 * s, &gg_kern_trellis_3, d * (float)code[s], a, w);
        put_points(q, &gg_kern_trellis_3, idx + 4 * s);
        add_row(sum, q, (float)code[s], a, w);
    }
    put_words(p, idx);
    put_scales(p, code);
}

static void row_3(uint8_t *dst, const float *x, size_t n, const float *weight)
{
    float row_max = gg_kern_max_abs(x, n), max_scale = 0, w[256], a[32];
    struct gg_kern_fork_sums sum = { 0, 0 };
    uint8_t *p = dst + 4;
    for (size_t i = 0; i < n; i += 256, p += SIZE_3) {
        uint16_t idx[32];
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        for (size_t s = 0; s < 8; s++) {
            for (size_t j = 0; j < 32; j++)
                a[j] = fabsf(x[i + 32 * s + j]);
            float scale = find_3(idx + 4 * s, row_max, a, w + 32 * s);
            max_scale = scale > max_scale ? scale : max_scale;
        }
        put_words(p, idx);
    }
    if (max_scale == 0) {
        memset(dst, 0, (size_t)(p - dst));
        return;
    }
    p = dst + 4;
    float d = fit_row_3(p, max_scale, x, n, weight);
    for (size_t i = 0; i < n; i += 256, p += SIZE_3) {
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        finish_3(p, &sum, d, x + i, w);
    }
    gg_kern_fork_store(dst, sum.q2 > 0 ? sum.qx / sum.q2 : d);
}

/* -------------------------------------------------------------- IQ4_KT --- */

enum { SIZE_4 = 128 };

static const struct gg_kern_trellis *table_4(bool other)
{
    return other ? &gg_kern_trellis_4_other : &gg_kern_trellis_4;
}

/* Try scales about the largest number's, of both signs. */
static void sweep_4(struct gg_kern_fork_fit *best, bool other, float max,
                    float s0, const float *x, const float *w)
{
    for (int step = -2; step <= 2; step++)
        for (int sign = 1; sign >= -1; sign -= 2) {
            uint16_t idx[8];
            float d = (float)sign * (max / (8 * (float)step + s0));
            struct gg_kern_fork_fit f =
                try_scale(idx, table_4(other), d, x, w);
            if (f.best > best->best) {
                *best = f;
                best->shifted = other;
            }
        }
}

static struct gg_kern_fork_fit find_4(float row_max, const float *x,
                                      const float *w)
{
    struct gg_kern_fork_fit best = { 0, 0, false };
    float max = gg_kern_max_abs(x, 32);
    uint16_t idx[8];
    if (max < 1e-16f)
        return best;
    float s0 = 124 * max / row_max;
    s0 = s0 > 90 ? s0 : 90;
    sweep_4(&best, false, max, s0, x, w);
    struct gg_kern_fork_fit f = try_scale(idx, table_4(true), best.d, x, w);
    if (f.best > best.best) {
        best.d = f.d;
        best.shifted = true;
    }
    sweep_4(&best, true, max, s0, x, w);
    return best;
}

static void finish_4(uint8_t *p, struct gg_kern_fork_sums *sum, float d,
                     const float *x, const float *w)
{
    float scale[8], id = 1 / d, q[32];
    uint8_t others = p[32];
    for (int s = 0; s < 8; s++)
        scale[s] = gg_kern_fork_load(p + 4 * s);
    memset(p, 0, SIZE_4);
    for (int s = 0; s < 8; s++, x += 32, w += 32) {
        bool other = others >> s & 1;
        int l = gg_kern_nearest(id * scale[s]);
        uint16_t idx[8];
        l = l < 63 ? l : 63;
        find_codes(idx, table_4(other), d * (float)l, x, w);
        put_points(q, table_4(other), idx);
        add_row(sum, q, (float)l, x, w);
        uint32_t word = ((uint32_t)(l + 64) << 1 | other) & 255;
        for (int g = 0; g < 8; g++) {
            int k = 8 * s + g;
            p[32 + k] = (uint8_t)idx[g];
            p[96 + k % 32] |= (uint8_t)((idx[g] >> 8 & 15) << 4 * (k / 32));
            word |= (uint32_t)idx[g] >> 12 << (8 + 3 * g);
        }
        gg_bytes_store32le(p + 4 * s, word);
    }
}

static void row_4(uint8_t *dst, const float *x, size_t n, const float *weight)
{
    float row_max = gg_kern_max_abs(x, n), max_scale = 0, w[256];
    struct gg_kern_fork_sums sum = { 0, 0 };
    uint8_t *p = dst + 4;
    for (size_t i = 0; i < n; i += 256, p += SIZE_4) {
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        p[32] = 0;
        for (int s = 0; s < 8; s++) {
            struct gg_kern_fork_fit f =
                find_4(row_max, x + i + 32 * s, w + 32 * s);
            gg_kern_fork_store(p + 4 * s, f.d);
            p[32] |= (uint8_t)(f.shifted << s);
            if (fabsf(f.d) > fabsf(max_scale))
                max_scale = f.d;
        }
    }
    if (max_scale == 0) {
        memset(dst, 0, (size_t)(p - dst));
        return;
    }
    p = dst + 4;
    float d = -max_scale / 64;
    for (size_t i = 0; i < n; i += 256, p += SIZE_4) {
        gg_kern_fork_weigh_trellis(w, x + i, weight ? weight + i : NULL);
        finish_4(p, &sum, d, x + i, w);
    }
    gg_kern_fork_store(dst, sum.q2 > 0 ? sum.qx / sum.q2 : d);
}

/* Define the encoders of a level. */
#define GG_TRELLIS_ENCODERS(LEVEL)                                            \
    void gg_kern_encode_iq1_kt_##LEVEL(const float *src, void *dst,           \
                                       size_t n_rows, size_t row_len,         \
                                       const float *weight)                   \
    {                                                                         \
        encode_nl(&iq1_kt, src, dst, n_rows, row_len, weight);                \
    }                                                                         \
    void gg_kern_encode_iq2_kt_##LEVEL(const float *src, void *dst,           \
                                       size_t n_rows, size_t row_len,         \
                                       const float *weight)                   \
    {                                                                         \
        encode_nl(&iq2_kt, src, dst, n_rows, row_len, weight);                \
    }                                                                         \
    void gg_kern_encode_iq3_kt_##LEVEL(const float *src, void *dst,           \
                                       size_t n_rows, size_t row_len,         \
                                       const float *weight)                   \
    {                                                                         \
        for (size_t r = 0; r < n_rows; r++)                                   \
            row_3((uint8_t *)dst + r * (4 + row_len / 256 * SIZE_3),          \
                  src + r * row_len, row_len, weight);                        \
    }                                                                         \
    void gg_kern_encode_iq4_kt_##LEVEL(const float *src, void *dst,           \
                                       size_t n_rows, size_t row_len,         \
                                       const float *weight)                   \
    {                                                                         \
        for (size_t r = 0; r < n_rows; r++)                                   \
            row_4((uint8_t *)dst + r * (4 + row_len / 256 * SIZE_4),          \
                  src + r * row_len, row_len, weight);                        \
    }
