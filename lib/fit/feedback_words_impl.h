/* SPDX-License-Identifier: MIT */
/* feedback_words_impl.h - rounding of codewords; see feedback_impl.h
 *
 * A group of elements is rounded at once: to the word with the least sum of
 * weight[j] * (target[j] - level[j])^2 among all words. The weights are the
 * diagonal of the metric of the group's errors that later columns leave, which
 * the search takes for the whole of it. Signs are those of the targets; an odd
 * number of signs is made even by the sign that costs least.
 */

/* Costs of the elements of a half by level, and of the halves by number. */
static inline void add_halves(const struct gg_feedback_words *w,
                              const struct pair *x, const float *weight,
                              unsigned n, float *sum)
{
    const unsigned n_levels = w->n_levels;
    struct pair p[4][8];
    for (unsigned j = 0; j < n; j++)
        for (unsigned l = 0; l < n_levels; l++) {
            struct pair e = sub_pairs(x[j], pair_set(w->level[l]));
            p[j][l] = mul_pairs(mul_pairs(e, e), pair_set(weight[j]));
        }
    for (unsigned a = 0; a < n_levels; a++)
        for (unsigned b = 0; b < n_levels; b++) {
            struct pair ab = add_pairs(p[0][a], p[1][b]);
            if (n == 2) {
                pair_store(sum, ab);
                sum += W;
                continue;
            }
            for (unsigned c = 0; c < n_levels; c++) {
                struct pair abc = add_pairs(ab, p[2][c]);
                for (unsigned d = 0; d < n_levels; d++, sum += W)
                    pair_store(sum, add_pairs(abc, p[3][d]));
            }
        }
}

/* Word with the least cost; *best, *number: the least so far, and its word. */
static inline void find_word(const struct gg_feedback_words *w,
                             const struct pair *x, const float *weight,
                             float *work, struct pair *best,
                             struct pair *number)
{
    const unsigned n = w->group / 2;
    float *first = work, *second = work + 96 * W;
    unsigned i = 0;
    add_halves(w, x, weight, n, first);
    add_halves(w, x + n, weight + n, n, second);
    for (unsigned r = 0; r < w->n_runs; r++) {
        struct pair c = pair_load(second + w->half[i] * W);
        struct pair at = pair_set(w->number[i]);
        for (i++; i < w->run_end[r]; i++) {
            struct pair v = pair_load(second + w->half[i] * W);
            pair_mask less = less_pairs(v, c);
            c = lesser_of(v, c);
            at = choose_pair(less, pair_set(w->number[i]), at);
        }
        c = add_pairs(c, pair_load(first + w->run_half[r] * W));
        pair_mask less = less_pairs(c, *best);
        *best = lesser_of(c, *best);
        *number = choose_pair(less, at, *number);
    }
}

/* Magnitudes and signs of a group's n targets. *product: of the signs of the
 * elements of eight that come before; receives that of all. fix: make the
 * number of signs even. */
static inline void split_signs(struct pair *x, struct pair *sign,
                               const float *weight, unsigned n,
                               struct pair *product, bool fix)
{
    const struct pair one = pair_set(1), minus = pair_set(-1);
    struct pair least = pair_set(INFINITY), at = pair_set(0);
    for (unsigned j = 0; j < n; j++) {
        sign[j] = choose_pair(less_pairs(x[j], pair_set(0)), minus, one);
        *product = mul_pairs(*product, sign[j]);
        x[j] = magnitude_of(x[j]);
        struct pair c = mul_pairs(x[j], pair_set(weight[j]));
        at = choose_pair(less_pairs(c, least), pair_set((float)j), at);
        least = lesser_of(c, least);
    }
    if (!fix)
        return;
    pair_mask odd = less_pairs(*product, pair_set(0));
    for (unsigned j = 0; j < n; j++) {
        pair_mask here = both_masks(odd, equal_pairs(at, pair_set((float)j)));
        x[j] = choose_pair(here, sub_pairs(pair_set(0), x[j]), x[j]);
        sign[j] = choose_pair(here, sub_pairs(pair_set(0), sign[j]), sign[j]);
    }
}

/* Levels of lanes' words, with signs. */
static inline void load_words(const struct gg_feedback_words *w,
                              struct pair number, const struct pair *sign,
                              struct pair *level)
{
    float at[W], e[8][W];
    pair_store(at, number);
    for (unsigned l = 0; l < W; l++) {
        const int8_t *word = w->element[(unsigned)at[l]];
        for (unsigned j = 0; j < w->group; j++)
            e[j][l] = word[j];
    }
    for (unsigned j = 0; j < w->group; j++) {
        level[j] = pair_load(e[j]);
        if (w->has_signs)
            level[j] = mul_pairs(level[j], sign[j]);
    }
}

/* Round the group whose targets are x, in units of the scale. level receives
 * signed levels with shifts. */
static inline void round_group(const struct gg_feedback_words *w,
                               struct pair *x, const float *weight,
                               struct pair shift, unsigned o,
                               struct pair *product, struct pair *level,
                               struct gg_feedback_codes *out, float *work)
{
    struct pair best = pair_set(INFINITY), number = pair_set(0);
    struct pair sign[8], y[8], other = number, was = best;
    const unsigned n = w->group;
    if (w->has_signs) {
        if (o % 8 == 0)
            *product = pair_set(1);
        split_signs(x, sign, weight, n, product,
                    w->even_signs && (o + n) % 8 == 0);
    }
    if (w->shift_in_group)
        shift = pair_set(w->shift[0]);
    for (unsigned j = 0; j < n; j++)
        y[j] = sub_pairs(x[j], shift);
    find_word(w, y, weight, work, &best, &number);
    if (w->shift_in_group) {
        for (unsigned j = 0; j < n; j++)
            y[j] = sub_pairs(x[j], pair_set(w->shift[1]));
        was = best;
        find_word(w, y, weight, work, &best, &number);
        pair_mask second = less_pairs(best, was);
        shift = choose_pair(second, pair_set(w->shift[1]), shift);
        other = choose_pair(second, pair_set(1), other);
    }
    load_words(w, number, sign, level);
    for (unsigned j = 0; j < n; j++) {
        level[j] = add_pairs(level[j], shift);
        if (out && w->has_signs)
            pair_store(out->sign[o + j], sign[j]);
    }
    if (out) {
        pair_store(out->code[o], number);
        pair_store(out->shift[o], other);
    }
}

/* Add the feedback of columns first .. end - 1 to the sum of column j. */
static inline struct pair add_errors(const struct gg_feedback_sub *sub,
                                     const float *err, unsigned first,
                                     unsigned end, unsigned j, struct pair sum)
{
    for (unsigned i = first; i < end; i++)
        sum = add_pairs(sum, mul_pairs(pair_load(err + i * W),
                                       pair_set(sub->g[j * sub->len + i])));
    return sum;
}

/* Targets of a group with the feedback of the columns before it: t[j] as sums
 * of LDLQ, and x[j] as the elements that would leave no error at all, which
 * the codewords are compared with. Element j of x has the feedback of the
 * elements of x before it. Uses err of the group. */
static inline void load_group(const struct gg_feedback_sub *sub, unsigned o,
                              unsigned n, float *err, struct pair *t,
                              struct pair *x)
{
    for (unsigned j = 0; j < n; j++)
        t[j] = pair_load(sub->base + (o + j) * W);
    for (unsigned i = 0; i < o; i++) {
        const struct pair e = pair_load(err + i * W);
        for (unsigned j = 0; j < n; j++)
            t[j] = add_pairs(
                t[j], mul_pairs(e, pair_set(sub->g[(o + j) * sub->len + i])));
    }
    for (unsigned j = o; j < o + n; j++) {
        x[j - o] = add_errors(sub, err, o, j, j, t[j - o]);
        pair_store(err + j * W,
                   sub_pairs(pair_load(sub->target + j * W), x[j - o]));
    }
}

static inline struct pair round_words(const struct gg_feedback_words *w,
                                      const struct gg_feedback_sub *sub,
                                      const struct gg_feedback_try *try,
                                      float *err,
                                      struct gg_feedback_codes *out,
                                      float *work)
{
    const struct pair scale = pair_load(try->scale);
    const struct pair inv = invert_scale(scale);
    const struct pair shift = pair_load(try->shift);
    struct pair cost = pair_set(0), product = cost, t[8], x[8], level[8];
    for (unsigned o = 0; o < sub->len; o += w->group) {
        load_group(sub, o, w->group, err, t, x);
        for (unsigned j = 0; j < w->group; j++)
            x[j] = mul_pairs(x[j], inv);
        round_group(w, x, sub->weight + o, shift, o, &product, level, out,
                    work);
        for (unsigned j = o; j < o + w->group; j++) {
            const struct pair v = mul_pairs(scale, level[j - o]);
            struct pair r = add_errors(sub, err, o, j, j, t[j - o]);
            pair_store(err + j * W,
                       sub_pairs(pair_load(sub->target + j * W), v));
            r = sub_pairs(r, v);
            cost = add_pairs(
                cost, mul_pairs(mul_pairs(r, r), pair_set(sub->diag[j])));
        }
    }
    return cost;
}

void FN(gg_feedback_try_words)(const struct gg_feedback_rule *rule,
                               const struct gg_feedback_sub *sub,
                               const struct gg_feedback_try *try, unsigned n,
                               float cost[][GG_FEEDBACK_LANES], float *work)
{
    float *err = work + 192 * W;
    for (unsigned k = 0; k < n; k++)
        pair_store(cost[k],
                   round_words(&rule->words, sub, &try[k], err, NULL, work));
}

void FN(gg_feedback_round_words)(const struct gg_feedback_rule *rule,
                                 const struct gg_feedback_sub *sub,
                                 const struct gg_feedback_try *try, float *err,
                                 struct gg_feedback_codes *out, float *work)
{
    pair_store(out->cost, round_words(&rule->words, sub, try, err, out, work));
}
