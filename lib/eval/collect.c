/* SPDX-License-Identifier: MIT */
/* collect.c - collect importance data, chunk by chunk */
#include "config.h"
#include "eval/collect_int.h"

#include "base/params.h"
#include "base/str.h"
#include "run/session_int.h"

#include <string.h>

enum { DEFAULT_CTX = 512 }; /* tokens of a chunk */

/* ---- objects ---- */

static struct gguf_str entry_name(const void *user, uint32_t id)
{
    return gg_str_z(((const struct gguf_collect *)user)->entries[id]->name);
}

/* Join the texts of both lists: "+TEXT\n" and "-TEXT\n". */
static enum gguf_status make_filter(struct gguf_collect *c,
                                    const struct gguf_collect_params *p,
                                    struct gguf_error *err)
{
    size_t size = 1;
    for (size_t i = 0; i < p->n_include + p->n_exclude; i++) {
        const char *text =
            i < p->n_include ? p->include[i] : p->exclude[i - p->n_include];
        if (!text || strchr(text, '\n'))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "a part of a name must be one line");
        size += strlen(text) + 2;
    }
    char *at = gg_mem_arena_alloc(&c->arena, size);
    if (!at)
        return gg_error_set_nomem(err, size);
    c->filter = at;
    for (size_t i = 0; i < p->n_include + p->n_exclude; i++) {
        const bool in = i < p->n_include;
        const char *text = in ? p->include[i] : p->exclude[i - p->n_include];
        const size_t n = strlen(text);
        *at++ = in ? '+' : '-';
        memcpy(at, text, n);
        at[n] = '\n';
        at += n + 1;
    }
    *at = 0;
    return GGUF_OK;
}

static enum gguf_status create_collect(struct gguf_collect **out,
                                       const struct gguf_allocator *a,
                                       uint32_t n_ctx, bool output,
                                       struct gguf_error *err)
{
    *out = NULL;
    struct gguf_collect *c = gg_mem_alloc_zero(a, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    c->allocator = a;
    c->n_ctx = n_ctx;
    c->output = output;
    gg_mem_arena_init(&c->arena, a);
    const enum gguf_status st =
        gg_index_init(&c->index, a, 0, entry_name, c, err);
    if (st == GGUF_OK)
        *out = c;
    else
        gguf_collect_destroy(c);
    return st;
}

enum gguf_status gguf_collect_create(struct gguf_collect **out,
                                     const struct gguf_collect_params *params,
                                     struct gguf_error *err)
{
    struct gguf_collect_params p = GGUF_COLLECT_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_collect_params", err));
    const struct gguf_str precision =
        gg_str_z(p.precision ? p.precision : "exact");
    struct gguf_collect *c;
    if (precision.size >= sizeof c->precision)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a precision of %zu bytes, limit is %zu",
                            precision.size, sizeof c->precision - 1);
    GG_TRY(create_collect(&c, p.allocator, p.n_ctx ? p.n_ctx : DEFAULT_CTX,
                          p.output, err));
    memcpy(c->precision, precision.data, precision.size);
    const enum gguf_status st = make_filter(c, &p, err);
    if (st == GGUF_OK)
        *out = c;
    else
        gguf_collect_destroy(c);
    return st;
}

enum gguf_status gg_collect_create_like(struct gguf_collect **out,
                                        const struct gguf_collect *c,
                                        struct gguf_error *err)
{
    GG_TRY(create_collect(out, c->allocator, c->n_ctx, c->output, err));
    memcpy((*out)->precision, c->precision, sizeof c->precision);
    (*out)->filter = c->filter;
    return GGUF_OK;
}

void gguf_collect_destroy(struct gguf_collect *c)
{
    if (!c)
        return;
    for (size_t k = 0; k < c->n_entries; k++)
        gg_mem_free(c->allocator, c->entries[k]->again);
    gg_index_fini(&c->index);
    gg_mem_arena_fini(&c->arena);
    gg_mem_free(c->allocator, c->entries);
    gg_mem_free(c->allocator, c->datasets);
    gg_mem_free(c->allocator, c->state);
    gg_mem_free(c->allocator, c);
}

/* ---- model and text ---- */

/* Set model and text of c, or check that they are the same as before. */
static enum gguf_status set_origin(const struct gg_collect_job *j, size_t n,
                                   struct gguf_error *err)
{
    struct gguf_collect *c = j->c;
    const size_t n_chunks = gg_window_count(&j->windows);
    struct gg_origin of;
    GG_TRY(gg_origin_compute(&of, j->s, j->text, n, err));
    if (c->n_chunks)
        return gg_origin_check(&c->of, &of, "importance data", err);
    c->state = gg_mem_alloc_zero(c->allocator, n_chunks, 1);
    if (!c->state)
        return gg_error_set_nomem(err, n_chunks);
    c->n_chunks = n_chunks;
    c->of = of;
    return GGUF_OK;
}

/* ---- a run ---- */

static enum gguf_status check_session(const struct gguf_collect *c,
                                      const struct gguf_session *s,
                                      struct gguf_error *err)
{
    if (!s || c->n_ctx > gguf_session_n_ctx(s))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunks of %" PRIu32
                            " tokens: the session has room for %" PRIu32,
                            c->n_ctx, s ? gguf_session_n_ctx(s) : 0);
    if (gg_model_encodes_first(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "architecture '%s' encodes a text and decodes "
                            "another: not supported, one text is expected",
                            s->model->arch->name);
    return GGUF_OK;
}

/* Cut the text into chunks, and select those of this run. */
static enum gguf_status cut_text(struct gg_collect_job *j, size_t n,
                                 struct gguf_error *err)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = j->c->n_ctx;
    p.first_chunk = j->run->first_chunk;
    p.max_chunks = j->run->max_chunks;
    return gg_window_init(&j->windows, &p, n, gguf_model_vocab(j->s->model),
                          j->c->allocator, err);
}

static enum gguf_status setup_job(struct gg_collect_job *j, size_t n,
                                  struct gguf_error *err)
{
    struct gguf_collect *c = j->c;
    GG_TRY(cut_text(j, n, err));
    GG_TRY(set_origin(j, n, err));
    if (j->run->dataset)
        GG_TRY(gg_collect_add_dataset(c, gg_str_z(j->run->dataset), err));
    for (size_t k = j->windows.begin; k < j->windows.end; k++)
        j->n_all += c->state[k] == GGUF_COLLECT_MISSING;
    j->token = gg_mem_alloc_zero(c->allocator, c->n_ctx, sizeof *j->token);
    j->want = gg_mem_alloc_zero(c->allocator, c->n_ctx, 1);
    if (!j->token || !j->want)
        return gg_error_set_nomem(err, c->n_ctx * sizeof *j->token);
    memset(j->want, 1, c->n_ctx);
    return GGUF_OK;
}

struct gguf_batch gg_collect_fill_batch(const struct gg_collect_job *j,
                                        size_t chunk, gguf_token *token)
{
    const struct gg_window w = gg_window_at(&j->windows, chunk);
    struct gguf_batch b = GGUF_BATCH_INIT;
    gg_window_copy(&j->windows, &w, j->text, token);
    b.n = w.n;
    b.token = token;
    b.want = j->want;
    return b;
}

enum gguf_status gg_collect_add_outputs(const struct gg_collect_job *j,
                                        struct gguf_error *err)
{
    const size_t n = j->c->n_ctx;
    const float *states;
    if (!j->c->output || !gg_model_has_logits(j->s->model))
        return GGUF_OK;
    GG_TRY(gguf_session_states(j->s, 0, n, &states, err));
    return gg_collect_states(j->w, states, n, err);
}

enum gguf_status gg_collect_report(const struct gg_collect_job *j,
                                   uint64_t n_tok, struct gguf_error *err)
{
    const uint64_t n_ctx = j->c->n_ctx;
    if (j->run->progress.fn &&
        j->run->progress.fn(j->run->progress.user, n_tok,
                            (uint64_t)j->n_all * n_ctx))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

enum gguf_status gg_collect_finish_chunk(struct gg_collect_job *j,
                                         size_t chunk, const char *bad,
                                         struct gguf_error *err)
{
    const struct gguf_collect_chunk through = {
        .chunk = chunk, .n_done = ++j->n_done, .n_all = j->n_all, .bad = bad
    };
    if (j->run->on_chunk.fn &&
        j->run->on_chunk.fn(j->run->on_chunk.user, &through))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return gg_collect_report(j, (uint64_t)j->n_done * j->c->n_ctx, err);
}

static enum gguf_status run_chunk(struct gg_collect_job *j, size_t chunk,
                                  struct gguf_error *err)
{
    const struct gguf_batch b = gg_collect_fill_batch(j, chunk, j->token);
    gg_collect_begin_chunk(j->c);
    GG_TRY(gguf_session_clear(j->s, err));
    GG_TRY(gguf_session_decode(j->s, &b, err));
    return gg_collect_add_outputs(j, err);
}

static enum gguf_status run_all(struct gg_collect_job *j,
                                struct gguf_error *err)
{
    struct gguf_collect *c = j->c;
    GG_TRY(gg_collect_report(j, 0, err));
    if (j->run->max_stored)
        return gg_collect_run_layered(j, err);
    for (size_t k = j->windows.begin; k < j->windows.end; k++) {
        if (c->state[k] != GGUF_COLLECT_MISSING)
            continue;
        GG_TRY(run_chunk(j, k, err));
        const char *bad = gg_collect_add_chunk(c, false);
        c->state[k] = bad ? GGUF_COLLECT_SKIPPED : GGUF_COLLECT_DONE;
        GG_TRY(gg_collect_finish_chunk(j, k, bad, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_collect_run(struct gguf_collect *c,
                                  struct gguf_session *session,
                                  const gguf_token *token, size_t n,
                                  const struct gguf_collect_run_params *run,
                                  struct gguf_error *err)
{
    struct gguf_collect_run_params r = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct gguf_error why;
    gguf_error_clear(&why);
    GG_TRY(gg_params_take(&r, sizeof r, run, "gguf_collect_run_params", err));
    GG_TRY(check_session(c, session, err));
    struct gg_collect_job j = {
        .c = c, .run = &r, .s = session, .text = token
    };
    enum gguf_status st = setup_job(&j, n, err);
    if (st == GGUF_OK)
        st = gg_collect_watch(&j.w, c, session, r.pool, err);
    if (st == GGUF_OK)
        st = run_all(&j, err);
    enum gguf_status watched = gg_collect_unwatch(j.w, &why);
    if (watched == GGUF_OK)
        watched = gguf_session_clear(session, &why);
    /* the callback's own reason says more than "cancelled" */
    if (watched != GGUF_OK && (st == GGUF_OK || st == GGUF_E_CANCELLED)) {
        st = watched;
        if (err)
            *err = why;
    }
    gg_window_fini(&j.windows);
    gg_mem_free(c->allocator, j.token);
    gg_mem_free(c->allocator, j.want);
    return st;
}

/* ---- accessors ---- */

static size_t count_chunks(const struct gguf_collect *c,
                           enum gguf_collect_state s)
{
    size_t n = 0;
    for (size_t k = 0; k < c->n_chunks; k++)
        n += c->state[k] == s;
    return n;
}

enum gguf_status gguf_collect_info(const struct gguf_collect *c,
                                   struct gguf_collect_info *out,
                                   struct gguf_error *err)
{
    const struct gguf_collect_info info = {
        .struct_size = sizeof info,
        .n_ctx = c->n_ctx,
        .output = c->output,
        .n_chunks = c->n_chunks,
        .n_done = count_chunks(c, GGUF_COLLECT_DONE),
        .n_skipped = count_chunks(c, GGUF_COLLECT_SKIPPED),
        .n_tensors = c->n_entries,
        .precision = c->precision,
    };
    return gg_params_give(out, &info, sizeof info, "gguf_collect_info", err);
}

enum gguf_collect_state gguf_collect_chunk_state(const struct gguf_collect *c,
                                                 size_t chunk)
{
    return chunk < c->n_chunks ? (enum gguf_collect_state)c->state[chunk]
                               : GGUF_COLLECT_MISSING;
}

static enum gguf_status export_entry(const struct gg_collect_entry *e,
                                     struct gguf_imatrix *im, float *sums,
                                     struct gguf_error *err)
{
    const uint64_t n = e->n_cols * e->n_mats;
    float *counts = sums + n;
    bool some = false;
    for (uint64_t i = 0; i < n; i++)
        sums[i] = (float)gg_collect_total_value(&e->total, i);
    for (uint64_t m = 0; m < e->n_mats; m++) {
        counts[m] = (float)e->count[m];
        some |= e->count[m] > 0;
    }
    return some ? gguf_imatrix_add(im, e->name, e->n_cols, e->n_mats, sums,
                                   counts, err)
                : GGUF_OK;
}

static enum gguf_status export_entries(const struct gguf_collect *c,
                                       struct gguf_imatrix *im,
                                       struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    for (size_t k = 0; k < c->n_entries && st == GGUF_OK; k++) {
        const struct gg_collect_entry *e = c->entries[k];
        size_t size = 0;
        if (gg_ckd_array(&size, e->n_mats, (size_t)(4 * e->n_cols + 4)))
            return gg_error_set_nomem(err, SIZE_MAX);
        float *values = gg_mem_alloc(c->allocator, size);
        st = values ? export_entry(e, im, values, err)
                    : gg_error_set_nomem(err, size);
        gg_mem_free(c->allocator, values);
    }
    for (size_t i = 0; i < c->n_datasets && st == GGUF_OK; i++)
        st = gguf_imatrix_add_chunks(im, c->datasets[i], 0, 0, err);
    return st == GGUF_OK
               ? gguf_imatrix_add_chunks(im, NULL,
                                         count_chunks(c, GGUF_COLLECT_DONE),
                                         c->n_ctx, err)
               : st;
}

enum gguf_status gguf_collect_result(const struct gguf_collect *c,
                                     struct gguf_imatrix **out,
                                     struct gguf_error *err)
{
    struct gguf_imatrix *im;
    *out = NULL;
    if (!count_chunks(c, GGUF_COLLECT_DONE))
        return count_chunks(c, GGUF_COLLECT_SKIPPED)
                   ? gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                  "every chunk has inputs that are NaN or "
                                  "infinite")
                   : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                  "nothing was collected");
    GG_TRY(gguf_imatrix_create(&im, c->allocator, err));
    enum gguf_status st = export_entries(c, im, err);
    if (st == GGUF_OK)
        st = gguf_imatrix_set_precision(im, c->precision, err);
    if (st == GGUF_OK)
        *out = im;
    else
        gguf_imatrix_destroy(im);
    return st;
}

/* ---- merging ---- */

static enum gguf_status check_parts(const struct gguf_collect *c,
                                    const struct gguf_collect *other,
                                    struct gguf_error *err)
{
    if (!other->n_chunks)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "a part that nothing was collected for");
    if (c->n_ctx != other->n_ctx || c->output != other->output)
        return gg_error_set(
            err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
            "importance data of another setting: chunks of %" PRIu32
            " tokens%s, not of %" PRIu32 "%s",
            other->n_ctx, other->output ? " with the output matrix" : "",
            c->n_ctx, c->output ? " with the output matrix" : "");
    if (strcmp(c->filter, other->filter) != 0)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "importance data of another setting: of other "
                            "matrices");
    if (strcmp(c->precision, other->precision) != 0)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "importance data of another setting: precision "
                            "%s, not %s",
                            other->precision, c->precision);
    if (!c->n_chunks)
        return GGUF_OK;
    GG_TRY(gg_origin_check(&c->of, &other->of, "importance data", err));
    for (size_t k = 0; k < c->n_chunks; k++)
        if (c->state[k] && other->state[k])
            return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                                "chunk %zu is in both parts", k);
    for (size_t k = 0; k < other->n_entries; k++) {
        const struct gg_collect_entry *b = other->entries[k];
        const struct gg_collect_entry *a =
            gg_collect_find(c, gg_str_z(b->name));
        if (a && (a->n_cols != b->n_cols || a->n_mats != b->n_mats))
            return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                                "'%s' has another shape in the other part",
                                a->name);
    }
    return GGUF_OK;
}

/* Give c, which has no data, the model and text of another object. */
static enum gguf_status copy_origin(struct gguf_collect *c,
                                    const struct gguf_collect *other,
                                    struct gguf_error *err)
{
    c->state = gg_mem_alloc_zero(c->allocator, other->n_chunks, 1);
    if (!c->state)
        return gg_error_set_nomem(err, other->n_chunks);
    c->n_chunks = other->n_chunks;
    c->of = other->of;
    return GGUF_OK;
}

enum gguf_status gg_collect_merge_entry(struct gguf_collect *c,
                                        const struct gg_collect_entry *b,
                                        struct gguf_error *err)
{
    struct gg_collect_entry *a = gg_collect_find(c, gg_str_z(b->name));
    if (!a)
        GG_TRY(gg_collect_add_entry(c, gg_str_z(b->name), b->n_cols, b->n_mats,
                                    &a, err));
    for (uint64_t i = 0; i < a->n_cols * a->n_mats; i++)
        gg_collect_add_digits(&a->total, i, b->total.high[i], b->total.low[i],
                              b->total.place[i]);
    for (uint64_t m = 0; m < a->n_mats; m++)
        a->count[m] += b->count[m];
    return GGUF_OK;
}

enum gguf_status gguf_collect_merge(struct gguf_collect *c,
                                    const struct gguf_collect *other,
                                    struct gguf_error *err)
{
    GG_TRY(check_parts(c, other, err));
    if (!c->n_chunks)
        GG_TRY(copy_origin(c, other, err));
    for (size_t k = 0; k < other->n_entries; k++)
        GG_TRY(gg_collect_merge_entry(c, other->entries[k], err));
    for (size_t i = 0; i < other->n_datasets; i++)
        GG_TRY(gg_collect_add_dataset(c, gg_str_z(other->datasets[i]), err));
    for (size_t k = 0; k < c->n_chunks; k++)
        c->state[k] |= other->state[k];
    return GGUF_OK;
}
