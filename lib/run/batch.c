/* batch.c - what a batch must be, and whose its tokens are */
#include "config.h"
#include "run/batch.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

static uint32_t seq_of(const struct gguf_batch *b, size_t i)
{
    return b->seq ? (uint32_t)b->seq[i] : 0;
}

void gg_batch_fini(struct gg_batch_plan *p)
{
    gg_mem_free(p->allocator, p->words);
    p->words = NULL;
    p->words_cap = 0;
}

enum gguf_status gg_batch_room(struct gg_batch_plan *p, size_t n,
                               struct gguf_error *err)
{
    const size_t n_words = 2 * n + 2 * (size_t)p->n_seq + 1;
    if (n_words <= p->words_cap)
        return GGUF_OK;
    gg_batch_fini(p);
    p->words = gg_mem_alloc(p->allocator, n_words * sizeof *p->words);
    if (!p->words)
        return gg_error_set_nomem(err, n_words * sizeof *p->words);
    p->words_cap = n_words;
    return GGUF_OK;
}

enum gguf_status gg_batch_check(const struct gguf_batch *b, uint32_t n_vocab,
                                uint32_t n_seq, struct gguf_error *err)
{
    if (!b->n || b->n > INT32_MAX || !b->token)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a batch must have 1 to 2^31 - 1 tokens");
    for (size_t i = 0; i < b->n; i++) {
        if (b->token[i] < 0 || (uint32_t)b->token[i] >= n_vocab)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu of the batch is %" PRId32
                                ", the model has %" PRIu32,
                                i, b->token[i], n_vocab);
        if (seq_of(b, i) >= n_seq)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu is of sequence %" PRId32
                                ", the session has %" PRIu32,
                                i, b->seq[i], n_seq);
        if (b->pos && (b->pos[i] < 0 || b->pos[i] == INT32_MAX))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu is at position %" PRId32, i,
                                b->pos[i]);
    }
    return GGUF_OK;
}

/* Do n more tokens of sequence q fit? */
static enum gguf_status check_room(const struct gguf_batch *b,
                                   const struct gg_cells *cells, uint32_t q,
                                   uint32_t n, uint32_t most,
                                   struct gguf_error *err)
{
    const uint32_t n_free = cells ? most - cells->stream[q].n_used : most;
    const int32_t next = cells ? cells->stream[q].next_pos : 0;
    if (n > n_free)
        return gg_error_set(err, GGUF_E_FULL, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 " gets %" PRIu32
                            " tokens, has room for %" PRIu32 " of %" PRIu32,
                            q, n, n_free, most);
    if (!b->pos && n > INT32_MAX - (uint32_t)next)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 " gets %" PRIu32
                            " tokens at position %" PRId32
                            ", the last there is is %" PRId32,
                            q, n, next, INT32_MAX - 1);
    return GGUF_OK;
}

/* The first token at a sequence's lowest position, or the last one at its
 * highest. Without positions they count up. */
static void choose_pooled(struct gg_batch_plan *p)
{
    const int32_t *pos = p->batch->pos;
    const bool last = p->pools == GGUF_POOLING_LAST;
    for (uint32_t q = 0; q < p->n_seq; q++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t k = p->begin[q]; k < p->begin[q + 1]; k++) {
            const uint32_t i = p->order[k];
            if (best == UINT32_MAX ||
                (pos ? last ? pos[i] >= pos[best] : pos[i] < pos[best] : last))
                best = i;
        }
        p->pooled[q] = best;
    }
}

enum gguf_status gg_batch_sort(struct gg_batch_plan *p,
                               const struct gguf_batch *b,
                               const struct gg_cells *cells, uint32_t most,
                               struct gguf_error *err)
{
    p->batch = b;
    p->n_out = 0;
    p->order = p->words;
    p->out_at = p->order + b->n;
    p->begin = p->out_at + b->n;
    p->pooled = p->begin + p->n_seq + 1;
    memset(p->begin, 0, ((size_t)p->n_seq + 1) * sizeof *p->begin);
    for (size_t i = 0; i < b->n; i++)
        p->begin[seq_of(b, i) + 1]++;
    for (uint32_t q = 0; q < p->n_seq; q++) {
        GG_TRY(check_room(b, cells, q, p->begin[q + 1], most, err));
        p->begin[q + 1] += p->begin[q];
    }
    /* begin[q] moves to the end of q, which is the begin of the next */
    for (size_t i = 0; i < b->n; i++) {
        bool want = b->want ? b->want[i] : i + 1 == b->n;
        p->order[p->begin[seq_of(b, i)]++] = (uint32_t)i;
        p->out_at[i] = want ? p->n_out++ : UINT32_MAX;
    }
    memmove(p->begin + 1, p->begin, p->n_seq * sizeof *p->begin);
    p->begin[0] = 0;
    if (p->pools == GGUF_POOLING_CLS || p->pools == GGUF_POOLING_LAST)
        choose_pooled(p);
    return GGUF_OK;
}
