/* vec.c - choosing the kernels on rows */
#include "config.h"
#include "kern/vec.h"

#include "kern/cpu.h"

/* Every level has every slot. */
#define LEVEL(suffix)                                                         \
    {                                                                         \
        .add = gg_vec_add_##suffix,                                           \
        .mul = gg_vec_mul_##suffix,                                           \
        .scale = gg_vec_scale_##suffix,                                       \
        .silu = gg_vec_silu_##suffix,                                         \
        .swiglu = gg_vec_swiglu_##suffix,                                     \
        .max = gg_vec_max_##suffix,                                           \
        .sum = gg_vec_sum_##suffix,                                           \
        .dot = gg_vec_dot_##suffix,                                           \
        .exp_sum = gg_vec_exp_sum_##suffix,                                   \
        .scores = gg_vec_scores_##suffix,                                     \
        .soft_max = gg_vec_soft_max_##suffix,                                 \
        .rms_norm = gg_vec_rms_norm_##suffix,                                 \
        .rope_norm = gg_vec_rope_norm_##suffix,                               \
        .rope_neox = gg_vec_rope_neox_##suffix,                               \
    }

void gg_vec_kern_init(struct gg_vec_kern *k, uint32_t cpu)
{
    *k = (struct gg_vec_kern)LEVEL(c);
    (void)cpu;
#if HAVE_X86_AVX2
    if (cpu & GG_CPU_AVX2)
        *k = (struct gg_vec_kern)LEVEL(avx2);
#endif
#if HAVE_X86_AVX512
    if (cpu & GG_CPU_AVX512)
        *k = (struct gg_vec_kern)LEVEL(avx512);
#endif
}
