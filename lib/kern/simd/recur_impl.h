/* SPDX-License-Identifier: MIT */
/* recur_impl.h - recurrences for x86, in terms of a level's vectors
 *
 * Included after vec_impl.h. Several rows (or columns) of a state are processed
 * together, enough to hide the latency of sums; if they fit, they stay in
 * registers while tokens are processed. The result of a row depends on n alone.
 */

enum { RECUR_ROWS = 4 };

/* Call f(p, row, n) for all rows of p, n rows at a time. */
#define BY_ROWS(p, f)                                                         \
    do {                                                                      \
        size_t row_ = 0;                                                      \
        for (; (p)->n_rows - row_ >= RECUR_ROWS; row_ += RECUR_ROWS)          \
            f(p, row_, RECUR_ROWS);                                           \
        for (; row_ < (p)->n_rows; row_++)                                    \
            f(p, row_, 1);                                                    \
    } while (0)

/* ---- x > 0 ? x + log(1 + e^-x) : log(1 + e^x) ----
 *
 * log(1 + u) = 2 atanh(u / (2 + u)), u in [0, 1]. In atanh(z) = z + z^3 / 3 +
 * .., z <= 1/3, the terms after z^17 are below 2^-32 of the first. */

static inline VF vf_softplus(VF x)
{
    const VF zero = vf_set1(0.0f);
    const VF u = vf_exp(vf_min(x, vf_sub(zero, x)));
    const VF z = vf_div(u, vf_add(vf_set1(2.0f), u));
    const VF q = vf_mul(z, z);
    VF p = vf_set1(1.0f / 17);
    for (int i = 15; i >= 3; i -= 2)
        p = vf_fma(p, q, vf_set1(1.0f / (float)i));
    p = vf_fma(vf_mul(p, q), z, z);
    return vf_fma(vf_set1(2.0f), p, vf_max(zero, x));
}

void FN(gg_vec_softplus)(float *y, const float *x, size_t n)
{
    MAP1(vf_softplus(a));
}

/* ---- the selective scan ----
 *
 * n_rows rows of the state, n_vec vectors each; the last vector has n_last
 * lanes. n_rows, n_vec and own (each element has its own decay) are
 * constants. */

static GG_ALWAYS_INLINE VF load_some(const float *p, size_t n)
{
    return n == LANES ? vf_load(p) : vf_load_n(p, n);
}

static GG_ALWAYS_INLINE void scan_block(const struct gg_vec_scan *p,
                                        size_t row, int n_rows, size_t col,
                                        int n_vec, size_t n_last, bool own)
{
    VF s[RECUR_ROWS][SCAN_VECS], a[RECUR_ROWS];
    const size_t n = p->n;
    GG_UNROLL
    for (int r = 0; r < n_rows; r++) {
        const size_t at = (row + (size_t)r) * n + col;
        GG_UNROLL
        for (int v = 0; v < n_vec; v++)
            s[r][v] = load_some(p->from + at + v * LANES, n_last);
        if (own)
            a[r] = load_some(p->a + (row + (size_t)r) * p->a_stride + col,
                             n_last);
    }
    for (size_t t = 0; t < p->n_tok; t++) {
        const float *x = p->x + t * p->stride + row;
        const float *step = p->step + t * p->stride + row;
        float *y = p->y + t * p->y_stride + row, sum[RECUR_ROWS];
        VF acc[RECUR_ROWS], decay = vf_set1(p->decay[t]);
        GG_UNROLL
        for (int r = 0; r < RECUR_ROWS; r++)
            acc[r] = vf_set1(0.0f);
        GG_UNROLL
        for (int v = 0; v < n_vec; v++) {
            const size_t at = col + (size_t)v * LANES;
            const VF b = load_some(p->b + t * p->b_stride + at, n_last);
            const VF c = load_some(p->c + t * p->c_stride + at, n_last);
            GG_UNROLL
            for (int r = 0; r < n_rows; r++) {
                if (own)
                    decay = vf_exp(vf_mul(vf_set1(step[r]), a[r]));
                s[r][v] = vf_fma(b, vf_set1(x[r]), vf_mul(s[r][v], decay));
                acc[r] = vf_fma(s[r][v], c, acc[r]);
            }
        }
        vf_hsum4(sum, acc);
        GG_UNROLL
        for (int r = 0; r < n_rows; r++)
            y[r] = col ? y[r] + sum[r] : sum[r];
    }
    GG_UNROLL
    for (int r = 0; r < n_rows; r++)
        for (int v = 0; v < n_vec; v++) {
            float *to = p->s + (row + (size_t)r) * n + col + (size_t)v * LANES;
            if (n_last == LANES)
                vf_store(to, s[r][v]);
            else
                vf_store_n(to, s[r][v], n_last);
        }
}

static GG_ALWAYS_INLINE void scan_rows(const struct gg_vec_scan *p, size_t row,
                                       int n_rows, bool own)
{
    size_t col = 0;
    if (!own)
        for (; p->n - col >= SCAN_VECS * LANES; col += SCAN_VECS * LANES)
            scan_block(p, row, n_rows, col, SCAN_VECS, LANES, false);
    for (; p->n - col >= LANES; col += LANES)
        scan_block(p, row, n_rows, col, 1, LANES, own);
    if (col < p->n || !p->n) /* results are 0 without numbers */
        scan_block(p, row, n_rows, col, 1, p->n - col, own);
}

static GG_ALWAYS_INLINE void scan_one(const struct gg_vec_scan *p, size_t row,
                                      int n_rows)
{
    scan_rows(p, row, n_rows, false);
}

static GG_ALWAYS_INLINE void scan_own(const struct gg_vec_scan *p, size_t row,
                                      int n_rows)
{
    scan_rows(p, row, n_rows, true);
}

void FN(gg_vec_scan)(const struct gg_vec_scan *p)
{
    if (p->a)
        BY_ROWS(p, scan_own);
    else
        BY_ROWS(p, scan_one);
}

/* ---- the delta rule and RWKV-7: rows are values ----
 *
 * Four of a head at a time: enough sums to hide each other's latency. n_rows is
 * a constant, 4 or 1. */

/* sum of s gk, and of s gq */
static GG_ALWAYS_INLINE void state_read(const float *s, const float *gk,
                                        const float *gq, size_t n, int n_rows,
                                        float before[RECUR_ROWS],
                                        float read[RECUR_ROWS])
{
    VF a[RECUR_ROWS], b[RECUR_ROWS];
    size_t j = 0;
    GG_UNROLL
    for (int r = 0; r < RECUR_ROWS; r++)
        a[r] = b[r] = vf_set1(0.0f);
    for (; n - j >= LANES; j += LANES) {
        const VF c = vf_load(gk + j), d = vf_load(gq + j);
        GG_UNROLL
        for (int r = 0; r < n_rows; r++) {
            const VF x = vf_load(s + (size_t)r * n + j);
            a[r] = vf_fma(x, c, a[r]);
            b[r] = vf_fma(x, d, b[r]);
        }
    }
    if (j < n) {
        const VF c = vf_load_n(gk + j, n - j), d = vf_load_n(gq + j, n - j);
        GG_UNROLL
        for (int r = 0; r < n_rows; r++) {
            const VF x = vf_load_n(s + (size_t)r * n + j, n - j);
            a[r] = vf_fma(x, c, a[r]);
            b[r] = vf_fma(x, d, b[r]);
        }
    }
    vf_hsum4(before, a);
    vf_hsum4(read, b);
}

/* m lanes from j on of to = w s + value k + error b; k may be NULL. */
static GG_ALWAYS_INLINE void state_write_at(float *to, const float *s,
                                            size_t n, size_t j, size_t m,
                                            int n_rows, const float *w,
                                            const float *b,
                                            const float error[RECUR_ROWS],
                                            const float *k, const float *value)
{
    const VF c = load_some(w + j, m), e = load_some(b + j, m);
    const VF d = k ? load_some(k + j, m) : c;
    GG_UNROLL
    for (int r = 0; r < n_rows; r++) {
        const size_t at = (size_t)r * n + j;
        VF x = vf_mul(load_some(s + at, m), c);
        if (k)
            x = vf_fma(vf_set1(value[r]), d, x);
        x = vf_fma(vf_set1(error[r]), e, x);
        if (m == LANES)
            vf_store(to + at, x);
        else
            vf_store_n(to + at, x, m);
    }
}

static GG_ALWAYS_INLINE void state_write(float *to, const float *s, size_t n,
                                         int n_rows, const float *w,
                                         const float *b,
                                         const float error[RECUR_ROWS],
                                         const float *k, const float *value)
{
    size_t j = 0;
    for (; n - j >= LANES; j += LANES)
        state_write_at(to, s, n, j, LANES, n_rows, w, b, error, k, value);
    if (j < n)
        state_write_at(to, s, n, j, n - j, n_rows, w, b, error, k, value);
}

static GG_ALWAYS_INLINE void delta_rows(const struct gg_vec_delta *p,
                                        size_t first, int n_rows)
{
    const size_t n = p->n;
    const float *from = p->from + first * n;
    float *s = p->s + first * n;
    for (size_t t = 0; t < p->n_tok; t++, from = s) {
        const float *v = p->v + t * p->v_stride + first;
        float *y = p->y + t * p->y_stride + first;
        float before[RECUR_ROWS], read[RECUR_ROWS], error[RECUR_ROWS];
        state_read(from, p->gk + t * n, p->gq + t * n, n, n_rows, before,
                   read);
        GG_UNROLL
        for (int r = 0; r < n_rows; r++) {
            error[r] = p->beta[t] * (v[r] - before[r]);
            y[r] = read[r] + error[r] * p->kq[t];
        }
        state_write(s, from, n, n_rows, p->g + t * n, p->k + t * n, error,
                    NULL, NULL);
    }
}

void FN(gg_vec_delta)(const struct gg_vec_delta *p)
{
    BY_ROWS(p, delta_rows);
}

static GG_ALWAYS_INLINE void wkv7_rows(const struct gg_vec_wkv7 *p,
                                       size_t first, int n_rows)
{
    const size_t n = p->n;
    const float *from = p->from + first * n;
    float *s = p->s + first * n;
    for (size_t t = 0; t < p->n_tok; t++, from = s) {
        const float *v = p->v + t * p->v_stride + first;
        float *y = p->y + t * p->y_stride + first;
        float error[RECUR_ROWS], read[RECUR_ROWS];
        state_read(from, p->a + t * n, p->wr + t * n, n, n_rows, error, read);
        GG_UNROLL
        for (int r = 0; r < n_rows; r++)
            y[r] = read[r] + v[r] * p->kr[t] + error[r] * p->br[t];
        state_write(s, from, n, n_rows, p->w + t * n, p->b + t * n, error,
                    p->k + t * n, v);
    }
}

void FN(gg_vec_wkv7)(const struct gg_vec_wkv7 *p)
{
    BY_ROWS(p, wkv7_rows);
}

/* ---- RWKV-6 and gated linear attention: rows are keys ----
 *
 * n_vec vectors of values; the last has n_last lanes. n_vec and own are
 * constants. */

static GG_ALWAYS_INLINE void wkv6_token(const struct gg_vec_wkv6 *p,
                                        const float *from, size_t t,
                                        size_t col, int n_vec, size_t n_last,
                                        bool own)
{
    const size_t n = p->n;
    const float *r = p->r + t * n, *k = p->k + t * n, *w = p->w + t * n;
    const float *v = p->v + t * p->v_stride + col;
    float *y = p->y + t * p->y_stride + col, *s = p->s + col;
    VF value[SCAN_VECS], sum[SCAN_VECS];
    GG_UNROLL
    for (int i = 0; i < n_vec; i++) {
        value[i] = load_some(v + i * LANES, n_last);
        sum[i] = own ? vf_mul(vf_set1(p->own[t]), value[i]) : vf_set1(0.0f);
    }
    from += col;
    for (size_t j = 0; j < n; j++, from += n, s += n) {
        const VF rj = vf_set1(r[j]), kj = vf_set1(k[j]), wj = vf_set1(w[j]);
        GG_UNROLL
        for (int i = 0; i < n_vec; i++) {
            const VF was = load_some(from + i * LANES, n_last);
            const VF is = vf_fma(kj, value[i], vf_mul(wj, was));
            sum[i] = vf_fma(rj, own ? was : is, sum[i]);
            if (n_last == LANES)
                vf_store(s + i * LANES, is);
            else
                vf_store_n(s + i * LANES, is, n_last);
        }
    }
    GG_UNROLL
    for (int i = 0; i < n_vec; i++)
        if (n_last == LANES)
            vf_store(y + i * LANES, sum[i]);
        else
            vf_store_n(y + i * LANES, sum[i], n_last);
}

static GG_ALWAYS_INLINE void wkv6_all(const struct gg_vec_wkv6 *p, bool own)
{
    const float *from = p->from;
    for (size_t t = 0; t < p->n_tok; t++, from = p->s) {
        size_t col = 0;
        for (; p->n - col >= SCAN_VECS * LANES; col += SCAN_VECS * LANES)
            wkv6_token(p, from, t, col, SCAN_VECS, LANES, own);
        for (; p->n - col >= LANES; col += LANES)
            wkv6_token(p, from, t, col, 1, LANES, own);
        if (col < p->n)
            wkv6_token(p, from, t, col, 1, p->n - col, own);
    }
}

void FN(gg_vec_wkv6)(const struct gg_vec_wkv6 *p)
{
    if (p->own)
        wkv6_all(p, true);
    else
        wkv6_all(p, false);
}
