/* SPDX-License-Identifier: MIT */
/* needs.h - which weights and keys an architecture has, by its row
 *
 * Each choice in a row of arch.h stands for some weights and keys; this puts
 * them together, for the model or for one of its layers.
 */
#ifndef GG_MODEL_WEIGHT_NEEDS_H
#define GG_MODEL_WEIGHT_NEEDS_H

#include "model/arch.h"
#include "model/block/ffn.h"
#include "model/block/mixer.h"

/* Items of lists that end with 0: a weight or a key, needed or not. */
enum { GG_ITEM_MAY = 1 << 15, GG_ITEM_KEY = 1 << 14 };
#define GG_NEED(WEIGHT)     GG_W_##WEIGHT
#define GG_MAYBE(WEIGHT)    (GG_W_##WEIGHT | GG_ITEM_MAY)
#define GG_KEY(FIELD)       (GG_HP_##FIELD | GG_ITEM_KEY)
#define GG_KEY_MAYBE(FIELD) (GG_HP_##FIELD | GG_ITEM_KEY | GG_ITEM_MAY)

/* enum gg_model_use of everything. */
struct gg_needs {
    uint8_t weight[GG_N_WEIGHTS];
    uint8_t key[GG_N_HPARAMS];
};

/* Put the weights and keys of a list into n; a needed one stays needed. list
 * may be NULL. */
void gg_needs_add_list(struct gg_needs *n, const uint16_t *list);
/* Say whether a weight is needed, whatever was said before. */
void gg_needs_set_weight(struct gg_needs *n, enum gg_weight id, uint8_t use);

/* Keys that files of the architecture have. */
void gg_needs_fill_keys(const struct gg_arch *arch, struct gg_needs *out);

/* Weights of a layer, or of the model if layer is NULL. */
void gg_needs_fill_weights(const struct gg_arch *arch,
                           const struct gg_hparams *hp,
                           const struct gg_model_layer *layer,
                           struct gg_needs *out);

/* The row of a name (after what its scope begins with) among those that the
 * needs have, or GG_W_NONE. */
enum gg_weight gg_needs_find_weight(const struct gg_needs *n,
                                    enum gg_model_scope scope,
                                    struct gguf_str name);

#endif
