/* SPDX-License-Identifier: MIT */
/* enc_fork_ks.c - reference encoders of IQ3_KS, IQ4_KS, IQ5_KS and IQ4_KSS
 *
 * The scales of 32 elements are integers times the row's. They are found for
 * the whole row first, and kept in the row's blocks until they are rounded.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_fork.h"

/* The beginning of a block until its scales are rounded. */
struct found {
    float scale[8];
    uint8_t shifted; /* bit s: sub-block s */
};

/* A block during encoding. */
struct block {
    float w[256];
    uint8_t q[256];
    struct found f;
    int s[8];     /* scales as integers */
    bool half[8]; /* shifted */
};

static void get_found(struct found *f, const uint8_t *p)
{
    for (int s = 0; s < 8; s++)
        f->scale[s] = gg_kern_fork_load(p + 4 * s);
    f->shifted = p[32];
}

static void put_found(uint8_t *p, const struct found *f)
{
    for (int s = 0; s < 8; s++)
        gg_kern_fork_store(p + 4 * s, f->scale[s]);
    p[32] = f->shifted;
}

typedef struct gg_kern_fork_fit find_fn(const struct gg_kern_fork_levels *t,
                                        const float *x, const float *w);

/* Find the scales of a row and keep them in its blocks, `size' bytes each.
 * Returns the one of largest magnitude. */
static float find_scales(uint8_t *blocks, size_t size, find_fn *find,
                         const struct gg_kern_fork_levels *t,
                         const struct gg_kern_fork_weight_rule *rule,
                         const float *x, size_t n, const float *importance)
{
    float max = 0, w[256];
    for (size_t i = 0; i < n; i += 256, blocks += size) {
        struct found f = { .shifted = 0 };
        gg_kern_fork_weights(w, x + i, importance ? importance + i : NULL,
                             rule);
        for (int s = 0; s < 8; s++) {
            struct gg_kern_fork_fit fit = find(t, x + i + 32 * s, w + 32 * s);
            f.scale[s] = fit.d;
            f.shifted |= (uint8_t)(fit.shifted << s);
            if (fabsf(fit.d) > fabsf(max))
                max = fit.d;
        }
        put_found(blocks, &f);
    }
    return max;
}

/* ------------------------------------------- IQ3_KS, IQ4_KS, IQ5_KS --- */

static const struct gg_kern_fork_weight_rule rule = { 32, 2, 0 };

static struct gg_kern_fork_fit find_3(const struct gg_kern_fork_levels *t,
                                      const float *x, const float *w)
{
    static const struct gg_kern_fork_search s = { 5, 1, true };
    return gg_kern_fork_search(t, &s, x, w, 32);
}

static struct gg_kern_fork_fit find_4(const struct gg_kern_fork_levels *t,
                                      const float *x, const float *w)
{
    static const struct gg_kern_fork_search s = { 7, 1, false };
    return gg_kern_fork_search(t, &s, x, w, 32);
}

static struct gg_kern_fork_fit find_5(const struct gg_kern_fork_levels *t,
                                      const float *x, const float *w)
{
    static const struct gg_kern_fork_search s = { 5, 1, false };
    return gg_kern_fork_search(t, &s, x, w, 32);
}

/* Codes of 32 elements, element by element. */
static void code_sub(struct gg_kern_fork_sums *sum, uint8_t *q,
                     const struct gg_kern_fork_levels *t, const float *v,
                     float dl, float scale, const float *x, const float *w)
{
    float id = dl != 0 ? 1 / dl : 0;
    for (int j = 0; j < 32; j++) {
        q[j] = (uint8_t)gg_kern_fork_nearest(t, v, id * x[j]);
        gg_kern_fork_add(sum, w[j], v[q[j]] * scale, x[j]);
    }
}

/* Codes of 32 elements; sums of elements 16 apart are added first. */
static void code_pairs(struct gg_kern_fork_sums *sum, uint8_t *q,
                       const struct gg_kern_fork_levels *t, const float *v,
                       float dl, float scale, const float *x, const float *w)
{
    float id = dl != 0 ? 1 / dl : 0;
    for (int j = 0; j < 32; j++)
        q[j] = (uint8_t)gg_kern_fork_nearest(t, v, id * x[j]);
    for (int j = 0; j < 16; j++) {
        float a = v[q[j]] * scale, b = v[q[j + 16]] * scale;
        sum->qx += w[j] * a * x[j] + w[j + 16] * b * x[j + 16];
        sum->q2 += w[j] * a * a + w[j + 16] * b * b;
    }
}

/* The odd scale of IQ4_KS, IQ5_KS and IQ4_KSS. */
static int odd_scale(float id, float scale)
{
    int l = gg_kern_nearest(0.5f * (id * scale + 127.0f));
    return 2 * gg_kern_clamp(l, 0, 127) - 127;
}

typedef void code_fn(struct gg_kern_fork_sums *sum, uint8_t *q,
                     const struct gg_kern_fork_levels *t, const float *v,
                     float dl, float scale, const float *x, const float *w);

/* Codes of a block for the row's scale d; scale codes are b->s. */
static void code_block(struct gg_kern_fork_sums *sum, struct block *b,
                       const struct gg_kern_fork_levels *t, code_fn *code,
                       float d, const float *x, const float *importance)
{
    gg_kern_fork_weights(b->w, x, importance, &rule);
    for (int s = 0; s < 8; s++) {
        bool half = b->f.shifted >> s & 1;
        code(sum, b->q + 32 * s, t, t->v + (half ? t->n : 0),
             d * (float)b->s[s], (float)b->s[s], x + 32 * s, b->w + 32 * s);
    }
}

/* Encode a row of SIZE-byte blocks whose scale is at dst. INT_SCALE is the
 * integer of a scale v; PACK writes block b to y. */
#define ROW(NAME, HEADER, PUT_D, LIMIT, FIND, CODE, INT_SCALE, PACK)          \
    static void row_##NAME(uint8_t *dst, const struct gg_kern_fork_levels *t, \
                           const float *x, size_t n, const float *weight)     \
    {                                                                         \
        const size_t size = sizeof(struct gg_block_##NAME);                   \
        uint8_t *p = dst + (HEADER);                                          \
        struct gg_kern_fork_sums sum = { 0, 0 };                              \
        float max = find_scales(p, size, FIND, t, &rule, x, n, weight);       \
        float d = LIMIT, id = d != 0 ? 1 / d : 0;                             \
        PUT_D(dst, d);                                                        \
        if (d == 0) {                                                         \
            memset(p, 0, n / 256 * size);                                     \
            return;                                                           \
        }                                                                     \
        for (size_t i = 0; i < n; i += 256, p += size) {                      \
            struct gg_block_##NAME y;                                         \
            struct block b;                                                   \
            memset(&y, 0, sizeof y);                                          \
            get_found(&b.f, p);                                               \
            for (int s = 0; s < 8; s++) {                                     \
                float v = b.f.scale[s];                                       \
                b.s[s] = INT_SCALE;                                           \
            }                                                                 \
            code_block(&sum, &b, t, CODE, d, x + i,                           \
                       weight ? weight + i : NULL);                           \
            PACK(&y, &b);                                                     \
            memcpy(p, &y, size);                                              \
        }                                                                     \
        if (sum.q2 > 0)                                                       \
            PUT_D(dst, sum.qx / sum.q2);                                      \
    }

#define ROWS(NAME, HEADER, LEVELS)                                            \
    void gg_kern_encode_##NAME##_c(const float *src, void *dst,               \
                                   size_t n_rows, size_t row_len,             \
                                   const float *weight)                       \
    {                                                                         \
        struct gg_kern_fork_levels t;                                         \
        size_t size =                                                         \
            HEADER + row_len / 256 * sizeof(struct gg_block_##NAME);          \
        LEVELS(&t);                                                           \
        for (size_t r = 0; r < n_rows; r++)                                   \
            row_##NAME((uint8_t *)dst + r * size, &t, src + r * row_len,      \
                       row_len, weight);                                      \
    }

static void pack_iq3_ks(struct gg_block_iq3_ks *y, const struct block *b)
{
    unsigned extra = 0;
    for (int s = 0; s < 8; s++) {
        unsigned v = (unsigned)(b->s[s] + 16);
        y->scales[s % 4] |= (uint8_t)((v & 15) << 4 * (s / 4));
        extra |= v >> 4 << s;
    }
    extra |= (unsigned)b->f.shifted << 8;
    gg_bytes_store16le(&y->extra, (uint16_t)extra);
    gg_kern_pack_pairs(y->qs, b->q);
    gg_kern_fork_put_bits(y->qh, b->q, 2);
}
ROW(iq3_ks, 2, gg_kern_put_half, -max / 16, find_3, code_sub,
    gg_kern_clamp(gg_kern_nearest(id *v), -16, 15), pack_iq3_ks)
ROWS(iq3_ks, 2, gg_kern_fork_levels_3)

static uint8_t scale_byte(int scale, bool shifted)
{
    return (uint8_t)((scale + 127) | shifted);
}

static void pack_iq4_ks(struct gg_block_iq4_ks *y, const struct block *b)
{
    for (int s = 0; s < 8; s++)
        y->scales[s] = scale_byte(b->s[s], b->f.shifted >> s & 1);
    gg_kern_fork_put_nibbles(y->qs, b->q, 16);
}
ROW(iq4_ks, 4, gg_kern_fork_store, fabsf(max) / 127, find_4, code_pairs,
    odd_scale(id, v), pack_iq4_ks)
ROWS(iq4_ks, 4, gg_kern_fork_levels_4)

static void pack_iq5_ks(struct gg_block_iq5_ks *y, const struct block *b)
{
    for (int s = 0; s < 8; s++)
        y->scales[s] = scale_byte(b->s[s], b->f.shifted >> s & 1);
    gg_kern_fork_put_nibbles(y->qs, b->q, 32);
    gg_kern_fork_put_bits(y->qh, b->q, 4);
}
ROW(iq5_ks, 4, gg_kern_fork_store, fabsf(max) / 127, find_5, code_sub,
    odd_scale(id, v), pack_iq5_ks)
ROWS(iq5_ks, 4, gg_kern_fork_levels_5)

/* ------------------------------------------------------------ IQ4_KSS --- */

/* Element of nibble i (0..3) of word k (0..7) of 32 elements. */
static int element_of(int k, int i)
{
    return 2 * k + (i & 1) * 16 + (i >> 1);
}

static unsigned parity_of(unsigned v)
{
    v ^= v >> 8;
    v ^= v >> 4;
    return 0x6996u >> (v & 15) & 1;
}

/* Make the number of bits in four codes even: change the code that costs
 * least. v: the levels of the changed code; the cost is the difference to that
 * of the unchanged code's unshifted level. */
static void make_even(uint8_t q[4], const struct gg_kern_fork_levels *t,
                      const float *v, float dl, const float *x, const float *w)
{
    float best = 0;
    int at = -1, to = 0;
    if (!parity_of(q[0] ^ q[1] ^ q[2] ^ (unsigned)q[3]))
        return;
    for (int i = 0; i < 4; i++) {
        float diff0 = dl * t->v[q[i]] - x[i];
        for (int c = q[i] - 2; c <= q[i] + 2; c++) {
            if (c < 0 || c > 15 || !parity_of((unsigned)c ^ q[i]))
                continue;
            float diff1 = dl * v[c] - x[i];
            float score = w[i] * (diff1 * diff1 - diff0 * diff0);
            if (at < 0 || score < best) {
                best = score;
                at = i;
                to = c;
            }
        }
    }
    if (at >= 0)
        q[at] = (uint8_t)to;
}

/* Codes of 32 elements in the order of words, for a scale id = 1 / dl, and
 * their sums, each level times `factor'. */
static struct gg_kern_fork_sums
code_words(uint8_t q[32], const struct gg_kern_fork_levels *t, const float *v,
           float id, float dl, float factor, const float *x, const float *w)
{
    struct gg_kern_fork_sums sum = { 0, 0 };
    for (int i = 0; i < 32; i++)
        q[i] = (uint8_t)gg_kern_fork_nearest(t, v, id * x[i]);
    for (int k = 0; k < 8; k++)
        make_even(q + 4 * k, t, v, dl, x + 4 * k, w + 4 * k);
    for (int i = 0; i < 32; i++)
        gg_kern_fork_add(&sum, w[i], v[q[i]] * factor, x[i]);
    return sum;
}

static void to_words(float *to, const float *from)
{
    for (int i = 0; i < 32; i++)
        to[i] = from[element_of(i / 4, i % 4)];
}

static struct gg_kern_fork_fit find_even(const struct gg_kern_fork_levels *t,
                                         const float *elements,
                                         const float *weights)
{
    struct gg_kern_fork_fit f = { 0, 0, false };
    float max = gg_kern_max_abs_signed(elements, 32), x[32], w[32];
    uint8_t q[32];
    if (fabsf(max) < 1e-16f)
        return f;
    to_words(x, elements);
    to_words(w, weights);
    f.d = -max / t->v[0];
    for (int step = -7; step <= 7; step++)
        for (int half = 0; half < 2; half++) {
            const float *v = t->v + half * t->n;
            float id = ((float)step + v[0]) / max, dl = 1 / id;
            struct gg_kern_fork_sums p, m;
            p = code_words(q, t, v, id, dl, 1, x, w);
            m = code_words(q, t, v, -id, dl, 1, x, w);
            if (gg_kern_fork_try(&f, p.qx, p.q2))
                f.shifted = half;
            if (gg_kern_fork_try(&f, m.qx, m.q2))
                f.shifted = half;
        }
    return f;
}

static float error_of(const uint8_t q[32], const float *v, float dl,
                      const float *x, const float *w)
{
    float mse = 0;
    for (int i = 0; i < 32; i++) {
        float diff = x[i] - dl * v[q[i]];
        mse += w[i] * diff * diff;
    }
    return mse;
}

/* Words of 32 codes: a word is u with u ^ u << 1 equal to four codes, whose
 * number of bits is even, and a bit of the scale's byte. */
static void put_words(uint16_t *words, const uint8_t q[32], unsigned byte)
{
    for (int k = 0; k < 8; k++) {
        unsigned v = q[4 * k] | q[4 * k + 1] << 4 | q[4 * k + 2] << 8 |
                     (unsigned)q[4 * k + 3] << 12;
        v ^= v << 1;
        v ^= v << 2;
        v ^= v << 4;
        v ^= v << 8;
        gg_bytes_store16le(words + k, (uint16_t)(v << 1 | (byte >> k & 1)));
    }
}

static void encode_even(struct gg_kern_fork_sums *sum, uint16_t *words,
                        const struct gg_kern_fork_levels *t, int scale,
                        float d, const float *elements, const float *weights)
{
    float dl = d * (float)scale, id = 1 / dl, x[32], w[32];
    uint8_t q[2][32];
    to_words(x, elements);
    to_words(w, weights);
    for (int half = 0; half < 2; half++)
        code_words(q[half], t, t->v + half * t->n, id, dl, 1, x, w);
    int half =
        error_of(q[1], t->v + t->n, dl, x, w) < error_of(q[0], t->v, dl, x, w);
    const float *v = t->v + half * t->n;
    for (int i = 0; i < 32; i++)
        gg_kern_fork_add(sum, w[i], v[q[half][i]] * (float)scale, x[i]);
    put_words(words, q[half], scale_byte(scale, half));
}

static void row_iq4_kss(uint8_t *dst, const struct gg_kern_fork_levels *t,
                        const float *x, size_t n, const float *weight)
{
    const size_t size = sizeof(struct gg_block_iq4_kss);
    uint8_t *p = dst + 4;
    struct gg_kern_fork_sums sum = { 0, 0 };
    float max = find_scales(p, size, find_even, t, &rule, x, n, weight);
    float d = fabsf(max) / 127, id = d != 0 ? 1 / d : 0, w[256];
    gg_kern_fork_store(dst, d);
    if (d == 0) {
        memset(p, 0, n / 256 * size);
        return;
    }
    for (size_t i = 0; i < n; i += 256, p += size) {
        struct gg_block_iq4_kss y;
        struct found f;
        get_found(&f, p);
        gg_kern_fork_weights(w, x + i, weight ? weight + i : NULL, &rule);
        for (int s = 0; s < 8; s++)
            encode_even(&sum, y.qs + 8 * s, t, odd_scale(id, f.scale[s]), d,
                        x + i + 32 * s, w + 32 * s);
        memcpy(p, &y, size);
    }
    if (sum.q2 > 0)
        gg_kern_fork_store(dst, sum.qx / sum.q2 * 1.01f);
}
ROWS(iq4_kss, 4, gg_kern_fork_levels_4)
