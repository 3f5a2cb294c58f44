/* SPDX-License-Identifier: MIT */
/* check-blas.c - the BLAS backend: supported operations, errors of sums, its
 * queue, and graphs shared with other backends
 *
 *   check-blas [GRAPHS [SEED]]
 */
#include "config.h"
#include "gguf/blas.h"
#include "kern/kern.h"
#include "tests/failalloc.h"
#include "tests/graph/random_graph.h"

#include <float.h>
#include <math.h>

static bool has_blas(void)
{
    struct gguf_driver *d;
    struct gguf_error err;
    enum gguf_status st = gguf_blas_driver_create(&d, NULL, &err);
    if (st == GGUF_E_UNSUPPORTED) {
        struct gguf_backend *b;
        ok(!d && gguf_blas_backend_create(&b, NULL, NULL) == st && !b, "%s",
           err.message);
        return false;
    }
    must(st, &err);
    gguf_driver_destroy(d);
    return true;
}

/* --- registry, device ----------------------------------------------------- */

static void check_device(void)
{
    struct gguf_registry *r;
    struct gguf_driver *cpu, *blas;
    struct gguf_backend *b;
    struct gguf_error err;
    uint64_t n_free, n_total;
    must(gguf_registry_create(&r, NULL, &err), &err);
    struct gguf_device *d = gguf_registry_find(r, "blas");
    cpu = gguf_device_driver(gguf_registry_find(r, "cpu"));
    blas = gguf_device_driver(d);
    gguf_device_memory(d, &n_free, &n_total);
    ok(n_total > 0 && n_free <= n_total && gguf_registry_n_drivers(r) == 2 &&
           !strcmp(gguf_driver_name(blas), "BLAS"),
       "it is in a registry, with memory");
    ok(d && gguf_device_kind(d) == GGUF_DEVICE_ACCEL &&
           gguf_registry_find_kind(r, GGUF_DEVICE_ACCEL) == d &&
           gguf_registry_find_best(r) == gguf_driver_device(cpu, 0),
       "found by name and kind: %s", gguf_device_description(d));
    ok(gguf_device_caps(d) ==
               (GGUF_DEVICE_CAP_ASYNC | GGUF_DEVICE_CAP_EVENTS |
                GGUF_DEVICE_CAP_HOST_BUFT | GGUF_DEVICE_CAP_HOST_PTR) &&
           gguf_device_host_buft(d) == gguf_host_buft(),
       "caps");
    must(gguf_device_create_backend(d, &b, &err), &err);
    gguf_blas_set_n_threads_fn *set =
        (gguf_blas_set_n_threads_fn *)gguf_driver_find_function(
            blas, "set_n_threads");
    ok(set && !gguf_driver_find_function(blas, "none"), "functions by name");
    enum gguf_status st = set(b, 2, &err);
    ok(st == GGUF_OK || st == GGUF_E_UNSUPPORTED, "threads are set, or not");
    ok(set(b, 0, &err) == GGUF_E_INVALID, "%s", err.message);
    set(b, 1, NULL);
    gguf_backend_destroy(b);
    gguf_registry_destroy(r);
    struct gguf_blas_params p = GGUF_BLAS_PARAMS_INIT;
    p.n_threads = 100000;
    ok(gguf_blas_driver_create(&blas, &p, &err) == GGUF_E_INVALID && !blas,
       "%s", err.message);
}

/* --- products ------------------------------------------------------------- */

static struct gg_kern kern;

/* Largest error of y as a fraction of its bound: summing k products in any
 * order errs by at most k eps times the sum of their magnitudes. */
static double worst_of(const tensor *a, const tensor *b, const tensor *t,
                       int64_t row_step)
{
    const int64_t k = a->ne[0];
    float *w = malloc((size_t)k * sizeof *w);
    gg_kern_decode_fn *decode = kern.codec[gg_dtype_index(a->dtype)].decode;
    double worst = 0;
    for (int64_t s = 0; s < b->ne[2] * b->ne[3]; s++) {
        const int64_t i2 = s % b->ne[2], i3 = s / b->ne[2];
        const char *slice = (const char *)a->data +
                            i2 / (b->ne[2] / a->ne[2]) * a->nb[2] +
                            i3 / (b->ne[3] / a->ne[3]) * a->nb[3];
        for (int64_t i = 0; i < a->ne[1]; i += row_step) {
            decode(slice + i * a->nb[1], w, (size_t)k);
            for (int64_t j = 0; j < b->ne[1]; j++) {
                const float *x =
                    (const float *)(const void *)((const char *)b->data +
                                                  j * b->nb[1] +
                                                  i2 * b->nb[2] +
                                                  i3 * b->nb[3]);
                double sum = 0, size = 0;
                for (int64_t p = 0; p < k; p++) {
                    sum += (double)w[p] * x[p];
                    size += fabs((double)w[p] * x[p]);
                }
                float y =
                    *(const float *)(const void *)((const char *)t->data +
                                                   i * 4 + j * t->nb[1] +
                                                   i2 * t->nb[2] +
                                                   i3 * t->nb[3]);
                worst = fmax(worst,
                             fabs(y - sum) / ((double)k * FLT_EPSILON * size));
            }
        }
    }
    free(w);
    return worst;
}

static void fill_tensor(tensor *t)
{
    int d = gg_dtype_index(t->dtype);
    const int64_t n = gguf_tensor_n_elements(t);
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = rnd_f32();
    if (t->dtype == GGUF_DTYPE_F32)
        memcpy(t->data, x, (size_t)n * sizeof *x);
    else
        kern.codec[d].encode(x, t->data, (size_t)gguf_tensor_n_rows(t),
                             (size_t)t->ne[0], NULL);
    free(x);
}

static void check_product(struct gguf_backend *blas, uint32_t dtype,
                          const int64_t *a_ne, const int64_t *b_ne, int shift)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_error err;
    p.mem_size = (size_t)64 << 20;
    must(gguf_ctx_create(&c, &p, &err), &err);
    tensor *a = gguf_tensor_create(c, dtype, 4, a_ne);
    tensor *b = gguf_tensor_create(c, GGUF_DTYPE_F32, 4, b_ne);
    fill_tensor(a);
    fill_tensor(b);
    if (shift) { /* weights that are not aligned */
        char *moved =
            (char *)gguf_ctx_alloc_work(c, gguf_tensor_size(a) + 8) + 1;
        memcpy(moved, a->data, gguf_tensor_size(a));
        a->data = moved;
    }
    tensor *t = gguf_op_matmul(c, a, b);
    struct gguf_graph *g = gguf_graph_create(c, 4);
    must(gguf_graph_finish(c, g, t, &err), &err);
    must(gguf_backend_compute(blas, g, &err), &err);
    char name[160];
    double worst = worst_of(a, b, t, a_ne[1] > 1000 ? 97 : 1);
    ok(worst < 1, "%s%s: %.3f of the bound of any order of summing",
       gguf_tensor_format(a, name, sizeof name), shift ? ", not aligned" : "",
       worst);
    gguf_ctx_destroy(c);
}

static void check_products(void)
{
    struct gguf_backend *blas;
    struct gguf_blas_params p = GGUF_BLAS_PARAMS_INIT;
    struct gguf_error err;
    p.n_threads = 1;
    must(gguf_blas_backend_create(&blas, &p, &err), &err);
    static const int64_t a1[] = { 256, 65, 1, 1 }, b1[] = { 256, 33, 1, 1 };
    static const int64_t a2[] = { 64, 40, 2, 3 }, b2[] = { 64, 32, 4, 6 };
    /* two panels and a rest of one row */
    static const int64_t a3[] = { 512, 8193, 1, 1 }, b3[] = { 512, 32, 1, 1 };
    check_product(blas, GGUF_DTYPE_F32, a1, b1, 0);
    check_product(blas, GGUF_DTYPE_F32, a1, b1, 1);
    check_product(blas, GGUF_DTYPE_F32, a2, b2, 0);
    check_product(blas, GGUF_DTYPE_F16, a1, b1, 1);
    check_product(blas, GGUF_DTYPE_F16, a2, b2, 0);
    check_product(blas, GGUF_DTYPE_Q8_0, a2, b2, 0);
    check_product(blas, GGUF_DTYPE_Q4_K, a1, b1, 0);
    check_product(blas, GGUF_DTYPE_Q4_K, a3, b3, 0);
    gguf_backend_destroy(blas);
}

/* --- refused operations -------------------------------------------------- */

static void check_refusals(void)
{
    struct gguf_backend *blas;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_error err;
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    must(gguf_blas_backend_create(&blas, NULL, &err), &err);
    must(gguf_ctx_create(&c, &p, &err), &err);
    tensor *w = gguf_tensor_create_2d(c, GGUF_DTYPE_F16, 64, 64);
    tensor *x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 64, 64);
    tensor *few = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 64, 31);
    tensor *thin = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 31, 64);
    ok(gguf_backend_supports_op(blas, gguf_op_matmul(c, w, x)) &&
           gguf_backend_supports_op(blas, gguf_op_reshape_1d(c, x, 4096)),
       "takes large products, and views");
    ok(!gguf_backend_supports_op(blas, gguf_op_matmul(c, w, few)) &&
           !gguf_backend_supports_op(blas, gguf_op_matmul(c, few, x)) &&
           !gguf_backend_supports_op(blas, gguf_op_matmul(c, thin, thin)),
       "refuses those with a short side");
    tensor *ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 64, 64);
    tensor *many = gguf_tensor_create_3d(c, GGUF_DTYPE_F16, 64, 64, 2);
    tensor *sum = gguf_op_add(c, x, x);
    ok(!gguf_backend_supports_op(blas, sum) &&
           !gguf_backend_supports_op(
               blas,
               gguf_op_matmul_id(c, many, gguf_op_reshape_3d(c, x, 64, 1, 64),
                                 gguf_op_view_2d(c, ids, 1, 64, 256, 0))),
       "refuses everything else");
    must(gguf_ctx_status(c, &err), &err);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    static char memory[3 << 14];
    x->data = memory;
    sum->data = memory + (1 << 14);
    must(gguf_graph_finish(c, g, sum, &err), &err);
    ok(gguf_backend_compute(blas, g, &err) == GGUF_E_OP, "%s", err.message);
    gguf_ctx_destroy(c);
    gguf_backend_destroy(blas);
}

static bool stop_always(void *user)
{
    (void)user;
    return 1;
}

static void check_abort(void)
{
    struct gguf_driver *d;
    struct gguf_backend *blas;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_error err;
    p.mem_size = 1 << 16;
    must(gguf_blas_driver_create(&d, NULL, &err), &err);
    must(gguf_device_create_backend(gguf_driver_device(d, 0), &blas, &err),
         &err);
    must(gguf_ctx_create(&c, &p, &err), &err);
    tensor *x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 32, 32);
    tensor *t = gguf_op_matmul(c, x, x);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    fill_tensor(x);
    must(gguf_graph_finish(c, g, t, &err), &err);
    gguf_cpu_set_abort_fn *set =
        (gguf_cpu_set_abort_fn *)gguf_driver_find_function(d, "set_abort");
    const struct gguf_abort_callback always = { stop_always, NULL };
    const struct gguf_abort_callback never = { NULL, NULL };
    ok(!set(blas, always, &err) &&
           gguf_backend_compute(blas, g, &err) == GGUF_E_CANCELLED,
       "%s", err.message);
    ok(!set(blas, never, &err) &&
           gguf_backend_compute(blas, g, &err) == GGUF_OK,
       "and goes on");
    gguf_ctx_destroy(c);
    gguf_backend_destroy(blas);
    gguf_driver_destroy(d);
}

/* --- with others ---------------------------------------------------------- */

static bool close_to(const tensor *a, const tensor *b)
{
    static float x[1 << 14], y[1 << 14];
    struct gguf_error err;
    const uint64_t size = gguf_tensor_size(a);
    double diff = 0, all = 0;
    must(gguf_tensor_get(a, x, 0, size, &err), &err);
    must(gguf_tensor_get(b, y, 0, size, &err), &err);
    for (size_t i = 0; i < size / sizeof *x; i++) {
        if (isnan(x[i]) ? isnan(y[i]) : isinf(x[i]) && x[i] == y[i])
            continue; /* masks and their views */
        diff += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        all += (double)x[i] * x[i];
    }
    return diff <= 1e-8 * all;
}

/* Graphs whose products have few columns; here the backend takes products from
 * two columns on. With host memory BLAS and the CPU alternate; with memory of
 * its own BLAS gets copies. own: a fake backend with closed memory stands
 * between them. */
static void check_graphs(int n_graphs, uint64_t seed, bool own)
{
    static struct fake_backend is;
    struct gguf_backend *blas, *cpu;
    struct gguf_sched *alone, *s;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_blas_params bp = GGUF_BLAS_PARAMS_INIT;
    struct gguf_error err;
    int differ = 0, n_by_blas = 0;
    bp.own_memory = own;
    bp.min_size = 2;
    must(gguf_blas_backend_create(&blas, &bp, &err), &err);
    must(fake_backend_init(&is, "A", true, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { blas, &is.backend, cpu };
    p.backends = all + 2;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    p.backends = all;
    p.n_backends = 3;
    for (int k = 0; k < n_graphs; k++) {
        const struct gguf_buft *host[4], *home[4];
        const uint64_t x = seed + (uint64_t)k;
        tap_rng = x * UINT64_C(0x2545F4914F6CDD1D) | 1;
        fake_backend_refuse(&is, rnd64());
        for (int i = 0; i < 4; i++) {
            host[i] = gguf_host_buft();
            home[i] = i == 3 ? host[i] : gguf_backend_buft(all[rnd_below(3)]);
            if (home[i] == &is.buft) /* the holder of weights must read them */
                is.refuses[GGUF_OP_MATMUL] = false;
        }
        for (int i = 0; own && i < 3; i++) /* all products run on it */
            if (home[i] == gguf_backend_buft(blas))
                home[i] = host[i];
        struct random_graph one = random_graph_make(x, host),
                            many = random_graph_make(x, home);
        p.n_copies = 1 + (unsigned)k % 3;
        must(gguf_sched_create(&s, &p, &err), &err);
        random_graph_run(alone, &one, x);
        random_graph_run(s, &many, x);
        for (size_t i = 0; i < gguf_graph_n_nodes(many.graph); i++) {
            const tensor *t = gguf_graph_node(many.graph, i);
            n_by_blas +=
                t->op == GGUF_OP_MATMUL && gguf_sched_find_backend(s, t) == 0;
        }
        bool same = close_to(one.cache, many.cache);
        for (int i = 0; i < one.n_out; i++)
            if (one.out[i] != one.cache && one.out[i]->view_src != one.cache)
                same = same && close_to(one.out[i], many.out[i]);
        differ += !same;
        gguf_sched_destroy(s);
        random_graph_free(&one);
        random_graph_free(&many);
    }
    ok(!differ,
       "%d random graphs over BLAS in %s memory, a closed backend and "
       "the CPU: %d differ",
       n_graphs, own ? "its own" : "host", differ);
    ok(n_by_blas > n_graphs / 4, "BLAS had %d products", n_by_blas);
    ok(!is.n_foreign, "none was given memory that it cannot reach");
    gguf_sched_destroy(alone);
    for (int i = 0; i < 3; i++)
        gguf_backend_destroy(all[i]);
}

static void check_failing(void)
{
    struct failalloc fa;
    bool right = true;
    for (unsigned n = 0;; n++) {
        struct gguf_blas_params p = GGUF_BLAS_PARAMS_INIT;
        struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
        struct gguf_backend *b;
        struct gguf_ctx *c = NULL;
        struct gguf_error err;
        cp.allocator = p.allocator = failalloc_init(&fa, n);
        cp.mem_size = 1 << 16;
        enum gguf_status st = gguf_blas_backend_create(&b, &p, &err);
        if (st == GGUF_OK)
            st = gguf_ctx_create(&c, &cp, &err);
        if (st == GGUF_OK) {
            tensor *w = gguf_tensor_create_2d(c, GGUF_DTYPE_F16, 32, 32);
            tensor *x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 32, 32);
            struct gguf_graph *g = gguf_graph_create(c, 8);
            fill_tensor(w);
            fill_tensor(x);
            must(gguf_graph_finish(c, g, gguf_op_matmul(c, w, x), &err), &err);
            st = gguf_backend_compute(b, g, &err);
        }
        gguf_backend_destroy(b);
        gguf_ctx_destroy(c);
        right =
            right && !fa.live && st == (fa.calls > n ? GGUF_E_NOMEM : GGUF_OK);
        if (fa.calls <= n)
            break;
    }
    ok(right && fa.calls > 4, "memory that fails at each of %u calls",
       fa.calls);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 200;
    const uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
    if (!has_blas())
        return done_testing();
    gg_kern_init(&kern, 0);
    gg_codec_kern_set_native_order(kern.codec);
    check_device();
    check_products();
    check_refusals();
    check_abort();
    check_failing();
    check_graphs(n, seed, false);
    check_graphs(n, seed, true);
    return done_testing();
}
