/* SPDX-License-Identifier: MIT */
/* check-model.c - logits of small models agree with a forward pass in double
 * precision
 *
 * Also memory, misuse, and files in either byte order.
 * tests/family/check-archs compares with llama.cpp and tries threads and
 * pieces; tests/run tests sequences.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/failalloc.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <unistd.h>

enum { N_TOK = 48 };

static const struct gguf_session_params session_init =
    GGUF_SESSION_PARAMS_INIT;

/* ---- against the reference ---- */

#define TINY                                                                  \
    .n_vocab = 96, .n_ctx = 64, .n_embd = 64, .n_layer = 2, .n_ff = 80,       \
    .eps = 1e-5f, .freq_base = 10000
#define HEADS .n_head = 4, .n_head_kv = 2

static const uint32_t kv_layers[] = { 4, 1 }, ff_layers[] = { 96, 32 };

static const struct {
    const char *what;
    struct gen_spec spec;
} tiny[] = {
    { "llama", { .arch = "llama", TINY, HEADS } },
    { "llama, tied, each head its own keys",
      { .arch = "llama", TINY, .n_head = 4, .n_head_kv = 4, .tied = 1 } },
    { "llama, head size of its own, part of it rotated",
      { .arch = "llama", TINY, HEADS, .head_dim = 24, .n_rot = 16 } },
    { "llama, biases everywhere",
      { .arch = "llama",
        TINY,
        HEADS,
        .qkv_bias = 1,
        .out_bias = 1,
        .ffn_bias = 1 } },
    { "llama, numbers per layer",
      { .arch = "llama",
        TINY,
        HEADS,
        .head_kv_layer = kv_layers,
        .ff_layer = ff_layers } },
    { "llama, frequency factors",
      { .arch = "llama", TINY, HEADS, .rope_freqs = 1 } },
    { "llama, linear scaling",
      { .arch = "llama", TINY, HEADS, .scaling = "linear", .factor = 4 } },
    { "llama, YaRN",
      { .arch = "llama",
        TINY,
        .n_head = 1,
        .n_head_kv = 1,
        .scaling = "yarn",
        .factor = 4,
        .n_ctx_orig = 256 } },
    { "qwen2", { .arch = "qwen2", TINY, HEADS, .qkv_bias = 1, .tied = 1 } },
    { "qwen2, part of a head rotated",
      { .arch = "qwen2", TINY, HEADS, .qkv_bias = 1, .n_rot = 8 } },
    { "qwen2, norms of queries and keys",
      { .arch = "qwen2", TINY, HEADS, .qk_norm = 1 } },
};

static void make_tokens(gguf_token *t, int n, uint32_t n_vocab)
{
    for (int i = 0; i < n; i++)
        t[i] = (gguf_token)(((uint32_t)i * 37 + 11) % n_vocab);
}

static void check_tiny(const char *what, const struct gen_spec *spec)
{
    static struct gen g;
    static double want[N_TOK * 128];
    static float got[N_TOK * 128];
    gguf_token tok[N_TOK];
    struct run r;
    size_t size;
    gen_init(&g, 1);
    gen_model(&g, spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    make_tokens(tok, N_TOK, spec->n_vocab);
    ref_logits(&g, spec, tok, N_TOK, want);
    struct gguf_batch b = { .struct_size = sizeof b,
                            .n = N_TOK,
                            .token = tok };
    bool good =
        run_open(&r, file, size, 1, &session_init) && run_logits(&r, &b, got);
    double d = 0, s = 0;
    for (size_t i = 0; i < N_TOK * spec->n_vocab; i++) {
        d += (want[i] - (double)got[i]) * (want[i] - (double)got[i]);
        s += want[i] * want[i];
    }
    ok(good && d / s < 1e-11, "%s: %s%.2g from the reference", what,
       good ? "" : r.err.message, d / s);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

/* ---- against itself ---- */

static const struct gen_spec self = { .arch = "llama", TINY, HEADS };

/* Remove tokens and continue; rows without output are not computed. */
static void check_memory(const void *file, size_t size)
{
    enum { V = 96, N = 24 };
    static float first[N * V], again[N * V], some[V];
    gguf_token tok[N];
    bool want[N] = { 0 };
    struct run r;
    struct gguf_session_params p = session_init;
    p.n_ctx = N;
    make_tokens(tok, N, V);
    struct gguf_batch b = { .struct_size = sizeof b, .n = N, .token = tok };
    bool good = run_open(&r, file, size, 1, &p) && run_logits(&r, &b, first);
    ok(good && gguf_session_n_tokens(r.session, 0) == N, "a full sequence");
    ok(good && gguf_session_decode(r.session, &b, &r.err) == GGUF_E_FULL,
       "no more fits: %s", r.err.message);
    ignore_status(gguf_session_remove_tokens(r.session, 0, 10, -1, NULL));
    ok(gguf_session_n_tokens(r.session, 0) == 10, "the end is forgotten");
    struct gguf_batch tail = { .struct_size = sizeof tail,
                               .n = N - 10,
                               .token = tok + 10 };
    good = good && run_logits(&r, &tail, again);
    ok(good && run_nmse(again, first + 10 * V, (N - 10) * V) < 1e-11,
       "and computed again");
    ignore_status(gguf_session_clear(r.session, NULL));
    want[17] = 1;
    b.want = want;
    good = good && run_logits(&r, &b, some);
    ok(good && gguf_session_n_outputs(r.session) == 1 &&
           run_nmse(some, first + 17 * V, V) < 1e-11,
       "one row of many");
    memset(want, 0, sizeof want);
    ignore_status(gguf_session_clear(r.session, NULL));
    good = good && run_logits(&r, &b, some) &&
           gguf_session_n_outputs(r.session) == 0;
    ignore_status(gguf_session_remove_tokens(r.session, 0, N - 1, -1, NULL));
    struct gguf_batch last = { .struct_size = sizeof last,
                               .n = 1,
                               .token = tok + N - 1 };
    good = good && run_logits(&r, &last, some);
    ok(good && run_nmse(some, first + (N - 1) * V, V) < 1e-11,
       "a pass without outputs fills the memory");
    run_close(&r);
}

static void check_misuse(const void *file, size_t size)
{
    struct run r;
    gguf_token bad = 96, neg = -1, good_tok = 3;
    int32_t seq = 1, pos = -1;
    struct gguf_error err;
    bool good = run_open(&r, file, size, 1, &session_init);
    struct gguf_batch b = { .struct_size = sizeof b, .n = 1, .token = &bad };
    ok(good && gguf_session_decode(r.session, &b, &err) == GGUF_E_INVALID,
       "a token that does not exist: %s", err.message);
    b.token = &neg;
    ok(gguf_session_decode(r.session, &b, &err) == GGUF_E_INVALID,
       "a negative token");
    b.token = &good_tok;
    b.seq = &seq;
    ok(gguf_session_decode(r.session, &b, &err) == GGUF_E_INVALID,
       "a sequence that does not exist: %s", err.message);
    b.seq = NULL;
    b.pos = &pos;
    ok(gguf_session_decode(r.session, &b, &err) == GGUF_E_INVALID,
       "a negative position: %s", err.message);
    const float *logits;
    ok(gguf_session_logits(r.session, 0, 1, &logits, &err) == GGUF_E_INVALID,
       "logits without a batch: %s", err.message);
    run_close(&r);
}

/* Weights that are not aligned in memory are copied. */
static void check_askew(const void *file, size_t size)
{
    static float a[N_TOK * 96], b[N_TOK * 96];
    gguf_token tok[N_TOK];
    struct gguf_batch batch = { .struct_size = sizeof batch,
                                .n = N_TOK,
                                .token = tok };
    char *copy = malloc(size + 1);
    struct run r;
    memcpy(copy + 1, file, size);
    make_tokens(tok, N_TOK, self.n_vocab);
    bool good = run_open(&r, file, size, 1, &session_init) &&
                run_logits(&r, &batch, a);
    run_close(&r);
    good = good && run_open(&r, copy + 1, size, 1, &session_init) &&
           run_logits(&r, &batch, b);
    ok(good && memcmp(a, b, sizeof a) == 0, "a file at an odd address");
    run_close(&r);
    free(copy);
}

/* Convert the file at path to big-endian. */
static enum gguf_status turn_bytes(const char *path, struct gguf_error *err)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_file *f;
    struct gguf_meta *m = NULL;
    enum gguf_status st = gguf_file_open(&f, path, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&m, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(m, f, err);
    p.byte_order = GGUF_EDIT_BIG_ENDIAN;
    p.no_sync = 1;
    if (st == GGUF_OK)
        st = gguf_edit_apply(f, m, &p, NULL, err);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    return st;
}

/* Weights are equal in either byte order. */
static void check_turned(const void *file, size_t size, const char *type)
{
    static float a[N_TOK * 96], b[N_TOK * 96];
    char path[] = "check-model-XXXXXX";
    gguf_token tok[N_TOK];
    struct gguf_batch batch = { .struct_size = sizeof batch,
                                .n = N_TOK,
                                .token = tok };
    struct run r = { .file = NULL };
    struct gguf_error err = { .message = "" };
    int fd = mkstemp(path);
    make_tokens(tok, N_TOK, self.n_vocab);
    bool good = fd >= 0 && spill(path, file, size) &&
                turn_bytes(path, &err) == GGUF_OK &&
                run_open(&r, file, size, 1, &session_init) &&
                run_logits(&r, &batch, a);
    if (good) {
        run_close(&r);
        good = run_open_path(&r, path, 1, &session_init) &&
               gguf_file_is_big_endian(r.file) && run_scan(&r) &&
               run_logits(&r, &batch, b);
        err = r.err;
    }
    ok(good && memcmp(a, b, sizeof a) == 0, "%s, big-endian: the same bits %s",
       type, good ? "" : err.message);
    run_close(&r);
    close(fd);
    unlink(path);
}

/* ---- no memory ---- */

static enum gguf_status try_all(const struct gguf_model *m,
                                const struct gguf_allocator *a)
{
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params p = session_init;
    struct gguf_backend *backend = NULL;
    struct gguf_session *s = NULL;
    gguf_token tok[20];
    const float *logits;
    struct gguf_batch b = { .struct_size = sizeof b, .n = 20, .token = tok };
    make_tokens(tok, 20, self.n_vocab);
    cp.allocator = p.allocator = a;
    enum gguf_status st = gguf_cpu_backend_create(&backend, &cp, NULL);
    p.backend = backend;
    p.n_ubatch = 16;
    if (st == GGUF_OK)
        st = gguf_session_create(&s, m, &p, NULL);
    if (st == GGUF_OK)
        st = gguf_session_decode(s, &b, NULL);
    if (st == GGUF_OK)
        st = gguf_session_logits(s, 0, 1, &logits, NULL);
    gguf_session_destroy(s);
    gguf_backend_destroy(backend);
    return st;
}

static void check_nomem(const void *file, size_t size)
{
    struct run r;
    enum gguf_status st = GGUF_E_NOMEM;
    int bad = 0;
    long n;
    if (!run_open(&r, file, size, 1, &session_init)) {
        ok(0, "%s", r.err.message);
        run_close(&r);
        return;
    }
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct failalloc f;
        const struct gguf_allocator *a = failalloc_from(&f, (unsigned)n);
        st = try_all(r.model, a);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 10,
       "each of %ld allocations may fail; nothing is lost", n - 1);
    run_close(&r);
}

int main(void)
{
    for (size_t i = 0; i < GG_LEN(tiny); i++)
        check_tiny(tiny[i].what, &tiny[i].spec);

    static struct gen g;
    size_t size;
    gen_init(&g, 2);
    gen_model(&g, &self);
    void *file = gen_file(&g, GGUF_DTYPE_F16, &size);
    check_memory(file, size);
    check_misuse(file, size);
    check_nomem(file, size);
    check_turned(file, size, "F16");
    free(file);
    file = gen_file(&g, GGUF_DTYPE_F32, &size);
    check_askew(file, size);
    check_turned(file, size, "F32");
    free(file);
    gen_fini(&g);
    return done_testing();
}
