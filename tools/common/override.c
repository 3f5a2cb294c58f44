/* SPDX-License-Identifier: MIT */
/* override.c - values of --override-kv: KEY=TYPE:VALUE */
#include "config.h"
#include "tools/common/override.h"
#include "tools/common/opt.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <gguf/meta.h>

/* The three parts of KEY=TYPE:VALUE. */
struct pair {
    const char *key, *type, *value;
};

/* Is text digits, with or without a '-' before them? strtoll() and strtoull()
 * would also accept blanks and other signs, and would wrap. */
static bool is_integer(const char *text)
{
    text += *text == '-';
    return *text && !text[strspn(text, "0123456789")];
}

/* Type of the key in the file, or -1 if it has no such key. */
static int type_there(const struct override *o, const char *key)
{
    const struct gguf_kv *kv =
        o->like ? gguf_file_kv_find(o->like, key) : NULL;
    return kv ? (int)kv->type : -1;
}

/* Encode text as an integer of a GGUF type. Returns its size; 0 if it does not
 * fit or type is not an integer type. */
static size_t encode_number(int type, const char *text, uint8_t b[8])
{
    static const unsigned is_signed = 1u << GGUF_VAL_I8 | 1u << GGUF_VAL_I16 |
                                      1u << GGUF_VAL_I32 | 1u << GGUF_VAL_I64;
    static const unsigned is_unsigned =
        1u << GGUF_VAL_U8 | 1u << GGUF_VAL_U16 | 1u << GGUF_VAL_U32 |
        1u << GGUF_VAL_U64;
    if (type < 0 || !((is_signed | is_unsigned) >> type & 1) ||
        !is_integer(text))
        return 0;
    errno = 0;
    const size_t size = gguf_val_type_size((uint32_t)type);
    const unsigned width = (unsigned)(8 * size);
    const bool minus = text[0] == '-';
    const uint64_t bits =
        minus ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
    const bool fits =
        is_signed >> type & 1
            ? (minus ? (int64_t)bits >= -(INT64_C(1) << (width - 2)) * 2
                     : bits >> (width - 1) == 0)
            : !minus && (width == 64 || !(bits >> width));
    for (size_t i = 0; i < size; i++)
        b[i] = (uint8_t)(bits >> 8 * i);
    return errno || !fits ? 0 : size;
}

/* Set a value of TYPE "int". */
static enum gguf_status set_int(const struct override *o, const struct pair *p,
                                struct gguf_error *err)
{
    const char *text = p->value;
    const int there = type_there(o, p->key);
    uint8_t b[8];
    const size_t size = encode_number(there, text, b);
    if (size)
        return gguf_meta_set_encoded(o->meta, p->key, (uint32_t)there, b, size,
                                     err);
    errno = 0;
    if (text[0] == '-') {
        long long v = strtoll(text, NULL, 10);
        if (!is_integer(text) || errno)
            opt_usage("--override-kv: key '%s': '%s' is not an integer",
                      p->key, text);
        if (o->as_llama)
            return gguf_meta_set_u32(o->meta, p->key, 0 - (uint32_t)v, err);
        return v >= INT32_MIN
                   ? gguf_meta_set_i32(o->meta, p->key, (int32_t)v, err)
                   : gguf_meta_set_i64(o->meta, p->key, v, err);
    }
    unsigned long long v = strtoull(text, NULL, 10);
    if (!is_integer(text) || errno)
        opt_usage("--override-kv: key '%s': '%s' is not an integer", p->key,
                  text);
    return v <= UINT32_MAX || o->as_llama
               ? gguf_meta_set_u32(o->meta, p->key, (uint32_t)v, err)
               : gguf_meta_set_u64(o->meta, p->key, v, err);
}

static enum gguf_status set_float(const struct override *o,
                                  const struct pair *p, bool wide,
                                  struct gguf_error *err)
{
    char *end;
    double v = strtod(p->value, &end);
    /* false for inf and nan */
    bool number = strpbrk(p->value, "0123456789") != NULL;
    if (*end || end == p->value)
        opt_usage("--override-kv: key '%s': '%s' is not a number", p->key,
                  p->value);
    if (number && !(fabs(v) <= (wide ? DBL_MAX : (double)FLT_MAX)))
        opt_usage("--override-kv: key '%s': '%s' is not of type %s", p->key,
                  p->value,
                  gguf_val_type_name(wide ? GGUF_VAL_F64 : GGUF_VAL_F32));
    return wide ? gguf_meta_set_f64(o->meta, p->key, v, err)
                : gguf_meta_set_f32(o->meta, p->key, (float)v, err);
}

static enum gguf_status set_pair(const struct override *o,
                                 const struct pair *p, struct gguf_error *err)
{
    enum gguf_val_type id = GGUF_VAL_ARR;
    const bool known = gguf_val_type_find(p->type, &id);
    const bool real = !strcmp(p->type, "float");
    uint8_t b[8];
    if (id == GGUF_VAL_STR)
        return gguf_meta_set_strz(o->meta, p->key, p->value, err);
    if (id == GGUF_VAL_BOOL) {
        if (strcmp(p->value, "true") != 0 && strcmp(p->value, "false") != 0)
            opt_usage("--override-kv: key '%s': '%s' is neither true nor "
                      "false",
                      p->key, p->value);
        return gguf_meta_set_bool(o->meta, p->key, *p->value == 't', err);
    }
    if (real || id == GGUF_VAL_F32 || id == GGUF_VAL_F64)
        return set_float(o, p,
                         real ? type_there(o, p->key) == GGUF_VAL_F64
                              : id == GGUF_VAL_F64,
                         err);
    if (!strcmp(p->type, "int"))
        return set_int(o, p, err);
    if (!known || id == GGUF_VAL_ARR)
        opt_usage("--override-kv: key '%s': '%s' is not a type of value",
                  p->key, p->type);
    const size_t size = encode_number(id, p->value, b);
    if (!size)
        opt_usage("--override-kv: key '%s': '%s' is not of type %s", p->key,
                  p->value, gguf_val_type_name((uint32_t)id));
    return gguf_meta_set_encoded(o->meta, p->key, (uint32_t)id, b, size, err);
}

void override_add(const struct override *o, const char *text)
{
    struct gguf_error err;
    char *copy = msg_must(malloc(strlen(text) + 1));
    memcpy(copy, text, strlen(text) + 1);
    char *eq = strchr(copy, '='), *colon = eq ? strchr(eq, ':') : NULL;
    if (!colon || eq == copy)
        opt_usage("--override-kv: '%s' is not KEY=TYPE:VALUE", copy);
    *eq = *colon = 0;
    const struct pair p = { copy, eq + 1, colon + 1 };
    if (set_pair(o, &p, &err) != GGUF_OK)
        opt_usage("--override-kv: %s", err.message);
    free(copy);
}

bool override_guard(struct guard *g, const struct gguf_meta *meta)
{
    struct gguf_meta *before = NULL, *after = NULL;
    struct gguf_error err;
    bool good = true;
    enum gguf_status st = gguf_meta_create(&before, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&after, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(before, g->file, &err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(after, g->file, &err);
    for (size_t i = 0; i < gguf_meta_n_kv(meta) && st == GGUF_OK; i++) {
        const struct gguf_kv *kv = gguf_meta_kv(meta, i);
        struct text key = { NULL, 0, 0 };
        text_add(&key, kv->key.data, kv->key.size);
        good &= guard_check_key(g->name, key.s);
        text_fini(&key);
        st = gguf_meta_set_kv(after, NULL, kv, &err);
    }
    g->before = before;
    g->after = after;
    good = good && st == GGUF_OK && guard_check(g);
    if (st != GGUF_OK)
        msg_fail(g->name, &err);
    g->before = g->after = NULL;
    gguf_meta_destroy(before);
    gguf_meta_destroy(after);
    return good;
}
