/* cells.c - bookkeeping of the key/value cache */
#include "config.h"
#include "run/cells.h"

#include "base/mem.h"

enum gguf_status gg_cells_init(struct gg_cells *c, uint32_t n_ctx,
                               uint32_t n_streams,
                               const struct gguf_allocator *a,
                               struct gguf_error *err)
{
    uint64_t n = (uint64_t)n_ctx * n_streams;
    *c = (struct gg_cells){ a, n_ctx, n_streams, NULL, NULL };
    c->stream = gg_mem_alloc_zero(a, n_streams, sizeof *c->stream);
    c->pos = gg_mem_alloc_zero(a, n, sizeof *c->pos);
    if (!c->stream || !c->pos)
        return gg_error_set_nomem(err, (size_t)n * sizeof *c->pos);
    for (uint32_t i = 0; i < n_streams; i++)
        c->stream[i].pos = c->pos + (size_t)i * n_ctx;
    gg_cells_clear(c);
    return GGUF_OK;
}

void gg_cells_fini(struct gg_cells *c)
{
    gg_mem_free(c->allocator, c->stream);
    gg_mem_free(c->allocator, c->pos);
}

uint32_t gg_cells_take(struct gg_cells *c, uint32_t stream, int32_t pos)
{
    struct gg_run_stream *s = &c->stream[stream];
    uint32_t i = s->hint;
    while (s->pos[i] >= 0)
        i++;
    s->pos[i] = pos;
    s->hint = i + 1;
    s->n_used++;
    if (s->end < i + 1)
        s->end = i + 1;
    if (s->next_pos <= pos)
        s->next_pos = pos + 1;
    return i;
}

void gg_cells_remove(struct gg_cells *c, uint32_t stream, int32_t begin,
                     int32_t end)
{
    struct gg_run_stream *s = &c->stream[stream];
    uint32_t old_end = s->end;
    s->n_used = s->end = s->next_pos = 0;
    s->hint = c->n_ctx;
    for (uint32_t i = 0; i < old_end; i++) {
        if (gg_cells_between(s->pos[i], begin, end))
            s->pos[i] = -1;
        if (s->pos[i] < 0) {
            if (s->hint > i)
                s->hint = i;
            continue;
        }
        s->n_used++;
        s->end = i + 1;
        if (s->next_pos <= s->pos[i])
            s->next_pos = s->pos[i] + 1;
    }
    if (s->hint > s->end)
        s->hint = s->end;
}

void gg_cells_clear(struct gg_cells *c)
{
    for (uint32_t i = 0; i < c->n_streams; i++) {
        struct gg_run_stream *s = &c->stream[i];
        s->n_used = s->end = s->hint = 0;
        s->next_pos = 0;
        for (uint32_t k = 0; k < c->n_ctx; k++)
            s->pos[k] = -1;
    }
}
