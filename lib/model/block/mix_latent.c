/* SPDX-License-Identifier: MIT */
/* mix_latent.c - latent attention: keys and values from one short row a token
 *
 * Two matrices project a token to c, of rank C, and to r, which has rotary
 * embedding. Head h has the key [K c | r] and the value V c, with its own
 * matrices K and V (DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434, 2.1).
 *
 * Since q . K c = (K^T q) . c, and a sum of V c is V times the sum of c, all
 * heads can share the key [c | r] and the value c, which is part of the key.
 * This row is all that is cached if the file has K^T and V separately
 * (attn_k_b, attn_v_b: the absorbed form). Files with both in one matrix
 * (attn_kv_b) are computed and cached head by head.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Projections: parts of queries and keys, [d, heads, N]. */
struct parts {
    tensor *q_own, *q_turned; /* [nope, H, N], [rot, H, N] */
    tensor *c, *turned;       /* [C, N], [rot, 1, N] */
};

/* Widths. */
struct widths {
    int64_t nope, rot, v, c, n_head, n; /* n: tokens */
};

static struct widths find_widths(const struct gg_model_at *at)
{
    const struct gg_hparams *hp = &at->m->hp;
    return (struct widths){ .nope = (int64_t)at->layer->dim_k - hp->n_rot,
                            .rot = hp->n_rot,
                            .v = at->layer->dim_v,
                            .c = at->layer->latent_rank,
                            .n_head = at->layer->n_head,
                            .n = at->p->n_tok * at->p->n_seq };
}

bool gg_model_has_absorbed_mla(const struct gguf_model *m, uint32_t il)
{
    const struct gg_weights *w = &m->layer[il];
    return w->w[GG_W_MLA_K_B] && w->w[GG_W_MLA_V_B];
}

void gg_model_size_keys_latent(const struct gguf_model *m, uint32_t il,
                               struct gg_model_key_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    const struct gg_model_layer *l = &hp->layer[il];
    const bool absorbed = gg_model_has_absorbed_mla(m, il);
    n->k = absorbed ? (int64_t)l->latent_rank + hp->n_rot
                    : (int64_t)l->dim_k * l->n_head;
    n->v = absorbed ? 0 : (int64_t)l->dim_v * l->n_head;
    n->head = absorbed ? n->k : (int64_t)l->dim_k;
    n->turned = n->head - hp->n_rot;
    if (absorbed) {
        n->part[GG_KEY_PART_K] = (struct gg_model_key_part){
            l->latent_rank,
            l->latent_rank == hp->rank_kv ? GG_HP_rank_kv : GG_HP_rank_kv_swa
        };
        n->part[GG_KEY_PART_K_REST] =
            (struct gg_model_key_part){ hp->n_rot, GG_HP_n_rot };
        return;
    }
    n->part[GG_KEY_PART_K] = (struct gg_model_key_part){
        l->dim_k, hp->has[GG_HP_dim_k_mla] ? GG_HP_dim_k_mla : GG_HP_dim_k
    };
    n->part[GG_KEY_PART_V] = (struct gg_model_key_part){
        l->dim_v, hp->has[GG_HP_dim_v_mla] ? GG_HP_dim_v_mla : GG_HP_dim_v
    };
}

tensor *gg_model_compress_query(const struct gg_model_at *at, tensor *x)
{
    if (!gg_weight_at(at, GG_W_MLA_Q_A))
        return x;
    return gg_model_apply_norm_if(at, GG_W_MLA_Q_NORM,
                                  gg_model_linear(at, GG_W_MLA_Q_A, x));
}

static struct parts project_parts(const struct gg_model_at *at, tensor *x,
                                  tensor *rank_q)
{
    const struct widths n = find_widths(at);
    const bool two_steps = gg_weight_at(at, GG_W_MLA_Q_B) != NULL;
    tensor *q = gg_model_linear(at, two_steps ? GG_W_MLA_Q_B : GG_W_ATTN_Q,
                                two_steps ? rank_q : x);
    tensor *kv = gg_model_linear(at, GG_W_MLA_KV_A, x);
    const int64_t d = n.nope + n.rot;
    struct parts y = {
        .q_own = gg_model_view_heads(at, q, 0, n.nope, n.n_head, d),
        .q_turned = gg_model_view_heads(at, q, n.nope, n.rot, n.n_head, d),
        .turned = gg_model_view_heads(at, kv, n.c, n.rot, 1, n.rot),
    };
    tensor *c = gg_model_view_heads(at, kv, 0, n.c, 1, n.c);
    y.c = gg_model_apply_norm_if(at, GG_W_MLA_KV_NORM, c);
    y.c = gguf_op_reshape_2d(at->c, y.c, n.c, n.n);
    if (gg_weight_at(at, GG_W_ATTN_K_NORM))
        y.turned = gg_model_apply_norm_if(at, GG_W_ATTN_K_NORM, y.turned);
    y.q_turned = gg_model_apply_rope(at, y.q_turned);
    y.turned = gg_model_apply_rope(at, y.turned);
    return y;
}

/* A matrix of each head's own times x [d, H, N]: [rows, H, N]. */
static tensor *by_head(const struct gg_model_at *at, enum gg_weight id,
                       tensor *x)
{
    x = gguf_op_permute(at->c, x, 0, 2, 1, 3);
    return gguf_op_permute(at->c, gg_model_linear(at, id, x), 0, 2, 1, 3);
}

static tensor *attend_absorbed(const struct gg_model_at *at,
                               const struct parts *y, tensor *mask)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass *p = at->p;
    const struct widths n = find_widths(at);
    const int64_t d = n.c + n.rot;
    tensor *q =
        gguf_op_concat(c, by_head(at, GG_W_MLA_K_B, y->q_own), y->q_turned, 0);
    q = gg_model_scale_queries(at, q);
    tensor *k = gguf_op_concat(c, gguf_op_reshape_3d(c, y->c, n.c, 1, n.n),
                               y->turned, 0);
    k = gg_model_update_cache(at, p->keys.k, k, d, 1);
    if (!k)
        return NULL;
    tensor *v = gguf_op_view_4d(c, k, n.c, k->ne[1], 1, k->ne[3], k->nb[1],
                                k->nb[2], k->nb[3], 0);
    tensor *taken = gguf_op_attention_sinks(
        c, gg_model_order_for_attention(at, q, d, n.n_head), k, v, mask,
        gg_weight_at(at, GG_W_ATTN_SINKS), at->layer->score_scale, 0, 0);
    taken = gguf_op_reshape_3d(c, taken, n.c, n.n_head, n.n);
    return gguf_op_cont(c, by_head(at, GG_W_MLA_V_B, taken));
}

static tensor *attend_expanded(const struct gg_model_at *at,
                               const struct parts *y, tensor *mask)
{
    struct gguf_ctx *c = at->c;
    const struct gg_model_pass *p = at->p;
    const struct widths n = find_widths(at);
    const int64_t d = n.nope + n.rot;
    tensor *kv = gg_model_linear(at, GG_W_MLA_KV_B, y->c);
    tensor *q = gg_model_scale_queries(
        at, gguf_op_concat(c, y->q_own, y->q_turned, 0));
    tensor *k = gguf_op_concat(
        c, gg_model_view_heads(at, kv, 0, n.nope, n.n_head, n.nope + n.v),
        gguf_op_repeat(c, y->turned, n.rot, n.n_head, n.n, 1), 0);
    tensor *v =
        gg_model_view_heads(at, kv, n.nope, n.v, n.n_head, n.nope + n.v);
    k = gg_model_update_cache(at, p->keys.k, k, d, n.n_head);
    v = gg_model_update_cache(at, p->keys.v, v, n.v, n.n_head);
    return gguf_op_attention_sinks(
        c, gg_model_order_for_attention(at, q, d, n.n_head), k, v, mask,
        gg_weight_at(at, GG_W_ATTN_SINKS), at->layer->score_scale, 0, 0);
}

tensor *gg_model_attend_latent(const struct gg_model_at *at, tensor *x,
                               tensor *rank_q, tensor *mask)
{
    const struct widths n = find_widths(at);
    const struct parts y = project_parts(at, x, rank_q);
    tensor *taken = gg_model_has_absorbed_mla(at->m, at->il)
                        ? attend_absorbed(at, &y, mask)
                        : attend_expanded(at, &y, mask);
    taken = gguf_op_reshape_2d(at->c, taken, n.v * n.n_head, n.n);
    return gg_model_gate_attention(at, x, taken);
}

tensor *gg_model_mix_latent(const struct gg_model_at *at, tensor *x)
{
    return gg_model_attend_latent(at, x, gg_model_compress_query(at, x),
                                  at->p->keys.mask[at->layer->attn_type]);
}

const uint16_t gg_mixer_latent_weights[] = { GG_NEED(MLA_KV_A),
                                             GG_NEED(MLA_KV_NORM),
                                             GG_NEED(MLA_KV_B),
                                             GG_NEED(MLA_K_B),
                                             GG_NEED(MLA_V_B),
                                             GG_NEED(ATTN_OUT),
                                             0 };
static const uint16_t expanded_weights[] = { GG_NEED(MLA_KV_A),
                                             GG_NEED(MLA_KV_NORM),
                                             GG_NEED(MLA_KV_B),
                                             GG_NEED(ATTN_OUT), 0 };

const struct gg_mixer gg_mixer_latent = { .text = "latent attention",
                                          GG_MIXER_LATENT },
                      gg_mixer_latent_expanded = {
                          .text = "latent attention, expanded",
                          .weights = expanded_weights,
                          .latent = true,
                          .check_hparams = gg_hparams_check_latent,
                          .mix = gg_model_mix_latent,
                          .out = GG_W_ATTN_OUT,
                          .memory = GG_MODEL_MEMORY_KV,
                          .keys = gg_model_size_keys_latent,
                      };
