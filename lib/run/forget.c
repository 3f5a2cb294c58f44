/* forget.c - what a session remembers, and has forgotten */
#include "config.h"
#include "run/session.h"

#include <inttypes.h>

uint32_t gguf_session_n_tokens(const struct gguf_session *s, uint32_t seq)
{
    return seq < s->n_seq ? s->cells.stream[seq].n_used : 0;
}

/* Of the memories of what was encoded, or of the others. */
static enum gguf_status forget(struct gguf_session *s, bool encoded,
                               uint32_t seq, uint32_t cell, uint32_t n,
                               bool all, struct gguf_error *err)
{
    for (unsigned i = 0; i < GG_N_MEMORIES; i++) {
        struct gg_memory *m = &s->memory[i];
        if (m->kind && m->kept && m->kind->encoded == encoded)
            GG_TRY(m->kind->forget(m, seq, cell, n, all, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_session_begin(struct gguf_session *s, uint32_t seq,
                                  struct gguf_error *err)
{
    GG_TRY(forget(s, false, seq, 0, s->cells.stream[seq].end, true, err));
    gg_cells_remove(&s->cells, seq, 0, -1);
    if (!gg_model_encodes_first(s->model))
        return GGUF_OK;
    GG_TRY(forget(s, true, seq, 0, s->encoded.stream[seq].end, true, err));
    gg_cells_remove(&s->encoded, seq, 0, -1);
    return GGUF_OK;
}

enum gguf_status gguf_session_remove(struct gguf_session *s, uint32_t seq,
                                     int32_t begin, int32_t end,
                                     struct gguf_error *err)
{
    if (seq >= s->n_seq)
        return GGUF_OK;
    const struct gg_run_stream *st = &s->cells.stream[seq];
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind && s->memory[i].kind->can_forget &&
            !s->memory[i].kind->can_forget(st, begin, end))
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "sequence %" PRIu32
                                ": a state cannot forget some "
                                "of its tokens",
                                seq);
    const uint32_t before = st->n_used;
    uint32_t gone = 0;
    for (uint32_t i = 0, n; i < st->end; i += n + 1) {
        n = 0; /* as many side by side as there are */
        while (i + n < st->end && gg_cells_between(st->pos[i + n], begin, end))
            n++;
        gone += n;
        if (n)
            GG_TRY(forget(s, false, seq, i, n, gone == before, err));
    }
    gg_cells_remove(&s->cells, seq, begin, end);
    return GGUF_OK;
}

enum gguf_status gguf_session_clear(struct gguf_session *s,
                                    struct gguf_error *err)
{
    for (uint32_t q = 0; q < s->n_seq; q++)
        GG_TRY(gg_session_begin(s, q, err));
    s->n_out = 0;
    gg_embed_clear(&s->embed);
    s->out_encoded = false;
    return GGUF_OK;
}
