/* SPDX-License-Identifier: MIT */
/* sequence_content.h - what calls make of the tales of a story, and decoding */
#ifndef TESTS_RUN_SEQUENCE_CONTENT_H
#define TESTS_RUN_SEQUENCE_CONTENT_H

#include "tests/run/random_calls.h"

/* random_calls.c: in [0, n); a fault, which is false. */
int random_calls_below(int n);
bool random_calls_fail(struct random_calls *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool content_has_pos(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= begin && (end < 0 || pos < end);
}
int32_t content_next_pos(const struct seq_content *t);
void content_clear(struct seq_content *t);
void content_remove(struct seq_content *t, int32_t begin, int32_t end);
void content_copy(const struct random_calls *s, const struct seq_content *from,
                  struct seq_content *to, int32_t begin, int32_t end);
/* Has it room for a copy? */
bool content_fits(const struct random_calls *s, const struct seq_content *from,
                  const struct seq_content *to, int32_t begin, int32_t end);
void content_move(struct seq_content *t, int32_t begin, int32_t end,
                  int32_t delta, int32_t divisor, bool absolute);

/* A batch of some sequences: what all sessions give, and tales. */
bool content_decode(struct random_calls *s);

#endif
