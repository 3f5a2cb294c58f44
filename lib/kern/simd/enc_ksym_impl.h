/* SPDX-License-Identifier: MIT */
/* enc_ksym_impl.h - encoders of Q3_K and Q6_K, one lane per sub-block
 *
 * The order of operations is the reference's, lane by lane (c/enc_k.c); blocks
 * with values that are not finite go to the reference. The level's file defines
 * FN.
 */

/* Codes of a block: nearest(x / scale) + half for each 16 elements; of no use
 * where a scale is zero. */
static void symmetric_codes(const float *x, const float scale[16], int half,
                            uint8_t q[256])
{
    for (int j = 0; j < 16; j += 2) {
        __m256i v[4];
        for (int i = 0; i < 4; i++) {
            __m256 t = _mm256_loadu_ps(x + 16 * j + 8 * i);
            t = _mm256_div_ps(t, _mm256_set1_ps(scale[j + i / 2]));
            v[i] = _mm256_add_epi32(
                gg_v256_clamp_epi32(gg_v256_nearest_epi32(t), -half, half - 1),
                _mm256_set1_epi32(half));
        }
        _mm256_storeu_si256((void *)(q + 16 * j),
                            gg_v256_pack_bytes(v[0], v[1], v[2], v[3], 0));
    }
}

/* Codes of group j as its fit found them, 0 for a group of zeros. */
static void fit_signed_codes(const float *x, const struct gg_kern_lanes_fit *f,
                             int j, int half, uint8_t q[256])
{
    float inv = f->inv[j];
    for (int i = 16 * j; i < 16 * j + 16; i++)
        q[i] = inv == 0 ? 0
                        : (uint8_t)(gg_kern_clamp(gg_kern_nearest(inv * x[i]),
                                                  -half, half - 1) +
                                    half);
}

static void square_weights(struct gg_kern_lanes *l)
{
    for (int i = 0; i < 256; i += 8) {
        __m256 v = _mm256_loadu_ps(&l->x[i / 16][i % 16]);
        _mm256_storeu_ps(&l->w[i / 16][i % 16], _mm256_mul_ps(v, v));
    }
}

/* Four codes of two bits a byte, 32 apart. */
static void put_q3(struct gg_block_q3_k *b, const uint8_t q[256])
{
    const __m256i one = _mm256_set1_epi8(1);
    __m256i h = _mm256_setzero_si256();
    for (int s = 7; s >= 0; s--) {
        __m256i v = _mm256_srli_epi16(gg_v256_load256(q + 32 * s), 2);
        h = _mm256_or_si256(_mm256_add_epi8(h, h), _mm256_and_si256(v, one));
    }
    _mm256_storeu_si256((void *)b->hmask, h);
    gg_v256_put_pairs(b->qs, q);
}

/* A block's scales as bytes, then its codes; plain ones (fit NULL) of groups
 * whose scale became zero are those of their fit. */
static void put_q3_k(const float *x, float d, const uint8_t code[16],
                     const struct gg_kern_lanes_fit *fit, void *dst)
{
    struct gg_block_q3_k b;
    uint8_t q[256];
    float scale[16];
    gg_kern_put_half(&b.d, d);
    gg_kern_k3_pack(b.scales, code);
    for (int j = 0; j < 16; j++)
        scale[j] = gg_kern_get_half(&b.d) * (float)(code[j] - 32);
    symmetric_codes(x, scale, 4, q);
    for (int j = 0; j < 16; j++) {
        if (scale[j] == 0 && fit)
            fit_signed_codes(x, fit, j, 4, q);
        else if (scale[j] == 0)
            gg_kern_fit_refined(x + 16 * j, 16, 4, q + 16 * j);
    }
    put_q3(&b, q);
    GG_PUT_BLOCK(b, dst, 0);
}

static void q3_k_weighted(const float *x, const float *weight, void *dst)
{
    struct gg_kern_lanes l;
    struct gg_kern_lanes_fit f;
    uint8_t code[16];
    float w[256], sum_w[16], sum2 = 0, d;
    for (int i = 0; i < 256; i++)
        sum2 += x[i] * x[i];
    __m256 sigma2 = _mm256_set1_ps(2 * sum2 / 256);
    for (int i = 0; i < 256; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        v = _mm256_sqrt_ps(_mm256_add_ps(sigma2, _mm256_mul_ps(v, v)));
        v = _mm256_mul_ps(_mm256_loadu_ps(weight + i), v);
        _mm256_storeu_ps(w + i, v);
    }
    FN(gg_kern_lanes_load)(l.x, x, 16);
    FN(gg_kern_lanes_load)(l.w, w, 16);
    gg_v256_sum_lanes((const float(*)[16])l.w, 16, sum_w);
    FN(gg_kern_lanes_symmetric)(&l, 16, 4, &f);
    d = gg_kern_fit_symmetric(f.scale, sum_w, 16, 32, code);
    put_q3_k(x, d, code, &f, dst);
}

void FN(gg_kern_encode_q3_k)(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    enum { BATCH = GG_REFINED_MAX / 16 };
    const size_t size = sizeof(struct gg_block_q3_k);
    size_t n_block = row_len / 256, n = n_rows * n_block;
    uint8_t *out = dst, code[16];
    float scale[GG_REFINED_MAX];
    for (size_t i = 0; i < n; i++, src += 256, out += size) {
        const float *w = weight ? weight + i % n_block * 256 : NULL;
        const float *s = scale + i % BATCH * 16;
        if (!weight && i % BATCH == 0)
            gg_kern_scales_refined_256(
                src, (int)(n - i < BATCH ? n - i : BATCH) * 16, scale);
        if (!gg_v256_all_finite(src, 256))
            gg_kern_encode_q3_k_c(src, out, 1, 256, w);
        else if (weight)
            q3_k_weighted(src, w, out);
        else
            put_q3_k(src, gg_kern_q3_k_scale_codes(s, code), code, NULL, out);
    }
}

static void put_q6(struct gg_block_q6_k *b, const uint8_t q[256])
{
    const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(3);
    for (int h = 0; h < 2; h++, q += 128) {
        __m256i v[4], hi = _mm256_setzero_si256();
        for (int r = 3; r >= 0; r--) {
            v[r] = gg_v256_load256(q + 32 * r);
            hi = _mm256_or_si256(
                _mm256_slli_epi16(hi, 2),
                _mm256_and_si256(_mm256_srli_epi16(v[r], 4), two));
            v[r] = _mm256_and_si256(v[r], low);
        }
        for (int k = 0; k < 2; k++)
            _mm256_storeu_si256(
                (void *)(b->ql + 64 * h + 32 * k),
                _mm256_or_si256(v[k], _mm256_slli_epi16(v[k + 2], 4)));
        _mm256_storeu_si256((void *)(b->qh + 32 * h), hi);
    }
}

static void q6_k_block(const float *x, const float *weight, void *dst)
{
    struct gg_kern_lanes l;
    struct gg_kern_lanes_fit f;
    struct gg_block_q6_k b;
    uint8_t q[256];
    float scale[16];
    FN(gg_kern_lanes_load)(l.x, x, 16);
    if (weight)
        FN(gg_kern_lanes_load)(l.w, weight, 16);
    else
        square_weights(&l);
    FN(gg_kern_lanes_symmetric)(&l, 16, 32, &f);
    if (!gg_kern_q6_k_scales(f.scale, &b)) {
        memset(dst, 0, sizeof b);
        return;
    }
    for (int j = 0; j < 16; j++)
        scale[j] = gg_kern_get_half(&b.d) * (float)b.scales[j];
    symmetric_codes(x, scale, 32, q);
    for (int j = 0; j < 16; j++)
        if (scale[j] == 0)
            fit_signed_codes(x, &f, j, 32, q);
    put_q6(&b, q);
    GG_PUT_BLOCK(b, dst, 0);
}

void FN(gg_kern_encode_q6_k)(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256, n = n_rows * n_block;
    uint8_t *out = dst;
    for (size_t i = 0; i < n; i++) {
        const float *w = weight ? weight + i % n_block * 256 : NULL;
        if (gg_v256_all_finite(src, 256))
            q6_k_block(src, w, out);
        else
            gg_kern_encode_q6_k_c(src, out, 1, 256, w);
        src += 256;
        out += sizeof(struct gg_block_q6_k);
    }
}
