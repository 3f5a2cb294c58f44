/* SPDX-License-Identifier: MIT */
/* prefix.h - find the longest token with which a text begins
 *
 * The texts of tokens are sorted. Each knows its parent, the longest other
 * text with which it begins. A text begins with the last token that is not
 * above it in the order, or with one of that token's ancestors. The first
 * ancestor that is short enough is found by jumps of growing length (Myers,
 * "An applicative random-access stack", 1983): n texts take log n comparisons
 * and log n jumps, even if each begins with all shorter ones. */
#ifndef GG_VOCAB_PREFIX_H
#define GG_VOCAB_PREFIX_H

#include "base/error.h"
#include "gguf/vocab.h"

struct gg_prefix {
    gguf_token id;
    uint32_t rank;   /* precedence: the longest text is 0, equal ones by id */
    uint32_t parent; /* number of its parent; 0: none */
    uint32_t jump;   /* an ancestor further up */
    uint32_t depth;
};

struct gg_vocab_prefixes {
    struct gg_prefix *text; /* [n]; number 0 stands for no text */
    uint32_t n;             /* number of texts, with number 0 */
    /* texts that begin with byte b: first[b] to first[b + 1] - 1 */
    uint32_t first[257];
};

/* Index the tokens of v whose kinds, as 1 << kind, are in a mask.
 * GGUF_E_NOMEM. */
enum gguf_status gg_vocab_prefixes_init(struct gg_vocab_prefixes *p,
                                        const struct gguf_vocab *v,
                                        unsigned kinds,
                                        struct gguf_error *err);
void gg_vocab_prefixes_fini(struct gg_vocab_prefixes *p,
                            const struct gguf_vocab *v);

/* Number of the longest text with which size bytes begin, size > 0; 0: none.
 */
uint32_t gg_vocab_prefixes_find(const struct gg_vocab_prefixes *p,
                                const struct gguf_vocab *v, const char *text,
                                size_t size);

#endif
