/* SPDX-License-Identifier: MIT */
/* first_fault.c - find the first result of a text that is not finite */
#include "config.h"
#include "eval/first_fault.h"

#include "base/compiler.h"
#include "base/error.h"
#include "run/session_int.h"

#include <stdio.h>

/* Chunk and position of an output of a place. */
static struct gg_window output_at(const struct gg_first_fault_place *p,
                                  size_t row, size_t *chunk, uint64_t *pos)
{
    struct gg_window w = gg_window_at(p->windows, *chunk);
    w.first = p->all ? 0 : w.first;
    while (!p->all && row >= w.n_rows &&
           *chunk + 1 < gg_window_count(p->windows)) {
        row -= w.n_rows;
        w = gg_window_at(p->windows, ++*chunk);
    }
    *pos = w.first + row;
    return w;
}

enum gguf_status gg_first_fault_locate(const struct gg_first_fault_place *p,
                                       size_t model, enum gguf_status st,
                                       struct gguf_error *err)
{
    const struct gguf_session_fault *found =
        gguf_session_fault(p->session[model]);
    char text[GGUF_SESSION_FAULT_TEXT], who[32] = "";
    if (st != GGUF_E_NONFINITE || !found)
        return st;
    struct gguf_session_fault f = *found;
    size_t chunk = p->chunk + (size_t)GG_MAX(f.seq, 0);
    uint64_t pos = (uint64_t)f.pos;
    struct gg_window w = gg_window_at(p->windows, chunk);
    if (p->n_models > 1)
        snprintf(who, sizeof who, "model %zu: ", model + 1);
    if (f.row >= 0)
        w = output_at(p, p->at + (size_t)f.row, &chunk, &pos);
    else if (f.seq < 0)
        return gg_error_set(err, st, GGUF_NO_OFFSET, "%schunk %zu: %s", who,
                            chunk + 1,
                            gguf_session_fault_text(&f, text, sizeof text));
    f.seq = f.pos = -1;
    f.row = -1;
    return gg_error_set(err, st, GGUF_NO_OFFSET,
                        "%schunk %zu, position %" PRIu64 " (token %" PRIu64
                        " of the text): %s",
                        who, chunk + 1, pos,
                        w.begin + pos -
                            gg_window_text_begin(p->windows, w.text),
                        gguf_session_fault_text(&f, text, sizeof text));
}

/* Decode the whole batch again, and compute its logits. */
static enum gguf_status decode_again(struct gguf_session *s,
                                     const struct gguf_batch *batch,
                                     struct gg_first_fault_place *p,
                                     struct gguf_error *err)
{
    const float *logits;
    GG_TRY(gguf_session_clear(s, err));
    GG_TRY(gguf_session_decode(s, batch, err));
    const size_t n = gguf_session_n_outputs(s);
    const size_t most = gguf_session_max_logits(s);
    for (p->at = 0; p->at < n; p->at += most)
        GG_TRY(gguf_session_logits(s, p->at, GG_MIN(most, n - p->at), &logits,
                                   err));
    return GGUF_OK;
}

static void find_cause(const struct gg_first_fault_place *p, size_t model,
                       const struct gguf_batch *batch, struct gguf_error *err)
{
    struct gguf_session *s = p->session[model];
    const struct gguf_session_graph_callback on_graph = s->on_graph;
    struct gg_first_fault_place place = *p;
    struct gguf_error where;
    const struct gguf_error before = *err;
    if (s->finite_check.on)
        return; /* the check was on and found nothing */
    s->on_graph.fn = NULL;
    s->finite_check.on = true;
    enum gguf_status st = decode_again(s, batch, &place, &where);
    st = gg_first_fault_locate(&place, model, st, &where);
    s->finite_check.on = false;
    s->on_graph = on_graph;
    if (st == GGUF_E_NONFINITE && gguf_session_fault(s))
        (void)gg_error_set(err, before.status, before.offset, "%s; %s",
                           before.message, where.message);
}

void gg_first_fault_add_cause(const struct gg_first_fault_place *p,
                              const struct gguf_batch *batch,
                              struct gguf_error *err)
{
    for (size_t i = 0; i < p->n_models; i++)
        find_cause(p, i, batch, err);
}
