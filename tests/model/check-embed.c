/* check-embed.c - one vector for each sequence of a batch: every way of
 * pooling, classifiers, and batches in pieces
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/refenc.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/model/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { V = 96, E = 48, N = 41, MOST = 512 };
static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;
static const enum gguf_pooling kinds[] = { GGUF_POOLING_MEAN, GGUF_POOLING_CLS,
                                           GGUF_POOLING_LAST,
                                           GGUF_POOLING_RANK };

static double far_from(const float *got, const double *want, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        s += want[i] * want[i];
    }
    return d / s;
}

static bool says(const struct run *r, enum gguf_status st, const char *text)
{
    return r->err.status == st && strstr(r->err.message, text);
}

static void must(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

/* ---- in double precision ---- */

/* Which states count, of n tokens in the order of their positions. */
static void pooled(enum gguf_pooling kind, const double *states, size_t n,
                   size_t e, double *x)
{
    const size_t from = kind == GGUF_POOLING_LAST ? n - 1 : 0;
    const size_t to = kind == GGUF_POOLING_CLS ? 1 : n;
    memset(x, 0, e * sizeof *x);
    for (size_t t = from; t < to; t++)
        for (size_t i = 0; i < e; i++)
            x[i] += states[t * e + i] / (double)(to - from);
}

/* x [n] = W x + b, if there is such a matrix. */
static bool matrix(const struct gen *g, const char *name, double *x, size_t *n)
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

/* The layer norm of ModernBERT's head. */
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

/* What becomes of pooled states; how many numbers that is. */
struct head {
    int gelu, softmax;
    double eps;
};

static size_t through(const struct gen *g, const struct head *h,
                      enum gguf_pooling kind, double *x, size_t n)
{
    double sum = 0;
    if (kind == GGUF_POOLING_RANK) {
        if (matrix(g, "cls", x, &n)) {
            for (size_t i = 0; i < n; i++)
                x[i] = h->gelu
                           ? 0.5 * x[i] *
                                 (1 +
                                  tanh(sqrt(2 / 3.14159265358979323) *
                                       (x[i] + 0.044715 * x[i] * x[i] * x[i])))
                           : tanh(x[i]);
            layer_norm(g, h->eps, x, n);
        }
        matrix(g, "cls.output", x, &n);
        for (size_t i = 0; i < n; i++)
            sum += exp(x[i]);
        for (size_t i = 0; h->softmax && i < n; i++)
            x[i] = exp(x[i]) / sum;
    }
    matrix(g, "dense_2", x, &n);
    matrix(g, "dense_3", x, &n);
    return n;
}

/* ---- an encoder, all of it in double precision ---- */

static void add_classifier(struct gen *g, const char *arch, int e, int n_cls,
                           bool dense)
{
    static const struct gguf_str names[] = { { "yes", 3 },
                                             { "no", 2 },
                                             { "perhaps", 7 } };
    char key[96];
    if (dense) {
        gen_tensor(g, e, e, "cls.weight");
        gen_tensor(g, e, 0, "cls.bias");
    }
    gen_tensor(g, e, n_cls, "cls.output.weight");
    gen_tensor(g, n_cls, 0, "cls.output.bias");
    snprintf(key, sizeof key, "%s.classifier.output_labels", arch);
    must(gguf_meta_set_str_array(g->meta, key, names, (size_t)n_cls, NULL));
}

/* Two texts whose tokens alternate as long as there are some of both. */
static void mix(struct gguf_batch *b, gguf_token *tok, int32_t *seq, size_t n,
                size_t m)
{
    size_t i = 0, j = 0, k = 0;
    for (; i < n || j < m; k++) {
        const bool first = i < n && (j >= m || k % 2 == 0);
        seq[k] = first ? 0 : 1;
        tok[k] = first ? (gguf_token)((i++ * 37 + 11) % V)
                       : (gguf_token)((j++ * 53 + 7) % V);
    }
    b->n = k;
    b->token = tok;
    b->seq = seq;
}

/* The tokens of one of them. */
static size_t text_of(const struct gguf_batch *b, int q, gguf_token *out)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->seq[i] == q)
            out[n++] = b->token[i];
    return n;
}

static void check_encoder(void)
{
    static const struct refenc_jina spec = { V,           E, 64, 4, 2,
                                             REFENC_GATE, 0, 0,  0 };
    static struct gen g;
    static double states[2][N * E];
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[2 * N], text[N];
    int32_t seq[2 * N];
    const struct head head = { 0, 0, 0 };
    size_t size, n[2];
    refenc_jina_model(&g, &spec);
    add_classifier(&g, "jina-bert-v2", E, 3, true);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    mix(&b, tok, seq, N, 23);
    for (int q = 0; q < 2; q++) {
        n[q] = text_of(&b, q, text);
        refenc_jina_run(&g, &spec, text, (int)n[q], states[q]);
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
            size_t m = 0;
            pooled(kinds[k] == GGUF_POOLING_RANK ? GGUF_POOLING_CLS : kinds[k],
                   states[q], n[q], E, want);
            const size_t w = through(&g, &head, kinds[k], want, E);
            good = gguf_session_embedding(r.session, q, &row, &m, &r.err) ==
                       GGUF_OK &&
                   m == w;
            d = fmax(d, good ? far_from(row, want, m) : 1);
        }
        ok(good && d < 1e-11, "an encoder, %s: %.2g%s",
           gguf_pooling_name(kinds[k]), d, good ? "" : r.err.message);
        run_close(&r);
    }
    free(file);
    gen_fini(&g);
}

/* ---- the same states, pooled by a session and by hand ---- */

/* States of all tokens of a batch, of a session that does not pool. */
static bool states_of(const void *file, size_t size,
                      const struct gguf_batch *batch, uint32_t n_seq,
                      double *out)
{
    struct gguf_session_params p = init;
    struct gguf_batch b = *batch;
    uint8_t want[2 * N];
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
    const size_t e = good ? gguf_model_get_info(r.model)->n_embd : 0;
    for (size_t i = 0; i < b.n * e; i++)
        out[i] = (double)rows[i];
    if (!good)
        printf("# %s\n", r.err.message);
    run_close(&r);
    return good;
}

static void put_u32(struct gen *g, const char *arch, const char *key, int v)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", arch, key);
    must(gguf_meta_set_u32(g->meta, name, (uint32_t)v, NULL));
}

/* Models whose vectors are more than pooled states. */
static void bert(struct gen *g, int e)
{
    add_classifier(g, "bert", e, 2, true);
}
static void bert_out(struct gen *g, int e)
{
    add_classifier(g, "bert", e, 1, false);
}
static void jina(struct gen *g, int e)
{
    gen_tensor(g, e, 1, "cls.weight");
    gen_tensor(g, 1, 0, "cls.bias");
}
static void modern(struct gen *g, int e)
{
    gen_tensor(g, e, e, "cls.weight");
    gen_tensor(g, e, 0, "cls.norm.weight");
    gen_tensor(g, e, 3, "cls.output.weight");
    gen_tensor(g, 3, 0, "cls.output.bias");
}
static void qwen(struct gen *g, int e)
{
    gen_tensor(g, e, 2, "cls.output.weight");
}
static void lfm(struct gen *g, int e)
{
    put_u32(g, "lfm2", "embedding_length_out", 40);
    gen_tensor(g, e, 40, "dense_2.weight");
    gen_tensor(g, 40, 0, "dense_2.bias");
}
static void gemma(struct gen *g, int e)
{
    put_u32(g, "gemma-embedding", "dense_2_feat_out", 96);
    put_u32(g, "gemma-embedding", "dense_3_feat_in", 96);
    gen_tensor(g, e, 96, "dense_2.weight");
    gen_tensor(g, 96, e, "dense_3.weight");
}
static void bare(struct gen *g, int e)
{
    (void)g;
    (void)e;
}

static const struct model {
    const char *name;
    void (*add)(struct gen *g, int e);
    enum gguf_pooling rank; /* what RANK pools */
    struct head head;
    size_t width[2]; /* of MEAN, CLS and LAST, and of RANK; 0: n_embd */
} models[] = {
    { "bert", bert, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 2 } },
    { "bert", bert_out, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 1 } },
    { "bert", bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "jina-bert-v3", jina, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 1 } },
    { "modern-bert", modern, GGUF_POOLING_MEAN, { 1, 0, 1e-5 }, { 0, 3 } },
    { "qwen3", qwen, GGUF_POOLING_LAST, { 0, 1, 0 }, { 0, 2 } },
    { "qwen3vl", qwen, GGUF_POOLING_LAST, { 0, 1, 0 }, { 0, 2 } },
    { "lfm2", lfm, GGUF_POOLING_CLS, { 0, 0, 0 }, { 40, 40 } },
    { "gemma-embedding", gemma, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "llama", bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "mamba", bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "t5", bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
    { "t5encoder", bare, GGUF_POOLING_CLS, { 0, 0, 0 }, { 0, 0 } },
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
        pooled(rank ? m->rank : kinds[k], states, N, e, want);
        through(&s.g, &m->head, kinds[k], want, e);
        const bool good =
            known && run_open(&r, file, size, 2, &p) &&
            run_encode(&r, tok, 3) &&
            gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
            gguf_session_embedding(r.session, 0, &row, &n, &r.err) == GGUF_OK;
        if (good && n == width)
            d = far_from(row, want, n);
        ok(good && d < 1e-11, "%s, %s: %zu numbers, %.2g%s", m->name,
           gguf_pooling_name(kinds[k]), n, d, good ? "" : r.err.message);
        run_close(&r);
    }
    free(file);
    skeleton_close(&s);
}

/* ---- batches in pieces ---- */

static void *llama_file(size_t *size)
{
    static const struct gen_spec llama = { GEN_ONE_LAYER, .n_vocab = V };
    static struct gen g;
    gen_init(&g, 1);
    gen_model(&g, &llama);
    put_u32(&g, "llama", "pooling_type", 3);
    void *file = gen_file(&g, GGUF_DTYPE_F32, size);
    gen_fini(&g);
    return file;
}

static bool embed(struct run *r, const struct gguf_batch *b, uint32_t seq,
                  float out[32])
{
    const float *row;
    size_t n;
    if (gguf_session_decode(r->session, b, &r->err) != GGUF_OK ||
        gguf_session_embedding(r->session, seq, &row, &n, &r->err) !=
            GGUF_OK ||
        n != 32)
        return false;
    memcpy(out, row, 32 * sizeof *row);
    return true;
}

/* The vector of a text, alone, must be that of the same text beside another,
 * whatever micro-batches and threads. */
static void check_pieces(void)
{
    struct gguf_batch both = GGUF_BATCH_INIT, one = GGUF_BATCH_INIT;
    gguf_token tok[2 * N], text[N];
    int32_t seq[2 * N];
    size_t size;
    void *file = llama_file(&size);
    mix(&both, tok, seq, N, 23);
    one.n = text_of(&both, 0, text);
    one.token = text;
    for (size_t k = 0; k + 1 < GG_LEN(kinds); k++) {
        float want[32] = { 0 }, got[32];
        unsigned bad = 0, ways = 0;
        for (uint32_t ub = 0; ub < 70; ub += ub < 8 ? 4 : 11) {
            struct gguf_session_params p = init;
            struct run r;
            p.pooling = kinds[k];
            p.n_seq = 2;
            p.n_ubatch = ub;
            bad += !run_open(&r, file, size, 1 + ub % 3, &p);
            for (uint32_t q = 0; q < 2; q++) {
                const bool good = embed(&r, q ? &both : &one, 0, got) &&
                                  !gguf_session_clear(r.session, &r.err);
                if (!ub && !q)
                    memcpy(want, got, sizeof want);
                bad += !good || memcmp(got, want, sizeof got) != 0;
                ways++;
            }
            run_close(&r);
        }
        ok(!bad, "a decoder, %s: %u of %u ways give other bits",
           gguf_pooling_name(kinds[k]), bad, ways);
    }
    free(file);
}

/* Tokens of two sequences count for each of them, computed once or twice. */
static void check_several(void)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[20];
    int32_t seq[40];
    uint32_t n_seq[20];
    uint8_t none[20] = { 0 };
    size_t size, n;
    void *file = llama_file(&size);
    for (int32_t i = 0; i < 20; i++) {
        tok[i] = (i * 37 + 11) % V;
        seq[2 * i] = 1;
        seq[2 * i + 1] = 0;
        n_seq[i] = 2;
    }
    b.n = 20;
    b.token = tok;
    b.want = none;
    for (size_t k = 0; k < 6; k++) {
        struct gguf_session_params p = init;
        float alone[32], both[32];
        const float *row;
        struct run r;
        p.n_seq = 2;
        p.n_ubatch = 8;
        p.unified = k >= 3;
        p.pooling = kinds[k % 3];
        b.seq = NULL;
        b.n_seq = NULL;
        bool good = run_open(&r, file, size, 1, &p) && embed(&r, &b, 0, alone);
        b.seq = seq;
        b.n_seq = n_seq;
        good = good && !gguf_session_clear(r.session, &r.err) &&
               embed(&r, &b, 0, both) &&
               !gguf_session_embedding(r.session, 1, &row, &n, &r.err);
        ok(good && !memcmp(alone, both, sizeof both) &&
               !memcmp(alone, row, sizeof both),
           "tokens of two sequences%s, %s%s%s", p.unified ? ", unified" : "",
           gguf_pooling_name(p.pooling), good ? "" : ": ",
           good ? "" : r.err.message);
        run_close(&r);
    }
    free(file);
}

/* The file's way, which is the last token; positions decide, not the order in
 * the batch; and what is wanted is as ever. */
static void check_positions(void)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    static const int32_t pos[5] = { 3, 1, 4, 0, 2 };
    gguf_token tok[5] = { 5, 6, 7, 8, 9 };
    uint8_t want[5] = { 1, 1, 0, 1, 1 }, none[5] = { 0 };
    float a[32], c[32], rows[4 * 32];
    const float *states;
    size_t size;
    struct run r;
    void *file = llama_file(&size);
    struct gguf_session_params p = init;
    b.n = 5;
    b.token = tok;
    b.pos = pos;
    b.want = want;
    bool good = run_open(&r, file, size, 1, &p) && embed(&r, &b, 0, a) &&
                gguf_session_n_outputs(r.session) == 4 &&
                !gguf_session_states(r.session, 0, 4, &states, &r.err) &&
                gguf_model_get_info(r.model)->pooling == GGUF_POOLING_LAST &&
                gguf_session_pooling(r.session) == GGUF_POOLING_LAST;
    if (good)
        memcpy(rows, states, sizeof rows);
    good = good && !gguf_session_clear(r.session, &r.err);
    b.want = none;
    good = good && embed(&r, &b, 0, c) && !memcmp(a, c, sizeof a) &&
           gguf_session_n_outputs(r.session) == 0;
    run_close(&r);
    p.pooling = GGUF_POOLING_NONE;
    memset(want, 1, sizeof want);
    b.want = want;
    good = good && run_open(&r, file, size, 1, &p) &&
           !gguf_session_decode(r.session, &b, &r.err) &&
           !gguf_session_states(r.session, 0, 5, &states, &r.err);
    ok(good && !memcmp(states + 2 * 32, a, sizeof a),
       "last is the token at the highest position: %s", r.err.message);
    ok(good && !memcmp(rows, states, 2 * sizeof a) &&
           !memcmp(rows + 64, states + 96, 2 * sizeof a),
       "wanted states are as without pooling");
    p.pooling = GGUF_POOLING_CLS;
    float first[32];
    memcpy(first, states + 3 * 32, sizeof first);
    run_close(&r);
    good = good && run_open(&r, file, size, 1, &p) && embed(&r, &b, 0, a);
    ok(good && !memcmp(first, a, sizeof a),
       "cls is the token at the lowest position");
    run_close(&r);
    free(file);
}

/* ---- refusals ---- */

static int stop(void *user, struct gguf_graph *graph, struct gguf_sched *sched)
{
    (void)graph;
    (void)sched;
    return (*(int *)user)-- <= 0;
}

static void check_refused(void)
{
    struct gguf_session_params p = init;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[20] = { 1, 2, 3 };
    const float *row;
    struct run r;
    size_t size, n;
    int passes = 1 << 30;
    void *file = llama_file(&size);
    b.n = 3;
    b.token = tok;
    p.on_graph = stop;
    p.user = &passes;
    p.n_ubatch = 4;
    p.n_seq = 2;
    bool good = run_open(&r, file, size, 1, &p) &&
                gguf_session_embedding(r.session, 0, &row, &n, &r.err) &&
                says(&r, GGUF_E_INVALID, "no tokens of sequence 0");
    ok(good && !row && !n, "before a batch: %s", r.err.message);
    good = !gguf_session_decode(r.session, &b, &r.err) &&
           !gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    for (uint32_t q = 1; q < 3; q++)
        good = good &&
               gguf_session_embedding(r.session, q, &row, &n, &r.err) &&
               says(&r, GGUF_E_INVALID, "no tokens of sequence");
    ok(good, "of another sequence: %s", r.err.message);
    good = !gguf_session_clear(r.session, &r.err) &&
           gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    ok(good, "after it is cleared: %s", r.err.message);
    passes = 3;
    b.n = 20;
    good = gguf_session_decode(r.session, &b, &r.err) == GGUF_E_CANCELLED &&
           gguf_session_embedding(r.session, 0, &row, &n, &r.err);
    ok(good, "after a batch that was stopped: %s", r.err.message);
    run_close(&r);
    p.on_graph = NULL;
    p.pooling = GGUF_POOLING_NONE;
    good = run_open(&r, file, size, 1, &p) &&
           !gguf_session_decode(r.session, &b, &r.err) &&
           gguf_session_embedding(r.session, 0, &row, &n, &r.err) &&
           says(&r, GGUF_E_UNSUPPORTED, "does not pool");
    ok(good, "no pooling: %s", r.err.message);
    run_close(&r);
    p.pooling = (enum gguf_pooling)6;
    good = !run_open(&r, file, size, 1, &p) &&
           says(&r, GGUF_E_INVALID, "pooling 6");
    ok(good, "no such pooling: %s", r.err.message);
    run_close(&r);
    free(file);
}

/* Classifiers that do not fit: ranking is refused, other ways are not. */
static void wide_out(struct gen *g, int e)
{
    gen_tensor(g, e, 7, "cls.weight");
    gen_tensor(g, e, 2, "cls.output.weight");
}
static void short_bias(struct gen *g, int e)
{
    gen_tensor(g, e, 3, "cls.output.weight");
    gen_tensor(g, 2, 0, "cls.output.bias");
}
static void few_labels(struct gen *g, int e)
{
    static const struct gguf_str name = { "one", 3 };
    gen_tensor(g, e, 2, "cls.output.weight");
    must(gguf_meta_set_str_array(g->meta, "bert.classifier.output_labels",
                                 &name, 1, NULL));
}

static void check_misfits(void)
{
    static const struct {
        void (*add)(struct gen *g, int e);
        enum gguf_status st;
        const char *says;
    } misfits[] = {
        { wide_out, GGUF_E_TENSOR, "'cls.output.weight' takes" },
        { short_bias, GGUF_E_TENSOR, "'cls.output.bias' has 2 numbers" },
        { few_labels, GGUF_E_HPARAM, "output_labels has 1 names" },
    };
    for (size_t i = 0; i < GG_LEN(misfits); i++) {
        struct gguf_session_params p = init;
        struct skeleton s;
        struct run r;
        size_t size;
        if (!skeleton_open(&s, "bert"))
            abort();
        misfits[i].add(&s.g, (int)s.g.t[0].ne[0]);
        void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
        p.pooling = GGUF_POOLING_RANK;
        bool good = !run_open(&r, file, size, 1, &p) &&
                    says(&r, misfits[i].st, misfits[i].says);
        ok(good, "%s", r.err.message);
        run_close(&r);
        p.pooling = GGUF_POOLING_MEAN;
        good = run_open(&r, file, size, 1, &p);
        ok(good, "and the mean is not refused");
        run_close(&r);
        free(file);
        skeleton_close(&s);
    }
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
    add_classifier(&s.g, "bert", (int)s.g.t[0].ne[0], 3, true);
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    bool good = run_open(&r, file, size, 1, &init) &&
                gguf_model_get_info(r.model)->n_label == 3 &&
                gguf_model_get_info(r.model)->pooling == GGUF_POOLING_NONE &&
                !gguf_model_label(r.model, 2, &name, &r.err);
    ok(good && name.size == 7 && !memcmp(name.data, "perhaps", 7),
       "names of what a classifier gives");
    good = gguf_model_label(r.model, 3, &name, &r.err) == GGUF_E_INVALID;
    ok(good, "%s", r.err.message);
    run_close(&r);
    free(file);
    skeleton_close(&s);
}

/* Pooling and a classifier allocate nothing once there is a session; and any
 * allocation of its making may fail. */
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
    qwen(&s.g, (int)s.g.t[0].ne[0]);
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
    check_pieces();
    check_several();
    check_positions();
    check_refused();
    check_misfits();
    check_labels();
    check_allocations();
    return done_testing();
}
