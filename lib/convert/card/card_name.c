/* SPDX-License-Identifier: MIT */
/* card_name.c - parts of the name of a repository
 *
 * The parts between dashes are classified as in llama.cpp's converter
 * (gguf-py/gguf/metadata.py, commit 18f4bb5e): versions, types, sizes, words of
 * finetunes. The parts before the first of these are the base name.
 */
#include "config.h"
#include "convert/card/card.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ID = 1000, MAX_PARTS = 128 };
enum {
    IS_BASE = 1,
    IS_SIZE = 2,
    IS_FINETUNE = 4,
    IS_VERSION = 8,
    IS_TYPE = 16
};

struct part {
    char *s; /* text, with room for one more byte */
    unsigned is;
};

/* ---- letters ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static char lower_char(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper_char(char c)
{
    return is_lower(c) ? (char)(c - 'a' + 'A') : c;
}

static bool is_letter(char c)
{
    return is_lower(lower_char(c)) || (unsigned char)c >= 128;
}

static const char *skip_digits(const char *p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* A letter of sizes: thousands to their fourth power. */
static bool is_unit(char c)
{
    return c && strchr("kmbt", lower_char(c));
}

/* Is all of p one of the words of list, which blanks separate? */
static bool is_word(const char *p, const char *list)
{
    for (; *list; list += *list == ' ') {
        size_t i = 0;
        while (p[i] && lower_char(p[i]) == *list)
            i++, list++;
        if (!p[i] && (!*list || *list == ' '))
            return true;
        list += strcspn(list, " ");
    }
    return false;
}

/* ---- kinds of parts ---- */

/* "v0.1", "2407", "iter3" */
static bool is_version(const char *p)
{
    if (lower_char(*p) == 'v')
        p++;
    else if (lower_char(*p) == 'i' && strlen(p) > 4 &&
             lower_char(p[1]) == 't' && lower_char(p[2]) == 'e' &&
             lower_char(p[3]) == 'r')
        p += 4;
    while (is_digit(*p)) {
        p = skip_digits(p);
        if (!*p)
            return true;
        if (*p++ != '.')
            return false;
    }
    return false;
}

/* "Q4_K_M", "bf16" */
static bool is_type(const char *p)
{
    const char *q = p + (lower_char(*p) == 'i');
    if (lower_char(*q) == 'q' && is_digit(q[1])) {
        for (q += 2;
             *q == '_' && (is_digit(q[1]) || is_letter(q[1]) || q[1] == '_');)
            q += 2;
        return !*q;
    }
    p += lower_char(*p) == 'b';
    if (lower_char(*p++) != 'f')
        return false;
    p += lower_char(*p) == 'p';
    return !strcmp(p, "16") || !strcmp(p, "32");
}

/* "7B", "1.5b", "7b1" */
static bool is_count(const char *p)
{
    const char *q = skip_digits(p);
    if (q == p)
        return false;
    if (*q == '.' || *q == '_') {
        p = q + 1;
        q = skip_digits(p);
        if (q == p)
            return false;
    }
    if (!is_unit(*q++))
        return false;
    return !*q || (is_digit(*q) && !q[1]);
}

static bool is_active(const char *p)
{
    return lower_char(*p) == 'a' && is_count(p + 1);
}

static bool is_size(const char *p)
{
    const char *q = skip_digits(p);
    return is_count(p) || is_active(p) ||
           (q > p && lower_char(*q) == 'x' && is_count(q + 1)) ||
           is_word(p, "small mini medium large xl xxl");
}

/* Write a size in its normal form; p has room for one more byte. */
static void normalize_size(char *p)
{
    size_t n = strlen(p);
    for (char *q = p; (q = strchr(q, '_'));)
        *q = '.';
    if (n > 1 && is_digit(p[n - 1])) { /* 7b1 */
        const char unit = p[n - 2], tenth = p[n - 1];
        p[n - 2] = '.';
        p[n - 1] = tenth;
        p[n] = unit;
        p[++n] = 0;
    }
    if (n > 1 && is_digit(p[n - 2]) && is_unit(p[n - 1]))
        p[n - 1] = upper_char(p[n - 1]);
}

/* Number of weights of a size in normal form; -1: not a size. */
static double count_of(const char *p)
{
    static const char units[] = " KMBT";
    const size_t n = strlen(p);
    const char *q = skip_digits(p);
    if (q > p && *q == '.')
        q = skip_digits(q + 1);
    const char *unit = n ? strchr(units, p[n - 1]) : NULL;
    if (q == p || q + 1 != p + n || !unit)
        return -1;
    double x = 0, scale = 1;
    for (bool after = false; p < q; p++) {
        if (*p == '.') {
            after = true;
            continue;
        }
        x = x * 10 + (*p - '0');
        scale *= after ? 10 : 1;
    }
    return x / scale * pow(1000, (double)(unit - units));
}

/* A size that cannot be the model's. */
static bool is_other_size(const struct part *p, const struct part *next,
                          double n_params)
{
    char text[MAX_ID + 8];
    const double n = count_of(p->s), all = fabs(n_params);
    if (n_params == 0 || n < 0)
        return false;
    if (next) {
        memcpy(text, next->s, strlen(next->s) + 1);
        normalize_size(text);
        if (is_active(text) &&
            fabs(count_of(text + 1) - all) <= floor(7 * all / 8))
            return false;
    }
    return n_params < 0 ? n < floor(all / 8)
                        : fabs(n - all) > floor(7 * all / 8);
}

/* ---- a name in parts ---- */

static void annotate_parts(struct part *p, size_t n, double n_params)
{
    for (size_t i = 0; i < n; i++) {
        char *s = p[i].s;
        if (is_version(s)) {
            p[i].is = IS_VERSION;
        } else if (is_type(s)) {
            p[i].is = IS_TYPE;
            for (char *q = s; *q; q++)
                *q = upper_char(*q);
        } else if (i && is_size(s)) {
            normalize_size(s);
            p[i].is = IS_SIZE;
            if (is_other_size(&p[i], i + 1 < n ? &p[i + 1] : NULL, n_params)) {
                p[i].is = IS_FINETUNE;
                s[strlen(s) - 1] = lower_char(s[strlen(s) - 1]);
            }
        } else if (i && is_word(s, "chat instruct vision lora")) {
            p[i].is =
                n_params < 0 && is_word(s, "lora") ? IS_TYPE : IS_FINETUNE;
        }
    }
}

static bool has_digit(const char *s)
{
    return strpbrk(s, "0123456789") != NULL;
}

/* Sizes written in words count only if no size is written in numbers. The base
 * name is everything before the other parts, without a version at its end. */
static void classify_parts(struct part *p, size_t n)
{
    bool numbers = false, at_start = true;
    for (size_t i = 0; i < n; i++)
        numbers |= p[i].is == IS_SIZE && has_digit(p[i].s);
    for (size_t i = 0; i < n; i++)
        if (numbers && p[i].is == IS_SIZE && !has_digit(p[i].s))
            p[i].is = 0;
    for (size_t i = 0; i < n; i++) {
        at_start &=
            (!p[i].is && is_letter(*p[i].s)) || (p[i].is & IS_VERSION) != 0;
        if (at_start)
            p[i].is |= IS_BASE;
        else if (!p[i].is)
            p[i].is = IS_FINETUNE;
    }
    while (n && (p[n - 1].is & IS_BASE) && p[n - 1].is != IS_BASE)
        p[--n].is &= ~(unsigned)IS_BASE;
}

/* Join the parts of a kind with dashes; NULL: no such part. */
static char *join_parts(struct gg_mem_arena *arena, const struct part *p,
                        size_t n, unsigned is, unsigned is_not, bool *good)
{
    char text[2 * MAX_ID + 8];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        for (size_t k = 0; k < i && is == IS_SIZE; k++)
            again |= p[k].is == IS_SIZE && !strcmp(p[k].s, p[i].s);
        if (!(p[i].is & is) || (p[i].is & is_not) || again)
            continue;
        const size_t size = strlen(p[i].s);
        if (at)
            text[at++] = '-';
        memcpy(text + at, p[i].s, size);
        at += size;
    }
    char *out = at ? gg_mem_arena_strndup(arena, text, at) : NULL;
    *good &= out || !at;
    return out;
}

static enum gguf_status cut_name(struct gg_mem_arena *arena, struct gguf_str s,
                                 struct part p[MAX_PARTS], size_t *n,
                                 struct gguf_error *err)
{
    *n = 0;
    while (s.size) {
        const char *dash = memchr(s.data, '-', s.size);
        const size_t k = dash ? (size_t)(dash - s.data) : s.size;
        if (k && *n < MAX_PARTS) {
            char *copy = gg_mem_arena_alloc(arena, k + 2);
            if (!copy)
                return gg_error_set_nomem(err, k + 2);
            memcpy(copy, s.data, k);
            copy[k] = 0;
            p[(*n)++] = (struct part){ copy, 0 };
        }
        s.data += k + (dash != NULL);
        s.size -= k + (dash != NULL);
    }
    return GGUF_OK;
}

enum gguf_status gg_card_read_name(struct gg_card_name *out,
                                   struct gg_mem_arena *arena,
                                   struct gguf_str id, double n_params,
                                   struct gguf_error *err)
{
    struct part p[MAX_PARTS];
    size_t n;
    bool good = true;
    *out = (struct gg_card_name){ .name = NULL };
    if (id.size > MAX_ID)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a name of %zu bytes, limit is %d", id.size,
                            MAX_ID);
    if (!id.size)
        return GGUF_OK;
    const char *slash =
        memchr(id.data, ' ', id.size) ? NULL : memchr(id.data, '/', id.size);
    const bool words = memchr(id.data, ' ', id.size) != NULL;
    if (slash && slash > id.data && *id.data != '.') {
        out->organization =
            gg_mem_arena_strndup(arena, id.data, (size_t)(slash - id.data));
        good &= out->organization != NULL;
    }
    if (slash) {
        id.size -= (size_t)(slash + 1 - id.data);
        id.data = slash + 1;
    }
    out->name = gg_mem_arena_strndup(arena, id.data, id.size);
    good &= out->name != NULL;
    if (!words) {
        GG_TRY(cut_name(arena, id, p, &n, err));
        annotate_parts(p, n, n_params);
        classify_parts(p, n);
        out->basename = join_parts(arena, p, n, IS_BASE, 0, &good);
        out->size_label = join_parts(arena, p, n, IS_SIZE, 0, &good);
        out->finetune = join_parts(arena, p, n, IS_FINETUNE, 0, &good);
        out->version = join_parts(arena, p, n, IS_VERSION, IS_BASE, &good);
        if (!out->size_label && !out->finetune && !out->version)
            out->basename = NULL;
    }
    return good ? GGUF_OK : gg_error_set_nomem(err, id.size);
}

/* Does it keep its letters: "v0.1", "8b"? */
static bool keeps_letters(const char *p, size_t n)
{
    char word[32];
    if (n && is_digit(*p))
        return true;
    if (n < 2 || n >= sizeof word || *p != 'v')
        return false;
    memcpy(word, p, n);
    word[n] = 0;
    return is_version(word);
}

char *gg_card_make_title(struct gg_mem_arena *arena, const char *name)
{
    const size_t size = strlen(name);
    char *out = gg_mem_arena_alloc(arena, size + 1);
    size_t n = 0;
    for (const char *p = name; out && *p;) {
        const size_t k = strcspn(p, "- \t");
        bool large = false, small = false, start = true;
        for (size_t i = 0; i < k; i++) {
            large |= p[i] >= 'A' && p[i] <= 'Z';
            small |= is_lower(p[i]);
        }
        const bool change = small && !large && !keeps_letters(p, k);
        if (k && n)
            out[n++] = ' ';
        for (size_t i = 0; i < k; i++) {
            out[n++] = change && start ? upper_char(p[i]) : p[i];
            start = !is_letter(p[i]);
        }
        p += k + (p[k] != 0);
    }
    if (out)
        out[n] = 0;
    return out;
}

enum gguf_status gg_card_read_source(struct gg_card_source *out,
                                     struct gg_mem_arena *arena,
                                     struct gguf_str id, double n_params,
                                     struct gguf_error *err)
{
    static const char *const hubs[] = { GG_CARD_HUB,
                                        "http://huggingface.co/" };
    static const char *const schemes[] = { "https://", "http://", "ssh://" };
    struct gg_card_name n = { .name = NULL };
    char *url = NULL;
    bool is_url = false;
    *out = (struct gg_card_source){ NULL, NULL, NULL, NULL };
    for (size_t i = 0; i < GG_LEN(schemes); i++)
        is_url |= gg_str_starts(id, schemes[i]);
    if (is_url && !(url = gg_mem_arena_strndup(arena, id.data, id.size)))
        return gg_error_set_nomem(err, id.size);
    for (size_t i = 0; i < GG_LEN(hubs) && is_url; i++) {
        if (!gg_str_starts(id, hubs[i]))
            continue;
        const char *rest = url + strlen(hubs[i]), *slash = strchr(rest, '/');
        if (slash && slash > rest && slash[1] && !strchr(slash + 1, '/'))
            GG_TRY(
                gg_card_read_name(&n, arena, gg_str_z(rest), n_params, err));
    }
    if (!is_url)
        GG_TRY(gg_card_read_name(&n, arena, id, n_params, err));
    if (!is_url && n.organization && n.name) {
        const size_t size = id.size + 32;
        url = gg_mem_arena_alloc(arena, size);
        if (!url)
            return gg_error_set_nomem(err, size);
        snprintf(url, size, "%s%s/%s", GG_CARD_HUB, n.organization, n.name);
    }
    if (n.name && !(n.name = gg_card_make_title(arena, n.name)))
        return gg_error_set_nomem(err, id.size);
    if (n.organization &&
        !(n.organization = gg_card_make_title(arena, n.organization)))
        return gg_error_set_nomem(err, id.size);
    *out = (struct gg_card_source){ n.name, n.version, n.organization, url };
    return GGUF_OK;
}
