/* gguf-ppl-load.c - how the model is opened */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/msg.h"
#include "tools/common/override.h"

bool ppl_overrides(const struct ppl_options *o, const struct gguf_split *set,
                   struct gguf_meta **meta)
{
    struct gguf_error err;
    *meta = NULL;
    if (!o->kv_texts.n)
        return true;
    if (gguf_meta_create(meta, NULL, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        return false;
    }
    const struct override to = { .meta = *meta,
                                 .like = gguf_split_file(set, 0) };
    for (size_t i = 0; i < o->kv_texts.n; i++)
        override_add(&to, o->kv_texts.arg[i]);
    struct guard g = { .name = o->model,
                       .set = set,
                       .file = to.like,
                       .verdict = "nothing was evaluated",
                       .force = o->force };
    return override_guard(&g, *meta);
}
