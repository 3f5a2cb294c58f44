/* SPDX-License-Identifier: MIT */
/* calibrate_curvature.c - gradients of the original model, for weights of the
 * errors of outputs and for the table of embeddings
 *
 * Architectures whose operations have no gradients are calibrated without them,
 * and the result says so. */
#include "config.h"
#include "calibrate/calibrate_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "calibrate/embedding_metric.h"
#include "eval/curvature.h"
#include "fit/feedback.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_TOKENS = 16384, /* tokens whose gradients are computed */
    WORK = 5,            /* multiply-adds of a token and a parameter */
    ROWS = 1024          /* rows of embeddings that are encoded at a time */
};

/* Damping of the embedding's metric, a part of its mean diagonal. */
#define DAMPING 0.02f

/* ---- gradients ---- */

/* Choose evenly spaced chunks, at most MOST_TOKENS: those whose last token is
 * held out, or the others. Returns their number. batch NULL: only count. */
static size_t choose_batches(const struct gg_calibrate_job *j, bool held_out,
                             struct gguf_batch *batch)
{
    const struct gg_calibrate_text *x = &j->text;
    const size_t n_ctx = x->n_ctx;
    size_t all = 0, taken = 0, k = 0;
    struct gg_heldout h;
    gg_heldout_init(&h, x->n_chunks * n_ctx, n_ctx, 1);
    for (size_t c = 0; c < x->n_chunks; c++)
        all += gg_heldout_has(&h, (c + 1) * n_ctx - 1) == held_out;
    const size_t n = GG_MIN(all, GG_MAX(MOST_TOKENS / n_ctx, 1));
    for (size_t c = 0; c < x->n_chunks && taken < n; c++) {
        if (gg_heldout_has(&h, (c + 1) * n_ctx - 1) != held_out)
            continue;
        if (k++ != taken * all / n)
            continue;
        if (batch)
            batch[taken] = x->batch[c];
        taken++;
    }
    return taken;
}

static uint64_t batch_work(const struct gg_calibrate_job *j)
{
    const uint64_t n =
        gguf_model_info(j->stream[GG_CALIBRATE_ORIGINAL].model)->n_params;
    return WORK * n * j->text.n_ctx;
}

uint64_t gg_calibrate_curvature_work(const struct gg_calibrate_job *j)
{
    if (!j->p->effort)
        return 0;
    return batch_work(j) *
           (choose_batches(j, false, NULL) + choose_batches(j, true, NULL));
}

struct progress {
    struct gg_calibrate_job *j;
    uint64_t done; /* tokens */
};

static bool add_tokens(void *user, uint64_t done, uint64_t total)
{
    struct progress *p = user;
    const uint64_t n = done - p->done;
    (void)total;
    p->done = done;
    return gg_calibrate_add_progress(
               p->j, batch_work(p->j) * n / p->j->text.n_ctx, NULL) != GGUF_OK;
}

static enum gguf_status create_curvature(struct gg_calibrate_job *j,
                                         bool held_out,
                                         struct gg_curvature **out,
                                         struct gguf_error *err)
{
    struct progress progress = { .j = j };
    const size_t n = choose_batches(j, held_out, NULL);
    if (!n)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "the text has one chunk");
    struct gguf_batch *batch =
        gg_mem_alloc_zero(j->allocator, n, sizeof *batch);
    if (!batch)
        return gg_error_set_nomem(err, n * sizeof *batch);
    const struct gg_curvature_params p = {
        .session = j->stream[GG_CALIBRATE_ORIGINAL].session,
        .batches = batch,
        .n_batches = choose_batches(j, held_out, batch),
        .pool = j->p->pool,
        .seed = held_out,
        .has_embedding = true,
        .progress = { add_tokens, &progress },
        .allocator = j->allocator,
    };
    const enum gguf_status st = gg_curvature_create(out, &p, err);
    gg_mem_free(j->allocator, batch);
    return st;
}

enum gguf_status gg_calibrate_curvature_init(struct gg_calibrate_job *j,
                                             struct gguf_error *err)
{
    struct gguf_error own = { 0 };
    if (!j->p->effort)
        return GGUF_OK;
    enum gguf_status st = create_curvature(j, false, &j->curvature, &own);
    if (st == GGUF_OK)
        st = create_curvature(j, true, &j->held_curvature, &own);
    if (st != GGUF_E_UNSUPPORTED && st != GGUF_E_NONFINITE) {
        if (st != GGUF_OK && err)
            *err = own;
        return st;
    }
    gg_calibrate_curvature_fini(j);
    snprintf(j->result.no_gradients, sizeof j->result.no_gradients, "%.*s",
             (int)sizeof j->result.no_gradients - 1, own.message);
    return GGUF_OK;
}

void gg_calibrate_curvature_fini(struct gg_calibrate_job *j)
{
    gg_curvature_destroy(j->curvature);
    gg_curvature_destroy(j->held_curvature);
    j->curvature = j->held_curvature = NULL;
}

const float *gg_calibrate_curvature_of(const struct gg_calibrate_job *j,
                                       const char *name, size_t n_rows)
{
    size_t n;
    if (!j->curvature || !(gg_curvature_sensitivity(j->curvature, name) > 0))
        return NULL;
    const float *h = gg_curvature_blocks(j->curvature, name, &n);
    return n == n_rows ? h : NULL;
}

/* ---- the table of embeddings ---- */

void gg_calibrate_add_embedding_metric(const struct gg_calibrate_job *j,
                                       struct gg_moments *m)
{
    const struct gguf_tensor *t =
        j->stream[GG_CALIBRATE_ORIGINAL].model->top.w[GG_W_TOKEN_EMBD];
    size_t n = 0, n_outputs = 0;
    if (!j->curvature || !t || m->state != GG_MOMENTS_GOOD)
        return;
    const float *metric = gg_curvature_embedding(j->curvature, &n);
    (void)gg_curvature_blocks(j->curvature, t->name, &n_outputs);
    const double trace =
        gg_curvature_sensitivity(j->curvature, t->name) * (double)n_outputs;
    for (size_t i = 0; metric && n == m->p.n && trace > 0 && i < n * n; i++)
        m->all.s[i] += (float)((double)metric[i] / trace);
}

/* A table at work. */
struct table {
    struct gg_calibrate_job *j;
    const struct gg_form *form;
    const struct gguf_tensor *original;
    gg_kern_decode_fn *decode; /* decoder of the original */
    size_t n, n_rows, row_size;
    const float *metric;
    const float *held; /* metric of the tokens held out */
    float *own; /* metric without gradients, which serves as both; or NULL */
    float *g, *d, *s;  /* metric: [n][n], [n], [n][n] */
    float *w, *e, *em; /* [ROWS][n] */
    uint8_t *bytes, *plain;
    double before, after, power; /* e' M e on the tokens held out */
};

/* Compute the metric M + damping = R R' from the sums: G, squares of the
 * diagonal, and the matrix itself. *note: it cannot be factored. */
static enum gguf_status set_metric(struct table *k, const float *m,
                                   const char **note, struct gguf_error *err)
{
    const size_t n = k->n;
    double mean = 0;
    size_t bad;
    for (size_t i = 0; i < n; i++)
        mean += (double)m[i * n + i] / (double)n;
    memcpy(k->s, m, n * n * sizeof *m);
    for (size_t i = 0; i < n; i++)
        k->s[i * n + i] += (float)(DAMPING * mean);
    memcpy(k->g, k->s, n * n * sizeof *m);
    const enum gguf_status st =
        gg_linalg_factor_upper(&k->j->linalg, k->g, n, &bad, err);
    if (st == GGUF_E_INVALID || st == GGUF_E_NONFINITE) {
        *note = "its metric is singular";
        return GGUF_OK;
    }
    GG_TRY(st);
    for (size_t i = 0; i < n; i++)
        k->d[i] = k->g[i * n + i] * k->g[i * n + i];
    for (size_t i = 0; i < n; i++)
        for (size_t c = i + 1; c < n; c++)
            k->g[i * n + c] /= k->g[c * n + c];
    return GGUF_OK;
}

/* Add e' M e of n_rows rows, on the tokens held out. */
static enum gguf_status add_error(struct table *k, const float *e,
                                  size_t n_rows, double *sum,
                                  struct gguf_error *err)
{
    const struct gg_linalg_product p = { .a = { e, k->n, false },
                                         .b = { k->held, k->n, false },
                                         .c = k->em,
                                         .c_stride = k->n,
                                         .m = n_rows,
                                         .n = k->n,
                                         .k = k->n,
                                         .store = GG_LINALG_SET };
    GG_TRY(gg_linalg_multiply(&k->j->linalg, &p, err));
    for (size_t i = 0; i < n_rows * k->n; i++)
        *sum += (double)e[i] * (double)k->em[i];
    return GGUF_OK;
}

/* Add the errors of bytes, for the rows in k->w. */
static enum gguf_status add_bytes_error(struct table *k, const uint8_t *bytes,
                                        size_t n_rows, double *sum,
                                        struct gguf_error *err)
{
    gg_kern_decode_fn *decode = k->j->codec[k->form->dtype].decode;
    decode(bytes, k->e, n_rows * k->n);
    for (size_t i = 0; i < n_rows * k->n; i++)
        k->e[i] = k->w[i] - k->e[i];
    return add_error(k, k->e, n_rows, sum, err);
}

static enum gguf_status encode_rows(struct table *k, size_t first,
                                    size_t n_rows, struct gguf_error *err)
{
    const struct gguf_calibrate_params *p = k->j->p;
    const struct gg_feedback_metric m = {
        .n = k->n, .g = k->g, .d = k->d, .s = k->s
    };
    uint8_t *bytes = k->bytes + first * k->row_size;
    for (size_t i = 0; i < n_rows; i++)
        k->decode((const uint8_t *)k->original->data +
                      (first + i) * (size_t)k->original->nb[1],
                  k->w + i * k->n, k->n);
    GG_TRY(add_error(k, k->w, n_rows, &k->power, err));
    GG_TRY(add_bytes_error(k, bytes, n_rows, &k->before, err));
    GG_TRY(gg_feedback_encode(k->form, &m, k->w, n_rows, bytes,
                              p->effort > 1 ? GG_FEEDBACK_DESCENT
                                            : GG_FEEDBACK_SEARCHED,
                              p->pool, k->j->allocator, err));
    return add_bytes_error(k, bytes, n_rows, &k->after, err);
}

static enum gguf_status alloc_table(struct table *k, struct gguf_error *err)
{
    const struct gguf_allocator *a = k->j->allocator;
    const size_t n = k->n;
    k->g = gg_mem_alloc_zero(a, n, n * sizeof *k->g);
    k->s = gg_mem_alloc_zero(a, n, n * sizeof *k->s);
    k->d = gg_mem_alloc_zero(a, n, sizeof *k->d);
    k->w = gg_mem_alloc_zero(a, ROWS, n * sizeof *k->w);
    k->e = gg_mem_alloc_zero(a, ROWS, n * sizeof *k->e);
    k->em = gg_mem_alloc_zero(a, ROWS, n * sizeof *k->em);
    k->bytes = gg_mem_alloc_zero(a, k->n_rows, k->row_size);
    return k->g && k->s && k->d && k->w && k->e && k->em && k->bytes
               ? GGUF_OK
               : gg_error_set_nomem(err, 2 * n * n * sizeof *k->g +
                                             k->n_rows * k->row_size);
}

static void free_table(struct table *k)
{
    const struct gguf_allocator *a = k->j->allocator;
    gg_mem_free(a, k->g);
    gg_mem_free(a, k->s);
    gg_mem_free(a, k->d);
    gg_mem_free(a, k->w);
    gg_mem_free(a, k->e);
    gg_mem_free(a, k->em);
    gg_mem_free(a, k->bytes);
    gg_mem_free(a, k->own);
}

/* Is the divergence on the text held out smaller with the new bytes? A metric
 * without gradients does not know the outputs' dependence on a row. */
static enum gguf_status check_divergence(struct table *k, bool *is_better,
                                         struct gguf_error *err)
{
    struct gguf_tensor *t = k->j->quantized->top.w[GG_W_TOKEN_EMBD];
    void *const plain = t->data;
    double mean;
    t->data = k->bytes;
    const enum gguf_status st =
        gg_calibrate_measure_divergence(k->j, false, &mean, err);
    t->data = plain;
    *is_better = mean < k->j->result.divergence_before;
    return st;
}

static enum gguf_status encode_table(struct table *k,
                                     struct gg_stage_encode_result *result,
                                     struct gguf_error *err)
{
    const size_t at = gg_calibrate_find_in_file(k->j, k->original->name);
    GG_TRY(alloc_table(k, err));
    memcpy(k->bytes, gguf_file_tensor_data(k->j->file, at),
           k->n_rows * k->row_size);
    GG_TRY(set_metric(k, k->metric, &result->note, err));
    for (size_t i = 0, rows; !result->note && i < k->n_rows; i += rows) {
        rows = GG_MIN((size_t)ROWS, k->n_rows - i);
        GG_TRY(encode_rows(k, i, rows, err));
    }
    const double n_rows = (double)k->n_rows;
    result->power = k->power / n_rows;
    result->error_before = result->error_after = k->before / n_rows;
    result->used = !result->note && k->after < k->before;
    if (result->used && k->own)
        GG_TRY(check_divergence(k, &result->used, err));
    if (result->used)
        result->error_after = k->after / n_rows;
    else if (!result->note)
        result->note = "new bytes are no better on text held out";
    return GGUF_OK;
}

/* Find the metric: that of gradients, or without them that of the first layer's
 * weights, if there is text held out to compare the result. */
static enum gguf_status find_metric(struct table *k, size_t *n,
                                    struct gguf_error *err)
{
    struct gg_calibrate_job *j = k->j;
    size_t held = 0;
    *n = 0;
    if (j->curvature) {
        k->metric = gg_curvature_embedding(j->curvature, n);
        k->held = gg_curvature_embedding(j->held_curvature, &held);
        *n = k->metric && k->held && held == *n ? *n : 0;
        return GGUF_OK;
    }
    if (isnan(j->result.divergence_before))
        return GGUF_OK;
    GG_TRY(gg_embedding_metric(j->stream[GG_CALIBRATE_ORIGINAL].model,
                               j->codec, &j->linalg, &k->own, n, err));
    k->metric = k->held = k->own;
    *n = k->own ? *n : 0;
    return GGUF_OK;
}

/* Is the table one that can be encoded by a metric? It must have no other
 * use. */
static bool is_table(const struct gg_calibrate_job *j,
                     const struct gguf_tensor *t,
                     const struct gg_calibrate_record *r)
{
    const struct gg_weights *top =
        &j->stream[GG_CALIBRATE_ORIGINAL].model->top;
    return r && r->form && !r->done && !r->n_stages &&
           t != top->w[GG_W_OUTPUT] && !top->scale[GG_W_TOKEN_EMBD] &&
           !j->quantized->top.scale[GG_W_TOKEN_EMBD] &&
           t->ne[0] % r->form->block_len == 0 &&
           j->codec[gg_dtype_index(t->dtype)].decode &&
           !gguf_quant_improver_is_replaced(j->improver, r->result.tensor);
}

enum gguf_status gg_calibrate_run_embedding(struct gg_calibrate_job *j,
                                            struct gguf_error *err)
{
    struct gg_stage_encode_result result = { .used = false };
    const struct gguf_tensor *t =
        j->stream[GG_CALIBRATE_ORIGINAL].model->top.w[GG_W_TOKEN_EMBD];
    struct gg_calibrate_record *r =
        t ? gg_calibrate_find_record(j, t->name) : NULL;
    if (!is_table(j, t, r))
        return GGUF_OK;
    struct table k = {
        .j = j,
        .original = t,
        .form = r->form,
        .decode = j->codec[gg_dtype_index(t->dtype)].decode,
        .n_rows = (size_t)gguf_tensor_n_rows(t),
        .row_size = (size_t)t->ne[0] / r->form->block_len *
                    (size_t)r->form->block_size,
    };
    enum gguf_status st = find_metric(&k, &k.n, err);
    const bool has_metric = k.n == (size_t)t->ne[0];
    if (st == GGUF_OK && has_metric)
        st = encode_table(&k, &result, err);
    if (st == GGUF_OK && has_metric) {
        gg_calibrate_add_result(r, &result);
        st = gg_calibrate_finish_tensor(j, r, k.bytes, err);
    }
    free_table(&k);
    return st;
}
