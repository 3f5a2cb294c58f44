/* SPDX-License-Identifier: MIT */
/* check-m256.c - intrinsics of kernels for 256 bits, against their definitions
 *
 * Each intrinsic is compared with its definition in the Intel Intrinsics Guide,
 * written as a loop over lanes. On x86 this tests the loops, on AArch64 the
 * functions of kern/arm. Inputs are random and edges: zeros of both signs, NaN,
 * infinities, subnormals, limits of integers and of saturation.
 */
#include "config.h"
#include "base/os/os_math.h"
#include "kern/cpu_features.h"
#include "tests/tap.h"

#if HAVE_KERN_256
#include "kern/simd/dp_256.h"
#include "kern/simd/m256.h"

#include <math.h>

enum { ROUNDS = 2000, BYTES = 32 };

/* A vector as lanes of each kind. */
union lanes {
    uint8_t u8[32];
    int8_t s8[32];
    uint16_t u16[16];
    int16_t s16[16];
    uint32_t u32[8];
    int32_t s32[8];
    uint64_t u64[4];
    int64_t s64[4];
    float f[8];
    double d[4];
};
static union lanes a, b, c, got, want;

static uint64_t random_state = 1;
static uint32_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* Half of the lanes are edges. */
static void fill_lanes(union lanes *v)
{
    static const uint32_t edge[] = {
        0,          0x80000000, 0x7fffffff, 0xffffffff, 0x7f800000, 0xff800000,
        0x7fc00001, 0xffc12345, 0x00000001, 0x807fffff, 0x3f000000, 0xbf000000,
        0x4b000000, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x7f7fffff,
        0x7fff8000, 0x80807f7f, 0x00ff01ff, 0x3fc00000, 0x40200000, 0x7fff7fff,
    };
    for (int i = 0; i < 8; i++) {
        uint32_t r = next_random();
        v->u32[i] = r & 1 ? edge[next_random() % (sizeof edge / sizeof *edge)]
                          : next_random();
        if (r & 2) { /* a number of moderate size */
            float f = (float)(int32_t)next_random() / 0x1p20f;
            memcpy(&v->u32[i], &f, sizeof f);
        }
    }
}

static int same_floats(void)
{
    for (int i = 0; i < 8; i++)
        if (got.u32[i] != want.u32[i] &&
            !(isnan(got.f[i]) && isnan(want.f[i])))
            return 0;
    return 1;
}

static int same_doubles(void)
{
    for (int i = 0; i < 4; i++)
        if (got.u64[i] != want.u64[i] &&
            !(isnan(got.d[i]) && isnan(want.d[i])))
            return 0;
    return 1;
}

static int same_bits(void)
{
    return !memcmp(&got, &want, BYTES);
}

static __m256i load_i(const union lanes *v)
{
    return _mm256_loadu_si256((const void *)v);
}

static void store_i(__m256i v)
{
    _mm256_storeu_si256((void *)&got, v);
}

static void store_f(__m256 v)
{
    _mm256_storeu_ps(got.f, v);
}

static void store_d(__m256d v)
{
    _mm256_storeu_pd(got.d, v);
}
#define A  load_i(&a)
#define B  load_i(&b)
#define C  load_i(&c)
#define AF _mm256_loadu_ps(a.f)
#define BF _mm256_loadu_ps(b.f)
#define CF _mm256_loadu_ps(c.f)
#define AD _mm256_loadu_pd(a.d)
#define BD _mm256_loadu_pd(b.d)
#define CD _mm256_loadu_pd(c.d)

/* Compares the stored result with n lanes: want.lane[i] = value. */
#define CHECK(name, store, result, n, lane, value, same)                      \
    do {                                                                      \
        int bad = 0;                                                          \
        for (int round = 0; round < ROUNDS; round++) {                        \
            fill_lanes(&a);                                                   \
            fill_lanes(&b);                                                   \
            fill_lanes(&c);                                                   \
            store(result);                                                    \
            for (int i = 0; i < (n); i++)                                     \
                want.lane[i] = (value);                                       \
            bad += !same();                                                   \
        }                                                                     \
        ok(!bad, "%s", name);                                                 \
    } while (0)
#define INTS(name, n, lane, value)                                            \
    CHECK(#name, store_i, _mm256_##name(A, B), n, lane, value, same_bits)
#define INTS_1(name, n, lane, value)                                          \
    CHECK(#name, store_i, _mm256_##name(A), n, lane, value, same_bits)
#define SHIFTS(name, by, n, lane, value)                                      \
    CHECK(#name " " #by, store_i, _mm256_##name(A, by), n, lane, value,       \
          same_bits)
#define FLOATS(name, value)                                                   \
    CHECK(#name, store_f, _mm256_##name(AF, BF), 8, f, value, same_floats)
#define FLOAT_BITS(name, value)                                               \
    CHECK(#name, store_f, _mm256_##name(AF, BF), 8, u32, value, same_bits)
#define DOUBLES(name, value)                                                  \
    CHECK(#name, store_d, _mm256_##name(AD, BD), 4, d, value, same_doubles)

static int clamp(int x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void check_integers(void)
{
    INTS(add_epi8, 32, u8, (uint8_t)(a.u8[i] + b.u8[i]));
    INTS(add_epi16, 16, u16, (uint16_t)(a.u16[i] + b.u16[i]));
    INTS(add_epi32, 8, u32, a.u32[i] + b.u32[i]);
    INTS(add_epi64, 4, u64, a.u64[i] + b.u64[i]);
    INTS(sub_epi8, 32, u8, (uint8_t)(a.u8[i] - b.u8[i]));
    INTS(sub_epi16, 16, u16, (uint16_t)(a.u16[i] - b.u16[i]));
    INTS(sub_epi32, 8, u32, a.u32[i] - b.u32[i]);
    INTS(mullo_epi16, 16, u16, (uint16_t)((uint32_t)a.u16[i] * b.u16[i]));
    INTS(mullo_epi32, 8, u32, a.u32[i] * b.u32[i]);
    INTS(mulhi_epu16, 16, u16,
         (uint16_t)((uint32_t)a.u16[i] * b.u16[i] >> 16));
    INTS(min_epi8, 32, s8, a.s8[i] < b.s8[i] ? a.s8[i] : b.s8[i]);
    INTS(min_epi32, 8, s32, a.s32[i] < b.s32[i] ? a.s32[i] : b.s32[i]);
    INTS(max_epi32, 8, s32, a.s32[i] > b.s32[i] ? a.s32[i] : b.s32[i]);
    INTS(cmpeq_epi8, 32, s8, (int8_t) - (a.s8[i] == b.s8[i]));
    INTS(cmpeq_epi32, 8, s32, -(a.s32[i] == b.s32[i]));
    INTS(cmpeq_epi64, 4, s64, -(a.s64[i] == b.s64[i]));
    INTS(cmpgt_epi32, 8, s32, -(a.s32[i] > b.s32[i]));
    INTS(and_si256, 4, u64, a.u64[i] & b.u64[i]);
    INTS(or_si256, 4, u64, a.u64[i] | b.u64[i]);
    INTS(xor_si256, 4, u64, a.u64[i] ^ b.u64[i]);
    INTS(andnot_si256, 4, u64, ~a.u64[i] & b.u64[i]);
    INTS_1(abs_epi32, 8, u32, a.s32[i] < 0 ? 0u - a.u32[i] : a.u32[i]);
    INTS(madd_epi16, 8, u32,
         (uint32_t)(a.s16[2 * i] * b.s16[2 * i]) +
             (uint32_t)(a.s16[2 * i + 1] * b.s16[2 * i + 1]));
    INTS(maddubs_epi16, 16, s16,
         (int16_t)clamp(a.u8[2 * i] * b.s8[2 * i] +
                            a.u8[2 * i + 1] * b.s8[2 * i + 1],
                        INT16_MIN, INT16_MAX));
    INTS(hadd_epi32, 8, u32,
         (i & 2 ? b.u32 : a.u32)[(i & 4) + 2 * (i & 1)] +
             (i & 2 ? b.u32 : a.u32)[(i & 4) + 2 * (i & 1) + 1]);
    INTS(srlv_epi32, 8, u32, b.u32[i] < 32 ? a.u32[i] >> b.u32[i] : 0);
}

/* Places of lanes: of each 128 bits. */
static void check_places(void)
{
    INTS(unpacklo_epi16, 16, u16,
         (i & 1 ? b.u16 : a.u16)[(i & 8) + (i & 7) / 2]);
    INTS(unpackhi_epi16, 16, u16,
         (i & 1 ? b.u16 : a.u16)[(i & 8) + 4 + (i & 7) / 2]);
    INTS(unpacklo_epi32, 8, u32,
         (i & 1 ? b.u32 : a.u32)[(i & 4) + (i & 3) / 2]);
    INTS(unpackhi_epi32, 8, u32,
         (i & 1 ? b.u32 : a.u32)[(i & 4) + 2 + (i & 3) / 2]);
    INTS(unpacklo_epi64, 4, u64, (i & 1 ? b.u64 : a.u64)[i & 2]);
    INTS(unpackhi_epi64, 4, u64, (i & 1 ? b.u64 : a.u64)[(i & 2) + 1]);
    INTS(packs_epi32, 16, s16,
         (int16_t)clamp((i & 4 ? b.s32 : a.s32)[(i & 8) / 2 + (i & 3)],
                        INT16_MIN, INT16_MAX));
    INTS(packus_epi32, 16, u16,
         (uint16_t)clamp((i & 4 ? b.s32 : a.s32)[(i & 8) / 2 + (i & 3)], 0,
                         UINT16_MAX));
    INTS(packs_epi16, 32, s8,
         (int8_t)clamp((i & 8 ? b.s16 : a.s16)[(i & 16) / 2 + (i & 7)],
                       INT8_MIN, INT8_MAX));
    INTS(packus_epi16, 32, u8,
         (uint8_t)clamp((i & 8 ? b.s16 : a.s16)[(i & 16) / 2 + (i & 7)], 0,
                        UINT8_MAX));
    INTS(shuffle_epi8, 32, u8,
         b.u8[i] & 128 ? 0 : a.u8[(i & 16) + (b.u8[i] & 15)]);
    INTS(permutevar8x32_epi32, 8, u32, a.u32[b.u32[i] & 7]);
    SHIFTS(permute4x64_epi64, 0xd8, 4, u64, a.u64[0xd8 >> 2 * i & 3]);
    SHIFTS(permute4x64_epi64, 0x4e, 4, u64, a.u64[0x4e >> 2 * i & 3]);
    SHIFTS(srli_si256, 4, 32, u8,
           (i & 15) + 4 < 16 ? a.u8[(i & 15) + 4 + (i & 16)] : 0);
    SHIFTS(srli_epi16, 3, 16, u16, a.u16[i] >> 3);
    SHIFTS(slli_epi16, 3, 16, u16, (uint16_t)(a.u16[i] << 3));
    SHIFTS(srli_epi32, 9, 8, u32, a.u32[i] >> 9);
    SHIFTS(slli_epi32, 23, 8, u32, a.u32[i] << 23);
    SHIFTS(srai_epi32, 24, 8, u32,
           a.u32[i] >> 24 | (a.s32[i] < 0 ? 0xffffff00 : 0));
    CHECK("permute2x128_si256", store_i, _mm256_permute2x128_si256(A, B, 0x31),
          4, u64, (i & 2 ? b.u64 : a.u64)[2 + (i & 1)], same_bits);
    CHECK("blend_epi32", store_i, _mm256_blend_epi32(A, B, 0x8c), 8, u32,
          0x8c >> i & 1 ? b.u32[i] : a.u32[i], same_bits);
    CHECK("blend_epi16", store_i, _mm256_blend_epi16(A, B, 0xaa), 16, u16,
          i & 1 ? b.u16[i] : a.u16[i], same_bits);
    CHECK("blendv_epi8", store_i, _mm256_blendv_epi8(A, B, C), 32, u8,
          c.u8[i] & 128 ? b.u8[i] : a.u8[i], same_bits);
    CHECK("cvtepi8_epi32", store_i,
          _mm256_cvtepi8_epi32(_mm256_castsi256_si128(A)), 8, s32, a.s8[i],
          same_bits);
    CHECK("cvtepu8_epi32", store_i,
          _mm256_cvtepu8_epi32(_mm256_castsi256_si128(A)), 8, s32, a.u8[i],
          same_bits);
    CHECK("cvtepi16_epi32", store_i,
          _mm256_cvtepi16_epi32(_mm256_extracti128_si256(A, 1)), 8, s32,
          a.s16[8 + i], same_bits);
    CHECK("cvtepi32_epi64", store_i,
          _mm256_cvtepi32_epi64(_mm256_castsi256_si128(A)), 4, s64, a.s32[i],
          same_bits);
}

/* A number out of range becomes INT32_MIN. */
static int32_t int_of(double x)
{
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}

static unsigned bits_of_signs(const uint32_t *v)
{
    unsigned m = 0;
    for (int i = 0; i < 8; i++)
        m |= v[i] >> 31 << i;
    return m;
}

#define COMPARE(how, value)                                                   \
    CHECK("cmp_ps " #how, store_f, _mm256_cmp_ps(AF, BF, how), 8, s32,        \
          -(value), same_bits)

static void check_floats(void)
{
    FLOATS(add_ps, a.f[i] + b.f[i]);
    FLOATS(sub_ps, a.f[i] - b.f[i]);
    FLOATS(mul_ps, a.f[i] * b.f[i]);
    FLOATS(div_ps, a.f[i] / b.f[i]);
    FLOATS(hadd_ps, (i & 2 ? b.f : a.f)[(i & 4) + 2 * (i & 1)] +
                        (i & 2 ? b.f : a.f)[(i & 4) + 2 * (i & 1) + 1]);
    FLOATS(addsub_ps, i & 1 ? a.f[i] + b.f[i] : a.f[i] - b.f[i]);
    /* bits: the second if either is NaN or both are zeros */
    FLOAT_BITS(min_ps, a.f[i] < b.f[i] ? a.u32[i] : b.u32[i]);
    FLOAT_BITS(max_ps, a.f[i] > b.f[i] ? a.u32[i] : b.u32[i]);
    FLOAT_BITS(and_ps, a.u32[i] & b.u32[i]);
    FLOAT_BITS(or_ps, a.u32[i] | b.u32[i]);
    FLOAT_BITS(xor_ps, a.u32[i] ^ b.u32[i]);
    FLOAT_BITS(andnot_ps, ~a.u32[i] & b.u32[i]);
    FLOAT_BITS(unpacklo_ps, (i & 1 ? b.u32 : a.u32)[(i & 4) + (i & 3) / 2]);
    CHECK("fmadd_ps", store_f, _mm256_fmadd_ps(AF, BF, CF), 8, f,
          gg_os_fmaf(a.f[i], b.f[i], c.f[i]), same_floats);
    CHECK("fmsub_ps", store_f, _mm256_fmsub_ps(AF, BF, CF), 8, f,
          gg_os_fmaf(a.f[i], b.f[i], -c.f[i]), same_floats);
    CHECK("fnmadd_ps", store_f, _mm256_fnmadd_ps(AF, BF, CF), 8, f,
          gg_os_fmaf(-a.f[i], b.f[i], c.f[i]), same_floats);
    CHECK("sqrt_ps", store_f, _mm256_sqrt_ps(AF), 8, f, sqrtf(a.f[i]),
          same_floats);
    CHECK("round_ps", store_f,
          _mm256_round_ps(AF, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          8, f, rintf(a.f[i]), same_floats);
    CHECK("blendv_ps", store_f, _mm256_blendv_ps(AF, BF, CF), 8, u32,
          c.u32[i] >> 31 ? b.u32[i] : a.u32[i], same_bits);
    COMPARE(_CMP_EQ_OQ, a.f[i] == b.f[i]);
    COMPARE(_CMP_LT_OQ, isless(a.f[i], b.f[i]));
    COMPARE(_CMP_LE_OQ, islessequal(a.f[i], b.f[i]));
    COMPARE(_CMP_GE_OQ, isgreaterequal(a.f[i], b.f[i]));
    COMPARE(_CMP_GT_OQ, isgreater(a.f[i], b.f[i]));
    COMPARE(_CMP_NGE_UQ, !isgreaterequal(a.f[i], b.f[i]));
    COMPARE(_CMP_UNORD_Q, isunordered(a.f[i], b.f[i]));
    CHECK("cvtepi32_ps", store_f, _mm256_cvtepi32_ps(A), 8, f, (float)a.s32[i],
          same_floats);
    CHECK("cvtps_epi32", store_i, _mm256_cvtps_epi32(AF), 8, s32,
          int_of(rint(a.f[i])), same_bits);
    CHECK("cvttps_epi32", store_i, _mm256_cvttps_epi32(AF), 8, s32,
          int_of(a.f[i]), same_bits);
    CHECK("shuffle_ps", store_f, _mm256_shuffle_ps(AF, BF, 0xdd), 8, u32,
          (i & 2 ? b.u32 : a.u32)[(i & 4) + 1 + 2 * (i & 1)], same_bits);
    CHECK("permute_ps", store_f, _mm256_permute_ps(AF, 0xb1), 8, u32,
          a.u32[i ^ 1], same_bits);
    CHECK("permutevar_ps", store_f, _mm256_permutevar_ps(AF, B), 8, u32,
          a.u32[(i & 4) + (b.s32[i] & 3)], same_bits);
    CHECK("permutevar8x32_ps", store_f, _mm256_permutevar8x32_ps(AF, B), 8,
          u32, a.u32[b.u32[i] & 7], same_bits);
    CHECK("permute2f128_ps", store_f, _mm256_permute2f128_ps(AF, BF, 0x20), 8,
          u32, (i & 4 ? b.u32 : a.u32)[i & 3], same_bits);
    CHECK("maskload_ps", store_f, _mm256_maskload_ps(b.f, A), 8, u32,
          a.u32[i] >> 31 ? b.u32[i] : 0, same_bits);
}

static void check_doubles(void)
{
    DOUBLES(add_pd, a.d[i] + b.d[i]);
    DOUBLES(sub_pd, a.d[i] - b.d[i]);
    DOUBLES(mul_pd, a.d[i] * b.d[i]);
    DOUBLES(min_pd, a.d[i] < b.d[i] ? a.d[i] : b.d[i]);
    DOUBLES(max_pd, a.d[i] > b.d[i] ? a.d[i] : b.d[i]);
    CHECK("fmadd_pd", store_d, _mm256_fmadd_pd(AD, BD, CD), 4, d,
          fma(a.d[i], b.d[i], c.d[i]), same_doubles);
    CHECK("cvtps_pd", store_d, _mm256_cvtps_pd(_mm256_castps256_ps128(AF)), 4,
          d, (double)a.f[i], same_doubles);
}

/* Halves, one at a time: all of them. */
static void check_halves(void)
{
    int bad = 0, back = 0;
    for (unsigned h = 0; h < 0x10000; h++) {
        const unsigned e = h >> 10 & 31, m = h & 1023;
        const float size = e == 31 ? (m ? NAN : INFINITY)
                           : e     ? ldexpf((float)(m | 1024), (int)e - 25)
                                   : ldexpf((float)m, -24);
        const float x = _cvtsh_ss((unsigned short)h);
        bad += isnan(size) ? !isnan(x) : x != (h >> 15 ? -size : size);
        bad += !isnan(size) && (signbit(x) != 0) != (h >> 15);
        back += !isnan(size) &&
                _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT) != (unsigned short)h;
    }
    ok(!bad, "halves to floats");
    ok(!back, "floats to halves");
    ok(_cvtss_sh(1.0f + 0x1p-11f, _MM_FROUND_TO_NEAREST_INT) == 0x3c00 &&
           _cvtss_sh(1.0f + 0x3p-11f, _MM_FROUND_TO_NEAREST_INT) == 0x3c02 &&
           _cvtss_sh(65520.0f, _MM_FROUND_TO_NEAREST_INT) == 0x7c00,
       "ties to even, and overflow to infinity");
}

static void check_rest(void)
{
    int bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned m = 0;
        fill_lanes(&a);
        for (int i = 0; i < 32; i++)
            m |= (unsigned)(a.u8[i] >> 7) << i;
        bad += (unsigned)_mm256_movemask_epi8(A) != m;
        bad += (unsigned)_mm256_movemask_ps(AF) != bits_of_signs(a.u32);
        bad += _mm256_extract_epi32(A, 6) != a.s32[6];
    }
    ok(!bad, "masks of signs, and lanes");
    bad = 0;
    for (float x = 0.001f; x < 1e6f; x *= 1.01f) {
        const float r = _mm256_cvtss_f32(_mm256_rcp_ps(_mm256_set1_ps(x)));
        bad += fabsf(r * x - 1) > 1.5f * 0x1p-12f;
    }
    ok(!bad, "estimates of reciprocals");
}

/* Operations of kern/x86/avx2_ops.h and kern/arm/neon_ops.h. */
static void check_operations(void)
{
    const __m256i four = _mm256_set1_epi8(15), five = _mm256_set1_epi8(31);
    const __m256i bit = _mm256_set1_epi8(32), top = _mm256_set1_epi8(-128);
    const __m256i below = _mm256_set1_epi32(0x1fffffff);
#define LESS   _mm256_cmpgt_epi32(B, A)
#define TABLE  _mm256_permute2x128_si256(A, A, 0)
#define TABLE2 _mm256_permute2x128_si256(A, A, 0x11)
    CHECK("lookup", store_i, m256_lookup(TABLE, _mm256_and_si256(B, four)), 32,
          u8, a.u8[b.u8[i] & 15], same_bits);
    CHECK("lookup from 128 on", store_i,
          m256_lookup(TABLE, _mm256_or_si256(B, top)), 32, u8, 0, same_bits);
    CHECK("lookup_32", store_i,
          m256_lookup_32(TABLE, TABLE2, _mm256_and_si256(B, five)), 32, u8,
          a.u8[b.u8[i] & 31], same_bits);
    CHECK("select", store_i, m256_select(A, B, LESS), 8, u32,
          a.s32[i] < b.s32[i] ? b.u32[i] : a.u32[i], same_bits);
    CHECK("select_ps", store_f,
          m256_select_ps(AF, BF, _mm256_castsi256_ps(LESS)), 8, u32,
          a.s32[i] < b.s32[i] ? b.u32[i] : a.u32[i], same_bits);
    CHECK("has_bit", store_i, m256_has_bit(A, bit), 32, u8,
          a.u8[i] & 32 ? 255 : 0, same_bits);
    CHECK("put_bits", store_i,
          m256_put_bits(_mm256_andnot_si256(four, A), B, four), 32, u8,
          (a.u8[i] & 0xf0) | (b.u8[i] & 15), same_bits);
    CHECK("srl8", store_i, m256_srl8(A, 3), 32, u8, a.u8[i] >> 3, same_bits);
    CHECK("nibbles", store_i, m256_nibbles(_mm256_castsi256_si128(A)), 32, u8,
          i < 16 ? a.u8[i] & 15 : a.u8[i - 16] >> 4, same_bits);
    /* exact floats, and halves between integers */
    CHECK(
        "to_ints", store_i,
        m256_to_ints(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srai_epi32(A, 8)),
                                   _mm256_set1_ps(0.5f))),
        8, s32,
        (a.s32[i] >> 8) / 2 + ((a.s32[i] >> 8) % 4 == 3    ? 1
                               : (a.s32[i] >> 8) % 4 == -3 ? -1
                                                           : 0),
        same_bits);
    CHECK("halves_ps", store_f, m256_halves_ps(A), 8, f,
          _cvtsh_ss(a.u16[2 * i]), same_floats);
    CHECK("pack_signed", store_i,
          m256_pack_signed(A, B, C, _mm256_and_si256(A, below)), 32, s8,
          (int8_t)clamp(i < 8    ? a.s32[i]
                        : i < 16 ? b.s32[i - 8]
                        : i < 24 ? c.s32[i - 16]
                                 : a.s32[i - 24] & 0x1fffffff,
                        INT8_MIN, INT8_MAX),
          same_bits);
    CHECK("pack_unsigned", store_i,
          m256_pack_unsigned(A, B, C, _mm256_and_si256(A, below)), 32, u8,
          (uint8_t)clamp(i < 8    ? a.s32[i]
                         : i < 16 ? b.s32[i - 8]
                         : i < 24 ? c.s32[i - 16]
                                  : a.s32[i - 24] & 0x1fffffff,
                         0, UINT8_MAX),
          same_bits);
}

/* c + the sum of the two products of 16 bits of x and y in lane i, modulo
 * 2^32. */
static uint32_t add_two(int i, const union lanes *x, const union lanes *y)
{
    uint32_t sum = c.u32[i];
    for (int k = 2 * i; k < 2 * i + 2; k++)
        sum += (uint32_t)(x->s16[k] * y->s16[k]);
    return sum;
}

/* The sum of the two products of bytes in 16 bits i. */
static int two_bytes(int i)
{
    return a.u8[2 * i] * b.s8[2 * i] + a.u8[2 * i + 1] * b.s8[2 * i + 1];
}

static void check_products(void)
{
    int bad[5] = { 0 };
    union lanes one;
    for (int i = 0; i < 16; i++)
        one.s16[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        union lanes all, of[5];
        fill_lanes(&a);
        fill_lanes(&b);
        fill_lanes(&c);
        for (int i = 0; i < 8; i++)
            all.u32[i] = b.u32[round % 8];
        __m256i v[5] = { C, C, C, C, C };
        const __m256i x = _mm256_loadu_si256((const void *)&all);
        GG_DP_MADDWD_256(v[0], A, B);
        GG_DP_MADDWD_ALL_256(v[1], A, x);
        GG_DP_PAIRS_256(v[2], A);
        const union lanes before = a;
        for (int i = 0; i < 32; i++)
            a.u8[i] &= 127;
        GG_DP_MUL_BYTES_256(v[3], A, B);
        GG_DP_ADD_BYTES_256(v[4], A, B);
        for (int k = 0; k < 5; k++)
            _mm256_storeu_si256((void *)&of[k], v[k]);
        for (int i = 0; i < 8; i++) {
            bad[0] += of[0].u32[i] != add_two(i, &before, &b);
            bad[1] += of[1].u32[i] != add_two(i, &before, &all);
            bad[2] += of[2].u32[i] != add_two(i, &before, &one);
        }
        for (int i = 0; i < 16; i++) {
            bad[3] += of[3].s16[i] != two_bytes(i);
            bad[4] += of[4].u16[i] != (uint16_t)(c.u16[i] + two_bytes(i));
        }
    }
    ok(!bad[0], "products of pairs, added");
    ok(!bad[1], "products with one pair for all lanes, added");
    ok(!bad[2], "sums of pairs, added");
    ok(!bad[3], "products of bytes");
    ok(!bad[4], "products of bytes, added");
}

int main(void)
{
    if (!(gg_kern_cpu_detect() & GG_CPU_256)) {
        skip("this processor has no vectors of 256 bits");
        return done_testing();
    }
    check_integers();
    check_places();
    check_floats();
    check_doubles();
    check_halves();
    check_products();
    check_rest();
    check_operations();
    return done_testing();
}
#else
int main(void)
{
    skip("a build without kernels for 256 bits");
    return done_testing();
}
#endif
