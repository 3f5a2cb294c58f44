/* SPDX-License-Identifier: MIT */
/* heap.h - heap of candidates, the best first */
#ifndef GG_VOCAB_HEAP_H
#define GG_VOCAB_HEAP_H

#include "gguf/vocab.h"

#include <stdbool.h>
#include <stddef.h>

struct gg_vocab_candidate {
    double score;  /* the highest comes first */
    uint32_t left; /* the leftmost of equals comes first */
    uint32_t size; /* the caller's, as is id */
    gguf_token id;
};

static inline bool
gg_vocab_candidate_is_better(const struct gg_vocab_candidate *a,
                             const struct gg_vocab_candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

/* Push a candidate to heap[*n], which has room for one more. */
static inline void gg_heap_push(struct gg_vocab_candidate *heap, size_t *n,
                                struct gg_vocab_candidate c)
{
    size_t i = (*n)++;
    while (i && gg_vocab_candidate_is_better(&c, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = c;
}

/* Remove the best candidate of heap[*n], *n > 0. */
static inline struct gg_vocab_candidate
gg_heap_pop(struct gg_vocab_candidate *heap, size_t *n)
{
    struct gg_vocab_candidate top = heap[0], last = heap[--*n];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= *n)
            break;
        if (k + 1 < *n && gg_vocab_candidate_is_better(&heap[k + 1], &heap[k]))
            k++;
        if (!gg_vocab_candidate_is_better(&heap[k], &last))
            break;
        heap[i] = heap[k];
        i = k;
    }
    heap[i] = last;
    return top;
}

#endif
