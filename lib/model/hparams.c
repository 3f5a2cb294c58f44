/* hparams.c - hyperparameters from metadata
 *
 * Every number is checked against what a model can have before anything is
 * computed or allocated from it: it may come from a hostile file.
 */
#include "config.h"
#include "model/hparams.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* More than any model has; products of two of them fit 64 bits easily. */
#define MAX_WIDTH (1u << 26)

struct reader {
    const struct gg_source *src;
    const struct gguf_file *file; /* of src: the one with the metadata */
    const struct gg_arch *arch;
    const struct gg_checker *check; /* NULL: the first fault is the end */
    struct gguf_error *err;
    char key[128]; /* of the last find */
};

static const struct gguf_kv *find(struct reader *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->arch->name, name);
    return gguf_file_kv_find(r->file, r->key);
}

/* Something is wrong about the key that was found, or not found, last. */
static enum gguf_status fault(struct reader *r, const struct gguf_kv *kv,
                              enum gg_check_code code, enum gguf_status status,
                              const char *fmt, ...) GG_PRINTF(5, 6);

static enum gguf_status fault(struct reader *r, const struct gguf_kv *kv,
                              enum gg_check_code code, enum gguf_status status,
                              const char *fmt, ...)
{
    char message[256];
    uint64_t off = kv ? kv->off : GGUF_NO_OFFSET;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (!r->check)
        return gg_fail(r->err, status, off, "%s", message);
    return gg_finding(r->check, code, gg_strz(r->key), off, r->err, "%s",
                      message);
}

static enum gguf_status bad_value(struct reader *r, const struct gguf_kv *kv,
                                  uint64_t v, uint64_t min, uint64_t max)
{
    return fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                 "%s is %" PRIu64 ", must be %" PRIu64 " to %" PRIu64, r->key,
                 v, min, max);
}

static enum gguf_status missing(struct reader *r)
{
    return fault(r, NULL, GG_CHECK_KEY_MISSING, GGUF_E_NOTFOUND,
                 "key '%s' is missing", r->key);
}

/* What a getter said about the last find. */
static enum gguf_status passed_on(struct reader *r, const struct gguf_kv *kv,
                                  const struct gguf_error *why)
{
    return fault(r, kv,
                 why->status == GGUF_E_TYPE ? GG_CHECK_KEY_TYPE
                                            : GG_CHECK_KEY_VALUE,
                 why->status, "%s", why->message);
}

/* An integer of any type in [min, max]; without the key, *out stays. */
static enum gguf_status opt_uint(struct reader *r, const char *name,
                                 uint64_t min, uint64_t max, uint32_t *out)
{
    const struct gguf_kv *kv = find(r, name);
    struct gguf_error why;
    uint64_t v;
    if (!kv)
        return GGUF_OK;
    if (gguf_kv_get_uint(kv, &v, &why) != GGUF_OK)
        return passed_on(r, kv, &why);
    if (v < min || v > max)
        return bad_value(r, kv, v, min, max);
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
    struct gguf_error why;
    double v;
    if (!kv)
        return GGUF_OK;
    if (gguf_kv_get_float(kv, &v, &why) != GGUF_OK)
        return passed_on(r, kv, &why);
    if (!(v >= min && v <= max))
        return fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                     "%s is %g, must be %g to %g", r->key, v, min, max);
    *out = (float)v;
    return GGUF_OK;
}

/* One value for all layers, or an array with one for each: v[n_layer], zeros
 * after a fault. */
static enum gguf_status per_layer(struct reader *r, const char *name,
                                  uint32_t n_layer, uint64_t max, uint64_t *v)
{
    const struct gguf_kv *kv = find(r, name);
    struct gguf_error why;
    enum gguf_status st;
    memset(v, 0, n_layer * sizeof *v);
    if (!kv)
        return missing(r);
    if (kv->type == GGUF_VAL_ARR) {
        if (kv->elem_type != GGUF_VAL_U32 && kv->elem_type != GGUF_VAL_I32 &&
            kv->elem_type != GGUF_VAL_U64 && kv->elem_type != GGUF_VAL_I64)
            return fault(r, kv, GG_CHECK_KEY_TYPE, GGUF_E_TYPE,
                         "%s is an array of %s, must be of u32", r->key,
                         gguf_val_type_name(kv->elem_type));
        if (kv->n != n_layer)
            return fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                         "%s has %" PRIu64 " elements, there are %" PRIu32
                         " layers", r->key, kv->n, n_layer);
        st = gguf_kv_elems_uint(kv, 0, n_layer, v, &why);
    } else {
        st = gguf_kv_get_uint(kv, &v[0], &why);
        for (uint32_t i = 1; i < n_layer; i++)
            v[i] = v[0];
    }
    uint32_t i = 0;
    while (st == GGUF_OK && i < n_layer && v[i] >= 1 && v[i] <= max)
        i++;
    if (i == n_layer)
        return GGUF_OK;
    uint64_t found = v[i];
    memset(v, 0, n_layer * sizeof *v);
    return st == GGUF_OK ? bad_value(r, kv, found, 1, max)
                         : passed_on(r, kv, &why);
}

static enum gguf_status load_layers(struct reader *r, struct gg_hparams *hp,
                                    uint64_t *v)
{
    uint64_t max = hp->n_embd ? hp->n_embd : MAX_WIDTH;
    if (find(r, "feed_forward_length") || !hp->n_expert)
        GG_TRY(per_layer(r, "feed_forward_length", hp->n_layer, MAX_WIDTH,
                         v));
    for (uint32_t i = 0; i < hp->n_layer; i++)
        hp->layer[i].n_ff = (uint32_t)v[i];
    GG_TRY(per_layer(r, "attention.head_count", hp->n_layer, max, v));
    for (uint32_t i = 0; i < hp->n_layer; i++)
        hp->layer[i].n_head = (uint32_t)v[i];
    if (find(r, "attention.head_count_kv")) /* else each head has its own */
        GG_TRY(per_layer(r, "attention.head_count_kv", hp->n_layer, max, v));
    for (uint32_t i = 0; i < hp->n_layer; i++)
        hp->layer[i].n_head_kv = (uint32_t)v[i];
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        uint32_t n = hp->layer[i].n_head, n_kv = hp->layer[i].n_head_kv;
        if (n && n_kv && n % n_kv)
            return fault(r, find(r, "attention.head_count"),
                         GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                         "%s is %" PRIu32 ", no multiple of head_count_kv "
                         "%" PRIu32, r->key, n, n_kv);
    }
    return GGUF_OK;
}

/* Models with latent attention that keep it compressed have their own keys,
 * next to those of the cache. */
static enum gguf_status load_heads(struct reader *r, struct gg_hparams *hp)
{
    uint32_t n_head = hp->layer[0].n_head;
    hp->dim_k = hp->dim_v = n_head ? hp->n_embd / n_head : 0;
    GG_TRY(opt_uint(r, "attention.key_length", 1, 1 << 16, &hp->dim_k));
    bool given = find(r, "attention.key_length") != NULL;
    GG_TRY(opt_uint(r, "attention.value_length", 1, 1 << 16, &hp->dim_v));
    if (r->arch->parts & GG_PART_MLA) {
        GG_TRY(opt_uint(r, "attention.key_length_mla", 1, 1 << 16,
                        &hp->dim_k));
        GG_TRY(opt_uint(r, "attention.value_length_mla", 1, 1 << 16,
                        &hp->dim_v));
        GG_TRY(req_uint(r, "attention.kv_lora_rank", 1, MAX_WIDTH,
                        &hp->rank_kv));
        GG_TRY(opt_uint(r, "attention.q_lora_rank", 0, MAX_WIDTH,
                        &hp->rank_q));
    }
    if (!given && n_head && hp->n_embd % n_head)
        return fault(r, find(r, "attention.head_count"), GG_CHECK_KEY_VALUE,
                     GGUF_E_HPARAM,
                     "%s is %" PRIu32 ", does not divide embedding_length "
                     "%" PRIu32, r->key, n_head, hp->n_embd);
    for (uint32_t i = 0; i < hp->n_layer; i++)
        if ((uint64_t)hp->layer[i].n_head * hp->dim_k > MAX_WIDTH ||
            (uint64_t)hp->layer[i].n_head * hp->dim_v > MAX_WIDTH)
            return fault(r, find(r, "attention.head_count"),
                         GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                         "%s: %" PRIu32 " heads of %" PRIu32 " and %" PRIu32
                         " elements are too many",
                         r->arch->name, hp->layer[i].n_head, hp->dim_k,
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
    { "longrope", NULL }, /* known, and not supported */
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
    struct gguf_error why;
    if (kv && gguf_kv_get_str(kv, &type, &why) != GGUF_OK)
        return passed_on(r, kv, &why);
    for (size_t i = 0; i < GG_LEN(scalings); i++)
        if (gg_str_eqz(type, scalings[i].name)) {
            if (scalings[i].load)
                return scalings[i].load(r, hp);
            if (r->check)
                return GGUF_OK;
        }
    return fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                 "%s '%s' is not supported", r->key, gg_esc(&e, type));
}

static enum gguf_status load_rope(struct reader *r, struct gg_hparams *hp)
{
    uint32_t n_rot = hp->dim_k, max = hp->dim_k ? hp->dim_k : MAX_WIDTH;
    hp->rope = (struct gguf_rope)GGUF_ROPE_INIT;
    GG_TRY(opt_uint(r, "rope.dimension_count", 2, max, &n_rot));
    const struct gguf_kv *kv = find(r, "rope.dimension_count");
    if (kv && n_rot % 2)
        GG_TRY(fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                     "%s is %" PRIu32 ", must be even", r->key, n_rot));
    if (!kv && !r->check && n_rot % 2) /* all that are evaluated rotate */
        return fault(r, find(r, "attention.head_count"), GG_CHECK_KEY_VALUE,
                     GGUF_E_HPARAM,
                     "%s makes heads of %" PRIu32 " elements, which are no "
                     "pairs to rotate", r->key, n_rot);
    hp->rope.n_dims = (int32_t)n_rot;
    /* the greatest is far above what is in use (1e7 to 1e9) */
    GG_TRY(opt_float(r, "rope.freq_base", 1, 1e15, &hp->rope.freq_base));
    return load_scaling(r, hp);
}

/* ---- mixtures of experts ---- */

static enum gguf_status load_experts(struct reader *r, struct gg_hparams *hp)
{
    GG_TRY(opt_uint(r, "expert_count", 0, 1 << 16, &hp->n_expert));
    const struct gguf_kv *kv = find(r, "expert_count");
    if (!r->check && hp->n_expert)
        return fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                     "%s is %" PRIu32 ": mixture-of-experts models are not "
                     "evaluated yet", r->key, hp->n_expert);
    if (!hp->n_expert)
        return opt_uint(r, "expert_used_count", 0, 0, &hp->n_expert_used);
    GG_TRY(req_uint(r, "expert_used_count", 1, hp->n_expert,
                    &hp->n_expert_used));
    GG_TRY(opt_uint(r, "leading_dense_block_count", 0, hp->n_layer,
                    &hp->n_dense));
    GG_TRY(opt_uint(r, "expert_shared_count", 0, 1 << 16, &hp->n_shared));
    GG_TRY(opt_uint(r, "expert_feed_forward_length", 1, MAX_WIDTH,
                    &hp->n_ff_expert));
    hp->n_ff_shared = hp->n_ff_expert * hp->n_shared;
    return opt_uint(r, "expert_shared_feed_forward_length", 1, MAX_WIDTH,
                    &hp->n_ff_shared);
}

/* ---- what is recognised and refused ---- */

static enum gguf_status check_unsupported(struct reader *r)
{
    const struct gguf_kv *kv = find(r, "attention.causal");
    struct gguf_error why;
    int causal = 1;
    if (kv && gguf_kv_get_bool(kv, &causal, &why) != GGUF_OK)
        return passed_on(r, kv, &why);
    if (r->check || causal)
        return GGUF_OK;
    return fault(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                 "%s is false: such models are not evaluated yet", r->key);
}

static enum gguf_status load_vocab_size(struct reader *r,
                                        struct gg_hparams *hp, size_t n_tokens)
{
    hp->n_vocab = (uint32_t)n_tokens;
    if (!n_tokens)
        return req_uint(r, "vocab_size", 1, INT32_MAX, &hp->n_vocab);
    GG_TRY(opt_uint(r, "vocab_size", 1, INT32_MAX, &hp->n_vocab));
    if (hp->n_vocab == n_tokens)
        return GGUF_OK;
    uint32_t given = hp->n_vocab;
    hp->n_vocab = (uint32_t)n_tokens;
    return fault(r, find(r, "vocab_size"), GG_CHECK_VOCAB_SIZE, GGUF_E_VOCAB,
                 "%s is %" PRIu32 ", the vocabulary has %zu tokens", r->key,
                 given, n_tokens);
}

static enum gguf_status load_sizes(struct reader *r, struct gg_hparams *hp,
                                   size_t n_tokens)
{
    uint64_t n_ctx = 0;
    struct gguf_error why;
    GG_TRY(load_vocab_size(r, hp, n_tokens));
    const struct gguf_kv *kv = find(r, "context_length");
    if (!kv)
        GG_TRY(missing(r));
    else if (gguf_kv_get_uint(kv, &n_ctx, &why) != GGUF_OK)
        GG_TRY(passed_on(r, kv, &why));
    else if (!n_ctx)
        GG_TRY(bad_value(r, kv, n_ctx, 1, UINT64_MAX));
    hp->n_ctx_train = (uint32_t)GG_MIN(n_ctx, INT32_MAX);
    GG_TRY(req_uint(r, "embedding_length", 1, MAX_WIDTH, &hp->n_embd));
    /* every layer has tensors: the files vouch for their number */
    size_t n_tensors = gg_source_n_tensors(r->src);
    if (r->check)
        n_tensors = GG_MAX(n_tensors, hp->n_layer);
    GG_TRY(req_uint(r, "block_count", 1, GG_MAX(n_tensors, 1), &hp->n_layer));
    const char *eps = r->arch->layer_norm
                          ? "attention.layer_norm_epsilon"
                          : "attention.layer_norm_rms_epsilon";
    if (!find(r, eps))
        GG_TRY(missing(r));
    return opt_float(r, eps, 0, 1, &hp->norm_eps);
}

enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gg_source *src,
                                 const struct gg_arch *arch, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 const struct gg_checker *check,
                                 struct gguf_error *err)
{
    struct reader r = { .src = src, .file = src->file, .arch = arch,
                        .check = check, .err = err };
    GG_TRY(load_sizes(&r, hp, n_tokens));
    GG_TRY(load_experts(&r, hp));
    GG_TRY(check_unsupported(&r));
    if (!hp->n_layer)
        return GGUF_OK; /* reported */
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
    if (!hp->n_ff_expert && !(arch->parts & GG_PART_SHARED))
        hp->n_ff_expert = hp->layer ? hp->layer[0].n_ff : 0;
    return st;
}
