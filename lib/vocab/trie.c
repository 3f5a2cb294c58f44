/* SPDX-License-Identifier: MIT */
/* trie.c - find all tokens with which a text begins */
#include "config.h"
#include "vocab/trie.h"

#include "base/compiler.h"
#include "base/mem.h"

/* ---- sorting ---- */

static int compare_texts(const struct gg_vocab_trie_text *a,
                         const struct gg_vocab_trie_text *b)
{
    int c =
        memcmp(a->text.data, b->text.data, GG_MIN(a->text.size, b->text.size));
    if (c)
        return c;
    if (a->text.size != b->text.size)
        return a->text.size < b->text.size ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static void sift_down(struct gg_vocab_trie_text *a, size_t i, size_t n)
{
    struct gg_vocab_trie_text x = a[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && compare_texts(&a[k], &a[k + 1]) < 0)
            k++;
        if (compare_texts(&x, &a[k]) >= 0)
            break;
        a[i] = a[k];
    }
    a[i] = x;
}

/* Heap sort: it needs no memory and has no worst case. */
static void sort_texts(struct gg_vocab_trie_text *a, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(a, i, n);
    for (size_t i = n; i-- > 1;) {
        struct gg_vocab_trie_text t = a[0];
        a[0] = a[i];
        a[i] = t;
        sift_down(a, 0, i);
    }
}

static size_t common_prefix(struct gguf_str a, struct gguf_str b)
{
    size_t n = 0, most = GG_MIN(a.size, b.size);
    while (n < most && a.data[n] == b.data[n])
        n++;
    return n;
}

/* Count the nodes of n sorted texts: each adds the bytes after its common
 * prefix with the text before. */
static uint64_t count_nodes(const struct gg_vocab_trie_text *a, size_t n)
{
    uint64_t count = 1;
    for (size_t i = 0; i < n; i++)
        count +=
            a[i].text.size - (i ? common_prefix(a[i - 1].text, a[i].text) : 0);
    return count;
}

/* ---- levels ---- */

/* Texts that begin with the bytes of a node. */
struct range {
    uint32_t low, high;
};

static void build_range(struct gg_vocab_trie *t,
                        const struct gg_vocab_trie_text *a, struct range *r)
{
    uint32_t n = 1, level_end = 1;
    size_t depth = 0;
    t->label[0] = 0;
    for (uint32_t k = 0; k < t->n; k++) {
        if (k == level_end) {
            level_end = n;
            depth++;
        }
        uint32_t i = r[k].low;
        t->first[k] = n;
        t->id[k] = GGUF_TOKEN_NONE;
        for (; i < r[k].high && a[i].text.size == depth; i++)
            t->id[k] = a[i].id;
        while (i < r[k].high) {
            uint8_t byte = (uint8_t)a[i].text.data[depth];
            t->label[n] = byte;
            r[n].low = i;
            while (i < r[k].high && (uint8_t)a[i].text.data[depth] == byte)
                i++;
            r[n++].high = i;
        }
    }
    t->first[t->n] = n;
    for (uint32_t c = t->first[0]; c < t->first[1]; c++)
        t->root[t->label[c]] = c;
}

enum gguf_status gg_vocab_trie_init(struct gg_vocab_trie *t,
                                    const struct gguf_allocator *a,
                                    struct gg_vocab_trie_text *texts, size_t n,
                                    struct gguf_error *err)
{
    size_t n_texts = 0;
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < n; i++)
        if (texts[i].text.size)
            texts[n_texts++] = texts[i];
    sort_texts(texts, n_texts);
    uint64_t n_nodes = count_nodes(texts, n_texts);
    if (n_nodes >= UINT32_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "tokenizer.ggml.tokens: %" PRIu64
                            " different beginnings of texts, limit is 2^32",
                            n_nodes);
    t->n = (uint32_t)n_nodes;
    t->first = gg_mem_alloc_zero(a, n_nodes + 1, sizeof *t->first);
    t->id = gg_mem_alloc_zero(a, n_nodes, sizeof *t->id);
    t->label = gg_mem_alloc_zero(a, n_nodes, 1);
    struct range *r = gg_mem_alloc_zero(a, n_nodes, sizeof *r);
    if (t->first && t->id && t->label && r) {
        r[0] = (struct range){ 0, (uint32_t)n_texts };
        build_range(t, texts, r);
        gg_mem_free(a, r);
        return GGUF_OK;
    }
    gg_mem_free(a, r);
    gg_vocab_trie_fini(t, a);
    return gg_error_set_nomem(err, (size_t)n_nodes * sizeof *r);
}

void gg_vocab_trie_fini(struct gg_vocab_trie *t,
                        const struct gguf_allocator *a)
{
    gg_mem_free(a, t->first);
    gg_mem_free(a, t->id);
    gg_mem_free(a, t->label);
    memset(t, 0, sizeof *t);
}
