/* SPDX-License-Identifier: MIT */
/* thread.c - starting the library's threads */
#include "config.h"
#include "base/thread.h"
#include "base/os/os.h"

#include <errno.h>

/* Threads keep the system's default unless it is too small. */
static int raise_stack(pthread_attr_t *attr)
{
    size_t size;
    const int e = pthread_attr_getstacksize(attr, &size);
    if (e || size >= GG_THREAD_STACK)
        return e;
    return pthread_attr_setstacksize(attr, GG_THREAD_STACK);
}

int gg_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    struct gg_os_signals old;
    pthread_attr_t attr;
    int e = pthread_attr_init(&attr);
    if (e)
        return e;
    e = raise_stack(&attr);
    if (!e && gg_os_signals_block(&old) != 0)
        e = errno;
    else if (!e) {
        e = pthread_create(thread, &attr, fn, arg);
        gg_os_signals_restore(&old);
    }
    pthread_attr_destroy(&attr);
    return e;
}
