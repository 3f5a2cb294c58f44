/* SPDX-License-Identifier: MIT */
/* check-backward.c - gradients of the cross entropy of whole models
 *
 * Every architecture is tried. The results of all products and look-ups are
 * moved in a random direction, and the cross entropy is differentiated
 * numerically in double precision (double_eval.h). The derivative must be the
 * product of direction and gradients. For a few models each product is moved by
 * itself. */
#include "config.h"
#include "run/backward.h"
#include "run/session_int.h"
#include "tests/failalloc.h"
#include "tests/family/skeleton.h"
#include "tests/graph/double_eval.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

typedef struct gguf_tensor tensor;

/* More tokens than the rows of logits that are computed at once. */
enum { N_TOK = 7, LONG = 133, MOST = 600 };

/* A gradient, in the order in which it came. */
struct got {
    const tensor *weight;
    bool is_lookup, is_vector;
    float *g;
    size_t n, n_columns;
};

struct job {
    struct run r;
    bool all[LONG];
    gguf_token tok[LONG];
    bool has_vectors; /* take gradients by vectors alone */
    unsigned stop_at; /* call of take_gradient that fails; 0: none */
    struct gguf_batch batch;
    struct got got[MOST];
    size_t n_got;
    double loss; /* cross entropy of the logits */
    /* the head, for the evaluator */
    struct gguf_ctx *ctx;
    struct gguf_graph *head;
    tensor *states, *logits;
    struct deval_move move[MOST];
    size_t n_moves;
};

/* The token that is predicted at place i, some number. */
static size_t label_of(size_t i, size_t n_vocab)
{
    return (7 * i + 3) % n_vocab;
}

static enum gguf_status take_logits(void *user, size_t first, size_t n,
                                    size_t n_vocab, const float *logits,
                                    float *seed, struct gguf_error *err)
{
    struct job *j = user;
    (void)err;
    for (size_t i = 0; i < n; i++, logits += n_vocab, seed += n_vocab) {
        const size_t y = label_of(first + i, n_vocab);
        double max = -INFINITY, sum = 0;
        for (size_t k = 0; k < n_vocab; k++)
            max = fmax(max, (double)logits[k]);
        for (size_t k = 0; k < n_vocab; k++)
            sum += exp((double)logits[k] - max);
        for (size_t k = 0; k < n_vocab; k++)
            seed[k] =
                (float)(exp((double)logits[k] - max) / sum - (k == y ? 1 : 0));
        j->loss += log(sum) + max - (double)logits[y];
    }
    return GGUF_OK;
}

static enum gguf_status take_gradient(void *user,
                                      const struct gg_backward_gradient *g,
                                      struct gguf_error *err)
{
    struct job *j = user;
    if (j->has_vectors != g->is_vector)
        return GGUF_OK;
    if (j->stop_at && j->n_got + 1 >= j->stop_at)
        return gguf_error_set(err, GGUF_E_CANCELLED, "enough");
    struct got *got = &j->got[j->n_got++];
    *got = (struct got){ .weight = g->weight,
                         .is_lookup = g->is_lookup,
                         .is_vector = g->is_vector,
                         .n = g->n,
                         .n_columns = g->n_columns };
    got->g = malloc((g->n * g->n_columns + 1) * sizeof *g->g);
    memcpy(got->g, g->g, g->n * g->n_columns * sizeof *g->g);
    return GGUF_OK;
}

/* ---- the evaluator ---- */

static bool begin_double(struct job *j)
{
    struct gguf_session *s = j->r.session;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.mem_size = 1 << 20;
    p.no_alloc = true;
    if (gguf_ctx_create(&j->ctx, &p, &j->r.err) != GGUF_OK)
        return false;
    j->states = gguf_tensor_create_2d(
        j->ctx, GGUF_DTYPE_F32, s->model->hp.n_embd, (int64_t)j->batch.n);
    j->logits = gg_build_logits(s->model, NULL, j->ctx, j->states);
    j->head = gguf_graph_create(j->ctx, 100);
    if (gguf_graph_finish(j->ctx, j->head, j->logits, &j->r.err) != GGUF_OK)
        return false;
    if (!deval_begin(s->pass.graph))
        return false;
    /* a tied matrix has an array already, of the pass */
    for (size_t i = 0; i < gguf_graph_n_leaves(j->head); i++)
        if (gguf_graph_has(s->pass.graph, gguf_graph_leaf(j->head, i)))
            free(gguf_graph_leaf(j->head, i)->extra);
    return deval_begin(j->head);
}

static void end_double(struct job *j)
{
    struct gguf_graph *pass = j->r.session->pass.graph;
    deval_end(j->head);
    for (size_t i = 0; i < gguf_graph_n_leaves(j->head); i++)
        gguf_graph_leaf(j->head, i)->extra = NULL; /* a tied matrix */
    deval_end(pass);
    gguf_ctx_destroy(j->ctx);
}

/* Cross entropy with the results moved by h times their directions. */
static double moved_loss(struct job *j, const struct deval_move *m, size_t n,
                         double h)
{
    struct gguf_session *s = j->r.session;
    const size_t n_vocab = (size_t)j->logits->ne[0];
    double loss = 0;
    if (!deval_run_moved(s->pass.graph, m, n, h))
        return NAN;
    for (int64_t i = 0; i < gguf_tensor_n_elements(j->states); i++)
        *deval_at(j->states, i) = *deval_at(s->states, i);
    if (!deval_run_moved(j->head, m, n, h))
        return NAN;
    for (size_t t = 0; t < j->batch.n; t++) {
        double max = -INFINITY, sum = 0;
        for (size_t k = 0; k < n_vocab; k++)
            max = fmax(max, *deval_at(j->logits, (int64_t)(t * n_vocab + k)));
        for (size_t k = 0; k < n_vocab; k++)
            sum += exp(*deval_at(j->logits, (int64_t)(t * n_vocab + k)) - max);
        loss += log(sum) + max -
                *deval_at(j->logits,
                          (int64_t)(t * n_vocab + label_of(t, n_vocab)));
    }
    return loss;
}

/* ---- comparison ---- */

/* Node of a graph that reads the weight of got i: the last one before node
 * *end, which becomes its number. */
static const tensor *find_reader(const struct gguf_graph *g,
                                 const struct got *got, size_t *end)
{
    for (size_t i = *end; i-- > 0;) {
        const tensor *t = gguf_graph_node(g, i);
        const bool lookup = t->op == GGUF_OP_GET_ROWS;
        if (!lookup && t->op != GGUF_OP_MATMUL && t->op != GGUF_OP_MATMUL_ID)
            continue;
        const tensor *w =
            t->src[0]->view_src ? t->src[0]->view_src : t->src[0];
        if (w != got->weight || lookup != got->is_lookup)
            continue;
        *end = i;
        return t;
    }
    return NULL;
}

/* Make a random direction for each gradient. */
static bool make_moves(struct job *j)
{
    struct gguf_graph *pass = j->r.session->pass.graph;
    size_t end = gguf_graph_n_nodes(pass), head = gguf_graph_n_nodes(j->head);
    for (size_t i = 0; i < j->n_got; i++) {
        const struct got *got = &j->got[i];
        const size_t n = got->n * got->n_columns;
        const tensor *t = head ? find_reader(j->head, got, &head) : NULL;
        double *by = calloc(n + 1, sizeof *by);
        if (!t) {
            head = 0; /* the head's come first */
            t = find_reader(pass, got, &end);
        }
        if (!t || gguf_tensor_n_elements(t) < (int64_t)n) {
            printf("# gradient %zu, of %s: no node\n", i, got->weight->name);
            free(by);
            return false;
        }
        /* the head's columns that are not real have no gradient */
        by = realloc(by, ((size_t)gguf_tensor_n_elements(t) + 1) * sizeof *by);
        for (int64_t k = 0; k < gguf_tensor_n_elements(t); k++)
            by[k] = k < (int64_t)n ? (double)rnd_f32() : 0;
        j->move[j->n_moves++] = (struct deval_move){ t, by };
    }
    return j->n_moves > 0;
}

/* Compare the derivative along moves first to end - 1. */
static bool compare_moves(struct job *j, size_t first, size_t end)
{
    const double h = 1e-6;
    double sum = 0, all = 0;
    for (size_t i = first; i < end; i++)
        for (size_t k = 0; k < j->got[i].n * j->got[i].n_columns; k++) {
            const double d = (double)j->got[i].g[k] * j->move[i].by[k];
            sum += d;
            all += d * d;
        }
    const double up = moved_loss(j, j->move + first, end - first, h);
    const double down = moved_loss(j, j->move + first, end - first, -h);
    const double d = (up - down) / (2 * h);
    const bool good = fabs(d - sum) <= 3e-4 * sqrt(all) + 1e-7;
    if (!good)
        printf("# %s: %g by differences, %g by gradients, scale %g\n",
               first + 1 == end ? j->got[first].weight->name : "all", d, sum,
               sqrt(all));
    return good;
}

static void free_job(struct job *j)
{
    for (size_t i = 0; i < j->n_got; i++)
        free(j->got[i].g);
    for (size_t i = 0; i < j->n_moves; i++)
        free((void *)(uintptr_t)j->move[i].by);
    run_close(&j->r);
    free(j);
}

/* ---- models ---- */

static bool is_thorough(const char *name)
{
    static const char *const names[] = { "llama", "qwen2", "qwen3moe",
                                         "gemma2" };
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static struct job *open_job(const struct skeleton *m, const void *file,
                            size_t size, size_t n_tok, unsigned n_threads,
                            const struct gguf_allocator *a)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SKELETON_TOKENS];
    struct job *j = calloc(1, sizeof *j);
    p.n_ctx = 256;
    p.allocator = a;
    skeleton_tokens_of(m, tok);
    for (size_t i = 0; i < n_tok; i++) {
        j->tok[i] = tok[i % SKELETON_TOKENS];
        j->all[i] = true;
    }
    j->batch = (struct gguf_batch)GGUF_BATCH_INIT;
    j->batch.token = j->tok;
    j->batch.want = j->all;
    j->batch.n = n_tok;
    if (run_open(&j->r, file, size, n_threads, &p))
        return j;
    printf("# %s\n", j->r.err.message);
    free_job(j);
    return NULL;
}

/* Compute the gradients of the model's batch. */
static enum gguf_status run_job(struct job *j)
{
    struct gg_backward_calls calls = { take_logits, take_gradient, j };
    struct gg_backward *b;
    enum gguf_status st = gg_backward_create(&b, j->r.session, &j->r.err);
    if (st == GGUF_OK && j->has_vectors)
        gg_backward_want_vectors(b);
    if (st == GGUF_OK)
        st = gg_backward_check(b, &j->batch, &j->r.err);
    if (st == GGUF_OK)
        st = gg_backward_run(b, &j->batch, &calls, &j->r.err);
    gg_backward_destroy(b);
    return st;
}

/* Compare all gradients of a job with differences. */
static bool compare_job(struct job *j, bool each)
{
    bool good = begin_double(j) && make_moves(j);
    const double loss = good ? moved_loss(j, NULL, 0, 0) : NAN;
    good = good && fabs(loss - j->loss) < 1e-3;
    if (!good)
        printf("# loss %g, by definition %g\n", j->loss, loss);
    good = good && compare_moves(j, 0, j->n_moves);
    for (size_t i = 0; good && each && i < j->n_moves; i++)
        good = compare_moves(j, i, i + 1);
    end_double(j);
    return good;
}

static unsigned n_models, n_supported;

static void check_model(const struct skeleton *m)
{
    size_t size;
    void *file = gen_file(&m->g, GGUF_DTYPE_F32, &size);
    struct job *j = open_job(m, file, size, N_TOK, 2, NULL);
    if (!j) {
        ok(0, "%s is opened", m->name);
        free(file);
        return;
    }
    const enum gguf_status st = run_job(j);
    n_models++;
    if (st == GGUF_E_UNSUPPORTED) {
        ok(!j->n_got && j->r.err.message[0], "%s: %s", m->name,
           j->r.err.message);
    } else {
        n_supported++;
        ok(st == GGUF_OK && compare_job(j, is_thorough(m->name)),
           "%s: %zu gradients", m->name, j->n_got);
    }
    free_job(j);
    free(file);
}

/* Add h times random numbers, of one seed, to a vector. Returns the product of
 * these numbers and its gradient. */
static double move_vector(const struct got *got, double h)
{
    double sum = 0;
    tap_rng = 77;
    for (size_t i = 0; i < got->n; i++) {
        const double by = (double)rnd_f32();
        *deval_at(got->weight, (int64_t)i) += h * by;
        sum += by * (double)got->g[i];
    }
    return sum;
}

/* Gradients by norms and biases. */
static void check_vectors(const char *name, size_t n_vectors)
{
    static struct skeleton m;
    size_t size;
    if (!skeleton_open(&m, name))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    struct job *j = open_job(&m, file, size, N_TOK, 2, NULL);
    j->has_vectors = true;
    bool good = run_job(j) == GGUF_OK && begin_double(j);
    double worst = 0, most = 0;
    for (size_t i = 0; good && i < j->n_got; i++) {
        const double h = 1e-6;
        move_vector(&j->got[i], h);
        const double up = moved_loss(j, NULL, 0, 0);
        move_vector(&j->got[i], -2 * h);
        const double down = moved_loss(j, NULL, 0, 0);
        const double sum = move_vector(&j->got[i], h);
        worst = fmax(worst, fabs((up - down) / (2 * h) - sum));
        most = fmax(most, fabs(sum));
    }
    ok(good && j->n_got == n_vectors && worst < 1e-4 * most,
       "%s: gradients by %zu vectors: off by %.2g of %.2g", name, j->n_got,
       worst, most);
    end_double(j);
    free_job(j);
    skeleton_close(&m);
    free(file);
}

/* ---- sizes, threads, failures ---- */

/* Rows of logits in two parts, and the bits of other numbers of threads. */
static void check_long(const struct skeleton *m, const void *file, size_t size)
{
    struct job *a = open_job(m, file, size, LONG, 1, NULL);
    struct job *b = open_job(m, file, size, LONG, 3, NULL);
    bool same =
        run_job(a) == GGUF_OK && run_job(b) == GGUF_OK && a->n_got == b->n_got;
    for (size_t i = 0; same && i < a->n_got; i++)
        same = !memcmp(a->got[i].g, b->got[i].g,
                       a->got[i].n * a->got[i].n_columns * sizeof(float));
    ok(same, "%zu gradients have the same bits on 3 threads", a->n_got);
    /* join the two parts of the output matrix's */
    struct got *head = a->got;
    ok(head[0].weight == head[1].weight && head[0].n_columns == 128 &&
           head[1].n_columns == LONG - 128,
       "logits of %d tokens are computed in two parts", LONG);
    head[1].g = realloc(head[1].g, head[0].n * LONG * sizeof(float));
    memmove(head[1].g + 128 * head[0].n, head[1].g,
            head[0].n * (LONG - 128) * sizeof(float));
    memcpy(head[1].g, head[0].g, head[0].n * 128 * sizeof(float));
    head[1].n_columns = LONG;
    free(head[0].g);
    memmove(head, head + 1, --a->n_got * sizeof *head);
    ok(compare_job(a, false), "and have the gradients of differences");
    free_job(a);
    free_job(b);
}

static void check_refused(const struct skeleton *m, const void *file,
                          size_t size)
{
    static const int32_t seq[N_TOK] = { 0, 0, 0, 1, 1, 1, 1 };
    struct job *j = open_job(m, file, size, N_TOK, 1, NULL);
    j->all[2] = false;
    ok(run_job(j) == GGUF_E_UNSUPPORTED && !j->n_got, "%s", j->r.err.message);
    j->all[2] = true;
    j->batch.seq = seq;
    ok(run_job(j) != GGUF_OK && !j->n_got, "%s", j->r.err.message);
    j->batch.seq = NULL;
    j->stop_at = 3;
    ok(run_job(j) == GGUF_E_CANCELLED && j->n_got == 2,
       "a function of the program ends the run");
    free_job(j);
}

static void check_memory(const struct skeleton *m, const void *file,
                         size_t size)
{
    struct failalloc fa;
    struct job *j =
        open_job(m, file, size, N_TOK, 1, failalloc_init(&fa, UINT_MAX));
    unsigned n_failed = 0, bad = 0;
    for (unsigned i = 0;; i++) {
        fa.calls = 0;
        fa.fail_at = fa.last = i;
        const enum gguf_status st = run_job(j);
        for (size_t k = 0; k < j->n_got; k++)
            free(j->got[k].g);
        j->n_got = 0;
        if (fa.calls <= i) {
            bad += st != GGUF_OK;
            break;
        }
        bad += st != GGUF_E_NOMEM;
        n_failed++;
    }
    ok(n_failed > 10 && !bad, "%u allocations fail, each time by name",
       n_failed);
    free_job(j);
    ok(!fa.live, "and nothing is left");
}

static void check_ways(void)
{
    static struct skeleton m;
    size_t size;
    if (!skeleton_open(&m, "llama"))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    check_long(&m, file, size);
    check_refused(&m, file, size);
    check_memory(&m, file, size);
    skeleton_close(&m);
    free(file);
}

int main(int argc, char **argv)
{
    static struct skeleton m;
    static char names[512][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && strcmp(argv[1], names[i]))
            continue;
        if (skeleton_open(&m, names[i]) && m.n_rows)
            check_model(&m);
        skeleton_close(&m);
    }
    check_vectors("llama", 5);
    check_vectors("qwen2", 11);
    check_ways();
    ok(argc > 1 || n_supported >= 99, "models with gradients");
    printf("# %u of %u models have gradients\n", n_supported, n_models);
    return done_testing();
}
