/* SPDX-License-Identifier: MIT */
/* unsaid.c - numbers that config.json leaves out, as the tensors say them
 *
 * What is published leaves out what transformers has as the default of a class
 * (Gemma 3: how many tokens there are) or does not read (Qwen3-Next: layers
 * that draft), or speaks of layers that the folder has no more. Expressions and
 * keys then find them where they would be.
 */
#include "config.h"
#include "convert/expr.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

static enum gguf_status say(struct gguf_convert *c, const char *name,
                            int64_t n, struct gguf_error *err)
{
    return json_object_set_new(c->config, name, json_integer(n))
               ? gg_error_set_nomem(err, sizeof(json_t *))
               : GGUF_OK;
}

/* How many layers after the others the folder has. */
static int64_t count_drafts(const struct gguf_convert *c)
{
    const int64_t first = gg_convert_first_draft(c);
    int64_t n = 0;
    char name[512];
    for (size_t i = 0; i < c->from->n_tensors; i++) {
        int64_t layer = -1;
        bool nothing;
        if (!gg_convert_known_as(c, c->from->tensor[i].name, name, &nothing))
            continue;
        struct gguf_str rest = gg_str_z(name);
        if (gg_convert_fits("model.layers.%.", &rest, &layer, &layer) &&
            layer >= first + n)
            n = layer - first + 1;
    }
    return n;
}

/* What is saved by transformers has none of them any more, but the number. */
enum gguf_status gg_convert_unsaid_drafts(struct gguf_convert *c,
                                          struct gguf_error *err)
{
    static const char *const names[] = { "mtp_num_hidden_layers",
                                         "num_nextn_predict_layers" };
    const struct gg_convert_arch *a = c->arch;
    size_t k = 0;
    while (k < GG_LEN(names) && !(a->layers && strstr(a->layers, names[k])))
        k++;
    if (k == GG_LEN(names) || !gg_convert_first_draft(c))
        return GGUF_OK;
    const int64_t n = count_drafts(c);
    if (!n && gg_convert_eval(c, a->layers, -1) >
                  (double)gg_convert_first_draft(c)) {
        if (c->p.note)
            c->p.note(c->p.note_user,
                      "config.json speaks of layers that draft, of which the "
                      "folder has none");
        return say(c, names[k], 0, err);
    }
    /* the first of the numbers is one that config.json may lack */
    if (n && a->drafts && k == 0 && !gg_convert_get(c, names[k]))
        return say(c, names[k], n, err);
    return GGUF_OK;
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
