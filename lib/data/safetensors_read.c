/* SPDX-License-Identifier: MIT */
/* safetensors_read.c - read the header of a .safetensors file */
#include "config.h"
#include "data/safetensors.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json_scan.h"
#include "base/foreign_format.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGIN = 512 }; /* leading bytes that identify a format */

/* ---- types ---- */

/* Sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, all
 * ones are NaN (OCP 8-bit Floating Point Specification, E4M3). */
static float from_e4m3(uint8_t x)
{
    const int e = x >> 3 & 15, m = x & 7;
    const float v = e == 15 && m == 7 ? NAN
                    : e               ? ldexpf((float)(8 + m), e - 10)
                                      : ldexpf((float)m, -9);
    return x & 0x80 ? -v : v;
}

/* Sign, 5 bits of exponent with bias 15, 2 of mantissa, as IEEE has it
 * (E5M2). */
static float from_e5m2(uint8_t x)
{
    const int e = x >> 2 & 31, m = x & 3;
    const float v = e == 31 ? m ? NAN : INFINITY
                    : e     ? ldexpf((float)(4 + m), e - 17)
                            : ldexpf((float)m, -16);
    return x & 0x80 ? -v : v;
}

/* A power of two with bias 127, all ones are NaN (OCP Microscaling Formats,
 * E8M0). */
static float from_e8m0(uint8_t x)
{
    return x == 255 ? NAN : ldexpf(1, x - 127);
}

#define NONE GG_SAFETENSORS_NO_DTYPE
static const struct gg_safetensors_type types[] = {
    { "F32", 32, GGUF_DTYPE_F32, NULL, GGUF_DTYPE_F32 },
    { "F16", 16, GGUF_DTYPE_F16, NULL, GGUF_DTYPE_F16 },
    { "BF16", 16, GGUF_DTYPE_BF16, NULL, GGUF_DTYPE_BF16 },
    { "F64", 64, GGUF_DTYPE_F64, NULL, GGUF_DTYPE_F32 },
    { "F8_E4M3", 8, NONE, from_e4m3, GGUF_DTYPE_BF16 },
    { "F8_E5M2", 8, NONE, from_e5m2, GGUF_DTYPE_BF16 },
    { "F8_E8M0", 8, NONE, from_e8m0, GGUF_DTYPE_BF16 },
    { "I8", 8, GGUF_DTYPE_I8, NULL, GGUF_DTYPE_F32 },
    { "I16", 16, GGUF_DTYPE_I16, NULL, GGUF_DTYPE_F32 },
    { "I32", 32, GGUF_DTYPE_I32, NULL, GGUF_DTYPE_F32 },
    { "I64", 64, GGUF_DTYPE_I64, NULL, GGUF_DTYPE_F32 },
    { "BOOL", 8, NONE, NULL, NONE },
    { "U8", 8, NONE, NULL, NONE },
    { "U16", 16, NONE, NULL, NONE },
    { "U32", 32, NONE, NULL, NONE },
    { "U64", 64, NONE, NULL, NONE },
    { "F4", 4, NONE, NULL, NONE },
    { "F6_E2M3", 6, NONE, NULL, NONE },
    { "F6_E3M2", 6, NONE, NULL, NONE },
    { "C64", 64, NONE, NULL, NONE },
};

const struct gg_safetensors_type *gg_safetensors_type(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(types); i++)
        if (gg_str_eqz(name, types[i].name))
            return &types[i];
    return NULL;
}

/* ---- one entry ---- */

struct entry {
    const struct gg_json *j;
    const json_t *v; /* JSON object of the entry */
    struct gg_str_esc name;
    struct gg_safetensors_tensor *t;
    uint64_t data_size; /* bytes after the header */
};

static enum gguf_status refuse_entry(const struct entry *e, const json_t *at,
                                     enum gguf_status st, const char *what,
                                     struct gguf_error *err)
{
    return gg_error_set(err, st, gg_json_offset_of(e->j, at ? at : e->v),
                        "tensor '%s': %s", e->name.s, what);
}

static enum gguf_status read_shape(const struct entry *e, uint32_t max_dims,
                                   struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = e->t;
    const json_t *shape = json_object_get(e->v, "shape");
    const size_t n = json_array_size(shape);
    uint64_t bits;
    if (!json_is_array(shape))
        return refuse_entry(e, shape, GGUF_E_FORMAT,
                            "\"shape\" is missing or not a list", err);
    if (n > GG_MIN(max_dims, GGUF_MAX_DIMS)) {
        char what[64];
        snprintf(what, sizeof what, "%zu dimensions, limit is %u", n,
                 (unsigned)GG_MIN(max_dims, GGUF_MAX_DIMS));
        return refuse_entry(e, shape, GGUF_E_LIMIT, what, err);
    }
    t->n_dims = (unsigned)n;
    t->n_elements = 1;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
        t->ne[d] = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(shape, i);
        const json_int_t size = json_integer_value(v);
        if (!json_is_integer(v) || size < 0)
            return refuse_entry(e, v, GGUF_E_FORMAT,
                                "\"shape\" has an element that is not a size",
                                err);
        t->ne[n - 1 - i] = size;
        if (gg_ckd_mul(&t->n_elements, t->n_elements, (uint64_t)size) ||
            gg_ckd_exceeds_cap(t->n_elements))
            return refuse_entry(e, v, GGUF_E_OVERFLOW,
                                "element count overflows", err);
    }
    if (gg_ckd_mul(&bits, t->n_elements, t->type->bits))
        return refuse_entry(e, shape, GGUF_E_OVERFLOW, "size overflows", err);
    if (bits % 8)
        return refuse_entry(e, shape, GGUF_E_FORMAT,
                            "its size is not a whole number of bytes", err);
    t->size = bits / 8;
    return GGUF_OK;
}

static enum gguf_status read_place(const struct entry *e, uint64_t data_off,
                                   struct gguf_error *err)
{
    struct gg_safetensors_tensor *t = e->t;
    const json_t *offs = json_object_get(e->v, "data_offsets");
    const json_t *from = json_array_get(offs, 0);
    const json_t *to = json_array_get(offs, 1);
    if (json_array_size(offs) != 2 || !json_is_integer(from) ||
        !json_is_integer(to))
        return refuse_entry(e, offs, GGUF_E_FORMAT,
                            "\"data_offsets\" are not two numbers", err);
    const json_int_t begin = json_integer_value(from);
    const json_int_t end = json_integer_value(to);
    if (begin < 0 || end < begin)
        return refuse_entry(e, begin < 0 ? from : to, GGUF_E_FORMAT,
                            "\"data_offsets\" go backwards", err);
    if ((uint64_t)end > e->data_size)
        return gg_error_set(err, GGUF_E_TRUNCATED, gg_json_offset_of(e->j, to),
                            "tensor '%s' ends at byte %" PRIu64
                            " of the data, the file has %" PRIu64,
                            e->name.s, (uint64_t)end, e->data_size);
    if ((uint64_t)(end - begin) != t->size)
        return gg_error_set(err, GGUF_E_FORMAT, gg_json_offset_of(e->j, offs),
                            "tensor '%s' has %" PRIu64
                            " bytes, its shape and type %" PRIu64,
                            e->name.s, (uint64_t)(end - begin), t->size);
    t->off = data_off + (uint64_t)begin;
    return GGUF_OK;
}

/* Prepend the prefix, in the arena; data is NULL without memory. */
static struct gguf_str with_prefix(struct gg_safetensors *s,
                                   struct gguf_str prefix,
                                   struct gguf_str name)
{
    char *both = gg_mem_arena_alloc(&s->arena, prefix.size + name.size + 1);
    if (both) {
        memcpy(both, prefix.data, prefix.size);
        memcpy(both + prefix.size, name.data, name.size);
        both[prefix.size + name.size] = 0;
    }
    return (struct gguf_str){ both, prefix.size + name.size };
}

static enum gguf_status read_entry(struct gg_safetensors *s,
                                   const struct gg_json *j,
                                   struct gguf_str name, size_t no,
                                   struct gguf_error *err)
{
    struct gg_safetensors_file *f = s->file[no];
    const json_t *v = j->root;
    const size_t size = name.size;
    struct gguf_str type;
    uint32_t other;
    struct gg_safetensors_tensor *t = gg_safetensors_reserve_tensor(s, err);
    if (!t)
        return GGUF_E_NOMEM;
    *t = (struct gg_safetensors_tensor){ .file_no = (uint32_t)no };
    struct entry e = {
        .j = j, .v = v, .t = t, .data_size = f->map.size - f->data_off
    };
    gg_str_esc(&e.name, name);
    if (!json_is_object(v))
        return refuse_entry(&e, v, GGUF_E_FORMAT, "not an object", err);
    if (size && memchr(name.data, 0, size))
        return refuse_entry(&e, v, GGUF_E_FORMAT, "its name has a NUL", err);
    if (!size || size > s->limits.max_name_size ||
        s->n_tensors >= s->limits.max_tensors)
        return refuse_entry(&e, v, size ? GGUF_E_LIMIT : GGUF_E_FORMAT,
                            !size ? "no name"
                            : size > s->limits.max_name_size
                                ? "the name is too long"
                                : "one tensor too many",
                            err);
    if (!gg_json_str(json_object_get(v, "dtype"), &type))
        return refuse_entry(&e, NULL, GGUF_E_FORMAT,
                            "\"dtype\" is missing or not a text", err);
    t->type = gg_safetensors_type(type);
    if (!t->type)
        return refuse_entry(&e, json_object_get(v, "dtype"),
                            GGUF_E_UNSUPPORTED, "\"dtype\" is unknown", err);
    GG_TRY(read_shape(&e, s->limits.max_dims, err));
    GG_TRY(read_place(&e, f->data_off, err));
    t->name = with_prefix(s, f->prefix, name);
    if (!t->name.data)
        return gg_error_set_nomem(err, size + 1);
    t->data = f->map.data + t->off;
    GG_TRY(gg_index_add(&s->index, (uint32_t)s->n_tensors, &other, err));
    if (other != GG_INDEX_NONE)
        return refuse_entry(&e, NULL, GGUF_E_DUPLICATE,
                            other >= f->first_tensor
                                ? "duplicate name"
                                : "it is in another file too",
                            err);
    s->n_tensors++;
    return GGUF_OK;
}

/* ---- the file ---- */

static int compare_places(const void *a, const void *b)
{
    const struct gg_safetensors_tensor *const *x = a, *const *y = b;
    if ((*x)->off != (*y)->off)
        return (*x)->off < (*y)->off ? -1 : 1;
    return ((*x)->size > (*y)->size) - ((*x)->size < (*y)->size);
}

/* Check that the tensors of file no fill it and share no byte. */
static enum gguf_status check_places(const struct gg_safetensors *s, size_t no,
                                     const uint32_t *place,
                                     struct gguf_error *err)
{
    const struct gg_safetensors_file *f = s->file[no];
    const size_t n = f->n_tensors;
    struct gg_str_esc esc;
    uint64_t at = f->data_off;
    enum gguf_status st = GGUF_OK;
    const struct gg_safetensors_tensor **t =
        gg_mem_alloc_zero(s->allocator, n + 1, sizeof *t);
    if (!t)
        return gg_error_set_nomem(err, n * sizeof *t);
    for (size_t i = 0; i < n; i++)
        t[i] = &s->tensor[f->first_tensor + i];
    qsort(t, n, sizeof *t, compare_places);
    for (size_t i = 0; i < n && st == GGUF_OK;
         at = t[i]->off + t[i]->size, i++)
        if (t[i]->off != at)
            st = gg_error_set(
                err, GGUF_E_FORMAT,
                (uint64_t)place[t[i] - s->tensor - f->first_tensor],
                "tensor '%s' begins at byte %" PRIu64
                " of the file, %s at byte %" PRIu64,
                gg_str_esc(&esc, t[i]->name), t[i]->off,
                t[i]->off < at ? "the one before it ends"
                               : "the gap before it",
                at);
    if (st == GGUF_OK && at != f->map.size)
        st = gg_error_set(err, GGUF_E_FORMAT, at,
                          "%" PRIu64 " bytes after the last tensor",
                          f->map.size - at);
    gg_mem_free(s->allocator, t);
    return st;
}

/* Keep a text of the metadata; *out is unchanged if it is missing. */
static enum gguf_status keep_text(struct gg_safetensors *s, json_t *meta,
                                  const char *key, struct gguf_str *out,
                                  struct gguf_error *err)
{
    struct gguf_str text;
    if (!gg_json_str(json_object_get(meta, key), &text))
        return GGUF_OK;
    out->size = text.size;
    out->data = gg_mem_arena_strndup(&s->arena, text.data, text.size);
    return out->data ? GGUF_OK : gg_error_set_nomem(err, text.size);
}

/* Check that the metadata are texts, and keep those that are used. */
static enum gguf_status read_metadata(struct gg_safetensors *s,
                                      const struct gg_json *j, json_t *meta,
                                      struct gguf_error *err)
{
    static const char forms[] = "_quantization_metadata";
    const char *key;
    json_t *v;
    if (!json_is_object(meta))
        return gg_error_set(err, GGUF_E_FORMAT, gg_json_offset_of(j, meta),
                            "\"__metadata__\" is not an object");
    json_object_foreach(meta, key, v)
    {
        if (!json_is_string(v))
            return gg_error_set(
                err, GGUF_E_FORMAT, gg_json_offset_of(j, v),
                "\"__metadata__\" has a value that is not a text");
    }
    if (json_object_get(meta, forms))
        s->quantization_off =
            gg_json_offset_of(j, json_object_get(meta, forms));
    GG_TRY(keep_text(s, meta, "config", &s->config, err));
    return keep_text(s, meta, forms, &s->quantization, err);
}

/* Entries of a header, read one after another. */
struct header {
    struct gg_json j; /* text of the header, without a tree */
    struct gg_json_scan scan;
    struct gg_mem_arena arena; /* memory of names with escapes */
    uint32_t *place;           /* byte of each tensor's entry in the file */
    size_t room;
    bool has_metadata;
};

/* Read one entry as a tree. A tree of the whole header would take more than a
 * kilobyte per tensor. */
static enum gguf_status read_member(struct gg_safetensors *s, size_t no,
                                    struct header *h, struct gguf_error *err)
{
    struct gg_json one;
    struct gguf_str name;
    struct gg_str_esc e;
    size_t begin, end;
    if (!gg_json_scan_name(&h->scan, &name))
        return gg_json_scan_end(&h->scan, err);
    if (!gg_json_scan_skip(&h->scan, &begin, &end)) {
        GG_TRY(gg_json_scan_end(&h->scan, err));
        return gg_error_set(err, GGUF_E_FORMAT,
                            gg_json_scan_next_offset(&h->scan),
                            "'%s' is not an object", gg_str_esc(&e, name));
    }
    const bool is_metadata = gg_str_eqz(name, "__metadata__");
    const size_t i = s->n_tensors - s->file[no]->first_tensor;
    if (is_metadata && h->has_metadata)
        return gg_error_set(err, GGUF_E_DUPLICATE, h->j.off + begin,
                            "duplicate name '__metadata__'");
    h->has_metadata |= is_metadata;
    if (i == h->room) {
        void *grown = gg_mem_grow(s->allocator, h->place, &h->room,
                                  sizeof *h->place, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        h->place = grown;
    }
    h->place[i] = (uint32_t)(h->j.off + begin);
    GG_TRY(gg_json_read_part(&one, &h->j, begin, end, 0, err));
    const enum gguf_status st = is_metadata
                                    ? read_metadata(s, &one, one.root, err)
                                    : read_entry(s, &one, name, no, err);
    gg_json_fini(&one);
    return st;
}

static enum gguf_status read_entries(struct gg_safetensors *s, size_t no,
                                     struct header *h, struct gguf_error *err)
{
    struct gg_safetensors_file *f = s->file[no];
    f->first_tensor = s->n_tensors;
    gg_json_scan_open_root(&h->scan, &h->j, &h->arena);
    while (gg_json_scan_more(&h->scan))
        GG_TRY(read_member(s, no, h, err));
    GG_TRY(gg_json_scan_finish(&h->scan, err));
    f->n_tensors = s->n_tensors - f->first_tensor;
    return check_places(s, no, h->place, err);
}

/* Get the size of the header, which must be in the file and begin like one. */
static enum gguf_status header_size(struct gg_mapfile *m, uint64_t *size,
                                    struct gguf_error *err)
{
    const uint64_t n = gg_bytes_load64le(m->data);
    if (n > GG_SAFETENSORS_HEADER)
        return gg_error_set(err, GGUF_E_LIMIT, 0,
                            "a header of %" PRIu64 " bytes, limit is %d", n,
                            GG_SAFETENSORS_HEADER);
    if (n > m->size - 8)
        return gg_error_set(err, GGUF_E_TRUNCATED, 0,
                            "a header of %" PRIu64
                            " bytes, the file has %" PRIu64 " more",
                            n, m->size - 8);
    if (m->read)
        GG_TRY(gg_mapfile_fetch(m, 8, 8 + n, err));
    *size = n;
    return n && m->data[8] == '{'
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_FORMAT, 8,
                              "the header does not begin with '{'");
}

/* Fail with the name of a foreign format. Returns false if the file looks like
 * no known format. */
static bool name_foreign_format(const struct gg_mapfile *m,
                                struct gguf_error *err)
{
    const uint64_t n = GG_MIN(m->size, BEGIN);
    const char *is = NULL;
    if (!m->read || gg_mapfile_fetch(m, 0, n, NULL) == GGUF_OK)
        is = gg_foreign_format_name(m->data, n, GG_FOREIGN_BUT_SAFETENSORS);
    if (is)
        gg_error_set(err, GGUF_E_FORMAT, 0,
                     "not a safetensors file; it looks like %s", is);
    return is != NULL;
}

enum gguf_status gg_safetensors_read_header(struct gg_safetensors *s,
                                            size_t no, struct gguf_error *err)
{
    struct gg_safetensors_file *f = s->file[no];
    uint64_t n = 0;
    if (f->map.read && f->map.size >= 8)
        GG_TRY(gg_mapfile_fetch(&f->map, 0, 8, err));
    enum gguf_status st =
        f->map.size < 8
            ? gg_error_set(err, GGUF_E_TRUNCATED, 0,
                           "%" PRIu64
                           " bytes are too few for a .safetensors file",
                           f->map.size)
            : header_size(&f->map, &n, err);
    if (st != GGUF_OK && name_foreign_format(&f->map, err))
        return GGUF_E_FORMAT;
    GG_TRY(st);
    f->data_off = 8 + n;
    struct header h = { .j = { .text = (const char *)f->map.data + 8,
                               .size = (size_t)n,
                               .off = 8 } };
    gg_mem_arena_init(&h.arena, s->allocator);
    st = read_entries(s, no, &h, err);
    gg_mem_free(s->allocator, h.place);
    gg_mem_arena_fini(&h.arena);
    return st;
}
