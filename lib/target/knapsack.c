/* SPDX-License-Identifier: MIT */
/* knapsack.c - choose one option of each group; knapsack.h has the method */
#include "config.h"
#include "target/knapsack.h"

#include <stdlib.h>
#include <string.h>

/* A step between neighbouring points of a group's hull. */
struct step {
    size_t group, to; /* number of the group; option that the step leads to */
    uint64_t size;    /* additional bytes */
    double rate;      /* cost saved per byte */
};

/* A partial solution for the first groups. */
struct state {
    uint64_t size;
    double reduced; /* sum of reduced costs */
    double cost;
    uint32_t parent, option;
};

enum { MAX_ROOM = 65536 }; /* states of one step: 2.5 MiB, times the options */

/* Part of a state that is kept to reconstruct the solution. */
struct trace {
    uint32_t parent, option;
};

struct solver {
    const struct gguf_allocator *a;
    struct gg_knapsack_group *groups;
    size_t n;
    uint64_t limit;
    struct step *steps;
    size_t n_steps;
    double lambda;
    double bound;
    size_t *best; /* chosen options of the best solution */
    double best_cost;
    size_t *core; /* groups with several options left */
    size_t n_core, max_states;
    size_t *first; /* [n_core + 1] first trace of each core group */
    struct trace *trace;
    struct state *now, *next;
    size_t n_now, room;
    bool exact;
};

static int by_size(const void *a, const void *b)
{
    const struct gg_knapsack_option *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

/* Sort the options, and drop those that are not cheaper than a smaller one. */
static void drop_beaten(struct gg_knapsack_group *g)
{
    size_t n = 0;
    qsort(g->options, g->n, sizeof *g->options, by_size);
    for (size_t i = 0; i < g->n; i++)
        if (!n || g->options[i].cost < g->options[n - 1].cost)
            g->options[n++] = g->options[i];
    g->n = n;
    g->chosen = 0;
}

static double rate_of(const struct gg_knapsack_option *from,
                      const struct gg_knapsack_option *to)
{
    return (from->cost - to->cost) / (double)(to->size - from->size);
}

/* Append the steps along the group's lower convex hull. Each step is the
 * steepest one from the end of the last. */
static void add_steps(struct solver *s, size_t group)
{
    const struct gg_knapsack_group *g = &s->groups[group];
    for (size_t at = 0, to; at + 1 < g->n; at = to) {
        to = at + 1;
        for (size_t k = at + 2; k < g->n; k++)
            if (rate_of(&g->options[at], &g->options[k]) >=
                rate_of(&g->options[at], &g->options[to]))
                to = k;
        s->steps[s->n_steps++] =
            (struct step){ group, to,
                           g->options[to].size - g->options[at].size,
                           rate_of(&g->options[at], &g->options[to]) };
    }
}

static int by_rate(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static uint64_t size_of(const struct solver *s)
{
    uint64_t size = 0;
    for (size_t i = 0; i < s->n; i++)
        size += s->groups[i].options[s->best[i]].size;
    return size;
}

static double cost_of(const struct solver *s)
{
    double cost = 0;
    for (size_t i = 0; i < s->n; i++)
        cost += s->groups[i].options[s->best[i]].cost;
    return cost;
}

/* Steps 2 and 3 of the method: the relaxation, its bound, and a first
 * solution. */
static void relax_problem(struct solver *s)
{
    uint64_t size = size_of(s);
    bool full = false;
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct step *step = &s->steps[i];
        if (step->size > s->limit - size) {
            if (!full) {
                s->lambda = step->rate;
                s->bound = cost_of(s) - s->lambda * (double)(s->limit - size);
            }
            full = true;
        } else if (step->to > s->best[step->group]) {
            /* if an earlier step did not fit, this move is longer than the
             * step */
            const struct gg_knapsack_option *o =
                s->groups[step->group].options;
            uint64_t more = o[step->to].size - o[s->best[step->group]].size;
            if (more > s->limit - size)
                continue;
            size += more;
            s->best[step->group] = step->to;
        }
    }
    if (!full)
        s->bound = cost_of(s); /* every group has its best option */
}

/* Repeatedly make the single change that saves most and fits. */
static void fill_up(struct solver *s)
{
    uint64_t size = size_of(s);
    for (;;) {
        size_t group = s->n, to = 0;
        double most = 0;
        for (size_t i = 0; i < s->n; i++) {
            const struct gg_knapsack_option *o = s->groups[i].options;
            for (size_t k = s->best[i] + 1; k < s->groups[i].n; k++)
                if (o[k].size - o[s->best[i]].size <= s->limit - size &&
                    o[s->best[i]].cost - o[k].cost > most) {
                    most = o[s->best[i]].cost - o[k].cost;
                    group = i;
                    to = k;
                }
        }
        if (group == s->n)
            break;
        const struct gg_knapsack_option *o = s->groups[group].options;
        size += o[to].size - o[s->best[group]].size;
        s->best[group] = to;
    }
    s->best_cost = cost_of(s);
}

/* ------------------------------------------------------- exact repair --- */

static double price_option(const struct solver *s,
                           const struct gg_knapsack_option *o)
{
    return o->cost + s->lambda * (double)o->size;
}

static double find_least_price(const struct solver *s, size_t group)
{
    const struct gg_knapsack_group *g = &s->groups[group];
    double least = price_option(s, g->options);
    for (size_t k = 1; k < g->n; k++)
        least = GG_MIN(least, price_option(s, &g->options[k]));
    return least;
}

/* Can option k of the group be part of a better solution? */
static bool is_open(const struct solver *s, size_t group, size_t k,
                    double least)
{
    return price_option(s, &s->groups[group].options[k]) - least <
           s->best_cost - s->bound;
}

static int by_state(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return (x->parent > y->parent) - (x->parent < y->parent);
}

static int by_reduced(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    if (x->reduced != y->reduced)
        return x->reduced < y->reduced ? -1 : 1;
    return by_state(a, b);
}

/* Sort the n states of s->next, and keep the undominated ones, up to the room
 * for states. Returns their number. */
static size_t prune_states(struct solver *s, size_t n)
{
    size_t left = 0;
    qsort(s->next, n, sizeof *s->next, by_state);
    for (size_t i = 0; i < n; i++)
        if (!left || s->next[i].cost < s->next[left - 1].cost)
            s->next[left++] = s->next[i];
    if (left <= s->room)
        return left;
    s->exact = false;
    qsort(s->next, left, sizeof *s->next, by_reduced);
    qsort(s->next, s->room, sizeof *s->next, by_state);
    return s->room;
}

/* Extend all states by all open options of core group c. smallest is the size
 * that the later groups need at least. */
static enum gguf_status extend_states(struct solver *s, size_t c,
                                      uint64_t smallest,
                                      struct gguf_error *err)
{
    const struct gg_knapsack_group *g = &s->groups[s->core[c]];
    double least = find_least_price(s, s->core[c]);
    double gap = s->best_cost - s->bound;
    size_t n = 0, bytes;
    if (gg_ckd_array(&bytes, (uint64_t)s->n_now * g->n, sizeof *s->next))
        return gg_error_set_nomem(err, SIZE_MAX);
    s->next = gg_mem_alloc(s->a, bytes);
    if (!s->next)
        return gg_error_set_nomem(err, bytes);
    for (size_t i = 0; i < s->n_now; i++)
        for (size_t k = 0; k < g->n; k++) {
            const struct gg_knapsack_option *o = &g->options[k];
            struct state t = s->now[i];
            t.size += o->size;
            t.cost += o->cost;
            t.reduced += price_option(s, o) - least;
            t.parent = (uint32_t)i;
            t.option = (uint32_t)k;
            if (t.reduced < gap && t.size <= s->limit &&
                smallest <= s->limit - t.size)
                s->next[n++] = t;
        }
    n = prune_states(s, n);
    s->first[c + 1] = s->first[c] + n;
    for (size_t i = 0; i < n; i++)
        s->trace[s->first[c] + i] =
            (struct trace){ s->next[i].parent, s->next[i].option };
    gg_mem_free(s->a, s->now);
    s->now = s->next;
    s->next = NULL;
    s->n_now = n;
    return GGUF_OK;
}

/* Fix the groups with one open option; the others are the core. Returns the
 * size and the cost of the fixed groups. */
static struct state fix_groups(struct solver *s, uint64_t *smallest)
{
    struct state root = { .size = 0 };
    *smallest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct gg_knapsack_option *o = s->groups[i].options;
        double least = find_least_price(s, i);
        size_t n_open = 0, only = 0;
        for (size_t k = 0; k < s->groups[i].n; k++)
            if (is_open(s, i, k, least)) {
                n_open++;
                only = k;
            }
        if (n_open != 1) {
            s->core[s->n_core++] = i;
            *smallest += o[0].size;
            continue;
        }
        root.size += o[only].size;
        root.cost += o[only].cost;
        s->best[i] = only; /* undone unless the search finds a better
                            * solution */
    }
    return root;
}

static enum gguf_status search_core(struct solver *s, struct gguf_error *err)
{
    uint64_t smallest;
    size_t *kept = gg_mem_alloc(s->a, s->n * sizeof *kept);
    if (!kept)
        return gg_error_set_nomem(err, s->n * sizeof *kept);
    memcpy(kept, s->best, s->n * sizeof *kept);
    struct state root = fix_groups(s, &smallest);
    s->room = GG_MAX(s->max_states / GG_MAX(s->n_core, 1), 16);
    s->room = GG_MIN(s->room, MAX_ROOM);
    s->first = gg_mem_alloc_zero(s->a, s->n_core + 1, sizeof *s->first);
    s->trace = gg_mem_alloc_zero(s->a, (uint64_t)s->room * s->n_core,
                                 sizeof *s->trace);
    s->now = gg_mem_alloc(s->a, sizeof *s->now);
    enum gguf_status st =
        s->first && s->trace && s->now
            ? GGUF_OK
            : gg_error_set_nomem(err, s->room * s->n_core * sizeof *s->trace);
    s->n_now = 1;
    if (s->now)
        s->now[0] = root;
    for (size_t c = 0; c < s->n_core && st == GGUF_OK; c++) {
        smallest -= s->groups[s->core[c]].options[0].size;
        st = extend_states(s, c, smallest, err);
    }
    /* states are sorted by growing size and falling cost: the last one is
     * best */
    double cost = st == GGUF_OK && s->n_now ? s->now[s->n_now - 1].cost : 0;
    if (st == GGUF_OK && s->n_now && cost < s->best_cost) {
        size_t at = s->n_now - 1;
        for (size_t c = s->n_core; c--;) {
            const struct trace *t = &s->trace[s->first[c] + at];
            s->best[s->core[c]] = t->option;
            at = t->parent;
        }
    } else {
        memcpy(s->best, kept, s->n * sizeof *kept);
    }
    gg_mem_free(s->a, kept);
    return st;
}

static enum gguf_status init_solver(struct solver *s, struct gguf_error *err)
{
    uint64_t n_options = 0, size = 0;
    for (size_t i = 0; i < s->n; i++) {
        drop_beaten(&s->groups[i]);
        n_options += s->groups[i].n;
        size += s->groups[i].options[0].size;
    }
    if (size > s->limit)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the smallest choice has %" PRIu64
                            " bytes, limit is %" PRIu64,
                            size, s->limit);
    s->steps = gg_mem_alloc_zero(s->a, n_options, sizeof *s->steps);
    s->best = gg_mem_alloc_zero(s->a, s->n, sizeof *s->best);
    s->core = gg_mem_alloc_zero(s->a, s->n, sizeof *s->core);
    if (!s->steps || !s->best || !s->core)
        return gg_error_set_nomem(err, (size_t)n_options * sizeof *s->steps);
    for (size_t i = 0; i < s->n; i++)
        add_steps(s, i);
    qsort(s->steps, s->n_steps, sizeof *s->steps, by_rate);
    return GGUF_OK;
}

enum gguf_status gg_knapsack_solve(struct gg_knapsack_group *groups, size_t n,
                                   uint64_t limit, size_t max_states,
                                   const struct gguf_allocator *a,
                                   struct gg_knapsack *out,
                                   struct gguf_error *err)
{
    struct solver s = { .a = a,
                        .groups = groups,
                        .n = n,
                        .limit = limit,
                        .max_states = max_states ? max_states : 4u << 20,
                        .exact = true };
    enum gguf_status st = init_solver(&s, err);
    if (st == GGUF_OK) {
        relax_problem(&s);
        fill_up(&s);
        if (s.best_cost > s.bound)
            st = search_core(&s, err);
    }
    if (st == GGUF_OK) {
        for (size_t i = 0; i < n; i++)
            groups[i].chosen = s.best[i];
        out->size = size_of(&s);
        out->cost = cost_of(&s);
        out->exact = s.exact;
        out->bound = s.exact ? out->cost : GG_MIN(s.bound, out->cost);
    }
    gg_mem_free(a, s.steps);
    gg_mem_free(a, s.best);
    gg_mem_free(a, s.core);
    gg_mem_free(a, s.first);
    gg_mem_free(a, s.trace);
    gg_mem_free(a, s.now);
    gg_mem_free(a, s.next);
    return st;
}
