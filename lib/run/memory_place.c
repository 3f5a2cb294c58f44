/* SPDX-License-Identifier: MIT */
/* memory_place.c - place the memory for keys, values and states
 *
 * The scheduler is asked where it would compute the session's graphs if their
 * memory lay nowhere yet. Each tensor then lies with the backend that reads
 * it, if that backend can also run every operation that writes it; else in
 * host memory, with the last backend. With no_offload_memory all tensors lie
 * there. So a layer's keys and values are not copied between backends. */
#include "config.h"
#include "run/session_int.h"

#include "base/mem.h"
#include "graph/op_table.h"

#include <stdlib.h>

/* A tensor of the session's memory, and where it is computed. */
struct home {
    const struct gguf_tensor *t;
    /* a bit for each backend that can run all nodes that write it */
    uint32_t can;
    int backend; /* index of its reader's backend, or GG_SCHED_NONE */
};

struct placer {
    struct gguf_session *s;
    struct home *home; /* sorted by address */
    size_t n;
    const struct gguf_buft *buft; /* type of the memory given now */
    struct gguf_error *err;
    enum gguf_status status;
};

static int compare_homes(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct home *)a)->t;
    const uintptr_t y = (uintptr_t)((const struct home *)b)->t;
    return x < y ? -1 : x > y;
}

/* Home of t, or of the tensor that t views; NULL: none. */
static struct home *find_home(const struct placer *v,
                              const struct gguf_tensor *t)
{
    const struct home key = { .t = t->view_src ? t->view_src : t };
    return bsearch(&key, v->home, v->n, sizeof key, compare_homes);
}

static bool writes_tensor(const struct gguf_tensor *t)
{
    return t->view_src && !gguf_op_is_view(t->op);
}

/* Note which backends can run the nodes that write into the memory. */
static void note_writers(void *user, const struct gguf_graph *g)
{
    const struct placer *v = user;
    const struct gguf_sched *s = v->s->sched;
    for (size_t i = 0; i < g->n_nodes; i++) {
        struct home *h =
            writes_tensor(g->nodes[i]) ? find_home(v, g->nodes[i]) : NULL;
        for (int b = 0; h && b < s->n_backends; b++)
            if (!gguf_backend_supports_op(s->backends[b], g->nodes[i]))
                h->can &= ~(UINT32_C(1) << b);
    }
}

/* Note which backend reads the memory, of node i. */
static void note_reader(struct placer *v, const struct gguf_graph *g, size_t i)
{
    const struct gguf_tensor *t = g->nodes[i];
    for (int k = 0; k < GGUF_TENSOR_SRC && !gguf_op_is_view(t->op); k++) {
        struct home *h = t->src[k] ? find_home(v, t->src[k]) : NULL;
        if (h && h->backend == GG_SCHED_NONE && t->view_src != h->t)
            h->backend = v->s->sched->backend_of[i];
    }
}

/* Note where a pass would be computed. */
static void note_pass(void *user, const struct gguf_graph *g)
{
    struct placer *v = user;
    if (v->status == GGUF_OK)
        v->status = gg_sched_plan(v->s->sched, g, v->err);
    if (v->status != GGUF_OK)
        return;
    note_writers(v, g);
    for (size_t i = 0; i < g->n_nodes; i++)
        note_reader(v, g, i);
}

static enum gguf_status find_homes(struct placer *v, struct gguf_error *err)
{
    struct gguf_session *s = v->s;
    const int last = s->sched->n_backends - 1;
    v->err = err;
    if (last > 0 && !s->memory_on_host) {
        GG_TRY(gg_session_visit_passes(s, note_pass, v, err));
        GG_TRY(v->status);
        GG_TRY(gg_key_rotation_visit_graphs(s, note_writers, v, err));
        GG_TRY(gguf_sched_reset(s->sched, err));
    }
    for (size_t i = 0; i < v->n; i++) {
        struct home *h = &v->home[i];
        if (h->backend == GG_SCHED_NONE || !(h->can >> h->backend & 1))
            h->backend = last;
    }
    return GGUF_OK;
}

static const struct gguf_buft *buft_of(const struct placer *v,
                                       const struct home *h)
{
    return gguf_backend_buft(v->s->sched->backends[h->backend]);
}

static bool is_taken(void *user, const struct gguf_tensor *t)
{
    const struct placer *v = user;
    const struct home *h = find_home(v, t);
    return h && buft_of(v, h) == v->buft;
}

/* One buffer for all tensors of the type of v->buft. */
static enum gguf_status make_buffer(struct placer *v, struct gguf_error *err)
{
    struct gguf_session *s = v->s;
    struct gguf_buffer **b = &s->cache_buffer[s->n_cache_buffers];
    const struct gg_ctx_alloc_params how = {
        .buft = v->buft,
        .measure = gg_measure_find(s->allocator) != NULL,
        .takes = is_taken,
        .user = v
    };
    GG_TRY(gg_ctx_alloc_some(s->cache_ctx, &how, s->allocator, b, err));
    s->n_cache_buffers++;
    /* rows that were never written are masked, but 0 times NaN is NaN */
    return gguf_buffer_clear(*b, 0, err);
}

/* Tensors of a device that has too little memory go to the last backend. */
static enum gguf_status make_buffers(struct placer *v, struct gguf_error *err)
{
    const int last = v->s->sched->n_backends - 1;
    for (int b = 0; b <= last; b++) {
        struct gguf_error why;
        size_t n = 0;
        v->buft = gguf_backend_buft(v->s->sched->backends[b]);
        for (size_t i = 0; i < v->n; i++)
            n += !v->home[i].t->buffer && is_taken(v, v->home[i].t);
        if (!n)
            continue;
        const enum gguf_status st = make_buffer(v, b < last ? &why : err);
        if (st == GGUF_OK)
            continue;
        if (b == last || (st != GGUF_E_NOMEM && st != GGUF_E_LIMIT)) {
            if (b < last && err)
                *err = why;
            return st;
        }
        for (size_t i = 0; i < v->n; i++)
            if (is_taken(v, v->home[i].t))
                v->home[i].backend = last;
    }
    return GGUF_OK;
}

enum gguf_status gg_session_place_memory(struct gguf_session *s,
                                         struct gguf_error *err)
{
    struct placer v = { .s = s };
    const struct gguf_tensor *t = gguf_ctx_first_tensor(s->cache_ctx);
    if (!t || s->n_cache_buffers)
        return GGUF_OK;
    for (; t; t = gguf_ctx_next_tensor(s->cache_ctx, t))
        v.n++;
    v.home = gg_mem_alloc_zero(s->allocator, v.n, sizeof *v.home);
    if (!v.home)
        return gg_error_set_nomem(err, v.n * sizeof *v.home);
    v.n = 0;
    for (t = gguf_ctx_first_tensor(s->cache_ctx); t;
         t = gguf_ctx_next_tensor(s->cache_ctx, t))
        v.home[v.n++] = (struct home){ t, UINT32_MAX, GG_SCHED_NONE };
    qsort(v.home, v.n, sizeof *v.home, compare_homes);
    enum gguf_status st = find_homes(&v, err);
    if (st == GGUF_OK)
        st = make_buffers(&v, err);
    gg_mem_free(s->allocator, v.home);
    return st;
}
