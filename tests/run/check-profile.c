/* SPDX-License-Identifier: MIT */
/* check-profile.c - profile records have the times that gguf/profile.h defines
 */
#include "config.h"
#include "gguf/model.h"
#include "tests/graph/fake_backend.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <time.h>

enum { N_TOK = 40, N_VOCAB = 96, MOST = 4096 };

static void *data;
static size_t size;
static float want[N_TOK * N_VOCAB], got[N_TOK * N_VOCAB];

static uint64_t time_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void make_model(void)
{
    static const struct gen_spec spec = { GEN_WIDE(3), .n_vocab = N_VOCAB };
    data = gen_model_file(&spec, 7, GGUF_DTYPE_F16, &size);
}

/* ---- records ---- */

struct seen {
    const struct gguf_tensor
        *expected[MOST]; /* nodes that do work, in order */
    size_t n_expected, n_graphs;
    size_t n, n_other;        /* records; records of an unexpected node */
    uint64_t begin, end, sum; /* first begin, last end and sum of times of all
                               * records, in nanoseconds */
    size_t n_backward;        /* records that end before they begin, or that
                               * begin before the previous one ended */
    size_t n_gaps;            /* records of the CPU that begin after the
                               * previous end */
    size_t n_fused, n_shared, n_wrong; /* n_wrong: records with wrong flops or
                                        * bytes */
    const struct gguf_backend *other;  /* the second backend */
    size_t n_on_other;
};

static bool is_view(const struct gguf_tensor *t)
{
    return t->op == GGUF_OP_NONE || t->op == GGUF_OP_RESHAPE ||
           t->op == GGUF_OP_VIEW || t->op == GGUF_OP_PERMUTE ||
           t->op == GGUF_OP_TRANSPOSE;
}

static bool on_graph(void *user, struct gguf_graph *g,
                     struct gguf_sched *sched)
{
    struct seen *s = user;
    (void)sched;
    s->n_graphs++;
    for (size_t i = 0; i < gguf_graph_n_nodes(g) && s->n_expected < MOST; i++)
        if (!is_view(gguf_graph_node(g, i)))
            s->expected[s->n_expected++] = gguf_graph_node(g, i);
    return false;
}

/* Are the flops 2 k m n, and the bytes those of both matrices and the result?
 */
static bool is_product(const struct gguf_profile_node *n)
{
    const struct gguf_tensor *t = n->node, *a = t->src[0], *b = t->src[1];
    return n->flops == 2 * (uint64_t)(a->ne[0] * t->ne[0] * t->ne[1] *
                                      t->ne[2] * t->ne[3]) &&
           n->bytes ==
               gguf_tensor_size(a) + gguf_tensor_size(b) + gguf_tensor_size(t);
}

static bool is_right(const struct gguf_profile_node *n)
{
    const struct gguf_tensor *t = n->node;
    const uint64_t row = 4 * (uint64_t)t->ne[0];
    switch (t->op) {
    case GGUF_OP_MATMUL: return is_product(n);
    case GGUF_OP_ADD:
        return !n->flops && n->bytes == gguf_tensor_size(t) +
                                            gguf_tensor_size(t->src[0]) +
                                            gguf_tensor_size(t->src[1]);
    case GGUF_OP_GET_ROWS: /* rows of F16 or F32, ids, and the result */
        return !n->flops &&
               n->bytes ==
                   (uint64_t)gguf_tensor_n_rows(t) *
                           (t->src[0]->dtype == GGUF_DTYPE_F16 ? row / 2
                                                               : row) +
                       gguf_tensor_size(t->src[1]) + gguf_tensor_size(t);
    case GGUF_OP_SET_ROWS: /* rows, ids, and the encoded rows in the cache */
        return !n->flops && n->bytes == 2 * gguf_tensor_size(t->src[1]) +
                                            gguf_tensor_size(t->src[2]);
    default: return n->bytes > 0;
    }
}

static void see_node(void *user, const struct gguf_profile_node *n)
{
    struct seen *s = user;
    const bool on_other = n->backend == s->other;
    if (s->n >= s->n_expected ||
        strcmp(n->node->name, s->expected[s->n]->name) ||
        n->node->op != s->expected[s->n]->op ||
        memcmp(n->node->ne, s->expected[s->n]->ne, sizeof n->node->ne))
        s->n_other++;
    s->n_backward += n->end < n->begin || (s->n && n->begin < s->end);
    s->n_gaps += s->n && n->begin > s->end && !on_other;
    if (!s->n)
        s->begin = n->begin;
    s->end = n->end;
    s->sum += n->end - n->begin;
    s->n_fused += n->n_fused > 1;
    s->n_shared += n->n_threads > 1;
    s->n_on_other += on_other;
    s->n_wrong += !is_right(n);
    s->n++;
}

/* ---- runs ---- */

static bool decode_text(struct run *r, float *out)
{
    gguf_token tok[N_TOK];
    for (int i = 0; i < N_TOK; i++)
        tok[i] = (i * 37 + 11) % N_VOCAB;
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = N_TOK;
    b.token = tok;
    return run_logits(r, &b, out);
}

static void check_cpu(unsigned n_threads, bool no_fuse)
{
    static struct seen s;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    s = (struct seen){ .n = 0 };
    p.n_ctx = 64;
    p.n_ubatch = 24;
    p.on_graph.fn = on_graph;
    p.on_graph.user = &s;
    cp.no_fuse = no_fuse;
    cp.n_threads = n_threads;
    bool good;
    if (no_fuse)
        good = run_open_cpu(&r, data, size, NULL, &cp, &p);
    else
        good = run_open(&r, data, size, n_threads, &p);
    if (!good || gguf_session_set_profile(
                     r.session, (struct gguf_profile_callback){ see_node, &s },
                     &r.err) != GGUF_OK) {
        ok(0, "%s", r.err.message);
        return;
    }
    const uint64_t begin = time_now();
    good = decode_text(&r, got);
    const uint64_t end = time_now();
    ok(good && !memcmp(got, want, sizeof want),
       "%u thread%s: the bits are those without a profile", n_threads,
       n_threads == 1 ? "" : "s");
    ok(s.n == s.n_expected && s.n > 60 && !s.n_other && s.n_graphs >= 3,
       "%zu records of %zu nodes in %zu graphs, in order", s.n, s.n_expected,
       s.n_graphs);
    ok(!s.n_backward && s.n_gaps < s.n_graphs && s.begin >= begin &&
           s.end <= end && s.sum > 0 && s.sum <= end - begin,
       "nodes of a graph follow each other: %zu gaps, %llu of %llu ns",
       s.n_gaps, (unsigned long long)s.sum, (unsigned long long)(end - begin));
    ok(!s.n_wrong, "%zu with other operations or bytes", s.n_wrong);
    ok(no_fuse ? !s.n_fused : s.n_fused > 0, "%zu are fused", s.n_fused);
    ok(n_threads > 1 ? s.n_shared > 0 && s.n_shared < s.n : !s.n_shared,
       "%zu are shared by threads", s.n_shared);
    const size_t n = s.n;
    ok(gguf_session_set_profile(r.session,
                                (struct gguf_profile_callback){ NULL, NULL },
                                &r.err) == GGUF_OK &&
           gguf_session_clear(r.session, &r.err) == GGUF_OK &&
           decode_text(&r, got) && s.n == n,
       "none after it is taken away");
    run_close(&r);
}

/* A backend without a clock of its own computes beside the CPU, which has one.
 */
static void check_fake_backend(bool async)
{
    static struct seen s;
    static struct fake_backend a;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_error err;
    struct run r;
    s = (struct seen){ .n = 0 };
    if (fake_backend_init(&a, "A", async, NULL, &err) != GGUF_OK) {
        ok(0, "%s", err.message);
        return;
    }
    a.offloads = true;
    a.refuses[GGUF_OP_SILU] = a.refuses[GGUF_OP_RMS_NORM] = true;
    struct gguf_backend *const all[] = { &a.backend };
    s.other = all[0];
    p.n_ctx = 64;
    p.n_ubatch = 24;
    p.preferred = all;
    p.n_preferred = 1;
    p.on_graph.fn = on_graph;
    p.on_graph.user = &s;
    if (!run_open(&r, data, size, 2, &p) ||
        gguf_session_set_profile(
            r.session, (struct gguf_profile_callback){ see_node, &s },
            &r.err) != GGUF_OK) {
        ok(0, "%s", r.err.message);
        return;
    }
    ok(decode_text(&r, got) && !memcmp(got, want, sizeof want),
       "two backends: the bits are those without a profile");
    ok(s.n == s.n_expected && !s.n_other && s.n_on_other > 20 &&
           s.n - s.n_on_other >= 6 && !s.n_backward && !s.n_wrong,
       "%zu records, %zu of the other backend%s", s.n, s.n_on_other,
       async ? ", which is asynchronous" : "");
    run_close(&r);
    gguf_backend_destroy(&a.backend);
}

int main(void)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    make_model();
    p.n_ctx = 64;
    p.n_ubatch = 24;
    if (!run_open(&r, data, size, 1, &p) || !decode_text(&r, want)) {
        printf("Bail out! %s\n", r.err.message);
        return 1;
    }
    run_close(&r);
    check_cpu(1, false);
    check_cpu(2, true);
    check_cpu(3, false);
    check_fake_backend(false);
    check_fake_backend(true);
    free(data);
    return done_testing();
}
