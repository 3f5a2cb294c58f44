/* SPDX-License-Identifier: MIT */
/* tensors.c - a .safetensors file from a list of tensors */
#include "config.h"
#include "tests/fuzz/tensors.h"
#include "base/compiler.h"
#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DATA = 1 << 20, FILLER = 0x3c, MOST_TEXTS = 16 };

/* Bytes of a tensor. */
struct text {
    const char *p;
    size_t n;
    uint64_t at; /* first byte in the data */
};

struct header {
    char *p;
    size_t n, cap, n_texts;
    struct text text[MOST_TEXTS];
};

GGUF_PRINTF(2, 3)
static void append_text(struct header *h, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    const int k = vsnprintf(h->p + h->n, h->cap - h->n, form, args);
    va_end(args);
    MUST(k >= 0 && (size_t)k < h->cap - h->n);
    h->n += (size_t)k;
}

/* Take the next word of a line. Returns the number of its bytes. */
static size_t take_word(const char **p, const char *end, const char **word)
{
    while (*p < end && **p == ' ')
        ++*p;
    *word = *p;
    while (*p < end && **p != ' ')
        ++*p;
    return (size_t)(*p - *word);
}

static unsigned size_of(const char *type, size_t n)
{
    static const struct {
        const char *name;
        unsigned size;
    } types[] = { { "F64", 8 },  { "I64", 8 }, { "F32", 4 }, { "I32", 4 },
                  { "BF16", 2 }, { "F16", 2 }, { "I16", 2 } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == n && !memcmp(types[i].name, type, n))
            return types[i].size;
    return 1;
}

/* Append the dimensions of a line. Returns the number of bytes, at most 2^62.
 */
static uint64_t append_shape(struct header *h, const char *p, const char *end,
                             uint64_t size)
{
    const char *word;
    size_t n;
    for (bool first = true; (n = take_word(&p, end, &word)); first = false) {
        uint64_t ne = 0;
        append_text(h, "%s%.*s", first ? "" : ",", (int)n, word);
        for (size_t i = 0; i < n && word[i] >= '0' && word[i] <= '9'; i++)
            ne = ne >> 58 ? ne : 10 * ne + (uint64_t)(word[i] - '0');
        size = ne && size > (UINT64_C(1) << 62) / ne ? UINT64_C(1) << 62
                                                     : size * ne;
    }
    return size;
}

static uint64_t append_line(struct header *h, const char *p, const char *end,
                            uint64_t at)
{
    const char *name, *type;
    const size_t n = take_word(&p, end, &name);
    const size_t k = take_word(&p, end, &type);
    append_text(h, "%s\"%.*s\":{", h->n > 9 ? "," : "", (int)n, name);
    if (n == 12 && !memcmp(name, "__metadata__", n)) {
        const char *text = p + (p < end);
        append_text(h, "\"%.*s\":\"%.*s\"}", (int)k, type, (int)(end - text),
                    text);
        return 0;
    }
    if (k == 4 && !memcmp(type, "TEXT", k) && h->n_texts < MOST_TEXTS) {
        const char *text = p + (p < end);
        const size_t n_text = (size_t)(end - text);
        h->text[h->n_texts++] = (struct text){ text, n_text, at };
        append_text(h,
                    "\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":["
                    "%llu,%llu]}",
                    n_text, (unsigned long long)at,
                    (unsigned long long)(at + n_text));
        return n_text;
    }
    append_text(h, "\"dtype\":\"%.*s\",\"shape\":[", (int)k, type);
    const uint64_t size = append_shape(h, p, end, size_of(type, k));
    append_text(h, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                (unsigned long long)(at + size));
    return size;
}

uint8_t *tensors_make(const uint8_t *text, size_t n, size_t *size)
{
    struct header h = { .cap = 200 * n + 100 };
    const char *p = (const char *)text, *end = p + n;
    uint64_t at = 0;
    h.p = malloc(h.cap + MOST_DATA);
    MUST(h.p);
    h.n = 8;
    append_text(&h, "{");
    while (p < end && at <= MOST_DATA) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        line = line ? line : end;
        if (line > p)
            at += append_line(&h, p, line, at);
        p = line + (line < end);
    }
    append_text(&h, "}");
    for (size_t i = 0; i < 8; i++)
        h.p[i] = (char)((uint64_t)(h.n - 8) >> 8 * i);
    const size_t n_data = (size_t)GG_MIN(at, MOST_DATA);
    memset(h.p + h.n, FILLER, n_data);
    for (size_t i = 0; i < h.n_texts; i++)
        if (h.text[i].at + h.text[i].n <= n_data)
            memcpy(h.p + h.n + h.text[i].at, h.text[i].p, h.text[i].n);
    *size = h.n + n_data;
    return (uint8_t *)h.p;
}
