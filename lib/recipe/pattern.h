/* SPDX-License-Identifier: MIT */
/* pattern.h - regular expressions on tensor names
 *
 * Perl's syntax (PCRE2), which agrees with llama.cpp's tools for usual
 * patterns: searched anywhere in the name, byte by byte, letter case of ASCII
 * ignored. A recipe may come from a stranger: compiling and searching take
 * bounded memory and time, whatever the expression is.
 */
#ifndef GG_RECIPE_PATTERN_H
#define GG_RECIPE_PATTERN_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

/* Read-only: any thread. */
struct gg_pattern;

/* Compile text, which is copied. a is kept. GGUF_E_FORMAT (with the reason and
 * the byte), GGUF_E_LIMIT (over 1000 bytes), GGUF_E_NOMEM. */
enum gguf_status gg_pattern_create(struct gg_pattern **out,
                                   struct gguf_str text,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err);
/* NULL is fine. */
void gg_pattern_destroy(struct gg_pattern *p);

/* *found: does it match? name is NUL-terminated. GGUF_E_LIMIT (the search
 * takes too many steps; names the pattern), GGUF_E_NOMEM. */
enum gguf_status gg_pattern_match(const struct gg_pattern *p, const char *name,
                                  bool *found, struct gguf_error *err);

#endif
