/* SPDX-License-Identifier: MIT */
/* dots_tables.h - rows of 2-bit blocks, whose weights are looked up
 *
 * Included by dots_impl.h after its definitions and after these of the level's
 * file:
 *
 *     vf_codes(p)       LANES bytes, widened to 32 bits each
 *     vf_shift(c, n)    codes shifted right
 *     vf_four(p)        four floats, repeated
 *     vf_pick(t, c)     element of t that the low two bits of c select
 *
 * The weights of a sub-block take four values. They are computed once, rounded
 * as the decoder rounds them, and selected by codes that need no mask.
 */

/* level[s][q]: what code q of eight sub-blocks, from s on, stands for. */
static GG_ALWAYS_INLINE void levels_k2(float level[8][4], const float *scale,
                                       const float *min)
{
    const __m256 s = _mm256_loadu_ps(scale), m = _mm256_loadu_ps(min);
    __m256 v[4], a[2], b[2];
    GG_UNROLL
    for (int q = 0; q < 4; q++)
        v[q] = _mm256_sub_ps(_mm256_mul_ps(s, _mm256_set1_ps((float)q)), m);
    a[0] = _mm256_unpacklo_ps(v[0], v[1]); /* sub-blocks 0 and 1, 4 and 5 */
    a[1] = _mm256_unpackhi_ps(v[0], v[1]); /* 2 and 3, 6 and 7 */
    b[0] = _mm256_unpacklo_ps(v[2], v[3]);
    b[1] = _mm256_unpackhi_ps(v[2], v[3]);
    GG_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m256 first = _mm256_shuffle_ps(a[i], b[i], 0x44);
        const __m256 next = _mm256_shuffle_ps(a[i], b[i], 0xee);
        _mm_storeu_ps(level[2 * i], _mm256_castps256_ps128(first));
        _mm_storeu_ps(level[2 * i + 1], _mm256_castps256_ps128(next));
        _mm_storeu_ps(level[2 * i + 4], _mm256_extractf128_ps(first, 1));
        _mm_storeu_ps(level[2 * i + 5], _mm256_extractf128_ps(next, 1));
    }
}

/* Add 32 bytes of codes of four runs of 32. One half of a run has the levels at
 * level, the other those step floats further on. */
static GG_ALWAYS_INLINE void add_codes(TO *to, const uint8_t *qs,
                                       const float *level, size_t step)
{
    VC code[VECS];
    GG_UNROLL
    for (int v = 0; v < VECS; v++)
        code[v] = vf_codes(qs + v * LANES);
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        GG_UNROLL
        for (int v = 0; v < VECS; v++) {
            const VF four = vf_four(level + 2 * v / VECS * step);
            add_vector(to, vf_pick(four, vf_shift(code[v], 2 * k)), v);
        }
        end_run(to);
        level += 2 * step;
    }
}

static GG_ALWAYS_INLINE void each_q2_k_table(TO *to, const void *src, size_t n)
{
    struct rows r = { src };
    for (size_t i = 0; i < n / 256; i++) {
        struct subs scale, min;
        float level[16][4];
        take_k2(to, &r, &scale, &min);
        levels_k2(level, scale.by, min.by);
        levels_k2(level + 8, scale.by + 8, min.by + 8);
        GG_UNROLL
        for (int h = 0; h < 2; h++)
            add_codes(to, r.at + AT(q2_k, qs) + 32 * h, level[8 * h], 4);
        r.at += sizeof(struct gg_block_q2_k);
    }
}
#define EACH_Q2_K each_q2_k_table

static GG_ALWAYS_INLINE void each_tq2_0_table(TO *to, const void *src,
                                              size_t n)
{
    const __m128 code = _mm_setr_ps(-1, 0, 1, 2);
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const float d =
            gg_v256_half_ps(p + offsetof(struct gg_block_tq2_0, d));
        float level[4];
        _mm_storeu_ps(level, _mm_mul_ps(_mm_set1_ps(d), code));
        GG_UNROLL
        for (int h = 0; h < 2; h++)
            add_codes(to, p + 32 * h, level, 0);
        p += sizeof(struct gg_block_tq2_0);
    }
}
#define EACH_TQ2_0 each_tq2_0_table
