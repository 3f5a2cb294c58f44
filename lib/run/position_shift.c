/* SPDX-License-Identifier: MIT */
/* position_shift.c - move tokens of a sequence to other positions */
#include "config.h"
#include "run/session_int.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* A range of positions of a sequence, and how they change. */
struct change {
    uint32_t seq;
    int32_t begin, end;
    int32_t delta, divisor;
};

static bool is_cell_in_range(const struct change *x, const struct gg_cells *c,
                             uint32_t cell)
{
    return gg_cells_is_owner(c, x->seq, cell) &&
           gg_cells_in_range(gg_cells_get_stream(c, x->seq)->pos[cell],
                             x->begin, x->end);
}

static int64_t moved_position(const struct change *x, int32_t pos)
{
    return (int64_t)pos / x->divisor + x->delta;
}

/* ---- checks ---- */

/* The sequence after the change. */
struct after {
    bool all, none; /* all or none of its tokens are in the range */
    /* highest position, and highest one that is lost; -1: none */
    int32_t last, lost;
};

static enum gguf_status predict_cells(const struct gguf_session *s,
                                      const struct change *x, struct after *a,
                                      struct gguf_error *err)
{
    const struct gg_cells *c = &s->cells, *w = s->table[GG_ATTN_WINDOW];
    const struct gg_run_stream *st = gg_cells_get_stream(c, x->seq);
    const int32_t lost = w ? w->seq[x->seq].lost : -1;
    *a = (struct after){ true, true, -1, -1 };
    for (uint32_t i = 0; i < st->end; i++) {
        if (!gg_cells_is_owner(c, x->seq, i))
            continue;
        const bool in = is_cell_in_range(x, c, i);
        const int64_t pos = in ? moved_position(x, st->pos[i]) : st->pos[i];
        if (pos < 0 || pos >= INT32_MAX)
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "sequence %" PRIu32 ": the token at position %" PRId32
                " would come to %" PRId64 ", must be 0 to %" PRId32,
                x->seq, st->pos[i], pos, INT32_MAX - 1);
        a->all = a->all && in;
        a->none = a->none && !in;
        a->last = GG_MAX(a->last, (int32_t)pos);
        if (st->pos[i] <= lost)
            a->lost = GG_MAX(a->lost, (int32_t)pos);
    }
    return GGUF_OK;
}

/* Position of a cell after the change. */
static int32_t position_after(const struct change *x, const struct gg_cells *c,
                              uint32_t cell)
{
    const int32_t pos = gg_cells_get_stream(c, x->seq)->pos[cell];
    return is_cell_in_range(x, c, cell) ? (int32_t)moved_position(x, pos)
                                        : pos;
}

/* Tables of windows have a cell for one token at each position. */
static enum gguf_status check_single(const struct gguf_session *s,
                                     const struct change *x,
                                     struct gguf_error *err)
{
    const struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    const uint32_t end = w ? gg_cells_get_stream(w, x->seq)->end : 0;
    for (uint32_t i = 0; i < end; i++)
        for (uint32_t k = 0; k < end && gg_cells_is_owner(w, x->seq, i); k++) {
            const int32_t pos = position_after(x, w, i);
            if (k == i || !gg_cells_is_owner(w, x->seq, k) ||
                pos != position_after(x, w, k))
                continue;
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                "sequence %" PRIu32 ": two tokens would come to position "
                "%" PRId32 ", and layers that see a window keep one "
                "(full_windows keeps all)",
                x->seq, pos);
        }
    return GGUF_OK;
}

static enum gguf_status check_shift(const struct gguf_session *s,
                                    const struct change *x, struct after *a,
                                    struct gguf_error *err)
{
    const unsigned keeps = gg_model_all_memory_kinds(s->model);
    GG_TRY(predict_cells(s, x, a, err));
    if (a->none)
        return GGUF_OK;
    if (keeps & (GG_MODEL_MEMORY_STATES | GG_MODEL_MEMORY_COMPRESSED) &&
        !a->all)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "sequence %" PRIu32
                            ": a state cannot shift some of its tokens",
                            x->seq);
    GG_TRY(gg_model_check_key_shift(s->model, err));
    GG_TRY(gg_session_check_lost(s, x->seq, a->last + 1, a->lost, err));
    return check_single(s, x, err);
}

/* ---- changes ---- */

/* Number of cells in the range that other sequences own, too. They do not
 * move: the sequence gets cells of its own. */
static uint32_t count_shared_cells(const struct change *x,
                                   const struct gg_cells *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < gg_cells_get_stream(c, x->seq)->end; i++)
        n +=
            is_cell_in_range(x, c, i) && !gg_cells_is_sole_owner(c, x->seq, i);
    return n;
}

static enum gguf_status check_room(const struct gguf_session *s,
                                   const struct change *x,
                                   struct gguf_error *err)
{
    const struct gg_cells *c = &s->cells;
    const uint32_t n = count_shared_cells(x, c);
    if (!n || n <= c->n_cells - c->stream[0].n_used)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_FULL, GGUF_NO_OFFSET,
                        "sequence %" PRIu32 " shares %" PRIu32
                        " of its tokens with others, which stay: "
                        "there is room for %" PRIu32 " of %" PRIu32,
                        x->seq, n, c->n_cells - c->stream[0].n_used,
                        c->n_cells);
}

/* Make room in the table of windows, if there is too little, by dropping tokens
 * that no later one sees. */
static enum gguf_status make_room(struct gguf_session *s,
                                  const struct change *x, struct after *a,
                                  struct gguf_error *err)
{
    struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    const uint32_t n = w ? count_shared_cells(x, w) : 0;
    if (!n || n + GG_SESSION_STEP <= w->n_cells - w->stream[0].n_used)
        return GGUF_OK;
    const int32_t floor = gg_session_first_visible(s, a->last + 1);
    for (uint32_t i = 0; i < w->stream[0].end; i++)
        if (gg_cells_is_owner(w, x->seq, i) &&
            position_after(x, w, i) < floor) {
            a->lost = GG_MAX(a->lost, position_after(x, w, i));
            gg_cells_remove_owner(w, x->seq, i);
        }
    for (uint32_t q = 0; q < s->n_seq; q++)
        if (q != x->seq)
            gg_session_drop_passed(
                s, q, gg_session_first_visible(s, s->cells.seq[q].next_pos));
    return gg_session_defrag_stream(s, w, 0, err);
}

/* Change positions in one table. by, all 0 before, receives the rotation of
 * each key. */
static enum gguf_status change_cells(struct gguf_session *s,
                                     struct gg_cells *c,
                                     const struct change *x, int32_t *by,
                                     struct gguf_error *err)
{
    struct gg_run_stream *st = gg_cells_get_stream(c, x->seq);
    if (count_shared_cells(x, c))
        GG_TRY(gg_session_defrag_stream(s, c, 0, err));
    const uint32_t before = st->end;
    for (uint32_t i = 0; i < before; i++) {
        if (!is_cell_in_range(x, c, i))
            continue;
        const int32_t old = st->pos[i], pos = (int32_t)moved_position(x, old);
        uint32_t to = i;
        if (gg_cells_is_sole_owner(c, x->seq, i)) {
            st->pos[i] = pos;
        } else if (pos != old) {
            to = gg_cells_append(c, x->seq, pos);
            GG_TRY(gg_session_copy_rows(s, c, i, to, 1, err));
            gg_cells_remove_owner(c, x->seq, i);
        }
        by[to] = pos - old;
    }
    gg_cells_recount(c, x->seq);
    return gg_key_rotation_apply(s, c, gg_cells_stream_index(c, x->seq), by,
                                 st->end, err);
}

static enum gguf_status apply_shift(struct gguf_session *s,
                                    const struct change *x,
                                    struct gguf_error *err)
{
    struct gg_cells *w = s->table[GG_ATTN_WINDOW];
    struct after a;
    if (x->seq >= s->n_seq)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "sequence %" PRIu32 ": the session has %" PRIu32,
                            x->seq, s->n_seq);
    GG_TRY(check_shift(s, x, &a, err));
    if (a.none)
        return GGUF_OK;
    GG_TRY(check_room(s, x, err));
    int32_t *by = gg_mem_alloc_zero(s->allocator, s->n_ctx, sizeof *by);
    if (!by)
        return gg_error_set_nomem(err, s->n_ctx * sizeof *by);
    enum gguf_status st = make_room(s, x, &a, err);
    for (unsigned b = 0; st == GGUF_OK && b < GG_N_ATTN_TYPES; b++) {
        memset(by, 0, s->n_ctx * sizeof *by);
        if (s->table[b])
            st = change_cells(s, s->table[b], x, by, err);
    }
    if (w)
        w->seq[x->seq].lost = a.lost;
    gg_mem_free(s->allocator, by);
    return st;
}

enum gguf_status gguf_session_shift_positions(struct gguf_session *s,
                                              uint32_t seq, int32_t begin,
                                              int32_t end, int32_t delta,
                                              struct gguf_error *err)
{
    const struct change x = { seq, begin, end, delta, 1 };
    return apply_shift(s, &x, err);
}

enum gguf_status gguf_session_divide_positions(struct gguf_session *s,
                                               uint32_t seq, int32_t begin,
                                               int32_t end, int32_t divisor,
                                               struct gguf_error *err)
{
    const struct change x = { seq, begin, end, 0, divisor };
    if (divisor < 1)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "positions over %" PRId32 ", must be 1 or more",
                            divisor);
    return apply_shift(s, &x, err);
}
