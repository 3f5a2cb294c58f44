/* SPDX-License-Identifier: MIT */
/* enc_iq4_impl.h - encoders of IQ4_NL and IQ4_XS, one lane per 32 elements
 *
 * The nearest of 16 levels is found by four comparisons with midpoints. That
 * is exact: midpoints are halves of integers below 256, and next to one of
 * them the reference's differences v - a and b - v have no rounding error,
 * being multiples of v's last place that are not larger than v's neighbours;
 * farther off rounding cannot change which difference is less. The level's file
 * defines FN and, after this, levels_of.
 */
/* Midpoints below levels 1, 3, 5 ... 15. */
static const float mid_odd[8] = { -115.5f, -74.0f, -42.0f, -16.0f,
                                  7.0f,    31.5f,  61.0f,  101.0f };

static inline __m256 load_eight(const float *p)
{
    return _mm256_loadu_ps(p);
}

/* Index of the nearest level of each v (not NaN). */
static inline __m256i level_index(__m256 v, __m256 *upper)
{
    const __m256 quarter =
        _mm256_setr_ps(-93.5f, -28.5f, 19.0f, 79.0f, 0, 0, 0, 0);
    __m256 c = _mm256_cmp_ps(v, _mm256_set1_ps(-4.5f), _CMP_GE_OQ);
    __m256 t =
        m256_select_ps(_mm256_set1_ps(-57.0f), _mm256_set1_ps(45.5f), c);
    __m256i i = _mm256_castps_si256(c);
    *upper = c;
    /* a comparison that holds is -1: i counts downwards */
    c = _mm256_cmp_ps(v, t, _CMP_GE_OQ);
    i = _mm256_add_epi32(_mm256_add_epi32(i, i), _mm256_castps_si256(c));
    i = _mm256_sub_epi32(_mm256_setzero_si256(), i);
    c = _mm256_cmp_ps(v, _mm256_permutevar8x32_ps(quarter, i), _CMP_GE_OQ);
    i = _mm256_sub_epi32(_mm256_add_epi32(i, i), _mm256_castps_si256(c));
    c = _mm256_cmp_ps(v, _mm256_permutevar8x32_ps(load_eight(mid_odd), i),
                      _CMP_GE_OQ);
    return _mm256_sub_epi32(_mm256_add_epi32(i, i), _mm256_castps_si256(c));
}

/* The nearest level of each v. */
static inline struct pair levels_of(struct pair v);

static inline void level_sums(const struct gg_kern_lanes *l, struct pair inv,
                              struct pair *sum_qx, struct pair *sum_qq)
{
    *sum_qx = *sum_qq = pair_set(0);
    for (int i = 0; i < 32; i++) {
        struct pair x = pair_load(l->x[i]), q = levels_of(mul_pairs(inv, x));
        struct pair wq = mul_pairs(pair_load(l->w[i]), q);
        *sum_qx = add_pairs(*sum_qx, mul_pairs(wq, x));
        *sum_qq = add_pairs(*sum_qq, mul_pairs(wq, q));
    }
}

/* Scales of 16 groups of 32 finite elements. */
static void fit_levels(const struct gg_kern_lanes *l, float scales[16])
{
    struct pair amax = pair_set(0), max = amax, zero = amax;
    for (int i = 0; i < 32; i++) {
        struct pair x = pair_load(l->x[i]), a = magnitude_of(x);
        max = choose_pair(less_pairs(amax, a), x, max);
        amax = greater_of(amax, a);
    }
    pair_mask dead = less_pairs(amax, pair_set(GG_ENC_ZERO));
    struct pair inv =
        quot_pairs(pair_set(1), quot_pairs(negative_of(max), pair_set(-127)));
    struct pair qx, qq, scale, best;
    level_sums(l, keep_without(inv, dead), &qx, &qq);
    scale = keep_within(quot_pairs(qx, qq), less_pairs(zero, qq));
    best = mul_pairs(scale, qx);
    for (int k = -7; k <= 7; k++) {
        inv = quot_pairs(pair_set((float)k - 127), max);
        level_sums(l, keep_without(inv, dead), &qx, &qq);
        pair_mask better =
            both_masks(less_pairs(zero, qq),
                       less_pairs(mul_pairs(best, qq), mul_pairs(qx, qx)));
        if (!any_lane(better))
            continue;
        scale = choose_pair(better, quot_pairs(qx, qq), scale);
        best = choose_pair(better, mul_pairs(scale, qx), best);
    }
    pair_store(scales, keep_without(scale, dead));
}

static float sigma2_of(const float *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum * (2.0f / (float)n);
}

static void put_levels(uint8_t *qs, const float *x, float inv)
{
    __m256 s = _mm256_set1_ps(inv), upper;
    __m256i v[4];
    for (int k = 0; k < 4; k++)
        v[k] =
            level_index(_mm256_mul_ps(s, _mm256_loadu_ps(x + 8 * k)), &upper);
    __m256i q = gg_v256_pack_bytes(v[0], v[1], v[2], v[3], 0);
    __m128i hi = _mm_slli_epi16(_mm256_extracti128_si256(q, 1), 4);
    _mm_storeu_si128((void *)qs, _mm_or_si128(_mm256_castsi256_si128(q), hi));
}

void FN(gg_kern_encode_iq4_nl)(const float *src, void *dst, size_t n_rows,
                               size_t row_len, const float *weight)
{
    const size_t size = sizeof(struct gg_block_iq4_nl);
    size_t n_block = row_len / 32, n = n_rows * n_block;
    uint8_t *out = dst;
    for (size_t i = 0; i < n; i += 16) {
        struct gg_kern_lanes l;
        float x[512], w[512], scale[16];
        size_t n_here = n - i < 16 ? n - i : 16;
        for (size_t g = 0; g < 16; g++) {
            size_t b = i + (g < n_here ? g : n_here - 1);
            const float *from = src + 32 * b;
            memcpy(x + 32 * g, from, 32 * sizeof *x);
            gg_v256_importances(
                from, weight ? weight + b % n_block * 32 : NULL,
                weight ? sigma2_of(from, 32) : 0, 32, w + 32 * g);
        }
        FN(gg_kern_lanes_load)(l.x, x, 32);
        FN(gg_kern_lanes_load)(l.w, w, 32);
        int fine = gg_v256_all_finite(x, 512);
        if (fine)
            fit_levels(&l, scale);
        for (size_t g = 0; g < n_here; g++, out += size) {
            const float *from = src + 32 * (i + g);
            if (!fine) {
                gg_kern_encode_iq4_nl_c(
                    from, out, 1, 32,
                    weight ? weight + (i + g) % n_block * 32 : NULL);
                continue;
            }
            gg_kern_put_half(out, scale[g]);
            float inv = scale[g] != 0 ? 1 / scale[g] : 0;
            if (inv * 0 == 0)
                put_levels(out + 2, from, inv);
            else
                gg_kern_encode_iq4_nl_c(
                    from, out, 1, 32,
                    weight ? weight + (i + g) % n_block * 32 : NULL);
        }
    }
}

/* A block by the fits of its eight parts. 0: left to the reference. */
static int iq4_xs_put(const float *x, const float *scale, uint8_t *out)
{
    struct gg_block_iq4_xs b;
    memset(&b, 0, sizeof b);
    float d = gg_kern_iq4_xs_scales(scale, &b);
    for (int s = 0; s < 8; s++) {
        float dl = d * (float)gg_kern_iq4_xs_scale(&b, s);
        float inv = dl != 0 ? 1 / dl : 0;
        if (!(inv * 0 == 0))
            return 0;
        put_levels(b.qs + 16 * s, x + 32 * s, inv);
    }
    GG_PUT_BLOCK(b, out, 0);
    return 1;
}

void FN(gg_kern_encode_iq4_xs)(const float *src, void *dst, size_t n_rows,
                               size_t row_len, const float *weight)
{
    const size_t size = sizeof(struct gg_block_iq4_xs);
    size_t n_block = row_len / 256, n = n_rows * n_block;
    uint8_t *out = dst;
    for (size_t i = 0; i < n; i += 2) {
        struct gg_kern_lanes l;
        float x[512], w[512], scale[16];
        const float *by[2] = { NULL, NULL };
        size_t n_here = n - i < 2 ? 1 : 2;
        for (size_t k = 0; k < 2; k++) {
            size_t b = i + (k < n_here ? k : 0);
            const float *from = src + 256 * b;
            if (weight)
                by[k] = weight + b % n_block * 256;
            memcpy(x + 256 * k, from, 256 * sizeof *x);
            gg_v256_importances(from, by[k], weight ? sigma2_of(from, 256) : 0,
                                256, w + 256 * k);
        }
        FN(gg_kern_lanes_load)(l.x, x, 32);
        FN(gg_kern_lanes_load)(l.w, w, 32);
        int fine = gg_v256_all_finite(x, 512);
        if (fine)
            fit_levels(&l, scale);
        for (size_t k = 0; k < n_here; k++, out += size)
            if (!fine || !iq4_xs_put(x + 256 * k, scale + 8 * k, out))
                gg_kern_encode_iq4_xs_c(x + 256 * k, out, 1, 256, by[k]);
    }
}
