/* SPDX-License-Identifier: MIT */
/* check-panels.c - kept panels of packed weights give the same bits and are
 * never stale */
#include "config.h"
#include "base/mem.h"
#include "cpu/compute_table.h"
#include "gguf/backend.h"
#include "tests/cpu/ops.h"

enum { K = 512, M = 100, N = 40, N_EXPERTS = 3, N_TOK = 30 };

static struct gguf_error err;

static void must_succeed(enum gguf_status st)
{
    if (st == GGUF_OK)
        return;
    printf("Bail out! %s\n", err.message);
    exit(99);
}

/* ---- weights in a buffer of their own ---- */

struct weights {
    ctx_t *ctx;
    struct gguf_buffer *buffer;
    tensor *w;
};

static void set_data(tensor *w, uint64_t seed)
{
    const int i = gg_dtype_index(w->dtype);
    float *x = malloc((size_t)K * sizeof *x);
    char *row = malloc((size_t)w->nb[1]);
    if (!x || !row)
        exit(99);
    tap_rng = seed * 77 + 1;
    for (int64_t r = 0; r < gguf_tensor_n_rows(w); r++) {
        for (int p = 0; p < K; p++)
            x[p] = rnd_f32();
        ops_kern.codec[i].encode(x, row, 1, K, NULL);
        must_succeed(gguf_tensor_set(w, row, (uint64_t)(r * w->nb[1]),
                                     (uint64_t)w->nb[1], &err));
    }
    free(row);
    free(x);
}

/* memory: of the weights; NULL: allocate it. */
static void weights_init(struct weights *w, uint32_t dtype, int64_t n,
                         void *memory, size_t size)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.mem_size = 1 << 12;
    p.no_alloc = true;
    must_succeed(gguf_ctx_create(&w->ctx, &p, &err));
    w->w = gguf_tensor_create_3d(w->ctx, dtype, K, M, n);
    if (memory) {
        must_succeed(gguf_buffer_create_from_host(&w->buffer, memory, size,
                                                  NULL, &err));
        must_succeed(gguf_buffer_place_tensor(w->buffer, w->w, 0, &err));
    } else {
        must_succeed(gguf_ctx_alloc_tensors(w->ctx, gguf_host_buft(), NULL,
                                            &w->buffer, &err));
    }
    gguf_buffer_set_usage(w->buffer, GGUF_USAGE_WEIGHTS);
}

static void weights_fini(struct weights *w)
{
    gguf_buffer_destroy(w->buffer);
    gguf_ctx_destroy(w->ctx);
}

/* ---- backends ---- */

static struct gguf_backend *create_backend(unsigned team, uint64_t repack,
                                           enum gguf_precision precision,
                                           const struct gguf_allocator *a)
{
    struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
    struct gguf_backend *b;
    p.pool = ops_pools[team];
    p.repack = repack ? GGUF_CPU_REPACK_LIMIT : GGUF_CPU_REPACK_NONE;
    p.repack_size = repack;
    p.precision = precision;
    p.allocator = a;
    must_succeed(gguf_cpu_backend_create(&b, &p, &err));
    return b;
}

/* Columns to multiply. With several matrices, each column has two of them. */
struct columns {
    tensor *x, *ids;
};

static struct columns make_columns(ctx_t *c, const tensor *w, int64_t n)
{
    const bool experts = w->ne[2] > 1;
    struct columns s = { .x = source(c, GGUF_DTYPE_F32, PLAIN, K,
                                     experts ? 1 : n, experts ? n : 1, 1) };
    if (experts) {
        s.ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 2, n);
        set_ids(s.ids, w->ne[2]);
    }
    return s;
}

static tensor *product_of(ctx_t *c, tensor *w, struct columns s)
{
    return s.ids ? gguf_op_matmul_id(c, w, s.x, s.ids)
                 : gguf_op_matmul(c, w, s.x);
}

static tensor *make_product(ctx_t *c, tensor *w, int64_t n)
{
    return product_of(c, w, make_columns(c, w, n));
}

static bool same_results(struct gguf_backend *plain, struct gguf_backend *kept,
                         tensor *w, int64_t n)
{
    ctx_t *c = new_ctx();
    const struct columns s = make_columns(c, w, n);
    tensor *t[] = { product_of(c, w, s), product_of(c, w, s) };
    for (int i = 0; i < 2; i++) {
        struct gguf_graph *g = gguf_graph_create(c, 8);
        must_succeed(gguf_graph_finish(c, g, t[i], &err));
        must_succeed(gguf_backend_compute(i ? kept : plain, g, &err));
    }
    const bool equal = !memcmp(t[0]->data, t[1]->data, gguf_tensor_size(t[0]));
    gguf_ctx_destroy(c);
    return equal;
}

/* ---- tests ---- */

static void check_bits(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32,  GGUF_DTYPE_BF16,
                                      GGUF_DTYPE_Q4_0, GGUF_DTYPE_Q8_0,
                                      GGUF_DTYPE_Q4_K, GGUF_DTYPE_Q6_K };
    static const int64_t cols[] = { 1, 5, 9, N, 200, N };
    for (unsigned k = 0; gguf_precision_name(k); k++) {
        int n_wrong = 0;
        for (size_t i = 0; i < GG_LEN(types); i++)
            for (unsigned t = 0; t < N_TEAMS; t++) {
                struct gguf_backend *plain =
                    create_backend(t, 0, (enum gguf_precision)k, NULL);
                struct gguf_backend *kept =
                    create_backend(t, 1 << 24, (enum gguf_precision)k, NULL);
                for (int64_t n = 1; n <= N_EXPERTS; n += N_EXPERTS - 1) {
                    struct weights w;
                    weights_init(&w, types[i], n, NULL, 0);
                    set_data(w.w, i + 1);
                    for (size_t j = 0; j < GG_LEN(cols); j++)
                        n_wrong += !same_results(plain, kept, w.w, cols[j]);
                    weights_fini(&w);
                }
                gguf_backend_destroy(plain);
                gguf_backend_destroy(kept);
            }
        ok(!n_wrong,
           "%s: the bits of products of %zu types, matrices and "
           "experts: %d differ",
           gguf_precision_name(k), GG_LEN(types), n_wrong);
    }
}

/* After a weight changes, its old panels are not used. */
static void check_changes(void)
{
    static _Alignas(64) char memory[K * M * 4];
    static char other[K * M * 4];
    struct gguf_backend *plain =
        create_backend(1, 0, GGUF_PRECISION_EXACT, NULL);
    struct gguf_backend *kept =
        create_backend(1, 1 << 24, GGUF_PRECISION_EXACT, NULL);
    struct weights a, b;
    weights_init(&a, GGUF_DTYPE_F32, 1, memory, sizeof memory);
    set_data(a.w, 1);
    ok(same_results(plain, kept, a.w, N) && same_results(plain, kept, a.w, N),
       "the same twice");
    set_data(a.w, 2);
    ok(same_results(plain, kept, a.w, N), "after data were set");
    must_succeed(gguf_tensor_fill(a.w, 0, 0, K * sizeof(float), &err));
    ok(same_results(plain, kept, a.w, N), "after a part of them became 0");
    weights_init(&b, GGUF_DTYPE_F32, 1, other, sizeof other);
    set_data(b.w, 3);
    ok(same_results(plain, kept, b.w, N), "of other weights");
    must_succeed(gguf_tensor_copy(b.w, a.w, &err));
    ok(same_results(plain, kept, a.w, N), "after data were copied");
    /* model/weight/weight_swap.c exchanges weights in this way */
    tensor was = *a.w;
    a.w->data = b.w->data;
    a.w->buffer = b.w->buffer;
    set_data(b.w, 4);
    ok(same_results(plain, kept, a.w, N), "after it was exchanged");
    *a.w = was;
    ok(same_results(plain, kept, a.w, N), "and back");
    weights_fini(&a);
    set_data(b.w, 5);
    memcpy(memory, other, sizeof memory);
    weights_init(&a, GGUF_DTYPE_F32, 1, memory, sizeof memory);
    ok(same_results(plain, kept, a.w, N),
       "of another buffer that lies where one lay before");
    must_succeed(gguf_buffer_clear(a.buffer, 0, &err));
    ok(same_results(plain, kept, a.w, N), "after a buffer was cleared");
    weights_fini(&a);
    gguf_backend_destroy(kept); /* destroy the backend before the weights whose
                                 * panels it keeps */
    weights_fini(&b);
    gguf_backend_destroy(plain);
}

/* Products read the kept panels. */
static void check_served(void)
{
    struct gg_cpu_weight_cache s;
    struct weights w;
    ctx_t *c = new_ctx();
    gg_cpu_weight_cache_init(&s, NULL, 1 << 24);
    weights_init(&w, GGUF_DTYPE_F32, 1, NULL, 0);
    set_data(w.w, 1);
    tensor *t = make_product(c, w.w, N);
    const struct gg_cpu_panels *p = gg_cpu_weight_cache_find(&s, t, &ops_kern);
    ok(p && p->n * ops_kern.gemm[0].mr >= M &&
           p->n * p->size >= sizeof(float) * K * M,
       "panels of a weight");
    ok(p == gg_cpu_weight_cache_find(&s, t, &ops_kern), "are found again");
    struct gg_cpu_task task = { .nth = 1, .kern = &ops_kern, .panels = p };
    const struct gg_cpu_op *op = gg_cpu_op_row(t->op);
    task.work_size = op->work(t, 1, &ops_kern);
    task.work = gg_mem_alloc_aligned(NULL, task.work_size, 64);
    if (!p || !task.work)
        exit(99);
    op->run(t, &task);
    ok(!memchr(p->first.ready, 0, p->n) && ((float *)t->data)[0] != 0,
       "a product packs all of them");
    memset(p->first.at, 0, p->n * p->size);
    op->run(t, &task);
    bool zero = true;
    for (int i = 0; i < M * N; i++)
        zero = zero && ((float *)t->data)[i] == 0;
    ok(zero, "and the next one reads nothing else");
    gg_mem_free_aligned(NULL, task.work);
    gg_cpu_weight_cache_fini(&s);
    weights_fini(&w);
    gguf_ctx_destroy(c);
}

static void check_limit(void)
{
    struct gg_cpu_weight_cache s;
    struct weights w[3];
    tensor *t[3];
    ctx_t *c = new_ctx();
    for (int i = 0; i < 3; i++) {
        weights_init(&w[i], GGUF_DTYPE_F32, 1, NULL, 0);
        t[i] = make_product(c, w[i].w, N);
    }
    gg_cpu_weight_cache_init(&s, NULL, 2 * sizeof(float) * K * (M + 30));
    const bool first = gg_cpu_weight_cache_find(&s, t[0], &ops_kern) &&
                       gg_cpu_weight_cache_find(&s, t[1], &ops_kern);
    ok(first && !gg_cpu_weight_cache_find(&s, t[2], &ops_kern) &&
           s.used <= s.limit,
       "two of three fit: %zu bytes of %zu", (size_t)s.used, (size_t)s.limit);
    weights_fini(&w[0]);
    gg_cpu_weight_cache_sweep(&s);
    ok(s.n == 1 && gg_cpu_weight_cache_find(&s, t[2], &ops_kern),
       "and the third when one of them is gone");
    ok(!gg_cpu_weight_cache_find(&s, make_product(c, w[2].w, 1), &ops_kern),
       "one column needs no panels");
    tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, K, M, 1, 1);
    ok(!gg_cpu_weight_cache_find(&s, gguf_op_matmul(c, x, x), &ops_kern) &&
           !gg_cpu_weight_cache_find(&s, gguf_op_relu(c, w[2].w), &ops_kern),
       "nor tensors that are not weights, or not multiplied");
    gg_cpu_weight_cache_fini(&s);
    weights_fini(&w[1]);
    weights_fini(&w[2]);
    gguf_ctx_destroy(c);
}

/* ---- memory ---- */

static size_t in_use;

static void *count_alloc(void *user, size_t size)
{
    (void)user;
    size_t *p = malloc(size + 64);
    if (!p)
        return NULL;
    *p = size;
    in_use += size;
    return (char *)p + 64;
}

static void count_free(void *user, void *ptr)
{
    (void)user;
    if (!ptr)
        return;
    size_t *p = (size_t *)(void *)((char *)ptr - 64);
    in_use -= *p;
    free(p);
}

static void check_estimate(void)
{
    static const struct gguf_allocator counts = { .struct_size = sizeof counts,
                                                  .alloc = count_alloc,
                                                  .free = count_free };
    struct gg_cpu_weight_cache s;
    struct weights w[2];
    ctx_t *c = new_ctx();
    struct gguf_graph *g = gguf_graph_create(c, 16);
    weights_init(&w[0], GGUF_DTYPE_F32, 1, NULL, 0);
    weights_init(&w[1], GGUF_DTYPE_F32, N_EXPERTS, NULL, 0);
    tensor *t[] = { make_product(c, w[0].w, N), make_product(c, w[1].w, N_TOK),
                    make_product(c, w[0].w, N) };
    for (size_t i = 0; i < GG_LEN(t); i++)
        gguf_graph_add(g, t[i]);
    must_succeed(gguf_graph_finish(c, g, NULL, &err));
    gg_cpu_weight_cache_init(&s, &counts, 1 << 24);
    const uint64_t said = gg_cpu_weight_cache_estimate(&s, g, &ops_kern);
    const size_t before = in_use;
    for (size_t i = 0; i < GG_LEN(t); i++)
        (void)gg_cpu_weight_cache_find(&s, t[i], &ops_kern);
    ok(said == in_use && before < in_use / 100,
       "%zu bytes are said, and taken, at first use", (size_t)said);
    gg_cpu_weight_cache_fini(&s);
    ok(!in_use, "and given back");
    weights_fini(&w[0]);
    weights_fini(&w[1]);
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_bits();
    check_changes();
    check_served();
    check_limit();
    check_estimate();
    (void)ops_finish();
    return done_testing();
}
