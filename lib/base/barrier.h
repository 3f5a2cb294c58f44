/* SPDX-License-Identifier: MIT */
/* barrier.h - where the threads of a team wait for each other
 *
 * Waiters spin for a short while, since the others mostly arrive soon, then
 * sleep: a thread that lost its processor does not cost the others processor
 * time. What a thread wrote before the barrier is seen by all after it.
 */
#ifndef GG_BASE_BARRIER_H
#define GG_BASE_BARRIER_H

#include "gguf/status.h"

#include <stdatomic.h>
#include <stdint.h>

#if !defined(__linux__)
#include <pthread.h>
#endif

/* A word that threads wait on: spin, then sleep until it changes. It must not
 * be freed before every thread came back from its last call. */
struct gg_barrier_gate {
    _Atomic uint32_t value;
    _Atomic uint32_t n_sleepers;
#if !defined(__linux__)
    pthread_mutex_t mutex;
    pthread_cond_t cond;
#endif
};

/* GGUF_E_IO where the system gives no lock. */
enum gguf_status gg_barrier_gate_init(struct gg_barrier_gate *e,
                                      struct gguf_error *err);
void gg_barrier_gate_fini(struct gg_barrier_gate *e);
/* Wait until the value is no longer old; n_spin rounds awake first. Acquires
 * what the thread that changed it released. */
uint32_t gg_barrier_gate_wait(struct gg_barrier_gate *e, uint32_t old,
                              unsigned n_spin);
/* Add 1 and wake the sleepers. Releases. */
void gg_barrier_gate_signal(struct gg_barrier_gate *e);

struct gg_barrier {
    unsigned n_threads, n_spin;
    _Alignas(64) _Atomic uint32_t n_arrived;
    _Alignas(64) struct gg_barrier_gate phase;
};

/* For n_threads threads; n_spin rounds awake (10 to 40 ns each) before they
 * sleep. GGUF_E_IO. Freed as a gate is. */
enum gguf_status gg_barrier_init(struct gg_barrier *b, unsigned n_threads,
                                 unsigned n_spin, struct gguf_error *err);
void gg_barrier_fini(struct gg_barrier *b);

/* Return when all n threads are here. With n = 1 it costs nothing. */
void gg_barrier_wait(struct gg_barrier *b);

/* A sensible n_spin: 20 to 80 microseconds if every thread can have a processor
 * of its own, none otherwise. */
unsigned gg_barrier_spin(unsigned n_threads);

#endif
