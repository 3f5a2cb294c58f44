/* SPDX-License-Identifier: MIT */
/* labels.c - labels of a classifier, and other lists of texts */
#include "config.h"
#include "convert/convert_int.h"

#include "base/str.h"

#include <stdio.h>

#define MOST_LABELS 100000

enum gguf_status gg_convert_set_labels(struct gguf_convert *c, const char *key,
                                       const json_t *names,
                                       struct gguf_error *err)
{
    const size_t n = json_object_size(names);
    struct gguf_str *list;
    char no[24];
    if (!n || n > MOST_LABELS)
        return GGUF_OK;
    list = gg_mem_arena_alloc(&c->arena, n * sizeof *list);
    if (!list)
        return gg_error_set_nomem(err, n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        snprintf(no, sizeof no, "%zu", i);
        if (!gg_json_str(json_object_get(names, no), &list[i]))
            return gg_error_set(
                err, GGUF_E_HPARAM,
                gg_json_offset_of(&c->folder.text[GG_CONVERT_CONFIG].json,
                                  names),
                "config.json: id2label has no text for %zu", i);
    }
    /* placeholders that transformers writes for unnamed labels */
    if (n == 2 && gg_str_eqz(list[0], "LABEL_0"))
        return GGUF_OK;
    return gguf_meta_set_str_array(c->out.meta, key, list, n, err);
}

enum gguf_status gg_convert_set_texts(struct gguf_convert *c, const char *key,
                                      const json_t *texts,
                                      struct gguf_error *err)
{
    const size_t n = json_array_size(texts);
    struct gguf_str *list;
    if (!n || n > MOST_LABELS)
        return GGUF_OK;
    list = gg_mem_arena_alloc(&c->arena, n * sizeof *list);
    if (!list)
        return gg_error_set_nomem(err, n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        if (!gg_json_str(json_array_get(texts, i), &list[i]))
            return gg_error_set(
                err, GGUF_E_HPARAM,
                gg_json_offset_of(&c->folder.text[GG_CONVERT_CONFIG].json,
                                  texts),
                "config.json: item %zu for '%s' is not a text", i, key);
    return gguf_meta_set_str_array(c->out.meta, key, list, n, err);
}
