/* SPDX-License-Identifier: MIT */
/* json_visit.c - gguf_json_walk(): pass the values of a JSON text to a
 * program */
#include "config.h"
#include "base/json.h"
#include "base/str.h"
#include "gguf/text.h"

static enum gguf_status walk_value(const struct gguf_json_callback *w,
                                   json_t *v, struct gguf_str name,
                                   struct gguf_error *err);

static enum gguf_status walk_list(const struct gguf_json_callback *w,
                                  json_t *list, struct gguf_error *err)
{
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        GG_TRY(walk_value(w, v, (struct gguf_str){ NULL, 0 }, err));
    }
    return GGUF_OK;
}

static enum gguf_status walk_object(const struct gguf_json_callback *w,
                                    json_t *object, struct gguf_error *err)
{
    const char *name;
    json_t *v;
    json_object_foreach(object, name, v)
    {
        GG_TRY(walk_value(w, v, gg_str_z(name), err));
    }
    return GGUF_OK;
}

/* Recursion is at most GG_JSON_DEPTH deep. */
static enum gguf_status walk_value(const struct gguf_json_callback *w,
                                   json_t *v, struct gguf_str name,
                                   struct gguf_error *err)
{
    static const enum gguf_json_kind kinds[] = {
        [JSON_OBJECT] = GGUF_JSON_OBJECT, [JSON_ARRAY] = GGUF_JSON_ARRAY,
        [JSON_STRING] = GGUF_JSON_STRING, [JSON_INTEGER] = GGUF_JSON_INTEGER,
        [JSON_REAL] = GGUF_JSON_REAL,     [JSON_TRUE] = GGUF_JSON_TRUE,
        [JSON_FALSE] = GGUF_JSON_FALSE,   [JSON_NULL] = GGUF_JSON_NULL,
    };
    struct gguf_json_value value = { .kind = kinds[json_typeof(v)],
                                     .name = name,
                                     .integer = json_integer_value(v),
                                     .real = json_number_value(v) };
    (void)gg_json_str(v, &value.string);
    GG_TRY(w->fn(w->user, &value, err));
    if (!json_is_object(v) && !json_is_array(v))
        return GGUF_OK;
    GG_TRY(json_is_object(v) ? walk_object(w, v, err) : walk_list(w, v, err));
    value = (struct gguf_json_value){ .kind = GGUF_JSON_END };
    return w->fn(w->user, &value, err);
}

enum gguf_status gguf_json_walk(struct gguf_str json,
                                struct gguf_json_callback each,
                                struct gguf_error *err)
{
    struct gg_json j;
    if (!each.fn)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_json_callback has no function");
    GG_TRY(
        gg_json_read(&j, json.data, json.size, 0, GG_JSON_BIG_INTEGERS, err));
    const enum gguf_status st =
        walk_value(&each, j.root, (struct gguf_str){ NULL, 0 }, err);
    gg_json_fini(&j);
    return st;
}
