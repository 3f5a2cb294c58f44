/* SPDX-License-Identifier: MIT */
/* cpu_features.h - instruction sets that this processor and system have
 *
 * A level is a group of features that kernels of the level may use together.
 * The levels are detected once, when a backend is created, and passed down as a
 * mask.
 */
#ifndef GG_KERN_CPU_FEATURES_H
#define GG_KERN_CPU_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

/* In the order in which they overwrite a table of kernels. */
enum {
    GG_LEVEL_C,
    GG_LEVEL_256, /* AVX2, FMA, F16C; or NEON */
#ifdef __aarch64__
    GG_LEVEL_DOTPROD, /* dot products of four bytes, and NEON's */
    GG_LEVEL_I8MM,    /* products of matrices of bytes, and DOTPROD's */
    GG_LEVEL_BF16,    /* products of bf16, and NEON's */
#else
    GG_LEVEL_AVXVNNI,    /* VNNI of vectors of 256 bits, and AVX2's */
    GG_LEVEL_AVX512,     /* AVX-512 F, BW, DQ, VL */
    GG_LEVEL_VNNI512,    /* VNNI of vectors of 512 bits, and AVX-512's */
    GG_LEVEL_AVX512BF16, /* pairs of bf16, and AVX-512's */
    GG_LEVEL_AMX, /* tiles of bytes and bf16, VNNI512's and AVX512BF16's */
#endif
    GG_N_LEVELS,
/* levels up to the last one with kernels for floats */
#ifdef __aarch64__
    GG_N_FLOAT_LEVELS = GG_LEVEL_256 + 1
#else
    GG_N_FLOAT_LEVELS = GG_LEVEL_AVX512 + 1
#endif
};

/* Bit of a level in a mask. C has no bit: every machine has it. */
#define GG_CPU_BIT(level) (UINT32_C(1) << ((level)-1))
#define GG_CPU_256        GG_CPU_BIT(GG_LEVEL_256)
#define GG_CPU_DOTPROD    GG_CPU_BIT(GG_LEVEL_DOTPROD)
#define GG_CPU_I8MM       GG_CPU_BIT(GG_LEVEL_I8MM)
#define GG_CPU_BF16       GG_CPU_BIT(GG_LEVEL_BF16)
#define GG_CPU_AVXVNNI    GG_CPU_BIT(GG_LEVEL_AVXVNNI)
#define GG_CPU_AVX512     GG_CPU_BIT(GG_LEVEL_AVX512)
#define GG_CPU_VNNI512    GG_CPU_BIT(GG_LEVEL_VNNI512)
#define GG_CPU_AVX512BF16 GG_CPU_BIT(GG_LEVEL_AVX512BF16)
#define GG_CPU_AMX        GG_CPU_BIT(GG_LEVEL_AMX)

static inline bool gg_kern_cpu_has_level(uint32_t cpu, unsigned level)
{
    return level == GG_LEVEL_C || cpu & GG_CPU_BIT(level);
}

/* Has the level kernels for floats? The others have products of integers or of
 * bf16 only. */
static inline bool gg_kern_cpu_level_has_floats(unsigned level)
{
#ifndef __aarch64__
    if (level == GG_LEVEL_AVX512)
        return true;
#endif
    return level <= GG_LEVEL_256;
}

/* A kernel of a level; NULL in a build without that level. */
#if HAVE_KERN_256
#define GG_256(kernel) kernel
#else
#define GG_256(kernel) NULL
#endif
/* Initializers of a table, left out in a build without that level. */
#if HAVE_X86_AVX512
#define GG_IF_AVX512(...) __VA_ARGS__
#else
#define GG_IF_AVX512(...)
#endif

/* One row per level but C, in their order. */
struct gg_kern_cpu_level {
    const char *name;
    uint32_t bit;
};
extern const struct gg_kern_cpu_level gg_kern_cpu_levels[];
extern const unsigned gg_kern_cpu_n_levels;

/* Mask of the levels that this machine has and this build may use. */
uint32_t gg_kern_cpu_detect(void);

/* Ask the system for the registers of levels that need its permission (AMX), to
 * be called before products in 8 bits. Returns the mask without the levels that
 * the system refuses. */
uint32_t gg_kern_cpu_request(uint32_t cpu);

/* Does the processor have SHA-256 instructions? This is not a level, since only
 * one kernel uses them (hash.h). */
bool gg_kern_cpu_has_sha(void);

#endif
