/* SPDX-License-Identifier: MIT */
/* recipe.c - recipes as objects, and the presets */
#include "config.h"
#include "recipe/recipe_int.h"
#include "base/compiler.h"
#include "base/os/os.h"
#include "base/str.h"
#include "gguf/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void gguf_recipe_destroy(struct gguf_recipe *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n_rules; i++)
        gg_pattern_destroy(r->rules[i].pattern);
    gg_mem_free(r->allocator, r->rules);
    gg_mem_free(r->allocator, r->code);
    gg_mem_free(r->allocator, r->archs);
    gg_mem_arena_fini(&r->arena);
    gg_mem_free(r->allocator, r);
}

enum gguf_status gguf_recipe_load(struct gguf_recipe **out, const char *path,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    enum gguf_status st;
    *out = NULL;
    FILE *f = gg_os_stream_open(path, "rb");
    if (!f)
        return gg_error_set_errno(err, errno, "cannot be opened");
    char *text = gg_mem_alloc(allocator, GGUF_RECIPE_MAX_SIZE + 1);
    if (!text) {
        fclose(f);
        return gg_error_set_nomem(err, GGUF_RECIPE_MAX_SIZE + 1);
    }
    errno = 0;
    size_t n = fread(text, 1, GGUF_RECIPE_MAX_SIZE + 1, f);
    if (ferror(f))
        st = gg_error_set_errno(err, errno, "cannot be read");
    else
        st = gguf_recipe_parse(out, (struct gguf_str){ text, n }, allocator,
                               err);
    fclose(f);
    gg_mem_free(allocator, text);
    return st;
}

static bool matches_preset(const struct gg_recipe_preset *preset,
                           const char *name)
{
    /* names are separated by blanks */
    for (const char *p = preset->names; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (gg_str_eq_nocase((struct gguf_str){ p, n }, name))
            return true;
        p += n;
    }
    return false;
}

enum gguf_status gguf_recipe_preset(struct gguf_recipe **out, const char *name,
                                    const struct gguf_allocator *allocator,
                                    struct gguf_error *err)
{
    struct gg_str_esc esc;
    struct gguf_suggestion near;
    char hint[GGUF_SUGGESTION_SIZE];
    *out = NULL;
    for (unsigned i = 0; i < gg_recipe_n_presets; i++)
        if (matches_preset(&gg_recipe_presets[i], name))
            return gguf_recipe_parse(out, gg_str_z(gg_recipe_presets[i].text),
                                     allocator, err);
    gguf_suggestion_init(&near, gg_str_z(name));
    for (unsigned i = 0; i < gg_recipe_n_presets; i++)
        gguf_suggestion_try(&near, gg_str_z(gg_recipe_presets[i].name));
    return gg_error_set(
        err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET, "unknown recipe '%s'%s",
        gg_str_esc(&esc, gg_str_z(name)), gguf_suggestion_text(&near, hint));
}

const char *gguf_recipe_preset_name(size_t n)
{
    return n < gg_recipe_n_presets ? gg_recipe_presets[n].name : NULL;
}

const char *gguf_recipe_preset_about(size_t n)
{
    return n < gg_recipe_n_presets ? gg_recipe_presets[n].about : NULL;
}

struct gguf_str gguf_recipe_text(const struct gguf_recipe *r)
{
    return r->text;
}

const char *gguf_recipe_name(const struct gguf_recipe *r)
{
    return r->name;
}

const char *gguf_recipe_about(const struct gguf_recipe *r)
{
    return r->about;
}

enum gguf_status
gg_recipe_find_rule(const struct gguf_recipe *r, enum gg_recipe_class cls,
                    const char *name, const struct gg_recipe_facts *facts,
                    const struct gg_recipe_rule **out, struct gguf_error *err)
{
    *out = NULL;
    for (uint32_t i = 0; i < r->n_rules; i++) {
        const struct gg_recipe_rule *rule = &r->rules[i];
        if (rule->cls != GG_CLASS_OTHER && rule->cls != cls)
            continue;
        bool found = true;
        if (rule->pattern)
            GG_TRY(gg_pattern_match(rule->pattern, name, &found, err));
        if (found && gg_recipe_rule_holds(r, rule, facts)) {
            *out = rule;
            break;
        }
    }
    return GGUF_OK;
}
