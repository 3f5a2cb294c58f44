/* SPDX-License-Identifier: MIT */
/* rows.c - saving logits or states of token ids */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"

#include <stdlib.h>
#include <string.h>

/* Smallest batch in tokens. --batch-size must not change digits, and a shorter
 * batch may sum in another order (gguf/session.h). */
enum { LEAST_PIECE = 64 };

/* Get the rows first to first + n - 1 of the last batch. */
static enum gguf_status get_rows(struct eval *e, size_t first, size_t n,
                                 const float **rows)
{
    return e->model.info.has_logits
               ? gguf_session_logits(e->model.session, first, n, rows, &e->err)
               : gguf_session_states(e->model.session, first, n, rows,
                                     &e->err);
}

static bool save_outputs(struct eval *e)
{
    const struct gguf_model_info *m = &e->model.info;
    const size_t width = m->has_logits ? m->n_vocab : m->n_embd;
    const size_t n = gguf_session_n_outputs(e->model.session);
    const size_t most = gguf_session_max_logits(e->model.session);
    for (size_t first = 0, k; first < n; first += k) {
        const float *rows;
        k = n - first < most ? n - first : most;
        if (get_rows(e, first, k, &rows) != GGUF_OK)
            return eval_fail(e, e->model.path);
        for (size_t i = 0; i < k; i++)
            if (!eval_write_row(e, rows + i * width, width,
                                m->has_logits ? "logit" : "state", "token",
                                e->n_rows))
                return false;
        progress_report(&e->run.bar, e->n_rows, e->ids.n);
    }
    return true;
}

/* Number of tokens of the next batch, if n are left. */
static size_t choose_batch_size(const struct eval *e, size_t n)
{
    const size_t n_batch = e->o->ev.n_batch;
    const size_t most = n_batch > LEAST_PIECE ? n_batch : LEAST_PIECE;
    return e->model.info.is_whole || n < most + LEAST_PIECE ? n : most;
}

/* In models with encoder and decoder, give the ids to the encoder first. */
static bool encode_first(struct eval *e)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = e->ids.n;
    b.token = e->ids.id;
    return !e->model.info.encodes_first ||
           gguf_session_encode(e->model.session, &b, &e->err) == GGUF_OK ||
           eval_fail(e, e->model.path);
}

static bool save_rows(struct eval *e)
{
    bool *all = msg_must(malloc(e->ids.n * sizeof *all));
    memset(all, 1, e->ids.n);
    bool good = encode_first(e);
    for (size_t i = 0, n; good && i < e->ids.n; i += n) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        n = choose_batch_size(e, e->ids.n - i);
        b.n = n;
        b.token = e->ids.id + i;
        b.want = all;
        good = gguf_session_decode(e->model.session, &b, &e->err) == GGUF_OK
                   ? save_outputs(e)
                   : eval_fail(e, e->model.path);
    }
    free(all);
    return good;
}

bool eval_rows(struct eval *e)
{
    const struct gguf_model_info *m = &e->model.info;
    const struct ev_options *o = &e->o->ev;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    sp.n_seq = 1;
    sp.n_ubatch = o->n_batch < o->n_ubatch ? o->n_batch : o->n_ubatch;
    if (m->is_whole || m->encodes_first)
        sp.n_ubatch = (uint32_t)e->ids.n; /* checked: at most -c */
    return eval_begin_session(e, &sp) &&
           eval_begin_rows(e, "saving", "tokens") &&
           eval_end_rows(e, save_rows(e));
}
