/* hparams.c - hyperparameters from metadata
 *
 * Every number is checked against what a model can have before anything is
 * computed or allocated from it: it may come from a hostile file.
 */
#include "config.h"
#include "model/hparams.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

/* More than any model has; products of two of them fit 64 bits easily. */
#define MAX_WIDTH (1u << 26)

struct reader {
    const struct gguf_file *file;
    const char *prefix;
    struct gguf_error *err;
    char key[128]; /* of the last find */
};

static const struct gguf_kv *find(struct reader *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->prefix, name);
    return gguf_file_kv_find(r->file, r->key);
}

static enum gguf_status missing(struct reader *r)
{
    return gg_fail(r->err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                   "key '%s' is missing", r->key);
}

static enum gguf_status check_range(struct reader *r, const struct gguf_kv *kv,
                                    uint64_t v, uint64_t min, uint64_t max)
{
    if (v >= min && v <= max)
        return GGUF_OK;
    return gg_fail(r->err, GGUF_E_HPARAM, kv->off,
                   "%s is %" PRIu64 ", must be %" PRIu64 " to %" PRIu64,
                   r->key, v, min, max);
}

/* An integer of any type in [min, max]; without the key, *out stays. */
static enum gguf_status opt_uint(struct reader *r, const char *name,
                                 uint64_t min, uint64_t max, uint32_t *out)
{
    const struct gguf_kv *kv = find(r, name);
    uint64_t v;
    if (!kv)
        return GGUF_OK;
    GG_TRY(gguf_kv_get_uint(kv, &v, r->err));
    GG_TRY(check_range(r, kv, v, min, max));
    *out = (uint32_t)v;
    return GGUF_OK;
}

static enum gguf_status req_uint(struct reader *r, const char *name,
                                 uint64_t min, uint64_t max, uint32_t *out)
{
    return find(r, name) ? opt_uint(r, name, min, max, out) : missing(r);
}

/* A finite number in [min, max]; without the key, *out stays. */
static enum gguf_status opt_float(struct reader *r, const char *name,
                                  double min, double max, float *out)
{
    const struct gguf_kv *kv = find(r, name);
    double v;
    if (!kv)
        return GGUF_OK;
    GG_TRY(gguf_kv_get_float(kv, &v, r->err));
    if (!(v >= min && v <= max))
        return gg_fail(r->err, GGUF_E_HPARAM, kv->off,
                       "%s is %g, must be %g to %g", r->key, v, min, max);
    *out = (float)v;
    return GGUF_OK;
}

/* One value for all layers, or an array with one for each: v[n_layer]. */
static enum gguf_status per_layer(struct reader *r, const char *name,
                                  uint32_t n_layer, uint64_t max, uint64_t *v)
{
    const struct gguf_kv *kv = find(r, name);
    if (!kv)
        return missing(r);
    if (kv->type == GGUF_VAL_ARR) {
        if (kv->elem_type != GGUF_VAL_U32 && kv->elem_type != GGUF_VAL_I32 &&
            kv->elem_type != GGUF_VAL_U64 && kv->elem_type != GGUF_VAL_I64)
            return gg_fail(r->err, GGUF_E_TYPE, kv->off,
                           "%s is an array of %s, must be of u32", r->key,
                           gguf_val_type_name(kv->elem_type));
        if (kv->n != n_layer)
            return gg_fail(r->err, GGUF_E_HPARAM, kv->off,
                           "%s has %" PRIu64 " elements, there are %" PRIu32
                           " layers",
                           r->key, kv->n, n_layer);
        GG_TRY(gguf_kv_elems_uint(kv, 0, n_layer, v, r->err));
    } else {
        GG_TRY(gguf_kv_get_uint(kv, &v[0], r->err));
        for (uint32_t i = 1; i < n_layer; i++)
            v[i] = v[0];
    }
    for (uint32_t i = 0; i < n_layer; i++)
        GG_TRY(check_range(r, kv, v[i], 1, max));
    return GGUF_OK;
}

static enum gguf_status load_layers(struct reader *r, struct gg_hparams *hp,
                                    uint64_t *v)
{
    GG_TRY(per_layer(r, "feed_forward_length", hp->n_layer, MAX_WIDTH, v));
    for (uint32_t i = 0; i < hp->n_layer; i++)
        hp->layer[i].n_ff = (uint32_t)v[i];
    GG_TRY(per_layer(r, "attention.head_count", hp->n_layer, hp->n_embd, v));
    for (uint32_t i = 0; i < hp->n_layer; i++)
        hp->layer[i].n_head = (uint32_t)v[i];
    if (find(r, "attention.head_count_kv")) /* else each head has its own */
        GG_TRY(per_layer(r, "attention.head_count_kv", hp->n_layer,
                         hp->n_embd, v));
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        hp->layer[i].n_head_kv = (uint32_t)v[i];
        if (hp->layer[i].n_head % hp->layer[i].n_head_kv)
            return gg_fail(r->err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                           "%s.attention.head_count is %" PRIu32
                           ", no multiple of head_count_kv %" PRIu32,
                           r->prefix, hp->layer[i].n_head,
                           hp->layer[i].n_head_kv);
    }
    return GGUF_OK;
}

static enum gguf_status load_heads(struct reader *r, struct gg_hparams *hp)
{
    uint32_t n_head = hp->layer[0].n_head;
    hp->dim_k = hp->dim_v = hp->n_embd / n_head;
    GG_TRY(opt_uint(r, "attention.key_length", 1, 1 << 16, &hp->dim_k));
    bool given = find(r, "attention.key_length") != NULL;
    GG_TRY(opt_uint(r, "attention.value_length", 1, 1 << 16, &hp->dim_v));
    if (!given && hp->n_embd % n_head)
        return gg_fail(r->err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                       "%s.attention.head_count is %" PRIu32
                       ", does not divide embedding_length %" PRIu32,
                       r->prefix, n_head, hp->n_embd);
    for (uint32_t i = 0; i < hp->n_layer; i++)
        if ((uint64_t)hp->layer[i].n_head * hp->dim_k > MAX_WIDTH ||
            (uint64_t)hp->layer[i].n_head * hp->dim_v > MAX_WIDTH)
            return gg_fail(r->err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                           "%s: %" PRIu32 " heads of %" PRIu32 " and %" PRIu32
                           " elements are too many",
                           r->prefix, hp->layer[i].n_head, hp->dim_k,
                           hp->dim_v);
    return GGUF_OK;
}

/* ---- rotary embedding ---- */

/* YaRN's numbers; those that are not in the file are its authors'. */
static enum gguf_status load_yarn(struct reader *r, struct gg_hparams *hp)
{
    uint32_t n_ctx_orig = hp->n_ctx_train;
    hp->rope.ext_factor = 1;
    GG_TRY(opt_uint(r, "rope.scaling.original_context_length", 1, INT32_MAX,
                    &n_ctx_orig));
    hp->rope.n_ctx_orig = (int32_t)n_ctx_orig;
    GG_TRY(opt_float(r, "rope.scaling.yarn_ext_factor", 0, 1e6,
                     &hp->rope.ext_factor));
    GG_TRY(opt_float(r, "rope.scaling.yarn_attn_factor", 1e-6, 1e6,
                     &hp->rope.attn_factor));
    GG_TRY(opt_float(r, "rope.scaling.yarn_beta_fast", 1e-6, 1e6,
                     &hp->rope.beta_fast));
    return opt_float(r, "rope.scaling.yarn_beta_slow", 1e-6, 1e6,
                     &hp->rope.beta_slow);
}

static enum gguf_status load_linear(struct reader *r, struct gg_hparams *hp)
{
    (void)r;
    (void)hp;
    return GGUF_OK;
}

static enum gguf_status load_unscaled(struct reader *r, struct gg_hparams *hp)
{
    (void)r;
    hp->rope.freq_scale = 1;
    return GGUF_OK;
}

static const struct {
    const char *name; /* rope.scaling.type */
    enum gguf_status (*load)(struct reader *r, struct gg_hparams *hp);
} scalings[] = {
    { "none", load_unscaled },
    { "linear", load_linear },
    { "yarn", load_yarn },
};

static enum gguf_status load_scaling(struct reader *r, struct gg_hparams *hp)
{
    struct gguf_str type = GG_STR("linear"); /* where there is only a factor */
    struct gg_esc e;
    float factor = 1;
    GG_TRY(opt_float(r, "rope.scale_linear", 1e-6, 1e6, &factor));
    GG_TRY(opt_float(r, "rope.scaling.factor", 1e-6, 1e6, &factor));
    GG_TRY(opt_float(r, "rope.scaling.attn_factor", 1e-6, 1e6,
                     &hp->rope.attn_factor));
    hp->rope.freq_scale = 1 / factor;
    const struct gguf_kv *kv = find(r, "rope.scaling.type");
    if (kv)
        GG_TRY(gguf_kv_get_str(kv, &type, r->err));
    for (size_t i = 0; i < GG_LEN(scalings); i++)
        if (gg_str_eqz(type, scalings[i].name))
            return scalings[i].load(r, hp);
    return gg_fail(r->err, GGUF_E_HPARAM, kv->off,
                   "%s '%s' is not supported", r->key, gg_esc(&e, type));
}

static enum gguf_status load_rope(struct reader *r, struct gg_hparams *hp)
{
    uint32_t n_rot = hp->dim_k;
    hp->rope = (struct gguf_rope)GGUF_ROPE_INIT;
    GG_TRY(opt_uint(r, "rope.dimension_count", 2, hp->dim_k, &n_rot));
    if (n_rot % 2)
        return gg_fail(r->err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                       "%s.rope.dimension_count is %" PRIu32 ", must be even",
                       r->prefix, n_rot);
    hp->rope.n_dims = (int32_t)n_rot;
    /* the greatest is far above what is in use (1e7 to 1e9) */
    GG_TRY(opt_float(r, "rope.freq_base", 1, 1e15, &hp->rope.freq_base));
    return load_scaling(r, hp);
}

/* ---- what is recognised and refused ---- */

static enum gguf_status check_unsupported(struct reader *r)
{
    uint32_t n_expert = 0, n_used = 0;
    GG_TRY(opt_uint(r, "expert_count", 0, 1 << 16, &n_expert));
    GG_TRY(opt_uint(r, "expert_used_count", 0, n_expert, &n_used));
    if (n_expert)
        return gg_fail(r->err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                       "%s.expert_count is %" PRIu32
                       ": mixture-of-experts models are not evaluated yet",
                       r->prefix, n_expert);
    const struct gguf_kv *kv = find(r, "attention.causal");
    int causal = 1;
    if (kv)
        GG_TRY(gguf_kv_get_bool(kv, &causal, r->err));
    if (!causal)
        return gg_fail(r->err, GGUF_E_UNSUPPORTED, kv->off,
                       "%s is false: such models are not evaluated yet",
                       r->key);
    return GGUF_OK;
}

static enum gguf_status load_vocab_size(struct reader *r,
                                        struct gg_hparams *hp, size_t n_tokens)
{
    hp->n_vocab = (uint32_t)n_tokens;
    if (!n_tokens)
        return req_uint(r, "vocab_size", 1, INT32_MAX, &hp->n_vocab);
    GG_TRY(opt_uint(r, "vocab_size", 1, INT32_MAX, &hp->n_vocab));
    if (hp->n_vocab != n_tokens)
        return gg_fail(r->err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                       "%s is %" PRIu32 ", the vocabulary has %zu tokens",
                       r->key, hp->n_vocab, n_tokens);
    return GGUF_OK;
}

enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gguf_file *file,
                                 const char *prefix, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err)
{
    struct reader r = { .file = file, .prefix = prefix, .err = err };
    uint64_t n_ctx;
    GG_TRY(load_vocab_size(&r, hp, n_tokens));
    const struct gguf_kv *kv = find(&r, "context_length");
    if (!kv)
        return missing(&r);
    GG_TRY(gguf_kv_get_uint(kv, &n_ctx, err));
    GG_TRY(check_range(&r, kv, n_ctx, 1, UINT64_MAX));
    hp->n_ctx_train = (uint32_t)GG_MIN(n_ctx, INT32_MAX);
    GG_TRY(req_uint(&r, "embedding_length", 1, MAX_WIDTH, &hp->n_embd));
    /* every layer has tensors: the file vouches for their number */
    size_t n_tensors = gguf_file_n_tensors(file);
    GG_TRY(req_uint(&r, "block_count", 1, GG_MAX(n_tensors, 1), &hp->n_layer));
    if (!find(&r, "attention.layer_norm_rms_epsilon"))
        return missing(&r);
    GG_TRY(opt_float(&r, "attention.layer_norm_rms_epsilon", 0, 1,
                     &hp->norm_eps));
    GG_TRY(check_unsupported(&r));

    hp->layer = gg_alloc_zero(allocator, hp->n_layer, sizeof *hp->layer);
    uint64_t *v = gg_alloc_zero(allocator, hp->n_layer, sizeof *v);
    enum gguf_status st = hp->layer && v
                              ? load_layers(&r, hp, v)
                              : gg_fail_nomem(err, hp->n_layer * sizeof *v);
    gg_free(allocator, v);
    if (st == GGUF_OK)
        st = load_heads(&r, hp);
    if (st == GGUF_OK)
        st = load_rope(&r, hp);
    return st;
}
