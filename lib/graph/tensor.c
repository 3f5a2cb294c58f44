/* SPDX-License-Identifier: MIT */
/* tensor.c - making tensors, their sizes and predicates */
#include "config.h"
#include "base/str.h"
#include "graph/ctx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum gguf_status gg_tensor_set_shape(struct gguf_tensor *t, uint32_t dtype,
                                     const int64_t ne[GGUF_TENSOR_DIMS],
                                     struct gguf_error *err)
{
    uint64_t nb = 0, n = 1;
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++) {
        if (ne[d] < 0)
            return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                                "dimension %d of a tensor is %" PRId64, d,
                                ne[d]);
        if (ne[d] && gg_ckd_mul(&n, n, (uint64_t)ne[d]))
            n = UINT64_MAX;
    }
    GG_TRY(gguf_dtype_row_size(dtype, (uint64_t)ne[0], &nb, err));
    const struct gguf_dtype_info *info = gguf_dtype_find(dtype);
    t->dtype = dtype;
    t->ne[0] = ne[0];
    t->nb[0] = info->block_size;
    bool over = gg_ckd_exceeds_cap(n);
    for (int d = 1; d < GGUF_TENSOR_DIMS; d++) {
        t->ne[d] = ne[d];
        t->nb[d] = (int64_t)nb;
        over = over || gg_ckd_mul(&nb, nb, (uint64_t)ne[d]) ||
               gg_ckd_exceeds_cap(nb);
    }
    if (over)
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "the size of a tensor %s [%" PRId64 ", %" PRId64
                            ", %" PRId64 ", %" PRId64 "] overflows",
                            info->name, ne[0], ne[1], ne[2], ne[3]);
    return GGUF_OK;
}

struct gguf_tensor *gguf_tensor_create(struct gguf_ctx *ctx, uint32_t dtype,
                                       unsigned n_dims, const int64_t *ne)
{
    if (gg_ctx_failed(ctx))
        return NULL;
    if (n_dims < 1 || n_dims > GGUF_TENSOR_DIMS) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_SHAPE, GGUF_NO_OFFSET,
                     "a tensor of %u dimensions: 1 to 4 are possible", n_dims);
        return NULL;
    }
    int64_t all[GGUF_TENSOR_DIMS] = { 1, 1, 1, 1 };
    memcpy(all, ne, n_dims * sizeof *ne);
    struct gg_tensor_storage proto =
        GG_TENSOR_STORAGE_INIT(proto, .dtype = dtype);
    if (gg_tensor_set_shape(&proto.t, dtype, all, gg_ctx_err(ctx)) != GGUF_OK)
        return NULL;
    return gg_ctx_add_tensor(ctx, &proto.t);
}

struct gguf_tensor *gguf_tensor_create_1d(struct gguf_ctx *ctx, uint32_t dtype,
                                          int64_t ne0)
{
    return gguf_tensor_create(ctx, dtype, 1, &ne0);
}

struct gguf_tensor *gguf_tensor_create_2d(struct gguf_ctx *ctx, uint32_t dtype,
                                          int64_t ne0, int64_t ne1)
{
    return gguf_tensor_create(ctx, dtype, 2, (int64_t[]){ ne0, ne1 });
}

struct gguf_tensor *gguf_tensor_create_3d(struct gguf_ctx *ctx, uint32_t dtype,
                                          int64_t ne0, int64_t ne1,
                                          int64_t ne2)
{
    return gguf_tensor_create(ctx, dtype, 3, (int64_t[]){ ne0, ne1, ne2 });
}

struct gguf_tensor *gguf_tensor_create_4d(struct gguf_ctx *ctx, uint32_t dtype,
                                          int64_t ne0, int64_t ne1,
                                          int64_t ne2, int64_t ne3)
{
    return gguf_tensor_create(ctx, dtype, 4,
                              (int64_t[]){ ne0, ne1, ne2, ne3 });
}

struct gguf_tensor *gguf_tensor_create_like(struct gguf_ctx *ctx,
                                            const struct gguf_tensor *t)
{
    return t ? gguf_tensor_create(ctx, t->dtype, GGUF_TENSOR_DIMS, t->ne)
             : NULL;
}

/* Cut at the last whole code point that fits. */
struct gguf_tensor *gguf_tensor_set_name(struct gguf_tensor *t,
                                         const char *name)
{
    if (!t)
        return NULL;
    struct gg_tensor_storage *s = gg_tensor_storage(t);
    const size_t n = gg_str_utf8_fit(name, strlen(name), sizeof s->name - 1);
    memmove(s->name, name, n);
    memset(s->name + n, 0, sizeof s->name - n);
    return t;
}

struct gguf_tensor *gguf_tensor_set_namef(struct gguf_tensor *t,
                                          const char *fmt, ...)
{
    if (!t)
        return NULL;
    char name[4 * GGUF_TENSOR_NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return gguf_tensor_set_name(t, name);
}

struct gguf_tensor *gguf_tensor_add_flags(struct gguf_tensor *t,
                                          uint32_t flags)
{
    if (t)
        t->flags |= flags;
    return t;
}

int64_t gguf_tensor_n_elements(const struct gguf_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

int64_t gguf_tensor_n_rows(const struct gguf_tensor *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3];
}

bool gguf_tensor_is_empty(const struct gguf_tensor *t)
{
    return !t->ne[0] || !t->ne[1] || !t->ne[2] || !t->ne[3];
}

uint64_t gguf_tensor_size(const struct gguf_tensor *t)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    if (!info || gguf_tensor_is_empty(t))
        return 0;
    /* the last block of the row begins (n - 1) strides after the first */
    uint64_t size =
        info->row_header + info->block_size +
        (uint64_t)(t->ne[0] / info->block_len - 1) * (uint64_t)t->nb[0];
    for (int d = 1; d < GGUF_TENSOR_DIMS; d++)
        size += (uint64_t)(t->ne[d] - 1) * (uint64_t)t->nb[d];
    return size;
}

unsigned gguf_tensor_n_dims(const struct gguf_tensor *t)
{
    unsigned n = GGUF_TENSOR_DIMS;
    while (n > 1 && t->ne[n - 1] == 1)
        n--;
    return n;
}

bool gguf_tensor_has_contiguous_rows(const struct gguf_tensor *t)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    return info && (t->nb[0] == (int64_t)info->block_size ||
                    t->ne[0] <= (int64_t)info->block_len);
}

bool gguf_tensor_is_contiguous_from(const struct gguf_tensor *t, unsigned dim)
{
    uint64_t nb = 0;
    if (!dim && !gguf_tensor_has_contiguous_rows(t))
        return false;
    if (gguf_dtype_row_size(t->dtype, (uint64_t)t->ne[0], &nb, NULL) !=
        GGUF_OK)
        return false;
    int64_t next = (int64_t)nb;
    for (unsigned d = 1; d < GGUF_TENSOR_DIMS; d++) {
        if (t->ne[d] == 1)
            continue;
        if (d > dim && t->nb[d] != next)
            return false;
        next = t->nb[d] * t->ne[d];
    }
    return true;
}

bool gguf_tensor_is_contiguous(const struct gguf_tensor *t)
{
    return gguf_tensor_is_empty(t) || gguf_tensor_is_contiguous_from(t, 0);
}

bool gguf_tensor_is_transposed(const struct gguf_tensor *t)
{
    return t->nb[0] > t->nb[1];
}

bool gguf_tensor_is_permuted(const struct gguf_tensor *t)
{
    return t->nb[0] > t->nb[1] || t->nb[1] > t->nb[2] || t->nb[2] > t->nb[3];
}

bool gguf_tensor_same_shape(const struct gguf_tensor *a,
                            const struct gguf_tensor *b)
{
    return !memcmp(a->ne, b->ne, sizeof a->ne);
}

bool gguf_tensor_same_layout(const struct gguf_tensor *a,
                             const struct gguf_tensor *b)
{
    return a->dtype == b->dtype && gguf_tensor_same_shape(a, b) &&
           !memcmp(a->nb, b->nb, sizeof a->nb);
}

bool gguf_tensor_can_repeat(const struct gguf_tensor *a,
                            const struct gguf_tensor *b)
{
    for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
        if (a->ne[d] ? b->ne[d] % a->ne[d] : b->ne[d])
            return false;
    return true;
}

bool gguf_tensor_op_params(const struct gguf_tensor *t, void *out, size_t size)
{
    const char *p = (const char *)t->op_params;
    size = GG_MIN(size, (size_t)GGUF_TENSOR_PARAMS);
    memcpy(out, p, size);
    for (size_t i = size; i < GGUF_TENSOR_PARAMS; i++)
        if (p[i])
            return false;
    return true;
}

const char *gguf_tensor_format(const struct gguf_tensor *t, char *buf,
                               size_t size)
{
    struct gg_str_esc esc;
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    unsigned n = gguf_tensor_n_dims(t);
    size_t at = 0;
#define PUT(...)                                                              \
    do {                                                                      \
        int k_ = snprintf(at < size ? buf + at : NULL,                        \
                          at < size ? size - at : 0, __VA_ARGS__);            \
        at += k_ > 0 ? (size_t)k_ : 0;                                        \
    } while (0)
    if (t->name[0])
        PUT("'%s' ", gg_str_esc(&esc, gg_str_z(t->name)));
    PUT("%s [", info ? info->name : "?");
    for (unsigned d = 0; d < n; d++)
        PUT("%s%" PRId64, d ? ", " : "", t->ne[d]);
    PUT("]");
#undef PUT
    return buf;
}
