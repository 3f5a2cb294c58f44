/* SPDX-License-Identifier: MIT */
/* trie.h - find all tokens with which a text begins
 *
 *     for (size_t i = at, node = 0; i < size; i++) {
 *         node = gg_vocab_trie_next(t, node, text[i]);
 *         if (!node) break;
 *         if (t->id[node] != GGUF_TOKEN_NONE) ... text[at..i] is that token
 *     }
 *
 * Nodes are numbered level by level. The children of a node are adjacent, and
 * begin where those of the node before end. A node takes 9 bytes. The number
 * of nodes is that of different prefixes of the texts. */
#ifndef GG_VOCAB_TRIE_H
#define GG_VOCAB_TRIE_H

#include "base/error.h"
#include "gguf/vocab.h"

#include <string.h>

struct gg_vocab_trie {
    uint32_t
        *first; /* [n + 1], children of k are first[k] to first[k + 1] - 1 */
    /* [n], token whose text ends here; GGUF_TOKEN_NONE: none */
    gguf_token *id;
    uint8_t *label; /* [n], byte that leads here */
    uint32_t n;     /* number of nodes; node 0 is the empty text; 0: no trie */
    uint32_t root[256];
};

struct gg_vocab_trie_text {
    struct gguf_str text;
    gguf_token id;
};

/* Build a trie of n texts, which are sorted. Empty texts are left out; the
 * highest id of equal texts counts. The texts need not outlive the trie.
 * GGUF_E_NOMEM. GGUF_E_LIMIT: 2^32 nodes. */
enum gguf_status gg_vocab_trie_init(struct gg_vocab_trie *t,
                                    const struct gguf_allocator *a,
                                    struct gg_vocab_trie_text *text, size_t n,
                                    struct gguf_error *err);
/* Free a trie. All zeros is allowed. */
void gg_vocab_trie_fini(struct gg_vocab_trie *t,
                        const struct gguf_allocator *a);

/* Node to which byte leads from node; 0: none. */
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

/* Size of the longest text with which size bytes begin, and its id. 0: none.
 */
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
