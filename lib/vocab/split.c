/* split.c - finding whole tokens in a text before it is tokenized
 *
 * Control tokens (if asked for) and user-defined tokens are taken out of the
 * text first. All their occurrences are found in one walk over the text, by
 * narrowing a range of the sorted texts byte by byte; then they are granted
 * in order of precedence as long as their bytes are free.
 */
#include "config.h"
#include "vocab/vocab.h"

#include "base/mem.h"

#include <stdlib.h>

static bool splits(uint8_t kind, bool parse)
{
    return kind == GGUF_TOKEN_USER ||
           (parse &&
            (kind == GGUF_TOKEN_CONTROL || kind == GGUF_TOKEN_UNKNOWN));
}

/* ---- the sorted list ---- */

static int text_cmp(struct gguf_str a, struct gguf_str b)
{
    int c = memcmp(a.data, b.data, GG_MIN(a.size, b.size));
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

/* Heap sort: no memory, no worst case. */
static void sift(const struct gguf_vocab *v, gguf_token *a, size_t i, size_t n)
{
    gguf_token x = a[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n &&
            text_cmp(v->token[a[k]].text, v->token[a[k + 1]].text) < 0)
            k++;
        if (text_cmp(v->token[x].text, v->token[a[k]].text) >= 0)
            break;
        a[i] = a[k];
    }
    a[i] = x;
}

static void sort_by_text(const struct gguf_vocab *v, gguf_token *a, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(v, a, i, n);
    for (size_t i = n; i-- > 1;) {
        gguf_token t = a[0];
        a[0] = a[i];
        a[i] = t;
        sift(v, a, 0, i);
    }
}

enum gguf_status gg_split_load(struct gguf_vocab *v, struct gguf_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_tokens; i++)
        n += v->token[i].text.size && splits(v->token[i].kind, true);
    v->split = gg_alloc(v->allocator, n * sizeof *v->split);
    if (!v->split)
        return gg_fail_nomem(err, n * sizeof *v->split);
    n = 0;
    for (size_t i = 0; i < v->n_tokens; i++)
        if (v->token[i].text.size && splits(v->token[i].kind, true))
            v->split[n++] = (gguf_token)i;
    sort_by_text(v, v->split, n);
    size_t k = 0;
    for (unsigned b = 0; b < 257; b++) {
        while (k < n && (uint8_t)v->token[v->split[k]].text.data[0] < b)
            k++;
        v->first[b] = (uint32_t)k;
    }
    return GGUF_OK;
}

/* ---- occurrences ---- */

struct match {
    size_t off, size;
    gguf_token id;
};

struct matches {
    const struct gguf_allocator *allocator;
    struct match *m;
    size_t n, cap;
};

static enum gguf_status match_push(struct matches *a, struct match m,
                                   struct gguf_error *err)
{
    if (a->n == a->cap) {
        void *grown = gg_grow(a->allocator, a->m, &a->cap,
                              sizeof *a->m, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        a->m = grown;
    }
    a->m[a->n++] = m;
    return GGUF_OK;
}

/* First of split[lo..hi), all equal in their first k bytes, whose byte k is
 * at least b (a shorter text counts as less). */
static uint32_t lower(const struct gguf_vocab *v, uint32_t lo, uint32_t hi,
                      size_t k, unsigned b)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        struct gguf_str t = v->token[v->split[mid]].text;
        if (t.size <= k || (uint8_t)t.data[k] < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* All tokens that begin at text[off]. */
static enum gguf_status find_at(const struct gguf_vocab *v, const char *text,
                                size_t size, size_t off, bool parse,
                                struct matches *out, struct gguf_error *err)
{
    unsigned b = (uint8_t)text[off];
    uint32_t lo = v->first[b], hi = v->first[b + 1];
    for (size_t k = 1; lo < hi; k++) {
        gguf_token id = v->split[lo];
        /* the shortest of the range comes first */
        if (v->token[id].text.size == k) {
            if (splits(v->token[id].kind, parse))
                GG_TRY(match_push(out, (struct match){ off, k, id }, err));
            lo++;
        }
        if (off + k >= size)
            break;
        b = (uint8_t)text[off + k];
        lo = lower(v, lo, hi, k, b);
        hi = lower(v, lo, hi, k, b + 1);
    }
    return GGUF_OK;
}

static int by_precedence(const void *pa, const void *pb)
{
    const struct match *a = pa, *b = pb;
    if (a->size != b->size)
        return a->size < b->size ? 1 : -1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->off > b->off) - (a->off < b->off);
}

static int by_place(const void *pa, const void *pb)
{
    const struct match *a = pa, *b = pb;
    return (a->off > b->off) - (a->off < b->off);
}

/* ---- granting ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Keep the matches whose bytes are free; used marks bytes. */
static size_t grant(const struct gguf_vocab *v, const char *text, size_t size,
                    uint8_t *used, struct match *m, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        /* granted ones are at least as long: looking at the ends is enough */
        if (used[m[i].off] || used[m[i].off + m[i].size - 1])
            continue;
        memset(used + m[i].off, 1, m[i].size);
        size_t end = m[i].off + m[i].size;
        if (v->token[m[i].id].rstrip)
            for (; end < size && !used[end] && is_blank(text[end]); end++)
                used[end] = 2;
        m[kept++] = m[i];
    }
    return kept;
}

enum gguf_status gg_split_text(const struct gguf_vocab *v, const char *text,
                               size_t size, bool parse, struct gg_piece **out,
                               size_t *n_out, struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    struct matches a = { .allocator = v->allocator };
    uint8_t *used = NULL;
    *out = NULL;
    *n_out = 0;
    for (size_t i = 0; i < size && st == GGUF_OK; i++)
        st = find_at(v, text, size, i, parse, &a, err);
    if (st == GGUF_OK && a.n) {
        used = gg_alloc_zero(v->allocator, size, 1);
        if (!used)
            st = gg_fail_nomem(err, size);
    }
    if (st != GGUF_OK)
        goto out;
    if (a.n) {
        qsort(a.m, a.n, sizeof *a.m, by_precedence);
        a.n = grant(v, text, size, used, a.m, a.n);
        qsort(a.m, a.n, sizeof *a.m, by_place);
    }
    struct gg_piece *p = gg_alloc(v->allocator, (2 * a.n + 1) * sizeof *p);
    if (!p) {
        st = gg_fail_nomem(err, (2 * a.n + 1) * sizeof *p);
        goto out;
    }
    size_t at = 0, n = 0;
    for (size_t i = 0; i <= a.n; i++) {
        size_t end = i < a.n ? a.m[i].off : size;
        while (at < end && used && used[at] == 2)
            at++;
        if (at < end)
            p[n++] = (struct gg_piece){ at, end - at, GGUF_TOKEN_NONE };
        if (i < a.n) {
            p[n++] = (struct gg_piece){ end, a.m[i].size, a.m[i].id };
            at = end + a.m[i].size;
        }
    }
    *out = p;
    *n_out = n;
out:
    gg_free(v->allocator, a.m);
    gg_free(v->allocator, used);
    return st;
}
