/* SPDX-License-Identifier: MIT */
/* lfm.c - LFM2 */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>

typedef struct gguf_tensor tensor;

/* Short convolutions: of a few tokens, between two gates. */

static const uint16_t w_shortconv[] = { N(SHORT_IN), N(SHORT_CONV),
                                        N(SHORT_OUT), 0 };

static void size_states(const struct gguf_model *m,
                        const struct gg_model_layer *l,
                        struct gg_model_state_sizes *n)
{
    (void)l;
    *n = (struct gg_model_state_sizes){
        .conv = { m->hp.n_embd, (int64_t)m->hp.n_lconv - 1 }
    };
}

static enum gguf_status check_taps(const struct gguf_model *m, uint32_t il,
                                   struct gguf_error *err)
{
    (void)il;
    if (m->hp.causal || m->hp.n_lconv % 2)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                        "%s.shortconv.l_cache is %" PRIu32
                        ", must be odd where attention.causal is false",
                        m->arch->name, m->hp.n_lconv);
}

/* Convolution of x [n_embd, n_real, n_seq]. Its last tap is for the token
 * itself; in models that are not causal, the middle one. */
static tensor *convolve_tokens(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int32_t after = (int32_t)at->m->hp.n_lconv / 2;
    if (!gg_model_needs_whole_sequence(at->m))
        return gg_model_apply_conv(
            at, GG_W_SHORT_CONV, x,
            gg_model_view_states(at, at->p->states.conv[at->il], 3));
    x = gguf_op_roll(c, gguf_op_pad(c, x, 0, 2 * after, 0, 0), 0, after, 0, 0);
    return gguf_op_ssm_conv(c, gguf_op_transpose(c, x),
                            gg_weight_at(at, GG_W_SHORT_CONV));
}

static tensor *mix_short_convolution(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_embd;
    tensor *all = gg_model_linear(at, GG_W_SHORT_IN, x); /* b, c, x */
    tensor *y = gguf_op_mul(c, gg_model_view_real_tokens(at, all, 0, n),
                            gg_model_view_real_tokens(at, all, 2 * n, n));
    y = gguf_op_mul(c, convolve_tokens(at, y),
                    gg_model_view_real_tokens(at, all, n, n));
    return gg_model_repeat_last_token(at, y);
}

static const struct gg_mixer short_convolution = {
    .text = "short convolution",
    .weights = w_shortconv,
    .looks_ahead = true,
    .mix = mix_short_convolution,
    .out = GG_W_SHORT_OUT,
    .memory = GG_MODEL_MEMORY_STATES,
    .states = size_states,
    .check = check_taps,
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "lfm2", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM)), EMBD_NORM), NEOX,
      HEAD_NORM, .other = &short_convolution, .mix_rule = &gg_arch_mix_by_kv,
      .window = { &gg_arch_window_everywhere, .key = GG_MAY },
      MORE(K(n_lconv), M(DENSE_2), M(DENSE_2_B), KM(n_embd_out)) },
    { .name = "lfm2moe", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM)), EMBD_NORM), NEOX,
      HEAD_NORM, .other = &short_convolution, .mix_rule = &gg_arch_mix_by_kv,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_given },
      MORE(K(n_lconv)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_lfm = { rows, GG_LEN(rows) };
