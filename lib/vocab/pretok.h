/* SPDX-License-Identifier: MIT */
/* pretok.h - cut a text into words before byte-pair encoding
 *
 * tokenizer.ggml.pre names the regular expressions that do it, as the
 * tokenizer's authors publish them. They are data in pretok_row.c, one row for
 * each tokenizer, and are run by regex.h. */
#ifndef GG_VOCAB_PRETOK_H
#define GG_VOCAB_PRETOK_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_pretok;
struct gg_pretok_row;

/* Compile the expressions of a name. GGUF_E_NOMEM. GGUF_E_UNSUPPORTED: the
 * name is unknown. */
enum gguf_status gg_pretok_create(struct gg_pretok **out, struct gguf_str name,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* Compile the expressions of a caller's row, which must outlive the result.
 * For expressions from strangers, budget limits the backtracking for each text
 * (regex.h): gg_pretok_split() returns GGUF_E_LIMIT when it is spent.
 * GGUF_E_UNSUPPORTED: an expression has syntax that regex.h lacks. */
enum gguf_status gg_pretok_create_row(struct gg_pretok **out,
                                      const struct gg_pretok_row *row,
                                      uint64_t budget,
                                      const struct gguf_allocator *allocator,
                                      struct gguf_error *err);
/* NULL is allowed. */
void gg_pretok_destroy(struct gg_pretok *p);

/* Its row, with switches that the name sets. */
const struct gg_pretok_row *gg_pretok_get_row(const struct gg_pretok *p);

/* Does some program read this name? True for all names of gg_pretok_create().
 */
bool gg_pretok_is_known(struct gguf_str name);
/* The two known names that are most like a name, the better one first. */
struct gg_pretok_suggestions {
    struct gguf_str name[2];
};
void gg_pretok_suggest(struct gg_pretok_suggestions *out,
                       struct gguf_str name);

/* Called with a word: size bytes, size > 0, from byte off of the text. */
typedef enum gguf_status gg_pretok_word_fn(void *user, size_t off, size_t size,
                                           struct gguf_error *err);

/* Cut size bytes of UTF-8, which may have surrogates, into adjacent words. If
 * word fails, the call ends with its status. Any thread. The memory does not
 * depend on the text. GGUF_E_NOMEM. GGUF_E_LIMIT: the expressions give up on
 * the text. */
enum gguf_status gg_pretok_split(const struct gg_pretok *p, const char *text,
                                 size_t size, gg_pretok_word_fn *word,
                                 void *user, struct gguf_error *err);

#endif
