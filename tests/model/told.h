/* SPDX-License-Identifier: MIT */
/* told.h - what calls make of a story's tales, and what is decoded in it */
#ifndef TESTS_MODEL_TOLD_H
#define TESTS_MODEL_TOLD_H

#include "tests/model/story.h"

/* story.c: in [0, n); a fault, which is false. */
int story_rnd(int n);
bool story_fault(struct story *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool told_between(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= begin && (end < 0 || pos < end);
}
int32_t told_next(const struct story_tale *t);
void told_forget(struct story_tale *t);
void told_remove(struct story_tale *t, int32_t begin, int32_t end);
void told_copy(const struct story *s, const struct story_tale *from,
               struct story_tale *to, int32_t begin, int32_t end);
/* Has it room for a copy? */
bool told_fits(const struct story *s, const struct story_tale *from,
               const struct story_tale *to, int32_t begin, int32_t end);
void told_move(struct story_tale *t, int32_t begin, int32_t end, int32_t delta,
               int32_t divisor, bool absolute);

/* A batch of some sequences: what all sessions give, and tales. */
bool told_decode(struct story *s);

#endif
