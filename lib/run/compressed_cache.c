/* SPDX-License-Identifier: MIT */
/* compressed_cache.c - memory of compressed keys: a row for each block of
 * tokens, and a ring of the tokens of unfinished blocks
 *
 * A sequence has the positions 0, 1, ... without gaps. Block b of r tokens is
 * row b of its stream. Tokens wait in the ring at their position modulo its
 * length. The number of rows that are read is a multiple of the keys that
 * attention takes together (N_KEYS of cpu/attn.c): later keys keep their
 * places in such parts, and sums their order. The last row of a stream is
 * written in place of blocks that do not exist.
 *
 * A block cannot be divided: a sequence is cleared as a whole or not at all.
 */
#include "config.h"
#include "run/memory_int.h"

#include "base/compiler.h"
#include "gguf/backend.h"

#include <inttypes.h>
#include <math.h>

/* Step of the number of rows that are read. */
enum { ROW_STEP = 128 };

/* Inputs: positions, then these for each ratio. */
enum { BACK, RATIOS };
enum { PHASE, FROM, ABSENT, POS, TO, RING, MASK, N_OF };
_Static_assert(RATIOS + N_OF * GG_N_RATIOS <= GG_MEMORY_INPUTS,
               "inputs of a memory");

/* Rows for n tokens. Then: rows of a stream. */
static int64_t n_rows_for_tokens(int64_t n, uint32_t ratio)
{
    const int64_t rows = (n + ratio - 1) / ratio;
    return GG_MAX(rows + ROW_STEP - 1, ROW_STEP) / ROW_STEP * ROW_STEP;
}

static int64_t rows_of_stream(const struct gg_memory *m, uint32_t ratio)
{
    return n_rows_for_tokens(m->n_ctx, ratio) + 1;
}

static unsigned n_ratios(const struct gg_memory *m)
{
    unsigned n = 0;
    while (n < GG_N_RATIOS && m->model->hp.blocks[n].ratio)
        n++;
    return n;
}

static struct gguf_tensor *describe_rows(const struct gg_memory *m,
                                         struct gguf_ctx *c, uint32_t il,
                                         unsigned which)
{
    struct gg_model_compressed_sizes n;
    const struct gg_hparams *hp = &m->model->hp;
    const uint32_t ratio = hp->layer[il].ratio;
    const struct gg_hparams_blocks *b =
        &hp->blocks[gg_model_find_ratio(m->model, ratio)];
    gg_model_layer_compressed_sizes(m->model, il, &n);
    if (!ratio || which > 2)
        return NULL;
    if (which == 2)
        return gguf_tensor_create_3d(c, GGUF_DTYPE_F32, n.token, b->takes,
                                     m->n_seq);
    const int64_t d = which ? n.index : n.row;
    return d ? gguf_tensor_create_2d(c, m->types.k, d,
                                     rows_of_stream(m, ratio) * m->n_seq)
             : NULL;
}

/* Most blocks that a pass finishes. */
static int64_t n_blocks(const struct gg_ubatch_shape *h, uint32_t ratio)
{
    return (h->n_real + ratio - 1) / ratio;
}

static struct gg_model_pass_blocks
inputs_of_ratio(struct gg_memory *m, const struct gg_ubatch_shape *h,
                struct gguf_ctx *c, unsigned which)
{
    const uint32_t ratio = m->model->hp.blocks[which].ratio;
    const int64_t takes = m->model->hp.blocks[which].takes;
    const int64_t n = n_blocks(h, ratio);
    const int64_t n_rows = GG_MIN(n_rows_for_tokens(h->n_past, ratio),
                                  rows_of_stream(m, ratio) - 1);
    struct gguf_tensor **in = m->in + RATIOS + N_OF * which;
    const uint32_t i32 = GGUF_DTYPE_I32, f32 = GGUF_DTYPE_F32;
    in[PHASE] = gg_run_mark_input(
        gguf_tensor_create_1d(c, i32, h->n_tok * h->n_seq), "phases");
    in[FROM] = gg_run_mark_input(
        gguf_tensor_create_2d(c, i32, takes * n, h->n_seq), "block_from");
    in[ABSENT] = gg_run_mark_input(
        gguf_tensor_create_4d(c, f32, 1, takes, n, h->n_seq), "block_absent");
    in[POS] = gg_run_mark_input(gguf_tensor_create_1d(c, i32, n * h->n_seq),
                                "block_positions");
    in[TO] = gg_run_mark_input(gguf_tensor_create_1d(c, i32, n * h->n_seq),
                               "block_to");
    in[RING] = gg_run_mark_input(
        gguf_tensor_create_2d(c, i32, takes, h->n_seq), "block_ring");
    in[MASK] = gg_run_mark_input(
        gguf_tensor_create_4d(c, f32, n_rows, h->n_tok, 1, h->n_mask),
        "block_mask");
    return (struct gg_model_pass_blocks){ .phase = in[PHASE],
                                          .from = in[FROM],
                                          .absent = in[ABSENT],
                                          .pos = in[POS],
                                          .to = in[TO],
                                          .ring = in[RING],
                                          .mask = in[MASK],
                                          .n = n,
                                          .n_from = takes,
                                          .n_rows = n_rows,
                                          .n_all = rows_of_stream(m, ratio) };
}

static void make_inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                        struct gg_model_pass *pass)
{
    const size_t n = gg_model_n_unrolled_layers(m->model);
    m->in[BACK] = gg_run_mark_input(
        gguf_tensor_create_1d(pass->ctx, GGUF_DTYPE_I32, h->n_tok * h->n_seq),
        "positions_back");
    pass->compressed =
        (struct gg_model_pass_compressed){ .rows = m->t,
                                           .index = m->t + n,
                                           .ring = m->t + 2 * n,
                                           .back = m->in[BACK] };
    for (unsigned i = 0; i < n_ratios(m); i++)
        pass->compressed.of[i] = inputs_of_ratio(m, h, pass->ctx, i);
}

/* ---- filling ---- */

/* A micro-batch, divided into blocks of one ratio. */
struct view {
    const struct gg_ubatch_shape *h;
    const int32_t *pos;
    struct gguf_tensor **in;
    int32_t ratio, takes;
    int64_t n_all; /* rows of a stream */
};

/* Set element i of an input, 4 bytes. */
static enum gguf_status put_element(struct gguf_tensor *t, int64_t i,
                                    const void *v, struct gguf_error *err)
{
    return gguf_tensor_set(t, v, (uint64_t)i * 4, 4, err);
}

static enum gguf_status put_i32(struct gguf_tensor *t, int64_t i, int64_t v,
                                struct gguf_error *err)
{
    const int32_t x = (int32_t)v;
    return put_element(t, i, &x, err);
}

/* Index of the token of sequence q at a position, among those of the ring and
 * the pass. Positions before the first token give any index. */
static int64_t token_at(const struct view *v, int64_t q, int64_t pos)
{
    const int32_t first = v->pos[q * v->h->n_tok];
    if (pos < 0)
        return 0;
    return pos < first ? pos % v->takes : v->takes + (pos - first);
}

/* Fill slot j of sequence q: the tokens of a block, and its row. A slot
 * without a block takes any tokens and the last row. */
static enum gguf_status fill_block(const struct view *v, int64_t q, int64_t j,
                                   struct gguf_error *err)
{
    const int64_t n = n_blocks(v->h, (uint32_t)v->ratio);
    const int32_t first = v->pos[q * v->h->n_tok];
    const int64_t b = first / v->ratio + j, at = q * n + j;
    const int64_t end = (b + 1) * v->ratio; /* position after its last token */
    const bool done = end <= first + v->h->n_real;
    const int64_t row = done ? b : v->n_all - 1;
    for (int64_t i = 0; i < v->takes; i++) {
        const int64_t pos = done ? end - v->takes + i : 0;
        const float absent = pos < 0 ? -INFINITY : 0;
        GG_TRY(put_i32(v->in[FROM], at * v->takes + i,
                       done ? token_at(v, q, pos) : 0, err));
        if (v->in[ABSENT]->buffer)
            GG_TRY(
                put_element(v->in[ABSENT], at * v->takes + i, &absent, err));
    }
    GG_TRY(put_i32(v->in[POS], at, done ? b * v->ratio : 0, err));
    return put_i32(v->in[TO], at, (v->h->first_stream + q) * v->n_all + row,
                   err);
}

/* Fill slot i of the ring after the pass: the last token that belongs there.
 */
static enum gguf_status fill_slot(const struct view *v, int64_t q, int64_t i,
                                  struct gguf_error *err)
{
    const int32_t first = v->pos[q * v->h->n_tok];
    const int64_t last = first + v->h->n_real - 1;
    const int64_t back = (last - i) % v->takes;
    const int64_t pos = last - (back < 0 ? back + v->takes : back);
    return put_i32(v->in[RING], q * v->takes + i,
                   pos < first ? i : token_at(v, q, pos), err);
}

/* Show each token the blocks that end at it or before it. */
static enum gguf_status fill_mask(const struct view *v, float *row,
                                  struct gguf_error *err)
{
    struct gguf_tensor *t = v->in[MASK];
    const size_t size = (size_t)t->ne[0] * sizeof *row;
    const bool host = gguf_buft_is_host(gguf_buffer_buft(t->buffer));
    for (int64_t i = 0; i < v->h->n_mask * v->h->n_tok; i++) {
        const int64_t n = ((int64_t)v->pos[i] + 1) / v->ratio;
        float *to =
            host ? (float *)(void *)((char *)t->data + (size_t)i * size) : row;
        for (int64_t k = 0; k < t->ne[0]; k++)
            to[k] = k < n ? 0 : -INFINITY;
        if (!host)
            GG_TRY(gguf_tensor_set(t, to, (uint64_t)i * size, size, err));
    }
    return GGUF_OK;
}

static enum gguf_status fill_view(const struct view *v, float *row,
                                  struct gguf_error *err)
{
    const int64_t n = n_blocks(v->h, (uint32_t)v->ratio);
    if (!v->in[FROM]->buffer) /* no layer has that ratio */
        return GGUF_OK;
    for (int64_t i = 0; v->in[PHASE]->buffer && i < v->h->n_tok * v->h->n_seq;
         i++)
        GG_TRY(put_i32(v->in[PHASE], i, v->pos[i] % v->ratio, err));
    for (int64_t q = 0; q < v->h->n_seq; q++) {
        for (int64_t j = 0; j < n; j++)
            GG_TRY(fill_block(v, q, j, err));
        for (int64_t i = 0; i < v->takes; i++)
            GG_TRY(fill_slot(v, q, i, err));
    }
    return v->in[MASK]->buffer ? fill_mask(v, row, err) : GGUF_OK;
}

static enum gguf_status fill_inputs(struct gg_memory *m,
                                    const struct gg_ubatch *u,
                                    struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    if (m->in[BACK]->buffer)
        for (int64_t i = 0; i < h->n_tok * h->n_seq; i++)
            GG_TRY(put_i32(m->in[BACK], i, -(int64_t)u->pos[i], err));
    for (unsigned i = 0; i < n_ratios(m); i++) {
        const uint32_t ratio = m->model->hp.blocks[i].ratio;
        const struct view v = { .h = h,
                                .pos = u->pos,
                                .in = m->in + RATIOS + N_OF * i,
                                .ratio = (int32_t)ratio,
                                .takes = (int32_t)m->model->hp.blocks[i].takes,
                                .n_all = rows_of_stream(m, ratio) };
        GG_TRY(fill_view(&v, m->row, err));
    }
    return GGUF_OK;
}

/* ---- checks ---- */

enum gguf_status gg_compressed_cache_check(const struct gg_batch_plan *p,
                                           const struct gg_cells *cells,
                                           struct gguf_error *err)
{
    for (uint32_t q = 0; p->batch->pos && q < p->n_seq; q++) {
        int64_t next = cells->seq[q].next_pos;
        for (uint32_t k = p->begin[q]; k < p->begin[q + 1]; k++, next++) {
            const uint32_t tok = gg_batch_entry(p, k)->tok;
            const int32_t pos = p->batch->pos[tok];
            if (pos != next)
                return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                    "token %" PRIu32 " of sequence %" PRIu32
                                    " is at position %" PRId32
                                    ", must be at %" PRId64
                                    ": keys are compressed by it",
                                    tok, q, pos, next);
        }
    }
    return GGUF_OK;
}

const struct gg_memory_kind gg_memory_compressed = {
    .id = GG_MODEL_MEMORY_COMPRESSED,
    .name = { "compressed", "compressed_index", "compressed_ring" },
    .describe = describe_rows,
    .inputs = make_inputs,
    .fill = fill_inputs,
    .by_seq = true,
};
