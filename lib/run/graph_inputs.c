/* SPDX-License-Identifier: MIT */
/* graph_inputs.c - inputs of a pass beside its memory: tokens, and numbers
 * that depend on their positions */
#include "config.h"
#include "run/session_int.h"

void gg_session_make_inputs(struct gguf_session *s, int64_t n_tok,
                            int64_t n_out)
{
    struct gg_model_pass *p = &s->pass;
    struct gguf_ctx *c = p->ctx;
    p->tokens = gg_run_mark_input(
        gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n_tok), "tokens");
    p->pos = gg_run_mark_input(gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n_tok),
                               "positions");
    if (gg_model_n_token_types(s->model) > 1)
        p->types = gg_run_mark_input(
            gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n_tok), "types");
    if (gg_model_has_mrope(s->model))
        p->axes = gg_run_mark_input(
            gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 4 * n_tok), "axes");
    if (gg_model_has_query_temperature(s->model))
        p->temperature = gg_run_mark_input(
            gguf_tensor_create_3d(c, GGUF_DTYPE_F32, 1, 1, n_tok),
            "temperatures");
    if (s->model->hp.n_per_group)
        p->chunk = gg_run_mark_input(
            gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 1, s->model->hp.n_expert),
            "chunks");
    if (n_out)
        p->out_rows = gg_run_mark_input(
            gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n_out), "out_rows");
}

/* Set the tokens whose embeddings the pass looks up. */
static enum gguf_status set_tokens(const struct gguf_session *s,
                                   struct gguf_error *err)
{
    const int32_t *tok = s->ubatch.tok;
    struct gguf_tensor *t = s->pass.tokens;
    GG_TRY(gg_run_set_input(t, tok, err));
    if (!t->buffer || !s->model->hp.n_switch)
        return GGUF_OK;
    for (int64_t i = 0; i < t->ne[0]; i++) {
        const int32_t x = gg_model_embedded_token(s->model, tok[i]);
        if (x != tok[i])
            GG_TRY(
                gguf_tensor_set(t, &x, (uint64_t)i * sizeof x, sizeof x, err));
    }
    return GGUF_OK;
}

/* In a text, the position of a token is the same on three axes; the last axis
 * numbers images. */
static enum gguf_status set_axes(struct gguf_tensor *t, const int32_t *pos,
                                 struct gguf_error *err)
{
    if (!t || !t->buffer)
        return GGUF_OK;
    const uint64_t size = gguf_tensor_size(t) / 4;
    for (uint64_t k = 0; k < 3; k++)
        GG_TRY(gguf_tensor_set(t, pos, k * size, size, err));
    return gguf_tensor_fill(t, 0, 3 * size, size, err);
}

static enum gguf_status set_temper(const struct gguf_session *s,
                                   struct gguf_error *err)
{
    struct gguf_tensor *t = s->pass.temperature;
    if (!t || !t->buffer)
        return GGUF_OK;
    for (int64_t i = 0; i < t->ne[2]; i++) {
        const float x = gg_model_query_temperature(s->model, s->ubatch.pos[i]);
        GG_TRY(gguf_tensor_set(t, &x, (uint64_t)i * sizeof x, sizeof x, err));
    }
    return GGUF_OK;
}

static enum gguf_status set_chunks(const struct gguf_session *s,
                                   struct gguf_error *err)
{
    struct gguf_tensor *t = s->pass.chunk;
    if (!t || !t->buffer)
        return GGUF_OK;
    for (int64_t e = 0; e < t->ne[1]; e++) {
        const int32_t chunk = (int32_t)(e / s->model->hp.n_per_group);
        GG_TRY(gguf_tensor_set(t, &chunk, (uint64_t)e * sizeof chunk,
                               sizeof chunk, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_session_set_inputs(struct gguf_session *s,
                                       struct gguf_error *err)
{
    const struct gg_ubatch *u = &s->ubatch;
    GG_TRY(set_tokens(s, err));
    GG_TRY(gg_run_set_input(s->pass.pos, u->pos, err));
    GG_TRY(gg_run_set_input(s->pass.types, u->type, err));
    GG_TRY(set_axes(s->pass.axes, u->pos, err));
    GG_TRY(set_temper(s, err));
    GG_TRY(set_chunks(s, err));
    GG_TRY(gg_run_set_input(s->pass.out_rows, u->out_row, err));
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind)
            GG_TRY(s->memory[i].kind->fill(&s->memory[i], u, err));
    return GGUF_OK;
}
