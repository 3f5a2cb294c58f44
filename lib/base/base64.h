/* SPDX-License-Identifier: MIT */
/* base64.h - decode base64
 *
 * Source: RFC 4648, section 4, with padding and without line breaks.
 */
#ifndef GG_BASE_BASE64_H
#define GG_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Decode n characters at p. n is a multiple of 4.
 *
 * out    Receives the bytes. It has room for n / 4 * 3.
 * size   Receives their number.
 *
 * Returns n, or the index of the first character that is not base64. */
size_t gg_base64_decode(const char *p, size_t n, uint8_t *out, size_t *size);

#endif
