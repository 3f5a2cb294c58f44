/* SPDX-License-Identifier: MIT */
/* check-share.c - a calibration that several processes share has the bytes and
 * the figures of one process
 *
 * Threads play the processes. Each quantizes the model to a file of its own,
 * and exchanges arrays with the others between two barriers. */
#include "config.h"
#include "base/compiler.h"
#include "calibrate/moments.h"
#include "gguf/calibrate.h"
#include "gguf/model.h"
#include "tests/calibrate/quantize_through.h"
#include "tests/family/skeleton.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { N_CTX = 32, N_CHUNKS = 11, N_TOKENS = N_CTX * N_CHUNKS, MOST = 4 };

static struct run original;
static gguf_token tokens[N_TOKENS];
static unsigned effort, tune_steps;
static pthread_barrier_t barrier;

/* A process. */
struct process {
    size_t rank, n_ranks;
    const char *out;
    size_t stop_at; /* exchange that it cancels; 0: none */
    size_t n_exchanges, n_tensors;
    uint64_t n_bytes; /* bytes received */
    enum gguf_status status;
    struct gguf_error err;
    struct gguf_calibrate_result result;
    void *shared; /* array that is being exchanged */
};
static struct process processes[MOST];

static bool exchange_parts(void *user, void *data, const uint64_t *off)
{
    struct process *p = user;
    p->shared = data;
    pthread_barrier_wait(&barrier);
    for (size_t r = 0; r < p->n_ranks; r++) {
        const size_t n = (size_t)(off[r + 1] - off[r]);
        if (r != p->rank && n)
            memcpy((char *)data + off[r], (char *)processes[r].shared + off[r],
                   n);
        p->n_bytes += r != p->rank ? n : 0;
    }
    pthread_barrier_wait(&barrier);
    return ++p->n_exchanges == p->stop_at;
}

static bool count_tensor(void *user, const struct gguf_calibrate_tensor *t)
{
    struct process *p = user;
    p->n_tensors += t->use == GGUF_CALIBRATE_FEEDBACK;
    return false;
}

static enum gguf_status calibrate_output(void *user, size_t job,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err)
{
    struct process *s = user;
    struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
    (void)job;
    s->result = (struct gguf_calibrate_result)GGUF_CALIBRATE_RESULT_INIT;
    p.tokens = tokens;
    p.n_tokens = N_TOKENS;
    p.n_ctx = N_CTX;
    p.effort = effort;
    p.tune_steps = tune_steps;
    p.on_tensor = (struct gguf_calibrate_tensor_callback){ count_tensor, s };
    p.rank = s->rank;
    p.n_ranks = s->n_ranks;
    if (s->n_ranks)
        p.exchange =
            (struct gguf_calibrate_exchange_callback){ exchange_parts, s };
    return gguf_calibrate_run(h, original.model, &p, &s->result, err);
}

/* Quantize as one process; a thread's function. */
static void *quantize_model(void *user)
{
    struct process *s = user;
    const struct gguf_quant_improve_callback improve = { calibrate_output, s };
    s->status =
        quantize_through(original.file, "Q4_1", s->out,
                         (struct gguf_quant_params)GGUF_QUANT_PARAMS_INIT,
                         false, improve, &s->err);
    return NULL;
}

static void run_processes(const char *dir, size_t n, size_t stop_at)
{
    pthread_t thread[MOST];
    char name[16];
    if (pthread_barrier_init(&barrier, NULL, (unsigned)n))
        abort();
    for (size_t r = 0; r < n; r++) {
        snprintf(name, sizeof name, "%zu.gguf", r);
        processes[r] = (struct process){ .rank = r,
                                         .n_ranks = n,
                                         .out = scratch_path(dir, name),
                                         .stop_at = stop_at };
        if (pthread_create(&thread[r], NULL, quantize_model, &processes[r]))
            abort();
    }
    for (size_t r = 0; r < n; r++)
        pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&barrier);
}

static bool is_same_figure(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 && isfinite(a);
}

/* Does each process have the result of the one alone? */
static void compare_processes(const struct process *one, size_t n,
                              const char *name)
{
    bool good = true;
    const struct gguf_calibrate_result *a = &one->result;
    const struct process *p = processes;
    for (size_t r = 0; r < n; r++, p++) {
        const struct gguf_calibrate_result *b = &processes[r].result;
        good = good && p->status == GGUF_OK && same_files(p->out, one->out) &&
               p->n_exchanges && p->n_bytes &&
               p->n_tensors == one->n_tensors && a->n_new == b->n_new &&
               a->n_tuned == b->n_tuned && a->n_tensors == b->n_tensors &&
               is_same_figure(a->divergence_before, b->divergence_before) &&
               (!tune_steps ||
                is_same_figure(a->divergence_tuned, b->divergence_tuned)) &&
               is_same_figure(a->divergence_after, b->divergence_after);
    }
    p = processes;
    ok(good, "%s: %zu processes with %zu exchanges: the same%s%s", name, n,
       p->n_exchanges, p->status ? ": " : "", p->status ? p->err.message : "");
}

static bool open_original(const struct skeleton *m, void **data)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    uint64_t x = 88172645463325252u;
    size_t size;
    p.n_ctx = N_CTX;
    *data = gen_file(&m->g, GGUF_DTYPE_F32, &size);
    if (!run_open(&original, *data, size, 1, &p))
        return false;
    for (size_t i = 0; i < N_TOKENS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        tokens[i] = (gguf_token)(x % gguf_model_info(original.model)->n_vocab);
    }
    return true;
}

static void check_model(const char *dir, const char *name)
{
    static struct skeleton m;
    void *data = NULL;
    struct process one = { .out = scratch_path(dir, "one.gguf") };
    if (!skeleton_open(&m, name) || !open_original(&m, &data))
        abort();
    quantize_model(&one);
    ok(one.status == GGUF_OK && one.result.n_new > 2 &&
           !isfinite(one.result.divergence_tuned) == !tune_steps,
       "%s: %zu new tensors, divergence %.3g, tuned %.3g", name,
       one.result.n_new, one.result.divergence_after,
       one.result.divergence_tuned);
    for (size_t n = 2; n <= MOST; n++) {
        run_processes(dir, n, 0);
        compare_processes(&one, n, name);
    }
    run_processes(dir, 2, 5);
    ok(processes[0].status == GGUF_E_CANCELLED &&
           processes[1].status == GGUF_E_CANCELLED &&
           processes[0].n_exchanges == 5,
       "%s: cancelled at an exchange", name);
    run_close(&original);
    free(data);
    skeleton_close(&m);
}

/* Parts of sums: whole blocks of rows that follow each other. Those of a
 * triangle of 8192 rows have a fifth of its elements each, within a block. */
static void check_parts(void)
{
    static const size_t sizes[] = { 1, 64, 100, 4096, 8192 };
    bool good = true;
    for (size_t i = 0; i < GG_LEN(sizes); i++)
        for (size_t n = 1; n < 7; n++) {
            const struct gg_moments_params p = { .n_parts = n };
            for (unsigned upper = 0; upper < 2; upper++) {
                size_t last = 0;
                for (size_t k = 0; k <= n; k++) {
                    const size_t at =
                        gg_moments_first_row(&p, sizes[i], upper, k);
                    good = good && at >= last && at <= sizes[i] &&
                           (k ? k < n || at == sizes[i] : !at) &&
                           (at == sizes[i] || at % 64 == 0);
                    last = at;
                }
            }
        }
    const struct gg_moments_params five = { .n_parts = 5 };
    for (size_t k = 0; k < 5; k++) {
        const double n = 8192;
        const double a =
            n - (double)gg_moments_first_row(&five, 8192, true, k);
        const double b =
            n - (double)gg_moments_first_row(&five, 8192, true, k + 1);
        good = good && fabs((a * a - b * b) / (n * n) - .2) < 2 * 64 / n;
    }
    ok(good, "parts of sums cover them, in equal shares");
}

/* A process with a number that does not exist. */
static void check_rank(const char *dir)
{
    static struct skeleton m;
    void *data = NULL;
    struct process p = { .rank = 2,
                         .n_ranks = 2,
                         .out = scratch_path(dir, "one.gguf") };
    if (!skeleton_open(&m, "llama") || !open_original(&m, &data))
        abort();
    quantize_model(&p);
    ok(p.status == GGUF_E_INVALID && !p.n_exchanges, "%s", p.err.message);
    run_close(&original);
    free(data);
    skeleton_close(&m);
}

int main(void)
{
    char dir[] = "check-share.XXXXXX";
    if (!scratch_make(dir))
        abort();
    check_model(dir, "llama");
    check_model(dir, "qwen3moe");
    check_model(dir, "deepseek2");
    effort = 1;
    check_model(dir, "qwen2");
    effort = 2;
    check_model(dir, "gemma2");
    effort = 0;
    tune_steps = 4;
    check_model(dir, "llama");
    check_parts();
    check_rank(dir);
    scratch_clean(dir);
    ok(rmdir(dir) == 0, "no file is left");
    return done_testing();
}
