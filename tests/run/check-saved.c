/* SPDX-License-Identifier: MIT */
/* check-saved.c - a sequence continues with the same digits after saving and
 * restoring, in every kind of memory */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/f16.h"
#include "tests/run/saved_state.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

enum { N_MORE = 12, ROOM = 64 * VARIANT_WIDTH };

/* Continue a sequence: some tokens in one batch, then one by one. */
static bool go_on(struct run *r, int text, int32_t seq, float *out)
{
    const size_t n = text ? SAVED_B : SAVED_A;
    bool good = saved_decode(r, text, seq, n, n + N_MORE - 3, out);
    for (size_t i = n + N_MORE - 3; good && i < n + N_MORE; i++)
        good =
            saved_decode(r, text, seq, i, i + 1, out + (i - n) * r->n_vocab);
    return good;
}

static void check_kind(const struct saved_kind *k)
{
    static float a[ROOM], b[ROOM], x[ROOM], y[ROOM];
    struct gguf_session_params p = saved_params_of(k);
    struct saved_bytes one = { NULL, 0 }, all = { NULL, 0 },
                       again = { NULL, 0 };
    struct run r, other, third;
    size_t size;
    void *file = saved_file_of(k->name, "", &size);
    char what[96];
    snprintf(what, sizeof what, "%s%s%s, type %" PRIu32, k->name,
             k->unified ? ", unified" : "",
             k->full_windows ? ", full windows" : "", k->dtype);
    bool good = run_open(&r, file, size, 1, &p) && saved_fill(&r, k) &&
                saved_get(&r, 0, &one) &&
                saved_get(&r, GGUF_ALL_SEQUENCES, &all);
    p.n_ubatch = 20;
    p.n_seq = 5;
    const size_t n = good ? N_MORE * (size_t)r.n_vocab : 0;
    /* one sequence, restored under another number */
    good = good && run_open(&other, file, size, 3, &p);
    bool same = good && saved_set(&other, 3, &one) == GGUF_OK &&
                gguf_session_n_tokens(other.session, 3) ==
                    gguf_session_n_tokens(r.session, 0) &&
                gguf_session_next_pos(other.session, 3) == SAVED_A &&
                saved_get(&other, 3, &again);
    ok(same && again.n == one.n && !memcmp(again.p, one.p, (size_t)one.n),
       "%s: saved again it is the same %" PRIu64 " bytes%s%s", what, one.n,
       same ? "" : ": ", same ? "" : other.err.message);
    same = same && go_on(&r, 0, 0, a) && go_on(&other, 0, 3, x);
    ok(same && !memcmp(a, x, n * sizeof *a),
       "%s: a sequence goes on with the same digits%s%s", what,
       same ? "" : ": ", same ? "" : other.err.message);
    /* all sequences */
    p.n_ubatch = 4;
    good = good && run_open(&third, file, size, 2, &p);
    same = good && saved_set(&third, GGUF_ALL_SEQUENCES, &all) == GGUF_OK &&
           go_on(&r, 1, 1, b) && go_on(&third, 0, 0, x) &&
           go_on(&third, 1, 1, y);
    ok(same && !memcmp(a, x, n * sizeof *a) && !memcmp(b, y, n * sizeof *b),
       "%s: and so do all%s%s", what, same ? "" : ": ",
       same ? "" : third.err.message);
    if (good) {
        run_close(&other);
        run_close(&third);
    }
    run_close(&r);
    free(one.p);
    free(all.p);
    free(again.p);
    free(file);
}

static void check_kinds(void)
{
    static const struct saved_kind kinds[] = {
        { "llama", GGUF_DTYPE_F32, false, false, true },
        { "llama", GGUF_DTYPE_F16, false, false, true },
        { "llama", GGUF_DTYPE_Q8_0, false, false, true },
        { "llama", GGUF_DTYPE_F32, true, false, false },
        { "gemma3", GGUF_DTYPE_F32, false, false, false },
        { "gemma3", GGUF_DTYPE_F32, false, true, true },
        { "gemma3", GGUF_DTYPE_F32, true, false, false },
        { "gpt-oss", GGUF_DTYPE_BF16, false, false, false },
        { "llama4", GGUF_DTYPE_F32, false, false, false },
        { "gemma3n", GGUF_DTYPE_F32, false, false, false },
        { "deepseek2", GGUF_DTYPE_F32, false, false, true },
        { "deepseek32-t", GGUF_DTYPE_F32, false, false, true },
        { "hy_v4", GGUF_DTYPE_F32, false, false, true },
        { "dots3note", GGUF_DTYPE_F32, false, false, false },
        { "dots3note", GGUF_DTYPE_F16, true, false, false },
        { "minimax-m3", GGUF_DTYPE_F32, false, false, true },
        { "mamba", GGUF_DTYPE_F32, false, false, false },
        { "mamba2", GGUF_DTYPE_F32, true, false, false },
        { "rwkv6", GGUF_DTYPE_F32, false, false, false },
        { "rwkv7", GGUF_DTYPE_F32, false, false, false },
        { "falcon-h1", GGUF_DTYPE_F32, false, false, false },
        { "lfm2", GGUF_DTYPE_F32, false, false, false },
        { "kimi-linear", GGUF_DTYPE_F32, false, false, false },
        { "kimi-k3", GGUF_DTYPE_F32, false, false, false },
        { "bailingmoe3", GGUF_DTYPE_F32, true, false, false },
        { "qwen3next", GGUF_DTYPE_F32, true, false, false },
        { "qwen4exp", GGUF_DTYPE_F32, false, false, false },
        { "qwen4exp-ngrams", GGUF_DTYPE_F32, false, false, false },
        { "t5", GGUF_DTYPE_F32, false, false, false },
        { "deepseek4-moe", GGUF_DTYPE_F32, false, false, false },
        { "graniteswitch", GGUF_DTYPE_F32, false, false, true },
        { "graniteswitch", GGUF_DTYPE_Q8_0, true, false, false },
    };
    for (size_t i = 0; i < GG_LEN(kinds); i++)
        check_kind(&kinds[i]);
}

/* ---- sequences that share cells ---- */

/* Tokens shared by several sequences stay shared, and a sequence is restored
 * beside others. */
static void check_shared(void)
{
    const struct saved_kind k = { "llama", GGUF_DTYPE_F32, true, false,
                                  false };
    static float a[ROOM], x[ROOM];
    struct gguf_session_params p = saved_params_of(&k);
    struct saved_bytes one, all;
    struct run r, other;
    size_t size;
    void *file = saved_file_of("llama", "", &size);
    bool good = run_open(&r, file, size, 1, &p) && saved_fill(&r, &k) &&
                !gguf_session_copy_tokens(r.session, 0, 2, 0, 20, &r.err) &&
                saved_get(&r, 0, &one) &&
                saved_get(&r, GGUF_ALL_SEQUENCES, &all);
    good = good && run_open(&other, file, size, 1, &p) &&
           saved_set(&other, GGUF_ALL_SEQUENCES, &all) == GGUF_OK;
    for (uint32_t q = 0; good && q < 3; q++)
        good = gguf_session_n_tokens(r.session, q) ==
               gguf_session_n_tokens(other.session, q);
    good = good && !gguf_session_remove_tokens(r.session, 0, 0, 10, &r.err) &&
           !gguf_session_remove_tokens(other.session, 0, 0, 10, &other.err) &&
           saved_decode(&r, 0, 2, 20, 30, a) &&
           saved_decode(&other, 0, 2, 20, 30, x);
    ok(good && !memcmp(a, x, 10 * r.n_vocab * sizeof *a),
       "tokens removed from one sequence stay in another%s%s",
       good ? "" : ": ", good ? "" : other.err.message);
    /* from a session that shares cells to one that does not, and back beside
     * others */
    good = good && saved_set(&r, 2, &one) == GGUF_OK && go_on(&r, 0, 2, a);
    run_close(&other);
    p.unified = false;
    good = good && run_open(&other, file, size, 1, &p) &&
           saved_set(&other, 1, &one) == GGUF_OK && go_on(&other, 0, 1, x);
    const double d = good ? run_nmse(x, a, N_MORE * r.n_vocab) : 1;
    ok(good && d < 1e-12, "beside others, and alone: %.2g%s%s", d,
       good ? "" : ": ", good ? "" : r.err.message);
    ok(saved_set(&other, GGUF_ALL_SEQUENCES, &all) == GGUF_E_MISMATCH &&
           other.err.offset == 12 && strstr(other.err.message, "unified"),
       "%s", other.err.message);
    run_close(&other);
    run_close(&r);
    free(one.p);
    free(all.p);
    free(file);
}

/* ---- windows ---- */

/* A text longer than the window is restored in sessions whose windows have
 * another number of cells or keep all tokens. */
static void check_windows(void)
{
    static float a[ROOM], x[ROOM];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct saved_bytes one;
    struct run r, other;
    size_t size;
    void *file =
        saved_file_of("gemma3", "key .attention.sliding_window u32 5", &size);
    p.n_ctx = 512;
    p.n_ubatch = 8;
    bool good = run_open(&r, file, size, 1, &p);
    for (size_t i = 0; good && i < 300; i += 50)
        good = saved_decode(&r, 0, 0, i, i + 50, NULL);
    good =
        good && saved_get(&r, 0, &one) && saved_decode(&r, 0, 0, 300, 320, a);
    static const uint32_t ubatches[] = { 4, 64, 200 };
    for (size_t i = 0; good && i < GG_LEN(ubatches); i++) {
        p.n_ubatch = ubatches[i];
        bool same = run_open(&other, file, size, 1, &p) &&
                    saved_set(&other, 0, &one) == GGUF_OK &&
                    saved_decode(&other, 0, 0, 300, 320, x);
        ok(same && !memcmp(a, x, 20 * r.n_vocab * sizeof *a),
           "300 tokens past windows, n_ubatch %" PRIu32 "%s%s", ubatches[i],
           same ? "" : ": ", same ? "" : other.err.message);
        run_close(&other);
    }
    p.full_windows = true;
    bool same = good && run_open(&other, file, size, 1, &p) &&
                saved_set(&other, 0, &one) == GGUF_E_UNSUPPORTED &&
                strstr(other.err.message, "full_windows");
    ok(same, "%s", other.err.message);
    /* the other direction: the full session has all tokens */
    free(one.p);
    same = good && saved_decode(&other, 0, 0, 0, 100, NULL) &&
           saved_decode(&other, 0, 0, 100, 200, NULL) &&
           saved_decode(&other, 0, 0, 200, 300, NULL) &&
           saved_get(&other, 0, &one);
    run_close(&other);
    p.full_windows = false;
    p.n_ubatch = 16;
    same = same && run_open(&other, file, size, 1, &p) &&
           saved_set(&other, 0, &one) == GGUF_OK &&
           saved_decode(&other, 0, 0, 300, 320, x);
    ok(same && !memcmp(a, x, 20 * r.n_vocab * sizeof *a),
       "from one that keeps all, to windows%s%s", same ? "" : ": ",
       same ? "" : other.err.message);
    run_close(&other);
    run_close(&r);
    free(one.p);
    free(file);
}

/* ---- files ---- */

static void check_files(void)
{
    const struct saved_kind k = { "falcon-h1", GGUF_DTYPE_F32, false, false,
                                  false };
    static float a[ROOM], x[ROOM];
    struct gguf_session_params p = saved_params_of(&k);
    struct run r;
    size_t size;
    char dir[] = "/tmp/gguf-saved-XXXXXX", path[64];
    int status = -1;
    void *file = saved_file_of(k.name, "", &size);
    snprintf(path, sizeof path, "%s/state", scratch_make(dir) ? dir : "");
    bool good = run_open(&r, file, size, 1, &p) && saved_fill(&r, &k) &&
                !gguf_session_save_state(r.session, 0, path, false, &r.err) &&
                go_on(&r, 0, 0, a);
    ok(good &&
           gguf_session_save_state(r.session, 1, path, false, &r.err) ==
               GGUF_E_EXIST &&
           !gguf_session_save_state(r.session, 1, path, true, &r.err) &&
           !gguf_session_load_state(r.session, 2, path, &r.err) &&
           gguf_session_n_tokens(r.session, 2) == SAVED_B,
       "a file is replaced by force only: %s", r.err.message);
    run_close(&r);
    good = good && run_open(&r, file, size, 1, &p) && saved_fill(&r, &k) &&
           !gguf_session_save_state(r.session, 0, path, true, &r.err);
    run_close(&r);
    const pid_t pid = good ? fork() : -1;
    if (pid == 0) { /* restore in another process */
        good = run_open(&r, file, size, 2, &p) &&
               !gguf_session_load_state(r.session, 1, path, &r.err) &&
               go_on(&r, 0, 1, x) &&
               !memcmp(a, x, N_MORE * r.n_vocab * sizeof *a);
        _exit(good ? 0 : 1);
    }
    ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
       "another process goes on with the same digits");
    good = run_open(&r, file, size, 1, &p) && truncate(path, 5000) == 0 &&
           gguf_session_load_state(r.session, 0, path, &r.err) ==
               GGUF_E_TRUNCATED &&
           r.err.offset == 5000;
    ok(good, "%s", r.err.message);
    good =
        truncate(path, 0) == 0 &&
        gguf_session_load_state(r.session, 0, path, &r.err) == GGUF_E_FORMAT;
    ok(good, "%s", r.err.message);
    (void)unlink(path);
    good = gguf_session_load_state(r.session, 0, path, &r.err) == GGUF_E_IO;
    ok(good, "%s", r.err.message);
    run_close(&r);
    (void)rmdir(dir);
    free(file);
}

/* ---- bytes of any machine ---- */

/* Layout of the saved state of sequence 0: llama with an F16 cache. */
enum {
    LEFT = SAVED_A - 7, /* tokens in the sequence */
    KEPT = 64,          /* numbers of a row */
    TENSORS = 4,
    BEFORE = 44 + 16 + 8 * LEFT,
    BEFORE_ROWS = 24,
    TENSOR_SIZE = BEFORE_ROWS + LEFT * KEPT * 2
};

/* Read the numbers of tensor t from the state. Returns a sum with a different
 * weight for each place, and in *sizes the sum of magnitudes. */
static double sum_of(const struct saved_bytes *b, size_t t, double *sizes)
{
    const uint8_t *p = b->p + BEFORE + t * TENSOR_SIZE + BEFORE_ROWS;
    double sum = 0;
    *sizes = 0;
    for (size_t i = 0; i < LEFT * KEPT; i++) {
        const double v = gg_dtype_f16_to_f32(gg_bytes_load16le(p + 2 * i));
        sum += v * (double)(i % 7 + 1);
        *sizes += fabs(v);
    }
    return sum;
}

/* Every byte that is not computed is the same on every machine, and so is the
 * byte order of computed numbers. Their last bits depend on the instruction
 * set. A state with given numbers is restored and saved again with the same
 * bytes. */
static void check_bytes(void)
{
    static const double sums[TENSORS] = { 19.647, 261.303, 111.388, 1057.961 };
    const struct saved_kind k = { "llama", GGUF_DTYPE_F16, false, false,
                                  true };
    struct gguf_session_params p = saved_params_of(&k);
    struct saved_bytes b = { NULL, 0 }, again = { NULL, 0 };
    struct run r;
    size_t size;
    void *file = saved_file_of("llama", "", &size);
    bool good = run_open(&r, file, size, 2, &p) && saved_fill(&r, &k) &&
                saved_get(&r, 0, &b) &&
                b.n == BEFORE + TENSORS * TENSOR_SIZE + 8;
    for (size_t t = 0; good && t < TENSORS; t++) {
        double sizes;
        const double sum = sum_of(&b, t, &sizes);
        ok(fabs(sum - sums[t]) < 1e-4 * sizes,
           "numbers of tensor %zu: %.9g of %.9g", t, sum, sizes);
        uint8_t *rows = b.p + BEFORE + t * TENSOR_SIZE + BEFORE_ROWS;
        for (size_t i = 0; i < LEFT * KEPT; i++)
            gg_bytes_store16le(rows + 2 * i, (uint16_t)(0x2000 + 11 * i + t));
    }
    if (good)
        gg_bytes_store64le(b.p + b.n - 8, XXH3_64bits(b.p, (size_t)b.n - 8));
    good = good && saved_set(&r, 0, &b) == GGUF_OK &&
           saved_get(&r, 0, &again) && again.n == b.n &&
           !memcmp(again.p, b.p, (size_t)b.n);
    const uint64_t sum = good ? gg_bytes_load64le(again.p + again.n - 8) : 0;
    ok(good && sum == UINT64_C(0x37123d451480cf1a),
       "the other bytes are those of any machine: %" PRIx64, sum);
    run_close(&r);
    free(b.p);
    free(again.p);
    free(file);
}

int main(void)
{
    check_kinds();
    check_shared();
    check_windows();
    check_files();
    check_bytes();
    return done_testing();
}
