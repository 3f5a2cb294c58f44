/* SPDX-License-Identifier: MIT */
/* pretok.h - cutting a text into words before byte-pair encoding
 *
 * How is said by tokenizer.ggml.pre: a name for regular expressions that the
 * tokenizer's authors publish. They are data, run by regex.h: one row per
 * tokenizer in pretok_row.c.
 */
#ifndef GG_VOCAB_PRETOK_H
#define GG_VOCAB_PRETOK_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_pretok;
struct gg_pretok_row;

/* The expressions of this name, compiled. GGUF_E_NOMEM, GGUF_E_UNSUPPORTED
 * (name). */
enum gguf_status gg_pretok_create(struct gg_pretok **out, struct gguf_str name,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* Compile the expressions of the caller's row, which is kept. budget limits the
 * backtracking on each text (regex.h), for expressions of strangers:
 * gg_pretok_split returns GGUF_E_LIMIT when it is spent. GGUF_E_UNSUPPORTED: an
 * expression has syntax that regex.h lacks. */
enum gguf_status gg_pretok_create_row(struct gg_pretok **out,
                                      const struct gg_pretok_row *row,
                                      uint64_t budget,
                                      const struct gguf_allocator *allocator,
                                      struct gguf_error *err);
/* NULL is fine. */
void gg_pretok_destroy(struct gg_pretok *p);

/* Its row, with what the name says besides. */
const struct gg_pretok_row *gg_pretok_get_row(const struct gg_pretok *p);

/* Is it a name that some program reads? All of gg_pretok_create's are. */
bool gg_pretok_is_known(struct gguf_str name);
/* Of all that are known the two that look most like name, the better one
 * first. */
struct gg_pretok_suggestions {
    struct gguf_str name[2];
};
void gg_pretok_suggest(struct gg_pretok_suggestions *out,
                       struct gguf_str name);

/* A word, size bytes, not 0, from byte off of the text on. */
typedef enum gguf_status gg_pretok_word_fn(void *user, size_t off, size_t size,
                                           struct gguf_error *err);

/* Cut size bytes of UTF-8 into words, which follow each other without a gap;
 * what word returns other than GGUF_OK ends it. Surrogates may occur. Any
 * thread. Memory does not depend on the text.
 * GGUF_E_NOMEM, GGUF_E_LIMIT (the expressions give up on the text). */
enum gguf_status gg_pretok_split(const struct gg_pretok *p, const char *text,
                                 size_t size, gg_pretok_word_fn *word,
                                 void *user, struct gguf_error *err);

#endif
