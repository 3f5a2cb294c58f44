/* SPDX-License-Identifier: MIT */
/* cells.c - which row of a memory has which token */
#include "config.h"
#include "run/cells.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <string.h>

enum gguf_status gg_cells_init(struct gg_cells *c, uint32_t n_cells,
                               uint32_t n_seq, bool shared,
                               const struct gguf_allocator *a,
                               struct gguf_error *err)
{
    const uint32_t n_streams = shared ? 1 : n_seq;
    const size_t n = (size_t)n_cells * n_streams;
    *c = (struct gg_cells){ .allocator = a,
                            .n_cells = n_cells,
                            .n_seq = n_seq,
                            .n_streams = n_streams,
                            .n_words = shared ? (n_seq + 63) / 64 : 0 };
    c->stream = gg_mem_alloc_zero(a, n_streams, sizeof *c->stream);
    c->seq = gg_mem_alloc_zero(a, n_seq, sizeof *c->seq);
    c->pos = gg_mem_alloc_zero(a, n, sizeof *c->pos);
    if (!c->stream || !c->seq || !c->pos)
        return gg_error_set_nomem(err, n * sizeof *c->pos);
    if (shared) {
        const size_t words = n * c->n_words;
        c->set = gg_mem_alloc_zero(a, words, sizeof *c->set);
        if (!c->set)
            return gg_error_set_nomem(err, words * sizeof *c->set);
    }
    for (uint32_t i = 0; i < n_streams; i++) {
        c->stream[i].pos = c->pos + (size_t)i * n_cells;
        c->stream[i].set = c->set;
    }
    gg_cells_clear(c);
    return GGUF_OK;
}

void gg_cells_fini(struct gg_cells *c)
{
    gg_mem_free(c->allocator, c->stream);
    gg_mem_free(c->allocator, c->seq);
    gg_mem_free(c->allocator, c->pos);
    gg_mem_free(c->allocator, c->set);
}

/* ---- cells ---- */

static bool is_empty(const struct gg_cells *c, const uint64_t *set)
{
    uint64_t all = 0;
    for (uint32_t w = 0; w < c->n_words; w++)
        all |= set[w];
    return !all;
}

bool gg_cells_is_sole_owner(const struct gg_cells *c, uint32_t seq,
                            uint32_t cell)
{
    const struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    for (uint32_t w = 0; w < c->n_words; w++) {
        const uint64_t own = w == seq / 64 ? (uint64_t)1 << seq % 64 : 0;
        if (s->set[(size_t)cell * c->n_words + w] & ~own)
            return false;
    }
    return gg_cells_is_owner(c, seq, cell);
}

static void count_one(struct gg_run_seq *q, int32_t pos)
{
    q->n_used++;
    if (q->next_pos <= pos)
        q->next_pos = pos + 1;
}

uint32_t gg_cells_append(struct gg_cells *c, uint32_t seq, int32_t pos)
{
    struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    const uint32_t i = s->end++;
    s->pos[i] = pos;
    s->n_used++;
    if (s->set)
        gg_cells_add_owner(c, seq, i);
    else
        count_one(&c->seq[seq], pos);
    return i;
}

void gg_cells_add_owner(struct gg_cells *c, uint32_t seq, uint32_t cell)
{
    struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    s->set[(size_t)cell * c->n_words + seq / 64] |= (uint64_t)1 << seq % 64;
    count_one(&c->seq[seq], s->pos[cell]);
}

void gg_cells_remove_owner(struct gg_cells *c, uint32_t seq, uint32_t cell)
{
    struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    if (s->set) {
        uint64_t *set = s->set + (size_t)cell * c->n_words;
        set[seq / 64] &= ~((uint64_t)1 << seq % 64);
        if (!is_empty(c, set))
            return;
    }
    s->pos[cell] = -1;
    s->n_used--;
}

/* ---- sequences ---- */

void gg_cells_recount(struct gg_cells *c, uint32_t seq)
{
    struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    struct gg_run_seq *q = &c->seq[seq];
    q->n_used = 0;
    q->next_pos = 0;
    for (uint32_t i = 0; i < s->end; i++)
        if (gg_cells_is_owner(c, seq, i))
            count_one(q, s->pos[i]);
    while (s->end && s->pos[s->end - 1] < 0)
        s->end--;
}

void gg_cells_remove(struct gg_cells *c, uint32_t seq, int32_t begin,
                     int32_t end)
{
    struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    for (uint32_t i = 0; i < s->end; i++)
        if (gg_cells_is_owner(c, seq, i) &&
            gg_cells_in_range(s->pos[i], begin, end))
            gg_cells_remove_owner(c, seq, i);
    gg_cells_recount(c, seq);
}

void gg_cells_clear(struct gg_cells *c)
{
    const size_t n = (size_t)c->n_cells * c->n_streams;
    for (size_t k = 0; k < n; k++)
        c->pos[k] = -1;
    if (c->set)
        memset(c->set, 0, n * c->n_words * sizeof *c->set);
    for (uint32_t i = 0; i < c->n_streams; i++)
        c->stream[i].n_used = c->stream[i].end = 0;
    for (uint32_t q = 0; q < c->n_seq; q++)
        c->seq[q] = (struct gg_run_seq){ .lost = -1 };
}

/* ---- holes ---- */

/* Move cells [from, from + n) to [to, to + n), and free the cells that are
 * left. */
static void move_cells(const struct gg_cells *c, struct gg_run_stream *s,
                       uint32_t from, uint32_t to, uint32_t n)
{
    const size_t w = c->n_words;
    memmove(s->pos + to, s->pos + from, n * sizeof *s->pos);
    if (s->set)
        memmove(s->set + to * w, s->set + from * w, n * w * sizeof *s->set);
    for (uint32_t i = GG_MAX(from, to + n); i < from + n; i++) {
        s->pos[i] = -1;
        if (s->set)
            memset(s->set + i * w, 0, w * sizeof *s->set);
    }
}

uint32_t gg_cells_defrag(struct gg_cells *c, uint32_t stream, uint32_t first,
                         gg_cells_move_fn *move, void *user)
{
    struct gg_run_stream *s = &c->stream[stream];
    const uint32_t before = s->end;
    uint32_t to = first;
    for (uint32_t i = 0, n; i < before; i += n) {
        for (n = 0; i + n < before && s->pos[i + n] >= 0;)
            n++;
        if (n && i != to) {
            move(user, stream, i, to, n);
            move_cells(c, s, i, to, n);
        }
        to += n;
        n += n == 0;
    }
    s->end = s->n_used ? to : 0;
    return before;
}
