/* SPDX-License-Identifier: MIT */
/* adapter_place.c - move low-rank pairs into the memory of their weights */
#include "config.h"
#include "model/adapter/adapter_int.h"

#include "backend/backend_int.h"
#include "base/mem.h"

struct place {
    struct gguf_adapter *a;
    struct gguf_tensor *was;   /* two for each pair: as they lay */
    struct gguf_buffer **home; /* n_homes */
    size_t n_homes;
};

/* Memory of the host is all one. */
static const struct gguf_buft *type_of(const struct gguf_buffer *b)
{
    const struct gguf_buft *t = b ? gguf_buffer_buft(b) : gguf_host_buft();
    return gguf_buft_is_host(t) ? gguf_host_buft() : t;
}

static struct gguf_tensor *pair_half(const struct gguf_adapter *a, size_t i)
{
    return i % 2 ? a->pair[i / 2].b : a->pair[i / 2].a;
}

static const struct gguf_buft *find_home(const struct gguf_adapter *a,
                                         size_t i)
{
    return type_of(a->pair[i / 2].weight->buffer);
}

static bool is_placed(const struct gguf_adapter *a)
{
    bool well = true;
    for (size_t i = 0; i < 2 * a->n_pairs; i++)
        well = well && type_of(pair_half(a, i)->buffer) == find_home(a, i);
    return well;
}

/* Allocate memory for all tensors that belong where i does, which is the first
 * of them. */
static enum gguf_status get_home(struct place *p, size_t i,
                                 struct gguf_error *err)
{
    struct gguf_adapter *a = p->a;
    const struct gguf_buft *to = find_home(a, i);
    struct gguf_buffer **b = &p->home[p->n_homes];
    for (size_t k = i; k < 2 * a->n_pairs; k++)
        if (find_home(a, k) == to) {
            pair_half(a, k)->data = NULL;
            pair_half(a, k)->buffer = NULL;
        }
    GG_TRY(gguf_ctx_alloc_tensors(a->ctx, to, a->allocator, b, err));
    gguf_buffer_set_usage(*b, GGUF_USAGE_WEIGHTS);
    p->n_homes++;
    return GGUF_OK;
}

static enum gguf_status get_homes(struct place *p, struct gguf_error *err)
{
    for (size_t i = 0; i < 2 * p->a->n_pairs; i++) {
        size_t first = 0;
        while (find_home(p->a, first) != find_home(p->a, i))
            first++;
        if (first == i)
            GG_TRY(get_home(p, i, err));
    }
    return GGUF_OK;
}

static enum gguf_status copy_pairs(const struct place *p,
                                   struct gguf_error *err)
{
    const struct gguf_adapter *a = p->a;
    uint64_t most = 1;
    for (size_t i = 0; i < 2 * a->n_pairs; i++)
        most = GG_MAX(most, gguf_tensor_size(pair_half(a, i)));
    void *data =
        most <= SIZE_MAX ? gg_mem_alloc(a->allocator, (size_t)most) : NULL;
    if (!data)
        return gg_error_set_nomem(err, (size_t)most);
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < 2 * a->n_pairs; i++) {
        const uint64_t size = gguf_tensor_size(pair_half(a, i));
        st = gguf_tensor_get(&p->was[i], data, 0, size, err);
        if (st == GGUF_OK)
            st = gguf_tensor_set(pair_half(a, i), data, 0, size, err);
    }
    gg_mem_free(a->allocator, data);
    return st;
}

static void put_back(const struct place *p)
{
    for (size_t i = 0; i < 2 * p->a->n_pairs; i++) {
        pair_half(p->a, i)->data = p->was[i].data;
        pair_half(p->a, i)->buffer = p->was[i].buffer;
    }
}

static enum gguf_status move_pairs(struct place *p, struct gguf_error *err)
{
    for (size_t i = 0; i < 2 * p->a->n_pairs; i++)
        p->was[i] = *pair_half(p->a, i);
    enum gguf_status st = get_homes(p, err);
    if (st == GGUF_OK)
        st = copy_pairs(p, err);
    if (st != GGUF_OK)
        put_back(p);
    return st;
}

void gg_adapter_free_memory(struct gguf_adapter *a)
{
    for (size_t i = 0; i < a->n_homes; i++)
        gguf_buffer_destroy(a->home[i]);
    gg_mem_free(a->allocator, a->home);
    gguf_buffer_destroy(a->buffer);
    a->buffer = NULL;
    a->home = NULL;
    a->n_homes = 0;
}

enum gguf_status gguf_adapter_place_weights(struct gguf_adapter *a,
                                            struct gguf_error *err)
{
    const struct gguf_allocator *from = a->allocator;
    struct place p = { .a = a };
    if (is_placed(a))
        return GGUF_OK;
    p.was = gg_mem_alloc_zero(from, 2 * a->n_pairs, sizeof *p.was);
    p.home =
        gg_mem_alloc_zero(from, 2 * a->n_pairs, sizeof(struct gguf_buffer *));
    enum gguf_status st =
        p.was && p.home
            ? move_pairs(&p, err)
            : gg_error_set_nomem(err, 2 * a->n_pairs * sizeof *p.was);
    gg_mem_free(from, p.was);
    if (st == GGUF_OK) {
        gg_adapter_free_memory(a);
        a->home = p.home;
        a->n_homes = p.n_homes;
        return GGUF_OK;
    }
    for (size_t i = 0; i < p.n_homes; i++)
        gguf_buffer_destroy(p.home[i]);
    gg_mem_free(from, p.home);
    return st;
}
