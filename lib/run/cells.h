/* SPDX-License-Identifier: MIT */
/* cells.h - a table of cells: which row of a memory has which token
 *
 * A table has one stream of cells for each sequence, or one that all sequences
 * share. A cell is free, or has one token: its row in every tensor that
 * follows the table. A shared cell has a set of sequences, its owners; copying
 * tokens between sequences then takes no cell.
 *
 * A token sees others by position, wherever they lie. But sums are made in the
 * order of cells. So tokens stay in the order in which they came, and holes
 * are closed by moving the later tokens. */
#ifndef GG_RUN_CELLS_H
#define GG_RUN_CELLS_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_run_stream {
    int32_t *pos; /* [n_cells], position; -1: free */
    /* [n_cells][n_words], a bit for each owner of the cell. NULL: the stream
     * belongs to one sequence. */
    uint64_t *set;
    uint32_t n_used;
    uint32_t end; /* first of the free cells at the end */
};

/* Facts about a sequence in a table. */
struct gg_run_seq {
    uint32_t n_used;  /* cells of the sequence */
    int32_t next_pos; /* one more than the highest position; 0: empty */
    /* highest position of a token that was dropped because windows had passed
     * it; -1: none */
    int32_t lost;
};

struct gg_cells {
    const struct gguf_allocator *allocator;
    uint32_t n_cells; /* cells of a stream */
    uint32_t n_seq, n_streams;
    /* words of a set of owners; 0: each sequence has a stream */
    uint32_t n_words;
    struct gg_run_stream *stream;
    struct gg_run_seq *seq;
    int32_t *pos; /* positions of all streams */
    uint64_t *set;
};

/* Make a table of n_seq sequences, with n_cells cells for each or, if shared,
 * for all. GGUF_E_NOMEM. gg_cells_fini() may follow a failure. */
enum gguf_status gg_cells_init(struct gg_cells *c, uint32_t n_cells,
                               uint32_t n_seq, bool shared,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
void gg_cells_fini(struct gg_cells *c);

/* Index of a sequence's stream, and the stream. */
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
/* Row of a tensor for a cell of a sequence's stream. */
static inline uint32_t gg_cells_row(const struct gg_cells *c, uint32_t seq,
                                    uint32_t cell)
{
    return gg_cells_stream_index(c, seq) * c->n_cells + cell;
}

/* Does the sequence own this cell of its stream? */
static inline bool gg_cells_is_owner(const struct gg_cells *c, uint32_t seq,
                                     uint32_t cell)
{
    const struct gg_run_stream *s = gg_cells_get_stream(c, seq);
    if (s->pos[cell] < 0 || !s->set)
        return s->pos[cell] >= 0;
    return s->set[(size_t)cell * c->n_words + seq / 64] >> seq % 64 & 1;
}
/* Is this the only sequence that owns the cell? */
bool gg_cells_is_sole_owner(const struct gg_cells *c, uint32_t seq,
                            uint32_t cell);

/* Take the first free cell at the end of a sequence's stream, which must have
 * one, for a position. Returns its number. */
uint32_t gg_cells_append(struct gg_cells *c, uint32_t seq, int32_t pos);
/* Add an owner to a shared cell. Then: remove one; without owners a cell is
 * free. */
void gg_cells_add_owner(struct gg_cells *c, uint32_t seq, uint32_t cell);
void gg_cells_remove_owner(struct gg_cells *c, uint32_t seq, uint32_t cell);

/* Is a position in [begin, end)? If end is negative, the range has no end. The
 * position of a free cell is in no range. */
static inline bool gg_cells_in_range(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= 0 && pos >= begin && (end < 0 || pos < end);
}

/* Count the cells of a sequence again, and find the end of its stream. To be
 * called after cells changed. */
void gg_cells_recount(struct gg_cells *c, uint32_t seq);

/* Remove a range of positions from a sequence. */
void gg_cells_remove(struct gg_cells *c, uint32_t seq, int32_t begin,
                     int32_t end);
void gg_cells_clear(struct gg_cells *c);

/* Close the holes of a stream. Its first token moves to cell first, which must
 * not lie after it, and the others follow in their order. move is called for
 * each n adjacent cells that move, in the order of cells. Returns the old end:
 * cells from the new end to it are free now. */
typedef void gg_cells_move_fn(void *user, uint32_t stream, uint32_t from,
                              uint32_t to, uint32_t n);
uint32_t gg_cells_defrag(struct gg_cells *c, uint32_t stream, uint32_t first,
                         gg_cells_move_fn *move, void *user);

#endif
