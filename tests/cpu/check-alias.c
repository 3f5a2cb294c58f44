/* SPDX-License-Identifier: MIT */
/* check-alias.c - operations that read one tensor as several sources
 *
 * The result must have the bits of the same operation on equal copies, one for
 * each source. Random nodes of every operation are tried.
 */
#include "config.h"
#include "graph/op_table.h"
#include "tests/cpu/ops.h"
#include "tests/graph/randop.h"

enum { SEEDS = 40 };

/* A node and the graph that computes it. */
struct made {
    ctx_t *ctx;
    tensor *t;
    struct gguf_graph *graph;
    bool found; /* two sources have the same type and layout */
};

static tensor *random_source(ctx_t *c, int64_t ne0, int64_t ne1)
{
    tensor *t = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, ne0, ne1);
    for (int64_t i = 0; i < ne0 * ne1; i++)
        ((float *)t->data)[i] = rnd_f32();
    return t;
}

static struct made make_graph(uint32_t op, uint64_t seed, bool copied)
{
    struct gguf_error err;
    struct made m = { .ctx = new_ctx() };
    struct randop r = { .ctx = m.ctx, .seed = seed };
    tap_rng = seed;
    r.a = random_source(m.ctx, 12, 10);
    r.b = random_source(m.ctx, 40, 7);
    r.cache = random_source(m.ctx, 64, 1);
    m.t = randop_make(&r, op);
    m.found = randop_same_source(m.t, op, copied ? m.ctx : NULL);
    m.graph = gguf_graph_create(m.ctx, 200);
    if (gguf_graph_finish(m.ctx, m.graph, m.t, &err) != GGUF_OK) {
        printf("Bail out! %s: %s\n", gguf_op_name(op), err.message);
        exit(1);
    }
    return m;
}

/* Are the results equal with every number of threads? *n is the number
 * compared. */
static bool compare_op(uint32_t op, uint64_t seed, int *n)
{
    struct made same = make_graph(op, seed, false),
                own = make_graph(op, seed, true);
    bool all = true;
    for (int i = 0; same.found && i < N_TEAMS; i++) {
        struct gguf_error err;
        all = all &&
              !gguf_backend_compute(ops_backends[i], same.graph, &err) &&
              !gguf_backend_compute(ops_backends[i], own.graph, &err) &&
              !memcmp(same.t->data, own.t->data,
                      (size_t)gguf_tensor_size(own.t));
    }
    *n += same.found;
    gguf_ctx_destroy(same.ctx);
    gguf_ctx_destroy(own.ctx);
    return all;
}

int main(void)
{
    int n_ops = 0;
    ops_begin();
    for (uint32_t op = 1; op < GGUF_N_OPS; op++) {
        int n = 0;
        bool all = true;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            all = compare_op(op, seed, &n) && all;
        n_ops += n > 0;
        if (n)
            ok(all, "%s reads one tensor twice, %d nodes", gguf_op_name(op),
               n);
    }
    ok(n_ops >= 20, "%d operations of several sources", n_ops);
    return done_testing();
}
