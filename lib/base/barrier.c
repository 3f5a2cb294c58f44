/* SPDX-License-Identifier: MIT */
/* barrier.c - gates, at which threads spin and then sleep, and the barrier */
#include "config.h"
#include "base/barrier.h"
#include "base/error.h"
#include "gguf/pool.h"

#include <errno.h>

enum { SPIN_ROUNDS = 2000 };

enum gguf_status gg_barrier_gate_init(struct gg_barrier_gate *g,
                                      struct gguf_error *err)
{
    atomic_init(&g->value, 0);
    atomic_init(&g->n_sleepers, 0);
    if (gg_os_sleepers_init(&g->sleepers) != 0)
        return gg_error_set_errno(err, errno, "cannot make a lock");
    return GGUF_OK;
}

void gg_barrier_gate_fini(struct gg_barrier_gate *g)
{
    gg_os_sleepers_fini(&g->sleepers);
}

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
        gg_os_cpu_relax();
    }
    atomic_fetch_add_explicit(&g->n_sleepers, 1, memory_order_seq_cst);
    gg_os_sleepers_wait(&g->sleepers, &g->value, old);
    atomic_fetch_sub_explicit(&g->n_sleepers, 1, memory_order_relaxed);
    return atomic_load_explicit(&g->value, memory_order_acquire);
}

void gg_barrier_gate_signal(struct gg_barrier_gate *g)
{
    atomic_fetch_add_explicit(&g->value, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&g->n_sleepers, memory_order_seq_cst))
        gg_os_sleepers_wake(&g->sleepers, &g->value);
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
