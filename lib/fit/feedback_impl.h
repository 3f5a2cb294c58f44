/* SPDX-License-Identifier: MIT */
/* feedback_impl.h - the kernels of feedback_kern.h: a level's file includes
 * its pair_*.h and defines FN and PRODUCT_VECTORS, PRODUCT_COLUMNS: the
 * accumulators of a product */

enum { W = GG_FEEDBACK_LANES, T = GG_FEEDBACK_TRIES };

/* acc += products of n_vectors vectors and n_columns columns of a tile. */
static GG_ALWAYS_INLINE void add_tile(float *acc, size_t acc_stride,
                                      const float *err, size_t err_stride,
                                      const float *tile, size_t n,
                                      const unsigned n_vectors,
                                      const unsigned n_columns)
{
    struct pair s[PRODUCT_VECTORS * PRODUCT_COLUMNS];
    GG_UNROLL
    for (unsigned v = 0; v < n_vectors; v++)
        GG_UNROLL
    for (unsigned j = 0; j < n_columns; j++)
        s[v * n_columns + j] = pair_load(acc + v * acc_stride + j * W);
    for (size_t i = 0; i < n; i++) {
        struct pair e[PRODUCT_VECTORS];
        GG_UNROLL
        for (unsigned v = 0; v < n_vectors; v++)
            e[v] = pair_load(err + v * err_stride + i * W);
        GG_UNROLL
        for (unsigned j = 0; j < n_columns; j++) {
            struct pair g = pair_set(tile[i * GG_FEEDBACK_TILE + j]);
            GG_UNROLL
            for (unsigned v = 0; v < n_vectors; v++)
                s[v * n_columns + j] =
                    add_pairs(s[v * n_columns + j], mul_pairs(e[v], g));
        }
    }
    GG_UNROLL
    for (unsigned v = 0; v < n_vectors; v++)
        GG_UNROLL
    for (unsigned j = 0; j < n_columns; j++)
        pair_store(acc + v * acc_stride + j * W, s[v * n_columns + j]);
}

void FN(gg_feedback_product)(float *acc, size_t acc_stride, const float *err,
                             size_t err_stride, unsigned n_vectors,
                             const float *tile, size_t n)
{
    unsigned v = 0;
    for (; v + PRODUCT_VECTORS <= n_vectors; v += PRODUCT_VECTORS)
        for (unsigned j = 0; j < GG_FEEDBACK_TILE; j += PRODUCT_COLUMNS)
            add_tile(acc + v * acc_stride + j * W, acc_stride,
                     err + v * err_stride, err_stride, tile + j, n,
                     PRODUCT_VECTORS, PRODUCT_COLUMNS);
    for (; v < n_vectors; v++)
        for (unsigned j = 0; j < GG_FEEDBACK_TILE; j += PRODUCT_COLUMNS)
            add_tile(acc + v * acc_stride + j * W, acc_stride,
                     err + v * err_stride, err_stride, tile + j, n, 1,
                     PRODUCT_COLUMNS);
}

/* Reciprocals of scales; 0 for scales of 0. */
static inline struct pair invert_scale(struct pair scale)
{
    return keep_without(quot_pairs(pair_set(1), scale),
                        equal_pairs(scale, pair_set(0)));
}

/* Level that is nearest to x; *code, if not NULL, receives its code. */
static GG_ALWAYS_INLINE struct pair
nearest_level(const struct gg_feedback_rule *rule, struct pair x,
              const bool is_even, struct pair *code)
{
    const unsigned last = rule->n_levels - 1;
    struct pair v = pair_set(rule->level[0]), c = pair_set(0);
    if (is_even) {
        v = nearest_pair(
            lesser_of(greater_of(x, v), pair_set(rule->level[last])));
        if (code)
            *code = sub_pairs(v, pair_set(rule->level[0]));
        return v;
    }
    for (unsigned k = 0; k < last; k++) {
        pair_mask above = less_pairs(pair_set(rule->mid[k]), x);
        v = choose_pair(above, pair_set(rule->level[k + 1]), v);
        if (code)
            c = choose_pair(above, pair_set((float)(k + 1)), c);
    }
    if (code)
        *code = c;
    return v;
}

/* Round a sub-block with n attempts, column after column. err has n vectors
 * for each column. */
static GG_ALWAYS_INLINE void round_levels(const struct gg_feedback_rule *rule,
                                          const struct gg_feedback_sub *sub,
                                          const struct gg_feedback_try *try,
                                          const unsigned n, const bool is_even,
                                          float *err, struct pair cost[T],
                                          struct gg_feedback_codes *out)
{
    struct pair scale[T], inv[T], min[T], t[T];
    GG_UNROLL
    for (unsigned k = 0; k < n; k++) {
        scale[k] = pair_load(try[k].scale);
        min[k] = pair_load(try[k].min);
        inv[k] = invert_scale(scale[k]);
        cost[k] = pair_set(0);
    }
    for (unsigned j = 0; j < sub->len; j++) {
        const float *g = sub->g + (size_t)j * sub->len;
        GG_UNROLL
        for (unsigned k = 0; k < n; k++)
            t[k] = pair_load(sub->base + j * W);
        for (unsigned i = 0; i < j; i++) {
            struct pair gi = pair_set(g[i]);
            GG_UNROLL
            for (unsigned k = 0; k < n; k++)
                t[k] = add_pairs(
                    t[k], mul_pairs(pair_load(err + (i * n + k) * W), gi));
        }
        const struct pair target = pair_load(sub->target + j * W);
        const struct pair diag = pair_set(sub->diag[j]);
        GG_UNROLL
        for (unsigned k = 0; k < n; k++) {
            struct pair x = mul_pairs(add_pairs(t[k], min[k]), inv[k]), c;
            struct pair v = nearest_level(rule, x, is_even, out ? &c : NULL);
            v = sub_pairs(mul_pairs(scale[k], v), min[k]);
            pair_store(err + (j * n + k) * W, sub_pairs(target, v));
            v = sub_pairs(t[k], v);
            cost[k] = add_pairs(cost[k], mul_pairs(mul_pairs(v, v), diag));
            if (out)
                pair_store(out->code[j], c);
        }
    }
}

#define LEVELS(NAME, IS_EVEN)                                                 \
    void FN(gg_feedback_try_##NAME)(                                          \
        const struct gg_feedback_rule *rule,                                  \
        const struct gg_feedback_sub *sub, const struct gg_feedback_try *try, \
        unsigned n, float cost[][GG_FEEDBACK_LANES], float *work)             \
    {                                                                         \
        struct pair sum[T];                                                   \
        (void)n;                                                              \
        round_levels(rule, sub, try, T, IS_EVEN, work, sum, NULL);            \
        for (int k = 0; k < T; k++)                                           \
            pair_store(cost[k], sum[k]);                                      \
    }                                                                         \
                                                                              \
    void FN(gg_feedback_round_##NAME)(                                        \
        const struct gg_feedback_rule *rule,                                  \
        const struct gg_feedback_sub *sub, const struct gg_feedback_try *try, \
        float *err, struct gg_feedback_codes *out, float *work)               \
    {                                                                         \
        struct pair sum[T];                                                   \
        (void)work;                                                           \
        round_levels(rule, sub, try, 1, IS_EVEN, err, sum, out);              \
        pair_store(out->cost, sum[0]);                                        \
    }

LEVELS(even, true)
LEVELS(table, false)

void FN(gg_feedback_cost)(const struct gg_feedback_sub *sub,
                          float cost[GG_FEEDBACK_LANES])
{
    struct pair sum = pair_set(0);
    for (unsigned j = 0; j < sub->len; j++) {
        struct pair t = pair_load(sub->base + j * W);
        for (unsigned i = 0; i < j; i++)
            t = add_pairs(t, mul_pairs(pair_load(sub->target + i * W),
                                       pair_set(sub->g[j * sub->len + i])));
        sum =
            add_pairs(sum, mul_pairs(mul_pairs(t, t), pair_set(sub->diag[j])));
    }
    pair_store(cost, sum);
}
