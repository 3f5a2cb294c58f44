/* SPDX-License-Identifier: MIT */
/* base64.c - decode base64 */
#include "config.h"
#include "base/base64.h"

static int digit_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

size_t gg_base64_decode(const char *p, size_t n, uint8_t *out, size_t *size)
{
    uint32_t bits = 0;
    size_t pad = 0;
    *size = 0;
    while (pad < 2 && pad < n && p[n - 1 - pad] == '=')
        pad++;
    for (size_t i = 0; i < n - pad; i++) {
        const int d = digit_value(p[i]);
        if (d < 0)
            return i;
        bits = bits << 6 | (uint32_t)d;
        if (i % 4)
            out[(*size)++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    return n;
}
