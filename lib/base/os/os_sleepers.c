/* SPDX-License-Identifier: MIT */
/* os_sleepers.c - threads that sleep until a word changes
 *
 * Linux and Windows sleep on the word, other systems on a condition. Numbers of
 * futex() are those of futex(2) in Linux 6.1.
 */
#include "config.h"
#include "base/os/os.h"

#if defined(_WIN32)
#include "base/os/os_win.h"
#elif defined(__linux__)
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__linux__) && !defined(SYS_futex) && defined(SYS_futex_time64)
#define SYS_futex SYS_futex_time64 /* newer 32-bit systems have only this */
#endif

#if defined(_WIN32) || defined(SYS_futex)

/* Sleep while the word is old. The sleep may end early. */
static void sleep_on(_Atomic uint32_t *word, uint32_t old)
{
#if defined(_WIN32)
    (void)WaitOnAddress((volatile void *)word, &old, sizeof old, INFINITE);
#else
    enum { WAIT_PRIVATE = 0 | 128 };
    syscall(SYS_futex, word, WAIT_PRIVATE, old, NULL, NULL, 0);
#endif
}

static void wake_all(_Atomic uint32_t *word)
{
#if defined(_WIN32)
    WakeByAddressAll((void *)(uintptr_t)word);
#else
    enum { WAKE_PRIVATE = 1 | 128 };
    syscall(SYS_futex, word, WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#endif
}

int gg_os_sleepers_init(struct gg_os_sleepers *s)
{
    (void)s;
    return 0;
}

void gg_os_sleepers_fini(struct gg_os_sleepers *s)
{
    (void)s;
}

void gg_os_sleepers_wait(struct gg_os_sleepers *s, _Atomic uint32_t *word,
                         uint32_t old)
{
    (void)s;
    while (atomic_load_explicit(word, memory_order_seq_cst) == old)
        sleep_on(word, old);
}

void gg_os_sleepers_wake(struct gg_os_sleepers *s, _Atomic uint32_t *word)
{
    (void)s;
    wake_all(word);
}

#else

#include <errno.h>

int gg_os_sleepers_init(struct gg_os_sleepers *s)
{
    int e = pthread_mutex_init(&s->mutex, NULL);
    if (!e && (e = pthread_cond_init(&s->cond, NULL)) != 0)
        pthread_mutex_destroy(&s->mutex);
    errno = e;
    return e ? -1 : 0;
}

void gg_os_sleepers_fini(struct gg_os_sleepers *s)
{
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->mutex);
}

void gg_os_sleepers_wait(struct gg_os_sleepers *s, _Atomic uint32_t *word,
                         uint32_t old)
{
    pthread_mutex_lock(&s->mutex);
    while (atomic_load_explicit(word, memory_order_seq_cst) == old)
        pthread_cond_wait(&s->cond, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

void gg_os_sleepers_wake(struct gg_os_sleepers *s, _Atomic uint32_t *word)
{
    (void)word;
    pthread_mutex_lock(&s->mutex);
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

#endif
