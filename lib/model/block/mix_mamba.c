/* SPDX-License-Identifier: MIT */
/* mix_mamba.c - state spaces: a convolution and a scan over tokens */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* ---- shared by all variants ---- */

/* x [channels, n_real, n_seq] through the layer's convolution and SiLU. */
static tensor *convolve_channels(const struct gg_model_at *at,
                                 enum gg_weight id, tensor *x)
{
    tensor *before = gg_model_view_states(at, at->p->states.conv[at->il], 3);
    return gguf_op_silu(at->c, gg_model_apply_conv(at, id, x, before));
}

/* Inputs of a scan: heads x [d, n_head, n_real, n_seq], time steps dt [n_head,
 * n_real, n_seq], decays a, and b and c [n_state, n_group, n_real, n_seq]. */
struct scan {
    tensor *x, *dt, *a, *b, *c;
};

/* The scan, from and to the layer's memory: as x. */
static tensor *scan_states(const struct gg_model_at *at, const struct scan *in)
{
    tensor *memory = gg_model_view_states(at, at->p->states.scan[at->il], 4);
    tensor *state;
    tensor *y = gguf_op_ssm_scan(at->c, memory, in->x, in->dt, in->a, in->b,
                                 in->c, at->p->states.ids, &state);
    gg_model_store_state(at, state, memory);
    return y;
}

/* Multiply y [inner, n_real, n_seq] by the SiLU of gate z, a view of the same
 * shape. */
static tensor *gate_output(const struct gg_model_at *at, tensor *y, tensor *z)
{
    return gguf_op_mul(at->c, y, gguf_op_silu(at->c, z));
}

/* Columns [first, first + n) of x [.., N], after a norm if there is one. */
static tensor *column_part(const struct gg_model_at *at, tensor *x,
                           int64_t first, int64_t n, enum gg_weight norm,
                           bool normed)
{
    if (!x)
        return NULL;
    x = gguf_op_view_2d(at->c, x, n, x->ne[1], x->nb[1],
                        (uint64_t)(first * x->nb[0]));
    return normed ? gg_model_apply_norm(at, GG_NORM_RMS, norm, x) : x;
}

/* Columns x [n, N] of real tokens, shaped as one group of states. */
static tensor *one_group(const struct gg_model_at *at, tensor *x, int64_t n)
{
    return gg_model_view_real_heads(at, gg_model_view_real_tokens(at, x, 0, n),
                                    0, n, 1);
}

/* ---- Mamba: every channel is a head ---- */

void gg_model_size_states_mamba(const struct gguf_model *m,
                                const struct gg_model_layer *l,
                                struct gg_model_state_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    (void)l;
    *n = (struct gg_model_state_sizes){
        .conv = { hp->ssm_inner, (int64_t)hp->ssm_conv - 1 },
        .scan = { hp->ssm_state, 1, hp->ssm_inner }
    };
}

/* Gu and Dao, arXiv 2312.00752. FalconMamba has norms of dt, b and c without
 * weights, Jamba with weights. */
tensor *gg_model_mix_mamba(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const int64_t inner = hp->ssm_inner, rank = hp->ssm_dt,
                  n_state = hp->ssm_state;
    const bool normed = hp->ssm_rms || gg_weight_at(at, GG_W_M1_DT_NORM);
    tensor *all = gg_model_linear(at, GG_W_M1_IN, x); /* x, z */
    tensor *z = gg_model_view_real_tokens(at, all, inner, inner);
    x = convolve_channels(at, GG_W_M1_CONV,
                          gg_model_view_real_tokens(at, all, 0, inner));
    all = gg_model_linear(at, GG_W_M1_X, gg_model_repeat_last_token(at, x));
    tensor *dt = column_part(at, all, 0, rank, GG_W_M1_DT_NORM, normed);
    tensor *b = column_part(at, all, rank, n_state, GG_W_M1_B_NORM, normed);
    tensor *k =
        column_part(at, all, rank + n_state, n_state, GG_W_M1_C_NORM, normed);
    const struct scan in = { .x = gg_model_view_real_heads(at, x, 0, 1, inner),
                             .dt = gg_model_view_real_tokens(
                                 at, gg_model_linear(at, GG_W_M1_DT, dt), 0,
                                 inner),
                             .a = gg_weight_at(at, GG_W_M1_A),
                             .b = one_group(at, b, n_state),
                             .c = one_group(at, k, n_state) };
    tensor *y = gguf_op_reshape_3d(c, scan_states(at, &in), inner,
                                   at->p->n_real, at->p->n_seq);
    y = gguf_op_add(c, y, gguf_op_mul(c, x, gg_weight_at(at, GG_W_M1_D)));
    return gg_model_repeat_last_token(at, gate_output(at, y, z));
}

const uint16_t gg_mixer_mamba_weights[] = {
    GG_NEED(M1_IN),     GG_NEED(M1_CONV),
    GG_NEED(M1_CONV_B), GG_NEED(M1_X),
    GG_NEED(M1_DT),     GG_NEED(M1_DT_B),
    GG_NEED(M1_A),      GG_NEED(M1_D),
    GG_NEED(SSM_OUT),   0
};

/* ---- Mamba-2: heads, and groups of them ---- */

/* Sizes as those of a delta rule, but heads have their own width. */
void gg_model_size_states_mamba2(const struct gguf_model *m,
                                 const struct gg_model_layer *l,
                                 struct gg_model_state_sizes *n)
{
    gg_model_size_states_delta(m, l, n);
    n->scan[1] = m->hp.ssm_inner / m->hp.ssm_dt;
}

/* Dao and Gu, arXiv 2405.21060. */
tensor *gg_model_mix_mamba2(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass *p = at->p;
    const int64_t inner = hp->ssm_inner, n_head = hp->ssm_dt,
                  n_state = hp->ssm_state, n_group = hp->ssm_groups,
                  d = inner / n_head, n_bc = n_group * n_state;
    tensor *all = gg_model_linear(at, GG_W_M2_IN, x); /* z, x, b, c, dt */
    tensor *z = gg_model_view_real_tokens(at, all, 0, inner);
    tensor *dt =
        gg_model_view_real_tokens(at, all, 2 * inner + 2 * n_bc, n_head);
    tensor *xbc = convolve_channels(
        at, GG_W_M2_CONV,
        gg_model_view_real_tokens(at, all, inner, inner + 2 * n_bc));
    const struct scan in = {
        .x = gg_model_view_real_heads(at, xbc, 0, d, n_head),
        .dt = gguf_op_add(c, dt, gg_weight_at(at, GG_W_M2_DT_B)),
        .a = gg_weight_at(at, GG_W_M2_A),
        .b = gg_model_view_real_heads(at, xbc, inner, n_state, n_group),
        .c = gg_model_view_real_heads(at, xbc, inner + n_bc, n_state, n_group)
    };
    tensor *y = scan_states(at, &in);
    y = gguf_op_add(c, y, gguf_op_mul(c, in.x, gg_weight_at(at, GG_W_M2_D)));
    y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    y = gate_output(at, y, z);
    if (gg_weight_at(at, GG_W_M2_NORM)) {
        y = gguf_op_reshape_3d(c, y, inner / n_group, n_group,
                               p->n_real * p->n_seq);
        y = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_M2_NORM, y);
        y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    }
    return gg_model_repeat_last_token(at, y);
}

const uint16_t gg_mixer_mamba2_weights[] = {
    GG_NEED(M2_IN), GG_NEED(M2_CONV), GG_NEED(M2_CONV_B), GG_NEED(M2_DT_B),
    GG_NEED(M2_A),  GG_NEED(M2_D),    GG_NEED(SSM_OUT),   0
};
static const uint16_t w_norm[] = { GG_NEED(M2_NORM), 0 };

const struct gg_mixer gg_mixer_mamba2 = { .text = "Mamba-2",
                                          .weights = gg_mixer_mamba2_weights,
                                          .more_weights = w_norm,
                                          .mix = gg_model_mix_mamba2,
                                          .out = GG_W_SSM_OUT,
                                          .memory = GG_MODEL_MEMORY_STATES,
                                          .states =
                                              gg_model_size_states_mamba2 };

/* ---- PLaMo 2: heads of one group; only x goes through the convolution ---- */

void gg_model_size_states_plamo(const struct gguf_model *m,
                                const struct gg_model_layer *l,
                                struct gg_model_state_sizes *n)
{
    const struct gg_hparams *hp = &m->hp;
    (void)l;
    *n = (struct gg_model_state_sizes){
        .conv = { hp->ssm_inner, (int64_t)hp->ssm_conv - 1 },
        .scan = { hp->ssm_state, hp->ssm_inner / hp->ssm_dt, hp->ssm_dt }
    };
}

/* First or second half of each head of x [2 * d * n_head, n_real, n_seq]: [d *
 * n_head, n_real, n_seq]. */
static tensor *head_halves(const struct gg_model_at *at, tensor *x,
                           int64_t which, int64_t d, int64_t n_head)
{
    if (!x)
        return NULL;
    const int64_t es = x->nb[0];
    tensor *y =
        gguf_op_view_4d(at->c, x, d, n_head, x->ne[1], x->ne[2], 2 * d * es,
                        x->nb[1], x->nb[2], (uint64_t)(which * d * es));
    return gguf_op_reshape_3d(at->c, gguf_op_cont(at->c, y), d * n_head,
                              x->ne[1], x->ne[2]);
}

tensor *gg_model_mix_plamo(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const struct gg_model_pass *p = at->p;
    const int64_t inner = hp->ssm_inner, n_head = hp->ssm_dt,
                  n_state = hp->ssm_state, d = inner / n_head;
    tensor *all = gg_model_linear(at, GG_W_M1_IN, x); /* a head's z, x */
    all = gg_model_view_real_tokens(at, all, 0, 2 * inner);
    tensor *z = head_halves(at, all, 0, d, n_head);
    x = convolve_channels(at, GG_W_M1_CONV,
                          head_halves(at, all, 1, d, n_head));
    all = gg_model_linear(at, GG_W_PLAMO_X, gg_model_repeat_last_token(at, x));
    if (!all)
        return NULL;
    const int64_t rank = all->ne[0] - 2 * n_state;
    tensor *b = column_part(at, all, 0, n_state, GG_W_PLAMO_B_NORM, true);
    tensor *k =
        column_part(at, all, n_state, n_state, GG_W_PLAMO_C_NORM, true);
    tensor *dt =
        column_part(at, all, 2 * n_state, rank, GG_W_PLAMO_DT_NORM, true);
    dt = gguf_op_add(c, gg_model_linear(at, GG_W_PLAMO_DT, dt),
                     gg_weight_at(at, GG_W_M2_DT_B));
    tensor *by_head =
        gguf_op_reshape_2d(c, gg_weight_at(at, GG_W_HEADS_D), 1, n_head);
    const struct scan in = {
        .x = gg_model_view_real_heads(at, x, 0, d, n_head),
        .dt = gg_model_view_real_tokens(at, dt, 0, n_head),
        .a = gguf_op_reshape_2d(c, gg_weight_at(at, GG_W_HEADS_A), 1, n_head),
        .b = one_group(at, b, n_state),
        .c = one_group(at, k, n_state)
    };
    tensor *y =
        gguf_op_add(c, scan_states(at, &in), gguf_op_mul(c, in.x, by_head));
    y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    return gg_model_repeat_last_token(at, gate_output(at, y, z));
}
