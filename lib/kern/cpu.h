/* cpu.h - which instruction sets this processor and system have
 *
 * A level is a group of features that kernels of that level may use together.
 * Detected once, by whoever creates a backend, and passed down as a mask.
 */
#ifndef GG_KERN_CPU_H
#define GG_KERN_CPU_H

#include <stdint.h>

#define GG_CPU_AVX2   (UINT32_C(1) << 0) /* AVX2, FMA, F16C */
#define GG_CPU_AVX512 (UINT32_C(1) << 1) /* AVX-512 F, BW, DQ, VL */

/* One row per level, in the order in which they overwrite the table. */
struct gg_cpu_level {
    const char *name;
    uint32_t bit;
};
extern const struct gg_cpu_level gg_cpu_levels[];
extern const unsigned gg_cpu_n_levels;

/* Mask of the levels that this machine has and this build may use. */
uint32_t gg_cpu_detect(void);

#endif
