/* SPDX-License-Identifier: MIT */
/* cell_alloc.c - make room for tokens: drop those that windows have passed,
 * and defragment
 *
 * Layers with a window have a table of their own, with cells for their windows
 * and a micro-batch. When it is full, tokens that no later one can see are
 * dropped, and the others move down by a multiple of GG_SESSION_STEP cells:
 * sums then have the same parts as if everything were kept. */
#include "config.h"
#include "run/session_int.h"

#include <inttypes.h>

uint32_t gg_session_window_cells(const struct gguf_session *s,
                                 bool full_windows)
{
    const struct gg_hparams *hp = &s->model->hp;
    const struct gg_hparams_attn_range *r = &hp->reach[GG_ATTN_WINDOW];
    if (full_windows || !hp->has_windows ||
        gg_model_needs_whole_sequence(s->model) ||
        gg_model_reads_positions(s->model) ||
        gg_model_n_position_buckets(s->model))
        return 0;
    const uint64_t window =
        r->chunk ? (uint64_t)r->chunk : (uint64_t)r->before + 1;
    const uint64_t n =
        window * (s->shared ? s->n_seq : 1) + s->n_ubatch + GG_SESSION_STEP;
    return n < s->n_ctx ? (uint32_t)n : 0;
}

/* ---- rows ---- */

enum gguf_status gg_session_zero_rows(struct gguf_session *s,
                                      const struct gg_cells *table,
                                      uint32_t row, uint32_t n,
                                      struct gguf_error *err)
{
    GG_TRY(gg_session_wait(s, err));
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind && s->memory[i].kept)
            GG_TRY(gg_memory_zero_rows(&s->memory[i], table, row, n, err));
    return GGUF_OK;
}

enum gguf_status gg_session_copy_rows(struct gguf_session *s,
                                      const struct gg_cells *table,
                                      uint32_t from, uint32_t to, uint32_t n,
                                      struct gguf_error *err)
{
    GG_TRY(gg_session_wait(s, err));
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind && s->memory[i].kept)
            GG_TRY(
                gg_memory_copy_rows(&s->memory[i], table, from, to, n, err));
    return GGUF_OK;
}

/* ---- holes ---- */

struct closing {
    struct gguf_session *s;
    const struct gg_cells *table;
    enum gguf_status status; /* first failure of a copy */
    struct gguf_error *err;
};

static void move_rows(void *user, uint32_t stream, uint32_t from, uint32_t to,
                      uint32_t n)
{
    struct closing *c = user;
    const uint32_t first = stream * c->table->n_cells;
    if (c->status == GGUF_OK)
        c->status = gg_session_copy_rows(c->s, c->table, first + from,
                                         first + to, n, c->err);
}

/* Cell of the first token of a stream after its holes are closed. */
static uint32_t first_cell_after_defrag(const struct gguf_session *s,
                                        const struct gg_cells *table,
                                        uint32_t stream)
{
    const struct gg_run_stream *st = &table->stream[stream];
    uint32_t i = 0;
    while (i < st->end && st->pos[i] < 0)
        i++;
    return table == s->table[GG_ATTN_WINDOW] ? i % GG_SESSION_STEP : 0;
}

enum gguf_status gg_session_defrag_stream(struct gguf_session *s,
                                          struct gg_cells *table,
                                          uint32_t stream,
                                          struct gguf_error *err)
{
    struct closing c = { s, table, GGUF_OK, err };
    const uint32_t first = first_cell_after_defrag(s, table, stream),
                   row = stream * table->n_cells;
    const uint32_t before =
        gg_cells_defrag(table, stream, first, move_rows, &c);
    const uint32_t end = table->stream[stream].end;
    GG_TRY(c.status);
    GG_TRY(gg_session_zero_rows(s, table, row, first, err));
    return gg_session_zero_rows(s, table, row + end, before - end, err);
}

/* ---- windows ---- */

int32_t gg_session_first_visible(const struct gguf_session *s, int32_t pos)
{
    return gg_ubatch_first_visible(pos, &s->model->hp.reach[GG_ATTN_WINDOW]);
}

enum gguf_status gg_session_check_lost(const struct gguf_session *s,
                                       uint32_t seq, int32_t next,
                                       int32_t lost, struct gguf_error *err)
{
    if (!s->table[GG_ATTN_WINDOW] || gg_session_first_visible(s, next) > lost)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
        "sequence %" PRIu32 ": a token at position %" PRId32
        " sees those from %" PRId32
        " on, and layers with a sliding window have forgotten those up to "
        "%" PRId32 " (full_windows keeps all)",
        seq, next, gg_session_first_visible(s, next), lost);
}

enum gguf_status gg_session_check_windows(const struct gguf_session *s,
                                          struct gguf_error *err)
{
    const struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    const struct gg_batch_plan *p = &s->plan;
    if (!w || !p->batch->pos)
        return GGUF_OK;
    for (uint32_t q = 0; q < s->n_seq; q++)
        s->first_visible[q] = s->cells.seq[q].next_pos;
    for (uint32_t i = 0; i < p->n_entry; i++) {
        const struct gg_batch_entry *e = gg_batch_entry(p, i);
        const int32_t pos = p->batch->pos[e->tok];
        for (uint32_t k = 0; k < e->n_set; k++) {
            const uint32_t q = p->members[e->set + k];
            GG_TRY(gg_session_check_lost(s, q, pos, w->seq[q].lost, err));
            if (pos < s->first_visible[q])
                return gg_error_set(
                    err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                    "token %" PRIu32 " is at position %" PRId32
                    ", sequence %" PRIu32 " has come to %" PRId32
                    ": windows need positions that grow (full_windows does "
                    "not)",
                    e->tok, pos, q, s->first_visible[q] - 1);
            s->first_visible[q] = pos + 1;
        }
    }
    return GGUF_OK;
}

/* Find the first position that tokens of the micro-batch, and later tokens of
 * other sequences, see. */
static void find_floor(struct gguf_session *s)
{
    const struct gg_ubatch_shape *h = &s->ubatch.shape;
    const struct gg_batch_plan *p = &s->plan;
    for (uint32_t q = 0; q < s->n_seq; q++)
        s->first_visible[q] = s->cells.seq[q].next_pos;
    for (int64_t g = 0; p->batch->pos && g < h->n_seq; g++)
        for (int64_t i = h->n_real; i-- > 0;) {
            const struct gg_batch_entry *e =
                gg_ubatch_entry(&s->ubatch, p, g, i);
            for (uint32_t k = 0; k < e->n_set; k++)
                s->first_visible[p->members[e->set + k]] =
                    p->batch->pos[e->tok];
        }
    for (uint32_t q = 0; q < s->n_seq; q++)
        s->first_visible[q] = gg_session_first_visible(s, s->first_visible[q]);
}

void gg_session_drop_passed(struct gguf_session *s, uint32_t seq,
                            int32_t floor)
{
    struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    const struct gg_run_stream *st = gg_cells_get_stream(w, seq);
    struct gg_run_seq *q = &w->seq[seq];
    for (uint32_t i = 0; i < st->end; i++)
        if (gg_cells_is_owner(w, seq, i) && st->pos[i] < floor) {
            q->lost = GG_MAX(q->lost, st->pos[i]);
            q->n_used--;
            gg_cells_remove_owner(w, seq, i);
        }
}

/* ---- room ---- */

static bool fits_stream(const struct gg_cells *c, uint32_t stream, uint32_t n)
{
    return n <= c->n_cells - c->stream[stream].end;
}

static enum gguf_status make_room(struct gguf_session *s, struct gg_cells *c,
                                  uint32_t stream, uint32_t n,
                                  struct gguf_error *err)
{
    const struct gg_run_stream *st = &c->stream[stream];
    const bool windows = c == s->table[GG_ATTN_WINDOW];
    const uint32_t holes =
        st->end - st->n_used - first_cell_after_defrag(s, c, stream);
    const bool pays = gg_ubatch_n_cells_read(st->end - holes + n, c->n_cells) <
                      gg_ubatch_n_cells_read(st->end + n, c->n_cells);
    if (fits_stream(c, stream, n) && !(holes && pays))
        return GGUF_OK;
    if (windows && !fits_stream(c, stream, n)) {
        find_floor(s);
        for (uint32_t q = 0; q < s->n_seq; q++)
            if (gg_cells_stream_index(c, q) == stream)
                gg_session_drop_passed(s, q, s->first_visible[q]);
    }
    GG_TRY(gg_session_defrag_stream(s, c, stream, err));
    return fits_stream(c, stream, n)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_FULL, GGUF_NO_OFFSET,
                              "layers that see a window keep %" PRIu32
                              " tokens, %" PRIu32 " more are too many for "
                              "%" PRIu32 " cells",
                              st->n_used, n, c->n_cells);
}

enum gguf_status gg_session_make_room(struct gguf_session *s,
                                      struct gguf_error *err)
{
    const struct gg_ubatch *u = &s->ubatch;
    const struct gg_ubatch_shape *h = &u->shape;
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++) {
        struct gg_cells *c = u->table[b];
        const bool one = h->shared;
        for (int64_t g = 0; c && g < (one ? 1 : h->n_seq); g++)
            GG_TRY(make_room(s, c, one ? 0 : (uint32_t)(h->first_stream + g),
                             (uint32_t)(h->n_real * (one ? h->n_seq : 1)),
                             err));
    }
    return GGUF_OK;
}
