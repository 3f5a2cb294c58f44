/* SPDX-License-Identifier: MIT */
/* check-llama3-rope.c - rope_scaling of type llama3 is recovered from its
 * factors
 *
 * Factors are computed by transformers' definition (modeling_rope_utils.py,
 * _compute_llama3_parameters), for head sizes and parameters of published
 * models and for random ones. The recovered parameters must give the same
 * factors, bit by bit.
 */
#include "config.h"
#include "base/compiler.h"
#include "convert/back/back_maker.h"
#include "tests/tap.h"

#include <math.h>
#include <stdio.h>

struct numbers {
    double factor, low, high, old;
};

/* Factors of n pairs, by which frequencies are divided. */
static void compute_factors(const struct numbers *p, double base, size_t n,
                            float *out)
{
    for (size_t i = 0; i < n; i++) {
        const double wave =
            6.283185307179586 * pow(base, (double)i / (double)n);
        const double smooth = (p->old / wave - p->low) / (p->high - p->low);
        out[i] = wave < p->old / p->high ? 1
                 : wave > p->old / p->low
                     ? (float)p->factor
                     : (float)(1 / ((1 - smooth) / p->factor + smooth));
    }
}

/* Are parameters recovered that give the same factors? */
static bool comes_back(const struct numbers *p, double base, size_t n)
{
    float want[128], got[128];
    struct gg_back_maker m = { .root = json_object() };
    compute_factors(p, base, n, want);
    bool same = gg_back_put_llama3(&m, want, n, base);
    const json_t *s = json_object_get(m.root, "rope_scaling");
    const struct numbers q = {
        json_number_value(json_object_get(s, "factor")),
        json_number_value(json_object_get(s, "low_freq_factor")),
        json_number_value(json_object_get(s, "high_freq_factor")),
        json_number_value(
            json_object_get(s, "original_max_position_embeddings")),
    };
    if (same)
        compute_factors(&q, base, n, got);
    for (size_t i = 0; i < n && same; i++)
        same = want[i] == got[i];
    if (!same)
        printf("# %zu pairs, base %g, %g %g %g %g: %g %g %g %g\n", n, base,
               p->factor, p->low, p->high, p->old, q.factor, q.low, q.high,
               q.old);
    json_decref(m.root);
    return same;
}

static const double bases[] = { 1e4, 5e5, 1e6 };

static void check_known(void)
{
    static const struct numbers rows[] = {
        { 8, 1, 4, 8192 },     { 32, 1, 4, 8192 },  { 4, 1, 4, 128 },
        { 10, 1, 4, 10000 },   { 2.7, 1, 4, 8192 }, { 8, 2, 6, 8192 },
        { 5, 1, 1.1, 8192 },   { 8, 1, 32, 2048 },  { 16, 1, 4, 262144 },
        { 8, 0.5, 3.25, 512 }, { 40, 4, 4.5, 4096 }
    };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        unsigned n_wrong = 0;
        for (size_t n = 4; n <= 128; n *= 2)
            for (size_t b = 0; b < GG_LEN(bases); b++)
                n_wrong += !comes_back(&rows[i], bases[b], n);
        ok(!n_wrong, "factor %g, %g to %g, of %g: heads of 8 to 256",
           rows[i].factor, rows[i].low, rows[i].high, rows[i].old);
    }
}

/* Random decimal numbers like those that people write. */
static void check_drawn(void)
{
    enum { N = 500 };
    unsigned n_wrong = 0;
    for (unsigned i = 0; i < N; i++) {
        struct numbers p = { .low = 1 };
        p.factor = (double)(11 + rnd_below(600)) / 10;
        p.high = 1 + (double)(1 + rnd_below(80)) / 10;
        p.old = (double)(64 + rnd_below(40000));
        n_wrong += !comes_back(&p, bases[rnd_below(GG_LEN(bases))],
                               (size_t)4 << rnd_below(5));
    }
    ok(!n_wrong, "%u of %u drawn ones", N - n_wrong, N);
}

static void check_refused(void)
{
    static const float odd[][4] = {
        { 1, 2, 1, 2 }, { 8, 1, 1, 1 }, { 1, 5, 3, 8 }, { 1, 1, 0.5f, 0.5f }
    };
    for (size_t i = 0; i < GG_LEN(odd); i++) {
        struct gg_back_maker m = { .root = json_object() };
        ok(!gg_back_put_llama3(&m, odd[i], 4, 1e4) &&
               !json_object_size(m.root),
           "factors that it does not give: %g %g %g %g", (double)odd[i][0],
           (double)odd[i][1], (double)odd[i][2], (double)odd[i][3]);
        json_decref(m.root);
    }
}

int main(void)
{
    check_known();
    check_drawn();
    check_refused();
    return done_testing();
}
