/* SPDX-License-Identifier: MIT */
/* text_counter.h - bytes and words of the text that tokens stand for */
#ifndef GG_EVAL_TEXT_COUNTER_H
#define GG_EVAL_TEXT_COUNTER_H

#include "gguf/vocab.h"

/* Zeroed but for the first two. A word is bytes without white space of ASCII
 * (blank, \t, \n, \v, \f, \r) between; it counts where it begins. */
struct gg_text_counter {
    const struct gguf_allocator *allocator;
    const struct gguf_vocab *vocab;
    char *piece;
    size_t room;               /* of piece */
    uint64_t n_bytes, n_words; /* so far */
};

/* Add tokens first to end - 1 of a text, whose tokens begin at text: all that
 * are added are the whole text's bytes and words, in whatever parts. Control
 * tokens have no bytes, nor has the blank that tokenizing puts in front.
 * GGUF_E_NOMEM. */
enum gguf_status gg_text_counter_add(struct gg_text_counter *s,
                                     const gguf_token *text, size_t first,
                                     size_t end, struct gguf_error *err);
void gg_text_counter_fini(struct gg_text_counter *s);

#endif
