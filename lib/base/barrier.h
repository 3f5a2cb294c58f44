/* SPDX-License-Identifier: MIT */
/* barrier.h - barriers at which the threads of a team wait for each other
 *
 * Threads that wait spin for a short while, because the others usually arrive
 * soon, and then sleep. So a thread that lost its processor does not cost the
 * others processor time. Writes before the barrier are visible to all threads
 * after it.
 */
#ifndef GG_BASE_BARRIER_H
#define GG_BASE_BARRIER_H

#include "base/os/os.h"
#include "gguf/status.h"

/* A word that threads wait on until it changes. It must not be freed before
 * every thread has returned from its last call. */
struct gg_barrier_gate {
    _Atomic uint32_t value;
    _Atomic uint32_t n_sleepers;
    struct gg_os_sleepers sleepers;
};

/* Initialize a gate with value 0. GGUF_E_IO: the system has no lock left. */
enum gguf_status gg_barrier_gate_init(struct gg_barrier_gate *e,
                                      struct gguf_error *err);
void gg_barrier_gate_fini(struct gg_barrier_gate *e);
/* Wait until the value differs from old, and return it. Spins n_spin rounds
 * before it sleeps. Acquires: pairs with gg_barrier_gate_signal(). */
uint32_t gg_barrier_gate_wait(struct gg_barrier_gate *e, uint32_t old,
                              unsigned n_spin);
/* Add 1 to the value and wake the threads that sleep. Releases. */
void gg_barrier_gate_signal(struct gg_barrier_gate *e);

struct gg_barrier {
    unsigned n_threads, n_spin;
    _Alignas(64) _Atomic uint32_t n_arrived;
    _Alignas(64) struct gg_barrier_gate phase;
};

/* Initialize a barrier for n_threads threads, which spin n_spin rounds (10 to
 * 40 ns each) before they sleep. It must not be freed before every thread has
 * returned from its last call. GGUF_E_IO: the system has no lock left. */
enum gguf_status gg_barrier_init(struct gg_barrier *b, unsigned n_threads,
                                 unsigned n_spin, struct gguf_error *err);
void gg_barrier_fini(struct gg_barrier *b);

/* Wait until all n_threads threads have called this. Costs nothing for one
 * thread. */
void gg_barrier_wait(struct gg_barrier *b);

/* A sensible n_spin: 20 to 80 microseconds if every thread can have a processor
 * of its own, otherwise 0. */
unsigned gg_barrier_spin(unsigned n_threads);

#endif
