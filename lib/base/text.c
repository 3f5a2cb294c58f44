/* SPDX-License-Identifier: MIT */
/* text.c - escape and decode text, and parse sizes, for programs */
#include "config.h"
#include "gguf/text.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/str.h"

#include <string.h>

size_t gguf_text_escape(char *out, size_t size, struct gguf_str s)
{
    return gg_str_escape(out, size, s.data, s.size);
}

size_t gguf_text_decode_utf8(const char *p, size_t n, uint32_t *cp)
{
    uint32_t v;
    return gg_str_utf8_decode(p, n, cp ? cp : &v);
}

/* Factor of a unit: 1000^i or 1024^i for letter i of "bkmgt"; 0 if text is not
 * a unit. */
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

/* Multiply the decimal fraction digits[0..n) by factor, and drop the fraction
 * of the result. Each step, from the last digit on, drops less than one, so the
 * result is exact. */
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
    /* Integers, because a double rounds from 2^53 on. */
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
            "'%s' is not a size: expected a number with k, M, G or T (or "
            "Ki, Mi, Gi, Ti), as in 1.5G",
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
