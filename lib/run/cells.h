/* SPDX-License-Identifier: MIT */
/* cells.h - which rows of a memory hold which tokens of which sequences
 *
 * A stream has n_cells cells; a cell holds one token's rows of every layer that
 * follows the book, or is free. Streams are either sequences, or there is one
 * that sequences share: then a cell has a set of sequences, and what one of
 * them copies from another takes no cell. Where a token lies does not matter
 * for what it sees, which positions decide; but sums are made in the order of
 * cells, so that tokens keep the order in which they came, and holes are closed
 * by moving what comes after them.
 */
#ifndef GG_RUN_CELLS_H
#define GG_RUN_CELLS_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_run_stream {
    int32_t *pos;  /* [n_cells], -1: free */
    uint64_t *set; /* [n_cells][n_words], a bit for each sequence that has the
                    * cell; NULL where the stream is a sequence */
    uint32_t n_used;
    uint32_t end; /* cells from here on are free */
};

/* What a book knows of a sequence. */
struct gg_run_seq {
    uint32_t n_used;  /* cells that it has */
    int32_t next_pos; /* after the highest position; 0 when empty */
    int32_t lost;     /* tokens up to this position were dropped, since windows
                       * had passed them; -1: none */
};

struct gg_cells {
    const struct gguf_allocator *allocator;
    uint32_t n_cells; /* of a stream */
    uint32_t n_seq, n_streams;
    uint32_t n_words; /* of a set; 0: streams are sequences */
    struct gg_run_stream *stream;
    struct gg_run_seq *seq;
    int32_t *pos; /* of all streams */
    uint64_t *set;
};

/* A book of n_seq sequences with n_cells cells each, or together where they
 * share. GGUF_E_NOMEM; fini is fine after it. */
enum gguf_status gg_cells_init(struct gg_cells *c, uint32_t n_cells,
                               uint32_t n_seq, bool shared,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
void gg_cells_fini(struct gg_cells *c);

/* The stream of a sequence. */
static inline uint32_t gg_cells_stream_index(const struct gg_cells *c,
                                             uint32_t seq)
{
    return c->n_words ? 0 : seq;
}
static inline struct gg_run_stream *
gg_cells_get_stream(const struct gg_cells *c, uint32_t seq)
{
    return &c->stream[gg_cells_stream_index(c, seq)];
}
/* Where a cell of a sequence's stream is among the rows of a tensor. */
static inline uint32_t gg_cells_row(const struct gg_cells *c, uint32_t seq,
                                    uint32_t cell)
{
    return gg_cells_stream_index(c, seq) * c->n_cells + cell;
}

/* Has the sequence this cell of its stream? */
static inline bool gg_cells_is_owner(const struct gg_cells *c, uint32_t seq,
                                     uint32_t cell)
{
    const struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    if (s->pos[cell] < 0 || !s->set)
        return s->pos[cell] >= 0;
    return s->set[(size_t)cell * c->n_words + seq / 64] >> seq % 64 & 1;
}
/* Has no other one it? */
bool gg_cells_is_sole_owner(const struct gg_cells *c, uint32_t seq,
                            uint32_t cell);

/* Take the cell after the last one of a stream, which must have one, for a
 * sequence and a position: its number. */
uint32_t gg_cells_append(struct gg_cells *c, uint32_t seq, int32_t pos);
/* Give a cell to one more sequence, where they share; take it from one. The
 * cell is free after the last one. */
void gg_cells_add_owner(struct gg_cells *c, uint32_t seq, uint32_t cell);
void gg_cells_remove_owner(struct gg_cells *c, uint32_t seq, uint32_t cell);

/* Whether the position is one of [begin, end); end < 0: all from begin on. That
 * of a free cell never is. */
static inline bool gg_cells_in_range(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= 0 && pos >= begin && (end < 0 || pos < end);
}

/* Count again what is known of a sequence, and where its stream ends: after
 * changes of cells. */
void gg_cells_recount(struct gg_cells *c, uint32_t seq);

/* Take cells at these positions from a sequence. */
void gg_cells_remove(struct gg_cells *c, uint32_t seq, int32_t begin,
                     int32_t end);
void gg_cells_clear(struct gg_cells *c);

/* Close the holes of a stream: its first token comes to cell first, which is
 * not after where it is, and the others follow in their order. Called for n
 * cells that move together, first ones first. What was the end is returned:
 * cells from the new end to it are free now. */
typedef void gg_cells_move_fn(void *user, uint32_t stream, uint32_t from,
                              uint32_t to, uint32_t n);
uint32_t gg_cells_defrag(struct gg_cells *c, uint32_t stream, uint32_t first,
                         gg_cells_move_fn *move, void *user);

#endif
