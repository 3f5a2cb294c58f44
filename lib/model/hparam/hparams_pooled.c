/* SPDX-License-Identifier: MIT */
/* hparams_pooled.c - hyperparameters of attention to blocks by pooled keys, of
 * gated streams, and of embeddings of n-grams */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include <inttypes.h>

/* Read n elements of the array of a key. r->good: they were read. */
static enum gguf_status read_elements(struct gg_hparams_reader *r,
                                      enum gg_model_hparam id, uint32_t n,
                                      uint64_t *v)
{
    const struct gguf_kv *kv = gg_hparams_find(r, id);
    struct gguf_error why;
    r->good = false;
    if (!kv)
        return gg_hparams_fail_missing(r, id);
    if (kv->type != GGUF_VAL_ARR || kv->n < n ||
        gguf_kv_get_elems_uint(kv, 0, n, v, &why) != GGUF_OK)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s must be an array of %" PRIu32 " numbers",
                               r->key, n);
    r->good = true;
    return GGUF_OK;
}

/* ---- ratios ---- */

/* Add a ratio to those of the model. false: there are too many. */
static bool add_ratio(struct gg_hparams *hp, uint32_t ratio)
{
    for (unsigned i = 0; i < GG_N_RATIOS; i++) {
        if (!hp->blocks[i].ratio)
            hp->blocks[i] = (struct gg_hparams_blocks){ ratio, ratio };
        if (hp->blocks[i].ratio == ratio)
            return true;
    }
    return false;
}

/* attention.compress_ratios: a number for all layers, or an array with one for
 * each. */
static enum gguf_status read_ratios(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_compress);
    for (uint32_t il = 0; kv && il < hp->n_layer; il++) {
        struct gguf_error why;
        uint64_t v = 0;
        const bool read =
            kv->type == GGUF_VAL_ARR
                ? gguf_kv_get_elems_uint(kv, il, 1, &v, &why) == GGUF_OK
                : gguf_kv_get_uint(kv, &v, &why) == GGUF_OK;
        if (!read || v > GG_SPAN_MAX)
            return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s has no valid number for layer %" PRIu32,
                                   r->key, il);
        if (v && !add_ratio(hp, (uint32_t)v))
            return gg_hparams_fail(
                r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                "%s has more than %d different ratios", r->key, GG_N_RATIOS);
        hp->layer[il].ratio = (uint32_t)v;
    }
    return GGUF_OK;
}

/* ---- n-grams ---- */

/* The layer with n-grams: one at most, as the file has one table. */
static enum gguf_status read_layer(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_ngram_layers);
    uint64_t il = 0;
    if (kv->type == GGUF_VAL_ARR && kv->n != 1)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                               "%s has %" PRIu64 " layers, must have 1",
                               r->key, kv->n);
    GG_TRY(read_elements(r, GG_HP_ngram_layers, 1, &il));
    if (!r->good)
        return GGUF_OK; /* reported */
    if (il >= hp->n_layer)
        return gg_hparams_fail_range(r, GG_HP_ngram_layers, il, 0,
                                     hp->n_layer - 1);
    hp->layer[il].has_ngrams = true;
    return GGUF_OK;
}

static enum gguf_status check_heads(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    const uint32_t n = (hp->ngram_size - 1) * hp->ngram_heads;
    if (n > GG_NGRAM_HEADS)
        return gg_hparams_fail_range(r, GG_HP_ngram_heads, hp->ngram_heads, 1,
                                     GG_NGRAM_HEADS / (hp->ngram_size - 1));
    if ((uint64_t)n * hp->ngram_width != hp->n_embd)
        return gg_hparams_fail(
            r, gg_hparams_find(r, GG_HP_ngram_width), GG_CHECK_KEY_VALUE,
            GGUF_E_HPARAM,
            "%s is %" PRIu32 ", %" PRIu32
            " heads must have the width of embeddings, %" PRIu32,
            r->key, hp->ngram_width, n, hp->n_embd);
    hp->ngrams.n_heads = n;
    return GGUF_OK;
}

/* Rows are numbered by 32 bits. */
static enum gguf_status read_rows(struct gg_hparams_reader *r)
{
    struct gg_hparams_ngrams *n = &r->hp->ngrams;
    uint64_t size[GG_NGRAM_HEADS], offset[GG_NGRAM_HEADS];
    GG_TRY(read_elements(r, GG_HP_ngram_sizes, n->n_heads, size));
    if (r->good)
        GG_TRY(read_elements(r, GG_HP_ngram_offsets, n->n_heads, offset));
    for (uint32_t h = 0; r->good && h < n->n_heads; h++) {
        if (!size[h] || size[h] > INT32_MAX || offset[h] > INT32_MAX ||
            offset[h] + size[h] > INT32_MAX)
            return gg_hparams_fail(r, gg_hparams_find(r, GG_HP_ngram_sizes),
                                   GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s is %" PRIu64 " for head %" PRIu32
                                   ", whose rows begin at %" PRIu64
                                   ": must be 1 to %d in all",
                                   r->key, size[h], h, offset[h], INT32_MAX);
        n->size[h] = (uint32_t)size[h];
        n->offset[h] = (uint32_t)offset[h];
    }
    return GGUF_OK;
}

static enum gguf_status check_ngrams(struct gg_hparams_reader *r)
{
    static const enum gg_model_hparam needed[] = {
        GG_HP_ngram_size, GG_HP_ngram_heads, GG_HP_ngram_taps, GG_HP_ngram_eos,
        GG_HP_ngram_width
    };
    struct gg_hparams *hp = r->hp;
    bool all = true;
    if (!hp->has[GG_HP_ngram_layers])
        return GGUF_OK;
    GG_TRY(read_layer(r));
    for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!gg_hparams_find(r, needed[i]))
            GG_TRY(gg_hparams_fail_missing(r, needed[i]));
        all = all && hp->has[needed[i]];
    }
    if (!all)
        return GGUF_OK; /* reported */
    GG_TRY(check_heads(r));
    GG_TRY(read_elements(r, GG_HP_ngram_factors, hp->ngram_size,
                         hp->ngrams.factor));
    return hp->ngrams.n_heads ? read_rows(r) : GGUF_OK;
}

enum gguf_status gg_hparams_check_pooled(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    if (hp->n_streams == 1)
        GG_TRY(gg_hparams_fail_range(r, GG_HP_n_streams, 1, 2, 64));
    GG_TRY(read_ratios(r));
    return check_ngrams(r);
}
