/* SPDX-License-Identifier: MIT */
/* hparams_compress.c - hyperparameters of attention to a window and compressed
 * keys (DeepSeek-V4), and of hyper-connected streams
 */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>

/* attention.compress_ratios: an array of a number for each layer, at least. */
static enum gguf_status read_ratios(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_compress);
    if (!kv)
        return GGUF_OK; /* reported */
    if (kv->type != GGUF_VAL_ARR || kv->n < hp->n_layer)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s must be an array of %" PRIu32
                               " numbers, one for each layer",
                               r->key, hp->n_layer);
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gguf_error why;
        uint64_t v;
        const bool read =
            gguf_kv_get_elems_uint(kv, il, 1, &v, &why) == GGUF_OK;
        if (!read || (v != 0 && v != GG_RATIO_CSA && v != GG_RATIO_HCA))
            return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s is unsupported in layer %" PRIu32
                                   ", must be 0, %d or %d",
                                   r->key, il, GG_RATIO_CSA, GG_RATIO_HCA);
        hp->layer[il].ratio = (uint32_t)v;
    }
    return GGUF_OK;
}

/* Number of nextn layers: they exist only if the tensors of the last one do. */
static void count_drafts(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    char name[GG_WEIGHT_NAME];
    if (hp->n_nextn &&
        !gg_source_find(r->src,
                        gg_weight_name(GG_W_NEXTN_PROJ, hp->n_layer - 1, name),
                        NULL))
        hp->n_nextn = 0;
}

/* Set the rotary embedding of layers with compressed keys: their own base, and
 * the file's scaling without YaRN's magnitude, which is 1. Other layers
 * (rope_window) are not scaled. */
static void fill_rope(struct gg_hparams *hp)
{
    struct gguf_rope *rope = &hp->rope;
    if (hp->has[GG_HP_compress_base])
        rope->freq_base = hp->compress_base;
    rope->attn_factor = 1;
    if (rope->ext_factor != 0) /* gguf_op_rope adds this magnitude */
        rope->attn_factor = 1 / (1 + 0.1f * logf(1 / rope->freq_scale));
}

/* Check numbers that the mixer requires to have certain values. */
static enum gguf_status check_numbers(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t gating = GG_EXPERT_SQRT_SOFTPLUS;
    if (hp->has[GG_HP_expert_gating] && hp->expert_gating != gating)
        GG_TRY(gg_hparams_fail_range(r, GG_HP_expert_gating, hp->expert_gating,
                                     gating, gating));
    if (hp->has[GG_HP_rank_q] && !hp->rank_q)
        GG_TRY(gg_hparams_fail_range(r, GG_HP_rank_q, 0, 1, GG_WIDTH_MAX));
    if (hp->has[GG_HP_n_window] && !hp->n_window)
        GG_TRY(gg_hparams_fail_range(r, GG_HP_n_window, 0, 1, GG_SPAN_MAX));
    if (hp->dim_v != hp->dim_k) /* a row is both */
        GG_TRY(gg_hparams_fail_range(r, GG_HP_dim_v, hp->dim_v, hp->dim_k,
                                     hp->dim_k));
    return GGUF_OK;
}

/* Groups of heads are equal. */
static enum gguf_status check_groups(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_out_groups);
    for (uint32_t il = 0; hp->out_groups && il < hp->n_layer; il++)
        if (hp->layer[il].n_head % hp->out_groups)
            return gg_hparams_fail(
                r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                "%s is %" PRIu32 ", must divide head_count %" PRIu32, r->key,
                hp->out_groups, hp->layer[il].n_head);
    return GGUF_OK;
}

enum gguf_status gg_hparams_check_compress(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    hp->blocks[0] =
        (struct gg_hparams_blocks){ GG_RATIO_CSA, 2 * GG_RATIO_CSA };
    hp->blocks[1] = (struct gg_hparams_blocks){ GG_RATIO_HCA, GG_RATIO_HCA };
    GG_TRY(read_ratios(r));
    GG_TRY(check_numbers(r));
    GG_TRY(check_groups(r));
    count_drafts(r);
    fill_rope(hp);
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gg_model_layer *l = &hp->layer[il];
        l->hash_routing = il < hp->n_hash;
        if (!hp->has[GG_HP_clamp_shexp])
            l->clamp_shexp = l->clamp_exp;
    }
    return GGUF_OK;
}
