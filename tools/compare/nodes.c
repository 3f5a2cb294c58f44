/* SPDX-License-Identifier: MIT */
/* nodes.c - comparison of two backends, node by node */
#include "config.h"
#include "tools/compare/compare.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdio.h>

/* A node that differs. */
struct finding {
    size_t graph, node; /* graph from 1, node from 0; graph 0: no finding */
    char what[400];     /* operation, shape and sources */
    struct gguf_difference d;
};

/* Result: counts of nodes, the first node above the tolerance, and the node
 * with the largest error. */
struct nodes {
    const struct compare *c;
    struct gguf_error err; /* cause of an early end; GGUF_OK: none */
    size_t n_graphs, n_equal;
    struct gguf_compare_counts n;
    struct finding first, largest;
};

/* Describe a node: "matmul 'q' F32 [64, 8] of 'blk.0.attn_q.weight' F16 [64,
 * 64], F32 [64, 8]". */
static void describe_node(const struct gguf_tensor *t, char *out, size_t size)
{
    char text[160];
    int at = snprintf(out, size, "%s %s", gguf_op_name(t->op),
                      gguf_tensor_format(t, text, sizeof text));
    const char *sep = " of ";
    for (int i = 0; i < GGUF_TENSOR_SRC && at > 0 && (size_t)at < size; i++) {
        if (!t->src[i])
            continue;
        at += snprintf(out + at, size - (size_t)at, "%s%s", sep,
                       gguf_tensor_format(t->src[i], text, sizeof text));
        sep = ", ";
    }
}

static void set_finding(struct finding *f, const struct nodes *x, size_t i,
                        const struct gguf_tensor *node,
                        const struct gguf_difference *d)
{
    f->graph = x->n_graphs;
    f->node = i;
    f->d = *d;
    describe_node(node, f->what, sizeof f->what);
}

static bool compare_node(void *user, size_t i, const struct gguf_tensor *node,
                         const struct gguf_tensor *a,
                         const struct gguf_tensor *b)
{
    struct nodes *x = user;
    struct gguf_difference d = GGUF_DIFFERENCE_INIT;
    if (gguf_tensor_compare(a, b, NULL, &d, &x->err) != GGUF_OK)
        return true;
    x->n_equal += !d.n_differ;
    if (d.n_differ && (!x->largest.graph || d.error > x->largest.d.error))
        set_finding(&x->largest, x, i, node, &d);
    if (d.error > x->c->o->tolerance && !x->first.graph)
        set_finding(&x->first, x, i, node, &d);
    return false;
}

static bool compare_graph(void *user, struct gguf_graph *graph,
                          struct gguf_sched *sched)
{
    struct nodes *x = user;
    struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
    struct gguf_compare_counts n = GGUF_COMPARE_COUNTS_INIT;
    struct gguf_error err;
    (void)sched;
    p.node.fn = compare_node;
    p.node.user = x;
    x->n_graphs++;
    enum gguf_status st = gguf_compare_backends(x->c->model.backends.pair[0],
                                                x->c->model.backends.pair[1],
                                                graph, &p, &n, &err);
    x->n.n_both += n.n_both;
    x->n.n_only_a += n.n_only_a;
    x->n.n_only_b += n.n_only_b;
    if (st != GGUF_OK && x->err.status == GGUF_OK)
        x->err = err;
    return st != GGUF_OK;
}

/* --- printing ------------------------------------------------------------- */

static const char *get_backend_name(const struct nodes *x, int i)
{
    return gguf_backend_name(x->c->model.backends.pair[i]);
}

static void print_finding(const char *title, const struct finding *f)
{
    if (!f->graph) {
        wrap_printf("%-8snone\n", title);
        return;
    }
    wrap_printf("%-8sgraph %zu, node %zu: %s\n"
                "        error %.3g, %" PRIu64 " of %" PRIu64
                " elements differ, by %.3g at most\n",
                title, f->graph, f->node, f->what, f->d.error, f->d.n_differ,
                f->d.n, f->d.max_abs);
}

static void json_finding(struct json *j, const char *name,
                         const struct finding *f)
{
    json_open(j, name, '{');
    if (f->graph) {
        json_u64(j, "graph", f->graph);
        json_u64(j, "node", f->node);
        json_strz(j, "what", f->what);
        json_f64(j, "error", f->d.error);
        json_f64(j, "max_abs", f->d.max_abs);
        json_u64(j, "elements", f->d.n);
        json_u64(j, "differ", f->d.n_differ);
    }
    json_close(j);
}

static void print_json(const struct nodes *x)
{
    struct json j;
    json_begin_object(&j, stdout);
    json_strz(&j, "a", get_backend_name(x, 0));
    json_strz(&j, "b", get_backend_name(x, 1));
    json_f64(&j, "tolerance", x->c->o->tolerance);
    json_u64(&j, "graphs", x->n_graphs);
    json_u64(&j, "both", x->n.n_both);
    json_u64(&j, "only_a", x->n.n_only_a);
    json_u64(&j, "only_b", x->n.n_only_b);
    json_u64(&j, "equal", x->n_equal);
    json_finding(&j, "largest", &x->largest);
    json_finding(&j, "first", &x->first);
    json_end(&j);
}

static void print_result(const struct nodes *x)
{
    const char *a = get_backend_name(x, 0), *b = get_backend_name(x, 1);
    if (x->c->o->ev.json) {
        print_json(x);
        return;
    }
    wrap_printf("compare %s with %s, node by node: an error above %g is a "
                "difference\n",
                a, b, x->c->o->tolerance);
    wrap_printf(
        "nodes   %zu computed by both in %zu graph%s, %zu by %s only, %zu by "
        "%s only\n",
        x->n.n_both, x->n_graphs, text_s(x->n_graphs), x->n.n_only_a, a,
        x->n.n_only_b, b);
    wrap_printf("equal   %zu of them, bit by bit\n", x->n_equal);
    print_finding("largest", &x->largest);
    print_finding("first", &x->first);
}

bool compare_nodes(struct compare *c)
{
    struct nodes x = { .c = c };
    struct gguf_error err;
    struct gguf_ppl total = GGUF_PPL_INIT;
    if (!compare_begin_sessions(c, compare_graph, &x))
        return false;
    progress_catch_signals();
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    const struct gguf_scan_params scan = compare_scan_params(c);
    p.scan = &scan;
    ev_begin_work(&c->run, "comparing", "tokens");
    const enum gguf_status st = gguf_ppl_run(c->model.session, c->tokens.id,
                                             c->tokens.n, &p, &total, &err);
    ev_end_work(&c->run);
    if (st != GGUF_OK)
        return progress_fail(NULL, c->model.path,
                             x.err.status ? &x.err : &err);
    print_result(&x);
    return !x.first.graph;
}
