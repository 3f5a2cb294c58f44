/* gemm.c - choosing the kernels of dense products */
#include "config.h"
#include "kern/gemm.h"

#include "kern/cpu.h"

void gg_gemm_kern_init(struct gg_gemm_kern *k, uint32_t cpu)
{
    *k = (struct gg_gemm_kern){
        .mr = GG_GEMM_MR_C,
        .nr = GG_GEMM_NR_C,
        .kc = 512,
        .mc = 64,
        .round = GG_GEMM_NR_C,
        .tile = gg_gemm_tile_c,
        .pack = gg_gemm_pack_c,
    };
    (void)cpu;
#if HAVE_X86_AVX2
    if (cpu & GG_CPU_AVX2)
        *k = (struct gg_gemm_kern){
            .mr = GG_GEMM_MR_AVX2,
            .nr = GG_GEMM_NR_AVX2,
            .kc = 256,
            .mc = 128,
            .round = 16 * GG_GEMM_NR_AVX2,
            .tile = gg_gemm_tile_avx2,
            .pack = gg_gemm_pack_avx2,
        };
#endif
#if HAVE_X86_AVX512
    if (cpu & GG_CPU_AVX512)
        *k = (struct gg_gemm_kern){
            .mr = GG_GEMM_MR_AVX512,
            .nr = GG_GEMM_NR_AVX512,
            .kc = 512,
            .mc = 128,
            .round = GG_GEMM_NR_AVX512,
            .tile = gg_gemm_tile_avx512,
            .pack = gg_gemm_pack_avx512,
        };
#endif
}
