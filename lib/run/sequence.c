/* SPDX-License-Identifier: MIT */
/* sequence.c - count, copy, remove and clear tokens of sequences
 *
 * A call is refused before anything changes if a state, or a layer with a
 * window, has no more of the past than it needs to continue. */
#include "config.h"
#include "run/session_int.h"

#include <inttypes.h>

uint32_t gguf_session_n_tokens(const struct gguf_session *s, uint32_t seq)
{
    return seq < s->n_seq ? s->cells.seq[seq].n_used : 0;
}

int32_t gguf_session_next_pos(const struct gguf_session *s, uint32_t seq)
{
    return seq < s->n_seq ? s->cells.seq[seq].next_pos : 0;
}

static enum gguf_status check_seq(const struct gguf_session *s, uint32_t seq,
                                  struct gguf_error *err)
{
    return seq < s->n_seq
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                              "sequence %" PRIu32 ": the session has %" PRIu32,
                              seq, s->n_seq);
}

/* ---- tokens in and out of a range ---- */

/* Tokens of a sequence in [begin, end), and all others. */
struct parts {
    uint32_t n_in, n_out;
    int32_t last_in, last_out; /* highest positions; -1: none */
    /* highest positions that windows lost; -1: none */
    int32_t lost_in, lost_out;
};

static struct parts count_parts(const struct gguf_session *s, uint32_t seq,
                                int32_t begin, int32_t end)
{
    const struct gg_cells *c = &s->cells, *w = s->table[GG_ATTN_WINDOW];
    const struct gg_run_stream *st = gg_cells_get_stream(c, seq);
    const int32_t lost = w ? w->seq[seq].lost : -1;
    struct parts p = { 0, 0, -1, -1, -1, -1 };
    for (uint32_t i = 0; i < st->end; i++) {
        const int32_t pos = st->pos[i];
        if (!gg_cells_is_owner(c, seq, i))
            continue;
        const bool in = gg_cells_in_range(pos, begin, end);
        int32_t *last = in ? &p.last_in : &p.last_out,
                *gone = in ? &p.lost_in : &p.lost_out;
        *(in ? &p.n_in : &p.n_out) += 1;
        *last = GG_MAX(*last, pos);
        if (pos <= lost)
            *gone = GG_MAX(*gone, pos);
    }
    return p;
}

static bool has_states(const struct gguf_session *s)
{
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind && s->memory[i].kept &&
            s->memory[i].kind->by_seq)
            return true;
    return false;
}

/* A state depends on all tokens of a sequence: they are copied or removed
 * together. */
static enum gguf_status check_states(const struct gguf_session *s,
                                     uint32_t seq, const struct parts *p,
                                     const char *what, struct gguf_error *err)
{
    if (!p->n_in || !p->n_out || !has_states(s))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "sequence %" PRIu32 ": a state cannot %s some of its "
                        "tokens",
                        seq, what);
}

/* ---- removing ---- */

/* Remove a range from a sequence in one table. Cells without an owner are
 * cleared first; adjacent ones together. */
static enum gguf_status remove_cells(struct gguf_session *s,
                                     struct gg_cells *c, uint32_t seq,
                                     int32_t begin, int32_t end,
                                     struct gguf_error *err)
{
    const struct gg_run_stream *st = gg_cells_get_stream(c, seq);
    for (uint32_t i = 0, n; i < st->end; i += n + 1) {
        for (n = 0; i + n < st->end &&
                    gg_cells_in_range(st->pos[i + n], begin, end) &&
                    gg_cells_is_sole_owner(c, seq, i + n);)
            n++;
        GG_TRY(gg_session_zero_rows(s, c, gg_cells_row(c, seq, i), n, err));
    }
    gg_cells_remove(c, seq, begin, end);
    return GGUF_OK;
}

static enum gguf_status remove_range(struct gguf_session *s, uint32_t seq,
                                     int32_t begin, int32_t end,
                                     const struct parts *p,
                                     struct gguf_error *err)
{
    struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    if (!p->n_out && has_states(s))
        GG_TRY(gg_session_zero_rows(s, NULL, seq, 1, err));
    if (w) {
        GG_TRY(remove_cells(s, w, seq, begin, end, err));
        w->seq[seq].lost = p->lost_out;
    }
    return remove_cells(s, &s->cells, seq, begin, end, err);
}

static enum gguf_status forget_encoded(struct gguf_session *s, uint32_t seq,
                                       struct gguf_error *err)
{
    return gg_model_encodes_first(s->model)
               ? remove_cells(s, &s->encoded, seq, 0, -1, err)
               : GGUF_OK;
}

enum gguf_status gg_session_clear_sequence(struct gguf_session *s,
                                           uint32_t seq,
                                           struct gguf_error *err)
{
    const struct parts none = { 0, 0, -1, -1, -1, -1 };
    GG_TRY(remove_range(s, seq, 0, -1, &none, err));
    return forget_encoded(s, seq, err);
}

enum gguf_status gguf_session_remove_tokens(struct gguf_session *s,
                                            uint32_t seq, int32_t begin,
                                            int32_t end,
                                            struct gguf_error *err)
{
    if (seq >= s->n_seq)
        return GGUF_OK;
    const struct parts p = count_parts(s, seq, begin, end);
    if (!p.n_in)
        return GGUF_OK;
    GG_TRY(check_states(s, seq, &p, "forget", err));
    GG_TRY(gg_session_check_lost(s, seq, p.last_out + 1, p.lost_out, err));
    return remove_range(s, seq, begin, end, &p, err);
}

enum gguf_status gguf_session_remove_others(struct gguf_session *s,
                                            uint32_t seq,
                                            struct gguf_error *err)
{
    GG_TRY(check_seq(s, seq, err));
    for (uint32_t q = 0; q < s->n_seq; q++)
        if (q != seq)
            GG_TRY(gg_session_clear_sequence(s, q, err));
    return GGUF_OK;
}

enum gguf_status gguf_session_clear(struct gguf_session *s,
                                    struct gguf_error *err)
{
    for (uint32_t q = 0; q < s->n_seq; q++)
        GG_TRY(gg_session_clear_sequence(s, q, err));
    s->n_out = 0;
    gg_embed_clear(&s->embed);
    s->out_encoded = false;
    return GGUF_OK;
}

/* ---- copying ---- */

/* Add an owner to the shared cells of a range. */
static void share_cells(struct gg_cells *c, uint32_t from, uint32_t to,
                        int32_t begin, int32_t end)
{
    const struct gg_run_stream *st = &c->stream[0];
    for (uint32_t i = 0; i < st->end; i++)
        if (gg_cells_is_owner(c, from, i) &&
            gg_cells_in_range(st->pos[i], begin, end))
            gg_cells_add_owner(c, to, i);
}

/* Cell of the first token of a copy to an empty stream: in a table of windows
 * as far from a multiple of GG_SESSION_STEP as the original. */
static uint32_t first_cell_of_copy(const struct gguf_session *s,
                                   const struct gg_cells *c, uint32_t from)
{
    const struct gg_run_stream *st = gg_cells_get_stream(c, from);
    uint32_t i = 0;
    while (c == s->table[GG_ATTN_WINDOW] && i < st->end && st->pos[i] < 0)
        i++;
    return i % GG_SESSION_STEP;
}

/* Copy a range to new cells of another sequence. */
static enum gguf_status copy_cells(struct gguf_session *s, struct gg_cells *c,
                                   uint32_t from, uint32_t to, int32_t begin,
                                   int32_t end, struct gguf_error *err)
{
    const struct gg_run_stream *a = gg_cells_get_stream(c, from);
    struct gg_run_stream *b = gg_cells_get_stream(c, to);
    GG_TRY(gg_session_defrag_stream(s, c, to, err));
    if (!b->n_used)
        b->end = first_cell_of_copy(s, c, from);
    for (uint32_t i = 0, n; i < a->end; i += n + 1) {
        for (n = 0;
             i + n < a->end && gg_cells_in_range(a->pos[i + n], begin, end);)
            n++;
        if (!n)
            continue;
        GG_TRY(gg_session_copy_rows(s, c, gg_cells_row(c, from, i),
                                    gg_cells_row(c, to, b->end), n, err));
        for (uint32_t k = 0; k < n; k++)
            (void)gg_cells_append(c, to, a->pos[i + k]);
    }
    gg_cells_recount(c, to);
    return GGUF_OK;
}

static enum gguf_status copy_range(struct gguf_session *s, struct gg_cells *c,
                                   uint32_t from, uint32_t to, int32_t begin,
                                   int32_t end, struct gguf_error *err)
{
    if (!c->n_words)
        return copy_cells(s, c, from, to, begin, end, err);
    share_cells(c, from, to, begin, end);
    return GGUF_OK;
}

static uint32_t count_tokens(const struct gg_cells *c, uint32_t seq,
                             int32_t begin, int32_t end)
{
    const struct gg_run_stream *st = gg_cells_get_stream(c, seq);
    uint32_t n = 0;
    for (uint32_t i = 0; i < st->end; i++)
        n += gg_cells_is_owner(c, seq, i) &&
             gg_cells_in_range(st->pos[i], begin, end);
    return n;
}

/* Number of cells that the stream of a copy lacks, if its tokens outside of
 * the range stay. */
static uint32_t count_missing_cells(const struct gg_cells *c, uint32_t from,
                                    uint32_t to, int32_t begin, int32_t end,
                                    uint32_t skip)
{
    if (!c || c->n_words)
        return 0; /* shared cells: none is taken */
    const uint32_t n = count_tokens(c, from, begin, end),
                   left = count_tokens(c, to, 0, -1) -
                          count_tokens(c, to, begin, end),
                   most = c->n_cells - skip;
    return left && n + left > most ? n + left - most : 0;
}

static enum gguf_status check_copy_room(const struct gguf_session *s,
                                        uint32_t from, uint32_t to,
                                        int32_t begin, int32_t end,
                                        struct gguf_error *err)
{
    const uint32_t n = count_missing_cells(&s->cells, from, to, begin, end, 0);
    return !n ? GGUF_OK
              : gg_error_set(err, GGUF_E_FULL, GGUF_NO_OFFSET,
                             "sequence %" PRIu32 " gets tokens of sequence "
                             "%" PRIu32 ", %" PRIu32 " more than there is "
                             "room for in %" PRIu32,
                             to, from, n, s->n_ctx);
}

/* If a copy has too many tokens for the cells of windows, leave out those that
 * no later token can see. Returns the first position that is copied. */
static int32_t make_room(struct gguf_session *s, uint32_t from, uint32_t to,
                         int32_t begin, int32_t end, int32_t next)
{
    struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    if (!count_missing_cells(w, from, to, begin, end, GG_SESSION_STEP))
        return begin;
    const int32_t floor = gg_session_first_visible(s, next);
    gg_session_drop_passed(s, to, floor);
    w->seq[to].lost = GG_MAX(w->seq[to].lost, floor - 1);
    return GG_MAX(begin, floor);
}

/* Check that the copied tokens and those that stay can be in one sequence. */
static enum gguf_status check_copy(const struct gguf_session *s,
                                   const struct parts *a, uint32_t from,
                                   const struct parts *b, uint32_t to,
                                   struct gguf_error *err)
{
    GG_TRY(check_states(s, from, a, "copy", err));
    if (a->n_in && b->n_out &&
        (has_states(s) || gg_model_encodes_first(s->model)))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 " has %" PRIu32
                            " tokens that stay: those of another do not "
                            "go with them",
                            to, b->n_out);
    const int32_t last = GG_MAX(a->last_in, b->last_out),
                  lost = GG_MAX(a->lost_in, b->lost_out);
    GG_TRY(check_states(s, to, b, "forget", err));
    return gg_session_check_lost(s, to, last + 1, lost, err);
}

enum gguf_status gguf_session_copy_tokens(struct gguf_session *s,
                                          uint32_t from, uint32_t to,
                                          int32_t begin, int32_t end,
                                          struct gguf_error *err)
{
    GG_TRY(check_seq(s, from, err));
    GG_TRY(check_seq(s, to, err));
    const struct parts a = count_parts(s, from, begin, end),
                       b = count_parts(s, to, begin, end);
    if (from == to)
        return GGUF_OK;
    GG_TRY(check_copy(s, &a, from, &b, to, err));
    GG_TRY(check_copy_room(s, from, to, begin, end, err));
    if (b.n_in)
        GG_TRY(remove_range(s, to, begin, end, &b, err));
    if (s->table[GG_ATTN_WINDOW]) {
        struct gg_cells *w = s->table[GG_ATTN_WINDOW];
        const int32_t next = GG_MAX(a.last_in, b.last_out) + 1;
        w->seq[to].lost = GG_MAX(a.lost_in, b.lost_out);
        const int32_t first = make_room(s, from, to, begin, end, next);
        GG_TRY(copy_range(s, w, from, to, first, end, err));
    }
    GG_TRY(copy_range(s, &s->cells, from, to, begin, end, err));
    if (a.n_in && has_states(s))
        GG_TRY(gg_session_copy_rows(s, NULL, from, to, 1, err));
    if (!a.n_in || !gg_model_encodes_first(s->model))
        return GGUF_OK;
    GG_TRY(forget_encoded(s, to, err));
    return copy_range(s, &s->encoded, from, to, 0, -1, err);
}
