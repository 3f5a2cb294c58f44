/* SPDX-License-Identifier: MIT */
/* graph_dump.c - graphs as text and for Graphviz */
#include "config.h"
#include "base/params.h"
#include "base/str.h"
#include "graph/cgraph.h"
#include "graph/graph_dump.h"

#include <stdarg.h>
#include <stdio.h>

void gg_graph_out_put(struct gg_graph_out *o, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    if (o->stopped)
        return;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t size = n < 0 ? 0 : GG_MIN((size_t)n, sizeof text - 1);
    o->stopped = o->write.fn(o->write.user, text, size);
}

enum gguf_status gg_graph_out_finish(const struct gg_graph_out *o,
                                     const char *what, struct gguf_error *err)
{
    if (!o->stopped)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                        "the dump of %s was stopped", what);
}

/* " node 7", " leaf 3", or " outside" for a source of a view of a graph. */
static void put_number(struct gg_graph_out *o, const struct gguf_graph *g,
                       const struct gguf_tensor *t)
{
    uint32_t k = gg_graph_find_number(g, t);
    if (k == GG_GRAPH_NONE)
        gg_graph_out_put(o, " outside");
    else
        gg_graph_out_put(o, " %s %" PRIu32, k & 1 ? "leaf" : "node", k / 2);
}

static void put_line(struct gg_graph_out *o, const struct gguf_graph *g,
                     const struct gguf_tensor *t)
{
    char text[160];
    gg_graph_out_put(o, " %s %s", gguf_op_name(t->op),
                     gguf_tensor_format(t, text, sizeof text));
    static const char *const flags[] = { "input", "output", "param" };
    for (unsigned i = 0; i < GG_LEN(flags); i++)
        if (t->flags & 1u << i)
            gg_graph_out_put(o, " %s", flags[i]);
    const char *sep = " <-";
    for (int i = 0; i < GGUF_TENSOR_SRC; i++) {
        if (!t->src[i])
            continue;
        gg_graph_out_put(o, "%s", sep);
        put_number(o, g, t->src[i]);
        sep = ",";
    }
    if (t->view_src)
        gg_graph_out_put(o, " at byte %" PRIu64, t->view_off);
    gg_graph_out_put(o, "\n");
}

enum gguf_status gguf_graph_dump(const struct gguf_graph *g, const char *part,
                                 struct gguf_write_callback write,
                                 struct gguf_error *err)
{
    struct gg_graph_out o = { write, false };
    GG_TRY(gg_params_need(write.fn, "write", err));
    gg_graph_out_put(&o, "%s: %zu node%s, %zu %s\n", part ? part : "graph",
                     g->n_nodes, g->n_nodes == 1 ? "" : "s", g->n_leaves,
                     g->n_leaves == 1 ? "leaf" : "leaves");
    for (size_t i = 0; i < g->n_leaves && !o.stopped; i++) {
        gg_graph_out_put(&o, "leaf %zu:", i);
        put_line(&o, g, g->leaves[i]);
    }
    for (size_t i = 0; i < g->n_nodes && !o.stopped; i++) {
        gg_graph_out_put(&o, "node %zu:", i);
        put_line(&o, g, g->nodes[i]);
    }
    return gg_graph_out_finish(&o, "a graph", err);
}

/* Escaped for a label in double quotes: gg_str_esc escapes backslashes and
 * control characters; quotes are left. */
static void dot_box(struct gg_graph_out *o, const char *part,
                    const struct gguf_tensor *t, char kind, size_t i)
{
    char text[160];
    gguf_tensor_format(t, text, sizeof text);
    gg_graph_out_put(o, "  %s%c%zu [label=\"%s\\n", part, kind, i,
                     gguf_op_name(t->op));
    for (const char *p = text; *p; p++)
        gg_graph_out_put(o, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    gg_graph_out_put(
        o, "\"%s];\n",
        kind == 'l' ? ", shape=box, style=filled, fillcolor=gray90" : "");
}

static void dot_edges(struct gg_graph_out *o, const char *part,
                      const struct gguf_graph *g, size_t i)
{
    for (int s = 0; s < GGUF_TENSOR_SRC; s++) {
        const struct gguf_tensor *t = g->nodes[i]->src[s];
        uint32_t k = t ? gg_graph_find_number(g, t) : GG_GRAPH_NONE;
        if (k != GG_GRAPH_NONE)
            gg_graph_out_put(o,
                             "  %s%c%" PRIu32 " -> %sn%zu [label=\"%d\"];\n",
                             part, k & 1 ? 'l' : 'n', k / 2, part, i, s);
    }
}

enum gguf_status gguf_graph_dump_dot(const struct gguf_graph *g,
                                     const char *part,
                                     struct gguf_write_callback write,
                                     struct gguf_error *err)
{
    struct gg_graph_out o = { write, false };
    const char *const prefix = part ? part : "";
    GG_TRY(gg_params_need(write.fn, "write", err));
    if (part)
        gg_graph_out_put(&o, "subgraph cluster_%s {\n  label=\"%s\";\n", part,
                         part);
    else
        gg_graph_out_put(&o, "digraph gguf {\n");
    for (size_t i = 0; i < g->n_leaves && !o.stopped; i++)
        dot_box(&o, prefix, g->leaves[i], 'l', i);
    for (size_t i = 0; i < g->n_nodes && !o.stopped; i++)
        dot_box(&o, prefix, g->nodes[i], 'n', i);
    for (size_t i = 0; i < g->n_nodes && !o.stopped; i++)
        dot_edges(&o, prefix, g, i);
    gg_graph_out_put(&o, "}\n");
    return gg_graph_out_finish(&o, "a graph", err);
}
