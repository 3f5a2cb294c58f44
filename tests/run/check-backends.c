/* SPDX-License-Identifier: MIT */
/* check-backends.c - a model computed by several backends gives the CPU's
 * digits */
#include "config.h"
#include "gguf/model.h"
#include "tests/graph/fake_backend.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"

enum { N_TOK = 40, N_VOCAB = 96 };

static void *make_model(size_t *size)
{
    const struct gen_spec spec = { GEN_WIDE(3), .n_vocab = N_VOCAB };
    void *data = gen_model_file(&spec, 7, GGUF_DTYPE_F16, size);
    return data;
}

/* Decode N_TOK tokens in two batches and read all logits. The first batch
 * grows as large as its scratch needs. */
static void evaluate_text(const void *data, size_t size,
                          const struct gguf_session_params *p, float *out)
{
    struct run r;
    gguf_token tok[N_TOK];
    for (int i = 0; i < N_TOK; i++)
        tok[i] = (i * 37 + 11) % N_VOCAB;
    struct gguf_batch b = { .struct_size = sizeof b,
                            .n = N_TOK - 8,
                            .token = tok };
    bool good = run_open(&r, data, size, 2, p) && run_logits(&r, &b, out);
    b.n = 8;
    b.token = tok + N_TOK - 8;
    good = good && run_logits(&r, &b, out + (N_TOK - 8) * N_VOCAB);
    must(good ? GGUF_OK : r.err.status, &r.err);
    run_close(&r);
}

struct seen {
    int n_graphs, n_nodes, n_far; /* n_far: nodes that the last backend does
                                   * not compute */
    struct gguf_backend *a, *b;   /* compare these two node by node; NULL: do
                                   * not */
    int n_differ;
    struct gguf_error err;
};

static bool compare_node(void *user, size_t i, const tensor *node,
                         const tensor *a, const tensor *b)
{
    struct seen *s = user;
    struct gguf_difference d = GGUF_DIFFERENCE_INIT;
    (void)i;
    (void)node;
    s->n_differ += gguf_tensor_compare(a, b, NULL, &d, &s->err) != GGUF_OK ||
                   d.n_differ != 0;
    return false;
}

static bool see_graph(void *user, struct gguf_graph *g,
                      struct gguf_sched *sched)
{
    struct seen *s = user;
    struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
    s->n_graphs++;
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++) {
        s->n_nodes++;
        s->n_far += gguf_sched_find_backend(sched, gguf_graph_node(g, i)) == 0;
    }
    p.node.fn = compare_node;
    p.node.user = s;
    return s->a && gguf_compare_backends(s->a, s->b, g, &p, NULL, &s->err);
}

static bool refuse_graph(void *user, struct gguf_graph *g,
                         struct gguf_sched *sched)
{
    (void)user;
    (void)g;
    (void)sched;
    return true;
}

static void check_fake_backends(const void *data, size_t size,
                                const float *want)
{
    static float out[N_TOK * N_VOCAB];
    static struct fake_backend a, b;
    struct gguf_error err;
    bool same = true;
    int n_far = 0;
    must(fake_backend_init(&a, "A", true, NULL, &err), &err);
    must(fake_backend_init(&b, "B", false, NULL, &err), &err);
    a.offloads = b.offloads = true;
    struct gguf_backend *const all[] = { &a.backend, &b.backend };
    for (uint64_t k = 0; k < 6; k++) {
        struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
        struct seen s = { .n_graphs = 0 };
        fake_backend_refuse(&a, k * 77);
        fake_backend_refuse(&b, k * 99 + 1);
        p.n_ctx = 64;
        p.n_ubatch = 24;
        p.preferred = all;
        p.n_preferred = 1 + (unsigned)k % 2;
        p.on_graph.fn = see_graph;
        p.on_graph.user = &s;
        memset(out, 0, sizeof out);
        evaluate_text(data, size, &p, out);
        same = same && !memcmp(out, want, sizeof out);
        n_far += s.n_far;
    }
    ok(same, "logits over closed backends: the CPU's bits");
    ok(n_far > 100 && !a.n_foreign && !b.n_foreign && a.n_nodes > 100,
       "which computed %d and %d nodes", a.n_nodes, b.n_nodes);
    gguf_backend_destroy(&a.backend);
    gguf_backend_destroy(&b.backend);
}

static void check_compare(const void *data, size_t size, const float *want)
{
    static float out[N_TOK * N_VOCAB];
    static struct fake_backend a;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_backend *cpu;
    struct gguf_error err;
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct seen s = { .a = cpu, .b = &a.backend };
    p.n_ctx = 64;
    p.on_graph.fn = see_graph;
    p.on_graph.user = &s;
    evaluate_text(data, size, &p, out);
    ok(!s.n_differ && s.n_graphs == 4 && !memcmp(out, want, sizeof out),
       "node by node on two backends, and the evaluation goes on");
    a.wrong = GGUF_OP_ROPE;
    evaluate_text(data, size, &p, out);
    ok(s.n_differ == 2 * 2 * 3, "%d wrong nodes are found, no more",
       s.n_differ);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);

    struct run r;
    gguf_token tok = 1;
    struct gguf_batch b = { .struct_size = sizeof b, .n = 1, .token = &tok };
    p.on_graph.fn = refuse_graph;
    bool opened = run_open(&r, data, size, 1, &p);
    ok(opened && !run_logits(&r, &b, out) && r.err.status == GGUF_E_CANCELLED,
       "%s", r.err.message);
    run_close(&r);
    p.n_preferred = 16;
    ok(!run_open(&r, data, size, 1, &p) && r.err.status == GGUF_E_INVALID,
       "%s", r.err.message);
    run_close(&r);
}

/* Every function that takes a list of backends refuses one with a NULL in it.
 */
static void check_null(const void *data, size_t size)
{
    static struct fake_backend a;
    struct gguf_backend *const list[2] = { &a.backend, NULL };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_session *s;
    struct gguf_error err;
    uint64_t n[2];
    struct run r;
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    bool opened = run_open(&r, data, size, 1, &p);
    must(opened ? GGUF_OK : r.err.status, &r.err);
    p.backend = r.backend;
    p.n_preferred = 2;
    for (int i = 0; i < 2; i++) {
        const char *what =
            i ? "preferred backend 2 of 2 is NULL" : "backend 1 of 2 is NULL";
        p.preferred = i ? list : NULL;
        bool all = true;
        const enum gguf_status st[] = {
            gguf_session_create(&s, r.model, &p, &err),
            gguf_session_estimate_memory(r.model, &p, &n[0], &n[1], &err),
            gguf_session_estimate_peak_memory(r.model, &p, &n[0], &err),
            gguf_model_place_weights(r.model, &p, NULL, &err),
        };
        for (size_t k = 0; k < GG_LEN(st); k++)
            all = all && st[k] == GGUF_E_INVALID;
        ok(all && strstr(err.message, what), "%s", err.message);
    }
    run_close(&r);
    gguf_backend_destroy(&a.backend);
}

/* Record the smallest number of columns of any product in the graphs. */
static bool see_columns(void *user, struct gguf_graph *g,
                        struct gguf_sched *sched)
{
    int64_t *least = user;
    (void)sched;
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++) {
        const tensor *t = gguf_graph_node(g, i);
        if (t->op == GGUF_OP_MATMUL)
            *least = GG_MIN(*least, t->src[1]->ne[1]);
    }
    return false;
}

/* A backend sums fewer than 7 columns in another order. A session that asks
 * for passes of 1 token gets passes of 7, and the last of 10 tokens is padded.
 */
static void check_wide(const void *data, size_t size)
{
    static float out[10 * N_VOCAB];
    static struct fake_backend a;
    struct gguf_backend *const preferred = &a.backend;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    const gguf_token tok[10] = { 5, 1, 5, 2, 6, 3, 9, 8, 7, 4 };
    struct gguf_batch b = { .struct_size = sizeof b, .n = 10, .token = tok };
    int64_t least = INT64_MAX;
    struct gguf_error err;
    struct run r;
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    a.wide = 7;
    p.n_ctx = 64;
    p.n_ubatch = 1;
    p.preferred = &preferred;
    p.n_preferred = 1;
    p.on_graph.fn = see_columns;
    p.on_graph.user = &least;
    bool good = run_open(&r, data, size, 1, &p) && run_logits(&r, &b, out);
    ok(good && gguf_session_n_ubatch(r.session) == 7 && least == 7,
       "a device that needs 7 columns gets them%s", good ? "" : r.err.message);
    run_close(&r);
    a.wide = 0;
    good = run_open(&r, data, size, 1, &p);
    ok(good && gguf_session_n_ubatch(r.session) == 4,
       "of several the largest counts, here the CPU's 4%s",
       good ? "" : r.err.message);
    run_close(&r);
    gguf_backend_destroy(&a.backend);
}

/* A session on two backends with host memory takes no more memory than on one.
 * The second backend computes products only. */
static void check_memory(const void *data, size_t size, const float *want)
{
    static float out[N_TOK * N_VOCAB];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    static struct fake_backend a;
    struct gguf_backend *const other = &a.backend;
    struct gguf_error err;
    uint64_t cache[3], graph[3];
    must(fake_backend_init(&a, "A", true, NULL, &err), &err);
    a.device.buft = gguf_host_buft();
    for (int op = 1; op < GGUF_N_OPS; op++)
        a.refuses[op] = op != GGUF_OP_MATMUL;
    p.n_ctx = 64;
    for (int i = 0; i < 2; i++) {
        struct run r;
        p.preferred = &other;
        p.n_preferred = (unsigned)i;
        bool opened = run_open(&r, data, size, 1, &p);
        must(opened ? GGUF_OK : r.err.status, &r.err);
        gguf_session_memory_size(r.session, &cache[i], &graph[i]);
        p.backend = r.backend;
        must(gguf_session_estimate_memory(r.model, &p, &cache[2], &graph[2],
                                          &err),
             &err);
        run_close(&r);
    }
    evaluate_text(data, size, &p, out);
    ok(cache[0] == cache[1] && graph[0] == graph[1] && cache[2] == cache[1] &&
           graph[2] == graph[1] && !memcmp(out, want, sizeof out) &&
           a.n_nodes > 20,
       "two backends of host memory take %" PRIu64 " bytes, one %" PRIu64
       ", foretold %" PRIu64,
       graph[1], graph[0], graph[2]);
    gguf_backend_destroy(other);
}

static void check_blas(const void *data, size_t size, const float *want)
{
    static float out[N_TOK * N_VOCAB];
    for (int own = 0; own < 2; own++) {
        struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
        struct gguf_blas_params bp = GGUF_BLAS_PARAMS_INIT;
        struct gguf_backend *blas;
        struct gguf_error err;
        struct seen s = { .n_graphs = 0 };
        bp.own_memory = own;
        bp.min_size = 8;
        bp.n_threads = 1;
        if (gguf_blas_backend_create(&blas, &bp, &err) != GGUF_OK) {
            skip("%s", err.message);
            return;
        }
        p.n_ctx = 64;
        p.preferred = &blas;
        p.n_preferred = 1;
        p.on_graph.fn = see_graph;
        p.on_graph.user = &s;
        evaluate_text(data, size, &p, out);
        double nmse = run_nmse(out, want, N_TOK * N_VOCAB);
        ok(nmse < 1e-10 && s.n_far > 20,
           "BLAS in %s memory computes %d nodes, nmse %.1e",
           own ? "its own" : "host", s.n_far, nmse);
        gguf_backend_destroy(blas);
    }
}

int main(void)
{
    static float want[N_TOK * N_VOCAB];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    size_t size;
    void *data = make_model(&size);
    p.n_ctx = 64;
    evaluate_text(data, size, &p, want);
    check_fake_backends(data, size, want);
    check_compare(data, size, want);
    check_memory(data, size, want);
    check_null(data, size);
    check_wide(data, size);
    check_blas(data, size, want);
    free(data);
    return done_testing();
}
