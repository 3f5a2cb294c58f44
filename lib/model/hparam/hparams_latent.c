/* SPDX-License-Identifier: MIT */
/* hparams_latent.c - hyperparameters of latent attention */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <math.h>

enum gguf_status gg_hparams_check_widths(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    if (hp->has[GG_HP_dim_k_mla] == hp->has[GG_HP_dim_v_mla])
        return GGUF_OK;
    return gg_hparams_fail_missing(
        r, hp->has[GG_HP_dim_k_mla] ? GG_HP_dim_v_mla : GG_HP_dim_k_mla);
}

/* Check the keys that an optional indexer needs. */
static enum gguf_status check_optional_indexer(struct gg_hparams_reader *r)
{
    static const enum gg_model_hparam ids[] = { GG_HP_n_idx, GG_HP_dim_idx };
    for (size_t i = 0; r->hp->idx_top && i < GG_LEN(ids); i++)
        if (r->needs.key[ids[i]] == GG_MAY && !r->hp->has[ids[i]])
            GG_TRY(gg_hparams_fail_missing(r, ids[i]));
    return GGUF_OK;
}

/* First layer without a window; 0: none. */
static uint32_t first_full(const struct gg_hparams *hp)
{
    for (uint32_t il = 0; il < hp->n_layer; il++)
        if (hp->layer[il].attn_type == GG_ATTN_FULL)
            return il;
    return 0;
}

/* Check the indexer. Some elements of its heads have rotary embedding, the same
 * number as in other heads. The first layer without a window has an indexer. */
enum gguf_status gg_hparams_check_indexer(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const bool opens = gg_finding_is_fatal(r->report);
    const uint32_t first = first_full(hp);
    if (hp->has[GG_HP_idx_top] && !hp->idx_top &&
        r->needs.key[GG_HP_idx_top] == GG_MUST)
        return gg_hparams_fail_range(r, GG_HP_idx_top, 0, 1, GG_SPAN_MAX);
    GG_TRY(check_optional_indexer(r));
    if (opens && hp->has[GG_HP_idx_types] && hp->idx_top &&
        !hp->layer[first].idx_types)
        return gg_hparams_fail(
            r, gg_hparams_find(r, GG_HP_idx_types), GG_CHECK_KEY_VALUE,
            GGUF_E_HPARAM, "%s: the first layer must have an indexer", r->key);
    if (hp->dim_idx && hp->n_rot > hp->dim_idx)
        return gg_hparams_fail_range(r, GG_HP_dim_idx, hp->dim_idx, hp->n_rot,
                                     1 << 16);
    return GGUF_OK;
}

/* Check the width of a key: it has a part with rotary embedding, which all
 * heads share, and a part per head. */
enum gguf_status gg_hparams_check_latent(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    uint32_t d = hp->dim_k;
    if (hp->has_windows && hp->dim_k_swa)
        d = GG_MIN(d, hp->dim_k_swa);
    if (!d || hp->n_rot < d)
        return GGUF_OK;
    return gg_hparams_fail_range(r, GG_HP_n_rot, hp->n_rot, 2,
                                 d > 2 ? d - 1 : 2);
}

/* ---- YaRN's magnitude ---- */

static float yarn_magnitude(float factor, float much)
{
    return factor > 1 ? 1 + 0.1f * much * logf(factor) : 1;
}

/* YaRN multiplies queries and keys by 1 + 0.1 ln(factor). DeepSeek's models
 * (modeling_deepseek.py: mscale, mscale_all_dim) divide that, in the rotary
 * embedding, by the same expression of mscale_all_dim, whose square then scales
 * scores. The key is 0.1 mscale_all_dim. Files do not have mscale; it is
 * assumed to be equal to mscale_all_dim, or 1. As in llama.cpp, scores get the
 * square of YaRN's magnitude with other kinds of scaling, too. */
void gg_hparams_scale_by_yarn(struct gg_hparams *hp, bool both)
{
    const float factor = 1 / hp->rope.freq_scale;
    const float all = hp->yarn_log / 0.1f;
    const float one = both && all != 0 ? all : 1;
    /* magnitude that gguf_op_rope applies */
    const float built_in = 1 + 0.1f * logf(factor);
    if (hp->rope.ext_factor != 0 && built_in > 0)
        hp->rope.attn_factor *= yarn_magnitude(factor, one) /
                                yarn_magnitude(factor, all) / built_in;
    const float scale =
        hp->rope.attn_factor * built_in * (1 + 0.1f * all * logf(factor));
    for (uint32_t il = 0; il < hp->n_layer; il++)
        hp->layer[il].score_scale *= scale * scale;
}

static void scale_scores(struct gg_hparams *hp)
{
    gg_hparams_scale_by_yarn(hp, false);
}

const struct gg_arch_scale gg_arch_scale_yarn = { .text =
                                                      "with YaRN's magnitude",
                                                  .by_yarn = scale_scores };
