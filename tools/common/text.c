/* SPDX-License-Identifier: MIT */
/* text.c - a growing string, and metadata values as text */
#include "config.h"
#include "tools/common/text.h"
#include "tools/common/json.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/os/os_program.h"

#include <gguf/text.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the next piece of the n bytes at z that is safe on a terminal: a run
 * of safe bytes, or one escaped character in out. *len is the number of bytes
 * of z that it covers. */
static const char *next_safe(const char *z, size_t n, char out[16],
                             size_t *len)
{
    for (*len = 0; *len < n && z[*len] >= ' ' && z[*len] < 0x7f;)
        ++*len;
    if (*len)
        return z;
    *len = gguf_text_decode_utf8(z, n, NULL);
    *len += !*len;
    gguf_text_escape(out, 16, (struct gguf_str){ z, *len });
    return out;
}

void text_put(FILE *f, const char *z)
{
    char out[16];
    for (size_t n = strlen(z), len; n; z += len, n -= len) {
        const char *s = next_safe(z, n, out, &len);
        if (s == z)
            fwrite(z, 1, len, f);
        else
            fputs(s, f);
    }
}

void text_fini(struct text *t)
{
    free(t->s);
    *t = (struct text){ NULL, 0, 0 };
}

void text_clear(struct text *t)
{
    t->n = 0;
    if (t->s)
        t->s[0] = '\0';
}

/* Make room for n more bytes and a NUL. */
static void grow_text(struct text *t, size_t n)
{
    if (t->size - t->n > n)
        return;
    t->s = msg_grow(t->s, &t->size, t->n + n + 256, 1);
}

void text_add(struct text *t, const char *p, size_t n)
{
    grow_text(t, n);
    if (n)
        memcpy(t->s + t->n, p, n);
    t->n += n;
    t->s[t->n] = '\0';
}

void text_addz(struct text *t, const char *z)
{
    text_add(t, z, strlen(z));
}

void text_add_safe(struct text *t, const char *z)
{
    char out[16];
    for (size_t n = strlen(z), len; n; z += len, n -= len) {
        const char *s = next_safe(z, n, out, &len);
        text_add(t, s, s == z ? len : strlen(s));
    }
}

void text_add_shell(struct text *t, const char *z)
{
    text_addz(t, "'");
    for (; *z; z++)
        text_add(t, *z == '\'' ? "'\\''" : z, *z == '\'' ? 4 : 1);
    text_addz(t, "'");
}

void text_addf(struct text *t, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    text_addz(t, line);
}

void text_add_esc(struct text *t, struct gguf_str s, uint64_t max)
{
    bool cut = s.size > max;
    if (cut) {
        /* most bytes to go back */
        size_t n = (size_t)max, most = n < 3 ? n : 3;
        while (most-- && ((unsigned char)s.data[n] & 0xc0) == 0x80)
            n--;
        /* more continuation bytes do not belong to one character */
        s.size = ((unsigned char)s.data[n] & 0xc0) == 0x80 ? (size_t)max : n;
    }
    size_t room = 8 * s.size + 1;
    grow_text(t, room);
    t->n += gguf_text_escape(t->s + t->n, room, s);
    if (cut)
        text_addz(t, "...");
}

void text_add_shape(struct text *t, uint32_t n_dims, const int64_t *ne)
{
    text_addz(t, n_dims ? "" : "scalar");
    for (uint32_t d = 0; d < n_dims; d++)
        text_addf(t, "%s%" PRId64, d ? " x " : "", ne[d]);
}

bool text_read(struct text *t, const char *path)
{
    char buf[1 << 14];
    size_t n = 0;
    bool std = !strcmp(path, "-");
    FILE *f = std ? stdin : gg_os_stream_open(path, "rb");
    if (!f)
        return msg_error(path, "cannot be opened: %s", strerror(errno));
    errno = 0;
    while (t->n <= (size_t)1 << 30 && (n = fread(buf, 1, sizeof buf, f)))
        text_add(t, buf, n);
    bool good = !ferror(f) && !n;
    if (!good)
        msg_error(path, "cannot be read: %s",
                  errno ? strerror(errno) : "it is larger than 1 GiB");
    if (!std)
        fclose(f);
    text_add(t, "", 0); /* terminates an empty text, too */
    return good;
}

static void add_number(struct text *t, const struct gguf_kv *kv)
{
    char out[32];
    bool b = false;
    float f = 0;
    double d = 0;
    int64_t i = 0;
    uint64_t u = 0;
    switch (kv->type) {
    case GGUF_VAL_BOOL:
        if (gguf_kv_get_bool(kv, &b, NULL) == GGUF_OK)
            text_addz(t, b ? "true" : "false");
        break;
    case GGUF_VAL_F32:
        if (gguf_kv_get_f32(kv, &f, NULL) == GGUF_OK) {
            json_format_f32(out, f);
            text_addz(t, out);
        }
        break;
    case GGUF_VAL_F64:
        if (gguf_kv_get_f64(kv, &d, NULL) == GGUF_OK) {
            json_format_f64(out, d);
            text_addz(t, out);
        }
        break;
    default:
        if (gguf_kv_get_int(kv, &i, NULL) == GGUF_OK)
            text_addf(t, "%" PRId64, i);
        else if (gguf_kv_get_uint(kv, &u, NULL) == GGUF_OK)
            text_addf(t, "%" PRIu64, u);
    }
}

/* Append s in quotes, with quotes inside escaped, so that the end of an
 * element is clear. */
static void add_quoted(struct text *t, struct gguf_str s, uint64_t max)
{
    struct text plain = { NULL, 0, 0 };
    text_add_esc(&plain, s, max);
    text_addz(t, "\"");
    for (const char *p = plain.s; *p; p++)
        text_add(t, *p == '"' ? "\\\"" : p, *p == '"' ? 2 : 1);
    text_addz(t, "\"");
    text_fini(&plain);
}

static void add_value(struct text *t, const struct gguf_kv *kv,
                      const struct text_limits *limits, bool quote)
{
    struct gguf_str s;
    if (kv->type == GGUF_VAL_STR && gguf_kv_get_str(kv, &s, NULL) == GGUF_OK) {
        if (quote)
            add_quoted(t, s, limits->bytes);
        else
            text_add_esc(t, s, limits->bytes);
        if (!quote && s.size > limits->bytes)
            text_addf(t, " (%zu bytes)", s.size);
    } else if (kv->type == GGUF_VAL_ARR) {
        struct gguf_kv_iter it;
        struct gguf_kv e;
        uint64_t n = 0;
        text_addz(t, "[");
        gguf_kv_iter_init(&it, kv);
        for (; n < limits->elems && gguf_kv_iter_next(&it, &e); n++) {
            if (n)
                text_addz(t, ", ");
            add_value(t, &e, limits, true);
        }
        if (n < kv->n)
            text_addf(t, "%s... %" PRIu64 " in all]", n ? ", " : "", kv->n);
        else
            text_addz(t, "]");
    } else {
        add_number(t, kv);
    }
}

void text_add_kv(struct text *t, const struct gguf_kv *kv,
                 const struct text_limits *limits)
{
    add_value(t, kv, limits, false);
}

const char *text_format_number(char out[static 32], double v, int digits)
{
    int decimals = 0;
    if (isfinite(v) && v != 0)
        decimals = digits - 1 - (int)floor(log10(fabs(v)));
    decimals = decimals < 0 ? 0 : decimals > 12 ? 12 : decimals;
    snprintf(out, 32, "%.*f", decimals, v);
    return out;
}

bool text_copy(char *out, size_t size, const char *p, size_t n)
{
    out[0] = '\0';
    if (n >= size || (n && memchr(p, '\0', n)))
        return false;
    if (n)
        memcpy(out, p, n);
    out[n] = '\0';
    return true;
}

bool text_glob(const char *pattern, struct gguf_str s)
{
    char name[1024]; /* longer than any name the default limits allow */
    return text_copy(name, sizeof name, s.data, s.size) &&
           gg_os_name_matches(pattern, name);
}

bool text_is(struct gguf_str s, const char *z)
{
    return s.size == strlen(z) && !memcmp(s.data, z, s.size);
}

const char *text_base_name(const char *path)
{
    const char *name = gg_os_path_name(path);
    return *name ? name : path;
}
