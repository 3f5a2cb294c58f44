/* SPDX-License-Identifier: MIT */
/* back_maker.h - config.json while it is made of the keys of a GGUF file
 *
 * back_config.c makes the object: a member for each key that has a name in its
 * row, then those that functions of rows put (gg_convert_key.back,
 * gg_convert_arch.back). These
 * read the keys of the architecture from m->keys through hf_config.h, without
 * the architecture's prefix; num_hidden_layers is there as the number of layers
 * that do not draft, and pad_token_id as the token of padding.
 */
#ifndef GG_CONVERT_BACK_BACK_MAKER_H
#define GG_CONVERT_BACK_BACK_MAKER_H

#include "convert/back/back.h"

struct gg_back_maker {
    struct gg_back *b;
    const struct gg_convert_arch *arch;
    char class_name[80];
    json_t *root;
    struct gg_hf_config keys;
};

/* The key of the file that a row is of, or NULL; its value; the shortest number
 * that is x in single precision. */
const struct gguf_kv *gg_back_find_key(const struct gg_back_maker *m,
                                       const char *key);
json_t *gg_back_kv_to_json(const struct gguf_kv *kv);
json_t *gg_back_shortest_real(float x);
/* A member of o, or of a member of it, by points; v is given. */
void gg_back_put(json_t *o, const char *name, json_t *v);

/* ---- back_members.c: members of config.json ---- */

/* Put a number, or true or false; nothing if x is NAN. A whole number has no
 * point, one of single precision the digits of that. */
json_t *gg_back_number_to_json(double x);
void gg_back_put_num(struct gg_back_maker *m, const char *name, double x);
void gg_back_put_flag(struct gg_back_maker *m, const char *name, double x);
void gg_back_put_word(struct gg_back_maker *m, const char *name,
                      const char *word);
void gg_back_remove_member(struct gg_back_maker *m, const char *name);
/* Put a list with fn's number for each layer; nothing if it is missing in a
 * layer. One of words, which blanks separate, by its number from 0. */
void gg_back_put_layers(struct gg_back_maker *m, const char *name,
                        gg_hf_config_layer_fn *fn);
void gg_back_put_layer_words(struct gg_back_maker *m, const char *name,
                             gg_hf_config_layer_fn *fn, const char *words);
/* fn in the first layer in which it is not missing. */
double gg_back_first_layer(const struct gg_back_maker *m,
                           gg_hf_config_layer_fn *fn);
/* Layers that do not draft. */
int64_t gg_back_n_layers(const struct gg_back_maker *m);
/* Count the rows of a tensor of the file up to the last that is not of zeros;
 * NAN: the file lacks it, or it cannot be read. */
double gg_back_count_rows(const struct gg_back_maker *m, const char *tensor);

/* ---- shared_back.c: inverses of what shared_keys.c computes ---- */

/* Put num_hidden_layers: layers that do not draft. */
gg_back_fn gg_back_put_main_layers;
/* Put layer_types by attention.sliding_window_pattern. */
gg_back_fn gg_back_put_sliding_layers;
/* Put indexer_types by attention.indexer.types. */
gg_back_fn gg_back_put_indexer_types;
/* Put qk_nope_head_dim: the width of a key, without what turns of it. */
gg_back_fn gg_back_put_nope, gg_back_put_nope_of_mla;
/* Put num_key_value_heads: the heads of queries, where files have one head of
 * keys; heads of keys in the first layer with attention. */
gg_back_fn gg_back_put_kv_heads, gg_back_put_first_kv_heads;
/* Put num_attention_heads of the first layer with attention. */
gg_back_fn gg_back_put_first_heads;
/* Key NAME of the layer, if attention.sliding_window_pattern is SLIDING there;
 * heads of keys of a layer without and with a window. */
double gg_back_num_if(const struct gg_hf_config *keys, int64_t layer,
                      double sliding, const char *name);
gg_hf_config_layer_fn gg_back_full_kv_heads, gg_back_sliding_kv_heads;
/* Put partial_rotary_factor, of the width of a key. */
gg_back_fn gg_back_put_rotary_of_key;
/* Put rope_theta. */
gg_back_fn gg_back_put_rope_base;
/* Put is_causal, if it is false. */
gg_back_fn gg_back_put_not_causal;
/* Put norm_topk_prob, if it is true. */
gg_back_fn gg_back_put_norm_topk;
/* Put mamba_expand: width of the state space by that of the model. */
gg_back_fn gg_back_put_mamba_expand;
/* Has the layer attention, by its heads of keys? */
gg_hf_config_layer_fn gg_back_has_attention;
/* Has the layer experts: is it after the leading dense ones? */
gg_hf_config_layer_fn gg_back_is_sparse;
/* Distance of the first two layers with attention; NAN: there is one. */
double gg_back_attention_period(const struct gg_back_maker *m);
/* Part of a head that turns: of embedding_length by the heads; of the width of
 * a key. */
gg_hf_config_fn gg_back_rotary_of_width, gg_back_rotary_of_key;
/* Elements of a head of a state space. */
gg_hf_config_fn gg_back_state_head_dim;

/* back_rope.c: how positions are stretched; the part of a head that turns,
 * where it is not all. */
enum gguf_status gg_back_put_rope(struct gg_back_maker *m,
                                  struct gguf_error *err);
void gg_back_put_partial(struct gg_back_maker *m);

/* back_llama3.c: put rope_scaling of type llama3, whose factors are x, n of
 * them; false: it gives no such factors. base: rope_theta. */
bool gg_back_put_llama3(struct gg_back_maker *m, const float *x, size_t n,
                        double base);

#endif
