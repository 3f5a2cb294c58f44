/* gguf-quantize-kv.c - the values of --override-kv */
#include "config.h"
#include "tools/gguf-quantize.h"
#include "tools/common/guard.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Digits, perhaps after a '-'. Checked because strtoll and strtoull also take
 * blanks and other signs, and wrap. */
static bool is_integer(const char *text)
{
    text += *text == '-';
    return *text && !text[strspn(text, "0123456789")];
}

/* An integer of KEY=int:VALUE: of the narrowest usual type that holds it. With
 * compat as llama-quantize has it: without its sign. */
static enum gguf_status set_int(struct options *o, const char *key,
                                const char *text, struct gguf_error *err)
{
    errno = 0;
    if (text[0] == '-') {
        long long v = strtoll(text, NULL, 10);
        if (!is_integer(text) || errno)
            opt_usage("--override-kv: '%s' is not an integer", text);
        if (o->params.compat)
            return gguf_meta_set_u32(o->meta, key, 0 - (uint32_t)v, err);
        return v >= INT32_MIN
                   ? gguf_meta_set_i32(o->meta, key, (int32_t)v, err)
                   : gguf_meta_set_i64(o->meta, key, v, err);
    }
    unsigned long long v = strtoull(text, NULL, 10);
    if (!is_integer(text) || errno)
        opt_usage("--override-kv: '%s' is not an integer", text);
    return v <= UINT32_MAX || o->params.compat
               ? gguf_meta_set_u32(o->meta, key, (uint32_t)v, err)
               : gguf_meta_set_u64(o->meta, key, v, err);
}

/* A number of one of GGUF's own types: its bytes. */
static enum gguf_status set_number(struct options *o, const char *key,
                                   int type, const char *text,
                                   struct gguf_error *err)
{
    uint8_t b[8];
    errno = 0;
    size_t size = gguf_val_type_size((uint32_t)type);
    uint64_t bits = text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10)
                                   : strtoull(text, NULL, 10);
    bool is_signed = type == GGUF_VAL_I8 || type == GGUF_VAL_I16 ||
                     type == GGUF_VAL_I32 || type == GGUF_VAL_I64;
    unsigned width = (unsigned)(8 * size);
    bool fits = is_signed
                    ? (text[0] == '-'
                           ? (int64_t)bits >= -(INT64_C(1) << (width - 2)) * 2
                           : bits >> (width - 1) == 0)
                    : text[0] != '-' && (width == 64 || !(bits >> width));
    if (!size || !is_integer(text) || errno || !fits)
        opt_usage("--override-kv: '%s' is not of type %s", text,
                  gguf_val_type_name((uint32_t)type));
    for (size_t i = 0; i < size; i++)
        b[i] = (uint8_t)(bits >> 8 * i);
    return gguf_meta_set_encoded(o->meta, key, (uint32_t)type, b, size, err);
}

static enum gguf_status set_kv(struct options *o, const char *key,
                               const char *type, const char *value,
                               struct gguf_error *err)
{
    int id = gguf_val_type_from_name(type);
    char *end;
    if (!strcmp(type, "str") || id == GGUF_VAL_STR)
        return gguf_meta_set_strz(o->meta, key, value, err);
    if (!strcmp(type, "bool") || id == GGUF_VAL_BOOL) {
        if (strcmp(value, "true") && strcmp(value, "false"))
            opt_usage("--override-kv: '%s' is neither true nor false", value);
        return gguf_meta_set_bool(o->meta, key, *value == 't', err);
    }
    if (!strcmp(type, "float") || id == GGUF_VAL_F32 || id == GGUF_VAL_F64) {
        double v = strtod(value, &end);
        bool wide = id == GGUF_VAL_F64;
        bool number = strpbrk(value, "0123456789") != NULL; /* else inf, nan */
        if (*end || end == value)
            opt_usage("--override-kv: '%s' is not a number", value);
        if (number && !(fabs(v) <= (wide ? DBL_MAX : (double)FLT_MAX)))
            opt_usage("--override-kv: '%s' is not of type %s", value,
                      gguf_val_type_name(wide ? GGUF_VAL_F64 : GGUF_VAL_F32));
        return wide ? gguf_meta_set_f64(o->meta, key, v, err)
                    : gguf_meta_set_f32(o->meta, key, (float)v, err);
    }
    if (!strcmp(type, "int"))
        return set_int(o, key, value, err);
    if (id < 0 || id == GGUF_VAL_ARR)
        opt_usage("--override-kv: '%s' is not a type of value", type);
    return set_number(o, key, id, value, err);
}

void use_kv_texts(struct options *o)
{
    struct gguf_error err;
    gguf_error_clear(&err);
    if (!o->kv_texts.n)
        return;
    if (gguf_meta_create(&o->meta, NULL, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        exit(MSG_FAILED);
    }
    for (size_t i = 0; i < o->kv_texts.n; i++) {
        char *copy = msg_must(malloc(strlen(o->kv_texts.arg[i]) + 1));
        strcpy(copy, o->kv_texts.arg[i]);
        char *eq = strchr(copy, '='), *colon = eq ? strchr(eq, ':') : NULL;
        if (!colon || eq == copy)
            opt_usage("--override-kv: '%s' is not KEY=TYPE:VALUE", copy);
        *eq = *colon = 0;
        if (set_kv(o, copy, eq + 1, colon + 1, &err) != GGUF_OK)
            opt_usage("--override-kv: %s", err.message);
        free(copy);
    }
    o->params.meta = o->meta;
}

/* The guard of gguf-edit, between the metadata of the input and those with the
 * overrides. */
static bool ask_guard(const struct options *o, const struct gguf_split *set,
                      struct gguf_error *err)
{
    struct guard g = { .name = o->in, .set = set, .force = o->force };
    struct gguf_meta *before = NULL, *after = NULL;
    bool good = true;
    g.file = gguf_split_file(set, 0);
    enum gguf_status st = gguf_meta_create(&before, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&after, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(before, g.file, err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(after, g.file, err);
    for (size_t i = 0; i < gguf_meta_n_kv(o->meta) && st == GGUF_OK; i++) {
        const struct gguf_kv *kv = gguf_meta_kv(o->meta, i);
        struct text key = { NULL, 0, 0 };
        text_add(&key, kv->key.data, kv->key.size);
        good &= guard_key(o->in, key.s);
        text_fini(&key);
        st = gguf_meta_set_kv(after, NULL, kv, err);
    }
    g.before = before;
    g.after = after;
    good = good && st == GGUF_OK && guard_check(&g);
    if (st != GGUF_OK)
        msg_fail(o->in, err);
    gguf_meta_destroy(before);
    gguf_meta_destroy(after);
    return good;
}

bool check_overrides(const struct options *o)
{
    struct gguf_file_params fp = GGUF_FILE_PARAMS_INIT;
    struct gguf_error err;
    struct gguf_split *set;
    fp.limits = &o->limits;
    gguf_error_clear(&err);
    if (!o->meta || gguf_split_open(&set, o->in, &fp, &err) != GGUF_OK)
        return true; /* the plan will say why it does not open */
    bool good = ask_guard(o, set, &err);
    gguf_split_close(set);
    return good;
}
