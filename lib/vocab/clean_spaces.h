/* SPDX-License-Identifier: MIT */
/* clean_spaces.h - blanks that WordPiece put before punctuation, taken out
 * again
 *
 * What Hugging Face's clean_up_tokenization_spaces does, in the form in which
 * llama.cpp has it: before ? ! . and , around a ' that stands alone, and before
 * 's 'm 're 've.
 */
#ifndef GG_VOCAB_CLEAN_SPACES_H
#define GG_VOCAB_CLEAN_SPACES_H

#include "vocab/vocab_int.h"

/* What has been seen and not yet been passed on: at most a blank, a blank and
 * an apostrophe, and for the last step a letter after these. */
struct gg_vocab_space_cleaner {
    bool blank;           /* a blank, before ? ! . or , */
    unsigned apart;       /* of " ' ": characters seen */
    unsigned contraction; /* of " 're": characters seen, */
    char letter;          /* and the third of them */
    struct gg_vocab_sink *out;
};

/* gg_vocab_clean_put, which a struct gg_vocab_sink calls, is in
 * vocab/vocab_int.h. */
/* What is left at the end of the text. */
void gg_vocab_clean_end(struct gg_vocab_space_cleaner *c);

#endif
