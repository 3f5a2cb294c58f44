/* SPDX-License-Identifier: MIT */
/* tune.c - the tuning of an output: see tune.h */
#include "config.h"
#include "calibrate/tune.h"
#include "calibrate/tune_pass.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "gguf/cpu.h"
#include "run/session_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNKS = 2,     /* chunks of a step */
    WARM_UP = 4,    /* steps with a smaller rate */
    WORK_FACTOR = 5 /* products for an element and a token: both models
                     * forwards, the quantized one again, two gradients */
};

/* Rates of the largest steps. They decline to a tenth. */
static const double rate_vectors = 1e-3, rate_blocks = 3e-4;

/* ---- tensors ---- */

struct tuning {
    struct gg_calibrate_job *j;
    struct gg_tune_tensor *tensor;       /* [n] */
    struct gg_calibrate_record **record; /* [n] */
    uint8_t **copy;                      /* [n] weights in memory */
    size_t n;
    size_t *chunk; /* [n_chunks] chunks with tokens that are not held out */
    size_t n_chunks;
    bool *used; /* [n_ctx] */
};

/* Model tensor of a record that can be tuned. NULL: it cannot. */
static struct gguf_tensor *find_weight(const struct gg_calibrate_job *j,
                                       const struct gg_calibrate_record *r,
                                       size_t *in_file)
{
    *in_file = gg_calibrate_find_in_file(j, r->result.name);
    const struct gguf_tensor *t = gguf_model_tensor(j->quantized, *in_file);
    if (!t || !gguf_tensor_is_contiguous(t) || !t->data)
        return NULL;
    const bool good =
        r->form ? gg_tune_tensor_has_scales(r->form) &&
                      t->ne[0] % r->form->block_len == 0
                : t->dtype == GGUF_DTYPE_F32 && gguf_tensor_n_rows(t) == 1;
    return good ? (struct gguf_tensor *)(uintptr_t)t : NULL;
}

/* Add a tensor, whose weight moves to memory of its own. */
static enum gguf_status add_tensor(struct tuning *u,
                                   struct gg_calibrate_record *r,
                                   struct gguf_error *err)
{
    const struct gg_calibrate_job *j = u->j;
    size_t i;
    struct gguf_tensor *w = find_weight(j, r, &i);
    const struct gguf_quant_tensor *q = gguf_quant_tensor(
        gguf_quant_improver_job(j->improver), r->result.tensor);
    if (!w || gguf_tensor_size(w) != q->to_size)
        return GGUF_OK;
    const size_t size = (size_t)q->to_size;
    uint8_t *copy = gg_mem_alloc(j->allocator, size + 1);
    if (!copy)
        return gg_error_set_nomem(err, size);
    memcpy(copy, w->data, size);
    w->data = copy;
    u->copy[u->n] = copy;
    u->record[u->n] = r;
    return gg_tune_tensor_init(
        &u->tensor[u->n++], w, r->form,
        r->form ? gguf_file_tensor_data(j->file, i) : NULL, j->allocator, err);
}

static enum gguf_status find_tensors(struct tuning *u, struct gguf_error *err)
{
    const struct gg_calibrate_job *j = u->j;
    const size_t n = j->n_records;
    u->tensor = gg_mem_alloc_zero(j->allocator, n, sizeof *u->tensor);
    u->record = gg_mem_alloc_zero(j->allocator, n,
                                  sizeof(struct gg_calibrate_record *));
    u->copy = gg_mem_alloc_zero(j->allocator, n, sizeof(uint8_t *));
    if (!u->tensor || !u->record || !u->copy)
        return gg_error_set_nomem(err, n * sizeof *u->tensor);
    for (size_t i = 0; i < n; i++)
        GG_TRY(add_tensor(u, &j->record[i], err));
    return GGUF_OK;
}

/* ---- chunks ---- */

/* Set u->used for a chunk. Returns the number of tokens that are not held out.
 */
static size_t find_used(struct tuning *u, size_t c)
{
    const struct gg_calibrate_text *x = &u->j->text;
    struct gg_heldout h;
    size_t n = 0;
    gg_heldout_init(&h, x->n_chunks * x->n_ctx, x->n_ctx, 1);
    for (size_t i = 0; i < x->n_ctx; i++) {
        u->used[i] = !gg_heldout_has(&h, c * x->n_ctx + i);
        n += u->used[i];
    }
    return n;
}

static enum gguf_status find_chunks(struct tuning *u, struct gguf_error *err)
{
    const struct gg_calibrate_text *x = &u->j->text;
    u->chunk =
        gg_mem_alloc_zero(u->j->allocator, x->n_chunks, sizeof *u->chunk);
    u->used = gg_mem_alloc_zero(u->j->allocator, x->n_ctx, sizeof *u->used);
    if (!u->chunk || !u->used)
        return gg_error_set_nomem(err, x->n_chunks * sizeof *u->chunk);
    for (size_t c = 0; c < x->n_chunks; c++)
        if (!x->bad[c] && find_used(u, c))
            u->chunk[u->n_chunks++] = c;
    return GGUF_OK;
}

/* Chunk k of all steps: places at equal distances, or all chunks in turn. */
static size_t choose_chunk(const struct tuning *u, size_t k)
{
    const size_t n = (size_t)u->j->p->tune_steps * CHUNKS;
    return u->chunk[n < u->n_chunks ? (size_t)((uint64_t)k * u->n_chunks / n)
                                    : k % u->n_chunks];
}

/* ---- sessions ---- */

/* Begin a session of the quantized model, whose weights have moved. */
static enum gguf_status open_streams(struct tuning *u, struct gguf_error *err)
{
    struct gg_calibrate_job *j = u->j;
    struct gg_calibrate_stream *s = &j->stream[GG_CALIBRATE_QUANTIZED];
    gguf_session_destroy(s->session);
    gguf_backend_destroy(s->backend);
    s->session = NULL;
    s->backend = NULL;
    return gg_calibrate_stream_open(j, s, err);
}

static void end_stages(struct gg_calibrate_job *j)
{
    for (unsigned i = 0; i < GG_LEN(j->stream); i++) {
        gg_stages_destroy(j->stream[i].stages);
        j->stream[i].stages = NULL;
    }
}

/* ---- steps ---- */

uint64_t gg_calibrate_tune_work(const struct gg_calibrate_job *j)
{
    const struct gguf_quant *q = gguf_quant_improver_job(j->improver);
    uint64_t n = 0;
    for (size_t i = 0; i < j->n_records; i++)
        n += gguf_quant_tensor(q, i)->n_elements;
    return n * j->text.n_ctx * WORK_FACTOR * CHUNKS * j->p->tune_steps;
}

/* Make step k. *good: all gradients were finite. */
static enum gguf_status make_step(struct tuning *u, struct gg_tune_pass *t,
                                  size_t k, bool *good, struct gguf_error *err)
{
    struct gg_calibrate_job *j = u->j;
    const double n = (double)j->p->tune_steps;
    const double rate =
        (1 - 0.9 * (double)k / n) * fmin(1, (double)(k + 1) / WARM_UP);
    size_t chunk[CHUNKS], n_tokens = 0;
    double sum;
    for (size_t i = 0; i < CHUNKS; i++) {
        chunk[i] = choose_chunk(u, k * CHUNKS + i);
        n_tokens += find_used(u, chunk[i]);
    }
    for (size_t i = 0; i < CHUNKS; i++) {
        find_used(u, chunk[i]);
        GG_TRY(gg_tune_pass_run(t, &j->text.batch[chunk[i]], u->used,
                                1 / (double)n_tokens, &sum, err));
        GG_TRY(gg_calibrate_add_progress(
            j, gg_calibrate_tune_work(j) / j->p->tune_steps / CHUNKS, err));
    }
    *good = gg_tune_pass_step(t, rate * rate_blocks, rate * rate_vectors);
    return GGUF_OK;
}

/* ---- result ---- */

/* The reason why tensors are not tuned. */
static void set_note(struct gg_calibrate_job *j, const char *note)
{
    snprintf(j->result.tune_note, sizeof j->result.tune_note, "%.*s",
             (int)sizeof j->result.tune_note - 1, note);
}

/* Bytes of a tensor as in a file. */
static void store_bytes(const struct gg_tune_tensor *t, uint8_t *to)
{
    if (t->form) {
        memcpy(to, t->weight->data, (size_t)t->size);
        return;
    }
    for (size_t i = 0; i < t->n_blocks; i++) {
        uint32_t bits;
        memcpy(&bits, &t->value[i], sizeof bits);
        gg_bytes_store32le(to + 4 * i, bits);
    }
}

static enum gguf_status write_tensors(struct tuning *u, struct gguf_error *err)
{
    struct gg_calibrate_job *j = u->j;
    for (size_t i = 0; i < u->n; i++) {
        const struct gg_tune_tensor *t = &u->tensor[i];
        uint8_t *bytes = gg_mem_alloc(j->allocator, (size_t)t->size + 1);
        if (!bytes)
            return gg_error_set_nomem(err, (size_t)t->size);
        store_bytes(t, bytes);
        const enum gguf_status st = gg_calibrate_replace_tuned(
            j, u->record[i], bytes, t->size, u->n, err);
        gg_mem_free(j->allocator, bytes);
        GG_TRY(st);
    }
    j->result.n_tuned = u->n;
    return GGUF_OK;
}

/* Compare the divergences, and write the tensors if they are better. */
static enum gguf_status choose_values(struct tuning *u, struct gguf_error *err)
{
    struct gguf_calibrate_result *r = &u->j->result;
    GG_TRY(gg_calibrate_measure_divergence(u->j, false, &r->divergence_tuned,
                                           err));
    if (!(r->divergence_tuned < r->divergence_after)) {
        set_note(u->j, "the divergence on held-out tokens is not smaller");
        return GGUF_OK;
    }
    GG_TRY(write_tensors(u, err));
    r->divergence_after = r->divergence_tuned;
    return GGUF_OK;
}

static enum gguf_status run_steps(struct tuning *u, struct gg_tune_pass *t,
                                  struct gguf_error *err)
{
    struct gguf_error why;
    bool good = true;
    gguf_error_clear(&why);
    const enum gguf_status st =
        gg_tune_pass_check(t, &u->j->text.batch[u->chunk[0]], &why);
    if (st == GGUF_E_UNSUPPORTED) {
        set_note(u->j, why.message);
        return GGUF_OK;
    }
    if (st != GGUF_OK) {
        if (err)
            *err = why;
        return st;
    }
    for (size_t k = 0; good && k < u->j->p->tune_steps; k++)
        GG_TRY(make_step(u, t, k, &good, err));
    if (good)
        return choose_values(u, err);
    set_note(u->j, "a gradient is NaN or infinite");
    return GGUF_OK;
}

static enum gguf_status run_tuning(struct tuning *u, struct gguf_error *err)
{
    struct gg_calibrate_job *j = u->j;
    struct gg_tune_pass t = { .p.allocator = j->allocator };
    GG_TRY(find_tensors(u, err));
    GG_TRY(find_chunks(u, err));
    if (!u->n || !u->n_chunks) {
        set_note(j, "no tensor has scales that can be tuned");
        return GGUF_OK;
    }
    GG_TRY(open_streams(u, err));
    const struct gg_tune_pass_params p = {
        .original = j->stream[GG_CALIBRATE_ORIGINAL].session,
        .quantized = j->stream[GG_CALIBRATE_QUANTIZED].session,
        .tensor = u->tensor,
        .n_tensors = u->n,
        .pool = j->p->pool,
        .allocator = j->allocator,
        .most_tokens = j->text.n_ctx
    };
    enum gguf_status st = gg_tune_pass_init(&t, &p, err);
    if (st == GGUF_OK)
        st = run_steps(u, &t, err);
    gg_tune_pass_fini(&t);
    return st;
}

/* Free all, once no session reads the weights any more. */
static void fini_tuning(struct tuning *u)
{
    const struct gguf_allocator *a = u->j->allocator;
    struct gg_calibrate_stream *s = &u->j->stream[GG_CALIBRATE_QUANTIZED];
    gguf_session_destroy(s->session);
    s->session = NULL;
    for (size_t i = 0; i < u->n; i++) {
        gg_tune_tensor_fini(&u->tensor[i]);
        gg_mem_free(a, u->copy[i]);
    }
    gg_mem_free(a, u->tensor);
    gg_mem_free(a, u->record);
    gg_mem_free(a, u->copy);
    gg_mem_free(a, u->chunk);
    gg_mem_free(a, u->used);
}

/* ---- resumed runs ---- */

/* Number of tensors that an interrupted run has tuned, and of those that it
 * was to tune. */
static size_t count_tuned(const struct gg_calibrate_job *j, size_t *all)
{
    size_t n = 0;
    *all = 0;
    for (size_t i = 0; i < j->n_records; i++)
        if (j->record[i].n_tuned) {
            *all = j->record[i].n_tuned;
            n++;
        }
    return n;
}

enum gguf_status gg_calibrate_tune_check(const struct gg_calibrate_job *j,
                                         struct gguf_error *err)
{
    size_t all;
    const size_t n = count_tuned(j, &all);
    return n == all ? GGUF_OK
                    : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                   "the run was interrupted while it wrote "
                                   "tuned tensors, %zu of %zu: it cannot be "
                                   "resumed, begin anew",
                                   n, all);
}

enum gguf_status gg_calibrate_tune(struct gg_calibrate_job *j,
                                   struct gguf_error *err)
{
    struct gguf_calibrate_result *r = &j->result;
    struct tuning u = { .j = j };
    if (!j->p->tune_steps)
        return GGUF_OK;
    if (count_tuned(j, &r->n_tuned)) {
        r->divergence_untuned = j->divergence_untuned;
        r->divergence_tuned = r->divergence_after;
        return GGUF_OK;
    }
    if (!isfinite(r->divergence_after)) {
        set_note(j, "the divergence on held-out tokens is not known");
        return GGUF_OK;
    }
    r->divergence_untuned = j->divergence_untuned = r->divergence_after;
    end_stages(j);
    const enum gguf_status st = run_tuning(&u, err);
    fini_tuning(&u);
    return st;
}
