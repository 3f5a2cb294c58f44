/* SPDX-License-Identifier: MIT */
/* scan.c - scans: chunks, sequences, batches, rows
 *
 * Chunks that are computed together, one for each sequence of a session, are a
 * group. Each model decodes the group, or the next piece of a long chunk. Its
 * logits are then computed, the most rows that every session gives at once,
 * and sent to the sinks chunk by chunk. For each model only the states of one
 * piece and one part of its logits are in memory, whatever the length of text
 * and chunk. */
#include "config.h"
#include "eval/scan.h"

#include "base/mem.h"
#include "base/params.h"
#include "eval/first_fault.h"
#include "eval/nll.h"
#include "run/session_int.h"

#include <string.h>

/* ---- setting up ---- */

static enum gguf_status check_models(struct gguf_session *const *s, size_t n,
                                     uint32_t n_ctx, struct gguf_error *err)
{
    if (!s || !n)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a scan needs a session");
    for (size_t i = 0; i < n; i++) {
        if (!s[i])
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "a scan needs a session");
        if (n_ctx < 2 || n_ctx > gguf_session_n_ctx(s[i]))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "chunks of %" PRIu32
                                " tokens: must be 2 to %" PRIu32,
                                n_ctx, gguf_session_n_ctx(s[i]));
        if (gg_model_encodes_first(s[i]->model))
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "architecture '%s' encodes a text and decodes "
                                "another: not supported, a scan has one text",
                                s[i]->model->arch->name);
        if (i)
            GG_TRY(gguf_scan_compare_vocab(gguf_session_model(s[0]),
                                           gguf_session_model(s[i]), err));
    }
    return GGUF_OK;
}

/* Choose the size of a group: chunks that every session computes in one pass,
 * since more chunks would only wait. A longer chunk is divided into pieces of
 * whole passes, at least 512 tokens, since few tokens are computed otherwise
 * than many. */
static void plan_group(struct gguf_scan *j)
{
    enum { LEAST_PIECE = 512 };
    size_t pass = 1;
    bool whole = false;
    j->group = UINT32_MAX;
    j->most = SIZE_MAX;
    for (size_t i = 0; i < j->n_models; i++) {
        const struct gguf_session *s = j->session[i];
        const uint32_t n = gguf_session_n_ubatch(s) / j->p->n_ctx;
        j->group = GG_MIN(j->group, GG_MIN(n, gguf_session_n_seq(s)));
        j->most = GG_MIN(j->most, gguf_session_max_logits(s));
        pass = GG_MAX(pass, gguf_session_n_ubatch(s));
        whole = whole || gg_model_needs_whole_sequence(s->model);
    }
    j->group = GG_MAX(1, j->group);
    if (j->group > j->info.end - j->info.begin)
        j->group = (uint32_t)(j->info.end - j->info.begin);
    j->piece = whole || j->group > 1 ? SIZE_MAX
                                     : (LEAST_PIECE + pass - 1) / pass * pass;
}

static enum gguf_status plan_scan(struct gguf_scan *j, size_t n,
                                  struct gguf_error *err)
{
    const struct gguf_scan_params *p = j->p;
    struct gguf_session *s = j->session[0];
    const struct gguf_vocab *v = gguf_model_vocab(gguf_session_model(s));
    struct gguf_scan_info *info = &j->info;
    GG_TRY(gg_window_init(&j->windows, p, n, v, s->allocator, err));
    j->span.allocator = s->allocator;
    j->span.vocab = v;
    info->session = s;
    info->sessions = j->session;
    info->n_models = j->n_models;
    info->params = p;
    info->n_vocab = gguf_model_info(gguf_session_model(s))->n_vocab;
    info->first = p->cut == GGUF_SCAN_CHUNKS ? j->windows.first : 0;
    info->n_rows = gg_window_max_rows(&j->windows);
    info->n_chunks = gg_window_count(&j->windows);
    info->begin = j->windows.begin;
    info->end = j->windows.end;
    info->text = j->text;
    info->text_end = j->windows.text_end;
    info->n_texts = j->windows.n_texts;
    for (size_t i = info->begin; i < info->end; i++) {
        const struct gg_window w = gg_window_at(&j->windows, i);
        j->n_tok += w.n;
        info->n_scored += w.n_rows;
    }
    plan_group(j);
    return GGUF_OK;
}

void gg_scan_free_batches(struct gguf_scan *j, const struct gguf_allocator *a)
{
    gg_mem_free(a, j->token);
    gg_mem_free(a, j->seq);
    gg_mem_free(a, j->want);
    gg_mem_free(a, j->batch);
    gg_mem_free(a, (void *)j->list);
}

enum gguf_status gg_scan_make_batches(struct gguf_scan *j,
                                      struct gguf_error *err)
{
    const struct gguf_allocator *a = j->info.session->allocator;
    const uint64_t n_tok = (uint64_t)j->p->n_ctx * j->group * j->n_groups;
    j->token = gg_mem_alloc_zero(a, n_tok, sizeof *j->token);
    j->seq = gg_mem_alloc_zero(a, n_tok, sizeof *j->seq);
    j->want = gg_mem_alloc_zero(a, n_tok, sizeof *j->want);
    j->batch = gg_mem_alloc_zero(a, j->n_groups, sizeof *j->batch);
    j->list = gg_mem_alloc_zero(a, j->n_groups, sizeof *j->list);
    if (!j->token || !j->seq || !j->want || !j->batch || !j->list)
        return gg_error_set_nomem(err, (size_t)n_tok * sizeof *j->token);
    return GGUF_OK;
}

static enum gguf_status setup_sinks(struct gguf_scan *j,
                                    const struct gguf_sink *const *sinks,
                                    size_t n, struct gguf_error *err)
{
    const struct gguf_allocator *a = j->info.session->allocator;
    GG_TRY(gg_scan_make_batches(j, err));
    j->nll = gg_mem_alloc_zero(a, j->info.n_rows * (uint64_t)j->n_models,
                               sizeof *j->nll);
    j->has_nll = gg_mem_alloc_zero(a, j->n_models, sizeof *j->has_nll);
    j->logits = gg_mem_alloc_zero(a, j->n_models, sizeof *j->logits);
    j->rows = gg_mem_alloc_zero(a, j->n_models, sizeof *j->rows);
    j->sinks = gg_mem_alloc_zero(a, GG_MAX(n, 1), sizeof *j->sinks);
    if (!j->nll || !j->has_nll || !j->logits || !j->rows || !j->sinks)
        return gg_error_set_nomem(err, j->info.n_rows * sizeof *j->nll);
    for (size_t i = 0; i < n; i++) {
        j->sinks[i] = (struct gguf_sink)GGUF_SINK_INIT;
        GG_TRY(gg_params_take(&j->sinks[i], sizeof *j->sinks, sinks[i],
                              "gguf_sink", err));
        j->wants_rows = j->wants_rows || j->sinks[i].rows;
    }
    j->n_sinks = n;
    for (size_t i = 0; i < j->n_models && j->wants_rows; i++)
        if (!gg_model_has_logits(j->session[i]->model))
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "architecture '%s' is an encoder: its states "
                                "are its result, tokens have no "
                                "probabilities",
                                j->session[i]->model->arch->name);
    return GGUF_OK;
}

/* ---- sinks ---- */

/* Status of sink i; a message is added if the sink set none. */
static enum gguf_status sink_status(const struct gguf_scan *j, size_t i,
                                    enum gguf_status st,
                                    struct gguf_error *err)
{
    if (st == GGUF_OK || (err->status == st && err->message[0]))
        return st;
    return gg_error_set(err, st, GGUF_NO_OFFSET, "sink %zu of %zu: %s", i + 1,
                        j->n_sinks, gguf_status_string(st));
}

static enum gguf_status begin_sinks(struct gguf_scan *j,
                                    struct gguf_error *err)
{
    for (; j->n_begun < j->n_sinks; j->n_begun++) {
        const struct gguf_sink *s = &j->sinks[j->n_begun];
        if (s->begin)
            GG_TRY(sink_status(j, j->n_begun, s->begin(s->user, &j->info, err),
                               err));
    }
    return GGUF_OK;
}

static enum gguf_status send_rows(struct gguf_scan *j,
                                  const struct gguf_scan_rows *rows,
                                  struct gguf_error *err)
{
    memset(j->has_nll, 0, j->n_models * sizeof *j->has_nll);
    for (size_t i = 0; i < j->n_sinks; i++) {
        const struct gguf_sink *s = &j->sinks[i];
        if (s->rows)
            GG_TRY(sink_status(j, i, s->rows(s->user, rows, err), err));
    }
    return GGUF_OK;
}

static enum gguf_status end_chunk(struct gguf_scan *j, size_t chunk,
                                  struct gguf_error *err)
{
    for (size_t i = 0; i < j->n_sinks; i++) {
        const struct gguf_sink *s = &j->sinks[i];
        if (s->chunk)
            GG_TRY(sink_status(j, i, s->chunk(s->user, chunk, err), err));
    }
    return GGUF_OK;
}

static enum gguf_status end_sinks(struct gguf_scan *j, enum gguf_status st,
                                  struct gguf_error *err)
{
    struct gguf_error later; /* failures after the first one are ignored */
    for (size_t i = 0; i < j->n_begun; i++) {
        const struct gguf_sink *s = &j->sinks[i];
        if (!s->end)
            continue;
        if (st != GGUF_OK)
            s->end(s->user, st, &later);
        else
            st = sink_status(j, i, s->end(s->user, st, err), err);
    }
    return st;
}

const double *gguf_scan_model_nll(const struct gguf_scan_rows *rows,
                                  size_t model)
{
    struct gguf_scan *j = rows->scan;
    double *nll = j->nll + model * j->info.n_rows;
    if (!j->has_nll[model])
        gg_nll_rows(j->p->pool, rows->logits_of[model], rows->n_vocab, rows->n,
                    rows->token + rows->first + 1, nll);
    j->has_nll[model] = true;
    return nll;
}

const double *gguf_scan_nll(const struct gguf_scan_rows *rows)
{
    return gguf_scan_model_nll(rows, 0);
}

enum gguf_status gguf_scan_count_text(const struct gguf_scan_rows *rows,
                                      uint64_t *n_bytes, uint64_t *n_words,
                                      struct gguf_error *err)
{
    struct gguf_scan *j = rows->scan;
    const size_t begin = gg_window_text_begin(&j->windows, rows->text);
    const size_t first = rows->at + rows->first + 1 - begin;
    j->span.n_bytes = j->span.n_words = 0;
    GG_TRY(gg_text_counter_add(&j->span, j->text + begin, first,
                               first + rows->n, err));
    *n_bytes = j->span.n_bytes;
    *n_words = j->span.n_words;
    return GGUF_OK;
}

/* ---- a group of chunks ---- */

void gg_scan_fill_batch(struct gguf_scan *j, size_t g, size_t chunk,
                        uint32_t n)
{
    const size_t begin = g * j->group * j->p->n_ctx;
    size_t k = begin;
    for (uint32_t q = 0; q < n; q++) {
        const struct gg_window w = gg_window_at(&j->windows, chunk + q);
        gg_window_copy(&j->windows, &w, j->text, j->token + k);
        for (uint32_t i = 0; i < w.n; i++, k++) {
            j->seq[k] = (int32_t)q;
            j->want[k] = i >= w.first && i - w.first < w.n_rows;
        }
    }
    j->batch[g] = (struct gguf_batch)GGUF_BATCH_INIT;
    j->batch[g].n = k - begin;
    j->batch[g].token = j->token + begin;
    j->batch[g].seq = j->seq + begin;
    j->batch[g].want = j->want + begin;
    j->list[g] = &j->batch[g];
}

/* Place of the group that begins with a chunk, from one of its outputs on. */
static struct gg_first_fault_place place_of(const struct gguf_scan *j,
                                            size_t chunk, size_t at)
{
    return (struct gg_first_fault_place){ .windows = &j->windows,
                                          .session = j->session,
                                          .n_models = j->n_models,
                                          .chunk = chunk,
                                          .at = at };
}

/* Find the cause of logits of a chunk that are not finite, which a sink has
 * reported. */
static enum gguf_status find_fault(struct gguf_scan *j, size_t chunk,
                                   enum gguf_status st, struct gguf_error *err)
{
    const struct gg_first_fault_place p = place_of(j, chunk, 0);
    if (st != GGUF_E_NONFINITE)
        return st;
    gg_scan_fill_batch(j, 0, chunk, 1);
    gg_first_fault_add_cause(&p, j->batch, err);
    return st;
}

/* Next piece of a filled group, after its first begin tokens. */
static struct gguf_batch piece_at(const struct gguf_scan *j, size_t begin)
{
    struct gguf_batch b = j->batch[0];
    const size_t left = b.n - begin;
    b.n = left / 2 < j->piece ? left : j->piece;
    b.token += begin;
    b.seq += begin;
    b.want += begin;
    return b;
}

/* Next row of a group to send. */
struct place {
    size_t chunk;
    uint32_t row;
};

/* Send the next n rows of logits, and move to the row after them. */
static enum gguf_status send_piece(struct gguf_scan *j, struct place *at,
                                   size_t n, struct gguf_error *err)
{
    const struct gguf_scan_info *info = &j->info;
    memcpy(j->rows, j->logits, j->n_models * sizeof *j->rows);
    for (size_t k; n; n -= k) {
        const struct gg_window w = gg_window_at(&j->windows, at->chunk);
        k = GG_MIN(w.n_rows - at->row, n);
        const struct gguf_scan_rows rows = {
            .scan = j,
            .chunk = at->chunk,
            .token = j->text + w.begin,
            .first = w.first + at->row,
            .n = (uint32_t)k,
            .n_vocab = info->n_vocab,
            .logits = j->rows[0],
            .n_models = j->n_models,
            .logits_of = j->rows,
            .text = w.text,
            .at = w.begin,
            .n_tokens = w.n,
        };
        GG_TRY(find_fault(j, rows.chunk, send_rows(j, &rows, err), err));
        at->row += (uint32_t)k;
        if (at->row == w.n_rows) {
            GG_TRY(end_chunk(j, at->chunk, err));
            *at = (struct place){ at->chunk + 1, 0 };
        }
        for (size_t i = 0; i < j->n_models; i++)
            j->rows[i] += k * info->n_vocab;
    }
    return GGUF_OK;
}

enum gguf_status gg_scan_report(const struct gguf_scan *j, uint64_t n_tok,
                                struct gguf_error *err)
{
    if (j->p->progress.fn &&
        j->p->progress.fn(j->p->progress.user, n_tok, j->n_tok))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* Compute and send the logits of n outputs, from number first of the group on.
 */
static enum gguf_status send_outputs(struct gguf_scan *j, size_t chunk,
                                     size_t first, size_t n, struct place *at,
                                     struct gguf_error *err)
{
    for (size_t i = 0; j->wants_rows && i < n; i += j->most) {
        const size_t rows = GG_MIN(j->most, n - i);
        const struct gg_first_fault_place p = place_of(j, chunk, first + i);
        for (size_t k = 0; k < j->n_models; k++)
            GG_TRY(gg_first_fault_locate(
                &p, k,
                gguf_session_logits(j->session[k], i, rows, &j->logits[k],
                                    err),
                err));
        GG_TRY(send_piece(j, at, rows, err));
    }
    return GGUF_OK;
}

/* Finish n chunks of a group from which no rows are sent. */
static enum gguf_status end_group(struct gguf_scan *j, size_t chunk,
                                  uint32_t n, struct gguf_error *err)
{
    for (uint32_t q = 0; !j->wants_rows && q < n; q++)
        GG_TRY(end_chunk(j, chunk + q, err));
    return GGUF_OK;
}

enum gguf_status gg_scan_send_group(struct gguf_scan *j, size_t chunk,
                                    uint32_t n, struct gguf_error *err)
{
    struct place at = { chunk, 0 };
    size_t all = 0;
    for (uint32_t q = 0; q < n; q++)
        all += gg_window_at(&j->windows, chunk + q).n_rows;
    GG_TRY(send_outputs(j, chunk, 0, all, &at, err));
    return end_group(j, chunk, n, err);
}

/* ---- all groups ---- */

/* Decode a piece with each model, and send its rows; first is the number of
 * rows in earlier pieces. */
static enum gguf_status run_piece(struct gguf_scan *j, size_t chunk,
                                  const struct gguf_batch *piece,
                                  size_t *first, struct place *at,
                                  struct gguf_error *err)
{
    const struct gg_first_fault_place p = place_of(j, chunk, *first);
    size_t n = 0;
    for (size_t i = 0; i < piece->n; i++)
        n += piece->want[i];
    for (size_t i = 0; i < j->n_models; i++)
        GG_TRY(gg_first_fault_locate(
            &p, i, gguf_session_decode(j->session[i], piece, err), err));
    GG_TRY(send_outputs(j, chunk, *first, n, at, err));
    *first += n;
    return GGUF_OK;
}

static enum gguf_status run_group(struct gguf_scan *j, size_t chunk,
                                  uint32_t n, struct gguf_error *err)
{
    struct place at = { chunk, 0 };
    size_t first = 0;
    gg_scan_fill_batch(j, 0, chunk, n);
    for (size_t i = 0; i < j->n_models; i++)
        GG_TRY(gguf_session_clear(j->session[i], err));
    for (size_t begin = 0; begin < j->batch[0].n;) {
        const struct gguf_batch piece = piece_at(j, begin);
        GG_TRY(run_piece(j, chunk, &piece, &first, &at, err));
        begin += piece.n;
        if (begin < j->batch[0].n)
            GG_TRY(gg_scan_report(j, j->n_done + begin, err));
    }
    return end_group(j, chunk, n, err);
}

uint32_t gg_scan_group_size(const struct gguf_scan *j, size_t chunk)
{
    return (uint32_t)GG_MIN((size_t)j->group, j->info.end - chunk);
}

static enum gguf_status scan_groups(struct gguf_scan *j,
                                    struct gguf_error *err)
{
    for (size_t chunk = j->info.begin; chunk < j->info.end;) {
        const uint32_t n = gg_scan_group_size(j, chunk);
        GG_TRY(run_group(j, chunk, n, err));
        chunk += n;
        j->n_done += j->batch[0].n;
        GG_TRY(gg_scan_report(j, j->n_done, err));
    }
    return GGUF_OK;
}

/* ---- the whole scan ---- */

static enum gguf_status run_scan(struct gguf_scan *j, size_t n,
                                 const struct gguf_sink *const *sinks,
                                 size_t n_sinks, struct gguf_error *err)
{
    const bool layered = j->p->max_stored != 0;
    j->n_groups = 1;
    GG_TRY(plan_scan(j, n, err));
    GG_TRY(setup_sinks(j, sinks, n_sinks, err));
    if (layered)
        GG_TRY(gg_scan_plan_layered(j, err));
    GG_TRY(begin_sinks(j, err));
    GG_TRY(gg_scan_report(j, 0, err));
    return layered ? gg_scan_run_layered(j, err) : scan_groups(j, err);
}

static void fini_scan(struct gguf_scan *j, const struct gguf_allocator *a)
{
    gg_scan_free_batches(j, a);
    gg_window_fini(&j->windows);
    gg_text_counter_fini(&j->span);
    gg_mem_free(a, j->nll);
    gg_mem_free(a, j->has_nll);
    gg_mem_free(a, j->logits);
    gg_mem_free(a, j->rows);
    gg_mem_free(a, j->sinks);
}

enum gguf_status gguf_scan_run_models(struct gguf_session *const *sessions,
                                      size_t n_models, const gguf_token *token,
                                      size_t n,
                                      const struct gguf_scan_params *params,
                                      const struct gguf_sink *const *sinks,
                                      size_t n_sinks, struct gguf_error *err)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct gguf_error own; /* sinks always get an error object */
    err = err ? err : &own;
    gguf_error_clear(err);
    GG_TRY(gg_window_take_params(&p, params, err));
    GG_TRY(gg_params_need_all(sessions, n_models, "session", err));
    GG_TRY(gg_params_need_all(sinks, n_sinks, "sink", err));
    GG_TRY(check_models(sessions, n_models, p.n_ctx, err));
    struct gguf_scan j = {
        .p = &p, .text = token, .session = sessions, .n_models = n_models
    };
    enum gguf_status st =
        end_sinks(&j, run_scan(&j, n, sinks, n_sinks, err), err);
    for (size_t i = 0; i < n_models; i++) {
        const enum gguf_status cleared =
            gguf_session_clear(sessions[i], st == GGUF_OK ? err : NULL);
        st = st == GGUF_OK ? cleared : st;
    }
    fini_scan(&j, sessions[0]->allocator);
    return st;
}

enum gguf_status gguf_scan_run(struct gguf_session *session,
                               const gguf_token *token, size_t n,
                               const struct gguf_scan_params *params,
                               const struct gguf_sink *const *sinks,
                               size_t n_sinks, struct gguf_error *err)
{
    return gguf_scan_run_models(&session, 1, token, n, params, sinks, n_sinks,
                                err);
}
