/* SPDX-License-Identifier: MIT */
/* back_llama3.c - find rope_scaling of type llama3 from its factors
 *
 * Pair i of n rotated pairs has the wavelength 2 pi base^(i / n) tokens. Its
 * factor is 1 below original / high_freq_factor, factor above original /
 * low_freq_factor, and between them 1 / ((1 - s) / factor + s) with
 *
 *     s = (original / wave - low) / (high - low) = a / wave - b
 *
 * (rope.c). Only factor, a and b matter: multiplying original, low and high by
 * one number gives the same function, so low is 1 here. Two pairs in between
 * determine a and b; one pair leaves one of them free, none both. The
 * parameters of published models are tried first.
 */
#include "config.h"
#include "convert/back/back_maker.h"

#include "base/compiler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* original_max_position_embeddings of published models */
static const double lengths[] = { 8192, 4096, 2048, 16384, 32768, 131072 };

/* Numbers of rope_scaling. part: partial rotary factor; the pairs after that
 * part have the factor 1. */
struct llama3 {
    double factor, old, low, high, part;
};

/* A tensor of factors. */
struct factors {
    const float *x;
    size_t n;
    double base;
    double error; /* relative, that a solution may have */
};

static double wave_of(const struct factors *f, size_t i, size_t n)
{
    return 6.283185307179586 * pow(f->base, (double)i / (double)n);
}

/* Do these numbers give the factors? */
static bool gives_factors(const struct factors *f, const struct llama3 *p)
{
    const size_t n = (size_t)((double)f->n * p->part);
    if (!(p->low > 0) || !(p->high > p->low) || !(p->factor > 0) ||
        !(p->old > 0))
        return false;
    for (size_t i = n; i < f->n; i++)
        if (f->x[i] != 1)
            return false;
    for (size_t i = 0; i < n; i++) {
        const double wave = wave_of(f, i, n);
        const double between = (p->old / wave - p->low) / (p->high - p->low);
        const double want = wave < p->old / p->high ? 1
                            : wave > p->old / p->low
                                ? p->factor
                                : 1 / ((1 - between) / p->factor + between);
        if (f->x[i] != (float)want &&
            !(fabs((double)f->x[i] - want) <= f->error * want))
            return false;
    }
    return true;
}

/* Round x to a number of decimal digits. */
static double round_decimal(double x, int digits)
{
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, x);
    return strtod(text, NULL);
}

/* The decimal number of fewest digits that is this float. */
static double shortest_decimal(float x)
{
    for (int digits = 1; digits < 9; digits++)
        if ((float)round_decimal((double)x, digits) == x)
            return round_decimal((double)x, digits);
    return (double)x;
}

/* ---- parameters of published models ---- */

static bool find_published(const struct factors *f, double factor, double part,
                           struct llama3 *p)
{
    static const double highs[] = { 4, 32 };
    for (size_t i = 0; i < GG_LEN(lengths); i++)
        for (size_t k = 0; k < GG_LEN(highs); k++) {
            *p = (struct llama3){ factor, lengths[i], 1, highs[k], part };
            if (gives_factors(f, p))
                return true;
        }
    return false;
}

/* ---- solved ---- */

/* The s for which the factor is x. */
static double s_of(double x, double factor)
{
    return (1 / x - 1 / factor) / (1 - 1 / factor);
}

/* Find high, given low = 1 and this original. The factors of the pairs from
 * first to last are between the extremes; each bounds high, since it was
 * rounded to a float. The decimal number of fewest digits within all bounds is
 * taken. */
static bool set_high(const struct factors *f, size_t n, size_t first,
                     size_t last, double old, struct llama3 *p)
{
    double least = 0, most = (double)INFINITY;
    for (size_t i = first; i <= last; i++) {
        const double rest = old / wave_of(f, i, n) - 1;
        const double x = (double)f->x[i];
        const double below = ((double)nextafterf(f->x[i], 0) + x) / 2,
                     above =
                         ((double)nextafterf(f->x[i], 2 * f->x[i]) + x) / 2;
        least = fmax(least, 1 + rest / s_of(below, p->factor));
        most = fmin(most, 1 + rest / s_of(above, p->factor));
    }
    p->old = old;
    p->low = 1;
    for (int digits = 1; digits <= 15; digits++) {
        p->high = round_decimal((least + most) / 2, digits);
        if (p->high >= fmin(least, most) && p->high <= fmax(least, most) &&
            gives_factors(f, p))
            return true;
    }
    return f->error > 0 && gives_factors(f, p);
}

static bool find_line(const struct factors *f, size_t n, size_t first,
                      size_t last, struct llama3 *p)
{
    const double w = wave_of(f, first, n);
    const double s = s_of((double)f->x[first], p->factor);
    if (last > first) {
        const double w2 = wave_of(f, last, n);
        const double s2 = s_of((double)f->x[last], p->factor);
        const double a = (s - s2) / (1 / w - 1 / w2);
        const double old = a / (a / w - s);
        return set_high(f, n, first, last, round(old), p) ||
               set_high(f, n, first, last, old, p);
    }
    for (size_t i = 0; i < GG_LEN(lengths); i++)
        if (set_high(f, n, first, last, lengths[i], p))
            return true;
    const double next = last + 1 < n ? wave_of(f, last + 1, n) / w : f->base;
    for (double more = next - 1; more > 1e-6; more /= 2)
        if (set_high(f, n, first, last, w * (1 + more / 2), p))
            return true;
    return false;
}

/* No factor is between: any two bounds between the waves do. first: the pair
 * whose factor is not 1. */
static bool find_bounds(const struct factors *f, size_t n, size_t first,
                        struct llama3 *p)
{
    const double begin = first ? wave_of(f, first - 1, n) : 1;
    const double end =
        first < n ? wave_of(f, first, n) : 16 * wave_of(f, n - 1, n);
    p->old = 8192;
    p->high = p->old / (begin * pow(end / begin, 1. / 3));
    p->low = p->old / (begin * pow(end / begin, 2. / 3));
    return gives_factors(f, p);
}

static bool solve_wavelengths(const struct factors *f, double factor,
                              double part, struct llama3 *p)
{
    const size_t n = (size_t)((double)f->n * part);
    size_t first = 0, last;
    *p = (struct llama3){ .factor = factor, .part = part };
    while (first < n && f->x[first] == 1)
        first++;
    for (last = first; last < n && f->x[last] < (float)factor; last++)
        ;
    return last > first ? find_line(f, n, first, last - 1, p)
                        : find_bounds(f, n, first, p);
}

bool gg_back_put_llama3(struct gg_back_maker *m, const float *x, size_t n,
                        double base)
{
    static const double others[] = { 8, 32, 2, 4, 16, 64, 128 };
    static const double parts[] = { 1, 0.5 };
    struct factors f = { x, n, base, 0 };
    struct llama3 p = { 0 };
    double factor[GG_LEN(others) + 1];
    size_t n_factors = 0;
    bool found = false;
    float most = 1;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    if (most > 1) /* the longest wave may be one between */
        factor[n_factors++] = shortest_decimal(most);
    for (size_t i = 0; i < GG_LEN(others); i++)
        if (others[i] >= (double)most)
            factor[n_factors++] = others[i];
    for (unsigned k = 0; k < 2 * GG_LEN(parts); k++) {
        const double part = parts[k % GG_LEN(parts)];
        f.error = k < GG_LEN(parts) ? 0 : 1e-6;
        for (size_t i = 0; i < n_factors && !found; i++)
            found = find_published(&f, factor[i], part, &p);
        for (size_t i = 0; i < n_factors && !found; i++)
            found = solve_wavelengths(&f, factor[i], part, &p);
    }
    if (found)
        gg_back_put(m->root, "rope_scaling",
                    json_pack("{s:s, s:f, s:f, s:f, s:o}", "rope_type",
                              "llama3", "factor", p.factor, "low_freq_factor",
                              p.low, "high_freq_factor", p.high,
                              "original_max_position_embeddings",
                              p.old == floor(p.old) && p.old < 1e15
                                  ? json_integer((json_int_t)p.old)
                                  : json_real(p.old)));
    return found;
}
