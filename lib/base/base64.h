/* SPDX-License-Identifier: MIT */
/* base64.h - bytes that are written as base64
 *
 * Source: RFC 4648, section 4: padded, nothing between the digits.
 */
#ifndef GG_BASE_BASE64_H
#define GG_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of n digits, a multiple of 4, into out, which has room for n / 4 *
 * 3; *size is how many. Returns n, or the number of the first character that
 * is not a digit. */
size_t gg_base64_decode(const char *p, size_t n, uint8_t *out, size_t *size);

#endif
