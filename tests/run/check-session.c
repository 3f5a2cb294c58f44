/* SPDX-License-Identifier: MIT */
/* check-session.c - results of a session do not depend on how tokens are
 * batched, and a session survives failing allocations */
#include "config.h"
#include "run/session_int.h"
#include "sched/sched_int.h"
#include "gguf/backend_impl.h"
#include "tests/failalloc.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>

enum { V = 50, N_EMBD = 64, N = 70, WHY = sizeof(struct gguf_error) };

static const struct gen_spec spec = {
    .arch = "llama",
    .n_vocab = V,
    .n_ctx = 400,
    .n_embd = N_EMBD,
    .n_layer = 2,
    .n_ff = 100,
    .eps = 1e-5f,
    .freq_base = 10000,
    .n_head = 4,
    .n_head_kv = 2,
};
static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

static void *model_file(size_t *size)
{
    void *file = gen_model_file(&spec, 1, GGUF_DTYPE_F32, size);
    return file;
}

static void make_tokens(gguf_token *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t[i] = (gguf_token)(i * 7 % V);
}

/* Decode a sequence in passes of n_ubatch tokens. w chooses the outputs: all,
 * the last one, or a few from token 30 on. */
static bool get_logits(const void *file, size_t size, uint32_t n_ubatch, int w,
                       float *out, char *why)
{
    struct gguf_session_params p = init;
    struct run r;
    gguf_token tok[N];
    bool want[N];
    make_tokens(tok, N);
    for (int i = 0; i < N; i++)
        want[i] = w == 0 || (w == 1 ? i + 1 == N : i >= 30 && i < 36);
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = N, .token = tok, .want = want
    };
    p.n_ctx = 128;
    p.n_ubatch = n_ubatch;
    bool good = run_open(&r, file, size, 2, &p) && run_logits(&r, &b, out);
    snprintf(why, WHY, "%s", good ? "" : r.err.message);
    run_close(&r);
    return good;
}

static void check_passes(const void *file, size_t size)
{
    static const uint32_t ubatch[] = { 1, 2, 3, 4, 5, 7, 31, 33, 69 };
    static const char *const what[] = { "all", "the last", "some" };
    static const size_t n_rows[] = { N, 1, 6 };
    static float once[N * V], cut[N * V];
    char why[WHY];
    for (int w = 0; w < 3; w++) {
        bool good = get_logits(file, size, N, w, once, why);
        for (size_t u = 0; good && u < GG_LEN(ubatch); u++) {
            good = get_logits(file, size, ubatch[u], w, cut, why) &&
                   !memcmp(once, cut, n_rows[w] * V * sizeof *once);
            if (!good)
                printf("# passes of %u\n", ubatch[u]);
        }
        ok(good, "%s wanted: the same bits in passes of 1 to %d%s", what[w], N,
           why);
    }
}

/* Short sequences give the same logits alone and beside others. */
static void check_beside(const void *file, size_t size)
{
    enum { LEN = 5, SEQS = 4 };
    static float alone[LEN * V], beside[SEQS * LEN * V];
    struct gguf_session_params p = init;
    struct run r;
    gguf_token tok[SEQS * LEN];
    int32_t seq[SEQS * LEN];
    p.n_ctx = 32;
    p.n_seq = SEQS;
    for (int i = 0; i < SEQS * LEN; i++) {
        tok[i] = i % LEN;
        seq[i] = i / LEN;
    }
    struct gguf_batch b = { .struct_size = sizeof b, .n = LEN, .token = tok };
    bool good = run_open(&r, file, size, 2, &p) && run_logits(&r, &b, alone);
    for (int n = 1; good && n <= SEQS; n++) {
        ignore_status(gguf_session_clear(r.session, NULL));
        b.n = (size_t)n * LEN;
        b.seq = seq;
        good = run_logits(&r, &b, beside);
        for (int q = 0; good && q < n; q++)
            good = !memcmp(beside + q * LEN * V, alone, sizeof alone);
    }
    /* one more token of each: too few for a pass side by side */
    for (int q = 0; q < SEQS; q++) {
        tok[q] = 9;
        seq[q] = q;
    }
    b.n = SEQS;
    good = good && run_logits(&r, &b, beside);
    for (int q = 1; good && q < SEQS; q++)
        good = !memcmp(beside + q * V, beside, V * sizeof *beside);
    ok(good, "the same bits alone and beside other sequences %s",
       good ? "" : r.err.message);
    run_close(&r);
}

/* Read logits a few rows at a time. */
static void check_rows(const void *file, size_t size)
{
    static float all[N * V];
    struct run r;
    gguf_token tok[N];
    make_tokens(tok, N);
    struct gguf_batch b = { .struct_size = sizeof b, .n = N, .token = tok };
    bool good = run_open(&r, file, size, 2, &init) && run_logits(&r, &b, all);
    for (size_t n = 1; good && n < 10; n++)
        for (size_t i = 0; good && i + n <= N; i += n) {
            const float *rows;
            good = !gguf_session_logits(r.session, i, n, &rows, &r.err) &&
                   !memcmp(rows, all + i * V, n * V * sizeof *rows);
        }
    ok(good, "the same bits in 1 to 9 rows at a time %s",
       good ? "" : r.err.message);
    run_close(&r);
}

/* Removed tokens leave NaN in memory, which must not reach any logit. */
static void check_forgotten(void *file, size_t size)
{
    static float first[3 * V], bad[5 * V], again[3 * V];
    struct run r;
    const gguf_token tok[3] = { 1, 2, 3 };
    const gguf_token nan[5] = { 13, 13, 13, 13, 13 };
    struct gguf_batch b = { .struct_size = sizeof b, .n = 3, .token = tok };
    struct gguf_batch c = { .struct_size = sizeof c, .n = 5, .token = nan };
    bool good = run_open(&r, file, size, 1, &init);
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(r.file, "token_embd.weight");
    const uint8_t *begin = gguf_file_bytes(r.file);
    const uint8_t *data = gguf_file_tensor_data(r.file, t->index);
    float *row = (float *)(void *)((char *)file + (data - begin));
    for (int i = 0; i < N_EMBD; i++)
        row[13 * N_EMBD + i] = NAN;
    good = good && run_logits(&r, &b, first);
    ignore_status(gguf_session_clear(r.session, NULL));
    good = good && run_logits(&r, &c, bad) && isnan(bad[0]);
    ignore_status(gguf_session_clear(r.session, NULL));
    ok(good && run_logits(&r, &b, again) &&
           !memcmp(first, again, sizeof first),
       "a sequence after one of NaN, cleared");
    ignore_status(gguf_session_clear(r.session, NULL));
    good = good && run_logits(&r, &c, bad);
    ignore_status(gguf_session_remove_tokens(r.session, 0, 0, -1, NULL));
    ok(good && run_logits(&r, &b, again) &&
           !memcmp(first, again, sizeof first),
       "and removed");
    /* remove every second token, then the others, until the sequence is empty
     */
    ignore_status(gguf_session_clear(r.session, NULL));
    good = good && run_logits(&r, &c, bad);
    for (int32_t i = 0; i < 5; i += 2)
        ignore_status(
            gguf_session_remove_tokens(r.session, 0, i, i + 1, NULL));
    for (int32_t i = 1; i < 5; i += 2)
        ignore_status(
            gguf_session_remove_tokens(r.session, 0, i, i + 1, NULL));
    ok(good && gguf_session_n_tokens(r.session, 0) == 0 &&
           run_logits(&r, &b, again) && !memcmp(first, again, sizeof first),
       "and removed one by one");
    run_close(&r);
}

static void check_last_position(const void *file, size_t size)
{
    float out[V];
    const gguf_token tok = 1;
    int32_t pos = INT32_MAX - 1;
    struct run r;
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = 1, .token = &tok, .pos = &pos
    };
    bool good = run_open(&r, file, size, 1, &init) && run_logits(&r, &b, out);
    b.pos = NULL;
    ok(good && gguf_session_decode(r.session, &b, &r.err) == GGUF_E_INVALID &&
           strstr(r.err.message, "2147483646") &&
           gguf_session_n_tokens(r.session, 0) == 1,
       "nothing comes after the last position: %s", r.err.message);
    run_close(&r);
}

/* A session takes the memory that it reserved, whatever is decoded. */
static void check_reserved(const void *file, size_t size, uint32_t n_ctx,
                           uint32_t n_seq, uint32_t n_ubatch)
{
    enum { MOST = 1200 };
    static gguf_token tok[MOST];
    static int32_t seq[MOST];
    static bool want[MOST];
    struct gguf_session_params p = init;
    struct run r;
    uint64_t cache[2], graph[2];
    const float *rows;
    p.n_ctx = n_ctx;
    p.n_seq = n_seq;
    p.n_ubatch = n_ubatch;
    bool good = run_open(&r, file, size, 1, &p);
    if (good)
        gguf_session_memory_size(r.session, &cache[0], &graph[0]);
    /* full sequences, then the largest batch of all sequences side by side */
    for (uint32_t part = 0; good && part < 2; part++) {
        uint32_t at = n_ubatch / n_seq, n = part ? at : n_ctx - at;
        for (uint32_t i = 0; i < n * n_seq; i++) {
            seq[i] = (int32_t)(i / n);
            want[i] = 1;
        }
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = n * n_seq,
                                .token = tok,
                                .seq = seq,
                                .want = want };
        good = !gguf_session_decode(r.session, &b, &r.err);
    }
    const size_t most = GG_MIN(gguf_session_max_logits(r.session),
                               gguf_session_n_outputs(r.session));
    good = good && !gguf_session_logits(r.session, 0, most, &rows, &r.err);
    if (good)
        gguf_session_memory_size(r.session, &cache[1], &graph[1]);
    ok(good && cache[0] == cache[1] && graph[0] == graph[1],
       "%u sequences of %u in passes of %u: %" PRIu64 " bytes are enough, "
       "%" PRIu64 " in the end %s",
       n_seq, n_ctx, n_ubatch, graph[0], graph[1], good ? "" : r.err.message);
    run_close(&r);
}

enum { KEPT = 300 }; /* tokens that a sequence keeps */

/* Decode a batch of random shape: some sequences, some tokens of each, some
 * outputs. */
static bool decode_any(struct run *r, uint32_t n_seq, uint32_t most)
{
    static gguf_token tok[N];
    static int32_t seq[N];
    static bool want[N];
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = 0, .token = tok, .seq = seq, .want = want
    };
    const uint32_t each = 1 + (uint32_t)rnd_below(most),
                   kind = (uint32_t)rnd_below(4);
    for (uint32_t q = 0; q < n_seq; q++) {
        uint32_t n = kind == 3 ? (uint32_t)rnd_below(most + 1) : each;
        if (gguf_session_n_tokens(r->session, q) + n > KEPT)
            ignore_status(gguf_session_remove_tokens(
                r->session, q, (int32_t)rnd_below(40), -1, NULL));
        for (; n && b.n < N; n--, b.n++) {
            tok[b.n] = (gguf_token)rnd_below(V);
            seq[b.n] = (int32_t)q;
            want[b.n] = kind == 0 || (kind == 1 && rnd_below(3) == 0) ||
                        (kind == 3 && n == 1);
        }
    }
    if (!b.n)
        return true;
    if (gguf_session_decode(r->session, &b, &r->err) != GGUF_OK)
        return false;
    const size_t n = gguf_session_n_outputs(r->session);
    const float *rows;
    return !n || gguf_session_logits(r->session, 0, 1 + (size_t)rnd_below(n),
                                     &rows, &r->err) == GGUF_OK;
}

/* Decoding allocates nothing, the first time included, and a growing sequence
 * causes no new plan. */
static void check_no_allocations(const void *file, size_t size, uint32_t n_seq,
                                 bool unified)
{
    struct gguf_session_params p = init;
    struct failalloc f;
    struct run r;
    const float *rows;
    p.allocator = failalloc_init(&f, UINT_MAX);
    p.n_ctx = unified ? KEPT * n_seq : KEPT;
    p.n_seq = n_seq;
    p.n_ubatch = N;
    p.unified = unified;
    bool good = run_open(&r, file, size, 2, &p);
    const unsigned at_first = f.calls;
    struct gguf_galloc *memory = good ? r.session->sched->galloc : NULL;
    const unsigned n_plans = good ? gguf_galloc_n_plans(memory) : 0;
    for (gguf_token i = 0; good && i < 290; i++) {
        gguf_token tok = i % V;
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = 1,
                                .token = &tok };
        good = !gguf_session_decode(r.session, &b, &r.err) &&
               !gguf_session_logits(r.session, 0, 1, &rows, &r.err);
    }
    const unsigned grown = f.calls - at_first;
    ok(good && !grown && gguf_galloc_n_plans(memory) == n_plans,
       "%u sequences%s: %u allocations and %u plans while one grows by 290 "
       "tokens",
       n_seq, unified ? " unified" : "", grown,
       good ? gguf_galloc_n_plans(memory) - n_plans : 0);
    tap_rng = n_seq;
    for (int i = 0; good && i < 200; i++)
        good = decode_any(&r, n_seq, N / n_seq);
    ok(good && f.calls - at_first == 0 &&
           gguf_galloc_n_plans(memory) == n_plans,
       "%u sequences: %u allocations and %u plans for 200 batches %s", n_seq,
       f.calls - at_first, good ? gguf_galloc_n_plans(memory) - n_plans : 0,
       good ? "" : r.err.message);
    run_close(&r);
    ok(!f.live, "all %u are given back", at_first);
}

/* Each allocation of a decode with more outputs than reserved fails once. The
 * outputs of the previous decode are lost then. */
static void check_no_memory(const void *file, size_t size)
{
    struct gguf_session_params p = init;
    struct failalloc f;
    struct run r;
    gguf_token tok[N];
    bool want[N];
    const float *rows;
    unsigned n = 0, n_failed = 0;
    p.allocator = failalloc_init(&f, UINT_MAX);
    p.n_ctx = 64;
    p.n_ubatch = 4;
    make_tokens(tok, N);
    memset(want, 1, sizeof want);
    bool good = run_open(&r, file, size, 1, &p);
    for (bool more = true; good && more; n++) {
        /* other sizes, so that no plan is reused */
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = 2,
                                .token = tok };
        ignore_status(gguf_session_clear(r.session, NULL));
        good = !gguf_session_decode(r.session, &b, &r.err);
        b = (struct gguf_batch){
            .struct_size = sizeof b, .n = 5 + n, .token = tok, .want = want
        };
        f.calls = 0;
        f.fail_at = f.last = n;
        enum gguf_status st = gguf_session_decode(r.session, &b, &r.err);
        more = f.calls > n;
        f.fail_at = f.last = UINT_MAX;
        n_failed += st == GGUF_E_NOMEM;
        good = good && st == (more ? GGUF_E_NOMEM : GGUF_OK);
        good = good && gguf_session_logits(r.session, 0, 1, &rows, &r.err) ==
                           (more ? GGUF_E_INVALID : GGUF_OK);
    }
    ok(good && n_failed == 1, "%u allocation of such a decode fails",
       n_failed);
    run_close(&r);
    ok(!f.live, "nothing is left");
}

/* --- memory that cannot be cleared ---------------------------------------- */

static bool lost;

static enum gguf_status host_alloc(const struct gguf_buft *buft,
                                   struct gguf_buffer *b, size_t size,
                                   struct gguf_error *err)
{
    void *p = malloc(size + 64);
    (void)buft;
    if (!p)
        return gguf_error_set(err, GGUF_E_NOMEM, "%zu bytes", size);
    gguf_buffer_set_memory(b, (char *)p + (-(uintptr_t)p & 63), p);
    return GGUF_OK;
}

static void host_free(struct gguf_buffer *b)
{
    free(gguf_buffer_priv(b));
}

static enum gguf_status host_fill(struct gguf_buffer *b, struct gguf_tensor *t,
                                  uint8_t value, uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    (void)b;
    if (lost)
        return gguf_error_set(err, GGUF_E_IO, "the device is lost");
    memset((char *)t->data + off, value, (size_t)size);
    return GGUF_OK;
}

static void check_lost(const void *file, size_t size)
{
    static const struct gguf_buft_iface iface = { .struct_size = sizeof iface,
                                                  .alloc = host_alloc,
                                                  .free = host_free,
                                                  .fill = host_fill };
    struct gguf_buft_params bp = GGUF_BUFT_PARAMS_INIT;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params p = init;
    gguf_token tok[3] = { 1, 2, 3 };
    struct gguf_batch b = { .struct_size = sizeof b, .n = 3, .token = tok };
    struct gguf_buft *buft = NULL;
    struct gguf_session *s = NULL;
    struct gguf_error err;
    struct run r;
    bp.iface = &iface;
    bp.name = "lost";
    bp.is_host = true;
    p.n_ctx = 32;
    if (!run_open(&r, file, size, 1, &p) ||
        gguf_buft_create(&buft, &bp, &err) != GGUF_OK)
        exit(99);
    cp.buft = buft;
    cp.n_threads = 1;
    if (gguf_cpu_backend_create(&p.backend, &cp, &err) != GGUF_OK ||
        gguf_session_create(&s, r.model, &p, &err) != GGUF_OK ||
        gguf_session_decode(s, &b, &err) != GGUF_OK)
        exit(99);
    lost = true;
    ok(gguf_session_remove_tokens(s, 0, 1, 2, &err) == GGUF_E_IO &&
           gguf_session_clear(s, &err) == GGUF_E_IO &&
           gguf_session_n_tokens(s, 0) == 3,
       "what cannot be cleared is not forgotten: %s", err.message);
    lost = false;
    ok(gguf_session_clear(s, &err) == GGUF_OK &&
           gguf_session_n_tokens(s, 0) == 0,
       "and forgotten the next time");
    gguf_session_destroy(s);
    gguf_backend_destroy(p.backend);
    gguf_buft_destroy(buft);
    run_close(&r);
}

int main(void)
{
    size_t size;
    void *file = model_file(&size);
    check_passes(file, size);
    check_beside(file, size);
    check_lost(file, size);
    check_rows(file, size);
    check_last_position(file, size);
    check_reserved(file, size, 300, 4, 512);
    check_reserved(file, size, 100, 2, 64);
    check_reserved(file, size, 400, 1, 16);
    check_no_memory(file, size);
    for (uint32_t n_seq = 1; n_seq <= 3; n_seq++)
        for (int unified = 0; unified < 2; unified++)
            check_no_allocations(file, size, n_seq, unified);
    check_forgotten(file, size);
    free(file);
    return done_testing();
}
