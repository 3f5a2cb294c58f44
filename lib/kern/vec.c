/* vec.c - choosing the kernels on rows */
#include "config.h"
#include "kern/vec.h"

void gg_vec_kern_init(struct gg_vec_kern *k, uint32_t cpu)
{
    *k = (struct gg_vec_kern){
        .add = gg_vec_add_c,
        .mul = gg_vec_mul_c,
        .scale = gg_vec_scale_c,
        .silu = gg_vec_silu_c,
        .swiglu = gg_vec_swiglu_c,
        .max = gg_vec_max_c,
        .sum = gg_vec_sum_c,
        .dot = gg_vec_dot_c,
        .exp_sum = gg_vec_exp_sum_c,
        .soft_max = gg_vec_soft_max_c,
        .rms_norm = gg_vec_rms_norm_c,
        .rope_norm = gg_vec_rope_norm_c,
        .rope_neox = gg_vec_rope_neox_c,
    };
    (void)cpu;
}
