/* SPDX-License-Identifier: MIT */
/* check-attn-i16.c - products of attention on integers
 *
 * At every level integers, scales, panels and results of tiles have the bits
 * of the reference. The reference's integers are within half a step of the
 * floats. Rows and columns of the largest length and of one direction show
 * that no sum overflows.
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/aligned.h"
#include "tests/kern/activations.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

enum {
    MAX_N = GG_ATTN_I16_MOST_STEPS,
    ROWS = GG_ATTN_I16_ROWS,
    STEPS = GG_ATTN_I16_STEPS,
    STRIDE = GG_ATTN_I16_STRIDE,
    MAX_NR = 12,
    MAX_MR = 32,
    X_STRIDE = MAX_N + 3,
    I_STRIDE = MAX_N + 32
};
static const int16_t untouched = 0x5a5a;

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static int16_t *make_ints(size_t n)
{
    int16_t *p = activations_must(aligned_new(round_up(n * 2, 64) + 64));
    memset(p, 0x5a, round_up(n * 2, 64) + 64);
    return p;
}

static bool is_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) < INFINITY))
            return false;
    return true;
}

static float largest_int(const float *x, size_t n)
{
    float max = 0;
    for (size_t i = 0; i < n; i++)
        max = fmaxf(max, fabsf(x[i]));
    return max;
}

/* Check rounding: integers times the scale are within half a step of x,
 * padding is 0, and nothing after it is written. */
static bool are_rounded(const float *x, size_t n, const int16_t *i,
                        float scale)
{
    const bool some =
        is_finite(x, n) && largest_int(x, n) >= GG_ATTN_I16_LEAST;
    const size_t end = round_up(n, GG_ATTN_I16_UNIT);
    bool good = some              ? scale > 0
                : is_finite(x, n) ? scale == 0
                                  : scale != scale;
    for (size_t p = 0; p < n; p++)
        good = good && (some ? fabs((double)x[p] - (double)scale * i[p]) <=
                                   (double)scale * (0.5 + 0x1p-8)
                             : i[p] == 0);
    for (size_t p = n; p < end; p++)
        good = good && i[p] == 0;
    return good && i[end] == untouched;
}

static const size_t lengths[] = { 1,  7,   16,  20,  64,  80,   96,
                                  97, 128, 192, 256, 576, MAX_N };

/* ---- rows and columns of scores ---- */

static bool same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) && (a[i] == a[i] || b[i] == b[i]))
            return false;
    return true;
}

/* Are integers and rows no larger than the proof against overflow assumes? */
static bool ints_fit(const int16_t *i, size_t n)
{
    double squares = 0;
    bool good = true;
    for (size_t p = 0; p < n; p++) {
        squares += (double)i[p] * i[p];
        good = good && abs(i[p]) <= GG_ATTN_I16_MOST;
    }
    return good && squares < 0x1p31;
}

static void check_round(const char *level, const struct gg_kern_attn_i16 *k,
                        const struct gg_kern_attn_i16 *ref)
{
    static float x[ROWS * X_STRIDE];
    int16_t *a = make_ints(ROWS * I_STRIDE), *b = make_ints(ROWS * I_STRIDE);
    bool same = true, good = true;
    for (int kind = 0; kind < N_ACTS; kind++)
        for (size_t l = 0; l < GG_LEN(lengths); l++) {
            const size_t n = lengths[l], rows = 1 + rnd_below(ROWS);
            const float size[] = { 1, 0x1p60f, 0x1p-60f };
            float s[ROWS], t[ROWS];
            activations_fill(x, GG_LEN(x), (enum acts)kind);
            for (size_t i = 0; i < GG_LEN(x); i++)
                x[i] *= size[l % 3];
            memset(a, 0x5a, ROWS * I_STRIDE * sizeof *a);
            memset(b, 0x5a, ROWS * I_STRIDE * sizeof *b);
            k->round(x, X_STRIDE, rows, n, a, I_STRIDE, s);
            ref->round(x, X_STRIDE, rows, n, b, I_STRIDE, t);
            same = same && !memcmp(a, b, ROWS * I_STRIDE * sizeof *a) &&
                   same_floats(s, t, rows);
            for (size_t r = 0; r < rows; r++)
                good =
                    good &&
                    are_rounded(x + r * X_STRIDE, n, b + r * I_STRIDE, t[r]) &&
                    ints_fit(b + r * I_STRIDE, n);
        }
    ok(same, "%s: rows are rounded as the reference does", level);
    ok(good, "%s: which is to nearest, and not too long", level);
    aligned_free(a);
    aligned_free(b);
}

/* ---- panels ---- */

/* Step p of row r of a panel with mr rows. */
static int16_t step_at(const int16_t *panel, size_t mr, size_t r, size_t p)
{
    return panel[(p / 2 * mr + r) * 2 + p % 2];
}

static void check_rows(const char *level, const struct gg_kern_attn_i16 *k)
{
    enum { N = 96 };
    int16_t *rows = make_ints(ROWS * (N + 32)), *panel = make_ints(MAX_MR * N);
    bool good = true;
    for (size_t i = 0; i < ROWS * (N + 32); i++)
        rows[i] = (int16_t)rnd_below(65536);
    for (size_t first = 0; first < k->mr; first += ROWS) {
        memset(panel, 0x5a, MAX_MR * N * sizeof *panel);
        k->rows(rows, N + 32, N, panel + 2 * first);
        for (size_t r = 0; r < k->mr; r++)
            for (size_t p = 0; p < N; p++)
                good = good && step_at(panel, k->mr, r, p) ==
                                   (r >= first && r < first + ROWS
                                        ? rows[(r - first) * (N + 32) + p]
                                        : untouched);
    }
    ok(good, "%s: rows go into a panel side by side", level);
    aligned_free(rows);
    aligned_free(panel);
}

/* Compare n values of dv elements at one level with the reference. */
static bool same_values(const struct gg_kern_attn_i16 *k,
                        const struct gg_kern_attn_i16 *ref, const float *x,
                        size_t n, size_t dv)
{
    enum { PANEL = MAX_MR * STEPS };
    const size_t steps = round_up(n, 2);
    int16_t *a = make_ints(dv / k->mr * PANEL),
            *b = make_ints(dv / ref->mr * PANEL);
    float s[STEPS], t[STEPS];
    bool good = true;
    k->values(x, X_STRIDE, n, dv, a, PANEL, s);
    ref->values(x, X_STRIDE, n, dv, b, PANEL, t);
    good = same_floats(s, t, n);
    for (size_t p = 0; p < steps; p++) {
        int16_t row[MAX_N + 1];
        for (size_t i = 0; i < dv; i++) {
            row[i] = step_at(b + i / ref->mr * PANEL, ref->mr, i % ref->mr, p);
            good = good && abs(row[i]) <= GG_ATTN_I16_VALUE &&
                   row[i] ==
                       step_at(a + i / k->mr * PANEL, k->mr, i % k->mr, p) &&
                   (p < n || row[i] == 0);
        }
        row[dv] = untouched;
        good = good && (p >= n || dv % GG_ATTN_I16_UNIT ||
                        are_rounded(x + p * X_STRIDE, dv, row, t[p]));
    }
    good = good && a[steps * k->mr] == untouched;
    aligned_free(a);
    aligned_free(b);
    return good;
}

static void check_values(const char *level, const struct gg_kern_attn_i16 *k,
                         const struct gg_kern_attn_i16 *ref)
{
    static float x[17 * X_STRIDE];
    static const size_t widths[] = { 32, 64, 96, 512 };
    bool good = true;
    for (int kind = 0; kind < N_ACTS; kind++)
        for (size_t w = 0; w < GG_LEN(widths); w++)
            for (size_t n = 1; n <= 17; n += 1 + rnd_below(3)) {
                activations_fill(x, GG_LEN(x), (enum acts)kind);
                good = good && same_values(k, ref, x, n, widths[w]);
            }
    ok(good, "%s: values are rounded as the reference does, to nearest",
       level);
}

/* ---- weights ---- */

enum weights { SOME, ONE, ALL, FALLING, NONE, NO_NUMBER, N_WEIGHTS };

static float make_weight(enum weights kind, size_t i)
{
    switch (kind) {
    case ONE: return i == 5;
    case ALL: return 0.75f;
    case FALLING: return expf(-(float)i);
    case NONE: return 0;
    case NO_NUMBER: return i == 3 ? NAN : 1;
    default: return (float)rnd_below(1000) * (rnd_below(9) ? 1e-3f : 1);
    }
}

static void check_weights(const char *level, const struct gg_kern_attn_i16 *k,
                          const struct gg_kern_attn_i16 *ref)
{
    static float x[MAX_NR * X_STRIDE];
    enum { SIZE = MAX_NR * STRIDE };
    int16_t *a = make_ints(SIZE), *b = make_ints(SIZE);
    bool same = true, good = true;
    for (int kind = 0; kind < N_WEIGHTS; kind++)
        for (size_t n = 1; n <= STEPS; n += 1 + rnd_below(8) * (n < 120)) {
            const size_t cols = 1 + rnd_below(k->nr);
            float s[MAX_NR], t[MAX_NR];
            for (size_t i = 0; i < GG_LEN(x); i++)
                x[i] =
                    make_weight((enum weights)kind, i % X_STRIDE) * 0x1p-13f;
            memset(a, 0x5a, SIZE * sizeof *a);
            memset(b, 0x5a, SIZE * sizeof *b);
            k->weights(x, X_STRIDE, cols, n, a, s);
            ref->weights(x, X_STRIDE, cols, n, b, t);
            same = same && !memcmp(a, b, SIZE * sizeof *a) &&
                   same_floats(s, t, cols);
            for (size_t j = 0; j < cols; j++) {
                int64_t sum = 0;
                for (size_t p = 0; p < n; p++)
                    sum += abs(b[j * STRIDE + p]);
                good = good && sum * GG_ATTN_I16_VALUE <= INT32_MAX &&
                       are_rounded(x + j * X_STRIDE, n, b + j * STRIDE, t[j]);
            }
        }
    ok(same, "%s: weights are rounded as the reference does", level);
    ok(good, "%s: which is to nearest, and adds up to no more than it may",
       level);
    aligned_free(a);
    aligned_free(b);
}

/* ---- tiles ---- */

struct tile_case {
    const struct gg_kern_attn_i16 *k;
    int16_t *w, *x;
    size_t n_pairs;
    float row[MAX_MR], col[MAX_NR];
    bool add;
};

/* Expected element of a tile. *fit: its F32 sum is exact, so that no level may
 * round it. */
static float expected_element(const struct tile_case *t, size_t r, size_t c,
                              bool *fit)
{
    int64_t sum = 0;
    for (size_t p = 0; p < 2 * t->n_pairs; p++)
        sum += step_at(t->w, t->k->mr, r, p) *
               t->x[p / STEPS * t->k->nr * STRIDE + c * STRIDE + p % STEPS];
    *fit = *fit && sum <= INT32_MAX && sum >= INT32_MIN;
    const float s = (float)(int32_t)sum;
    return t->add ? 3 + s * t->col[c] : s * (t->row[r] * t->col[c]);
}

static bool tile_good(const struct tile_case *t, unsigned n_cols)
{
    enum { Y_STRIDE = 37 };
    const float guard = -12345.675f;
    float y[MAX_NR * Y_STRIDE];
    bool good = true;
    for (size_t i = 0; i < GG_LEN(y); i++)
        y[i] = guard;
    for (size_t j = 0; j < n_cols; j++)
        for (size_t r = 0; r < t->k->mr; r++)
            y[1 + j * Y_STRIDE + r] = t->add ? 3 : NAN;
    t->k->tile(t->w, t->x, t->n_pairs, n_cols, t->add ? NULL : t->row, t->col,
               y + 1, Y_STRIDE);
    for (size_t j = 0; j < MAX_NR; j++)
        for (size_t r = 0; r + 1 < Y_STRIDE; r++) {
            const float got = y[1 + j * Y_STRIDE + r];
            const bool in = r < t->k->mr && j < n_cols;
            good =
                good && got == (in ? expected_element(t, r, j, &good) : guard);
        }
    return good && y[0] == guard;
}

/* Fill rows and columns of n steps with equal magnitudes: their products are
 * the largest possible. */
static void fill_alike(struct tile_case *t, enum acts kind, size_t n)
{
    static float x[ROWS * X_STRIDE];
    static int16_t i[ROWS * I_STRIDE];
    const size_t steps = round_up(n, GG_ATTN_I16_UNIT);
    activations_fill(x, GG_LEN(x), kind);
    for (size_t r = 1; r < ROWS; r++)
        for (size_t p = 0; p < n; p++)
            x[r * X_STRIDE + p] = r & 1 ? -x[p] : x[p];
    t->k->round(x, X_STRIDE, ROWS, n, i, I_STRIDE, t->row);
    for (size_t r = 0; r < t->k->mr; r += ROWS)
        t->k->rows(i, I_STRIDE, steps, t->w + 2 * r);
    for (size_t c = 0; c < t->k->nr; c++)
        for (size_t p = 0; p < steps; p++)
            t->x[p / STEPS * t->k->nr * STRIDE + c * STRIDE + p % STEPS] =
                i[c % ROWS * I_STRIDE + p];
    t->n_pairs = steps / 2;
}

static void check_tile(const char *level, const struct gg_kern_attn_i16 *k)
{
    struct tile_case t = { .k = k };
    bool good = true;
    t.w = make_ints(MAX_MR * MAX_N);
    t.x = make_ints(MAX_NR * MAX_N / STEPS * STRIDE);
    for (int kind = 0; kind < ACTS_NOT_FINITE; kind++)
        for (size_t l = 0; l < GG_LEN(lengths); l++) {
            fill_alike(&t, (enum acts)kind, lengths[l]);
            for (size_t i = 0; i < MAX_MR; i++)
                t.row[i] = rnd_f32();
            for (size_t i = 0; i < MAX_NR; i++)
                t.col[i] = rnd_f32();
            for (int add = 0; add < 2; add++) {
                t.add = add;
                good = good && tile_good(&t, 1 + rnd_below(k->nr)) &&
                       tile_good(&t, k->nr);
            }
        }
    ok(good,
       "%s: tiles are what their panels say, rounded in one order; no "
       "sum overflows",
       level);
    aligned_free(t.w);
    aligned_free(t.x);
}

/* The largest values with weights of the largest sum. */
static void check_most(const char *level, const struct gg_kern_attn_i16 *k)
{
    struct tile_case t = { .k = k, .n_pairs = STEPS / 2, .add = true };
    static float x[MAX_NR * STEPS];
    bool good = true;
    t.w = make_ints(MAX_MR * STEPS);
    t.x = make_ints(MAX_NR * STRIDE);
    for (int kind = 0; kind < NO_NUMBER; kind++) {
        for (size_t i = 0; i < GG_LEN(x); i++)
            x[i] = make_weight((enum weights)kind, i % STEPS);
        k->weights(x, STEPS, k->nr, STEPS, t.x, t.col);
        for (size_t i = 0; i < k->mr * STEPS; i++)
            t.w[i] =
                i / 2 % k->mr & 1 ? -GG_ATTN_I16_VALUE : GG_ATTN_I16_VALUE;
        good = good && tile_good(&t, k->nr);
    }
    ok(good, "%s: nor do the largest values by weights", level);
    aligned_free(t.w);
    aligned_free(t.x);
}

/* ---- what makes weights ---- */

/* exp_mul: the exp of exp_sum times a row, also in place, and the sum. */
static void check_exp_mul(const char *level, const struct gg_vec_kern *k)
{
    float x[STEPS], f[STEPS], want[STEPS], y[STEPS + 1];
    bool good = true, bound = true;
    for (size_t n = 0; n <= STEPS; n++) {
        const float max = rnd_f32() * 5;
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = max - fabsf(rnd_f32()) * (n % 2 ? 110 : 3);
            x[i] = rnd_below(9) ? x[i] : -INFINITY;
            f[i] = rnd_f32();
        }
        k->exp_sum(want, x, n, max);
        for (size_t i = 0; i < n; i++) {
            sum += (double)want[i];
            want[i] *= f[i];
        }
        y[n] = 7;
        const float got = k->exp_mul(y, x, f, n, max);
        good = good && same_floats(y, want, n) && y[n] == 7;
        bound = bound && fabs((double)got - sum) <= (double)n * 0x1p-23 * sum;
        if (!n)
            continue;
        x[n - 1] = NAN;
        const float none = k->exp_mul(x, x, f, n, max);
        good = good && none != none && same_floats(x, want, n - 1);
    }
    ok(good, "%s: exp times a row, where a NaN shows", level);
    ok(bound, "%s: and the sum of exp in f32", level);
}

int main(int argc, char **argv)
{
    static struct gg_kern kern, ref;
    struct test_level level[8];
    rnd_seed(argc, argv);
    const unsigned n = test_levels(level);
    gg_kern_init(&ref, 0);
    for (unsigned i = 0; i < n; i++) {
        gg_kern_init(&kern, level[i].mask);
        const struct gg_kern_attn_i16 *k = &kern.attn_i16;
        check_round(level[i].name, k, &ref.attn_i16);
        check_rows(level[i].name, k);
        check_values(level[i].name, k, &ref.attn_i16);
        check_weights(level[i].name, k, &ref.attn_i16);
        check_tile(level[i].name, k);
        check_most(level[i].name, k);
        check_exp_mul(level[i].name, &kern.vec);
    }
    return done_testing();
}
