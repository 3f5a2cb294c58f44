/* gemm.c - choosing the kernels of dense products */
#include "config.h"
#include "kern/gemm.h"

void gg_gemm_kern_init(struct gg_gemm_kern *k, uint32_t cpu)
{
    *k = (struct gg_gemm_kern){
        .mr = GG_GEMM_MR_C,
        .nr = GG_GEMM_NR_C,
        .kc = 512,
        .mc = 64,
        .tile = gg_gemm_tile_c,
        .pack = gg_gemm_pack_c,
    };
    (void)cpu;
}
