/* SPDX-License-Identifier: MIT */
/* story_calls.h - what calls make of the tales of a story, and decoding */
#ifndef TESTS_RUN_STORY_CALLS_H
#define TESTS_RUN_STORY_CALLS_H

#include "tests/run/story.h"

/* story.c: in [0, n); a fault, which is false. */
int story_rnd(int n);
bool story_fault(struct story *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool tale_between(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= begin && (end < 0 || pos < end);
}
int32_t tale_next(const struct story_tale *t);
void tale_forget(struct story_tale *t);
void tale_remove(struct story_tale *t, int32_t begin, int32_t end);
void tale_copy(const struct story *s, const struct story_tale *from,
               struct story_tale *to, int32_t begin, int32_t end);
/* Has it room for a copy? */
bool tale_fits(const struct story *s, const struct story_tale *from,
               const struct story_tale *to, int32_t begin, int32_t end);
void tale_move(struct story_tale *t, int32_t begin, int32_t end, int32_t delta,
               int32_t divisor, bool absolute);

/* A batch of some sequences: what all sessions give, and tales. */
bool tale_decode(struct story *s);

#endif
