/* mix_mamba.c - state spaces: a convolution and a scan over tokens */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Elements of a sequence's states of Mamba-2. */
void gg_model_states_mamba2(const struct gguf_model *m,
                            const struct gg_model_layer *l,
                            struct gg_model_states *n)
{
    const struct gg_hparams *hp = &m->hp;
    (void)l;
    *n = (struct gg_model_states){
        .conv = { (int64_t)hp->ssm_conv - 1,
                  hp->ssm_inner +
                      2 * (int64_t)hp->ssm_groups * hp->ssm_state },
        .scan = { hp->ssm_state, hp->ssm_inner / hp->ssm_dt, hp->ssm_dt }
    };
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
    tensor *z = gg_model_real(at, all, 0, inner);
    tensor *dt = gg_model_real(at, all, 2 * inner + 2 * n_bc, n_head);
    tensor *before = gg_model_streams(at, p->states.conv[at->il], 3);
    tensor *xbc = gguf_op_silu(
        c, gg_model_convolved(at, GG_W_M2_CONV,
                              gg_model_real(at, all, inner, inner + 2 * n_bc),
                              before));
    tensor *in = gg_model_real_heads(at, xbc, 0, d, n_head);
    tensor *memory = gg_model_streams(at, p->states.scan[at->il], 4);
    tensor *state;
    tensor *y = gguf_op_ssm_scan(
        c, memory, in, gguf_op_add(c, dt, gg_weight_at(at, GG_W_M2_DT_B)),
        gg_weight_at(at, GG_W_M2_A),
        gg_model_real_heads(at, xbc, inner, n_state, n_group),
        gg_model_real_heads(at, xbc, inner + n_bc, n_state, n_group),
        p->states.ids, &state);
    gg_model_keep(at, state, memory);
    y = gguf_op_add(c, y, gguf_op_mul(c, in, gg_weight_at(at, GG_W_M2_D)));
    y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    y = gguf_op_mul(c, y, gguf_op_silu(c, z));
    if (gg_weight_at(at, GG_W_M2_NORM)) {
        y = gguf_op_reshape_3d(c, y, inner / n_group, n_group,
                               p->n_real * p->n_seq);
        y = gg_model_normed(at, GG_NORM_RMS, GG_W_M2_NORM, y);
        y = gguf_op_reshape_3d(c, y, inner, p->n_real, p->n_seq);
    }
    return gg_model_whole(at, y);
}
