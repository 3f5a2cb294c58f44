/* SPDX-License-Identifier: MIT */
/* op_table.c - the table of operations, and making a node from a row */
#include "config.h"
#include "graph/op_table.h"
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

const struct gg_op_row gg_op_rows[] = {
#define X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)              \
    [GGUF_OP_##ID] = { #NAME,                                                 \
                       SRC,                                                   \
                       OPT,                                                   \
                       INPLACE,                                               \
                       GG_OP_##KIND,                                          \
                       gg_graph_shape_##SHAPE,                                \
                       gg_graph_cost_##COST },
    GG_OP_LIST(X)
#undef X
};

/* The public numbers are those of the rows. */
enum {
#define X(ID, ...) ROW_##ID,
    GG_OP_LIST(X)
#undef X
        N_ROWS
};
#define X(ID, ...)                                                            \
    static_assert((int)ROW_##ID == (int)GGUF_OP_##ID,                         \
                  "gguf/op_num.h is not of graph/op_list.h");
GG_OP_LIST(X)
#undef X
static_assert((int)N_ROWS == (int)GGUF_N_OPS, "one row for each operation");

const char *gguf_op_name(uint32_t op)
{
    return op < GGUF_N_OPS ? gg_op_rows[op].name : NULL;
}

bool gguf_op_is_view(uint32_t op)
{
    return op == GGUF_OP_NONE ||
           (op < GGUF_N_OPS && gg_op_rows[op].flags & GG_OP_VIEW);
}

enum gguf_status gg_op_fail(const struct gguf_tensor *t,
                            struct gguf_error *err, enum gguf_status status,
                            const char *fmt, ...)
{
    if (!err)
        return status;
    char text[480], one[160];
    int at = 0;
    va_list ap;
    va_start(ap, fmt);
    at = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (int i = 0; i < GGUF_TENSOR_SRC; i++) {
        if (!t->src[i])
            continue;
        if (at < 0 || (size_t)at >= sizeof text)
            break;
        int n = snprintf(text + at, sizeof text - (size_t)at, "%s%s",
                         i ? ", " : ": ",
                         gguf_tensor_format(t->src[i], one, sizeof one));
        at = n < 0 ? n : at + n;
    }
    return gg_error_set(err, status, GGUF_NO_OFFSET, "%s: %s",
                        gg_op_rows[t->op].name, text);
}

struct gguf_tensor *gg_op_build(struct gguf_ctx *ctx,
                                struct gg_tensor_storage *proto)
{
    if (gg_ctx_failed(ctx))
        return NULL;
    const struct gg_op_row *row = &gg_op_rows[proto->t.op];
    for (unsigned i = 0; i < row->n_src; i++) {
        if (proto->src[i])
            continue;
        gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "%s: source %u is NULL", row->name, i);
        return NULL;
    }
    if (row->shape(&proto->t, gg_ctx_err(ctx)) != GGUF_OK)
        return NULL;
    proto->t.n_src = (uint32_t)gg_op_n_src(&proto->t);
    return gg_ctx_add_tensor(ctx, &proto->t);
}

struct gguf_tensor *gg_op_name_from_source(struct gguf_tensor *t,
                                           const struct gguf_tensor *src,
                                           const char *what,
                                           const struct gguf_tensor *other)
{
    if (!t || !src->name[0])
        return t;
    const char *second = other ? other->name : "";
    const size_t n_what = strlen(what);
    const size_t room = GGUF_TENSOR_NAME - sizeof " ()" - n_what;
    const size_t n_second = gg_str_utf8_fit(second, strlen(second), room / 2);
    const size_t n_first =
        gg_str_utf8_fit(src->name, strlen(src->name), room - n_second);
    char *const begin = gg_tensor_storage(t)->name, *p = begin;
    memmove(p, src->name, n_first);
    p += n_first;
    *p++ = ' ';
    *p++ = '(';
    memcpy(p, what, n_what);
    p += n_what;
    memcpy(p, second, n_second);
    p += n_second;
    *p++ = ')';
    memset(p, 0, (size_t)(begin + GGUF_TENSOR_NAME - p));
    return t;
}

struct gguf_tensor *gg_op_make(struct gguf_ctx *ctx, enum gguf_op op,
                               const void *params, size_t params_size,
                               unsigned n_src, struct gguf_tensor *const *src)
{
    struct gg_tensor_storage proto = GG_TENSOR_STORAGE_INIT(proto, .op = op);
    assert(params_size <= sizeof proto.op_params);
    if (params_size)
        memcpy(proto.op_params, params, params_size);
    memcpy(proto.src, src, n_src * sizeof *src);
    return gg_op_build(ctx, &proto);
}
