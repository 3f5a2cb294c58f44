/* SPDX-License-Identifier: MIT */
/* check-collect-totals.c - totals of importance data do not depend on the
 * order of additions */
#include "config.h"
#include "base/compiler.h"
#include "eval/collect_int.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>

/* Numbers added in any order and in any parts have a sum with the same digits.
 * It is close to the sum in long double. */
static void check_totals(void)
{
    enum { N_NUMBERS = 1000, N_TOTALS = 4 };
    static double x[N_NUMBERS];
    static const struct {
        double factor, spread;
        const char *what;
    } cases[] = {
        { 1, 0, "near 1" },
        { 1e-300, 0, "near the smallest" },
        { 1e300, 0, "near the largest" },
        { 1, 40, "of 24 powers of ten" },
    };
    for (size_t k = 0; k < GG_LEN(cases); k++) {
        uint64_t high[N_TOTALS] = { 0 }, low[N_TOTALS] = { 0 };
        int8_t place[N_TOTALS];
        struct gg_collect_total t = { high, low, place };
        long double sum = 0;
        double most = 0;
        memset(place, GG_COLLECT_NO_PLACE, sizeof place);
        for (int i = 0; i < N_NUMBERS; i++) {
            x[i] = cases[k].factor * fabs((double)rnd_f32()) *
                   exp(cases[k].spread * (double)rnd_f32());
            sum += (long double)x[i];
            most = fmax(most, x[i]);
        }
        for (int i = 0; i < N_NUMBERS; i++) {
            gg_collect_add_number(&t, 0, x[i]);
            gg_collect_add_number(&t, 1, x[N_NUMBERS - 1 - i]);
            gg_collect_add_number(&t, 2 + (uint64_t)(i % 3 == 1), x[i]);
        }
        gg_collect_add_digits(&t, 3, high[2], low[2], place[2]);
        const double v = gg_collect_total_value(&t, 0);
        const double bound = N_NUMBERS * 0x1p-32 * most + 0x1p-52 * v;
        ok(high[0] == high[1] && low[0] == low[1] && place[0] == place[1] &&
               high[0] == high[3] && low[0] == low[3] && place[0] == place[3],
           "numbers %s: one sum in three orders", cases[k].what);
        ok(v > 0 && fabsl(sum - (long double)v) <= (long double)bound &&
               (long double)v <= sum * (1 + 0x1p-40L),
           "and it is theirs, %g", v);
    }
    uint64_t high = 0, low = 0;
    int8_t place = GG_COLLECT_NO_PLACE;
    struct gg_collect_total t = { &high, &low, &place };
    gg_collect_add_number(&t, 0, 0);
    ok(gg_collect_total_value(&t, 0) == 0 && place == GG_COLLECT_NO_PLACE,
       "zeros make 0");
    gg_collect_add_number(&t, 0, 3);
    gg_collect_add_number(&t, 0, 5.5);
    ok(gg_collect_total_value(&t, 0) == 8.5, "3 and 5.5 make 8.5");
    gg_collect_add_number(&t, 0, 0x1p-1074);
    gg_collect_add_number(&t, 0, DBL_MAX);
    ok(gg_collect_total_value(&t, 0) == DBL_MAX,
       "the smallest and the largest");
}

int main(void)
{
    check_totals();
    return done_testing();
}
