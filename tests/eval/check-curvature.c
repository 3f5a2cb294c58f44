/* SPDX-License-Identifier: MIT */
/* check-curvature.c - curvature of matrices against sums in double precision,
 * and against the divergence of a changed model */
#include "config.h"
#include "eval/curvature.h"
#include "run/backward.h"
#include "tests/failalloc.h"
#include "tests/family/skeleton.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { N_BATCHES = 2, N_TOK = 40, MOST = 64, BLOCK = GG_CURVATURE_BLOCK };

struct work {
    struct run r;
    struct skeleton m;
    void *file;
    gguf_token tok[N_BATCHES][N_TOK];
    bool all[N_TOK];
    struct gguf_batch batch[N_BATCHES];
    /* reference: sums of g g' in double, [n][n] of each matrix */
    struct {
        const struct gguf_tensor *weight;
        bool is_lookup;
        size_t n, n_columns;
        double *sum;
    } ref[MOST];
    size_t n_ref;
    uint64_t seed;
    size_t now;         /* current batch */
    double exact_trace; /* sum over tokens of tr(diag p - p p') */
};

static bool open_work(struct work *w, const char *name,
                      const struct gguf_allocator *a, unsigned n_threads)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SKELETON_TOKENS];
    size_t size;
    memset(w, 0, sizeof *w);
    p.n_ctx = 64;
    p.allocator = a;
    if (!skeleton_open(&w->m, name))
        return false;
    w->file = gen_file(&w->m.g, GGUF_DTYPE_F32, &size);
    skeleton_tokens_of(&w->m, tok);
    for (size_t b = 0; b < N_BATCHES; b++) {
        for (size_t i = 0; i < N_TOK; i++)
            w->tok[b][i] = tok[(i + 11 * b) % SKELETON_TOKENS];
        w->batch[b] = (struct gguf_batch)GGUF_BATCH_INIT;
        w->batch[b].token = w->tok[b];
        w->batch[b].n = N_TOK;
    }
    memset(w->all, true, sizeof w->all);
    return run_open(&w->r, w->file, size, n_threads, &p);
}

static void close_work(struct work *w)
{
    for (size_t i = 0; i < w->n_ref; i++)
        free(w->ref[i].sum);
    run_close(&w->r);
    skeleton_close(&w->m);
    free(w->file);
}

static struct gg_curvature_params params_of(struct work *w)
{
    return (struct gg_curvature_params){ .session = w->r.session,
                                         .batches = w->batch,
                                         .n_batches = N_BATCHES,
                                         .pool = w->r.pool,
                                         .seed = w->seed,
                                         .has_embedding = true };
}

/* ---- the reference ---- */

/* splitmix64, state by state. */
static double draw_u(uint64_t seed, uint64_t counter)
{
    uint64_t state = seed, z = 0;
    /* the counter-th output; counters are small here */
    state += UINT64_C(0x9E3779B97F4A7C15) * counter;
    state += UINT64_C(0x9E3779B97F4A7C15);
    z = state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z = z ^ (z >> 31);
    return (double)(z >> 11) / 9007199254740992.0;
}

static enum gguf_status take_logits(void *user, size_t first, size_t n,
                                    size_t n_vocab, const float *logits,
                                    float *seed, struct gguf_error *err)
{
    struct work *w = user;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const float *x = logits + i * n_vocab;
        const double u = draw_u(w->seed, ((uint64_t)w->now << 32) + first + i);
        double sum = 0, at = 0, squares = 0;
        size_t y = 0;
        for (size_t k = 0; k < n_vocab; k++)
            sum += exp((double)x[k]);
        for (; y + 1 < n_vocab && (at += exp((double)x[y])) <= u * sum; y++)
            ;
        for (size_t k = 0; k < n_vocab; k++) {
            const double p = exp((double)x[k]) / sum;
            seed[i * n_vocab + k] = (float)(p - (k == y));
            squares += p * p;
        }
        w->exact_trace += 1 - squares;
    }
    return GGUF_OK;
}

static enum gguf_status take_gradient(void *user,
                                      const struct gg_backward_gradient *g,
                                      struct gguf_error *err)
{
    struct work *w = user;
    size_t i = 0;
    (void)err;
    while (i < w->n_ref && (w->ref[i].weight != g->weight ||
                            w->ref[i].is_lookup != g->is_lookup))
        i++;
    if (i == w->n_ref) {
        w->n_ref++;
        w->ref[i].weight = g->weight;
        w->ref[i].is_lookup = g->is_lookup;
        w->ref[i].n = g->n;
        w->ref[i].sum = calloc(g->n * g->n, sizeof(double));
    }
    for (size_t c = 0; c < g->n_columns; c++)
        for (size_t k = 0; k < g->n; k++)
            for (size_t l = 0; l < g->n; l++)
                w->ref[i].sum[k * g->n + l] +=
                    (double)g->g[c * g->n + k] * (double)g->g[c * g->n + l];
    w->ref[i].n_columns += g->n_columns;
    return GGUF_OK;
}

static bool run_reference(struct work *w)
{
    const struct gg_backward_calls calls = { take_logits, take_gradient, w };
    struct gg_backward *b;
    bool good = gg_backward_create(&b, w->r.session, &w->r.err) == GGUF_OK;
    for (w->now = 0; good && w->now < N_BATCHES; w->now++) {
        struct gguf_batch batch = w->batch[w->now];
        batch.want = w->all;
        good = gg_backward_run(b, &batch, &calls, &w->r.err) == GGUF_OK;
    }
    gg_backward_destroy(b);
    return good;
}

/* Compare element (k, l) of every block, and the trace. */
static bool compare_blocks(const struct work *w, const struct gg_curvature *c,
                           size_t i)
{
    const size_t n = w->ref[i].n;
    const char *name = w->ref[i].weight->name;
    size_t n_outputs;
    const float *h = gg_curvature_blocks(c, name, &n_outputs);
    double trace = 0, worst = 0, most = 0;
    if (!h || n_outputs != n)
        return false;
    for (size_t k = 0; k < (n + BLOCK - 1) / BLOCK * BLOCK; k++)
        for (size_t l = 0; l < BLOCK; l++) {
            const size_t col = k / BLOCK * BLOCK + l;
            const double want =
                k < n && col < n
                    ? w->ref[i].sum[k * n + col] / (double)w->ref[i].n_columns
                    : 0;
            const double is =
                (double)h[k / BLOCK * BLOCK * BLOCK + k % BLOCK * BLOCK + l];
            worst = fmax(worst, fabs(is - want));
            most = fmax(most, fabs(want));
            trace += k == col ? want : 0;
        }
    trace /= (double)n;
    if (!(worst <= 1e-5 * most) ||
        fabs(gg_curvature_sensitivity(c, name) - trace) > 1e-5 * trace) {
        printf("# %s: off by %g of %g\n", name, worst, most);
        return false;
    }
    return true;
}

static bool compare_embedding(const struct work *w,
                              const struct gg_curvature *c, size_t i)
{
    size_t n;
    const float *m = gg_curvature_embedding(c, &n);
    double worst = 0, most = 0;
    if (!m || n != w->ref[i].n)
        return false;
    for (size_t k = 0; k < n * n; k++) {
        const double want = w->ref[i].sum[k] / (double)w->ref[i].n_columns;
        worst = fmax(worst, fabs((double)m[k] - want));
        most = fmax(most, fabs(want));
    }
    return worst <= 1e-5 * most;
}

static void check_sums(const char *name)
{
    static struct work w;
    struct gg_curvature *c = NULL;
    if (!open_work(&w, name, NULL, 2))
        abort();
    w.seed = 5;
    const struct gg_curvature_params p = params_of(&w);
    bool good =
        run_reference(&w) && gg_curvature_create(&c, &p, &w.r.err) == GGUF_OK;
    size_t n_matrices = 0;
    for (size_t i = 0; good && i < w.n_ref; i++) {
        n_matrices += !w.ref[i].is_lookup;
        if (!w.ref[i].is_lookup)
            good = compare_blocks(&w, c, i);
        else if (!strcmp(w.ref[i].weight->name, "token_embd.weight"))
            good = compare_embedding(&w, c, i);
    }
    ok(good && gg_curvature_count(c) == n_matrices,
       "%s: curvature of %zu matrices and of the embedding", name, n_matrices);
    size_t none = 1;
    ok(good && !gg_curvature_blocks(c, "blk.0", &none) && !none &&
           gg_curvature_sensitivity(c, "blk.0") < 0 &&
           gg_curvature_blocks(c, gg_curvature_name(c, 0), &none) && none,
       "%s: found by name", name);
    gg_curvature_destroy(c);
    close_work(&w);
}

/* ---- properties ---- */

/* Tokens are drawn from the model's distribution: the mean trace over many
 * seeds is that of the covariance of logits. */
static void check_draws(void)
{
    enum { SEEDS = 60 };
    static struct work w;
    double sum = 0;
    if (!open_work(&w, "llama", NULL, 1) || !run_reference(&w))
        abort();
    struct gg_curvature_params p = params_of(&w);
    const char *output = "output.weight";
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct gg_curvature *c = NULL;
        size_t n;
        p.seed = seed;
        p.has_embedding = false;
        if (gg_curvature_create(&c, &p, &w.r.err) != GGUF_OK)
            break;
        if (gg_curvature_embedding(c, &n))
            break;
        gg_curvature_blocks(c, output, &n);
        sum += gg_curvature_sensitivity(c, output) * (double)n / SEEDS;
        gg_curvature_destroy(c);
    }
    const double want = w.exact_trace / (N_BATCHES * N_TOK);
    ok(fabs(sum / want - 1) < 0.02,
       "mean trace for the logits %.4f, that of their covariance %.4f", sum,
       want);
    close_work(&w);
}

static void check_threads(void)
{
    static struct work w[2];
    struct gg_curvature *c[2];
    bool good = true;
    for (int k = 0; k < 2; k++) {
        if (!open_work(&w[k], "llama", NULL, k ? 3 : 1))
            abort();
        const struct gg_curvature_params p = params_of(&w[k]);
        good = good && gg_curvature_create(&c[k], &p, &w[k].r.err) == GGUF_OK;
    }
    for (size_t i = 0; good && i < gg_curvature_count(c[0]); i++) {
        size_t n, n1;
        const float *a =
            gg_curvature_blocks(c[0], gg_curvature_name(c[0], i), &n);
        const float *b =
            gg_curvature_blocks(c[1], gg_curvature_name(c[0], i), &n1);
        good =
            b && n == n1 &&
            !memcmp(a, b, (n + BLOCK - 1) / BLOCK * BLOCK * BLOCK * sizeof *a);
    }
    ok(good, "one and three threads give the same bits");
    for (int k = 0; k < 2; k++) {
        gg_curvature_destroy(c[k]);
        close_work(&w[k]);
    }
}

/* ---- failures ---- */

static bool stop_at_once(void *user, uint64_t done, uint64_t total)
{
    uint64_t *seen = user;
    seen[0] = done;
    seen[1] = total;
    return true;
}

static void check_failures(void)
{
    static struct work w;
    struct failalloc fa;
    struct gg_curvature *c;
    uint64_t seen[2];
    unsigned n_failed = 0, bad = 0;
    if (!open_work(&w, "llama", failalloc_init(&fa, UINT_MAX), 1))
        abort();
    struct gg_curvature_params p = params_of(&w);
    p.progress = (struct gguf_progress_callback){ stop_at_once, seen };
    ok(gg_curvature_create(&c, &p, &w.r.err) == GGUF_E_CANCELLED && !c &&
           seen[0] == N_TOK && seen[1] == N_BATCHES * N_TOK,
       "cancelled after a batch");
    p.progress.fn = NULL;
    p.n_batches = 0;
    ok(gg_curvature_create(&c, &p, &w.r.err) == GGUF_E_INVALID && !c,
       "no batches");
    p.n_batches = 1;
    p.allocator = &fa.a;
    for (unsigned i = 0;; i += 1 + i / 16) {
        fa.calls = 0;
        fa.fail_at = fa.last = i;
        const enum gguf_status st = gg_curvature_create(&c, &p, &w.r.err);
        gg_curvature_destroy(c);
        if (fa.calls <= i) {
            bad += st != GGUF_OK;
            break;
        }
        bad += st != GGUF_E_NOMEM || c;
        n_failed++;
    }
    ok(n_failed > 10 && !bad, "%u allocations fail, each time by name",
       n_failed);
    close_work(&w);
    ok(!fa.live, "and nothing is left");
    if (!open_work(&w, "mamba", NULL, 1))
        abort();
    p = params_of(&w);
    ok(gg_curvature_create(&c, &p, &w.r.err) == GGUF_E_UNSUPPORTED && !c &&
           strstr(w.r.err.message, "ssm_conv"),
       "mamba: %s", w.r.err.message);
    close_work(&w);
}

int main(void)
{
    check_sums("llama");
    check_sums("qwen2");
    check_sums("qwen3moe");
    check_draws();
    check_threads();
    check_failures();
    return done_testing();
}
