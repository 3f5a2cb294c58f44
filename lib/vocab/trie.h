/* SPDX-License-Identifier: MIT */
/* trie.h - all texts that begin at a place in another
 *
 *     for (size_t i = at, node = 0; i < size; i++) {
 *         node = gg_vocab_trie_next(t, node, text[i]);
 *         if (!node) break;
 *         if (t->id[node] != GGUF_TOKEN_NONE) ... text[at..i] is that token
 *     }
 *
 * Nodes are numbered level by level, so that the children of each lie side by
 * side and begin where those of the one before end: 9 bytes a node, of which
 * there are as many as the texts have different beginnings.
 */
#ifndef GG_VOCAB_TRIE_H
#define GG_VOCAB_TRIE_H

#include "base/error.h"
#include "gguf/vocab.h"

#include <string.h>

struct gg_vocab_trie {
    uint32_t
        *first;     /* n + 1: children of k are first[k] to first[k + 1] - 1 */
    gguf_token *id; /* n: whose text ends here, or GGUF_TOKEN_NONE */
    uint8_t *label; /* n: the byte that leads here */
    uint32_t n;     /* node 0 is the empty text; 0: there is no trie */
    uint32_t root[256];
};

struct gg_vocab_trie_text {
    struct gguf_str text;
    gguf_token id;
};

/* Of n texts, which are put in order; those without a byte are left out, and of
 * equal ones the highest id counts. The texts themselves are not kept.
 * GGUF_E_NOMEM, GGUF_E_LIMIT (2^32 nodes). */
enum gguf_status gg_vocab_trie_init(struct gg_vocab_trie *t,
                                    const struct gguf_allocator *a,
                                    struct gg_vocab_trie_text *text, size_t n,
                                    struct gguf_error *err);
/* One that was never made, all zeros, is fine. */
void gg_vocab_trie_fini(struct gg_vocab_trie *t,
                        const struct gguf_allocator *a);

/* Where byte leads from node; 0: nowhere. */
static inline uint32_t gg_vocab_trie_next(const struct gg_vocab_trie *t,
                                          uint32_t node, uint8_t byte)
{
    if (!node)
        return t->root[byte];
    uint32_t first = t->first[node], n = t->first[node + 1] - first;
    const uint8_t *label = t->label + first;
    if (n < 8) {
        for (uint32_t i = 0; i < n; i++)
            if (label[i] == byte)
                return first + i;
        return 0;
    }
    const uint8_t *p = memchr(label, byte, n);
    return p ? first + (uint32_t)(p - label) : 0;
}

/* The longest text that size bytes begin with: its size, 0 if none, and id. */
static inline size_t gg_vocab_trie_longest(const struct gg_vocab_trie *t,
                                           const char *text, size_t size,
                                           gguf_token *id)
{
    uint32_t node = 0;
    size_t longest = 0;
    for (size_t i = 0; i < size; i++) {
        node = gg_vocab_trie_next(t, node, (uint8_t)text[i]);
        if (!node)
            break;
        if (t->id[node] != GGUF_TOKEN_NONE) {
            *id = t->id[node];
            longest = i + 1;
        }
    }
    return longest;
}

#endif
