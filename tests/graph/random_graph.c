/* SPDX-License-Identifier: MIT */
/* random_graph.c - random graphs with weights, inputs and a cache */
#include "config.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/randop.h"

enum { ROW = RANDOM_GRAPH_ROW };

static tensor *random_node(struct random_graph *g, tensor **t, int n)
{
    struct gguf_ctx *c = g->ctx;
    tensor *a = t[n - 1 - (int)rnd_below((uint64_t)(n < 6 ? n : 6))];
    tensor *b = t[rnd_below((uint64_t)n)];
    int64_t m = gguf_tensor_n_elements(a);
    if (rnd_below(3) == 0)
        return randop_any(&(struct randop){ c, a, b, g->cache, rnd64() });
    switch (rnd_below(12)) {
    case 0:
    case 1:
        return a->ne[0] == ROW
                   ? gguf_op_scale(
                         c, gguf_op_matmul(c, g->weights[rnd_below(3)], a),
                         0.1f)
                   : gguf_op_tanh(c, a);
    case 2:
    case 3:
        return gguf_tensor_can_repeat(b, a) ? gguf_op_add(c, a, b)
                                            : gguf_op_silu(c, a);
    case 4: return gguf_op_rms_norm(c, a, 1e-3f);
    case 5: return gguf_op_soft_max(c, a, NULL, 1, 0);
    case 6: return gguf_op_reshape_1d(c, gguf_op_cont(c, a), m);
    case 7: return gguf_op_cont(c, gguf_op_transpose(c, a));
    case 8:
        return a->ne[0] > 1
                   ? gguf_op_view_1d(c, a, a->ne[0] / 2, (uint64_t)a->nb[0])
                   : gguf_op_relu(c, a);
    case 9:
        if (m <= gguf_tensor_n_elements(g->cache) &&
            a->view_src != g->cache) /* not onto itself */
            return gguf_op_cpy(c, a, gguf_op_view_1d(c, g->cache, m, 0));
        return gguf_op_dup(c, a);
    case 10:
        return m % ROW
                   ? gguf_op_mul(c, a, a)
                   : gguf_op_reshape_2d(c, gguf_op_cont(c, a), ROW, m / ROW);
    default: return gguf_op_gelu(c, a);
    }
}

void random_graph_fill(tensor *t, uint64_t seed)
{
    static float v[ROW * ROW];
    struct gguf_error err;
    tap_rng = seed;
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        v[i] = rnd_f32();
    if (t->data)
        must(gguf_tensor_set(t, v, 0, gguf_tensor_size(t), &err), &err);
}

struct random_graph random_graph_make(uint64_t seed,
                                      const struct gguf_buft *const *home)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct random_graph g = { .n_out = 0 };
    tensor *t[3 * RANDOM_GRAPH_NODES];
    int n = 0;
    p.mem_size = 2 << 20;
    p.no_alloc = true;
    must(gguf_ctx_create(&g.ctx, &p, &err), &err);
    for (int k = 0; k < 4; k++) {
        tensor *w =
            gguf_tensor_create_2d(g.ctx, GGUF_DTYPE_F32, ROW, k < 3 ? ROW : 8);
        must(gguf_ctx_alloc_tensors(g.ctx, home[k], NULL, &g.buffers[k], &err),
             &err);
        if (k < 3) {
            gguf_buffer_set_usage(g.buffers[k], GGUF_USAGE_WEIGHTS);
            g.weights[k] = w;
        } else {
            g.cache = w;
        }
        random_graph_fill(w, seed + (uint64_t)k + 1);
    }
    tap_rng = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    for (int i = 0; i < 3; i++) {
        g.inputs[i] = gguf_tensor_create_2d(g.ctx, GGUF_DTYPE_F32, ROW,
                                            1 + (int64_t)rnd_below(5));
        t[n++] = gguf_tensor_add_flags(g.inputs[i], GGUF_TENSOR_INPUT);
    }
    g.graph = gguf_graph_create(g.ctx, 16 * RANDOM_GRAPH_NODES);
    int n_nodes = 4 + (int)rnd_below(RANDOM_GRAPH_NODES - 4);
    for (int i = 0; i < n_nodes; i++) {
        t[n] = random_node(&g, t, n);
        if (!rnd_below(6) || i == n_nodes - 1) {
            g.out[g.n_out++] = gguf_tensor_add_flags(t[n], GGUF_TENSOR_OUTPUT);
            gguf_graph_add(g.graph, t[n]);
        }
        n++;
    }
    must(gguf_graph_finish(g.ctx, g.graph, NULL, &err), &err);
    return g;
}

void random_graph_free(struct random_graph *g)
{
    for (int k = 0; k < 4; k++)
        gguf_buffer_destroy(g->buffers[k]);
    gguf_ctx_destroy(g->ctx);
}

void random_graph_run(struct gguf_sched *s, struct random_graph *g,
                      uint64_t seed)
{
    struct gguf_error err;
    random_graph_fill(g->cache, seed + 4);
    must(gguf_sched_alloc(s, g->graph, &err), &err);
    for (int i = 0; i < 3; i++)
        random_graph_fill(g->inputs[i], seed + 10 + (uint64_t)i);
    must(gguf_sched_compute(s, g->graph, &err), &err);
}

static bool same_tensor(const tensor *a, const tensor *b)
{
    static char x[1 << 16], y[1 << 16];
    struct gguf_error err;
    uint64_t size = gguf_tensor_size(a);
    must(gguf_tensor_get(a, x, 0, size, &err), &err);
    must(gguf_tensor_get(b, y, 0, size, &err), &err);
    return !memcmp(x, y, (size_t)size);
}

bool random_graph_same(const struct random_graph *a,
                       const struct random_graph *b)
{
    bool all = same_tensor(a->cache, b->cache);
    for (int i = 0; i < a->n_out; i++)
        if ((a->out[i]->view_src ? a->out[i]->view_src : a->out[i]) !=
            a->cache)
            all = all && same_tensor(a->out[i], b->out[i]);
    return all;
}
