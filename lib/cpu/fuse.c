/* SPDX-License-Identifier: MIT */
/* fuse.c - nodes that go over memory together
 *
 * A node may join others if every thread, with its rows of all of them, touches
 * nothing that another thread, or a later turn of its own, writes: all that one
 * of them writes and another reads or writes is the same memory, taken row by
 * row by both. It does join if there is such memory, or such that both read: a
 * way to it that is saved.
 */
#include "config.h"
#include "cpu/fuse.h"
#include "cpu/compute_table.h"
#include "graph/op_table.h"

/* Memory that a node reads or writes: all of it at any time, or row by row. */
struct place {
    const char *at;
    uint64_t size;
    bool by_rows;
};

static struct place place_of(const struct gguf_tensor *t, bool by_rows)
{
    return (struct place){ t->data, gguf_tensor_size(t),
                           by_rows && gguf_tensor_is_contiguous(t) };
}

/* Find the memory of t, which comes first, and of its sources. Returns the
 * number of places. */
enum { MOST_PLACES = 1 + GGUF_TENSOR_SRC };
static unsigned find_places(const struct gguf_tensor *t,
                            struct place found[MOST_PLACES])
{
    unsigned n = 0;
    found[n++] = place_of(t, true);
    for (int i = 0; i < gg_op_n_src(t); i++) {
        const struct gguf_tensor *s = t->src[i];
        if (s)
            found[n++] = place_of(s, gg_op_row(t->op)->inplace >> i & 1 &&
                                         gguf_tensor_same_shape(s, t));
    }
    return n;
}

static bool places_apart(const struct place *a, const struct place *b)
{
    return a->at + a->size <= b->at || b->at + b->size <= a->at;
}

static bool same_rows(const struct place *a, const struct place *b)
{
    return a->by_rows && b->by_rows && a->at == b->at && a->size == b->size;
}

/* *saved: there is memory that both go over. */
static bool nodes_compatible(const struct gguf_tensor *a,
                             const struct gguf_tensor *b, bool *saved)
{
    struct place p[MOST_PLACES], q[MOST_PLACES];
    const unsigned n_p = find_places(a, p), n_q = find_places(b, q);
    for (unsigned i = 0; i < n_p; i++)
        for (unsigned k = 0; k < n_q; k++) {
            if (same_rows(&p[i], &q[k]))
                *saved = true;
            else if ((i == 0 || k == 0) && !places_apart(&p[i], &q[k]))
                return false;
        }
    return true;
}

static bool is_fusible(const struct gguf_tensor *t)
{
    return gg_cpu_op_row(t->op)->by_rows && gg_op_row(t->op)->inplace &&
           !gguf_tensor_is_empty(t);
}

/* Number of rows to share: the rows of the node with the fewest, if the number
 * of every other node is a multiple. 0: the nodes cannot be fused. */
static int64_t rows_with(int64_t n_rows, const struct gguf_tensor *t)
{
    const int64_t n = gguf_tensor_n_rows(t);
    const int64_t few = GG_MIN(n, n_rows), many = GG_MAX(n, n_rows);
    return many % few ? 0 : few;
}

static bool joins_steps(const struct gg_cpu_step *steps, size_t n)
{
    const struct gguf_tensor *t = steps[n].node;
    bool saved = false;
    if (steps[n].single != steps->single || !is_fusible(t))
        return false;
    for (size_t k = 0; k < n; k++)
        if (!nodes_compatible(steps[k].node, t, &saved))
            return false;
    return saved;
}

void gg_cpu_fuse(struct gg_cpu_step *steps, size_t n, size_t bytes)
{
    const struct gguf_tensor *first = steps->node;
    uint64_t size = gguf_tensor_size(first);
    if (!is_fusible(first))
        return;
    steps->n_rows = gguf_tensor_n_rows(first);
    while (steps->n < n && joins_steps(steps, steps->n)) {
        const struct gguf_tensor *t = steps[steps->n].node;
        const int64_t n_rows = rows_with(steps->n_rows, t);
        if (n_rows < 2)
            break;
        steps->n_rows = n_rows;
        steps->n++;
        size += gguf_tensor_size(t);
    }
    /* they read about the same amount again */
    const uint64_t row = 2 * size / (uint64_t)steps->n_rows;
    steps->some = (int64_t)GG_MAX(bytes / GG_MAX(row, 1), 1);
}
