/* SPDX-License-Identifier: MIT */
/* utf8.c - decode texts that may not be valid UTF-8, as tokenizers do */
#include "config.h"
#include "vocab/utf8.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

size_t gg_vocab_utf8_decode(const char *p, size_t n, uint32_t most,
                            uint32_t *cp)
{
    uint8_t b = (uint8_t)p[0];
    if (b < 0x80) {
        *cp = b;
        return 1;
    }
    size_t k = b < 0xc0 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0;
    *cp = b & (0x7fu >> k);
    for (size_t i = 1; i < k; i++) {
        if (i >= n || ((uint8_t)p[i] & 0xc0) != 0x80) {
            k = 0;
            break;
        }
        *cp = *cp << 6 | ((uint8_t)p[i] & 0x3f);
    }
    if (k && *cp <= most)
        return k;
    *cp = 0xfffd;
    return 1;
}

size_t gg_vocab_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x800 || (cp >= 0xe000 && cp <= GG_VOCAB_UTF8_MOST))
        return gg_str_utf8_encode(cp, out);
    /* surrogates, and code points above the limit */
    size_t n = cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((n == 3 ? 0xe0 : 0xf0) | cp);
    return n;
}

char *gg_vocab_utf8_make_valid(const struct gguf_allocator *a,
                               const char *text, size_t size, uint32_t most,
                               size_t *n)
{
    *n = size;
    if (gg_str_utf8_valid(text, size))
        return (char *)(uintptr_t)text;
    char *out = size <= SIZE_MAX / 3 ? gg_mem_alloc(a, 3 * size) : NULL;
    if (!out)
        return NULL;
    *n = 0;
    for (size_t i = 0; i < size;) {
        uint32_t cp;
        char c[4];
        i += gg_vocab_utf8_decode(text + i, size - i, most, &cp);
        size_t k = gg_vocab_utf8_encode(cp, c);
        memcpy(out + *n, c, k);
        *n += k;
    }
    return out;
}

void gg_vocab_utf8_free(const struct gguf_allocator *a, const char *text,
                        char *clean)
{
    if (clean != text)
        gg_mem_free(a, clean);
}
