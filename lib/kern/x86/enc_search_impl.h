/* SPDX-License-Identifier: MIT */
/* enc_search_impl.h - fitting scales to 16 groups at once, lane by lane: the
 * level's file defines FN and includes its pair_*.h */

void FN(gg_kern_lanes_load)(float out[][16], const float *src, int n)
{
    const float *row[8];
    for (int g = 0; g < 16; g += 8) {
        for (int k = 0; k < 8; k++)
            row[k] = src + (g + k) * n;
        for (int i = 0; i < n; i += 8)
            gg_x86_load_columns(row, i, &out[i][g], 16);
    }
}

/* Sums of w*x*l and w*l*l by lane; wx holds the products w*x. */
static inline void symmetric_sums(const struct gg_kern_lanes *l,
                                  float wx[][16], int n, int half,
                                  struct pair inv, struct pair *xl,
                                  struct pair *ll)
{
    struct pair lo = pair_set(-(float)half), hi = pair_set((float)half - 1);
    *xl = *ll = pair_set(0);
    for (int i = 0; i < n; i++) {
        struct pair q = nearest(mul(inv, pair_load(l->x[i])));
        q = lesser(greater(q, lo), hi);
        *xl = add(*xl, mul(pair_load(wx[i]), q));
        *ll = add(*ll, mul(mul(pair_load(l->w[i]), q), q));
    }
}

void FN(gg_kern_lanes_symmetric)(const struct gg_kern_lanes *l, int n,
                                 int half, struct gg_kern_lanes_fit *out)
{
    float wx[GG_ENC_MAX_N][16];
    struct pair amax = pair_set(0), max = amax, zero = amax;
    for (int i = 0; i < n; i++) {
        struct pair x = pair_load(l->x[i]), a = magnitude(x);
        max = choose(less(amax, a), x, max);
        amax = greater(amax, a);
        pair_store(wx[i], mul(pair_load(l->w[i]), x));
    }
    /* Groups of zeros round by 0; all else stays below half + 1. */
    pair_mask dead = less(amax, pair_set(GG_ENC_ZERO));
    struct pair inv = without(quot(pair_set(-(float)half), max), dead);
    struct pair xl, ll, scale, best;
    symmetric_sums(l, wx, n, half, inv, &xl, &ll);
    scale = without(quot(xl, ll), equal(ll, zero));
    best = mul(scale, xl);
    for (int k = -9; k <= 9; k++) {
        if (k == 0)
            continue;
        struct pair try = pair_set(-((float)half + 0.1f * (float)k));
        try = without(quot(try, max), dead);
        symmetric_sums(l, wx, n, half, try, &xl, &ll);
        pair_mask better =
            both(less(zero, ll), less(mul(best, ll), mul(xl, xl)));
        if (!any(better))
            continue;
        scale = choose(better, quot(xl, ll), scale);
        best = choose(better, mul(scale, xl), best);
        inv = choose(better, try, inv);
    }
    pair_store(out->scale, without(scale, dead));
    pair_store(out->min, zero);
    pair_store(out->inv, inv);
    pair_store(out->base, zero);
}

/* State of an affine search. */
struct affine {
    struct pair x_lo, hi;     /* least and largest element */
    struct pair lo;           /* minimum of the best fit */
    struct pair scale, error; /* of the best fit */
    pair_mask flat;           /* mask: nothing to fit */
    struct pair sum_w, sum_x;
    struct pair best_inv, best_base;
};

/* Does inv * (x - lo) stay where rounding by instruction is that of the
 * reference? It is monotone in x, so the two ends bound it. */
static inline int affine_safe(const struct affine *s, struct pair inv)
{
    struct pair reach =
        greater(magnitude(sub(s->x_lo, s->lo)), magnitude(sub(s->hi, s->lo)));
    return all_at_most(mul(magnitude(inv), reach), 0x1p21f);
}

static inline struct pair affine_code(struct pair x, struct pair lo,
                                      struct pair inv, float q_max)
{
    struct pair c = nearest(mul(inv, sub(x, lo)));
    return lesser(greater(c, pair_set(0)), pair_set(q_max));
}

static inline struct pair affine_error(const struct gg_kern_lanes *l, int n,
                                       int abs_error, float q[][16],
                                       struct pair scale, struct pair min)
{
    struct pair sum = pair_set(0);
    for (int i = 0; i < n; i++) {
        struct pair e = add(mul(scale, pair_load(q[i])), min);
        e = sub(e, pair_load(l->x[i]));
        e = abs_error ? magnitude(e) : mul(e, e);
        sum = add(sum, mul(pair_load(l->w[i]), e));
    }
    return sum;
}

/* The codes, and the line through them; valid says where there is one. */
static inline void affine_line(const struct gg_kern_lanes *l, int n,
                               float q_max, const struct affine *s,
                               struct pair inv, float q[][16],
                               struct pair *scale, struct pair *min,
                               pair_mask *valid)
{
    struct pair zero = pair_set(0);
    struct pair sum_l = zero, sum_ll = zero, sum_xl = zero;
    for (int i = 0; i < n; i++) {
        struct pair x = pair_load(l->x[i]);
        struct pair c = affine_code(x, s->lo, inv, q_max);
        pair_store(q[i], c);
        struct pair wl = mul(pair_load(l->w[i]), c);
        sum_l = add(sum_l, wl);
        sum_ll = add(sum_ll, mul(wl, c));
        sum_xl = add(sum_xl, mul(wl, x));
    }
    struct pair det = sub(mul(s->sum_w, sum_ll), mul(sum_l, sum_l));
    *valid = less(zero, det);
    *scale = quot(sub(mul(s->sum_w, sum_xl), mul(s->sum_x, sum_l)), det);
    *min = quot(sub(mul(sum_ll, s->sum_x), mul(sum_l, sum_xl)), det);
    pair_mask above = less(zero, *min);
    *min = without(*min, above);
    if (any(above))
        *scale = choose(above, quot(sum_xl, sum_ll), *scale);
}

/* The ends, the sums, and the fit that the plain division gives. */
static inline int affine_start(const struct gg_kern_lanes *l, int n,
                               const struct gg_kern_affine_search *p,
                               int abs_error, struct affine *s)
{
    float q[GG_ENC_MAX_N][16];
    struct pair zero = pair_set(0), x = pair_load(l->x[0]);
    s->x_lo = s->hi = x;
    s->sum_w = pair_load(l->w[0]);
    s->sum_x = mul(s->sum_w, x);
    for (int i = 1; i < n; i++) {
        struct pair w = pair_load(l->w[i]);
        x = pair_load(l->x[i]);
        s->x_lo = lesser(x, s->x_lo);
        s->hi = greater(x, s->hi);
        s->sum_w = add(s->sum_w, w);
        s->sum_x = add(s->sum_x, mul(w, x));
    }
    s->lo = lesser(zero, s->x_lo);
    s->flat = equal(s->hi, s->lo);
    struct pair inv =
        without(quot(pair_set((float)p->q_max), sub(s->hi, s->lo)), s->flat);
    s->best_inv = inv;
    s->best_base = s->lo;
    s->scale = quot(pair_set(1), inv);
    if (!affine_safe(s, inv))
        return 0;
    for (int i = 0; i < n; i++)
        pair_store(q[i], affine_code(pair_load(l->x[i]), s->lo, inv,
                                     (float)p->q_max));
    s->error = affine_error(l, n, abs_error, q, s->scale, s->lo);
    return 1;
}

static inline int affine_search(const struct gg_kern_lanes *l, int n,
                                const struct gg_kern_affine_search *p,
                                int abs_error, struct gg_kern_lanes_fit *out)
{
    struct affine s;
    float q[GG_ENC_MAX_N][16];
    if (!affine_start(l, n, p, abs_error, &s))
        return 0;
    for (int k = 0; k <= p->n_step; k++) {
        struct pair parts =
            pair_set(p->start + p->step * (float)k + (float)p->q_max);
        struct pair inv = without(quot(parts, sub(s.hi, s.lo)), s.flat);
        struct pair scale, min;
        pair_mask better;
        if (!affine_safe(&s, inv))
            return 0;
        affine_line(l, n, (float)p->q_max, &s, inv, q, &scale, &min, &better);
        struct pair error = affine_error(l, n, abs_error, q, scale, min);
        better = both(better, less(error, s.error));
        s.best_inv = choose(better, inv, s.best_inv);
        s.best_base = choose(better, s.lo, s.best_base);
        s.error = choose(better, error, s.error);
        s.scale = choose(better, scale, s.scale);
        s.lo = choose(better, min, s.lo);
    }
    pair_store(out->scale, without(s.scale, s.flat));
    pair_store(out->min, negative(s.lo));
    pair_store(out->inv, s.best_inv);
    pair_store(out->base, s.best_base);
    return 1;
}

int FN(gg_kern_lanes_affine)(const struct gg_kern_lanes *l, int n,
                             const struct gg_kern_affine_search *s,
                             struct gg_kern_lanes_fit *out)
{
    return s->abs_error ? affine_search(l, n, s, 1, out)
                        : affine_search(l, n, s, 0, out);
}
