/* SPDX-License-Identifier: MIT */
/* weight_cache.c - packed weights that are kept */
#include "config.h"
#include "cpu/weight_cache.h"

#include "backend/buffer_version.h"
#include "base/ckd.h"
#include "base/mem.h"
#include "cpu/compute_table.h"

#include <string.h>

enum { ALIGN = 64 };

struct gg_cpu_panels_entry {
    struct gg_cpu_panels panels;
    struct gg_buffer_version *age; /* held */
    uint64_t changes;              /* that it had */
    const void *data;
    uint32_t dtype;
    int64_t ne[GGUF_TENSOR_DIMS], nb[GGUF_TENSOR_DIMS];
    size_t n_panels, n_ready; /* bytes of both */
    uint64_t bytes; /* bytes of the allocator, with the entry itself */
};

void gg_cpu_weight_cache_init(struct gg_cpu_weight_cache *s,
                              const struct gguf_allocator *a, uint64_t limit)
{
    *s = (struct gg_cpu_weight_cache){ .allocator = a, .limit = limit };
}

static void drop_entry(struct gg_cpu_weight_cache *s,
                       struct gg_cpu_panels_entry *e)
{
    s->used -= e->bytes;
    gg_buffer_version_unref(e->age);
    gg_mem_free_aligned(s->allocator, e->panels.first.at);
    gg_mem_free(s->allocator, e->panels.first.ready);
    gg_mem_free(s->allocator, e);
}

void gg_cpu_weight_cache_fini(struct gg_cpu_weight_cache *s)
{
    for (size_t i = 0; i < s->n; i++)
        drop_entry(s, s->entries[i]);
    gg_mem_free(s->allocator, s->entries);
    gg_cpu_weight_cache_init(s, s->allocator, s->limit);
}

void gg_cpu_weight_cache_sweep(struct gg_cpu_weight_cache *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct gg_cpu_panels_entry *e = s->entries[i];
        if (gg_buffer_version_n_changes(e->age) == e->changes)
            s->entries[n++] = e;
        else
            drop_entry(s, e);
    }
    s->n = n;
    s->last = 0;
}

/* Weight that t multiplies, and the sizes of its panels. NULL: not a weight. */
static const struct gguf_tensor *find_weight(const struct gguf_tensor *t,
                                             const struct gg_kern *kern,
                                             struct gg_cpu_panels *p)
{
    const struct gg_cpu_op *op = gg_cpu_op_row(t->op);
    struct gg_cpu_gemm_args a;
    if (!op->product || gguf_tensor_is_empty(t))
        return NULL;
    const struct gguf_tensor *w = t->src[0];
    const struct gguf_tensor *root = w->view_src ? w->view_src : w;
    if (root->op || !root->buffer ||
        gguf_buffer_usage(root->buffer) != GGUF_USAGE_WEIGHTS ||
        !op->product(t, kern, &a))
        return NULL;
    *p = (struct gg_cpu_panels){ .n = 0 };
    p->n = gg_cpu_gemm_count_panels(&a, &p->size);
    return p->n ? w : NULL;
}

/* Bytes of panels, and of the marks which are there; false: too many. */
static bool sizes_of(const struct gguf_tensor *w,
                     const struct gg_cpu_panels *p, size_t *panels,
                     size_t *ready)
{
    const uint64_t n_matrices = (uint64_t)(w->ne[2] * w->ne[3]);
    uint64_t n, size;
    if (gg_ckd_mul(&n, p->n, n_matrices) || gg_ckd_mul(&size, n, p->size) ||
        size > SIZE_MAX / 2)
        return false;
    *panels = (size_t)size;
    *ready = (size_t)n;
    return true;
}

static bool matches_weight(const struct gg_cpu_panels_entry *e,
                           const struct gguf_tensor *w)
{
    return e->data == w->data && gg_buffer_version_is_of(e->age, w->buffer) &&
           e->dtype == w->dtype && !memcmp(e->ne, w->ne, sizeof e->ne) &&
           !memcmp(e->nb, w->nb, sizeof e->nb);
}

/* An entry that has room under the limit, and no memory yet; or NULL. */
static struct gg_cpu_panels_entry *add_entry(struct gg_cpu_weight_cache *s,
                                             const struct gguf_tensor *w,
                                             const struct gg_cpu_panels *p)
{
    size_t panels, ready;
    if (!sizes_of(w, p, &panels, &ready))
        return NULL;
    const uint64_t bytes = gg_mem_aligned_size(panels, ALIGN) + ready +
                           sizeof(struct gg_cpu_panels_entry);
    if (bytes > s->limit - s->used)
        return NULL;
    if (s->n == s->room) {
        void *list = gg_mem_grow(s->allocator, s->entries, &s->room,
                                 sizeof *s->entries, 64, NULL);
        if (!list)
            return NULL;
        s->entries = list;
    }
    struct gg_cpu_panels_entry *e = gg_mem_alloc(s->allocator, sizeof *e);
    if (!e)
        return NULL;
    struct gg_buffer_version *age = gg_buffer_version_ref(w->buffer);
    if (!age) {
        gg_mem_free(s->allocator, e);
        return NULL;
    }
    *e = (struct gg_cpu_panels_entry){ .panels = *p,
                                       .age = age,
                                       .data = w->data,
                                       .dtype = w->dtype,
                                       .n_panels = panels,
                                       .n_ready = ready,
                                       .bytes = bytes };
    e->changes = gg_buffer_version_n_changes(age);
    memcpy(e->ne, w->ne, sizeof e->ne);
    memcpy(e->nb, w->nb, sizeof e->nb);
    s->used += e->bytes;
    s->entries[s->n++] = e;
    return e;
}

/* Entry of the weight that t multiplies, new if there is room. NULL: none. */
static struct gg_cpu_panels_entry *find_entry(struct gg_cpu_weight_cache *s,
                                              const struct gguf_tensor *t,
                                              const struct gg_kern *kern)
{
    struct gg_cpu_panels p;
    const struct gguf_tensor *w = s->limit ? find_weight(t, kern, &p) : NULL;
    if (!w)
        return NULL;
    for (size_t i = 0; i < s->n; i++) {
        const size_t k = (s->last + 1 + i) % s->n;
        if (matches_weight(s->entries[k], w)) {
            s->last = k;
            return s->entries[k];
        }
    }
    return add_entry(s, w, &p);
}

const struct gg_cpu_panels *
gg_cpu_weight_cache_find(struct gg_cpu_weight_cache *s,
                         const struct gguf_tensor *t,
                         const struct gg_kern *kern)
{
    struct gg_cpu_panels_entry *e = find_entry(s, t, kern);
    if (!e)
        return NULL;
    struct gg_cpu_gemm_packed *p = &e->panels.first;
    if (!p->at)
        p->at = gg_mem_alloc_huge(s->allocator, e->n_panels, ALIGN);
    if (!p->ready)
        p->ready = gg_mem_alloc_zero(s->allocator, e->n_ready, 1);
    return p->at && p->ready ? &e->panels : NULL;
}

uint64_t gg_cpu_weight_cache_estimate(struct gg_cpu_weight_cache *s,
                                      const struct gguf_graph *graph,
                                      const struct gg_kern *kern)
{
    gg_cpu_weight_cache_sweep(s);
    for (size_t i = 0; i < gguf_graph_n_nodes(graph); i++)
        (void)find_entry(s, gguf_graph_node(graph, i), kern);
    return s->used + s->room * sizeof *s->entries;
}
