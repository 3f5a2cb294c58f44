/* SPDX-License-Identifier: MIT */
/* safetensors_scale.c - scales of tensors of 8-bit floats */
#include "config.h"
#include "data/safetensors.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* Number of elements of a dimension that share one of n scales; 0: they do not
 * fit. */
static uint64_t per_scale(uint64_t ne, uint64_t n, uint64_t block)
{
    if (n == 1)
        return ne ? ne : 1;
    if (n == ne)
        return 1;
    return n == ne / block + (ne % block != 0) ? block : 0;
}

/* Check the shape of a scale. One with one dimension has a scale per row. */
static bool shapes_fit(const struct gg_safetensors *s,
                       const struct gg_safetensors_tensor *t,
                       const struct gg_safetensors_tensor *scale,
                       struct gg_safetensors_scale *out)
{
    const bool rows =
        scale->n_dims == 1 && t->n_dims > 1 && scale->n_elements > 1;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++) {
        const uint64_t n =
            (uint64_t)(rows ? d == 1 ? scale->ne[0] : 1 : scale->ne[d]);
        out->n[d] = n;
        out->per[d] = per_scale((uint64_t)t->ne[d], n, s->block[d > 0]);
        if (!out->per[d])
            return false;
    }
    return true;
}

static enum gguf_status use_scale(struct gg_safetensors *s, size_t i, size_t k,
                                  struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = &s->tensor[i], *scale = &s->tensor[k];
    struct gg_str_esc e;
    struct gg_data_rows rows;
    struct gg_safetensors_scale own;
    size_t bytes;
    if (!shapes_fit(s, t, scale, &own) ||
        !gg_safetensors_unscaled_rows(s, k, &rows))
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s': its shape or type does not fit "
                            "the weight that it scales: %" PRIu64
                            " numbers of %s, for %" PRIu64
                            " elements in rows of %" PRId64,
                            gg_str_esc(&e, scale->name), scale->n_elements,
                            scale->type->name, t->n_elements, t->ne[0]);
    struct gg_safetensors_scale *of =
        gg_ckd_array(&bytes, scale->n_elements, sizeof *of->value)
            ? NULL /* bytes is at most PTRDIFF_MAX: the sum fits */
            : gg_mem_arena_alloc(&s->arena, bytes + sizeof own);
    if (!of)
        return gg_error_set_nomem(err, SIZE_MAX);
    *of = own;
    float *v = of->value;
    GG_TRY(gg_safetensors_hold_all(s, k, true, err));
    gg_data_read(&rows, 0, scale->n_elements, v);
    (void)gg_safetensors_hold_all(s, k, false, NULL);
    for (uint64_t x = 0; x < scale->n_elements; x++)
        if (!isfinite(v[x]))
            return gg_error_set(err, GGUF_E_TENSOR, scale->off,
                                "tensor '%s': scale %" PRIu64 " is not finite",
                                gg_str_esc(&e, scale->name), x);
    t->scale = of;
    scale->is_part = true;
    return GGUF_OK;
}

/* Names of scales: a suffix, and the ending of the weight's name that it
 * replaces. */
static const struct {
    const char *end, *scale;
} names[] = {
    { "", "_scale_inv" },
    { "", "_scale" },
    { ".weight", ".scale" },
    { ".weight", ".scale_weight" },
};

enum gguf_status gg_safetensors_scale(struct gg_safetensors *s,
                                      struct gguf_error *err)
{
    char name[512];
    for (size_t i = 0; i < s->n_tensors; i++)
        for (size_t x = 0; x < GG_LEN(names); x++) {
            const struct gg_safetensors_tensor *t = &s->tensor[i];
            const struct gguf_str base = {
                t->name.data, t->name.size - strlen(names[x].end)
            };
            if (!t->type->f8 || t->scale || !t->n_elements ||
                !gg_str_ends(t->name, names[x].end) ||
                !gg_str_join(name, sizeof name, base, names[x].scale))
                continue;
            const uint32_t k = gg_safetensors_find(s, gg_str_z(name));
            if (k != GG_INDEX_NONE && s->tensor[k].n_elements)
                GG_TRY(use_scale(s, i, k, err));
        }
    return GGUF_OK;
}
