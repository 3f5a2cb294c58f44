/* SPDX-License-Identifier: MIT */
/* check-f8.c - F8_E4M3 against its definition, in double precision */
#include "config.h"
#include "base/bytes.h"
#include "dtype/f8.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

/* Value of a code other than NaN (OCP 8-bit Floating Point, section 5.1). */
static double value_of(unsigned code)
{
    const int exp = code >> 3 & 15, man = code & 7;
    const double v = exp ? ldexp(1 + man / 8.0, exp - 7) : ldexp(man, -9);
    return code & 0x80 ? -v : v;
}

static void check_decoder(void)
{
    int n_bad = 0;
    for (unsigned code = 0; code < 256; code++) {
        const float got = gg_dtype_f8_to_f32((uint8_t)code);
        const bool nan = (code & 0x7f) == 0x7f;
        n_bad += nan ? !isnan(got)
                     : got != (float)value_of(code) ||
                           !signbit(got) != !(code & 0x80);
    }
    ok(n_bad == 0, "256 codes have their values");
}

/* Nearest code of a finite number; the even one of two. */
static unsigned nearest_code(double x)
{
    unsigned best = 0;
    for (unsigned code = 1; code < 0x7f; code++) {
        const double d = fabs(value_of(code) - fabs(x)),
                     e = fabs(value_of(best) - fabs(x));
        if (d < e || (d == e && code % 2 == 0))
            best = code;
    }
    return best | (signbit(x) ? 0x80 : 0);
}

static void check_encoder(void)
{
    int n_bad = 0;
    for (unsigned code = 0; code < 0x7e; code++) {
        /* the middle between two numbers, and its neighbours */
        const float m = (float)((value_of(code) + value_of(code + 1)) / 2);
        const float x[] = { m, nextafterf(m, 0), nextafterf(m, 1e9f), -m,
                            (float)value_of(code) };
        for (size_t i = 0; i < 5; i++)
            n_bad += gg_dtype_f32_to_f8(x[i]) != nearest_code((double)x[i]);
    }
    ok(n_bad == 0, "numbers between two become the nearest, halves the even");
    n_bad = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 0x12347) {
        const float x = gg_bytes_f32_from_bits(bits);
        n_bad += gg_dtype_f32_to_f8(x) != nearest_code((double)x);
        n_bad += gg_dtype_f32_to_f8(-x) != nearest_code(-(double)x);
    }
    ok(n_bad == 0, "numbers of all sizes");
    ok(gg_dtype_f32_to_f8(INFINITY) == 0x7e &&
           gg_dtype_f32_to_f8(-INFINITY) == 0xfe &&
           gg_dtype_f32_to_f8(-NAN) == 0x7f &&
           gg_dtype_f32_to_f8(-0.0f) == 0x80,
       "infinities, NaN, minus zero");
}

int main(void)
{
    check_decoder();
    check_encoder();
    return done_testing();
}
