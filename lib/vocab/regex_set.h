/* SPDX-License-Identifier: MIT */
/* regex_set.h - sets of characters of an expression
 *
 * A set begins as { 0 }, and grows by union. A function that returns bool
 * returns false if memory is too little. */
#ifndef GG_VOCAB_REGEX_SET_H
#define GG_VOCAB_REGEX_SET_H

#include "vocab/regex_code.h"

void gg_regex_set_add_categories(struct gg_regex_set *s, uint32_t categories);
bool gg_regex_set_add_range(struct gg_regex_set *s, struct gg_mem_arena *arena,
                            uint32_t first, uint32_t last);
/* \s: White_Space. */
bool gg_regex_set_add_spaces(struct gg_regex_set *s,
                             struct gg_mem_arena *arena);
/* \w: Alphabetic, marks, \p{Nd} and \p{Pc} (Unicode Technical Standard 18,
 * annex C, but for the two joiners, as Oniguruma has it). */
bool gg_regex_set_add_words(struct gg_regex_set *s,
                            struct gg_mem_arena *arena);

/* \p{name} */
enum gg_regex_named { GG_REGEX_ADDED, GG_REGEX_NO_CLASS, GG_REGEX_NO_MEMORY };
enum gg_regex_named gg_regex_set_add_named(struct gg_regex_set *s,
                                           struct gg_mem_arena *arena,
                                           struct gguf_str name);

/* Make s the complement of s. Nothing may be added to a set with ranges
 * afterwards. */
void gg_regex_set_invert(struct gg_regex_set *s);
/* Add the set from, which must not have others. */
bool gg_regex_set_add_set(struct gg_regex_set *s, struct gg_mem_arena *arena,
                          const struct gg_regex_set *from);

/* Number of s among the sets of re, to which it is added if it is new. Returns
 * false if they are too many. */
bool gg_regex_set_number(struct gg_regex *re, struct gg_regex_set *s,
                         uint8_t *number);

/* Make the tables of re for look-ups. */
bool gg_regex_set_map(struct gg_regex *re);

/* Is cp, beyond ASCII, in a range of s? */
bool gg_regex_set_in_high_range(const struct gg_regex_set *s, uint32_t cp);
static inline bool gg_regex_set_in_range(const struct gg_regex_set *s,
                                         uint32_t cp)
{
    return cp < 0x10000 ? s->low[cp / 64] >> cp % 64 & 1
                        : gg_regex_set_in_high_range(s, cp);
}

#endif
