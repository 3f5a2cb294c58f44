/* pretok.h - cutting a text into words before byte-pair encoding
 *
 * How is said by tokenizer.ggml.pre: a name for regular expressions that the
 * tokenizer's authors publish. They are data, run by PCRE2: one row per
 * tokenizer in pretok.c.
 */
#ifndef GG_VOCAB_PRETOK_H
#define GG_VOCAB_PRETOK_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_pretok;

/* The expressions of this name, compiled. GGUF_E_NOMEM, GGUF_E_UNSUPPORTED
 * (name). */
enum gguf_status gg_pretok_create(struct gg_pretok **out, struct gguf_str name,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* NULL is fine. */
void gg_pretok_destroy(struct gg_pretok *p);

/* Is a word that is a token as a whole that token, whatever the merges? */
bool gg_pretok_ignore_merges(const struct gg_pretok *p);
/* Does a BOS go in front, unless the file says? */
bool gg_pretok_add_bos(const struct gg_pretok *p);

/* The names of the n-th kind, with blanks between them; NULL after the last. */
const char *gg_pretok_names(size_t n);

/* Is it a name that some program reads? All of gg_pretok_create's are. */
bool gg_pretok_known(struct gguf_str name);
/* Of all that are known the two that look most like name, the better one
 * first. */
struct gg_pretok_near {
    struct gguf_str name[2];
};
void gg_pretok_nearest(struct gg_pretok_near *out, struct gguf_str name);

/* Cut size bytes of UTF-8 into words: *end is an owned array of *n offsets
 * where each word ends, the last of which is size. Surrogates may occur. Any
 * thread. GGUF_E_NOMEM, GGUF_E_LIMIT (the expressions give up on the text). */
enum gguf_status gg_pretok_split(const struct gg_pretok *p, const char *text,
                                 size_t size, size_t **end, size_t *n,
                                 struct gguf_error *err);

#endif
