/* SPDX-License-Identifier: MIT */
/* output_cache.c - keep the outputs of decodes, and give them again */
#include "config.h"
#include "run/output_cache.h"

#include "base/mem.h"
#include "run/session_int.h"

#include <string.h>

void gg_output_cache_record(struct gguf_session *s)
{
    s->output_cache.on = true;
    s->output_cache.replays = false;
}

void gg_output_cache_replay(struct gguf_session *s)
{
    s->output_cache.on = s->output_cache.replays = true;
    s->output_cache.next = 0;
}

void gg_output_cache_stop(struct gguf_session *s)
{
    gg_mem_free(s->allocator, s->output_cache.x);
    gg_mem_free(s->allocator, s->output_cache.batch);
    s->output_cache = (struct gg_output_cache){ .on = false };
}

static enum gguf_status make_room(struct gguf_session *s, size_t n_rows,
                                  struct gguf_error *err)
{
    struct gg_output_cache *m = &s->output_cache;
    const size_t row = s->model->hp.n_embd * sizeof *m->x;
    if (m->n == m->cap) {
        struct gg_output_cache_batch *more = gg_mem_grow(
            s->allocator, m->batch, &m->cap, sizeof *more, m->n + 1, err);
        if (!more)
            return GGUF_E_NOMEM;
        m->batch = more;
    }
    if (m->n_rows + n_rows > m->cap_rows) {
        float *more = gg_mem_grow(s->allocator, m->x, &m->cap_rows, row,
                                  m->n_rows + n_rows, err);
        if (!more)
            return GGUF_E_NOMEM;
        m->x = more;
    }
    return GGUF_OK;
}

enum gguf_status gg_output_cache_store(struct gguf_session *s,
                                       struct gguf_error *err)
{
    struct gg_output_cache *m = &s->output_cache;
    const size_t n_embd = s->model->hp.n_embd;
    GG_TRY(make_room(s, s->n_out, err));
    m->batch[m->n++] =
        (struct gg_output_cache_batch){ m->n_rows, s->n_out, s->wide };
    if (s->n_out)
        memcpy(m->x + m->n_rows * n_embd, s->out,
               s->n_out * n_embd * sizeof *m->x);
    m->n_rows += s->n_out;
    return GGUF_OK;
}

enum gguf_status gg_output_cache_load(struct gguf_session *s,
                                      struct gguf_error *err)
{
    struct gg_output_cache *m = &s->output_cache;
    const size_t n_embd = s->model->hp.n_embd;
    if (m->next == m->n)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the outputs of %zu batches are kept, another one was asked for",
            m->n);
    const struct gg_output_cache_batch *b = &m->batch[m->next++];
    GG_TRY(gg_session_reserve_outputs(s, b->n, err));
    gg_embed_clear(&s->embed);
    if (b->n)
        memcpy(s->out, m->x + b->row * n_embd, b->n * n_embd * sizeof *m->x);
    s->n_out = b->n;
    s->wide = b->wide;
    s->out_encoded = false;
    return GGUF_OK;
}
