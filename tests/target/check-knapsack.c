/* SPDX-License-Identifier: MIT */
/* check-knapsack.c - the choice of options, compared with trying all choices */
#include "config.h"
#include "target/knapsack.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

enum { MAX_GROUPS = 400, MAX_OPTIONS = 16 };

struct instance {
    size_t n;
    struct gg_knapsack_group groups[MAX_GROUPS];
    struct gg_knapsack_option options[MAX_GROUPS][MAX_OPTIONS];
    uint64_t least, most; /* sum of all smallest and of all largest sizes */
};

/* Options like those of types: costs mostly fall as sizes grow. */
static void make_instance(struct instance *in, size_t n, size_t n_options,
                          uint64_t max_size, bool coarse)
{
    in->n = n;
    in->least = in->most = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t unit = 1 + rnd_below(max_size), least = UINT64_MAX, most = 0;
        size_t k = 1 + (size_t)rnd_below(n_options);
        in->groups[i].n = k;
        in->groups[i].options = in->options[i];
        for (size_t o = 0; o < k; o++) {
            uint64_t bits = 1 + rnd_below(16);
            double cost =
                pow(0.3, (double)bits) * (1 + 0.5 * (double)rnd_f32());
            if (coarse) /* ties */
                cost = (double)rnd_below(6);
            in->options[i][o] =
                (struct gg_knapsack_option){ unit * bits, cost, (uint32_t)o };
            least = GG_MIN(least, unit * bits);
            most = GG_MAX(most, unit * bits);
        }
        in->least += least;
        in->most += most;
    }
}

/* Least cost within limit, by trying everything; infinite: impossible. */
static double try_all(const struct instance *in, size_t i, uint64_t limit)
{
    double best = (double)INFINITY;
    if (i == in->n)
        return 0;
    for (size_t k = 0; k < in->groups[i].n; k++) {
        const struct gg_knapsack_option *o = &in->groups[i].options[k];
        if (o->size > limit)
            continue;
        double rest = try_all(in, i + 1, limit - o->size);
        best = GG_MIN(best, o->cost + rest);
    }
    return best;
}

/* Does k agree with the groups' choices? */
static bool is_consistent(const struct instance *in, uint64_t limit,
                          const struct gg_knapsack *k)
{
    uint64_t size = 0;
    double cost = 0;
    for (size_t i = 0; i < in->n; i++) {
        const struct gg_knapsack_group *g = &in->groups[i];
        if (g->chosen >= g->n)
            return false;
        size += g->options[g->chosen].size;
        cost += g->options[g->chosen].cost;
    }
    return size == k->size && size <= limit && fabs(cost - k->cost) < 1e-9 &&
           k->bound <= k->cost;
}

static void check_small(int n)
{
    static struct instance in;
    struct gguf_error err;
    int bad = 0, n_exact = 0, n_none = 0;
    for (int i = 0; i < n; i++) {
        struct gg_knapsack k;
        make_instance(&in, 1 + (size_t)rnd_below(6), 1 + (size_t)rnd_below(6),
                      1 + rnd_below(1000), i % 3 == 0);
        uint64_t limit = rnd_below(in.most + in.most / 8 + 1);
        double best = try_all(&in, 0, limit);
        enum gguf_status st =
            gg_knapsack_solve(in.groups, in.n, limit, 0, NULL, &k, &err);
        if (!isfinite(best)) {
            bad += st != GGUF_E_LIMIT;
            n_none++;
            continue;
        }
        bad += st != GGUF_OK || !is_consistent(&in, limit, &k) || !k.exact ||
               k.cost > best + 1e-12 * (1 + best) || k.bound != k.cost;
        n_exact += k.exact;
    }
    ok(!bad && n_exact > n / 4 && n_none > 0,
       "%d small instances: %d the best there is, %d have none", n, n_exact,
       n_none);
}

/* With very little memory the choice is valid, and its cost is at least the
 * bound. */
static void check_bound(int n)
{
    static struct instance in;
    struct gguf_error err;
    int bad = 0, n_exact = 0;
    for (int i = 0; i < n; i++) {
        struct gg_knapsack k;
        make_instance(&in, 6, 6, 1000, i % 3 == 0);
        uint64_t limit = in.least + rnd_below(in.most - in.least + 1);
        double best = try_all(&in, 0, limit);
        bad += gg_knapsack_solve(in.groups, in.n, limit, 1, NULL, &k, &err) !=
                   GGUF_OK ||
               !is_consistent(&in, limit, &k) ||
               k.bound > best + 1e-12 * (1 + best) ||
               k.cost < best - 1e-12 * (1 + best);
        n_exact += k.exact;
    }
    ok(!bad, "with room for 16 states: bounds hold (%d of %d exact)", n_exact,
       n);
}

/* The size of a large model. */
static void check_large(void)
{
    static struct instance in, again;
    struct gguf_error err;
    int bad = 0, n_exact = 0;
    double gap = 0;
    for (int i = 0; i < 20; i++) {
        struct gg_knapsack k, k2;
        make_instance(&in, MAX_GROUPS, MAX_OPTIONS, 10000000, false);
        uint64_t limit =
            in.least + (in.most - in.least) / 20 * (uint64_t)(1 + i % 19);
        memcpy(again.options, in.options, sizeof in.options);
        for (size_t g = 0; g < in.n; g++) {
            again.groups[g] = in.groups[g];
            again.groups[g].options = again.options[g];
        }
        bad += gg_knapsack_solve(in.groups, in.n, limit, 0, NULL, &k, &err) !=
                   GGUF_OK ||
               !is_consistent(&in, limit, &k);
        bad += gg_knapsack_solve(again.groups, in.n, limit, 0, NULL, &k2,
                                 &err) != GGUF_OK ||
               k2.cost != k.cost || k2.size != k.size;
        for (size_t g = 0; g < in.n; g++)
            bad += in.groups[g].chosen != again.groups[g].chosen;
        n_exact += k.exact;
        gap = GG_MAX(gap, (k.cost - k.bound) / k.cost);
    }
    ok(!bad,
       "%d groups of up to %d options, 20 times: %d exact, others "
       "within %.2g of the best",
       MAX_GROUPS, MAX_OPTIONS, n_exact, gap);
    ok(gap < 1e-3, "none is a thousandth from the best");
}

struct failing {
    int left;         /* calls that succeed before one fails */
    size_t now, most; /* bytes */
};

static void *fail_alloc(void *user, size_t size)
{
    struct failing *f = user;
    size_t *p = f->left-- > 0 ? malloc(size + 64) : NULL;
    if (!p)
        return NULL;
    *p = size;
    f->now += size;
    f->most = GG_MAX(f->most, f->now);
    return (char *)p + 64;
}

static void fail_free(void *user, void *ptr)
{
    struct failing *f = user;
    size_t *p = (size_t *)(void *)((char *)ptr - 64);
    f->now -= *p;
    free(p);
}

static void check_memory(void)
{
    static struct instance in;
    struct gguf_error err;
    struct failing f = { 0 };
    struct gguf_allocator a = { .struct_size = sizeof(struct gguf_allocator),
                                .alloc = fail_alloc,
                                .free = fail_free,
                                .user = &f };
    struct gg_knapsack k;
    int n = 0;
    enum gguf_status st = GGUF_E_NOMEM;
    for (; st == GGUF_E_NOMEM && n < 1000; n++) {
        tap_rng = 7;
        make_instance(&in, 50, 8, 1000, false);
        f.left = n;
        st = gg_knapsack_solve(in.groups, in.n, (in.least + in.most) / 2, 0,
                               &a, &k, &err);
    }
    ok(st == GGUF_OK && n > 5 && !f.now, "each of %d allocations may fail",
       n - 1);
    for (size_t groups = 4; groups < 13; groups++) {
        make_instance(&in, groups, MAX_OPTIONS, 1000000000, false);
        f.left = 1000000;
        if (gg_knapsack_solve(in.groups, in.n, (in.least + in.most) / 2, 0, &a,
                              &k, &err) != GGUF_OK)
            f.most = SIZE_MAX;
    }
    ok(!f.now && f.most < 128 << 20, "few groups take %zu bytes at most",
       f.most);
}

int main(void)
{
    bool is_long = getenv("GGUF_TEST_LONG") != NULL;
    struct gg_knapsack k;
    check_small(is_long ? 100000 : 3000);
    check_bound(is_long ? 3000 : 300);
    check_large();
    check_memory();
    ok(gg_knapsack_solve(NULL, 0, 0, 0, NULL, &k, NULL) == GGUF_OK &&
           k.exact && !k.size && k.cost == 0,
       "nothing to choose");
    return done_testing();
}
