/* SPDX-License-Identifier: MIT */
/* vec_impl.h - rows of f32 for x86, in terms of a level's vectors
 *
 * Included once by vec_256.c and vec_avx512.c, which first define
 *
 *     VF, LANES           vector of floats, and its number of lanes
 *     FN(name)            name with the level's suffix
 *     vf_load, vf_store   unaligned; _n: the first n < LANES only, the other
 *                         lanes are 0
 *     vf_set1 vf_add vf_sub vf_mul vf_div vf_fma (a*b + c) vf_fnma (c - a*b)
 *     vf_min, vf_max      the second operand if one is NaN
 *     vf_round            to the nearest integer
 *     vf_scale2(x, n)     x * 2^n rounded once, |n| <= 160, n an integer
 *     vf_hmax             largest lane
 *     vf_hsum, vf_hsum4(v)  sum of all lanes; of each of four vectors, in an
 *                         order that does not depend on the others
 *     get_f16, get_bf16(p)  LANES numbers of two bytes, unaligned, as floats
 *     VD, vd_add(s, x), vd_add_sq(s, x), vd_sum    sums in double
 *     vf_rotate(x, c, s)  LANES/2 interleaved pairs, c and s LANES/2 values
 *
 * Elements at the end of a row go through the same operations as the others, in
 * a partly filled vector.
 */
enum { SIDE = LANES == 16 ? 4 : 2 }; /* vectors that registers hold at once */

/* e^x, within 1 unit in the last place, gradual underflow included.
 * x = n ln 2 + r; ln 2 in two parts, the first with 15 bits, so that its
 * product with n is exact. e^r = 1 + r + r^2 p(r) on |r| <= ln 2 / 2, p of
 * degree 4, fitted for least relative error (3.6e-9). */
#define EACH(EXPR)                                                            \
    GG_UNROLL                                                                 \
    for (int i = 0; i < n_vecs; i++)                                          \
    EXPR

/* Exponentials of n_vecs vectors, interleaved: each is one long dependency
 * chain, and a processor does not overlap enough chains that follow one
 * another. x becomes e^r - 1. */
static GG_ALWAYS_INLINE void vf_exp_parts(VF *x, VF *n, int n_vecs)
{
    VF p[SIDE];
    EACH(n[i] = vf_round(vf_mul(x[i], vf_set1(0x1.715476p+0f))));
    EACH(x[i] = vf_fnma(n[i], vf_set1(0x1.62e4p-1f), x[i]));
    EACH(x[i] = vf_fnma(n[i], vf_set1(0x1.7f7d1cp-20f), x[i]));
    EACH(p[i] =
             vf_fma(vf_set1(0x1.6a23cep-10f), x[i], vf_set1(0x1.123a2p-7f)));
    EACH(p[i] = vf_fma(p[i], x[i], vf_set1(0x1.5558f2p-5f)));
    EACH(p[i] = vf_fma(p[i], x[i], vf_set1(0x1.555492p-3f)));
    EACH(p[i] = vf_fma(p[i], x[i], vf_set1(0x1.fffffcp-2f)));
    EACH(x[i] = vf_fma(vf_mul(x[i], x[i]), p[i], x[i]));
}

static GG_ALWAYS_INLINE void vf_exps(VF *x, int n_vecs)
{
    VF n[SIDE];
    /* e^89 is above FLT_MAX, e^-104 rounds to 0 */
    EACH(x[i] = vf_max(vf_set1(-104.0f), vf_min(vf_set1(89.0f), x[i])));
    vf_exp_parts(x, n, n_vecs);
    EACH(x[i] = vf_scale2(vf_add(x[i], vf_set1(1.0f)), n[i]));
}

static inline VF vf_exp(VF x)
{
    vf_exps(&x, 1);
    return x;
}

/* With e = e^2x - 1 = 2^n (e^r - 1) + (2^n - 1), which loses nothing near 0:
 * e / (e + 2). Beyond 10 it rounds to 1. */
static inline VF vf_tanh(VF x)
{
    const VF one = vf_set1(1.0f);
    VF n;
    x = vf_max(vf_set1(-10.0f), vf_min(vf_set1(10.0f), x));
    x = vf_add(x, x);
    vf_exp_parts(&x, &n, 1);
    const VF e = vf_add(vf_scale2(x, n), vf_sub(vf_scale2(one, n), one));
    return vf_div(e, vf_add(e, vf_set1(2.0f)));
}

/* The numerator is finite, so that -infinity gives -0. */
static inline VF vf_silu(VF x)
{
    const VF one = vf_set1(1.0f);
    const VF e = vf_exp(vf_sub(vf_set1(0.0f), x));
    return vf_div(vf_max(vf_set1(-FLT_MAX), x), vf_add(one, e));
}

/* y = EXPR of a = A and b = B, all rows of n; the last vector is partial. */
#define MAP1(EXPR)                                                            \
    do {                                                                      \
        size_t i = 0;                                                         \
        for (; n - i >= LANES; i += LANES) {                                  \
            const VF a = vf_load(x + i);                                      \
            vf_store(y + i, EXPR);                                            \
        }                                                                     \
        if (i < n) {                                                          \
            const VF a = vf_load_n(x + i, n - i);                             \
            vf_store_n(y + i, EXPR, n - i);                                   \
        }                                                                     \
    } while (0)
#define MAP2(A, B, EXPR)                                                      \
    do {                                                                      \
        size_t i = 0;                                                         \
        for (; n - i >= LANES; i += LANES) {                                  \
            const VF a = vf_load((A) + i), b = vf_load((B) + i);              \
            vf_store(y + i, EXPR);                                            \
        }                                                                     \
        if (i < n) {                                                          \
            const VF a = vf_load_n((A) + i, n - i);                           \
            const VF b = vf_load_n((B) + i, n - i);                           \
            vf_store_n(y + i, EXPR, n - i);                                   \
        }                                                                     \
    } while (0)

void FN(gg_vec_add)(float *y, const float *l, const float *r, size_t n)
{
    MAP2(l, r, vf_add(a, b));
}

void FN(gg_vec_mul)(float *y, const float *l, const float *r, size_t n)
{
    MAP2(l, r, vf_mul(a, b));
}

void FN(gg_vec_scale)(float *y, const float *x, size_t n, float scale,
                      float bias)
{
    const VF s = vf_set1(scale), t = vf_set1(bias);
    MAP1(vf_add(vf_mul(a, s), t));
}

void FN(gg_vec_silu)(float *y, const float *x, size_t n)
{
    MAP1(vf_silu(a));
}

void FN(gg_vec_swiglu)(float *y, const float *gate, const float *up, size_t n)
{
    MAP2(gate, up, vf_mul(vf_silu(a), b));
}

void FN(gg_vec_tanh)(float *y, const float *x, size_t n)
{
    MAP1(vf_tanh(a));
}

float FN(gg_vec_max)(const float *x, size_t n)
{
    const VF lowest = vf_set1(-INFINITY);
    VF m0 = lowest, m1 = lowest;
    size_t i = 0;
    for (; n - i >= 2 * LANES; i += 2 * LANES) {
        m0 = vf_max(vf_load(x + i), m0);
        m1 = vf_max(vf_load(x + i + LANES), m1);
    }
    if (n - i >= LANES) {
        m0 = vf_max(vf_load(x + i), m0);
        i += LANES;
    }
    float max = vf_hmax(vf_max(m0, m1));
    for (; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

double FN(gg_vec_sum)(const float *x, size_t n)
{
    VD s = vd_zero();
    size_t i = 0;
    for (; n - i >= LANES; i += LANES)
        s = vd_add(s, vf_load(x + i));
    if (i < n)
        s = vd_add(s, vf_load_n(x + i, n - i));
    return vd_sum(s);
}

float FN(gg_vec_dot)(const float *x, const float *y, size_t n)
{
    VF s0 = vf_set1(0.0f), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; n - i >= 4 * LANES; i += 4 * LANES) {
        const float *a = x + i, *b = y + i;
        s0 = vf_fma(vf_load(a), vf_load(b), s0);
        s1 = vf_fma(vf_load(a + LANES), vf_load(b + LANES), s1);
        s2 = vf_fma(vf_load(a + 2 * LANES), vf_load(b + 2 * LANES), s2);
        s3 = vf_fma(vf_load(a + 3 * LANES), vf_load(b + 3 * LANES), s3);
    }
    for (; n - i >= LANES; i += LANES)
        s0 = vf_fma(vf_load(x + i), vf_load(y + i), s0);
    if (i < n)
        s1 = vf_fma(vf_load_n(x + i, n - i), vf_load_n(y + i, n - i), s1);
    return vf_hsum(vf_add(vf_add(s0, s1), vf_add(s2, s3)));
}

/* Rows of numbers of a type, as LANES of them become floats. */
typedef const unsigned char *numbers;

static inline VF get_f32(numbers w)
{
    return vf_load((const float *)(const void *)w);
}

/* Vector K of four times those of the columns, added to their sums. */
#define DOTS_STEP(K, S0, S1, S2)                                              \
    do {                                                                      \
        const VF a = get(w + (i + (K)*LANES) * size);                         \
        S0 = vf_fma(a, vf_load(x0 + i + (K)*LANES), S0);                      \
        if (n_cols > 1)                                                       \
            S1 = vf_fma(a, vf_load(x1 + i + (K)*LANES), S1);                  \
        if (n_cols > 2)                                                       \
            S2 = vf_fma(a, vf_load(x2 + i + (K)*LANES), S2);                  \
    } while (0)

/* As dot, of n numbers of size bytes at w and up to three columns: each vector
 * of w is made once for all of them. */
static GG_ALWAYS_INLINE void dot_columns(float *sum, numbers w, size_t size,
                                         VF (*get)(numbers), const float *x0,
                                         size_t x_stride, size_t n_cols,
                                         size_t n)
{
    const float *x1 = n_cols > 1 ? x0 + x_stride : x0;
    const float *x2 = n_cols > 2 ? x1 + x_stride : x0;
    const VF zero = vf_set1(0.0f);
    VF a0 = zero, a1 = zero, a2 = zero, a3 = zero;
    VF b0 = zero, b1 = zero, b2 = zero, b3 = zero;
    VF c0 = zero, c1 = zero, c2 = zero, c3 = zero;
    size_t i = 0;
    for (; n - i >= 4 * LANES; i += 4 * LANES) {
        DOTS_STEP(0, a0, b0, c0);
        DOTS_STEP(1, a1, b1, c1);
        DOTS_STEP(2, a2, b2, c2);
        DOTS_STEP(3, a3, b3, c3);
    }
    for (; n - i >= LANES; i += LANES)
        DOTS_STEP(0, a0, b0, c0);
    if (i < n) {
        unsigned char last[LANES * sizeof(float)] = { 0 };
        memcpy(last, w + i * size, (n - i) * size);
        const VF a = get(last);
        a1 = vf_fma(a, vf_load_n(x0 + i, n - i), a1);
        b1 = vf_fma(a, vf_load_n(x1 + i, n - i), b1);
        c1 = vf_fma(a, vf_load_n(x2 + i, n - i), c1);
    }
    sum[0] = vf_hsum(vf_add(vf_add(a0, a1), vf_add(a2, a3)));
    if (n_cols > 1)
        sum[1] = vf_hsum(vf_add(vf_add(b0, b1), vf_add(b2, b3)));
    if (n_cols > 2)
        sum[2] = vf_hsum(vf_add(vf_add(c0, c1), vf_add(c2, c3)));
}

/* A copy for each number of columns, whose sums stay in registers. */
#define DOTS(NAME, SIZE)                                                      \
    void FN(gg_kern_dots_##NAME)(float *sum, const void *w, const float *x,   \
                                 size_t x_stride, size_t n_cols, size_t n)    \
    {                                                                         \
        if (n_cols == 1)                                                      \
            dot_columns(sum, w, SIZE, get_##NAME, x, x_stride, 1, n);         \
        else if (n_cols == 2)                                                 \
            dot_columns(sum, w, SIZE, get_##NAME, x, x_stride, 2, n);         \
        else                                                                  \
            dot_columns(sum, w, SIZE, get_##NAME, x, x_stride, 3, n);         \
    }
DOTS(f32, 4)
DOTS(f16, 2)
DOTS(bf16, 2)

/* A vector of exp is added to the sum: in double, or with factors in f32, by
 * which it is multiplied then. */
static GG_ALWAYS_INLINE VF take_exp(VF e, const VF *factor, VD *wide,
                                    VF *narrow)
{
    if (!factor) {
        *wide = vd_add(*wide, e);
        return e;
    }
    *narrow = vf_add(*narrow, e);
    return vf_mul(e, *factor);
}

/* y, if it is not NULL: exp(x - max), times f if that is not NULL. */
static GG_ALWAYS_INLINE double exp_row(float *y, const float *x,
                                       const float *f, size_t n, float max)
{
    const VF m = vf_set1(max);
    VD wide = vd_zero();
    VF narrow = vf_set1(0.0f), factor;
    size_t i = 0;
    for (; n - i >= SIDE * LANES; i += SIDE * LANES) {
        VF e[SIDE];
        GG_UNROLL
        for (int j = 0; j < SIDE; j++)
            e[j] = vf_sub(vf_load(x + i + j * LANES), m);
        vf_exps(e, SIDE);
        GG_UNROLL
        for (int j = 0; j < SIDE; j++) {
            if (f)
                factor = vf_load(f + i + j * LANES);
            e[j] = take_exp(e[j], f ? &factor : NULL, &wide, &narrow);
            if (y)
                vf_store(y + i + j * LANES, e[j]);
        }
    }
    for (; n - i >= LANES; i += LANES) {
        VF e = vf_exp(vf_sub(vf_load(x + i), m));
        if (f)
            factor = vf_load(f + i);
        e = take_exp(e, f ? &factor : NULL, &wide, &narrow);
        if (y)
            vf_store(y + i, e);
    }
    if (i < n) { /* lanes that are not there count as 0, not as exp(-max) */
        float t[LANES];
        vf_store(t, vf_exp(vf_sub(vf_load_n(x + i, n - i), m)));
        if (f)
            factor = vf_load_n(f + i, n - i);
        const VF e =
            take_exp(vf_load_n(t, n - i), f ? &factor : NULL, &wide, &narrow);
        if (y)
            vf_store_n(y + i, e, n - i);
    }
    return f ? (double)vf_hsum(narrow) : vd_sum(wide);
}

double FN(gg_vec_exp_sum)(float *y, const float *x, size_t n, float max)
{
    return exp_row(y, x, NULL, n, max);
}

float FN(gg_vec_exp_mul)(float *y, const float *x, const float *f, size_t n,
                         float max)
{
    return (float)exp_row(y, x, f, n, max);
}

float FN(gg_vec_scores)(float *y, const float *x, const float *mask, size_t n,
                        float scale, float slope)
{
    const VF s = vf_set1(scale), t = vf_set1(slope);
    VF max = vf_set1(-INFINITY);
    size_t i = 0;
    if (mask)
        for (; n - i >= LANES; i += LANES) {
            const VF v = vf_add(vf_mul(vf_load(x + i), s),
                                vf_mul(t, vf_load(mask + i)));
            max = vf_max(v, max);
            vf_store(y + i, v);
        }
    else
        for (; n - i >= LANES; i += LANES) {
            const VF v = vf_mul(vf_load(x + i), s);
            max = vf_max(v, max);
            vf_store(y + i, v);
        }
    float m = vf_hmax(max);
    for (; i < n; i++) {
        y[i] = mask ? x[i] * scale + slope * mask[i] : x[i] * scale;
        m = y[i] > m ? y[i] : m;
    }
    return m;
}

void FN(gg_vec_soft_max)(float *y, const float *x, const float *mask, size_t n,
                         float scale, float slope)
{
    float max = FN(gg_vec_scores)(y, x, mask, n, scale, slope);
    if (max == -INFINITY)
        max = 0;
    const double sum = exp_row(y, y, NULL, n, max);
    FN(gg_vec_scale)(y, y, n, sum == 0 ? 0 : (float)(1 / sum), 0);
}

void FN(gg_vec_rms_norm)(float *y, const float *x, const float *weight,
                         size_t n, float eps)
{
    VD sum = vd_zero();
    size_t j = 0;
    for (; n - j >= LANES; j += LANES)
        sum = vd_add_sq(sum, vf_load(x + j));
    if (j < n)
        sum = vd_add_sq(sum, vf_load_n(x + j, n - j));
    const float mean = (float)(vd_sum(sum) / (double)n);
    const VF s = vf_set1(1 / sqrtf(mean + eps));
    if (weight)
        MAP2(x, weight, vf_mul(vf_mul(a, s), b));
    else
        MAP1(vf_mul(a, s));
}

void FN(gg_vec_rope_norm)(float *y, const float *x, const float *cosine,
                          const float *sine, size_t n_pairs)
{
    size_t i = 0;
    for (; n_pairs - i >= LANES / 2; i += LANES / 2)
        vf_store(y + 2 * i,
                 vf_rotate(vf_load(x + 2 * i), cosine + i, sine + i));
    for (; i < n_pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * cosine[i] - b * sine[i];
        y[2 * i + 1] = a * sine[i] + b * cosine[i];
    }
}

void FN(gg_vec_rope_neox)(float *y, const float *x, const float *cosine,
                          const float *sine, size_t n_pairs)
{
    size_t i = 0;
    for (; n_pairs - i >= LANES; i += LANES) {
        const VF a = vf_load(x + i), b = vf_load(x + n_pairs + i);
        const VF c = vf_load(cosine + i), s = vf_load(sine + i);
        vf_store(y + i, vf_sub(vf_mul(a, c), vf_mul(b, s)));
        vf_store(y + n_pairs + i, vf_add(vf_mul(a, s), vf_mul(b, c)));
    }
    for (; i < n_pairs; i++) {
        const float a = x[i], b = x[n_pairs + i];
        y[i] = a * cosine[i] - b * sine[i];
        y[n_pairs + i] = a * sine[i] + b * cosine[i];
    }
}

void FN(gg_vec_taps)(float *y, const float *x, size_t x_stride, const float *w,
                     size_t w_stride, size_t n_taps, size_t n)
{
    size_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        VF s = vf_mul(vf_load(w + i), vf_load(x + i));
        for (size_t j = 1; j < n_taps; j++)
            s = vf_add(s, vf_mul(vf_load(w + j * w_stride + i),
                                 vf_load(x + j * x_stride + i)));
        vf_store(y + i, s);
    }
    if (i < n) {
        VF s = vf_mul(vf_load_n(w + i, n - i), vf_load_n(x + i, n - i));
        for (size_t j = 1; j < n_taps; j++)
            s = vf_add(s, vf_mul(vf_load_n(w + j * w_stride + i, n - i),
                                 vf_load_n(x + j * x_stride + i, n - i)));
        vf_store_n(y + i, s, n - i);
    }
}
