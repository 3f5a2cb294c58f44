/* cells.h - which rows of the key/value cache hold which positions
 *
 * Each sequence has a stream of n_ctx cells; a cell holds one token's key and
 * value for every layer, or is free. Where a token lies does not matter: what
 * it sees is decided by positions.
 */
#ifndef GG_RUN_CELLS_H
#define GG_RUN_CELLS_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_run_stream {
    int32_t *pos; /* [n_ctx], -1: free */
    uint32_t n_used;
    uint32_t end;     /* cells from here on are free */
    uint32_t hint;    /* cells before it are taken */
    int32_t next_pos; /* after the highest position; 0 when empty */
};

struct gg_cells {
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_streams;
    struct gg_run_stream *stream;
    int32_t *pos; /* of all streams */
};

/* GGUF_E_NOMEM; fini is fine after it. */
enum gguf_status gg_cells_init(struct gg_cells *c, uint32_t n_ctx,
                               uint32_t n_streams,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
void gg_cells_fini(struct gg_cells *c);

/* Take a free cell, of which there is one, for a position: its number. */
uint32_t gg_cells_take(struct gg_cells *c, uint32_t stream, int32_t pos);

/* Whether the position is one of [begin, end); end < 0: all from begin on. That
 * of a free cell never is. */
static inline bool gg_cells_between(int32_t pos, int32_t begin, int32_t end)
{
    return pos >= 0 && pos >= begin && (end < 0 || pos < end);
}

/* Free cells at these positions. */
void gg_cells_remove(struct gg_cells *c, uint32_t stream, int32_t begin,
                     int32_t end);
void gg_cells_clear(struct gg_cells *c);

#endif
