/* SPDX-License-Identifier: MIT */
/* back_rope.c - members of config.json about positions, from keys and
 * tensors */
#include "config.h"
#include "convert/back/back_maker.h"
#include "convert/class_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum gguf_status put_llama3(struct gg_back_maker *m, const float *x,
                                   size_t n, struct gguf_error *err)
{
    const struct gguf_kv *kv = gg_back_find_key(m, "rope.freq_base");
    double base = 10000;
    if (kv && gguf_kv_get_float(kv, &base, NULL) != GGUF_OK)
        base = 10000;
    base = json_real_value(json_object_get(m->root, "rope_theta")) > 0
               ? json_real_value(json_object_get(m->root, "rope_theta"))
               : base;
    return n && gg_back_put_llama3(m, x, n, base)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                              "tensor 'rope_freqs.weight': no rope_scaling "
                              "of type llama3 gives its factors");
}

/* Partial rotary embedding whose other elements have no frequency, as in
 * rope.c. */
static bool put_proportional(struct gg_back_maker *m, const float *x, size_t n)
{
    size_t k = 0;
    while (k < n && x[k] == x[0])
        k++;
    const json_t *parameters = json_object_get(m->root, "rope_parameters");
    if (k == n && (*x != 1 || !json_object_get(parameters, "full_attention")))
        return false;
    const double part = (double)k / (double)n;
    for (size_t i = k; i < n; i++)
        if (x[i] != 1e30f)
            return false;
    gg_back_put(m->root, "rope_parameters.full_attention.rope_type",
                json_string("proportional"));
    if (*x != 1)
        gg_back_put(m->root, "rope_parameters.full_attention.factor",
                    gg_back_shortest_real(*x));
    gg_back_put(
        m->root, "rope_parameters.full_attention.partial_rotary_factor",
        json_real(floor((double)n * part) < (double)k ? nextafter(part, 1)
                                                      : part));
    return true;
}

static void put_list(struct gg_back_maker *m, const char *name, const float *x,
                     size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, gg_back_shortest_real(x[i]));
    gg_back_put(m->root, name, list);
}

/* Sections of M-RoPE: three, or four if the fourth is not 0. */
static void put_sections(struct gg_back_maker *m)
{
    static const char name[] = "rope_scaling.mrope_section";
    const struct gguf_kv *kv = gg_back_find_key(m, "rope.dimension_sections");
    json_t *list = kv ? gg_back_kv_to_json(kv) : NULL;
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || !n) {
        json_decref(list);
        return;
    }
    if (n == 4 && json_integer_value(json_array_get(list, 3)) == 0)
        json_array_remove(list, 3);
    gg_back_put(m->root, "rope_scaling.rope_type", json_string("default"));
    gg_back_put(m->root, name, list);
}

/* Write mscale and mscale_all_dim of DeepSeek's models: the key is a tenth of
 * them. */
static void put_mscale(struct gg_back_maker *m)
{
    static const char key[] = "rope.scaling.yarn_log_multiplier";
    const struct gguf_kv *kv = gg_back_find_key(m, key);
    double x;
    for (const struct gg_convert_key *k = m->arch->keys; k && k->key; k++)
        if (kv && !strcmp(k->key, key) &&
            k->of == gg_convert_yarn_log_multiplier &&
            !gguf_kv_get_float(kv, &x, NULL) && fabs(x) < 1e6) {
            x = round(x * 1e7) / 1e6;
            gg_back_put(m->root, "rope_scaling.mscale", json_real(x));
            gg_back_put(m->root, "rope_scaling.mscale_all_dim", json_real(x));
        }
}

enum gguf_status gg_back_put_rope(struct gg_back_maker *m,
                                  struct gguf_error *err)
{
    static const char *const yarn[][2] = {
        { "rope.scaling.yarn_ext_factor",
          "rope_scaling.extrapolation_factor" },
        { "rope.scaling.yarn_attn_factor", "rope_scaling.attention_factor" },
        { "rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast" },
        { "rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow" },
    };
    float x[4096];
    size_t n;
    const struct gguf_kv *type = gg_back_find_key(m, "rope.scaling.type");
    const struct gguf_kv *old =
        gg_back_find_key(m, "rope.scaling.original_context_length");
    const struct gguf_kv *factor = gg_back_find_key(m, "rope.scaling.factor");
    struct gguf_str s;
    put_sections(m);
    if (gg_back_read_tensor(m, "rope_freqs.weight", x, &n))
        return put_proportional(m, x, n) ? GGUF_OK : put_llama3(m, x, n, err);
    if (gg_back_read_tensor(m, "rope_factors_long.weight", x, &n)) {
        put_list(m, "rope_scaling.long_factor", x, n);
        if (gg_back_read_tensor(m, "rope_factors_short.weight", x, &n))
            put_list(m, "rope_scaling.short_factor", x, n);
        gg_back_put(m->root, "rope_scaling.rope_type",
                    json_string("longrope"));
        if (old)
            gg_back_put(m->root, "original_max_position_embeddings",
                        gg_back_kv_to_json(old));
        return GGUF_OK;
    }
    if (!type || gguf_kv_get_str(type, &s, NULL) || gg_str_eqz(s, "none"))
        return GGUF_OK;
    gg_back_put(m->root, "rope_scaling.rope_type",
                json_stringn(s.data, s.size));
    for (size_t i = 0; i < GG_LEN(yarn); i++) {
        const struct gguf_kv *kv = gg_back_find_key(m, yarn[i][0]);
        if (kv)
            gg_back_put(m->root, yarn[i][1], gg_back_kv_to_json(kv));
    }
    put_mscale(m);
    if (factor)
        gg_back_put(m->root, "rope_scaling.factor",
                    gg_back_kv_to_json(factor));
    if (old)
        gg_back_put(m->root, "rope_scaling.original_max_position_embeddings",
                    gg_back_kv_to_json(old));
    return GGUF_OK;
}

void gg_back_put_partial(struct gg_back_maker *m)
{
    const struct gguf_kv *turns = gg_back_find_key(m, "rope.dimension_count");
    const struct gguf_kv *key = gg_back_find_key(m, "attention.key_length");
    const struct gguf_kv *width = gg_back_find_key(m, "embedding_length");
    const struct gguf_kv *heads = gg_back_find_key(m, "attention.head_count");
    uint64_t n, head = 0, w = 0, h = 0;
    if (!turns || gguf_kv_get_uint(turns, &n, NULL))
        return;
    if (key && gguf_kv_get_uint(key, &head, NULL) != GGUF_OK)
        head = 0;
    if (!key && width && heads && !gguf_kv_get_uint(width, &w, NULL) &&
        !gguf_kv_get_uint(heads, &h, NULL) && h)
        head = w / h;
    if (head > n && m->arch->rope_count)
        gg_back_put(m->root, "partial_rotary_factor",
                    json_real((double)n / (double)head));
}
