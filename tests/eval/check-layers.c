/* SPDX-License-Identifier: MIT */
/* check-layers.c - comparison of two models' activations agrees with a loop
 * that keeps all of them */
#include "config.h"
#include "base/compiler.h"
#include "gguf/layers.h"
#include "gguf/op.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { CTX = 16, CHUNKS = 4, N = CTX * CHUNKS + 5, MOST = 700 };

/* ---- all that a model computes, kept ---- */

struct kept {
    char name[64];
    unsigned use;
    size_t n, cap; /* floats of all tokens, and room for them */
    float *x;
};

struct loop {
    struct kept *list;
    size_t n;
    bool no_nodes; /* no callback for nodes: read the logits after the pass */
    uint8_t seen[MOST];
};

static struct kept *find_kept(struct loop *l, const char *name, unsigned use)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->list[i].name, name) && l->list[i].use == use)
            return &l->list[i];
    return NULL;
}

static void keep_activation(struct loop *l, const char *name, const float *x,
                            size_t n)
{
    struct kept *k;
    unsigned use = 0;
    while ((k = find_kept(l, name, use)) != NULL && l->seen[k - l->list])
        use++;
    if (!k) {
        if (l->n == MOST)
            return;
        k = &l->list[l->n++];
        snprintf(k->name, sizeof k->name, "%s", name);
        k->use = use;
    }
    l->seen[k - l->list] = 1;
    k->x = realloc(k->x, (k->n + n) * sizeof *k->x);
    memcpy(k->x + k->n, x, n * sizeof *x);
    k->n += n;
}

/* Is this an activation with a name of its own? A view has its source's. */
static bool is_wanted(const struct gguf_tensor *t)
{
    return t->name[0] && !t->view_src && !strchr(t->name, '(') &&
           t->dtype == GGUF_DTYPE_F32 && t->op != GGUF_OP_NONE;
}

static bool wants_node(void *user, const struct gguf_tensor *t)
{
    (void)user;
    return is_wanted(t);
}

static bool see_node(void *user, struct gguf_tensor *t)
{
    keep_activation(user, t->name, t->data, (size_t)gguf_tensor_n_elements(t));
    return false;
}

static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    struct loop *l = user;
    memset(l->seen, 0, sizeof l->seen);
    (void)graph;
    const struct gguf_sched_eval eval = { l->no_nodes ? NULL : wants_node,
                                          see_node, l };
    return gguf_sched_set_eval(sched, eval, NULL) != GGUF_OK;
}

static void drop_kept(struct loop *l)
{
    for (size_t i = 0; l->list && i < l->n; i++)
        free(l->list[i].x);
    free(l->list);
    memset(l, 0, sizeof *l);
}

/* Decode chunk by chunk, with outputs for every token. */
static bool run_loop(struct loop *l, const void *file, size_t size,
                     const gguf_token *tok, size_t n, uint32_t ctx)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    bool want[64];
    struct run r;
    l->list = calloc(MOST, sizeof *l->list);
    p.n_ctx = p.n_ubatch = ctx;
    p.on_graph.fn = on_graph;
    p.on_graph.user = l;
    bool good = run_open(&r, file, size, 1, &p);
    memset(want, 1, sizeof want);
    b.n = ctx;
    b.want = want;
    for (size_t k = 0; good && k + ctx <= n; k += ctx) {
        const float *logits;
        b.token = tok + k;
        l->no_nodes = false;
        good = !gguf_session_clear(r.session, &r.err) &&
               !gguf_session_decode(r.session, &b, &r.err);
        l->no_nodes = true;
        for (size_t i = 0; good && i < ctx; i++) {
            if (gguf_session_logits(r.session, i, 1, &logits, &r.err))
                break; /* the tensor has no rows */
            memset(l->seen, 0, sizeof l->seen);
            keep_activation(l, "logits", logits, r.n_vocab);
        }
    }
    run_close(&r);
    return good;
}

/* ---- expected figures ---- */

static double worst; /* largest difference of a figure */
static void check_near(double got, long double want)
{
    const double d = fabs(got - (double)want) / fmax(1e-9, fabs((double)want));
    worst = isnan(d) ? INFINITY : fmax(worst, d);
}

static void check_entry(const struct gguf_layers_entry *e,
                        const struct kept *q, const struct kept *b)
{
    const size_t n_tok = (size_t)e->n_tokens, size = b->n / n_tok;
    long double d2 = 0, q2 = 0, b2 = 0, qb = 0, most = 0;
    const size_t at = e->worst_chunk * CTX + e->worst_pos;
    for (size_t k = 0; k < n_tok; k++) {
        long double td = 0, tb = 0;
        for (size_t i = k * size; i < (k + 1) * size; i++) {
            const long double x = q->x[i], y = b->x[i];
            td += (x - y) * (x - y);
            tb += y * y;
            q2 += x * x;
            qb += x * y;
        }
        d2 += td;
        b2 += tb;
        if (tb > 0)
            most = fmaxl(most, sqrtl(td / tb));
        if (tb > 0 && k == at)
            check_near(e->worst, sqrtl(td / tb));
    }
    check_near(e->error, b2 > 0 ? sqrtl(d2 / b2) : 0);
    check_near(e->cosine, q2 > 0 ? qb / sqrtl(q2 * b2) : 1);
    check_near(e->rms, sqrtl(b2 / (long double)b->n));
    check_near(e->worst, most);
}

/* Do the figures of every activation agree with the loops'? blocks: leave out
 * activations with rows for blocks of tokens. */
static bool as_loops(const struct gguf_layers *l, struct loop *q,
                     struct loop *b, bool blocks)
{
    size_t n = 0;
    worst = 0;
    for (size_t i = 0; i < gguf_layers_n_entries(l); i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(l, i);
        const struct kept *x = find_kept(q, e->name, e->use);
        const struct kept *y = find_kept(b, e->name, e->use);
        if (!x || !y || x->n != y->n || y->n % e->n_tokens) {
            printf("# '%s' %u: not seen so\n", e->name, e->use);
            return false;
        }
        check_entry(e, x, y);
        n++;
    }
    size_t n_more = 0;
    for (size_t i = 0; i < b->n; i++)
        n_more += find_kept(q, b->list[i].name, b->list[i].use) != NULL;
    return (blocks ? n <= n_more : n == n_more) && worst < 1e-9;
}

/* ---- two files ---- */

struct how {
    unsigned n_threads;
    uint32_t n_ubatch, n_ctx;
    size_t first, most;
};

struct two {
    const void *q, *b;
    size_t q_size, b_size;
    const gguf_token *tok;
    size_t n;
};

static struct gguf_layers *compare_models(const struct two *t, struct how how,
                                          const struct gguf_allocator *a,
                                          struct gguf_error *err)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_scan_params sp = GGUF_SCAN_PARAMS_INIT;
    struct gguf_layers *l = NULL;
    struct run q, b;
    p.n_ctx = how.n_ctx;
    p.n_ubatch = how.n_ubatch;
    bool good = run_open(&q, t->q, t->q_size, how.n_threads, &p);
    *err = q.err;
    p.allocator = a;
    if (good) {
        good = run_open(&b, t->b, t->b_size, how.n_threads, &p);
        *err = b.err;
        sp.n_ctx = how.n_ctx;
        sp.first_chunk = how.first;
        sp.max_chunks = how.most;
        sp.pool = q.pool;
        if (good)
            good = !gguf_layers_run(&l, q.session, b.session, t->tok, t->n,
                                    &sp, err);
        if (l && a) { /* destroy it before the allocator's memory */
            gguf_layers_destroy(l);
            l = NULL;
        }
        run_close(&b);
    }
    run_close(&q);
    return l;
}

static bool same_layers(const struct gguf_layers *x,
                        const struct gguf_layers *y)
{
    bool good = x && y && gguf_layers_n_entries(x) == gguf_layers_n_entries(y);
    for (size_t i = 0; good && i < gguf_layers_n_entries(x); i++) {
        const struct gguf_layers_entry *a = gguf_layers_entry(x, i);
        const struct gguf_layers_entry *b = gguf_layers_entry(y, i);
        good = !strcmp(a->name, b->name) && !strcmp(a->what, b->what) &&
               a->layer == b->layer && a->use == b->use &&
               a->n_tokens == b->n_tokens && a->error == b->error &&
               a->cosine == b->cosine && a->rms == b->rms &&
               a->worst == b->worst && a->worst_chunk == b->worst_chunk &&
               a->worst_pos == b->worst_pos;
        if (!good)
            printf("# '%s' and '%s' %.17g %.17g\n", a->name, b->name, a->error,
                   b->error);
    }
    return good;
}

/* ---- a llama ---- */

static gguf_token text[N];
static struct two llama;

static void make_llama(void)
{
    static const struct gen_spec spec = { GEN_LAYERS(2), .n_vocab = 200 };
    struct gen g;
    gen_init(&g, 9);
    gen_model(&g, &spec);
    llama.b = gen_file(&g, GGUF_DTYPE_F32, &llama.b_size);
    llama.q = gen_file(&g, GGUF_DTYPE_F16, &llama.q_size);
    gen_fini(&g);
    for (int i = 0; i < N; i++)
        text[i] = i * 37 % 200;
    llama.tok = text;
    llama.n = N;
}

static void check_names(const struct gguf_layers *l)
{
    static const char *const names[] = {
        "token_embd",
        "blk.0.attn_norm",
        "blk.0.attn_q",
        "blk.0.attn_k",
        "blk.0.attn_v",
        "blk.0.attn_heads",
        "blk.0.attn_output",
        "blk.0.ffn_norm",
        "blk.0.ffn_gate",
        "blk.0.ffn_up",
        "blk.0.ffn_down",
        "blk.0.output",
        "blk.1.attn_norm",
        "blk.1.attn_q",
        "blk.1.attn_k",
        "blk.1.attn_v",
        "blk.1.attn_heads",
        "blk.1.attn_output",
        "blk.1.ffn_norm",
        "blk.1.ffn_gate",
        "blk.1.ffn_up",
        "blk.1.ffn_down",
        "blk.1.output",
        "output_norm",
        "logits",
    };
    bool good = l && gguf_layers_n_entries(l) == GG_LEN(names) &&
                !gguf_layers_entry(l, GG_LEN(names));
    for (size_t i = 0; good && i < GG_LEN(names); i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(l, i);
        good = !strcmp(e->name, names[i]) && e->n_tokens == CTX * CHUNKS &&
               e->layer == (strstr(names[i], "blk.") ? names[i][4] - '0' : -1);
        if (!good)
            printf("# '%s', not '%s'\n", e->name, names[i]);
    }
    ok(good, "the activations of a llama, in order");
}

static void check_llama(void)
{
    static const struct how hows[] = {
        { 3, CTX, CTX, 0, 0 }, { 1, 5, CTX, 0, 0 },  { 2, 4, CTX, 0, 0 },
        { 1, 7, CTX, 0, 0 },   { 3, 64, CTX, 0, 0 },
    };
    struct gguf_error err;
    struct loop q = { 0 }, b = { 0 };
    struct gguf_layers *l =
        compare_models(&llama, (struct how){ 1, CTX, CTX, 0, 0 }, NULL, &err);
    check_names(l);
    ok(run_loop(&q, llama.q, llama.q_size, text, N, CTX) &&
           run_loop(&b, llama.b, llama.b_size, text, N, CTX) && l &&
           as_loops(l, &q, &b, false),
       "figures of a loop that keeps everything: %.2g", worst);
    for (size_t i = 0; i < GG_LEN(hows); i++) {
        struct gguf_layers *other =
            compare_models(&llama, hows[i], NULL, &err);
        ok(same_layers(l, other),
           "the same digits: %u threads, %u tokens together",
           hows[i].n_threads, (unsigned)hows[i].n_ubatch);
        gguf_layers_destroy(other);
    }
    struct gguf_layers *some =
        compare_models(&llama, (struct how){ 1, CTX, CTX, 2, 1 }, NULL, &err);
    ok(some && gguf_layers_entry(some, 0)->n_tokens == CTX &&
           gguf_layers_entry(some, 0)->worst_chunk == 2,
       "one chunk of them");
    gguf_layers_destroy(some);
    gguf_layers_destroy(l);
    drop_kept(&q);
    drop_kept(&b);
}

static void check_memory(void)
{
    struct gguf_error err;
    struct failalloc fa;
    unsigned calls[2];
    size_t most[2];
    for (int i = 0; i < 2; i++) {
        const struct gguf_allocator *a = failalloc_init(&fa, UINT_MAX);
        (void)compare_models(&llama,
                             (struct how){ 1, 8, CTX, 0, (size_t)(i ? 4 : 1) },
                             a, &err);
        calls[i] = fa.calls;
        most[i] = fa.most;
    }
    ok(calls[0] == calls[1] && most[0] == most[1],
       "four chunks take the memory of one: %zu bytes in %u calls", most[0],
       calls[0]);
    unsigned n = 0, n_bad = 0;
    for (; n < 2000; n++) {
        const struct gguf_allocator *a = failalloc_init(&fa, n);
        (void)compare_models(&llama, (struct how){ 1, 8, CTX, 0, 1 }, a, &err);
        n_bad += fa.live != 0 || (fa.calls > n && err.status != GGUF_E_NOMEM);
        if (fa.calls <= n)
            break;
    }
    ok(!n_bad && n > 20 && n < 2000, "whichever of %u allocations fails", n);
}

static void check_refused(void)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_scan_params sp = GGUF_SCAN_PARAMS_INIT;
    struct gguf_error err;
    struct gguf_layers *l;
    struct run q, b;
    p.n_ctx = sp.n_ctx = CTX;
    p.n_ubatch = 8;
    bool good = run_open(&q, llama.q, llama.q_size, 1, &p);
    p.n_ubatch = 5;
    good = run_open(&b, llama.b, llama.b_size, 1, &p) && good;
    ok(good &&
           gguf_layers_run(&l, q.session, q.session, text, N, &sp, &err) ==
               GGUF_E_INVALID &&
           !l,
       "one session twice: %s", err.message);
    ok(good &&
           gguf_layers_run(&l, q.session, b.session, text, N, &sp, &err) ==
               GGUF_E_INVALID &&
           strstr(err.message, "8") && strstr(err.message, "5"),
       "sessions that cut otherwise: %s", err.message);
    sp.n_ctx = CTX + 1;
    ok(good && gguf_layers_run(&l, q.session, b.session, text, N, &sp, &err) ==
                   GGUF_E_INVALID,
       "chunks that are too long: %s", err.message);
    sp.n_ctx = CTX;
    sp.first_chunk = CHUNKS;
    run_close(&b);
    p.n_ubatch = 8;
    good = run_open(&b, llama.b, llama.b_size, 1, &p) && good;
    ok(good && gguf_layers_run(&l, q.session, b.session, text, N, &sp, &err) ==
                   GGUF_E_INVALID,
       "no such chunk: %s", err.message);
    sp.first_chunk = 0;
    ok(good && gguf_layers_run(&l, q.session, b.session, text, CTX - 1, &sp,
                               &err) == GGUF_E_INVALID,
       "a short text: %s", err.message);
    run_close(&b);
    run_close(&q);
}

/* A NaN weight is reported with its model, operation and token. */
static void check_bad(int base)
{
    static const struct gen_spec spec = { GEN_LAYERS(2), .n_vocab = 200 };
    struct gen g;
    struct gguf_error err;
    float v[32 * 64];
    size_t size;
    gen_init(&g, 9);
    gen_model(&g, &spec);
    for (size_t i = 0; i < g.n; i++)
        if (!strcmp(g.t[i].name, "blk.1.ffn_up.weight")) {
            gen_weights(v, &g, &g.t[i]);
            v[70] = INFINITY;
            g.t[i].values = v;
        }
    void *bad = gen_file(&g, GGUF_DTYPE_F32, &size);
    gen_fini(&g);
    struct two t = llama;
    if (base) {
        t.b = bad;
        t.b_size = size;
    } else {
        t.q = bad;
        t.q_size = size;
    }
    struct gguf_layers *l =
        compare_models(&t, (struct how){ 2, 5, CTX, 1, 0 }, NULL, &err);
    ok(!l && err.status == GGUF_E_NONFINITE &&
           strstr(err.message, base ? "the base: " : "the model: ") &&
           strstr(err.message,
                  "chunk 2, position 0 (token 16 of the text): layer 1: "
                  "matmul 'blk.1.ffn_up' of 'blk.1.ffn_up.weight', "
                  "'blk.1.ffn_norm' is "),
       "%s", err.message);
    free(bad);
}

/* Only the logits after a chunk's last token overflow. They are not scored:
 * that chunk and position are reported, not the next one's. */
static void check_last(void)
{
    static float embd[40 * 32], out[40 * 32];
    const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = 40 };
    struct gguf_error err;
    static struct gen g;
    size_t size;
    gen_init(&g, 9);
    gen_model(&g, &spec);
    for (size_t i = 0; i < g.n; i++) {
        const bool in = !strcmp(g.t[i].name, "token_embd.weight");
        float *v = in ? embd : out;
        if (!in && strcmp(g.t[i].name, "output.weight") != 0)
            continue;
        gen_weights(v, &g, &g.t[i]);
        g.t[i].values = v;
        /* column 3 of one token is large, and one logit depends on it */
        v[39 * 32 + 3] = in ? 1000.0f : 1.1e38f;
    }
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    gen_fini(&g);
    gguf_token tok[3 * 16];
    for (size_t i = 0; i < 48; i++)
        tok[i] = i == 31 ? 39 : (gguf_token)(i * 7 % 39);
    struct two t = { file, file, size, size, tok, 48 };
    struct gguf_layers *l = compare_models(
        &t, (struct how){ .n_threads = 2, .n_ubatch = 5, .n_ctx = 16 }, NULL,
        &err);
    ok(!l && err.status == GGUF_E_NONFINITE &&
           strstr(err.message, "'logits' is not finite in chunk 2, position "
                               "15; chunk 2, position 15 (token 31 of the "
                               "text): "),
       "%s", err.message);
    gguf_layers_destroy(l);
    free(file);
}

/* ---- every architecture ---- */

/* Does every token attend to the whole chunk? */
static bool cannot_be_cut(const struct two *t)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    p.n_ctx = CTX;
    const bool whole = run_open(&r, t->b, t->b_size, 1, &p) &&
                       gguf_model_info(r.model)->is_whole;
    run_close(&r);
    return whole;
}

static void check_arch(const char *name)
{
    struct skeleton s;
    struct gguf_error err;
    struct loop q = { 0 }, b = { 0 };
    gguf_token tok[SKELETON_TOKENS];
    struct two t = { .tok = tok, .n = SKELETON_TOKENS };
    if (!skeleton_open(&s, name) || !s.n_rows || strstr(s.run, "encode+")) {
        skeleton_close(&s);
        return; /* not evaluated, or has two texts */
    }
    skeleton_tokens_of(&s, tok);
    t.b = gen_file(&s.g, GGUF_DTYPE_F32, &t.b_size);
    s.g.seed++; /* draw other weights */
    t.q = gen_file(&s.g, GGUF_DTYPE_F32, &t.q_size);
    const struct how whole = { 2, CTX, CTX, 0, 0 };
    struct gguf_layers *l = compare_models(&t, whole, NULL, &err);
    const bool is_whole = strstr(s.run, "embed") || cannot_be_cut(&t);
    struct gguf_layers *other =
        is_whole
            ? NULL
            : compare_models(&t, (struct how){ 1, 6, CTX, 0, 0 }, NULL, &err);
    ok(l && run_loop(&q, t.q, t.q_size, tok, t.n, CTX) &&
           run_loop(&b, t.b, t.b_size, tok, t.n, CTX) &&
           as_loops(l, &q, &b, !strcmp(name, "deepseek4-moe")),
       "%s: %zu activations as a loop has them: %.2g%s%s", name,
       l ? gguf_layers_n_entries(l) : 0, worst, l ? "" : ": ",
       l ? "" : err.message);
    if (!is_whole)
        ok(same_layers(l, other), "%s: the same digits in pieces", name);
    gguf_layers_destroy(other);
    gguf_layers_destroy(l);
    struct two self = t;
    self.q = t.b;
    self.q_size = t.b_size;
    l = compare_models(&self, whole, NULL, &err);
    size_t n_same = 0;
    for (size_t i = 0; l && i < gguf_layers_n_entries(l); i++)
        n_same += gguf_layers_entry(l, i)->error == 0 &&
                  gguf_layers_entry(l, i)->worst == 0;
    ok(l && n_same == gguf_layers_n_entries(l) && n_same > 2,
       "%s: no error against itself", name);
    gguf_layers_destroy(l);
    drop_kept(&q);
    drop_kept(&b);
    free((void *)(uintptr_t)t.b);
    free((void *)(uintptr_t)t.q);
    skeleton_close(&s);
}

int main(int argc, char **argv)
{
    static char names[200][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    make_llama();
    if (argc < 2) {
        check_llama();
        check_memory();
        check_refused();
        check_bad(0);
        check_bad(1);
        check_last();
    }
    for (size_t i = 0; i < n; i++)
        if (argc < 2 || !strcmp(argv[1], names[i]))
            check_arch(names[i]);
    free((void *)(uintptr_t)llama.b);
    free((void *)(uintptr_t)llama.q);
    return done_testing();
}
