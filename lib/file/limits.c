/* SPDX-License-Identifier: MIT */
/* limits.c - what a file may contain, by default and by name */
#include "config.h"
#include "file/value.h"
#include "base/params.h"
#include "base/str.h"
#include "gguf/text.h"

#include <stdio.h>
#include <string.h>

/* One row per limit. At most max; the value lies at off, 8 or 4 bytes. */
static const struct {
    const char *name;
    size_t off, size;
    uint64_t max;
} rows[] = {
#define ROW(NAME, MEMBER, MAX)                                                \
    {                                                                         \
        NAME, offsetof(struct gguf_limits, MEMBER),                           \
            sizeof(((struct gguf_limits *)0)->MEMBER), MAX                    \
    }
    ROW("kv", max_kv, UINT32_MAX - 1),
    ROW("tensors", max_tensors, UINT32_MAX - 1),
    ROW("key-size", max_key_size, INT64_MAX),
    ROW("name-size", max_name_size, INT64_MAX),
    ROW("str-size", max_str_size, INT64_MAX),
    ROW("array-items", max_array_items, INT64_MAX),
    ROW("depth", max_depth, GGUF_MAX_DEPTH),
    ROW("dims", max_dims, GGUF_MAX_DIMS),
    ROW("header", max_header, INT64_MAX),
#undef ROW
};

const char *gguf_limits_name(size_t n)
{
    return n < GG_LEN(rows) ? rows[n].name : NULL;
}

static enum gguf_status fail_name(const char *name, struct gguf_error *err)
{
    char list[120] = "", hint[GGUF_SUGGESTION_SIZE];
    struct gguf_suggestion near;
    gguf_suggestion_init(&near, gg_str_z(name));
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        size_t n = strlen(list);
        gguf_suggestion_try(&near, gg_str_z(rows[i].name));
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "",
                 rows[i].name);
    }
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "no limit is called '%.40s'; there are %s%s", name,
                        list, gguf_suggestion_text(&near, hint));
}

enum gguf_status gguf_limits_set(struct gguf_limits *limits, const char *name,
                                 uint64_t value, struct gguf_error *err)
{
    GG_TRY(gg_params_need(limits, "gguf_limits", err));
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        /* a program that is older than the library has fewer of them */
        if (strcmp(rows[i].name, name) != 0 ||
            rows[i].off + rows[i].size > limits->struct_size)
            continue;
        if (value > rows[i].max)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "limit %s: %" PRIu64 " is more than %" PRIu64,
                                name, value, rows[i].max);
        char *at = (char *)limits + rows[i].off;
        uint32_t v32 = (uint32_t)value;
        memcpy(at, rows[i].size == 8 ? (void *)&value : (void *)&v32,
               rows[i].size);
        return GGUF_OK;
    }
    return fail_name(name, err);
}

enum gguf_status gg_limits_resolve(struct gguf_limits *out,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err)
{
    *out = (struct gguf_limits)GGUF_LIMITS_INIT;
    GG_TRY(gg_params_take(out, sizeof *out, limits, "gguf_limits", err));
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        uint64_t v;
        uint32_t v32;
        const char *at = (const char *)out + rows[i].off;
        if (rows[i].size == 8) {
            memcpy(&v, at, 8);
        } else {
            memcpy(&v32, at, 4);
            v = v32;
        }
        GG_TRY(gguf_limits_set(out, rows[i].name, v, err));
    }
    return GGUF_OK;
}
