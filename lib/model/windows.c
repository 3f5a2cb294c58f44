/* SPDX-License-Identifier: MIT */
/* windows.c - layers whose tokens see a window of the others: which they are,
 * how far they see, and how positions turn there; layers that read the keys of
 * an earlier one
 */
#include "config.h"
#include "model/hparams_int.h"

#include "base/compiler.h"

#include <inttypes.h>

/* ---- which layers, and how far ---- */

/* Tokens of a window, or of a chunk; 0: every layer sees everything. */
static uint32_t size_of(const struct gg_hparams_reader *r)
{
    const struct gg_model_windows *w = &r->arch->window;
    const struct gg_hparams *hp = r->hp;
    const uint32_t n = hp->has[GG_HP_n_window] ? hp->n_window : w->size;
    if (w->rule == GG_WINDOW_NONE || (w->only_at && hp->n_layer != w->only_at))
        return 0;
    return n && w->exact ? w->exact : n;
}

static bool is_listed(struct gg_hparams_reader *r)
{
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_window_pattern);
    return kv && kv->type == GGUF_VAL_ARR;
}

/* Of each period one layer is full. All see windows with a period of 0. */
static bool is_window(enum gg_model_window rule, uint32_t period, uint32_t il)
{
    if (!period || rule == GG_WINDOW_EVERY)
        return true;
    return il % period != (rule == GG_WINDOW_FIRST_FULL ? 0 : period - 1);
}

static struct gg_hparams_reach reach_of(const struct gg_model_windows *w,
                                        int32_t n)
{
    const struct gg_hparams_reach all = { INT32_MAX, INT32_MAX, 0 };
    struct gg_hparams_reach reach = all;
    if (!n)
        return all;
    if (w->rule == GG_WINDOW_CHUNKS)
        reach.chunk = n;
    else if (w->centred)
        reach.before = reach.after = n / 2;
    else
        reach.before = n - 1;
    return reach;
}

enum gguf_status gg_hparams_check_windows(struct gg_hparams_reader *r)
{
    const struct gg_model_windows *w = &r->arch->window;
    struct gg_hparams *hp = r->hp;
    const uint32_t n = size_of(r);
    const bool given = hp->has[GG_HP_window_pattern];
    const bool flags = w->rule == GG_WINDOW_ARRAY || is_listed(r);
    const uint32_t period = given ? hp->layer[0].window_pattern : w->period;
    hp->has_windows = n > 0;
    hp->reach[GG_SEES_ALL] = reach_of(w, 0);
    hp->reach[GG_SEES_WINDOW] = reach_of(w, (int32_t)n);
    if (!n)
        return GGUF_OK;
    if (!given && !period && w->rule != GG_WINDOW_EVERY &&
        r->needs.key[GG_HP_window_pattern] != GG_MUST)
        return gg_hparams_missing(r, GG_HP_window_pattern);
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gg_model_layer *l = &hp->layer[il];
        if (flags ? l->window_pattern != 0
                  : is_window((enum gg_model_window)w->rule, period, il))
            l->sight = GG_SEES_WINDOW;
    }
    return GGUF_OK;
}

/* ---- whose keys ---- */

enum gguf_status gg_hparams_check_shared(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gg_model_layer *last[GG_N_SIGHTS] = { NULL };
    uint32_t n = r->arch->own_keys ? r->arch->own_keys : hp->n_layer;
    if (hp->has[GG_HP_n_shared_kv])
        n = hp->n_layer - hp->n_shared_kv;
    for (uint32_t il = 0; il < hp->n_layer; il++) {
        struct gg_model_layer *l = &hp->layer[il];
        const struct gg_model_layer *of = last[l->sight];
        l->reads = il >= n;
        if (!l->reads)
            last[l->sight] = l;
        else if (!of || of->n_head_kv != l->n_head_kv)
            return gg_hparams_fault(r, gg_hparams_find(r, GG_HP_n_shared_kv),
                                    GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                    "%s: layer %" PRIu32
                                    " finds no keys of %" PRIu32
                                    " heads in the first %" PRIu32 " layers",
                                    r->key, il, l->n_head_kv, n);
    }
    return GGUF_OK;
}

/* ---- how positions turn ---- */

static const struct {
    bool base;   /* rope.freq_base_swa counts */
    bool own;    /* and is 10000 unless given, else that of full layers */
    bool scaled; /* as in full layers */
    bool gain;   /* rope.scaling.attn_factor counts */
} kinds[GG_N_WINDOW_ROPES] = {
    [GG_WINDOW_ROPE_SAME] = { .scaled = true, .gain = true },
    [GG_WINDOW_ROPE_BASE] = { .base = true, .scaled = true, .gain = true },
    [GG_WINDOW_ROPE_OWN] = { .base = true, .own = true, .gain = true },
    [GG_WINDOW_ROPE_PLAIN] = { .gain = false },
    [GG_WINDOW_ROPE_PLAIN_BASE] = { .base = true },
};

/* Elements of a key that turn in windows, which may have keys of another
 * width. */
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
    return gg_hparams_fault(
        r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
        "%s is %" PRIu32 ", must be even and at most the key width %" PRIu32,
        r->key, *n_rot, most);
}

enum gguf_status gg_hparams_check_window_rope(struct gg_hparams_reader *r)
{
    const struct gg_model_windows *w = &r->arch->window;
    struct gg_hparams *hp = r->hp;
    struct gguf_rope *rope = &hp->rope_window;
    uint32_t n_rot = 0;
    *rope = hp->rope;
    if (!hp->has_windows)
        return GGUF_OK;
    GG_TRY(check_width(r, &n_rot));
    rope->n_dims = (int32_t)n_rot;
    hp->window_factors = kinds[w->rope].scaled;
    if (kinds[w->rope].own)
        rope->freq_base = 10000;
    if (kinds[w->rope].base && hp->has[GG_HP_rope_base_swa])
        rope->freq_base = hp->rope_base_swa;
    if (!kinds[w->rope].scaled) {
        rope->freq_scale = 1;
        rope->ext_factor = 0;
        rope->attn_factor = kinds[w->rope].gain && hp->has[GG_HP_rope_attn]
                                ? hp->rope_attn
                                : 1;
    }
    if (!w->full_half)
        return GGUF_OK;
    hp->rope.n_dims /= 2;
    if (hp->rope.n_dims % 2 == 0)
        return GGUF_OK;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_rot);
    return gg_hparams_fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                            "%s is %" PRIu32 ", half of it must be even",
                            r->key, hp->n_rot);
}
