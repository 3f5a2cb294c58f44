/* SPDX-License-Identifier: MIT */
/* sliding_windows.c - layers with a sliding window: which they are, their
 * range, and their rotary embedding; layers that share the keys of an earlier
 * one
 */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/compiler.h"

#include <inttypes.h>

/* ---- which layers, and how far ---- */

/* Tokens of a window or of a chunk; 0: all layers have full attention. */
static uint32_t window_size_of(const struct gg_hparams_reader *r)
{
    const struct gg_model_windows *w = &r->arch->window;
    if (!w->rule)
        return 0;
    return w->size.fn ? w->size.fn(r->hp) : r->hp->n_window;
}

static bool is_listed(struct gg_hparams_reader *r)
{
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_window_pattern);
    return kv && kv->type == GGUF_VAL_ARR;
}

/* The last layer of each period is full. Period 0: all layers have windows. */
bool gg_arch_is_window_last_full(uint32_t period, uint32_t il)
{
    return !period || il % period != period - 1;
}

static bool is_window_first_full(uint32_t period, uint32_t il)
{
    return !period || il % period != 0;
}

const struct gg_arch_window_rule
    gg_arch_window_last_full = { .text = "last layer of each period full",
                                 .of_layer = gg_arch_is_window_last_full },
    gg_arch_window_first_full = { .text = "first layer of each period full",
                                  .of_layer = is_window_first_full },
    gg_arch_window_listed = { .text = "by an array of flags", .listed = true },
    gg_arch_window_everywhere = { .text = "every layer" };

static struct gg_hparams_attn_range find_range(const struct gg_arch *a,
                                               int32_t n)
{
    const struct gg_hparams_attn_range all = { INT32_MAX, INT32_MAX, 0 };
    struct gg_hparams_attn_range reach = all;
    if (!n)
        return all;
    if (a->window.rule->chunks)
        reach.chunk = n;
    else if (a->whole_sequence) /* half before a token, half after */
        reach.before = reach.after = n / 2;
    else
        reach.before = n - 1;
    return reach;
}

enum gguf_status gg_hparams_check_windows(struct gg_hparams_reader *r)
{
    const struct gg_model_windows *w = &r->arch->window;
    struct gg_hparams *hp = r->hp;
    const uint32_t n = window_size_of(r);
    const bool given = hp->has[GG_HP_window_pattern];
    const bool flags = (w->rule && w->rule->listed) || is_listed(r);
    const uint32_t period = given ? hp->layer[0].window_pattern : w->period;
    hp->has_windows = n > 0;
    hp->reach[GG_ATTN_FULL] = find_range(r->arch, 0);
    hp->reach[GG_ATTN_WINDOW] = find_range(r->arch, (int32_t)n);
    if (!n)
        return GGUF_OK;
    if (!given && !period && w->rule->of_layer &&
        r->needs.key[GG_HP_window_pattern] != GG_MUST)
        return gg_hparams_fail_missing(r, GG_HP_window_pattern);
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gg_model_layer *l = &hp->layer[il];
        if (flags ? l->window_pattern != 0
                  : !w->rule->of_layer || w->rule->of_layer(period, il))
            l->attn_type = GG_ATTN_WINDOW;
    }
    return GGUF_OK;
}

/* ---- whose keys ---- */

enum gguf_status gg_hparams_check_shared_kv(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gg_model_layer *last[GG_N_ATTN_TYPES] = { NULL };
    uint32_t n =
        r->arch->n_kv_layers.fn ? r->arch->n_kv_layers.fn(hp) : hp->n_layer;
    if (hp->has[GG_HP_n_shared_kv])
        n = hp->n_layer - hp->n_shared_kv;
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gg_model_layer *l = &hp->layer[il];
        const struct gg_model_layer *of = last[l->attn_type];
        l->shares_kv = il >= n;
        if (!l->shares_kv)
            last[l->attn_type] = l;
        else if (!of || of->n_head_kv != l->n_head_kv)
            return gg_hparams_fail(r, gg_hparams_find(r, GG_HP_n_shared_kv),
                                   GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s: layer %" PRIu32
                                   " finds no keys of %" PRIu32
                                   " heads in the first %" PRIu32 " layers",
                                   r->key, il, l->n_head_kv, n);
    }
    return GGUF_OK;
}

/* ---- rotary embedding in windows ---- */

static const struct gg_arch_window_rope as_in_full_layers = { .scaled = true,
                                                              .gain = true };
const struct gg_arch_window_rope
    gg_arch_window_rope_base = { .text = "own base if given",
                                 .base = true,
                                 .scaled = true,
                                 .gain = true },
    gg_arch_window_rope_own = { .text = "base 10000 unless given, not scaled",
                                .base = true,
                                .own = true,
                                .gain = true },
    gg_arch_window_rope_plain = { .text = "not scaled" };

/* Number of elements of a key with rotary embedding in windows, where keys may
 * have another width. */
static enum gguf_status check_width(struct gg_hparams_reader *r,
                                    uint32_t *n_rot)
{
    const struct gg_hparams *hp = r->hp;
    const uint32_t most = hp->dim_k_swa ? hp->dim_k_swa : hp->dim_k;
    *n_rot = GG_MIN(hp->n_rot, most);
    if (!hp->has[GG_HP_n_rot_swa])
        return GGUF_OK;
    *n_rot = hp->n_rot_swa;
    if (*n_rot <= most && *n_rot % 2 == 0)
        return GGUF_OK;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_rot_swa);
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s is %" PRIu32
                           ", must be even and at most the key width %" PRIu32,
                           r->key, *n_rot, most);
}

enum gguf_status gg_hparams_check_window_rope(struct gg_hparams_reader *r)
{
    const struct gg_arch *a = r->arch;
    const struct gg_arch_window_rope *w =
        a->window.rope ? a->window.rope : &as_in_full_layers;
    struct gg_hparams *hp = r->hp;
    struct gguf_rope *rope = &hp->rope_window;
    uint32_t n_rot = 0;
    *rope = hp->rope;
    if (!hp->has_windows)
        return GGUF_OK;
    GG_TRY(check_width(r, &n_rot));
    rope->n_dims = (int32_t)n_rot;
    hp->window_factors = w->scaled;
    if (w->own)
        rope->freq_base = 10000;
    if (w->base && hp->has[GG_HP_rope_base_swa])
        rope->freq_base = hp->rope_base_swa;
    if (!w->scaled) {
        rope->freq_scale = 1;
        rope->ext_factor = 0;
        rope->attn_factor =
            w->gain && hp->has[GG_HP_rope_attn] ? hp->rope_attn : 1;
    }
    return a->fill_full_rope.fn ? a->fill_full_rope.fn(r) : GGUF_OK;
}
