/* SPDX-License-Identifier: MIT */
/* random_states.h - states that are saved within a story, and restored */
#ifndef TESTS_RUN_RANDOM_STATES_H
#define TESTS_RUN_RANDOM_STATES_H

#include "tests/run/random_calls.h"

/* The state of a sequence, or of all, of each session, and what it is of. */
bool random_states_save(struct random_calls *s);

/* One of those that were saved, in the place of a sequence or of everything:
 * each session takes its own, or all take that of one of them. It is refused
 * where the library says so (gguf/session.h), and changes nothing then.
 * Nothing was saved: save. */
bool random_states_restore(struct random_calls *s);

/* The session from scratch takes over a sequence of session i, as its sequence
 * to, and has no other; not taken: windows have lost tokens of it. */
bool random_states_lend(struct random_calls *s, uint32_t q, int i, uint32_t to,
                        bool *taken);

void random_states_free(struct random_calls *s);

#endif
