/* SPDX-License-Identifier: MIT */
/* check-recur.c - kernels of recurrences at every level of this machine
 *
 * They are compared with the C reference if every sum is exact, with double
 * precision within the bound of any order of summation, and with themselves,
 * with rows and tokens in parts. A seed as argument gives other data.
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { MAX_N = 130, ROWS = 11, TOK = 5, GAP = 3 };

static const size_t lengths[] = { 1,  2,  7,  8,  9,  15, 16,  17,
                                  31, 32, 33, 63, 64, 65, 128, MAX_N };

static const char *level_name;
static const float guard = -12345.675f;

/* Inputs of all kernels, some of them as rows of n, and their outputs. */
static struct {
    float token[5][TOK * MAX_N], number[3][TOK], row[TOK * (MAX_N + GAP)];
    float step[TOK * ROWS], x[TOK * ROWS], a[ROWS * MAX_N];
    float from[MAX_N * MAX_N];
} in;
struct out {
    float s[MAX_N * MAX_N + 1], y[TOK * (MAX_N + GAP) + 1];
};
static struct out want, got, cut;

/* Fill with small integers, whose sums are exact, or with numbers below size.
 */
static void fill_numbers(float *x, size_t n, bool exact, double size)
{
    for (size_t i = 0; i < n; i++)
        x[i] = exact ? (float)rnd_below(3) - 1 : rnd_f32() * (float)size;
}

static void fill_all(size_t n, bool exact)
{
    const double size = 1 / sqrt((double)n);
    for (size_t i = 0; i < GG_LEN(in.token); i++)
        fill_numbers(in.token[i], TOK * n, exact, size);
    for (size_t i = 0; i < GG_LEN(in.number); i++)
        fill_numbers(in.number[i], TOK, exact, 1);
    fill_numbers(in.row, GG_LEN(in.row), exact, 1);
    fill_numbers(in.x, TOK * ROWS, exact, 1);
    fill_numbers(in.from, GG_LEN(in.from), exact, 1);
    for (size_t i = 0; i < TOK * ROWS; i++)
        in.step[i] = exact ? 0 : fabsf(rnd_f32());
    for (size_t i = 0; i < ROWS * n; i++)
        in.a[i] = -fabsf(rnd_f32()) * 4;
}

/* ---- rows [first, first + rows) and tokens [tok, tok + n_tok) of one ---- */

typedef void run_fn(const struct gg_vec_kern *k, size_t n, size_t first,
                    size_t rows, size_t tok, size_t n_tok, struct out *to);

static void scan_rows(const struct gg_vec_kern *k, bool own, size_t n,
                      size_t first, size_t rows, size_t tok, size_t n_tok,
                      struct out *to)
{
    const struct gg_vec_scan p = {
        .n = n,
        .n_rows = rows,
        .n_tok = n_tok,
        .from = (tok ? to->s : in.from) + first * n,
        .s = to->s + first * n,
        .a = own ? in.a + first * n : NULL,
        .a_stride = n,
        .step = in.step + tok * ROWS + first,
        .x = in.x + tok * ROWS + first,
        .stride = ROWS,
        .decay = in.number[0] + tok,
        .b = in.token[0] + tok * n,
        .b_stride = n,
        .c = in.token[1] + tok * n,
        .c_stride = n,
        .y = to->y + tok * (MAX_N + GAP) + first,
        .y_stride = MAX_N + GAP,
    };
    k->scan(&p);
}

static void scan_one(const struct gg_vec_kern *k, size_t n, size_t first,
                     size_t rows, size_t tok, size_t n_tok, struct out *to)
{
    scan_rows(k, false, n, first, rows, tok, n_tok, to);
}

static void scan_own(const struct gg_vec_kern *k, size_t n, size_t first,
                     size_t rows, size_t tok, size_t n_tok, struct out *to)
{
    scan_rows(k, true, n, first, rows, tok, n_tok, to);
}

static void wkv7(const struct gg_vec_kern *k, size_t n, size_t first,
                 size_t rows, size_t tok, size_t n_tok, struct out *to)
{
    const struct gg_vec_wkv7 p = {
        .n = n,
        .n_rows = rows,
        .n_tok = n_tok,
        .from = (tok ? to->s : in.from) + first * n,
        .s = to->s + first * n,
        .w = in.token[0] + tok * n,
        .k = in.token[1] + tok * n,
        .a = in.token[2] + tok * n,
        .b = in.token[3] + tok * n,
        .wr = in.token[4] + tok * n,
        .kr = in.number[0] + tok,
        .br = in.number[1] + tok,
        .v = in.row + tok * (MAX_N + GAP) + first,
        .v_stride = MAX_N + GAP,
        .y = to->y + tok * (MAX_N + GAP) + first,
        .y_stride = MAX_N + GAP,
    };
    k->wkv7(&p);
}

/* All rows of a head: they are independent. */
static void wkv6(const struct gg_vec_kern *k, bool own, size_t n, size_t tok,
                 size_t n_tok, struct out *to)
{
    const struct gg_vec_wkv6 p = {
        .n = n,
        .n_tok = n_tok,
        .from = tok ? to->s : in.from,
        .s = to->s,
        .r = in.token[0] + tok * n,
        .k = in.token[1] + tok * n,
        .w = in.token[2] + tok * n,
        .own = own ? in.number[0] + tok : NULL,
        .v = in.row + tok * (MAX_N + GAP),
        .v_stride = MAX_N + GAP,
        .y = to->y + tok * (MAX_N + GAP),
        .y_stride = MAX_N + GAP,
    };
    k->wkv6(&p);
}

static void wkv6_own(const struct gg_vec_kern *k, size_t n, size_t first,
                     size_t rows, size_t tok, size_t n_tok, struct out *to)
{
    (void)rows;
    if (!first)
        wkv6(k, true, n, tok, n_tok, to);
}

static void wkv6_late(const struct gg_vec_kern *k, size_t n, size_t first,
                      size_t rows, size_t tok, size_t n_tok, struct out *to)
{
    (void)rows;
    if (!first)
        wkv6(k, false, n, tok, n_tok, to);
}

/* ---- the same in double, with the sizes of all terms ---- */

struct num {
    double v, size;
};

static struct num add_product(struct num s, struct num a, struct num b)
{
    return (struct num){ s.v + a.v * b.v, s.size + a.size * b.size };
}

static struct num num_of(float x)
{
    return (struct num){ (double)x, fabs((double)x) };
}

static const struct num nothing;
static struct num ref_s[MAX_N * MAX_N], ref_y[TOK * (MAX_N + GAP)];

typedef void ref_fn(size_t n, size_t t);

static void ref_scan(size_t n, size_t t, bool own)
{
    for (size_t r = 0; r < ROWS; r++) {
        struct num y = nothing, x = num_of(in.x[t * ROWS + r]);
        const double step = (double)in.step[t * ROWS + r];
        for (size_t i = 0; i < n; i++) {
            struct num *s = &ref_s[r * n + i], decay = num_of(in.number[0][t]);
            if (own) /* the rounded product, as in the kernel */
                decay = num_of((float)exp(
                    (double)(float)(step * (double)in.a[r * n + i])));
            *s = add_product(add_product(nothing, *s, decay),
                             num_of(in.token[0][t * n + i]), x);
            y = add_product(y, *s, num_of(in.token[1][t * n + i]));
        }
        ref_y[t * (MAX_N + GAP) + r] = y;
    }
}

static void ref_scan_one(size_t n, size_t t)
{
    ref_scan(n, t, false);
}

static void ref_scan_own(size_t n, size_t t)
{
    ref_scan(n, t, true);
}

static void ref_wkv7(size_t n, size_t t)
{
    for (size_t r = 0; r < ROWS; r++) {
        struct num e = nothing, y = nothing;
        const struct num v = num_of(in.row[t * (MAX_N + GAP) + r]);
        struct num *s = &ref_s[r * n];
        for (size_t i = 0; i < n; i++) {
            e = add_product(e, s[i], num_of(in.token[2][t * n + i]));
            y = add_product(y, s[i], num_of(in.token[4][t * n + i]));
        }
        for (size_t i = 0; i < n; i++) {
            s[i] = add_product(nothing, s[i], num_of(in.token[0][t * n + i]));
            s[i] = add_product(s[i], v, num_of(in.token[1][t * n + i]));
            s[i] = add_product(s[i], e, num_of(in.token[3][t * n + i]));
        }
        y = add_product(y, v, num_of(in.number[0][t]));
        ref_y[t * (MAX_N + GAP) + r] =
            add_product(y, e, num_of(in.number[1][t]));
    }
}

static void ref_wkv6(size_t n, size_t t, bool own)
{
    struct num *y = &ref_y[t * (MAX_N + GAP)];
    for (size_t j = 0; j < n; j++) {
        const struct num v = num_of(in.row[t * (MAX_N + GAP) + j]);
        y[j] =
            own ? add_product(nothing, num_of(in.number[0][t]), v) : nothing;
        for (size_t i = 0; i < n; i++) {
            struct num *s = &ref_s[i * n + j], was = *s;
            *s = add_product(nothing, was, num_of(in.token[2][t * n + i]));
            *s = add_product(*s, num_of(in.token[1][t * n + i]), v);
            y[j] = add_product(y[j], own ? was : *s,
                               num_of(in.token[0][t * n + i]));
        }
    }
}

static void ref_wkv6_own(size_t n, size_t t)
{
    ref_wkv6(n, t, true);
}

static void ref_wkv6_late(size_t n, size_t t)
{
    ref_wkv6(n, t, false);
}

/* ---- comparing ---- */

static double excess_of(float x, struct num n, double most)
{
    return fabs((double)x - n.v) / (most * n.size + 1e-37);
}

/* Distance of the result from double precision, as a part of the bound for any
 * order of summation. */
static double distance(ref_fn *ref, size_t n, size_t rows)
{
    double worst = 0;
    for (size_t i = 0; i < rows * n; i++)
        ref_s[i] = num_of(in.from[i]);
    for (size_t t = 0; t < TOK; t++) {
        const double most = (double)((t + 1) * (n + 6)) * (double)FLT_EPSILON;
        ref(n, t);
        for (size_t r = 0; r < rows; r++)
            worst = fmax(worst, excess_of(got.y[t * (MAX_N + GAP) + r],
                                          ref_y[t * (MAX_N + GAP) + r], most));
    }
    for (size_t i = 0; i < rows * n; i++)
        worst = fmax(worst,
                     excess_of(got.s[i], ref_s[i],
                               (double)(TOK * (n + 6)) * (double)FLT_EPSILON));
    return worst;
}

static bool same_outputs(const struct out *a, const struct out *b, size_t n,
                         size_t rows)
{
    bool same = true;
    for (size_t i = 0; i < rows * n; i++)
        same = same && a->s[i] == b->s[i];
    for (size_t t = 0; t < TOK; t++)
        for (size_t r = 0; r < rows; r++)
            same = same &&
                   a->y[t * (MAX_N + GAP) + r] == b->y[t * (MAX_N + GAP) + r];
    return same;
}

static void check_function(const struct gg_vec_kern *k, const char *name,
                           run_fn *run, ref_fn *ref, bool whole)
{
    struct gg_kern c; /* the reference */
    bool exact = true, same = true, guarded = true;
    double worst = 0;
    gg_vec_kern_init(&c.vec, 0);
    for (size_t l = 0; l < GG_LEN(lengths); l++) {
        const size_t n = lengths[l], rows = whole ? n : ROWS;
        fill_all(n, true);
        run(&c.vec, n, 0, rows, 0, TOK, &want);
        run(k, n, 0, rows, 0, TOK, &got);
        exact = exact && same_outputs(&got, &want, n, rows);
        fill_all(n, false);
        got.s[rows * n] = got.y[rows] = guard;
        run(k, n, 0, rows, 0, TOK, &got);
        guarded = guarded && got.s[rows * n] == guard && got.y[rows] == guard;
        worst = fmax(worst, distance(ref, n, rows));
        for (size_t first = 0; first < rows; first += first ? 5 : 1) {
            const size_t some = first ? GG_MIN(rows - first, (size_t)5) : 1;
            run(k, n, first, some, 0, 2, &cut);
            run(k, n, first, some, 2, TOK - 2, &cut);
        }
        same = same && same_outputs(&cut, &got, n, rows);
    }
    ok(exact && guarded, "%s: %s of exact inputs is equal", level_name, name);
    ok(worst <= 1, "%s: %s within %.2f of the bound of any order", level_name,
       name, worst);
    ok(same, "%s: %s's bits do not depend on parts", level_name, name);
}

static void check_level(const struct gg_kern *k, const char *level)
{
    level_name = level;
    check_function(&k->vec, "scan", scan_one, ref_scan_one, false);
    check_function(&k->vec, "scan with decays of each", scan_own, ref_scan_own,
                   false);
    check_function(&k->vec, "wkv7", wkv7, ref_wkv7, false);
    check_function(&k->vec, "wkv6", wkv6_own, ref_wkv6_own, true);
    check_function(&k->vec, "wkv6 after the decay", wkv6_late, ref_wkv6_late,
                   true);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    test_each_level(check_level);
    return done_testing();
}
