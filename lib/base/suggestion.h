/* SPDX-License-Identifier: MIT */
/* suggestion.h - similarity of names; the public part is in gguf/text.h */
#ifndef GG_BASE_SUGGESTION_H
#define GG_BASE_SUGGESTION_H

#include "gguf/text.h"

/* Edit distance of two names: the fewest letters that must be inserted,
 * deleted, replaced or swapped with their neighbour to turn a into b (Damerau
 * 1964, without editing a place twice). Letter case, '-', '_', '.' and blanks
 * are ignored, and so are letters after the 64th. */
unsigned gg_suggestion_distance(struct gguf_str a, struct gguf_str b);

#endif
