/* SPDX-License-Identifier: MIT */
/* check-form.c - forms describe the blocks that decoders and encoders know
 *
 *   check-form [SEED]
 *
 * The decoders in C (kern/c) define the values; they share no code with the
 * forms but the tables of the format.
 */
#include "config.h"
#include "fit/form.h"
#include "dtype/f16.h"
#include "kern/codec.h"
#include "tests/tap.h"

#include <math.h>

enum { N_BLOCKS = 3000, ROW = 1024, MAX_SIZE = 512 };

static struct gg_codec_kern codec[GG_N_DTYPES];

static const char *name_of(const struct gg_form *f)
{
    return gg_dtype_by_index(f->dtype)->name;
}

/* Are the floats the same bits, or both NaN? */
static bool same_floats(const float *x, const float *y, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!(isnan(x[i]) && isnan(y[i])) && memcmp(&x[i], &y[i], sizeof *x))
            return false;
    return true;
}

/* ------------------------------------------------------- rows of the table */

static bool values_ascend(float (*value)(int32_t code), int32_t lo, int32_t hi)
{
    for (int32_t c = lo; c < hi; c++) {
        float a = value(c), b = value(c + 1);
        /* -0 and 0 are two codes of F16 */
        if (!isfinite(a) || !isfinite(b) || !(a < b || (a == 0 && b == 0)))
            return false;
    }
    return true;
}

static bool levels_ascend(const struct gg_form *f)
{
    bool even = true;
    for (int k = 1; k < f->n_levels; k++) {
        if (!(f->level[k - 1] < f->level[k]))
            return false;
        even = even && f->level[k] == f->level[0] + (float)k;
    }
    return even == f->even && f->code_lo < f->code_hi &&
           f->code_hi < f->n_levels;
}

static void check_row(const struct gg_form *f)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(f->dtype);
    ok(f->block_len == t->block_len && f->block_size == t->block_size,
       "%s: a block has the type's size", t->name);
    ok(f->block_len <= GG_FORM_MAX_LEN && f->block_len % f->sub_len == 0 &&
           gg_form_n_subs(f) <= GG_FORM_MAX_SUBS,
       "%s: a block is a whole number of sub-blocks", t->name);
    if (f->n_levels)
        ok(levels_ascend(f), "%s: levels ascend", t->name);
    else
        ok(f->group <= GG_FORM_MAX_GROUP && f->sub_len % f->group == 0 &&
               (f->group == 8 || f->has_signs),
           "%s: a sub-block is a whole number of codewords", t->name);
    ok(f->scale_step > 0 && f->scale_first % f->scale_step == 0 &&
           f->scale_first >= f->scale_step && (!f->has_min || f->min_step > 0),
       "%s: a search has steps", t->name);
    ok(values_ascend(f->scale_value, f->scale_lo, f->scale_hi),
       "%s: values of scales ascend", t->name);
    if (f->has_min)
        ok(values_ascend(f->min_value, f->min_lo, f->min_hi),
           "%s: values of minima ascend", t->name);
}

/* Types that encoders write and files of models do not have: activations at
 * run time. */
static bool only_at_run_time(int dtype)
{
    return dtype == GG_DT_Q8_1 || dtype == GG_DT_Q8_K;
}

/* ik_llama.cpp's types: --calibrate keeps their plain bytes. */
static bool is_plain(const struct gguf_dtype_info *t)
{
    return t->family == GGUF_FAMILY_FORK;
}

static void check_complete(void)
{
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct gguf_dtype_info *t = gg_dtype_by_index(i);
        bool wanted = codec[i].encode && t->block_len > 1 &&
                      !only_at_run_time(i) && !is_plain(t);
        if (wanted || gg_form_of(i))
            ok(wanted && gg_form_of(i), "%s: has an encoder and a form",
               t->name);
    }
    ok(!gg_form_of(GG_DT_F32) && !gg_form_of(-1) && !gg_form_of(GG_N_DTYPES),
       "floats and unknown types have no form");
}

/* --------------------------------------------------- bytes, codes and back */

/* Bytes that encoders write for the same numbers: E2M1 has two zeros, and
 * not every byte is a number of ternary digits. */
static void make_canonical(const struct gg_form *f, uint8_t *block)
{
    uint8_t *nibbles = NULL;
    if (f->dtype == GG_DT_MXFP4)
        nibbles = block + 1;
    if (f->dtype == GG_DT_NVFP4)
        nibbles = block + 4;
    for (int i = 0; nibbles && i < f->block_len / 2; i++) {
        nibbles[i] = nibbles[i] >> 4 == 8 ? nibbles[i] & 15 : nibbles[i];
        nibbles[i] = (nibbles[i] & 15) == 8 ? nibbles[i] & 0xf0 : nibbles[i];
    }
    for (int i = 0; f->dtype == GG_DT_TQ1_0 && i < 52; i++) {
        /* five digits; in the last four bytes the fifth is zero */
        int n = block[i] % 243;
        n -= i < 48 ? 0 : n % 3;
        block[i] = (uint8_t)((n * 256 + 242) / 243);
    }
}

static void check_random_bytes(const struct gg_form *f)
{
    uint8_t block[MAX_SIZE], back[MAX_SIZE];
    float want[256], x[256];
    struct gg_form_block b;
    int n_values = 0, n_back = 0, n_nan = 0;
    for (int k = 0; k < N_BLOCKS; k++) {
        for (int i = 0; i < f->block_size; i++)
            block[i] = (uint8_t)(rnd64() >> 56);
        f->unpack(&b, block);
        codec[f->dtype].decode(block, want, f->block_len);
        gg_form_values(f, &b, x);
        n_values += same_floats(x, want, f->block_len);
        make_canonical(f, block);
        f->unpack(&b, block);
        memset(back, 0xa5, sizeof back);
        f->pack(back, &b);
        /* a conversion of a NaN may change its bits */
        bool nan = isnan(b.d) || isnan(b.dmin);
        n_nan += nan;
        n_back += (nan || !memcmp(back, block, f->block_size)) &&
                  back[f->block_size] == 0xa5;
    }
    ok(n_values == N_BLOCKS, "%s: random bytes have the decoder's values",
       name_of(f));
    ok(n_back == N_BLOCKS && n_nan < N_BLOCKS / 4,
       "%s: random bytes come back", name_of(f));
}

static int32_t draw_code(int32_t lo, int32_t hi)
{
    switch (rnd_below(8)) {
    case 0: return lo;
    case 1: return hi;
    default: return lo + (int32_t)rnd_below((uint64_t)(hi - lo) + 1);
    }
}

/* A random F16 number. */
static float draw_half(void)
{
    return rnd_below(16) ? (float)(int)(rnd_f32() * 2047) * 0x1p-13f
                         : 65504.0f;
}

static uint8_t draw_signs(const struct gg_form *f)
{
    unsigned s = (unsigned)rnd_below(256), odd = s;
    odd ^= odd >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return (uint8_t)(f->even_signs ? s ^ (odd & 1) : s);
}

/* Random members in range. Those that the form does not have are zero. */
static struct gg_form_block draw_block(const struct gg_form *f)
{
    struct gg_form_block b;
    memset(&b, 0, sizeof b);
    b.d = f->has_d ? draw_half() : 1;
    b.dmin = f->has_dmin ? draw_half() : 1;
    for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
        b.scale[s] = draw_code(f->scale_lo, f->scale_hi);
        b.min[s] = f->has_min ? draw_code(f->min_lo, f->min_hi) : 0;
    }
    unsigned n_codes =
        f->n_levels ? f->block_len : f->block_len / (unsigned)f->group;
    for (unsigned i = 0; i < n_codes; i++)
        b.code[i] = (uint16_t)(f->n_levels ? draw_code(0, f->n_levels - 1)
                                           : draw_code(0, f->n_words - 1));
    for (unsigned i = 0; f->has_signs && i < f->block_len / 8u; i++)
        b.sign[i] = draw_signs(f);
    for (unsigned i = 0; f->shift_len && i < f->block_len / f->shift_len; i++)
        b.shift[i] = (uint8_t)rnd_below(2);
    return b;
}

static bool same_blocks(const struct gg_form_block *a,
                        const struct gg_form_block *b)
{
    return !memcmp(&a->d, &b->d, sizeof a->d) &&
           !memcmp(&a->dmin, &b->dmin, sizeof a->dmin) &&
           !memcmp(a->scale, b->scale, sizeof a->scale) &&
           !memcmp(a->min, b->min, sizeof a->min) &&
           !memcmp(a->shift, b->shift, sizeof a->shift) &&
           !memcmp(a->code, b->code, sizeof a->code) &&
           !memcmp(a->sign, b->sign, sizeof a->sign);
}

static void check_random_codes(const struct gg_form *f)
{
    uint8_t block[MAX_SIZE];
    float want[256], x[256];
    int n_back = 0, n_values = 0;
    for (int k = 0; k < N_BLOCKS; k++) {
        struct gg_form_block b = draw_block(f), back;
        memset(block, 0xa5, sizeof block);
        memset(&back, 0xa5, sizeof back);
        f->pack(block, &b);
        f->unpack(&back, block);
        n_back += same_blocks(&b, &back) && gg_form_is_finite(f, &b);
        codec[f->dtype].decode(block, want, f->block_len);
        gg_form_values(f, &b, x);
        n_values += same_floats(x, want, f->block_len);
    }
    ok(n_back == N_BLOCKS, "%s: random codes come back", name_of(f));
    ok(n_values == N_BLOCKS, "%s: random codes have the decoder's values",
       name_of(f));
}

/* ------------------------------------------------------------ edge values */

/* A block whose codes are all the lowest, or all the highest. */
static struct gg_form_block extreme_block(const struct gg_form *f, bool high,
                                          float d)
{
    struct gg_form_block b;
    memset(&b, 0, sizeof b);
    b.d = f->has_d ? d : 1;
    b.dmin = f->has_dmin ? d : 1;
    for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
        b.scale[s] = high ? f->scale_hi : f->scale_lo;
        b.min[s] = high ? f->min_hi : f->min_lo;
    }
    unsigned n_codes =
        f->n_levels ? f->block_len : f->block_len / (unsigned)f->group;
    unsigned last = f->n_levels ? f->n_levels - 1u : f->n_words - 1u;
    for (unsigned i = 0; high && i < n_codes; i++)
        b.code[i] = (uint16_t)last;
    if (high && f->has_signs)
        memset(b.sign, 0xff, f->block_len / 8);
    for (unsigned i = 0;
         high && f->shift_len && i < f->block_len / f->shift_len; i++)
        b.shift[i] = 1;
    return b;
}

/* Does a block come back, with the decoder's values? */
static bool block_holds(const struct gg_form *f, const struct gg_form_block *b,
                        float *x)
{
    uint8_t block[MAX_SIZE], again[MAX_SIZE];
    float want[256];
    struct gg_form_block back;
    f->pack(block, b);
    f->unpack(&back, block);
    f->pack(again, &back);
    codec[f->dtype].decode(block, want, f->block_len);
    gg_form_values(f, &back, x);
    return !memcmp(block, again, f->block_size) &&
           same_floats(x, want, f->block_len);
}

static bool all_zero(const float *x, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

static void check_edges(const struct gg_form *f)
{
    /* largest, smallest subnormal, and usual F16 numbers, of both signs */
    static const float d[] = { 65504, -65504, 0x1p-24f, -0x1p-24f, 0.5f, -1 };
    float x[256];
    struct gg_form_block b;
    bool same = true, finite = true;
    for (unsigned k = 0; k < sizeof d / sizeof *d; k++)
        for (int high = 0; high < 2; high++) {
            b = extreme_block(f, high, d[k]);
            same = same && block_holds(f, &b, x);
            same = same && (!high || !all_zero(x, f->block_len));
            finite = finite && gg_form_is_finite(f, &b);
        }
    ok(same && finite, "%s: the lowest and highest codes come back",
       name_of(f));

    bool zero = true;
    for (int sign = 0; sign < 2; sign++) {
        b = draw_block(f);
        b.d = f->has_d ? (sign ? -0.0f : 0) : b.d;
        b.dmin = f->has_dmin ? 0 : b.dmin;
        for (unsigned s = 0; !f->has_d && s < gg_form_n_subs(f); s++)
            b.scale[s] = b.min[s] = gg_form_scale_code(f, 0);
        zero = zero && block_holds(f, &b, x) && gg_form_is_finite(f, &b);
        /* the least E8M0 is not zero */
        zero = zero && (f->dtype == GG_DT_MXFP4 || all_zero(x, f->block_len));
    }
    ok(zero, "%s: a scale of zero gives zeros", name_of(f));
}

/* Set the scale, or the minimum, to an F16 of these bits. */
static void set_half(const struct gg_form *f, struct gg_form_block *b,
                     bool scale, uint16_t bits)
{
    float v = gg_dtype_f16_to_f32(bits);
    int32_t code = bits & 0x8000 ? -1 - (bits & 0x7fff) : bits;
    if (scale && f->has_d)
        b->d = v;
    else if (scale)
        b->scale[0] = code;
    else if (f->has_dmin)
        b->dmin = v;
    else
        b->min[0] = code;
}

static void check_not_finite(const struct gg_form *f)
{
    static const uint16_t bits[] = { 0x7c00, 0xfc00, 0x7e00, 0xfe01 };
    struct gg_form_block b;
    float x[256];
    bool found = true;
    if (f->dtype == GG_DT_MXFP4 || f->dtype == GG_DT_NVFP4) {
        b = draw_block(f);
        b.scale[gg_form_n_subs(f) - 1] = f->dtype == GG_DT_MXFP4 ? 255 : 127;
        found = block_holds(f, &b, x) && !gg_form_is_finite(f, &b);
    }
    for (unsigned k = 0;
         k < 4 && f->dtype != GG_DT_MXFP4 && f->dtype != GG_DT_NVFP4; k++)
        for (int scale = !f->has_min; scale < 2; scale++) {
            b = draw_block(f);
            set_half(f, &b, scale, bits[k]);
            found =
                found && block_holds(f, &b, x) && !gg_form_is_finite(f, &b);
        }
    ok(found, "%s: a scale or minimum that is not finite is found",
       name_of(f));
}

/* ------------------------------------------------ bytes of plain encoders */

/* Can an encoder choose the codes of b? */
static bool codes_in_range(const struct gg_form *f,
                           const struct gg_form_block *b)
{
    if (f->n_levels) {
        for (int e = 0; e < f->block_len; e++)
            if (b->code[e] < f->code_lo || b->code[e] > f->code_hi)
                return false;
        return true;
    }
    for (int i = 0; i < f->block_len / f->group; i++)
        if (b->code[i] >= f->n_words)
            return false;
    return true;
}

/* Encode a row. Each block must come back, decode to its values and be in
 * range. */
static bool encoded_row_holds(const struct gg_form *f, const float *row,
                              const float *weight)
{
    static uint8_t bytes[MAX_SIZE * ROW / 32];
    uint8_t back[MAX_SIZE];
    float want[256], x[256];
    struct gg_form_block b;
    codec[f->dtype].encode(row, bytes, 1, ROW, weight);
    for (unsigned k = 0; k < ROW / (unsigned)f->block_len; k++) {
        const uint8_t *block = bytes + k * f->block_size;
        f->unpack(&b, block);
        f->pack(back, &b);
        gg_form_values(f, &b, x);
        codec[f->dtype].decode(block, want, f->block_len);
        if (memcmp(back, block, f->block_size) || !codes_in_range(f, &b) ||
            !gg_form_is_finite(f, &b) || !same_floats(x, want, f->block_len))
            return false;
    }
    return true;
}

/* Rows of several kinds: bell-shaped, with outliers, far from zero, zero. */
static float draw_element(int kind)
{
    float v = (rnd_f32() + rnd_f32() + rnd_f32()) * 0x1p-5f;
    switch (kind % 5) {
    case 0: return v;
    case 1: return rnd_below(64) ? v : 30 * v;
    case 2: return v + 1;
    case 3: return rnd_below(16) ? 0 : v;
    default: return 0;
    }
}

static void check_encoded(const struct gg_form *f)
{
    float row[ROW], weight[ROW];
    bool plain = true, weighted = true;
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < ROW; i++) {
            row[i] = draw_element(k);
            weight[i] = rnd_below(32) ? rnd_f32() * rnd_f32() + 1 : 0;
        }
        if (!(codec[f->dtype].flags & GG_CODEC_NEEDS_WEIGHT))
            plain = plain && encoded_row_holds(f, row, NULL);
        if (codec[f->dtype].flags & GG_CODEC_WEIGHT)
            weighted = weighted && encoded_row_holds(f, row, weight);
    }
    ok(plain && weighted, "%s: encoded blocks come back, in range",
       name_of(f));
}

/* ---------------------------------------------------------------- helpers */

/* Is the code the nearest of all? */
static bool is_nearest(float (*value)(int32_t code), int32_t lo, int32_t hi,
                       float v, int32_t found)
{
    double least = INFINITY;
    for (int32_t c = lo; c <= hi; c++)
        least = fmin(least, fabs((double)value(c) - (double)v));
    return found >= lo && found <= hi &&
           fabs((double)value(found) - (double)v) == least;
}

static void check_nearest(const struct gg_form *f)
{
    static const float edge[] = { 0, 1e9f, -1e9f, 1e-9f, 3 };
    bool scale = true, min = true;
    for (unsigned k = 0; k < 25; k++) {
        float v = k < 5 ? edge[k] : rnd_f32() * (k & 1 ? 2 : 100);
        scale = scale && is_nearest(f->scale_value, f->scale_lo, f->scale_hi,
                                    v, gg_form_scale_code(f, v));
        if (f->has_min)
            min = min && is_nearest(f->min_value, f->min_lo, f->min_hi, v,
                                    gg_form_min_code(f, v));
    }
    ok(scale && min, "%s: the nearest scale and minimum are found",
       name_of(f));
}

static void check_words(const struct gg_form *f)
{
    static float words[2048 * 8];
    struct gg_form_block b;
    memset(&b, 0, sizeof b);
    gg_form_words(f, words);
    bool same = true;
    for (unsigned w = 0; w < f->n_words; w++) {
        b.code[1] = (uint16_t)w;
        for (unsigned i = 0; i < f->group; i++) {
            float v = words[w * f->group + i];
            same = same && v == gg_form_level(f, &b, f->group + i);
            same = same && (f->has_signs ? v > 0 : fabsf(v) <= 1);
        }
    }
    ok(same, "%s: the codebook as floats has every codeword", name_of(f));
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    gg_codec_kern_init(codec, 0);
    check_complete();
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct gg_form *f = gg_form_of(i);
        if (!f || !codec[i].encode)
            continue;
        check_row(f);
        check_random_bytes(f);
        check_random_codes(f);
        check_edges(f);
        check_not_finite(f);
        check_encoded(f);
        check_nearest(f);
        if (f->n_words)
            check_words(f);
    }
    return done_testing();
}
