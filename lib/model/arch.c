/* SPDX-License-Identifier: MIT */
/* arch.c - the table of architectures, which lies in a file for each family */
#include "config.h"
#include "model/arch.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/model.h"

#include <string.h>

static const struct gg_arch_family *const families[] = {
    &gg_arch_dense,
    &gg_arch_encoder,
    &gg_arch_experts,
    &gg_arch_recurrent,
};
_Static_assert(GG_LEN(families) == GG_ARCH_FAMILIES, "a place for each");

const struct gg_arch *gg_arch_next(struct gg_arch_walk *w)
{
    const struct gg_arch *first = NULL;
    size_t from = 0;
    for (size_t i = 0; i < GG_ARCH_FAMILIES; i++) {
        if (w->at[i] == families[i]->n)
            continue;
        const struct gg_arch *row = &families[i]->rows[w->at[i]];
        if (!first || strcmp(row->name, first->name) < 0) {
            first = row;
            from = i;
        }
    }
    w->at[from] += first != NULL;
    return first;
}

const struct gg_arch *gg_arch_find(struct gguf_str name)
{
    for (size_t i = 0; i < GG_ARCH_FAMILIES; i++)
        for (size_t k = 0; k < families[i]->n; k++)
            if (gg_str_eqz(name, families[i]->rows[k].name))
                return &families[i]->rows[k];
    return NULL;
}

const char *gguf_model_arch_at(size_t n)
{
    struct gg_arch_walk w = { { 0 } };
    const struct gg_arch *a = gg_arch_next(&w);
    while (a && (!a->runs || n-- > 0))
        a = gg_arch_next(&w);
    return a ? a->name : NULL;
}
