/* SPDX-License-Identifier: MIT */
/* kern.h - the table of kernels of one instruction set mask
 *
 * Selection fills the C reference first; each level that the mask names then
 * overwrites the slots it has. The table belongs to what asked for it (a
 * backend, a quantization job) and is read-only from then on.
 *
 * Each family of kernels is a struct of its own with its own init, declared
 * in the family's header.
 */
#ifndef GG_KERN_KERN_H
#define GG_KERN_KERN_H

#include "kern/codec.h"
#include "kern/cpu_features.h"
#include "kern/gemm.h"
#include "kern/attn_i16.h"
#include "kern/stat.h"
#include "kern/vec.h"

struct gg_kern {
    uint32_t cpu;                            /* the mask it was made for */
    struct gg_codec_kern codec[GG_N_DTYPES]; /* index GG_DT_... */
    struct gg_kern_gemm gemm[GG_GEMM_N_FORMS];
    /* precision of products with weights; EXACT after gg_kern_init() */
    enum gg_kern_precision precision;
    struct gg_kern_attn_i16 attn_i16;
    struct gg_vec_kern vec;
    struct gg_stat_kern stat;
};

/* Fill k for the levels in cpu (GG_CPU_..., 0: C only). */
void gg_kern_init(struct gg_kern *k, uint32_t cpu);

#endif
