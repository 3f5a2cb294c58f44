/* SPDX-License-Identifier: MIT */
/* key_order.h - checks the order of a file's keys */
#ifndef TESTS_CONVERT_KEY_ORDER_H
#define TESTS_CONVERT_KEY_ORDER_H

#include "gguf/file.h"

#include <stdbool.h>
#include <string.h>

/* Does f have the keys (separated by blanks) one right after the other? */
static bool keys_follow(const struct gguf_file *f, const char *keys)
{
    size_t n = strcspn(keys, " "), i = 0;
    for (; i < gguf_file_n_kv(f); i++) {
        const struct gguf_str key = gguf_file_kv(f, i)->key;
        if (key.size == n && !memcmp(key.data, keys, n))
            break;
    }
    for (;; i++) {
        if (i >= gguf_file_n_kv(f))
            return false;
        const struct gguf_str key = gguf_file_kv(f, i)->key;
        if (key.size != n || memcmp(key.data, keys, n) != 0)
            return false;
        keys += n + strspn(keys + n, " ");
        if (!*keys)
            return true;
        n = strcspn(keys, " ");
    }
}

#endif
