/* SPDX-License-Identifier: MIT */
/* hf_config.h - numbers and words of config.json
 *
 * Functions of a family compute keys, sizes and conditions from config.json.
 * They read it through a struct gg_hf_config, which borrows two objects: the
 * language model's, and the whole file, where names are looked up that the
 * first lacks. On the way back, the keys of a GGUF file are read through the
 * same functions, as an object with the architecture's keys (back_maker.h).
 *
 * NAMES are names separated by blanks; the first that exists and is not null is
 * read. A name may have points: a member of a member, or an element of a list
 * by its number. LAYER selects an element of a list; -1: the first. Functions
 * that return a double return NAN for a missing value, so that arithmetic with
 * it stays missing; true and false are 1 and 0.
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
    json_t
        *read; /* receives a member for each name that is read; NULL: none */
};

/* Functions of families: a number, a number of a layer, a condition. */
typedef double gg_hf_config_fn(const struct gg_hf_config *cfg);
typedef double gg_hf_config_layer_fn(const struct gg_hf_config *cfg,
                                     int64_t layer);
typedef bool gg_hf_config_test_fn(const struct gg_hf_config *cfg);

/* Limit of the number of layers. Lists of layers are searched for each layer,
 * so the number must be bounded. */
enum { GG_HF_CONFIG_LAYERS = 4096 };

/* Value of the first of NAMES that exists and is not null; NULL: none. */
const json_t *gg_hf_config_get(const struct gg_hf_config *cfg,
                               const char *names);

/* First of NAMES that is a number, or a list whose element LAYER is one. */
double gg_hf_config_num(const struct gg_hf_config *cfg, const char *names,
                        int64_t layer);

/* 1 if NAME, or its element for LAYER in a list, is the text WORD, else 0. NAN:
 * NAME does not exist. */
double gg_hf_config_is_word(const struct gg_hf_config *cfg, const char *name,
                            int64_t layer, const char *word);

/* 1 if LETTER stands for LAYER in the text of NAME, which is repeated as
 * needed, else 0. NAN: NAME is not a text. */
double gg_hf_config_has_letter(const struct gg_hf_config *cfg,
                               const char *name, int64_t layer, char letter);

/* 1 if the list NAME contains NUMBER, else 0. NAN: NAME is not a list, or has
 * more than GG_HF_CONFIG_LAYERS elements. */
double gg_hf_config_list_has(const struct gg_hf_config *cfg, const char *name,
                             int64_t number);

/* Number of elements of the list NAME; 0 if it is not a list. */
size_t gg_hf_config_list_len(const struct gg_hf_config *cfg, const char *name);

/* 1 if fn is neither 0 nor missing in any layer, 0 if it is 0 in one. NAN:
 * before that it is missing in a layer. fn is always called for layer 0. */
double gg_hf_config_all_layers(const struct gg_hf_config *cfg,
                               gg_hf_config_layer_fn *fn);

/* First layer in which fn is not 0; num_hidden_layers if it is 0 in all. NAN:
 * before that it is missing in a layer. */
double gg_hf_config_first_layer(const struct gg_hf_config *cfg,
                                gg_hf_config_layer_fn *fn);

#endif
