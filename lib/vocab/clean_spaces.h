/* SPDX-License-Identifier: MIT */
/* clean_spaces.h - remove the blanks that WordPiece put before punctuation
 *
 * It does the same as clean_up_tokenization_spaces of Hugging Face, in
 * llama.cpp's form: before ? ! . and , around a ' that stands alone, and
 * before 's 'm 're 've. */
#ifndef GG_VOCAB_CLEAN_SPACES_H
#define GG_VOCAB_CLEAN_SPACES_H

#include "vocab/vocab_int.h"

/* Characters that are seen and not yet passed on: a blank; a blank and an
 * apostrophe; for the last step also a letter after these. */
struct gg_vocab_space_cleaner {
    bool blank;           /* a blank, which ? ! . or , may follow */
    unsigned apart;       /* characters seen of " ' " */
    unsigned contraction; /* characters seen of " 're" or the like */
    char letter;          /* third character of contraction */
    struct gg_vocab_sink *out;
};

/* Pass on the rest at the end of the text. gg_vocab_clean_put(), which a
 * struct gg_vocab_sink calls, is in vocab/vocab_int.h. */
void gg_vocab_clean_end(struct gg_vocab_space_cleaner *c);

#endif
