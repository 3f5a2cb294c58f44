/* SPDX-License-Identifier: MIT */
/* os_thread_posix.c - processors and threads, by POSIX
 *
 * Numbers of set_mempolicy() are those of set_mempolicy(2) in Linux 6.1, of
 * arch_prctl() those of Linux's documentation of x86/xstate. They are called by
 * their numbers, since not every C library comes with the kernel's headers.
 */
#include "config.h"
#include "base/os/os.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#if defined(__FreeBSD__) || defined(__DragonFly__)
#include <pthread_np.h> /* pthread_setaffinity_np() of the BSDs */
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#endif

/* ---- processors ---- */

unsigned gg_os_cpu_count(void)
{
    long n = 0;
#if HAVE_SCHED_GETAFFINITY && defined(CPU_COUNT)
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set))
        n = CPU_COUNT(&set);
#endif
    if (n < 1)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (unsigned)n;
}

int gg_os_cpu_set(uint64_t *bits, unsigned n_bits)
{
    memset(bits, 0, n_bits / 8);
#if HAVE_SCHED_GETAFFINITY && defined(CPU_ISSET)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return -1;
    for (unsigned i = 0; i < n_bits && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            bits[i / 64] |= UINT64_C(1) << i % 64;
    return 0;
#else
    errno = ENOSYS;
    return -1;
#endif
}

int gg_os_thread_bind(pthread_t thread, const uint64_t *bits, unsigned n_bits)
{
#if HAVE_PTHREAD_SETAFFINITY_NP && defined(CPU_SET)
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < n_bits && i < CPU_SETSIZE; i++)
        if (bits[i / 64] >> i % 64 & 1)
            CPU_SET(i, &set);
    const int e = pthread_setaffinity_np(thread, sizeof set, &set);
    errno = e;
    return e ? -1 : 0;
#else
    (void)thread, (void)bits, (void)n_bits;
    errno = ENOSYS;
    return -1;
#endif
}

int gg_os_memory_nodes(const uint64_t *bits, unsigned n_bits)
{
#if defined(SYS_set_mempolicy)
    enum {
        DEFAULT = 0,
        INTERLEAVE = 3,
        NODES = 1024,
        LONG = 8 * sizeof(long)
    };
    unsigned long mask[NODES / LONG] = { 0 };
    for (unsigned i = 0; bits && i < n_bits && i < NODES; i++)
        mask[i / LONG] |= (unsigned long)(bits[i / 64] >> i % 64 & 1)
                          << i % LONG;
    /* the kernel reads one bit less than its argument says */
    const long rc = syscall(SYS_set_mempolicy, bits ? INTERLEAVE : DEFAULT,
                            bits ? mask : NULL, bits ? n_bits + 1ul : 0ul);
    return rc ? -1 : 0;
#else
    (void)bits, (void)n_bits;
    errno = ENOSYS;
    return -1;
#endif
}

int gg_os_tiles_request(void)
{
#if defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
               ? -1
               : 0;
#else
    errno = ENOSYS;
    return -1;
#endif
}

/* ---- threads ---- */

_Static_assert(sizeof(sigset_t) <= sizeof(struct gg_os_signals),
               "a set of signals fits");

int gg_os_signals_block(struct gg_os_signals *old)
{
    static const int own[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV };
    sigset_t all, was;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    const int e = pthread_sigmask(SIG_SETMASK, &all, &was);
    memcpy(old, &was, sizeof was);
    errno = e;
    return e ? -1 : 0;
}

void gg_os_signals_restore(const struct gg_os_signals *old)
{
    sigset_t was;
    memcpy(&was, old, sizeof was);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
}
