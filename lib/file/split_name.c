/* SPDX-License-Identifier: MIT */
/* split_name.c - names of shards, and sizes that users type */
#include "config.h"
#include "gguf/split.h"
#include "base/error.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { TAIL_SIZE = sizeof "-00001-of-00001.gguf" - 1 };

enum gguf_status gguf_split_name_format(char *out, size_t size,
                                        const char *prefix, unsigned no,
                                        unsigned count, struct gguf_error *err)
{
    if (no < 1 || no > count || count > GGUF_SPLIT_MAX_FILES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "no name for shard %u of %u", no, count);
    int n = snprintf(out, size, "%s-%05u-of-%05u.gguf", prefix, no, count);
    struct gg_str_esc e;
    if (n < 0 || (size_t)n >= size)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the name of shard %u of '%s' is too long", no,
                            gg_str_esc(&e, gg_str_z(prefix)));
    return GGUF_OK;
}

/* Parse five digits at p. Returns 0 if they are not digits. */
static unsigned five_digits(const char *p)
{
    struct gguf_str s = { p, 5 };
    uint64_t v;
    return gg_str_uint(&s, 99999, &v) && !s.size ? (unsigned)v : 0;
}

bool gguf_split_name_parse(const char *path, size_t *prefix_size, unsigned *no,
                           unsigned *count)
{
    size_t n = strlen(path);
    if (n < TAIL_SIZE)
        return false;
    const char *t = path + n - TAIL_SIZE;
    unsigned i = five_digits(t + 1), k = five_digits(t + 10);
    if (t[0] != '-' || memcmp(t + 6, "-of-", 4) != 0 ||
        memcmp(t + 15, ".gguf", 5) != 0 || i < 1 || i > k ||
        k > GGUF_SPLIT_MAX_FILES)
        return false;
    if (prefix_size)
        *prefix_size = n - TAIL_SIZE;
    if (no)
        *no = i;
    if (count)
        *count = k;
    return true;
}
