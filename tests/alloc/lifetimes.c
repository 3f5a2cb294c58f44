/* SPDX-License-Identifier: MIT */
/* lifetimes.c - the lifetime of each tensor, by plain and slow loops */
#include "config.h"
#include "tests/alloc/lifetimes.h"
#include "graph/op_table.h"

typedef struct gguf_tensor tensor;
enum { ALIGN = GGUF_TENSOR_ALIGN };

static bool is_read(const struct gguf_graph *g, const tensor *x)
{
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++)
        for (int j = 0; j < GGUF_TENSOR_SRC; j++)
            if (gguf_graph_node(g, i)->src[j] == x)
                return true;
    return false;
}

int spans_of(const struct gguf_graph *g, const struct gguf_buffer *buffer,
             struct span *s)
{
    int n_nodes = (int)gguf_graph_n_nodes(g), n = 0;
    if (!buffer)
        return 0;
    for (int i = 0; i < (int)gguf_graph_n_leaves(g); i++)
        if (gguf_graph_leaf(g, (size_t)i)->buffer == buffer)
            s[n++] = (struct span){ gguf_graph_leaf(g, (size_t)i), -1, -1, 0,
                                    false };
    for (int i = 0; i < n_nodes; i++) {
        const tensor *t = gguf_graph_node(g, (size_t)i);
        if (!t->view_src && t->buffer == buffer)
            s[n++] = (struct span){ t, i, i, 0, false };
    }
    for (int k = 0; k < n; k++) {
        bool read = false;
        s[k].size = (gguf_tensor_size(s[k].t) + ALIGN - 1) / ALIGN * ALIGN;
        s[k].keep = s[k].t->flags & (GGUF_TENSOR_INPUT | GGUF_TENSOR_OUTPUT);
        for (int i = 0; i < n_nodes; i++) {
            const tensor *t = gguf_graph_node(g, (size_t)i);
            if (t->view_src == s[k].t &&
                (t->flags & (GGUF_TENSOR_INPUT | GGUF_TENSOR_OUTPUT) ||
                 !is_read(g, t)))
                s[k].keep = true;
            for (int j = 0; j < GGUF_TENSOR_SRC; j++)
                if (t->src[j] &&
                    (t->src[j] == s[k].t || t->src[j]->view_src == s[k].t)) {
                    s[k].last = i;
                    read = true;
                }
        }
        if (s[k].keep || !read)
            s[k].last = n_nodes;
    }
    return n;
}

/* May node overwrite src? Only if every operand of node in src's memory has
 * node's layout, and one of them may be overwritten. */
static bool may_take(const tensor *node, const tensor *src)
{
    unsigned slots = gg_op_row(node->op)->inplace;
    bool found = false;
    for (int j = 0; j < GGUF_TENSOR_SRC; j++) {
        const tensor *x = node->src[j];
        if (!x || (x != src && x->view_src != src))
            continue;
        if ((x->view_src && x->view_off) || !gguf_tensor_same_layout(node, x))
            return false;
        found = found || slots >> j & 1;
    }
    return found;
}

bool spans_overlap(const struct span *s, int n)
{
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            const char *pa = s[a].t->data, *pb = s[b].t->data;
            if (s[a].last < s[b].first || s[b].last < s[a].first ||
                pa + s[a].size <= pb || pb + s[b].size <= pa)
                continue;
            const struct span *old = s[a].first < s[b].first ? &s[a] : &s[b];
            const struct span *new = old == &s[a] ? &s[b] : &s[a];
            if (old->last == new->first && !old->keep &&
                may_take(new->t, old->t) && old->t->data == new->t->data)
                continue;
            return true;
        }
    return false;
}

uint64_t spans_bound(const struct span *s, int n, const struct gguf_graph *g)
{
    int n_nodes = (int)gguf_graph_n_nodes(g);
    uint64_t most = 0;
    for (int i = -1; i < n_nodes; i++) {
        uint64_t sum = 0, saved = 0;
        for (int k = 0; k < n; k++) {
            if (s[k].first > i || s[k].last < i)
                continue;
            sum += s[k].size;
            if (s[k].first == i)
                for (int j = 0; j < n; j++)
                    if (s[j].last == i && s[j].first < i && !s[j].keep &&
                        s[j].size >= s[k].size && may_take(s[k].t, s[j].t))
                        saved = s[k].size;
        }
        most = GG_MAX(most, sum - saved);
    }
    return GG_MAX(most, (uint64_t)ALIGN);
}
