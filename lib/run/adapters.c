/* SPDX-License-Identifier: MIT */
/* adapters.c - adapters of a session, and contexts for the larger graphs */
#include "config.h"
#include "run/session_int.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define MOST_SCALE 1e9f

/* Parts of a session that depend on its adapters. */
struct set {
    struct gguf_adapter_use *use;
    struct gg_model_adapters added;
    struct gguf_ctx *ctx, *head_ctx, *embed_ctx;
};

static enum gguf_status check_adapters(const struct gguf_session *s,
                                       const struct gguf_adapter_use *use,
                                       size_t n, struct gguf_error *err)
{
    if (n && !use)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "adapters: %zu in a list that is NULL", n);
    for (size_t i = 0; i < n; i++) {
        if (!use[i].adapter || use[i].adapter->model != s->given)
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "adapter %zu: created for another model than the session's",
                i);
        if (!(fabsf(use[i].scale) <= MOST_SCALE))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "adapter %zu has scale %g, must be from -1e9 "
                                "to 1e9",
                                i, (double)use[i].scale);
    }
    return GGUF_OK;
}

static size_t n_parts(const struct gg_model_adapters *added)
{
    size_t n = 0;
    for (size_t i = 0; i < added->n; i++)
        n += gg_adapter_n_parts(added->use[i].adapter);
    return n;
}

static enum gguf_status make_ctx(const struct gguf_session *s, size_t n,
                                 struct gguf_ctx **out, struct gguf_error *err)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = s->allocator;
    p.mem_size = n * gguf_tensor_overhead() + gguf_graph_overhead(n);
    p.no_alloc = true;
    return gguf_ctx_create(out, &p, err);
}

static enum gguf_status make_set(const struct gguf_session *s, struct set *x,
                                 const struct gguf_adapter_use *use, size_t n,
                                 struct gguf_error *err)
{
    const struct gguf_allocator *a = s->allocator;
    x->use = gg_mem_alloc_zero(a, n ? n : 1, sizeof *x->use);
    if (!x->use)
        return gg_error_set_nomem(err, n * sizeof *x->use);
    if (n)
        memcpy(x->use, use, n * sizeof *use);
    x->added = (struct gg_model_adapters){ .use = x->use, .n = n };
    const size_t parts = n_parts(&x->added);
    x->added.seen = gg_mem_alloc_zero(a, parts ? parts : 1, 1);
    if (!x->added.seen)
        return gg_error_set_nomem(err, parts);
    const size_t more = gg_model_n_adapter_nodes(s->model, &x->added);
    GG_TRY(make_ctx(s, gg_build_n_nodes(s->model) + more, &x->ctx, err));
    GG_TRY(make_ctx(s, GG_BUILD_HEAD_NODES + more, &x->head_ctx, err));
    return s->embed.has_head
               ? make_ctx(s, GG_BUILD_HEAD_NODES + more, &x->embed_ctx, err)
               : GGUF_OK;
}

static void fini_set(const struct gguf_session *s, struct set *x)
{
    gguf_ctx_destroy(x->embed_ctx);
    gguf_ctx_destroy(x->head_ctx);
    gguf_ctx_destroy(x->ctx);
    gg_mem_free(s->allocator, x->added.seen);
    gg_mem_free(s->allocator, x->use);
}

static void swap_set(struct gguf_session *s, struct set *x)
{
    const struct set old = { s->use, s->added, s->ctx, s->head_ctx,
                             s->embed.ctx };
    s->use = x->use;
    s->added = x->added;
    s->ctx = x->ctx;
    s->head_ctx = x->head_ctx;
    s->embed.ctx = x->embed_ctx;
    *x = old;
}

/* Drop all graphs. */
static enum gguf_status forget_graphs(struct gguf_session *s,
                                      struct gguf_error *err)
{
    s->has_graph = false;
    s->head_n = 0;
    GG_TRY(gg_embed_drop_graph(&s->embed, err));
    GG_TRY(gguf_sched_reset(s->head_sched, err));
    return gguf_sched_reset(s->sched, err);
}

/* A pair has no effect if no graph has its weight. It is refused if the weight
 * is one that the model computes with. */
enum gguf_status gg_session_check_adapters(const struct gguf_session *s,
                                           struct gguf_error *err)
{
    const struct gg_model_adapters *added = &s->added;
    size_t at = 0;
    for (size_t i = 0; i < added->n; i++) {
        const struct gguf_adapter *a = added->use[i].adapter;
        for (size_t k = 0; k < a->n_pairs; k++)
            if (added->seen[at++] == GG_ADAPTER_WEIGHT_USED)
                return gg_error_set(
                    err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                    "adapter %zu changes '%s': not supported for this weight",
                    i, a->pair[k].weight->name);
        for (size_t il = 0; il < a->n_directions; il++, at++)
            if (a->direction[il] && !added->seen[at])
                return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                    "adapter %zu has a direction after layer "
                                    "%zu: not supported for this model",
                                    i, il);
    }
    return GGUF_OK;
}

enum gguf_status gg_session_apply_adapters(struct gguf_session *s,
                                           const struct gguf_adapter_use *use,
                                           size_t n, struct gguf_error *err)
{
    struct set x = { 0 };
    enum gguf_status st = check_adapters(s, use, n, err);
    if (st == GGUF_OK)
        st = make_set(s, &x, use, n, err);
    if (st == GGUF_OK)
        st = forget_graphs(s, err);
    if (st == GGUF_OK) {
        swap_set(s, &x);
        st = gg_session_reserve(s, err);
        if (st == GGUF_OK)
            st = gg_embed_plan(&s->embed, err);
        if (st == GGUF_OK)
            st = gg_session_check_adapters(s, err);
        if (st != GGUF_OK) {
            (void)forget_graphs(s, NULL);
            swap_set(s, &x);
        }
    }
    fini_set(s, &x);
    return st;
}

void gg_session_free_adapters(struct gguf_session *s)
{
    struct set x = { s->use, s->added, s->ctx, s->head_ctx, s->embed.ctx };
    fini_set(s, &x);
}

/* Do graphs with these adapters have the same structure, and differ in factors
 * only? */
static bool same_graphs(const struct gg_model_adapters *old,
                        const struct gguf_adapter_use *use, size_t n)
{
    bool same = n == old->n;
    for (size_t i = 0; same && i < n; i++)
        same = use[i].adapter == old->use[i].adapter &&
               (use[i].scale == 0) == (old->use[i].scale == 0);
    return same;
}

enum gguf_status gguf_session_set_adapters(struct gguf_session *s,
                                           const struct gguf_adapter_use *use,
                                           size_t n, struct gguf_error *err)
{
    GG_TRY(check_adapters(s, use, n, err));
    if (!same_graphs(&s->added, use, n))
        return gg_session_apply_adapters(s, use, n, err);
    for (size_t i = 0; i < n; i++) {
        if (use[i].scale != s->use[i].scale)
            s->has_graph = false;
        s->use[i].scale = use[i].scale;
    }
    if (!s->has_graph) {
        s->head_n = 0;
        s->embed.graph = NULL;
    }
    return GGUF_OK;
}

size_t gguf_session_n_adapters(const struct gguf_session *s)
{
    return s->added.n;
}

const struct gguf_adapter_use *
gguf_session_adapter(const struct gguf_session *s, size_t i)
{
    return i < s->added.n ? &s->use[i] : NULL;
}
