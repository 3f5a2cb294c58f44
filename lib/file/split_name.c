/* SPDX-License-Identifier: MIT */
/* split_name.c - names of shards, and sizes as people write them */
#include "config.h"
#include "gguf/split.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { TAIL_SIZE = sizeof "-00001-of-00001.gguf" - 1 };

enum gguf_status gguf_split_name_format(char *out, size_t size,
                                        const char *prefix, unsigned no,
                                        unsigned count, struct gguf_error *err)
{
    if (no < 1 || no > count || count > GGUF_SPLIT_MAX_FILES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "no name for shard %u of %u", no, count);
    int n = snprintf(out, size, "%s-%05u-of-%05u.gguf", prefix, no, count);
    struct gg_str_esc e;
    if (n < 0 || (size_t)n >= size)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the name of shard %u of '%s' is too long", no,
                            gg_str_esc(&e, gg_str_z(prefix)));
    return GGUF_OK;
}

/* Five digits at p, or 0. */
static unsigned five_digits(const char *p)
{
    struct gguf_str s = { p, 5 };
    uint64_t v;
    return gg_str_uint(&s, 99999, &v) && !s.size ? (unsigned)v : 0;
}

int gguf_split_name_parse(const char *path, size_t *prefix_size, unsigned *no,
                          unsigned *count)
{
    size_t n = strlen(path);
    if (n < TAIL_SIZE)
        return 0;
    const char *t = path + n - TAIL_SIZE;
    unsigned i = five_digits(t + 1), k = five_digits(t + 10);
    if (t[0] != '-' || memcmp(t + 6, "-of-", 4) != 0 ||
        memcmp(t + 15, ".gguf", 5) != 0 || i < 1 || i > k ||
        k > GGUF_SPLIT_MAX_FILES)
        return 0;
    if (prefix_size)
        *prefix_size = n - TAIL_SIZE;
    if (no)
        *no = i;
    if (count)
        *count = k;
    return 1;
}

/* 1000^i, 1024^i for unit letter i of "bkmgt"; 0 if text is no unit. */
static uint64_t unit_factor(const char *text)
{
    static const char letters[] = "bkmgt";
    char c = *text >= 'A' && *text <= 'Z' ? (char)(*text + 32) : *text;
    if (!c)
        return 1;
    const char *at = strchr(letters, c);
    if (!at)
        return 0;
    uint64_t base = 1000, factor = 1;
    text++;
    if (at > letters) {
        if (*text == 'i' || *text == 'I') {
            base = 1024;
            text++;
        }
        if (*text == 'b' || *text == 'B')
            text++;
    }
    for (; at > letters; at--)
        factor *= base;
    return *text ? 0 : factor;
}

/* Whole bytes of the decimal fraction digits[0..n) of factor. From the last
 * digit on, what is dropped in each step is less than one: the sum is exact. */
static uint64_t fraction_of(const char *digits, size_t n, uint64_t factor)
{
    uint64_t part = 0; /* below factor, which is at most 2^40 */
    while (n > 0)
        part = ((uint64_t)(digits[--n] - '0') * factor + part) / 10;
    return part;
}

enum gguf_status gguf_size_parse(const char *text, uint64_t *bytes,
                                 struct gguf_error *err)
{
    /* Integers, since a double rounds from 2^53 on. */
    static const char ten[] = "0123456789";
    uint64_t whole = 0;
    size_t n_whole = strspn(text, ten), n = 0;
    const char *p = text + n_whole, *fraction = p;
    struct gg_str_esc e;
    bool over = false;
    for (const char *d = text; d < p; d++)
        over |= gg_ckd_mul(&whole, whole, 10) ||
                gg_ckd_add(&whole, whole, (uint64_t)(*d - '0'));
    if (*p == '.') {
        fraction = p + 1;
        n = strspn(fraction, ten);
        p = fraction + n;
    }
    uint64_t factor = n_whole + n ? unit_factor(p) : 0;
    if (!factor)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "'%s' is not a size: a number and k, M, G or T (or Ki, "
            "Mi, Gi, Ti) are wanted, as in 1.5G",
            gg_str_esc(&e, gg_str_z(text)));
    over |= gg_ckd_mul(&whole, whole, factor) ||
            gg_ckd_add(&whole, whole, fraction_of(fraction, n, factor)) ||
            gg_ckd_exceeds_cap(whole);
    if (over)
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "size '%s' is too large",
                            gg_str_esc(&e, gg_str_z(text)));
    *bytes = whole;
    return GGUF_OK;
}
