/* SPDX-License-Identifier: MIT */
/* prefix.c - find the longest token with which a text begins */
#include "config.h"
#include "vocab/prefix.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/sort.h"

static struct gguf_str text_of(const struct gguf_vocab *v,
                               const struct gg_prefix *t)
{
    return v->token[t->id].text;
}

static int text_cmp(struct gguf_str a, struct gguf_str b)
{
    int c = memcmp(a.data, b.data, GG_MIN(a.size, b.size));
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

/* ---- sorting ---- */

struct sorting {
    const struct gguf_vocab *v;
    const struct gg_prefix *text;
};

static bool after_text(const void *user, int32_t i, int32_t k)
{
    const struct sorting *s = user;
    return text_cmp(text_of(s->v, &s->text[i]), text_of(s->v, &s->text[k])) >
           0;
}

/* Order of precedence: longest first; equal lengths stay in the order of ids.
 */
static bool has_later_precedence(const void *user, int32_t i, int32_t k)
{
    const struct sorting *s = user;
    return text_of(s->v, &s->text[i]).size < text_of(s->v, &s->text[k]).size;
}

/* ---- building ---- */

static bool begins_with(struct gguf_str text, struct gguf_str with)
{
    return with.size <= text.size && !memcmp(text.data, with.data, with.size);
}

/* Set parent and jump of text i; texts before it have theirs. */
static void attach_prefix(struct gg_vocab_prefixes *p,
                          const struct gguf_vocab *v, uint32_t i)
{
    struct gg_prefix *t = &p->text[i];
    uint32_t up = i - 1;
    while (up && !begins_with(text_of(v, t), text_of(v, &p->text[up])))
        up = p->text[up].parent;
    const struct gg_prefix *parent = &p->text[up];
    const struct gg_prefix *far = &p->text[parent->jump];
    t->parent = up;
    t->depth = parent->depth + 1;
    t->jump =
        parent->depth - far->depth == far->depth - p->text[far->jump].depth
            ? far->jump
            : up;
}

/* Sort the n texts, which are in the order of ids, into out. order has room
 * for 2 n. */
static void sort_texts(const struct gguf_vocab *v, struct gg_prefix *text,
                       size_t n, int32_t *order, struct gg_prefix *out)
{
    const struct sorting s = { v, text };
    gg_sort(order, order + n, n, has_later_precedence, &s);
    for (size_t i = 0; i < n; i++)
        text[order[i]].rank = (uint32_t)i;
    gg_sort(order, order + n, n, after_text, &s);
    for (size_t i = 0; i < n; i++)
        out[i] = text[order[i]];
}

enum gguf_status gg_vocab_prefixes_init(struct gg_vocab_prefixes *p,
                                        const struct gguf_vocab *v,
                                        unsigned kinds, struct gguf_error *err)
{
    size_t n = 0;
    struct gg_prefix *all =
        gg_mem_alloc(v->allocator, (v->n_tokens + 1) * sizeof *all);
    for (size_t i = 0; all && i < v->n_tokens; i++)
        if (v->token[i].text.size && kinds >> v->token[i].kind & 1)
            all[n++] = (struct gg_prefix){ .id = (gguf_token)i };
    int32_t *order = gg_mem_alloc(v->allocator, 2 * n * sizeof *order);
    *p = (struct gg_vocab_prefixes){
        .text = gg_mem_alloc(v->allocator, (n + 1) * sizeof *p->text)
    };
    const bool there = all && order && p->text;
    if (there) {
        p->n = (uint32_t)n + 1;
        p->text[0] = (struct gg_prefix){ .id = GGUF_TOKEN_NONE };
        sort_texts(v, all, n, order, p->text + 1);
    }
    gg_mem_free(v->allocator, order);
    gg_mem_free(v->allocator, all);
    if (!there)
        return gg_error_set_nomem(err, (v->n_tokens + 1) * sizeof *all);
    uint32_t k = 1;
    for (unsigned b = 0; b < 257; b++) {
        while (k < p->n && (uint8_t)text_of(v, &p->text[k]).data[0] < b)
            k++;
        p->first[b] = k;
    }
    for (uint32_t i = 1; i < p->n; i++)
        attach_prefix(p, v, i);
    return GGUF_OK;
}

void gg_vocab_prefixes_fini(struct gg_vocab_prefixes *p,
                            const struct gguf_vocab *v)
{
    gg_mem_free(v->allocator, p->text);
}

/* ---- finding ---- */

/* Number of bytes with which both begin. */
static size_t common_prefix(struct gguf_str a, struct gguf_str b)
{
    size_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n])
        n++;
    return n;
}

static size_t size_of(const struct gg_vocab_prefixes *p,
                      const struct gguf_vocab *v, uint32_t i)
{
    return i ? text_of(v, &p->text[i]).size : 0;
}

uint32_t gg_vocab_prefixes_find(const struct gg_vocab_prefixes *p,
                                const struct gguf_vocab *v, const char *text,
                                size_t size)
{
    struct gguf_str s = { text, size };
    uint32_t low = p->first[(uint8_t)*text];
    uint32_t high = p->first[(uint8_t)*text + 1], i;
    if (low == high)
        return 0;
    i = low - 1;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (text_cmp(text_of(v, &p->text[mid]), s) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low - 1 == i)
        return 0;
    i = low - 1;
    if (begins_with(s, text_of(v, &p->text[i])))
        return i;
    size_t n = common_prefix(s, text_of(v, &p->text[i]));
    while (size_of(p, v, i) > n)
        i = size_of(p, v, p->text[i].jump) > n ? p->text[i].jump
                                               : p->text[i].parent;
    return i;
}
