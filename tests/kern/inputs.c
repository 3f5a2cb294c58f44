/* SPDX-License-Identifier: MIT */
/* inputs.c - awkward rows of floats, and importances for them */
#include "config.h"
#include "tests/kern/checkkern.h"
#include "dtype/f16.h"

#include <math.h>

static uint64_t state = 1;

void test_seed(uint64_t seed)
{
    state = seed;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t test_rnd(void)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t test_below(uint64_t n)
{
    return test_rnd() % n;
}

/* Uniform in [-1, 1), with 24 bits. */
static float uniform(void)
{
    return (float)((int32_t)(test_rnd() >> 40) - (1 << 23)) * 0x1p-23f;
}

static float gauss(void)
{
    float s = 0;
    for (int i = 0; i < 6; i++)
        s += uniform();
    return s * 0.7f;
}

/* A finite float with an exponent from lo to hi. */
static float spread_float(int lo, int hi)
{
    return ldexpf(1 + 0.5f * (uniform() + 1),
                  lo + (int)test_below((uint64_t)(hi - lo + 1))) *
           (test_rnd() & 1 ? 1.0f : -1.0f);
}

static float any_bits(void)
{
    return gg_bytes_f32_from_bits((uint32_t)test_rnd());
}

/* One element; s is the row's scale, c a constant of the row. */
static float draw_element(unsigned dist, size_t i, float s, float c)
{
    switch (dist) {
    case 0: return gauss() * s;
    case 1: /* heavy tails */
        return gauss() * s * ldexpf(1, (int)test_below(12));
    case 2: return uniform() * s;
    case 3: /* ternary */ return (float)((int)test_below(3) - 1) * s;
    case 4: /* constant in groups */ return i % 96 < 64 ? c : -c;
    case 5: /* sparse */ return test_below(20) ? 0 : gauss() * s;
    case 6: /* a few values at the bottom of the range */
        return gauss() * 1e-38f;
    case 7: /* subnormal */ return (float)(int)test_below(200) * 1e-44f;
    case 8: /* overflows halves */ return gauss() * 1e6f;
    case 9: /* overflows squares */ return gauss() * 1e25f;
    case 10: /* far from zero */ return 1000 * c + gauss() * s;
    case 11: /* ties of roundings */
        return (float)((int)test_below(256) - 128) * 0.5f * c;
    case 12: /* near ties */
        return (float)((int)test_below(64) - 32) * c / 15.5f;
    case 13: /* one in a hundred is large */
        return test_below(100) ? gauss() * s : gauss() * s * 100;
    case 14: /* blocks of zeros */
        return i / 32 % 3 ? gauss() * s : (i & 1 ? -0.0f : 0.0f);
    case 15: /* a ramp */ return (float)((int)(i % 256) - 77) * s;
    case 16: /* all finite exponents */ return spread_float(-140, 120);
    case 17: /* halves */
        return gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(gauss() * s));
    case 18: /* a NaN or infinity here and there */
        return test_below(300) ? gauss() * s : any_bits() * INFINITY;
    case TEST_TOP:
        return test_below(4) ? spread_float(120, 127)
                             : gg_bytes_f32_from_bits(
                                   (uint32_t)(0x7f7fffff - test_below(200)) |
                                   (uint32_t)test_below(2) << 31);
    default: return any_bits();
    }
}

void test_floats(float *x, size_t n, unsigned dist)
{
    float s = spread_float(-12, 1), c = gauss();
    for (size_t i = 0; i < n; i++)
        x[i] = draw_element(dist, i, s, c);
}

void test_weights(float *w, size_t n, unsigned kind)
{
    for (size_t i = 0; i < n; i++) {
        float v = 0.5f * (uniform() + 1);
        switch (kind) {
        case 0: w[i] = v; break;
        case 1: /* a fifth is zero */
            w[i] = test_below(5) ? v * v * 10 : 0;
            break;
        case 2: w[i] = 1; break;
        case 3: /* spiky */
            w[i] = test_below(50) ? v * 1e-3f : v * 1e3f;
            break;
        case 4: /* small */ w[i] = v * 1e-30f; break;
        case 5: /* one in 64: rounding decides the fit */
            w[i] = i % 64 == 44 ? v : 0;
            break;
        case 6: /* one in 16 counts */
            w[i] = i % 16 == 12 ? v * 4096 : v * 1e-3f;
            break;
        case 7: w[i] = 0; break;
        case 8: /* every exponent */
            w[i] = fabsf(spread_float(-149, 127));
            break;
        default: /* dead blocks */ w[i] = i / 64 % 3 ? v : 0;
        }
    }
}
