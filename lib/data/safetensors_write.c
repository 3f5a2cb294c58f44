/* SPDX-License-Identifier: MIT */
/* safetensors_write.c - write tensors as .safetensors files */
#include "config.h"
#include "data/safetensors_write.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *type_name(uint32_t dtype)
{
    return dtype == GGUF_DTYPE_F32   ? "F32"
           : dtype == GGUF_DTYPE_F16 ? "F16"
           : dtype == GGUF_DTYPE_I32 ? "I32"
           : dtype == GGUF_DTYPE_I64 ? "I64"
                                     : "BF16";
}

enum gguf_status gg_safetensors_writer_divide(
    struct gg_safetensors_writer *w,
    struct gg_safetensors_writer_tensor *tensor, size_t n, uint64_t max_size,
    const struct gguf_allocator *allocator, struct gguf_error *err)
{
    uint64_t in_file = 0;
    *w = (struct gg_safetensors_writer){ allocator, tensor, n, n > 0, 0 };
    for (size_t i = 0; i < n; i++) {
        struct gg_safetensors_writer_tensor *t = &tensor[i];
        t->size = t->dtype == GGUF_DTYPE_I64 ? 8
                  : t->dtype == GGUF_DTYPE_F32 || t->dtype == GGUF_DTYPE_I32
                      ? 4
                      : 2;
        for (unsigned d = 0; d < t->n_dims; d++)
            if (gg_ckd_mul(&t->size, t->size, (uint64_t)t->ne[d]))
                return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                                    "a tensor is too large");
        if (gg_ckd_add(&w->total, w->total, t->size))
            return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                                "all tensors together are too large");
        if (max_size && in_file &&
            (in_file >= max_size || t->size > max_size - in_file)) {
            w->n_files++;
            in_file = 0;
        }
        in_file += t->size;
        t->file_no = w->n_files - 1;
    }
    return GGUF_OK;
}

void gg_safetensors_writer_file_name(const struct gg_safetensors_writer *w,
                                     size_t file_no, char out[64])
{
    if (w->n_files == 1)
        snprintf(out, 64, "model.safetensors");
    else
        snprintf(out, 64, "model-%05zu-of-%05zu.safetensors", file_no + 1,
                 w->n_files);
}

static json_t *make_entry(const struct gg_safetensors_writer_tensor *t,
                          uint64_t off)
{
    json_t *shape = json_array();
    for (unsigned d = t->n_dims; d-- > 0;)
        json_array_append_new(shape, json_integer(t->ne[d]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type_name(t->dtype),
                     "shape", shape, "data_offsets", (json_int_t)off,
                     (json_int_t)off + (json_int_t)t->size);
}

/* Format v, which is freed, with room for `before` bytes in front, padded with
 * blanks to a multiple of 8. */
static enum gguf_status dump_text(const struct gg_safetensors_writer *w,
                                  json_t *v, size_t flags, size_t before,
                                  uint8_t **out, size_t *size,
                                  struct gguf_error *err)
{
    char *text = gg_json_make_text(v, flags);
    const size_t n = text ? strlen(text) : 0;
    const size_t room = (n + 7) / 8 * 8;
    *out = text ? gg_mem_alloc(w->allocator, before + room + 1) : NULL;
    if (*out) {
        memcpy(*out + before, text, n);
        memset(*out + before + n, ' ', room - n);
        *size = before + (before ? room : n);
    }
    free(text);
    return *out ? GGUF_OK : gg_error_set_nomem(err, n);
}

static enum gguf_status fail_name(const struct gg_safetensors_writer_tensor *t,
                                  struct gguf_error *err)
{
    struct gg_str_esc esc;
    return gg_json_make_failed()
               ? gg_error_set_nomem(err, t->name.size)
               : gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                              "tensor '%s': the name is not UTF-8",
                              gg_str_esc(&esc, t->name));
}

enum gguf_status
gg_safetensors_writer_header(const struct gg_safetensors_writer *w,
                             size_t file_no, uint8_t **out, size_t *size,
                             struct gguf_error *err)
{
    gg_json_make_begin();
    json_t *root = json_object();
    uint64_t off = 0;
    json_object_set_new(root, "__metadata__",
                        json_pack("{s:s}", "format", "pt"));
    for (size_t i = 0; i < w->n; i++) {
        const struct gg_safetensors_writer_tensor *t = &w->tensor[i];
        if (t->file_no != file_no)
            continue;
        if (json_object_set_new(root, t->name.data, make_entry(t, off))) {
            json_decref(root);
            return fail_name(t, err);
        }
        off += t->size;
    }
    GG_TRY(dump_text(w, root, JSON_COMPACT, 8, out, size, err));
    gg_bytes_store64le(*out, *size - 8);
    return GGUF_OK;
}

enum gguf_status
gg_safetensors_writer_index(const struct gg_safetensors_writer *w, char **out,
                            size_t *size, struct gguf_error *err)
{
    gg_json_make_begin();
    json_t *map = json_object();
    char name[64];
    uint8_t *text;
    for (size_t i = 0; i < w->n; i++) {
        const struct gg_safetensors_writer_tensor *t = &w->tensor[i];
        gg_safetensors_writer_file_name(w, t->file_no, name);
        if (json_object_set_new(map, t->name.data, json_string(name))) {
            json_decref(map);
            return fail_name(t, err);
        }
    }
    GG_TRY(dump_text(w,
                     json_pack("{s:{s:I}, s:o}", "metadata", "total_size",
                               (json_int_t)w->total, "weight_map", map),
                     JSON_INDENT(2), 0, &text, size, err));
    *out = (char *)text;
    return GGUF_OK;
}
