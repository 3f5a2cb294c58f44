/* SPDX-License-Identifier: MIT */
/* gemma.c - Gemma */
#include "config.h"
#include "model/family/arch_row.h"

#include <math.h>

/* Number of AltUp's streams, which no key gives. */
static void size_streams(const struct gg_hparams *hp,
                         const struct gg_model_layer *l,
                         struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->streams = 4;
}

typedef struct gguf_tensor tensor;

/* The largest model of a generation divides scores by sqrt(n_embd / n_head),
 * others by the square root of a head's width. */
static float scale_by_size(const struct gg_hparams *hp,
                           const struct gg_model_layer *l, uint32_t n_layer)
{
    const uint32_t d = hp->n_layer == n_layer && l->n_head
                           ? hp->n_embd / l->n_head
                           : l->dim_k;
    return 1 / sqrtf((float)d);
}

static float scale_gemma2(const struct gg_hparams *hp,
                          const struct gg_model_layer *l)
{
    return scale_by_size(hp, l, 46);
}

static float scale_gemma3(const struct gg_hparams *hp,
                          const struct gg_model_layer *l)
{
    return scale_by_size(hp, l, 62);
}

static const struct gg_arch_scale of_gemma2 = {
    .text = "1/sqrt(n_embd/n_head) in one size; that of 46 layers",
    .of_layer = scale_gemma2
};
static const struct gg_arch_scale of_gemma3 = {
    .text = "1/sqrt(n_embd/n_head) in one size; that of 62 layers",
    .of_layer = scale_gemma3
};

static uint32_t window_size(const struct gg_hparams *hp)
{
    return hp->has[GG_HP_n_window] ? hp->n_window : 4096;
}

static tensor *norm_values(const struct gg_model_at *at, tensor *v)
{
    return gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, v);
}

/* Gemma 3n: the first 20 layers have their own keys, if the file does not
 * say. */
static uint32_t n_kv_layers(const struct gg_hparams *hp)
{
    (void)hp;
    return 20;
}

/* ---- Gemma 4 ---- */

/* Values may be the keys. */
static const uint16_t w_qkv[] = { N(ATTN_Q), N(ATTN_K), M(ATTN_V), 0 };
static const struct gg_arch_qkv maybe_no_v = {
    .text = "separate, values may be keys", .weights = w_qkv
};

/* Experts read the residual stream, the dense part its norm. */
static tensor *add_dense(const struct gg_model_at *at, tensor *x)
{
    tensor *y = at->layer->ffn->build(at, x);
    tensor *z = gg_model_build_moe(
        at, gg_model_apply_norm_if(at, GG_W_PRE_NORM_2, at->sum));
    return gguf_op_add(at->c, gg_model_apply_norm_if(at, GG_W_POST_NORM_1, y),
                       gg_model_apply_norm_if(at, GG_W_POST_NORM_2, z));
}

static const struct gg_arch_dense_branch normed_dense = {
    .text = "a dense part in addition, each with norms",
    .always = true,
    .build = add_dense
};

static tensor *scale_result(const struct gg_model_at *at, tensor *x)
{
    tensor *scale = gg_weight_at(at, GG_W_LAYER_OUT_SCALE);
    return scale ? gguf_op_mul(at->c, x, scale) : x;
}

static const uint16_t w_dense[] = { N(ROUTER_SCALE), N(PRE_NORM_2),
                                    N(POST_NORM_1), N(POST_NORM_2), 0 };

static void choose_weights(struct gg_needs *n, const struct gg_hparams *hp,
                           const struct gg_model_layer *l)
{
    (void)hp;
    if (l && l->moe)
        gg_needs_add_list(n, w_dense);
}

static const uint16_t w_three[] = { N(ATTN_Q), N(ATTN_K), N(ATTN_V), 0 };
static const struct gg_arch_qkv half_own = {
    .text = "later layers share keys and values", .weights = w_three
};

/* Input of the router: the residual stream, normed and scaled. */
static tensor *router_input(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    x = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, at->sum);
    x = gguf_op_scale(c, x, 1 / sqrtf((float)at->m->hp.n_embd));
    return gguf_op_mul(c, x, gg_weight_at(at, GG_W_ROUTER_SCALE));
}

/* Quantile 0.95 of a normal distribution: one gate of twenty counts in Gemma
 * 3n's first ten layers (You et al., arXiv 2506.06644), all in the others. */
static float activation_sparsity(uint32_t il)
{
    return il < 10 ? 1.6448533535003662f : -INFINITY;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "gemma", .runs = true, LLAMA, NEOX, .act = &gg_ffn_act_gelu,
      .embd_scale = &gg_arch_embd_sqrt, .output = GG_OUTPUT_EMBD },
    { .name = "gemma-embedding", .runs = true, SANDWICH_NORM, NEOX, HEAD_NORM,
      .act = &gg_ffn_act_gelu,
      .window = { &gg_arch_window_last_full, GG_MUST, 6,
                  .rope = &gg_arch_window_rope_own },
      .bidirectional = true, .whole_sequence = true,
      .embd_scale = &gg_arch_embd_sqrt,
      .output = GG_OUTPUT_NONE,
      MORE(M(OUTPUT), M(DENSE_2), M(DENSE_3), KM(dense_2_out),
           KM(dense_3_in)) },
    { .name = "gemma2", .runs = true, SANDWICH_NORM, NEOX,
      .act = &gg_ffn_act_gelu,
      .scale = &of_gemma2,
      .window = { &gg_arch_window_last_full, GG_MAY, 2,
                  .size = { window_size, "of 4096 unless given" },
                  .rope = &gg_arch_window_rope_base },
      .embd_scale = &gg_arch_embd_sqrt, .output = GG_OUTPUT_EMBD,
      DEFAULTS(D(attn_softcap, 50), D(logit_softcap, 30)) },
    { .name = "gemma3", .runs = true, SANDWICH_NORM, NEOX, HEAD_NORM,
      .act = &gg_ffn_act_gelu, .scale = &of_gemma3,
      .window = { &gg_arch_window_last_full, GG_MAY, 6,
                  .rope = &gg_arch_window_rope_own },
      .embd_scale = &gg_arch_embd_sqrt, MORE(KM(logit_softcap)) },
    { .name = "gemma3n", .runs = true, SANDWICH_NORM, NEOX,
      .build_layers = { gg_altup_layers, "AltUp streams and Laurel" },
      .layer_sizes = { size_streams, "" }, .qkv = &half_own,
      .qk_norm = { .form = GG_QK_HEAD,
              .norm_values = { norm_values, ", of v too" } },
      .act = &gg_ffn_act_gelu, .scale = &gg_arch_scale_one,
      .window = { &gg_arch_window_last_full, GG_MUST, 5,
                  .rope = &gg_arch_window_rope_own },
      .embd_scale = &gg_arch_embd_sqrt,
      DEFAULTS(D(logit_softcap, 30), D(n_per_layer, 256)),
      .n_kv_layers = { n_kv_layers,
                       "own keys in the first 20 layers unless given" },
      .activation_sparsity = { activation_sparsity,
                               "activation sparsity in 10 layers" },
      MORE(KM(n_shared_kv), KM(activation_sparsity), N(ALTUP_PROJ),
      N(ALTUP_UNEMBD),
           N(ALTUP_CORRECT), N(ALTUP_SCALE), N(ALTUP_PREDICT), N(ALTUP_ROUTER),
           N(ALTUP_NORM), N(LAUREL_L), N(LAUREL_R), N(LAUREL_NORM)) },
    { .name = "gemma4", .runs = true, SANDWICH_NORM, NEOX,
      .rope_freqs = GG_MUST,
      .qkv = &maybe_no_v,
      .qk_norm = { .form = GG_QK_HEAD,
              .norm_values = { norm_values, ", of v too" } },
      .act = &gg_ffn_act_gelu, .scale = &gg_arch_scale_one,
      .window = { &gg_arch_window_listed, GG_MUST,
                  .rope = &gg_arch_window_rope_own },
      .moe = { .where = &gg_arch_experts_by_router, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_or_model,
               .router_input = { router_input,
                                 "router on the sum, normed and scaled" },
               .dense_branch = &normed_dense },
      .embd_scale = &gg_arch_embd_sqrt, DEFAULTS(D(logit_softcap, 30)),
      .finish_layer = { scale_result, "" },
      .choose_weights = { choose_weights, "" },
      MORE(M(LAYER_OUT_SCALE), K(n_per_layer), K(dim_k_swa), K(dim_v_swa),
           K(window_pattern), KM(n_shared_kv)) },
};
/* clang-format on */

const char *const gg_arch_drafts_gemma[] = { "gemma4-assistant", NULL };

const struct gg_arch_family gg_arch_family_gemma = { rows, GG_LEN(rows) };
