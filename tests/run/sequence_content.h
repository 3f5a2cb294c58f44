/* SPDX-License-Identifier: MIT */
/* sequence_content.h - the tokens that a sequence must hold after each call
 *
 * Each content_ function changes a seq_content as the call of that name changes
 * a sequence. A range [begin, end) of positions has no end if end < 0.
 */
#ifndef TESTS_RUN_SEQUENCE_CONTENT_H
#define TESTS_RUN_SEQUENCE_CONTENT_H

#include "tests/run/random_calls.h"

/* random_calls.c: a random number in [0, n). */
int random_calls_below(int n);
/* random_calls.c: write s->why. Returns false. */
bool random_calls_fail(struct random_calls *s, const char *fmt, ...)
    GGUF_PRINTF(2, 3);

static inline bool content_has_pos(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= begin && (end < 0 || pos < end);
}
/* The position after the last one; 0 if the sequence is empty. */
int32_t content_next_pos(const struct seq_content *t);
void content_clear(struct seq_content *t);
void content_remove(struct seq_content *t, int32_t begin, int32_t end);
void content_copy(const struct random_calls *s, const struct seq_content *from,
                  struct seq_content *to, int32_t begin, int32_t end);
/* Is there room in to for a copy of the range? */
bool content_fits(const struct random_calls *s, const struct seq_content *from,
                  const struct seq_content *to, int32_t begin, int32_t end);
void content_move(struct seq_content *t, int32_t begin, int32_t end,
                  int32_t delta, int32_t divisor, bool absolute);

/* Decode a random batch in every session, add it to the contents, and compare
 * the logits. */
bool content_decode(struct random_calls *s);

#endif
