/* SPDX-License-Identifier: MIT */
/* kv.c - value types, and getters that decode values */
#include "config.h"
#include "file/value.h"
#include "base/ckd.h"
#include "base/str.h"

#include <string.h>

static const struct {
    const char *name, *alias;
    size_t size; /* bytes of a scalar; 0: not a scalar */
    enum gg_value_kind kind;
} types[GGUF_N_VAL_TYPES] = {
    [GGUF_VAL_U8] = { "u8", "uint8", 1, GG_KIND_UINT },
    [GGUF_VAL_I8] = { "i8", "int8", 1, GG_KIND_INT },
    [GGUF_VAL_U16] = { "u16", "uint16", 2, GG_KIND_UINT },
    [GGUF_VAL_I16] = { "i16", "int16", 2, GG_KIND_INT },
    [GGUF_VAL_U32] = { "u32", "uint32", 4, GG_KIND_UINT },
    [GGUF_VAL_I32] = { "i32", "int32", 4, GG_KIND_INT },
    [GGUF_VAL_F32] = { "f32", "float32", 4, GG_KIND_FLOAT },
    [GGUF_VAL_BOOL] = { "bool", "boolean", 1, GG_KIND_BOOL },
    [GGUF_VAL_STR] = { "str", "string", 0, GG_KIND_STR },
    [GGUF_VAL_ARR] = { "arr", "array", 0, GG_KIND_ARR },
    [GGUF_VAL_U64] = { "u64", "uint64", 8, GG_KIND_UINT },
    [GGUF_VAL_I64] = { "i64", "int64", 8, GG_KIND_INT },
    [GGUF_VAL_F64] = { "f64", "float64", 8, GG_KIND_FLOAT },
};

const char *gguf_val_type_name(uint32_t type)
{
    return type < GGUF_N_VAL_TYPES ? types[type].name : "?";
}

bool gguf_val_type_find(const char *name, enum gguf_val_type *type)
{
    for (int i = 0; i < GGUF_N_VAL_TYPES; i++)
        if (gg_str_eq_nocase(gg_str_z(types[i].name), name) ||
            gg_str_eq_nocase(gg_str_z(types[i].alias), name)) {
            *type = (enum gguf_val_type)i;
            return true;
        }
    return false;
}

size_t gguf_val_type_size(uint32_t type)
{
    return type < GGUF_N_VAL_TYPES ? types[type].size : 0;
}

enum gg_value_kind gg_value_kind(uint32_t type)
{
    return types[type].kind;
}

uint64_t gg_value_load_bits(const void *p, size_t size, bool big_endian)
{
    const uint8_t *b = p;
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v |= (uint64_t)b[big_endian ? size - 1 - i : i] << 8 * i;
    return v;
}

/* ------------------------------------------------------------ failures --- */

static enum gguf_status fail_null(struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET, "no such key");
}

static enum gguf_status fail_type(const struct gguf_kv *kv, const char *wanted,
                                  struct gguf_error *err)
{
    struct gg_kv_label l;
    bool arr = kv->type == GGUF_VAL_ARR;
    return gg_error_set(err, GGUF_E_TYPE, kv->off, "%s is %s%s, expected %s",
                        gg_kv_label(&l, kv), arr ? "an array of " : "",
                        gguf_val_type_name(arr ? kv->elem_type : kv->type),
                        wanted);
}

static enum gguf_status want_type(const struct gguf_kv *kv, uint32_t type,
                                  struct gguf_error *err)
{
    if (!kv)
        return fail_null(err);
    if (kv->type != type)
        return fail_type(kv, types[type].name, err);
    return GGUF_OK;
}

/* ------------------------------------------------------------- scalars --- */

/* Load a number of type at p, sign-extended. */
static uint64_t bits_of(const void *p, uint32_t type, bool big_endian)
{
    size_t size = types[type].size;
    uint64_t v = gg_value_load_bits(p, size, big_endian);
    if (types[type].kind == GG_KIND_INT && size < 8) {
        uint64_t sign = UINT64_C(1) << (8 * size - 1);
        v = (v ^ sign) - sign;
    }
    return v;
}

static uint64_t kv_bits(const struct gguf_kv *kv)
{
    return bits_of(kv->data, kv->type, kv->big_endian);
}

/* Define gguf_kv_get_NAME() for type TYPE. VALUE is computed from the bits
 * v. */
#define GETTER(NAME, CTYPE, TYPE, VALUE)                                      \
    enum gguf_status gguf_kv_get_##NAME(const struct gguf_kv *kv, CTYPE *out, \
                                        struct gguf_error *err)               \
    {                                                                         \
        GG_TRY(want_type(kv, TYPE, err));                                     \
        uint64_t v = kv_bits(kv);                                             \
        *out = VALUE;                                                         \
        return GGUF_OK;                                                       \
    }
GETTER(u8, uint8_t, GGUF_VAL_U8, (uint8_t)v)
GETTER(i8, int8_t, GGUF_VAL_I8, (int8_t)(int64_t)v)
GETTER(u16, uint16_t, GGUF_VAL_U16, (uint16_t)v)
GETTER(i16, int16_t, GGUF_VAL_I16, (int16_t)(int64_t)v)
GETTER(u32, uint32_t, GGUF_VAL_U32, (uint32_t)v)
GETTER(i32, int32_t, GGUF_VAL_I32, (int32_t)(int64_t)v)
GETTER(u64, uint64_t, GGUF_VAL_U64, v)
GETTER(i64, int64_t, GGUF_VAL_I64, (int64_t)v)
GETTER(f32, float, GGUF_VAL_F32, gg_bytes_f32_from_bits((uint32_t)v))
GETTER(f64, double, GGUF_VAL_F64, gg_bytes_f64_from_bits(v))
GETTER(bool, bool, GGUF_VAL_BOOL, v != 0)

enum gguf_status gguf_kv_get_str(const struct gguf_kv *kv,
                                 struct gguf_str *out, struct gguf_error *err)
{
    GG_TRY(want_type(kv, GGUF_VAL_STR, err));
    *out = (struct gguf_str){ kv->data, kv->size };
    return GGUF_OK;
}

/* Is the integer with bits v in [min, max]? max is compared with values that
 * are not negative. */
static bool in_range(enum gg_value_kind kind, uint64_t v, int64_t min,
                     uint64_t max)
{
    bool negative = kind == GG_KIND_INT && (int64_t)v < 0;
    return negative ? (int64_t)v >= min : v <= max;
}

static enum gguf_status fail_range(const struct gguf_kv *kv,
                                   enum gg_value_kind kind, uint64_t v,
                                   int64_t min, uint64_t max,
                                   struct gguf_error *err)
{
    struct gg_kv_label l;
    if (kind == GG_KIND_INT && (int64_t)v < 0)
        return gg_error_set(err, GGUF_E_OVERFLOW, kv->off,
                            "%s is %" PRId64 ", expected at least %" PRId64,
                            gg_kv_label(&l, kv), (int64_t)v, min);
    return gg_error_set(err, GGUF_E_OVERFLOW, kv->off,
                        "%s is %" PRIu64 ", expected at most %" PRIu64,
                        gg_kv_label(&l, kv), v, max);
}

static enum gguf_status get_integer(const struct gguf_kv *kv, int64_t min,
                                    uint64_t max, uint64_t *out,
                                    struct gguf_error *err)
{
    if (!kv)
        return fail_null(err);
    enum gg_value_kind kind = types[kv->type].kind;
    if (kind != GG_KIND_UINT && kind != GG_KIND_INT)
        return fail_type(kv, "an integer", err);
    uint64_t v = kv_bits(kv);
    if (!in_range(kind, v, min, max))
        return fail_range(kv, kind, v, min, max, err);
    *out = v;
    return GGUF_OK;
}

enum gguf_status gguf_kv_get_uint(const struct gguf_kv *kv, uint64_t *out,
                                  struct gguf_error *err)
{
    return get_integer(kv, 0, UINT64_MAX, out, err);
}

enum gguf_status gguf_kv_get_int(const struct gguf_kv *kv, int64_t *out,
                                 struct gguf_error *err)
{
    uint64_t v;
    GG_TRY(get_integer(kv, INT64_MIN, INT64_MAX, &v, err));
    *out = (int64_t)v;
    return GGUF_OK;
}

/* Convert a number with bits v to a double. */
static double number_of(uint32_t type, uint64_t v)
{
    switch (types[type].kind) {
    case GG_KIND_FLOAT:
        return types[type].size == 4
                   ? (double)gg_bytes_f32_from_bits((uint32_t)v)
                   : gg_bytes_f64_from_bits(v);
    case GG_KIND_INT: return (double)(int64_t)v;
    default: return (double)v;
    }
}

enum gguf_status gguf_kv_get_float(const struct gguf_kv *kv, double *out,
                                   struct gguf_error *err)
{
    if (!kv)
        return fail_null(err);
    if (types[kv->type].kind > GG_KIND_FLOAT)
        return fail_type(kv, "a number", err);
    *out = number_of(kv->type, kv_bits(kv));
    return GGUF_OK;
}

/* -------------------------------------------------------------- arrays --- */

static enum gguf_status want_array(const struct gguf_kv *kv,
                                   struct gguf_error *err)
{
    if (!kv)
        return fail_null(err);
    return kv->type == GGUF_VAL_ARR ? GGUF_OK : fail_type(kv, "an array", err);
}

enum gguf_status gguf_kv_check_array(const struct gguf_kv *kv,
                                     uint32_t elem_type,
                                     struct gguf_error *err)
{
    GG_TRY(want_array(kv, err));
    if (kv->elem_type == elem_type)
        return GGUF_OK;
    struct gg_kv_label l;
    return gg_error_set(err, GGUF_E_TYPE, kv->off,
                        "%s is an array of %s, expected %s",
                        gg_kv_label(&l, kv), gguf_val_type_name(kv->elem_type),
                        gguf_val_type_name(elem_type));
}

void gguf_kv_iter_init(struct gguf_kv_iter *it, const struct gguf_kv *kv)
{
    *it = (struct gguf_kv_iter){ .kv = kv };
}

/* The array was checked when the file was opened. It is checked again, because
 * the file may change under its mapping. */
bool gguf_kv_iter_next(struct gguf_kv_iter *it, struct gguf_kv *out)
{
    const struct gguf_kv *kv = it->kv;
    if (!kv || kv->type != GGUF_VAL_ARR || it->i >= kv->n)
        return false;
    static const struct gguf_limits any = {
        .max_str_size = UINT64_MAX,
        .max_array_items = UINT64_MAX,
        .max_depth = GGUF_MAX_DEPTH,
    };
    struct gg_cursor c = { .base = kv->data,
                           .size = kv->size,
                           .off = it->pos,
                           .swap = kv->big_endian };
    *out = (struct gguf_kv){ .key = kv->key,
                             .type = kv->elem_type,
                             .key_off = kv->key_off };
    out->index = it->i;
    if (gg_value_read(&c, &any, out, NULL) != GGUF_OK)
        return false;
    out->off = kv->off == GGUF_NO_OFFSET ? kv->off : kv->off + 12 + it->pos;
    it->pos = (size_t)c.off;
    it->i++;
    return true;
}

bool gguf_kv_iter_next_str(struct gguf_kv_iter *it, struct gguf_str *out)
{
    const struct gguf_kv *kv = it->kv;
    if (!kv || kv->elem_type != GGUF_VAL_STR || kv->type != GGUF_VAL_ARR ||
        it->i >= kv->n || kv->size - it->pos < 8)
        return false;
    const uint8_t *p = (const uint8_t *)kv->data + it->pos;
    uint64_t n = gg_bytes_load64le(p);
    n = kv->big_endian ? gg_bytes_swap64(n) : n;
    if (n > kv->size - it->pos - 8)
        return false;
    *out = (struct gguf_str){ (const char *)p + 8, (size_t)n };
    it->pos += 8 + (size_t)n;
    it->i++;
    return true;
}

/* Are two lists of numbers of width bytes equal, in opposite byte orders? */
static bool same_reversed(const uint8_t *a, const uint8_t *b, size_t size,
                          size_t width)
{
    for (size_t i = 0; i < size; i += width)
        for (size_t k = 0; k < width; k++)
            if (a[i + k] != b[i + width - 1 - k])
                return false;
    return true;
}

bool gguf_kv_equal(const struct gguf_kv *a, const struct gguf_kv *b)
{
    if (!a || !b)
        return a == b;
    if (a->type != b->type || a->elem_type != b->elem_type || a->n != b->n ||
        a->size != b->size)
        return false;
    if (!a->size)
        return true;
    if (!a->big_endian == !b->big_endian || a->type == GGUF_VAL_STR)
        return !memcmp(a->data, b->data, a->size);
    if (types[a->elem_type].size)
        return same_reversed(a->data, b->data, a->size,
                             types[a->elem_type].size);
    struct gguf_kv_iter i, k;
    struct gguf_kv x, y;
    gguf_kv_iter_init(&i, a);
    gguf_kv_iter_init(&k, b);
    while (gguf_kv_iter_next(&i, &x) && gguf_kv_iter_next(&k, &y))
        if (!gguf_kv_equal(&x, &y)) /* recursion: max_depth */
            return false;
    return true;
}

static enum gguf_status check_range(const struct gguf_kv *kv, uint64_t first,
                                    uint64_t n, struct gguf_error *err)
{
    GG_TRY(want_array(kv, err));
    if (first <= kv->n && n <= kv->n - first)
        return GGUF_OK;
    struct gg_kv_label l;
    return gg_error_set(err, GGUF_E_INVALID, kv->off,
                        "%s has %" PRIu64 " elements: no %" PRIu64
                        " from %" PRIu64,
                        gg_kv_label(&l, kv), kv->n, n, first);
}

enum gguf_status gguf_kv_get_elem(const struct gguf_kv *kv, uint64_t i,
                                  struct gguf_kv *out, struct gguf_error *err)
{
    GG_TRY(check_range(kv, i, 1, err));
    struct gguf_kv_iter it = { .kv = kv };
    size_t size = types[kv->elem_type].size;
    if (size) {
        it.i = i;
        it.pos = (size_t)i * size;
        if (gguf_kv_iter_next(&it, out))
            return GGUF_OK;
    } else {
        while (gguf_kv_iter_next(&it, out))
            if (out->index == i)
                return GGUF_OK;
    }
    struct gg_kv_label l;
    return gg_error_set(err, GGUF_E_FORMAT, kv->off,
                        "%s changed while it was read", gg_kv_label(&l, kv));
}

/* Describe element i for messages. */
static const struct gguf_kv *elem_label(const struct gguf_kv *kv, uint64_t i,
                                        struct gguf_kv *e)
{
    *e = *kv;
    e->index = i;
    e->type = kv->elem_type;
    if (e->off != GGUF_NO_OFFSET)
        e->off += 12 + i * types[kv->elem_type].size;
    return e;
}

enum gguf_status gguf_kv_get_elems_f32(const struct gguf_kv *kv,
                                       uint64_t first, size_t n, float *dst,
                                       struct gguf_error *err)
{
    GG_TRY(check_range(kv, first, n, err));
    if (types[kv->elem_type].kind != GG_KIND_FLOAT)
        return fail_type(kv, "an array of floats", err);
    size_t size = types[kv->elem_type].size;
    const uint8_t *p = (const uint8_t *)kv->data + first * size;
    for (size_t i = 0; i < n; i++, p += size)
        dst[i] = (float)number_of(kv->elem_type,
                                  bits_of(p, kv->elem_type, kv->big_endian));
    return GGUF_OK;
}

static enum gguf_status check_integers(const struct gguf_kv *kv,
                                       uint64_t first, size_t n,
                                       struct gguf_error *err)
{
    GG_TRY(check_range(kv, first, n, err));
    enum gg_value_kind kind = types[kv->elem_type].kind;
    if (kind != GG_KIND_UINT && kind != GG_KIND_INT && kind != GG_KIND_BOOL)
        return fail_type(kv, "an array of integers", err);
    return GGUF_OK;
}

/* Get element i of an array that check_integers() accepted, within [min,
 * max]. */
static enum gguf_status elem_integer(const struct gguf_kv *kv, uint64_t i,
                                     int64_t min, uint64_t max, uint64_t *v,
                                     struct gguf_error *err)
{
    enum gg_value_kind kind = types[kv->elem_type].kind;
    const uint8_t *p =
        (const uint8_t *)kv->data + i * types[kv->elem_type].size;
    *v = bits_of(p, kv->elem_type, kv->big_endian);
    if (in_range(kind, *v, min, max))
        return GGUF_OK;
    struct gguf_kv e;
    return fail_range(elem_label(kv, i, &e), kind, *v, min, max, err);
}

enum gguf_status gguf_kv_get_elems_i32(const struct gguf_kv *kv,
                                       uint64_t first, size_t n, int32_t *dst,
                                       struct gguf_error *err)
{
    uint64_t v;
    GG_TRY(check_integers(kv, first, n, err));
    for (size_t i = 0; i < n; i++) {
        GG_TRY(elem_integer(kv, first + i, INT32_MIN, INT32_MAX, &v, err));
        dst[i] = (int32_t)(int64_t)v;
    }
    return GGUF_OK;
}

enum gguf_status gguf_kv_get_elems_uint(const struct gguf_kv *kv,
                                        uint64_t first, size_t n,
                                        uint64_t *dst, struct gguf_error *err)
{
    GG_TRY(check_integers(kv, first, n, err));
    for (size_t i = 0; i < n; i++)
        GG_TRY(elem_integer(kv, first + i, 0, UINT64_MAX, &dst[i], err));
    return GGUF_OK;
}
