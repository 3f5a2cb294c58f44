/* SPDX-License-Identifier: MIT */
/* image_quant.c - quantized weights of image models */
#include "config.h"
#include "convert/image/image_quant.h"

#include "convert/image/image.h"

#include "base/compiler.h"
#include "base/json.h"
#include "base/str.h"
#include "convert/folder/folder.h"
#include "data/packed.h"
#include "data/tiled.h"

#include <string.h>

static const char note[] = ".comfy_quant";

struct layer {
    struct gg_safetensors *s;
    const json_t *config; /* object with the format, or its name */
    uint32_t weight;      /* number of the layer's weight */
    struct gg_str_esc said;
};

/* ---- forms ---- */

static enum gguf_status refuse_layer(const struct layer *l,
                                     enum gguf_status st, const char *what,
                                     struct gguf_error *err)
{
    return gg_error_set(err, st, l->s->tensor[l->weight].off,
                        "tensor '%s': %s", l->said.s, what);
}

static enum gguf_status use_f8(const struct layer *l, struct gguf_error *err)
{
    return l->s->tensor[l->weight].type->f8
               ? GGUF_OK
               : refuse_layer(l, GGUF_E_TENSOR,
                              "not 8-bit floats, as its "
                              "comfy_quant says",
                              err);
}

static enum gguf_status use_nvfp4(const struct layer *l,
                                  struct gguf_error *err)
{
    return gg_tiled_join(l->s, l->weight, GG_TILED_NVFP4, err);
}

static enum gguf_status use_mxfp8(const struct layer *l,
                                  struct gguf_error *err)
{
    return gg_tiled_join(l->s, l->weight, GG_TILED_MXFP8, err);
}

/* Signed bytes with a scale for all or for each row. */
static enum gguf_status use_int8(const struct layer *l, struct gguf_error *err)
{
    static const struct gg_packed_config config = { .form = GG_PACKED_INT };
    const json_t *params = json_object_get(l->config, "params");
    if (json_is_true(json_object_get(l->config, "convrot")) ||
        json_is_true(json_object_get(params, "convrot")))
        return refuse_layer(l, GGUF_E_UNSUPPORTED,
                            "rotated weights (convrot) are not supported",
                            err);
    if (strcmp(l->s->tensor[l->weight].type->name, "I8") != 0)
        return refuse_layer(l, GGUF_E_TENSOR,
                            "not signed bytes, as its comfy_quant says", err);
    return gg_packed_join_one(l->s, l->weight, &config, err);
}

static const struct {
    const char *name;
    enum gguf_status (*use)(const struct layer *l, struct gguf_error *err);
} forms[] = {
    { "float8_e4m3fn", use_f8 },     { "float8_e5m2", use_f8 },
    { "nvfp4", use_nvfp4 },          { "mxfp8", use_mxfp8 },
    { "int8_tensorwise", use_int8 },
};

static enum gguf_status use_layer(const struct layer *l,
                                  struct gguf_error *err)
{
    struct gguf_str name;
    struct gg_str_esc e;
    if (!gg_json_str(json_is_object(l->config)
                         ? json_object_get(l->config, "format")
                         : l->config,
                     &name))
        return refuse_layer(l, GGUF_E_TENSOR, "its comfy_quant lacks a format",
                            err);
    for (size_t i = 0; i < GG_LEN(forms); i++)
        if (gg_str_eqz(name, forms[i].name))
            return forms[i].use(l, err);
    return gg_error_set(err, GGUF_E_UNSUPPORTED, l->s->tensor[l->weight].off,
                        "tensor '%s': format '%s' is not supported", l->said.s,
                        gg_str_esc(&e, name));
}

/* ---- layers ---- */

/* Find the weight of a layer. Returns false if it does not exist. */
static bool find_weight(struct layer *l, const char *prefix,
                        struct gguf_str name)
{
    char begin[256], text[512];
    const struct gguf_str both = { begin, strlen(prefix) + name.size };
    if (!gg_str_join(begin, sizeof begin, gg_str_z(prefix), "") ||
        both.size >= sizeof begin)
        return false;
    memcpy(begin + strlen(prefix), name.data, name.size);
    if (!gg_str_join(text, sizeof text, both, ".weight"))
        return false;
    l->weight = gg_safetensors_find(l->s, gg_str_z(text));
    gg_str_esc(&l->said, gg_str_z(text));
    return l->weight != GG_INDEX_NONE;
}

/* Use the tensor with the text of a layer. */
static enum gguf_status use_note(struct gg_safetensors *s, uint32_t i,
                                 struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &s->tensor[i];
    struct layer l = { .s = s };
    struct gguf_str base = { t->name.data, t->name.size - strlen(note) };
    struct gg_json json;
    struct gg_str_esc e;
    if (!find_weight(&l, "", base))
        return GGUF_OK; /* a layer of another part of the checkpoint */
    if (strcmp(t->type->name, "U8") != 0)
        return gg_error_set(err, GGUF_E_TENSOR, t->off,
                            "tensor '%s': %s are not bytes of a text",
                            gg_str_esc(&e, t->name), t->type->name);
    GG_TRY(gg_safetensors_hold_all(s, i, true, err));
    enum gguf_status st = gg_json_read(&json, (const char *)t->data,
                                       (size_t)t->n_elements, t->off, 0, err);
    (void)gg_safetensors_hold_all(s, i, false, NULL);
    GG_TRY(gg_convert_prefix_error(gg_str_esc(&e, t->name), st, err));
    l.config = json.root;
    st = use_layer(&l, err);
    gg_json_fini(&json);
    return st;
}

static bool has_note(const struct layer *l)
{
    char text[512];
    const struct gguf_str name = l->s->tensor[l->weight].name;
    const struct gguf_str base = { name.data, name.size - strlen(".weight") };
    return gg_str_join(text, sizeof text, base, note) &&
           gg_safetensors_find(l->s, gg_str_z(text)) != GG_INDEX_NONE;
}

/* Use the text of the metadata. A layer with a tensor of its own was used
 * before. */
static enum gguf_status use_metadata(struct gg_safetensors *s,
                                     struct gguf_error *err)
{
    struct gg_json json;
    enum gguf_status st = GGUF_OK;
    const char *name;
    json_t *config;
    if (!s->quantization.data)
        return GGUF_OK;
    GG_TRY(gg_convert_prefix_error("_quantization_metadata",
                                   gg_json_read(&json, s->quantization.data,
                                                s->quantization.size,
                                                s->quantization_off, 0, err),
                                   err));
    json_object_foreach(json_object_get(json.root, "layers"), name, config)
    {
        struct layer l = { .s = s, .config = config };
        const char *prefix;
        for (size_t i = 0; (prefix = gg_image_prefix(i)) && st == GGUF_OK; i++)
            if (find_weight(&l, prefix, gg_str_z(name))) {
                st = has_note(&l) ? GGUF_OK : use_layer(&l, err);
                break;
            }
    }
    gg_json_fini(&json);
    return st;
}

/* Are all numbers of tensor i 1? */
static bool is_one(const struct gg_safetensors *s, uint32_t i)
{
    struct gg_data_rows rows;
    const uint64_t n = s->tensor[i].n_elements;
    bool one = gg_safetensors_unscaled_rows(s, i, &rows) &&
               gg_safetensors_hold_all(s, i, true, NULL) == GGUF_OK;
    for (uint64_t k = 0; one && k < n; k++) {
        float x;
        gg_data_read(&rows, k, 1, &x);
        one = x == 1;
    }
    (void)gg_safetensors_hold_all(s, i, false, NULL);
    return one;
}

/* Scales that belong to no joined weight: those of plain weights must be 1,
 * those of bytes need a text. */
static enum gguf_status check_left(struct gg_safetensors *s,
                                   struct gguf_error *err)
{
    static const char *const ends[] = { ".scale_weight", ".weight_scale" };
    for (uint32_t i = 0; i < s->n_tensors; i++)
        for (size_t k = 0; k < GG_LEN(ends); k++) {
            struct gg_safetensors_tensor *t = &s->tensor[i];
            struct layer l = { .s = s };
            const struct gguf_str base = { t->name.data,
                                           t->name.size - strlen(ends[k]) };
            if (t->is_part || !gg_str_ends(t->name, ends[k]) ||
                !find_weight(&l, "", base))
                continue;
            if (!strcmp(s->tensor[l.weight].type->name, "U8") ||
                !strcmp(s->tensor[l.weight].type->name, "I8"))
                return refuse_layer(&l, GGUF_E_UNSUPPORTED,
                                    "bytes with scales, but no comfy_quant "
                                    "that names their format",
                                    err);
            if (!is_one(s, i))
                return refuse_layer(&l, GGUF_E_TENSOR,
                                    "has a scale, but is not of 8-bit floats",
                                    err);
            t->is_part = true;
        }
    return GGUF_OK;
}

enum gguf_status gg_image_quant_join(struct gg_safetensors *s,
                                     struct gguf_error *err)
{
    for (uint32_t i = 0; i < s->n_tensors; i++)
        if (gg_str_ends(s->tensor[i].name, note))
            GG_TRY(use_note(s, i, err));
    GG_TRY(use_metadata(s, err));
    GG_TRY(gg_safetensors_scale(s, err));
    return check_left(s, err);
}
