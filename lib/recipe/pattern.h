/* SPDX-License-Identifier: MIT */
/* pattern.h - regular expressions on tensor names
 *
 * The syntax is Perl's (PCRE2), which agrees with llama.cpp's tools for usual
 * patterns. A pattern is searched anywhere in the name, byte by byte; the case
 * of ASCII letters is ignored. Recipes may come from strangers: compiling and
 * searching take bounded memory and time for any expression.
 */
#ifndef GG_RECIPE_PATTERN_H
#define GG_RECIPE_PATTERN_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

/* Never changes: any thread may use it. */
struct gg_pattern;

/* Compile text, which is copied; a is kept. GGUF_E_FORMAT: a syntax error, with
 * the reason and the byte. GGUF_E_LIMIT: more than 1000 bytes. GGUF_E_NOMEM. */
enum gguf_status gg_pattern_create(struct gg_pattern **out,
                                   struct gguf_str text,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err);
/* NULL is ignored. */
void gg_pattern_destroy(struct gg_pattern *p);

/* Set *found if the pattern matches name. GGUF_E_LIMIT: the search takes too
 * many steps; the message has the pattern. GGUF_E_NOMEM. */
enum gguf_status gg_pattern_match(const struct gg_pattern *p, const char *name,
                                  bool *found, struct gguf_error *err);

#endif
