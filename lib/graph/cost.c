/* SPDX-License-Identifier: MIT */
/* cost.c - what operations cost, in steps: see gg_graph_cost_fn
 *
 * Estimates, for dividing work: a node of few steps is not worth a barrier,
 * one of many is worth another device.
 */
#include "config.h"
#include "graph/op_table.h"

/* a * b, at most UINT64_MAX. */
static uint64_t multiply_cost(uint64_t a, int64_t b)
{
    uint64_t r;
    return gg_ckd_mul(&r, a, (uint64_t)b) ? UINT64_MAX : r;
}

static uint64_t count_elements(const struct gguf_tensor *t)
{
    return (uint64_t)gguf_tensor_n_elements(t);
}

uint64_t gg_graph_cost_none(const struct gguf_tensor *t)
{
    (void)t;
    return 0;
}

uint64_t gg_graph_cost_out(const struct gguf_tensor *t)
{
    return count_elements(t);
}

uint64_t gg_graph_cost_in(const struct gguf_tensor *t)
{
    return count_elements(t->src[0]);
}

uint64_t gg_graph_cost_in1(const struct gguf_tensor *t)
{
    return count_elements(t->src[1]);
}

/* A merge sort compares each element once a level. */
uint64_t gg_graph_cost_sort(const struct gguf_tensor *t)
{
    int64_t levels = 1;
    for (int64_t n = 2; n < t->ne[0]; n *= 2)
        levels++;
    return multiply_cost(count_elements(t), levels);
}

uint64_t gg_graph_cost_dot(const struct gguf_tensor *t)
{
    return multiply_cost(count_elements(t), t->src[0]->ne[0]);
}

uint64_t gg_graph_cost_outer(const struct gguf_tensor *t)
{
    return multiply_cost(count_elements(t), t->src[0]->ne[1]);
}

/* A score takes d steps, and adding its value dv. */
uint64_t gg_graph_cost_attention(const struct gguf_tensor *t)
{
    const struct gguf_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    uint64_t scores = multiply_cost((uint64_t)gguf_tensor_n_rows(q), k->ne[1]);
    return multiply_cost(scores, q->ne[0] + v->ne[0]);
}

/* A score takes d steps for each head of queries. */
uint64_t gg_graph_cost_index(const struct gguf_tensor *t)
{
    const struct gguf_tensor *q = t->src[0], *k = t->src[1];
    return multiply_cost(
        multiply_cost((uint64_t)gguf_tensor_n_rows(q), k->ne[1]), q->ne[0]);
}

/* A result of a convolution sums a kernel, or one channel of it. */
uint64_t gg_graph_cost_conv(const struct gguf_tensor *t)
{
    const struct gguf_tensor *k = t->src[0];
    return multiply_cost(multiply_cost(count_elements(t), k->ne[2]),
                         k->ne[0] * k->ne[1]);
}

/* An element of data adds to a kernel's elements of all channels. */
uint64_t gg_graph_cost_spread(const struct gguf_tensor *t)
{
    const struct gguf_tensor *k = t->src[0];
    return multiply_cost(multiply_cost(count_elements(t->src[1]), k->ne[2]),
                         k->ne[0] * k->ne[1]);
}

uint64_t gg_graph_cost_pool(const struct gguf_tensor *t)
{
    struct gguf_conv_params p;
    gg_op_params_get(t, &p, sizeof p);
    return multiply_cost(multiply_cost(count_elements(t), p.window.size[0]),
                         p.window.size[1]);
}

/* Each result sums a row of the kernel. */
uint64_t gg_graph_cost_columns(const struct gguf_tensor *t)
{
    return multiply_cost(count_elements(t), t->src[1]->ne[0]);
}

/* Each token changes and reads its heads' states. */
uint64_t gg_graph_cost_scan(const struct gguf_tensor *t)
{
    return multiply_cost(
        multiply_cost(count_elements(t->src[1]), t->src[0]->ne[0]), 2);
}

uint64_t gg_graph_cost_states(const struct gguf_tensor *t)
{
    const struct gguf_tensor *v = t->src[2];
    return multiply_cost(multiply_cost(count_elements(v), v->ne[0]), 2);
}

/* To be on the safe side: a lot. */
uint64_t gg_graph_cost_unknown(const struct gguf_tensor *t)
{
    (void)t;
    return UINT64_MAX;
}

/* ---- work, for profiles ---- */

uint64_t gg_graph_flops(const struct gguf_tensor *t)
{
    /* costs whose steps are multiplications with additions */
    static gg_graph_cost_fn *const sums[] = {
        gg_graph_cost_dot,   gg_graph_cost_outer,   gg_graph_cost_attention,
        gg_graph_cost_index, gg_graph_cost_conv,    gg_graph_cost_spread,
        gg_graph_cost_scan,  gg_graph_cost_columns, gg_graph_cost_states,
    };
    const struct gg_op_row *row = gg_op_row(t->op);
    for (size_t i = 0; i < GG_LEN(sums); i++)
        if (row->cost == sums[i])
            return multiply_cost(row->cost(t), 2);
    return 0;
}

/* Bytes of n rows of t. */
static uint64_t rows_size(const struct gguf_tensor *t, uint64_t n)
{
    const int64_t rows = gguf_tensor_n_rows(t);
    const uint64_t size = gguf_tensor_size(t);
    return rows <= 0 || n >= (uint64_t)rows
               ? size
               : multiply_cost(size / (uint64_t)rows, (int64_t)n);
}

/* Bytes of source i, as far as t reads or writes it. */
static uint64_t source_size(const struct gguf_tensor *t, int i)
{
    const struct gguf_tensor *s = t->src[i];
    if (t->op == GGUF_OP_GET_ROWS && i == 0)
        return rows_size(s, (uint64_t)gguf_tensor_n_rows(t));
    if (t->op == GGUF_OP_SET_ROWS && i == 0)
        return 0; /* it is the result */
    if (t->op == GGUF_OP_MATMUL_ID && i == 0)
        return rows_size(s,
                         multiply_cost(count_elements(t->src[2]), s->ne[1]));
    return gguf_tensor_size(s);
}

uint64_t gg_graph_bytes(const struct gguf_tensor *t)
{
    uint64_t sum = t->op == GGUF_OP_SET_ROWS
                       ? rows_size(t, (uint64_t)gguf_tensor_n_rows(t->src[1]))
                       : gguf_tensor_size(t);
    for (int i = 0; i < GGUF_TENSOR_SRC; i++)
        if (t->src[i] && gg_ckd_add(&sum, sum, source_size(t, i)))
            return UINT64_MAX;
    return sum;
}
