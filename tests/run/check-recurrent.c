/* SPDX-License-Identifier: MIT */
/* check-recurrent.c - sessions of recurrent models and of models without
 * memory: removing tokens, sequences side by side, passes without outputs,
 * damaged headers */
#include "config.h"
#include "base/compiler.h"
#include "gguf/verify.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

enum { V = SKELETON_VOCAB, E = 128, N = 24 };

static const struct gguf_session_params session_init =
    GGUF_SESSION_PARAMS_INIT;

static void make_tokens(gguf_token *tok, int n, int from)
{
    for (int i = 0; i < n; i++)
        tok[i] = ((i + from) * 37 + 11) % V;
}

/* ---- states ---- */

/* A recurrent state cannot remove its last tokens. It can remove all. */
static void check_forgetting(const void *file, size_t size)
{
    static float first[N * V], again[N * V];
    gguf_token tok[N];
    struct gguf_batch b = { .struct_size = sizeof b, .n = N, .token = tok };
    struct run r;
    struct gguf_session_params p = session_init;
    p.n_ctx = N;
    make_tokens(tok, N, 0);
    bool good = run_open(&r, file, size, 1, &p) && run_logits(&r, &b, first);
    ok(good &&
           gguf_session_remove_tokens(r.session, 0, 10, -1, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           gguf_session_n_tokens(r.session, 0) == N,
       "%s", r.err.message);
    ok(good &&
           gguf_session_remove_tokens(r.session, 0, 90, -1, &r.err) ==
               GGUF_OK &&
           gguf_session_n_tokens(r.session, 0) == N,
       "nothing is easily forgotten");
    good =
        good &&
        gguf_session_remove_tokens(r.session, 0, 0, -1, &r.err) == GGUF_OK &&
        run_logits(&r, &b, again);
    ok(good && memcmp(first, again, sizeof first) == 0, "and so is all of it");
    ignore_status(gguf_session_clear(r.session, NULL));
    good = good && run_logits(&r, &b, again);
    ok(good && memcmp(first, again, sizeof first) == 0, "cleared");
    run_close(&r);
}

/* ---- nothing kept ---- */

static void check_encoder(const void *file, size_t size)
{
    static float first[N * E], again[N * E], both[2 * N * E];
    static bool want[2 * N];
    gguf_token tok[2 * N];
    int32_t seq[2 * N];
    const float *rows;
    struct gguf_session_params p = session_init;
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = N, .token = tok, .want = want
    };
    struct gguf_batch two = { .struct_size = sizeof two,
                              .n = 2 * N,
                              .token = tok,
                              .seq = seq,
                              .want = want };
    struct run r;
    uint64_t cache, graph;
    p.n_ctx = 2 * N;
    p.n_seq = 2;
    p.n_ubatch = N;
    memset(want, 1, sizeof want);
    make_tokens(tok, N, 0);
    make_tokens(tok + N, N, 0);
    for (int i = 0; i < 2 * N; i++)
        seq[i] = i >= N;
    bool good = run_open(&r, file, size, 1, &p) && run_states(&r, &b, first) &&
                run_states(&r, &b, again);
    ok(good && memcmp(first, again, sizeof first) == 0,
       "a batch does not see the one before it: %s",
       good ? "" : r.err.message);
    gguf_session_memory_size(r.session, &cache, &graph);
    ok(good && cache == 0, "and nothing is kept");
    good = good && run_states(&r, &two, both);
    ok(good && memcmp(both, both + N * E, sizeof first) == 0 &&
           run_nmse(both, first, N * E) < 1e-11,
       "nor does a sequence see another");
    for (int i = 0; i < 2 * N; i++)
        seq[i] = 0;
    ok(good && gguf_session_decode(r.session, &two, &r.err) == GGUF_E_FULL,
       "%s", r.err.message);
    ok(good && run_states(&r, &b, again) &&
           gguf_session_logits(r.session, 0, 1, &rows, &r.err) ==
               GGUF_E_UNSUPPORTED,
       "%s", r.err.message);
    ok(good && gguf_session_states(r.session, N, 1, &rows, &r.err) ==
                   GGUF_E_INVALID,
       "%s", r.err.message);
    /* attention is bidirectional: the last token changes the first output */
    tok[N - 1] = (tok[N - 1] + 1) % V;
    good = good && run_states(&r, &b, again);
    ok(good && memcmp(first, again, E * sizeof *first) != 0,
       "the first token sees the last");
    /* batches of a few tokens are padded with repetitions */
    for (size_t n = 1; good && n < 6; n++) {
        struct gguf_batch few = {
            .struct_size = sizeof few, .n = n, .token = tok, .want = want
        };
        good = run_states(&r, &few, again);
    }
    ok(good, "few tokens: %s", good ? "" : r.err.message);
    run_close(&r);
}

/* ---- headers with a few bytes changed: refused, or they compute ---- */

static bool can_compute(const void *data, size_t size, struct gguf_error *err)
{
    static const gguf_token tok[] = { 1, 0, 31, 7, 5 };
    struct gguf_session_params p = session_init;
    struct gguf_batch b = { .struct_size = sizeof b, .n = 5, .token = tok };
    struct run r;
    p.n_ctx = 8;
    bool good = run_open(&r, data, size, 1, &p) &&
                gguf_session_decode(r.session, &b, &r.err) == GGUF_OK;
    *err = r.err;
    run_close(&r);
    return good;
}

/* Count the errors that verification finds. */
static bool count_error(void *user, const struct gguf_finding *f)
{
    *(unsigned *)user += f->severity == GGUF_SEVERITY_ERROR;
    return 0;
}

/* Do opening a model and verifying it agree? A well-formed file that cannot be
 * evaluated (unknown type, no architecture, no tokenizer) has no error. */
static bool verification_agrees(const void *data, size_t size)
{
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_error err;
    unsigned n = 0;
    if (gguf_file_open_memory(&file, data, size, NULL, NULL) != GGUF_OK)
        return true;
    enum gguf_status st = gguf_model_create(&model, file, NULL, &err);
    if (gguf_file_verify(file, NULL,
                         (struct gguf_finding_callback){ count_error, &n },
                         NULL) != GGUF_OK)
        abort();
    const bool open = st == GGUF_OK;
    const bool other = st == GGUF_E_UNSUPPORTED || st == GGUF_E_ARCH ||
                       strstr(err.message, "is of type") ||
                       strstr(err.message, "no key '") ||
                       strstr(err.message, "is not supported");
    if (open)
        gguf_model_destroy(model);
    gguf_file_close(file);
    if (!other && open != (n == 0))
        printf("# %u errors, %s\n", n, open ? "opens" : err.message);
    return other || open == (n == 0);
}

static void check_mutations(const char *what, uint8_t *data, size_t size,
                            int times)
{
    struct gguf_file *file;
    struct gguf_error err;
    int n_good = 0, n_mute = 0, n_apart = 0;
    if (gguf_file_open_memory(&file, data, size, NULL, NULL) != GGUF_OK)
        abort();
    const size_t head = (size_t)gguf_file_data_off(file);
    gguf_file_close(file);
    ok(can_compute(data, size, &err), "%s: as it is it computes: %s", what,
       err.message);
    for (int i = 0; i < times; i++) {
        size_t at[2], n = 1 + (size_t)rnd_below(2);
        uint8_t old[2];
        for (size_t k = 0; k < n; k++) {
            at[k] = (size_t)rnd_below(head);
            old[k] = data[at[k]];
            data[at[k]] = rnd_below(2) ? (uint8_t)rnd64()
                                       : (uint8_t)(1u << rnd_below(8));
        }
        if (can_compute(data, size, &err))
            n_good++;
        else
            n_mute += !err.message[0];
        n_apart += !verification_agrees(data, size);
        for (size_t k = n; k-- > 0;)
            data[at[k]] = old[k];
    }
    ok(!n_mute && n_good > 0 && n_good < times,
       "%s: %d headers with bytes changed: %d compute, all others say why",
       what, times, n_good);
    ok(!n_apart, "%s: opened or not, as verified", what);
}

/* Logits of the last of LEN tokens of three sequences: each alone, all in one
 * batch that outputs only these, and in two batches. */
static void check_together(const char *name)
{
    enum { LEN = 6, SEQS = 3 };
    static float out[SEQS][V], alone[V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SEQS * LEN];
    int32_t seq[SEQS * LEN];
    bool want[SEQS * LEN];
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
    ignore_status(gguf_session_clear(r.session, NULL));
    for (int q = 0; good && q < SEQS; q++) {
        const float *rows;
        struct gguf_batch one = GGUF_BATCH_INIT;
        one.n = LEN;
        one.token = tok + (ptrdiff_t)q * LEN;
        /* the sequence has another number here */
        one.seq = seq + (ptrdiff_t)(SEQS - 1 - q) * LEN;
        one.want = want;
        memset(want, 0, LEN); /* a pass without outputs must advance the state,
                               * too */
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

static void *file_of(const char *name, size_t *size)
{
    static struct skeleton m;
    if (!skeleton_open(&m, name))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, size);
    skeleton_close(&m);
    return file;
}

int main(void)
{
    static const char *const names[] = {
        "granitehybrid", "mamba",   "jamba",      "falcon-h1", "plamo2",
        "rwkv6",         "rwkv7",   "arwkv7",     "mamba2",    "jamba-moe",
        "rwkv6qwen2",    "lfm2",    "qwen3next",  "qwen35",    "kimi-linear",
        "qwen4exp",      "kimi-k3", "bailingmoe3"
    };
    static const char *const damaged[] = { "granitehybrid", "bert", "lfm2",
                                           "qwen3next", "kimi-linear" };
    size_t size;
    void *file = file_of("granitehybrid", &size);
    check_forgetting(file, size);
    free(file);
    file = file_of("bert", &size);
    check_encoder(file, size);
    free(file);
    for (size_t i = 0; i < GG_LEN(names); i++)
        check_together(names[i]);
    for (size_t i = 0; i < GG_LEN(damaged); i++) {
        file = file_of(damaged[i], &size);
        check_mutations(damaged[i], file, size, 3000);
        free(file);
    }
    return done_testing();
}
