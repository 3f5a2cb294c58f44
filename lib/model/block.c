/* block.c - the block builder: a transformer layer from what is there
 *
 * Reads the tensors of a layer and the architecture's row. All builders take
 * NULL after a failure, so nothing is checked here.
 */
#include "config.h"
#include "model/build.h"

#include <math.h>

typedef struct gguf_tensor tensor;

/* w x + b; b may be NULL. */
static tensor *linear(struct gguf_ctx *c, tensor *w, tensor *b, tensor *x)
{
    tensor *y = gguf_op_matmul(c, w, x);
    return b ? gguf_op_add(c, y, b) : y;
}

static tensor *norm(struct gguf_ctx *c, const struct gguf_model *m, tensor *w,
                    tensor *x)
{
    return gguf_op_mul(c, gguf_op_rms_norm(c, x, m->hp.norm_eps), w);
}

/* Heads of x [d * h, N], with a norm per head where there is one. */
static tensor *heads(const struct gg_pass *p, tensor *x, int64_t d, int64_t h,
                     tensor *w_norm)
{
    x = gguf_op_reshape_3d(p->ctx, x, d, h, p->n_tok * p->n_seq);
    return w_norm ? norm(p->ctx, p->model, w_norm, x) : x;
}

static tensor *rope(const struct gg_pass *p, tensor *x)
{
    return gguf_op_rope(p->ctx, x, p->pos, p->model->rope_freqs,
                        &p->model->hp.rope);
}

/* Put x [d * h, N] into the cache, and see the rows that are read: [d, n_kv,
 * h, n_seq]. */
static tensor *through_cache(const struct gg_pass *p, tensor *cache, tensor *x,
                             int64_t d, int64_t h)
{
    x = gguf_op_reshape_2d(p->ctx, x, d * h, p->n_tok * p->n_seq);
    tensor *all = gguf_op_set_rows(p->ctx, cache, x, p->kv_rows);
    int64_t row = cache->nb[1], es = cache->nb[0];
    if (!p->n_out) /* the last layer of a pass without outputs reads nothing */
        gguf_graph_add(p->graph, all);
    return gguf_op_view_4d(p->ctx, all, d, p->n_kv, h, p->n_seq, row, d * es,
                           p->n_ctx * row,
                           (uint64_t)(p->first_stream * p->n_ctx * row));
}

/* Attention of layer il on x [n_embd, N], before the output matrix:
 * [d * h, N]. */
static tensor *attention(const struct gg_pass *p, uint32_t il, tensor *x)
{
    struct gguf_ctx *c = p->ctx;
    const struct gg_hparams *hp = &p->model->hp;
    const struct gg_layer_hp *l = &hp->layer[il];
    const struct gg_block *b = &p->model->block[il];
    tensor *q = linear(c, b->attn_q, b->attn_q_b, x);
    tensor *k = linear(c, b->attn_k, b->attn_k_b, x);
    tensor *v = linear(c, b->attn_v, b->attn_v_b, x);
    q = rope(p, heads(p, q, hp->dim_k, l->n_head, b->attn_q_norm));
    k = rope(p, heads(p, k, hp->dim_k, l->n_head_kv, b->attn_k_norm));
    k = through_cache(p, p->cache_k[il], k, hp->dim_k, l->n_head_kv);
    v = through_cache(p, p->cache_v[il], v, hp->dim_v, l->n_head_kv);
    q = gguf_op_reshape_4d(c, q, hp->dim_k, l->n_head, p->n_tok, p->n_seq);
    q = gguf_op_permute(c, q, 0, 2, 1, 3);
    tensor *y = gguf_op_attention(c, q, k, v, p->mask,
                                  1 / sqrtf((float)hp->dim_k), 0, 0);
    return gguf_op_reshape_2d(c, y, (int64_t)hp->dim_v * l->n_head,
                              p->n_tok * p->n_seq);
}

static tensor *feed_forward(struct gguf_ctx *c, const struct gg_block *b,
                            tensor *x)
{
    tensor *gate = linear(c, b->ffn_gate, b->ffn_gate_b, x);
    tensor *up = linear(c, b->ffn_up, b->ffn_up_b, x);
    return linear(c, b->ffn_down, b->ffn_down_b,
                  gguf_op_swiglu(c, gate, up));
}

tensor *gg_build_pass(const struct gg_pass *p)
{
    struct gguf_ctx *c = p->ctx;
    const struct gguf_model *m = p->model;
    tensor *x = gguf_op_get_rows(c, m->token_embd, p->tokens);
    for (uint32_t il = 0; il < m->hp.n_layer; il++) {
        const struct gg_block *b = &m->block[il];
        tensor *y = attention(p, il, norm(c, m, b->attn_norm, x));
        if (il == m->hp.n_layer - 1) {
            if (!p->n_out)
                return NULL;
            if (p->out_rows) { /* from here on only what is wanted */
                y = gguf_op_get_rows(c, y, p->out_rows);
                x = gguf_op_get_rows(c, x, p->out_rows);
            }
        }
        x = gguf_op_add(c, x, linear(c, b->attn_out, b->attn_out_b, y));
        y = feed_forward(c, b, norm(c, m, b->ffn_norm, x));
        x = gguf_op_add(c, x, y);
    }
    x = norm(c, m, m->output_norm, x);
    gguf_graph_add(p->graph, gguf_tensor_flag(x, GGUF_TENSOR_OUTPUT));
    return x;
}

tensor *gg_build_logits(const struct gguf_model *m, struct gguf_ctx *ctx,
                        tensor *states)
{
    return linear(ctx, m->output, m->output_b, states);
}

size_t gg_build_n_nodes(const struct gguf_model *m)
{
    return 16 + (size_t)m->hp.n_layer * 48;
}
