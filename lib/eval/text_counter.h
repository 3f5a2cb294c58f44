/* SPDX-License-Identifier: MIT */
/* text_counter.h - count bytes and words of the text of tokens */
#ifndef GG_EVAL_TEXT_COUNTER_H
#define GG_EVAL_TEXT_COUNTER_H

#include "gguf/vocab.h"

/* Begins with allocator and vocab, and zeros. A word is a run of bytes without
 * white space of ASCII (blank, \t, \n, \v, \f, \r); it counts where it begins.
 */
struct gg_text_counter {
    const struct gguf_allocator *allocator;
    const struct gguf_vocab *vocab;
    char *piece;
    size_t room;               /* bytes of room in piece */
    uint64_t n_bytes, n_words; /* counts so far */
};

/* Add the tokens first to end - 1 of the text that begins at text. If all
 * tokens of a text are added, in any parts, the counts are those of the text.
 * Control tokens have no bytes, and neither has the blank that tokenizing put
 * in front. GGUF_E_NOMEM. */
enum gguf_status gg_text_counter_add(struct gg_text_counter *s,
                                     const gguf_token *text, size_t first,
                                     size_t end, struct gguf_error *err);
void gg_text_counter_fini(struct gg_text_counter *s);

#endif
