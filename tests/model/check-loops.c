/* SPDX-License-Identifier: MIT */
/* check-loops.c - layers that are computed several times (nanbeige) */
#include "config.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

enum { N = VARY_N, V = VARY_V };

static void once(void)
{
    vary_u32(".num_loops", 1);
}
static void once_by_default(void)
{
    vary_drop(".num_loops");
}
/* Four layers, of which the last two have the weights of the first. */
static void unrolled(void)
{
    const size_t n = vary_model.g.n;
    once();
    vary_u32(".block_count", 4);
    for (size_t i = 0; i < n; i++) {
        const struct gen_tensor t = vary_model.g.t[i];
        int il, at;
        if (sscanf(t.name, "blk.%d.%n", &il, &at) != 1)
            continue;
        gen_tensor(&vary_model.g, 1, 0, "blk.%d.%s", il + 2, t.name + at);
        struct gen_tensor *to = &vary_model.g.t[vary_model.g.n - 1];
        to->n_dims = t.n_dims;
        memcpy(to->ne, t.ne, sizeof t.ne);
        to->values = vary_values_of(t.name);
    }
}
static void between(void)
{
    vary_bool(".skip_loop_final_norm", false);
}
static void between_by_default(void)
{
    vary_drop(".skip_loop_final_norm");
}
static void many_loops(void)
{
    vary_u32(".num_loops", 65);
}

static void check_loops(void)
{
    vary_same("nanbeige", once, once_by_default, 0, "one loop by default");
    vary_counts("nanbeige", NULL, once, "two are more");
    vary_same("nanbeige", NULL, unrolled, 0, "as much as twice the layers");
    vary_counts("nanbeige", NULL, between, "a norm between them");
    vary_same("nanbeige", between, between_by_default, 0, "by default");
    vary_refused("nanbeige", many_loops, "nanbeige.num_loops is 65");
}

int main(void)
{
    check_loops();
    return done_testing();
}
