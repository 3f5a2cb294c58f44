/* SPDX-License-Identifier: MIT */
/* find_class.c - the row of the class that config.json names */
#include "config.h"
#include "convert/convert_int.h"

#include "base/str.h"

#include <math.h>

void gg_convert_limit_layers(struct gguf_convert *c)
{
    const double n =
        c->arch ? gg_convert_count_layers(c, c->arch) : (double)NAN;
    c->n_layers = n >= 0 && n < 1e6 ? (int64_t)n : INT64_MAX;
}

static const json_t *class_of(const json_t *config)
{
    return json_array_get(json_object_get(config, "architectures"), 0);
}

static void find_row(struct gguf_convert *c, struct gguf_str name)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    for (size_t i = 0; !c->arch && gg_convert_arch_row(i); i++) {
        const struct gg_convert_arch *a = gg_convert_arch_row(i);
        if (gg_convert_arch_has_class(a, name) && (!a->when || a->when(&cfg)))
            c->arch = a;
    }
}

/* Words in names of classes of draft models (speculative decoding). */
static const char *const draft_words[] = {
    "Assistant", "DFlash", "DSpark", "Draft", "Eagle", "Speculator"
};

bool gg_convert_is_draft(struct gguf_str name)
{
    for (; name.size; name.data++, name.size--)
        for (size_t i = 0; i < GG_LEN(draft_words); i++)
            if (gg_str_starts(name, draft_words[i]))
                return true;
    return false;
}

bool gg_convert_is_known_class(struct gguf_str name)
{
    for (size_t i = 0; gg_convert_arch_row(i); i++)
        if (gg_convert_arch_has_class(gg_convert_arch_row(i), name))
            return true;
    return false;
}

/* Find the row of the class, or the first of the architecture, that the caller
 * names for a folder of an unknown class. */
static enum gguf_status find_other(struct gguf_convert *c,
                                   struct gguf_str name,
                                   struct gguf_error *err)
{
    const struct gguf_str as = gg_str_z(c->p.as);
    const struct gg_hf_config cfg = gg_convert_config(c);
    struct gg_str_esc e, f;
    if (c->arch && (gg_str_eqz(as, c->arch->arch) ||
                    gg_convert_arch_has_class(c->arch, as)))
        return GGUF_OK;
    if (c->arch || gg_convert_is_known_class(name))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "config.json: class '%s' is known: it is not "
                            "converted as '%s'",
                            gg_str_esc(&e, name), gg_str_esc(&f, as));
    find_row(c, as);
    for (size_t i = 0; !c->arch && gg_convert_arch_row(i); i++) {
        const struct gg_convert_arch *a = gg_convert_arch_row(i);
        if (gg_str_eqz(as, a->arch) && (!a->when || a->when(&cfg)))
            c->arch = a;
    }
    c->is_other = c->arch != NULL;
    return c->arch ? GGUF_OK
                   : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                  "no class or architecture '%s' is known",
                                  gg_str_esc(&e, as));
}

enum gguf_status gg_convert_find_arch(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_convert_text *t = &c->folder.text[GG_CONVERT_CONFIG];
    const json_t *v = class_of(t->json.root);
    struct gguf_str name, inner;
    struct gg_str_esc e;
    c->arch = NULL;
    if (!gg_json_str(v, &name))
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "config.json: \"architectures\" names no class");
    find_row(c, name);
    /* a multimodal model may name the class of its language model */
    if (gg_json_str(class_of(c->folder.config), &inner))
        find_row(c, inner);
    if (c->p.as)
        GG_TRY(find_other(c, name, err));
    gg_convert_limit_layers(c);
    if (!c->arch)
        return gg_error_set(err, GGUF_E_ARCH, gg_json_offset_of(&t->json, v),
                            "config.json: class '%s' is %s",
                            gg_str_esc(&e, name),
                            gg_convert_is_draft(name)
                                ? "a draft model for another model's states; "
                                  "such models are not converted"
                                : "not supported");
    return GGUF_OK;
}
