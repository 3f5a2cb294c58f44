/* SPDX-License-Identifier: MIT */
/* skeleton_json.c - skeletons of ../shared/archs, in JSON */
#include "config.h"
#include "tests/family/skeleton.h"
#include "tests/slurp.h"

#include <stdlib.h>
#include <string.h>

struct json {
    const char *p;
    int bad;
};

static char peek(struct json *j)
{
    while (*j->p == ' ' || *j->p == '\n' || *j->p == '\r' || *j->p == '\t')
        j->p++;
    return *j->p;
}

static int take(struct json *j, char c)
{
    if (peek(j) != c)
        return 0;
    j->p++;
    return 1;
}

static void want(struct json *j, char c)
{
    if (!take(j, c))
        j->bad = 1;
}

static void string(struct json *j, char *out, size_t size)
{
    size_t n = 0;
    want(j, '"');
    for (; *j->p && *j->p != '"'; j->p++) {
        j->p += *j->p == '\\' && j->p[1]; /* no others than \\ and \" */
        if (n + 1 < size)
            out[n++] = *j->p;
    }
    out[n] = 0;
    want(j, '"');
}

static double number(struct json *j)
{
    char *end;
    peek(j);
    double v = strtod(j->p, &end);
    j->bad |= end == j->p;
    j->p = end;
    return v;
}

static int truth(struct json *j)
{
    int v = peek(j) == 't';
    j->bad |= strncmp(j->p, v ? "true" : "false", v ? 4 : 5) != 0;
    while (!j->bad && *j->p >= 'a' && *j->p <= 'z')
        j->p++;
    return v;
}

static void skip_value(struct json *j)
{
    char text[256];
    if (peek(j) == '"') {
        string(j, text, sizeof text);
    } else if (take(j, '[') || take(j, '{')) {
        while (!j->bad && !take(j, ']') && !take(j, '}')) {
            if (!take(j, ',') && !take(j, ':'))
                skip_value(j);
        }
    } else {
        number(j);
    }
}

/* An array of i32 or bool. */
static void read_array(struct gen *g, struct json *j, const char *key,
                       int is_bool)
{
    int32_t v[256];
    uint8_t b[256];
    size_t n = 0;
    want(j, '[');
    do {
        if (is_bool)
            b[n & 255] = (uint8_t)truth(j);
        else
            v[n & 255] = (int32_t)number(j);
        n++;
    } while (take(j, ','));
    want(j, ']');
    j->bad |= n > 256;
    if (!j->bad)
        j->bad |= gguf_meta_set_array(
                      g->meta, key, is_bool ? GGUF_VAL_BOOL : GGUF_VAL_I32,
                      is_bool ? (const void *)b : v, n, NULL) != GGUF_OK;
}

static void read_kv(struct gen *g, struct json *j)
{
    char key[128], type[16], text[128];
    string(j, key, sizeof key);
    want(j, ',');
    string(j, type, sizeof type);
    want(j, ',');
    if (strcmp(type, "str") == 0) {
        string(j, text, sizeof text);
        j->bad |= gguf_meta_set_strz(g->meta, key, text, NULL) != GGUF_OK;
    } else if (strcmp(type, "u32") == 0) {
        j->bad |= gguf_meta_set_u32(g->meta, key, (uint32_t)number(j), NULL) !=
                  GGUF_OK;
    } else if (strcmp(type, "f32") == 0) {
        j->bad |=
            gguf_meta_set_f32(g->meta, key, (float)number(j), NULL) != GGUF_OK;
    } else if (strcmp(type, "bool") == 0) {
        j->bad |= gguf_meta_set_bool(g->meta, key, truth(j), NULL) != GGUF_OK;
    } else if (strncmp(type, "arr:", 4) == 0) {
        read_array(g, j, key, strcmp(type, "arr:bool") == 0);
    } else {
        j->bad = 1;
    }
}

static void read_tensor(struct gen *g, struct json *j)
{
    char name[64], type[16];
    string(j, name, sizeof name);
    want(j, ',');
    string(j, type, sizeof type);
    want(j, ',');
    gen_tensor(g, 1, 0, "%s", name);
    struct gen_tensor *t = &g->t[g->n - 1];
    t->n_dims = 0;
    want(j, '[');
    do
        t->ne[t->n_dims++ & 3] = (int64_t)number(j);
    while (take(j, ','));
    want(j, ']');
}

/* "gain": {pattern: factor, ...} */
static void read_gains(struct gen *g, struct json *j)
{
    char pattern[48];
    want(j, '{');
    do {
        string(j, pattern, sizeof pattern);
        want(j, ':');
        j->bad |= !gen_gain(g, pattern, number(j));
    } while (!j->bad && take(j, ','));
    want(j, '}');
}

static void read_list(struct gen *g, struct json *j,
                      void (*read)(struct gen *g, struct json *j))
{
    want(j, '[');
    do {
        want(j, '[');
        read(g, j);
        want(j, ']');
    } while (!j->bad && take(j, ','));
    want(j, ']');
}

bool skeleton_read_json(struct skeleton *s, const char *path)
{
    char *text = slurp(path, NULL), seed[32];
    struct json j = { text, !text };
    memset(s, 0, sizeof *s);
    gen_init(&s->g, 0);
    if (text)
        want(&j, '{');
    while (!j.bad) {
        char key[32];
        string(&j, key, sizeof key);
        want(&j, ':');
        if (!strcmp(key, "seed")) {
            string(&j, seed, sizeof seed);
            s->g.seed = strtoull(seed, NULL, 0);
        } else if (!strcmp(key, "name")) {
            string(&j, s->name, sizeof s->name);
        } else if (!strcmp(key, "run")) {
            string(&j, s->run, sizeof s->run);
        } else if (!strcmp(key, "gain")) {
            read_gains(&s->g, &j);
        } else if (!strcmp(key, "kv")) {
            read_list(&s->g, &j, read_kv);
        } else if (!strcmp(key, "tensors")) {
            read_list(&s->g, &j, read_tensor);
        } else {
            skip_value(&j);
        }
        if (!take(&j, ','))
            break;
    }
    if (!j.bad)
        want(&j, '}');
    free(text);
    return !j.bad && s->g.n > 0;
}
