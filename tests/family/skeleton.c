/* SPDX-License-Identifier: MIT */
/* skeleton.c - models of architectures as small texts */
#include "config.h"
#include "tests/family/skeleton.h"
#include "tests/ignore_status.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FAMILIES = 64 };

/* Path of tests/family, or of a family's folder there; NULL: the former. */
static const char *folder_of(const char *family)
{
    static char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/family/%.63s", top ? top : ".",
             family);
    return path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Add the names of a folder that have this end, without it. */
static size_t add_names(const char *folder, const char *end, char (*names)[64],
                        size_t n, size_t max)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const size_t len = strcspn(e->d_name, ".");
        if (len && !strcmp(e->d_name + len, end) && n < max)
            snprintf(names[n++], sizeof names[0], "%.*s", (int)len, e->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

/* Names of all families: those without a dot are folders of texts. */
static size_t family_names(char (*names)[64])
{
    const size_t n = add_names(folder_of(""), "", names, 0, MAX_FAMILIES);
    qsort(names, n, sizeof names[0], by_name);
    return n;
}

size_t skeleton_names(char (*names)[64], size_t max)
{
    char family[MAX_FAMILIES][64];
    const size_t n_families = family_names(family);
    size_t n = 0;
    for (size_t i = 0; i < n_families; i++)
        n = add_names(folder_of(family[i]), ".txt", names, n, max);
    qsort(names, n, sizeof names[0], by_name);
    return n;
}

bool skeleton_path(const char *name, char path[4400])
{
    char family[MAX_FAMILIES][64];
    const size_t n = family_names(family);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, 4400, "%s/%.64s.txt", folder_of(family[i]), name);
        FILE *f = fopen(path, "r");
        if (f) {
            fclose(f);
            return true;
        }
    }
    return false;
}

FILE *skeleton_section(const char *name, const char *word, char heading[256])
{
    const size_t n = strlen(word);
    char path[4400];
    FILE *f = skeleton_path(name, path) ? fopen(path, "r") : NULL;
    while (f && fgets(heading, 256, f)) {
        heading[strcspn(heading, "\n")] = 0;
        if (heading[0] == '[' && !strncmp(heading + 1, word, n) &&
            strchr(" ]", heading[n + 1]))
            return f;
    }
    if (f)
        fclose(f);
    return NULL;
}

void skeleton_key(const struct skeleton *s, const char *key, char full[192])
{
    struct gguf_str arch = { "", 0 };
    if (key[0] == '.')
        ignore_status(gguf_kv_get_str(
            gguf_meta_find(s->g.meta, "general.architecture"), &arch, NULL));
    snprintf(full, 192, "%.*s%s", (int)arch.size, arch.data, key);
}

/* Number of an architecture's key; 0: missing. */
static size_t get_number(const struct skeleton *s, const char *key)
{
    char name[192];
    uint64_t v;
    skeleton_key(s, key, name);
    return gguf_kv_get_uint(gguf_meta_find(s->g.meta, name), &v, NULL) ==
                   GGUF_OK
               ? (size_t)v
               : 0;
}

size_t skeleton_width(const struct skeleton *s)
{
    return get_number(s, strcmp(s->run, "embed") ? ".vocab_size"
                                                 : ".embedding_length");
}

void skeleton_tokens_of(const struct skeleton *s,
                        gguf_token tok[SKELETON_TOKENS])
{
    const size_t n = get_number(s, ".vocab_size");
    for (int i = 0; i < SKELETON_TOKENS; i++)
        tok[i] = (i * 37 + 11) % (int)(n ? n : SKELETON_VOCAB);
}

void skeleton_tokens(gguf_token tok[SKELETON_TOKENS])
{
    for (int i = 0; i < SKELETON_TOKENS; i++)
        tok[i] = (i * 37 + 11) % SKELETON_VOCAB;
}

/* ---- reading ---- */

/* Values that earlier lines have set. */
struct reader {
    struct skeleton *s;
    char in[32]; /* "blk"; "": top level */
    uint8_t layer[256];
};

static char *next_word(char **p)
{
    char *w = *p + strspn(*p, " ");
    *p = w + strcspn(w, " ");
    if (**p)
        *(*p)++ = 0;
    return w;
}

static bool read_array(struct gguf_meta *m, const char *key, const char *type,
                       char *p)
{
    enum { MOST = 256 };
    int32_t i32[MOST];
    uint32_t u32[MOST];
    uint64_t u64[MOST];
    float f32[MOST];
    uint8_t is[MOST];
    struct gguf_str str[MOST];
    const struct {
        const char *type;
        enum gguf_val_type of;
        const void *v;
    } types[] = { { "i32", GGUF_VAL_I32, i32 },
                  { "u32", GGUF_VAL_U32, u32 },
                  { "u64", GGUF_VAL_U64, u64 },
                  { "f32", GGUF_VAL_F32, f32 },
                  { "bool", GGUF_VAL_BOOL, is } };
    size_t n = 0;
    for (char *w; n < MOST && *(w = next_word(&p)); n++) {
        i32[n] = (int32_t)strtol(w, NULL, 10);
        u32[n] = (uint32_t)strtoul(w, NULL, 10);
        u64[n] = strtoull(w, NULL, 10);
        f32[n] = strtof(w, NULL);
        is[n] = i32[n] != 0;
        str[n] = (struct gguf_str){ w, strlen(w) };
    }
    if (!strcmp(type, "str") && !*p)
        return gguf_meta_set_str_array(m, key, str, n, NULL) == GGUF_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types && !*p; i++)
        if (!strcmp(type, types[i].type))
            return gguf_meta_set_array(m, key, types[i].of, types[i].v, n,
                                       NULL) == GGUF_OK;
    return false;
}

bool skeleton_set_key(struct skeleton *s, char *p)
{
    struct gguf_meta *m = s->g.meta;
    char key[192];
    const char *k = next_word(&p), *type = next_word(&p);
    skeleton_key(s, k, key);
    if (!strcmp(type, "str"))
        return gguf_meta_set_strz(m, key, p, NULL) == GGUF_OK;
    if (!strcmp(type, "u32"))
        return gguf_meta_set_u32(m, key, (uint32_t)strtoul(p, NULL, 10),
                                 NULL) == GGUF_OK;
    if (!strcmp(type, "u16"))
        return gguf_meta_set_u16(m, key, (uint16_t)strtoul(p, NULL, 10),
                                 NULL) == GGUF_OK;
    if (!strcmp(type, "u64"))
        return gguf_meta_set_u64(m, key, strtoull(p, NULL, 10), NULL) ==
               GGUF_OK;
    if (!strcmp(type, "f32"))
        return gguf_meta_set_f32(m, key, strtof(p, NULL), NULL) == GGUF_OK;
    if (!strcmp(type, "bool"))
        return gguf_meta_set_bool(m, key, *p == '1', NULL) == GGUF_OK;
    return !strncmp(type, "arr:", 4) && read_array(m, key, type + 4, p);
}

/* Read "blk 0,2-5" or "-". */
static bool read_in(struct reader *r, char *p)
{
    const char *w = next_word(&p);
    memset(r->layer, 0, sizeof r->layer);
    snprintf(r->in, sizeof r->in, "%s", strcmp(w, "-") ? w : "");
    while (*p) {
        unsigned long a = strtoul(p, &p, 10), b = a;
        if (*p == '-')
            b = strtoul(p + 1, &p, 10);
        if (a > b || b > 255 || (*p && *p++ != ','))
            return false;
        memset(r->layer + a, 1, b - a + 1);
    }
    return true;
}

static bool read_tensor(struct reader *r, const char *name, char *p)
{
    struct gen_tensor t = { .n_dims = 0, .ne = { 1, 1, 1, 1 } };
    for (char *w; t.n_dims < 4 && *(w = next_word(&p));)
        t.ne[t.n_dims++] = strtoll(w, NULL, 10);
    if (*p || !t.n_dims)
        return false;
    for (unsigned il = 0; il < (*r->in ? sizeof r->layer : 1); il++) {
        if (*r->in && !r->layer[il])
            continue;
        if (*r->in)
            gen_tensor(&r->s->g, 1, 0, "%s.%u.%s", r->in, il, name);
        else
            gen_tensor(&r->s->g, 1, 0, "%s", name);
        struct gen_tensor *to = &r->s->g.t[r->s->g.n - 1];
        to->n_dims = t.n_dims;
        memcpy(to->ne, t.ne, sizeof t.ne);
    }
    return true;
}

static bool read_digest(struct skeleton *s, char *p)
{
    s->n_rows = strtoul(p, &p, 10);
    s->width = strtoul(p, &p, 10);
    for (int k = 0; k < SKELETON_SUMS; k++) {
        char *end;
        s->sum[k] = strtod(p, &end);
        if (end == p)
            return false;
        p = end;
    }
    return s->n_rows && s->width;
}

static bool read_line(struct reader *r, char *p)
{
    struct skeleton *s = r->s;
    const char *w = next_word(&p);
    if (!*w || *w == '#')
        return true;
    if (!strcmp(w, "seed"))
        return (s->g.seed = strtoull(p, NULL, 0)) != 0;
    if (!strcmp(w, "gain")) {
        w = next_word(&p);
        return gen_gain(&s->g, w, strtod(p, NULL));
    }
    if (!strcmp(w, "run"))
        return snprintf(s->run, sizeof s->run, "%s", p) > 0;
    if (!strcmp(w, "tol"))
        return (s->tol = strtod(p, NULL)) > 0;
    if (!strcmp(w, "key"))
        return skeleton_set_key(s, p);
    if (!strcmp(w, "in"))
        return read_in(r, p);
    if (!strcmp(w, "digest"))
        return read_digest(s, p);
    return read_tensor(r, w, p);
}

bool skeleton_open(struct skeleton *s, const char *name)
{
    struct reader r = { .s = s };
    char path[4400], line[1024];
    memset(s, 0, sizeof *s);
    gen_init(&s->g, 0);
    snprintf(s->name, sizeof s->name, "%s", name);
    FILE *f = skeleton_path(name, path) ? fopen(path, "r") : NULL;
    bool good = f != NULL;
    while (good && fgets(line, sizeof line, f) && line[0] != '[') {
        line[strcspn(line, "\n")] = 0;
        char kept[64];
        snprintf(kept, sizeof kept, "%.60s", line);
        good = read_line(&r, line);
        if (!good)
            printf("# %s: cannot read '%s'\n", path, kept);
    }
    if (f)
        fclose(f);
    return good && s->g.n;
}

void skeleton_close(struct skeleton *s)
{
    gen_fini(&s->g);
}

/* ---- digests ---- */

void skeleton_digest(const float *x, size_t n_rows, size_t width,
                     double sum[SKELETON_SUMS])
{
    memset(sum, 0, SKELETON_SUMS * sizeof *sum);
    for (size_t i = 0; i < n_rows * width; i++) {
        uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        sum[i / width * SKELETON_SUMS / n_rows] +=
            z >> 63 ? (double)x[i] : -(double)x[i];
    }
}

double skeleton_nmse(const struct skeleton *s, const float *x)
{
    double got[SKELETON_SUMS], d = 0, all = 0;
    skeleton_digest(x, s->n_rows, s->width, got);
    for (int k = 0; k < SKELETON_SUMS; k++) {
        d += (got[k] - s->sum[k]) * (got[k] - s->sum[k]);
        all += s->sum[k] * s->sum[k];
    }
    return d / all;
}
