/* SPDX-License-Identifier: MIT */
/* charsmap.h - SentencePiece's table for rewriting a text
 *
 * tokenizer.ggml.precompiled_charsmap: the size of a trie in bytes, as a
 * little-endian 32-bit integer, the trie, and texts that end in a zero byte
 * each. The trie is a double array of 32-bit units (darts-clone): bits 0 to 7
 * and 31 are the byte that leads to a unit, bit 8 says that a key ends here,
 * bits 10 to 30 shifted left by 8 if bit 9 is set lead to its children; the
 * child of a zero byte has the text's offset in bits 0 to 30. (Normalizer of
 * SentencePiece 0.2.)
 */
#ifndef GG_VOCAB_CHARSMAP_H
#define GG_VOCAB_CHARSMAP_H

#include "gguf/file.h"

struct gg_vocab_charsmap {
    const uint8_t *unit; /* n of them, in the file's mapping; NULL: no table */
    uint32_t n;
    const char *text;
    size_t text_size;
};

/* Keys are compared up to this many bytes, so that a trie that leads back into
 * itself costs no more; texts are at most as long. */
enum { GG_VOCAB_CHARSMAP_MOST = 256 };

/* Of n bytes, kept, which stand at byte off of their file; n = 0: no table.
 * GGUF_E_VOCAB (cut off, a unit or a text out of range). */
enum gguf_status gg_vocab_charsmap_init(struct gg_vocab_charsmap *m,
                                        const void *data, uint64_t n,
                                        uint64_t off, struct gguf_error *err);
/* Of the key, which is checked; none: no table. GGUF_E_TYPE, and those. */
enum gguf_status gg_vocab_charsmap_load(struct gg_vocab_charsmap *m,
                                        const struct gguf_file *file,
                                        struct gguf_error *err);

/* The text for the longest key that size bytes begin with, and the size of that
 * key; 0: none. */
size_t gg_vocab_charsmap_find(const struct gg_vocab_charsmap *m, const char *p,
                              size_t size, struct gguf_str *text);

#endif
