/* SPDX-License-Identifier: MIT */
/* needs.h - weights and keys that files of an architecture have
 *
 * Each column of a row in arch.h implies some weights and keys. These functions
 * collect them into struct gg_needs, for the model or for one of its layers.
 */
#ifndef GG_MODEL_WEIGHT_NEEDS_H
#define GG_MODEL_WEIGHT_NEEDS_H

#include "model/arch.h"
#include "model/block/ffn.h"
#include "model/block/mixer.h"

/* Items of lists, which end with 0: a weight or a key, required or optional. */
enum { GG_ITEM_MAY = 1 << 15, GG_ITEM_KEY = 1 << 14 };
#define GG_NEED(WEIGHT)     GG_W_##WEIGHT
#define GG_MAYBE(WEIGHT)    (GG_W_##WEIGHT | GG_ITEM_MAY)
#define GG_KEY(FIELD)       (GG_HP_##FIELD | GG_ITEM_KEY)
#define GG_KEY_MAYBE(FIELD) (GG_HP_##FIELD | GG_ITEM_KEY | GG_ITEM_MAY)

/* enum gg_model_use of each weight and key. */
struct gg_needs {
    uint8_t weight[GG_N_WEIGHTS];
    uint8_t key[GG_N_HPARAMS];
};

/* Add the weights and keys of a list to n. A required one stays required. list
 * NULL: nothing. */
void gg_needs_add_list(struct gg_needs *n, const uint16_t *list);
/* Set whether a weight is required, overriding earlier calls. */
void gg_needs_set_weight(struct gg_needs *n, enum gg_weight id, uint8_t use);

/* Collect the keys of files of an architecture. */
void gg_needs_fill_keys(const struct gg_arch *arch, struct gg_needs *out);

/* Collect the weights of a layer; layer NULL: of the model. */
void gg_needs_fill_weights(const struct gg_arch *arch,
                           const struct gg_hparams *hp,
                           const struct gg_model_layer *layer,
                           struct gg_needs *out);

/* Find the weight with this name (without the prefix of its scope) among those
 * in n. GG_W_NONE: not found. */
enum gg_weight gg_needs_find_weight(const struct gg_needs *n,
                                    enum gg_model_scope scope,
                                    struct gguf_str name);

#endif
