/* SPDX-License-Identifier: MIT */
/* text.h - text from files: making it safe to print; names like others
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

/* ------------------------------------------------------ names like others ---
 *
 * For messages about a name that is not known:
 *
 *     struct gguf_near near;
 *     char hint[GGUF_NEAR_HINT];
 *     gguf_near_init(&near, name);
 *     for (size_t i = 0; i < n_known; i++)
 *         gguf_near_try(&near, known[i]);
 *     printf("'%s' is not known%s", text, gguf_near_hint(&near, hint));
 */

/* The caller's storage; it never grows. */
struct gguf_near {
    struct gguf_str name;     /* that is not known; kept */
    struct gguf_str best;     /* size 0: nothing is like it */
    unsigned distance, limit; /* letters that differ; and that may */
};
#define GGUF_NEAR_HINT 112

/* name is kept. Since: 0.1 */
GGUF_API void gguf_near_init(struct gguf_near *near, struct gguf_str name);
/* known, which is kept, becomes the best if it is like name, and more so than
 * those before: letters that are put in, left out, replaced or exchanged with a
 * neighbour, a quarter of them at most; case, '-', '_', '.' and blanks do not
 * count. Since: 0.1 */
GGUF_API void gguf_near_try(struct gguf_near *near, struct gguf_str known);
/* out becomes "; did you mean 'BEST'?", or empty. Returns out. Since: 0.1 */
GGUF_API const char *gguf_near_hint(const struct gguf_near *near,
                                    char out[GGUF_NEAR_HINT]);

#ifdef __cplusplus
}
#endif
#endif
