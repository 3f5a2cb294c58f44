/* SPDX-License-Identifier: MIT */
/* name_pattern.c - patterns of names, with the numbers of layers and experts */
#include "config.h"
#include "convert/convert_int.h"

#include "base/str.h"

bool gg_convert_match_pattern(const char *pattern, struct gguf_str *name,
                              int64_t *layer, int64_t *expert)
{
    uint64_t v;
    for (; *pattern; pattern++) {
        if (*pattern == '%' || *pattern == '@') {
            if (!gg_str_uint(name, 1000000, &v))
                return false;
            *(*pattern == '%' ? layer : expert) = (int64_t)v;
        } else if (name->size && *name->data == *pattern) {
            name->data++;
            name->size--;
        } else {
            return false;
        }
    }
    return true;
}
