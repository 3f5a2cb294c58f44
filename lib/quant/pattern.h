/* pattern.h - regular expressions on tensor names
 *
 * POSIX extended expressions, searched anywhere in the name, letter case
 * ignored; in addition \d, \w, \s and their capitals mean what they do
 * elsewhere, and a backslash escapes inside brackets too, so that patterns
 * written for llama.cpp's tools mean the same here.
 */
#ifndef GG_QUANT_PATTERN_H
#define GG_QUANT_PATTERN_H

#include "base/error.h"
#include "gguf/memory.h"

#include <regex.h>
#include <stdbool.h>

struct gg_pattern {
    regex_t re;
};

/* Compile text. The system's regcomp takes its memory from malloc. On failure
 * nothing needs gg_pattern_fini. GGUF_E_FORMAT (with regcomp's reason),
 * GGUF_E_LIMIT (over 1000 bytes), GGUF_E_NOMEM. */
enum gguf_status gg_pattern_init(struct gg_pattern *p, struct gguf_str text,
                                 struct gguf_error *err);
void gg_pattern_fini(struct gg_pattern *p);

/* name is NUL-terminated. One thread at a time, as regexec may lock. */
bool gg_pattern_match(const struct gg_pattern *p, const char *name);

#endif
