/* SPDX-License-Identifier: MIT */
/* mix_indexer.c - attention to the keys that an indexer chooses
 *
 * A token has one more cached key of a few elements. Queries of a few heads
 * score these keys. Attention then reads the best keys (DeepSeek-AI,
 * DeepSeek-V3.2) or the best blocks of keys (MiniMax-M3; Qwen3.8, by the means
 * of their keys); the others are masked. The orthonormal Hadamard matrix on
 * both sides is left out, since it changes no product.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Epsilon of the indexer's layer norm, by most models' definition; files have
 * no key for it. */
#define INDEX_NORM_EPS 1e-6f

/* A product as heads of the indexer, [d, h, N]. */
static tensor *project_heads(const struct gg_model_at *at, enum gg_weight id,
                             tensor *x, int64_t h)
{
    return gguf_op_reshape_3d(at->c, gg_model_linear(at, id, x),
                              at->m->hp.dim_idx, h,
                              at->p->n_tok * at->p->n_seq);
}

struct gguf_rope gg_model_indexer_rope(const struct gg_model_at *at)
{
    struct gguf_rope rope = at->m->hp.rope;
    rope.kind = at->layer->mixer->idx_rope;
    return rope;
}

tensor *gg_model_rotate_index(const struct gg_model_at *at, tensor *x,
                              const struct gguf_rope *rope)
{
    gg_mixer_rotate_fn *const rotate = at->layer->mixer->rotate_index;
    return rotate ? rotate(at, x, at->p->pos, rope)
                  : gguf_op_rope(at->c, x, at->p->pos, NULL, rope);
}

static tensor *rotate_heads(const struct gg_model_at *at, tensor *x)
{
    const struct gguf_rope rope = gg_model_indexer_rope(at);
    return gg_model_rotate_index(at, x, &rope);
}

/* Store the indexer's keys and return those of all tokens. They are stored even
 * if nothing is chosen. */
static tensor *store_index_keys(const struct gg_model_at *at, tensor *k)
{
    k = gg_model_update_cache(at, at->p->keys.index, k, at->m->hp.dim_idx, 1);
    gguf_graph_add(at->p->graph, k);
    return k;
}

static bool layer_has_indexer(const struct gg_model_at *at)
{
    return at->m->hp.idx_top < at->p->keys.n_kv[at->layer->attn_type];
}

static tensor *layer_norm(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_mixer *mixer = at->layer->mixer;
    tensor *b = gg_weight_at(at, GG_W_IDX_K_NORM_B);
    x = gguf_op_norm(c, x,
                     mixer->index_eps ? mixer->index_eps(&at->m->hp)
                                      : INDEX_NORM_EPS);
    x = gguf_op_mul(c, x, gg_weight_at(at, GG_W_IDX_K_NORM));
    return b ? gguf_op_add(c, x, b) : x;
}

/* ---- keys ---- */

void gg_model_size_keys_sparse(const struct gguf_model *m, uint32_t il,
                               struct gg_model_key_sizes *n)
{
    gg_model_size_keys_latent(m, il, n);
    n->index = m->hp.layer[il].has_indexer ? m->hp.dim_idx : 0;
    n->part[GG_KEY_PART_INDEX] =
        (struct gg_model_key_part){ n->index, GG_HP_dim_idx };
}

/* The mask of the keys that are chosen. */
static tensor *choose_keys(const struct gg_model_at *at, tensor *x,
                           tensor *rank_q)
{
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass *p = at->p;
    tensor *mask = p->keys.mask[at->layer->attn_type];
    tensor *k = layer_norm(at, gg_model_linear(at, GG_W_IDX_K, x));
    k = gguf_op_reshape_3d(at->c, k, hp->dim_idx, 1, p->n_tok * p->n_seq);
    k = store_index_keys(at, rotate_heads(at, k));
    if (!layer_has_indexer(at))
        return mask;
    tensor *q =
        rotate_heads(at, project_heads(at, GG_W_IDX_Q_B, rank_q, hp->n_idx));
    tensor *w = gg_model_linear(at, GG_W_IDX_PROJ, x);
    w = gguf_op_reshape_4d(at->c, w, hp->n_idx, p->keys.n_tok, 1,
                           p->keys.n_seq);
    return gguf_op_index_top(
        at->c, gg_model_order_for_attention(at, q, hp->dim_idx, hp->n_idx), k,
        w, mask, hp->idx_top);
}

/* Layers without an indexer attend to the keys that an earlier one chose.
 * Layers with a window attend to the window. */
tensor *gg_model_mix_sparse(const struct gg_model_at *at, tensor *x)
{
    const unsigned type = at->layer->attn_type;
    tensor *rank_q = gg_model_compress_query(at, x);
    if (at->layer->has_indexer)
        at->across->chosen = choose_keys(at, x, rank_q);
    return gg_model_attend_latent(at, x, rank_q,
                                  at->across->chosen && type == GG_ATTN_FULL
                                      ? at->across->chosen
                                      : at->p->keys.mask[type]);
}

/* Weights of the indexer: required in layers with one, optional in others. */
const uint16_t gg_mixer_indexer_weights[] = {
    GG_MAYBE(IDX_K_NORM), GG_MAYBE(IDX_K_NORM_B), GG_MAYBE(IDX_PROJ),
    GG_MAYBE(IDX_K),      GG_MAYBE(IDX_Q_B),      0
};
static const uint16_t w_indexes[] = {
    GG_NEED(IDX_K_NORM), GG_MAYBE(IDX_K_NORM_B), GG_NEED(IDX_PROJ),
    GG_NEED(IDX_K),      GG_NEED(IDX_Q_B),       0
};

void gg_mixer_needs_indexer(struct gg_needs *n, const struct gg_model_layer *l)
{
    if (l->has_indexer)
        gg_needs_add_list(n, w_indexes);
}

/* ---- blocks ---- */

void gg_model_size_keys_blocks(const struct gguf_model *m, uint32_t il,
                               struct gg_model_key_sizes *n)
{
    gg_model_size_keys_heads(m, il, n);
    n->index = m->hp.dim_idx;
    n->part[GG_KEY_PART_INDEX] =
        (struct gg_model_key_part){ n->index, GG_HP_dim_idx };
}

tensor *gg_model_mix_blocks(const struct gg_model_at *at, tensor *x)
{
    const struct gg_hparams *hp = &at->m->hp;
    tensor *mask = at->p->keys.mask[at->layer->attn_type];
    tensor *k = project_heads(at, GG_W_IDX_K_PROJ, x, 1);
    k = store_index_keys(
        at, rotate_heads(at, gg_model_apply_norm_if(at, GG_W_IDX_K_NORM, k)));
    if (layer_has_indexer(at)) {
        tensor *q = project_heads(at, GG_W_IDX_Q_PROJ, x, hp->n_idx);
        q = rotate_heads(at, gg_model_apply_norm_if(at, GG_W_IDX_Q_NORM, q));
        q = gg_model_order_for_attention(at, q, hp->dim_idx, hp->n_idx);
        mask = gguf_op_index_blocks(at->c, q, k, at->p->keys.pos, mask,
                                    hp->idx_top, (int32_t)hp->idx_block,
                                    (int32_t)hp->idx_local);
    }
    return gg_model_attend_heads(at, x, mask);
}

/* ---- blocks, by the means of their keys ---- */

void gg_model_size_keys_pooled(const struct gguf_model *m, uint32_t il,
                               struct gg_model_key_sizes *n)
{
    gg_model_size_keys_heads(m, il, n);
    if (m->hp.layer[il].ratio) /* the memory of compressed keys has it */
        n->part[GG_KEY_PART_INDEX] =
            (struct gg_model_key_part){ m->hp.dim_idx, GG_HP_dim_idx };
}

void gg_model_size_compressed_pooled(const struct gguf_model *m, uint32_t il,
                                     struct gg_model_compressed_sizes *n)
{
    const int64_t d = m->hp.layer[il].ratio ? m->hp.dim_idx : 0;
    *n = (struct gg_model_compressed_sizes){ .index = d, .token = d };
}

/* Means of the keys of complete blocks: of x [d, r n, n_seq], d elements of
 * tokens, [d, 1, n n_seq]. */
static tensor *average_blocks(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    const int64_t d = at->m->hp.dim_idx, r = b->n_from;
    const int64_t n_seq = at->p->n_seq;
    if (r > 1) {
        x = gguf_op_reshape_4d(c, x, d, r, b->n, n_seq);
        x = gguf_op_mean(c,
                         gguf_op_cont(c, gguf_op_permute(c, x, 1, 0, 2, 3)));
    }
    return gguf_op_reshape_3d(c, x, d, 1, b->n * n_seq);
}

/* Store the keys of complete blocks and return those of all: [d, n_rows, 1,
 * n_seq]. A block has the position of its first token. */
static tensor *store_block_keys(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass_blocks *b = gg_model_find_blocks(at);
    const int64_t d = at->m->hp.dim_idx;
    const struct gguf_rope rope = gg_model_indexer_rope(at);
    tensor *k = gg_model_linear(at, GG_W_IDX_K_PROJ, x);
    k = average_blocks(at, gg_model_gather_blocks(at, k));
    k = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_IDX_K_NORM, k);
    k = gguf_op_rope(c, k, b->pos, NULL, &rope);
    return gg_model_store_blocks(
        at, at->p->compressed.index[at->il],
        gguf_op_reshape_2d(c, k, d, b->n * at->p->n_seq));
}

tensor *gg_model_mix_pooled(const struct gg_model_at *at, tensor *x)
{
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_layer *l = at->layer;
    tensor *mask = at->p->keys.mask[l->attn_type];
    if (!l->ratio)
        return gg_model_attend_heads(at, x, mask);
    tensor *k = store_block_keys(at, x);
    const int64_t most = (int64_t)hp->idx_top + l->ratio - 1;
    if (most < at->p->keys.n_kv[l->attn_type]) {
        tensor *q = project_heads(at, GG_W_IDX_Q_PROJ, x, hp->n_idx);
        q = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_IDX_Q_NORM, q);
        q = gg_model_order_for_attention(at, gg_model_apply_rope(at, q),
                                         hp->dim_idx, hp->n_idx);
        mask = gguf_op_index_pooled(at->c, q, k, at->p->keys.pos, mask,
                                    hp->idx_top, (int32_t)l->ratio);
    }
    return gg_model_attend_heads(at, x, mask);
}
