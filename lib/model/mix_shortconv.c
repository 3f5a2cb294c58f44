/* mix_shortconv.c - short convolutions (LFM2): of a few tokens, between two
 * gates
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

void gg_model_states_shortconv(const struct gguf_model *m,
                               const struct gg_model_layer *l,
                               struct gg_model_states *n)
{
    (void)l;
    *n = (struct gg_model_states){ .conv = { m->hp.n_embd,
                                             (int64_t)m->hp.n_lconv - 1 } };
}

tensor *gg_model_mix_shortconv(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_embd;
    tensor *all = gg_model_linear(at, GG_W_SHORT_IN, x); /* b, c, x */
    tensor *before = gg_model_streams(at, at->p->states.conv[at->il], 3);
    tensor *y = gguf_op_mul(c, gg_model_real(at, all, 0, n),
                            gg_model_real(at, all, 2 * n, n));
    y = gg_model_convolved(at, GG_W_SHORT_CONV, y, before);
    y = gguf_op_mul(c, y, gg_model_real(at, all, n, n));
    return gg_model_whole(at, y);
}
