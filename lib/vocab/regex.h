/* SPDX-License-Identifier: MIT */
/* regex.h - regular expressions of pre-tokenizers
 *
 * The matcher supports what published expressions use. It replaces a general
 * library for two reasons. Classes such as \p{L} come from the tables of
 * unicode.h, so that words are the same on every system. And it is faster on
 * these expressions (doc/tokenizers.md).
 *
 *     struct gg_regex *re;
 *     GG_TRY(gg_regex_create(&re, " ?\\p{L}+", allocator, err));
 *     struct gg_regex_work w = { frames, gg_regex_n_frames(re), UINT64_MAX };
 *     found = gg_regex_find(re, text, size, 0, &w, &begin, &end);
 *
 * Syntax, with Perl's meaning (the first alternative that matches, quantifiers
 * that are greedy):
 *
 *     x \x \xHH \x{H...} \uHHHH \t \n \r \f \v    characters; any mark escaped
 *     .                         any character but a newline
 *     \s \d \w \p{X} \pX        white space, \p{Nd}, word characters, general
 *                               category X (L, Lu, ...) or script Han
 *     \S \D \W \P{X} \p{^X}     all others
 *     [abc] [^a-z] [a[bc]]      one of them, none of them, sets in sets
 *     (...) (?:...) (?>...)     groups; nothing is captured
 *     (?i) (?i:...)             letters of ASCII in both cases
 *     (?=...) (?!...)           what follows, what does not
 *     (?<=X) (?<!X)             the same of the one character before
 *     ? * + {m} {m,} {m,n}      quantifiers; with ? as little, with + without
 *                               ever giving back
 *     ^ \A $ \Z \z \b \B        begin and end of the text, edges of words
 *
 * All else is refused, and so is a group without an upper bound that can match
 * nothing.
 */
#ifndef GG_VOCAB_REGEX_H
#define GG_VOCAB_REGEX_H

#include "base/error.h"
#include "gguf/memory.h"

struct gg_regex;

/* Compile text, UTF-8. GGUF_E_NOMEM, GGUF_E_UNSUPPORTED (syntax other than the
 * above, or too large; err names the byte). */
enum gguf_status gg_regex_create(struct gg_regex **out, const char *text,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err);
/* NULL is fine. */
void gg_regex_destroy(struct gg_regex *re);

/* One choice for backtracking. */
struct gg_regex_frame {
    size_t at;    /* byte of the text */
    size_t least; /* first byte that a greedy loop may give back, or rounds
                     left for a lazy loop */
    uint32_t pc;  /* instruction */
};

/* Memory of one search. Any number of expressions can use it in turn. */
struct gg_regex_work {
    struct gg_regex_frame *frame; /* n of them */
    size_t n;
    uint64_t budget; /* backtracks left for all searches; a loop that takes 32
                        characters counts as one. UINT64_MAX: no limit */
};

/* Number of frames that a search of re needs; may be 0. */
size_t gg_regex_n_frames(const struct gg_regex *re);

enum gg_regex_found { GG_REGEX_NONE, GG_REGEX_FOUND, GG_REGEX_LIMIT };

/* Find the first match that begins in text[from..size). text is UTF-8 that may
 * hold surrogates; a byte out of place counts as U+FFFD. LIMIT: the search
 * needs more than w->budget backtracks or w->n frames. Any thread, each with
 * its own w. */
enum gg_regex_found gg_regex_find(const struct gg_regex *re, const char *text,
                                  size_t size, size_t from,
                                  struct gg_regex_work *w, size_t *begin,
                                  size_t *end);

#endif
