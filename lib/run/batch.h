/* batch.h - a caller's batch: checked, and in the order of its sequences */
#ifndef GG_RUN_BATCH_H
#define GG_RUN_BATCH_H

#include "gguf/session.h"
#include "run/cells.h"

/* What a batch asks for. The lists lie in words, which are used again. */
struct gg_batch_plan {
    const struct gguf_allocator *allocator;
    const struct gguf_batch *batch;
    uint32_t n_seq;          /* of the session */
    enum gguf_pooling pools; /* which tokens are pooled: MEAN (all), CLS, LAST
                              * or NONE */
    uint32_t n_out;          /* outputs that are wanted */
    uint32_t *order;  /* [n] indices into the batch, sequence by sequence */
    uint32_t *begin;  /* [n_seq + 1] where each sequence begins in order */
    uint32_t *out_at; /* [n] place among the outputs, or UINT32_MAX */
    uint32_t *pooled; /* [n_seq] of CLS and LAST: which token of the batch */
    uint32_t *words;
    size_t words_cap;
};

void gg_batch_fini(struct gg_batch_plan *p);

/* Room for a batch of n tokens; the old contents are lost if it has to grow.
 * GGUF_E_NOMEM. */
enum gguf_status gg_batch_room(struct gg_batch_plan *p, size_t n,
                               struct gguf_error *err);

/* Are the tokens the model's, of n_vocab, and do sequences and positions
 * exist? GGUF_E_INVALID, naming the index. */
enum gguf_status gg_batch_check(const struct gguf_batch *b, uint32_t n_vocab,
                                uint32_t n_seq, struct gguf_error *err);

/* Plan a batch that was checked and for which there is room. A sequence may
 * have at most as many tokens in all, those in its cells included; cells is
 * NULL where nothing is kept. GGUF_E_FULL; GGUF_E_INVALID where positions would
 * pass the largest. */
enum gguf_status gg_batch_sort(struct gg_batch_plan *p,
                               const struct gguf_batch *b,
                               const struct gg_cells *cells, uint32_t most,
                               struct gguf_error *err);

/* How many tokens of sequence q the batch has. */
static inline uint32_t gg_batch_n_tok(const struct gg_batch_plan *p,
                                      uint32_t q)
{
    return p->begin[q + 1] - p->begin[q];
}

/* Is token i, of sequence q, pooled? */
static inline bool gg_batch_pools(const struct gg_batch_plan *p, uint32_t q,
                                  uint32_t i)
{
    return p->pools == GGUF_POOLING_MEAN ||
           (p->pools != GGUF_POOLING_NONE && p->pooled[q] == i);
}

#endif
