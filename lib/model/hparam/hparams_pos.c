/* SPDX-License-Identifier: MIT */
/* hparams_pos.c - keys about positions besides rotary scaling: axes, a base
 * that grows, the temperature of queries */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <math.h>

/* Read the number of pairs per axis. A kind of rotation that has sections only
 * if the file lists them has them if at least two axes are used. */
static enum gguf_status check_axes(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_rope_sections);
    const bool always =
        r->arch->rope == GGUF_ROPE_MROPE || r->arch->rope == GGUF_ROPE_IMROPE;
    uint64_t v[4], sum = 0;
    struct gguf_error why;
    if (!kv || !hp->has[GG_HP_rope_sections])
        return GGUF_OK; /* reported if it must be there */
    if (kv->type != GGUF_VAL_ARR || kv->n != 4 ||
        gguf_kv_get_elems_uint(kv, 0, 4, v, &why) != GGUF_OK)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s must be four numbers", r->key);
    for (int i = 0; i < 4; i++)
        sum = v[i] > GG_WIDTH_MAX ? UINT32_MAX : sum + v[i];
    if ((hp->dim_k && sum > hp->dim_k) || (!sum && always))
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s has sections of %" PRIu64 ", %" PRIu64
                               ", %" PRIu64 ", %" PRIu64
                               " pairs, must be 1 to %" PRIu32 " together",
                               r->key, v[0], v[1], v[2], v[3], hp->dim_k);
    if (!always && !(v[0] && v[1]))
        return GGUF_OK;
    if (!always)
        hp->rope.kind = GGUF_ROPE_MROPE;
    for (int i = 0; i < 4; i++)
        hp->rope.sections[i] = (int32_t)v[i];
    return GGUF_OK;
}

/* Multiply the rotary base by alpha^(d / (d - 2)): bloc97's NTK-aware scaling,
 * as in Hunyuan's definition. */
static void apply_alpha(struct gg_hparams *hp)
{
    const double d = hp->dim_k;
    if (hp->rope_alpha > 0 && d > 2)
        hp->rope.freq_base *= (float)pow((double)hp->rope_alpha, d / (d - 2));
}

static void fill_by_keys(struct gg_hparams *hp)
{
    hp->temperature.scale = hp->temp_scale;
    hp->temperature.length = hp->temp_length;
}

const struct gg_arch_temperature gg_arch_temperature_by_keys = {
    .text = "query temperature by keys",
    .fill = fill_by_keys,
    .needs_length = true
};

/* Each loop over all layers has its own memory. */
static enum gguf_status check_loops(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const uint64_t most = GG_MAX(1 << 16, hp->n_layer) / hp->n_layer;
    return hp->n_loops > most
               ? gg_hparams_fail_range(r, GG_HP_n_loops, hp->n_loops, 1, most)
               : GGUF_OK;
}

enum gguf_status gg_hparams_check_positions(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    GG_TRY(check_axes(r));
    GG_TRY(check_loops(r));
    apply_alpha(hp);
    if (r->arch->fix_rope)
        r->arch->fix_rope(&hp->rope);
    if (r->arch->temperature)
        r->arch->temperature->fill(hp);
    if (hp->temperature.scale == 0 || hp->temperature.length)
        return GGUF_OK;
    if (r->arch->temperature->needs_length)
        return gg_hparams_fail_missing(r, GG_HP_temp_length);
    hp->temperature.scale =
        0; /* context_length is missing, which is reported */
    return GGUF_OK;
}
