/* SPDX-License-Identifier: MIT */
/* prefix.h - which of many tokens' texts does a text begin with?
 *
 * The texts are sorted, and each knows the longest other that it begins with,
 * its parent. What a text begins with is then the last that is not above it, or
 * one of that one's ancestors, among which the first that is short enough is
 * found in steps of growing length (Myers, "An applicative random-access
 * stack", 1983): n texts take log n comparisons and log n steps, also where
 * each begins with all that are shorter.
 */
#ifndef GG_VOCAB_PREFIX_H
#define GG_VOCAB_PREFIX_H

#include "base/error.h"
#include "gguf/vocab.h"

struct gg_prefix {
    gguf_token id;
    uint32_t rank;   /* precedence: the longest text is 0; of equals by id */
    uint32_t parent; /* 0: none */
    uint32_t jump;   /* an ancestor further up, to skip those between */
    uint32_t depth;
};

struct gg_vocab_prefixes {
    struct gg_prefix *text; /* [0] is no text: number 0 means none */
    uint32_t n;             /* with that */
    uint32_t first[257];    /* first[b] to first[b + 1] - 1 begin with b */
};

/* The texts of the tokens of v whose kinds, as 1 << kind, are in this mask.
 * GGUF_E_NOMEM. */
enum gguf_status gg_vocab_prefixes_init(struct gg_vocab_prefixes *p,
                                        const struct gguf_vocab *v,
                                        unsigned kinds,
                                        struct gguf_error *err);
void gg_vocab_prefixes_fini(struct gg_vocab_prefixes *p,
                            const struct gguf_vocab *v);

/* Number of the longest of the texts that size bytes of text, not 0, begin
 * with; 0: none. */
uint32_t gg_vocab_prefixes_find(const struct gg_vocab_prefixes *p,
                                const struct gguf_vocab *v, const char *text,
                                size_t size);

#endif
