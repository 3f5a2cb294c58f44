/* SPDX-License-Identifier: MIT */
/* batch.h - a caller's batch, checked and sorted by sequences
 *
 * The plan of a batch has entries. A token of several sequences is one entry
 * for those sequences that have had the same tokens, and a further entry for
 * each of the others. */
#ifndef GG_RUN_BATCH_H
#define GG_RUN_BATCH_H

#include "gguf/session.h"
#include "run/cells.h"

struct gg_batch_entry {
    uint32_t tok; /* index of the token in the batch */
    uint32_t out; /* index of its output; UINT32_MAX: none */
    /* its sequences: n_set numbers from members[set] on, in order */
    uint32_t set, n_set;
};

/* Plan of a batch. All lists lie in words, which is reused. */
struct gg_batch_plan {
    const struct gguf_allocator *allocator;
    const struct gguf_batch *batch;
    uint32_t n_seq; /* sequences of the session */
    /* tokens that are pooled: MEAN (all), CLS, LAST or NONE */
    enum gguf_pooling pools;
    uint32_t n_out; /* outputs that are wanted */
    /* groups that may be computed side by side: the sequences, or one group of
     * all entries */
    uint32_t n_group;
    uint32_t n_entry;
    struct gg_batch_entry *entry; /* [n_entry], in the order of the batch */
    uint32_t *members;
    uint32_t *order; /* [n_entry], numbers of entries, group by group */
    /* [n_group + 1], index in order at which each group begins */
    uint32_t *begin;
    uint32_t *count;  /* [n_seq], tokens of each sequence */
    uint32_t *pooled; /* [n_seq], pooled entry of each sequence (CLS, LAST) */
    uint32_t *same;   /* [n_seq], first sequence with the same cells */
    /* [n_seq] and [2 n_seq], scratch for finding these */
    uint32_t *in, *first;
    uint32_t *words;
    size_t words_cap;
};

/* Cells and limits for a plan. */
struct gg_batch_target {
    /* tables in which the tokens take cells. [1], for windows, may be NULL. [0]
     * is NULL if sequences are cleared first. */
    const struct gg_cells *table[2];
    uint32_t most; /* most tokens of a sequence, with those in its cells */
    bool share;    /* several sequences may own one cell */
    bool flat;     /* all entries are one group */
};

void gg_batch_fini(struct gg_batch_plan *p);

/* Make room for a batch whose tokens have n sequences together. If there was
 * too little, the plan is lost. GGUF_E_NOMEM. */
enum gguf_status gg_batch_reserve(struct gg_batch_plan *p, size_t n,
                                  struct gguf_error *err);

/* Check that tokens are below n_vocab, and that sequences and positions are in
 * range. *n receives the sum over tokens of their sequences. GGUF_E_INVALID:
 * the message has the index. */
enum gguf_status gg_batch_check(const struct gguf_batch *b, uint32_t n_vocab,
                                uint32_t n_seq, size_t *n,
                                struct gguf_error *err);

/* Check that types of tokens are below n_types. GGUF_E_INVALID: the message has
 * the index. */
enum gguf_status gg_batch_check_types(const struct gguf_batch *b,
                                      uint32_t n_types,
                                      struct gguf_error *err);

/* Plan a checked batch for which there is room; n is that of gg_batch_check().
 * GGUF_E_FULL: too many tokens. GGUF_E_INVALID: a position would be too large,
 * or a token names a sequence twice. */
enum gguf_status gg_batch_make_plan(struct gg_batch_plan *p,
                                    const struct gguf_batch *b, size_t n,
                                    const struct gg_batch_target *goal,
                                    struct gguf_error *err);

/* Number of entries of group q. */
static inline uint32_t gg_batch_n_tok(const struct gg_batch_plan *p,
                                      uint32_t q)
{
    return p->begin[q + 1] - p->begin[q];
}
/* Entry i in the order of groups. Then: its first sequence. */
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
/* Is entry i pooled for q, one of its sequences? */
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
