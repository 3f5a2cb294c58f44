/* arch.c - the table of architectures */
#include "config.h"
#include "model/arch.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/model.h"

static const struct gg_arch archs[] = {
    { .name = "llama", .rope = GGUF_ROPE_NORM },
    { .name = "qwen2", .rope = GGUF_ROPE_NEOX },
};

const struct gg_arch *gg_arch_find(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(archs); i++)
        if (gg_str_eqz(name, archs[i].name))
            return &archs[i];
    return NULL;
}

const char *gguf_model_arch_at(size_t n)
{
    return n < GG_LEN(archs) ? archs[n].name : NULL;
}
