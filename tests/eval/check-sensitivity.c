/* SPDX-License-Identifier: MIT */
/* check-sensitivity.c - sensitivities agree with divergences of changed models
 * in double precision and with the output's Fisher information, and do not
 * depend on threads */
#include "config.h"
#include "base/compiler.h"
#include "eval/weight_noise.h"
#include "gguf/collect.h"
#include "gguf/sensitivity.h"
#include "tests/failalloc.h"
#include "tests/family/skeleton.h"
#include "tests/model/gen.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>

enum { CTX = 24, CHUNKS = 4, V = 300, N = CHUNKS * CTX + 5, E = 32 };

static gguf_token text[N];

/* ---- a measurement ---- */

struct how {
    unsigned n_threads;
    uint64_t n_tokens;
    const char *include;
    const struct gguf_allocator *a;
    struct gguf_progress_callback progress;
};

static enum gguf_status measure_text(struct gguf_imatrix **im,
                                     const void *file, size_t size,
                                     const struct how *h,
                                     struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_sensitivity_params p = GGUF_SENSITIVITY_PARAMS_INIT;
    struct run r;
    enum gguf_status st;
    *im = NULL;
    sp.n_ctx = sp.n_ubatch = CTX;
    sp.allocator = h->a;
    if (!run_open(&r, file, size, h->n_threads, &sp)) {
        *err = r.err;
        run_close(&r);
        return err->status;
    }
    p.n_ctx = CTX;
    p.n_tokens = h->n_tokens ? h->n_tokens : N;
    p.pool = r.pool;
    p.progress = h->progress;
    p.include = &h->include;
    p.n_include = h->include != NULL;
    st = gguf_imatrix_create(im, h->a, err);
    if (st == GGUF_OK)
        st = gguf_sensitivity_run(*im, r.session, text, N, &p, err);
    run_close(&r);
    return st;
}

static bool find_value(const struct gguf_imatrix *im, const char *name,
                       struct gguf_imatrix_sensitivity *s)
{
    size_t i;
    *s = (struct gguf_imatrix_sensitivity)GGUF_IMATRIX_SENSITIVITY_INIT;
    return gguf_imatrix_find_sensitivity(
               im, (struct gguf_str){ name, strlen(name) }, &i) &&
           gguf_imatrix_sensitivity(im, i, s, NULL) == GGUF_OK;
}

static void skeleton_set_text(const struct skeleton *s)
{
    gguf_token all[SKELETON_TOKENS];
    skeleton_tokens_of(s, all);
    for (size_t i = 0; i < N; i++)
        text[i] = all[(i + i / SKELETON_TOKENS * 5) % SKELETON_TOKENS];
}

/* ---- the error of a weight, written from its definition ---- */

/* Check a row of the error: equal magnitudes in each run of 32 columns, which
 * are the RMS of the weights. Signs are the library's. */
static bool check_row(const float *w, const float *e, size_t n)
{
    bool good = true;
    for (size_t j = 0; j < n; j++) {
        double sum = 0;
        size_t from = j / 32 * 32, to = GG_MIN(n, from + 32);
        for (size_t i = from; i < to; i++)
            sum += (double)w[i] * (double)w[i];
        const double rms = sqrt(sum / (double)(to - from));
        good = good && fabs(fabs((double)e[j]) - rms) <= 1e-6 * rms;
    }
    return good;
}

static void read_floats(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    memcpy(dst, (const float *)r->source + first, n * sizeof *dst);
}

/* The error that the library adds to a tensor, with sigma 1. */
static bool make_error(const struct gen_tensor *t, const float *w, bool table,
                       float *e)
{
    const size_t n = (size_t)t->ne[0];
    size_t rows = (size_t)t->ne[1];
    bool good = true;
    for (unsigned d = 2; d < t->n_dims; d++)
        rows *= (size_t)t->ne[d];
    const struct gg_weight_noise noise = {
        .rows = { .read = read_floats, .source = w },
        .n_cols = n,
        .n_rows = rows,
        .seed = gg_weight_noise_seed(t->name, table)
    };
    for (size_t r = 0; r < rows; r++) {
        gg_weight_noise_row(&noise, r, e + r * n);
        good = good && check_row(w + r * n, e + r * n, n);
    }
    return good;
}

/* ---- a model in double precision ---- */

static const struct gen_spec spec = { GEN_LAYERS(2), .n_vocab = V };
/* Sums of squares of the inputs of a matrix. */
struct squares {
    const char *name;
    double v[256];
    size_t n;
};

static void see_input(void *user, const char *name, int token, const double *x,
                      int n)
{
    struct squares *s = user;
    (void)token;
    if (strcmp(name, s->name) != 0)
        return;
    for (int j = 0; j < n; j++)
        s->v[j] += x[j] * x[j];
    s->n++;
}

static double compare_rows(const double *b, const double *q)
{
    double nb = 0, nq = 0, sum = 0;
    for (int i = 0; i < V; i++) {
        nb += exp(b[i]);
        nq += exp(q[i]);
    }
    for (int i = 0; i < V; i++)
        sum += exp(b[i]) / nb * (b[i] - log(nb) - q[i] + log(nq));
    return sum;
}

static double base[N][V], changed[N][V];

static void all_logits(const struct gen *g, const struct gen_spec *s,
                       double (*out)[V], struct squares *sq)
{
    for (int c = 0; c < CHUNKS; c++)
        ref_logits_seen(g, s, text + c * CTX, CTX, out[c * CTX], see_input,
                        sq);
}

/* Compute c of a tensor in double precision: 2 D / (sigma^2 P), where the
 * model's weights are changed by sigma times the error, negative for every
 * second chunk. sigma is such that D is near 0.002 nats if c is near about. */
static double expect_c(struct gen *g, const struct gen_spec *s,
                       struct gen_tensor *t, bool table, double about,
                       bool *good)
{
    static float w[V * E], e[V * E], v[V * E];
    const size_t n = (size_t)t->ne[0], rows = (size_t)t->ne[1];
    struct squares sq = { .name = table ? "-" : t->name };
    double kld = 0, power = 0;
    gen_weights(w, g, t);
    *good = make_error(t, w, table, e);
    all_logits(g, s, base, &sq);
    for (size_t i = 0; i < n * rows; i++) {
        const double b2 = (double)e[i] * (double)e[i];
        power += table ? b2 / (double)rows : b2 * sq.v[i % n] / (double)sq.n;
    }
    const double sigma = sqrt(4e-3 / (about * power));
    for (int sign = -1; sign <= 1; sign += 2) {
        for (size_t i = 0; i < n * rows; i++)
            v[i] = w[i] + (float)(sign * sigma) * e[i];
        t->values = v;
        all_logits(g, s, changed, &sq);
        t->values = NULL;
        for (int i = 0; i < CHUNKS * CTX; i++)
            if ((i / CTX % 2 == 0) == (sign > 0))
                kld += compare_rows(base[i], changed[i]) / (CHUNKS * CTX);
    }
    return 2 * kld / (sigma * sigma * power);
}

static void check_model(void)
{
    const struct gen_spec *s = &spec;
    struct gen g;
    struct gguf_imatrix *im;
    struct gguf_error err;
    size_t size, n = 0;
    double worst = 0;
    bool good = true;
    gen_init(&g, 5);
    gen_model(&g, s);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    const enum gguf_status st =
        measure_text(&im, file, size, &(struct how){ .n_threads = 2 }, &err);
    for (size_t i = 0; st == GGUF_OK && i < g.n; i++) {
        struct gen_tensor *t = &g.t[i];
        struct gguf_imatrix_sensitivity f;
        const bool table = !strcmp(t->name, "token_embd.weight");
        bool shaped;
        if (t->n_dims < 2)
            continue;
        if (!find_value(im, t->name, &f))
            break;
        const double c = expect_c(&g, s, t, table, f.value, &shaped);
        good = good && shaped && f.n_tokens == CHUNKS * CTX &&
               (f.input == 0) == table;
        const double off = good ? fabs(f.value / c - 1) : INFINITY;
        worst = GG_MAX(worst, off);
        printf("# %-26s %.4g, expected %.4g\n", t->name, f.value, c);
        n++;
    }
    ok(st == GGUF_OK && good && n == 16 && worst < 0.08,
       "%zu sensitivities are at most %.2g%% from double precision", n,
       100 * worst);
    gguf_imatrix_destroy(im);
    free(file);
    gen_fini(&g);
}

/* ---- the output matrix in closed form ---- */

/* With errors of random signs, the expected divergence of the output matrix is
 * 1/2 sum over rows o of p(o) (1 - p(o)) sum over j of b(o, j)^2 x(j)^2, where
 * diag(p) - p p' is the Fisher information of logits and b the error's
 * magnitude. */
static double closed_form(const struct gen *g, const struct gen_tensor *t)
{
    static float w[V * E], e[V * E];
    static double x2[CHUNKS * CTX][E];
    struct squares sq = { .name = t->name };
    double sum = 0, power = 0;
    gen_weights(w, g, t);
    if (!make_error(t, w, false, e))
        return NAN;
    all_logits(g, &spec, base, &sq);
    for (int c = 0; c < CHUNKS; c++)
        for (int i = 0; i < CTX; i++) {
            struct squares to = { .name = t->name }, before = to;
            ref_logits_seen(g, &spec, text + c * CTX, i + 1, changed[0],
                            see_input, &to);
            if (i)
                ref_logits_seen(g, &spec, text + c * CTX, i, changed[0],
                                see_input, &before);
            for (int j = 0; j < E; j++)
                x2[c * CTX + i][j] = to.v[j] - before.v[j];
        }
    for (int i = 0; i < CHUNKS * CTX; i++) {
        double z = 0;
        for (int o = 0; o < V; o++)
            z += exp(base[i][o]);
        for (int o = 0; o < V; o++)
            for (int j = 0; j < E; j++) {
                const double p = exp(base[i][o]) / z;
                const double b = (double)e[o * E + j];
                sum += p * (1 - p) * b * b * x2[i][j];
                power += b * b * x2[i][j];
            }
    }
    return sum / power;
}

static void check_output(void)
{
    struct gguf_imatrix *im;
    struct gguf_imatrix_sensitivity f;
    struct gguf_error err;
    struct gen g;
    size_t size, i = 0;
    gen_init(&g, 5);
    gen_model(&g, &spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    const struct how h = { .include = "output.weight" };
    while (i < g.n && strcmp(g.t[i].name, "output.weight") != 0)
        i++;
    const double c = closed_form(&g, &g.t[i]);
    const bool good = measure_text(&im, file, size, &h, &err) == GGUF_OK &&
                      find_value(im, "output.weight", &f);
    ok(good && fabs(f.value / c - 1) < 0.1,
       "output matrix: %.4g, the trace of its Fisher information gives %.4g",
       good ? f.value : 0, c);
    gguf_imatrix_destroy(im);
    free(file);
    gen_fini(&g);
}

/* ---- invariance ---- */

static bool same_values(const struct gguf_imatrix *a,
                        const struct gguf_imatrix *b)
{
    const size_t n = gguf_imatrix_n_sensitivities(a);
    bool good = n > 0 && gguf_imatrix_n_sensitivities(b) == n;
    for (size_t i = 0; good && i < n; i++) {
        struct gguf_imatrix_sensitivity x = GGUF_IMATRIX_SENSITIVITY_INIT;
        struct gguf_imatrix_sensitivity y = x;
        good = !gguf_imatrix_sensitivity(a, i, &x, NULL) &&
               !gguf_imatrix_sensitivity(b, i, &y, NULL) &&
               !strcmp(x.name, y.name) && x.value == y.value &&
               x.input == y.input && x.n_tokens == y.n_tokens;
    }
    return good;
}

/* A progress callback that stops in the middle, or when numbers are wrong. */
struct watch {
    uint64_t last, total;
    bool stops;
};

static bool watch_progress(void *user, uint64_t done, uint64_t total)
{
    struct watch *w = user;
    const bool wrong = done < w->last || done > total;
    *w = (struct watch){ done, total, w->stops };
    return wrong || (w->stops && done > total / 2);
}

static void check_invariance(void)
{
    struct gguf_imatrix *a, *b;
    struct gguf_error err;
    size_t size;
    struct watch w = { 0, 0, false };
    void *file = gen_model_file(&spec, 7, GGUF_DTYPE_F16, &size);
    struct how h = { .n_threads = 1, .progress = { watch_progress, &w } };
    bool good = measure_text(&a, file, size, &h, &err) == GGUF_OK;
    ok(good && w.last == w.total && w.last > 0,
       "progress reaches its end: %llu of %llu", (unsigned long long)w.last,
       (unsigned long long)w.total);
    h = (struct how){ .n_threads = 3 };
    good = measure_text(&b, file, size, &h, &err) == GGUF_OK && good;
    ok(good && same_values(a, b), "three threads: the same bits");
    gguf_imatrix_destroy(b);
    h = (struct how){ .n_threads = 1, .include = "blk.1.ffn_up" };
    good = measure_text(&b, file, size, &h, &err) == GGUF_OK && good;
    struct gguf_imatrix_sensitivity x, y;
    ok(good && find_value(a, "blk.1.ffn_up.weight", &x) &&
           find_value(b, "blk.1.ffn_up.weight", &y) && x.value == y.value,
       "a weight alone: the same bits");
    gguf_imatrix_destroy(b);
    h = (struct how){ .n_tokens = CTX + 1 };
    ok(measure_text(&b, file, size, &h, &err) == GGUF_OK &&
           find_value(b, "blk.0.attn_q.weight", &y) && y.n_tokens == 2 * CTX,
       "tokens are rounded up to whole chunks");
    gguf_imatrix_destroy(b);
    h = (struct how){ .progress = { watch_progress, &w } };
    w = (struct watch){ .stops = true };
    ok(measure_text(&b, file, size, &h, &err) == GGUF_E_CANCELLED &&
           w.last > 0,
       "stopped by its progress");
    gguf_imatrix_destroy(b);
    gguf_imatrix_destroy(a);
    free(file);
}

/* ---- failures ---- */

static void check_failures(void)
{
    struct gguf_imatrix *im;
    struct gguf_error err;
    struct failalloc fa;
    size_t size;
    unsigned n = 0;
    void *file = gen_model_file(&spec, 7, GGUF_DTYPE_F16, &size);
    struct how h = { .include = "nothing" };
    ok(measure_text(&im, file, size, &h, &err) == GGUF_E_NOTFOUND,
       "no weight: %s", err.message);
    gguf_imatrix_destroy(im);
    h = (struct how){ .include = "blk.1.attn_k" };
    enum gguf_status st = GGUF_E_NOMEM;
    bool good = true;
    for (; st == GGUF_E_NOMEM && n < 5000; n++) {
        h.a = failalloc_init(&fa, n);
        st = measure_text(&im, file, size, &h, &err);
        gguf_imatrix_destroy(im);
        good = good && fa.live == 0;
    }
    ok(st == GGUF_OK && good && n > 20,
       "%u allocations that fail, one at a time", n);
    free(file);
}

/* ---- files with changed weights ---- */

static bool file_logits(const void *file, size_t size, float *out)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    sp.n_ctx = sp.n_ubatch = CTX;
    bool good = run_open(&r, file, size, 1, &sp);
    for (int c = 0; c < CHUNKS && good; c++) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        b.n = CTX;
        b.token = text + c * CTX;
        good = gguf_session_clear(r.session, NULL) == GGUF_OK &&
               run_logits(&r, &b, out + (size_t)c * CTX * r.n_vocab);
    }
    run_close(&r);
    return good;
}

static struct gguf_imatrix *collect_text(const void *file, size_t size)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_collect_params cp = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect *c = NULL;
    struct gguf_imatrix *im = NULL;
    struct run r;
    sp.n_ctx = cp.n_ctx = CTX;
    if (!run_open(&r, file, size, 1, &sp) ||
        gguf_collect_create(&c, &cp, NULL) != GGUF_OK ||
        gguf_collect_run(c, r.session, text, N, NULL, NULL) != GGUF_OK ||
        gguf_collect_result(c, &im, NULL) != GGUF_OK)
        im = NULL;
    gguf_collect_destroy(c);
    run_close(&r);
    return im;
}

/* Power of an error by the formula of imatrix.h, from importance data. */
static double power_of(const struct gguf_imatrix *im,
                       const struct gen_tensor *t, const float *e)
{
    static float sums[1 << 16], counts[256];
    struct gguf_imatrix_entry x = GGUF_IMATRIX_ENTRY_INIT;
    const size_t n = (size_t)t->ne[0], m = (size_t)t->ne[1];
    size_t i;
    double all = 0, power = 0;
    if (!gguf_imatrix_find(im, (struct gguf_str){ t->name, strlen(t->name) },
                           &i) ||
        gguf_imatrix_entry(im, i, &x, NULL) != GGUF_OK ||
        gguf_imatrix_sums(im, i, 0, x.n_values, sums, NULL) != GGUF_OK ||
        gguf_imatrix_counts(im, i, 0, x.n_mats, counts, NULL) != GGUF_OK)
        return NAN;
    for (size_t k = 0; k < x.n_mats; k++)
        all += (double)counts[k];
    for (size_t k = 0; k < x.n_mats; k++)
        for (size_t r = 0; r < m; r++)
            for (size_t j = 0; j < n; j++) {
                const double b = (double)e[(k * m + r) * n + j];
                power += (double)sums[k * n + j] / all * b * b;
            }
    return power;
}

/* Mean divergence of a model with a tensor's weights changed by factor times an
 * error, in double precision. */
static double changed_divergence(struct gen *g, struct gen_tensor *t,
                                 const float *w, const float *e, size_t n,
                                 double factor, const float *b, size_t n_vocab)
{
    static float q[CHUNKS * CTX * SKELETON_VOCAB];
    float *v = malloc(n * sizeof *v);
    size_t size;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        v[i] = w[i] + (float)factor * e[i];
    t->values = v;
    void *file = gen_file(g, GGUF_DTYPE_F32, &size);
    t->values = NULL;
    const bool good = file_logits(file, size, q);
    for (size_t i = 0; i < CHUNKS * CTX; i++) {
        double nb = 0, nq = 0;
        for (size_t k = i * n_vocab; k < (i + 1) * n_vocab; k++) {
            nb += exp((double)b[k]);
            nq += exp((double)q[k]);
        }
        for (size_t k = i * n_vocab; k < (i + 1) * n_vocab; k++)
            sum += exp((double)b[k]) / nb *
                   ((double)b[k] - log(nb) - (double)q[k] + log(nq));
    }
    free(v);
    free(file);
    return good ? sum / (CHUNKS * CTX) : NAN;
}

/* Compare sensitivities of products of a model with those of changed files,
 * for weights whose names contain a text. Weights before a router are left out:
 * a small error may change the choice of experts. */
static void check_files(const char *name, const char *part, size_t n_wanted)
{
    static float base_logits[CHUNKS * CTX * SKELETON_VOCAB];
    static float w[1 << 18], e[1 << 18];
    struct skeleton s;
    struct gguf_error err;
    struct gguf_imatrix *im = NULL, *squares = NULL;
    size_t size, n = 0;
    double worst = 0;
    bool good = skeleton_open(&s, name);
    skeleton_set_text(&s);
    const size_t n_vocab = good ? skeleton_width(&s) : 0;
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    const struct how h = { .n_threads = 2 };
    good = good && n_vocab <= SKELETON_VOCAB &&
           measure_text(&im, file, size, &h, &err) == GGUF_OK &&
           file_logits(file, size, base_logits) &&
           (squares = collect_text(file, size)) != NULL;
    for (size_t i = 0; good && i < s.g.n; i++) {
        struct gen_tensor *t = &s.g.t[i];
        struct gguf_imatrix_sensitivity f;
        size_t n_el = 1;
        for (unsigned d = 0; d < t->n_dims; d++)
            n_el *= (size_t)t->ne[d];
        if (!find_value(im, t->name, &f) || f.input == 0 || n_el > GG_LEN(w) ||
            strstr(t->name, "gate_inp") || !strstr(t->name, part))
            continue;
        gen_weights(w, &s.g, t);
        good = make_error(t, w, false, e);
        const double power = power_of(squares, t, e);
        const double sigma = sqrt(4e-3 / (f.value * power));
        double kld = 0;
        for (int sign = -1; sign <= 1; sign += 2)
            kld += changed_divergence(&s.g, t, w, e, n_el, sign * sigma,
                                      base_logits, n_vocab) /
                   2;
        const double c = 2 * kld / (sigma * sigma * power);
        printf("# %-28s %.4g, expected %.4g\n", t->name, f.value, c);
        worst = GG_MAX(worst, fabs(f.value / c - 1));
        n++;
    }
    ok(good && n == n_wanted && worst < 0.03,
       "%s: %zu sensitivities are at most %.2g%% from those of changed files",
       name, n, 100 * worst);
    gguf_imatrix_destroy(im);
    gguf_imatrix_destroy(squares);
    free(file);
    skeleton_close(&s);
}

/* ---- architectures ---- */

static void check_archs(void)
{
    static char names[512][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    const size_t step = getenv("GGUF_TEST_LONG") ? 1 : 5;
    size_t n_good = 0, n_not = 0, bad = 0;
    for (size_t i = 0; i < n; i += step) {
        struct skeleton s;
        struct gguf_imatrix *im = NULL;
        struct gguf_error err;
        size_t size;
        if (skeleton_open(&s, names[i]) && s.width) {
            void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
            skeleton_set_text(&s);
            const struct how h = { .n_threads = 2, .n_tokens = CTX };
            const enum gguf_status st =
                measure_text(&im, file, size, &h, &err);
            n_good += st == GGUF_OK;
            n_not += st == GGUF_E_UNSUPPORTED;
            if (st != GGUF_OK && st != GGUF_E_UNSUPPORTED) {
                bad++;
                printf("# %s: %s\n", names[i], err.message);
            }
            gguf_imatrix_destroy(im);
            free(file);
        }
        skeleton_close(&s);
    }
    ok(!bad && n_good > 15 && n_not < n_good,
       "%zu architectures are measured, %zu are not supported", n_good, n_not);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        text[i] = (gguf_token)((i * i * 7 + i * 37 + 11) % V);
    check_model();
    check_output();
    check_invariance();
    check_failures();
    check_files("gpt2", "blk.", 8);
    check_files("qwen3moe", "blk.1.ffn_", 3);
    check_files("deepseek2", "exp", 5);
    check_archs();
    return done_testing();
}
