/* SPDX-License-Identifier: MIT */
/* check-tensor.c - contexts, tensors, views, errors of builders, dumps */
#include "config.h"
#include "graph/cgraph.h"
#include "tests/tap.h"

#include <stdbool.h>

typedef struct gguf_tensor tensor;

static struct gguf_ctx *new_ctx(size_t size, void *mem, bool no_alloc)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    p.mem_size = size;
    p.mem = mem;
    p.no_alloc = no_alloc;
    if (gguf_ctx_create(&c, &p, NULL) != GGUF_OK)
        exit(99);
    return c;
}

static void check_arena(void)
{
    static char mem[4096 + 1];
    struct gguf_error err;
    struct gguf_ctx *c = new_ctx(sizeof mem - 1, mem + 1, false);
    size_t left = gguf_ctx_left(c);
    ok(gguf_ctx_used(c) == 0 && left > 4096 - 64 && left <= 4096,
       "borrowed memory: %zu bytes are left at first", left);
    tensor *a = gguf_tensor_set_name(
        gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 10), "a");
    void *w = gguf_ctx_alloc_work(c, 100);
    tensor *b =
        gguf_tensor_set_name(gguf_tensor_create_1d(c, GGUF_DTYPE_F16, 3), "b");
    ok(a && b && (char *)a > mem && (char *)b < mem + sizeof mem,
       "tensors lie in it");
    ok((uintptr_t)a->data % 64 == 0 && (uintptr_t)b->data % 64 == 0 &&
           (uintptr_t)w % 64 == 0,
       "data is aligned");
    ok(gguf_ctx_used(c) + gguf_ctx_left(c) == left &&
           gguf_ctx_used(c) >= 2 * gguf_tensor_overhead() + 146,
       "used and left add up");
    ok(gguf_ctx_first_tensor(c) == a && gguf_ctx_next_tensor(c, a) == b &&
           !gguf_ctx_next_tensor(c, b),
       "the walk of tensors passes over work memory");
    const struct gguf_object *o = gguf_ctx_first_object(c);
    ok(o->kind == GGUF_OBJECT_TENSOR && o->next->kind == GGUF_OBJECT_WORK &&
           o->next->next->kind == GGUF_OBJECT_TENSOR && !o->next->next->next &&
           o->off < o->next->off && o->off + o->size <= o->next->off,
       "the walk of objects");
    ok(gguf_ctx_find_tensor(c, "b") == b && !gguf_ctx_find_tensor(c, "c"),
       "by name");

    ok(!gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 100, 100) &&
           gguf_ctx_status(c, &err) == GGUF_E_FULL &&
           strstr(err.message, "F32 [100, 100]") && strstr(err.message, "40"),
       "a full context: %s", err.message);
    ok(!gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1) && !gguf_op_add(c, a, a) &&
           !gguf_graph_create(c, 1) && !gguf_ctx_alloc_work(c, 1),
       "the failure sticks");
    gguf_ctx_reset(c);
    ok(gguf_ctx_status(c, NULL) == GGUF_OK && gguf_ctx_used(c) == 0 &&
           !gguf_ctx_first_tensor(c) &&
           gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1),
       "until a reset");
    gguf_ctx_destroy(c);

    c = new_ctx(10 * gguf_tensor_overhead(), NULL, true);
    int n = 0;
    while (n < 100 &&
           gguf_tensor_create_4d(c, GGUF_DTYPE_F32, 1 << 20, 1 << 20, 9, 9))
        n++;
    ok(n == 10 && gguf_ctx_left(c) == 0,
       "10 descriptions take 10 times the overhead: %d", n);
    gguf_ctx_destroy(c);
    c = new_ctx(1000, NULL, true);
    ok(gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 8)->data == NULL &&
           gguf_ctx_no_alloc(c),
       "a description has no data");
    gguf_ctx_destroy(c);
    gguf_ctx_destroy(NULL);

    ok(gguf_ctx_create(&c, NULL, &err) == GGUF_OK && !gguf_ctx_used(c) &&
           !gguf_ctx_left(c) && !gguf_ctx_first_object(c) &&
           !gguf_ctx_first_tensor(c) && !gguf_ctx_find_tensor(c, ""),
       "a context of size 0");
    ok(!gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1) &&
           !gguf_graph_create(c, 1) && !gguf_ctx_alloc_work(c, 0) &&
           gguf_ctx_status(c, &err) == GGUF_E_FULL,
       "has no room: %s", err.message);
    gguf_ctx_reset(c);
    ok(gguf_ctx_status(c, NULL) == GGUF_OK, "and is reset");
    gguf_ctx_destroy(c);
}

static void check_names(void)
{
    struct gguf_ctx *c = new_ctx(1 << 16, NULL, true);
    tensor *x = gguf_tensor_set_name(
        gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 6, 4), "x");
    tensor *y = gguf_tensor_set_name(gguf_tensor_create_like(c, x), "y");
    tensor *none = gguf_tensor_create_like(c, x);
    tensor *ids = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 4);
    const struct {
        const tensor *t;
        const char *name;
    } rows[] = {
        { gguf_op_view_1d(c, x, 6, 0), "x (view)" },
        { gguf_op_view_2d(c, x, 2, 2, 24, 4), "x (view)" },
        { gguf_op_reshape_1d(c, x, 24), "x (reshaped)" },
        { gguf_op_permute(c, x, 0, 2, 1, 3), "x (permuted)" },
        { gguf_op_transpose(c, x), "x (transposed)" },
        { gguf_op_cont(c, x), "x (cont)" },
        { gguf_op_cont(c, gguf_op_transpose(c, x)), "x (transposed) (cont)" },
        { gguf_op_dup(c, x), "x (copy)" },
        { gguf_op_cast(c, x, GGUF_DTYPE_F16), "x (copy)" },
        { gguf_op_cpy(c, x, y), "y (copy of x)" },
        { gguf_op_cpy(c, none, y), "y (copy)" },
        { gguf_op_cpy(c, x, none), "x (copy)" },
        { gguf_op_cpy(c, none, none), "" },
        { gguf_op_set_rows(c, x, y, ids), "x (view)" },
        { gguf_op_view_1d(c, none, 6, 0), "" },
        { gguf_op_cont(c, none), "" },
        { gguf_op_add(c, x, y), "" },
    };
    for (size_t i = 0; i < GG_LEN(rows); i++)
        ok(!strcmp(rows[i].t->name, rows[i].name), "%s of x: '%s'",
           gguf_op_name(rows[i].t->op), rows[i].t->name);

    char name[64];
    memset(name, 'a', 63);
    name[63] = '\0';
    gguf_tensor_set_name(x, name);
    memcpy(name + 56, " (view)", 8);
    ok(!strcmp(gguf_op_view_1d(c, x, 6, 0)->name, name),
       "a long name leaves room for a view's suffix: %s",
       gguf_op_view_1d(c, x, 6, 0)->name);
    gguf_tensor_set_name(y,
                         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
                         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
                         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4");
    const char *both = gguf_op_cpy(c, x, y)->name;
    ok(strlen(both) == 63 && strstr(both, "\xa4 (copy of aaa") &&
           both[62] == ')',
       "of two long names: %s", both);
    both = gguf_op_cpy(c, y, x)->name;
    ok(strlen(both) == 63 && strstr(both, "aaa (copy of \xc3\xa4") &&
           !strcmp(both + 60, "\xc3\xa4)"),
       "at a code point: %s", both);
    gguf_ctx_destroy(c);
}

static void check_shapes(void)
{
    struct gguf_ctx *c = new_ctx(1 << 16, NULL, true);
    tensor *t = gguf_tensor_create_4d(c, GGUF_DTYPE_F32, 5, 4, 3, 2);
    ok(t->nb[0] == 4 && t->nb[1] == 20 && t->nb[2] == 80 && t->nb[3] == 240 &&
           gguf_tensor_size(t) == 480 && gguf_tensor_n_elements(t) == 120 &&
           gguf_tensor_n_rows(t) == 24 && gguf_tensor_n_dims(t) == 4,
       "strides and sizes of floats");
    ok(gguf_tensor_is_contiguous(t) && !gguf_tensor_is_permuted(t) &&
           !gguf_tensor_is_transposed(t) && gguf_tensor_has_contiguous_rows(t),
       "contiguous");
    tensor *q = gguf_tensor_create_2d(c, GGUF_DTYPE_Q4_K, 512, 3);
    ok(q->nb[0] == 144 && q->nb[1] == 288 && gguf_tensor_size(q) == 864 &&
           gguf_tensor_is_contiguous(q) && gguf_tensor_n_dims(q) == 2,
       "of blocks");

    tensor *p = gguf_op_permute(c, t, 1, 2, 0, 3);
    ok(p->ne[1] == 5 && p->ne[2] == 4 && p->ne[0] == 3 && p->nb[1] == 4 &&
           p->nb[2] == 20 && p->nb[0] == 80 && p->view_src == t,
       "permute puts dimension i at axis i");
    ok(gguf_tensor_is_permuted(p) && !gguf_tensor_is_contiguous(p) &&
           !gguf_tensor_has_contiguous_rows(p) && gguf_tensor_size(p) == 480,
       "and is permuted");
    tensor *tr = gguf_op_transpose(c, t);
    ok(gguf_tensor_is_transposed(tr) && tr->ne[0] == 4 && tr->ne[1] == 5,
       "transpose");
    tensor *v = gguf_op_view_2d(c, t, 2, 3, t->nb[1], 8);
    ok(v->view_off == 8 && gguf_tensor_size(v) == 2 * 20 + 2 * 4 &&
           !gguf_tensor_is_contiguous(v) &&
           gguf_tensor_is_contiguous_from(v, 1),
       "the size of a view with gaps");
    tensor *vv = gguf_op_view_1d(c, v, 2, 20);
    ok(vv->view_src == t && vv->view_off == 28 && vv->src[0] == v,
       "a view of a view refers to the root");
    tensor *r =
        gguf_op_reshape_2d(c, gguf_op_view_2d(c, t, 5, 4, 20, 80), 10, 2);
    ok(r->view_src == t && r->view_off == 80 && r->nb[1] == 40,
       "reshape of a view");
    tensor *qv = gguf_op_view_2d(c, q, 256, 2, 288, 144);
    ok(qv->nb[0] == 144 && gguf_tensor_size(qv) == 288 + 144,
       "a view of blocks");
    tensor *cube = gguf_tensor_create_3d(c, GGUF_DTYPE_Q8_0, 64, 3, 2);
    ok(gguf_op_permute(c, cube, 0, 2, 1, 3)->nb[2] == 68,
       "rows of blocks can change places");

    tensor *one = gguf_tensor_create_4d(c, GGUF_DTYPE_F32, 5, 2, 1, 1);
    ok(gguf_tensor_can_repeat(one, t) && !gguf_tensor_can_repeat(t, one),
       "can repeat");
    tensor *none = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 0, 3);
    ok(gguf_tensor_is_empty(none) && gguf_tensor_size(none) == 0 &&
           gguf_tensor_is_contiguous(none) &&
           gguf_tensor_can_repeat(none, none) &&
           !gguf_tensor_can_repeat(none, one),
       "nothing");
    ok(gguf_tensor_same_shape(t, gguf_tensor_create_like(c, t)) &&
           gguf_tensor_same_layout(t, gguf_tensor_create_like(c, t)) &&
           !gguf_tensor_same_layout(t, gguf_op_cast(c, t, GGUF_DTYPE_F16)),
       "same shape, same layout");
    ok(gguf_op_cont(c, t)->op == GGUF_OP_DUP && gguf_op_cont(c, t) != t &&
           gguf_op_cont(c, tr)->op == GGUF_OP_DUP,
       "cont is a node, also of the contiguous");

    char buf[40];
    gguf_tensor_set_namef(t, "blk.%d\n", 3);
    ok(!strcmp(gguf_tensor_format(t, buf, sizeof buf),
               "'blk.3\\n' F32 [5, 4, 3, 2]"),
       "printed: %s", buf);
    gguf_tensor_set_name(t,
                         "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
                         "ffffffffffgg\xc3\xa4");
    ok(strlen(t->name) == 62, "a long name is cut at a code point");
    ok(gguf_ctx_status(c, NULL) == GGUF_OK, "no failure so far");
    gguf_ctx_destroy(c);
}

static struct gguf_ctx *ctx; /* context of one failing call */
static tensor *w, *x, *ids, *q4;

/* Check that one builder call fails on a fresh context. */
#define FAILS(status, part, call)                                             \
    do {                                                                      \
        struct gguf_error e_ = { GGUF_OK, 0, 0, "" };                         \
        ctx = new_ctx(1 << 16, NULL, true);                                   \
        w = gguf_tensor_set_name(                                             \
            gguf_tensor_create_2d(ctx, GGUF_DTYPE_F32, 64, 32), "w");         \
        x = gguf_tensor_set_name(                                             \
            gguf_tensor_create_2d(ctx, GGUF_DTYPE_F32, 10, 32), "x");         \
        ids = gguf_tensor_create_1d(ctx, GGUF_DTYPE_I32, 7);                  \
        q4 = gguf_tensor_create_2d(ctx, GGUF_DTYPE_Q4_0, 64, 4);              \
        tensor *t_ = call;                                                    \
        ok(!t_ && gguf_ctx_status(ctx, &e_) == (status) &&                    \
               strstr(e_.message, part),                                      \
           "%s", e_.message);                                                 \
        gguf_ctx_destroy(ctx);                                                \
    } while (0)

static void check_errors(void)
{
    struct gguf_rope rope = GGUF_ROPE_INIT, odd = GGUF_ROPE_INIT;
    struct gguf_rope kind = GGUF_ROPE_INIT;
    rope.n_dims = 64;
    odd.n_dims = 7;
    kind.n_dims = 8;
    kind.kind = 77;
    FAILS(GGUF_E_SHAPE, "'w' F32 [64, 32], 'x' F32 [10, 32]",
          gguf_op_matmul(ctx, w, x));
    FAILS(GGUF_E_SHAPE, "add: ", gguf_op_add(ctx, w, x));
    FAILS(GGUF_E_TYPE, "must be floats", gguf_op_mul(ctx, w, ids));
    FAILS(GGUF_E_INVALID, "source 1 is NULL", gguf_op_mul(ctx, w, NULL));
    FAILS(GGUF_E_SHAPE, "10", gguf_op_reshape_1d(ctx, x, 10));
    FAILS(
        GGUF_E_SHAPE, "reshape",
        gguf_op_reshape_4d(ctx, x, INT64_C(1) << 32, INT64_C(1) << 32, 1, 1));
    FAILS(GGUF_E_SHAPE, "not contiguous",
          gguf_op_reshape_1d(ctx, gguf_op_transpose(ctx, x), 320));
    FAILS(GGUF_E_SHAPE, "does not lie in its 1280 bytes",
          gguf_op_view_1d(ctx, x, 10, 1244));
    FAILS(GGUF_E_SHAPE, "does not lie in",
          gguf_op_view_2d(ctx, x, 10, 33, 40, 0));
    FAILS(GGUF_E_SHAPE, "view", gguf_op_view_1d(ctx, x, 1, 2));
    FAILS(GGUF_E_SHAPE, "view", gguf_op_view_1d(ctx, x, 1, UINT64_MAX));
    FAILS(GGUF_E_SHAPE, "stride", gguf_op_view_2d(ctx, x, 1, 2, -4, 0));
    FAILS(GGUF_E_OVERFLOW, "view",
          gguf_op_view_2d(ctx, x, 1, INT64_C(1) << 62, 1 << 20, 0));
    FAILS(GGUF_E_SHAPE, "multiple", gguf_op_view_1d(ctx, q4, 31, 0));
    FAILS(GGUF_E_SHAPE, "order", gguf_op_permute(ctx, x, 0, 1, 1, 3));
    FAILS(GGUF_E_SHAPE, "order", gguf_op_permute(ctx, x, 0, 1, 2, 4));
    FAILS(GGUF_E_TYPE, "row of blocks", gguf_op_transpose(ctx, q4));
    FAILS(GGUF_E_TYPE, "i32", gguf_op_get_rows(ctx, w, x));
    FAILS(GGUF_E_SHAPE, "get_rows",
          gguf_op_get_rows(ctx, w,
                           gguf_tensor_create_2d(ctx, GGUF_DTYPE_I32, 7, 2)));
    FAILS(GGUF_E_SHAPE, "set_rows", gguf_op_set_rows(ctx, w, x, ids));
    FAILS(GGUF_E_SHAPE, "cpy", gguf_op_cpy(ctx, w, x));
    FAILS(GGUF_E_SHAPE, "Q4_K", gguf_op_cast(ctx, x, GGUF_DTYPE_Q4_K));
    FAILS(GGUF_E_SHAPE, "swiglu", gguf_op_swiglu(ctx, w, x));
    FAILS(GGUF_E_INVALID, "eps", gguf_op_rms_norm(ctx, w, -1.0f));
    FAILS(GGUF_E_SHAPE, "mask", gguf_op_soft_max(ctx, w, x, 1, 0));
    FAILS(GGUF_E_SHAPE, "slope", gguf_op_soft_max(ctx, w, NULL, 1, 8));
    FAILS(GGUF_E_SHAPE, "7 positions for 1",
          gguf_op_rope(ctx, w, ids, NULL, &rope));
    FAILS(GGUF_E_SHAPE, "rotate 64",
          gguf_op_rope(ctx, gguf_op_view_3d(ctx, x, 1, 1, 7, 4, 4, 0), ids,
                       NULL, &rope));
    FAILS(GGUF_E_SHAPE, "rotate 7",
          gguf_op_rope(ctx, gguf_op_reshape_3d(ctx, w, 64, 32, 1),
                       gguf_tensor_create_1d(ctx, GGUF_DTYPE_I32, 1), NULL,
                       &odd));
    FAILS(GGUF_E_INVALID, "pairing 77",
          gguf_op_rope(ctx, gguf_op_reshape_3d(ctx, w, 64, 32, 1),
                       gguf_tensor_create_1d(ctx, GGUF_DTYPE_I32, 1), NULL,
                       &kind));
    FAILS(GGUF_E_SHAPE, "concat: dimension 0 differs",
          gguf_op_concat(ctx, w, x, 1));
    FAILS(GGUF_E_SHAPE, "dimension -1", gguf_op_concat(ctx, w, w, 4));
    FAILS(GGUF_E_TYPE, "types differ", gguf_op_concat(ctx, w, ids, 0));
    FAILS(GGUF_E_SHAPE, "repeat", gguf_op_repeat(ctx, x, 15, 32, 1, 1));
    FAILS(GGUF_E_SHAPE, "pad: -1", gguf_op_pad(ctx, x, 0, -1, 0, 0));
    FAILS(GGUF_E_TYPE, "blocks", gguf_op_roll(ctx, q4, 1, 0, 0, 0));
    FAILS(GGUF_E_SHAPE, "view", gguf_op_top_k(ctx, x, 11));
    FAILS(GGUF_E_INVALID, "clamp", gguf_op_clamp(ctx, x, 1, 0));
    FAILS(GGUF_E_SHAPE, "matmul_id", gguf_op_matmul_id(ctx, w, x, ids));
    FAILS(GGUF_E_SHAPE, "matrix numbers", gguf_op_matmul_id(ctx, w, w, ids));
    FAILS(GGUF_E_SHAPE, "attention",
          gguf_op_attention(ctx, w, x, x, NULL, 1, 0, 0));
    FAILS(GGUF_E_SHAPE, "masks of 2 heads for 4",
          gguf_op_attention(
              ctx, gguf_tensor_create_4d(ctx, GGUF_DTYPE_F32, 8, 1, 4, 1),
              gguf_tensor_create_4d(ctx, GGUF_DTYPE_F32, 8, 5, 4, 1),
              gguf_tensor_create_4d(ctx, GGUF_DTYPE_F32, 8, 5, 4, 1),
              gguf_tensor_create_4d(ctx, GGUF_DTYPE_F32, 5, 1, 2, 1), 1, 0,
              0));
    FAILS(GGUF_E_SHAPE, "tensor of 5 dimensions",
          gguf_tensor_create(ctx, 0, 5, (int64_t[]){ 1, 1, 1, 1, 1 }));
    FAILS(GGUF_E_SHAPE, "-3", gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, -3));
    FAILS(GGUF_E_SHAPE, "Q4_0",
          gguf_tensor_create_1d(ctx, GGUF_DTYPE_Q4_0, 33));
    FAILS(GGUF_E_UNSUPPORTED, "999", gguf_tensor_create_1d(ctx, 999, 3));
    FAILS(GGUF_E_OVERFLOW, "overflows",
          gguf_tensor_create_4d(ctx, GGUF_DTYPE_F32, 1 << 30, 1 << 30, 1 << 30,
                                0));
    FAILS(GGUF_E_OVERFLOW, "overflows",
          gguf_tensor_create_2d(ctx, GGUF_DTYPE_F32, INT64_C(1) << 32,
                                INT64_C(1) << 32));
    struct gguf_error err;
    ok(gguf_ctx_status(NULL, &err) == GGUF_E_INVALID &&
           !gguf_op_add(NULL, NULL, NULL) &&
           !gguf_tensor_create_1d(NULL, GGUF_DTYPE_F32, 1),
       "no context");
}

/* --- graphs --------------------------------------------------------------- */

struct text {
    char s[4096];
    size_t n, limit;
};

static bool collect_text(void *user, const char *s, size_t n)
{
    struct text *t = user;
    if (t->limit && t->n + n > t->limit)
        return 1;
    if (t->n + n >= sizeof t->s)
        return 1;
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
    return 0;
}

static void check_graph(void)
{
    struct gguf_error err;
    struct gguf_ctx *c = new_ctx(1 << 20, NULL, true);
    size_t before = gguf_ctx_used(c);
    struct gguf_graph *g = gguf_graph_create(c, 5);
    ok(gguf_ctx_used(c) - before == gguf_graph_overhead(5),
       "a graph takes its overhead");
    tensor *a = gguf_tensor_set_name(
        gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 4, 3), "a");
    tensor *b =
        gguf_tensor_set_name(gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4), "b");
    tensor *s = gguf_op_mul(c, a, b);
    tensor *v = gguf_op_reshape_1d(c, s, 12);
    tensor *d = gguf_op_silu(c, s);
    tensor *e = gguf_op_add(c, d, gguf_op_reshape_2d(c, v, 4, 3));
    gguf_tensor_add_flags(gguf_tensor_set_name(e, "sum \"of\""),
                          GGUF_TENSOR_OUTPUT);
    ok(gguf_graph_finish(c, g, e, &err) == GGUF_OK &&
           gguf_graph_n_nodes(g) == 5 && gguf_graph_n_leaves(g) == 2,
       "nodes and leaves, each once");
    ok(gguf_graph_node(g, 0) == s && gguf_graph_node(g, 1) == d &&
           gguf_graph_node(g, 2) == v && gguf_graph_node(g, 4) == e &&
           gguf_graph_leaf(g, 0) == a && gguf_graph_leaf(g, 1) == b,
       "sources first, depth first");
    ok(gguf_graph_find(g, "b") == b && gguf_graph_has(g, d) &&
           !gguf_graph_has(g, gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1)),
       "found");

    struct text t = { .n = 0 };
    const struct gguf_write_callback out = { collect_text, &t };
    ok(gguf_graph_dump(g, NULL, out, NULL) == GGUF_OK &&
           !strcmp(t.s,
                   "graph: 5 nodes, 2 leaves\n"
                   "leaf 0: none 'a' F32 [4, 3]\n"
                   "leaf 1: none 'b' F32 [4]\n"
                   "node 0: mul F32 [4, 3] <- leaf 0, leaf 1\n"
                   "node 1: silu F32 [4, 3] <- node 0\n"
                   "node 2: reshape F32 [12] <- node 0 at byte 0\n"
                   "node 3: reshape F32 [4, 3] <- node 2 at byte 0\n"
                   "node 4: add 'sum \"of\"' F32 [4, 3] output <- node 1, "
                   "node 3\n"),
       "text dump");
    t.n = 0;
    ok(gguf_graph_dump_dot(g, NULL, out, NULL) == GGUF_OK &&
           strstr(t.s, "digraph gguf {\n") == t.s &&
           strstr(t.s, "  l0 -> n0 [label=\"0\"];\n") &&
           strstr(t.s, "'sum \\\"of\\\"'") && t.s[t.n - 2] == '}',
       "dot dump");
    t.n = 0;
    ok(gguf_graph_dump(g, "pass", out, NULL) == GGUF_OK &&
           strstr(t.s, "pass: 5 nodes, 2 leaves\n") == t.s,
       "one of several graphs");
    t.n = 0;
    ok(gguf_graph_dump_dot(g, "pass", out, NULL) == GGUF_OK &&
           strstr(t.s, "subgraph cluster_pass {\n  label=\"pass\";\n") ==
               t.s &&
           strstr(t.s, "  passl0 -> passn0 [label=\"0\"];\n") &&
           t.s[t.n - 2] == '}',
       "and as a cluster");
    t.n = 0;
    t.limit = 30;
    ok(gguf_graph_dump(g, NULL, out, &err) == GGUF_E_CANCELLED,
       "a dump that is stopped: %s", err.message);

    struct gguf_graph *view = gguf_graph_view(c, g, 1, 3);
    ok(gguf_graph_n_nodes(view) == 2 && gguf_graph_node(view, 0) == d &&
           gguf_graph_has(view, v) && !gguf_graph_has(view, e),
       "a view of nodes 1 to 2");
    struct gguf_graph *copy = gguf_graph_copy(c, g);
    ok(gguf_graph_n_nodes(copy) == 5 && gguf_graph_node(copy, 4) == e &&
           gguf_graph_n_leaves(copy) == 2 && gguf_graph_has(copy, b),
       "a copy");
    gguf_graph_clear(copy);
    ok(gguf_graph_n_nodes(copy) == 0 && !gguf_graph_has(copy, b) &&
           gguf_graph_n_nodes(g) == 5,
       "emptied");
    tensor *more = gguf_op_relu(c, e);
    gguf_graph_add(g, more);
    ok(gguf_ctx_status(c, &err) == GGUF_E_FULL && strstr(err.message, "relu"),
       "a sixth node: %s", err.message);
    ok(gguf_graph_finish(c, NULL, NULL, &err) == GGUF_E_FULL,
       "finish gives the first failure");
    gguf_ctx_reset(c);
    ok(!gguf_graph_create(c, 0) && gguf_ctx_status(c, NULL) == GGUF_E_INVALID,
       "a graph of nothing");
    gguf_ctx_reset(c);
    g = gguf_graph_create(c, 3);
    tensor *p = gguf_tensor_add_flags(
        gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1), GGUF_TENSOR_PARAM);
    gguf_graph_add(g, gguf_op_relu(c, p));
    ok(gguf_graph_n_nodes(g) == 2 && gguf_graph_n_leaves(g) == 0,
       "a parameter is a node");
    gguf_graph_add(gguf_graph_view(c, g, 0, 1), p);
    ok(gguf_ctx_status(c, &err) == GGUF_E_INVALID, "%s", err.message);
    gguf_ctx_destroy(c);

    /* far deeper than recursion could go */
    c = new_ctx((size_t)200 << 20, NULL, true);
    g = gguf_graph_create(c, 200000);
    a = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1);
    for (int i = 0; i < 200000; i++)
        a = gguf_op_relu(c, a);
    ok(gguf_graph_finish(c, g, a, &err) == GGUF_OK &&
           gguf_graph_n_nodes(g) == 200000 && gguf_graph_node(g, 199999) == a,
       "a chain of 200000 nodes");
    gguf_ctx_destroy(c);
}

/* Are the edges those that a search finds, in the graph and in a view of it? */
static bool edges_are_right(const struct gguf_graph *g)
{
    bool all = true;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tensor *t = g->nodes[i];
        uint32_t found[GG_GRAPH_EDGES];
        const uint32_t *e = gg_graph_edges(g, i, found);
        if (t->view_src)
            all = all && *e++ == gg_graph_find_number(g, t->view_src);
        for (int k = 0; k < GGUF_TENSOR_SRC; k++)
            if (t->src[k])
                all = all && *e++ == gg_graph_find_number(g, t->src[k]);
        all = all && gg_graph_find_number(g, t) == 2 * i;
    }
    return all;
}

/* Fill the graph with nodes and leaves up to its capacity, in pages of two
 * arenas. */
static void check_full_graph(void)
{
    enum { N = 3000 };
    struct gguf_error err;
    struct gguf_ctx *c = new_ctx((size_t)16 << 20, NULL, true);
    struct gguf_ctx *far = new_ctx((size_t)16 << 20, NULL, true);
    struct gguf_graph *g = gguf_graph_create(c, 3 * N);
    tensor *y = gguf_tensor_create_1d(far, GGUF_DTYPE_F32, 4);
    for (int i = 0; i < N; i++) {
        y = gguf_op_add(c, y, gguf_tensor_create_1d(far, GGUF_DTYPE_F32, 4));
        y = gguf_op_mul(
            c, gguf_op_view_1d(c, y, 4, 0),
            gguf_tensor_create_1d(i % 2 ? c : far, GGUF_DTYPE_F32, 4));
    }
    ok(gguf_graph_finish(c, g, y, &err) == GGUF_OK && g->n_nodes == 3 * N &&
           g->n_leaves == 2 * N + 1,
       "a graph of %zu nodes and %zu leaves", g->n_nodes, g->n_leaves);
    bool has =
        !gguf_graph_has(g, gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4)) &&
        !gguf_graph_has(g, gguf_tensor_create_1d(far, GGUF_DTYPE_F32, 4));
    for (uint32_t i = 0; i < g->n_leaves; i++)
        has = has && gg_graph_find_number(g, g->leaves[i]) == 2 * i + 1;
    ok(has, "each leaf is found, and no foreign tensor");
    ok(edges_are_right(g), "each node knows the numbers of its sources");
    ok(edges_are_right(gguf_graph_view(c, g, 30, 60)) &&
           edges_are_right(gguf_graph_copy(far, g)),
       "so do those of a view and of a copy");
    gguf_ctx_destroy(c);
    gguf_ctx_destroy(far);
}

/* Parameters of an operation that a backend reads. */
static void check_params(void)
{
    struct gg_tensor_storage s = GG_TENSOR_STORAGE_INIT(s, .op = GGUF_OP_PAD);
    const struct gguf_tensor *t = &s.t;
    int32_t got[GGUF_TENSOR_PARAMS / sizeof(int32_t)] = { 0 };
    memcpy(s.op_params, (int32_t[]){ 1, 2, 3 }, 3 * sizeof *got);
    ok(gguf_tensor_op_params(t, got, 3 * sizeof *got) && got[0] == 1 &&
           got[2] == 3,
       "parameters of an operation");
    ok(!gguf_tensor_op_params(t, got, 2 * sizeof *got) && got[1] == 2,
       "and more than is known");
    s.op_params[sizeof got / sizeof *got - 1] = 7;
    ok(!gguf_tensor_op_params(t, got, 3 * sizeof *got), "up to the last byte");
    ok(gguf_tensor_op_params(t, got, sizeof got) &&
           got[sizeof got / sizeof *got - 1] == 7,
       "all of them");
}

int main(void)
{
    check_params();
    check_arena();
    check_full_graph();
    check_shapes();
    check_names();
    check_errors();
    check_graph();
    bool named = true;
    for (uint32_t i = 0; i < GGUF_N_OPS; i++)
        named = named && gguf_op_name(i) && *gguf_op_name(i);
    ok(named && !gguf_op_name(GGUF_N_OPS), "every operation has a name");
    return done_testing();
}
