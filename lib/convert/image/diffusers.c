/* SPDX-License-Identifier: MIT */
/* diffusers.c - rename and join tensors of diffusers */
#include "config.h"
#include "convert/image/image.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Parts of a name that the signs of a pattern match. */
struct wild {
    int64_t number; /* "%"; -1: none */
    struct gguf_str rest;
};

/* Does the name match the pattern? "*" is its end. */
static bool match_name(struct gguf_str pattern, struct gguf_str name,
                       struct wild *w)
{
    char front[128];
    int64_t none;
    *w = (struct wild){ .number = -1 };
    const bool open = gg_str_ends(pattern, "*");
    snprintf(front, sizeof front, "%.*s", (int)(pattern.size - open),
             pattern.data);
    if (!gg_convert_match_pattern(front, &name, &w->number, &none))
        return false;
    w->rest = name;
    return open ? name.size > 0 : !name.size;
}

/* Put a name into the arena: the pattern with what stands for its signs. */
static enum gguf_status fill_name(struct gguf_convert *c,
                                  struct gguf_str pattern,
                                  const struct wild *w, struct gguf_str *out,
                                  struct gguf_error *err)
{
    char buf[GG_CONVERT_NAME];
    size_t n = 0;
    for (size_t i = 0; i < pattern.size && n < sizeof buf; i++)
        if (pattern.data[i] == '%')
            n += (size_t)snprintf(buf + n, sizeof buf - n, "%" PRId64,
                                  w->number);
        else if (pattern.data[i] == '*')
            n += (size_t)snprintf(buf + n, sizeof buf - n, "%.*s",
                                  (int)w->rest.size, w->rest.data);
        else
            buf[n++] = pattern.data[i];
    n = GG_MIN(n, sizeof buf - 1);
    *out = (struct gguf_str){ gg_mem_arena_strndup(&c->arena, buf, n), n };
    return out->data ? GGUF_OK : gg_error_set_nomem(err, n + 1);
}

static uint32_t find_tensor(const struct gguf_convert *c, struct gguf_str name)
{
    char buf[GG_CONVERT_NAME];
    const struct gguf_str prefix = c->folder.prefix;
    const int n = snprintf(buf, sizeof buf, "%.*s%.*s", (int)prefix.size,
                           prefix.data, (int)name.size, name.data);
    return n < 0 || (size_t)n >= sizeof buf
               ? GG_INDEX_NONE
               : gg_safetensors_find(c->folder.weights,
                                     (struct gguf_str){ buf, (size_t)n });
}

static enum gguf_status fail_missing(struct gguf_str name, struct gguf_str to,
                                     struct gguf_error *err)
{
    struct gg_str_esc e, e_to;
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' is missing, a part of '%s'",
                        gg_str_esc(&e, name), gg_str_esc(&e_to, to));
}

/* Find the tensors of a row. */
static enum gguf_status find_parts(struct gguf_convert *c,
                                   const struct gg_image_rename *r,
                                   const struct wild *w,
                                   struct gg_image_source *out,
                                   struct gguf_error *err)
{
    struct gguf_str name;
    for (const char *p = r->from; *p; p += *p == ' ') {
        const size_t n = strcspn(p, " ");
        GG_TRY(fill_name(c, (struct gguf_str){ p, n }, w, &name, err));
        const uint32_t from = find_tensor(c, name);
        if (from == GG_INDEX_NONE)
            return fail_missing(name, out->name, err);
        if (out->n_from == GG_LEN(out->from))
            return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "more than %zu parts", GG_LEN(out->from));
        out->from[out->n_from++] = from;
        p += n;
    }
    if (!r->unless)
        return GGUF_OK;
    GG_TRY(fill_name(c, gg_str_z(r->unless), w, &name, err));
    out->swap = r->swap && find_tensor(c, name) == GG_INDEX_NONE;
    return GGUF_OK;
}

/* Number of the pattern of the row that the name matches; -1: none. */
static int find_pattern(const struct gg_image_rename *r, struct gguf_str name,
                        struct wild *w)
{
    const char *p = r->from;
    for (int no = 0; *p; no++, p += *p == ' ') {
        const size_t n = strcspn(p, " ");
        if (match_name((struct gguf_str){ p, n }, name, w))
            return no;
        p += n;
    }
    return -1;
}

enum gguf_status gg_image_rename(struct gguf_convert *c, struct gguf_str name,
                                 struct gg_image_source *out,
                                 struct gguf_error *err)
{
    struct gg_str_esc e;
    struct wild w;
    const struct gg_image_rename *r = c->image_layout->rename;
    int no = -1;
    *out = (struct gg_image_source){ .n_from = 0 };
    while (r->from && (no = find_pattern(r, name, &w)) < 0)
        r++;
    if (!r->from)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s' of diffusers has no name that "
                            "loaders know (architecture %s)",
                            gg_str_esc(&e, name), c->image->name);
    GG_TRY(fill_name(c, gg_str_z(r->to), &w, &out->name, err));
    out->swap = r->swap;
    GG_TRY(find_parts(c, r, &w, out, err));
    if (no > 0)
        out->n_from = 0; /* the first part brings the others */
    return GGUF_OK;
}

enum gguf_status gg_image_join(const struct gguf_convert *c,
                               const struct gg_image_source *s, int64_t *ne,
                               struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = c->folder.weights->tensor;
    const struct gg_safetensors_tensor *first = &t[s->from[0]];
    struct gg_str_esc e, e_other;
    memcpy(ne, first->ne, sizeof first->ne);
    if (s->n_from == 1 && !s->swap)
        return GGUF_OK;
    if (!first->n_dims)
        return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                            "tensor '%s' has no dimensions",
                            gg_str_esc(&e, first->name));
    const unsigned last = first->n_dims - 1;
    for (unsigned i = 1; i < s->n_from; i++) {
        const struct gg_safetensors_tensor *other = &t[s->from[i]];
        if (other->n_dims != first->n_dims ||
            memcmp(other->ne, first->ne, last * sizeof *ne) != 0 ||
            other->ne[last] > INT32_MAX || ne[last] > INT32_MAX)
            return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                                "tensors '%s' and '%s' cannot be joined",
                                gg_str_esc(&e, first->name),
                                gg_str_esc(&e_other, other->name));
        ne[last] += other->ne[last];
    }
    return s->swap && ne[last] % 2
               ? gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                              "tensor '%s' has %" PRId64
                              " rows, expected an even number",
                              gg_str_esc(&e, first->name), ne[last])
               : GGUF_OK;
}
