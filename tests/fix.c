/* SPDX-License-Identifier: MIT */
/* fix.c - writes GGUF files field by field, and reads tests/fixtures.txt */
#include "config.h"
#include "tests/fix.h"
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fix_init(struct fix *f)
{
    *f = (struct fix){ .mark = GGUF_NO_OFFSET };
}

void fix_fini(struct fix *f)
{
    free(f->data);
    fix_init(f);
}

void fix_mark(struct fix *f)
{
    f->mark = f->size;
}

static uint8_t *make_room(struct fix *f, size_t n)
{
    if (!f->data || f->room - f->size < n) {
        f->room = 2 * (f->size + n) + 256;
        f->data = realloc(f->data, f->room);
        if (!f->data)
            exit(99);
    }
    uint8_t *p = f->data + f->size;
    f->size += n;
    return p;
}

void fix_bytes(struct fix *f, const void *p, size_t n)
{
    if (n)
        memcpy(make_room(f, n), p, n);
}

void fix_fill(struct fix *f, unsigned byte, size_t n)
{
    memset(make_room(f, n), (int)byte, n);
}

void fix_pad(struct fix *f, size_t align)
{
    fix_fill(f, 0, (align - f->size % align) % align);
}

static void put_number(struct fix *f, uint64_t v, size_t size)
{
    uint8_t *p = make_room(f, size);
    for (size_t i = 0; i < size; i++)
        p[f->big_endian ? size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

void fix_u8(struct fix *f, unsigned v)
{
    put_number(f, v, 1);
}

void fix_u16(struct fix *f, unsigned v)
{
    put_number(f, v, 2);
}

void fix_u32(struct fix *f, uint32_t v)
{
    put_number(f, v, 4);
}

void fix_u64(struct fix *f, uint64_t v)
{
    put_number(f, v, 8);
}

void fix_f32(struct fix *f, float v)
{
    put_number(f, gg_bytes_f32_bits(v), 4);
}

void fix_str(struct fix *f, const char *s)
{
    fix_u64(f, strlen(s));
    fix_bytes(f, s, strlen(s));
}

void fix_head(struct fix *f, uint32_t version, uint64_t n_tensors,
              uint64_t n_kv)
{
    fix_bytes(f, "GGUF", 4);
    fix_u32(f, version);
    fix_u64(f, n_tensors);
    fix_u64(f, n_kv);
}

void fix_key(struct fix *f, const char *key, uint32_t type)
{
    fix_str(f, key);
    fix_u32(f, type);
}

void fix_array(struct fix *f, const char *key, uint32_t elem, uint64_t n)
{
    fix_key(f, key, GGUF_VAL_ARR);
    fix_u32(f, elem);
    fix_u64(f, n);
}

void fix_kv_u32(struct fix *f, const char *key, uint32_t v)
{
    fix_key(f, key, GGUF_VAL_U32);
    fix_u32(f, v);
}

void fix_kv_str(struct fix *f, const char *key, const char *v)
{
    fix_key(f, key, GGUF_VAL_STR);
    fix_str(f, v);
}

void fix_info(struct fix *f, const char *name, const uint64_t *ne,
              uint32_t type, uint64_t off)
{
    uint32_t n = 0;
    while (ne[n])
        n++;
    fix_str(f, name);
    fix_u32(f, n);
    for (uint32_t d = 0; d < n; d++)
        fix_u64(f, ne[d]);
    fix_u32(f, type);
    fix_u64(f, off);
}

/* ---- tests/fixtures.txt ---- */

enum { PARTS = 3, MOST = 64 };

static const char *const part_names[PARTS] = { "good", "bad metadata",
                                               "bad tensors" };
static struct fixture parts[PARTS][MOST];

static _Noreturn void fail_at(const char *what, const char *where)
{
    fprintf(stderr, "fixtures.txt: %s: %.60s\n", what, where);
    exit(99);
}

static enum gguf_status read_status(const char *name)
{
#define STATUS(NAME)                                                          \
    {                                                                         \
#NAME, GGUF_E_##NAME                                                  \
    }
    static const struct {
        const char *name;
        enum gguf_status st;
    } known[] = { { "OK", GGUF_OK }, STATUS(FORMAT), STATUS(TRUNCATED),
                  STATUS(OVERFLOW),  STATUS(LIMIT),  STATUS(DUPLICATE),
                  STATUS(VERSION),   STATUS(SHAPE) };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].st;
    fail_at("no such status", name);
}

/* Join lines: each fixture has all its words in one string. */
static void read_line(char *line, struct fixture **part, size_t *n)
{
    if (line[0] == '[') {
        size_t i = 0;
        line[strcspn(line, "]")] = 0;
        while (i < PARTS && strcmp(part_names[i], line + 1))
            i++;
        if (i == PARTS)
            fail_at("no such part", line);
        *part = parts[i];
        *n = 0;
    } else if (line[0] == ' ') {
        char **words = &(*part)[*n - 1].words;
        *words = realloc(*words, strlen(*words) + strlen(line) + 1);
        strcat(*words, line);
    } else if (line[0] && line[0] != '#') {
        char *status = strchr(line, ' ');
        if (!status || *n == MOST - 1)
            fail_at("cannot read", line);
        *status++ = 0;
        (*part)[(*n)++] = (struct fixture){ strdup(line), calloc(1, 1),
                                            read_status(status) };
    }
}

static void read_all(void)
{
    char line[4096];
    const char *top = getenv("srcdir");
    struct fixture *part = NULL;
    size_t n = 0;
    if (parts[0][0].name)
        return;
    snprintf(line, sizeof line, "%s/tests/fixtures.txt", top ? top : ".");
    FILE *f = fopen(line, "r");
    if (!f)
        fail_at("cannot open", line);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        read_line(line, &part, &n);
    }
    fclose(f);
}

const struct fixture *fix_list(const char *part)
{
    read_all();
    for (size_t i = 0; i < PARTS; i++)
        if (!strcmp(part, part_names[i]))
            return parts[i];
    fail_at("no such part", part);
}

const struct fixture *fix_find(const char *name)
{
    read_all();
    for (size_t i = 0; i < PARTS; i++)
        for (const struct fixture *x = parts[i]; x->name; x++)
            if (!strcmp(x->name, name))
                return x;
    fail_at("no such fixture", name);
}

/* Read the text between quotes at p, which may contain NUL. Returns the place
 * after it. */
static const char *read_text(const char *p, char *out, size_t *n)
{
    for (*n = 0; *++p != '"'; (*n)++) {
        out[*n] = *p;
        if (*p == '\\') {
            const char hex[] = { p[2], p[3], 0 };
            out[*n] = (char)strtoul(hex, NULL, 16);
            p += 3;
        }
    }
    out[*n] = 0;
    return p + 1;
}

static uint64_t read_number(const char **p)
{
    char *end;
    const uint64_t v = strtoull(*p, &end, 10);
    *p = end + (*end == ',' || *end == 'x');
    return v;
}

static const char *put_key(struct fix *f, const char *p)
{
    char name[256];
    size_t n;
    uint32_t type = 0;
    const size_t len = strcspn(p, ",");
    while (strncmp(gguf_val_type_name(type), p, len) != 0)
        if (++type == GGUF_N_VAL_TYPES)
            fail_at("no such type", p);
    p = read_text(p + len + 1, name, &n);
    fix_key(f, name, type);
    return p;
}

static const char *put_tensor(struct fix *f, const char *p)
{
    uint64_t ne[5] = { 0 };
    char name[256];
    size_t n = 0;
    do
        ne[n++] = read_number(&p);
    while (p[-1] == 'x');
    const uint32_t type = (uint32_t)read_number(&p);
    const uint64_t off = read_number(&p);
    p = read_text(p, name, &n);
    fix_info(f, name, ne, type, off);
    return p;
}

/* Write the word at p. Returns the place after it. */
static const char *put_word(struct fix *f, const char *p)
{
    char text[256];
    size_t n = strcspn(p, ": ");
    const char *v = p + n + 1;
    if (*p == '"') {
        p = read_text(p, text, &n);
        fix_bytes(f, text, n);
        return p;
    }
    if (!strncmp(p, "str:", 4)) {
        p = read_text(v, text, &n);
        fix_str(f, text);
        return p;
    }
    if (!strncmp(p, "key:", 4))
        return put_key(f, v);
    if (!strncmp(p, "tensor:", 7))
        return put_tensor(f, v);
    if (!strncmp(p, "head:", 5)) {
        const uint64_t version = read_number(&v), n_tensors = read_number(&v);
        fix_head(f, (uint32_t)version, n_tensors, read_number(&v));
    } else if (!strncmp(p, "pad:", 4)) {
        fix_pad(f, read_number(&v));
    } else if (!strncmp(p, "f32:", 4)) {
        fix_f32(f, strtof(v, NULL));
        v += strcspn(v, " ^");
    } else if (*p == 'u') {
        put_number(f, read_number(&v), strtoul(p + 1, NULL, 10) / 8);
    } else if (!strncmp(p, "mark", n)) {
        fix_mark(f);
        return p + n;
    } else if (!strncmp(p, "big-endian", n)) {
        f->big_endian = true;
        return p + n;
    } else if (*p == '@') {
        snprintf(text, sizeof text, "%.*s", (int)n - 1, p + 1);
        fix_make(fix_find(text), f);
        return p + n;
    } else {
        fail_at("no such word", p);
    }
    return v;
}

void fix_make(const struct fixture *x, struct fix *f)
{
    for (const char *p = x->words; *(p += strspn(p, " "));) {
        const char *next = put_word(f, p);
        unsigned long times = *next == '^' ? strtoul(next + 1, NULL, 10) : 1;
        while (--times)
            put_word(f, p);
        p = next + strcspn(next, " ");
    }
}
