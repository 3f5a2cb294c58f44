/* SPDX-License-Identifier: MIT */
/* limits.c - defaults and names of the limits of files */
#include "config.h"
#include "file/limits.h"
#include "base/params.h"
#include "base/str.h"
#include "gguf/text.h"

#include <stdio.h>
#include <string.h>

const struct gguf_limits gg_limits_default = {
    .struct_size = sizeof(struct gguf_limits),
    .max_kv = 1u << 20,
    .max_tensors = 1u << 20,
    .max_key_size = 65535,
    .max_name_size = 64,
    .max_str_size = 1u << 30,
    .max_array_items = 1u << 30,
    .max_depth = 8,
    .max_dims = 4,
    .max_header = 1u << 28,
};

/* A row for each limit: largest value, and offset and size of its member. */
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

static uint64_t get_limit(const struct gguf_limits *limits, size_t i)
{
    uint64_t v64;
    uint32_t v32;
    const char *at = (const char *)limits + rows[i].off;
    if (rows[i].size == 8) {
        memcpy(&v64, at, 8);
        return v64;
    }
    memcpy(&v32, at, 4);
    return v32;
}

static void put_limit(struct gguf_limits *limits, size_t i, uint64_t value)
{
    char *at = (char *)limits + rows[i].off;
    uint32_t v32 = (uint32_t)value;
    memcpy(at, rows[i].size == 8 ? (void *)&value : (void *)&v32,
           rows[i].size);
}

static enum gguf_status check_limit(size_t i, uint64_t value,
                                    struct gguf_error *err)
{
    if (value > 0 && value <= rows[i].max)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "limit %s: %" PRIu64 ", expected 1 to %" PRIu64,
                        rows[i].name, value, rows[i].max);
}

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
        /* a program older than the library has fewer members */
        if (strcmp(rows[i].name, name) != 0 ||
            rows[i].off + rows[i].size > limits->struct_size)
            continue;
        GG_TRY(check_limit(i, value, err));
        put_limit(limits, i, value);
        return GGUF_OK;
    }
    return fail_name(name, err);
}

enum gguf_status gg_limits_resolve(struct gguf_limits *out,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err)
{
    struct gguf_limits given = GGUF_INIT(struct gguf_limits);
    GG_TRY(gg_params_take(&given, sizeof given, limits, "gguf_limits", err));
    *out = gg_limits_default;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        const uint64_t value = get_limit(&given, i);
        if (!value)
            continue;
        GG_TRY(check_limit(i, value, err));
        put_limit(out, i, value);
    }
    return GGUF_OK;
}
