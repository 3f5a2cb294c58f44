/* optab.c - which function computes which operation */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/op_attn.h"
#include "graph/optab.h"

#define COPY { gg_cpu_copy, gg_cpu_copy_work, gg_cpu_copy_supports, false }
/* rows of floats in, rows of floats out */
#define ROWS(fn) { fn, gg_cpu_elem_work, gg_cpu_elem_supports, true }
/* bytes of elements, moved */
#define JOIN(fn) { fn, NULL, gg_cpu_join_supports, true }
/* a state for each head, which are shared out */
#define RECUR(fn) { fn, gg_cpu_recur_work, gg_cpu_elem_supports, false }
/* numbers of rows; shared by the rows of the source */
#define REDUCE(fn) { fn, gg_cpu_reduce_work, gg_cpu_reduce_supports, false }

static const struct gg_cpu_op rows[GGUF_N_OPS] = {
    [GGUF_OP_DUP] = COPY,
    [GGUF_OP_CPY] = COPY,
    [GGUF_OP_GET_ROWS] = { gg_cpu_get_rows, NULL, gg_cpu_get_rows_supports,
                           true },
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
    [GGUF_OP_RELU_SQR] = ROWS(gg_cpu_relu_sqr),
    [GGUF_OP_LEAKY_RELU] = ROWS(gg_cpu_leaky_relu),
    [GGUF_OP_ELU] = ROWS(gg_cpu_elu),
    [GGUF_OP_SOFTPLUS] = ROWS(gg_cpu_softplus),
    [GGUF_OP_NEG] = ROWS(gg_cpu_neg),
    [GGUF_OP_ABS] = ROWS(gg_cpu_abs),
    [GGUF_OP_SQR] = ROWS(gg_cpu_sqr),
    [GGUF_OP_SQRT] = ROWS(gg_cpu_sqrt),
    [GGUF_OP_EXP] = ROWS(gg_cpu_exp),
    [GGUF_OP_LOG] = ROWS(gg_cpu_log),
    [GGUF_OP_SIN] = ROWS(gg_cpu_sin),
    [GGUF_OP_COS] = ROWS(gg_cpu_cos),
    [GGUF_OP_CLAMP] = ROWS(gg_cpu_clamp),
    [GGUF_OP_XIELU] = ROWS(gg_cpu_xielu),
    [GGUF_OP_SWIGLU] = ROWS(gg_cpu_swiglu),
    [GGUF_OP_GEGLU] = ROWS(gg_cpu_geglu),
    [GGUF_OP_GEGLU_ERF] = ROWS(gg_cpu_geglu_erf),
    [GGUF_OP_GEGLU_QUICK] = ROWS(gg_cpu_geglu_quick),
    [GGUF_OP_REGLU] = ROWS(gg_cpu_reglu),
    [GGUF_OP_SWIGLU_OAI] = ROWS(gg_cpu_swiglu_oai),
    [GGUF_OP_CONCAT] = JOIN(gg_cpu_concat),
    [GGUF_OP_REPEAT] = JOIN(gg_cpu_repeat),
    [GGUF_OP_PAD] = JOIN(gg_cpu_pad),
    [GGUF_OP_ROLL] = JOIN(gg_cpu_roll),
    [GGUF_OP_SUM] = REDUCE(gg_cpu_sum),
    [GGUF_OP_SUM_ROWS] = REDUCE(gg_cpu_sum_rows),
    [GGUF_OP_MEAN] = REDUCE(gg_cpu_mean),
    [GGUF_OP_ARGMAX] = REDUCE(gg_cpu_argmax),
    [GGUF_OP_ARGSORT] = REDUCE(gg_cpu_argsort),
    [GGUF_OP_CUMSUM] = ROWS(gg_cpu_cumsum),
    [GGUF_OP_NORM] = ROWS(gg_cpu_norm),
    [GGUF_OP_RMS_NORM] = ROWS(gg_cpu_rms_norm),
    [GGUF_OP_L2_NORM] = ROWS(gg_cpu_l2_norm),
    [GGUF_OP_GROUP_NORM] = { gg_cpu_group_norm, gg_cpu_elem_work,
                             gg_cpu_elem_supports, false },
    [GGUF_OP_DIAG_MASK_INF] = ROWS(gg_cpu_diag_mask_inf),
    [GGUF_OP_DIAG_MASK_ZERO] = ROWS(gg_cpu_diag_mask_zero),
    [GGUF_OP_SOFT_MAX] = ROWS(gg_cpu_soft_max),
    [GGUF_OP_ROPE] = { gg_cpu_rope, gg_cpu_rope_work, gg_cpu_elem_supports,
                       true },
    [GGUF_OP_MATMUL] = { gg_cpu_matmul, gg_cpu_matmul_work,
                         gg_cpu_matmul_supports, false },
    [GGUF_OP_MATMUL_ID] = { gg_cpu_matmul_id, gg_cpu_matmul_id_work,
                            gg_cpu_matmul_supports, false },
    [GGUF_OP_OUT_PROD] = { gg_cpu_out_prod, gg_cpu_out_prod_work,
                           gg_cpu_elem_supports, true },
    [GGUF_OP_ATTENTION] = { gg_cpu_attention, gg_cpu_attention_work,
                            gg_cpu_attention_supports, false },
    [GGUF_OP_IM2COL] = ROWS(gg_cpu_im2col),
    [GGUF_OP_CONV] = { gg_cpu_conv, gg_cpu_conv_work, gg_cpu_elem_supports,
                       true },
    [GGUF_OP_CONV_TRANSPOSE] = { gg_cpu_conv_transpose, gg_cpu_conv_work,
                                 gg_cpu_elem_supports, true },
    [GGUF_OP_POOL] = { gg_cpu_pool, NULL, gg_cpu_elem_supports, true },
    [GGUF_OP_TIMESTEP_EMBEDDING] = { gg_cpu_timestep, NULL,
                                     gg_cpu_elem_supports, true },
    [GGUF_OP_SSM_CONV] = { gg_cpu_ssm_conv, gg_cpu_ssm_conv_work,
                           gg_cpu_elem_supports, false },
    [GGUF_OP_SSM_SCAN] = { gg_cpu_ssm_scan, gg_cpu_ssm_scan_work,
                           gg_cpu_elem_supports, false },
    [GGUF_OP_RWKV_WKV6] = RECUR(gg_cpu_wkv6),
    [GGUF_OP_RWKV_WKV7] = RECUR(gg_cpu_wkv7),
    [GGUF_OP_GATED_LINEAR_ATTN] = RECUR(gg_cpu_gla),
    [GGUF_OP_GATED_DELTA] = RECUR(gg_cpu_delta),
    [GGUF_OP_CUSTOM] = { gg_cpu_custom, NULL, gg_cpu_custom_supports, false },
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
