/* decode.c - a batch through the model, one micro-batch after another */
#include "config.h"
#include "run/session.h"

#include "base/params.h"

/* The states of a pass to their places among the outputs. */
static enum gguf_status get_outputs(struct gguf_session *s,
                                    struct gguf_error *err)
{
    const size_t n_embd = s->model->hp.n_embd, row = n_embd * sizeof *s->out;
    for (uint32_t k = 0; k < s->ubatch.n_out; k++) {
        const uint32_t to = gg_ubatch_output(&s->ubatch, &s->plan, k);
        GG_TRY(gguf_tensor_get(s->states, s->out + to * n_embd,
                               (uint64_t)k * row, row, err));
    }
    return GGUF_OK;
}

static enum gguf_status run_pass(struct gguf_session *s,
                                 struct gguf_error *err)
{
    GG_TRY(gg_session_graph(s, &s->ubatch.shape, err));
    GG_TRY(gg_session_set_inputs(s, err));
    GG_TRY(gg_session_compute(s, s->sched, s->pass.graph, err));
    return get_outputs(s, err);
}

enum gguf_status gguf_session_decode(struct gguf_session *s,
                                     const struct gguf_batch *batch,
                                     struct gguf_error *err)
{
    struct gguf_batch own = GGUF_BATCH_INIT;
    GG_TRY(gg_params_take(&own, sizeof own, batch, "gguf_batch", err));
    batch = &own;
    /* where nothing is kept a sequence is what the batch has of it, and all of
     * it is computed at once */
    const bool whole = gg_model_is_whole(s->model);
    const uint32_t most = whole ? GG_MIN(s->n_ctx, s->n_ubatch) : s->n_ctx;
    GG_TRY(gg_batch_check(batch, s->model->hp.n_vocab, s->n_seq, err));
    const enum gguf_status room = gg_batch_room(&s->plan, batch->n, err);
    if (room != GGUF_OK) {
        s->n_out = 0;
        return room;
    }
    GG_TRY(
        gg_batch_sort(&s->plan, batch, whole ? NULL : &s->cells, most, err));
    GG_TRY(gg_session_out_room(s, s->plan.n_out, err));
    s->n_out = 0;
    for (uint32_t q = 0; whole && q < s->n_seq; q++)
        if (gg_batch_n_tok(&s->plan, q))
            gg_cells_remove(&s->cells, q, 0, -1);
    gg_ubatch_start(&s->ubatch, batch->n < s->n_wide ? 1 : s->n_wide);
    while (gg_ubatch_next(&s->ubatch, &s->plan))
        if (!whole || s->ubatch.n_out)
            GG_TRY(run_pass(s, err));
    s->n_out = s->plan.n_out;
    s->wide = batch->n >= s->n_wide;
    return GGUF_OK;
}
