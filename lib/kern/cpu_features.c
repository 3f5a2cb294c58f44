/* SPDX-License-Identifier: MIT */
/* cpu_features.c - detection of instruction sets */
#include "config.h"
#include "kern/cpu_features.h"
#include "base/compiler.h"
#include "base/os/os.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

const struct gg_kern_cpu_level gg_kern_cpu_levels[] = {
#ifdef __aarch64__
    [GG_LEVEL_256 - 1] = { "neon", GG_CPU_256 },
    [GG_LEVEL_DOTPROD - 1] = { "dotprod", GG_CPU_DOTPROD },
    [GG_LEVEL_I8MM - 1] = { "i8mm", GG_CPU_I8MM },
    [GG_LEVEL_BF16 - 1] = { "bf16", GG_CPU_BF16 },
#else
    [GG_LEVEL_256 - 1] = { "avx2", GG_CPU_256 },
    [GG_LEVEL_AVXVNNI - 1] = { "avxvnni", GG_CPU_AVXVNNI },
    [GG_LEVEL_AVX512 - 1] = { "avx512", GG_CPU_AVX512 },
    [GG_LEVEL_VNNI512 - 1] = { "vnni512", GG_CPU_VNNI512 },
    [GG_LEVEL_AVX512BF16 - 1] = { "avx512bf16", GG_CPU_AVX512BF16 },
    [GG_LEVEL_AMX - 1] = { "amx", GG_CPU_AMX },
#endif
};
const unsigned gg_kern_cpu_n_levels = GG_LEN(gg_kern_cpu_levels);

#if defined(__x86_64__) && defined(__GNUC__)
/* Half-float conversions: a bit of its own, which clang's
 * __builtin_cpu_supports has no name for. Of use with AVX state only. */
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Has bits of leaf 7, part 1, which the builtin has no name for either. */
enum { BIT_AVXVNNI = 4, BIT_AVX512BF16 = 5 };
static int has_leaf_7_1(int bit)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> bit & 1);
}

/* Tile registers with products of bytes and of bf16, and a system that saves
 * them: bits 17 and 18 of XCR0. Of use with AVX state only. */
static int has_amx(void)
{
    enum {
        BITS = 1 << 22 | 1 << 24 | 1 << 25, /* BF16, TILE, INT8 */
        SAVED = 3 << 17
    };
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & BITS) != BITS)
        return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & SAVED) == SAVED;
}
#endif

uint32_t gg_kern_cpu_detect(void)
{
    uint32_t mask = 0;
#if defined(__x86_64__) && defined(__GNUC__)
    /* These builtins also ask whether the system saves the registers. */
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        has_f16c())
        mask |= GG_CPU_256;
    if (mask && has_leaf_7_1(BIT_AVXVNNI))
        mask |= GG_CPU_AVXVNNI;
    if (mask && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        mask |= GG_CPU_AVX512;
    if (mask & GG_CPU_AVX512 && __builtin_cpu_supports("avx512vnni"))
        mask |= GG_CPU_VNNI512;
    if (mask & GG_CPU_AVX512 && has_leaf_7_1(BIT_AVX512BF16))
        mask |= GG_CPU_AVX512BF16;
    if (mask & GG_CPU_VNNI512 && mask & GG_CPU_AVX512BF16 && has_amx())
        mask |= GG_CPU_AMX;
#elif defined(__aarch64__) && HAVE_KERN_256
    const unsigned has = gg_os_arm_features();
    mask |= GG_CPU_256; /* all processors of AArch64 have NEON */
    if (has & GG_OS_ARM_DOTPROD)
        mask |= GG_CPU_DOTPROD;
    if (mask & GG_CPU_DOTPROD && has & GG_OS_ARM_I8MM)
        mask |= GG_CPU_I8MM;
    if (has & GG_OS_ARM_BF16)
        mask |= GG_CPU_BF16;
#endif
    return mask;
}

uint32_t gg_kern_cpu_request(uint32_t cpu)
{
#if HAVE_X86_AMX
    if (cpu & GG_CPU_AMX && gg_os_tiles_request() != 0)
        cpu &= ~GG_CPU_AMX;
#endif
    return cpu;
}

bool gg_kern_cpu_has_sha(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    enum { BIT_SHA = 29 }; /* clang's builtin has no name for it either */
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) &&
           (c & bit_SSE4_1) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (b >> BIT_SHA & 1);
#elif defined(__aarch64__)
    return gg_os_arm_features() & GG_OS_ARM_SHA2;
#else
    return false;
#endif
}
