/* part.c - scores of chunks: kept, put together, saved and loaded */
#include "config.h"
#include "gguf/part.h"

#include "base/mem.h"
#include "base/str.h"
#include "file/file.h"
#include "eval/origin.h"
#include "eval/part_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 4096, MOST_NAME = 40 };

#define KEY "score.part."
static const struct gg_part_kind part_kind = { "score-part", KEY, 1 };
static const char setting_key[] = KEY "of.", note_key[] = KEY "note.";
static const struct gguf_str counts_name = { "counts", 6 },
                             scores_name = { "scores", 6 };

struct pair {
    const char *name, *value;
};
struct pairs {
    struct pair *list;
    size_t n, room;
};

struct gguf_part {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena; /* names and values */
    struct pairs settings, notes;
    size_t n_chunks, n_values, n_done;
    struct chunk {
        double *value; /* NULL: not done */
        size_t n;      /* tokens */
    } * chunk;         /* [n_chunks] */
};

/* ---- the object ---- */

enum gguf_status gguf_part_create(struct gguf_part **out, size_t n_chunks,
                                  size_t n_values,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = NULL;
    if (!n_values || n_values > MOST_VALUES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%zu numbers for each token: must be 1 to %d",
                            n_values, (int)MOST_VALUES);
    struct gguf_part *p = gg_mem_alloc_zero(allocator, 1, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    p->allocator = allocator;
    p->n_chunks = n_chunks;
    p->n_values = n_values;
    gg_mem_arena_init(&p->arena, allocator);
    p->chunk =
        gg_mem_alloc_zero(allocator, GG_MAX(n_chunks, 1), sizeof *p->chunk);
    if (!p->chunk) {
        gguf_part_destroy(p);
        return gg_error_set_nomem(err, n_chunks);
    }
    *out = p;
    return GGUF_OK;
}

void gguf_part_destroy(struct gguf_part *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->chunk && i < p->n_chunks; i++)
        gg_mem_free(p->allocator, p->chunk[i].value);
    gg_mem_free(p->allocator, p->chunk);
    gg_mem_free(p->allocator, p->settings.list);
    gg_mem_free(p->allocator, p->notes.list);
    gg_mem_arena_fini(&p->arena);
    gg_mem_free(p->allocator, p);
}

/* ---- settings and notes ---- */

static struct pair *find(const struct pairs *l, struct gguf_str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (gg_str_eqz(name, l->list[i].name))
            return &l->list[i];
    return NULL;
}

static bool is_name(struct gguf_str s)
{
    bool good = s.size && s.size <= MOST_NAME;
    for (size_t i = 0; good && i < s.size; i++) {
        const char c = s.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.';
    }
    return good;
}

static enum gguf_status put(struct gguf_part *p, struct pairs *l,
                            struct gguf_str name, struct gguf_str value,
                            struct gguf_error *err)
{
    struct gg_str_esc esc;
    if (!is_name(name) || memchr(value.data, 0, value.size))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "'%s' cannot be the name of a setting, or has a "
                            "value with a NUL",
                            gg_str_esc(&esc, name));
    const char *v = gg_mem_arena_strndup(&p->arena, value.data, value.size);
    struct pair *old = find(l, name);
    if (old && v)
        old->value = v;
    if (old && v)
        return GGUF_OK;
    const char *n = gg_mem_arena_strndup(&p->arena, name.data, name.size);
    if (!n || !v)
        return gg_error_set_nomem(err, name.size + value.size);
    if (l->n == l->room) {
        struct pair *more = gg_mem_grow(p->allocator, l->list, &l->room,
                                        sizeof *more, l->n + 1, err);
        if (!more)
            return GGUF_E_NOMEM;
        l->list = more;
    }
    l->list[l->n++] = (struct pair){ n, v };
    return GGUF_OK;
}

enum gguf_status gguf_part_set(struct gguf_part *p, const char *name,
                               const char *value, struct gguf_error *err)
{
    return put(p, &p->settings, gg_str_z(name), gg_str_z(value), err);
}

enum gguf_status gguf_part_note(struct gguf_part *p, const char *name,
                                const char *value, struct gguf_error *err)
{
    return put(p, &p->notes, gg_str_z(name), gg_str_z(value), err);
}

const char *gguf_part_setting(const struct gguf_part *p, size_t i,
                              const char **value)
{
    if (i >= p->settings.n)
        return NULL;
    *value = p->settings.list[i].value;
    return p->settings.list[i].name;
}

const char *gguf_part_get_note(const struct gguf_part *p, const char *name)
{
    const struct pair *x = find(&p->notes, gg_str_z(name));
    return x ? x->value : NULL;
}

enum gguf_status gguf_part_tell(struct gguf_part *p, unsigned i,
                                const struct gguf_session *session,
                                const gguf_token *token, size_t n,
                                struct gguf_error *err)
{
    struct gg_origin of;
    char name[MOST_NAME], value[24];
    GG_TRY(gg_origin_tell(&of, session, token, n, err));
    snprintf(name, sizeof name, "model.%u", i);
    GG_TRY(gguf_part_set(p, name, of.model, err));
    snprintf(name, sizeof name, "cache.%u", i);
    GG_TRY(gguf_part_set(p, name, of.cache, err));
    snprintf(value, sizeof value, "%zu", n);
    GG_TRY(gguf_part_set(p, "tokens", value, err));
    return gguf_part_set(p, "text", of.text, err);
}

/* ---- chunks ---- */

enum gguf_status gguf_part_add(struct gguf_part *p, size_t chunk,
                               const double *values, size_t n_tokens,
                               struct gguf_error *err)
{
    if (chunk >= p->n_chunks)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunk %zu: the text has %zu", chunk, p->n_chunks);
    struct chunk *c = &p->chunk[chunk];
    if (c->value)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunk %zu is done", chunk);
    uint64_t n, size;
    if (gg_ckd_mul(&n, (uint64_t)n_tokens, (uint64_t)p->n_values) ||
        gg_ckd_mul(&size, n, (uint64_t)sizeof *values) || size > SIZE_MAX)
        return gg_error_set_nomem(err, SIZE_MAX);
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "chunk %zu: number %" PRIu64 " is not finite",
                                chunk, i);
    c->value = gg_mem_alloc(p->allocator, (size_t)GG_MAX(size, 1));
    if (!c->value)
        return gg_error_set_nomem(err, (size_t)size);
    memcpy(c->value, values, (size_t)size);
    c->n = n_tokens;
    p->n_done++;
    return GGUF_OK;
}

size_t gguf_part_n_chunks(const struct gguf_part *p)
{
    return p->n_chunks;
}

size_t gguf_part_n_values(const struct gguf_part *p)
{
    return p->n_values;
}

size_t gguf_part_n_done(const struct gguf_part *p)
{
    return p->n_done;
}

const double *gguf_part_chunk(const struct gguf_part *p, size_t chunk,
                              size_t *n_tokens)
{
    if (chunk >= p->n_chunks || !p->chunk[chunk].value)
        return NULL;
    *n_tokens = p->chunk[chunk].n;
    return p->chunk[chunk].value;
}

/* ---- together ---- */

/* A setting that b does not have as a has it. */
static enum gguf_status differ(const struct pair *a, const struct pair *b,
                               struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "is a part of another run: '%s' is '%.60s', not "
                        "'%.60s'",
                        a ? a->name : b->name, b ? b->value : "",
                        a ? a->value : "");
}

static enum gguf_status differ_number(const char *what, size_t a, size_t b,
                                      struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "is a part of another run: %zu %s, not %zu", b, what,
                        a);
}

enum gguf_status gguf_part_check(const struct gguf_part *a,
                                 const struct gguf_part *b,
                                 struct gguf_error *err)
{
    for (size_t i = 0; i < a->settings.n; i++) {
        const struct pair *x = &a->settings.list[i];
        const struct pair *y = find(&b->settings, gg_str_z(x->name));
        if (!y || strcmp(x->value, y->value) != 0)
            return differ(x, y, err);
    }
    for (size_t i = 0; i < b->settings.n; i++)
        if (!find(&a->settings, gg_str_z(b->settings.list[i].name)))
            return differ(NULL, &b->settings.list[i], err);
    if (a->n_values != b->n_values)
        return differ_number("numbers for each token", a->n_values,
                             b->n_values, err);
    return a->n_chunks == b->n_chunks
               ? GGUF_OK
               : differ_number("chunks", a->n_chunks, b->n_chunks, err);
}

enum gguf_status gguf_part_merge(struct gguf_part *p,
                                 const struct gguf_part *other,
                                 struct gguf_error *err)
{
    GG_TRY(gguf_part_check(p, other, err));
    for (size_t i = 0; i < p->n_chunks; i++)
        if (p->chunk[i].value && other->chunk[i].value)
            return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                                "chunk %zu is in another part, too", i);
    for (size_t i = 0; i < p->n_chunks; i++) {
        const struct chunk *c = &other->chunk[i];
        if (!c->value)
            continue;
        const enum gguf_status st = gguf_part_add(p, i, c->value, c->n, err);
        for (size_t k = 0; st != GGUF_OK && k < i; k++) {
            if (!other->chunk[k].value)
                continue;
            gg_mem_free(p->allocator, p->chunk[k].value);
            p->chunk[k] = (struct chunk){ .value = NULL };
            p->n_done--;
        }
        GG_TRY(st);
    }
    return GGUF_OK;
}

/* ---- saving ---- */

static enum gguf_status set_pairs(struct gguf_meta *m, const char *prefix,
                                  const struct pairs *l,
                                  struct gguf_error *err)
{
    char key[MOST_NAME + 24];
    for (size_t i = 0; i < l->n; i++) {
        snprintf(key, sizeof key, "%s%s", prefix, l->list[i].name);
        GG_TRY(gguf_meta_set_strz(m, key, l->list[i].value, err));
    }
    return GGUF_OK;
}

static uint64_t n_tokens(const struct gguf_part *p)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_chunks; i++)
        n += p->chunk[i].n;
    return n;
}

static enum gguf_status put_all(const struct gguf_part *p,
                                struct gg_part_out *o, uint64_t n,
                                struct gguf_error *err)
{
    GG_TRY(gg_part_next(o, err));
    for (size_t i = 0; i < p->n_chunks; i++) {
        const uint64_t count =
            p->chunk[i].value ? (uint64_t)p->chunk[i].n : UINT64_MAX;
        GG_TRY(gg_part_put64(o, &count, 1, err));
    }
    if (n)
        GG_TRY(gg_part_next(o, err));
    for (size_t i = 0; i < p->n_chunks; i++) {
        const struct chunk *c = &p->chunk[i];
        for (size_t k = 0; k < c->n * p->n_values; k++) {
            uint64_t bits;
            memcpy(&bits, &c->value[k], sizeof bits);
            GG_TRY(gg_part_put64(o, &bits, 1, err));
        }
    }
    return gg_part_commit(o, err);
}

enum gguf_status gguf_part_save(const struct gguf_part *p, const char *path,
                                int force, struct gguf_error *err)
{
    struct gg_part_out o = { .w = NULL };
    struct gguf_meta *m;
    const uint64_t n = n_tokens(p);
    GG_TRY(gguf_meta_create(&m, p->allocator, err));
    enum gguf_status st = set_pairs(m, setting_key, &p->settings, err);
    if (st == GGUF_OK)
        st = set_pairs(m, note_key, &p->notes, err);
    if (st == GGUF_OK)
        st = gguf_meta_set_u32(m, KEY "values", (uint32_t)p->n_values, err);
    if (st == GGUF_OK)
        st = gg_part_begin(&o, &part_kind, m, p->allocator, err);
    if (st == GGUF_OK)
        st = gg_part_add(&o, counts_name, GGUF_DTYPE_I64, p->n_chunks, 1, err);
    if (st == GGUF_OK && n)
        st = gg_part_add(&o, scores_name, GGUF_DTYPE_F64, p->n_values, n, err);
    if (st == GGUF_OK)
        st = gg_part_open(&o, path, force, err);
    if (st == GGUF_OK)
        st = put_all(p, &o, n, err);
    gg_part_end(&o);
    gguf_meta_destroy(m);
    return st;
}

/* ---- loading ---- */

static enum gguf_status get_pairs(struct gguf_part *p,
                                  const struct gguf_file *f,
                                  const char *prefix, struct pairs *l,
                                  struct gguf_error *err)
{
    const size_t size = strlen(prefix);
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        struct gguf_str name = kv->key, value;
        if (!gg_str_starts(name, prefix))
            continue;
        name.data += size;
        name.size -= size;
        GG_TRY(gguf_kv_get_str(kv, &value, err));
        GG_TRY(put(p, l, name, value, err));
    }
    return GGUF_OK;
}

/* A number that is read into place; not finite: refused. */
static enum gguf_status get_chunk(struct gguf_part *p, size_t chunk,
                                  const struct gguf_file *f,
                                  const struct gguf_tensor_info *t,
                                  uint64_t at, size_t n,
                                  struct gguf_error *err)
{
    struct chunk *c = &p->chunk[chunk];
    c->value = gg_mem_alloc_zero(p->allocator, GG_MAX(n * p->n_values, 1),
                                 sizeof *c->value);
    if (!c->value)
        return gg_error_set_nomem(err, n * p->n_values * sizeof *c->value);
    c->n = n;
    p->n_done++;
    for (size_t i = 0; i < n * p->n_values; i++) {
        const uint64_t bits = gg_part_get64(f, t, at + i);
        memcpy(&c->value[i], &bits, sizeof bits);
        if (!isfinite(c->value[i]))
            return gg_error_set(err, GGUF_E_FORMAT,
                                gg_part_off(f, t, at + i, 8),
                                "a number of chunk %zu is not finite", chunk);
    }
    return GGUF_OK;
}

static enum gguf_status get_chunks(struct gguf_part *p,
                                   const struct gguf_file *f,
                                   const struct gguf_tensor_info *counts,
                                   const struct gguf_tensor_info *scores,
                                   struct gguf_error *err)
{
    const uint64_t all = scores ? scores->n_elements : 0;
    uint64_t at = 0;
    for (size_t i = 0; i < p->n_chunks; i++) {
        const uint64_t n = gg_part_get64(f, counts, i);
        if (n == UINT64_MAX)
            continue;
        if (n > (all - at) / p->n_values)
            return gg_error_set(
                err, GGUF_E_MISMATCH, gg_part_off(f, counts, i, 8),
                "chunk %zu has %" PRIu64
                " tokens, there are scores of %" PRIu64 " left",
                i, n, (all - at) / p->n_values);
        GG_TRY(get_chunk(p, i, f, scores, at, (size_t)n, err));
        at += n * p->n_values;
    }
    return at == all
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_MISMATCH, scores->info_off,
                              "%" PRIu64 " scores are of no chunk", all - at);
}

static enum gguf_status load(struct gguf_part **out, const struct gguf_file *f,
                             const struct gguf_allocator *a,
                             struct gguf_error *err)
{
    const struct gguf_tensor_info *counts =
        gguf_file_tensor_find(f, counts_name.data);
    const struct gguf_tensor_info *scores =
        gguf_file_tensor_find(f, scores_name.data);
    uint64_t n_values;
    GG_TRY(gg_part_uint(f, KEY "values", 1, MOST_VALUES, &n_values, err));
    if (!counts || counts->dtype != GGUF_DTYPE_I64)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "there is no list of chunks");
    if (scores && scores->dtype != GGUF_DTYPE_F64)
        return gg_error_set(err, GGUF_E_MISMATCH, scores->info_off,
                            "'scores' are not of type F64");
    GG_TRY(gguf_part_create(out, (size_t)counts->n_elements, (size_t)n_values,
                            a, err));
    GG_TRY(get_pairs(*out, f, setting_key, &(*out)->settings, err));
    GG_TRY(get_pairs(*out, f, note_key, &(*out)->notes, err));
    return get_chunks(*out, f, counts, scores, err);
}

enum gguf_status gguf_part_load(struct gguf_part **out, const char *path,
                                const struct gguf_file_params *params,
                                struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_FILE_PARAMS_INIT;
    struct gguf_file *f;
    *out = NULL;
    GG_TRY(gg_file_params_take(&fp, params, err));
    GG_TRY(gg_part_read(&f, &part_kind, path, &fp, err));
    const enum gguf_status st = load(out, f, fp.allocator, err);
    gguf_file_close(f);
    if (st != GGUF_OK) {
        gguf_part_destroy(*out);
        *out = NULL;
    }
    return st;
}
