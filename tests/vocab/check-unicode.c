/* SPDX-License-Identifier: MIT */
/* check-unicode.c - lib/vocab/unicode_tab.c agrees with Unicode 16.0.0
 *
 * The tables are made from UnicodeData.txt. Numbers and digests here come from
 * other sources: categories from DerivedGeneralCategory-16.0.0.txt, lower
 * cases and decompositions from String.toLowerCase and String.normalize of a
 * JavaScript engine (ICU 78), for all characters of Unicode 16.
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/tap.h"
#include "vocab/unicode.h"

#include <inttypes.h>
#include <string.h>

/* "Total code points" of each category. */
static const struct {
    char name[3];
    uint32_t n;
} categories[] = {
    { "Cn", 819533 }, { "Lu", 1858 },   { "Ll", 2258 }, { "Lt", 31 },
    { "Lm", 404 },    { "Lo", 136477 }, { "Mn", 2020 }, { "Mc", 468 },
    { "Me", 13 },     { "Nd", 760 },    { "Nl", 236 },  { "No", 915 },
    { "Pc", 10 },     { "Pd", 27 },     { "Ps", 79 },   { "Pe", 77 },
    { "Pi", 12 },     { "Pf", 10 },     { "Po", 640 },  { "Sm", 950 },
    { "Sc", 63 },     { "Sk", 125 },    { "So", 7376 }, { "Zs", 17 },
    { "Zl", 1 },      { "Zp", 1 },      { "Cc", 65 },   { "Cf", 170 },
    { "Cs", 2048 },   { "Co", 137468 },
};

static uint64_t add_line(uint64_t h, const char *line)
{
    for (; *line; line++) /* FNV-1a */
        h = (h ^ (uint8_t)*line) * UINT64_C(0x100000001b3);
    return h;
}

static unsigned category_of(uint32_t cp)
{
    const unsigned c = gg_unicode_category(cp);
    return c == GG_UNICODE_NEXT_LINE ? GG_UNICODE_CC : c;
}

/* Digest of "HEX Xx\n" for each character whose category differs from that of
 * the character before it. */
static void check_categories(void)
{
    uint32_t n[GG_LEN(categories)] = { 0 };
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    char line[32];
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        const unsigned c = category_of(cp);
        n[c]++;
        snprintf(line, sizeof line, "%" PRIx32 " %s\n", cp,
                 categories[c].name);
        if (!cp || c != category_of(cp - 1))
            h = add_line(h, line);
    }
    for (size_t c = 0; c < GG_LEN(categories); c++)
        ok(n[c] == categories[c].n, "%" PRIu32 " characters of %s", n[c],
           categories[c].name);
    ok(h == UINT64_C(0xda02875135ccbaf1), "which those are");
    ok(gg_unicode_category(0x110000) == GG_UNICODE_CN &&
           gg_unicode_category(UINT32_MAX) == GG_UNICODE_CN,
       "nothing above U+10FFFF");
}

/* Digest of "HEX HEX\n" for each character that the map changes. */
static void check_mapping(uint32_t (*map)(uint32_t), uint64_t want,
                          const char *what)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    unsigned n = 0;
    char line[32];
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        const uint32_t to = map(cp);
        if (to == cp)
            continue;
        snprintf(line, sizeof line, "%" PRIx32 " %" PRIx32 "\n", cp, to);
        h = add_line(h, line);
        n++;
    }
    ok(h == want && map(UINT32_MAX) == UINT32_MAX, "%u %s", n, what);
}

/* White space by PropList.txt. */
static void check_spaces(void)
{
    static const uint32_t spaces[][2] = {
        { 9, 13 },          { 0x20, 0x20 },     { 0x85, 0x85 },
        { 0xa0, 0xa0 },     { 0x1680, 0x1680 }, { 0x2000, 0x200a },
        { 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f },
        { 0x3000, 0x3000 },
    };
    bool good = true;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        bool want = false;
        for (size_t i = 0; i < GG_LEN(spaces); i++)
            want |= cp >= spaces[i][0] && cp <= spaces[i][1];
        good = good && gg_unicode_is_space(cp) == want;
    }
    ok(good, "white space");
}

/* Masks of categories by first bytes, and sets of categories by their names. */
static void check_masks(void)
{
    static const struct {
        char letter;
        uint32_t mask;
    } sets[] = {
        { 'L', GG_UNICODE_L }, { 'M', GG_UNICODE_M }, { 'N', GG_UNICODE_N },
        { 'P', GG_UNICODE_P }, { 'S', GG_UNICODE_S }, { 'Z', GG_UNICODE_Z },
        { 'C', GG_UNICODE_C },
    };
    bool good = true;
    for (size_t i = 0; i < GG_LEN(sets); i++)
        for (size_t c = 0; c < GG_LEN(categories); c++)
            good = good && (sets[i].mask >> c & 1) ==
                               (categories[c].name[0] == sets[i].letter);
    ok(good && (GG_UNICODE_C >> GG_UNICODE_NEXT_LINE & 1),
       "sets of categories");
    good = true;
    for (uint32_t cp = 0x80; cp < 0x110000; cp++) {
        const uint32_t first = cp < 0x800     ? 0xc0 | cp >> 6
                               : cp < 0x10000 ? 0xe0 | cp >> 12
                                              : 0xf0 | cp >> 18;
        good = good && gg_unicode_is(cp, gg_unicode_lead[first - 0xc0]);
    }
    ok(good, "categories by first bytes");
}

int main(void)
{
    check_categories();
    check_mapping(gg_unicode_to_lower, UINT64_C(0x077ca1333866ee96),
                  "characters have a lower case");
    check_mapping(gg_unicode_to_base, UINT64_C(0x0e40bb1fbef06983),
                  "characters are decomposed");
    check_spaces();
    check_masks();
    return done_testing();
}
