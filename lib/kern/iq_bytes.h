/* SPDX-License-Identifier: MIT */
/* iq_bytes.h - the codebooks of dtype/iq_code.h, an entry's levels as bytes
 *
 * Element 0 is the lowest byte. Levels of IQ1 are in eighths. The tables are
 * computed while building (kern/gen/iq_bytes.c): 33 KB.
 */
#ifndef GG_KERN_IQ_BYTES_H
#define GG_KERN_IQ_BYTES_H

#include <stdint.h>

extern const uint64_t gg_kern_iq1_bytes[2048]; /* IQ1_S, IQ1_M */
extern const uint64_t gg_kern_iq2_xxs_bytes[256];
extern const uint64_t gg_kern_iq2_xs_bytes[512];
extern const uint64_t gg_kern_iq2_s_bytes[1024];
extern const uint32_t gg_kern_iq3_xxs_bytes[256];
extern const uint32_t gg_kern_iq3_s_bytes[512];

#endif
