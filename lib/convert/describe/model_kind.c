/* SPDX-License-Identifier: MIT */
/* model_kind.c - kind of model that a folder is, for people */
#include "config.h"
#include "convert/convert_int.h"

#include "base/str.h"
#include "model/arch.h"

#include <string.h>

struct gguf_str gg_convert_class(const struct gguf_convert *c)
{
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    struct gguf_str s = GG_STR("");
    (void)gg_json_str(
        json_array_get(json_object_get(root, "architectures"), 0), &s);
    return s;
}

bool gg_convert_is_headless(const struct gguf_convert *c)
{
    const struct gguf_str name = gg_convert_class(c);
    return gg_str_ends(name, "Model") && !gg_str_ends(name, "LMHeadModel");
}

/* Kind of model, and what decided it. */
static void set_kind(struct gguf_convert *c)
{
    const struct gg_arch *a = gg_arch_find(gg_str_z(c->arch->arch));
    struct gguf_convert_summary *s = &c->out.summary;
    s->reason = "its class";
    if (c->is_adapter) {
        s->kind = "adapter";
        s->reason = "adapter_config.json";
    } else if (gg_convert_find_tensor(c, "cls.output.weight") ||
               gg_str_ends(gg_convert_class(c), "Classification")) {
        s->kind = "classifier";
        if (!gg_str_ends(gg_convert_class(c), "Classification"))
            s->reason = "its tensors";
    } else if (gg_convert_get_config(c, "modules_pooling")) {
        s->kind = "embedding model";
        s->reason = "modules.json";
    } else if (a && a->output == GG_OUTPUT_NONE) {
        s->kind = "encoder";
    } else {
        s->kind =
            gg_convert_is_headless(c) ? "embedding model" : "language model";
    }
}

enum gguf_status gg_convert_set_kind(struct gguf_convert *c,
                                     struct gguf_error *err)
{
    const struct gguf_str name = gg_convert_class(c);
    c->out.summary.class_name =
        gg_mem_arena_strndup(&c->arena, name.data, name.size);
    if (!c->out.summary.class_name)
        return gg_error_set_nomem(err, name.size + 1);
    if (!c->out.summary.kind)
        set_kind(c);
    return GGUF_OK;
}
