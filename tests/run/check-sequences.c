/* SPDX-License-Identifier: MIT */
/* check-sequences.c - sequences of a session: copied, kept alone, partly
 * removed, sharing a pool of cells, and with sliding windows */
#include "config.h"
#include "base/compiler.h"
#include "run/session_int.h"
#include "tests/ignore_status.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { V = SKELETON_VOCAB, MOST = 600 };

static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

struct model {
    void *file;
    size_t size;
};

static struct model make_model(const char *name)
{
    struct model m = { NULL, 0 };
    struct skeleton k;
    if (!skeleton_open(&k, name))
        exit(99);
    m.file = gen_file(&k.g, GGUF_DTYPE_F32, &m.size);
    skeleton_close(&k);
    return m;
}

static struct gguf_session_params make_params(uint32_t n_ctx,
                                              uint32_t n_ubatch, bool unified)
{
    struct gguf_session_params p = init;
    p.n_ctx = n_ctx;
    p.n_seq = 4;
    p.n_ubatch = n_ubatch;
    p.unified = unified;
    return p;
}

static gguf_token token_at(int i)
{
    return (gguf_token)((i * 37 + 11) % V);
}

/* Decode tokens [first, first + n) of the text at the end of a sequence, and
 * read all logits. */
static bool decode_on(struct run *r, int32_t seq, int first, int n, float *out)
{
    static gguf_token tok[MOST];
    static int32_t seqs[MOST];
    struct gguf_batch b = GGUF_BATCH_INIT;
    for (int i = 0; i < n; i++) {
        tok[i] = token_at(first + i);
        seqs[i] = seq;
    }
    b.n = (size_t)n;
    b.token = tok;
    b.seq = seqs;
    return run_logits(r, &b, out);
}

static void open_run(struct run *r, const struct model *m,
                     const struct gguf_session_params *p)
{
    if (run_open(r, m->file, m->size, 1, p))
        return;
    printf("# %s\n", r->err.message);
    exit(99);
}

static float whole[MOST * V], some[MOST * V];

static bool same_logits(const float *a, const float *b, int n, bool bits)
{
    const double d = run_nmse(a, b, (size_t)n * V);
    if (!bits && d >= 1e-11)
        printf("# %.2g\n", d);
    return bits ? !memcmp(a, b, (size_t)n * V * sizeof *a) : d < 1e-11;
}

/* ---- copies ---- */

/* Copy half of a text, and continue both copies. Recurrent states are copied
 * whole: there the whole text is copied. */
static void check_copy(const char *name, bool unified, bool part)
{
    enum { N = 40, HALF = 20, FROM = 24 };
    const struct model m = make_model(name);
    struct gguf_session_params p =
        make_params(unified ? 256 : 64, 16, unified);
    struct run r;
    open_run(&r, &m, &p);
    bool good = run_encode(&r, (gguf_token[]){ 1, 2, 3, 4, 5 }, 5) &&
                decode_on(&r, 0, 0, N, whole);
    ignore_status(gguf_session_remove_tokens(r.session, 0, 0, -1, NULL));
    good = good && decode_on(&r, 0, 0, part ? FROM : HALF, some);
    for (uint32_t q = 1; good && q < 4; q++)
        good =
            !gguf_session_copy_tokens(r.session, q - 1, q, 0, HALF, &r.err) &&
            gguf_session_n_tokens(r.session, q) == HALF &&
            gguf_session_next_pos(r.session, q) == HALF;
    const uint32_t n_used = r.session->cells.stream[0].n_used;
    for (int q = 1; good && q < 4; q++)
        good = decode_on(&r, q, HALF, N - HALF, some) &&
               same_logits(whole + HALF * V, some, N - HALF, !unified);
    ok(good, "%s, %s: copies go on %s", name, unified ? "unified" : "streams",
       good ? "" : r.err.message);
    if (unified)
        ok(n_used == (part ? FROM : HALF), "%s: %u cells for four", name,
           n_used);
    /* removing the copy must not remove the first one's later tokens */
    good = good && !gguf_session_remove_tokens(r.session, 1, 0, -1, &r.err) &&
           !gguf_session_remove_others(r.session, 2, &r.err) &&
           gguf_session_n_tokens(r.session, 2) == N &&
           gguf_session_n_tokens(r.session, 0) == 0 &&
           gguf_session_n_tokens(r.session, 1) == 0;
    ok(good && decode_on(&r, 2, 7, 9, some) &&
           r.session->cells.stream[unified ? 0 : 2].n_used == N + 9,
       "%s: one is kept %s", name, good ? "" : r.err.message);
    run_close(&r);
    free(m.file);
}

static void check_refused(void)
{
    const struct model m = make_model("mamba");
    struct gguf_session_params p = make_params(64, 16, false);
    struct run r;
    open_run(&r, &m, &p);
    bool good = decode_on(&r, 0, 0, 9, some) && decode_on(&r, 1, 5, 5, some);
    ok(good &&
           gguf_session_copy_tokens(r.session, 0, 2, 0, 8, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           gguf_session_n_tokens(r.session, 2) == 0,
       "a state cannot be copied in part: %s", r.err.message);
    ok(good &&
           gguf_session_copy_tokens(r.session, 1, 0, 0, 5, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           gguf_session_n_tokens(r.session, 0) == 9,
       "nor over a part: %s", r.err.message);
    ok(gguf_session_copy_tokens(r.session, 4, 0, 0, -1, &r.err) ==
               GGUF_E_INVALID &&
           gguf_session_copy_tokens(r.session, 0, 4, 0, -1, &r.err) ==
               GGUF_E_INVALID &&
           gguf_session_remove_others(r.session, 4, &r.err) ==
               GGUF_E_INVALID &&
           strstr(r.err.message, "4"),
       "sequences out of range: %s", r.err.message);
    run_close(&r);
    free(m.file);
}

/* ---- tokens of several sequences ---- */

static bool say_both(struct run *r, const int32_t *seqs, const uint32_t *n_seq,
                     int first, int n, float *out)
{
    gguf_token tok[MOST];
    struct gguf_batch b = GGUF_BATCH_INIT;
    for (int i = 0; i < n; i++)
        tok[i] = token_at(first + i);
    b.n = (size_t)n;
    b.token = tok;
    b.seq = seqs;
    b.n_seq = n_seq;
    return run_logits(r, &b, out);
}

static void check_several(const char *name, bool unified, uint32_t n_cells)
{
    enum { N = 24, BOTH = 8 };
    const struct model m = make_model(name);
    struct gguf_session_params p = make_params(64, 16, unified);
    struct run r;
    int32_t seqs[2 * BOTH + 2];
    uint32_t n_seq[BOTH + 1];
    open_run(&r, &m, &p);
    bool good = decode_on(&r, 3, 0, N, whole) &&
                !gguf_session_clear(r.session, &r.err);
    for (int i = 0; i < BOTH; i++) {
        seqs[2 * i] = 2;
        seqs[2 * i + 1] = 1;
        n_seq[i] = 2;
    }
    good = good && say_both(&r, seqs, n_seq, 0, BOTH, some) &&
           same_logits(whole, some, BOTH, !unified) &&
           gguf_session_n_tokens(r.session, 1) == BOTH &&
           gguf_session_n_tokens(r.session, 2) == BOTH;
    const uint32_t n_used =
        r.session->cells.stream[0].n_used + (unified ? 0 : 2 * BOTH);
    for (int q = 1; good && q < 3; q++)
        good = decode_on(&r, q, BOTH, 4, some) &&
               same_logits(whole + BOTH * V, some, 4, !unified);
    /* the sequences share no cells any more; the logits stay the same */
    good = good && decode_on(&r, 1, BOTH + 4, 4, some) &&
           decode_on(&r, 2, BOTH + 4, 4, some);
    good = good && say_both(&r, seqs, n_seq, 16, BOTH, some) &&
           same_logits(whole + 16 * V, some, BOTH, !unified) &&
           gguf_session_n_tokens(r.session, 1) == N;
    ok(good && n_used == n_cells, "%s, %s: tokens of two, in %u cells %s",
       name, unified ? "unified" : "streams", n_used,
       good ? "" : r.err.message);
    seqs[0] = seqs[1];
    ok(gguf_session_decode(r.session,
                           &(struct gguf_batch){ sizeof(struct gguf_batch), 1,
                                                 (gguf_token[]){ 1 }, NULL,
                                                 seqs, .n_seq = n_seq },
                           &r.err) == GGUF_E_INVALID &&
           strstr(r.err.message, "twice"),
       "a sequence named twice: %s", r.err.message);
    n_seq[0] = 5;
    ok(!say_both(&r, seqs, n_seq, 0, 1, some) &&
           r.err.status == GGUF_E_INVALID,
       "too many sequences: %s", r.err.message);
    run_close(&r);
    free(m.file);
}

/* One sequence may fill the whole pool, and no more. */
static void check_full(void)
{
    const struct model m = make_model("llama");
    struct gguf_session_params p = make_params(64, 16, true);
    struct run r;
    open_run(&r, &m, &p);
    bool good =
        decode_on(&r, 0, 0, 40, whole) && decode_on(&r, 1, 0, 20, some);
    ok(good && !decode_on(&r, 2, 0, 5, some) && r.err.status == GGUF_E_FULL &&
           gguf_session_n_tokens(r.session, 2) == 0,
       "a pool that is full: %s", r.err.message);
    good = good && !gguf_session_remove_tokens(r.session, 0, 10, 30, &r.err) &&
           decode_on(&r, 2, 0, 24, some) &&
           same_logits(whole, some, 24, false);
    ok(good && r.session->cells.stream[0].n_used == 64,
       "one sequence gets the cells that another one frees");
    run_close(&r);
    free(m.file);
}

/* ---- positions ---- */

/* Tensors of a layer's cache. */
enum cache { KEYS, INDEX_KEYS = 2 };

static const struct gguf_tensor *first_keys(const struct run *r,
                                            enum cache which)
{
    return r->session->memory[0]
        .t[which * gg_model_n_unrolled_layers(r->session->model)];
}

/* Decode the same tokens with a gap and shift them together. Keys of the first
 * layer do not depend on other tokens. Returns the largest difference of a
 * key's pair, relative to its length. */
static double keys_apart(const struct run *a, const struct run *b,
                         enum cache which, int n, int d, bool neox)
{
    const float *x = first_keys(a, which)->data,
                *y = first_keys(b, which)->data;
    const int64_t row = first_keys(a, which)->ne[0];
    double most = 0;
    for (int64_t i = 0; i < n * row; i++) {
        const int64_t j = i % d,
                      other =
                          neox ? (j < d / 2 ? i + d / 2 : i - d / 2) : i ^ 1;
        const double r = hypot((double)y[i], (double)y[other]);
        most = fmax(most, fabs((double)x[i] - (double)y[i]) / r);
    }
    return most;
}

static void check_turned(const char *name, enum cache which, int d, bool neox,
                         int32_t delta, int32_t divisor)
{
    enum { N = 50 };
    const struct model m = make_model(name);
    struct gguf_session_params p = make_params(64, 16, false);
    gguf_token tok[N];
    int32_t from[N], to[N];
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = N, .token = tok, .pos = from
    };
    struct run r[2];
    open_run(&r[0], &m, &p);
    open_run(&r[1], &m, &p);
    for (int i = 0; i < N; i++) {
        tok[i] = token_at(i);
        from[i] = 3000 * i;
        to[i] = from[i] / divisor + delta;
    }
    bool good = run_logits(&r[0], &b, some) &&
                !gguf_session_divide_positions(r[0].session, 0, 0, -1, divisor,
                                               &r[0].err) &&
                !gguf_session_shift_positions(r[0].session, 0, 0, -1, delta,
                                              &r[0].err);
    b.pos = to;
    good = good && run_logits(&r[1], &b, some);
    const double u = keys_apart(&r[0], &r[1], which, N, d, neox) * 0x1p24;
    const double most = 11 + (divisor > 1 && delta ? 3 * sqrt(2) : 0);
    ok(good && u > 0 && u < most &&
           gguf_session_next_pos(r[0].session, 0) == to[N - 1] + 1,
       "%s: %skeys of positions / %d + %d differ by %.2g u of %.2g %s", name,
       which == KEYS ? "" : "the indexer's ", divisor, delta, u, most,
       good ? "" : r[0].err.message);
    run_close(&r[0]);
    run_close(&r[1]);
    free(m.file);
}

static void check_moves_refused(void)
{
    static const char *const names[] = { "gpt2", "mamba", "hunyuan-dense",
                                         "deepseek4-moe" };
    static const char *const says[] = { "embeddings", "state", "norm with",
                                        "state" };
    struct gguf_session_params p = make_params(64, 16, false);
    struct run r;
    for (int i = 0; i < 4; i++) {
        const struct model m = make_model(names[i]);
        open_run(&r, &m, &p);
        ok(decode_on(&r, 0, 0, 9, some) &&
               gguf_session_shift_positions(r.session, 0, 3, -1, 5, &r.err) ==
                   GGUF_E_UNSUPPORTED &&
               strstr(r.err.message, says[i]) &&
               gguf_session_next_pos(r.session, 0) == 9,
           "%s: %s", names[i], r.err.message);
        run_close(&r);
        free(m.file);
    }
    const struct model m = make_model("llama");
    open_run(&r, &m, &p);
    ok(decode_on(&r, 0, 0, 9, some) &&
           gguf_session_shift_positions(r.session, 0, 3, -1, -4, &r.err) ==
               GGUF_E_INVALID &&
           strstr(r.err.message, "-1") &&
           gguf_session_next_pos(r.session, 0) == 9,
       "%s", r.err.message);
    ok(gguf_session_shift_positions(r.session, 0, 3, 4, INT32_MAX - 3,
                                    &r.err) == GGUF_E_INVALID &&
           gguf_session_divide_positions(r.session, 0, 0, -1, 0, &r.err) ==
               GGUF_E_INVALID &&
           gguf_session_shift_positions(r.session, 4, 0, -1, 1, &r.err) ==
               GGUF_E_INVALID &&
           gguf_session_next_pos(r.session, 0) == 9,
       "positions that are too large, a divisor of 0, no such sequence");
    run_close(&r);
    free(m.file);
}

/* Bytes of a session equal the estimate, and no call takes more, the first
 * shift included. */
static void check_estimate(const char *name, bool unified)
{
    const struct model m = make_model(name);
    struct gguf_session_params p = make_params(100, 40, unified);
    uint64_t cache[2], graph[2];
    struct run r;
    open_run(&r, &m, &p);
    bool good =
        decode_on(&r, 0, 0, 60, some) && decode_on(&r, 1, 0, 40, some) &&
        !gguf_session_shift_positions(r.session, 0, 0, -1, 9, &r.err) &&
        !gguf_session_copy_tokens(r.session, 1, 2, 0, -1, &r.err) &&
        !gguf_session_remove_tokens(r.session, 0, 0, -1, &r.err) &&
        decode_on(&r, 2, 40, 20, some);
    gguf_session_memory_size(r.session, &cache[0], &graph[0]);
    p.backend = r.backend;
    ok(good &&
           !gguf_session_estimate_memory(r.model, &p, &cache[1], &graph[1],
                                         &r.err) &&
           cache[0] == cache[1] && graph[0] == graph[1],
       "%s, %s: %" PRIu64 " and %" PRIu64 " bytes are foretold %s", name,
       unified ? "unified" : "streams", cache[1], graph[1],
       good ? "" : r.err.message);
    run_close(&r);
    free(m.file);
}

/* A shared range that is changed gets cells of its own while there are free
 * ones. */
static void check_split(void)
{
    const struct model m = make_model("llama");
    struct gguf_session_params p = make_params(64, 16, true);
    struct run r;
    open_run(&r, &m, &p);
    bool good = decode_on(&r, 0, 0, 40, whole) &&
                !gguf_session_copy_tokens(r.session, 0, 1, 0, -1, &r.err);
    ok(good &&
           gguf_session_shift_positions(r.session, 1, 10, -1, 5, &r.err) ==
               GGUF_E_FULL &&
           gguf_session_next_pos(r.session, 1) == 40 &&
           r.session->cells.stream[0].n_used == 40,
       "no cells for a part that moves: %s", r.err.message);
    good = good &&
           !gguf_session_shift_positions(r.session, 1, 20, -1, 5, &r.err) &&
           gguf_session_next_pos(r.session, 1) == 45 &&
           gguf_session_next_pos(r.session, 0) == 40 &&
           r.session->cells.stream[0].n_used == 60;
    ok(good, "cells for one that is smaller %s", good ? "" : r.err.message);
    run_close(&r);
    free(m.file);
}

/* ---- holes ---- */

static void check_holes(bool unified)
{
    const struct model m = make_model("llama");
    struct gguf_session_params p = make_params(256, 32, unified);
    struct run r;
    open_run(&r, &m, &p);
    bool good = decode_on(&r, 1, 0, 200, whole);
    const int64_t before = r.session->ubatch.shape.n_kv[0];
    good = good && !gguf_session_remove_tokens(r.session, 1, 10, 30, &r.err) &&
           decode_on(&r, 1, 200, 4, some);
    const int64_t few = r.session->ubatch.shape.n_kv[0];
    good = good && !gguf_session_remove_tokens(r.session, 1, 40, 150, &r.err);
    /* tokens that stay are moved together in order: cells follow positions */
    good = good && decode_on(&r, 1, 204, 4, some);
    const struct gg_cells *c = &r.session->cells;
    const struct gg_run_stream *st = gg_cells_get_stream(c, 1);
    bool ordered = true;
    for (uint32_t i = 1; i < st->end; i++)
        ordered = ordered && st->pos[i] > st->pos[i - 1];
    ok(good && before == 224 && few == 192 &&
           r.session->ubatch.shape.n_kv[0] == 96 && st->end == 78 && ordered,
       "%s: holes are closed where fewer cells are read: %d, %d, %d",
       unified ? "unified" : "streams", (int)before, (int)few,
       (int)r.session->ubatch.shape.n_kv[0]);
    /* again, with removed cells in the middle of the range that is read */
    good = good && !gguf_session_remove_tokens(r.session, 1, 0, -1, &r.err) &&
           decode_on(&r, 1, 0, 200, some) &&
           same_logits(whole, some, 200, true);
    ok(good, "and all forgotten the next one begins anew");
    run_close(&r);
    free(m.file);
}

/* ---- windows ---- */

static uint64_t n_bytes(struct run *r)
{
    uint64_t cache, graph;
    gguf_session_memory_size(r->session, &cache, &graph);
    return cache;
}

/* gemma2: the first layer has a window of 16 tokens, the second none. */
static void check_window(uint32_t n_ubatch, bool unified)
{
    enum { N = 500 };
    const struct model m = make_model("gemma2");
    struct gguf_session_params p = make_params(N + 20, n_ubatch, unified);
    /* bytes of a key and a value */
    const uint64_t row = 2 * 96 * sizeof(float),
                   n_streams = unified ? 1 : p.n_seq;
    uint64_t cache, graph, had, all;
    struct run r;
    p.full_windows = true;
    open_run(&r, &m, &p);
    bool good = decode_on(&r, 1, 0, N, whole);
    all = n_bytes(&r);
    run_close(&r);
    p.full_windows = false;
    open_run(&r, &m, &p);
    good = good && decode_on(&r, 1, 0, N, some) &&
           same_logits(whole, some, N, true);
    const uint64_t cells = 16 * (unified ? 4 : 1) + n_ubatch + 128;
    ok(good, "passes of %u, %s: the same bits in a window's cells %s",
       n_ubatch, unified ? "unified" : "streams", good ? "" : r.err.message);
    ok(all == 2 * (N + 20) * n_streams * row &&
           n_bytes(&r) == (N + 20 + cells) * n_streams * row &&
           r.session->table[1]->n_cells == cells,
       "%" PRIu64 " bytes instead of %" PRIu64, n_bytes(&r), all);
    p.backend = r.backend;
    gguf_session_memory_size(r.session, &all, &had);
    ok(!gguf_session_estimate_memory(r.model, &p, &cache, &graph, &r.err) &&
           cache == all && graph == had,
       "which is the estimate, and %" PRIu64 " of graphs", had);
    const int32_t lost = r.session->table[1]->seq[1].lost;
    ok(gguf_session_remove_tokens(r.session, 1, lost + 15, -1, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           gguf_session_n_tokens(r.session, 1) == N,
       "a token in the next one's window was removed: %s", r.err.message);
    good = !gguf_session_remove_tokens(r.session, 1, lost + 16, -1, &r.err) &&
           decode_on(&r, 1, lost + 16, 20, some) &&
           same_logits(whole + (size_t)(lost + 16) * V, some, 20, !unified);
    ok(good, "but not one later %s", good ? "" : r.err.message);
    good = !gguf_session_copy_tokens(r.session, 1, 2, 0, -1, &r.err) &&
           decode_on(&r, 2, lost + 36, 10, some) &&
           same_logits(whole + (size_t)(lost + 36) * V, some, 10, !unified);
    ok(good, "copies go on %s", good ? "" : r.err.message);
    ok(gguf_session_copy_tokens(r.session, 1, 3, 0, 200, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           gguf_session_n_tokens(r.session, 3) == 0,
       "not from the middle on: %s", r.err.message);
    run_close(&r);
    free(m.file);
}

/* Positions that do not increase are refused, and nothing changes. */
static void check_positions(void)
{
    const struct model m = make_model("gemma2");
    struct gguf_session_params p = make_params(400, 16, false);
    const gguf_token tok[4] = { 1, 2, 3, 4 };
    int32_t pos[4] = { 100, 101, 101, 102 };
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = 4, .token = tok, .pos = pos
    };
    struct run r;
    open_run(&r, &m, &p);
    ok(gguf_session_decode(r.session, &b, &r.err) == GGUF_E_UNSUPPORTED &&
           strstr(r.err.message, "101") &&
           gguf_session_n_tokens(r.session, 0) == 0,
       "a position twice: %s", r.err.message);
    run_close(&r);
    p.full_windows = true;
    open_run(&r, &m, &p);
    ok(gguf_session_decode(r.session, &b, &r.err) == GGUF_OK,
       "but where everything is kept");
    run_close(&r);
    free(m.file);
}

int main(void)
{
    static const char *const names[] = { "llama",     "gemma2", "llama4",
                                         "deepseek2", "bloom",  "minimax-m3" };
    static const char *const states[] = { "mamba", "rwkv7", "jamba", "t5" };
    for (int unified = 0; unified < 2; unified++) {
        for (size_t i = 0; i < GG_LEN(names); i++)
            check_copy(names[i], unified, true);
        for (size_t i = 0; i < GG_LEN(states); i++)
            check_copy(states[i], unified, false);
        check_holes(unified);
        check_window(16, unified);
        check_window(100, unified);
    }
    check_several("llama", false, 16);
    check_several("llama", true, 8);
    check_several("jamba", false, 16);
    check_several("jamba", true, 16);
    check_refused();
    check_turned("llama", KEYS, 32, false, 77, 1);
    check_turned("llama", KEYS, 32, false, 0, 3);
    check_turned("llama", KEYS, 32, false, 77, 3);
    check_turned("gpt-oss", KEYS, 32, true, 1000, 1); /* YaRN */
    /* positions on several axes (M-RoPE) */
    check_turned("qwen2vl", KEYS, 32, true, 1000, 1);
    /* latent keys, and keys of an indexer */
    check_turned("hy_v4", KEYS, 80, false, 1000, 1);
    check_turned("hy_v4", INDEX_KEYS, 64, false, 1000, 1);
    check_turned("dots3note", KEYS, 80, false, 77, 3);
    check_turned("dots3note", INDEX_KEYS, 16, true, 77, 3);
    check_moves_refused();
    check_split();
    for (int unified = 0; unified < 2; unified++) {
        check_estimate("llama", unified);
        check_estimate("jamba", unified);
        check_estimate("deepseek2", unified);
    }
    check_full();
    check_positions();
    return done_testing();
}
