/* SPDX-License-Identifier: MIT */
/* weight_swap.c - a weight of a model exchanged for that of another */
#include "config.h"
#include "model/weight/weight_swap.h"

#include "base/str.h"

#include <string.h>

bool gg_model_find_weight(const struct gguf_model *m, struct gguf_str name,
                          size_t *i)
{
    for (*i = 0; *i < gg_source_n_tensors(&m->src); ++*i) {
        const struct gguf_str s = gg_source_tensor(&m->src, *i).info->name;
        if (m->of[*i] && s.size == name.size &&
            !memcmp(s.data, name.data, s.size))
            return true;
    }
    return false;
}

bool gg_model_has_scale(const struct gguf_model *m, size_t i)
{
    static const char end[] = ".weight";
    struct gguf_str stem = gg_source_tensor(&m->src, i).info->name;
    char scale[256];
    if (!gg_str_ends(stem, end))
        return false;
    stem.size -= sizeof end - 1;
    return gg_str_join(scale, sizeof scale, stem, ".scale") &&
           gg_source_find(&m->src, scale, NULL);
}

enum gguf_status gg_model_swap(struct gg_model_swapped *was,
                               struct gguf_model *m, size_t i,
                               const struct gguf_model *from, size_t k,
                               struct gguf_error *err)
{
    struct gguf_tensor *t = m->of[i];
    const struct gguf_tensor *by = from->of[k];
    *was = (struct gg_model_swapped){ .t = NULL };
    if (memcmp(t->ne, by->ne, sizeof t->ne) != 0)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "'%s' has another shape in the base model",
                            t->name);
    *was = (struct gg_model_swapped){
        .t = t, .dtype = t->dtype, .buffer = t->buffer, .data = t->data
    };
    memcpy(was->nb, t->nb, sizeof t->nb);
    t->dtype = by->dtype;
    t->buffer = by->buffer;
    t->data = by->data;
    memcpy(t->nb, by->nb, sizeof t->nb);
    return GGUF_OK;
}

void gg_model_swap_back(struct gg_model_swapped *was)
{
    struct gguf_tensor *t = was->t;
    if (!t)
        return;
    t->dtype = was->dtype;
    t->buffer = was->buffer;
    t->data = was->data;
    memcpy(t->nb, was->nb, sizeof t->nb);
    was->t = NULL;
}
