/* SPDX-License-Identifier: MIT */
/* compute_table.c - which function computes which operation */
#include "config.h"
#include "cpu/compute_table.h"
#include "graph/op_table.h"

static const struct gg_cpu_op nothing = { .run = NULL };

#define ROW_LEAF(NAME) &nothing
#define ROW_VIEW(NAME) &nothing
#define ROW_DEST(NAME) &gg_cpu_op_##NAME
#define ROW_WORK(NAME) &gg_cpu_op_##NAME

static const struct gg_cpu_op *const rows[GGUF_N_OPS] = {
#define X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)              \
    [GGUF_OP_##ID] = ROW_##KIND(NAME),
    GG_OP_LIST(X)
#undef X
};

const struct gg_cpu_op *gg_cpu_op_row(uint32_t op)
{
    return rows[op];
}

bool gg_cpu_supports(const struct gguf_tensor *t, const struct gg_kern *kern)
{
    if (t->op >= GGUF_N_OPS)
        return false;
    const struct gg_cpu_op *row = rows[t->op];
    return !row->run || row->supports(t, kern);
}
