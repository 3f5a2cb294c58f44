/* SPDX-License-Identifier: MIT */
/* state_read.c - replace sequences of a session by a state
 *
 * Everything is checked before anything changes: the head and the tables
 * (state_parse.c), cells (state_place.c), then the tensors. */
#include "config.h"
#include "run/state_int.h"

#include "base/mem.h"
#include "dtype/dtype_int.h"
#include "dtype/byte_order.h"

#include <inttypes.h>
#include <string.h>

/* ---- tensors ---- */

static enum gguf_status refuse_tensor(uint64_t at, const struct gguf_tensor *t,
                                      const char *what, uint64_t has,
                                      uint64_t must, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_MISMATCH, at,
                        "state, byte %" PRIu64 ": %s has %s %" PRIu64
                        ", the session's has %" PRIu64,
                        at, t->name, what, has, must);
}

static bool is_window_memory(const struct gg_memory *m, size_t i)
{
    const struct gg_hparams *hp = &m->model->hp;
    const size_t il = i % gg_model_n_unrolled_layers(m->model);
    const uint32_t of = gg_model_stored_layer(m->model, (uint32_t)il);
    return hp->layer[of].attn_type == GG_ATTN_WINDOW;
}

/* Read the head of a tensor, which must be that of tensor i of a memory, and
 * find the table of the state that its rows follow. */
static enum gguf_status read_tensor_head(struct gg_state_reader *r,
                                         const struct gg_memory *m, size_t i,
                                         uint32_t *from,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *t = m->t[i];
    const uint64_t at = r->c.off, row_size = gg_memory_row_size(m, i);
    const unsigned number = gg_state_table_number(r->s, m, i);
    unsigned which = 0;
    uint32_t kind, index, dtype;
    uint64_t size;
    GG_TRY(gg_cursor_u32(&r->c, &kind, "a kind of memory", err));
    GG_TRY(gg_cursor_u32(&r->c, &index, "a number", err));
    GG_TRY(gg_cursor_u32(&r->c, &dtype, "a type", err));
    GG_TRY(gg_cursor_u32(&r->c, from, "a table of cells", err));
    GG_TRY(gg_cursor_u64(&r->c, &size, "a size", err));
    if (kind != (uint32_t)m->kind->id || index != i)
        return refuse_tensor(at, t, "the number", index, i, err);
    if (dtype != t->dtype)
        return refuse_tensor(at + 8, t, "type", dtype, t->dtype, err);
    if (size != row_size)
        return refuse_tensor(at + 16, t, "bytes of a row", size, row_size,
                             err);
    const bool windows =
        number == GG_STATE_WINDOWS ||
        (number == 0 && *from == GG_STATE_WINDOWS && is_window_memory(m, i));
    const unsigned must =
        number == GG_STATE_BY_SEQ ? number
        : windows ? gg_state_source_table(r, GG_STATE_WINDOWS, &which)
                  : number;
    if (*from != must)
        return refuse_tensor(at + 12, t, "rows of table", *from, must, err);
    return GGUF_OK;
}

static uint64_t n_rows(const struct gg_state_reader *r, uint32_t from)
{
    uint64_t n = 0;
    if (from != GG_STATE_BY_SEQ)
        return r->side[from].n;
    for (uint32_t q = 0; q < r->n_seq; q++)
        n += r->of[q].n_used > 0;
    return n;
}

/* Called for each tensor. */
typedef enum gguf_status tensor_fn(struct gg_state_reader *r,
                                   const struct gg_memory *m, size_t i,
                                   uint32_t from, const uint8_t *rows,
                                   struct gguf_error *err);

static enum gguf_status visit_tensors(struct gg_state_reader *r, tensor_fn *fn,
                                      struct gguf_error *err)
{
    uint32_t n = 0, from;
    for (unsigned k = 0; k < GG_N_MEMORIES; k++) {
        const struct gg_memory *m = &r->s->memory[k];
        for (size_t i = 0; m->kind && i < gg_memory_n_tensors(m); i++) {
            const uint8_t *rows = NULL;
            if (!m->t[i])
                continue;
            GG_TRY(read_tensor_head(r, m, i, &from, err));
            /* both are less than 2^31, but the product is not */
            const uint64_t size = gg_memory_row_size(m, i),
                           all = n_rows(r, from);
            if (size && all > gg_cursor_left(&r->c) / size)
                return gg_error_set(err, GGUF_E_TRUNCATED, r->c.off,
                                    "state, byte %" PRIu64 ": %" PRIu64
                                    " rows of %s are more than the state has",
                                    r->c.off, all, m->t[i]->name);
            GG_TRY(gg_cursor_take(&r->c, all * size, &rows, "rows", err));
            GG_TRY(fn(r, m, i, from, rows, err));
            n++;
        }
    }
    if (n != r->n_tensors || gg_cursor_left(&r->c))
        return gg_error_set(err, GGUF_E_FORMAT, r->c.off,
                            "state, byte %" PRIu64
                            ": the tensors end after %" PRIu32
                            ", expected %" PRIu32 " and the checksum",
                            r->c.off, n, r->n_tensors);
    return GGUF_OK;
}

static enum gguf_status skip_rows(struct gg_state_reader *r,
                                  const struct gg_memory *m, size_t i,
                                  uint32_t from, const uint8_t *rows,
                                  struct gguf_error *err)
{
    (void)r, (void)m, (void)i, (void)from, (void)rows, (void)err;
    return GGUF_OK;
}

/* ---- rows ---- */

/* Write n rows from row on; their bytes are in the order of files. */
static enum gguf_status set_rows(const struct gg_state_reader *r,
                                 struct gguf_tensor *t, uint64_t row_size,
                                 uint64_t row, uint64_t n, const uint8_t *p,
                                 struct gguf_error *err)
{
    const int type = gg_dtype_index(t->dtype);
    const uint64_t size = n * row_size;
    if (!n || !gg_byte_order_differs(type, false))
        return n ? gguf_tensor_set(t, p, row * row_size, size, err) : GGUF_OK;
    uint8_t *copy = gg_mem_alloc(r->s->allocator, (size_t)size);
    if (!copy)
        return gg_error_set_nomem(err, (size_t)size);
    memcpy(copy, p, (size_t)size);
    gg_byte_order_swap(type, row_size, 0, copy, (size_t)size);
    const enum gguf_status st =
        gguf_tensor_set(t, copy, row * row_size, size, err);
    gg_mem_free(r->s->allocator, copy);
    return st;
}

static enum gguf_status set_by_seq(struct gg_state_reader *r,
                                   const struct gg_memory *m, size_t i,
                                   const uint8_t *rows, struct gguf_error *err)
{
    const uint64_t size = gg_memory_row_size(m, i);
    for (uint32_t q = 0; q < r->n_seq; q++) {
        if (!r->of[q].n_used)
            continue;
        GG_TRY(set_rows(r, m->t[i], size, gg_state_seq(r, q), 1, rows, err));
        rows += size;
    }
    return GGUF_OK;
}

/* Row of a token, or GG_STATE_DROPPED. */
static uint32_t row_of(const struct gg_state_reader *r,
                       const struct gg_cells *c,
                       const struct gg_state_token *t, unsigned which)
{
    const uint32_t stream =
        r->all ? t->part : gg_cells_stream_index(c, r->seq);
    return t->to[which] == GG_STATE_DROPPED
               ? GG_STATE_DROPPED
               : stream * c->n_cells + t->to[which];
}

static enum gguf_status set_tensor(struct gg_state_reader *r,
                                   const struct gg_memory *m, size_t i,
                                   uint32_t from, const uint8_t *rows,
                                   struct gguf_error *err)
{
    const struct gg_cells *c = gg_memory_tensor_table(m, i);
    const uint64_t size = gg_memory_row_size(m, i);
    if (!c)
        return set_by_seq(r, m, i, rows, err);
    const unsigned which =
        gg_state_table_number(r->s, m, i) == GG_STATE_WINDOWS && from == 0;
    const struct gg_state_parsed_table *side = &r->side[from];
    for (uint32_t k = 0, n; k < side->n; k += n) {
        const uint32_t row = row_of(r, c, &side->tok[k], which);
        n = 1;
        if (row == GG_STATE_DROPPED)
            continue;
        while (k + n < side->n &&
               row_of(r, c, &side->tok[k + n], which) == row + n)
            n++;
        GG_TRY(set_rows(r, m->t[i], size, row, n, rows + k * size, err));
    }
    return GGUF_OK;
}

/* ---- cells ---- */

/* Take a token's cell, counted from the cells that are taken already. */
static void take_cell(const struct gg_state_reader *r, struct gg_cells *c,
                      unsigned from, const struct gg_state_token *t,
                      uint32_t cell)
{
    uint32_t q = gg_state_next_seq(r, from, t, 0);
    gg_cells_get_stream(c, gg_state_seq(r, q))->end = cell;
    (void)gg_cells_append(c, gg_state_seq(r, q), t->pos);
    while ((q = gg_state_next_seq(r, from, t, q + 1)) != UINT32_MAX)
        gg_cells_add_owner(c, gg_state_seq(r, q), cell);
}

/* Drop tokens of other sequences that windows have passed. */
static void drop_others(struct gg_state_reader *r)
{
    struct gguf_session *s = r->s;
    for (uint32_t q = 0; q < s->n_seq; q++)
        if (q != r->seq)
            gg_session_drop_passed(
                s, q, gg_session_first_visible(s, s->cells.seq[q].next_pos));
}

static enum gguf_status take_cells(struct gg_state_reader *r, unsigned number,
                                   struct gguf_error *err)
{
    struct gg_cells *c = gg_state_table(r->s, number);
    unsigned which;
    const unsigned from = gg_state_source_table(r, number, &which);
    struct gg_state_parsed_table *side = &r->side[from];
    uint32_t base = 0;
    if (number == GG_STATE_WINDOWS && r->drops)
        drop_others(r);
    if (r->appends[number]) {
        GG_TRY(gg_session_defrag_stream(r->s, c, 0, err));
        base = c->stream[0].end;
    }
    for (uint32_t i = 0; i < side->n; i++) {
        struct gg_state_token *t = &side->tok[i];
        if (t->to[which] == GG_STATE_DROPPED)
            continue;
        t->to[which] += base;
        take_cell(r, c, from, t, t->to[which]);
    }
    for (uint32_t q = 0; q < r->n_seq; q++)
        c->seq[gg_state_seq(r, q)].lost =
            number == GG_STATE_WINDOWS ? r->of[q].lost : -1;
    return GGUF_OK;
}

static enum gguf_status forget_sequence(struct gg_state_reader *r,
                                        struct gguf_error *err)
{
    const uint32_t first = r->all ? 0 : r->seq,
                   end = r->all ? r->s->n_seq : r->seq + 1;
    for (uint32_t q = first; q < end; q++)
        GG_TRY(gg_session_clear_sequence(r->s, q, err));
    return GGUF_OK;
}

static enum gguf_status apply_state(struct gg_state_reader *r,
                                    uint64_t tensors, struct gguf_error *err)
{
    struct gguf_session *s = r->s;
    s->n_out = 0;
    s->out_encoded = false;
    gg_embed_clear(&s->embed);
    GG_TRY(forget_sequence(r, err));
    for (unsigned b = 0; b < GG_STATE_TABLES; b++)
        if (gg_state_table(s, b))
            GG_TRY(take_cells(r, b, err));
    if (r->side[1].there && !gg_state_table(s, GG_STATE_WINDOWS))
        for (uint32_t i = 0; i < r->side[1].n; i++)
            r->side[1].tok[i].to[0] = r->side[0].tok[i].to[0];
    r->c.off = tensors;
    return visit_tensors(r, set_tensor, err);
}

enum gguf_status gg_state_read(struct gguf_session *s, uint32_t seq,
                               const uint8_t *data, uint64_t size,
                               struct gguf_error *err)
{
    struct gg_state_reader r = { .s = s, .seq = seq };
    enum gguf_status st = gg_state_parse(&r, data, size, err);
    const uint64_t tensors = r.c.off;
    if (st == GGUF_OK)
        st = gg_state_place_tokens(&r, err);
    if (st == GGUF_OK)
        st = visit_tensors(&r, skip_rows, err);
    if (st == GGUF_OK) {
        st = apply_state(&r, tensors, err);
        if (st != GGUF_OK)
            (void)forget_sequence(&r, NULL);
    }
    for (unsigned b = 0; b < GG_STATE_TABLES; b++) {
        gg_mem_free(s->allocator, r.side[b].tok);
        gg_mem_free(s->allocator, r.side[b].lost);
    }
    gg_mem_free(s->allocator, r.of);
    return st;
}
