/* enc_k.c - reference encoders of Q4_K and Q6_K
 *
 * A fit per sub-block, then the block's scales are made small integers and
 * every element is rounded again by what a decoder will see. Source:
 * quantize_row_q*_K_ref and _impl of ggml-quants.c (ggml commit d99724f).
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_k.h"

/* Importances of a sub-block where none are given. */
static void plain_weights(float *w, const float *x, int n,
                          const struct gg_affine_search *s)
{
    float mean = 0;
    if (!s->abs_error) {
        for (int i = 0; i < n; i++)
            mean += x[i] * x[i];
        mean = sqrtf(mean / (float)n);
        for (int i = 0; i < n; i++)
            w[i] = mean + fabsf(x[i]);
    } else {
        for (int i = 0; i < n; i++)
            w[i] = fabsf(x[i]);
    }
}

/* Round the elements by the scales that a decoder will see. A sub-block whose
 * scale became zero keeps the codes of its fit. */
static void affine_requantize(const float *x, const struct gg_affine_type *t,
                              struct gg_affine_block *b)
{
    float d = gg_f16_to_f32(b->d), dmin = gg_f16_to_f32(b->dmin);
    for (int j = 0; j < t->n_sub; j++) {
        float scale = d * (float)b->scale[j];
        float min = dmin * (float)b->min[j];
        if (scale == 0)
            continue;
        for (int i = t->sub * j; i < t->sub * (j + 1); i++)
            b->q[i] = (uint8_t)gg_clamp(gg_nearest((x[i] + min) / scale), 0,
                                        t->plain.q_max);
    }
}

static void affine_plain(const float *x, const struct gg_affine_type *t,
                         struct gg_affine_block *b)
{
    float scale[16], min[16], w[GG_ENC_MAX_N];
    for (int j = 0; j < t->n_sub; j++) {
        const float *xs = x + t->sub * j;
        plain_weights(w, xs, t->sub, &t->plain);
        scale[j] = gg_fit_affine(xs, w, t->sub, &t->plain, b->q + t->sub * j,
                                 &min[j]);
    }
    b->d = gg_half_of(
        gg_plain_scale_codes(scale, t->n_sub, t->scale_max, b->scale));
    b->dmin =
        gg_half_of(gg_plain_scale_codes(min, t->n_sub, t->scale_max, b->min));
    affine_requantize(x, t, b);
}

static void affine_weighted(const float *x, const float *weight,
                            const struct gg_affine_type *t,
                            struct gg_affine_block *b)
{
    float scale[16], min[16], sum_w[16], w[GG_ENC_MAX_N], sum2 = 0;
    for (int i = 0; i < 256; i++)
        sum2 += x[i] * x[i];
    /* twice the mean square; the 16-element types take it once */
    float sigma2 = (t->sub == 32 ? 2 * sum2 : sum2) / 256;
    for (int j = 0; j < t->n_sub; j++) {
        const float *xs = x + t->sub * j;
        sum_w[j] = 0;
        for (int i = 0; i < t->sub; i++) {
            w[i] = weight[t->sub * j + i] * sqrtf(sigma2 + xs[i] * xs[i]);
            sum_w[j] += w[i];
        }
        scale[j] = gg_fit_affine(xs, w, t->sub, &t->weighted,
                                 b->q + t->sub * j, &min[j]);
    }
    b->d = gg_half_of(
        gg_fit_positive(scale, sum_w, t->n_sub, t->scale_max, b->scale));
    b->dmin = gg_half_of(
        gg_fit_positive(min, sum_w, t->n_sub, t->scale_max, b->min));
    affine_requantize(x, t, b);
}

static void affine_encode(const float *x, const float *weight,
                          const struct gg_affine_type *t, struct gg_affine_block *b)
{
    if (weight)
        affine_weighted(x, weight, t, b);
    else
        affine_plain(x, t, b);
}

void gg_encode_q4_k_c(const float *src, void *dst, size_t n_rows,
                      size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_affine_block a;
        struct gg_block_q4_k b;
        affine_encode(src, weight ? weight + i % n_block * 256 : NULL,
                      &gg_affine_q4_k, &a);
        gg_store16le(&b.d, a.d);
        gg_store16le(&b.dmin, a.dmin);
        gg_k4_pack(b.scales, a.scale, a.min);
        gg_k4_pack_nibbles(b.qs, a.q);
        GG_PUT_BLOCK(b, dst, i);
    }
}

static void q6_k_block(const float *x, const float *weight,
                       struct gg_block_q6_k *b)
{
    uint8_t q[256];
    float scale[16], w[16];
    for (int j = 0; j < 16; j++) {
        const float *xs = x + 16 * j;
        for (int i = 0; i < 16; i++)
            w[i] = weight ? weight[16 * j + i] : xs[i] * xs[i];
        scale[j] = gg_fit_symmetric(xs, w, 16, 32, q + 16 * j);
    }
    if (!gg_q6_k_scales(scale, b)) {
        memset(b, 0, sizeof *b);
        return;
    }
    float half = gg_get_half(&b->d);
    for (int e = 0; e < 256; e++) {
        float d = half * (float)b->scales[e / 16];
        if (d != 0)
            q[e] = (uint8_t)(gg_clamp(gg_nearest(x[e] / d), -32, 31) + 32);
    }
    gg_q6_k_pack(b, q);
}

void gg_encode_q6_k_c(const float *src, void *dst, size_t n_rows,
                      size_t row_len, const float *weight)
{
    size_t n_block = row_len / 256;
    for (size_t i = 0; i < n_rows * n_block; i++, src += 256) {
        struct gg_block_q6_k b;
        q6_k_block(src, weight ? weight + i % n_block * 256 : NULL, &b);
        GG_PUT_BLOCK(b, dst, i);
    }
}
