/* SPDX-License-Identifier: MIT */
/* ctx_alloc.c - memory for all tensors of a context */
#include "config.h"
#include "alloc/linear.h"
#include "backend/backend_int.h"

/* Tensors from *t on that fit into one buffer of buft; *t becomes the first
 * that does not, or NULL. Places them if b is not NULL. *used: the bytes, not 0
 * if there is one, since a tensor without elements has an address, too. */
static enum gguf_status pack_tensors(struct gguf_ctx *ctx,
                                     const struct gg_ctx_alloc_params *how,
                                     struct gguf_buffer *b,
                                     struct gguf_tensor **t, uint64_t *used,
                                     struct gguf_error *err)
{
    const struct gguf_buft *buft = how->buft;
    struct gg_linear l = { buft->alignment, 0 };
    bool some = false;
    for (; *t; *t = gguf_ctx_next_tensor(ctx, *t)) {
        struct gguf_tensor *x = *t;
        uint64_t size = gguf_buft_tensor_size(buft, x), off;
        char name[160];
        if (x->data || x->buffer || x->view_src ||
            (how->takes && !how->takes(how->user, x)))
            continue;
        if (size > buft->max_size)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "%s needs %" PRIu64
                                " bytes: the limit of a '%s' "
                                "buffer is %zu",
                                gguf_tensor_format(x, name, sizeof name), size,
                                buft->name, buft->max_size);
        struct gg_linear before = l;
        if (!gg_linear_alloc(&l, size, &off))
            return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                                "the tensors of a context overflow");
        if (l.used > buft->max_size) {
            l = before;
            break;
        }
        if (b)
            GG_TRY(gguf_buffer_place_tensor(b, x, off, err));
        some = true;
    }
    *used = some ? GG_MAX(l.used, (uint64_t)buft->alignment) : 0;
    return GGUF_OK;
}

static void unplace_tensors(struct gguf_ctx *ctx, const struct gguf_buffer *b)
{
    for (struct gguf_tensor *t = gguf_ctx_first_tensor(ctx); t;
         t = gguf_ctx_next_tensor(ctx, t))
        if (b && t->buffer == b) {
            t->buffer = NULL;
            t->data = NULL;
        }
}

static enum gguf_status bind_views(struct gguf_ctx *ctx,
                                   struct gguf_error *err)
{
    for (struct gguf_tensor *t = gguf_ctx_first_tensor(ctx); t;
         t = gguf_ctx_next_tensor(ctx, t))
        if (t->view_src && !t->data &&
            (t->view_src->data || t->view_src->buffer))
            GG_TRY(gguf_tensor_bind_view(t, err));
    return GGUF_OK;
}

enum gguf_status gg_ctx_alloc_some(struct gguf_ctx *ctx,
                                   const struct gg_ctx_alloc_params *how,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_buffer **out,
                                   struct gguf_error *err)
{
    struct gguf_buffer **parts = NULL;
    size_t n = 0, cap = 0;
    *out = NULL;
    enum gguf_status st = gguf_ctx_status(ctx, err);
    struct gguf_tensor *at = st == GGUF_OK ? gguf_ctx_first_tensor(ctx) : NULL;
    do {
        struct gguf_tensor *end = at, *begin = at;
        uint64_t size = 0;
        if (st == GGUF_OK)
            st = pack_tensors(ctx, how, NULL, &end, &size, err);
        if (st == GGUF_OK && n == cap) {
            struct gguf_buffer **p =
                gg_mem_grow(allocator, parts, &cap, sizeof *p, 4, err);
            if (p)
                parts = p;
            else
                st = GGUF_E_NOMEM;
        }
        if (st == GGUF_OK)
            st = (how->measure ? gg_measure_buffer : gguf_buffer_create)(
                &parts[n], how->buft, (size_t)size, allocator, err);
        if (st == GGUF_OK)
            st = pack_tensors(ctx, how, parts[n++], &begin, &size, err);
        at = end;
    } while (st == GGUF_OK && at);

    if (st == GGUF_OK)
        st = bind_views(ctx, err);
    if (st == GGUF_OK && n > 1)
        st = gg_buffer_join(out, parts, n, allocator, err);
    else if (st == GGUF_OK)
        *out = parts[0];
    for (size_t i = 0; st != GGUF_OK && i < n; i++) {
        unplace_tensors(ctx, parts[i]);
        gguf_buffer_destroy(parts[i]);
    }
    gg_mem_free(allocator, parts);
    return st;
}

enum gguf_status gguf_ctx_alloc_tensors(struct gguf_ctx *ctx,
                                        const struct gguf_buft *buft,
                                        const struct gguf_allocator *allocator,
                                        struct gguf_buffer **out,
                                        struct gguf_error *err)
{
    return gg_ctx_alloc_some(ctx,
                             &(struct gg_ctx_alloc_params){ .buft = buft },
                             allocator, out, err);
}
