/* SPDX-License-Identifier: MIT */
/* config_of_tensors.c - make a missing config.json from the tensors
 *
 * Folders of some programs have weights and no config.json. Names and shapes of
 * the weights determine its members. The row of such a class has a function
 * that makes the text.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/str.h"

#include <string.h>

/* The text must outlive the folder's config.json. */
static enum gguf_status read_made(struct gguf_convert *c, const char *text,
                                  struct gguf_error *err)
{
    const char *copy = gg_mem_arena_strndup(&c->arena, text, strlen(text));
    if (!copy)
        return gg_error_set_nomem(err, strlen(text));
    c->folder.text[GG_CONVERT_CONFIG].name = "config.json";
    return gg_json_read(&c->folder.text[GG_CONVERT_CONFIG].json, copy,
                        strlen(copy), 0, 0, err);
}

enum gguf_status gg_convert_make_config(struct gguf_convert *c,
                                        const struct gguf_limits *limits,
                                        struct gguf_error *err)
{
    const struct gg_convert_arch *a;
    char text[1024] = "";
    if (c->folder.text[GG_CONVERT_CONFIG].json.root)
        return GGUF_OK;
    /* without weights the missing config.json is the first fault */
    const enum gguf_status st =
        c->folder.weights
            ? GGUF_OK
            : gg_safetensors_open(&c->folder.weights, &c->folder.dir, "model",
                                  limits, c->codec, NULL);
    if (st != GGUF_OK)
        return st == GGUF_E_NOMEM ? gg_error_set_nomem(err, sizeof text)
                                  : GGUF_OK;
    for (size_t i = 0; !*text && (a = gg_convert_arch_row(i)); i++)
        if (a->make_config)
            a->make_config(c, text, sizeof text);
    return *text ? read_made(c, text, err) : GGUF_OK;
}
