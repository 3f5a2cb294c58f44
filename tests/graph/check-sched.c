/* check-sched.c - the scheduler over backends whose memory is their own
 *
 * The test backend computes what the CPU does, but its memory is closed to the
 * process except while it works or its tensors are set and read: whoever else
 * touches it gets a signal. It refuses operations by chance.
 *
 *     check-sched [GRAPHS [SEED]]
 */
#include "config.h"
#include "backend/backend.h"
#include "gguf/cpu.h"
#include "gguf/sched.h"
#include "tests/tap.h"

#include <sys/mman.h>

typedef struct gguf_tensor tensor;

static void must(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    printf("Bail out! %s\n", err->message);
    exit(1);
}

/* --- a backend with memory of its own ------------------------------------- */

struct island {
    struct gguf_buft buft;
    struct gguf_device device;
    struct gguf_backend backend;
    struct gguf_backend *cpu;  /* does its work */
    uint64_t refuses;          /* bit i: operation i */
    struct gguf_buffer *open[64];
    int n_open;
    int n_foreign;             /* nodes that it was given with far memory */
    int n_nodes;
};

static void protect(struct gguf_buffer *b, int how)
{
    if (b->base && mprotect(b->base, b->size, how))
        exit(99);
}

static void island_free(struct gguf_buffer *b)
{
    struct island *is = b->buft->priv;
    for (int i = 0; i < is->n_open; i++)
        if (is->open[i] == b)
            is->open[i] = is->open[--is->n_open];
    munmap(b->base, b->size);
}

static void island_set(struct gguf_buffer *b, tensor *t, const void *src,
                       uint64_t off, uint64_t size)
{
    protect(b, PROT_READ | PROT_WRITE);
    memcpy((char *)t->data + off, src, (size_t)size);
    protect(b, PROT_NONE);
}

static void island_get(struct gguf_buffer *b, const tensor *t, void *dst,
                       uint64_t off, uint64_t size)
{
    protect(b, PROT_READ);
    memcpy(dst, (const char *)t->data + off, (size_t)size);
    protect(b, PROT_NONE);
}

static void island_memset(struct gguf_buffer *b, tensor *t, uint8_t value,
                          uint64_t off, uint64_t size)
{
    protect(b, PROT_READ | PROT_WRITE);
    memset((char *)t->data + off, value, (size_t)size);
    protect(b, PROT_NONE);
}

static void island_clear(struct gguf_buffer *b, uint8_t value)
{
    protect(b, PROT_READ | PROT_WRITE);
    memset(b->base, value, b->size);
    protect(b, PROT_NONE);
}

static const struct gg_buffer_iface island_buffer = {
    .free = island_free,
    .set = island_set,
    .get = island_get,
    .memset = island_memset,
    .clear = island_clear,
};

static enum gguf_status island_alloc(const struct gguf_buft *buft,
                                     struct gguf_buffer *b, size_t size,
                                     struct gguf_error *err)
{
    struct island *is = buft->priv;
    void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || is->n_open == 64)
        return gg_fail_nomem(err, size);
    b->iface = &island_buffer;
    b->base = p;
    is->open[is->n_open++] = b;
    return GGUF_OK;
}

static bool island_supports(const struct gguf_device *d, const tensor *t)
{
    struct island *is = d->priv;
    return !(is->refuses >> t->op & 1) &&
           gguf_backend_supports_op(is->cpu, t);
}

static bool island_buft(const struct gguf_device *d,
                        const struct gguf_buft *buft)
{
    return buft == d->buft;
}

static const struct gg_device_iface island_device = {
    .supports_op = island_supports,
    .supports_buft = island_buft,
};

static bool is_mine(const struct island *is, const tensor *t)
{
    return t->buffer && t->buffer->buft == &is->buft;
}

static enum gguf_status island_compute(struct gguf_backend *b,
                                       struct gguf_graph *g,
                                       struct gguf_error *err)
{
    struct island *is = b->priv;
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++) {
        const tensor *t = gguf_graph_node(g, i);
        if (gguf_op_name(t->op) && t->op >= GGUF_OP_RESHAPE &&
            t->op <= GGUF_OP_TRANSPOSE)
            continue; /* a view of anything is no access */
        is->n_nodes++;
        is->n_foreign += !is_mine(is, t);
        for (int k = 0; k < GGUF_TENSOR_SRC && t->src[k]; k++)
            is->n_foreign += !is_mine(is, t->src[k]);
    }
    for (int i = 0; i < is->n_open; i++)
        protect(is->open[i], PROT_READ | PROT_WRITE);
    enum gguf_status st = gguf_backend_compute(is->cpu, g, err);
    for (int i = 0; i < is->n_open; i++)
        protect(is->open[i], PROT_NONE);
    return st;
}

static void island_destroy(struct gguf_backend *b)
{
    struct island *is = b->priv;
    gguf_backend_destroy(is->cpu);
}

static const struct gg_backend_iface island_backend = {
    .destroy = island_destroy,
    .compute = island_compute,
};

static void island_init(struct island *is, const char *name)
{
    struct gguf_error err;
    *is = (struct island){ .n_open = 0 };
    must(gguf_cpu_backend_create(&is->cpu, NULL, &err), &err);
    is->buft = (struct gguf_buft){ .name = name,
                                   .alignment = 256,
                                   .max_size = SIZE_MAX,
                                   .device = &is->device,
                                   .priv = is,
                                   .alloc = island_alloc };
    is->device = (struct gguf_device){ .iface = &island_device,
                                       .name = name,
                                       .description = "for tests",
                                       .kind = GGUF_DEVICE_GPU,
                                       .buft = &is->buft,
                                       .priv = is };
    is->backend = (struct gguf_backend){ .iface = &island_backend,
                                         .device = &is->device,
                                         .name = name,
                                         .priv = is };
}

/* --- random graphs -------------------------------------------------------- */

enum { MAX_NODES = 60, ROW = 32 };

struct made {
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    struct gguf_buffer *buffers[4];
    tensor *inputs[3], *weights[3], *cache, *out[MAX_NODES];
    int n_out;
};

static tensor *random_node(struct made *g, tensor **t, int n)
{
    struct gguf_ctx *c = g->ctx;
    tensor *a = t[n - 1 - (int)rnd_below((uint64_t)(n < 6 ? n : 6))];
    tensor *b = t[rnd_below((uint64_t)n)];
    int64_t m = gguf_tensor_n_elements(a);
    switch (rnd_below(12)) {
    case 0:
    case 1:
        return a->ne[0] == ROW ? gguf_op_scale(
                   c, gguf_op_matmul(c, g->weights[rnd_below(3)], a), 0.1f)
                               : gguf_op_tanh(c, a);
    case 2:
    case 3:
        return gguf_tensor_can_repeat(b, a) ? gguf_op_add(c, a, b)
                                            : gguf_op_silu(c, a);
    case 4: return gguf_op_rms_norm(c, a, 1e-3f);
    case 5: return gguf_op_soft_max(c, a, NULL, 1, 0);
    case 6: return gguf_op_reshape_1d(c, gguf_op_cont(c, a), m);
    case 7: return gguf_op_cont(c, gguf_op_transpose(c, a));
    case 8:
        return a->ne[0] > 1 ? gguf_op_view_1d(c, a, a->ne[0] / 2,
                                              (uint64_t)a->nb[0])
                            : gguf_op_relu(c, a);
    case 9:
        if (m <= gguf_tensor_n_elements(g->cache) &&
            a->view_src != g->cache) /* not onto itself */
            return gguf_op_cpy(c, a, gguf_op_view_1d(c, g->cache, m, 0));
        return gguf_op_dup(c, a);
    case 10:
        return m % ROW ? gguf_op_mul(c, a, a)
                       : gguf_op_reshape_2d(c, gguf_op_cont(c, a), ROW,
                                            m / ROW);
    default: return gguf_op_gelu(c, a);
    }
}

static void set_random(tensor *t, uint64_t seed)
{
    static float v[ROW * ROW];
    struct gguf_error err;
    tap_rng = seed;
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        v[i] = rnd_f32();
    if (t->data)
        must(gguf_tensor_set(t, v, 0, gguf_tensor_size(t), &err), &err);
}

/* home[k]: buffer types of the three weights and the cache. */
static struct made make(uint64_t seed, const struct gguf_buft *const *home)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct made g = { .n_out = 0 };
    tensor *t[3 * MAX_NODES];
    int n = 0;
    p.mem_size = 1 << 20;
    p.no_alloc = true;
    must(gguf_ctx_create(&g.ctx, &p, &err), &err);
    for (int k = 0; k < 4; k++) {
        tensor *w = gguf_tensor_2d(g.ctx, GGUF_DTYPE_F32, ROW, k < 3 ? ROW : 8);
        must(gguf_ctx_alloc_tensors(g.ctx, home[k], NULL, &g.buffers[k], &err),
             &err);
        if (k < 3) {
            gguf_buffer_set_usage(g.buffers[k], GGUF_USAGE_WEIGHTS);
            g.weights[k] = w;
        } else {
            g.cache = w;
        }
        set_random(w, seed + (uint64_t)k + 1);
    }
    tap_rng = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    for (int i = 0; i < 3; i++) {
        g.inputs[i] = gguf_tensor_2d(g.ctx, GGUF_DTYPE_F32, ROW,
                                     1 + (int64_t)rnd_below(5));
        t[n++] = gguf_tensor_flag(g.inputs[i], GGUF_TENSOR_INPUT);
    }
    g.graph = gguf_graph_create(g.ctx, 4 * MAX_NODES);
    int n_nodes = 4 + (int)rnd_below(MAX_NODES - 4);
    for (int i = 0; i < n_nodes; i++) {
        t[n] = random_node(&g, t, n);
        if (!rnd_below(6) || i == n_nodes - 1) {
            g.out[g.n_out++] = gguf_tensor_flag(t[n], GGUF_TENSOR_OUTPUT);
            gguf_graph_add(g.graph, t[n]);
        }
        n++;
    }
    must(gguf_graph_finish(g.ctx, g.graph, NULL, &err), &err);
    return g;
}

static void drop(struct made *g)
{
    for (int k = 0; k < 4; k++)
        gguf_buffer_destroy(g->buffers[k]);
    gguf_ctx_destroy(g->ctx);
}

static void run(struct gguf_sched *s, struct made *g, uint64_t seed)
{
    struct gguf_error err;
    set_random(g->cache, seed + 4);
    must(gguf_sched_alloc(s, g->graph, &err), &err);
    for (int i = 0; i < 3; i++)
        set_random(g->inputs[i], seed + 10 + (uint64_t)i);
    must(gguf_sched_compute(s, g->graph, &err), &err);
}

static bool same_tensor(const tensor *a, const tensor *b)
{
    static char x[1 << 16], y[1 << 16];
    struct gguf_error err;
    uint64_t size = gguf_tensor_size(a);
    must(gguf_tensor_get(a, x, 0, size, &err), &err);
    must(gguf_tensor_get(b, y, 0, size, &err), &err);
    return !memcmp(x, y, (size_t)size);
}

static bool same(const struct made *a, const struct made *b)
{
    bool all = same_tensor(a->cache, b->cache);
    for (int i = 0; i < a->n_out; i++)
        if ((a->out[i]->view_src ? a->out[i]->view_src : a->out[i]) !=
            a->cache)
            all = all && same_tensor(a->out[i], b->out[i]);
    return all;
}

static int keep_going(void *user, tensor *t, bool done)
{
    int *n = user;
    *n += done;
    return done || t->op == GGUF_OP_MATMUL;
}

static void check_random(int n_graphs, uint64_t seed)
{
    struct gguf_error err;
    static struct island a, b;
    struct gguf_backend *cpu;
    struct gguf_sched *alone, *s;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    int differ = 0, differ_again = 0, n_asked = 0;
    size_t n_splits = 0, n_copies = 0;
    island_init(&a, "A");
    island_init(&b, "B");
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, &b.backend, cpu };
    p.backends = all + 2;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    for (int k = 0; k < n_graphs; k++) {
        const struct gguf_buft *host[4], *home[4];
        uint64_t x = seed + (uint64_t)k;
        tap_rng = x * UINT64_C(0x2545F4914F6CDD1D) | 1;
        a.refuses = k % 3 ? rnd64() & rnd64() : 0;
        b.refuses = rnd64() & rnd64();
        p.n_backends = 2 + (unsigned)(k & 1);
        p.backends = p.n_backends == 3 ? all : all + 1;
        for (int i = 0; i < 4; i++) {
            host[i] = gguf_host_buft();
            home[i] = gguf_backend_buft(
                p.backends[rnd_below((uint64_t)p.n_backends)]);
            /* who has the cache must be able to write into it */
            if (i == 3 && home[i]->priv)
                ((struct island *)home[i]->priv)->refuses &=
                    ~(UINT64_C(1) << GGUF_OP_CPY);
        }
        struct made one = make(x, host), many = make(x, home);
        must(gguf_sched_create(&s, &p, &err), &err);
        run(alone, &one, x);
        run(s, &many, x);
        differ += !same(&one, &many);
        n_splits += gguf_sched_n_splits(s);
        n_copies += gguf_sched_n_copies(s);
        /* once more, node by node where the callback wants */
        gguf_sched_set_eval(s, keep_going, &n_asked);
        run(s, &many, x);
        differ_again += !same(&one, &many);
        gguf_sched_destroy(s);
        drop(&one);
        drop(&many);
    }
    ok(!differ, "%d random graphs over 2 and 3 backends: the CPU's results",
       n_graphs);
    ok(!differ_again && n_asked > n_graphs,
       "the same with an evaluation callback, called for %d products",
       n_asked);
    ok(!a.n_foreign && !b.n_foreign,
       "no backend was given memory that it cannot reach");
    printf("# %.1f splits and %.1f copies per graph; A computed %d nodes, B "
           "%d\n",
           (double)n_splits / n_graphs, (double)n_copies / n_graphs,
           a.n_nodes, b.n_nodes);
    ok(a.n_nodes > n_graphs && b.n_nodes > n_graphs, "both had work");
    gguf_sched_destroy(alone);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
    gguf_backend_destroy(&b.backend);
}

/* --- by hand -------------------------------------------------------------- */

static int collect(void *user, const char *s, size_t n)
{
    strncat(user, s, n);
    return 0;
}

static int stop(void *user, tensor *t, bool done)
{
    (void)user;
    return t->op == GGUF_OP_RELU && !done;
}

static void check_by_hand(void)
{
    struct gguf_error err;
    static struct island a;
    struct gguf_backend *cpu;
    struct gguf_sched *s;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    static char text[2000];
    island_init(&a, "A");
    a.refuses = UINT64_C(1) << GGUF_OP_SOFT_MAX;
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, cpu };
    p.backends = all;
    p.n_backends = 1;
    ok(gguf_sched_create(&s, &p, &err) == GGUF_E_INVALID && !s, "%s",
       err.message);
    p.n_backends = 2;
    must(gguf_sched_create(&s, &p, &err), &err);
    cp.mem_size = 1 << 16;
    cp.no_alloc = true;
    must(gguf_ctx_create(&c, &cp, &err), &err);
    tensor *w = gguf_tensor_name(gguf_tensor_2d(c, GGUF_DTYPE_F32, 4, 4), "w");
    struct gguf_buffer *b;
    must(gguf_ctx_alloc_tensors(c, &a.buft, NULL, &b, &err), &err);
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    gguf_buffer_clear(b, 0);
    tensor *x = gguf_tensor_name(gguf_tensor_1d(c, GGUF_DTYPE_F32, 4), "x");
    gguf_tensor_flag(x, GGUF_TENSOR_INPUT);
    tensor *y = gguf_op_matmul(c, w, x);
    tensor *sm = gguf_tensor_name(gguf_op_soft_max(c, y, NULL, 1, 0), "sm");
    tensor *z = gguf_op_matmul(c, w, sm);
    tensor *r = gguf_tensor_flag(gguf_op_relu(c, z), GGUF_TENSOR_OUTPUT);
    struct gguf_graph *g = gguf_graph_create(c, 16);
    must(gguf_graph_finish(c, g, r, &err), &err);
    must(gguf_sched_reserve(s, g, &err), &err);
    ok(!y->data && gguf_sched_n_splits(s) == 3 && gguf_sched_n_copies(s) == 3 &&
           gguf_sched_backend_of(s, y) == 0 &&
           gguf_sched_backend_of(s, sm) == 1 &&
           gguf_sched_backend_of(s, r) == 0 &&
           gguf_sched_backend_of(s, x) == 1,
       "weights decide, what is refused goes to the CPU");
    must(gguf_sched_dump(s, collect, text, &err), &err);
    ok(!strcmp(text, "split 0: A, 1 nodes\n  copy 'x' F32 [4]\n"
                     "  matmul F32 [4]\n"
                     "split 1: CPU, 1 nodes\n  copy F32 [4]\n"
                     "  soft_max 'sm' F32 [4]\n"
                     "split 2: A, 2 nodes\n  copy 'sm' F32 [4]\n"
                     "  matmul F32 [4]\n  relu F32 [4]\n"),
       "printed");
    must(gguf_sched_alloc(s, g, &err), &err);
    float v[4] = { 1, 2, 3, 4 };
    must(gguf_tensor_set(x, v, 0, 16, &err), &err);
    must(gguf_sched_compute(s, g, &err), &err);
    must(gguf_tensor_get(r, v, 0, 16, &err), &err);
    ok(v[0] == 0 && v[3] == 0, "computed");
    gguf_sched_set_eval(s, stop, NULL);
    ok(gguf_sched_compute(s, g, &err) == GGUF_E_CANCELLED, "%s", err.message);
    gguf_sched_set_eval(s, NULL, NULL);
    must(gguf_sched_pin(s, r, 1, &err), &err);
    must(gguf_sched_alloc(s, g, &err), &err);
    ok(gguf_sched_backend_of(s, r) == 1 && gguf_sched_n_splits(s) == 4,
       "pinned to the CPU");
    ok(gguf_sched_pin(s, r, 2, &err) == GGUF_E_INVALID, "%s", err.message);
    must(gguf_sched_pin(s, sm, 0, &err), &err);
    ok(gguf_sched_alloc(s, g, &err) == GGUF_E_OP, "%s", err.message);
    gguf_sched_reset(s);
    ok(gguf_sched_n_splits(s) == 0, "reset");
    gguf_sched_destroy(s);
    gguf_buffer_destroy(b);
    gguf_ctx_destroy(c);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
}

/* --- failing memory ------------------------------------------------------- */

struct failing {
    long left, balance;
};

static void *failing_alloc(void *user, size_t size)
{
    struct failing *f = user;
    if (f->left-- <= 0)
        return NULL;
    f->balance++;
    return malloc(size);
}

static void failing_free(void *user, void *ptr)
{
    ((struct failing *)user)->balance--;
    free(ptr);
}

static void check_failing(void)
{
    struct gguf_error err;
    static struct island a;
    struct failing f;
    const struct gguf_allocator mem = { failing_alloc, failing_free, &f };
    struct gguf_backend *cpu;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    bool right = true;
    long n = 0;
    island_init(&a, "A");
    a.refuses = UINT64_C(1) << GGUF_OP_SOFT_MAX | UINT64_C(1) << GGUF_OP_ADD;
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, cpu };
    const struct gguf_buft *home[] = { &a.buft, &a.buft, gguf_host_buft(),
                                       gguf_host_buft() };
    struct made g = make(3, home);
    p.backends = all;
    p.n_backends = 2;
    p.allocator = &mem;
    enum gguf_status st;
    do {
        struct gguf_sched *s;
        f = (struct failing){ n++, 0 };
        st = gguf_sched_create(&s, &p, &err);
        if (st == GGUF_OK)
            st = gguf_sched_pin(s, g.out[0], 1, &err);
        if (st == GGUF_OK)
            st = gguf_sched_reserve(s, g.graph, &err);
        if (st == GGUF_OK)
            st = gguf_sched_alloc(s, g.graph, &err);
        for (int i = 0; st == GGUF_OK && i < 3; i++)
            set_random(g.inputs[i], 1);
        if (st == GGUF_OK)
            st = gguf_sched_compute(s, g.graph, &err);
        /* the graph forgets what the scheduler gave it */
        for (size_t i = 0; i < gguf_graph_n_nodes(g.graph); i++) {
            gguf_graph_node(g.graph, i)->data = NULL;
            gguf_graph_node(g.graph, i)->buffer = NULL;
        }
        for (int i = 0; i < 3; i++) {
            g.inputs[i]->data = NULL;
            g.inputs[i]->buffer = NULL;
        }
        gguf_sched_destroy(s);
        right = right && (st == GGUF_OK || st == GGUF_E_NOMEM) && !f.balance;
    } while (st != GGUF_OK && n < 1000);
    ok(st == GGUF_OK && right && n > 30,
       "memory that fails at the n-th call, for %ld n: a status, no leak",
       n - 1);
    drop(&g);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
}

int main(int argc, char **argv)
{
    check_by_hand();
    check_failing();
    check_random(argc > 1 ? atoi(argv[1]) : 1000,
                 argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    return done_testing();
}
