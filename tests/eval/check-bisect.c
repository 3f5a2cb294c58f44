/* SPDX-License-Identifier: MIT */
/* check-bisect.c - exchanging weights of a model for the base's gives the
 * figures of files with these weights */
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

static const struct gen_spec spec = { GEN_LAYERS(2), .n_vocab = V };
static const char bad[] = "blk.1.ffn_down.weight"; /* all zeros in the model */
static bool coarse; /* true: no weight is bad, and all have few bits */
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

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* A file with the base's weights in F32 (base), or the model's in F16 with the
 * n named weights taken from the base. n 0: the model itself. */
static struct file make_model(bool base, const char *const *names, size_t n)
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
            if (base || is_one_of(t->name, names, n))
                continue;
            if (coarse)
                *x = rintf(*x * 64) / 64;
            else if (!strcmp(t->name, bad))
                *x = 0;
            else if (t->n_dims > 1)
                *x = gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(*x));
        }
        t->values = values[i];
    }
    f.data =
        gen_file(&g, base || n ? GGUF_DTYPE_F32 : GGUF_DTYPE_F16, &f.size);
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

/* Divergence of a file from the base, by gguf_kld alone. */
static struct gguf_figure divergence_of(struct file q, struct file b)
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

static bool same_figure(struct gguf_figure a, struct gguf_figure b)
{
    return a.value == b.value && a.error == b.error;
}

/* ---- a run ---- */

struct how {
    unsigned n_threads;
    uint32_t n_seq;
    size_t max_weights;
    size_t stop_after; /* 0: do not stop */
    double seconds;
    enum gguf_bisect_grouping by;
};
struct seen {
    size_t n, stop_after;
    bool in_order; /* groups were measured in the order of suspicion */
    double last;
};

static bool on_done(void *user, const struct gguf_bisect *b,
                    const struct gguf_bisect_entry *entry, size_t n_done,
                    size_t n_all)
{
    struct seen *s = user;
    if (!entry) {
        s->in_order = n_done == 0 && gguf_bisect_kld(b).value > 0;
        s->last = INFINITY;
        return false;
    }
    s->in_order = s->in_order && entry->suspicion <= s->last &&
                  entry->measured && n_done == ++s->n && n_done <= n_all;
    s->last = entry->suspicion;
    return s->stop_after && s->n == s->stop_after;
}

static struct gguf_bisect *bisect_models(struct file q, struct file b,
                                         struct how how, struct seen *seen,
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
    p.by = how.by;
    p.on_done.fn = on_done;
    p.on_done.user = seen;
    bool good = open_run(&rq, q, how.n_threads, how.n_seq, NULL);
    good = open_run(&rb, b, how.n_threads, how.n_seq, a) && good;
    sp.pool = rq.pool;
    *err = rb.err;
    if (good)
        good = !gguf_bisect_run(&out, rq.model, rq.session, rb.session, text,
                                N, &p, err);
    if (good && after) { /* the model must have its own weights again */
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
    struct gguf_bisect *x = bisect_models(
        q, b, (struct how){ 2, 2, 0, 0, 0, 0 }, &seen, NULL, &after, &err);
    const struct gguf_bisect_entry *first = x ? gguf_bisect_entry(x, 0) : NULL;
    const struct gguf_figure whole = divergence_of(q, b);
    size_t n_same = 0;
    ok(x && first && !strcmp(first->name, bad) && first->gain > 0,
       "the weight that is at fault comes first: %s%s",
       first ? first->name : "", x ? "" : err.message);
    if (!x)
        return;
    ok(same_figure(gguf_bisect_kld(x), whole) && same_figure(after, whole),
       "the model's divergence, before and after: %.9g", whole.value);
    ok(seen.n == gguf_bisect_n_entries(x) && seen.in_order &&
           gguf_bisect_n_measured(x) == seen.n &&
           gguf_bisect_n_left_out(x) == 0,
       "all of %zu weights are measured, in the order of suspicion", seen.n);
    bool ordered = true;
    for (size_t i = 0; i < gguf_bisect_n_entries(x); i++) {
        const struct gguf_bisect_entry *e = gguf_bisect_entry(x, i);
        struct file f = make_model(false, &e->name, 1);
        const struct gguf_figure k = divergence_of(f, b);
        const struct gguf_bisect_entry *next = gguf_bisect_entry(x, i + 1);
        n_same += same_figure(k, e->kld) && e->gain == whole.value - k.value &&
                  e->dtype == GGUF_DTYPE_F16 &&
                  e->base_dtype == GGUF_DTYPE_F32 &&
                  e->base_size == 2 * e->size;
        if (!same_figure(k, e->kld))
            printf("# %s: %.17g, not %.17g\n", e->name, e->kld.value, k.value);
        ordered = ordered && (!next || e->gain / (double)e->size >=
                                           next->gain / (double)next->size);
        free(f.data);
    }
    ok(n_same == gguf_bisect_n_entries(x),
       "every figure is that of a file with the base's weight");
    ok(ordered, "in the order of gain for each byte");
    gguf_bisect_destroy(x);
}

static void check_same(struct file q, struct file b,
                       enum gguf_bisect_grouping by)
{
    const struct how hows[] = { { 1, 1, 0, 0, 0, by }, { 3, 3, 0, 0, 0, by } };
    struct gguf_bisect *x[2];
    struct gguf_error err;
    struct seen seen;
    for (int i = 0; i < 2; i++)
        x[i] = bisect_models(q, b, hows[i], &seen, NULL, NULL, &err);
    bool good = x[0] && x[1] &&
                gguf_bisect_n_entries(x[0]) == gguf_bisect_n_entries(x[1]);
    for (size_t i = 0; good && i < gguf_bisect_n_entries(x[0]); i++) {
        const struct gguf_bisect_entry *p = gguf_bisect_entry(x[0], i);
        const struct gguf_bisect_entry *r = gguf_bisect_entry(x[1], i);
        good = !strcmp(p->name, r->name) && p->suspicion == r->suspicion &&
               same_figure(p->kld, r->kld);
    }
    ok(good, "the same digits with other threads and other batches (%d)",
       (int)by);
    gguf_bisect_destroy(x[0]);
    gguf_bisect_destroy(x[1]);
}

/* ---- groups ---- */

enum { MOST = 64 };

/* Check entry i: figures, types, name. *f: a file with the base's weights of
 * this group. */
static bool is_group(const struct gguf_bisect *x, size_t i,
                     enum gguf_bisect_grouping by, struct file *f)
{
    const struct gguf_bisect_entry *e = gguf_bisect_entry(x, i);
    const char *names[MOST];
    char name[MOST];
    uint64_t size = 0, base_size = 0;
    double suspicion = 0, last = INFINITY;
    bool good = true;
    size_t n_f16 = 0;
    for (size_t k = 0; k < e->n_weights; k++) {
        const struct gguf_bisect_weight *w = gguf_bisect_weight(x, i, k);
        unsigned layer;
        int at = 0;
        names[k] = w->name;
        size += w->size;
        base_size += w->base_size;
        suspicion += w->suspicion;
        snprintf(name, sizeof name, "%s", w->name);
        if (by != GGUF_BISECT_HALVES &&
            sscanf(w->name, "blk.%u.%n", &layer, &at) == 1 && at) {
            if (by == GGUF_BISECT_KIND)
                snprintf(name, sizeof name, "blk.*.%s", w->name + at);
            else
                snprintf(name, sizeof name, "blk.%u.*", layer);
        }
        n_f16 += w->dtype == GGUF_DTYPE_F16;
        good = good && w->suspicion <= last &&
               (!strcmp(name, e->name) || (by == GGUF_BISECT_HALVES && k));
        last = w->suspicion;
    }
    *f = make_model(false, names, e->n_weights);
    return good && !gguf_bisect_weight(x, i, e->n_weights) &&
           e->dtype == (n_f16 == e->n_weights ? GGUF_DTYPE_F16
                        : n_f16               ? UINT32_MAX
                                              : GGUF_DTYPE_F32) &&
           e->base_dtype == GGUF_DTYPE_F32 && size == e->size &&
           base_size == e->base_size &&
           fabs(suspicion - e->suspicion) <= 1e-12 * suspicion;
}

/* Measure groups of kind `by'. n: number of groups expected; 0: any. */
static void check_groups(struct file q, struct file b,
                         enum gguf_bisect_grouping by, size_t n)
{
    struct gguf_error err;
    struct seen seen;
    struct gguf_figure after;
    struct gguf_bisect *x = bisect_models(
        q, b, (struct how){ 1, 2, 0, 0, 0, by }, &seen, NULL, &after, &err);
    const double whole = x ? gguf_bisect_kld(x).value : 0;
    size_t n_weights = 0, n_halved = 0, n_same = 0;
    bool good = x && (!n || gguf_bisect_n_entries(x) == n);
    for (size_t i = 0; good && i < gguf_bisect_n_entries(x); i++) {
        const struct gguf_bisect_entry *e = gguf_bisect_entry(x, i);
        struct file f;
        if (!e->measured || !is_group(x, i, by, &f)) {
            good = false;
            break;
        }
        const struct gguf_figure k = divergence_of(f, b);
        n_same += same_figure(k, e->kld) && e->gain == whole - k.value;
        n_halved += e->halved;
        n_weights += e->halved ? 0 : e->n_weights;
        good = e->halved == (n_halved > 0) && (!e->halved || e->gain > 0);
        free(f.data);
    }
    ok(good && n_weights == gguf_bisect_n_weights(x) && seen.n &&
           (by == GGUF_BISECT_HALVES) == (n_halved > 0) &&
           gguf_bisect_n_measured(x) == gguf_bisect_n_entries(x),
       "groups of kind %d: %zu, %zu halved, with %zu weights, each in one",
       (int)by, x ? gguf_bisect_n_entries(x) : 0, n_halved, n_weights);
    ok(x && n_same == gguf_bisect_n_entries(x) &&
           same_figure(after, gguf_bisect_kld(x)),
       "whose figures are those of files with the base's weights");
    gguf_bisect_destroy(x);
}

/* The half with the larger gain is divided first. An unknown kind of groups is
 * refused. */
static void check_halves(struct file q, struct file b)
{
    struct gguf_error err;
    struct seen seen;
    struct gguf_bisect *x =
        bisect_models(q, b, (struct how){ 1, 1, 2, 0, 0, GGUF_BISECT_HALVES },
                      &seen, NULL, NULL, &err);
    const struct gguf_bisect_entry *e = x ? gguf_bisect_entry(x, 0) : NULL;
    double first = 0, second = 0;
    for (size_t i = 0; e && i < e->n_weights; i++)
        first += gguf_bisect_weight(x, 0, i)->suspicion;
    for (size_t i = 0; e && i < gguf_bisect_entry(x, 1)->n_weights; i++)
        second += gguf_bisect_weight(x, 1, i)->suspicion;
    ok(e && gguf_bisect_n_entries(x) == 2 && gguf_bisect_n_measured(x) == 2 &&
           !strcmp(gguf_bisect_weight(x, 0, 0)->name, bad) && first >= second,
       "two halves of the suspicion, %.3g and %.3g", first, second);
    gguf_bisect_destroy(x);
    x = bisect_models(q, b,
                      (struct how){ 1, 1, 0, 0, 0, GGUF_BISECT_HALVES + 1 },
                      &seen, NULL, NULL, &err);
    ok(!x && err.status == GGUF_E_INVALID, "no such groups");
    gguf_bisect_destroy(x);
}

static void check_ends(struct file q, struct file b)
{
    struct gguf_error err;
    struct seen seen;
    struct gguf_figure after;
    struct gguf_bisect *x = bisect_models(
        q, b, (struct how){ 1, 1, 3, 0, 0, 0 }, &seen, NULL, NULL, &err);
    bool good =
        x && gguf_bisect_n_measured(x) == 3 && gguf_bisect_n_entries(x) > 5;
    for (size_t i = 0; good && i < gguf_bisect_n_entries(x); i++)
        good = gguf_bisect_entry(x, i)->measured == (i < 3) &&
               (i < 3 || i + 1 == gguf_bisect_n_entries(x) ||
                gguf_bisect_entry(x, i)->suspicion >=
                    gguf_bisect_entry(x, i + 1)->suspicion);
    ok(good, "three weights, and the others in the order of suspicion");
    gguf_bisect_destroy(x);
    x = bisect_models(q, b, (struct how){ 1, 1, 0, 2, 0, 0 }, &seen, NULL,
                      &after, &err);
    ok(x && gguf_bisect_n_measured(x) == 2 &&
           same_figure(after, gguf_bisect_kld(x)),
       "a callback ends it");
    gguf_bisect_destroy(x);
    x = bisect_models(q, b, (struct how){ 1, 1, 0, 0, 1e-9, 0 }, &seen, NULL,
                      NULL, &err);
    ok(!x && err.status == GGUF_E_CANCELLED, "no time at all");
    gguf_bisect_destroy(x);
    x = bisect_models(q, q, (struct how){ 1, 1, 0, 0, 0, 0 }, &seen, NULL,
                      NULL, &err);
    ok(x && gguf_bisect_n_entries(x) == 0 && gguf_bisect_kld(x).value == 0,
       "nothing differs from itself");
    gguf_bisect_destroy(x);
}

/* ---- suspicion, by a loop ---- */

struct inputs {
    const char *name;
    double e[E]; /* squared errors */
};

static bool wants_node(void *user, const struct gguf_tensor *t)
{
    return !strcmp(t->name, ((const struct inputs *)user)->name);
}

static bool see_node(void *user, struct gguf_tensor *t)
{
    struct inputs *in = user;
    for (int64_t k = 0; k < t->ne[1]; k++)
        for (int i = 0; i < E; i++) {
            const double x = ((const float *)t->data)[k * E + i];
            in->e[i] += x * x;
        }
    return false;
}

static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    (void)graph;
    const struct gguf_sched_eval eval = { wants_node, see_node, user };
    return gguf_sched_set_eval(sched, eval, NULL) != GGUF_OK;
}

static const float *weights_of(const struct gguf_file *f, const char *name,
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
    bool want[CTX];
    double d2 = 0, b2 = 0;
    p.n_ctx = CTX;
    p.on_graph.fn = on_graph;
    p.on_graph.user = &in;
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
    const float *w = good ? weights_of(r.file, name, &n) : NULL;
    for (size_t i = 0; good && i < n; i++) {
        const double x = w[i],
                     y = gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(w[i]));
        d2 += (x - y) * (x - y) * in.e[i % E];
        b2 += x * x * in.e[i % E];
    }
    run_close(&r);
    struct gguf_bisect *x = bisect_models(
        q, b, (struct how){ 1, 1, 1, 0, 0, 0 }, &seen, NULL, NULL, &err);
    double got = NAN;
    for (size_t i = 0; x && i < gguf_bisect_n_entries(x); i++)
        if (!strcmp(gguf_bisect_entry(x, i)->name, name))
            got = gguf_bisect_entry(x, i)->suspicion;
    ok(good && fabs(got - d2 / b2) < 1e-6 * got,
       "suspicion: %.9g, by a loop %.9g", got, d2 / b2);
    gguf_bisect_destroy(x);
}

/* Allocations of a run fail: each of the first ones, then a sample. */
static void check_memory(struct file q, struct file b, int by)
{
    struct gguf_error err;
    struct seen seen;
    struct failalloc fa;
    const size_t most = by == GGUF_BISECT_HALVES ? 2 : 1;
    const unsigned step = by == GGUF_BISECT_WEIGHT ? 7 : 23;
    unsigned n = 0, n_bad = 0;
    for (; n < 4000; n += n < 40 ? 1 : step) {
        const struct gguf_allocator *a = failalloc_init(&fa, n);
        (void)bisect_models(
            q, b,
            (struct how){ 1, 1, most, 0, 0, (enum gguf_bisect_grouping)by },
            &seen, a, NULL, &err);
        n_bad += fa.live != 0 || (fa.calls > n && err.status != GGUF_E_NOMEM);
        if (fa.calls <= n)
            break;
    }
    ok(!n_bad && n > 20 && n < 4000,
       "whichever of %u allocations fails, by %d", n, by);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        text[i] = i * 37 % V;
    struct file b = make_model(true, NULL, 0), q = make_model(false, NULL, 0);
    check_figures(q, b);
    check_same(q, b, GGUF_BISECT_WEIGHT);
    check_groups(q, b, GGUF_BISECT_KIND, 2 + 7);
    check_groups(q, b, GGUF_BISECT_LAYER, 2 + 2);
    check_halves(q, b);
    coarse = true;
    struct file few = make_model(false, NULL, 0);
    check_groups(few, b, GGUF_BISECT_HALVES, 0);
    check_same(few, b, GGUF_BISECT_HALVES);
    coarse = false;
    free(few.data);
    check_ends(q, b);
    check_suspicion(q, b);
    for (int by = GGUF_BISECT_WEIGHT; by <= GGUF_BISECT_HALVES; by++)
        check_memory(q, b, by);
    free(b.data);
    free(q.data);
    return done_testing();
}
