/* SPDX-License-Identifier: MIT */
/* os_arm_posix.c - instructions that a processor of AArch64 has, by POSIX
 *
 * Linux and FreeBSD pass bits to each program, with the same meanings. Sources:
 * arch/arm64/include/uapi/asm/hwcap.h of Linux 6.1, sys/arm64/include/elf.h of
 * FreeBSD 14. macOS answers by name: "Determining instruction set
 * characteristics" in Apple's documentation.
 */
#include "config.h"
#include "base/os/os.h"

#if HAVE_GETAUXVAL || HAVE_ELF_AUX_INFO
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#if HAVE_GETAUXVAL || HAVE_ELF_AUX_INFO
static unsigned long get_word(int type)
{
#if HAVE_GETAUXVAL
    return getauxval((unsigned long)type);
#else
    unsigned long word = 0;
    return elf_aux_info(type, &word, (int)sizeof word) ? 0 : word;
#endif
}

unsigned gg_os_arm_features(void)
{
    const unsigned long a = get_word(AT_HWCAP), b = get_word(AT_HWCAP2);
    return (a >> 20 & 1 ? GG_OS_ARM_DOTPROD : 0u) |
           (b >> 13 & 1 ? GG_OS_ARM_I8MM : 0u) |
           (b >> 14 & 1 ? GG_OS_ARM_BF16 : 0u) |
           (a >> 6 & 1 ? GG_OS_ARM_SHA2 : 0u);
}
#elif defined(__APPLE__)
static unsigned has_feature(const char *name, unsigned bit)
{
    int has = 0;
    size_t size = sizeof has;
    return !sysctlbyname(name, &has, &size, NULL, 0) && has ? bit : 0;
}

unsigned gg_os_arm_features(void)
{
    return has_feature("hw.optional.arm.FEAT_DotProd", GG_OS_ARM_DOTPROD) |
           has_feature("hw.optional.arm.FEAT_I8MM", GG_OS_ARM_I8MM) |
           has_feature("hw.optional.arm.FEAT_BF16", GG_OS_ARM_BF16) |
           has_feature("hw.optional.arm.FEAT_SHA256", GG_OS_ARM_SHA2);
}
#else
unsigned gg_os_arm_features(void)
{
    return 0;
}
#endif
