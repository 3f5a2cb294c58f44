/* SPDX-License-Identifier: MIT */
/* check-window.c - overlapping windows, and several texts in one scan
 *
 * Expected values are computed window by window: each is decoded alone, and
 * its likelihoods are computed in double precision.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/kld.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>

enum { V = 80, MOST = 160, CTX = 64 };

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = V };
#define TINY_LLAMA "share/tiny-llama/tiny-llama-f16.gguf"

static void *file[2];
static size_t file_size[2];
static gguf_token text[MOST];

static void make_model(int i)
{
    file[i] =
        gen_model_file(&spec, 5 + (uint64_t)i, GGUF_DTYPE_F32, &file_size[i]);
}

static bool open_session(struct run *r, int model, unsigned n_threads,
                         uint32_t n_seq, uint32_t n_ubatch)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = CTX;
    p.n_seq = n_seq;
    p.n_ubatch = n_ubatch;
    const bool good =
        run_open(r, file[model], file_size[model], n_threads, &p);
    if (!good)
        printf("# %s\n", r->err.message);
    return good;
}

/* ---- the expectation ---- */

struct chunks {
    size_t n;
    struct gguf_ppl of[64];
};

/* Scored tokens, in the order in which they are scored. */
struct scores {
    size_t n;
    size_t at[4 * MOST]; /* index of the token in the text */
    double x[4 * MOST];
    struct chunks chunks; /* sums per chunk */
    uint64_t max_rows;    /* largest number of scored tokens of a chunk */
};

/* Score the tokens before `end' that the window from `begin' scores. */
static bool score_window(struct run *r, const gguf_token *tok, size_t begin,
                         size_t end, size_t scored, gguf_token bos,
                         struct scores *s)
{
    gguf_token own[CTX];
    struct gguf_batch b = GGUF_BATCH_INIT;
    float *logits = malloc((end - begin) * r->n_vocab * sizeof *logits);
    memcpy(own, tok + begin, (end - begin) * sizeof *own);
    own[0] = bos == GGUF_TOKEN_NONE ? own[0] : bos;
    b.n = end - begin;
    b.token = own;
    const bool good = gguf_session_clear(r->session, NULL) == GGUF_OK &&
                      run_logits(r, &b, logits);
    for (size_t t = scored; good && t < end; t++) {
        const float *row = logits + (t - 1 - begin) * r->n_vocab;
        double sum = 0, max = -INFINITY;
        for (uint32_t k = 0; k < r->n_vocab; k++)
            max = fmax(max, (double)row[k]);
        for (uint32_t k = 0; k < r->n_vocab; k++)
            sum += exp((double)row[k] - max);
        s->at[s->n] = t;
        s->x[s->n++] = max + log(sum) - (double)row[tok[t]];
    }
    free(logits);
    return good;
}

/* The usual loop for sliding windows, in Hugging Face's "Perplexity of
 * fixed-length models". */
static bool score_sliding(struct run *r, const gguf_token *tok, size_t n,
                          size_t c, size_t stride, gguf_token bos,
                          struct scores *s)
{
    size_t previous = 0;
    bool good = true;
    for (size_t begin = 0; good && begin < n; begin += stride) {
        const size_t end = begin + c < n ? begin + c : n;
        const size_t scored = previous > begin ? previous : begin + 1;
        const size_t from = end - begin < 4 ? end - 4 : begin;
        good =
            scored >= end || score_window(r, tok, from, end, scored, bos, s);
        previous = end;
        if (end == n)
            break;
    }
    return good;
}

/* ---- what sinks get ---- */

static enum gguf_status on_rows(void *user, const struct gguf_scan_rows *rows,
                                struct gguf_error *err)
{
    struct scores *s = user;
    const double *x = gguf_scan_nll(rows);
    (void)err;
    for (uint32_t i = 0; i < rows->n; i++) {
        s->at[s->n] = rows->at + rows->first + i + 1;
        s->x[s->n++] = x[i];
        if (rows->token != text + rows->at ||
            rows->first + i + 1 >= rows->n_tokens)
            s->n = 0; /* makes the test fail */
    }
    return GGUF_OK;
}

static struct gguf_sink sink_of(struct scores *s)
{
    struct gguf_sink k = GGUF_SINK_INIT;
    k.user = s;
    k.rows = on_rows;
    return k;
}

static bool on_chunk(void *user, size_t chunk, size_t n_chunks,
                     const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    struct scores *s = user;
    (void)chunk;
    (void)n_chunks;
    (void)all;
    s->chunks.of[s->chunks.n++] = *one;
    s->max_rows = one->n > s->max_rows ? one->n : s->max_rows;
    return false;
}

static struct gguf_scan_params params_of(uint32_t c, enum gguf_scan_cut cut,
                                         uint32_t stride)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = c;
    p.cut = cut;
    p.stride = stride;
    return p;
}

static bool evaluate_text(struct run *r, struct gguf_scan_params scan,
                          size_t n, struct scores *got, struct gguf_ppl *sums)
{
    const struct gguf_sink sink = sink_of(got);
    const struct gguf_sink *const sinks[] = { &sink };
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    scan.pool = r->pool;
    p.scan = &scan;
    p.on_chunk.fn = on_chunk;
    p.on_chunk.user = got;
    p.sinks = sinks;
    p.n_sinks = 1;
    got->n = got->chunks.n = 0;
    got->max_rows = 0;
    *sums = (struct gguf_ppl)GGUF_PPL_INIT;
    gguf_session_reset_timings(r->session);
    if (gguf_ppl_run(r->session, text, n, &p, sums, &r->err) == GGUF_OK)
        return true;
    printf("# %s\n", r->err.message);
    return false;
}

/* Are tokens and their order equal, and likelihoods up to the rounding of
 * exponentials in single precision? Are the sums equal? */
static bool equal_scores(const struct scores *got, const struct scores *want,
                         const struct gguf_ppl *sums)
{
    double sum = 0, sum_sq = 0;
    if (got->n != want->n || sums->n != want->n)
        return false;
    for (size_t i = 0; i < want->n; i++) {
        if (got->at[i] != want->at[i] || fabs(got->x[i] - want->x[i]) > 2e-6)
            return false;
        sum += want->x[i];
        sum_sq += want->x[i] * want->x[i];
    }
    const double n = (double)want->n, mean = sum / n;
    const double error =
        exp(mean) * sqrt((sum_sq / n - mean * mean) / (n - 1));
    return fabs(gguf_ppl_value(sums) / exp(mean) - 1) < 2e-6 &&
           (want->n < 2 || fabs(gguf_ppl_error(sums) / error - 1) < 1e-4);
}

/* ---- windows ---- */

static void check_sliding(void)
{
    static const struct {
        uint32_t c, stride;
        size_t n, n_chunks;
    } cases[] = {
        { 12, 4, 50, 11 },
        { 12, 4, 52, 11 },
        { 12, 4, 12, 1 },
        { 12, 4, 7, 1 },
        { 12, 4, 13, 2 },
        { 12, 1, 20, 9 },
        { 12, 11, 51, 5 },
        /* the last has 7 */ { 12, 11, 24, 3 },
        /* several windows in a batch: the last has 1, 2 or 3 tokens */
        { 12, 12, 49, 4 },
        { 12, 12, 50, 5 },
        { 12, 12, 51, 5 },
        { 12, 12, 48, 4 },
        { 64, 32, 4, 1 },
        { 4, 2, 9, 4 },
    };
    static struct scores got, want;
    struct run r;
    if (!open_session(&r, 0, 2, 3, 40))
        return;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        const uint32_t c = cases[i].c, stride = cases[i].stride;
        const size_t n = cases[i].n;
        const struct gguf_scan_params p =
            params_of(c, GGUF_SCAN_SLIDING, stride);
        struct gguf_ppl sums;
        want.n = 0;
        bool good =
            score_sliding(&r, text, n, c, stride, GGUF_TOKEN_NONE, &want) &&
            evaluate_text(&r, p, n, &got, &sums);
        for (size_t k = 0; stride < c && k < n - 1; k++)
            good = good && want.at[k] == k + 1; /* scored once */
        ok(good && equal_scores(&got, &want, &sums) &&
               gguf_scan_n_chunks(n, &p) == cases[i].n_chunks &&
               gguf_ppl_n_chunks(n, &p) == cases[i].n_chunks &&
               gguf_scan_max_rows(n, &p) == got.max_rows,
           "%zu tokens in windows of %u, a stride of %u: %zu scored", n, c,
           stride, got.n);
        ok(gguf_session_timings(r.session)->logits.n == want.n,
           "and no other rows of logits were computed");
    }
    run_close(&r);
}

static void check_strided(void)
{
    enum { C = 12, S = 5, N = 60 };
    static struct scores got, want;
    struct gguf_ppl sums;
    struct run r;
    bool good = open_session(&r, 0, 2, 3, 40);
    /* llama.cpp's perplexity_v2 */
    const size_t n_chunk = (N - C + S - 1) / S;
    for (size_t i = 0; good && i < n_chunk; i++)
        good = score_window(&r, text, i * S, i * S + C, i * S + C - S,
                            GGUF_TOKEN_NONE, &want);
    good = good && evaluate_text(&r, params_of(C, GGUF_SCAN_STRIDED, S), N,
                                 &got, &sums);
    ok(good && equal_scores(&got, &want, &sums) && want.n == n_chunk * S &&
           gguf_session_timings(r.session)->logits.n == want.n,
       "a stride as llama.cpp has it: %zu of %d tokens", got.n, N);
    ok(gguf_scan_strided_ctx(512, 128) == 768 &&
           gguf_scan_strided_ctx(256, 64) == 512 &&
           gguf_scan_strided_ctx(448, 128) == 512 &&
           gguf_scan_strided_ctx(UINT32_MAX, 2) == 0,
       "and its context");
    run_close(&r);
}

/* BOS replaces the first token of a window if the vocabulary has one. */
static void check_bos(void)
{
    enum { C = 48, S = 16, N = 100 };
    static struct scores got, want;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_ppl sums;
    struct run r;
    char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/" TINY_LLAMA, top ? top : ".");
    sp.n_ctx = CTX;
    sp.n_seq = 2;
    sp.n_ubatch = 2 * CTX;
    bool good = run_open_path(&r, path, 2, &sp);
    const struct gguf_vocab *v = good ? gguf_model_vocab(r.model) : NULL;
    const gguf_token bos =
        good ? gguf_vocab_special_id(v, GGUF_SPECIAL_BOS) : GGUF_TOKEN_NONE;
    struct gguf_scan_params p = params_of(C, GGUF_SCAN_SLIDING, S);
    for (int i = 0; i < 2; i++) {
        p.no_bos = i == 1;
        want.n = 0;
        ok(good &&
               score_sliding(&r, text, N, C, S, i ? GGUF_TOKEN_NONE : bos,
                             &want) &&
               evaluate_text(&r, p, N, &got, &sums) &&
               equal_scores(&got, &want, &sums),
           "windows %s BOS", i ? "without a" : "that begin with a");
    }
    p = params_of(C, GGUF_SCAN_STRIDED, S);
    want.n = 0;
    for (size_t i = 0; good && i * S + C < N; i++)
        good = score_window(&r, text, i * S, i * S + C, i * S + C - S,
                            GGUF_TOKEN_NONE, &want);
    ok(good && evaluate_text(&r, p, N, &got, &sums) &&
           equal_scores(&got, &want, &sums),
       "llama.cpp's stride has no BOS");
    run_close(&r);
}

/* ---- several texts ---- */

static bool same_bits(const struct gguf_ppl *a, const struct gguf_ppl *b)
{
    return a->n == b->n && !memcmp(&a->sum, &b->sum, sizeof a->sum) &&
           !memcmp(&a->sum_sq, &b->sum_sq, sizeof a->sum_sq);
}

/* Each text has the bits of a scan of its own. */
static void check_texts(enum gguf_scan_cut cut, uint32_t stride)
{
    static const size_t end[] = { 40, 65, 115, 140 };
    static struct scores got, alone;
    struct gguf_ppl sums, total = GGUF_PPL_INIT;
    struct gguf_scan_params p = params_of(12, cut, stride);
    struct run r;
    bool good = open_session(&r, 0, 2, 4, 48);
    struct gguf_ppl_params each = GGUF_PPL_PARAMS_INIT;
    p.pool = r.pool;
    each.scan = &p;
    each.on_chunk.fn = on_chunk;
    each.on_chunk.user = &alone;
    alone.chunks.n = 0;
    for (size_t i = 0, begin = 0; good && i < GG_LEN(end); begin = end[i++]) {
        sums = (struct gguf_ppl)GGUF_PPL_INIT;
        good = gguf_ppl_run(r.session, text + begin, end[i] - begin, &each,
                            &sums, &r.err) == GGUF_OK;
    }
    p.text_end = end;
    p.n_texts = GG_LEN(end);
    good = good && evaluate_text(&r, p, 140, &got, &sums) &&
           got.chunks.n == alone.chunks.n;
    for (size_t i = 0; good && i < got.chunks.n; i++) {
        good = same_bits(&got.chunks.of[i], &alone.chunks.of[i]) &&
               gguf_ppl_add(&total, &got.chunks.of[i], NULL) == GGUF_OK;
    }
    ok(good && same_bits(&total, &sums) && got.n == total.n,
       "four texts together, cut in way %d: the bits of each alone, "
       "%zu chunks",
       (int)cut, got.chunks.n);
    run_close(&r);
}

/* ---- the same bits however it is computed ---- */

static bool add_parts(struct run *r, struct gguf_scan_params p, size_t n,
                      size_t n_chunks, struct gguf_ppl *sums)
{
    struct scores *got = malloc(sizeof *got);
    struct gguf_ppl one;
    bool good = true;
    *sums = (struct gguf_ppl)GGUF_PPL_INIT;
    p.max_chunks = 1;
    for (; good && p.first_chunk < n_chunks; p.first_chunk++)
        good = evaluate_text(r, p, n, got, &one) &&
               gguf_ppl_add(sums, &one, NULL) == GGUF_OK;
    free(got);
    return good;
}

static void check_same(enum gguf_scan_cut cut, uint32_t stride,
                       size_t n_chunks)
{
    static const struct {
        unsigned n_threads;
        uint32_t n_seq, n_ubatch;
        uint64_t stored;
    } ways[] = { { 1, 1, 0, 0 },
                 { 3, 1, 5, 0 },
                 { 2, 4, 48, 0 },
                 { 2, 3, 40, 0 },
                 { 1, 2, 24, UINT64_MAX } };
    static struct scores got;
    struct gguf_ppl first = GGUF_PPL_INIT, sums;
    for (size_t i = 0; i < GG_LEN(ways); i++) {
        struct gguf_scan_params p = params_of(12, cut, stride);
        struct run r;
        bool good = open_session(&r, 0, ways[i].n_threads, ways[i].n_seq,
                                 ways[i].n_ubatch);
        p.max_stored = ways[i].stored;
        good = good && evaluate_text(&r, p, 97, &got, &sums);
        first = i ? first : sums;
        ok(good && same_bits(&first, &sums),
           "%u threads, %u windows together, passes of %u%s: %.17g",
           ways[i].n_threads, ways[i].n_seq, ways[i].n_ubatch,
           ways[i].stored ? ", layer by layer" : "", sums.sum);
        ok(good && add_parts(&r, p, 97, n_chunks, &sums) &&
               same_bits(&first, &sums),
           "and each of %zu by itself", n_chunks);
        run_close(&r);
    }
}

/* ---- beside a base ---- */

static void check_kld(void)
{
    enum { N = 100 };
    static struct scores got[2];
    struct gguf_kld *k;
    struct run r[2];
    struct gguf_ppl sums;
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
    bool good = open_session(&r[0], 0, 2, 2, 24) &&
                open_session(&r[1], 1, 2, 2, 24) &&
                gguf_kld_create(&k, NULL, NULL) == GGUF_OK;
    for (int i = 0; i < 2; i++)
        good =
            good && evaluate_text(&r[i], params_of(12, GGUF_SCAN_SLIDING, 5),
                                  N, &got[i], &sums);
    if (!good)
        return;
    struct gguf_session *const sessions[] = { r[0].session, r[1].session };
    const struct gguf_sink *const sinks[] = { gguf_kld_sink(k) };
    size_t n;
    p.n_ctx = 12;
    p.cut = GGUF_SCAN_SLIDING;
    p.stride = 5;
    good = gguf_scan_run_models(sessions, 2, text, N, &p, sinks, 1,
                                &r[0].err) == GGUF_OK &&
           gguf_kld_stats(k, &stats, NULL) == GGUF_OK;
    const struct gguf_kld_token *t = gguf_kld_tokens(k, &n);
    good = good && n == N - 1 && stats.n == n && stats.kld.value > 0;
    for (size_t i = 0; good && i < n; i++)
        good = t[i].x_base == got[0].x[i] && t[i].x == got[1].x[i];
    ok(good, "divergence of windows: %zu tokens with the likelihoods of each",
       n);
    gguf_kld_destroy(k);
    run_close(&r[0]);
    run_close(&r[1]);
}

/* ---- memory ---- */

/* No logits are kept: more texts take memory only for their ends. */
static void check_memory(void)
{
    static const size_t end[] = { 40, 80, 120, 160 };
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct failalloc f;
    struct run r;
    size_t most[2] = { 0, 0 };
    static struct scores got;
    const struct gguf_sink sink = sink_of(&got);
    const struct gguf_sink *const sinks[] = { &sink };
    sp.n_ctx = CTX;
    sp.allocator = failalloc_init(&f, UINT_MAX);
    p.n_ctx = 16;
    p.cut = GGUF_SCAN_SLIDING;
    p.stride = 4;
    p.text_end = end;
    bool good = run_open(&r, file[0], file_size[0], 1, &sp);
    for (int i = 0; good && i < 2; i++) {
        const size_t before = f.most = f.now;
        got.n = 0;
        p.n_texts = i ? 4 : 1;
        good = gguf_scan_run(r.session, text, end[p.n_texts - 1], &p, sinks, 1,
                             &r.err) == GGUF_OK;
        most[i] = f.most - before;
    }
    ok(good && got.n == 4 * 39 && most[1] - most[0] <= 3 * 2 * sizeof(size_t),
       "%zu bytes for a text, %zu for four of them", most[0], most[1]);
    run_close(&r);
    ok(f.now == 0, "and nothing stays");
}

/* ---- refused ---- */

static void check_refused(void)
{
    static const size_t falling[] = { 40, 30 }, beyond[] = { 40, 200 },
                        brief[] = { 40, 43, 90 }, none[] = { 0, 90 };
    static const struct {
        uint32_t c;
        enum gguf_scan_cut cut;
        uint32_t stride, first;
        size_t n;
        const size_t *end;
        size_t n_texts;
        const char *why;
    } cases[] = {
        { 12, GGUF_SCAN_CHUNKS, 1, 0, 100, NULL, 0,
          "a stride of 1 tokens: must be 0 to 0 where chunks have 12" },
        { 12, GGUF_SCAN_SLIDING, 0, 0, 100, NULL, 0,
          "a stride of 0 tokens: must be 1 to 12 " },
        { 3, GGUF_SCAN_SLIDING, 1, 0, 100, NULL, 0, "n_ctx 3, expected" },
        { 12, GGUF_SCAN_SLIDING, 13, 0, 100, NULL, 0,
          "a stride of 13 tokens: must be 1 to 12 " },
        { 12, GGUF_SCAN_STRIDED, 12, 0, 100, NULL, 0,
          "a stride of 12 tokens: must be 1 to 11 " },
        { 12, GGUF_SCAN_SLIDING, 3, 4, 100, NULL, 0, "rows from position 4 " },
        { 12, (enum gguf_scan_cut)3, 3, 4, 100, NULL, 0,
          "cut 3, must be 0 to 2" },
        { 12, GGUF_SCAN_SLIDING, 3, 0, 3, NULL, 0,
          "the text has 3 tokens: must be 4 or more" },
        { 12, GGUF_SCAN_STRIDED, 3, 0, 12, NULL, 0,
          "the text has 12 tokens, a chunk 12" },
        { 12, GGUF_SCAN_SLIDING, 3, 0, 100, brief, 3,
          "text 2 of 3 has 3 tokens: must be 4 or more" },
        { 12, GGUF_SCAN_CHUNKS, 0, 0, 100, brief, 3,
          "text 2 of 3 has 3 tokens, a chunk 12" },
        { 12, GGUF_SCAN_SLIDING, 3, 0, 100, falling, 2,
          "text 2 of 2 ends at token 30: must be 40 to 100" },
        { 12, GGUF_SCAN_SLIDING, 3, 0, 100, beyond, 2,
          "text 2 of 2 ends at token 200: must be 40 to 100" },
        { 12, GGUF_SCAN_SLIDING, 3, 0, 100, none, 2,
          "text 1 of 2 has 0 tokens" },
        { 12, GGUF_SCAN_SLIDING, 3, 0, 100, none, 0, "no text is given" },
    };
    struct run r;
    if (!open_session(&r, 0, 1, 1, 0))
        return;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
        p.n_ctx = cases[i].c;
        p.cut = cases[i].cut;
        p.stride = cases[i].stride;
        p.first = cases[i].first;
        p.rows_from = p.first ? GGUF_SCAN_FROM_FIRST : GGUF_SCAN_SECOND_HALF;
        p.text_end = cases[i].end;
        p.n_texts = cases[i].n_texts;
        const enum gguf_status st =
            gguf_scan_run(r.session, text, cases[i].n, &p, NULL, 0, &r.err);
        ok(st == GGUF_E_INVALID && strstr(r.err.message, cases[i].why), "%s",
           r.err.message);
    }
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    ok(gguf_scan_n_chunks(1600, NULL) == 3 &&
           gguf_scan_n_chunks(511, &p) == 0 &&
           (p.n_ctx = 1, gguf_scan_n_chunks(7, &p)) == 7 &&
           (p.n_ctx = 0, gguf_scan_n_chunks(1600, &p)) == 3 &&
           (p.n_ctx = 512, gguf_scan_n_chunks(1600, &p)) == 3 &&
           (p.stride = 9, gguf_scan_n_chunks(1600, &p)) == 0,
       "numbers of chunks");
    run_close(&r);
}

/* A file of logits cannot store overlapping windows. */
static void check_baseline(void)
{
    char path[] = "check-window.XXXXXX";
    struct gguf_baseline_writer_params wp = GGUF_BASELINE_WRITER_PARAMS_INIT;
    struct gguf_baseline_writer *w;
    const struct gguf_scan_params p = params_of(12, GGUF_SCAN_SLIDING, 5);
    struct run r;
    wp.force = true;
    if (!open_session(&r, 0, 1, 1, 0) ||
        gguf_baseline_writer_open(&w, path, &wp, &r.err) != GGUF_OK)
        return;
    const struct gguf_sink *const sinks[] = { gguf_baseline_writer_sink(w) };
    ok(gguf_scan_run(r.session, text, 100, &p, sinks, 1, &r.err) ==
           GGUF_E_INVALID,
       "%s", r.err.message);
    gguf_baseline_writer_close(w);
    run_close(&r);
}

int main(void)
{
    make_model(0);
    make_model(1);
    for (int i = 0; i < MOST; i++)
        text[i] = (gguf_token)rnd_below(V);
    check_sliding();
    check_strided();
    check_bos();
    check_texts(GGUF_SCAN_CHUNKS, 0);
    check_texts(GGUF_SCAN_SLIDING, 5);
    check_texts(GGUF_SCAN_STRIDED, 3);
    check_same(GGUF_SCAN_SLIDING, 5, 18);
    check_same(GGUF_SCAN_STRIDED, 5, 17);
    check_kld();
    check_memory();
    check_refused();
    check_baseline();
    free(file[0]);
    free(file[1]);
    return done_testing();
}
