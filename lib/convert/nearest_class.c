/* SPDX-License-Identifier: MIT */
/* nearest_class.c - the known classes whose tensors are named like those of a
 * folder of an unknown class
 *
 * One name of each kind is looked at: names that differ in numbers only (of
 * layers and experts) are one kind. The differences of a class are the kinds
 * that none of its rows has, and the weights that its architecture requires and
 * that no kind becomes.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/arch_match.h"
#include "model/weight/needs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_KINDS = 512, MOST_CLASSES = 32 };

struct search {
    struct gguf_convert *c;
    uint32_t kind[MOST_KINDS]; /* a tensor of each kind of names */
    uint64_t hash[MOST_KINDS]; /* hash of its name without numbers */
    size_t n_kinds;
    const struct gg_convert_arch *found[MOST_CLASSES];
    size_t n_found;
    size_t n_different;            /* differences of each found class */
    size_t n_unknown;              /* names of the folder among them */
    uint32_t unknown;              /* tensor with such a name */
    bool has_weight[GG_N_WEIGHTS]; /* scratch: weights that the names become */
};

/* Hash of a name whose numbers are left out. */
static uint64_t hash_kind(struct gguf_str name)
{
    char kind[GG_CONVERT_NAME];
    size_t n = 0;
    for (size_t i = 0; i < name.size && n < sizeof kind; i++)
        if (name.data[i] < '0' || name.data[i] > '9')
            kind[n++] = name.data[i];
        else if (!n || kind[n - 1] != '#')
            kind[n++] = '#';
    return XXH3_64bits(kind, n);
}

static void find_kinds(struct search *s)
{
    const struct gg_safetensors *w = s->c->folder.weights;
    for (size_t i = 0; i < w->n_tensors && s->n_kinds < MOST_KINDS; i++) {
        const uint64_t h = hash_kind(w->tensor[i].name);
        size_t k = 0;
        while (k < s->n_kinds && s->hash[k] != h)
            k++;
        if (k < s->n_kinds || w->tensor[i].is_part)
            continue;
        s->hash[k] = h;
        s->kind[s->n_kinds++] = (uint32_t)i;
    }
}

/* Mark the weights named to, with the ending of the folder's name. */
static void mark_weight(struct search *s, const char *to, const char *end)
{
    static const char layer[] = "blk.%.";
    const bool in_layer = !strncmp(to, layer, sizeof layer - 1);
    char name[160];
    snprintf(name, sizeof name, "%s%s", in_layer ? to + sizeof layer - 1 : to,
             end);
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++)
        if ((gg_weights[id].scope == GG_MODEL) == !in_layer &&
            !strcmp(gg_weights[id].name, name))
            s->has_weight[id] = true;
}

/* Does a row of the class have the name? Marks the weights that it becomes. */
static bool place_name(struct search *s, const char *name)
{
    const struct gg_convert_arch *a = s->c->arch;
    int64_t layer, expert;
    const char *end;
    bool found = false;
    for (size_t i = 0; i < GG_LEN(a->names) && a->names[i] && !found; i++)
        for (const struct gg_convert_name *row = a->names[i]; row->from;
             row++) {
            if (!gg_convert_row_matches(row, name, &layer, &expert, &end))
                continue;
            found = true;
            if (row->to)
                mark_weight(s, row->to, end);
        }
    return found;
}

/* Weights that files of the architecture must have and no name becomes. */
static size_t count_missing(const struct search *s, const struct gg_arch *a)
{
    const bool moe = a->moe.where && s->has_weight[GG_W_ROUTER];
    struct gg_model_layer layer = {
        .mixer = gg_arch_mixer(a),
        .moe = moe,
        .ffn = moe && !s->has_weight[GG_W_FFN_DOWN] ? NULL : gg_arch_ffn(a),
    };
    struct gg_hparams hp = { .n_layer = 1,
                             .layer = &layer,
                             .rank_q = s->has_weight[GG_W_MLA_Q_A] };
    struct gg_needs of_layer, of_model;
    size_t n = 0;
    gg_needs_fill_weights(a, &hp, &layer, &of_layer);
    gg_needs_fill_weights(a, &hp, NULL, &of_model);
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++) {
        const unsigned instead = gg_weights[id].instead;
        n += (of_layer.weight[id] == GG_MUST ||
              of_model.weight[id] == GG_MUST) &&
             !s->has_weight[id] &&
             !(instead != GG_W_NONE && s->has_weight[instead]);
    }
    return n;
}

/* Count the differences of the class c->arch. */
static size_t count_differences(struct search *s, size_t *n_unknown,
                                uint32_t *unknown)
{
    struct gguf_convert *c = s->c;
    const struct gg_arch *a = gg_arch_find(gg_str_z(c->arch->arch));
    char name[GG_CONVERT_NAME];
    memset(s->has_weight, 0, sizeof s->has_weight);
    *n_unknown = 0;
    for (size_t k = 0; k < s->n_kinds; k++) {
        bool nothing = false;
        if (gg_convert_normalize_name(
                c, c->folder.weights->tensor[s->kind[k]].name, name,
                &nothing) &&
            (place_name(s, name) ||
             (gg_convert_respell(c, name) && place_name(s, name))))
            continue;
        if (!nothing && !(*n_unknown)++)
            *unknown = s->kind[k];
    }
    return *n_unknown + count_missing(s, a);
}

/* Letters in which names of classes begin alike; less than four count as
 * none. */
static size_t count_like(struct gguf_str name, const char *classes)
{
    size_t best = 0;
    while (*classes) {
        size_t n = 0;
        while (n < name.size && classes[n] != ' ' && classes[n] &&
               classes[n] == name.data[n])
            n++;
        best = GG_MAX(best, n);
        classes += strcspn(classes, " ");
        classes += *classes == ' ';
    }
    return best < 4 ? 0 : best;
}

/* Does class a come before class b of the same number of differences? */
static bool is_nearer(struct gguf_str name, const struct gg_convert_arch *a,
                      const struct gg_convert_arch *b)
{
    const size_t x = count_like(name, a->classes);
    const size_t y = count_like(name, b->classes);
    return x != y
               ? x > y
               : gg_arch_count_departures(gg_arch_find(gg_str_z(a->arch))) <
                     gg_arch_count_departures(gg_arch_find(gg_str_z(b->arch)));
}

/* Insert the class c->arch, unless one of its architecture is there. */
static void insert_class(struct search *s, struct gguf_str name)
{
    const struct gg_convert_arch *row = s->c->arch;
    for (size_t k = 0; k < s->n_found; k++)
        if (!strcmp(s->found[k]->arch, row->arch))
            return;
    size_t i = GG_MIN(s->n_found, (size_t)MOST_CLASSES - 1);
    s->n_found = i + 1;
    for (; i > 0 && is_nearer(name, row, s->found[i - 1]); i--)
        s->found[i] = s->found[i - 1];
    s->found[i] = row;
}

static void find_classes(struct search *s, struct gguf_str name)
{
    struct gguf_convert *c = s->c;
    const struct gg_hf_config cfg = gg_convert_config(c);
    for (size_t i = 0; (c->arch = gg_convert_arch_row(i)) != NULL; i++) {
        size_t n_unknown;
        uint32_t unknown = 0;
        if (!gg_arch_find(gg_str_z(c->arch->arch)) ||
            (c->arch->when && !c->arch->when(&cfg)))
            continue;
        const size_t n = count_differences(s, &n_unknown, &unknown);
        if (s->n_found && n > s->n_different)
            continue;
        if (s->n_found && n < s->n_different)
            s->n_found = 0;
        if (!s->n_found) {
            s->n_different = n;
            s->n_unknown = n_unknown;
            s->unknown = unknown;
        }
        insert_class(s, name);
    }
}

static void add_words(char *out, size_t size, const char *fmt, ...)
    GGUF_PRINTF(3, 4);
static void add_words(char *out, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out + n, size - n, fmt, ap);
    va_end(ap);
}

/* "; nearest by names of tensors is 'A', 'B' or one of 3 others ..." */
static void describe_found(const struct search *s, char *out, size_t size)
{
    const size_t shown = GG_MIN(s->n_found, (size_t)4);
    struct gg_str_esc e;
    add_words(out, size, "; nearest by names of tensors is ");
    for (size_t i = 0; i < shown; i++)
        add_words(out, size, "%s'%.*s'",
                  !i                   ? ""
                  : i + 1 < s->n_found ? ", "
                                       : " or ",
                  (int)strcspn(s->found[i]->classes, " "),
                  s->found[i]->classes);
    if (s->n_found > shown)
        add_words(out, size, " or one of %zu others", s->n_found - shown);
    if (!s->n_different)
        add_words(out, size, ", with the same names");
    else if (s->n_unknown)
        add_words(
            out, size, ", which has no tensor '%.100s'",
            gg_str_esc(&e, s->c->folder.weights->tensor[s->unknown].name));
    if (s->n_unknown > 1)
        add_words(out, size, " and %zu more", s->n_unknown - 1);
    if (s->n_different > s->n_unknown)
        add_words(out, size, "%s requires %zu tensor%s that the folder lacks",
                  s->n_unknown ? ", and" : ", which",
                  s->n_different - s->n_unknown,
                  s->n_different - s->n_unknown == 1 ? "" : "s");
}

void gg_convert_name_nearest(struct gguf_convert *c,
                             const struct gguf_limits *limits,
                             struct gguf_str name, struct gguf_error *err)
{
    if (!err ||
        (!c->folder.weights &&
         gg_safetensors_open(&c->folder.weights, &c->folder.dir, "model",
                             limits, c->codec, NULL) != GGUF_OK))
        return;
    struct search *s = gg_mem_alloc_zero(c->p.allocator, 1, sizeof *s);
    if (!s)
        return;
    s->c = c;
    find_kinds(s);
    find_classes(s, name);
    if (s->n_found && s->n_kinds)
        describe_found(s, err->message, sizeof err->message);
    c->arch = NULL;
    gg_mem_free(c->p.allocator, s);
}
