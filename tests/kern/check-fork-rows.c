/* SPDX-License-Identifier: MIT */
/* check-fork-rows.c - bitnet's, trellis and pair types follow their formulas
 *
 * Random rows are decoded again in double precision from single bits: bit i of
 * a block is bit i % 8 of byte i / 8. Elements of a trellis are computed
 * without the elements before them, from powers of the factor.
 */
#include "config.h"
#include "base/bytes.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <math.h>

static unsigned get_bits(const uint8_t *block, unsigned at, unsigned n)
{
    unsigned v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (unsigned)(block[(at + i) / 8] >> (at + i) % 8 & 1) << i;
    return v;
}

static const double level4[] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113 };

/* Element k of a group: the state is (code + offset) * factor^(k + 1). */
static double trellis_element(unsigned code, unsigned offset, unsigned k)
{
    uint64_t power = 1, sum = 0;
    for (unsigned i = 0; i <= k; i++)
        power = power * UINT64_C(3417055213) % (UINT64_C(1) << 32);
    const uint64_t state = power * ((uint64_t)code + offset);
    for (unsigned byte = 0; byte < 4; byte++)
        sum += state / (UINT64_C(1) << 8 * byte) % 64;
    return (double)sum - 126;
}

/* Digit `place' of v / 256, a fraction in base 3 whose last digit is 0. */
static double ternary_digit(unsigned v, unsigned place)
{
    static const double power[] = { 81, 27, 9, 3, 1 };
    const double x = v / 256.0 * power[place];
    return floor(3 * (x - floor(x))) - 1;
}

static double iq1_bn(const uint8_t *b, unsigned e)
{
    const unsigned g = e / 16, i = e % 16;
    return i == 15 ? ternary_digit(b[12], g)
                   : ternary_digit(b[3 * g + i / 5], i % 5);
}

static double iq2_bn(const uint8_t *b, unsigned e)
{
    return (double)get_bits(b, e % 16 * 8 + e / 16 * 2, 2) - 1;
}

static double q8_kv(const uint8_t *b, unsigned e)
{
    const double v = get_bits(b, 8 * e, 7);
    return get_bits(b, 8 * e + 7, 1) ? v - 128 : v;
}

static double iq2_kl(const uint8_t *b, unsigned e)
{
    static const double pair[] = {
        -63, -23, -63, 13,  -40, -63, -40, -10, -40, 13,  -40, 47,  -23,
        -40, -23, -23, -23, 1,   -23, 13,  -23, 28,  -10, -63, -10, 1,
        -10, 13,  -10, 47,  1,   -23, 1,   -10, 1,   1,   1,   13,  1,
        28,  13,  -40, 13,  -23, 13,  -10, 13,  1,   13,  13,  28,  -63,
        28,  -23, 28,  1,   28,  28,  28,  47,  47,  -23, 47,  13
    };
    const unsigned s = e / 32, j = e % 32 / 2;
    const unsigned sc = get_bits(b, 16 + s % 4 * 8 + s / 4 * 4, 4) +
                        16 * get_bits(b, 2 * s, 2);
    const unsigned q = get_bits(b, 48 + (s / 2 * 16 + j) * 8 + s % 2 * 4, 4) +
                       16 * get_bits(b, (70 + j) * 8 + s, 1);
    return ((double)sc - 32) * pair[2 * q + e % 2];
}

static double iq1_kt(const uint8_t *b, unsigned e)
{
    const unsigned s = e / 32, g = e / 8;
    const unsigned q = get_bits(b, 64 + 8 * g, 8) +
                       256 * get_bits(b, 320 + g % 16 * 8 + g / 16 * 4, 4) +
                       4096 * get_bits(b, 8 * s + 4 + g % 4, 1);
    return level4[get_bits(b, 8 * s, 4)] * trellis_element(q, 4096, e % 8);
}

static double iq2_kt(const uint8_t *b, unsigned e)
{
    const unsigned s = e / 32;
    return level4[get_bits(b, s % 4 * 8 + s / 4 * 4, 4)] *
           trellis_element(get_bits(b, 32 + e / 8 * 16, 16), 4096, e % 8);
}

static double iq3_kt(const uint8_t *b, unsigned e)
{
    const unsigned s = e / 32;
    const double v =
        get_bits(b, s % 4 * 8 + s / 4 * 4, 4) *
        fabs(trellis_element(get_bits(b, 32 + e / 8 * 16, 16), 4096, e % 8));
    return get_bits(b, 544 + e % 32 * 8 + s, 1) ? -v : v;
}

static double iq4_kt(const uint8_t *b, unsigned e)
{
    const unsigned s = e / 32, g = e / 4;
    const unsigned q = get_bits(b, 256 + 8 * g, 8) +
                       256 * get_bits(b, 768 + g % 32 * 8 + g / 32 * 4, 4) +
                       4096 * get_bits(b, 32 * s + 8 + g % 8 * 3, 3);
    return ((double)get_bits(b, 32 * s + 1, 7) - 64) *
           trellis_element(q, 4096 + 32768 * get_bits(b, 32 * s, 1), e % 4);
}

static const struct {
    const char *name;
    double (*element)(const uint8_t *block, unsigned e); /* over d */
} rule[] = { { "IQ1_BN", iq1_bn }, { "IQ2_BN", iq2_bn }, { "Q8_KV", q8_kv },
             { "IQ2_KL", iq2_kl }, { "IQ1_KT", iq1_kt }, { "IQ2_KT", iq2_kt },
             { "IQ3_KT", iq3_kt }, { "IQ4_KT", iq4_kt } };

static double read_half(const uint8_t *p)
{
    const unsigned h = get_bits(p, 0, 16), e = h >> 10 & 31, m = h & 1023;
    const double v = e ? ldexp(1024 + m, (int)e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

enum { BLOCKS = 3, MOST = 256 * BLOCKS };

static void check_type(const struct gg_kern *k, const char *level, size_t r)
{
    const struct gguf_dtype_info *t = gguf_dtype_find_name(rule[r].name);
    uint8_t row[8 + BLOCKS * 256];
    float y[MOST];
    unsigned bad = 0;
    const size_t n = BLOCKS * t->block_len;
    for (int i = 0; i < 100; i++) {
        for (size_t j = 0; j < sizeof row; j++)
            row[j] = (uint8_t)rnd64();
        row[t->row_header == 2 ? 1 : 3] &= 0xbf; /* |d| < 2 */
        const double d =
            t->row_header == 2
                ? read_half(row)
                : (double)gg_bytes_f32_from_bits(gg_bytes_load32le(row));
        k->codec[gg_dtype_index(t->id)].decode(row, y, n);
        for (size_t e = 0; e < n; e++) {
            const uint8_t *b = row + t->row_header;
            b += e / t->block_len * t->block_size;
            const double v = d * rule[r].element(b, e % t->block_len);
            if (!(fabs((double)y[e] - v) <= 0x1p-23 * fabs(v)) && !bad++)
                printf("# element %zu: %a, by the formula %a\n", e,
                       (double)y[e], v);
        }
    }
    ok(!bad, "%s %s: random rows follow the formula", level, t->name);
}

static void check_level(const struct gg_kern *k, const char *level)
{
    for (size_t r = 0; r < sizeof rule / sizeof *rule; r++)
        check_type(k, level, r);
}

int main(void)
{
    test_each_level(check_level);
    return done_testing();
}
