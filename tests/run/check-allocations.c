/* SPDX-License-Identifier: MIT */
/* check-allocations.c - sessions of every architecture allocate when they are
 * created, and not later
 *
 * Each session decodes token by token and in batches of all kinds, with every
 * kind of memory that its model has. Nothing is allocated after the creation,
 * by the session or by the backend. The largest number of bytes in use is that
 * after the creation. Buffers have the sizes that were estimated.
 */
#include "config.h"
#include "base/compiler.h"
#include "run/session_int.h"
#include "tests/failalloc.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

enum { N_CTX = 80, N_SEQ = 2, N_UBATCH = 24, N = SKELETON_TOKENS };

static bool is_whole(const struct run *r)
{
    return gguf_model_info(r->model)->is_whole;
}

/* Read the states and the logits of the last batch, a few rows at a time. */
static bool read_outputs(struct run *r)
{
    const size_t n = gguf_session_n_outputs(r->session);
    const float *rows;
    if (!n)
        return true;
    if (gguf_session_states(r->session, 0, n, &rows, &r->err) != GGUF_OK)
        return false;
    const enum gguf_status st =
        gguf_session_logits(r->session, n - 1, 1, &rows, &r->err);
    return st == GGUF_OK || st == GGUF_E_UNSUPPORTED;
}

static bool encode_text(struct run *r, const gguf_token *tok, size_t n)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    int32_t seq[N_UBATCH];
    b.n = n;
    b.token = tok;
    b.seq = seq;
    for (int32_t q = 0; q < N_SEQ; q++) {
        for (size_t i = 0; i < n; i++)
            seq[i] = q;
        if (gguf_model_info(r->model)->encodes_first &&
            gguf_session_encode(r->session, &b, &r->err) != GGUF_OK)
            return false;
    }
    return true;
}

/* Decode sequence 0 token by token, to the end of the tokens. */
static bool one_by_one(struct run *r, const gguf_token *tok)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = 1;
    for (int i = 0; i < N; i++) {
        b.token = tok + i;
        if (gguf_session_decode(r->session, &b, &r->err) != GGUF_OK ||
            !read_outputs(r))
            return false;
    }
    return true;
}

/* Decode a batch of random size, of one sequence or both, with all, some or no
 * outputs. One pass can take it. */
static bool any_batch(struct run *r, const gguf_token *tok)
{
    gguf_token t[N_UBATCH];
    int32_t seq[N_UBATCH];
    bool want[N_UBATCH];
    struct gguf_batch b = GGUF_BATCH_INIT;
    const uint64_t kind = rnd_below(4), of = rnd_below(N_SEQ + 1);
    b.n = 1 + rnd_below(kind == 3 ? 3 : N_UBATCH);
    b.token = t;
    b.seq = seq;
    b.want = want;
    for (size_t i = 0; i < b.n; i++) {
        t[i] = tok[rnd_below(N)];
        seq[i] = (int32_t)(of == N_SEQ ? rnd_below(N_SEQ) : of);
        want[i] = kind == 0 || (kind != 1 && i + 1 == b.n);
    }
    return gguf_session_decode(r->session, &b, &r->err) == GGUF_OK &&
           read_outputs(r);
}

static bool any_batches(struct run *r, const gguf_token *tok)
{
    for (int i = 0; i < 24; i++) {
        if (i % 3 == 0 && (gguf_session_clear(r->session, &r->err) ||
                           !encode_text(r, tok, 1 + rnd_below(N_UBATCH))))
            return false;
        if (!any_batch(r, tok))
            return false;
    }
    return true;
}

/* Open a session with this cache type, or with one whose blocks fit. */
static bool open_any(struct run *r, const void *file, size_t size,
                     struct gguf_session_params *p)
{
    if (run_open(r, file, size, 1, p))
        return true;
    if (r->err.status != GGUF_E_UNSUPPORTED)
        return false;
    run_close(r);
    p->unified = p->unified && !strstr(r->err.message, "unified");
    if (run_open(r, file, size, 1, p))
        return true;
    run_close(r);
    p->key_dtype = p->value_dtype = gguf_dtype_find(GGUF_DTYPE_BF16);
    return run_open(r, file, size, 1, p);
}

struct counts {
    unsigned n, n_keys, n_states, n_cross, n_whole;
};

static void count_kinds(const struct run *r, struct counts *n)
{
    const unsigned keeps = gg_model_all_memory_kinds(r->model);
    n->n++;
    n->n_whole += is_whole(r);
    n->n_keys += (keeps & (unsigned)GG_MODEL_MEMORY_KV) && !is_whole(r);
    n->n_states += (keeps & (unsigned)GG_MODEL_MEMORY_STATES) != 0;
    n->n_cross += (keeps & (unsigned)GG_MODEL_MEMORY_CROSS) != 0;
}

/* ---- all that is in use ---- */

/* Measure the largest number of bytes that a session takes while it is created
 * and computes, from its allocator and from the backend's. Compare with the
 * estimate, made with a backend of its own, for a session like m's. */
static bool measure_peak(const struct run *m, struct gguf_session_params p,
                         unsigned n_threads, const gguf_token *tok,
                         uint64_t *got, uint64_t *said, struct gguf_error *err)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct failalloc f;
    struct run r = { .model = m->model };
    p.allocator = cp.allocator = failalloc_init(&f, UINT_MAX);
    pp.n_threads = n_threads;
    *got = *said = 0;
    bool good = !gguf_pool_create(&r.pool, &pp, err);
    cp.pool = r.pool;
    good = good && !gguf_cpu_backend_create(&r.backend, &cp, err);
    p.backend = r.backend;
    good = good && !gguf_session_estimate_peak_memory(r.model, &p, said, err);
    const size_t before = f.most = f.now;
    good = good && !gguf_session_create(&r.session, r.model, &p, err) &&
           encode_text(&r, tok, N_UBATCH) && one_by_one(&r, tok) &&
           any_batches(&r, tok);
    *got = f.most - before;
    r.model = NULL;
    run_close(&r);
    return good && !f.live;
}

static void check_peak(const char *name, size_t number, const struct run *m,
                       const struct gguf_session_params *p,
                       const gguf_token *tok)
{
    const unsigned n_threads = number % 4 ? 1 : 3;
    struct gguf_error err;
    uint64_t got, said;
    gguf_error_clear(&err);
    const bool good = measure_peak(m, *p, n_threads, tok, &got, &said, &err);
    ok(good && got == said,
       "%s: %" PRIu64 " bytes at most, %" PRIu64 " were foretold %s", name,
       got, said, err.message);
}

static void check_arch(const char *name, size_t number, struct counts *n)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_Q8_0,
                                      GGUF_DTYPE_F16, GGUF_DTYPE_Q4_0 };
    static struct skeleton m;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct failalloc f;
    struct run r;
    gguf_token tok[SKELETON_TOKENS];
    uint64_t got[2] = { 0 }, said[2] = { 0 }, after[2] = { 0 };
    size_t size;
    if (!skeleton_open(&m, name))
        abort();
    if (!m.n_rows) { /* no outputs: the architecture is not evaluated */
        skeleton_close(&m);
        return;
    }
    skeleton_tokens_of(&m, tok);
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    p.allocator = failalloc_init(&f, UINT_MAX);
    p.n_ctx = N_CTX;
    p.n_seq = N_SEQ;
    p.n_ubatch = N_UBATCH;
    p.key_dtype = p.value_dtype =
        gguf_dtype_find(types[number % GG_LEN(types)]);
    p.unified = number % 3 == 0;
    bool good = open_any(&r, file, size, &p);
    const unsigned calls = f.calls;
    const size_t most = f.most, now = f.now;
    if (good) {
        count_kinds(&r, n);
        gguf_session_memory_size(r.session, &got[0], &got[1]);
        p.backend = r.backend;
    }
    good = good && encode_text(&r, tok, N_UBATCH) && one_by_one(&r, tok);
    const unsigned steps = f.calls - calls;
    good = good && any_batches(&r, tok);
    const unsigned batches = f.calls - calls - steps;
    ok(good && !steps && !batches,
       "%s: %u allocations token by token, %u in batches: %s", name, steps,
       batches, good ? "" : r.err.message);
    ok(good && f.most == most && f.now == now,
       "%s: %zu bytes at first, %zu at most, %zu after", name, most, f.most,
       f.now);
    if (good)
        gguf_session_memory_size(r.session, &after[0], &after[1]);
    good = good && gguf_session_estimate_memory(r.model, &p, &said[0],
                                                &said[1], &r.err) == GGUF_OK;
    ok(good && !memcmp(got, said, sizeof got) &&
           !memcmp(after, said, sizeof got),
       "%s: %" PRIu64 " bytes of cache and %" PRIu64
       " of graphs are foretold, "
       "%" PRIu64 " and %" PRIu64 " are there",
       name, said[0], said[1], got[0], got[1]);
    check_peak(name, number, &r, &p, tok);
    run_close(&r);
    ok(!f.live, "%s: all blocks are given back", name);
    free(file);
    skeleton_close(&m);
}

int main(void)
{
    static char names[512][64];
    struct counts n = { 0 };
    const size_t all = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < all; i++)
        check_arch(names[i], i, &n);
    ok(n.n > 130 && n.n_keys && n.n_states && n.n_cross && n.n_whole,
       "%u models: %u keep keys, %u states, %u encoded texts, %u nothing", n.n,
       n.n_keys, n.n_states, n.n_cross, n.n_whole);
    return done_testing();
}
