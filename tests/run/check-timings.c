/* SPDX-License-Identifier: MIT */
/* check-timings.c - times and counts of a session's stages, and warming up */
#include "config.h"
#include "tests/failalloc.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

enum { V = SKELETON_VOCAB, N = SKELETON_TOKENS };

static struct skeleton m;

static void *open_arch(struct run *r, const char *name,
                       const struct gguf_session_params *p, gguf_token tok[N])
{
    size_t size;
    if (!skeleton_open(&m, name))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    skeleton_tokens_of(&m, tok);
    if (!run_open(r, file, size, 1, p)) {
        printf("Bail out! %s: %s\n", name, r->err.message);
        exit(1);
    }
    return file;
}

static void close_arch(struct run *r, void *file)
{
    run_close(r);
    free(file);
    skeleton_close(&m);
}

static bool decode_tokens(struct run *r, const gguf_token *tok, size_t n)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = n;
    b.token = tok;
    return gguf_session_decode(r->session, &b, &r->err) == GGUF_OK;
}

static bool stage_is(const struct gguf_session_stage *s, uint64_t n,
                     uint64_t n_calls)
{
    return s->n == n && s->n_calls == n_calls &&
           (n_calls ? s->seconds > 0 && s->seconds < 1000 : s->seconds == 0);
}

static void check_decoder(void)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[N];
    const float *rows;
    struct run r;
    p.n_ctx = N;
    p.n_ubatch = 8;
    void *file = open_arch(&r, "llama", &p, tok);
    const struct gguf_session_timings *t = gguf_session_timings(r.session);
    const double create = t->create;
    ok(create > 0 && stage_is(&t->plan, 0, 0) && stage_is(&t->prompt, 0, 0) &&
           stage_is(&t->single, 0, 0) && stage_is(&t->logits, 0, 0) &&
           stage_is(&t->encode, 0, 0) && stage_is(&t->warm_up, 0, 0),
       "a new session took time, and nothing else");
    bool good = decode_tokens(&r, tok, 20);
    ok(good && stage_is(&t->prompt, 20, 3) && t->plan.n == t->plan.n_calls &&
           t->plan.n >= 2 && stage_is(&t->single, 0, 0),
       "20 tokens in 3 micro-batches, %u graphs", (unsigned)t->plan.n);
    for (int i = 20; good && i < 25; i++)
        good = decode_tokens(&r, tok + i, 1) &&
               !gguf_session_logits(r.session, 0, 1, &rows, &r.err);
    ok(good && stage_is(&t->prompt, 20, 3) && stage_is(&t->single, 5, 5) &&
           stage_is(&t->logits, 5, 5),
       "5 tokens one by one, and their logits");
    const struct gguf_session_timings before = *t;
    const gguf_token wrong = V;
    ok(!decode_tokens(&r, &wrong, 1) && !decode_tokens(&r, tok, N) &&
           gguf_session_logits(r.session, 1, 1, &rows, &r.err) &&
           !memcmp(&before, t, sizeof before),
       "what fails does not count");
    gguf_session_reset_timings(r.session);
    ok(t->create == create && stage_is(&t->prompt, 0, 0) &&
           stage_is(&t->single, 0, 0) && stage_is(&t->logits, 0, 0) &&
           stage_is(&t->plan, 0, 0),
       "counted from the begin");
    ok(decode_tokens(&r, tok + 25, 1) && stage_is(&t->single, 1, 1) &&
           stage_is(&t->plan, 0, 0),
       "a graph that was there is not built");
    close_arch(&r, file);
}

static void check_encoders(void)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[N];
    struct run r;
    p.n_ctx = N;
    void *file = open_arch(&r, "bert", &p, tok);
    const struct gguf_session_timings *t = gguf_session_timings(r.session);
    ok(decode_tokens(&r, tok, 10) && stage_is(&t->encode, 10, 1) &&
           stage_is(&t->prompt, 0, 0),
       "an encoder's tokens are encoded");
    close_arch(&r, file);
    file = open_arch(&r, "t5", &p, tok);
    t = gguf_session_timings(r.session);
    ok(run_encode(&r, tok, 12) && decode_tokens(&r, tok, 1) &&
           decode_tokens(&r, tok, 4) && stage_is(&t->encode, 12, 1) &&
           stage_is(&t->single, 1, 1) && stage_is(&t->prompt, 4, 1),
       "encoding for a decoder, and decoding");
    close_arch(&r, file);
}

/* Warming up changes no digit, allocates nothing and removes no token. */
static void check_warm_up(const char *name)
{
    static float want[N * V], got[N * V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[N];
    struct failalloc f;
    p.n_ctx = N;
    p.allocator = failalloc_init(&f, UINT_MAX);
    for (int warm = 0; warm < 2; warm++) {
        struct run r;
        void *file = open_arch(&r, name, &p, tok);
        bool good = true;
        const unsigned calls = f.calls;
        for (int i = 0; i < N && good; i += i < 8 ? 8 : 1) {
            const struct gguf_batch b = { .struct_size = sizeof b,
                                          .n = i < 8 ? 8 : 1,
                                          .token = tok + i };
            if (warm && i % 8 == 0)
                good = !gguf_session_warm_up(r.session, &r.err);
            good = good && run_logits(&r, &b, (warm ? got : want) + i * V);
        }
        const struct gguf_session_timings *t = gguf_session_timings(r.session);
        const uint64_t size = gguf_model_info(r.model)->weight_size;
        if (warm)
            ok(good && !memcmp(want, got, sizeof want) && f.calls == calls &&
                   stage_is(&t->warm_up, 8 * size, 8) &&
                   gguf_session_n_tokens(r.session, 0) == N,
               "%s: warmed up 8 times, the same digits, %u allocations", name,
               f.calls - calls);
        /* the logits of the last decode stay readable */
        const float *row = NULL;
        ok(good && !gguf_session_warm_up(r.session, &r.err) &&
               !gguf_session_logits(r.session, 0, 1, &row, &r.err) &&
               !memcmp(row, want + (N - 1) * V, V * sizeof *row),
           "%s: the last decode's logits are still there", name);
        close_arch(&r, file);
    }
}

int main(void)
{
    check_decoder();
    check_encoders();
    check_warm_up("llama");
    check_warm_up("falcon-h1");
    check_warm_up("deepseek32-t");
    return done_testing();
}
