/* SPDX-License-Identifier: MIT */
/* stat.c - filling the family that sums up rows */
#include "config.h"
#include "kern/stat.h"
#include "kern/cpu_features.h"

void gg_stat_kern_init(struct gg_stat_kern *k, uint32_t cpu)
{
    *k = (struct gg_stat_kern){ gg_stat_sums_c, gg_stat_central_c,
                                gg_stat_bins_c, gg_stat_diff_c,
                                gg_stat_squares_c };
    (void)cpu;
#if HAVE_X86_AVX2
    if (cpu & GG_CPU_AVX2)
        *k = (struct gg_stat_kern){ gg_stat_sums_avx2, gg_stat_central_avx2,
                                    gg_stat_bins_avx2, gg_stat_diff_avx2,
                                    gg_stat_squares_avx2 };
#endif
}
