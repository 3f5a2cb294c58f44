/* SPDX-License-Identifier: MIT */
/* barrier.c - gates, at which threads spin and then sleep, and the barrier */
#include "config.h"
#include "base/barrier.h"
#include "base/compiler.h"
#include "base/error.h"
#include "gguf/pool.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef SYS_futex
#define SYS_futex SYS_futex_time64 /* newer 32-bit systems have only this */
#endif
#endif

enum { SPIN_ROUNDS = 2000 };

#if defined(__linux__)

enum gguf_status gg_barrier_gate_init(struct gg_barrier_gate *g,
                                      struct gguf_error *err)
{
    (void)err;
    atomic_init(&g->value, 0);
    atomic_init(&g->n_sleepers, 0);
    return GGUF_OK;
}

void gg_barrier_gate_fini(struct gg_barrier_gate *g)
{
    (void)g;
}

/* Sleep until a signal, but not if the value differs from old. May return
 * early. */
static void gate_sleep(struct gg_barrier_gate *g, uint32_t old)
{
    while (atomic_load_explicit(&g->value, memory_order_seq_cst) == old)
        syscall(SYS_futex, &g->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void gate_wake(struct gg_barrier_gate *g)
{
    syscall(SYS_futex, &g->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
            0);
}

#else

enum gguf_status gg_barrier_gate_init(struct gg_barrier_gate *g,
                                      struct gguf_error *err)
{
    atomic_init(&g->value, 0);
    atomic_init(&g->n_sleepers, 0);
    int e = pthread_mutex_init(&g->mutex, NULL);
    if (e)
        return gg_error_set_errno(err, e, "cannot make a lock");
    e = pthread_cond_init(&g->cond, NULL);
    if (e) {
        pthread_mutex_destroy(&g->mutex);
        return gg_error_set_errno(err, e, "cannot make a condition");
    }
    return GGUF_OK;
}

void gg_barrier_gate_fini(struct gg_barrier_gate *g)
{
    pthread_cond_destroy(&g->cond);
    pthread_mutex_destroy(&g->mutex);
}

static void gate_sleep(struct gg_barrier_gate *g, uint32_t old)
{
    pthread_mutex_lock(&g->mutex);
    while (atomic_load_explicit(&g->value, memory_order_seq_cst) == old)
        pthread_cond_wait(&g->cond, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void gate_wake(struct gg_barrier_gate *g)
{
    pthread_mutex_lock(&g->mutex);
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->mutex);
}

#endif

/* The sleeper counts itself, then looks at the value; the signaller changes
 * the value, then looks at the count. Both in the one order of sequentially
 * consistent operations, so that at least one of them sees the other. */
uint32_t gg_barrier_gate_wait(struct gg_barrier_gate *g, uint32_t old,
                              unsigned n_spin)
{
    uint32_t v;
    for (unsigned i = 0; i < n_spin; i++) {
        /* pairs with gg_barrier_gate_signal */
        v = atomic_load_explicit(&g->value, memory_order_acquire);
        if (v != old)
            return v;
        GG_CPU_RELAX();
    }
    atomic_fetch_add_explicit(&g->n_sleepers, 1, memory_order_seq_cst);
    gate_sleep(g, old);
    atomic_fetch_sub_explicit(&g->n_sleepers, 1, memory_order_relaxed);
    return atomic_load_explicit(&g->value, memory_order_acquire);
}

void gg_barrier_gate_signal(struct gg_barrier_gate *g)
{
    atomic_fetch_add_explicit(&g->value, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&g->n_sleepers, memory_order_seq_cst))
        gate_wake(g);
}

enum gguf_status gg_barrier_init(struct gg_barrier *b, unsigned n_threads,
                                 unsigned n_spin, struct gguf_error *err)
{
    b->n_threads = n_threads;
    b->n_spin = n_spin;
    atomic_init(&b->n_arrived, 0);
    return gg_barrier_gate_init(&b->phase, err);
}

void gg_barrier_fini(struct gg_barrier *b)
{
    gg_barrier_gate_fini(&b->phase);
}

void gg_barrier_wait(struct gg_barrier *b)
{
    if (b->n_threads <= 1)
        return;
    /* The phase cannot change before this thread arrives. */
    uint32_t phase =
        atomic_load_explicit(&b->phase.value, memory_order_relaxed);
    /* Releases this thread's writes to the last thread to arrive, which
     * acquires them from all threads and passes them on by the signal. */
    unsigned n =
        atomic_fetch_add_explicit(&b->n_arrived, 1, memory_order_acq_rel);
    if (n + 1 == b->n_threads) {
        atomic_store_explicit(&b->n_arrived, 0, memory_order_relaxed);
        gg_barrier_gate_signal(&b->phase);
    } else {
        gg_barrier_gate_wait(&b->phase, phase, b->n_spin);
    }
}

unsigned gg_barrier_spin(unsigned n_threads)
{
    return n_threads <= gguf_cpu_count() ? SPIN_ROUNDS : 0;
}
