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
#if HAVE_KERN_256
    if (cpu & GG_CPU_256)
        *k = (struct gg_stat_kern){ gg_stat_sums_256, gg_stat_central_256,
                                    gg_stat_bins_256, gg_stat_diff_256,
                                    gg_stat_squares_256 };
#endif
}
