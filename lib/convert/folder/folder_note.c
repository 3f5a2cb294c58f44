/* SPDX-License-Identifier: MIT */
/* folder_note.c - the notes that a conversion gives its caller */
#include "config.h"
#include "convert/folder/folder.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void give_line(const struct gguf_convert_params *p,
                      enum gguf_convert_note_kind kind, const char *format,
                      va_list args)
{
    char line[512];
    if (!p->note.fn)
        return;
    vsnprintf(line, sizeof line, format, args);
    p->note.fn(p->note.user, kind, line);
}

void gg_folder_warn(const struct gg_folder *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    give_line(f->p, GGUF_CONVERT_WARNING, format, args);
    va_end(args);
}

void gg_folder_note(const struct gg_folder *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    give_line(f->p, GGUF_CONVERT_REMARK, format, args);
    va_end(args);
}

/* Members that say nothing about the computation of a language model. */
static bool is_description(const char *name)
{
    static const char *const names[] = {
        "architectures",
        "model_type",
        "torch_dtype",
        "dtype",
        "_name_or_path",
        "auto_map",
        "use_cache",
        "initializer_range",
        "transformers_version",
        "attention_dropout",
        "hidden_dropout",
        "resid_pdrop",
        "embd_pdrop",
        "attn_pdrop",
        "pretraining_tp",
        "output_attentions",
        "output_hidden_states",
        "use_return_dict",
        "return_dict",
        "id2label",
        "label2id",
        "problem_type",
    };
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return strstr(name, "_token_id") != NULL;
}

void gg_folder_warn_unread_config(const struct gg_folder *f)
{
    char list[360] = "";
    size_t n = 0;
    const char *name;
    json_t *value, *config = f->config;
    struct gg_str_esc e;
    json_object_foreach(config, name, value)
    {
        const size_t used = strlen(list);
        if (!f->read || json_object_get(f->read, name) ||
            is_description(name) || json_is_null(value) ||
            json_is_false(value))
            continue;
        n++;
        if (used + strlen(name) + 16 < sizeof list)
            snprintf(list + used, sizeof list - used, "%s%.80s",
                     n > 1 ? ", " : "", gg_str_esc(&e, gg_str_z(name)));
    }
    if (n)
        gg_folder_warn(f, "config.json: %zu member%s not read: %s", n,
                       n > 1 ? "s are" : " is", list);
}
