/* SPDX-License-Identifier: MIT */
/* word_split.c - find whole tokens in a text before it is tokenized
 *
 * Control tokens, if asked for, and user-defined tokens are taken out of the
 * text first, in order of precedence: the longest first, then by id, then from
 * left to right, as long as their bytes are free. For each byte only the
 * longest token that begins there waits in the heap. If others have taken its
 * end meanwhile, the longest one that still fits waits instead. It has at most
 * half of the free bytes: each byte is tried log n times at most. */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "vocab/heap.h"

#define BIT(KIND) (1u << GGUF_TOKEN_##KIND)

enum gguf_status gg_vocab_split_load(struct gguf_vocab *v,
                                     struct gguf_error *err)
{
    GG_TRY(gg_vocab_prefixes_init(&v->split[0], v, BIT(USER), err));
    return gg_vocab_prefixes_init(
        &v->split[1], v, BIT(USER) | BIT(CONTROL) | BIT(UNKNOWN), err);
}

void gg_vocab_split_unload(struct gguf_vocab *v)
{
    gg_vocab_prefixes_fini(&v->split[0], v);
    gg_vocab_prefixes_fini(&v->split[1], v);
}

/* ---- where tokens begin ---- */

struct match {
    size_t off;
    uint32_t i; /* number of its text; 0: it does not get its bytes */
};

struct work {
    const struct gguf_vocab *v;
    const struct gg_vocab_prefixes *texts;
    const char *text;
    size_t size;
    struct match *m; /* matches, in the order of the text */
    size_t n, cap;
    struct gg_vocab_candidate *heap; /* heap; left is the number of a match */
    size_t n_heap;
    uint8_t *used; /* [size]: 1 taken by a token, 2 dropped beside one */
};

static enum gguf_status find_all(struct work *w, struct gguf_error *err)
{
    for (size_t off = 0; off < w->size; off++) {
        uint32_t i = gg_vocab_prefixes_find(w->texts, w->v, w->text + off,
                                            w->size - off);
        if (!i)
            continue;
        if (w->n == w->cap) {
            void *grown = gg_mem_grow(w->v->allocator, w->m, &w->cap,
                                      sizeof *w->m, 64, err);
            if (!grown)
                return GGUF_E_NOMEM;
            w->m = grown;
        }
        if (w->n == UINT32_MAX)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "tokens begin at 2^32 bytes of the text");
        w->m[w->n++] = (struct match){ off, i };
    }
    return GGUF_OK;
}

/* ---- choosing ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void push_match(struct work *w, size_t k)
{
    struct gg_vocab_candidate c = {
        .score = -(double)w->texts->text[w->m[k].i].rank, .left = (uint32_t)k
    };
    gg_heap_push(w->heap, &w->n_heap, c);
}

/* Number of free bytes among n; the first is free. Earlier matches are at
 * least as long, so that one takes all bytes from its first on. */
static size_t count_free(const uint8_t *used, size_t n)
{
    size_t low = 1, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (used[mid])
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Keep in w->m the matches that get their bytes. */
static void choose_matches(struct work *w)
{
    for (size_t k = 0; k < w->n; k++)
        push_match(w, k);
    while (w->n_heap) {
        size_t k = gg_heap_pop(w->heap, &w->n_heap).left;
        struct match *m = &w->m[k];
        const struct gg_vocab_token *t = &w->v->token[w->texts->text[m->i].id];
        if (w->used[m->off]) {
            m->i = 0;
            continue;
        }
        size_t n = count_free(w->used + m->off, t->text.size);
        if (n < t->text.size) {
            m->i = gg_vocab_prefixes_find(w->texts, w->v, w->text + m->off, n);
            if (m->i)
                push_match(w, k);
            continue;
        }
        memset(w->used + m->off, 1, n);
        for (size_t b = m->off;
             t->lstrip && b && !w->used[b - 1] && is_blank(w->text[b - 1]);
             b--)
            w->used[b - 1] = 2;
        size_t end = m->off + n;
        if (t->rstrip)
            for (; end < w->size && !w->used[end] && is_blank(w->text[end]);
                 end++)
                w->used[end] = 2;
    }
}

/* ---- the pieces ---- */

static enum gguf_status cut_pieces(const struct work *w,
                                   struct gg_vocab_piece **out, size_t *n_out,
                                   struct gguf_error *err)
{
    size_t n_granted = 0, at = 0, n = 0;
    for (size_t k = 0; k < w->n; k++)
        n_granted += w->m[k].i != 0;
    struct gg_vocab_piece *p =
        gg_mem_alloc(w->v->allocator, (2 * n_granted + 1) * sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, (2 * n_granted + 1) * sizeof *p);
    for (size_t k = 0; k <= w->n; k++) {
        if (k < w->n && !w->m[k].i)
            continue;
        size_t end = k < w->n ? w->m[k].off : w->size;
        while (at < end && w->used && w->used[at] == 2)
            at++;
        size_t stop = end;
        while (at < stop && w->used && w->used[stop - 1] == 2)
            stop--;
        if (at < stop)
            p[n++] = (struct gg_vocab_piece){ at, stop - at, GGUF_TOKEN_NONE };
        if (k < w->n) {
            gguf_token id = w->texts->text[w->m[k].i].id;
            size_t size = w->v->token[id].text.size;
            p[n++] = (struct gg_vocab_piece){ end, size, id };
            at = end + size;
        }
    }
    *out = p;
    *n_out = n;
    return GGUF_OK;
}

enum gguf_status gg_vocab_split_text(const struct gguf_vocab *v,
                                     const char *text, size_t size, bool parse,
                                     struct gg_vocab_piece **out,
                                     size_t *n_out, struct gguf_error *err)
{
    struct work w = {
        .v = v, .texts = &v->split[parse], .text = text, .size = size
    };
    *out = NULL;
    *n_out = 0;
    enum gguf_status st = find_all(&w, err);
    if (st == GGUF_OK && w.n) {
        w.heap = gg_mem_alloc_zero(v->allocator, w.n, sizeof *w.heap);
        w.used = gg_mem_alloc_zero(v->allocator, size, 1);
        if (w.heap && w.used)
            choose_matches(&w);
        else
            st = gg_error_set_nomem(err, size);
    }
    if (st == GGUF_OK)
        st = cut_pieces(&w, out, n_out, err);
    gg_mem_free(v->allocator, w.m);
    gg_mem_free(v->allocator, w.heap);
    gg_mem_free(v->allocator, w.used);
    return st;
}
