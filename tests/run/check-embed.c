/* SPDX-License-Identifier: MIT */
/* check-embed.c - sequence embeddings with every pooling and classifier,
 * compared with double precision */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/run/embed.h"
#include "tests/family/refbert.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { N = 41, MOST = 512 };
static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;
static const enum gguf_pooling kinds[] = { GGUF_POOLING_MEAN, GGUF_POOLING_CLS,
                                           GGUF_POOLING_LAST,
                                           GGUF_POOLING_RANK };

/* ---- in double precision ---- */

/* Pool the states of n tokens, which are in the order of their positions. */
static void pool_states(enum gguf_pooling kind, const double *states, size_t n,
                        size_t e, double *x)
{
    const size_t from = kind == GGUF_POOLING_LAST ? n - 1 : 0;
    const size_t to = kind == GGUF_POOLING_CLS ? 1 : n;
    memset(x, 0, e * sizeof *x);
    for (size_t t = from; t < to; t++)
        for (size_t i = 0; i < e; i++)
            x[i] += states[t * e + i] / (double)(to - from);
}

/* x [n] = W x + b, if the model has the matrix. */
static bool apply_matrix(const struct gen *g, const char *name, double *x,
                         size_t *n)
{
    char stem[64];
    double y[MOST];
    float *w, *b;
    const struct gen_tensor *t = NULL;
    snprintf(stem, sizeof stem, "%s.weight", name);
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->t[i].name, stem))
            t = &g->t[i];
    if (!t)
        return false;
    w = ref_weights(g, "%s.weight", name);
    b = ref_weights(g, "%s.bias", name);
    ref_linear(y, w, b, x, (int)t->ne[0], (int)t->ne[1]);
    *n = (size_t)t->ne[1];
    memcpy(x, y, *n * sizeof *x);
    free(w);
    free(b);
    return true;
}

/* Layer norm of ModernBERT's head. */
static void layer_norm(const struct gen *g, double eps, double *x, size_t n)
{
    float *w = ref_weights(g, "cls.norm.weight");
    double mean = 0, var = 0;
    for (size_t i = 0; w && i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; w && i < n; i++)
        var += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (size_t i = 0; w && i < n; i++)
        x[i] = (x[i] - mean) / sqrt(var + eps) * (double)w[i];
    free(w);
}

/* A classification head, which makes the vector from pooled states. */
struct head {
    int gelu, softmax;
    double eps;
};

static size_t apply_head(const struct gen *g, const struct head *h,
                         enum gguf_pooling kind, double *x, size_t n)
{
    double sum = 0;
    if (kind == GGUF_POOLING_RANK) {
        if (apply_matrix(g, "cls", x, &n)) {
            for (size_t i = 0; i < n; i++)
                x[i] = h->gelu
                           ? 0.5 * x[i] *
                                 (1 +
                                  tanh(sqrt(2 / 3.14159265358979323) *
                                       (x[i] + 0.044715 * x[i] * x[i] * x[i])))
                           : tanh(x[i]);
            layer_norm(g, h->eps, x, n);
        }
        apply_matrix(g, "cls.output", x, &n);
        for (size_t i = 0; i < n; i++)
            sum += exp(x[i]);
        for (size_t i = 0; h->softmax && i < n; i++)
            x[i] = exp(x[i]) / sum;
    }
    apply_matrix(g, "dense_2", x, &n);
    apply_matrix(g, "dense_3", x, &n);
    return n;
}

/* ---- an encoder, all of it in double precision ---- */

static void check_encoder(void)
{
    enum { E = 128 };
    static struct skeleton m;
    static double states[2][N * E];
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[2 * N], text[N];
    int32_t seq[2 * N];
    const struct head head = { 0, 0, 0 };
    size_t size, n[2];
    if (!skeleton_open(&m, "jina-bert-v2"))
        abort();
    embed_classifier(&m.g, "jina-bert-v2", E, 3, true);
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    embed_mix(&b, tok, seq, N, 23);
    for (int q = 0; q < 2; q++) {
        n[q] = embed_text(&b, q, text);
        refbert_run(&m, text, (int)n[q], states[q]);
    }
    for (size_t k = 0; k < GG_LEN(kinds); k++) {
        struct gguf_session_params p = init;
        struct run r;
        const float *row;
        double want[MOST], d = 0;
        p.n_seq = 3;
        p.pooling = kinds[k];
        bool good = run_open(&r, file, size, 2, &p) &&
                    gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
                    gguf_session_pooling(r.session) == kinds[k];
        for (uint32_t q = 0; good && q < 2; q++) {
            size_t width = 0;
            pool_states(kinds[k] == GGUF_POOLING_RANK ? GGUF_POOLING_CLS
                                                      : kinds[k],
                        states[q], n[q], E, want);
            const size_t w = apply_head(&m.g, &head, kinds[k], want, E);
            good = gguf_session_embedding(r.session, q, &row, &width,
                                          &r.err) == GGUF_OK &&
                   width == w;
            d = fmax(d, good ? run_nmse_double(row, want, width) : 1);
        }
        ok(good && d < 1e-11, "an encoder, %s: %.2g%s",
           gguf_pooling_name(kinds[k]), d, good ? "" : r.err.message);
        run_close(&r);
    }
    free(file);
    skeleton_close(&m);
}

/* ---- the same states, pooled by a session and by hand ---- */

/* States of every token of a batch, from a session without pooling. */
static bool states_of(const void *file, size_t size,
                      const struct gguf_batch *batch, uint32_t n_seq,
                      double *out)
{
    struct gguf_session_params p = init;
    struct gguf_batch b = *batch;
    bool want[2 * N];
    const float *rows;
    struct run r;
    memset(want, 1, sizeof want);
    b.want = want;
    p.n_seq = n_seq;
    p.n_ctx = 2 * N;
    p.pooling = GGUF_POOLING_NONE;
    const bool good =
        run_open(&r, file, size, 1, &p) && run_encode(&r, b.token, 3) &&
        gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
        gguf_session_states(r.session, 0, b.n, &rows, &r.err) == GGUF_OK;
    const size_t e = good ? gguf_model_info(r.model)->n_embd : 0;
    for (size_t i = 0; i < b.n * e; i++)
        out[i] = (double)rows[i];
    if (!good)
        printf("# %s\n", r.err.message);
    run_close(&r);
    return good;
}

/* Models with layers between the pooled states and the vector. */
static void make_bert(struct gen *g, int e)
{
    embed_classifier(g, "bert", e, 2, true);
}
static void bert_out(struct gen *g, int e)
{
    embed_classifier(g, "bert", e, 1, false);
}
static void make_jina(struct gen *g, int e)
{
    gen_tensor(g, e, 1, "cls.weight");
    gen_tensor(g, 1, 0, "cls.bias");
}
static void make_modern(struct gen *g, int e)
{
    gen_tensor(g, e, e, "cls.weight");
    gen_tensor(g, e, 0, "cls.norm.weight");
    gen_tensor(g, e, 3, "cls.output.weight");
    gen_tensor(g, 3, 0, "cls.output.bias");
}
static void make_qwen(struct gen *g, int e)
{
    gen_tensor(g, e, 2, "cls.output.weight");
}
static void make_lfm(struct gen *g, int e)
{
    embed_u32(g, "lfm2", "embedding_length_out", 40);
    gen_tensor(g, e, 40, "dense_2.weight");
    gen_tensor(g, 40, 0, "dense_2.bias");
}
static void make_gemma(struct gen *g, int e)
{
    embed_u32(g, "gemma-embedding", "dense_2_feat_out", 96);
    embed_u32(g, "gemma-embedding", "dense_3_feat_in", 96);
    gen_tensor(g, e, 96, "dense_2.weight");
    gen_tensor(g, 96, e, "dense_3.weight");
}
static void make_bare(struct gen *g, int e)
{
    (void)g;
    (void)e;
}

static const struct model {
    const char *name;
    void (*add)(struct gen *g, int e);
    enum gguf_pooling rank; /* pooling that RANK uses */
    struct head head;
    size_t width[2]; /* numbers of a vector: [0] by MEAN, CLS and LAST, [1] by
                      * RANK; 0: n_embd */
} models[] = {
    { "bert", make_bert, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 2 } },
    { "bert", bert_out, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 1 } },
    { "bert", make_bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "jina-bert-v3", make_jina, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 1 } },
    { "modern-bert",
      make_modern,
      GGUF_POOLING_MEAN,
      { 1, 0, 1e-5 },
      { 0, 3 } },
    { "qwen3", make_qwen, GGUF_POOLING_LAST, { 0, 1, 0 }, { 0, 2 } },
    { "qwen3vl", make_qwen, GGUF_POOLING_LAST, { 0, 1, 0 }, { 0, 2 } },
    { "lfm2", make_lfm, GGUF_POOLING_CLS, { 0, 0, 0 }, { 40, 40 } },
    { "gemma-embedding", make_gemma, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "llama", make_bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "mamba", make_bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "t5", make_bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "t5encoder", make_bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
};

static void check_model(const struct model *m)
{
    static double states[N * MOST];
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[SKELETON_TOKENS];
    struct skeleton s;
    size_t size;
    if (!skeleton_open(&s, m->name))
        abort();
    const size_t e = (size_t)s.g.t[0].ne[0];
    m->add(&s.g, (int)e);
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    skeleton_tokens(tok);
    b.n = N;
    b.token = tok;
    const bool known = states_of(file, size, &b, 1, states);
    for (size_t k = 0; k < GG_LEN(kinds); k++) {
        struct gguf_session_params p = init;
        const bool rank = kinds[k] == GGUF_POOLING_RANK;
        const size_t width = m->width[rank] ? m->width[rank] : e;
        double want[MOST], d = 1;
        const float *row;
        struct run r;
        size_t n = 0;
        p.pooling = kinds[k];
        p.n_ctx = 2 * N;
        pool_states(rank ? m->rank : kinds[k], states, N, e, want);
        apply_head(&s.g, &m->head, kinds[k], want, e);
        const bool good =
            known && run_open(&r, file, size, 2, &p) &&
            run_encode(&r, tok, 3) &&
            gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
            gguf_session_embedding(r.session, 0, &row, &n, &r.err) == GGUF_OK;
        if (good && n == width)
            d = run_nmse_double(row, want, n);
        ok(good && d < 1e-11, "%s, %s: %zu numbers, %.2g%s", m->name,
           gguf_pooling_name(kinds[k]), n, d, good ? "" : r.err.message);
        run_close(&r);
    }
    free(file);
    skeleton_close(&s);
}

/* ---- vectors of tokens ---- */

/* Each token's state passes the matrices after pooling. */
static void check_tokens(const struct model *m)
{
    static double states[N * MOST];
    struct gguf_session_params p = init;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[SKELETON_TOKENS];
    bool all[N];
    struct skeleton s;
    struct run r;
    size_t size, n = 0;
    double d = 0;
    const float *row;
    if (!skeleton_open(&s, m->name))
        abort();
    const size_t e = (size_t)s.g.t[0].ne[0];
    m->add(&s.g, (int)e);
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    skeleton_tokens(tok);
    memset(all, 1, sizeof all);
    b.n = N;
    b.token = tok;
    b.want = all;
    p.n_ctx = 2 * N;
    p.pooling = GGUF_POOLING_NONE;
    /* states before any matrix: those of the last layer's norm */
    bool good = states_of(file, size, &b, 1, states) &&
                run_open(&r, file, size, 2, &p) &&
                gguf_session_decode(r.session, &b, &r.err) == GGUF_OK;
    for (size_t i = 0; good && i < N; i++) {
        double want[MOST];
        memcpy(want, states + i * e, e * sizeof *want);
        const size_t width =
            apply_head(&s.g, &m->head, GGUF_POOLING_NONE, want, e);
        good = gguf_session_token_embedding(r.session, i, &row, &n, &r.err) ==
                   GGUF_OK &&
               n == width;
        d = fmax(d, good ? run_nmse_double(row, want, width) : 1);
    }
    ok(good && d < 1e-11, "%s: vectors of tokens, %zu numbers, %.2g", m->name,
       n, d);
    ok(gguf_session_token_embedding(r.session, N, &row, &n, &r.err) ==
               GGUF_E_INVALID &&
           !row && !n,
       "%s: no further token: %s", m->name, r.err.message);
    run_close(&r);
    p.pooling = GGUF_POOLING_MEAN;
    ok(run_open(&r, file, size, 1, &p) &&
           !gguf_session_decode(r.session, &b, &r.err) &&
           gguf_session_token_embedding(r.session, 0, &row, &n, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           strstr(r.err.message, "pooling is 'mean'"),
       "%s: pooled: %s", m->name, r.err.message);
    run_close(&r);
    free(file);
    skeleton_close(&s);
}

/* ---- types of tokens ---- */

/* The last tokens belong to the second text, in batches that are computed in
 * one piece and side by side with others. */
static void check_types(void)
{
    enum { E = 128, SECOND = 17 };
    static struct skeleton m;
    static double states[N * E];
    struct gguf_session_params p = init;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[2 * N];
    int32_t seq[2 * N];
    uint32_t type[2 * N];
    bool all[2 * N];
    const float *rows;
    double d[2] = { 1, 1 };
    struct run r;
    size_t size;
    if (!skeleton_open(&m, "bert"))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    for (size_t i = 0; i < 2 * N; i++) {
        tok[i] = (gguf_token)((i % N * 37 + 11) % 128);
        seq[i] = i < N ? 0 : 1;
        type[i] = i % N >= SECOND;
    }
    memset(all, 1, sizeof all);
    refbert_run_types(&m, tok, type, N, states);
    b.n = 2 * N;
    b.token = tok;
    b.seq = seq;
    b.type = type;
    b.want = all;
    p.n_seq = 2;
    bool good = run_open(&r, file, size, 2, &p) &&
                gguf_session_decode(r.session, &b, &r.err) == GGUF_OK;
    for (size_t q = 0; good && q < 2; q++) {
        good = !gguf_session_states(r.session, q * N, N, &rows, &r.err);
        d[q] = good ? run_nmse_double(rows, states, (size_t)N * E) : 1;
    }
    ok(good && d[0] < 1e-11 && d[1] < 1e-11, "types of tokens: %.2g, %.2g",
       d[0], d[1]);
    b.type = NULL;
    good = !gguf_session_clear(r.session, &r.err) &&
           !gguf_session_decode(r.session, &b, &r.err) &&
           !gguf_session_states(r.session, 0, N, &rows, &r.err);
    refbert_run(&m, tok, N, states);
    d[0] = good ? run_nmse_double(rows, states, (size_t)N * E) : 1;
    ok(good && d[0] < 1e-11, "no types are type 0: %.2g", d[0]);
    type[2 * N - 1] = 2;
    b.type = type;
    ok(!gguf_session_clear(r.session, &r.err) &&
           gguf_session_decode(r.session, &b, &r.err) == GGUF_E_INVALID &&
           strstr(r.err.message, "token 81: type 2, the model has 2"),
       "%s", r.err.message);
    run_close(&r);
    free(file);
    skeleton_close(&m);
    /* a model whose tokens have no types */
    file = embed_llama(&size);
    b = (struct gguf_batch)GGUF_BATCH_INIT;
    b.n = 2;
    b.token = tok;
    b.type = type;
    type[1] = 1;
    tok[0] = tok[1] = 3;
    good = run_open(&r, file, size, 1, &init) &&
           gguf_session_decode(r.session, &b, &r.err) == GGUF_E_INVALID;
    ok(good, "a llama: %s", r.err.message);
    type[1] = 0;
    ok(!gguf_session_decode(r.session, &b, &r.err), "but type 0 is allowed");
    run_close(&r);
    free(file);
}

/* ---- labels, and allocations ---- */

static void check_labels(void)
{
    struct skeleton s;
    struct gguf_str name = { NULL, 0 };
    struct run r;
    size_t size;
    if (!skeleton_open(&s, "bert"))
        abort();
    embed_classifier(&s.g, "bert", (int)s.g.t[0].ne[0], 3, true);
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    bool good = run_open(&r, file, size, 1, &init) &&
                gguf_model_info(r.model)->n_label == 3 &&
                gguf_model_info(r.model)->pooling == GGUF_POOLING_NONE &&
                !gguf_model_label(r.model, 2, &name, &r.err);
    ok(good && name.size == 7 && !memcmp(name.data, "perhaps", 7),
       "labels of a classifier");
    good = gguf_model_label(r.model, 3, &name, &r.err) == GGUF_E_INVALID;
    ok(good, "%s", r.err.message);
    run_close(&r);
    free(file);
    skeleton_close(&s);
}

/* Pooling and classifiers allocate nothing after the session is created. Each
 * allocation of the creation may fail. */
static void check_allocations(void)
{
    struct gguf_session_params p = init;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[SKELETON_TOKENS];
    struct skeleton s;
    struct failalloc f;
    const float *row;
    struct run r;
    size_t size, n;
    unsigned i, leaks = 0;
    if (!skeleton_open(&s, "qwen3"))
        abort();
    make_qwen(&s.g, (int)s.g.t[0].ne[0]);
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    skeleton_tokens(tok);
    b.token = tok;
    p.pooling = GGUF_POOLING_RANK;
    p.n_ctx = p.n_ubatch = N;
    p.allocator = failalloc_init(&f, UINT_MAX);
    bool good = run_open(&r, file, size, 1, &p);
    const unsigned before = f.calls;
    for (b.n = 1; good && b.n <= N; b.n++)
        good = !gguf_session_clear(r.session, &r.err) &&
               !gguf_session_decode(r.session, &b, &r.err) &&
               !gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    ok(good && f.calls == before, "%u allocations for %d vectors %s",
       f.calls - before, N, good ? "" : r.err.message);
    run_close(&r);
    for (i = 0;; i++) {
        p.allocator = failalloc_init(&f, i);
        good = run_open(&r, file, size, 1, &p);
        run_close(&r);
        leaks += f.live != 0 || (!good && r.err.status != GGUF_E_NOMEM);
        if (f.calls <= i)
            break;
    }
    ok(good && !leaks && i > 10, "each of %u allocations may fail", i);
    free(file);
    skeleton_close(&s);
}

int main(void)
{
    check_encoder();
    for (size_t i = 0; i < GG_LEN(models); i++)
        check_model(&models[i]);
    for (size_t i = 0; i < GG_LEN(models); i++)
        if (!strcmp(models[i].name, "lfm2") ||
            !strcmp(models[i].name, "gemma-embedding") ||
            models[i].add == bert_out)
            check_tokens(&models[i]);
    check_types();
    check_labels();
    check_allocations();
    return done_testing();
}
