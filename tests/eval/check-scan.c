/* SPDX-License-Identifier: MIT */
/* check-scan.c - scans: calls that sinks get, their order, and their failures
 */
#include "config.h"
#include "base/compiler.h"
#include "eval/nll.h"
#include "gguf/eval.h"
#include "run/session_int.h"
#include "tests/failalloc.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>
#include <stddef.h>

enum { CTX = 12, CHUNKS = 7, V = 2000, N = CHUNKS * CTX + 5 };

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = V };

static void *file;
static size_t file_size;
static gguf_token text[N];
static float by_hand[CHUNKS * CTX * V]; /* logits of each chunk, decoded by
                                         * itself */

static bool open_session(struct run *r, uint32_t n_seq, uint32_t n_ubatch,
                         const struct gguf_allocator *a,
                         gguf_session_graph_fn *on_graph, void *user)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.allocator = a;
    p.n_ctx = CTX;
    p.n_seq = n_seq;
    p.n_ubatch = n_ubatch;
    p.on_graph.fn = on_graph;
    p.on_graph.user = user;
    bool good = run_open(r, file, file_size, 2, &p);
    if (!good)
        printf("# %s\n", r->err.message);
    return good;
}

static bool make_model(void)
{
    struct run r;
    file = gen_model_file(&spec, 5, GGUF_DTYPE_F32, &file_size);
    for (int i = 0; i < N; i++)
        text[i] = (gguf_token)rnd_below(V);
    bool good = open_session(&r, 1, 0, NULL, NULL, NULL);
    for (int c = 0; good && c < CHUNKS; c++) {
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = CTX,
                                .token = text + c * CTX };
        ignore_status(gguf_session_clear(r.session, NULL));
        good = run_logits(&r, &b, by_hand + c * CTX * V);
    }
    run_close(&r);
    return good;
}

/* ---- a sink that looks ---- */

struct seen {
    char log
        [400]; /* calls: b begin, r row, c and a number for a chunk, e end */
    struct gguf_scan_info info;
    uint32_t n_ctx;
    size_t n_pieces, n_wrong;
    double sum;
    int fail_in;         /* letter of the function that fails; 0: none */
    size_t fail_at;      /* chunk at which it fails */
    const char *message; /* message of the failure; NULL: none */
    enum gguf_status st; /* status that end() got */
    struct seen *before; /* the sink before this one; NULL: none */
};

static void note_call(struct seen *s, char c)
{
    size_t n = strlen(s->log);
    if (n + 1 < sizeof s->log)
        s->log[n] = c;
}

static enum gguf_status may_fail(const struct seen *s, char c, size_t chunk,
                                 struct gguf_error *err)
{
    if (s->fail_in != c || (c != 'b' && c != 'e' && chunk != s->fail_at))
        return GGUF_OK;
    if (s->message) {
        err->status = GGUF_E_IO;
        snprintf(err->message, sizeof err->message, "%s", s->message);
    }
    return GGUF_E_IO;
}

static enum gguf_status on_begin(void *user, const struct gguf_scan_info *info,
                                 struct gguf_error *err)
{
    struct seen *s = user;
    s->info = *info;
    s->n_ctx = info->params->n_ctx;
    note_call(s, 'b');
    return may_fail(s, 'b', 0, err);
}

static enum gguf_status on_rows(void *user, const struct gguf_scan_rows *rows,
                                struct gguf_error *err)
{
    struct seen *s = user;
    double want[CTX];
    s->n_pieces++;
    const double *nll = gguf_scan_nll(rows);
    gg_nll_rows(NULL, rows->logits, V, rows->n, rows->token + rows->first + 1,
                want);
    want[0] += s->before ? 1 : 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const size_t at = rows->chunk * CTX + rows->first + i;
        s->n_wrong += memcmp(rows->logits + i * V, by_hand + at * V,
                             V * sizeof(float)) != 0;
        s->n_wrong += memcmp(&nll[i], &want[i], sizeof want[i]) != 0;
        s->sum += nll[i];
        note_call(s, 'r');
    }
    s->n_wrong += rows->token != text + rows->chunk * CTX ||
                  rows->n_vocab != V ||
                  rows->first + rows->n > s->info.first + s->info.n_rows;
    /* another sink must get its own copy of the scores */
    *(double *)(uintptr_t)nll = want[0] + 1;
    return may_fail(s, 'r', rows->chunk, err);
}

static enum gguf_status on_chunk(void *user, size_t chunk,
                                 struct gguf_error *err)
{
    struct seen *s = user;
    note_call(s, 'c');
    note_call(s, (char)('0' + chunk));
    return may_fail(s, 'c', chunk, err);
}

static enum gguf_status on_end(void *user, enum gguf_status st,
                               struct gguf_error *err)
{
    struct seen *s = user;
    note_call(s, 'e');
    s->st = st;
    return may_fail(s, 'e', 0, err);
}

static struct gguf_sink sink_of(struct seen *s)
{
    return (struct gguf_sink){
        sizeof(struct gguf_sink), s, on_begin, on_rows, on_chunk, on_end
    };
}

/* ---- calls ---- */

static void expect_calls(char *log, uint32_t n_rows, size_t begin, size_t end)
{
    *log++ = 'b';
    for (size_t c = begin; c < end; c++) {
        memset(log, 'r', n_rows);
        log += n_rows;
        *log++ = 'c';
        *log++ = (char)('0' + c);
    }
    strcpy(log, "e");
}

enum { HALF = 1000 }; /* value of first: rows of the second half */

static void check_order(void)
{
    static const struct {
        uint32_t n_seq, n_ubatch, first;
        /* most: largest number of rows in a call */
        size_t first_chunk, max_chunks, most, n_pieces;
        uint64_t max_stored;
    } cases[] = {
        { 1, 0, HALF, 0, 0, 4096, 7, 0 },
        { 3, 3 * CTX, HALF, 0, 0, 4096, 7, 0 },
        /* 33 and 22 rows in pieces of 11 */
        { 3, 3 * CTX, 0, 1, 5, 4, 18, 0 },
        { 5, 4 * CTX + 3, 10, 2, 0, 4096, 5, 0 },
        { 2, 5, 4, 0, 3, 5, 6, 0 },
        /* layer by layer: all chunks at once, by twos, by threes */
        { 1, 0, HALF, 0, 0, 4096, 7, UINT64_MAX },
        { 2, 2 * CTX, 4, 1, 5, 4, 12, 16000 },
        { 2, 5, 4, 0, 3, 5, 6, 8000 },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct seen a = { .n_wrong = 0 }, b = { .before = &a };
        const struct gguf_sink one = sink_of(&a), two = sink_of(&b);
        const struct gguf_sink nothing = GGUF_SINK_INIT;
        const struct gguf_sink *const sinks[] = { &one, &nothing, &two };
        struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
        char want[400];
        struct run r;
        p.n_ctx = CTX;
        p.first = cases[i].first;
        p.rows_from = cases[i].first == HALF ? GGUF_SCAN_SECOND_HALF
                                             : GGUF_SCAN_FROM_FIRST;
        p.first_chunk = cases[i].first_chunk;
        p.max_chunks = cases[i].max_chunks;
        p.max_stored = cases[i].max_stored;
        const uint32_t first = p.first == HALF ? CTX / 2 : p.first;
        const size_t end =
            p.max_chunks ? p.first_chunk + p.max_chunks : CHUNKS;
        bool good = open_session(&r, cases[i].n_seq, cases[i].n_ubatch, NULL,
                                 NULL, NULL);
        p.pool = r.pool;
        if (good)
            r.session->max_logits = cases[i].most;
        good = good && gguf_scan_run(r.session, text, N, &p, sinks, 3,
                                     &r.err) == GGUF_OK;
        expect_calls(want, CTX - 1 - first, p.first_chunk, end);
        ok(good && !strcmp(a.log, want) && !strcmp(b.log, want),
           "rows from %u on of chunks %zu to %zu, %u at a time, in order%s",
           first, p.first_chunk, end - 1, cases[i].n_seq,
           good ? "" : r.err.message);
        ok(good && !a.n_wrong && !b.n_wrong &&
               a.n_pieces == cases[i].n_pieces &&
               a.info.session == r.session && a.info.n_chunks == CHUNKS &&
               a.info.begin == p.first_chunk && a.info.end == end &&
               a.n_ctx == CTX && a.info.n_vocab == V && a.info.first == first,
           "with the logits of each chunk alone, in %zu pieces", a.n_pieces);
        run_close(&r);
    }
}

/* ---- failures ---- */

/* The second of three sinks fails in each function. Check the calls of all. */
static void check_failures(void)
{
    static const struct {
        char in;
        const char *log[3], *message;
    } cases[] = {
        { 'b', { "be", "b", "" }, NULL },
        { 'r', { "brrrrrc0rrrrre", "brrrrrc0rrrrre", "brrrrrc0e" }, "no" },
        { 'c',
          { "brrrrrc0rrrrrc1e", "brrrrrc0rrrrrc1e", "brrrrrc0rrrrre" },
          NULL },
        { 'e', { NULL, NULL, NULL }, "never" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct seen s[3] = { { .sum = 0 }, { .sum = 0 }, { .sum = 0 } };
        struct gguf_sink sink[3];
        const struct gguf_sink *sinks[3];
        struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
        char all[400];
        struct run r;
        for (int k = 0; k < 3; k++) {
            sink[k] = sink_of(&s[k]);
            sinks[k] = &sink[k];
        }
        s[1].fail_in = cases[i].in;
        s[1].fail_at = 1;
        s[1].message = cases[i].message;
        p.n_ctx = CTX;
        bool good = open_session(&r, 3, 3 * CTX, NULL, NULL, NULL) &&
                    gguf_scan_run(r.session, text, N, &p, sinks, 3, &r.err) ==
                        GGUF_E_IO &&
                    r.err.status == GGUF_E_IO;
        expect_calls(all, CTX / 2 - 1, 0, CHUNKS);
        for (int k = 0; k < 3; k++)
            good = good &&
                   !strcmp(s[k].log, cases[i].log[k] ? cases[i].log[k] : all);
        /* sinks whose end() came first got GGUF_OK */
        good = good && s[0].st == (cases[i].in == 'e' ? GGUF_OK : GGUF_E_IO) &&
               (cases[i].in == 'b' || s[2].st == GGUF_E_IO);
        const char *want =
            cases[i].message ? cases[i].message : "sink 2 of 3: ";
        ok(good && strstr(r.err.message, want) == r.err.message &&
               gguf_session_n_tokens(r.session, 0) == 0,
           "a failure in '%c': %s", cases[i].in, r.err.message);
        /* fails in the same way without an error object */
        ok(gguf_scan_run(r.session, text, N, &p, sinks, 3, NULL) == GGUF_E_IO,
           "and where nobody asks why");
        run_close(&r);
    }
}

static bool stop_at_third(void *user, uint64_t done, uint64_t total)
{
    int *n = user;
    return ++*n == 3 && done == 4 * CTX && total == CHUNKS * CTX;
}

static void check_refused(void)
{
    struct gguf_sink late = GGUF_SINK_INIT;
    struct seen s = { .sum = 0 };
    const struct gguf_sink good_sink = sink_of(&s);
    const struct gguf_sink *sinks[] = { &good_sink, NULL };
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct run r;
    int n_reports = 0;
    if (!open_session(&r, 2, 2 * CTX, NULL, NULL, NULL))
        return;
#define REFUSED(n, n_sinks, what)                                             \
    ok(gguf_scan_run(r.session, text, n, &p, sinks, n_sinks, &r.err) ==       \
               GGUF_E_INVALID &&                                              \
           strstr(r.err.message, what) && !s.log[0],                          \
       "%s", r.err.message)
    p.n_ctx = 1;
    REFUSED(N, 1, "chunks of 1 tokens: must be 2 to 12");
    p.n_ctx = CTX + 1;
    REFUSED(N, 1, "must be 2 to 12");
    p.n_ctx = CTX;
    p.rows_from = GGUF_SCAN_FROM_FIRST;
    p.first = CTX - 1;
    REFUSED(N, 1,
            "rows from position 11 of chunks of 12 tokens: must be 0 to "
            "10");
    p.first = 0;
    REFUSED(CTX - 1, 1, "the text has 11 tokens, a chunk 12");
    p.first_chunk = CHUNKS;
    REFUSED(N, 1, "the first chunk is 7, the text has 7");
    p.first_chunk = 0;
    REFUSED(N, 2, "sink 2 of 2 is NULL");
    sinks[1] = &late;
    late.struct_size = SIZE_MAX;
    REFUSED(N, 2, "gguf_sink: struct_size");
#undef REFUSED
    /* a sink of an older program, whose struct ends before end() */
    struct gguf_sink old = good_sink;
    old.struct_size = offsetof(struct gguf_sink, end);
    old.end = (gguf_sink_end_fn *)(void (*)(void))check_refused;
    sinks[0] = &old;
    p.first = CTX - 2;
    p.max_chunks = 2;
    ok(gguf_scan_run(r.session, text, N, &p, sinks, 1, &r.err) == GGUF_OK &&
           !strcmp(s.log, "brc0rc1"),
       "a shorter sink of an older program");
    p.max_stored = 1;
    ok(gguf_scan_run(r.session, text, N, &p, sinks, 1, &r.err) ==
               GGUF_E_LIMIT &&
           strstr(r.err.message, "at most 1 may be stored"),
       "%s", r.err.message);
    p.max_stored = 0;
    p.max_chunks = 0;
    p.progress.fn = stop_at_third;
    p.progress.user = &n_reports;
    ok(gguf_scan_run(r.session, text, N, &p, NULL, 0, &r.err) ==
               GGUF_E_CANCELLED &&
           n_reports == 3,
       "stopped by progress, without a sink");
    run_close(&r);
}

/* ---- memory ---- */

static bool count_graphs(void *user, struct gguf_graph *g,
                         struct gguf_sched *sched)
{
    (void)g;
    (void)sched;
    ++*(int *)user;
    return false;
}

static void check_graphs(void)
{
    struct seen s = { .sum = 0 };
    struct gguf_sink sink = sink_of(&s);
    const struct gguf_sink *const sinks[] = { &sink };
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct run r;
    int n = 0;
    p.n_ctx = CTX;
    bool good =
        open_session(&r, 2, 2 * CTX, NULL, count_graphs, &n) &&
        gguf_scan_run(r.session, text, N, &p, sinks, 1, &r.err) == GGUF_OK;
    ok(good && n == 2 * (CHUNKS + 1) / 2,
       "%d graphs for %d chunks, two at a time: each once for all", n, CHUNKS);
    sink.rows = NULL;
    n = 0;
    memset(s.log, 0, sizeof s.log);
    good = good &&
           gguf_scan_run(r.session, text, N, &p, sinks, 1, &r.err) == GGUF_OK;
    ok(good && n == (CHUNKS + 1) / 2 && !strcmp(s.log, "bc0c1c2c3c4c5c6e"),
       "%d where nobody wants rows: no logits", n);
    run_close(&r);
}

/* A scan keeps no chunk's logits: its own memory is smaller than they are. */
static void check_memory(void)
{
    struct failalloc f;
    struct seen s = { .sum = 0 };
    const struct gguf_sink sink = sink_of(&s);
    const struct gguf_sink *const sinks[] = { &sink };
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct run r;
    p.n_ctx = CTX;
    bool good =
        open_session(&r, 3, 3 * CTX, failalloc_init(&f, UINT_MAX), NULL, NULL);
    const size_t before = f.most = f.now;
    good = good &&
           gguf_scan_run(r.session, text, N, &p, sinks, 1, &r.err) == GGUF_OK;
    const size_t most = f.most - before, one = (CTX / 2 - 1) * V * 4;
    ok(good && !s.n_wrong && most < one,
       "%zu bytes for a scan, the logits of one chunk are %zu", most, one);
    run_close(&r);
    ok(f.now == 0, "and nothing stays");
}

/* Each allocation of a scan fails once. */
static void check_no_memory(void)
{
    struct failalloc f;
    struct run r;
    struct seen s = { .sum = 0 };
    const struct gguf_sink sink = sink_of(&s);
    const struct gguf_sink *const sinks[] = { &sink };
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = CTX;
    p.max_chunks = 2;
    bool good =
        open_session(&r, 1, 0, failalloc_init(&f, UINT_MAX), NULL, NULL);
    unsigned n_failed = 0;
    for (bool more = good; more;) {
        f.calls = 0;
        f.fail_at = f.last = n_failed;
        memset(s.log, 0, sizeof s.log);
        enum gguf_status st =
            gguf_scan_run(r.session, text, N, &p, sinks, 1, &r.err);
        more = f.calls > n_failed;
        const size_t len = strlen(s.log);
        good = good && st == (more ? GGUF_E_NOMEM : GGUF_OK) &&
               (!len || s.log[len - 1] == 'e');
        n_failed += more;
    }
    ok(good && n_failed >= 5 && s.n_wrong == 0,
       "each of %u allocations failed once", n_failed);
    f.fail_at = f.last = UINT_MAX;
    run_close(&r);
    ok(f.live == 0, "and nothing stays");
}

/* ---- perplexity, the first sink ---- */

struct sizes {
    size_t size;
    int n;
    double last;
};

static bool on_ppl(void *user, size_t chunk, size_t n_chunks,
                   const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    struct sizes *s = user;
    (void)n_chunks;
    s->n += one->struct_size == s->size && all->struct_size == s->size &&
            one->n == CTX / 2 - 1 && all->n == (chunk + 1) * one->n;
    s->last = all->sum;
    return false;
}

static void check_ppl(void)
{
    struct seen s = { .sum = 0 };
    const struct gguf_sink sink = sink_of(&s);
    const struct gguf_sink *const sinks[] = { &sink };
    struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_ppl got = GGUF_PPL_INIT, twice = GGUF_PPL_INIT;
    struct sizes sizes = { sizeof got, 0, 0 };
    char want[400];
    struct run r;
    scan.n_ctx = CTX;
    p.scan = &scan;
    p.sinks = sinks;
    p.n_sinks = 1;
    p.on_chunk.fn = on_ppl;
    p.on_chunk.user = &sizes;
    expect_calls(want, CTX / 2 - 1, 0, CHUNKS);
    bool good = open_session(&r, 3, 3 * CTX, NULL, NULL, NULL) &&
                gguf_ppl_run(r.session, text, N, &p, &got, &r.err) == GGUF_OK;
    ok(good && fabs(s.sum - got.sum) < 1e-9 && !strcmp(s.log, want) &&
           sizes.n == CHUNKS && memcmp(&sizes.last, &got.sum, 8) == 0,
       "perplexity with another sink in the same scan");
    struct gguf_ppl none = { .struct_size = 0 };
    ok(gguf_ppl_add(&none, &got, NULL) == GGUF_E_INVALID &&
           gguf_ppl_add(&twice, &none, NULL) == GGUF_E_INVALID && !none.n,
       "sums without a size are not added");
    ok(good && !gguf_ppl_add(&twice, &got, NULL) &&
           !gguf_ppl_add(&twice, &got, NULL) && twice.n == 2 * got.n &&
           fabs(gguf_ppl_value(&twice) / gguf_ppl_value(&got) - 1) < 1e-12 &&
           gguf_ppl_error(&twice) < gguf_ppl_error(&got),
       "a text and itself: the same value, a smaller error");
    struct gguf_ppl old = { .struct_size = offsetof(struct gguf_ppl, sum_sq),
                            .sum_sq = -7 };
    p.sinks = NULL;
    p.n_sinks = 0;
    sizes = (struct sizes){ old.struct_size, 0, 0 };
    ok(good && gguf_ppl_run(r.session, text, N, &p, &old, &r.err) == GGUF_OK &&
           old.n == got.n && !memcmp(&old.sum, &got.sum, 8) &&
           old.sum_sq == -7 && sizes.n == CHUNKS,
       "an older program's result is filled up to its size");
    run_close(&r);
}

/* A chunk longer than a pass keeps the states of one piece at a time. Its
 * digits are those of a single pass. */
enum { LONG = 7000, SHORT = 2000 };
static gguf_token long_text[2 * LONG];

static bool scan_long(struct run *r, uint32_t n_ctx, struct gguf_ppl *got)
{
    struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    scan.n_ctx = n_ctx;
    scan.max_chunks = 1;
    p.scan = &scan;
    return gguf_ppl_run(r->session, long_text, 2 * LONG, &p, got, &r->err) ==
           GGUF_OK;
}

static bool open_long(struct run *r, uint32_t n_ubatch,
                      const struct gguf_allocator *a)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.allocator = a;
    p.n_ctx = LONG;
    p.n_ubatch = n_ubatch;
    return run_open(r, file, file_size, 2, &p);
}

static void check_long(void)
{
    struct failalloc fa;
    struct run r;
    struct gguf_ppl first = GGUF_PPL_INIT, pieces = first, whole = first;
    for (int i = 0; i < 2 * LONG; i++)
        long_text[i] = (gguf_token)rnd_below(V);
    /* the first scan allocates a piece's states and logits */
    bool good = open_long(&r, 128, failalloc_init(&fa, UINT_MAX)) &&
                scan_long(&r, SHORT, &first);
    const size_t before = fa.now;
    fa.most = before;
    good = good && scan_long(&r, LONG, &pieces);
    const size_t row = good ? 4 * r.session->model->hp.n_embd : 0;
    const size_t states = (LONG - SHORT) / 2 * row, more = fa.most - before;
    ok(good && more < states / 2,
       "a chunk of %d tokens takes %zu bytes more than one of %d; states "
       "would be %zu",
       LONG, more, SHORT, states);
    run_close(&r);
    good = good && open_long(&r, LONG, NULL) && scan_long(&r, LONG, &whole);
    ok(good && pieces.n == LONG - 1 - LONG / 2 && pieces.n == whole.n &&
           !memcmp(&pieces.sum, &whole.sum, sizeof whole.sum) &&
           !memcmp(&pieces.sum_sq, &whole.sum_sq, sizeof whole.sum_sq),
       "in pieces or at once: %.17g and %.17g", pieces.sum, whole.sum);
    run_close(&r);
}

int main(void)
{
    if (!make_model()) {
        printf("Bail out! no model\n");
        return 1;
    }
    check_order();
    check_failures();
    check_refused();
    check_graphs();
    check_memory();
    check_no_memory();
    check_ppl();
    check_long();
    free(file);
    return done_testing();
}
