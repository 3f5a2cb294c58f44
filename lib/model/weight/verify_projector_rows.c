/* SPDX-License-Identifier: MIT */
/* verify_projector_rows.c - checks the tensors of a projector against the rows
 * of its types */
#include "config.h"
#include "model/weight/verify_projector.h"
#include "model/weight/projector_rows.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Layers that are looked at, and bytes of a tensor's name. */
enum { MAX_LAYERS = 4096, NAME_SIZE = 128 };

/* Value of a dimension that the tensors of the tower share; 0: not known. The
 * last is the width of the layers, where keys do not say it. */
enum { WIDTH = 26 };
struct letters {
    uint64_t value[WIDTH + 1];
};

struct check {
    struct gg_file_checker *c;
    const struct gg_source *src;
    const struct gg_verify_projector_facts
        *facts; /* facts about GG_N_TOWERS towers */
    const struct gg_model_projector
        *row[GG_N_TOWERS]; /* NULL: no such tower */
    struct letters letters[GG_N_TOWERS];
    bool in_layer; /* the list of a layer is compared */
    struct gguf_error *err;
};

/* A word of a list: a tensor that must or may be there. */
struct word {
    bool optional, pair, rest; /* "?NAME", "NAME.*", "NAME+" */
    struct gguf_str name;      /* name without these marks */
    struct gguf_str dims;      /* after the colon; empty: any */
};

/* ---- words ---- */

/* Take the next word of a list. Returns false after the last. */
static bool next_word(const char **list, struct word *w)
{
    const char *p = *list;
    *w = (struct word){ .optional = false };
    if (!p)
        return false;
    p += strspn(p, " ");
    const size_t n = strcspn(p, " ");
    if (!n)
        return false;
    *list = p + n;
    w->optional = *p == '?';
    const char *name = p + w->optional, *end = p + n;
    const char *colon = memchr(name, ':', (size_t)(end - name));
    if (colon)
        w->dims = (struct gguf_str){ colon + 1, (size_t)(end - colon - 1) };
    else
        colon = end;
    w->name = (struct gguf_str){ name, (size_t)(colon - name) };
    w->rest = gg_str_ends(w->name, "+");
    w->pair = gg_str_ends(w->name, ".*");
    w->name.size -= w->rest ? 1 : w->pair ? 2 : 0;
    return true;
}

/* Does a word name this tensor? *is_bias receives whether as a bias, whose
 * dimensions the word does not have. */
static bool word_names(const struct word *w, struct gguf_str name,
                       bool *is_bias)
{
    size_t k = 0;
    for (size_t i = 0; i < w->name.size; i++) {
        if (w->name.data[i] != '%') {
            if (k >= name.size || name.data[k++] != w->name.data[i])
                return false;
            continue;
        }
        const size_t first = k;
        while (k < name.size && name.data[k] >= '0' && name.data[k] <= '9')
            k++;
        if (k == first)
            return false;
    }
    name.data += k;
    name.size -= k;
    *is_bias = w->pair && gg_str_eqz(name, ".bias");
    return w->rest ||
           (w->pair ? *is_bias || gg_str_eqz(name, ".weight") : !name.size);
}

/* ---- dimensions ---- */

/* Number of dimensions without trailing ones. */
static size_t count_dims(const struct gguf_tensor_info *t)
{
    size_t n = t->n_dims;
    while (n > 1 && t->ne[n - 1] == 1)
        n--;
    return n;
}

/* Take the next dimension of a word: its value, or 0 if any will do. *letter
 * receives the letter whose value is not known yet, or 0. */
static bool next_dim(struct gguf_str *dims, const struct check *c,
                     enum gg_model_tower tower, uint64_t *value, char *letter)
{
    const struct gg_verify_projector_facts *f = &c->facts[tower];
    struct gguf_str word = *dims;
    *value = 0;
    *letter = 0;
    if (!dims->size)
        return false;
    const char *comma = memchr(dims->data, ',', dims->size);
    if (comma)
        word.size = (size_t)(comma - dims->data);
    const size_t used = word.size + (comma != NULL);
    dims->data += used;
    dims->size -= used;
    switch (*word.data) {
    case '*': break;
    case 'E':
        *value = f->width;
        if (c->in_layer && f->learns_width) {
            *value = c->letters[tower].value[WIDTH];
            *letter = *value ? 0 : 'a' + WIDTH;
        }
        break;
    case 'O': *value = f->text_width; break;
    case 'M': *value = f->n_mel; break;
    default:
        *value = c->letters[tower].value[*word.data - 'a'];
        *letter = *value ? 0 : *word.data;
    }
    return true;
}

static bool dims_fit(const struct check *c, enum gg_model_tower tower,
                     const struct gguf_tensor_info *t, struct gguf_str dims)
{
    const size_t n = count_dims(t);
    uint64_t value;
    char letter;
    size_t i = 0;
    if (!dims.size)
        return true;
    while (next_dim(&dims, c, tower, &value, &letter)) {
        if (i < n && value && (uint64_t)t->ne[i] != value)
            return false;
        if (i >= n && value > 1)
            return false;
        i++;
    }
    return n <= i;
}

static void learn_letters(struct check *c, enum gg_model_tower tower,
                          const struct gguf_tensor_info *t,
                          struct gguf_str dims)
{
    const size_t n = count_dims(t);
    uint64_t value;
    char letter;
    for (size_t i = 0; next_dim(&dims, c, tower, &value, &letter); i++)
        if (letter)
            c->letters[tower].value[letter - 'a'] =
                i < n ? (uint64_t)t->ne[i] : 1;
}

static enum gguf_status report_shape(const struct check *c,
                                     enum gg_model_tower tower,
                                     const struct gguf_tensor_info *t,
                                     struct gguf_str dims)
{
    char is[200] = "", want[200] = ""; /* 8 dimensions */
    size_t n = 0;
    uint64_t value;
    char letter;
    struct gg_str_esc e;
    for (size_t i = 0; i < t->n_dims; i++)
        n += (size_t)snprintf(is + n, sizeof is - n, "%s%" PRId64,
                              i ? " x " : "", t->ne[i]);
    n = 0;
    for (size_t i = 0; next_dim(&dims, c, tower, &value, &letter); i++)
        n += (size_t)(value ? snprintf(want + n, sizeof want - n, "%s%" PRIu64,
                                       i ? " x " : "", value)
                            : snprintf(want + n, sizeof want - n, "%sany",
                                       i ? " x " : ""));
    return gg_file_report_finding(c->c, GG_CHECK_TENSOR_SHAPE, t->name,
                                  t->info_off, c->err,
                                  "tensor '%s' has shape %s, must have %s",
                                  gg_str_esc(&e, t->name), is, want);
}

/* ---- a tensor ---- */

/* Result of a search for a tensor in the lists. */
struct match {
    bool found, fits;
    enum gg_model_tower tower;
    struct gguf_str dims; /* dimensions by the first word of its name */
    bool names_only;      /* shapes are not compared */
    bool in_layer;        /* ... which is in the list of a layer */
};

/* Look for a tensor in a list. name is that part of its name that words
 * have. */
static void search_list(struct check *c, enum gg_model_tower tower,
                        const char *list, const struct gguf_tensor_info *t,
                        struct gguf_str name, struct match *m)
{
    struct word w;
    while (!m->fits && next_word(&list, &w)) {
        bool is_bias = false;
        if (!word_names(&w, name, &is_bias))
            continue;
        if (is_bias)
            w.dims.size = 0;
        m->fits = m->names_only || dims_fit(c, tower, t, w.dims);
        if (m->fits && !m->names_only)
            learn_letters(c, tower, t, w.dims);
        if (!m->found) {
            m->found = true;
            m->tower = tower;
            m->dims = w.dims;
        }
    }
}

/* Layer of "v.blk.12.ln1.weight"; name becomes the part after the number. */
static bool find_layer(const char *prefix, struct gguf_str *name, uint64_t *il)
{
    const size_t n = strlen(prefix);
    if (!gg_str_starts(*name, prefix))
        return false;
    struct gguf_str rest = { name->data + n, name->size - n };
    if (!gg_str_uint(&rest, INT32_MAX, il) || !gg_str_starts(rest, "."))
        return false;
    *name = (struct gguf_str){ rest.data + 1, rest.size - 1 };
    return true;
}

/* Remove the end of the name of a bound of activations ("x.input_max"), so that
 * "x.weight" remains in out. */
static struct gguf_str bounded_name(struct gguf_str name, char *out)
{
    static const char *const bounds[] = { ".input_max", ".input_min",
                                          ".output_max", ".output_min" };
    for (size_t i = 0; i < GG_LEN(bounds); i++)
        if (gg_str_ends(name, bounds[i]) && name.size < NAME_SIZE - 8) {
            const int n = (int)(name.size - strlen(bounds[i]));
            snprintf(out, NAME_SIZE, "%.*s.weight", n, name.data);
            return gg_str_z(out);
        }
    return name;
}

static const char *const layer_prefixes[GG_N_TOWERS] = { "v.blk.", "a.blk.",
                                                         NULL };

static struct match find_tensor(struct check *c,
                                const struct gguf_tensor_info *t)
{
    struct match m = { .found = false };
    char buf[NAME_SIZE];
    const struct gguf_str name = bounded_name(t->name, buf);
    m.names_only = name.data == buf; /* a number for the tensor of this name */
    for (int i = 0; i < GG_N_TOWERS; i++) {
        struct gguf_str part = name;
        uint64_t il;
        if (!c->row[i])
            continue;
        const enum gg_model_tower tower = c->row[i]->tower;
        c->in_layer =
            c->row[i]->layers && find_layer(layer_prefixes[i], &part, &il);
        if (c->in_layer)
            search_list(c, tower, gg_model_tower_layer_tensors[i], t, part,
                        &m);
        m.in_layer = m.in_layer || (c->in_layer && m.found);
        c->in_layer = false;
        search_list(c, tower, c->row[i]->tensors, t, name, &m);
        search_list(c, tower, gg_model_tower_tensors[i], t, name, &m);
    }
    return m;
}

/* A bias has a number for each row of its weight. */
static enum gguf_status check_bias(const struct check *c,
                                   const struct gguf_tensor_info *t)
{
    char weight[NAME_SIZE];
    size_t i;
    struct gg_str_esc e;
    if (!gg_str_ends(t->name, ".bias") || t->name.size + 3 > NAME_SIZE ||
        gg_str_starts(t->name, "a.gen.wav."))
        return GGUF_OK; /* a.gen.wav. has transposed filters */
    snprintf(weight, sizeof weight, "%.*sweight", (int)t->name.size - 4,
             t->name.data);
    if (!gg_source_find(c->src, weight, &i))
        return GGUF_OK;
    const struct gguf_tensor_info *w = gg_source_tensor(c->src, i).info;
    const uint64_t rows =
        w->n_dims ? (uint64_t)w->ne[count_dims(w) - 1] : w->n_elements;
    /* a weight of one row ends with a dimension of 1 */
    if (t->n_elements == rows ||
        (w->n_dims && t->n_elements == (uint64_t)w->ne[w->n_dims - 1]))
        return GGUF_OK;
    return gg_file_report_finding(
        c->c, GG_CHECK_TENSOR_SHAPE, t->name, t->info_off, c->err,
        "tensor '%s' has %" PRIu64 " elements, its weight has %" PRIu64
        " rows",
        gg_str_esc(&e, t->name), t->n_elements, rows);
}

static enum gguf_status check_tensor(struct check *c,
                                     const struct gguf_tensor_info *t)
{
    const struct match m = find_tensor(c, t);
    struct gg_str_esc e;
    if (!m.found)
        return gg_file_report_finding(
            c->c, GG_CHECK_TENSOR_EXTRA, t->name, t->info_off, c->err,
            "tensor '%s' is not used by projectors of this type",
            gg_str_esc(&e, t->name));
    c->in_layer = m.in_layer;
    if (!m.fits)
        return report_shape(c, m.tower, t, m.dims);
    return check_bias(c, t);
}

/* ---- missing tensors and keys ---- */

static enum gguf_status need_tensor(const struct check *c, const char *name,
                                    const char *why)
{
    if (gg_source_find(c->src, name, NULL))
        return GGUF_OK;
    return gg_file_report_finding(c->c, GG_CHECK_TENSOR_MISSING,
                                  gg_str_z(name), GGUF_NO_OFFSET, c->err,
                                  "tensor '%s' is missing%s", name, why);
}

/* Report the tensors of a list that must be there and are not. */
static enum gguf_status need_list(const struct check *c, const char *prefix,
                                  const char *list)
{
    static const char *const ends[] = { "", ".weight", ".bias" };
    struct word w;
    char name[NAME_SIZE];
    while (next_word(&list, &w))
        for (int i = w.pair; !w.optional && i < (w.pair ? 3 : 1); i++) {
            snprintf(name, sizeof name, "%s%.*s%s", prefix, (int)w.name.size,
                     w.name.data, ends[i]);
            GG_TRY(need_tensor(c, name, ""));
        }
    return GGUF_OK;
}

/* Queries, keys and values: one matrix, or three. */
static enum gguf_status need_attention(const struct check *c,
                                       const char *prefix)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%sattn_qkv.weight", prefix);
    if (gg_source_find(c->src, name, NULL))
        return GGUF_OK;
    return need_list(c, prefix, "attn_q.weight attn_k.weight attn_v.weight");
}

static enum gguf_status need_keys(const struct check *c, const char *list)
{
    struct word w;
    char key[NAME_SIZE];
    while (next_word(&list, &w)) {
        snprintf(key, sizeof key, "clip.%.*s", (int)w.name.size, w.name.data);
        if (!gguf_file_kv_find(gg_source_meta(c->src), key))
            GG_TRY(gg_file_report_finding(c->c, GG_CHECK_KEY_MISSING,
                                          gg_str_z(key), GGUF_NO_OFFSET,
                                          c->err, "key '%s' is missing", key));
    }
    return GGUF_OK;
}

/* ---- layers ---- */

/* Layers whose tensors are compared with those of their neighbours. */
static const char *const blocks[] = {
    "v.blk.",      "a.blk.",          "v.sam.blk.",      "v.proj_blk.",
    "a.proj_blk.", "mm.a.local_blk.", "a.gen.code.blk.", "a.gen.wav.tfm.blk.",
};

static void mark_layers(const struct check *c, const char *prefix,
                        bool seen[MAX_LAYERS])
{
    uint64_t il;
    memset(seen, 0, MAX_LAYERS * sizeof *seen);
    for (size_t i = 0; i < gg_source_n_tensors(c->src); i++) {
        struct gguf_str name = gg_source_tensor(c->src, i).info->name;
        if (find_layer(prefix, &name, &il) && il < MAX_LAYERS)
            seen[il] = true;
    }
}

/* Report a tensor that layer other lacks, though layer il has it. */
static enum gguf_status need_in_layer(const struct check *c,
                                      const char *prefix, struct gguf_str part,
                                      uint64_t il, uint64_t other)
{
    char name[NAME_SIZE], why[48];
    if (part.size + 40 > NAME_SIZE || gg_str_eqz(part, "attn_sinks"))
        return GGUF_OK; /* only layers with windows have sinks */
    snprintf(name, sizeof name, "%s%" PRIu64 ".%.*s", prefix, other,
             (int)part.size, part.data);
    snprintf(why, sizeof why, "; layer %" PRIu64 " has it", il);
    return need_tensor(c, name, why);
}

/* All layers have the same tensors. */
static enum gguf_status check_uniform(const struct check *c,
                                      const char *prefix,
                                      const bool seen[MAX_LAYERS])
{
    uint64_t il;
    for (size_t i = 0; i < gg_source_n_tensors(c->src); i++) {
        struct gguf_str part = gg_source_tensor(c->src, i).info->name;
        if (!find_layer(prefix, &part, &il) || il >= MAX_LAYERS)
            continue;
        if (il + 1 < MAX_LAYERS && seen[il + 1])
            GG_TRY(need_in_layer(c, prefix, part, il, il + 1));
        if (il && seen[il - 1])
            GG_TRY(need_in_layer(c, prefix, part, il, il - 1));
    }
    return GGUF_OK;
}

static enum gguf_status check_layers(const struct check *c)
{
    bool seen[MAX_LAYERS];
    for (size_t i = 0; i < GG_LEN(blocks); i++) {
        const bool tower = i < GG_N_TOWERS && layer_prefixes[i];
        const struct gg_model_projector *row = tower ? c->row[i] : NULL;
        if (tower && (!row || !row->layers))
            continue;
        mark_layers(c, blocks[i], seen);
        GG_TRY(check_uniform(c, blocks[i], seen));
        for (uint64_t il = 0; row && il < MAX_LAYERS; il++) {
            char prefix[40];
            if (!seen[il] || il >= c->facts[i].n_layer)
                continue;
            snprintf(prefix, sizeof prefix, "%s%" PRIu64 ".", blocks[i], il);
            GG_TRY(need_list(c, prefix, gg_model_tower_layer_tensors[i]));
            GG_TRY(need_attention(c, prefix));
        }
    }
    return GGUF_OK;
}

/* ---- a file ---- */

const struct gg_model_projector *
gg_verify_projector_row(struct gguf_str type, enum gg_model_tower tower)
{
    const struct gg_model_projector *row;
    for (size_t i = 0; (row = gg_model_projector_at(i)) != NULL; i++)
        if (row->tower == tower && gg_str_eqz(type, row->type))
            return row;
    return NULL;
}

enum gguf_status gg_verify_projector_tensors(
    struct gg_file_checker *c, const struct gg_source *src,
    const struct gg_verify_projector_facts *facts, struct gguf_error *err)
{
    struct check k = { .c = c, .src = src, .facts = facts, .err = err };
    for (int i = 0; i < GG_N_TOWERS; i++) {
        const enum gg_model_tower tower = (enum gg_model_tower)i;
        if (!facts[i].has)
            continue;
        k.row[i] = gg_verify_projector_row(facts[i].type, tower);
        GG_TRY(need_keys(&k, k.row[i]->keys));
        GG_TRY(need_list(&k, "", k.row[i]->tensors));
    }
    GG_TRY(check_layers(&k));
    for (size_t i = 0; i < gg_source_n_tensors(src); i++)
        GG_TRY(check_tensor(&k, gg_source_tensor(src, i).info));
    return GGUF_OK;
}
