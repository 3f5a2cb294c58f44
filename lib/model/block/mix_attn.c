/* SPDX-License-Identifier: MIT */
/* mix_attn.c - attention with heads over cached keys and values */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

/* Queries, keys and values of all heads, [d, h, N]; gate: of the result, same
 * shape, or NULL. */
struct qkv {
    tensor *q, *k, *v, *gate;
};

/* Clamp queries, keys or values, if the file has attention.clamp_kqv. */
static tensor *clamp_qkv(const struct gg_model_at *at, tensor *x)
{
    const float most = at->arch->clamp_qkv ? at->m->hp.clamp_qkv : 0;
    return most > 0 ? gguf_op_clamp(at->c, x, -most, most) : x;
}

/* Heads of x [d * h, N]. */
static tensor *split_heads(const struct gg_model_at *at, tensor *x, int64_t d,
                           int64_t h)
{
    return gguf_op_reshape_3d(at->c, x, d, h, at->p->n_tok * at->p->n_seq);
}

/* Rows [first, first + d * h) of x [.., N] as heads. */
static tensor *rows_as_heads(const struct gg_model_at *at, tensor *x,
                             int64_t first, int64_t d, int64_t h)
{
    return gg_model_view_heads(at, x, first, d, h, d);
}

/* Norm over all heads together, applied before x is split into heads. */
static tensor *norm_all_heads(const struct gg_model_at *at, enum gg_weight id,
                              tensor *x)
{
    const struct gg_model_qk_norm *qk = &at->arch->qk_norm;
    return gg_weight_at(at, id) ? gg_model_apply_norm(at, qk->kind, id, x) : x;
}

/* Queries from their own matrix, which may also have rows for the gate of each
 * head. */
static tensor *project_queries(const struct gg_model_at *at, tensor *x,
                               tensor **gate)
{
    const int64_t d = at->layer->dim_k, h = at->layer->n_head;
    if (at->arch->qkv && at->arch->qkv->gates) {
        tensor *all = gg_model_linear(at, GG_W_ATTN_Q_GATED, x);
        *gate = gg_model_view_heads(at, all, d, d, h, 2 * d);
        return gg_model_view_heads(at, all, 0, d, h, 2 * d);
    }
    x = clamp_qkv(at, gg_model_linear(at, GG_W_ATTN_Q, x));
    return split_heads(at, norm_all_heads(at, GG_W_WIDE_Q_NORM, x), d, h);
}

/* Heads from rows [first, first + n) of x [.., N], after a norm over all
 * heads. */
static tensor *project_all_heads(const struct gg_model_at *at,
                                 enum gg_weight id, tensor *x, int64_t first,
                                 int64_t d, int64_t h)
{
    if (!x || !gg_weight_at(at, id))
        return rows_as_heads(at, x, first, d, h);
    tensor *y = gguf_op_view_2d(at->c, x, d * h, x->ne[1], x->nb[1],
                                (uint64_t)(first * x->nb[0]));
    return split_heads(at, norm_all_heads(at, id, gguf_op_cont(at->c, y)), d,
                       h);
}

/* Values from their own matrix or from experts, else the keys k. */
static tensor *project_values(const struct gg_model_at *at, tensor *x,
                              tensor *k)
{
    if (gg_weight_at(at, GG_W_ATTN_V_EXPS))
        return gg_model_build_value_experts(at, x);
    return gg_weight_at(at, GG_W_ATTN_V)
               ? clamp_qkv(at, gg_model_linear(at, GG_W_ATTN_V, x))
               : k;
}

static struct qkv project_qkv(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_layer *l = at->layer;
    const int64_t n_q = (int64_t)l->dim_k * l->n_head;
    const int64_t n_k = (int64_t)l->dim_k * l->n_head_kv;
    struct qkv y = { .gate = NULL };
    const enum gg_weight fused = gg_weight_at(at, GG_W_ATTN_QKV_SQUARE)
                                     ? GG_W_ATTN_QKV_SQUARE
                                     : GG_W_ATTN_QKV;
    if (gg_weight_at(at, fused)) {
        tensor *all = clamp_qkv(at, gg_model_linear(at, fused, x));
        y.q = project_all_heads(at, GG_W_WIDE_Q_NORM, all, 0, l->dim_k,
                                l->n_head);
        y.k = project_all_heads(at, GG_W_WIDE_K_NORM, all, n_q, l->dim_k,
                                l->n_head_kv);
        y.v = rows_as_heads(at, all, n_q + n_k, l->dim_v, l->n_head_kv);
        return y;
    }
    y.q = project_queries(at, x, &y.gate);
    if (l->shares_kv)
        return y;
    y.k = clamp_qkv(at, gg_model_linear(at, GG_W_ATTN_K, x));
    y.v = split_heads(at, project_values(at, x, y.k), l->dim_v, l->n_head_kv);
    y.k = split_heads(at, norm_all_heads(at, GG_W_WIDE_K_NORM, y.k), l->dim_k,
                      l->n_head_kv);
    return y;
}

static tensor *head_norm(const struct gg_model_at *at, enum gg_weight id,
                         tensor *x)
{
    const struct gg_model_qk_norm *qk = &at->arch->qk_norm;
    if (qk->norm_heads.fn)
        return qk->norm_heads.fn(at, id, x);
    return gg_weight_at(at, id) ? gg_model_apply_norm(at, qk->kind, id, x) : x;
}

/* Factors that divide the angle of each pair of elements; NULL: none. */
static tensor *rope_factors(const struct gg_model_at *at)
{
    if (at->layer->attn_type == GG_ATTN_WINDOW && !at->m->hp.window_factors)
        return NULL;
    return gg_weight_at(at, gg_model_rope_factors(at->m, at->p->n_ctx));
}

static struct gguf_rope rope_of(const struct gg_model_at *at)
{
    const struct gg_hparams *hp = &at->m->hp;
    return at->layer->attn_type == GG_ATTN_WINDOW ? hp->rope_window : hp->rope;
}

static tensor *rotate_heads(const struct gg_model_at *at, tensor *x,
                            const struct gguf_rope *rope)
{
    tensor *pos = gg_model_has_mrope(at->m) ? at->p->axes : at->p->pos;
    return gguf_op_rope(at->c, x, pos, rope_factors(at), rope);
}

tensor *gg_model_apply_rope(const struct gg_model_at *at, tensor *x)
{
    const struct gguf_rope rope = rope_of(at);
    return at->layer->has_rope ? rotate_heads(at, x, &rope) : x;
}

void gg_model_clear_rope_scaling(struct gguf_rope *rope)
{
    const double scale =
        rope->ext_factor != 0 ? 1 - 0.1 * log((double)rope->freq_scale) : 1;
    rope->attn_factor = (float)(1 / scale);
}

tensor *gg_model_shift_rope(const struct gg_model_at *at, tensor *x)
{
    struct gguf_rope rope = rope_of(at);
    gg_model_clear_rope_scaling(&rope);
    return rotate_heads(at, x, &rope);
}

tensor *gg_model_rotate_tail(const struct gg_model_at *at, tensor *x,
                             tensor *pos, const struct gguf_rope *rope)
{
    struct gguf_ctx *c = at->c;
    if (!x || x->ne[0] <= rope->n_dims)
        return gguf_op_rope(c, x, pos, NULL, rope);
    const int64_t rot = rope->n_dims, own = x->ne[0] - rot;
    tensor *still =
        gguf_op_view_3d(c, x, own, x->ne[1], x->ne[2], x->nb[1], x->nb[2], 0);
    tensor *last = gguf_op_view_3d(c, x, rot, x->ne[1], x->ne[2], x->nb[1],
                                   x->nb[2], (uint64_t)(own * x->nb[0]));
    return gguf_op_concat(c, still, gguf_op_rope(c, last, pos, NULL, rope), 0);
}

/* Norms of heads and positions, in the architecture's order. */
static tensor *norm_and_rope(const struct gg_model_at *at, enum gg_weight id,
                             tensor *x)
{
    const bool late = at->arch->qk_norm.after_rope;
    if (!late)
        x = head_norm(at, id, x);
    x = gg_model_apply_rope(at, x);
    return late ? head_norm(at, id, x) : x;
}

tensor *gg_model_view_cache_rows(const struct gg_model_at *at, tensor *all,
                                 const struct gg_model_cache_rows *rows,
                                 int64_t d, int64_t h)
{
    if (!all)
        return NULL;
    /* whole blocks: gg_cache_types_check */
    const int64_t len = gguf_dtype_find(all->dtype)->block_len;
    const int64_t row = all->nb[1], head = d / len * all->nb[0],
                  stream = rows->n_cells * row;
    return gguf_op_view_4d(at->c, all, d, rows->n_kv, h, rows->n, row, head,
                           stream, (uint64_t)(rows->first_stream * stream));
}

/* Store x [d, h, N] in the cache and view the rows that attention reads: [d,
 * n_kv, h, n_seq]. */
static tensor *update_cache(const struct gg_model_at *at, tensor *cache,
                            tensor *x, int64_t d, int64_t h)
{
    const struct gg_model_pass *p = at->p;
    const struct gg_model_pass_keys *keys = &p->keys;
    const unsigned sight = at->layer->attn_type;
    const struct gg_model_cache_rows rows = { keys->n_kv[sight],
                                              keys->n_cells[sight],
                                              keys->first_stream,
                                              keys->n_seq };
    if (x && !gguf_tensor_is_contiguous(x))
        x = gguf_op_cont(at->c, x);
    x = gguf_op_reshape_2d(at->c, x, d * h, p->n_tok * p->n_seq);
    tensor *all = gguf_op_set_rows(at->c, cache, x, keys->rows[sight]);
    if (!p->n_out) /* the last layer of a pass without outputs reads nothing */
        gguf_graph_add(p->graph, all);
    return gg_model_view_cache_rows(at, all, &rows, d, h);
}

tensor *gg_model_order_for_attention(const struct gg_model_at *at, tensor *x,
                                     int64_t d, int64_t h)
{
    const struct gg_model_pass_keys *keys = &at->p->keys;
    if (x && !gguf_tensor_is_contiguous(x))
        x = gguf_op_cont(at->c, x);
    x = gguf_op_reshape_4d(at->c, x, d, h, keys->n_tok, keys->n_seq);
    return gguf_op_permute(at->c, x, 0, 2, 1, 3);
}

tensor *gg_model_update_cache(const struct gg_model_at *at, tensor **memory,
                              tensor *x, int64_t d, int64_t h)
{
    return memory ? update_cache(at, memory[at->il], x, d, h)
                  : gg_model_order_for_attention(at, x, d, h);
}

float gg_model_alibi_max_bias(const struct gguf_model *m)
{
    if (m->arch->alibi_bias)
        return m->arch->alibi_bias(&m->hp);
    return m->arch->alibi ? m->arch->alibi : m->hp.max_alibi;
}

void gg_model_size_keys_heads(const struct gguf_model *m, uint32_t il,
                              struct gg_model_key_sizes *n)
{
    const struct gg_model_layer *l = &m->hp.layer[il];
    const struct gg_hparams *hp = &m->hp;
    n->k = (int64_t)l->dim_k * l->n_head_kv;
    n->v = (int64_t)l->dim_v * l->n_head_kv;
    n->head = l->dim_k;
    n->part[GG_KEY_PART_K] = (struct gg_model_key_part){
        l->dim_k, l->dim_k == hp->dim_k ? GG_HP_dim_k : GG_HP_dim_k_swa
    };
    n->part[GG_KEY_PART_V] = (struct gg_model_key_part){
        l->dim_v, l->dim_v == hp->dim_v ? GG_HP_dim_v : GG_HP_dim_v_swa
    };
}

/* Multiply the result of attention, [d, h, ..], by the sigmoid of gates, if
 * there are any. Returns [d * h, N]. */
static tensor *apply_gate(const struct gg_model_at *at, tensor *taken,
                          tensor *gate)
{
    const struct gg_model_pass *p = at->p;
    if (!taken)
        return NULL;
    const int64_t n = taken->ne[0] * taken->ne[1];
    taken = gguf_op_reshape_2d(at->c, taken, n, p->n_tok * p->n_seq);
    if (!gate)
        return taken;
    gate = gguf_op_sigmoid(at->c, gguf_op_cont(at->c, gate));
    gate = gguf_op_reshape_2d(at->c, gate, n, p->n_tok * p->n_seq);
    return gguf_op_mul(at->c, taken, gate);
}

tensor *gg_model_gate_heads(const struct gg_model_at *at, tensor *taken,
                            tensor *gate)
{
    struct gguf_ctx *c = at->c;
    const int64_t h = at->layer->n_head, d = at->layer->dim_v;
    if (!taken || !gate || gate->ne[0] == taken->ne[0])
        return gguf_op_mul(c, taken, gate);
    const int64_t n = taken->ne[1];
    gate = gguf_op_reshape_3d(c, gate, 1, h, n);
    taken = gguf_op_mul(c, gguf_op_reshape_3d(c, taken, d, h, n), gate);
    return gguf_op_reshape_2d(c, taken, d * h, n);
}

static tensor *gate_by_sigmoid(const struct gg_model_at *at, enum gg_weight id,
                               tensor *x, tensor *taken)
{
    if (!gg_weight_at(at, id))
        return taken;
    tensor *gate = gguf_op_sigmoid(at->c, gg_model_linear(at, id, x));
    return gg_model_gate_heads(at, taken, gate);
}

tensor *gg_arch_gate_elements(const struct gg_model_at *at, tensor *x,
                              tensor *taken)
{
    return gate_by_sigmoid(at, GG_W_ATTN_GATE, x, taken);
}

tensor *gg_arch_gate_each_head(const struct gg_model_at *at, tensor *x,
                               tensor *taken)
{
    return gate_by_sigmoid(at, GG_W_ATTN_GATE_HEAD, x, taken);
}

tensor *gg_model_gate_attention(const struct gg_model_at *at, tensor *x,
                                tensor *taken)
{
    return at->arch->gate_attention.fn
               ? at->arch->gate_attention.fn(at, x, taken)
               : taken;
}

/* Keys and values of the layer, or of the earlier layer that it shares them
 * with. */
static void store_kv(const struct gg_model_at *at, struct qkv *y)
{
    const struct gg_model_pass *p = at->p;
    const struct gg_model_layer *l = at->layer;
    tensor **k = &at->across->k[l->attn_type],
           **v = &at->across->v[l->attn_type];
    if (!l->shares_kv) {
        y->k = norm_and_rope(at, GG_W_ATTN_K_NORM, y->k);
        if (at->arch->qk_norm.norm_values.fn)
            y->v = at->arch->qk_norm.norm_values.fn(at, y->v);
        *k =
            gg_model_update_cache(at, p->keys.k, y->k, l->dim_k, l->n_head_kv);
        *v =
            gg_model_update_cache(at, p->keys.v, y->v, l->dim_v, l->n_head_kv);
    }
    y->k = *k;
    y->v = *v;
}

tensor *gg_model_attend_heads(const struct gg_model_at *at, tensor *x,
                              tensor *mask)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_layer *l = at->layer;
    struct qkv y = project_qkv(at, x);
    y.q = gg_model_scale_queries(at, norm_and_rope(at, GG_W_ATTN_Q_NORM, y.q));
    store_kv(at, &y);
    y.q = gg_model_order_for_attention(at, y.q, l->dim_k, l->n_head);
    tensor *taken = gguf_op_attention_sinks(
        c, y.q, y.k, y.v, mask, gg_weight_at(at, GG_W_ATTN_SINKS),
        l->score_scale, gg_model_alibi_max_bias(at->m),
        at->m->hp.attn_softcap);
    taken = gg_model_name_activation(at, "attn_heads", taken);
    return gg_model_gate_attention(at, x, apply_gate(at, taken, y.gate));
}

tensor *gg_model_mix_attention(const struct gg_model_at *at, tensor *x)
{
    return gg_model_attend_heads(at, x,
                                 at->p->keys.mask[at->layer->attn_type]);
}

const struct gg_mixer gg_mixer_attention = { .text = "",
                                             .heads = true,
                                             .mix = gg_model_mix_attention,
                                             .out = GG_W_ATTN_OUT,
                                             .memory = GG_MODEL_MEMORY_KV,
                                             .keys =
                                                 gg_model_size_keys_heads };
