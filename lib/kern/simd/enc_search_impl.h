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
            gg_v256_load_columns(row, i, &out[i][g], 16);
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
        struct pair q = nearest_pair(mul_pairs(inv, pair_load(l->x[i])));
        q = lesser_of(greater_of(q, lo), hi);
        *xl = add_pairs(*xl, mul_pairs(pair_load(wx[i]), q));
        *ll = add_pairs(*ll, mul_pairs(mul_pairs(pair_load(l->w[i]), q), q));
    }
}

void FN(gg_kern_lanes_symmetric)(const struct gg_kern_lanes *l, int n,
                                 int half, struct gg_kern_lanes_fit *out)
{
    float wx[GG_ENC_MAX_N][16];
    struct pair amax = pair_set(0), max = amax, zero = amax;
    for (int i = 0; i < n; i++) {
        struct pair x = pair_load(l->x[i]), a = magnitude_of(x);
        max = choose_pair(less_pairs(amax, a), x, max);
        amax = greater_of(amax, a);
        pair_store(wx[i], mul_pairs(pair_load(l->w[i]), x));
    }
    /* Groups of zeros round by 0; all else stays below half + 1. */
    pair_mask dead = less_pairs(amax, pair_set(GG_ENC_ZERO));
    struct pair inv =
        keep_without(quot_pairs(pair_set(-(float)half), max), dead);
    struct pair xl, ll, scale, best;
    symmetric_sums(l, wx, n, half, inv, &xl, &ll);
    scale = keep_without(quot_pairs(xl, ll), equal_pairs(ll, zero));
    best = mul_pairs(scale, xl);
    for (int k = -9; k <= 9; k++) {
        if (k == 0)
            continue;
        struct pair try = pair_set(-((float)half + 0.1f * (float)k));
        try = keep_without(quot_pairs(try, max), dead);
        symmetric_sums(l, wx, n, half, try, &xl, &ll);
        pair_mask better =
            both_masks(less_pairs(zero, ll),
                       less_pairs(mul_pairs(best, ll), mul_pairs(xl, xl)));
        if (!any_lane(better))
            continue;
        scale = choose_pair(better, quot_pairs(xl, ll), scale);
        best = choose_pair(better, mul_pairs(scale, xl), best);
        inv = choose_pair(better, try, inv);
    }
    pair_store(out->scale, keep_without(scale, dead));
    pair_store(out->min, zero);
    pair_store(out->inv, inv);
    pair_store(out->base, zero);
}

/* State of an affine search. */
struct affine {
    struct pair x_lo, hi;     /* least and largest element */
    struct pair lo;           /* minimum of the best fit */
    struct pair scale, error; /* scale and error of the best fit */
    pair_mask flat;           /* mask: nothing to fit */
    struct pair sum_w, sum_x;
    struct pair best_inv, best_base;
};

/* Does inv * (x - lo) stay where rounding by instruction is that of the
 * reference? It is monotone in x, so the two ends bound it. */
static inline int affine_safe(const struct affine *s, struct pair inv)
{
    struct pair reach = greater_of(magnitude_of(sub_pairs(s->x_lo, s->lo)),
                                   magnitude_of(sub_pairs(s->hi, s->lo)));
    return all_at_most(mul_pairs(magnitude_of(inv), reach), 0x1p21f);
}

static inline struct pair affine_code(struct pair x, struct pair lo,
                                      struct pair inv, float q_max)
{
    struct pair c = nearest_pair(mul_pairs(inv, sub_pairs(x, lo)));
    return lesser_of(greater_of(c, pair_set(0)), pair_set(q_max));
}

static inline struct pair affine_error(const struct gg_kern_lanes *l, int n,
                                       int abs_error, float q[][16],
                                       struct pair scale, struct pair min)
{
    struct pair sum = pair_set(0);
    for (int i = 0; i < n; i++) {
        struct pair e = add_pairs(mul_pairs(scale, pair_load(q[i])), min);
        e = sub_pairs(e, pair_load(l->x[i]));
        e = abs_error ? magnitude_of(e) : mul_pairs(e, e);
        sum = add_pairs(sum, mul_pairs(pair_load(l->w[i]), e));
    }
    return sum;
}

/* Compute the codes and the line through them; valid is the mask of lanes in
 * which the line is determined. */
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
        struct pair wl = mul_pairs(pair_load(l->w[i]), c);
        sum_l = add_pairs(sum_l, wl);
        sum_ll = add_pairs(sum_ll, mul_pairs(wl, c));
        sum_xl = add_pairs(sum_xl, mul_pairs(wl, x));
    }
    struct pair det =
        sub_pairs(mul_pairs(s->sum_w, sum_ll), mul_pairs(sum_l, sum_l));
    *valid = less_pairs(zero, det);
    *scale = quot_pairs(
        sub_pairs(mul_pairs(s->sum_w, sum_xl), mul_pairs(s->sum_x, sum_l)),
        det);
    *min = quot_pairs(
        sub_pairs(mul_pairs(sum_ll, s->sum_x), mul_pairs(sum_l, sum_xl)), det);
    pair_mask above = less_pairs(zero, *min);
    *min = keep_without(*min, above);
    if (any_lane(above))
        *scale = choose_pair(above, quot_pairs(sum_xl, sum_ll), *scale);
}

/* Compute the ends, the sums, and the fit of the plain division. */
static inline int affine_start(const struct gg_kern_lanes *l, int n,
                               const struct gg_kern_affine_search *p,
                               int abs_error, struct affine *s)
{
    float q[GG_ENC_MAX_N][16];
    struct pair zero = pair_set(0), x = pair_load(l->x[0]);
    s->x_lo = s->hi = x;
    s->sum_w = pair_load(l->w[0]);
    s->sum_x = mul_pairs(s->sum_w, x);
    for (int i = 1; i < n; i++) {
        struct pair w = pair_load(l->w[i]);
        x = pair_load(l->x[i]);
        s->x_lo = lesser_of(x, s->x_lo);
        s->hi = greater_of(x, s->hi);
        s->sum_w = add_pairs(s->sum_w, w);
        s->sum_x = add_pairs(s->sum_x, mul_pairs(w, x));
    }
    s->lo = lesser_of(zero, s->x_lo);
    s->flat = equal_pairs(s->hi, s->lo);
    struct pair inv = keep_without(
        quot_pairs(pair_set((float)p->q_max), sub_pairs(s->hi, s->lo)),
        s->flat);
    s->best_inv = inv;
    s->best_base = s->lo;
    s->scale = quot_pairs(pair_set(1), inv);
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
        struct pair inv =
            keep_without(quot_pairs(parts, sub_pairs(s.hi, s.lo)), s.flat);
        struct pair scale, min;
        pair_mask better;
        if (!affine_safe(&s, inv))
            return 0;
        affine_line(l, n, (float)p->q_max, &s, inv, q, &scale, &min, &better);
        struct pair error = affine_error(l, n, abs_error, q, scale, min);
        better = both_masks(better, less_pairs(error, s.error));
        s.best_inv = choose_pair(better, inv, s.best_inv);
        s.best_base = choose_pair(better, s.lo, s.best_base);
        s.error = choose_pair(better, error, s.error);
        s.scale = choose_pair(better, scale, s.scale);
        s.lo = choose_pair(better, min, s.lo);
    }
    pair_store(out->scale, keep_without(s.scale, s.flat));
    pair_store(out->min, negative_of(s.lo));
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
