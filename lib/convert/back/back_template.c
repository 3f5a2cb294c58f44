/* SPDX-License-Identifier: MIT */
/* back_template.c - chat templates of a file, for tokenizer_config.json
 *
 * A single template is a text. Several are a list of objects with "name" and
 * "template", which transformers and vocab_template.c read. A note names
 * templates that JSON or the list cannot hold.
 */
#include "config.h"
#include "convert/back/back_vocab.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.chat_template"

static void note_key(const struct gg_back *b, struct gguf_str key)
{
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)GG_MIN(key.size, sizeof name - 1),
             key.data);
    if (b->p.note.fn)
        b->p.note.fn(b->p.note.user, name);
}

/* Is the value a text that JSON can hold? If not, a note names the key. */
static bool take_text(const struct gg_back *b, const struct gguf_kv *kv,
                      struct gguf_str *text)
{
    if (gguf_kv_get_str(kv, text, NULL) == GGUF_OK &&
        gg_str_utf8_valid(text->data, text->size))
        return true;
    note_key(b, kv->key);
    return false;
}

static void append_template(json_t *list, struct gguf_str name,
                            struct gguf_str text)
{
    json_array_append_new(list, json_pack("{s:s%, s:s%}", "name", name.data,
                                          name.size, "template", text.data,
                                          text.size));
}

void gg_back_put_templates(const struct gg_back *b, json_t *root)
{
    const struct gguf_kv *of = gguf_file_kv_find(b->meta, KEY);
    struct gguf_str main, text;
    const bool has_main = of && take_text(b, of, &main);
    json_t *list = json_array();
    if (has_main)
        append_template(list, GG_STR("default"), main);
    for (size_t i = 0; i < gguf_file_n_kv(b->meta); i++) {
        const struct gguf_kv *kv = gguf_file_kv(b->meta, i);
        struct gguf_str name = kv->key;
        if (!gg_str_starts(name, KEY "."))
            continue;
        name.data += strlen(KEY ".");
        name.size -= strlen(KEY ".");
        if (!name.size || (has_main && gg_str_eqz(name, "default")))
            note_key(b, kv->key);
        else if (take_text(b, kv, &text))
            append_template(list, name, text);
    }
    if (json_array_size(list) > (has_main ? 1 : 0))
        json_object_set(root, "chat_template", list);
    else if (has_main)
        json_object_set_new(root, "chat_template",
                            json_stringn(main.data, main.size));
    json_decref(list);
}
