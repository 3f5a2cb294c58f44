/* SPDX-License-Identifier: MIT */
/* compare.c - a model on two backends, node by node */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdio.h>

/* "matmul 'q' F32 [64, 8] of 'blk.0.attn_q.weight' F16 [64, 64], F32 [64,
 * 8]" */
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

static void keep_finding(struct ppl_finding *f, const struct ppl_compare *c,
                         size_t i, const struct gguf_tensor *node,
                         const struct gguf_difference *d)
{
    f->graph = c->n_graphs;
    f->node = i;
    f->d = *d;
    describe_node(node, f->what, sizeof f->what);
}

static int compare_node(void *user, size_t i, const struct gguf_tensor *node,
                        const struct gguf_tensor *a,
                        const struct gguf_tensor *b)
{
    struct ppl_compare *c = user;
    struct gguf_difference d = GGUF_DIFFERENCE_INIT;
    if (gguf_tensor_compare(a, b, NULL, &d, &c->err) != GGUF_OK)
        return 1;
    c->n_equal += !d.n_differ;
    if (d.n_differ && (!c->largest.graph || d.error > c->largest.d.error))
        keep_finding(&c->largest, c, i, node, &d);
    if (d.error > c->o->tolerance && !c->first.graph)
        keep_finding(&c->first, c, i, node, &d);
    return 0;
}

int ppl_compare_graph(void *user, struct gguf_graph *graph,
                      struct gguf_sched *sched)
{
    struct ppl_compare *c = user;
    struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
    struct gguf_compare_counts n = GGUF_COMPARE_COUNTS_INIT;
    struct gguf_error err;
    (void)sched;
    p.fn = compare_node;
    p.user = c;
    c->n_graphs++;
    enum gguf_status st = gguf_compare_backends(
        c->backends->pair[0], c->backends->pair[1], graph, &p, &n, &err);
    c->n.n_both += n.n_both;
    c->n.n_only_a += n.n_only_a;
    c->n.n_only_b += n.n_only_b;
    if (st != GGUF_OK && c->err.status == GGUF_OK)
        c->err = err;
    return st != GGUF_OK;
}

/* --- printing ------------------------------------------------------------- */

static const char *name_of(const struct ppl_compare *c, int i)
{
    return gguf_backend_name(c->backends->pair[i]);
}

static void print_finding(const char *title, const struct ppl_finding *f)
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
                         const struct ppl_finding *f)
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

static void print_json(const struct ppl_compare *c)
{
    struct json j;
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_strz(&j, "a", name_of(c, 0));
    json_strz(&j, "b", name_of(c, 1));
    json_f64(&j, "tolerance", c->o->tolerance);
    json_u64(&j, "graphs", c->n_graphs);
    json_u64(&j, "both", c->n.n_both);
    json_u64(&j, "only_a", c->n.n_only_a);
    json_u64(&j, "only_b", c->n.n_only_b);
    json_u64(&j, "equal", c->n_equal);
    json_finding(&j, "largest", &c->largest);
    json_finding(&j, "first", &c->first);
    json_close(&j);
    json_end(&j);
}

void ppl_print_compare(const struct ppl_compare *c)
{
    const char *a = name_of(c, 0), *b = name_of(c, 1);
    if (c->o->json) {
        print_json(c);
        return;
    }
    wrap_printf("compare %s with %s, node by node: an error above %g is a "
                "difference\n",
                a, b, c->o->tolerance);
    wrap_printf(
        "nodes   %zu computed by both in %zu graph%s, %zu by %s only, %zu by "
        "%s only\n",
        c->n.n_both, c->n_graphs, text_s(c->n_graphs), c->n.n_only_a, a,
        c->n.n_only_b, b);
    wrap_printf("equal   %zu of them, bit by bit\n", c->n_equal);
    print_finding("largest", &c->largest);
    print_finding("first", &c->first);
}
