/* mix_mamba.c - state spaces: a convolution and a scan over tokens
 *
 * Of n_tok tokens a sequence only the first n_real move the state; the others
 * repeat the last of them and get what it gets.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Streams of a memory that the pass has: the last of n_dims dimensions. */
static tensor *streams(const struct gg_model_at *at, tensor *all,
                       unsigned n_dims)
{
    const struct gg_model_pass *p = at->p;
    const uint64_t off = (uint64_t)(p->first_stream * all->nb[n_dims - 1]);
    if (n_dims == 3)
        return gguf_op_view_3d(at->c, all, all->ne[0], all->ne[1], p->n_seq,
                               all->nb[1], all->nb[2], off);
    return gguf_op_view_4d(at->c, all, all->ne[0], all->ne[1], all->ne[2],
                           p->n_seq, all->nb[1], all->nb[2], all->nb[3], off);
}

static void keep(const struct gg_model_at *at, tensor *now, tensor *memory)
{
    gguf_graph_add(at->p->graph, gguf_op_cpy(at->c, now, memory));
}

/* Rows [first, first + n) of x [.., n_tok * n_seq], of the tokens that count:
 * [n, n_real, n_seq]. */
static tensor *rows(const struct gg_model_at *at, tensor *x, int64_t first,
                    int64_t n)
{
    const struct gg_model_pass *p = at->p;
    if (!x)
        return NULL;
    return gguf_op_view_3d(at->c, x, n, p->n_real, p->n_seq, x->nb[1],
                           p->n_tok * x->nb[1], (uint64_t)(first * x->nb[0]));
}

/* The same as heads, [d, n / d, n_real, n_seq], of x as rows gives it. */
static tensor *heads(const struct gg_model_at *at, tensor *x, int64_t first,
                     int64_t d, int64_t n)
{
    if (!x)
        return NULL;
    return gguf_op_view_4d(at->c, x, d, n, x->ne[1], x->ne[2], d * x->nb[0],
                           x->nb[1], x->nb[2], (uint64_t)(first * x->nb[0]));
}

/* x [channels, n_real, n_seq] through the convolution and SiLU: likewise. */
static tensor *convolved(const struct gg_model_at *at, enum gg_weight id,
                         tensor *x)
{
    struct gguf_ctx *c = at->c;
    tensor *kernel = gg_weight_at(at, id);
    tensor *bias = gg_weight_at(at, gg_weight_bias(id));
    tensor *before = streams(at, at->p->states.conv[at->il], 3);
    const int64_t n = kernel->ne[0] - 1;
    tensor *all = gguf_op_concat(c, before, gguf_op_transpose(c, x), 0);
    if (!all)
        return NULL;
    tensor *last =
        gguf_op_view_3d(c, all, n, all->ne[1], all->ne[2], all->nb[1],
                        all->nb[2], (uint64_t)(at->p->n_real * all->nb[0]));
    tensor *y = gguf_op_ssm_conv(c, all, kernel);
    keep(at, last, before);
    return gguf_op_silu(c, bias ? gguf_op_add(c, y, bias) : y);
}

/* x [n, n_real, n_seq], and what the last token has for those that repeat it:
 * [n, n_tok * n_seq]. */
static tensor *whole(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_pass *p = at->p;
    if (!x)
        return NULL;
    const int64_t n = x->ne[0];
    if (p->n_real < p->n_tok) {
        tensor *last =
            gguf_op_view_3d(at->c, x, n, 1, p->n_seq, x->nb[1], x->nb[2],
                            (uint64_t)((p->n_real - 1) * x->nb[1]));
        last = gguf_op_repeat(at->c, gguf_op_cont(at->c, last), n,
                              p->n_tok - p->n_real, p->n_seq, 1);
        x = gguf_op_concat(at->c, x, last, 1);
    }
    return gguf_op_reshape_2d(at->c, x, n, p->n_tok * p->n_seq);
}

tensor *gg_model_mix_mamba2(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass *p = at->p;
    const int64_t inner = hp->ssm_inner, n_head = hp->ssm_dt,
                  n_state = hp->ssm_state, n_group = hp->ssm_groups,
                  d = inner / n_head, n_bc = n_group * n_state;
    tensor *all = gg_model_linear(at, GG_W_M2_IN, x); /* z, x, b, c, dt */
    tensor *z = rows(at, all, 0, inner);
    tensor *dt = rows(at, all, 2 * inner + 2 * n_bc, n_head);
    tensor *xbc =
        convolved(at, GG_W_M2_CONV, rows(at, all, inner, inner + 2 * n_bc));
    tensor *in = heads(at, xbc, 0, d, n_head);
    tensor *memory = streams(at, p->states.state[at->il], 4);
    tensor *state;
    tensor *y = gguf_op_ssm_scan(
        c, memory, in, gguf_op_add(c, dt, gg_weight_at(at, GG_W_M2_DT_B)),
        gg_weight_at(at, GG_W_M2_A), heads(at, xbc, inner, n_state, n_group),
        heads(at, xbc, inner + n_bc, n_state, n_group), p->states.ids, &state);
    keep(at, state, memory);
    y = gguf_op_add(c, y, gguf_op_mul(c, in, gg_weight_at(at, GG_W_M2_D)));
    y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    y = gguf_op_mul(c, y, gguf_op_silu(c, z));
    if (gg_weight_at(at, GG_W_M2_NORM)) {
        y = gguf_op_reshape_3d(c, y, inner / n_group, n_group,
                               p->n_real * p->n_seq);
        y = gg_model_normed(at, GG_NORM_RMS, GG_W_M2_NORM, y);
        y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    }
    return whole(at, y);
}
