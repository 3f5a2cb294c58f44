/* SPDX-License-Identifier: MIT */
/* compute_table.h - the CPU backend's table of operations */
#ifndef GG_CPU_COMPUTE_TABLE_H
#define GG_CPU_COMPUTE_TABLE_H

#include "cpu/weight_cache.h"
#include "cpu/cpu_task.h"
#include "graph/op_list.h"

/* Row of the table. */
struct gg_cpu_op {
    gg_cpu_op_fn *run;            /* computes; NULL: nothing to compute */
    gg_cpu_work_fn *work;         /* size of scratch; NULL: no scratch */
    gg_cpu_supports_fn *supports; /* can it be computed? */
    bool
        by_rows; /* threads share whole rows of the result, and nth threads need
                     nth times the scratch of one */
    gg_cpu_product_fn *product; /* describes the product of an operation that
                                   multiplies weights, src[0]; NULL: others */
};

/* Row of an operation, which must be below GGUF_N_OPS. */
const struct gg_cpu_op *gg_cpu_op_row(uint32_t op);

/* Can t be computed? True for views. */
bool gg_cpu_supports(const struct gguf_tensor *t, const struct gg_kern *kern);

/* Definition of the row of operation NAME (graph/op_list.h). It stands beside
 * the function that computes, in compute_*.c. */
#define GG_CPU_OP(NAME, RUN, WORK, SUPPORTS, BY_ROWS)                         \
    const struct gg_cpu_op gg_cpu_op_##NAME = { RUN, WORK, SUPPORTS, BY_ROWS, \
                                                NULL }
/* Row of an operation that multiplies weights. */
#define GG_CPU_PRODUCT(NAME, RUN, WORK, SUPPORTS, PRODUCT)                    \
    const struct gg_cpu_op gg_cpu_op_##NAME = { RUN, WORK, SUPPORTS, false,   \
                                                PRODUCT }
/* Row of an operation on rows of floats, with scratch for GG_CPU_TMP_ROWS rows
 * of the result's length (gg_row_tmp()). */
#define GG_CPU_OP_ROWS(NAME, RUN)                                             \
    GG_CPU_OP(NAME, RUN, gg_cpu_elem_work, gg_cpu_elem_supports, true)
/* Row of an operation on rows of floats that computes each row with NAME_row(),
 * by the file's each_row(). */
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
/* Does a decode, and has b usable rows? In compute_matmul.c. */
gg_cpu_supports_fn gg_cpu_matmul_supports;

#define X(ID, NAME, ...) extern const struct gg_cpu_op gg_cpu_op_##NAME;
GG_OP_LIST(X)
#undef X

#endif
