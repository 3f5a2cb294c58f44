/* SPDX-License-Identifier: MIT */
/* kimi.c - Kimi */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

static const uint16_t w_linear[] = { N(KDA_F_A), N(KDA_F_B), N(KDA_G_A),
                                     N(KDA_G_B), N(KDA_A),   0 },
                      w_k3[] = { N(KDA_F_A), N(KDA_F_B), N(KDA_G_BARE),
                                 N(KDA_A_FLAT), 0 },
                      w_gate[] = { M(ATTN_GATE), 0 };

static const struct gg_mixer latent_nope = {
    .text = "latent attention without positions", GG_MIXER_LATENT
};
static const struct gg_mixer latent_gated = {
    .text = "latent attention without positions",
    .more_weights = w_gate,
    GG_MIXER_LATENT
};

static const struct gg_mixer kda = { .text = "Kimi's delta rule",
                                     .more_weights = w_linear,
                                     .mix = gg_model_mix_kda,
                                     GG_MIXER_KDA };
static const struct gg_mixer kda_k3 = {
    .text = "Kimi's delta rule, with one matrix for the gate",
    .more_weights = w_k3,
    .mix = gg_model_mix_kda,
    GG_MIXER_KDA
};

static double width_of_one_at_least(const struct gg_hparams *hp, double own,
                                    double ff)
{
    (void)ff;
    return own * (hp->n_shared ? hp->n_shared : 1);
}

static const struct gg_arch_shared at_least_one = {
    .text = "shared: at least one", .width = width_of_one_at_least
};

/* ---- Kimi K3: residuals ---- */

/* Residual streams (attention residuals: Kimi Team, arXiv 2603.15031). The
 * stream is stored at the begin of each block of layers, and begins anew with
 * the result of the next mixer. Inputs of a part are weighted sums of all
 * stored streams and the present one.
 *
 * stored   [n_embd, n, N]; NULL: none
 * x        [n_embd, N] */
struct streams {
    tensor *stored, *x;
};

/* Scores of rows x [n_embd, n, N], by a weight: [1, n, N]. */
static tensor *score_rows(const struct gg_model_at *at, enum gg_weight id,
                          tensor *x)
{
    x = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, x);
    return gguf_op_sum_rows(at->c,
                            gguf_op_mul(at->c, x, gg_weight_at(at, id)));
}

/* Weighted sum of all streams, [n_embd, N]. Its weights are the softmax of the
 * streams' scores. The present stream comes first, so that graphs have the
 * nodes of its layer before those of this one. */
static tensor *merge_streams(const struct gg_model_at *at,
                             const struct streams *s, enum gg_weight id)
{
    struct gguf_ctx *c = at->c;
    if (!s->stored || !s->x)
        return s->x;
    const int64_t n = s->stored->ne[1], n_tok = s->x->ne[1];
    tensor *x = gguf_op_reshape_3d(c, s->x, s->x->ne[0], 1, n_tok);
    tensor *p = gguf_op_concat(c, score_rows(at, id, x),
                               score_rows(at, id, s->stored), 1);
    p = gguf_op_soft_max(c, gguf_op_reshape_2d(c, p, n + 1, n_tok), NULL, 1,
                         0);
    if (!p)
        return NULL;
    tensor *of_x = gguf_op_view_3d(c, p, 1, 1, n_tok, p->nb[0], p->nb[1], 0);
    tensor *of_stored = gguf_op_view_3d(c, p, 1, n, n_tok, p->nb[0], p->nb[1],
                                        (uint64_t)p->nb[0]);
    x = gguf_op_add(c, gguf_op_mul(c, x, of_x),
                    gguf_op_out_prod(c, s->stored, of_stored));
    return x ? gguf_op_reshape_2d(c, x, x->ne[0], n_tok) : NULL;
}

static void store_stream(const struct gg_model_at *at, struct streams *s)
{
    if (!s->x)
        return;
    tensor *x = gguf_op_reshape_3d(at->c, s->x, s->x->ne[0], 1, s->x->ne[1]);
    s->stored = s->stored ? gguf_op_concat(at->c, s->stored, x, 1) : x;
}

/* A layer. false: the last one of a pass without outputs. */
static bool build_layer(struct gg_model_at *at, struct streams *s)
{
    const struct gg_arch *a = at->arch;
    const uint32_t block = at->m->hp.res_block;
    const bool stores = block && at->il % block == 0;
    at->in = merge_streams(at, s, GG_W_ATTN_RES_SCORE);
    if (stores)
        store_stream(at, s);
    tensor *y = gg_model_apply_norm_if(at, a->mix_norm.pre, at->in);
    y = at->layer->mixer->mix(at, y);
    if (gg_model_is_last_layer(at)) {
        if (!at->p->n_out)
            return false;
        y = gg_model_take_output_rows(at, y);
        s->x = gg_model_take_output_rows(at, s->x);
        s->stored = gg_model_take_output_streams(at, s->stored);
    }
    y = gg_model_linear(at, at->layer->mixer->out, y);
    s->x = stores ? y : gguf_op_add(at->c, s->x, y);
    at->sum = merge_streams(at, s, GG_W_FFN_RES_SCORE);
    y = gg_model_build_ffn(
        at, gg_model_apply_norm_if(at, a->ffn_norm.pre, at->sum));
    y = gg_model_name_activation(at, "ffn_output", y);
    s->x = gg_model_add_control_vector(at, gguf_op_add(at->c, s->x, y));
    s->x = gg_model_name_activation(at, "output", s->x);
    return true;
}

static tensor *build_layers(const struct gg_model_pass *p,
                            struct gg_model_layer_links *across, tensor *x)
{
    struct gg_model_at at = gg_model_at_layer(p, across, 0);
    struct streams s = { NULL, x };
    for (uint32_t il = 0; il < gg_model_n_main_layers(p->model); il++) {
        at = gg_model_at_layer(p, across, il);
        if (!build_layer(&at, &s))
            return NULL;
    }
    return merge_streams(&at, &s, GG_W_OUTPUT_RES_SCORE);
}

/* ---- Kimi K3: the feed-forward part ---- */

/* b tanh(x / b), which is in (-b, b). */
static tensor *soft_cap(struct gguf_ctx *c, tensor *x, float b)
{
    return gguf_op_scale(c, gguf_op_tanh(c, gguf_op_scale(c, x, 1 / b)), b);
}

static tensor *apply_situ(const struct gg_model_at *at, tensor *gate,
                          tensor *up)
{
    const struct gg_hparams *hp = &at->m->hp;
    struct gguf_ctx *c = at->c;
    gate = gguf_op_mul(c, soft_cap(c, gate, hp->situ_beta),
                       gguf_op_sigmoid(c, gate));
    if (hp->situ_linear > 0)
        up = soft_cap(c, up, hp->situ_linear);
    return gguf_op_mul(c, gate, up);
}

static const struct gg_ffn_act act_situ = { .text = "SiLU with bounds",
                                            .gated_of_layer = apply_situ };

static void size_latent_experts(const struct gg_hparams *hp,
                                const struct gg_model_layer *l,
                                struct gg_model_sizes *z)
{
    (void)l;
    if (hp->expert_latent)
        z->expert_in = hp->expert_latent;
}

static void choose_weights(struct gg_needs *n, const struct gg_hparams *hp,
                           const struct gg_model_layer *l)
{
    static const uint16_t latent[] = { N(ROUTED_DOWN), N(ROUTED_UP),
                                       M(ROUTED_NORM), 0 },
                          of_layer[] = { N(ATTN_RES_SCORE), N(FFN_RES_SCORE),
                                         0 },
                          of_model[] = { N(OUTPUT_RES_SCORE), 0 };
    static const enum gg_weight shared[] = { GG_W_GATE_SHARED, GG_W_UP_SHARED,
                                             GG_W_DOWN_SHARED };
    if (hp->res_block)
        gg_needs_add_list(n, l ? of_layer : of_model);
    if (!l || !l->moe)
        return;
    for (size_t i = 0; i < GG_LEN(shared); i++)
        gg_needs_set_weight(n, shared[i], GG_MAY);
    if (hp->expert_latent)
        gg_needs_add_list(n, latent);
}

/* The norm of queries decides whether they have one matrix or two. */
static void fill_rank_of_queries(struct gg_hparams_reader *r)
{
    char name[GG_WEIGHT_NAME];
    for (uint32_t il = 0; il < r->hp->n_layer; il++)
        if (gg_source_find(r->src, gg_weight_name(GG_W_MLA_Q_NORM, il, name),
                           NULL))
            return;
    r->hp->rank_q = 0;
}

/* clang-format off */
#define MOE_KIMI(NORM)                                                        \
    .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,               \
    .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = NORM,              \
    .scale = true, .ff = &gg_arch_expert_width_given,                         \
    .shared = &at_least_one
#define KEYS_KIMI                                                             \
    K(rank_kv), K(dim_k_mla), K(dim_v_mla), K(ssm_conv), K(kda_head)

static const struct gg_arch rows[] = {
    { .name = "kimi-k3", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = &latent_gated, .other = &kda_k3, .mix_rule = &gg_arch_mix_by_kv,
      .build_layers = { build_layers, "attention residuals" },
      .gate_attention = { gg_arch_gate_elements, "sigmoid gate" },
      .act = &act_situ, .moe = { MOE_KIMI(GG_MAY) },
      .choose_weights = { choose_weights, "residual scores and latent experts "
                                          "by keys" },
      .layer_sizes = { size_latent_experts,
                       "experts of expert_latent_length" },
      .fill_hparams = { fill_rank_of_queries,
                        "rank of queries if they have a norm" },
      MORE(KEYS_KIMI, KM(rank_q), KM(kda_bound), K(n_shared),
           KM(expert_latent), K(res_block), K(situ_beta), K(situ_linear)) },
    { .name = "kimi-linear", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = &latent_nope, .other = &kda, .mix_rule = &gg_arch_mix_by_kv,
      .moe = { MOE_KIMI(GG_MUST) }, MORE(KEYS_KIMI) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_kimi = { rows, GG_LEN(rows) };
