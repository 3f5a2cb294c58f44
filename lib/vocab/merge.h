/* SPDX-License-Identifier: MIT */
/* merge.h - join neighbours, best pair first
 *
 * This is common to byte-pair encodings. A text starts as a list of symbols.
 * Of all neighbours that may be joined, the pair with the best score, the
 * leftmost of equals, is joined, until no pair is left. Candidates wait in a
 * heap. A candidate whose symbols have changed since is recognised by its size
 * and dropped. n symbols take n log n steps. */
#ifndef GG_VOCAB_MERGE_H
#define GG_VOCAB_MERGE_H

#include "vocab/heap.h"
#include "vocab/vocab_int.h"

#define GG_NO_SYM UINT32_MAX

/* A piece of the text: a node of a doubly linked list. */
struct gg_vocab_symbol {
    uint32_t off, size; /* bytes; size 0: joined to its left neighbour */
    uint32_t prev, next;
    gguf_token id; /* token; GGUF_TOKEN_NONE: none */
};

/* May l and r, its right neighbour, be joined? Then *id is the joined token,
 * and *score its score. */
typedef bool gg_vocab_pair_fn(const void *user,
                              const struct gg_vocab_symbol *l,
                              const struct gg_vocab_symbol *r, double *score,
                              gguf_token *id);

struct gg_merge {
    const struct gguf_allocator *allocator;
    gg_vocab_pair_fn *pair;
    const void *user;
    struct gg_vocab_symbol
        *sym; /* [n]; the first is never joined to another */
    size_t n, cap;
    struct gg_vocab_candidate
        *heap; /* [n_heap]; size is that of both symbols together */
    size_t n_heap, heap_cap;
};

void gg_merge_init(struct gg_merge *m, const struct gguf_allocator *a,
                   gg_vocab_pair_fn *pair, const void *user);
void gg_merge_fini(struct gg_merge *m);

/* Append a symbol. GGUF_E_NOMEM. */
enum gguf_status gg_merge_add(struct gg_merge *m, uint32_t off, uint32_t size,
                              gguf_token id, struct gguf_error *err);

/* Join all pairs. Afterwards the list goes from sym[0] by next to GG_NO_SYM;
 * set n to 0 for the next list. GGUF_E_NOMEM. */
enum gguf_status gg_merge_run(struct gg_merge *m, struct gguf_error *err);

#endif
