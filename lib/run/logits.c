/* logits.c - from states to logits, some rows at a time */
#include "config.h"
#include "run/session.h"


static enum gguf_status build_head(struct gguf_session *s, size_t n,
                                   struct gguf_error *err)
{
    struct gguf_ctx *c = s->head_ctx;
    s->head_n = 0;
    gguf_ctx_reset(c);
    s->head_graph = gguf_graph_create(c, 8);
    s->head_in = gguf_tensor_flag(gguf_tensor_2d(c, GGUF_DTYPE_F32,
                                                 s->model->hp.n_embd,
                                                 (int64_t)n),
                                  GGUF_TENSOR_INPUT);
    s->head_out = gguf_tensor_flag(gg_build_logits(s->model, c, s->head_in),
                                   GGUF_TENSOR_OUTPUT);
    GG_TRY(gguf_graph_finish(c, s->head_graph, s->head_out, err));
    GG_TRY(gguf_galloc_alloc(s->head_galloc, s->head_graph, err));
    s->head_n = n;
    return GGUF_OK;
}

enum gguf_status gguf_session_logits(struct gguf_session *s, size_t first,
                                     size_t n, const float **logits,
                                     struct gguf_error *err)
{
    *logits = NULL;
    if (!n || n > s->max_logits || first > s->n_out || n > s->n_out - first)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "logits %zu to %zu: there are %zu, at most %zu at once",
                       first, first + n, s->n_out, s->max_logits);
    if (n != s->head_n)
        GG_TRY(build_head(s, n, err));
    GG_TRY(gguf_tensor_set(s->head_in, s->out + first * s->model->hp.n_embd,
                           0, gguf_tensor_size(s->head_in), err));
    GG_TRY(gguf_backend_compute(s->backend, s->head_graph, err));
    GG_TRY(gguf_backend_sync(s->backend, err));
    *logits = s->head_out->data; /* host memory: checked when it was made */
    return GGUF_OK;
}
