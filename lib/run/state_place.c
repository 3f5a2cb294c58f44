/* SPDX-License-Identifier: MIT */
/* state_place.c - find cells of a session for the tokens of a state
 *
 * Sums are made in the order of cells, in parts of GG_SESSION_STEP. So that a
 * restored sequence gives the same digits, its tokens get the cells that they
 * had; in a table of windows also cells some whole steps before. Only if these
 * do not fit, or belong to other sequences, tokens get other cells, in their
 * order. */
#include "config.h"
#include "run/state_int.h"

#include <inttypes.h>

static uint32_t dropped_steps(const struct gg_state_token *t)
{
    return t->cell - t->cell % GG_SESSION_STEP;
}

/* Can no later token of its sequences see this token? */
static bool is_passed(const struct gg_state_reader *r, unsigned from,
                      const struct gg_state_token *t)
{
    const struct gg_hparams_attn_range *reach =
        &r->s->model->hp.reach[GG_ATTN_WINDOW];
    uint32_t q = gg_state_next_seq(r, from, t, 0);
    for (; q != UINT32_MAX; q = gg_state_next_seq(r, from, t, q + 1))
        if (t->pos >= gg_ubatch_first_visible(r->of[q].next_pos, reach))
            return false;
    return true;
}

/* How the tokens of a part get cells: as they were, some steps before, or one
 * after the other. */
struct fit {
    unsigned from, which; /* table of the state, and index in to */
    uint32_t n_cells;
    bool windows, drops;
};

static bool needs_cell(const struct gg_state_reader *r, const struct fit *f,
                       const struct gg_state_token *t)
{
    return !f->drops || !is_passed(r, f->from, t);
}

static bool assign_cells(const struct gg_state_reader *r, const struct fit *f,
                         struct gg_state_token *tok, uint32_t n, bool moves,
                         bool closes)
{
    uint32_t shift = 0, next = 0;
    bool first = true;
    for (uint32_t i = 0; i < n; i++) {
        struct gg_state_token *t = &tok[i];
        t->to[f->which] = GG_STATE_DROPPED;
        if (!needs_cell(r, f, t))
            continue;
        if (first && f->windows && (moves || closes))
            shift = dropped_steps(t);
        if (first && closes)
            next = f->windows ? t->cell - shift : 0;
        first = false;
        t->to[f->which] = closes ? next++ : t->cell - shift;
        if (t->to[f->which] >= f->n_cells)
            return false;
    }
    return true;
}

static bool fit_part(const struct gg_state_reader *r, struct fit f,
                     struct gg_state_token *tok, uint32_t n)
{
    if (assign_cells(r, &f, tok, n, false, false) ||
        assign_cells(r, &f, tok, n, true, false))
        return true;
    f.drops = f.windows;
    return (f.drops && assign_cells(r, &f, tok, n, true, false)) ||
           assign_cells(r, &f, tok, n, true, true);
}

/* Does a sequence other than seq own the cell and, in a table of windows, can a
 * later token of it see the cell? */
static bool is_visible_to_others(const struct gg_state_reader *r,
                                 const struct gg_cells *c, uint32_t cell)
{
    const struct gguf_session *s = r->s;
    const int32_t pos = gg_cells_get_stream(c, r->seq)->pos[cell];
    for (uint32_t q = 0; q < s->n_seq; q++)
        if (q != r->seq && gg_cells_is_owner(c, q, cell) &&
            pos >= gg_session_first_visible(s, s->cells.seq[q].next_pos))
            return true;
    return false;
}

/* Number of cells in the sequence's stream that stay when it is cleared, since
 * other sequences own them. With drops, in a table of windows: only those that
 * others can see. */
static uint32_t count_others_cells(const struct gg_state_reader *r,
                                   const struct gg_cells *c, bool drops)
{
    const struct gg_run_stream *st = gg_cells_get_stream(c, r->seq);
    uint32_t n = 0;
    for (uint32_t i = 0; i < st->end; i++)
        n += st->pos[i] >= 0 && !gg_cells_is_sole_owner(c, r->seq, i) &&
             (!drops || is_visible_to_others(r, c, i));
    return n;
}

/* Place tokens after the cells of other sequences: numbers from 0, to which
 * the end of those is added later. */
static bool append_cells(const struct gg_state_reader *r, struct fit f,
                         uint32_t others, struct gg_state_token *tok,
                         uint32_t n)
{
    const uint32_t step = f.windows ? GG_SESSION_STEP : 0;
    uint32_t left = f.n_cells - others, k = 0;
    left = left > step ? left - step : 0;
    f.drops = f.windows && n > left;
    for (uint32_t i = 0; i < n; i++)
        tok[i].to[f.which] =
            needs_cell(r, &f, &tok[i]) ? k++ : GG_STATE_DROPPED;
    return k <= left;
}

/* Place the tokens of a sequence beside those of others. If the cells of
 * windows are too few, tokens of other sequences that no later token sees are
 * dropped, as when a batch needs their cells. */
static bool append_beside_others(struct gg_state_reader *r, struct fit f,
                                 const struct gg_cells *c,
                                 struct gg_state_token *tok, uint32_t n)
{
    if (append_cells(r, f, count_others_cells(r, c, false), tok, n))
        return true;
    r->drops = f.windows;
    return f.windows &&
           append_cells(r, f, count_others_cells(r, c, true), tok, n);
}

static enum gguf_status place_table(struct gg_state_reader *r, unsigned number,
                                    struct gguf_error *err)
{
    const struct gg_cells *c = gg_state_table(r->s, number);
    struct fit f = { .n_cells = c->n_cells,
                     .windows = number == GG_STATE_WINDOWS };
    f.from = gg_state_source_table(r, number, &f.which);
    struct gg_state_parsed_table *side = &r->side[f.from];
    const bool others =
        !r->all && c->n_words && count_others_cells(r, c, false);
    r->appends[number] = others;
    for (uint32_t i = 0, n; i < side->n; i += n) {
        for (n = 1;
             i + n < side->n && side->tok[i + n].part == side->tok[i].part;)
            n++;
        if (others ? append_beside_others(r, f, c, side->tok + i, n)
                   : fit_part(r, f, side->tok + i, n))
            continue;
        return gg_error_set(err, GGUF_E_FULL, side->tok[i].at,
                            "state, byte %" PRIu64 ": %" PRIu32
                            " tokens, the session has %" PRIu32
                            " cells for them%s",
                            side->tok[i].at, n, c->n_cells,
                            others ? " and those of other sequences" : "");
    }
    for (uint32_t i = 0; f.windows && i < side->n; i++) {
        const struct gg_state_token *t = &side->tok[i];
        uint32_t q = gg_state_next_seq(r, f.from, t, 0);
        for (; t->to[f.which] == GG_STATE_DROPPED && q != UINT32_MAX;
             q = gg_state_next_seq(r, f.from, t, q + 1))
            r->of[q].lost = GG_MAX(r->of[q].lost, t->pos);
    }
    return GGUF_OK;
}

/* The session keeps all tokens in one table: so must the windows of the state.
 */
static enum gguf_status join_windows(struct gg_state_reader *r,
                                     struct gguf_error *err)
{
    const struct gg_state_parsed_table *a = &r->side[0];
    struct gg_state_parsed_table *w = &r->side[GG_STATE_WINDOWS];
    bool same = a->n == w->n;
    for (uint32_t i = 0; same && i < a->n; i++) {
        same =
            a->tok[i].pos == w->tok[i].pos && a->tok[i].part == w->tok[i].part;
        w->tok[i].to[0] = a->tok[i].to[0];
    }
    const uint64_t at = w->n ? w->tok[0].at : GG_STATE_HEAD;
    return same
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_UNSUPPORTED, at,
                              "state, byte %" PRIu64
                              ": layers that see a window have %" PRIu32
                              " of %" PRIu32 " tokens, this session keeps all "
                              "(full_windows, or micro-batches as long as "
                              "its context)",
                              at, w->n, a->n);
}

enum gguf_status gg_state_place_tokens(struct gg_state_reader *r,
                                       struct gguf_error *err)
{
    for (unsigned b = 0; b < GG_STATE_TABLES; b++)
        if (gg_state_table(r->s, b))
            GG_TRY(place_table(r, b, err));
    return r->side[1].there && !gg_state_table(r->s, GG_STATE_WINDOWS)
               ? join_windows(r, err)
               : GGUF_OK;
}
