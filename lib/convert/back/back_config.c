/* SPDX-License-Identifier: MIT */
/* back_config.c - make config.json from keys
 *
 * The rows that compute keys from names in config.json are inverted. If a row
 * has several names, the class's own name is written (gg_convert_arch.instead),
 * else the one that most classes use.
 */
#include "config.h"
#include "convert/back/back_maker.h"

#include "base/compiler.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Preferred names where a row has several. */
static const char *const usual[] = {
    "num_hidden_layers", "max_position_embeddings", "hidden_size",
    "intermediate_size", "num_attention_heads",     "num_key_value_heads",
    "rms_norm_eps",      "layer_norm_eps",          "rope_theta",
    "num_experts",       "num_experts_per_tok",
};

/* ---- names ---- */

/* A name may be a setting of a projector's tower, "vision.hidden_size". */
static bool is_usual(const char *name, size_t n)
{
    static const char *const towers[] = { "vision.", "audio.", "text." };
    for (size_t i = 0; i < GG_LEN(towers); i++)
        if (n > strlen(towers[i]) &&
            !memcmp(name, towers[i], strlen(towers[i]))) {
            n -= strlen(towers[i]);
            name += strlen(towers[i]);
        }
    for (size_t i = 0; i < GG_LEN(usual); i++)
        if (strlen(usual[i]) == n && !memcmp(name, usual[i], n))
            return true;
    return false;
}

/* Choose one of several names separated by blanks: the preferred one, else the
 * first; then the one that the class has instead. */
static void choose_name(const struct gg_back_maker *m, const char *names,
                        char out[64])
{
    const struct gg_convert_arch *a = m->arch;
    const char *best = names;
    for (const char *p = names; *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        if (is_usual(p, n)) {
            best = p;
            break;
        }
        p += n;
    }
    snprintf(out, 64, "%.*s", (int)GG_MIN(strcspn(best, " "), 63), best);
    for (size_t i = 0; i < GG_LEN(a->instead) && a->instead[i][0]; i++)
        if (!strcmp(a->instead[i][0], out)) {
            snprintf(out, 64, "%s", a->instead[i][1]);
            return;
        }
}

void gg_back_choose_model_type(const struct gg_back_maker *m, char out[96])
{
    static const char *const ends[] = { "ForCausalLM", "LMHeadModel",
                                        "ForConditionalGeneration", "Model" };
    char name[80];
    size_t n = 0;
    if (m->arch->model_type) {
        snprintf(out, 96, "%s", m->arch->model_type);
        return;
    }
    snprintf(name, sizeof name, "%s", m->class_name);
    for (size_t i = 0; i < GG_LEN(ends); i++)
        if (gg_str_ends(gg_str_z(name), ends[i])) {
            name[strlen(name) - strlen(ends[i])] = 0;
            break;
        }
    bool upper = false, before;
    for (size_t i = 0; name[i] && n + 2 < 96; i++) {
        before = upper || !i;
        upper = name[i] >= 'A' && name[i] <= 'Z';
        if (upper && !before)
            out[n++] = '_';
        out[n++] = (char)(upper ? name[i] - 'A' + 'a' : name[i]);
    }
    out[n] = 0;
}

/* ---- values ---- */

/* Does the architecture have its own row for the key of row i? */
static bool is_replaced(const struct gg_back_maker *m, size_t i)
{
    const char *key = gg_convert_key_row(m->arch, i)->key;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(gg_convert_key_row(m->arch, k)->key, key))
            return true;
    return false;
}

/* Write router gating, whose names are the same in all classes. */
static void put_gating(struct gg_back_maker *m)
{
    static const char *const words[] = { NULL, "softmax", "sigmoid", NULL,
                                         "sqrtsoftplus" };
    static const char key[] = "expert_gating_func";
    const struct gguf_kv *kv = gg_back_find_key(m, key);
    uint64_t x;
    char name[64];
    for (const struct gg_convert_key *k = m->arch->keys; k && k->key; k++)
        if (!strcmp(k->key, key))
            return;
    if (!kv || gguf_kv_get_uint(kv, &x, NULL) || x >= GG_LEN(words) ||
        !words[x])
        return;
    choose_name(m, "scoring_func", name);
    gg_back_put(m->root, name, json_string(words[x]));
}

/* Change a list to an object with members "0", "1" and so on. Takes list. */
static json_t *number_members(json_t *list)
{
    json_t *out = json_object(), *v;
    char no[24];
    size_t i;
    json_array_foreach(list, i, v)
    {
        snprintf(no, sizeof no, "%zu", i);
        json_object_set(out, no, v);
    }
    json_decref(list);
    return out;
}

/* Does the row name a member that its key's value is written to? */
static bool has_names(const struct gg_convert_key *k)
{
    return k->hf && *k->hf && *k->hf != '=' && k->kind < GG_KIND_EACH_U32;
}

void gg_back_put_keys(struct gg_back_maker *m)
{
    char name[64];
    for (size_t i = 0; gg_convert_key_row(m->arch, i); i++) {
        const struct gg_convert_key *k = gg_convert_key_row(m->arch, i);
        const struct gguf_kv *kv = gg_back_find_key(m, k->key);
        if (!kv || is_replaced(m, i))
            continue;
        if (k->back)
            k->back(m);
        json_t *v = has_names(k) ? gg_back_kv_to_json(kv) : NULL;
        if (!v)
            continue;
        if (k->kind == GG_KIND_LABELS)
            v = number_members(v);
        choose_name(m, k->hf, name);
        gg_back_put(m->root, name, v);
    }
}

json_t *gg_back_keys_to_json(const struct gg_back_maker *m)
{
    json_t *root = json_object();
    const size_t n = strlen(m->arch->arch);
    char name[128];
    for (size_t i = 0; i < gguf_file_n_kv(m->b->meta); i++) {
        const struct gguf_kv *kv = gguf_file_kv(m->b->meta, i);
        if (kv->key.size <= n + 1 || kv->key.size >= sizeof name ||
            memcmp(kv->key.data, m->arch->arch, n) != 0 ||
            kv->key.data[n] != '.')
            continue;
        memcpy(name, kv->key.data + n + 1, kv->key.size - n - 1);
        name[kv->key.size - n - 1] = 0;
        gg_back_put(root, name, gg_back_kv_to_json(kv));
    }
    const struct gguf_kv *pad =
        gguf_file_kv_find(m->b->meta, "tokenizer.ggml.padding_token_id");
    if (pad)
        json_object_set_new(root, "pad_token_id", gg_back_kv_to_json(pad));
    const json_int_t all =
        json_integer_value(json_object_get(root, "block_count"));
    const json_int_t drafts =
        json_integer_value(json_object_get(root, "nextn_predict_layers"));
    json_object_set_new(root, "num_hidden_layers",
                        json_integer(all > drafts ? all - drafts : 0));
    return root;
}

/* ---- the rest ---- */

static void put_ids(struct gg_back_maker *m)
{
    static const char *const roles[][2] = {
        { "tokenizer.ggml.bos_token_id", "bos_token_id" },
        { "tokenizer.ggml.eos_token_id", "eos_token_id" },
        { "tokenizer.ggml.padding_token_id", "pad_token_id" },
        { "tokenizer.ggml.mask_token_id", "mask_token_id" },
    };
    for (size_t i = 0; i < GG_LEN(roles); i++) {
        const struct gguf_kv *kv = gguf_file_kv_find(m->b->meta, roles[i][0]);
        bool is_last = false; /* whatever config.json says */
        for (const struct gg_convert_key *o = m->arch->last; o && o->key; o++)
            is_last = is_last || !strcmp(o->key + 1, roles[i][0]);
        if (kv && !is_last)
            gg_back_put(m->root, roles[i][1], gg_back_kv_to_json(kv));
    }
}

/* Put the number of rows of the embedding, whether the embedding is the output
 * too, and the type of most numbers. */
static void put_tensors(struct gg_back_maker *m)
{
    static const char *const types[] = { "float32", "float16", "bfloat16" };
    double n[GG_LEN(types)] = { 0 };
    size_t at, most = 0;
    if (gg_source_find(&m->b->source, "token_embd.weight", &at))
        gg_back_put(
            m->root, "vocab_size",
            json_integer(gg_source_tensor(&m->b->source, at).info->ne[1]));
    gg_back_put(
        m->root, "tie_word_embeddings",
        json_boolean(!gg_source_find(&m->b->source, "output.weight", NULL)));
    for (size_t i = 0; i < gg_source_n_tensors(&m->b->source); i++) {
        const struct gguf_tensor_info *t =
            gg_source_tensor(&m->b->source, i).info;
        const uint32_t to = gg_back_dtype(m->b, t->dtype);
        if (t->n_dims > 1 && to != GGUF_DTYPE_I32)
            n[to == GGUF_DTYPE_F32   ? 0
              : to == GGUF_DTYPE_F16 ? 1
                                     : 2] += (double)t->n_elements;
    }
    for (size_t k = 1; k < GG_LEN(types); k++)
        most = n[k] > n[most] ? k : most;
    gg_back_put(m->root, "torch_dtype", json_string(types[most]));
    if (gg_source_find(&m->b->source, "blk.0.attn_q.bias", NULL))
        gg_back_put(m->root, "attention_bias", json_true());
}

/* Give rope_scaling and rope_parameters the members of both: transformers reads
 * only one of them (rope_config.c). Objects for kinds of layers stay. */
static void join_rope(struct gg_back_maker *m)
{
    json_t *scaling = json_object_get(m->root, "rope_scaling");
    json_t *parameters = json_object_get(m->root, "rope_parameters");
    if (json_object_get(scaling, "type")) /* rope_type would replace it */
        json_object_del(scaling, "rope_type");
    if (!json_object_size(scaling) || !json_object_size(parameters) ||
        json_is_object(json_object_get(parameters, "full_attention")) ||
        json_is_object(json_object_get(parameters, "sliding_attention")))
        return;
    json_object_update_missing(scaling, parameters);
    json_object_update(parameters, scaling);
}

void gg_back_set_class(struct gg_back_maker *m)
{
    const size_t n =
        GG_MIN(strcspn(m->arch->classes, " "), sizeof m->class_name - 1);
    memcpy(m->class_name, m->arch->classes, n);
    m->class_name[n] = 0;
}

enum gguf_status gg_back_make_config(struct gg_back *b,
                                     const struct gg_convert_arch *arch,
                                     struct gguf_error *err)
{
    gg_json_make_begin();
    struct gg_back_maker m = { .b = b, .arch = arch, .root = json_object() };
    json_t *keys = NULL;
    char type[96];
    gg_back_set_class(&m);
    keys = gg_back_keys_to_json(&m);
    m.keys = (struct gg_hf_config){ .model = keys, .whole = keys };
    gg_back_put(m.root, "architectures", json_pack("[s]", m.class_name));
    gg_back_choose_model_type(&m, type);
    gg_back_put(m.root, "model_type", json_string(type));
    gg_back_put_keys(&m);
    put_gating(&m);
    gg_back_put_partial(&m);
    put_ids(&m);
    put_tensors(&m);
    const enum gguf_status st = gg_back_put_rope(&m, err);
    if (st == GGUF_OK && arch->back)
        arch->back(&m);
    json_decref(keys);
    join_rope(&m);
    free(b->config);
    b->config =
        gg_json_make_text(m.root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    b->n_config = b->config ? strlen(b->config) : 0;
    return st == GGUF_OK && !b->config ? gg_error_set_nomem(err, 4096) : st;
}
