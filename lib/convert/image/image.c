/* SPDX-License-Identifier: MIT */
/* image.c - describe the GGUF file of an image or video model */
#include "config.h"
#include "convert/image/image.h"
#include "convert/image/image_quant.h"

#include "base/compiler.h"
#include "base/str.h"
#include "recipe/image_kept.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_NAME = 127, /* bytes of a name that programs for such files read */
    SMALL = 1024,    /* tensors of so few elements are not in BF16 */
    FOLD = 256       /* elements of a row of a folded tensor */
};

enum gguf_status gg_image_read(struct gguf_convert *c,
                               const struct gguf_limits *limits,
                               struct gguf_error *err)
{
    GG_TRY(gg_image_open_weights(c, limits, err));
    GG_TRY(gg_image_quant_join(c->folder.weights, err));
    return gg_image_recognize(c, err);
}

/* ---- the output's tensors ---- */

static float byte_to_float(uint8_t x)
{
    return x;
}

/* Bytes of folders are parts of packed weights; here they are numbers. */
static const struct gg_safetensors_type bytes = {
    "U8", 8, GG_SAFETENSORS_NO_DTYPE, byte_to_float, GGUF_DTYPE_F16
};

/* Is the tensor a parameter, and not the weight or the bias of a layer? Loaders
 * decode BF16 and quantized types in layers only. */
static bool is_bare(struct gguf_str name)
{
    return !gg_str_ends(name, ".weight") && !gg_str_ends(name, ".bias");
}

/* Type of the output. to_bf16: 8-bit floats with scales become BF16. */
static uint32_t choose_type(const struct gg_image_arch *a,
                            const struct gg_safetensors_tensor *t,
                            struct gguf_str name, uint64_t n_elements,
                            bool to_bf16)
{
    const bool small = t->n_dims <= 1 || n_elements <= SMALL;
    const bool f32 =
        small || t->n_dims > 4 || gg_image_kept_has_part(a->f32, name);
    switch (t->type->dtype) {
    case GGUF_DTYPE_F32: return f32 ? GGUF_DTYPE_F32 : GGUF_DTYPE_F16;
    case GGUF_DTYPE_BF16:
        return f32 || is_bare(name) ? GGUF_DTYPE_F32 : GGUF_DTYPE_BF16;
    case GGUF_DTYPE_F64: return GGUF_DTYPE_F32;
    case GGUF_DTYPE_I8:
    case GGUF_DTYPE_I16:
    case GGUF_DTYPE_I32:
    case GGUF_DTYPE_I64: return t->type->dtype;
    default:
        return to_bf16 && (t->scale || t->tiled || t->packed) && !small
                   ? GGUF_DTYPE_BF16
                   : GGUF_DTYPE_F16;
    }
}

/* Has the model more numbers in BF16 than in F16? */
static bool is_mostly_bf16(const struct gg_safetensors *s)
{
    double n_bf16 = 0, n_f16 = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const uint32_t type = s->tensor[i].type->dtype;
        n_bf16 +=
            type == GGUF_DTYPE_BF16 ? (double)s->tensor[i].n_elements : 0;
        n_f16 += type == GGUF_DTYPE_F16 ? (double)s->tensor[i].n_elements : 0;
    }
    return n_bf16 > n_f16;
}

static bool is_folded(const struct gg_image_arch *a, const int64_t *ne,
                      unsigned n_dims, uint64_t n_elements)
{
    return a->folds && n_dims > 1 && n_elements >= 2 * FOLD &&
           !(n_elements % FOLD) && ne[0] % FOLD;
}

static enum gguf_status set_shape_key(struct gguf_convert *c,
                                      const int64_t *ne, unsigned n_dims,
                                      struct gguf_str name,
                                      struct gguf_error *err)
{
    char key[200];
    struct gg_str_esc e;
    int32_t shape[GGUF_MAX_DIMS];
    for (unsigned d = 0; d < n_dims; d++) {
        const int64_t n = ne[n_dims - 1 - d];
        if (n > INT32_MAX)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "tensor '%s': a dimension of %" PRId64
                                ", limit of comfy.gguf.orig_shape is %d",
                                gg_str_esc(&e, name), n, INT32_MAX);
        shape[d] = (int32_t)n;
    }
    snprintf(key, sizeof key, "comfy.gguf.orig_shape.%.*s", (int)name.size,
             name.data);
    return gguf_meta_set_array(c->out.meta, key, GGUF_VAL_I32, shape, n_dims,
                               err);
}

/* Make the parts of a tensor: one for each source, or the halves of one,
 * exchanged. */
static enum gguf_status make_parts(struct gguf_convert *c,
                                   const struct gg_image_source *s,
                                   struct gg_composed_tensor *t,
                                   struct gguf_error *err)
{
    const struct gg_safetensors_tensor *from = c->folder.weights->tensor;
    const size_t n = t->n_parts;
    t->part = gg_mem_arena_alloc(&c->arena, n * sizeof *t->part);
    if (!t->part)
        return gg_error_set_nomem(err, n * sizeof *t->part);
    for (size_t i = 0; i < n; i++) {
        const uint32_t no = s->from[s->swap ? 0 : i];
        const uint64_t ne = from[no].n_elements / (s->swap ? 2 : 1);
        t->part[i] =
            (struct gg_composed_part){ .from = no,
                                       .first = s->swap && !i ? ne : 0,
                                       .n_dims = 1,
                                       .ne = { ne },
                                       .step = { 1 } };
    }
    return GGUF_OK;
}

static void list_sources(struct gguf_convert *c, size_t no,
                         const struct gg_image_source *s)
{
    c->out.first_item[no] = c->parts.n_items;
    for (unsigned i = 0; i < s->n_from; i++)
        c->parts.item[c->parts.n_items++] =
            (struct gg_convert_item){ .to = s->name, .from = s->from[i] };
}

/* Add a tensor of the output. */
static enum gguf_status add_tensor(struct gguf_convert *c,
                                   const struct gg_image_source *s,
                                   bool to_bf16, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *from =
        &c->folder.weights->tensor[s->from[0]];
    const size_t no = c->out.n_tensors++;
    struct gg_composed_tensor *t = &c->out.made[no];
    int64_t ne[GGUF_MAX_DIMS];
    uint64_t n_elements = 0;
    GG_TRY(gg_image_join(c, s, ne, err));
    for (unsigned i = 0; i < s->n_from; i++)
        n_elements += c->folder.weights->tensor[s->from[i]].n_elements;
    const bool folded = is_folded(c->image, ne, from->n_dims, n_elements);
    *t = (struct gg_composed_tensor){
        .name = s->name,
        .dtype = choose_type(c->image, from, s->name, n_elements, to_bf16),
        .n_dims = GG_MIN(GG_MAX(from->n_dims, 1u), 4u),
    };
    t->n_parts = !n_elements ? 0 : s->swap ? 2 : s->n_from;
    if (t->n_parts)
        GG_TRY(make_parts(c, s, t, err));
    memcpy(t->ne, ne, sizeof t->ne);
    for (unsigned d = 4; d < GGUF_MAX_DIMS; d++)
        t->ne[3] *= ne[d];
    if (folded) {
        t->n_dims = 2;
        t->ne[0] = FOLD;
        t->ne[1] = (int64_t)(n_elements / FOLD);
        t->ne[2] = t->ne[3] = 1;
    }
    list_sources(c, no, s);
    c->out.tensor[no] = (struct gguf_convert_tensor){
        .name = s->name.data,
        .n_dims = t->n_dims,
        .dtype = t->dtype,
        .from = from->name.data,
        .n_from = s->n_from,
        .how = folded             ? "as rows of 256"
               : from->n_dims > 4 ? "slowest dimensions joined"
               : s->n_from > 1    ? "rows of all"
               : s->swap          ? "halves exchanged"
                                  : "as it is",
    };
    memcpy(c->out.tensor[no].ne, t->ne, sizeof t->ne);
    return folded || from->n_dims > 4
               ? set_shape_key(c, ne, from->n_dims, s->name, err)
               : GGUF_OK;
}

/* Does the tensor say how others are stored, or what activations were? */
static bool is_note(struct gguf_str name)
{
    static const char *const ends[] = { ".scale_input", ".input_scale",
                                        ".comfy_quant", "scaled_fp8" };
    for (size_t i = 0; i < GG_LEN(ends); i++)
        if (gg_str_ends(name, ends[i]))
            return true;
    return false;
}

static enum gguf_status place_tensor(struct gguf_convert *c, uint32_t i,
                                     bool to_bf16, struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = &c->folder.weights->tensor[i];
    const struct gguf_str prefix = c->folder.prefix;
    struct gg_str_esc e;
    struct gguf_str name = t->name;
    if (t->is_part)
        return GGUF_OK;
    const bool is_own = name.size > prefix.size &&
                        !memcmp(name.data, prefix.data, prefix.size);
    if (is_own) {
        name.data += prefix.size;
        name.size -= prefix.size;
    }
    if (!is_own || is_note(name) ||
        gg_image_kept_has_part(c->image->dropped, name)) {
        c->parts.left[c->parts.n_left++] = i;
        return GGUF_OK;
    }
    struct gg_image_source from = { .name = name, .from = { i }, .n_from = 1 };
    if (c->image_layout)
        GG_TRY(gg_image_rename(c, name, &from, err));
    if (from.name.size > MOST_NAME)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "tensor '%s': a name of %zu bytes, limit is %d",
                            gg_str_esc(&e, from.name), from.name.size,
                            MOST_NAME);
    if (!strcmp(t->type->name, "U8") || !strcmp(t->type->name, "BOOL"))
        t->type = &bytes;
    return from.n_from ? add_tensor(c, &from, to_bf16, err) : GGUF_OK;
}

/* ---- all of it ---- */

static enum gguf_status allocate_lists(struct gguf_convert *c, size_t n,
                                       struct gguf_error *err)
{
    const struct gguf_allocator *a = c->p.allocator;
    c->parts.item = gg_mem_alloc_zero(a, n + 1, sizeof *c->parts.item);
    c->parts.left = gg_mem_alloc_zero(a, n + 1, sizeof *c->parts.left);
    c->out.made = gg_mem_alloc_zero(a, n + 1, sizeof *c->out.made);
    c->out.tensor = gg_mem_alloc_zero(a, n + 1, sizeof *c->out.tensor);
    c->out.first_item = gg_mem_alloc_zero(a, n + 1, sizeof *c->out.first_item);
    return c->parts.item && c->parts.left && c->out.made && c->out.tensor &&
                   c->out.first_item
               ? GGUF_OK
               : gg_error_set_nomem(err, n * sizeof *c->out.made);
}

/* general.file_type: BF16 or F16, the type of more numbers. */
static uint32_t file_type(const struct gguf_convert *c)
{
    double n_bf16 = 0, n_other = 0;
    for (size_t i = 0; i < c->out.n_tensors; i++) {
        const struct gguf_convert_tensor *t = &c->out.tensor[i];
        const double n = (double)t->ne[0] * (double)t->ne[1] *
                         (double)t->ne[2] * (double)t->ne[3];
        *(t->dtype == GGUF_DTYPE_BF16 ? &n_bf16 : &n_other) += n;
    }
    return n_bf16 > n_other ? 32 : 1;
}

enum gguf_status gg_image_describe(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    const struct gg_safetensors *s = c->folder.weights;
    struct gguf_meta *meta = c->out.meta;
    const bool to_bf16 = is_mostly_bf16(s);
    GG_TRY(allocate_lists(c, s->n_tensors, err));
    GG_TRY(
        gguf_meta_set_strz(meta, "general.architecture", c->image->name, err));
    GG_TRY(gguf_meta_set_u32(meta, "general.quantization_version", 2, err));
    GG_TRY(gguf_meta_set_u32(meta, "general.file_type", 1, err));
    if (s->config.data)
        GG_TRY(gguf_meta_set_str(meta, "config", s->config, err));
    for (size_t i = 0; i < s->n_tensors; i++)
        GG_TRY(place_tensor(c, (uint32_t)i, to_bf16, err));
    GG_TRY(gguf_meta_set_u32(meta, "general.file_type", file_type(c), err));
    c->out.summary.kind = "image or video model";
    c->out.summary.class_name = c->image->name;
    c->out.summary.reason = "its tensors";
    return gg_data_composed_init(&c->out.data, &s->list, c->out.made,
                                 c->out.n_tensors, c->p.allocator, err);
}
