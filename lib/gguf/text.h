/* text.h - text from files: making it safe to print
 *
 * Names and values of a file come from strangers: they may hold terminal
 * control sequences, invalid UTF-8 or characters that reverse the direction of
 * what follows. Error messages of the library are escaped already.
 */
#ifndef GGUF_TEXT_H
#define GGUF_TEXT_H

#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* s as one printable line of UTF-8: control characters (C0, DEL, C1), bytes
 * that are not UTF-8, direction overrides, invisible characters (Unicode's
 * default ignorable ones) and backslashes become \n, \r, \t, \\, \xNN or
 * \u{N}. Writes at most size bytes with the NUL and never cuts an escape or a
 * character; what does not fit ends in "...". 8 * s.size + 1 bytes are always
 * enough. Returns the bytes written without the NUL. Any thread. Since: 0.1 */
GGUF_API size_t gguf_text_escape(char *out, size_t size, struct gguf_str s);

/* The code point at p[0..n), n > 0: its length in bytes (1 to 4) and its value
 * in *cp (may be NULL), or 0 if the bytes are not well-formed UTF-8
 * (surrogates, overlong forms and values above U+10FFFF are not). Any thread.
 * Since: 0.1 */
GGUF_API size_t gguf_text_decode(const char *p, size_t n, uint32_t *cp);

#ifdef __cplusplus
}
#endif
#endif
