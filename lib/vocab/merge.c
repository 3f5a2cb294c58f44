/* SPDX-License-Identifier: MIT */
/* merge.c - join neighbours, best pair first */
#include "config.h"
#include "vocab/merge.h"

#include "base/mem.h"

void gg_merge_init(struct gg_merge *m, const struct gguf_allocator *a,
                   gg_vocab_pair_fn *pair, const void *user)
{
    *m = (struct gg_merge){ .allocator = a, .pair = pair, .user = user };
}

void gg_merge_fini(struct gg_merge *m)
{
    gg_mem_free(m->allocator, m->sym);
    gg_mem_free(m->allocator, m->heap);
}

enum gguf_status gg_merge_add(struct gg_merge *m, uint32_t off, uint32_t size,
                              gguf_token id, struct gguf_error *err)
{
    if (m->n == m->cap) {
        void *grown = gg_mem_grow(m->allocator, m->sym, &m->cap,
                                  sizeof *m->sym, 256, err);
        if (!grown)
            return GGUF_E_NOMEM;
        m->sym = grown;
    }
    m->sym[m->n] =
        (struct gg_vocab_symbol){ off, size,
                                  m->n ? (uint32_t)m->n - 1 : GG_NO_SYM,
                                  (uint32_t)m->n + 1, id };
    m->n++;
    return GGUF_OK;
}

/* ---- joining ---- */

static void try_join(struct gg_merge *m, uint32_t left)
{
    if (left == GG_NO_SYM || m->sym[left].next == GG_NO_SYM)
        return;
    const struct gg_vocab_symbol *l = &m->sym[left], *r = &m->sym[l->next];
    struct gg_vocab_candidate c = { .left = left, .size = l->size + r->size };
    if (m->pair(m->user, l, r, &c.score, &c.id))
        gg_heap_push(m->heap, &m->n_heap, c);
}

static void join_symbols(struct gg_merge *m,
                         const struct gg_vocab_candidate *c)
{
    struct gg_vocab_symbol *l = &m->sym[c->left];
    if (!l->size || l->next == GG_NO_SYM)
        return;
    struct gg_vocab_symbol *r = &m->sym[l->next];
    if (l->size + r->size != c->size)
        return;
    l->size = c->size;
    l->id = c->id;
    r->size = 0;
    l->next = r->next;
    if (l->next != GG_NO_SYM)
        m->sym[l->next].prev = c->left;
    try_join(m, l->prev);
    try_join(m, c->left);
}

enum gguf_status gg_merge_run(struct gg_merge *m, struct gguf_error *err)
{
    /* each of the at most n - 1 joins adds two candidates */
    if (3 * m->n > m->heap_cap) {
        void *grown = gg_mem_grow(m->allocator, m->heap, &m->heap_cap,
                                  sizeof *m->heap, 3 * m->cap, err);
        if (!grown)
            return GGUF_E_NOMEM;
        m->heap = grown;
    }
    m->n_heap = 0;
    if (m->n)
        m->sym[m->n - 1].next = GG_NO_SYM;
    for (uint32_t i = 0; i + 1 < m->n; i++)
        try_join(m, i);
    while (m->n_heap) {
        struct gg_vocab_candidate c = gg_heap_pop(m->heap, &m->n_heap);
        join_symbols(m, &c);
    }
    return GGUF_OK;
}
