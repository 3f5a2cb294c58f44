/* SPDX-License-Identifier: MIT */
/* text.c - the public names of what str.c does to text from files */
#include "config.h"
#include "gguf/text.h"
#include "base/str.h"

size_t gguf_text_escape(char *out, size_t size, struct gguf_str s)
{
    return gg_str_escape(out, size, s.data, s.size);
}

size_t gguf_text_decode_utf8(const char *p, size_t n, uint32_t *cp)
{
    uint32_t v;
    return gg_str_utf8_decode(p, n, cp ? cp : &v);
}
