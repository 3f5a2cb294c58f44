/* SPDX-License-Identifier: MIT */
/* kv.c - the keys of --override-kv */
#include "config.h"
#include "tools/quantize/quantize.h"
#include "tools/common/override.h"

#include <stdlib.h>
#include <gguf/meta.h>

void parse_overrides(struct options *o)
{
    struct gguf_error err;
    gguf_error_clear(&err);
    if (!o->kv_texts.n)
        return;
    if (gguf_meta_create(&o->meta, NULL, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        exit(MSG_FAILED);
    }
    const struct override to = { .meta = o->meta,
                                 .as_llama = o->params.compat };
    for (size_t i = 0; i < o->kv_texts.n; i++)
        override_add(&to, o->kv_texts.arg[i]);
    o->params.meta = o->meta;
}

bool check_overrides(const struct options *o)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_error err;
    struct gguf_file *set;
    fp.limits = &o->limits;
    gguf_error_clear(&err);
    fp.opener = o->params.opener;
    if (!o->meta || gguf_file_open(&set, o->in, &fp, &err) != GGUF_OK)
        return true; /* planning will report why it does not open */
    struct guard g = { .name = o->in, .file = set, .force = o->force };
    bool good = override_guard(&g, o->meta);
    gguf_file_close(set);
    return good;
}
