/* optab.c - which function computes which operation */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/op_attn.h"
#include "graph/optab.h"

#define COPY { gg_cpu_copy, gg_cpu_copy_work, gg_cpu_copy_supports, false }
/* rows of floats in, rows of floats out */
#define ROWS(fn) { fn, gg_cpu_elem_work, gg_cpu_elem_supports, true }

static const struct gg_cpu_op rows[GGUF_N_OPS] = {
    [GGUF_OP_DUP] = COPY,
    [GGUF_OP_CPY] = COPY,
    [GGUF_OP_GET_ROWS] = { gg_cpu_get_rows, NULL, gg_cpu_get_rows_supports, true },
    [GGUF_OP_SET_ROWS] = { gg_cpu_set_rows, gg_cpu_set_rows_work,
                           gg_cpu_set_rows_supports, false },
    [GGUF_OP_ADD] = ROWS(gg_cpu_add),
    [GGUF_OP_SUB] = ROWS(gg_cpu_sub),
    [GGUF_OP_MUL] = ROWS(gg_cpu_mul),
    [GGUF_OP_DIV] = ROWS(gg_cpu_div),
    [GGUF_OP_SCALE] = ROWS(gg_cpu_scale),
    [GGUF_OP_SILU] = ROWS(gg_cpu_silu),
    [GGUF_OP_GELU] = ROWS(gg_cpu_gelu),
    [GGUF_OP_GELU_ERF] = ROWS(gg_cpu_gelu_erf),
    [GGUF_OP_GELU_QUICK] = ROWS(gg_cpu_gelu_quick),
    [GGUF_OP_RELU] = ROWS(gg_cpu_relu),
    [GGUF_OP_SIGMOID] = ROWS(gg_cpu_sigmoid),
    [GGUF_OP_TANH] = ROWS(gg_cpu_tanh),
    [GGUF_OP_SWIGLU] = ROWS(gg_cpu_swiglu),
    [GGUF_OP_GEGLU] = ROWS(gg_cpu_geglu),
    [GGUF_OP_REGLU] = ROWS(gg_cpu_reglu),
    [GGUF_OP_NORM] = ROWS(gg_cpu_norm),
    [GGUF_OP_RMS_NORM] = ROWS(gg_cpu_rms_norm),
    [GGUF_OP_SOFT_MAX] = ROWS(gg_cpu_soft_max),
    [GGUF_OP_ROPE] = { gg_cpu_rope, gg_cpu_rope_work, gg_cpu_elem_supports,
                       true },
    [GGUF_OP_MATMUL] = { gg_cpu_matmul, gg_cpu_matmul_work,
                         gg_cpu_matmul_supports, false },
    [GGUF_OP_ATTENTION] = { gg_cpu_attention, gg_cpu_attention_work,
                            gg_cpu_attention_supports, false },
};

const struct gg_cpu_op *gg_cpu_op_row(uint32_t op)
{
    return &rows[op];
}

bool gg_cpu_supports(const struct gguf_tensor *t, const struct gg_kern *kern)
{
    if (t->op >= GGUF_N_OPS)
        return false;
    if (t->op == GGUF_OP_NONE || gg_op_row(t->op)->flags & GG_OP_VIEW)
        return true;
    return rows[t->op].run && rows[t->op].supports(t, kern);
}
