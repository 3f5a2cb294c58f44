/* enc_k_avx2.c - encoders of 256-element blocks, one lane per sub-block
 *
 * The order of operations is the reference's, lane by lane (c/enc_k.c); blocks
 * with values that the vector search cannot take go to the reference.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_k.h"
#include "kern/x86/enc_search_avx2.h"
#include "kern/x86/x86.h"

/* 32 codes: nearest((x + min) / scale), between lo and hi, plus bias. */
static void requantize32(const float *x, float min, float scale, int lo,
                         int hi, int bias, uint8_t *q)
{
    __m256 m = _mm256_set1_ps(min), s = _mm256_set1_ps(scale);
    __m256i v[4];
    for (int i = 0; i < 4; i++) {
        __m256 t = _mm256_add_ps(_mm256_loadu_ps(x + 8 * i), m);
        v[i] = gg_nearest_epi32(_mm256_div_ps(t, s));
        v[i] = _mm256_add_epi32(gg_clamp_epi32(v[i], lo, hi),
                                _mm256_set1_epi32(bias));
    }
    _mm256_storeu_si256((void *)q,
                        gg_pack_bytes(v[0], v[1], v[2], v[3], 0));
}

/* Codes of a group by the rounding that its fit found, as the reference. */
static void fit_codes(const float *x, int n, const struct gg_lanes_fit *f,
                      int g, int lo, int hi, int bias, uint8_t *q)
{
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)(gg_clamp(gg_nearest(f->inv[g] * (x[i] - f->base[g])),
                                  lo, hi) + bias);
}

/* Importances of sub-blocks of 32 where none are given. */
static void plain_weights(struct gg_lanes *l)
{
    for (int g = 0; g < 16; g += 8) {
        __m256 sum = _mm256_setzero_ps();
        for (int i = 0; i < 32; i++) {
            __m256 x = _mm256_loadu_ps(&l->x[i][g]);
            sum = _mm256_add_ps(sum, _mm256_mul_ps(x, x));
        }
        __m256 mean =
            _mm256_sqrt_ps(_mm256_div_ps(sum, _mm256_set1_ps(32.0f)));
        for (int i = 0; i < 32; i++) {
            __m256 x = gg_abs_ps(_mm256_loadu_ps(&l->x[i][g]));
            _mm256_storeu_ps(&l->w[i][g], _mm256_add_ps(mean, x));
        }
    }
}

/* Two blocks' importances: weight * sqrt(sigma2 + x^2), natural order. */
static void given_weights(const float *x, const float *const weight[2],
                          float w[512])
{
    float sum[2] = { 0, 0 };
    for (int i = 0; i < 256; i++) {
        sum[0] += x[i] * x[i];
        sum[1] += x[256 + i] * x[256 + i];
    }
    for (int b = 0; b < 2; b++) {
        __m256 sigma2 = _mm256_set1_ps(2 * sum[b] / 256);
        for (int i = 0; i < 256; i += 8) {
            __m256 v = _mm256_loadu_ps(x + 256 * b + i);
            v = _mm256_sqrt_ps(_mm256_add_ps(sigma2, _mm256_mul_ps(v, v)));
            v = _mm256_mul_ps(_mm256_loadu_ps(weight[b] + i), v);
            _mm256_storeu_ps(w + 256 * b + i, v);
        }
    }
}

/* Two neighbouring blocks of a type with sub-blocks of 32. 0: give up. */
static int affine_two(const float *x, const float *const weight[2],
                      const struct gg_affine_type *t,
                      struct gg_affine_block b[2])
{
    struct gg_lanes l;
    struct gg_lanes_fit f;
    float sum_w[16];
    gg_lanes_load_avx2(l.x, x, 32);
    if (weight[0]) {
        float w[512];
        given_weights(x, weight, w);
        gg_lanes_load_avx2(l.w, w, 32);
        for (int g = 0; g < 16; g += 8) {
            __m256 sum = _mm256_setzero_ps();
            for (int i = 0; i < 32; i++)
                sum = _mm256_add_ps(sum, _mm256_loadu_ps(&l.w[i][g]));
            _mm256_storeu_ps(sum_w + g, sum);
        }
    } else {
        plain_weights(&l);
    }
    if (!gg_all_finite(x, 512) ||
        !gg_lanes_affine_avx2(&l, 32, weight[0] ? &t->weighted : &t->plain,
                              &f))
        return 0;
    for (int k = 0; k < 2; k++) {
        float *scale = f.scale + 8 * k, *min = f.min + 8 * k, d, dmin;
        if (weight[0]) {
            d = gg_fit_positive(scale, sum_w + 8 * k, 8, t->scale_max,
                                b[k].scale);
            dmin = gg_fit_positive(min, sum_w + 8 * k, 8, t->scale_max,
                                   b[k].min);
        } else {
            d = gg_plain_scale_codes(scale, 8, t->scale_max, b[k].scale);
            dmin = gg_plain_scale_codes(min, 8, t->scale_max, b[k].min);
        }
        b[k].d = gg_half_of(d);
        b[k].dmin = gg_half_of(dmin);
        d = gg_f16_to_f32(b[k].d);
        dmin = gg_f16_to_f32(b[k].dmin);
        for (int j = 0; j < 8; j++) {
            const float *xs = x + 256 * k + 32 * j;
            float s = d * (float)b[k].scale[j];
            if (s != 0)
                requantize32(xs, dmin * (float)b[k].min[j], s, 0,
                             t->plain.q_max, 0, b[k].q + 32 * j);
            else
                fit_codes(xs, 32, &f, 8 * k + j, 0, t->plain.q_max, 0,
                          b[k].q + 32 * j);
        }
    }
    return 1;
}

static void q4_k_put(const struct gg_affine_block *a, void *dst, size_t i)
{
    struct gg_block_q4_k b;
    gg_store16le(&b.d, a->d);
    gg_store16le(&b.dmin, a->dmin);
    gg_k4_pack(b.scales, a->scale, a->min);
    for (int k = 0; k < 4; k++) {
        __m256i lo = gg_load256(a->q + 64 * k);
        __m256i hi = gg_load256(a->q + 64 * k + 32);
        hi = _mm256_or_si256(lo, _mm256_slli_epi16(hi, 4));
        _mm256_storeu_si256((void *)(b.qs + 32 * k), hi);
    }
    GG_PUT_BLOCK(b, dst, i);
}

void gg_encode_q4_k_avx2(const float *src, void *dst, size_t n_rows,
                         size_t row_len, const float *weight)
{
    static const struct gg_affine_type type = GG_AFFINE_Q4_K;
    size_t n_block = row_len / 256, n = n_rows * n_block;
    for (size_t i = 0; i < n; i += 2) {
        struct gg_affine_block a[2];
        size_t n_here = n - i < 2 ? 1 : 2;
        const float *x = src + 256 * i, *w[2] = { NULL, NULL };
        float two[512];
        if (n_here == 1) {
            memcpy(two, x, 256 * sizeof *two);
            memcpy(two + 256, x, 256 * sizeof *two);
            x = two;
        }
        if (weight) {
            w[0] = weight + i % n_block * 256;
            w[1] = weight + (i + n_here - 1) % n_block * 256;
        }
        if (affine_two(x, w, &type, a)) {
            for (size_t k = 0; k < n_here; k++)
                q4_k_put(&a[k], dst, i + k);
            continue;
        }
        for (size_t k = 0; k < n_here; k++)
            gg_encode_q4_k_c(x + 256 * k,
                             (uint8_t *)dst +
                                 (i + k) * sizeof(struct gg_block_q4_k),
                             1, 256, w[k]);
    }
}

static void q6_k_block(const float *x, const float *weight, void *dst)
{
    struct gg_lanes l;
    struct gg_lanes_fit f;
    struct gg_block_q6_k b;
    uint8_t q[256];
    gg_lanes_load_avx2(l.x, x, 16);
    if (weight) {
        gg_lanes_load_avx2(l.w, weight, 16);
    } else {
        for (int i = 0; i < 256; i += 8) {
            __m256 v = _mm256_loadu_ps(&l.x[i / 16][i % 16]);
            _mm256_storeu_ps(&l.w[i / 16][i % 16], _mm256_mul_ps(v, v));
        }
    }
    gg_lanes_symmetric_avx2(&l, 16, 32, &f);
    if (!gg_q6_k_scales(f.scale, &b)) {
        memset(dst, 0, sizeof b);
        return;
    }
    float half = gg_get_half(&b.d);
    for (int j = 0; j < 16; j += 2) {
        float s[2] = { half * (float)b.scales[j],
                       half * (float)b.scales[j + 1] };
        __m256i v[4];
        for (int i = 0; i < 4; i++) {
            __m256 t = _mm256_loadu_ps(x + 16 * j + 8 * i);
            t = _mm256_div_ps(t, _mm256_set1_ps(s[i / 2]));
            v[i] = _mm256_add_epi32(
                gg_clamp_epi32(gg_nearest_epi32(t), -32, 31),
                _mm256_set1_epi32(32));
        }
        _mm256_storeu_si256((void *)(q + 16 * j),
                            gg_pack_bytes(v[0], v[1], v[2], v[3], 0));
        for (int k = 0; k < 2; k++)
            if (s[k] == 0) {
                if (f.inv[j + k] != 0)
                    fit_codes(x + 16 * (j + k), 16, &f, j + k, -32, 31, 32,
                              q + 16 * (j + k));
                else
                    memset(q + 16 * (j + k), 0, 16);
            }
    }
    gg_q6_k_pack(&b, q);
    GG_PUT_BLOCK(b, dst, 0);
}

void gg_encode_q6_k_avx2(const float *src, void *dst, size_t n_rows,
                         size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256, n = n_rows * n_block;
    uint8_t *out = dst;
    for (size_t i = 0; i < n; i++) {
        const float *w = weight ? weight + i % n_block * 256 : NULL;
        if (gg_all_finite(src, 256))
            q6_k_block(src, w, out);
        else
            gg_encode_q6_k_c(src, out, 1, 256, w);
        src += 256;
        out += sizeof(struct gg_block_q6_k);
    }
}
