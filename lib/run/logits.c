/* SPDX-License-Identifier: MIT */
/* logits.c - outputs of a batch: states, and logits of some at a time */
#include "config.h"
#include "run/session_int.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "sched/sched_int.h"

enum gguf_status gg_session_reserve_outputs(struct gguf_session *s, size_t n,
                                            struct gguf_error *err)
{
    size_t size;
    if (n <= s->out_cap)
        return GGUF_OK;
    if (gg_ckd_array(&size, n, s->model->hp.n_embd * sizeof *s->out))
        return gg_error_set_nomem(err, SIZE_MAX);
    gg_mem_free(s->allocator, s->out);
    s->n_out = s->out_cap = 0;
    s->out = gg_mem_alloc(s->allocator, size);
    if (!s->out)
        return gg_error_set_nomem(err, size);
    s->out_cap = n;
    return GGUF_OK;
}

size_t gguf_session_n_outputs(const struct gguf_session *s)
{
    return s->n_out;
}

size_t gguf_session_max_logits(const struct gguf_session *s)
{
    return s->max_logits;
}

enum gguf_status gg_session_prepare_logits(struct gguf_session *s, size_t n,
                                           struct gguf_error *err)
{
    if (n == s->head_n && !gg_sched_is_stale(s->head_sched))
        return GGUF_OK;
    struct gguf_ctx *c = s->head_ctx;
    s->head_n = 0;
    gguf_ctx_reset(c);
    s->head_graph = gguf_graph_create(
        c,
        GG_BUILD_HEAD_NODES + gg_model_n_adapter_nodes(s->model, &s->added));
    s->head_in = gguf_tensor_add_flags(
        gguf_tensor_create_2d(c, GGUF_DTYPE_F32, s->model->hp.n_embd,
                              (int64_t)n),
        GGUF_TENSOR_INPUT);
    s->head_out = gguf_tensor_add_flags(
        gg_build_logits(s->model, &s->added, c, s->head_in),
        GGUF_TENSOR_OUTPUT);
    GG_TRY(gguf_graph_finish(c, s->head_graph, s->head_out, err));
    GG_TRY(gguf_sched_alloc(s->head_sched, s->head_graph, err));
    s->head_n = n;
    return GGUF_OK;
}

static enum gguf_status on_host(struct gguf_session *s, size_t n,
                                const float **logits, struct gguf_error *err)
{
    const size_t row = s->model->hp.n_vocab * sizeof **logits;
    if (gguf_buft_is_host(gguf_buffer_buft(s->head_out->buffer))) {
        *logits = s->head_out->data;
        return GGUF_OK;
    }
    if (!s->logits)
        s->logits = gg_mem_alloc_zero(s->allocator, s->max_logits, row);
    if (!s->logits)
        return gg_error_set_nomem(err, s->max_logits * row);
    *logits = s->logits;
    return gguf_tensor_get(s->head_out, s->logits, 0, n * row, err);
}

enum gguf_status gguf_session_logits(struct gguf_session *s, size_t first,
                                     size_t n, const float **logits,
                                     struct gguf_error *err)
{
    *logits = NULL;
    if (s->out_encoded)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "the last batch was encoded, which gives no logits: read states "
            "instead");
    if (!gg_model_has_logits(s->model))
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "the model has no output matrix, and no logits: read states "
            "instead");
    if (!n || n > s->max_logits || first > s->n_out || n > s->n_out - first)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "logits %zu to %zu: there are %zu, at most %zu at once", first,
            first + n, s->n_out, s->max_logits);
    const double begin = gg_session_clock();
    const size_t rows = s->wide ? GG_MAX(n, (size_t)s->n_wide) : n;
    const size_t row = s->model->hp.n_embd * sizeof *s->out;
    const float *states = s->out + first * s->model->hp.n_embd;
    GG_TRY(gg_session_prepare_logits(s, rows, err));
    GG_TRY(gguf_tensor_set(s->head_in, states, 0, n * row, err));
    for (size_t i = n; i < rows; i++)
        GG_TRY(gguf_tensor_set(s->head_in, states, i * row, row, err));
    GG_TRY(gg_session_compute(s, s->head_sched, s->head_graph, err));
    GG_TRY(on_host(s, n, logits, err));
    gg_session_count_stage(&s->timings.logits, n, begin);
    return GGUF_OK;
}

enum gguf_status gguf_session_states(const struct gguf_session *s,
                                     size_t first, size_t n,
                                     const float **states,
                                     struct gguf_error *err)
{
    *states = NULL;
    if (!n || first > s->n_out || n > s->n_out - first)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "states %zu to %zu: there are %zu", first,
                            first + n, s->n_out);
    *states = s->out + first * s->model->hp.n_embd;
    return GGUF_OK;
}
