/* SPDX-License-Identifier: MIT */
/* check-memory.c - memory of sessions is near the lower bound and equals the
 * estimate */
#include "config.h"
#include "run/session_int.h"
#include "tests/alloc/lifetimes.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <string.h>

enum { N_VOCAB = 500, N_CTX = 256, N_TOK = 96, MAX_SPANS = 4096 };

#define SHAPE                                                                 \
    .n_vocab = N_VOCAB, .n_ctx = N_CTX, .n_embd = 128, .n_layer = 6,          \
    .n_ff = 344, .eps = 1e-5f, .freq_base = 10000

static const struct {
    const char *what;
    struct gen_spec spec;
} models[] = {
    { "llama", { .arch = "llama", SHAPE, .n_head = 8, .n_head_kv = 2 } },
    { "llama, tied, each head its own keys",
      { .arch = "llama", SHAPE, .n_head = 8, .n_head_kv = 8, .tied = 1 } },
    { "llama, wide heads",
      { .arch = "llama",
        SHAPE,
        .n_head = 4,
        .n_head_kv = 4,
        .head_dim = 64 } },
    { "qwen2",
      { .arch = "qwen2", SHAPE, .n_head = 8, .n_head_kv = 2, .qkv_bias = 1 } },
};

/* Bytes from the lowest address of the tensors to their highest end. */
static uint64_t extent_of(const struct span *s, int n)
{
    const char *lo = NULL, *hi = NULL;
    for (int i = 0; i < n; i++) {
        const char *p = s[i].t->data;
        lo = !lo || p < lo ? p : lo;
        hi = !hi || p + s[i].size > hi ? p + s[i].size : hi;
    }
    return (uint64_t)(hi - lo);
}

/* Compute the largest pass: the last n_tok tokens that fit. */
static void check_session(const char *what, struct run *r, size_t n_tok)
{
    static struct span s[MAX_SPANS];
    static gguf_token tok[N_CTX];
    struct gguf_error err;
    const float *logits;
    uint64_t cache[2] = { 0, 0 }, graph[2] = { 0, 0 };
    struct gguf_batch first = { .struct_size = sizeof first,
                                .n = N_CTX - n_tok,
                                .token = tok };
    struct gguf_batch b = { .struct_size = sizeof b,
                            .n = n_tok,
                            .token = tok };
    for (size_t i = 0; i < N_CTX; i++)
        tok[i] = (gguf_token)(i * 7 % N_VOCAB);
    ignore_status(gguf_session_clear(r->session, NULL));
    if (gguf_session_decode(r->session, &first, &err) ||
        gguf_session_decode(r->session, &b, &err) ||
        gguf_session_logits(r->session, 0, 1, &logits, &err)) {
        ok(0, "%s: %s", what, err.message);
        return;
    }
    struct gguf_graph *g = r->session->pass.graph;
    int n = spans_of(g, r->session->pass.tokens->buffer, s);
    double ratio = (double)extent_of(s, n) / (double)spans_bound(s, n, g);
    /* a shorter pass uses the places of the largest one */
    ok(n > 20 && !spans_overlap(s, n) && ratio >= 1 &&
           (n_tok < N_TOK || ratio <= 1.05),
       "%s, %zu tokens: memory is %.3f times the least there can be", what,
       n_tok, ratio);
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.backend = r->session->backend;
    p.n_ctx = gguf_session_n_ctx(r->session);
    p.n_ubatch = gguf_session_n_ubatch(r->session);
    gguf_session_memory_size(r->session, &cache[0], &graph[0]);
    ok(extent_of(s, n) <= graph[0],
       "%s, %zu tokens: within the reserved memory", what, n_tok);
    ok(gguf_session_estimate_memory(gguf_session_model(r->session), &p,
                                    &cache[1], &graph[1], &err) == GGUF_OK &&
           cache[0] == cache[1] && graph[0] == graph[1],
       "%s: %" PRIu64 " bytes of cache and %" PRIu64 " of graphs are foretold",
       what, cache[1], graph[1]);
}

int main(void)
{
    for (size_t i = 0; i < GG_LEN(models); i++) {
        struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
        struct gen g;
        struct run r;
        size_t size;
        gen_init(&g, 1);
        gen_model(&g, &models[i].spec);
        void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
        p.n_ctx = models[i].spec.n_ctx;
        p.n_ubatch = N_TOK;
        if (run_open(&r, file, size, 2, &p)) {
            check_session(models[i].what, &r, N_TOK);
            check_session(models[i].what, &r, 1);
        } else {
            ok(0, "%s: %s", models[i].what, r.err.message);
        }
        run_close(&r);
        free(file);
        gen_fini(&g);
    }
    return done_testing();
}
