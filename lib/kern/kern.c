/* SPDX-License-Identifier: MIT */
/* kern.c - filling the table of kernels */
#include "config.h"
#include "kern/kern.h"

void gg_kern_init(struct gg_kern *k, uint32_t cpu)
{
    *k = (struct gg_kern){ .cpu = cpu };
    gg_codec_kern_init(k->codec, cpu);
    gg_kern_gemm_init(k->gemm, cpu);
    gg_kern_attn_i16_init(&k->attn_i16, cpu);
    gg_vec_kern_init(&k->vec, cpu);
    gg_stat_kern_init(&k->stat, cpu);
}
