/* SPDX-License-Identifier: MIT */
/* check-states.c - models with states: sequences side by side, and passes
 * without outputs */
#include "config.h"
#include "base/compiler.h"
#include "tests/family/skeleton.h"
#include "tests/model/run.h"
#include "tests/tap.h"

enum { V = SKELETON_VOCAB };

/* Logits of the last of LEN tokens of three sequences, alone and together, in
 * a batch of which only these are wanted, and in two. */
static void check_together(const char *name)
{
    enum { LEN = 6, SEQS = 3 };
    static float out[SEQS][V], alone[V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SEQS * LEN];
    int32_t seq[SEQS * LEN];
    uint8_t want[SEQS * LEN];
    static struct skeleton m;
    size_t size;
    struct run r;
    double worst = 0;
    if (!skeleton_open(&m, name))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    p.n_ctx = 2 * LEN;
    p.n_seq = SEQS;
    for (int i = 0; i < SEQS * LEN; i++) {
        tok[i] = (i * 29 + 7) % V;
        seq[i] = i / LEN;
        want[i] = i % LEN == LEN - 1;
    }
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = SEQS * LEN;
    b.token = tok;
    b.seq = seq;
    b.want = want;
    bool good = run_open(&r, file, size, 2, &p);
    for (int round = 0; good && round < 2; round++) {
        const float *rows;
        good =
            gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
            gguf_session_logits(r.session, 0, SEQS, &rows, &r.err) == GGUF_OK;
        if (good)
            memcpy(out, rows, sizeof out);
    }
    (void)gguf_session_clear(r.session, NULL);
    for (int q = 0; good && q < SEQS; q++) {
        const float *rows;
        struct gguf_batch one = GGUF_BATCH_INIT;
        one.n = LEN;
        one.token = tok + (ptrdiff_t)q * LEN;
        one.seq = seq + (ptrdiff_t)(SEQS - 1 - q) * LEN; /* another place */
        one.want = want;
        memset(want, 0, LEN); /* a pass without outputs moves states, too */
        good = gguf_session_decode(r.session, &one, &r.err) == GGUF_OK;
        want[LEN - 1] = 1;
        good = good &&
               gguf_session_decode(r.session, &one, &r.err) == GGUF_OK &&
               gguf_session_logits(r.session, 0, 1, &rows, &r.err) == GGUF_OK;
        if (!good)
            break;
        memcpy(alone, rows, sizeof alone);
        const double d = run_nmse(out[q], alone, V);
        worst = d > worst ? d : worst;
    }
    ok(good && worst < 1e-10, "%s: three sequences, one and together: %.2g %s",
       name, worst, good ? "" : r.err.message);
    run_close(&r);
    free(file);
    skeleton_close(&m);
}

int main(void)
{
    static const char *const names[] = {
        "mamba", "jamba",     "falcon-h1", "plamo2",     "rwkv6",
        "rwkv7", "arwkv7",    "mamba2",    "jamba-moe",  "rwkv6qwen2",
        "lfm2",  "qwen3next", "qwen35",    "kimi-linear"
    };
    for (size_t i = 0; i < GG_LEN(names); i++)
        check_together(names[i]);
    return done_testing();
}
