/* optab.h - the CPU backend's table of operations: what computes each */
#ifndef GG_CPU_OPTAB_H
#define GG_CPU_OPTAB_H

#include "cpu/task.h"

struct gg_cpu_op {
    gg_cpu_op_fn *run;             /* NULL: not supported */
    gg_cpu_work_fn *work;          /* NULL: none */
    gg_cpu_supports_fn *supports;
    bool by_rows;                  /* shares out whole rows of the result */
};

/* Row of op, < GGUF_N_OPS; run is NULL where there is nothing to do. */
const struct gg_cpu_op *gg_cpu_op_row(uint32_t op);

/* Whether t can be computed, or needs no computing. */
bool gg_cpu_supports(const struct gguf_tensor *t, const struct gg_kern *kern);

/* op_copy.c */
gg_cpu_op_fn gg_cpu_copy, gg_cpu_get_rows, gg_cpu_set_rows;
gg_cpu_work_fn gg_cpu_copy_work, gg_cpu_set_rows_work;
gg_cpu_supports_fn gg_cpu_copy_supports, gg_cpu_get_rows_supports,
    gg_cpu_set_rows_supports;
/* op_elem.c */
gg_cpu_op_fn gg_cpu_add, gg_cpu_sub, gg_cpu_mul, gg_cpu_div, gg_cpu_swiglu,
    gg_cpu_geglu, gg_cpu_geglu_erf, gg_cpu_geglu_quick, gg_cpu_reglu,
    gg_cpu_swiglu_oai;
gg_cpu_op_fn gg_cpu_scale, gg_cpu_silu, gg_cpu_gelu, gg_cpu_gelu_erf,
    gg_cpu_gelu_quick, gg_cpu_relu, gg_cpu_sigmoid, gg_cpu_tanh,
    gg_cpu_relu_sqr, gg_cpu_leaky_relu, gg_cpu_elu, gg_cpu_softplus, gg_cpu_neg,
    gg_cpu_abs, gg_cpu_sqr, gg_cpu_sqrt, gg_cpu_exp, gg_cpu_log, gg_cpu_sin,
    gg_cpu_cos, gg_cpu_clamp, gg_cpu_xielu;
gg_cpu_work_fn gg_cpu_elem_work;
gg_cpu_supports_fn gg_cpu_elem_supports;
/* op_row.c */
gg_cpu_op_fn gg_cpu_norm, gg_cpu_rms_norm, gg_cpu_l2_norm, gg_cpu_soft_max,
    gg_cpu_cumsum, gg_cpu_group_norm, gg_cpu_diag_mask_inf,
    gg_cpu_diag_mask_zero;
/* op_join.c */
gg_cpu_op_fn gg_cpu_concat, gg_cpu_repeat, gg_cpu_pad, gg_cpu_roll;
gg_cpu_supports_fn gg_cpu_join_supports;
/* op_reduce.c */
gg_cpu_op_fn gg_cpu_sum, gg_cpu_sum_rows, gg_cpu_mean, gg_cpu_argmax,
    gg_cpu_argsort;
gg_cpu_work_fn gg_cpu_reduce_work;
gg_cpu_supports_fn gg_cpu_reduce_supports;
/* op_rope.c */
gg_cpu_op_fn gg_cpu_rope;
gg_cpu_work_fn gg_cpu_rope_work;
/* op_matmul.c */
gg_cpu_op_fn gg_cpu_matmul;
gg_cpu_work_fn gg_cpu_matmul_work;
gg_cpu_supports_fn gg_cpu_matmul_supports;
/* op_out_prod.c */
gg_cpu_op_fn gg_cpu_out_prod;
gg_cpu_work_fn gg_cpu_out_prod_work;
/* op_matmul_id.c */
gg_cpu_op_fn gg_cpu_matmul_id;
gg_cpu_work_fn gg_cpu_matmul_id_work;
/* op_conv.c */
gg_cpu_op_fn gg_cpu_im2col, gg_cpu_conv, gg_cpu_conv_transpose;
gg_cpu_work_fn gg_cpu_conv_work;
/* op_pool.c */
gg_cpu_op_fn gg_cpu_pool, gg_cpu_timestep;
/* op_recur.c */
gg_cpu_op_fn gg_cpu_wkv6, gg_cpu_wkv7, gg_cpu_gla, gg_cpu_delta;
gg_cpu_work_fn gg_cpu_recur_work;
/* op_ssm.c */
gg_cpu_op_fn gg_cpu_ssm_conv, gg_cpu_ssm_scan;
gg_cpu_work_fn gg_cpu_ssm_conv_work, gg_cpu_ssm_scan_work;
/* op_custom.c */
gg_cpu_op_fn gg_cpu_custom;
gg_cpu_supports_fn gg_cpu_custom_supports;

#endif
