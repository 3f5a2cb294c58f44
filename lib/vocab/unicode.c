/* SPDX-License-Identifier: MIT */
/* unicode.c - properties of characters, of one version of Unicode */
#include "config.h"
#include "vocab/unicode.h"

/* Map cp by n pairs that are sorted by character; other characters stay. */
static uint32_t map_char(const uint32_t *pairs, unsigned n, uint32_t cp)
{
    unsigned low = 0, high = n;
    while (low < high) {
        unsigned mid = low + (high - low) / 2;
        if (pairs[2 * mid] < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && pairs[2 * low] == cp ? pairs[2 * low + 1] : cp;
}

uint32_t gg_unicode_to_lower(uint32_t cp)
{
    if (cp > 0x10ffff || !(gg_unicode_props(cp) & GG_UNICODE_LOWERS))
        return cp;
    return map_char(gg_unicode_lower, gg_unicode_n_lowers, cp);
}

uint32_t gg_unicode_to_base(uint32_t cp)
{
    if (cp > 0x10ffff || !(gg_unicode_props(cp) & GG_UNICODE_DECOMPOSES))
        return cp;
    if (cp >= 0xac00 && cp <= 0xd7a3) /* syllables begin with 19 consonants */
        return 0x1100 + (cp - 0xac00) / 588;
    return map_char(gg_unicode_base, gg_unicode_n_bases, cp);
}
