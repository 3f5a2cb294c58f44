/* SPDX-License-Identifier: MIT */
/* needs.c - weights and keys that an architecture's columns imply */
#include "config.h"
#include "model/weight/needs.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define N(ID)           GG_NEED(ID)
#define M(ID)           GG_MAYBE(ID)
#define LIST(NAME, ...) static const uint16_t NAME[] = { __VA_ARGS__, 0 }

/* Put the weights and keys of a list into n; a needed one stays needed. */
void gg_needs_add_list(struct gg_needs *n, const uint16_t *list)
{
    for (; list && *list; list++) {
        unsigned id = *list & (GG_ITEM_KEY - 1);
        uint8_t use = *list & GG_ITEM_MAY ? GG_MAY : GG_MUST;
        uint8_t *to = *list & GG_ITEM_KEY ? &n->key[id] : &n->weight[id];
        *to = GG_MAX(*to, use);
    }
}

/* Add the weights of a list that belong to the model, or to layers. */
static void put_scope(struct gg_needs *n, const uint16_t *list, bool layer)
{
    for (; list && *list; list++) {
        const uint16_t one[] = { *list, 0 };
        unsigned id = *list & (GG_ITEM_KEY - 1);
        if (!(*list & GG_ITEM_KEY) &&
            (gg_weights[id].scope != GG_MODEL) == layer)
            gg_needs_add_list(n, one);
    }
}

void gg_needs_set_weight(struct gg_needs *n, enum gg_weight id, uint8_t use)
{
    if (id != GG_W_NONE)
        n->weight[id] = use;
}

/* ---- mixers ---- */

LIST(w_rank_q, N(MLA_Q_A), N(MLA_Q_NORM), N(MLA_Q_B));
LIST(w_direct_q, N(ATTN_Q));

/* ---- attention ---- */

LIST(w_qkv_any, N(ATTN_Q), M(ATTN_Q_B), N(ATTN_K), M(ATTN_K_B), N(ATTN_V),
     M(ATTN_V_B), M(ATTN_QKV), M(ATTN_QKV_B));
LIST(w_qkv_fused, N(ATTN_QKV));
LIST(w_qkv_separate, N(ATTN_Q), N(ATTN_K), N(ATTN_V));

const struct gg_arch_qkv gg_arch_qkv_fused = { .text = "fused",
                                               .weights = w_qkv_fused },
                         gg_arch_qkv_separate = { .text = "separate",
                                                  .weights = w_qkv_separate };

static void put_qk_norms(struct gg_needs *n, const struct gg_model_qk_norm *qk)
{
    static const uint16_t ids[GG_N_QK][2] = {
        [GG_QK_HEAD] = { GG_W_ATTN_Q_NORM, GG_W_ATTN_K_NORM },
        [GG_QK_EACH_HEAD] = { GG_W_ATTN_Q_NORM, GG_W_ATTN_K_NORM },
        [GG_QK_ALL_HEADS] = { GG_W_WIDE_Q_NORM, GG_W_WIDE_K_NORM },
    };
    for (int i = 0; i < 2; i++) {
        enum gg_weight id = (enum gg_weight)ids[qk->form][i];
        gg_needs_set_weight(n, id, qk->optional ? GG_MAY : GG_MUST);
        if (qk->bias)
            gg_needs_set_weight(n, gg_weight_bias(id), qk->bias);
    }
}

static void put_heads(struct gg_needs *n, const struct gg_arch *a)
{
    static const enum gg_weight biased[] = { GG_W_ATTN_Q, GG_W_ATTN_K,
                                             GG_W_ATTN_V, GG_W_ATTN_QKV };
    gg_needs_add_list(n, a->qkv ? a->qkv->weights : w_qkv_any);
    for (size_t i = 0; a->qkv && i < GG_LEN(biased); i++)
        if (n->weight[biased[i]] == GG_MUST)
            gg_needs_set_weight(n, gg_weight_bias(biased[i]), a->qkv_b);
    gg_needs_set_weight(n, GG_W_ATTN_OUT, GG_MUST);
    gg_needs_set_weight(n, GG_W_ATTN_OUT_B, a->out_b);
    put_qk_norms(n, &a->qk_norm);
}

static void put_mixer(struct gg_needs *n, const struct gg_arch *a,
                      const struct gg_hparams *hp,
                      const struct gg_model_layer *l)
{
    const struct gg_mixer *mixer = l->mixer;
    gg_needs_add_list(n, mixer->weights);
    gg_needs_add_list(n, mixer->more_weights);
    if (mixer->heads)
        put_heads(n, a);
    if (mixer->latent)
        gg_needs_add_list(n, hp->rank_q ? w_rank_q : w_direct_q);
    gg_needs_set_weight(n, GG_W_ATTN_SINKS, a->sinks);
}

/* Layers that share another's keys may have their own matrices for keys. */
static void put_own(struct gg_needs *n, const struct gg_model_layer *l)
{
    static const enum gg_weight own[] = { GG_W_ATTN_K, GG_W_ATTN_V,
                                          GG_W_ATTN_K_NORM };
    for (size_t i = 0; l->shares_kv && i < GG_LEN(own); i++)
        if (n->weight[own[i]])
            gg_needs_set_weight(n, own[i], GG_MAY);
}

/* ---- the feed-forward part ---- */

LIST(w_moe_gated, N(ROUTER), N(GATE_EXPS), N(UP_EXPS), N(DOWN_EXPS));
LIST(w_moe_plain, N(ROUTER), N(UP_EXPS), N(DOWN_EXPS));
LIST(w_moe_fused, M(GATE_UP_EXPS));
LIST(w_shared_gated, N(GATE_SHARED), N(UP_SHARED), N(DOWN_SHARED));
LIST(w_shared_plain, N(UP_SHARED), N(DOWN_SHARED));

static void put_moe(struct gg_needs *n, const struct gg_arch *a,
                    const struct gg_hparams *hp)
{
    const struct gg_moe *moe = &a->moe;
    gg_needs_add_list(n, moe->plain ? w_moe_plain : w_moe_gated);
    /* the file's tensors determine whether gate and up are fused */
    if (!moe->plain)
        gg_needs_add_list(n, w_moe_fused);
    gg_needs_set_weight(n, GG_W_ROUTER_SELECT_B, moe->expert_bias);
    if (moe->shared && moe->shared->width(hp, NAN, NAN) != 0)
        gg_needs_add_list(n, moe->plain ? w_shared_plain : w_shared_gated);
    if (moe->shared_gate)
        gg_needs_set_weight(n, GG_W_ROUTER_SHARED, GG_MUST);
}

static void put_ffn(struct gg_needs *n, const struct gg_arch *a,
                    const struct gg_hparams *hp,
                    const struct gg_model_layer *l)
{
    if (l->moe)
        put_moe(n, a, hp);
    if (!l->ffn)
        return;
    gg_needs_add_list(n, l->ffn->weights);
    for (unsigned id = GG_W_FFN_GATE; id <= GG_W_FFN_DOWN; id++)
        if (a->ffn_b && n->weight[id] == GG_MUST &&
            gg_weight_bias((enum gg_weight)id) != GG_W_NONE)
            gg_needs_set_weight(n, gg_weight_bias((enum gg_weight)id),
                                a->ffn_b);
}

/* ---- norms ---- */

static void put_norm(struct gg_needs *n, const struct gg_arch *a, unsigned id)
{
    if (id == GG_W_NONE)
        return;
    gg_needs_set_weight(n, (enum gg_weight)id, GG_MUST);
    if (a->norm_b)
        gg_needs_set_weight(n, gg_weight_bias((enum gg_weight)id), a->norm_b);
}

static void put_norms(struct gg_needs *n, const struct gg_arch *a,
                      const struct gg_model_norms *norms)
{
    put_norm(n, a, norms->pre);
    put_norm(n, a, norms->post);
    put_norm(n, a, norms->add);
}

void gg_arch_without_norm_weights(struct gg_needs *n,
                                  const struct gg_hparams *hp,
                                  const struct gg_model_layer *l)
{
    static const enum gg_weight norms[] = { GG_W_ATTN_NORM, GG_W_FFN_NORM,
                                            GG_W_EMBD_NORM, GG_W_OUTPUT_NORM };
    (void)hp;
    (void)l;
    for (size_t i = 0; i < GG_LEN(norms); i++)
        gg_needs_set_weight(n, norms[i], GG_NO);
}

/* ---- all of it ---- */

LIST(w_class, M(CLS), M(CLS_B), M(CLS_OUT), M(CLS_OUT_B));
LIST(w_longrope, M(ROPE_LONG), M(ROPE_SHORT));
LIST(w_nextn, M(NEXTN_PROJ), M(NEXTN_ENORM), M(NEXTN_HNORM), M(NEXTN_EMBD),
     M(NEXTN_HEAD), M(NEXTN_NORM));

LIST(w_inputs, N(PER_LAYER_EMBD), N(PER_LAYER_PROJ), N(PER_LAYER_NORM));
LIST(w_input, N(INP_GATE), N(INP_PROJ), N(INP_NORM));

static void put_top(struct gg_needs *n, const struct gg_arch *a,
                    const struct gg_hparams *hp)
{
    static const uint8_t output[GG_N_OUTPUTS] = {
        [GG_OUTPUT_TIED] = GG_MAY, [GG_OUTPUT_OWN] = GG_MUST
    };
    gg_needs_set_weight(n, GG_W_OUTPUT, output[a->output]);
    gg_needs_add_list(n, w_class);
    put_scope(n, a->more, false);
    if (!n->weight[GG_W_TOKEN_EMBD_MAYBE])
        gg_needs_set_weight(n, GG_W_TOKEN_EMBD, GG_MUST);
    if (a->embd_norm)
        put_norm(n, a, GG_W_EMBD_NORM);
    put_norm(n, a, a->final_norm);
    gg_needs_set_weight(n, GG_W_POSITION, a->position);
    gg_needs_set_weight(n, GG_W_TOKEN_TYPES, a->types);
    gg_needs_set_weight(n, GG_W_OUTPUT_B, a->output_b);
    gg_needs_set_weight(n, GG_W_ROPE_FREQS, a->rope_freqs);
    if (a->longrope)
        gg_needs_add_list(n, w_longrope);
    if (hp->n_per_layer)
        gg_needs_add_list(n, w_inputs);
}

static void put_layer(struct gg_needs *n, const struct gg_arch *a,
                      const struct gg_hparams *hp,
                      const struct gg_model_layer *l)
{
    if (l->mixer) {
        put_norms(n, a, &a->mix_norm);
        put_mixer(n, a, hp, l);
        put_own(n, l);
    }
    if (l->moe || l->ffn) {
        put_ffn(n, a, hp, l);
        put_norms(n, a, &a->ffn_norm);
        if (!l->mixer && a->order == GG_ORDER_SINGLE)
            put_norms(n, a, &a->mix_norm);
    }
    if (hp->n_per_layer)
        gg_needs_add_list(n, w_input);
    if (l->mixer && l->mixer->layer_weights)
        l->mixer->layer_weights(n, l);
    put_scope(n, a->more, true);
}

/* Nextn layers may lack any weight, and may be dense where other layers are
 * not.
 */
static void put_draft(struct gg_needs *n, const struct gg_arch *a,
                      const struct gg_model_layer *l)
{
    if (!l->ffn)
        gg_needs_add_list(n, gg_arch_ffn(a)->weights);
    for (unsigned id = 0; id < GG_N_WEIGHTS; id++)
        if (n->weight[id])
            n->weight[id] = GG_MAY;
    gg_needs_add_list(n, w_nextn);
}

void gg_needs_fill_weights(const struct gg_arch *a,
                           const struct gg_hparams *hp,
                           const struct gg_model_layer *l, struct gg_needs *n)
{
    memset(n, 0, sizeof *n);
    if (l)
        put_layer(n, a, hp, l);
    else
        put_top(n, a, hp);
    if (a->choose_weights.fn)
        a->choose_weights.fn(n, hp, l);
    if (l && l->is_nextn)
        put_draft(n, a, l);
}

/* ---- keys ---- */

LIST(k_all, GG_KEY(n_ctx_train), GG_KEY(n_layer), GG_KEY(n_embd),
     GG_KEY_MAYBE(n_head_kv), GG_KEY_MAYBE(dim_k), GG_KEY_MAYBE(dim_v),
     GG_KEY_MAYBE(n_rot), GG_KEY_MAYBE(rope_base), GG_KEY_MAYBE(rope_scaling),
     GG_KEY_MAYBE(rope_old_factor), GG_KEY_MAYBE(rope_factor),
     GG_KEY_MAYBE(rope_attn), GG_KEY_MAYBE(n_ctx_orig), GG_KEY_MAYBE(yarn_ext),
     GG_KEY_MAYBE(yarn_attn), GG_KEY_MAYBE(yarn_fast), GG_KEY_MAYBE(yarn_slow),
     GG_KEY_MAYBE(n_expert), GG_KEY_MAYBE(n_expert_used),
     GG_KEY_MAYBE(n_dense), GG_KEY_MAYBE(n_shared), GG_KEY_MAYBE(n_ff_expert),
     GG_KEY_MAYBE(n_ff_shared), GG_KEY_MAYBE(causal), GG_KEY_MAYBE(pooling),
     GG_KEY_MAYBE(labels));
LIST(k_moe, GG_KEY_MAYBE(expert_gating), GG_KEY_MAYBE(expert_norm),
     GG_KEY_MAYBE(expert_scale), GG_KEY_MAYBE(n_group),
     GG_KEY_MAYBE(n_group_used));
LIST(k_window, GG_KEY_MAYBE(n_window), GG_KEY_MAYBE(window_pattern),
     GG_KEY_MAYBE(rope_base_swa), GG_KEY_MAYBE(dim_k_swa),
     GG_KEY_MAYBE(dim_v_swa), GG_KEY_MAYBE(n_rot_swa));

/* Keys that follow from columns of the row. */
static void put_choice_keys(struct gg_needs *n, const struct gg_arch *a)
{
    uint8_t eps = a->norm_eps_maybe || a->choose_norm.fn ? GG_MAY : GG_MUST;
    if (a->choose_norm.fn || a->norm == GG_NORM_RMS)
        n->key[GG_HP_norm_rms_eps] = eps;
    if (a->choose_norm.fn || a->norm == GG_NORM_LAYER)
        n->key[GG_HP_norm_eps] = eps;
    if (a->window.rule) {
        gg_needs_add_list(n, k_window);
        n->key[GG_HP_n_window] = a->window.key;
    }
    if (a->mrope_sections)
        n->key[GG_HP_rope_sections] =
            a->rope == GGUF_ROPE_MROPE || a->rope == GGUF_ROPE_IMROPE ? GG_MUST
                                                                      : GG_MAY;
    n->key[GG_HP_n_types] = a->types ? GG_MAY : GG_NO;
    n->key[GG_HP_clamp_qkv] = a->clamp_qkv;
    n->key[GG_HP_logit_scale] =
        a->logit_scale && a->logit_scale->key ? GG_MAY : GG_NO;
    n->key[GG_HP_residual_scale] = a->residual_scale ? GG_MAY : GG_NO;
    n->key[GG_HP_embd_scale] =
        a->embd_scale && a->embd_scale->key ? GG_MAY : GG_NO;
    n->key[GG_HP_n_nextn] = a->nextn ? GG_MAY : GG_NO;
}

void gg_needs_fill_keys(const struct gg_arch *a, struct gg_needs *n)
{
    const struct gg_mixer *mixer = gg_arch_mixer(a);
    memset(n, 0, sizeof *n);
    gg_needs_add_list(n, k_all);
    /* length of dense parts; optional where all layers may have experts */
    n->key[GG_HP_n_ff] =
        gg_arch_ffn(a)->absent || (a->moe.where && a->moe.where->everywhere)
            ? GG_MAY
            : GG_MUST;
    n->key[GG_HP_n_head] =
        mixer->heads || mixer->latent || mixer->counts ? GG_MUST : GG_MAY;
    if (a->moe.where) {
        gg_needs_add_list(n, k_moe);
        n->key[GG_HP_expert_gating] = a->moe.gating_key;
        if (a->moe.ff && a->moe.ff->needs_key)
            n->key[GG_HP_n_ff_expert] = GG_MUST;
    }
    put_choice_keys(n, a);
    gg_needs_add_list(n, a->more);
    for (const struct gg_arch_default *d = a->defaults; d && d->key; d++)
        n->key[d->key] = GG_MAY;
}

enum gg_weight gg_needs_find_weight(const struct gg_needs *n,
                                    enum gg_model_scope scope,
                                    struct gguf_str name)
{
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++)
        if (n->weight[id] && gg_weights[id].scope == scope &&
            gg_str_eqz(name, gg_weights[id].name))
            return (enum gg_weight)id;
    return GG_W_NONE;
}
