/* SPDX-License-Identifier: MIT */
/* compute_table.h - the CPU backend's table of operations: what computes each
 * */
#ifndef GG_CPU_COMPUTE_TABLE_H
#define GG_CPU_COMPUTE_TABLE_H

#include "cpu/weight_cache.h"
#include "cpu/cpu_task.h"
#include "graph/op_list.h"

struct gg_cpu_op {
    gg_cpu_op_fn *run;    /* NULL: there is nothing to do */
    gg_cpu_work_fn *work; /* NULL: none */
    gg_cpu_supports_fn *supports;
    bool by_rows; /* shares out whole rows of the result; work of nth threads
                     is nth times that of one */
    gg_cpu_product_fn
        *product; /* of one that multiplies weights, src[0], whose
                                   panels may be kept; or NULL */
};

/* Row of op, < GGUF_N_OPS; run is NULL where there is nothing to do. */
const struct gg_cpu_op *gg_cpu_op_row(uint32_t op);

/* Whether t can be computed, or needs no computing. */
bool gg_cpu_supports(const struct gguf_tensor *t, const struct gg_kern *kern);

/* Rows are told where the operation is computed, in op_*.c: that of NAME (as
 * in graph/op_list.h) with its function and what is beside it. */
#define GG_CPU_OP(NAME, RUN, WORK, SUPPORTS, BY_ROWS)                         \
    const struct gg_cpu_op gg_cpu_op_##NAME = { RUN, WORK, SUPPORTS, BY_ROWS, \
                                                NULL }
/* One that multiplies weights. */
#define GG_CPU_PRODUCT(NAME, RUN, WORK, SUPPORTS, PRODUCT)                    \
    const struct gg_cpu_op gg_cpu_op_##NAME = { RUN, WORK, SUPPORTS, false,   \
                                                PRODUCT }
/* One that takes rows of floats and gives rows of floats, with scratch for
 * GG_CPU_TMP_ROWS rows of the result's length: gg_row_tmp. */
#define GG_CPU_OP_ROWS(NAME, RUN)                                             \
    GG_CPU_OP(NAME, RUN, gg_cpu_elem_work, gg_cpu_elem_supports, true)
/* The same, of which a file's each_row makes each row by NAME_row. */
#define GG_CPU_OP_EACH_ROW(NAME)                                              \
    static void NAME##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        each_row(t, task, NAME##_row);                                        \
    }                                                                         \
    GG_CPU_OP_ROWS(NAME, NAME##_run)
enum { GG_CPU_TMP_ROWS = 3 };
gg_cpu_work_fn gg_cpu_elem_work;
gg_cpu_supports_fn gg_cpu_elem_supports;
/* Of a that decodes and rows of b: compute_matmul.c. */
gg_cpu_supports_fn gg_cpu_matmul_supports;

#define X(ID, NAME, ...) extern const struct gg_cpu_op gg_cpu_op_##NAME;
GG_OP_LIST(X)
#undef X

#endif
