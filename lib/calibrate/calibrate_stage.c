/* SPDX-License-Identifier: MIT */
/* calibrate_stage.c - encode the matrices of a stage
 *
 * Both streams are computed up to the stage, chunk by chunk, and their inputs
 * are added to the stage's moments. The experts of a tensor are
 * divided into groups whose moments fit the budget of memory; each group is a
 * sweep over the chunks. */
#include "config.h"
#include "calibrate/calibrate_share.h"
#include "calibrate/stage_feedback.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "gguf/session_sequence.h"

#include <string.h>

/* ---- one matrix ---- */

/* A matrix of a tensor, for reading and encoding. */
struct task {
    const struct gg_calibrate_stage *s;
    const struct gg_calibrate_matrix *m;
    size_t expert;
};

static enum gguf_status read_rows(void *user, size_t first_row, size_t n_rows,
                                  float *dst, struct gguf_error *err)
{
    const struct task *k = user;
    const struct gguf_tensor *t = k->m->original;
    const uint8_t *row = (const uint8_t *)t->data +
                         k->expert * (size_t)t->nb[2] +
                         first_row * (size_t)t->nb[1];
    gg_kern_decode_fn *decode =
        k->s->j->codec[gg_dtype_index(t->dtype)].decode;
    (void)err;
    for (size_t i = 0; i < n_rows; i++)
        decode(row + i * (size_t)t->nb[1], dst + i * k->s->n, k->s->n);
    return GGUF_OK;
}

/* Encode a matrix of tensor k. at: number of the expert among those of the
 * moments; SIZE_MAX: no experts. */
static enum gguf_status encode_matrix(struct gg_calibrate_stage *s,
                                      struct gg_moments *m,
                                      const struct gg_targets *t, size_t k,
                                      size_t expert, size_t at,
                                      struct gguf_error *err)
{
    struct gg_calibrate_matrix *x = &s->matrix[k];
    const struct gguf_calibrate_params *p = s->j->p;
    struct task task = { s, x, expert };
    struct gg_stage_feedback feedback = {
        .form = x->record->form,
        .effort = p->effort > 1 ? GG_FEEDBACK_DESCENT : GG_FEEDBACK_SEARCHED,
        .pool = p->pool,
        .allocator = p->allocator,
    };
    struct gg_calibrate_share_rows shared = {
        .j = s->j,
        .encoder = { gg_stage_feedback_encode, &feedback },
        .row_size =
            (size_t)(x->size / GG_MAX(s->n_experts, 1) / s->product[k].n_rows),
    };
    struct gg_stage_encode_result result;
    struct gg_stage_encode_job matrix = {
        .dtype_index = x->record->form->dtype,
        .outer_scale = x->scale ? x->scale[x->has_scales ? expert : 0] : 1,
        .product = k,
        .expert = at,
        .reader = { read_rows, &task },
        .encoder = shared.encoder,
        /* the curvature by logits says little of rare tokens */
        .curvature =
            s->kind == GG_CALIBRATE_HEADS || s->i == SIZE_MAX
                ? NULL
                : gg_calibrate_curvature_of(s->j, x->record->result.name,
                                            s->product[k].n_rows),
        .bytes = x->bytes + expert * (x->size / GG_MAX(s->n_experts, 1)),
    };
    if (gg_calibrate_n_ranks(s->j) > 1)
        matrix.encoder =
            (struct gg_stage_encode_encoder){ gg_calibrate_share_encode,
                                              &shared };
    GG_TRY(gg_stage_encode_matrix(t, m, &s->j->linalg, &matrix, &result, err));
    gg_calibrate_add_result(x->record, &result);
    return gg_calibrate_add_progress(
        s->j, gg_calibrate_encode_work(s, s->product[k].n_rows), err);
}

/* Encode a matrix of each tensor by the same moments. */
static enum gguf_status encode_matrices(struct gg_calibrate_stage *s,
                                        struct gg_moments *m, size_t expert,
                                        size_t at, struct gguf_error *err)
{
    struct gg_targets_params tp = { .keep_s = s->j->p->effort > 1 };
    struct gg_targets *t;
    for (size_t k = 0; k < s->n_matrices; k++)
        tp.n_rows += s->product[k].n_rows;
    GG_TRY(gg_targets_create(&t, &s->j->linalg, m, at, &tp, err));
    enum gguf_status st = GGUF_OK;
    for (size_t k = 0; st == GGUF_OK && k < s->n_matrices; k++)
        st = encode_matrix(s, m, t, k, expert, at, err);
    gg_targets_destroy(t);
    return st;
}

/* ---- moments ---- */

/* Compute a chunk up to the stage, in both streams. */
static enum gguf_status compute_chunk(struct gg_calibrate_stage *s, size_t c,
                                      struct gguf_error *err)
{
    for (unsigned i = 0; i < GG_LEN(s->j->stream); i++) {
        struct gg_calibrate_stream *st = &s->j->stream[i];
        if (i == GG_CALIBRATE_QUANTIZED && s->original_only)
            continue;
        if (s->original_only) {
            GG_TRY(gguf_session_clear(st->session, err));
            GG_TRY(
                gguf_session_decode(st->session, &s->j->text.batch[c], err));
        } else if (s->i == SIZE_MAX) {
            GG_TRY(gg_stages_finish(st->stages, c, err));
        } else {
            GG_TRY(gg_stages_run(st->stages, s->i, c, err));
        }
    }
    return GGUF_OK;
}

static struct gg_moments_batch make_batch(const struct gg_calibrate_stage *s,
                                          size_t c)
{
    const size_t n_ctx = s->j->text.n_ctx;
    return (struct gg_moments_batch){ .first_token = c * n_ctx,
                                      .n_tokens = n_ctx };
}

/* Add the inputs of a chunk to the moments, if all numbers are finite. */
static enum gguf_status add_inputs(struct gg_calibrate_stage *s,
                                   struct gg_moments *m, size_t c,
                                   const struct gg_moments_batch *b,
                                   struct gguf_error *err)
{
    struct gg_calibrate_job *j = s->j;
    if (!gg_calibrate_stage_is_finite(s, b))
        GG_TRY(gg_calibrate_leave_out(j, c, s->matrix[0].record->result.name,
                                      err));
    else
        GG_TRY(gg_moments_add(m, &j->linalg, b, err));
    return gg_calibrate_add_progress(j, gg_calibrate_chunk_work(s), err);
}

static enum gguf_status add_own_chunks(struct gg_calibrate_stage *s,
                                       struct gg_moments *m,
                                       struct gguf_error *err)
{
    for (size_t c = 0; c < s->j->text.n_chunks; c++) {
        struct gg_moments_batch b = make_batch(s, c);
        if (s->j->text.bad[c])
            continue;
        GG_TRY(compute_chunk(s, c, err));
        GG_TRY(gg_calibrate_stage_inputs(s, &b, err));
        GG_TRY(add_inputs(s, m, c, &b, err));
    }
    return GGUF_OK;
}

/* Add the chunks of all processes from chunk first on, one of each. */
static enum gguf_status add_group(struct gg_calibrate_stage *s,
                                  struct gg_moments *m,
                                  struct gg_calibrate_share_inputs *inputs,
                                  size_t first, struct gguf_error *err)
{
    const struct gg_calibrate_job *j = s->j;
    const size_t n = gg_calibrate_n_ranks(j);
    const size_t end = GG_MIN(first + n, j->text.n_chunks);
    const size_t own = first + j->p->rank;
    if (own < end && !j->text.bad[own]) {
        struct gg_moments_batch b = make_batch(s, own);
        GG_TRY(compute_chunk(s, own, err));
        GG_TRY(gg_calibrate_stage_inputs(s, &b, err));
        gg_calibrate_share_inputs_put(inputs, &b);
    }
    GG_TRY(gg_calibrate_exchange(j, inputs->data, inputs->slot, err));
    for (size_t c = first; c < end; c++) {
        struct gg_moments_batch b = make_batch(s, c);
        gg_calibrate_share_inputs_get(inputs, c - first, &b);
        if (!j->text.bad[c])
            GG_TRY(add_inputs(s, m, c, &b, err));
    }
    return GGUF_OK;
}

static enum gguf_status add_shared_chunks(struct gg_calibrate_stage *s,
                                          struct gg_moments *m,
                                          struct gguf_error *err)
{
    struct gg_calibrate_share_inputs inputs;
    const size_t n = gg_calibrate_n_ranks(s->j);
    enum gguf_status st = gg_calibrate_share_inputs_init(&inputs, s, err);
    for (size_t c = 0; st == GGUF_OK && c < s->j->text.n_chunks; c += n)
        st = add_group(s, m, &inputs, c, err);
    gg_calibrate_share_inputs_fini(&inputs);
    if (st == GGUF_OK)
        st = gg_calibrate_share_sums(s, m, err);
    return st;
}

static enum gguf_status add_chunks(struct gg_calibrate_stage *s,
                                   struct gg_moments *m,
                                   struct gguf_error *err)
{
    GG_TRY(gg_calibrate_n_ranks(s->j) > 1 ? add_shared_chunks(s, m, err)
                                          : add_own_chunks(s, m, err));
    gg_moments_finish(m, &s->j->linalg);
    return GGUF_OK;
}

/* Sweep over the chunks, for experts first to first + n - 1, and encode
 * their matrices. n 0: a stage without experts. */
static enum gguf_status sweep_chunks(struct gg_calibrate_stage *s,
                                     size_t first, size_t n,
                                     struct gguf_error *err)
{
    struct gg_moments *m;
    s->moments.first_expert = first;
    s->moments.n_experts = n;
    GG_TRY(gg_moments_create(&m, &s->moments, err));
    enum gguf_status st = add_chunks(s, m, err);
    if (st == GGUF_OK && s->original_only)
        gg_calibrate_add_embedding_metric(s->j, m);
    if (st == GGUF_OK && !n)
        st = encode_matrices(s, m, 0, SIZE_MAX, err);
    for (size_t e = 0; st == GGUF_OK && e < n; e++)
        st = encode_matrices(s, m, first + e, e, err);
    gg_moments_destroy(m);
    return st;
}

static enum gguf_status sweep_stage(struct gg_calibrate_stage *s,
                                    struct gguf_error *err)
{
    if (!s->n_experts)
        return sweep_chunks(s, 0, 0, err);
    size_t most;
    (void)gg_calibrate_stage_n_sweeps(s, &most);
    for (size_t first = 0, n; first < s->n_experts; first += n) {
        n = GG_MIN(s->n_experts - first, most);
        GG_TRY(sweep_chunks(s, first, n, err));
    }
    return GGUF_OK;
}

static enum gguf_status finish_tensors(struct gg_calibrate_stage *s,
                                       struct gguf_error *err)
{
    for (size_t k = 0; k < s->n_matrices; k++)
        GG_TRY(gg_calibrate_finish_tensor(s->j, s->matrix[k].record,
                                          s->matrix[k].bytes, err));
    return GGUF_OK;
}

static enum gguf_status run_stage(struct gg_calibrate_stage *s,
                                  struct gguf_error *err)
{
    if (!s->n_matrices)
        return GGUF_OK;
    GG_TRY(gg_calibrate_stage_load(s, err));
    GG_TRY(sweep_stage(s, err));
    return finish_tensors(s, err);
}

enum gguf_status gg_calibrate_run_stage(struct gg_calibrate_job *j, size_t i,
                                        struct gguf_error *err)
{
    struct gg_calibrate_stage s;
    enum gguf_status st = gg_calibrate_stage_init(&s, j, i, true, err);
    if (st == GGUF_OK)
        st = run_stage(&s, err);
    gg_calibrate_stage_fini(&s);
    return st;
}

enum gguf_status gg_calibrate_run_output(struct gg_calibrate_job *j, bool tied,
                                         struct gguf_error *err)
{
    struct gg_calibrate_stage s;
    enum gguf_status st =
        gg_calibrate_stage_init_output(&s, j, tied, true, err);
    if (st == GGUF_OK)
        st = run_stage(&s, err);
    gg_calibrate_stage_fini(&s);
    return st;
}
