/* scan.c - a text through a model: chunks, sequences, batches, rows
 *
 * Chunks are sequences of the session, as many at a time as go through the
 * model together: a group. Its logits are computed in as large pieces as the
 * session gives, which are handed on chunk by chunk.
 */
#include "config.h"
#include "eval/nll.h"

#include "base/mem.h"
#include "base/params.h"
#include "gguf/eval.h"
#include "run/session.h"

struct gguf_scan {
    const struct gguf_scan_params *p;
    struct gguf_scan_info info;
    const gguf_token *text;
    gguf_token bos; /* or GGUF_TOKEN_NONE: none is put in */
    struct gguf_sink *sinks;
    size_t n_sinks, n_begun;

    uint32_t group;    /* chunks that are computed together, at most */
    gguf_token *token; /* their batch: n_ctx * group each */
    int32_t *seq;
    uint8_t *want;

    bool wants_rows; /* some sink does */
    double *nll;     /* [n_rows], of the rows at hand */
    bool has_nll;
};

/* ---- setting up ---- */

static enum gguf_status check(const struct gguf_session *s, size_t n,
                              const struct gguf_scan_params *p,
                              struct gguf_error *err)
{
    if (!s)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a scan needs a session");
    if (p->n_ctx < 2 || p->n_ctx > gguf_session_n_ctx(s))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunks of %" PRIu32
                            " tokens: must be 2 to %" PRIu32,
                            p->n_ctx, gguf_session_n_ctx(s));
    if (p->first != GGUF_SCAN_HALF && p->first > p->n_ctx - 2)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "rows from position %" PRIu32
                            " of chunks of %" PRIu32
                            " tokens: must be 0 to %" PRIu32,
                            p->first, p->n_ctx, p->n_ctx - 2);
    if (n < p->n_ctx)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the text has %zu tokens, a chunk %" PRIu32, n,
                            p->n_ctx);
    if (p->first_chunk >= n / p->n_ctx)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the first chunk is %zu, the text has %zu",
                            p->first_chunk, n / p->n_ctx);
    return GGUF_OK;
}

static void plan(struct gguf_scan *j, struct gguf_session *s, size_t n)
{
    const struct gguf_scan_params *p = j->p;
    const struct gguf_vocab *v = gguf_model_vocab(gguf_session_model(s));
    struct gguf_scan_info *info = &j->info;
    info->session = s;
    info->n_ctx = p->n_ctx;
    info->n_vocab = gguf_model_get_info(gguf_session_model(s))->n_vocab;
    /* half of 2 or 3 tokens is the last but one at most, too */
    info->first = p->first == GGUF_SCAN_HALF
                      ? GG_MIN(p->n_ctx / 2, p->n_ctx - 2)
                      : p->first;
    info->n_rows = p->n_ctx - info->first - 1;
    info->n_chunks = n / p->n_ctx;
    info->begin = p->first_chunk;
    info->end = info->n_chunks;
    if (p->max_chunks && p->max_chunks < info->end - info->begin)
        info->end = info->begin + p->max_chunks;
    j->bos = gguf_vocab_add_bos(v) ? gguf_vocab_special(v, GGUF_SPECIAL_BOS)
                                   : GGUF_TOKEN_NONE;
    /* those that go through the model in one pass: more would only wait */
    j->group = gguf_session_n_ubatch(s) / p->n_ctx;
    j->group = GG_MAX(1, GG_MIN(j->group, gguf_session_n_seq(s)));
    if (j->group > info->end - info->begin)
        j->group = (uint32_t)(info->end - info->begin);
}

static enum gguf_status setup(struct gguf_scan *j,
                              const struct gguf_sink *const *sinks, size_t n,
                              struct gguf_error *err)
{
    const struct gguf_allocator *a = j->info.session->allocator;
    const uint64_t n_tok = (uint64_t)j->info.n_ctx * j->group;
    j->token = gg_mem_alloc_zero(a, n_tok, sizeof *j->token);
    j->seq = gg_mem_alloc_zero(a, n_tok, sizeof *j->seq);
    j->want = gg_mem_alloc_zero(a, n_tok, sizeof *j->want);
    j->nll = gg_mem_alloc_zero(a, j->info.n_rows, sizeof *j->nll);
    j->sinks = gg_mem_alloc_zero(a, GG_MAX(n, 1), sizeof *j->sinks);
    if (!j->token || !j->seq || !j->want || !j->nll || !j->sinks)
        return gg_error_set_nomem(err, (size_t)n_tok * sizeof *j->token);
    for (size_t i = 0; i < n; i++) {
        if (!sinks[i])
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "sink %zu of %zu is NULL", i + 1, n);
        j->sinks[i] = (struct gguf_sink)GGUF_SINK_INIT;
        GG_TRY(gg_params_take(&j->sinks[i], sizeof *j->sinks, sinks[i],
                              "gguf_sink", err));
        j->wants_rows = j->wants_rows || j->sinks[i].rows;
    }
    j->n_sinks = n;
    return GGUF_OK;
}

/* ---- sinks ---- */

/* What sink i returned; of those that say nothing in err, that much. */
static enum gguf_status said(const struct gguf_scan *j, size_t i,
                             enum gguf_status st, struct gguf_error *err)
{
    if (st == GGUF_OK || (err->status == st && err->message[0]))
        return st;
    return gg_error_set(err, st, GGUF_NO_OFFSET, "sink %zu of %zu: %s", i + 1,
                        j->n_sinks, gguf_status_string(st));
}

static enum gguf_status begin(struct gguf_scan *j, struct gguf_error *err)
{
    for (; j->n_begun < j->n_sinks; j->n_begun++) {
        const struct gguf_sink *s = &j->sinks[j->n_begun];
        if (s->begin)
            GG_TRY(said(j, j->n_begun, s->begin(s->user, &j->info, err), err));
    }
    return GGUF_OK;
}

static enum gguf_status hand_rows(struct gguf_scan *j,
                                  const struct gguf_scan_rows *rows,
                                  struct gguf_error *err)
{
    j->has_nll = false;
    for (size_t i = 0; i < j->n_sinks; i++) {
        const struct gguf_sink *s = &j->sinks[i];
        if (s->rows)
            GG_TRY(said(j, i, s->rows(s->user, rows, err), err));
    }
    return GGUF_OK;
}

static enum gguf_status end_chunk(struct gguf_scan *j, size_t chunk,
                                  struct gguf_error *err)
{
    for (size_t i = 0; i < j->n_sinks; i++) {
        const struct gguf_sink *s = &j->sinks[i];
        if (s->chunk)
            GG_TRY(said(j, i, s->chunk(s->user, chunk, err), err));
    }
    return GGUF_OK;
}

static enum gguf_status end(struct gguf_scan *j, enum gguf_status st,
                            struct gguf_error *err)
{
    struct gguf_error later; /* of no interest after the first */
    for (size_t i = 0; i < j->n_begun; i++) {
        const struct gguf_sink *s = &j->sinks[i];
        if (!s->end)
            continue;
        if (st != GGUF_OK)
            s->end(s->user, st, &later);
        else
            st = said(j, i, s->end(s->user, st, err), err);
    }
    return st;
}

const double *gguf_scan_nll(const struct gguf_scan_rows *rows)
{
    struct gguf_scan *j = rows->scan;
    if (!j->has_nll)
        gg_nll_rows(j->p->pool, rows->logits, rows->n_vocab, rows->n,
                    rows->token + rows->first + 1, j->nll);
    j->has_nll = true;
    return j->nll;
}

/* ---- a group of chunks ---- */

static enum gguf_status decode(struct gguf_scan *j, size_t chunk, uint32_t n,
                               struct gguf_error *err)
{
    const struct gguf_scan_info *info = &j->info;
    const uint32_t n_ctx = info->n_ctx;
    size_t k = 0;
    for (uint32_t q = 0; q < n; q++) {
        const gguf_token *text = j->text + (chunk + q) * n_ctx;
        for (uint32_t i = 0; i < n_ctx; i++, k++) {
            j->token[k] = i || j->bos == GGUF_TOKEN_NONE ? text[i] : j->bos;
            j->seq[k] = (int32_t)q;
            j->want[k] = i >= info->first && i + 1 < n_ctx;
        }
    }
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = k;
    b.token = j->token;
    b.seq = j->seq;
    b.want = j->want;
    GG_TRY(gguf_session_clear(info->session, err));
    return gguf_session_decode(info->session, &b, err);
}

/* Hand on n rows of the group that begins with that chunk, from row at on. */
static enum gguf_status hand_on(struct gguf_scan *j, size_t chunk, size_t at,
                                size_t n, const float *logits,
                                struct gguf_error *err)
{
    const struct gguf_scan_info *info = &j->info;
    for (size_t end = at + n; at < end; at += n) {
        const uint32_t row = (uint32_t)(at % info->n_rows);
        n = GG_MIN(info->n_rows - row, end - at);
        const struct gguf_scan_rows rows = {
            .scan = j,
            .chunk = chunk + at / info->n_rows,
            .token = j->text + (chunk + at / info->n_rows) * info->n_ctx,
            .first = info->first + row,
            .n = (uint32_t)n,
            .n_vocab = info->n_vocab,
            .logits = logits,
        };
        GG_TRY(hand_rows(j, &rows, err));
        if (row + n == info->n_rows)
            GG_TRY(end_chunk(j, rows.chunk, err));
        logits += n * info->n_vocab;
    }
    return GGUF_OK;
}

static enum gguf_status report(const struct gguf_scan *j, size_t chunk,
                               struct gguf_error *err)
{
    const uint64_t n_ctx = j->info.n_ctx, first = j->info.begin;
    if (j->p->progress && j->p->progress(j->p->user, (chunk - first) * n_ctx,
                                         (j->info.end - first) * n_ctx))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* The logits of n chunks that were decoded, or only that they were. */
static enum gguf_status hand_group(struct gguf_scan *j, size_t chunk,
                                   uint32_t n, struct gguf_error *err)
{
    struct gguf_session *s = j->info.session;
    const size_t all = (size_t)n * j->info.n_rows;
    const size_t most = gguf_session_max_logits(s);
    for (size_t i = 0; j->wants_rows && i < all; i += most) {
        const size_t rows = GG_MIN(most, all - i);
        const float *logits;
        GG_TRY(gguf_session_logits(s, i, rows, &logits, err));
        GG_TRY(hand_on(j, chunk, i, rows, logits, err));
    }
    for (uint32_t q = 0; !j->wants_rows && q < n; q++)
        GG_TRY(end_chunk(j, chunk + q, err));
    return GGUF_OK;
}

static enum gguf_status scan(struct gguf_scan *j, struct gguf_error *err)
{
    size_t chunk = j->info.begin;
    GG_TRY(begin(j, err));
    GG_TRY(report(j, chunk, err));
    while (chunk < j->info.end) {
        const uint32_t n =
            (uint32_t)GG_MIN((size_t)j->group, j->info.end - chunk);
        GG_TRY(decode(j, chunk, n, err));
        GG_TRY(hand_group(j, chunk, n, err));
        chunk += n;
        GG_TRY(report(j, chunk, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_scan_run(struct gguf_session *session,
                               const gguf_token *token, size_t n,
                               const struct gguf_scan_params *params,
                               const struct gguf_sink *const *sinks,
                               size_t n_sinks, struct gguf_error *err)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct gguf_error own; /* sinks have one in any case */
    err = err ? err : &own;
    gguf_error_clear(err);
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_scan_params", err));
    GG_TRY(check(session, n, &p, err));
    const struct gguf_allocator *a = session->allocator;
    struct gguf_scan j = { .p = &p, .text = token };
    plan(&j, session, n);
    enum gguf_status st = setup(&j, sinks, n_sinks, err);
    if (st == GGUF_OK)
        st = end(&j, scan(&j, err), err);
    const enum gguf_status cleared =
        gguf_session_clear(session, st == GGUF_OK ? err : NULL);
    st = st == GGUF_OK ? cleared : st;
    gg_mem_free(a, j.token);
    gg_mem_free(a, j.seq);
    gg_mem_free(a, j.want);
    gg_mem_free(a, j.nll);
    gg_mem_free(a, j.sinks);
    return st;
}
