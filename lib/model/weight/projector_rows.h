/* SPDX-License-Identifier: MIT */
/* projector_rows.h - tensors and keys of projector files, by type
 *
 * A tower of a projector has layers and tensors of its own, and tensors that
 * depend on the type of the projector (clip.projector_type). Rows list them in
 * words that blanks separate:
 *
 *     NAME[:DIMENSIONS]   a tensor that must be there
 *     ?NAME[:DIMENSIONS]  a tensor that may be there
 *     NAME.*              NAME.weight and NAME.bias
 *     NAME+               all names that begin so
 *     %                   in a name: a number
 *
 * Dimensions are those of the weight, the fastest first, separated by commas.
 * Trailing dimensions of 1 are left out. A name with two sets of dimensions is
 * listed twice.
 *
 *     E                   width of the tower
 *     O                   width of the language model
 *     M                   mel bands
 *     a to z              a number that is the same wherever the letter is
 *     *                   any number
 *
 * Sources: tools/mtmd/clip-impl.h and clip.cpp of llama.cpp (August 2026) for
 * what its reader requires, and the files of its converter. */
#ifndef GG_MODEL_WEIGHT_PROJECTOR_ROWS_H
#define GG_MODEL_WEIGHT_PROJECTOR_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* Towers, in the order of files. */
enum gg_model_tower {
    GG_TOWER_VISION,
    GG_TOWER_AUDIO,
    GG_TOWER_SPEECH,
    GG_N_TOWERS
};

struct gg_model_projector {
    const char *type; /* value of clip.projector_type */
    enum gg_model_tower tower;
    bool layers;         /* the tower has transformer layers */
    const char *tensors; /* tensors beside the layers */
    const char *keys; /* keys that its reader requires, without "clip.", beside
                          * those of every tower; NULL: none */
};

/* Row n; NULL after the last. */
const struct gg_model_projector *gg_model_projector_at(size_t n);

/* Tensors that towers of all types may have, and tensors of their layers by the
 * part of the name after the layer's number. NULL for a tower without such
 * tensors. */
extern const char *const gg_model_tower_tensors[GG_N_TOWERS],
    *const gg_model_tower_layer_tensors[GG_N_TOWERS];

#endif
