/* SPDX-License-Identifier: MIT */
/* recognize.c - tell an image or video model by the names of its tensors */
#include "config.h"
#include "convert/image/image.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prefixes of the model's names in files that hold other parts, too. */
static const char *const prefixes[] = { "model.diffusion_model.",
                                        "model.model.", "net.", "model.", "" };

const char *gg_image_prefix(size_t n)
{
    return n < GG_LEN(prefixes) ? prefixes[n] : NULL;
}

static bool has_tensor(const struct gg_safetensors *s, const char *prefix,
                       const char *name, size_t n)
{
    char buf[256];
    const int len = snprintf(buf, sizeof buf, "%s%.*s", prefix, (int)n, name);
    return len > 0 && (size_t)len < sizeof buf &&
           gg_safetensors_find(s, (struct gguf_str){ buf, (size_t)len }) !=
               GG_INDEX_NONE;
}

static bool has_any(const struct gg_safetensors *s, const char *prefix,
                    const char *list)
{
    while (list && *list) {
        const size_t n = strcspn(list, " ");
        if (has_tensor(s, prefix, list, n))
            return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

/* Have the tensors of a list NAME=ROWS all these numbers of rows? Returns
 * no_list if list is NULL. */
static bool has_rows(const struct gg_safetensors *s, const char *prefix,
                     const char *list, bool no_list)
{
    char buf[256];
    if (!list)
        return no_list;
    while (*list) {
        const size_t n = strcspn(list, "=");
        char *end;
        const long rows = strtol(list + n + 1, &end, 10);
        snprintf(buf, sizeof buf, "%s%.*s", prefix, (int)n, list);
        const uint32_t i = gg_safetensors_find(s, gg_str_z(buf));
        if (i == GG_INDEX_NONE || !s->tensor[i].n_dims ||
            s->tensor[i].ne[s->tensor[i].n_dims - 1] != rows)
            return false;
        list = end + (*end == ' ');
    }
    return true;
}

/* Number of names of a set that a file has. */
struct match {
    const char *arch;       /* architecture; NULL: none */
    struct gguf_str lacked; /* first name that is missing */
    size_t n, n_found;      /* names of the set, and those that were found */
};

/* Compare the file with one set, which ends at '|' or 0. Returns its end. */
static const char *compare_set(const struct gg_safetensors *s,
                               const char *prefix, const char *set,
                               struct match *m)
{
    *m = (struct match){ .n = 0 };
    while (*set && *set != '|') {
        const size_t n = strcspn(set, " |");
        const bool found = has_tensor(s, prefix, set, n);
        if (!found && !m->lacked.data)
            m->lacked = (struct gguf_str){ set, n };
        m->n_found += found;
        m->n++;
        set += n + (set[n] == ' ');
    }
    return set;
}

/* Has the file all names of one of the sets? */
static bool has_set(const struct gg_safetensors *s, const char *prefix,
                    const char *sets)
{
    for (struct match m; *sets; sets += *sets == '|') {
        sets = compare_set(s, prefix, sets, &m);
        if (m.n_found == m.n)
            return true;
    }
    return false;
}

/* Take an architecture that fits, unless another one fits, too. */
static enum gguf_status take_arch(struct gguf_convert *c, const char *prefix,
                                  const struct gg_image_arch *a,
                                  const struct gg_image_layout *layout,
                                  struct gguf_error *err)
{
    if (c->image)
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "the names of its tensors are those of two "
                            "architectures, %s and %s",
                            c->image->name, a->name);
    c->image = a;
    c->image_layout = layout;
    c->folder.prefix = gg_str_z(prefix);
    return GGUF_OK;
}

static const struct gg_image_arch *find_arch(const char *name)
{
    const struct gg_image_arch *a;
    for (size_t i = 0; (a = gg_image_row(i)); i++)
        if (!strcmp(a->name, name))
            return a;
    return NULL;
}

/* Find the architecture whose names the file has behind a prefix. */
static enum gguf_status try_prefix(struct gguf_convert *c, const char *prefix,
                                   struct gguf_error *err)
{
    const struct gg_safetensors *s = c->folder.weights;
    const struct gg_image_layout *l;
    const struct gg_image_arch *a;
    for (size_t i = 0; (a = gg_image_row(i)); i++)
        if (has_set(s, prefix, a->sets) && !has_any(s, prefix, a->without) &&
            has_rows(s, prefix, a->rows, true) &&
            !has_rows(s, prefix, a->not_rows, false))
            GG_TRY(take_arch(c, prefix, a, NULL, err));
    for (size_t i = 0; (l = gg_image_layout_row(i)); i++)
        if (has_set(s, prefix, l->sets) && (a = find_arch(l->arch)))
            GG_TRY(take_arch(c, prefix, a, l, err));
    return GGUF_OK;
}

/* ---- unknown files ---- */

/* Keep the better of two matches for each of the two best architectures. */
static void keep_best(struct match best[2], const struct match *m)
{
    if (!m->n_found)
        return;
    for (size_t i = 0; i < 2; i++) {
        const bool same = best[i].arch && !strcmp(best[i].arch, m->arch);
        const bool better =
            !best[i].arch || m->n_found * best[i].n > best[i].n_found * m->n;
        if (better) {
            if (!same && i == 0)
                best[1] = best[0];
            best[i] = *m;
        }
        if (better || same)
            return;
    }
}

static void find_nearest(const struct gg_safetensors *s, struct match best[2])
{
    const struct gg_image_arch *a;
    for (size_t i = 0; (a = gg_image_row(i)); i++)
        for (size_t k = 0; k < GG_LEN(prefixes); k++)
            for (const char *p = a->sets; *p; p += *p == '|') {
                struct match m;
                p = compare_set(s, prefixes[k], p, &m);
                m.arch = a->name;
                keep_best(best, &m);
            }
}

static enum gguf_status refuse_unknown(const struct gguf_convert *c,
                                       struct gguf_error *err)
{
    char near[2][200] = { "", "" };
    struct match best[2] = { { .arch = NULL }, { .arch = NULL } };
    find_nearest(c->folder.weights, best);
    for (size_t i = 0; i < 2 && best[i].arch; i++)
        snprintf(near[i], sizeof near[i], "%s%s, whose '%.*s' is missing",
                 i ? ", or " : "; nearest is ", best[i].arch,
                 (int)best[i].lacked.size, best[i].lacked.data);
    struct gg_str_esc e;
    char folder[128] = "";
    if (c->image_file)
        snprintf(folder, sizeof folder,
                 "; a language model is converted as its folder, '%.60s'",
                 gg_str_esc(&e, gg_str_z(c->folder.dir.path)));
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "the names of its tensors are those of no known image "
                        "or video model%s%s%s",
                        near[0], near[1], folder);
}

/* Refuse names of diffusers that are not all there: name the layout with most
 * of its names, and the first that is missing. */
static enum gguf_status refuse_foreign(const struct gg_safetensors *s,
                                       const char *prefix,
                                       struct gguf_error *err)
{
    const struct gg_image_layout *l;
    struct match best = { .n = 1 };
    for (size_t i = 0; (l = gg_image_layout_row(i)); i++) {
        struct match m;
        (void)compare_set(s, prefix, l->sets, &m);
        m.arch = l->arch;
        if (!best.arch || m.n_found * best.n > best.n_found * m.n)
            best = m;
    }
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "has the layout of diffusers; nearest is that of %s, "
                        "whose '%.*s' is missing",
                        best.arch, (int)best.lacked.size, best.lacked.data);
}

enum gguf_status gg_image_recognize(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    const struct gg_image_arch *a, *first = NULL;
    const struct gg_image_layout *layout = NULL;
    struct gguf_str prefix = GG_STR("");
    for (size_t k = 0; k < GG_LEN(prefixes); k++) {
        GG_TRY(try_prefix(c, prefixes[k], err));
        if (c->image && first)
            return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                                "has two models: %s with names that begin "
                                "with '%s', and %s with '%s'",
                                first->name, prefix.data, c->image->name,
                                prefixes[k]);
        if (!c->image)
            continue;
        first = c->image;
        layout = c->image_layout;
        prefix = c->folder.prefix;
        c->image = NULL;
    }
    if (first) {
        c->image = first;
        c->image_layout = layout;
        c->folder.prefix = prefix;
        return GGUF_OK;
    }
    for (size_t i = 0; (a = gg_image_row(i)); i++)
        for (size_t k = 0; k < GG_LEN(prefixes); k++)
            if (has_any(c->folder.weights, prefixes[k], a->foreign))
                return refuse_foreign(c->folder.weights, prefixes[k], err);
    return refuse_unknown(c, err);
}
