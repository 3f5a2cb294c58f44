/* SPDX-License-Identifier: MIT */
/* llama.c - LLaMA and the models that are made like it */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

static const uint16_t w_linear[] = { N(ATTN_LINEAR), 0 };

/* DeciLM: attention with one matrix only, which leads back. */
static tensor *mix_linear(const struct gg_model_at *at, tensor *x)
{
    (void)at;
    return x;
}

static const struct gg_mixer linear = { .text = "a matrix",
                                        .weights = w_linear,
                                        .mix = mix_linear,
                                        .out = GG_W_ATTN_LINEAR };

static tensor *apply_xielu(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_layer *l = at->layer;
    return gguf_op_xielu(at->c, x, l->xielu_n, l->xielu_p, l->xielu_beta,
                         l->xielu_eps);
}

static const struct gg_ffn_act xielu = { .text = "xIELU",
                                         .of_layer = apply_xielu };

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "afmoe", .runs = true, FOUR, NEOX, HEAD_NORM,
      .rope_where = GG_ROPE_WHERE_STEP_4, .gate = GG_GATE_SIGMOID,
      .window = { GG_WINDOW_LAST_FULL, GG_MAY, 4, .rope = GG_WINDOW_ROPE_BASE },
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .select_b = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT },
      .embd_scale = GG_EMBD_SCALE_SQRT },
    { .name = "apertus", .runs = true, LLAMA, NEOX, OWN, FREQS, LONGROPE,
      .out_b = GG_MAY, .qk = { .form = GG_QK_HEAD, .bias = GG_MAY },
      .ffn = &gg_ffn_plain, .act = &xielu,
      MORE(K(xielu_n), K(xielu_p), K(xielu_beta), K(xielu_eps)),
      IDLE(W(ATTN_Q_NORM_B), W(ATTN_K_NORM_B)),
      .odd = "biases of norms of q and k are not used" },
    { .name = "arcee", .runs = true, LLAMA, FREQS, .ffn = &gg_ffn_plain,
      .act = &gg_ffn_act_relu_sqr },
    { .name = "baichuan", .runs = true, LLAMA, OWN,
      .rope_where = GG_ROPE_WHERE_LAYERS_32 },
    { .name = "bitnet", .runs = true, LLAMA, NEOX, .qkv = GG_QKV_SEPARATE,
      .output = GG_OUTPUT_EMBD, MORE(N(ATTN_SUB_NORM), N(FFN_SUB_NORM)),
      .odd = "norms of attention's result and of the activations" },
    { .name = "chameleon", .runs = true, LLAMA, .order = GG_ORDER_BY_SWIN,
      .qk = { .form = GG_QK_HEADS, .kind = GG_NORM_LAYER, .bias = GG_MAY,
              .eps = 1e-5f },
      .struck = { 4, 8196 }, MORE(KM(swin)),
      .odd = "logits of image tokens, 4 to 8195, are struck out for each "
             "token; llama.cpp does so for the first of a batch" },
    { .name = "deci", .runs = true, LLAMA, FREQS, LONGROPE, .other = &linear,
      .mix_rule = GG_MIX_RULE_NO_HEADS, .out_b = GG_MAY, .ffn_b = GG_MAY,
      .odd = "a layer without a feed-forward part still attends, as in the "
             "definition; in llama.cpp it does nothing" },
    { .name = "internlm2", .runs = true, LLAMA, OWN },
    { .name = "llama", .runs = true, LLAMA, FREQS, LONGROPE,
      .qk = { .form = GG_QK_HEAD, .maybe = true }, .out_b = GG_MAY,
      .ffn_b = GG_MAY, .output_b = GG_MAY,
      .moe = { .where = GG_EXPERTS_COUNT, .norm = GG_MUST, .gate_maybe = true } },
    { .name = "llama-embed", .runs = true, LLAMA, FREQS, LONGROPE,
      .out_b = GG_MAY, .ffn_b = GG_MAY, .moe = MOE_IF_ANY,
      .output = GG_OUTPUT_NONE, .no_memory = true, MORE(M(OUTPUT)) },
    { .name = "llama4", .runs = true, LLAMA, FREQS,
      .rope_where = GG_ROPE_WHERE_STEP_4_WINDOWS,
      .qk = { .form = GG_QK_PLAIN, .late = true, .turned = true,
              .not_at = 128 },
      .window = { GG_WINDOW_CHUNKS, GG_MAY, 4, .size = 8192, .exact = 8192,
                  .rope = GG_WINDOW_ROPE_BASE },
      .moe = { .where = GG_EXPERTS_STEP, .gating = GG_GATING_RAW_SIGMOID,
               .ff = GG_EXPERT_FF_KEY, .shared = GG_SHARED_ONE },
      .temper = GG_TEMPER_STILL, MORE(K(moe_step)) },
    { .name = "maincoder", .runs = true, LLAMA,
      .qk = { .form = GG_QK_HEAD, .late = true } },
    { .name = "mellum", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .window = { GG_WINDOW_LAST_FULL, GG_MAY, .rope = GG_WINDOW_ROPE_PLAIN },
      .moe = MOE_ALL(MUST, KEY_OR_PART) },
    { .name = "nanbeige", .runs = true, LLAMA, FREQS, .order = GG_ORDER_LOOPS,
      MORE(KM(n_loops), KM(skip_loop_norm)),
      .odd = "the last norm between loops, too, unless skip_loop_final_norm" },
    { .name = "openelm", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .qkv = GG_QKV_FUSED, .output = GG_OUTPUT_EMBD },
    { .name = "orion", .runs = true, LLAMA, LAYER, NEOX, OWN },
    { .name = "pangu-embedded", .runs = true, LLAMA, NEOX, FREQS, LONGROPE,
      .out_b = GG_MUST, IDLE(W(ROPE_FREQS), W(ROPE_LONG), W(ROPE_SHORT)),
      .odd = "frequency factors are not used" },
    { .name = "seed_oss", .runs = true, LLAMA_POST, NEOX },
    { .name = "smollm3", .runs = true, LLAMA,
      .rope_where = GG_ROPE_WHERE_STEP_4 },
    { .name = "xverse", .runs = true, LLAMA, OWN },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_llama = { rows, GG_LEN(rows) };
