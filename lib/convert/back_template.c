/* SPDX-License-Identifier: MIT */
/* back_template.c - chat templates of a file, for tokenizer_config.json
 *
 * A single one is a text; several are a list of objects with "name" and
 * "template", which transformers and vocab_template.c read.
 */
#include "config.h"
#include "convert/back_vocab.h"

#include "base/str.h"

#include <string.h>

#define KEY "tokenizer.chat_template"

static void append(json_t *list, struct gguf_str name, struct gguf_str text)
{
    json_array_append_new(list, json_pack("{s:s%, s:s%}", "name", name.data,
                                          name.size, "template", text.data,
                                          text.size));
}

void gg_back_put_templates(const struct gg_back *b, json_t *root)
{
    struct gguf_str main, text;
    const bool has_main = gguf_kv_get_str(gguf_file_kv_find(b->meta, KEY),
                                          &main, NULL) == GGUF_OK;
    json_t *list = json_array();
    if (has_main)
        append(list, GG_STR("default"), main);
    for (size_t i = 0; i < gguf_file_n_kv(b->meta); i++) {
        const struct gguf_kv *kv = gguf_file_kv(b->meta, i);
        struct gguf_str name = kv->key;
        if (!gg_str_starts(name, KEY ".") ||
            gguf_kv_get_str(kv, &text, NULL) != GGUF_OK)
            continue;
        name.data += strlen(KEY ".");
        name.size -= strlen(KEY ".");
        append(list, name, text);
    }
    if (json_array_size(list) > (has_main ? 1 : 0))
        json_object_set(root, "chat_template", list);
    else if (has_main)
        json_object_set_new(root, "chat_template",
                            json_stringn(main.data, main.size));
    json_decref(list);
}
