/* SPDX-License-Identifier: MIT */
/* batch.h - a caller's batch: checked, and in the order of its sequences
 *
 * A token of several sequences is computed once for those of them that have the
 * same cells, and once for each of the others: an entry of the plan each.
 */
#ifndef GG_RUN_BATCH_H
#define GG_RUN_BATCH_H

#include "gguf/session.h"
#include "run/cells.h"

struct gg_batch_entry {
    uint32_t tok;        /* index into the batch */
    uint32_t out;        /* place among the outputs, or UINT32_MAX */
    uint32_t set, n_set; /* its sequences, from members[set] on, in order */
};

/* What a batch asks for. The lists lie in words, which are used again. */
struct gg_batch_plan {
    const struct gguf_allocator *allocator;
    const struct gguf_batch *batch;
    uint32_t n_seq;          /* of the session */
    enum gguf_pooling pools; /* which tokens are pooled: MEAN (all), CLS, LAST
                              * or NONE */
    uint32_t n_out;          /* outputs that are wanted */
    uint32_t n_group; /* what may be computed side by side: the sequences, or
                       * one group of all entries */
    uint32_t n_entry;
    struct gg_batch_entry *entry; /* [n_entry], in the batch's order */
    uint32_t *members;
    uint32_t *order;      /* [n_entry] numbers of entries, group by group */
    uint32_t *begin;      /* [n_group + 1] where each group begins in order */
    uint32_t *count;      /* [n_seq] tokens that each gets */
    uint32_t *pooled;     /* [n_seq] of CLS and LAST: which entry */
    uint32_t *same;       /* [n_seq] the first sequence with the same cells */
    uint32_t *in, *first; /* [n_seq], [2 n_seq] while they are told apart */
    uint32_t *words;
    size_t words_cap;
};

/* Where entries go. */
struct gg_batch_target {
    const struct gg_cells *book[2]; /* cells that they take; [1], of windows,
                                     * may be NULL; [0] is NULL where what was
                                     * kept is forgotten first */
    uint32_t most; /* tokens of a sequence, those in its cells included */
    bool share;    /* several sequences may have one cell */
    bool flat;     /* one group */
};

void gg_batch_fini(struct gg_batch_plan *p);

/* Room for a batch whose tokens are in n sequences together; the old contents
 * are lost if it has to grow. GGUF_E_NOMEM. */
enum gguf_status gg_batch_reserve(struct gg_batch_plan *p, size_t n,
                                  struct gguf_error *err);

/* Are the tokens the model's, of n_vocab, and do sequences and positions
 * exist? In *n, how many sequences its tokens have together. GGUF_E_INVALID,
 * naming the index. */
enum gguf_status gg_batch_check(const struct gguf_batch *b, uint32_t n_vocab,
                                uint32_t n_seq, size_t *n,
                                struct gguf_error *err);

/* Plan a batch that was checked, whose tokens have n sequences together, and
 * for which there is room. GGUF_E_FULL; GGUF_E_INVALID where positions would
 * pass the largest, or a token names a sequence twice. */
enum gguf_status gg_batch_make_plan(struct gg_batch_plan *p,
                                    const struct gguf_batch *b, size_t n,
                                    const struct gg_batch_target *goal,
                                    struct gguf_error *err);

/* How many entries group q has. */
static inline uint32_t gg_batch_n_tok(const struct gg_batch_plan *p,
                                      uint32_t q)
{
    return p->begin[q + 1] - p->begin[q];
}
/* Entry i of the order, and its first sequence. */
static inline const struct gg_batch_entry *
gg_batch_entry(const struct gg_batch_plan *p, uint32_t i)
{
    return &p->entry[p->order[i]];
}
static inline uint32_t gg_batch_seq(const struct gg_batch_plan *p,
                                    const struct gg_batch_entry *e)
{
    return p->members[e->set];
}
/* Is entry i pooled for sequence q, which is one of its? */
static inline bool gg_batch_is_pooled(const struct gg_batch_plan *p,
                                      uint32_t q, uint32_t i)
{
    return p->pools == GGUF_POOLING_MEAN ||
           (p->pools != GGUF_POOLING_NONE && p->pooled[q] == i);
}
/* Is the state of entry i an output, or pooled? */
bool gg_batch_is_needed(const struct gg_batch_plan *p, uint32_t i);

static inline uint32_t gg_batch_group(const struct gg_batch_plan *p,
                                      const struct gg_batch_entry *e)
{
    return p->n_group == 1 ? 0 : gg_batch_seq(p, e);
}

#endif
