/* SPDX-License-Identifier: MIT */
/* os_thread_win.c - processors and threads, on Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_win.h"

#include <errno.h>
#include <string.h>

/* ---- processors ---- */

/* Processors of the process, of its group. */
static uint64_t process_set(void)
{
    DWORD_PTR own = 0, all = 0;
    return GetProcessAffinityMask(GetCurrentProcess(), &own, &all) ? own : 0;
}

unsigned gg_os_cpu_count(void)
{
    unsigned n = 0;
    for (uint64_t set = process_set(); set; set &= set - 1)
        n++;
    return n ? n : 1;
}

unsigned gg_os_arm_features(void)
{
    return (IsProcessorFeaturePresent(43) ? GG_OS_ARM_DOTPROD : 0u) |
           (IsProcessorFeaturePresent(66) ? GG_OS_ARM_I8MM : 0u) |
           (IsProcessorFeaturePresent(68) ? GG_OS_ARM_BF16 : 0u) |
           (IsProcessorFeaturePresent(30) ? GG_OS_ARM_SHA2 : 0u);
}

int gg_os_cpu_set(uint64_t *bits, unsigned n_bits)
{
    memset(bits, 0, n_bits / 8);
    bits[0] = process_set();
    if (bits[0])
        return 0;
    errno = ENOSYS;
    return -1;
}

int gg_os_thread_bind(pthread_t thread, const uint64_t *bits, unsigned n_bits)
{
    HANDLE h = pthread_gethandle(thread);
    (void)n_bits;
    return SetThreadAffinityMask(h, (DWORD_PTR)bits[0])
               ? 0
               : gg_os_win_fail_last();
}

int gg_os_memory_nodes(const uint64_t *bits, unsigned n_bits)
{
    (void)bits, (void)n_bits;
    errno = ENOSYS;
    return -1;
}

/* Windows 11 and Server 2022 have the function. */
int gg_os_tiles_request(void)
{
    enum { TILE_DATA = 1 << 18 }; /* XSTATE_MASK_AMX_TILE_DATA */
    typedef BOOL WINAPI enable_fn(DWORD64 features);
    enable_fn *enable = (enable_fn *)(void (*)(void))GetProcAddress(
        GetModuleHandleW(L"kernel32.dll"),
        "EnableProcessOptionalXStateFeatures");
    if (enable)
        return enable(TILE_DATA) ? 0 : gg_os_win_fail_last();
    errno = ENOSYS;
    return -1;
}

/* ---- threads ---- */

int gg_os_signals_block(struct gg_os_signals *old)
{
    *old = (struct gg_os_signals){ { 0 } };
    return 0;
}

void gg_os_signals_restore(const struct gg_os_signals *old)
{
    (void)old;
}
