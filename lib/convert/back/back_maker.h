/* SPDX-License-Identifier: MIT */
/* back_maker.h - config.json while it is made from the keys of a GGUF file
 *
 * back_config.c makes the object: a member for each key whose row names one,
 * then those of the functions in rows (gg_convert_key.back,
 * gg_convert_arch.back). These functions read the architecture's keys, without
 * its prefix, from m->keys with hf_config.h. Two keys have names of config.json
 * there: num_hidden_layers, the number of layers without nextn layers, and
 * pad_token_id.
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

/* Find the key of the file for the name in a row; NULL: not found. */
const struct gguf_kv *gg_back_find_key(const struct gg_back_maker *m,
                                       const char *key);
/* Value of a key as JSON. */
json_t *gg_back_kv_to_json(const struct gguf_kv *kv);
/* Shortest decimal number that is x in single precision, as JSON. */
json_t *gg_back_shortest_real(float x);
/* Set a member of o. name may have points for members of members. Takes v. */
void gg_back_put(json_t *o, const char *name, json_t *v);

/* ---- back_config.c ---- */

/* Set m->class_name to the first class of the row. */
void gg_back_set_class(struct gg_back_maker *m);
/* Choose model_type of config.json: the row's, or the class's name in small
 * letters, with '_' before a large one that follows a small one or a digit. */
void gg_back_choose_model_type(const struct gg_back_maker *m, char out[96]);
/* Set a member for each key of the file whose row names one. */
void gg_back_put_keys(struct gg_back_maker *m);
/* The keys of the architecture as members of members, for functions that read
 * them as config.json is read. */
json_t *gg_back_keys_to_json(const struct gg_back_maker *m);

/* ---- back_members.c: members of config.json ---- */

/* x as JSON: a whole number without a point, another number with the digits of
 * single precision. NULL if x is NAN. */
json_t *gg_back_number_to_json(double x);
/* Set a number. If x is NAN, does nothing. */
void gg_back_put_num(struct gg_back_maker *m, const char *name, double x);
/* Set true or false. If x is NAN, does nothing. */
void gg_back_put_flag(struct gg_back_maker *m, const char *name, double x);
void gg_back_put_word(struct gg_back_maker *m, const char *name,
                      const char *word);
void gg_back_remove_member(struct gg_back_maker *m, const char *name);
/* Set a list of fn's numbers for each layer. If fn is NAN in a layer, does
 * nothing. */
void gg_back_put_layers(struct gg_back_maker *m, const char *name,
                        gg_hf_config_layer_fn *fn);
/* Set a list of words for each layer. words are separated by blanks; fn returns
 * their number, from 0. */
void gg_back_put_layer_words(struct gg_back_maker *m, const char *name,
                             gg_hf_config_layer_fn *fn, const char *words);
/* Result of fn in the first layer where it is not NAN. */
double gg_back_first_layer(const struct gg_back_maker *m,
                           gg_hf_config_layer_fn *fn);
/* Number of layers without nextn layers. */
int64_t gg_back_n_layers(const struct gg_back_maker *m);
/* Read the numbers of a tensor of the file. *n receives their number. false:
 * the file lacks it, it has more than 4096, or it cannot be read. */
bool gg_back_read_tensor(const struct gg_back_maker *m, const char *name,
                         float x[4096], size_t *n);
/* Number of rows of a tensor of the file, without rows of zeros at its end.
 * NAN: the file lacks it, or it cannot be read. */
double gg_back_count_rows(const struct gg_back_maker *m, const char *tensor);

/* ---- shared_back.c: inverses of shared_keys.c ---- */

/* Set num_hidden_layers, without nextn layers. */
gg_back_fn gg_back_put_main_layers;
/* Set layer_types from attention.sliding_window_pattern. */
gg_back_fn gg_back_put_sliding_layers;
/* Set indexer_types from attention.indexer.types. */
gg_back_fn gg_back_put_indexer_types;
/* Set qk_nope_head_dim: elements of a key without rotary embedding. */
gg_back_fn gg_back_put_nope, gg_back_put_nope_of_mla;
/* Set num_key_value_heads: the query heads, where files have one key head; or
 * the key heads of the first layer with attention. */
gg_back_fn gg_back_put_kv_heads, gg_back_put_first_kv_heads;
/* Set num_attention_heads: those of the first layer with attention. */
gg_back_fn gg_back_put_first_heads;
/* Number of key NAME of the layer if its attention.sliding_window_pattern is
 * SLIDING, else NAN. */
double gg_back_num_if(const struct gg_hf_config *keys, int64_t layer,
                      double sliding, const char *name);
/* Key heads of a layer without, and with, a sliding window. */
gg_hf_config_layer_fn gg_back_full_kv_heads, gg_back_sliding_kv_heads;
/* Set partial_rotary_factor, relative to the width of a key. */
gg_back_fn gg_back_put_rotary_of_key;
/* Set rope_theta. */
gg_back_fn gg_back_put_rope_base;
/* Set is_causal if it is false. */
gg_back_fn gg_back_put_not_causal;
/* Set swiglu_limit from swiglu_clamp_exp: a number if it is the same in all
 * layers, else a list. */
gg_back_fn gg_back_put_swiglu_limit;
/* Set norm_topk_prob if it is true. */
gg_back_fn gg_back_put_norm_topk;
/* Set mamba_expand: width of the state space / width of the model. */
gg_back_fn gg_back_put_mamba_expand;
/* Does the layer have attention, by its key heads? */
gg_hf_config_layer_fn gg_back_has_attention;
/* Does the layer have experts, by the number of leading dense layers? */
gg_hf_config_layer_fn gg_back_is_sparse;
/* Distance between the first two layers with attention. NAN: there is only
 * one. */
double gg_back_attention_period(const struct gg_back_maker *m);
/* Partial rotary factor, relative to embedding_length / heads; and to the width
 * of a key. */
gg_hf_config_fn gg_back_rotary_of_width, gg_back_rotary_of_key;
/* Elements of a head of a state space. */
gg_hf_config_fn gg_back_state_head_dim;

/* back_rope.c: set rope_scaling and related members. */
enum gguf_status gg_back_put_rope(struct gg_back_maker *m,
                                  struct gguf_error *err);
/* back_rope.c: set the partial rotary factor if it is not 1. */
void gg_back_put_partial(struct gg_back_maker *m);

/* back_llama3.c: set rope_scaling of type llama3 that gives the n frequency
 * factors x. base: rope_theta. false: no such parameters give these factors. */
bool gg_back_put_llama3(struct gg_back_maker *m, const float *x, size_t n,
                        double base);

#endif
