/* SPDX-License-Identifier: MIT */
/* value.c - encoding the value of --set */
#include "config.h"
#include "tools/edit/edit.h"

#include <gguf/text.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most levels of arrays in a type; more than the library accepts. */
enum { MAX_DEPTH = 64 };

void value_fini(struct value *v)
{
    text_fini(&v->bytes);
}

static void put_le(struct text *out, uint64_t v, size_t size)
{
    char b[8];
    for (size_t i = 0; i < size; i++)
        b[i] = (char)(unsigned char)(v >> 8 * i);
    text_add(out, b, size);
}

static void put_str(struct value *v, struct gguf_str s)
{
    put_le(&v->bytes, s.size, 8);
    text_add(&v->bytes, s.data, s.size);
}

void value_set_str(struct value *v, struct gguf_str s)
{
    v->type = v->base = GGUF_VAL_STR;
    put_str(v, s);
}

/* -------------------------------------------------------------- numbers --- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Read a decimal integer, or a hexadecimal one after 0x, with an optional
 * sign. */
static bool parse_int(struct gguf_str s, bool *neg, uint64_t *v)
{
    size_t i = 0;
    unsigned base = 10;
    *neg = s.size && s.data[0] == '-';
    if (s.size && (s.data[0] == '-' || s.data[0] == '+'))
        i++;
    if (s.size - i > 2 && s.data[i] == '0' && (s.data[i + 1] | 32) == 'x') {
        base = 16;
        i += 2;
    }
    if (i == s.size)
        return false;
    for (*v = 0; i < s.size; i++) {
        unsigned d = (unsigned)hex_digit(s.data[i]);
        if (d >= base || *v > (UINT64_MAX - d) / base)
            return false;
        *v = *v * base + d;
    }
    return true;
}

static bool parse_float(struct gguf_str s, double *d)
{
    char buf[128], *end;
    if (!s.size || !strchr("+-.0123456789ni", *s.data) ||
        !text_copy(buf, sizeof buf, s.data, s.size))
        return false;
    *d = strtod(buf, &end);
    /* a number that is too large for a double became infinity */
    return end == buf + s.size && (!isinf(*d) || strchr(buf, 'i'));
}

static bool is_signed(uint32_t type)
{
    return type == GGUF_VAL_I8 || type == GGUF_VAL_I16 ||
           type == GGUF_VAL_I32 || type == GGUF_VAL_I64;
}

/* Largest value of an integer type. The least is -max - 1 if it is signed,
 * otherwise 0. */
static uint64_t max_value(uint32_t type)
{
    unsigned bits = 8 * (unsigned)gguf_val_type_size(type);
    return UINT64_MAX >> (64 - bits + is_signed(type));
}

static bool put_int(struct text *out, uint32_t type, struct gguf_str s)
{
    bool neg;
    uint64_t v, max = max_value(type);
    if (!parse_int(s, &neg, &v) || (neg && v && !is_signed(type)) ||
        v > max + (neg && v && is_signed(type)))
        return false;
    put_le(out, neg ? 0 - v : v, gguf_val_type_size(type));
    return true;
}

static bool put_float(struct text *out, uint32_t type, struct gguf_str s)
{
    double d;
    uint64_t bits64;
    uint32_t bits32;
    if (!parse_float(s, &d))
        return false;
    float f = (float)d;
    if (type == GGUF_VAL_F64) {
        memcpy(&bits64, &d, 8);
        put_le(out, bits64, 8);
        return true;
    }
    if (isinf(f) && !isinf(d))
        return false;
    memcpy(&bits32, &f, 4);
    put_le(out, bits32, 4);
    return true;
}

static bool put_bool(struct text *out, struct gguf_str s)
{
    bool yes = text_is(s, "true") || text_is(s, "1");
    if (!yes && !text_is(s, "false") && !text_is(s, "0"))
        return false;
    put_le(out, yes, 1);
    return true;
}

/* Append which texts a type accepts. */
static void describe_type(struct text *why, uint32_t type)
{
    text_addz(why, gguf_val_type_name(type));
    if (type == GGUF_VAL_BOOL)
        text_addz(why, " (true or false)");
    else if (type == GGUF_VAL_F32 || type == GGUF_VAL_F64)
        text_addz(why, " (a number in its range)");
    else if (is_signed(type))
        text_addf(why, " (-%" PRIu64 " to %" PRIu64 ")", max_value(type) + 1,
                  max_value(type));
    else
        text_addf(why, " (0 to %" PRIu64 ")", max_value(type));
}

static bool put_scalar(struct value *v, uint32_t type, struct gguf_str s,
                       struct text *why)
{
    bool good = true;
    if (type == GGUF_VAL_STR)
        put_str(v, s);
    else if (type == GGUF_VAL_BOOL)
        good = put_bool(&v->bytes, s);
    else if (type == GGUF_VAL_F32 || type == GGUF_VAL_F64)
        good = put_float(&v->bytes, type, s);
    else
        good = put_int(&v->bytes, type, s);
    if (!good) {
        text_addz(why, "'");
        text_add_esc(why, s, 60);
        text_addz(why, "' is not of type ");
        describe_type(why, type);
    }
    return good;
}

/* --------------------------------------------------------------- arrays --- */

static void put_utf8(struct text *t, uint32_t cp)
{
    char b[4];
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6)
        b[i] = (char)(0x80 | (cp & 0x3f));
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    b[0] = (char)(lead[n] | cp);
    text_add(t, b, n);
}

static bool hex4(const char *p, uint32_t *v)
{
    *v = 0;
    for (int i = 0; i < 4; i++) {
        if (hex_digit(p[i]) > 15)
            return false;
        *v = *v << 4 | (uint32_t)hex_digit(p[i]);
    }
    return true;
}

/* Read the digits of \uXXXX at p; two of these are a surrogate pair. Returns
 * the text after them, or NULL. */
static const char *unescape_u(const char *p, struct text *t)
{
    uint32_t hi, lo;
    if (!hex4(p, &hi))
        return NULL;
    p += 4;
    if (hi >= 0xd800 && hi < 0xdc00) {
        if (p[0] != '\\' || p[1] != 'u' || !hex4(p + 2, &lo) || lo < 0xdc00 ||
            lo > 0xdfff)
            return NULL;
        hi = 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
        p += 6;
    } else if (hi >= 0xdc00 && hi < 0xe000) {
        return NULL;
    }
    put_utf8(t, hi);
    return p;
}

/* Read a JSON string after its opening quote into t. Returns the text after
 * the closing quote, or NULL. */
static const char *unquote_text(const char *p, struct text *t)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    text_add(t, "", 0);
    while (*p && *p != '"') {
        if (*p != '\\') {
            text_add(t, p++, 1);
            continue;
        }
        const char *e = p[1] ? strchr(from, p[1]) : NULL;
        if (e) {
            text_add(t, to + (e - from), 1);
            p += 2;
        } else if (p[1] != 'u' || !(p = unescape_u(p + 2, t))) {
            return NULL;
        }
    }
    return *p ? p + 1 : NULL;
}

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* Append element type and count of an array; end_array() sets the count. */
static size_t begin_array(struct value *v, unsigned depth)
{
    put_le(&v->bytes, depth > 1 ? GGUF_VAL_ARR : v->base, 4);
    put_le(&v->bytes, 0, 8);
    return v->bytes.n - 8;
}

static void end_array(struct value *v, size_t at, uint64_t n)
{
    for (size_t i = 0; i < 8; i++)
        v->bytes.s[at + i] = (char)(unsigned char)(n >> 8 * i);
}

/* Read a JSON number or string. Returns the text after it; or NULL, with why
 * empty if it is neither. */
static const char *put_item(struct value *v, const char *p, struct text *why)
{
    struct text item = { NULL, 0, 0 };
    bool string = v->base == GGUF_VAL_STR;
    const char *end = p + strcspn(p, " \t\r\n,]");
    if (string)
        end = *p == '"' ? unquote_text(p + 1, &item) : NULL;
    struct gguf_str s = { string ? item.s : p,
                          string ? item.n : (size_t)(end - p) };
    if (end && !put_scalar(v, v->base, s, why))
        end = NULL;
    text_fini(&item);
    return end;
}

/* Read an array of depth levels after its opening bracket, such as "[1, 2]" or
 * "[["a", "b"], []]". Returns the text after the closing bracket, or NULL. */
static const char *put_json(struct value *v, unsigned depth, const char *p,
                            struct text *why)
{
    uint64_t n = 0;
    size_t at = begin_array(v, depth);
    p = skip_space(p);
    bool more = *p != ']';
    while (more) {
        const char *end = depth == 1  ? put_item(v, p, why)
                          : *p == '[' ? put_json(v, depth - 1, p + 1, why)
                                      : NULL;
        if (!end && why->n)
            return NULL;
        if (!end)
            break;
        n++;
        p = skip_space(end);
        more = *p == ',';
        p = more ? skip_space(p + 1) : p;
    }
    end_array(v, at, n);
    if (!more && *p == ']' && (depth < v->depth || !*skip_space(p + 1)))
        return p + 1;
    text_addf(why, "[...]: element %" PRIu64 " is malformed: %s", n,
              depth > 1 ? "expected arrays in brackets, separated by commas"
              : v->base == GGUF_VAL_STR
                  ? "expected strings in double quotes, separated by commas"
                  : "expected numbers, separated by commas");
    return NULL;
}

/* Read elements that are separated by commas: "1,2,3". */
static bool put_commas(struct value *v, const char *p, struct text *why)
{
    uint64_t n = 0;
    size_t at = begin_array(v, 1);
    while (*p) {
        size_t len = strcspn(p, ",");
        if (!put_scalar(v, v->base, (struct gguf_str){ p, len }, why))
            return false;
        n++;
        p += len;
        /* a comma at the end is followed by an empty element */
        if (*p && !*++p) {
            if (!put_scalar(v, v->base, (struct gguf_str){ p, 0 }, why))
                return false;
            n++;
        }
    }
    end_array(v, at, n);
    return true;
}

static bool put_array(struct value *v, const char *p, struct text *why)
{
    if (*p == '[')
        return put_json(v, v->depth, p + 1, why) != NULL;
    if (v->depth == 1)
        return put_commas(v, p, why);
    text_addz(why, "expected an array of arrays: [[...], [...]]");
    return false;
}

/* Find the common type of all innermost arrays in kv, which is at this level.
 * Returns false if they differ. */
static bool type_of_array(struct value *v, const struct gguf_kv *kv,
                          unsigned level)
{
    struct gguf_kv_iter it;
    struct gguf_kv e;
    if (kv->elem_type != GGUF_VAL_ARR) {
        if (!v->depth) {
            v->depth = level;
            v->base = kv->elem_type;
        }
        return v->depth == level && v->base == kv->elem_type;
    }
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next(&it, &e))
        if (!type_of_array(v, &e, level + 1))
            return false;
    return true;
}

/* ---------------------------------------------------------------- types --- */

/* Read "TYPE:", "arr[TYPE]:", "arr[arr[TYPE]]:" ... at *arg; advance *arg. */
static bool take_type(struct value *v, const char **arg)
{
    static const char open[] = "arr[";
    char name[24];
    const char *p = *arg;
    unsigned depth = 0;
    while (!strncmp(p, open, 4) && depth < MAX_DEPTH) {
        p += 4;
        depth++;
    }
    size_t n = strcspn(p, "]:");
    if (!n || n >= sizeof name)
        return false;
    memcpy(name, p, n);
    name[n] = '\0';
    p += n;
    for (unsigned i = 0; i < depth; i++)
        if (*p++ != ']')
            return false;
    enum gguf_val_type type;
    if (*p != ':' || !gguf_val_type_find(name, &type) || type == GGUF_VAL_ARR)
        return false;
    v->depth = depth;
    v->base = (uint32_t)type;
    v->type = depth ? GGUF_VAL_ARR : v->base;
    *arg = p + 1;
    return true;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* Choose the type of a new key, as gguf-edit(1) describes. */
static void guess_type(struct value *v, const char *key, const char *arg)
{
    struct gguf_str s = { arg, strlen(arg) };
    bool neg;
    uint64_t u;
    double d;
    v->type = v->base = GGUF_VAL_STR;
    if (!strcmp(key, "general.tags") || !strcmp(key, "general.languages") ||
        !strcmp(key, "general.datasets")) {
        v->type = GGUF_VAL_ARR;
        v->depth = 1;
        return;
    }
    bool number = strncmp(key, "general.", 8) != 0 ||
                  !strcmp(key, "general.alignment") ||
                  !strcmp(key, "general.file_type") ||
                  !strcmp(key, "general.quantization_version") ||
                  ends_in(key, ".count");
    if (number && (text_is(s, "true") || text_is(s, "false")))
        v->type = GGUF_VAL_BOOL;
    else if (number && parse_int(s, &neg, &u))
        v->type = !neg ? (u <= UINT32_MAX ? GGUF_VAL_U32 : GGUF_VAL_U64)
                       : (u <= max_value(GGUF_VAL_I32) + 1 ? GGUF_VAL_I32
                                                           : GGUF_VAL_I64);
    else if (number && *arg != 'n' && *arg != 'i' && parse_float(s, &d))
        v->type = GGUF_VAL_F32;
    v->base = v->type;
}

/* Use the type of the existing value. */
static bool type_of_present(struct value *v, const struct gguf_kv *present,
                            struct text *why)
{
    v->type = v->base = present->type;
    if (present->type != GGUF_VAL_ARR)
        return true;
    bool same = type_of_array(v, present, 1);
    if (same && v->depth)
        return true;
    text_addf(why, "%s: give the type, as in arr[arr[u32]]:[[1]]",
              same ? "has empty arrays only"
                   : "has arrays of more than one type");
    return false;
}

bool value_parse(struct value *v, const char *key, const char *arg,
                 const struct gguf_kv *present, struct text *why)
{
    if (!take_type(v, &arg)) {
        if (!present)
            guess_type(v, key, arg);
        else if (!type_of_present(v, present, why))
            return false;
    }
    struct gguf_str s = { arg, strlen(arg) };
    return v->type == GGUF_VAL_ARR ? put_array(v, arg, why)
                                   : put_scalar(v, v->type, s, why);
}
