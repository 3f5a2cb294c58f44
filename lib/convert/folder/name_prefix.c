/* SPDX-License-Identifier: MIT */
/* name_prefix.c - prefixes that the names of a folder have and its class's lack
 *
 * A model that was saved without its head (AutoModel) lacks the first segment
 * of the class's names. Segments of known wrappers are removed wherever they
 * stand (name_wrappers.c). Any other prefix must be common to all names; it is
 * removed if the class's rows then match more of the folder's tensors.
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define PEFT_FRONT "base_model.model."

/* Names that are looked at when a prefix is sought: no more than these, spread
 * over the folder. */
enum { MOST_NAMES = 2048 };

/* ---- all names ---- */

/* Counts of a folder's names with one prefix. */
struct census {
    size_t n_known; /* names that become tensors of the class */
    /* names that match no row; names of other parts of the model match */
    size_t n_unknown;
    char unknown[GG_CONVERT_NAME]; /* first name of a layer without a place */
    char known[GG_CONVERT_NAME];   /* first name of a layer with a place */
};

struct search {
    struct gguf_convert *c;
    size_t step;                   /* between names that are looked at */
    struct census bare;            /* counts without a prefix */
    size_t n_unknown;              /* fewest names without a place so far */
    struct gguf_str prefix;        /* best prefix to leave out so far */
    char added[GG_CONVERT_PREFIX]; /* best prefix to add so far */
};

/* The name of a tensor's weight, without wrappers. */
static bool plain_name(const struct gguf_convert *c, size_t i,
                       char out[GG_CONVERT_NAME], unsigned *which)
{
    char buf[GG_CONVERT_NAME];
    struct gguf_str name = c->folder.weights->tensor[i].name;
    if (c->folder.weights->tensor[i].is_part)
        return false;
    if (c->is_adapter) {
        if (gg_convert_adapter_name(name, buf) == GG_HALF_NONE)
            return false;
        name = gg_str_z(buf);
    }
    return gg_convert_strip_wrappers(c, name, out, which);
}

static bool is_number(const char *p)
{
    const size_t n = strspn(p, "0123456789");
    return n && (!p[n] || p[n] == '.');
}

/* Position of a layer's number in a name; NULL: none. */
static const char *find_number(const char *name)
{
    while (!is_number(name)) {
        name = strchr(name, '.');
        if (!name)
            return NULL;
        name++;
    }
    return name;
}

static void count_names(const struct search *s, struct census *n)
{
    const struct gguf_convert *c = s->c;
    char name[GG_CONVERT_NAME], as[GG_CONVERT_NAME];
    unsigned which = 0;
    *n = (struct census){ 0, 0, "", "" };
    for (size_t i = 0; i < c->folder.weights->n_tensors; i += s->step) {
        bool nothing = false;
        if (!plain_name(c, i, name, &which))
            continue;
        const bool known =
            gg_convert_normalize_name(c, gg_str_z(name), as, &nothing) &&
            (gg_convert_has_name(c, as) || gg_convert_respell(c, as));
        char *first = known ? n->known : n->unknown;
        n->n_known += known;
        n->n_unknown += !known && !nothing;
        if (!nothing && !*first && find_number(name))
            memcpy(first, name, strlen(name) + 1);
    }
}

/* Keep the prefix if it leaves fewer names without a place, and gives most
 * names one. */
static void try_prefix(struct search *s, struct gguf_str prefix,
                       struct gguf_str added)
{
    struct census n;
    if (added.size >= GG_CONVERT_PREFIX)
        return;
    s->c->folder.prefix = prefix;
    memcpy(s->c->folder.added, added.data, added.size);
    s->c->folder.added[added.size] = 0;
    count_names(s, &n);
    if (n.n_unknown >= s->n_unknown ||
        2 * n.n_known <= s->bare.n_known + s->bare.n_unknown)
        return;
    s->n_unknown = n.n_unknown;
    s->prefix = prefix;
    memcpy(s->added, s->c->folder.added, sizeof s->added);
}

/* Try each prefix that names of the class's layers have. */
static void try_heads(struct search *s, struct gguf_str prefix)
{
    enum { MOST_HEADS = 16 };
    const struct gg_convert_arch *a = s->c->arch;
    struct gguf_str seen[MOST_HEADS];
    size_t n_seen = 0;
    for (size_t i = 0; i < GG_LEN(a->names) && a->names[i]; i++)
        for (const struct gg_convert_name *row = a->names[i]; row->from;
             row++) {
            const char *number = strchr(row->from, '%');
            for (const char *p = row->from;
                 number && (p = strchr(p, '.')) && p + 1 < number; p++) {
                const struct gguf_str head = { row->from,
                                               (size_t)(p + 1 - row->from) };
                size_t k = 0;
                while (k < n_seen && !gg_str_eq(seen[k], head))
                    k++;
                if (k < n_seen || n_seen == MOST_HEADS)
                    continue;
                seen[n_seen++] = head;
                /* some layers have the prefix: it is not missing from the
                 * others */
                if (strncmp(s->bare.known, head.data, head.size) != 0)
                    try_prefix(s, prefix, head);
            }
        }
}

/* Note the removed prefixes and wrappers. PEFT's own prefix of adapters is not
 * mentioned. */
static void note_prefix(const struct gguf_convert *c, unsigned which)
{
    char list[400] = "";
    size_t n = 0, used = 0;
    struct gg_str_esc e;
    for (size_t i = 0; gg_convert_wrapper_name(i); i++) {
        const char *what = gg_convert_wrapper_name(i);
        const bool is_front = what[strlen(what) - 1] == '.';
        if (which & 1u << i && !(c->is_adapter && !strcmp(what, PEFT_FRONT)))
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s'%s%s'",
                                 n++ ? ", " : "", what, is_front ? "" : ".");
    }
    if (c->folder.prefix.size)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'",
                                 n++ ? ", " : "",
                                 gg_str_esc(&e, c->folder.prefix));
    if (n)
        gg_folder_note(&c->folder,
                       "%s %s left out of the names of tensors%s%s%s", list,
                       n > 1 ? "are" : "is", *c->folder.added ? ", and '" : "",
                       c->folder.added, *c->folder.added ? "' is added" : "");
    else if (*c->folder.added)
        gg_folder_note(&c->folder,
                       "'%s' is added to the names of tensors, which lack it",
                       c->folder.added);
}

/* Try prefixes that end before the number of a layer whose name matches no row,
 * one more segment each time. If other layers match already, no prefix is
 * common to all names. */
static enum gguf_status try_segments(struct search *s, struct gguf_error *err)
{
    struct gguf_convert *c = s->c;
    const size_t size = strlen(s->bare.unknown);
    const char *name = gg_mem_arena_strndup(&c->arena, s->bare.unknown, size);
    if (!name)
        return gg_error_set_nomem(err, size + 1);
    const char *number = find_number(name);
    for (const char *p = name; p && p < number;) {
        const struct gguf_str prefix = { name, (size_t)(p - name) };
        if (prefix.size)
            try_prefix(s, prefix, GG_STR(""));
        try_heads(s, prefix);
        p = *s->bare.known ? NULL : strchr(p, '.');
        p = p ? p + 1 : NULL;
    }
    c->folder.prefix = s->prefix;
    memcpy(c->folder.added, s->added, sizeof c->folder.added);
    return GGUF_OK;
}

enum gguf_status gg_convert_find_prefix(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    const size_t n = c->folder.weights->n_tensors;
    struct search s = { .c = c,
                        .step = n / MOST_NAMES + 1,
                        .prefix = GG_STR("") };
    char name[GG_CONVERT_NAME];
    unsigned which = 0;
    for (size_t i = 0; i < n; i++)
        (void)plain_name(c, i, name, &which);
    count_names(&s, &s.bare);
    s.n_unknown = s.bare.n_unknown;
    if (*s.bare.unknown)
        GG_TRY(try_segments(&s, err));
    note_prefix(c, which);
    return GGUF_OK;
}
