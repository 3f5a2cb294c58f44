/* decode.c - a batch through the model
 *
 * The batch is sorted by sequence and cut into passes of at most n_ubatch
 * tokens: whole sequences side by side where they are neighbours and have
 * equally many tokens, else a part of one.
 */
#include "config.h"
#include "run/session.h"

#include "base/ckd.h"
#include "base/mem.h"

#include <string.h>

/* Rows of the cache that a pass reads are a multiple of this, so that a
 * sequence that grows token by token does not get a new graph each time. */
enum { KV_STEP = 32 };

/* The batch by sequence. */
struct plan {
    const struct gguf_batch *batch;
    uint32_t *order;   /* [n] indices into the batch, sequence by sequence */
    uint32_t *begin;   /* [n_seq + 1] where each sequence begins in order */
    uint32_t *out_at;  /* [n] place among the outputs, or UINT32_MAX */
    uint32_t n_out;
    bool whole;        /* nothing is kept: a sequence is what the batch has */
    uint32_t least;    /* columns of a product: n_wide, or 1 */
};

static uint32_t seq_of(const struct gguf_batch *b, size_t i)
{
    return b->seq ? (uint32_t)b->seq[i] : 0;
}

/* ---- checks and order ---- */

static enum gguf_status check_batch(const struct gguf_session *s,
                                    const struct gguf_batch *b,
                                    struct gguf_error *err)
{
    if (!b || !b->n || b->n > INT32_MAX || !b->token)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "a batch must have 1 to 2^31 - 1 tokens");
    for (size_t i = 0; i < b->n; i++) {
        if (b->token[i] < 0 || (uint32_t)b->token[i] >= s->model->hp.n_vocab)
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "token %zu of the batch is %" PRId32
                           ", the model has %" PRIu32,
                           i, b->token[i], s->model->hp.n_vocab);
        if (seq_of(b, i) >= s->n_seq)
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "token %zu is of sequence %" PRId32
                           ", the session has %" PRIu32,
                           i, b->seq[i], s->n_seq);
        if (b->pos && (b->pos[i] < 0 || b->pos[i] == INT32_MAX))
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "token %zu is at position %" PRId32, i, b->pos[i]);
    }
    return GGUF_OK;
}

static enum gguf_status sort_batch(const struct gguf_session *s,
                                   struct plan *p, struct gguf_error *err)
{
    const struct gguf_batch *b = p->batch;
    /* of one that keeps nothing all is computed at once */
    const uint32_t most = p->whole ? GG_MIN(s->n_ctx, s->n_ubatch) : s->n_ctx;
    for (size_t i = 0; i < b->n; i++)
        p->begin[seq_of(b, i) + 1]++;
    for (uint32_t q = 0; q < s->n_seq; q++) {
        const struct gg_stream *st = &s->cells.stream[q];
        const uint32_t n_free = p->whole ? most : most - st->n_used;
        const int32_t next = p->whole ? 0 : st->next_pos;
        if (p->begin[q + 1] > n_free)
            return gg_fail(err, GGUF_E_FULL, GGUF_NO_OFFSET,
                           "sequence %" PRIu32 " gets %" PRIu32
                           " tokens, has room for %" PRIu32 " of %" PRIu32,
                           q, p->begin[q + 1], n_free, most);
        if (!b->pos && p->begin[q + 1] > INT32_MAX - (uint32_t)next)
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "sequence %" PRIu32 " gets %" PRIu32
                           " tokens at position %" PRId32
                           ", the last there is is %" PRId32,
                           q, p->begin[q + 1], next, INT32_MAX - 1);
        p->begin[q + 1] += p->begin[q];
    }
    /* begin[q] moves to the end of q, which is the begin of the next */
    for (size_t i = 0; i < b->n; i++) {
        bool want = b->want ? b->want[i] : i + 1 == b->n;
        p->order[p->begin[seq_of(b, i)]++] = (uint32_t)i;
        p->out_at[i] = want ? p->n_out++ : UINT32_MAX;
    }
    memmove(p->begin + 1, p->begin, s->n_seq * sizeof *p->begin);
    p->begin[0] = 0;
    return GGUF_OK;
}

enum gguf_status gg_session_room(struct gguf_session *s, size_t n,
                                 struct gguf_error *err)
{
    const size_t n_words = 2 * n + s->n_seq + 1;
    if (n_words <= s->words_cap)
        return GGUF_OK;
    gg_free(s->allocator, s->words);
    s->words_cap = 0;
    s->words = gg_alloc(s->allocator, n_words * sizeof *s->words);
    if (!s->words)
        return gg_fail_nomem(err, n_words * sizeof *s->words);
    s->words_cap = n_words;
    return GGUF_OK;
}

enum gguf_status gg_session_out_room(struct gguf_session *s, size_t n,
                                     struct gguf_error *err)
{
    size_t size;
    if (n <= s->out_cap)
        return GGUF_OK;
    if (gg_ckd_array(&size, n, s->model->hp.n_embd * sizeof *s->out))
        return gg_fail_nomem(err, SIZE_MAX);
    gg_free(s->allocator, s->out);
    s->n_out = s->out_cap = 0;
    s->out = gg_alloc(s->allocator, size);
    if (!s->out)
        return gg_fail_nomem(err, size);
    s->out_cap = n;
    return GGUF_OK;
}

/* Whether all sequences of the pass see the same. */
static bool masks_equal(const struct gguf_session *s, const struct gg_shape *h)
{
    const struct gg_stream *a = &s->cells.stream[h->first_stream];
    for (int64_t q = 1; q < h->n_seq; q++)
        if (memcmp(s->pos, s->pos + q * h->n_tok,
                   (size_t)h->n_tok * sizeof *s->pos) != 0 ||
            memcmp(a->pos, a[q].pos, (size_t)h->n_kv * sizeof *a->pos) != 0)
            return false;
    return true;
}

/* ---- a pass ---- */

/* The last token again. */
static void repeat(struct gguf_session *s, size_t k)
{
    s->tok[k] = s->tok[k - 1];
    s->pos[k] = s->pos[k - 1];
    s->row[k] = s->row[k - 1];
}

/* Take cells for n_tok tokens of each of n_seq sequences from seq on, begin
 * tokens into theirs, and fill the inputs. How many outputs there are. */
static int64_t fill_inputs(struct gguf_session *s, const struct plan *p,
                           uint32_t seq, uint32_t begin, uint32_t n_tok,
                           struct gg_shape *h)
{
    const struct gguf_batch *b = p->batch;
    size_t k = 0;
    uint32_t end = 0;
    h->first_stream = seq;
    h->n_out = 0;
    for (uint32_t q = seq; q < seq + (uint32_t)h->n_seq; q++) {
        for (uint32_t t = 0; t < (uint32_t)h->n_tok; t++, k++) {
            if (t >= n_tok) {
                repeat(s, k);
                continue;
            }
            uint32_t i = p->order[p->begin[q] + begin + t];
            s->tok[k] = b->token[i];
            s->pos[k] = b->pos ? b->pos[i] : s->cells.stream[q].next_pos;
            s->row[k] = (int32_t)(q * s->n_ctx +
                                  gg_cells_take(&s->cells, q, s->pos[k]));
            if (p->out_at[i] != UINT32_MAX)
                s->out_row[h->n_out++] = (int32_t)k;
        }
        end = GG_MAX(end, s->cells.stream[q].end);
    }
    h->n_kv = GG_MIN((end + KV_STEP - 1) / KV_STEP * KV_STEP, s->n_ctx);
    h->n_mask = masks_equal(s, h) ? 1 : h->n_seq;
    const int64_t n_out = h->n_out;
    while (h->n_out && h->n_out < p->least) {
        s->out_row[h->n_out] = s->out_row[h->n_out - 1];
        h->n_out++;
    }
    return n_out;
}

/* The states of a pass to their places among the outputs. */
static enum gguf_status get_outputs(struct gguf_session *s,
                                    const struct plan *p, uint32_t seq,
                                    uint32_t begin, int64_t n_out,
                                    struct gguf_error *err)
{
    const struct gg_shape *h = &s->shape;
    size_t n_embd = s->model->hp.n_embd, row = n_embd * sizeof *s->out;
    for (int64_t k = 0; k < n_out; k++) {
        int64_t at = s->out_row[k];
        uint32_t q = seq + (uint32_t)(at / h->n_tok);
        uint32_t t = begin + (uint32_t)(at % h->n_tok);
        uint32_t to = p->out_at[p->order[p->begin[q] + t]];
        GG_TRY(gguf_tensor_get(s->states, s->out + to * n_embd,
                               (uint64_t)k * row, row, err));
    }
    return GGUF_OK;
}

static enum gguf_status run_pass(struct gguf_session *s, const struct plan *p,
                                 uint32_t seq, uint32_t n_seq, uint32_t begin,
                                 uint32_t n_tok, struct gguf_error *err)
{
    /* of several sequences there are as many tokens as there must be */
    struct gg_shape h = { .n_tok = n_seq > 1 ? n_tok : GG_MAX(n_tok, p->least),
                          .n_seq = n_seq, .n_real = n_tok };
    const int64_t n_out = fill_inputs(s, p, seq, begin, n_tok, &h);
    if (p->whole && !n_out)
        return GGUF_OK;
    const struct gg_ubatch u = { &h, &s->cells, s->pos, s->row };
    GG_TRY(gg_session_graph(s, &h, err));
    GG_TRY(gg_input_set(s->pass.tokens, s->tok, err));
    GG_TRY(gg_input_set(s->pass.pos, s->pos, err));
    GG_TRY(gg_input_set(s->pass.out_rows, s->out_row, err));
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind)
            GG_TRY(s->memory[i].kind->fill(&s->memory[i], &u, err));
    GG_TRY(gg_session_compute(s, s->sched, s->pass.graph, err));
    return get_outputs(s, p, seq, begin, n_out, err);
}

static enum gguf_status run_passes(struct gguf_session *s,
                                   const struct plan *p,
                                   struct gguf_error *err)
{
    for (uint32_t q = 0; q < s->n_seq;) {
        uint32_t n = p->begin[q + 1] - p->begin[q], side = 1;
        /* neighbours with equally many tokens go side by side */
        while (n && q + side < s->n_seq &&
               (side + 1) * (uint64_t)n <= s->n_ubatch &&
               p->begin[q + side + 1] - p->begin[q + side] == n)
            side++;
        if (side * n < p->least)
            side = 1;
        for (uint32_t at = 0; at < n; at += s->n_ubatch)
            GG_TRY(run_pass(s, p, q, side, at, GG_MIN(n - at, s->n_ubatch),
                            err));
        q += side;
    }
    return GGUF_OK;
}

enum gguf_status gguf_session_decode(struct gguf_session *s,
                                     const struct gguf_batch *batch,
                                     struct gguf_error *err)
{
    GG_TRY(check_batch(s, batch, err));
    struct plan p = { .batch = batch };
    p.whole = gg_model_is_whole(s->model);
    p.least = batch->n < s->n_wide ? 1 : s->n_wide;
    const enum gguf_status room = gg_session_room(s, batch->n, err);
    if (room != GGUF_OK) {
        s->n_out = 0;
        return room;
    }
    p.order = s->words;
    p.out_at = p.order + batch->n;
    p.begin = p.out_at + batch->n;
    memset(p.begin, 0, ((size_t)s->n_seq + 1) * sizeof *p.begin);
    GG_TRY(sort_batch(s, &p, err));
    GG_TRY(gg_session_out_room(s, p.n_out, err));
    s->n_out = 0;
    for (uint32_t q = 0; p.whole && q < s->n_seq; q++)
        if (p.begin[q + 1] > p.begin[q])
            gg_cells_remove(&s->cells, q, 0, -1);
    GG_TRY(run_passes(s, &p, err));
    s->n_out = p.n_out;
    s->wide = batch->n >= s->n_wide;
    return GGUF_OK;
}
