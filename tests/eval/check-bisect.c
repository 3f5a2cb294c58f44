/* check-bisect.c - weights of a base put into a model: against files that have
 * them
 */
#include "config.h"
#include "base/compiler.h"
#include "dtype/f16.h"
#include "gguf/bisect.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>

enum { CTX = 16, CHUNKS = 3, V = 200, N = CTX * CHUNKS + 3, E = 32 };

static const struct gen_spec spec = {
    .arch = "llama",
    .n_vocab = V,
    .n_ctx = 64,
    .n_embd = E,
    .n_layer = 2,
    .n_ff = 64,
    .n_head = 4,
    .n_head_kv = 2,
    .eps = 1e-5f,
    .freq_base = 10000,
};
static const char bad[] = "blk.1.ffn_down.weight"; /* all 0 in the model */
static gguf_token text[N];

/* ---- files ---- */

struct file {
    void *data;
    size_t size;
};

static size_t n_elements(const struct gen_tensor *t)
{
    return (size_t)(t->ne[0] * (t->n_dims > 1 ? t->ne[1] : 1));
}

/* The model: F16, but for the bad one. In F32, with the weights of name those
 * of the base: what an exchange should be as. name "": none of them. */
static struct file make(bool base, const char *name)
{
    static float values[64][V * E];
    struct file f;
    struct gen g;
    gen_init(&g, 11);
    gen_model(&g, &spec);
    for (size_t i = 0; i < g.n; i++) {
        struct gen_tensor *t = &g.t[i];
        gen_weights(values[i], &g, t);
        for (size_t k = 0; k < n_elements(t); k++) {
            float *x = &values[i][k];
            if (base || (name && !strcmp(t->name, name)))
                continue;
            *x = !strcmp(t->name, bad) ? 0
                 : t->n_dims > 1 ? gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(*x))
                                 : *x;
        }
        t->values = values[i];
    }
    f.data =
        gen_file(&g, base || name ? GGUF_DTYPE_F32 : GGUF_DTYPE_F16, &f.size);
    gen_fini(&g);
    return f;
}

static bool open_run(struct run *r, struct file f, unsigned n_threads,
                     uint32_t n_seq, const struct gguf_allocator *a)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.allocator = a;
    p.n_ctx = CTX;
    p.n_seq = n_seq;
    return run_open(r, f.data, f.size, n_threads, &p);
}

/* Divergence of a file from the base, without all this. */
static struct gguf_figure divergence(struct file q, struct file b)
{
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_kld_stats s = GGUF_KLD_STATS_INIT;
    struct gguf_scan_params sp = GGUF_SCAN_PARAMS_INIT;
    struct gguf_kld *k = NULL;
    struct run rq, rb;
    struct gguf_error err;
    sp.n_ctx = CTX;
    bool good = open_run(&rq, q, 1, 1, NULL);
    good = open_run(&rb, b, 1, 1, NULL) && good &&
           !gguf_kld_create(&k, &kp, &err);
    if (good) {
        struct gguf_session *const both[] = { rb.session, rq.session };
        const struct gguf_sink *const sinks[] = { gguf_kld_sink(k) };
        good = !gguf_scan_run_models(both, 2, text, N, &sp, sinks, 1, &err) &&
               !gguf_kld_means(k, &s, &err);
    }
    gguf_kld_destroy(k);
    run_close(&rq);
    run_close(&rb);
    return good ? s.kld : (struct gguf_figure){ NAN, NAN };
}

static bool same(struct gguf_figure a, struct gguf_figure b)
{
    return a.value == b.value && a.error == b.error;
}

/* ---- a run ---- */

struct how {
    unsigned n_threads;
    uint32_t n_seq;
    size_t max_weights;
    size_t stop_after; /* 0: not */
    double seconds;
};
struct seen {
    size_t n, stop_after;
    bool in_order; /* of suspicion */
    double last;
};

static int on_done(void *user, const struct gguf_bisect *b,
                   const struct gguf_bisect_entry *entry, size_t n_done,
                   size_t n_all)
{
    struct seen *s = user;
    if (!entry) {
        s->in_order = n_done == 0 && gguf_bisect_kld(b).value > 0;
        s->last = INFINITY;
        return 0;
    }
    s->in_order = s->in_order && entry->suspicion <= s->last &&
                  entry->measured && n_done == ++s->n && n_done <= n_all;
    s->last = entry->suspicion;
    return s->stop_after && s->n == s->stop_after;
}

static struct gguf_bisect *bisect(struct file q, struct file b, struct how how,
                                  struct seen *seen,
                                  const struct gguf_allocator *a,
                                  struct gguf_figure *after,
                                  struct gguf_error *err)
{
    struct gguf_bisect_params p = GGUF_BISECT_PARAMS_INIT;
    struct gguf_scan_params sp = GGUF_SCAN_PARAMS_INIT;
    struct gguf_bisect *out = NULL;
    struct run rq, rb;
    *seen = (struct seen){ .stop_after = how.stop_after };
    sp.n_ctx = CTX;
    p.allocator = a;
    p.scan = &sp;
    p.max_weights = how.max_weights;
    p.seconds = how.seconds;
    p.on_done = on_done;
    p.user = seen;
    bool good = open_run(&rq, q, how.n_threads, how.n_seq, NULL);
    good = open_run(&rb, b, how.n_threads, how.n_seq, a) && good;
    sp.pool = rq.pool;
    *err = rb.err;
    if (good)
        good = !gguf_bisect_run(&out, rq.model, rq.session, rb.session, text,
                                N, &p, err);
    if (good && after) { /* is the model as it was? */
        struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
        struct gguf_kld_stats s = GGUF_KLD_STATS_INIT;
        struct gguf_kld *k = NULL;
        struct gguf_session *const both[] = { rb.session, rq.session };
        good = !gguf_kld_create(&k, &kp, err);
        const struct gguf_sink *const sinks[] = { gguf_kld_sink(k) };
        good = good &&
               !gguf_scan_run_models(both, 2, text, N, &sp, sinks, 1, err) &&
               !gguf_kld_means(k, &s, err);
        gguf_kld_destroy(k);
        *after = s.kld;
    }
    if (a) {
        gguf_bisect_destroy(out);
        out = NULL;
    }
    run_close(&rq);
    run_close(&rb);
    return out;
}

static void check_figures(struct file q, struct file b)
{
    struct gguf_error err;
    struct seen seen;
    struct gguf_figure after = { 0, 0 };
    struct gguf_bisect *x =
        bisect(q, b, (struct how){ 2, 2, 0, 0, 0 }, &seen, NULL, &after, &err);
    const struct gguf_bisect_entry *first = x ? gguf_bisect_at(x, 0) : NULL;
    const struct gguf_figure whole = divergence(q, b);
    size_t n_same = 0;
    ok(x && first && !strcmp(first->name, bad) && first->gain > 0,
       "the weight that is at fault comes first: %s%s",
       first ? first->name : "", x ? "" : err.message);
    if (!x)
        return;
    ok(same(gguf_bisect_kld(x), whole) && same(after, whole),
       "the model's divergence, before and after: %.9g", whole.value);
    ok(seen.n == gguf_bisect_n(x) && seen.in_order &&
           gguf_bisect_n_measured(x) == seen.n &&
           gguf_bisect_n_left_out(x) == 0,
       "all of %zu weights are measured, in the order of suspicion", seen.n);
    bool ordered = true;
    for (size_t i = 0; i < gguf_bisect_n(x); i++) {
        const struct gguf_bisect_entry *e = gguf_bisect_at(x, i);
        struct file f = make(false, e->name);
        const struct gguf_figure k = divergence(f, b);
        const struct gguf_bisect_entry *next = gguf_bisect_at(x, i + 1);
        n_same += same(k, e->kld) && e->gain == whole.value - k.value &&
                  e->dtype == GGUF_DTYPE_F16 &&
                  e->base_dtype == GGUF_DTYPE_F32 &&
                  e->base_size == 2 * e->size;
        if (!same(k, e->kld))
            printf("# %s: %.17g, not %.17g\n", e->name, e->kld.value, k.value);
        ordered = ordered && (!next || e->gain / (double)e->size >=
                                           next->gain / (double)next->size);
        free(f.data);
    }
    ok(n_same == gguf_bisect_n(x),
       "every figure is that of a file with the base's weight");
    ok(ordered, "in the order of gain for each byte");
    gguf_bisect_destroy(x);
}

static void check_same(struct file q, struct file b)
{
    static const struct how hows[] = { { 1, 1, 0, 0, 0 }, { 3, 3, 0, 0, 0 } };
    struct gguf_bisect *x[2];
    struct gguf_error err;
    struct seen seen;
    for (int i = 0; i < 2; i++)
        x[i] = bisect(q, b, hows[i], &seen, NULL, NULL, &err);
    bool good = x[0] && x[1] && gguf_bisect_n(x[0]) == gguf_bisect_n(x[1]);
    for (size_t i = 0; good && i < gguf_bisect_n(x[0]); i++) {
        const struct gguf_bisect_entry *p = gguf_bisect_at(x[0], i);
        const struct gguf_bisect_entry *r = gguf_bisect_at(x[1], i);
        good = !strcmp(p->name, r->name) && p->suspicion == r->suspicion &&
               same(p->kld, r->kld);
    }
    ok(good, "the same digits with other threads and other batches");
    gguf_bisect_destroy(x[0]);
    gguf_bisect_destroy(x[1]);
}

static void check_ends(struct file q, struct file b)
{
    struct gguf_error err;
    struct seen seen;
    struct gguf_figure after;
    struct gguf_bisect *x =
        bisect(q, b, (struct how){ 1, 1, 3, 0, 0 }, &seen, NULL, NULL, &err);
    bool good = x && gguf_bisect_n_measured(x) == 3 && gguf_bisect_n(x) > 5;
    for (size_t i = 0; good && i < gguf_bisect_n(x); i++)
        good = gguf_bisect_at(x, i)->measured == (i < 3) &&
               (i < 3 || i + 1 == gguf_bisect_n(x) ||
                gguf_bisect_at(x, i)->suspicion >=
                    gguf_bisect_at(x, i + 1)->suspicion);
    ok(good, "three weights, and the others in the order of suspicion");
    gguf_bisect_destroy(x);
    x = bisect(q, b, (struct how){ 1, 1, 0, 2, 0 }, &seen, NULL, &after, &err);
    ok(x && gguf_bisect_n_measured(x) == 2 && same(after, gguf_bisect_kld(x)),
       "a callback ends it");
    gguf_bisect_destroy(x);
    x = bisect(q, b, (struct how){ 1, 1, 0, 0, 1e-9 }, &seen, NULL, NULL,
               &err);
    ok(!x && err.status == GGUF_E_CANCELLED, "no time at all");
    gguf_bisect_destroy(x);
    x = bisect(q, q, (struct how){ 1, 1, 0, 0, 0 }, &seen, NULL, NULL, &err);
    ok(x && gguf_bisect_n(x) == 0 && gguf_bisect_kld(x).value == 0,
       "nothing differs from itself");
    gguf_bisect_destroy(x);
}

/* ---- suspicion, by a loop ---- */

struct inputs {
    const char *name;
    double e[E]; /* squares */
};

static int on_node(void *user, struct gguf_tensor *t, bool done)
{
    struct inputs *in = user;
    if (!done || strcmp(t->name, in->name) != 0)
        return !strcmp(t->name, in->name);
    for (int64_t k = 0; k < t->ne[1]; k++)
        for (int i = 0; i < E; i++) {
            const double x = ((const float *)t->data)[k * E + i];
            in->e[i] += x * x;
        }
    return 1;
}

static int on_graph(void *user, struct gguf_graph *graph,
                    struct gguf_sched *sched)
{
    (void)graph;
    return gguf_sched_set_eval(sched, on_node, user, NULL) != GGUF_OK;
}

static const float *weights(const struct gguf_file *f, const char *name,
                            size_t *n)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    *n = (size_t)t->n_elements;
    return gguf_file_tensor_data(f, t->index);
}

static void check_suspicion(struct file q, struct file b)
{
    static const char name[] = "blk.1.attn_q.weight";
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch batch = GGUF_BATCH_INIT;
    struct inputs in = { .name = "blk.1.attn_norm" };
    struct gguf_error err;
    struct seen seen;
    struct run r;
    uint8_t want[CTX];
    double d2 = 0, b2 = 0;
    p.n_ctx = CTX;
    p.on_graph = on_graph;
    p.user = &in;
    memset(want, 1, sizeof want);
    bool good = run_open(&r, b.data, b.size, 1, &p);
    batch.n = CTX;
    batch.want = want;
    for (int k = 0; good && k < CHUNKS; k++) {
        batch.token = text + k * CTX;
        good = !gguf_session_clear(r.session, &r.err) &&
               !gguf_session_decode(r.session, &batch, &r.err);
    }
    size_t n;
    const float *w = good ? weights(r.file, name, &n) : NULL;
    for (size_t i = 0; good && i < n; i++) {
        const double x = w[i],
                     y = gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(w[i]));
        d2 += (x - y) * (x - y) * in.e[i % E];
        b2 += x * x * in.e[i % E];
    }
    run_close(&r);
    struct gguf_bisect *x =
        bisect(q, b, (struct how){ 1, 1, 1, 0, 0 }, &seen, NULL, NULL, &err);
    double got = NAN;
    for (size_t i = 0; x && i < gguf_bisect_n(x); i++)
        if (!strcmp(gguf_bisect_at(x, i)->name, name))
            got = gguf_bisect_at(x, i)->suspicion;
    ok(good && fabs(got - d2 / b2) < 1e-6 * got,
       "suspicion: %.9g, by a loop %.9g", got, d2 / b2);
    gguf_bisect_destroy(x);
}

static void check_memory(struct file q, struct file b)
{
    struct gguf_error err;
    struct seen seen;
    struct failalloc fa;
    unsigned n = 0, n_bad = 0;
    for (; n < 4000; n += n < 40 ? 1 : 7) {
        const struct gguf_allocator *a = failalloc_init(&fa, n);
        (void)bisect(q, b, (struct how){ 1, 1, 1, 0, 0 }, &seen, a, NULL,
                     &err);
        n_bad += fa.live != 0 || (fa.calls > n && err.status != GGUF_E_NOMEM);
        if (fa.calls <= n)
            break;
    }
    ok(!n_bad && n > 20 && n < 4000, "whichever of %u allocations fails", n);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        text[i] = i * 37 % V;
    struct file b = make(true, NULL), q = make(false, NULL);
    check_figures(q, b);
    check_same(q, b);
    check_ends(q, b);
    check_suspicion(q, b);
    check_memory(q, b);
    free(b.data);
    free(q.data);
    return done_testing();
}
