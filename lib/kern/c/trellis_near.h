/* SPDX-License-Identifier: MIT */
/* trellis_near.h - codes of trellis types near a direction
 *
 * A point is the group of elements of a code (dtype/iq_code.h). Clusters divide
 * the space: by the signs of eight numbers, each minus a middle, or by five
 * ranges of each of four numbers. A code belongs to the clusters with the
 * centres nearest to its point: 32 for IQ1_KT, 8 for IQ2_KT and IQ3_KT, 6 for
 * IQ4_KT. An encoder searches the codes of the cluster of a group of elements.
 * Each cluster has a multiple of eight codes. An empty one stands for all.
 *
 * The tables are computed while building (kern/gen/trellis_near.c). Source of
 * the rule: the encoders of ik_llama.cpp (August 2026), whose results depend on
 * the order of the codes.
 */
#ifndef GG_KERN_C_TRELLIS_NEAR_H
#define GG_KERN_C_TRELLIS_NEAR_H

#include <stdint.h>

struct gg_kern_trellis {
    uint32_t offset; /* number added to a code: the first state */
    int group;       /* elements of a code: 8 or 4 */
    int n_codes;
    int absolute;          /* 1: of magnitudes */
    const float *middle;   /* [8] if group is 8 */
    const uint32_t *start; /* begins of clusters in near: 257 or 626 */
    const uint16_t *near;
};

extern const struct gg_kern_trellis gg_kern_trellis_1, gg_kern_trellis_2,
    gg_kern_trellis_3, gg_kern_trellis_4, gg_kern_trellis_4_other;

#endif
