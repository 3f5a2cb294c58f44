/* SPDX-License-Identifier: MIT */
/* thread.h - starting the library's threads */
#ifndef GG_BASE_THREAD_H
#define GG_BASE_THREAD_H

#include <pthread.h>

/* Bytes of stack that every thread has at least. Kernels keep up to 64 KiB in a
 * frame; the default is 128 KiB with musl and 512 KiB on macOS. */
enum { GG_THREAD_STACK = 1 << 20 };

/* Start a thread that calls fn(arg), with signals blocked. Wait for it by
 * pthread_join().
 *
 * thread   Receives the thread.
 *
 * Returns 0 or an errno: EAGAIN if the system has no memory or thread left. */
int gg_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

#endif
