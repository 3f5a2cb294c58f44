/* SPDX-License-Identifier: MIT */
/* story_state.h - states that are saved within a story, and restored */
#ifndef TESTS_RUN_STORY_STATE_H
#define TESTS_RUN_STORY_STATE_H

#include "tests/run/story.h"

/* The state of a sequence, or of all, of each session, and what it is of. */
bool state_save(struct story *s);

/* One of those that were saved, in the place of a sequence or of everything:
 * each session takes its own, or all take that of one of them. It is refused
 * where the library says so (gguf/session.h), and changes nothing then.
 * Nothing was saved: save. */
bool state_restore(struct story *s);

/* The session from scratch takes over a sequence of session i, as its sequence
 * to, and has no other; not taken: windows have lost tokens of it. */
bool state_lend(struct story *s, uint32_t q, int i, uint32_t to, bool *taken);

void state_free(struct story *s);

#endif
