/* SPDX-License-Identifier: MIT */
/* utf8.h - texts that may not be well-formed UTF-8, as tokenizers read them
 *
 * Overlong forms and surrogates pass; any other byte that is out of place is
 * U+FFFD by itself. (What llama.cpp of August 2026 does, and so what the ids
 * that people compare come from.)
 */
#ifndef GG_VOCAB_UTF8_H
#define GG_VOCAB_UTF8_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

/* The highest code point there is, and the highest that 4 bytes can write. */
enum { GG_VOCAB_UTF8_MOST = 0x10ffff, GG_VOCAB_UTF8_ANY = 0x1fffff };

/* The code point at p[0..n), n > 0, and how many bytes it takes; one above most
 * is out of place. */
size_t gg_vocab_utf8_decode(const char *p, size_t n, uint32_t most,
                            uint32_t *cp);

/* 1 to 4 bytes; surrogates too, cp <= GG_VOCAB_UTF8_ANY. */
size_t gg_vocab_utf8_encode(uint32_t cp, char out[4]);

/* Bytes of a character by its first byte, whatever follows; one that cannot
 * be first stands alone. */
static inline size_t gg_vocab_utf8_size(uint8_t b)
{
    return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

/* text in UTF-8 that is well-formed but for surrogates: text itself if it is,
 * else owned (gg_vocab_utf8_free). *n bytes. NULL: no memory. */
char *gg_vocab_utf8_make_valid(const struct gguf_allocator *a,
                               const char *text, size_t size, uint32_t most,
                               size_t *n);
void gg_vocab_utf8_free(const struct gguf_allocator *a, const char *text,
                        char *clean);

#endif
