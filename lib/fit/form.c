/* SPDX-License-Identifier: MIT */
/* form.c - the table of forms, a row for each type, and what follows from it
 */
#include "config.h"
#include "fit/form.h"
#include "dtype/iq_code.h"
#include "fit/form_int.h"
#include "kern/c/fp4.h"

#include <math.h>

/* Consecutive levels, -128 to 127. */
#define LEVELS_4(n) (n), (n) + 1, (n) + 2, (n) + 3
#define LEVELS_16(n)                                                          \
    LEVELS_4(n), LEVELS_4(n + 4), LEVELS_4(n + 8), LEVELS_4(n + 12)
#define LEVELS_64(n)                                                          \
    LEVELS_16(n), LEVELS_16(n + 16), LEVELS_16(n + 32), LEVELS_16(n + 48)
static const float integer[256] = { LEVELS_64(-128), LEVELS_64(-64),
                                    LEVELS_64(0), LEVELS_64(64) };
static const float sign_level[2] = { -1, 1 };
static const float iq4_level[16] = GG_IQ4_LEVELS;
/* GG_FP4_LEVELS in ascending order, with one of the two zeros. */
static const float fp4_level[15] = { -12, -8, -6, -4, -3, -2, -1, 0,
                                     1,   2,  3,  4,  6,  8,  12 };

static const float iq1_level[4] = GG_IQ1_LEVELS;
static const float iq2_level[4] = GG_IQ2_LEVELS;
static const float iq3_xxs_level[8] = GG_IQ3_XXS_LEVELS;
static const float iq3_s_level[8] = GG_IQ3_S_LEVELS;

/* Values of scale codes. */
static float value_integer(int32_t code)
{
    return (float)code;
}

static float value_odd(int32_t code)
{
    return (float)(1 + 2 * code);
}

static float value_odd_eighths(int32_t code)
{
    return (0.5f + (float)code) * 0.25f;
}

static float value_odd_quarters(int32_t code)
{
    return (0.5f + (float)code) * 0.5f;
}

static float value_f16(int32_t code)
{
    return gg_dtype_f16_to_f32(gg_form_f16_bits(code));
}

static float value_e8m0(int32_t code)
{
    return gg_kern_e8m0_half((uint8_t)code);
}

static float value_ue4m3(int32_t code)
{
    return gg_kern_ue4m3_half((uint8_t)code);
}

/* Words of the table. */
#define BLOCK(TYPE, NAME, LEN, SUB)                                           \
    .dtype = GG_DT_##TYPE, .block_len = LEN, .sub_len = SUB,                  \
    .block_size = sizeof(struct gg_block_##NAME),                             \
    .unpack = gg_form_unpack_##NAME, .pack = gg_form_pack_##NAME
#define LEVELS(N, TABLE) .n_levels = N, .code_hi = (N)-1, .level = TABLE
#define INTEGERS(LO, HI) INTEGERS_FOR(LO, HI, LO, HI)
/* Levels LO to HI. An encoder chooses from FIRST to LAST. */
#define INTEGERS_FOR(LO, HI, FIRST, LAST)                                     \
    .n_levels = (HI) - (LO) + 1, .level = integer + 128 + (LO), .even = true, \
    .code_lo = (FIRST) - (LO), .code_hi = (LAST) - (LO)
#define WORDS(N, GROUP, TABLE, LEVEL, BITS)                                   \
    .n_words = N, .group = GROUP, .word = TABLE, .word_level = LEVEL,         \
    .word_bits = BITS
#define SIGNS      .has_signs = true
#define EVEN_SIGNS .has_signs = true, .even_signs = true
#define SHIFT(LEN) .shift_len = LEN, .shift = { GG_IQ1_DELTA, -GG_IQ1_DELTA }
#define SCALE(LO, HI, VALUE)                                                  \
    .scale_lo = LO, .scale_hi = HI, .scale_step = 1, .scale_first = 1,        \
    .scale_value = VALUE
#define MIN(LO, HI, VALUE)                                                    \
    .has_min = true, .min_lo = LO, .min_hi = HI, .min_step = 1,               \
    .min_value = VALUE
/* Codes of F16 numbers: the first step of a search is 3 to 6% of the value. The
 * plain encoder's scale of ternary digits, the largest magnitude, is further
 * from the best one: 25 to 50%. */
#define SCALE_F16     F16_FROM(64)
#define SCALE_F16_FAR F16_FROM(512)
#define F16_FROM(FIRST)                                                       \
    .scale_lo = GG_FORM_F16_MIN, .scale_hi = GG_FORM_F16_MAX,                 \
    .scale_step = 8, .scale_first = FIRST, .scale_value = value_f16
#define MIN_F16                                                               \
    .has_min = true, .min_lo = GG_FORM_F16_MIN, .min_hi = GG_FORM_F16_MAX,    \
    .min_step = 8, .min_value = value_f16
#define D      .has_d = true
#define D_DMIN .has_d = true, .has_dmin = true

static const struct gg_form form[] = {
    { BLOCK(Q4_0, q4_0, 32, 32), INTEGERS(-8, 7), SCALE_F16 },
    { BLOCK(Q4_1, q4_1, 32, 32), INTEGERS(0, 15), SCALE_F16, MIN_F16 },
    { BLOCK(Q5_0, q5_0, 32, 32), INTEGERS(-16, 15), SCALE_F16 },
    { BLOCK(Q5_1, q5_1, 32, 32), INTEGERS(0, 31), SCALE_F16, MIN_F16 },
    /* Encoders leave -128 out. */
    { BLOCK(Q8_0, q8_0, 32, 32), INTEGERS_FOR(-128, 127, -127, 127),
      SCALE_F16 },
    { BLOCK(Q2_K, q2_k, 256, 16), INTEGERS(0, 3), D_DMIN,
      SCALE(0, 15, value_integer), MIN(0, 15, value_integer) },
    { BLOCK(Q3_K, q3_k, 256, 16), INTEGERS(-4, 3), D,
      SCALE(-32, 31, value_integer) },
    { BLOCK(Q4_K, q4_k, 256, 32), INTEGERS(0, 15), D_DMIN,
      SCALE(0, 63, value_integer), MIN(0, 63, value_integer) },
    { BLOCK(Q5_K, q5_k, 256, 32), INTEGERS(0, 31), D_DMIN,
      SCALE(0, 63, value_integer), MIN(0, 63, value_integer) },
    { BLOCK(Q6_K, q6_k, 256, 16), INTEGERS(-32, 31), D,
      SCALE(-128, 127, value_integer) },
    { BLOCK(IQ1_S, iq1_s, 256, 32), D, SHIFT(32),
      WORDS(2048, 8, gg_dtype_iq1_code, iq1_level, 2),
      SCALE(0, 7, value_odd) },
    { BLOCK(IQ1_M, iq1_m, 256, 16), D, SHIFT(8),
      WORDS(2048, 8, gg_dtype_iq1_code, iq1_level, 2),
      SCALE(0, 7, value_odd) },
    { BLOCK(IQ2_XXS, iq2_xxs, 256, 32), D, EVEN_SIGNS,
      WORDS(256, 8, gg_dtype_iq2_xxs_code, iq2_level, 2),
      SCALE(0, 15, value_odd_eighths) },
    { BLOCK(IQ2_XS, iq2_xs, 256, 16), D, EVEN_SIGNS,
      WORDS(512, 8, gg_dtype_iq2_xs_code, iq2_level, 2),
      SCALE(0, 15, value_odd_eighths) },
    { BLOCK(IQ2_S, iq2_s, 256, 16), D, SIGNS,
      WORDS(1024, 8, gg_dtype_iq2_s_code, iq2_level, 2),
      SCALE(0, 15, value_odd_eighths) },
    { BLOCK(IQ3_XXS, iq3_xxs, 256, 32), D, EVEN_SIGNS,
      WORDS(256, 4, gg_dtype_iq3_xxs_code, iq3_xxs_level, 3),
      SCALE(0, 15, value_odd_quarters) },
    { BLOCK(IQ3_S, iq3_s, 256, 32), D, SIGNS,
      WORDS(512, 4, gg_dtype_iq3_s_code, iq3_s_level, 3),
      SCALE(0, 15, value_odd) },
    { BLOCK(IQ4_NL, iq4_nl, 32, 32), LEVELS(16, iq4_level), SCALE_F16 },
    { BLOCK(IQ4_XS, iq4_xs, 256, 32), LEVELS(16, iq4_level), D,
      SCALE(-32, 31, value_integer) },
    { BLOCK(TQ1_0, tq1_0, 256, 256), INTEGERS(-1, 1), SCALE_F16_FAR },
    /* Level 2 can be stored, but the type is ternary. */
    { BLOCK(TQ2_0, tq2_0, 256, 256), INTEGERS_FOR(-1, 2, -1, 1),
      SCALE_F16_FAR },
    { BLOCK(MXFP4, mxfp4, 32, 32), LEVELS(15, fp4_level),
      SCALE(0, 254, value_e8m0) },
    { BLOCK(NVFP4, nvfp4, 64, 16), LEVELS(15, fp4_level),
      SCALE(0, 0x7e, value_ue4m3) },
    { BLOCK(Q1_0, q1_0, 128, 128), LEVELS(2, sign_level), SCALE_F16_FAR },
    { BLOCK(Q2_0, q2_0, 64, 64), INTEGERS(-1, 2), SCALE_F16_FAR },
};

const struct gg_form *gg_form_of(int dtype)
{
    for (size_t i = 0; i < sizeof form / sizeof *form; i++)
        if (form[i].dtype == dtype)
            return &form[i];
    return NULL;
}

/* Element i of a codeword. */
static float word_element(const struct gg_form *f, unsigned word, unsigned i)
{
    unsigned mask = (1u << f->word_bits) - 1;
    return f->word_level[f->word[word] >> f->word_bits * i & mask];
}

float gg_form_level(const struct gg_form *f, const struct gg_form_block *b,
                    unsigned e)
{
    if (f->n_levels)
        return f->level[b->code[e]];
    float v = word_element(f, b->code[e / f->group], e % f->group);
    return b->sign[e / 8] >> e % 8 & 1 ? -v : v;
}

float gg_form_scale(const struct gg_form *f, const struct gg_form_block *b,
                    unsigned s)
{
    return b->d * f->scale_value(b->scale[s]);
}

float gg_form_min(const struct gg_form *f, const struct gg_form_block *b,
                  unsigned s)
{
    return f->has_min ? b->dmin * f->min_value(b->min[s]) : 0;
}

/* All products are exact in any order: the factors of scale * (level + shift)
 * have at most 24 bits together. Only the difference is rounded, here as in the
 * decoders. */
void gg_form_values(const struct gg_form *f, const struct gg_form_block *b,
                    float *x)
{
    for (unsigned e = 0, s = 0; e < f->block_len; s++) {
        float scale = gg_form_scale(f, b, s), min = gg_form_min(f, b, s);
        for (unsigned end = e + f->sub_len; e < end; e++) {
            float level = gg_form_level(f, b, e);
            if (f->shift_len)
                level += f->shift[b->shift[e / f->shift_len]];
            x[e] = scale * level - min;
        }
    }
}

void gg_form_words(const struct gg_form *f, float *x)
{
    for (unsigned w = 0; w < f->n_words; w++)
        for (unsigned i = 0; i < f->group; i++)
            *x++ = word_element(f, w, i);
}

/* Code from lo to hi whose value is nearest to v; the values ascend. */
static int32_t nearest_code(float (*value)(int32_t code), int32_t lo,
                            int32_t hi, float v)
{
    while (hi - lo > 1) {
        int32_t mid = lo + (hi - lo) / 2;
        if (value(mid) <= v)
            lo = mid;
        else
            hi = mid;
    }
    double above = fabs((double)value(hi) - (double)v);
    return above < fabs((double)value(lo) - (double)v) ? hi : lo;
}

int32_t gg_form_scale_code(const struct gg_form *f, float v)
{
    return nearest_code(f->scale_value, f->scale_lo, f->scale_hi, v);
}

int32_t gg_form_min_code(const struct gg_form *f, float v)
{
    return nearest_code(f->min_value, f->min_lo, f->min_hi, v);
}

bool gg_form_is_finite(const struct gg_form *f, const struct gg_form_block *b)
{
    if (!isfinite(b->d) || !isfinite(b->dmin))
        return false;
    for (unsigned s = 0; s < gg_form_n_subs(f); s++)
        if (b->scale[s] < f->scale_lo || b->scale[s] > f->scale_hi ||
            (f->has_min && (b->min[s] < f->min_lo || b->min[s] > f->min_hi)))
            return false;
    return true;
}
