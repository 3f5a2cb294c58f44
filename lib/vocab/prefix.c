/* prefix.c - which of many tokens' texts does a text begin with? */
#include "config.h"
#include "vocab/prefix.h"
#include "vocab/vocab.h"

#include "base/mem.h"

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

typedef int order_fn(const struct gguf_vocab *v, const struct gg_prefix *a,
                     const struct gg_prefix *b);

static int by_text(const struct gguf_vocab *v, const struct gg_prefix *a,
                   const struct gg_prefix *b)
{
    return text_cmp(text_of(v, a), text_of(v, b));
}

static int by_precedence(const struct gguf_vocab *v, const struct gg_prefix *a,
                         const struct gg_prefix *b)
{
    size_t m = text_of(v, a).size, n = text_of(v, b).size;
    return m != n ? (m < n) - (m > n) : (a->id > b->id) - (a->id < b->id);
}

/* Heap sort: no memory, no worst case. */
static void sift(const struct gguf_vocab *v, order_fn *order,
                 struct gg_prefix *a, size_t i, size_t n)
{
    struct gg_prefix x = a[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && order(v, &a[k], &a[k + 1]) < 0)
            k++;
        if (order(v, &x, &a[k]) >= 0)
            break;
        a[i] = a[k];
    }
    a[i] = x;
}

static void sort(const struct gguf_vocab *v, order_fn *order,
                 struct gg_prefix *a, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(v, order, a, i, n);
    for (size_t i = n; i-- > 1;) {
        struct gg_prefix t = a[0];
        a[0] = a[i];
        a[i] = t;
        sift(v, order, a, 0, i);
    }
}

/* ---- building ---- */

static bool begins(struct gguf_str text, struct gguf_str with)
{
    return with.size <= text.size && !memcmp(text.data, with.data, with.size);
}

/* Parent and jump of text i; those before it have theirs. */
static void attach(struct gg_vocab_prefixes *p, const struct gguf_vocab *v,
                   uint32_t i)
{
    struct gg_prefix *t = &p->text[i];
    uint32_t up = i - 1;
    while (up && !begins(text_of(v, t), text_of(v, &p->text[up])))
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

enum gguf_status gg_vocab_prefixes_init(struct gg_vocab_prefixes *p,
                                        const struct gguf_vocab *v,
                                        unsigned kinds, struct gguf_error *err)
{
    size_t n = 1;
    for (size_t i = 0; i < v->n_tokens; i++)
        n += v->token[i].text.size && kinds >> v->token[i].kind & 1;
    *p = (struct gg_vocab_prefixes){ .text = gg_mem_alloc(
                                         v->allocator, n * sizeof *p->text) };
    if (!p->text)
        return gg_error_set_nomem(err, n * sizeof *p->text);
    p->text[p->n++] = (struct gg_prefix){ .id = GGUF_TOKEN_NONE };
    for (size_t i = 0; i < v->n_tokens; i++)
        if (v->token[i].text.size && kinds >> v->token[i].kind & 1)
            p->text[p->n++] = (struct gg_prefix){ .id = (gguf_token)i };
    sort(v, by_precedence, p->text + 1, n - 1);
    for (uint32_t i = 1; i < n; i++)
        p->text[i].rank = i - 1;
    sort(v, by_text, p->text + 1, n - 1);
    uint32_t k = 1;
    for (unsigned b = 0; b < 257; b++) {
        while (k < n && (uint8_t)text_of(v, &p->text[k]).data[0] < b)
            k++;
        p->first[b] = k;
    }
    for (uint32_t i = 1; i < n; i++)
        attach(p, v, i);
    return GGUF_OK;
}

void gg_vocab_prefixes_fini(struct gg_vocab_prefixes *p,
                            const struct gguf_vocab *v)
{
    gg_mem_free(v->allocator, p->text);
}

/* ---- finding ---- */

/* Bytes that both begin with. */
static size_t common(struct gguf_str a, struct gguf_str b)
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
    if (begins(s, text_of(v, &p->text[i])))
        return i;
    size_t n = common(s, text_of(v, &p->text[i]));
    while (size_of(p, v, i) > n)
        i = size_of(p, v, p->text[i].jump) > n ? p->text[i].jump
                                               : p->text[i].parent;
    return i;
}
