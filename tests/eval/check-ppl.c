/* SPDX-License-Identifier: MIT */
/* check-ppl.c - perplexity: the arithmetic, and llama.cpp's figures */
#include "config.h"
#include "base/compiler.h"
#include "eval/nll.h"
#include "gguf/eval.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/source.h"
#include "tests/tap.h"

#include <math.h>
#include <stddef.h>

/* ---- arithmetic ---- */

static void check_nll(void)
{
    enum { V = 1000, N = 9 };
    static float x[N * V];
    double got[N], worst = 0;
    gguf_token tok[N];
    for (int i = 0; i < N * V; i++)
        x[i] = 20 * rnd_f32() + (float)(i / V) * 30;
    for (int i = 0; i < N; i++)
        tok[i] = (gguf_token)rnd_below(V);
    gg_nll_rows(NULL, x, V, N, tok, got);
    for (int i = 0; i < N; i++) {
        long double sum = 0;
        for (int k = 0; k < V; k++)
            sum += expl((long double)x[i * V + k] - 300);
        double want =
            (double)(logl(sum) + 300 - (long double)x[i * V + tok[i]]);
        worst = fmax(worst, fabs(got[i] - want));
    }
    ok(worst < 3e-7, "log-likelihoods to %.1g", worst);
    x[3 * V + 5] = NAN;
    x[4 * V] = INFINITY;
    gg_nll_rows(NULL, x, V, N, tok, got);
    ok(!isfinite(got[3]) && !isfinite(got[4]) && isfinite(got[5]),
       "a likelihood that is not a number gives NaN");
}

static void check_sums(void)
{
    struct gguf_ppl p = GGUF_PPL_INIT;
    ok(isnan(gguf_ppl_value(&p)) && isnan(gguf_ppl_error(&p)), "no tokens");
    const double x[] = { 1, 2, 4, 5 };
    for (int i = 0; i < 4; i++) {
        p.n++;
        p.sum += x[i];
        p.sum_sq += x[i] * x[i];
    }
    /* mean 3, mean of squares 11.5, variance 2.5 */
    ok(fabs(gguf_ppl_value(&p) - exp(3)) < 1e-12 &&
           fabs(gguf_ppl_error(&p) - exp(3) * sqrt(2.5 / 3)) < 1e-12,
       "value and uncertainty");
    p.n_bytes = 16;
    p.n_words = 3;
    double bits_error, byte_error, word_error;
    const double bits = gguf_ppl_bits_per_unit(&p, GGUF_PPL_BYTE, &bits_error);
    const double byte = gguf_ppl_per_unit(&p, GGUF_PPL_BYTE, &byte_error);
    const double word = gguf_ppl_per_unit(&p, GGUF_PPL_WORD, &word_error);
    const double se = sqrt(2.5 / 3); /* 4 tokens with 12 nats */
    ok(fabs(bits - 12 / (16 * log(2))) < 1e-12 &&
           fabs(bits_error - se * 4 / (16 * log(2))) < 1e-12 &&
           fabs(byte - pow(2, bits)) < 1e-12 &&
           fabs(byte_error - exp(0.75) * se / 4) < 1e-12,
       "for each byte: %.4f bits", bits);
    ok(fabs(word - exp(4)) < 1e-11 &&
           fabs(word_error - exp(4) * se * 4 / 3) < 1e-11 &&
           gguf_ppl_per_unit(&p, GGUF_PPL_TOKEN, NULL) == gguf_ppl_value(&p) &&
           fabs(gguf_ppl_bits_per_unit(&p, GGUF_PPL_TOKEN, NULL) -
                3 / log(2)) < 1e-12,
       "for each word, and for each token");
    struct gguf_ppl old = p;
    old.struct_size = offsetof(struct gguf_ppl, n_bytes);
    ok(isnan(gguf_ppl_per_unit(&old, GGUF_PPL_BYTE, NULL)) &&
           isnan(gguf_ppl_bits_per_unit(&old, GGUF_PPL_WORD, &bits_error)) &&
           isnan(bits_error) &&
           isnan(gguf_ppl_per_unit(&p, (enum gguf_ppl_unit)3, NULL)),
       "an older program's sums have no interval");
    ok(gguf_ppl_n_chunks(1023, NULL) == 0 &&
           gguf_ppl_n_chunks(1024, NULL) == 2 &&
           gguf_ppl_n_chunks(1600, NULL) == 3 &&
           gguf_ppl_min_tokens(NULL) == 1024,
       "numbers of chunks");
}

/* ---- a model of our own: chunks by hand ---- */

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = 80 };

static bool stop_at_two(void *user, size_t chunk, size_t n_chunks,
                        const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    (void)n_chunks;
    (void)one;
    *(uint64_t *)user = all->n;
    return chunk == 1;
}

static void check_own(void)
{
    enum { CTX = 10, N = 4 * CTX + 3 };
    static struct gen g;
    static float logits[CTX * 80];
    gguf_token tok[N];
    struct gguf_ppl want = GGUF_PPL_INIT, got = GGUF_PPL_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct run r;
    size_t size;
    gen_init(&g, 5);
    gen_model(&g, &spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    sp.n_ctx = CTX;
    sp.n_seq = 3;
    for (int i = 0; i < N; i++)
        tok[i] = (gguf_token)rnd_below(80);
    bool good = run_open(&r, file, size, 2, &sp);
    for (int c = 0; good && c < 4; c++) {
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = CTX,
                                .token = tok + c * CTX };
        ignore_status(gguf_session_clear(r.session, NULL));
        good = run_logits(&r, &b, logits);
        for (int i = CTX / 2; i < CTX - 1; i++) {
            double sum = 0;
            for (int k = 0; k < 80; k++)
                sum += exp((double)logits[i * 80 + k]);
            double x =
                log(sum) - (double)logits[i * 80 + tok[c * CTX + i + 1]];
            want.n++;
            want.sum += x;
            want.sum_sq += x * x;
        }
    }
    scan.n_ctx = CTX;
    scan.pool = r.pool;
    p.scan = &scan;
    good =
        good && gguf_ppl_run(r.session, tok, N, &p, &got, &r.err) == GGUF_OK;
    ok(good && got.n == want.n && fabs(got.sum - want.sum) < 1e-4 &&
           fabs(got.sum_sq - want.sum_sq) < 1e-3,
       "four chunks, three at a time%s", good ? "" : r.err.message);

    struct gguf_ppl part[2] = { GGUF_PPL_INIT, GGUF_PPL_INIT };
    scan.max_chunks = 1;
    good = good &&
           gguf_ppl_run(r.session, tok, N, &p, &part[0], &r.err) == GGUF_OK;
    scan.first_chunk = 1;
    scan.max_chunks = 0;
    good = good &&
           gguf_ppl_run(r.session, tok, N, &p, &part[1], &r.err) == GGUF_OK;
    ok(good && part[0].n + part[1].n == got.n &&
           fabs(part[0].sum + part[1].sum - got.sum) < 1e-9,
       "parts add up");

    uint64_t n_seen = 0;
    scan.first_chunk = 0;
    p.on_chunk.fn = stop_at_two;
    p.on_chunk.user = &n_seen;
    ok(good &&
           gguf_ppl_run(r.session, tok, N, &p, &got, &r.err) ==
               GGUF_E_CANCELLED &&
           n_seen == 2 * 4,
       "stopped after two chunks");
    ok(good && gguf_ppl_run(r.session, tok, 2 * CTX - 1, &p, &got, &r.err) ==
                   GGUF_E_INVALID,
       "%s", r.err.message);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

/* ---- llama.cpp's figures: the running value after each chunk ----
 *
 * Those of share/tiny-llama are in this file, those of other models in
 * ../shared and skipped where that is missing. GGUF_TEST_SAMPLE, for
 * emulators: check the first chunk only.
 */

static char *read_file(const char *path, size_t *size)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f)
        return NULL;
    char *p = malloc(1 << 20);
    *size = fread(p, 1, (1 << 20) - 1, f);
    p[*size] = 0;
    fclose(f);
    return p;
}

#define TINY_LLAMA "share/tiny-llama/tiny-llama-f16.gguf"

struct compare {
    const char *log; /* "[1]57.0912,[2]..." */
    double worst;    /* relative difference */
    size_t n;
};

static bool on_chunk(void *user, size_t chunk, size_t n_chunks,
                     const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    struct compare *c = user;
    char mark[24];
    (void)n_chunks;
    (void)one;
    snprintf(mark, sizeof mark, "[%zu]", chunk + 1);
    const char *at = strstr(c->log, mark);
    double want = at ? strtod(at + strlen(mark), NULL) : 0;
    c->worst = fmax(c->worst, fabs(gguf_ppl_value(all) / want - 1));
    c->n++;
    return false;
}

static const struct figure {
    const char *model, *log;
    uint32_t n_ctx, n_chunks;
    double most;        /* bound of each running value's relative difference */
    const char *values; /* lines of the log; NULL: TINY_LLAMA's */
    uint32_t stride;    /* stride; 0: no overlap */
} figures[] = {
    { "models/llama-f16.gguf", "llama.F16.c512", 512, 24, 2e-4,
      "[1]57.0912,[2]57.1818,[3]61.7536,[4]64.4319,[5]67.7278,[6]67.1115,"
      "[7]66.9248,[8]66.3427,[9]64.4744,[10]64.8799,[11]65.7329,[12]66.4891,"
      "[13]64.9221,[14]64.4365,[15]64.1801,[16]62.6126,[17]63.1385,"
      "[18]63.9634,[19]64.1156,[20]63.6548,[21]63.0506,[22]63.5267,"
      "[23]63.2657,[24]63.0792,\n"
      "Final estimate: PPL = 63.0792 +/- 1.90418\n",
      0 },
    { "models/llama-f32.gguf", "llama.F32.c512", 512, 24, 1e-4, NULL, 0 },
    { "models/llama-f16.gguf", "llama.F16.c256", 256, 24, 2e-4,
      "[1]63.4701,[2]62.2068,[3]63.1625,[4]61.2221,[5]61.7162,[6]63.5575,"
      "[7]68.7180,[8]67.3057,[9]64.9450,[10]65.6188,[11]65.5315,[12]65.6101,"
      "[13]65.4749,[14]65.2537,[15]66.2999,[16]66.4860,[17]67.3262,"
      "[18]66.5325,[19]66.0200,[20]66.1879,[21]66.1525,[22]66.5011,"
      "[23]66.0527,[24]66.7093,\n"
      "Final estimate: PPL = 66.7093 +/- 2.84839\n",
      0 },
    { "models/llama-f32.gguf", "llama.F32.c256", 256, 24, 1e-4, NULL, 0 },
    { "models/qwen2-f16.gguf", "qwen2.F16.c512", 512, 24, 2e-4, NULL, 0 },
    { "models/llama-f16.gguf", "llama.F16.c512.stride128", 512, 8, 2e-4,
      "[1]71.4576,[2]65.1547,[3]62.6502,[4]59.4707,[5]60.9363,[6]62.7913,"
      "[7]64.8669,[8]68.3057,\n",
      128 },
    { "models/qwen2-f16.gguf", "qwen2.F16.c512.stride128", 512, 8, 2e-4, NULL,
      128 },
};

static bool tokenize_text(struct run *r, struct gguf_tokens *t)
{
    size_t size;
    char *text =
        read_file(source_path("share/tiny-llama/persuasion.txt"), &size);
    if (!text)
        return false;
    size = GG_MIN(size, (size_t)150000); /* llama.cpp read this part of the
                                          * text */
    size -= size && text[size - 1] == '\n';
    bool good =
        gguf_vocab_tokenize(gguf_model_vocab(r->model), text, size,
                            GGUF_TOKENIZE_ADD_SPECIAL, t, &r->err) == GGUF_OK;
    free(text);
    return good;
}

static void check_figure(const struct figure *f)
{
    const uint32_t n_chunks = getenv("GGUF_TEST_SAMPLE") ? 1 : f->n_chunks;
    char rel[128];
    size_t size;
    struct run r;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_ppl got = GGUF_PPL_INIT;
    snprintf(rel, sizeof rel, "golden/ppl/trained/logs/%s.txt", f->log);
    char *log = read_file(shared_path(rel), &size);
    const char *path =
        f->values ? source_path(TINY_LLAMA) : shared_path(f->model);
    const char *values = f->values ? f->values : log;
    if (f->values && log)
        ok(strstr(log, f->values) != NULL, "%s: the figures of ../shared",
           f->log);
    if (!values || !path) {
        free(log);
        return;
    }
    struct compare c = { strstr(values, "[1]"), 0, 0 };
    p.scan = &scan;
    scan.cut = f->stride ? GGUF_SCAN_STRIDED : GGUF_SCAN_CHUNKS;
    scan.stride = f->stride;
    scan.n_ctx =
        f->stride ? gguf_scan_strided_ctx(f->n_ctx, f->stride) : f->n_ctx;
    sp.n_ctx = scan.n_ctx;
    sp.n_seq = 2;
    bool good = run_open_path(&r, path, 2, &sp) && tokenize_text(&r, &t);
    scan.max_chunks = n_chunks;
    scan.pool = r.pool;
    p.on_chunk.fn = on_chunk;
    p.on_chunk.user = &c;
    good = good &&
           gguf_ppl_run(r.session, t.id, t.n, &p, &got, &r.err) == GGUF_OK;
    ok(good && c.n == n_chunks && c.worst < f->most,
       "%s: %s%.4f +/- %.5f, at most %.1e from llama.cpp", f->log,
       good ? "" : r.err.message, gguf_ppl_value(&got), gguf_ppl_error(&got),
       c.worst);
    const char *final = strstr(values, "PPL = ");
    double error = final ? strtod(strstr(final, "+/-") + 3, NULL) : 0;
    if (final && n_chunks == f->n_chunks)
        ok(fabs(gguf_ppl_error(&got) / error - 1) < 1e-3, "%s: uncertainty",
           f->log);
    gguf_tokens_fini(&t);
    run_close(&r);
    free(log);
}

/* Results have the same bits however the work is cut. */
static void check_same(void)
{
    static const struct {
        unsigned n_threads;
        uint32_t n_seq, n_ubatch;
    } ways[] = { { 1, 1, 0 },   { 2, 1, 0 },   { 4, 1, 0 },
                 { 2, 3, 384 }, { 2, 3, 128 }, { 3, 2, 100 } };
    char want[64] = "", got[64];
    for (size_t i = 0; i < GG_LEN(ways); i++) {
        struct run r;
        struct gguf_tokens t = GGUF_TOKENS_INIT;
        struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
        struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
        struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
        struct gguf_ppl sums = GGUF_PPL_INIT;
        sp.n_ctx = scan.n_ctx = 128;
        p.scan = &scan;
        sp.n_seq = ways[i].n_seq;
        sp.n_ubatch = ways[i].n_ubatch;
        bool good = run_open_path(&r, source_path(TINY_LLAMA),
                                  ways[i].n_threads, &sp) &&
                    tokenize_text(&r, &t);
        scan.max_chunks = 3;
        scan.pool = r.pool;
        good = good && gguf_ppl_run(r.session, t.id, t.n, &p, &sums, &r.err) ==
                           GGUF_OK;
        snprintf(got, sizeof got, "%.17g %.17g", sums.sum, sums.sum_sq);
        if (!i)
            strcpy(want, got);
        ok(good && strcmp(want, got) == 0,
           "%u threads, %u chunks together, passes of %u: %s",
           ways[i].n_threads, ways[i].n_seq, ways[i].n_ubatch,
           good ? got : r.err.message);
        gguf_tokens_fini(&t);
        run_close(&r);
    }
}

int main(void)
{
    check_nll();
    check_sums();
    check_own();
    check_same();
    for (size_t i = 0; i < GG_LEN(figures); i++)
        check_figure(&figures[i]);
    return done_testing();
}
