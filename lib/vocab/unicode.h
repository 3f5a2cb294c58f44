/* SPDX-License-Identifier: MIT */
/* unicode.h - properties of characters, of one version of Unicode: 16.0.0
 *
 * Token ids depend on which characters are letters, digits or marks, and each
 * version of Unicode adds characters. The tables here (unicode_tab.c) replace
 * those of the system's libraries, whose versions differ between systems.
 *
 * Version 16 is the version of the Rust library "tokenizers" (0.23), with which
 * most published tokenizers are trained and run. llama.cpp 0.5 has 15.1, which
 * differs in characters that 16 added. doc/tokenizers.md says more.
 */
#ifndef GG_VOCAB_UNICODE_H
#define GG_VOCAB_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* General categories (The Unicode Standard, table 4-4). NEXT_LINE is U+0085,
 * the only character beyond ASCII that is white space and not a separator; its
 * category in Unicode is Cc. */
enum gg_unicode_category {
    GG_UNICODE_CN,
    GG_UNICODE_LU,
    GG_UNICODE_LL,
    GG_UNICODE_LT,
    GG_UNICODE_LM,
    GG_UNICODE_LO,
    GG_UNICODE_MN,
    GG_UNICODE_MC,
    GG_UNICODE_ME,
    GG_UNICODE_ND,
    GG_UNICODE_NL,
    GG_UNICODE_NO,
    GG_UNICODE_PC,
    GG_UNICODE_PD,
    GG_UNICODE_PS,
    GG_UNICODE_PE,
    GG_UNICODE_PI,
    GG_UNICODE_PF,
    GG_UNICODE_PO,
    GG_UNICODE_SM,
    GG_UNICODE_SC,
    GG_UNICODE_SK,
    GG_UNICODE_SO,
    GG_UNICODE_ZS,
    GG_UNICODE_ZL,
    GG_UNICODE_ZP,
    GG_UNICODE_CC,
    GG_UNICODE_CF,
    GG_UNICODE_CS,
    GG_UNICODE_CO,
    GG_UNICODE_NEXT_LINE,
    GG_UNICODE_N_CATEGORIES
};

/* Sets of categories: bit 1 << category. */
#define GG_UNICODE_BIT(NAME) (1u << GG_UNICODE_##NAME)
#define GG_UNICODE_L         0x3eu       /* letters */
#define GG_UNICODE_M         0x1c0u      /* marks */
#define GG_UNICODE_N         0xe00u      /* numbers */
#define GG_UNICODE_P         0x7f000u    /* punctuation */
#define GG_UNICODE_S         0x780000u   /* symbols */
#define GG_UNICODE_Z         0x3800000u  /* separators */
#define GG_UNICODE_C         0x7c000001u /* control, format, unassigned */
/* White_Space beyond ASCII. */
#define GG_UNICODE_SPACE (GG_UNICODE_Z | GG_UNICODE_BIT(NEXT_LINE))

/* Properties of each character, in byte cp & 0xff of block gg_unicode_index[cp
 * >> 8]: its category, and whether the tables below have it. */
enum {
    GG_UNICODE_CATEGORY = 0x1f,
    GG_UNICODE_LOWERS = 0x20,
    GG_UNICODE_DECOMPOSES = 0x40
};
extern const uint8_t gg_unicode_index[4352];
extern const uint8_t gg_unicode_block[][256];

/* Categories of the characters whose UTF-8 begins with byte 0xc0 + i, as a
 * mask. */
extern const uint32_t gg_unicode_lead[64];

/* Pairs of a character and its simple lower case, or the first character of its
 * canonical decomposition (Hangul syllables are computed), in the order of
 * characters. Ranges of the script Han, first and last. */
extern const unsigned gg_unicode_n_lowers, gg_unicode_n_bases,
    gg_unicode_n_hans;
extern const uint32_t gg_unicode_lower[], gg_unicode_base[], gg_unicode_han[];

/* cp is below 0x110000. */
static inline unsigned gg_unicode_props(uint32_t cp)
{
    return gg_unicode_block[gg_unicode_index[cp >> 8]][cp & 0xff];
}

/* Category of any cp; above 0x10ffff it is CN. */
static inline enum gg_unicode_category gg_unicode_category(uint32_t cp)
{
    return cp < 0x110000 ? gg_unicode_props(cp) & GG_UNICODE_CATEGORY
                         : GG_UNICODE_CN;
}

/* Is the category of cp in this set? */
static inline bool gg_unicode_is(uint32_t cp, uint32_t categories)
{
    return categories >> gg_unicode_category(cp) & 1;
}

/* White_Space: U+0009 to U+000D, blanks, U+0085, all separators. */
static inline bool gg_unicode_is_space(uint32_t cp)
{
    return cp < 0x80 ? cp == ' ' || (cp >= 9 && cp <= 13)
                     : gg_unicode_is(cp, GG_UNICODE_SPACE);
}

/* Simple_Lowercase_Mapping; cp itself if it has no mapping. */
uint32_t gg_unicode_to_lower(uint32_t cp);
/* The first character of the full canonical decomposition of cp (NFD). */
uint32_t gg_unicode_to_base(uint32_t cp);

#endif
