/* SPDX-License-Identifier: MIT */
/* hostile.c - makes hostile files from rows that describe their bytes */
#include "config.h"
#include "tests/hostile/hostile.h"

#include "base/bytes.h"
#include "tests/scratch.h"
#include "tests/slurp.h"

#include <sys/stat.h>
#include <unistd.h>

/* The files made before, and the one under construction. */
struct maker {
    struct hostile *list;
    size_t n, cap;
    size_t base; /* file whose bytes @ copies */
};

/* ---- bytes of a file ---- */

/* Add n bytes to the file. Returns where they begin. */
static uint8_t *add_room(struct hostile *h, size_t n)
{
    if (h->size + n > h->cap) {
        h->cap = 2 * h->cap + n;
        h->data = realloc(h->data, h->cap);
        h->any = realloc(h->any, h->cap);
        if (!h->data || !h->any)
            abort();
    }
    memset(h->any + h->size, 0, n);
    h->size += n;
    return h->data + h->size - n;
}

static void put_bytes(struct hostile *h, const void *p, size_t n)
{
    memcpy(add_room(h, n), p, n);
}

static void put_u64(struct hostile *h, uint64_t v)
{
    gg_bytes_store64le(add_room(h, 8), v);
}

/* Weights of an embedding and of norms, with usual magnitudes. */
static void put_weights(struct hostile *h, size_t n)
{
    uint64_t s = h->size;
    for (size_t i = 0; i < n / 4; i++) {
        s = s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const float v = (float)((int32_t)(s >> 40) - (1 << 23)) * 0x1p-25f;
        gg_bytes_store32le(add_room(h, 4), gg_bytes_f32_bits(v));
    }
    memset(h->any + h->size - n / 4 * 4, 1, n / 4 * 4);
}

static bool put_copy(struct hostile *to, const struct hostile *from,
                     size_t off, size_t n)
{
    if (off > from->size || n > from->size - off)
        return false;
    put_bytes(to, from->data + off, n);
    memcpy(to->any + to->size - n, from->any + off, n);
    return true;
}

static bool put_again(struct hostile *h, size_t back, size_t n)
{
    if (!back || back > h->size)
        return false;
    uint8_t *p = add_room(h, n);
    for (size_t i = 0; i < n; i++)
        p[i] = *(p + i - back);
    return true;
}

/* Keys of one byte each, with distinct names. */
static void put_keys(struct hostile *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        const uint8_t type_and_value[5] = { 0, 0, 0, 0, (uint8_t)i };
        put_u64(h, (uint64_t)snprintf(name, sizeof name, "k%05x", i));
        put_bytes(h, name, strlen(name));
        put_bytes(h, type_and_value, sizeof type_and_value);
    }
}

/* Tensors of eight floats each, one after another. */
static void put_tensors(struct hostile *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[32];
        put_u64(h, (uint64_t)snprintf(name, sizeof name, "blk.%u.w", i));
        put_bytes(h, name, strlen(name));
        gg_bytes_store32le(add_room(h, 4), 1);
        put_u64(h, 8);
        gg_bytes_store32le(add_room(h, 4), 0);
        put_u64(h, 32 * (uint64_t)i);
    }
}

/* ---- words of a row ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Two hexadecimal digits; -1: not hexadecimal. */
static int hex_byte(const char *p)
{
    const int a = hex_digit(p[0]), b = a < 0 ? -1 : hex_digit(p[1]);
    return b < 0 ? -1 : a * 16 + b;
}

static const char *put_text(struct hostile *h, const char *p)
{
    for (p++; *p && *p != '"'; p++) {
        int c = (unsigned char)*p;
        if (c == '\\') {
            c = hex_byte(p + 1);
            if (c < 0)
                return NULL;
            p += 2;
        }
        *add_room(h, 1) = (uint8_t)c;
    }
    return *p ? p + 1 : NULL;
}

static const char *put_hex(struct hostile *h, const char *p)
{
    const int c = hex_byte(p);
    if (c >= 0 && p[2] == '*') {
        char *end;
        const size_t n = strtoul(p + 3, &end, 10);
        memset(add_room(h, n), c, n);
        return end;
    }
    for (; *p && *p != ' '; p += 2) {
        const int b = hex_byte(p);
        if (b < 0)
            return NULL;
        *add_room(h, 1) = (uint8_t)b;
    }
    return p;
}

static bool find_base(struct maker *m, const char *name, size_t n)
{
    for (m->base = 0; m->base + 1 < m->n; m->base++)
        if (strlen(m->list[m->base].name) == n &&
            !memcmp(m->list[m->base].name, name, n))
            return true;
    return false;
}

/* Write one word. Returns the place after it; NULL: malformed. */
static const char *put_word(struct maker *m, const char *p)
{
    struct hostile *h = &m->list[m->n - 1];
    unsigned long a, b;
    int len = 0;
    char *end;
    if (*p == '"')
        return put_text(h, p);
    if (!strncmp(p, "of ", 3)) {
        const size_t n = strcspn(p + 3, " ");
        return find_base(m, p + 3, n) ? p + 3 + n : NULL;
    }
    if (sscanf(p, "@%lu+%lu%n", &a, &b, &len) == 2)
        return put_copy(h, &m->list[m->base], a, b) ? p + len : NULL;
    if (sscanf(p, "again %lu+%lu%n", &a, &b, &len) == 2)
        return put_again(h, a, b) ? p + len : NULL;
    if (sscanf(p, "weights %lu%n", &a, &len) == 1)
        put_weights(h, a);
    else if (sscanf(p, "keys %lu%n", &a, &len) == 1)
        put_keys(h, (unsigned)a);
    else if (sscanf(p, "tensors %lu%n", &a, &len) == 1)
        put_tensors(h, (unsigned)a);
    else if (*p != 'n')
        return put_hex(h, p);
    else {
        put_u64(h, strtoull(p + 1, &end, 10));
        return end;
    }
    return p + len;
}

static void begin_file(struct maker *m, const char *row)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->list = realloc(m->list, m->cap * sizeof *m->list);
        if (!m->list)
            abort();
    }
    struct hostile *h = &m->list[m->n++];
    *h = (struct hostile){ .row = strdup(row) };
    snprintf(h->name, sizeof h->name, "%.*s", (int)strcspn(row, "\t"), row);
}

static bool read_line(struct maker *m, const char *p)
{
    if (*p == '#' || !*p)
        return true;
    if (*p != ' ') {
        begin_file(m, p);
        return true;
    }
    while (p && *p) {
        p += strspn(p, " ");
        if (*p)
            p = put_word(m, p);
    }
    return p != NULL;
}

struct hostile *hostile_read(size_t *n)
{
    struct maker m = { .n = 0 };
    const char *top = getenv("srcdir");
    char path[4400];
    snprintf(path, sizeof path, "%s/tests/hostile/files.txt", top ? top : ".");
    char *text = slurp(path, NULL);
    bool good = text != NULL;
    for (char *p = text, *next; good && *p; p = next) {
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        good = read_line(&m, p);
        if (!good)
            printf("# %s: '%.70s'\n", path, p);
    }
    free(text);
    *n = m.n;
    if (good)
        return m.list;
    hostile_free(m.list, m.n);
    printf("# %s cannot be read\n", path);
    return NULL;
}

void hostile_free(struct hostile *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(h[i].row);
        free(h[i].data);
        free(h[i].any);
    }
    free(h);
}

/* ---- in a folder ---- */

static bool write_files(const char *dir, const struct hostile *h, size_t n)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/expect.tsv", dir);
    FILE *f = fopen(path, "w");
    bool good = f != NULL;
    for (size_t i = 0; good && i < n; i++) {
        const char *slash = strchr(h[i].name, '/');
        if (slash) {
            snprintf(path, sizeof path, "%s/%.*s", dir,
                     (int)(slash - h[i].name), h[i].name);
            gg_os_make_folder(path);
        }
        snprintf(path, sizeof path, "%s/%s", dir, h[i].name);
        good = spill(path, h[i].data, h[i].size) &&
               fprintf(f, "%s\n", h[i].row) > 0;
    }
    if (f && fclose(f))
        good = false;
    return good;
}

bool hostile_write(const char *dir)
{
    size_t n;
    struct hostile *h = hostile_read(&n);
    const bool good = h && write_files(dir, h, n);
    if (h)
        hostile_free(h, n);
    return good;
}

static char made[3000];

const char *hostile_make(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(made, sizeof made, "%.2900s/gguf-hostile-XXXXXX",
             tmp ? tmp : "/tmp");
    if (scratch_make(made) && hostile_write(made))
        return made;
    printf("# no hostile files in %s\n", made);
    hostile_remove();
    return NULL;
}

void hostile_remove(void)
{
    size_t n = 0;
    char path[4400];
    struct hostile *h = *made ? hostile_read(&n) : NULL;
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", made, h[i].name);
        unlink(path);
        *strrchr(path, '/') = 0;
        rmdir(path); /* after the last file in it */
    }
    snprintf(path, sizeof path, "%s/expect.tsv", made);
    unlink(path);
    rmdir(made);
    if (h)
        hostile_free(h, n);
    *made = 0;
}
