/* gemm_i8_avx2.c - packers of panels of bytes, for all x86 levels */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/x86/gemm_int_avx2.h"
#include "kern/x86/x86.h"

#include <math.h>
#include <string.h>

enum { STEPS = GG_GEMM_INT_STEPS, RUN = 32, QUADS = GG_GEMM_I8_QUADS };

/* 32 floats that are integers from -bias on, as bytes. */
static GG_ALWAYS_INLINE __m256i bytes_of(const float *x, __m256i bias)
{
    __m256i v[4];
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_loadu_ps(x + 8 * i)),
                                bias);
    return gg_x86_pack_bytes(v[0], v[1], v[2], v[3], 0);
}

/* Eight rows of 32 steps to 8 quads, width rows apart. */
static void put_8(int32_t *dst, size_t width, const float *src, size_t stride,
                  __m256i bias)
{
    __m256i v[8];
    GG_UNROLL
    for (int r = 0; r < 8; r++)
        v[r] = bytes_of(src + (size_t)r * stride, bias);
    gg_x86_put_8(dst, width, v);
}

void gg_kern_i8_pack_w_avx2(const struct gg_kern_gemm *g, void *panel,
                            size_t first, const float *src, size_t stride,
                            size_t n, size_t k)
{
    const size_t end = (k + STEPS - 1) / STEPS * STEPS;
    const __m256i bias = _mm256_set1_epi32((int)g->ints.bias);
    for (size_t p = 0; p < end; p += RUN) {
        int32_t *dst = (int32_t *)(void *)((unsigned char *)panel +
                                           p / STEPS * g->w_block) +
                       p % STEPS / 4 * g->mr + first;
        size_t r = 0;
        for (; p + RUN <= k && r + 8 <= n; r += 8)
            put_8(dst + r, g->mr, src + r * stride + p, stride, bias);
        for (; r < n; r++) {
            float part[RUN] = { 0 };
            if (p < k)
                memcpy(part, src + r * stride + p,
                       GG_MIN(k - p, (size_t)RUN) * sizeof *part);
            gg_x86_put_1(dst + r, g->mr, bytes_of(part, bias));
        }
    }
}

/* 32 floats to 8 quads; returns their scale. */
static float round_run(const float *x, int32_t *quad)
{
    __m256i m = _mm256_setzero_si256(), v[4];
    for (int i = 0; i < RUN; i += 8)
        m = _mm256_max_epi32(m, gg_x86_abs_bits(_mm256_loadu_ps(x + i)));
    const uint32_t bits = (uint32_t)gg_x86_hmax_epi32(m);
    const float max = gg_bytes_f32_from_bits(bits);
    if (bits >= 0x7f800000 || max < GG_GEMM_INT_LEAST) {
        memset(quad, 0, RUN);
        return bits >= 0x7f800000 ? NAN : 0;
    }
    const __m256 inverse = _mm256_set1_ps(GG_GEMM_I8_MOST / max);
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_cvtps_epi32(
            _mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
    _mm256_storeu_si256((__m256i *)(void *)quad,
                        gg_x86_pack_bytes(v[0], v[1], v[2], v[3], 1));
    return max / GG_GEMM_I8_MOST;
}

/* Sums of 16 steps. */
static void sums_16(const int32_t *quad, int32_t sum[16])
{
    const __m256i one = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
    for (int i = 0; i < 8; i++) {
        __m256i v = _mm256_maddubs_epi16(one, gg_x86_load256(quad + 8 * i));
        v = _mm256_madd_epi16(v, ones);
        v = _mm256_hadd_epi32(v, v);
        v = _mm256_hadd_epi32(v, v);
        sum[2 * i] = _mm256_extract_epi32(v, 0);
        sum[2 * i + 1] = _mm256_extract_epi32(v, 4);
    }
}

static int32_t group(const int32_t sum[16], unsigned i, unsigned n)
{
    return n == 16 ? sum[i] : sum[2 * i] + sum[2 * i + 1];
}

static void put_column(const struct gg_kern_gemm *g, struct gg_gemm_i8_x to,
                       size_t c, const float *x)
{
    const unsigned n_scales = g->ints.n_scales, n_mins = g->ints.n_mins;
    int32_t quad[QUADS], sum[16];
    for (size_t r = 0; r < STEPS / RUN; r++)
        to.s[r * g->nr + c] = round_run(x + r * RUN, quad + r * (RUN / 4));
    for (size_t t = 0; t < QUADS; t++)
        memcpy(to.i + (t * g->nr + c) * 4, &quad[t], 4);
    sums_16(quad, sum);
    for (unsigned r = 0; r < n_scales; r++)
        to.begin[r * g->nr + c] =
            -(int32_t)g->ints.bias * group(sum, r, n_scales);
    for (unsigned m = 0; m < n_mins; m++)
        to.sum[m * g->nr + c] =
            (float)group(sum, m, n_mins) *
            to.s[m * GG_GEMM_I8_SCALES / n_mins * g->nr + c];
}

void gg_kern_i8_pack_x_avx2(const struct gg_kern_gemm *g, void *panel,
                            size_t first, const float *src, size_t stride,
                            size_t n, size_t k)
{
    for (size_t b = 0; b * STEPS < k; b++)
        for (size_t c = 0; c < n; c++) {
            float part[STEPS];
            put_column(g, gg_gemm_i8_x_at(g, panel, b), first + c,
                       gg_x86_block_256(src + c * stride, b * STEPS, k, part));
        }
}
