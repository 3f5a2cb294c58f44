/* SPDX-License-Identifier: MIT */
/* charsmap.h - SentencePiece's table for rewriting a text
 *
 * tokenizer.ggml.precompiled_charsmap has: the size of a trie in bytes, as a
 * little-endian 32-bit integer; the trie; texts that each end in a zero byte.
 * The trie is a double array of 32-bit units (darts-clone). Bits 0 to 7 and 31
 * are the byte that leads to a unit, bit 8 says that a key ends here, and bits
 * 10 to 30, shifted left by 8 if bit 9 is set, lead to its children. The child
 * of a zero byte has the offset of the text in bits 0 to 30. (Normalizer of
 * SentencePiece 0.2.) */
#ifndef GG_VOCAB_CHARSMAP_H
#define GG_VOCAB_CHARSMAP_H

#include "gguf/file.h"

struct gg_vocab_charsmap {
    const uint8_t *unit; /* n units, in the file's mapping; NULL: no table */
    uint32_t n;
    const char *text;
    size_t text_size;
};

/* Longest key and text. Longer keys do not match, so that a trie that leads
 * back into itself costs no more. */
enum { GG_VOCAB_CHARSMAP_MOST = 256 };

/* Use n bytes as a table, which must outlive it; off is their byte in the
 * file. n = 0: no table. GGUF_E_VOCAB: a unit or a text is out of range. */
enum gguf_status gg_vocab_charsmap_init(struct gg_vocab_charsmap *m,
                                        const void *data, uint64_t n,
                                        uint64_t off, struct gguf_error *err);
/* Load and check the table of a file. Without the key: no table. GGUF_E_TYPE,
 * GGUF_E_VOCAB. */
enum gguf_status gg_vocab_charsmap_load(struct gg_vocab_charsmap *m,
                                        const struct gguf_file *file,
                                        struct gguf_error *err);

/* Find the longest key with which size bytes begin. Returns its size, 0 if
 * none matches, and the text that replaces it. */
size_t gg_vocab_charsmap_find(const struct gg_vocab_charsmap *m, const char *p,
                              size_t size, struct gguf_str *text);

#endif
