/* SPDX-License-Identifier: MIT */
/* hparams_rule.c - check hyperparameters against each other */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/str.h"

#include <inttypes.h>
#include <math.h>

/* ---- experts ---- */

/* Groups of experts are equal, and those in use have enough experts for the
 * choices of a token. */
static enum gguf_status check_groups_of_experts(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t n = hp->n_group, used = hp->n_group_used;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_group);
    if (hp->n_expert % n)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %" PRIu32
                               ", must divide expert_count %" PRIu32,
                               r->key, n, hp->n_expert);
    if (!gg_hparams_find(r, GG_HP_n_group_used))
        return gg_hparams_fail_missing(r, GG_HP_n_group_used);
    if (!hp->has[GG_HP_n_group_used])
        return GGUF_OK; /* reported */
    const uint32_t per = hp->n_expert / n;
    uint32_t most = 0;
    for (uint32_t il = 0; il < hp->n_layer; il++)
        most = GG_MAX(most, hp->layer[il].n_expert_used);
    const uint32_t least = (most + per - 1) / per;
    if (used < least || used > n)
        return gg_hparams_fail_range(r, GG_HP_n_group_used, used, least, n);
    return GGUF_OK;
}

/* Does the model have experts? A key alone does not say so: dense variants of
 * models with experts (ERNIE 4.5, Hunyuan) have it, too. */
static bool any_router(const struct gg_hparams_reader *r)
{
    char name[GG_WEIGHT_NAME];
    for (uint32_t il = 0; il < r->hp->n_layer; il++)
        if (gg_source_find(r->src, gg_weight_name(GG_W_ROUTER, il, name),
                           NULL))
            return true;
    return false;
}

enum gguf_status gg_hparams_check_experts(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const uint32_t n = hp->n_expert;
    const bool has = r->arch->moe.where != NULL;
    const bool opens = gg_finding_is_fatal(r->report);
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_expert);
    if (opens && n && !has && any_router(r))
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                               "%s is %" PRIu32
                               ": models of architecture '%s' "
                               "have no experts",
                               r->key, n, r->arch->name);
    if (!n)
        return GGUF_OK;
    if (!gg_hparams_find(r, GG_HP_n_expert_used))
        return has ? gg_hparams_fail_missing(r, GG_HP_n_expert_used) : GGUF_OK;
    kv = gg_hparams_find(r, GG_HP_n_per_group);
    if (hp->n_per_group && n % hp->n_per_group)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %" PRIu32
                               ", must divide expert_count %" PRIu32,
                               r->key, hp->n_per_group, n);
    return GGUF_OK;
}

/* Report the number of a layer with experts. r->key is the key that was looked
 * up last. */
static enum gguf_status fail_layer(struct gg_hparams_reader *r,
                                   const struct gguf_kv *kv, uint32_t il,
                                   uint64_t v, uint64_t max)
{
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s is %" PRIu64 " in layer %" PRIu32
                           ", must be 1 to %" PRIu64,
                           r->key, v, il, max);
}

/* Layers without experts may have any number of those in use: files with one
 * number for all layers have leading dense layers, too. */
static enum gguf_status check_used(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_expert_used);
    const bool list = kv && kv->type == GGUF_VAL_ARR;
    const uint32_t n = hp->n_expert;
    if (!hp->has[GG_HP_n_expert_used])
        return GGUF_OK; /* missing or reported */
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        const uint32_t used = hp->layer[il].n_expert_used;
        const uint32_t least = n && (!list || hp->layer[il].moe);
        if (used >= least && used <= n)
            continue;
        return list ? fail_layer(r, kv, il, used, n)
                    : gg_hparams_fail_range(r, GG_HP_n_expert_used, used,
                                            least, n);
    }
    return GGUF_OK;
}

/* A list of widths has one for each layer with experts. */
static enum gguf_status check_expert_widths(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const struct gg_arch_expert_width *ff = r->arch->moe.ff;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_ff_expert);
    if (!hp->has[GG_HP_n_ff_expert] || kv->type != GGUF_VAL_ARR || !ff ||
        !ff->needs_key)
        return GGUF_OK;
    for (uint32_t il = 0; il < hp->n_layer; il++)
        if (hp->layer[il].moe && !hp->layer[il].n_ff_expert)
            return fail_layer(r, kv, il, 0, GG_WIDTH_MAX);
    return GGUF_OK;
}

enum gguf_status gg_hparams_check_expert_layers(struct gg_hparams_reader *r)
{
    GG_TRY(check_used(r));
    GG_TRY(check_expert_widths(r));
    return r->hp->n_expert && r->hp->n_group > 1 ? check_groups_of_experts(r)
                                                 : GGUF_OK;
}

/* ---- states ---- */

/* Heads of a state space have equal sizes, and so have groups of heads. */
static enum gguf_status check_groups_of_states(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t inner = hp->ssm_inner, n = hp->ssm_dt, g = hp->ssm_groups;
    if (!g || g > n)
        return gg_hparams_fail_range(r, GG_HP_ssm_groups, g, 1, n);
    if (inner % n == 0 && n % g == 0)
        return GGUF_OK;
    return gg_hparams_fail(r, gg_hparams_find(r, GG_HP_ssm_dt),
                           GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s is %" PRIu32 ", must divide inner_size %" PRIu32
                           " and be a multiple of group_count %" PRIu32,
                           r->key, n, inner, g);
}

enum gguf_status gg_hparams_check_states(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const struct gg_mixer *mixer = r->arch->other;
    if (r->needs.key[GG_HP_ssm_groups] != GG_MUST || !hp->ssm_inner ||
        !hp->ssm_dt || !hp->has[GG_HP_ssm_groups])
        return GGUF_OK;
    return mixer && mixer->check_states ? mixer->check_states(r)
                                        : check_groups_of_states(r);
}

/* The state of a head is square: keys are as wide as values. */
enum gguf_status gg_hparams_check_delta(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t inner = hp->ssm_inner, n = hp->ssm_dt, g = hp->ssm_groups;
    GG_TRY(check_groups_of_states(r));
    if (!g || g > n || inner % n || n % g || !hp->ssm_state ||
        inner / n == hp->ssm_state)
        return GGUF_OK;
    return gg_hparams_fail_range(r, GG_HP_ssm_state, hp->ssm_state, inner / n,
                                 inner / n);
}

/* RWKV's heads make up the width; a token is shifted in the mixer, and in a
 * channel mix. */
enum gguf_status gg_hparams_check_wkv(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t n_shift = gg_arch_ffn(r->arch)->shifts ? 2 : 1;
    if (!hp->has[GG_HP_wkv_head])
        return GGUF_OK;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_wkv_head);
    if (hp->n_embd % hp->wkv_head)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %" PRIu32 ", must divide "
                               "embedding_length %" PRIu32,
                               r->key, hp->wkv_head, hp->n_embd);
    if (hp->has[GG_HP_n_shift] && hp->n_shift != n_shift)
        return gg_hparams_fail_range(r, GG_HP_n_shift, hp->n_shift, n_shift,
                                     n_shift);
    return GGUF_OK;
}

enum gg_model_norm gg_arch_norm_by_epsilon(const struct gg_hparams *hp)
{
    return hp->norm_rms_eps > 0 ? GG_NORM_RMS : GG_NORM_LAYER;
}

/* If the architecture allows both kinds of norms, the key of the epsilon
 * determines the kind. */
enum gguf_status gg_hparams_check_norm(struct gg_hparams_reader *r)
{
    const bool *has = r->hp->has;
    return !r->arch->choose_norm.fn || r->arch->norm_eps_maybe ||
                   has[GG_HP_norm_rms_eps] || has[GG_HP_norm_eps]
               ? GGUF_OK
               : gg_hparams_fail_missing(r, GG_HP_norm_rms_eps);
}

/* ---- encoder and decoder ---- */

enum gguf_status gg_hparams_check_decoder(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    if (gg_arch_mixer(r->arch)->memory & GG_MODEL_MEMORY_CROSS &&
        !hp->has[GG_HP_n_dec_layer])
        hp->n_dec_layer = hp->n_layer;
    if (hp->has[GG_HP_dec_start] && hp->n_vocab &&
        hp->dec_start >= hp->n_vocab)
        return gg_hparams_fail_range(r, GG_HP_dec_start, hp->dec_start, 0,
                                     hp->n_vocab - 1);
    return GGUF_OK;
}

/* ---- heads ---- */

static enum gguf_status check_groups(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        struct gg_model_layer *l = &hp->layer[i];
        /* each query head has its own key head */
        if (!hp->has[GG_HP_n_head_kv] && !gg_hparams_find(r, GG_HP_n_head_kv))
            l->n_head_kv = l->n_head;
        if (!l->n_head && l->n_head_kv && hp->has[GG_HP_n_head] &&
            r->needs.key[GG_HP_n_head] == GG_MUST)
            return gg_hparams_fail(r, gg_hparams_find(r, GG_HP_n_head),
                                   GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s is 0 in layer %" PRIu32
                                   ", which has %" PRIu32 " key/value heads",
                                   r->key, i, l->n_head_kv);
        if (l->n_head && l->n_head_kv && l->n_head % l->n_head_kv)
            return gg_hparams_fail(
                r, gg_hparams_find(r, GG_HP_n_head), GG_CHECK_KEY_VALUE,
                GGUF_E_HPARAM,
                "%s is %" PRIu32
                ", must be a multiple of head_count_kv %" PRIu32,
                r->key, l->n_head, l->n_head_kv);
    }
    return GGUF_OK;
}

/* Number of heads in the first layer that has any. */
static uint32_t first_heads(const struct gg_hparams *hp)
{
    uint32_t i = 0;
    while (i < hp->n_layer && !hp->layer[i].n_head)
        i++;
    return i < hp->n_layer ? hp->layer[i].n_head : 0;
}

/* Set the elements of a key and a value. With latent attention in its absorbed
 * form, keys of heads have other sizes than the cached rows. */
static void choose_widths(struct gg_hparams *hp, uint32_t head)
{
    if (!hp->has[GG_HP_dim_k])
        hp->dim_k = head;
    if (!hp->has[GG_HP_dim_v])
        hp->dim_v = head;
    if (hp->has[GG_HP_dim_k_mla])
        hp->dim_k = hp->dim_k_mla;
    if (hp->has[GG_HP_dim_v_mla])
        hp->dim_v = hp->dim_v_mla;
    if (hp->has[GG_HP_dim_k_mla_swa])
        hp->dim_k_swa = hp->dim_k_mla_swa;
    if (hp->has[GG_HP_dim_v_mla_swa])
        hp->dim_v_swa = hp->dim_v_mla_swa;
}

static float scale_one(const struct gg_hparams *hp,
                       const struct gg_model_layer *l)
{
    (void)hp;
    (void)l;
    return 1;
}

const struct gg_arch_scale gg_arch_scale_one = { .text = "1",
                                                 .of_layer = scale_one };

static float score_scale(const struct gg_arch *a, const struct gg_hparams *hp,
                         const struct gg_model_layer *l)
{
    return a->scale && a->scale->of_layer ? a->scale->of_layer(hp, l)
                                          : 1 / sqrtf((float)l->dim_k);
}

enum gguf_status gg_hparams_check_heads(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    GG_TRY(check_groups(r));
    const uint32_t n_head = first_heads(hp);
    const struct gg_arch *a = r->arch;
    const uint32_t own = a->head_width.fn ? a->head_width.fn(hp) : 0;
    const bool given = own || gg_hparams_find(r, GG_HP_dim_k) != NULL;
    choose_widths(hp, own ? own : n_head ? hp->n_embd / n_head : 0);
    if (r->arch->qkv && r->arch->qkv->gates && hp->dim_v != hp->dim_k)
        return gg_hparams_fail_range(r, GG_HP_dim_v, hp->dim_v, hp->dim_k,
                                     hp->dim_k);
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_head);
    if (!given && n_head && hp->n_embd % n_head)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %" PRIu32
                               ", must divide embedding_length %" PRIu32,
                               r->key, n_head, hp->n_embd);
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        struct gg_model_layer *l = &hp->layer[i];
        const uint64_t n = l->n_head;
        const bool window = l->attn_type == GG_ATTN_WINDOW;
        l->dim_k = window && hp->dim_k_swa ? hp->dim_k_swa : hp->dim_k;
        l->dim_v = window && hp->dim_v_swa ? hp->dim_v_swa : hp->dim_v;
        l->latent_rank =
            window && hp->rank_kv_swa ? hp->rank_kv_swa : hp->rank_kv;
        if (n * l->dim_k > GG_WIDTH_MAX || n * l->dim_v > GG_WIDTH_MAX)
            return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s: %" PRIu64 " heads of %" PRIu32
                                   " and %" PRIu32 " elements are too many",
                                   r->arch->name, n, l->dim_k, l->dim_v);
        if (l->dim_k)
            l->score_scale = score_scale(r->arch, hp, l);
    }
    return GGUF_OK;
}

/* ---- rotary embedding ---- */

/* YaRN's numbers; those that are not in the file are its authors'. */
static void scale_yarn(const struct gg_arch *a, struct gg_hparams *hp)
{
    struct gguf_rope *rope = &hp->rope;
    const bool *has = hp->has;
    rope->ext_factor = has[GG_HP_yarn_ext] ? hp->yarn_ext : 1;
    rope->n_ctx_orig =
        (int32_t)(has[GG_HP_n_ctx_orig] ? hp->n_ctx_orig : hp->n_ctx_train);
    if (has[GG_HP_yarn_attn] && rope->ext_factor == 0)
        rope->attn_factor *= hp->yarn_attn; /* else the magnitude is YaRN's */
    if (has[GG_HP_yarn_fast] || hp->yarn_fast > 0)
        rope->beta_fast = hp->yarn_fast;
    if (has[GG_HP_yarn_slow])
        rope->beta_slow = hp->yarn_slow;
    /* change the magnitude 1 + 0.1 ln s to 1 + 0.1 m ln s (DeepSeek-V2's
     * mscale_all_dim, with mscale 1) */
    if (hp->yarn_log > 0 && !(a->scale && a->scale->by_yarn) &&
        rope->freq_scale < 1)
        rope->attn_factor /= 1 - 0.1f * hp->yarn_log * logf(rope->freq_scale);
}

static void scale_linear(const struct gg_arch *a, struct gg_hparams *hp)
{
    (void)a;
    (void)hp;
}

static void scale_none(const struct gg_arch *a, struct gg_hparams *hp)
{
    (void)a;
    hp->rope.freq_scale = 1;
}

static const struct {
    const char *name; /* rope.scaling.type */
    void (*apply)(const struct gg_arch *a, struct gg_hparams *hp);
} scalings[] = {
    { "none", scale_none },
    { "linear", scale_linear },
    { "yarn", scale_yarn },
    { "longrope", scale_linear }, /* its factors: gg_model_rope_factors */
};

static enum gguf_status load_scaling(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    /* default if the file has only a factor */
    struct gguf_str type = GG_STR("linear");
    struct gg_str_esc e;
    float factor = 1;
    if (hp->has[GG_HP_rope_old_factor])
        factor = hp->rope_old_factor;
    if (hp->has[GG_HP_rope_factor])
        factor = hp->rope_factor;
    if (hp->has[GG_HP_rope_attn])
        hp->rope.attn_factor = hp->rope_attn;
    hp->rope.freq_scale = 1 / factor;
    if (hp->has[GG_HP_rope_scaling])
        type = hp->rope_scaling;
    for (size_t i = 0; i < GG_LEN(scalings); i++) {
        if (!gg_str_eqz(type, scalings[i].name))
            continue;
        scalings[i].apply(r->arch, hp);
        if (r->arch->longrope || !gg_str_eqz(type, "longrope") ||
            !gg_finding_is_fatal(r->report))
            return GGUF_OK;
    }
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_rope_scaling);
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s '%s' is not supported", r->key,
                           gg_str_esc(&e, type));
}

enum gguf_status gg_hparams_check_rope(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_rot);
    const bool given = hp->has[GG_HP_n_rot];
    const bool turns = r->arch->rope != GG_ROPE_NONE;
    uint32_t n_rot = given ? hp->n_rot : hp->dim_k;
    if (given && hp->dim_k && n_rot > hp->dim_k) {
        GG_TRY(gg_hparams_fail_range(r, GG_HP_n_rot, n_rot, 2, hp->dim_k));
        n_rot = hp->dim_k;
    }
    if (given && n_rot % 2)
        GG_TRY(gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s is %" PRIu32 ", must be even", r->key,
                               n_rot));
    if (!kv && gg_finding_is_fatal(r->report) && turns && n_rot % 2)
        return gg_hparams_fail(r, gg_hparams_find(r, GG_HP_n_head),
                               GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s makes heads of %" PRIu32
                               " elements, must be even to rotate pairs",
                               r->key, n_rot);
    hp->n_rot = n_rot;
    hp->rope.n_dims = (int32_t)n_rot;
    hp->rope.kind = turns ? r->arch->rope : GGUF_ROPE_NORM;
    if (hp->has[GG_HP_rope_base])
        hp->rope.freq_base = hp->rope_base;
    return load_scaling(r);
}
