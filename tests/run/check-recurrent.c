/* SPDX-License-Identifier: MIT */
/* check-recurrent.c - sessions of models that keep something else than keys:
 * states that tokens move, and nothing
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/verify.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

enum { V = 64, E = 32, FF = 48, N = 24 };

static const struct gguf_session_params session_init =
    GGUF_SESSION_PARAMS_INIT;

/* ---- two small models ---- */

static void number(struct gen *g, const char *key, uint32_t v)
{
    if (gguf_meta_set_u32(g->meta, key, v, NULL))
        abort();
}

static void real(struct gen *g, const char *key, float v)
{
    if (gguf_meta_set_f32(g->meta, key, v, NULL))
        abort();
}

static void begin(struct gen *g, const char *arch, uint32_t n_layer)
{
    char key[64];
    static const struct {
        const char *key;
        uint32_t v;
    } rows[] = { { "vocab_size", V },
                 { "context_length", 64 },
                 { "embedding_length", E },
                 { "feed_forward_length", FF },
                 { "attention.head_count", 4 } };
    gen_init(g, 5);
    if (gguf_meta_set_strz(g->meta, "general.architecture", arch, NULL) ||
        gguf_meta_set_strz(g->meta, "tokenizer.ggml.model", "no_vocab", NULL))
        abort();
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        snprintf(key, sizeof key, "%s.%s", arch, rows[i].key);
        number(g, key, rows[i].v);
    }
    snprintf(key, sizeof key, "%s.block_count", arch);
    number(g, key, n_layer);
    gen_tensor(g, E, V, "token_embd.weight");
}

static void attention(struct gen *g, int il, int n_kv, int bias)
{
    static const char *const names[] = { "attn_q", "attn_k", "attn_v",
                                         "attn_output" };
    for (int i = 0; i < 4; i++) {
        const int64_t rows = i == 1 || i == 2 ? E / 4 * n_kv : E;
        gen_tensor(g, E, rows, "blk.%d.%s.weight", il, names[i]);
        if (bias)
            gen_tensor(g, rows, 0, "blk.%d.%s.bias", il, names[i]);
    }
}

/* Mamba-2, attention, Mamba-2. */
static void *hybrid(size_t *size)
{
    enum {
        INNER = 64,
        STATE = 16,
        HEADS = 4,
        GROUPS = 2,
        CONV = 4,
        BC = GROUPS * STATE
    };
    static const int32_t kv[] = { 0, 2, 0 };
    static struct gen g;
    begin(&g, "granitehybrid", 3);
    real(&g, "granitehybrid.attention.layer_norm_rms_epsilon", 1e-5f);
    number(&g, "granitehybrid.ssm.conv_kernel", CONV);
    number(&g, "granitehybrid.ssm.inner_size", INNER);
    number(&g, "granitehybrid.ssm.state_size", STATE);
    number(&g, "granitehybrid.ssm.time_step_rank", HEADS);
    number(&g, "granitehybrid.ssm.group_count", GROUPS);
    if (gguf_meta_set_array(g.meta, "granitehybrid.attention.head_count_kv",
                            GGUF_VAL_I32, kv, 3, NULL))
        abort();
    gen_tensor(&g, E, 0, "output_norm.weight");
    for (int il = 0; il < 3; il++) {
        gen_tensor(&g, E, 0, "blk.%d.attn_norm.weight", il);
        gen_tensor(&g, E, 0, "blk.%d.ffn_norm.weight", il);
        gen_tensor(&g, E, FF, "blk.%d.ffn_gate.weight", il);
        gen_tensor(&g, E, FF, "blk.%d.ffn_up.weight", il);
        gen_tensor(&g, FF, E, "blk.%d.ffn_down.weight", il);
        if (kv[il]) {
            attention(&g, il, kv[il], 0);
            continue;
        }
        gen_tensor(&g, E, 2 * INNER + 2 * BC + HEADS, "blk.%d.ssm_in.weight",
                   il);
        gen_tensor(&g, CONV, INNER + 2 * BC, "blk.%d.ssm_conv1d.weight", il);
        gen_tensor(&g, INNER + 2 * BC, 0, "blk.%d.ssm_conv1d.bias", il);
        gen_tensor(&g, HEADS, 0, "blk.%d.ssm_dt.bias", il);
        gen_tensor(&g, 1, HEADS, "blk.%d.ssm_a", il);
        gen_tensor(&g, 1, HEADS, "blk.%d.ssm_d", il);
        gen_tensor(&g, INNER / GROUPS, GROUPS, "blk.%d.ssm_norm.weight", il);
        gen_tensor(&g, INNER, E, "blk.%d.ssm_out.weight", il);
    }
    void *file = gen_file(&g, GGUF_DTYPE_F32, size);
    gen_fini(&g);
    return file;
}

static void *encoder(size_t *size)
{
    static const char *const norms[] = { "attn_output_norm",
                                         "layer_output_norm" };
    static struct gen g;
    begin(&g, "bert", 2);
    real(&g, "bert.attention.layer_norm_epsilon", 1e-5f);
    number(&g, "tokenizer.ggml.token_type_count", 2);
    if (gguf_meta_set_bool(g.meta, "bert.attention.causal", 0, NULL))
        abort();
    gen_tensor(&g, E, 2, "token_types.weight");
    gen_tensor(&g, E, 64, "position_embd.weight");
    gen_tensor(&g, E, 0, "token_embd_norm.weight");
    gen_tensor(&g, E, 0, "token_embd_norm.bias");
    for (int il = 0; il < 2; il++) {
        attention(&g, il, 4, 1);
        for (int i = 0; i < 2; i++) {
            gen_tensor(&g, E, 0, "blk.%d.%s.weight", il, norms[i]);
            gen_tensor(&g, E, 0, "blk.%d.%s.bias", il, norms[i]);
        }
        gen_tensor(&g, E, FF, "blk.%d.ffn_up.weight", il);
        gen_tensor(&g, FF, 0, "blk.%d.ffn_up.bias", il);
        gen_tensor(&g, FF, E, "blk.%d.ffn_down.weight", il);
        gen_tensor(&g, E, 0, "blk.%d.ffn_down.bias", il);
    }
    void *file = gen_file(&g, GGUF_DTYPE_F32, size);
    gen_fini(&g);
    return file;
}

static void make_tokens(gguf_token *tok, int n, int from)
{
    for (int i = 0; i < n; i++)
        tok[i] = ((i + from) * 37 + 11) % V;
}

/* ---- states ---- */

static void check_cuts(const void *file, size_t size)
{
    static float all[N * V], cut[N * V];
    static const uint32_t ubatches[] = { 0, 5, 7, 4 };
    gguf_token tok[N];
    struct gguf_batch b = { .struct_size = sizeof b, .n = N, .token = tok };
    make_tokens(tok, N, 0);
    for (size_t i = 0; i < GG_LEN(ubatches); i++) {
        struct gguf_session_params p = session_init;
        struct run r;
        p.n_ctx = N;
        p.n_ubatch = ubatches[i];
        bool good = run_open(&r, file, size, 1, &p) &&
                    run_logits(&r, &b, i ? cut : all);
        ok(good && (!i || memcmp(all, cut, sizeof all) == 0),
           "passes of %u: %s", ubatches[i],
           good ? "the same bits" : r.err.message);
        run_close(&r);
    }
    struct run r;
    bool good = run_open(&r, file, size, 1, &session_init);
    for (int i = 0; good && i < N; i++) {
        struct gguf_batch one = { .struct_size = sizeof one,
                                  .n = 1,
                                  .token = tok + i };
        good = run_logits(&r, &one, cut + i * V);
    }
    ok(good && run_nmse(cut, all, N * V) < 1e-11, "token by token: %.2g",
       run_nmse(cut, all, N * V));
    run_close(&r);
}

static void check_sequences(const void *file, size_t size)
{
    enum { LEN = 8 };
    static float alone[LEN * V], mixed[3 * LEN * V];
    gguf_token tok[3][LEN], t[3 * LEN];
    int32_t seq[3 * LEN];
    struct gguf_session_params p = session_init;
    struct gguf_batch b = {
        .struct_size = sizeof b, .n = 3 * LEN, .token = t, .seq = seq
    };
    struct run r;
    double worst = 0;
    p.n_ctx = LEN;
    p.n_seq = 3;
    for (int i = 0; i < 3 * LEN; i++) {
        make_tokens(tok[i % 3], LEN, 9 * (i % 3));
        seq[i] = i % 3;
        t[i] = tok[i % 3][i / 3];
    }
    bool good = run_open(&r, file, size, 1, &p) && run_logits(&r, &b, mixed);
    (void)gguf_session_clear(r.session, NULL);
    for (int q = 0; good && q < 3; q++) {
        int32_t other[LEN];
        for (int i = 0; i < LEN; i++)
            other[i] = (q + 1) % 3;
        struct gguf_batch one = {
            .struct_size = sizeof one, .n = LEN, .token = tok[q], .seq = other
        };
        good = run_logits(&r, &one, alone);
        for (int i = 0; good && i < LEN; i++) {
            double d = run_nmse(mixed + (i * 3 + q) * V, alone + i * V, V);
            worst = d > worst ? d : worst;
        }
    }
    ok(good && worst < 1e-11, "three sequences side by side: %.2g", worst);
    run_close(&r);
}

/* A state cannot forget its last tokens; all of them it can. */
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
           gguf_session_remove(r.session, 0, 10, -1, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           gguf_session_n_tokens(r.session, 0) == N,
       "%s", r.err.message);
    ok(good && gguf_session_remove(r.session, 0, 90, -1, &r.err) == GGUF_OK &&
           gguf_session_n_tokens(r.session, 0) == N,
       "nothing is easily forgotten");
    good = good &&
           gguf_session_remove(r.session, 0, 0, -1, &r.err) == GGUF_OK &&
           run_logits(&r, &b, again);
    ok(good && memcmp(first, again, sizeof first) == 0, "and so is all of it");
    (void)gguf_session_clear(r.session, NULL);
    good = good && run_logits(&r, &b, again);
    ok(good && memcmp(first, again, sizeof first) == 0, "cleared");
    run_close(&r);
}

/* ---- nothing kept ---- */

static bool states(struct run *r, const struct gguf_batch *b, float *out)
{
    const float *rows;
    if (gguf_session_decode(r->session, b, &r->err) ||
        gguf_session_states(r->session, 0, b->n, &rows, &r->err))
        return false;
    memcpy(out, rows, b->n * E * sizeof *out);
    return true;
}

static void check_encoder(const void *file, size_t size)
{
    static float first[N * E], again[N * E], both[2 * N * E];
    static uint8_t want[2 * N];
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
    bool good = run_open(&r, file, size, 1, &p) && states(&r, &b, first) &&
                states(&r, &b, again);
    ok(good && memcmp(first, again, sizeof first) == 0,
       "a batch does not see the one before it: %s",
       good ? "" : r.err.message);
    gguf_session_memory(r.session, &cache, &graph);
    ok(good && cache == 0, "and nothing is kept");
    good = good && states(&r, &two, both);
    ok(good && memcmp(both, both + N * E, sizeof first) == 0 &&
           run_nmse(both, first, N * E) < 1e-11,
       "nor does a sequence see another");
    for (int i = 0; i < 2 * N; i++)
        seq[i] = 0;
    ok(good && gguf_session_decode(r.session, &two, &r.err) == GGUF_E_FULL,
       "%s", r.err.message);
    ok(good && states(&r, &b, again) &&
           gguf_session_logits(r.session, 0, 1, &rows, &r.err) ==
               GGUF_E_UNSUPPORTED,
       "%s", r.err.message);
    ok(good && gguf_session_states(r.session, N, 1, &rows, &r.err) ==
                   GGUF_E_INVALID,
       "%s", r.err.message);
    /* every token sees every other: the first one, too */
    tok[N - 1] = (tok[N - 1] + 1) % V;
    good = good && states(&r, &b, again);
    ok(good && memcmp(first, again, E * sizeof *first) != 0,
       "the first token sees the last");
    /* as few as are filled up with repetitions */
    for (size_t n = 1; good && n < 6; n++) {
        struct gguf_batch few = {
            .struct_size = sizeof few, .n = n, .token = tok, .want = want
        };
        good = states(&r, &few, again);
    }
    ok(good, "few tokens: %s", good ? "" : r.err.message);
    run_close(&r);
}

/* ---- headers with a few bytes changed: refused, or they compute ---- */

static bool computes(const void *data, size_t size, struct gguf_error *err)
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

/* Errors that the verification finds. */
static int count_error(void *user, const struct gguf_finding *f)
{
    *(unsigned *)user += f->severity == GGUF_SEVERITY_ERROR;
    return 0;
}

/* Do opening a model and verifying it say the same? What is well formed and
 * not evaluated, of a type that is not known, or of no architecture or
 * tokenizer at all, is not an error. */
static bool agree(const void *data, size_t size)
{
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_error err;
    unsigned n = 0;
    if (gguf_file_open_memory(&file, data, size, NULL, NULL) != GGUF_OK)
        return true;
    enum gguf_status st = gguf_model_open(&model, file, NULL, &err);
    if (gguf_file_verify(file, NULL, count_error, &n, NULL) != GGUF_OK)
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
    ok(computes(data, size, &err), "%s: as it is it computes: %s", what,
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
        if (computes(data, size, &err))
            n_good++;
        else
            n_mute += !err.message[0];
        n_apart += !agree(data, size);
        for (size_t k = n; k-- > 0;)
            data[at[k]] = old[k];
    }
    ok(!n_mute && n_good > 0 && n_good < times,
       "%s: %d headers with bytes changed: %d compute, all others say why",
       what, times, n_good);
    ok(!n_apart, "%s: opened or not, as verified", what);
}

/* Of the models that the tests carry, which are larger. */
static void check_samples(void)
{
    static const char *const names[] = { "lfm2", "qwen3next", "kimi-linear" };
    static struct skeleton m;
    for (size_t i = 0; i < GG_LEN(names); i++) {
        size_t size;
        if (!skeleton_open(&m, names[i]))
            abort();
        void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
        check_mutations(names[i], file, size, 3000);
        free(file);
        skeleton_close(&m);
    }
}

int main(void)
{
    size_t size;
    void *file = hybrid(&size);
    check_cuts(file, size);
    check_sequences(file, size);
    check_forgetting(file, size);
    check_mutations("hybrid", file, size, 3000);
    free(file);
    file = encoder(&size);
    check_encoder(file, size);
    check_mutations("encoder", file, size, 3000);
    free(file);
    check_samples();
    return done_testing();
}
