/* SPDX-License-Identifier: MIT */
/* feedback_descent_impl.h - kernels of coordinate descent; see feedback_impl.h
 */

void FN(gg_feedback_solve)(const struct gg_feedback_sub *sub,
                           const float *grad, float *step,
                           float cost[GG_FEEDBACK_LANES])
{
    const unsigned n = sub->len;
    struct pair sum = pair_set(0);
    for (unsigned i = n; i-- > 0;) {
        struct pair a = pair_load(grad + i * W);
        for (unsigned j = n - 1; j > i; j--)
            a = sub_pairs(a, mul_pairs(pair_load(step + j * W),
                                       pair_set(sub->g[j * n + i])));
        pair_store(step + i * W, a);
    }
    for (unsigned j = 0; j < n; j++) {
        const struct pair a = pair_load(step + j * W);
        struct pair y = quot_pairs(a, pair_set(sub->diag[j]));
        sum = add_pairs(sum, mul_pairs(a, y));
        for (unsigned i = 0; i < j; i++)
            y = sub_pairs(y, mul_pairs(pair_load(step + i * W),
                                       pair_set(sub->g[j * n + i])));
        pair_store(step + j * W, y);
    }
    pair_store(cost, sum);
}

/* Two rounds over the elements: each moves to the level nearest to the least of
 * the error's parabola in it. */
static GG_ALWAYS_INLINE void
descend_levels(const struct gg_feedback_rule *rule,
               const struct gg_feedback_descent *d,
               const struct gg_feedback_try *try, const bool is_even,
               float *value, struct gg_feedback_codes *out, float *work)
{
    const struct pair scale = pair_load(try->scale);
    const struct pair inv = invert_scale(scale), min = pair_load(try->min);
    for (unsigned j = 0; j < d->len; j++)
        pair_store(work + j * W, sub_pairs(pair_load(d->aim + j * W),
                                           pair_load(value + j * W)));
    for (unsigned i = 0; i < 2 * d->len; i++) {
        const unsigned j = i % d->len;
        const float *s = d->s + (size_t)j * d->len;
        struct pair want = pair_set(0), code, v;
        for (unsigned k = 0; k < d->len; k++)
            want = add_pairs(
                want, mul_pairs(pair_load(work + k * W), pair_set(s[k])));
        want = quot_pairs(want, pair_set(s[j]));
        want = add_pairs(pair_load(value + j * W), want);
        v = nearest_level(rule, mul_pairs(add_pairs(want, min), inv), is_even,
                          &code);
        v = sub_pairs(mul_pairs(scale, v), min);
        pair_store(value + j * W, v);
        pair_store(work + j * W, sub_pairs(pair_load(d->aim + j * W), v));
        pair_store(out->code[j], code);
    }
}

void FN(gg_feedback_descend_even)(const struct gg_feedback_rule *rule,
                                  const struct gg_feedback_descent *d,
                                  const struct gg_feedback_try *try,
                                  float *value, struct gg_feedback_codes *out,
                                  float *work)
{
    descend_levels(rule, d, try, true, value, out, work);
}

void FN(gg_feedback_descend_table)(const struct gg_feedback_rule *rule,
                                   const struct gg_feedback_descent *d,
                                   const struct gg_feedback_try *try,
                                   float *value, struct gg_feedback_codes *out,
                                   float *work)
{
    descend_levels(rule, d, try, false, value, out, work);
}
