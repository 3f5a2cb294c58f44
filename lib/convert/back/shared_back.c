/* SPDX-License-Identifier: MIT */
/* shared_back.c - inverses of the functions in shared_keys.c
 *
 * These functions read the keys of a GGUF file and set the members of
 * config.json from which shared_keys.c computes the keys.
 */
#include "config.h"
#include "convert/class_row.h"

/* ---- layers ---- */

void gg_back_put_main_layers(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_hidden_layers",
                    num_of(&m->keys, "num_hidden_layers"));
}

/* By the list KEY of true and false, a list of words. */
static void put_types(struct gg_back_maker *m, const char *key,
                      const char *name, const char *if_true,
                      const char *if_false)
{
    const json_t *is = gg_hf_config_get(&m->keys, key);
    json_t *words = json_is_array(is) ? json_array() : NULL;
    for (size_t i = 0; i < json_array_size(is); i++)
        json_array_append_new(words,
                              json_string(json_is_true(json_array_get(is, i))
                                              ? if_true
                                              : if_false));
    if (words)
        gg_back_put(m->root, name, words);
}

void gg_back_put_sliding_layers(struct gg_back_maker *m)
{
    put_types(m, "attention.sliding_window_pattern", "layer_types",
              "sliding_attention", "full_attention");
}

void gg_back_put_indexer_types(struct gg_back_maker *m)
{
    put_types(m, "attention.indexer.types", "indexer_types", "full", "shared");
}

double gg_back_is_sparse(const struct gg_hf_config *keys, int64_t layer)
{
    const double dense = num_of(keys, "leading_dense_block_count");
    return is_equal(is_above(dense, (double)layer), 0);
}

void gg_back_put_not_causal(struct gg_back_maker *m)
{
    if (num_of(&m->keys, "attention.causal") == 0)
        gg_back_put_flag(m, "is_causal", 0);
}

void gg_back_put_rope_base(struct gg_back_maker *m)
{
    gg_back_put_num(m, "rope_theta", num_of(&m->keys, "rope.freq_base"));
}

/* ---- heads ---- */

double gg_back_has_attention(const struct gg_hf_config *keys, int64_t layer)
{
    return is_above(num_at(keys, "attention.head_count_kv", layer), 0);
}

double gg_back_attention_period(const struct gg_back_maker *m)
{
    const double first =
        gg_hf_config_first_layer(&m->keys, gg_back_has_attention);
    for (int64_t i = 0; i < gg_back_n_layers(m); i++)
        if ((double)i > first && is_true(gg_back_has_attention(&m->keys, i)))
            return (double)i - first;
    return NAN;
}

static double kv_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return is_true(gg_back_has_attention(keys, layer))
               ? num_at(keys, "attention.head_count_kv", layer)
               : NAN;
}

static double n_heads(const struct gg_hf_config *keys, int64_t layer)
{
    const double n = num_at(keys, "attention.head_count", layer);
    return n > 0 ? n : NAN;
}

void gg_back_put_first_heads(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_attention_heads", gg_back_first_layer(m, n_heads));
}

void gg_back_put_first_kv_heads(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_key_value_heads",
                    gg_back_first_layer(m, kv_heads));
}

void gg_back_put_kv_heads(struct gg_back_maker *m)
{
    const struct gguf_kv *kv = gg_back_find_key(m, "attention.head_count");
    if (kv)
        gg_back_put(m->root, "num_key_value_heads", gg_back_kv_to_json(kv));
}

double gg_back_num_if(const struct gg_hf_config *keys, int64_t layer,
                      double sliding, const char *name)
{
    return num_at(keys, "attention.sliding_window_pattern", layer) == sliding
               ? num_at(keys, name, layer)
               : NAN;
}

double gg_back_full_kv_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return gg_back_num_if(keys, layer, 0, "attention.head_count_kv");
}

double gg_back_sliding_kv_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return gg_back_num_if(keys, layer, 1, "attention.head_count_kv");
}

/* ---- widths ---- */

static void put_nope(struct gg_back_maker *m, const char *key)
{
    const double n =
        num_of(&m->keys, key) - num_of(&m->keys, "rope.dimension_count");
    if (n >= 0)
        gg_back_put_num(m, "qk_nope_head_dim", n);
}

void gg_back_put_nope(struct gg_back_maker *m)
{
    put_nope(m, "attention.key_length");
}

void gg_back_put_nope_of_mla(struct gg_back_maker *m)
{
    put_nope(m, "attention.key_length_mla");
}

void gg_back_put_swiglu_limit(struct gg_back_maker *m)
{
    json_t *list =
        json_deep_copy(gg_hf_config_get(&m->keys, "swiglu_clamp_exp"));
    bool same = json_array_size(list) > 0;
    for (size_t i = 1; i < json_array_size(list); i++)
        same = same &&
               json_equal(json_array_get(list, i), json_array_get(list, 0));
    if (json_is_array(list))
        gg_back_put(m->root, "swiglu_limit",
                    same ? json_incref(json_array_get(list, 0))
                         : json_incref(list));
    json_decref(list);
}

void gg_back_put_norm_topk(struct gg_back_maker *m)
{
    if (num_of(&m->keys, "expert_weights_norm") == 1)
        gg_back_put_flag(m, "norm_topk_prob", 1);
}

void gg_back_put_mamba_expand(struct gg_back_maker *m)
{
    gg_back_put_num(m, "mamba_expand",
                    num_of(&m->keys, "ssm.inner_size") /
                        num_of(&m->keys, "embedding_length"));
}

double gg_back_rotary_of_width(const struct gg_hf_config *keys)
{
    return num_of(keys, "rope.dimension_count") *
           num_of(keys, "attention.head_count") /
           num_of(keys, "embedding_length");
}

void gg_back_put_rotary_of_key(struct gg_back_maker *m)
{
    gg_back_put_num(m, "partial_rotary_factor",
                    gg_back_rotary_of_key(&m->keys));
}

double gg_back_rotary_of_key(const struct gg_hf_config *keys)
{
    return num_of(keys, "rope.dimension_count") /
           num_of(keys, "attention.key_length");
}

double gg_back_state_head_dim(const struct gg_hf_config *keys)
{
    return num_of(keys, "ssm.inner_size") / num_of(keys, "ssm.time_step_rank");
}
