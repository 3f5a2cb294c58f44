/* SPDX-License-Identifier: MIT */
/* image.c - convert an image or video model in one .safetensors file */
#include "config.h"
#include "convert/image/image.h"

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

/* Prefixes of the model's names in files that hold other parts, too. */
static const char *const prefixes[] = { "model.diffusion_model.",
                                        "model.model.", "net.", "model.", "" };

/* ---- reading ---- */

bool gg_image_is_file(const char *path)
{
    return gg_str_ends(gg_str_z(path), ".safetensors");
}

enum gguf_status gg_image_open(struct gguf_convert *c, const char *path,
                               struct gguf_error *err)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 1;
    const char *folder =
        gg_mem_arena_strndup(&c->arena, slash ? path : ".", n ? n : 1);
    const char *name = slash ? slash + 1 : path;
    c->image_file = gg_mem_arena_strndup(&c->arena, name, strlen(name));
    if (!folder || !c->image_file)
        return gg_error_set_nomem(err, n + strlen(name));
    return gg_folder_open(&c->folder, folder, &c->p, &c->arena, err);
}

static bool has_tensor(const struct gg_safetensors *s, const char *prefix,
                       const char *name, size_t n)
{
    char buf[256];
    const int len = snprintf(buf, sizeof buf, "%s%.*s", prefix, (int)n, name);
    return len > 0 && (size_t)len < sizeof buf &&
           gg_safetensors_find(s, (struct gguf_str){ buf, (size_t)len }) !=
               GG_INDEX_NONE;
}

static bool has_any(const struct gg_safetensors *s, const char *prefix,
                    const char *list)
{
    while (list && *list) {
        const size_t n = strcspn(list, " ");
        if (has_tensor(s, prefix, list, n))
            return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

/* Has the file all names of one of the sets? */
static bool has_set(const struct gg_safetensors *s, const char *prefix,
                    const char *sets)
{
    bool all = true;
    for (const char *p = sets; *p;) {
        const size_t n = strcspn(p, " |");
        all = all && has_tensor(s, prefix, p, n);
        p += n;
        if (all && *p != ' ')
            return true;
        all = all || *p == '|';
        p += *p != 0;
    }
    return false;
}

/* Find the architecture whose names the file has behind a prefix. */
static enum gguf_status try_prefix(struct gguf_convert *c, const char *prefix,
                                   struct gguf_error *err)
{
    const struct gg_safetensors *s = c->folder.weights;
    const struct gg_image_arch *a;
    for (size_t i = 0; (a = gg_image_row(i)); i++) {
        if (!has_set(s, prefix, a->sets) || has_any(s, prefix, a->without))
            continue;
        if (c->image)
            return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                                "the names of its tensors are those of two "
                                "architectures, %s and %s",
                                c->image->name, a->name);
        c->image = a;
        c->folder.prefix = gg_str_z(prefix);
    }
    return GGUF_OK;
}

static enum gguf_status refuse_unknown(const struct gguf_convert *c,
                                       struct gguf_error *err)
{
    const struct gg_image_arch *a;
    for (size_t i = 0; (a = gg_image_row(i)); i++)
        for (size_t k = 0; k < GG_LEN(prefixes); k++)
            if (has_any(c->folder.weights, prefixes[k], a->foreign))
                return gg_error_set(
                    err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                    "has the layout of diffusers, which loaders of GGUF files "
                    "do not take: convert the checkpoint in its authors' "
                    "layout (architecture %s)",
                    a->name);
    struct gg_str_esc e;
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "is a file: a folder is wanted, as '%s', which it is "
                        "in; the names of its tensors are those of no known "
                        "image or video model",
                        gg_str_esc(&e, gg_str_z(c->folder.dir.path)));
}

enum gguf_status gg_image_read(struct gguf_convert *c,
                               const struct gguf_limits *limits,
                               struct gguf_error *err)
{
    bool there;
    GG_TRY(gg_safetensors_create(&c->folder.weights, c->codec, c->p.allocator,
                                 err));
    struct gg_safetensors *s = c->folder.weights;
    s->limits = *limits;
    GG_TRY(gg_safetensors_add_file(s, &c->folder.dir, c->image_file, "",
                                   &there, err));
    if (!there)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "no such file");
    GG_TRY(gg_safetensors_scale(s, err));
    for (size_t k = 0; k < GG_LEN(prefixes) && !c->image; k++)
        GG_TRY(try_prefix(c, prefixes[k], err));
    return c->image ? GGUF_OK : refuse_unknown(c, err);
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
                            struct gguf_str name, bool to_bf16)
{
    const bool small = t->n_dims <= 1 || t->n_elements <= SMALL;
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
        return to_bf16 && t->scale && !small ? GGUF_DTYPE_BF16
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

static bool is_folded(const struct gg_image_arch *a,
                      const struct gg_safetensors_tensor *t)
{
    return a->folds && t->n_dims > 1 && t->n_elements >= 2 * FOLD &&
           !(t->n_elements % FOLD) && t->ne[0] % FOLD;
}

static enum gguf_status set_shape_key(struct gguf_convert *c,
                                      const struct gg_safetensors_tensor *t,
                                      struct gguf_str name,
                                      struct gguf_error *err)
{
    char key[200];
    int32_t shape[GGUF_MAX_DIMS];
    for (unsigned d = 0; d < t->n_dims; d++) {
        const int64_t ne = t->ne[t->n_dims - 1 - d];
        if (ne > INT32_MAX)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "a dimension of %" PRId64
                                " elements, limit is %d",
                                ne, INT32_MAX);
        shape[d] = (int32_t)ne;
    }
    snprintf(key, sizeof key, "comfy.gguf.orig_shape.%.*s", (int)name.size,
             name.data);
    return gguf_meta_set_array(c->out.meta, key, GGUF_VAL_I32, shape,
                               t->n_dims, err);
}

/* Tensor of the output that tensor i of the file becomes. */
static enum gguf_status add_tensor(struct gguf_convert *c, uint32_t i,
                                   struct gguf_str name, bool to_bf16,
                                   struct gguf_error *err)
{
    const struct gg_safetensors_tensor *from = &c->folder.weights->tensor[i];
    const size_t no = c->out.n_tensors++;
    struct gg_composed_tensor *t = &c->out.made[no];
    const bool folded = is_folded(c->image, from);
    struct gg_composed_part *part =
        gg_mem_arena_alloc(&c->arena, sizeof *part);
    if (!part)
        return gg_error_set_nomem(err, sizeof *part);
    *part = (struct gg_composed_part){
        .from = i, .n_dims = 1, .ne = { from->n_elements }, .step = { 1 }
    };
    *t = (struct gg_composed_tensor){
        .name = name,
        .dtype = choose_type(c->image, from, name, to_bf16),
        .n_dims = GG_MIN(GG_MAX(from->n_dims, 1u), 4u),
        .part = part,
        .n_parts = 1,
    };
    for (unsigned d = 0; d < 4; d++)
        t->ne[d] = from->ne[d];
    for (unsigned d = 4; d < GGUF_MAX_DIMS; d++)
        t->ne[3] *= from->ne[d];
    if (folded) {
        t->n_dims = 2;
        t->ne[0] = FOLD;
        t->ne[1] = (int64_t)(from->n_elements / FOLD);
        t->ne[2] = t->ne[3] = 1;
    }
    c->parts.item[no] = (struct gg_convert_item){ .to = name, .from = i };
    c->out.first_item[no] = no;
    c->out.tensor[no] = (struct gguf_convert_tensor){
        .name = name.data,
        .n_dims = t->n_dims,
        .dtype = t->dtype,
        .from = from->name.data,
        .n_from = 1,
        .how = folded             ? "as rows of 256"
               : from->n_dims > 4 ? "slowest dimensions joined"
                                  : "as it is",
    };
    memcpy(c->out.tensor[no].ne, t->ne, sizeof t->ne);
    return folded || from->n_dims > 4 ? set_shape_key(c, from, name, err)
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
    if (name.size > MOST_NAME)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "tensor '%s': a name of %zu bytes, limit is %d",
                            gg_str_esc(&e, name), name.size, MOST_NAME);
    if (!t->n_elements) {
        gg_folder_warn(&c->folder,
                       "tensor '%s' has no elements and is left out",
                       gg_str_esc(&e, name));
        c->parts.left[c->parts.n_left++] = i;
        return GGUF_OK;
    }
    if (!strcmp(t->type->name, "U8") || !strcmp(t->type->name, "BOOL"))
        t->type = &bytes;
    return add_tensor(c, i, name, to_bf16, err);
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
    c->parts.n_items = c->out.n_tensors;
    c->out.summary.kind = "image or video model";
    c->out.summary.class_name = c->image->name;
    c->out.summary.reason = "its tensors";
    return gg_data_composed_init(&c->out.data, &s->list, c->out.made,
                                 c->out.n_tensors, c->p.allocator, err);
}
