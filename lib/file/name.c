/* name.c - what keys and tensor names may look like */
#include "config.h"
#include "file/value.h"
#include "base/str.h"

#include <stdio.h>

const char *gg_name_fault(struct gguf_str name)
{
    if (name.size == 0)
        return "is empty";
    for (size_t i = 0; i < name.size;) {
        uint32_t cp;
        size_t n = gg_utf8_decode(name.data + i, name.size - i, &cp);
        if (n == 0)
            return "is not UTF-8";
        if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
            return "holds a control character";
        i += n;
    }
    return NULL;
}

const char *gg_kv_label(struct gg_kv_label *l, const struct gguf_kv *kv)
{
    struct gg_esc e;
    if (kv->index == GGUF_NO_INDEX)
        snprintf(l->s, sizeof l->s, "key '%s'", gg_esc(&e, kv->key));
    else
        snprintf(l->s, sizeof l->s, "key '%s'[%" PRIu64 "]",
                 gg_esc(&e, kv->key), kv->index);
    return l->s;
}
