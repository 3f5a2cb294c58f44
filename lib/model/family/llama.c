/* SPDX-License-Identifier: MIT */
/* llama.c - LLaMA and the models that are made like it */
#include "config.h"
#include "model/family/arch_row.h"

#include <float.h>

typedef struct gguf_tensor tensor;

static const uint16_t w_linear[] = { N(ATTN_LINEAR), 0 };

/* DeciLM: attention with one matrix only, which leads back. */
static tensor *mix_linear(const struct gg_model_at *at, tensor *x)
{
    (void)at;
    return x;
}

static const struct gg_mixer linear = { .text = "a single matrix",
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

static const struct gg_mixer *mixer_by_heads(const struct gg_arch *a,
                                             const struct gg_hparams *hp,
                                             uint32_t il)
{
    const struct gg_model_layer *l = &hp->layer[il];
    if (!l->n_head)
        return NULL;
    return l->n_head_kv ? gg_arch_mixer(a) : a->other;
}

static const struct gg_arch_mix_rule by_heads = {
    .text = "layers without heads: nothing, without key/value heads",
    .of_layer = mixer_by_heads
};

/* ---- layers with rotary embedding ---- */

static bool is_not_fourth(const struct gg_hparams *hp, uint32_t il)
{
    (void)hp;
    return (il + 1) % 4 != 0;
}

static const struct gg_arch_rope_rule by_fours = {
    .text = "except every fourth layer", .of_layer = is_not_fourth
};

/* Baichuan 7B (32 layers) has rotary embedding, 13B (40 layers) ALiBi; no key
 * tells them apart. */
static bool is_baichuan_7b(const struct gg_hparams *hp, uint32_t il)
{
    (void)il;
    return hp->n_layer == 32;
}

static float alibi_of_baichuan_13b(const struct gg_hparams *hp)
{
    return hp->n_layer == 40 ? 8 : 0;
}

static const struct gg_arch_rope_rule of_7b = {
    .text = "with 32 layers; ALiBi with 40", .of_layer = is_baichuan_7b
};

/* ---- Chameleon ---- */

static struct gg_model_norms norms_by_swin(const struct gg_model_at *at,
                                           const struct gg_model_norms *n)
{
    return at->m->hp.swin ? (struct gg_model_norms){ .post = n->pre } : *n;
}

/* With an epsilon of their own. */
static tensor *norm_heads(const struct gg_model_at *at, enum gg_weight id,
                          tensor *x)
{
    return gg_model_apply_norm_with_eps(at, GG_NORM_LAYER, id, 1e-5f, x);
}

/* ---- Llama 4 ---- */

static bool has_chunks(const struct gg_hparams *hp, uint32_t il)
{
    return !hp->has_windows || (il + 1) % 4 != 0;
}

static const struct gg_arch_rope_rule by_fours_with_windows = {
    .text = "except every fourth layer if there are windows",
    .of_layer = has_chunks
};

static const struct gg_arch_window_rule in_chunks = {
    .text = "chunks, last layer of each period full",
    .of_layer = gg_arch_is_window_last_full,
    .chunks = true
};

static uint32_t chunk_size(const struct gg_hparams *hp)
{
    return hp->has[GG_HP_n_window] && !hp->n_window ? 0 : 8192;
}

/* In layers with rotary embedding, except in Maverick with its 128 experts. */
static tensor *norm_local_heads(const struct gg_model_at *at,
                                enum gg_weight id, tensor *x)
{
    (void)id;
    if (!at->layer->has_rope || at->m->hp.n_expert == 128)
        return x;
    return gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, x);
}

/* These numbers are in no key. */
static void fill_temperature(struct gg_hparams *hp)
{
    hp->temperature.scale = 0.1f;
    hp->temperature.length = 8192;
    hp->temperature.first = 1;
}

static bool is_nope_layer(const struct gg_model_layer *l)
{
    return !l->has_rope;
}

static const struct gg_arch_temperature where_still = {
    .text = "query temperature in layers without RoPE",
    .fill = fill_temperature,
    .of_layer = is_nope_layer
};

/* ---- Nanbeige ---- */

static uint32_t n_loops(const struct gg_hparams *hp)
{
    return hp->n_loops ? hp->n_loops : 1;
}

static uint32_t n_looped_layers(const struct gg_hparams *hp)
{
    return hp->n_layer * n_loops(hp);
}

static uint32_t layer_in_loop(const struct gg_hparams *hp, uint32_t il)
{
    return il % hp->n_layer;
}

static const struct gg_arch_unroll by_loops = {
    .text = "all layers num_loops times",
    .n_layers = n_looped_layers,
    .most = n_loops,
    .layer_of = layer_in_loop
};

static bool is_step(const struct gg_hparams_reader *r, uint32_t il)
{
    return r->hp->moe_step && (il + 1) % r->hp->moe_step == 0;
}

static const struct gg_arch_experts in_steps = {
    .text = "every interleave_moe_layer_step-th layer", .of_layer = is_step
};

static uint32_t gating_of_llama4(const struct gg_hparams *hp)
{
    (void)hp;
    return GG_EXPERT_SIGMOID_ON_INPUT;
}

static double width_of_one(const struct gg_hparams *hp, double own, double ff)
{
    (void)hp;
    (void)ff;
    return own;
}

static const struct gg_arch_shared one_shared = { .text = "one shared",
                                                  .width = width_of_one };

/* ---- Chameleon's logits ---- */

/* Tokens of images, 4 to 8195, are never to come: the least float. */
static tensor *mask_image_tokens(const struct gg_model_at *at, tensor *y)
{
    struct gguf_ctx *c = at->c;
    tensor *all = NULL;
    if (!y)
        return NULL;
    const int64_t n = y->ne[0],
                  cuts[] = { 0, GG_MIN(4, n), GG_MIN(8196, n), n };
    for (int i = 0; i < 3; i++) {
        if (cuts[i] == cuts[i + 1])
            continue;
        tensor *part =
            gguf_op_view_2d(c, y, cuts[i + 1] - cuts[i], y->ne[1], y->nb[1],
                            (uint64_t)(cuts[i] * y->nb[0]));
        part = gguf_op_cont(c, part);
        if (i == 1)
            part = gguf_op_clamp(c, part, -FLT_MAX, -FLT_MAX);
        all = all ? gguf_op_concat(c, all, part, 0) : part;
    }
    return all;
}

/* In the first files with experts, experts may have no gate. */
static void choose_weights(struct gg_needs *n, const struct gg_hparams *hp,
                           const struct gg_model_layer *l)
{
    (void)hp;
    if (l && l->moe)
        gg_needs_set_weight(n, GG_W_GATE_EXPS, GG_MAY);
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "afmoe", .runs = true, SANDWICH_NORM, NEOX, HEAD_NORM,
      .rope_rule = &by_fours,
      .gate_attention = { gg_arch_gate_elements, "sigmoid gate" },
      .window = { &gg_arch_window_last_full, GG_MAY, 4,
                  .rope = &gg_arch_window_rope_base },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .embd_scale = &gg_arch_embd_sqrt, MORE(N(ATTN_GATE)) },
    { .name = "apertus", .runs = true, LLAMA, NEOX, OWN, FREQS, LONGROPE,
      .out_b = GG_MAY, .qk_norm = { .form = GG_QK_HEAD, .bias = GG_MAY },
      .ffn = &gg_ffn_plain, .act = &xielu,
      MORE(K(xielu_n), K(xielu_p), K(xielu_beta), K(xielu_eps)),
      UNUSED(W(ATTN_Q_NORM_B), W(ATTN_K_NORM_B)),
      .remark = "biases of norms of q and k are not used" },
    { .name = "arcee", .runs = true, LLAMA, FREQS, .ffn = &gg_ffn_plain,
      .act = &gg_ffn_act_relu_sqr },
    { .name = "baichuan", .runs = true, LLAMA, OWN, .rope_rule = &of_7b,
      .alibi_bias = alibi_of_baichuan_13b },
    { .name = "bitnet", .runs = true, LLAMA, NEOX,
      .qkv = &gg_arch_qkv_separate, .output = GG_OUTPUT_EMBD,
      MORE(N(ATTN_SUB_NORM), N(FFN_SUB_NORM)),
      .remark = "norms of attention's result and of the activations" },
    { .name = "chameleon", .runs = true, LLAMA,
      .place_norms = { norms_by_swin,
                       "norms before or after the parts by swin_norm" },
      .qk_norm = { .form = GG_QK_EACH_HEAD, .kind = GG_NORM_LAYER,
      .bias = GG_MAY,
              .norm_heads = { norm_heads, "" } },
      .mask_logits = mask_image_tokens, MORE(KM(swin)),
      .remark = "logits of image tokens, 4 to 8195, are masked "
                "for each token; llama.cpp does so for the "
                "first of a batch" },
    { .name = "deci", .runs = true, LLAMA, FREQS, LONGROPE, .other = &linear,
      .mix_rule = &by_heads, .out_b = GG_MAY, .ffn_b = GG_MAY,
      .remark = "a layer without a feed-forward part still attends, as in the "
                "definition; in llama.cpp it does nothing" },
    { .name = "internlm2", .runs = true, LLAMA, OWN },
    { .name = "llama", .runs = true, LLAMA, FREQS, LONGROPE,
      .qk_norm = { .form = GG_QK_HEAD, .optional = true }, .out_b = GG_MAY,
      .ffn_b = GG_MAY, .output_b = GG_MAY,
      .choose_weights = { choose_weights, "" },
      .moe = { .where = &gg_arch_experts_if_any, .norm = GG_MUST } },
    { .name = "llama-embed", .runs = true, LLAMA, FREQS, LONGROPE,
      .out_b = GG_MAY, .ffn_b = GG_MAY, .moe = MOE_IF_ANY,
      .output = GG_OUTPUT_NONE, .whole_sequence = true, MORE(M(OUTPUT)) },
    { .name = "llama4", .runs = true, LLAMA, FREQS,
      .rope_rule = &by_fours_with_windows,
      .qk_norm = { .after_rope = true,
              .norm_heads = { norm_local_heads,
                              "norms of q and k per head, no weight, late; "
                              "where positions turn; none with 128 "
                              "experts" } },
      .window = { &in_chunks, GG_MAY, 4, .size = { chunk_size, "of 8192" },
                  .rope = &gg_arch_window_rope_base },
      .moe = { .where = &in_steps,
               .gating_of_model = { gating_of_llama4,
                                    "sigmoid of the chosen, on the input" },
               .ff = &gg_arch_expert_width_given, .shared = &one_shared },
      .temperature = &where_still, MORE(K(moe_step)) },
    { .name = "maincoder", .runs = true, LLAMA,
      .qk_norm = { .form = GG_QK_HEAD, .after_rope = true } },
    { .name = "mellum", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .window = { &gg_arch_window_last_full, GG_MAY,
                  .rope = &gg_arch_window_rope_plain },
      .moe = MOE_ALL(MUST, OR_PART) },
    { .name = "nanbeige", .runs = true, LLAMA, FREQS,
      .unroll = &by_loops,
      MORE(KM(n_loops), KM(skip_loop_norm)),
      .remark = "the last norm between loops, too, unless "
                "skip_loop_final_norm" },
    { .name = "openelm", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .qkv = &gg_arch_qkv_fused, .output = GG_OUTPUT_EMBD },
    { .name = "orion", .runs = true, LLAMA, LAYER, NEOX, OWN },
    { .name = "pangu-embedded", .runs = true, LLAMA, NEOX, FREQS, LONGROPE,
      .out_b = GG_MUST, UNUSED(W(ROPE_FREQS), W(ROPE_LONG), W(ROPE_SHORT)),
      .remark = "frequency factors are not used" },
    { .name = "seed_oss", .runs = true, LLAMA_POST, NEOX },
    { .name = "smollm3", .runs = true, LLAMA, .rope_rule = &by_fours },
    { .name = "xverse", .runs = true, LLAMA, OWN },
};
/* clang-format on */

const char *const gg_arch_drafts_llama[] = { "eagle3", NULL };

const struct gg_arch_family gg_arch_family_llama = { rows, GG_LEN(rows) };
