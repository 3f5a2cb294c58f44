/* SPDX-License-Identifier: MIT */
/* calibrate_tune.c - fit norms and biases to the original's predictions
 *
 * When all matrices are encoded, the F32 vectors of the quantized model descend
 * the divergence from the original, by Adam (Kingma and Ba, arXiv 1412.6980). A
 * step is one chunk. The vectors begin at the original's values, so that an
 * interrupted run comes to the same ones. */
#include "config.h"
#include "calibrate/calibrate_int.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "run/backward.h"
#include "run/session_int.h"

#include <math.h>
#include <string.h>

/* Steps of Adam: the rate is a part of the vector's RMS. */
#define RATE   2e-3
#define BETA_1 0.9
#define BETA_2 0.99
enum { WARM_STEPS = 4, WORK = 6 };

struct vector {
    struct gguf_tensor *weight; /* vector of the quantized model */
    void *data;                 /* its memory before */
    size_t tensor;              /* number in the quantization job */
    size_t n;
    float *now;            /* [n] values */
    float *sum;            /* [n] gradient of the step */
    double *mean, *square; /* [n] running means of Adam */
    double rate;
    bool moved;
};

struct tune {
    struct gg_calibrate_job *j;
    struct vector *vector;
    size_t n_vectors;
    size_t n_tokens; /* tokens of the step */
    unsigned step;
};

/* ---- vectors ---- */

static void free_vector(const struct gguf_allocator *a, struct vector *v)
{
    gg_mem_free(a, v->now);
    gg_mem_free(a, v->sum);
    gg_mem_free(a, v->mean);
    gg_mem_free(a, v->square);
}

static enum gguf_status add_vector(struct tune *k, struct gguf_tensor *t,
                                   const struct gguf_tensor *original,
                                   size_t tensor, struct gguf_error *err)
{
    const struct gguf_allocator *a = k->j->allocator;
    const size_t n = (size_t)t->ne[0];
    struct vector *v = &k->vector[k->n_vectors++];
    double sum = 0;
    *v = (struct vector){
        .weight = t, .data = t->data, .tensor = tensor, .n = n
    };
    v->now = gg_mem_alloc(a, n * sizeof *v->now);
    v->sum = gg_mem_alloc_zero(a, n, sizeof *v->sum);
    v->mean = gg_mem_alloc_zero(a, n, sizeof *v->mean);
    v->square = gg_mem_alloc_zero(a, n, sizeof *v->square);
    if (!v->now || !v->sum || !v->mean || !v->square)
        return gg_error_set_nomem(err, n * sizeof *v->square);
    memcpy(v->now, original->data, n * sizeof *v->now);
    for (size_t i = 0; i < n; i++)
        sum += (double)v->now[i] * (double)v->now[i];
    v->rate = RATE * sqrt(sum / (double)n);
    t->data = v->now;
    return GGUF_OK;
}

/* Is t an F32 vector, with the original's shape? */
static bool is_vector(const struct gguf_tensor *t,
                      const struct gguf_tensor *original)
{
    return t && original && t->dtype == GGUF_DTYPE_F32 &&
           original->dtype == GGUF_DTYPE_F32 && t->ne[0] > 0 &&
           gguf_tensor_n_rows(t) == 1 && t->ne[0] == original->ne[0] &&
           gguf_tensor_n_rows(original) == 1;
}

/* Take all vectors, and give them memory that can be changed. */
static enum gguf_status take_vectors(struct tune *k, struct gguf_error *err)
{
    struct gg_calibrate_job *j = k->j;
    k->vector =
        gg_mem_alloc_zero(j->allocator, j->n_records, sizeof *k->vector);
    if (!k->vector)
        return gg_error_set_nomem(err, j->n_records * sizeof *k->vector);
    for (size_t i = 0; i < j->n_records; i++) {
        const char *name = j->record[i].result.name;
        const struct gguf_tensor *t = gguf_model_tensor(
            j->quantized, gg_calibrate_find_in_file(j, name));
        const struct gguf_tensor *original = gguf_model_tensor_find(
            j->stream[GG_CALIBRATE_ORIGINAL].model, name);
        if (is_vector(t, original))
            GG_TRY(add_vector(k, (struct gguf_tensor *)(uintptr_t)t, original,
                              i, err));
    }
    gg_session_forget_graphs(j->stream[GG_CALIBRATE_QUANTIZED].session);
    return GGUF_OK;
}

/* Give the vectors their own memory back. */
static void release_vectors(struct tune *k)
{
    for (size_t i = 0; i < k->n_vectors; i++) {
        k->vector[i].weight->data = k->vector[i].data;
        free_vector(k->j->allocator, &k->vector[i]);
    }
    gg_mem_free(k->j->allocator, k->vector);
    gg_session_forget_graphs(k->j->stream[GG_CALIBRATE_QUANTIZED].session);
}

/* ---- gradients ---- */

struct rows {
    const float *base, *logits;
    float *seed;
    size_t n, n_vocab, n_tokens;
};

static double sum_exp(const float *x, size_t n, double *max)
{
    double sum = 0;
    *max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        *max = fmax(*max, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - *max);
    return sum;
}

/* Gradient of the mean divergence by logits: (q - p) / tokens. */
static void seed_share(void *user, unsigned ith, unsigned nth)
{
    const struct rows *r = user;
    for (size_t i = ith; i < r->n; i += nth) {
        const float *p = r->base + i * r->n_vocab;
        const float *q = r->logits + i * r->n_vocab;
        double p_max, q_max;
        const double p_sum = sum_exp(p, r->n_vocab, &p_max);
        const double q_sum = sum_exp(q, r->n_vocab, &q_max);
        for (size_t c = 0; c < r->n_vocab; c++)
            r->seed[i * r->n_vocab + c] =
                (float)((exp((double)q[c] - q_max) / q_sum -
                         exp((double)p[c] - p_max) / p_sum) /
                        (double)r->n_tokens);
    }
}

static enum gguf_status take_logits(void *user, size_t first, size_t n,
                                    size_t n_vocab, const float *logits,
                                    float *seed, struct gguf_error *err)
{
    const struct tune *k = user;
    struct gguf_session *s = k->j->stream[GG_CALIBRATE_ORIGINAL].session;
    const size_t most = gguf_session_max_logits(s);
    for (size_t at = 0, part; at < n; at += part) {
        part = GG_MIN(n - at, most);
        struct rows rows = { .logits = logits + at * n_vocab,
                             .seed = seed + at * n_vocab,
                             .n = part,
                             .n_vocab = n_vocab,
                             .n_tokens = k->n_tokens };
        GG_TRY(gguf_session_logits(s, first + at, part, &rows.base, err));
        gguf_pool_run(k->j->p->pool,
                      (struct gguf_pool_callback){ seed_share, &rows });
    }
    return GGUF_OK;
}

static enum gguf_status take_gradient(void *user,
                                      const struct gg_backward_gradient *g,
                                      struct gguf_error *err)
{
    struct tune *k = user;
    (void)err;
    for (size_t i = 0; g->is_vector && i < k->n_vectors; i++) {
        struct vector *v = &k->vector[i];
        if (v->weight != g->weight)
            continue;
        for (size_t c = 0; c < v->n; c++)
            v->sum[c] += g->g[c];
        v->moved = true;
    }
    return GGUF_OK;
}

/* ---- steps ---- */

static void move_vector(struct vector *v, unsigned step, unsigned n_steps)
{
    const double warm = GG_MIN(1.0, (step + 1.0) / WARM_STEPS);
    const double rate = v->rate * warm * (1 - 0.9 * step / n_steps);
    const double c1 = 1 - pow(BETA_1, step + 1.0);
    const double c2 = 1 - pow(BETA_2, step + 1.0);
    for (size_t i = 0; i < v->n; i++) {
        const double g = (double)v->sum[i];
        v->mean[i] = BETA_1 * v->mean[i] + (1 - BETA_1) * g;
        v->square[i] = BETA_2 * v->square[i] + (1 - BETA_2) * g * g;
        if (v->square[i] > 0)
            v->now[i] -=
                (float)(rate * (v->mean[i] / c1) / sqrt(v->square[i] / c2));
        v->sum[i] = 0;
    }
}

static enum gguf_status run_step(struct tune *k, struct gg_backward *b,
                                 const struct gguf_batch *batch,
                                 struct gguf_error *err)
{
    const struct gg_backward_calls calls = { take_logits, take_gradient, k };
    struct gg_calibrate_job *j = k->j;
    struct gguf_session *s = j->stream[GG_CALIBRATE_ORIGINAL].session;
    k->n_tokens = batch->n;
    GG_TRY(gguf_session_clear(s, err));
    GG_TRY(gguf_session_decode(s, batch, err));
    GG_TRY(gg_backward_run(b, batch, &calls, err));
    for (size_t i = 0; i < k->n_vectors; i++)
        if (k->vector[i].moved)
            move_vector(&k->vector[i], k->step, j->p->tune_steps);
    return GGUF_OK;
}

static uint64_t step_work(const struct gg_calibrate_job *j)
{
    return WORK * j->text.n_ctx *
           gguf_model_info(j->stream[GG_CALIBRATE_ORIGINAL].model)->n_params;
}

uint64_t gg_calibrate_tune_work(const struct gg_calibrate_job *j)
{
    return step_work(j) * j->p->tune_steps;
}

static enum gguf_status run_steps(struct tune *k, struct gguf_error *err)
{
    struct gg_calibrate_job *j = k->j;
    struct gguf_batch *batch =
        gg_mem_alloc_zero(j->allocator, j->text.n_chunks, sizeof *batch);
    struct gg_backward *b = NULL;
    if (!batch)
        return gg_error_set_nomem(err, j->text.n_chunks * sizeof *batch);
    const size_t n = gg_calibrate_choose_batches(j, false, batch);
    enum gguf_status st =
        gg_backward_create(&b, j->stream[GG_CALIBRATE_QUANTIZED].session, err);
    if (st == GGUF_OK) {
        gg_backward_want_vectors(b);
        st = gg_backward_check(b, &batch[0], err);
    }
    for (; st == GGUF_OK && k->step < j->p->tune_steps; k->step++) {
        st = run_step(k, b, &batch[k->step % n], err);
        if (st == GGUF_OK)
            st = gg_calibrate_add_progress(j, step_work(j), err);
    }
    gg_backward_destroy(b);
    gg_mem_free(j->allocator, batch);
    return st;
}

/* ---- results ---- */

static bool is_finite(const struct vector *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (!isfinite(v->now[i]))
            return false;
    return true;
}

/* Write the vectors that have moved. */
static enum gguf_status write_vectors(struct tune *k, struct gguf_error *err)
{
    struct gg_calibrate_job *j = k->j;
    for (size_t i = 0; i < k->n_vectors; i++) {
        struct vector *v = &k->vector[i];
        if (!v->moved)
            continue;
        uint8_t *bytes = (uint8_t *)v->sum; /* no longer used */
        for (size_t c = 0; c < v->n; c++)
            gg_bytes_store32le(bytes + 4 * c, gg_bytes_f32_bits(v->now[c]));
        GG_TRY(gguf_quant_improver_replace(j->improver, v->tensor, bytes,
                                           v->n * sizeof *v->now, err));
        j->result.n_tuned++;
    }
    return GGUF_OK;
}

/* Use the vectors if the divergence on the tokens held out is smaller than
 * before. */
static enum gguf_status keep_vectors(struct tune *k, double before,
                                     struct gguf_error *err)
{
    struct gg_calibrate_job *j = k->j;
    double divergence;
    for (size_t i = 0; i < k->n_vectors; i++)
        if (!is_finite(&k->vector[i]))
            return GGUF_OK;
    GG_TRY(gg_calibrate_measure_divergence(j, false, &divergence, err));
    if (!(divergence < before))
        return GGUF_OK;
    j->result.divergence_after = divergence;
    return write_vectors(k, err);
}

enum gguf_status gg_calibrate_tune(struct gg_calibrate_job *j,
                                   struct gguf_error *err)
{
    struct tune k = { .j = j };
    if (!j->p->tune_steps || !gg_model_has_logits(j->quantized) ||
        !gg_calibrate_choose_batches(j, false, NULL) ||
        !gg_calibrate_choose_batches(j, true, NULL))
        return GGUF_OK;
    struct gguf_error own = { 0 };
    double before = 0;
    enum gguf_status st = take_vectors(&k, &own);
    /* the file may have the vectors of an interrupted run, and is not read */
    if (st == GGUF_OK)
        st = gg_calibrate_measure_divergence(j, false, &before, &own);
    if (st == GGUF_OK)
        st = run_steps(&k, &own);
    if (st == GGUF_OK)
        st = keep_vectors(&k, before, &own);
    release_vectors(&k);
    if (st == GGUF_E_UNSUPPORTED) {
        gg_calibrate_note_no_gradients(j, own.message);
        return GGUF_OK;
    }
    if (st != GGUF_OK && err)
        *err = own;
    return st;
}
