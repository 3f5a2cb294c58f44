/* SPDX-License-Identifier: MIT */
/* mix_compress.c - attention to a window and to compressed keys (DeepSeek-V4)
 *
 * A token has one row that is key and value of all heads. Queries attend, in
 * one softmax, to the rows of a sliding window and to the rows of complete
 * blocks of 4 tokens (compressed sparse attention) or 128 tokens (heavily
 * compressed attention). The row of a block is a weighted sum of its tokens'
 * inputs. Each element has its own weights: a softmax over the tokens. Blocks
 * of 4 tokens also use the block before, with separate weights, and an indexer
 * chooses the best of them. The indexer's keys are computed the same way. The
 * orthonormal Hadamard matrix on its queries and keys is left out, since it
 * changes no product.
 *
 * The rotary embedding of a row uses the position of the block's begin. The
 * result of attention is rotated back by the query's position, so that it
 * depends only on the distance to a block.
 */
#include "config.h"
#include "model/build_int.h"

#include <inttypes.h>

typedef struct gguf_tensor tensor;

const struct gg_model_pass_blocks *
gg_model_find_blocks(const struct gg_model_at *at)
{
    return &at->p->compressed.of[gg_model_find_ratio(at->m, at->layer->ratio)];
}

static bool is_csa(const struct gg_model_layer *l)
{
    return l->ratio == GG_RATIO_CSA;
}

/* ---- sizes and checks ---- */

static void sizes_of_keys(const struct gguf_model *m, uint32_t il,
                          struct gg_model_key_sizes *n)
{
    const struct gg_model_layer *l = &m->hp.layer[il];
    n->k = l->dim_k;
    n->part[GG_KEY_PART_K] = (struct gg_model_key_part){ n->k, GG_HP_dim_k };
    if (is_csa(l)) /* elsewhere: in the memory of compressed keys */
        n->part[GG_KEY_PART_INDEX] =
            (struct gg_model_key_part){ m->hp.dim_idx, GG_HP_dim_idx };
}

static void sizes_of_compressed(const struct gguf_model *m, uint32_t il,
                                struct gg_model_compressed_sizes *n)
{
    const struct gg_model_layer *l = &m->hp.layer[il];
    const int64_t wide = is_csa(l) ? 2 : 1;
    *n = (struct gg_model_compressed_sizes){ 0 };
    if (!l->ratio)
        return;
    n->row = l->dim_k;
    n->index = is_csa(l) ? m->hp.dim_idx : 0;
    n->token = 2 * wide * (n->row + n->index);
}

/* Offset of element i in a tensor of 4-byte elements. */
static uint64_t byte_of(const struct gguf_model *m, const tensor *t, int64_t i)
{
    size_t at = 0;
    if (!gg_source_find(&m->src, t->name, &at))
        return GGUF_NO_OFFSET;
    const struct gg_file_shard_tensor from = gg_source_tensor(&m->src, at);
    return gguf_file_data_off(from.file) + from.info->off + 4 * (uint64_t)i;
}

/* Check loaded weights: the first output matrix has the rows of all groups, and
 * a table of experts has valid numbers. */
static enum gguf_status check_loaded(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    const struct gg_hparams *hp = &m->hp;
    const tensor *out = m->layer[il].w[GG_W_DS4_OUT_A];
    const tensor *table = m->layer[il].w[GG_W_ROUTER_HASH];
    const int64_t rows = (int64_t)hp->out_rank * hp->out_groups;
    if (out->ne[1] * out->ne[2] != rows)
        return gg_error_set(
            err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
            "tensor '%s' has %" PRId64 " rows, must have %" PRIu32
            " for each of %" PRIu32 " groups",
            out->name, out->ne[1] * out->ne[2], hp->out_rank, hp->out_groups);
    if (!hp->layer[il].hash_routing)
        return GGUF_OK;
    const int32_t *id = table->data;
    for (int64_t i = 0; i < gguf_tensor_n_elements(table); i++)
        if (id[i] < 0 || (uint32_t)id[i] >= hp->n_expert)
            return gg_error_set(err, GGUF_E_TENSOR, byte_of(m, table, i),
                                "tensor '%s': element %" PRId64 " is %" PRId32
                                ", there are %" PRIu32 " experts",
                                table->name, i, id[i], hp->n_expert);
    return GGUF_OK;
}

/* ---- positions ---- */

/* Apply the rotary embedding to the last elements of each head of x [d, h,
 * n]. */
static tensor *rotate_tail(const struct gg_model_at *at, tensor *x,
                           tensor *pos)
{
    const struct gg_hparams *hp = &at->m->hp;
    return gg_model_rotate_tail(
        at, x, pos, at->layer->ratio ? &hp->rope : &hp->rope_window);
}

/* A product as heads, [d, h, N]. */
static tensor *project_heads(const struct gg_model_at *at, enum gg_weight id,
                             tensor *x, int64_t d, int64_t h)
{
    return gguf_op_reshape_3d(at->c, gg_model_linear(at, id, x), d, h,
                              at->p->n_tok * at->p->n_seq);
}

/* ---- blocks ---- */

/* Weights of a compressor. */
struct compressor {
    enum gg_weight kv, gate, ape, norm;
};
static const struct compressor of_rows = { GG_W_COMP_KV, GG_W_COMP_GATE,
                                           GG_W_COMP_APE, GG_W_COMP_NORM },
                               of_index = { GG_W_IDX_COMP_KV,
                                            GG_W_IDX_COMP_GATE,
                                            GG_W_IDX_COMP_APE,
                                            GG_W_IDX_COMP_NORM };

/* Inputs of blocks from tokens x: numbers and their scores, concatenated. */
static tensor *block_inputs(const struct gg_model_at *at,
                            const struct compressor *of, tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *ape =
        gg_model_look_up_rows(at, of->ape, gg_model_find_blocks(at)->phase);
    tensor *gate = gguf_op_add(c, gg_model_linear(at, of->gate, x), ape);
    return gguf_op_concat(c, gg_model_linear(at, of->kv, x), gate, 0);
}

/* Elements of the tokens of blocks, from x [.., T n, n_seq]: [T, d, n, n_seq].
 * These are elements [first, first + d); where blocks overlap, they are those
 * of the earlier half, and the next d elements of the later half. */
static tensor *block_tokens(const struct gg_model_at *at, tensor *x,
                            int64_t first, int64_t d, tensor *add)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    const int64_t t = b->n_from;
    const int64_t halves = is_csa(at->layer) ? 2 : 1;
    tensor *all = NULL;
    for (int64_t i = 0; x && i < halves; i++) {
        tensor *y = gguf_op_view_4d(
            c, x, d, t / halves, b->n, at->p->n_seq, x->nb[1], t * x->nb[1],
            x->nb[2],
            (uint64_t)((first + i * d) * x->nb[0] + i * t / 2 * x->nb[1]));
        all = all ? gguf_op_concat(c, all, y, 1) : y;
    }
    if (add)
        all = gguf_op_add(c, all, add);
    return gguf_op_cont(c, gguf_op_permute(c, all, 1, 0, 2, 3));
}

/* Rows of blocks, [d, n n_seq], of inputs that begin at element first. */
static tensor *compress_blocks(const struct gg_model_at *at,
                               const struct compressor *of, tensor *x,
                               int64_t first, int64_t d)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    const int64_t width = (is_csa(at->layer) ? 2 : 1) * d;
    const int64_t n = b->n * at->p->n_seq;
    tensor *w = block_tokens(at, x, first + width, d, b->absent);
    w = gguf_op_soft_max(c, w, NULL, 1, 0);
    w = gguf_op_mul(c, w, block_tokens(at, x, first, d, NULL));
    tensor *y = gguf_op_reshape_2d(c, gguf_op_sum_rows(c, w), d, n);
    y = gg_model_apply_norm(at, GG_NORM_RMS, of->norm, y);
    y = rotate_tail(at, gguf_op_reshape_3d(c, y, d, 1, n), b->pos);
    return gguf_op_reshape_2d(c, y, d, n);
}

tensor *gg_model_store_blocks(const struct gg_model_at *at, tensor *memory,
                              tensor *rows)
{
    const struct gg_model_pass *p = at->p;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    tensor *all = gguf_op_set_rows(at->c, memory, rows, b->to);
    gguf_graph_add(p->graph, all);
    if (!all)
        return NULL;
    const int64_t row = all->nb[1];
    return gguf_op_view_4d(at->c, all, all->ne[0], b->n_rows, 1, p->n_seq, row,
                           row, b->n_all * row,
                           (uint64_t)(p->first_stream * b->n_all * row));
}

tensor *gg_model_gather_blocks(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    if (!x)
        return NULL;
    tensor *ring = gg_model_view_states(at, at->p->compressed.ring[at->il], 3);
    tensor *all = gguf_op_concat(
        c, ring, gg_model_view_real_tokens(at, x, 0, x->ne[0]), 1);
    tensor *y = gguf_op_get_rows(c, all, b->from);
    gg_model_store_state(at, gguf_op_get_rows(c, all, b->ring), ring);
    return y;
}

/* ---- which rows are read ---- */

/* The indexer's keys are k; of x queries of rank_q's heads are weighted. */
static tensor *choose_blocks(const struct gg_model_at *at, tensor *x,
                             tensor *rank_q, tensor *k)
{
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass *p = at->p;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    if (hp->idx_top >= b->n_rows)
        return b->mask;
    tensor *q =
        project_heads(at, GG_W_IDX_Q_B, rank_q, hp->dim_idx, hp->n_idx);
    q = gg_model_order_for_attention(at, rotate_tail(at, q, p->pos),
                                     hp->dim_idx, hp->n_idx);
    tensor *w = gg_model_linear(at, GG_W_IDX_PROJ, x);
    w = gguf_op_reshape_4d(at->c, w, hp->n_idx, p->n_tok, 1, p->n_seq);
    return gguf_op_index_top(at->c, q, k, w, b->mask, hp->idx_top);
}

/* Rows of blocks that attention reads, and a mask of those that each token
 * sees. */
static tensor *visible_blocks(const struct gg_model_at *at, tensor *x,
                              tensor *rank_q, tensor **mask)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass_compressed *of = &at->p->compressed;
    const int64_t d = at->layer->dim_k, d_idx = hp->dim_idx;
    const bool near = is_csa(at->layer);
    tensor *in = block_inputs(at, &of_rows, x);
    if (near)
        in = gguf_op_concat(c, in, block_inputs(at, &of_index, x), 0);
    in = gg_model_gather_blocks(at, in);
    *mask = gg_model_find_blocks(at)->mask;
    if (near)
        *mask = choose_blocks(
            at, x, rank_q,
            gg_model_store_blocks(
                at, of->index[at->il],
                compress_blocks(at, &of_index, in, 4 * d, d_idx)));
    return gg_model_store_blocks(at, of->rows[at->il],
                                 compress_blocks(at, &of_rows, in, 0, d));
}

/* Repeat a mask for each sequence, if other masks are per sequence. */
static tensor *repeat_mask(const struct gg_model_at *at, tensor *mask,
                           int64_t n)
{
    if (!mask || mask->ne[3] == n)
        return mask;
    return gguf_op_repeat(at->c, mask, mask->ne[0], mask->ne[1], 1, n);
}

/* ---- the mixer ---- */

/* Groups of heads through a part of a matrix each: [out_rank * groups, N]. */
static tensor *project_groups(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    tensor *w = gg_weight_at(at, GG_W_DS4_OUT_A);
    const int64_t n = hp->out_groups, rank = hp->out_rank;
    const int64_t n_tok = at->p->n_tok * at->p->n_seq;
    x = gguf_op_reshape_3d(c, x, w->ne[0], n, n_tok);
    x = gguf_op_permute(c, x, 0, 2, 1, 3);
    if (w->ne[2] == n) {
        x = gg_model_linear(at, GG_W_DS4_OUT_A, x);
    } else { /* rows of all groups in two dimensions */
        w = gguf_op_reshape_3d(c, w, w->ne[0], rank, n);
        x = gg_model_apply_weight_scale(at, GG_W_DS4_OUT_A,
                                        gguf_op_matmul(c, w, x));
    }
    x = gguf_op_cont(c, gguf_op_permute(c, x, 0, 2, 1, 3));
    return gguf_op_reshape_2d(c, x, rank * n, n_tok);
}

static tensor *attend_compressed(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass *p = at->p;
    const struct gg_model_layer *l = at->layer;
    const int64_t d = l->dim_k, h = l->n_head, n = p->n_tok * p->n_seq;
    tensor *rank_q = gg_model_compress_query(at, x);
    tensor *q = project_heads(at, GG_W_MLA_Q_B, rank_q, d, h);
    q = rotate_tail(at, gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, q),
                    p->pos);
    tensor *k = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_DS4_KV_NORM,
                                    gg_model_linear(at, GG_W_DS4_KV, x));
    k = rotate_tail(at, gguf_op_reshape_3d(c, k, d, 1, n), p->pos);
    k = gg_model_update_cache(at, p->keys.k, k, d, 1);
    tensor *mask = p->keys.mask[l->attn_type];
    if (l->ratio) {
        tensor *closed, *rows = visible_blocks(at, x, rank_q, &closed);
        const int64_t n_mask =
            closed && mask ? GG_MAX(closed->ne[3], mask->ne[3]) : 1;
        k = gguf_op_concat(c, rows, k, 1);
        mask = gguf_op_concat(c, repeat_mask(at, closed, n_mask),
                              repeat_mask(at, mask, n_mask), 0);
    }
    q = gguf_op_attention_sinks(c, gg_model_order_for_attention(at, q, d, h),
                                k, k, mask, gg_weight_at(at, GG_W_ATTN_SINKS),
                                l->score_scale, 0, 0);
    q = gguf_op_reshape_3d(c, q, d, h, n);
    return project_groups(at, rotate_tail(at, q, p->compressed.back));
}

/* ---- weights ---- */

static const uint16_t w_compressed[] = {
    GG_NEED(DS4_KV),        GG_NEED(DS4_KV_NORM),
    GG_NEED(DS4_OUT_A),     GG_NEED(DS4_OUT_B),
    GG_NEED(HC_ATTN_FN),    GG_NEED(HC_ATTN_BASE),
    GG_NEED(HC_ATTN_SCALE), GG_NEED(HC_FFN_FN),
    GG_NEED(HC_FFN_BASE),   GG_NEED(HC_FFN_SCALE),
    GG_MAYBE(COMP_KV),      GG_MAYBE(COMP_GATE),
    GG_MAYBE(COMP_APE),     GG_MAYBE(COMP_NORM),
    GG_MAYBE(IDX_PROJ),     GG_MAYBE(IDX_Q_B),
    GG_MAYBE(IDX_COMP_KV),  GG_MAYBE(IDX_COMP_GATE),
    GG_MAYBE(IDX_COMP_APE), GG_MAYBE(IDX_COMP_NORM),
    GG_MAYBE(ROUTER_HASH),  0
};
static const uint16_t w_far[] = { GG_NEED(COMP_KV), GG_NEED(COMP_GATE),
                                  GG_NEED(COMP_APE), GG_NEED(COMP_NORM), 0 };
static const uint16_t w_near[] = { GG_NEED(COMP_KV),
                                   GG_NEED(COMP_GATE),
                                   GG_NEED(COMP_APE),
                                   GG_NEED(COMP_NORM),
                                   GG_NEED(IDX_PROJ),
                                   GG_NEED(IDX_Q_B),
                                   GG_NEED(IDX_COMP_KV),
                                   GG_NEED(IDX_COMP_GATE),
                                   GG_NEED(IDX_COMP_APE),
                                   GG_NEED(IDX_COMP_NORM),
                                   0 };

/* Weights of a layer: of the compressor, if its keys are compressed; a table
 * for experts chosen by token id, else the expert bias.
 */
static void put_weights(struct gg_needs *n, const struct gg_model_layer *l)
{
    if (l->ratio)
        gg_needs_add_list(n, is_csa(l) ? w_near : w_far);
    gg_needs_set_weight(
        n, l->hash_routing ? GG_W_ROUTER_HASH : GG_W_ROUTER_SELECT_B, GG_MUST);
}

const struct gg_mixer gg_mixer_compressed = {
    .text = "attention to a window and compressed keys",
    .weights = w_compressed,
    .layer_weights = put_weights,
    .latent = true,
    .check_hparams = gg_hparams_check_compress,
    .mix = attend_compressed,
    .out = GG_W_DS4_OUT_B,
    .memory = GG_MODEL_MEMORY_KV | GG_MODEL_MEMORY_COMPRESSED,
    .keys = sizes_of_keys,
    .compressed = sizes_of_compressed,
    .loaded = check_loaded,
};
