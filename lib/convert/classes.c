/* SPDX-License-Identifier: MIT */
/* classes.c - the rows of architectures, all lists together */
#include "config.h"
#include "convert/class_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

static const struct gg_convert_arch *const lists[] = {
    gg_convert_class_dense,  gg_convert_class_early,
    gg_convert_class_kin,    gg_convert_class_experts,
    gg_convert_class_latent, gg_convert_class_routed,
    gg_convert_class_gemma,  gg_convert_class_recurrent,
    gg_convert_class_delta,  gg_convert_class_encoder,
    gg_convert_class_vision, gg_convert_class_plamo,
};

const struct gg_convert_arch *gg_convert_arch_row(size_t n)
{
    for (size_t i = 0; i < GG_LEN(lists); i++)
        for (const struct gg_convert_arch *a = lists[i]; a->classes; a++)
            if (!n--)
                return a;
    return NULL;
}

bool gg_convert_arch_has(const struct gg_convert_arch *arch,
                         struct gguf_str name)
{
    for (const char *p = arch->classes; *p;) {
        const size_t n = strcspn(p, " ");
        if (n == name.size && !memcmp(p, name.data, n))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}
