/* SPDX-License-Identifier: MIT */
/* vec.c - choosing the kernels on rows */
#include "config.h"
#include "kern/vec.h"

#include "kern/cpu_features.h"

/* Every level has every kernel. */
static const struct gg_vec_kern rows[GG_N_FLOAT_LEVELS] = {
#define X(TYPE, NAME)                                                         \
    [GG_LEVEL_C].NAME = gg_vec_##NAME##_c,                                    \
    [GG_LEVEL_256].NAME = GG_256(gg_vec_##NAME##_256),                        \
    GG_IF_AVX512([GG_LEVEL_AVX512].NAME = gg_vec_##NAME##_avx512, )
    GG_VEC_LIST(X)
#undef X
};

void gg_vec_kern_init(struct gg_vec_kern *k, uint32_t cpu)
{
    for (unsigned l = 0; l < GG_N_FLOAT_LEVELS; l++)
        if (gg_kern_cpu_has_level(cpu, l) && rows[l].add)
            *k = rows[l];
}
