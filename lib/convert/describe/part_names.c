/* SPDX-License-Identifier: MIT */
/* part_names.c - names and types of the tensors of a projector
 *
 * Names of one tensor differ between releases of transformers in leading
 * segments: "visual.", "model.visual." and "thinker.visual." are one tower.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <stdio.h>
#include <string.h>

static const char *const leading[] = { "model.", "thinker.", "base_model." };

static void drop_leading(struct gguf_str *name)
{
    for (size_t i = 0; i < GG_LEN(leading); i++)
        if (gg_str_starts(*name, leading[i])) {
            name->data += strlen(leading[i]);
            name->size -= strlen(leading[i]);
            i = (size_t)-1;
        }
}

/* Is the name in a list of beginnings, and of ends with '*' in front? */
static bool is_listed(const char *list, struct gguf_str name)
{
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, " ");
        const bool at_end = *p == '*';
        const size_t k = n - at_end;
        if (name.size >= k &&
            !memcmp(at_end ? name.data + name.size - k : name.data, p + at_end,
                    k))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

bool gg_convert_is_of_tower(const struct gg_convert_arch *arch,
                            struct gguf_str name)
{
    drop_leading(&name);
    return is_listed(arch->parts, name);
}

bool gg_convert_is_part(const struct gg_convert_arch *arch,
                        struct gguf_str name)
{
    drop_leading(&name);
    return is_listed(arch->parts, name) && !is_listed(arch->unused, name);
}

bool gg_convert_normalize_part(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               bool *nothing)
{
    char plain[GG_CONVERT_NAME];
    *nothing = false;
    if (!gg_convert_unwrap(c, name, plain))
        return false;
    name = gg_str_z(plain);
    if (!gg_convert_is_part(c->arch, name)) {
        *nothing = true;
        return false;
    }
    drop_leading(&name);
    (void)gg_convert_strip_prefix(c->arch->strip, &name);
    const int n = snprintf(out, GG_CONVERT_NAME, "%.*s",
                           (int)GG_MIN(name.size, 1000), name.data);
    return n >= 0 && n < GG_CONVERT_NAME;
}

/* Does the name contain an item of a list or, with '^' in front, begin with
 * it? */
static bool contains_any(const char *list, const char *name)
{
    char part[64];
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, " ");
        snprintf(part, sizeof part, "%.*s", (int)n, p);
        if (*part == '^' ? !strncmp(name, part + 1, n - 1)
                         : strstr(name, part) != NULL)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

uint32_t gg_convert_choose_part_type(const struct gguf_convert *c,
                                     const struct gg_composed_tensor *t,
                                     uint32_t own, bool *fixed)
{
    const bool filter = strstr(t->name.data, ".patch_embd.weight");
    *fixed = true;
    if (t->n_dims < 2 || strstr(t->name.data, "position_embd.") ||
        (!filter && !gg_str_ends(t->name, ".weight")) ||
        contains_any(c->arch->always_f32, t->name.data))
        return GGUF_DTYPE_F32;
    if (contains_any(c->arch->always_f16, t->name.data))
        return GGUF_DTYPE_F16;
    *fixed = false;
    if (filter || t->n_dims > 2)
        return own == GGUF_DTYPE_F16 ? own : GGUF_DTYPE_F32;
    return own != UINT32_MAX ? own : GGUF_DTYPE_F32;
}
