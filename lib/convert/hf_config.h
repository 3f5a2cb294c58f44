/* SPDX-License-Identifier: MIT */
/* hf_config.h - numbers and words of config.json
 *
 * A struct gg_hf_config is a view of config.json: it borrows the object of the
 * language model and the whole file, in which names are found that the object
 * lacks.
 * Functions of a family compute keys, sizes and conditions from it. The keys of
 * a GGUF file are read through the same functions on the way back, as an object
 * with the architecture's keys (back_maker.h).
 *
 * NAMES are names separated by blanks; the first that is there and not null
 * counts. A name may have points: a member of a member, or an element of a list
 * by its number. LAYER picks an element of a list; -1: the first element.
 * Functions that return a double return NAN for what is missing, so that
 * arithmetic with it is missing as well; true and false are 1 and 0.
 *
 *     static double inner_size(const struct gg_hf_config *cfg)
 *     {
 *         return gg_hf_config_num(cfg, "mamba_expand", -1) *
 *                gg_hf_config_num(cfg, "hidden_size", -1);
 *     }
 */
#ifndef GG_CONVERT_HF_CONFIG_H
#define GG_CONVERT_HF_CONFIG_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gg_hf_config {
    const json_t *model, *whole;
};

/* Functions of families: a number, a number for a layer, a condition. */
typedef double gg_hf_config_fn(const struct gg_hf_config *cfg);
typedef double gg_hf_config_layer_fn(const struct gg_hf_config *cfg,
                                     int64_t layer);
typedef bool gg_hf_config_test_fn(const struct gg_hf_config *cfg);

/* Largest number of layers. Lists of layers are searched for each layer, so the
 * number is bounded. */
enum { GG_HF_CONFIG_LAYERS = 4096 };

/* The value of the first of NAMES that is there and not null, or NULL. */
const json_t *gg_hf_config_get(const struct gg_hf_config *cfg,
                               const char *names);

/* The first of NAMES that is a number, or whose element for LAYER is one. */
double gg_hf_config_num(const struct gg_hf_config *cfg, const char *names,
                        int64_t layer);

/* 1 if the text of NAME, or the element for LAYER of a list of texts, is WORD,
 * else 0; NAN without NAME. */
double gg_hf_config_is_word(const struct gg_hf_config *cfg, const char *name,
                            int64_t layer, const char *word);

/* 1 if LETTER stands for LAYER in the text of NAME, which repeats, else 0; NAN
 * if NAME is not a text. */
double gg_hf_config_has_letter(const struct gg_hf_config *cfg,
                               const char *name, int64_t layer, char letter);

/* Return 1 if the list NAME has NUMBER, else 0; NAN if NAME is not a list, or
 * has more than GG_HF_CONFIG_LAYERS elements. */
double gg_hf_config_list_has(const struct gg_hf_config *cfg, const char *name,
                             int64_t number);

/* Number of elements of the list NAME; 0 if it is none. */
size_t gg_hf_config_list_len(const struct gg_hf_config *cfg, const char *name);

/* 1 if fn is neither 0 nor missing in any layer, 0 if it is 0 in one; NAN if it
 * is missing in a layer that is met first. Layer 0 is always asked. */
double gg_hf_config_all_layers(const struct gg_hf_config *cfg,
                               gg_hf_config_layer_fn *fn);

/* The first layer in which fn is not 0; num_hidden_layers if it is 0 in all.
 * NAN if fn is missing in a layer before that. */
double gg_hf_config_first_layer(const struct gg_hf_config *cfg,
                                gg_hf_config_layer_fn *fn);

#endif
