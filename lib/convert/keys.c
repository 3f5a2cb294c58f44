/* keys.c - what config.json says, as metadata */
#include "config.h"
#include "convert/convert.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define U32(KEY, HF) GG_CONVERT_KEY(KEY, HF, U32, 0)
#define F32(KEY, HF) GG_CONVERT_KEY(KEY, HF, F32, 0)

/* What all have that say it, in the order of writing. */
static const struct gg_convert_key all[] = {
    U32("block_count",
        "num_hidden_layers n_layers n_layer num_layers num_decoder_layers"),
    U32("context_length", "max_position_embeddings n_ctx n_positions "
                          "max_length max_sequence_length max_seq_len"),
    U32("embedding_length", "hidden_size n_embd dim d_model"),
    U32("feed_forward_length", "intermediate_size n_inner hidden_dim"),
    U32("attention.head_count", "num_attention_heads n_head n_heads"),
    U32("attention.head_count_kv", "num_key_value_heads n_kv_heads"),
    F32("rope.freq_base", "rope_theta rope_parameters.rope_theta"),
    F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    F32("attention.layer_norm_epsilon",
        "layer_norm_eps layer_norm_epsilon norm_epsilon norm_eps"),
    U32("expert_count", "num_local_experts num_experts"),
    U32("expert_used_count", "num_experts_per_tok num_experts_per_token"),
    U32("attention.key_length", "head_dim"),
    U32("attention.value_length", "head_dim"),
};

const char *gg_convert_key(const struct gguf_convert *c, const char *key,
                           char buf[128])
{
    if (*key == '/')
        return key + 1;
    snprintf(buf, 128, "%s.%s", c->arch->arch, key);
    return buf;
}

static enum gguf_status fail(const struct gguf_convert *c, const json_t *v,
                             const char *key, const char *what,
                             struct gguf_error *err)
{
    return gg_error_set(
        err, GGUF_E_HPARAM, gg_json_place(&c->text[GG_CONVERT_CONFIG].json, v),
        "config.json: what '%s' is made of is not %s", key, what);
}

/* One for each layer. */
static enum gguf_status set_array(struct gguf_convert *c, const char *key,
                                  const struct gg_convert_key *k,
                                  const json_t *v, struct gguf_error *err)
{
    const size_t n = json_array_size(v);
    enum gguf_status st = GGUF_OK;
    int32_t *ints = gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *ints);
    float *floats = gg_mem_alloc_zero(c->p.allocator, n + 1, sizeof *floats);
    if (!ints || !floats)
        st = gg_error_set_nomem(err, n * sizeof *ints);
    for (size_t i = 0; i < n && st == GGUF_OK; i++) {
        const json_t *e = json_array_get(v, i);
        int64_t x = 0;
        double f = 0;
        if (k->kind == GG_KIND_F32
                ? !gg_json_num(e, &f)
                : !gg_json_int(e, &x) || x < 0 || x > INT32_MAX)
            st = fail(c, e, key, "a list of numbers", err);
        ints[i] = (int32_t)x;
        floats[i] = (float)f;
    }
    if (st == GGUF_OK)
        st = k->kind == GG_KIND_F32
                 ? gguf_meta_set_array(c->meta, key, GGUF_VAL_F32, floats, n,
                                       err)
                 : gguf_meta_set_array(c->meta, key, GGUF_VAL_I32, ints, n,
                                       err);
    gg_mem_free(c->p.allocator, ints);
    gg_mem_free(c->p.allocator, floats);
    return st;
}

static enum gguf_status set_json(struct gguf_convert *c, const char *key,
                                 const struct gg_convert_key *k,
                                 const json_t *v, struct gguf_error *err)
{
    struct gguf_str s;
    int64_t i;
    double x;
    if (json_is_array(v) && k->kind <= GG_KIND_F32)
        return set_array(c, key, k, v, err);
    switch (k->kind) {
    case GG_KIND_U32:
        if (!gg_json_int(v, &i) || i < 0 || i > UINT32_MAX)
            return fail(c, v, key, "a whole number of 32 bits", err);
        return gguf_meta_set_u32(c->meta, key, (uint32_t)i, err);
    case GG_KIND_F32:
        if (!gg_json_num(v, &x) || !isfinite((float)x))
            return fail(c, v, key, "a number", err);
        return gguf_meta_set_f32(c->meta, key, (float)x, err);
    case GG_KIND_BOOL:
        if (!json_is_boolean(v))
            return fail(c, v, key, "true or false", err);
        return gguf_meta_set_bool(c->meta, key, json_is_true(v), err);
    default:
        if (!gg_json_str(v, &s))
            return fail(c, v, key, "a text", err);
        return gguf_meta_set_str(c->meta, key, s, err);
    }
}

/* What is there already stays. */
static enum gguf_status set(struct gguf_convert *c,
                            const struct gg_convert_key *k,
                            struct gguf_error *err)
{
    char buf[128];
    const char *key = gg_convert_key(c, k->key, buf);
    const json_t *v = k->hf ? gg_convert_get(c, k->hf) : NULL;
    if (gguf_meta_find(c->meta, key))
        return GGUF_OK;
    if (v)
        return set_json(c, key, k, v, err);
    if (k->hf && k->value == 0)
        return GGUF_OK;
    switch (k->kind) {
    case GG_KIND_F32:
        return gguf_meta_set_f32(c->meta, key, (float)k->value, err);
    case GG_KIND_BOOL:
        return gguf_meta_set_bool(c->meta, key, k->value != 0, err);
    default: return gguf_meta_set_u32(c->meta, key, (uint32_t)k->value, err);
    }
}

const struct gg_convert_key *
gg_convert_key_row(const struct gg_convert_arch *a, size_t n)
{
    for (const struct gg_convert_key *o = a->keys; o && o->key; o++)
        if (!n--)
            return o;
    return n < GG_LEN(all) ? &all[n] : NULL;
}

enum gguf_status gg_convert_keys(struct gguf_convert *c,
                                 struct gguf_error *err)
{
    static const struct gg_convert_key size = U32("vocab_size", "vocab_size");
    /* The rows of the architecture that stand for those of all take their
     * places. */
    for (size_t i = 0; i < GG_LEN(all); i++) {
        const struct gg_convert_key *k = &all[i];
        for (const struct gg_convert_key *o = c->arch->keys; o && o->key; o++)
            if (!strcmp(o->key, all[i].key))
                k = o;
        GG_TRY(set(c, k, err));
    }
    for (const struct gg_convert_key *o = c->arch->keys; o && o->key; o++)
        GG_TRY(set(c, o, err));
    GG_TRY(gg_convert_rope(c, err));
    return c->arch->vocab_size ? set(c, &size, err) : GGUF_OK;
}
