/* SPDX-License-Identifier: MIT */
/* batch.c - check a batch and plan its entries */
#include "config.h"
#include "run/batch.h"

#include "backend/backend_int.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define NONE UINT32_MAX

static uint32_t n_seq_of(const struct gguf_batch *b, size_t i)
{
    return b->n_seq ? b->n_seq[i] : 1;
}

void gg_batch_fini(struct gg_batch_plan *p)
{
    gg_mem_free(p->allocator, p->words);
    p->words = NULL;
    p->words_cap = 0;
}

enum gguf_status gg_batch_reserve(struct gg_batch_plan *p, size_t n,
                                  struct gguf_error *err)
{
    const size_t of_entry = sizeof(struct gg_batch_entry) / sizeof *p->words;
    const size_t n_words = (of_entry + 2) * n + 7 * (size_t)p->n_seq + 1;
    if (n_words <= p->words_cap)
        return GGUF_OK;
    gg_batch_fini(p);
    /* a measured session decodes nothing */
    if (gg_measure_find(p->allocator)) {
        gg_measure_add(p->allocator, n_words * sizeof *p->words);
        return GGUF_OK;
    }
    p->words = gg_mem_alloc(p->allocator, n_words * sizeof *p->words);
    if (!p->words)
        return gg_error_set_nomem(err, n_words * sizeof *p->words);
    p->words_cap = n_words;
    return GGUF_OK;
}

/* ---- checks ---- */

static enum gguf_status check_seqs(const struct gguf_batch *b, size_t i,
                                   size_t at, uint32_t n_seq,
                                   struct gguf_error *err)
{
    const uint32_t n = n_seq_of(b, i);
    if (b->n_seq && (!n || n > n_seq || !b->seq))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "token %zu: %" PRIu32 " sequences, must be 1 to "
                            "%" PRIu32 " in the list seq",
                            i, n, n_seq);
    for (uint32_t k = 0; b->seq && k < n; k++)
        if ((uint32_t)b->seq[at + k] >= n_seq)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu: sequence %" PRId32
                                ", the session has %" PRIu32,
                                i, b->seq[at + k], n_seq);
    return GGUF_OK;
}

enum gguf_status gg_batch_check(const struct gguf_batch *b, uint32_t n_vocab,
                                uint32_t n_seq, size_t *n,
                                struct gguf_error *err)
{
    *n = 0;
    if (!b->n || b->n > INT32_MAX || !b->token)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a batch must have 1 to 2^31 - 1 tokens");
    for (size_t i = 0; i < b->n; i++) {
        if (b->token[i] < 0 || (uint32_t)b->token[i] >= n_vocab)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu of the batch: id %" PRId32
                                ", the model has %" PRIu32,
                                i, b->token[i], n_vocab);
        GG_TRY(check_seqs(b, i, *n, n_seq, err));
        *n += n_seq_of(b, i);
        if (*n > INT32_MAX)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "tokens 0 to %zu have more than 2^31 - 1 "
                                "sequences together",
                                i);
        if (b->pos && (b->pos[i] < 0 || b->pos[i] == INT32_MAX))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu: position %" PRId32
                                ", must be 0 to 2^31 - 2",
                                i, b->pos[i]);
    }
    return GGUF_OK;
}

enum gguf_status gg_batch_check_types(const struct gguf_batch *b,
                                      uint32_t n_types, struct gguf_error *err)
{
    for (size_t i = 0; b->type && i < b->n; i++)
        if (b->type[i] >= n_types)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu: type %" PRIu32
                                ", the model has %" PRIu32,
                                i, b->type[i], n_types);
    return GGUF_OK;
}

/* ---- sequences with the same cells ---- */

/* Separate sequences that were the same: those in the set from the others. */
static void split_groups(struct gg_batch_plan *p)
{
    for (uint32_t i = 0; i < 2 * p->n_seq; i++)
        p->first[i] = NONE;
    for (uint32_t q = 0; q < p->n_seq; q++) {
        uint32_t *first = &p->first[2 * p->same[q] + p->in[q]];
        if (*first == NONE)
            *first = q;
        p->same[q] = *first;
    }
}

static void split_by_cells(struct gg_batch_plan *p, const struct gg_cells *c)
{
    for (uint32_t i = 0; i < c->stream[0].end; i++) {
        for (uint32_t q = 0; q < p->n_seq; q++)
            p->in[q] = gg_cells_is_owner(c, q, i);
        split_groups(p);
    }
}

static void begin_same(struct gg_batch_plan *p,
                       const struct gg_batch_target *goal)
{
    for (uint32_t q = 0; q < p->n_seq; q++)
        p->same[q] = goal->share ? 0 : q;
    for (unsigned i = 0; goal->share && i < 2; i++)
        if (goal->table[i])
            split_by_cells(p, goal->table[i]);
}

/* ---- entries ---- */

static struct gg_batch_entry *add_entry(struct gg_batch_plan *p, uint32_t tok,
                                        uint32_t seq, uint32_t *n_members)
{
    struct gg_batch_entry *e = &p->entry[p->n_entry++];
    *e = (struct gg_batch_entry){ tok, NONE, *n_members, 1 };
    p->members[(*n_members)++] = seq;
    return e;
}

/* Add an entry for each set of equal sequences of a token. */
static enum gguf_status spread_token(struct gg_batch_plan *p, uint32_t tok,
                                     const int32_t *seq, uint32_t n,
                                     uint32_t out, uint32_t *n_members,
                                     struct gguf_error *err)
{
    memset(p->in, 0, p->n_seq * sizeof *p->in);
    for (uint32_t k = 0; k < n; k++) {
        if (p->in[seq[k]])
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %" PRIu32 " names sequence %" PRId32
                                " twice",
                                tok, seq[k]);
        p->in[seq[k]] = 1;
    }
    split_groups(p);
    for (uint32_t q = 0; q < p->n_seq; q++) {
        if (!p->in[q] || p->same[q] != q)
            continue;
        struct gg_batch_entry *e = add_entry(p, tok, q, n_members);
        for (uint32_t o = q + 1; o < p->n_seq; o++)
            if (p->in[o] && p->same[o] == q) {
                p->members[(*n_members)++] = o;
                e->n_set++;
            }
        if (p->same[seq[0]] == q)
            e->out = out;
    }
    return GGUF_OK;
}

static enum gguf_status make_entries(struct gg_batch_plan *p,
                                     const struct gguf_batch *b,
                                     const struct gg_batch_target *goal,
                                     struct gguf_error *err)
{
    static const int32_t first[1] = { 0 };
    uint32_t n_members = 0;
    size_t at = 0;
    p->n_entry = p->n_out = 0;
    if (b->n_seq)
        begin_same(p, goal);
    for (size_t i = 0; i < b->n; at += n_seq_of(b, i), i++) {
        const bool want = b->want ? b->want[i] : i + 1 == b->n;
        const uint32_t out = want ? p->n_out++ : NONE;
        const int32_t *seq = b->seq ? b->seq + at : first;
        if (!b->n_seq)
            add_entry(p, (uint32_t)i, (uint32_t)*seq, &n_members)->out = out;
        else
            GG_TRY(spread_token(p, (uint32_t)i, seq, b->n_seq[i], out,
                                &n_members, err));
    }
    return GGUF_OK;
}

/* ---- room ---- */

/* Do the tokens fit into their sequence? */
static enum gguf_status check_seq(const struct gg_batch_plan *p,
                                  const struct gg_batch_target *goal,
                                  uint32_t q, struct gguf_error *err)
{
    const struct gg_cells *c = goal->table[0];
    const uint32_t n = p->count[q],
                   n_free = c ? goal->most - c->seq[q].n_used : goal->most;
    const int32_t next = c ? c->seq[q].next_pos : 0;
    if (n > n_free)
        return gg_error_set(err, GGUF_E_FULL, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 " gets %" PRIu32
                            " tokens, has room for %" PRIu32 " of %" PRIu32,
                            q, n, n_free, goal->most);
    if (!p->batch->pos && n > INT32_MAX - (uint32_t)next)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 " gets %" PRIu32
                            " tokens at position %" PRId32
                            ", the largest is %" PRId32,
                            q, n, next, INT32_MAX - 1);
    return GGUF_OK;
}

static enum gguf_status check_room(struct gg_batch_plan *p,
                                   const struct gg_batch_target *goal,
                                   struct gguf_error *err)
{
    const struct gg_cells *c = goal->table[0];
    memset(p->count, 0, p->n_seq * sizeof *p->count);
    for (uint32_t i = 0; i < p->n_entry; i++)
        for (uint32_t k = 0; k < p->entry[i].n_set; k++)
            p->count[p->members[p->entry[i].set + k]]++;
    for (uint32_t q = 0; q < p->n_seq; q++)
        GG_TRY(check_seq(p, goal, q, err));
    if (!c || !c->n_words || p->n_entry <= c->n_cells - c->stream[0].n_used)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_FULL, GGUF_NO_OFFSET,
        "sequences get %" PRIu32 " tokens, have room for %" PRIu32
        " of %" PRIu32 " together",
        p->n_entry, c->n_cells - c->stream[0].n_used, c->n_cells);
}

/* ---- pooled tokens ---- */

/* Is entry i, which comes after the best so far, the one to pool? That is the
 * first token at a sequence's lowest position (CLS), or the last one at its
 * highest. Positions that are not given count up. */
static bool is_better(const struct gg_batch_plan *p, uint32_t i, uint32_t best)
{
    const int32_t *pos = p->batch->pos;
    const bool last = p->pools == GGUF_POOLING_LAST;
    if (best == NONE || !pos)
        return best == NONE || last;
    const int32_t a = pos[p->entry[i].tok], b = pos[p->entry[best].tok];
    return last ? a >= b : a < b;
}

static void choose_pooled(struct gg_batch_plan *p)
{
    for (uint32_t q = 0; q < p->n_seq; q++)
        p->pooled[q] = NONE;
    for (uint32_t i = 0; i < p->n_entry; i++)
        for (uint32_t k = 0; k < p->entry[i].n_set; k++) {
            uint32_t *best = &p->pooled[p->members[p->entry[i].set + k]];
            if (is_better(p, i, *best))
                *best = i;
        }
}

bool gg_batch_is_needed(const struct gg_batch_plan *p, uint32_t i)
{
    const struct gg_batch_entry *e = &p->entry[i];
    bool gives = e->out != NONE;
    for (uint32_t k = 0; k < e->n_set; k++)
        gives = gives || gg_batch_is_pooled(p, p->members[e->set + k], i);
    return gives;
}

/* ---- order ---- */

static void sort_entries(struct gg_batch_plan *p)
{
    memset(p->begin, 0, ((size_t)p->n_group + 1) * sizeof *p->begin);
    for (uint32_t i = 0; i < p->n_entry; i++)
        p->begin[gg_batch_group(p, &p->entry[i]) + 1]++;
    for (uint32_t g = 0; g < p->n_group; g++)
        p->begin[g + 1] += p->begin[g];
    /* begin[g] moves to the end of g, which is where the next one begins */
    for (uint32_t i = 0; i < p->n_entry; i++)
        p->order[p->begin[gg_batch_group(p, &p->entry[i])]++] = i;
    memmove(p->begin + 1, p->begin, p->n_group * sizeof *p->begin);
    p->begin[0] = 0;
}

enum gguf_status gg_batch_make_plan(struct gg_batch_plan *p,
                                    const struct gguf_batch *b, size_t n,
                                    const struct gg_batch_target *goal,
                                    struct gguf_error *err)
{
    p->batch = b;
    p->n_group = goal->flat ? 1 : p->n_seq;
    p->entry = (struct gg_batch_entry *)(void *)p->words;
    p->members = (uint32_t *)(void *)(p->entry + n);
    p->order = p->members + n;
    p->begin = p->order + n;
    p->count = p->begin + p->n_seq + 1;
    p->pooled = p->count + p->n_seq;
    p->same = p->pooled + p->n_seq;
    p->in = p->same + p->n_seq;
    p->first = p->in + p->n_seq;
    GG_TRY(make_entries(p, b, goal, err));
    GG_TRY(check_room(p, goal, err));
    sort_entries(p);
    if (p->pools == GGUF_POOLING_CLS || p->pools == GGUF_POOLING_LAST)
        choose_pooled(p);
    return GGUF_OK;
}
