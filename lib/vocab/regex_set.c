/* SPDX-License-Identifier: MIT */
/* regex_set.c - classes of characters of an expression */
#include "config.h"
#include "vocab/regex_set.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t categories;
} classes[] = {
    { "L", GG_UNICODE_L },
    { "M", GG_UNICODE_M },
    { "N", GG_UNICODE_N },
    { "P", GG_UNICODE_P },
    { "S", GG_UNICODE_S },
    { "Z", GG_UNICODE_Z },
    { "C", GG_UNICODE_C },
    { "Cn", GG_UNICODE_BIT(CN) },
    { "Lu", GG_UNICODE_BIT(LU) },
    { "Ll", GG_UNICODE_BIT(LL) },
    { "Lt", GG_UNICODE_BIT(LT) },
    { "Lm", GG_UNICODE_BIT(LM) },
    { "Lo", GG_UNICODE_BIT(LO) },
    { "Mn", GG_UNICODE_BIT(MN) },
    { "Mc", GG_UNICODE_BIT(MC) },
    { "Me", GG_UNICODE_BIT(ME) },
    { "Nd", GG_UNICODE_BIT(ND) },
    { "Nl", GG_UNICODE_BIT(NL) },
    { "No", GG_UNICODE_BIT(NO) },
    { "Pc", GG_UNICODE_BIT(PC) },
    { "Pd", GG_UNICODE_BIT(PD) },
    { "Ps", GG_UNICODE_BIT(PS) },
    { "Pe", GG_UNICODE_BIT(PE) },
    { "Pi", GG_UNICODE_BIT(PI) },
    { "Pf", GG_UNICODE_BIT(PF) },
    { "Po", GG_UNICODE_BIT(PO) },
    { "Sm", GG_UNICODE_BIT(SM) },
    { "Sc", GG_UNICODE_BIT(SC) },
    { "Sk", GG_UNICODE_BIT(SK) },
    { "So", GG_UNICODE_BIT(SO) },
    { "Zs", GG_UNICODE_BIT(ZS) },
    { "Zl", GG_UNICODE_BIT(ZL) },
    { "Zp", GG_UNICODE_BIT(ZP) },
    { "Cf", GG_UNICODE_BIT(CF) },
    { "Cs", GG_UNICODE_BIT(CS) },
    { "Co", GG_UNICODE_BIT(CO) },
    { "Cc", GG_UNICODE_BIT(CC) | GG_UNICODE_BIT(NEXT_LINE) },
};

/* Circled letters and their kin, which are symbols and yet word characters
 * (Other_Alphabetic). */
static const uint32_t word_symbols[] = { 0x24b6,  0x24e9,  0x1f130, 0x1f149,
                                         0x1f150, 0x1f169, 0x1f170, 0x1f189 };

void gg_regex_set_add_categories(struct gg_regex_set *s, uint32_t categories)
{
    s->categories |= categories;
    for (uint32_t cp = 0; cp < 128; cp++)
        if (gg_unicode_is(cp, categories))
            s->ascii[cp >> 6] |= UINT64_C(1) << (cp & 63);
}

bool gg_regex_set_add_range(struct gg_regex_set *s, struct gg_mem_arena *arena,
                            uint32_t first, uint32_t last)
{
    for (; first <= last && first < 128; first++)
        s->ascii[first >> 6] |= UINT64_C(1) << (first & 63);
    if (first > last)
        return true;
    if (!(s->n_ranges & (s->n_ranges + 1))) { /* there is room for 2^k - 1 */
        uint32_t *grown = gg_mem_arena_alloc(
            arena, (2 * (size_t)s->n_ranges + 1) * 2 * sizeof *grown);
        if (!grown)
            return false;
        if (s->n_ranges)
            memcpy(grown, s->range, 2 * s->n_ranges * sizeof *grown);
        s->range = grown;
    }
    s->range[2 * s->n_ranges] = first;
    s->range[2 * s->n_ranges + 1] = last;
    s->n_ranges++;
    return true;
}

static bool add_ranges(struct gg_regex_set *s, struct gg_mem_arena *arena,
                       const uint32_t *range, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!gg_regex_set_add_range(s, arena, range[2 * i], range[2 * i + 1]))
            return false;
    return true;
}

bool gg_regex_set_add_spaces(struct gg_regex_set *s,
                             struct gg_mem_arena *arena)
{
    gg_regex_set_add_categories(s, GG_UNICODE_SPACE);
    return gg_regex_set_add_range(s, arena, '\t', '\r');
}

bool gg_regex_set_add_words(struct gg_regex_set *s, struct gg_mem_arena *arena)
{
    gg_regex_set_add_categories(
        s, GG_UNICODE_L | GG_UNICODE_M | GG_UNICODE_BIT(ND) |
               GG_UNICODE_BIT(NL) | GG_UNICODE_BIT(PC));
    return add_ranges(s, arena, word_symbols, GG_LEN(word_symbols) / 2);
}

enum gg_regex_named gg_regex_set_add_named(struct gg_regex_set *s,
                                           struct gg_mem_arena *arena,
                                           struct gguf_str name)
{
    if (gg_str_eqz(name, "Han"))
        return add_ranges(s, arena, gg_unicode_han, gg_unicode_n_hans)
                   ? GG_REGEX_ADDED
                   : GG_REGEX_NO_MEMORY;
    for (size_t i = 0; i < GG_LEN(classes); i++)
        if (gg_str_eqz(name, classes[i].name)) {
            gg_regex_set_add_categories(s, classes[i].categories);
            return GG_REGEX_ADDED;
        }
    return GG_REGEX_NO_CLASS;
}

static int by_first(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Sort the ranges and join those that touch. */
static void sort_ranges(struct gg_regex_set *s)
{
    uint32_t n = 0, *r = s->range;
    if (!s->n_ranges)
        return;
    qsort(r, s->n_ranges, 2 * sizeof *r, by_first);
    for (uint32_t i = 1; i < s->n_ranges; i++)
        if (r[2 * i] <= r[2 * n + 1] + 1) {
            r[2 * n + 1] = GG_MAX(r[2 * n + 1], r[2 * i + 1]);
        } else {
            n++;
            r[2 * n] = r[2 * i];
            r[2 * n + 1] = r[2 * i + 1];
        }
    s->n_ranges = n + 1;
}

void gg_regex_set_invert(struct gg_regex_set *s)
{
    s->ascii[0] = ~s->ascii[0];
    s->ascii[1] = ~s->ascii[1];
    if (s->n_ranges)
        s->others = !s->others;
    else
        s->categories = ~s->categories;
}

bool gg_regex_set_add_set(struct gg_regex_set *s, struct gg_mem_arena *arena,
                          const struct gg_regex_set *from)
{
    s->ascii[0] |= from->ascii[0];
    s->ascii[1] |= from->ascii[1];
    s->categories |= from->categories;
    return add_ranges(s, arena, from->range, from->n_ranges);
}

static bool sets_equal(const struct gg_regex_set *a,
                       const struct gg_regex_set *b)
{
    return a->ascii[0] == b->ascii[0] && a->ascii[1] == b->ascii[1] &&
           a->categories == b->categories && a->others == b->others &&
           a->n_ranges == b->n_ranges &&
           (!a->n_ranges ||
            !memcmp(a->range, b->range, 2 * a->n_ranges * sizeof *a->range));
}

static uint32_t all_categories(const struct gg_regex_set *s)
{
    uint32_t all = s->categories;
    if (s->others)
        return ~UINT32_C(0);
    for (uint32_t i = 0; i < s->n_ranges; i++)
        for (uint32_t cp = s->range[2 * i]; cp <= s->range[2 * i + 1]; cp++) {
            const bool again =
                cp % 256 == 0 && cp > s->range[2 * i] + 256 &&
                gg_unicode_index[cp >> 8] == gg_unicode_index[(cp >> 8) - 1];
            if (again) /* same categories as the block before */
                cp += 255;
            else
                all |= UINT32_C(1) << gg_unicode_category(cp);
        }
    return all;
}

static uint64_t all_leads(const struct gg_regex_set *s)
{
    uint64_t leads = 0;
    for (uint32_t b = 0; b < 0x35; b++) {
        const uint32_t first = b < 0x20   ? b << 6
                               : b < 0x30 ? (b & 0xf) << 12
                                          : (b & 7) << 18;
        const uint32_t last = first + (b < 0x20   ? 0x3f
                                       : b < 0x30 ? 0xfff
                                                  : 0x3ffff);
        bool any = s->others || (s->categories & gg_unicode_lead[b]);
        for (uint32_t i = 0; i < s->n_ranges && !any; i++)
            any = s->range[2 * i] <= last && s->range[2 * i + 1] >= first;
        leads |= (uint64_t)any << b;
    }
    return leads;
}

bool gg_regex_set_number(struct gg_regex *re, struct gg_regex_set *s,
                         uint8_t *number)
{
    uint32_t k = 0;
    sort_ranges(s);
    while (k < re->n_sets && !sets_equal(&re->set[k], s))
        k++;
    if (k == GG_REGEX_MAX_SETS)
        return false;
    if (k == re->n_sets) {
        re->set[re->n_sets++] = *s;
        re->set[k].all_categories = all_categories(s);
        re->set[k].leads = all_leads(s);
    }
    *number = (uint8_t)k;
    return true;
}

bool gg_regex_set_in_high_range(const struct gg_regex_set *s, uint32_t cp)
{
    for (uint32_t i = s->n_ranges; i-- > 0 && s->range[2 * i + 1] >= cp;)
        if (s->range[2 * i] <= cp)
            return true;
    return false;
}

static bool map_ranges(struct gg_regex_set *s, struct gg_mem_arena *arena)
{
    if (!s->n_ranges)
        return true;
    s->low = gg_mem_arena_alloc(arena, 1024 * sizeof *s->low);
    if (!s->low)
        return false;
    memset(s->low, 0, 1024 * sizeof *s->low);
    for (uint32_t i = 0; i < s->n_ranges; i++)
        for (uint32_t cp = s->range[2 * i];
             cp <= s->range[2 * i + 1] && cp < 0x10000; cp++)
            if (cp % 64 == 0 && s->range[2 * i + 1] - cp >= 63) {
                s->low[cp / 64] = ~UINT64_C(0);
                cp += 63;
            } else {
                s->low[cp / 64] |= UINT64_C(1) << cp % 64;
            }
    return true;
}

bool gg_regex_set_map(struct gg_regex *re)
{
    for (uint32_t k = 0; k < re->n_sets; k++)
        if (!map_ranges(&re->set[k], &re->arena))
            return false;
    return true;
}
