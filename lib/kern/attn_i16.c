/* SPDX-License-Identifier: MIT */
/* attn_i16.c - choosing the kernels of attention in integers */
#include "config.h"
#include "kern/attn_i16.h"

#include "kern/cpu_features.h"

#define ROW(NAME, LEVEL, TILE)                                                \
    {                                                                         \
        GG_ATTN_I16_MR_##LEVEL, GG_ATTN_I16_NR_##LEVEL,                       \
            gg_kern_attn_i16_round_##NAME, gg_kern_attn_i16_rows_##NAME,      \
            gg_kern_attn_i16_values_##NAME, gg_kern_attn_i16_weights_##NAME,  \
            gg_kern_attn_i16_tile_##TILE                                      \
    }

/* No tile: the level below has it. */
static const struct gg_kern_attn_i16 kernels[GG_N_LEVELS] = {
    [GG_LEVEL_C] = ROW(c, C, c),
#if HAVE_KERN_256
    [GG_LEVEL_256] = ROW(256, 256, 256),
#endif
#if HAVE_X86_AVXVNNI
    [GG_LEVEL_AVXVNNI] = ROW(256, 256, avxvnni),
#endif
#if HAVE_X86_AVX512
    [GG_LEVEL_AVX512] = ROW(avx512, AVX512, avx512),
#endif
#if HAVE_X86_VNNI512
    [GG_LEVEL_VNNI512] = ROW(avx512, AVX512, vnni512),
#endif
};

void gg_kern_attn_i16_init(struct gg_kern_attn_i16 *k, uint32_t cpu)
{
    for (unsigned l = 0; l < GG_N_LEVELS; l++)
        if (gg_kern_cpu_has_level(cpu, l) && kernels[l].tile)
            *k = kernels[l];
}
