/* SPDX-License-Identifier: MIT */
/* default_numbers.c - numbers that config.json omits, found by the tensors
 *
 * A published config.json omits numbers that are a class's default in
 * transformers (Gemma 3: the size of the vocabulary) or that transformers does
 * not read (Qwen3-Next: nextn layers), or it counts layers that the folder
 * lacks. These functions add the numbers where functions of families read them.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

/* ---- defaults of a class ---- */

/* Set a member of config.json, unless it is there. */
static enum gguf_status set_value(struct gguf_convert *c,
                                  const struct gg_convert_default *v,
                                  struct gguf_error *err)
{
    /* config.json gives the number under another name or in the whole model */
    const bool rope = !strcmp(v->name, "rope_theta") &&
                      json_object_get(c->folder.config, "rope_parameters");
    if (rope || json_object_get(c->folder.config, v->name) ||
        gg_convert_get_config(c, v->name))
        return GGUF_OK;
    json_t *n = v->value < 1 ? json_real(v->value)
                             : json_integer((json_int_t)v->value);
    return gg_convert_set_config(c, v->name, n, err);
}

enum gguf_status gg_convert_add_defaults(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    struct gguf_str type;
    int64_t heads;
    if (c->folder.config == c->folder.text[GG_CONVERT_CONFIG].json.root ||
        !gg_json_str(json_object_get(c->folder.config, "model_type"), &type))
        return GGUF_OK;
    const struct gg_convert_defaults *d = gg_convert_find_defaults(type);
    if (!d)
        return GGUF_OK;
    for (size_t i = 0; i < GG_LEN(d->value) && d->value[i].name; i++)
        GG_TRY(set_value(c, &d->value[i], err));
    const struct gg_convert_default same = {
        "num_key_value_heads",
        gg_convert_get_count(c, "num_attention_heads", &heads) ? (double)heads
                                                               : 0
    };
    return same.value >= 1 ? set_value(c, &same, err) : GGUF_OK;
}

/* ---- nextn layers ---- */

/* Count the nextn layers, which come after the others in the folder. */
static int64_t count_drafts(const struct gguf_convert *c)
{
    const int64_t first = gg_convert_first_nextn_layer(c);
    int64_t n = 0;
    char name[GG_CONVERT_NAME];
    for (size_t i = 0; i < c->folder.weights->n_tensors; i++) {
        int64_t layer = -1;
        bool nothing;
        if (!gg_convert_normalize_name(c, c->folder.weights->tensor[i].name,
                                       name, &nothing))
            continue;
        struct gguf_str rest = gg_str_z(name);
        if (gg_convert_match_pattern("model.layers.%.", &rest, &layer,
                                     &layer) &&
            layer >= first + n)
            n = layer - first + 1;
    }
    return n;
}

/* A folder saved by transformers lacks the nextn layers, although config.json
 * counts them. */
enum gguf_status gg_convert_add_nextn_count(struct gguf_convert *c,
                                            struct gguf_error *err)
{
    const struct gg_convert_arch *a = c->arch;
    if (!a->nextn || !*a->nextn || !gg_convert_first_nextn_layer(c))
        return GGUF_OK;
    const int64_t n = count_drafts(c);
    if (!n && gg_convert_count_layers(c, a) >
                  (double)gg_convert_first_nextn_layer(c)) {
        gg_folder_note(&c->folder,
                       "config.json has nextn layers, but the folder "
                       "lacks their tensors");
        return gg_convert_set_config(c, a->nextn, json_integer(0), err);
    }
    if (n && a->nextn_by_names && !gg_convert_get_config(c, a->nextn))
        return gg_convert_set_config(c, a->nextn, json_integer(n), err);
    return GGUF_OK;
}

/* ---- tokens ---- */

enum gguf_status gg_convert_add_vocab_size(struct gguf_convert *c,
                                           struct gguf_error *err)
{
    if (gg_convert_get_config(c, "vocab_size"))
        return GGUF_OK;
    const struct gguf_convert_tensor *t =
        gg_convert_find_tensor(c, "token_embd.weight");
    return t ? gg_convert_set_config(c, "vocab_size", json_integer(t->ne[1]),
                                     err)
             : GGUF_OK;
}
