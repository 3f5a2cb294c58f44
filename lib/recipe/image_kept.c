/* SPDX-License-Identifier: MIT */
/* image_kept.c - tensors of image and video models that are not quantized */
#include "config.h"
#include "recipe/image_kept.h"

#include "base/str.h"
#include "file/image_models.h"
#include "gguf/file.h"

#include <string.h>

bool gg_image_kept_has_part(const char *list, struct gguf_str name)
{
    while (list && *list) {
        const size_t n = strcspn(list, " ");
        if (*list == '=' && name.size == n - 1 &&
            !memcmp(name.data, list + 1, n - 1))
            return true;
        for (size_t i = 0; *list != '=' && i + n <= name.size; i++)
            if (!memcmp(name.data + i, list, n))
                return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

static const char *find_parts(struct gguf_str arch)
{
    const struct gg_image_models_row *row = gg_image_models_find(arch);
    return row ? row->kept : NULL;
}

bool gg_image_kept_is_arch(struct gguf_str arch)
{
    return find_parts(arch) != NULL;
}

const char *gg_image_kept_reason(struct gguf_str arch, struct gguf_str name,
                                 const int64_t *ne)
{
    const char *parts = find_parts(arch);
    if (!parts)
        return NULL;
    for (size_t d = 2; d < GGUF_MAX_DIMS; d++)
        if (ne[d] != 1)
            return "kept: no matrix of an image model";
    return gg_str_ends(name, "_norm.weight") ||
                   gg_image_kept_has_part(parts, name)
               ? "kept: input, output or condition of an image model"
               : NULL;
}
