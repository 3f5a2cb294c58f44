/* SPDX-License-Identifier: MIT */
/* adapter_names.c - names of an adapter's tensors, as PEFT writes them */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

/* Without its last part, ".NAME". */
static struct gguf_str before_last(struct gguf_str s)
{
    while (s.size && s.data[s.size - 1] != '.')
        s.size--;
    s.size -= s.size ? 1 : 0;
    return s;
}

/* A training checkpoint has the adapter's name as well: lora_A.NAME.weight. */
uint8_t gg_convert_adapter_name(struct gguf_str name,
                                char out[GG_CONVERT_NAME])
{
    static const struct {
        const char *mid, *end;
        uint8_t half;
    } forms[] = {
        { ".lora_A", ".weight", GG_HALF_A },
        { ".lora_B", ".weight", GG_HALF_B },
        { ".lora_embedding_A", "", GG_HALF_A },
        { ".lora_embedding_B", "", GG_HALF_B },
    };
    for (size_t i = 0; i < GG_LEN(forms); i++) {
        struct gguf_str s = name;
        if (!gg_str_ends(s, forms[i].end))
            continue;
        s.size -= strlen(forms[i].end);
        if (!gg_str_ends(s, forms[i].mid))
            s = before_last(s);
        if (!gg_str_ends(s, forms[i].mid))
            continue;
        s.size -= strlen(forms[i].mid);
        return gg_str_join(out, GG_CONVERT_NAME, s, ".weight") ? forms[i].half
                                                               : GG_HALF_NONE;
    }
    return GG_HALF_NONE;
}
