/* SPDX-License-Identifier: MIT */
/* kept.h - states that are saved in the middle of a story, and restored */
#ifndef TESTS_MODEL_KEPT_H
#define TESTS_MODEL_KEPT_H

#include "tests/model/story.h"

/* The state of a sequence, or of all, of each session, and what it is of. */
bool kept_save(struct story *s);

/* One of those that were saved, in the place of a sequence or of everything:
 * each session takes its own, or all take that of one of them. It is refused
 * where the library says so (gguf/session.h), and changes nothing then.
 * Nothing was saved: save. */
bool kept_restore(struct story *s);

/* The session from scratch takes over a sequence of session i, as its sequence
 * to, and has no other; not taken: windows have lost tokens of it. */
bool kept_lend(struct story *s, uint32_t q, int i, uint32_t to, bool *taken);

void kept_free(struct story *s);

#endif
