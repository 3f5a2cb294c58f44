/* SPDX-License-Identifier: MIT */
/* ubatch.c - divide a batch into micro-batches; positions and masks */
#include "config.h"
#include "run/ubatch.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* Step of the number of cells that a pass reads: a sequence that grows token
 * by token seldom needs a new graph. */
enum { KV_STEP = 32 };

enum gguf_status gg_ubatch_init(struct gg_ubatch *u, uint32_t most,
                                const struct gguf_allocator *a,
                                struct gguf_error *err)
{
    enum { LISTS = 5 + GG_N_ATTN_TYPES };
    *u = (struct gg_ubatch){ .allocator = a, .most = most, .least = 1 };
    u->tok = gg_mem_alloc_zero(a, most, LISTS * sizeof *u->tok);
    if (!u->tok)
        return gg_error_set_nomem(err, most * LISTS * sizeof *u->tok);
    u->pos = u->tok + most;
    u->seq = u->pos + most;
    u->type = u->seq + most;
    u->out_row = u->type + most;
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        u->row[b] = u->out_row + (size_t)(b + 1) * most;
    return GGUF_OK;
}

void gg_ubatch_fini(struct gg_ubatch *u)
{
    gg_mem_free(u->allocator, u->tok);
    u->tok = NULL;
}

/* ---- dividing a batch ---- */

void gg_ubatch_start(struct gg_ubatch *u,
                     struct gg_cells *const table[GG_N_ATTN_TYPES],
                     const struct gg_cells *encoded, uint32_t least,
                     bool encodes)
{
    memcpy(u->table, table, sizeof u->table);
    u->encoded = encoded;
    u->least = least;
    u->begin = 0;
    u->shape = (struct gg_ubatch_shape){ .encodes = encodes,
                                         .shared = table[0]->n_words > 0 };
}

/* Number of groups from q on that are computed side by side: neighbours with
 * equally many tokens. */
static uint32_t count_groups_beside(const struct gg_ubatch *u,
                                    const struct gg_batch_plan *p, uint32_t q)
{
    const uint32_t n = gg_batch_n_tok(p, q);
    uint32_t side = 1;
    while (q + side < p->n_group && (side + 1) * (uint64_t)n <= u->most &&
           gg_batch_n_tok(p, q + side) == n)
        side++;
    return side * n < u->least ? 1 : side;
}

/* Take the next groups that have tokens, or the next part of one. */
bool gg_ubatch_next(struct gg_ubatch *u, const struct gg_batch_plan *p)
{
    struct gg_ubatch_shape *h = &u->shape;
    uint32_t q = (uint32_t)h->first_stream;
    u->begin += (uint32_t)h->n_real;
    if (!h->n_seq || u->begin == gg_batch_n_tok(p, q)) {
        q += (uint32_t)h->n_seq;
        while (q < p->n_group && !gg_batch_n_tok(p, q))
            q++;
        if (q >= p->n_group)
            return false;
        u->begin = 0;
        h->first_stream = q;
        h->n_seq = count_groups_beside(u, p, q);
    }
    h->n_real = GG_MIN(gg_batch_n_tok(p, q) - u->begin, u->most);
    /* several groups have enough tokens already */
    h->n_tok = h->n_seq > 1 ? h->n_real : GG_MAX(h->n_real, (int64_t)u->least);
    return true;
}

/* ---- tokens of a micro-batch ---- */

/* Repeat the last token. */
static void repeat_last(struct gg_ubatch *u, size_t k)
{
    u->tok[k] = u->tok[k - 1];
    u->pos[k] = u->pos[k - 1];
    u->seq[k] = u->seq[k - 1];
    u->type[k] = u->type[k - 1];
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        u->row[b][k] = u->row[b][k - 1];
}

/* Take a cell of a table for a token of some sequences: the first takes it, the
 * others become owners. */
static int32_t take_cell(struct gg_cells *c, int32_t pos, const uint32_t *seq,
                         uint32_t n)
{
    const uint32_t cell = gg_cells_append(c, seq[0], pos);
    for (uint32_t i = 1; i < n; i++)
        gg_cells_add_owner(c, seq[i], cell);
    return (int32_t)gg_cells_row(c, seq[0], cell);
}

/* Make an entry of the plan token k. */
static void take_entry(struct gg_ubatch *u, const struct gg_batch_plan *p,
                       const struct gg_batch_entry *e, size_t k)
{
    const uint32_t *seq = p->members + e->set;
    u->tok[k] = p->batch->token[e->tok];
    u->pos[k] = p->batch->pos ? p->batch->pos[e->tok]
                              : u->table[0]->seq[seq[0]].next_pos;
    u->seq[k] = (int32_t)seq[0];
    u->type[k] = p->batch->type ? (int32_t)p->batch->type[e->tok] : 0;
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        if (u->table[b])
            u->row[b][k] = take_cell(u->table[b], u->pos[k], seq, e->n_set);
}

/* Do the cells of these streams have the same positions? */
static bool streams_equal(const struct gg_cells *c, int64_t first, int64_t n,
                          int64_t n_kv)
{
    const struct gg_run_stream *a = &c->stream[first];
    for (int64_t q = 1; q < n; q++)
        if (memcmp(a->pos, a[q].pos, (size_t)n_kv * sizeof *a->pos) != 0)
            return false;
    return true;
}

/* Do all groups see the same? */
static bool masks_equal(const struct gg_ubatch *u)
{
    const struct gg_ubatch_shape *h = &u->shape;
    if (h->shared) /* each token has a row of the mask */
        return true;
    for (int64_t q = 1; q < h->n_seq; q++)
        if (memcmp(u->pos, u->pos + q * h->n_tok,
                   (size_t)h->n_tok * sizeof *u->pos) != 0)
            return false;
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        if (u->table[b] &&
            !streams_equal(u->table[b], h->first_stream, h->n_seq, h->n_kv[b]))
            return false;
    return true;
}

int64_t gg_ubatch_n_cells_read(uint32_t n, uint32_t most)
{
    return GG_MIN((n + KV_STEP - 1) / KV_STEP * KV_STEP, most);
}

/* Cells of a table that are read; later tokens of each stream count. */
static int64_t count_cells_read(const struct gg_ubatch *u,
                                const struct gg_cells *c, uint32_t more)
{
    const struct gg_ubatch_shape *h = &u->shape;
    uint32_t end = 0;
    for (int64_t q = 0; c && q < h->n_seq; q++)
        end = GG_MAX(
            end, gg_cells_get_stream(c, (uint32_t)(h->first_stream + q))->end);
    return c ? gg_ubatch_n_cells_read(end + GG_MIN(more, c->n_cells - end),
                                      c->n_cells)
             : 0;
}

/* Tokens of each group that come after these. */
static uint32_t count_later_tokens(const struct gg_ubatch *u,
                                   const struct gg_batch_plan *p)
{
    const struct gg_ubatch_shape *h = &u->shape;
    return gg_batch_n_tok(p, (uint32_t)h->first_stream) - u->begin -
           (uint32_t)h->n_real;
}

/* Cells of encoded texts that are read. */
static int64_t count_encoded_cells(const struct gg_ubatch *u)
{
    const struct gg_ubatch_shape *h = &u->shape;
    uint32_t n = 0;
    if (!u->encoded || h->encodes)
        return 0;
    for (int64_t q = 0; q < h->n_seq; q++)
        n = GG_MAX(n, u->encoded->stream[h->first_stream + q].n_used);
    return gg_ubatch_n_cells_read(n, u->encoded->n_cells);
}

/* Highest position of the sequences. */
static int64_t highest_position(const struct gg_ubatch *u)
{
    const struct gg_ubatch_shape *h = &u->shape;
    int64_t n = 0;
    for (int64_t k = 0; k < h->n_seq * h->n_tok; k++)
        n = GG_MAX(n, (int64_t)u->pos[k] + 1);
    return (n + GG_PAST_STEP - 1) / GG_PAST_STEP * GG_PAST_STEP;
}

const struct gg_batch_entry *gg_ubatch_entry(const struct gg_ubatch *u,
                                             const struct gg_batch_plan *p,
                                             int64_t g, int64_t i)
{
    const uint32_t q = (uint32_t)(u->shape.first_stream + g);
    return gg_batch_entry(p, p->begin[q] + u->begin + (uint32_t)i);
}

void gg_ubatch_take_cells(struct gg_ubatch *u, const struct gg_batch_plan *p)
{
    struct gg_ubatch_shape *h = &u->shape;
    size_t k = 0;
    h->n_out = 0;
    for (int64_t s = 0; s < h->n_seq; s++) {
        for (int64_t t = 0; t < h->n_tok; t++, k++) {
            if (t >= h->n_real) {
                repeat_last(u, k);
                continue;
            }
            const struct gg_batch_entry *e = gg_ubatch_entry(u, p, s, t);
            take_entry(u, p, e, k);
            if (gg_batch_is_needed(p, (uint32_t)(e - p->entry)))
                u->out_row[h->n_out++] = (int32_t)k;
        }
    }
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        h->n_kv[b] = count_cells_read(
            u, u->table[b], u->reads_ahead ? count_later_tokens(u, p) : 0);
    h->n_mask = masks_equal(u) ? 1 : h->n_seq;
    h->n_cross = count_encoded_cells(u);
    h->n_past = u->counts_past ? highest_position(u) : 0;
    u->n_out = (uint32_t)h->n_out;
    while (h->n_out && h->n_out < u->least) {
        u->out_row[h->n_out] = u->out_row[h->n_out - 1];
        h->n_out++;
    }
}

const struct gg_batch_entry *gg_ubatch_output(const struct gg_ubatch *u,
                                              const struct gg_batch_plan *p,
                                              uint32_t k)
{
    const int64_t at = u->out_row[k], n = u->shape.n_tok;
    return gg_ubatch_entry(u, p, at / n, at % n);
}

/* ---- visibility ---- */

/* Range of positions that a token sees. */
struct span {
    int32_t first, last;
};

static struct span seen_from(int32_t pos,
                             const struct gg_hparams_attn_range *r)
{
    struct span s = { GG_MAX(pos - r->before, 0), pos > INT32_MAX - r->after
                                                      ? INT32_MAX
                                                      : pos + r->after };
    const int32_t in_chunk = r->chunk ? pos % r->chunk : 0;
    if (r->chunk) {
        s.first = GG_MAX(s.first, pos - in_chunk);
        s.last = s.last - pos > r->chunk - 1 - in_chunk
                     ? pos + (r->chunk - 1 - in_chunk)
                     : s.last;
    }
    return s;
}

int32_t gg_ubatch_first_visible(int32_t pos,
                                const struct gg_hparams_attn_range *r)
{
    return seen_from(pos, r).first;
}

/* Fill in the mask for cells of a sequence; free cells are never seen. */
static void mask_cells(const struct gg_cells *c, uint32_t seq, int32_t pos,
                       struct span span,
                       const struct gg_ubatch_visibility *sight, float *mask)
{
    const struct gg_run_stream *st = gg_cells_get_stream(c, seq);
    for (int64_t k = 0; k < sight->n_kv; k++)
        mask[k] = st->pos[k] < span.first || st->pos[k] > span.last ? -INFINITY
                  : sight->far ? (float)(st->pos[k] - pos)
                               : 0;
    for (int64_t k = 0; st->set && k < sight->n_kv; k++)
        if (!gg_cells_is_owner(c, seq, (uint32_t)k))
            mask[k] = -INFINITY;
}

/* Fill in the mask for tokens of the micro-batch, without repetitions. */
static void mask_beside(const struct gg_ubatch_shape *h, const int32_t *all,
                        int32_t pos, struct span span, bool far, float *mask)
{
    for (int64_t k = 0; k < h->n_tok; k++)
        mask[k] = k >= h->n_real || all[k] < span.first || all[k] > span.last
                      ? -INFINITY
                  : far ? -fabsf((float)(all[k] - pos))
                        : 0;
}

void gg_ubatch_fill_mask(const struct gg_ubatch *u, int64_t i,
                         const struct gg_ubatch_visibility *sight, float *mask)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const int64_t q = i / h->n_tok;
    const int32_t pos = u->pos[i];
    struct span span = seen_from(pos, &sight->reach);
    if (sight->causal || sight->kept)
        span.last = GG_MIN(span.last, pos);
    if (sight->kept)
        mask_cells(sight->kept, (uint32_t)u->seq[i], pos, span, sight, mask);
    else
        mask_beside(h, u->pos + q * h->n_tok, pos, span, sight->far, mask);
}

void gg_ubatch_fill_distances(const struct gg_ubatch *u, int64_t i,
                              const struct gg_ubatch_visibility *sight,
                              int32_t most, int32_t *far)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const int32_t *all =
        sight->kept
            ? gg_cells_get_stream(sight->kept, (uint32_t)u->seq[i])->pos
            : u->pos + i / h->n_tok * h->n_tok;
    for (int64_t k = 0; k < sight->n_kv; k++) {
        const int64_t d = (int64_t)all[k] - u->pos[i];
        far[k] = (int32_t)GG_MAX(-most, GG_MIN(d, most));
    }
}
