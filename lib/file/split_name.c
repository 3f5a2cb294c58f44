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
                                        unsigned count,
                                        struct gguf_error *err)
{
    if (no < 1 || no > count || count > GGUF_SPLIT_MAX_FILES)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "no name for shard %u of %u", no, count);
    int n = snprintf(out, size, "%s-%05u-of-%05u.gguf", prefix, no, count);
    struct gg_esc e;
    if (n < 0 || (size_t)n >= size)
        return gg_fail(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                       "the name of shard %u of '%s' is too long", no,
                       gg_esc(&e, gg_strz(prefix)));
    return GGUF_OK;
}

/* Five digits at p, or 0. */
static unsigned five_digits(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 5; i++) {
        if (p[i] < '0' || p[i] > '9')
            return 0;
        v = 10 * v + (unsigned)(p[i] - '0');
    }
    return v;
}

int gguf_split_name_parse(const char *path, size_t *prefix_size, unsigned *no,
                          unsigned *count)
{
    size_t n = strlen(path);
    if (n < TAIL_SIZE)
        return 0;
    const char *t = path + n - TAIL_SIZE;
    unsigned i = five_digits(t + 1), k = five_digits(t + 10);
    if (t[0] != '-' || memcmp(t + 6, "-of-", 4) ||
        memcmp(t + 15, ".gguf", 5) || i < 1 || i > k ||
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

enum gguf_status gguf_size_parse(const char *text, uint64_t *bytes,
                                 struct gguf_error *err)
{
    /* Integers, since a double rounds from 2^53 on; seven digits of fraction,
     * so that part * factor < 10^7 * 2^40 fits. */
    uint64_t whole = 0, part = 0, scale = 1;
    const char *p = text;
    struct gg_esc e;
    bool digits = false, over = false;
    for (; *p >= '0' && *p <= '9'; p++, digits = true)
        over |= gg_ckd_mul(&whole, whole, 10) ||
                gg_ckd_add(&whole, whole, (uint64_t)(*p - '0'));
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits = true)
            if (scale < 10000000) {
                part = 10 * part + (uint64_t)(*p - '0');
                scale *= 10;
            }
    uint64_t factor = digits ? unit_factor(p) : 0;
    if (!factor)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "'%s' is not a size: a number and k, M, G or T (or Ki, "
                       "Mi, Gi, Ti) are wanted, as in 1.5G",
                       gg_esc(&e, gg_strz(text)));
    over |= gg_ckd_mul(&whole, whole, factor) ||
            gg_ckd_add(&whole, whole, part * factor / scale) ||
            gg_ckd_cap(whole);
    if (over)
        return gg_fail(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                       "size '%s' is too large", gg_esc(&e, gg_strz(text)));
    *bytes = whole;
    return GGUF_OK;
}
