/* SPDX-License-Identifier: MIT */
/* ctx.c - contexts: an arena of tensors, graphs and work memory */
#include "config.h"
#include "graph/cgraph.h"
#include "base/params.h"

#include <string.h>

/* End the graphs of ctx: who remembers one finds no nodes and generation 0
 * there, until other objects use that memory. */
static void end_graphs(struct gguf_ctx *ctx)
{
    for (struct gguf_graph *g = ctx->graphs; g; g = g->older) {
        g->n_nodes = g->n_leaves = g->n_edges = 0;
        g->generation = 0;
        g->placer = NULL;
    }
    ctx->graphs = NULL;
}

static void empty_ctx(struct gguf_ctx *ctx)
{
    end_graphs(ctx);
    ctx->used = 0;
    ctx->first = ctx->last = NULL;
    gguf_error_clear(&ctx->err);
}

enum gguf_status gguf_ctx_create(struct gguf_ctx **out,
                                 const struct gguf_ctx_params *params,
                                 struct gguf_error *err)
{
    struct gguf_ctx_params own = GGUF_CTX_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, params, "gguf_ctx_params", err));
    params = &own;
    struct gguf_ctx *ctx = gg_mem_alloc(params->allocator, sizeof *ctx);
    if (!ctx)
        return gg_error_set_nomem(err, sizeof *ctx);
    *ctx = (struct gguf_ctx){
        .allocator = params->allocator,
        .mem = params->mem,
        .size = params->mem_size,
        .no_alloc = params->no_alloc,
    };
    if (!ctx->mem && ctx->size) {
        ctx->own =
            gg_mem_alloc_huge(params->allocator, ctx->size, GGUF_TENSOR_ALIGN);
        if (!ctx->own) {
            gg_mem_free(params->allocator, ctx);
            return gg_error_set_nomem(err, params->mem_size);
        }
        ctx->mem = ctx->own;
    }
    if (ctx->mem) { /* adding even 0 to NULL is undefined */
        size_t skip = (size_t)(-(uintptr_t)ctx->mem & (GGUF_TENSOR_ALIGN - 1));
        skip = GG_MIN(skip, ctx->size);
        ctx->mem += skip;
        ctx->size -= skip;
    }
    empty_ctx(ctx);
    *out = ctx;
    return GGUF_OK;
}

void gguf_ctx_destroy(struct gguf_ctx *ctx)
{
    if (!ctx)
        return;
    gg_mem_free_aligned(ctx->allocator, ctx->own);
    gg_mem_free(ctx->allocator, ctx);
}

void gguf_ctx_reset(struct gguf_ctx *ctx)
{
    empty_ctx(ctx);
}

struct gguf_error *gg_ctx_err(struct gguf_ctx *ctx)
{
    return gg_ctx_failed(ctx) ? NULL : &ctx->err;
}

bool gg_ctx_failed(const struct gguf_ctx *ctx)
{
    return !ctx || ctx->err.status != GGUF_OK;
}

enum gguf_status gguf_ctx_status(const struct gguf_ctx *ctx,
                                 struct gguf_error *err)
{
    if (!ctx)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET, "no context");
    if (err && ctx->err.status != GGUF_OK)
        *err = ctx->err;
    return ctx->err.status;
}

size_t gguf_ctx_used(const struct gguf_ctx *ctx)
{
    return ctx->used;
}

size_t gguf_ctx_left(const struct gguf_ctx *ctx)
{
    return ctx->size - ctx->used;
}

bool gguf_ctx_no_alloc(const struct gguf_ctx *ctx)
{
    return ctx->no_alloc;
}

void gguf_ctx_set_no_alloc(struct gguf_ctx *ctx, bool no_alloc)
{
    ctx->no_alloc = no_alloc;
}

static size_t tensor_space(void)
{
    return (sizeof(struct gg_tensor_storage) + GG_OBJECT_ALIGN - 1) &
           ~(size_t)(GG_OBJECT_ALIGN - 1);
}

size_t gguf_tensor_overhead(void)
{
    return GG_OBJECT_HEAD + tensor_space();
}

void *gg_ctx_push(struct gguf_ctx *ctx, enum gguf_object_kind kind,
                  uint64_t size, const char *what)
{
    if (gg_ctx_failed(ctx))
        return NULL;
    uint64_t need;
    size_t left = ctx->size - ctx->used;
    if (gg_ckd_align(&size, size, GG_OBJECT_ALIGN) ||
        gg_ckd_add(&need, size, GG_OBJECT_HEAD) || need > left) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_FULL, GGUF_NO_OFFSET,
                     "the context is full: %s needs %" PRIu64 " bytes, "
                     "%zu of %zu are left",
                     what, size, left, ctx->size);
        return NULL;
    }
    struct gguf_object *o = (struct gguf_object *)(ctx->mem + ctx->used);
    *o = (struct gguf_object){ .off = ctx->used + GG_OBJECT_HEAD,
                               .size = size,
                               .kind = kind };
    if (ctx->last)
        ctx->last->next = o;
    else
        ctx->first = o;
    ctx->last = o;
    ctx->used += (size_t)need;
    return (char *)o + GG_OBJECT_HEAD;
}

void *gguf_ctx_alloc_work(struct gguf_ctx *ctx, size_t size)
{
    if (gg_ctx_failed(ctx))
        return NULL;
    uint64_t need;
    size_t head = ctx->used + GG_OBJECT_HEAD;
    size_t skip = (size_t)(-head & (GGUF_TENSOR_ALIGN - 1));
    if (gg_ckd_add(&need, size, skip))
        need = UINT64_MAX;
    char *p = gg_ctx_push(ctx, GGUF_OBJECT_WORK, need, "work memory");
    return p ? p + skip : NULL;
}

struct gguf_tensor *gg_ctx_add_tensor(struct gguf_ctx *ctx,
                                      const struct gguf_tensor *proto)
{
    if (gg_ctx_failed(ctx))
        return NULL;
    bool data = !ctx->no_alloc && !proto->view_src;
    uint64_t size = tensor_space();
    size_t skip = 0;
    if (data) {
        size_t head = ctx->used + GG_OBJECT_HEAD + tensor_space();
        skip = (size_t)(-head & (GGUF_TENSOR_ALIGN - 1));
        /* tensors' sizes are below 2^63 */
        size += skip + gguf_tensor_size(proto);
    }
    char name[160] = "a tensor";
    if (size > ctx->size - ctx->used) /* it will be needed */
        gguf_tensor_format(proto, name, sizeof name);
    struct gg_tensor_storage *s =
        gg_ctx_push(ctx, GGUF_OBJECT_TENSOR, size, name);
    if (!s)
        return NULL;
    const struct gg_tensor_storage *from = gg_tensor_storage(proto);
    struct gguf_tensor *t = &s->t;
    *s = *from;
    s->pin = 0;
    t->src = s->src;
    t->op_params = s->op_params;
    t->name = s->name;
    if (data) {
        t->data = (char *)t + tensor_space() + skip;
    } else if (proto->view_src) {
        t->buffer = proto->view_src->buffer;
        if (proto->view_src->data)
            t->data = (char *)proto->view_src->data + proto->view_off;
    }
    return t;
}

const struct gguf_object *gguf_ctx_first_object(const struct gguf_ctx *ctx)
{
    return ctx->first;
}

/* The first tensor at or after o. */
static struct gguf_tensor *tensor_from(struct gguf_object *o)
{
    while (o && o->kind != GGUF_OBJECT_TENSOR)
        o = o->next;
    return o ? (struct gguf_tensor *)(void *)((char *)o + GG_OBJECT_HEAD)
             : NULL;
}

struct gguf_tensor *gguf_ctx_first_tensor(const struct gguf_ctx *ctx)
{
    return tensor_from(ctx->first);
}

struct gguf_tensor *gguf_ctx_next_tensor(const struct gguf_ctx *ctx,
                                         const struct gguf_tensor *t)
{
    (void)ctx;
    const char *o = (const char *)t - GG_OBJECT_HEAD;
    return tensor_from(((const struct gguf_object *)(const void *)o)->next);
}

struct gguf_tensor *gguf_ctx_find_tensor(const struct gguf_ctx *ctx,
                                         const char *name)
{
    struct gguf_tensor *t = gguf_ctx_first_tensor(ctx);
    while (t && strcmp(t->name, name) != 0)
        t = gguf_ctx_next_tensor(ctx, t);
    return t;
}
