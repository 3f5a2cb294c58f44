/* SPDX-License-Identifier: MIT */
/* check-slow.c - one slow thread does not hold up the others
 *
 * Processors of a machine differ in speed, or another program uses one. Here
 * each kernel stops in one of two threads until the other thread has done two
 * thirds of the calls. With equal shares it would do half of them, and the
 * kernel would time out.
 */
#include "config.h"
#include "base/mem.h"
#include "cpu/fuse.h"
#include "cpu/graph_run.h"
#include "dtype/dtype_int.h"
#include "kern/few_columns.h"
#include "tests/cpu/ops.h"

#include <stdatomic.h>
#include <time.h>

enum { MOST_WAIT = 60 * 1000 }; /* milliseconds */

static _Thread_local bool is_slow;
static _Atomic size_t n_done, n_wanted;
static _Atomic bool timed_out;
static struct gg_kern fast; /* kernels without delays */
static enum gg_kern_gemm_form form;
static int type;

static void count_calls(size_t n)
{
    if (!is_slow) {
        atomic_fetch_add(&n_done, n);
        return;
    }
    for (int ms = 0; n_done < n_wanted; ms++) {
        if (ms == MOST_WAIT) {
            timed_out = true;
            n_wanted = 0;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
    }
}

/* ---- kernels with delays ---- */

static void slow_tile(const void *w, const void *x, size_t n_blocks,
                      unsigned n, float *y, size_t y_stride, int add)
{
    count_calls(1);
    fast.gemm[form].tile(w, x, n_blocks, n, y, y_stride, add);
}

static void slow_dot(const struct gg_kern *kern,
                     const struct gg_kern_gemm_rows *w, size_t m,
                     const float *x, size_t x_stride, size_t n, size_t k,
                     float *y, size_t y_stride)
{
    count_calls(m);
    fast.gemm[form].dot(kern, w, m, x, x_stride, n, k, y, y_stride);
}

static void slow_few(const struct gg_kern_few *f)
{
    count_calls(1);
    fast.gemm[form].few[type].run(f);
}

static void slow_norm(float *y, const float *x, const float *weight, size_t n,
                      float eps)
{
    count_calls(1);
    fast.vec.rms_norm(y, x, weight, n, eps);
}

static void slow_delta(const struct gg_vec_delta *p)
{
    count_calls(1);
    fast.vec.delta(p);
}

static void slow_scan(const struct gg_vec_scan *p)
{
    count_calls(1);
    fast.vec.scan(p);
}

static float slow_vec_dot(const float *x, const float *y, size_t n)
{
    count_calls(1);
    return fast.vec.dot(x, y, n);
}

/* ---- cases ---- */

static void mark_slow(void *user, unsigned ith, unsigned nth)
{
    (void)user;
    is_slow = nth > 1 && ith == 1;
}

static void compute_graph(const struct gguf_graph *g, struct gguf_pool *pool,
                          const struct gg_kern *kern)
{
    const unsigned nth = gguf_pool_n_threads(pool);
    const struct gguf_abort_callback never = { NULL, NULL };
    struct gg_cpu_plan p;
    struct gg_barrier barrier;
    gg_cpu_plan_init(&p, NULL, GG_CPU_FUSE_BYTES);
    if (gg_cpu_plan_make(&p, g, nth, kern, NULL) ||
        gg_barrier_init(&barrier, nth, 0, NULL))
        exit(99);
    void *work = gg_mem_alloc_aligned(NULL, p.work_size + 64, 64);
    gguf_pool_run(pool, (struct gguf_pool_callback){ mark_slow, NULL });
    if (!work ||
        gg_cpu_plan_run(&p, pool, &barrier, work, kern, never, NULL, NULL))
        exit(99);
    gg_mem_free_aligned(NULL, work);
    gg_barrier_fini(&barrier);
    gg_cpu_plan_fini(&p);
}

static void check_node(ctx_t *c, tensor *t, const struct gg_kern *kern,
                       const char *what)
{
    struct gguf_graph *g = gguf_graph_create(c, 8);
    if (gguf_graph_finish(c, g, t, NULL))
        exit(99);
    const size_t size = (size_t)gguf_tensor_size(t);
    n_done = n_wanted = 0;
    timed_out = false;
    compute_graph(g, ops_pools[0], kern);
    const size_t n_calls = n_done;
    void *want = malloc(size);
    if (!want)
        exit(99);
    memcpy(want, t->data, size);
    memset(t->data, 0, size);
    n_done = 0;
    n_wanted = n_calls * 2 / 3;
    compute_graph(g, ops_pools[1], kern);
    ok(n_calls >= 32 && !timed_out && !memcmp(want, t->data, size),
       "%s: the fast thread does most of it, with the same bits", what);
    free(want);
    gguf_ctx_destroy(c);
}

/* A product of n columns, with weights of a type. */
static void check_product(const char *level, uint32_t dtype,
                          enum gg_kern_precision precision, int64_t n)
{
    char what[80];
    struct gg_kern kern = fast;
    struct gg_kern_few_row few[GG_N_DTYPES];
    const char *how = "panels";
    ctx_t *c = new_ctx();
    tensor *w = source(c, dtype, PLAIN, 256, 1024, 1, 1);
    tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, 256, n, 1, 1);
    tensor *t = gguf_op_matmul(c, w, x);
    type = gg_dtype_index(dtype);
    kern.precision = precision;
    form = gg_kern_gemm_form_of(&kern, type);
    struct gg_kern_gemm *g = &kern.gemm[form];
    g->tile = slow_tile;
    if (g->few && g->few[type].run && n <= (int64_t)g->few[type].most) {
        memcpy(few, g->few, sizeof few);
        few[type].run = slow_few;
        g->few = few;
        how = "few columns";
    } else if (n < (int64_t)g->narrow) {
        g->dot = slow_dot;
        how = "rows where they lie";
    }
    snprintf(what, sizeof what, "%s, %s, %d columns by %s", level,
             type_name(w), (int)n, how);
    check_node(c, t, &kern, what);
}

/* One operation on rows, and two that are fused. */
static void check_rows(const char *level, int n)
{
    char what[80];
    struct gg_kern kern = fast;
    ctx_t *c = new_ctx();
    tensor *t = source(c, GGUF_DTYPE_F32, PLAIN, 256, 300, 1, 1);
    for (int i = 0; i < n; i++)
        t = gguf_op_rms_norm(c, t, 1e-5f);
    kern.vec.rms_norm = slow_norm;
    snprintf(what, sizeof what, "%s, operations on rows in %d nodes", level,
             n);
    check_node(c, t, &kern, what);
}

static tensor *new_floats(ctx_t *c, int64_t n0, int64_t n1, int64_t n2,
                          int64_t n3)
{
    return source(c, GGUF_DTYPE_F32, PLAIN, n0, n1, n2, n3);
}

/* Operations on the heads of a state, and the scores of tokens' keys. */
static void check_items(const char *level)
{
    enum { N = 16, HEADS = 64, TOK = 8, N_KV = 40 };
    char what[80];
    tensor *state;
    struct gg_kern kern = fast;
    kern.vec.delta = slow_delta;
    kern.vec.scan = slow_scan;
    ctx_t *c = new_ctx();
    tensor *t = gguf_op_gated_delta(
        c, new_floats(c, N, HEADS, TOK, 1), new_floats(c, N, HEADS, TOK, 1),
        new_floats(c, N, HEADS, TOK, 1), new_floats(c, 1, HEADS, TOK, 1),
        new_floats(c, 1, HEADS, TOK, 1), new_floats(c, N, N, HEADS, 1),
        &state);
    snprintf(what, sizeof what, "%s, heads of the gated delta rule", level);
    check_node(c, t, &kern, what);
    c = new_ctx();
    tensor *ids = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 1);
    memset(ids->data, 0, (size_t)gguf_tensor_size(ids));
    t = gguf_op_ssm_scan(
        c, new_floats(c, N, N, HEADS, 1), new_floats(c, N, HEADS, TOK, 1),
        new_floats(c, HEADS, TOK, 1, 1), new_floats(c, 1, HEADS, 1, 1),
        new_floats(c, N, 1, TOK, 1), new_floats(c, N, 1, TOK, 1), ids, &state);
    snprintf(what, sizeof what, "%s, heads of a selective scan", level);
    check_node(c, t, &kern, what);
    c = new_ctx();
    kern.vec.dot = slow_vec_dot;
    t = gguf_op_index_top(
        c, new_floats(c, N, HEADS, 1, 1), new_floats(c, N, N_KV, 1, 1),
        new_floats(c, 1, HEADS, 1, 1), new_floats(c, N_KV, HEADS, 1, 1), N);
    snprintf(what, sizeof what, "%s, scores of tokens", level);
    check_node(c, t, &kern, what);
}

static void check_level(const char *level, uint32_t cpu)
{
    gg_kern_init(&fast, cpu);
    check_product(level, GGUF_DTYPE_F32, GG_PRECISION_EXACT, 64);
    check_product(level, GGUF_DTYPE_F32, GG_PRECISION_EXACT, 2);
    check_product(level, GGUF_DTYPE_Q8_0, GG_PRECISION_INT16, 1);
    check_product(level, GGUF_DTYPE_Q8_0, GG_PRECISION_INT8, 2);
    check_rows(level, 1);
    check_rows(level, 2);
    check_items(level);
}

int main(void)
{
    ops_begin();
    check_level("C", 0);
    check_level("this processor", gg_kern_cpu_detect());
    return done_testing();
}
