/* SPDX-License-Identifier: MIT */
/* random_states.h - saved states among the random calls of random_calls.h */
#ifndef TESTS_RUN_RANDOM_STATES_H
#define TESTS_RUN_RANDOM_STATES_H

#include "tests/run/random_calls.h"

/* Save the state of a random sequence, or of all, of every session, with its
 * content. */
bool random_states_save(struct random_calls *s);

/* Restore a saved state into a random sequence, or replace everything by it.
 * Each session restores its own state, or all of them one session's. Check that
 * a state is refused where gguf/session.h says so, and that a refusal changes
 * nothing. If nothing was saved, save instead. */
bool random_states_restore(struct random_calls *s);

/* Clear s->scratch and restore sequence q of session i there as sequence to.
 * *taken is false if session i has dropped tokens of a sliding window, so that
 * the state is refused. */
bool random_states_lend(struct random_calls *s, uint32_t q, int i, uint32_t to,
                        bool *taken);

void random_states_free(struct random_calls *s);

#endif
