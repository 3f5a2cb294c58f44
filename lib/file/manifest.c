/* SPDX-License-Identifier: MIT */
/* manifest.c - manifests of digests, as llama-gguf-hash and sha256sum write
 * them */
#include "config.h"
#include "base/index.h"
#include "base/mem.h"
#include "base/str.h"
#include "gguf/digest.h"

#include <stdio.h>
#include <string.h>

struct entry {
    struct gguf_digest digest;
    struct gguf_str name; /* name of the tensor, or of the file */
};

struct gguf_manifest {
    const struct gguf_allocator *allocator;
    char *text;
    struct entry *entry;
    size_t n, room, n_skipped;
    struct entry *whole; /* digests of files */
    size_t n_whole, room_whole;
    struct gg_index index[GGUF_N_DIGESTS];
};

/* A line that is formatted to out as far as it fits, and measured. */
struct line {
    char *out;
    size_t size, n;
};

static void put_text(struct line *l, const char *z)
{
    const int n = snprintf(l->n < l->size ? l->out + l->n : NULL,
                           l->n < l->size ? l->size - l->n : 0, "%s", z);
    l->n += n < 0 ? 0 : (size_t)n;
}

static void put_digest(struct line *l, const struct gguf_digest *d)
{
    char hex[65];
    gguf_digest_format(d, hex);
    put_text(l, hex);
    put_text(l, "  ");
}

static void put_name(struct line *l, struct gguf_str name)
{
    char one[16];
    uint32_t cp;
    for (size_t at = 0, n; at < name.size; at += n) {
        n = gg_str_utf8_decode(name.data + at, name.size - at, &cp);
        n += !n;
        gg_str_escape(one, sizeof one, name.data + at, n);
        put_text(l, one);
    }
}

size_t gguf_manifest_format_tensor(char *out, size_t size,
                                   const struct gguf_digest *d,
                                   struct gguf_str file,
                                   struct gguf_str tensor)
{
    struct line l = { out, size, 0 };
    char algo[32];
    snprintf(algo, sizeof algo, "%-8s  ", gguf_digest_algo_name(d->algo));
    put_text(&l, algo);
    put_digest(&l, d);
    put_name(&l, file);
    if (tensor.size)
        put_text(&l, ":");
    put_name(&l, tensor);
    return l.n;
}

size_t gguf_manifest_format_file(char *out, size_t size,
                                 const struct gguf_digest *d,
                                 struct gguf_str file)
{
    struct line l = { out, size, 0 };
    put_digest(&l, d);
    put_name(&l, file);
    return l.n;
}

static struct gguf_str entry_name(const void *user, uint32_t id)
{
    const struct gguf_manifest *m = user;
    return m->entry[id].name;
}

void gguf_manifest_destroy(struct gguf_manifest *m)
{
    if (!m)
        return;
    for (int k = 0; k < GGUF_N_DIGESTS; k++)
        gg_index_fini(&m->index[k]);
    gg_mem_free(m->allocator, m->entry);
    gg_mem_free(m->allocator, m->whole);
    gg_mem_free(m->allocator, m->text);
    gg_mem_free(m->allocator, m);
}

/* Take the next word of s, which then begins after it. */
static struct gguf_str next_word(struct gguf_str *s)
{
    struct gguf_str w;
    while (s->size && (*s->data == ' ' || *s->data == '\t'))
        s->data++, s->size--;
    w = (struct gguf_str){ s->data, 0 };
    while (s->size && *s->data != ' ' && *s->data != '\t')
        s->data++, s->size--, w.size++;
    return w;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parse a digest of algorithm d->algo. Returns false if it has other digits. */
static bool parse_hex(struct gguf_str hex, struct gguf_digest *d)
{
    char form[65];
    gguf_digest_format(d, form);
    if (hex.size != strlen(form))
        return false;
    for (size_t i = 0; i < hex.size; i += 2) {
        int hi = digit_value(hex.data[i]), lo = digit_value(hex.data[i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        d->bytes[i / 2] = (unsigned char)(hi << 4 | lo);
    }
    return true;
}

static enum gguf_status add_entry(struct gguf_manifest *m,
                                  const struct entry *e, bool whole,
                                  struct gguf_error *err)
{
    struct entry **list = whole ? &m->whole : &m->entry;
    size_t *n = whole ? &m->n_whole : &m->n;
    size_t *room = whole ? &m->room_whole : &m->room;
    if (*n == *room) {
        void *grown =
            gg_mem_grow(m->allocator, *list, room, sizeof *e, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        *list = grown;
    }
    (*list)[(*n)++] = *e;
    return GGUF_OK;
}

/* Add the digest of a file. line is the rest of "DIGEST  FILE" or
 * "DIGEST *FILE" after the digest. */
static enum gguf_status add_whole(struct gguf_manifest *m, struct entry *e,
                                  struct gguf_str line, size_t number,
                                  struct gguf_error *err)
{
    if (line.size > 2 && line.data[0] == ' ' &&
        (line.data[1] == ' ' || line.data[1] == '*')) {
        e->name = (struct gguf_str){ line.data + 2, line.size - 2 };
        return add_entry(m, e, true, err);
    }
    return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                        "line %zu: a digest without a file name", number);
}

static enum gguf_status parse_line(struct gguf_manifest *m,
                                   struct gguf_str line, size_t number,
                                   struct gguf_error *err)
{
    char name[16];
    struct entry e = { .digest.algo = GGUF_DIGEST_SHA256 };
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    struct gguf_str algo = next_word(&line);
    if (algo.size == 0)
        return GGUF_OK;
    if (parse_hex(algo, &e.digest))
        return add_whole(m, &e, line, number, err);
    struct gguf_str hex = next_word(&line);
    while (line.size && *line.data == ' ')
        line.data++, line.size--;
    if (hex.size == 0 || line.size == 0)
        return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                            "line %zu: expected ALGORITHM DIGEST NAME",
                            number);
    if (!gg_str_join(name, sizeof name, algo, "") ||
        !gguf_digest_algo_find(name, &e.digest.algo)) {
        m->n_skipped++;
        return GGUF_OK;
    }
    e.name = line;
    if (!parse_hex(hex, &e.digest))
        return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                            "line %zu: not a digest of %s", number, name);
    return add_entry(m, &e, false, err);
}

static bool begins_with(struct gguf_str s, struct gguf_str with)
{
    return s.size >= with.size && !memcmp(s.data, with.data, with.size);
}

/* Find FILE, which precedes the names of all tensors as "FILE:". It is the name
 * in the line of the model, the shortest one. Without that line, it ends at the
 * last colon of the first name. Empty if the names do not agree. */
static struct gguf_str find_prefix(const struct gguf_manifest *m)
{
    struct gguf_str file = m->entry[0].name, first = file;
    for (size_t i = 1; i < m->n; i++)
        if (m->entry[i].name.size < file.size)
            file = m->entry[i].name;
    size_t n_agree = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct gguf_str s = m->entry[i].name;
        n_agree += begins_with(s, file) &&
                   (s.size == file.size || s.data[file.size] == ':');
    }
    if (n_agree == m->n)
        return file;
    struct gguf_str prefix = first;
    while (prefix.size && prefix.data[prefix.size - 1] != ':')
        prefix.size--;
    for (size_t i = 0; i < m->n; i++)
        if (!begins_with(m->entry[i].name, prefix))
            return (struct gguf_str){ file.data, 0 };
    prefix.size -= prefix.size > 0;
    return prefix;
}

/* Remove the name of the file from all names. That of the model becomes
 * empty. */
static void strip_file(struct gguf_manifest *m)
{
    if (m->n == 0)
        return;
    struct gguf_str prefix = find_prefix(m);
    for (size_t i = 0; i < m->n && prefix.size; i++) {
        struct gguf_str *s = &m->entry[i].name;
        size_t skip = GG_MIN(prefix.size + 1, s->size);
        s->data += skip;
        s->size -= skip;
    }
}

static enum gguf_status index_all(struct gguf_manifest *m,
                                  struct gguf_error *err)
{
    for (int k = 0; k < GGUF_N_DIGESTS; k++)
        GG_TRY(
            gg_index_init(&m->index[k], m->allocator, 16, entry_name, m, err));
    for (size_t i = 0; i < m->n; i++) {
        const struct gguf_digest *d = &m->entry[i].digest;
        uint32_t other;
        struct gg_str_esc e;
        GG_TRY(gg_index_add(&m->index[d->algo], (uint32_t)i, &other, err));
        if (other != GG_INDEX_NONE &&
            !gguf_digest_equal(d, &m->entry[other].digest))
            return gg_error_set(err, GGUF_E_DUPLICATE, GGUF_NO_OFFSET,
                                "two digests for '%s'",
                                gg_str_esc(&e, m->entry[i].name));
    }
    return GGUF_OK;
}

static enum gguf_status parse_lines(struct gguf_manifest *m, const char *text,
                                    size_t size, struct gguf_error *err)
{
    m->text = gg_mem_alloc(m->allocator, size);
    if (!m->text)
        return gg_error_set_nomem(err, size);
    if (size)
        memcpy(m->text, text, size);
    for (size_t at = 0, number = 1; at < size; number++) {
        const char *nl = memchr(m->text + at, '\n', size - at);
        size_t n = nl ? (size_t)(nl - (m->text + at)) : size - at;
        GG_TRY(
            parse_line(m, (struct gguf_str){ m->text + at, n }, number, err));
        at += n + 1;
    }
    strip_file(m);
    return index_all(m, err);
}

enum gguf_status gguf_manifest_parse(struct gguf_manifest **out,
                                     const char *text, size_t size,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err)
{
    *out = NULL;
    struct gguf_manifest *m = gg_mem_alloc_zero(allocator, 1, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    m->allocator = allocator;
    for (int k = 0; k < GGUF_N_DIGESTS; k++)
        m->index[k].allocator = allocator;
    enum gguf_status st = parse_lines(m, text, size, err);
    if (st != GGUF_OK)
        gguf_manifest_destroy(m);
    else
        *out = m;
    return st;
}

size_t gguf_manifest_n_entries(const struct gguf_manifest *m)
{
    return m->n;
}

size_t gguf_manifest_n_files(const struct gguf_manifest *m)
{
    return m->n_whole;
}

const struct gguf_digest *gguf_manifest_file(const struct gguf_manifest *m,
                                             size_t i, struct gguf_str *file)
{
    if (i >= m->n_whole)
        return NULL;
    if (file)
        *file = m->whole[i].name;
    return &m->whole[i].digest;
}

size_t gguf_manifest_n_skipped(const struct gguf_manifest *m)
{
    return m->n_skipped;
}

const struct gguf_digest *gguf_manifest_entry(const struct gguf_manifest *m,
                                              size_t i,
                                              struct gguf_str *tensor)
{
    if (i >= m->n)
        return NULL;
    if (tensor)
        *tensor = m->entry[i].name;
    return &m->entry[i].digest;
}

const struct gguf_digest *gguf_manifest_find(const struct gguf_manifest *m,
                                             enum gguf_digest_algo algo,
                                             struct gguf_str tensor)
{
    if ((unsigned)algo >= GGUF_N_DIGESTS)
        return NULL;
    const struct gg_index *ix = &m->index[algo];
    const size_t size = 8 * tensor.size + 1;
    char *name = gg_mem_alloc(m->allocator, size);
    uint32_t id = GG_INDEX_NONE;
    if (name) {
        const size_t n = gg_str_escape(name, size, tensor.data, tensor.size);
        id = gg_index_find(ix, (struct gguf_str){ name, n });
        gg_mem_free(m->allocator, name);
    }
    if (id == GG_INDEX_NONE)
        id = gg_index_find(ix, tensor);
    return id == GG_INDEX_NONE ? NULL : &m->entry[id].digest;
}
