/* SPDX-License-Identifier: MIT */
/* enc_k_impl.h - encoders of Q2_K, Q4_K and Q5_K, one lane per sub-block
 *
 * The order of operations is the reference's, lane by lane (c/enc_k.c); blocks
 * with values that the vector search cannot take go to the reference. The
 * level's file defines FN.
 */

/* 32 codes, nearest((x + min) / scale), 0 .. q_max, 16 by each scale. */
static void requantize32(const float *x, const float scale[2],
                         const float min[2], int q_max, uint8_t *q)
{
    __m256i v[4];
    for (int i = 0; i < 4; i++) {
        __m256 t = _mm256_add_ps(_mm256_loadu_ps(x + 8 * i),
                                 _mm256_set1_ps(min[i / 2]));
        t = _mm256_div_ps(t, _mm256_set1_ps(scale[i / 2]));
        v[i] = gg_v256_clamp_epi32(gg_v256_nearest_epi32(t), 0, q_max);
    }
    _mm256_storeu_si256((void *)q,
                        gg_v256_pack_bytes(v[0], v[1], v[2], v[3], 0));
}

/* Codes of a group by the rounding that its fit found, as the reference. */
static void fit_codes(const float *x, int n, const struct gg_kern_lanes_fit *f,
                      int g, int q_max, uint8_t *q)
{
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)gg_kern_clamp(
            gg_kern_nearest(f->inv[g] * (x[i] - f->base[g])), 0, q_max);
}

/* Importances of 16 sub-blocks of n where none are given. */
static void plain_weights(struct gg_kern_lanes *l, int n, int abs_error)
{
    for (int i = 0; abs_error && i < n; i++)
        for (int g = 0; g < 16; g += 8)
            _mm256_storeu_ps(&l->w[i][g],
                             gg_v256_abs_ps(_mm256_loadu_ps(&l->x[i][g])));
    if (abs_error)
        return;
    for (int g = 0; g < 16; g += 8) {
        __m256 sum = _mm256_setzero_ps();
        for (int i = 0; i < n; i++) {
            __m256 x = _mm256_loadu_ps(&l->x[i][g]);
            sum = _mm256_add_ps(sum, _mm256_mul_ps(x, x));
        }
        __m256 mean =
            _mm256_sqrt_ps(_mm256_div_ps(sum, _mm256_set1_ps((float)n)));
        for (int i = 0; i < n; i++) {
            __m256 x = gg_v256_abs_ps(_mm256_loadu_ps(&l->x[i][g]));
            _mm256_storeu_ps(&l->w[i][g], _mm256_add_ps(mean, x));
        }
    }
}

/* Importances of n_block blocks: weight * sqrt(sigma2 + x^2), sigma2 being the
 * mean square times factor. Several sums run side by side. */
static void given_weights(const float *x, const float *const *weight,
                          int n_block, float factor, float *w)
{
    float sum[2] = { 0, 0 };
    for (int i = 0; i < 256; i++) {
        sum[0] += x[i] * x[i];
        if (n_block == 2)
            sum[1] += x[256 + i] * x[256 + i];
    }
    for (int b = 0; b < n_block; b++) {
        __m256 sigma2 = _mm256_set1_ps(factor * sum[b] / 256);
        for (int i = 0; i < 256; i += 8) {
            __m256 v = _mm256_loadu_ps(x + 256 * b + i);
            v = _mm256_sqrt_ps(_mm256_add_ps(sigma2, _mm256_mul_ps(v, v)));
            v = _mm256_mul_ps(_mm256_loadu_ps(weight[b] + i), v);
            _mm256_storeu_ps(w + 256 * b + i, v);
        }
    }
}

/* Functions of a type with scale and minimum. */
struct affine_kind {
    struct gg_kern_affine_type t;
    size_t size;
    void (*put)(const struct gg_kern_affine_block *a, uint8_t *out);
    gg_kern_encode_fn *reference;
};

/* Integer scales, then codes, of a block whose fits are lanes g and up. */
static void finish_block(const float *x, const struct gg_kern_affine_type *t,
                         struct gg_kern_lanes_fit *f, int g,
                         const float *sum_w, struct gg_kern_affine_block *b)
{
    float d, dmin;
    if (sum_w) {
        d = gg_kern_fit_positive(f->scale + g, sum_w + g, t->n_sub,
                                 t->scale_max, b->scale);
        dmin = gg_kern_fit_positive(f->min + g, sum_w + g, t->n_sub,
                                    t->scale_max, b->min);
    } else {
        d = gg_kern_plain_scale_codes(f->scale + g, t->n_sub, t->scale_max,
                                      b->scale);
        dmin = gg_kern_plain_scale_codes(f->min + g, t->n_sub, t->scale_max,
                                         b->min);
    }
    gg_kern_affine_store(t, sum_w != NULL, b);
    b->d = gg_kern_half_of(d);
    b->dmin = gg_kern_half_of(dmin);
    d = gg_dtype_f16_to_f32(b->d);
    dmin = gg_dtype_f16_to_f32(b->dmin);
    int per = 32 / t->sub; /* sub-blocks in 32 elements: 1 or 2 */
    for (int e = 0; e < 256; e += 32) {
        float s[2], m[2];
        for (int k = 0; k < 2; k++) {
            int j = e / t->sub + (per == 2 ? k : 0);
            s[k] = d * (float)b->scale[j];
            m[k] = dmin * (float)b->min[j];
        }
        requantize32(x + e, s, m, t->plain.q_max, b->q + e);
        for (int k = 0; k < per; k++)
            if (s[k] == 0)
                fit_codes(x + e + 16 * k, t->sub, f, g + e / t->sub + k,
                          t->plain.q_max, b->q + e + 16 * k);
    }
}

/* Encode the 512 / (sub * n_sub) blocks that fill 16 lanes. Returns 0 if the
 * search gives up. */
static int affine_blocks(const float *x, const float *const *weight,
                         const struct gg_kern_affine_type *t,
                         struct gg_kern_affine_block *b)
{
    struct gg_kern_lanes l;
    struct gg_kern_lanes_fit f;
    float sum_w[16];
    int n_block = 16 / t->n_sub;
    FN(gg_kern_lanes_load)(l.x, x, t->sub);
    if (weight) {
        float w[512];
        given_weights(x, weight, n_block, t->sub == 32 ? 2 : 1, w);
        FN(gg_kern_lanes_load)(l.w, w, t->sub);
        gg_v256_sum_lanes((const float(*)[16])l.w, t->sub, sum_w);
    } else {
        plain_weights(&l, t->sub, t->plain.abs_error);
    }
    if (!gg_v256_all_finite(x, 256 * (size_t)n_block) ||
        !FN(gg_kern_lanes_affine)(&l, t->sub,
                                  weight ? &t->weighted : &t->plain, &f))
        return 0;
    for (int k = 0; k < n_block; k++)
        finish_block(x + 256 * k, t, &f, k * t->n_sub, weight ? sum_w : NULL,
                     &b[k]);
    return 1;
}

static void encode_affine(const struct affine_kind *kind, const float *src,
                          uint8_t *out, size_t n_rows, size_t row_len,
                          const float *weight)
{
    size_t n_block = row_len / 256, n = n_rows * n_block;
    size_t step = (size_t)(16 / kind->t.n_sub);
    for (size_t i = 0; i < n; i += step) {
        struct gg_kern_affine_block a[2];
        size_t n_here = n - i < step ? 1 : step;
        const float *x = src + 256 * i, *w[2] = { NULL, NULL };
        float two[512];
        if (n_here < step) {
            memcpy(two, x, 256 * sizeof *two);
            memcpy(two + 256, x, 256 * sizeof *two);
            x = two;
        }
        for (size_t k = 0; weight && k < 2; k++)
            w[k] = weight + (i + (k < n_here ? k : 0)) % n_block * 256;
        int fine = affine_blocks(x, weight ? w : NULL, &kind->t, a);
        for (size_t k = 0; k < n_here; k++, out += kind->size) {
            if (fine)
                kind->put(&a[k], out);
            else
                kind->reference(x + 256 * k, out, 1, 256, w[k]);
        }
    }
}

static void put_nibbles(uint8_t *qs, const uint8_t q[256])
{
    const __m256i low = _mm256_set1_epi8(15);
    for (int k = 0; k < 4; k++) {
        __m256i lo = _mm256_and_si256(gg_v256_load256(q + 64 * k), low);
        __m256i hi = _mm256_and_si256(gg_v256_load256(q + 64 * k + 32), low);
        lo = _mm256_or_si256(lo, _mm256_slli_epi16(hi, 4));
        _mm256_storeu_si256((void *)(qs + 32 * k), lo);
    }
}

static void q2_k_put(const struct gg_kern_affine_block *a, uint8_t *out)
{
    struct gg_block_q2_k b;
    gg_bytes_store16le(&b.d, a->d);
    gg_bytes_store16le(&b.dmin, a->dmin);
    for (int j = 0; j < 16; j++)
        b.scales[j] = (uint8_t)(a->scale[j] | a->min[j] << 4);
    gg_v256_put_pairs(b.qs, a->q);
    GG_PUT_BLOCK(b, out, 0);
}

static void q4_k_put(const struct gg_kern_affine_block *a, uint8_t *out)
{
    struct gg_block_q4_k b;
    gg_bytes_store16le(&b.d, a->d);
    gg_bytes_store16le(&b.dmin, a->dmin);
    gg_kern_k4_pack(b.scales, a->scale, a->min);
    put_nibbles(b.qs, a->q);
    GG_PUT_BLOCK(b, out, 0);
}

static void q5_k_put(const struct gg_kern_affine_block *a, uint8_t *out)
{
    struct gg_block_q5_k b;
    gg_bytes_store16le(&b.d, a->d);
    gg_bytes_store16le(&b.dmin, a->dmin);
    gg_kern_k4_pack(b.scales, a->scale, a->min);
    put_nibbles(b.qs, a->q);
    /* bit 4 of the code of sub-block s becomes bit s */
    const __m256i one = _mm256_set1_epi8(1);
    __m256i qh = _mm256_setzero_si256();
    for (int s = 7; s >= 0; s--) {
        __m256i q = _mm256_srli_epi16(gg_v256_load256(a->q + 32 * s), 4);
        qh =
            _mm256_or_si256(_mm256_add_epi8(qh, qh), _mm256_and_si256(q, one));
    }
    _mm256_storeu_si256((void *)b.qh, qh);
    GG_PUT_BLOCK(b, out, 0);
}

void FN(gg_kern_encode_q2_k)(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    static const struct affine_kind kind = { GG_AFFINE_Q2_K,
                                             sizeof(struct gg_block_q2_k),
                                             q2_k_put, gg_kern_encode_q2_k_c };
    encode_affine(&kind, src, dst, n_rows, row_len, weight);
}

void FN(gg_kern_encode_q4_k)(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    static const struct affine_kind kind = { GG_AFFINE_Q4_K,
                                             sizeof(struct gg_block_q4_k),
                                             q4_k_put, gg_kern_encode_q4_k_c };
    encode_affine(&kind, src, dst, n_rows, row_len, weight);
}

void FN(gg_kern_encode_q5_k)(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    static const struct affine_kind kind = { GG_AFFINE_Q5_K,
                                             sizeof(struct gg_block_q5_k),
                                             q5_k_put, gg_kern_encode_q5_k_c };
    encode_affine(&kind, src, dst, n_rows, row_len, weight);
}
