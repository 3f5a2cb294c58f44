/* SPDX-License-Identifier: MIT */
/* arch.c - the table of architectures, whose rows lie with their families */
#include "config.h"
#include "model/family/families.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/model_base.h"

#include <string.h>

static const struct gg_arch_family *const families[] = {
#define X(FAMILY) &gg_arch_family_##FAMILY,
    GG_FAMILY_LIST(X)
#undef X
};

const struct gg_arch *gg_arch_next(const struct gg_arch *after)
{
    const struct gg_arch *next = NULL;
    for (size_t i = 0; i < GG_LEN(families); i++)
        for (size_t k = 0; k < families[i]->n; k++) {
            const struct gg_arch *row = &families[i]->rows[k];
            if ((!after || strcmp(row->name, after->name) > 0) &&
                (!next || strcmp(row->name, next->name) < 0))
                next = row;
        }
    return next;
}

const struct gg_arch *gg_arch_find(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(families); i++)
        for (size_t k = 0; k < families[i]->n; k++)
            if (gg_str_eqz(name, families[i]->rows[k].name))
                return &families[i]->rows[k];
    return NULL;
}

static const char *const *const drafts[] = {
#define X(FAMILY) gg_arch_drafts_##FAMILY,
    GG_DRAFT_FAMILY_LIST(X)
#undef X
};

bool gg_arch_is_draft(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(drafts); i++)
        for (const char *const *p = drafts[i]; *p; p++)
            if (gg_str_eqz(name, *p))
                return true;
    return false;
}

const char *gguf_model_arch_at(size_t n)
{
    const struct gg_arch *a = gg_arch_next(NULL);
    while (a && (!a->runs || n-- > 0))
        a = gg_arch_next(a);
    return a ? a->name : NULL;
}
