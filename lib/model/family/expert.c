/* SPDX-License-Identifier: MIT */
/* expert.c - experts of several makers, each alone in its lineage */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

static const uint16_t w_square[] = { N(FFN_GATE_SQUARE), N(FFN_UP_SQUARE),
                                     N(FFN_DOWN_SQUARE), 0 };

/* As wide as the model. */
static tensor *ffn_square(const struct gg_model_at *at, tensor *x)
{
    tensor *gate = gg_model_linear(at, GG_W_FFN_GATE_SQUARE, x);
    tensor *up = gg_model_linear(at, GG_W_FFN_UP_SQUARE, x);
    return gg_model_linear(at, GG_W_FFN_DOWN_SQUARE,
                           gg_model_activated(at, gate, up, 0));
}

static const struct gg_ffn square = { .text = "as wide as the model",
                                      .weights = w_square,
                                      .build = ffn_square };

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "arctic", .runs = true, LLAMA, .order = GG_ORDER_BESIDE,
      .ffn = &square, .moe = MOE_ALL(MUST, MODEL), MORE(N(FFN_NORM_EXPS)) },
    { .name = "grok", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM), .post = W(ATTN_OUT_NORM)),
            AT(.pre = W(FFN_NORM), .post = W(LAYER_OUT_NORM)), OUTPUT_NORM),
      NEOX, .yarn_fast = 8, .scale = GG_SCALE_OUTPUT, .act = &gg_ffn_act_gelu,
      .moe = { .where = GG_EXPERTS_ALL, .norm = GG_MUST,
               .ff = GG_EXPERT_FF_KEY_OR_MODEL, .beside = GG_BESIDE_MAYBE },
      .embd_scale = GG_EMBD_SCALE_KEY, .embd_default = 78.38367176906169f,
      .logit_scale = GG_LOGIT_SCALE_TIMES,
      .logit_default = 0.5773502691896257f, .attn_cap = 30, .cap = 1,
      MORE(M(NORM_POST_FFN), M(FFN_GATE), M(FFN_UP), M(FFN_DOWN)),
      .odd = "a dense part beside the experts; router_logit_softcapping is "
             "not used" },
    { .name = "laguna", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .gate = GG_GATE_SOFTPLUS,
      .window = { GG_WINDOW_FIRST_FULL, GG_MAY, 4,
                  .rope = GG_WINDOW_ROPE_PLAIN_BASE },
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .select_b = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_WIDTH_COUNT },
      MORE(K(n_dense)) },
    { .name = "mimo2", .runs = true, LLAMA, NEOX, OWN, .sinks = GG_MAY,
      .window = { GG_WINDOW_ARRAY, GG_MUST, .rope = GG_WINDOW_ROPE_OWN },
      .moe = { .where = GG_EXPERTS_TENSOR, .gating = GG_GATING_SIGMOID,
               .select_b = GG_MAY, .norm = GG_MUST, .ff = GG_EXPERT_FF_KEY },
      .nextn = true,
      MORE(K(window_pattern), KM(value_scale), M(LAYER_OUT_NORM)),
      IDLE(W(ATTN_Q_B), W(ATTN_K_B), W(ATTN_V_B), W(ATTN_QKV_B),
           W(LAYER_OUT_NORM)),
      .odd = "attention's result times attention.value_scale; its biases are "
             "not added" },
    { .name = "step35", .runs = true, LLAMA, NEOX, OWN, FREQS, LONGROPE,
      .qkv = GG_QKV_SEPARATE, .qk = { .form = GG_QK_HEAD, .maybe = true },
      .gate = GG_GATE_HEAD,
      .window = { GG_WINDOW_ARRAY, GG_MUST, .rope = GG_WINDOW_ROPE_OWN,
                  .full_half = true },
      .moe = { .where = GG_EXPERTS_TENSOR, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_WIDTH },
      .nextn = true,
      MORE(K(window_pattern), KM(clamp_exp), KM(clamp_shexp), M(FFN_GATE),
           M(FFN_UP), M(FFN_DOWN)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_expert = { rows, GG_LEN(rows) };
