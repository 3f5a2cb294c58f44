/* SPDX-License-Identifier: MIT */
/* key_override.c - keys that override those of the file */
#include "config.h"
#include "model/model_int.h"

#include "base/str.h"
#include "file/file_int.h"
#include "gguf/writer.h"

#include <stdio.h>
#include <string.h>

/* Keys about the layout of files, which cannot be overridden. */
static bool is_layout(struct gguf_str key)
{
    static const char split[] = "split.";
    return gg_str_eqz(key, "general.alignment") ||
           (key.size >= sizeof split - 1 &&
            memcmp(key.data, split, sizeof split - 1) == 0);
}

/* Does an evaluation look at the key, be it that the file lacks it? */
static bool is_read(const struct gguf_model *m, struct gguf_str key)
{
    static const char vocab[] = "tokenizer.";
    const struct gguf_hparam *h;
    char name[GG_MODEL_KEY];
    if (gg_str_eqz(key, "general.architecture") ||
        (key.size >= sizeof vocab - 1 &&
         memcmp(key.data, vocab, sizeof vocab - 1) == 0))
        return true;
    for (size_t i = 0; (h = gguf_hparam_at(i)) != NULL; i++) {
        gg_model_key(m, h->key, name, sizeof name);
        if (gg_str_eqz(key, name))
            return true;
    }
    return false;
}

enum gguf_status gg_model_override(struct gguf_model *m,
                                   const struct gguf_meta *meta,
                                   struct gguf_error *err)
{
    struct gg_str_esc e;
    for (size_t i = 0; i < gguf_meta_n_kv(meta); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(meta, i);
        if (is_layout(kv->key))
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "key '%s' describes the layout of the file and "
                "cannot be overridden",
                gg_str_esc(&e, kv->key));
    }
    GG_TRY(gg_file_create_with_pairs(&m->altered, m->src.file, meta,
                                     m->allocator, err));
    m->src.meta = m->altered;
    return GGUF_OK;
}

void gg_model_override_warn(const struct gguf_model *m,
                            const struct gguf_meta *meta)
{
    struct gg_str_esc e;
    char line[256];
    for (size_t i = 0; m->warn.fn && i < gguf_meta_n_kv(meta); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(meta, i);
        if (is_read(m, kv->key))
            continue;
        snprintf(line, sizeof line,
                 "key '%.150s' is given a value that no evaluation reads",
                 gg_str_esc(&e, kv->key));
        m->warn.fn(m->warn.user, line);
    }
}
