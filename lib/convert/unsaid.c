/* SPDX-License-Identifier: MIT */
/* unsaid.c - numbers that config.json leaves out, as the tensors say them
 *
 * What is published leaves out what transformers has as the default of a class
 * (Gemma 3: how many tokens there are) or does not read (Qwen3-Next: layers
 * that draft). Expressions and keys then find them where they would be.
 */
#include "config.h"
#include "convert/convert.h"

#include "base/str.h"

#include <string.h>

static enum gguf_status say(struct gguf_convert *c, const char *name,
                            int64_t n, struct gguf_error *err)
{
    return json_object_set_new(c->config, name, json_integer(n))
               ? gg_error_set_nomem(err, sizeof(json_t *))
               : GGUF_OK;
}

enum gguf_status gg_convert_unsaid_drafts(struct gguf_convert *c,
                                          struct gguf_error *err)
{
    static const char name[] = "mtp_num_hidden_layers";
    const struct gg_convert_arch *a = c->arch;
    int64_t n = 0;
    if (!a->drafts || !a->layers || !strstr(a->layers, name) ||
        gg_convert_get(c, name))
        return GGUF_OK;
    for (size_t i = 0; i < c->from->n_tensors; i++) {
        struct gguf_str rest = c->from->tensor[i].name;
        int64_t layer = -1;
        if (gg_convert_fits(a->drafts, &rest, &layer, &layer) &&
            gg_convert_fits("%.", &rest, &layer, &layer) && layer >= n)
            n = layer + 1;
    }
    return n ? say(c, name, n, err) : GGUF_OK;
}

enum gguf_status gg_convert_unsaid_rows(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    if (gg_convert_get(c, "vocab_size"))
        return GGUF_OK;
    for (size_t i = 0; i < c->n_tensors; i++)
        if (!strcmp(c->tensor[i].name, "token_embd.weight"))
            return say(c, "vocab_size", c->tensor[i].ne[1], err);
    return GGUF_OK;
}
