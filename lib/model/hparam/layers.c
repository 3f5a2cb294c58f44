/* SPDX-License-Identifier: MIT */
/* layers.c - parts of each layer by its architecture's rules, and their sizes
 */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>

bool gg_arch_has_mixed_layers(const struct gg_arch *a)
{
    return a->mix_rule || gg_arch_ffn(a)->absent ||
           gg_arch_mixer(a)->memory & GG_MODEL_MEMORY_STATES;
}

/* ---- which mixer ---- */

static const struct gg_mixer *
mixer_by_kv(const struct gg_arch *a, const struct gg_hparams *hp, uint32_t il)
{
    const struct gg_model_layer *l = &hp->layer[il];
    return l->n_head_kv || l->is_nextn ? gg_arch_mixer(a) : a->other;
}

const struct gg_arch_mix_rule gg_arch_mix_by_kv = {
    .text = "layers without key/value heads", .of_layer = mixer_by_kv
};

/* ---- which feed-forward part ---- */

static bool has_experts(const struct gg_hparams_reader *r, uint32_t il)
{
    const struct gg_arch_experts *where = r->arch->moe.where;
    return where && (r->hp->n_expert || where->uncounted) &&
           where->of_layer(r, il);
}

/* ---- layers with rotary embedding ---- */

static bool is_window(const struct gg_hparams *hp, uint32_t il)
{
    return !hp->has_windows || hp->layer[il].attn_type == GG_ATTN_WINDOW;
}

const struct gg_arch_rope_rule gg_arch_rope_in_windows = {
    .text = "in windows only", .of_layer = is_window
};

/* ---- layers with an indexer ---- */

/* Those that attention.indexer.types names; without the key all, or by the
 * architecture. None has one without a top k, and no layer with a window. */
static bool has_indexer_by_hook(const struct gg_arch *a,
                                const struct gg_hparams *hp, uint32_t il)
{
    if (!gg_arch_mixer(a)->has_indexer || !hp->idx_top ||
        hp->layer[il].attn_type == GG_ATTN_WINDOW)
        return false;
    if (hp->has[GG_HP_idx_types])
        return hp->layer[il].idx_types != 0;
    return !a->has_indexer || a->has_indexer(hp, il);
}

void gg_hparams_fill_layers(struct gg_hparams_reader *r)
{
    const struct gg_arch *a = r->arch;
    struct gg_hparams *hp = r->hp;
    const struct gg_ffn *ffn = gg_arch_ffn(a);
    hp->act = a->act ? a->act : &gg_ffn_act_silu;
    if (hp->act->of_model)
        hp->act = hp->act->of_model(hp);
    hp->mixer = gg_arch_mixer(a);
    hp->norm = a->choose_norm.fn ? (uint8_t)a->choose_norm.fn(hp) : a->norm;
    hp->eps = hp->norm == GG_NORM_LAYER ? hp->norm_eps : hp->norm_rms_eps;
    hp->expert_gating = gg_hparams_expert_gating(a, hp);
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gg_model_layer *l = &hp->layer[il];
        l->is_nextn = a->nextn && il >= hp->n_layer - hp->n_nextn;
        l->mixer =
            a->mix_rule ? a->mix_rule->of_layer(a, hp, il) : gg_arch_mixer(a);
        l->moe = has_experts(r, il);
        l->has_rope = a->rope != GG_ROPE_NONE &&
                      (!a->rope_rule || a->rope_rule->of_layer(hp, il));
        l->has_indexer = has_indexer_by_hook(a, hp, il);
        l->has_temperature =
            hp->temperature.scale != 0 &&
            (!a->temperature->of_layer || a->temperature->of_layer(l));
        if (!hp->has[GG_HP_activation_sparsity])
            l->activation_sparsity = a->activation_sparsity.fn
                                         ? a->activation_sparsity.fn(il)
                                         : -INFINITY;
        l->ffn = ffn->of_layer ? ffn->of_layer(r, il) : ffn;
        if ((l->moe &&
             !(a->moe.dense_branch && a->moe.dense_branch->always)) ||
            (gg_arch_has_mixed_layers(a) && !l->n_ff) || ffn->absent)
            l->ffn = NULL;
    }
    for (uint32_t il = hp->n_layer; il < hp->n_layer_all; il++)
        hp->layer[il] = hp->layer[hp->n_layer - 1];
}

/* ---- sizes ---- */

/* A number that is known, or NAN. */
static double known_or_nan(double n)
{
    return n > 0 ? n : NAN;
}

/* Heads, and norms on them. */
static void head_sizes(const struct gg_hparams *hp, const struct gg_arch *a,
                       const struct gg_model_layer *l,
                       struct gg_model_sizes *z)
{
    z->head = known_or_nan(l->dim_k);
    z->head_v = known_or_nan(l->dim_v);
    z->n_head = known_or_nan(l->n_head);
    z->n_head_kv = known_or_nan(l->n_head_kv);
    z->q = z->n_head * z->head;
    z->k = z->n_head_kv * z->head;
    z->v = z->n_head_kv * z->head_v;
    z->rot = known_or_nan(hp->n_rot);
    z->nope = known_or_nan(z->head - z->rot);
    z->qk_0 = z->head;
    z->qk_q1 = a->qk_norm.form == GG_QK_EACH_HEAD ? z->n_head : 1;
    z->qk_k1 = a->qk_norm.form == GG_QK_EACH_HEAD ? z->n_head_kv : 1;
    z->rank_q = known_or_nan(hp->rank_q);
    z->rank_kv = known_or_nan(l->latent_rank);
    z->idx = known_or_nan(hp->dim_idx);
    z->n_idx = known_or_nan(hp->n_idx);
    z->out_rank = known_or_nan(hp->out_rank);
    z->out_groups = known_or_nan(hp->out_groups);
    z->buckets = known_or_nan(hp->n_buckets);
}

static void recurrent_sizes(const struct gg_hparams *hp,
                            const struct gg_model_layer *l,
                            struct gg_model_sizes *z)
{
    z->conv = known_or_nan(hp->ssm_conv);
    z->inner = known_or_nan(hp->ssm_inner);
    z->state = known_or_nan(hp->ssm_state);
    z->dt = known_or_nan(hp->ssm_dt);
    z->groups = known_or_nan(hp->ssm_groups);
    z->kda = known_or_nan(hp->kda_head);
    z->wkv = known_or_nan(hp->wkv_head);
    z->mix = known_or_nan(hp->n_mix);
    z->decay = known_or_nan(hp->n_decay ? hp->n_decay : hp->rank_decay);
    z->iclr = known_or_nan(hp->rank_iclr);
    /* the first layer's are unused; their rank is that of another matrix */
    z->vres = l == hp->layer ? z->any : known_or_nan(hp->rank_vres);
    z->gate = known_or_nan(hp->rank_gate);
    z->lerps = 5;
    z->wkv_v = z->embd;
    z->lconv = known_or_nan(hp->n_lconv);
}

void gg_hparams_sizes(const struct gg_hparams *hp, const struct gg_arch *a,
                      const struct gg_model_layer *l, struct gg_model_sizes *z)
{
    const struct gg_ffn *ffn = l->ffn ? l->ffn : gg_arch_ffn(a);
    z->any = NAN;
    z->embd = known_or_nan(hp->n_embd);
    z->vocab = z->logits = known_or_nan(hp->n_vocab);
    z->ctx = known_or_nan(hp->n_ctx_train);
    z->ff = known_or_nan(l->n_ff);
    z->up = z->ff * (ffn->fused_gate ? 2 : 1);
    head_sizes(hp, a, l, z);
    gg_hparams_expert_sizes(hp, &a->moe, l, z);
    recurrent_sizes(hp, l, z);
    z->per_layer = known_or_nan(hp->n_per_layer);
    z->n_layer = known_or_nan(hp->n_layer);
    z->streams = known_or_nan(hp->n_streams);
    z->hc = (2 + z->streams) * z->streams;
    z->hc_scales = 3;
    z->mix_rank = known_or_nan(hp->mix_rank);
    z->ngram = known_or_nan(hp->ngram_width);
    z->ngram_taps = known_or_nan(hp->ngram_taps);
    z->draft = z->embd;
    z->v_experts = known_or_nan(hp->n_value_expert);
    z->types = known_or_nan(hp->n_types);
    z->ratio = known_or_nan(l->ratio);
    z->wide = l->ratio == GG_RATIO_CSA ? 2 : 1;
    z->dense_2 =
        known_or_nan(hp->dense_2_out ? hp->dense_2_out : hp->n_embd_out);
    z->dense_3 = known_or_nan(hp->dense_3_in);
    z->lora = known_or_nan(hp->switch_rank);
    z->n_lora = 1 + (double)hp->n_switch;
    if (l->mixer && l->mixer->layer_sizes)
        l->mixer->layer_sizes(hp, l, z);
    if (a->layer_sizes.fn)
        a->layer_sizes.fn(hp, l, z);
}
