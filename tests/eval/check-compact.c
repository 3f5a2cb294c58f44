/* SPDX-License-Identifier: MIT */
/* check-compact.c - the compact form of a base's logits: contents of a row,
 * errors of divergences, files read and refused */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "eval/baseline_int.h"
#include "eval/compact.h"
#include "eval/divergence.h"
#include "gguf/kld.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static char dir[] = "/tmp/check-compact-XXXXXX";

/* ---- rows ---- */

enum { V = 3000 };
static float base[V], model[V];

/* Make a base's rows, steep or flat, and a model's rows that differ by noise.
 */
static void make_rows(double slope, double noise)
{
    for (int i = 0; i < V; i++) {
        base[i] = (float)(-slope * log(1 + (double)rnd_below(V)) +
                          (double)rnd_f32());
        model[i] = base[i] + (float)noise * (rnd_f32() + rnd_f32());
    }
}

static long double norm_of(const float *row)
{
    long double sum = 0;
    for (int i = 0; i < V; i++)
        sum += expl(row[i]);
    return logl(sum);
}

static double exact_value(void)
{
    const long double nb = norm_of(base), nq = norm_of(model);
    long double sum = 0;
    for (int i = 0; i < V; i++) {
        const long double b = base[i] - nb, q = model[i] - nq;
        sum += expl(b) * (b - q);
    }
    return (double)sum;
}

/* Bytes of a row: TENTH is a tenth of the full form; with AMPLE the smallest
 * weight limits a row, not its size. */
enum { TENTH = (2 * V + 8) / 10, AMPLE = 1 << 16 };
static uint8_t bytes[1 << 18];

static double estimate_value(size_t room, uint64_t number,
                             struct gg_compact_row *about)
{
    size_t top[2];
    gg_compact_encode(base, V, 7, room, number, bytes, about);
    return gg_compact_divergence(bytes, model, (double)norm_of(model), V,
                                 &top[0], &top[1]);
}

/* The mean over many draws is the divergence, within 5 standard errors. */
static void check_unbiased(void)
{
    static const double slopes[] = { 0.2, 1, 2 }, noises[] = { 0.02, 0.3, 3 };
    enum { TIMES = 400 };
    for (size_t s = 0; s < GG_LEN(slopes); s++)
        for (size_t n = 0; n < GG_LEN(noises); n++) {
            struct gg_compact_row about = { .n = 0 };
            double sum = 0, squares = 0;
            make_rows(slopes[s], noises[n]);
            const double want = exact_value();
            for (uint64_t k = 0; k < TIMES; k++) {
                const double v = estimate_value(TENTH, 17 * k, &about);
                sum += v;
                squares += v * v;
            }
            const double mean = sum / TIMES;
            const double error =
                sqrt(fmax(squares / TIMES - mean * mean, 0) / (TIMES - 1));
            ok(fabs(mean - want) <= 5 * error + 3e-4 * want + 1e-9 &&
                   about.size <= TENTH,
               "slope %g, noise %g: %.7g, estimated %.7g +/- %.2g, %zu bytes, "
               "%.2g drawn",
               slopes[s], noises[n], want, mean, error, about.size,
               about.tail);
        }
}

/* A row that stores every token of some weight gives the exact divergence. */
static void check_whole(void)
{
    struct gg_compact_row about;
    make_rows(8, 0.1);
    const double want = exact_value();
    const double got = estimate_value(AMPLE, 1, &about);
    ok(about.tail < 0.02 && fabs(got / want - 1) < 0.01 &&
           about.weight == GG_COMPACT_LEAST,
       "a steep row: %.9g of %.9g, %u tokens", got, want, about.n);
    const double nll = gg_compact_nll(bytes);
    ok(fabs(nll - (double)(norm_of(base) - base[7])) < 1e-6 * nll,
       "the token that follows is exact: %.9g", nll);
    memcpy(model, base, sizeof model);
    const double same = estimate_value(AMPLE, 1, &about);
    ok(fabs(same) < 3e-8, "a model that is its base: %.3g", same);
    size_t top[2], want_top = 0;
    for (size_t i = 1; i < V; i++)
        want_top = base[i] > base[want_top] ? i : want_top;
    model[5] = 1000;
    (void)gg_compact_divergence(bytes, model, 1000, V, &top[0], &top[1]);
    ok(top[0] == want_top && top[1] == 5, "the likeliest tokens are known");
    base[4] = NAN;
    gg_compact_encode(base, V, 7, TENTH, 1, bytes, &about);
    ok(!about.size, "a row with a NaN is not written");
}

/* Every token above the row's weight is stored: changing the model's
 * probability of such a token changes the divergence by the right amount. */
static void check_tokens(void)
{
    struct gg_compact_row about;
    size_t n = 0, n_wrong = 0;
    make_rows(1.5, 0.01);
    const double want = exact_value(), got = estimate_value(TENTH, 3, &about);
    const double norm = (double)norm_of(base);
    const double w = exp(-(double)about.weight / (double)GG_COMPACT_STEPS);
    for (int i = 0; i < V; i++) {
        const double p = exp((double)base[i] - norm);
        if (p < w)
            continue;
        const float kept = model[i];
        model[i] += n % 2 ? 1 : -1;
        const double more = exact_value() - want;
        size_t top[2];
        const double d =
            gg_compact_divergence(bytes, model, (double)norm_of(model), V,
                                  &top[0], &top[1]) -
            got;
        n_wrong += fabs(d - more) > 0.02 * more + 1e-6;
        model[i] = kept;
        n++;
    }
    ok(n > 20 && n < about.n && !n_wrong,
       "%zu of %" PRIu32 " tokens are above the weight, and each is known", n,
       about.n);
}

/* Bytes that are not a row are refused or read without a read out of bounds.
 * The memory ends with the bytes, so that a sanitizer sees one. */
static void check_any(void)
{
    struct gg_compact_row about;
    size_t n_read = 0, n_silent = 0;
    make_rows(1, 0.1);
    gg_compact_encode(base, V, 7, TENTH, 1, bytes, &about);
    for (int t = 0; t < 600; t++) {
        const size_t size = about.size - (t % 3 ? 0 : rnd_below(40));
        uint8_t *any = malloc(size);
        uint64_t took = 0;
        size_t top[2];
        struct gguf_error err = { .offset = UINT64_MAX };
        memcpy(any, bytes, size);
        for (int i = 0; i < 3; i++)
            any[rnd_below(t % 2 ? size : 14)] ^= (uint8_t)(1 + rnd_below(255));
        if (gg_compact_check(any, size, 100, V, &took, &err) == GGUF_OK)
            n_read += !isnan(gg_compact_divergence(any, model, 0, V, &top[0],
                                                   &top[1])) &&
                      took <= size && top[0] < V;
        else
            n_silent +=
                !err.message[0] || err.offset < 100 || err.offset > 100 + size;
        free(any);
    }
    ok(n_read > 200 && n_read < 600 && !n_silent,
       "of 600 rows with other bytes %zu can be read", n_read);
}

/* The error that a file states for rows of a kind. Divergences of near models
 * are within 4 errors, and most are within 1. */
static double stated_error(double spread, double fine, double n)
{
    return sqrt(3 * spread + fine / (6 * 1e-5)) / n;
}

static void add_stated(const struct gg_compact_row *about, double *spread,
                       double *fine)
{
    const double w = exp(-(double)about->weight / (double)GG_COMPACT_STEPS);
    *spread += about->tail * w;
    *fine += about->n * w * w / GG_COMPACT_FINE / GG_COMPACT_FINE;
}

static void check_error(void)
{
    enum { ROWS = 40, TIMES = 30 };
    size_t n_far = 0, n_over = 0, n_large = 0;
    double squares = 0;
    for (size_t t = 0; t < TIMES; t++) {
        double want = 0, got = 0, spread = 0, fine = 0;
        /* from 0.004 to 0.17 */
        const double noise = 0.004 * exp(0.13 * (double)t);
        for (size_t r = 0; r < ROWS; r++) {
            struct gg_compact_row about;
            make_rows(0.8 + 0.03 * (double)r, noise);
            want += exact_value();
            got += estimate_value(TENTH, t * ROWS + r, &about);
            add_stated(&about, &spread, &fine);
            n_large += about.size > TENTH;
        }
        const double off = (got / want - 1) / stated_error(spread, fine, ROWS);
        squares += off * off;
        n_over += fabs(off) > 1;
        n_far += fabs(off) > 4;
    }
    ok(!n_far && n_over < TIMES / 2 && squares < TIMES && !n_large,
       "%d texts: %zu off by more than the error, none by 4 times the error; "
       "%.2f of it on average",
       TIMES, n_over, sqrt(squares / TIMES));
}

/* With 128,000 tokens, a dozen rows take less than a tenth, and their
 * divergence is near the stated error. The error of 12 chunks of 512 tokens is
 * a 16th of it. */
static void check_many(void)
{
    enum { MANY = 128000, ROWS = 12 };
    float *b = malloc(MANY * sizeof *b), *m = malloc(MANY * sizeof *m);
    const size_t room = (2 * MANY + 8) / 10;
    uint8_t *out = malloc(gg_compact_max_size(MANY, room));
    double want = 0, got = 0, spread = 0, fine = 0;
    size_t size = 0, top[2];
    for (uint64_t r = 0; b && m && out && r < ROWS; r++) {
        struct gg_compact_row about;
        for (int i = 0; i < MANY; i++) {
            b[i] = (float)(-1.1 * log(1 + (double)rnd_below(MANY)) +
                           2 * (double)rnd_f32());
            m[i] = b[i] + 0.05f * (rnd_f32() + rnd_f32());
        }
        const double nb = gg_divergence_norm(b, MANY);
        const double nm = gg_divergence_norm(m, MANY);
        for (int i = 0; i < MANY; i++) {
            const double lb = (double)b[i] - nb, lm = (double)m[i] - nm;
            want += exp(lb) * (lb - lm);
        }
        gg_compact_encode(b, MANY, 7, room, r, out, &about);
        got += gg_compact_divergence(out, m, nm, MANY, &top[0], &top[1]);
        size += about.size;
        add_stated(&about, &spread, &fine);
    }
    const double off = fabs(got / want - 1);
    const double error = stated_error(spread, fine, ROWS);
    ok(size && size <= room * ROWS && off < 3 * error && error < 0.0015,
       "128,000 tokens: %.6g for %.6g, %.3f%% off, %.3f%% stated, %.4f of the "
       "size",
       got / ROWS, want / ROWS, 100 * off, 100 * error,
       (double)size / ROWS / (2 * MANY + 8));
    free(b);
    free(m);
    free(out);
}

/* ---- files ---- */

enum { CTX = 64, CHUNKS = 6, WORDS = 1200, N = CTX * CHUNKS };
static void *file[3];
static size_t file_size[3];
static gguf_token text[N];

static bool scan_text(int which, uint32_t n_seq, const struct gguf_sink *sink,
                      struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct run r;
    sp.n_ctx = CTX;
    sp.n_seq = n_seq;
    sp.n_ubatch = n_seq * CTX;
    p.n_ctx = CTX;
    bool good = run_open(&r, file[which], file_size[which], 2, &sp);
    p.pool = r.pool;
    good = good &&
           gguf_scan_run(r.session, text, N, &p, &sink, 1, err) == GGUF_OK;
    run_close(&r);
    return good;
}

static bool save_baseline(const char *path, uint32_t n_seq,
                          enum gguf_baseline_form form)
{
    struct gguf_baseline_writer_params wp = { .struct_size = sizeof wp,
                                              .form = form,
                                              .force = true };
    struct gguf_baseline_writer *w = NULL;
    struct gguf_error err;
    bool good = gguf_baseline_writer_open(&w, path, &wp, &err) == GGUF_OK &&
                scan_text(0, n_seq, gguf_baseline_writer_sink(w), &err) &&
                gguf_baseline_writer_commit(w, &err) == GGUF_OK;
    gguf_baseline_writer_close(w);
    w = NULL;
    wp.form = (enum gguf_baseline_form)2;
    return good &&
           gguf_baseline_writer_open(&w, path, &wp, &err) == GGUF_E_INVALID;
}

static bool compare_baseline(const char *path, struct gguf_kld_stats *stats,
                             struct gguf_error *err)
{
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_baseline *b = NULL;
    struct gguf_kld *k = NULL;
    *stats = (struct gguf_kld_stats)GGUF_KLD_STATS_INIT;
    bool good = gguf_baseline_open(&b, path, NULL, err) == GGUF_OK;
    kp.baseline = b;
    good = good && gguf_kld_create(&k, &kp, err) == GGUF_OK &&
           scan_text(1, 2, gguf_kld_sink(k), err) &&
           gguf_kld_stats(k, stats, err) == GGUF_OK;
    gguf_kld_destroy(k);
    gguf_baseline_close(b);
    return good;
}

static void *make_model(uint64_t seed, const char *arch, uint32_t n_vocab,
                        size_t *size)
{
    struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = n_vocab };
    spec.arch = arch;
    void *p = gen_model_file(&spec, seed, GGUF_DTYPE_F32, size);
    return p;
}

/* The error of a file, computed from its bytes (gguf/baseline.h) and the
 * logits: sums over probabilities below each row's weight, and the number of
 * tokens. */
struct account {
    const uint8_t *at;
    long double tail, spread, fine;
    size_t n;
};

static uint32_t seven_bits(const uint8_t **p)
{
    uint32_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        const uint8_t byte = *(*p)++;
        v |= (uint32_t)(byte & 127) << shift;
        if (byte < 128)
            return v;
    }
}

static enum gguf_status account_rows(void *user,
                                     const struct gguf_scan_rows *rows,
                                     struct gguf_error *err)
{
    struct account *a = user;
    (void)err;
    for (uint32_t i = 0; i < rows->n; i++) {
        const float *row = rows->logits + (size_t)i * rows->n_vocab;
        const uint32_t size = seven_bits(&a->at);
        const uint8_t *p = a->at + 4;
        const long double w = expl(-(p[0] + 256 * p[1]) / 2048.0L);
        long double sum = 0, below = 0;
        for (uint32_t k = 0; k < rows->n_vocab; k++)
            sum += expl(row[k]);
        for (uint32_t k = 0; k < rows->n_vocab; k++)
            below += expl(row[k]) < w * sum ? expl(row[k]) / sum : 0;
        p += 2;
        (void)seven_bits(&p); /* the most likely token */
        a->tail += below;
        a->spread += below * w;
        a->fine += seven_bits(&p) * (w / 128) * (w / 128);
        a->at += size;
        a->n++;
    }
    return GGUF_OK;
}

static void check_account(const uint8_t *bytes_of, const char *path)
{
    struct account a = { .at = bytes_of + 32 + 4 * N };
    struct gguf_sink sink = GGUF_SINK_INIT;
    struct gguf_baseline *f = NULL;
    struct gguf_error err;
    sink.user = &a;
    sink.rows = account_rows;
    const bool good = scan_text(0, 2, &sink, &err) &&
                      !gguf_baseline_open(&f, path, NULL, &err) && a.n;
    const double n = (double)a.n, tail = (double)a.tail / n;
    const double error = sqrt((double)(3 * a.spread + a.fine / 6e-5L)) / n;
    const double tail_off = good ? gguf_baseline_tail_mass(f) / tail - 1 : 1;
    const double error_off = good ? gguf_baseline_kld_error(f) / error - 1 : 1;
    ok(good && fabs(tail_off) < 1e-6 && fabs(error_off) < 1e-6,
       "of %zu rows %.6f is drawn (off by %.1g), the error is %.6f (%.1g)",
       a.n, tail, tail_off, error, error_off);
    gguf_baseline_close(f);
}

static void check_files(void)
{
    struct gguf_kld_stats plain, small;
    struct gguf_error err;
    size_t sizes[4];
    const char *a = scratch_path(dir, "plain");
    const char *b = scratch_path(dir, "compact");
    const char *c = scratch_path(dir, "again");
    bool good = save_baseline(a, 1, GGUF_BASELINE_LLAMA) &&
                save_baseline(b, 1, GGUF_BASELINE_COMPACT) &&
                save_baseline(c, 4, GGUF_BASELINE_COMPACT);
    uint8_t *pa = slurp(a, &sizes[0]), *pb = slurp(b, &sizes[1]);
    uint8_t *pc = slurp(c, &sizes[2]);
    ok(good && sizes[1] == sizes[2] && !memcmp(pb, pc, sizes[1]),
       "the same bytes however chunks are batched");
    ok(good && 10 * sizes[1] <= sizes[0],
       "a tenth of the size: %zu bytes of %zu", sizes[1], sizes[0]);
    good = good && pb && compare_baseline(a, &plain, &err) &&
           compare_baseline(b, &small, &err);
    struct gguf_baseline *f = NULL;
    good = good && !gguf_baseline_open(&f, b, NULL, &err);
    const double error = good ? gguf_baseline_kld_error(f) : 0;
    const double off = fabs(small.kld.value / plain.kld.value - 1);
    ok(good && error > 0 && off < 4 * error + 1e-3,
       "divergence %.6g, of llama.cpp's form %.6g: %.3f%%, stated %.3f%%",
       small.kld.value, plain.kld.value, 100 * off, 100 * error);
    ok(good && fabs(small.ppl_base.value / plain.ppl_base.value - 1) < 1e-4 &&
           small.same_top.value >= plain.same_top.value - 0.01 &&
           !strcmp(gguf_baseline_form(f), "compact") &&
           gguf_baseline_tail_mass(f) > 0 && gguf_baseline_tail_mass(f) < 1,
       "the base's perplexity is the same, and what its form is");
    gguf_baseline_close(f);
    check_account(pb, b);
    void *swap = file[1];
    const size_t swap_size = file_size[1];
    file[1] = file[2];
    file_size[1] = file_size[2];
    ok(good && !compare_baseline(b, &small, &err) &&
           err.status == GGUF_E_INVALID &&
           strstr(err.message, "a vocabulary of 1200 there, 1199 here"),
       "%s", err.message);
    file[1] = swap;
    file_size[1] = swap_size;
    free(pa);
    free(pc);
    /* change every 61st byte; truncate at every 83rd */
    size_t n_bad = 0, n_silent = 0;
    for (size_t i = 0; pb && i < sizes[1]; i += 61) {
        pb[i] ^= (uint8_t)(1u << rnd_below(8));
        gguf_error_clear(&err);
        n_bad += !spill(c, pb, sizes[1]) ||
                 gguf_baseline_open(&f, c, NULL, &err) == GGUF_OK;
        n_silent += !err.message[0] || err.offset > sizes[1];
        gguf_baseline_close(f);
        free(pb);
        pb = slurp(b, &sizes[1]);
    }
    ok(good && !n_bad && !n_silent, "a changed byte is refused, with a byte");
    for (size_t i = 0; pb && i < sizes[1]; i += 83) {
        n_bad += !spill(c, pb, i) ||
                 gguf_baseline_open(&f, c, NULL, &err) == GGUF_OK;
        gguf_baseline_close(f);
    }
    ok(good && !n_bad, "so is a file that ends too early");
    /* version 1 had another form */
    pb[8] = 1;
    ok(spill(c, pb, sizes[1]) &&
           gguf_baseline_open(&f, c, NULL, &err) == GGUF_E_VERSION &&
           err.offset == 8 && strstr(err.message, "save them again"),
       "%s", err.message);
    free(pb);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    check_unbiased();
    check_whole();
    check_tokens();
    check_any();
    check_error();
    check_many();
    file[0] = make_model(5, "llama", WORDS, &file_size[0]);
    file[1] = make_model(6, "llama", WORDS, &file_size[1]);
    file[2] = make_model(5, "llama", WORDS - 1, &file_size[2]);
    for (int i = 0; i < N; i++)
        text[i] = (gguf_token)rnd_below(WORDS - 1);
    check_files();
    for (int i = 0; i < 3; i++)
        free(file[i]);
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
