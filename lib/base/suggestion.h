/* SPDX-License-Identifier: MIT */
/* suggestion.h - how much two names look alike; gguf/text.h has what is public
 * */
#ifndef GG_BASE_SUGGESTION_H
#define GG_BASE_SUGGESTION_H

#include "gguf/text.h"

/* How many letters must be put in, taken out, replaced or exchanged with their
 * neighbour to make a of b. The case of letters, and '-', '_', '.' and blanks,
 * do not count. What is after 64 letters is not looked at. (The distance of
 * Damerau 1964, no place edited twice.) */
unsigned gg_suggestion_distance(struct gguf_str a, struct gguf_str b);

#endif
