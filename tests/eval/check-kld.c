/* SPDX-License-Identifier: MIT */
/* check-kld.c - divergences agree with their definitions, evaluated in long
 * double */
#include "config.h"
#include "base/compiler.h"
#include "gguf/kld.h"
#include "tests/failalloc.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    CTX = 12,
    CHUNKS = 5,
    V = 700,
    N = CHUNKS * CTX + 3,
    ROWS = CTX / 2 - 1,
    SCORED = CHUNKS * ROWS
};

/* ---- statistics: two passes in long double, straight from definitions ---- */

struct sample {
    size_t n;
    long double *v;
};

static long double avg(const long double *v, size_t n)
{
    long double s = 0;
    for (size_t i = 0; i < n; i++)
        s += v[i];
    return s / (long double)n;
}

/* Mean of (a - mean a)(b - mean b) over n - 1: the square of a standard error
 * if a is b. */
static long double cov(const long double *a, const long double *b, size_t n)
{
    long double ma = avg(a, n), mb = avg(b, n), s = 0;
    for (size_t i = 0; i < n; i++)
        s += (a[i] - ma) * (b[i] - mb);
    return s / (long double)n / (long double)(n - 1);
}

/* The i-th smallest number, found without sorting. */
static long double nth_value(const long double *v, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++) {
        size_t less = 0, equal = 0;
        for (size_t j = 0; j < n; j++) {
            less += v[j] < v[k];
            equal += v[j] <= v[k];
        }
        if (less <= i && i < equal)
            return v[k];
    }
    return NAN;
}

static long double quantile(const long double *v, size_t n, long double at)
{
    at = at < 0 ? 0 : at > (long double)(n - 1) ? (long double)(n - 1) : at;
    const size_t i = (size_t)floorl(at);
    if (i + 1 == n)
        return nth_value(v, n, i);
    const long double lo = nth_value(v, n, i), hi = nth_value(v, n, i + 1);
    return lo + (at - (long double)i) * (hi - lo);
}

/* Largest difference: relative, or absolute near 0. */
static double worst;
static void check_near(double got, long double want)
{
    const double d = fabs(got - (double)want) / fmax(1, fabs((double)want));
    worst = isnan(d) ? INFINITY : fmax(worst, d);
}

static void near_figure(struct gguf_figure got, long double value,
                        long double error)
{
    check_near(got.value, value);
    check_near(got.error, error);
}

static void near_quantiles(const struct gguf_figure *got, const long double *v,
                           size_t n)
{
    static const double f[] = { 0,    0.001, 0.01, 0.05, 0.1,   0.25, 0.5,
                                0.75, 0.9,   0.95, 0.99, 0.999, 1 };
    for (unsigned i = 0; i < GGUF_KLD_N_QUANTILES; i++) {
        const long double at = f[i] * (long double)(n - 1);
        const long double w = sqrtl((long double)n * f[i] * (1 - f[i]));
        check_near(gguf_kld_quantile(i), f[i]);
        check_near(got[i].value, quantile(v, n, at));
        if (f[i] > 0 && f[i] < 1)
            check_near(got[i].error,
                       (quantile(v, n, at + w) - quantile(v, n, at - w)) / 2);
        else if (!isnan(got[i].error))
            worst = INFINITY;
    }
}

enum { MOST = 400 };

/* Compare all statistics of n tokens. */
static void near_stats(const struct gguf_kld_stats *s,
                       const struct gguf_kld_token *t, size_t n)
{
    static long double x[MOST], b[MOST], d[MOST], kld[MOST], dp[MOST],
        dp2[MOST], same[MOST];
    for (size_t i = 0; i < n; i++) {
        x[i] = t[i].x;
        b[i] = t[i].x_base;
        d[i] = x[i] - b[i];
        kld[i] = t[i].kld;
        dp[i] = expl(-x[i]) - expl(-b[i]);
        dp2[i] = dp[i] * dp[i];
        same[i] = t[i].same_top;
    }
    const long double p = expl(avg(x, n)), pb = expl(avg(b, n));
    const long double vx = cov(x, x, n), vb = cov(b, b, n), c = cov(x, b, n);
    const long double r = c / sqrtl(vx * vb), ratio = expl(avg(d, n));
    const long double rms = sqrtl(avg(dp2, n));
    check_near((double)s->n, n);
    near_figure(s->ppl, p, p * sqrtl(vx));
    near_figure(s->ppl_base, pb, pb * sqrtl(vb));
    near_figure(s->correlation, r, (1 - r * r) / sqrtl((long double)(n - 1)));
    /* llama.cpp's formula: both variances and the covariance */
    near_figure(s->ln_ratio, avg(d, n), sqrtl(vx + vb - 2 * c));
    near_figure(s->ratio, ratio, ratio * sqrtl(vx + vb - 2 * c));
    near_figure(s->difference, p - pb,
                sqrtl(p * p * vx + pb * pb * vb - 2 * p * pb * c));
    near_figure(s->kld, avg(kld, n), sqrtl(cov(kld, kld, n)));
    near_figure(s->dp, avg(dp, n), sqrtl(cov(dp, dp, n)));
    near_figure(s->dp_rms, rms, sqrtl(cov(dp2, dp2, n)) / (2 * rms));
    near_figure(s->same_top, avg(same, n), sqrtl(cov(same, same, n)));
    near_quantiles(s->kld_at, kld, n);
    near_quantiles(s->dp_at, dp, n);
}

static bool stats_of(const struct gguf_kld_token *t, size_t n, size_t chunk,
                     struct gguf_kld_stats *out)
{
    struct gguf_kld *k;
    bool good = gguf_kld_create(&k, NULL, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < n; i += chunk)
        good = gguf_kld_add(k, t + i, GG_MIN(chunk, n - i), NULL) == GGUF_OK;
    *out = (struct gguf_kld_stats)GGUF_KLD_STATS_INIT;
    good = good && gguf_kld_stats(k, out, NULL) == GGUF_OK;
    gguf_kld_destroy(k);
    return good;
}

static void check_stats(void)
{
    static struct gguf_kld_token t[MOST];
    struct gguf_kld_stats s;
    for (int i = 0; i < MOST; i++) {
        t[i].x_base = 6 * fabs((double)rnd_f32());
        t[i].x = fabs(t[i].x_base + 0.3 * (double)rnd_f32());
        t[i].kld = exp(-5 + 3 * (double)rnd_f32());
        t[i].same_top = rnd_below(10) != 0;
    }
    t[7].kld = t[8].kld = t[9].kld; /* three equal values */
    static const size_t sizes[] = { 2, 3, 10, 101, MOST };
    for (size_t i = 0; i < GG_LEN(sizes); i++) {
        worst = 0;
        bool good = stats_of(t, sizes[i], 7, &s);
        near_stats(&s, t, sizes[i]);
        ok(good && worst < 1e-10, "all figures of %zu tokens, to %.2g",
           sizes[i], worst);
    }
    ok(stats_of(t, 0, 1, &s) && s.n == 0 && isnan(s.ppl.value) &&
           isnan(s.kld.value) && isnan(s.kld_at[6].value),
       "no tokens have no statistics");
    ok(stats_of(t, 1, 1, &s) && s.n == 1 && s.ppl.value == exp(t[0].x) &&
           isnan(s.ppl.error) && isnan(s.kld.error) &&
           s.kld_at[3].value == t[0].kld,
       "of one there are values without uncertainties");
    for (int i = 0; i < 50; i++) {
        t[i].x = t[i].x_base;
        t[i].kld = 0;
        t[i].same_top = 1;
    }
    ok(stats_of(t, 50, 9, &s) && s.ln_ratio.value == 0 &&
           s.ln_ratio.error == 0 && s.ratio.value == 1 &&
           s.difference.value == 0 && s.dp_rms.value == 0 &&
           s.dp_rms.error == 0 && s.kld.value == 0 && s.kld.error == 0 &&
           s.same_top.value == 1 && s.same_top.error == 0 &&
           fabs(s.correlation.value - 1) < 1e-12,
       "a model that is its base: no difference, without an uncertainty");
    ok(isnan(gguf_kld_quantile(GGUF_KLD_N_QUANTILES)), "no more quantiles");
}

/* ---- models ---- */

static void *file[3];
static size_t file_size[3];
static gguf_token text[N];
static float *by_hand[2]; /* [CHUNKS * CTX][V], each chunk decoded by itself */

static bool open_one(struct run *r, int which, unsigned n_threads,
                     uint32_t n_seq, uint32_t n_ubatch,
                     const struct gguf_allocator *a)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.allocator = a;
    p.n_ctx = CTX;
    p.n_seq = n_seq;
    p.n_ubatch = n_ubatch;
    bool good = run_open(r, file[which], file_size[which], n_threads, &p);
    if (!good)
        printf("# %s\n", r->err.message);
    return good;
}

static void *make_file(uint64_t seed, uint32_t n_vocab, size_t *size)
{
    const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = n_vocab };
    void *p = gen_model_file(&spec, seed, GGUF_DTYPE_F32, size);
    return p;
}

static bool make_models(void)
{
    bool good = true;
    file[0] = make_file(5, V, &file_size[0]);
    file[1] = make_file(6, V, &file_size[1]);
    file[2] = make_file(5, V - 1, &file_size[2]);
    for (int i = 0; i < N; i++)
        text[i] = (gguf_token)rnd_below(V);
    for (int m = 0; good && m < 2; m++) {
        struct run r;
        by_hand[m] = malloc(sizeof(float) * CHUNKS * CTX * V);
        good = open_one(&r, m, 1, 1, 0, NULL);
        for (int c = 0; good && c < CHUNKS; c++) {
            struct gguf_batch b = { .struct_size = sizeof b,
                                    .n = CTX,
                                    .token = text + c * CTX };
            ignore_status(gguf_session_clear(r.session, NULL));
            good = run_logits(&r, &b, by_hand[m] + c * CTX * V);
        }
        run_close(&r);
    }
    return good;
}

/* Log-probabilities of a row, in long double. */
static void log_p(const float *row, long double *out)
{
    long double sum = 0;
    for (int i = 0; i < V; i++)
        sum += expl(row[i]);
    for (int i = 0; i < V; i++)
        out[i] = row[i] - logl(sum);
}

static int top_token(const float *row)
{
    int at = 0;
    for (int i = 1; i < V; i++)
        at = row[i] > row[at] ? i : at;
    return at;
}

/* Expected tokens of all chunks, for model m. */
static void expect_tokens(int m, struct gguf_kld_token *out)
{
    static long double q[V], b[V];
    for (int c = 0; c < CHUNKS; c++)
        for (int i = CTX / 2; i < CTX - 1; i++, out++) {
            const float *rq = by_hand[m] + (c * CTX + i) * V;
            const float *rb = by_hand[0] + (c * CTX + i) * V;
            const gguf_token next = text[c * CTX + i + 1];
            long double kld = 0;
            log_p(rq, q);
            log_p(rb, b);
            for (int k = 0; k < V; k++)
                kld += expl(b[k]) * (b[k] - q[k]);
            *out = (struct gguf_kld_token){ (double)-q[next], (double)-b[next],
                                            (double)kld,
                                            top_token(rq) == top_token(rb) };
        }
}

struct beside {
    struct run run[2];
    struct gguf_session *session[2];
    struct gguf_kld *kld;
    struct gguf_error err;
};

/* Scan a base and a model side by side. */
static bool scan_models(struct beside *s, int model,
                        const struct gguf_kld_params *kp, size_t max_chunks,
                        unsigned threads, const uint32_t shape[4])
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    memset(s, 0, sizeof *s);
    bool good = open_one(&s->run[0], 0, threads, shape[0], shape[1], NULL);
    good =
        open_one(&s->run[1], model, threads, shape[2], shape[3], NULL) && good;
    s->session[0] = s->run[0].session;
    s->session[1] = s->run[1].session;
    good = good && gguf_kld_create(&s->kld, kp, &s->err) == GGUF_OK;
    if (!good)
        return false;
    const struct gguf_sink *const sinks[] = { gguf_kld_sink(s->kld) };
    p.n_ctx = CTX;
    p.max_chunks = max_chunks;
    p.pool = s->run[0].pool;
    return gguf_scan_run_models(s->session, 2, text, N, &p, sinks, 1,
                                &s->err) == GGUF_OK;
}

static bool scan_pair(struct beside *s, const struct gguf_kld_params *kp,
                      size_t max_chunks, unsigned threads,
                      const uint32_t shape[4])
{
    return scan_models(s, 1, kp, max_chunks, threads, shape);
}

static void close_pair(struct beside *s)
{
    gguf_kld_destroy(s->kld);
    run_close(&s->run[0]);
    run_close(&s->run[1]);
}

/* Are the tokens equal? Padding of the struct does not count. */
static bool equal_tokens(const struct gguf_kld_token *a,
                         const struct gguf_kld_token *b, size_t n)
{
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same = same && !memcmp(&a[i].x, &b[i].x, sizeof a->x) &&
               !memcmp(&a[i].x_base, &b[i].x_base, sizeof a->x) &&
               !memcmp(&a[i].kld, &b[i].kld, sizeof a->x) &&
               a[i].same_top == b[i].same_top;
    return same;
}

static struct gguf_kld_token first[SCORED]; /* tokens of the first run */
static struct gguf_kld_stats first_stats;

static void check_models(void)
{
    static const uint32_t shapes[][4] = { { 1, 0, 1, 0 },
                                          { 3, 3 * CTX, 3, 3 * CTX },
                                          { 5, 5 * CTX, 2, 2 * CTX },
                                          { 1, 5, 4, 4 * CTX } };
    static struct gguf_kld_token want[SCORED];
    expect_tokens(1, want);
    for (size_t i = 0; i < GG_LEN(shapes); i++) {
        struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
        struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
        struct beside s;
        size_t n = 0;
        bool good = scan_pair(&s, &kp, 0, (unsigned)(i % 3 + 1), shapes[i]);
        const struct gguf_kld_token *t =
            good ? gguf_kld_tokens(s.kld, &n) : NULL;
        good = good && n == SCORED &&
               gguf_kld_stats(s.kld, &stats, &s.err) == GGUF_OK;
        if (!i && good) {
            memcpy(first, t, sizeof first);
            first_stats = stats;
            double off[2] = { 0, 0 };
            bool same = true;
            for (int k = 0; k < SCORED; k++) {
                off[0] = fmax(off[0], fabs(t[k].x - want[k].x));
                off[0] = fmax(off[0], fabs(t[k].x_base - want[k].x_base));
                off[1] = fmax(off[1], fabs(t[k].kld / want[k].kld - 1));
                same = same && t[k].same_top == want[k].same_top;
            }
            /* x is computed in F32 and differs by rounding */
            ok(same && off[0] < 3e-7 && off[1] < 1e-12,
               "tokens: x to %.2g, divergence to %.2g of itself", off[0],
               off[1]);
            worst = 0;
            near_stats(&stats, t, n);
            ok(worst < 1e-10, "and their figures, to %.2g", worst);
        }
        ok(good && equal_tokens(t, first, n) &&
               !memcmp(&stats, &first_stats, sizeof stats),
           "the same bits in batches of other sizes, %zu%s", i,
           good ? "" : s.err.message);
        close_pair(&s);
    }
}

/* Chunks scanned separately and merged give the bits of one run. */
static void check_parts(void)
{
    struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
    ok(stats_of(first, SCORED, ROWS, &stats) &&
           !memcmp(&stats, &first_stats, sizeof stats),
       "chunks that are added one by one: the same bits");
}

static void check_itself(void)
{
    static const uint32_t shape[] = { 2, 2 * CTX, 2, 2 * CTX };
    const struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_kld_stats s = GGUF_KLD_STATS_INIT;
    struct beside b;
    bool good = scan_models(&b, 0, &kp, 2, 1, shape) &&
                gguf_kld_means(b.kld, &s, NULL) == GGUF_OK;
    ok(good && s.n == 2 * ROWS && s.kld.value == 0 && s.ratio.value == 1 &&
           s.same_top.value == 1 && isnan(s.kld_at[6].value),
       "a model and itself: exactly 0, and no quantiles with the means");
    close_pair(&b);
}

/* Stop after the chunk that user points to. */
static bool stop_after(void *user, size_t chunk, size_t n_chunks,
                       const struct gguf_kld *k)
{
    size_t n;
    (void)gguf_kld_tokens(k, &n);
    return n_chunks == CHUNKS && n == (chunk + 1) * ROWS &&
           chunk == *(size_t *)user;
}

static void check_refused(void)
{
    static const uint32_t shape[] = { 1, 0, 1, 0 };
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct beside s;
    struct run other;
    size_t n = 1;
    kp.model = 1;
    ok(!scan_pair(&s, &kp, 0, 1, shape) && s.err.status == GGUF_E_INVALID &&
           strstr(s.err.message, "model 1: the scan has 1 beside the base"),
       "%s", s.err.message);
    p.n_ctx = CTX;
    bool good = open_one(&other, 2, 1, 1, 0, NULL);
    struct gguf_session *pair[] = { s.session[0], other.session };
    ok(good &&
           gguf_scan_run_models(pair, 2, text, N, &p, NULL, 0, &s.err) ==
               GGUF_E_INVALID &&
           strstr(s.err.message, "logits 700 and 699"),
       "%s", s.err.message);
    pair[1] = NULL;
    ok(gguf_scan_run_models(pair, 2, text, N, &p, NULL, 0, &s.err) ==
               GGUF_E_INVALID &&
           gguf_scan_run_models(pair, 0, text, N, &p, NULL, 0, &s.err) ==
               GGUF_E_INVALID,
       "%s", s.err.message);
    run_close(&other);
    close_pair(&s);
    kp.model = 0;
    kp.on_chunk.fn = stop_after;
    kp.on_chunk.user = &n;
    ok(!scan_pair(&s, &kp, 0, 1, shape) && s.err.status == GGUF_E_CANCELLED &&
           gguf_kld_tokens(s.kld, &n) && n == 2 * ROWS,
       "stopped by the callback, after two chunks");
    struct gguf_kld_token bad = { 1, 1, NAN, 0 };
    ok(gguf_kld_add(s.kld, &bad, 1, &s.err) == GGUF_E_INVALID &&
           gguf_kld_tokens(s.kld, &n) && n == 2 * ROWS,
       "%s", s.err.message);
    close_pair(&s);
    kp.struct_size = 0;
    ok(gguf_kld_create(&s.kld, &kp, &s.err) == GGUF_E_INVALID && !s.kld, "%s",
       s.err.message);
    struct gguf_kld_stats none = { .struct_size = 0 };
    ok(gguf_kld_create(&s.kld, NULL, NULL) == GGUF_OK &&
           gguf_kld_means(s.kld, &none, &s.err) == GGUF_E_INVALID &&
           gguf_kld_stats(s.kld, &none, &s.err) == GGUF_E_INVALID,
       "%s", s.err.message);
    gguf_kld_destroy(s.kld);
}

/* A NaN weight is reported with its model and its name. */
static void check_nonfinite(void)
{
    static const uint32_t shape[] = { 1, 0, 1, 0 };
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct beside s;
    const float nan = NAN;
    char *last = (char *)file[1] + file_size[1] - sizeof nan;
    float kept;
    memcpy(&kept, last, sizeof kept);
    memcpy(last, &nan, sizeof nan);
    ok(!scan_pair(&s, &kp, 0, 1, shape) && s.err.status == GGUF_E_NONFINITE &&
           strstr(s.err.message, "chunk 1: the probability of token "),
       "%s", s.err.message);
    close_pair(&s);
    memcpy(last, &kept, sizeof kept);
}

/* ---- memory ---- */

static enum gguf_status run_with(const struct gguf_allocator *a,
                                 struct gguf_session *const *pair)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
    struct gguf_error err;
    struct gguf_kld *k;
    kp.allocator = a;
    p.n_ctx = CTX;
    enum gguf_status st = gguf_kld_create(&k, &kp, &err);
    if (st == GGUF_OK) {
        const struct gguf_sink *const sinks[] = { gguf_kld_sink(k) };
        st = gguf_scan_run_models(pair, 2, text, N, &p, sinks, 1, &err);
    }
    if (st == GGUF_OK)
        st = gguf_kld_stats(k, &stats, &err);
    gguf_kld_destroy(k);
    return st;
}

static void check_memory(void)
{
    struct failalloc f;
    struct run r[2];
    const struct gguf_allocator *a = failalloc_init(&f, UINT_MAX);
    bool good = open_one(&r[0], 0, 1, 1, 0, a);
    good = open_one(&r[1], 1, 1, 1, 0, a) && good;
    struct gguf_session *const pair[] = { r[0].session, r[1].session };
    const size_t before = f.most = f.now;
    good = good && run_with(a, pair) == GGUF_OK;
    const size_t most = f.most - before, one = ROWS * V * sizeof(float);
    ok(good && most < one,
       "%zu bytes for a scan of two models, the logits of a chunk are %zu",
       most, one);
    unsigned n_failed = 0;
    for (bool more = good; more;) {
        f.calls = 0;
        f.fail_at = f.last = n_failed;
        const enum gguf_status st = run_with(a, pair);
        more = f.calls > n_failed;
        good =
            good && st == (more ? GGUF_E_NOMEM : GGUF_OK) && f.now == before;
        n_failed += more;
    }
    ok(good && n_failed >= 8, "each of %u allocations failed once", n_failed);
    run_close(&r[0]);
    run_close(&r[1]);
}

int main(void)
{
    if (!make_models()) {
        printf("Bail out! no model\n");
        return 1;
    }
    check_stats();
    check_models();
    check_parts();
    check_itself();
    check_refused();
    check_nonfinite();
    check_memory();
    for (int i = 0; i < 3; i++)
        free(file[i]);
    free(by_hand[0]);
    free(by_hand[1]);
    return done_testing();
}
