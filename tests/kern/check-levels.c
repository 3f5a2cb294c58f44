/* SPDX-License-Identifier: MIT */
/* check-levels.c - levels of kernels of this machine
 *
 * On AArch64 Linux programs may read the processor's ID registers: their fields
 * (Arm Architecture Reference Manual, ID_AA64ISAR0_EL1 and ID_AA64ISAR1_EL1)
 * are compared with the detected levels. */
#include "config.h"
#include "kern/cpu_features.h"
#include "tests/tap.h"

#include <string.h>

static void check_names(void)
{
    bool good = true;
    for (unsigned i = 0; i < gg_kern_cpu_n_levels; i++) {
        good = good && gg_kern_cpu_levels[i].bit == UINT32_C(1) << i;
        for (unsigned j = 0; j < i; j++)
            good = good && strcmp(gg_kern_cpu_levels[i].name,
                                  gg_kern_cpu_levels[j].name) != 0;
    }
    ok(good && gg_kern_cpu_n_levels == GG_N_LEVELS - 1,
       "each level has a bit and a name");
    ok(!(gg_kern_cpu_detect() >> gg_kern_cpu_n_levels),
       "no other bits are detected");
}

#if defined(__aarch64__) && defined(__linux__) && HAVE_KERN_256
static void check_detected(void)
{
    uint64_t isar0, isar1;
    __asm__("mrs %0, ID_AA64ISAR0_EL1" : "=r"(isar0));
    __asm__("mrs %0, ID_AA64ISAR1_EL1" : "=r"(isar1));
    const bool dot = isar0 >> 44 & 15, sha2 = isar0 >> 12 & 15;
    const bool i8mm = isar1 >> 52 & 15, bf16 = isar1 >> 44 & 15;
    const uint32_t cpu = gg_kern_cpu_detect();
    ok(cpu & GG_CPU_256, "NEON");
    ok(!(cpu & GG_CPU_DOTPROD) == !dot, "dot products: %d", dot);
    ok(!(cpu & GG_CPU_I8MM) == !(dot && i8mm), "matrices of bytes: %d", i8mm);
    ok(!(cpu & GG_CPU_BF16) == !bf16, "products of bf16: %d", bf16);
    ok(gg_kern_cpu_has_sha() == sha2, "SHA-256: %d", sha2);
}
#else
static void check_detected(void)
{
    skip("no AArch64 Linux with kernels");
}
#endif

int main(void)
{
    check_names();
    check_detected();
    return done_testing();
}
