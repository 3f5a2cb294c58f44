/* SPDX-License-Identifier: MIT */
/* utf8.h - decode texts that may not be valid UTF-8, as tokenizers do
 *
 * Overlong forms and surrogates pass. Any other misplaced byte is a U+FFFD of
 * its own. (As in llama.cpp of August 2026, for the same ids.) */
#ifndef GG_VOCAB_UTF8_H
#define GG_VOCAB_UTF8_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

/* Highest code point of Unicode, and highest one that 4 bytes can have. */
enum { GG_VOCAB_UTF8_MOST = 0x10ffff, GG_VOCAB_UTF8_ANY = 0x1fffff };

/* Decode the code point at p[0..n), n > 0. Returns its bytes. A code point
 * above most is misplaced. */
size_t gg_vocab_utf8_decode(const char *p, size_t n, uint32_t most,
                            uint32_t *cp);

/* Encode cp, which may be a surrogate, up to GG_VOCAB_UTF8_ANY, in 1 to 4
 * bytes. Returns their number. */
size_t gg_vocab_utf8_encode(uint32_t cp, char out[4]);

/* Bytes of a character by its first byte alone; a byte that cannot be first
 * stands alone. */
static inline size_t gg_vocab_utf8_size(uint8_t b)
{
    return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

/* Make text valid UTF-8, except for surrogates. Returns text itself if it is
 * valid, else an owned copy (gg_vocab_utf8_free()), of *n bytes. NULL: no
 * memory. */
char *gg_vocab_utf8_make_valid(const struct gguf_allocator *a,
                               const char *text, size_t size, uint32_t most,
                               size_t *n);
void gg_vocab_utf8_free(const struct gguf_allocator *a, const char *text,
                        char *clean);

#endif
