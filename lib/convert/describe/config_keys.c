/* SPDX-License-Identifier: MIT */
/* config_keys.c - write keys from config.json */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"
#include "quant/job/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(NAME, KIND, HF) GG_CONVERT_KEY(NAME, HF, KIND, 0)

/* Written only if config.json has is_causal and it is false. */
static double not_causal(const struct gg_hf_config *cfg)
{
    return gg_hf_config_num(cfg, "is_causal", -1) == 0 ? 0 : NAN;
}

/* The number of the function that chooses experts; INFINITY for a function of
 * another name, which write_number refuses. put_gating of back_config.c is the
 * inverse. */
static double gating_func(const struct gg_hf_config *cfg)
{
    static const char *const names[] = { "score_function",
                                         "scoring_func",
                                         "score_func",
                                         "moe_router_activation",
                                         "moe_router_activation_func",
                                         "expert_selection_fn" };
    static const char *const words[] = { "", "softmax", "sigmoid", "",
                                         "sqrtsoftplus" };
    for (size_t i = 0; i < GG_LEN(names); i++) {
        if (!gg_hf_config_get(cfg, names[i]))
            continue;
        for (size_t k = 1; k < GG_LEN(words); k++)
            if (gg_hf_config_is_word(cfg, names[i], -1, words[k]) == 1)
                return (double)k;
        return INFINITY;
    }
    return NAN;
}

/* Keys of all architectures, in order of writing: before the rotary embedding,
 * and after it. */
static const struct gg_convert_key first[] = {
    KEY("block_count", U32,
        "num_hidden_layers n_layers n_layer num_layers num_decoder_layers"),
    KEY("context_length", U32,
        "max_position_embeddings n_ctx n_positions max_length "
        "max_sequence_length max_seq_len model_max_length"),
    KEY("embedding_length", U32, "hidden_size n_embd dim"),
    KEY("feed_forward_length", U32,
        "prefix_dense_intermediate_size dense_intermediate_size "
        "intermediate_size n_inner hidden_dim"),
    KEY("attention.head_count", U32, "num_attention_heads n_head n_heads"),
    KEY("attention.head_count_kv", U32, "num_key_value_heads n_kv_heads"),
    { .key = "attention.causal",
      .kind = GG_KIND_BOOL_OF,
      .value = NAN,
      .of = not_causal,
      .back = gg_back_put_not_causal },
};
static const struct gg_convert_key then[] = {
    KEY("rope.freq_base", F32,
        "rope_parameters.full_attention.rope_theta "
        "rope_parameters.rope_theta global_rope_theta rope_global_theta "
        "rope_theta_global rope_theta rotary_emb_base rope_embedding_base"),
    KEY("rope.freq_base_swa", F32,
        "rope_parameters.sliding_attention.rope_theta local_rope_theta "
        "rope_local_theta rope_theta_local swa_rope_theta "
        "rope_local_base_freq rope_theta.1"),
    KEY("attention.layer_norm_rms_epsilon", F32, "rms_norm_eps norm_eps"),
    KEY("attention.layer_norm_epsilon", F32,
        "layer_norm_eps layer_norm_epsilon norm_epsilon"),
    KEY("expert_count", U32, "num_local_experts num_experts n_routed_experts"),
    KEY("expert_used_count", U32,
        "num_experts_per_tok num_experts_per_token top_k_experts"),
    KEY("expert_group_count", U32, "n_group"),
    KEY("expert_group_used_count", U32, "topk_group"),
    { .key = "expert_gating_func",
      .kind = GG_KIND_U32_OF,
      .value = NAN,
      .of = gating_func },
    KEY("attention.key_length", U32, "head_dim"),
    KEY("attention.value_length", U32, "head_dim"),
};

/* After those of the architecture. Keys of sentence-transformers folders
 * (modules.c, prompts.c) are those of this library: readers of GGUF files in
 * general know pooling_type alone. */
#define SENTENCE "/sentence_transformers."
static const struct gg_convert_key late[] = {
    KEY("pooling_type", U32, "modules_pooling"),
    KEY(SENTENCE "normalize", BOOL, "modules_normalize"),
    KEY(SENTENCE "max_seq_length", U32, "modules_max_tokens"),
    KEY(SENTENCE "prompt_names", TEXTS, "modules_prompt_names"),
    KEY(SENTENCE "prompts", TEXTS, "modules_prompts"),
    KEY(SENTENCE "default_prompt_name", STR, "modules_default_prompt"),
    KEY(SENTENCE "similarity_fn_name", STR, "modules_similarity"),
    KEY(SENTENCE "truncate_dim", U32, "modules_truncate"),
    KEY(SENTENCE "multi_vector", BOOL, "modules_multi_vector"),
};

double gg_convert_count_layers(const struct gguf_convert *c,
                               const struct gg_convert_arch *arch)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double n = gg_hf_config_num(&cfg, "num_hidden_layers", -1);
    if (!arch->nextn)
        return NAN;
    const double drafts = gg_hf_config_num(&cfg, arch->nextn, -1);
    return n + (isnan(drafts) ? arch->n_nextn : drafts);
}

static uint32_t count_blocks(const struct gguf_convert *c, char buf[128])
{
    uint32_t n = 0;
    const struct gguf_kv *kv = gguf_meta_find(
        c->out.meta, gg_convert_key_name(c, "block_count", buf));
    return kv && gguf_kv_get_u32(kv, &n, NULL) == GGUF_OK ? n : 0;
}

enum { VALUE = 48 }; /* bytes of a value in a message */

/* Text of a value of config.json. */
static const char *describe_value(const json_t *v, char text[VALUE])
{
    struct gguf_str s;
    struct gg_str_esc e;
    double x;
    if (json_is_boolean(v))
        return json_is_true(v) ? "true" : "false";
    if (gg_json_num(v, &x))
        snprintf(text, VALUE, "%.17g", x);
    else if (gg_json_str(v, &s))
        snprintf(text, VALUE, "'%.40s'", gg_str_esc(&e, s));
    else
        snprintf(text, VALUE, "%s",
                 json_is_array(v)    ? "a list"
                 : json_is_object(v) ? "an object"
                                     : "null");
    return text;
}

static enum gguf_status refuse_value(const struct gguf_convert *c,
                                     const json_t *v, const char *key,
                                     const char *what, struct gguf_error *err)
{
    char text[VALUE];
    return gg_error_set(
        err, GGUF_E_HPARAM,
        gg_json_offset_of(&c->folder.text[GG_CONVERT_CONFIG].json, v),
        "config.json: the value for '%s' is %s, expected %s", key,
        describe_value(v, text), what);
}

/* Refuse a number that config.json gives, or that was computed from it. */
static enum gguf_status refuse_number(const char *key, double x,
                                      const char *what, struct gguf_error *err)
{
    char text[VALUE];
    snprintf(text, sizeof text, "%.17g", x);
    return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                        "config.json: the value for '%s' is %s, expected %s",
                        key, isnan(x) ? "missing" : text, what);
}

/* One for each layer. */
static enum gguf_status write_array(struct gguf_convert *c, const char *key,
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
            st = refuse_value(c, e, key, "a list of numbers", err);
        ints[i] = (int32_t)x;
        floats[i] = (float)f;
    }
    if (st == GGUF_OK)
        st = k->kind == GG_KIND_F32
                 ? gguf_meta_set_array(c->out.meta, key, GGUF_VAL_F32, floats,
                                       n, err)
                 : gguf_meta_set_array(c->out.meta, key, GGUF_VAL_I32, ints, n,
                                       err);
    gg_mem_free(c->p.allocator, ints);
    gg_mem_free(c->p.allocator, floats);
    return st;
}

static enum gguf_status write_json(struct gguf_convert *c, const char *key,
                                   const struct gg_convert_key *k,
                                   const json_t *v, struct gguf_error *err)
{
    struct gguf_str s;
    int64_t i;
    double x;
    if (k->kind == GG_KIND_LABELS)
        return gg_convert_set_labels(c, key, v, err);
    if (k->kind == GG_KIND_TEXTS)
        return gg_convert_set_texts(c, key, v, err);
    if (json_is_array(v) && k->kind <= GG_KIND_F32)
        return write_array(c, key, k, v, err);
    switch (k->kind) {
    case GG_KIND_U32:
        if (!gg_json_int(v, &i) || i < 0 || i > UINT32_MAX)
            return refuse_value(c, v, key, "a whole number of 32 bits", err);
        return gguf_meta_set_u32(c->out.meta, key, (uint32_t)i, err);
    case GG_KIND_F32:
        if (!gg_json_num(v, &x) || !isfinite((float)x))
            return refuse_value(c, v, key, "a number", err);
        return gguf_meta_set_f32(c->out.meta, key, (float)x, err);
    case GG_KIND_BOOL:
        if (!json_is_boolean(v))
            return refuse_value(c, v, key, "true or false", err);
        return gguf_meta_set_bool(c->out.meta, key, json_is_true(v), err);
    default:
        if (!gg_json_str(v, &s))
            return refuse_value(c, v, key, "a text", err);
        return gguf_meta_set_str(c->out.meta, key, s, err);
    }
}

static enum gguf_status write_number(struct gguf_convert *c, const char *key,
                                     uint8_t kind, double x,
                                     struct gguf_error *err)
{
    switch (kind) {
    case GG_KIND_F32:
    case GG_KIND_F32_OF:
        return gguf_meta_set_f32(c->out.meta, key, (float)x, err);
    case GG_KIND_BOOL:
    case GG_KIND_BOOL_OF:
        return gguf_meta_set_bool(c->out.meta, key, x != 0, err);
    default:
        if (!(x >= 0) || x > UINT32_MAX || x != floor(x))
            return refuse_number(key, x, "a whole number of 32 bits", err);
        return gguf_meta_set_u32(c->out.meta, key, (uint32_t)x, err);
    }
}

/* A number that is computed: once (layer -1), or of a layer; NAN: nothing. */
static double compute_key(const struct gguf_convert *c,
                          const struct gg_convert_key *k, int64_t layer)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    double x = k->hf ? gg_hf_config_num(&cfg, k->hf, layer) : NAN;
    if (isnan(x) && k->of)
        x = k->of(&cfg);
    else if (isnan(x) && k->of_layer)
        x = k->of_layer(&cfg, layer);
    x = isnan(x) ? k->value : x;
    return k->above_0 && !(x > 0) ? NAN : x;
}

/* Write an array with a computed number for each layer. */
static enum gguf_status write_each(struct gguf_convert *c, const char *key,
                                   const struct gg_convert_key *k,
                                   struct gguf_error *err)
{
    static const uint32_t types[] = { GGUF_VAL_I32, GGUF_VAL_F32,
                                      GGUF_VAL_BOOL };
    char buf[128];
    uint32_t n_layers = count_blocks(c, buf);
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double n_main = gg_hf_config_num(&cfg, "num_hidden_layers", -1);
    const size_t size =
        k->kind == GG_KIND_EACH_BOOL ? sizeof(bool) : sizeof(int32_t);
    if (n_layers > GG_HF_CONFIG_LAYERS)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "config.json: %" PRIu32 " layers, limit is %d",
                            n_layers, GG_HF_CONFIG_LAYERS);
    if (!n_layers || isnan(compute_key(c, k, 0)))
        return GGUF_OK;
    uint8_t *list = gg_mem_alloc_zero(c->p.allocator, n_layers, size);
    enum gguf_status st =
        list ? GGUF_OK : gg_error_set_nomem(err, n_layers * size);
    for (uint32_t i = 0; i < n_layers && st == GGUF_OK; i++) {
        const double v = compute_key(c, k, i);
        void *x = list + i * size;
        /* the array may leave out nextn layers */
        if (isnan(v) && i >= n_main) {
            n_layers = i;
            break;
        }
        if (isnan(v) || (k->kind != GG_KIND_EACH_F32 && fabs(v) > INT32_MAX))
            st = refuse_number(key, v, "a number for each layer", err);
        else if (k->kind == GG_KIND_EACH_U32)
            memcpy(x, &(int32_t){ (int32_t)v }, size);
        else if (k->kind == GG_KIND_EACH_F32)
            memcpy(x, &(float){ (float)v }, size);
        else
            memcpy(x, &(bool){ v != 0 }, size);
    }
    if (st == GGUF_OK)
        st = gguf_meta_set_array(c->out.meta, key,
                                 types[k->kind - GG_KIND_EACH_U32], list,
                                 n_layers, err);
    gg_mem_free(c->p.allocator, list);
    return st;
}

/* "=TEXT", or "=N,N,N". */
static enum gguf_status write_literal(struct gguf_convert *c, const char *key,
                                      const struct gg_convert_key *k,
                                      struct gguf_error *err)
{
    int32_t list[16];
    size_t n = 0;
    if (k->kind == GG_KIND_STR)
        return gguf_meta_set_strz(c->out.meta, key, k->hf + 1, err);
    for (const char *p = k->hf; *p && n < GG_LEN(list); p += strcspn(p, ","))
        list[n++] = atoi(++p);
    return gguf_meta_set_array(c->out.meta, key, GGUF_VAL_I32, list, n, err);
}

/* A row's key, in place of one that is there. */
static enum gguf_status write_key(struct gguf_convert *c,
                                  const struct gg_convert_key *k,
                                  const char *key, struct gguf_error *err)
{
    const json_t *v = k->hf && *k->hf != '=' && k->kind < GG_KIND_U32_OF
                          ? gg_convert_get_config(c, k->hf)
                          : NULL;
    if (k->hf && *k->hf == '=')
        return write_literal(c, key, k, err);
    if (k->kind >= GG_KIND_EACH_U32)
        return write_each(c, key, k, err);
    if (k->kind >= GG_KIND_U32_OF) {
        const double x = compute_key(c, k, -1);
        return isnan(x) ? GGUF_OK : write_number(c, key, k->kind, x, err);
    }
    if (v)
        return write_json(c, key, k, v, err);
    if (k->hf && k->value == 0)
        return GGUF_OK;
    return write_number(c, key, k->kind, k->value, err);
}

/* Write a key unless the output has it already. */
static enum gguf_status add_key(struct gguf_convert *c,
                                const struct gg_convert_key *k,
                                struct gguf_error *err)
{
    char buf[128];
    const char *key = gg_convert_key_name(c, k->key, buf);
    return gguf_meta_find(c->out.meta, key) ? GGUF_OK
                                            : write_key(c, k, key, err);
}

/* Does config.json have a member that gives the row's value? */
static bool has_source(const struct gguf_convert *c,
                       const struct gg_convert_key *k)
{
    return k->kind < GG_KIND_U32_OF ? gg_convert_get_config(c, k->hf) != NULL
                                    : !isnan(compute_key(c, k, -1));
}

/* Does the architecture have a row for this key? */
static bool has_row(const struct gg_convert_arch *a, const char *key)
{
    for (const struct gg_convert_key *o = a->keys; o && o->key; o++)
        if (!strcmp(o->key, key))
            return true;
    return false;
}

/* Write the keys in rows. Rows of the architecture with the same name replace
 * them at their place, if config.json gives the value, or if the replacing row
 * has a default. */
static enum gguf_status add_keys(struct gguf_convert *c,
                                 const struct gg_convert_key *rows, size_t n,
                                 struct gguf_error *err)
{
    for (size_t i = 0; i < n && !c->arch->only_keys; i++) {
        const bool said = has_source(c, &rows[i]);
        bool own = false;
        for (const struct gg_convert_key *o = c->arch->keys; o && o->key; o++)
            if (!strcmp(o->key, rows[i].key) &&
                (said ||
                 (o->hf && o->kind < GG_KIND_U32_OF && o->value != 0))) {
                own = true;
                GG_TRY(add_key(c, o, err));
            }
        if (!own && said)
            GG_TRY(add_key(c, &rows[i], err));
    }
    return GGUF_OK;
}

const struct gg_convert_key *
gg_convert_key_row(const struct gg_convert_arch *a, size_t n)
{
    for (const struct gg_convert_key *o = a->keys; o && o->key; o++)
        if (!n--)
            return o;
    if (n < GG_LEN(first))
        return &first[n];
    n -= GG_LEN(first);
    if (n < GG_LEN(then))
        return &then[n];
    n -= GG_LEN(then);
    return n < GG_LEN(late) ? &late[n] : NULL;
}

/* ---- one thing under two names ---- */

/* Synonyms. Programs differ in which one they read first: if two have different
 * numbers, other programs see another model. */
static const char *const synonyms[] = {
    "num_hidden_layers n_layers n_layer num_layers",
    "max_position_embeddings n_positions n_ctx",
    "hidden_size n_embd n_embed d_model",
    "intermediate_size n_inner ffn_dim d_ff",
    "num_attention_heads n_head n_heads num_heads",
    "num_key_value_heads n_kv_heads n_head_kv num_kv_heads",
    "rms_norm_eps norm_eps",
    "layer_norm_eps layer_norm_epsilon norm_epsilon",
    "num_experts_per_tok num_experts_per_token",
};

/* Note each pair of synonyms in one object whose numbers differ. */
static void note_synonyms(const struct gguf_convert *c, const char *names)
{
    const char *one = NULL;
    char name[64];
    double x = 0, y = 0;
    for (const char *p = names; *p;) {
        const size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        const bool is =
            gg_json_num(json_object_get(c->folder.config, name), &y);
        if (is && one && x != y) {
            gg_folder_warn(&c->folder,
                           "config.json: %.*s is %.15g, and %s %.15g: two "
                           "names of one thing that disagree (--override-kv "
                           "sets its key)",
                           (int)strcspn(one, " "), one, x, name, y);
        } else if (is && !one) {
            one = p;
            x = y;
        }
        p += n + (p[n] == ' ');
    }
}

enum gguf_status gg_convert_add_keys(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    static const struct gg_convert_key size =
        KEY("vocab_size", U32, "vocab_size");
    /* their places: general.c sets the type */
    static const struct gg_convert_key type =
        GG_CONVERT_KEY("/general.file_type", NULL, U32, 0);
    static const struct gg_convert_key version = GG_CONVERT_KEY(
        "/general.quantization_version", NULL, U32, GG_JOB_VERSION);
    for (size_t i = 0; i < GG_LEN(synonyms) && c->p.note.fn; i++)
        note_synonyms(c, synonyms[i]);
    GG_TRY(add_keys(c, first, GG_LEN(first), err));
    GG_TRY(gg_convert_add_rope(c, err));
    GG_TRY(add_keys(c, then, GG_LEN(then), err));
    if (!c->arch->only_keys && !has_row(c->arch, type.key))
        GG_TRY(add_key(c, &type, err));
    if (c->arch->vocab_size)
        GG_TRY(add_key(c, &size, err));
    GG_TRY(gg_convert_add_rope_count(c, err));
    for (const struct gg_convert_key *o = c->arch->keys; o && o->key; o++)
        GG_TRY(add_key(c, o, err));
    for (size_t i = 0; i < GG_LEN(late); i++)
        GG_TRY(add_key(c, &late[i], err));
    GG_TRY(add_key(c, &type, err));
    GG_TRY(add_key(c, &version, err));
    return c->arch->add_tensors ? c->arch->add_tensors(c, err) : GGUF_OK;
}

enum gguf_status gg_convert_add_last_keys(struct gguf_convert *c,
                                          struct gguf_error *err)
{
    char buf[128];
    for (const struct gg_convert_key *o = c->arch->last; o && o->key; o++)
        GG_TRY(write_key(c, o, gg_convert_key_name(c, o->key, buf), err));
    return GGUF_OK;
}
