/* SPDX-License-Identifier: MIT */
/* calibrate_inputs.c - tensors and inputs of a stage */
#include "config.h"
#include "calibrate/calibrate_share.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- tensors ---- */

/* Find the weight's outer scales. */
static const struct gguf_tensor *find_scale(const struct gguf_model *m,
                                            const struct gguf_tensor *weight)
{
    for (uint32_t il = 0; il <= m->hp.n_layer_all; il++) {
        const struct gg_weights *w = il ? &m->layer[il - 1] : &m->top;
        for (unsigned i = 0; i < GG_N_WEIGHTS; i++)
            if (w->w[i] == weight)
                return w->scale[i];
    }
    return NULL;
}

/* Set the outer scales. Returns why the tensor cannot be encoded; NULL: it
 * can. */
static const char *set_scale(struct gg_calibrate_matrix *x,
                             const struct gg_calibrate_job *j,
                             const struct gguf_tensor *quantized)
{
    const struct gguf_tensor *t = find_scale(j->quantized, quantized);
    if (find_scale(j->stream[GG_CALIBRATE_ORIGINAL].model, x->original))
        return "the original has outer scales";
    if (!t)
        return NULL;
    const int64_t n = gguf_tensor_n_elements(t);
    if (t->dtype != GGUF_DTYPE_F32 ||
        (n != 1 && n != quantized->ne[2] * quantized->ne[3]))
        return "its outer scales are not one for each matrix";
    x->scale = t->data;
    x->has_scales = n > 1;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x->scale[i]) || x->scale[i] == 0)
            return "an outer scale is zero or not finite";
    return NULL;
}

/* Report a tensor that is not encoded. */
static enum gguf_status leave_tensor(struct gg_calibrate_stage *s,
                                     struct gg_calibrate_record *r,
                                     const char *note, bool reports,
                                     struct gguf_error *err)
{
    return reports && r->form ? gg_calibrate_keep_tensor(s->j, r, note, err)
                              : GGUF_OK;
}

/* Is the residual a matrix of rows for a product? */
static bool is_residual(const struct gguf_tensor *r, int64_t n_rows,
                        int64_t n_tokens)
{
    return r && r->dtype == GGUF_DTYPE_F32 && r->nb[0] == 4 &&
           r->ne[0] == n_rows && r->ne[1] == n_tokens &&
           r->ne[2] * r->ne[3] == 1;
}

/* Set the residuals of a product. Residuals of one stage have the same
 * distance of rows. */
static void set_residual(struct gg_calibrate_stage *s, size_t k,
                         const struct gg_stages_product *a,
                         const struct gg_stages_product *b)
{
    struct gg_calibrate_matrix *x = &s->matrix[k];
    const int64_t n_ctx = s->j->text.n_ctx, n_rows = x->original->ne[1];
    if (s->kind != GG_CALIBRATE_PLAIN || a->factor == 0 ||
        !isfinite(a->factor) || !is_residual(a->residual, n_rows, n_ctx) ||
        !is_residual(b->residual, n_rows, n_ctx))
        return;
    for (size_t i = 0; i < k; i++)
        if (s->product[i].has_residual &&
            (s->matrix[i].residual[0]->nb[1] != a->residual->nb[1] ||
             s->matrix[i].residual[1]->nb[1] != b->residual->nb[1]))
            return;
    x->residual[0] = a->residual;
    x->residual[1] = b->residual;
    s->product[k].has_residual = true;
    s->product[k].factor = a->factor;
}

/* Add a tensor of the stage, if it can be encoded. a, b: its product in the
 * streams; NULL: the output matrix. */
static enum gguf_status add_tensor(struct gg_calibrate_stage *s,
                                   const struct gguf_tensor *original,
                                   const struct gguf_tensor *quantized,
                                   const struct gg_stages_product *a,
                                   const struct gg_stages_product *b,
                                   bool reports, struct gguf_error *err)
{
    struct gg_calibrate_job *j = s->j;
    struct gg_calibrate_record *r =
        gg_calibrate_find_record(j, quantized->name);
    struct gg_calibrate_matrix *x = &s->matrix[s->n_matrices];
    if (!r || r->done)
        return GGUF_OK;
    if (!r->form ||
        gguf_quant_improver_is_replaced(j->improver, r->result.tensor))
        return leave_tensor(s, r, NULL, reports, err);
    *x = (struct gg_calibrate_matrix){
        .record = r,
        .original = original,
        .size = gguf_quant_tensor(gguf_quant_improver_job(j->improver),
                                  r->result.tensor)
                    ->to_size
    };
    const char *note = set_scale(x, j, quantized);
    if (r->n_stages > (a ? 1 : 0))
        note = "it multiplies several kinds of inputs";
    if (!j->codec[gg_dtype_index(original->dtype)].decode)
        note = "the original's type cannot be decoded";
    if (note)
        return leave_tensor(s, r, note, reports, err);
    s->product[s->n_matrices] =
        (struct gg_moments_product){ .n_rows = (size_t)original->ne[1],
                                     .factor = 1 };
    if (a)
        set_residual(s, s->n_matrices, a, b);
    s->n_matrices++;
    return GGUF_OK;
}

/* ---- kinds ---- */

/* Find the kind of a stage from its input x and ids. false: its inputs are not
 * rows of tokens. */
static bool choose_kind(struct gg_calibrate_stage *s,
                        const struct gguf_tensor *x,
                        const struct gguf_tensor *ids,
                        const struct gguf_tensor *weight)
{
    const int64_t n_tokens = s->j->text.n_ctx;
    const bool rows = x->dtype == GGUF_DTYPE_F32 && x->nb[0] == 4 &&
                      x->ne[3] == 1 && weight->ne[3] == 1 &&
                      x->ne[0] == weight->ne[0];
    s->n = (size_t)x->ne[0];
    if (!rows)
        return false;
    if (ids) {
        s->kind = GG_CALIBRATE_EXPERTS;
        s->n_experts = (size_t)weight->ne[2];
        s->moments.n_used = (size_t)ids->ne[0];
        s->moments.rows_by_expert = x->ne[1] > 1;
        return x->ne[2] == n_tokens && ids->ne[1] == n_tokens &&
               ids->nb[0] == 4 && ids->ne[2] * ids->ne[3] == 1 &&
               (x->ne[1] == 1 ||
                (x->ne[1] == ids->ne[0] && x->nb[2] == x->ne[1] * x->nb[1]));
    }
    if (weight->ne[2] > 1) {
        s->kind = GG_CALIBRATE_HEADS;
        s->n_experts = s->moments.n_used = (size_t)weight->ne[2];
        s->moments.rows_by_expert = true;
        return x->ne[1] == n_tokens && x->ne[2] == weight->ne[2];
    }
    s->kind = GG_CALIBRATE_PLAIN;
    return x->ne[1] == n_tokens && x->ne[2] == 1;
}

/* Complete the parameters of the moments, once all tensors are known. */
static void set_moments(struct gg_calibrate_stage *s)
{
    const struct gg_calibrate_text *x = &s->j->text;
    struct gg_moments_params *p = &s->moments;
    size_t most = GG_HELDOUT_MOST_ROWS;
    if (p->rows_by_expert)
        most = GG_MAX(most / p->n_used, 1);
    gg_heldout_init(&p->heldout, x->n_chunks * x->n_ctx, x->n_ctx, most);
    p->n = s->n;
    p->product = s->product;
    p->n_products = s->n_matrices;
    p->allocator = s->j->allocator;
    p->part = gg_calibrate_n_ranks(s->j) > 1 ? s->j->p->rank : 0;
    p->n_parts = gg_calibrate_n_ranks(s->j);
}

static enum gguf_status allocate_stage(struct gg_calibrate_stage *s, size_t n,
                                       struct gguf_error *err)
{
    const struct gguf_allocator *a = s->j->allocator;
    s->matrix = gg_mem_alloc_zero(a, n, sizeof *s->matrix);
    s->product = gg_mem_alloc_zero(a, n, sizeof *s->product);
    s->r[0] = gg_mem_alloc_zero(a, n, sizeof *s->r[0]);
    s->r[1] = gg_mem_alloc_zero(a, n, sizeof *s->r[1]);
    return s->matrix && s->product && s->r[0] && s->r[1]
               ? GGUF_OK
               : gg_error_set_nomem(err, n * sizeof *s->matrix);
}

/* Is a product of the same weight before product k? */
static bool is_repeated(const struct gg_stages_stage *g, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (g->product[i].weight == g->product[k].weight)
            return true;
    return false;
}

enum gguf_status gg_calibrate_stage_init(struct gg_calibrate_stage *s,
                                         struct gg_calibrate_job *j, size_t i,
                                         bool reports, struct gguf_error *err)
{
    const struct gg_stages *a = j->stream[GG_CALIBRATE_ORIGINAL].stages;
    const struct gg_stages *b = j->stream[GG_CALIBRATE_QUANTIZED].stages;
    const struct gg_stages_stage *g = gg_stages_at(a, i);
    const struct gg_stages_stage *h = gg_stages_at(b, i);
    *s = (struct gg_calibrate_stage){ .j = j, .i = i };
    GG_TRY(allocate_stage(s, g->n_products, err));
    const bool known =
        choose_kind(s, gg_stages_input(b, i), gg_stages_ids(b, i),
                    h->product[0].weight) &&
        choose_kind(s, gg_stages_input(a, i), gg_stages_ids(a, i),
                    g->product[0].weight);
    for (size_t k = 0; k < g->n_products; k++) {
        const struct gguf_tensor *w = g->product[k].weight;
        struct gg_calibrate_record *r = gg_calibrate_find_record(j, w->name);
        if (is_repeated(g, k))
            continue;
        if (r && (!known || w->ne[2] != g->product[0].weight->ne[2]))
            GG_TRY(leave_tensor(s, r,
                                "its inputs have another shape than rows "
                                "of tokens",
                                reports, err));
        else
            GG_TRY(add_tensor(s, w, h->product[k].weight, &g->product[k],
                              &h->product[k], reports, err));
    }
    set_moments(s);
    return GGUF_OK;
}

enum gguf_status gg_calibrate_stage_init_output(struct gg_calibrate_stage *s,
                                                struct gg_calibrate_job *j,
                                                bool tied, bool reports,
                                                struct gguf_error *err)
{
    const struct gguf_tensor *a =
        j->stream[GG_CALIBRATE_ORIGINAL].model->top.w[GG_W_OUTPUT];
    const struct gguf_tensor *b = j->quantized->top.w[GG_W_OUTPUT];
    *s = (struct gg_calibrate_stage){ .j = j,
                                      .i = SIZE_MAX,
                                      .original_only = tied };
    GG_TRY(allocate_stage(s, 1, err));
    if (a && b && a->ne[0] == j->quantized->hp.n_embd &&
        a->ne[0] == b->ne[0] && a->ne[1] == b->ne[1] &&
        gguf_tensor_n_elements(a) == a->ne[0] * a->ne[1]) {
        s->n = (size_t)a->ne[0];
        GG_TRY(add_tensor(s, a, b, NULL, NULL, reports, err));
    }
    set_moments(s);
    return GGUF_OK;
}

void gg_calibrate_stage_fini(struct gg_calibrate_stage *s)
{
    const struct gguf_allocator *a = s->j->allocator;
    for (size_t k = 0; k < s->n_matrices; k++)
        gg_mem_free(a, s->matrix[k].bytes);
    gg_mem_free(a, s->matrix);
    gg_mem_free(a, s->product);
    gg_mem_free(a, s->ids);
    for (unsigned i = 0; i < 2; i++) {
        gg_mem_free(a, (void *)s->r[i]);
        gg_mem_free(a, s->gathered[i]);
    }
}

/* ---- plain bytes ---- */

static enum gguf_status load_bytes(struct gg_calibrate_stage *s,
                                   struct gg_calibrate_matrix *x,
                                   struct gguf_error *err)
{
    x->bytes = x->size <= SIZE_MAX
                   ? gg_mem_alloc(s->j->allocator, (size_t)x->size)
                   : NULL;
    if (!x->bytes)
        return gg_error_set_nomem(err, (size_t)GG_MIN(x->size, SIZE_MAX));
    const size_t i = gg_calibrate_find_in_file(s->j, x->record->result.name);
    memcpy(x->bytes, gguf_file_tensor_data(s->j->file, i), (size_t)x->size);
    return GGUF_OK;
}

enum gguf_status gg_calibrate_stage_load(struct gg_calibrate_stage *s,
                                         struct gguf_error *err)
{
    const struct gguf_allocator *a = s->j->allocator;
    const uint64_t n = (uint64_t)s->j->text.n_ctx * s->n_experts;
    for (size_t k = 0; k < s->n_matrices; k++)
        GG_TRY(load_bytes(s, &s->matrix[k], err));
    if (s->kind != GG_CALIBRATE_HEADS)
        return GGUF_OK;
    s->ids = gg_mem_alloc_zero(a, n, sizeof *s->ids);
    for (unsigned i = 0; i < 2; i++)
        s->gathered[i] = gg_mem_alloc_zero(a, n, s->n * sizeof(float));
    if (!s->ids || !s->gathered[0] || !s->gathered[1])
        return gg_error_set_nomem(err, (size_t)n * s->n * sizeof(float));
    for (uint64_t k = 0; k < n; k++)
        s->ids[k] = (int32_t)(k % s->n_experts);
    return GGUF_OK;
}

/* ---- inputs ---- */

/* Copy row h of token t to row t n_experts + h. */
static void gather_heads(const struct gg_calibrate_stage *s,
                         const struct gguf_tensor *x, float *out)
{
    for (int64_t t = 0; t < x->ne[1]; t++)
        for (int64_t h = 0; h < x->ne[2]; h++, out += s->n)
            memcpy(out, (const char *)x->data + t * x->nb[1] + h * x->nb[2],
                   s->n * sizeof *out);
}

/* The input of a stream: its rows, their distance in floats, and ids. */
struct rows {
    const float *x;
    size_t stride;
    const int32_t *ids;
    size_t ids_stride;
};

static struct rows find_rows(const struct gg_calibrate_stage *s, unsigned i)
{
    const struct gg_stages *g = s->j->stream[i].stages;
    const struct gguf_tensor *x = gg_stages_input(g, s->i);
    const struct gguf_tensor *ids = gg_stages_ids(g, s->i);
    struct rows r = { .x = x->data, .stride = (size_t)x->nb[1] / 4 };
    if (s->kind == GG_CALIBRATE_HEADS) {
        gather_heads(s, x, s->gathered[i]);
        return (struct rows){ s->gathered[i], s->n, s->ids, s->n_experts };
    }
    if (ids) {
        r.ids = ids->data;
        r.ids_stride = (size_t)ids->nb[1] / 4;
        if (!s->moments.rows_by_expert)
            r.stride = (size_t)x->nb[2] / 4;
    }
    return r;
}

static enum gguf_status find_states(const struct gg_calibrate_stage *s,
                                    unsigned i, struct rows *r,
                                    struct gguf_error *err)
{
    *r = (struct rows){ .stride = s->n };
    return gguf_session_states(s->j->stream[i].session, 0, s->j->text.n_ctx,
                               &r->x, err);
}

/* Set the residuals of both streams. */
static void set_residuals(struct gg_calibrate_stage *s,
                          struct gg_moments_batch *b)
{
    for (size_t k = 0; k < s->n_matrices; k++) {
        const struct gg_calibrate_matrix *x = &s->matrix[k];
        if (!s->product[k].has_residual)
            continue;
        s->r[0][k] = x->residual[0]->data;
        s->r[1][k] = x->residual[1]->data;
        b->r_stride = (size_t)x->residual[0]->nb[1] / 4;
        b->rq_stride = (size_t)x->residual[1]->nb[1] / 4;
        b->r = s->r[0];
        b->rq = s->r[1];
    }
}

enum gguf_status gg_calibrate_stage_inputs(struct gg_calibrate_stage *s,
                                           struct gg_moments_batch *b,
                                           struct gguf_error *err)
{
    struct rows r[2];
    for (unsigned i = 0; i < 2; i++) {
        if (i && s->original_only)
            r[i] = r[0];
        else if (s->i == SIZE_MAX)
            GG_TRY(find_states(s, i, &r[i], err));
        else
            r[i] = find_rows(s, i);
    }
    b->x = r[0].x;
    b->x_stride = r[0].stride;
    b->ids = r[0].ids;
    b->ids_stride = r[0].ids_stride;
    b->xq = r[1].x;
    b->xq_stride = r[1].stride;
    b->ids_q = r[1].ids;
    b->ids_q_stride = r[1].ids_stride;
    set_residuals(s, b);
    return GGUF_OK;
}

static bool are_rows_finite(const float *x, size_t stride, size_t n,
                            size_t n_rows)
{
    float sum = 0;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t c = 0; c < n; c++)
            sum += x[i * stride + c] * 0.0f; /* NaN if it is not finite */
    return sum == 0;
}

bool gg_calibrate_stage_is_finite(const struct gg_calibrate_stage *s,
                                  const struct gg_moments_batch *b)
{
    const size_t n_rows =
        b->n_tokens * (s->moments.rows_by_expert ? s->moments.n_used : 1);
    bool good = are_rows_finite(b->x, b->x_stride, s->n, n_rows) &&
                are_rows_finite(b->xq, b->xq_stride, s->n, n_rows);
    for (size_t k = 0; good && k < s->n_matrices; k++)
        if (s->product[k].has_residual)
            good = are_rows_finite(b->r[k], b->r_stride, s->product[k].n_rows,
                                   b->n_tokens) &&
                   are_rows_finite(b->rq[k], b->rq_stride,
                                   s->product[k].n_rows, b->n_tokens);
    return good;
}

/* ---- work ---- */

enum {
    ENCODE_WORK = 8 /* multiply-adds for an element and a column, about */
};

/* An expert's moments S and C have 8 n^2 bytes; they may take half of the
 * budget. */
size_t gg_calibrate_stage_n_sweeps(const struct gg_calibrate_stage *s,
                                   size_t *most)
{
    const uint64_t one = 8 * (uint64_t)s->n * s->n;
    const uint64_t n = GG_MAX(s->j->p->max_memory / 2 / one, 1);
    *most = (size_t)GG_MIN(n, (uint64_t)GG_MAX(s->n_experts, 1));
    return (GG_MAX(s->n_experts, 1) + *most - 1) / *most;
}

uint64_t gg_calibrate_chunk_work(const struct gg_calibrate_stage *s)
{
    const struct gg_moments_params *p = &s->moments;
    uint64_t n_rows = 2 * (uint64_t)s->n;
    for (size_t k = 0; k < s->n_matrices; k++)
        n_rows += 2 * s->product[k].n_rows * GG_MAX(p->n_used, 1) +
                  (s->product[k].has_residual ? s->product[k].n_rows : 0);
    return s->j->text.n_ctx * (uint64_t)s->n * n_rows;
}

uint64_t gg_calibrate_encode_work(const struct gg_calibrate_stage *s,
                                  size_t n_rows)
{
    return ENCODE_WORK * (uint64_t)n_rows * s->n * s->n;
}

uint64_t gg_calibrate_stage_work(const struct gg_calibrate_stage *s)
{
    size_t most;
    if (!s->n_matrices)
        return 0;
    uint64_t work = gg_calibrate_stage_n_sweeps(s, &most) *
                    s->j->text.n_chunks * gg_calibrate_chunk_work(s);
    for (size_t k = 0; k < s->n_matrices; k++)
        work += GG_MAX(s->n_experts, 1) *
                gg_calibrate_encode_work(s, s->product[k].n_rows);
    return work;
}
