/* SPDX-License-Identifier: MIT */
/* rows.c - logits or states of token ids, saved row after row */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"

#include <gguf/outfile.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Smallest batch: a shorter one may sum in another order (gguf/session.h), and
 * --batch-size must not change digits. */
enum { LEAST_PIECE = 64 };

struct saving {
    struct eval *e;
    struct gguf_session *session;
    struct gguf_outfile *file;
    size_t n_done;
    uint8_t *bytes; /* one row, encoded */
    struct gguf_error err;
};

static bool fail_saving(const struct saving *s, const char *file)
{
    return progress_fail(&s->e->run.bar, file, &s->err);
}

static bool save_row(struct saving *s, const float *row)
{
    const size_t n = s->e->width;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(row[i]))
            continue;
        progress_clear(&s->e->run.bar);
        return msg_error(
            s->e->model.path, "%s %zu of token %zu is not a finite number",
            s->e->model.info.has_logits ? "logit" : "state", i, s->n_done);
    }
    eval_store_le(s->bytes, row, n);
    if (gguf_outfile_write(s->file, s->bytes, 4 * (uint64_t)n, &s->err) !=
        GGUF_OK)
        return fail_saving(s, s->e->o->logits);
    s->n_done++;
    return true;
}

/* Rows first to first + n - 1 of the batch that was computed last. */
static enum gguf_status rows_of(struct saving *s, size_t first, size_t n,
                                const float **rows)
{
    return s->e->model.info.has_logits
               ? gguf_session_logits(s->session, first, n, rows, &s->err)
               : gguf_session_states(s->session, first, n, rows, &s->err);
}

static bool save_outputs(struct saving *s)
{
    const size_t n = gguf_session_n_outputs(s->session);
    const size_t most = gguf_session_max_logits(s->session);
    for (size_t first = 0, k; first < n; first += k) {
        const float *rows;
        k = n - first < most ? n - first : most;
        if (rows_of(s, first, k, &rows) != GGUF_OK)
            return fail_saving(s, s->e->model.path);
        for (size_t i = 0; i < k; i++)
            if (!save_row(s, rows + i * s->e->width))
                return false;
        progress_report(&s->e->run.bar, s->n_done, s->e->ids.n);
    }
    return true;
}

/* Tokens of the next batch, when n are left. */
static size_t piece_size(const struct eval *e, size_t n)
{
    const size_t n_batch = e->o->ev.n_batch;
    const size_t most = n_batch > LEAST_PIECE ? n_batch : LEAST_PIECE;
    return e->model.info.is_whole || n < most + LEAST_PIECE ? n : most;
}

/* An encoder has the ids, too, if a decoder is to have them. */
static bool encode_first(struct saving *s)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = s->e->ids.n;
    b.token = s->e->ids.id;
    return !s->e->model.info.encodes_first ||
           gguf_session_encode(s->session, &b, &s->err) == GGUF_OK ||
           fail_saving(s, s->e->model.path);
}

static bool save_all(struct saving *s)
{
    const struct ev_ids *ids = &s->e->ids;
    uint8_t *all = msg_must(malloc(ids->n));
    memset(all, 1, ids->n);
    bool good = encode_first(s);
    for (size_t i = 0, n; good && i < ids->n; i += n) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        n = piece_size(s->e, ids->n - i);
        b.n = n;
        b.token = ids->id + i;
        b.want = all;
        if (gguf_session_decode(s->session, &b, &s->err) != GGUF_OK)
            good = fail_saving(s, s->e->model.path);
        good = good && save_outputs(s);
    }
    free(all);
    return good;
}

bool eval_rows(struct eval *e)
{
    const struct gguf_model_info *m = &e->model.info;
    const struct ev_options *o = &e->o->ev;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct saving s = { .e = e };
    sp.n_seq = 1;
    sp.n_ubatch = o->n_batch < o->n_ubatch ? o->n_batch : o->n_ubatch;
    if (m->is_whole || m->encodes_first)
        sp.n_ubatch = (uint32_t)e->ids.n; /* at most -c */
    if (!eval_start(e, &sp))
        return false;
    const double begin = progress_clock();
    s.session = e->model.session;
    e->n_rows = e->ids.n;
    e->width = m->has_logits ? m->n_vocab : m->n_embd;
    /* an old file is replaced when all rows are complete */
    if (gguf_outfile_open(&s.file, e->o->logits, 1, NULL, &s.err) != GGUF_OK)
        return fail_saving(&s, e->o->logits);
    s.bytes = msg_must(malloc(4 * e->width));
    progress_init(&e->run.bar, "saving", "tokens", o->quiet);
    bool good = save_all(&s);
    progress_clear(&e->run.bar);
    if (good && gguf_outfile_commit(s.file, &s.err) != GGUF_OK)
        good = fail_saving(&s, e->o->logits);
    e->run.seconds = progress_clock() - begin;
    e->run.timings = *gguf_session_get_timings(s.session);
    gguf_outfile_destroy(s.file);
    free(s.bytes);
    if (good)
        eval_print_rows(e);
    return good;
}
