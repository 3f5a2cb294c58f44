/* SPDX-License-Identifier: MIT */
/* bench-pass.c - time of a model's pass, and of each operation in it
 *
 *   bench-pass [-t THREADS] [-c CONTEXT] [-r ROUNDS] [-p PRECISION]
 *              [-k CACHE_TYPE] MODEL...
 *   bench-pass -g TOKENS [-t THREADS] [-p PRECISION] MODEL...
 *
 * For each model: seconds for 512 tokens of a chunk of CONTEXT tokens (512),
 * with logits of the second half as in the evaluation of a text, the best of
 * ROUNDS (3), and the rate as a part of the multiply-add peak. Then a pass is
 * computed node by node: the rate of each operation, its part of the time, and
 * the time that attention takes relative to its part of the arithmetic. Only
 * pairs that the mask leaves open count as arithmetic of attention.
 *
 * With -g: tokens one by one, as when a text is generated, and the bytes of
 * weights read per second as a part of memcpy's.
 *
 * Seconds are processor time divided by the number of threads (1), so that
 * other programs do not count.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/error.h"
#include "graph/op_table.h"
#include "kern/kern.h"
#include "gguf/model.h"
#include "tests/bench/peak.h"
#include "tests/bench/row.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 100, UBATCH = 512 };

struct options {
    unsigned threads, context, rounds, single;
    enum gguf_precision precision;
    uint32_t cache;
};

struct of_op {
    double seconds, steps, elements;
};

struct bench {
    const struct options *o;
    struct gguf_session *s;
    gguf_token *token;
    bool *want;
    double began; /* begin of the current node */
    bool by_node;
    struct of_op op[GGUF_N_OPS];
};

/* Processor time of all threads, the pool's included. */
static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Multiply-adds of an attention node: scores and values of open pairs. */
static double open_steps(const struct gguf_tensor *t)
{
    const struct gguf_tensor *q = t->src[0], *v = t->src[2], *m = t->src[3];
    const double per = (double)(q->ne[0] + v->ne[0]);
    const double rows = (double)(q->ne[1] * q->ne[2] * q->ne[3]);
    double open = 0, all = 0;
    struct gg_codec_kern codec[GG_N_DTYPES];
    if (!m)
        return rows * (double)t->src[1]->ne[1] * per;
    gg_codec_kern_init(codec, 0);
    float *row = malloc((size_t)m->ne[0] * sizeof *row);
    for (int64_t r = 0; row && r < m->ne[1] * m->ne[2] * m->ne[3]; r++) {
        codec[gg_dtype_index(m->dtype)].decode(
            (const char *)m->data + r * m->nb[1], row, (size_t)m->ne[0]);
        for (int64_t i = 0; i < m->ne[0]; i++)
            open += row[i] != -INFINITY;
        all++;
    }
    free(row);
    return all > 0 ? rows * (open / all) * per : 0;
}

static bool begin_node(void *user, const struct gguf_tensor *t)
{
    (void)t;
    ((struct bench *)user)->began = processor_time();
    return true;
}

static bool end_node(void *user, struct gguf_tensor *t)
{
    struct bench *b = user;
    struct of_op *op = &b->op[t->op];
    op->seconds += processor_time() - b->began;
    op->elements += (double)gguf_tensor_n_elements(t);
    op->steps += t->op == GGUF_OP_ATTENTION
                     ? open_steps(t)
                     : (double)gg_op_row(t->op)->cost(t);
    return false;
}

static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    struct bench *b = user;
    (void)graph;
    const struct gguf_sched_eval eval = { b->by_node ? begin_node : NULL,
                                          end_node, b };
    return gguf_sched_set_eval(sched, eval, NULL) != GGUF_OK;
}

/* Compute a chunk and measure its processor time. */
static enum gguf_status run_pass(struct bench *b, double *seconds,
                                 struct gguf_error *err)
{
    struct gguf_batch batch = GGUF_BATCH_INIT;
    const double t0 = processor_time();
    const float *logits;
    batch.n = b->o->context;
    batch.token = b->token;
    batch.want = b->want;
    GG_TRY(gguf_session_clear(b->s, err));
    GG_TRY(gguf_session_decode(b->s, &batch, err));
    const size_t n = gguf_session_n_outputs(b->s),
                 most = gguf_session_max_logits(b->s);
    for (size_t i = 0; i < n; i += most)
        GG_TRY(
            gguf_session_logits(b->s, i, GG_MIN(most, n - i), &logits, err));
    *seconds = (processor_time() - t0) / b->o->threads;
    return GGUF_OK;
}

/* Multiply-adds per second and thread, at the machine's best level. */
static double peak_rate(void)
{
    const uint32_t cpu = gg_kern_cpu_detect();
    unsigned level = 0;
    double best = 0;
    for (unsigned l = 0; l < gg_kern_cpu_n_levels; l++)
        if (cpu & gg_kern_cpu_levels[l].bit)
            level = l + 1;
    for (int i = 0; i < 5; i++) {
        const double t0 = processor_time();
        peak_run(level, 1000000);
        const double t = processor_time() - t0;
        best = GG_MAX(best, 1e6 * peak_flops(level) / t / 2);
    }
    return best;
}

static bool is_product(unsigned op)
{
    return op == GGUF_OP_MATMUL || op == GGUF_OP_MATMUL_ID ||
           op == GGUF_OP_ATTENTION;
}

static void show_ops(const struct bench *b, const struct bench_row *like)
{
    double seconds = 0, steps = 0;
    struct bench_row r = *like;
    for (unsigned i = 0; i < GGUF_N_OPS; i++) {
        seconds += b->op[i].seconds;
        steps += is_product(i) ? b->op[i].steps : 0;
    }
    r.table = "operations";
    r.spread = -1;
    for (unsigned i = 0; i < GGUF_N_OPS; i++) {
        const struct of_op *op = &b->op[i];
        const double t = GG_MAX(op->seconds, 1e-9) / b->o->threads;
        if (op->steps == 0 || op->seconds < 1e-4 * seconds)
            continue;
        r.what = gguf_op_name(i);
        r.value =
            is_product(i) ? 2e-9 * op->steps / t : 1e-6 * op->elements / t;
        r.unit = is_product(i) ? "GFLOP/s" : "M elements/s";
        r.part = op->seconds / seconds;
        r.of = "time";
        bench_row(&r);
    }
    const struct of_op *a = &b->op[GGUF_OP_ATTENTION];
    if (a->steps > 0 && steps > 0) {
        r.what = "attention";
        r.value = a->seconds / seconds / (a->steps / steps);
        r.unit = "times its part of operations";
        r.part = a->steps / steps;
        r.of = "operations";
        bench_row(&r);
    }
}

/* Bytes per second that memcpy reads from memory, not from caches. */
static double copy_rate(void)
{
    enum { SIZE = 128 << 20 };
    char *from = malloc(SIZE), *to = malloc(SIZE);
    double best = 0;
    if (from && to)
        memset(from, 1, SIZE);
    for (int i = 0; from && to && i < 6; i++) {
        const double t0 = processor_time();
        memcpy(to, from, SIZE);
        const double rate = SIZE / (processor_time() - t0);
        /* the first one touches the memory */
        best = i && rate > best ? rate : best;
    }
    free(from);
    free(to);
    return best;
}

/* Bytes of weights that are read for a token. All experts count, although a
 * token takes some of them. */
static double bytes_of(const struct gguf_file *f)
{
    double all = 0, rows = 0;
    bool output = false;
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        all += (double)t->size;
        if (!strcmp(t->name.data, "token_embd.weight"))
            rows = (double)t->size;
        output |= !strcmp(t->name.data, "output.weight");
    }
    return output ? all - rows : all;
}

static enum gguf_status measure_single(struct bench *b, const char *path,
                                       const struct gguf_file *f,
                                       struct gguf_error *err)
{
    const char *name = strrchr(path, '/');
    struct gguf_batch batch = GGUF_BATCH_INIT;
    const float *logits;
    double *t = calloc(b->o->single, sizeof *t);
    enum gguf_status st =
        t ? GGUF_OK : gg_error_set_nomem(err, b->o->single * sizeof *t);
    batch.n = 1;
    for (unsigned i = 0; i < b->o->single && st == GGUF_OK; i++) {
        const double t0 = processor_time();
        batch.token = &b->token[i];
        st = gguf_session_decode(b->s, &batch, err);
        if (st == GGUF_OK)
            st = gguf_session_logits(b->s, 0, 1, &logits, err);
        t[i] = (processor_time() - t0) / b->o->threads;
    }
    struct bench_row r = { .table = "tokens",
                           .what = name ? name + 1 : path,
                           .precision = gguf_precision_name(b->o->precision),
                           .threads = b->o->threads,
                           .unit = "s for a token",
                           .of = "memcpy" };
    if (st == GGUF_OK) {
        r.value = bench_best(t, b->o->single, &r.spread);
        r.part = bytes_of(f) / r.value / b->o->threads / copy_rate();
        bench_row(&r);
    }
    free(t);
    return st;
}

static enum gguf_status measure_model(struct bench *b, const char *path,
                                      struct gguf_error *err)
{
    double t[MAX_ROUNDS], one, steps = 0;
    char shape[64];
    const char *name = strrchr(path, '/');
    snprintf(shape, sizeof shape, "context %u%s%s", b->o->context,
             b->o->cache ? " " : "",
             b->o->cache ? gguf_dtype_find(b->o->cache)->name : "");
    GG_TRY(run_pass(b, &one, err)); /* touches the memory */
    for (unsigned i = 0; i < b->o->rounds; i++)
        GG_TRY(run_pass(b, &t[i], err));
    b->by_node = true;
    GG_TRY(run_pass(b, &one, err));
    for (unsigned i = 0; i < GGUF_N_OPS; i++)
        steps += is_product(i) ? b->op[i].steps : 0;
    struct bench_row r = { .table = "passes",
                           .what = name ? name + 1 : path,
                           .shape = shape,
                           .precision = gguf_precision_name(b->o->precision),
                           .threads = b->o->threads,
                           .unit = "s for 512 tokens",
                           .of = "multiply-add peak" };
    const double best = bench_best(t, b->o->rounds, &r.spread);
    r.value = best * 512 / b->o->context;
    r.part = steps / best / b->o->threads / peak_rate();
    bench_row(&r);
    char both[128];
    snprintf(both, sizeof both, "%.60s, %s", r.what, shape);
    r.shape = both;
    show_ops(b, &r);
    return GGUF_OK;
}

static enum gguf_status bench_model(const struct options *o, const char *path,
                                    struct gguf_error *err)
{
    struct bench b = { .o = o };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_cpu_params c = GGUF_CPU_PARAMS_INIT;
    struct gguf_file *f = NULL;
    struct gguf_model *m = NULL;
    c.n_threads = o->threads;
    c.precision = o->precision;
    p.n_ctx = o->context;
    p.n_ubatch = UBATCH;
    p.key_dtype = p.value_dtype = gguf_dtype_find(o->cache);
    p.on_graph.fn = on_graph;
    p.on_graph.user = &b;
    b.token = calloc(o->context, sizeof *b.token);
    b.want = calloc(o->context, 1);
    enum gguf_status st =
        b.token && b.want ? GGUF_OK : gg_error_set_nomem(err, o->context);
    if (st == GGUF_OK)
        st = gguf_file_open(&f, path, NULL, err);
    if (st == GGUF_OK)
        st = gguf_model_create(&m, f, NULL, err);
    if (st == GGUF_OK)
        st = gguf_cpu_backend_create(&p.backend, &c, err);
    if (st == GGUF_OK)
        st = gguf_session_create(&b.s, m, &p, err);
    if (st == GGUF_OK) {
        const unsigned n = (unsigned)gguf_model_info(m)->n_vocab;
        for (unsigned i = 0; i < o->context; i++) {
            b.token[i] = (gguf_token)((37 * i + 11) % n);
            b.want[i] = i >= o->context / 2;
        }
        st = o->single ? measure_single(&b, path, f, err)
                       : measure_model(&b, path, err);
    }
    gguf_session_destroy(b.s);
    gguf_backend_destroy(p.backend);
    gguf_model_destroy(m);
    gguf_file_close(f);
    free(b.token);
    free(b.want);
    return st;
}

static bool set_precision(struct options *o, const char *name)
{
    for (unsigned i = 0; gguf_precision_name(i); i++)
        if (!strcmp(name, gguf_precision_name(i))) {
            o->precision = (enum gguf_precision)i;
            return true;
        }
    return false;
}

static bool set_cache(struct options *o, const char *name)
{
    const struct gguf_dtype_info *t = gguf_dtype_find_name(name);
    o->cache = t ? t->id : 0;
    return t;
}

int main(int argc, char **argv)
{
    struct options o = { 1, 512, 3, 0, GGUF_PRECISION_EXACT, 0 };
    struct gguf_error err;
    bool good = true;
    for (int c; (c = getopt(argc, argv, "t:c:g:r:p:k:")) != -1;)
        switch (c) {
        case 't': o.threads = (unsigned)atoi(optarg); break;
        case 'c': o.context = (unsigned)atoi(optarg); break;
        case 'g': o.single = (unsigned)atoi(optarg); break;
        case 'r': o.rounds = (unsigned)atoi(optarg); break;
        case 'p': good = good && set_precision(&o, optarg); break;
        case 'k': good = good && set_cache(&o, optarg); break;
        default: good = false;
        }
    if (o.single > o.context)
        o.context = o.single;
    if (!good || optind == argc || !o.threads || !o.context || !o.rounds ||
        o.rounds > MAX_ROUNDS) {
        fprintf(stderr,
                "usage: bench-pass [-t THREADS] [-c CONTEXT] [-r ROUNDS] "
                "[-p PRECISION] [-k CACHE_TYPE] [-g TOKENS] MODEL...\n");
        return 2;
    }
    for (int i = optind; i < argc; i++)
        if (bench_model(&o, argv[i], &err) != GGUF_OK) {
            fprintf(stderr, "bench-pass: %s: %s\n", argv[i], err.message);
            return 1;
        }
    return 0;
}
