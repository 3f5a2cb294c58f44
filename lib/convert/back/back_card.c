/* SPDX-License-Identifier: MIT */
/* back_card.c - write general.* as a model card and generation_config.json
 *
 * The pairs at the beginning of README.md are those that general.c reads; all
 * texts but plain words are quoted. Sources of the model appear under the name
 * or address that becomes the file's keys again.
 */
#include "config.h"
#include "convert/back/back_maker.h"

#include "base/compiler.h"
#include "base/str.h"
#include "convert/card/card.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 15 }; /* most bytes of a text, and of a list */

struct card {
    struct gg_back *b;
    char *p; /* [size], from malloc */
    size_t n, room;
    bool failed; /* no memory */
};

/* ---- bytes ---- */

static void put_bytes(struct card *c, const char *s, size_t n)
{
    if (c->room - c->n < n) {
        const size_t room = 2 * c->room + n + 1024;
        char *p = realloc(c->p, room);
        c->failed |= !p;
        if (!p)
            return;
        c->p = p;
        c->room = room;
    }
    memcpy(c->p + c->n, s, n);
    c->n += n;
}

static void put_z(struct card *c, const char *s)
{
    put_bytes(c, s, strlen(s));
}

/* Is this a word that YAML reads as a text: it begins with a letter and is not
 * a YAML value? */
static bool is_plain(struct gguf_str s)
{
    static const char *const values[] = { "true", "false", "yes", "no", "on",
                                          "off",  "null",  "y",   "n" };
    for (size_t i = 0; i < GG_LEN(values); i++)
        if (gg_str_eq_nocase(s, values[i]))
            return false;
    for (size_t i = 0; i < s.size; i++) {
        const char c = s.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (!i || !c || !strchr("0123456789._-/", c)))
            return false;
    }
    return s.size > 0;
}

static bool is_shown(uint32_t cp)
{
    return cp >= ' ' && cp != '"' && cp != '\\' && (cp < 0x7f || cp > 0x9f) &&
           cp != 0x2028 && cp != 0x2029 && cp != 0xfeff && cp < 0x10000 - 2;
}

static void put_text(struct card *c, struct gguf_str s)
{
    if (is_plain(s)) {
        put_bytes(c, s.data, s.size);
        return;
    }
    put_z(c, "\"");
    for (size_t i = 0, n; i < s.size; i += n) {
        uint32_t cp = 0;
        char code[16];
        n = gg_str_utf8_decode(s.data + i, s.size - i, &cp);
        if (is_shown(cp) || cp >= 0x10000) {
            put_bytes(c, s.data + i, n);
            continue;
        }
        snprintf(code, sizeof code,
                 cp == '"' || cp == '\\' ? "\\%c" : "\\u%04x", (int)cp);
        put_z(c, code);
    }
    put_z(c, "\"");
}

/* ---- pairs ---- */

static void note_key(const struct gg_back *b, const char *key)
{
    if (b->p.note.fn)
        b->p.note.fn(b->p.note.user, key);
}

/* A text of the file that a card can have. */
static bool text_of(const struct gg_back *b, const char *key,
                    struct gguf_str *out)
{
    const struct gguf_kv *kv = gguf_file_kv_find(b->meta, key);
    return kv && gguf_kv_get_str(kv, out, NULL) == GGUF_OK && out->size &&
           out->size <= MOST && gg_str_utf8_valid(out->data, out->size) &&
           !memchr(out->data, 0, out->size);
}

static void put_fields(struct card *c)
{
    for (size_t i = 0; gg_card_fields[i].key; i++) {
        const char *key = gg_card_fields[i].key;
        struct gguf_str s;
        if (!text_of(c->b, key, &s)) {
            if (gguf_file_kv_find(c->b->meta, key))
                note_key(c->b, key);
            continue;
        }
        put_z(c, gg_card_fields[i].of_card[0]);
        put_z(c, ": ");
        put_text(c, s);
        put_z(c, "\n");
    }
}

static void put_list(struct card *c, const char *name, const char *key)
{
    const struct gguf_kv *kv = gguf_file_kv_find(c->b->meta, key);
    struct gguf_kv_iter it;
    struct gguf_str s;
    const size_t begin = c->n;
    bool good = kv && gguf_kv_check_array(kv, GGUF_VAL_STR, NULL) == GGUF_OK &&
                kv->n && kv->n <= GG_CARD_ITEMS;
    if (good)
        gguf_kv_iter_init(&it, kv);
    put_z(c, name);
    put_z(c, ":\n");
    while (good && gguf_kv_iter_next_str(&it, &s)) {
        good = gg_str_utf8_valid(s.data, s.size) &&
               !memchr(s.data, 0, s.size) && c->n - begin + s.size <= MOST;
        put_z(c, "- ");
        put_text(c, good ? s : GG_STR(""));
        put_z(c, "\n");
    }
    if (!good)
        c->n = begin;
    if (!good && kv)
        note_key(c->b, key);
}

/* ---- sources of the model ---- */

enum { S_NAME, S_VERSION, S_OF, S_URL, N_SOURCE };
static const char *const members[N_SOURCE] = { "name", "version",
                                               "organization", "repo_url" };

struct source {
    char key[N_SOURCE][80];
    struct gguf_str of[N_SOURCE]; /* empty: unknown */
};

static void get_source(const struct gg_back *b, const char *what, uint64_t no,
                       struct source *s)
{
    for (size_t i = 0; i < N_SOURCE; i++) {
        snprintf(s->key[i], sizeof s->key[i], "general.%s.%" PRIu64 ".%s",
                 what, no, members[i]);
        if (!text_of(b, s->key[i], &s->of[i]))
            s->of[i] = GG_STR("");
    }
}

/* Members that id becomes otherwise, by a bit each; N_SOURCE of them if it
 * cannot be read. */
static unsigned count_differences(struct gg_back *b, const struct source *s,
                                  struct gguf_str id)
{
    struct gg_card_source n;
    unsigned bits = 0;
    if (!id.size || gg_card_read_source(&n, &b->arena, id, 0, NULL) != GGUF_OK)
        return (1 << N_SOURCE) - 1;
    const char *const got[N_SOURCE] = { n.name, n.version, n.organization,
                                        n.url };
    for (unsigned i = 0; i < N_SOURCE; i++)
        if (!gg_str_eqz(s->of[i], got[i] ? got[i] : ""))
            bits |= 1u << i;
    return bits;
}

/* "A b/C d" as the name of a repository; a: the owner, or NULL. An empty
 * result: no memory. */
static struct gguf_str dash_name(struct gg_back *b, const struct gguf_str *a,
                                 struct gguf_str name)
{
    const size_t before = a ? a->size + 1 : 0;
    char *p = gg_mem_arena_alloc(&b->arena, before + name.size + 1);
    if (!p || !name.size)
        return GG_STR("");
    if (a) {
        memcpy(p, a->data, a->size);
        p[a->size] = '/';
    }
    memcpy(p + before, name.data, name.size);
    for (size_t i = 0; i < before + name.size; i++)
        p[i] = p[i] == ' ' ? '-' : p[i];
    return (struct gguf_str){ p, before + name.size };
}

/* Choose the text by which a card names a source: the first one that gives all
 * keys of the file again, else the one that gives most. */
static struct gguf_str choose_name(struct gg_back *b, const struct source *s,
                                   unsigned *lost)
{
    struct gguf_str repo = s->of[S_URL], best = GG_STR("");
    const size_t n = strlen(GG_CARD_HUB);
    if (gg_str_starts(repo, GG_CARD_HUB)) {
        repo.data += n;
        repo.size -= n;
    }
    const struct gguf_str ids[] = {
        repo,
        s->of[S_URL],
        dash_name(b, NULL, s->of[S_NAME]),
        s->of[S_NAME],
        dash_name(b, &s->of[S_OF], s->of[S_NAME]),
    };
    *lost = (1 << N_SOURCE) - 1;
    for (size_t i = 0; i < GG_LEN(ids) && *lost; i++) {
        const unsigned bits = count_differences(b, s, ids[i]);
        unsigned k = 0, least = 0;
        for (unsigned m = 0; m < N_SOURCE; m++) {
            k += bits >> m & 1;
            least += *lost >> m & 1;
        }
        if (k < least) {
            *lost = bits;
            best = ids[i];
        }
    }
    return best;
}

static void put_sources(struct card *c, const char *name, const char *what)
{
    char key[64];
    uint64_t n;
    const size_t begin = c->n;
    snprintf(key, sizeof key, "general.%s.count", what);
    const struct gguf_kv *kv = gguf_file_kv_find(c->b->meta, key);
    if (!kv)
        return;
    if (gguf_kv_get_uint(kv, &n, NULL) != GGUF_OK || n > GG_CARD_ITEMS) {
        note_key(c->b, key);
        return;
    }
    put_z(c, name);
    put_z(c, n ? ":\n" : ": []\n");
    for (uint64_t i = 0; i < n && c->n - begin <= MOST; i++) {
        struct source s;
        unsigned lost;
        get_source(c->b, what, i, &s);
        const struct gguf_str id = choose_name(c->b, &s, &lost);
        put_z(c, "- ");
        put_text(c, id);
        put_z(c, "\n");
        for (unsigned m = 0; m < N_SOURCE; m++)
            if (lost >> m & 1 && s.of[m].size)
                note_key(c->b, s.key[m]);
    }
}

/* ---- keys that a card cannot hold ---- */

/* Is key general.WHAT.NO.MEMBER, which put_sources() writes? */
static bool of_source(const struct gg_back *b, struct gguf_str key,
                      const char *what)
{
    char name[80];
    uint64_t no, n = 0;
    const int begin = snprintf(name, sizeof name, "general.%s.", what);
    struct gguf_str rest = key;
    if (!gg_str_starts(key, name))
        return false;
    rest.data += begin;
    rest.size -= (size_t)begin;
    snprintf(name, sizeof name, "general.%s.count", what);
    const struct gguf_kv *kv = gguf_file_kv_find(b->meta, name);
    if (!kv || gguf_kv_get_uint(kv, &n, NULL) != GGUF_OK ||
        !gg_str_uint(&rest, GG_CARD_ITEMS, &no) || no >= n)
        return false;
    for (size_t i = 0; i < N_SOURCE; i++) {
        snprintf(name, sizeof name, "general.%s.%" PRIu64 ".%s", what, no,
                 members[i]);
        if (gg_str_eqz(key, name))
            return true;
    }
    return false;
}

static bool has_place(const struct gg_back *b, struct gguf_str key)
{
    static const char *const others[] = {
        "general.architecture", "general.type",
        "general.file_type",    "general.quantization_version",
        "general.alignment",    "general.tags",
        "general.languages",    "general.base_model.count",
        "general.dataset.count"
    };
    for (size_t i = 0; i < GG_LEN(others); i++)
        if (gg_str_eqz(key, others[i]))
            return true;
    for (size_t i = 0; gg_card_fields[i].key; i++)
        if (gg_str_eqz(key, gg_card_fields[i].key))
            return true;
    for (size_t i = 0; gg_card_samplings[i].key; i++)
        if (gg_str_eqz(key, gg_card_samplings[i].key))
            return true;
    return of_source(b, key, "base_model") || of_source(b, key, "dataset") ||
           !gg_str_starts(key, "general.");
}

static void note_others(const struct gg_back *b)
{
    for (size_t i = 0; i < gguf_file_n_kv(b->meta); i++) {
        const struct gguf_str key = gguf_file_kv(b->meta, i)->key;
        char name[256];
        if (!has_place(b, key) && gg_str_join(name, sizeof name, key, ""))
            note_key(b, name);
    }
}

/* ---- how tokens are chosen ---- */

static json_t *value_of(const struct gguf_kv *kv, char kind)
{
    struct gguf_str s;
    int64_t n;
    double x;
    if (kind == 's' && gguf_kv_get_str(kv, &s, NULL) == GGUF_OK)
        return json_stringn(s.data, s.size);
    if (kind == 'i' && gguf_kv_get_int(kv, &n, NULL) == GGUF_OK)
        return json_integer(n);
    return kind == 'f' && gguf_kv_get_float(kv, &x, NULL) == GGUF_OK &&
                   isfinite(x)
               ? gg_back_shortest_real((float)x)
               : NULL;
}

static enum gguf_status put_sampling(const struct gg_back *b,
                                     struct gg_back_text *out,
                                     struct gguf_error *err)
{
    gg_json_make_begin();
    json_t *root = json_object();
    for (size_t i = 0; gg_card_samplings[i].key; i++) {
        const struct gg_card_sampling *row = &gg_card_samplings[i];
        const struct gguf_kv *kv = gguf_file_kv_find(b->meta, row->key);
        json_t *v = kv ? value_of(kv, row->kind) : NULL;
        if (v)
            json_object_set_new(root, row->name, v);
        else if (kv)
            note_key(b, row->key);
    }
    const bool any = json_object_size(root) > 0;
    char *text =
        gg_json_make_text(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text)
        return gg_error_set_nomem(err, 1000);
    if (any)
        *out = (struct gg_back_text){ "generation_config.json", text,
                                      strlen(text) };
    else
        free(text);
    return GGUF_OK;
}

static enum gguf_status put_card(struct gg_back *b, struct gg_back_text *out,
                                 struct gguf_error *err)
{
    struct card c = { .b = b };
    struct gguf_str name;
    put_z(&c, "---\n");
    put_fields(&c);
    put_list(&c, "language", "general.languages");
    put_list(&c, "tags", "general.tags");
    put_sources(&c, "datasets", "dataset");
    put_sources(&c, "base_model", "base_model");
    const bool any = c.n > strlen("---\n");
    put_z(&c, "---\n");
    if (text_of(b, "general.name", &name) &&
        !memchr(name.data, '\n', name.size)) {
        put_z(&c, "\n# ");
        put_bytes(&c, name.data, name.size);
        put_z(&c, "\n");
    }
    if (c.failed || !any) {
        free(c.p);
        return c.failed ? gg_error_set_nomem(err, c.room) : GGUF_OK;
    }
    *out = (struct gg_back_text){ "README.md", c.p, c.n };
    return GGUF_OK;
}

enum gguf_status gg_back_make_card(struct gg_back *b,
                                   struct gg_back_text text[2],
                                   struct gguf_error *err)
{
    GG_TRY(put_card(b, &text[0], err));
    GG_TRY(put_sampling(b, &text[1], err));
    note_others(b);
    return GGUF_OK;
}
